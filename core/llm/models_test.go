package llm_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
)

var _ = Describe("the table of models", func() {
	It("that comes with the program names every priced model, and known models by size and ability", func() {
		p, err := llm.DefaultPrices()
		Expect(err).NotTo(HaveOccurred())
		info, ok := p.Model("openai", "gpt-4o-mini-2024-07-18")
		Expect(ok).To(BeTrue())
		Expect(info).To(Equal(llm.ModelInfo{Context: 128000, Output: 16384, Abilities: []string{"tools", "images", "documents"}}))
		list := p.Models()
		priced := 0
		for i, m := range list {
			if i > 0 {
				Expect(list[i-1].Vendor+" "+list[i-1].Model < m.Vendor+" "+m.Model).To(BeTrue(), "sorted, each once: %v", m)
			}
			if _, ok := p.Price(m.Vendor, m.Model); ok {
				priced++
			}
			for _, word := range m.Abilities {
				Expect(llm.ModelAbilities).To(ContainElement(word))
			}
		}
		Expect(priced).To(BeNumerically(">", 30))
		Expect(len(list)).To(BeNumerically(">", priced), "a model may be known and its price not")
	})
	It("is laid over, and unknown takes away", func() {
		base, err := llm.DefaultPrices()
		Expect(err).NotTo(HaveOccurred())
		own, err := llm.LoadPrices("p.yaml", []byte("version: 1\ndate: 2026-01-02\nsource: here\nprices: {openai: {gpt-4o: unknown}}\nmodels: {openai: {gpt-4o: unknown, new: {context: 5, can: [tools]}}}\n"))
		Expect(err).NotTo(HaveOccurred())
		merged := base.Merge(own)
		_, ok := merged.Price("openai", "gpt-4o")
		Expect(ok).To(BeFalse())
		info, _ := merged.Model("openai", "gpt-4o")
		Expect(info).To(BeZero())
		info, _ = merged.Model("openai", "new")
		Expect(info).To(Equal(llm.ModelInfo{Context: 5, Abilities: []string{"tools"}}))
		_, ok = base.Price("openai", "gpt-4o")
		Expect(ok).To(BeTrue(), "the built-in table stays as it is")
	})
	DescribeTable("says what is wrong", func(models, message string) {
		_, err := llm.LoadPrices("p.yaml", []byte("version: 1\ndate: 2026-01-02\nsource: here\nprices: {}\nmodels: {v: {m: "+models+"}}\n"))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Render(err)).To(ContainSubstring(message))
	},
		Entry(nil, "{context: 0}", "p.yaml:5:27: models.v.m.context: want a number of tokens"),
		Entry(nil, "{can: [tool]}", `unknown ability "tool"`),
		Entry(nil, "{can: [tool]}", `did you mean "tools"?`),
		Entry(nil, "{size: 1}", "size"),
		Entry(nil, "unkown", "models.v.m"),
	)
})
