package mutate

import (
	"strings"
	"unicode/utf8"
)

// excerptLength is how many characters of a text a report shows, excerptBefore how many of them stand before the place where two texts differ.
const (
	excerptLength = 160
	excerptBefore = 40
)

// excerpts cuts two texts to what is around the first place where they differ.
func excerpts(before, after string) (string, string) {
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	return window(before, i), window(after, i)
}

// window is the part of a text around byte i, valid UTF-8.
func window(text string, i int) string {
	start := min(i, len(text))
	for range excerptBefore {
		_, n := utf8.DecodeLastRuneInString(text[:start])
		start -= n
	}
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	end, room := start, excerptLength
	for end < len(text) && room > 0 {
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
		room--
	}
	out := text[start:end]
	if start > 0 {
		out = "…" + out
	}
	if end < len(text) {
		out += "…"
	}
	return strings.ToValidUTF8(out, "\ufffd")
}
