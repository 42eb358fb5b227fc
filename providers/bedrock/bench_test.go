package bedrock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

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

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider.
// The SDK signs its request; the provider leaves that to the transport.
func BenchmarkCall(b *testing.B) {
	answer := providertest.Memory{ContentType: "application/vnd.amazon.eventstream", Body: benchStream()}
	client := sdk.New(sdk.Options{Region: bedrock.DefaultRegion, HTTPClient: answer, Retryer: aws.NopRetryer{}, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "placeholder"}, nil
	})})
	m, err := bedrock.New(bedrock.Config{Model: claude}, answer)
	if err != nil {
		b.Fatal(err)
	}
	providertest.BenchCall(b, func(ctx context.Context, req llm.Request) (words int, err error) {
		reply, err := client.ConverseStream(ctx, bareRequest(req))
		if err != nil {
			return 0, err
		}
		stream := reply.GetStream()
		for event := range stream.Events() {
			if delta, ok := event.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
				words += len(delta.Value.Delta.(*types.ContentBlockDeltaMemberText).Value)
			}
		}
		if err := stream.Err(); err != nil {
			return 0, err
		}
		_ = stream.Close()
		return words, nil
	}, m)
}
