// Package compare sets runs and baselines side by side: per pair of columns the metrics before, now and their difference, and the items that disagree with what the agent did and said on either side.
//
// Items are paired by id, and only where they are asked and judged alike; repeats are collapsed to the item's mean first, so that with equal repeats this is the pairing by item and repeat. Differences have an interval and a test, whose p-values are corrected over all pairs of columns, metric by metric (Holm).
package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/stats"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// Side is a run or a baseline; exactly one of the two is set.
type Side struct {
	Name     string
	Run      *results.Run
	Baseline *baseline.File
}

// Document is a comparison, as --json prints it. All keys are always present.
type Document struct {
	V           int          `json:"v"`
	Dataset     string       `json:"dataset"`
	Sides       []string     `json:"sides"`
	Columns     []Numbers    `json:"columns"`
	Comparisons []Comparison `json:"comparisons"`
}

// Numbers are a column's own metrics, those of [reports.SideBySide], over all of its items: also those that cannot be compared. A baseline has none.
type Numbers struct {
	Column
	Metrics map[string]results.Metric `json:"metrics"`
}

// Column is one provider of one side.
type Column struct {
	Side     string `json:"side"`
	Provider string `json:"provider"`
}

// Comparison is two columns. Metrics are in the unit of each; a provider in them is that of Now.
type Comparison struct {
	Before    Column               `json:"before"`
	Now       Column               `json:"now"`
	Changed   []string             `json:"changed"`
	Metrics   []results.Comparison `json:"metrics"`
	Effects   []Effect             `json:"effects"`
	Items     results.Moved        `json:"items"`
	Disagree  []Disagreement       `json:"disagree"`
	Unchanged int                  `json:"unchanged"`
}

// Effect is the difference of a metric in units of its spread over items (Cohen's d of paired data), with its interval of 95 %; null is unbounded. Metrics whose differences are all alike have none.
type Effect struct {
	Metric string          `json:"metric"`
	D      *results.Number `json:"d"`
	Low    *results.Number `json:"low"`
	High   *results.Number `json:"high"`
}

// Disagreement is an item on which the columns differ. Kind is one of [baseline.Kind]; an item that is the same but for a new violation has kind same.
type Disagreement struct {
	Item          string   `json:"item"`
	Kind          string   `json:"kind"`
	NewViolations []string `json:"new_violations"`
	Before        *Outcome `json:"before"`
	Now           *Outcome `json:"now"`
}

// Outcome is what an item did on one column. Passed counts judged repeats, of Of. Calls is null where no trace was kept.
type Outcome struct {
	Passed     int      `json:"passed"`
	Of         int      `json:"of"`
	Failed     []string `json:"failed"`
	Violations []string `json:"violations"`
	Calls      []string `json:"calls"`
	Answer     *string  `json:"answer"`
}

// Pairs is the number of items that were compared.
func (c *Comparison) Pairs() int { return c.Metrics[0].Pairs }

// Regressed reports whether anything is worse without doubt: the metric that is bounded, or a new violation of severity error.
func (d *Document) Regressed() bool {
	return slices.ContainsFunc(d.Comparisons, func(c Comparison) bool {
		return c.Items.NewViolations.Count > 0 || slices.ContainsFunc(c.Metrics, func(m results.Comparison) bool { return m.Status == results.CompareRegressed })
	})
}

// Open lists what the bounded metric leaves open, for people.
func (d *Document) Open() []string {
	var out []string
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		for k := range c.Metrics {
			if m := &c.Metrics[k]; m.MaxDrop != nil && (m.Status == results.CompareInconclusive || m.Status == results.CompareNoBaseline) {
				out = append(out, c.title(len(d.Sides) > 2)+": "+judged(m))
			}
		}
	}
	return out
}

// Paired reports whether every comparison has at least one pair.
func (d *Document) Paired() bool {
	return !slices.ContainsFunc(d.Comparisons, func(c Comparison) bool { return c.Pairs() == 0 })
}

// DefaultBound is what is bounded where nothing else is said: any drop of the pass rate.
var DefaultBound = gate.Drop{Metric: "pass_rate"}

// job is two columns that are to be compared.
type job struct {
	before *opened
	a      string
	now    *opened
	b      string
}

// New compares, and says by bound whether a metric has dropped: a drop is one that the interval shows, whose level is the higher the more columns are compared (Bonferroni). Of one run its columns are compared, each with each; of several sides the first, or a baseline among them, with each of the others: columns of one id, or the only ones of both. Sides of different datasets and sides without a common column are errors of code Input.
func New(sides []Side, bound gate.Drop) (*Document, error) {
	// A baseline is what others are compared with, wherever it was named.
	sides = slices.Clone(sides)
	slices.SortStableFunc(sides, func(a, b Side) int {
		return cmp.Compare(order(a), order(b))
	})
	d := &Document{V: 1, Sides: []string{}, Columns: []Numbers{}, Comparisons: []Comparison{}}
	opened := make([]*opened, len(sides))
	for i := range sides {
		o, err := open(&sides[i])
		if err != nil {
			return nil, err
		}
		opened[i] = o
		d.Sides = append(d.Sides, sides[i].Name)
		d.Columns = append(d.Columns, numbers(&sides[i])...)
		if i == 0 {
			d.Dataset = o.file.Dataset
		} else if o.file.Dataset != d.Dataset {
			return nil, failure.WithHint(failure.New(failure.Input, "%s is of dataset %s, %s of %s", sides[0].Name, d.Dataset, sides[i].Name, o.file.Dataset), "compare runs of one dataset")
		}
	}
	var jobs []job
	var err error
	if len(sides) == 1 {
		jobs, err = within(opened[0])
	}
	for _, now := range opened[1:] {
		var more []job
		if more, err = across(opened[0], now); err != nil {
			break
		}
		jobs = append(jobs, more...)
	}
	if err != nil {
		return nil, err
	}
	confidence := cmp.Or(bound.Confidence, stats.Confidence)
	for _, j := range jobs {
		if err := d.add(j, bound, 1-(1-confidence)/float64(len(jobs))); err != nil {
			return nil, err
		}
	}
	d.adjust()
	return d, nil
}

func numbers(s *Side) []Numbers {
	if s.Run == nil {
		return nil
	}
	var out []Numbers
	for _, p := range s.Run.Summary.Providers {
		n := Numbers{Column{s.Name, p.ID}, map[string]results.Metric{}}
		for _, name := range reports.SideBySide {
			n.Metrics[name] = p.Metrics[name]
		}
		out = append(out, n)
	}
	return out
}

// adjust corrects the p-values of each metric over all pairs of columns.
func (d *Document) adjust() {
	for i := range d.Comparisons[0].Metrics {
		var family []*results.Comparison
		for k := range d.Comparisons {
			family = append(family, &d.Comparisons[k].Metrics[i])
		}
		baseline.Adjust(family)
	}
}

func order(s Side) int {
	if s.Baseline != nil {
		return 0
	}
	return 1
}

// opened is a side with its items in memory.
type opened struct {
	*Side
	file    *baseline.File
	columns []string
	first   map[string]eval.Result // where traces are found, by provider and item
}

func place(provider, item string) string { return provider + "\x00" + item }

func open(s *Side) (*opened, error) {
	o := &opened{Side: s, file: s.Baseline, first: map[string]eval.Result{}}
	if s.Baseline != nil {
		for _, p := range s.Baseline.Providers {
			o.columns = append(o.columns, p.ID)
		}
		return o, nil
	}
	for _, p := range s.Run.Summary.Providers {
		o.columns = append(o.columns, p.ID)
	}
	var err error
	o.file, err = baseline.Collect(s.Run, func(e *baseline.Entry) error {
		if e.First.Trace != nil {
			o.first[place(e.Provider, e.Item.Item)] = e.First
		}
		return nil
	})
	return o, err
}

// column is the part of a side that belongs to one provider, under the name of another.
func (o *opened) column(provider, as string) *baseline.File {
	f := &baseline.File{Dataset: o.file.Dataset, DatasetHash: o.file.DatasetHash, Repeat: o.file.Repeat}
	if p, ok := o.file.Provider(provider); ok {
		p.ID = as
		f.Providers = []baseline.Provider{p}
	}
	for i := range o.file.Items {
		if o.file.Items[i].Provider == provider {
			item := o.file.Items[i]
			item.Provider = as
			f.Items = append(f.Items, item)
		}
	}
	return f
}

func (o *opened) outcome(provider string, i *baseline.Item) (*Outcome, error) {
	out := &Outcome{Failed: list(i.Failed), Violations: list(i.Violations), Calls: i.Calls, Answer: i.Answer}
	out.Passed, out.Of = i.Judged()
	if first, ok := o.first[place(provider, i.Item)]; ok {
		var err error
		if out.Calls, err = baseline.Calls(o.Run, &baseline.Entry{First: first}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func within(o *opened) ([]job, error) {
	if len(o.columns) < 2 {
		return nil, failure.WithHint(failure.New(failure.Input, "%s has one column, there is nothing to compare it with", o.Name), "name another run, or baseline:%s", o.file.Dataset)
	}
	var jobs []job
	for i, before := range o.columns {
		for _, now := range o.columns[i+1:] {
			jobs = append(jobs, job{o, before, o, now})
		}
	}
	return jobs, nil
}

func across(before, now *opened) ([]job, error) {
	var jobs []job
	for _, id := range now.columns {
		if slices.Contains(before.columns, id) {
			jobs = append(jobs, job{before, id, now, id})
		}
	}
	if len(jobs) > 0 {
		return jobs, nil
	}
	if len(before.columns) == 1 && len(now.columns) == 1 {
		return []job{{before, before.columns[0], now, now.columns[0]}}, nil
	}
	return nil, failure.WithHint(failure.New(failure.Input, "%s and %s have no column in common", before.Name, now.Name), "they have %v and %v", before.columns, now.columns)
}

// rank orders the items that disagree.
func rank(m Disagreement) int {
	if len(m.NewViolations) > 0 && m.Kind != string(baseline.Worse) {
		return 1 // between worse and better
	}
	return 2 * slices.Index(baseline.Kinds, baseline.Kind(m.Kind))
}

func (d *Document) add(j job, bound gate.Drop, level float64) error {
	before, a, now, b := j.before, j.a, j.now, j.b
	c := Comparison{Before: Column{before.Name, a}, Now: Column{now.Name, b}, Disagree: []Disagreement{}, Effects: []Effect{}}
	var failed error
	kept := map[baseline.Kind]int{}
	comparer := baseline.NewComparer(before.column(a, b), func(m baseline.Move) {
		quiet := !slices.Contains(baseline.Kinds, m.Kind) && len(m.NewViolations) == 0
		if m.Kind == baseline.Same && quiet {
			c.Unchanged++
		}
		if quiet || kept[m.Kind] == results.ListLimit || failed != nil {
			return
		}
		kept[m.Kind]++
		row := Disagreement{Kind: string(m.Kind), NewViolations: list(m.NewViolations)}
		if m.Before != nil {
			row.Item = m.Before.Item
			row.Before, failed = before.outcome(a, m.Before)
		}
		if m.Now != nil && failed == nil {
			row.Item = m.Now.Item.Item
			row.Now, failed = now.outcome(b, &m.Now.Item)
		}
		c.Disagree = append(c.Disagree, row)
	})
	if now.Run != nil {
		comparer.Count(now.Run.Summary.Selected.Counted())
	}
	with := baseline.Now{Providers: []results.ProviderInfo{now.info(b)}, Mode: now.mode(), Whole: now.Run == nil || baseline.Whole(now.Run)}
	with.Level = func(_, metric string, _ results.Where) float64 {
		if metric == bound.Metric {
			return level
		}
		return stats.Confidence
	}
	if now.Run == nil {
		comparer.AddFile(now.column(b, b))
	} else if err := now.lines(b, comparer.Add); err != nil {
		return err
	}
	found := comparer.Finish(with)
	if failed != nil {
		return failed
	}
	c.Changed, c.Metrics, c.Items = found.Changed, found.Comparisons, found.Items
	if before == now {
		c.Changed = []string{}
	}
	for i := range c.Metrics {
		m := &c.Metrics[i]
		if m.Metric == bound.Metric {
			gate.Settle(m, bound.MaxDrop)
		}
		if effect, low, high, ok := comparer.Effect(b, m.Metric); ok {
			c.Effects = append(c.Effects, Effect{m.Metric, short(effect), short(low), short(high)})
		}
	}
	slices.SortStableFunc(c.Disagree, func(x, y Disagreement) int { return rank(x) - rank(y) })
	d.Comparisons = append(d.Comparisons, c)
	return nil
}

// short rounds to three decimals; what is infinite is null.
func short(x float64) *results.Number {
	if math.IsInf(x, 0) {
		return nil
	}
	n := results.Number(math.Round(x*1000) / 1000)
	return &n
}

func (o *opened) lines(provider string, add func(*eval.Result)) error {
	for line, err := range o.Run.Lines() {
		if err != nil {
			return err
		}
		if line.Provider == provider {
			add(&line)
		}
	}
	return nil
}

func (o *opened) info(provider string) results.ProviderInfo {
	if o.Run == nil {
		p, _ := o.file.Provider(provider)
		return results.ProviderInfo{ID: p.ID, Model: p.Model, AgentHash: p.AgentHash, PromptHash: p.PromptHash, ToolsHash: p.ToolsHash}
	}
	for _, p := range o.Run.Summary.Providers {
		if p.ID == provider {
			return p.ProviderInfo
		}
	}
	return results.ProviderInfo{ID: provider}
}

func (o *opened) mode() string {
	if o.Run == nil {
		return "replay"
	}
	return o.Run.Summary.Mode
}

// JSON writes the document as one line.
func JSON(w io.Writer, d *Document) error {
	data, err := json.Marshal(d)
	if err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	if _, err = w.Write(append(escape.JSON(data), '\n')); err != nil {
		return failure.WithCode(fmt.Errorf("writing the comparison: %w", err), failure.Internal)
	}
	return nil
}
