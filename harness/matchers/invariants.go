package matchers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/invariant"
)

// HavePairedToolCalls succeeds where every call has exactly one result with its id in the next tool message, no result is without a call, and ids are unique within a message: the invariants tool-call-pairing and tool-call-unique-ids. Of a trace, a call that the run was paused or cut off on needs no result; of a conversation every call does.
//
// A conversation without any call keeps this. One without a message is an error: there is nothing to look at.
func HavePairedToolCalls() types.GomegaMatcher {
	return &keepInvariants{what: "every tool call to have its one result", only: []string{"tool-call-pairing", "tool-call-unique-ids"}}
}

// KeepInvariants succeeds where no invariant of severity error is broken: the standard ones, see `echoeval invariants ls`, and those named, of which a broken one counts whatever its severity. A name that does not exist is an error, and so is a named invariant that has nothing to look at, such as one about tools where none was called: it has proven nothing.
//
// Of an [Outcome] the violations in its result count too: the run has seen hidden values that its trace does not hold.
func KeepInvariants(names ...string) types.GomegaMatcher {
	return &keepInvariants{what: "the invariants to hold", named: names}
}

type keepInvariants struct {
	what  string
	only  []string // look at these alone
	named []string // look at these beside the standard ones

	found []eval.Violation
	shown string
}

// Match implements [types.GomegaMatcher].
func (m *keepInvariants) Match(actual any) (bool, error) {
	s, err := of(actual)
	if err != nil {
		return false, err
	}
	if len(s.trace.Events) == 0 {
		return false, fmt.Errorf("%s is empty: there is nothing to look at", s.name())
	}
	set, err := m.set()
	if err != nil {
		return false, err
	}
	m.shown = s.shown()
	if s.messages != nil && m.only != nil {
		m.unpaired(s)
		return len(m.found) == 0, nil
	}
	got := set.Evaluate(s.trace)
	violations := got.Violations
	if s.result != nil {
		violations = merge(violations, s.result.Invariants.Violations)
	}
	m.found = slices.DeleteFunc(violations, func(v eval.Violation) bool {
		if m.only != nil {
			return !slices.Contains(m.only, v.Name)
		}
		return v.Severity != eval.SeverityError && !slices.Contains(m.named, v.Name)
	})
	var idle []string
	for _, name := range m.named {
		if slices.Contains(got.NotApplicable, name) && !slices.ContainsFunc(m.found, func(v eval.Violation) bool { return v.Name == name }) {
			idle = append(idle, name)
		}
	}
	if len(idle) > 0 {
		return false, fmt.Errorf("%s had nothing to look at in %s: it has proven nothing", strings.Join(idle, ", "), s.name())
	}
	return len(m.found) == 0, nil
}

// set is what is looked at.
func (m *keepInvariants) set() (invariant.Set, error) {
	var p strict.Problems
	var drop []string
	if m.only != nil {
		drop = slices.DeleteFunc(invariant.Names(), func(name string) bool { return slices.Contains(m.only, name) })
	}
	var add []invariant.Spec
	for _, name := range m.named {
		if !slices.Contains(invariant.Names(), name) {
			return invariant.Set{}, fmt.Errorf("there is no invariant %q: %s", name, strict.Suggest(name, invariant.Names()))
		}
		add = append(add, invariant.Spec{Name: name})
	}
	set := invariant.Select(add, drop, &p)
	return set, p.Err()
}

// unpaired looks at a conversation, which no run has ended: a call at its end is open all the same.
func (m *keepInvariants) unpaired(s subject) {
	m.found = nil
	for _, p := range conversation.CheckPairing(slices.All(s.messages)) {
		m.found = append(m.found, eval.Violation{Name: "tool-call-pairing", Severity: eval.SeverityError, Events: []int{p.Message + 1}, Evidence: p.String()})
	}
}

// merge adds the violations of names that the first list does not have.
func merge(a, b []eval.Violation) []eval.Violation {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.ContainsFunc(a, func(o eval.Violation) bool { return o.Name == v.Name }) {
			out = append(out, v)
		}
	}
	return out
}

// FailureMessage implements [types.GomegaMatcher].
func (m *keepInvariants) FailureMessage(any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "expected %s\n", m.what)
	for _, v := range m.found {
		b.WriteString(violation(v) + "\n")
	}
	return b.String() + m.shown
}

// NegatedFailureMessage implements [types.GomegaMatcher].
func (m *keepInvariants) NegatedFailureMessage(any) string {
	return fmt.Sprintf("expected an invariant to be broken, and none of those looked at is\n%s", m.shown)
}

func violation(v eval.Violation) string {
	out := fmt.Sprintf("%s (%s) is broken: %s", v.Name, v.Severity, short(v.Evidence))
	if len(v.Events) > 0 {
		places := make([]string, len(v.Events))
		for i, n := range v.Events {
			places[i] = fmt.Sprint(n)
		}
		out += " (event " + strings.Join(places, ", ") + ")"
	}
	if v.At != "" {
		out += " at " + plain(v.At)
	}
	return out
}
