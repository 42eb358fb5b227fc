package strict

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema is a JSON Schema (draft 2020-12) as plain values. Written as JSON it has its keys in alphabetical order.
type Schema = map[string]any

// Schemas makes JSON Schemas from the types that [Decode] fills, so that what an editor checks and what a program accepts have one origin. The zero value is ready for use.
type Schemas struct {
	// Types are the schemas of types that decode themselves, and of those that want another schema than their type says.
	Types map[reflect.Type]func() Schema
	// Named are the schemas of fields with a tag `schema:"name"`, such as those of type [Node] that hold more than any value.
	Named map[string]func() Schema
	// Written says that the schemas are of what is written as JSON: keys are named by the tag json, all of them are there unless they may be left out when empty, and readers take further ones.
	Written bool

	defs map[string]any
}

// Dialect is the URI of the draft.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// Root returns a whole schema of a type, with its definitions.
func (s *Schemas) Root(of any, title string) Schema {
	schema := maps.Clone(s.Of(reflect.TypeOf(of)))
	schema["$schema"] = Dialect
	schema["title"] = title
	if len(s.defs) > 0 {
		schema["$defs"] = s.defs
	}
	return schema
}

// Define keeps a schema under a name and returns a reference to it.
func (s *Schemas) Define(name string, make func() Schema) Schema {
	if _, done := s.defs[name]; !done {
		if s.defs == nil {
			s.defs = map[string]any{}
		}
		s.defs[name] = nil // a reference from within is to this one
		s.defs[name] = make()
	}
	return Schema{"$ref": "#/$defs/" + name}
}

// Of returns the schema of a type that [Decode] takes.
func (s *Schemas) Of(t reflect.Type) Schema {
	if f, ok := s.Types[t]; ok {
		return f()
	}
	switch {
	case t == nodeType:
		return Schema{}
	case t == durationType:
		return Schema{"type": "string", "pattern": `^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`, "description": "a number and a unit: 60s, 1m30s, 500ms"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return OrNull(s.Of(t.Elem()))
	case reflect.Struct:
		return s.Object(t)
	case reflect.Slice:
		return Schema{"type": "array", "items": s.Of(t.Elem())}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": s.Of(t.Elem())}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Interface:
		return Schema{}
	default:
		return Schema{"type": "integer"}
	}
}

// OrNull returns a schema that takes null too.
func OrNull(schema Schema) Schema {
	if _, any := schema["type"]; !any && schema["$ref"] == nil && schema["anyOf"] == nil && schema["enum"] == nil && schema["oneOf"] == nil {
		return schema
	}
	return Schema{"anyOf": []any{schema, Schema{"type": "null"}}}
}

// Object returns the schema of a struct type, whatever Types says of it: a type that holds itself is defined by it.
func (s *Schemas) Object(t reflect.Type) Schema {
	properties := Schema{}
	var required []string
	fields := fieldsOf
	if s.Written {
		fields = writtenFields
	}
	for _, f := range fields(t) {
		of := maps.Clone(s.field(t, f))
		if f.values != nil {
			of = Enum(f.values...)
			if t.FieldByIndex(f.index).Type.Kind() == reflect.Pointer {
				of = OrNull(of)
			}
		}
		if f.doc != "" {
			of["description"] = f.doc
		}
		properties[f.name] = of
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := Schema{"type": "object", "properties": properties}
	if !s.Written {
		schema["additionalProperties"] = false
	}
	if required != nil {
		slices.Sort(required)
		schema["required"] = anySlice(required)
	}
	return schema
}

// writtenFields are the keys of a struct as it is written as JSON.
func writtenFields(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			for _, inner := range writtenFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case name != "" && name != "-":
			fields = append(fields, field{name: name, index: f.Index, required: !strings.Contains(options, "omit"), doc: f.Tag.Get("doc")})
		}
	}
	return fields
}

func (s *Schemas) field(t reflect.Type, f field) Schema {
	if named, ok := s.Named[f.schema]; ok && f.schema != "" {
		return named()
	}
	return s.Of(t.FieldByIndex(f.index).Type)
}

// Enum returns the schema of one of several strings.
func Enum(values ...string) Schema { return Schema{"enum": anySlice(values)} }

// AnyOf returns the schema of what one of several schemas takes.
func AnyOf(of ...Schema) Schema {
	list := make([]any, len(of))
	for i, schema := range of {
		list[i] = schema
	}
	return Schema{"anyOf": list}
}

func anySlice(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
