package gemini_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "google.golang.org/genai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/providertest"
)

// benchStream is a stream of about 5 KB.
func benchStream() string {
	const usage = `"usageMetadata": {"promptTokenCount": 5000,"candidatesTokenCount": 60,"totalTokenCount": 5060},"modelVersion": "gemini-2.5-flash","responseId": "EhemaamYOKz7nsEP58LA8Qw"}`
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"word %d \"}],\"role\": \"model\"},\"index\": 0}],%s\r\n\r\n", i, usage)
	}
	b.WriteString("data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"end\"}],\"role\": \"model\"},\"finishReason\": \"STOP\",\"index\": 0}]," + usage + "\r\n\r\n")
	return b.String()
}

// bareRequest is the same for the SDK alone.
func bareRequest(req llm.Request) ([]*sdk.Content, *sdk.GenerateContentConfig) {
	config := &sdk.GenerateContentConfig{SystemInstruction: &sdk.Content{Parts: []*sdk.Part{{Text: req.System}}}}
	properties := map[string]*sdk.Schema{"last": {Type: sdk.TypeInteger}}
	for i := range 6 {
		properties[fmt.Sprintf("name_%d", i)] = &sdk.Schema{Type: sdk.TypeString, Description: "The name of the thing"}
	}
	declared := &sdk.Tool{}
	for _, t := range req.Tools {
		declared.FunctionDeclarations = append(declared.FunctionDeclarations, &sdk.FunctionDeclaration{Name: t.Name, Description: t.Description, Parameters: &sdk.Schema{Type: sdk.TypeObject, Properties: properties, Required: []string{"last"}}})
	}
	config.Tools = []*sdk.Tool{declared}
	var out []*sdk.Content
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			out = append(out, &sdk.Content{Role: "user", Parts: []*sdk.Part{{Text: m.Text()}}})
		case conversation.RoleAssistant:
			c := m.ToolCalls()[0]
			out = append(out, &sdk.Content{Role: "model", Parts: []*sdk.Part{{Text: m.Text()}, {FunctionCall: &sdk.FunctionCall{ID: c.ID, Name: c.Name, Args: map[string]any{"last": 7}}}}})
		case conversation.RoleTool:
			r := m.Part(0).(conversation.ToolResult)
			out = append(out, &sdk.Content{Role: "user", Parts: []*sdk.Part{{FunctionResponse: &sdk.FunctionResponse{ID: r.ID, Name: "tool_1", Response: map[string]any{"result": r.ResultText()}}}}})
		}
	}
	return out, config
}

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider.
func BenchmarkCall(b *testing.B) {
	answer := providertest.Memory{ContentType: "text/event-stream", Body: benchStream()}
	client, err := sdk.NewClient(context.Background(), &sdk.ClientConfig{APIKey: "placeholder", Backend: sdk.BackendGeminiAPI, HTTPClient: &http.Client{Transport: answer}})
	if err != nil {
		b.Fatal(err)
	}
	m, err := gemini.New(gemini.Config{Model: "gemini-2.5-flash"}, answer)
	if err != nil {
		b.Fatal(err)
	}
	providertest.BenchCall(b, func(ctx context.Context, req llm.Request) (words int, err error) {
		contents, config := bareRequest(req)
		for chunk, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash", contents, config) {
			if err != nil {
				return 0, err
			}
			words += len(chunk.Text())
		}
		return words, nil
	}, m)
}

// BenchmarkFresh measures the call of a model that is made for it.
func BenchmarkFresh(b *testing.B) {
	answer := providertest.Memory{ContentType: "text/event-stream", Body: benchStream()}
	providertest.BenchFresh(b, func() (llm.Model, error) { return gemini.New(gemini.Config{Model: "gemini-2.5-flash"}, answer) })
}
