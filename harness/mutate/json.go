package mutate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

// isJSON reports that a text is a JSON object, list, string, boolean or null.
func isJSON(text string) bool { return jsontext.Value(text).IsValid() }

// leaf is a scalar within a JSON text.
type leaf struct {
	path       string
	key        string // of the object that it stands in at the top, "" elsewhere
	start, end int
	kind       jsontext.Kind
}

// leaves are the strings, numbers and booleans of a JSON text, in order. They end where the text is no JSON.
func leaves(text string) (out []leaf) {
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var value func(path, key string, depth int) bool
	value = func(path, key string, depth int) bool {
		kind := dec.PeekKind()
		if kind != '{' && kind != '[' {
			v, err := dec.ReadValue()
			if err != nil {
				return false
			}
			if end := int(dec.InputOffset()); kind == '"' || kind == '0' || kind == 't' || kind == 'f' {
				out = append(out, leaf{path: path, key: key, start: end - len(v), end: end, kind: kind})
			}
			return true
		}
		if _, err := dec.ReadToken(); err != nil {
			return false
		}
		for i := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; i++ {
			inner, name := fmt.Sprintf("%s[%d]", path, i), ""
			if kind == '{' {
				token, err := dec.ReadToken()
				if err != nil {
					return false
				}
				name = token.String()
				inner = strings.TrimPrefix(path+"."+name, ".")
			}
			if depth > 0 {
				name = ""
			}
			if !value(inner, name, depth+1) {
				return false
			}
		}
		_, err := dec.ReadToken()
		return err == nil
	}
	value("", "", 0)
	return out
}

// edit is a change of one argument.
type edit struct {
	path          string
	before, after string // a string without quotes
	arguments     conversation.JSON
}

// edits are the changes of a call's arguments that leave them right by the tool's schema: one for each scalar that has such a change. What the schema forbids would be noticed by an invariant, whatever the checks are.
func edits(call conversation.ToolCall, spec tool.Spec) []edit {
	if _, err := call.Arguments(); err != nil {
		return nil
	}
	valid := func(conversation.JSON) bool { return true }
	var choices map[string]schemaOf
	if spec.Parameters != "" {
		schema, err := tool.CompileSchema(spec.Parameters)
		if err == nil {
			valid = func(arguments conversation.JSON) bool { return schema.Validate(arguments) == nil }
			choices = properties(spec.Parameters).Properties
		}
	}
	text := string(call.Input)
	var out []edit
	for _, l := range leaves(text) {
		for _, other := range others(text[l.start:l.end], l.kind, choices[l.key]) {
			arguments := conversation.JSON(text[:l.start] + other + text[l.end:])
			if valid(arguments) {
				out = append(out, edit{path: l.path, before: plain(text[l.start:l.end]), after: plain(other), arguments: arguments})
				break
			}
		}
	}
	return out
}

// others are values in the place of a scalar, the best first.
func others(value string, kind jsontext.Kind, schema schemaOf) []string {
	switch kind {
	case 't':
		return []string{"false"}
	case 'f':
		return []string{"true"}
	case '0':
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil
		}
		var out []string
		for _, x := range []float64{n + 1, n - 1, n / 2} {
			out = append(out, strconv.FormatFloat(x, 'f', -1, 64))
		}
		return out
	}
	text := plain(value)
	out := []string{quoted(altered(text))}
	for _, choice := range schema.Enum {
		if choice.Kind() == '"' && plain(string(choice)) != text {
			out = append(out, string(choice))
		}
	}
	return out
}

// altered is another text of the same kind: its last digit counted on, or a letter more before its ending.
func altered(text string) string {
	if i := strings.LastIndexAny(text, "0123456789"); i >= 0 {
		return text[:i] + string('0'+(text[i]-'0'+1)%10) + text[i+1:]
	}
	if i := strings.LastIndexByte(text, '.'); i > 0 && len(text)-i <= 6 && !strings.ContainsAny(text[i:], "/ ") {
		return text[:i] + "x" + text[i:]
	}
	return text + "x"
}

// plain is the text of a JSON string, or the JSON of anything else.
func plain(value string) string {
	if text, err := jsontext.AppendUnquote(nil, value); err == nil && strings.HasPrefix(value, `"`) {
		return string(text)
	}
	return value
}

func quoted(text string) string {
	return string(conversation.AppendString(nil, text))
}

// schemaOf is what is read of a JSON Schema in order to make up values.
type schemaOf struct {
	Type       jsontext.Value      `json:"type"`
	Properties map[string]schemaOf `json:"properties"`
	Required   []string            `json:"required"`
	Enum       []jsontext.Value    `json:"enum"`
	Const      jsontext.Value      `json:"const"`
	Minimum    jsontext.Value      `json:"minimum"`
}

// properties reads a schema; one that cannot be read is empty.
func properties(schema conversation.JSON) schemaOf {
	var out schemaOf
	if err := json.Unmarshal([]byte(schema), &out); err != nil {
		return schemaOf{}
	}
	return out
}

// invented are arguments that a schema allows: what it requires and nothing else. False where none were found.
func invented(parameters conversation.JSON) (conversation.JSON, bool) {
	schema, err := tool.CompileSchema(parameters)
	if err != nil {
		return "", false
	}
	arguments := conversation.JSON(properties(parameters).invent("", 0))
	return arguments, schema.Validate(arguments) == nil
}

// invent is a value of a schema, as its name suggests.
func (s schemaOf) invent(name string, depth int) string {
	const deepest = 8
	switch {
	case len(s.Const) > 0:
		return string(s.Const)
	case len(s.Enum) > 0:
		return string(s.Enum[0])
	case depth > deepest:
		return "null"
	}
	kind := plain(string(s.Type))
	if len(s.Type) > 0 && s.Type.Kind() == '[' {
		var kinds []string
		_ = json.Unmarshal(s.Type, &kinds) // of another shape it is no type
		kind = slices.Concat(kinds, []string{""})[0]
	}
	switch kind {
	case "object":
		var b bytes.Buffer
		for i, key := range s.required() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoted(key) + ":" + s.Properties[key].invent(key, depth+1))
		}
		return "{" + b.String() + "}"
	case "array":
		return "[]"
	case "integer", "number":
		if len(s.Minimum) > 0 {
			return string(s.Minimum)
		}
		return "1"
	case "boolean":
		return "true"
	case "null":
		return "null"
	}
	if strings.HasSuffix(name, "path") || strings.HasSuffix(name, "file") {
		return `"planted.txt"`
	}
	return `"planted"`
}

func (s schemaOf) required() []string {
	names := slices.Clone(s.Required)
	slices.Sort(names)
	return slices.Compact(names)
}

// hiddenText is a scalar of tool_context.
type hiddenText struct{ name, text string }

// hiddenTexts are the scalars of all hidden values, by name.
func hiddenTexts(hidden conversation.Hidden) []hiddenText {
	var out []hiddenText
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		value := string(hidden[name])
		for _, l := range leaves(value) {
			path := name + l.path
			if l.path != "" && !strings.HasPrefix(l.path, "[") {
				path = name + "." + l.path
			}
			if text := plain(value[l.start:l.end]); strings.TrimSpace(text) != "" {
				out = append(out, hiddenText{path, text})
			}
		}
	}
	return out
}
