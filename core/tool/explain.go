package tool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/echoeval/echoeval/core/conversation"
)

// explain names what is wrong with a value that the validator has refused. It knows the constraints that tools use; where it finds nothing the caller falls back to the validator's own error.
// seen holds the references that are being followed for this value.
func (s *Schema) explain(path string, d document, schema *jsonschema.Schema, seen []string) []string {
	var problems []string
	report := func(format string, args ...any) {
		problems = append(problems, subject(path)+fmt.Sprintf(format, args...))
	}
	if schema.Ref != "" {
		if target := s.target(schema.Ref); target != nil && !slices.Contains(seen, schema.Ref) {
			problems = append(problems, s.explain(path, d, target, append(slices.Clip(seen), schema.Ref))...)
		}
	}
	if types := typesOf(schema); len(types) > 0 && !slices.ContainsFunc(types, d.is) {
		report("must be %s, not %s", typeNames(types), describe(d))
		return problems
	}
	if v, ok := d.value(); ok {
		if schema.Enum != nil && !slices.ContainsFunc(schema.Enum, func(e any) bool { return jsonschema.Equal(e, v) }) {
			report("must be one of %s, not %s", choices(schema.Enum), describe(d))
		}
		if schema.Const != nil && !jsonschema.Equal(*schema.Const, v) {
			report("must be %s, not %s", choices([]any{*schema.Const}), describe(d))
		}
	}
	switch d.kind {
	case '0':
		problems = append(problems, explainNumber(path, d, schema)...)
	case '"':
		text, _ := d.text()
		n := utf8.RuneCountInString(text)
		if m := schema.MinLength; m != nil && n < *m {
			report("must have at least %d characters, not %d", *m, n)
		}
		if m := schema.MaxLength; m != nil && n > *m {
			report("must have at most %d characters, not %d", *m, n)
		}
	case '[':
		if m := schema.MinItems; m != nil && len(d.vals) < *m {
			report("must have at least %d items, not %d", *m, len(d.vals))
		}
		if m := schema.MaxItems; m != nil && len(d.vals) > *m {
			report("must have at most %d items, not %d", *m, len(d.vals))
		}
		for i, item := range d.vals {
			switch {
			case i < len(schema.PrefixItems):
				problems = append(problems, s.explain(fmt.Sprintf("%s[%d]", path, i), item, schema.PrefixItems[i], nil)...)
			case schema.Items != nil:
				problems = append(problems, s.explain(fmt.Sprintf("%s[%d]", path, i), item, schema.Items, nil)...)
			}
		}
	case '{':
		problems = append(problems, s.explainObject(path, d, schema)...)
	}
	for _, sub := range schema.AllOf {
		problems = append(problems, s.explain(path, d, sub, seen)...)
	}
	for _, forms := range [][]*jsonschema.Schema{schema.AnyOf, schema.OneOf} {
		if problem := s.explainForms(path, d, forms, seen); problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

func explainNumber(path string, d document, schema *jsonschema.Schema) []string {
	f, err := strconv.ParseFloat(d.raw, 64)
	if err != nil {
		return nil
	}
	var problems []string
	for _, bound := range []struct {
		limit  *float64
		broken func(limit float64) bool
		text   string
	}{
		{schema.Minimum, func(l float64) bool { return f < l }, "at least"},
		{schema.Maximum, func(l float64) bool { return f > l }, "at most"},
		{schema.ExclusiveMinimum, func(l float64) bool { return f <= l }, "above"},
		{schema.ExclusiveMaximum, func(l float64) bool { return f >= l }, "below"},
	} {
		if bound.limit != nil && bound.broken(*bound.limit) {
			problems = append(problems, fmt.Sprintf("%smust be %s %s, not %s", subject(path), bound.text, strconv.FormatFloat(*bound.limit, 'f', -1, 64), describe(d)))
		}
	}
	return problems
}

func (s *Schema) explainObject(path string, d document, schema *jsonschema.Schema) []string {
	var problems []string
	for _, name := range schema.Required {
		if _, ok := d.get(name); !ok {
			problems = append(problems, member(path, name)+" is required and missing")
		}
	}
	for i, name := range d.keys {
		sub, known := schema.Properties[name]
		switch {
		case known:
			problems = append(problems, s.explain(member(path, name), d.vals[i], sub, nil)...)
		case len(schema.PatternProperties) > 0:
			// Which pattern takes the property is left to the validator.
		case forbids(schema.AdditionalProperties):
			problems = append(problems, fmt.Sprintf("%s is unknown; known are %s", member(path, name), listNames(schema)))
		case schema.AdditionalProperties != nil:
			problems = append(problems, s.explain(member(path, name), d.vals[i], schema.AdditionalProperties, nil)...)
		}
	}
	return problems
}

// explainForms explains a value that fits none of several schemas: by their types where no form takes its type, else by the form that comes nearest.
func (s *Schema) explainForms(path string, d document, forms []*jsonschema.Schema, seen []string) string {
	if len(forms) == 0 {
		return ""
	}
	var types []string
	var nearest []string
	typed := false
	for _, form := range forms {
		if ref := s.target(form.Ref); ref != nil && len(typesOf(form)) == 0 {
			types = append(types, typesOf(ref)...)
		}
		types = append(types, typesOf(form)...)
		problems := s.explain(path, d, form, seen)
		if len(problems) == 0 {
			return ""
		}
		if fits := len(typesOf(form)) == 0 || slices.ContainsFunc(typesOf(form), d.is); fits && (!typed || len(problems) < len(nearest)) {
			typed, nearest = true, problems
		}
	}
	if !typed && len(types) > 0 {
		slices.Sort(types)
		return subject(path) + "must be " + typeNames(slices.Compact(types)) + ", not " + describe(d)
	}
	return fmt.Sprintf("%sfits none of its %d forms; nearest: %s", subject(path), len(forms), strings.Join(nearest, ", "))
}

// target follows the references that compile has let through to the definitions where tools keep them. It returns nil for others.
func (s *Schema) target(ref string) *jsonschema.Schema {
	if ref == "#" {
		return s.root
	}
	for prefix, defs := range map[string]map[string]*jsonschema.Schema{"#/$defs/": s.root.Defs, "#/definitions/": s.root.Definitions, "#/properties/": s.root.Properties} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return defs[pointerUnescaper.Replace(name)]
		}
	}
	return nil
}

func typesOf(schema *jsonschema.Schema) []string {
	if schema.Type != "" {
		return []string{schema.Type}
	}
	return schema.Types
}

// is reports whether the value is of a type of JSON Schema.
func (d document) is(t string) bool {
	switch d.kind {
	case '{':
		return t == "object"
	case '[':
		return t == "array"
	case '"':
		return t == "string"
	case 'n':
		return t == "null"
	case 't', 'f':
		return t == "boolean"
	}
	return t == "number" || t == "integer" && isInteger(d.raw)
}

func isInteger(number string) bool {
	if !strings.ContainsAny(number, ".eE") {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && f == float64(int64(f))
}

var articles = map[string]string{"object": "an object", "array": "a list", "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null"}

func typeNames(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t
		if article, ok := articles[t]; ok {
			names[i] = article
		}
	}
	return strings.Join(names, " or ")
}

// describe shows a value, shortened.
func describe(d document) string {
	switch d.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		text, _ := d.text()
		return "the string " + quoteShort(text)
	case '0':
		return "the number " + short(d.raw)
	}
	return d.raw
}

func quoteShort(text string) string { return string(conversation.String(short(text))) }

func short(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

func choices(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			texts[i] = string(conversation.String(v))
		case nil:
			texts[i] = "null"
		case float64:
			texts[i] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(texts, ", ")
}

func forbids(additional *jsonschema.Schema) bool {
	return additional != nil && additional.Not != nil && typesOf(additional.Not) == nil && additional.Not.Ref == "" && additional.Not.Properties == nil && additional.Not.Required == nil
}

func listNames(schema *jsonschema.Schema) string {
	if len(schema.Properties) == 0 {
		return "none"
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func subject(path string) string {
	if path == "" {
		return "the arguments "
	}
	return path + " "
}

// member is the path of a property: a.b, or a["b c"] where the name is no plain word.
func member(path, name string) string {
	plain := name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	switch {
	case !plain:
		return path + "[" + quoteShort(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}
