package score

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// limit is how many characters of a text results hold.
const limit = 500

const ellipsis = "…"

// cut shortens a text to the limit at its end.
func cut(s string) string { return excerpt(s, 0, limit) }

// around shortens a text to the limit so that what stands at byte i stays.
func around(s string, i int) string { return excerpt(s, i, limit) }

// excerpt returns at most n characters of s, valid UTF-8: all of it, or a window that holds what stands at byte i with an ellipsis where something is left out.
func excerpt(s string, i, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	start := min(max(i, 0), len(s))
	// A third of the window stands before the place. Near the end of the text the window ends with it.
	for range n / 3 {
		start -= width(s[:start], utf8.DecodeLastRuneInString)
	}
	tail := len(s)
	for range n - 1 {
		tail -= width(s[:tail], utf8.DecodeLastRuneInString)
	}
	start = min(start, tail)
	var b strings.Builder
	room := n
	if start > 0 {
		b.WriteString(ellipsis)
		room--
	}
	end := start
	for range room - 1 {
		end += width(s[end:], utf8.DecodeRuneInString)
	}
	if last := width(s[end:], utf8.DecodeRuneInString); end+last == len(s) {
		end = len(s)
	}
	b.WriteString(strings.ToValidUTF8(s[start:end], "\ufffd"))
	if end < len(s) {
		b.WriteString(ellipsis)
	}
	return b.String()
}

func width(s string, decode func(string) (rune, int)) int {
	_, n := decode(s)
	return n
}

// quote shows a short piece of a text from byte i on.
func quote(s string, i int) string {
	const most = 40
	piece := s[min(i, len(s)):]
	characters := 0
	for n := range piece {
		if characters == most {
			piece = piece[:n] + ellipsis
			break
		}
		characters++
	}
	return strconv.Quote(strings.ToValidUTF8(piece, "\ufffd"))
}

// character is the number, from 1, of the character at byte i.
func character(s string, i int) int { return utf8.RuneCountInString(s[:i]) + 1 }

// difference returns the first byte, at the beginning of a character, at which two different texts differ.
func difference(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	for i > 0 && (i < len(a) && !utf8.RuneStart(a[i]) || i < len(b) && !utf8.RuneStart(b[i])) {
		i--
	}
	return i
}
