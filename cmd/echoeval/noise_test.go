//go:build unix

package main_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a regression gate on a part", func() {
	It("fails where that part is worse, though the whole is within its bound", func() {
		p := wardProject(60, `[{pass_rate: ">= 0.5"}, {regression: {metric: score, max_drop: 0.6}}, {regression: {metric: pass_rate, max_drop: 0.05}, tag: t1}, {regression: {metric: score, max_drop: 0.05}, check: verdict}]`, `verdict=pass
[ "$wording" = pushed ] && [ $((item % 2)) = 1 ] && [ $((item % 3)) = 0 ] && verdict=fail`)
		record := func() {
			GinkgoHelper()
			e := p.emulate("emulator.yaml")
			p.run("record", "ward.yaml", "--repeat", "2", e.upstream(), "--recorded-at", recordedAt, "--quiet", "--fail-on", "none")
		}
		record()
		o := p.succeed("run", "ward.yaml", "--repeat", "2")
		Expect(o.stdout).To(ContainSubstring("score of openai:gpt-4o-mini (check verdict) cannot be compared"))
		p.succeed("baseline", "accept", "latest")
		Expect(p.read("baselines/ward.json")).To(ContainSubstring(`"checks":{"verdict":{"passed":[true,true],"scores":[1,1]}}`))
		o = p.succeed("run", "ward.yaml", "--repeat", "2")
		Expect(o.stdout).To(ContainSubstring("(tag t1): "))

		p.edit("emulator.yaml", "moved:", "pushed:")
		record()
		o = p.expect(1, "run", "ward.yaml", "--repeat", "2", "--format", "markdown", "--format", "html", "--format", "json")
		Expect(o.stdout).To(MatchRegexp(`pass_rate of openai:gpt-4o-mini \(tag t1\): 1 -> 0\.667, -33\.3 points .* over 30 items: regressed`))
		Expect(o.stdout).To(MatchRegexp(`score of openai:gpt-4o-mini \(check verdict\): 1 -> 0\.833, -16\.7 points .* over 60 items: (regressed|inconclusive)`))
		Expect(o.stdout).To(MatchRegexp(`score of openai:gpt-4o-mini: 1 -> 0\.833, .*: not worse`))
		Expect(p.read(p.last() + "/reports/report.md")).To(ContainSubstring("pass_rate (tag t1)"))
		Expect(p.read(p.last() + "/reports/report.html")).To(ContainSubstring("(tag t1)"))
		Expect(p.read(p.last() + "/reports/report.json")).To(ContainSubstring(`"tag":"t1"`))

		o = p.expect(2, "run", "ward.yaml", "--set", `gates=[{regression: {metric: score, max_drop: 0.1}, tag: t9}]`)
		Expect(o.stderr).To(And(ContainSubstring("a gate looks at tag t9, and no item has it")))
	})
})
