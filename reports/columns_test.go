package reports_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
)

// lines are the repeats of an item on a column.
func lines(provider string, statuses ...eval.Status) []eval.Result {
	var out []eval.Result
	for i, s := range statuses {
		out = append(out, eval.Result{Item: "x", Provider: provider, Repeat: i + 1, Status: s})
	}
	return out
}

var _ = Describe("columns", func() {
	DescribeTable("disagree where both judged an item, and differently", func(a, b []eval.Status, want bool) {
		d, ok := reports.Disagree([][]eval.Result{lines("a", a...), lines("b", b...)})
		Expect(ok).To(Equal(want))
		if ok {
			Expect(d.Item).To(Equal("x"))
			Expect(d.Columns).To(HaveLen(2))
		}
	},
		Entry("pass and fail", []eval.Status{eval.Pass}, []eval.Status{eval.Fail}, true),
		Entry("both pass", []eval.Status{eval.Pass}, []eval.Status{eval.Pass}, false),
		Entry("both fail", []eval.Status{eval.Fail}, []eval.Status{eval.Fail}, false),
		Entry("other shares", []eval.Status{eval.Pass, eval.Fail}, []eval.Status{eval.Pass, eval.Pass}, true),
		Entry("the same share of other numbers", []eval.Status{eval.Pass, eval.Fail}, []eval.Status{eval.Fail, eval.Pass, eval.Pass, eval.Fail}, false),
		Entry("one is down", []eval.Status{eval.Pass}, []eval.Status{eval.Error}, false),
		Entry("one was not run", []eval.Status{eval.Fail}, nil, false),
		Entry("errors count for nothing", []eval.Status{eval.Error, eval.Pass}, []eval.Status{eval.Pass, eval.Unjudged}, false),
	)

	It("are quiet about what is quarantined", func() {
		column := lines("b", eval.Fail)
		column[0].Quarantined = true
		_, ok := reports.Disagree([][]eval.Result{lines("a", eval.Pass), column})
		Expect(ok).To(BeFalse())
	})

	It("of a run disagree on the items in its order, each with its shares", func() {
		dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
		Expect(err).NotTo(HaveOccurred())
		run, err := results.Open(dir)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(run.Close)
		var found []reports.Disagreement
		for d, err := range reports.Disagreements(run) {
			Expect(err).NotTo(HaveOccurred())
			found = append(found, d)
		}
		Expect(found).To(Equal([]reports.Disagreement{{Item: "flaky", Columns: []reports.Share{{Provider: "haiku", Passed: 1, Of: 2}, {Provider: "compat:llama3/8b", Passed: 2, Of: 2}}}}))
		run.Summary.Providers = run.Summary.Providers[:1]
		for range reports.Disagreements(run) {
			Fail("one column disagrees with nothing")
		}
	})

	It("have metrics that there are", func() {
		for _, name := range reports.SideBySide {
			_, ok := results.FindMetric(name)
			Expect(ok).To(BeTrue(), name)
		}
	})
})
