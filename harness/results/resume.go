package results

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
)

// Finished tells which lines of a run have their verdict already. It holds eight bytes a line.
type Finished struct {
	keys []uint64
}

// Len is how many lines have their verdict.
func (d *Finished) Len() int { return len(d.keys) }

// Has reports whether the line of that index and repeat, counted from 1, and column, counted from 0, has its verdict.
func (d *Finished) Has(index, column, repeat int) bool {
	_, ok := slices.BinarySearch(d.keys, key(index, column, repeat))
	return ok
}

// Resume opens the journal of an earlier run in dir to go on with it, and tells what need not be run again: every line but those with status error or not_run.
//
// A journal that was cut off loses the line that was being written. A run that was folded gets a journal again, with all that its results and traces hold; the folded files stay until the next [Fold] and count no more.
func Resume(dir string, c clock.Clock) (*Journal, *Finished, error) {
	path := filepath.Join(dir, JournalFile)
	present, err := exists(path)
	if err != nil {
		return nil, nil, failure.WithCode(fmt.Errorf("resuming the run: %w", err), failure.Internal)
	}
	if !present {
		begun, err := exists(filepath.Join(dir, ResultsFile))
		if err != nil {
			return nil, nil, failure.WithCode(fmt.Errorf("resuming the run: %w", err), failure.Internal)
		}
		if manifest, err := ReadManifest(dir); !begun && err == nil && manifest.Finished == nil {
			// It was cut off before its first line.
			journal, err := Create(dir, c)
			return journal, &Finished{}, err
		}
		if err := unfold(dir); err != nil {
			return nil, nil, failure.WithCode(err, failure.Internal)
		}
	}
	journal, err := openJournal(path, path)
	if err != nil {
		return nil, nil, failure.WithCode(fmt.Errorf("resuming the run: %w", err), failure.Internal)
	}
	done := &Finished{keys: make([]uint64, 0, len(journal.entries))}
	for e, line := range journal.lines() {
		var result struct {
			Status eval.Status `json:"status"`
		}
		err := line.err
		if err == nil {
			err = json.Unmarshal(line.result, &result)
		}
		if err != nil {
			return nil, nil, failure.WithCode(errors.Join(err, journal.close()), failure.Internal)
		}
		if result.Status != eval.Error && result.Status != eval.NotRun {
			done.keys = append(done.keys, e.key)
		}
	}
	if err := journal.close(); err != nil {
		return nil, nil, failure.WithCode(err, failure.Internal)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, writing(path, err)
	}
	if err := f.Truncate(journal.whole); err != nil {
		return nil, nil, writing(path, errors.Join(err, f.Close()))
	}
	return newJournal(path, f, c), done, nil
}

// unfold writes a journal from results and traces. Lines that never ran are left out.
func unfold(dir string) (err error) {
	run, err := Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	columns := map[string]int{}
	for i, p := range run.Summary.Providers {
		columns[p.ID] = i
	}
	path := filepath.Join(dir, JournalFile)
	out, err := newDraft(path)
	if err != nil {
		return writing(path, err)
	}
	if err := unfoldLines(run, columns, out.Writer); err != nil {
		out.discard()
		return err
	}
	if err := out.finish(); err != nil {
		out.discard()
		return writing(path, err)
	}
	if err := out.publish(); err != nil {
		return writing(path, err)
	}
	return writing(path, syncDir(dir))
}

func unfoldLines(run *Run, columns map[string]int, out *bufio.Writer) error {
	var buffer []byte
	for result, err := range run.Lines() {
		if err != nil {
			return err
		}
		if result.Status == eval.NotRun {
			continue
		}
		column, ok := columns[result.Provider]
		if !ok {
			return fmt.Errorf("the line of item %q has a provider that %s does not have: %q", result.Item, SummaryFile, result.Provider)
		}
		raw, _, err := run.RawTrace(result)
		if err != nil {
			return err
		}
		if buffer, err = appendJournalLine(buffer[:0], &result, raw, column); err != nil {
			return err
		}
		if _, err := out.Write(buffer); err != nil {
			return writing(JournalFile, err)
		}
	}
	return nil
}
