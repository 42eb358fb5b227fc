package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/providertest"
)

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

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider.
func BenchmarkCall(b *testing.B) {
	answer := providertest.Memory{ContentType: "text/event-stream", Body: benchStream()}
	client := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey("placeholder"), option.WithMaxRetries(0), option.WithoutOpenTelemetry(), option.WithHTTPClient(&http.Client{Transport: answer}))
	m, err := anthropic.New(anthropic.Config{Model: "claude-haiku-4-5"}, answer)
	if err != nil {
		b.Fatal(err)
	}
	providertest.BenchCall(b, func(ctx context.Context, req llm.Request) (words int, err error) {
		stream := client.Messages.NewStreaming(ctx, bareRequest(req))
		for stream.Next() {
			words += len(stream.Current().Delta.Text)
		}
		if err := stream.Err(); err != nil {
			return 0, err
		}
		_ = stream.Close()
		return words, nil
	}, m)
}

// BenchmarkFresh measures the call of a model that is made for it.
func BenchmarkFresh(b *testing.B) {
	answer := providertest.Memory{ContentType: "text/event-stream", Body: benchStream()}
	providertest.BenchFresh(b, func() (llm.Model, error) { return anthropic.New(anthropic.Config{Model: "claude-haiku-4-5"}, answer) })
}
