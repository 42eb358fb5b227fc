package score

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
)

// errUnseen is why calls cannot be judged: an agent whose model traffic nobody sees may have made any.
var errUnseen = errors.New("the trace holds no reply of a model, so nobody knows which tools it called")

// made returns the calls in the model's replies, in order, with what came of each. Those in the conversation that the run was given are not the model's.
func made(t trace.Trace) ([]madeCall, error) {
	var calls []madeCall
	replies := 0
	for _, e := range t.Events {
		switch {
		case e.Reply != nil:
			replies++
			for _, p := range e.Reply.Message.Parts() {
				if c, ok := p.(conversation.ToolCall); ok {
					calls = append(calls, madeCall{name: c.Name, raw: c, reply: replies, step: e.Step})
				}
			}
		case e.Tool != nil:
			if e.Tool.Outcome != trace.Paused && e.Tool.Outcome != trace.CutOff {
				answer(calls, e.Tool.CallID, e.Tool.Result, e.Tool.IsError)
			}
		case e.Results != nil:
			for _, p := range e.Results.Message.Parts() {
				if r, ok := p.(conversation.ToolResult); ok {
					answer(calls, r.ID, r.Result, r.IsError)
				}
			}
		}
	}
	if replies == 0 {
		return nil, errUnseen
	}
	return calls, nil
}

// answer gives a result to the call of that id: ids may return in later replies, so that it is one of the last reply that has one. The message with the results repeats those of calls that were seen to run.
func answer(calls []madeCall, id string, result conversation.JSON, failed bool) {
	found := -1
	for i := len(calls) - 1; i >= 0 && (found < 0 || calls[i].reply == calls[found].reply); i-- {
		if calls[i].raw.ID == id {
			found = i
			if calls[i].status == "" {
				continue // the first of several without a result
			}
		}
	}
	if found < 0 || calls[found].status != "" {
		return
	}
	calls[found].result, calls[found].status = result, statusOK
	if failed {
		calls[found].status = statusError
	}
}

// What came of a call. A call without a result, such as one that waits for an approval, has none of them.
const (
	statusOK    = "ok"
	statusError = "error"
)

// expectedCall is one call of the dataset.
type expectedCall struct {
	name   string
	args   matcher // nil: anything
	status string  // "": whatever came of it
	text   string
}

// madeCall is one call of the model.
type madeCall struct {
	name  string
	raw   conversation.ToolCall
	reply int // the reply that made it, from 1
	step  int // as the trace counts
	// status is what came of it, "" where nothing did or nobody saw it; result is the tool's answer.
	status string
	result conversation.JSON

	args strict.Node
	bad  string // what is wrong with the arguments, "" where they are a JSON object
	text string
}

// toolCallsArgs are the arguments of the check tool_calls.
type toolCallsArgs struct {
	Match    string        `yaml:"match" values:"exact,unordered,subset,superset" doc:"which calls may be missing or further; exact unless given"`
	Calls    []strict.Node `yaml:"calls,required" doc:"the calls expected, and groups of them"`
	SameTurn *bool         `yaml:"same_turn" doc:"true: all calls in one reply of the model; false: each in a reply of its own"`
}

// callArgs are a call that is expected.
type callArgs struct {
	Name   string      `yaml:"name,required" doc:"the tool"`
	Args   strict.Node `yaml:"args" doc:"what its arguments must be"`
	Status *string     `yaml:"status" values:"ok,error" doc:"what must have come of it"`
	Times  strict.Node `yaml:"times" doc:"how often: a number, or {min, max}"`
}

// choiceArgs are several calls of which one is expected.
type choiceArgs struct {
	AnyOf []strict.Node `yaml:"any_of,required" doc:"one of these calls"`
	Times strict.Node   `yaml:"times" doc:"how often: a number, or {min, max}"`
}

// groupArgs are calls that belong together.
type groupArgs struct {
	Ordered   []strict.Node `yaml:"ordered" doc:"calls in this order"`
	Unordered []strict.Node `yaml:"unordered" doc:"calls in any order"`
	SameTurn  *bool         `yaml:"same_turn" doc:"true: all calls in one reply of the model; false: each in a reply of its own"`
}

// timesArgs bound how often a call is made.
type timesArgs struct {
	Min *int `yaml:"min" doc:"at least so often; 0 unless given"`
	Max *int `yaml:"max" doc:"at most so often; as often as it likes unless given"`
}

// maxTimes bounds how often one call may be expected, and maxPlaces how many calls a check may expect in all.
const (
	maxTimes  = 1000
	maxPlaces = 10_000
)

func compileToolCalls(args strict.Node, a at) judge {
	in := toolCallsArgs{Match: "exact"}
	a.decode(args, &in, "tool_calls: {match: subset, calls: [{name: search}]}")
	if args.Kind() != strict.Mapping {
		return nil
	}
	calls := args.Get("calls")
	where := a.key("calls")
	if calls.Kind() == strict.Sequence && calls.Len() == 0 {
		where.bad(calls, "to expect none, use no_tool_calls", "the list is empty")
	}
	grouped := slices.ContainsFunc(in.Calls, isGroup)
	e := expectation{match: in.Match}
	switch {
	case grouped && in.Match == "unordered":
		a.key("match").bad(args.Get("match"), "put the calls whose order is free under unordered: in calls, and write match: exact", "match: unordered knows no groups")
	case grouped && in.SameTurn != nil:
		a.key("same_turn").bad(args.Get("same_turn"), "put it into the groups that it is for", "same_turn stands beside a list with groups")
	}
	if grouped {
		for i, n := range in.Calls {
			e.groups = append(e.groups, compileGroup(n, where.index(i)))
		}
	} else {
		e.groups = []group{{ordered: in.Match == "exact", turns: turnsOf(in.SameTurn), calls: compileCalls(in.Calls, where)}}
	}
	e.number()
	if e.places() > maxPlaces {
		where.bad(calls, "", "more than %d calls are expected", maxPlaces)
	}
	want := e.String()
	return func(_ context.Context, c *Case) (Verdict, error) {
		calls, err := made(c.Trace)
		if err != nil {
			return Verdict{}, err
		}
		texts := make([]string, len(calls))
		for i := range calls {
			calls[i].parse()
			texts[i] = calls[i].text
		}
		if name := e.unanswered(calls); name != "" {
			return Verdict{}, fmt.Errorf("the trace holds no result of any call, so nobody knows what came of %s", name)
		}
		v := e.judge(calls)
		v.Expected, v.Actual = cut(want), cut(strings.Join(texts, ", "))
		if len(calls) == 0 {
			v.Actual = "no calls"
		}
		return v, nil
	}
}

// isGroup reports that an entry of the list of calls is a group of them.
func isGroup(n strict.Node) bool {
	return !n.Get("ordered").IsZero() || !n.Get("unordered").IsZero()
}

// compileGroup reads a group, or a call that is one alone.
func compileGroup(n strict.Node, a at) group {
	if !isGroup(n) {
		return group{ordered: true, calls: []place{compilePlace(n, a)}}
	}
	var in groupArgs
	strict.Decode(n, &in, a.Problems)
	ordered, unordered := n.Get("ordered"), n.Get("unordered")
	key, list := "ordered", in.Ordered
	if ordered.IsZero() {
		key, list = "unordered", in.Unordered
	}
	if !ordered.IsZero() && !unordered.IsZero() {
		a.Add(n.KeyPos("unordered"), "write two groups, one after the other", "a group is ordered or unordered, not both")
	}
	inner := a.key(key)
	if of := n.Get(key); of.Kind() == strict.Sequence && of.Len() == 0 {
		inner.bad(of, "name at least one call", "the group is empty")
	}
	for i, entry := range list {
		if isGroup(entry) {
			inner.index(i).bad(entry, "groups follow one another", "a group within a group")
			return group{}
		}
	}
	return group{ordered: key == "ordered", turns: turnsOf(in.SameTurn), calls: compileCalls(list, inner)}
}

func compileCalls(list []strict.Node, a at) []place {
	places := make([]place, len(list))
	for i, n := range list {
		places[i] = compilePlace(n, a.index(i))
	}
	return places
}

// compilePlace reads a call with its alternatives and how often it is expected.
func compilePlace(n strict.Node, a at) place {
	p := place{least: 1, most: 1}
	if n.Get("any_of").IsZero() {
		call := compileCall(n, a)
		p.choices, p.text = []expectedCall{call}, call.text
		p.times(n.Get("times"), a.key("times"))
		return p
	}
	var in choiceArgs
	strict.Decode(n, &in, a.Problems)
	if of := n.Get("any_of"); of.Kind() == strict.Sequence && of.Len() < 2 {
		a.key("any_of").bad(of, "name two calls or more, or write the call itself", "want several calls to choose from")
	}
	texts := make([]string, len(in.AnyOf))
	for i, choice := range in.AnyOf {
		at := a.key("any_of").index(i)
		if times := choice.Get("times"); !times.IsZero() {
			at.key("times").bad(times, "put it beside any_of", "times stands within any_of")
		}
		call := compileCall(choice, at)
		p.choices, texts[i] = append(p.choices, call), call.text
	}
	p.text = strings.Join(texts, " or ")
	p.times(in.Times, a.key("times"))
	return p
}

// times sets how often a call is expected.
func (p *place) times(n strict.Node, a at) {
	switch n.Kind() {
	case strict.Missing:
		return
	case strict.Int:
		strict.Decode(n, &p.least, a.Problems)
		p.most, p.bounded = p.least, true
		if p.least < 1 || p.least > maxTimes {
			a.bad(n, "to expect none, use no_tool_calls", "want a number from 1 to %d", maxTimes)
			p.least, p.most = 1, 1
		}
	case strict.Mapping:
		var in timesArgs
		strict.Decode(n, &in, a.Problems)
		p.least, p.most = 0, unlimited
		if in.Min != nil {
			p.least = *in.Min
		}
		if in.Max != nil {
			p.most, p.bounded = *in.Max, true
		}
		switch {
		case in.Min == nil && in.Max == nil:
			a.bad(n, "write times: 2, or times: {min: 1, max: 3}", "neither min nor max")
		case p.least < 0 || p.least > maxTimes:
			a.key("min").bad(n.Get("min"), "", "want a number from 0 to %d", maxTimes)
		case in.Max != nil && (p.most < 1 || p.most > maxTimes):
			a.key("max").bad(n.Get("max"), "to expect none, use no_tool_calls", "want a number from 1 to %d", maxTimes)
		case in.Max != nil && p.most < p.least:
			a.bad(n, "swap them", "min is above max")
		default:
			return
		}
		p.least, p.most = 1, 1
	default:
		a.WrongType(n, "a whole number, or a mapping with min and max")
	}
}

func turnsOf(same *bool) turns {
	switch {
	case same == nil:
		return anyTurn
	case *same:
		return oneTurn
	}
	return ownTurns
}

func compileCall(n strict.Node, a at) expectedCall {
	var in callArgs
	strict.Decode(n, &in, a.Problems)
	known(n.Get("name"), a.key("name"))
	call := expectedCall{name: in.Name, text: in.Name}
	if in.Status != nil {
		call.status = *in.Status
	}
	switch {
	case in.Args.IsZero():
	case in.Args.Kind() != strict.Mapping:
		a.Problems.Key("args").WrongType(in.Args, "a mapping")
	default:
		call.text += excerpt(in.Args.JSON(), 0, 200)
		call.args = compileMatcher(in.Args, false, a.key("args"))
	}
	if call.status != "" {
		call.text += " (" + call.status + ")"
	}
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

// parse reads the arguments that the model wrote.
func (c *madeCall) parse() {
	args, err := c.raw.Arguments()
	if err == nil {
		c.args, err = strict.ParseJSON("arguments", 1, []byte(args))
	}
	if err != nil {
		c.bad, c.args, args = err.Error(), strict.Node{}, c.raw.Input
	}
	c.text = excerpt(c.name, 0, 64) + excerpt(string(args), 0, 200)
}

// fit is how well a call made meets an expectation: worth for all of it, named where the tool fits and nothing else does, 0 for another tool.
func (e *expectedCall) fit(got *madeCall) int {
	if e.name != got.name {
		return 0
	}
	held, asked := 0, 0
	switch {
	case e.args == nil:
	case got.bad != "":
		asked = 1
	default:
		held, asked = share(e.args, got.args)
	}
	if e.status != "" {
		asked++
		if e.status == got.status {
			held++
		}
	}
	if held == asked {
		return worth
	}
	return named + named*held/asked
}

// differences says in what a call of the right name is not the one expected.
func (e *expectedCall) differences(got *madeCall) []string {
	var all []string
	switch {
	case e.args == nil:
	case got.bad != "":
		all = append(all, got.bad)
	default:
		all = e.args.differences(got.args, "")
	}
	if e.status != "" && e.status != got.status {
		came := "has no result"
		switch got.status {
		case statusOK:
			came = "succeeded"
		case statusError:
			came = "failed"
		}
		all = append(all, came+", want "+e.status)
	}
	return all
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
		v := Verdict{Score: 1, Expected: expected, Actual: strconv.Itoa(len(calls)) + " calls", Reason: "none was made"}
		var found []string
		for i := range calls {
			if banned == nil || slices.Contains(banned, calls[i].name) {
				calls[i].parse()
				found = append(found, fmt.Sprintf("call %d: %s", i+1, calls[i].text))
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
