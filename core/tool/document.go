package tool

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// maxDepth bounds the nesting of schemas and of arguments. Both come from outside and are walked recursively.
const maxDepth = 64

// document is a JSON value that keeps the order of its keys and the text of its numbers.
type document struct {
	kind jsontext.Kind
	raw  string // of a scalar
	keys []string
	vals []document // of an object, in the order of keys, or of an array
}

// parse reads exactly one JSON value.
func parse(text conversation.JSON) (document, error) {
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	d, err := parseValue(dec, 0)
	if err != nil {
		return document{}, err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return document{}, fmt.Errorf("text after the end of the JSON value")
	}
	return d, nil
}

func parseValue(dec *jsontext.Decoder, depth int) (document, error) {
	if depth > maxDepth {
		return document{}, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' {
		raw, err := dec.ReadValue()
		if err != nil {
			return document{}, fmt.Errorf("not valid JSON: %w", err)
		}
		return document{kind: raw.Kind(), raw: string(raw)}, nil
	}
	if _, err := dec.ReadToken(); err != nil {
		return document{}, fmt.Errorf("not valid JSON: %w", err)
	}
	d := document{kind: kind}
	for next := dec.PeekKind(); next != '}' && next != ']'; next = dec.PeekKind() {
		if kind == '{' {
			key, err := dec.ReadToken()
			if err != nil {
				return document{}, fmt.Errorf("not valid JSON: %w", err)
			}
			d.keys = append(d.keys, key.String())
		}
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return document{}, err
		}
		d.vals = append(d.vals, v)
	}
	_, err := dec.ReadToken()
	if err != nil {
		return document{}, fmt.Errorf("not valid JSON: %w", err)
	}
	return d, nil
}

// get returns the value of a key of an object.
func (d document) get(key string) (document, bool) {
	for i, k := range d.keys {
		if k == key {
			return d.vals[i], true
		}
	}
	return document{}, false
}

// set gives a key a value, in its place where it has one.
func (d *document) set(key string, v document) {
	for i, k := range d.keys {
		if k == key {
			d.vals[i] = v
			return
		}
	}
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
}

// text returns the text of a string.
func (d document) text() (string, bool) {
	if d.kind != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, d.raw)
	return string(b), err == nil
}

func stringDocument(s string) document {
	return document{kind: '"', raw: string(conversation.String(s))}
}

// append appends the value as JSON without white space.
func (d document) append(dst []byte) []byte {
	switch d.kind {
	case '{':
		dst = append(dst, '{')
		for i, key := range d.keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = conversation.AppendString(dst, key)
			dst = append(dst, ':')
			dst = d.vals[i].append(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, v := range d.vals {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, d.raw...)
}

// place says how the value of a keyword holds schemas.
type place int

const (
	noSchema   place = iota
	oneSchema        // a schema, or a list of them in older drafts (items)
	schemaList       // a list of schemas
	schemaMap        // an object whose values are schemas and whose keys are names
)

// keywords of JSON Schema (draft-07 and 2020-12) that hold schemas. inPlace are those that apply to the same value as the schema around them.
var keywords = map[string]struct {
	place   place
	inPlace bool
}{
	"items":                 {oneSchema, false},
	"additionalItems":       {oneSchema, false},
	"unevaluatedItems":      {oneSchema, false},
	"contains":              {oneSchema, false},
	"additionalProperties":  {oneSchema, false},
	"unevaluatedProperties": {oneSchema, false},
	"propertyNames":         {oneSchema, false},
	"contentSchema":         {oneSchema, false},
	"not":                   {oneSchema, true},
	"if":                    {oneSchema, true},
	"then":                  {oneSchema, true},
	"else":                  {oneSchema, true},
	"prefixItems":           {schemaList, false},
	"allOf":                 {schemaList, true},
	"anyOf":                 {schemaList, true},
	"oneOf":                 {schemaList, true},
	"properties":            {schemaMap, false},
	"patternProperties":     {schemaMap, false},
	"$defs":                 {schemaMap, false},
	"definitions":           {schemaMap, false},
	"dependentSchemas":      {schemaMap, true},
	"dependencies":          {schemaMap, true},
}

// subschemas calls visit for each schema directly inside the schema d, with its JSON pointer relative to d.
func (d document) subschemas(visit func(pointer string, inPlace bool, sub document)) {
	for i, key := range d.keys {
		k := keywords[key]
		v := d.vals[i]
		switch {
		case k.place == oneSchema && v.kind == '{':
			visit("/"+key, k.inPlace, v)
		case (k.place == schemaList || k.place == oneSchema) && v.kind == '[':
			for j, sub := range v.vals {
				visit(fmt.Sprintf("/%s/%d", key, j), k.inPlace, sub)
			}
		case k.place == schemaMap && v.kind == '{':
			for j, sub := range v.vals {
				visit("/"+key+"/"+escapePointer(v.keys[j]), k.inPlace, sub)
			}
		}
	}
}

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escapePointer(key string) string { return pointerEscaper.Replace(key) }
