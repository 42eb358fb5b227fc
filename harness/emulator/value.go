package emulator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// value is one value of a request's JSON.
type value struct {
	kind  jsontext.Kind // 'n' null, 'f' false, 't' true, '"' string, '0' number, '{' object, '[' array; 0 is absent
	text  string        // of a string its characters, of a number its literal
	keys  []string      // of an object
	items []value
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// parseValue reads one JSON text. Invalid UTF-8, duplicate names and anything after the value are errors.
func parseValue(data []byte) (value, error) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(data))
	v, err := readValue(d)
	if err != nil {
		return value{}, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return value{}, errors.New("more after the JSON value")
	}
	return v, nil
}

func readValue(d *jsontext.Decoder) (value, error) {
	token, err := d.ReadToken()
	if err != nil {
		return value{}, err
	}
	v := value{kind: token.Kind()}
	switch v.kind {
	case '"', '0':
		v.text = token.String()
	case '[':
		for d.PeekKind() != ']' {
			item, err := readValue(d)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, item)
		}
		_, err = d.ReadToken()
	case '{':
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return value{}, err
			}
			v.keys = append(v.keys, name.String())
			item, err := readValue(d)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, item)
		}
		_, err = d.ReadToken()
	}
	return v, err
}

// get returns a member of an object; an absent one has kind 0.
func (v *value) get(name string) *value {
	for i, key := range v.keys {
		if key == name {
			return &v.items[i]
		}
	}
	return &value{}
}

// given reports whether a member is there and not null: the vendors take null for absent nearly everywhere.
func (v *value) given() bool { return v.kind != 0 && v.kind != 'n' }

// isTrue reports whether the value is true.
func (v *value) isTrue() bool { return v.kind == 't' }

// describe names the kind as the vendor's messages do: "an array", "a string".
func (v *value) describe() string {
	switch v.kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		if strings.ContainsAny(v.text, ".eE") {
			return "a decimal"
		}
		return "an integer"
	case '[':
		return "an array"
	default:
		return "an object"
	}
}

// hashInto writes the value to h so that equal values, whatever the order of their keys and their spaces, write the same bytes and different ones do not.
func (v *value) hashInto(h hash.Hash, scratch []byte) []byte {
	scratch = append(scratch[:0], byte(v.kind))
	scratch = binary.AppendUvarint(scratch, uint64(len(v.text)+len(v.items)))
	scratch = append(scratch, v.text...)
	h.Write(scratch)
	if v.keys == nil {
		for i := range v.items {
			scratch = v.items[i].hashInto(h, scratch)
		}
		return scratch
	}
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(v.keys[a], v.keys[b]) })
	for _, i := range order {
		key := value{kind: '"', text: v.keys[i]}
		scratch = key.hashInto(h, scratch)
		scratch = v.items[i].hashInto(h, scratch)
	}
	return scratch
}

// appendJSON writes the value as JSON without spaces, keys in their order.
func (v *value) appendJSON(dst []byte) []byte {
	switch v.kind {
	case '"':
		return appendQuoted(dst, v.text)
	case '0':
		return append(dst, v.text...)
	case 't':
		return append(dst, "true"...)
	case 'f':
		return append(dst, "false"...)
	case '{', '[':
		dst = append(dst, byte(v.kind))
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			if v.kind == '{' {
				dst = append(appendQuoted(dst, v.keys[i]), ':')
			}
			dst = v.items[i].appendJSON(dst)
		}
		return append(dst, byte(v.kind)+2) // the closing bracket
	}
	return append(dst, "null"...)
}
