package trace_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

func TestTrace(t *testing.T) { suite.Run(t, "trace") }

var (
	question = conversation.User("m1", conversation.Text{Text: "how warm?"})
	asks     = conversation.Assistant("m2", conversation.ToolCall{ID: "c1", Name: "weather", Input: `{"city":"Oslo"}`}).WithUsage(conversation.Usage{InputTokens: 5, OutputTokens: 2})
	answered = conversation.ToolResults("m2", conversation.ToolResult{ID: "c1", Result: `{"celsius":-3}`})
	weather  = tool.Spec{Name: "weather", Description: "tells the weather", Effect: tool.Read, Scope: tool.External, Parameters: `{"type":"object","properties":{"city":{"type":"string"}}}`}
)

// full has an event of every kind, with every field set.
func full() trace.Trace {
	request := func(system string, tools []tool.Spec, n int) *trace.Request {
		return &trace.Request{System: system, Tools: tools, Messages: n}
	}
	t := trace.Trace{Events: []trace.Event{
		{Kind: trace.KindStart, Start: &trace.Start{Agent: "a", Model: "m", MaxIterations: 5, Input: []conversation.Message{question}, Hidden: []string{"tenant", "user"}}},
		{Kind: trace.KindRequest, Step: 1, Request: request("be brief", []tool.Spec{weather}, 1)},
		{Kind: trace.KindExchange, Step: 1, AtMS: 3, Exchange: &trace.Exchange{Attempt: 1, Method: "POST", URL: "https://api.example.com/v1", Status: 429, DurationMS: 2, TTFTMS: -1, Source: "served", Interaction: 1, Leaks: []string{"tenant"}, Error: "too many"}},
		{Kind: trace.KindExchange, Step: 1, AtMS: 9, Exchange: &trace.Exchange{Attempt: 2, Method: "POST", URL: "https://api.example.com/v1", Status: 200, DurationMS: 4, TTFTMS: 1, Source: "served", Interaction: 2, Leaks: []string{}}},
		{Kind: trace.KindReply, Step: 1, AtMS: 9, Reply: &trace.Reply{Message: asks, Stop: "tool_calls", Model: "m-1", LatencyMS: 4, TTFTMS: 1, Retries: 1}},
		{Kind: trace.KindTool, Step: 1, AtMS: 10, Tool: &trace.ToolRun{Seq: 1, CallID: "c1", Name: "weather", Arguments: `{"city":"Oslo"}`, Effect: tool.Read, Scope: tool.External, Outcome: trace.Executed, Source: tool.Served, Result: `{"celsius":-3}`, DurationMS: 1, Paths: []string{"a/b"}}},
		{Kind: trace.KindTool, Step: 1, AtMS: 10, Tool: &trace.ToolRun{Seq: 2, CallID: "c2", Name: "weather", Arguments: "{\"city\":\n\"Os", Outcome: trace.Invalid, Result: `"no JSON"`, IsError: true, Paths: []string{}}},
		{Kind: trace.KindResults, Step: 1, AtMS: 10, Results: &trace.Results{Message: answered}},
		{Kind: trace.KindRequest, Step: 2, AtMS: 10, Request: request("be brief", []tool.Spec{weather}, 3)},
		{Kind: trace.KindRequest, Step: 3, AtMS: 11, Request: request("", []tool.Spec{weather}, 3)},
		{Kind: trace.KindRequest, Step: 4, AtMS: 12, Request: request("", nil, 3)},
		{Kind: trace.KindRequest, Step: 5, AtMS: 13, Request: request("be brief", []tool.Spec{weather, weather}, 3)},
		{Kind: trace.KindReply, Step: 5, AtMS: 14, Reply: &trace.Reply{Message: conversation.Assistant("m2"), Stop: "end", TTFTMS: -1}},
		{Kind: trace.KindWarning, Step: 5, AtMS: 14, Warning: &trace.Warning{Code: "left-out", Text: "an image\nwas left out"}},
		{Kind: trace.KindEnd, Step: 5, AtMS: 15, End: &trace.End{Stop: "error", Error: "cut", Usage: conversation.Usage{InputTokens: 5, ReasoningTokens: 1}, Steps: 5, Context: []string{trace.Digest(question)}, Terminals: 1, After: 2, Input: []string{trace.Digest(question)}}},
	}}
	for i := range t.Events {
		t.Events[i].N = i + 1
	}
	return t
}

var _ = Describe("the codec of traces", func() {
	It("has one form", func() {
		var lines []string
		var previous *trace.Request
		for _, e := range full().Events {
			lines = append(lines, string(e.AppendJSON(nil, previous)))
			Expect(lines[len(lines)-1]).NotTo(ContainSubstring("\n"))
			if e.Request != nil {
				previous = e.Request
			}
		}
		suite.Golden("full.jsonl", []byte(strings.Join(lines, "\n")+"\n"))
	})

	It("reads what it wrote", func() {
		t := full()
		data, err := json.Marshal(t)
		Expect(err).NotTo(HaveOccurred())
		back, err := trace.Decode(data)
		Expect(err).NotTo(HaveOccurred())
		Expect(back.Events).To(HaveLen(len(t.Events)))
		for i, e := range t.Events {
			Expect(back.Events[i]).To(Equal(e), "event %d", i+1)
		}
		var again trace.Trace
		Expect(json.Unmarshal(data, &again)).To(Succeed())
		Expect(again).To(Equal(back))
		Expect(string(again.AppendJSON(nil))).To(Equal(string(data)))
	})

	It("never writes the values of tool_context", func() {
		t := full()
		t.Hidden = conversation.Hidden{"tenant": `"very-secret"`}
		Expect(string(t.AppendJSON(nil))).NotTo(ContainSubstring("very-secret"))
	})

	It("says the system prompt and the tools again only where they change", func() {
		text := string(full().AppendJSON(nil))
		Expect(strings.Count(text, `"system":`)).To(Equal(3), "first, empty, back again")
		Expect(strings.Count(text, `"tools":`)).To(Equal(3), "first, none, two")
	})

	It("keeps malformed arguments and those on several lines", func() {
		for _, arguments := range []conversation.JSON{`{"a":`, "{\n\"a\":1\n}", `[1]`, `{"n":123456789012345678901234567890}`, `{"a": 1}`} {
			t := trace.Trace{Events: []trace.Event{{N: 1, Kind: trace.KindTool, Tool: &trace.ToolRun{Arguments: arguments, Result: "{\n}"}}}}
			text := t.AppendJSON(nil)
			Expect(string(text)).NotTo(ContainSubstring("\n"))
			back, err := trace.Decode(text)
			Expect(err).NotTo(HaveOccurred())
			Expect(back.Events[0].Tool.Arguments).To(Equal(arguments))
			Expect(back.Events[0].Tool.Result).To(Equal(conversation.JSON(`{}`)))
		}
	})

	It("ignores what a later version added", func() {
		t, err := trace.Decode([]byte(`[{"n":1,"kind":"new-kind","step":2,"at_ms":3,"what":{}},{"n":2,"kind":"warning","step":2,"at_ms":3,"code":"c","text":"t","new":1}]`))
		Expect(err).NotTo(HaveOccurred())
		Expect(t.Events).To(Equal([]trace.Event{{N: 1, Kind: "new-kind", Step: 2, AtMS: 3}, {N: 2, Kind: trace.KindWarning, Step: 2, AtMS: 3, Warning: &trace.Warning{Code: "c", Text: "t"}}}))
		Expect(string(t.AppendJSON(nil))).To(HavePrefix(`[{"n":1,"kind":"new-kind","step":2,"at_ms":3},`))
	})

	DescribeTable("refuses", func(text, says string) {
		_, err := trace.Decode([]byte(text))
		Expect(err).To(MatchError(ContainSubstring(says)))
		t := trace.Trace{Events: []trace.Event{{N: 7}}}
		Expect(t.UnmarshalJSON([]byte(text))).NotTo(Succeed())
		Expect(t.Events).To(HaveLen(1))
	},
		Entry("no JSON", `[`, "reading a trace"),
		Entry("no list", `{}`, "reading a trace"),
		Entry("a reply without message", `[{"n":1,"kind":"reply"}]`, "event 1: reading a message"),
		Entry("a message of an unknown type", `[{"n":1,"kind":"warning"},{"n":2,"kind":"results","message":{"role":"tool","content":[{"type":"x"}]}}]`, `event 2: content[0]: unknown content type "x"`),
		Entry("an end without usage", `[{"n":1,"kind":"end"}]`, "event 1: reading a usage"),
		Entry("an input of another type", `[{"n":1,"kind":"start","input":7}]`, "event 1: "),
	)
})

var _ = Describe("digests", func() {
	It("are 16 hex digits over the JSON of a message", func() {
		Expect(trace.Digest(question)).To(MatchRegexp("^[0-9a-f]{16}$"))
		Expect(trace.Digest(question)).NotTo(Equal(trace.Digest(question.WithTime(1))))
		c, err := conversation.New(nil).Append(question, asks)
		Expect(err).NotTo(HaveOccurred())
		Expect(trace.Digests(c)).To(Equal([]string{trace.Digest(question), trace.Digest(asks)}))
		Expect(trace.Digests(conversation.Context{})).To(BeEmpty())
	})
})

var _ = Describe("a recorder", func() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	It("numbers and dates events by its own clock", func() {
		c := clock.NewVirtual(start)
		r := trace.NewRecorder(c)
		r.Add(trace.Event{Kind: trace.KindStart, N: 99, Step: 99, AtMS: 99, Start: &trace.Start{}})
		r.Step(1)
		c.AdvanceTo(start.Add(1500 * time.Millisecond))
		r.Warn("code", "text")
		Expect(r.Events()).To(Equal([]trace.Event{
			{N: 1, Kind: trace.KindStart, Start: &trace.Start{}},
			{N: 2, Kind: trace.KindWarning, Step: 1, AtMS: 1500, Warning: &trace.Warning{Code: "code", Text: "text"}},
		}))
	})

	It("knows the exchanges of the current step, in order", func() {
		r := trace.NewRecorder(clock.NewVirtual(start))
		Expect(r.Exchanges()).To(BeEmpty())
		r.Step(1)
		r.Add(trace.Event{Kind: trace.KindExchange, Exchange: &trace.Exchange{Attempt: 1}})
		r.Step(2)
		r.Warn("a", "b")
		r.Add(trace.Event{Kind: trace.KindExchange, Exchange: &trace.Exchange{Attempt: 2}})
		r.Warn("a", "b")
		r.Add(trace.Event{Kind: trace.KindExchange, Exchange: &trace.Exchange{Attempt: 3}})
		Expect(r.Exchanges()).To(Equal([]trace.Exchange{{Attempt: 2}, {Attempt: 3}}))
		r.Step(3)
		Expect(r.Exchanges()).To(BeEmpty())
	})

	It("records nothing when it is nil", func() {
		var r *trace.Recorder
		r.Step(1)
		r.Add(trace.Event{})
		r.Warn("a", "b")
		Expect(r.Exchanges()).To(BeNil())
		Expect(r.Events()).To(BeNil())
		Expect(trace.FromContext(GinkgoT().Context())).To(BeNil())
	})

	It("is carried by a context", func() {
		r := trace.NewRecorder(clock.NewVirtual(start))
		Expect(trace.FromContext(trace.WithRecorder(GinkgoT().Context(), r))).To(BeIdenticalTo(r))
	})

	It("takes events from many goroutines, numbers without gaps, time never backwards", func() {
		c := clock.NewVirtual(start)
		r := trace.NewRecorder(c)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				c.AdvanceTo(start.Add(time.Duration(i) * time.Millisecond))
				r.Add(trace.Event{Kind: trace.KindExchange, Exchange: &trace.Exchange{}})
				r.Exchanges()
			})
		}
		wg.Wait()
		events := r.Events()
		Expect(events).To(HaveLen(100))
		for i, e := range events {
			Expect(e.N).To(Equal(i + 1))
			if i > 0 {
				Expect(e.AtMS).To(BeNumerically(">=", events[i-1].AtMS))
			}
		}
	})
})

func FuzzDecode(f *testing.F) {
	f.Add(full().AppendJSON(nil))
	f.Add([]byte(`[{"n":1,"kind":"a\"b"},{"kind":"request"},{"kind":"tool","arguments":null,"arguments_raw":"{"},{"kind":"exchange","ttft_ms":-5}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := trace.Decode(data)
		if err != nil {
			return
		}
		text := decoded.AppendJSON(nil)
		if strings.ContainsAny(string(text), "\n\r") {
			t.Fatalf("a line break: %s", text)
		}
		back, err := trace.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again := back.AppendJSON(nil); string(again) != string(text) {
			t.Fatalf("%s became %s", text, again)
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	t := full()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = t.AppendJSON(dst[:0])
	}
}

func ExampleRecorder() {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	r := trace.NewRecorder(c)
	c.AdvanceTo(c.Now().Add(20 * time.Millisecond))
	r.Warn("recursive-schema", "tool tree: only its type is kept")
	fmt.Println(string(trace.Trace{Events: r.Events()}.AppendJSON(nil)))
	// Output: [{"n":1,"kind":"warning","step":0,"at_ms":20,"code":"recursive-schema","text":"tool tree: only its type is kept"}]
}
