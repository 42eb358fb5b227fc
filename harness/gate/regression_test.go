package gate_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
)

var _ = Describe("a run against its baseline", func() {
	summary := func(worse, violated int) *results.Summary {
		return &results.Summary{
			Dataset: results.Dataset{Name: "d", File: "d.yaml"}, Counts: results.Counts{Pass: 3},
			Regression: &results.Regression{Items: results.Moved{Worse: results.IDs{Count: worse}, NewViolations: results.IDs{Count: violated}}},
		}
	}

	It("fails by a new violation, whatever the checks do", func() {
		v := gate.Decide(summary(0, 2), results.Tally{}, gate.Input{IgnoreChecks: true})
		Expect(v.Code).To(Equal(failure.Gate))
		Expect(v.Text).To(Equal("failed: 2 items with an invariant violated that was kept in the baseline"))
		Expect(v.Reasons).To(HaveLen(1))
		Expect(v.Reasons[0].Kind).To(Equal(results.KindRegression))
		Expect(*v.Reasons[0].Items).To(Equal(2))
		Expect(*v.Reasons[0].Hint).To(Equal("echoeval show d"))
	})

	It("does not where it is told to ignore regressions", func() {
		Expect(gate.Decide(summary(0, 2), results.Tally{}, gate.Input{IgnoreRegression: true}).Code).To(Equal(failure.OK))
	})

	It("says how many items are worse, which may be chance", func() {
		v := gate.Decide(summary(1, 0), results.Tally{}, gate.Input{})
		Expect(v.Code).To(Equal(failure.OK))
		Expect(v.Text).To(Equal("passed: 3 of 3 results passed, 1 item worse than in the baseline, no gate is on"))
	})
})

// compared is a comparison as the baseline gives it, before a gate looked at it.
func compared(pairs int, difference, low, high float64) results.Comparison {
	return results.Comparison{Provider: "haiku", Metric: "score", Pairs: pairs, Before: number(0.951), Now: number(0.951 + difference), Difference: number(difference), Low: number(low), High: number(high), Status: "inconclusive"}
}

var _ = DescribeTable("a drop is settled by its interval", func(low, high, most float64, status string, items int) {
	c := compared(195, (low+high)/2, low, high)
	gate.Settle(&c, most)
	Expect(c.Status).To(Equal(status))
	Expect(float64(*c.MaxDrop)).To(Equal(most))
	if items == 0 {
		Expect(c.ItemsNeeded).To(BeNil())
		return
	}
	Expect(*c.ItemsNeeded).To(BeNumerically("~", items, 1))
},
	Entry("the figures of the results contract", -0.041, 0.015, 0.02, "inconclusive", 3120),
	Entry("wholly below", -0.079, -0.021, 0.02, "regressed", 0),
	Entry("one end on the bound", -0.079, -0.02, 0.02, "inconclusive", 196),
	Entry("wholly above", -0.019, 0.03, 0.02, "not_worse", 0),
	Entry("from the bound on", -0.02, 0.03, 0.02, "not_worse", 0),
	Entry("any drop is too much", -0.05, -0.001, 0.0, "regressed", 0),
	Entry("around the bound itself: no number of items helps", -0.03, -0.01, 0.02, "inconclusive", 0),
)

var _ = Describe("a regression gate", func() {
	drop := gate.Drop{Metric: "score", MaxDrop: 0.02}
	strictly := gate.Drop{Metric: "score", MaxDrop: 0.02, FailInconclusive: true}
	judge := func(c results.Comparison, in gate.Input, specs ...gate.Spec) *results.Summary {
		GinkgoHelper()
		gates, err := gate.Parse(append(specs, gate.Spec{Metric: "pass_rate", Off: true}, gate.Spec{Metric: "invariant_violations", Off: true}, gate.Spec{Metric: "error_rate", Off: true}))
		Expect(err).NotTo(HaveOccurred())
		s := &results.Summary{Dataset: results.Dataset{Name: "d", File: "d.yaml"}, Counts: results.Counts{Pass: 3}, Providers: []results.Provider{column("haiku", nil)}}
		s.Regression = &results.Regression{Comparisons: []results.Comparison{c}, Items: results.Moved{Worse: results.IDs{Count: 4}}}
		gate.Judge(gates, in)(s, results.Tally{Columns: make([]results.ColumnTally, 1)})
		return s
	}
	spec := func(d gate.Drop) gate.Spec { return gate.Spec{Metric: "regression", Drop: &d, Pos: pos} }

	It("fails the run where the metric has regressed, and says by how much", func() {
		s := judge(compared(200, -0.046, -0.079, -0.022), gate.Input{IgnoreChecks: true}, spec(drop))
		Expect(s.Verdict.Code).To(Equal(failure.Gate))
		Expect(s.Verdict.Text).To(Equal("failed: score of haiku regressed: -4.6 points [-7.9, -2.2] over 200 items, max_drop 2.0 points"))
		Expect(s.Verdict.Reasons).To(HaveLen(1))
		r := s.Verdict.Reasons[0]
		Expect([]string{r.Kind, *r.Gate, *r.Provider, *r.Hint}).To(Equal([]string{"regression", "regression", "haiku", "echoeval show d"}))
		Expect(*r.Items).To(Equal(4))
		Expect(s.Gates).To(ContainElement(results.Gate{Metric: "regression", Provider: "haiku", Bound: ptr("score drops <= 0.02"), Value: number(-0.046), N: 200, Status: results.GateFailed}))
		Expect(judge(compared(200, -0.046, -0.079, -0.022), gate.Input{IgnoreRegression: true}, spec(strictly)).Verdict.Code).To(Equal(failure.OK))
	})

	It("passes with a visible warning where it is open, unless told otherwise", func() {
		s := judge(compared(195, -0.013, -0.041, 0.015), gate.Input{}, spec(drop))
		Expect(s.Verdict.Code).To(Equal(failure.OK))
		Expect(s.Verdict.Text).To(ContainSubstring("regression inconclusive"))
		Expect(s.Gates).To(ContainElement(And(HaveField("Metric", "regression"), HaveField("Status", results.GateInconclusive))))
		Expect(s.Warnings).To(HaveLen(1))
		Expect(s.Warnings[0].Code + ": " + s.Warnings[0].Text).To(Equal("regression-inconclusive: score of haiku is inconclusive: -1.3 points [-4.1, +1.5] over 195 items, max_drop 2.0 points; 3,120 items would settle it"))

		s = judge(compared(195, -0.013, -0.041, 0.015), gate.Input{}, spec(strictly))
		Expect(s.Verdict.Code).To(Equal(failure.Inconclusive))
		Expect(s.Verdict.Reasons[0].Kind).To(Equal("inconclusive"))
		Expect(s.Warnings).To(BeEmpty(), "it is said once")
	})

	It("counts a missing baseline as open, and nothing where it is off", func() {
		none := results.Comparison{Provider: "haiku", Metric: "score", Status: "no_baseline"}
		Expect(judge(none, gate.Input{}, spec(strictly)).Verdict.Code).To(Equal(failure.Inconclusive))
		s := judge(none, gate.Input{}, spec(drop))
		Expect(s.Verdict.Code).To(Equal(failure.OK))
		Expect(s.Warnings[0].Text).To(ContainSubstring("cannot be compared"))
		s = judge(none, gate.Input{}, gate.Spec{Metric: "regression", Off: true})
		Expect(s.Warnings).To(BeEmpty())
		Expect(s.Gates).To(ContainElement(And(HaveField("Metric", "regression"), HaveField("Status", results.GateOff))))
	})

	It("decides nothing about what no gate bounds", func() {
		s := judge(compared(200, -0.046, -0.079, -0.022), gate.Input{})
		Expect(s.Verdict.Code).To(Equal(failure.OK))
		Expect(s.Regression.Comparisons[0].MaxDrop).To(BeNil())
	})

	It("stands below a failed gate and above nothing: the order of codes", func() {
		s := judge(compared(195, -0.013, -0.041, 0.015), gate.Input{Errors: []error{failure.New(failure.Unavailable, "away")}}, spec(strictly))
		Expect(s.Verdict.Code).To(Equal(failure.Unavailable))
		Expect(s.Verdict.Reasons).To(HaveLen(2))
	})

	It("is for one provider in the place of the one for all, and asks for more certainty the more columns there are", func() {
		own := gate.Drop{Metric: "score", MaxDrop: 0.1, Confidence: 0.9}
		gates, err := gate.Parse([]gate.Spec{spec(drop), {Metric: "regression", Provider: "b", Drop: &own}})
		Expect(err).NotTo(HaveOccurred())
		level := gate.Level(gates, []string{"a", "b", "c", "d"}, []string{"pass_rate", "score"})
		Expect(level("a", "score", results.Where{})).To(BeNumerically("~", 1-0.05/4, 1e-12))
		Expect(level("b", "score", results.Where{})).To(BeNumerically("~", 1-0.1/4, 1e-12))
		Expect(level("a", "pass_rate", results.Where{})).To(Equal(0.95))
	})

	It("looks at a part, beside the gate of the whole", func() {
		urgent := results.Where{Tag: "urgent"}
		limited := gate.Spec{Metric: "regression", Drop: &strictly, Tag: "urgent", Pos: pos}
		gates, err := gate.Parse([]gate.Spec{spec(drop), limited, {Metric: "regression", Drop: &drop, Check: "polite", Provider: "b", Pos: pos}})
		Expect(err).NotTo(HaveOccurred())
		Expect(gate.DropParts(gates)).To(Equal([]results.Where{urgent, {Check: "polite"}}))
		Expect(gate.Limits(gates)).To(HaveLen(2), "that a part exists is proven before the run")
		level := gate.Level(gates, []string{"a", "b"}, []string{"pass_rate", "score"})
		for _, where := range []results.Where{urgent, {}} {
			Expect(level("a", "score", where)).To(BeNumerically("~", 1-0.05/5, 1e-12))
		}
		bounds := gate.Bounds(gates)
		Expect([]bool{bounds("a", "score", urgent), bounds("a", "pass_rate", urgent), bounds("a", "score", results.Where{Check: "polite"}), bounds("b", "score", results.Where{Check: "polite"})}).To(Equal([]bool{true, false, false, true}))

		c := compared(200, -0.046, -0.079, -0.022)
		c.Tag = ptr("urgent")
		s := judge(c, gate.Input{}, spec(drop), limited)
		Expect(s.Verdict.Text).To(HavePrefix("failed: score of haiku (tag urgent) regressed: -4.6 points"))
		Expect(s.Gates).To(ContainElement(And(HaveField("Metric", "regression"), HaveField("Where", HaveValue(Equal("tag urgent"))), HaveField("Status", results.GateFailed))))
		s = judge(c, gate.Input{}, spec(drop))
		Expect(s.Verdict.Code).To(Equal(failure.OK), "the gate of the whole does not bound a part")

		// What the selection left out is a warning, even where an open question fails.
		none := results.Comparison{Provider: "haiku", Metric: "score", Status: "no_baseline", Tag: ptr("urgent")}
		Expect(judge(none, gate.Input{}, limited).Verdict.Code).To(Equal(failure.Inconclusive))
		gates, err = gate.Parse([]gate.Spec{limited, {Metric: "pass_rate", Off: true}, {Metric: "invariant_violations", Off: true}, {Metric: "error_rate", Off: true}})
		Expect(err).NotTo(HaveOccurred())
		s = &results.Summary{Dataset: results.Dataset{Name: "d", Items: 9}, Selected: results.Selected{Items: 1}, Providers: []results.Provider{column("haiku", nil)}, Regression: &results.Regression{Comparisons: []results.Comparison{none}}}
		gate.Judge(gates, gate.Input{})(s, results.Tally{Columns: make([]results.ColumnTally, 1)})
		Expect(s.Verdict.Code).To(Equal(failure.OK))
		Expect(s.Warnings).To(ContainElement(HaveField("Code", "regression-inconclusive")))
	})
})

var _ = Describe("a gate on a part of a run", func() {
	It("bounds the metric of that part, and is no gate of the whole", func() {
		gates, err := gate.Parse([]gate.Spec{{Metric: "pass_rate", Bound: ">= 0.5", Tag: "urgent", Pos: pos}, {Metric: "score", Bound: ">= 0.9", Check: "polite"}, {Metric: "error_rate", Off: true}, {Metric: "pass_rate", Bound: ">= 0.9"}})
		Expect(err).NotTo(HaveOccurred())
		limits := gate.Limits(gates)
		Expect(limits).To(HaveLen(2))
		Expect(limits[0].Pos).To(Equal(pos))
		parts := []results.Part{
			{Where: results.Where{Tag: "urgent"}, Columns: []results.PartColumn{{Metrics: results.Metrics{"pass_rate": {Value: number(0.4), Low: number(0.2), High: number(0.6), N: 10}}, ColumnTally: results.ColumnTally{Failed: 6}}}},
			{Where: results.Where{Check: "polite"}, Columns: []results.PartColumn{{Metrics: results.Metrics{"score": {}}}}},
		}
		s := &results.Summary{Dataset: results.Dataset{Name: "d", Items: 20}, Selected: results.Selected{Items: 20}, Providers: []results.Provider{column("p", results.Metrics{"pass_rate": {Value: number(0.95), N: 20}, "invariant_violations": {Value: number(0), N: 20}})}}
		gate.Judge(gates, gate.Input{})(s, results.Tally{Parts: parts, Columns: make([]results.ColumnTally, 1)})
		Expect(s.Verdict.Code).To(Equal(failure.Gate))
		Expect(s.Verdict.Text).To(Equal("failed: pass_rate of p (tag urgent) is 0.4, bound >= 0.5 (and 1 more)"))
		Expect(s.Verdict.Reasons[0].Text).To(Equal("tag urgent: 0.4 [0.2, 0.6], bound >= 0.5"))
		Expect(*s.Verdict.Reasons[0].Items).To(Equal(6))
		Expect(s.Verdict.Reasons[1].Text).To(Equal("check polite: no data, bound >= 0.9"))
		Expect(*s.Gates[0].Where).To(Equal("tag urgent"))
		Expect(s.Gates[3].Where).To(BeNil())
		Expect(s.Gates[3].Status).To(Equal(results.GateHolds))

		// Of a selection that left its items out it is said, and no failure.
		s.Selected.Items = 3
		s.Providers[0].Metrics["pass_rate"] = results.Metric{Value: number(1), N: 3}
		parts[0].Columns[0].Metrics["pass_rate"] = results.Metric{}
		gate.Judge(gates, gate.Input{})(s, results.Tally{Parts: parts, Columns: make([]results.ColumnTally, 1)})
		Expect(s.Verdict.Code).To(Equal(failure.OK), s.Verdict.Text)
		Expect(s.Warnings).To(HaveLen(2))
		Expect(s.Warnings[0].Code).To(Equal("gate-unselected"))
	})

	DescribeTable("is refused where the part has no such metric", func(spec gate.Spec, message string) {
		spec.Pos = pos
		_, err := gate.Parse([]gate.Spec{spec})
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	},
		Entry(nil, gate.Spec{Metric: "cost_usd", Bound: "<= 1", Check: "polite"}, "a check has no cost_usd"),
		Entry(nil, gate.Spec{Metric: "error_rate", Bound: "<= 1", Check: "polite"}, "a check has no error_rate"),
	)

	It("knows the metrics over repeats, and how many they need", func() {
		gates, err := gate.Parse([]gate.Spec{{Metric: "pass_hat_3", Bound: ">= 0.5", Pos: pos}, {Metric: "pass_at_10", Bound: ">= 0.9"}, {Metric: "pass_at_20", Off: true}, {Metric: "pass_at_3", Bound: ">= 0.9", Check: "x"}})
		Expect(err).NotTo(HaveOccurred())
		k, metric, _ := gate.Repeats(gates)
		Expect([]any{k, metric}).To(Equal([]any{10, "pass_at_10"}))
		Expect(gate.Over(gates)).To(Equal([]int{3, 10, 20}))
		for _, bad := range []string{"pass_at_0", "pass_at_03", "pass_hat_", "pass_at_-1", "pass_hat_x"} {
			_, err := gate.Parse([]gate.Spec{{Metric: bad, Bound: ">= 0.5"}})
			Expect(err).To(MatchError(ContainSubstring("unknown metric")), bad)
		}
	})
})
