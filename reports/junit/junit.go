// Package junit writes a run as JUnit XML: one suite per provider, one test case per item and repeat. A failed item is a failure, one that could not be judged an error, one that did not run is skipped.
//
// The form is the one that CI systems have in common (testsuites, testsuite, properties, testcase, failure, error, skipped, with times in seconds); it holds no time stamp and no host, so that equal runs give equal bytes.
package junit

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// maxOutput bounds how much of an answer stands in the file, in bytes; the whole stands in the trace.
const maxOutput = 2_000

// Write writes the file. It reads the results once per provider and holds one line at a time.
func Write(w io.Writer, run *results.Run, opts reports.Options) error {
	return Several(w, []*results.Run{run}, opts)
}

// Several writes several runs as one file: the suites of each, and in the root the counts of all.
func Several(w io.Writer, runs []*results.Run, _ reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		var sum results.Counts
		var all int64
		var names []string
		times := make([]map[string]int64, len(runs))
		for i, run := range runs {
			d := document{out: out, run: run}
			var err error
			if times[i], err = d.times(); err != nil {
				return err
			}
			for _, ms := range times[i] {
				all += ms
			}
			sum.Add(run.Summary.Counts)
			names = append(names, run.Summary.Dataset.Name)
		}
		root := document{out: out}
		root.raw(xml.Header)
		root.open(0, "testsuites", append([]attr{{"name", strings.Join(names, ", ")}}, totals(sum, all)...))
		for i, run := range runs {
			d := document{out: out, run: run}
			for _, p := range run.Summary.Providers {
				if err := d.suite(&p, times[i][p.ID]); err != nil {
					return err
				}
			}
		}
		root.close(0, "testsuites")
		return nil
	})
}

// document writes elements one after the other. What the sink refuses is reported by the last flush.
type document struct {
	out *bufio.Writer
	run *results.Run
}

// times adds up the latencies of each provider, in ms.
func (d *document) times() (map[string]int64, error) {
	times := map[string]int64{}
	for line, err := range d.run.Lines() {
		if err != nil {
			return nil, err
		}
		if line.LatencyMS != nil {
			times[line.Provider] += *line.LatencyMS
		}
	}
	return times, nil
}

// attr is an attribute of an element.
type attr struct{ name, value string }

// totals are the attributes that count.
func totals(c results.Counts, ms int64) []attr {
	return []attr{
		{"tests", strconv.Itoa(c.Total())},
		{"failures", strconv.Itoa(c.Fail)},
		{"errors", strconv.Itoa(c.Error + c.Stale + c.Unjudged)},
		{"skipped", strconv.Itoa(c.Skipped + c.NotRun)},
		{"time", seconds(ms)},
	}
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

func (d *document) suite(p *results.Provider, ms int64) error {
	s := &d.run.Summary
	d.open(1, "testsuite", append([]attr{{"name", s.Dataset.Name + "." + p.ID}}, totals(p.Counts, ms)...))
	d.properties(p)
	written := results.Counts{}
	for line, err := range d.run.Lines() {
		if err != nil {
			return err
		}
		if line.Provider != p.ID {
			continue
		}
		d.testcase(&line)
		if line.Status == eval.NotRun {
			written.NotRun++
		}
	}
	// A killed run has no lines for what never began; the counts know of them.
	if missing := p.Counts.NotRun - written.NotRun; d.run.Incomplete && missing > 0 {
		for i := range missing {
			d.open(2, "testcase", []attr{{"name", fmt.Sprintf("(not run %d of %d)", i+1, missing)}, {"classname", s.Dataset.Name + "." + p.ID}, {"time", seconds(0)}})
			d.empty(3, "skipped", []attr{{"message", "not_run: interrupted"}})
			d.close(2, "testcase")
		}
	}
	d.close(1, "testsuite")
	return nil
}

func (d *document) properties(p *results.Provider) {
	s := &d.run.Summary
	list := []attr{
		{"dataset", s.Dataset.File}, {"mode", s.Mode}, {"vendor", p.Vendor}, {"model", p.Model},
		{"verdict", s.Verdict.Text}, {"exit_code", strconv.Itoa(int(s.Verdict.Code))}, {"complete", strconv.FormatBool(s.Complete)},
	}
	for _, name := range p.Metrics.Names() {
		if m := p.Metrics[name]; m.Value != nil {
			list = append(list, attr{name, m.Value.String()})
		}
	}
	for _, g := range s.Gates {
		if g.Provider == p.ID && g.Bound != nil {
			name := "gate." + g.Metric
			if g.Where != nil {
				name += " (" + *g.Where + ")"
			}
			list = append(list, attr{name, *g.Bound + " " + string(g.Status)})
		}
	}
	d.open(2, "properties", nil)
	for _, a := range list {
		d.empty(3, "property", []attr{{"name", a.name}, {"value", a.value}})
	}
	d.close(2, "properties")
}

func (d *document) testcase(line *eval.Result) {
	name := line.Item
	if line.Repeat > 1 {
		name += "@" + strconv.Itoa(line.Repeat)
	}
	ms := int64(0)
	if line.LatencyMS != nil {
		ms = *line.LatencyMS
	}
	attrs := []attr{{"name", name}, {"classname", d.run.Summary.Dataset.Name + "." + line.Provider}, {"time", seconds(ms)}}
	if line.Status == eval.Pass {
		d.empty(2, "testcase", attrs)
		return
	}
	d.open(2, "testcase", attrs)
	kind := string(line.Status)
	if line.Cause != nil {
		kind += ": " + *line.Cause
	}
	message := []attr{{"message", headline(line, kind)}, {"type", kind}}
	switch line.Status {
	case eval.Fail:
		d.text(3, "failure", message, d.body(line))
	case eval.Skipped, eval.NotRun:
		d.empty(3, "skipped", message[:1])
	default:
		d.text(3, "error", message, d.body(line))
	}
	d.close(2, "testcase")
}

// headline says in one line why the item did not pass.
func headline(line *eval.Result, kind string) string {
	if line.Error != nil {
		return kind + ": " + line.Error.Message
	}
	for _, c := range line.Checks {
		if c.Status == eval.CheckFail || c.Status == eval.CheckUnjudged {
			return kind + ": " + c.Name + ": " + c.Reason
		}
	}
	for _, v := range line.Invariants.Violations {
		return kind + ": " + v.Name + ": " + v.Evidence
	}
	return kind
}

// body is what someone needs who sees only the CI's page: each check and violation with its values, the answer, and the command that runs the item again.
func (d *document) body(line *eval.Result) string {
	var b strings.Builder
	field := func(name, value string) {
		b.WriteString(name + ": " + strings.ReplaceAll(value, "\n", "\n    ") + "\n")
	}
	for _, c := range line.Checks {
		if c.Status == eval.CheckPass {
			continue
		}
		field("check", c.Name+" "+string(c.Status)+": "+c.Reason)
		if c.Expected != nil {
			field("  expected", *c.Expected)
		}
		if c.Actual != nil {
			field("  actual", *c.Actual)
		}
		field("  at", c.At)
	}
	for _, v := range line.Invariants.Violations {
		field("invariant", v.Name+" ("+string(v.Severity)+"): "+v.Evidence)
		field("  at", v.At)
	}
	if e := line.Error; e != nil {
		field("error", string(e.Kind)+": "+e.Message)
		if e.Code != nil {
			field("  code", *e.Code)
		}
		if e.HTTPStatus != nil {
			field("  http status", strconv.Itoa(*e.HTTPStatus))
		}
		field("  retries", strconv.Itoa(e.Retries))
		if e.Hint != nil {
			field("  hint", *e.Hint)
		}
	}
	if c := line.Cassette; c != nil && (c.State != eval.CassetteFresh || len(c.Drift) > 0 || c.LeftOver > 0) {
		field("cassette", c.File+" "+string(c.State))
		for _, drift := range c.Drift {
			field("  drift", fmt.Sprintf("%s in request %d at %s (%s)", drift.Class, drift.Request, drift.Path, drift.Action))
			field("    recorded", drift.Old)
			field("    now", drift.New)
		}
		if c.LeftOver > 0 {
			field("  left over", strconv.Itoa(c.LeftOver))
		}
	}
	if line.Stop != nil && *line.Stop != "end" {
		field("stopped", *line.Stop)
	}
	if line.Output != nil {
		output := *line.Output
		if len(output) > maxOutput {
			output = strings.ToValidUTF8(output[:maxOutput], "") + "..."
		}
		field("output", output)
	}
	field("replay", d.run.Summary.ReplayCommand(*line))
	return b.String()
}

func (d *document) raw(s string) { _, _ = d.out.WriteString(s) }

func (d *document) tag(depth int, name string, attrs []attr) {
	d.raw(strings.Repeat("  ", depth) + "<" + name)
	for _, a := range attrs {
		d.raw(" " + a.name + `="`)
		d.escaped(a.value)
		d.raw(`"`)
	}
}

func (d *document) open(depth int, name string, attrs []attr) {
	d.tag(depth, name, attrs)
	d.raw(">\n")
}

func (d *document) empty(depth int, name string, attrs []attr) {
	d.tag(depth, name, attrs)
	d.raw("/>\n")
}

func (d *document) close(depth int, name string) {
	d.raw(strings.Repeat("  ", depth) + "</" + name + ">\n")
}

func (d *document) text(depth int, name string, attrs []attr, text string) {
	d.tag(depth, name, attrs)
	d.raw(">")
	_, _ = markup.WriteString(d.out, escape.XML(text))
	d.raw("</" + name + ">\n")
}

// markup escapes text between tags. Line ends stay as they are, so that the file can be read.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escaped writes the value of an attribute, in which a line end must be written as a reference to survive.
func (d *document) escaped(s string) {
	_ = xml.EscapeText(d.out, []byte(escape.XML(s)))
}
