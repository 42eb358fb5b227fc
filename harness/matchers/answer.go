package matchers

import (
	"fmt"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// asMatcher is the matcher itself, or equality with any other value.
func asMatcher(expected any) types.GomegaMatcher {
	if m, ok := expected.(types.GomegaMatcher); ok {
		return m
	}
	return gomega.Equal(expected)
}

// Answer succeeds where the text of the model's last reply equals a string, or satisfies a matcher of strings.
func Answer(expected any) types.GomegaMatcher { return &answer{expected: asMatcher(expected)} }

type answer struct {
	expected types.GomegaMatcher
	text     string
	shown    string
}

// Match implements [types.GomegaMatcher].
func (m *answer) Match(actual any) (bool, error) {
	s, err := of(actual)
	if err == nil {
		m.text, err = s.answer()
	}
	if err != nil {
		return false, fmt.Errorf("Answer: %w", err)
	}
	m.shown = s.shown()
	ok, err := m.expected.Match(m.text)
	if err != nil {
		return false, fmt.Errorf("Answer: %w", err)
	}
	return ok, nil
}

// FailureMessage implements [types.GomegaMatcher].
func (m *answer) FailureMessage(any) string {
	return fmt.Sprintf("the model's answer:\n%s\n%s", indent(block(m.expected.FailureMessage(m.text))), m.shown)
}

// NegatedFailureMessage implements [types.GomegaMatcher].
func (m *answer) NegatedFailureMessage(any) string {
	return fmt.Sprintf("the model's answer:\n%s\n%s", indent(block(m.expected.NegatedFailureMessage(m.text))), m.shown)
}
