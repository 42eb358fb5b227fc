package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/providertest"
)

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

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider.
func BenchmarkCall(b *testing.B) {
	answer := providertest.Memory{ContentType: "text/event-stream", Body: benchStream()}
	config := sdk.DefaultConfig("placeholder")
	config.HTTPClient = &http.Client{Transport: answer}
	client := sdk.NewClientWithConfig(config)
	m, err := openai.New(openai.Config{Model: "gpt-4o-mini"}, answer)
	if err != nil {
		b.Fatal(err)
	}
	providertest.BenchCall(b, func(ctx context.Context, req llm.Request) (words int, err error) {
		stream, err := client.CreateChatCompletionStream(ctx, bareRequest(req))
		if err != nil {
			return 0, err
		}
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return 0, err
			}
			if len(chunk.Choices) > 0 {
				words += len(chunk.Choices[0].Delta.Content)
			}
		}
		_ = stream.Close()
		return words, nil
	}, m)
}

// BenchmarkFresh measures the call of a model that is made for it.
func BenchmarkFresh(b *testing.B) {
	answer := providertest.Memory{ContentType: "text/event-stream", Body: benchStream()}
	providertest.BenchFresh(b, func() (llm.Model, error) { return openai.New(openai.Config{Model: "gpt-4o-mini"}, answer) })
}
