package matchers_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

func TestMatchers(t *testing.T) { suite.Run(t, "matchers") }

// run tells the trace of a run, step by step.
type run struct {
	trace.Trace
	step int
}

func asked(text string) *run {
	r := &run{}
	r.add(trace.Event{Kind: trace.KindStart, Start: &trace.Start{Agent: "clerk", Model: "m", MaxIterations: 9, Input: []conversation.Message{conversation.User("u1", conversation.Text{Text: text})}}})
	return r
}

func (r *run) add(e trace.Event) {
	e.N, e.Step = len(r.Events)+1, r.step
	r.Events = append(r.Events, e)
}

func (r *run) reply(parts ...conversation.Content) *run {
	r.step++
	var tools []tool.Spec
	for _, name := range []string{"read_file", "edit_file"} {
		tools = append(tools, tool.Spec{Name: name, Parameters: `{"type":"object"}`})
	}
	r.add(trace.Event{Kind: trace.KindRequest, Request: &trace.Request{System: "You are a clerk.", Tools: tools, Messages: 1}})
	r.add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: conversation.Assistant("a1", parts...), Stop: "end", TTFTMS: -1}})
	return r
}

func (r *run) results(results ...conversation.Content) *run {
	r.add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: conversation.ToolResults("a1", results...)}})
	return r
}

func (r *run) ended() trace.Trace {
	r.add(trace.Event{Kind: trace.KindEnd, End: &trace.End{Stop: "end", Steps: r.step, Terminals: 1}})
	return r.Trace
}

func says(text string) conversation.Content { return conversation.Text{Text: text} }

func calls(id, name, input string) conversation.Content {
	return conversation.ToolCall{ID: id, Name: name, Input: conversation.JSON(input)}
}

func gives(id, text string) conversation.Content {
	return conversation.ToolResult{ID: id, Result: conversation.String(text)}
}

func breaks(id, text string) conversation.Content {
	return conversation.ToolResult{ID: id, Result: conversation.String(text), IsError: true}
}

// edit is a run that reads a file, edits it and says so.
func edit() trace.Trace {
	return asked("Mend the typo.").
		reply(calls("c1", "read_file", `{"path":"notes.md","limit":20}`)).results(gives("c1", "a courrier comes")).
		reply(calls("c2", "edit_file", `{"path":"notes.md","old_string":"courrier","new_string":"courier"}`)).results(breaks("c2", "the file is read-only")).
		reply(says("The typo courier is mended.")).ended()
}

// talk is a run without tools.
func talk() trace.Trace { return asked("Hello").reply(says("Good day.")).ended() }

// unpaired is a run that goes on without the result of a call.
func unpaired() trace.Trace {
	return asked("Mend it.").reply(calls("c1", "read_file", `{"path":"notes.md"}`)).reply(says("Mended.")).ended()
}

func line(edit func(*eval.Result)) eval.Result {
	r := eval.Result{Item: "mends-a-typo", Provider: "haiku", Repeat: 1, Status: eval.Pass, Cassette: &eval.CassetteInfo{File: "fixtures/cassettes/clerk/haiku/mends-a-typo.yaml", State: eval.CassetteFresh}}
	if edit != nil {
		edit(&r)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

func fails(r *eval.Result) {
	r.Status, r.Cause, r.Output = eval.Fail, ptr(eval.CauseCheck), ptr("I do not know.")
	r.Checks = []eval.CheckResult{
		{Name: "contains", Status: eval.CheckFail, Score: ptr(eval.Fraction(0)), Threshold: 1, Expected: ptr("courier"), Actual: ptr("I do not\x1b[31m know."), Reason: "not found", At: "datasets/clerk.yaml:9:9"},
		{Name: "latency", Status: eval.CheckPass, Reason: "quick enough"},
		{Name: "polite", Status: eval.CheckUnjudged, Reason: "no verdict in the answer", At: "datasets/clerk.yaml:10:9"},
	}
	r.Invariants.Violations = []eval.Violation{{Name: "visible-tools-only", Severity: eval.SeverityError, Events: []int{3, 5}, Evidence: `step 1 calls "exec"`, At: "datasets/clerk.yaml:7:5"}}
}
