package baseline

import (
	"math"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
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

// column adds up the pairs of one provider.
type column struct {
	sums [len(compared)]sums
}

type sums struct {
	pairs       int
	before, now float64
}

// compared are the metrics that are compared, means over items all of them.
var compared = [...]struct {
	name  string
	scale float64
	value func(*Item) (float64, bool)
}{
	{"pass_rate", 1e6, passRate},
	{"score", 1e6, score},
	{"cost_usd_per_item", 1e9, func(i *Item) (float64, bool) {
		if i.CostUSD == nil {
			return 0, false
		}
		return i.CostUSD.Float(), true
	}},
	{"mean_latency", 1, func(i *Item) (float64, bool) {
		if i.LatencyMS == nil {
			return 0, false
		}
		return float64(*i.LatencyMS), true
	}},
}

// Method names how the differences of a comparison come about: the means over the pairs, without an interval.
const Method = "paired-difference"

// The states of a comparison that nothing was tested for: there are pairs, or there is none.
const (
	Inconclusive = "inconclusive"
	NoBaseline   = "no_baseline"
)

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

// Add takes the next line of the run. It keeps nothing of it but texts.
func (c *Comparer) Add(line *eval.Result) { c.entries.add(line) }

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
		c.pair(before, e)
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

func (c *Comparer) pair(before *Item, e *Entry) {
	if _, judged := passRate(&e.Item); !judged {
		return
	}
	column := c.column(e.Provider)
	for i := range compared {
		was, ok := compared[i].value(before)
		is, okNow := compared[i].value(&e.Item)
		if ok && okNow {
			s := &column.sums[i]
			s.pairs++
			s.before += was
			s.now += is
		}
	}
}

func (c *Comparer) column(provider string) *column {
	col := c.columns[provider]
	if col == nil {
		col = &column{}
		c.columns[provider] = col
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
}

// Finish gives what was found. The baseline's name is left to the caller.
func (c *Comparer) Finish(now Now) *results.Regression {
	c.entries.flush()
	if now.Whole {
		c.removed(now.Providers)
	}
	r := &results.Regression{Changed: []string{}, Comparisons: []results.Comparison{}}
	for _, p := range now.Providers {
		for i := range compared {
			r.Comparisons = append(r.Comparisons, c.comparison(p.ID, i))
		}
	}
	r.Items = results.Moved{
		Worse: c.moved[Worse].list(), Better: c.moved[Better].list(), New: c.moved[New].list(),
		Removed: c.moved[Removed].list(), Changed: c.moved[Changed].list(), NewViolations: c.violations.list(),
	}
	r.Changed = c.changed(now, &r.Items)
	return r
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

func (c *Comparer) comparison(provider string, metric int) results.Comparison {
	kind := compared[metric]
	s := c.column(provider).sums[metric]
	out := results.Comparison{Provider: provider, Metric: kind.name, Pairs: s.pairs, Method: Method, Status: Inconclusive}
	if s.pairs == 0 {
		out.Status = NoBaseline
		return out
	}
	number := func(x float64) *results.Number {
		n := results.Number(math.Round(x*kind.scale) / kind.scale)
		return &n
	}
	n := float64(s.pairs)
	out.Before, out.Now, out.Difference = number(s.before/n), number(s.now/n), number((s.now-s.before)/n)
	return out
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
