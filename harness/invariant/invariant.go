// Package invariant holds the rules that must be true of the trace of every run, and looks whether they are.
//
// [Catalogue] lists them; [Select] makes the set that applies to one item; [Set.Evaluate] judges a trace:
//
//	set := invariant.Select(item.Invariants, item.Drop, &problems)
//	line.Invariants = set.Evaluate(outcome.Trace)
//
// A trace is judged on as much as there is: one that an outage or a stale recording cut off breaks nothing by being short. A rule that had nothing to look at is not applicable, never silently held. Each broken rule gives its smallest witness: the
// numbers of the events that show it, and what stands there, without ever printing a secret or hidden value.
package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
)

// Blame says whose fault a broken rule is. Where faults are injected, only agent and harness count.
type Blame string

// Who may be to blame.
const (
	Model   Blame = "model"
	Agent   Blame = "agent"
	Harness Blame = "harness"
)

// Invariant is one invariant of the catalogue.
type Invariant struct {
	Name     string
	Severity eval.Severity
	Blame    Blame
	// Standard invariants apply to every item that does not drop them.
	Standard bool
	// Needs is what an agent or item must have for the invariant to apply at all.
	Needs Need
	// Statement is what must be true, in one line.
	Statement string
	// Notes say what is looked at, when the rule is not applicable, and what it does not see.
	Notes string
	// Params are the parameters that a dataset may set, each with its meaning.
	Params []Param
	// Keeps and Breaks give traces that keep and break the rule.
	Keeps, Breaks func() trace.Trace

	rule func(*view, params) outcome
}

// Need is something without which an invariant can never apply.
type Need string

// What invariants need; "" is nothing.
const (
	Tools       Need = "tools"
	ToolContext Need = "tool_context"
)

// NeedOf returns what the invariant of that name needs.
func NeedOf(name string) Need {
	if e := lookup(name); e != nil {
		return e.Needs
	}
	return ""
}

// BlameOf says whose fault a violation of the invariant of that name is. Whatever the catalogue does not have is a demand of the user on the answer, and the model's.
func BlameOf(name string) Blame {
	if e := lookup(name); e != nil {
		return e.Blame
	}
	return Model
}

// Param is a parameter of an invariant.
type Param struct{ Name, Doc string }

// params are the parameters of all invariants.
type params struct {
	Max *int `yaml:"max"`
}

// outcome is what a rule found in one run.
type outcome struct {
	// looked says that there was something to look at; findings imply it.
	looked   bool
	findings []finding
}

func (o *outcome) find(f finding) {
	o.looked = true
	o.findings = append(o.findings, f)
}

// finding is one place where a rule is broken.
type finding struct {
	severity eval.Severity // "" for the invariant's own
	events   []int
	evidence string
}

// Spec selects an invariant, or changes the severity or parameters of a standard one, as the dataset states it.
type Spec struct {
	Name string
	// Severity is "error", "warn", or "" for the catalogue's.
	Severity string
	// Params are parameters by name; the zero Node for none.
	Params strict.Node
	Pos    failure.Position
}

// Set is the invariants that apply to one item. It is immutable and safe for concurrent use.
type Set struct {
	// Secrets finds secrets for no-secret-in-content; the zero value looks for key shapes alone.
	Secrets secret.Detector
	rules   []selected
}

type selected struct {
	*Invariant
	severity eval.Severity
	forced   bool // the dataset states the severity
	params   params
	at       string
}

// Names returns the names of all invariants, sorted.
func Names() []string {
	names := make([]string, len(catalogue))
	for i := range catalogue {
		names[i] = catalogue[i].Name
	}
	return names
}

// Catalogue lists all invariants by name.
func Catalogue() []Invariant { return slices.Clone(catalogue) }

func lookup(name string) *Invariant {
	i, ok := slices.BinarySearchFunc(catalogue, name, func(e Invariant, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return nil
	}
	return &catalogue[i]
}

// standard is the set of an item that says nothing.
var standard = func() []selected {
	var rules []selected
	for i := range catalogue {
		if e := &catalogue[i]; e.Standard {
			rules = append(rules, selected{Invariant: e, severity: e.Severity})
		}
	}
	return rules
}()

// Select returns the standard invariants and those of add, without those of drop. Of two entries of one name in add the later counts. An unknown name, severity or parameter in add is added to p.
// A name in drop that is no invariant is left alone: drop names checks too, and the dataset looks after both.
func Select(add []Spec, drop []string, p *strict.Problems) Set {
	if len(add) == 0 && len(drop) == 0 {
		return Set{rules: standard}
	}
	rules := slices.Clone(standard)
	for _, s := range add {
		e := lookup(s.Name)
		if e == nil {
			p.Add(s.Pos, strict.Suggest(s.Name, Names()), "unknown invariant %q", s.Name)
			continue
		}
		rule := selected{Invariant: e, severity: e.Severity, at: s.Pos.String(), params: e.decode(s.Params, p.Key(s.Name))}
		switch severity := eval.Severity(s.Severity); severity {
		case "":
		case eval.SeverityError, eval.SeverityWarn:
			rule.severity, rule.forced = severity, true
		default:
			p.Add(s.Pos, "write error or warn", "invariant %s: unknown severity %q", s.Name, s.Severity)
		}
		i, found := slices.BinarySearchFunc(rules, s.Name, func(r selected, name string) int { return strings.Compare(r.Name, name) })
		if found {
			rules[i] = rule
		} else {
			rules = slices.Insert(rules, i, rule)
		}
	}
	rules = slices.DeleteFunc(rules, func(r selected) bool { return slices.Contains(drop, r.Name) })
	return Set{rules: rules}
}

func (e *Invariant) decode(n strict.Node, p *strict.Problems) params {
	var decoded params
	if n.IsZero() {
		return decoded
	}
	names := make([]string, len(e.Params))
	for i, param := range e.Params {
		names[i] = param.Name
	}
	if n.Kind() == strict.Mapping && len(names) == 0 {
		for key := range n.Fields() {
			p.Add(key.Pos(), "leave it out", "invariant %s takes no parameters", e.Name)
		}
		return decoded
	}
	strict.Decode(n, &decoded, p)
	if decoded.Max != nil && *decoded.Max < 1 {
		p.Key("max").Add(n.Get("max").Pos(), "", "want at least 1")
	}
	return decoded
}

// Names returns the names of the set, sorted.
func (s Set) Names() []string {
	names := make([]string, len(s.rules))
	for i, r := range s.rules {
		names[i] = r.Name
	}
	return names
}

// Evaluate judges a trace, in memory or as decoded from a file. Violations and lists are sorted by name; a rule is counted as held, not applicable or violated, once each. A rule that only broke with severity warn is violated too.
//
// A decoded trace lacks the hidden values and may have been redacted, so that no-hidden-parameter-leak relies on what the transport noted, and input-context-unchanged on the digests that the run took.
func (s Set) Evaluate(t trace.Trace) eval.Invariants {
	result := eval.Invariants{NotApplicable: []string{}, Triggered: []string{}, Violations: []eval.Violation{}}
	views := s.views(t)
	for i := range s.rules {
		r := &s.rules[i]
		all := r.rule(&views[0], r.params)
		for v := range views[1:] {
			more := r.rule(&views[1+v], r.params)
			all.looked = all.looked || more.looked
			all.findings = append(all.findings, more.findings...)
		}
		switch {
		case len(all.findings) > 0:
			result.Violations = r.witness(result.Violations, all.findings)
			s.mask(result.Violations, t.Hidden)
		case all.looked:
			result.Held++
		default:
			result.NotApplicable = append(result.NotApplicable, r.Name)
		}
	}
	return result
}

// witness appends, for each severity, the finding with the fewest events, of these the earliest.
func (r *selected) witness(dst []eval.Violation, findings []finding) []eval.Violation {
	for _, severity := range []eval.Severity{eval.SeverityError, eval.SeverityWarn} {
		var least *finding
		count := 0
		for i := range findings {
			f := &findings[i]
			own := f.severity
			if own == "" || r.forced {
				own = r.severity
			}
			if own != severity {
				continue
			}
			count++
			if least == nil || cmp.Or(cmp.Compare(len(f.events), len(least.events)), slices.Compare(f.events, least.events)) < 0 {
				least = f
			}
		}
		if least == nil {
			continue
		}
		evidence := least.evidence
		if count > 1 {
			evidence = fmt.Sprintf("%s (and %d more)", clip(evidence, 480), count-1)
		}
		dst = append(dst, eval.Violation{Name: r.Name, Severity: severity, Events: least.events, Evidence: clip(evidence, 500), At: r.at})
	}
	return dst
}

// mask takes secrets and hidden values out of evidence, which may quote what the model wrote.
func (s Set) mask(violations []eval.Violation, hidden conversation.Hidden) {
	for i := range violations {
		v := &violations[i]
		v.Evidence = s.Secrets.Redact(v.Evidence)
		for _, n := range needles(hidden) {
			if !n.weak {
				v.Evidence = strings.ReplaceAll(v.Evidence, n.text, "["+n.name+"]")
			}
		}
	}
}

// clip cuts a text to n characters of valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n && utf8.RuneCountInString(s) > n {
		count := 0
		for i := range s {
			if count == n-1 {
				s = s[:i] + "…"
				break
			}
			count++
		}
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// quote shows a text of the model, which may hold anything.
func quote(s string) string { return fmt.Sprintf("%q", clip(s, 60)) }
