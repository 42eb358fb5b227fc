// Package markdown writes a run for a comment on a pull request: the verdict first, then what is worse than the baseline, newly violated and better, cost and latency beside it, several providers side by side and the items on which they disagree, what fails all the same, and warnings.
//
// The text is at most [MaxBytes] long. Every section has its share of that and says how many entries it left out, so that no flood in one hides the next. Whatever a model, a tool, a dataset or an error wrote stands in code spans, where no markup, link, image, HTML, mention or reference acts.
package markdown

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/compare"
	"github.com/echoeval/echoeval/reports/escape"
)

// MaxBytes is the length of the text at most. A comment on GitHub takes 65,536 characters.
const MaxBytes = 60_000

// Bounds on the entries.
const (
	mostAnswer  = 200 // characters of an answer
	mostText    = 300 // characters of any other text
	mostMessage = 600 // of what happened, whose end is the end of standard error
	mostChecks  = 5   // failed checks or violations of a result
	mostColumns = 8   // providers beside each other
	leastShare  = 2_000
	// mostKept is how many entries of a section are held: more than that never fit.
	mostKept = 1_000
)

// section is a part of the report. Its head always stands; of its entries as many as fit.
type section struct {
	head    string // its lines, each with its end
	entries []string
	total   int // of entries, those that were not kept included
	what    string
}

func (s *section) add(format string, args ...any) {
	s.total++
	if len(s.entries) < mostKept {
		s.entries = append(s.entries, fmt.Sprintf(format, args...))
	}
}

// Write writes the report. It holds the baseline, where the run was compared with one, and of the results one item at a time.
func Write(w io.Writer, run *results.Run, opts reports.Options) error {
	return Within(w, run, opts, MaxBytes)
}

// Several is [Write] for several runs, a section each.
func Several(w io.Writer, runs []*results.Run, opts reports.Options) error {
	return Sections(w, runs, opts, MaxBytes)
}

// Sections writes the runs within so many bytes: the verdicts, then a section each with what is worse, newly violated and failed before all else. A run that needs less than its share leaves the rest to those behind it.
func Sections(w io.Writer, runs []*results.Run, opts reports.Options, most int) error {
	return reports.To(w, func(out *bufio.Writer) error {
		var text bytes.Buffer
		if len(runs) > 1 {
			text.WriteString("| dataset | verdict |\n|---|---|\n")
			for _, run := range runs {
				fmt.Fprintf(&text, "| %s | %s |\n", cell(run.Summary.Dataset.Name), cell(run.Summary.Verdict.Text))
			}
		}
		for i, run := range runs {
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			if err := Within(&text, run, opts, (most-text.Len())/(len(runs)-i)); err != nil {
				return err
			}
		}
		_, _ = out.Write(text.Bytes()) // what the sink refuses is reported by the last flush
		return nil
	})
}

// Within is [Write] with another bound on the length, in bytes, for a place that takes more or less than a comment. Less than the heads of all sections it cannot be.
func Within(w io.Writer, run *results.Run, _ reports.Options, most int) error {
	return reports.To(w, func(out *bufio.Writer) error {
		r := report{run: run, s: &run.Summary}
		if err := r.read(); err != nil {
			return err
		}
		// What the sink refuses is reported by the last flush.
		_, _ = out.WriteString(fit([]*section{r.verdict(), &r.worse, &r.violations, &r.better, r.numbers(), r.columns(), r.faults(), &r.disagree, &r.other, &r.failed, r.causes("### Programs that failed\n\n", true), r.causes("### Without a verdict\n\n", false), r.notes()}, most))
		return nil
	})
}

// fit puts the sections together within a length.
func fit(sections []*section, most int) string {
	sections = slices.DeleteFunc(sections, func(s *section) bool { return s.head == "" && s.total == 0 })
	var b strings.Builder
	for i, s := range sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s.head)
		// Room for what follows, and for the line that counts what is left out.
		room := most - b.Len() - 200
		for _, later := range sections[i+1:] {
			room -= len(later.head) + leastShare
		}
		written := 0
		for _, entry := range s.entries {
			if len(entry)+1 > room {
				break
			}
			room -= len(entry) + 1
			written++
			b.WriteString(entry)
			b.WriteByte('\n')
		}
		if more := s.total - written; more > 0 {
			fmt.Fprintf(&b, "\n_and %d more %s_\n", more, s.what)
		}
	}
	return b.String()
}

type report struct {
	run                              *results.Run
	s                                *results.Summary
	worse, better, violations, other section
	failed, disagree                 section
	groups                           results.Causes
}

// short is untrusted text as a code span.
func short(s string) string { return escape.Code(compare.Short(s, mostText, false)) }

// read goes through the results once.
func (r *report) read() error {
	r.worse = section{what: "items that are worse"}
	r.better = section{what: "items that are better"}
	r.violations = section{what: "items with a new violation"}
	r.other = section{what: "items that were not compared"}
	r.failed = section{what: "results that failed"}
	before, err := r.baseline()
	if err != nil {
		return err
	}
	var moved map[[2]string]bool
	if before != nil {
		moved = map[[2]string]bool{}
		if err := r.compare(before, moved); err != nil {
			return err
		}
	}
	r.disagree = section{what: "items on which the providers disagree"}
	for d, err := range reports.Disagreements(r.run) {
		if err != nil {
			return err
		}
		r.disagree.add("%s", disagreement(d))
	}
	apart := r.s.Apart()
	for line, err := range r.run.Lines() {
		if err != nil {
			return err
		}
		r.groups.Add(&line)
		if line.Status == eval.Fail && !moved[[2]string{line.Item, line.Provider}] && !apart[results.Key{Item: line.Item, Provider: line.Provider}] {
			r.fail(&line)
		}
	}
	title := "### Failed\n\n"
	if before != nil {
		title = "### Failed, as before or not compared\n\n"
	}
	for _, s := range []struct {
		*section
		head string
	}{{&r.worse, "### Worse\n\n"}, {&r.violations, "### New violations\n\n"}, {&r.better, "### Better\n\n"}, {&r.disagree, "### Providers disagree\n\n"}, {&r.other, "### Not compared\n\n"}, {&r.failed, title}} {
		if s.total > 0 {
			s.section.head = strings.Replace(s.head, "\n", fmt.Sprintf(": %d\n", s.total), 1)
		}
	}
	return nil
}

// baseline reads the copy in the run's folder; nil where the run was not compared.
func (r *report) baseline() (*baseline.File, error) {
	if r.s.Regression == nil || r.s.Regression.Baseline.Hash == nil {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(r.run.Dir, baseline.RunFile))
	if err != nil {
		return nil, failure.WithCode(fmt.Errorf("reading the baseline of the run: %w", err), failure.Internal)
	}
	return baseline.Decode(baseline.RunFile, data)
}

func (r *report) compare(before *baseline.File, moved map[[2]string]bool) error {
	var failed error
	calls := func(e *baseline.Entry) []string {
		names, err := baseline.Calls(r.run, e)
		if failed == nil {
			failed = err
		}
		return names
	}
	comparer := baseline.NewComparer(before, func(m baseline.Move) {
		if m.Now != nil && (m.Kind == baseline.Worse || len(m.NewViolations) > 0) {
			moved[[2]string{m.Now.Item.Item, m.Now.Provider}] = true
		}
		if len(m.NewViolations) > 0 {
			r.violations.add("- %s on %s: %s", short(m.Now.Item.Item), short(m.Now.Provider), short(strings.Join(m.NewViolations, ", ")))
		}
		switch m.Kind {
		case baseline.Worse:
			if r.worse.total < mostKept {
				m.Now.Calls = calls(m.Now)
			}
			r.worse.add("%s", move(m))
		case baseline.Better:
			r.better.add("- %s on %s: passed %s, was %s", short(m.Now.Item.Item), short(m.Now.Provider), share(&m.Now.Item), share(m.Before))
		case baseline.Changed:
			r.other.add("- changed: %s on %s", short(m.Now.Item.Item), short(m.Now.Provider))
		case baseline.New:
			r.other.add("- new: %s on %s", short(m.Now.Item.Item), short(m.Now.Provider))
		case baseline.Removed:
			r.other.add("- removed: %s on %s", short(m.Before.Item), short(m.Before.Provider))
		}
	})
	comparer.Count(r.s.Selected.Counted())
	for line, err := range r.run.Lines() {
		if err != nil {
			return err
		}
		comparer.Add(&line)
	}
	now := baseline.Now{Mode: r.s.Mode, Whole: baseline.Whole(r.run)}
	for _, p := range r.s.Providers {
		now.Providers = append(now.Providers, p.ProviderInfo)
	}
	comparer.Finish(now)
	return failed
}

func share(i *baseline.Item) string {
	passed, of := i.Judged()
	if of == 0 {
		return "unjudged"
	}
	return fmt.Sprintf("%d/%d", passed, of)
}

// move is an item that is worse, with what was done and said on either side.
func move(m baseline.Move) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s on %s: passed %s, was %s", short(m.Now.Item.Item), short(m.Now.Provider), share(&m.Now.Item), share(m.Before))
	if len(m.Now.Failed) > 0 {
		fmt.Fprintf(&b, "; failed %s", short(strings.Join(m.Now.Failed, ", ")))
	}
	if m.Before.Calls != nil && m.Now.Calls != nil && !slices.Equal(m.Before.Calls, m.Now.Calls) {
		fmt.Fprintf(&b, "\n  - calls: %s, was %s", calls(m.Now.Calls), calls(m.Before.Calls))
	}
	for _, answer := range []struct {
		name string
		text *string
	}{{"now", m.Now.Answer}, {"before", m.Before.Answer}} {
		if answer.text != nil {
			fmt.Fprintf(&b, "\n  - %s: %s", answer.name, escape.Code(compare.Short(*answer.text, mostAnswer, false)))
		}
	}
	return b.String()
}

func calls(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return short(strings.Join(names, ", "))
}

func (r *report) fail(line *eval.Result) {
	if r.failed.total >= mostKept {
		r.failed.total++
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- %s on %s", short(line.Item), short(line.Provider))
	if r.s.Selected.Repeat > 1 || line.Repeat > 1 {
		fmt.Fprintf(&b, ", repeat %d", line.Repeat)
	}
	if line.Quarantined {
		b.WriteString(" (quarantined)")
	}
	if line.Cause != nil {
		fmt.Fprintf(&b, ": %s", short(*line.Cause))
	}
	why := 0
	add := func(text string) {
		if why++; why <= mostChecks {
			b.WriteString("\n  - " + text)
		}
	}
	for i := range line.Checks {
		if c := &line.Checks[i]; c.Status == eval.CheckFail {
			text := short(c.Name)
			if c.Reason != "" {
				text += ": " + short(c.Reason)
			}
			if c.At != "" {
				text += " at " + short(c.At)
			}
			add(text)
		}
	}
	for _, v := range line.Invariants.Violations {
		if v.Severity == eval.SeverityError {
			add("violates " + short(v.Name) + ": " + short(v.Evidence))
		}
	}
	if why > mostChecks {
		fmt.Fprintf(&b, "\n  - and %d more", why-mostChecks)
	}
	r.failed.add("%s", b.String())
}

// mark shows the verdict before it is read.
var mark = map[bool]string{true: "✅", false: "❌"}

func (r *report) verdict() *section {
	v := r.s.Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "## %s %s\n\n%s (exit code %d)\n", mark[v.Code == failure.OK], short(r.s.Dataset.Name), short(v.Text), v.Code)
	sec := &section{what: "reasons"}
	if len(v.Reasons) > 0 {
		b.WriteByte('\n')
	}
	var hints []string
	for _, reason := range v.Reasons {
		name := reason.Kind
		if reason.Gate != nil {
			name += " " + *reason.Gate
		}
		if reason.Provider != nil {
			name += " of " + *reason.Provider
		}
		sec.add("- %s: %s", short(name), short(reason.Text))
		if reason.Hint != nil && !slices.Contains(hints, *reason.Hint) && len(hints) < 5 {
			hints = append(hints, *reason.Hint)
			sec.entries[len(sec.entries)-1] += "\n  - hint: " + short(*reason.Hint)
		}
	}
	sec.head = b.String()
	return sec
}

// numbers is the table of metrics: against the baseline, or alone.
func (r *report) numbers() *section {
	sec := &section{what: "rows"}
	if reg := r.s.Regression; reg != nil {
		from := reg.Baseline.File
		if reg.Baseline.From != "file" {
			from += " at " + reg.Baseline.From
		}
		head := "### Against " + short(from)
		if reg.Baseline.Hash == nil {
			head += ": there is none yet"
		}
		head += "\n\n"
		if len(reg.Changed) > 0 {
			head += "changed: " + strings.Join(reg.Changed, ", ") + "\n\n"
		}
		sec.head = head + fmt.Sprintf("%d worse, %d better, %d with new violations; not compared: %d changed, %d new, %d removed\n\n", reg.Items.Worse.Count, reg.Items.Better.Count, reg.Items.NewViolations.Count, reg.Items.Changed.Count, reg.Items.New.Count, reg.Items.Removed.Count) +
			r.gated() +
			"| provider | metric | items | before | now | difference | interval |\n|---|---|--:|--:|--:|--:|--:|\n"
		for _, m := range reg.Comparisons {
			if m.Pairs > 0 {
				sec.add("| %s | %s | %d | %s | %s | %s | %s |", cell(m.Provider), cell(limited(m)), m.Pairs, compare.Number(m.Metric, m.Before), compare.Number(m.Metric, m.Now), compare.Difference(m), compare.Interval(m))
			}
		}
		if sec.total > 0 {
			return sec
		}
		sec.head, _, _ = strings.Cut(sec.head, "| provider")
		sec.head += "no item was asked and judged as in the baseline\n\n"
	} else if len(r.s.Providers) > 1 {
		return &section{} // they stand side by side
	} else {
		sec.head = "### Numbers\n\n"
	}
	sec.head += "| provider | pass | fail | no verdict | pass_rate | cost | p95 latency |\n|---|--:|--:|--:|--:|--:|--:|\n"
	for _, p := range r.s.Providers {
		c := p.Counts
		value := func(name string) string { return compare.Number(name, p.Metrics[name].Value) }
		sec.add("| %s | %d | %d | %d | %s | %s | %s |", cell(p.ID), c.Pass, c.Fail, c.Unjudged+c.Error+c.Stale+c.NotRun, value("pass_rate"), value("cost_usd"), value("p95_latency"))
	}
	return sec
}

// disagreement is an item with what became of it on each column that judged it.
func disagreement(d reports.Disagreement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s:", short(d.Item))
	for i, c := range d.Columns {
		if i == mostColumns {
			fmt.Fprintf(&b, ", and %d more", len(d.Columns)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d/%d on %s", c.Passed, c.Of, short(c.Provider))
	}
	return b.String()
}

// columns sets the providers side by side, where there are several.
func (r *report) columns() *section {
	sec := &section{what: "metrics"}
	if len(r.s.Providers) < 2 {
		return sec
	}
	shown := r.s.Providers[:min(len(r.s.Providers), mostColumns)]
	row := func(name string, value func(*results.Provider) string) string {
		text := "| " + name + " |"
		for i := range shown {
			text += " " + value(&shown[i]) + " |"
		}
		return text
	}
	sec.head = "### Side by side\n\n"
	if more := len(r.s.Providers) - len(shown); more > 0 {
		sec.head += fmt.Sprintf("_the first %d of %d providers_\n\n", len(shown), more+len(shown))
	}
	sec.head += row("metric", func(p *results.Provider) string { return cell(p.ID) }) + "\n|---|" + strings.Repeat("--:|", len(shown)) + "\n"
	sec.add("%s", row("pass", func(p *results.Provider) string { return fmt.Sprint(p.Counts.Pass) }))
	sec.add("%s", row("fail", func(p *results.Provider) string { return fmt.Sprint(p.Counts.Fail) }))
	sec.add("%s", row("no verdict", func(p *results.Provider) string {
		return fmt.Sprint(p.Counts.Unjudged + p.Counts.Error + p.Counts.Stale + p.Counts.NotRun)
	}))
	for _, name := range reports.SideBySide {
		sec.add("%s", row(name, func(p *results.Provider) string { return compare.Number(name, p.Metrics[name].Value) }))
	}
	return sec
}

// gated says what the regression gates found.
func (r *report) gated() string {
	var b strings.Builder
	for i := range r.s.Regression.Comparisons {
		c := &r.s.Regression.Comparisons[i]
		if c.MaxDrop == nil {
			continue
		}
		text := fmt.Sprintf("%s: %s: %s", gate.Name(c), gate.Found(c), strings.ReplaceAll(c.Status, "_", " "))
		if open := gate.Open(c); open != "" {
			text += "; " + open
		}
		fmt.Fprintf(&b, "- %s %s\n", marks[c.Status], short(text))
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// limited names the metric of a comparison, and what it looks at where that is a part.
func limited(c results.Comparison) string {
	if where := c.Where(); where != (results.Where{}) {
		return c.Metric + " (" + where.String() + ")"
	}
	return c.Metric
}

var marks = map[string]string{results.CompareRegressed: "❌", results.CompareNotWorse: "✅", results.CompareInconclusive: "❔", results.CompareNoBaseline: "❔"}

func cell(s string) string { return escape.Cell(compare.Short(s, mostText, false)) }

// causes says once why lines got no verdict, or how programs under test failed them.
func (r *report) causes(head string, failed bool) *section {
	sec := &section{what: "causes"}
	for _, c := range r.groups.List() {
		if failed != (c.Status == eval.Fail) {
			continue
		}
		text := string(c.Status)
		for _, part := range []string{c.Cause, c.Detail} {
			if part != "" {
				text += ": " + part
			}
		}
		entry := fmt.Sprintf("- %d × %s, first %s on %s", c.Items, short(text), short(c.First.Item), short(c.First.Provider))
		if d := c.Drift; d != nil {
			entry += fmt.Sprintf("\n  - at %s\n  - recorded %s\n  - now %s", short(d.Path), short(d.Old), short(d.New))
		}
		if c.Message != "" {
			entry += "\n  - " + escape.Code(compare.Short(c.Message, mostMessage, false))
		}
		if c.Hint != "" {
			entry += "\n  - hint: " + short(c.Hint)
		}
		sec.add("%s", entry)
	}
	if sec.total > 0 {
		sec.head = head
	}
	return sec
}

// notes are what is apart from failures: items that are flaky or quarantined, and warnings.
func (r *report) notes() *section {
	sec := &section{what: "notes"}
	for _, w := range r.s.Warnings {
		entry := "- " + short(w.Text)
		if w.At != nil {
			entry += " at " + short(*w.At)
		}
		sec.add("%s", entry)
	}
	for _, p := range r.s.Power {
		if p.Metric == "pass_rate" && p.DetectableDrop != nil {
			sec.add("- on %s this dataset sees a drop of %s", short(p.Provider), gate.Whole(*p.DetectableDrop))
		}
	}
	for _, p := range r.s.Providers {
		for _, f := range p.Flaky.Items {
			sec.add("- flaky: %s %d/%d on %s", short(f.Item), f.Passed, f.Of, short(p.ID))
		}
		for _, f := range p.Tolerated.Items {
			sec.add("- tolerated by its pass_if: %s %d/%d on %s", short(f.Item), f.Passed, f.Of, short(p.ID))
		}
	}
	for _, q := range r.s.Quarantined.Items {
		over := ""
		if q.Over {
			over = ", over: it gates again"
		}
		sec.add("- quarantined: %s, %s until %s%s: %s", short(q.Item), short(q.Owner), short(q.Until), over, short(q.Reason))
	}
	if sec.total > 0 {
		sec.head = "### Notes\n\n"
	}
	return sec
}
