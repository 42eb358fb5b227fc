package compare

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// Bounds on what the texts show without reports.Options.All.
const (
	mostOfKind = 10  // items of a kind
	mostAnswer = 160 // characters of an answer
	mostCalls  = 20  // calls of a tool path
)

// defaultWidth is that of the terminal where the options have none.
const defaultWidth = 100

// Write writes the comparison for people at a terminal: the metrics, then the items that disagree, worse ones first. Texts of models are escaped.
func Write(w io.Writer, d *Document, opts reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		// What the sink refuses is reported by the last flush.
		line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
		width := cmp.Or(opts.Width, defaultWidth)
		labels := d.labels()
		if d.lettered() {
			line("%s: %s", escape.Line(d.Dataset), strings.Join(labels, " -> "))
			for i, side := range d.Sides {
				line("  %s  %s", labels[i], escape.Line(side))
			}
		} else {
			line("%s: %s", escape.Line(d.Dataset), escape.Line(strings.Join(d.Sides, " -> ")))
		}
		for _, table := range d.sideBySide(width) {
			line("")
			for _, row := range table {
				line("%s", row)
			}
		}
		for i := range d.Comparisons {
			c := &d.Comparisons[i]
			line("")
			line("%s", escape.Line(d.title(c)))
			if len(c.Changed) > 0 {
				line("  changed: %s", strings.Join(c.Changed, ", "))
			}
			rows := [][]string{{"metric", "items", "before", "now", "difference", "interval", d.pName()}}
			for _, m := range c.Metrics {
				rows = append(rows, []string{m.Metric, fmt.Sprint(m.Pairs), Number(m.Metric, m.Before), Number(m.Metric, m.Now), Difference(m), Interval(m), p(m)})
			}
			table := aligned(rows, "  ")
			if utf8.RuneCountInString(table[0])+2 > width {
				table = aligned(rows, " ")
			}
			for _, row := range table {
				line("  %s", row)
			}
			for _, text := range append(c.judged(), c.counts()) {
				for i, part := range wrapped(text, width-4) {
					line("%s%s", strings.Repeat("  ", 1+min(i, 1)), part)
				}
			}
			for _, row := range c.shown(opts.All) {
				if row.more > 0 {
					line("  ... and %d more %s", row.more, row.kind)
					continue
				}
				line("  %s: %s%s", row.kind, escape.Line(row.Item), escape.Line(row.verdict()))
				if calls := row.calls(opts.All); calls != "" {
					line("    calls   %s", escape.Line(calls))
				}
				for _, answer := range row.answers(opts.All) {
					line("    %-7s %s", answer[0], escape.Line(answer[1]))
				}
			}
		}
		return nil
	})
}

// Markdown writes the comparison for a comment or a page. Whatever a model, a tool or a dataset wrote stands in code spans, where nothing acts.
func Markdown(w io.Writer, d *Document, opts reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
		names := make([]string, len(d.Sides))
		for i, name := range d.Sides {
			names[i] = escape.Code(name)
		}
		if d.lettered() {
			line("### Comparison of %s: %s", escape.Code(d.Dataset), strings.Join(d.labels(), " → "))
			line("")
			for i, label := range d.labels() {
				line("- %s: %s", label, names[i])
			}
		} else {
			line("### Comparison of %s: %s", escape.Code(d.Dataset), strings.Join(names, " → "))
		}
		if len(d.Columns) > 1 {
			line("")
			for i, row := range d.rows(escape.Cell) {
				line("| %s |", strings.Join(row, " | "))
				if i == 0 {
					line("|---|%s", strings.Repeat("--:|", len(row)-1))
				}
			}
		}
		for i := range d.Comparisons {
			c := &d.Comparisons[i]
			line("")
			line("#### %s", escape.Code(d.title(c)))
			line("")
			line("| metric | items | before | now | difference | interval | %s |", d.pName())
			line("|---|--:|--:|--:|--:|--:|--:|")
			for _, m := range c.Metrics {
				line("| %s | %d | %s | %s | %s | %s | %s |", m.Metric, m.Pairs, Number(m.Metric, m.Before), Number(m.Metric, m.Now), Difference(m), Interval(m), p(m))
			}
			line("")
			for _, text := range c.judged() {
				line("%s", text)
			}
			line("%s", c.counts())
			rows := c.shown(opts.All)
			if len(rows) > 0 {
				line("")
			}
			for _, row := range rows {
				if row.more > 0 {
					line("- and %d more %s", row.more, row.kind)
					continue
				}
				line("- %s: %s%s", row.kind, escape.Code(row.Item), span(row.verdict()))
				if calls := row.calls(opts.All); calls != "" {
					line("  - calls %s", escape.Code(calls))
				}
				for _, answer := range row.answers(opts.All) {
					line("  - %s %s", answer[0], escape.Code(answer[1]))
				}
			}
		}
		return nil
	})
}

// longestSide is how many characters a side's name may have to stand in the head of a column.
const longestSide = 12

// lettered reports whether the sides are called by letters, because their names, those of runs most often, are too long.
func (d *Document) lettered() bool {
	return len(d.Sides) > 1 && len(d.Sides) <= 'Z'-'A'+1 && slices.ContainsFunc(d.Sides, func(s string) bool { return utf8.RuneCountInString(s) > longestSide })
}

// labels are what the sides are called in heads and titles.
func (d *Document) labels() []string {
	if !d.lettered() {
		return d.Sides
	}
	out := make([]string, len(d.Sides))
	for i := range out {
		out[i] = string(rune('A' + i))
	}
	return out
}

func (d *Document) label(side string) string {
	if i := slices.Index(d.Sides, side); i >= 0 {
		return d.labels()[i]
	}
	return side
}

// rows are the columns side by side: the names, then a row for each metric.
func (d *Document) rows(escaped func(string) string) [][]string {
	rows := [][]string{{"metric"}}
	for _, c := range d.Columns {
		name := c.Provider
		if len(d.Sides) > 1 {
			name += " in " + d.label(c.Side)
		}
		rows[0] = append(rows[0], escaped(name))
	}
	for _, metric := range reports.SideBySide {
		row := []string{metric}
		for _, c := range d.Columns {
			row = append(row, Number(metric, c.Metrics[metric].Value))
		}
		rows = append(rows, row)
	}
	return rows
}

// group is what one provider has on the sides: lines of one width, the first its name.
type group struct {
	lines []string
	width int
}

// groups are the columns by provider, in the order in which they first stand.
func (d *Document) groups() []group {
	var names []string
	columns := map[string][]Numbers{}
	for _, c := range d.Columns {
		if columns[c.Provider] == nil {
			names = append(names, c.Provider)
		}
		columns[c.Provider] = append(columns[c.Provider], c)
	}
	var out []group
	for _, name := range names {
		var rows [][]string
		if len(d.Sides) > 1 {
			var heads []string
			for _, c := range columns[name] {
				heads = append(heads, escape.Line(d.label(c.Side)))
			}
			rows = append(rows, heads)
		}
		for _, metric := range reports.SideBySide {
			var row []string
			for _, c := range columns[name] {
				row = append(row, Number(metric, c.Metrics[metric].Value))
			}
			rows = append(rows, row)
		}
		// The first column is aligned to the left; here all are numbers.
		for i := range rows {
			rows[i] = append([]string{""}, rows[i]...)
		}
		g := group{lines: append([]string{escape.Line(name)}, aligned(rows, "  ")...)}
		for i, line := range g.lines {
			if i > 0 {
				g.lines[i] = strings.TrimPrefix(line, "  ")
			}
			g.width = max(g.width, utf8.RuneCountInString(g.lines[i]))
		}
		out = append(out, g)
	}
	return out
}

// sideBySide gives the lines of the tables that show all columns, as many providers in each as fit into the width, and the sides of one together; none for a single column.
func (d *Document) sideBySide(width int) [][]string {
	if len(d.Columns) < 2 {
		return nil
	}
	heads := []string{"metric"}
	if len(d.Sides) > 1 {
		heads = []string{"", "metric"}
	}
	heads = append(heads, reports.SideBySide...)
	corner := 0
	for _, head := range heads {
		corner = max(corner, utf8.RuneCountInString(head))
	}
	var tables [][]string
	var table []string
	used := 0
	for _, g := range d.groups() {
		if table == nil || used+2+g.width > width {
			table = make([]string, len(heads))
			for i, head := range heads {
				table[i] = head + strings.Repeat(" ", corner-utf8.RuneCountInString(head))
			}
			tables, used = append(tables, table), corner
		}
		for i := range table {
			table[i] += "  " + strings.Repeat(" ", g.width-utf8.RuneCountInString(g.lines[i])) + g.lines[i]
		}
		used += 2 + g.width
	}
	return tables
}

// wrapped breaks a sentence behind commas and semicolons where it is too long.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for rest := text; rest != ""; {
		end := len(rest)
		if i := strings.IndexAny(rest, ",;"); i >= 0 && strings.HasPrefix(rest[i+1:], " ") {
			end = i + 2
		} else if i >= 0 {
			end = i + 1
		}
		part := rest[:end]
		rest = rest[end:]
		if line != "" && utf8.RuneCountInString(strings.TrimRight(line+part, " ")) > width && strings.HasSuffix(line, " ") {
			lines = append(lines, strings.TrimRight(line, " "))
			line = ""
		}
		line += part
	}
	return append(lines, line)
}

func span(s string) string {
	if s == "" {
		return ""
	}
	return " " + escape.Code(strings.TrimSpace(s))
}

// Number writes a metric's value for people; "-" where it is not known.
func Number(metric string, n *results.Number) string {
	if n == nil {
		return "-"
	}
	kind, _ := results.FindMetric(metric)
	return kind.Unit.Format(*n)
}

// Difference writes the difference of a comparison with its sign.
func Difference(m results.Comparison) string {
	if m.Difference == nil {
		return "-"
	}
	text := Number(m.Metric, m.Difference)
	if *m.Difference > 0 {
		return "+" + text
	}
	// The unit's mark stands behind the sign: -$0.1, not $-0.1.
	if amount, ok := strings.CutPrefix(text, "$-"); ok {
		return "-$" + amount
	}
	return text
}

// Interval writes the interval of a difference for people; "-" where there is none.
func Interval(m results.Comparison) string {
	if m.Low == nil || m.High == nil {
		return "-"
	}
	return fmt.Sprintf("[%s, %s]", Number(m.Metric, m.Low), Number(m.Metric, m.High))
}

// pName is what p is called: it is corrected where there are several.
func (d *Document) pName() string {
	if len(d.Comparisons) > 1 {
		return "p (Holm)"
	}
	return "p"
}

func p(m results.Comparison) string {
	switch {
	case m.PAdjusted == nil:
		return "-"
	case *m.PAdjusted < 0.001:
		return "< 0.001"
	}
	return strconv.FormatFloat(float64(*m.PAdjusted), 'f', 3, 64)
}

// judged says what the bounded metric shows.
func (c *Comparison) judged() []string {
	var out []string
	for i := range c.Metrics {
		if m := &c.Metrics[i]; m.MaxDrop != nil && m.Pairs > 0 { // without a pair the counts say so
			out = append(out, judged(m))
		}
	}
	return out
}

func judged(m *results.Comparison) string {
	text := m.Metric + ": " + gate.Found(m) + ": " + strings.ReplaceAll(m.Status, "_", " ")
	if open := gate.Open(m); open != "" {
		text += "; " + open
	}
	return text
}

// title names the columns of a comparison, and their sides by their labels where there are more than two.
func (d *Document) title(c *Comparison) string {
	of := *c
	of.Before.Side, of.Now.Side = d.label(c.Before.Side), d.label(c.Now.Side)
	return of.title(len(d.Sides) > 2)
}

func (c *Comparison) title(sides bool) string {
	before, now := c.Before.Provider, c.Now.Provider
	if sides && before == now {
		return now + ": " + c.Before.Side + " -> " + c.Now.Side
	}
	if sides {
		before, now = before+" in "+c.Before.Side, now+" in "+c.Now.Side
	}
	if before == now {
		return now
	}
	return before + " -> " + now
}

func (c *Comparison) counts() string {
	text := fmt.Sprintf("%d worse, %d better, %d with new violations, %d as before; not compared: %d changed, %d new, %d removed",
		c.Items.Worse.Count, c.Items.Better.Count, c.Items.NewViolations.Count, c.Unchanged, c.Items.Changed.Count, c.Items.New.Count, c.Items.Removed.Count)
	if c.Pairs() == 0 {
		text += "; no item is asked and judged alike on both"
	}
	return text
}

// shownRow is a disagreement, or with more how many of the kind are left out.
type shownRow struct {
	*Disagreement
	kind string
	more int
}

func (c *Comparison) shown(all bool) []shownRow {
	var rows []shownRow
	for i := 0; i < len(c.Disagree); {
		first := rank(c.Disagree[i])
		end := i
		for end < len(c.Disagree) && rank(c.Disagree[end]) == first {
			end++
		}
		kind := c.Disagree[i].Kind
		if len(c.Disagree[i].NewViolations) > 0 && kind != string(baseline.Worse) {
			kind = "new violation"
		}
		most := end - i
		if !all {
			most = min(most, mostOfKind)
		}
		for k := range most {
			rows = append(rows, shownRow{Disagreement: &c.Disagree[i+k], kind: kind})
		}
		total := max(end-i, c.total(kind))
		if total > most {
			rows = append(rows, shownRow{kind: kind, more: total - most})
		}
		i = end
	}
	return rows
}

func (c *Comparison) total(kind string) int {
	switch baseline.Kind(kind) {
	case baseline.Worse:
		return c.Items.Worse.Count
	case baseline.Changed:
		return c.Items.Changed.Count
	case baseline.New:
		return c.Items.New.Count
	case baseline.Removed:
		return c.Items.Removed.Count
	}
	return 0
}

// verdict says how often the item passed, and what failed and broke now.
func (m *Disagreement) verdict() string {
	var text string
	switch {
	case m.Before != nil && m.Now != nil:
		text = fmt.Sprintf(" passed %s -> %s", m.Before.share(), m.Now.share())
	case m.Now != nil:
		text = " passed " + m.Now.share()
	case m.Before != nil:
		text = " passed " + m.Before.share()
	}
	if m.Now != nil && len(m.Now.Failed) > 0 {
		text += ", failed " + strings.Join(m.Now.Failed, ", ")
	}
	if len(m.NewViolations) > 0 {
		text += ", now violates " + strings.Join(m.NewViolations, ", ")
	}
	return text
}

func (o *Outcome) share() string {
	if o.Of == 0 {
		return "unjudged"
	}
	return fmt.Sprintf("%d/%d", o.Passed, o.Of)
}

// calls gives the tool path on either side, once where it is the same.
func (m *Disagreement) calls(all bool) string {
	switch {
	case m.Before != nil && m.Now != nil && m.Before.Calls != nil && m.Now.Calls != nil:
		if slices.Equal(m.Before.Calls, m.Now.Calls) {
			return path(m.Now.Calls, all)
		}
		return path(m.Before.Calls, all) + " -> " + path(m.Now.Calls, all)
	case m.Now != nil && m.Now.Calls != nil:
		return path(m.Now.Calls, all)
	case m.Before != nil && m.Before.Calls != nil:
		return path(m.Before.Calls, all)
	}
	return ""
}

func path(calls []string, all bool) string {
	if len(calls) == 0 {
		return "(none)"
	}
	if more := len(calls) - mostCalls; more > 0 && !all {
		return fmt.Sprintf("[%s and %d more]", strings.Join(calls[:mostCalls], ", "), more)
	}
	return "[" + strings.Join(calls, ", ") + "]"
}

// answers gives the answers of both sides, once where they are the same.
func (m *Disagreement) answers(all bool) [][2]string {
	var out [][2]string
	add := func(name string, o *Outcome) {
		if o != nil && o.Answer != nil {
			out = append(out, [2]string{name, Short(*o.Answer, mostAnswer, all)})
		}
	}
	add("before", m.Before)
	add("now", m.Now)
	if len(out) == 2 && *m.Before.Answer == *m.Now.Answer {
		return [][2]string{{"both", out[0][1]}}
	}
	return out
}

// Short cuts a text to n characters, unless all of it is wanted.
func Short(s string, n int, all bool) string {
	if all {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// aligned pads cells: the first column to the left, the others to the right. A character is taken to be one column wide.
func aligned(rows [][]string, between string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, len(rows))
	for r, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				cells[i] = cell + pad
			} else {
				cells[i] = pad + cell
			}
		}
		out[r] = strings.Join(cells, between)
	}
	return out
}
