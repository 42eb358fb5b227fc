package inject

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/eventstream"
)

var mediaTypes = []string{"application/json", "text/event-stream", eventstream.MediaType}

var _ = Describe("a body", func() {
	response := func(mediaType, body string) *cassette.Response {
		return &cassette.Response{Code: 200, Headers: http.Header{"Content-Type": {mediaType}}, Body: body}
	}

	It("keeps the bytes of what is not changed", func() {
		events := ": comment\r\n\r\nevent: a\r\ndata: {\"n\": 12345678901234567890, \"t\":\"x\"  }\r\n\r\ndata: [DONE]\n\n"
		w := parse(response("text/event-stream; charset=utf-8", events))
		Expect(w.frames).To(HaveLen(3))
		Expect(w.body(-1)).To(Equal(events))
		w.frames[1].object()["t"], w.frames[1].changed = "ü\n", true
		Expect(w.body(-1)).To(Equal(": comment\r\n\r\nevent: a\r\ndata: {\"n\":12345678901234567890,\"t\":\"ü\\n\"}\r\n\r\ndata: [DONE]\n\n"))
		Expect(w.body(1)).To(Equal(": comment\r\n\r\n"))
	})

	It("makes binary frames with right checksums", func() {
		head := string(eventstream.AppendHeader(nil, ":event-type", "messageStop"))
		body := string(eventstream.Append(nil, eventstream.Frame{Head: head, Payload: `{"stopReason":"end_turn"}`}))
		w := parse(response(eventstream.MediaType, body+"torn"))
		Expect(w.body(-1)).To(Equal(body + "torn"))
		Expect(converse.stop(w.frames[0], byLength)).To(BeTrue())
		f, rest, ok := eventstream.Cut(w.body(-1))
		Expect(ok).To(BeTrue())
		Expect(rest).To(Equal("torn"))
		Expect(f).To(Equal(eventstream.Frame{Head: head, Payload: `{"stopReason":"max_tokens"}`}))
	})

	It("stays a list where it is one", func() {
		w := parse(response("application/json", "[{\"candidates\": []},\r\n{\"candidates\": [{\"finishReason\": \"STOP\"}]}\r\n]"))
		Expect(w.frames).To(HaveLen(2))
		Expect(gemini.stop(w.frames[1], byRefusal)).To(BeTrue())
		Expect(w.body(-1)).To(Equal("[{\"candidates\": []},\r\n{\"candidates\":[{\"finishReason\":\"SAFETY\"}]}]\n"))
		Expect(w.body(1)).To(Equal("[{\"candidates\": []}"))
	})

	It("is read in pieces that end within characters, and is whole all the same", func() {
		text := "aü🔎b" + strings.Repeat("ö", 20_000) + "end"
		s := &splitting{ReadCloser: io.NopCloser(strings.NewReader(text))}
		var all []byte
		within := 0
		buffer := make([]byte, 4096)
		for {
			n, err := s.Read(buffer)
			all = append(all, buffer[:n]...)
			if len(all) < len(text) && text[len(all)]&0xC0 == 0x80 {
				within++
			}
			if err == io.EOF {
				break
			}
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(string(all)).To(Equal(text))
		Expect(within).To(BeNumerically(">", 20_000))
	})
})

func FuzzDerive(f *testing.F) {
	f.Add(0, 0, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n")
	f.Add(2, 0, `{"type":"message","content":[{"type":"tool_use","id":"a","name":"x","input":{}}],"stop_reason":"tool_use"}`)
	f.Add(3, 0, `[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x","args":null}}]},"finishReason":"STOP"}]}]`)
	f.Add(1, 1, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"x\",\"arguments\":\"{}\"}]}}\n\n")
	f.Add(4, 2, string(eventstream.Append(nil, eventstream.Frame{Payload: `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"x"}}}`})))
	f.Fuzz(func(t *testing.T, vendor, mediaType int, body string) {
		end := formats[uint(vendor)%uint(len(formats))].ends[0]
		response := cassette.Response{Code: 200, Headers: http.Header{"Content-Type": {mediaTypes[uint(mediaType)%uint(len(mediaTypes))]}}, Body: body}
		if w := parse(&response); w.framing != list && w.body(-1) != body {
			t.Errorf("%q became %q", body, w.body(-1))
		}
		file := &cassette.File{Interactions: []cassette.Interaction{{Request: cassette.Request{Method: http.MethodPost, URL: "https://a.example" + strings.Replace(end, ":", "/m:", 1)}, Response: response}}}
		for _, fault := range Builtin().Faults {
			fault.At = Each
			variants, none := Derive(fault, file, nil)
			if (len(variants) == 0) != (none != "") {
				t.Errorf("%s: %d variants, and %q", fault.Name, len(variants), none)
			}
			again, _ := Derive(fault, file, nil)
			for i, v := range variants {
				if !slices.EqualFunc(v.File.Interactions, again[i].File.Interactions, func(a, b cassette.Interaction) bool { return a.Response.Body == b.Response.Body }) {
					t.Errorf("%s: not the same twice", fault.Name)
				}
			}
		}
		if file.Interactions[0].Response.Body != body {
			t.Error("the recording was changed")
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add("version: 1\nfaults: [timeout, {cut_stream: {frame: 2, at: each}}]\n")
	f.Add("version: 1\nfaults: [{length: {at: -1}}, null, {}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := Load("f.yaml", []byte(text))
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, fault := range plan.Faults {
			if infoOf(fault.Kind) == nil || names[fault.Name] || fault.Times < 1 || fault.Times > maxTimes {
				t.Errorf("%+v", fault)
			}
			names[fault.Name] = true
		}
		if len(plan.Faults) == 0 {
			t.Error("a plan of nothing")
		}
	})
}
