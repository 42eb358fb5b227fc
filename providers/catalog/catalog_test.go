package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/catalog"
)

func TestCatalog(t *testing.T) { suite.Run(t, "catalog") }

// refusing keeps the request and lets it go nowhere.
type refusing struct{ last *http.Request }

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.last = req
	return nil, errors.New("no network here")
}

var _ = Describe("the catalog", func() {
	DescribeTable("makes models that ask their vendor with its key", func(provider, host, header, value string) {
		rt := &refusing{}
		model, err := catalog.Get(llm.Config{Provider: provider, Model: "some-new-model", MaxTokens: 10, MaxIterations: 1, APIKey: transport.NewSecret("key-0123456789")}, rt)
		Expect(err).NotTo(HaveOccurred())
		_, err = llm.Generate(context.Background(), model, llm.Request{Messages: []conversation.Message{conversation.User("m", conversation.Text{Text: "Hi"})}, Blocking: true})
		Expect(err).To(MatchError(ContainSubstring("no network here")))
		Expect(err).NotTo(MatchError(ContainSubstring("key-0123456789")))
		Expect(rt.last.URL.Host).To(Equal(host))
		Expect(rt.last.Header.Get(header)).To(Equal(value))
	},
		Entry(nil, "openai", "api.openai.com", "Authorization", "Bearer key-0123456789"),
		Entry(nil, "OpenAI", "api.openai.com", "Authorization", "Bearer key-0123456789"),
		Entry(nil, "anthropic", "api.anthropic.com", "X-Api-Key", "key-0123456789"),
		Entry(nil, "gemini", "generativelanguage.googleapis.com", "X-Goog-Api-Key", "key-0123456789"),
		Entry(nil, "compat", "localhost:11434", "Authorization", "Bearer key-0123456789"),
		Entry(nil, "openai_compatible", "localhost:11434", "Authorization", "Bearer key-0123456789"),
	)
	It("does not take a setting that it would not follow", func() {
		_, err := catalog.Get(llm.Config{Provider: "openai", Model: "m", MaxTokens: 1, MaxIterations: 1, CacheTTL: "5m"}, &refusing{})
		Expect(err).To(MatchError(ContainSubstring("cache")))
	})
	It("says which providers there are", func() {
		_, err := catalog.Get(llm.Config{Provider: "antropic", Model: "m"}, &refusing{})
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Render(err)).To(And(ContainSubstring(`unknown provider "antropic"`), ContainSubstring(`did you mean "anthropic"?`), ContainSubstring("compat, gemini")))
	})
})

func ExampleGet() {
	environment := map[string]string{"ECHO_DEFAULT_LLM_PROVIDER": "openai", "ECHO_DEFAULT_LLM_MODEL": "gpt-4o-mini", "OPENAI_API_KEY": "sk-example"}
	config, err := llm.ConfigFromEnv(func(name string) string { return environment[name] })
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := catalog.Get(config, &refusing{})
	fmt.Println(config.Provider, config.Model, model != nil, err)
	// Output: openai gpt-4o-mini true <nil>
}
