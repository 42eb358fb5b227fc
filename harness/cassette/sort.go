package cassette

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// sortJSON returns compact JSON with sorted keys, no needless escapes (as RFC 8785 has them) and numbers as written. What is no JSON, repeats a key or is not UTF-8 it returns as it is, and false.
func sortJSON(text string) (string, bool) {
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	if !b.sort(text) {
		return text, false
	}
	return string(b.sorted), true
}

// buffer holds what canonical forms are put together in.
type buffer struct {
	sorted, lines, scratch []byte
	members                []member
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// sort leaves the sorted form of text in b.sorted, and reports false where there is none.
func (b *buffer) sort(text string) bool {
	s := sorter{text: text, out: b.sorted[:0], scratch: b.scratch, members: b.members[:0]}
	ok := s.value(0)
	s.space()
	b.sorted, b.scratch, b.members = s.out, s.scratch, s.members
	if ok && s.pos == len(text) {
		return true
	}
	v := append(jsontext.Value(b.sorted[:0]), text...)
	if v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		return false
	}
	b.sorted = v
	return true
}

// sorter writes the canonical form of plain JSON in one pass. Whatever is not plain it leaves to jsontext: its methods then return false, whether the text is wrong or only unusual. FuzzSort holds the two against each other.
type sorter struct {
	text string
	pos  int
	out  []byte
	// members are those of the objects that are open, as places in out; scratch is where they change places.
	members []member
	scratch []byte
}

type member struct{ start, name, end int }

// deepest bounds the recursion.
const deepest = 200

func (s *sorter) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *sorter) eat(c byte) bool {
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *sorter) value(depth int) bool {
	s.space()
	if s.pos == len(s.text) || depth > deepest {
		return false
	}
	switch c := s.text[s.pos]; c {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		return s.string()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *sorter) word(w string) bool {
	if !strings.HasPrefix(s.text[s.pos:], w) {
		return false
	}
	s.pos += len(w)
	s.out = append(s.out, w...)
	return true
}

func (s *sorter) digits() bool {
	from := s.pos
	for s.pos < len(s.text) && s.text[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > from
}

func (s *sorter) number() bool {
	from := s.pos
	s.eat('-')
	if !s.eat('0') && !s.digits() {
		return false
	}
	if s.eat('.') && !s.digits() {
		return false
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			s.eat('-')
		}
		if !s.digits() {
			return false
		}
	}
	s.out = append(s.out, s.text[from:s.pos]...)
	return true
}

func (s *sorter) array(depth int) bool {
	s.pos++
	s.out = append(s.out, '[')
	if s.space(); s.eat(']') {
		s.out = append(s.out, ']')
		return true
	}
	for s.value(depth + 1) {
		s.space()
		if s.eat(']') {
			s.out = append(s.out, ']')
			return true
		}
		if !s.eat(',') {
			return false
		}
		s.out = append(s.out, ',')
	}
	return false
}

func (s *sorter) object(depth int) bool {
	s.pos++
	s.out = append(s.out, '{')
	if s.space(); s.eat('}') {
		s.out = append(s.out, '}')
		return true
	}
	base := len(s.members)
	inOrder := true
	for {
		m := member{start: len(s.out)}
		s.space()
		if s.pos == len(s.text) || s.text[s.pos] != '"' || !s.string() {
			return false
		}
		m.name = len(s.out)
		// Names are sorted by UTF-16 code units of what they mean; bytes do where there are neither escapes nor other characters than ASCII.
		for _, c := range s.out[m.start:m.name] {
			if c >= utf8.RuneSelf || c == '\\' {
				return false
			}
		}
		if s.space(); !s.eat(':') {
			return false
		}
		s.out = append(s.out, ':')
		if !s.value(depth + 1) {
			return false
		}
		m.end = len(s.out)
		if len(s.members) > base {
			switch last := s.members[len(s.members)-1]; s.compare(last, m) {
			case 0:
				return false
			case 1:
				inOrder = false
			}
		}
		s.members = append(s.members, m)
		if s.space(); s.eat('}') {
			break
		}
		if !s.eat(',') {
			return false
		}
		s.out = append(s.out, ',')
	}
	if !inOrder && !s.reorder(s.members[base:]) {
		return false
	}
	s.members = s.members[:base]
	s.out = append(s.out, '}')
	return true
}

// compare compares names without their quotes, so that a name stands before those that it begins.
func (s *sorter) compare(a, b member) int {
	return bytes.Compare(s.out[a.start+1:a.name-1], s.out[b.start+1:b.name-1])
}

// reorder sorts the members of an object within out.
func (s *sorter) reorder(members []member) bool {
	start, end := members[0].start, members[len(members)-1].end
	slices.SortFunc(members, s.compare)
	s.scratch = s.scratch[:0]
	for i, m := range members {
		if i > 0 {
			if s.compare(members[i-1], m) == 0 {
				return false
			}
			s.scratch = append(s.scratch, ',')
		}
		s.scratch = append(s.scratch, s.out[m.start:m.end]...)
	}
	copy(s.out[start:end], s.scratch)
	return true
}

// string copies a string that begins at pos, with the escapes that are needed.
func (s *sorter) string() bool {
	s.out = append(s.out, '"')
	s.pos++
	text, from, i := s.text, s.pos, s.pos
	for {
		// Eight characters at once that need no look: none is a control character, a quote, a backslash or part of more than one byte.
		for len(text)-i >= 8 {
			v := uint64(text[i]) | uint64(text[i+1])<<8 | uint64(text[i+2])<<16 | uint64(text[i+3])<<24 | uint64(text[i+4])<<32 | uint64(text[i+5])<<40 | uint64(text[i+6])<<48 | uint64(text[i+7])<<56
			quote, slash := v^(ones*'"'), v^(ones*'\\')
			if (v|(v-ones*' ')|(quote-ones)&^quote|(slash-ones)&^slash)&(ones*0x80) != 0 {
				break
			}
			i += 8
		}
		for i < len(text) && quiet[text[i]] {
			i++
		}
		if i == len(text) {
			return false
		}
		switch c := text[i]; {
		case c == '"':
			s.out = append(append(s.out, text[from:i]...), '"')
			s.pos = i + 1
			return true
		case c == '\\':
			s.out = append(s.out, text[from:i]...)
			s.pos = i
			if !s.escape() {
				return false
			}
			from, i = s.pos, s.pos
		case c < ' ':
			return false
		default:
			r, width := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && width == 1 {
				return false
			}
			i += width
		}
	}
}

// quiet are the characters of ASCII that a string holds as they are.
var quiet = func() (set [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()

// escape copies one escape in its canonical form.
func (s *sorter) escape() bool {
	if s.pos+1 >= len(s.text) {
		return false
	}
	switch c := s.text[s.pos+1]; c {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		s.out = append(s.out, '\\', c)
		s.pos += 2
		return true
	case '/':
		s.out = append(s.out, '/')
		s.pos += 2
		return true
	case 'u':
		// Code points that need no escape, in the form that encoders use which escape more than they must.
		if s.pos+6 > len(s.text) {
			return false
		}
		r, ok := hex(strings.ToLower(s.text[s.pos+2 : s.pos+6]))
		if !ok || r < ' ' || r == '"' || r == '\\' || !utf8.ValidRune(r) {
			return false
		}
		s.out = utf8.AppendRune(s.out, r)
		s.pos += 6
		return true
	}
	return false
}
