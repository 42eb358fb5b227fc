package invariant

import (
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/trace"
)

// List gives the catalogue as a table of text: name, severity, blame, whether it is standard (a star), statement.
func List() string {
	width := 0
	for _, e := range catalogue {
		width = max(width, len(e.Name))
	}
	var b strings.Builder
	for _, e := range catalogue {
		star := ' '
		if e.Standard {
			star = '*'
		}
		fmt.Fprintf(&b, "%c %-*s  %-5s  %-7s  %s\n", star, width, e.Name, e.Severity, e.Blame, e.Statement)
	}
	return b.String()
}

// Explain gives what is known of one invariant: its statement, what it looks at, its parameters, a trace that keeps it and one that breaks it with the evidence for that. ok is false where there is none of that name.
func Explain(name string) (text string, ok bool) {
	e := lookup(name)
	if e == nil {
		return "", false
	}
	standard := "not standard"
	if e.Standard {
		standard = "standard"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, severity %s, blames the %s\n\n  %s\n\n", e.Name, standard, e.Severity, e.Blame, e.Statement)
	for _, line := range wrap(e.Notes, 100) {
		b.WriteString("  " + line + "\n")
	}
	if len(e.Params) > 0 {
		b.WriteString("\n  parameters:\n")
	}
	for _, p := range e.Params {
		fmt.Fprintf(&b, "    %s: %s\n", p.Name, p.Doc)
	}
	b.WriteString("\n  keeps it:\n")
	b.WriteString(sketch(e.Keeps()))
	b.WriteString("\n  breaks it:\n")
	broken := e.Breaks()
	b.WriteString(sketch(broken))
	for _, v := range Select(nil, nil, nil).Evaluate(broken).Violations {
		if v.Name == e.Name {
			fmt.Fprintf(&b, "    => events %s: %s\n", strings.Trim(fmt.Sprint(v.Events), "[]"), v.Evidence)
		}
	}
	return b.String(), true
}

// wrap breaks a text into lines of at most width bytes, between words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}

// sketch gives one line for each event, without secrets.
func sketch(t trace.Trace) string {
	b := new(strings.Builder)
	for _, e := range t.Events {
		fmt.Fprintf(b, "    %d %-8s ", e.N, e.Kind)
		switch {
		case e.Start != nil:
			for i, m := range e.Start.Input {
				if i > 0 {
					b.WriteString("; ")
				}
				parts(b, m)
			}
			fmt.Fprintf(b, ", max_iterations %d", e.Start.MaxIterations)
			if len(e.Start.Hidden) > 0 {
				b.WriteString(", tool_context " + strings.Join(e.Start.Hidden, ", "))
			}
		case e.Request != nil:
			b.WriteString("shows " + shown(e.Request.Tools))
		case e.Reply != nil:
			parts(b, e.Reply.Message)
			if u, ok := e.Reply.Message.Usage(); ok {
				fmt.Fprintf(b, ", tokens %d in, %d out", u.InputTokens, u.OutputTokens)
			}
		case e.Tool != nil:
			fmt.Fprintf(b, "%s %s", e.Tool.CallID, e.Tool.Outcome)
			if len(e.Tool.Paths) > 0 {
				b.WriteString(", touched " + strings.Join(e.Tool.Paths, ", "))
			}
		case e.Results != nil:
			parts(b, e.Results.Message)
		case e.End != nil:
			fmt.Fprintf(b, "%s, %d messages, tokens %d in, %d out, done and error events: %d, after the first: %d", e.End.Stop, len(e.End.Context), e.End.Usage.InputTokens, e.End.Usage.OutputTokens, e.End.Terminals, e.End.After)
		}
		b.WriteByte('\n')
	}
	var d secret.Detector
	return d.Redact(b.String())
}

func parts(b *strings.Builder, m conversation.Message) {
	b.WriteString(string(m.Role()) + ":")
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			fmt.Fprintf(b, " %q", p.Text)
		case conversation.Reasoning:
			fmt.Fprintf(b, " reasoning %q", p.Text)
		case conversation.ToolCall:
			fmt.Fprintf(b, " call %s %s%s", p.ID, p.Name, p.Input)
		case conversation.ToolResult:
			fmt.Fprintf(b, " result %s %s", p.ID, p.Result)
		}
	}
}
