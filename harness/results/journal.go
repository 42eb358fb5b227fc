package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
)

// A line of the journal is
//
//	{"v":1,"crc":"1b2c3d4e","index":12,"column":0,"repeat":1,"length":812,"result":{...},"trace":{...}}
//
// The checksum is CRC-32C over everything after it; index, column and repeat are what lines are sorted by; length is that of the result, so that the trace is found without reading either.
const (
	lineStart  = `{"v":1,"crc":"`
	lineSum    = `","index":`
	lineColumn = `,"column":`
	lineRepeat = `,"repeat":`
	lineLength = `,"length":`
	lineResult = `,"result":`
	lineEnd    = "}\n"

	sumAt = len(lineStart)
	sumTo = sumAt + 8
)

// Bounds on the numbers that lines are sorted by, 16 bytes an item in all.
const (
	MaxIndex   = 1<<32 - 1
	MaxColumns = 1 << 16
	MaxRepeat  = 1<<16 - 1
)

var checksums = crc32.MakeTable(crc32.Castagnoli)

// syncEvery is how often the journal is forced to the disk at most. What is not yet forced survives the end of the process, but not that of the machine.
const syncEvery = time.Second

// file is what the journal needs of an *os.File.
type file interface {
	io.WriteCloser
	Sync() error
}

// Journal is written while a run goes on: one line per finished item, in order of completion. It is safe for concurrent use.
type Journal struct {
	clock clock.Clock
	path  string

	mu      sync.Mutex
	file    file
	written bool // since the last sync
	synced  time.Time
	err     error // the first failed write; nothing is written after it
}

// Create starts the journal of the run in dir, a folder that [NewFolder] made. A run that has one already is an error: it is gone on with by [Resume].
func Create(dir string, c clock.Clock) (*Journal, error) {
	path := filepath.Join(dir, JournalFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, failure.WithCode(fmt.Errorf("starting the journal: %w", err), failure.Internal)
	}
	return newJournal(path, f, c), nil
}

func newJournal(path string, f file, c clock.Clock) *Journal {
	return &Journal{clock: c, path: path, file: f, synced: c.Now()}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// keepBuffer bounds the buffers that are kept for the next line; a rare huge trace does not stay in memory.
const keepBuffer = 1 << 20

// Append adds a finished item with its trace, one JSON value {"v":1,"item":{...},"events":[...]} or nil for none, in one write. Column is the provider's place in the plan, from 0. Neither argument is kept.
//
// The line's own trace place is ignored: [Fold] fills it in. A line whose key was written before takes its place.
// A write that fails or falls short is an error with code Internal, and every later Append returns it again; what was written before stays readable.
func (j *Journal) Append(line eval.Result, trace []byte, column int) error {
	buffer := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= keepBuffer {
			buffers.Put(buffer)
		}
	}()
	data, err := appendJournalLine((*buffer)[:0], &line, trace, column)
	if err != nil {
		return err
	}
	*buffer = data
	due, err := j.write(data)
	if err != nil || !due {
		return err
	}
	return j.sync()
}

// write adds the line, and says whether it is time to force the journal to the disk.
func (j *Journal) write(data []byte) (due bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return false, j.err
	}
	n, err := j.file.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err != nil {
		j.fail(err)
		return false, j.err
	}
	j.written = true
	now := j.clock.Now()
	if now.Sub(j.synced) < syncEvery {
		return false, nil
	}
	j.synced, j.written = now, false
	return true, nil
}

// sync forces the journal to the disk. Other lines may be written meanwhile.
func (j *Journal) sync() error {
	err := j.file.Sync()
	if err == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail(err)
	return j.err
}

func (j *Journal) fail(err error) {
	if j.err != nil {
		return
	}
	err = fmt.Errorf("writing %s: %w", j.path, err)
	j.err = failure.WithHint(failure.WithCode(err, failure.Internal), "make room or choose another --out; what is finished is kept, and --resume goes on from it")
}

// Close forces the journal to the disk and closes it. It must be called once, after the last Append has returned.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.written {
		if err := j.file.Sync(); err != nil {
			j.fail(err)
		}
	}
	if err := j.file.Close(); err != nil {
		j.fail(err)
	}
	return j.err
}

func appendJournalLine(dst []byte, r *eval.Result, trace []byte, column int) ([]byte, error) {
	if r.Index < 1 || r.Index > MaxIndex || r.Repeat < 1 || r.Repeat > MaxRepeat || column < 0 || column >= MaxColumns {
		return dst, failure.New(failure.Internal, "item %q: index %d, column %d or repeat %d is out of bounds", r.Item, r.Index, column, r.Repeat)
	}
	if bytes.IndexByte(trace, '\n') >= 0 {
		compact := jsontext.Value(bytes.Clone(trace))
		if err := compact.Compact(jsontext.AllowInvalidUTF8(true)); err != nil {
			return dst, failure.WithCode(fmt.Errorf("item %q: the trace is no JSON value: %w", r.Item, err), failure.Internal)
		}
		trace = compact
	}
	if r.Trace != nil {
		placeless := *r
		placeless.Trace = nil
		r = &placeless
	}
	dst = append(dst, lineStart+"00000000"+lineSum...)
	dst = appendInt(dst, r.Index)
	dst = append(dst, lineColumn...)
	dst = appendInt(dst, column)
	dst = append(dst, lineRepeat...)
	dst = appendInt(dst, r.Repeat)
	dst = append(dst, lineLength...)
	// The length stands before what it measures, in as many digits as it needs: the result is written first and moved.
	at := len(dst)
	dst = AppendLine(dst, r)
	var digits [20]byte
	length := strconv.AppendInt(digits[:0], int64(len(dst)-at), 10)
	head := len(length) + len(lineResult)
	dst = append(dst, make([]byte, head)...)
	copy(dst[at+head:], dst[at:len(dst)-head])
	copy(dst[at:], length)
	copy(dst[at+len(length):], lineResult)
	dst = append(dst, traceKey...)
	if len(trace) == 0 {
		dst = append(dst, null...)
	} else {
		dst = append(dst, trace...)
	}
	dst = append(dst, lineEnd...)
	const hex = "0123456789abcdef"
	sum := crc32.Checksum(dst[sumTo:len(dst)-1], checksums)
	for i := range 8 {
		dst[sumAt+i] = hex[sum>>(28-4*i)&15]
	}
	return dst, nil
}

// journalLine is a line of the journal. Result and trace are parts of the line that was read; trace is nil where there is none.
type journalLine struct {
	key    uint64
	result []byte
	trace  []byte
	// traceAt is the offset of the trace within the line.
	traceAt int
}

// key packs what lines are sorted by: index, column, repeat.
func key(index, column, repeat int) uint64 {
	return uint64(index)<<32 | uint64(column)<<16 | uint64(repeat)
}

func keyIndex(k uint64) int  { return int(k >> 32) }
func keyColumn(k uint64) int { return int(k >> 16 & 0xffff) }

var errDamaged = errors.New("the line is damaged: its checksum does not match")

// parseJournalLine takes a line without its newline apart.
func parseJournalLine(line []byte) (journalLine, error) {
	if len(line) < sumTo || string(line[:sumAt]) != lineStart {
		return journalLine{}, journalVersion(line)
	}
	sum, err := strconv.ParseUint(string(line[sumAt:sumTo]), 16, 32)
	if err != nil || crc32.Checksum(line[sumTo:], checksums) != uint32(sum) {
		return journalLine{}, errDamaged
	}
	// From here on the line is what was written; what does not fit is a line that this version did not write.
	rest := line[sumTo:]
	number := func(before string) int {
		after, ok := bytes.CutPrefix(rest, []byte(before))
		digits := 0
		for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
			digits++
		}
		n, numberErr := strconv.Atoi(string(after[:digits]))
		if !ok || numberErr != nil {
			err = errDamaged
		}
		rest = after[digits:]
		return n
	}
	index, column, repeat, length := number(lineSum), number(lineColumn), number(lineRepeat), number(lineLength)
	rest, ok := bytes.CutPrefix(rest, []byte(lineResult))
	if err != nil || !ok || length > len(rest) {
		return journalLine{}, errDamaged
	}
	out := journalLine{key: key(index, column, repeat), result: rest[:length]}
	trace, ok := bytes.CutPrefix(rest[length:], []byte(traceKey))
	trace, closed := bytes.CutSuffix(trace, []byte("}"))
	if !ok || !closed {
		return journalLine{}, errDamaged
	}
	if string(trace) != null {
		out.trace, out.traceAt = trace, len(line)-1-len(trace)
	}
	return out, nil
}

// journalVersion says why a line does not begin as a line of this version does.
func journalVersion(line []byte) error {
	var head struct {
		V int `json:"v"`
	}
	if json.Unmarshal(line, &head) == nil && head.V > Version {
		return versionError(head.V)
	}
	return errDamaged
}

func versionError(v int) error {
	return failure.WithHint(failure.New(failure.Input, "format version %d was written by a later echoeval; this one reads up to %d", v, Version), "install the echoeval that wrote it; `echoeval version --json` prints the formats")
}

// scanJournal reads a journal line by line. Each line and its parts are valid until the next. A last line without its end was cut off when the writer died and is left out; whole is the length of what comes before it.
// Any other damage is an error with the line's number.
func scanJournal(name string, r io.Reader, visit func(offset int64, line []byte, parts journalLine) error) (whole int64, err error) {
	reader := lineReader{r: bufio.NewReaderSize(r, 1<<20)}
	for number := 1; ; number++ {
		line, err := reader.next()
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, failure.WithCode(fmt.Errorf("reading %s: %w", name, err), failure.Internal)
		}
		parts, err := parseJournalLine(line[:len(line)-1])
		if err == nil {
			err = visit(whole, line, parts)
		}
		if err != nil {
			return whole, failure.At(failure.Position{File: name, Line: number}, codeOr(err, failure.Internal), "%w", err)
		}
		whole += int64(len(line))
	}
}

func codeOr(err error, code failure.Code) failure.Code {
	if c := failure.CodeOf(err); c != failure.OK {
		return c
	}
	return code
}

// lineReader reads lines of any length.
type lineReader struct {
	r    *bufio.Reader
	long []byte
}

// next returns the next line with its newline, valid until it is called again. At the end it returns what follows the last newline, with io.EOF.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	return l.long, err
}
