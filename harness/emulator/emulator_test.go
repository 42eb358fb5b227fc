package emulator_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/emulator"
)

func TestEmulator(t *testing.T) { suite.Run(t, "emulator") }

const key = "sk-test-0123456789abcdefghijklmnopqrstuvwxyz"

// load reads a script that must be right.
func load(text string) emulator.Script {
	GinkgoHelper()
	script, err := emulator.Load("script.yaml", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	return script
}

func full() emulator.Script {
	GinkgoHelper()
	data, err := os.ReadFile("testdata/full.yaml")
	Expect(err).NotTo(HaveOccurred())
	return load(string(data))
}

func handler(script emulator.Script, opts emulator.Options) http.Handler {
	GinkgoHelper()
	h, err := emulator.New(script, opts)
	Expect(err).NotTo(HaveOccurred())
	return h
}

// start serves a script on a port for one spec.
func start(script emulator.Script, opts emulator.Options) string {
	GinkgoHelper()
	running, err := emulator.Start(GinkgoT().Context(), script, opts)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(running.Close)
	return running.URL
}

// request makes a request as the vendor's clients send it.
func request(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// call answers a request without a network.
func call(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(body, headers...))
	return w
}

// ask is the body of a request with one user message; more is put before the messages.
func ask(user, more string) string {
	if more != "" {
		more += ","
	}
	return `{"model":"gpt-4o",` + more + `"messages":[{"role":"user","content":` + quote(user) + `}]}`
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

const (
	streamed          = `"stream":true`
	streamedWithUsage = `"stream":true,"stream_options":{"include_usage":true}`
)

// completion is what the tests read of a blocking reply.
type completion struct {
	ID      string
	Created int64
	Model   string
	Choices []struct {
		Message struct {
			Content   *string
			Refusal   *string
			ToolCalls []toolCall `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage             usage
	SystemFingerprint string `json:"system_fingerprint"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

type toolCall struct {
	Index    int
	ID       string
	Type     string
	Function struct{ Name, Arguments string }
}

func decode(data []byte) completion {
	GinkgoHelper()
	var c completion
	Expect(json.Unmarshal(data, &c)).To(Succeed(), "%s", data)
	return c
}

// frames returns the JSON texts of a whole stream, and checks how it is framed.
func frames(body []byte) []string {
	GinkgoHelper()
	rest, ended := bytes.CutSuffix(body, []byte("data: [DONE]\n\n"))
	Expect(ended).To(BeTrue(), "the stream does not end with [DONE]: %s", tail(body))
	var out []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(rest), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(frame, "data: ")
		Expect(ok).To(BeTrue(), "%q", frame)
		Expect(data).NotTo(ContainSubstring("\n"))
		Expect(json.Valid([]byte(data))).To(BeTrue(), "%q", data)
		out = append(out, data)
	}
	return out
}

func tail(b []byte) []byte { return b[max(0, len(b)-200):] }

// folded is what the chunks of a stream add up to.
type folded struct {
	text, refusal string
	calls         []toolCall
	finish        string
	usage         *usage
	ids           map[string]bool
}

func fold(texts []string) folded {
	GinkgoHelper()
	out := folded{ids: map[string]bool{}}
	for _, text := range texts {
		var c struct {
			ID      string
			Choices []struct {
				Delta struct {
					Content   *string
					Refusal   *string
					ToolCalls []toolCall `json:"tool_calls"`
				}
				FinishReason *string `json:"finish_reason"`
			}
			Usage *usage
		}
		Expect(json.Unmarshal([]byte(text), &c)).To(Succeed())
		out.ids[c.ID] = true
		if c.Usage != nil {
			Expect(c.Choices).To(BeEmpty())
			out.usage = c.Usage
		}
		for _, choice := range c.Choices {
			Expect(out.finish).To(BeEmpty(), "a frame after the last")
			if choice.Delta.Content != nil {
				out.text += *choice.Delta.Content
			}
			if choice.Delta.Refusal != nil {
				out.refusal += *choice.Delta.Refusal
			}
			for _, t := range choice.Delta.ToolCalls {
				if t.ID != "" {
					Expect(t.Index).To(Equal(len(out.calls)))
					out.calls = append(out.calls, t)
					continue
				}
				Expect(t.Index).To(Equal(len(out.calls)-1), "arguments of a call that is not the last")
				out.calls[t.Index].Function.Arguments += t.Function.Arguments
			}
			if choice.FinishReason != nil {
				out.finish = *choice.FinishReason
			}
		}
	}
	return out
}

// post sends a request over the network and returns the reply with as much of its body as came, and the error that ended it.
func post(url, body string, headers ...string) (*http.Response, []byte, error) {
	GinkgoHelper()
	r := request(body, headers...)
	r.RequestURI = ""
	target, err := r.URL.Parse(url + "/v1/chat/completions")
	Expect(err).NotTo(HaveOccurred())
	r.URL, r.Host = target, target.Host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(r.WithContext(GinkgoT().Context()))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = reply.Body.Close() }()
	data, err := io.ReadAll(reply.Body)
	return reply, data, err
}
