// Package mutation shows what came of mutated outcomes: how many faults were noticed, by which checks, and those that nobody noticed with the difference.
package mutation

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/mutate"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// Bounds on what the texts show without reports.Options.All.
const (
	mostItems     = 10
	mostSurvivors = 20
	mostLeftOut   = 10
)

// JSON writes the report as one line.
func JSON(w io.Writer, r *mutate.Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	if _, err = w.Write(append(escape.JSON(data), '\n')); err != nil {
		return failure.WithCode(fmt.Errorf("writing the report: %w", err), failure.Internal)
	}
	return nil
}

// Write writes the report for people at a terminal. Texts of models are escaped.
func Write(w io.Writer, r *mutate.Result, opts reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		// What the sink refuses is reported by the last flush.
		line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
		line("%s: %s", escape.Line(r.Dataset), summary(r))
		for _, t := range tables(r, opts.All) {
			line("")
			for _, row := range aligned(escaped(t.rows, escape.Line)) {
				line(" %s", row)
			}
			if t.more > 0 {
				line(" ... and %d more, --all shows them", t.more)
			}
		}
		survivors, more := survivors(r, opts.All)
		if len(survivors) > 0 {
			line("")
			line("survivors")
		}
		for _, s := range survivors {
			line("")
			line(" %s on %s%s: %s, %s%s", escape.Line(s.Item), escape.Line(strings.Join(s.providers, ", ")), repeat(s.Repeat), s.Operator, escape.Line(s.What), escape.Line(asides(s.Survivor)))
			if s.Before != "" {
				line("   - %s", escape.Line(s.Before))
			}
			if s.After != "" {
				line("   + %s", escape.Line(s.After))
			}
		}
		if more > 0 {
			line("")
			line(" ... and %d more%s", more, howToSee(opts.All))
		}
		if missing := noticing(r); len(missing) > 0 {
			line("")
			line("what would notice")
			for _, row := range aligned(missing) {
				line(" %s", row)
			}
		}
		left := notes(r, opts.All)
		if len(left) > 0 {
			line("")
		}
		for _, text := range left {
			line("%s", escape.Line(text))
		}
		line("")
		line("%s", escape.Line(verdict(r)))
		return nil
	})
}

// Markdown writes the report for a comment or a page. Whatever a model, a tool or a dataset wrote stands in code spans, where nothing acts.
func Markdown(w io.Writer, r *mutate.Result, opts reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
		line("### Mutants of %s: %s", escape.Code(r.Dataset), verdict(r))
		line("")
		line("%s.", summary(r))
		for _, t := range tables(r, opts.All) {
			line("")
			for i, row := range t.rows {
				cells := slices.Clone(row)
				for k := range t.names {
					if i > 0 {
						cells[k] = escape.Cell(row[k])
					}
				}
				line("| %s |", strings.Join(cells, " | "))
				if i == 0 {
					line("|%s%s", strings.Repeat("---|", t.names), strings.Repeat("--:|", len(row)-t.names))
				}
			}
			if t.more > 0 {
				line("")
				line("and %d more", t.more)
			}
		}
		survivors, more := survivors(r, opts.All)
		if len(survivors) > 0 {
			line("")
			line("#### Survivors")
			line("")
		}
		for _, s := range survivors {
			line("- %s on %s%s: %s, %s%s", escape.Code(s.Item), escape.Code(strings.Join(s.providers, ", ")), repeat(s.Repeat), s.Operator, escape.Code(s.What), span(asides(s.Survivor)))
			if s.Before != "" {
				line("  - was %s", escape.Code(s.Before))
			}
			if s.After != "" {
				line("  - is %s", escape.Code(s.After))
			}
		}
		if more > 0 {
			line("- and %d more", more)
		}
		if missing := noticing(r); len(missing) > 0 {
			line("")
			line("#### What would notice")
			line("")
			for _, row := range missing {
				line("- %s: %s", row[0], row[1])
			}
		}
		left := notes(r, opts.All)
		if len(left) > 0 {
			line("")
			line("#### What was left out")
			line("")
		}
		for _, text := range left {
			line("- %s", escape.Code(text))
		}
		return nil
	})
}

func summary(r *mutate.Result) string {
	text := fmt.Sprintf("%s of %s, %d killed, %d survived, kill rate %s", count(r.Mutants, "mutant"), count(r.Mutated, "outcome"), r.Killed, r.Survived, mutate.Percent(r.KillRate))
	if r.Equivalent > 0 {
		text += fmt.Sprintf("; %d more change nothing and do not count", r.Equivalent)
	}
	return fmt.Sprintf("%s; seed %d", text, r.Seed)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// verdict is the verdict with its code in words.
func verdict(r *mutate.Result) string {
	text := r.Verdict.Text
	switch {
	case r.Verdict.Code == failure.Gate:
		return "failed: " + text
	case r.Verdict.Code != failure.OK:
		return text
	case r.Gate != nil:
		return "passed: " + text + ", bound " + r.Gate.Bound
	}
	return text
}

// table is one table of the report. The first columns are names, which others wrote.
type table struct {
	names int
	rows  [][]string
	more  int
}

func tables(r *mutate.Result, all bool) []table {
	operators := table{names: 1, rows: [][]string{{"operator", "mutants", "killed", "survived", "kill rate"}}}
	for _, o := range r.Operators {
		operators.rows = append(operators.rows, append([]string{o.Name}, counts(o.Count)...))
	}
	checks := table{names: 1, rows: [][]string{{"check or invariant", "judged", "noticed", "share", "alone", "could not judge"}}}
	for _, n := range slices.Concat(r.Checks, r.Invariants) {
		name := n.Name
		if n.Reports {
			name += " (only reports)"
		}
		checks.rows = append(checks.rows, append([]string{name}, noticed(n)...))
	}
	items := table{names: 2, rows: [][]string{{"item, the weakest first", "provider", "mutants", "killed", "survived", "kill rate"}}}
	var weak []mutate.Item
	for _, i := range r.Items.Items {
		if i.Survived > 0 || all {
			weak = append(weak, i)
		}
	}
	list := shown(weak, mostItems, all)
	items.more = len(weak) - len(list)
	for _, i := range list {
		items.rows = append(items.rows, append([]string{i.Item + repeat(i.Repeat), i.Provider}, counts(i.Count)...))
	}
	var out []table
	for _, t := range []table{operators, checks, items} {
		if len(t.rows) > 1 {
			out = append(out, t)
		}
	}
	return out
}

func counts(c mutate.Count) []string {
	return []string{fmt.Sprint(c.Mutants), fmt.Sprint(c.Killed), fmt.Sprint(c.Survived), mutate.Percent(c.KillRate)}
}

func noticed(n mutate.Noticing) []string {
	share := "-"
	if n.Of > 0 {
		share = fmt.Sprintf("%.1f %%", 100*float64(n.Noticed)/float64(n.Of))
	}
	return []string{fmt.Sprint(n.Of), fmt.Sprint(n.Noticed), share, fmt.Sprint(n.Alone), fmt.Sprint(n.Unjudged)}
}

func shown[T any](list []T, most int, all bool) []T {
	if all || len(list) <= most {
		return list
	}
	return list[:most]
}

// group is a survivor that several providers have alike.
type group struct {
	mutate.Survivor
	providers []string
}

// survivors are those that are shown, the same ones of several providers together, in the order of the first, and how many more there are.
func survivors(r *mutate.Result, all bool) (list []group, more int) {
	for _, s := range r.Survivors.Items {
		i := slices.IndexFunc(list, func(g group) bool { return g.like(s) })
		if i < 0 {
			list = append(list, group{Survivor: s})
			i = len(list) - 1
		}
		list[i].providers = append(list[i].providers, s.Provider)
	}
	list = shown(list, mostSurvivors, all)
	more = r.Survivors.Count
	for _, g := range list {
		more -= len(g.providers)
	}
	return list, more
}

// like reports that a survivor is the same but for the provider.
func (g *group) like(s mutate.Survivor) bool {
	own := g.Survivor
	return own.Item == s.Item && own.Repeat == s.Repeat && own.Operator == s.Operator && own.What == s.What && own.Before == s.Before && own.After == s.After && asides(own) == asides(s)
}

func repeat(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (repeat %d)", n)
}

// asides say who noticed without deciding, and who could not be asked.
func asides(s mutate.Survivor) string {
	var parts []string
	if len(s.Noticed) > 0 {
		parts = append(parts, "noticed without deciding: "+strings.Join(s.Noticed, ", "))
	}
	if len(s.Unjudged) > 0 {
		parts = append(parts, "left out: "+strings.Join(s.Unjudged, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func span(s string) string {
	if s == "" {
		return ""
	}
	return " " + escape.Code(strings.TrimSpace(s))
}

func howToSee(all bool) string {
	if all {
		return ""
	}
	return ", --all shows them"
}

// noticing says for the operators whose mutants survive what would notice them.
func noticing(r *mutate.Result) [][]string {
	var out [][]string
	for _, o := range r.Operators {
		i := slices.IndexFunc(mutate.Operators, func(op mutate.Operator) bool { return op.Name == o.Name })
		if o.Survived > 0 && i >= 0 {
			out = append(out, []string{o.Name, mutate.Operators[i].Notices})
		}
	}
	return out
}

// notes say what was left out.
func notes(r *mutate.Result, all bool) []string {
	var out []string
	if r.Open > 0 {
		out = append(out, fmt.Sprintf("%d of the survivors might have been noticed by a check that could not be asked", r.Open))
	}
	for _, u := range r.Unjudged {
		out = append(out, fmt.Sprintf("check %s was left out for %s: %s", u.Check, count(u.Mutants, "mutant"), u.Reason))
	}
	list := shown(r.LeftOut.Items, mostLeftOut, all)
	for _, l := range list {
		text := fmt.Sprintf("left out: %s on %s%s, %s as recorded", l.Item, l.Provider, repeat(l.Repeat), l.Status)
		if l.Cause != "" {
			text += " (" + strings.ReplaceAll(l.Cause, "_", " ") + ")"
		}
		out = append(out, text)
	}
	if more := r.LeftOut.Count - len(list); more > 0 {
		out = append(out, fmt.Sprintf("left out: %d more", more))
	}
	return out
}

// escaped makes every cell safe.
func escaped(rows [][]string, escape func(string) string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			out[i] = append(out[i], escape(cell))
		}
	}
	return out
}

// aligned pads the cells of rows; columns of numbers stand to the right.
func aligned(rows [][]string) []string {
	widths := []int{}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, len(rows))
	for k, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if i > 0 && right(rows, i) {
				b.WriteString(pad + cell)
				continue
			}
			b.WriteString(cell + pad)
		}
		out[k] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// right reports that a column holds numbers below its head.
func right(rows [][]string, column int) bool {
	for _, row := range rows[min(1, len(rows)):] {
		if !strings.ContainsAny(row[column][:min(1, len(row[column]))], "0123456789-") {
			return false
		}
	}
	return len(rows) > 1
}
