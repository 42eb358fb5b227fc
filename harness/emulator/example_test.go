package emulator_test

import (
	"context"
	"fmt"

	"github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/harness/emulator"
)

func ExampleStart() {
	script, err := emulator.Load("greeting.yaml", []byte(`
version: 1
name: greeting
conversations:
  - match: {user_contains: weather}
    steps:
      - calls: [{name: forecast, args: {city: Florence}}]
      - text: 'Tomorrow: {{last_tool_result}}.'
default:
  steps: [{text: 'You said: {{last_user}}'}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	running, err := emulator.Start(context.Background(), script, emulator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = running.Close() }()

	config := openai.DefaultConfig("any key")
	config.BaseURL = running.URL + "/v1"
	client := openai.NewClientWithConfig(config)
	for _, text := range []string{"Hello.", "What will the weather be?"} {
		reply, err := client.CreateChatCompletion(context.Background(), openai.ChatCompletionRequest{
			Model:    "gpt-4o",
			Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: text}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		message := reply.Choices[0].Message
		fmt.Println(message.Content)
		for _, call := range message.ToolCalls {
			fmt.Println(call.Function.Name, call.Function.Arguments)
		}
	}
	// Output:
	// You said: Hello.
	//
	// forecast {"city":"Florence"}
}
