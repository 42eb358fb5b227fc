package openai

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// patch is what the SDK's types cannot say about one request.
type patch struct {
	// set are members of the request's object that replace those of the same name or are added.
	set []member
	// reasoning is the name under which reasoning_content is sent; "" leaves it.
	reasoning string
}

// member is a member of a JSON object: its name as JSON text with quotes, and its value.
type member struct{ name, value string }

// apply completes an encoded request in one pass:
//
//   - members of set take the place of the SDK's or are appended in their order;
//   - a message without content gets one, null beside tool calls and "" else;
//   - reasoning_content is renamed;
//   - a part of type file, which the SDK could carry only in the fields of an image (url, and the name in detail), gets its real form.
//
// Everything else keeps its bytes.
func (p patch) apply(body []byte) ([]byte, error) {
	grow := 64
	for _, m := range p.set {
		grow += len(m.name) + len(m.value) + 2
	}
	s := scanner{in: body, out: make([]byte, 0, len(body)+grow)}
	used := make([]bool, len(p.set))
	count, err := s.object(func(name []byte) error {
		for i, m := range p.set {
			if string(name) == m.name {
				used[i] = true
				return s.replace(m.value)
			}
		}
		if string(name) == `"messages"` && s.peek() == '[' {
			return s.array(func() error { return p.message(&s) })
		}
		return s.skip()
	})
	if err != nil {
		return nil, err
	}
	s.copyUpTo(s.pos - 1)
	for i, m := range p.set {
		if used[i] {
			continue
		}
		s.member(count, m.name, m.value)
		count++
	}
	s.copyUpTo(s.pos)
	s.space()
	if s.pos != len(body) {
		return nil, errors.New("text after the object")
	}
	return s.out, nil
}

func (p patch) message(s *scanner) error {
	if s.peek() != '{' {
		return s.skip()
	}
	content, calls := false, false
	count, err := s.object(func(name []byte) error {
		switch string(name) {
		case `"content"`:
			content = true
			if s.peek() == '[' {
				return s.array(func() error { return filePart(s) })
			}
		case `"tool_calls"`:
			calls = true
		case `"reasoning_content"`:
			if p.reasoning != "" {
				s.rename(name, p.reasoning)
			}
		}
		return s.skip()
	})
	if err != nil || content {
		return err
	}
	value := `""`
	if calls {
		value = "null"
	}
	s.copyUpTo(s.pos - 1)
	s.member(count, `"content"`, value)
	return nil
}

// filePart gives a part of type file its form.
func filePart(s *scanner) error {
	if s.peek() != '{' {
		return s.skip()
	}
	start := s.pos
	file := false
	var address, name []byte
	_, err := s.object(func(key []byte) error {
		from := s.pos
		switch string(key) {
		case `"type"`:
			err := s.skip()
			file = string(s.in[from:s.pos]) == `"file"`
			return err
		case `"image_url"`:
			if s.peek() != '{' {
				break
			}
			_, err := s.object(func(key []byte) error {
				from := s.pos
				err := s.skip()
				switch string(key) {
				case `"url"`:
					address = s.in[from:s.pos]
				case `"detail"`:
					name = s.in[from:s.pos]
				}
				return err
			})
			return err
		}
		return s.skip()
	})
	if err != nil || !file || address == nil || name == nil {
		return err
	}
	s.copyUpTo(start)
	s.out = append(s.out, `{"type":"file","file":{"filename":`...)
	s.out = append(s.out, name...)
	s.out = append(s.out, `,"file_data":`...)
	s.out = append(s.out, address...)
	s.out = append(s.out, "}}"...)
	s.copied = s.pos
	return nil
}

// scanner walks over JSON text and copies it, apart from what its user replaces. It looks only at what it needs to find its way.
type scanner struct {
	in     []byte
	pos    int
	out    []byte
	copied int // in[:copied] has been copied or replaced
	name   int // where the name of the member that is being visited begins
}

func (s *scanner) copyUpTo(pos int) {
	s.out = append(s.out, s.in[s.copied:pos]...)
	s.copied = pos
}

// replace skips the next value and puts another in its place.
func (s *scanner) replace(value string) error {
	s.space()
	s.copyUpTo(s.pos)
	if err := s.skip(); err != nil {
		return err
	}
	s.out = append(s.out, value...)
	s.copied = s.pos
	return nil
}

// rename replaces the name of the member that is being visited, whose value has not been read yet.
func (s *scanner) rename(old []byte, name string) {
	s.copyUpTo(s.name)
	s.out = conversation.AppendString(s.out, name)
	s.copied = s.name + len(old)
}

// member appends a member to an object that has count of them.
func (s *scanner) member(count int, name, value string) {
	if count > 0 {
		s.out = append(s.out, ',')
	}
	s.out = append(s.out, name...)
	s.out = append(s.out, ':')
	s.out = append(s.out, value...)
}

func (s *scanner) space() {
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.in) {
		return 0
	}
	return s.in[s.pos]
}

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return fmt.Errorf("byte %d: no %q", s.pos, c)
	}
	s.pos++
	return nil
}

// object reads an object and calls visit before each value, which visit reads. It ends behind the closing brace.
func (s *scanner) object(visit func(name []byte) error) (count int, err error) {
	if err := s.expect('{'); err != nil {
		return 0, err
	}
	if s.peek() == '}' {
		s.pos++
		return 0, nil
	}
	for {
		s.space()
		start := s.pos
		if err := s.quoted(); err != nil {
			return count, err
		}
		name := s.in[start:s.pos]
		if err := s.expect(':'); err != nil {
			return count, err
		}
		s.space()
		s.name = start
		if err := visit(name); err != nil {
			return count, err
		}
		count++
		if s.peek() != ',' {
			return count, s.expect('}')
		}
		s.pos++
	}
}

// array reads a list and calls visit before each value, which visit reads.
func (s *scanner) array(visit func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		s.space()
		if err := visit(); err != nil {
			return err
		}
		if s.peek() != ',' {
			return s.expect(']')
		}
		s.pos++
	}
}

// skip moves behind the next value.
func (s *scanner) skip() error {
	switch s.peek() {
	case 0:
		return errors.New("a value is missing")
	case '"':
		return s.quoted()
	case '{', '[':
		return s.nested()
	}
	start := s.pos
	for s.pos < len(s.in) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.in[s.pos])) {
		s.pos++
	}
	if s.pos == start {
		return fmt.Errorf("byte %d: a value is missing", start)
	}
	return nil
}

// nested moves behind an object or list. It counts brackets and goes no deeper itself, so that no input can exhaust the stack.
func (s *scanner) nested() error {
	depth := 0
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case '"':
			if err := s.quoted(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return nil
		}
	}
	return errors.New("an object or list does not end")
}

// quoted moves behind a string.
func (s *scanner) quoted() error {
	if s.pos == len(s.in) || s.in[s.pos] != '"' {
		return fmt.Errorf("byte %d: no string", s.pos)
	}
	start := s.pos + 1
	for at := start; ; {
		i := bytes.IndexByte(s.in[at:], '"')
		if i < 0 {
			return errors.New("a string does not end")
		}
		at += i
		// The quote is part of the string where an odd number of backslashes stands before it.
		slashes := 0
		for at-slashes > start && s.in[at-slashes-1] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			s.pos = at
			return nil
		}
	}
}

// objectMembers returns the members of a JSON object, none for "".
func objectMembers(j conversation.JSON) ([]member, error) {
	if j == "" {
		return nil, nil
	}
	if v := jsontext.Value(j); !v.IsValid() || v.Kind() != '{' {
		return nil, errors.New("they must be a JSON object")
	}
	var members []member
	s := scanner{in: []byte(j)}
	_, err := s.object(func(name []byte) error {
		start := s.pos
		err := s.skip()
		members = append(members, member{string(name), string(s.in[start:s.pos])})
		return err
	})
	return members, err
}
