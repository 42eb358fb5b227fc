package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/results"
)

// Input is what a verdict is made of beside the summary.
type Input struct {
	// IgnoreChecks keeps gates from making code 1; it is --fail-on without checks. They are evaluated and shown all the same.
	IgnoreChecks bool
	// IgnoreRegression keeps new violations from making code 1; it is --fail-on without regression.
	IgnoreRegression bool
	// Shard is which part of a run it is, as I/N; only error_rate is judged then. "" is the whole.
	Shard string
	// Interrupted says that the run was stopped from outside.
	Interrupted bool
	// Resume is the command that goes on with the run, "" for the usual one.
	Resume string
	// Errors are what stopped the run or failed in it, each with its code.
	Errors []error
	// Record is the command that records the dataset again, with all that selects what was run; "" is the usual one. What is stale is added to it.
	Record string

	// failing says that a comparison which stays open fails the run.
	failing func(*results.Comparison) bool
}

// Judge returns what results.Plan.Judge takes: it evaluates the gates and decides.
func Judge(gates []Gate, in Input) func(*results.Summary, results.Tally) {
	return func(s *results.Summary, t results.Tally) {
		s.Gates = Evaluate(gates, s.Providers, t.Parts)
		compared, failing := compare(gates, s)
		in := in
		in.failing = failing
		s.Gates = append(s.Gates, compared...)
		s.Warnings = append(s.Warnings, unselected(s)...)
		s.Warnings = append(s.Warnings, openWarnings(s, in)...)
		s.Verdict = Decide(s, t, in)
		if b := s.Cost.Budget; b != nil && !slices.ContainsFunc(s.Verdict.Reasons, func(r results.Reason) bool { return r.Kind == results.KindUnavailable }) {
			hint := goOn(s, in)
			s.Warnings = append(s.Warnings, results.Warning{Code: "budget-reached", Text: b.String(), Hint: &hint})
		}
	}
}

// order is the precedence of the exit codes, as failure.Worse has it. A code's reasons stand together.
var order = []failure.Code{failure.Interrupted, failure.Input, failure.Internal, failure.Cassette, failure.Gate, failure.Unavailable, failure.Inconclusive}

// Code returns the exit code of several datasets: the first in the order of precedence that any of them has, OK where there are none.
func Code(verdicts ...results.Verdict) failure.Code {
	code := failure.OK
	for _, v := range verdicts {
		code = failure.Worse(code, v.Code)
	}
	return code
}

// Decide collects every reason that keeps the run from code 0, in order of precedence, and makes code and text from the first. The gates must have been evaluated.
func Decide(s *results.Summary, t results.Tally, in Input) results.Verdict {
	var reasons []results.Reason
	reasons = append(reasons, interrupted(s, t, in)...)
	reasons = append(reasons, failed(in.Errors)...)
	reasons = append(reasons, harness(s, t)...)
	reasons = append(reasons, cassettes(s, t, in)...)
	reasons = append(reasons, bounds(s, t, in)...)
	reasons = append(reasons, regressions(s, in)...)
	reasons = provenOnly(s, reasons)
	v := results.Verdict{}
	for _, code := range order {
		for _, r := range reasons {
			if r.Code == code {
				v.Reasons = append(v.Reasons, r)
			}
		}
	}
	if len(v.Reasons) == 0 {
		v.Text = passed(s, in.Shard)
		return v
	}
	first := v.Reasons[0]
	v.Code = first.Code
	v.Text = opening[first.Code] + ": " + sentence(s, first)
	more := 0
	for _, r := range v.Reasons[1:] {
		if first.Kind != results.KindCassette || r.Kind != first.Kind {
			more++
		}
	}
	if more > 0 {
		v.Text += fmt.Sprintf(" (and %d more)", more)
	}
	return v
}

// provenOnly takes out what an outage, a stale cassette, an interruption or the selection explains: a gate without data is a failure of its own only where nothing else says why there is none. The gate's status stays no_data.
func provenOnly(s *results.Summary, reasons []results.Reason) []results.Reason {
	explained := slices.ContainsFunc(reasons, func(r results.Reason) bool {
		return r.Code == failure.Interrupted || r.Code == failure.Cassette || r.Code == failure.Unavailable
	})
	return slices.DeleteFunc(reasons, func(r results.Reason) bool {
		g := gateOf(s, r)
		return g != nil && g.Status == results.GateNoData && (explained || notSelected(s, g) || notInjected(s, g))
	})
}

// gateOf is the gate that a reason is about; nil for one that is about none.
func gateOf(s *results.Summary, r results.Reason) *results.Gate {
	if r.Kind != results.KindGate && r.Kind != results.KindUnavailable || r.Gate == nil {
		return nil
	}
	for i := range s.Gates {
		if &s.Gates[i].Metric == r.Gate {
			return &s.Gates[i]
		}
	}
	return nil
}

// notSelected reports whether a gate has no data because the items that it looks at were not selected.
func notSelected(s *results.Summary, g *results.Gate) bool {
	return g.Where != nil && g.Status == results.GateNoData && s.Selected.Items < s.Dataset.Items
}

// notInjected reports whether a gate has no data because the run was not asked to inject faults.
func notInjected(s *results.Summary, g *results.Gate) bool {
	return g.Metric == results.FaultSurvival && g.Status == results.GateNoData && s.Faults == nil
}

// unselected warns of gates that looked at nothing, and of what no gate looks at.
func unselected(s *results.Summary) []results.Warning {
	var out []results.Warning
	for i := range s.Gates {
		g := &s.Gates[i]
		switch {
		case notInjected(s, g):
			hint := results.Command("echoeval", "run", s.Dataset.File, "--faults", "builtin")
			out = append(out, results.Warning{Code: "gate-without-faults", Text: fmt.Sprintf("gate %s of %s: this run injects no faults", g.Metric, g.Provider), Hint: &hint})
		case notSelected(s, g):
			out = append(out, results.Warning{Code: "gate-unselected", Text: fmt.Sprintf("gate %s of %s (%s): no item that it looks at was selected", g.Metric, g.Provider, *g.Where)})
		}
	}
	bounded := slices.ContainsFunc(s.Gates, func(g results.Gate) bool { return g.Metric == results.FaultSurvival })
	broke := slices.ContainsFunc(s.Faults, func(f results.Fault) bool { return f.Broke.Count > 0 })
	if broke && !bounded {
		hint := `gates: {fault_survival: ">= 0.9"}`
		out = append(out, results.Warning{Code: "faults-not-gated", Text: "not every fault was survived, and no gate bounds that", Hint: &hint})
	}
	return out
}

// opening begins the verdict's text.
var opening = map[failure.Code]string{
	failure.Interrupted:  "interrupted",
	failure.Input:        "invalid",
	failure.Internal:     "internal error",
	failure.Cassette:     "cassettes",
	failure.Gate:         "failed",
	failure.Unavailable:  "unavailable",
	failure.Inconclusive: "inconclusive",
}

func reason(code failure.Code, kind, text string) results.Reason {
	return results.Reason{Code: code, Kind: kind, Text: text}
}

func interrupted(s *results.Summary, t results.Tally, in Input) []results.Reason {
	items := 0
	for _, c := range t.Causes {
		if c.Status == eval.NotRun && c.Cause == eval.CauseInterrupted {
			items += c.Items
		}
	}
	if items == 0 && !in.Interrupted {
		return nil
	}
	r := reason(failure.Interrupted, results.KindInterrupted, fmt.Sprintf("%d of %s not run", items, count(s.Selected.Items, "item")))
	r.Items = &items
	return []results.Reason{hinted(r, resume(s, in))}
}

// resume is the command that goes on with the run.
func resume(s *results.Summary, in Input) string {
	if in.Resume != "" {
		return in.Resume
	}
	return results.Command("echoeval", "run", "--resume", s.Dataset.Name)
}

// goOn is the command that goes on with a run that its budget ended, with a limit that covers what is left if that costs at most twice as much a line as what has run.
func goOn(s *results.Summary, in Input) string {
	b := s.Cost.Budget
	each := b.NextUSD
	if ran := s.Counts.Total() - s.Counts.NotRun - s.Counts.Skipped; ran > 0 && b.SpentUSD > 0 {
		each = b.SpentUSD / money.USD(ran)
	}
	needed := b.SpentUSD + 2*(each*money.USD(s.Counts.NotRun)+b.NextUSD)
	return resume(s, in) + " --max-cost " + needed.RoundUp().String()
}

// kinds of the errors that a run reports.
var kinds = map[failure.Code]string{
	failure.Interrupted: results.KindInterrupted,
	failure.Input:       results.KindInput,
	failure.Internal:    results.KindHarness,
	failure.Cassette:    results.KindCassette,
	failure.Unavailable: results.KindUnavailable,
}

// failed makes a reason of each error. One without a code, or with one that an error cannot have, is the harness's.
func failed(list []error) []results.Reason {
	var out []results.Reason
	for _, err := range list {
		if err == nil {
			continue
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok { // each part of a join is a reason of its own
			out = append(out, failed(joined.Unwrap())...)
			continue
		}
		code := failure.CodeOf(err)
		kind, ok := kinds[code]
		if !ok {
			code, kind = failure.Internal, results.KindHarness
		}
		out = append(out, hinted(reason(code, kind, err.Error()), strings.Join(failure.Hints(err), "; ")))
	}
	return out
}

func harness(s *results.Summary, t results.Tally) []results.Reason {
	if t.Harness == 0 {
		return nil
	}
	text := fmt.Sprintf("the harness itself failed on %s", count(t.Harness, "result"))
	for _, c := range t.Causes {
		if c.Status == eval.Error && c.Cause == string(eval.ErrHarness) && c.First.Error != nil {
			text += ": " + c.First.Error.Message
			break
		}
	}
	return []results.Reason{hinted(reason(failure.Internal, results.KindHarness, text), results.Command("echoeval", "show", s.Dataset.Name))}
}

func cassettes(s *results.Summary, t results.Tally, in Input) []results.Reason {
	var stale []results.Cause
	for _, c := range t.Causes {
		if c.Status == eval.Stale {
			stale = append(stale, c)
		}
	}
	record := in.Record
	if record == "" {
		record = results.Command("echoeval", "record", s.Dataset.File)
	}
	if len(stale) == 1 && stale[0].Items == 1 {
		record += " " + results.Command("--item", stale[0].First.Item)
	}
	record += " --stale"
	var out []results.Reason
	for _, c := range stale {
		r := reason(failure.Cassette, results.KindCassette, fmt.Sprintf("%s stale: %s", count(c.Items, "item"), StaleWord(c)))
		r.Items = &c.Items
		hint := record
		if (c.Cause == eval.CauseUnreadable || c.Cause == eval.CauseSecret) && c.First.Error != nil && c.First.Error.Hint != nil && *c.First.Error.Hint != "" {
			hint = *c.First.Error.Hint // such as git lfs pull: to record would replace a recording that is only elsewhere
		}
		out = append(out, hinted(r, hint))
	}
	return out
}

// StaleWord says why lines are stale: the drift class, or what is wrong with the cassette.
func StaleWord(c results.Cause) string {
	switch c.Cause {
	case eval.CauseMissing:
		return "no cassette"
	case eval.CauseLeftOver:
		return "recorded interactions left over"
	case eval.CauseUnreadable:
		return "unreadable cassette"
	case eval.CauseSecret:
		return "the recording held a secret"
	}
	if c.Detail != "" {
		return c.Detail
	}
	return c.Cause
}

// bounds makes the reasons of gates that do not hold. That of error_rate is code 5 and never 1.
func bounds(s *results.Summary, t results.Tally, in Input) []results.Reason {
	columns := map[string]results.ColumnTally{}
	for i, p := range s.Providers {
		if i < len(t.Columns) {
			columns[p.ID] = t.Columns[i]
		}
	}
	var out []results.Reason
	for i := range s.Gates {
		g := &s.Gates[i]
		if g.Metric == regression || g.Status != results.GateFailed && g.Status != results.GateNoData {
			continue
		}
		unavailable := g.Metric == errorRate
		if in.IgnoreChecks && !unavailable || unavailable && g.Status == results.GateNoData && g.Default {
			continue
		}
		r := reason(failure.Gate, results.KindGate, measured(s, t, g))
		r.Gate, r.Provider = &g.Metric, &g.Provider
		column := columns[g.Provider]
		if g.Where != nil {
			column = tallyOf(s, t, g)
		}
		switch g.Metric {
		case passRate, "item_pass_rate", "score":
			r.Items = &column.Failed
		case violations:
			r.Items = &column.Violated
		case errorRate:
			if g.Status == results.GateNoData {
				break // nobody was away: nothing was asked
			}
			r.Code, r.Kind, r.Items = failure.Unavailable, results.KindUnavailable, &column.Unavailable
			most := commonest(t)
			r.Text = fmt.Sprintf("%s could not be judged%s: error_rate %s", count(column.Unavailable, "item"), why(most), r.Text)
			if most != nil && most.Status == eval.NotRun && s.Cost.Budget != nil {
				out = append(out, hinted(r, goOn(s, in)))
				continue
			}
		}
		out = append(out, hinted(r, results.Command("echoeval", "show", s.Dataset.Name)))
	}
	return out
}

// tallyOf counts the items of the part of a run that a gate looks at.
func tallyOf(s *results.Summary, t results.Tally, g *results.Gate) results.ColumnTally {
	for i := range s.Providers {
		for _, part := range t.Parts {
			if s.Providers[i].ID == g.Provider && part.Where.String() == *g.Where && i < len(part.Columns) {
				return part.Columns[i].ColumnTally
			}
		}
	}
	return results.ColumnTally{}
}

// commonest is the commonest cause of lines that could not be judged, nil where there are none.
func commonest(t results.Tally) *results.Cause {
	var most *results.Cause
	for i := range t.Causes {
		c := &t.Causes[i]
		judged := c.Status == eval.Error || c.Status == eval.Unjudged || c.Status == eval.NotRun && c.Cause == eval.CauseBudget
		if judged && (most == nil || c.Items > most.Items) {
			most = c
		}
	}
	return most
}

// why says a cause in brackets.
func why(most *results.Cause) string {
	if most == nil || most.Cause == "" {
		return ""
	}
	text := " (" + most.Cause
	if most.Detail != "" {
		text += " " + most.Detail
	}
	return text + ")"
}

// measured gives value, interval and bound: "0.93 [0.886, 0.958], bound >= 0.95".
func measured(s *results.Summary, t results.Tally, g *results.Gate) string {
	text := "no data"
	if g.Value != nil {
		unit := unitOf(g.Metric)
		text = unit.Format(*g.Value)
		for i, p := range s.Providers {
			m := p.Metrics[g.Metric]
			if g.Where != nil {
				m = partOf(t.Parts, *g.Where, i)[g.Metric]
			}
			if p.ID == g.Provider && m.Low != nil && m.High != nil {
				text += fmt.Sprintf(" [%s, %s]", unit.Format(*m.Low), unit.Format(*m.High))
			}
		}
	}
	text += bounded(g)
	if g.Where != nil {
		text = *g.Where + ": " + text
	}
	return text
}

func bounded(g *results.Gate) string {
	if g.Bound == nil {
		return ""
	}
	return ", bound " + *g.Bound
}

func unitOf(metric string) results.Unit {
	kind, _ := results.FindMetric(metric)
	return kind.Unit
}

// sentence is the reason as the verdict says it.
func sentence(s *results.Summary, r results.Reason) string {
	if r.Kind == results.KindCassette {
		return fmt.Sprintf("%d of %s stale", s.Counts.Stale, count(s.Counts.Total(), "result"))
	}
	g := gateOf(s, r)
	if r.Kind != results.KindGate || g == nil {
		return r.Text
	}
	name := fmt.Sprintf("%s of %s", g.Metric, g.Provider)
	if g.Where != nil {
		name += " (" + *g.Where + ")"
	}
	if g.Value == nil {
		return fmt.Sprintf("%s has no data%s", name, bounded(g))
	}
	return fmt.Sprintf("%s is %s%s", name, unitOf(g.Metric).Format(*g.Value), bounded(g))
}

func passed(s *results.Summary, shard string) string {
	text := fmt.Sprintf("passed: %d of %s passed", s.Counts.Pass, count(s.Counts.Total(), "result"))
	if s.Regression != nil && s.Regression.Items.Worse.Count > 0 {
		text += fmt.Sprintf(", %s worse than in the baseline", count(s.Regression.Items.Worse.Count, "item"))
	}
	if open(s) {
		text += ", regression inconclusive"
	}
	if shard != "" {
		return text + ", part " + shard + " is judged by error_rate alone: the merged run has the verdict"
	}
	for i := range s.Gates {
		g := &s.Gates[i]
		if g.Status == results.GateFailed || g.Status == results.GateNoData && !notInjected(s, g) {
			return text + ", gates that failed do not count"
		}
	}
	for _, g := range s.Gates {
		if g.Status == results.GateHolds {
			return text + ", all gates hold"
		}
	}
	return text + ", no gate is on"
}

func hinted(r results.Reason, hint string) results.Reason {
	if hint != "" {
		r.Hint = &hint
	}
	return r
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
