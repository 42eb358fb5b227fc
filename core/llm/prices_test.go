package llm_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
)

var _ = Describe("the price table", func() {
	usage := conversation.Usage{InputTokens: 1_000_000, OutputTokens: 100_000, CacheReadTokens: 400_000, ReasoningTokens: 50_000}

	It("that comes with the program is complete", func() {
		p, err := llm.DefaultPrices()
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Date).To(MatchRegexp(`^20\d\d-\d\d-\d\d$`))
		Expect(p.Source).NotTo(BeEmpty())
		for vendor, model := range map[string]string{"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"} {
			price, ok := p.Price(vendor, model)
			Expect(ok).To(BeTrue(), vendor)
			Expect(price.Input).To(BeNumerically(">", 0))
			Expect(price.Output).To(BeNumerically(">", price.Input))
			Expect(price.CachedInput).To(BeNumerically("<", price.Input))
			Expect(price.CacheWrite).To(BeNumerically(">=", price.Input))
		}
		cost, ok := p.Cost("openai", "gpt-4o-mini", usage)
		Expect(ok).To(BeTrue())
		// 600,000 at 0.15, 400,000 at 0.075, 100,000 at 0.60.
		Expect(cost.String()).To(Equal("0.18"))
		cost, ok = p.Cost("anthropic", "claude-haiku-4-5-20251001", conversation.Usage{InputTokens: 1000, CacheReadTokens: 100, CacheWriteTokens: 200, OutputTokens: 1})
		Expect(ok).To(BeTrue())
		// 700 at 1, 100 at 0.1, 200 at 1.25, 1 at 5.
		Expect(cost.String()).To(Equal("0.000965"))
	})

	const file = "version: 1\ndate: 2026-01-02\nsource: here\nprices: {v: {m: {input: 0.000000003, output: 2.5}, m-mini: {input: 0, output: 0}}}\n"

	It("finds a model by its name or by its name without the date, and guesses nothing", func() {
		p, err := llm.LoadPrices("p.yaml", []byte(file))
		Expect(err).NotTo(HaveOccurred())
		for model, known := range map[string]bool{"m": true, "m-2024-07-18": true, "m-20240718": true, "m-mini": true, "m-mini-2024-07-18": true,
			"m-large": false, "m-2024": false, "m-2024-7-18": false, "-20240718": false, "m-dddddddd": false, "M": false, "": false} {
			_, ok := p.Cost("v", model, usage)
			Expect(ok).To(Equal(known), model)
		}
		_, ok := p.Cost("w", "m", usage)
		Expect(ok).To(BeFalse())
		free, ok := p.Cost("v", "m-mini", usage)
		Expect(ok).To(BeTrue(), "free is a price")
		Expect(free).To(BeZero())
	})

	It("has the price of input where a vendor has no other, and does not go below nothing", func() {
		p, err := llm.LoadPrices("p.yaml", []byte(file))
		Expect(err).NotTo(HaveOccurred())
		price, _ := p.Price("v", "m")
		Expect(price).To(Equal(llm.Price{Input: 3, CachedInput: 3, CacheWrite: 3, LongCacheWrite: 3, Output: 2_500_000_000}))
		Expect(price.Cost(conversation.Usage{InputTokens: 1, CacheReadTokens: 5, OutputTokens: 1_000_000})).To(Equal(money.USD(2_500_000_000)))
	})

	It("is overridden model by model, and both tables stay as they are", func() {
		base, err := llm.LoadPrices("p.yaml", []byte(file))
		Expect(err).NotTo(HaveOccurred())
		over, err := llm.LoadPrices("q.yaml", []byte("version: 1\ndate: 2026-02-03\nsource: there\nprices: {v: {m: {input: 1, output: 1}}, w: {x: {input: 1, output: 1}}}\n"))
		Expect(err).NotTo(HaveOccurred())
		merged := base.Merge(over)
		Expect([]string{merged.Date, merged.Source}).To(Equal([]string{"2026-02-03", "there"}))
		for _, known := range [][2]string{{"v", "m"}, {"v", "m-mini"}, {"w", "x"}} {
			_, ok := merged.Price(known[0], known[1])
			Expect(ok).To(BeTrue())
		}
		price, _ := merged.Price("v", "m")
		Expect(price.Input).To(Equal(money.Dollar))
		price, _ = base.Price("v", "m")
		Expect(price.Input).To(Equal(money.USD(3)))
		_, ok := base.Price("w", "x")
		Expect(ok).To(BeFalse())
		Expect(llm.Prices{}.Merge(base).Merge(llm.Prices{})).To(Equal(base))
	})

	DescribeTable("says what is wrong with a file, and where", func(from, to, message string) {
		_, err := llm.LoadPrices("p.yaml", []byte(strings.Replace(file, from, to, 1)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Render(err)).To(ContainSubstring(message))
	},
		Entry(nil, file, "", "p.yaml"),
		Entry(nil, "version: 1", "version: 2", "p.yaml:1:10: version: unknown version 2"),
		Entry(nil, "date: 2026-01-02\n", "", `"date" is missing`),
		Entry(nil, "input: 0,", "inputs: 0,", `did you mean "input"?`),
		Entry(nil, "output: 0}", "output: -1}", "want a price, from 0"),
		Entry(nil, "output: 0}", "output: 1e99}", "want a price, from 0"),
		Entry(nil, "output: 0}", "output: many}", "number"),
	)
})

var _ = Describe("the price of what is written to a cache", func() {
	It("is that of the time that the settings ask for", func() {
		p, err := llm.LoadPrices("p.yaml", []byte("version: 1\ndate: 2026-01-02\nsource: here\nprices: {v: {m: {input: 4, cached_input: 0.4, cache_write: 5, cache_write_1h: 8, output: 20}, n: {input: 4, cache_write: 5, output: 20}}}\n"))
		Expect(err).NotTo(HaveOccurred())
		u := conversation.Usage{InputTokens: 1_000_000, CacheReadTokens: 300_000, CacheWriteTokens: 500_000}
		for model, want := range map[string][2]float64{"m": {0.8 + 0.12 + 2.5, 0.8 + 0.12 + 4}, "n": {0.8 + 1.2 + 2.5, 0.8 + 1.2 + 2.5}} {
			price, ok := p.Price("v", model)
			Expect(ok).To(BeTrue())
			Expect(price.For(llm.Settings{CacheTTL: "5m"}).Cost(u).Float()).To(BeNumerically("~", want[0], 1e-9), model)
			Expect(price.For(llm.Settings{CacheTTL: "1h"}).Cost(u).Float()).To(BeNumerically("~", want[1], 1e-9), model)
			Expect(price.For(llm.Settings{CacheMessages: true})).To(Equal(price))
		}
	})
	It("is known of every model of Anthropic, for an hour too", func() {
		p, err := llm.DefaultPrices()
		Expect(err).NotTo(HaveOccurred())
		seen := 0
		for _, m := range p.Models() {
			if price, ok := p.Price(m.Vendor, m.Model); ok && m.Vendor == "anthropic" {
				seen++
				Expect(price.CachedInput).To(BeNumerically("<", price.Input), m.Model)
				Expect(price.CacheWrite).To(Equal(price.Input*5/4), m.Model)
				Expect(price.LongCacheWrite).To(Equal(2*price.Input), m.Model)
			}
		}
		Expect(seen).To(BeNumerically(">", 10))
	})
})
