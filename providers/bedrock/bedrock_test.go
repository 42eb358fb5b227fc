package bedrock_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

const (
	emptyReply = `{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":0,"totalTokens":1}}`
	pixel      = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)

// server answers with a body and keeps what it was asked.
type server struct {
	status int
	header http.Header
	body   string

	request *http.Request
	asked   string
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	s.request, s.asked = req, string(data)
	if s.status == 0 {
		s.status = 200
	}
	return &http.Response{StatusCode: s.status, Header: s.header.Clone(), Body: io.NopCloser(strings.NewReader(s.body)), Request: req}, err
}

func blocking(body string, model string, req llm.Request) (llm.Reply, *server, error) {
	GinkgoHelper()
	s := &server{body: body}
	m, err := bedrock.New(bedrock.Config{Model: model}, s)
	Expect(err).NotTo(HaveOccurred())
	req.Blocking = true
	if req.Messages == nil {
		req.Messages = []conversation.Message{conversation.User("m", conversation.Text{Text: "x"})}
	}
	reply, err := llm.Generate(context.Background(), m, req)
	return reply, s, err
}

func codes(r llm.Reply) (out []string) {
	for _, w := range r.Warnings {
		out = append(out, w.Code)
	}
	return out
}

func data(media, s string) conversation.Image {
	return conversation.Image{MediaType: media, Source: conversation.Source{Type: conversation.SourceBase64, Data: s}}
}

func paper(media, name string) conversation.Document {
	return conversation.Document{MediaType: media, Name: name, Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBERg=="}}
}

var _ = Describe("a request", func() {
	It("carries no date, no signature, no id and nothing of the environment", func() {
		Expect(os.Setenv("AWS_BEARER_TOKEN_BEDROCK", "token-of-the-environment")).To(Succeed())
		DeferCleanup(os.Unsetenv, "AWS_BEARER_TOKEN_BEDROCK")
		for _, name := range []string{"AWS_LAMBDA_FUNCTION_NAME", "_X_AMZN_TRACE_ID", "AWS_EXECUTION_ENV"} {
			Expect(os.Setenv(name, "environment")).To(Succeed())
			DeferCleanup(os.Unsetenv, name)
		}
		_, s, err := blocking(emptyReply, "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-x:0", llm.Request{})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.request.Header).To(Equal(http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer placeholder"}, "Content-Type": {"application/json"}}))
		Expect(s.request.URL.String()).To(Equal("https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-x%3A0/converse"))
		Expect(s.request.ContentLength).To(Equal(int64(len(s.asked))))
	})

	It("goes to the region", func() {
		for region, want := range map[string]string{"": "https://bedrock-runtime.us-east-1.amazonaws.com", "eu-west-3": "https://bedrock-runtime.eu-west-3.amazonaws.com", "cn-north-1": "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"} {
			Expect(bedrock.BaseURL(region)).To(Equal(want))
		}
		for _, bad := range []bedrock.Config{{Model: "m", Region: "a/b"}, {}, {Model: "m", BaseURL: "ftp://x"}, {Model: "m", BaseURL: "https://u:secret@x"}} {
			_, err := bedrock.New(bad, &server{})
			Expect(failure.CodeOf(err)).To(Equal(failure.Input))
			Expect(err.Error()).NotTo(ContainSubstring("secret"))
		}
	})

	It("keeps the order of parts, joins messages of one role, and names documents as the vendor wants", func() {
		reply, s, err := blocking(emptyReply, claude, llm.Request{System: "Be brief.", Messages: []conversation.Message{
			conversation.User("m", conversation.Text{Text: "a"}, data("image/png", pixel), paper("application/pdf", "bill, no. 7.pdf"), conversation.Text{Text: " \n"}),
			conversation.User("m", paper("text/markdown; charset=utf-8", "bill  no 7 pdf"), paper("text/csv", ""), conversation.Text{Text: "b"}),
		}})
		Expect(err).NotTo(HaveOccurred())
		Expect(codes(reply)).To(Equal([]string{"blank-text-left-out"}))
		Expect(s.asked).To(MatchJSON(`{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"a"},{"image":{"format":"png","source":{"bytes":"` + pixel + `"}}},
			{"document":{"format":"pdf","name":"bill no 7 pdf","source":{"bytes":"JVBERg=="}}},{"document":{"format":"md","name":"bill no 7 pdf (2)","source":{"bytes":"JVBERg=="}}},{"document":{"format":"csv","name":"document","source":{"bytes":"JVBERg=="}}},{"text":"b"}]}]}`))
	})

	DescribeTable("leaves out what cannot be sent, with a warning, and refuses it where the settings are strict", func(code string, part conversation.Content, settings llm.Settings) {
		req := llm.Request{Settings: settings, Tools: []tool.Spec{{Name: "t", Parameters: `{"type":"object"}`}}}
		if part != nil {
			req.Messages = []conversation.Message{conversation.User("m", conversation.Text{Text: "x"}, part)}
		}
		reply, s, err := blocking(emptyReply, "amazon.nova-lite-v1:0", req)
		Expect(err).NotTo(HaveOccurred())
		Expect(codes(reply)).To(Equal([]string{code}))
		Expect(s.asked).To(MatchJSON(`{"messages":[{"role":"user","content":[{"text":"x"}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"t","inputSchema":{"json":{"type":"object"}}}}]}}`))
		req.Settings.Strict = true
		_, s, err = blocking(emptyReply, "amazon.nova-lite-v1:0", req)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(s.request).To(BeNil())
	},
		Entry("an image by its address", "image-left-out", conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://pictures.example/a.png"}}, llm.Settings{}),
		Entry("an image of another kind", "image-left-out", data("image/tiff", pixel), llm.Settings{}),
		Entry("an image that is no base64", "image-left-out", data("image/png", "?"), llm.Settings{}),
		Entry("a document of another kind", "document-left-out", paper("application/zip", "a"), llm.Settings{}),
		Entry("a seed", "seed-left-out", nil, llm.Settings{Seed: ptr(int64(7))}),
		Entry("no choice of tools", "tool-choice-left-out", nil, llm.Settings{ToolChoice: "none"}),
		Entry("no parallel calls", "parallel-tool-calls-left-out", nil, llm.Settings{ParallelToolCalls: ptr(false)}),
		Entry("a budget for a model of another maker", "thinking-budget-left-out", nil, llm.Settings{Thinking: llm.Thinking{BudgetTokens: ptr(2048)}}),
	)

	It("says all settings", func() {
		_, s, err := blocking(emptyReply, claude, llm.Request{Tools: []tool.Spec{{Name: "t", Parameters: `{"type":"object"}`}}, Settings: llm.Settings{
			Temperature: ptr(0.5), TopP: ptr(0.9), Stop: []string{"END"}, ToolChoice: "t", ResponseSchema: `{"type":"object"}`, Thinking: llm.Thinking{BudgetTokens: ptr(2048), Effort: "high"},
		}})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.asked).To(MatchJSON(`{"messages":[{"role":"user","content":[{"text":"x"}]}],"inferenceConfig":{"maxTokens":6144,"temperature":0.5,"topP":0.9,"stopSequences":["END"]},
			"toolConfig":{"tools":[{"toolSpec":{"name":"t","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"tool":{"name":"t"}}},
			"outputConfig":{"effort":"high","textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"type\":\"object\"}"}}}},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2048}}}`))
		for _, bad := range []llm.Settings{{Thinking: llm.Thinking{BudgetTokens: ptr(5)}}, {MaxTokens: ptr(1500), Thinking: llm.Thinking{BudgetTokens: ptr(2048)}}} {
			_, _, err := blocking(emptyReply, claude, llm.Request{Settings: bad})
			Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		}
	})

	It("puts media of tools into their results, wraps what is no object, and declares tools that were called", func() {
		reply, s, err := blocking(emptyReply, claude, llm.Request{Messages: []conversation.Message{
			conversation.User("m", conversation.Text{Text: "x"}),
			conversation.Assistant("m", conversation.Reasoning{Text: "of another"}, conversation.ToolCall{ID: "call|1", Name: "see", Input: "oops"}),
			conversation.ToolResults("m", conversation.ToolResult{ID: "call|1", Result: `""`, IsError: true}, data("image/png", pixel)),
			conversation.User("m", conversation.Text{Text: "y"}),
		}})
		Expect(err).NotTo(HaveOccurred())
		Expect(codes(reply)).To(ConsistOf("arguments-wrapped", "reasoning-left-out", "tools-declared"))
		Expect(s.asked).To(MatchRegexp(`"toolUseId":"call_1_[0-9a-f]{12}","name":"see","input":\{"INVALID_JSON":"oops"\}`))
		Expect(s.asked).To(ContainSubstring(`"content":[{"image":{"format":"png","source":{"bytes":"` + pixel + `"}}}],"status":"error"}},{"text":"y"}]}`))
		Expect(s.asked).To(ContainSubstring(`"tools":[{"toolSpec":{"name":"see","inputSchema":{"json":{"type":"object"}}}}]`))
	})
})

var _ = Describe("a reply", func() {
	event := providertest.ConverseEvent
	const end = `"stopReason":"end_turn"`
	usage := event("messageStop", "{"+end+"}") + event("metadata", `{"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":30,"cacheReadInputTokens":10,"cacheWriteInputTokens":13},"trace":{"promptRouter":{"invokedModelId":"arn:x"}}}`)
	whole := func(content string) string {
		return `{"output":{"message":{"role":"assistant","content":[` + content + `]}},` + end + `,"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":30,"cacheReadInputTokens":10,"cacheWriteInputTokens":13},"trace":{"promptRouter":{"invokedModelId":"arn:x"}}}`
	}

	It("keeps reasoning, redacted blocks and blocks that are not known, in both forms alike, and sends them back", func() {
		block := `{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"cmVk"}},{"picture":{"format":"png","parts":[1.50,{"a":"xy"}]}},{"citationsContent":{"content":[{"text":"Done."}],"citations":[{"title":"t"}]}}`
		stream := event("messageStart", `{"role":"assistant"}`) +
			event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"H"}}}`) + event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"m."}}}`) +
			event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}`) + event("contentBlockStop", `{"contentBlockIndex":0}`) +
			event("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"cmVk"}}}`) + event("contentBlockStop", `{"contentBlockIndex":1}`) +
			event("contentBlockStart", `{"contentBlockIndex":2,"start":{"picture":{"format":"png"}}}`) + event("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"picture":{"parts":[1.50]}}}`) +
			event("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"picture":{"parts":[{"a":"xy"}]}}}`) + event("contentBlockStop", `{"contentBlockIndex":2}`) + event("future", `[]`) +
			event("contentBlockDelta", `{"contentBlockIndex":3,"delta":{"text":"Done."}}`) + event("contentBlockDelta", `{"contentBlockIndex":3,"delta":{"citation":{"title":"t"}}}`) + event("contentBlockStop", `{"contentBlockIndex":3}`) + usage
		one, _, err := blocking(whole(block), claude, llm.Request{})
		Expect(err).NotTo(HaveOccurred())
		streamed, err := ask(&server{body: stream}, llm.Request{})
		Expect(err).NotTo(HaveOccurred())
		Expect(streamed).To(Equal(one))
		Expect(codes(one)).To(Equal([]string{"content-opaque", "content-left-out"}))
		Expect(one.Finish).To(Equal(llm.Finish{Stop: llm.StopEnd, Model: "arn:x", Usage: conversation.Usage{InputTokens: 28, OutputTokens: 2, CacheReadTokens: 10, CacheWriteTokens: 13}}))
		Expect(one.Parts).To(HaveLen(2))

		_, s, err := blocking(emptyReply, claude, llm.Request{Messages: []conversation.Message{conversation.User("m", conversation.Text{Text: "x"}), conversation.Assistant("m", one.Parts...)}})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.asked).To(MatchJSON(`{"messages":[{"role":"user","content":[{"text":"x"}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"cmVk"}},{"picture":{"format":"png","parts":[1.50,{"a":"xy"}]}},{"text":"Done."}]}]}`))
		Expect(s.asked).To(ContainSubstring("[1.50,"), "numbers are as they were written")
	})

	DescribeTable("that is none is an error", func(body string, check func(*llm.Error)) {
		_, err := ask(&server{body: body, header: http.Header{"X-Amzn-Requestid": {"r-1"}}}, llm.Request{})
		var e *llm.Error
		Expect(err).To(BeAssignableToTypeOf(e))
		e, _ = err.(*llm.Error)
		Expect(e.RequestID).To(Equal("r-1"))
		check(e)
	},
		Entry("an empty body", "", func(e *llm.Error) { Expect(e).To(MatchError(io.ErrUnexpectedEOF)) }),
		Entry("a page", "<html>", func(e *llm.Error) { Expect(e).To(MatchError(ContainSubstring("neither JSON nor an event stream"))) }),
		Entry("without its metadata", event("messageStop", "{"+end+"}"), func(e *llm.Error) { Expect(e).To(MatchError(io.ErrUnexpectedEOF)) }),
		Entry("without its messageStop", event("metadata", `{"usage":{}}`), func(e *llm.Error) { Expect(e).To(MatchError(io.ErrUnexpectedEOF)) }),
		Entry("a wrong checksum", strings.Replace(event("messageStart", `{"role":"assistant"}`), "assistant", "assisdant", 1)+usage, func(e *llm.Error) { Expect(e).To(MatchError(ContainSubstring("checksum"))) }),
		Entry("arguments of no call", event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"}}}`)+usage, func(e *llm.Error) { Expect(e.Retryable).To(BeFalse()) }),
		Entry("a refusal in JSON", `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`, func(e *llm.Error) { Expect(e.Type).To(Equal("UnknownOperationException")) }),
		Entry("throttling in the stream", providertest.ConverseFrame(`{"message":"slow down"}`, ":message-type", "exception", ":exception-type", "throttlingException"), func(e *llm.Error) {
			Expect([]any{e.Type, e.Message, e.Retryable}).To(Equal([]any{"ThrottlingException", "slow down", true}))
		}),
		Entry("a refusal in the stream", providertest.ConverseFrame(`{"message":"no"}`, ":message-type", "exception", ":exception-type", "validationException"), func(e *llm.Error) {
			Expect([]any{e.Type, e.Message, e.Retryable}).To(Equal([]any{"ValidationException", "no", false}))
		}),
		Entry("an error of the service's front", providertest.ConverseFrame("", ":message-type", "error", ":error-code", "InternalServerException", ":error-message", "oops"), func(e *llm.Error) {
			Expect([]any{e.Type, e.Message, e.Retryable}).To(Equal([]any{"InternalServerException", "oops", true}))
		}),
	)

	It("that is refused says why by its header", func() {
		_, err := ask(&server{status: 400, body: `{"message":"because"}`, header: http.Header{"X-Amzn-Errortype": {"ValidationException:http://internal.example/"}}}, llm.Request{})
		e, ok := err.(*llm.Error)
		Expect(ok).To(BeTrue())
		Expect([]any{e.Status, e.Type, e.Message, e.Retryable}).To(Equal([]any{400, "ValidationException", "because", false}))
	})
})
