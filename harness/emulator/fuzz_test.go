package emulator_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/echoeval/echoeval/harness/emulator"
)

// FuzzRequest sends any bytes: each must get a whole reply or an error in the vendor's form.
func FuzzRequest(f *testing.F) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	script, err := emulator.Load("full.yaml", data)
	if err != nil {
		f.Fatal(err)
	}
	for i, c := range script.Conversations {
		if strings.HasPrefix(c.Name, "cut") {
			script.Conversations[i].Steps[0].Cut = nil
		}
		script.Conversations[i].Steps[0].Slow = nil
	}
	h, err := emulator.New(script, emulator.Options{MaxBody: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range accepted() {
		f.Add([]byte(body))
		f.Add([]byte(with(body, streamedWithUsage)))
	}
	for _, r := range refusals() {
		f.Add([]byte(r.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(string(body)))
		reply := w.Body.Bytes()
		if w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			whole, ok := bytes.CutSuffix(reply, []byte("data: [DONE]\n\n"))
			if !ok {
				t.Fatalf("a stream without an end: %q", reply)
			}
			for frame := range bytes.SplitSeq(bytes.TrimSuffix(whole, []byte("\n\n")), []byte("\n\n")) {
				if !json.Valid(bytes.TrimPrefix(frame, []byte("data: "))) {
					t.Fatalf("a frame that is no JSON: %q", frame)
				}
			}
			return
		}
		if !json.Valid(reply) {
			t.Fatalf("%d with a body that is no JSON: %q", w.Code, reply)
		}
		if w.Code == http.StatusOK {
			return
		}
		var e errorBody
		if err := json.Unmarshal(reply, &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
			t.Fatalf("%d with %q", w.Code, reply)
		}
	})
}

// FuzzLoad reads any bytes as a script: it is refused, or it can be served.
func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, c := range bytes.SplitAfter(data, []byte("  - name")) {
		f.Add(append([]byte("version: 1\nname: x\nconversations:\n  - name"), bytes.TrimSuffix(c, []byte("  - name"))...))
	}
	f.Add([]byte("version: 1\nname: x\ndefault: {steps: [{text: '{{tool_result \"a\"}}'}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		script, err := emulator.Load("s.yaml", data)
		if err != nil {
			return
		}
		h, err := emulator.New(script, emulator.Options{})
		if err != nil {
			t.Fatalf("Load takes what New refuses: %v", err)
		}
		if script.Default != nil && script.Default.Steps[0].Cut == nil && script.Default.Steps[0].Slow == nil && script.Default.Steps[0].Attempts == nil {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(`{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"nobody asks this"}]}`))
			if w.Body.Len() == 0 {
				t.Fatal("no reply")
			}
		}
	})
}
