package replay

import (
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
)

// Miss says that the present asks for something that the cassette does not hold, or got something else than it holds. It is never worth another attempt.
type Miss struct {
	Item string
	// Request counts the HTTP requests of the item, from 1; of a tool it is the number of the call. 0 is the cassette as a whole.
	Request     int
	Method, URL string
	// Class, Path, Old and New say what changed: the first path of the class, with the recorded value and the present one, fit for a terminal. They are the same for every item that a change has hit, so that one cause can be said once. Path is "" where nothing recorded comes near.
	Class          cassette.Class
	Path, Old, New string
	// Nearest is the number of the interaction that was compared, from 1; 0 for none.
	Nearest int
	// Note is what no path shows.
	Note string
	// Judge says that a check asked, and not the agent; Request then counts the requests to judges. Paths begin with "judge.".
	Judge bool
}

// Final reports that no repetition can help; transports that try again look for it.
func (*Miss) Final() bool { return true }

// Error says what was asked and how it differs from what is recorded.
func (m *Miss) Error() string {
	var b strings.Builder
	switch {
	case m.Request == 0:
		b.WriteString("recorded for other input")
	case m.Method == cassette.Method:
		fmt.Fprintf(&b, "call %d (%s)", m.Request, m.URL)
	case m.Judge:
		fmt.Fprintf(&b, "request %d of a check (%s %s)", m.Request, m.Method, m.URL)
	default:
		fmt.Fprintf(&b, "request %d (%s %s)", m.Request, m.Method, m.URL)
	}
	if m.Request > 0 {
		if m.Class == cassette.ClassToolResult && m.Method == cassette.Method && m.Note == "" {
			b.WriteString(" gave another result than recorded")
		} else {
			b.WriteString(" is not in the recording")
		}
	}
	fmt.Fprintf(&b, ": %s", m.Class)
	if m.Path != "" {
		fmt.Fprintf(&b, " at %s: recorded %s, now %s", m.Path, m.Old, m.New)
	}
	if m.Note != "" {
		b.WriteString("; " + m.Note)
	}
	if m.Nearest > 0 {
		fmt.Fprintf(&b, " (compared with interaction %d)", m.Nearest)
	}
	return b.String()
}

// LeftOverError says that a complete item did not use all that was recorded for it.
type LeftOverError struct{ Entries []Entry }

// Error names the first interactions that were not used.
func (e *LeftOverError) Error() string {
	const most = 3
	var names []string
	for _, x := range e.Entries[:min(most, len(e.Entries))] {
		names = append(names, fmt.Sprintf("%d (%s %s)", x.Number, x.Method, x.URL))
	}
	if more := len(e.Entries) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%d recorded interactions were not used: %s", len(e.Entries), strings.Join(names, ", "))
}

// Action says what is done about a drift.
type Action string

// The actions.
const (
	Serve  Action = "serve" // the interaction at the same place is served, and counted
	Warn   Action = "warn"  // the same, and every report says so
	Fail   Action = "fail"  // the line is stale
	GoLive Action = "live"  // from here on the network answers, and what it says is recorded; in Extend alone
)

// Drifted is one drift and what was done about it.
type Drifted struct {
	Miss   *Miss
	Action Action
}

// action is what the configuration says of a class. Where it says nothing all classes fail, or go live in Extend, but transport, which the model does not see, is served.
func (s *Session) action(class cassette.Class) Action {
	if s.config.Frozen.agent() && class != cassette.ClassTransport {
		return Fail
	}
	if a, said := s.config.Drift[class]; said {
		return a
	}
	switch {
	case class == cassette.ClassTransport:
		return Serve
	case s.config.Mode == Extend:
		return GoLive
	}
	return Fail
}

// allowed reports that a drift of a class is served.
func (s *Session) allowed(class cassette.Class) bool {
	a := s.action(class)
	return a != Fail && a != GoLive
}

// bearable reports that a drift of a class makes no line stale.
func (s *Session) bearable(class cassette.Class) bool { return s.action(class) != Fail }

// lost deals with what the tape does not hold: in Extend the session goes live, unless the class of the miss fails or nothing can be recorded any more, and lost returns nil; else it returns the error of the miss. held is the interaction that must not be kept, -1 for none. The caller holds mu.
func (s *Session) lost(m *Miss, held int) error {
	if rejudged := s.judge && (s.config.Rejudge || s.config.Frozen.agent()); s.config.Mode != Extend || !s.bearable(m.Class) && !rejudged {
		return s.missed(m)
	}
	why := ""
	switch {
	case s.tape.written > 0:
		why = "a call that wrote was served before"
	case s.untold:
		why = "the cassette was imported without the tools that have run"
	}
	if why != "" {
		s.restart = true
		m.Note = strings.TrimPrefix(m.Note+"; "+why+", so that only a recording from the start can follow", "; ")
		return s.missed(m)
	}
	if s.judge {
		s.live = true // for this request
		return nil
	}
	s.goLive(held)
	return nil
}

// goLive ends the replay and makes what was served the beginning of a recording, but for the interaction held. The caller holds mu.
func (s *Session) goLive(held int) {
	s.live = true
	for i, used := range s.tape.used {
		if (used || s.setup) && i != held {
			s.slots = append(s.slots, &slot{interaction: s.tape.file.Interactions[i], filled: true})
		}
	}
	s.kept = len(s.slots)
}

// across finds the interaction at the same place, if all that differs may be served, and uses it up. The caller holds mu.
func (s *Session) across(got cassette.Request, number, seq int) int {
	at := s.tape.position(got, seq)
	if at < 0 {
		return -1
	}
	d := cassette.Compare(s.tape.requests[at], got)
	if len(d.Changes) == 0 {
		return -1
	}
	for _, c := range d.Changes {
		if !s.allowed(c.Class) {
			return -1
		}
	}
	for _, c := range d.Changes {
		s.drifted(&Miss{Item: s.config.Expect.Item, Request: number, Method: got.Method, URL: got.URL, Class: c.Class, Path: c.Path, Old: c.Old, New: c.New, Nearest: s.tape.offset + at + 1})
	}
	s.tape.take(at)
	return at
}

// drifted keeps a drift that is served. The caller holds mu.
func (s *Session) drifted(m *Miss) {
	s.name(m)
	s.drift = append(s.drift, Drifted{m, s.action(m.Class)})
}

// name says of a miss whether a judge was asked.
func (s *Session) name(m *Miss) {
	m.Judge = s.judge
	if s.judge && m.Path != "" {
		m.Path = "judge." + m.Path
	}
}

// fail makes the error of a miss.
func (s *Session) fail(m *Miss) error {
	return s.hint(failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "%w", m))
}

// missed keeps the first miss and returns it. The caller holds mu.
func (s *Session) missed(m *Miss) error {
	if s.miss == nil {
		m.Item = s.config.Expect.Item
		s.name(m)
		s.drift = append(s.drift, Drifted{m, Fail})
		s.miss = s.fail(m)
	}
	return s.miss
}
