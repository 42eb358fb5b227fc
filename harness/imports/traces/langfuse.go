package traces

import (
	"cmp"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// datasetItem reads an item of a data set of Langfuse.
func (im *importer) datasetItem(n strict.Node) (conversation, bool) {
	c := conversation{id: imports.Slug(n.Get("id").Text(), 60), metadata: imports.Map()}
	question, system := asked(decoded(n.Get("input")))
	if question == "" {
		im.report.Add(imports.Lost, n.Pos(), "", "an item whose input holds no text of a user")
		return c, false
	}
	c.users, c.system = []string{question}, system
	c.answer = said(decoded(n.Get("expectedOutput")))
	if m := decoded(n.Get("metadata")); m.Kind() == strict.Mapping {
		c.metadata = imports.Of(m)
	}
	return c, true
}

// langfuse reads the export of a trace of Langfuse: the trace and its observations, in whatever order, whose inputs and outputs may be JSON in texts, more than once.
func (im *importer) langfuse(n strict.Node) (conversation, bool) {
	t := n.Get("trace")
	if t.IsZero() {
		t = n
	}
	c := conversation{metadata: imports.Map()}
	c.parallel = true
	c.id = imports.Slug(t.Get("name").Text(), 40)
	if id := t.Get("id").Text(); len(id) >= 8 {
		c.id = strings.TrimPrefix(c.id+"-"+imports.Slug(id[:8], 8), "-")
	}
	var observations []strict.Node
	for _, o := range n.Get("observations").Items() {
		observations = append(observations, o)
	}
	slices.SortStableFunc(observations, func(a, b strict.Node) int {
		return cmp.Compare(a.Get("startTime").Text(), b.Get("startTime").Text())
	})
	question := plainText(decoded(t.Get("input")))
	system := ""
	for _, o := range observations {
		if o.Get("type").Text() != "GENERATION" {
			continue
		}
		q, s := asked(decoded(o.Get("input")))
		if q == "" {
			continue
		}
		if question == "" {
			question = q
		}
		system = s
		break
	}
	for _, o := range slices.Concat([]strict.Node{t}, observations) {
		if question != "" {
			break
		}
		question, _ = asked(decoded(o.Get("input")))
	}
	if question == "" {
		im.report.Add(imports.Lost, t.Pos(), "", "a trace without a text of the user")
		return c, false
	}
	c.users, c.system = []string{question}, system
	c.answer = said(decoded(t.Get("output")))
	if c.answer == "" {
		for _, o := range slices.Backward(observations) {
			if o.Get("type").Text() == "GENERATION" {
				if c.answer = said(decoded(o.Get("output"))); c.answer != "" {
					break
				}
			}
		}
	}
	for _, o := range observations {
		if name, ok := toolName(o); ok {
			c.calls = append(c.calls, call{name: name, args: im.arguments(decoded(o.Get("input"))), result: result(decoded(o.Get("output")))})
		}
	}
	for _, v := range t.Get("tags").Items() {
		if word := tag(v.Text()); word != "" {
			c.tags = append(c.tags, word)
		}
	}
	for _, key := range []string{"id", "name", "sessionId", "environment", "version"} {
		if v := t.Get(key); v.Kind() == strict.String && v.Text() != "" {
			c.metadata.Set(key, imports.Of(v))
		}
	}
	if t.Get("scores").Len() > 0 {
		im.report.Add(imports.Lost, t.KeyPos("scores"), "they judge the answer of that time", "the scores of a trace")
	}
	return c, true
}

// toolName tells an observation of a tool, by its type or by the name that frameworks give it.
func toolName(o strict.Node) (string, bool) {
	name := o.Get("name").Text()
	for _, prefix := range []string{"running tool: ", "execute_tool ", "tool."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
			return rest, rest != ""
		}
	}
	return name, o.Get("type").Text() == "TOOL" && name != ""
}

// decoded takes JSON out of texts, up to four times.
func decoded(n strict.Node) strict.Node {
	for range 4 {
		text := strings.TrimSpace(n.Text())
		if n.Kind() != strict.String || text == "" || !strings.ContainsAny(text[:1], `{["`) {
			return n
		}
		inner, err := strict.ParseJSON(n.Pos().File, max(n.Pos().Line, 1), []byte(text))
		if err != nil || inner.IsZero() {
			return n
		}
		n = inner
	}
	return n
}

// plainText is a text that people wrote, and "" for a structure or the printed form of an object.
func plainText(n strict.Node) string {
	if n.Kind() != strict.String || strings.HasPrefix(n.Text(), "{") || strings.HasPrefix(n.Text(), "[") || strings.HasPrefix(n.Text(), "<") {
		return ""
	}
	return n.Text()
}

// asked finds what the user asked first, and the system's text, in what a model or a function was given.
func asked(n strict.Node) (question, system string) {
	switch n.Kind() {
	case strict.String:
		return transcript(n.Text())
	case strict.Sequence:
		for _, m := range n.Items() {
			role := m.Get("role").Text()
			text := content(m)
			switch {
			case role == "system" || role == "developer":
				if question == "" && text != "" {
					system = strings.TrimSpace(system + "\n\n" + text)
				}
			case role == "user" && question == "":
				question = text
			}
		}
		if question == "" && n.Len() == 1 && n.Index(0).Kind() == strict.String {
			question = plainText(n.Index(0))
		}
		return question, system
	case strict.Mapping:
		for _, key := range []string{"messages", "contents", "input", "prompt", "question", "query", "text", "content", "args"} {
			if v := n.Get(key); !v.IsZero() {
				if q, s := asked(decoded(v)); q != "" {
					return q, s
				}
			}
		}
	}
	return "", ""
}

// content is the text of a message, whose parts may stand under content, parts or text.
func content(m strict.Node) string {
	for _, key := range []string{"content", "parts", "text"} {
		if text := textOf(decoded(m.Get(key))); text != "" {
			return text
		}
	}
	return ""
}

// transcript reads a conversation that is written as lines of "role: text"; a text without them is what the user said.
func transcript(text string) (question, system string) {
	roles := []string{"system", "developer", "user", "assistant", "tool"}
	role := ""
	parts := map[string]string{}
	found := false
	for line := range strings.Lines(text) {
		if head, rest, ok := strings.Cut(line, ": "); ok && slices.Contains(roles, head) {
			if role == "user" {
				break // the first message of the user has ended
			}
			role, line, found = head, rest, true
		}
		parts[role] += line
	}
	if !found {
		return plainText(strict.NewString(text)), ""
	}
	return strings.TrimSpace(parts["user"]), strings.TrimSpace(parts["system"] + parts["developer"])
}

// said finds the text of an answer.
func said(n strict.Node) string {
	switch n.Kind() {
	case strict.String:
		return plainText(n)
	case strict.Sequence:
		for _, m := range slices.Backward(slices.Collect(values(n))) {
			if text := said(m); text != "" {
				return text
			}
		}
	case strict.Mapping:
		if role := n.Get("role").Text(); role != "" {
			if role == "assistant" || role == "model" {
				return content(n)
			}
			return ""
		}
		for _, key := range []string{"content", "output_text", "text"} {
			if text := plainText(n.Get(key)); text != "" {
				return text
			}
		}
	}
	return ""
}

func values(n strict.Node) func(yield func(strict.Node) bool) {
	return func(yield func(strict.Node) bool) {
		for _, item := range n.Items() {
			if !yield(item) {
				return
			}
		}
	}
}
