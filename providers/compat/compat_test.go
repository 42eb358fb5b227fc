package compat_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/compat"
	"github.com/echoeval/echoeval/providers/providertest"
)

func TestCompat(t *testing.T) { suite.Run(t, "compat") }

var _ = providertest.Run(providertest.Suite{
	Name: "compat",
	New: func(url string, rt http.RoundTripper) (llm.Model, error) {
		return compat.New(compat.Config{BaseURL: url + "/v1", Model: "llama3"}, rt)
	},
	Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
	Asked:        providertest.ChatAsked,
	BrokenStream: providertest.ChatBrokenStream,
	UnknownBlock: providertest.ChatUnknownBlock,
	ContentType:  "text/event-stream",
})

var _ = providertest.RunEmbed(providertest.EmbedSuite{
	Name: "compat",
	New: func(url string, rt http.RoundTripper) (llm.Embedder, error) {
		return compat.NewEmbedder(compat.Config{BaseURL: url + "/v1", Model: "nomic-embed-text"}, rt)
	},
	Batch: 2048,
	Reply: func(vector string) string {
		return `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + vector + `}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`
	},
	Usage: true,
})

type server struct{ body string }

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.body = string(data)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{}}`))}, nil
}

var _ = Describe("a compatible server", func() {
	It("gets the output limit as max_tokens, the temperature, and no effort", func() {
		s := &server{}
		m, err := compat.New(compat.Config{BaseURL: "http://127.0.0.1:11434/v1", Model: "gpt-5-lookalike"}, s)
		Expect(err).NotTo(HaveOccurred())
		limit, cold := 9, 0.0
		reply, err := llm.Generate(context.Background(), m, llm.Request{
			Messages: []conversation.Message{conversation.User("1", conversation.Text{Text: "x"})},
			Settings: llm.Settings{MaxTokens: &limit, Temperature: &cold, ReasoningEffort: "high"},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(s.body).To(And(ContainSubstring(`"max_tokens":9`), ContainSubstring(`"temperature":0`), Not(ContainSubstring("effort"))))
		Expect(reply.Warnings).To(HaveExactElements(HaveField("Code", "reasoning-effort-left-out")))
	})

	It("must be named", func() {
		_, err := compat.New(compat.Config{Model: "m"}, &server{})
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).To(ConsistOf(ContainSubstring("base_url: http://")))
	})
})
