package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
)

var streams = []string{
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u00e9\"},\"finish_reason\":\"stop\"}],\"usage\":{}}\n\ndata: [DONE]\n\n",
	"\ufeff: hi\r\nevent: x\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata: [DO",
	"data: 1\ndata: 2\ndata:\n\ndata:[DONE]\n\ndata: 3\n\n",
	"  \n{\"error\":\r\n{\"message\":\"x\"}}\n",
	"data: {\"error\":{\"code\":1}}\r\rdata: [DONE]",
	"<html>",
	"\xef\xbb",
	"",
}

// FuzzFrames checks that the frames do not depend on how the body is cut into reads, and that they have the form that the SDK's reader takes.
func FuzzFrames(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(r io.Reader) (string, error) {
			fr := newFrames(io.NopCloser(r))
			out, err := io.ReadAll(fr)
			_ = fr.Close()
			return string(out), err
		}
		whole, err := read(bytes.NewReader(data))
		for _, split := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			other, otherErr := read(split(bytes.NewReader(data)))
			if other != whole || errText(otherErr) != errText(err) {
				t.Fatalf("reads change the frames:\n%q %v\n%q %v", whole, err, other, otherErr)
			}
		}
		ends := 0
		for line := range strings.Lines(whole) {
			if line == dataPrefix+doneMarker+"\n" {
				ends++
			}
			if !strings.HasPrefix(line, dataPrefix) || !strings.HasSuffix(line, "\n") || strings.ContainsAny(line, "\r") {
				t.Fatalf("a line that the SDK cannot take: %q", line)
			}
		}
		if ends > 1 {
			t.Fatalf("more than one end: %q", whole)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type always struct{ body []byte }

func (a always) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: req}, nil
}

// FuzzReply checks that whatever a server sends, the events keep the contract of a model.
func FuzzReply(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"text","text":"x"}],"tool_calls":[{"function":{"arguments":{}}}]},"finish_reason":"stop"}]}`))
	fuzzReply(f, Chat)
}

// FuzzResponsesReply is the same for the Responses API.
func FuzzResponsesReply(f *testing.F) {
	for _, s := range []string{
		"data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"name\":\"n\"}}\n\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
		"data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"x\",\"summary\":[{\"text\":\"t\"}]}}\n\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\"}}\n\n",
		`{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"},{"type":"refusal","refusal":"no"}]},{"type":"web_search_call"},{"type":"function_call","arguments":{}}]}`,
		"data: {\"type\":\"error\",\"message\":\"m\"}\n\n",
	} {
		f.Add([]byte(s))
	}
	fuzzReply(f, Responses)
}

// fuzzReply holds a model to its contract, whatever a server sends.
func fuzzReply(f *testing.F, api API) {
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := New(Config{Model: "m", API: api}, always{data})
		if err != nil {
			t.Fatal(err)
		}
		req := llm.Request{Messages: []conversation.Message{conversation.User("1", conversation.Text{Text: "x"})}}
		var c llm.Collector
		for event, err := range m.Stream(context.Background(), req) {
			if err != nil {
				var e *llm.Error
				if event != nil || !errors.As(err, &e) {
					t.Fatalf("%v with %v", err, event)
				}
				return
			}
			c.Add(event)
		}
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

// expected does to a decoded request what a patch does to an encoded one.
func expected(v any, p patch) any {
	body, ok := v.(map[string]any)
	if !ok {
		return v
	}
	list, _ := body["messages"].([]any)
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if thought, ok := m["reasoning_content"]; ok && p.reasoning != "" {
			delete(m, "reasoning_content")
			m[p.reasoning] = thought
		}
		content, ok := m["content"]
		if !ok {
			m["content"] = ""
			if _, calls := m["tool_calls"]; calls {
				m["content"] = nil
			}
		}
		parts, _ := content.([]any)
		for i, item := range parts {
			part, _ := item.(map[string]any)
			image, _ := part["image_url"].(map[string]any)
			url, hasURL := image["url"]
			name, hasName := image["detail"]
			if part["type"] == "file" && hasURL && hasName {
				parts[i] = map[string]any{"type": "file", "file": map[string]any{"filename": name, "file_data": url}}
			}
		}
	}
	for _, m := range p.set {
		var name string
		var value any
		_ = json.Unmarshal([]byte(m.name), &name)
		_ = json.Unmarshal([]byte(m.value), &value)
		body[name] = value
	}
	return body
}

// FuzzPatch compares the patched text with the patched tree.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		`{"model":"","messages":[{"role":"user"},{"role":"assistant","tool_calls":[],"reasoning_content":"x"}],"stream":true}`,
		`{"messages":[{"content":[{"type":"file","image_url":{"url":"data:","detail":"a\"\\"}},{"type":"image_url","image_url":{"url":"u"}}]}]}`,
		` { "messages" : [ { } , 1 , [ ] ] , "model" : { "model" : "\\" } } `,
		`{}`, `{"messages":{}}`, `{"messages":[]}`, `[1]`, `{"a":"\\\"","messages":[{"content":null}]}`,
	} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, rename bool) {
		p := patch{set: []member{{`"model"`, `"m"`}, {`"stream"`, `false`}, {`"temperature"`, `0`}}}
		if rename {
			p.reasoning = "reasoning"
		}
		out, err := p.apply(data)
		var before any
		if !plainObject(data) || json.Unmarshal(data, &before) != nil {
			return // nothing is promised of what is no request, but that it ends
		}
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		var after any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		if want := expected(before, p); !reflect.DeepEqual(after, want) {
			t.Fatalf("%s became %s, want %v", data, out, want)
		}
	})
}

// plainObject reports whether the text is an object as the SDK writes one: valid UTF-8, without duplicate names, without escapes in names.
func plainObject(data []byte) bool {
	v := jsontext.Value(data)
	return v.IsValid() && v.Kind() == '{' && !bytes.Contains(data, []byte(`\u`)) && !bytes.Contains(data, []byte(`"reasoning"`))
}
