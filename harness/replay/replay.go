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
// In a replay nothing can be dialled: a request that the cassette does not hold is a [Miss], and after the first one the session answers nothing else. In mode [Extend] the first one ends the replay instead, and what follows is recorded.
package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
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
	// Extend serves from the cassette as long as it fits. From the first miss on it dials, and when the item is complete it writes what was served, unchanged, and the new ending behind it. Without a cassette, or with one that cannot be read, it records.
	//
	// Where a call was served that wrote to a world outside the workspace, nothing can be recorded behind it, as the world no longer holds what was written: the session then fails as a replay does, and its [Outcome] says Restart.
	Extend Mode = "extend"
)

// Config is what a session is made from.
type Config struct {
	Mode Mode
	// Path is the cassette's file, Display how messages name it: relative to the project's root, with slashes.
	Path, Display string
	// File is served in the place of what lies at Path, in Replay alone; nil serves that. It is not changed.
	File *cassette.File
	// Expect says what the dataset knows of the item now. In Replay its hashes are compared with the cassette's; in Record it becomes the header, apart from versions, time and rules, which the session sets.
	Expect cassette.Header
	// Redactions are replaced in everything that is stored, and filled in again in what is served.
	Redactions []cassette.Redaction
	// Secrets finds what must not be stored; nil looks for key shapes alone.
	Secrets *secret.Detector
	// AllowLeftover lets a replay end although interactions were not used.
	AllowLeftover bool
	// Normalize are rules under which a request, or a tool's result, counts as equal to a recorded one. They change nothing that is stored or sent.
	Normalize []cassette.Normalization
	// Drift says what is done about each class of drift; see [Action]. A class that is absent fails in Replay and goes live in Extend, but transport is served.
	Drift map[cassette.Class]Action
	// Rejudge records what judges are asked and the cassette does not hold even where Drift says that its class fails; in Extend alone.
	Rejudge bool
	// Frozen makes the recording one of noise: a part of the world is served from another cassette. Nil freezes nothing.
	Frozen *Frozen
	// RecordCommand is the command that records this item anew, for hints; "" gives none.
	RecordCommand string
	// RecordedAt is where the item's clock starts in Record and Live. The zero time stands for the present. A cassette that is extended keeps the time at which it begins.
	RecordedAt time.Time
	// Reproducible takes durations from what the server says in Server-Timing instead of measuring them, so that recording twice gives the same bytes; what says nothing takes no time.
	Reproducible bool
	// Quarantine is the file that a recording with a secret goes to, redacted, with permissions for its owner alone; "" keeps none.
	Quarantine string
	// Clock measures durations and waits between attempts in Record and Live; nil is the machine's.
	Clock clock.Clock
}

// Frozen says what is held fixed while the rest is recorded, so that repeats show the noise of the rest alone. It is served from repeat 1 of the item, and the recording that comes of it stands in a cassette of its own.
type Frozen struct {
	// Path and Display are those of the cassette of repeat 1.
	Path, Display string
	// Tools freezes the tools outside the workspace: a call that is in the cassette gets the result that it got there, any other one runs. What is asked of models is recorded. Of mode Record.
	Tools bool
	// Else the agent is frozen, models and tools: everything must fit the cassette, and judges alone are asked anew. Of mode Extend.
}

// agent reports whether the agent is frozen.
func (f *Frozen) agent() bool { return f != nil && !f.Tools }

// Session is the world of one item. Its round tripper and tools may be used by several goroutines at once.
type Session struct {
	config Config
	rules  *cassette.Rules
	equal  *cassette.Normalizer
	setup  bool      // see OpenSetup
	began  time.Time // where the item's clock started
	clock  *clock.Virtual
	wall   clock.Clock
	judge  bool           // this is the part of judges, see [Session.Ask]
	asked  *cassette.File // what the cassette holds of judges; nil where none is served

	mu       sync.Mutex
	tape     *tape   // in Replay, and in Extend where there is a cassette
	frozen   *tape   // of tools that are held fixed in Record
	live     bool    // requests go to the network: always but in Replay, and in Extend from the first miss on
	kept     int     // how many interactions the recording took over from the tape
	outdated bool    // in Extend: the inputs of the cassette have changed, so that it is written anew even where nothing is missed
	restart  bool    // in Extend: a miss that nothing can be recorded behind
	untold   bool    // a tool ran of which an imported cassette says nothing
	slots    []*slot // while live and recording, in the order in which the calls began
	applied  map[string]bool
	answered bool   // something was recorded that is not kept from the tape
	upstream string // what answered in the vendor's place
	requests int    // HTTP requests so far
	miss     error
	drift    []Drifted
	closed   bool

	judges     *Session // the part of judges; nil until one is asked
	unanswered bool     // of the part of judges: a question had no answer
}

// slot is the place of one interaction of a recording.
type slot struct {
	interaction cassette.Interaction
	// finish, where it is set, ends an exchange whose body nobody has closed.
	finish func()
	filled bool
}

// Open begins a session. In Replay it reads the cassette: an error satisfies errors.Is(err, fs.ErrNotExist) where there is none, and is a [Miss] of class input-files where a file has changed that tools read but no request shows. Every error has an exit code.
//
// In Extend a changed workspace alone does not end a replay: its tools run again and show where the change begins to matter. Any other input is served from the cassette, so that a change of it records the item from its start. A cassette that another checkout or a later release can read is never replaced:
// that it cannot be read here is an error in Extend too.
func Open(config Config) (*Session, error) {
	rules, err := cassette.NewRules(config.Redactions)
	if err != nil {
		return nil, failure.At(failure.Position{File: config.Display}, failure.Input, "%w", err)
	}
	s := &Session{config: config, rules: rules, wall: config.Clock, applied: map[string]bool{}}
	if s.wall == nil {
		s.wall = clock.Wall{}
	}
	s.equal = cassette.NewNormalizer(config.Normalize)
	if config.Mode != Extend && slices.Contains(slices.Collect(maps.Values(config.Drift)), GoLive) {
		return nil, failure.WithHint(failure.New(failure.Input, "drift can go live in mode extend alone, and this is mode %s", config.Mode), "--mode extend, or record --stale")
	}
	start := config.RecordedAt
	switch config.Mode {
	case Replay, Extend:
		opened, err := s.read()
		if err != nil {
			return nil, err
		}
		if opened {
			start = s.tape.file.Header.RecordedAt
			break
		}
		s.live = true
	case Record, Live:
		s.live = true
		if f := config.Frozen; f != nil && config.Mode == Record {
			file, err := s.source()
			if err != nil {
				return nil, err
			}
			file, _ = split(file)
			s.frozen = newTape(file, s.rules, s.equal)
		}
	default:
		return nil, failure.New(failure.Internal, "there is no mode %q of a session", config.Mode)
	}
	if start.IsZero() {
		start = s.wall.Now().Truncate(time.Millisecond)
	}
	s.began = start.UTC()
	s.clock = clock.NewVirtual(s.began)
	return s, nil
}

// source reads the cassette that something is frozen from.
func (s *Session) source() (*cassette.File, error) {
	f := s.config.Frozen
	file, err := cassette.Load(f.Path, f.Display)
	if err != nil {
		return nil, failure.WithHint(failure.At(failure.Position{File: f.Display}, failure.Cassette, "what is frozen comes from repeat 1, which cannot be read: %w", err), "record the dataset first, without --freeze")
	}
	want, h := s.config.Expect, file.Header
	want.Repeat = 1
	if h.Dataset != want.Dataset || h.Item != want.Item || h.Provider != want.Provider || h.Repeat != want.Repeat {
		return nil, failure.At(failure.Position{File: f.Display}, failure.Cassette, "the cassette is of another item: %s of %s on %s, repeat %d", h.Item, h.Dataset, h.Provider, h.Repeat)
	}
	return file, nil
}

// read reads the cassette of a session that serves from it; false where there is none to serve from and the session records.
func (s *Session) read() (bool, error) {
	if s.config.Frozen.agent() {
		file, err := s.source()
		if err != nil {
			return false, err
		}
		if changed := cassette.ChangedInputs(file.Header.Hashes, s.config.Expect.Hashes); len(changed) > 0 {
			return false, s.fail(&Miss{Item: s.config.Expect.Item, Class: cassette.ClassInputFiles, Path: changed[0], Old: known(file.Header.Hashes[changed[0]]), New: known(s.config.Expect.Hashes[changed[0]])})
		}
		file, _ = split(file)
		s.asked = &cassette.File{Header: file.Header}
		s.tape = newTape(file, s.rules, s.equal)
		s.outdated = true // it is written to its own place even where nothing is missed
		return true, nil
	}
	file, err := s.config.File, error(nil)
	if file == nil || s.config.Mode != Replay {
		file, err = cassette.Load(s.config.Path, s.config.Display)
	}
	switch {
	case err != nil && s.config.Mode == Extend && !errors.As(err, new(*cassette.ElsewhereError)):
		return false, nil
	case errors.Is(err, fs.ErrNotExist) && s.putAside():
		return false, failure.WithHint(&secretError{failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "what was recorded held a secret and was put aside%w", noText{err})}, "%s", secretHint)
	case err != nil:
		return false, s.hint(err)
	case s.foreign(file.Header):
		if s.config.Mode == Extend {
			return false, nil
		}
		h := file.Header
		return false, s.hint(failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "the cassette is of another item: %s of %s on %s, repeat %d", h.Item, h.Dataset, h.Provider, h.Repeat))
	}
	changed := cassette.ChangedInputs(file.Header.Hashes, s.config.Expect.Hashes)
	if len(changed) > 0 {
		name := changed[0]
		m := &Miss{Item: s.config.Expect.Item, Class: cassette.ClassInputFiles, Path: name, Old: known(file.Header.Hashes[name]), New: known(s.config.Expect.Hashes[name])}
		if name == cassette.TargetFiles {
			path, old, new := cassette.ChangedFile(file.Header.Hashes[name], s.config.Expect.Hashes[name])
			m.Path, m.Old, m.New = path, known(old), known(new)
		}
		switch s.action(m.Class) {
		case Fail:
			return false, s.fail(m)
		case GoLive:
			if !slices.Equal(changed, []string{"workspace"}) {
				return false, nil
			}
			s.outdated = true
		default:
			s.drifted(m)
		}
	}
	file, s.asked = split(file)
	s.tape = newTape(file, s.rules, s.equal)
	return true, nil
}

// foreign reports that a cassette was recorded for another item, provider or repeat than the one whose place it lies in.
func (s *Session) foreign(h cassette.Header) bool {
	want := s.config.Expect
	return want.Item != "" && (h.Dataset != want.Dataset || h.Item != want.Item || h.Provider != want.Provider || h.Repeat != want.Repeat)
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

// Waiting is the clock for pauses between attempts: while a cassette answers they take no time, else they are waited out. Either way the item's clock moves on by them.
func (s *Session) Waiting() clock.Clock {
	if s.config.Mode == Replay {
		return s.clock
	}
	return waiting{s}
}

// Live reports that the next request goes to the network: always but in Replay, and in Extend from the first miss on.
func (s *Session) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// records reports that what goes to the network is kept.
func (s *Session) records() bool { return s.config.Mode == Record || s.config.Mode == Extend }

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
	Extended State = "extended" // the beginning was kept, its ending is new
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
	// Restart says, in Extend, that the item must be run again in Record: it missed after a call was served that wrote to a world that no longer holds it.
	Restart bool
}

// Close ends the session; it may be called once. complete says that the item came to its end, whatever the verdict.
//
// In Replay it returns the miss, if there was one, and for a complete item a [LeftOverError] for interactions that were not used. In Record it saves the cassette of a complete item; of any other nothing is saved and the old file stays. A recording that holds a secret is not saved: the error names
// the field.
//
// In Extend a session that met no miss ends as a replay, but interactions that a complete item did not use are dropped from the file where they may not be left over. After a miss the session ends as a recording.
func (s *Session) Close(complete bool) (Outcome, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Outcome{}, failure.New(failure.Internal, "the session of %s is closed already", s.config.Display)
	}
	s.closed = true
	s.mu.Unlock()
	switch {
	case s.config.Mode == Replay || s.Miss() != nil || s.judges != nil && s.judges.Miss() != nil:
		return s.closeReplay(complete)
	case s.config.Mode == Extend && !s.Live():
		return s.closeExtend(complete)
	case s.records() && complete:
		return s.save()
	}
	return Outcome{Drift: s.drift}, nil
}

// closeExtend ends a session that met no miss. It writes the cassette only where the present says less than it holds, or its inputs have changed.
func (s *Session) closeExtend(complete bool) (Outcome, error) {
	s.mu.Lock()
	rewrite := complete && (s.outdated || s.judges != nil && s.judges.answered || !s.config.AllowLeftover && len(s.tape.left())+len(s.unasked()) > 0)
	if rewrite {
		for i := range s.tape.used {
			s.tape.used[i] = s.tape.used[i] || s.config.AllowLeftover // what may be left over is left over the next time too
		}
		s.goLive(-1)
	}
	s.mu.Unlock()
	if rewrite {
		return s.save()
	}
	return s.closeReplay(complete)
}

func (s *Session) closeReplay(complete bool) (Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	miss := s.miss
	if s.judges != nil {
		miss = cmp.Or(miss, s.judges.miss)
		s.drift = append(s.drift, s.judges.drift...)
	}
	slices.SortStableFunc(s.drift, func(a, b Drifted) int {
		if fails := b.Action == Fail; fails != (a.Action == Fail) {
			if fails {
				return -1
			}
			return 1
		}
		return a.Miss.Nearest - b.Miss.Nearest
	})
	outcome := Outcome{State: Fresh, Drift: s.drift, Restart: s.restart}
	if miss != nil {
		outcome.State = Stale
		errors.As(miss, &outcome.Miss)
		return outcome, miss
	}
	if !complete {
		return outcome, nil
	}
	outcome.LeftOver = append(s.tape.left(), s.unasked()...)
	err := s.leftOver(outcome.LeftOver)
	if err != nil {
		outcome.State = Stale
	}
	return outcome, err
}

// leftOver is the error for interactions that were not used, nil where there are none or they may be left over.
func (s *Session) leftOver(entries []Entry) error {
	if len(entries) == 0 || s.config.AllowLeftover {
		return nil
	}
	err := failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "%w", &LeftOverError{Entries: entries})
	return s.hint(failure.WithHint(err, "--allow-leftover lets it pass"))
}

func (s *Session) save() (Outcome, error) {
	s.mu.Lock()
	open := slices.Clone(s.slots)
	judged := s.judged()
	s.mu.Unlock()
	open = append(open, judged...)
	for _, slot := range open {
		if slot.finish != nil {
			slot.finish()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range slices.Concat(s.slots, judged) {
		if !slot.filled {
			return Outcome{}, failure.At(failure.Position{File: s.config.Display}, failure.Internal, "not saved: a request or a call is still under way")
		}
	}
	file := &cassette.File{Header: s.config.Expect}
	file.Header.Format, file.Header.Canon = cassette.Format, cassette.Canon
	file.Header.RecordedAt = s.began
	outcome := Outcome{State: Recorded, Drift: s.drift}
	if s.kept > 0 {
		outcome.State = Extended
		s.note(s.tape.file.Header.Rules)
	}
	file.Header.Upstream = s.upstream
	switch {
	case s.kept > 0 && !s.answered:
		file.Header.Upstream, file.Header.Imported = s.tape.file.Header.Upstream, s.tape.file.Header.Imported
	case s.kept > 0:
		file.Header.Upstream = answeredBy(s.tape.file.Header.Upstream, s.upstream)
	}
	for _, i := range s.superseded(s.ordered()) {
		file.Interactions = append(file.Interactions, *i)
	}
	if j := s.judges; j != nil {
		switch {
		case j.answered && len(file.Interactions) == 0:
			file.Header.Upstream = j.upstream
		case j.answered:
			file.Header.Upstream = answeredBy(file.Header.Upstream, j.upstream)
		}
		if j.kept > 0 {
			s.note(s.asked.Header.Rules)
		}
		s.note(slices.Collect(maps.Keys(j.applied)))
		outcome.Drift = append(outcome.Drift, j.drift...)
	}
	for _, slot := range judged {
		file.Interactions = append(file.Interactions, slot.interaction)
	}
	file.Header.Rules = slices.Sorted(maps.Keys(s.applied))
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
	if s.config.Quarantine != "" {
		// What an earlier recording was put aside for is mended. A copy that stays does no harm.
		_ = os.Remove(s.config.Quarantine)
	}
	return outcome, nil
}

// answeredBy names what answered the beginning and the ending of a recording, where it was not the vendor.
func answeredBy(beginning, ending string) string {
	if beginning == ending {
		return beginning
	}
	return cmp.Or(beginning, vendorItself) + ", then " + cmp.Or(ending, vendorItself)
}

// vendorItself stands for an answer of the vendor beside one that is not.
const vendorItself = "the vendor"

func (s *Session) quarantine(file *cassette.File, detector *secret.Detector, found []cassette.Finding) (Outcome, error) {
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf(", and %d more", len(found)-1)
	}
	var err error = &secretError{failure.At(failure.Position{File: s.config.Display}, failure.Cassette, "not saved: %s%s", found[0], more)}
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
	return Outcome{Quarantined: true}, failure.WithHint(err, "%s", secretHint)
}

// secretHint says what helps where a recording holds a secret. To record again alone does not: it would be refused again.
const secretHint = "the recording is in .echoeval/quarantine, redacted; take the secret out of what the item reads, or list it under redact_allow if it is none, and record again"

// secretError says that a recording holds a secret.
type secretError struct{ error }

// Unwrap returns what is said of it.
func (e *secretError) Unwrap() error { return e.error }

// noText is an error that stands within another without a text of its own.
type noText struct{ error }

func (noText) Error() string   { return "" }
func (e noText) Unwrap() error { return e.error }

// putAside reports that a recording of the item was put aside because it held a secret.
func (s *Session) putAside() bool {
	if s.config.Quarantine == "" {
		return false
	}
	info, err := os.Lstat(s.config.Quarantine)
	return err == nil && info.Mode().IsRegular()
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
	Secret     Cause = "secret" // what was recorded held one and was put aside
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
	case errors.As(err, new(*secretError)):
		return Secret
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case failure.CodeOf(err) == failure.Cassette:
		return Unreadable
	}
	return ""
}
