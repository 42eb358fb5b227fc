// Package secret finds key-shaped secrets and known secret values in text. One table serves everything that must not let a secret through: the scan before a cassette is written, the invariant no-secret-in-content, and every report.
//
// A hit says what was found and where, never the value itself:
//
//	for hit := range detector.All(text) {
//		return fmt.Errorf("%s in the system prompt", hit.Kind)
//	}
//
// Text may be plain, JSON, or JSON inside JSON strings: a value is found in any of these forms, see [Layer].
package secret

import (
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MinValue is the length in bytes from which the value of an environment variable counts as a secret to look for. Shorter ones occur in ordinary text.
const MinValue = 12

// Value is a known secret: the name under which it is reported, which is public, and the value, which is not.
type Value struct{ Name, Value string }

// String hides the value.
func (v Value) String() string { return v.Name }

// GoString hides the value.
func (v Value) GoString() string { return v.Name }

// Hit is one secret found: a kind of the table [Kinds], or "value of NAME" for a known value, and its bytes text[Start:End].
type Hit struct {
	Kind       string
	Start, End int
}

// Pattern is a shape of secrets that a project has of its own: what Regex finds, which is never the empty text, is one of that kind.
type Pattern struct {
	Kind  string
	Regex *regexp.Regexp
}

// Detector looks for key shapes, for the project's own patterns and for known values. The zero value looks for key shapes alone. It may be used by several goroutines as long as none changes it.
type Detector struct {
	Values   []Value
	Patterns []Pattern
	Allow    func(string) bool // reports that a key-shaped text is known to be none; nil allows nothing
}

// FromEnviron picks the secrets out of an environment as os.Environ returns it: values of at least [MinValue] bytes of variables whose names end in KEY, TOKEN, SECRET or PASSWORD, sorted by name.
func FromEnviron(environ []string) []Value {
	var values []Value
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if len(value) >= MinValue && named(name) {
			values = append(values, Value{name, value})
		}
	}
	slices.SortStableFunc(values, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return values
}

func named(name string) bool {
	name = strings.ToUpper(name)
	for _, suffix := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// All yields the secrets in text: first those of key shape in order of place, then those of each pattern, then known values by name. The places of two hits may overlap.
func (d *Detector) All(text string) iter.Seq[Hit] {
	return func(yield func(Hit) bool) {
		for hit := range shapes(text) {
			if d.Allow != nil && d.Allow(text[hit.Start:hit.End]) {
				continue
			}
			if !yield(hit) {
				return
			}
		}
		for _, p := range d.Patterns {
			for _, at := range p.Regex.FindAllStringIndex(text, -1) {
				if d.Allow != nil && d.Allow(text[at[0]:at[1]]) {
					continue
				}
				if !yield(Hit{p.Kind, at[0], at[1]}) {
					return
				}
			}
		}
		if len(d.Values) == 0 {
			return
		}
		for layer := range Layers(text) {
			for _, v := range d.Values {
				for _, form := range v.forms(layer.Text) {
					for from := 0; ; {
						at := strings.Index(layer.Text[from:], form)
						if at < 0 {
							break
						}
						at += from
						from = at + len(form)
						// What stands in this layer as it stood in the one before was found there.
						start, end := layer.Raw(at), layer.Raw(from)
						if layer.Depth > 0 && text[start:end] == form {
							continue
						}
						if !yield(Hit{"value of " + v.Name, start, end}) {
							return
						}
					}
				}
			}
		}
	}
}

// forms are the value and, where a text may hold them, what it becomes in a URL: in a query, in a path, with large and with small hexadecimal digits.
func (v Value) forms(text string) []string {
	if v.Value == "" {
		return nil
	}
	forms := []string{v.Value}
	if !strings.ContainsAny(text, "%+") {
		return forms
	}
	for _, form := range URLForms(v.Value) {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}

// URLForms returns the forms of a text in a URL that differ from it.
func URLForms(text string) []string {
	var forms []string
	for _, form := range []string{url.QueryEscape(text), url.PathEscape(text), strings.ReplaceAll(url.QueryEscape(text), "+", "%20")} {
		for _, f := range []string{form, smallHex(form)} {
			if f != text && !slices.Contains(forms, f) {
				forms = append(forms, f)
			}
		}
	}
	return forms
}

// smallHex writes percent escapes with small letters.
func smallHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// First returns the first hit in text.
func (d *Detector) First(text string) (Hit, bool) {
	for hit := range d.All(text) {
		return hit, true
	}
	return Hit{}, false
}

// Redact replaces each secret by its kind in square brackets. Text without one is returned as it is.
func (d *Detector) Redact(text string) string {
	hits := slices.SortedFunc(d.All(text), func(a, b Hit) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	if len(hits) == 0 {
		return text
	}
	var b strings.Builder
	done := 0
	for _, hit := range hits {
		switch {
		case hit.Start >= done:
			b.WriteString(text[done:hit.Start])
			b.WriteString("[" + hit.Kind + "]")
			done = hit.End
		case hit.End > done: // overlaps one that is already replaced
			done = hit.End
		}
	}
	b.WriteString(text[done:])
	return b.String()
}

// Layer is text after some rounds of JSON unescaping. Text inside a JSON string is seen as it is meant one layer down, tool arguments inside a request (JSON in a JSON string) two layers down.
type Layer struct {
	Text  string
	Depth int

	above *Layer
}

// maxDepth covers JSON text that holds JSON that holds JSON.
const maxDepth = 3

// Layers yields text itself (depth 0) and, as long as there are escapes left, what each further round of unescaping makes of it, to depth 3.
func Layers(text string) iter.Seq[*Layer] {
	return func(yield func(*Layer) bool) {
		layer := &Layer{Text: text}
		for yield(layer) && layer.Depth < maxDepth && strings.IndexByte(layer.Text, '\\') >= 0 {
			below := &Layer{Depth: layer.Depth + 1, above: layer}
			below.Text, _ = unescape(layer.Text, -1)
			if len(below.Text) == len(layer.Text) { // only backslashes that escape nothing
				return
			}
			layer = below
		}
	}
}

// Raw returns the offset in the text of depth 0 of what stands at offset i of this layer. It takes time linear in the text.
func (l *Layer) Raw(i int) int {
	for ; l.above != nil; l = l.above {
		_, i = unescape(l.above.Text, i)
	}
	return i
}

// unescape undoes one round of JSON string escaping, wherever in the text; a backslash that begins no escape stands for itself. With stop >= 0 it only walks until stop bytes are produced. It returns the result and the offset in s at which it stopped.
func unescape(s string, stop int) (string, int) {
	var b []byte
	if stop < 0 {
		b = make([]byte, 0, len(s))
	}
	made := 0
	emit := func(chunk string) {
		if stop < 0 {
			b = append(b, chunk...)
		}
		made += len(chunk)
	}
	i := 0
	for i < len(s) {
		plain := strings.IndexByte(s[i:], '\\')
		if plain < 0 {
			plain = len(s) - i
		}
		if stop >= 0 && made+plain >= stop {
			return "", i + stop - made
		}
		emit(s[i : i+plain])
		i += plain
		if i == len(s) {
			break
		}
		text, width := escape(s[i:])
		if stop >= 0 && made+len(text) > stop {
			return "", i
		}
		emit(text)
		i += width
	}
	return string(b), i
}

// escape decodes the escape at the start of s and returns its meaning and width.
func escape(s string) (string, int) {
	if len(s) < 2 {
		return s, len(s)
	}
	switch s[1] {
	case '"', '\\', '/':
		return s[1:2], 2
	case 'b':
		return "\b", 2
	case 'f':
		return "\f", 2
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	case 'u':
		r, ok := hex4(s[2:])
		if !ok {
			break
		}
		if r >= 0xD800 && r < 0xDC00 && strings.HasPrefix(s[6:], `\u`) {
			if low, ok := hex4(s[8:]); ok && low >= 0xDC00 && low < 0xE000 {
				return string(0x10000 + (r-0xD800)<<10 + low - 0xDC00), 12
			}
		}
		if !utf8.ValidRune(r) {
			return s[:6], 6
		}
		return string(r), 6
	}
	return s[:1], 1
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 + rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 + rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
