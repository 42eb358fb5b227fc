package html

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/compare"
	"github.com/echoeval/echoeval/reports/escape"
)

// page is a page that is being written.
type page struct {
	out    *counter
	runs   []*results.Run
	limits limits
}

func (p *page) write() error {
	sections := make([]*section, len(p.runs))
	head := pageHead{Policy: policy(), Title: "echoeval report"}
	for i, run := range p.runs {
		s, err := survey(run, i)
		if err != nil {
			return err
		}
		sections[i] = s
		head.Runs = append(head.Runs, s.link())
	}
	if len(p.runs) == 1 {
		head.Title = escape.Line(p.runs[0].Summary.Dataset.Name) + ": " + escape.Line(p.runs[0].Summary.Verdict.Text)
	}
	if err := markup().ExecuteTemplate(p.out, "head", head); err != nil {
		return err
	}
	for _, name := range styles {
		p.out.printf("<style>%s</style>\n", asset(name))
	}
	if err := markup().ExecuteTemplate(p.out, "body", head); err != nil {
		return err
	}
	for _, s := range sections {
		if err := markup().ExecuteTemplate(p.out, "run", s.view()); err != nil {
			return err
		}
	}
	if err := markup().ExecuteTemplate(p.out, "rest", nil); err != nil {
		return err
	}
	limit := p.limits
	for _, s := range sections {
		if err := s.data(p.out, &limit); err != nil {
			return err
		}
	}
	p.out.printf("<!-- The plots are drawn by uPlot, https://github.com/leeoniya/uPlot:\n\n%s\n-->\n", asset("vendor/uplot/LICENSE"))
	for _, name := range scripts {
		p.out.printf("<script>%s</script>\n", asset(name))
	}
	p.out.printf("</body>\n</html>\n")
	return nil
}

// data writes what the scripts read: details, index, and last the element that says where they are.
func (s *section) data(out *counter, limit *limits) error {
	details, err := s.details(out, limit)
	if err != nil {
		return err
	}
	index, err := s.index(out)
	if err != nil {
		return err
	}
	head := scriptHead{
		V: 1, Name: escape.Line(s.sum.Dataset.Name), Providers: []string{}, Repeat: max(1, s.sum.Selected.Repeat), Statuses: eval.Statuses,
		Details: details, Index: index, Baseline: s.baselineName(), Show: s.showCommand(), Charts: s.charts(),
	}
	for _, p := range s.sum.Providers {
		head.Providers = append(head.Providers, escape.Line(p.ID))
	}
	// Marshal writes <, > and & as escapes, so that nothing in a text can end the element.
	data, err := json.Marshal(head)
	if err != nil {
		return err
	}
	out.printf("<script type=\"application/json\" class=\"run-data\" id=\"r%d\">%s</script>\n", s.number, data)
	return nil
}

// scriptHead is what the page's script needs to know of a run before it opens a block.
type scriptHead struct {
	V         int           `json:"v"`
	Name      string        `json:"name"`
	Providers []string      `json:"providers"`
	Repeat    int           `json:"repeat"`
	Statuses  []eval.Status `json:"statuses"`
	Details   int           `json:"details"` // blocks
	Index     int           `json:"index"`
	Baseline  *string       `json:"baseline"` // null where the run was not compared
	Show      string        `json:"show"`     // the command that shows an item, up to its id
	Charts    charts        `json:"charts"`
}

// charts are the numbers of the plots, one entry a provider; null is unknown.
type charts struct {
	PassRate []interval        `json:"pass_rate"`
	Cost     []*results.Number `json:"cost_usd"`
	Tokens   []*results.Number `json:"tokens"`
	// Latency has for each provider the percentiles 0 to 100 in ms, null where nothing was timed.
	Latency [][]int64 `json:"latency_ms"`
}

type interval struct {
	Value *results.Number `json:"value"`
	Low   *results.Number `json:"low"`
	High  *results.Number `json:"high"`
}

func (s *section) charts() charts {
	c := charts{}
	for i, p := range s.sum.Providers {
		m := p.Metrics["pass_rate"]
		c.PassRate = append(c.PassRate, interval{m.Value, m.Low, m.High})
		c.Cost = append(c.Cost, p.Metrics["cost_usd"].Value)
		c.Tokens = append(c.Tokens, p.Metrics["tokens"].Value)
		c.Latency = append(c.Latency, percentiles(s.latencies[i]))
	}
	return c
}

// percentiles are those from 0 to 100 by nearest rank; nil of nothing. It sorts its argument.
func percentiles(values []int64) []int64 {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	out := make([]int64, 101)
	for i := range out {
		// rank = ceil(i/100*n), at least 1
		out[i] = values[max(1, (i*len(values)+99)/100)-1]
	}
	return out
}

func (s *section) baselineName() *string {
	if s.before == nil {
		return nil
	}
	name := escape.Line(s.sum.Regression.Baseline.File)
	if from := s.sum.Regression.Baseline.From; from != "file" {
		name += " at " + escape.Line(from)
	}
	return &name
}

// showCommand names the run by its dataset: its id holds the time, and equal runs give equal bytes.
func (s *section) showCommand() string {
	return escape.Line(results.Command("echoeval", "show", s.sum.Dataset.Name))
}

// pageHead is what stands above all runs.
type pageHead struct {
	Policy, Title string
	Runs          []runLink
}

type runLink struct {
	Number                       int
	Href, Name, Mark, Tone, Text string
}

// Tone is the class of the style sheet that a verdict has, and mark the word that says the same.
func Tone(code failure.Code) (tone, mark string) {
	switch code {
	case failure.OK:
		return "good", "passed"
	case failure.Inconclusive:
		return "open", "inconclusive"
	case failure.Gate:
		return "bad", "failed"
	case failure.Interrupted:
		return "open", "interrupted"
	}
	return "open", "no verdict"
}

func (s *section) link() runLink {
	t, mark := Tone(s.sum.Verdict.Code)
	return runLink{Number: s.number, Href: s.href(""), Name: s.sum.Dataset.Name, Mark: mark, Tone: t, Text: strings.TrimPrefix(s.sum.Verdict.Text, mark+": ")}
}

// href is the fragment that opens an item of the run, or the run itself. The script knows items by the name that it shows.
func (s *section) href(item string) string {
	v := url.Values{}
	if len(s.sum.Dataset.Name) > 0 {
		v.Set("run", escape.Line(s.sum.Dataset.Name))
	}
	if item != "" {
		v.Set("item", escape.Line(item))
	}
	return "#" + v.Encode()
}

// itemLink is an item that the reader can open.
type itemLink struct{ Href, Text string }

func (s *section) items(list results.IDs) (links []itemLink, more int) {
	for _, id := range list.IDs[:min(len(list.IDs), mostListed)] {
		links = append(links, itemLink{s.href(id), id})
	}
	return links, list.Count - len(links)
}

// mostListed is how many items a list names.
const mostListed = 20

// Views of the summary, for the markup. Texts are as they came: the markup escapes them.
type (
	view struct {
		runLink
		Code                             int
		Reasons                          []reasonView
		Hints                            []string
		Facts                            []string
		Broken, Held                     gateTable
		Heads                            []string
		Metrics                          []metricRow
		Counts                           [][]string // per status: its name, then one number a provider
		Regression                       *regressionView
		Moves                            []moveView
		Faults, Causes                   []causeView
		Invariants                       []results.Invariant
		Flaky                            []flakyView
		Quarantined                      []results.Quarantine
		Pairs                            []pairView
		Power                            []powerView
		Warnings                         []results.Warning
		Incomplete, Several, HasBaseline bool
	}
	reasonView struct{ Kind, Name, Text string }
	gateTable  struct {
		Rows  []gateView
		Where bool // one has a condition
	}
	gateView  struct{ Metric, Provider, Where, Bound, Value, Status, Tone string }
	metricRow struct {
		Name, Doc string
		Values    []string
	}
	regressionView struct {
		Baseline, Note string
		Changed        []string
		Rows           []comparisonRow
		// Intervals and Needs say that a row has one.
		Intervals, Needs bool
	}
	comparisonRow struct{ Provider, Metric, Where, Items, Before, Now, Difference, Interval, Status, Needed string }
	moveView      struct {
		What, Tone string
		Count      int
		Items      []itemLink
		More       int
	}
	causeView struct {
		Text, Message, Hint, Path, Old, New string
		Items                               []itemLink
		More, Count                         int
	}
	flakyView struct {
		Provider, Share string
		Item            itemLink
	}
	pairView  struct{ A, B, Metric, Items, Difference, P, Disagree string }
	powerView struct{ Provider, Metric, Drop string }
)

func (s *section) view() view {
	sum := s.sum
	v := view{runLink: s.link(), Code: int(sum.Verdict.Code), Incomplete: s.run.Incomplete, Several: len(sum.Providers) > 1, HasBaseline: s.before != nil,
		Quarantined: sum.Quarantined.Items, Warnings: sum.Warnings}
	for _, r := range sum.Verdict.Reasons {
		name := ""
		if r.Gate != nil {
			name = *r.Gate
		}
		if r.Provider != nil {
			name = strings.TrimSpace(name + " of " + *r.Provider)
		}
		v.Reasons = append(v.Reasons, reasonView{r.Kind, name, r.Text})
		if r.Hint != nil && !slices.Contains(v.Hints, *r.Hint) {
			v.Hints = append(v.Hints, *r.Hint)
		}
	}
	v.Facts = []string{sum.Dataset.File, count(sum.Selected.Items, "item"), count(len(sum.Providers), "provider")}
	if sum.Selected.Items != sum.Dataset.Items {
		v.Facts[1] = fmt.Sprintf("%d of %s", sum.Selected.Items, count(sum.Dataset.Items, "item"))
	}
	if sum.Selected.Repeat > 1 {
		v.Facts = append(v.Facts, fmt.Sprintf("%d repeats", sum.Selected.Repeat))
	}
	v.Facts = append(v.Facts, "mode "+sum.Mode)
	if sum.Tools != sum.Mode {
		v.Facts = append(v.Facts, "tools "+sum.Tools)
	}
	for _, part := range []struct {
		name  string
		given *string
	}{{"filter", sum.Selected.Filter}, {"sample", sum.Selected.Sample}, {"only", sum.Selected.Only}} {
		if part.given != nil {
			v.Facts = append(v.Facts, part.name+" "+*part.given)
		}
	}
	s.gates(&v)
	s.metrics(&v)
	s.regression(&v)
	for _, c := range s.causes.List() {
		s.cause(&v, c)
	}
	for _, i := range sum.Invariants {
		if i.Evaluated+i.Violated+i.NotApplicable > 0 {
			v.Invariants = append(v.Invariants, i)
		}
	}
	slices.SortStableFunc(v.Invariants, func(a, b results.Invariant) int { return b.Violated - a.Violated })
	for _, p := range sum.Providers {
		for _, f := range p.Flaky.Items[:min(len(p.Flaky.Items), mostListed)] {
			v.Flaky = append(v.Flaky, flakyView{p.ID, fmt.Sprintf("%d of %d", f.Passed, f.Of), itemLink{s.href(f.Item), f.Item}})
		}
	}
	for _, p := range sum.Pairs {
		v.Pairs = append(v.Pairs, pairView{p.A, p.B, p.Metric, fmt.Sprint(p.Pairs), ranged(p.Metric, p.Difference, p.Low, p.High), plain(p.PAdjusted), fmt.Sprint(p.Disagree)})
	}
	for _, p := range sum.Power {
		v.Power = append(v.Power, powerView{p.Provider, p.Metric, compare.Number(p.Metric, p.DetectableDrop)})
	}
	return v
}

var gateTones = map[results.GateStatus]string{results.GateHolds: "good", results.GateFailed: "bad", results.GateNoData: "bad"}

// gates lists those that failed before those that are open, and apart those that hold.
func (s *section) gates(v *view) {
	order := []results.GateStatus{results.GateFailed, results.GateNoData, results.GateInconclusive, results.GateOff}
	list := slices.Clone(s.sum.Gates)
	slices.SortStableFunc(list, func(a, b results.Gate) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
	for _, g := range list {
		row := gateView{Metric: g.Metric, Provider: g.Provider, Bound: "off", Value: "no data", Status: string(g.Status), Tone: "open"}
		if t, ok := gateTones[g.Status]; ok {
			row.Tone = t
		}
		if g.Where != nil {
			row.Where = *g.Where
		}
		if g.Bound != nil {
			row.Bound = *g.Bound
		}
		if g.Value != nil {
			row.Value = compare.Number(g.Metric, g.Value)
		}
		table := &v.Broken
		if g.Status == results.GateHolds {
			table = &v.Held
		}
		table.Rows, table.Where = append(table.Rows, row), table.Where || row.Where != ""
	}
}

// metrics are the totals, one column a provider.
func (s *section) metrics(v *view) {
	for _, p := range s.sum.Providers {
		v.Heads = append(v.Heads, p.ID)
	}
	for _, status := range eval.Statuses {
		if s.sum.Counts.Of(status) == 0 {
			continue
		}
		row := []string{string(status)}
		for _, p := range s.sum.Providers {
			row = append(row, fmt.Sprint(p.Counts.Of(status)))
		}
		v.Counts = append(v.Counts, row)
	}
	var names []string
	for _, p := range s.sum.Providers {
		for _, name := range p.Metrics.Names() {
			if p.Metrics[name].Value != nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		kind, _ := results.FindMetric(name)
		row := metricRow{Name: name, Doc: kind.Doc}
		for _, p := range s.sum.Providers {
			m := p.Metrics[name]
			row.Values = append(row.Values, ranged(name, m.Value, m.Low, m.High))
		}
		v.Metrics = append(v.Metrics, row)
	}
}

// ranged is a value with its interval, where it has one.
func ranged(metric string, value, low, high *results.Number) string {
	text := compare.Number(metric, value)
	if low != nil && high != nil {
		text += fmt.Sprintf(" [%s, %s]", compare.Number(metric, low), compare.Number(metric, high))
	}
	return text
}

func plain(n *results.Number) string {
	if n == nil {
		return "-"
	}
	return n.String()
}

func (s *section) regression(v *view) {
	reg := s.sum.Regression
	if reg == nil {
		return
	}
	r := &regressionView{Baseline: reg.Baseline.File, Changed: reg.Changed}
	if reg.Baseline.From != "file" {
		r.Baseline += " at " + reg.Baseline.From
	}
	switch {
	case reg.Baseline.Hash == nil:
		r.Note = "There is no baseline yet."
	case reg.Baseline.EditedHere != nil && *reg.Baseline.EditedHere:
		r.Note = "The baseline was edited in this working tree: it differs from the one at the merge base."
	}
	for _, c := range reg.Comparisons {
		row := comparisonRow{Provider: c.Provider, Metric: c.Metric, Where: c.Where().String(), Items: fmt.Sprint(c.Pairs), Before: compare.Number(c.Metric, c.Before), Now: compare.Number(c.Metric, c.Now), Difference: compare.Difference(c), Status: c.Status}
		if c.Low != nil && c.High != nil {
			row.Interval = fmt.Sprintf("[%s, %s]", compare.Number(c.Metric, c.Low), compare.Number(c.Metric, c.High))
		}
		if c.ItemsNeeded != nil {
			row.Needed = fmt.Sprint(*c.ItemsNeeded)
		}
		r.Intervals, r.Needs = r.Intervals || row.Interval != "", r.Needs || row.Needed != ""
		r.Rows = append(r.Rows, row)
	}
	v.Regression = r
	for _, m := range []struct {
		what, tone string
		list       results.IDs
	}{
		{"worse", "bad", reg.Items.Worse}, {"with new violations", "bad", reg.Items.NewViolations}, {"better", "good", reg.Items.Better},
		{"changed, not compared", "open", reg.Items.Changed}, {"new, not compared", "open", reg.Items.New}, {"removed", "open", reg.Items.Removed},
	} {
		if m.list.Count == 0 {
			continue
		}
		row := moveView{What: m.what, Tone: m.tone, Count: m.list.Count}
		row.Items, row.More = s.items(m.list)
		if m.what == "removed" {
			for i := range row.Items {
				row.Items[i].Href = "" // there is nothing to open
			}
		}
		v.Moves = append(v.Moves, row)
	}
}

func (s *section) cause(v *view, c results.Cause) {
	row := causeView{Text: string(c.Status), Count: c.Items}
	for _, part := range []string{c.Cause, c.Detail} {
		if part != "" {
			row.Text += ": " + part
		}
	}
	row.Items, row.More = s.items(results.IDs{Count: c.Items, IDs: c.IDs})
	if d := c.Drift; d != nil {
		row.Path, row.Old, row.New = d.Path, d.Old, d.New
	}
	row.Message, row.Hint = c.Message, c.Hint
	if c.Status == eval.Fail {
		v.Faults = append(v.Faults, row)
		return
	}
	v.Causes = append(v.Causes, row)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
