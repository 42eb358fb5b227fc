package gemini_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/gemini"
)

func TestGemini(t *testing.T) { suite.Run(t, "gemini") }

// server is a round tripper that answers with bytes and keeps what it was asked.
type server struct {
	status int
	header http.Header
	body   string
	err    error

	mu     sync.Mutex
	asked  string
	last   *http.Request
	closed int
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.last = string(data), req
	if s.err != nil {
		return nil, s.err
	}
	status, header := s.status, s.header
	if status == 0 {
		status = http.StatusOK
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: &closing{strings.NewReader(s.body), s}, ContentLength: -1, Request: req}, nil
}

type closing struct {
	io.Reader
	s *server
}

func (c *closing) Close() error { c.s.closed++; return nil }

func newModel(config gemini.Config, rt http.RoundTripper) llm.Model {
	GinkgoHelper()
	if config.Model == "" {
		config.Model = "gemini-2.5-flash"
	}
	m, err := gemini.New(config, rt)
	Expect(err).NotTo(HaveOccurred())
	return m
}

func ask(parts ...conversation.Content) llm.Request {
	return llm.Request{Messages: []conversation.Message{conversation.User("m", parts...)}}
}

func hello() llm.Request { return ask(conversation.Text{Text: "Hello?"}) }

const done = `{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1},"responseId":"r"}`

// sent is the body of a request.
func sent(model string, req llm.Request) (string, []llm.Warning) {
	GinkgoHelper()
	s := &server{body: done}
	reply, err := llm.Generate(context.Background(), newModel(gemini.Config{Model: model}, s), req)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.closed).To(Equal(1))
	return s.asked, reply.Warnings
}

// got is what a model makes of a reply's body.
func got(body string) (llm.Reply, error) {
	GinkgoHelper()
	return llm.Generate(context.Background(), newModel(gemini.Config{}, &server{body: body}), hello())
}

func signature(s string) conversation.Extras {
	return conversation.Extras(nil).With(gemini.Name, conversation.String(s))
}

var _ = Describe("a request", func() {
	It("goes where the vendor's SDK sends it, without a key of anybody", func() {
		for blocking, want := range map[bool]string{
			false: "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
			true:  "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
		} {
			s := &server{body: done}
			req := hello()
			req.Blocking = blocking
			_, err := llm.Generate(context.Background(), newModel(gemini.Config{Model: "models/gemini-2.5-flash"}, s), req)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.last.URL.String()).To(Equal(want))
			Expect(s.last.Header.Get(gemini.KeyHeader)).To(Equal("placeholder"))
			Expect(s.asked).To(MatchJSON(`{"contents":[{"role":"user","parts":[{"text":"Hello?"}]}]}`))
		}
	})

	It("says settings as they were given", func() {
		n, zero, p, seed := 100, 0.0, 0.123456789012, int64(1<<40)
		no := false
		req := hello()
		req.Settings = llm.Settings{MaxTokens: &n, Temperature: &zero, TopP: &p, Seed: &seed, Stop: []string{"x"}, ResponseSchema: `{"type":"object"}`, ParallelToolCalls: &no, ToolChoice: "lookup"}
		req.Tools = []tool.Spec{{Name: "lookup", Description: "d", Parameters: `{"type":"object","properties":{"z":{"type":"string"},"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer","maximum":9007199254740993}}}`}}
		body, warnings := sent("gemini-2.5-flash", req)
		Expect(body).To(ContainSubstring(`"generationConfig":{"maxOutputTokens":100,"temperature":0,"topP":0.123456789012,"seed":1099511627776,"stopSequences":["x"],"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}`))
		Expect(body).To(ContainSubstring(`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["lookup"]}}`))
		Expect(body).To(ContainSubstring(`"tools":[{"functionDeclarations":[{"name":"lookup","description":"d","parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","maximum":9007199254740993}}}}]}]`))
		Expect(warnings).To(HaveExactElements(HaveField("Code", "parallel-tool-calls-left-out")))
	})

	DescribeTable("says how long to think where the model takes it", func(model string, settings llm.Settings, want string, warning string) {
		req := hello()
		req.Settings = settings
		body, warnings := sent(model, req)
		if want == "" {
			Expect(body).NotTo(ContainSubstring("thinkingConfig"))
		} else {
			Expect(body).To(ContainSubstring(`"thinkingConfig":` + want))
		}
		if warning == "" {
			Expect(warnings).To(BeEmpty())
			return
		}
		Expect(warnings).To(HaveExactElements(HaveField("Code", warning)))
		req.Settings.Strict = true
		s := &server{body: done}
		_, err := llm.Generate(context.Background(), newModel(gemini.Config{Model: model}, s), req)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(s.last).To(BeNil(), "nothing is sent")
	},
		Entry("a level", "gemini-3-pro-preview", llm.Settings{Thinking: llm.Thinking{Level: "low"}}, `{"includeThoughts":true,"thinkingLevel":"low"}`, ""),
		Entry("a level for a model without", "gemini-2.5-flash", llm.Settings{Thinking: llm.Thinking{Level: "low"}}, "", "thinking-level-left-out"),
		Entry("a budget", "gemini-2.5-flash", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(128)}}, `{"includeThoughts":true,"thinkingBudget":128}`, ""),
		Entry("no thinking", "gemini-2.5-flash", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(0)}}, `{"thinkingBudget":0}`, ""),
		Entry("a budget for a model without", "gemini-2.0-flash", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(128)}}, "", "thinking-budget-left-out"),
	)

	It("keeps parts, arguments and results as they are, and names tools by their calls", func() {
		req := llm.Request{System: "Be exact.", Messages: []conversation.Message{
			conversation.NewMessage(conversation.RoleSystem, "s", conversation.Text{Text: "Be short."}),
			conversation.User("m", conversation.Text{Text: "<a & b>"}, conversation.Document{MediaType: "application/pdf", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://d.example/a.pdf"}}),
			conversation.Assistant("m",
				conversation.Reasoning{Text: "mine", Extras: signature("cg==")}, conversation.Reasoning{Text: "somebody's"},
				conversation.Text{Text: "I look."},
				conversation.ToolCall{ID: "1", Name: "a", Input: `{"z":1.0,"a":90071992547409931}`, Extras: signature("Yw==")},
				conversation.ToolCall{ID: "2", Name: "b"}),
			conversation.ToolResults("m", conversation.ToolResult{ID: "2", Result: `{"n":90071992547409931}`}, conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "aGk="}}),
			conversation.ToolResults("m", conversation.ToolResult{ID: "1", Result: `"gone"`, IsError: true}),
			conversation.Assistant("m", conversation.Text{Extras: signature("ZW5k")}),
			conversation.User("m"),
		}}
		body, warnings := sent("gemini-3-pro-preview", req)
		Expect(body).To(MatchJSON(`{"systemInstruction":{"parts":[{"text":"Be exact.\n\nBe short."}]},"contents":[
			{"role":"user","parts":[{"text":"<a & b>"},{"fileData":{"mimeType":"application/pdf","fileUri":"https://d.example/a.pdf"}}]},
			{"role":"model","parts":[{"text":"mine","thought":true,"thoughtSignature":"cg=="},{"text":"I look."},
				{"functionCall":{"id":"1","name":"a","args":{"z":1.0,"a":90071992547409931}},"thoughtSignature":"Yw=="},{"functionCall":{"id":"2","name":"b","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"2","name":"b","response":{"result":"{\"n\":90071992547409931}"}}},{"functionResponse":{"id":"1","name":"a","response":{"error":"gone"}}}]},
			{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},
			{"role":"model","parts":[{"text":"","thoughtSignature":"ZW5k"}]}]}`))
		Expect(body).To(ContainSubstring(`{"z":1.0,"a":90071992547409931}`), "digits and order")
		Expect(warnings).To(ConsistOf(HaveField("Code", "reasoning-left-out"), HaveField("Code", "tool-media-moved")))
	})

	It("says where a signature is missing that the model insists on", func() {
		call := conversation.ToolCall{ID: "1", Name: "a", Input: "{}"}
		req := llm.Request{Messages: []conversation.Message{
			conversation.User("m", conversation.Text{Text: "x"}), conversation.Assistant("m", call, conversation.ToolCall{ID: "2", Name: "a"}),
			conversation.ToolResults("m", conversation.ToolResult{ID: "1", Result: "1"}, conversation.ToolResult{ID: "2", Result: "2"}),
		}}
		body, _ := sent("gemini-3-pro-preview", req)
		Expect(strings.Count(body, "thoughtSignature")).To(Equal(1))
		Expect(body).To(ContainSubstring(`"args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"2"`))
		body, _ = sent("gemini-2.5-flash", req)
		Expect(body).NotTo(ContainSubstring("thoughtSignature"))
	})

	DescribeTable("leaves out what cannot be sent, with a warning or strictly not at all", func(code string, messages ...conversation.Message) {
		req := llm.Request{Messages: append([]conversation.Message{conversation.User("m", conversation.Text{Text: "x"})}, messages...)}
		_, warnings := sent("gemini-2.5-flash", req)
		Expect(warnings).To(HaveExactElements(HaveField("Code", code)))
		req.Settings.Strict = true
		s := &server{body: done}
		_, err := llm.Generate(context.Background(), newModel(gemini.Config{}, s), req)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(s.last).To(BeNil())
	},
		Entry("a GIF", "image-left-out", conversation.User("m", conversation.Image{MediaType: "image/gif", Source: conversation.Source{Type: conversation.SourceBase64, Data: "R0lGODlh"}})),
		Entry("arguments that are no JSON", "arguments-left-out", conversation.Assistant("m", conversation.ToolCall{ID: "1", Name: "a", Input: `{"a`}), conversation.ToolResults("m", conversation.ToolResult{ID: "1", Result: "1"})),
		Entry("arguments that are no object", "arguments-left-out", conversation.Assistant("m", conversation.ToolCall{ID: "1", Name: "a", Input: `[1]`}), conversation.ToolResults("m", conversation.ToolResult{ID: "1", Result: "1"})),
		Entry("a result without a call", "result-left-out", conversation.ToolResults("m", conversation.ToolResult{ID: "1", Result: "1"})),
	)

	DescribeTable("is not made of a configuration that cannot work, and no key is told", func(config gemini.Config) {
		if config.Placeholder == "" {
			config.Placeholder = "AIzaSyDUMMY"
		}
		_, err := gemini.New(config, &server{})
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err.Error()).NotTo(Or(ContainSubstring("AIza"), ContainSubstring("hunter2")))
	},
		Entry("no model", gemini.Config{}),
		Entry("a model that is a query", gemini.Config{Model: "m?key=x"}),
		Entry("a model that climbs", gemini.Config{Model: "../m"}),
		Entry("a user in the address", gemini.Config{Model: "m", BaseURL: "https://u:hunter2@h"}),
		Entry("a key in the address", gemini.Config{Model: "m", BaseURL: "https://h/?key=hunter2"}),
		Entry("another scheme", gemini.Config{Model: "m", BaseURL: "ftp://h"}),
	)
})

func ptr[T any](v T) *T { return &v }

var _ = Describe("a reply", func() {
	It("gives reasoning, texts, calls and images in their order, with their signatures", func() {
		reply, err := got(`{"candidates":[{"content":{"parts":[
			{"text":"hm","thought":true},{"text":"","thought":true,"thoughtSignature":"cg=="},{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"aGk="}},{"text":"b"},
			{"functionCall":{"id":"x","name":"f","args":{"z":1.0,"a":90071992547409931}},"thoughtSignature":"Yw=="},{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"name":"g","args":null}},
			{"text":"","thoughtSignature":"ZW5k"},{"executableCode":{"code":"1"}},{"inlineData":{"mimeType":"audio/wav","data":"aGk="}},{}]},"finishReason":"STOP"},
			{"index":1,"content":{"parts":[{"text":"another candidate"}]},"finishReason":"SAFETY"}],
			"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":1,"candidatesTokenCount":5,"thoughtsTokenCount":7,"cachedContentTokenCount":4,"totalTokenCount":23},"modelVersion":"v","responseId":"r"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Parts).To(HaveLen(9))
		second, third := reply.Parts[5].(conversation.ToolCall), reply.Parts[6].(conversation.ToolCall)
		Expect(reply.Parts).To(Equal([]conversation.Content{
			conversation.Reasoning{Text: "hm", Extras: signature("cg==")}, conversation.Text{Text: "a"},
			conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "aGk="}}, conversation.Text{Text: "b"},
			conversation.ToolCall{ID: "x", Name: "f", Input: `{"z":1.0,"a":90071992547409931}`, Extras: signature("Yw==")},
			conversation.ToolCall{ID: second.ID, Name: "f", Input: "{}"}, conversation.ToolCall{ID: third.ID, Name: "g", Input: "{}"},
			conversation.Text{Extras: signature("ZW5k")},
			conversation.Reasoning{Extras: conversation.Extras{{Vendor: "gemini", Data: `[{"executableCode":{"code":"1"}}]`}}},
		}))
		Expect(second.ID).To(HavePrefix("call_"))
		Expect(third.ID).To(And(HavePrefix("call_"), Not(Equal(second.ID))))
		Expect(reply.Finish).To(Equal(llm.Finish{Stop: llm.StopToolCalls, Model: "v", ID: "r", Usage: conversation.Usage{InputTokens: 11, OutputTokens: 12, CacheReadTokens: 4, ReasoningTokens: 7}}))
		Expect(reply.Warnings).To(ConsistOf(
			llm.Warning{Code: "call-id-repeated", Text: `two calls of the reply had the id "x"; the later one got another`},
			llm.Warning{Code: "content-opaque", Text: "a part with executableCode is kept unread"},
			llm.Warning{Code: "content-left-out", Text: `data of type "audio/wav" was left out of the reply`}))
	})

	DescribeTable("says why it ended", func(body string, want llm.StopReason) {
		reply, err := got(body)
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Finish.Stop).To(Equal(want))
	},
		Entry("stop", `{"candidates":[{"finishReason":"STOP"}]}`, llm.StopEnd),
		Entry("stop as a number", `{"candidates":[{"finishReason":1}]}`, llm.StopEnd),
		Entry("limit", `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, llm.StopLength),
		Entry("filter", `{"candidates":[{"finishReason":"SAFETY"}]}`, llm.StopRefused),
		Entry("recitation", `{"candidates":[{"finishReason":"RECITATION"}]}`, llm.StopRefused),
		Entry("malformed call", `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`, llm.StopOther),
		Entry("a word of tomorrow", `{"candidates":[{"finishReason":"TIRED"}]}`, llm.StopOther),
		Entry("blocked prompt", `{"promptFeedback":{"blockReason":"SAFETY"}}`, llm.StopRefused),
	)

	It("tells a blocked prompt from a refusal", func() {
		reply, err := got(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Parts).To(BeEmpty())
		Expect(reply.Warnings).To(Equal([]llm.Warning{{Code: "prompt-blocked", Text: "the vendor blocked the prompt: PROHIBITED_CONTENT"}}))
	})

	DescribeTable("that is not whole or not a reply is an error", func(body string, unexpected bool, text string) {
		_, err := got(body)
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect(errors.Is(err, io.ErrUnexpectedEOF)).To(Equal(unexpected))
		Expect(err.Error()).To(ContainSubstring(text))
		Expect(err.Error()).NotTo(ContainSubstring("AIzaSyA"))
	},
		Entry("no finish reason", `{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`, true, "without a finish reason"),
		Entry("an unspecified one", `{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`, true, "without a finish reason"),
		Entry("nothing", ``, true, "the reply is empty"),
		Entry("an empty object", `{}`, true, "holds no answer"),
		Entry("a torn array", `[{"candidates":[{"content":{"parts":[{"text":"x"}]}}]},`, true, "within a frame"),
		Entry("HTML", "<html>key AIzaSyA1234567890abcdefghijklmnopqrstuv</html>", false, "neither JSON nor an event stream"),
		Entry("JSON of another type", `{"candidates":5}`, false, "reading a frame"),
		Entry("no JSON", `{"candidates":[}`, false, "no valid JSON"),
		Entry("an error", `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`, false, "overloaded"),
		Entry("an error in an array", `[{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]`, false, "overloaded"),
		Entry("an error without a field's name", "data: {}\n\n{\n \"error\": {\"message\": \"overloaded\"}\n}\n", false, "overloaded"),
	)

	It("takes the vendor's word for when to try again, and what was wrong", func() {
		s := &server{status: 429, body: `[{"error":{"code":429,"message":"slow\ndown AIzaSyA1234567890abcdefghijklmnopqrstuv","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"},{"requestId":"q"}]}}]`}
		_, err := llm.Generate(context.Background(), newModel(gemini.Config{}, s), hello())
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(*e).To(Equal(llm.Error{Vendor: "gemini", Status: 429, Type: "RESOURCE_EXHAUSTED", Code: "RATE_LIMIT", Message: "slow down [google-key]", RequestID: "q", RetryAfter: 1500 * time.Millisecond, Retryable: true}))
		Expect(s.closed).To(Equal(1))

		s = &server{status: 503, header: http.Header{"Retry-After": {"Thu, 01 Jan 2026 00:00:07 GMT"}}, body: "<html>busy</html>"}
		_, err = llm.Generate(context.Background(), newModel(gemini.Config{Clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}, s), hello())
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(e.RetryAfter).To(Equal(7 * time.Second))
	})

	It("says when to try again in a header too, for those who repeat requests", func() {
		const body = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"1.5s"}]}}`
		for _, c := range []struct {
			status   int
			header   http.Header
			body     string
			ms, want string
		}{
			{429, http.Header{}, body, "1500", ""},
			{429, http.Header{"Retry-After": {"2"}}, body, "", "2"},
			{503, http.Header{}, "<html>", "", ""},
			{200, http.Header{}, body, "", ""},
		} {
			s := &server{status: c.status, header: c.header, body: c.body}
			resp, err := gemini.RetryAfter(s).RoundTrip(httptest.NewRequest(http.MethodPost, "https://h/", strings.NewReader("")))
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Header.Get("Retry-After-Ms")).To(Equal(c.ms))
			Expect(resp.Header.Get("Retry-After")).To(Equal(c.want))
			data, err := io.ReadAll(resp.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(data)).To(Equal(c.body))
			Expect(resp.Body.Close()).To(Succeed())
			Expect(s.closed).To(Equal(1))
		}
	})

	It("follows no redirect", func() {
		s := &server{status: 307, header: http.Header{"Location": {"https://elsewhere.example"}}}
		_, err := llm.Generate(context.Background(), newModel(gemini.Config{}, s), hello())
		Expect(err).To(MatchError(ContainSubstring("status 307")))
		Expect(s.last.URL.Host).To(Equal("generativelanguage.googleapis.com"))
	})
})

var _ = Describe("the emulator", func() {
	play := func(model string, steps ...emulator.Step) (*httptest.Server, llm.Model) {
		GinkgoHelper()
		h, err := emulator.New(emulator.Script{Version: 1, Name: "s", Default: &emulator.Conversation{Steps: steps}}, emulator.Options{})
		Expect(err).NotTo(HaveOccurred())
		s := httptest.NewServer(h)
		DeferCleanup(s.Close)
		return s, newModel(gemini.Config{BaseURL: s.URL, Model: model}, s.Client().Transport)
	}

	It("gives the same events in one piece, as events and as an array", func() {
		step := emulator.Step{Text: ptr("Hé 🧪."), Reasoning: "Let me see.", Calls: []emulator.Call{{Name: "f", Args: emulator.Object(`{"n":90071992547409931}`)}, {Name: "g"}}, Fragment: 2}
		for _, model := range []string{"gemini-2.5-flash", "gemini-3-pro-preview"} {
			s, m := play(model, step)
			asArray := newModel(gemini.Config{BaseURL: s.URL, Model: model}, without{s.Client().Transport})
			req := hello()
			req.Settings.Thinking.BudgetTokens = ptr(-1)
			var replies []llm.Reply
			for _, way := range []struct {
				m        llm.Model
				blocking bool
			}{{m, false}, {m, true}, {asArray, false}} {
				req.Blocking = way.blocking
				reply, err := llm.Generate(context.Background(), way.m, req)
				Expect(err).NotTo(HaveOccurred())
				replies = append(replies, reply)
			}
			Expect(replies[0].Parts).To(HaveLen(4))
			Expect(replies[0].Parts[0]).To(Equal(conversation.Reasoning{Text: "Let me see."}))
			Expect(replies[0].Parts[2].(conversation.ToolCall).Extras.Get(gemini.Name)).NotTo(BeEmpty())
			Expect(replies[1]).To(Equal(replies[0]))
			Expect(replies[2]).To(Equal(replies[0]))
		}
	})

	It("holds a loop with a model that insists on its signatures, also after the conversation was saved and loaded", func() {
		_, m := play("gemini-3-pro-preview", emulator.Step{Text: ptr("Looking."), Calls: []emulator.Call{{Name: "f"}, {Name: "g"}}}, emulator.Step{Text: ptr("It is {{tool_result \"g\"}}.")}, emulator.Step{Text: ptr("Bye.")})
		talk := conversation.New(nil)
		add := func(m conversation.Message) {
			GinkgoHelper()
			var err error
			talk, err = talk.Append(m)
			Expect(err).NotTo(HaveOccurred())
			data, err := talk.MarshalJSON()
			Expect(err).NotTo(HaveOccurred())
			talk = conversation.Context{}
			Expect(talk.UnmarshalJSON(data)).To(Succeed())
		}
		add(conversation.User("m", conversation.Text{Text: "Hello?"}))
		step := func() llm.Reply {
			GinkgoHelper()
			var req llm.Request
			for _, m := range talk.Messages() {
				req.Messages = append(req.Messages, m)
			}
			reply, err := llm.Generate(context.Background(), m, req)
			Expect(err).NotTo(HaveOccurred())
			Expect(reply.Warnings).To(BeEmpty())
			add(conversation.Assistant("m", reply.Parts...))
			return reply
		}
		first := step()
		calls := conversation.Assistant("m", first.Parts...).ToolCalls()
		Expect(calls).To(HaveLen(2))
		Expect(calls[0].Extras.Get(gemini.Name)).NotTo(BeEmpty())
		add(conversation.ToolResults("m", conversation.ToolResult{ID: calls[0].ID, Result: `"one"`}, conversation.ToolResult{ID: calls[1].ID, Result: `"two"`}))
		second := step()
		Expect(second.Parts).To(HaveLen(1))
		Expect(second.Parts[0].(conversation.Text).Text).To(Equal("It is two."))
		Expect(second.Parts[0].(conversation.Text).Extras.Get(gemini.Name)).NotTo(BeEmpty(), "the signature of an answer is kept too")
		step()
	})

	It("withholds a call that the vendor's format cannot say, and blocks a prompt", func() {
		_, m := play("gemini-2.5-flash", emulator.Step{Calls: []emulator.Call{{Name: "f", Raw: ptr(`{"a`)}}})
		reply, err := llm.Generate(context.Background(), m, hello())
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Parts).To(BeEmpty())
		Expect(reply.Finish.Stop).To(Equal(llm.StopOther))

		_, m = play("gemini-2.5-flash", emulator.Step{Text: ptr(""), Finish: "content_filter"})
		reply, err = llm.Generate(context.Background(), m, hello())
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Finish.Stop).To(Equal(llm.StopRefused))
		Expect(reply.Warnings).To(HaveExactElements(HaveField("Code", "prompt-blocked")))
	})
})

// without takes alt=sse away, so that the server streams an array.
type without struct{ next http.RoundTripper }

func (w without) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.RawQuery = ""
	return w.next.RoundTrip(out)
}
