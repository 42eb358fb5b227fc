package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/openai"
)

func TestOpenAI(t *testing.T) { suite.Run(t, "openai") }

// server is a round tripper that answers with bytes and keeps what it was asked.
type server struct {
	status int
	header http.Header
	body   string
	wrap   func(io.Reader) io.Reader
	err    error

	mu     sync.Mutex
	bodies []string
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
	s.bodies = append(s.bodies, string(data))
	s.last = req
	if s.err != nil {
		return nil, s.err
	}
	status := s.status
	if status == 0 {
		status = http.StatusOK
	}
	header := s.header
	if header == nil {
		header = http.Header{}
	}
	var r io.Reader = strings.NewReader(s.body)
	if s.wrap != nil {
		r = s.wrap(r)
	}
	return &http.Response{StatusCode: status, Header: header, Body: &closing{r, s}, ContentLength: -1, Request: req}, nil
}

// together gives its error in one read with the last bytes.
type together struct {
	io.Reader
	err error
}

func (t *together) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err == nil && n < len(p) || errors.Is(err, io.EOF) {
		err = t.err
	}
	return n, err
}

type closing struct {
	io.Reader
	s *server
}

func (c *closing) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.closed++
	return nil
}

func newModel(config openai.Config, rt http.RoundTripper) llm.Model {
	GinkgoHelper()
	if config.Model == "" {
		config.Model = "gpt-4o-mini"
	}
	m, err := openai.New(config, rt)
	Expect(err).NotTo(HaveOccurred())
	return m
}

func user(parts ...conversation.Content) []conversation.Message {
	return []conversation.Message{conversation.User("m", parts...)}
}

func hello() llm.Request { return llm.Request{Messages: user(conversation.Text{Text: "hello"})} }

// sent returns the one request body as a tree.
func sent(s *server) map[string]any {
	GinkgoHelper()
	Expect(s.bodies).To(HaveLen(1))
	var v map[string]any
	Expect(json.Unmarshal([]byte(s.bodies[0]), &v)).To(Succeed(), s.bodies[0])
	return v
}

// ask sends a request to a server that answers with an empty reply, and returns what was sent and the warnings.
func ask(config openai.Config, req llm.Request) (map[string]any, []llm.Warning) {
	GinkgoHelper()
	s := &server{body: `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}],"usage":{}}`}
	reply, err := llm.Generate(context.Background(), newModel(config, s), req)
	Expect(err).NotTo(HaveOccurred())
	return sent(s), reply.Warnings
}

func messages(body map[string]any) []any { return body["messages"].([]any) }

type object = map[string]any

func ptr[T any](v T) *T { return &v }

const stream = `data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"content":"Hé"},"finish_reason":null}]}

data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"content":"llo 🌍"},"finish_reason":null}]}

data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"look","arguments":""}}]},"finish_reason":null}]}

data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]},"finish_reason":null}]}

data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}]}

data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","model":"gpt-x","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}}

data: [DONE]

`

func streamReply() llm.Reply {
	return llm.Reply{
		Parts: []conversation.Content{
			conversation.Text{Text: "Héllo 🌍"},
			conversation.ToolCall{ID: "call_a", Name: "look", Input: `{"a":1}`},
		},
		Finish: llm.Finish{Stop: llm.StopToolCalls, Model: "gpt-x", ID: "c1", Usage: conversation.Usage{InputTokens: 10, OutputTokens: 7, CacheReadTokens: 4, CacheWriteTokens: 2, ReasoningTokens: 3}},
	}
}

var _ = Describe("a request", func() {
	It("has the system prompt first, then the messages in order", func() {
		call := conversation.ToolCall{ID: "c1", Name: "look", Input: `{"a":"é"}`}
		body, warnings := ask(openai.Config{}, llm.Request{
			System: "be brief",
			Messages: []conversation.Message{
				conversation.NewMessage(conversation.RoleSystem, "s", conversation.Text{Text: "be kind"}),
				conversation.User("1", conversation.Text{Text: "what is"}, conversation.Text{Text: "this"}),
				conversation.Assistant("2", conversation.Text{Text: "let me look"}, call, conversation.ToolCall{ID: "c2", Name: "empty"}),
				conversation.ToolResults("2", conversation.ToolResult{ID: "c1", Result: `"a cat"`}, conversation.ToolResult{ID: "c2", Result: `{"n":12345678901234567890}`}),
				conversation.Assistant("3", call),
				conversation.ToolResults("3", conversation.ToolResult{ID: "c1", Result: `""`, IsError: true}),
				conversation.Assistant("4"),
				conversation.User("5"),
				conversation.User("6", conversation.Text{Text: ""}),
			},
		})
		function := func(name, arguments string) object { return object{"name": name, "arguments": arguments} }
		calls := []any{object{"id": "c1", "type": "function", "function": function("look", `{"a":"é"}`)}}
		Expect(messages(body)).To(Equal([]any{
			object{"role": "system", "content": "be brief\n\nbe kind"},
			object{"role": "user", "content": "what is this"},
			object{"role": "assistant", "content": "let me look", "tool_calls": append(calls, object{"id": "c2", "type": "function", "function": function("empty", "{}")})},
			object{"role": "tool", "content": "a cat", "tool_call_id": "c1"},
			object{"role": "tool", "content": `{"n":12345678901234567890}`, "tool_call_id": "c2"},
			object{"role": "assistant", "content": nil, "tool_calls": calls},
			object{"role": "tool", "content": "", "tool_call_id": "c1"},
			object{"role": "user", "content": ""},
		}))
		Expect(warnings).To(BeEmpty())
		Expect(body["model"]).To(Equal("gpt-4o-mini"))
		Expect(body["stream"]).To(BeTrue())
		Expect(body["stream_options"]).To(Equal(object{"include_usage": true}))
	})

	It("keeps the order of text, image, text and sends a PDF as a file", func() {
		body, warnings := ask(openai.Config{}, llm.Request{Messages: user(
			conversation.Text{Text: "before"},
			conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBO"}},
			conversation.Text{Text: "between"},
			conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://a.example/x.png?a=1&b=<2>"}},
			conversation.Document{MediaType: "application/pdf", Name: `a "b".pdf`, Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBE"}},
			conversation.Document{MediaType: "application/pdf", Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBF"}},
			conversation.Text{Text: "after"},
		)})
		Expect(warnings).To(BeEmpty())
		image := func(url string) object { return object{"type": "image_url", "image_url": object{"url": url}} }
		file := func(name, data string) object {
			return object{"type": "file", "file": object{"filename": name, "file_data": "data:application/pdf;base64," + data}}
		}
		Expect(messages(body)[0]).To(Equal(object{"role": "user", "content": []any{
			object{"type": "text", "text": "before"},
			image("data:image/png;base64,iVBO"),
			object{"type": "text", "text": "between"},
			image("https://a.example/x.png?a=1&b=<2>"),
			file(`a "b".pdf`, "JVBE"),
			file("document.pdf", "JVBF"),
			object{"type": "text", "text": "after"},
		}}))
	})

	It("moves the media of tool results behind all results of the step", func() {
		picture := conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBO"}}
		body, warnings := ask(openai.Config{}, llm.Request{Messages: []conversation.Message{
			conversation.User("1", conversation.Text{Text: "look"}),
			conversation.Assistant("2", conversation.ToolCall{ID: "a", Name: "t"}, conversation.ToolCall{ID: "b", Name: "t"}),
			conversation.ToolResults("2", conversation.ToolResult{ID: "a", Result: "null"}, picture),
			conversation.ToolResults("2", conversation.ToolResult{ID: "b", Result: "true"}),
		}})
		roles := []any{}
		for _, m := range messages(body) {
			roles = append(roles, m.(object)["role"])
		}
		Expect(roles).To(Equal([]any{"user", "assistant", "tool", "tool", "user"}))
		Expect(messages(body)[4]).To(Equal(object{"role": "user", "content": []any{object{"type": "image_url", "image_url": object{"url": "data:image/png;base64,iVBO"}}}}))
		Expect(warnings).To(HaveExactElements(HaveField("Code", "tool-media-moved")))
	})

	It("carries every setting exactly, 0 included", func() {
		body, _ := ask(openai.Config{}, llm.Request{
			Messages: user(conversation.Text{Text: "x"}),
			Tools:    []tool.Spec{{Name: "look", Description: "looks <here>", Parameters: `{"type":"object","properties":{"a":{"type":"integer","maximum":12345678901234567890}}}`}},
			Settings: llm.Settings{
				MaxTokens: ptr(7), Temperature: ptr(0.0), TopP: ptr(0.123456789), Seed: ptr(int64(9007199254740993)), Stop: []string{"END", "\n"},
				ToolChoice: "look", ParallelToolCalls: ptr(false), ResponseSchema: `{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
			},
		})
		Expect(body).To(HaveKeyWithValue("temperature", 0.0))
		Expect(body).To(HaveKeyWithValue("top_p", 0.123456789))
		Expect(body).To(HaveKeyWithValue("max_tokens", 7.0))
		Expect(body).NotTo(HaveKey("max_completion_tokens"))
		Expect(body).To(HaveKeyWithValue("stop", []any{"END", "\n"}))
		Expect(body).To(HaveKeyWithValue("tool_choice", object{"type": "function", "function": object{"name": "look"}}))
		Expect(body).To(HaveKeyWithValue("parallel_tool_calls", false))
		Expect(body["response_format"]).To(HaveKeyWithValue("json_schema", HaveKeyWithValue("strict", true)))
		Expect(body["tools"]).To(HaveLen(1))
		Expect(body["tools"].([]any)[0]).To(HaveKeyWithValue("function", HaveKeyWithValue("description", "looks <here>")))
	})

	It("keeps big integers as they are written", func() {
		s := &server{body: stream}
		_, err := llm.Generate(context.Background(), newModel(openai.Config{}, s), llm.Request{
			Messages: user(conversation.Text{Text: "x"}),
			Tools:    []tool.Spec{{Name: "look", Parameters: `{"type":"object","maxProperties":12345678901234567890}`}},
			Settings: llm.Settings{Seed: ptr(int64(9007199254740993))},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.bodies[0]).To(And(ContainSubstring(`"seed":9007199254740993`), ContainSubstring("12345678901234567890")))
	})

	It("says nothing about tools where there are none", func() {
		body, _ := ask(openai.Config{}, llm.Request{Messages: user(conversation.Text{Text: "x"}), Settings: llm.Settings{ToolChoice: "auto", ParallelToolCalls: ptr(true)}})
		Expect(body).NotTo(Or(HaveKey("tools"), HaveKey("tool_choice"), HaveKey("parallel_tool_calls"), HaveKey("temperature"), HaveKey("max_tokens")))
	})

	It("asks the blocking endpoint for a blocking reply", func() {
		s := &server{body: `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`}
		req := hello()
		req.Blocking = true
		_, err := llm.Generate(context.Background(), newModel(openai.Config{}, s), req)
		Expect(err).NotTo(HaveOccurred())
		Expect(sent(s)).To(And(HaveKeyWithValue("stream", false), Not(HaveKey("stream_options"))))
		Expect(s.last.Header.Get("Accept")).To(Equal("application/json"))
		Expect(s.last.Header).NotTo(HaveKey("Cache-Control"))
	})

	It("goes to the base URL with its query, and bears a placeholder", func() {
		s := &server{body: stream}
		m := newModel(openai.Config{BaseURL: "https://r.example/openai/deployments/d/?api-version=2024-10-21", Placeholder: "none"}, s)
		_, err := llm.Generate(context.Background(), m, hello())
		Expect(err).NotTo(HaveOccurred())
		Expect(s.last.URL.String()).To(Equal("https://r.example/openai/deployments/d/chat/completions?api-version=2024-10-21"))
		Expect(s.last.Header.Get("Authorization")).To(Equal("Bearer none"))
		again, err := s.last.GetBody()
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(again)).To(BeEquivalentTo(s.bodies[0]))
		Expect(s.last.ContentLength).To(BeEquivalentTo(len(s.bodies[0])))
	})

	DescribeTable("the rules for a model", func(model string, settings llm.Settings, tools bool, has object, lacks []string, codes ...string) {
		req := hello()
		req.Settings = settings
		if tools {
			req.Tools = []tool.Spec{{Name: "t", Parameters: `{"type":"object"}`}}
		}
		body, warnings := ask(openai.Config{Model: model, API: openai.Chat}, req)
		for key, value := range has {
			Expect(body).To(HaveKeyWithValue(key, value))
		}
		for _, key := range lacks {
			Expect(body).NotTo(HaveKey(key))
		}
		got := []string{}
		for _, w := range warnings {
			got = append(got, w.Code)
		}
		Expect(got).To(ConsistOf(codes))
	},
		Entry("gpt-4o", "gpt-4o-2024-08-06", llm.Settings{MaxTokens: ptr(5), Temperature: ptr(1.5)}, false, object{"max_tokens": 5.0, "temperature": 1.5}, []string{"max_completion_tokens"}),
		Entry("gpt-4.1", "gpt-4.1", llm.Settings{MaxTokens: ptr(5)}, false, object{"max_completion_tokens": 5.0}, []string{"max_tokens"}),
		Entry("o3", "o3-mini", llm.Settings{MaxTokens: ptr(5), Temperature: ptr(0.5), TopP: ptr(1.0), ReasoningEffort: "high"}, false, object{"max_completion_tokens": 5.0, "reasoning_effort": "high"}, []string{"temperature", "top_p"}, "temperature-left-out", "top-p-left-out"),
		Entry("gpt-5 with what its SDK refuses", "gpt-5", llm.Settings{MaxTokens: ptr(5), Temperature: ptr(0.5), ReasoningEffort: "minimal"}, false, object{"max_completion_tokens": 5.0, "temperature": 0.5, "reasoning_effort": "minimal"}, nil),
		Entry("gpt-5.6 with tools", "gpt-5.6-sol", llm.Settings{ReasoningEffort: "high"}, true, object{"reasoning_effort": "none"}, nil, "reasoning-effort-changed"),
		Entry("gpt-5.6 with an unknown effort", "gpt-5.6-sol", llm.Settings{ReasoningEffort: "huge"}, false, object{"reasoning_effort": "low"}, nil, "reasoning-effort-changed"),
		Entry("gpt-6 with tools, which its SDK refuses", "gpt-6-astra", llm.Settings{ReasoningEffort: "max"}, true, object{"reasoning_effort": "max"}, nil),
		Entry("gpt-4o with effort", "gpt-4o", llm.Settings{ReasoningEffort: "low"}, false, nil, []string{"reasoning_effort"}, "reasoning-effort-left-out"),
		Entry("a model that nobody knows", "my-tuned-model", llm.Settings{MaxTokens: ptr(5), Temperature: ptr(0.0)}, false, object{"max_completion_tokens": 5.0, "temperature": 0.0}, nil),
	)

	It("leaves out what the protocol cannot take, with a warning, and refuses it where the settings are strict", func() {
		parts := []conversation.Content{
			conversation.Text{Text: "read this"},
			conversation.Document{MediaType: "application/pdf", Name: "a.pdf", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://a.example/a.pdf"}},
		}
		body, warnings := ask(openai.Config{}, llm.Request{Messages: user(parts...)})
		Expect(messages(body)[0]).To(Equal(object{"role": "user", "content": "read this"}))
		Expect(warnings).To(HaveExactElements(And(HaveField("Code", "document-left-out"), HaveField("Text", ContainSubstring(`"a.pdf"`)))))

		s := &server{body: stream}
		_, err := llm.Generate(context.Background(), newModel(openai.Config{}, s), llm.Request{Messages: user(parts...), Settings: llm.Settings{Strict: true}})
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).NotTo(BeEmpty())
		Expect(s.bodies).To(BeEmpty())
	})

	It("leaves reasoning out, also where the settings are strict, or sends it where the server wants it", func() {
		history := []conversation.Message{
			conversation.User("1", conversation.Text{Text: "hi"}),
			conversation.Assistant("2", conversation.Reasoning{Text: "hm"}, conversation.Text{Text: "ho"}),
			conversation.Assistant("3", conversation.Reasoning{Text: "only thought"}),
			conversation.User("4", conversation.Text{Text: "and?"}),
		}
		body, warnings := ask(openai.Config{}, llm.Request{Messages: history, Settings: llm.Settings{Strict: true}})
		Expect(messages(body)).To(HaveLen(3))
		Expect(messages(body)[1]).To(Equal(object{"role": "assistant", "content": "ho"}))
		Expect(warnings).To(HaveExactElements(HaveField("Code", "reasoning-left-out")))
		for _, field := range []string{"reasoning_content", "reasoning"} {
			body, warnings = ask(openai.Config{Quirks: &openai.Quirks{ReasoningField: field}}, llm.Request{Messages: history})
			Expect(messages(body)[1]).To(Equal(object{"role": "assistant", "content": "ho", field: "hm"}))
			Expect(warnings).To(BeEmpty())
		}
	})

	It("takes a server's quirks as data", func() {
		picture := conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBO"}}
		document := conversation.Document{MediaType: "application/pdf", Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBE"}}
		body, warnings := ask(openai.Config{Quirks: &openai.Quirks{NoImages: true, NoDocuments: true, NoStreamOptions: true, Extra: `{"temperature": 0.9, "top_k":5}`}},
			llm.Request{Messages: user(conversation.Text{Text: "x"}, picture, picture, document), Settings: llm.Settings{Temperature: ptr(0.1)}})
		Expect(body).To(And(HaveKeyWithValue("temperature", 0.9), HaveKeyWithValue("top_k", 5.0), Not(HaveKey("stream_options"))))
		Expect(messages(body)[0]).To(Equal(object{"role": "user", "content": "x"}))
		Expect(warnings).To(HaveExactElements(HaveField("Code", "image-left-out"), HaveField("Code", "document-left-out")))
	})

	It("reports a tool's schema that is no JSON", func() {
		s := &server{body: stream}
		req := hello()
		req.Tools = []tool.Spec{{Name: "look", Parameters: `{"type":`}}
		_, err := llm.Generate(context.Background(), newModel(openai.Config{}, s), req)
		Expect(err).To(MatchError(ContainSubstring("look")))
		Expect(s.bodies).To(BeEmpty())
	})

	It("is not damaged by invalid UTF-8 and control characters", func() {
		body, _ := ask(openai.Config{Model: "m\xff"}, llm.Request{System: "a\x00b\xffc", Messages: user(conversation.Text{Text: "\u2028 \x1b </script> \\u0000 \""})})
		Expect(messages(body)[0]).To(HaveKeyWithValue("content", "a\x00b\ufffdc"))
		Expect(messages(body)[1]).To(HaveKeyWithValue("content", "\u2028 \x1b </script> \\u0000 \""))
		Expect(body["model"]).To(Equal("m\ufffd"))
	})

	DescribeTable("a configuration that cannot work is refused", func(c openai.Config, rt http.RoundTripper, message string) {
		_, err := openai.New(c, rt)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(err.Error()).NotTo(ContainSubstring("pass"))
	},
		Entry(nil, openai.Config{}, &server{}, "no model"),
		Entry(nil, openai.Config{Model: "m"}, nil, "round tripper"),
		Entry(nil, openai.Config{Model: "m", BaseURL: "localhost:11434"}, &server{}, "base_url"),
		Entry(nil, openai.Config{Model: "m", BaseURL: "https://user:pass@a.example/v1"}, &server{}, "base_url"),
		Entry(nil, openai.Config{Model: "m", Quirks: &openai.Quirks{Extra: `[1]`}}, &server{}, "JSON object"),
	)
})

var _ = Describe("a reply", func() {
	reply := func(body string, wrap func(io.Reader) io.Reader) (llm.Reply, error) {
		s := &server{body: body, wrap: wrap}
		r, err := llm.Generate(context.Background(), newModel(openai.Config{}, s), hello())
		Expect(s.closed).To(BeNumerically(">", 0), "the body is closed")
		return r, err
	}

	It("is put together from its stream", func() {
		Expect(reply(stream, nil)).To(Equal(streamReply()))
	})

	DescribeTable("is the same however it arrives", func(body string, wrap func(io.Reader) io.Reader) {
		Expect(reply(body, wrap)).To(Equal(streamReply()))
	},
		Entry("byte by byte", stream, iotest.OneByteReader),
		Entry("in halves", stream, iotest.HalfReader),
		Entry("with the end in the last read", stream, iotest.DataErrReader),
		Entry("with CRLF", strings.ReplaceAll(stream, "\n", "\r\n"), nil),
		Entry("with CRLF byte by byte", strings.ReplaceAll(stream, "\n", "\r\n"), iotest.OneByteReader),
		Entry("with CR", strings.ReplaceAll(stream, "\n", "\r"), nil),
		Entry("with CR byte by byte", strings.ReplaceAll(stream, "\n", "\r"), iotest.OneByteReader),
		Entry("with a byte order mark", "\ufeff"+stream, iotest.OneByteReader),
		Entry("with comments", ": PROCESSING\n\n: PROCESSING\n\n"+strings.ReplaceAll(stream, "data:", ": again\ndata:"), nil),
		Entry("with 1,000 comments", strings.Repeat(": wait\n\n", 1000)+stream, nil),
		Entry("with names and ids of events", strings.ReplaceAll(stream, "data:", "event: message\nid: 7\nretry: 10\ndata:"), nil),
		Entry("without the space after the colon", strings.ReplaceAll(stream, "data: ", "data:"), nil),
		Entry("with data on several lines", strings.ReplaceAll(stream, `,"choices"`, "\ndata: ,\"choices\""), nil),
		Entry("without empty lines between frames", strings.ReplaceAll(stream, "\n\n", "\n"), nil),
		Entry("without the last line's end", strings.TrimRight(stream, "\n"), nil),
		Entry("with empty data", "data:\n\n"+stream, nil),
		Entry("with text after the end", stream+"data: {\"error\":{\"message\":\"late\"}}\n\n", nil),
	)

	It("is the same from the blocking endpoint", func() {
		body := `{"id":"c1","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":"Héllo 🌍","refusal":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}}`
		for _, text := range []string{body, "\n    \n\n" + strings.ReplaceAll(body, ",", ",\r\n  ") + "\n"} {
			Expect(reply(text, iotest.OneByteReader)).To(Equal(streamReply()))
		}
	})

	It("without its end marker is whole only with its stop reason", func() {
		complete := strings.Index(stream, `"tool_calls"}]}`) + len(`"tool_calls"}]}`)
		accepted := 0
		for cut := range len(stream) {
			got, err := reply(stream[:cut], nil)
			if err == nil {
				accepted++
				Expect(cut).To(BeNumerically(">=", complete))
				Expect(got.Parts).To(Equal(streamReply().Parts))
				Expect(got.Finish.Stop).To(Equal(llm.StopToolCalls))
				continue
			}
			var e *llm.Error
			Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(io.ErrUnexpectedEOF), "cut at %d", cut)
			Expect(e.Retryable).To(BeTrue())
		}
		Expect(accepted).To(And(BeNumerically(">", 10), BeNumerically("<", len(stream)-complete+1)))
		got, err := reply(stream[:complete], nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Warnings).To(HaveExactElements(HaveField("Code", "usage-missing")))
	})

	It("that the connection cuts is an error even after the stop reason", func() {
		cut := strings.Index(stream, `data: {"id":"c1","model":"gpt-x","choices":[],`)
		_, err := reply(stream[:cut], func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF)) })
		Expect(err).To(MatchError(io.ErrUnexpectedEOF))
	})

	It("gives what came before the connection broke", func() {
		cut := strings.Index(stream, `data: {"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls"`)
		broken := errors.New("connection reset")
		got, err := reply(stream[:cut], func(r io.Reader) io.Reader { return &together{r, broken} })
		Expect(err).To(MatchError(broken))
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(e.Retryable).To(BeTrue())
		Expect(e.Error()).To(Equal("openai: status 200: the reply was cut short: connection reset"))
		Expect(got.Parts).To(Equal([]conversation.Content{conversation.Text{Text: "Héllo 🌍"}}))
	})

	It("may hold reasoning, a list of parts, a refusal or images", func() {
		got, err := reply(`{"choices":[{"index":0,"finish_reason":"stop","message":{"reasoning":"r1","content":[{"type":"thinking","thinking":[{"type":"text","text":"r2"}]},{"type":"text","text":"t"},{"type":"audio"}],`+
			`"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},{"type":"image_url","image_url":{"url":"ftp"}}]}}],"usage":{}}`, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Parts).To(Equal([]conversation.Content{
			conversation.Reasoning{Text: "r1r2"},
			conversation.Text{Text: "t"},
			conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBO"}},
		}))
		Expect(got.Warnings).To(HaveExactElements(HaveField("Code", "content-left-out"), HaveField("Code", "content-left-out")))

		got, err = reply("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"I \"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"reasoning_content\":\"think\"}}]}\n\n"+
			"data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{}}\n\ndata: [DONE]\n\n", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Parts).To(Equal([]conversation.Content{conversation.Reasoning{Text: "I think"}, conversation.Text{Text: "No."}}))
		Expect(got.Finish.Stop).To(Equal(llm.StopRefused))
	})

	DescribeTable("its stop reason", func(reason string, want llm.StopReason) {
		got, err := reply(`{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"`+reason+`"}],"usage":{}}`, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Finish.Stop).To(Equal(want))
	},
		Entry(nil, "stop", llm.StopEnd), Entry(nil, "length", llm.StopLength), Entry(nil, "tool_calls", llm.StopToolCalls), Entry(nil, "function_call", llm.StopToolCalls),
		Entry(nil, "content_filter", llm.StopRefused), Entry(nil, "model_length", llm.StopLength), Entry(nil, "eos_token", llm.StopEnd), Entry(nil, "insufficient_system_resource", llm.StopOther),
	)

	DescribeTable("its calls", func(deltas []string, want ...conversation.ToolCall) {
		body := ""
		for _, d := range deltas {
			body += `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + d + "]}}]}\n\n"
		}
		got, err := reply(body+"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{}}\n\ndata: [DONE]\n\n", nil)
		Expect(err).NotTo(HaveOccurred())
		var calls []conversation.ToolCall
		for _, p := range got.Parts {
			calls = append(calls, p.(conversation.ToolCall))
		}
		Expect(calls).To(Equal(want))
		Expect(got.Finish.Stop).To(Equal(llm.StopToolCalls))
	},
		Entry("interleaved", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`,
			`{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"{}"}}`,
		}, conversation.ToolCall{ID: "a", Name: "f", Input: "{}"}, conversation.ToolCall{ID: "b", Name: "g", Input: "{}"}),
		Entry("all with index 0", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":1}"}}`},
			conversation.ToolCall{ID: "a", Name: "f", Input: "{}"}, conversation.ToolCall{ID: "b", Name: "f", Input: `{"x":1}`}),
		Entry("without index", []string{`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"id":"b","function":{"name":"f","arguments":"{}"}}`},
			conversation.ToolCall{ID: "a", Name: "f", Input: "{}"}, conversation.ToolCall{ID: "b", Name: "f", Input: "{}"}),
		Entry("with id and name in each piece", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`},
			conversation.ToolCall{ID: "a", Name: "f", Input: "{}"}),
		Entry("with the name after the arguments", []string{`{"index":3,"id":"a","function":{"arguments":"{"}}`, `{"index":3,"function":{"name":"f","arguments":"}"}}`},
			conversation.ToolCall{ID: "a", Name: "f", Input: "{}"}),
		Entry("with arguments that are no string", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":[1]}}}`},
			conversation.ToolCall{ID: "a", Name: "f", Input: `{"x":[1]}`}),
		Entry("without a name", []string{`{"index":0,"id":"a","function":{"arguments":"{}"}}`}, conversation.ToolCall{ID: "a", Input: "{}"}),
	)

	It("gets the same ids each time where the server gives none, and different ones at other places", func() {
		body := `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}]}}],"usage":{}}`
		ids := func(r llm.Request) []string {
			got, err := llm.Generate(context.Background(), newModel(openai.Config{}, &server{body: body}), r)
			Expect(err).NotTo(HaveOccurred())
			var ids []string
			for _, p := range got.Parts {
				ids = append(ids, p.(conversation.ToolCall).ID)
			}
			return ids
		}
		longer := llm.Request{Messages: append(hello().Messages, hello().Messages...)}
		first := ids(hello())
		Expect(first).To(And(HaveLen(2), Equal(ids(hello()))))
		Expect(append(first, ids(longer)...)).To(HaveLen(4))
		seen := map[string]bool{}
		for _, id := range append(first, ids(longer)...) {
			Expect(id).To(HavePrefix("call_"))
			seen[id] = true
		}
		Expect(seen).To(HaveLen(4))
	})

	It("counts reasoning into the output where the vendor does not", func() {
		got, err := reply(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":112,"completion_tokens_details":{"reasoning_tokens":100}}}`, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Finish.Usage).To(Equal(conversation.Usage{InputTokens: 10, OutputTokens: 102, ReasoningTokens: 100}))
	})

	It("may be long", func() {
		text := strings.Repeat("a🌍", 250_000)
		got, err := reply(`data: {"choices":[{"index":0,"delta":{"content":"`+text+`"},"finish_reason":"stop"}],"usage":{}}`+"\n\ndata: [DONE]\n\n", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Parts).To(Equal([]conversation.Content{conversation.Text{Text: text}}))
	})
})

var _ = Describe("an error", func() {
	fail := func(s *server, rt func(http.RoundTripper) http.RoundTripper) *llm.Error {
		GinkgoHelper()
		var chain http.RoundTripper = s
		if rt != nil {
			chain = rt(s)
		}
		_, err := llm.Generate(context.Background(), newModel(openai.Config{Clock: clock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}, chain), hello())
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect(e.Vendor).To(Equal("openai"))
		return e
	}

	It("carries all that a refusal says", func() {
		e := fail(&server{status: 429, header: http.Header{"Retry-After": {"7"}, "X-Request-Id": {"req_1"}},
			body: `{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}`}, nil)
		Expect(*e).To(Equal(llm.Error{Vendor: "openai", Status: 429, Type: "requests", Code: "rate_limit_exceeded", Message: "slow down", RequestID: "req_1", RetryAfter: 7 * time.Second, Retryable: true}))
		Expect(e.Error()).To(Equal("openai: status 429 (rate_limit_exceeded): slow down [request req_1]"))
	})

	DescribeTable("in all forms that are in use", func(status int, body string, message, kind, code string, retryable bool) {
		e := fail(&server{status: status, body: body}, nil)
		Expect([]any{e.Status, e.Message, e.Type, e.Code, e.Retryable}).To(Equal([]any{status, message, kind, code, retryable}))
	},
		Entry(nil, 400, `{"error":{"message":"bad","type":"invalid_request_error","param":"x","code":null}}`, "bad", "invalid_request_error", "", false),
		Entry(nil, 401, `{"error":"no key"}`, "no key", "", "", false),
		Entry(nil, 403, `{"message":"forbidden","type":"permission","code":3}`, "forbidden", "permission", "3", false),
		Entry(nil, 404, `[{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}]`, "models/x is not found", "", "404", false),
		Entry(nil, 422, `{"detail":[{"loc":["body"],"msg":"missing"}]}`, `[{"loc":["body"],"msg":"missing"}]`, "", "", false),
		Entry(nil, 429, `{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}`, "pay", "insufficient_quota", "insufficient_quota", false),
		Entry(nil, 500, "", "Internal Server Error", "", "", true),
		Entry(nil, 502, "<html>\r\n<h1>bad\x1b[31m\tgateway</h1>", "a page of HTML and no JSON: bad [31m gateway", "", "", true),
		Entry(nil, 529, `{"error":{"message":"overloaded"}}`, "overloaded", "", "", true),
		Entry(nil, 301, "moved", "moved", "", "", false),
	)

	It("never repeats a key", func() {
		for _, text := range []string{"Incorrect API key provided: sk-proj-abcdefgh12345678.", "bad header Bearer abc.def.ghi", "key sk-abcd****************wxyz is off"} {
			e := fail(&server{status: 401, body: `{"error":{"message":"` + text + `"}}`}, nil)
			Expect(e.Error()).To(ContainSubstring("[secret]"))
			Expect(e.Error()).NotTo(Or(ContainSubstring("abcd"), ContainSubstring("abc.def"), ContainSubstring("wxyz")))
		}
	})

	It("is kept short", func() {
		e := fail(&server{status: 500, body: strings.Repeat("é", 100_000)}, nil)
		Expect(len(e.Message)).To(BeNumerically("<", 1100))
	})

	DescribeTable("may come within a stream", func(frame, message, code string, retryable bool) {
		body := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n" + frame + "\n\ndata: [DONE]\n\n"
		s := &server{body: body, header: http.Header{"X-Request-Id": {"req_2"}}}
		reply, err := llm.Generate(context.Background(), newModel(openai.Config{}, s), hello())
		Expect(reply.Parts).To(Equal([]conversation.Content{conversation.Text{Text: "Hel"}}))
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect([]any{e.Status, e.Message, e.Code, e.Retryable, e.RequestID}).To(Equal([]any{200, message, code, retryable, "req_2"}))
	},
		Entry(nil, `data: {"error":{"message":"broke","type":"server_error","code":null}}`, "broke", "", false),
		Entry(nil, `data:{"error": {"message":"busy","code":503}}`, "busy", "503", true),
		Entry(nil, ": note\ndata: {\"id\":\"x\",\"error\":{\"code\":502,\"message\":\"gone\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}", "gone", "502", true),
		Entry(nil, `data: {"object":"error","message":"no memory","type":"oom","code":400}`, "no memory", "400", false),
		Entry(nil, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"message":"upstream","code":429}}]}`, "upstream", "429", true),
	)

	It("may come as a whole reply with status 200", func() {
		e := fail(&server{body: `{"error":{"message":"filtered","type":null,"param":"prompt","code":"content_filter","status":400}}`}, nil)
		Expect([]any{e.Message, e.Code, e.Retryable}).To(Equal([]any{"filtered", "content_filter", false}))
	})

	DescribeTable("tells of a reply that is none", func(body, message string) {
		e := fail(&server{body: body}, nil)
		Expect(e.Error()).To(ContainSubstring(message))
	},
		Entry(nil, "", "cut short"),
		Entry(nil, "data: [DONE]\n\n", "no answer"),
		Entry(nil, "{}", "no answer"),
		Entry(nil, `{"choices":[]}`, "no answer"),
		Entry(nil, "<html><h1>login</h1></html>", "neither JSON nor an event stream: a page of HTML and no JSON: login"),
		Entry(nil, "data: nonsense\n\ndata: [DONE]\n\n", "reading a frame"),
		Entry(nil, `{"choices":[{"message":{"content":"x"`, "cut short"),
	)

	It("says how often the request was repeated", func() {
		retry := func(next http.RoundTripper) http.RoundTripper {
			return transport.Retry(transport.RetryConfig{Clock: clock.NewVirtual(time.Unix(0, 0)), Attempts: 4}, next)
		}
		s := &server{status: 503}
		Expect(fail(s, retry).Retries).To(Equal(3))
		Expect(s.bodies).To(HaveLen(4))
		Expect(s.bodies[3]).To(Equal(s.bodies[0]))
		s = &server{err: errors.New("connection refused")}
		e := fail(s, retry)
		Expect([]any{e.Retries, e.Status, e.Retryable}).To(Equal([]any{3, 0, true}))
		Expect(e.Error()).To(And(ContainSubstring("connection refused"), Not(ContainSubstring("Post"))))
	})

	It("keeps the error of the layer below, a final one without repeating", func() {
		s := &server{err: miss{}}
		e := fail(s, func(next http.RoundTripper) http.RoundTripper {
			return transport.Retry(transport.RetryConfig{Clock: clock.NewVirtual(time.Unix(0, 0))}, next)
		})
		Expect(s.bodies).To(HaveLen(1))
		Expect(errors.Is(e, miss{})).To(BeTrue())
		Expect(e.Retryable).To(BeFalse())
	})

	It("is the cause where the context ended", func() {
		because := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		s := &server{body: stream}
		m := newModel(openai.Config{}, s)
		var got error
		for _, err := range m.Stream(ctx, hello()) {
			cancel(because)
			got = err
		}
		Expect(got).To(MatchError(because))
		Expect(s.closed).To(BeNumerically(">", 0))
	})

	It("does not come where the caller breaks off, and the body is closed", func() {
		for stop := 1; stop <= 8; stop++ {
			s := &server{body: stream}
			n := 0
			for _, err := range newModel(openai.Config{}, s).Stream(context.Background(), hello()) {
				Expect(err).NotTo(HaveOccurred())
				if n++; n == stop {
					break
				}
			}
			Expect(n).To(BeNumerically("<=", stop))
			Expect(s.closed).To(BeNumerically(">", 0))
		}
	})
})

type miss struct{}

func (miss) Error() string { return "no such recording" }
func (miss) Final() bool   { return true }

func ExampleNew() {
	// In a program the transport dials; here it answers from memory.
	rt := &server{body: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi!\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"}
	model, err := openai.New(openai.Config{Model: "gpt-4o-mini"}, rt)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := llm.Request{Messages: []conversation.Message{conversation.User("m1", conversation.Text{Text: "Hello"})}}
	for event, err := range model.Stream(context.Background(), request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if delta, ok := event.(llm.TextDelta); ok {
			fmt.Println(delta.Text)
		}
	}
	// Output: Hi!
}
