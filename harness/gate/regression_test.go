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
