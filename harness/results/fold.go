package results

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
)

// Fold puts the journal of the run in dir in order: it writes results.jsonl, traces/ and summary.json and then removes the journal. Lines of the plan that never finished become not_run.
//
// The bytes depend on the plan and the lines alone, not on the order in which they finished or on how often the run was taken up again. Memory is 16 bytes a line and the numbers that quantiles need.
//
// Until the journal is removed, the last thing that happens, readers use it alone: a crash or an error at any moment loses nothing, and Fold may simply be called again.
// It is called after [Journal.Close]. Errors of reading and writing have code Internal.
func Fold(dir string, plan Plan) (*Summary, error) {
	path := filepath.Join(dir, JournalFile)
	journal, err := openJournal(path, path)
	if err != nil {
		return nil, failure.WithCode(fmt.Errorf("folding the journal: %w", err), failure.Internal)
	}
	f := &fold{dir: dir, plan: plan, numbers: newAggregate(plan)}
	summary, err := f.write(journal.name, func() (int, iter.Seq[foldLine]) { return len(journal.entries), f.read(journal) })
	err = errors.Join(err, journal.close())
	if err != nil {
		f.discard()
		return nil, failure.WithCode(err, failure.Internal)
	}
	if err := f.publish(); err != nil {
		return nil, writing(dir, err)
	}
	return summary, nil
}

type fold struct {
	dir     string
	plan    Plan
	numbers *aggregate

	results *draft
	summary *draft
	segment *draft
	// The place of the next trace: in segment number segments, which holds kept traces and at bytes.
	segments, kept int
	at             int64
	line           []byte
}

func (f *fold) tracesDir() string { return filepath.Join(f.dir, TracesDir) }

// write writes all files but does not put them in their places. open gives how many lines there are, and the lines in order; name says where they are from.
func (f *fold) write(name string, open func() (int, iter.Seq[foldLine])) (*Summary, error) {
	if err := os.RemoveAll(f.tracesDir() + temporary); err != nil {
		return nil, err
	}
	if err := os.Mkdir(f.tracesDir()+temporary, 0o755); err != nil {
		return nil, writing(f.dir, err)
	}
	var err error
	if f.results, err = newDraft(filepath.Join(f.dir, ResultsFile)); err != nil {
		return nil, writing(f.dir, err)
	}
	if err := f.lines(name, open); err != nil {
		return nil, err
	}
	if err := f.endSegment(); err != nil {
		return nil, err
	}
	if err := f.results.finish(); err != nil {
		return nil, writing(f.results.path, err)
	}
	summary, tally := f.numbers.finish()
	if f.plan.Judge != nil {
		f.plan.Judge(summary, tally)
	}
	data, err := summary.AppendJSON(nil)
	if err != nil {
		return nil, writing(SummaryFile, err)
	}
	if f.summary, err = newDraft(filepath.Join(f.dir, SummaryFile)); err != nil {
		return nil, writing(f.dir, err)
	}
	if _, err := f.summary.Write(append(data, '\n')); err != nil {
		return nil, writing(f.summary.path, err)
	}
	return summary, writing(f.summary.path, f.summary.finish())
}

// lines writes all lines in order: those that there are, and where some lack, those of the plan between them.
func (f *fold) lines(name string, open func() (int, iter.Seq[foldLine])) error {
	have, sorted := open()
	read := readAhead(sorted)
	if have == f.plan.Lines {
		for line := range read {
			if err := f.finished(line); err != nil {
				return err
			}
		}
		return nil
	}
	if f.plan.Each == nil {
		return fmt.Errorf("%s holds %d lines, the plan has %d", name, have, f.plan.Lines)
	}
	next, stop := iter.Pull(read)
	defer stop()
	line, more := next()
	planned := 0
	for p, err := range f.plan.Each {
		if err != nil {
			return err
		}
		planned++
		k := key(p.Line.Index, p.Column, p.Line.Repeat)
		if more && line.key < k {
			break
		}
		if more && line.key == k {
			if err := f.finished(line); err != nil {
				return err
			}
			line, more = next()
			continue
		}
		if err := f.unfinished(&p); err != nil {
			return err
		}
	}
	if more {
		return fmt.Errorf("%s holds a line that the plan does not have: index %d, column %d", name, keyIndex(line.key), keyColumn(line.key)+1)
	}
	if planned != f.plan.Lines {
		return fmt.Errorf("the plan yields %d lines and says that it has %d", planned, f.plan.Lines)
	}
	return nil
}

// foldLine is a finished line, with memory of its own. result has a null trace at its end; trace is nil where none is kept.
type foldLine struct {
	key           uint64
	decoded       eval.Result
	result, trace []byte
	err           error
}

// read reads the journal in order.
func (f *fold) read(journal *indexed) iter.Seq[foldLine] {
	return func(yield func(foldLine) bool) {
		var s scanner
		for e, line := range journal.lines() {
			out := foldLine{key: e.key, err: line.err}
			if out.err == nil {
				if out.decoded, _, out.err = s.decode(line.result); out.err != nil {
					out.err = fmt.Errorf("reading a line of index %d: %w", keyIndex(e.key), out.err)
				}
			}
			keep := line.trace != nil && (f.plan.Traces != KeepFailed || out.decoded.Status != eval.Pass)
			own := make([]byte, 0, len(line.result)+len(line.trace))
			own = append(own, line.result...)
			out.result = own
			if keep {
				own = append(own, line.trace...)
				out.result, out.trace = own[:len(line.result)], own[len(line.result):]
			}
			if !yield(out) || out.err != nil {
				return
			}
		}
	}
}

// finished writes a line, with the place of its trace.
func (f *fold) finished(line foldLine) error {
	if line.err != nil {
		return line.err
	}
	if err := f.add(keyColumn(line.key), &line.decoded); err != nil {
		return err
	}
	place := -1
	if line.trace != nil {
		if err := f.keep(line.trace); err != nil {
			return err
		}
		place = len(line.trace)
	}
	text := line.result
	if place >= 0 {
		f.line = append(f.line[:0], text[:len(text)-len(noTraceEnd)]...)
		f.line = append(f.line, traceKey...)
		f.line = appendPlace(f.line, &eval.TracePlace{Segment: f.segments, Offset: f.at, Length: int64(place)})
		f.line = append(f.line, '}')
		f.at += int64(place) + 1
		text = f.line
	}
	return f.writeLine(text)
}

// add counts a line and shows it to who compares.
func (f *fold) add(column int, r *eval.Result) error {
	if err := f.numbers.add(column, r); err != nil {
		return err
	}
	if f.plan.Look != nil {
		f.plan.Look(r)
	}
	return nil
}

// unfinished writes the line of an item that never finished.
func (f *fold) unfinished(p *Planned) error {
	r := p.Line
	cause := f.plan.NotRun
	if cause == "" {
		cause = eval.CauseInterrupted
	}
	r.V, r.Status, r.Cause = eval.Version, eval.NotRun, &cause
	if f.plan.Budget != nil {
		r.Error = &eval.ErrorInfo{Kind: eval.ErrBudget, Message: f.plan.Budget.String()}
	}
	if err := f.add(p.Column, &r); err != nil {
		return err
	}
	f.line = AppendLine(f.line[:0], &r)
	return f.writeLine(f.line)
}

func (f *fold) writeLine(line []byte) error {
	_, err := f.results.Write(line)
	if err == nil {
		err = f.results.WriteByte('\n')
	}
	return writing(f.results.path, err)
}

// keep writes a trace; its place is segment f.segments, offset f.at.
func (f *fold) keep(trace []byte) error {
	if f.segment == nil || f.kept == SegmentSize {
		if err := f.endSegment(); err != nil {
			return err
		}
		f.segments++
		f.kept, f.at = 0, 0
		path := filepath.Join(f.tracesDir()+temporary, segmentName(f.segments))
		var err error
		if f.segment, err = newDraft(path); err != nil {
			return writing(path, err)
		}
	}
	f.kept++
	_, err := f.segment.Write(trace)
	if err == nil {
		err = f.segment.WriteByte('\n')
	}
	return writing(f.segment.path, err)
}

func segmentName(n int) string { return fmt.Sprintf("%03d.jsonl", n) }

func (f *fold) endSegment() error {
	if f.segment == nil {
		return nil
	}
	d := f.segment
	f.segment = nil
	if err := d.finish(); err != nil {
		return writing(d.path, err)
	}
	return writing(d.path, d.publish())
}

// publish puts what was written in its place and removes the journal.
func (f *fold) publish() error {
	if err := syncDir(f.tracesDir() + temporary); err != nil {
		return err
	}
	if err := os.RemoveAll(f.tracesDir()); err != nil {
		return err
	}
	if err := os.Rename(f.tracesDir()+temporary, f.tracesDir()); err != nil {
		return err
	}
	if err := f.results.publish(); err != nil {
		return err
	}
	if err := f.summary.publish(); err != nil {
		return err
	}
	if err := syncDir(f.dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(f.dir, JournalFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(f.dir)
}

func (f *fold) discard() {
	for _, d := range []*draft{f.results, f.segment, f.summary} {
		if d != nil {
			d.discard()
		}
	}
	_ = os.RemoveAll(f.tracesDir() + temporary) // what stays is removed by the next fold
}
