package invariant

import (
	"context"
	"errors"
	"iter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// scripted answers one reply after the other; where there is none left it fails.
type scripted struct {
	replies [][]llm.Event
}

func (m *scripted) Stream(context.Context, llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if len(m.replies) == 0 {
			yield(nil, errors.New("status 503"))
			return
		}
		events := m.replies[0]
		m.replies = m.replies[1:]
		for _, e := range append(events, llm.Finish{Stop: llm.StopEnd, Usage: conversation.Usage{InputTokens: 7, OutputTokens: 3, CacheReadTokens: 1}}) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func calls(list ...conversation.ToolCall) []llm.Event {
	var events []llm.Event
	for i, c := range list {
		events = append(events, llm.CallStart{Index: i, ID: c.ID, Name: c.Name}, llm.CallDelta{Index: i, Arguments: string(c.Input)})
	}
	return events
}

// reader is read_file: it pauses on "ask", ends the run on "stop" and fails on every path with "..".
type reader struct{ cancel func() }

func (reader) Spec() tool.Spec { return read }

func (r reader) Run(_ context.Context, c tool.Call) (tool.Output, error) {
	switch c.Arguments {
	case `{"path":"ask"}`:
		return tool.Output{Result: `"?"`, Flow: tool.Pause}, nil
	case `{"path":"stop"}`:
		r.cancel()
	case `{"path":"../x"}`:
		return tool.Failed("outside the workspace"), nil
	}
	return tool.Output{Result: `"text"`, Paths: []string{"a.txt"}}, nil
}

// looped runs the agent's own loop over a scripted model and gives its trace, as a target records it.
func looped(limit int, replies ...[]llm.Event) trace.Trace {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	registry, _, err := tool.NewRegistry(reader{cancel})
	Expect(err).NotTo(HaveOccurred())
	at := clock.NewVirtual(time.Unix(0, 0))
	recorder := trace.NewRecorder(at)
	input, err := conversation.New(conversation.Hidden{"tenant_id": `"tenant-0042"`}).Append(conversation.User("u1", say("go")))
	Expect(err).NotTo(HaveOccurred())
	loop := llm.Loop{Model: &scripted{replies}, MaxIterations: limit, Clock: at, Recorder: recorder, Prepare: func(context.Context, int) (llm.Step, error) { return llm.Step{Tools: registry}, nil }}
	end := &trace.End{Input: trace.Digests(input)}
	for e := range loop.Run(ctx, input, "m1") {
		if end.Terminals > 0 {
			end.After++
		}
		if e.Type == llm.StreamDone || e.Type == llm.StreamError {
			end.Terminals++
			end.Stop, end.Usage, end.Steps, end.Context = e.Response.Stop, e.Response.Usage, e.Response.Steps, trace.Digests(e.Context)
		}
	}
	recorder.Add(trace.Event{Kind: trace.KindEnd, End: end})
	return trace.Trace{Events: recorder.Events(), Hidden: input.ToolContext()}
}

var _ = DescribeTable("what the agent's own loop records keeps all rules but those that the model breaks",
	func(stop string, limit int, want []string, replies ...[]llm.Event) {
		t := looped(limit, replies...)
		Expect(event(t, trace.KindEnd, 1).End.Stop).To(Equal(stop))
		Expect(broken(t)).To(ConsistOf(want))
		Expect(broken(reread(t))).To(ConsistOf(want))
	},
	Entry("an answer", "end", 5, []string{}, []llm.Event{llm.TextDelta{Text: "hello"}}),
	Entry("calls side by side, then an answer", "end", 5, []string{}, calls(call("c1", `{"path":"a"}`), call("c2", `{"path":"b"}`)), []llm.Event{llm.TextDelta{Text: "hello"}}),
	Entry("a tool that refuses a path", "end", 5, []string{}, calls(call("c1", `{"path":"../x"}`)), []llm.Event{llm.TextDelta{Text: "no"}}),
	Entry("the limit of steps", "max_iterations", 2, []string{}, calls(call("c1", `{"path":"a"}`)), calls(call("c2", `{"path":"b"}`))),
	Entry("a pause, with a neighbour answered", "paused", 5, []string{}, calls(call("c1", `{"path":"a"}`), call("c2", `{"path":"ask"}`))),
	Entry("a pause alone", "paused", 5, []string{}, calls(call("c1", `{"path":"ask"}`))),
	Entry("an outage at once", "error", 5, []string{}),
	Entry("an outage after a step", "error", 5, []string{}, calls(call("c1", `{"path":"a"}`))),
	Entry("a time limit while tools run", "error", 5, []string{}, calls(call("c1", `{"path":"stop"}`), call("c2", `{"path":"b"}`))),
	Entry("an unknown tool", "end", 5, []string{"visible-tools-only"}, calls(conversation.ToolCall{ID: "c1", Name: "bash", Input: "{}"}), []llm.Event{llm.TextDelta{Text: "no"}}),
	Entry("malformed arguments", "end", 5, []string{"arguments-match-schema"}, calls(call("c1", `{"path":`)), []llm.Event{llm.TextDelta{Text: "no"}}),
	Entry("an id that returns", "end", 5, []string{"tool-call-unique-ids (warn)"}, calls(call("c1", `{"path":"a"}`)), calls(call("c1", `{"path":"b"}`)), []llm.Event{llm.TextDelta{Text: "x"}}),
)
