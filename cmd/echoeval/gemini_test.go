//go:build unix

package main_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	geminiColumn = "gemini:gemini-2.5-flash"
	geminiFolder = "fixtures/cassettes/quickstart/gemini_gemini-2.5-flash/"
	geminiKey    = "AIzaSyA1234567890abcdefghijklmnopqrstuv"
)

// geminiProject makes the second column of the example one of Gemini, with the same script.
func geminiProject() *project {
	GinkgoHelper()
	p := exampleProject()
	p.edit(quickstart, "  - {provider: gemini, model: gemini-2.5-flash, role: spare}\n", "")
	p.edit(quickstart, "openai:gpt-4.1-mini", geminiColumn)
	return p
}

// recordGemini records the column against the emulator.
func (p *project) recordGemini(flags ...string) outcome {
	GinkgoHelper()
	e := p.emulate("datasets/emulator/quickstart.yaml")
	return p.succeed(append([]string{"record", quickstart, "--provider", geminiColumn, "--upstream=gemini=http://" + e.address, "--recorded-at", recordedAt}, flags...)...)
}

var _ = Describe("a column of Gemini", func() {
	It("has the same conversation as one of OpenAI, recorded and replayed", func() {
		p := geminiProject()
		p.env = []string{"GEMINI_API_KEY=" + geminiKey, "GOOGLE_API_KEY=" + geminiKey + "x"}
		o := p.recordGemini()
		Expect(o.stderr).NotTo(ContainSubstring("GOOGLE_API_KEY"), "what the SDK logs is not shown")
		recorded := p.results(p.last())
		p.succeed("run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"pass": 24}))

		type talk struct {
			output    string
			calls     int
			steps     int
			retries   int
			latencyMS int
		}
		said := map[string]map[string]talk{}
		for _, r := range p.results(p.last()) {
			if said[r.Provider] == nil {
				said[r.Provider] = map[string]talk{}
			}
			said[r.Provider][r.Item] = talk{*r.Output, r.ToolCalls, r.Steps, r.Retries, *r.LatencyMS}
			Expect(r.CostUSD).NotTo(BeNil(), "the model's price is known")
		}
		Expect(slices.Sorted(maps.Keys(said))).To(Equal([]string{geminiColumn, "openai:gpt-4o-mini"}))
		Expect(said[geminiColumn]).To(HaveLen(12))
		Expect(said[geminiColumn]).To(Equal(said["openai:gpt-4o-mini"]))
		Expect(recorded).To(HaveLen(12))

		Expect(p.files("fixtures/cassettes/quickstart")).To(HaveKey(strings.TrimPrefix(geminiFolder, "fixtures/cassettes/quickstart/") + "mends-a-typo.yaml"))
		for name, text := range p.files("fixtures") {
			Expect(text).NotTo(ContainSubstring("AIza"), name)
		}
	})

	It("records the same bytes again", func() {
		p := geminiProject()
		p.recordGemini()
		before := p.files(geminiFolder)
		Expect(before).To(HaveLen(12))
		p.recordGemini()
		expectSameFiles(p.files(geminiFolder), before)
	})

	It("is stale where the prompt has changed, and shows what its recordings say", func() {
		p := geminiProject()
		p.recordGemini()
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		o := p.expect(4, "run", quickstart, "--provider", geminiColumn)
		drifts := p.drifts()
		Expect(drifts).To(HaveLen(12))
		for _, class := range drifts {
			Expect(class).To(Equal("system-prompt"))
		}
		Expect(p.results(p.last())[0].Cassette.Drift[0].Path).To(Equal("systemInstruction.parts[0].text"))
		Expect(o.all()).To(ContainSubstring("system-prompt"))
	})

	It("shows in the difference of two recordings what was called and said", func() {
		p := geminiProject()
		p.recordGemini()
		for name, text := range p.files("fixtures/cassettes") {
			p.write("before/"+name, text)
		}
		p.edit("datasets/emulator/quickstart.yaml", "Nine Winters costs 21.00 EUR.", "Nine Winters is 21.00 EUR.")
		p.recordGemini()
		o := p.succeed("cassette", "diff", "before", quickstart, "--json")
		var diff struct {
			Items []struct {
				Item, State   string
				Before, After struct {
					Tools  []string
					Answer string
				}
			}
		}
		Expect(json.Unmarshal([]byte(o.stdout), &diff)).To(Succeed(), "%s", o)
		Expect(diff.Items).To(HaveLen(1))
		i := diff.Items[0]
		Expect(i.Item + " " + i.State).To(Equal("price-of-a-book changed"))
		Expect(i.Before.Tools).To(Equal([]string{"read_file"}))
		Expect(i.Before.Answer).To(Equal("Nine Winters costs 21.00 EUR."))
		Expect(i.After.Answer).To(Equal("Nine Winters is 21.00 EUR."))
	})

	It("takes its key from either variable, and says which is missing", func() {
		p := geminiProject()
		o := p.expect(2, "run", quickstart, "--mode", "live", "--provider", geminiColumn, "--item", "total-copies")
		Expect(o.all()).To(ContainSubstring("GEMINI_API_KEY is not set"))
		p.env = []string{"GOOGLE_API_KEY=" + geminiKey}
		Expect(p.succeed("providers", "ls").stdout).To(MatchRegexp(`gemini +GOOGLE_API_KEY is set`))
		Expect(p.recordGemini().all()).NotTo(ContainSubstring("AIza"))
	})

	It("is set up by thinking, which is checked before anything runs", func() {
		p := geminiProject()
		for setting, want := range map[string]string{
			"thinking: {level: low, budget_tokens: 5}": "either a level or a budget",
			"thinking: {level: extreme}":               "minimal",
			"thinking: {budget_tokens: -7}":            "from -1",
			"thinking: {effort: low}":                  "gemini has no thinking.effort",
			"reasoning_effort: low":                    "no reasoning_effort",
		} {
			p.write("d.yaml", "version: 1\nname: d\nagent: datasets/agents/clerk.yaml\nproviders:\n  - {provider: gemini, model: gemini-2.5-flash, "+setting+"}\nitems: [{id: a, input: x}]\n")
			o := p.expect(2, "validate", "d.yaml")
			Expect(o.all()).To(ContainSubstring(want))
			Expect(o.all()).To(ContainSubstring("d.yaml:5:"))
		}
		p.write("d.yaml", "version: 1\nname: d\nagent: datasets/agents/clerk.yaml\nproviders:\n  - {provider: openai, model: gpt-5, thinking: {level: low}}\nitems: [{id: a, input: x}]\n")
		Expect(p.expect(2, "validate", "d.yaml").all()).To(ContainSubstring("openai has no setting thinking"))
	})
})
