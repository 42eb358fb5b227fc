package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/anthropic"
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
	b.WriteString("event: message_start\ndata: " + messageStart + "\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	for i := range 34 {
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word %d \"}}\n\n", i)
	}
	b.WriteString("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: " + messageDelta + "\n\nevent: message_stop\ndata: " + messageStop + "\n\n")
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
func bareRequest(req llm.Request) sdk.MessageNewParams {
	out := sdk.MessageNewParams{Model: "claude-haiku-4-5", MaxTokens: anthropic.DefaultMaxTokens, System: []sdk.TextBlockParam{{Text: req.System}}}
	for _, t := range req.Tools {
		var schema struct {
			Properties json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal([]byte(t.Parameters), &schema); err != nil {
			panic(err)
		}
		out.Tools = append(out.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{Name: t.Name, Description: param.NewOpt(t.Description), InputSchema: sdk.ToolInputSchemaParam{Properties: schema.Properties, Required: schema.Required}}})
	}
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			out.Messages = append(out.Messages, sdk.NewUserMessage(sdk.NewTextBlock(m.Text())))
		case conversation.RoleAssistant:
			c := m.ToolCalls()[0]
			out.Messages = append(out.Messages, sdk.NewAssistantMessage(sdk.NewTextBlock(m.Text()), sdk.NewToolUseBlock(c.ID, json.RawMessage(c.Input), c.Name)))
		case conversation.RoleTool:
			r := m.Part(0).(conversation.ToolResult)
			out.Messages = append(out.Messages, sdk.NewUserMessage(sdk.NewToolResultBlock(r.ID, r.ResultText(), false)))
		}
	}
	return out
}

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider, in turns, so that both see the same machine.
func BenchmarkCall(b *testing.B) {
	answer := memory{benchStream()}
	client := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey("placeholder"), option.WithMaxRetries(0), option.WithoutOpenTelemetry(), option.WithHTTPClient(&http.Client{Transport: answer}))
	m, err := anthropic.New(anthropic.Config{Model: "claude-haiku-4-5"}, answer)
	if err != nil {
		b.Fatal(err)
	}
	req := benchRequest()
	var bare, whole time.Duration
	var words int
	for b.Loop() {
		start := time.Now()
		stream := client.Messages.NewStreaming(b.Context(), bareRequest(req))
		for stream.Next() {
			words += len(stream.Current().Delta.Text)
		}
		if err := stream.Err(); err != nil {
			b.Fatal(err)
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
		m, err := anthropic.New(anthropic.Config{Model: "claude-haiku-4-5"}, answer)
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
