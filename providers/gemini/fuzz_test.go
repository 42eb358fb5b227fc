package gemini

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
)

var bodies = []string{
	"data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"h\u00e9\"}]},\"finishReason\": \"STOP\"}],\"usageMetadata\": {}}\r\n\r\n",
	"[{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"a\"}]}}]\n}\n,\r\n{\"candidates\": [{\"finishReason\": 1}]}\n]",
	"{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{\"n\":9007199254740993}},\"thoughtSignature\":\"AA==\"}]},\"finishReason\":\"STOP\"}]}",
	"\ufeff: hi\r\nevent: x\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata: {\"b",
	"data: 1\ndata: 2\ndata:\n\ndata: {\"error\":{\"code\":500}}\r\rdata: 3",
	"data: {}\n\n{\n \"error\": {\"message\": \"x\"}\n}\n",
	"  \n[{\"error\":{\"message\":\"x\"}}]\n",
	`{"candidates":5}`, `{"candidates":[{"content":5}]}`, `[[]]`, `[`, `]`, `{}`, `{}{}`, "<html>", "da", "",
}

// readAll gives the frames and how they ended.
func readAll(r io.Reader) ([]string, error) {
	f := newFrames(r)
	var list []string
	for {
		frame, err := f.next()
		if err != nil {
			return list, err
		}
		list = append(list, string(frame))
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// FuzzFrames checks that the frames do not depend on how the body is cut into reads, and that the end of a body is told once.
func FuzzFrames(f *testing.F) {
	for _, s := range bodies {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := readAll(bytes.NewReader(data))
		for _, split := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			other, otherErr := readAll(split(bytes.NewReader(data)))
			if !same(other, whole) || errText(otherErr) != errText(err) {
				t.Fatalf("reads change the frames:\n%q %v\n%q %v", whole, err, other, otherErr)
			}
		}
	})
}

// FuzzArray checks that the elements of an array are the frames that the same texts make as events, in one piece and in bytes.
func FuzzArray(f *testing.F) {
	f.Add(`{"candidates": [{"content": {"parts": [{"text": "a]b\"},{"}]}}]}`, `{"a":[[],{}]}`)
	f.Add("{\n  \"a\": 1\n}", `{"b": "\u005d"}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var asEvents, asArray bytes.Buffer
		asArray.WriteByte('[')
		for i, text := range []string{first, second} {
			v := jsontext.Value(text)
			if v.Kind() != '{' || !v.IsValid(lenient) {
				return
			}
			if i > 0 {
				asArray.WriteString(",\r\n")
			}
			asArray.WriteString(text + "\n")
			if v.Compact(lenient, jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
				return
			}
			asEvents.WriteString("data: " + string(v) + "\r\n\r\n")
		}
		asArray.WriteByte(']')
		events, err := readAll(&asEvents)
		if !errors.Is(err, io.EOF) || len(events) != 2 {
			t.Fatalf("%q: %q %v", asEvents.String(), events, err)
		}
		for _, r := range []io.Reader{bytes.NewReader(asArray.Bytes()), iotest.OneByteReader(bytes.NewReader(asArray.Bytes()))} {
			elements, err := readAll(r)
			if !errors.Is(err, io.EOF) || len(elements) != len(events) {
				t.Fatalf("%q: %q %v", asArray.String(), elements, err)
			}
			for i := range elements {
				v := jsontext.Value(elements[i])
				if err := v.Compact(lenient, jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil || string(v) != events[i] {
					t.Fatalf("element %q is event %q (%v)", elements[i], events[i], err)
				}
			}
		}
	})
}

type always struct{ body []byte }

func (a always) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: req}, nil
}

// FuzzReply checks that whatever a server sends, the events keep the contract of a model, and that what they make can be saved and loaded.
func FuzzReply(f *testing.F) {
	for _, s := range bodies {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := New(Config{Model: "m"}, always{data})
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
		message := conversation.Assistant("m", c.Reply().Parts...)
		if message.Validate() != nil {
			return // a call without a name, which the loop reports
		}
		text, err := message.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conversation.DecodeMessage(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
