package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/trace"
)

// Run is a run's folder, open for reading. Where the run was killed, or still goes on, it is read from the journal as it stood when it was opened: Incomplete holds, and Summary counts what has not finished as not run.
//
// A Run must not be used from several goroutines at once, and is closed after use.
type Run struct {
	Dir        string
	Manifest   Manifest
	Summary    Summary
	Incomplete bool

	journal *indexed // nil where the run is folded
	scanner scanner
	segment *os.File // the segment that was read last
	number  int
}

// journalSegment is the segment of a trace that still stands in the journal.
const journalSegment = 0

// Open opens the run in dir, as [Resolve] returned it. A folder that is no run's, or of a later format, is an error of code Input; a damaged one of code Internal.
func Open(dir string) (*Run, error) {
	manifest, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Manifest: manifest}
	path := filepath.Join(dir, JournalFile)
	r.journal, err = openJournal(path, path)
	switch {
	case err == nil:
		if err := r.summarise(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		return r, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, failure.WithCode(err, failure.Internal)
	}
	if ok, err := exists(filepath.Join(dir, ResultsFile)); err != nil || !ok {
		if folded, _ := exists(filepath.Join(dir, SummaryFile)); !folded && manifest.Finished == nil && err == nil {
			return nil, failure.WithHint(failure.New(failure.Internal, "run %s was cut off before its first item", manifest.ID), "%s", r.Resume())
		}
		return nil, failure.WithCode(errors.Join(damaged(fmt.Errorf("run %s holds neither %s nor %s: files were lost", manifest.ID, ResultsFile, JournalFile)), err), failure.Internal)
	}
	if err := readJSON(filepath.Join(dir, SummaryFile), &r.Summary, func() int { return r.Summary.V }); err != nil {
		return nil, failure.WithCode(err, failure.Internal)
	}
	return r, nil
}

// Peek reads what a run's folder says of it at a glance: the manifest, and the summary where the run has come to its end, nil where it goes on or was killed. No line is read. Errors are those of [Open].
func Peek(dir string) (Manifest, *Summary, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return m, nil, err
	}
	if open, err := exists(filepath.Join(dir, JournalFile)); open || err != nil {
		return m, nil, err
	}
	if folded, err := exists(filepath.Join(dir, SummaryFile)); !folded {
		return m, nil, err
	}
	s := &Summary{}
	if err := readJSON(filepath.Join(dir, SummaryFile), s, func() int { return s.V }); err != nil {
		return m, nil, failure.WithCode(err, failure.Internal)
	}
	return m, s, nil
}

// summarise makes the summary of a run that has none.
func (r *Run) summarise() error {
	r.Incomplete = true
	numbers := newAggregate(Plan{Head: r.Manifest.Plan})
	for e, line := range r.journal.lines() {
		result, err := r.decode(e, line)
		if err != nil {
			return err
		}
		if err := numbers.add(keyColumn(e.key), &result); err != nil {
			return failure.WithCode(fmt.Errorf("reading %s: %w", r.journal.name, err), failure.Internal)
		}
	}
	summary, _ := numbers.finish()
	r.Summary = *summary
	r.Summary.Complete = false
	selected := r.Manifest.Plan.Selected
	for i := range r.Summary.Providers {
		counts := &r.Summary.Providers[i].Counts
		missing := max(0, selected.Items*selected.Repeat-counts.Total())
		counts.NotRun += missing
		r.Summary.Counts.NotRun += missing
	}
	finished, all := len(r.journal.entries), r.Manifest.Plan.Lines
	text := fmt.Sprintf("%d of %d lines finished; the run was killed or still goes on", finished, all)
	hint := r.Resume()
	r.Summary.Verdict = Verdict{
		Code:    failure.Interrupted,
		Text:    "incomplete: " + text,
		Reasons: []Reason{{Code: failure.Interrupted, Kind: KindInterrupted, Text: text, Hint: &hint}},
	}
	return nil
}

// Resume is the command that goes on with the run. It names the folder of the runs where that was given.
func (r *Run) Resume() string {
	words := []string{"echoeval", "run", "--resume", r.Manifest.ID}
	for _, flag := range r.Manifest.Flags {
		if strings.HasPrefix(flag, "--out=") {
			words = append(words, flag)
		}
	}
	return Command(words...)
}

// Close releases the files.
func (r *Run) Close() error {
	var errs []error
	if r.journal != nil {
		errs = append(errs, r.journal.close())
	}
	if r.segment != nil {
		errs = append(errs, r.segment.Close())
	}
	return errors.Join(errs...)
}

// Lines yields the result lines in order: index, provider, repeat. After an error it ends. Of an incomplete run it yields what has finished.
func (r *Run) Lines() iter.Seq2[eval.Result, error] {
	if r.journal != nil {
		return r.journalLines
	}
	return r.resultLines
}

func (r *Run) journalLines(yield func(eval.Result, error) bool) {
	for e, line := range r.journal.lines() {
		result, err := r.decode(e, line)
		if !yield(result, err) || err != nil {
			return
		}
	}
}

func (r *Run) decode(e entry, line indexedLine) (eval.Result, error) {
	if line.err != nil {
		return eval.Result{}, line.err
	}
	result, _, err := r.scanner.decode(line.result)
	if err != nil {
		return result, failure.WithCode(fmt.Errorf("reading %s at byte %d: %w", r.journal.name, e.offset, err), failure.Internal)
	}
	if line.trace != nil {
		result.Trace = &eval.TracePlace{Segment: journalSegment, Offset: e.offset + int64(line.traceAt), Length: int64(len(line.trace))}
	}
	return result, nil
}

// decode reads a result line in any form, and says whether it is ours. Unknown keys are ignored.
func (s *scanner) decode(data []byte) (result eval.Result, ours bool, err error) {
	if result, ours = s.line(data); !ours {
		if result, err = decodeLine(data); err != nil {
			return result, false, err
		}
	}
	if result.V > eval.Version {
		return result, ours, versionError(result.V)
	}
	if result.V < 1 || result.Index < 1 || result.Repeat < 1 {
		return result, ours, damaged(errors.New("the line is damaged: v, index or repeat is missing"))
	}
	return result, ours, nil
}

func decodeLine(data []byte) (eval.Result, error) {
	var result eval.Result
	if err := json.Unmarshal(data, &result, jsontext.AllowInvalidUTF8(true)); err != nil {
		var head struct {
			V int `json:"v"`
		}
		if json.Unmarshal(data, &head) == nil && head.V > eval.Version {
			return result, versionError(head.V)
		}
		return result, damaged(fmt.Errorf("the line is damaged: %w", err))
	}
	return result, nil
}

// damaged adds what can be done about a file of a run that does not hold what was written.
func damaged(err error) error {
	return failure.WithHint(err, "the files of a run are not edited: copy its folder anew from where it was made, or run it again")
}

func (r *Run) resultLines(yield func(eval.Result, error) bool) {
	for line, err := range r.rawLines() {
		if !yield(line.result, err) {
			return
		}
	}
}

// rawLine is a line of the results with its text, which is valid until the next. ours says that the text has the form that [AppendLine] gives.
type rawLine struct {
	text   []byte
	result eval.Result
	ours   bool
}

// rawLines yields the lines of a folded run.
func (r *Run) rawLines() iter.Seq2[rawLine, error] { return r.eachLine }

func (r *Run) eachLine(yield func(rawLine, error) bool) {
	path := filepath.Join(r.Dir, ResultsFile)
	number := 0
	fail := func(err error) {
		yield(rawLine{}, failure.At(failure.Position{File: path, Line: number}, codeOr(err, failure.Internal), "%w", err))
	}
	f, err := os.Open(path)
	if err != nil {
		yield(rawLine{}, failure.WithCode(fmt.Errorf("reading the results: %w", err), failure.Internal))
		return
	}
	defer f.Close() // only read
	reader := lineReader{r: bufio.NewReaderSize(f, 256<<10)}
	for {
		line, err := reader.next()
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		number++
		if errors.Is(err, io.EOF) {
			fail(errors.New("the file is cut off within a line"))
			return
		}
		if err != nil {
			fail(err)
			return
		}
		out := rawLine{text: line[:len(line)-1]}
		out.result, out.ours, err = r.scanner.decode(out.text)
		if err != nil {
			fail(err)
			return
		}
		if !yield(out, nil) {
			return
		}
	}
	if want := r.Summary.Counts.Total(); number != want {
		fail(fmt.Errorf("the file ends after %d lines, %s counts %d", number, SummaryFile, want))
	}
}

// Trace is what happened in one item: the item as it ran, in JSON, and the events.
type Trace struct {
	Item   jsontext.Value
	Events trace.Trace
}

// Trace reads the trace of a line that [Run.Lines] yielded; ok is false where none was kept.
func (r *Run) Trace(line eval.Result) (t Trace, ok bool, err error) {
	raw, ok, err := r.RawTrace(line)
	if !ok || err != nil {
		return Trace{}, false, err
	}
	bad := func(err error) error {
		return failure.WithCode(damaged(fmt.Errorf("the trace of item %q on %s, repeat %d, is damaged: %w", line.Item, line.Provider, line.Repeat, err)), codeOr(err, failure.Internal))
	}
	var wire struct {
		V      int            `json:"v"`
		Item   jsontext.Value `json:"item"`
		Events jsontext.Value `json:"events"`
	}
	if err := json.Unmarshal(raw, &wire, jsontext.AllowInvalidUTF8(true)); err != nil {
		return Trace{}, false, bad(err)
	}
	if wire.V > trace.Version {
		return Trace{}, false, bad(versionError(wire.V))
	}
	if wire.V < 1 || len(wire.Events) == 0 {
		return Trace{}, false, bad(errors.New("v or events is missing"))
	}
	t.Item = wire.Item
	if t.Events, err = trace.Decode(wire.Events); err != nil {
		return Trace{}, false, bad(err)
	}
	return t, true, nil
}

// RawTrace returns the bytes of a line's trace.
func (r *Run) RawTrace(line eval.Result) (raw []byte, ok bool, err error) {
	place := line.Trace
	if place == nil {
		return nil, false, nil
	}
	bad := func(err error) error {
		return failure.WithCode(fmt.Errorf("reading the trace of item %q on %s, repeat %d: %w", line.Item, line.Provider, line.Repeat, err), failure.Internal)
	}
	file, err := r.traces(place.Segment)
	if err != nil {
		return nil, false, bad(err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, false, bad(err)
	}
	if place.Offset < 0 || place.Length < 1 || place.Offset > info.Size()-place.Length {
		return nil, false, bad(fmt.Errorf("bytes %d to %d are beyond the end of %s", place.Offset, place.Offset+place.Length, file.Name()))
	}
	raw = make([]byte, place.Length)
	if _, err := file.ReadAt(raw, place.Offset); err != nil {
		return nil, false, bad(err)
	}
	if bytes.IndexByte(raw, '\n') >= 0 {
		return nil, false, bad(fmt.Errorf("at byte %d of %s stands another trace", place.Offset, file.Name()))
	}
	return raw, true, nil
}

// traces returns the file that holds a segment and keeps it open.
func (r *Run) traces(segment int) (*os.File, error) {
	if segment == journalSegment && r.journal != nil {
		return r.journal.file, nil
	}
	if r.segment != nil && r.number == segment {
		return r.segment, nil
	}
	f, err := os.Open(filepath.Join(r.Dir, TracesDir, segmentName(segment)))
	if err != nil {
		return nil, err
	}
	if r.segment != nil {
		if err := r.segment.Close(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	r.segment, r.number = f, segment
	return f, nil
}
