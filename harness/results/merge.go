package results

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/echoeval/echoeval/core/ahead"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
)

// Merge joins finished runs that have a part each of the plan's lines: it writes results.jsonl, traces/ and summary.json into dir, which holds no run yet. Lines that ran in no part become not_run; one that ran in two is an error of code Input.
//
// The bytes are those of [Fold] over a journal of all lines. The parts are read side by side, each on a processor of its own where there are so many, a few lines of each at a time. Nothing is in its place before all is written, so that a crash leaves no half of a run; it may simply be done again.
func Merge(dir string, parts []*Run, plan Plan) (*Summary, error) {
	f := &fold{dir: dir, plan: plan, numbers: newAggregate(plan)}
	columns := map[string]int{}
	for i, p := range plan.Providers {
		columns[p.ID] = i
	}
	summary, err := f.write("the parts", func() (int, iter.Seq[foldLine]) {
		have := 0
		var sorted []iter.Seq[foldLine]
		for _, part := range parts {
			have += part.Summary.Counts.Total() - part.Summary.Counts.NotRun
			sorted = append(sorted, readAhead(part.partLines(columns, plan.Traces)))
		}
		return have, merged(sorted)
	})
	if err != nil {
		f.discard()
		return nil, failure.WithCode(err, codeOr(err, failure.Internal))
	}
	if err := f.publish(); err != nil {
		return nil, writing(dir, err)
	}
	return summary, nil
}

// partLines yields the lines of a finished run that ran, as a fold takes them.
func (r *Run) partLines(columns map[string]int, traces Keep) iter.Seq[foldLine] {
	return func(yield func(foldLine) bool) {
		for line, err := range r.rawLines() {
			out := foldLine{decoded: line.result, err: err}
			if err == nil {
				if line.result.Status == eval.NotRun {
					continue // the fold makes it again, as what is missing
				}
				out.err = out.fill(r, line, columns, traces)
			}
			if !yield(out) || out.err != nil {
				return
			}
		}
	}
}

// fill sets key, result and trace of a line.
func (l *foldLine) fill(r *Run, line rawLine, columns map[string]int, traces Keep) error {
	column, ok := columns[l.decoded.Provider]
	if !ok {
		return fmt.Errorf("the line of item %q has a provider that the plan does not have: %q", l.decoded.Item, l.decoded.Provider)
	}
	l.key = key(l.decoded.Index, column, l.decoded.Repeat)
	if l.decoded.Trace != nil && (traces != KeepFailed || l.decoded.Status != eval.Pass) {
		var err error
		if l.trace, _, err = r.RawTrace(l.decoded); err != nil {
			return err
		}
	}
	l.decoded.Trace = nil
	// A line in our form ends with the place of its trace, and no text in it holds the key unescaped.
	if at := bytes.LastIndex(line.text, []byte(traceKey)); line.ours && at >= 0 {
		l.result = append(append(make([]byte, 0, at+len(noTraceEnd)), line.text[:at]...), noTraceEnd...)
	} else {
		l.result = AppendLine(nil, &l.decoded)
	}
	return nil
}

// merged yields the lines of several sorted sequences in order, and ends with a line that holds an error.
func merged(sorted []iter.Seq[foldLine]) iter.Seq[foldLine] {
	return func(yield func(foldLine) bool) {
		type source struct {
			next func() (foldLine, bool)
			line foldLine
		}
		var sources []*source
		for _, seq := range sorted {
			next, stop := iter.Pull(seq)
			defer stop()
			if line, ok := next(); ok {
				sources = append(sources, &source{next, line})
			}
		}
		for len(sources) > 0 {
			first := 0
			for i, s := range sources {
				if s.line.err != nil || s.line.key < sources[first].line.key {
					first = i
				}
				if i > first && s.line.err == nil && s.line.key == sources[first].line.key {
					d := s.line.decoded
					yield(foldLine{err: failure.New(failure.Input, "item %q on %s, repeat %d, ran in two of the parts", d.Item, d.Provider, d.Repeat)})
					return
				}
			}
			line := sources[first].line
			if !yield(line) || line.err != nil {
				return
			}
			var ok bool
			if sources[first].line, ok = sources[first].next(); !ok {
				sources = append(sources[:first], sources[first+1:]...)
			}
		}
	}
}

const few = 8 // lines that change hands at once; their traces may be long

func readAhead(lines iter.Seq[foldLine]) iter.Seq[foldLine] { return ahead.Seq(lines, few) }
