package providertest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// Memory answers each request with the same body, and reads the request as a network would.
type Memory struct{ ContentType, Body string }

// Do is for SDKs that want a client.
func (m Memory) Do(req *http.Request) (*http.Response, error) { return m.RoundTrip(req) }

// RoundTrip implements [http.RoundTripper].
func (m Memory) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {m.ContentType}}, Body: io.NopCloser(strings.NewReader(m.Body)), Request: req}, nil
}

// BenchRequest is a request of about 20 KB: a system prompt, four tools and six turns.
func BenchRequest() llm.Request {
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

// BenchCall measures a call of [BenchRequest] with the bare SDK and with the whole provider, in turns, so that both see the same machine. bare makes the call with the SDK alone, the making of its request included, and returns how many bytes of text came; the provider must give as many.
func BenchCall(b *testing.B, bare func(context.Context, llm.Request) (int, error), model llm.Model) {
	req := BenchRequest()
	var alone, whole time.Duration
	for b.Loop() {
		start := time.Now()
		text, err := bare(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		for event, err := range model.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
			if delta, ok := event.(llm.TextDelta); ok {
				text -= len(delta.Text)
			}
		}
		alone += middle.Sub(start)
		whole += time.Since(middle)
		if text != 0 {
			b.Fatal("the two calls gave different texts")
		}
	}
	n := float64(b.N)
	b.ReportMetric(float64(alone.Microseconds())/n, "bare-us/op")
	b.ReportMetric(float64(whole.Microseconds())/n, "provider-us/op")
	b.ReportMetric(float64(whole)/float64(alone), "ratio")
}

// BenchFresh measures the call of a model that is made for it, as for each item of a dataset.
func BenchFresh(b *testing.B, make func() (llm.Model, error)) {
	req := BenchRequest()
	b.ReportAllocs()
	for b.Loop() {
		m, err := make()
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
