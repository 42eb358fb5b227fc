package target_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/target"
)

// chat is an exchange with a model: the messages of the request and the message of the reply, in JSON.
func chat(messages, reply string) *target.Exchange {
	return &target.Exchange{
		Service: target.Service{Name: "openai", Model: true}, Method: "POST", Path: "/v1/chat/completions", Status: 200,
		Request:  []byte(`{"model":"m","messages":[` + messages + `],"tools":[{"type":"function","function":{"name":"find","description":"Finds.","parameters":{"type":"object"}}}]}`),
		Reply:    []byte(`{"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":` + reply + `}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`),
		Attempts: []trace.Exchange{{Method: "POST", Status: 200, DurationMS: 30, TTFTMS: -1, Source: "served", Interaction: 1}},
	}
}

const (
	asks    = `{"role":"system","content":"Be kind."},{"role":"user","content":"Where is order 7?"}`
	calls   = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"order\":7}"}}]}`
	results = `{"role":"tool","tool_call_id":"c1","content":"{\"at\":\"sea\"}"}`
	says    = `{"role":"assistant","content":"At sea."}`
)

func tell(turn target.Turn) ([]trace.Event, target.Told) {
	teller := &target.Teller{}
	turn.Agent, turn.MessageID = "target x", "m1"
	if turn.Given == nil {
		turn.Given = []conversation.Message{conversation.User("u1", conversation.Text{Text: "Where is order 7?"})}
	}
	told := teller.Tell(turn)
	return teller.Events(), told
}

// kinds names the events in short.
func kinds(events []trace.Event) string {
	var out []string
	for i, e := range events {
		Expect(e.N).To(Equal(i + 1))
		out = append(out, string(e.Kind))
	}
	return strings.Join(out, " ")
}

// violations are the standard invariants that a trace breaks.
func violations(events []trace.Event) []string {
	var p strict.Problems
	found := invariant.Select(nil, nil, &p).Evaluate(trace.Trace{Events: events, Hidden: conversation.Hidden{}})
	var names []string
	for _, v := range found.Violations {
		names = append(names, v.Name+": "+v.Evidence)
	}
	return names
}

var _ = Describe("the trace of a program", func() {
	It("has the steps of the model, and the tools whose results it was told", func() {
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{chat(asks, calls), chat(asks+","+calls+","+results, says)}, Answer: target.Answer{Output: "At sea."}})
		Expect(kinds(events)).To(Equal("start request exchange reply tool results request exchange reply end"))
		Expect(events[0].Start.Input).To(HaveLen(1))
		Expect(events[1].Request.System).To(Equal("Be kind."))
		Expect(events[1].Request.Tools[0].Name).To(Equal("find"))
		run := events[4].Tool
		Expect(run.CallID).To(Equal("c1"))
		Expect(run.Arguments).To(BeEquivalentTo(`{"order":7}`))
		Expect(run.Result).To(BeEquivalentTo(`{"at":"sea"}`))
		Expect(run.Outcome).To(Equal(trace.Executed))
		Expect(events[8].AtMS).To(BeEquivalentTo(60))
		Expect(told.Response.Steps).To(Equal(2))
		Expect(told.Response.ToolCalls).To(Equal(1))
		Expect(told.Response.LatencyMS).To(BeEquivalentTo(60))
		Expect(told.Response.Usage.InputTokens).To(Equal(20))
		Expect(told.Spent).To(HaveLen(2))
		Expect(told.Spent[0].Model).To(Equal("m"))
		Expect(violations(events)).To(BeEmpty())
	})

	It("takes each further conversation for a run of its own, and calls that nobody answers for output", func() {
		other := `{"role":"user","content":"Is it polite?"}`
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{chat(asks, calls), chat(other, says)}, Answer: target.Answer{Output: `{"order":7}`}})
		Expect(kinds(events)).To(Equal("start request exchange reply end start request exchange reply reply end"))
		Expect(events[4].End.Stop).To(Equal(llm.RunPaused))
		Expect(told.Response.Calls).To(Equal(1))
		Expect(told.Response.ToolCalls).To(Equal(0))
		Expect(violations(events)).To(BeEmpty())
		events, _ = tell(target.Turn{Exchanges: []*target.Exchange{chat(asks, calls)}, Answer: target.Answer{Output: `{"order":7}`}})
		Expect(violations(events)).To(BeEmpty())
	})

	It("tells the effect and the source of wrapped tools", func() {
		wrapped := &target.ToolRun{Name: "find", Arguments: `{ "order": 7 }`, Effect: tool.Read, Output: tool.Output{Result: `{"at":"sea"}`, Source: tool.Served}}
		alone := &target.ToolRun{Name: "clean", Arguments: `{}`, Effect: tool.Write, Output: tool.Output{Result: `true`, Source: tool.Ran}}
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{chat(asks, calls), chat(asks+","+calls+","+results, says)}, Runs: []*target.ToolRun{alone, wrapped}, Answer: target.Answer{Output: "At sea."}})
		Expect(kinds(events)).To(Equal("start request exchange reply tool results request exchange reply tool end"))
		Expect(events[4].Tool.Source).To(Equal(tool.Served))
		Expect(events[4].Tool.Effect).To(Equal(tool.Read))
		Expect(events[9].Tool.Name).To(Equal("clean"))
		Expect(told.Response.ToolCalls).To(Equal(2))
	})

	It("reads streams, by pieces", func() {
		x := chat(asks, says)
		x.Stream = true
		x.Reply = []byte("data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"find\",\"arguments\":\"{\\\"or\"}}]}}]}\n\n" +
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"der\\\":7}\"}}]}}]}\r\n\r\n" +
			"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n")
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{x}, Answer: target.Answer{Output: "x"}})
		reply := events[3].Reply
		Expect(reply.Message.ToolCalls()[0].Input).To(BeEquivalentTo(`{"order":7}`))
		Expect(reply.Stop).To(Equal("tool_calls"))
		Expect(told.Response.Usage.CacheReadTokens).To(Equal(2))
	})

	It("says of traffic that it cannot read that it is not read", func() {
		x := chat(asks, says)
		x.Path = "/v1/responses"
		broken := chat(asks, says)
		broken.Reply = []byte("{")
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{x, x, broken}, Answer: target.Answer{Output: "x"}})
		Expect(kinds(events)).To(Equal("start exchange warning exchange exchange warning reply end"))
		Expect(events[2].Warning.Text).To(ContainSubstring("openai/v1/responses"))
		Expect(told.Asked).To(Equal(3))
		Expect(told.Spent[0].Usage).To(BeNil())
		Expect(violations(events)).To(BeEmpty())
	})

	It("keeps what came before an error", func() {
		failed := chat(asks, says)
		failed.Status, failed.Reply = 503, []byte("busy")
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{failed}, Err: errors.New("crashed")})
		Expect(kinds(events)).To(Equal("start request exchange end"))
		Expect(events[3].End.Error).To(Equal("crashed"))
		Expect(told.Failed).To(BeIdenticalTo(failed))
		Expect(violations(events)).To(BeEmpty())
	})

	It("does not count what a service was told as a leak to a model", func() {
		x := &target.Exchange{Service: target.Service{Name: "CRM_URL"}, Method: "GET", Path: "/o", Status: 200, Attempts: []trace.Exchange{{Leaks: []string{"tenant_id"}}}}
		events, told := tell(target.Turn{Exchanges: []*target.Exchange{x}})
		Expect(events[1].Exchange.Leaks).To(BeEmpty())
		Expect(told.Asked).To(Equal(0))
	})
})

// FuzzTell gives the reader of OpenAI's format traffic that nobody sends: the trace can be written and read, and its numbers run on.
func FuzzTell(f *testing.F) {
	f.Add(asks, calls, false)
	f.Add(asks+","+calls+","+results, says, false)
	f.Add(asks, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1}]}}]}\n\n", true)
	f.Add(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}},{"type":"file","file":{"file_data":"data:application/pdf;base64,QQ=="}}]}`, `{"content":null,"function_call":{"name":"f"}}`, false)
	f.Add(`{"role":7}`, `[]`, false)
	f.Fuzz(func(t *testing.T, messages, reply string, stream bool) {
		x := chat(messages, reply)
		if stream {
			x.Stream, x.Reply = true, []byte(reply)
		}
		teller := &target.Teller{}
		teller.Tell(target.Turn{Agent: "a", MessageID: "m", Exchanges: []*target.Exchange{x, x}, Answer: target.Answer{Output: "o"}})
		text := trace.Trace{Events: teller.Events()}.AppendJSON(nil)
		back, err := trace.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, e := range back.Events {
			if e.N != i+1 {
				t.Fatal(fmt.Sprint("event ", i+1, " has the number ", e.N))
			}
		}
	})
}
