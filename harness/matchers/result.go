package matchers

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

// resultOf reads a line of results.
func resultOf(actual any) (*eval.Result, error) {
	switch a := actual.(type) {
	case Outcome:
		return &a.Result, nil
	case *Outcome:
		if a != nil {
			return &a.Result, nil
		}
	case eval.Result:
		return &a, nil
	case *eval.Result:
		if a != nil {
			return a, nil
		}
	}
	return nil, fmt.Errorf("got a %T: want a matchers.Outcome or an eval.Result", actual)
}

// Pass succeeds where the item passed: each of its checks reached its threshold, and no invariant of severity error was broken. The message shows each check that did not, with what it expected and found, and where it stands.
func Pass() types.GomegaMatcher { return &pass{} }

type pass struct{ result *eval.Result }

// Match implements [types.GomegaMatcher].
func (m *pass) Match(actual any) (bool, error) {
	var err error
	if m.result, err = resultOf(actual); err != nil {
		return false, fmt.Errorf("Pass: %w", err)
	}
	return m.result.Status == eval.Pass, nil
}

// FailureMessage implements [types.GomegaMatcher].
func (m *pass) FailureMessage(any) string {
	return m.head("expected the item to pass") + evidence(m.result)
}

// NegatedFailureMessage implements [types.GomegaMatcher].
func (m *pass) NegatedFailureMessage(any) string {
	return m.head("expected the item not to pass") + evidence(m.result)
}

func (m *pass) head(what string) string {
	r := m.result
	out := fmt.Sprintf("%s: %s on %s", what, plain(r.Item), plain(r.Provider))
	if r.Repeat > 1 {
		out += fmt.Sprintf(", repeat %d", r.Repeat)
	}
	out += ": " + string(r.Status)
	if r.Cause != nil {
		out += " (" + plain(*r.Cause) + ")"
	}
	return out
}

// evidence is why a line has the status that it has, each on lines of its own that begin with a line end.
func evidence(r *eval.Result) string {
	var b strings.Builder
	for _, c := range r.Checks {
		if c.Status == eval.CheckPass {
			continue
		}
		verb := "failed"
		if c.Status == eval.CheckUnjudged {
			verb = "could not judge"
		}
		fmt.Fprintf(&b, "\ncheck %s %s: %s", plain(c.Name), verb, short(c.Reason))
		if c.At != "" {
			b.WriteString(" at " + plain(c.At))
		}
		if c.Expected != nil {
			b.WriteString("\n  expected: " + short(*c.Expected))
		}
		if c.Actual != nil {
			b.WriteString("\n  actual:   " + short(*c.Actual))
		}
	}
	for _, v := range r.Invariants.Violations {
		b.WriteString("\n" + violation(v))
	}
	if e := r.Error; e != nil {
		fmt.Fprintf(&b, "\n%s error: %s", e.Kind, short(e.Message))
		if e.Hint != nil {
			b.WriteString("\nhint: " + short(*e.Hint))
		}
	}
	if c := r.Cassette; c != nil && r.Status == eval.Stale {
		b.WriteString(unclean(c))
	}
	if r.Output != nil && r.Status != eval.Pass {
		b.WriteString("\nanswer: " + short(*r.Output))
	}
	return b.String()
}

// ReplayCleanly succeeds where the item was answered from its recording alone, nothing differed from it and nothing of it was left over. Drift of the class transport (headers and the like), which a replay serves unasked, is no difference.
//
// Besides an [Outcome] and an [eval.Result] it takes the [replay.Outcome] of a session of your own. A line without a recording, such as that of a scripted model, is an error.
func ReplayCleanly() types.GomegaMatcher { return &replayCleanly{} }

type replayCleanly struct{ cassette *eval.CassetteInfo }

// Match implements [types.GomegaMatcher].
func (m *replayCleanly) Match(actual any) (bool, error) {
	if o, ok := actual.(replay.Outcome); ok {
		m.cassette = &eval.CassetteInfo{File: "the cassette", State: eval.CassetteState(o.State), LeftOver: len(o.LeftOver)}
		if o.State == "" {
			return false, fmt.Errorf("ReplayCleanly: the session read no cassette")
		}
		for _, d := range o.Drift {
			m.cassette.Drift = append(m.cassette.Drift, eval.Drift{Class: string(d.Miss.Class), Request: d.Miss.Request, Path: d.Miss.Path, Old: d.Miss.Old, New: d.Miss.New, Action: string(d.Action)})
		}
	} else {
		r, err := resultOf(actual)
		if err != nil {
			return false, fmt.Errorf("ReplayCleanly: %w", err)
		}
		if r.Cassette == nil {
			return false, fmt.Errorf("ReplayCleanly: %s on %s has no recording: it was not replayed", plain(r.Item), plain(r.Provider))
		}
		m.cassette = r.Cassette
	}
	return m.cassette.State == eval.CassetteFresh && m.cassette.LeftOver == 0 && len(differing(m.cassette)) == 0, nil
}

// differing is the drift that counts.
func differing(c *eval.CassetteInfo) []eval.Drift {
	var out []eval.Drift
	for _, d := range c.Drift {
		if d.Class != string(cassette.ClassTransport) {
			out = append(out, d)
		}
	}
	return out
}

// unclean says what is wrong with a replay, each on a line of its own that begins with a line end.
func unclean(c *eval.CassetteInfo) string {
	var b strings.Builder
	for _, d := range differing(c) {
		fmt.Fprintf(&b, "\nrequest %d differs: %s: %s: %s -> %s (%s)", d.Request, d.Class, plain(d.Path), short(d.Old), short(d.New), d.Action)
	}
	if c.LeftOver > 0 {
		fmt.Fprintf(&b, "\n%d recorded and not used", c.LeftOver)
	}
	return b.String()
}

// FailureMessage implements [types.GomegaMatcher].
func (m *replayCleanly) FailureMessage(any) string {
	return fmt.Sprintf("expected a clean replay of %s, which is %s%s", plain(m.cassette.File), m.cassette.State, unclean(m.cassette))
}

// NegatedFailureMessage implements [types.GomegaMatcher].
func (m *replayCleanly) NegatedFailureMessage(any) string {
	return fmt.Sprintf("expected the replay of %s to differ from the recording, and it does not", plain(m.cassette.File))
}
