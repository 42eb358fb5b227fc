package anthropic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/anthropic"
)

// server is a round tripper that answers with bytes and keeps what it was asked.
type server struct {
	status int
	header http.Header
	body   string
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
	return &http.Response{StatusCode: status, Header: header, Body: &closing{strings.NewReader(s.body), s}, ContentLength: -1, Request: req}, nil
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

func newModel(config anthropic.Config, rt http.RoundTripper) llm.Model {
	GinkgoHelper()
	if config.Model == "" {
		config.Model = "claude-haiku-4-5"
	}
	m, err := anthropic.New(config, rt)
	Expect(err).NotTo(HaveOccurred())
	return m
}

const emptyReply = `{"type":"message","id":"msg_1","model":"claude","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

type object = map[string]any

type list = []any

func ptr[T any](v T) *T { return &v }

func user(parts ...conversation.Content) conversation.Message {
	return conversation.User("m", parts...)
}

func text(s string) conversation.Text { return conversation.Text{Text: s} }

func hello() llm.Request {
	return llm.Request{Messages: []conversation.Message{user(text("hello"))}}
}

// ask sends a request to a server that answers with an empty reply, and returns what was sent and the warnings.
func ask(config anthropic.Config, req llm.Request) (object, []llm.Warning) {
	GinkgoHelper()
	s := &server{body: emptyReply}
	reply, err := llm.Generate(context.Background(), newModel(config, s), req)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.bodies).To(HaveLen(1))
	var v object
	Expect(json.Unmarshal([]byte(s.bodies[0]), &v)).To(Succeed(), s.bodies[0])
	return v, reply.Warnings
}

func codes(warnings []llm.Warning) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Code)
	}
	return out
}

// tree reads JSON.
func tree(s string) any {
	GinkgoHelper()
	var v any
	Expect(json.Unmarshal([]byte(s), &v)).To(Succeed(), s)
	return v
}

var _ = Describe("a request", func() {
	It("has its system prompt beside the messages, and the vendor's default limit", func() {
		req := hello()
		req.System = "Be exact."
		req.Messages = append([]conversation.Message{conversation.NewMessage(conversation.RoleSystem, "m", text("And kind."))}, req.Messages...)
		body, warnings := ask(anthropic.Config{}, req)
		Expect(warnings).To(BeEmpty())
		Expect(body).To(Equal(object{
			"model": "claude-haiku-4-5", "max_tokens": 4096.0, "stream": true,
			"system":   list{object{"type": "text", "text": "Be exact.\n\nAnd kind."}},
			"messages": list{object{"role": "user", "content": list{object{"type": "text", "text": "hello"}}}},
		}))
	})

	It("bears the version of the API, the placeholder of a key, and nothing of the environment", func() {
		GinkgoT().Setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-environment")
		GinkgoT().Setenv("ANTHROPIC_BASE_URL", "https://elsewhere.example")
		GinkgoT().Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: yes")
		for version, want := range map[string]string{"": "2026-10-21", "2023-06-01": "2023-06-01"} {
			s := &server{body: emptyReply}
			_, err := llm.Generate(context.Background(), newModel(anthropic.Config{APIVersion: version}, s), hello())
			Expect(err).NotTo(HaveOccurred())
			Expect(s.last.URL.String()).To(Equal("https://api.anthropic.com/v1/messages"))
			Expect(s.last.Header.Values("Anthropic-Version")).To(Equal([]string{want}))
			Expect(s.last.Header.Get("X-Api-Key")).To(Equal("placeholder"))
			Expect(s.last.Header).NotTo(HaveKey("Authorization"))
			Expect(s.last.Header).NotTo(HaveKey("X-Env"))
			Expect(s.last.GetBody).NotTo(BeNil(), "it can be sent again")
			Expect(s.last.ContentLength).To(BeEquivalentTo(len(s.bodies[0])))
		}
	})

	It("keeps the path of its base URL", func() {
		s := &server{body: emptyReply}
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{BaseURL: "http://127.0.0.1:1/gateway"}, s), hello())
		Expect(err).NotTo(HaveOccurred())
		Expect(s.last.URL.String()).To(Equal("http://127.0.0.1:1/gateway/v1/messages"))
	})

	It("puts results first in one message, each with the media that follow it", func() {
		png := conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBO"}}
		body, warnings := ask(anthropic.Config{}, llm.Request{Messages: []conversation.Message{
			user(text("go")),
			conversation.Assistant("m", conversation.ToolCall{ID: "a", Name: "x", Input: `{"n":12345678901234567890.10,"é":"<&>"}`}, conversation.ToolCall{ID: "b", Name: "y"}),
			conversation.ToolResults("m", png, conversation.ToolResult{ID: "a", Result: `"one"`, IsError: true}, png),
			conversation.ToolResults("m", conversation.ToolResult{ID: "b", Result: `{"rows":[1]}`}, conversation.Document{MediaType: "application/pdf", Name: "b.pdf", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://b.example/b.pdf"}}),
			user(text("and?")),
		}})
		Expect(codes(warnings)).To(Equal([]string{"tool-media-moved"}))
		image := object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "iVBO"}}
		Expect(body["messages"]).To(Equal(list{
			object{"role": "user", "content": list{object{"type": "text", "text": "go"}}},
			object{"role": "assistant", "content": list{
				object{"type": "tool_use", "id": "a", "name": "x", "input": object{"n": 12345678901234567890.10, "é": "<&>"}},
				object{"type": "tool_use", "id": "b", "name": "y", "input": object{}},
			}},
			object{"role": "user", "content": list{
				object{"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": list{object{"type": "text", "text": "one"}, image}},
				object{"type": "tool_result", "tool_use_id": "b", "content": list{
					object{"type": "text", "text": `{"rows":[1]}`},
					object{"type": "document", "title": "b.pdf", "source": object{"type": "url", "url": "https://b.example/b.pdf"}},
				}},
				image,
			}},
			object{"role": "user", "content": list{object{"type": "text", "text": "and?"}}},
		}))
	})

	It("keeps the text of numbers in arguments", func() {
		s := &server{body: emptyReply}
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{}, s), llm.Request{Messages: []conversation.Message{
			user(text("go")), conversation.Assistant("m", conversation.ToolCall{ID: "a", Name: "x", Input: `{"n":12345678901234567890.10}`}), conversation.ToolResults("m", conversation.ToolResult{ID: "a", Result: `1`}),
		}})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.bodies[0]).To(ContainSubstring("12345678901234567890.10"))
	})

	It("wraps arguments that are no object and mends ids that the vendor refuses", func() {
		body, warnings := ask(anthropic.Config{}, llm.Request{Messages: []conversation.Message{
			user(text("go")),
			conversation.Assistant("m", conversation.ToolCall{ID: "functions.x:0", Name: "x", Input: `{"a":`}, conversation.ToolCall{ID: "functions.x:1", Name: "x", Input: `[1]`}),
			conversation.ToolResults("m", conversation.ToolResult{ID: "functions.x:0", Result: `""`}, conversation.ToolResult{ID: "functions.x:1", Result: `" "`}),
		}})
		Expect(codes(warnings)).To(Equal([]string{"arguments-wrapped"}))
		messages := body["messages"].(list)
		calls, results := messages[1].(object)["content"].(list), messages[2].(object)["content"].(list)
		Expect(calls[0].(object)["input"]).To(Equal(object{"INVALID_JSON": `{"a":`}))
		Expect(calls[1].(object)["input"]).To(Equal(object{"INVALID_JSON": `[1]`}))
		for i := range calls {
			id := calls[i].(object)["id"]
			Expect(id).To(MatchRegexp(`^functions_x_%d_[0-9a-f]{12}$`, i))
			Expect(results[i].(object)["tool_use_id"]).To(Equal(id))
			Expect(results[i].(object)).NotTo(HaveKey("content"), "the vendor refuses a text without a character")
		}
	})

	It("leaves out what the vendor refuses, and says so", func() {
		req := llm.Request{Messages: []conversation.Message{
			user(text("x"), text(""), text(" \n")),
			conversation.Assistant("m", text("\n\n")),
			conversation.Assistant("m", conversation.Reasoning{Text: "of somebody else", Extras: conversation.Extras{{Vendor: "openai", Data: `"x"`}}}, text("y"),
				conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://x.example"}},
				conversation.Document{MediaType: "application/pdf", Name: "d", Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBE"}}),
			user(text("z")),
		}, Settings: llm.Settings{Seed: ptr(int64(3)), Temperature: ptr(0.0), TopP: ptr(0.5)}}
		body, warnings := ask(anthropic.Config{}, req)
		Expect(codes(warnings)).To(Equal([]string{"blank-text-left-out", "image-left-out", "document-left-out", "reasoning-left-out", "temperature-left-out", "top-p-left-out", "seed-left-out"}))
		Expect(body["messages"]).To(Equal(tree(`[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]},{"role":"user","content":[{"type":"text","text":"z"}]}]`)))
		Expect(body).NotTo(Or(HaveKey("temperature"), HaveKey("top_p"), HaveKey("seed")))

		s := &server{body: emptyReply}
		req.Settings.Strict = true
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{}, s), req)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(ContainSubstring("an image was left out")))
		Expect(failure.Hints(err)).To(ConsistOf(ContainSubstring("image-left-out")))
		Expect(s.bodies).To(BeEmpty(), "nothing is sent")
	})

	It("has sampling and documents of the assistant in the older version of the API", func() {
		req := llm.Request{Messages: []conversation.Message{user(text("x")), conversation.Assistant("m", conversation.Document{MediaType: "application/pdf", Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBE"}}), user(text("z"))},
			Settings: llm.Settings{Temperature: ptr(0.0), TopP: ptr(0.25), Stop: []string{"END"}, MaxTokens: ptr(9)}}
		body, warnings := ask(anthropic.Config{APIVersion: anthropic.Version2023}, req)
		Expect(warnings).To(BeEmpty())
		Expect(body).To(And(HaveKeyWithValue("temperature", 0.0), HaveKeyWithValue("top_p", 0.25), HaveKeyWithValue("max_tokens", 9.0), HaveKeyWithValue("stop_sequences", list{"END"})))
		Expect(body["messages"].(list)[1].(object)["content"]).To(Equal(tree(`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}]`)))

		_, warnings = ask(anthropic.Config{APIVersion: anthropic.Version2023, Model: "claude-opus-4-8"}, llm.Request{Messages: req.Messages[:1], Settings: llm.Settings{Temperature: ptr(0.0)}})
		Expect(codes(warnings)).To(Equal([]string{"temperature-left-out"}))
	})

	DescribeTable("says which tools may be called", func(settings llm.Settings, want string) {
		req := hello()
		req.Settings = settings
		body, _ := ask(anthropic.Config{}, req)
		Expect(body).NotTo(HaveKey("tool_choice"), "without tools")
		req.Tools = []tool.Spec{{Name: "look", Description: "Looks", Parameters: `{ "type":"object", "properties":{"b":{"type":"string"},"a":{"type":"number","maximum":1.5}} }`}}
		body, _ = ask(anthropic.Config{}, req)
		if want == "" {
			Expect(body).NotTo(HaveKey("tool_choice"))
		} else {
			Expect(body["tool_choice"]).To(Equal(tree(want)))
		}
	},
		Entry("nothing", llm.Settings{}, ""),
		Entry("one at a time", llm.Settings{ParallelToolCalls: ptr(false)}, `{"type":"auto","disable_parallel_tool_use":true}`),
		Entry("several", llm.Settings{ParallelToolCalls: ptr(true)}, ""),
		Entry("auto", llm.Settings{ToolChoice: "auto"}, `{"type":"auto"}`),
		Entry("none", llm.Settings{ToolChoice: "none", ParallelToolCalls: ptr(false)}, `{"type":"none"}`),
		Entry("required", llm.Settings{ToolChoice: "required", ParallelToolCalls: ptr(false)}, `{"type":"any","disable_parallel_tool_use":true}`),
		Entry("one", llm.Settings{ToolChoice: "look"}, `{"type":"tool","name":"look"}`),
	)

	It("has the schema of a tool as it was written", func() {
		s := &server{body: emptyReply}
		req := hello()
		req.Tools = []tool.Spec{{Name: "look", Description: "Looks", Parameters: `{ "type":"object", "properties":{"b":{"type":"string"},"a":{"type":"number","maximum":1.50}} }`}}
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{}, s), req)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.bodies[0]).To(ContainSubstring(`"tools":[{"name":"look","description":"Looks","input_schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number","maximum":1.50}}}}]`))
	})

	It("asks for an answer that satisfies a schema", func() {
		req := hello()
		req.Settings = llm.Settings{ResponseSchema: `{"type":"object","properties":{"n":{"type":"integer"}}}`, ReasoningEffort: "low"}
		body, warnings := ask(anthropic.Config{Model: "claude-opus-4-5"}, req)
		Expect(warnings).To(BeEmpty())
		Expect(body["output_config"]).To(Equal(tree(`{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}`)))
	})

	DescribeTable("thinks as far as the model can", func(model string, settings llm.Settings, want string, warnings ...string) {
		req := hello()
		req.Settings = settings
		body, warned := ask(anthropic.Config{Model: model}, req)
		got := object{"max_tokens": body["max_tokens"]}
		for _, key := range []string{"thinking", "output_config"} {
			if v, ok := body[key]; ok {
				got[key] = v
			}
		}
		Expect(got).To(Equal(tree(want)))
		Expect(codes(warned)).To(Equal(slices.Clip(append([]string(nil), warnings...))))
	},
		Entry(nil, "claude-haiku-4-5", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(2000)}}, `{"max_tokens":6096,"thinking":{"type":"enabled","budget_tokens":2000}}`),
		Entry(nil, "claude-sonnet-4-20250514", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(1024)}, MaxTokens: ptr(1025)}, `{"max_tokens":1025,"thinking":{"type":"enabled","budget_tokens":1024}}`),
		Entry(nil, "claude-opus-5-5", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(2000)}}, `{"max_tokens":4096,"thinking":{"type":"adaptive"}}`, "thinking-budget-left-out"),
		Entry(nil, "claude-3-haiku-20240307", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(2000)}}, `{"max_tokens":4096}`, "thinking-left-out"),
		Entry(nil, "claude-opus-5-5", llm.Settings{Thinking: llm.Thinking{Effort: "xhigh"}}, `{"max_tokens":4096,"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}}`),
		Entry(nil, "claude-opus-4-5-20251101", llm.Settings{Thinking: llm.Thinking{Effort: "low"}}, `{"max_tokens":4096,"output_config":{"effort":"low"}}`),
		Entry(nil, "claude-haiku-4-5", llm.Settings{ReasoningEffort: "low"}, `{"max_tokens":4096}`, "reasoning-effort-left-out"),
		Entry(nil, "claude-opus-5-5", llm.Settings{ReasoningEffort: "minimal"}, `{"max_tokens":4096}`, "reasoning-effort-left-out"),
		Entry("a name that says nothing", "internal-model", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(2000), Effort: "max"}}, `{"max_tokens":6096,"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"max"}}`),
	)

	DescribeTable("is refused before it is sent where its budget cannot be", func(settings llm.Settings, message string) {
		req := hello()
		req.Settings = settings
		s := &server{body: emptyReply}
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{}, s), req)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(s.bodies).To(BeEmpty())
	},
		Entry("too small", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(1023)}}, "too small"),
		Entry("as large as the limit", llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(2000)}, MaxTokens: ptr(2000)}, "leaves nothing of max_tokens 2000"),
	)
})

var _ = Describe("a model", func() {
	DescribeTable("must be set up right", func(config anthropic.Config, message string) {
		_, err := anthropic.New(config, &server{})
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
	},
		Entry("name", anthropic.Config{}, "no model is named"),
		Entry("version", anthropic.Config{Model: "m", APIVersion: "2024-01-01"}, `unknown api_version "2024-01-01"`),
		Entry("scheme", anthropic.Config{Model: "m", BaseURL: "ftp://x"}, "base_url"),
		Entry("user", anthropic.Config{Model: "m", BaseURL: "https://a:hunter2@x"}, "base_url"),
		Entry("query", anthropic.Config{Model: "m", BaseURL: "https://x?key=hunter2"}, "base_url"),
	)

	It("needs a round tripper", func() {
		_, err := anthropic.New(anthropic.Config{Model: "m"}, nil)
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	})
})

// events writes a stream.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var kind struct{ Type string }
		Expect(json.Unmarshal([]byte(d), &kind, json.MatchCaseInsensitiveNames(true))).To(Succeed(), d)
		b.WriteString("event: " + kind.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

const (
	messageStart = `{"type":"message_start","message":{"id":"msg_1","model":"claude-x","content":[],"usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"output_tokens":1}}}`
	messageDelta = `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`
	messageStop  = `{"type":"message_stop"}`
)

func generate(s *server) (llm.Reply, error) {
	return llm.Generate(context.Background(), newModel(anthropic.Config{}, s), hello())
}

var _ = Describe("a reply", func() {
	blocks := []string{
		`{"type":"thinking","thinking":"Hm, é.","signature":"c2ln"}`,
		`{"type":"redacted_thinking","data":"cmVk"}`,
		`{"type":"text","text":"Let me look."}`,
		`{"type":"thinking","thinking":"","signature":"b21pdA=="}`,
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"url":"https://x.example","z":1.50}]}`,
		`{"type":"tool_use","id":"toolu_1","name":"look","input":{"a":1.50}}`,
		`{"type":"tool_use","id":"toolu_2","name":"see","input":{}}`,
	}
	want := []conversation.Content{
		conversation.Reasoning{Text: "Hm, é.", Extras: conversation.Extras{{Vendor: "anthropic", Data: `[{"type":"thinking","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"}]`}}},
		conversation.Text{Text: "Let me look."},
		conversation.Reasoning{Extras: conversation.Extras{{Vendor: "anthropic", Data: `[{"type":"thinking","thinking":"","signature":"b21pdA=="},{"id":"srvtoolu_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},{"content":[{"url":"https://x.example","z":1.50}],"tool_use_id":"srvtoolu_1","type":"web_search_tool_result"}]`}}},
		conversation.ToolCall{ID: "toolu_1", Name: "look", Input: `{"a":1.50}`},
		conversation.ToolCall{ID: "toolu_2", Name: "see", Input: `{}`},
	}
	finish := llm.Finish{Stop: llm.StopToolCalls, Model: "claude-x", ID: "msg_1", Usage: conversation.Usage{InputTokens: 39, OutputTokens: 9, CacheReadTokens: 30, CacheWriteTokens: 2, ReasoningTokens: 4}}

	whole := `{"type":"message","id":"msg_1","model":"claude-x","content":[` + strings.Join(blocks, ",") + `],"stop_reason":"tool_use","usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`

	streamed := func() string {
		return events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm,"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" é."}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":`+blocks[1]+`}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Let"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" me look."}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"a_delta_of_tomorrow","text":"?"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"an_event_of_tomorrow","index":"?"}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"signature_delta","signature":"b21pdA=="}}`, `{"type":"content_block_stop","index":3}`,
			`{"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`,
			`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"query\": "}}`,
			`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}`, `{"type":"content_block_stop","index":4}`,
			`{"type":"content_block_start","index":5,"content_block":`+blocks[5]+`}`, `{"type":"content_block_stop","index":5}`,
			`{"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}`,
			`{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"toolu_2","name":"see","input":{}}}`,
			`{"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1."}}`,
			`{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"50}"}}`,
			`{"type":"content_block_stop","index":6}`, `{"type":"content_block_stop","index":7}`,
			messageDelta, messageStop)
	}

	It("is the same streamed and whole, whatever its header says", func() {
		bodies := []server{
			{body: whole}, {body: whole, header: http.Header{"Content-Type": {"application/json"}}},
			{body: streamed()}, {body: streamed(), header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}},
			{body: strings.ReplaceAll(streamed(), "\n", "\r\n")}, {body: ": hello\n\n" + streamed() + "data: after the end"},
		}
		for i := range bodies {
			reply, err := generate(&bodies[i])
			Expect(err).NotTo(HaveOccurred())
			Expect(reply.Parts).To(Equal(want), "body %d", i)
			Expect(reply.Finish).To(Equal(finish))
			Expect(codes(reply.Warnings)).To(Equal([]string{"content-opaque", "content-opaque"}))
			Expect(bodies[i].closed).To(Equal(1))
		}
	})

	It("goes back block by block as it came", func() {
		s := &server{body: streamed()}
		reply, err := generate(s)
		Expect(err).NotTo(HaveOccurred())
		ctx, err := conversation.New(nil).Append(user(text("x")), conversation.Assistant("m", reply.Parts...), conversation.ToolResults("m", conversation.ToolResult{ID: "toolu_1", Result: "1"}, conversation.ToolResult{ID: "toolu_2", Result: "2"}))
		Expect(err).NotTo(HaveOccurred())
		stored, _, err := conversation.Decode(ctx.AppendJSON(nil))
		Expect(err).NotTo(HaveOccurred())
		var messages []conversation.Message
		for _, m := range stored.Messages() {
			messages = append(messages, m)
		}
		body, warnings := ask(anthropic.Config{}, llm.Request{Messages: messages})
		Expect(warnings).To(BeEmpty())
		Expect(body["messages"].(list)[1].(object)["content"]).To(Equal(tree("[" + strings.Join(blocks, ",") + "]")))
	})

	It("keeps several texts of one stretch of reasoning apart", func() {
		two := `{"type":"message","content":[{"type":"thinking","thinking":"a","signature":"MQ=="},{"type":"thinking","thinking":"b","signature":"Mg=="}],"stop_reason":"end_turn","usage":{}}`
		reply, err := generate(&server{body: two})
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Parts).To(HaveLen(1))
		body, _ := ask(anthropic.Config{}, llm.Request{Messages: []conversation.Message{user(text("x")), conversation.Assistant("m", reply.Parts...)}})
		Expect(body["messages"].(list)[1].(object)["content"]).To(Equal(tree(`[{"type":"thinking","thinking":"a","signature":"MQ=="},{"type":"thinking","thinking":"b","signature":"Mg=="}]`)))
	})

	DescribeTable("says why it ended", func(word string, stop llm.StopReason) {
		reply, err := generate(&server{body: strings.Replace(emptyReply, "end_turn", word, 1)})
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Finish.Stop).To(Equal(stop))
	},
		Entry(nil, "end_turn", llm.StopEnd), Entry(nil, "stop_sequence", llm.StopEnd), Entry(nil, "max_tokens", llm.StopLength), Entry(nil, "model_context_window_exceeded", llm.StopLength),
		Entry(nil, "tool_use", llm.StopToolCalls), Entry(nil, "refusal", llm.StopRefused), Entry(nil, "pause_turn", llm.StopOther), Entry(nil, "of tomorrow", llm.StopOther),
	)

	It("gives a call without an id one that stays the same", func() {
		body := `{"type":"message","content":[{"type":"tool_use","name":"look","input":{}}],"stop_reason":"tool_use"}`
		first, err := generate(&server{body: body})
		Expect(err).NotTo(HaveOccurred())
		Expect(codes(first.Warnings)).To(Equal([]string{"usage-missing"}))
		second, err := generate(&server{body: body})
		Expect(err).NotTo(HaveOccurred())
		Expect(first).To(Equal(second))
		Expect(first.Parts[0].(conversation.ToolCall).ID).To(HavePrefix("toolu_"))
	})

	It("is whole only with its message_stop", func() {
		cut := strings.TrimSuffix(streamed(), events(messageStop))
		_, err := generate(&server{body: cut})
		Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(e.Retryable).To(BeTrue())
	})

	DescribeTable("that is none is an error", func(header, body, message string) {
		s := &server{body: body, header: http.Header{"Request-Id": {"req_1"}}}
		if header != "" {
			s.header.Set("Content-Type", header)
		}
		reply, err := generate(s)
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(e.RequestID).To(Equal("req_1"))
		Expect(reply.Parts).To(BeEmpty())
		Expect(s.closed).To(Equal(1))
	},
		Entry(nil, "", "", "the reply is empty"),
		Entry(nil, "application/json", " ", "the reply is empty"),
		Entry(nil, "text/event-stream", ": only comments\n\n", "the reply is empty"),
		Entry(nil, "text/html", "<html>\n<b>Sign in sk-ant-0123456789</b>", "neither JSON nor an event stream: a page of HTML and no JSON: Sign in [secret]"),
		Entry("of the wrong type", "application/json", `{"type":"message","content":"x"}`, "reading the reply"),
		Entry("of another kind", "application/json", `{"data":[]}`, "the reply is no message"),
		Entry("with status 200", "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Overloaded"),
		Entry("by a gateway", "application/json", `{"error":"no quota"}`, "no quota"),
		Entry("torn", "application/json", whole[:80], "reading the reply"),
		Entry("a frame that is torn", "text/event-stream", "event: message_start\ndata: {\"type\":\n\n", "reading a frame"),
		Entry("a block that is no object", "", `{"type":"message","content":[1]}`, "reading a block"),
		Entry("a piece of no block", "text/event-stream", "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n", "before the block"),
	)

	It("that goes on in one line without end is an error", func() {
		s := &server{}
		endless := roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := s.RoundTrip(req)
			resp.Header.Set("Content-Type", "text/event-stream")
			resp.Body = &closing{io.MultiReader(strings.NewReader("data: "), repeat{}), s}
			return resp, err
		})
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{}, endless), hello())
		Expect(err).To(MatchError(ContainSubstring("too long")))
		Expect(s.closed).To(Equal(1))
	})
})

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type repeat struct{}

func (repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

var _ = Describe("a refusal", func() {
	It("tells what the vendor said", func() {
		now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		s := &server{status: 529, header: http.Header{"Request-Id": {"req_011CU"}, "Retry-After": {"7"}}, body: `{"type":"error","error":{"type":"overloaded_error","message":"Over\nloaded sk-ant-api03-0123456789"},"request_id":"req_other"}`}
		_, err := llm.Generate(context.Background(), newModel(anthropic.Config{Clock: clock.NewVirtual(now)}, s), hello())
		var e *llm.Error
		Expect(errors.As(err, &e)).To(BeTrue())
		Expect(*e).To(Equal(llm.Error{Vendor: "anthropic", Status: 529, Type: "overloaded_error", Message: "Over loaded [secret]", RequestID: "req_011CU", RetryAfter: 7 * time.Second, Retryable: true}))
		Expect(s.closed).To(Equal(1))
		Expect(s.bodies).To(HaveLen(1), "the SDK does not repeat")
	})

	It("may be no JSON, and nothing at all", func() {
		_, err := generate(&server{status: 502, body: "<html>\nBad gateway</html>"})
		Expect(err).To(MatchError("anthropic: status 502: a page of HTML and no JSON: Bad gateway"))
		_, err = generate(&server{status: 503})
		Expect(err).To(MatchError("anthropic: status 503: Service Unavailable"))
		_, err = generate(&server{status: 301, header: http.Header{"Location": {"https://elsewhere.example"}}})
		Expect(err).To(MatchError("anthropic: status 301: Moved Permanently"), "no redirect is followed")
	})

	It("in the middle of a stream says whether it may pass", func() {
		for kind, passes := range map[string]bool{"overloaded_error": true, "invalid_request_error": false} {
			_, err := generate(&server{body: events(messageStart, `{"type":"error","error":{"type":"`+kind+`","message":"no"}}`)})
			var e *llm.Error
			Expect(errors.As(err, &e)).To(BeTrue())
			Expect(e.Type).To(Equal(kind))
			Expect(e.Retryable).To(Equal(passes))
		}
	})

	It("of the transport is told without the address", func() {
		_, err := generate(&server{err: errors.New("no route to host")})
		Expect(err).To(MatchError("anthropic: no route to host"))
	})
})
