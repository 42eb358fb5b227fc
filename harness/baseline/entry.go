package baseline

import (
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/results"
)

// Entry is an item of a run: all its repeats on one provider.
type Entry struct {
	Item
	// Index is the item's place in the dataset, 0 for an item of a baseline.
	Index       int
	Group       *string
	Quarantined bool
	// Skipped says that the dataset skips the item on this provider.
	Skipped bool
	// First is what [results.Run.Trace] needs of the line of repeat 1; its trace is nil where none was kept.
	First eval.Result

	judged, priced, timed int
	cost                  money.USD
	latency               int64
}

// entries groups the lines of a run, which come in the order of the results: all repeats of an item on a provider stand together.
type entries struct {
	open Entry
	emit func(*Entry)
	// counted is how many repeats of an item are compared, 0 for all; see [results.Selected].
	counted int
	// checks are those whose verdicts are kept by themselves.
	checks []string
}

func (g *entries) add(line *eval.Result) {
	if g.open.Index != line.Index || g.open.Provider != line.Provider {
		g.flush()
		g.open = Entry{
			Index: line.Index, Group: line.Group, Quarantined: line.Quarantined, Skipped: true,
			Item:  Item{Item: line.Item, Provider: line.Provider, ItemHash: line.ItemHash, ChecksHash: line.ChecksHash},
			First: eval.Result{Item: line.Item, Provider: line.Provider, Repeat: 1},
		}
	}
	counts := g.counted == 0 || line.Repeat <= g.counted
	g.open.add(line, counts)
	for _, check := range g.checks {
		if seen, ok := (results.Where{Check: check}).Of(line); ok && counts {
			g.open.addCheck(check, seen)
		}
	}
}

func (g *entries) flush() {
	if g.open.Index == 0 {
		return
	}
	g.open.finish()
	g.emit(&g.open)
	g.open = Entry{}
}

// add takes a repeat. One that does not count, because an item was repeated for what came of it, adds its violations alone.
func (e *Entry) add(line *eval.Result, counts bool) {
	if !counts {
		e.addViolations(line)
		return
	}
	// Of a run that was killed a repeat may be missing.
	for len(e.Passed) < line.Repeat-1 {
		e.Passed, e.Scores = append(e.Passed, nil), append(e.Scores, nil)
	}
	e.Skipped = e.Skipped && line.Status == eval.Skipped
	e.addViolations(line)
	if line.Repeat == 1 {
		e.First.Trace = line.Trace
		if line.Output != nil {
			answer := beginning(*line.Output)
			e.Answer = &answer
		}
	}
	if line.Status != eval.Pass && line.Status != eval.Fail {
		e.Passed, e.Scores = append(e.Passed, nil), append(e.Scores, nil)
		return
	}
	passed := line.Status == eval.Pass
	e.judged++
	e.Passed, e.Scores = append(e.Passed, &passed), append(e.Scores, line.Score)
	for i := range line.Checks {
		if line.Checks[i].Status == eval.CheckFail {
			e.Failed = append(e.Failed, line.Checks[i].Name)
		}
	}
	if line.CostUSD != nil {
		e.priced++
		e.cost += *line.CostUSD
	}
	if line.LatencyMS != nil {
		e.timed++
		e.latency += *line.LatencyMS
	}
}

// addCheck takes a line as a check alone sees it.
func (e *Entry) addCheck(check string, seen *eval.Result) {
	if e.Checks == nil {
		e.Checks = map[string]Verdicts{}
	}
	v := e.Checks[check]
	for len(v.Passed) < seen.Repeat {
		v.Passed, v.Scores = append(v.Passed, nil), append(v.Scores, nil)
	}
	if passed := seen.Status == eval.Pass; passed || seen.Status == eval.Fail {
		v.Passed[seen.Repeat-1], v.Scores[seen.Repeat-1] = &passed, seen.Score
	}
	e.Checks[check] = v
}

func (e *Entry) addViolations(line *eval.Result) {
	for _, v := range line.Invariants.Violations {
		if v.Severity == eval.SeverityError {
			e.Violations = append(e.Violations, v.Name)
		}
	}
}

// finish takes the means. One that a repeat is missing from is not known.
func (e *Entry) finish() {
	e.Failed, e.Violations = sorted(e.Failed), sorted(e.Violations)
	n := e.judged
	if n == 0 {
		return
	}
	if e.priced == n {
		cost := money.USD(mean(int64(e.cost), n))
		e.CostUSD = &cost
	}
	if e.timed == n {
		latency := mean(e.latency, n)
		e.LatencyMS = &latency
	}
}

// mean rounds half up; sums are not negative.
func mean(sum int64, n int) int64 { return (sum + int64(n)/2) / int64(n) }

func sorted(names []string) []string {
	slices.Sort(names)
	return append([]string{}, slices.Compact(names)...)
}

// beginning returns the first [MaxAnswer] characters.
func beginning(s string) string {
	if len(s) <= MaxAnswer {
		return s
	}
	n := 0
	for i := range s {
		if n == MaxAnswer {
			return s[:i]
		}
		n++
	}
	return s
}

// Whole reports whether every item of the dataset was to run, and the run has come to its end: what it lacks is not in the dataset.
func Whole(run *results.Run) bool {
	return !run.Incomplete && run.Manifest.Shard == nil && run.Summary.Selected.Items == run.Summary.Dataset.Items
}

// Calls reads the tools that repeat 1 of an entry called, in the order in which the model asked for them; nil where the run kept no trace of it.
func Calls(run *results.Run, e *Entry) ([]string, error) {
	t, ok, err := run.Trace(e.First)
	if err != nil || !ok {
		return nil, err
	}
	return Path(t.Events), nil
}

// Path lists the tools that were called, in the order in which the model asked for them, also those that were refused. It is never nil. The events of calls stand in the order in which they ended.
func Path(t trace.Trace) []string {
	var runs []*trace.ToolRun
	for i := range t.Events {
		if r := t.Events[i].Tool; r != nil {
			runs = append(runs, r)
		}
	}
	slices.SortStableFunc(runs, func(a, b *trace.ToolRun) int { return a.Seq - b.Seq })
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.Name
	}
	return names
}
