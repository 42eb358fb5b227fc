package matchers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/score"
)

// Condition narrows what [CallTool] looks for: [WithArgs], [Returning], [Failing], [Times].
type Condition func(*callTool)

// WithArgs asks for arguments: those named must be there, others may be, as in the check tool_calls of a dataset. A value is
//
//   - a Gomega matcher, which gets the argument as encoding/json decodes it (numbers are float64) and must hold;
//   - any other value, which is compared as JSON, at any depth: 1 equals 1.0, a map has exactly these keys. The matchers of datasets stand for a value here too: map[string]any{"$regex": "^ab"}.
//
// A Gomega matcher within a map or list is an error of the assertion.
func WithArgs(args map[string]any) Condition {
	return func(c *callTool) { c.args = maps.Clone(args); c.withArgs = true }
}

// Returning asks that the tool's result, as the model read it, equals a text or satisfies a matcher of strings.
func Returning(result any) Condition { return func(c *callTool) { c.result = asMatcher(result) } }

// Failing asks that the tool's result was an error.
func Failing() Condition { return func(c *callTool) { c.failing = true } }

// Times asks for exactly so many such calls, where otherwise one is enough.
func Times(n int) Condition { return func(c *callTool) { c.times, c.counted = n, true } }

// CallTool succeeds where the model called the tool, in a way that keeps all conditions. Whether the tool then ran is not asked: see [Returning] and [Failing].
func CallTool(name string, conditions ...Condition) types.GomegaMatcher {
	m := &callTool{name: name}
	for _, c := range conditions {
		c(m)
	}
	return m
}

type callTool struct {
	name     string
	withArgs bool
	args     map[string]any
	result   types.GomegaMatcher // nil: anything
	failing  bool
	counted  bool
	times    int

	plainArgs score.Arguments
	judged    map[string]types.GomegaMatcher // arguments with a matcher of their own

	calls []call
	found []int    // places of the calls that match, from 1
	near  []string // why calls of the name do not
}

func (m *callTool) compile() error {
	if m.counted && m.times < 0 {
		return fmt.Errorf("Times(%d): want 0 or more", m.times)
	}
	m.judged = map[string]types.GomegaMatcher{}
	equal := map[string]any{}
	for name, value := range m.args {
		if matcher, ok := value.(types.GomegaMatcher); ok {
			m.judged[name] = matcher
			continue
		}
		if inside(value) {
			return fmt.Errorf("WithArgs: a matcher stands within the value of %q; a matcher stands for a whole argument", name)
		}
		equal[name] = value
	}
	data, err := json.Marshal(equal)
	if err != nil {
		return fmt.Errorf("WithArgs: %w", err)
	}
	node, err := strict.ParseJSON("WithArgs", 1, data)
	if err != nil {
		return fmt.Errorf("WithArgs: %w", err)
	}
	var problems strict.Problems
	m.plainArgs = score.CompileArguments(node, &problems)
	if err := problems.Err(); err != nil {
		return fmt.Errorf("WithArgs: %w", err)
	}
	return nil
}

// inside reports whether a matcher stands somewhere in a map or list.
func inside(value any) bool {
	switch v := value.(type) {
	case types.GomegaMatcher:
		return true
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), inside)
	case []any:
		return slices.ContainsFunc(v, inside)
	}
	return false
}

// Match implements [types.GomegaMatcher].
func (m *callTool) Match(actual any) (bool, error) {
	if err := m.compile(); err != nil {
		return false, err
	}
	s, err := of(actual)
	if err != nil {
		return false, fmt.Errorf("CallTool: %w", err)
	}
	if m.calls, err = s.calls(); err != nil {
		return false, fmt.Errorf("CallTool: %w", err)
	}
	m.found, m.near = nil, nil
	for i, c := range m.calls {
		if c.Name != m.name {
			continue
		}
		why, err := m.differs(c)
		switch {
		case err != nil:
			return false, err
		case why == "":
			m.found = append(m.found, i+1)
		case len(m.near) < mostCalls:
			m.near = append(m.near, fmt.Sprintf("call %d: %s", i+1, why))
		}
	}
	if m.counted {
		return len(m.found) == m.times, nil
	}
	return len(m.found) > 0, nil
}

// differs says why a call of the right name is not the one that is looked for, "" where it is.
func (m *callTool) differs(c call) (string, error) {
	if m.withArgs {
		text, err := c.Arguments()
		if err != nil {
			return "its arguments are no JSON object: " + plain(err.Error()), nil
		}
		node, err := strict.ParseJSON("arguments", 1, []byte(text))
		if err != nil {
			return "its arguments cannot be read: " + plain(err.Error()), nil
		}
		if !m.plainArgs.Match(node) {
			return "its arguments are not these", nil
		}
		for _, name := range slices.Sorted(maps.Keys(m.judged)) {
			value := node.Get(name)
			if value.IsZero() {
				return fmt.Sprintf("it has no argument %q", name), nil
			}
			var decoded any
			if err := json.Unmarshal([]byte(value.JSON()), &decoded); err != nil {
				return fmt.Sprintf("its argument %q cannot be read: %s", name, plain(err.Error())), nil
			}
			ok, err := m.judged[name].Match(decoded)
			if err != nil {
				return fmt.Sprintf("its argument %q cannot be matched: %s", name, plain(err.Error())), nil
			}
			if !ok {
				return fmt.Sprintf("its argument %q: %s", name, plain(m.judged[name].FailureMessage(decoded))), nil
			}
		}
	}
	if (m.result != nil || m.failing) && !c.answered {
		return "it has no result", nil
	}
	if m.failing && !c.result.IsError {
		return "its result is no error", nil
	}
	if m.result != nil {
		ok, err := m.result.Match(c.result.ResultText())
		if err != nil {
			return "", fmt.Errorf("CallTool: Returning: %w", err)
		}
		if !ok {
			return "its result: " + plain(m.result.FailureMessage(c.result.ResultText())), nil
		}
	}
	return "", nil
}

// String says what is looked for.
func (m *callTool) String() string {
	out := "call " + m.name
	if m.withArgs {
		out += " with " + m.expected()
	}
	switch {
	case m.failing && m.result != nil:
		out += ", failing with a certain result"
	case m.failing:
		out += ", failing"
	case m.result != nil:
		out += ", with a certain result"
	}
	if m.counted {
		out += fmt.Sprintf(", %d times", m.times)
	}
	return out
}

func (m *callTool) expected() string {
	parts := make([]string, 0, len(m.args))
	for _, name := range slices.Sorted(maps.Keys(m.args)) {
		if matcher, ok := m.args[name].(types.GomegaMatcher); ok {
			parts = append(parts, fmt.Sprintf("%s matching %s", name, strings.TrimPrefix(fmt.Sprintf("%T", matcher), "*matchers.")))
			continue
		}
		data, err := json.Marshal(m.args[name])
		if err != nil {
			data = []byte("?")
		}
		parts = append(parts, name+" "+short(string(data)))
	}
	if len(parts) == 0 {
		return "any arguments"
	}
	return strings.Join(parts, ", ")
}

func (m *callTool) counts() string {
	if !m.counted {
		return ""
	}
	return fmt.Sprintf("%s matched\n", calls(len(m.found)))
}

// FailureMessage implements [types.GomegaMatcher].
func (m *callTool) FailureMessage(any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "expected the model to %s\n%s", m, m.counts())
	for _, why := range m.near {
		fmt.Fprintf(&b, "%s\n", why)
	}
	return b.String() + listed(m.calls)
}

// NegatedFailureMessage implements [types.GomegaMatcher].
func (m *callTool) NegatedFailureMessage(any) string {
	places := make([]string, len(m.found))
	for i, n := range m.found {
		places[i] = fmt.Sprint(n)
	}
	which := "no call matches"
	if len(places) > 0 {
		which = "these match: " + strings.Join(places, ", ")
	}
	return fmt.Sprintf("expected the model not to %s\n%s\n%s", m, which, listed(m.calls))
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// CallTools succeeds where the model called exactly these tools, in this order.
func CallTools(names ...string) types.GomegaMatcher { return &callTools{names: names} }

// CallNoTools succeeds where the model called no tool at all.
func CallNoTools() types.GomegaMatcher { return &callTools{} }

type callTools struct {
	names []string
	calls []call
}

// Match implements [types.GomegaMatcher].
func (m *callTools) Match(actual any) (bool, error) {
	s, err := of(actual)
	if err == nil {
		m.calls, err = s.calls()
	}
	if err != nil {
		return false, fmt.Errorf("CallTools: %w", err)
	}
	return slices.EqualFunc(m.calls, m.names, func(c call, name string) bool { return c.Name == name }), nil
}

func (m *callTools) wanted() string {
	if len(m.names) == 0 {
		return "no tool"
	}
	return "exactly " + strings.Join(m.names, ", ")
}

// FailureMessage implements [types.GomegaMatcher].
func (m *callTools) FailureMessage(any) string {
	return fmt.Sprintf("expected the model to call %s\n%s", m.wanted(), listed(m.calls))
}

// NegatedFailureMessage implements [types.GomegaMatcher].
func (m *callTools) NegatedFailureMessage(any) string {
	if len(m.names) == 0 {
		return "expected the model to call a tool, and it called none"
	}
	return fmt.Sprintf("expected the model not to call %s\n%s", m.wanted(), listed(m.calls))
}
