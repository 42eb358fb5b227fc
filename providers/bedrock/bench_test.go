package bedrock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

// memory answers each request with the same bytes and reads the request as a network would.
type memory struct{ body string }

// Do implements the SDK's client.
func (m memory) Do(req *http.Request) (*http.Response, error) { return m.RoundTrip(req) }

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}, Body: io.NopCloser(strings.NewReader(m.body)), Request: req}, nil
}

// benchStream is a stream of about 5 KB.
func benchStream() string {
	var b strings.Builder
	b.WriteString(providertest.ConverseEvent("messageStart", `{"role":"assistant"}`))
	for i := range 25 {
		b.WriteString(providertest.ConverseEvent("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":"word %d "},"p":"abcdefghijk"}`, i)))
	}
	b.WriteString(providertest.ConverseEvent("contentBlockStop", `{"contentBlockIndex":0}`))
	b.WriteString(providertest.ConverseEvent("messageStop", `{"stopReason":"end_turn"}`))
	b.WriteString(providertest.ConverseEvent("metadata", `{"usage":{"inputTokens":5000,"outputTokens":60,"totalTokens":5060},"metrics":{"latencyMs":900}}`))
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
func bareRequest(req llm.Request) *sdk.ConverseStreamInput {
	properties := map[string]any{"last": map[string]any{"type": "integer"}}
	for i := range 6 {
		properties[fmt.Sprintf("name_%d", i)] = map[string]any{"type": "string", "description": "The name of the thing"}
	}
	schema := map[string]any{"type": "object", "properties": properties, "required": []string{"last"}}
	out := &sdk.ConverseStreamInput{ModelId: aws.String(claude), System: []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: req.System}}, ToolConfig: &types.ToolConfiguration{}}
	for _, t := range req.Tools {
		out.ToolConfig.Tools = append(out.ToolConfig.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{Name: aws.String(t.Name), Description: aws.String(t.Description), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema)}}})
	}
	text := func(m conversation.Message) types.ContentBlock { return &types.ContentBlockMemberText{Value: m.Text()} }
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			out.Messages = append(out.Messages, types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{text(m)}})
		case conversation.RoleAssistant:
			c := m.ToolCalls()[0]
			out.Messages = append(out.Messages, types.Message{Role: types.ConversationRoleAssistant, Content: []types.ContentBlock{text(m), &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{ToolUseId: aws.String(c.ID), Name: aws.String(c.Name), Input: document.NewLazyDocument(map[string]any{"last": 7})}}}})
		case conversation.RoleTool:
			r := m.Part(0).(conversation.ToolResult)
			out.Messages = append(out.Messages, types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{ToolUseId: aws.String(r.ID), Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: r.ResultText()}}}}}})
		}
	}
	return out
}

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider, in turns, so that both see the same machine.
// The SDK signs its request; the provider leaves that to the transport.
func BenchmarkCall(b *testing.B) {
	answer := memory{benchStream()}
	client := sdk.New(sdk.Options{Region: bedrock.DefaultRegion, HTTPClient: answer, Retryer: aws.NopRetryer{}, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "placeholder"}, nil
	})})
	m, err := bedrock.New(bedrock.Config{Model: claude}, answer)
	if err != nil {
		b.Fatal(err)
	}
	req := benchRequest()
	var bare, whole time.Duration
	var words int
	for b.Loop() {
		start := time.Now()
		reply, err := client.ConverseStream(b.Context(), bareRequest(req))
		if err != nil {
			b.Fatal(err)
		}
		stream := reply.GetStream()
		for event := range stream.Events() {
			if delta, ok := event.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
				words += len(delta.Value.Delta.(*types.ContentBlockDeltaMemberText).Value)
			}
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
