package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/tool"
)

// distinct is the length in characters from which a hidden text cannot occur by chance and is looked for inside other text.
const distinct = 8

// needle is one scalar inside a hidden value.
type needle struct {
	name string // the key in tool_context, with the keys inside its value
	text string // a string's characters, or the JSON text of a number or boolean
	// weak needles are texts too short, numbers and booleans: they count as whole JSON values only.
	weak   bool
	string bool
}

// needles takes the hidden values apart, sorted by name. Empty texts and null are nothing that could leak.
func needles(hidden conversation.Hidden) []needle {
	var list []needle
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		walk(string(hidden[name]), name, func(path, key string, v jsontext.Value) {
			n := needle{name: path}
			switch v.Kind() {
			case '"':
				n.string = true
				n.text = unquote(v)
				n.weak = utf8.RuneCountInString(strings.TrimSpace(n.text)) < distinct
			case '0', 't', 'f':
				n.text, n.weak = string(v), true
			}
			if strings.TrimSpace(n.text) == "" {
				return
			}
			list = append(list, n)
			if n.string && !n.weak {
				for _, form := range secret.URLForms(n.text) {
					list = append(list, needle{name: path, text: form, string: true})
				}
			}
		})
	}
	return list
}

// Weak returns the names of hidden values, or of parts of them ("user.age"), that are too short, or are numbers or booleans, so that a leak of them cannot be told from chance. Reports warn of them.
func Weak(hidden conversation.Hidden) []string {
	var names []string
	for _, n := range needles(hidden) {
		if n.weak && !slices.Contains(names, n.name) {
			names = append(names, n.name)
		}
	}
	return names
}

func unquote(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b)
}

// walk visits the scalars of a JSON text, each with its path and the key that it stands under ("" in a list or alone). It ends quietly where the text is no JSON.
func walk(text, path string, visit func(path, key string, v jsontext.Value)) {
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var value func(path, key string) bool
	value = func(path, key string) bool {
		switch dec.PeekKind() {
		case '{', '[':
			open, err := dec.ReadToken()
			if err != nil {
				return false
			}
			for k := dec.PeekKind(); k != '}' && k != ']'; k = dec.PeekKind() {
				inner, name := path, ""
				if open.Kind() == '{' {
					token, err := dec.ReadToken()
					if err != nil {
						return false
					}
					name = token.String()
					inner += "." + name
				}
				if !value(inner, name) {
					return false
				}
			}
			_, err = dec.ReadToken()
			return err == nil
		default:
			v, err := dec.ReadValue()
			if err != nil {
				return false
			}
			visit(path, key, v)
			return true
		}
	}
	value(path, "")
}

func noHidden(v *view, _ params) (o outcome) {
	names := slices.Sorted(maps.Keys(v.hidden))
	if v.start != nil {
		for _, name := range v.start.Start.Hidden {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return o
	}
	list := needles(v.hidden)
	for _, t := range v.texts {
		o.looked = o.looked || len(list) > 0
		o.search(t, list)
	}
	var tools []tool.Spec
	for i := range v.events {
		e := &v.events[i]
		switch {
		case e.Request != nil:
			if slices.Equal(tools, e.Request.Tools) {
				continue
			}
			tools = e.Request.Tools
			for j := range tools {
				o.schema(&tools[j], e.N, names)
				o.search(text{text: tools[j].Description, kind: inDescription, event: e.N, tool: tools[j].Name}, list)
				o.search(text{text: string(tools[j].Parameters), kind: inSchema, event: e.N, tool: tools[j].Name}, list)
			}
		case e.Exchange != nil:
			o.looked = true // the transport has compared the request with the values
			for _, name := range e.Exchange.Leaks {
				f := finding{events: []int{e.N}, evidence: fmt.Sprintf("the value of %s stood in the request of step %d to %s", name, e.Step, clip(e.Exchange.URL, 100))}
				if v.hidden != nil && !slices.ContainsFunc(list, func(n needle) bool { return !n.weak && root(n.name) == root(name) }) {
					f.severity = eval.SeverityWarn
				}
				o.find(f)
			}
		}
	}
	return o
}

func root(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return name
}

// search looks for hidden values in a text.
func (o *outcome) search(t text, list []needle) {
	if len(list) == 0 {
		return
	}
	leaked := false
	for layer := range secret.Layers(t.text) {
		for _, n := range list {
			if !n.weak && strings.Contains(layer.Text, n.text) {
				leaked = true
				o.find(finding{events: []int{t.event}, evidence: fmt.Sprintf("the value of %s stands in %s", n.name, t)})
			}
		}
		if leaked {
			break // unescaped, the same text would show the same again
		}
	}
	// Keywords of a schema and words of a prompt are no values.
	if t.kind == inSchema || t.kind == inDescription || t.kind == inSystem {
		return
	}
	for _, n := range list {
		if n.weak && whole(t.text, t.kind.json(), n, 0) {
			o.find(finding{severity: eval.SeverityWarn, events: []int{t.event}, evidence: fmt.Sprintf("the value of %s, too short or too common to be sure, is a whole value in %s", n.name, t)})
		}
	}
}

// whole reports whether a text is the value of a needle, or is JSON with a value that is, or with a string that again is such JSON.
func whole(s string, json bool, n needle, depth int) bool {
	const maxDepth = 3
	s = strings.TrimSpace(s)
	if !json && s == n.text && (n.string || depth == 0) {
		return true
	}
	if depth > maxDepth || s == "" {
		return false
	}
	if !json && s[0] != '{' && s[0] != '[' {
		return false
	}
	if !strings.Contains(s, n.text) && strings.IndexByte(s, '\\') < 0 {
		return false
	}
	found := false
	walk(s, "", func(_, _ string, v jsontext.Value) {
		switch {
		case found:
		case v.Kind() != '"':
			found = !n.string && string(v) == n.text
		default:
			found = whole(unquote(v), false, n, depth+1)
		}
	})
	return found
}

// schema looks for properties that bear a hidden name, at any depth.
func (o *outcome) schema(t *tool.Spec, event int, names []string) {
	o.looked = true
	for _, name := range names {
		if !strings.Contains(string(t.Parameters), name) && !strings.Contains(string(t.Parameters), `\`) {
			continue
		}
		if hasProperty(t.Parameters, name) {
			o.find(finding{events: []int{event}, evidence: fmt.Sprintf("the schema of tool %s has a property %s, which is hidden", quote(t.Name), quote(name))})
		}
	}
}

func hasProperty(schema conversation.JSON, name string) bool {
	dec := jsontext.NewDecoder(strings.NewReader(string(schema)))
	var value func(properties bool) (found, ok bool)
	value = func(properties bool) (found, ok bool) {
		kind := dec.PeekKind()
		if kind != '{' && kind != '[' {
			return false, dec.SkipValue() == nil
		}
		if _, err := dec.ReadToken(); err != nil {
			return false, false
		}
		for k := dec.PeekKind(); k != '}' && k != ']'; k = dec.PeekKind() {
			inner := false
			if kind == '{' {
				token, err := dec.ReadToken()
				if err != nil {
					return false, false
				}
				key := token.String()
				if properties && key == name {
					return true, true
				}
				inner = !properties && key == "properties"
			}
			if found, ok = value(inner); found || !ok {
				return found, ok
			}
		}
		_, err := dec.ReadToken()
		return false, err == nil
	}
	found, _ := value(false)
	return found
}
