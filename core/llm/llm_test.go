package llm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

func TestLLM(t *testing.T) { suite.Run(t, "llm") }

// scripted answers request i with the events of step i; an error among them ends the step.
type scripted struct {
	steps    [][]any
	requests []llm.Request
	closed   atomic.Int32
	took     time.Duration
	clock    *clock.Virtual
}

func (s *scripted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		defer s.closed.Add(1)
		n := len(s.requests)
		s.requests = append(s.requests, req)
		if s.clock != nil {
			s.clock.AdvanceTo(s.clock.Now().Add(s.took))
		}
		if n >= len(s.steps) {
			yield(nil, fmt.Errorf("no step %d", n+1))
			return
		}
		for _, e := range s.steps[n] {
			if err, ok := e.(error); ok {
				yield(nil, err)
				return
			}
			if !yield(e.(llm.Event), nil) {
				return
			}
		}
	}
}

func text(s string) []any {
	return []any{llm.TextDelta{Text: s}, llm.Finish{Stop: llm.StopEnd, Usage: conversation.Usage{InputTokens: 10, OutputTokens: 2}}}
}

type call struct{ id, name, args string }

func calls(cs ...call) []any {
	var out []any
	for i, c := range cs {
		out = append(out, llm.CallStart{Index: i, ID: c.id, Name: c.name}, llm.CallDelta{Index: i, Arguments: c.args})
	}
	return append(out, llm.Finish{Stop: llm.StopToolCalls, Usage: conversation.Usage{InputTokens: 7, OutputTokens: 3, CacheReadTokens: 1}})
}

type fakeTool struct {
	spec tool.Spec
	run  func(context.Context, tool.Call) (tool.Output, error)
}

func (f fakeTool) Spec() tool.Spec { return f.spec }
func (f fakeTool) Run(ctx context.Context, c tool.Call) (tool.Output, error) {
	return f.run(ctx, c)
}

type toolSet []fakeTool

func (t toolSet) Specs() (specs []tool.Spec) {
	for _, f := range t {
		specs = append(specs, f.spec)
	}
	return specs
}

func (t toolSet) Lookup(name string) (tool.Tool, tool.Spec, bool) {
	for _, f := range t {
		if f.spec.Name == name {
			return f, f.spec, true
		}
	}
	return nil, tool.Spec{}, false
}

func (t toolSet) Unknown(name string) string { return "there is no tool " + name }

func (t toolSet) Validate(name string, args conversation.JSON) error {
	if strings.Contains(string(args), "wrong") {
		return errors.New("wrong: unknown property")
	}
	return nil
}

func echoTool(name string, effect tool.Effect) fakeTool {
	return fakeTool{spec: tool.Spec{Name: name, Effect: effect, Scope: tool.Workspace}, run: func(_ context.Context, c tool.Call) (tool.Output, error) {
		return tool.Output{Result: c.Arguments}, nil
	}}
}

func input() conversation.Context {
	GinkgoHelper()
	c, err := conversation.New(conversation.Hidden{"tenant": `"t-7f3a91"`}).Append(conversation.User("m0", conversation.Text{Text: "hello"}))
	Expect(err).NotTo(HaveOccurred())
	return c
}

func loop(m llm.Model, tools ...fakeTool) *llm.Loop {
	return &llm.Loop{Model: m, Clock: clock.NewVirtual(time.Unix(0, 0)), Prepare: func(context.Context, int) (llm.Step, error) {
		return llm.Step{System: "be brief", Tools: toolSet(tools)}, nil
	}}
}

func types(events []llm.StreamEvent) (out []llm.StreamType) {
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

func drain(seq iter.Seq[llm.StreamEvent]) (events []llm.StreamEvent) {
	for e := range seq {
		events = append(events, e)
	}
	return events
}

func roles(c conversation.Context) (out []string) {
	for _, m := range c.Messages() {
		out = append(out, string(m.Role()))
	}
	return out
}

var _ = Describe("the loop", func() {
	It("answers at once where the model calls nothing", func(ctx context.Context) {
		m := &scripted{steps: [][]any{text("  hi there ")}}
		in := input()
		response, out, err := loop(m).Invoke(ctx, in, "turn-1")
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Text).To(Equal("hi there"))
		Expect(response.Stop).To(Equal(llm.RunEnd))
		Expect(response.Steps).To(Equal(1))
		Expect(out.HasPrefix(in)).To(BeTrue())
		Expect(in.Len()).To(Equal(1))
		Expect(out.Message(1).ID()).To(Equal("turn-1"))
		Expect(m.requests[0].System).To(Equal("be brief"))
	})

	It("runs tools, gives their results back in call order and adds up the usage", func(ctx context.Context) {
		m := &scripted{steps: [][]any{
			append([]any{llm.TextDelta{Text: "let me see"}}, calls(call{"a", "first", `{"x":1}`}, call{"b", "second", ``})...),
			text("done"),
		}}
		recorder := trace.NewRecorder(clock.NewVirtual(time.Unix(0, 0)))
		l := loop(m, echoTool("first", tool.Read), echoTool("second", tool.Write))
		l.Recorder = recorder
		events := drain(l.Run(ctx, input(), "t"))
		Expect(types(events)).To(Equal([]llm.StreamType{"text", "tool_start", "tool_args", "tool_start", "tool_args", "tool_end", "tool_end", "text", "eos"}))
		last := events[len(events)-1]
		Expect(last.Response.Usage).To(Equal(conversation.Usage{InputTokens: 17, OutputTokens: 5, CacheReadTokens: 1}))
		Expect(last.Response.ToolCalls).To(Equal(2))
		Expect(roles(last.Context)).To(Equal([]string{"user", "assistant", "tool", "assistant"}))
		Expect(conversation.CheckPairing(last.Context.Messages())).To(BeEmpty())
		results := last.Context.Message(2)
		Expect(results.Part(0)).To(Equal(conversation.ToolResult{ID: "a", Result: `{"x":1}`}))
		Expect(results.Part(1)).To(Equal(conversation.ToolResult{ID: "b", Result: `{}`}))
		Expect(m.requests[1].Messages).To(HaveLen(3))

		var kinds []trace.Kind
		for _, e := range recorder.Events() {
			kinds = append(kinds, e.Kind)
		}
		Expect(kinds).To(Equal([]trace.Kind{"start", "request", "reply", "tool", "tool", "results", "request", "reply"}))
	})

	DescribeTable("turns what goes wrong with a call into a result that the model can read",
		func(ctx context.Context, c call, want string, outcome trace.Outcome) {
			m := &scripted{steps: [][]any{calls(c), text("sorry")}}
			recorder := trace.NewRecorder(clock.NewVirtual(time.Unix(0, 0)))
			l := loop(m,
				echoTool("good", tool.Read),
				fakeTool{spec: tool.Spec{Name: "fails", Effect: tool.Read}, run: func(context.Context, tool.Call) (tool.Output, error) { return tool.Output{}, errors.New("no such row") }},
				fakeTool{spec: tool.Spec{Name: "crashes", Effect: tool.Read}, run: func(context.Context, tool.Call) (tool.Output, error) { panic("secret detail") }},
				fakeTool{spec: tool.Spec{Name: "babbles", Effect: tool.Read}, run: func(context.Context, tool.Call) (tool.Output, error) { return tool.Output{Result: "{"}, nil }},
			)
			l.Recorder = recorder
			response, out, err := l.Invoke(ctx, input(), "t")
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Text).To(Equal("sorry"))
			result, ok := out.Message(2).Part(0).(conversation.ToolResult)
			Expect(ok).To(BeTrue())
			Expect(result.IsError).To(BeTrue())
			Expect(result.ResultText()).To(Equal(want))
			var runs []trace.ToolRun
			for _, e := range recorder.Events() {
				if e.Tool != nil {
					runs = append(runs, *e.Tool)
				}
			}
			Expect(runs).To(HaveLen(1))
			Expect(runs[0].Outcome).To(Equal(outcome))
			Expect(runs[0].Arguments).To(Equal(conversation.JSON(c.args)))
		},
		Entry("an unknown tool", call{"1", "delete", "{}"}, "Error: Tool not found: there is no tool delete", trace.Unknown),
		Entry("malformed arguments", call{"1", "good", `{"x":`}, "Error: invalid arguments for good: the arguments are not valid JSON", trace.Invalid),
		Entry("arguments that are no object", call{"1", "good", `[1]`}, "Error: invalid arguments for good: the arguments are a list, not a JSON object", trace.Invalid),
		Entry("arguments against the schema", call{"1", "good", `{"wrong":1}`}, "Error: invalid arguments for good: wrong: unknown property", trace.Invalid),
		Entry("a failing tool", call{"1", "fails", `{}`}, "Error running tool: no such row", trace.Executed),
		Entry("a crashing tool", call{"1", "crashes", `{}`}, "Error running tool: it crashed", trace.Executed),
		Entry("a tool whose result is no JSON", call{"1", "babbles", `{}`}, "Error running tool: its result is not valid JSON", trace.Executed),
	)

	It("does not run the last call of a reply that was cut at its output limit", func(ctx context.Context) {
		cut := []any{
			llm.CallStart{Index: 0, ID: "a", Name: "first"}, llm.CallDelta{Index: 0, Arguments: `{}`},
			llm.CallStart{Index: 1, ID: "b", Name: "wipe"}, // with arguments it would have been about one thing alone
			llm.Finish{Stop: llm.StopLength},
		}
		m := &scripted{steps: [][]any{cut, text("again")}}
		ran := 0
		wipe := fakeTool{spec: tool.Spec{Name: "wipe", Effect: tool.Irreversible}, run: func(context.Context, tool.Call) (tool.Output, error) { ran++; return tool.Text("gone"), nil }}
		recorder := trace.NewRecorder(clock.NewVirtual(time.Unix(0, 0)))
		l := loop(m, echoTool("first", tool.Read), wipe)
		l.Recorder = recorder
		response, out, err := l.Invoke(ctx, input(), "t")
		Expect(err).NotTo(HaveOccurred())
		Expect(ran).To(BeZero())
		Expect(response.ToolCalls).To(Equal(1))
		results := out.Message(2)
		first, ok := results.Part(0).(conversation.ToolResult)
		Expect(ok).To(BeTrue())
		Expect(first.IsError).To(BeFalse(), "what came before is whole")
		last, ok := results.Part(1).(conversation.ToolResult)
		Expect(ok).To(BeTrue())
		Expect(last.IsError).To(BeTrue())
		Expect(last.ResultText()).To(HavePrefix("Error: wipe was not run: your reply reached its output limit"))
		var outcomes []trace.Outcome
		for _, e := range recorder.Events() {
			if e.Tool != nil {
				outcomes = append(outcomes, e.Tool.Outcome)
			}
		}
		Expect(outcomes).To(Equal([]trace.Outcome{trace.Executed, trace.Invalid}))
	})

	It("stops at the bound of model steps, and says so", func(ctx context.Context) {
		m := &scripted{}
		for range 9 {
			m.steps = append(m.steps, calls(call{"1", "good", "{}"}))
		}
		l := loop(m, echoTool("good", tool.Read))
		l.MaxIterations = 3
		response, out, err := l.Invoke(ctx, input(), "t")
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Stop).To(Equal(llm.RunMaxIterations))
		Expect(response.PendingToolResults).To(BeTrue())
		Expect(m.requests).To(HaveLen(3))
		Expect(conversation.CheckPairing(out.Messages())).To(BeEmpty())
	})

	It("hands hidden parameters to tools and to nobody else", func(ctx context.Context) {
		var seen []string
		m := &scripted{steps: [][]any{calls(call{"1", "who", "{}"}), text("ok")}}
		who := fakeTool{spec: tool.Spec{Name: "who", Effect: tool.Read}, run: func(_ context.Context, c tool.Call) (tool.Output, error) {
			for name, value := range c.Hidden.All() {
				seen = append(seen, name+"="+string(value))
			}
			return tool.Text("fine"), nil
		}}
		_, out, err := loop(m, who).Invoke(ctx, input(), "t")
		Expect(err).NotTo(HaveOccurred())
		Expect(seen).To(Equal([]string{`tenant="t-7f3a91"`}))
		for _, req := range m.requests {
			for _, message := range req.Messages {
				Expect(string(message.AppendJSON(nil))).NotTo(ContainSubstring("t-7f3a91"))
			}
		}
		Expect(out.ToolContext()).To(HaveKey("tenant"))
	})

	It("runs reads side by side and everything else alone, in call order", func(ctx context.Context) {
		var mu sync.Mutex
		var order []string
		var running, most int
		both := make(chan struct{})
		var arrived atomic.Int32
		read := func(name string) fakeTool {
			return fakeTool{spec: tool.Spec{Name: name, Effect: tool.Read}, run: func(ctx context.Context, c tool.Call) (tool.Output, error) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				if arrived.Add(1) == 2 {
					close(both)
				}
				select { // neither read can end unless both have begun
				case <-both:
				case <-ctx.Done():
				}
				mu.Lock()
				running--
				order = append(order, name)
				mu.Unlock()
				return tool.Text(name), nil
			}}
		}
		write := fakeTool{spec: tool.Spec{Name: "w", Effect: tool.Write}, run: func(context.Context, tool.Call) (tool.Output, error) {
			mu.Lock()
			defer mu.Unlock()
			most = max(most, running+1)
			order = append(order, "w")
			return tool.Text("w"), nil
		}}
		m := &scripted{steps: [][]any{calls(call{"1", "r1", "{}"}, call{"2", "r2", "{}"}, call{"3", "w", "{}"}, call{"4", "w", "{}"}), text("ok")}}
		_, out, err := loop(m, read("r1"), read("r2"), write).Invoke(ctx, input(), "t")
		Expect(err).NotTo(HaveOccurred())
		Expect(most).To(Equal(2))
		Expect(order[2:]).To(Equal([]string{"w", "w"}))
		var ids []string
		for _, p := range out.Message(2).Parts() {
			ids = append(ids, p.(conversation.ToolResult).ID)
		}
		Expect(ids).To(Equal([]string{"1", "2", "3", "4"}))
	}, NodeTimeout(10*time.Second))

	It("takes latency from the clock: model steps one after another, parallel tools at the longest", func(ctx context.Context) {
		virtual := clock.NewVirtual(time.Unix(100, 0))
		m := &scripted{clock: virtual, took: 300 * time.Millisecond, steps: [][]any{calls(call{"1", "slow", "{}"}, call{"2", "slower", "{}"}), text("ok")}}
		timed := func(name string, took time.Duration) fakeTool {
			return fakeTool{spec: tool.Spec{Name: name, Effect: tool.Read}, run: func(_ context.Context, c tool.Call) (tool.Output, error) {
				virtual.AdvanceTo(c.At.Add(took))
				return tool.Output{Result: "1", Source: tool.Served, Took: took}, nil
			}}
		}
		l := loop(m, timed("slow", 50*time.Millisecond), timed("slower", 80*time.Millisecond))
		l.Clock = virtual
		response, _, err := l.Invoke(ctx, input(), "t")
		Expect(err).NotTo(HaveOccurred())
		Expect(response.LatencyMS).To(Equal(int64(300 + 80 + 300)))
		Expect(virtual.Now()).To(Equal(time.Unix(100, 0).Add(680 * time.Millisecond)))
	})

	It("ends with one error event that holds what came before", func(ctx context.Context) {
		m := &scripted{steps: [][]any{calls(call{"1", "good", "{}"}), {llm.TextDelta{Text: "half"}, errors.New("cut off")}}}
		events := drain(loop(m, echoTool("good", tool.Read)).Run(ctx, input(), "t"))
		last := events[len(events)-1]
		Expect(last.Type).To(Equal(llm.StreamError))
		Expect(last.Err).To(MatchError("cut off"))
		Expect(last.Response.Stop).To(Equal(llm.RunError))
		Expect(roles(last.Context)).To(Equal([]string{"user", "assistant", "tool"}))
		Expect(strings.Count(fmt.Sprint(types(events)), "error")).To(Equal(1))
	})

	It("treats a reply without a finish as an error", func(ctx context.Context) {
		m := &scripted{steps: [][]any{{llm.TextDelta{Text: "hm"}}}}
		_, _, err := loop(m).Invoke(ctx, input(), "t")
		Expect(err).To(MatchError(ContainSubstring("without a finish")))
	})

	It("closes the request and starts no tool when the host breaks off", func(ctx context.Context) {
		before := runtime.NumGoroutine()
		ran := false
		m := &scripted{steps: [][]any{append([]any{llm.TextDelta{Text: "x"}}, calls(call{"1", "t", "{}"})...)}}
		t := fakeTool{spec: tool.Spec{Name: "t"}, run: func(context.Context, tool.Call) (tool.Output, error) { ran = true; return tool.Text(""), nil }}
		for range loop(m, t).Run(ctx, input(), "t") {
			break
		}
		Expect(m.closed.Load()).To(Equal(int32(1)))
		Expect(ran).To(BeFalse())
		Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", before))
	})

	It("ends with the cause when the context ends", func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("too late")
		m := &scripted{steps: [][]any{calls(call{"1", "stop", "{}"}, call{"2", "stop", "{}"}), text("never")}}
		stop := fakeTool{spec: tool.Spec{Name: "stop", Effect: tool.Write}, run: func(context.Context, tool.Call) (tool.Output, error) { cancel(why); return tool.Text("x"), nil }}
		response, _, err := loop(m, stop).Invoke(ctx, input(), "t")
		Expect(err).To(MatchError(why))
		Expect(m.requests).To(HaveLen(1))
		Expect(response.ToolCalls).To(Equal(1))
	})

	It("ends where a tool says that the host has failed, and tells no model", func(ctx context.Context) {
		cause := errors.New("no space")
		m := &scripted{steps: [][]any{calls(call{"1", "good", "{}"}, call{"2", "broken", "{}"}), text("never")}}
		broken := fakeTool{spec: tool.Spec{Name: "broken", Effect: tool.Read}, run: func(context.Context, tool.Call) (tool.Output, error) {
			return tool.Output{}, &tool.AbortError{Err: cause}
		}}
		_, out, err := loop(m, echoTool("good", tool.Read), broken).Invoke(ctx, input(), "t")
		Expect(err).To(MatchError(cause))
		Expect(m.requests).To(HaveLen(1))
		Expect(roles(out)).To(Equal([]string{"user", "assistant"}))
	})

	It("pauses on a call that the host answers later", func(ctx context.Context) {
		m := &scripted{steps: [][]any{calls(call{"1", "ask", "{}"}, call{"2", "good", "{}"})}}
		ask := fakeTool{spec: tool.Spec{Name: "ask"}, run: func(context.Context, tool.Call) (tool.Output, error) { return tool.Output{Flow: tool.Pause}, nil }}
		response, out, err := loop(m, ask, echoTool("good", tool.Read)).Invoke(ctx, input(), "t")
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Stop).To(Equal(llm.RunPaused))
		Expect(out.Message(2).Len()).To(Equal(1))
	})
})

var _ = Describe("Generate", func() {
	It("puts a reply together from interleaved pieces", func(ctx context.Context) {
		m := &scripted{steps: [][]any{{
			llm.ReasoningDelta{Text: "I th"}, llm.ReasoningDelta{Text: "ink", Extras: conversation.Extras{{Vendor: "v", Data: `"sig"`}}},
			llm.TextDelta{Text: "Hel"}, llm.TextDelta{Text: "lo"}, llm.TextDelta{Extras: conversation.Extras{{Vendor: "v", Data: `"text"`}}},
			llm.CallStart{Index: 0, ID: "a", Name: "x"}, llm.CallStart{Index: 1, ID: "b", Name: "y"},
			llm.CallDelta{Index: 1, Arguments: `{"q":`}, llm.CallDelta{Index: 0, Arguments: `{}`}, llm.CallDelta{Index: 1, Arguments: `1}`},
			llm.Warning{Code: "c", Text: "w"},
			llm.Finish{Stop: llm.StopToolCalls, ID: "r"},
		}}}
		reply, err := llm.Generate(ctx, m, llm.Request{})
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Parts).To(Equal([]conversation.Content{
			conversation.Reasoning{Text: "I think", Extras: conversation.Extras{{Vendor: "v", Data: `"sig"`}}},
			conversation.Text{Text: "Hello", Extras: conversation.Extras{{Vendor: "v", Data: `"text"`}}},
			conversation.ToolCall{ID: "a", Name: "x", Input: "{}"},
			conversation.ToolCall{ID: "b", Name: "y", Input: `{"q":1}`},
		}))
		Expect(reply.Warnings).To(HaveLen(1))
		Expect(reply.Finish.ID).To(Equal("r"))
	})

	It("keeps a text that is only extras, and drops one that is nothing", func(ctx context.Context) {
		extras := conversation.Extras{{Vendor: "v", Data: "1"}}
		for _, want := range [][]conversation.Content{{conversation.Text{Extras: extras}}, nil} {
			delta := llm.TextDelta{}
			if want != nil {
				delta.Extras = extras
			}
			reply, err := llm.Generate(ctx, &scripted{steps: [][]any{{delta, llm.Finish{}}}}, llm.Request{})
			Expect(err).NotTo(HaveOccurred())
			Expect(reply.Parts).To(Equal(want))
		}
	})

	It("reports events after the finish", func(ctx context.Context) {
		m := &scripted{steps: [][]any{{llm.Finish{}, llm.TextDelta{Text: "more"}}}}
		_, err := llm.Generate(ctx, m, llm.Request{})
		Expect(err).To(MatchError(ContainSubstring("went on after")))
	})

	It("says who failed and how", func() {
		err := &llm.Error{Vendor: "openai", Status: 429, Code: "rate_limit_exceeded", Message: "slow down", RequestID: "req_1"}
		Expect(err.Error()).To(Equal("openai: status 429 (rate_limit_exceeded): slow down [request req_1]"))
		Expect((&llm.Error{Vendor: "openai", Err: errors.New("reset")}).Error()).To(Equal("openai: reset"))
	})
})
