//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const referenceFile = "baselines/quickstart.json"

// regression is what summary.json says of the baseline, read without the code that writes it.
type regression struct {
	Baseline struct {
		File, From string
		Hash       *string
		EditedHere *bool `json:"edited_here"`
	}
	Changed     []string
	Comparisons []struct {
		Provider, Metric, Status string
		Pairs                    int
		Before, Now, Difference  *float64
		P, Low                   *float64
	}
	Items struct {
		Worse, Better, New, Removed, Changed moved
		NewViolations                        moved `json:"new_violations"`
	}
}

type moved struct {
	Count int
	IDs   []string
}

func (p *project) regression() *regression {
	GinkgoHelper()
	var s struct {
		Regression *regression `json:"regression"`
	}
	Expect(json.Unmarshal([]byte(p.read(p.last()+"/summary.json")), &s)).To(Succeed())
	return s.Regression
}

// answers makes the emulator answer otherwise from now on and records the items anew.
func (p *project) answers(before, after string, items ...string) {
	GinkgoHelper()
	p.edit("datasets/emulator/quickstart.yaml", before, after)
	e := p.emulate("datasets/emulator/quickstart.yaml")
	args := []string{"record", quickstart, e.upstream(), "--fail-on", "none", "--quiet", "--recorded-at", recordedAt}
	for _, item := range items {
		args = append(args, "--item", item)
	}
	o := p.run(args...)
	Expect(o.code).To(Equal(0), "%s", o)
}

const (
	price      = "Nine Winters costs 21.00 EUR."
	wrongPrice = "Nine Winters costs 12.00 EUR."
	leak       = "Nine Winters costs 21.00 EUR at shop-7f3a91."
)

var _ = Describe("a baseline", func() {
	It("is made of a run, compared with unasked, and made again with the same bytes", func() {
		p := exampleProject()
		o := p.expect(2, "compare", "baseline:quickstart", "latest")
		Expect(o.stderr).To(ContainSubstring(referenceFile))
		p.succeed("run", quickstart)
		Expect(p.regression()).To(BeNil())
		Expect(p.files(p.last())).NotTo(HaveKey("baseline.json"))
		o = p.succeed("baseline", "accept", "latest")
		Expect(o.stdout).To(Equal(referenceFile + ": 24 lines, 24 new, 0 changed, 0 removed\n"))
		text := p.read(referenceFile)
		Expect(strings.Count(text, "\n{\"item\":")).To(Equal(24))
		Expect(text).NotTo(ContainSubstring(p.dir))

		p.succeed("run", quickstart)
		r := p.regression()
		Expect(r.Baseline.File).To(Equal(referenceFile))
		Expect(r.Baseline.From).To(Equal("file"))
		Expect(r.Baseline.EditedHere).To(BeNil())
		Expect(r.Changed).To(BeEmpty())
		Expect(r.Comparisons).To(HaveLen(8))
		for _, c := range r.Comparisons {
			Expect(c.Pairs).To(Equal(12))
			Expect(*c.Difference).To(BeZero())
			Expect([]any{c.Status, *c.P, *c.Low}).To(Equal([]any{"not_worse", 1.0, 0.0}), "the recordings are those of the baseline")
		}
		Expect(p.read(p.last() + "/baseline.json")).To(Equal(text))
		o = p.succeed("baseline", "accept", "latest")
		Expect(o.stdout).To(Equal(referenceFile + ": 24 lines, 0 new, 0 changed, 0 removed\n"))
		Expect(p.read(referenceFile)).To(Equal(text))

		p.succeed("run", quickstart, "--baseline", "none")
		Expect(p.regression()).To(BeNil())
		Expect(p.succeed("baseline", "ls").stdout).To(Equal("quickstart  24 lines, 1 repeat, openai:gpt-4.1-mini, openai:gpt-4o-mini\n"))
		Expect(p.succeed("baseline", "show", "quickstart").stdout).To(ContainSubstring("1/1  price-of-a-book on openai:gpt-4o-mini; calls read_file"))
		Expect(p.succeed("baseline", "show", "quickstart", "--json").stdout).To(Equal(text))
	})

	It("shows what a changed answer made worse, in the run, in the reports and in the diff", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "latest")
		before := p.read(referenceFile)
		p.answers(price, wrongPrice, "price-of-a-book")
		o := p.expect(1, "run", quickstart, "--format", "markdown", "--format", "csv")
		r := p.regression()
		Expect(r.Items.Worse).To(Equal(moved{1, []string{"price-of-a-book"}}))
		Expect(r.Items.NewViolations.Count + r.Items.Changed.Count + r.Items.New.Count + r.Items.Removed.Count).To(BeZero())
		Expect(*r.Comparisons[0].Difference).To(BeNumerically("~", -1.0/12, 1e-6))
		Expect(o.stdout).To(ContainSubstring("against " + referenceFile + "\n  pass_rate of openai:gpt-4o-mini: 1 -> 0.917, -8.3 points [-35.4, +16.9] over 12 items\n"))
		Expect(o.stdout).To(ContainSubstring("worse: price-of-a-book"))
		report := p.read(p.last() + "/reports/report.md")
		Expect(report).To(And(HavePrefix("## ❌ `quickstart`"), ContainSubstring("### Worse: 2"), ContainSubstring("now: `"+wrongPrice+"`"), ContainSubstring("before: `"+price+"`")))
		Expect(strings.Count(p.read(p.last()+"/reports/results.csv"), "\n")).To(Equal(25))

		// A verdict that is worse is shown; without the gates of checks it does not fail the run.
		o = p.succeed("run", quickstart, "--fail-on", "regression")
		Expect(o.stdout).To(ContainSubstring("1 item worse than in the baseline"))
		p.expect(2, "run", quickstart, "--fail-on", "none", "--fail-on", "checks")
		p.expect(2, "run", quickstart, "--fail-on", "everything")

		o = p.succeed("baseline", "accept", "latest")
		Expect(o.stdout).To(ContainSubstring("0 new, 2 changed, 0 removed"))
		after := p.read(referenceFile)
		differ := 0
		lines := strings.Split(before, "\n")
		for i, line := range strings.Split(after, "\n") {
			if line != lines[i] {
				differ++
				Expect(line).To(And(ContainSubstring(`"item":"price-of-a-book"`), ContainSubstring(wrongPrice), ContainSubstring(`"passed":[false]`), ContainSubstring(`"failed":["contains"]`)))
			}
		}
		Expect(differ).To(Equal(2), "the diff has the lines that moved")
		p.expect(1, "run", quickstart)
		Expect(p.regression().Items.Worse.Count).To(BeZero())
	})

	It("makes a new violation of severity error code 1, whatever the gates allow", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "latest")
		p.answers(price, leak, "price-of-a-book")
		o := p.expect(1, "run", quickstart, "--fail-on", "regression")
		Expect(p.regression().Items.NewViolations).To(Equal(moved{1, []string{"price-of-a-book"}}))
		verdict := p.summary(p.last()).Verdict
		Expect(verdict.Reasons).To(HaveLen(1))
		Expect(verdict.Reasons[0].Kind).To(Equal("regression"))
		Expect(o.stdout).To(ContainSubstring("1 item with an invariant violated that was kept in the baseline"))
		p.succeed("run", quickstart, "--fail-on", "none")
		p.expect(1, "compare", "baseline:quickstart", "latest", "--gate")
		p.succeed("baseline", "accept", "latest")
		Expect(p.read(referenceFile)).To(ContainSubstring(`"violations":["no-hidden-parameter-leak"]`))
		p.succeed("run", quickstart, "--fail-on", "regression")
	})

	It("does not compare what is asked or judged otherwise", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "latest")
		p.edit(quickstart, `expected: "21.00"`, `expected: "21.0"`)
		p.edit(quickstart, "- contains: January\n", "- contains: january\n")
		p.edit(quickstart, "id: total-copies", "id: all-copies")
		p.run("run", quickstart)
		r := p.regression()
		Expect(r.Items.Changed.IDs).To(ConsistOf("price-of-a-book", "two-months-at-once"))
		Expect(r.Items.New.IDs).To(Equal([]string{"all-copies"}))
		Expect(r.Items.Removed.IDs).To(Equal([]string{"total-copies"}))
		Expect(r.Items.Worse.Count).To(BeZero())
		Expect(r.Changed).To(ContainElement("checks"))
		p.run("run", quickstart, "--item", "price-of-a-book")
		Expect(p.regression().Items.Removed.Count).To(BeZero(), "what was not asked is not gone")
	})

	It("takes of a part of a run the lines that ran, and none without a verdict", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "latest", "--name", "release")
		Expect(p.succeed("baseline", "ls").stdout).To(HavePrefix("quickstart@release "))
		whole := p.read("baselines/quickstart@release.json")
		p.succeed("run", quickstart, "--baseline", "release")
		Expect(p.regression().Baseline.File).To(Equal("baselines/quickstart@release.json"))
		p.answers(price, wrongPrice, "price-of-a-book")
		p.run("run", quickstart, "--item", "price-of-a-book", "--provider", "openai:gpt-4o-mini", "--baseline", "baselines/quickstart@release.json")
		Expect(p.regression().Items.Worse.IDs).To(Equal([]string{"price-of-a-book"}))
		Expect(p.succeed("baseline", "accept", "latest", "--name", "release").stdout).To(ContainSubstring("24 lines, 0 new, 1 changed, 0 removed"))
		Expect(strings.Count(p.read("baselines/quickstart@release.json"), "\n")).To(Equal(strings.Count(whole, "\n")))

		p.remove(mini + "total-copies.yaml")
		p.expect(4, "run", quickstart)
		o := p.expect(2, "baseline", "accept", "latest")
		Expect(o.stderr).To(ContainSubstring("total-copies on openai:gpt-4o-mini (stale)"))
		Expect(p.files("baselines")).NotTo(HaveKey("quickstart.json"))
		p.expect(2, "baseline", "accept", "latest", "--name", "../escape")
		p.expect(2, "baseline", "show", "../quickstart")
		p.expect(2, "baseline", "show", "quickstrat")
	})

	DescribeTable("that cannot be read is code 2, with its place, before anything runs", func(before, after, message string) {
		p := exampleProject()
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "latest")
		p.edit(referenceFile, before, after)
		runs := len(p.runs())
		o := p.expect(2, "run", quickstart)
		Expect(o.stdout).To(BeEmpty())
		Expect(o.stderr).To(And(MatchRegexp(`(?m)^error: baselines/quickstart\.json:\d+`), ContainSubstring(message)))
		Expect(p.runs()).To(HaveLen(runs))
		p.succeed("run", quickstart, "--baseline", "none")
		p.succeed("cassette", "verify", quickstart)
		p.expect(2, "baseline", "ls")
		o = p.run("baseline", "accept", "latest")
		if strings.Contains(message, "later") {
			Expect(o.code).To(Equal(2), "%s", o)
			return
		}
		Expect(o.code).To(Equal(0), "a whole run needs nothing of it\n%s", o)
		p.succeed("run", quickstart)
	},
		Entry("of another version", `{"v":1,`, `{"v":9,`, "format version 9 was written by a later echoeval"),
		Entry("with an unresolved merge", "\"items\":[\n", "\"items\":[\n<<<<<<< HEAD\n", "unresolved merge"),
		Entry("edited by hand", `"passed":[true]`, `"pased":[true]`, "pased"),
		Entry("of another dataset", `"dataset":"quickstart"`, `"dataset":"other"`, "a baseline of dataset other, not of quickstart"),
	)

	It("lies where the project file says", func() {
		p := exampleProject()
		p.write("echoeval.yaml", "version: 1\nbaselines: evals/reference\n")
		p.succeed("run", quickstart)
		p.succeed("baseline", "accept", "latest")
		Expect(p.files("evals/reference")).To(HaveKey("quickstart.json"))
		p.succeed("run", quickstart)
		Expect(p.regression().Baseline.File).To(Equal("evals/reference/quickstart.json"))
		p.succeed("baseline", "show", "quickstart")
	})
})

var _ = Describe("a baseline in git", func() {
	It("is read at the merge base, so that a change cannot approve itself", func() {
		p := committedProject()
		p.git("branch", "-m", "main")
		p.write(".gitignore", ".echoeval/\n")
		p.succeed("run", quickstart, "--baseline", "git:main")
		r := p.regression()
		Expect(r.Baseline.Hash).To(BeNil(), "there is none yet: shown, no failure")
		Expect(*r.Baseline.EditedHere).To(BeFalse())
		Expect(r.Comparisons).To(HaveLen(8))
		Expect(r.Comparisons[0].Status).To(Equal("no_baseline"))
		Expect(p.summary(p.last()).Warnings).To(ContainElement(HaveField("Code", "no-baseline")))
		p.succeed("baseline", "accept", "latest")
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "baseline")

		p.git("checkout", "--quiet", "-b", "change")
		p.answers(price, wrongPrice, "price-of-a-book")
		p.expect(1, "run", quickstart)
		p.succeed("baseline", "accept", "latest")
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "a change that approves itself")
		p.expect(1, "run", quickstart)
		Expect(p.regression().Items.Worse.Count).To(BeZero())
		o := p.expect(1, "run", quickstart, "--baseline", "git:main", "--format", "markdown")
		r = p.regression()
		Expect(r.Baseline.From).To(Equal("git:main"))
		Expect(*r.Baseline.EditedHere).To(BeTrue())
		Expect(r.Items.Worse.IDs).To(Equal([]string{"price-of-a-book"}))
		const said = "this change edits its own baseline: 2 verdicts moved"
		Expect(o.stdout).To(ContainSubstring(said))
		Expect(p.read(p.last() + "/reports/report.md")).To(ContainSubstring(said))

		// What main did meanwhile does not matter: the merge base stays.
		p.git("checkout", "--quiet", "main")
		p.git("rm", "--quiet", referenceFile)
		p.git("commit", "--quiet", "--message", "gone")
		p.git("checkout", "--quiet", "change")
		p.expect(1, "run", quickstart, "--baseline", "git:main")
		Expect(p.regression().Items.Worse.IDs).To(Equal([]string{"price-of-a-book"}))
	})

	It("names what is wrong with the revision or the repository", func() {
		p := committedProject()
		for _, rev := range []string{"nowhere", "", "--output=/tmp/x", "a b", "HEAD:datasets"} {
			o := p.expect(2, "run", quickstart, "--baseline", "git:"+rev)
			Expect(o.stderr).To(ContainSubstring("--baseline git:" + rev))
		}
		p.git("checkout", "--quiet", "--orphan", "apart")
		p.git("commit", "--quiet", "--message", "apart")
		p.git("branch", "other", "HEAD")
		first := strings.TrimSpace(p.git("rev-list", "--max-parents=0", "--all", "--not", "HEAD"))
		o := p.expect(2, "run", quickstart, "--baseline", "git:"+first)
		Expect(o.stderr).To(And(ContainSubstring("no common ancestor"), ContainSubstring("fetch-depth: 0")))
		p = exampleProject()
		o = p.expect(2, "run", quickstart, "--baseline", "git:main")
		Expect(o.stderr).To(ContainSubstring("not a git repository"))
		Expect(p.runs()).To(BeEmpty())
	})
})

var _ = Describe("compare", func() {
	It("sets the columns of a run, two runs, and a run and a baseline side by side", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		first := filepath.Base(p.last())
		o := p.succeed("compare", "latest", "--gate")
		Expect(o.stdout).To(ContainSubstring("openai:gpt-4o-mini -> openai:gpt-4.1-mini\n"))
		p.succeed("baseline", "accept", "latest")
		p.answers(price, wrongPrice, "price-of-a-book")
		p.expect(1, "run", quickstart)
		for _, before := range []string{first, "baseline:quickstart"} {
			o = p.succeed("compare", before, "latest")
			Expect(o.stdout).To(And(ContainSubstring("worse: price-of-a-book passed 1/1 -> 0/1, failed contains\n    calls   [read_file]\n    before  "+price+"\n    now     "+wrongPrice+"\n"), ContainSubstring("1 worse, 0 better")))
			// One item of twelve may be chance: it is shown, and no regression.
			gated := p.succeed("compare", before, "latest", "--gate")
			Expect(gated.stdout).To(Equal(o.stdout))
			Expect(gated.stderr).To(ContainSubstring("warning: openai:gpt-4o-mini: pass_rate: -8.3 points"))
			Expect(p.succeed("compare", before, "latest", "--format", "markdown").stdout).To(ContainSubstring("- worse: `price-of-a-book`"))
			var document struct {
				Comparisons []struct {
					Disagree []struct {
						Item, Kind string
						Now        struct{ Calls []string }
					}
				}
			}
			Expect(json.Unmarshal([]byte(p.succeed("compare", before, "latest", "--json").stdout), &document)).To(Succeed())
			Expect(document.Comparisons).To(HaveLen(2))
			Expect(document.Comparisons[0].Disagree).To(HaveLen(1))
			Expect(document.Comparisons[0].Disagree[0].Now.Calls).To(Equal([]string{"read_file"}))
		}
		p.succeed("compare", "latest", first, "--gate")
	})

	It("refuses what cannot be compared", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		p.write("d.yaml", small)
		p.succeed("run", "d.yaml", "--mode", "live")
		for _, args := range [][]string{
			{"compare"}, {"compare", "nowhere"}, {"compare", "small"}, {"compare", "small", "quickstart"}, {"compare", "small", "latest"},
			{"compare", "baseline:quickstart"}, {"compare", "baseline:../x", "latest"}, {"compare", "quickstart", "--format", "html"},
		} {
			o := p.expect(2, args...)
			Expect(o.stderr).To(ContainSubstring("error: "), "%v", args)
			Expect(o.stdout).To(BeEmpty(), "%v", args)
		}
		// Nothing passes a gate by having nothing to compare.
		p.succeed("baseline", "accept", "small")
		p.edit("d.yaml", "input: Hello", "input: Good day")
		p.succeed("run", "d.yaml", "--mode", "live")
		p.succeed("compare", "baseline:small", "latest")
		o := p.expect(2, "compare", "baseline:small", "latest", "--gate")
		Expect(o.stderr).To(ContainSubstring("no item is asked and judged alike"))
	})
})

var _ = It("a baseline of 10,000 items is accepted and compared with in seconds", func() {
	p := emptyProject()
	var b strings.Builder
	b.WriteString("version: 1\nname: large\nagent: {task: {description: Answer.}}\nproviders: [{provider: script, id: script}]\ndefaults: {checks: [{contains: a}]}\nitems:\n")
	const items = 10_000
	for i := range items {
		fmt.Fprintf(&b, "  - {id: i%05d, input: a, script: [{text: a%d}]}\n", i, i)
	}
	p.write("large.yaml", b.String())
	p.succeed("run", "large.yaml", "--mode", "live", "--quiet")
	started := time.Now()
	p.succeed("baseline", "accept", "latest")
	accepted := time.Since(started)
	p.succeed("run", "large.yaml", "--mode", "live", "--quiet")
	Expect(p.regression().Comparisons[0].Pairs).To(Equal(items))
	started = time.Now()
	o := p.succeed("compare", "baseline:large", "latest", "--gate")
	Expect(o.stdout).To(ContainSubstring("10000 as before"))
	AddReportEntry("accept and compare", fmt.Sprint(accepted, time.Since(started)), ReportEntryVisibilityFailureOrVerbose)
	info, err := os.Stat(p.path("baselines/large.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(info.Size()).To(BeNumerically(">", items*200))
})
