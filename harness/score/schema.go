package score

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/echoeval/echoeval/core/strict"
)

// drafts are the values of $schema that can be judged by.
var drafts = []string{"", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#"}

// resolve compiles a schema, references within it included; references elsewhere are refused.
func resolve(n strict.Node, a at) *jsonschema.Resolved {
	if n.Len() == 0 {
		a.bad(n, "state what the answer must be, or use json", "an empty schema accepts everything")
		return nil
	}
	before := a.Len()
	s := &schemaCheck{root: n, state: map[string]int{}}
	s.walk("", n, a)
	if draft := n.Get("$schema"); draft.Kind() == strict.String && !slices.Contains(drafts, draft.Text()) {
		a.key("$schema").bad(draft, "drafts 2020-12 and 07 are known", "unknown draft %q", draft.Text())
	}
	if a.Len() > before {
		return nil
	}
	var schema jsonschema.Schema
	err := schema.UnmarshalJSON([]byte(n.JSON()))
	var resolved *jsonschema.Resolved
	if err == nil {
		resolved, err = schema.Resolve(nil)
	}
	if err != nil {
		a.bad(n, "references must lie within the schema", "bad schema: %s", err)
	}
	return resolved
}

// The keywords of JSON Schema 2020-12 and draft 07 by what stands under them.
var (
	plainKeywords = []string{
		"$id", "$schema", "$ref", "$comment", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples",
		"type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "format",
		"minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties", "required", "dependentRequired", "contentEncoding", "contentMediaType",
	}
	schemaKeywords  = []string{"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contentSchema"}
	namedKeywords   = []string{"$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"}
	inPlaceKeywords = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
	allKeywords     = slices.Concat(plainKeywords, schemaKeywords, namedKeywords)
)

// schemaCheck looks at a schema before the validator does, which ignores what it does not know and follows references without end.
type schemaCheck struct {
	root  strict.Node
	state map[string]int
}

// walk checks a schema at a JSON pointer and all within it.
func (s *schemaCheck) walk(path string, n strict.Node, a at) {
	for key, value := range n.Fields() {
		under := a.key(key.Name)
		switch {
		case slices.Contains(schemaKeywords, key.Name), slices.Contains(namedKeywords, key.Name):
		case key.Name == "type":
			types(value, under)
			for i, item := range value.Items() {
				types(item, under.index(i))
			}
		case key.Name == "$ref":
			s.ref(value, under)
		case key.Name == "$id" && path != "", key.Name == "$dynamicRef", key.Name == "$dynamicAnchor":
			a.Add(key.Pos(), "use $ref with # or #/...", "%s is not supported here", key.Name)
		case strings.HasPrefix(key.Name, "x-"), slices.Contains(plainKeywords, key.Name):
		default:
			a.Add(key.Pos(), suggestion(key.Name), "JSON Schema has no keyword %q", key.Name)
		}
	}
	subschemas(n, func(keys []string, inner strict.Node, _ bool) {
		under, at := a, path
		for i, key := range keys {
			at += "/" + escapePointer(key)
			if index, err := strconv.Atoi(key); err == nil && i > 0 && slices.Contains(schemaKeywords, keys[0]) {
				under = under.index(index)
				continue
			}
			under = under.key(key)
		}
		s.walk(at, inner, under)
	})
	if !s.ends(path, n) {
		a.bad(n, "refer to itself only by way of a property or an item", "the schema refers to itself without end")
	}
}

// subschemas goes through the schemas directly within one, each with the keys that lead to it and whether it judges the same value (inPlace) and not a part of it.
func subschemas(n strict.Node, visit func(keys []string, inner strict.Node, inPlace bool)) {
	for key, value := range n.Fields() {
		inPlace := slices.Contains(inPlaceKeywords, key.Name)
		switch {
		case slices.Contains(schemaKeywords, key.Name):
			if value.Kind() == strict.Mapping {
				visit([]string{key.Name}, value, inPlace)
			}
			for i, item := range value.Items() {
				if item.Kind() == strict.Mapping {
					visit([]string{key.Name, strconv.Itoa(i)}, item, inPlace)
				}
			}
		case slices.Contains(namedKeywords, key.Name):
			for name, inner := range value.Fields() {
				if inner.Kind() == strict.Mapping {
					visit([]string{key.Name, name.Name}, inner, inPlace)
				}
			}
		}
	}
}

// ref refuses references that leave the schema or name nothing.
func (s *schemaCheck) ref(n strict.Node, a at) {
	switch _, _, ok := s.follow(n.Text()); {
	case n.Kind() != strict.String:
		a.WrongType(n, "a string")
	case n.Text() != "#" && !strings.HasPrefix(n.Text(), "#/"):
		a.bad(n, "write # or #/$defs/name", "reference %q leaves the schema", n.Text())
	case !ok:
		a.bad(n, "", "reference %q names nothing", n.Text())
	}
}

// follow returns what a reference names and its JSON pointer.
func (s *schemaCheck) follow(ref string) (strict.Node, string, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return strict.Node{}, "", false
	}
	// A reference is a URI's fragment: a percent-encoded JSON pointer (RFC 6901, section 6).
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return strict.Node{}, "", false
	}
	n := s.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if n.Kind() == strict.Sequence {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= n.Len() {
				return strict.Node{}, "", false
			}
			n = n.Index(i)
			continue
		}
		if n = n.Get(step); n.IsZero() {
			return strict.Node{}, "", false
		}
	}
	return n, pointer, n.Kind() == strict.Mapping || n.Kind() == strict.Bool
}

const (
	visiting = 1
	visited  = 2
)

// ends reports whether judging one value by the schema comes to an end: no reference leads back to it without going down into the value.
func (s *schemaCheck) ends(path string, n strict.Node) bool {
	switch s.state[path] {
	case visiting:
		return false
	case visited:
		return true
	}
	s.state[path] = visiting
	ok := true
	subschemas(n, func(keys []string, inner strict.Node, inPlace bool) {
		if !inPlace || !ok {
			return
		}
		at := path
		for _, key := range keys {
			at += "/" + escapePointer(key)
		}
		ok = s.ends(at, inner)
	})
	if ref := n.Get("$ref"); ok && ref.Kind() == strict.String {
		if target, at, found := s.follow(ref.Text()); found {
			ok = s.ends(at, target)
		}
	}
	s.state[path] = visited // a cycle is told once
	return ok
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(key string) string { return pointerEscapes.Replace(key) }

// schemaTypes are the values of the keyword type.
var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// types refuses a type that no value has.
func types(n strict.Node, a at) {
	if n.Kind() == strict.String && !slices.Contains(schemaTypes, n.Text()) {
		a.bad(n, strict.Suggest(n.Text(), schemaTypes), "no type %q", n.Text())
	}
}

func suggestion(keyword string) string {
	if near, ok := strict.Nearest(keyword, allKeywords); ok {
		return "did you mean \"" + near + "\"?"
	}
	return "drop it, or begin it with x- if it is an annotation"
}
