package strict

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
)

// Parse reads a whole document, as JSON where the file's name ends in .json and as YAML otherwise. The file's name is only put into positions.
//
// All problems of the document are reported together where it can be read beyond the first; each has place and code [failure.Input]. A tree is returned beside the error where the document could be read in spite of it, so that a caller can look for further problems. A document without a value (empty, or only comments) is an error.
func Parse(file string, data []byte) (Node, error) {
	return parse(&source{file: file, line: 1, column: 1}, data, isJSON(file))
}

// ParseJSON reads one JSON value, for example one line of a JSONL file. firstLine is the number of the line that data begins with.
func ParseJSON(file string, firstLine int, data []byte) (Node, error) {
	return parse(&source{file: file, line: firstLine, column: 1}, data, true)
}

func isJSON(file string) bool { return strings.EqualFold(filepath.Ext(file), ".json") }

// parse reads one document. data is not kept.
func parse(src *source, data []byte, json bool) (Node, error) {
	if src.line == 1 && src.column == 1 {
		data = bytes.TrimPrefix(data, []byte(bom))
	}
	if len(data) > MaxDocument {
		return Node{}, src.error(0, "", "longer than %d MiB", MaxDocument>>20)
	}
	src.text = string(data)
	if err := src.checkText(!json); err != nil {
		return Node{}, err
	}
	if json {
		return parseJSON(src, data)
	}
	return parseYAML(src)
}

const bom = "\ufeff"

// checkText refuses what is not text. YAML forbids raw control characters everywhere; JSON does within strings, and its decoder says so.
func (s *source) checkText(control bool) error {
	if !utf8.ValidString(s.text) {
		for i, r := range s.text {
			if r == utf8.RuneError && !strings.HasPrefix(s.text[i:], "\ufffd") {
				return s.error(i, "save the file as UTF-8", "not UTF-8: byte 0x%02x", s.text[i])
			}
		}
	}
	for i := range len(s.text) {
		c := s.text[i]
		if c == 0 || control && c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return s.error(i, `in a double-quoted string write it as \u`+hex4(rune(c)), "control character U+%s", hex4(rune(c)))
		}
	}
	if !control {
		return nil
	}
	for _, r := range []rune{0xfffe, 0xffff} {
		if i := strings.IndexRune(s.text, r); i >= 0 {
			return s.error(i, "", "U+%s is no character", hex4(r))
		}
	}
	return nil
}

func hex4(r rune) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

// error returns an input error at byte off.
func (s *source) error(off int, hint, format string, args ...any) error {
	err := failure.At(s.position(off), failure.Input, format, args...)
	if hint != "" {
		err = failure.WithHint(err, "%s", hint)
	}
	return err
}
