package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/echoeval/echoeval/core/conversation"
)

// maxSchema bounds the text of a schema, in bytes.
const maxSchema = 1 << 20

// Schema is a compiled schema of a tool's arguments. It is safe for concurrent use.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// CompileSchema compiles a JSON Schema of draft-07 or 2020-12. It refuses what no vendor takes or what cannot be checked offline: a schema whose type is not object, arrays without items, a $ref that leaves the document, and references that
// return to themselves without going down into the value. A schema may refer to itself by way of a property or an item. All problems are reported at once.
//
// Equal texts are compiled once.
func CompileSchema(parameters conversation.JSON) (*Schema, error) {
	if s, ok := compiled.get(parameters); ok {
		return s, nil
	}
	s, err := compile(parameters)
	if err != nil {
		return nil, err
	}
	compiled.put(parameters, s)
	return s, nil
}

func compile(parameters conversation.JSON) (*Schema, error) {
	if len(parameters) > maxSchema {
		return nil, fmt.Errorf("the schema is %d bytes long; at most %d are allowed", len(parameters), maxSchema)
	}
	d, err := parse(parameters)
	if err != nil {
		return nil, fmt.Errorf("the schema is %w", err)
	}
	if err := checkSchema(d); err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal([]byte(parameters), s); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	return &Schema{root: s, resolved: resolved}, nil
}

// drafts are the values of $schema whose rules the validator knows.
var drafts = []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"}

func checkSchema(root document) error {
	if root.kind != '{' {
		return fmt.Errorf("the schema must be an object")
	}
	var problems []error
	report := func(pointer, format string, args ...any) {
		problems = append(problems, fmt.Errorf("#%s: %s", pointer, fmt.Sprintf(format, args...)))
	}
	if t, ok := root.get("type"); !ok || t.raw != `"object"` {
		report("", `the schema of a tool must have "type": "object"`)
	}
	if v, ok := root.get("$schema"); ok {
		if draft, _ := v.text(); !slices.Contains(drafts, draft) {
			report("", "$schema is %s; known are %s", v.append(nil), strings.Join(drafts, ", "))
		}
	}
	var walk func(pointer string, d document)
	walk = func(pointer string, d document) {
		if d.kind != '{' {
			return
		}
		if arrays(d) {
			_, items := d.get("items")
			_, refers := d.get("$ref")
			if !items && !refers {
				report(pointer, "an array needs items")
			}
		}
		if _, ok := d.get("$id"); ok && pointer != "" {
			report(pointer, "an $id inside a schema is not supported")
		}
		for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, ok := d.get(key); ok {
				report(pointer, "%s is not supported; use $ref", key)
			}
		}
		if v, ok := d.get("$ref"); ok {
			ref, _ := v.text()
			switch _, found := root.resolve(ref); {
			case ref != "#" && !strings.HasPrefix(ref, "#/"):
				report(pointer, "$ref %s leaves the document; only # and #/... are allowed", v.append(nil))
			case !found:
				report(pointer, "$ref %s names nothing", v.append(nil))
			}
		}
		d.subschemas(func(sub string, _ bool, s document) { walk(pointer+sub, s) })
	}
	walk("", root)
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return checkCycles(root)
}

// arrays reports whether the schema says that its value is or may be an array.
func arrays(d document) bool {
	t, _ := d.get("type")
	return t.raw == `"array"` || t.kind == '[' && slices.ContainsFunc(t.vals, func(v document) bool { return v.raw == `"array"` })
}

// resolve follows a reference within the document.
func (d document) resolve(ref string) (document, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return document{}, false
	}
	// The fragment of a URI is percent-encoded (RFC 6901, section 6).
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return document{}, false
	}
	if pointer == "" {
		return d, true
	}
	for _, segment := range strings.Split(pointer, "/")[1:] {
		segment = pointerUnescaper.Replace(segment)
		switch d.kind {
		case '{':
			if d, ok = d.get(segment); !ok {
				return document{}, false
			}
		case '[':
			i, err := strconv.Atoi(segment)
			if err != nil || i < 0 || i >= len(d.vals) {
				return document{}, false
			}
			d = d.vals[i]
		default:
			return document{}, false
		}
	}
	return d, d.kind == '{' || d.raw == "true" || d.raw == "false"
}

// checkCycles looks for references that come back to themselves without going down into a property or an item: validating them would never end.
func checkCycles(root document) error {
	const (
		open = 1
		done = 2
	)
	state := map[string]int{}
	var visit func(pointer string, d document) error
	visit = func(pointer string, d document) error {
		switch state[pointer] {
		case open:
			return fmt.Errorf("#%s: the schema refers to itself without end", pointer)
		case done:
			return nil
		}
		state[pointer] = open
		var err error
		d.subschemas(func(sub string, inPlace bool, s document) {
			if inPlace && err == nil {
				err = visit(pointer+sub, s)
			}
		})
		if v, ok := d.get("$ref"); ok && err == nil {
			ref, _ := v.text()
			target, _ := root.resolve(ref)
			// The decoded pointer is the name of the target, whatever its spelling.
			name, _ := url.PathUnescape(strings.TrimPrefix(ref, "#"))
			err = visit(name, target)
		}
		state[pointer] = done
		return err
	}
	var all func(pointer string, d document) error
	all = func(pointer string, d document) error {
		if err := visit(pointer, d); err != nil {
			return err
		}
		var err error
		d.subschemas(func(sub string, _ bool, s document) {
			if err == nil {
				err = all(pointer+sub, s)
			}
		})
		return err
	}
	return all("", root)
}

// byText remembers what was made of a text: every item of a dataset builds its agent anew from the same few schemas.
type byText[T any] struct {
	mu   sync.Mutex
	made map[conversation.JSON]T
}

// compiled holds the schemas that were compiled, compact the texts without white space.
var (
	compiled byText[*Schema]
	compact  byText[conversation.JSON]
)

// maxRemembered bounds how many texts are remembered. What comes after is made each time.
const maxRemembered = 1024

func (c *byText[T]) get(text conversation.JSON) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.made[text]
	return v, ok
}

func (c *byText[T]) put(text conversation.JSON, v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[conversation.JSON]T{}
	}
	if len(c.made) < maxRemembered {
		c.made[text] = v
	}
}

// ArgumentsError says how arguments fail their schema.
type ArgumentsError struct {
	// Problems are sentences without a full stop, in the order of the schema and of the arguments.
	Problems []string
}

// Error joins the problems with "; ".
func (e *ArgumentsError) Error() string { return strings.Join(e.Problems, "; ") }

// Validate checks arguments, a JSON object. The error is an [*ArgumentsError] that names every problem at once, in words for a model and for a person.
//
// A number without a fraction is an integer however it is written (3.0 and 3e0 too), as JSON Schema has it; [Decode] reads it as one. Properties that the schema does not name are allowed unless it says additionalProperties false.
// Integers beyond 64 bits are compared with bounds as float64; the arguments themselves keep their text.
func (s *Schema) Validate(arguments conversation.JSON) error {
	d, err := parse(arguments)
	if err != nil {
		return &ArgumentsError{Problems: []string{"the arguments are " + err.Error()}}
	}
	if d.kind != '{' {
		return &ArgumentsError{Problems: []string{"the arguments must be a JSON object, not " + describe(d)}}
	}
	v, ok := d.value()
	if !ok {
		return &ArgumentsError{Problems: []string{"the arguments hold a number beyond the range of a 64-bit float"}}
	}
	err = s.resolved.Validate(v)
	if err == nil {
		return nil
	}
	if problems := s.explain("", d, s.root, nil); len(problems) > 0 {
		return &ArgumentsError{Problems: problems}
	}
	return &ArgumentsError{Problems: []string{innermost(err)}}
}

// value converts to what the validator takes. It fails on a number that no float64 holds.
func (d document) value() (any, bool) {
	switch d.kind {
	case '{':
		m := make(map[string]any, len(d.keys))
		for i, key := range d.keys {
			v, ok := d.vals[i].value()
			if !ok {
				return nil, false
			}
			m[key] = v
		}
		return m, true
	case '[':
		list := make([]any, len(d.vals))
		for i := range d.vals {
			v, ok := d.vals[i].value()
			if !ok {
				return nil, false
			}
			list[i] = v
		}
		return list, true
	case '"':
		return d.text()
	case '0':
		if n, err := strconv.ParseInt(d.raw, 10, 64); err == nil {
			return n, true
		}
		f, err := strconv.ParseFloat(d.raw, 64)
		return f, err == nil
	case 'n':
		return nil, true
	}
	return d.kind == 't', true
}

// innermost cuts the validator's account of the way through the schema from its error. Only constraints that explain does not know get here.
func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			return "the arguments do not satisfy the schema: " + text
		}
		err = inner
	}
}
