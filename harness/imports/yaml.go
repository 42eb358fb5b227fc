package imports

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/strict"
)

// Value is a value to be written as YAML: made by [Text], [Literal], [Of], [Map] and [List].
type Value struct {
	kind     strict.Kind
	text     string
	fields   []Field
	items    []Entry
	block    bool
	comments []string // after the last field or entry
}

// Field is a key of a mapping. Comments stand on lines of their own before it.
type Field struct {
	Key      string
	Value    Value
	Comments []string
}

// Entry is an entry of a list. Comments stand on lines of their own before it.
type Entry struct {
	Value    Value
	Comments []string
}

// Text is a string.
func Text(s string) Value {
	return Value{kind: strict.String, text: strings.ToValidUTF8(s, "\ufffd")}
}

// Literal is a number, true, false or null, as YAML and JSON write it.
func Literal(s string) Value { return Value{kind: strict.Float, text: s} }

// Number is a number.
func Number(f float64) Value { return Literal(fmt.Sprintf("%v", f)) }

// Map is a mapping. Names must be unique. Fields without a value are left out.
func Map(fields ...Field) Value {
	v := Value{kind: strict.Mapping}
	for _, f := range fields {
		v.Set(f.Key, f.Value, f.Comments...)
	}
	return v
}

// List is a list.
func List(entries ...Entry) Value { return Value{kind: strict.Sequence, items: entries} }

// Texts is a list of strings.
func Texts(list []string) Value {
	v := Value{kind: strict.Sequence}
	for _, s := range list {
		v.Append(Text(s))
	}
	return v
}

// Of is the value of a node; a missing node is a missing value.
func Of(n strict.Node) Value {
	switch n.Kind() {
	case strict.Missing:
		return Value{}
	case strict.String:
		return Text(n.Text())
	case strict.Sequence:
		v := List()
		for _, item := range n.Items() {
			v.Append(Of(item))
		}
		return v
	case strict.Mapping:
		v := Map()
		for key, value := range n.Fields() {
			v.Set(key.Name, Of(value))
		}
		return v
	}
	return Literal(n.Text())
}

// IsZero reports whether there is no value.
func (v Value) IsZero() bool { return v.kind == strict.Missing }

// Len is the number of fields or entries.
func (v Value) Len() int { return len(v.fields) + len(v.items) }

// Set adds a field, unless the value is missing.
func (v *Value) Set(key string, value Value, comments ...string) {
	if value.IsZero() {
		return
	}
	if len(v.comments) > 0 {
		comments = append(v.comments, comments...)
		v.comments = nil
	}
	v.fields = append(v.fields, Field{strings.ToValidUTF8(key, "\ufffd"), value, comments})
}

// Append adds an entry.
func (v *Value) Append(value Value, comments ...string) {
	if len(v.comments) > 0 {
		comments = append(v.comments, comments...)
		v.comments = nil
	}
	v.items = append(v.items, Entry{value, comments})
}

// Comment adds a comment after what stands in the mapping or list so far, and so before what is added next.
func (v *Value) Comment(line string) { v.comments = append(v.comments, line) }

// Block asks for one line for each field or entry.
func (v Value) Block() Value { v.block = true; return v }

// width is how long a mapping or list on one line may be.
const width = 120

// YAML writes a mapping as a document, with comments at its head.
func (v Value) YAML(head ...string) []byte {
	w := &writer{}
	for _, line := range head {
		w.comment(0, line)
	}
	w.body(v, 0)
	return []byte(w.b.String())
}

type writer struct{ b strings.Builder }

func (w *writer) indent(n int) { w.b.WriteString(strings.Repeat(" ", n)) }

func (w *writer) comment(indent int, line string) {
	w.indent(indent)
	w.b.WriteString("# ")
	for _, r := range strings.ToValidUTF8(line, "\ufffd") {
		if r == '\n' || r == '\t' {
			r = ' '
		}
		if !printable(r) {
			fmt.Fprintf(&w.b, `\u%04x`, r)
			continue
		}
		w.b.WriteRune(r)
	}
	w.b.WriteByte('\n')
}

// body writes the fields or entries of a block.
func (w *writer) body(v Value, indent int) {
	for _, f := range v.fields {
		for _, line := range f.Comments {
			w.comment(indent, line)
		}
		w.indent(indent)
		w.field(f, indent)
	}
	for _, e := range v.items {
		for _, line := range e.Comments {
			w.comment(indent, line)
		}
		w.indent(indent)
		w.b.WriteString("- ")
		w.entry(e.Value, indent)
	}
	for _, line := range v.comments {
		w.comment(indent, line)
	}
}

func (w *writer) field(f Field, indent int) {
	w.scalar(f.Key, true, indent)
	w.b.WriteByte(':')
	switch {
	case f.Value.kind != strict.Mapping && f.Value.kind != strict.Sequence:
		w.b.WriteByte(' ')
		w.value(f.Value, indent+2)
		w.b.WriteByte('\n')
	case w.inline(f.Value, indent+len(f.Key)+2):
		w.b.WriteByte(' ')
		w.flow(f.Value)
		w.b.WriteByte('\n')
	default:
		w.b.WriteByte('\n')
		w.body(f.Value, indent+2)
	}
}

func (w *writer) entry(v Value, indent int) {
	switch {
	case v.kind != strict.Mapping && v.kind != strict.Sequence:
		w.value(v, indent+2)
		w.b.WriteByte('\n')
	case w.inline(v, indent+2) && (v.kind == strict.Sequence || v.Len() != 1):
		w.flow(v)
		w.b.WriteByte('\n')
	case v.kind == strict.Mapping && v.Len() > 0 && len(v.fields[0].Comments) == 0:
		w.field(v.fields[0], indent+2)
		v.fields = v.fields[1:]
		w.body(v, indent+2)
	default:
		w.b.WriteByte('\n')
		w.body(v, indent+2)
	}
}

// inline reports whether a mapping or list is written on one line.
func (w *writer) inline(v Value, column int) bool {
	if v.Len() == 0 {
		return len(v.comments) == 0 || !v.block
	}
	if v.block || !plainInside(v) {
		return false
	}
	probe := &writer{}
	probe.flow(v)
	return probe.b.Len()+column <= width
}

// plainInside reports whether nothing in a value asks for lines of its own.
func plainInside(v Value) bool {
	if len(v.comments) > 0 || v.block || v.kind == strict.String && strings.Contains(v.text, "\n") {
		return false
	}
	for _, f := range v.fields {
		if len(f.Comments) > 0 || !plainInside(f.Value) {
			return false
		}
	}
	for _, e := range v.items {
		if len(e.Comments) > 0 || !plainInside(e.Value) {
			return false
		}
	}
	return true
}

func (w *writer) flow(v Value) {
	switch v.kind {
	case strict.Mapping:
		w.b.WriteByte('{')
		for i, f := range v.fields {
			if i > 0 {
				w.b.WriteString(", ")
			}
			w.scalar(f.Key, true, 0)
			w.b.WriteString(": ")
			w.flow(f.Value)
		}
		w.b.WriteByte('}')
	case strict.Sequence:
		w.b.WriteByte('[')
		for i, e := range v.items {
			if i > 0 {
				w.b.WriteString(", ")
			}
			w.flow(e.Value)
		}
		w.b.WriteByte(']')
	case strict.String:
		w.scalar(v.text, true, 0)
	default:
		w.b.WriteString(v.text)
	}
}

func (w *writer) value(v Value, indent int) {
	if v.kind == strict.String {
		w.scalar(v.text, false, indent)
		return
	}
	w.b.WriteString(v.text)
}

// scalar writes a string: as a literal block where it has lines and stands in a block, plain where that is safe, else in double quotes.
func (w *writer) scalar(s string, flow bool, indent int) {
	switch {
	case !flow && literal(s):
		w.b.WriteByte('|')
		if !strings.HasSuffix(s, "\n") {
			w.b.WriteByte('-')
		}
		for line := range strings.Lines(strings.TrimSuffix(s, "\n")) {
			w.b.WriteByte('\n')
			if line = strings.TrimSuffix(line, "\n"); line != "" {
				w.indent(indent)
				w.b.WriteString(line)
			}
		}
	case plain(s, flow):
		w.b.WriteString(s)
	default:
		w.quoted(s)
	}
}

// literal reports whether a string can be a literal block: lines of printable characters, none of only spaces, the first of which does not begin with a space.
func literal(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(body, "\n") || strings.HasSuffix(body, "\n") || body[0] == ' ' || body[0] == '\n' || body[0] == '\t' {
		return false
	}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && strings.Trim(line, " \t") == "" {
			return false
		}
		for _, r := range line {
			if r != '\t' && !printable(r) {
				return false
			}
		}
	}
	return true
}

// plain reports whether a string can stand without quotes and is read as a string. It says no in doubt.
func plain(s string, flow bool) bool {
	first, _ := utf8.DecodeRuneInString(s)
	if s == "" || len(s) > 4096 || !unicode.IsLetter(first) && first != '/' && first != '_' || strings.HasSuffix(s, " ") || strings.HasSuffix(s, ":") || strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return false
	}
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off":
		return false
	}
	for _, r := range s {
		if !printable(r) || flow && strings.ContainsRune(",[]{}:", r) {
			return false
		}
	}
	return true
}

// printable reports whether a character shows, so that it can be written as it is.
func printable(r rune) bool {
	return r == ' ' || unicode.IsPrint(r) && r != utf8.RuneError && r != '\u0085' && r != '\ufeff'
}

func (w *writer) quoted(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r == '\n':
			w.b.WriteString(`\n`)
		case r == '\t':
			w.b.WriteString(`\t`)
		case r == '\r':
			w.b.WriteString(`\r`)
		case printable(r) || r == utf8.RuneError:
			w.b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&w.b, `\U%08x`, r)
		default:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		}
	}
	w.b.WriteByte('"')
}

// Comments are the comments after the last field or entry.
func (v Value) Comments() []string { return v.comments }

// Has reports whether a mapping has a field.
func (v Value) Has(key string) bool {
	for _, f := range v.fields {
		if f.Key == key {
			return true
		}
	}
	return false
}
