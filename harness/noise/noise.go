// Package noise splits the noise of repeats into what the agent, its environment and its judges add, and says of items that come and go which of them it was.
//
// One run repeats everything. Two more hold something fixed, as `record --freeze` records them: one repeats the judges alone, on the frozen answer of repeat 1; the other repeats models and judges, with the results of tools frozen. With V the variance of an item's repeats in each, and as variances of nested sources add up (the law of total variance),
//
//	judge       = V(agent frozen)
//	agent       = V(tools frozen) - V(agent frozen)
//	environment = V(all)          - V(tools frozen)
//
// each as the mean over items. What a frozen value happened to be is a draw, so that each is an unbiased estimate; one that comes out below nothing is nothing, and its interval says how much it may be. A part that no run measures is not told.
package noise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/stats"
)

// Ledger is what was found. Its JSON is the format of `echoeval noise --format json`.
type Ledger struct {
	V       int      `json:"v"`
	Dataset string   `json:"dataset"`
	Columns []Column `json:"columns"`
}

// Version is that of the ledger's JSON.
const Version = 1

// Column is one provider.
type Column struct {
	Provider string `json:"provider"`
	// Items is how many were repeated in every run that was given, of All that were repeated in the first.
	Items int `json:"items"`
	All   int `json:"all"`
	// Metrics are pass_rate and score; none without items.
	Metrics []Metric `json:"metrics"`
	Flaky   []Flaky  `json:"flaky"`
	// Calls is how many calls of frozen tools were repeated with equal arguments, Thawed how many of them gave another result all the same: what the environment adds through them counts as the agent's. Null without a run with frozen tools, or without its traces.
	Calls  *int `json:"calls"`
	Thawed *int `json:"thawed"`
}

// Metric is the noise of one metric: Total is the variance of repeats, and Parts are what it is made of.
type Metric struct {
	Name  string `json:"name"`
	Total Part   `json:"total"`
	Parts []Part `json:"parts"`
}

// The sources. One that is named Together stands for two that no run tells apart.
const (
	Judge       = "judge"
	Agent       = "agent"
	Environment = "environment"
	Together    = "agent and environment"
	NotTold     = "not told"
)

// Part is a variance, the mean over items, with an interval of 95 %. All but Source are null where it is not told; Why then says what would tell it.
type Part struct {
	Source   string          `json:"source"`
	Variance *results.Number `json:"variance"`
	Low      *results.Number `json:"low"`
	High     *results.Number `json:"high"`
	// Share is the part of the total; null where there is no noise.
	Share *results.Number `json:"share"`
	Why   string          `json:"why,omitempty"`
}

// Told reports whether the part was measured.
func (p *Part) Told() bool { return p.Variance != nil }

// Flaky is an item whose repeats disagree about the verdict in at least one of the runs.
type Flaky struct {
	Item string `json:"item"`
	// Blame is the source that moves the item most, or NotTold.
	Blame       string `json:"blame"`
	Quarantined bool   `json:"quarantined"`
	All         Count  `json:"all"`
	// JudgeAlone and ToolsFrozen are the repeats of the other runs; null where there is none or it lacks the item.
	JudgeAlone  *Count `json:"judge_alone"`
	ToolsFrozen *Count `json:"tools_frozen"`
	Why         string `json:"why,omitempty"`
}

// Count is how many of the judged repeats passed.
type Count struct {
	Passed int `json:"passed"`
	Of     int `json:"of"`
}

// disagrees reports whether some passed and some did not.
func (c *Count) disagrees() bool { return c != nil && c.Passed > 0 && c.Passed < c.Of }

// observed are the repeats of one item on one provider.
type observed struct {
	item, provider, hash string
	group                *string
	quarantined          bool
	passed, scores       []float64
	said                 []string // what the agent did, beside passed
}

func (o *observed) count() *Count {
	c := &Count{Of: len(o.passed)}
	for _, x := range o.passed {
		c.Passed += int(x)
	}
	return c
}

type key struct{ item, provider string }

// arm are the repeats of a run, in its order.
type arm struct {
	run   *results.Run
	order []key
	items map[key]*observed
}

func read(run *results.Run) (*arm, error) {
	a := &arm{run: run, items: map[key]*observed{}}
	for line, err := range run.Lines() {
		if err != nil {
			return nil, err
		}
		if counted := run.Summary.Selected.Counted(); counted > 0 && line.Repeat > counted {
			continue // it was added for what came of those before it
		}
		if line.Status != eval.Pass && line.Status != eval.Fail {
			continue
		}
		k := key{line.Item, line.Provider}
		o := a.items[k]
		if o == nil {
			o = &observed{item: line.Item, provider: line.Provider, hash: line.ItemHash + line.ChecksHash, group: line.Group, quarantined: line.Quarantined}
			a.items[k] = o
			a.order = append(a.order, k)
		}
		o.passed = append(o.passed, verdict(line.Status))
		if line.Score != nil {
			o.scores = append(o.scores, float64(*line.Score))
		}
		o.said = append(o.said, said(&line))
	}
	return a, nil
}

func verdict(status eval.Status) float64 {
	if status == eval.Pass {
		return 1
	}
	return 0
}

// said tells what the agent did in two repeats apart: what it answered, in how many steps and calls, with how many tokens.
func said(line *eval.Result) string {
	text := ""
	if line.Output != nil {
		text = *line.Output
	}
	return fmt.Sprintf("%d %d %+v %s", line.Steps, line.ToolCalls, line.Usage, text)
}

// Runs are those that a ledger is made of: All repeats everything, JudgeAlone has the agent frozen and ToolsFrozen the tools; the last two may be nil.
type Runs struct{ All, JudgeAlone, ToolsFrozen *results.Run }

// New reads the runs, which must be of one dataset. A run in which the agent was to be frozen and was not is an error of code Input, and so are runs that repeat nothing.
func New(runs Runs) (*Ledger, error) {
	l := &Ledger{V: Version, Dataset: runs.All.Summary.Dataset.Name, Columns: []Column{}}
	var arms [3]*arm
	for i, run := range []*results.Run{runs.All, runs.JudgeAlone, runs.ToolsFrozen} {
		if run == nil {
			continue
		}
		if name := run.Summary.Dataset.Name; name != l.Dataset {
			return nil, failure.New(failure.Input, "the runs are of two datasets, %s and %s", l.Dataset, name)
		}
		a, err := read(run)
		if err != nil {
			return nil, err
		}
		arms[i] = a
	}
	all, judge, tools := arms[0], arms[1], arms[2]
	if err := frozen(judge); err != nil {
		return nil, err
	}
	repeated := false
	for _, p := range runs.All.Summary.Providers {
		c, err := column(p.ID, all, judge, tools)
		if err != nil {
			return nil, err
		}
		repeated = repeated || c.All > 0
		l.Columns = append(l.Columns, c)
	}
	if !repeated {
		return nil, failure.WithHint(failure.New(failure.Input, "the run %s has no item that was judged more than once", runs.All.Manifest.ID), "--repeat 5")
	}
	return l, nil
}

// frozen proves that every repeat of an item has the same answer.
func frozen(judge *arm) error {
	if judge == nil {
		return nil
	}
	for _, k := range judge.order {
		o := judge.items[k]
		for _, said := range o.said[1:] {
			if said != o.said[0] {
				return failure.WithHint(failure.New(failure.Input, "the run %s does not have the agent frozen: the repeats of %q on %q have different answers", judge.run.Manifest.ID, k.item, k.provider), "echoeval record DATASET --repeat 5 --freeze agent --cassettes noise/agent")
			}
		}
	}
	return nil
}

func column(provider string, all, judge, tools *arm) (Column, error) {
	c := Column{Provider: provider, Metrics: []Metric{}, Flaky: []Flaky{}}
	var used [][3]*observed
	for _, k := range all.order {
		o := all.items[k]
		if k.provider != provider || len(o.passed) < 2 {
			continue
		}
		c.All++
		row, whole := [3]*observed{0: o}, true
		for i, a := range []*arm{1: judge, 2: tools} {
			if a == nil {
				continue
			}
			other := a.items[k]
			if other != nil && other.hash != o.hash {
				other = nil // asked or judged otherwise
			}
			whole = whole && other != nil && len(other.passed) > 1
			row[i] = other
		}
		if whole {
			used = append(used, row)
		}
		if f, ok := flaky(row, judge != nil, tools != nil); ok {
			c.Flaky = append(c.Flaky, f)
		}
	}
	c.Items = len(used)
	if c.Items > 0 {
		for _, m := range []struct {
			name   string
			values func(*observed) []float64
		}{{"pass_rate", func(o *observed) []float64 { return o.passed }}, {"score", func(o *observed) []float64 { return o.scores }}} {
			c.Metrics = append(c.Metrics, metric(m.name, used, m.values, judge != nil, tools != nil))
		}
	}
	if tools != nil {
		var err error
		if c.Calls, c.Thawed, err = thawed(tools.run, provider); err != nil {
			return c, err
		}
	}
	return c, nil
}

// variance is the unbiased variance of repeats; 0 for fewer than two.
func variance(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	mean, sum := 0.0, 0.0
	for _, x := range values {
		mean += x / n
	}
	for _, x := range values {
		sum += (x - mean) * (x - mean)
	}
	return sum / (n - 1)
}

const (
	whyJudge = "record --freeze agent, and give its run as --judge"
	whyTools = "record --freeze tools, and give its run as --agent"
)

func metric(name string, used [][3]*observed, values func(*observed) []float64, judged, tooled bool) Metric {
	m := Metric{Name: name}
	// The largest variance that repeats of a fraction can have; the interval grants it to one more item where none varies.
	most := 0.0
	for _, row := range used {
		for _, o := range row {
			if o != nil {
				n := float64(len(values(o)))
				most = max(most, 0.25*n/max(1, n-1))
			}
		}
	}
	of := func(o *observed) float64 {
		if o == nil {
			return 0
		}
		return variance(values(o))
	}
	part := func(source string, of func(row [3]*observed) (less, more float64)) Part {
		pairs := stats.Pairs{Scale: most}
		for _, row := range used {
			less, more := of(row)
			pairs.Add(less, more, row[0].group, false)
		}
		found, _ := pairs.Compare(stats.Confidence)
		p := Part{Source: source, Variance: number(max(0, found.Difference))}
		if found.Bounded {
			p.Low, p.High = number(max(0, found.Low)), number(max(0, found.High))
		}
		return p
	}
	m.Total = part("all", func(row [3]*observed) (float64, float64) { return 0, of(row[0]) })
	add := func(p Part) {
		if p.Told() && *m.Total.Variance > 0 {
			p.Share = number(min(1, float64(*p.Variance)/float64(*m.Total.Variance)))
		}
		m.Parts = append(m.Parts, p)
	}
	if judged {
		add(part(Judge, func(row [3]*observed) (float64, float64) { return 0, of(row[1]) }))
	} else {
		add(Part{Source: Judge, Why: whyJudge})
	}
	switch {
	case judged && tooled:
		add(part(Agent, func(row [3]*observed) (float64, float64) { return of(row[1]), of(row[2]) }))
		add(part(Environment, func(row [3]*observed) (float64, float64) { return of(row[2]), of(row[0]) }))
	case judged:
		add(part(Together, func(row [3]*observed) (float64, float64) { return of(row[1]), of(row[0]) }))
		add(Part{Source: Environment, Why: whyTools})
	case tooled:
		add(Part{Source: Agent, Why: whyJudge})
		add(part(Environment, func(row [3]*observed) (float64, float64) { return of(row[2]), of(row[0]) }))
	default:
		add(Part{Source: Agent, Why: whyTools})
		add(Part{Source: Environment, Why: whyTools})
	}
	return m
}

func number(v float64) *results.Number {
	n := results.Number(math.Round(v*1e6) / 1e6)
	return &n
}

// flaky says whether an item comes and goes, and what is to blame.
func flaky(row [3]*observed, judged, tooled bool) (Flaky, bool) {
	f := Flaky{Item: row[0].item, Quarantined: row[0].quarantined, All: *row[0].count(), Blame: NotTold}
	if row[1] != nil {
		f.JudgeAlone = row[1].count()
	}
	if row[2] != nil {
		f.ToolsFrozen = row[2].count()
	}
	if !f.All.disagrees() && !f.JudgeAlone.disagrees() && !f.ToolsFrozen.disagrees() {
		return f, false
	}
	f.Blame, f.Why = blame(row, judged, tooled)
	return f, true
}

type sized struct {
	source string
	size   float64
}

// blame names the source that moves an item's verdict most.
func blame(row [3]*observed, judged, tooled bool) (source, why string) {
	var v [3]float64
	for i, o := range row {
		if o != nil {
			v[i] = variance(o.passed)
		}
	}
	haveJudge, haveTools := row[1] != nil && len(row[1].passed) > 1, row[2] != nil && len(row[2].passed) > 1
	switch {
	case haveJudge && haveTools:
		parts := []sized{{Judge, v[1]}, {Agent, v[2] - v[1]}, {Environment, v[0] - v[2]}}
		most := slices.MaxFunc(parts, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
		return most.source, ""
	case haveJudge && v[1] >= v[0]-v[1]:
		return Judge, ""
	case haveJudge:
		return Together, whyTools
	case bothWays(row[0]):
		return Judge, "the same answer was judged both ways"
	case haveTools && v[2] < v[0]-v[2]:
		return Environment, ""
	}
	var missing []string
	if !judged {
		missing = append(missing, whyJudge)
	}
	if !tooled {
		missing = append(missing, whyTools)
	}
	if len(missing) == 0 {
		return NotTold, "it was not judged in the other runs, or otherwise"
	}
	return NotTold, strings.Join(missing, "; ")
}

// bothWays reports whether two repeats in which the agent did the same have different verdicts.
func bothWays(o *observed) bool {
	verdicts := map[string]float64{}
	for i, said := range o.said {
		if was, ok := verdicts[said]; ok && was != o.passed[i] {
			return true
		}
		verdicts[said] = o.passed[i]
	}
	return false
}
