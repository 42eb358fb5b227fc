//go:build unix

package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const threeColumns = `
version: 1
name: sides
agent: {task: {description: Answer.}}
providers: [openai:gpt-4o-mini, anthropic:claude-haiku-4-5, gemini:gemini-2.5-flash]
items:
  - {id: wrong-everywhere, input: First?, checks: [{contains: nowhere}]}
  - {id: right, input: Second?, checks: [{contains: an answer}]}
  - {id: right-on-one, input: Third?, checks: [{contains: ninety}]}
  - {id: right-too, input: Fourth?, checks: [{contains: an answer}]}
gates: {pass_rate: ">= 0.5"}
`

const threeColumnsScript = `
version: 1
name: sides
conversations:
  - match: {user_contains: Third, model: gpt-4o-mini}
    steps: [{text: ninety}]
default: {steps: [{text: an answer}]}
`

var _ = Describe("several providers side by side", func() {
	prepare := func() (p *project, other emulator, flags []string) {
		GinkgoHelper()
		p = emptyProject()
		p.write("d.yaml", threeColumns)
		p.write("s.yaml", threeColumnsScript)
		e := p.emulate("s.yaml")
		other = p.emulate("s.yaml")
		return p, other, []string{"--recorded-at", recordedAt, e.upstream(), "--upstream=gemini=http://" + e.address, "--upstream=anthropic=http://" + other.address}
	}
	statuses := func(p *project) map[string]map[string]string {
		out := map[string]map[string]string{}
		for _, r := range p.results(p.last()) {
			if out[r.Provider] == nil {
				out[r.Provider] = map[string]string{}
			}
			out[r.Provider][r.Item] = r.Status
		}
		return out
	}
	answered := map[string]string{"wrong-everywhere": "fail", "right": "pass", "right-on-one": "fail", "right-too": "pass"}
	better := map[string]string{"wrong-everywhere": "fail", "right": "pass", "right-on-one": "pass", "right-too": "pass"}

	It("show the items first on which they disagree, and the same numbers in every form", func() {
		p, _, flags := prepare()
		p.succeed(append([]string{"record", "d.yaml"}, flags...)...)
		o := p.succeed("run", "d.yaml", "--format", "markdown", "--format", "json")
		Expect(statuses(p)).To(Equal(map[string]map[string]string{"openai:gpt-4o-mini": better, "anthropic:claude-haiku-4-5": answered, "gemini:gemini-2.5-flash": answered}))
		first, then := strings.Index(o.stdout, "\n right-on-one "), strings.Index(o.stdout, "\n wrong-everywhere ")
		Expect(first).To(And(BeNumerically(">", 0), BeNumerically("<", then)), "%s", o)
		metrics := []string{"pass_rate", "score", "cost_usd", "p50_latency", "p95_latency", "tokens", "tool_calls", "invariant_violations"}
		for _, metric := range metrics {
			Expect(o.stdout).To(MatchRegexp(`\n ` + metric + ` +│ \S.* │ \S.* │ \S`))
		}

		run := p.last()
		text := p.read(run + "/reports/report.md")
		Expect(text).To(ContainSubstring("| metric | `openai:gpt-4o-mini` | `anthropic:claude-haiku-4-5` | `gemini:gemini-2.5-flash` |"))
		Expect(text).To(ContainSubstring("| pass_rate | 0.75 | 0.5 | 0.5 |"))
		Expect(text).To(ContainSubstring("- `right-on-one`: 1/1 on `openai:gpt-4o-mini`, 0/1 on `anthropic:claude-haiku-4-5`, 0/1 on `gemini:gemini-2.5-flash`"))
		var report struct{ Disagree []struct{ Item string } }
		Expect(json.Unmarshal([]byte(p.read(run+"/reports/report.json")), &report)).To(Succeed())
		Expect(report.Disagree).To(HaveExactElements(HaveField("Item", "right-on-one")))

		compared := p.succeed("compare", "latest")
		Expect(compared.stdout).To(MatchRegexp(`\nmetric +openai:gpt-4o-mini +anthropic:claude-haiku-4-5 +gemini:gemini-2.5-flash\n`))
		marked := p.succeed("compare", "latest", "--format", "markdown").stdout
		for _, metric := range metrics {
			Expect(compared.stdout).To(MatchRegexp(`(?m)^` + metric + `( +\S.*){3}$`))
			Expect(marked).To(MatchRegexp(`(?m)^\| ` + metric + `( \| \S[^|]*){3} \|$`))
		}
		Expect(compared.stdout).To(ContainSubstring("worse: right-on-one"))
		var d struct {
			Columns []struct {
				Provider string
				Metrics  map[string]struct{ Value *float64 }
			}
		}
		Expect(json.Unmarshal([]byte(p.succeed("compare", "latest", "--json").stdout), &d)).To(Succeed())
		Expect(d.Columns).To(HaveLen(3))
		Expect(*d.Columns[0].Metrics["pass_rate"].Value).To(Equal(0.75))
	})

	It("leave the columns as they are beside one whose provider is down, which is filled with errors", func() {
		p, other, flags := prepare()
		Expect(other.process.cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(p.end(other.process).code).To(BeElementOf(0, 130))
		o := p.expect(5, append([]string{"record", "d.yaml", "--timeout", "3s"}, flags...)...)
		down := map[string]string{}
		for item := range answered {
			down[item] = "error"
		}
		Expect(statuses(p)).To(Equal(map[string]map[string]string{"openai:gpt-4o-mini": better, "anthropic:claude-haiku-4-5": down, "gemini:gemini-2.5-flash": answered}))
		for _, r := range p.results(p.last()) {
			if r.Status == "error" {
				Expect(r.Error.Kind).To(Equal("provider"))
			}
		}
		Expect(o.stdout).To(MatchRegexp(`\n results +│ 3 pass, 1 fail +│ 4 error +│ 2 pass, 2 fail`))
		Expect(o.stdout).To(MatchRegexp(`\n pass_rate +│ 0.75 .*│ - +│ 0.5 `))
		Expect(strings.Index(o.stdout, "\n right-on-one ")).To(And(BeNumerically(">", 0), BeNumerically("<", strings.Index(o.stdout, "\n wrong-everywhere "))))
		Expect(o.stdout).To(ContainSubstring("4 items error: "))
		recorded := p.files("fixtures/cassettes/sides")
		Expect(recorded).To(HaveLen(8), "the others are recorded")
		for name := range recorded {
			Expect(name).NotTo(HavePrefix("anthropic"))
		}
		compared := p.succeed("compare", "latest").stdout
		Expect(compared).To(MatchRegexp(`(?m)^pass_rate +0.75 +- +0.5$`))
		Expect(slices.Contains(strings.Split(compared, "\n"), "openai:gpt-4o-mini -> gemini:gemini-2.5-flash")).To(BeTrue(), compared)
	})
})
