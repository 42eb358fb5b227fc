package emulator_test

import (
	"errors"
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/harness/emulator"
)

var _ = Describe("the client go-openai", func() {
	newClient := func() *openai.Client {
		config := openai.DefaultConfig(key)
		config.BaseURL = start(full(), emulator.Options{Keys: []string{key}}) + "/v1"
		return openai.NewClientWithConfig(config)
	}
	tools := []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: "weather", Parameters: map[string]any{"type": "object", "properties": map[string]any{}}}}}

	It("goes through a conversation with tools", func() {
		client, ctx := newClient(), GinkgoT().Context()
		request := openai.ChatCompletionRequest{Model: "gpt-4o", Tools: tools, Messages: []openai.ChatCompletionMessage{{Role: "user", Content: weather}}}
		for step, want := range []string{"", "The current temperature is 40 C.", "Noted."} {
			reply, err := client.CreateChatCompletion(ctx, request)
			Expect(err).NotTo(HaveOccurred())
			Expect(reply.ID).To(MatchRegexp(completionID))
			Expect(reply.Choices).To(HaveLen(1))
			message := reply.Choices[0].Message
			Expect(message.Content).To(Equal(want))
			Expect(reply.Usage.TotalTokens).To(Equal(reply.Usage.PromptTokens + reply.Usage.CompletionTokens))
			if step == 2 {
				Expect(reply.Choices[0].FinishReason).To(Equal(openai.FinishReasonStop))
				Expect(reply.Usage.PromptTokensDetails.CachedTokens).To(Equal(64))
				break
			}
			Expect(reply.Choices[0].FinishReason).To(Equal(openai.FinishReasonToolCalls))
			Expect(message.ToolCalls).To(HaveLen(1))
			request.Messages = append(request.Messages, message, openai.ChatCompletionMessage{Role: "tool", ToolCallID: message.ToolCalls[0].ID, Content: "40 C"})
		}
	})

	It("reads streams with parallel calls", func() {
		stream, err := newClient().CreateChatCompletionStream(GinkgoT().Context(), openai.ChatCompletionRequest{Model: "gpt-4o", Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
			Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "both in parallel"}}})
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = stream.Close() }()
		var calls []openai.ToolCall
		var usage *openai.Usage
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			Expect(err).NotTo(HaveOccurred())
			if chunk.Usage != nil {
				usage = chunk.Usage
			}
			for _, choice := range chunk.Choices {
				for _, c := range choice.Delta.ToolCalls {
					if c.ID != "" {
						calls = append(calls, c)
					} else {
						calls[*c.Index].Function.Arguments += c.Function.Arguments
					}
				}
			}
		}
		Expect(calls).To(HaveLen(3))
		Expect(calls[0].Function).To(Equal(openai.FunctionCall{Name: "read_file", Arguments: `{"path":"a.txt"}`}))
		Expect(calls[1].Function).To(Equal(openai.FunctionCall{Name: "read_file", Arguments: `{"path":"b.txt"}`}))
		Expect(calls[2].Function).To(Equal(openai.FunctionCall{Name: "list_dir", Arguments: "{}"}))
		Expect(usage).NotTo(BeNil())
		Expect(stream.Header().Get("Openai-Version")).To(Equal("2020-10-01"))
	})

	It("reads errors", func() {
		client := newClient()
		_, err := client.CreateChatCompletion(GinkgoT().Context(), openai.ChatCompletionRequest{Model: "gpt-4o", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "e429"}}})
		var api *openai.APIError
		Expect(errors.As(err, &api)).To(BeTrue())
		Expect(api.HTTPStatusCode).To(Equal(http.StatusTooManyRequests))
		Expect(api.Code).To(Equal("insufficient_quota"))
		Expect(api.Type).To(Equal("insufficient_quota"))

		_, err = client.CreateChatCompletion(GinkgoT().Context(), openai.ChatCompletionRequest{Model: "gpt-4o", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "x"}, {Role: "tool", ToolCallID: "a", Content: "x"}}})
		Expect(errors.As(err, &api)).To(BeTrue())
		Expect(*api.Param).To(Equal("messages.[1].role"))
	})
})

var _ = Describe("the client of Anthropic", func() {
	newClient := func() anthropic.Client {
		return anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey(key), option.WithMaxRetries(0), option.WithBaseURL(start(load(messagesScript), emulator.Options{Keys: []string{key}})))
	}
	params := func(text string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{
			Model: "claude-haiku-4-5", MaxTokens: 4096, System: []anthropic.TextBlockParam{{Text: "Be brief."}}, Thinking: anthropic.ThinkingConfigParamOfEnabled(1024),
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
			Tools:    []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, "read_file"), anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, "list_dir")},
		}
	}

	It("goes through a conversation with tools and reasoning, streamed and not", func() {
		client, ctx := newClient(), GinkgoT().Context()
		whole, err := client.Messages.New(ctx, params("look at both"))
		Expect(err).NotTo(HaveOccurred())
		stream := client.Messages.NewStreaming(ctx, params("look at both"))
		var streamed anthropic.Message
		for stream.Next() {
			Expect(streamed.Accumulate(stream.Current())).To(Succeed())
		}
		Expect(stream.Err()).NotTo(HaveOccurred())
		for _, reply := range []*anthropic.Message{whole, &streamed} {
			Expect(reply.StopReason).To(Equal(anthropic.StopReasonToolUse))
			Expect(reply.Content).To(HaveLen(4))
			Expect(reply.Content[0].Thinking).To(Equal("I look at both."))
			Expect(reply.Content[1].Text).To(Equal("Looking."))
			Expect(string(reply.Content[2].Input)).To(MatchJSON(`{"path":"a.txt","n":1.50}`))
			Expect(string(reply.Content[3].Input)).To(MatchJSON(`{}`))

			next := params("look at both")
			next.Messages = append(next.Messages, reply.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(reply.Content[2].ID, "A", false), anthropic.NewToolResultBlock(reply.Content[3].ID, "B", true)))
			last, err := client.Messages.New(ctx, next)
			Expect(err).NotTo(HaveOccurred())
			Expect(last.Content[len(last.Content)-1].Text).To(Equal("b says B"))
			Expect(last.Usage.CacheReadInputTokens).To(BeEquivalentTo(64))
		}
	})

	It("reads errors", func() {
		client := newClient()
		_, err := client.Messages.New(GinkgoT().Context(), params("e529"))
		var api *anthropic.Error
		Expect(errors.As(err, &api)).To(BeTrue(), "%v", err)
		Expect(api.StatusCode).To(Equal(529))
		Expect(api.RequestID).To(HavePrefix("req_011C"))
		Expect(err).To(MatchError(ContainSubstring("overloaded_error")))
	})
})
