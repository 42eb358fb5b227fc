package openai_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/providertest"
)

// event writes an event of the Responses API.
func event(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
}

const thinking = `{"id":"rs_1","type":"reasoning","encrypted_content":"c2VjcmV0","summary":[{"type":"summary_text","text":"Look it up."},{"type":"summary_text","text":"Then answer."}]}`

// thoughtful is a reply with reasoning, a text and two calls, blocking or as a stream.
func thoughtful(blocking bool) string {
	end := `"id":"resp_1","model":"gpt-5-2025-08-07","status":"completed","usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64},"output_tokens":33,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":123}`
	message := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`
	first := `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"lookup","arguments":"{\"name\":\"Ana\"}"}`
	second := `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_b","name":"lookup","arguments":"{}"}`
	if blocking {
		return `{"object":"response",` + end + `,"error":null,"incomplete_details":null,"output":[` + thinking + "," + message + "," + first + "," + second + "]}"
	}
	return event("response.created", `"response":{"id":"resp_1","model":"gpt-5-2025-08-07","status":"in_progress","output":[]}`) +
		event("response.output_item.added", `"output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"","summary":[]}`) +
		event("response.reasoning_summary_part.added", `"output_index":0,"summary_index":0`) +
		event("response.reasoning_summary_text.delta", `"output_index":0,"delta":"Look "`) +
		event("response.reasoning_summary_text.delta", `"output_index":0,"delta":"it up."`) +
		event("response.reasoning_summary_part.added", `"output_index":0,"summary_index":1`) +
		event("response.reasoning_summary_text.delta", `"output_index":0,"delta":"Then answer."`) +
		event("response.output_item.done", `"output_index":0,"item":`+thinking) +
		event("response.output_item.added", `"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[]}`) +
		event("response.output_text.delta", `"output_index":1,"content_index":0,"delta":"I "`) +
		event("response.output_text.delta", `"output_index":1,"content_index":0,"delta":"look."`) +
		event("response.output_text.done", `"output_index":1,"content_index":0,"text":"I look."`) +
		event("response.output_item.done", `"output_index":1,"item":`+message) +
		event("response.output_item.added", `"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_a","name":"lookup","arguments":""}`) +
		event("response.function_call_arguments.delta", `"output_index":2,"delta":"{\"name\":"`) +
		event("response.function_call_arguments.delta", `"output_index":2,"delta":"\"Ana\"}"`) +
		event("response.output_item.done", `"output_index":2,"item":`+first) +
		event("response.output_item.added", `"output_index":3,"item":{"id":"fc_2","type":"function_call","status":"in_progress","call_id":"call_b","name":"lookup","arguments":""}`) +
		event("response.output_item.done", `"output_index":3,"item":`+second) +
		event("response.completed", `"response":{`+end+`,"output":[]}`)
}

var _ = Describe("the Responses API", func() {
	viaResponses := openai.Config{Model: "gpt-5", API: openai.Responses}

	It("is asked as the model's rule says", func() {
		for _, c := range []struct {
			model string
			tools bool
			api   openai.API
			path  string
		}{
			{"gpt-4o-mini", true, openai.ByRule, "/v1/chat/completions"},
			{"gpt-4o-mini", true, openai.Responses, "/v1/responses"},
			{"gpt-5-codex", false, openai.ByRule, "/v1/responses"},
			{"o3-pro-2025-06-10", false, openai.ByRule, "/v1/responses"},
			{"o3-pro", false, openai.Chat, "/v1/chat/completions"},
			{"gpt-6-astra", false, openai.ByRule, "/v1/chat/completions"},
			{"gpt-6-astra", true, openai.ByRule, "/v1/responses"},
			{"gpt-5.6-sol", true, openai.ByRule, "/v1/chat/completions"},
		} {
			s := &server{body: thoughtful(true)}
			req := llm.Request{Messages: user(conversation.Text{Text: "hello"}), Blocking: true}
			if c.tools {
				req.Tools = []tool.Spec{{Name: "lookup", Parameters: `{"type":"object"}`}}
			}
			_, err := llm.Generate(context.Background(), newModel(openai.Config{Model: c.model, API: c.api}, s), req)
			Expect(s.last.URL.Path).To(Equal(c.path), "%+v", c)
			Expect(err == nil).To(Equal(c.path == "/v1/responses"), "%+v: %v", c, err)
		}
	})

	It("gives the same reply blocking and streamed, and takes its reasoning back as it came", func() {
		var replies []llm.Reply
		for _, blocking := range []bool{true, false} {
			s := &server{body: thoughtful(blocking)}
			req := llm.Request{Messages: user(conversation.Text{Text: "hello"}), Blocking: blocking}
			reply, err := llm.Generate(context.Background(), newModel(viaResponses, s), req)
			Expect(err).NotTo(HaveOccurred())
			replies = append(replies, reply)
		}
		Expect(replies[0]).To(Equal(replies[1]))
		Expect(replies[0].Parts).To(Equal([]conversation.Content{
			conversation.Reasoning{Text: "Look it up.\n\nThen answer.", Extras: conversation.Extras{{Vendor: "openai", Data: conversation.JSON("[" + thinking + "]")}}},
			conversation.Text{Text: "I look."},
			conversation.ToolCall{ID: "call_a", Name: "lookup", Input: `{"name":"Ana"}`},
			conversation.ToolCall{ID: "call_b", Name: "lookup", Input: `{}`},
		}))
		Expect(replies[0].Finish).To(Equal(llm.Finish{Stop: llm.StopToolCalls, Model: "gpt-5-2025-08-07", ID: "resp_1", Usage: conversation.Usage{InputTokens: 90, CacheReadTokens: 64, OutputTokens: 33, ReasoningTokens: 12}}))

		// Saved and loaded, then sent back.
		saved := conversation.Assistant("2", replies[0].Parts...).AppendJSON(nil)
		loaded, err := conversation.DecodeMessage(saved)
		Expect(err).NotTo(HaveOccurred())
		s := &server{body: thoughtful(true)}
		messages := append(user(conversation.Text{Text: "hello"}), loaded, conversation.ToolResults("3", conversation.ToolResult{ID: "call_a", Result: `"Ana is 7"`}, conversation.ToolResult{ID: "call_b", Result: `"nobody"`, IsError: true}))
		_, err = llm.Generate(context.Background(), newModel(viaResponses, s), llm.Request{System: "Be brief.", Messages: messages, Blocking: true})
		Expect(err).NotTo(HaveOccurred())
		var sent struct {
			Instructions string
			Input        []jsontext.Value
			Include      []string
			Store        *bool
		}
		Expect(json.Unmarshal([]byte(s.bodies[0]), &sent, json.MatchCaseInsensitiveNames(true))).To(Succeed())
		Expect(sent.Instructions).To(Equal("Be brief."))
		Expect(*sent.Store).To(BeFalse())
		Expect(sent.Include).To(ConsistOf("reasoning.encrypted_content"))
		Expect(sent.Input).To(HaveLen(7))
		Expect(string(sent.Input[1])).To(Equal(thinking))
		Expect(string(sent.Input[3])).To(Equal(`{"type":"function_call","call_id":"call_a","name":"lookup","arguments":"{\"name\":\"Ana\"}"}`))
		Expect(string(sent.Input[5])).To(Equal(`{"type":"function_call_output","call_id":"call_a","output":"Ana is 7"}`))
	})

	It("warns of what it has no place for, and maps the settings", func() {
		zero, parallel, n, seed := 0.0, false, 5, int64(7)
		s := &server{body: thoughtful(true)}
		req := llm.Request{Messages: user(conversation.Text{Text: "hello"}), Blocking: true, Tools: []tool.Spec{{Name: "lookup", Description: "d", Parameters: `{"type":"object"}`}}}
		req.Settings = llm.Settings{Temperature: &zero, MaxTokens: &n, Seed: &seed, Stop: []string{"x"}, ToolChoice: "lookup", ParallelToolCalls: &parallel, ReasoningEffort: "high", ResponseSchema: `{"type":"object"}`}
		reply, err := llm.Generate(context.Background(), newModel(viaResponses, s), req)
		Expect(err).NotTo(HaveOccurred())
		var codes []string
		for _, w := range reply.Warnings {
			codes = append(codes, w.Code)
		}
		Expect(codes).To(ConsistOf("seed-left-out", "stop-left-out"))
		var got map[string]any
		Expect(json.Unmarshal([]byte(s.bodies[0]), &got)).To(Succeed())
		Expect(got).To(And(HaveKeyWithValue("temperature", 0.0), HaveKeyWithValue("max_output_tokens", 5.0), HaveKeyWithValue("parallel_tool_calls", false), HaveKeyWithValue("tool_choice", map[string]any{"type": "function", "name": "lookup"}),
			HaveKeyWithValue("reasoning", map[string]any{"effort": "high", "summary": "auto"}), HaveKey("text"), Not(HaveKey("seed")), Not(HaveKey("stop")), Not(HaveKey("messages"))))
		Expect(got["tools"]).To(Equal([]any{map[string]any{"type": "function", "name": "lookup", "description": "d", "parameters": map[string]any{"type": "object"}, "strict": false}}))
		req.Settings.Strict = true
		_, err = llm.Generate(context.Background(), newModel(viaResponses, s), req)
		Expect(err).To(MatchError(ContainSubstring("takes no seed")))
		Expect(s.bodies).To(HaveLen(1), "nothing is sent")
	})

	It("never takes a cut stream for a whole one, and says why a reply failed", func() {
		whole := thoughtful(false)
		frames := strings.SplitAfter(whole, "\n\n")
		frames = frames[:len(frames)-1]
		cut := 0
		for _, f := range frames {
			_, err := llm.Generate(context.Background(), newModel(viaResponses, &server{body: whole[:cut]}), hello())
			Expect(err).To(MatchError(io.ErrUnexpectedEOF), "cut at %d", cut)
			cut += len(f)
		}
		for body, want := range map[string]string{
			event("response.failed", `"response":{"status":"failed","error":{"code":"server_error","message":"it broke"}}`):    "it broke",
			event("error", `"code":"rate_limit_exceeded","message":"slower","param":null`):                                     "slower",
			event("response.failed", `"response":{"status":"failed"}`):                                                         "the reply is failed",
			`{"object":"response","status":"failed","error":{"code":"invalid_prompt","message":"no such prompt"},"output":[]}`: "no such prompt",
		} {
			_, err := llm.Generate(context.Background(), newModel(viaResponses, &server{body: body}), hello())
			var e *llm.Error
			Expect(errors.As(err, &e)).To(BeTrue(), body)
			Expect(e.Message).To(Equal(want))
		}
		for why, stop := range map[string]llm.StopReason{"max_output_tokens": llm.StopLength, "content_filter": llm.StopRefused} {
			reply, err := llm.Generate(context.Background(), newModel(viaResponses, &server{body: event("response.incomplete", `"response":{"id":"r","model":"m","status":"incomplete","incomplete_details":{"reason":"`+why+`"},"usage":{"input_tokens":1,"output_tokens":2}}`)}), hello())
			Expect(err).NotTo(HaveOccurred())
			Expect(reply.Finish.Stop).To(Equal(stop))
		}
	})

	It("decodes recorded replies to the same text, calls and usage", func() {
		counts := map[string]int{}
		for _, format := range formats {
			for _, r := range providertest.Recordings(format, "/responses") {
				where := format + "/" + r.File
				want, failed := readResponse(r)
				reply, err := llm.Generate(context.Background(), newModel(openai.Config{Model: "m", API: openai.Responses}, serve(r)), llm.Request{Messages: user(conversation.Text{Text: "x"}), Blocking: !r.SSE})
				if failed || r.Status >= 400 {
					Expect(err).To(HaveOccurred(), where)
					counts["error"]++
					continue
				}
				Expect(err).NotTo(HaveOccurred(), where)
				Expect(summary(reply)).To(Equal(want), where)
				if r.SSE {
					counts["SSE"]++
				} else {
					counts["blocking"]++
				}
			}
		}
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("blocking", "SSE", "error")
		Expect(table.Append(strconv.Itoa(counts["blocking"]), strconv.Itoa(counts["SSE"]), strconv.Itoa(counts["error"]))).To(Succeed())
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded replies of the Responses API", ReportEntryVisibilityAlways, "\n"+b.String())
		Expect(counts["blocking"]).To(BeNumerically(">", 0))
		Expect(counts["SSE"]).To(BeNumerically(">", 0))
	})
})

// readResponse walks generic trees: no type of the package and none of the SDK takes part. A stream is read from the whole reply that its last event repeats.
func readResponse(r providertest.Recording) (p plain, failed bool) {
	GinkgoHelper()
	tree := map[string]any{}
	var done []any
	if r.SSE {
		for line := range strings.Lines(string(r.Body)) {
			data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
			if !ok || strings.TrimSpace(data) == "[DONE]" {
				continue
			}
			var e map[string]any
			Expect(json.Unmarshal([]byte(data), &e)).To(Succeed(), r.File)
			if e["type"] == "response.output_item.done" {
				done = append(done, e["item"])
			}
			if body, ok := e["response"].(map[string]any); ok {
				tree = body
			}
		}
	} else {
		Expect(json.Unmarshal(r.Body, &tree)).To(Succeed(), r.File)
	}
	if tree["error"] != nil {
		return p, true
	}
	p.model, _ = tree["model"].(string)
	usage := tree["usage"].(map[string]any)
	p.input, p.output = int(usage["input_tokens"].(float64)), int(usage["output_tokens"].(float64))
	if d, ok := usage["input_tokens_details"].(map[string]any); ok {
		p.cached = int(d["cached_tokens"].(float64))
	}
	if d, ok := usage["output_tokens_details"].(map[string]any); ok {
		p.thought = int(d["reasoning_tokens"].(float64))
	}
	output, _ := tree["output"].([]any)
	if len(output) == 0 {
		output = done
	}
	for _, item := range output {
		item := item.(map[string]any)
		texts := func(key string) (out []string) {
			list, _ := item[key].([]any)
			for _, part := range list {
				out = append(out, part.(map[string]any)["text"].(string))
			}
			return out
		}
		switch item["type"] {
		case "message":
			p.text += strings.Join(texts("content"), "")
		case "reasoning":
			p.reasoning += strings.Join(append(texts("summary"), texts("content")...), "\n\n")
		case "function_call":
			p.calls = append(p.calls, conversation.ToolCall{ID: item["call_id"].(string), Name: item["name"].(string), Input: conversation.JSON(item["arguments"].(string))})
		}
	}
	return p, false
}
