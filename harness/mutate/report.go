package mutate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
)

// Result is what came of all mutants, as --json prints it. All keys are always present. Rates are fractions, null where there is no mutant.
type Result struct {
	V       int    `json:"v"`
	Dataset string `json:"dataset"`
	File    string `json:"file"`
	Seed    uint64 `json:"seed"`
	Limit   int    `json:"limit"`
	// Complete is false where the work was interrupted.
	Complete bool            `json:"complete"`
	Verdict  results.Verdict `json:"verdict"`
	// Outcomes counts what was selected, one for each item and provider, Mutated those among them that passed and were mutated.
	Outcomes int                   `json:"outcomes"`
	Mutated  int                   `json:"mutated"`
	LeftOut  results.List[LeftOut] `json:"left_out"`
	Count
	// Equivalent counts places in which a fault comes to the same as the original or another mutant. They are no mutants.
	Equivalent int                    `json:"equivalent"`
	Gate       *Gate                  `json:"gate"`
	Operators  []OperatorCount        `json:"operators"`
	Checks     []Noticing             `json:"checks"`
	Invariants []Noticing             `json:"invariants"`
	Items      results.List[Item]     `json:"items"`
	Survivors  results.List[Survivor] `json:"survivors"`
	Unjudged   []Unjudged             `json:"unjudged"`
}

// Count counts mutants. Open are survivors for which a check could not be asked: it might have noticed.
type Count struct {
	Mutants  int             `json:"mutants"`
	Killed   int             `json:"killed"`
	Survived int             `json:"survived"`
	Open     int             `json:"open"`
	KillRate *results.Number `json:"kill_rate"`
}

func (c *Count) add(killed, open bool) {
	c.Mutants++
	switch {
	case killed:
		c.Killed++
	case open:
		c.Survived++
		c.Open++
	default:
		c.Survived++
	}
	c.KillRate = rateOf(c.Killed, c.Mutants)
}

// rateOf is a share with six decimals, as results write fractions; nil where there is nothing to share.
func rateOf(part, whole int) *results.Number {
	if whole == 0 {
		return nil
	}
	rate := results.Number(math.Round(1e6*float64(part)/float64(whole)) / 1e6)
	return &rate
}

// rate is the kill rate in order to compare, 1 where there is none.
func (c *Count) rate() float64 {
	if c.KillRate == nil {
		return 1
	}
	return float64(*c.KillRate)
}

// OperatorCount is one row of the table of operators.
type OperatorCount struct {
	Name string `json:"name"`
	Count
}

// Noticing is how often a check or an invariant noticed a fault: it held before and fails on the mutant. Of counts the mutants that it judged, Alone those that it noticed and nothing else did. Reports says that it is of weight 0, or of severity warn, and fails no item.
type Noticing struct {
	Name     string `json:"name"`
	At       string `json:"at,omitempty"`
	Of       int    `json:"of"`
	Noticed  int    `json:"noticed"`
	Alone    int    `json:"alone"`
	Unjudged int    `json:"unjudged"`
	Reports  bool   `json:"reports_only"`
}

// Item is what came of the mutants of one outcome, check by check.
type Item struct {
	Item     string `json:"item"`
	Provider string `json:"provider"`
	Repeat   int    `json:"repeat"`
	Count
	Checks []Noticing `json:"checks"`
}

// LeftOut is an outcome that did not pass as recorded, so that nobody can say what would be noticed.
type LeftOut struct {
	Item     string      `json:"item"`
	Provider string      `json:"provider"`
	Repeat   int         `json:"repeat"`
	Status   eval.Status `json:"status"`
	Cause    string      `json:"cause"`
}

// NotRepeatable is the cause of an outcome that passed and, judged again, did not: a check says now this, now that.
const NotRepeatable = "not_repeatable"

// Survivor is a mutant that passes. Before and After are at most 160 characters around the place where they differ, without secrets. Noticed names checks and invariants that noticed and do not decide, Unjudged checks that could not be asked.
type Survivor struct {
	Item     string   `json:"item"`
	Provider string   `json:"provider"`
	Repeat   int      `json:"repeat"`
	Operator string   `json:"operator"`
	What     string   `json:"what"`
	Before   string   `json:"before"`
	After    string   `json:"after"`
	Noticed  []string `json:"noticed"`
	Unjudged []string `json:"unjudged"`
}

// Unjudged is a check that was left out of the judgement of some mutants, and why.
type Unjudged struct {
	Check   string `json:"check"`
	Mutants int    `json:"mutants"`
	Reason  string `json:"reason"`
}

// Gate bounds the kill rate. Status is holds, failed or no_data, which counts as failed.
type Gate struct {
	Bound  string             `json:"bound"`
	Status results.GateStatus `json:"status"`
}

// ranked is an entry of a list with its place in the dataset's order.
type ranked[T any] struct {
	place [4]int // index, column, repeat, number
	entry T
}

// bounded keeps the first entries by an order, so that what is held does not grow with the dataset, and which are kept does not depend on who is finished first.
type bounded[T any] struct {
	count int
	order func(a, b ranked[T]) int
	list  []ranked[T]
}

func inOrder[T any](a, b ranked[T]) int { return slices.Compare(a.place[:], b.place[:]) }

func (b *bounded[T]) add(place [4]int, entry T) {
	b.count++
	b.list = append(b.list, ranked[T]{place, entry})
	if len(b.list) > 2*results.ListLimit {
		b.shrink()
	}
}

func (b *bounded[T]) shrink() {
	slices.SortFunc(b.list, b.order)
	b.list = slices.Delete(b.list, min(len(b.list), results.ListLimit), len(b.list))
}

func (b *bounded[T]) finish() results.List[T] {
	b.shrink()
	out := results.List[T]{Count: b.count, Items: make([]T, len(b.list))}
	for i, x := range b.list {
		out.Items[i] = x.entry
	}
	return out
}

// weakest puts the lowest kill rate first.
func weakest(a, b ranked[Item]) int {
	return cmp.Or(cmp.Compare(a.entry.rate(), b.entry.rate()), inOrder(a, b))
}

// decide makes the verdict: code and text, and all reasons in order of precedence.
func (r *Result) decide(minimum *float64, stale, unavailable, broken int) {
	var reasons []results.Reason
	add := func(code failure.Code, kind string, items int, hint, format string, args ...any) {
		reason := results.Reason{Code: code, Kind: kind, Text: fmt.Sprintf(format, args...)}
		if items > 0 {
			reason.Items = &items
		}
		if hint != "" {
			reason.Hint = &hint
		}
		reasons = append(reasons, reason)
	}
	command := results.Command("echoeval", "run", r.File)
	if !r.Complete {
		add(failure.Interrupted, results.KindInterrupted, 0, "", "interrupted: not all outcomes were mutated")
	}
	if r.Mutants == 0 && r.Complete && stale+unavailable+broken == 0 {
		text := "no outcome passes as recorded, so that nothing can be mutated"
		if r.Mutated > 0 {
			text = "none of the operators finds a place in what was recorded"
		}
		add(failure.Input, results.KindInput, 0, command, "%s", text)
	}
	if broken > 0 {
		add(failure.Internal, results.KindHarness, broken, command, "the harness itself failed on %d of %d outcomes", broken, r.Outcomes)
	}
	if stale > 0 {
		add(failure.Cassette, results.KindCassette, stale, results.Command("echoeval", "record", r.File, "--stale"), "%d of %d outcomes could not be replayed", stale, r.Outcomes)
	}
	if minimum != nil {
		r.Gate = &Gate{Bound: ">= " + results.Number(*minimum).String(), Status: results.GateHolds}
		switch bound := (eval.Bound{Op: ">=", Value: *minimum}); {
		case r.KillRate == nil:
			r.Gate.Status = results.GateNoData
		case !bound.Holds(float64(*r.KillRate)):
			r.Gate.Status = results.GateFailed
			add(failure.Gate, results.KindGate, 0, "", "kill rate %s, bound %s", Percent(r.KillRate), r.Gate.Bound)
			name := "kill_rate"
			reasons[len(reasons)-1].Gate = &name
		}
	}
	if unavailable > 0 {
		add(failure.Unavailable, results.KindUnavailable, unavailable, command, "%d of %d outcomes could not be judged", unavailable, r.Outcomes)
	}
	r.Verdict = results.Verdict{Reasons: []results.Reason{}}
	if len(reasons) == 0 {
		r.Verdict.Text = fmt.Sprintf("%d of %d mutants were noticed, kill rate %s", r.Killed, r.Mutants, Percent(r.KillRate))
		return
	}
	r.Verdict.Reasons = reasons
	r.Verdict.Code, r.Verdict.Text = reasons[0].Code, reasons[0].Text
	if more := len(reasons) - 1; more > 0 {
		r.Verdict.Text += fmt.Sprintf(" (and %d more)", more)
	}
}

// Percent writes a rate for people, "-" where there is none. Only a rate of 1 is 100 %.
func Percent(rate *results.Number) string {
	if rate == nil {
		return "-"
	}
	text := fmt.Sprintf("%.1f %%", 100*float64(*rate))
	if text == "100.0 %" && *rate < 1 {
		return "99.9 %"
	}
	return text
}
