package llm_test

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
)

var _ = Describe("a configuration", func() {
	from := func(env map[string]string) (llm.Config, error) {
		return llm.ConfigFromEnv(func(name string) string { return env[name] })
	}
	It("has known defaults", func() {
		c, err := from(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(*c.Temperature).To(Equal(0.2))
		c.Temperature = nil
		Expect(c).To(Equal(llm.Config{Provider: "bedrock", Model: "anthropic.claude-3-haiku-20240307-v1:0", Region: "ap-south-1", MaxTokens: 4096, MaxIterations: 10}))
		Expect(c.Check()).To(Succeed())
	})
	It("takes every variable", func() {
		env := map[string]string{"ECHO_DEFAULT_LLM_PROVIDER": "OpenAI_compatible", "ECHO_DEFAULT_LLM_MODEL": "llama", "ECHO_DEFAULT_LLM_TEMPERATURE": "0", "ECHO_DEFAULT_LLM_MAX_TOKENS": "7",
			"ECHO_DEFAULT_LLM_MAX_ITERATIONS": "3", "AWS_DEFAULT_REGION": "eu-west-1", "ECHO_LLM_BASE_URL": "http://127.0.0.1:1/v1", "ECHO_LLM_API_KEY": "k", "OPENAI_API_KEY": "another"}
		c, err := from(env)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{c.Provider, c.Model, *c.Temperature, c.MaxTokens, c.MaxIterations, c.Region, c.BaseURL, c.APIKey.Reveal()}).To(Equal([]any{"openai_compatible", "llama", 0.0, 7, 3, "eu-west-1", "http://127.0.0.1:1/v1", "k"}))
		Expect(fmt.Sprintf("%v %+v %#v", c, c, c)).NotTo(ContainSubstring(`"k"`), "a key is not printed")
		s := c.Settings()
		Expect([]any{*s.Temperature, *s.MaxTokens}).To(Equal([]any{0.0, 7}))
	})
	DescribeTable("takes the key of its provider and the address of no other", func(provider, variable string) {
		env := map[string]string{"ECHO_DEFAULT_LLM_PROVIDER": provider, variable: "the key", "ECHO_LLM_BASE_URL": "http://127.0.0.1:1/v1"}
		c, err := from(env)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.APIKey.Reveal()).To(Equal("the key"))
		Expect(c.BaseURL).To(BeEmpty())
		Expect(c.Model).To(BeEmpty(), "the default is a model of another provider")
	}, Entry(nil, "openai", "OPENAI_API_KEY"), Entry(nil, "anthropic", "ANTHROPIC_API_KEY"), Entry(nil, "gemini", "GOOGLE_API_KEY"), Entry(nil, "gemini", "GEMINI_API_KEY"))
	DescribeTable("names the variable that holds no number", func(name, value string) {
		_, err := from(map[string]string{name: value})
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(ContainSubstring(name)))
	}, Entry(nil, "ECHO_DEFAULT_LLM_TEMPERATURE", "warm"), Entry(nil, "ECHO_DEFAULT_LLM_MAX_TOKENS", "1.5"), Entry(nil, "ECHO_DEFAULT_LLM_MAX_ITERATIONS", "many"))

	number := func(n int) *int { return &n }
	DescribeTable("is checked", func(change func(*llm.Config), message string) {
		c := llm.Config{Provider: "anthropic", Model: "m", MaxTokens: 2000, MaxIterations: 1}
		change(&c)
		if message == "" {
			Expect(c.Check()).To(Succeed())
			return
		}
		Expect(failure.CodeOf(c.Check())).To(Equal(failure.Input))
		Expect(c.Check()).To(MatchError(ContainSubstring(message)))
	},
		Entry("any model", func(c *llm.Config) { c.Model = "not-yet-there" }, ""),
		Entry("no model", func(c *llm.Config) { c.Model = "" }, "no model"),
		Entry("no provider", func(c *llm.Config) { c.Provider = "" }, "no provider"),
		Entry("a temperature", func(c *llm.Config) { t := 2.1; c.Temperature = &t }, "outside [0,2]"),
		Entry("max_tokens", func(c *llm.Config) { c.MaxTokens = 0 }, "max_tokens"),
		Entry("max_iterations", func(c *llm.Config) { c.MaxIterations = 0 }, "max_iterations"),
		Entry("a cache", func(c *llm.Config) { c.CacheTTL, c.CacheMessages = "1h", true }, ""),
		Entry("a cache of another time", func(c *llm.Config) { c.CacheTTL = "2h" }, "cache_ttl"),
		Entry("a budget", func(c *llm.Config) { c.Thinking.BudgetTokens = number(1024) }, ""),
		Entry("a small budget", func(c *llm.Config) { c.Thinking.BudgetTokens = number(1023) }, "from 1024"),
		Entry("a budget above the reply", func(c *llm.Config) { c.Thinking.BudgetTokens = number(2000) }, "leaves nothing"),
		Entry("a budget elsewhere", func(c *llm.Config) { c.Provider, c.Thinking.BudgetTokens = "openai", number(2000) }, "openai has no setting thinking.budget_tokens"),
		Entry("Gemini without thinking", func(c *llm.Config) { c.Provider, c.Thinking.BudgetTokens = "gemini", number(0) }, ""),
		Entry("Gemini below", func(c *llm.Config) { c.Provider, c.Thinking.BudgetTokens = "gemini", number(-2) }, "from -1"),
		Entry("Gemini twice", func(c *llm.Config) {
			c.Provider, c.Thinking = "gemini", llm.Thinking{BudgetTokens: number(0), Level: "low"}
		}, "either"),
		Entry("an effort", func(c *llm.Config) { c.Thinking.Effort = "xhigh" }, ""),
		Entry("an unknown effort", func(c *llm.Config) { c.Thinking.Effort = "huge" }, "unknown word"),
		Entry("an effort elsewhere", func(c *llm.Config) { c.Provider, c.Thinking.Effort = "gemini", "low" }, "gemini has no setting thinking.effort"),
		Entry("a level elsewhere", func(c *llm.Config) { c.Thinking.Level = "low" }, "anthropic has no setting thinking.level"),
		Entry("OpenAI's effort", func(c *llm.Config) { c.Provider, c.ReasoningEffort = "OpenAI", "none" }, ""),
		Entry("OpenAI's effort elsewhere", func(c *llm.Config) { c.ReasoningEffort = "low" }, "anthropic has no setting reasoning_effort"),
		Entry("thinking of Bedrock", func(c *llm.Config) { c.Provider, c.Thinking.Effort = "bedrock", "low" }, "bedrock has no setting thinking.effort"),
	)
	It("is made a model by the table, whose names it is told of", func() {
		var got llm.Config
		table := map[string]llm.Constructor{"openai": func(c llm.Config, _ http.RoundTripper) (llm.Model, error) { got = c; return &scripted{}, nil }, "other": nil}
		_, err := llm.Get(table, llm.Config{Provider: "OPENAI", Model: "m", MaxTokens: 1, MaxIterations: 1}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Provider).To(Equal("openai"))
		_, err = llm.Get(table, llm.Config{Provider: "openai", MaxTokens: 1, MaxIterations: 1}, nil)
		Expect(err).To(MatchError(ContainSubstring("no model")))
		_, err = llm.Get(table, llm.Config{Provider: "zzz"}, nil)
		Expect(failure.Render(err)).To(ContainSubstring("choose one of openai, other"))
	})
})
