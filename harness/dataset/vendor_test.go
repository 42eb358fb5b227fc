package dataset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/providers/anthropic"
)

var _ = Describe("settings that only some vendors have", func() {
	read := func(provider string) (*dataset.Dataset, error) {
		dir := project(map[string]string{"d.yaml": "version: 1\nname: d\nagent: {task: {description: x}}\nproviders:\n  - " + provider + "\nitems: [{id: a, input: hi, checks: [{contains: x}]}]\n"})
		options := known
		options.Dir, options.Vendors = dir, append([]string{"anthropic"}, known.Vendors...)
		return dataset.Open("d.yaml", options)
	}

	It("are read", func() {
		budget := anthropic.MinBudget
		for _, version := range anthropic.Versions {
			d, err := read(`{provider: anthropic, model: claude-haiku-4-5, api_version: "` + version + `", max_tokens: 4000, thinking: {budget_tokens: 1024, effort: low}}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Providers[0].APIVersion).To(Equal(version))
			Expect(d.Providers[0].Settings.Thinking).To(Equal(llm.Thinking{BudgetTokens: &budget, Effort: "low"}))
		}
	})

	DescribeTable("are refused with their place", func(settings, place, message string) {
		_, err := read("{provider: " + settings + "}")
		Expect(err).To(MatchError(And(ContainSubstring("d.yaml:5:"+place), ContainSubstring(message))))
	},
		Entry(nil, `anthropic, model: m, api_version: "2026-10-20"`, "50", `unknown api_version "2026-10-20"`),
		Entry(nil, `openai, model: m, api_version: "2026-10-21"`, "47", `provider "openai" has no api_version`),
		Entry(nil, `openai, model: m, thinking: {budget_tokens: 2000}`, "44", `openai has no setting thinking`),
		Entry(nil, `compat, model: m, thinking: {effort: low}`, "44", `compat has no setting thinking`),
		Entry(nil, `anthropic, model: m, thinking: {budget_tokens: 1023}`, "63", "want a whole number from 1024"),
		Entry(nil, `anthropic, model: m, max_tokens: 2000, thinking: {budget_tokens: 2000}`, "81", "a budget of 2000 leaves nothing of max_tokens 2000"),
		Entry(nil, `anthropic, model: m, thinking: {effort: most}`, "56", `unknown value "most"`),
		Entry(nil, `anthropic, model: m, thinking: {level: low}`, "55", `anthropic has no thinking.level`),
		Entry(nil, `anthropic, model: m, reasoning_effort: low, thinking: {effort: low}`, "55", "exclude each other"),
	)
})
