// Package rule reads and evaluates the rules that users write over traces, each of one of four forms:
//
//	rule: "trace.calls('exec').all(c, !c.args.command.contains('rm -rf'))"   # a condition in CEL
//	never: {after: web_fetch, call: [exec, write_file], unless: approval}    # order, and with from: the flow of data
//	sequence: "lookup+ (book | escalate) confirm?"                           # a regular expression over tool names
//	count: {call: book, max: 1, within: 3 calls}                             # how often, in all or in a window
//
// [Compile] reads one, with all that can be wrong with it found before anything runs; [Read] makes of a trace what rules look at; [Rule.Evaluate] judges. A rule is immutable and safe for concurrent use.
//
// A trace that ends before its run did (an outage, a recording that no longer fits, a call that waits for the host) breaks nothing by being short: what a rule asks to happen may still have come.
package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Forms are the keys of which a rule has one.
var Forms = []string{"rule", "never", "sequence", "count"}

// Blames are whose fault a broken rule can be.
var blames = []string{"model", "agent", "harness"}

// keys are those of a rule.
type keys struct {
	Rule      strict.Node `yaml:"rule" schema:"filled" doc:"a condition in CEL over trace"`
	When      strict.Node `yaml:"when" schema:"filled" doc:"beside rule: a condition in CEL; where it is false the rule is not triggered"`
	Never     strict.Node `yaml:"never" schema:"rule_never" doc:"a call that must not be made"`
	Sequence  strict.Node `yaml:"sequence" schema:"rule_sequence" doc:"a regular expression over the names of the tools that are called"`
	Count     strict.Node `yaml:"count" schema:"rule_count" doc:"how often tools may be called"`
	Name      *string     `yaml:"name" schema:"rule_name" doc:"what reports call the rule; made of its contents unless given"`
	Severity  *string     `yaml:"severity" values:"error,warn" doc:"error unless given"`
	Blame     *string     `yaml:"blame" values:"model,agent,harness" doc:"whose fault a broken rule is, model unless given"`
	Why       *string     `yaml:"why" schema:"rule_text" doc:"what asks for the rule, such as the number of a requirement; it stands in the evidence"`
	Statement *string     `yaml:"statement" schema:"rule_text" doc:"what must be true, in one line"`
}

// Misspelt adds to p the first key of a mapping without a form that is nearly the key of one, and reports whether there is one.
func Misspelt(n strict.Node, p *strict.Problems) bool {
	for key := range n.Fields() {
		if _, near := strict.Nearest(key.Name, Forms); near {
			p.Unknown(key, Forms)
			return true
		}
	}
	return false
}

// Is reports whether a mapping is a rule: it has the key of a form.
func Is(n strict.Node) bool {
	for _, form := range Forms {
		if !n.Get(form).IsZero() {
			return true
		}
	}
	return false
}

// Rule is one rule of a user.
type Rule struct {
	Name     string
	Severity eval.Severity
	// Blame is model, agent or harness.
	Blame string
	// Statement is what must be true, in one line: as the user wrote it, or else made of the rule.
	Statement string
	// Why is what asks for the rule, "" where it does not say.
	Why string
	// Form is one of [Forms].
	Form string
	Pos  failure.Position
	// Node is the rule as it is written.
	Node strict.Node

	names []named // the tools that it names
	check check
}

// check is what a form makes of a story; false where the trace does not tell what it needs.
type check interface {
	look(s *Story) (Outcome, bool)
}

// Outcome is what a rule says of one trace.
type Outcome struct {
	// Applicable is false where the agent did nothing that a rule could look at.
	Applicable bool
	// Triggered says that what the rule is about occurred. A rule that holds without it has proven nothing.
	Triggered bool
	// Broken counts the places where the rule is broken.
	Broken int
	// Events and Evidence are the smallest witness of these: the numbers of the events, and what stands there. Evidence may quote the model.
	Events   []int
	Evidence string
}

// broken notes a place where the rule is broken. The witness with the fewest events stays, of these the first.
func (o *Outcome) broken(events []int, evidence func() string) {
	o.Triggered = true
	if o.Broken++; o.Broken == 1 || len(events) < len(o.Events) {
		o.Events, o.Evidence = events, evidence()
	}
}

// Compile reads a rule. What is wrong with it is added to p, with its place; the result is nil then. Whether the tools that it names exist is asked later, see [Rule.CheckTools].
func Compile(n strict.Node, p *strict.Problems) *Rule {
	found := p.Len()
	var k keys
	strict.Decode(n, &k, p)
	r := &Rule{Severity: eval.SeverityError, Blame: blames[0], Pos: n.Pos(), Node: n}
	for _, form := range Forms {
		if n.Get(form).IsZero() {
			continue
		}
		if r.Form != "" {
			p.Add(n.KeyPos(form), "write two rules", "a rule has one form, not both %q and %q", r.Form, form)
			continue
		}
		r.Form = form
	}
	if r.Form == "" {
		p.Add(n.Pos(), "add it: rule: ..., never: ..., sequence: ... or count: ...", "a rule has one of the keys %s", strings.Join(Forms, ", "))
		return nil
	}
	if !k.When.IsZero() && r.Form != "rule" {
		p.Add(n.KeyPos("when"), "write the condition into a rule of the form rule", "when stands beside rule, not beside %s", r.Form)
	}
	if p.Len() > found {
		return nil
	}
	at := p.Key(r.Form)
	var statement string
	switch r.Form {
	case "rule":
		r.check, statement = compileCondition(k, r, p)
	case "never":
		r.check, statement = compileNever(k.Never, r, at)
	case "sequence":
		r.check, statement = compileSequence(k.Sequence, r, at)
	case "count":
		r.check, statement = compileCount(k.Count, r, at)
	}
	r.describe(k, statement, p)
	if p.Len() > found {
		return nil
	}
	return r
}

// describe sets what stands beside the form.
func (r *Rule) describe(k keys, statement string, p *strict.Problems) {
	r.Statement = clip(statement, 200)
	if k.Statement != nil {
		r.Statement = *k.Statement
		if strings.TrimSpace(r.Statement) == "" || strings.Contains(strings.TrimSpace(r.Statement), "\n") {
			p.Key("statement").Add(r.Node.Get("statement").Pos(), "write one line", "a statement is one line")
		}
	}
	if k.Why != nil {
		if r.Why = *k.Why; strings.TrimSpace(r.Why) == "" {
			p.Key("why").Add(r.Node.Get("why").Pos(), "leave it out", "the reason is empty")
		}
	}
	if k.Severity != nil {
		r.Severity = eval.Severity(*k.Severity)
	}
	if k.Blame != nil {
		r.Blame = *k.Blame
	}
	r.Name = NameOf(r.Node)
	if k.Name == nil {
		return
	}
	if r.Name == "" || strings.ContainsFunc(r.Name, func(c rune) bool {
		return c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
	}) {
		p.Key("name").Add(r.Node.Get("name").Pos(), "write letters, digits, dot, underscore and hyphen", "%q is no name", r.Name)
	}
}

// NameOf is the name of a rule as it is written, or where it gives none, one made of its form and a digest: the same rule has the same name wherever it stands.
func NameOf(n strict.Node) string {
	if name := n.Get("name"); name.Kind() == strict.String {
		return name.Text()
	}
	sum := sha256.Sum256(n.AppendCanonical(nil))
	for _, form := range Forms {
		if !n.Get(form).IsZero() {
			return form + "-" + hex.EncodeToString(sum[:3])
		}
	}
	return ""
}

// Named returns the rule under another name, as a library gives it.
func (r *Rule) Named(name string) *Rule {
	named := *r
	named.Name = name
	return &named
}

// Tools are the names of tools that the rule speaks of, each once, in the order in which it names them.
func (r *Rule) Tools() []string {
	var list []string
	seen := map[string]bool{}
	for _, n := range r.names {
		if !seen[n.tool] {
			seen[n.tool] = true
			list = append(list, n.tool)
		}
	}
	return list
}

// CheckTools adds to p the tools that the rule names and that are not known, with their places and what is nearest.
func (r *Rule) CheckTools(known []string, p *strict.Problems) {
	set := make(map[string]bool, len(known))
	for _, name := range known {
		set[name] = true
	}
	for _, n := range r.names {
		if !set[n.tool] {
			p.Add(n.pos, strict.Suggest(n.tool, known), "rule %s: unknown tool %q", r.Name, n.tool)
		}
	}
}

// Evaluate judges a story.
func (r *Rule) Evaluate(s *Story) Outcome {
	if len(s.steps) == 0 && len(s.calls) == 0 {
		return Outcome{} // the agent did nothing, or nobody saw it
	}
	o, ok := r.check.look(s)
	if !ok {
		return Outcome{}
	}
	o.Applicable = true
	o.Evidence = clip(o.Evidence, 480)
	return o
}

// CheckTemplates adds to p the templates in the expressions of a rule: a value that fills one would become part of a program. In the arguments of never and count it is a value.
func CheckTemplates(n strict.Node, p *strict.Problems) {
	look := func(n strict.Node, p *strict.Problems) {
		if i := strings.Index(n.Text(), "{{"); i >= 0 {
			p.Add(n.PosOf(i), "write the rule out; templates serve in the arguments of never and count", "a template cannot stand in an expression: its value would become part of it")
		}
	}
	for _, key := range []string{"rule", "when", "sequence"} {
		look(n.Get(key), p.Key(key))
	}
	look(n.Get("sequence").Get("calls"), p.Key("sequence").Key("calls"))
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// visible shows a text that a model may have written: what does not print is written as its number.
func visible(s string, n int) string {
	s = clip(strings.ToValidUTF8(s, "\ufffd"), n)
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u{%x}", r)
		}
	}
	return b.String()
}

// String shows a call for evidence.
func (c *call) String() string {
	input := string(c.input)
	if input == "" {
		input = "{}"
	}
	return fmt.Sprintf("%s(%s)", visible(c.tool, 60), visible(input, 160))
}

// String shows a result for evidence.
func (r *result) String() string {
	return fmt.Sprintf("the result of %s: %s", visible(r.tool(), 60), visible(r.text(), 120))
}

// String shows a message for evidence.
func (m *message) String() string {
	return fmt.Sprintf("%s: %s", m.role, visible(m.text, 120))
}
