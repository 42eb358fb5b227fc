// Package compare sets runs and baselines side by side: per pair of columns the metrics before, now and their difference, and the items that disagree with what the agent did and said on either side.
//
// Items are paired by id, and only where they are asked and judged alike; repeats are collapsed to the item's mean first, so that with equal repeats this is the pairing by item and repeat. Whether a difference is more than chance is not said.
package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
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
	Comparisons []Comparison `json:"comparisons"`
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
	Items     results.Moved        `json:"items"`
	Disagree  []Disagreement       `json:"disagree"`
	Unchanged int                  `json:"unchanged"`
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

// Regressed reports whether anything is worse: an item, or a new violation of severity error.
func (d *Document) Regressed() bool {
	return slices.ContainsFunc(d.Comparisons, func(c Comparison) bool {
		return c.Items.Worse.Count > 0 || c.Items.NewViolations.Count > 0
	})
}

// Paired reports whether every comparison has at least one pair.
func (d *Document) Paired() bool {
	return !slices.ContainsFunc(d.Comparisons, func(c Comparison) bool { return c.Pairs() == 0 })
}

// New compares. Of one run its columns are compared, each with each; of several sides the first, or a baseline among them, with each of the others: columns of one id, or the only ones of both. Sides of different datasets and sides without a common column are errors of code Input.
func New(sides []Side) (*Document, error) {
	// A baseline is what others are compared with, wherever it was named.
	sides = slices.Clone(sides)
	slices.SortStableFunc(sides, func(a, b Side) int {
		return cmp.Compare(order(a), order(b))
	})
	d := &Document{V: 1, Sides: []string{}, Comparisons: []Comparison{}}
	opened := make([]*opened, len(sides))
	for i := range sides {
		o, err := open(&sides[i])
		if err != nil {
			return nil, err
		}
		opened[i] = o
		d.Sides = append(d.Sides, sides[i].Name)
		if i == 0 {
			d.Dataset = o.file.Dataset
		} else if o.file.Dataset != d.Dataset {
			return nil, failure.WithHint(failure.New(failure.Input, "%s is of dataset %s, %s of %s", sides[0].Name, d.Dataset, sides[i].Name, o.file.Dataset), "compare runs of one dataset")
		}
	}
	if len(sides) == 1 {
		return d, d.within(opened[0])
	}
	for _, now := range opened[1:] {
		if err := d.across(opened[0], now); err != nil {
			return nil, err
		}
	}
	return d, nil
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

func (d *Document) within(o *opened) error {
	if len(o.columns) < 2 {
		return failure.WithHint(failure.New(failure.Input, "%s has one column, there is nothing to compare it with", o.Name), "name another run, or baseline:%s", o.file.Dataset)
	}
	for i, before := range o.columns {
		for _, now := range o.columns[i+1:] {
			if err := d.add(o, before, o, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Document) across(before, now *opened) error {
	found := false
	for _, id := range now.columns {
		if slices.Contains(before.columns, id) {
			found = true
			if err := d.add(before, id, now, id); err != nil {
				return err
			}
		}
	}
	if found {
		return nil
	}
	if len(before.columns) == 1 && len(now.columns) == 1 {
		return d.add(before, before.columns[0], now, now.columns[0])
	}
	return failure.WithHint(failure.New(failure.Input, "%s and %s have no column in common", before.Name, now.Name), "they have %v and %v", before.columns, now.columns)
}

// rank orders the items that disagree.
func rank(m Disagreement) int {
	if len(m.NewViolations) > 0 && m.Kind != string(baseline.Worse) {
		return 1 // between worse and better
	}
	return 2 * slices.Index(baseline.Kinds, baseline.Kind(m.Kind))
}

func (d *Document) add(before *opened, a string, now *opened, b string) error {
	c := Comparison{Before: Column{before.Name, a}, Now: Column{now.Name, b}, Disagree: []Disagreement{}}
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
	with := baseline.Now{Providers: []results.ProviderInfo{now.info(b)}, Mode: now.mode(), Whole: now.Run == nil || baseline.Whole(now.Run)}
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
	slices.SortStableFunc(c.Disagree, func(x, y Disagreement) int { return rank(x) - rank(y) })
	d.Comparisons = append(d.Comparisons, c)
	return nil
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
