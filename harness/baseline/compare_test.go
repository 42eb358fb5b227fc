package baseline_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

// lines are those of a run of n items on one provider, in order; edit may change each, or drop it by taking its id.
func lines(n, repeats int, edit func(*eval.Result)) []eval.Result {
	var out []eval.Result
	for index := 1; index <= n; index++ {
		for repeat := 1; repeat <= repeats; repeat++ {
			line := resultstest.Line(index, 0, repeat)
			line.Item = fmt.Sprintf("i%d", index)
			if edit != nil {
				edit(&line)
			}
			if line.Item != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// against compares the lines with a baseline of all items passing but every tenth, after the baseline was changed.
func against(before *baseline.File, now []eval.Result, with baseline.Now) (*results.Regression, []string) {
	var seen []string
	c := baseline.NewComparer(before, func(m baseline.Move) {
		if m.Kind == baseline.Same && len(m.NewViolations) == 0 {
			return
		}
		item := m.Before
		if m.Now != nil {
			item = &m.Now.Item
		}
		seen = append(seen, strings.TrimSpace(item.Item+" "+string(m.Kind)+" "+strings.Join(m.NewViolations, ",")))
	})
	for i := range now {
		c.Add(&now[i])
	}
	return c.Finish(with), seen
}

func info(edit func(*results.ProviderInfo)) baseline.Now {
	p := resultstest.Size{Providers: 1}.Head().Providers[0]
	if edit != nil {
		edit(&p)
	}
	return baseline.Now{Providers: []results.ProviderInfo{p}, Mode: "replay", Whole: true}
}

func reference(n, repeats int) *baseline.File {
	GinkgoHelper()
	return accepted(made(GinkgoTB(), resultstest.Size{Items: n, Providers: 1, Repeats: repeats}, func(line *eval.Result) { line.Item = fmt.Sprintf("i%d", line.Index) }))
}

func flip(line *eval.Result) {
	if line.Status == eval.Pass {
		line.Status, line.Cause, line.Score = eval.Fail, ptr(eval.CauseCheck), ptr(eval.Fraction(0))
	} else {
		line.Status, line.Cause, line.Score = eval.Pass, nil, ptr(eval.Fraction(1))
	}
}

var _ = Describe("a run against its baseline", func() {
	It("is the same where nothing has changed", func() {
		r, seen := against(reference(12, 2), lines(12, 2, nil), info(nil))
		Expect(seen).To(BeEmpty())
		Expect(r.Changed).To(BeEmpty())
		Expect(r.Changed).NotTo(BeNil())
		Expect(r.Items).To(Equal(results.Moved{Worse: none(), Better: none(), New: none(), Removed: none(), Changed: none(), NewViolations: none()}))
		Expect(r.Comparisons).To(HaveLen(4))
		for _, c := range r.Comparisons {
			Expect(c.Pairs).To(Equal(12), c.Metric)
			Expect(*c.Difference).To(BeZero(), c.Metric)
			Expect(c.Before).To(Equal(c.Now), c.Metric)
			Expect([]string{c.Status, c.Method}).To(Equal([]string{"not_worse", baseline.MethodIdentical}), "the recordings are those of the baseline")
			Expect([]float64{float64(*c.Low), float64(*c.High), float64(*c.P), float64(*c.PAdjusted)}).To(Equal([]float64{0, 0, 1, 1}), c.Metric)
			Expect([]any{c.MaxDrop, c.DetectableDrop, c.ItemsNeeded}).To(HaveEach(BeNil()))
			_, known := results.FindMetric(c.Metric)
			Expect(known).To(BeTrue(), c.Metric)
		}
		Expect(*r.Comparisons[0].Before).To(BeNumerically("~", 11.0/12, 1e-6))
	})

	It("says what is worse, better, new, removed, asked otherwise, judged otherwise and newly violated", func() {
		now := lines(13, 1, func(line *eval.Result) {
			switch line.Index {
			case 1, 10:
				flip(line)
			case 2:
				line.Item = ""
			case 3:
				line.ItemHash = "otherwise"
			case 4:
				line.ChecksHash = "otherwise"
			case 5, 6:
				line.Invariants.Violations = []eval.Violation{{Name: "b", Severity: eval.SeverityError}, {Name: "a", Severity: eval.SeverityError}, {Name: "w", Severity: eval.SeverityWarn}}
			case 7:
				line.Status = eval.Error
			case 8:
				line.Quarantined = true
				flip(line)
			case 9:
				line.Status = eval.Skipped
			}
		})
		before := reference(12, 1)
		at := slices.IndexFunc(before.Items, func(i baseline.Item) bool { return i.Item == "i6" })
		before.Items[at].Violations = []string{"a", "b"}
		r, seen := against(before, now, info(nil))
		Expect(seen).To(Equal([]string{"i1 worse", "i3 changed", "i4 changed", "i5 same a,b", "i7 open", "i8 open", "i10 better", "i13 new", "i2 removed", "i9 removed"}))
		Expect(r.Items).To(Equal(results.Moved{
			Worse: ids("i1"), Better: ids("i10"), New: ids("i13"), Removed: ids("i2", "i9"), Changed: ids("i3", "i4"), NewViolations: ids("i5"),
		}))
		Expect(r.Changed).To(Equal([]string{"dataset", "checks"}))
		Expect(r.Comparisons[0].Pairs).To(Equal(6), "i1 i5 i6 i10 i11 i12")

		part := info(nil)
		part.Whole = false
		r, _ = against(before, now, part)
		Expect(r.Items.Removed).To(Equal(none()), "of a part of a run nobody knows")
	})

	It("counts a new violation of an item without a verdict", func() {
		now := lines(3, 1, func(line *eval.Result) {
			line.Status = eval.Stale
			line.Invariants.Violations = []eval.Violation{{Name: "a", Severity: eval.SeverityError}}
		})
		r, _ := against(reference(3, 1), now, info(nil))
		Expect(r.Items.NewViolations).To(Equal(ids("i1", "i2", "i3")))
		for _, c := range r.Comparisons {
			Expect(c.Status).To(Equal("no_baseline"))
			Expect(c.Before).To(BeNil())
		}
	})

	DescribeTable("keeps flaky items apart", func(before, now []bool, kind baseline.Kind) {
		f := reference(1, len(before))
		for i := range before {
			f.Items[0].Passed[i] = &before[i]
		}
		r, _ := against(f, lines(1, len(now), func(line *eval.Result) {
			line.Status = eval.Fail
			if now[line.Repeat-1] {
				line.Status = eval.Pass
			}
		}), info(nil))
		count := map[baseline.Kind]int{baseline.Worse: r.Items.Worse.Count, baseline.Better: r.Items.Better.Count}
		Expect(count[kind]).To(Equal(1 - boolean(kind == baseline.Same)))
		Expect(count[baseline.Worse] + count[baseline.Better]).To(Equal(1 - boolean(kind == baseline.Same)))
	},
		Entry("always, now sometimes", []bool{true, true}, []bool{true, false}, baseline.Worse),
		Entry("sometimes, now never", []bool{true, false}, []bool{false, false}, baseline.Worse),
		Entry("never, now sometimes", []bool{false, false}, []bool{true, false}, baseline.Better),
		Entry("sometimes, now always, once", []bool{true, false}, []bool{true}, baseline.Better),
		Entry("sometimes both", []bool{true, true, false}, []bool{true, false, false}, baseline.Same),
		Entry("always, with more repeats", []bool{true}, []bool{true, true, true}, baseline.Same),
	)

	It("says what differs about the agent", func() {
		before := reference(3, 1)
		for _, c := range []struct {
			edit func(*results.ProviderInfo)
			want []string
		}{
			{func(p *results.ProviderInfo) { p.AgentHash = "x" }, []string{"agent"}},
			{func(p *results.ProviderInfo) { p.AgentHash, p.PromptHash = "x", "x" }, []string{"prompt"}},
			{func(p *results.ProviderInfo) { p.AgentHash, p.ToolsHash, p.Model = "x", "x", "x" }, []string{"tools", "model"}},
			{func(p *results.ProviderInfo) { p.ID = "unknown" }, []string{}},
		} {
			r, _ := against(before, lines(3, 1, nil), info(c.edit))
			Expect(r.Changed).To(Equal(c.want))
		}
	})

	It("blames the provider in a run that asks it, where nothing else has changed", func() {
		with := info(nil)
		with.Mode = "live"
		r, _ := against(reference(3, 1), lines(3, 1, nil), with)
		Expect(r.Changed).To(BeEmpty())
		r, _ = against(reference(3, 1), lines(3, 1, flip), with)
		Expect(r.Changed).To(Equal([]string{"provider"}))
		r, _ = against(reference(3, 1), lines(3, 1, flip), info(nil))
		Expect(r.Changed).To(BeEmpty())
	})

	It("has no baseline for a provider that it does not have, whose items are not new", func() {
		now := lines(3, 1, func(line *eval.Result) { line.Provider = "other" })
		r, seen := against(reference(3, 1), now, info(func(p *results.ProviderInfo) { p.ID = "other" }))
		Expect(seen).To(BeEmpty())
		Expect(r.Items.New.Count + r.Items.Removed.Count).To(BeZero())
		Expect(r.Comparisons[0].Status).To(Equal("no_baseline"))
	})

	It("lists the first thousand and counts all", func() {
		r, _ := against(reference(1, 1), lines(1_500, 1, nil), info(nil))
		Expect(r.Items.New.Count).To(Equal(1_499))
		Expect(r.Items.New.IDs).To(HaveLen(results.ListLimit))
		Expect(r.Items.New.IDs[:2]).To(Equal([]string{"i2", "i3"}), "in the order of the dataset")
	})

	It("estimates as soon as one conversation was held anew, and by what its items allow", func() {
		again := func(repeats int, edit func(*eval.Result)) []eval.Result {
			return lines(40, repeats, func(line *eval.Result) {
				line.LatencyMS = ptr(*line.LatencyMS + 1)
				if edit != nil {
					edit(line)
				}
			})
		}
		r, _ := against(reference(40, 1), again(1, nil), info(nil))
		c := r.Comparisons[0]
		Expect(c.Method).To(Equal("mcnemar"))
		Expect(*c.Difference).To(BeZero())
		Expect(float64(*c.Low)).To(BeNumerically("<", -0.05), "forty equal verdicts do not prove that nothing has changed")
		Expect(c.Status).To(Equal("inconclusive"))
		Expect(c.DetectableDrop).NotTo(BeNil())

		r, _ = against(reference(40, 3), again(3, nil), info(nil))
		Expect(r.Comparisons[0].Method).To(Equal("sign-flip"))
		r, _ = against(reference(40, 1), again(1, func(line *eval.Result) { line.Group = ptr(fmt.Sprint(line.Index / 4)) }), info(nil))
		Expect(r.Comparisons[0].Method).To(Equal("clustered-sign-flip"))
		Expect(r.Comparisons[3].Method).To(Equal("clustered-paired-t"))
		r, _ = against(reference(40, 1), again(1, flip), info(nil))
		Expect(float64(*r.Comparisons[0].Difference)).To(BeNumerically("<", -0.7))
		Expect(float64(*r.Comparisons[0].High)).To(BeNumerically("<", 0))
		Expect(float64(*r.Comparisons[0].P)).To(BeNumerically("<", 0.001))

		with := info(nil)
		with.Level = func(_, metric string, _ results.Where) float64 {
			return map[string]float64{"pass_rate": 0.99, "score": 0.95}[metric]
		}
		wide, _ := against(reference(40, 1), again(1, nil), with)
		Expect(float64(*wide.Comparisons[0].Low)).To(BeNumerically("<", float64(*c.Low)))
	})

	It("compares parts by themselves: the items with a tag, and a check that the baseline knows", func() {
		polite := func(status eval.CheckStatus, score eval.Fraction) eval.CheckResult {
			return eval.CheckResult{Name: "polite", Status: status, Score: &score}
		}
		// The items pass as ever; "polite" of weight 0, say, fails on every even one now, which are tagged.
		edit := func(now bool) func(line *eval.Result) {
			return func(line *eval.Result) {
				line.Status, line.Cause, line.Score = eval.Pass, nil, ptr(eval.Fraction(1))
				line.Tags = nil
				line.LatencyMS = ptr(int64(1000 + line.Repeat))
				c := polite(eval.CheckPass, 1)
				if line.Index%2 == 0 {
					line.Tags = []string{"even"}
					if now {
						line.LatencyMS = ptr(int64(2000))
						c = polite(eval.CheckFail, 0.2)
					}
				}
				line.Checks = append([]eval.CheckResult{}, c)
			}
		}
		size := resultstest.Size{Items: 40, Providers: 1, Repeats: 2}
		run := func(limits ...string) *baseline.File {
			run := made(GinkgoTB(), size, func(line *eval.Result) { line.Item = fmt.Sprintf("i%d", line.Index); edit(false)(line) })
			run.Summary.Regression = &results.Regression{}
			for _, name := range limits {
				run.Summary.Regression.Comparisons = append(run.Summary.Regression.Comparisons, results.Comparison{Check: &name})
			}
			return accepted(run)
		}
		before := run("polite", "polite")
		Expect(before.Items[0].Checks).To(HaveLen(1))
		Expect(*before.Items[0].Checks["polite"].Passed[1]).To(BeTrue())
		again, err := baseline.Decode("a.json", before.Append(nil))
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(Equal(before))

		even, check := results.Where{Tag: "even"}, results.Where{Check: "polite"}
		both := results.Where{Tag: "even", Check: "polite"}
		compare := func(before *baseline.File) *results.Regression {
			c := baseline.NewComparer(before, nil)
			c.Limit([]results.Where{even, check, both})
			now := lines(40, 2, edit(true))
			for i := range now {
				c.Add(&now[i])
			}
			with := info(nil)
			with.Wants = func(_, metric string, where results.Where) bool {
				return metric == "score" || where == check && metric == "pass_rate"
			}
			return c.Finish(with)
		}
		r := compare(before)
		Expect(r.Items.Worse.Count).To(BeZero())
		Expect(*r.Comparisons[0].Difference).To(BeZero())
		var got []string
		for _, c := range r.Comparisons[4:] {
			got = append(got, fmt.Sprintf("%s, %s: %d pairs, %.3f", c.Where(), c.Metric, c.Pairs, *c.Difference))
		}
		Expect(got).To(Equal([]string{"tag even, score: 20 pairs, 0.000", "check polite, pass_rate: 40 pairs, -0.500", "check polite, score: 40 pairs, -0.400", "tag even, check polite, score: 20 pairs, -0.800"}))

		// A baseline that was made before there was such a gate does not know the check, and claims nothing.
		old := compare(run())
		Expect(old.Comparisons[5].Status).To(Equal(results.CompareNoBaseline))
		Expect(old.Comparisons[4].Pairs).To(Equal(20))
	})

	It("compares the first repeats alone where more were added for what came of them, and takes all their violations", func() {
		r := baseline.NewComparer(reference(12, 1), nil)
		r.Count(1)
		now := lines(12, 3, func(line *eval.Result) {
			if line.Repeat > 1 {
				flip(line)
				line.Invariants.Violations = []eval.Violation{{Name: "a", Severity: eval.SeverityError}}
			}
		})
		for i := range now {
			r.Add(&now[i])
		}
		got := r.Finish(info(nil))
		Expect(got.Items.Worse.Count + got.Items.Better.Count).To(BeZero())
		Expect(got.Items.NewViolations.Count).To(Equal(12))
		Expect(*got.Comparisons[0].Difference).To(BeZero())
	})

	It("compares two baselines", func() {
		a, b := reference(3, 1), reference(4, 1)
		b.Items[0].Passed[0] = ptr(false)
		c := baseline.NewComparer(a, nil)
		c.AddFile(b)
		r := c.Finish(info(nil))
		Expect(r.Items.Worse).To(Equal(ids("i1")))
		Expect(r.Items.New).To(Equal(ids("i4")))
	})
})

func ids(list ...string) results.IDs { return results.IDs{Count: len(list), IDs: list} }

func none() results.IDs { return results.IDs{IDs: []string{}} }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
