package openai_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/openai"
)

// memory answers each request with the same bytes and reads the request as a network would.
type memory struct{ body string }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(m.body)), Request: req}, nil
}

// benchStream is a stream of about 5 KB.
func benchStream() string {
	var b strings.Builder
	for i := range 28 {
		fmt.Fprintf(&b, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d \"},\"finish_reason\":null}]}\n\n", i)
	}
	b.WriteString("data: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
	b.WriteString("data: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-mini\",\"choices\":[],\"usage\":{\"prompt_tokens\":5000,\"completion_tokens\":60,\"total_tokens\":5060}}\n\ndata: [DONE]\n\n")
	return b.String()
}

// benchRequest is a request of about 20 KB: a system prompt, four tools and six turns.
func benchRequest() llm.Request {
	text := strings.Repeat("All work and no play makes a \"dull\" report.\n", 20)
	req := llm.Request{System: text}
	for i := range 4 {
		req.Tools = append(req.Tools, tool.Spec{Name: fmt.Sprintf("tool_%d", i), Description: text[:400], Parameters: benchSchema()})
	}
	for i := range 6 {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			conversation.User("m", conversation.Text{Text: text}),
			conversation.Assistant("m", conversation.Text{Text: text[:200]}, conversation.ToolCall{ID: id, Name: "tool_1", Input: `{"last":7}`}),
			conversation.ToolResults("m", conversation.ToolResult{ID: id, Result: conversation.String(text)}))
	}
	return req
}

func benchSchema() conversation.JSON {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range 6 {
		fmt.Fprintf(&b, `"name_%d":{"type":"string","description":"The name of the thing"},`, i)
	}
	b.WriteString(`"last":{"type":"integer"}},"required":["last"]}`)
	return conversation.JSON(b.String())
}

// bareRequest is the same for the SDK alone.
func bareRequest(req llm.Request) sdk.ChatCompletionRequest {
	out := sdk.ChatCompletionRequest{Model: "gpt-4o-mini", StreamOptions: &sdk.StreamOptions{IncludeUsage: true}}
	out.Messages = append(out.Messages, sdk.ChatCompletionMessage{Role: "system", Content: req.System})
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, sdk.Tool{Type: sdk.ToolTypeFunction, Function: &sdk.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: raw(t.Parameters)}})
	}
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			out.Messages = append(out.Messages, sdk.ChatCompletionMessage{Role: "user", Content: m.Text()})
		case conversation.RoleAssistant:
			c := m.ToolCalls()[0]
			out.Messages = append(out.Messages, sdk.ChatCompletionMessage{Role: "assistant", Content: m.Text(), ToolCalls: []sdk.ToolCall{{ID: c.ID, Type: "function", Function: sdk.FunctionCall{Name: c.Name, Arguments: string(c.Input)}}}})
		case conversation.RoleTool:
			r := m.Part(0).(conversation.ToolResult)
			out.Messages = append(out.Messages, sdk.ChatCompletionMessage{Role: "tool", ToolCallID: r.ID, Content: r.ResultText()})
		}
	}
	return out
}

type raw conversation.JSON

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider, in turns, so that both see the same machine.
func BenchmarkCall(b *testing.B) {
	answer := memory{benchStream()}
	config := sdk.DefaultConfig("placeholder")
	config.HTTPClient = &http.Client{Transport: answer}
	client := sdk.NewClientWithConfig(config)
	m, err := openai.New(openai.Config{Model: "gpt-4o-mini"}, answer)
	if err != nil {
		b.Fatal(err)
	}
	req := benchRequest()
	var bare, whole time.Duration
	var words int
	for b.Loop() {
		start := time.Now()
		stream, err := client.CreateChatCompletionStream(b.Context(), bareRequest(req))
		if err != nil {
			b.Fatal(err)
		}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if len(chunk.Choices) > 0 {
				words += len(chunk.Choices[0].Delta.Content)
			}
		}
		_ = stream.Close()
		middle := time.Now()
		for event, err := range m.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
			if delta, ok := event.(llm.TextDelta); ok {
				words -= len(delta.Text)
			}
		}
		bare += middle.Sub(start)
		whole += time.Since(middle)
	}
	if words != 0 {
		b.Fatal("the two calls gave different texts")
	}
	n := float64(b.N)
	b.ReportMetric(float64(bare.Microseconds())/n, "bare-us/op")
	b.ReportMetric(float64(whole.Microseconds())/n, "provider-us/op")
	b.ReportMetric(float64(whole)/float64(bare), "ratio")
}

// BenchmarkFresh measures the call of a model that is made for it, as for each item of a dataset.
func BenchmarkFresh(b *testing.B) {
	answer := memory{benchStream()}
	req := benchRequest()
	b.ReportAllocs()
	for b.Loop() {
		m, err := openai.New(openai.Config{Model: "gpt-4o-mini"}, answer)
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range m.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
