// Package escape makes text of models, tools and users harmless before it reaches a sink that reads more than letters in it: a terminal, an XML file.
//
// What is dangerous or invisible stays visible as an escape, so that a report shows that it was there:
//
//	escape.Line("\x1b[31mred")  // \x1b[31mred
//
// Dangerous are control characters (C0, DEL, C1), which move the cursor, change colours and titles or end lines; the marks of bidirectional text, which show a line in another order than it is read; and characters that show nothing at all: zero-width spaces, fillers,
// tags, noncharacters. Joiners and variation selectors stay where emoji and scripts need them.
package escape

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s on one line: line ends become \n, tabs \t, all else that is dangerous \x.. or \u.... Bytes that are not UTF-8 become \x...
func Line(s string) string { return escaped(s, false) }

// Block returns s with its line ends, all of which become \n, and with each tab as four spaces. Everything else is as in [Line].
func Block(s string) string { return escaped(s, true) }

// JSON returns JSON text in which what is dangerous is written as \u escapes. It means the same: outside of strings valid JSON holds none of it but line ends and tabs, which stay.
func JSON(text []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r >= 0x7f && dangerous(r) {
			out = append(out, text[from:i]...)
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

func escaped(s string, block bool) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case block && r == '\n':
			b.WriteByte('\n')
		case block && r == '\r':
			b.WriteByte('\n')
			if strings.HasPrefix(s[i+1:], "\n") {
				size++
			}
		case block && r == '\t':
			b.WriteString("    ")
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case !dangerous(r):
			b.WriteString(s[i : i+size])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			writeRune(&b, r)
		}
		i += size
	}
	return b.String()
}

func writeRune(b *strings.Builder, r rune) {
	if r > 0xffff {
		fmt.Fprintf(b, `\U%08x`, r)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// plain reports whether s is printable ASCII, as most text is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// invisible are the characters above ASCII and C1 that reorder text or show nothing. General category Cf holds most of them; the rest are fillers and separators that terminals draw as nothing or as a new line.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180e, Hi: 0x180e, Stride: 1}, // Mongolian vowel separator
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, // zero-width space
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, // left-to-right, right-to-left marks
		{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // line and paragraph separators, bidirectional embeddings and overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // word joiner, invisible operators, bidirectional isolates
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfdd0, Hi: 0xfdef, Stride: 1}, // noncharacters
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // half-width Hangul filler
		{Lo: 0xfff0, Hi: 0xfffb, Stride: 1}, // unassigned and interlinear annotation
	},
	R32: []unicode.Range32{
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1}, // musical format controls
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, which hide text in plain sight
	},
}

func dangerous(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r&0xfffe == 0xfffe || unicode.Is(invisible, r)
}

// XML returns s with only characters that XML 1.0 takes (section 2.2) and that show: control characters are removed, line ends become \n, bytes that are not UTF-8 the replacement character, and what is invisible an escape. It does not escape markup; an encoder does that.
func XML(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case r == '\t' || r == '\n':
			b.WriteRune(r)
		case r == '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				b.WriteByte('\n')
			}
		case r < 0x20 || r >= 0x7f && r <= 0x9f:
		case dangerous(r):
			writeRune(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
