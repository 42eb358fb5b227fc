package emulator

import (
	"fmt"
	"strings"
)

// template is a text of a script with the places that are filled from the request.
type template struct {
	parts []part
	fixed bool // nothing is filled in
	text  string
}

type part struct {
	literal string
	fill    fill
	tool    string // of fillToolResult
}

type fill uint8

const (
	fillNothing fill = iota
	fillLastToolResult
	fillLastUser
	fillToolResult
)

// parseTemplate reads the placeholders of a text; see the package's documentation for them.
func parseTemplate(text string) (template, error) {
	if !strings.Contains(text, "{{") {
		return template{fixed: true, text: text}, nil
	}
	t := template{fixed: true}
	var literal strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, "{{")
		if !found {
			literal.WriteString(rest)
			break
		}
		if plain, escaped := strings.CutSuffix(before, `\`); escaped {
			literal.WriteString(plain + "{{")
			rest = after
			continue
		}
		literal.WriteString(before)
		inside, after, closed := strings.Cut(after, "}}")
		if !closed {
			return template{}, fmt.Errorf("a placeholder is not closed: %q", shorten("{{"+inside, 40))
		}
		p, err := parsePlaceholder(strings.TrimSpace(inside))
		if err != nil {
			return template{}, err
		}
		t.parts = append(t.parts, part{literal: literal.String()}, p)
		literal.Reset()
		t.fixed = false
		rest = after
	}
	t.parts = append(t.parts, part{literal: literal.String()})
	if t.fixed {
		t.text, t.parts = literal.String(), nil
	}
	return t, nil
}

func parsePlaceholder(inside string) (part, error) {
	name, argument, _ := strings.Cut(inside, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case name == "last_tool_result" && argument == "":
		return part{fill: fillLastToolResult}, nil
	case name == "last_user" && argument == "":
		return part{fill: fillLastUser}, nil
	case name == "tool_result" && len(argument) > 2 && argument[0] == '"' && argument[len(argument)-1] == '"':
		return part{fill: fillToolResult, tool: argument[1 : len(argument)-1]}, nil
	}
	return part{}, fmt.Errorf(`unknown placeholder %q: there are {{last_user}}, {{last_tool_result}} and {{tool_result "NAME"}}; \{{ is text`, shorten(inside, 40))
}

// render fills the template from the conversation so far. It fails where the conversation has no such tool result: an answer made of nothing would hide a mistake in the script.
func (t template) render(q *query) (string, error) {
	if t.fixed {
		return t.text, nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		switch p.fill {
		case fillNothing:
			b.WriteString(p.literal)
		case fillLastUser:
			if q.lastUser < 0 {
				return "", fmt.Errorf("{{last_user}} is not there: the request has no user message")
			}
			b.WriteString(q.turns[q.lastUser].text)
		default:
			result, ok := q.toolResult(p.tool)
			if !ok && p.tool == "" {
				return "", fmt.Errorf("{{last_tool_result}} is not there: the request has no tool result")
			}
			if !ok {
				return "", fmt.Errorf("{{tool_result %q}} is not there: no tool of that name has a result in the request", p.tool)
			}
			b.WriteString(result)
		}
	}
	return b.String(), nil
}

// shorten cuts a text to at most limit characters for a message.
func shorten(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
