package traces

import (
	"strings"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// stop is what the simulated user of tau-bench says when it is done.
const stop = "###STOP###"

// messages reads a list of messages with roles, as OpenAI's chat API takes them. outer is the record that holds the list, or zero.
func (im *importer) messages(n, outer strict.Node) (conversation, bool) {
	c := conversation{metadata: imports.Map()}
	results := map[string]strict.Node{}
	for _, m := range n.Items() {
		if m.Get("role").Text() == "tool" {
			results[m.Get("tool_call_id").Text()] = m.Get("content")
		}
	}
	for _, m := range n.Items() {
		switch m.Get("role").Text() {
		case "system", "developer":
			if text := textOf(m.Get("content")); len(c.users) == 0 && text != "" {
				c.system = strings.TrimSpace(c.system + "\n\n" + text)
			}
		case "user":
			text, stopped := strings.CutSuffix(strings.TrimRight(textOf(m.Get("content")), " \n"), stop)
			if strings.TrimSpace(text) != "" {
				c.users = append(c.users, strings.TrimSpace(text))
			} else if !stopped {
				im.report.Add(imports.Lost, m.Pos(), "", "a message of the user without text")
			}
		case "assistant":
			if text := textOf(m.Get("content")); text != "" {
				c.answer = text
			}
			for _, t := range m.Get("tool_calls").Items() {
				f := t.Get("function")
				if name := f.Get("name").Text(); name != "" {
					c.calls = append(c.calls, call{name, im.arguments(f.Get("arguments")), result(results[t.Get("id").Text()])})
				}
			}
		case "tool":
		default:
			im.report.Add(imports.Lost, m.Pos(), "", "a message of an unknown role")
		}
	}
	if len(c.users) == 0 {
		im.report.Add(imports.Lost, n.Pos(), "", "a conversation in which the user says nothing")
		return c, false
	}
	if id := outer.Get("id").Text(); id != "" {
		c.id = imports.Slug(id, 60)
	}
	return c, true
}

// arguments reads the arguments of a call: a mapping, or JSON in a text.
func (im *importer) arguments(n strict.Node) strict.Node {
	if n.Kind() == strict.String {
		inner, err := strict.ParseJSON(n.Pos().File, max(n.Pos().Line, 1), []byte(n.Text()))
		if err != nil || inner.Kind() != strict.Mapping {
			if strings.TrimSpace(n.Text()) != "" {
				im.report.Add(imports.Lost, n.Pos(), "the check asks for the call alone", "arguments of a call that are no JSON object")
			}
			return strict.Node{}
		}
		return inner
	}
	if n.Kind() == strict.Mapping {
		return n
	}
	return strict.Node{}
}

// result is what a tool gave: a structured value where its text is JSON.
func result(n strict.Node) strict.Node {
	if n.IsNull() {
		return strict.NewString("")
	}
	if n.Kind() == strict.String {
		if inner, err := strict.ParseJSON("", 1, []byte(n.Text())); err == nil && (inner.Kind() == strict.Mapping || inner.Kind() == strict.Sequence) {
			return inner
		}
	}
	return n
}

// textOf is the text of a message: a string, or the texts of its parts.
func textOf(n strict.Node) string {
	switch n.Kind() {
	case strict.String:
		return n.Text()
	case strict.Mapping:
		for _, key := range []string{"text", "content", "value"} {
			if text := textOf(n.Get(key)); text != "" {
				return text
			}
		}
	case strict.Sequence:
		var texts []string
		for _, part := range n.Items() {
			if text := textOf(part); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}
