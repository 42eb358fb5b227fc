package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
)

// The conversions are pure functions: equal specs give equal bytes. Keys keep their order, numbers their text; white space between tokens is dropped. An error means that Parameters is not JSON, which no tool of a [Registry] can have.

// OpenAISchema returns the tool as chat completions take it: {"type":"function","function":{name, description, parameters}}.
func OpenAISchema(s Spec) (conversation.JSON, error) {
	return s.wrap(`{"type":"function","function":{"name":`, `,"parameters":`, `}}`)
}

// OpenAIResponsesSchema returns the tool as the Responses API takes it: {"type":"function", name, description, parameters, "strict":false}.
func OpenAIResponsesSchema(s Spec) (conversation.JSON, error) {
	return s.wrap(`{"type":"function","name":`, `,"parameters":`, `,"strict":false}`)
}

// AnthropicSchema returns the tool as the Messages API takes it: {name, description, input_schema}.
func AnthropicSchema(s Spec) (conversation.JSON, error) {
	return s.wrap(`{"name":`, `,"input_schema":`, `}`)
}

// BedrockSchema returns the tool as Converse takes it: {"toolSpec":{name, description, "inputSchema":{"json": schema}}}. An empty description is left out, which the service would refuse.
func BedrockSchema(s Spec) (conversation.JSON, error) {
	whole, err := s.wrap(`{"toolSpec":{"name":`, `,"inputSchema":{"json":`, `}}}`)
	if s.Description == "" {
		// A name cannot hold the quotes of this text, so that the first one is the tool's own.
		whole = conversation.JSON(strings.Replace(string(whole), `,"description":""`, "", 1))
	}
	return whole, err
}

func (s Spec) wrap(head, middle, tail string) (conversation.JSON, error) {
	schema, ok := compact.get(s.Parameters)
	if !ok {
		d, err := parse(s.Parameters)
		if err != nil {
			return "", fmt.Errorf("tool %s: the schema is %w", s.Name, err)
		}
		schema = conversation.JSON(d.append(nil))
		compact.put(s.Parameters, schema)
	}
	return s.assemble(head, middle, schema, tail), nil
}

func (s Spec) assemble(head, middle string, schema conversation.JSON, tail string) conversation.JSON {
	dst := append([]byte(nil), head...)
	dst = conversation.AppendString(dst, s.Name)
	dst = append(dst, `,"description":`...)
	dst = conversation.AppendString(dst, s.Description)
	dst = append(dst, middle...)
	dst = append(dst, schema...)
	return conversation.JSON(append(dst, tail...))
}

// geminiDrops are the keywords that Gemini does not take.
var geminiDrops = []string{"$defs", "definitions", "$schema", "$id", "examples", "default", "title", "additionalProperties", "additional_properties"}

// maxInlined bounds the values of a schema once its references are written out. A few definitions that each use the next one twice grow without measure.
const maxInlined = 20_000

// GeminiSchema returns the tool as a function declaration of Gemini: {name, description, parameters}. The schema is flattened: each $ref is replaced by what it names, keys beside it winning over those of the definition; the keywords that Gemini refuses
// (definitions, titles, defaults, examples, additionalProperties) are dropped where they are keywords and kept where they are names of properties; an empty required is dropped.
//
// Beyond that it is said in the keywords that Gemini has, see [flattener.fit]; what has no place among them is left out with the warning "schema-left-out".
//
// A schema that refers to itself has no flat form: at its second appearance on the way down only its type is kept, and a warning "recursive-schema" says so. A reference to nothing stays as it is, with the warning "unresolved-reference".
// A schema of more than 20,000 values once flattened is an error.
func GeminiSchema(s Spec) (conversation.JSON, []Warning, error) {
	root, err := parse(s.Parameters)
	if err != nil {
		return "", nil, fmt.Errorf("tool %s: the schema is %w", s.Name, err)
	}
	f := flattener{root: root}
	flat := f.schema(root, []string{"#"})
	if f.values > maxInlined {
		return "", nil, fmt.Errorf("tool %s: the schema has more than %d values once its references are written out", s.Name, maxInlined)
	}
	for i := range f.warnings {
		f.warnings[i].Text = fmt.Sprintf("tool %s: %s", s.Name, f.warnings[i].Text)
	}
	return s.assemble(`{"name":`, `,"parameters":`, conversation.JSON(flat.append(nil)), `}`), f.warnings, nil
}

type flattener struct {
	root     document
	values   int
	warnings []Warning
}

func (f *flattener) warn(code, text string) {
	w := Warning{Code: code, Text: text}
	if !slices.Contains(f.warnings, w) {
		f.warnings = append(f.warnings, w)
	}
}

// schema flattens one schema. open are the references that are being written out around it; the root is the reference "#".
func (f *flattener) schema(d document, open []string) document {
	f.values++
	if d.kind != '{' || f.values > maxInlined {
		return d
	}
	flat := document{kind: '{'}
	resolved := false
	if v, ok := d.get("$ref"); ok {
		ref, _ := v.text()
		target, found := f.root.resolve(ref)
		switch {
		case !found:
			f.warn("unresolved-reference", fmt.Sprintf("$ref %s names nothing and stays as it is", v.append(nil)))
		case slices.Contains(open, ref):
			resolved = true
			f.warn("recursive-schema", fmt.Sprintf("$ref %s leads back to itself; at its second appearance only its type is kept", v.append(nil)))
			flat = bare(target)
		default:
			resolved = true
			if inlined := f.schema(target, append(slices.Clip(open), ref)); inlined.kind == '{' {
				flat = inlined
			}
		}
	}
	for i, key := range d.keys {
		if slices.Contains(geminiDrops, key) || key == "$ref" && resolved {
			continue
		}
		v := f.keyword(key, d.vals[i], open)
		if before, ok := flat.get(key); ok {
			v = mergeKeyword(key, before, v)
		}
		if key == "required" && v.kind == '[' && len(v.vals) == 0 {
			continue
		}
		flat.set(key, v)
	}
	return f.fit(flat)
}

// bare keeps only the type of a schema. Lists get items, which Gemini demands.
func bare(d document) document {
	t, ok := d.get("type")
	if !ok {
		t = stringDocument("object")
	}
	out := document{kind: '{', keys: []string{"type"}, vals: []document{t}}
	if arrays(d) {
		out.set("items", document{kind: '{', keys: []string{"type"}, vals: []document{stringDocument("object")}})
	}
	return out
}

// keyword flattens the schemas that a keyword holds. Other values, enum and const among them, are data and stay as they are.
func (f *flattener) keyword(key string, v document, open []string) document {
	held := keywords[key].place
	isOne := held == oneSchema && v.kind == '{'
	isList := (held == oneSchema || held == schemaList) && v.kind == '['
	isMap := held == schemaMap && v.kind == '{'
	switch {
	case isOne:
		return f.schema(v, open)
	case isList, isMap:
		out := document{kind: v.kind, keys: v.keys, vals: make([]document, len(v.vals))}
		for i := range v.vals {
			out.vals[i] = f.schema(v.vals[i], open)
		}
		return out
	}
	f.values++
	return v
}

// mergeKeyword joins what a definition and the keys beside its reference say: both apply, so properties and required are united; anything else is taken from beside the reference.
func mergeKeyword(key string, definition, beside document) document {
	switch {
	case key == "properties" && definition.kind == '{' && beside.kind == '{':
		merged := document{kind: '{', keys: slices.Clone(definition.keys), vals: slices.Clone(definition.vals)}
		for i, name := range beside.keys {
			merged.set(name, beside.vals[i])
		}
		return merged
	case key == "required" && definition.kind == '[' && beside.kind == '[':
		merged := document{kind: '[', vals: slices.Clone(definition.vals)}
		for _, v := range beside.vals {
			if !slices.ContainsFunc(merged.vals, func(have document) bool { return have.raw == v.raw }) {
				merged.vals = append(merged.vals, v)
			}
		}
		return merged
	}
	return beside
}

// HiddenNames returns the paths of the properties that bear the name of a value of tool_context, anywhere in the schema, sorted: "user.tenant_id". No tool's schema may have one, as the model would be asked for what it must not see. Parameters that are no JSON have none.
func HiddenNames(parameters conversation.JSON, hidden Hidden) []string {
	root, err := parse(parameters)
	if err != nil {
		return nil
	}
	var found []string
	var walk func(path string, d document)
	walk = func(path string, d document) {
		if d.kind != '{' {
			return
		}
		for i, key := range d.keys {
			v := d.vals[i]
			if (key == "properties" || key == "$defs" || key == "definitions") && v.kind == '{' {
				for j, name := range v.keys {
					at := member(path, name)
					if _, ok := hidden.Get(name); ok && key == "properties" {
						found = append(found, at)
					}
					if key != "properties" {
						at = name
					}
					walk(at, v.vals[j])
				}
			}
		}
		d.subschemas(func(pointer string, _ bool, sub document) {
			switch segment := firstSegment(pointer); segment {
			case "properties", "$defs", "definitions":
			case "items", "prefixItems":
				walk(path+"[]", sub)
			default:
				walk(path, sub)
			}
		})
	}
	walk("", root)
	slices.Sort(found)
	return slices.Compact(found)
}

func firstSegment(pointer string) string {
	segment, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return segment
}
