//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// ward is a dataset whose answers pass or fail by item, repeat and wording, as a check in the shell decides: the emulator always answers alike, so that what comes and goes comes from the check.
const ward = `version: 1
name: ward
agent: agent.yaml
providers: [openai:gpt-4o-mini]
defaults:
  checks: [{command: [./verdict.sh], name: verdict}]
items: ward.jsonl
gates: %s
`

// wardProject makes a project with n items. verdict is the body of a shell script that sees $item, $repeat and $wording and ends with "pass" or "fail".
func wardProject(n int, gates, verdict string) *project {
	GinkgoHelper()
	p := emptyProject()
	Expect(os.RemoveAll(p.path(".git"))).To(Succeed())
	p.git("init", "--quiet")
	p.write(".gitignore", ".echoeval/\n")
	p.write("ward.yaml", fmt.Sprintf(ward, gates))
	p.write("agent.yaml", "task: {description: Answer kindly.}\n")
	var items strings.Builder
	for i := range n {
		fmt.Fprintf(&items, "{\"id\":\"visit-%03d\",\"input\":\"Move visit %03d.\",\"tags\":[\"t%d\"]}\n", i, i, i%2)
	}
	p.write("ward.jsonl", items.String())
	p.write("verdict.sh", `#!/bin/sh
case=$(cat)
repeat=$(printf '%s' "$case" | sed 's/.*"repeat":\([0-9]*\).*/\1/')
item=$(printf '%s' "$case" | sed 's/.*"id":"visit-0*\([0-9][0-9]*\)".*/\1/')
wording=$(printf '%s' "$case" | sed 's/.*"output":"\([a-z]*\).*/\1/')
`+verdict+`
if [ "$verdict" = pass ]; then echo '{"score":1,"reason":"it may"}'; else echo '{"score":0,"reason":"it may not"}'; fi
`)
	Expect(os.Chmod(p.path("verdict.sh"), 0o755)).To(Succeed())
	p.write("emulator.yaml", "version: 1\nname: ward\nconversations:\n  - match: {user_regex: \"^Move visit [0-9]+\\\\.$\"}\n    steps:\n      - {text: \"moved: {{last_user}}\", latency: 20ms, ttft: 10ms}\n")
	return p
}

// numbers is what the specs read of a summary beside its counts.
type numbers struct {
	Providers []struct {
		ID      string
		Metrics map[string]struct {
			Value *float64
			N     int
		}
		Flaky, Tolerated struct {
			Count int
			Items []struct {
				Item       string
				Passed, Of int
			}
		}
	}
	Gates []struct {
		Metric, Provider, Status string
		Where, Bound             *string
		Value                    *float64
	}
	Regression struct {
		Comparisons []struct {
			Provider, Metric, Status, Method string
			Pairs                            int
			Difference, Low, High            *float64
			MaxDrop                          *float64 `json:"max_drop"`
			ItemsNeeded                      *int     `json:"items_needed"`
		}
	}
	Pairs []struct {
		A, B, Method string
		Pairs        int
		PAdjusted    *float64 `json:"p_adjusted"`
	}
	Power []struct {
		Metric         string
		DetectableDrop *float64 `json:"detectable_drop"`
	}
}

func (p *project) numbers() numbers {
	GinkgoHelper()
	var n numbers
	Expect(json.Unmarshal([]byte(p.read(p.last()+"/summary.json")), &n)).To(Succeed())
	return n
}

// perItem counts the lines of each item.
func perItem(lines []result) map[string]int {
	out := map[string]int{}
	for _, l := range lines {
		out[l.Item]++
	}
	return out
}

var _ = Describe("a prompt change in a pull request", func() {
	It("is found stale, recorded anew, compared with the baseline, shown and accepted", func() {
		p := committedProject()
		p.git("branch", "-m", "main")
		p.write(".gitignore", ".echoeval/\n")
		p.edit(quickstart, "pass_rate: \"== 1\"", "pass_rate: \">= 0.9\"\n  regression: {metric: score, max_drop: 0.02}")
		o := p.succeed("run", quickstart)
		Expect(o.stdout).To(ContainSubstring("there is no " + referenceFile + ", so nothing is compared"))
		Expect(o.stdout).To(ContainSubstring("regression inconclusive"), "without a baseline it is open, visibly")
		p.succeed("baseline", "accept", "latest")
		o = p.succeed("run", quickstart)
		Expect(o.stdout).To(ContainSubstring("all gates hold"), "the recordings are those of the baseline")
		Expect(o.stdout).To(MatchRegexp(`score of openai:gpt-4o-mini: .*over 12 items: not worse`))
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "baseline")

		p.git("checkout", "--quiet", "-b", "change")
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		o = p.expect(4, "run", quickstart)
		Expect(o.stdout).To(ContainSubstring("12 items stale: system-prompt"))
		o = p.expect(4, "cassette", "verify", quickstart)
		Expect(o.stdout).To(MatchRegexp(`0 fresh, 24 stale, 0 missing, 0 orphaned`))
		Expect(o.stdout).To(MatchRegexp(`re-recording: 24 cassettes, about \$0\.0\d+, \d+ s`))
		p.edit("datasets/emulator/quickstart.yaml", price, wrongPrice)
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.succeed("record", quickstart, "--stale", e.upstream(), "--recorded-at", recordedAt, "--quiet")

		o = p.succeed("run", quickstart, "--format", "markdown")
		const said = `score of openai:gpt-4o-mini: 1 -> 0\.983, -1\.7 points \[-\d+\.\d, \+\d+\.\d\] over 12 items: inconclusive; [\d,]+ items would settle it`
		Expect(o.stdout).To(MatchRegexp(said))
		Expect(o.stdout).To(And(ContainSubstring("worse: price-of-a-book"), ContainSubstring("regression inconclusive"), MatchRegexp(`warning: .*score of openai:gpt-4o-mini is inconclusive.*\(regression-inconclusive\)`)))
		Expect(p.read(p.last() + "/reports/report.md")).To(And(MatchRegexp("❔ `score of openai:gpt-4o-mini: .*inconclusive; [\\d,]+ items would settle it`"), ContainSubstring("### Worse: 2")))
		o = p.expect(6, "run", quickstart, "--set", "gates.regression={metric: score, max_drop: 0.02, on_inconclusive: fail}")
		Expect(o.stdout).To(ContainSubstring("inconclusive: score of openai:gpt-4o-mini is inconclusive"))
		Expect(p.summary(p.last()).Verdict.Reasons[0].Kind).To(Equal("inconclusive"))
		p.succeed("run", quickstart, "--fail-on", "checks", "--set", "gates.regression={metric: score, max_drop: 0.02, on_inconclusive: fail}")
		Expect(p.succeed("cassette", "diff", "main", quickstart).stdout).To(And(ContainSubstring("- answer  "+price), ContainSubstring("+ answer  "+wrongPrice)))
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "quickstart")
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "another prompt")

		o = p.succeed("run", quickstart, "--baseline", "git:main", "--format", "markdown")
		Expect(o.stdout).To(And(ContainSubstring("this change edits its own baseline: 2 verdicts moved"), ContainSubstring("worse: price-of-a-book"), MatchRegexp(said)))
		Expect(*p.regression().Baseline.EditedHere).To(BeTrue())
	})
})

var _ = Describe("a flaky test", func() {
	// visit-001 comes and goes, visit-002 always fails, the others pass.
	const flaky = `verdict=pass
case $item-$repeat in 1-1|1-3|2-*) verdict=fail;; esac`

	It("is repeated only where its verdict is open, and stands apart from failures", func() {
		p := wardProject(6, `{pass_rate: ">= 0.5"}`, flaky)
		e := p.emulate("emulator.yaml")
		o := p.succeed("run", "ward.yaml", "--repeat", "1..5", "--mode", "record", "--cassettes", "eval-cassettes", e.upstream(), "--recorded-at", recordedAt)
		Expect(perItem(p.results(p.last()))).To(Equal(map[string]int{"visit-000": 1, "visit-001": 5, "visit-002": 5, "visit-003": 1, "visit-004": 1, "visit-005": 1}))
		Expect(o.stdout).To(ContainSubstring("flaky: visit-001 3/5 on openai:gpt-4o-mini, apart from failures"))
		table, _, _ := strings.Cut(o.stdout, " total ")
		Expect(table).To(And(ContainSubstring("visit-002"), Not(ContainSubstring("visit-001"))), "only what always fails is a failure")
		Expect(p.succeed("show", "latest").stdout).To(ContainSubstring("flaky: visit-001 3/5 on openai:gpt-4o-mini"))
		n := p.numbers()
		Expect(*n.Providers[0].Metrics["pass_rate"].Value).To(BeNumerically("~", 4.0/6, 1e-6), "the first repeats alone count")
		recorded := p.read(p.last() + "/results.jsonl")

		args := []string{"run", "ward.yaml", "--repeat", "1..5", "--cassettes", "eval-cassettes"}
		p.succeed(append(args, "--format", "markdown", "--format", "json")...)
		Expect(perItem(p.results(p.last()))).To(Equal(map[string]int{"visit-000": 1, "visit-001": 5, "visit-002": 5, "visit-003": 1, "visit-004": 1, "visit-005": 1}), "%s", recorded)
		Expect(p.read(p.last() + "/reports/report.md")).To(And(ContainSubstring("- flaky: `visit-001` 3/5 on `openai:gpt-4o-mini`"), ContainSubstring("### Failed: 5")))
		Expect(p.read(p.last() + "/reports/report.json")).To(ContainSubstring(`"flaky":{"count":1,"items":[{"item":"visit-001","passed":3,"of":5}]}`))
		whole := p.identity(p.last())

		// As many workers as there are, in two parts, and cut off and resumed: the same bytes.
		p.succeed(append(args, "--concurrency", "1", "--format", "markdown", "--format", "json")...)
		Expect(p.identity(p.last())).To(Equal(whole))
		alone := p.last()
		p.succeed(append(args, "--shard", "1/2")...)
		first := p.last()
		p.succeed(append(args, "--shard", "2/2")...)
		second := p.last()
		p.succeed("merge", first, second)
		for _, file := range []string{"/results.jsonl", "/summary.json", "/traces/001.jsonl"} {
			Expect(p.read(p.last()+file)).To(Equal(p.read(alone+file)), file)
		}
	})

	It("has the same bytes after an interruption in the middle of its repeats", func() {
		p := wardProject(6, `{pass_rate: ">= 0.5"}`, flaky+`
[ "$item-$repeat" = 2-3 ] && [ ! -e went-on ] && { touch went-on; kill -INT $PPID; }`)
		p.write("went-on", "")
		e := p.emulate("emulator.yaml")
		args := []string{"run", "ward.yaml", "--repeat", "1..5"}
		p.succeed(append(args, "--mode", "record", e.upstream(), "--recorded-at", recordedAt)...)
		p.succeed(args...)
		whole := p.identity(p.last())
		p.remove("went-on")
		o := p.expect(130, args...)
		Expect(p.results(p.last())).To(ContainElement(And(HaveField("Status", "not_run"), HaveField("Repeat", BeNumerically(">", 2)))))
		Expect(o.all()).To(ContainSubstring("--resume"))
		p.succeed("run", "--resume", "latest")
		Expect(p.identity(p.last())).To(Equal(whole))
	})

	It("says what a budget has left open", func() {
		p := wardProject(4, `{pass_rate: ">= 0.5"}`, flaky)
		e := p.emulate("emulator.yaml")
		p.edit("ward.yaml", "providers: [openai:gpt-4o-mini]", "providers: [{id: dear, provider: openai, model: gpt-4o-mini, max_tokens: 100, price: {input: 0, output: 1000000}}]")
		args := []string{"run", "ward.yaml", "--repeat", "1..5", "--mode", "record", e.upstream(), "--concurrency", "1"}
		p.succeed(append(args, "--cassettes", "first", "--max-cost", "10000")...)
		cost := *p.results(p.last())[0].CostUSD
		Expect(cost).To(BeNumerically(">", 1))
		// A call reserves 100 USD and is settled by what it took: there is enough for eight, the first repeats and two more of those that failed.
		o := p.succeed(append(args, "--max-cost", fmt.Sprint(100+7*cost))...)
		Expect(o.stdout).To(ContainSubstring("warning: the budget ended before 2 items whose verdict is open were repeated further (repeats-cut)"))
		Expect(perItem(p.results(p.last()))).To(Equal(map[string]int{"visit-000": 1, "visit-001": 3, "visit-002": 3, "visit-003": 1}))

		// Where the item's own verdict is open it was not judged, which no run passes over.
		p.edit("ward.yaml", "gates:", "overrides: [{match: \"id == 'visit-001'\", pass_if: \">= 0.6\"}]\ngates:")
		o = p.expect(5, append(args, "--cassettes", "second", "--max-cost", fmt.Sprint(100+7*cost))...)
		lines := p.results(p.last())
		Expect(lines).To(ContainElement(And(HaveField("Item", "visit-001"), HaveField("Repeat", 4), HaveField("Status", "not_run"))))
		Expect(p.numbers().Providers[0].Metrics["pass_rate"].N).To(Equal(3))
	})

	It("is accepted openly by pass_if, and its verdict is that of all repeats", func() {
		p := wardProject(6, `{pass_rate: ">= 0.8"}`, flaky)
		p.edit("ward.yaml", "gates:", "overrides:\n  - {match: \"id == 'visit-001'\", pass_if: \">= 0.6\"}\n  - {match: \"id == 'visit-002'\", quarantine: {owner: ana, until: 2099-01-31, reason: \"lookup race\"}}\n  - {match: \"id == 'visit-003'\", pass_if: \">= 0.6\"}\ngates:")
		e := p.emulate("emulator.yaml")
		o := p.succeed("run", "ward.yaml", "--repeat", "1..5", "--mode", "record", e.upstream())
		// Three passes of five are enough; what is certain is not repeated.
		Expect(perItem(p.results(p.last()))).To(Equal(map[string]int{"visit-000": 1, "visit-001": 5, "visit-002": 5, "visit-003": 3, "visit-004": 1, "visit-005": 1}))
		Expect(o.stdout).To(And(ContainSubstring("tolerated: visit-001 3/5 on openai:gpt-4o-mini, by their pass_if"), Not(ContainSubstring("flaky:")), ContainSubstring("quarantined: visit-002")))
		Expect(*p.numbers().Providers[0].Metrics["pass_rate"].Value).To(BeNumerically("==", 1))
		o = p.expect(2, "run", "ward.yaml", "--repeat", "1..5", "--set", `gates.pass_hat_3=">= 0.9"`)
		Expect(o.stderr).To(ContainSubstring("gate pass_hat_3 needs 3 repeats of an item"), "what is added for the outcome does not count")
	})

	It("is refused where the numbers make no sense", func() {
		p := wardProject(2, `{pass_rate: ">= 0"}`, flaky)
		for _, repeat := range []string{"0", "5..1", "2..2", "1..", "..5", "1..5..9", "-1", "1..65", "x"} {
			Expect(p.expect(2, "run", "ward.yaml", "--repeat="+repeat).stderr).To(ContainSubstring("--repeat "+repeat), repeat)
		}
		p.edit("ward.yaml", `pass_rate: ">= 0"`, `pass_hat_3: ">= 0.5"`)
		o := p.expect(2, "run", "ward.yaml")
		Expect(o.stderr).To(And(MatchRegexp(`ward\.yaml:\d+:\d+: gate pass_hat_3 needs 3 repeats of an item, and none has more than 1`), ContainSubstring("--repeat 3")))
	})
})

var _ = Describe("a regression that is real but small", func() {
	It("is open until there is enough to see it by, and then fails the run", func() {
		// Before, every fifth item fails once in five. The new wording lets a third of all items fail twice more.
		p := wardProject(60, `{pass_rate: ">= 0.5", regression: {metric: pass_rate, max_drop: 0.01}}`, `verdict=pass
[ $((item % 5)) = 0 ] && [ "$repeat" = 2 ] && verdict=fail
[ "$wording" = shifted ] && [ $((item % 3)) = 0 ] && [ "$repeat" -ge 4 ] && verdict=fail
[ "$wording" = pushed ] && [ $((item % 20)) = 1 ] && [ "$repeat" -ge 4 ] && verdict=fail`)
		record := func() {
			GinkgoHelper()
			e := p.emulate("emulator.yaml")
			p.run("record", "ward.yaml", "--repeat", "5", e.upstream(), "--recorded-at", recordedAt, "--quiet", "--fail-on", "none")
		}
		record()
		p.succeed("run", "ward.yaml", "--repeat", "5")
		p.succeed("baseline", "accept", "latest")
		p.succeed("baseline", "accept", "latest", "--name", "release")
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "first")
		p.git("branch", "-m", "main")
		o := p.succeed("run", "ward.yaml", "--repeat", "5", "--baseline", "git:main")
		Expect(o.stdout).To(ContainSubstring("over 60 items: not worse"))

		p.edit("emulator.yaml", "moved:", "pushed:")
		record()
		o = p.succeed("run", "ward.yaml", "--repeat", "5", "--baseline", "git:main")
		Expect(o.stdout).To(MatchRegexp(`pass_rate of openai:gpt-4o-mini: 0\.96 -> 0\.94, -2\.0 points \[-\d\.\d, \+\d\.\d\] over 60 items: inconclusive; \d+ items would settle it`))
		c := p.numbers().Regression.Comparisons[0]
		Expect(c.Method).To(Equal("sign-flip"))
		Expect(*c.ItemsNeeded).To(BeNumerically(">", 60))

		p.edit("emulator.yaml", "pushed:", "shifted:")
		record()
		o = p.expect(1, "run", "ward.yaml", "--repeat", "5", "--baseline", "release")
		Expect(o.stdout).To(MatchRegexp(`failed: pass_rate of openai:gpt-4o-mini regressed: -1\d\.\d points \[-\d+\.\d, -\d\.\d\] over 60 items, max_drop 1\.0 points`))
		c = p.numbers().Regression.Comparisons[0]
		Expect(c.Status).To(Equal("regressed"))
		Expect(*c.High).To(BeNumerically("<", -0.01))
		Expect(p.summary(p.last()).Verdict.Reasons[0].Kind).To(Equal("regression"))
		p.succeed("run", "ward.yaml", "--repeat", "5", "--baseline", "release", "--fail-on", "checks")
		o = p.expect(1, "compare", "baseline:ward@release", "latest", "--gate")
		Expect(o.stdout).To(MatchRegexp(`pass_rate: -1\d\.\d points .*: regressed`))
		p.succeed("compare", "baseline:ward@release", "latest", "--gate", "--max-drop", "0.5")
		p.expect(2, "compare", "baseline:ward@release", "latest", "--gate", "--metric", "cost_usd")
	})
})

var _ = Describe("several providers", func() {
	It("are planned with what they can see, and compared by item", func() {
		p := exampleProject()
		p.refuseNothing()
		p.edit("datasets/emulator/quickstart.yaml", "models: [gpt-4o-mini,", "models: [gpt-4.1, gpt-4o-mini,")
		three := []string{"--provider", "openai:gpt-4o-mini", "--provider", "openai:gpt-4.1-mini", "--provider", "openai:gpt-4.1", "--cassettes", "eval-cassettes", "--set", "gates.pass_rate=null", "--set", "gates.cost_usd=null"}
		o := p.succeed(append([]string{"record", quickstart, "--repeat", "5", "--max-cost", "20", "--dry-run"}, three...)...)
		// See stats.DetectableDrop: spread 2 * 1/4 / 5, 12 items of 5 repeats.
		Expect(o.stdout).To(And(HavePrefix("quickstart: 12 items, 180 runs in mode record, "), HaveSuffix(", sees 31 points if half of the items pass\n")))
		o = p.succeed(append([]string{"run", quickstart, "--repeat", "1..5", "--dry-run"}, three...)...)
		Expect(o.stdout).To(ContainSubstring("12 items, 36 to 180 runs in mode replay"))
		e := p.emulate("datasets/emulator/quickstart.yaml")
		o = p.succeed(append([]string{"record", quickstart, "--repeat", "2", "--quiet", e.upstream()}, three...)...)
		Expect(o.stdout).To(MatchRegexp(`sees a drop of +│ \d+ points`))
		n := p.numbers()
		Expect(n.Pairs).To(HaveLen(3))
		for _, pair := range n.Pairs {
			Expect(pair.Pairs).To(Equal(12))
			Expect(*pair.PAdjusted).To(BeNumerically("==", 1))
		}
		o = p.succeed("compare", "latest")
		Expect(strings.Count(o.stdout, "p (Holm)")).To(Equal(3))
		Expect(o.stdout).To(MatchRegexp(`openai:gpt-4o-mini -> openai:gpt-4\.1\n`))
		var document struct {
			Comparisons []struct {
				Metrics []struct {
					Metric    string
					PAdjusted *float64 `json:"p_adjusted"`
					Low       *float64
				}
				Effects []struct{ Metric string }
			}
		}
		Expect(json.Unmarshal([]byte(p.succeed("compare", "latest", "--json").stdout), &document)).To(Succeed())
		Expect(document.Comparisons).To(HaveLen(3))
		cost := document.Comparisons[0].Metrics[2]
		Expect(cost.Metric).To(Equal("cost_usd_per_item"))
		Expect(*cost.PAdjusted).To(BeNumerically("<", 0.05), "the models have different prices")
		Expect(document.Comparisons[0].Effects).To(ContainElement(HaveField("Metric", "cost_usd_per_item")))
	})
})

var _ = Describe("gates on parts of a run", func() {
	It("bound the items with a tag and the verdicts of a check", func() {
		p := wardProject(6, `[{pass_rate: ">= 0.6", tag: t0}, {pass_rate: ">= 0.9", tag: t1}, {pass_rate: ">= 0.9", check: verdict}, {pass_rate: null}]`, "verdict=pass\n[ $item = 3 ] && verdict=fail")
		e := p.emulate("emulator.yaml")
		o := p.expect(1, "record", "ward.yaml", e.upstream())
		Expect(o.stdout).To(And(ContainSubstring("gate pass_rate of openai:gpt-4o-mini (tag t1): 0.667, bound >= 0.9: failed"), ContainSubstring("gate pass_rate of openai:gpt-4o-mini (check verdict): 0.833, bound >= 0.9: failed"), Not(ContainSubstring("(tag t0)"))))
		statuses := map[string]string{}
		for _, g := range p.numbers().Gates {
			if g.Where != nil {
				statuses[*g.Where] = g.Status
			}
		}
		Expect(statuses).To(Equal(map[string]string{"tag t0": "holds", "tag t1": "failed", "check verdict": "failed"}))
		// What was not selected is said, and fails nothing.
		o = p.succeed("run", "ward.yaml", "--item", "visit-000")
		Expect(o.stdout).To(ContainSubstring("gate pass_rate of openai:gpt-4o-mini (tag t1): no item that it looks at was selected"))
		for before, message := range map[string]string{"tag: t0": "a gate looks at tag nobody, and no item has it", "check: verdict": "a gate looks at check nobody, and no item has it"} {
			text := p.read("ward.yaml")
			key, _, _ := strings.Cut(before, ":")
			p.edit("ward.yaml", before, key+": nobody")
			Expect(p.expect(2, "validate", "ward.yaml").stderr).To(ContainSubstring(message))
			Expect(p.expect(2, "run", "ward.yaml").stderr).To(And(ContainSubstring(message), MatchRegexp(`ward\.yaml:\d+:\d+`)))
			p.write("ward.yaml", text)
		}
	})
})
