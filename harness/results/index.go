package results

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/echoeval/echoeval/core/failure"
)

// entry is what is held in memory of a finished item: 16 bytes.
type entry struct {
	key    uint64
	offset int64
}

// indexed is a journal open for reading in the order of the plan.
type indexed struct {
	name    string
	file    *os.File
	entries []entry
	// whole is the length without a last line that was cut off.
	whole int64
}

// openJournal reads a journal through once and sorts its lines by index, column and repeat. Of lines with one key the last counts.
func openJournal(path, name string) (*indexed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	j := &indexed{name: name, file: f}
	j.whole, err = scanJournal(name, f, func(offset int64, _ []byte, parts journalLine) error {
		j.entries = append(j.entries, entry{key: parts.key, offset: offset})
		return nil
	})
	if err != nil {
		_ = f.Close() // only read
		return nil, err
	}
	slices.SortFunc(j.entries, func(a, b entry) int {
		switch {
		case a.key != b.key && a.key < b.key:
			return -1
		case a.key != b.key:
			return 1
		}
		return int(max(-1, min(1, a.offset-b.offset)))
	})
	kept := j.entries[:0]
	for i, e := range j.entries {
		if i+1 == len(j.entries) || j.entries[i+1].key != e.key {
			kept = append(kept, e)
		}
	}
	j.entries = kept
	return j, nil
}

func (j *indexed) close() error { return j.file.Close() }

// How much is read at once: lines that finished side by side lie near each other, so that the next is often there already. Where lines lie far apart, as after a resume, little is read for each.
const (
	readLeast = 8 << 10
	readMost  = 256 << 10
)

// lines yields the lines in order. Each is valid until the next.
func (j *indexed) lines() iter.Seq2[entry, indexedLine] {
	return func(yield func(entry, indexedLine) bool) {
		var window window
		for _, e := range j.entries {
			line, err := window.line(j.file, e.offset)
			var parts journalLine
			if err == nil {
				parts, err = parseJournalLine(line)
			}
			if err != nil {
				err = failure.WithCode(fmt.Errorf("reading %s at byte %d: %w", j.name, e.offset, err), failure.Internal)
			}
			if !yield(e, indexedLine{journalLine: parts, err: err}) || err != nil {
				return
			}
		}
	}
}

type indexedLine struct {
	journalLine
	err error
}

// window is the part of a file that was read last.
type window struct {
	at   int64
	data []byte
	size int
}

// line returns the line that begins at offset, without its newline.
func (w *window) line(r io.ReaderAt, offset int64) ([]byte, error) {
	if offset >= w.at && offset < w.at+int64(len(w.data)) {
		rest := w.data[offset-w.at:]
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			return rest[:end], nil
		}
	}
	if distance := offset - w.at; distance > -readMost && distance < 2*readMost {
		w.size = min(max(2*w.size, readLeast), readMost)
	} else {
		w.size = readLeast
	}
	for size := w.size; ; size *= 4 {
		if cap(w.data) < size {
			w.data = make([]byte, size)
		}
		n, err := r.ReadAt(w.data[:size], offset)
		w.at, w.data = offset, w.data[:n]
		if end := bytes.IndexByte(w.data, '\n'); end >= 0 {
			return w.data[:end], nil
		}
		if err != nil {
			return nil, err
		}
	}
}
