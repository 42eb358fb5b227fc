package strict

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonParser builds the tree of one JSON text. Finished nodes of the containers that are still open lie on one stack, so that each container is allocated once, at its size.
type jsonParser struct {
	src   *source
	dec   *jsontext.Decoder
	keys  []Key
	items []Node
	p     Problems
}

// jsonParsers are kept, because their stacks and the decoder's are most of what one line of JSONL allocates.
var jsonParsers = sync.Pool{New: func() any { return &jsonParser{dec: jsontext.NewDecoder(new(bytes.Buffer))} }}

func parseJSON(src *source, data []byte) (Node, error) {
	j := jsonParsers.Get().(*jsonParser)
	dec := j.dec
	// The decoder works on the bytes of a bytes.Buffer without copying them.
	dec.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	defer func() {
		clear(j.keys[:cap(j.keys)])
		clear(j.items[:cap(j.items)])
		dec.Reset(new(bytes.Buffer)) // lets go of data
		*j = jsonParser{dec: dec, keys: j.keys[:0], items: j.items[:0]}
		jsonParsers.Put(j)
	}()
	j.src = src
	if dec.PeekKind() == jsontext.KindInvalid {
		if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
			return Node{}, src.error(0, "", "empty: want a JSON value")
		}
	}
	n, err := j.value(0)
	if err != nil {
		return Node{}, err
	}
	end := int(dec.InputOffset())
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		at := end + len(src.text[end:]) - len(strings.TrimLeft(src.text[end:], " \t\r\n"))
		return Node{}, src.error(at, "", "text after the end of the value")
	}
	return n, j.p.Err()
}

func (j *jsonParser) value(depth int) (Node, error) {
	kind := j.dec.PeekKind()
	if kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		off, raw, err := j.scalar()
		if err != nil {
			return Node{}, err
		}
		n := Node{src: j.src, off: off, text: raw}
		switch raw[0] {
		case 'n':
			n.kind = Null
		case 't', 'f':
			n.kind = Bool
		case '"':
			n.kind, n.text = String, unquote(raw)
		default:
			n.kind = Int
			if strings.ContainsAny(raw, ".eE") {
				n.kind = Float
			}
		}
		return n, nil
	}
	if _, err := j.dec.ReadToken(); err != nil {
		return Node{}, j.syntax(err)
	}
	n := Node{src: j.src, off: int32(j.dec.InputOffset() - 1), kind: Sequence}
	if depth == MaxDepth {
		return Node{}, j.src.error(int(n.off), "", "nested more than %d deep", MaxDepth)
	}
	firstKey, firstItem := len(j.keys), len(j.items)
	closing := jsontext.KindEndArray
	if kind == jsontext.KindBeginObject {
		n.kind, closing = Mapping, jsontext.KindEndObject
	}
	for j.dec.PeekKind() != closing {
		if n.kind == Mapping {
			off, raw, err := j.scalar()
			if err != nil {
				return Node{}, err
			}
			j.keys = append(j.keys, Key{Name: unquote(raw), src: j.src, off: off})
		}
		item, err := j.value(depth + 1)
		if err != nil {
			return Node{}, err
		}
		j.items = append(j.items, item)
	}
	if _, err := j.dec.ReadToken(); err != nil {
		return Node{}, j.syntax(err)
	}
	n.sub = &composite{items: append([]Node(nil), j.items[firstItem:]...)}
	j.items = j.items[:firstItem]
	if n.kind == Mapping {
		n.sub.keys = append([]Key(nil), j.keys[firstKey:]...)
		j.keys = j.keys[:firstKey]
		checkUnique(n.sub.keys, &j.p)
	}
	return n, nil
}

// scalar reads a scalar or a key and returns its offset and its text.
func (j *jsonParser) scalar() (int32, string, error) {
	raw, err := j.dec.ReadValue()
	if err != nil {
		return 0, "", j.syntax(err)
	}
	end := int(j.dec.InputOffset())
	return int32(end - len(raw)), j.src.text[end-len(raw) : end], nil
}

// unquote returns the text of a JSON string that the decoder has accepted. Without escapes it is a part of the source.
func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return string(text)
}

// syntax puts the decoder's error at its place.
func (j *jsonParser) syntax(err error) error {
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) {
		// The decoder reads from memory: all that is left is the end of the text.
		return j.src.error(len(j.src.text), "", "the JSON text ends too early")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return j.src.error(len(j.src.text), "", "the JSON text ends too early")
	}
	off := min(int(at.ByteOffset), len(j.src.text))
	return j.src.error(off, "", "not JSON: %w", at.Err)
}

// checkUnique reports each key that stands in its mapping a second time.
func checkUnique(keys []Key, p *Problems) {
	const few = 12
	if len(keys) <= few {
		for i := range keys {
			for k := range i {
				if keys[k].Name == keys[i].Name {
					p.duplicate(keys[k], keys[i])
					break
				}
			}
		}
		return
	}
	first := make(map[string]int, len(keys))
	for i := range keys {
		if k, ok := first[keys[i].Name]; ok {
			p.duplicate(keys[k], keys[i])
			continue
		}
		first[keys[i].Name] = i
	}
}

func (p *Problems) duplicate(first, second Key) {
	p.Add(second.Pos(), "remove one of the two", "key %q stands here a second time, first at %s", second.Name, first.Pos())
}
