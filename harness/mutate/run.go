package mutate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/ident"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/results"
)

// Options are what [Run] needs beside the experiment.
type Options struct {
	Choice
	// MinKill bounds the kill rate from below; nil is no bound.
	MinKill *float64
}

// Run replays the selected items of an experiment, mutates each outcome that passes and judges the mutants by the item's own checks and invariants. Nothing dials and nothing is written. When ctx ends, what is finished is reported as incomplete.
//
// Two runs with the same recordings and choice give the same report, whatever the concurrency.
func Run(ctx context.Context, e *experiment.Experiment, o Options) (*Result, error) {
	donors, err := o.donors(e)
	if err != nil {
		return nil, err
	}
	answers := &pool{lots: donors, answers: map[string][]Answer{}}
	if o.has("other-answer") {
		only := func(item *dataset.Item) bool { _, ok := donors[item.ID]; return ok }
		if err := e.Try(ctx, only, answers.take); err != nil {
			return nil, err
		}
		answers.sort()
	}
	head := e.Head()
	t := newTally(head)
	err = e.Try(ctx, nil, func(ctx context.Context, line *eval.Result, trial *experiment.Trial) error {
		o.one(ctx, t, answers, line, trial)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.report(head, o, ctx.Err() == nil), nil
}

func (c Choice) has(operator string) bool {
	return len(c.Operators) == 0 || slices.Contains(c.Operators, operator)
}

// mostDonors is how many items lend their answers to others: enough that there are different ones, few enough to be run twice.
const mostDonors = 16

// donors draws the items whose answers are given to others, with their lots.
func (c Choice) donors(e *experiment.Experiment) (map[string]string, error) {
	lots := map[string]string{}
	for item, err := range e.Selected() {
		if err != nil {
			return nil, err
		}
		lots[item.ID] = ident.Source{Seed: c.Seed, Item: item.ID}.ID(0, "donor", 1)
		if len(lots) > mostDonors {
			highest := slices.MaxFunc(slices.Collect(maps.Keys(lots)), func(a, b string) int { return strings.Compare(lots[a], lots[b]) })
			delete(lots, highest)
		}
	}
	return lots, nil
}

// pool are the answers of the donors, by provider.
type pool struct {
	lots map[string]string

	mu      sync.Mutex
	answers map[string][]Answer
}

func (p *pool) take(_ context.Context, line *eval.Result, trial *experiment.Trial) error {
	if trial == nil || trial.Outcome.Err != nil || line.Repeat > 1 || trial.Outcome.Response.Text == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[line.Provider] = append(p.answers[line.Provider], Answer{line.Item, trial.Outcome.Response.Text})
	return nil
}

func (p *pool) sort() {
	for _, list := range p.answers {
		slices.SortFunc(list, func(a, b Answer) int { return strings.Compare(p.lots[a.Item], p.lots[b.Item]) })
	}
}

// others are the answers to all items but one.
func (p *pool) others(provider, item string) []Answer {
	return slices.DeleteFunc(slices.Clone(p.answers[provider]), func(a Answer) bool { return a.Item == item })
}

// checkedTurns are the turns, from 0, whose answers have checks of their own.
func checkedTurns(item *dataset.Item) []int {
	var out []int
	for i, t := range item.Turns {
		if len(t.Checks) > 0 {
			out = append(out, i)
		}
	}
	return out
}

// one mutates one outcome and adds up what was noticed.
func (o Options) one(ctx context.Context, t *tally, answers *pool, line *eval.Result, trial *experiment.Trial) {
	if line.Status != eval.Pass || trial == nil {
		cause := ""
		if line.Cause != nil {
			cause = *line.Cause
		}
		t.leaveOut(line, line.Status, cause)
		return
	}
	was := trial.Judge(ctx, trial.Outcome)
	if ctx.Err() != nil {
		return
	}
	if was.Status != eval.Pass {
		t.leaveOut(line, was.Status, NotRepeatable)
		return
	}
	f := newFindings(was)
	subject := Subject{Item: line.Item, Repeat: line.Repeat, Outcome: trial.Outcome, Checked: checkedTurns(trial.Item()), Others: answers.others(line.Provider, line.Item)}
	for m := range o.Mutants(subject) {
		if m == nil {
			f.equivalent++
			continue
		}
		now := trial.Judge(ctx, m.Outcome)
		if ctx.Err() != nil {
			return // a check may have been cut off
		}
		f.add(line, trial, m, now)
	}
	t.add(line, f)
}

// findings are what the mutants of one outcome showed.
type findings struct {
	was        experiment.Judgement
	equivalent int
	item       Item
	operators  map[string]*Count
	invariants map[string]*Noticing
	reasons    map[[2]string]int // of checks that could not judge
	survivors  []Survivor
}

func newFindings(was experiment.Judgement) *findings {
	f := &findings{was: was, operators: map[string]*Count{}, invariants: map[string]*Noticing{}, reasons: map[[2]string]int{}}
	for _, c := range was.Checks {
		f.item.Checks = append(f.item.Checks, Noticing{Name: c.Name, At: c.At, Reports: c.Weight == 0})
	}
	return f
}

// add takes what was said of one mutant. The checks of a mutant are those of the outcome, in the same order.
func (f *findings) add(line *eval.Result, trial *experiment.Trial, m *Mutant, now experiment.Judgement) {
	var noticed, unjudged []string
	var deciding []*Noticing // that noticed and count
	for i, c := range now.Checks {
		n := &f.item.Checks[i]
		if c.Status == eval.CheckUnjudged {
			n.Unjudged++
			f.reasons[[2]string{c.Name, c.Reason}]++
			unjudged = appendNew(unjudged, c.Name)
			continue
		}
		n.Of++
		if c.Status == eval.CheckFail && f.was.Checks[i].Status == eval.CheckPass {
			n.Noticed++
			noticed = appendNew(noticed, c.Name)
			if !n.Reports {
				deciding = append(deciding, n)
			}
		}
	}
	look := func(names, before []string, reports bool) {
		for _, name := range names {
			if slices.Contains(before, name) {
				continue
			}
			n := f.invariants[name]
			if n == nil {
				n = &Noticing{Name: name, Reports: reports}
				f.invariants[name] = n
			}
			n.Noticed++
			n.Reports = n.Reports && reports
			noticed = appendNew(noticed, name)
			if !reports {
				deciding = append(deciding, n)
			}
		}
	}
	look(now.Broken, f.was.Broken, false)
	look(now.Warned, slices.Concat(f.was.Warned, f.was.Broken), true)
	killed := now.Status == eval.Fail
	if killed && len(deciding) == 1 {
		deciding[0].Alone++
	}
	open := !killed && len(unjudged) > 0
	f.item.Count.add(killed, open)
	count := f.operators[m.Operator.Name]
	if count == nil {
		count = &Count{}
		f.operators[m.Operator.Name] = count
	}
	count.add(killed, open)
	if killed {
		return
	}
	before, after := excerpts(shown(trial, m))
	f.survivors = append(f.survivors, Survivor{
		Item: line.Item, Provider: line.Provider, Repeat: line.Repeat, Operator: m.Operator.Name, What: trial.Redact(m.What),
		Before: before, After: after, Noticed: list(noticed), Unjudged: list(unjudged),
	})
}

// withheld stands for a text that may hold what is left of a secret.
const withheld = "(not shown: a secret stood there before)"

// shown are the texts of a mutant without secrets. A fault may have cut or changed a secret, so that nobody would know it again.
func shown(trial *experiment.Trial, m *Mutant) (before, after string) {
	before, after = trial.Redact(m.Before), trial.Redact(m.After)
	if before != m.Before && after == m.After && after != "" {
		after = withheld
	}
	return before, after
}

func appendNew(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// tally adds up the findings of all outcomes.
type tally struct {
	columns map[string]int

	mu                         sync.Mutex // guards what follows
	outcomes, mutated          int
	stale, unavailable, broken int
	total                      Count
	equivalent                 int
	operators                  map[string]*Count
	checks, invariants         map[string]*Noticing
	reasons                    map[[2]string]int
	leftOut                    bounded[LeftOut]
	items                      bounded[Item]
	survivors                  bounded[Survivor]
}

func newTally(head results.Head) *tally {
	t := &tally{columns: map[string]int{}, operators: map[string]*Count{}, checks: map[string]*Noticing{}, invariants: map[string]*Noticing{}, reasons: map[[2]string]int{}}
	for i, p := range head.Providers {
		t.columns[p.ID] = i
	}
	t.leftOut.order, t.items.order, t.survivors.order = inOrder[LeftOut], weakest, inOrder[Survivor]
	return t
}

func (t *tally) place(line *eval.Result, number int) [4]int {
	return [4]int{line.Index, t.columns[line.Provider], line.Repeat, number}
}

func (t *tally) leaveOut(line *eval.Result, status eval.Status, cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes++
	switch status {
	case eval.Stale:
		t.stale++
	case eval.Error, eval.Unjudged:
		switch {
		case cause == string(eval.ErrHarness):
			t.broken++
		case !line.Quarantined:
			t.unavailable++
		}
	}
	t.leftOut.add(t.place(line, 0), LeftOut{Item: line.Item, Provider: line.Provider, Repeat: line.Repeat, Status: status, Cause: cause})
}

func (t *tally) add(line *eval.Result, f *findings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes++
	t.mutated++
	t.equivalent += f.equivalent
	t.total.join(f.item.Count)
	for name, c := range f.operators {
		sum(t.operators, name).join(*c)
	}
	for _, c := range f.item.Checks {
		sum(t.checks, c.Name).join(c)
	}
	for name, n := range f.invariants {
		sum(t.invariants, name).join(*n)
	}
	for key, n := range f.reasons {
		t.reasons[key] += n
	}
	f.item.Item, f.item.Provider, f.item.Repeat = line.Item, line.Provider, line.Repeat
	t.items.add(t.place(line, 0), f.item)
	for i, s := range f.survivors {
		t.survivors.add(t.place(line, i), s)
	}
}

// sum is the entry of a name, made where there is none.
func sum[T any](in map[string]*T, name string) *T {
	if in[name] == nil {
		in[name] = new(T)
	}
	return in[name]
}

func (c *Count) join(other Count) {
	c.Mutants += other.Mutants
	c.Killed += other.Killed
	c.Survived += other.Survived
	c.Open += other.Open
	c.KillRate = rateOf(c.Killed, c.Mutants)
}

func (n *Noticing) join(other Noticing) {
	n.Reports = other.Reports && (n.Name == "" || n.Reports)
	n.Name = other.Name
	n.Of += other.Of
	n.Noticed += other.Noticed
	n.Alone += other.Alone
	n.Unjudged += other.Unjudged
}

// report is what was found in all.
func (t *tally) report(head results.Head, o Options, complete bool) *Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Result{
		V: 1, Dataset: head.Dataset.Name, File: head.Dataset.File, Seed: o.Seed, Limit: o.Limit, Complete: complete,
		Outcomes: t.outcomes, Mutated: t.mutated, LeftOut: t.leftOut.finish(), Count: t.total, Equivalent: t.equivalent,
		Operators: []OperatorCount{}, Checks: []Noticing{}, Invariants: []Noticing{}, Items: t.items.finish(), Survivors: t.survivors.finish(), Unjudged: []Unjudged{},
	}
	for i := range Operators {
		if name := Operators[i].Name; o.has(name) {
			r.Operators = append(r.Operators, OperatorCount{name, *sum(t.operators, name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.checks)) {
		r.Checks = append(r.Checks, *t.checks[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.invariants)) {
		n := *t.invariants[name]
		n.Of = t.total.Mutants
		r.Invariants = append(r.Invariants, n)
	}
	for key, n := range t.reasons {
		r.Unjudged = append(r.Unjudged, Unjudged{Check: key[0], Mutants: n, Reason: key[1]})
	}
	slices.SortFunc(r.Unjudged, func(a, b Unjudged) int {
		return cmp.Or(strings.Compare(a.Check, b.Check), cmp.Compare(b.Mutants, a.Mutants), strings.Compare(a.Reason, b.Reason))
	})
	if len(r.Unjudged) > results.ListLimit {
		r.Unjudged = r.Unjudged[:results.ListLimit]
	}
	r.decide(o.MinKill, t.stale, t.unavailable, t.broken)
	return r
}
