package promptfoo

import (
	"regexp"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
)

// template is a Nunjucks text, taken apart. Only literal text and plain names can be written as templates of a dataset.
type template struct {
	pieces []piece
	// problem says what the text holds that a dataset's template cannot do; "" for nothing. at is the byte where that stands.
	problem string
	at      int
}

// piece is literal text, or a name.
type piece struct {
	text string
	name string
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*$`)
	rawEnd    = regexp.MustCompile(`\{%-?\s*endraw\s*-?%\}`)
)

// parseTemplate takes a text apart as Nunjucks does: {{ expression }}, {% block %}, {# comment #}, with - inside for the white space around. What is not closed is literal.
func parseTemplate(text string) template {
	var t template
	rest := text
	trim := false
	literal := func(s string) {
		if trim {
			s = strings.TrimLeft(s, " \t\r\n")
			trim = s == ""
		}
		if s == "" {
			return
		}
		if n := len(t.pieces); n > 0 && t.pieces[n-1].name == "" {
			t.pieces[n-1].text += s
			return
		}
		t.pieces = append(t.pieces, piece{text: s})
	}
	trimBefore := func() {
		if n := len(t.pieces); n > 0 && t.pieces[n-1].name == "" {
			t.pieces[n-1].text = strings.TrimRight(t.pieces[n-1].text, " \t\r\n")
		}
	}
	fail := func(at int, what, shown string) {
		if t.problem == "" {
			t.problem, t.at = what, at
		}
		literal(shown)
	}
	for rest != "" {
		i := strings.Index(rest, "{")
		if i < 0 || i+1 >= len(rest) {
			literal(rest)
			break
		}
		closing, ok := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[rest[i+1]]
		if !ok {
			literal(rest[:i+1])
			rest = rest[i+1:]
			continue
		}
		literal(rest[:i])
		at := len(text) - len(rest) + i
		inner, after, closed := strings.Cut(rest[i+2:], closing)
		if !closed {
			literal(rest[i:])
			break
		}
		whole := rest[i : len(rest)-len(after)]
		rest = after
		if strings.HasPrefix(inner, "-") {
			trimBefore()
			inner = inner[1:]
		}
		trimAfter := strings.HasSuffix(inner, "-")
		inner = strings.TrimSpace(strings.TrimSuffix(inner, "-"))
		switch closing {
		case "#}":
		case "}}":
			if plainName.MatchString(inner) && !strings.HasPrefix(inner, "env.") && inner != "_conversation" {
				t.pieces = append(t.pieces, piece{name: inner})
				trim = false
				break
			}
			fail(at, expressionProblem(inner), whole)
		case "%}":
			if inner == "raw" {
				if end := rawEnd.FindStringIndex(rest); end != nil {
					literal(rest[:end[0]])
					rest = rest[end[1]:]
					break
				}
			}
			word, _, _ := strings.Cut(inner, " ")
			fail(at, "the block {% "+word+" %}", whole)
		}
		if trimAfter {
			trim = true
		}
	}
	for i, p := range t.pieces {
		if p.name == "" || i == 0 || t.problem != "" {
			continue
		}
		switch before := t.pieces[i-1].text; {
		case strings.HasSuffix(before, `\`):
			t.problem = "a backslash before {{"
		case strings.HasSuffix(before, "{"):
			t.problem = "a brace before {{"
		}
	}
	return t
}

func expressionProblem(inner string) string {
	switch {
	case strings.HasPrefix(inner, "env."):
		return "a variable of the environment"
	case inner == "_conversation":
		return "the conversation so far"
	case strings.Contains(inner, "|"):
		_, filter, _ := strings.Cut(inner, "|")
		filter = strings.TrimSpace(filter)
		if i := strings.IndexFunc(filter, func(r rune) bool { return r == '(' || r == '|' || r == ' ' }); i > 0 {
			filter = filter[:i]
		}
		return "the filter " + filter
	case strings.ContainsAny(inner, "["):
		return "an index into a list"
	case strings.Contains(inner, "("):
		return "a call of a function"
	}
	return "an expression"
}

// names are the variables of the template, in order, each once.
func (t template) names() []string {
	var names []string
	seen := map[string]bool{}
	for _, p := range t.pieces {
		if p.name != "" && !seen[p.name] {
			seen[p.name] = true
			names = append(names, p.name)
		}
	}
	return names
}

// plain reports whether there is nothing to render.
func (t template) plain() bool { return t.problem == "" && len(t.names()) == 0 }

// ours writes the template as a dataset does.
func (t template) ours() string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.name == "" {
			b.WriteString(strings.ReplaceAll(p.text, "{{", `\{{`))
			continue
		}
		b.WriteString("{{" + p.name + "}}")
	}
	return b.String()
}

// render fills the template in. What is not defined is empty, as promptfoo has it.
func (t template) render(lookup func(name string) (string, bool)) string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		value, _ := lookup(p.name)
		b.WriteString(value)
	}
	return b.String()
}

// isTemplate reports whether Nunjucks would change a text.
func isTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") || strings.Contains(text, "{#")
}

// follow walks from a variable along a dotted name.
func follow(vars map[string]strict.Node, name string) strict.Node {
	steps := strings.Split(name, ".")
	n := vars[steps[0]]
	for _, step := range steps[1:] {
		n = n.Get(step)
	}
	return n
}

// shown is how a value appears inside a text.
func shown(n strict.Node) string {
	switch n.Kind() {
	case strict.Sequence, strict.Mapping:
		return n.JSON()
	case strict.Null:
		return ""
	}
	return n.Text()
}
