package score_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/score"
)

func TestScore(t *testing.T) { suite.Run(t, "score") }

// specs reads a YAML list of checks as a dataset writes them.
func specs(yaml string) []score.Spec {
	n, err := strict.Parse("d.yaml", []byte(yaml))
	if err != nil {
		panic(err)
	}
	var list []score.Spec
	for _, item := range n.Items() {
		list = append(list, spec(item))
	}
	if len(list) == 0 {
		panic("no checks in " + yaml)
	}
	return list
}

func spec(n strict.Node) score.Spec {
	s := score.Spec{Pos: n.Pos()}
	if n.Kind() == strict.String {
		s.Kind = n.Text()
		return s
	}
	for key, value := range n.Fields() {
		var p strict.Problems
		switch key.Name {
		case "name":
			s.Name = value.Text()
		case "weight":
			strict.Decode(value, &s.Weight, &p)
		case "threshold":
			strict.Decode(value, &s.Threshold, &p)
		case "required":
			strict.Decode(value, &s.Required, &p)
		case "not":
			inner := spec(value)
			s.Kind, s.Args, s.Not = inner.Kind, inner.Args, true
		default:
			s.Kind, s.Args = key.Name, value
		}
		if err := p.Err(); err != nil {
			panic(err)
		}
	}
	return s
}

var env = score.Env{Tools: []string{"contacts", "book", "search", "exec"}, Judges: []string{"strict"}}

// check compiles the one check that the YAML text states.
func check(yaml string) score.Check {
	var p strict.Problems
	checks := score.Compile(specs("- "+strings.ReplaceAll(yaml, "\n", "\n  ")), env, &p)
	if err := p.Err(); err != nil || len(checks) != 1 {
		panic(fmt.Sprintf("%s: %d checks, %v", yaml, len(checks), err))
	}
	return checks[0]
}

// problems compiles checks that hold mistakes and returns what the user reads.
func problems(yaml string) string {
	var p strict.Problems
	checks := score.Compile(specs(yaml), env, &p)
	err := p.Err()
	if err == nil {
		panic("no mistake in " + yaml)
	}
	Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	_ = checks
	return failure.Render(err)
}

func on(ctx SpecContext, yaml, output string) eval.CheckResult {
	c := check(yaml)
	return c.Run(ctx, score.Case{Output: output})
}

// call is a tool call written as name{json}.
func call(text string) conversation.ToolCall {
	name, rest := text, ""
	if i := strings.IndexByte(text, '{'); i >= 0 {
		name, rest = text[:i], text[i:]
	}
	return conversation.ToolCall{ID: "c", Name: name, Input: conversation.JSON(rest)}
}

// calling is a case whose trace holds a reply with the given calls.
func calling(calls ...string) score.Case {
	parts := make([]conversation.Content, 0, len(calls))
	for _, c := range calls {
		parts = append(parts, call(c))
	}
	reply := trace.Event{N: 1, Kind: trace.KindReply, Step: 1, Reply: &trace.Reply{Message: conversation.Assistant("m", parts...)}}
	return score.Case{Trace: trace.Trace{Events: []trace.Event{reply}}}
}
