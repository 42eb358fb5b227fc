package evaltest

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/cmd/echoeval/internal/cli"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/results"
)

// lineOf is a line of that status; broken says that an invariant of severity error is.
func lineOf(status eval.Status, broken bool) eval.Result {
	r := eval.Result{Item: "a", Provider: "haiku", Status: status}
	if broken {
		r.Invariants.Violations = []eval.Violation{{Name: "path-confined", Severity: eval.SeverityError, Evidence: "../a"}}
	}
	return r
}

func quarantined(r eval.Result) eval.Result {
	r.Quarantined = true
	return r
}

var _ = DescribeTable("the verdict on an item", func(item cli.Listed, lines []eval.Result, kinds []string, fail, skip string) {
	var reasons []results.Reason
	for _, kind := range kinds {
		reasons = append(reasons, results.Reason{Kind: kind})
	}
	v := judge(item, lines, reasons)
	Expect(v.fail).To(Equal(fail))
	Expect(v.skip).To(Equal(skip))
	Expect(v.shown == "").To(Equal(fail == "" && skip == "" && !seen(lines, eval.Fail) || seen(lines, eval.Skipped)), v.shown)
},
	Entry("passed", cli.Listed{}, []eval.Result{lineOf(eval.Pass, false)}, []string{results.KindGate}, "", ""),
	Entry("failed, and a gate with it", cli.Listed{}, []eval.Result{lineOf(eval.Fail, false)}, []string{results.KindGate}, "the item failed", ""),
	Entry("failed, and a regression", cli.Listed{}, []eval.Result{lineOf(eval.Fail, false)}, []string{results.KindRegression}, "the item failed", ""),
	Entry("failed, and no gate did", cli.Listed{}, []eval.Result{lineOf(eval.Fail, false)}, []string{results.KindUnavailable}, "", "the item failed, and the dataset's gates put up with it"),
	Entry("one repeat of two failed", cli.Listed{}, []eval.Result{lineOf(eval.Pass, false), lineOf(eval.Fail, false)}, []string{results.KindGate}, "the item failed", ""),
	Entry("pass_if is kept", cli.Listed{PassIf: &eval.Bound{Op: ">=", Value: 0.5}}, []eval.Result{lineOf(eval.Pass, false), lineOf(eval.Fail, false)}, []string{results.KindGate}, "", ""),
	Entry("pass_if is kept, and an invariant broken", cli.Listed{PassIf: &eval.Bound{Op: ">=", Value: 0.5}}, []eval.Result{lineOf(eval.Pass, false), lineOf(eval.Fail, true)}, []string{results.KindGate}, "the item failed: 1 of 2 repeats passed, pass_if >= 0.5", ""),
	Entry("not run, for the run was interrupted", cli.Listed{}, []eval.Result{lineOf(eval.NotRun, false)}, []string{results.KindInterrupted}, "the item could not be judged", ""),
	Entry("stale beside a pass", cli.Listed{}, []eval.Result{lineOf(eval.Pass, false), lineOf(eval.Stale, false)}, nil, "the recording does not fit", ""),
	Entry("in quarantine, and failed", cli.Listed{Quarantine: until}, []eval.Result{quarantined(lineOf(eval.Fail, false))}, []string{results.KindGate}, "", "in quarantine by ana until 2027-01-31: race"),
	Entry("in quarantine, without a verdict", cli.Listed{Quarantine: until}, []eval.Result{quarantined(lineOf(eval.Error, false))}, []string{results.KindUnavailable}, "", "in quarantine by ana until 2027-01-31: race"),
	Entry("in quarantine, and an invariant is broken", cli.Listed{Quarantine: until}, []eval.Result{quarantined(lineOf(eval.Fail, true))}, []string{results.KindGate}, "the item failed", ""),
	Entry("in quarantine no more", cli.Listed{Quarantine: until}, []eval.Result{lineOf(eval.Fail, false)}, []string{results.KindGate}, "the item failed", ""),
	Entry("in quarantine, and passed", cli.Listed{Quarantine: until}, []eval.Result{quarantined(lineOf(eval.Pass, false))}, nil, "", ""),
	Entry("skipped", cli.Listed{Skip: "later\x1b[2J"}, []eval.Result{lineOf(eval.Skipped, false)}, nil, "", `the dataset skips the item: later\x1b[2J`),
)

var until = &dataset.Quarantine{Owner: "ana", Reason: "race", Until: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}

func seen(lines []eval.Result, status eval.Status) bool {
	for _, line := range lines {
		if line.Status == status {
			return true
		}
	}
	return false
}
