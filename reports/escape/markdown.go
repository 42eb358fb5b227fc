package escape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code returns s on one line as a code span of Markdown, in which nothing acts: no emphasis, link, image, HTML, mention, reference or formula. The fence is longer than any run of backticks within. A text without a character gives _(empty)_.
//
// It follows CommonMark 0.31, section 6.1: code spans bind as tightly as HTML and links, so that nothing before it on the line may be open.
func Code(s string) string {
	s = Line(s)
	if s == "" {
		return "_(empty)_"
	}
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	first, last := s[0], s[len(s)-1]
	// One space at both ends is taken off again by the reader.
	if first == '`' || last == '`' || first == ' ' && last == ' ' && strings.Trim(s, " ") != "" {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// Cell is [Code] for a cell of a table, where a bar would end the cell even within a code span: bars become escapes.
func Cell(s string) string { return Code(strings.ReplaceAll(s, "|", `\x7c`)) }

// Formula returns s so that no spreadsheet takes it for a formula: before what begins with = + - @ (or their full-width forms), perhaps after spaces, or with a tab or line end, stands an apostrophe.
func Formula(s string) string {
	rest := strings.TrimLeftFunc(s, unicode.IsSpace)
	if first, _ := utf8.DecodeRuneInString(rest); rest != "" && strings.ContainsRune("=+-@＝＋－＠", first) || s != "" && strings.ContainsRune("\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
