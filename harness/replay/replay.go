// Package replay stands between an agent and the world. Below the model it is a round tripper, around the tools a decorator; both write to one cassette while recording, and serve from it in a replay.
//
// A [Session] belongs to one item, provider and repeat:
//
//	s, err := replay.Open(replay.Config{Mode: replay.Replay, Path: path, Display: "fixtures/cassettes/…", Expect: header})
//	if err != nil {
//		return err // no cassette, an unreadable one, or one whose input files changed; see CauseOf
//	}
//	// … run the agent over s.RoundTripper(network), its tools wrapped in s.Tool, on s.Clock() …
//	outcome, err := s.Close(completed)
//
// In a replay nothing can be dialled: a request that the cassette does not hold is a [Miss], and after the first one the session answers nothing else.
package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
)

// Mode says what a session does with the world.
type Mode string

// The modes. A missing file is an error in Replay alone, a missing interaction too; Record and Live never read a file.
const (
	Replay Mode = "replay" // serves from the cassette, never dials
	Record Mode = "record" // dials, and writes a new cassette when the item is complete; until then the old one stays
	Live   Mode = "live"   // dials and keeps nothing
)

// Config is what a session is made from.
type Config struct {
	Mode Mode
	// Path is the cassette's file, Display how messages name it: relative to the project's root, with slashes.
	Path, Display string
	// Expect says what the dataset knows of the item now. In Replay its hashes are compared with the cassette's; in Record it becomes the header, apart from versions, time and rules, which the session sets.
	Expect cassette.Header
	// Redactions are replaced in everything that is stored, and filled in again in what is served.
	Redactions []cassette.Redaction
	// Secrets finds what must not be stored; nil looks for key shapes alone.
	Secrets *secret.Detector
	// AllowLeftover lets a replay end although interactions were not used.
	AllowLeftover bool
	// Drift says what a replay does about each class of drift; see [Action]. A class that is absent fails, but transport is served.
	Drift map[cassette.Class]Action
	// RecordCommand is the command that records this item anew, for hints; "" gives none.
	RecordCommand string
	// RecordedAt is where the item's clock starts in Record and Live. The zero time stands for the present.
	RecordedAt time.Time
	// Reproducible takes durations from what the server says in Server-Timing instead of measuring them, so that recording twice gives the same bytes; what says nothing takes no time.
	Reproducible bool
	// Quarantine is the file that a recording with a secret goes to, redacted, with permissions for its owner alone; "" keeps none.
	Quarantine string
	// Clock measures durations and waits between attempts in Record and Live; nil is the machine's.
	Clock clock.Clock
}

// Session is the world of one item. Its round tripper and tools may be used by several goroutines at once.
type Session struct {
	config Config
	rules  *cassette.Rules
	began  time.Time // where the item's clock started
	clock  *clock.Virtual
	wall   clock.Clock

	mu       sync.Mutex
	tape     *tape   // in Replay
	slots    []*slot // in Record, in the order in which the calls began
	applied  map[string]bool
	upstream string // what answered in the vendor's place
	requests int    // HTTP requests so far
	miss     error
	drift    []Drifted
	closed   bool
}

// slot is the place of one interaction of a recording.
type slot struct {
	interaction cassette.Interaction
	// finish, where it is set, ends an exchange whose body nobody has closed.
	finish func()
	filled bool
}

// Open begins a session. In Replay it reads the cassette: an error satisfies errors.Is(err, fs.ErrNotExist) where there is none, and is a [Miss] of class input-files where a file has changed that tools read but no request shows. Every error has an exit code.
func Open(config Config) (*Session, error) {
	rules, err := cassette.NewRules(config.Redactions)
	if err != nil {
		return nil, failure.At(failure.Position{File: config.Display}, failure.Input, "%w", err)
	}
	s := &Session{config: config, rules: rules, wall: config.Clock, applied: map[string]bool{}}
	if s.wall == nil {
		s.wall = clock.Wall{}
	}
	start := config.RecordedAt
	switch config.Mode {
	case Replay:
		file, err := cassette.Load(config.Path, config.Display)
		if err != nil {
			return nil, s.hint(err)
		}
		if changed := cassette.ChangedInputs(file.Header.Hashes, config.Expect.Hashes); len(changed) > 0 {
			name := changed[0]
			m := &Miss{Item: config.Expect.Item, Class: cassette.ClassInputFiles, Path: name, Old: known(file.Header.Hashes[name]), New: known(config.Expect.Hashes[name])}
			if !s.allowed(m.Class) {
				return nil, s.fail(m)
			}
			s.drifted(m)
		}
		s.tape = newTape(file, rules)
		start = file.Header.RecordedAt
	case Record, Live:
		if start.IsZero() {
			start = s.wall.Now().Truncate(time.Millisecond)
		}
	default:
		return nil, failure.New(failure.Internal, "there is no mode %q of a session", config.Mode)
	}
	s.began = start.UTC()
	s.clock = clock.NewVirtual(s.began)
	return s, nil
}

// known spells the hash of an input that may be absent.
func known(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}

// Clock is the item's clock. It starts at the time of the recording and moves on by the durations of exchanges and tools: those recorded in Replay, else those measured. Calls that run side by side each move it to their own end.
func (s *Session) Clock() *clock.Virtual { return s.clock }

// Waiting is the clock for pauses between attempts: in Replay they take no time, else they are waited out. Either way the item's clock moves on by them.
func (s *Session) Waiting() clock.Clock {
	if s.config.Mode == Replay {
		return s.clock
	}
	return waiting{s}
}

// Miss returns the error that ended the session early, nil while there is none. It wraps a [Miss].
func (s *Session) Miss() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.miss
}

// State says how a cassette stands after a session.
type State string

// The states, as in results.
const (
	Fresh    State = "fresh"
	Stale    State = "stale"
	Recorded State = "recorded"
)

// Entry names an interaction of a cassette.
type Entry struct {
	Number      int // from 1
	Method, URL string
}

// Outcome is what came of a session.
type Outcome struct {
	State State // "" where no cassette was read or written
	Miss  *Miss // what made the cassette stale
	// Drift are all drifts, in the order of the interactions that they concern, the miss as the last.
	Drift    []Drifted
	LeftOver []Entry
	// Quarantined says that a recording with a secret was put aside, redacted.
	Quarantined bool
}

// Close ends the session; it may be called once. complete says that the item came to its end, whatever the verdict.
//
// In Replay it returns the miss, if there was one, and for a complete item a [LeftOverError] for interactions that were not used. In Record it saves the cassette of a complete item; of any other nothing is saved and the old file stays. A recording that holds a secret is not saved: the error names
// the field.
func (s *Session) Close(complete bool) (Outcome, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Outcome{}, failure.New(failure.Internal, "the session of %s is closed already", s.config.Display)
	}
	s.closed = true
	s.mu.Unlock()
	switch s.config.Mode {
	case Replay:
		return s.closeReplay(complete)
	case Record:
		if complete {
			return s.save()
		}
	}
	return Outcome{}, nil
}

func (s *Session) closeReplay(complete bool) (Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.drift, func(a, b Drifted) int {
		if fails := b.Action == Fail; fails != (a.Action == Fail) {
			if fails {
				return -1
			}
			return 1
		}
		return a.Miss.Nearest - b.Miss.Nearest
	})
	outcome := Outcome{State: Fresh, Drift: s.drift}
	if s.miss != nil {
		outcome.State = Stale
		errors.As(s.miss, &outcome.Miss)
		return outcome, s.miss
	}
	if !complete {
		return outcome, nil
	}
	outcome.LeftOver = s.tape.left()
	if len(outcome.LeftOver) == 0 || s.config.AllowLeftover {
		return outcome, nil
	}
	outcome.State = Stale
	err := failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "%w", &LeftOverError{Entries: outcome.LeftOver})
	return outcome, s.hint(failure.WithHint(err, "--allow-leftover lets it pass"))
}

func (s *Session) save() (Outcome, error) {
	s.mu.Lock()
	open := slices.Clone(s.slots)
	s.mu.Unlock()
	for _, slot := range open {
		if slot.finish != nil {
			slot.finish()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range s.slots {
		if !slot.filled {
			return Outcome{}, failure.At(failure.Position{File: s.config.Display}, failure.Internal, "not saved: a request or a call is still under way")
		}
	}
	file := &cassette.File{Header: s.config.Expect}
	file.Header.Format, file.Header.Canon = cassette.Format, cassette.Canon
	file.Header.RecordedAt = s.began
	file.Header.Rules = slices.Sorted(maps.Keys(s.applied))
	if s.upstream != "" {
		file.Header.Upstream = s.upstream
	}
	for _, i := range s.ordered() {
		file.Interactions = append(file.Interactions, *i)
	}
	detector := s.config.Secrets
	if detector == nil {
		detector = &secret.Detector{}
	}
	if found := cassette.Scan(file, detector, s.rules); len(found) > 0 {
		return s.quarantine(file, detector, found)
	}
	if err := cassette.Save(s.config.Path, s.config.Display, file); err != nil {
		return Outcome{}, err
	}
	return Outcome{State: Recorded}, nil
}

func (s *Session) quarantine(file *cassette.File, detector *secret.Detector, found []cassette.Finding) (Outcome, error) {
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf(", and %d more", len(found)-1)
	}
	err := failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "not saved: %s%s", found[0], more)
	if s.config.Quarantine == "" {
		return Outcome{}, err
	}
	data, problem := cassette.Encode(cassette.Redacted(file, detector, s.rules))
	name := path.Base(s.config.Display)
	if problem == nil {
		problem = cassette.Write(s.config.Quarantine, "the quarantine of "+name, data, 0o600)
	}
	if problem != nil {
		return Outcome{}, errors.Join(err, problem)
	}
	return Outcome{Quarantined: true}, failure.WithHint(err, "the recording is in .echoeval/quarantine, redacted; take the secret out of what the item reads, or list it under redact_allow if it is none")
}

// hint adds the command that makes a cassette fresh, unless the error has a hint of its own.
func (s *Session) hint(err error) error {
	if s.config.RecordCommand == "" || len(failure.Hints(err)) > 0 && !errors.As(err, new(*LeftOverError)) {
		return err
	}
	return failure.WithHint(err, "%s", s.config.RecordCommand)
}

// Cause is what made a session fail a line, as results name it.
type Cause string

// The causes.
const (
	Missing    Cause = "missing"
	Drift      Cause = "drift"
	LeftOver   Cause = "left_over"
	Unreadable Cause = "unreadable"
)

// CauseOf returns the cause of an error of a session, "" for one that does not make a line stale.
func CauseOf(err error) Cause {
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*Miss)):
		return Drift
	case errors.As(err, new(*LeftOverError)):
		return LeftOver
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case failure.CodeOf(err) == failure.Cassette:
		return Unreadable
	}
	return ""
}
