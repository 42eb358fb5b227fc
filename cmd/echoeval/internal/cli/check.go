package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/imports/recordings"
	"github.com/echoeval/echoeval/harness/imports/transcripts"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/rule"
	"github.com/echoeval/echoeval/harness/rule/cases"
	"github.com/echoeval/echoeval/reports/escape"
)

type checkOptions struct {
	rules        []string
	dataset, out string
	test         bool
	asJSON, all  bool
}

func newCheck(s *State) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use: "check RUN|FILE...", Short: "Judge stored traces by invariants and rules, ours or foreign; --test: run the tests of rules", GroupID: "look", Args: atLeast(1, "a run or a file"),
		Long: "Judge the traces of finished runs and of files by the standard invariants and by the rules of libraries, without running anything again. A FILE is a cassette or a recording of another program, a list of messages as the APIs of OpenAI, Anthropic, Gemini and Bedrock take them, a file with such a list a line (.jsonl), or a record of tau-bench: its content says what it is.\n\n" +
			"With --dataset the traces of a run are judged by what the dataset's items say now: their rules, and what they drop.\n\n" +
			"With --test the FILEs hold tests of rules (*_test.yaml).\n\n" +
			"The exit code is 1 where an invariant or a rule of severity error is broken, or a test fails.",
		Example: "  echoeval check latest --rules evals/shared/safety.yaml\n  echoeval check conversations.jsonl --rules safety.yaml --json\n  echoeval check --test evals/shared/*_test.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			if o.test {
				return testRules(s, args, &o)
			}
			return checkTraces(s, args, &o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.rules, "rules", nil, "a library whose rules are asked too (repeat)")
	f.StringVar(&o.dataset, "dataset", "", "the dataset of the runs: its items say what is asked")
	f.StringVar(&o.out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	f.BoolVar(&o.test, "test", false, "run the tests of rules in the FILEs")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.all, "all", false, "show all violations, cut nothing")
	return cmd
}

// mostViolations bounds what is kept of an invariant's violations; all are counted.
const mostViolations = 1_000

// checked is what is known of one invariant over all traces.
type checked struct {
	results.Invariant
	rule  *rule.Rule
	found []checkedViolation
}

type checkedViolation struct {
	In string `json:"in"`
	eval.Violation
}

// checkReport is the outcome as JSON.
type checkReport struct {
	V          int                 `json:"v"`
	Traces     int                 `json:"traces"`
	Invariants []results.Invariant `json:"invariants"`
	Violations checkedViolations   `json:"violations"`
	Warnings   []results.Warning   `json:"warnings"`
	Code       failure.Code        `json:"code"`
}

type checkedViolations struct {
	Count int                `json:"count"`
	Items []checkedViolation `json:"items"`
}

// checking judges traces one by one.
type checking struct {
	s        *State
	opts     *checkOptions
	added    []dataset.Invariant // of the libraries
	detector secret.Detector
	traces   int
	untraced int // lines without a trace
	by       map[string]*checked
	tools    map[string]bool // shown or called in any trace
	warnings []results.Warning
}

func checkTraces(s *State, args []string, o *checkOptions) error {
	c := &checking{s: s, opts: o, by: map[string]*checked{}, tools: map[string]bool{}}
	var errs []error
	at := map[string]failure.Position{}
	for _, library := range o.rules {
		list, err := dataset.LibraryInvariants(s.path(library), datasetOptions(s))
		if err == nil && len(list) == 0 {
			err = failure.WithHint(failure.New(failure.Input, "%s: the library has no rule and no invariant", library), "write them under invariants:")
		}
		for _, v := range list {
			if first, twice := at[v.Name]; twice {
				errs = append(errs, failure.WithHint(failure.At(v.Pos, failure.Input, "rule %q is defined a second time, first at %s", v.Name, first), "give one of them another name"))
			}
			at[v.Name] = v.Pos
		}
		errs, c.added = append(errs, err), append(c.added, list...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	items, err := c.items()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range args {
		if seen[name] {
			continue
		}
		seen[name] = true
		if info, err := os.Stat(s.path(name)); err == nil && !info.IsDir() {
			if o.dataset != "" {
				return usage("--rules asks the rules of a library", "--dataset is for runs: %s is a file, which belongs to no item", name)
			}
			errs = append(errs, c.file(name))
			continue
		}
		errs = append(errs, c.run(name, items))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if c.traces == 0 {
		return failure.WithHint(failure.New(failure.Input, "there is no trace to judge"), "a run keeps the traces of all items with --traces all")
	}
	return c.report()
}

// asked is what one item asks.
type asked struct {
	specs []invariant.Spec
	drop  []string
}

// items are what the items of --dataset ask, by id; nil without a dataset.
func (c *checking) items() (map[string]asked, error) {
	if c.opts.dataset == "" {
		return nil, nil
	}
	d, err := openDataset(c.s, c.opts.dataset, nil)
	if err != nil {
		return nil, err
	}
	items := map[string]asked{}
	for item, err := range d.Items() {
		if err != nil {
			return nil, err
		}
		items[item.ID] = asked{specsOfInvariants(item.Invariants), item.Drop}
	}
	return items, nil
}

func specsOfInvariants(list []dataset.Invariant) []invariant.Spec {
	var specs []invariant.Spec
	for _, v := range list {
		specs = append(specs, invariant.Spec{Name: v.Name, Severity: v.Severity, Params: v.Params, Rule: v.Rule, Pos: v.Pos})
	}
	return specs
}

// set makes the set that judges, and notes the names in it.
func (c *checking) set(a asked) (invariant.Set, error) {
	var p strict.Problems
	specs := append(a.specs[:len(a.specs):len(a.specs)], specsOfInvariants(c.added)...)
	set := invariant.Select(specs, a.drop, &p)
	set.Secrets = c.detector
	for _, spec := range specs {
		if spec.Rule != nil {
			c.of(spec.Name, eval.Severity(cmp.Or(spec.Severity, string(spec.Rule.Severity)))).rule = spec.Rule
		}
	}
	return set, p.Err()
}

func (c *checking) of(name string, severity eval.Severity) *checked {
	entry := c.by[name]
	if entry == nil {
		entry = &checked{Invariant: results.Invariant{Name: name, Severity: severity}}
		c.by[name] = entry
	}
	return entry
}

// judge judges a trace. unseen are invariants that such a trace tells nothing about.
func (c *checking) judge(set invariant.Set, in string, t trace.Trace, unseen []string) {
	c.traces++
	c.seeTools(t)
	out := set.Evaluate(t)
	severities := map[string]eval.Severity{}
	for _, v := range invariant.Catalogue() {
		severities[v.Name] = v.Severity
	}
	for _, name := range set.Names() {
		entry := c.of(name, severities[name])
		if slices.Contains(out.NotApplicable, name) {
			entry.NotApplicable++
		} else {
			entry.Evaluated++
		}
		if slices.Contains(out.Triggered, name) {
			entry.Triggered++
		}
	}
	for _, name := range unseen {
		c.of(name, severities[name]).NotApplicable++
	}
	counted := map[string]bool{}
	for _, v := range out.Violations {
		entry := c.of(v.Name, v.Severity)
		if !counted[v.Name] {
			counted[v.Name] = true
			entry.Violated++
		}
		if len(entry.found) < mostViolations {
			entry.found = append(entry.found, checkedViolation{in, v})
		}
	}
}

func (c *checking) seeTools(t trace.Trace) {
	for i := range t.Events {
		e := &t.Events[i]
		switch {
		case e.Request != nil:
			for _, spec := range e.Request.Tools {
				c.tools[spec.Name] = true
			}
		case e.Reply != nil:
			for _, call := range e.Reply.Message.ToolCalls() {
				c.tools[call.Name] = true
			}
		}
	}
}

// run judges the lines of a finished run.
func (c *checking) run(name string, items map[string]asked) error {
	run, err := openRun(c.s, c.opts.out, name)
	if err != nil {
		return err
	}
	defer run.Close()
	set, err := c.set(asked{})
	if err != nil {
		return err
	}
	for line, err := range run.Lines() {
		if err != nil {
			return err
		}
		if line.Status == eval.Skipped || line.Status == eval.NotRun {
			continue
		}
		t, ok, err := run.Trace(line)
		if err != nil {
			return err
		}
		if !ok {
			c.untraced++
			continue
		}
		if items != nil {
			a, known := items[line.Item]
			if !known {
				return failure.WithHint(failure.New(failure.Input, "%s has no item %q, which stands in the run %s", c.opts.dataset, line.Item, name), "is the run of this dataset?")
			}
			if set, err = c.set(a); err != nil {
				return err
			}
		}
		in := fmt.Sprintf("%s on %s", line.Item, line.Provider)
		if line.Repeat > 1 {
			in += fmt.Sprintf(", repeat %d", line.Repeat)
		}
		c.judge(set, in, t.Events, nil)
	}
	return nil
}

// file judges the conversations of a file.
func (c *checking) file(name string) error {
	list, err := readTranscripts(c.s, name)
	if err != nil {
		return err
	}
	set, err := c.set(asked{drop: transcripts.Unseen})
	if err != nil {
		return err
	}
	for _, t := range list {
		in := name
		if t.Name != "" {
			in += ", " + t.Name
		}
		c.judge(set, in, t.Trace, transcripts.Unseen)
	}
	return nil
}

// readTranscripts reads the conversations of a file, whatever it is.
func readTranscripts(s *State, name string) ([]transcripts.Transcript, error) {
	data, err := readRecording(s.path(name))
	if err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "%s cannot be read: %s", name, failure.Reason(err)), "check the path")
	}
	var file *cassette.File
	switch {
	case bytes.HasPrefix(data, []byte("echoeval:")) || bytes.Contains(data, []byte("\nechoeval:\n")):
		if file, err = cassette.Decode(data, name); err != nil {
			return nil, err
		}
	default:
		recording, err := recordings.Read(name, data)
		if err != nil {
			return transcripts.Lists(name, data)
		}
		if file, err = recording.Cassette(cassette.Header{}, &secret.Detector{}, nil); file == nil {
			return nil, err
		}
	}
	list := transcripts.Cassette(name, file)
	if len(list) == 0 {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: no request in it holds a conversation with a model that can be read", name), "read are the requests of OpenAI (chat and responses), Anthropic, Gemini and Bedrock's Converse")
	}
	return list, nil
}

// warn adds what the counts give reason to say.
func (c *checking) warn() {
	add := func(code, at, hint, text string, args ...any) {
		w := results.Warning{Code: code, Text: fmt.Sprintf(text, args...)}
		if at != "" {
			w.At = &at
		}
		if hint != "" {
			w.Hint = &hint
		}
		c.warnings = append(c.warnings, w)
	}
	if c.untraced > 0 {
		add("no-trace", "", "run with --traces all", "%s kept no trace and could not be judged", count(c.untraced, "result"))
	}
	known := slices.Sorted(maps.Keys(c.tools))
	for _, name := range slices.Sorted(maps.Keys(c.by)) {
		entry := c.by[name]
		if entry.rule == nil {
			continue
		}
		pos, hint := entry.rule.Pos.String(), ""
		if entry.Triggered > 0 {
			for _, tool := range entry.rule.Tools() {
				if near, ok := strict.Nearest(tool, known); ok && !c.tools[tool] {
					add("unknown-tool", pos, fmt.Sprintf("did you mean %q?", near), "rule %s speaks of a tool %q, which no trace shows or calls", name, tool)
				}
			}
			continue
		}
		for _, tool := range entry.rule.Tools() {
			if !c.tools[tool] {
				hint = fmt.Sprintf("no trace shows or calls a tool %q", tool)
				if near, ok := strict.Nearest(tool, known); ok {
					hint += fmt.Sprintf("; did you mean %q?", near)
				}
				break
			}
		}
		add("never-triggered", pos, hint, "rule %s: its condition never occurred, so it has proven nothing", name)
	}
}

func (c *checking) report() error {
	c.warn()
	out := checkReport{V: 1, Traces: c.traces, Invariants: []results.Invariant{}, Violations: checkedViolations{Items: []checkedViolation{}}, Warnings: c.warnings}
	if out.Warnings == nil {
		out.Warnings = []results.Warning{}
	}
	names := slices.SortedFunc(maps.Keys(c.by), func(a, b string) int {
		// Rules stand behind the invariants.
		isRule := map[bool]int{true: 1}
		return cmp.Or(isRule[c.by[a].rule != nil]-isRule[c.by[b].rule != nil], strings.Compare(a, b))
	})
	for _, name := range names {
		entry := c.by[name]
		out.Invariants = append(out.Invariants, entry.Invariant)
		out.Violations.Count += entry.Violated
		out.Violations.Items = append(out.Violations.Items, entry.found...)
		if slices.ContainsFunc(entry.found, func(v checkedViolation) bool { return v.Severity == eval.SeverityError }) {
			out.Code = failure.Gate
		}
	}
	out.Violations.Items = out.Violations.Items[:min(len(out.Violations.Items), mostViolations)]
	var err error
	if c.opts.asJSON {
		err = printJSON(c.s, out)
	} else {
		err = c.print(names)
	}
	if err != nil {
		return err
	}
	if out.Code != failure.OK {
		return exit{out.Code}
	}
	return nil
}

func (c *checking) print(names []string) error {
	var b strings.Builder
	const shown = 5
	for _, name := range names {
		entry := c.by[name]
		for i, v := range entry.found {
			if i == 0 {
				fmt.Fprintf(&b, "%s (%s) is broken in %d of %s\n", escape.Line(name), v.Severity, entry.Violated, count(c.traces, "trace"))
			}
			if i == shown && !c.opts.all {
				fmt.Fprintf(&b, "  and %d more; --all shows them\n", entry.Violated-shown)
				break
			}
			fmt.Fprintf(&b, "  %s\n    %s\n", escape.Line(v.In), escape.Line(v.Evidence))
			if v.At != "" {
				fmt.Fprintf(&b, "    by %s\n", escape.Line(v.At))
			}
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		entry := c.by[name]
		fmt.Fprintf(&b, "%-*s  evaluated %d", width, name, entry.Evaluated)
		if entry.rule != nil {
			fmt.Fprintf(&b, ", triggered %d", entry.Triggered)
		}
		fmt.Fprintf(&b, ", violated %d", entry.Violated)
		if entry.NotApplicable > 0 {
			fmt.Fprintf(&b, ", not applicable %d", entry.NotApplicable)
		}
		b.WriteByte('\n')
	}
	if _, err := c.s.Stdout.Write([]byte(b.String())); err != nil {
		return unwritable(err)
	}
	for _, w := range c.warnings {
		text := w.Text
		if w.At != nil {
			text = *w.At + ": " + text
		}
		fmt.Fprintf(c.s.Stderr, "warning: %s\n", escape.Line(text))
		if w.Hint != nil {
			fmt.Fprintf(c.s.Stderr, "hint: %s\n", escape.Line(*w.Hint))
		}
	}
	return nil
}

// ruleWorld finds the libraries and traces of tests, beside their file.
type ruleWorld struct {
	s      *State
	folder string
}

func (w ruleWorld) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return w.s.show(w.s.path(filepath.Join(w.folder, filepath.FromSlash(name))))
}

// Rules implements cases.World.
func (w ruleWorld) Rules(library string) ([]*rule.Rule, error) {
	list, err := dataset.LibraryInvariants(w.s.path(w.path(library)), datasetOptions(w.s))
	if err != nil {
		return nil, err
	}
	var rules []*rule.Rule
	for _, v := range list {
		if v.Rule != nil {
			rules = append(rules, v.Rule)
		}
	}
	return rules, nil
}

// Trace implements cases.World.
func (w ruleWorld) Trace(file string) ([]transcripts.Transcript, error) {
	return readTranscripts(w.s, w.path(file))
}

func loadCases(s *State, name string) (*cases.File, error) {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "%s cannot be read: %s", name, failure.Reason(err)), "check the path")
	}
	return cases.Load(name, data, ruleWorld{s, filepath.Dir(name)})
}

// testedFile is a file of tests in JSON.
type testedFile struct {
	File     string     `json:"file"`
	Tests    []testedBy `json:"tests"`
	Warnings []string   `json:"warnings"`
}

type testedBy struct {
	Name     string   `json:"name"`
	At       string   `json:"at"`
	Passed   bool     `json:"passed"`
	Failures []string `json:"failures"`
}

// testRules runs the tests of rules.
func testRules(s *State, names []string, o *checkOptions) error {
	if len(o.rules) > 0 || o.dataset != "" {
		return usage("a file of tests names its libraries under use", "--test stands without --rules and --dataset")
	}
	var files []*cases.File
	var errs []error
	for _, name := range names {
		f, err := loadCases(s, name)
		files, errs = append(files, f), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	failed, total := 0, 0
	reports := []testedFile{}
	for _, f := range files {
		report := testedFile{File: f.Name, Tests: []testedBy{}, Warnings: []string{}}
		list, untested := f.Run()
		report.Warnings = append(report.Warnings, untested...)
		for _, t := range list {
			total++
			if len(t.Failures) > 0 {
				failed++
			}
			report.Tests = append(report.Tests, testedBy{t.Name, t.At.String(), len(t.Failures) == 0, append([]string{}, t.Failures...)})
		}
		reports = append(reports, report)
	}
	var err error
	if o.asJSON {
		err = printJSON(s, reports)
	} else {
		err = printTests(s, reports, failed, total, o.all)
	}
	if err != nil {
		return err
	}
	if failed > 0 {
		return exit{failure.Gate}
	}
	return nil
}

func printTests(s *State, reports []testedFile, failed, total int, all bool) error {
	var b strings.Builder
	for _, report := range reports {
		for _, t := range report.Tests {
			switch {
			case !t.Passed:
				fmt.Fprintf(&b, "failed: %s\n", escape.Line(t.Name))
			case all:
				fmt.Fprintf(&b, "passed: %s\n", escape.Line(t.Name))
			}
			for _, text := range t.Failures {
				fmt.Fprintf(&b, "  %s\n", escape.Line(text))
			}
		}
		for _, w := range report.Warnings {
			fmt.Fprintf(s.Stderr, "warning: %s: %s\n", escape.Line(report.File), escape.Line(w))
		}
	}
	fmt.Fprintf(&b, "%s, %d failed\n", count(total, "test"), failed)
	_, err := s.Stdout.Write([]byte(b.String()))
	return unwritable(err)
}
