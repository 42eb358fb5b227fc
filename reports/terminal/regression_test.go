package terminal_test

import (
	"bytes"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/terminal"
)

var _ = Describe("a run that was compared", func() {
	number := func(n float64) *results.Number { v := results.Number(n); return &v }
	shown := func(r *results.Regression, all bool) string {
		GinkgoHelper()
		dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
		Expect(err).NotTo(HaveOccurred())
		run, err := results.Open(dir)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(run.Close)
		run.Summary.Regression = r
		var out bytes.Buffer
		Expect(terminal.Write(&out, run, reports.Options{All: all})).To(Succeed())
		return out.String()
	}
	hash := "e07d5a42b8913cf6"

	It("says against what, what differs, and which items", func() {
		r := &results.Regression{
			Baseline: results.Baseline{File: "baselines/gallery.json", From: "git:origin/main", Hash: &hash}, Changed: []string{"prompt", "dataset"},
			Comparisons: []results.Comparison{
				{Provider: "haiku", Metric: "pass_rate", Pairs: 195, Before: number(0.951), Now: number(0.938), Difference: number(-0.013)},
				{Provider: "haiku", Metric: "score", Pairs: 195, Before: number(1), Now: number(1), Difference: number(0)},
				{Provider: "haiku", Metric: "mean_latency"},
			},
			Items: results.Moved{Worse: results.IDs{Count: 12, IDs: []string{"a", "b\x1b[31m", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}}, NewViolations: results.IDs{Count: 1, IDs: []string{"v"}}},
		}
		Expect(shown(r, false)).To(ContainSubstring("against baselines/gallery.json at git:origin/main: changed prompt, dataset\n" +
			"  pass_rate of haiku: 0.951 -> 0.938 over 195 items\n  worse: a, b\\x1b[31m, c, d, e, f, g, h, i, j and 2 more\n  new violations: v\n\n"))
		Expect(shown(r, true)).To(And(ContainSubstring("score of haiku: 1 -> 1"), ContainSubstring("j, k, l\n")))
	})

	It("says that nothing is worse, or that there is nothing to compare with", func() {
		Expect(shown(&results.Regression{Baseline: results.Baseline{File: "b.json", From: "file", Hash: &hash}}, false)).To(ContainSubstring("against b.json\n  no item is worse or better\n\n"))
		Expect(shown(&results.Regression{Baseline: results.Baseline{File: "b.json", From: "git:x"}}, false)).To(ContainSubstring("against b.json at git:x: there is none yet\n\n"))
	})
})
