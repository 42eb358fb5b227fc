package abilities_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/abilities"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/openai"
)

var _ = Describe("the bounds of settings", func() {
	models := map[string]func(url string, rt http.RoundTripper) (llm.Model, error){
		"anthropic": func(url string, rt http.RoundTripper) (llm.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: url, Model: "claude-haiku-4-5", APIVersion: anthropic.Version2023}, rt)
		},
		"bedrock": func(url string, rt http.RoundTripper) (llm.Model, error) {
			return bedrock.New(bedrock.Config{BaseURL: url, Model: "amazon.nova-lite-v1:0"}, rt)
		},
		"gemini": func(url string, rt http.RoundTripper) (llm.Model, error) {
			return gemini.New(gemini.Config{BaseURL: url, Model: "gemini-2.5-flash"}, rt)
		},
		"openai": func(url string, rt http.RoundTripper) (llm.Model, error) {
			return openai.New(openai.Config{BaseURL: url + "/v1", Model: "gpt-4o-mini"}, rt)
		},
	}
	thinker := func(url string, rt http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Config{BaseURL: url + "/v1", Model: "gpt-5", API: openai.Chat}, rt)
	}

	It("are those that the vendors' formats have: what lies within is taken, what lies outside is refused", func() {
		script, err := emulator.Echo()
		Expect(err).NotTo(HaveOccurred())
		handler, err := emulator.New(script, emulator.Options{})
		Expect(err).NotTo(HaveOccurred())
		server := httptest.NewServer(handler)
		DeferCleanup(server.Close)
		Expect(abilities.Bounds).To(HaveLen(len(models)))
		tried := 0
		for vendor, bounds := range abilities.Bounds {
			model, err := models[vendor](server.URL, http.DefaultTransport)
			Expect(err).NotTo(HaveOccurred())
			status := func(s llm.Settings) int {
				GinkgoHelper()
				tried++
				_, err := llm.Generate(context.Background(), model, llm.Request{Messages: []conversation.Message{conversation.User("m", conversation.Text{Text: "Hi."})}, Settings: s, Blocking: true})
				var refused *llm.Error
				if errors.As(err, &refused) {
					return refused.Status
				}
				Expect(err).NotTo(HaveOccurred())
				return 200
			}
			within := func(s llm.Settings, ok bool) {
				GinkgoHelper()
				Expect(bounds.Check(vendor, s) == nil).To(Equal(ok), "%s: %+v", vendor, s)
				Expect(status(s)).To(Equal(map[bool]int{true: 200, false: 400}[ok]), "%s: %+v", vendor, s)
			}
			above := math.Nextafter(bounds.Temperature, 100) + 0.01
			within(llm.Settings{Temperature: &bounds.Temperature}, true)
			within(llm.Settings{Temperature: &above}, false)
			if bounds.SeedBits > 0 {
				for seed, ok := range map[int64]bool{math.MaxInt32: true, math.MinInt32: true, math.MaxInt32 + 1: false, math.MinInt32 - 1: false} {
					within(llm.Settings{Seed: &seed}, ok)
				}
			}
			var stops []string
			for i := range bounds.Stops {
				stops = append(stops, fmt.Sprint("stop ", i))
			}
			if stops != nil {
				within(llm.Settings{Stop: stops}, true)
				within(llm.Settings{Stop: append(stops, "one more")}, false)
			}
			if vendor == "openai" { // elsewhere an effort that the model does not have is left out
				model, err = thinker(server.URL, http.DefaultTransport)
				Expect(err).NotTo(HaveOccurred())
				for _, effort := range bounds.Efforts {
					within(llm.Settings{ReasoningEffort: effort}, true)
				}
				within(llm.Settings{ReasoningEffort: "most"}, false)
			}
		}
		Expect(tried).To(BeNumerically(">", 20))
	})

	It("name what else there is", func() {
		seed := int64(1) << 40
		out := abilities.Bounds["gemini"].Check("gemini", llm.Settings{Seed: &seed, CacheTTL: "5m"})
		Expect(out).To(Equal([]llm.OutOfBounds{
			{Setting: "seed", Problem: "gemini takes a seed of 32 bits, from -2147483648 to 2147483647, got 1099511627776"},
			{Setting: "cache_ttl", Problem: "gemini has no setting cache_ttl", Hint: "leave it out"},
		}))
		out = abilities.Bounds["openai"].Check("openai", llm.Settings{CacheMessages: true, PromptCacheKey: "x"})
		Expect(out).To(Equal([]llm.OutOfBounds{{Setting: "cache_messages", Problem: "openai has no setting cache_messages", Hint: "it has prompt_cache_key"}}))
		Expect(llm.Bounds{}.Check("compat", llm.Settings{Seed: &seed, ReasoningEffort: "most", Stop: make([]string, 99)})).To(BeEmpty(), "of whom nothing is known")
	})
})
