package score

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
)

// errUnseen is why calls cannot be judged: an agent whose model traffic nobody sees may have made any.
var errUnseen = errors.New("the trace holds no reply of a model, so nobody knows which tools it called")

// made returns the calls in the model's replies, in order. Those in the conversation that the run was given are not the model's.
func made(t trace.Trace) ([]conversation.ToolCall, error) {
	var calls []conversation.ToolCall
	seen := false
	for _, e := range t.Events {
		if e.Reply == nil {
			continue
		}
		seen = true
		for _, p := range e.Reply.Message.Parts() {
			if c, ok := p.(conversation.ToolCall); ok {
				calls = append(calls, c)
			}
		}
	}
	if !seen {
		return nil, errUnseen
	}
	return calls, nil
}

// modes are the ways in which calls expected and made are compared.
var modes = []string{"exact", "unordered", "subset", "superset"}

// expectedCall is one call of the dataset.
type expectedCall struct {
	name string
	args matcher // nil: anything
	text string
}

// madeCall is one call of the model.
type madeCall struct {
	name string
	args strict.Node
	bad  string // what is wrong with the arguments, "" where they are a JSON object
	text string
}

func compileToolCalls(args strict.Node, a at) judge {
	var in struct {
		Match string        `yaml:"match"`
		Calls []strict.Node `yaml:"calls,required"`
	}
	in.Match = "exact"
	a.decode(args, &in, "tool_calls: {match: subset, calls: [{name: search}]}")
	if args.Kind() != strict.Mapping {
		return nil
	}
	if match := args.Get("match"); match.Kind() == strict.String && !slices.Contains(modes, in.Match) {
		a.key("match").bad(match, strict.Suggest(in.Match, modes), "unknown match %q", in.Match)
	}
	if calls := args.Get("calls"); calls.Kind() == strict.Sequence && calls.Len() == 0 {
		a.key("calls").bad(calls, "to expect none, use no_tool_calls", "the list is empty")
	}
	expected := make([]expectedCall, len(in.Calls))
	texts := make([]string, len(in.Calls))
	for i, n := range in.Calls {
		expected[i] = compileCall(n, a.key("calls").index(i))
		texts[i] = expected[i].text
	}
	want := in.Match + ": " + strings.Join(texts, ", ")
	return func(_ context.Context, c *Case) (Verdict, error) {
		raw, err := made(c.Trace)
		if err != nil {
			return Verdict{}, err
		}
		m := comparison{mode: in.Match, expected: expected, made: make([]madeCall, len(raw))}
		texts := make([]string, len(raw))
		for i, call := range raw {
			m.made[i] = parseCall(call)
			texts[i] = m.made[i].text
		}
		v := m.judge()
		v.Expected, v.Actual = cut(want), cut(strings.Join(texts, ", "))
		if len(raw) == 0 {
			v.Actual = "no calls"
		}
		return v, nil
	}
}

func compileCall(n strict.Node, a at) expectedCall {
	var in struct {
		Name string      `yaml:"name,required"`
		Args strict.Node `yaml:"args"`
	}
	strict.Decode(n, &in, a.Problems)
	known(n.Get("name"), a.key("name"))
	call := expectedCall{name: in.Name, text: in.Name}
	if in.Args.IsZero() {
		return call
	}
	if in.Args.Kind() != strict.Mapping {
		a.Problems.Key("args").WrongType(in.Args, "a mapping")
		return call
	}
	call.text += excerpt(in.Args.JSON(), 0, 200)
	call.args = compileMatcher(in.Args, false, a.key("args"))
	return call
}

// known refuses a tool that the agent does not have: such a check could never pass, or never fail.
func known(n strict.Node, a at) {
	if n.Kind() == strict.String && !a.env.ToolsUnknown && !slices.Contains(a.env.Tools, n.Text()) {
		hint := strict.Suggest(n.Text(), a.env.Tools)
		if hint == "" {
			hint = "it has no tools; add them to the agent's file: tools: [...]"
		}
		a.bad(n, hint, "the agent has no tool %q", n.Text())
	}
}

func parseCall(c conversation.ToolCall) madeCall {
	call := madeCall{name: c.Name}
	args, err := c.Arguments()
	if err == nil {
		call.args, err = strict.ParseJSON("arguments", 1, []byte(args))
	}
	call.text = excerpt(c.Name, 0, 64) + excerpt(string(args), 0, 200)
	if err != nil {
		call.bad = err.Error()
		call.args = strict.Node{}
		call.text = excerpt(c.Name, 0, 64) + excerpt(string(c.Input), 0, 200)
	}
	return call
}

// comparison pairs calls expected with calls made.
type comparison struct {
	mode     string
	expected []expectedCall
	made     []madeCall
}

// value is the worth of a pair: 0 for different tools, at least half for the same one.
func (m *comparison) value(e, i int) int {
	want, got := m.expected[e], m.made[i]
	switch {
	case want.name != got.name:
		return 0
	case want.args == nil:
		return worth
	case got.bad != "":
		return named
	}
	held, asked := share(want.args, got.args)
	if held == asked {
		return worth
	}
	return named + named*held/asked
}

func (m *comparison) judge() Verdict {
	values := make([]int, len(m.expected)*len(m.made))
	for e := range m.expected {
		for i := range m.made {
			values[e*len(m.made)+i] = m.value(e, i)
		}
	}
	value := func(e, i int) int { return values[e*len(m.made)+i] }
	pair := assigned
	if m.mode == "exact" {
		pair = ordered
	}
	partner, sum := pair(len(m.expected), len(m.made), value)

	// The score divides what pairs by what had to: twice the sum by both sides' number is the coefficient of Dice (1945).
	total := len(m.expected) + len(m.made)
	switch m.mode {
	case "subset":
		total = len(m.expected)
	case "superset":
		total = len(m.made)
	default:
		sum *= 2
	}
	v := Verdict{Score: 1, Reason: "no call was made, so none is unexpected"}
	if total > 0 {
		v.Score = float64(sum) / (float64(total) * worth)
	}
	if script := m.script(partner); len(script) > 0 {
		v.Reason = strings.Join(script, "; ")
		if m.mode == "exact" {
			if _, any := assigned(len(m.expected), len(m.made), value); any == worth*len(m.expected) && len(m.made) == len(m.expected) {
				v.Reason = "only the order differs: " + v.Reason
			}
		}
		v.Reason = cut(v.Reason)
	} else if len(m.made) > 0 {
		v.Reason = fmt.Sprintf("all %d calls as expected", len(m.made))
		if m.mode == "subset" {
			v.Reason = fmt.Sprintf("all %d expected calls are among the %d made", len(m.expected), len(m.made))
		}
	}
	return v
}

// script lists what would have to change: expected calls that were not made (unless only those made count), calls that differ, calls that were not expected (unless others are free). Numbers count from 1, among those expected or those made.
func (m *comparison) script(partner []int) []string {
	var edits []string
	paired := make([]bool, len(m.made))
	for e, i := range partner {
		want := m.expected[e]
		if i == unpaired {
			if m.mode != "superset" {
				edits = append(edits, fmt.Sprintf("missing call %d: %s", e+1, want.text))
			}
			continue
		}
		paired[i] = true
		got := m.made[i]
		switch {
		case want.args == nil:
		case got.bad != "":
			edits = append(edits, fmt.Sprintf("call %d, %s: %s", i+1, got.name, got.bad))
		default:
			if d := want.args.differences(got.args, ""); len(d) > 0 {
				edits = append(edits, fmt.Sprintf("call %d, %s: %s", i+1, got.name, strings.Join(d, ", ")))
			}
		}
	}
	if m.mode == "subset" {
		return edits
	}
	for i, got := range m.made {
		if !paired[i] {
			edits = append(edits, fmt.Sprintf("unexpected call %d: %s", i+1, got.text))
		}
	}
	return edits
}

func compileNoToolCalls(args strict.Node, a at) judge {
	var banned []string
	if !bare(args) {
		a.decode(args, &banned, "no_tool_calls, or a list of tools")
		if args.Kind() == strict.Sequence && args.Len() == 0 {
			a.bad(args, "for no call at all leave the list out", "the list is empty")
		}
		for i, n := range args.Items() {
			known(n, a.index(i))
		}
	}
	expected := "no tool calls"
	if banned != nil {
		expected = cut("no calls of " + strings.Join(banned, ", "))
	}
	return func(_ context.Context, c *Case) (Verdict, error) {
		calls, err := made(c.Trace)
		if err != nil {
			return Verdict{}, err
		}
		v := Verdict{Score: 1, Expected: expected, Actual: fmt.Sprintf("%d calls", len(calls)), Reason: "none was made"}
		var found []string
		for i, call := range calls {
			if banned == nil || slices.Contains(banned, call.Name) {
				found = append(found, fmt.Sprintf("call %d: %s", i+1, parseCall(call).text))
			}
		}
		if len(found) > 0 {
			v.Score = 0
			v.Actual = cut(strings.Join(found, ", "))
			v.Reason = v.Actual
		}
		return v, nil
	}
}
