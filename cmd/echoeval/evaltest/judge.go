package evaltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/echoeval/echoeval/cmd/echoeval/internal/cli"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/matchers"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

// verdict is what becomes of a spec: it fails, or is skipped, or passes where both are empty. shown is the evidence, on lines of its own that begin with a line end.
type verdict struct{ fail, skip, shown string }

// judge makes one verdict of the repeats of an item on a provider. reasons are those of the whole run.
func judge(item cli.Listed, lines []eval.Result, reasons []results.Reason) verdict {
	var v verdict
	var passed, judged int
	seen := map[eval.Status]bool{}
	violated := false
	for _, line := range lines {
		seen[line.Status] = true
		switch line.Status {
		case eval.Pass:
			passed++
			judged++
		case eval.Fail:
			judged++
		}
		if line.Status != eval.Pass && line.Status != eval.Skipped {
			v.shown += "\n" + evidence(line)
		}
		violated = violated || slices.ContainsFunc(line.Invariants.Violations, func(v eval.Violation) bool { return v.Severity == eval.SeverityError })
	}
	const (
		gates       = "the item failed, and the dataset's gates put up with it"
		unavailable = "the item could not be judged, and the gate error_rate puts up with it"
	)
	switch {
	case seen[eval.Stale]:
		v.fail = "the recording does not fit"
	case item.Quarantine != nil && lines[0].Quarantined && !violated && passed < len(lines) && !seen[eval.Skipped]:
		q := item.Quarantine
		v.skip = fmt.Sprintf("in quarantine by %s until %s: %s", escape.Line(q.Owner), q.Until.Format(time.DateOnly), escape.Line(q.Reason))
	case seen[eval.Error] || seen[eval.Unjudged] || seen[eval.NotRun]:
		v.fail = "the item could not be judged"
		if !has(reasons, results.KindUnavailable, results.KindInterrupted) && !violated {
			v.fail, v.skip = "", unavailable
		}
	case seen[eval.Skipped]:
		v.skip = "not for this provider"
		if item.Skip != "" {
			v.skip = "the dataset skips the item: " + escape.Line(item.Skip)
		}
	case item.PassIf != nil && item.PassIf.Holds(float64(passed)/float64(judged)) && !violated:
		// The share of the repeats decides.
	case seen[eval.Fail]:
		v.fail = "the item failed"
		if !has(reasons, results.KindGate, results.KindRegression) {
			v.fail, v.skip = "", gates
		}
	}
	if v.fail != "" && item.PassIf != nil && judged > 0 {
		v.fail += fmt.Sprintf(": %d of %d repeats passed, pass_if %s %v", passed, judged, item.PassIf.Op, item.PassIf.Value)
	}
	return v
}

// has reports whether the run has a reason of one of the kinds.
func has(reasons []results.Reason, kinds ...string) bool {
	return slices.ContainsFunc(reasons, func(r results.Reason) bool { return slices.Contains(kinds, r.Kind) })
}

// evidence is why a line did not pass.
func evidence(line eval.Result) string {
	m := matchers.Pass()
	if _, err := m.Match(line); err != nil {
		return err.Error()
	}
	return m.FailureMessage(line)
}
