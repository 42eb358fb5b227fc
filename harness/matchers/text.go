package matchers

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// plain returns a text on one line in which nothing acts on a terminal: what is not printable stands as an escape. What models and tools wrote is shown through it alone.
func plain(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// short is plain, and cut after [mostText] characters.
func short(s string) string {
	count := 0
	for i := range s {
		if count == mostText {
			return fmt.Sprintf("%s… (%d bytes in all)", plain(s[:i]), len(s))
		}
		count++
	}
	return plain(s)
}

// indent puts two spaces before each line.
func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }

// block is plain line by line.
func block(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return strings.Join(lines, "\n")
}
