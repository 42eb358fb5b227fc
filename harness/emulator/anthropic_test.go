package emulator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/providertest"
)

const messagesScript = `
version: 1
name: messages
models: [claude-*]
conversations:
  - match: {user_contains: both, system_contains: brief}
    steps:
      - text: Looking.
        reasoning: I look at both.
        calls: [{name: read_file, args: {path: a.txt, n: 1.50}}, {name: list_dir}]
      - text: 'b says {{tool_result "list_dir"}}'
        usage: {input: 90, cached_input: 64, output: 30, reasoning: 10}
        latency: 412ms
        ttft: 90ms
  - {match: {user: unicode}, steps: [{text: "Grüße, 世界 👩‍👩‍👧‍👦 \"q\" \\ \t\u0001\u2028 end\n", fragment: 1}]}
  - {match: {user: refuse}, steps: [{refusal: "I can't help with that."}]}
  - {match: {user: filtered}, steps: [{text: Hm, finish: content_filter}]}
  - {match: {user: long}, steps: [{text: It goes on and, finish: length}]}
  - {match: {user: empty}, steps: [{text: ""}]}
  - {match: {user: malformed}, steps: [{calls: [{name: read_file, raw: '{"path": "a.txt', id: toolu_fixed}]}]}
  - {match: {user: think}, steps: [{reasoning: First I think about it., text: Done.}]}
  - {match: {user: cut}, steps: [{text: This will never arrive., cut: {after: 5 frames}}]}
  - {match: {user: cut bytes}, steps: [{text: This will never arrive., cut: {after: 120 bytes}}]}
  - {match: {user: flaky}, steps: [{attempts: [{error: {status: 529}}, {text: Fine now.}]}]}
  - {match: {user: 400 of its own}, steps: [{error: {status: 400, type: billing_error, message: Pay first.}}]}
  - {match: {user: e401}, steps: [{error: {status: 401}}]}
  - {match: {user: e403}, steps: [{error: {status: 403}}]}
  - {match: {user: e404}, steps: [{error: {status: 404}}]}
  - {match: {user: e408}, steps: [{error: {status: 408}}]}
  - {match: {user: e413}, steps: [{error: {status: 413}}]}
  - {match: {user: e429}, steps: [{error: {status: 429, retry_after: 1500ms}}]}
  - {match: {user: e500}, steps: [{error: {status: 500}}]}
  - {match: {user: e503}, steps: [{error: {status: 503}}]}
  - {match: {user: e529}, steps: [{error: {status: 529}}]}
`

// messagesRequest makes a request as the vendor's clients send it.
func messagesRequest(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/messages", strings.NewReader(body))
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Anthropic-Version", "2026-10-21")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func postMessages(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, messagesRequest(body, headers...))
	return w
}

// say is the body of a request with the given messages; more is put before them.
func say(more string, messages ...string) string {
	if more != "" {
		more += ","
	}
	return `{"model":"claude-haiku-4-5","max_tokens":4096,` + more + `"messages":[` + strings.Join(messages, ",") + `]}`
}

func says(role, content string) string { return `{"role":"` + role + `","content":` + content + `}` }

func userSays(text string) string { return says("user", quote(text)) }

const (
	thinking = `"thinking":{"type":"enabled","budget_tokens":1024}`
	toolList = `"tools":[{"name":"read_file","input_schema":{"type":"object"}},{"name":"list_dir","input_schema":{"type":"object"}}]`
)

type messagesBlock struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input                                     json.RawMessage
}

type messagesReply struct {
	ID, Model  string
	Content    []messagesBlock
	StopReason string `json:"stop_reason"`
	Usage      struct {
		Input  int `json:"input_tokens"`
		Read   int `json:"cache_read_input_tokens"`
		Output int `json:"output_tokens"`
		Detail struct {
			Thinking int `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
}

func readMessages(body []byte) messagesReply {
	GinkgoHelper()
	var m messagesReply
	Expect(json.Unmarshal(body, &m)).To(Succeed(), "%s", body)
	return m
}

// messagesFrames returns the JSON texts of a whole stream, and checks how it is framed.
func messagesFrames(body []byte) []string {
	GinkgoHelper()
	var out []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
		event, data, ok := strings.Cut(frame, "\n")
		Expect(ok).To(BeTrue(), frame)
		data, ok = strings.CutPrefix(data, "data: ")
		Expect(ok).To(BeTrue(), frame)
		var kind struct{ Type string }
		Expect(json.Unmarshal([]byte(data), &kind)).To(Succeed(), frame)
		Expect(event).To(Equal("event: " + kind.Type))
		out = append(out, data)
	}
	Expect(out[len(out)-1]).To(HavePrefix(`{"type":"message_stop"`))
	return out
}

// foldMessages puts a stream together.
func foldMessages(frames []string) messagesReply {
	GinkgoHelper()
	var m messagesReply
	for _, f := range frames {
		var e struct {
			Type    string
			Index   int
			Message json.RawMessage
			Block   messagesBlock `json:"content_block"`
			Delta   struct {
				Text, Thinking, Signature string
				JSON                      string `json:"partial_json"`
				StopReason                string `json:"stop_reason"`
			}
		}
		Expect(json.Unmarshal([]byte(f), &e)).To(Succeed(), f)
		switch e.Type {
		case "message_start":
			m = readMessages(e.Message)
		case "content_block_start":
			Expect(e.Index).To(Equal(len(m.Content)))
			m.Content = append(m.Content, e.Block)
		case "content_block_delta":
			b := &m.Content[e.Index]
			b.Text += e.Delta.Text
			b.Thinking += e.Delta.Thinking
			b.Signature += e.Delta.Signature
			if b.Type == "tool_use" {
				b.Input = append([]byte(strings.TrimPrefix(string(b.Input), "{}")), e.Delta.JSON...)
			}
		case "message_delta":
			Expect(json.Unmarshal([]byte(f), &m)).To(Succeed())
			m.StopReason = e.Delta.StopReason
		}
	}
	return m
}

// conversationOf is a request for each thing that the script can say.
func messagesRequests() map[string]string {
	brief := `"system":[{"type":"text","text":"Be brief."}],` + toolList
	out := map[string]string{
		"calls":    say(brief, userSays("look at both")),
		"thinking": say(thinking+","+brief, userSays("look at both")),
		"second": say(brief+`,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, userSays("look at both"), says("assistant", `[{"type":"text","text":"Looking."},{"type":"tool_use","id":"a","name":"read_file","input":{}},{"type":"tool_use","id":"b","name":"list_dir","input":{}}]`),
			says("user", `[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"B"}]}]`)),
		"omitted": say(`"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"low"}`, userSays("think")),
	}
	for _, text := range []string{"unicode", "refuse", "filtered", "long", "empty", "think"} {
		out[text] = say("", userSays(text))
	}
	return out
}

var _ = Describe("the Messages format", func() {
	It("streams what it answers in one piece", func() {
		h := handler(load(messagesScript), emulator.Options{})
		for name, body := range messagesRequests() {
			w := postMessages(h, body)
			Expect(w.Code).To(Equal(200), "%s: %s", name, w.Body)
			whole := readMessages(w.Body.Bytes())
			Expect(whole.ID).To(MatchRegexp(`^msg_01[1-9A-Za-z]{22}$`))
			Expect(whole.Model).To(Equal("claude-haiku-4-5-20251001"))
			Expect(postMessages(h, body).Body.Bytes()).To(Equal(w.Body.Bytes()), "equal requests get equal bytes")
			s := postMessages(h, with(body, streamed))
			Expect(s.Code).To(Equal(200), "%s: %s", name, s.Body)
			got := foldMessages(messagesFrames(s.Body.Bytes()))
			got.ID, whole.ID = "", "" // a stream is another request
			for i := range got.Content {
				got.Content[i].ID, whole.Content[i].ID = "", ""
			}
			Expect(got).To(Equal(whole), name)
		}
	})

	It("says what the script says", func() {
		h := handler(load(messagesScript), emulator.Options{})
		requests := messagesRequests()
		one := readMessages(postMessages(h, requests["calls"]).Body.Bytes())
		Expect(one.StopReason).To(Equal("tool_use"))
		Expect(one.Content).To(HaveLen(3), "no reasoning where none is asked for")
		Expect(one.Content[0]).To(Equal(messagesBlock{Type: "text", Text: "Looking."}))
		Expect(one.Content[1].ID).To(MatchRegexp(`^toolu_01[1-9A-Za-z]{22}$`))
		Expect(string(one.Content[1].Input)).To(Equal(`{"path":"a.txt","n":1.50}`))
		Expect(string(one.Content[2].Input)).To(Equal(`{}`))

		two := postMessages(h, requests["second"])
		reply := readMessages(two.Body.Bytes())
		Expect(reply.Content).To(Equal([]messagesBlock{{Type: "text", Text: "b says B"}}))
		Expect(reply.StopReason).To(Equal("end_turn"))
		Expect([]int{reply.Usage.Input, reply.Usage.Read, reply.Usage.Output, reply.Usage.Detail.Thinking}).To(Equal([]int{26, 64, 30, 10}))
		Expect(two.Header().Get("Server-Timing")).To(Equal("total;dur=412, ttft;dur=90"))
		Expect(two.Header().Get("Request-Id")).To(MatchRegexp(`^req_011C[1-9A-Za-z]{20}$`))
		Expect(two.Header().Get("Anthropic-Ratelimit-Requests-Remaining")).To(Equal("9999"))
		Expect(two.Header().Get("Anthropic-Ratelimit-Input-Tokens-Reset")).To(MatchRegexp(`^2026-\d\d-\d\dT\d\d:\d\d:\d\dZ$`))
		Expect(two.Header().Values("Date")).To(BeEmpty())

		for text, stop := range map[string]string{"refuse": "refusal", "filtered": "refusal", "long": "max_tokens", "empty": "end_turn"} {
			Expect(readMessages(postMessages(h, requests[text]).Body.Bytes()).StopReason).To(Equal(stop), text)
		}
		Expect(readMessages(postMessages(h, requests["empty"]).Body.Bytes()).Content).To(BeEmpty())
		omitted := readMessages(postMessages(h, requests["omitted"]).Body.Bytes()).Content[0]
		Expect(omitted).To(And(HaveField("Type", "thinking"), HaveField("Thinking", ""), HaveField("Signature", Not(BeEmpty()))))
	})

	It("holds a client to the reasoning that it was given", func() {
		h := handler(load(messagesScript), emulator.Options{})
		more := thinking + `,"system":"Be brief.",` + toolList
		first := readMessages(postMessages(h, say(more, userSays("look at both"))).Body.Bytes())
		Expect(first.Content[0].Thinking).To(Equal("I look at both."))
		results := says("user", `[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b","content":"B"}]`)
		calls := `{"type":"tool_use","id":"a","name":"read_file","input":{}},{"type":"tool_use","id":"b","name":"list_dir","input":{}}]`
		send := func(thought string) *httptest.ResponseRecorder {
			return postMessages(h, say(more, userSays("look at both"), says("assistant", "["+thought+calls), results))
		}
		thought := func(text, signature string) string {
			return `{"type":"thinking","thinking":` + quote(text) + `,"signature":"` + signature + `"},`
		}
		right := first.Content[0].Signature
		for name, good := range map[string]string{"as it was": thought("I look at both.", right), "without its text": thought("", right), "redacted": `{"type":"redacted_thinking","data":"x"},`} {
			Expect(send(good).Code).To(Equal(200), name)
		}
		for name, bad := range map[string]string{"another text": thought("I look.", right), "another signature": thought("I look at both.", "c2ln"), "no base64": thought("I look at both.", "?")} {
			w := send(bad)
			Expect(w.Code).To(Equal(400), name)
			Expect(w.Body.String()).To(ContainSubstring("messages.1.content.0: Invalid `signature` in `thinking` block"), name)
		}
		Expect(send("").Body.String()).To(ContainSubstring("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."))
	})

	It("cuts a reply, and answers tries one by one", func() {
		h := handler(load(messagesScript), emulator.Options{})
		server := httptest.NewServer(h)
		defer server.Close()
		for text, most := range map[string]int{"cut": 4000, "cut bytes": 120} {
			for _, more := range []string{streamed, ""} {
				r := messagesRequest(say(more, userSays(text)))
				r.RequestURI, r.URL.Host = "", strings.TrimPrefix(server.URL, "http://")
				resp, err := server.Client().Do(r)
				Expect(err).NotTo(HaveOccurred())
				got, err := io.ReadAll(resp.Body)
				Expect(err).To(MatchError(io.ErrUnexpectedEOF), text)
				Expect(resp.Body.Close()).To(Succeed())
				Expect(len(got)).To(And(BeNumerically(">", 100), BeNumerically("<=", most)), text)
				Expect(string(got)).NotTo(ContainSubstring("message_stop"))
				if more != "" && text == "cut" {
					Expect(strings.Count(string(got), "\n\n")).To(Equal(5))
				}
			}
		}
		Expect(postMessages(h, say("", userSays("flaky"))).Code).To(Equal(529))
		Expect(postMessages(h, say("", userSays("flaky")), "X-Stainless-Retry-Count", "1").Code).To(Equal(200))
		w := postMessages(h, say("", userSays("malformed")))
		Expect(w.Body.String()).To(And(ContainSubstring("emulator_unsupported"), ContainSubstring(`read_file`)))
		s := foldMessages(messagesFrames(postMessages(h, say(streamed, userSays("malformed"))).Body.Bytes()))
		Expect(s.Content).To(Equal([]messagesBlock{{Type: "tool_use", ID: "toolu_fixed", Name: "read_file", Input: json.RawMessage(`{"path": "a.txt`)}}))
	})

	DescribeTable("fails in the vendor's words", func(text string, status int, kind string) {
		w := postMessages(handler(load(messagesScript), emulator.Options{}), say("", userSays(text)))
		Expect(w.Code).To(Equal(status))
		var e struct {
			Type      string
			Error     struct{ Type, Message string }
			RequestID string `json:"request_id"`
		}
		Expect(json.Unmarshal(w.Body.Bytes(), &e)).To(Succeed())
		Expect(e.Type).To(Equal("error"))
		Expect(e.Error.Type).To(Equal(kind))
		Expect(e.Error.Message).NotTo(Or(BeEmpty(), ContainSubstring("%")))
		Expect(e.RequestID).To(Equal(w.Header().Get("Request-Id")))
		Expect(e.RequestID).NotTo(BeEmpty())
		if status == 429 {
			Expect(w.Header().Get("Retry-After")).To(Equal("2"))
			Expect(w.Header().Get("Anthropic-Ratelimit-Requests-Remaining")).To(Equal("0"))
		}
	},
		Entry(nil, "400 of its own", 400, "billing_error"), Entry(nil, "e401", 401, "authentication_error"), Entry(nil, "e403", 403, "permission_error"), Entry(nil, "e404", 404, "not_found_error"), Entry(nil, "e408", 408, "timeout_error"),
		Entry(nil, "e413", 413, "request_too_large"), Entry(nil, "e429", 429, "rate_limit_error"), Entry(nil, "e500", 500, "api_error"), Entry(nil, "e503", 503, "api_error"), Entry(nil, "e529", 529, "overloaded_error"),
	)

	DescribeTable("refuses what stands before the body", func(change func(*http.Request), status int, message string) {
		r := messagesRequest(say("", userSays("empty")))
		change(r)
		w := httptest.NewRecorder()
		handler(load(messagesScript), emulator.Options{Keys: []string{key}, MaxBody: 200}).ServeHTTP(w, r)
		Expect(w.Code).To(Equal(status), w.Body.String())
		if message != "" {
			Expect(w.Body.String()).To(ContainSubstring(message))
		}
		Expect(w.Body.String()).NotTo(ContainSubstring(key))
	},
		Entry("nothing", func(*http.Request) {}, 200, ""),
		Entry("a bearer", func(r *http.Request) { r.Header.Del("X-Api-Key"); r.Header.Set("Authorization", "Bearer "+key) }, 200, ""),
		Entry("the older version", func(r *http.Request) { r.Header.Set("Anthropic-Version", "2023-06-01") }, 200, ""),
		Entry("no key", func(r *http.Request) { r.Header.Del("X-Api-Key") }, 401, "x-api-key header is required"),
		Entry("another key", func(r *http.Request) { r.Header.Set("X-Api-Key", "sk-wrong") }, 401, "invalid x-api-key"),
		Entry("no version", func(r *http.Request) { r.Header.Del("Anthropic-Version") }, 400, "anthropic-version: header is required"),
		Entry("another version", func(r *http.Request) { r.Header.Set("Anthropic-Version", "2024-01-01") }, 400, `\"2024-01-01\" is not a valid version`),
		Entry("another method", func(r *http.Request) { r.Method = http.MethodGet }, 405, "Method Not Allowed"),
		Entry("another path", func(r *http.Request) { r.URL.Path = "/v1/messages/batches" }, 404, "not_found_error"),
		Entry("too much", func(r *http.Request) {
			*r = *messagesRequest(say("", userSays(strings.Repeat("x", 300))))
		}, 413, "request_too_large"),
	)

	DescribeTable("refuses a request in the vendor's words", func(body, message string, headers ...string) {
		w := postMessages(handler(load(messagesScript), emulator.Options{}), body, headers...)
		Expect(w.Code).To(Or(Equal(400), Equal(404)), w.Body.String())
		var e struct{ Error struct{ Message string } }
		Expect(json.Unmarshal(w.Body.Bytes(), &e)).To(Succeed())
		Expect(e.Error.Message).To(HavePrefix(message))
	}, messagesRefusals())
})

// messagesRefusals are requests that the vendor refuses.
func messagesRefusals() []TableEntry {
	const older = "2023-06-01"
	one := userSays("empty")
	use := `{"type":"tool_use","id":"a","name":"x","input":{}}`
	result := func(id string) string { return `{"type":"tool_result","tool_use_id":"` + id + `"}` }
	image := func(source string) string { return say("", says("user", `[{"type":"image","source":`+source+`}]`)) }
	var out []TableEntry
	add := func(body, message string, headers ...string) {
		args := []any{nil, body, message}
		for _, h := range headers {
			args = append(args, h)
		}
		out = append(out, Entry(args[0], args[1:]...))
	}
	add(`{`, "The request body is not valid JSON")
	add(`[]`, "Input should be a valid dictionary")
	add(`{"max_tokens":1,"messages":[]}`, "model: Field required")
	add(`{"model":1,"max_tokens":1}`, "model: Input should be a valid string")
	add(`{"model":"claude-x","messages":[]}`, "max_tokens: Field required")
	add(`{"model":"claude-x","max_tokens":"1","messages":[]}`, "max_tokens: Input should be a valid integer")
	add(`{"model":"claude-x","max_tokens":0,"messages":[]}`, "max_tokens: Input should be greater than or equal to 1")
	add(`{"model":"claude-x","max_tokens":1}`, "messages: Field required")
	add(`{"model":"claude-x","max_tokens":1,"messages":[]}`, "messages: at least one message is required")
	add(strings.Replace(say("", one), "claude-haiku-4-5", "gpt-4o", 1), "model: gpt-4o")
	add(say(`"n":2`, one), "n: Extra inputs are not permitted")
	add(say(`"temperature":1`, one), "temperature: Extra inputs are not permitted")
	add(say(`"temperature":2`, one), "temperature: Input should be less than or equal to 1", "Anthropic-Version", older)
	add(say(`"stream":1`, one), "stream: Input should be a valid boolean")
	add(say(`"stop_sequences":[" "]`, one), "stop_sequences: each stop sequence must contain non-whitespace")
	add(say(`"system":1`, one), "system: Input should be a valid string")
	add(say(`"system":[{"type":"image"}]`, one), "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'")
	add(say(`"output_config":{"effort":"none"}`, one), "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh', or 'max'")
	add(say(`"output_config":{"format":{"type":"json_schema"}}`, one), "output_config.format.schema: Field required")
	add(say(`"thinking":{"type":"enabled","budget_tokens":1023}`, one), "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	add(say(`"thinking":{"type":"enabled","budget_tokens":4096}`, one), "`max_tokens` must be greater than `thinking.budget_tokens`.")
	add(say(`"thinking":{"type":"on"}`, one), "thinking: Input tag 'on' found using 'type'")
	add(say(thinking+`,"temperature":0.5`, one), "`temperature` may only be set to 1 when thinking is enabled.", "Anthropic-Version", older)
	add(say(thinking+`,"tool_choice":{"type":"any"},`+toolList, one), "Thinking may not be enabled when tool_choice forces tool use.")
	add(say(`"tool_choice":{"type":"auto"}`, one), "tool_choice: Tool_choice may only be specified while providing tools.")
	add(say(`"tool_choice":{"type":"tool","name":"x"},`+toolList, one), "tool_choice.tool.name: Tool 'x' not found in provided tools")
	add(say(`"tools":[{"name":"a b","input_schema":{"type":"object"}}]`, one), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
	add(say(`"tools":[{"name":"a"}]`, one), "tools.0.custom.input_schema: Field required")
	add(say(`"tools":[{"name":"a","input_schema":{}}]`, one), "tools.0.custom.input_schema.type: Field required")
	add(say(`"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]`, one), "tools: Tool names must be unique.")
	add(say("", says("assistant", `"x"`), one), `messages: first message must use the "user" role`)
	add(say("", says("system", `"x"`), one), "messages: Unexpected role \"system\".", "Anthropic-Version", older)
	add(say("", says("robot", `"x"`)), "messages.0.role: Input should be 'user' or 'assistant'")
	add(say("", `{"role":"user"}`), "messages.0.content: Field required")
	add(say("", says("user", `1`)), "messages.0.content: Input should be a valid list")
	add(say("", says("user", `[]`)), "messages.0: all messages must have non-empty content except for the optional final assistant message")
	add(say("", says("user", `" "`)), "messages: text content blocks must contain non-whitespace text")
	add(say("", says("user", `[{"type":"text","text":""}]`)), "messages: text content blocks must be non-empty")
	add(say("", says("user", `[{"type":"video"}]`)), "messages.0.content.0: Input tag 'video' found using 'type'")
	add(say("", says("user", `[`+use+`]`)), "messages.0.content.0: `tool_use` blocks are not permitted in `user` messages")
	add(say("", one, says("assistant", `[{"type":"tool_use","id":"a.b","name":"x","input":{}}]`)), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
	add(say("", one, says("assistant", `[{"type":"tool_use","id":"a","name":"x","input":"{}"}]`)), "messages.1.content.0.tool_use.input: Input should be a valid dictionary")
	add(say("", one, says("assistant", `[`+use+`,`+use+`]`)), "messages.1: `tool_use` ids must be unique")
	add(say("", one, says("assistant", `[`+use+`]`)), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a.")
	add(say("", one, says("assistant", `[`+use+`]`), one), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a.")
	add(say("", one, says("assistant", `[`+use+`]`), says("user", `[{"type":"text","text":"x"},`+result("a")+`]`)), "messages.1: `tool_use` ids were found without")
	add(say("", says("user", `[`+result("a")+`]`)), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a.")
	add(say("", one, says("assistant", `[`+use+`]`), says("user", `[`+result("a")+`,`+result("a")+`]`)), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a")
	add(say("", one, says("assistant", `[{"type":"document","source":{"type":"url","url":"https://x.example"}}]`), one), "messages.1.content.0: `document` blocks are not permitted in `assistant` messages")
	add(image(`{"type":"base64","media_type":"image/tiff","data":"AAAA"}`), "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif', or 'image/webp'")
	add(image(`{"type":"base64","media_type":"image/png","data":"?"}`), "messages.0.content.0.image.source.base64: invalid base64 data")
	add(image(`{"type":"base64","media_type":"image/png","data":"AAAA"}`), "messages.0.content.0.image.source.base64.data: The image was specified using the image/png media type")
	add(say("", says("user", `[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]`)), "messages.0.content.0.document.source.base64.data: The PDF specified was not valid.")
	add(say("", userSays("nobody asked this")), "emulator_no_script: ")
	return out
}

var _ = Describe("the published description of messages", func() {
	It("fits every reply and every request that is answered", func() {
		const requestSchema, responseSchema, eventSchema, errorSchema = "CreateMessageParams", "Message", "MessageStreamEvent", "ErrorResponse"
		d := newDescription("anthropic-openapi.yaml")
		d.lax = true // recorded replies leave out what has a default
		h := handler(load(messagesScript), emulator.Options{})
		for name, body := range messagesRequests() {
			d.accepts(requestSchema, body, name)
			reply := postMessages(h, body).Body.String()
			d.accepts(responseSchema, reply, name)
			for _, change := range [][2]string{{`"stop_reason":"`, `"stop":"`}, {`"input_tokens":`, `"input":`}, {`"role":"assistant"`, `"role":"user"`}} {
				broken := strings.Replace(reply, change[0], change[1], 1)
				Expect(broken).NotTo(Equal(reply))
				d.rejects(responseSchema, broken)
			}
			streamedBody := with(body, streamed)
			d.accepts(requestSchema, streamedBody, name)
			for _, frame := range messagesFrames(postMessages(h, streamedBody).Body.Bytes()) {
				d.accepts(eventSchema, frame, name)
				d.rejects(eventSchema, strings.Replace(frame, `"type"`, `"tipe"`, 1))
			}
			d.rejects(requestSchema, strings.Replace(body, `"messages":`, `"mesages":`, 1))
			d.rejects(requestSchema, strings.Replace(body, `"role":"user"`, `"role":"person"`, 1))
		}
		for _, text := range []string{"e401", "e403", "e404", "e429", "e500", "e529", "nobody"} {
			d.accepts(errorSchema, postMessages(h, say("", userSays(text))).Body.String(), text)
		}
		d.rejects(errorSchema, postMessages(h, say("", userSays("e413"))).Body.String()) // a type that the description forgets: recorded clients know it
		table := tablewriter.NewWriter(os.Stdout)
		table.Header("schema", "validated", "broken and rejected")
		for _, name := range []string{requestSchema, responseSchema, eventSchema, errorSchema} {
			Expect(d.valid[name]).To(BeNumerically(">", 0), name)
			Expect(table.Append(name, fmt.Sprint(d.valid[name]), fmt.Sprint(d.refused[name]))).To(Succeed())
		}
		Expect(table.Render()).To(Succeed())
	})
})

var _ = Describe("recordings of Anthropic", func() {
	// What the vendor added since these were made, in the order of our frames.
	added := strings.NewReplacer(" stop_details:null", "", " inference_geo:string", "", ` caller:{ type:direct}`, "")
	arguments := regexp.MustCompile(` input:\{[^}]*\}`)
	plain := func(text string) string {
		GinkgoHelper()
		return arguments.ReplaceAllString(added.Replace(shape(text)), " input:{}")
	}

	It("have the same events as our streams, and the same replies", func() {
		h := handler(load(`
version: 1
name: as recorded
conversations:
  - match: {user_regex: '(?i)weather|screenshot'}
    steps: [{text: Let me look., calls: [{name: get_weather, args: {city: San Francisco}}]}, {text: It is foggy.}]
  - match: {user: Add and multiply the number 2 and 3}
    steps: [{text: I will., calls: [{name: add, args: {a: 2, b: 3}}, {name: multiply, args: {a: 2, b: 3}}]}, {text: 5 and 6.}]
default:
  steps: [{text: An answer.}, {text: Another.}]
`), emulator.Options{})
		streams, replies := 0, 0
		kinds := map[string]bool{}
		for _, format := range []string{"go-vcr-v1", "go-vcr-v2", "vcrpy-v1", "ruby-vcr"} {
			for _, r := range providertest.Recordings(format, "/v1/messages") {
				said := string(r.Body)
				if strings.Contains(said, "thinking") || strings.Contains(said, "server_tool_use") || !strings.Contains(said, `"usage":{"input_tokens"`) {
					continue // tools at the vendor's, and replies whose order of keys the recorder lost
				}
				w := postMessages(h, string(r.Request), "Anthropic-Version", "2023-06-01")
				Expect(w.Code).To(Equal(200), "%s: %s", r.File, w.Body)
				if !r.SSE {
					Expect(plain(w.Body.String())).To(Equal(plain(said)), r.File)
					replies++
					continue
				}
				streams++
				theirs, ours := map[string]bool{}, map[string]bool{}
				for _, f := range messagesFrames([]byte(strings.TrimRight(strings.ReplaceAll(said, "\r\n", "\n"), "\n") + "\n\n")) {
					theirs[plain(f)] = true
				}
				for _, f := range messagesFrames(w.Body.Bytes()) {
					ours[plain(f)] = true
				}
				for s := range theirs {
					Expect(ours).To(HaveKey(s), r.File)
				}
				maps.Copy(kinds, theirs)
			}
		}
		Expect(streams).To(Equal(8))
		Expect(replies).To(Equal(8))
		Expect(len(kinds)).To(BeNumerically(">=", 10))
		fmt.Printf("%d streams and %d replies compared; events of %d kinds\n", streams, replies, len(kinds))
	})

	It("have the same headers, but for what is known", func() {
		known := map[string]string{
			"Cf-Cache-Status": "of the network in front of the vendor", "Cf-Ray": "of the network in front of the vendor", "X-Envoy-Upstream-Service-Time": "of the network in front of the vendor",
			"Date": "it would differ from run to run", "Via": "of the network in front of the vendor", "X-Robots-Tag": "says that search engines should keep out",
			"Strict-Transport-Security": "the emulator speaks plain HTTP on loopback", "Anthropic-Organization-Id": "names the account",
			"Server-Timing": "tells the recorder how long a reply takes",
		}
		theirs := map[string]bool{}
		for _, r := range providertest.Recordings("go-vcr-v1", "/v1/messages") {
			if r.SSE {
				for name := range r.Header {
					theirs[name] = true
				}
			}
		}
		Expect(theirs).To(HaveKey("Anthropic-Ratelimit-Tokens-Reset"))
		ours := map[string]bool{}
		for name, values := range postMessages(handler(load(messagesScript), emulator.Options{}), say(streamed, userSays("empty"))).Header() {
			if len(values) > 0 && name != "Transfer-Encoding" { // of the connection
				ours[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			if !ours[name] {
				Expect(known).To(HaveKey(name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			if !theirs[name] {
				Expect(known).To(HaveKey(name))
			}
		}
	})
})

// FuzzMessages sends any bytes: each must get a whole reply or an error in the vendor's form.
func FuzzMessages(f *testing.F) {
	script, err := emulator.Load("script.yaml", []byte(strings.NewReplacer(", cut: {after: 5 frames}", "", ", cut: {after: 120 bytes}", "").Replace(messagesScript)))
	if err != nil {
		f.Fatal(err)
	}
	h, err := emulator.New(script, emulator.Options{MaxBody: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range messagesRequests() {
		f.Add([]byte(body))
		f.Add([]byte(with(body, streamed)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, messagesRequest(string(body)))
		reply := w.Body.String()
		if w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			last := ""
			for line := range strings.Lines(reply) {
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					if !json.Valid([]byte(data)) {
						t.Fatalf("a frame that is no JSON: %q", data)
					}
					last = data
				}
			}
			if !strings.HasPrefix(last, `{"type":"message_stop"`) {
				t.Fatalf("a stream without an end: %q", reply)
			}
			return
		}
		if !json.Valid([]byte(reply)) {
			t.Fatalf("%d with a body that is no JSON: %q", w.Code, reply)
		}
	})
}
