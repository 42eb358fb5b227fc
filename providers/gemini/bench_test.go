package gemini_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "google.golang.org/genai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/gemini"
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
	const usage = `"usageMetadata": {"promptTokenCount": 5000,"candidatesTokenCount": 60,"totalTokenCount": 5060},"modelVersion": "gemini-2.5-flash","responseId": "EhemaamYOKz7nsEP58LA8Qw"}`
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"word %d \"}],\"role\": \"model\"},\"index\": 0}],%s\r\n\r\n", i, usage)
	}
	b.WriteString("data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"end\"}],\"role\": \"model\"},\"finishReason\": \"STOP\",\"index\": 0}]," + usage + "\r\n\r\n")
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

// BenchmarkCall measures a call of 20 KB out and 5 KB streamed back with the bare SDK and with the whole provider, in turns, so that both see the same machine.
func BenchmarkCall(b *testing.B) {
	answer := memory{benchStream()}
	client, err := sdk.NewClient(context.Background(), &sdk.ClientConfig{APIKey: "placeholder", Backend: sdk.BackendGeminiAPI, HTTPClient: &http.Client{Transport: answer}})
	if err != nil {
		b.Fatal(err)
	}
	m, err := gemini.New(gemini.Config{Model: "gemini-2.5-flash"}, answer)
	if err != nil {
		b.Fatal(err)
	}
	req := benchRequest()
	var bare, whole time.Duration
	var words int
	for b.Loop() {
		start := time.Now()
		contents, config := bareRequest(req)
		for chunk, err := range client.Models.GenerateContentStream(b.Context(), "gemini-2.5-flash", contents, config) {
			if err != nil {
				b.Fatal(err)
			}
			words += len(chunk.Text())
		}
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
		m, err := gemini.New(gemini.Config{Model: "gemini-2.5-flash"}, answer)
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
