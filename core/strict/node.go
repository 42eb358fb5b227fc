package strict

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
)

// Kind tells what a [Node] is.
type Kind uint8

// The kinds of a node. The zero Node is Missing; no parsed tree holds one.
const (
	Missing Kind = iota
	Null
	Bool
	Int
	Float
	String
	Sequence
	Mapping
)

// String describes the kind as error messages do: "a list", "a string".
func (k Kind) String() string {
	return [...]string{"nothing", "null", "true or false", "a whole number", "a number", "a string", "a list", "a mapping"}[k]
}

// Node is one value of a parsed file with its place. Nodes are immutable and cheap to copy; several may share parts.
type Node struct {
	src  *source
	text string
	sub  *composite
	off  int32
	kind Kind
}

// composite is the inside of a sequence or of a mapping; keys is nil in a sequence.
type composite struct {
	keys  []Key
	items []Node
}

// Key is one key of a mapping with its own place.
type Key struct {
	Name string
	src  *source
	off  int32
}

// Field is a key of a mapping and its value.
type Field struct {
	Key   Key
	Value Node
}

// Pos returns the place of the key.
func (k Key) Pos() failure.Position { return k.src.position(int(k.off)) }

// Kind returns what the node is.
func (n Node) Kind() Kind { return n.kind }

// IsZero reports whether the node is the zero value, which stands for a value that is not in the file.
func (n Node) IsZero() bool { return n.kind == Missing }

// IsNull reports whether the node is null. A missing node is not.
func (n Node) IsNull() bool { return n.kind == Null }

// Pos returns the place of the node's first character. For what an alias repeats it is the place of the anchor's value.
func (n Node) Pos() failure.Position { return n.src.position(int(n.off)) }

// Text returns the value of a string, the text of a number as JSON writes it, "true" or "false", and "null" for null. It is empty for the other kinds.
func (n Node) Text() string { return n.text }

// Len returns the number of entries of a sequence or of a mapping, and 0 for the other kinds.
func (n Node) Len() int {
	if n.sub == nil {
		return 0
	}
	return len(n.sub.items)
}

// Index returns entry i of a sequence, or the value of field i of a mapping. It panics where there is none, as a slice does.
func (n Node) Index(i int) Node { return n.sub.items[i] }

// Items goes through the entries of a sequence. It is empty for the other kinds.
func (n Node) Items() iter.Seq2[int, Node] {
	if n.kind != Sequence {
		return func(func(int, Node) bool) {}
	}
	return slices.All(n.sub.items)
}

// Fields goes through a mapping in the order of the file. It is empty for the other kinds.
func (n Node) Fields() iter.Seq2[Key, Node] {
	return func(yield func(Key, Node) bool) {
		if n.kind != Mapping {
			return
		}
		for i, key := range n.sub.keys {
			if !yield(key, n.sub.items[i]) {
				return
			}
		}
	}
}

// Get returns the value of a key of a mapping, and the zero Node where there is none.
func (n Node) Get(name string) Node {
	if n.kind == Mapping {
		for i := range n.sub.keys {
			if n.sub.keys[i].Name == name {
				return n.sub.items[i]
			}
		}
	}
	return Node{}
}

// KeyPos returns the place of a key of a mapping, and the place of the node where it has no such key.
func (n Node) KeyPos(name string) failure.Position {
	for key := range n.Fields() {
		if key.Name == name {
			return key.Pos()
		}
	}
	return n.Pos()
}

// Locate returns the place of the nth occurrence (from 0) of a part of the node's text in the file, and the place of the node where the file writes it otherwise, with escapes for example.
func (n Node) Locate(part string, nth int) failure.Position {
	if pos, ok := n.locate(part, nth); ok {
		return pos
	}
	return n.Pos()
}

func (n Node) locate(part string, nth int) (failure.Position, bool) {
	if n.src == nil || part == "" {
		return failure.Position{}, false
	}
	off := int(n.off)
	for {
		i := strings.Index(n.src.text[off:], part)
		if i < 0 {
			return failure.Position{}, false
		}
		off += i
		if nth == 0 {
			return n.src.position(off), true
		}
		off, nth = off+len(part), nth-1
	}
}

// PosOf returns the place of a byte of the node's text, which may have several lines, and the place of the node where the file does not write that line as it is.
func (n Node) PosOf(offset int) failure.Position {
	text := n.Text()
	offset = min(offset, len(text))
	from := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	pos, ok := n.locate(line, strings.Count(text[:from], line))
	if first := n.Pos(); !ok || pos.Line < first.Line || pos.Line > first.Line+strings.Count(text, "\n")+1 {
		return first
	}
	pos.Column += utf8.RuneCountInString(text[from:offset])
	return pos
}

// WithText returns a string at the place of n.
func (n Node) WithText(text string) Node {
	return Node{src: n.src, off: n.off, kind: String, text: text}
}

// At returns the value of n at the place of other. What lies inside n keeps its own places.
func (n Node) At(other Node) Node {
	n.src, n.off = other.src, other.off
	return n
}

// NewMapping returns a mapping of the given fields at the place of n. The names must be unique.
func (n Node) NewMapping(fields []Field) Node {
	sub := &composite{keys: make([]Key, len(fields)), items: make([]Node, len(fields))}
	for i, f := range fields {
		sub.keys[i], sub.items[i] = f.Key, f.Value
	}
	return Node{src: n.src, off: n.off, kind: Mapping, sub: sub}
}

// NewKey returns a key at the place of n.
func (n Node) NewKey(name string) Key { return Key{Name: name, src: n.src, off: n.off} }

// NewSequence returns a list of the given entries at the place of n.
func (n Node) NewSequence(items []Node) Node {
	return Node{src: n.src, off: n.off, kind: Sequence, sub: &composite{items: items}}
}

// Number returns the number that the text of a string is, as JSON writes it, at the place of n.
func (n Node) Number() (Node, bool) {
	kind, text, why := resolve(n.text)
	if why != "" || kind != Int && kind != Float {
		return n, false
	}
	n.kind, n.text = kind, text
	return n, true
}

// NewString returns a string without a place.
func NewString(text string) Node { return Node{kind: String, text: text} }

// NewFloat returns a number without a place. NaN and infinities, which no file holds, become null.
func NewFloat(f float64) Node {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Node{kind: Null, text: "null"}
	}
	return Node{kind: Float, text: strconv.FormatFloat(f, 'f', -1, 64)}
}

// NewBool returns true or false without a place.
func NewBool(b bool) Node { return Node{kind: Bool, text: strconv.FormatBool(b)} }

// MapStrings returns the tree with each string value (not the keys) replaced by what f returns for it. Parts that do not change are shared. Use [Node.WithText] or [Node.At] inside f to keep places.
func (n Node) MapStrings(f func(Node) Node) Node {
	switch n.kind {
	case String:
		return f(n)
	case Sequence, Mapping:
		var changed []Node
		for i, item := range n.sub.items {
			mapped := item.MapStrings(f)
			if changed == nil && mapped != item {
				changed = slices.Clone(n.sub.items)
			}
			if changed != nil {
				changed[i] = mapped
			}
		}
		if changed != nil {
			n.sub = &composite{keys: n.sub.keys, items: changed}
		}
	}
	return n
}

// Any returns the value as plain Go values: nil, bool, string, []any, map[string]any; an integer as int64 where it fits, every other number as float64, and a number beyond the range of float64 as the string of its text.
func (n Node) Any() any {
	switch n.kind {
	case Bool:
		return n.text == "true"
	case String:
		return n.text
	case Int, Float:
		return number(n.text)
	case Sequence:
		list := make([]any, len(n.sub.items))
		for i, item := range n.sub.items {
			list[i] = item.Any()
		}
		return list
	case Mapping:
		m := make(map[string]any, len(n.sub.items))
		for i, item := range n.sub.items {
			m[n.sub.keys[i].Name] = item.Any()
		}
		return m
	default:
		return nil
	}
}

func number(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return f
}

// Equal reports whether two trees hold the same values, wherever they stand: strings by their characters, numbers by their text, mappings whatever the order of their keys.
func (n Node) Equal(other Node) bool {
	if n.kind != other.kind || n.text != other.text || n.Len() != other.Len() {
		return false
	}
	if n.kind == Mapping {
		for key, value := range n.Fields() {
			if !value.Equal(other.Get(key.Name)) {
				return false
			}
		}
		return true
	}
	for i, item := range n.Items() {
		if !item.Equal(other.Index(i)) {
			return false
		}
	}
	return true
}

// source is the text that nodes come from.
type source struct {
	file         string
	text         string
	line, column int  // of the first byte of text, from 1
	gap          mark // where a list was cut out of the text (see [Split]): the place of the first byte after it. Zero where none was

	once  sync.Once
	marks []mark
}

// mark is the place of a byte of the text.
type mark struct{ off, line, column int }

// markEvery is the distance of the marks by which a place in a long text is found without starting at its beginning.
const markEvery = 4096

func (s *source) position(off int) failure.Position {
	if s == nil {
		return failure.Position{}
	}
	m := mark{0, s.line, s.column}
	if off > markEvery {
		s.once.Do(s.index)
		m = s.marks[off/markEvery]
	}
	m = s.move(m, off)
	return failure.Position{File: s.file, Line: m.line, Column: m.column}
}

func (s *source) index() {
	m := mark{0, s.line, s.column}
	for off := 0; off <= len(s.text); off += markEvery {
		m = s.move(m, off)
		s.marks = append(s.marks, m)
	}
}

// move moves a mark forward to byte off, over the gap if that lies between.
func (s *source) move(m mark, off int) mark {
	if m.off < s.gap.off && s.gap.off <= off {
		m = s.gap
	}
	return s.advance(m, off)
}

// advance moves a mark forward to byte off. Lines end with LF, CRLF or CR.
func (s *source) advance(m mark, off int) mark {
	part := s.text[m.off:off]
	for {
		i := strings.IndexAny(part, "\n\r")
		if i < 0 {
			break
		}
		if part[i] == '\r' && off-len(part)+i+1 < len(s.text) && s.text[off-len(part)+i+1] == '\n' {
			// The LF ends the line; should the mark lie between the two, the LF is counted next time.
			if i+1 == len(part) {
				break
			}
			i++
		}
		part = part[i+1:]
		m.line, m.column = m.line+1, 1
	}
	// A mark may lie inside a character: only its first byte counts.
	for i := range len(part) {
		if utf8.RuneStart(part[i]) {
			m.column++
		}
	}
	m.off = off
	return m
}

// lineEnd returns the end of the line that holds byte off, without its line break.
func (s *source) lineEnd(off int) int {
	if i := strings.IndexAny(s.text[off:], "\n\r"); i >= 0 {
		return off + i
	}
	return len(s.text)
}

// lineStart returns the offset of the first byte of the line that holds byte off.
func (s *source) lineStart(off int) int { return strings.LastIndexAny(s.text[:off], "\n\r") + 1 }
