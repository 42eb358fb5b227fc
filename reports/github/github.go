// Package github writes finished runs for GitHub's CI: annotations at the dataset's lines, and a text for the job's summary or a comment.
//
// The forms and limits are those of GitHub's reference of workflow commands: ten annotations of a kind are shown per step, a summary holds 1 MiB per step, a comment 65,536 characters. So what matters most comes first, an item is one annotation however many providers it fails on, and what is left out is counted.
package github

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/markdown"
)

// The host's limits.
const (
	MaxAnnotations = 10      // of a kind, per step
	MaxSummary     = 1 << 20 // bytes, per step
	MaxComment     = 64_000  // bytes; the host counts 65,536 characters
	mostMessage    = 1_500   // characters of an annotation
	mostPart       = 300     // characters of a text within one
	mostProblem    = 600     // of what happened, whose end is the end of standard error
)

// Write writes github.md: the run for a comment, at most [MaxComment] bytes.
func Write(w io.Writer, run *results.Run, opts reports.Options) error {
	return Several(w, []*results.Run{run}, opts)
}

// Several is [Write] for several runs, a section each.
func Several(w io.Writer, runs []*results.Run, opts reports.Options) error {
	return Summary(w, runs, opts, MaxComment)
}

// Summary writes the runs within so many bytes, see [markdown.Sections].
func Summary(w io.Writer, runs []*results.Run, opts reports.Options, most int) error {
	return markdown.Sections(w, runs, opts, most)
}

// Placed is a run and where its project lies in the repository: a path with slashes, "" for its root.
type Placed struct {
	Run    *results.Run
	Folder string
}

// rank orders annotations: the most important first.
type rank int

const (
	regression rank = iota
	violation
	failed
	without // a verdict
	flaky
	warning
	ranks
)

// kinds are the commands of the ranks, words what they count.
var (
	kinds = [ranks]string{"error", "error", "error", "error", "warning", "warning"}
	words = [ranks]string{"regression", "item with a violation", "failed item", "cause of missing verdicts", "flaky item", "warning"}
)

// annotation is one command.
type annotation struct{ file, line, column, title, text string }

// notes collects annotations: as many of each rank as could be shown, and the number of all.
type notes struct {
	kept  [ranks][]annotation
	count [ranks]int
}

func (n *notes) add(r rank, make func() annotation) {
	n.count[r]++
	if len(n.kept[r]) < MaxAnnotations {
		n.kept[r] = append(n.kept[r], make())
	}
}

// Annotations writes one workflow command a line for what went wrong in the runs: errors for regressions, violations, failures and missing verdicts, warnings for flaky items and what is to be known. Beyond ten of a kind a notice counts what is left out. Nothing is written where all is well.
//
// Each points to the place of a check of the item in the dataset, where there is one, else to the dataset's file.
func Annotations(w io.Writer, runs []Placed) error {
	return reports.To(w, func(out *bufio.Writer) error {
		var n notes
		for _, run := range runs {
			c := collector{Placed: run, notes: &n, sum: &run.Run.Summary}
			if err := c.collect(); err != nil {
				return err
			}
		}
		n.write(out)
		return nil
	})
}

func (n *notes) write(out *bufio.Writer) {
	written := map[string]int{}
	var left []string
	for r := range ranks {
		kind, shown := kinds[r], 0
		for _, a := range n.kept[r] {
			if written[kind] == MaxAnnotations {
				break
			}
			written[kind]++
			shown++
			_, _ = out.WriteString(a.command(kind))
		}
		if more := n.count[r] - shown; more > 0 {
			left = append(left, count(more, words[r]))
		}
	}
	if len(left) > 0 {
		_, _ = out.WriteString(annotation{title: "echoeval: not all is annotated", text: "left out: " + strings.Join(left, ", ") + "; the job's summary has more"}.command("notice"))
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 more " + noun
	}
	if first, rest, ok := strings.Cut(noun, " "); ok && (first == "item" || first == "cause") {
		return fmt.Sprintf("%d more %ss %s", n, first, rest)
	}
	return fmt.Sprintf("%d more %ss", n, noun)
}

// Escapes of the host: in the text of a command line ends and the percent sign, in its properties also what separates them.
var (
	data     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func (a annotation) command(kind string) string {
	var b strings.Builder
	b.WriteString("::" + kind)
	separator := " "
	for _, p := range [][2]string{{"file", a.file}, {"line", a.line}, {"col", a.column}, {"title", a.title}} {
		if p[1] != "" {
			b.WriteString(separator + p[0] + "=" + property.Replace(escape.Line(p[1])))
			separator = ","
		}
	}
	b.WriteString("::" + data.Replace(cut(escape.Block(a.text), mostMessage)) + "\n")
	return b.String()
}

// cut is at most n characters of a text, with a mark where there was more.
func cut(s string, n int) string {
	if len(s) <= n {
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

// collector goes through one run.
type collector struct {
	Placed
	notes *notes
	sum   *results.Summary
	moved map[movedKey]moved

	index int
	item  string
	at    string // of the item, "" while it is not known
	worst rank
	lines []string
	first string // check or invariant
}

type movedKey struct {
	index    int
	provider string
}

type moved struct {
	worse      bool
	violations []string
}

func (c *collector) collect() error {
	if err := c.compare(); err != nil {
		return err
	}
	var causes results.Causes
	for line, err := range c.Run.Lines() {
		if err != nil {
			return err
		}
		if line.Index != c.index {
			c.flush()
			c.index, c.item, c.at, c.worst, c.lines, c.first = line.Index, line.Item, "", ranks, nil, ""
		}
		causes.Add(&line)
		c.look(&line)
	}
	c.flush()
	for _, cause := range causes.List() {
		if cause.Status == eval.Skipped || cause.Status == eval.Fail { // of what failed each item has a note of its own
			continue
		}
		c.notes.add(without, func() annotation { return c.cause(cause) })
	}
	c.flaky()
	for _, w := range c.sum.Warnings {
		c.notes.add(warning, func() annotation {
			at := ""
			if w.At != nil {
				at = *w.At
			}
			text := w.Text
			if w.Hint != nil {
				text += "\nhint: " + *w.Hint
			}
			return c.placed(at, c.sum.Dataset.Name+": "+w.Code, text)
		})
	}
	return nil
}

// compare finds what is worse than in the baseline, where the run was compared with one.
func (c *collector) compare() error {
	c.moved = map[movedKey]moved{}
	if c.sum.Regression == nil || c.sum.Regression.Baseline.Hash == nil {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(c.Run.Dir, baseline.RunFile))
	if err != nil {
		return failure.WithCode(fmt.Errorf("reading the baseline of the run: %w", err), failure.Internal)
	}
	before, err := baseline.Decode(baseline.RunFile, data)
	if err != nil {
		return err
	}
	comparer := baseline.NewComparer(before, func(m baseline.Move) {
		if m.Now != nil && (m.Kind == baseline.Worse || len(m.NewViolations) > 0) {
			c.moved[movedKey{m.Now.Index, m.Now.Provider}] = moved{m.Kind == baseline.Worse, slices.Clone(m.NewViolations)}
		}
	})
	for line, err := range c.Run.Lines() {
		if err != nil {
			return err
		}
		comparer.Add(&line)
	}
	comparer.Finish(baseline.Now{Mode: c.sum.Mode})
	return nil
}

// look takes what went wrong in a line to what is known of its item.
func (c *collector) look(line *eval.Result) {
	m := c.moved[movedKey{line.Index, line.Provider}]
	var broken []string
	for _, v := range line.Invariants.Violations {
		if v.Severity == eval.SeverityError {
			broken = append(broken, v.Name+": "+cut(v.Evidence, mostPart))
		}
	}
	r := ranks
	switch {
	case len(m.violations) > 0, m.worse && line.Status == eval.Fail:
		r = regression
	case len(broken) > 0:
		r = violation
	case line.Status == eval.Fail && !line.Quarantined && !c.isFlaky(line):
		r = failed
	default:
		return
	}
	c.worst = min(c.worst, r)
	c.place(line)
	what := []string{}
	for i := range line.Checks {
		if check := &line.Checks[i]; check.Status == eval.CheckFail {
			text := check.Name
			if check.Reason != "" {
				text += ": " + cut(check.Reason, mostPart)
			}
			if check.Expected != nil {
				text += ", expected " + cut(*check.Expected, mostPart)
			}
			if check.Actual != nil {
				text += ", got " + cut(*check.Actual, mostPart)
			}
			what = append(what, text)
		}
	}
	for _, b := range broken {
		what = append(what, "violates "+b)
	}
	if len(what) == 0 && line.Cause != nil {
		text := *line.Cause
		if message, _ := results.Problem(line); message != "" {
			text += ": " + cut(message, mostProblem)
		}
		what = append(what, text)
	}
	head := line.Provider
	if c.sum.Selected.Repeat > 1 || line.Repeat > 1 {
		head += ", repeat " + strconv.Itoa(line.Repeat)
	}
	if m.worse {
		head += ", worse than in the baseline"
	}
	if len(m.violations) > 0 {
		head += ", newly violates " + strings.Join(m.violations, ", ")
	}
	c.lines = append(c.lines, head+": "+strings.Join(what, "; "))
	if c.first == "" {
		c.first = reports.Why(line)
	}
}

// isFlaky says that repeats of the item disagree on the provider, which is a warning of its own.
func (c *collector) isFlaky(line *eval.Result) bool {
	for i := range c.sum.Providers {
		if p := &c.sum.Providers[i]; p.ID == line.Provider {
			return slices.ContainsFunc(p.Flaky.Items, func(f results.Flaky) bool { return f.Item == line.Item })
		}
	}
	return false
}

// place finds where the item stands: by preference at the check that failed, in the dataset's own file.
func (c *collector) place(line *eval.Result) {
	if c.at != "" {
		return
	}
	own := func(at string) bool { return strings.HasPrefix(at, c.sum.Dataset.File+":") }
	rules := []func(*eval.CheckResult) bool{
		func(k *eval.CheckResult) bool { return k.Status == eval.CheckFail && own(k.At) },
		func(k *eval.CheckResult) bool { return own(k.At) },
		func(k *eval.CheckResult) bool { return k.Status == eval.CheckFail && k.At != "" },
	}
	for i, rule := range rules {
		list := slices.Clone(line.Checks)
		if i == 1 {
			slices.Reverse(list) // the item's own checks stand behind those of the defaults
		}
		for k := range list {
			if rule(&list[k]) {
				c.at = list[k].At
				return
			}
		}
	}
}

func (c *collector) flush() {
	if c.index == 0 || c.worst == ranks {
		return
	}
	item, at, lines, first, r := c.item, c.at, c.lines, c.first, c.worst
	c.notes.add(r, func() annotation {
		what := map[rank]string{regression: "regression", violation: "violation", failed: "failed"}[r]
		title := fmt.Sprintf("%s: %s of %s", what, item, c.sum.Dataset.Name)
		if first != "" {
			title += " (" + cut(first, 80) + ")"
		}
		return c.placed(at, title, strings.Join(lines, "\n"))
	})
}

func (c *collector) cause(cause results.Cause) annotation {
	title := string(cause.Status)
	for _, part := range []string{cause.Cause, cause.Detail} {
		if part != "" {
			title += ": " + part
		}
	}
	text := fmt.Sprintf("%d of %s: %s", cause.Items, c.sum.Dataset.Name, strings.Join(cause.IDs, ", "))
	if more := cause.Items - len(cause.IDs); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if d := cause.Drift; d != nil {
		text += fmt.Sprintf("\nat %s\nrecorded %s\nnow %s", d.Path, cut(d.Old, mostPart), cut(d.New, mostPart))
	}
	if cause.Message != "" {
		text += "\n" + cut(cause.Message, mostProblem)
	}
	if cause.Hint != "" {
		text += "\nhint: " + cause.Hint
	}
	return c.placed("", title, text)
}

func (c *collector) flaky() {
	for i := range c.sum.Providers {
		p := &c.sum.Providers[i]
		for _, f := range p.Flaky.Items {
			c.notes.add(flaky, func() annotation {
				return c.placed("", "flaky: "+f.Item+" of "+c.sum.Dataset.Name, fmt.Sprintf("passed %d of %d on %s", f.Passed, f.Of, p.ID))
			})
		}
		c.notes.count[flaky] += p.Flaky.Count - len(p.Flaky.Items)
	}
}

// placed is an annotation at file:line:column, or at the dataset's file. A file outside the repository is not named: the host has nowhere to show it.
func (c *collector) placed(at, title, text string) annotation {
	a := annotation{title: cut(title, mostPart), text: text}
	if at == "" {
		at = c.sum.Dataset.File
	}
	a.file, a.line, a.column = split(at)
	a.file = path.Join(c.Folder, a.file)
	if a.file == ".." || strings.HasPrefix(a.file, "../") || path.IsAbs(a.file) {
		a.file, a.line, a.column = "", "", ""
	}
	return a
}

// split takes line and column from the end of a place.
func split(at string) (file, line, column string) {
	file = at
	var numbers []string
	for len(numbers) < 2 {
		i := strings.LastIndexByte(file, ':')
		if i < 0 {
			break
		}
		if _, err := strconv.ParseUint(file[i+1:], 10, 31); err != nil {
			break
		}
		numbers = append(numbers, file[i+1:])
		file = file[:i]
	}
	switch len(numbers) {
	case 1:
		return file, numbers[0], ""
	case 2:
		return file, numbers[1], numbers[0]
	}
	return at, "", ""
}
