package bedrock_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

// FuzzStream reads what may be a stream: it never panics, and ends in a finish or in an error.
func FuzzStream(f *testing.F) {
	event := providertest.ConverseEvent
	f.Add([]byte(providertest.ConverseBrokenStream), false)
	f.Add([]byte(event("contentBlockStart", `{"contentBlockIndex":0,"start":{"image":{"format":"png"}}}`)+event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"image":{"source":{"bytes":"AA=="}}}}`)+
		event("messageStop", `{"stopReason":"end_turn"}`)+event("metadata", `{"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}`)), false)
	f.Add([]byte(`{"output":{"message":{"content":[{"toolUse":{"toolUseId":"a","name":"b","input":{}}},{"x":1e400}]}},"stopReason":"tool_use"}`), true)
	f.Fuzz(func(t *testing.T, body []byte, blocking bool) {
		m, err := bedrock.New(bedrock.Config{Model: claude}, roundTrip(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		req := llm.Request{Blocking: blocking, Messages: []conversation.Message{conversation.User("m", conversation.Text{Text: "x"})}}
		reply, err := llm.Generate(context.Background(), m, req)
		if err != nil {
			return
		}
		// What was read can be sent again.
		req.Messages = append(req.Messages, conversation.Assistant("m", reply.Parts...))
		for _, err := range m.Stream(context.Background(), req) {
			if err == nil {
				break
			}
		}
	})
}
