package baseline

import (
	"math"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/stats"
)

// Kind is what has become of an item on a provider since the baseline.
type Kind string

// The kinds. Only items that are asked and judged as before are worse, better or the same.
const (
	// Worse is an item a smaller share of whose judged repeats passes, Better one of which more do. Where the repeats disagree before and now the item is flaky, which says nothing.
	Worse  Kind = "worse"
	Better Kind = "better"
	// Changed is an item that is asked or judged otherwise, so that the two do not compare.
	Changed Kind = "changed"
	// New is an item that the baseline lacks on a provider that it has, Removed one that a whole run lacks.
	New     Kind = "new"
	Removed Kind = "removed"
	// Same is every other item that was compared; Open one that got no verdict now or had none before.
	Same Kind = "same"
	Open Kind = "open"
)

// Kinds lists those that a reader should see, in the order of reports.
var Kinds = []Kind{Worse, Better, Changed, New, Removed}

// Move is an item and what has become of it.
type Move struct {
	Kind Kind
	// Before is nil for a new item, Now for a removed one. They are valid until the visitor returns.
	Before *Item
	Now    *Entry
	// NewViolations are the broken invariants of severity error that were not broken before.
	NewViolations []string
}

// Comparer compares a run with a baseline. It holds the baseline and one item of the run.
type Comparer struct {
	before  *File
	seen    []bool
	columns map[string]*column
	entries entries
	parts   []*part
	visit   func(Move)

	moved                     map[Kind]*idList
	violations                idList
	itemsDiffer, checksDiffer bool
}

// idList collects the ids of items once, in the order in which they come.
type idList struct {
	results.IDs
	last  string
	begun bool
}

func (l *idList) add(id string) {
	if l.begun && l.last == id {
		return
	}
	l.begun, l.last = true, id
	l.Count++
	if len(l.IDs.IDs) < results.ListLimit {
		l.IDs.IDs = append(l.IDs.IDs, id)
	}
}

// part compares what a gate looks at alone.
type part struct {
	results.Where
	columns map[string]*column
	entries entries
}

// column collects the pairs of one provider.
type column struct {
	pairs [len(compared)]stats.Pairs
	// shares is the sum over pairs of the share that one repeat has in the item's value, graded says of a metric that a repeat had a value that is neither 0 nor 1.
	shares float64
	graded [len(compared)]bool
	// anew says that a pair differs in anything that a recording fixes: at least one conversation was held anew.
	anew bool
}

type comparedMetric struct {
	name  string
	scale float64 // to which its numbers are rounded
	share bool    // a fraction, of which more is better
	value func(*Item) (float64, bool)
}

// compared are the metrics that are compared, means over items all of them.
var compared = [...]comparedMetric{
	{"pass_rate", 1e6, true, passRate},
	{"score", 1e6, true, score},
	{"cost_usd_per_item", 1e9, false, func(i *Item) (float64, bool) {
		if i.CostUSD == nil {
			return 0, false
		}
		return i.CostUSD.Float(), true
	}},
	{"mean_latency", 1, false, func(i *Item) (float64, bool) {
		if i.LatencyMS == nil {
			return 0, false
		}
		return float64(*i.LatencyMS), true
	}},
}

// Gated are the metrics that a regression gate may bound: fractions of which more is better.
func Gated() []string {
	var names []string
	for _, m := range compared {
		if m.share {
			names = append(names, m.name)
		}
	}
	return names
}

// MethodIdentical is the method of a comparison in which every pair is the same recording: answers, verdicts, scores, cost and latency are equal. Nothing was measured anew, so that there is nothing to estimate.
const MethodIdentical = "identical"

// Judged counts the repeats that were judged, and those of them that passed.
func (i *Item) Judged() (passed, of int) {
	for _, p := range i.Passed {
		if p != nil {
			of++
			if *p {
				passed++
			}
		}
	}
	return passed, of
}

// passRate is the share of the judged repeats that passed.
func passRate(i *Item) (float64, bool) {
	passed, of := i.Judged()
	return float64(passed) / float64(max(of, 1)), of > 0
}

func score(i *Item) (float64, bool) {
	n, sum := 0, 0.0
	for _, s := range i.Scores {
		if s != nil {
			n++
			sum += float64(*s)
		}
	}
	return sum / float64(max(n, 1)), n > 0
}

// NewComparer returns a comparer with the baseline, which must not change while it is used. visit, which may be nil, is called for every item in the order of the run, and last for the removed ones.
func NewComparer(before *File, visit func(Move)) *Comparer {
	c := &Comparer{before: before, seen: make([]bool, len(before.Items)), columns: map[string]*column{}, visit: visit, moved: map[Kind]*idList{}}
	for _, kind := range Kinds {
		c.moved[kind] = &idList{}
	}
	c.entries.emit = c.entry
	return c
}

// Count says how many repeats of an item are compared, the first ones; 0 is all. It is called before the first line.
func (c *Comparer) Count(repeats int) {
	c.entries.counted = repeats
	for _, p := range c.parts {
		p.entries.counted = repeats
	}
}

// Limit has parts of the run compared by themselves too: the lines with a tag, or a check in the place of the whole verdict, for which the baseline must know the check. It is called before the first line.
func (c *Comparer) Limit(parts []results.Where) {
	for _, where := range parts {
		p := &part{Where: where, columns: map[string]*column{}}
		p.entries = entries{counted: c.entries.counted, emit: func(e *Entry) { c.limited(p, e) }}
		c.parts = append(c.parts, p)
	}
}

// limited pairs an item as a part sees it.
func (c *Comparer) limited(p *part, e *Entry) {
	before := c.before.find(e.key())
	if e.Skipped || e.Quarantined || before == nil || before.ItemHash != e.ItemHash || before.ChecksHash != e.ChecksHash {
		return
	}
	if p.Check != "" {
		verdicts, known := before.Checks[p.Check]
		if !known {
			return
		}
		of := *before
		of.Passed, of.Scores = verdicts.Passed, verdicts.Scores
		before = &of
	}
	pair(columnOf(p.columns, e.Provider), before, e)
}

// Effect is the effect size of a metric on a provider, as [stats.Pairs.Effect] has it.
func (c *Comparer) Effect(provider, metric string) (d, low, high float64, ok bool) {
	i := slices.IndexFunc(compared[:], func(m comparedMetric) bool { return m.name == metric })
	if i < 0 {
		return 0, 0, 0, false
	}
	return columnOf(c.columns, provider).pairs[i].Effect(stats.Confidence)
}

// Add takes the next line of the run. It keeps nothing of it but texts.
func (c *Comparer) Add(line *eval.Result) {
	c.entries.add(line)
	for _, p := range c.parts {
		if seen, ok := p.Of(line); ok {
			p.entries.add(seen)
		}
	}
}

// AddFile takes a baseline in place of a run.
func (c *Comparer) AddFile(f *File) {
	for i := range f.Items {
		c.entry(&Entry{Item: f.Items[i]})
	}
}

func (c *Comparer) entry(e *Entry) {
	if e.Skipped {
		return
	}
	m := Move{Now: e, Kind: Open}
	at, ok := slices.BinarySearchFunc(c.before.Items, e.key(), func(item Item, k key) int { return item.key().compare(k) })
	if !ok {
		if _, known := c.before.Provider(e.Provider); !known {
			return
		}
		m.Kind = New
		c.tell(m)
		return
	}
	c.seen[at] = true
	before := &c.before.Items[at]
	m.Before = before
	if before.ItemHash != e.ItemHash || before.ChecksHash != e.ChecksHash {
		c.itemsDiffer = c.itemsDiffer || before.ItemHash != e.ItemHash
		c.checksDiffer = c.checksDiffer || before.ChecksHash != e.ChecksHash
		m.Kind = Changed
		c.tell(m)
		return
	}
	for _, name := range e.Violations {
		if _, found := slices.BinarySearch(before.Violations, name); !found {
			m.NewViolations = append(m.NewViolations, name)
		}
	}
	if len(m.NewViolations) > 0 {
		c.violations.add(e.Item.Item)
	}
	if !e.Quarantined {
		pair(columnOf(c.columns, e.Provider), before, e)
		m.Kind = verdict(before, &e.Item)
	}
	c.tell(m)
}

func verdict(before, now *Item) Kind {
	was, ok := passRate(before)
	is, okNow := passRate(now)
	flaky := func(share float64) bool { return share > 0 && share < 1 }
	switch {
	case !ok || !okNow:
		return Open
	case is == was || flaky(was) && flaky(is):
		return Same
	case is < was:
		return Worse
	}
	return Better
}

func pair(column *column, before *Item, e *Entry) {
	_, of := e.Judged()
	if of == 0 {
		return
	}
	column.anew = column.anew || !sameRecording(before, &e.Item)
	_, ofBefore := before.Judged()
	column.shares += 1 / float64(of)
	column.graded[scoreMetric] = column.graded[scoreMetric] || graded(before.Scores) || graded(e.Scores)
	for i := range compared {
		was, ok := compared[i].value(before)
		is, okNow := compared[i].value(&e.Item)
		if ok && okNow {
			column.pairs[i].Add(was, is, e.Group, i == verdictMetric && of == 1 && ofBefore == 1)
		}
	}
}

// The places in compared of the metric whose values are verdicts where an item ran once, and of that whose values may be.
const (
	verdictMetric = iota
	scoreMetric
)

// graded reports whether a score is neither 0 nor 1.
func graded(scores []*eval.Fraction) bool {
	return slices.ContainsFunc(scores, func(s *eval.Fraction) bool { return s != nil && *s != 0 && *s != 1 })
}

// sameRecording reports whether two outcomes agree in all that a baseline holds of a conversation.
func sameRecording(a, b *Item) bool {
	return equalLists(a.Passed, b.Passed) && equalLists(a.Scores, b.Scores) && equal(a.Answer, b.Answer) && equal(a.CostUSD, b.CostUSD) && equal(a.LatencyMS, b.LatencyMS)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func equalLists[T comparable](a, b []*T) bool { return slices.EqualFunc(a, b, equal[T]) }

func columnOf(columns map[string]*column, provider string) *column {
	col := columns[provider]
	if col == nil {
		col = &column{}
		for i := range compared {
			if compared[i].share {
				col.pairs[i].Scale = 1
			}
		}
		columns[provider] = col
	}
	return col
}

func (c *Comparer) tell(m Move) {
	if list := c.moved[m.Kind]; list != nil {
		item := m.Before
		if m.Now != nil {
			item = &m.Now.Item
		}
		list.add(item.Item)
	}
	if c.visit != nil {
		c.visit(m)
	}
}

// Now is the run that was compared.
type Now struct {
	Providers []results.ProviderInfo
	// Mode is the run's; in one that asks the vendor, verdicts that moved although nothing else has changed are the provider's doing.
	Mode string
	// Whole says that every item of the dataset was to run, so that what is missing is gone.
	Whole bool
	// Level gives the confidence of the interval of a metric on a provider, in a part or as a whole; nil is [stats.Confidence] for all.
	Level func(provider, metric string, where results.Where) float64
	// Wants says which metrics of a part are compared on which providers; nil is none.
	Wants func(provider, metric string, where results.Where) bool
}

// Finish gives what was found. The baseline's name is left to the caller, and so is what a gate says: until then a comparison is not worse where its interval shows that, and else inconclusive.
func (c *Comparer) Finish(now Now) *results.Regression {
	c.entries.flush()
	level := func(provider, metric string, where results.Where) float64 {
		if now.Level == nil {
			return stats.Confidence
		}
		return now.Level(provider, metric, where)
	}
	if now.Whole {
		c.removed(now.Providers)
	}
	r := &results.Regression{Changed: []string{}, Comparisons: []results.Comparison{}}
	for _, p := range now.Providers {
		for i := range compared {
			r.Comparisons = append(r.Comparisons, columnOf(c.columns, p.ID).comparison(p.ID, i, level(p.ID, compared[i].name, results.Where{})))
		}
	}
	for i := range compared {
		var family []*results.Comparison
		for k := i; k < len(r.Comparisons); k += len(compared) {
			family = append(family, &r.Comparisons[k])
		}
		Adjust(family)
	}
	for _, part := range c.parts {
		part.entries.flush()
		for i := range compared {
			var family []*results.Comparison
			for _, p := range now.Providers {
				if now.Wants == nil || !now.Wants(p.ID, compared[i].name, part.Where) {
					continue
				}
				found := columnOf(part.columns, p.ID).comparison(p.ID, i, level(p.ID, compared[i].name, part.Where))
				found.Tag, found.Check = named(part.Tag), named(part.Check)
				family = append(family, &found)
			}
			Adjust(family)
			for _, found := range family {
				r.Comparisons = append(r.Comparisons, *found)
			}
		}
	}
	r.Items = results.Moved{
		Worse: c.moved[Worse].list(), Better: c.moved[Better].list(), New: c.moved[New].list(),
		Removed: c.moved[Removed].list(), Changed: c.moved[Changed].list(), NewViolations: c.violations.list(),
	}
	r.Changed = c.changed(now, &r.Items)
	return r
}

func named(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (l *idList) list() results.IDs {
	if l.IDs.IDs == nil {
		l.IDs.IDs = []string{}
	}
	return l.IDs
}

func (c *Comparer) removed(providers []results.ProviderInfo) {
	ran := map[string]bool{}
	for _, p := range providers {
		ran[p.ID] = true
	}
	for i := range c.before.Items {
		if item := &c.before.Items[i]; !c.seen[i] && ran[item.Provider] {
			c.tell(Move{Kind: Removed, Before: item})
		}
	}
}

func (col *column) comparison(provider string, metric int, level float64) results.Comparison {
	kind := compared[metric]
	out := results.Comparison{Provider: provider, Metric: kind.name, Method: stats.MethodPairedT, Status: results.CompareInconclusive}
	found, ok := col.pairs[metric].Compare(level)
	if !ok {
		out.Status = results.CompareNoBaseline
		return out
	}
	number := func(x float64) *results.Number {
		n := results.Number(math.Round(x*kind.scale) / kind.scale)
		return &n
	}
	out.Pairs, out.Method = found.Pairs, found.Method
	out.Before, out.Now, out.Difference = number(found.Before), number(found.Now), number(found.Difference)
	if !col.anew {
		one := results.Number(1)
		out.Method, out.Low, out.High, out.P = MethodIdentical, number(0), number(0), &one
		out.Status = results.CompareNotWorse
		return out
	}
	if found.Bounded {
		out.Low, out.High = number(found.Low), number(found.High)
		if kind.share && found.Low >= 0 {
			out.Status = results.CompareNotWorse
		}
	}
	if found.Tested {
		p := results.Number(math.Round(found.P*1e6) / 1e6)
		out.P = &p
	}
	design := stats.Design{Spread: found.Spread, Pairs: found.Pairs, Clusters: found.Clusters}
	if !col.graded[metric] {
		design.Verdict, design.Rate = col.shares/float64(found.Pairs), found.Before
	}
	if drop, ok := stats.DetectableDrop(design, level); ok && kind.share {
		out.DetectableDrop = number(drop)
	}
	return out
}

// Adjust corrects the p-values of comparisons of one metric, by Holm; those without one stay without.
func Adjust(list []*results.Comparison) {
	var tested []*results.Comparison
	var p []float64
	for _, c := range list {
		if c.P != nil {
			tested, p = append(tested, c), append(p, float64(*c.P))
		}
	}
	for i, adjusted := range stats.Holm(p) {
		n := results.Number(math.Round(adjusted*1e6) / 1e6)
		tested[i].PAdjusted = &n
	}
}

// changed says what differs from the baseline, in the order of the contract.
func (c *Comparer) changed(now Now, items *results.Moved) []string {
	var agent, prompt, tools, model bool
	for _, p := range now.Providers {
		was, ok := c.before.Provider(p.ID)
		if !ok {
			continue
		}
		prompt = prompt || was.PromptHash != p.PromptHash
		tools = tools || was.ToolsHash != p.ToolsHash
		model = model || was.Model != p.Model
		// The agent's hash covers its prompt and its tools, which are named by themselves.
		agent = agent || was.AgentHash != p.AgentHash && was.PromptHash == p.PromptHash && was.ToolsHash == p.ToolsHash
	}
	out := []string{}
	for _, part := range []struct {
		name    string
		differs bool
	}{
		{"agent", agent}, {"prompt", prompt}, {"tools", tools}, {"model", model},
		{"dataset", c.itemsDiffer || items.New.Count > 0 || items.Removed.Count > 0}, {"checks", c.checksDiffer},
	} {
		if part.differs {
			out = append(out, part.name)
		}
	}
	if len(out) == 0 && now.Mode != "replay" && items.Worse.Count+items.Better.Count > 0 {
		out = append(out, "provider")
	}
	return out
}
