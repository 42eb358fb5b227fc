// Package terminal writes a run for people at a terminal: what failed as a table, items as rows and providers as columns, with the items first on which the providers disagree, then totals with their intervals, then what was said once for many items, warnings, and last, where the eye is, the verdict with what to do next.
//
// [Show] writes everything about one item. Text of models, tools and files is escaped; widths and colours come from the options alone.
package terminal

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// defaultWidth is used where the options have none.
const defaultWidth = 100

type printer struct {
	out   *bufio.Writer
	run   *results.Run
	opts  reports.Options
	width int
}

func newPrinter(out *bufio.Writer, run *results.Run, opts reports.Options) *printer {
	p := &printer{out: out, run: run, opts: opts, width: opts.Width}
	if p.width <= 0 {
		p.width = defaultWidth
	}
	return p
}

// line writes a line. What the sink refuses is reported by the last flush.
func (p *printer) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// Write writes the report: only what failed, or with opts.All every item, metric and gate.
func Write(w io.Writer, run *results.Run, opts reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		p := newPrinter(out, run, opts)
		items, causes, violations, err := p.collect()
		if err != nil {
			return err
		}
		p.head()
		if len(items.rows) > 0 {
			if err := p.grid(items); err != nil {
				return err
			}
		}
		if len(run.Summary.Providers) > 0 {
			if err := p.grid(p.totals()); err != nil {
				return err
			}
		}
		if err := p.faults(); err != nil {
			return err
		}
		p.causes(causes)
		p.violations(violations)
		p.flaky()
		p.quarantined()
		p.regression()
		p.gates()
		p.warnings()
		p.verdict()
		return nil
	})
}

func (p *printer) head() {
	s := &p.run.Summary
	head := fmt.Sprintf("%s: %s x %s", escape.Line(s.Dataset.Name), count(s.Selected.Items, "item"), count(len(s.Providers), "provider"))
	if s.Selected.Repeat > 1 {
		head += fmt.Sprintf(" x %d repeats", s.Selected.Repeat)
	}
	head += ", " + s.Mode
	if s.Tools != s.Mode {
		head += ", tools " + s.Tools
	}
	p.line("%s", p.paint(bold, head))
	if p.run.Incomplete {
		p.line("%s", p.paint(yellow, "incomplete: read from the journal of a run that was killed or still goes on"))
	}
	p.line("")
}

// violation is an invariant and the lines that broke it.
type violation struct {
	name     string
	severity eval.Severity
	lines    int
	first    string
	at       string
}

// collect reads the results once: the table's rows, the causes that are said once, the invariants that broke.
func (p *printer) collect() (items grid, causes []results.Cause, violations []violation, err error) {
	items.corner = "item"
	places := map[string]int{}
	for i, provider := range p.run.Summary.Providers {
		places[provider.ID] = i
		items.heads = append(items.heads, escape.Line(provider.ID))
	}
	var (
		groups  results.Causes
		pending = make([][]eval.Result, len(items.heads))
		index   int
		item    string
	)
	// The items on which the columns disagree stand before all others.
	var first []gridRow
	apart := p.run.Summary.Apart()
	flush := func() {
		if index == 0 || !p.opts.All && !shown(pending, apart) {
			return
		}
		row := gridRow{name: escape.Line(item)}
		for _, lines := range pending {
			row.cells = append(row.cells, cellOf(lines))
		}
		if _, ok := reports.Disagree(pending); ok {
			first = append(first, row)
		} else {
			items.rows = append(items.rows, row)
		}
	}
	if p.unblemished() {
		return items, nil, nil, nil
	}
	for line, err := range p.run.Lines() {
		if err != nil {
			return items, nil, nil, err
		}
		place, ok := places[line.Provider]
		if !ok {
			return items, nil, nil, failure.New(failure.Internal, "item %q: the summary has no provider %q", line.Item, line.Provider)
		}
		if line.Index != index {
			flush()
			for i := range pending {
				pending[i] = pending[i][:0]
			}
			index, item = line.Index, line.Item
		}
		groups.Add(&line)
		violations = addViolations(violations, &line)
		pending[place] = append(pending[place], line)
	}
	flush()
	items.rows = append(first, items.rows...)
	return items, groups.List(), violations, nil
}

// unblemished says that no line can have anything to show, so that none need be read: everything passed, and nothing was violated.
func (p *printer) unblemished() bool {
	s := &p.run.Summary
	violated := slices.ContainsFunc(s.Invariants, func(i results.Invariant) bool { return i.Violated > 0 })
	return !p.opts.All && !p.run.Incomplete && s.Counts.Pass == s.Counts.Total() && !violated
}

func addViolations(list []violation, line *eval.Result) []violation {
	seen := map[string]bool{}
	for _, v := range line.Invariants.Violations {
		if seen[v.Name] {
			continue
		}
		seen[v.Name] = true
		at := slices.IndexFunc(list, func(known violation) bool { return known.name == v.Name && known.severity == v.Severity })
		if at < 0 {
			list = append(list, violation{name: v.Name, severity: v.Severity, at: v.At, first: fmt.Sprintf("%s on %s: %s", line.Item, line.Provider, v.Evidence)})
			at = len(list) - 1
		}
		list[at].lines++
	}
	return list
}

// shown reports whether the item belongs in the short table: something failed that is not apart. What got no verdict is grouped by its cause and said below the table instead, once for all items.
func shown(columns [][]eval.Result, apart map[results.Key]bool) bool {
	for _, lines := range columns {
		for _, line := range lines {
			if line.Status == eval.Fail && !apart[results.Key{Item: line.Item, Provider: line.Provider}] {
				return true
			}
		}
	}
	return false
}

var styles = map[eval.Status]style{eval.Pass: green, eval.Fail: red, eval.Unjudged: yellow, eval.Error: yellow, eval.Stale: yellow, eval.NotRun: dim, eval.Skipped: dim}

// cellOf says what came of an item on one provider: the status and why, or for several repeats how often which.
func cellOf(lines []eval.Result) cell {
	if len(lines) == 0 {
		return cell{text: "-", style: dim}
	}
	why := func(status eval.Status) string {
		for i := range lines {
			if lines[i].Status == status {
				if text := detail(&lines[i]); text != "" {
					return ": " + text
				}
			}
		}
		return ""
	}
	quarantined := ""
	if lines[0].Quarantined {
		quarantined = " (quarantined)"
	}
	if len(lines) == 1 {
		status := lines[0].Status
		return cell{text: string(status) + quarantined + why(status), style: styles[status]}
	}
	var parts []string
	worst := eval.Pass
	for _, status := range eval.Statuses {
		n := 0
		for i := range lines {
			if lines[i].Status == status {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d%s", status, n, len(lines), why(status)))
			if worst == eval.Pass {
				worst = status
			}
		}
	}
	return cell{text: strings.Join(parts, ", ") + quarantined, style: styles[worst]}
}

// detail says in a few words why a line has its status.
func detail(line *eval.Result) string {
	var names []string
	add := func(name string) {
		if name = escape.Line(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	cause := ""
	if line.Cause != nil {
		cause = *line.Cause
	}
	switch line.Status {
	case eval.Fail, eval.Unjudged:
		want := eval.CheckFail
		if line.Status == eval.Unjudged {
			want = eval.CheckUnjudged
		}
		if cause == eval.CauseCheck || line.Status == eval.Unjudged {
			for _, c := range line.Checks {
				if c.Status == want {
					add(c.Name)
				}
			}
		}
		if cause == eval.CauseInvariant {
			for _, v := range line.Invariants.Violations {
				if v.Severity == eval.SeverityError {
					add(v.Name)
				}
			}
		}
	case eval.Error:
		text := cause
		switch {
		case line.Error == nil:
		case line.Error.Code != nil:
			text += " " + *line.Error.Code
		case line.Error.HTTPStatus != nil:
			text += " HTTP " + strconv.Itoa(*line.Error.HTTPStatus)
		}
		return escape.Line(text)
	case eval.Stale:
		var groups results.Causes
		groups.Add(line)
		return escape.Line(gate.StaleWord(groups.List()[0]))
	case eval.Skipped:
		return ""
	}
	if len(names) == 0 {
		return escape.Line(cause)
	}
	return strings.Join(names, ", ")
}

// brief are the metrics of the short report.
var brief = []string{"pass_rate", "score", "error_rate", "invariant_violations", "p50_latency", "p95_latency", "tokens", "tool_calls", "cost_usd", results.FaultSurvival}

func (p *printer) totals() grid {
	g := grid{corner: "total"}
	outcome := gridRow{name: "results"}
	for _, provider := range p.run.Summary.Providers {
		g.heads = append(g.heads, escape.Line(provider.ID))
		outcome.cells = append(outcome.cells, cell{text: counts(provider.Counts)})
	}
	g.rows = append(g.rows, outcome)
	for _, kind := range results.MetricTable {
		if !p.opts.All && !slices.Contains(brief, kind.Name) {
			continue
		}
		row := gridRow{name: kind.Name}
		known, asked := false, false
		for _, provider := range p.run.Summary.Providers {
			text := "-"
			m, is := provider.Metrics[kind.Name]
			asked = asked || is
			if m.Value != nil {
				known = true
				text = kind.Unit.Format(*m.Value)
				if m.Low != nil && m.High != nil {
					text += fmt.Sprintf(" [%s, %s]", kind.Unit.Format(*m.Low), kind.Unit.Format(*m.High))
				}
			}
			row.cells = append(row.cells, cell{text: text})
		}
		if known || p.opts.All && asked {
			g.rows = append(g.rows, row)
		}
	}
	if row, ok := p.power(); ok {
		g.rows = append(g.rows, row)
	}
	return g
}

// power is the smallest drop of the pass rate that the dataset sees on each column.
func (p *printer) power() (gridRow, bool) {
	row, known := gridRow{name: "sees a drop of"}, false
	for _, provider := range p.run.Summary.Providers {
		text := "-"
		for _, power := range p.run.Summary.Power {
			if power.Provider == provider.ID && power.Metric == "pass_rate" && power.DetectableDrop != nil {
				known = true
				text = gate.Whole(*power.DetectableDrop)
			}
		}
		row.cells = append(row.cells, cell{text: text})
	}
	return row, known
}

func counts(c results.Counts) string {
	var parts []string
	for _, status := range eval.Statuses {
		if n := c.Of(status); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// causes says each cause once, with what tells the reader whether it was meant.
func (p *printer) causes(list []results.Cause) {
	for _, c := range list {
		text := string(c.Status)
		switch {
		case c.Status == eval.Stale:
			text += ": " + escape.Line(gate.StaleWord(c))
		case c.Cause != "":
			text += ": " + escape.Line(c.Cause)
			if c.Detail != "" {
				text += " " + escape.Line(c.Detail)
			}
		}
		head := count(c.Items, "item") + " " + text
		if c.Lines > c.Items {
			head += fmt.Sprintf(" (%d results)", c.Lines)
		}
		p.line("%s", p.paint(styles[c.Status], head))
		p.field("items", listed(c))
		if d := c.Drift; d != nil {
			p.field("path", d.Path+inRequest(d.Request))
			p.field("recorded", d.Old)
			p.field("now", d.New)
		}
		if c.Message != "" {
			p.whole("message", c.Message)
		}
		if c.Hint != "" {
			p.whole("hint", c.Hint)
		}
		if c.Status == eval.Stale && c.Cause != eval.CauseDrift && c.First.Cassette != nil {
			p.field("cassette", c.First.Cassette.File)
		}
		p.line("")
	}
}

// listed names the items of a cause, as many as it knows.
func listed(c results.Cause) string {
	text := strings.Join(c.IDs, ", ")
	if more := c.Items - len(c.IDs); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// field writes a named value of untrusted text on one line, cut to the width.
func (p *printer) field(name, value string) {
	text := escape.Line(value)
	if !p.opts.All {
		text = cut(text, max(20, p.width-width(label(name))))
	}
	p.line("%s%s", p.paint(dim, label(name)), text)
}

// whole writes a named value of untrusted text, however long: what it says last may be what matters. Its lines stay lines.
func (p *printer) whole(name, value string) {
	for i, line := range strings.Split(value, "\n") {
		head := p.paint(dim, label(name))
		if i > 0 {
			head = strings.Repeat(" ", width(label(name)))
		}
		p.line("%s%s", head, escape.Line(line))
	}
}

func label(name string) string { return fmt.Sprintf("  %-9s ", name+":") }

func (p *printer) violations(list []violation) {
	for _, v := range list {
		shown := red
		if v.severity == eval.SeverityWarn {
			shown = yellow
		}
		p.line("%s", p.paint(shown, fmt.Sprintf("invariant %s (%s) violated in %s", escape.Line(v.name), escape.Line(string(v.severity)), count(v.lines, "result"))))
		p.field("first", v.first)
		if v.at != "" {
			p.field("at", v.at)
		}
		p.line("")
	}
}

// mostListed is how many items a list shows without opts.All.
const mostListed = 10

// flaky names the items whose repeats disagree: those that nobody has accepted, and those whose pass_if does.
func (p *printer) flaky() {
	said := false
	list := func(word, provider, why string, of results.List[results.Flaky]) {
		if of.Count == 0 {
			return
		}
		said = true
		n := len(of.Items)
		if !p.opts.All {
			n = min(n, mostListed)
		}
		var names []string
		for _, f := range of.Items[:n] {
			names = append(names, fmt.Sprintf("%s %d/%d", escape.Line(f.Item), f.Passed, f.Of))
		}
		text := strings.Join(names, ", ")
		if more := of.Count - n; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		p.line("%s %s on %s, %s", p.paint(yellow, word+":"), text, escape.Line(provider), why)
	}
	for _, provider := range p.run.Summary.Providers {
		list("flaky", provider.ID, "apart from failures", provider.Flaky)
		list("tolerated", provider.ID, "by their pass_if", provider.Tolerated)
	}
	if said {
		p.line("")
	}
}

func (p *printer) quarantined() {
	list := p.run.Summary.Quarantined
	for _, q := range list.Items {
		over := ""
		if q.Over {
			over = ", over: it gates again"
		}
		p.line("quarantined: %s, %s until %s%s: %s", escape.Line(q.Item), escape.Line(q.Owner), escape.Line(q.Until), over, escape.Line(q.Reason))
	}
	if len(list.Items) > 0 {
		p.line("")
	}
}

// gates lists those that do not hold or are off; with opts.All every one.
func (p *printer) gates() {
	any := false
	for _, g := range p.run.Summary.Gates {
		if g.Status == results.GateHolds && !p.opts.All {
			continue
		}
		any = true
		kind, _ := results.FindMetric(g.Metric)
		if gate.IsRegression(g.Metric) {
			kind.Unit = results.UnitFraction
		}
		value, bound := "no data", ""
		if g.Value != nil {
			value = kind.Unit.Format(*g.Value)
		}
		if g.Bound != nil {
			bound = ", bound " + *g.Bound
		}
		shown := red
		switch g.Status {
		case results.GateHolds:
			shown = green
		case results.GateOff, results.GateInconclusive:
			shown = yellow
		}
		name := escape.Line(g.Metric) + " of " + escape.Line(g.Provider)
		if g.Where != nil {
			name += " (" + escape.Line(*g.Where) + ")"
		}
		p.line("gate %s: %s%s: %s", name, value, escape.Line(bound), p.paint(shown, strings.ReplaceAll(string(g.Status), "_", " ")))
	}
	if any {
		p.line("")
	}
}

func (p *printer) warnings() {
	for _, w := range p.run.Summary.Warnings {
		at := ""
		if w.At != nil {
			at = escape.Line(*w.At) + ": "
		}
		p.line("%s %s%s (%s)", p.paint(yellow, "warning:"), at, escape.Line(w.Text), escape.Line(w.Code))
		if w.Hint != nil {
			p.line("  hint: %s", escape.Line(*w.Hint))
		}
	}
	if len(p.run.Summary.Warnings) > 0 {
		p.line("")
	}
}

// verdict is the last thing: the outcome, every other reason, and each hint once.
func (p *printer) verdict() {
	v := p.run.Summary.Verdict
	shown := red
	if v.Code == failure.OK {
		shown = green
	}
	p.line("%s", p.paint(shown, escape.Line(v.Text)))
	for i, r := range v.Reasons {
		if i == 0 && len(v.Reasons) == 1 || r.Kind == results.KindCassette && r.Items != nil {
			continue // the verdict, or the causes above, have said it; an error without items was not among them
		}
		name := ""
		switch {
		case r.Kind == results.KindGate && r.Gate != nil && r.Provider != nil:
			name = *r.Gate + " of " + *r.Provider + ": "
		case r.Provider != nil:
			name = *r.Provider + ": "
		}
		p.line("  %s: %s%s", escape.Line(r.Kind), escape.Line(name), escape.Line(r.Text))
	}
	var hints []string
	for _, r := range v.Reasons {
		if r.Hint != nil && !slices.Contains(hints, *r.Hint) {
			hints = append(hints, *r.Hint)
		}
	}
	for _, hint := range hints {
		p.line("hint: %s", escape.Line(hint))
	}
}

// inRequest is " in request N"; 0 is the cassette as a whole, of which nothing more is to say.
func inRequest(n int) string {
	if n == 0 {
		return ""
	}
	return " in request " + strconv.Itoa(n)
}
