package anthropic_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/anthropic"
)

// FuzzReply checks that whatever a server sends, the events keep the contract of a model and do not depend on how the body is cut into reads, and that what came can be stored and sent back.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"é\"}}\r\n\r\ndata: {\"type\":\"content_block_stop\",\"index\":0}\r\n\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n",
		"data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"name\":\"x\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\ndata: {\"type\":\"message_stop\"}\n\n",
		"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"x\",\"a\":{\"a\":1,\"a\":2}}}\n\ndata: {\"type\":\"content_block_stop\"}\n\ndata: {\"type\":\"message_stop\"}\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
		`{"type":"message","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"y"}],"stop_reason":"end_turn","usage":{"output_tokens":-1}}`,
		"<html>", "\ufeff", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first *llm.Reply
		for _, split := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				_ = req.Body.Close()
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(split(bytes.NewReader(data))), Request: req}, nil
			})
			m, err := anthropic.New(anthropic.Config{Model: "m"}, rt)
			if err != nil {
				t.Fatal(err)
			}
			req := llm.Request{Messages: []conversation.Message{conversation.User("1", conversation.Text{Text: "x"})}}
			var c llm.Collector
			failed := false
			for event, err := range m.Stream(context.Background(), req) {
				if err != nil {
					var e *llm.Error
					if event != nil || !errors.As(err, &e) {
						t.Fatalf("%v with %v", err, event)
					}
					failed = true
					break
				}
				c.Add(event)
			}
			if err := c.Err(); err != nil && !failed {
				t.Fatal(err)
			}
			reply := c.Reply()
			if first == nil {
				first = &reply
				if !failed {
					sendBack(t, reply)
				}
			} else if !reflect.DeepEqual(*first, reply) {
				t.Fatalf("reads change the reply:\n%+v\n%+v", *first, reply)
			}
		}
	})
}

// sendBack stores a reply and sends it.
func sendBack(t *testing.T, reply llm.Reply) {
	ctx, err := conversation.New(nil).Append(conversation.Assistant("m", reply.Parts...))
	if err != nil {
		return // a call without a name, which the loop refuses
	}
	stored, _, err := conversation.Decode(ctx.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{body: emptyReply}
	m, err := anthropic.New(anthropic.Config{Model: "m"}, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Generate(context.Background(), m, llm.Request{Messages: []conversation.Message{stored.Message(0)}}); err != nil {
		t.Fatalf("%+v cannot be sent back: %v", reply.Parts, err)
	}
}
