package tool

import (
	"fmt"
	"slices"
)

// geminiKeywords are those of the schemas that Gemini takes as parameters: a selection of OpenAPI 3.0. $ref is there for the warning that it has already.
var geminiKeywords = []string{
	"type", "format", "description", "nullable", "enum", "properties", "required", "propertyOrdering", "items", "anyOf", "example", "pattern",
	"minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength", "minimum", "maximum", "$ref",
}

// geminiFormats are those that a string may have.
var geminiFormats = []string{"enum", "date-time"}

// fit says a schema in the keywords that Gemini has. What has no place there is left out with the warning "schema-left-out"; what can be said in another way is, without one:
//
//   - a list of types with null in it is one type that is nullable, another list one of several schemas;
//   - null in an enum is nullable, a const of a string an enum of one;
//   - oneOf is anyOf.
func (f *flattener) fit(d document) document {
	out := document{kind: '{'}
	nullable := false
	for i, key := range d.keys {
		v := d.vals[i]
		text, isText := v.text()
		switch {
		case key == "type" && v.kind == '[':
			types := slices.DeleteFunc(slices.Clone(v.vals), func(t document) bool { name, _ := t.text(); return name == "null" })
			nullable = nullable || len(types) < len(v.vals)
			if len(types) == 1 {
				out.set("type", types[0])
			} else if _, taken := d.get("anyOf"); !taken {
				out.set("anyOf", either(types))
			}
		case key == "enum" && v.kind == '[':
			values := slices.DeleteFunc(slices.Clone(v.vals), func(t document) bool { return t.kind == 'n' })
			nullable = nullable || len(values) < len(v.vals)
			if slices.ContainsFunc(values, func(t document) bool { return t.kind != '"' }) {
				f.leftOut("an enum of other values than strings")
			} else if len(values) > 0 {
				out.set("enum", document{kind: '[', vals: values})
			}
		case key == "const" && isText:
			out.set("enum", document{kind: '[', vals: []document{v}})
		case key == "oneOf" && v.kind == '[':
			if _, taken := d.get("anyOf"); taken {
				f.leftOut("oneOf beside anyOf")
			} else {
				out.set("anyOf", v)
			}
		case key == "format" && isText && ofStrings(d) && !slices.Contains(geminiFormats, text):
			f.leftOut("the format " + text)
		case slices.Contains(geminiKeywords, key):
			out.set(key, v)
		default:
			f.leftOut("the keyword " + key)
		}
	}
	if _, said := out.get("nullable"); nullable && !said {
		out.set("nullable", document{kind: 't', raw: "true"})
	}
	return out
}

func (f *flattener) leftOut(what string) {
	f.warn("schema-left-out", fmt.Sprintf("%s was left out of the schema: Gemini has none", what))
}

// either is one schema for each type. Lists get items, which Gemini demands.
func either(types []document) document {
	out := document{kind: '['}
	for _, t := range types {
		out.vals = append(out.vals, bare(document{kind: '{', keys: []string{"type"}, vals: []document{t}}))
	}
	return out
}

func ofStrings(d document) bool {
	t, _ := d.get("type")
	if name, ok := t.text(); ok {
		return name == "string"
	}
	return true
}
