package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/providers/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// frames is a reply's body in the form that the SDK's reader takes without loss: "data: " and a JSON text on one line for each frame, then "data: [DONE]".
//
// It reads an event stream by the rules of the HTML standard (comments, all three line ends, continued data, a byte order mark) and beyond them what servers are known to send: a last line without an end, frames without an empty line between them.
// A body that is one JSON document, as a blocking endpoint and some errors send it, becomes a stream of one frame. Where the end marker is missing the stream ends in [errNoMarker] instead of io.EOF.
type frames struct {
	src io.ReadCloser

	in      []byte // what was read and not yet used is in[r:w]
	r, w    int
	scanned int // in[r:r+scanned] holds no line end

	out []byte // what the reader has not taken yet is out[taken:]
	// taken counts the bytes of out that were read.
	taken int
	// end is what follows when out is empty; nil while there may be more.
	end error

	form  form
	data  []byte // of the event that is being read
	has   bool   // the event has data
	cr    bool   // the last line ended in CR: an LF next belongs to it
	done  bool   // the end marker was seen
	ended bool   // src has ended
	stray []byte // the beginning of text that is no event stream
	known bool   // a line of an event stream was seen
}

type form uint8

const (
	unknown form = iota
	events
	document
)

// errNoMarker ends a stream whose end marker is missing.
var errNoMarker error = wire.Cut("the stream ended without its end marker")

// errBroken is a body that could not be read to its end.
var errBroken = errors.New("the reply was cut short")

var (
	errFrameTooLong = fmt.Errorf("a frame of the reply is longer than %d MiB", maxFrame>>20)
	errNoFormat     = errors.New("the reply is neither JSON nor an event stream")
)

const (
	maxFrame = 64 << 20
	maxStray = 1 << 10
)

// fields are the beginnings of the lines of an event stream; a colon alone begins a comment.
var fields = [...]string{"data:", "event:", "id:", "retry:", ":"}

const (
	dataPrefix = "data: "
	doneMarker = "[DONE]"
)

func newFrames(src io.ReadCloser) *frames { return &frames{src: src, in: make([]byte, 8<<10)} }

// Read implements [io.Reader].
func (f *frames) Read(p []byte) (int, error) {
	for f.taken == len(f.out) {
		if f.end != nil {
			return 0, f.end
		}
		f.out, f.taken = f.out[:0], 0
		f.fill()
	}
	n := copy(p, f.out[f.taken:])
	f.taken += n
	return n, nil
}

// Close closes the reply's body. After the end marker it first reads what little may follow.
func (f *frames) Close() error { return wire.Close(f.src, f.done && !f.ended) }

// fill reads once and turns what it has into frames.
func (f *frames) fill() {
	if f.w == len(f.in) {
		switch {
		case f.r > 0:
			f.w = copy(f.in, f.in[f.r:f.w])
			f.r = 0
		case len(f.in) >= maxFrame:
			f.end = errFrameTooLong
			return
		default:
			f.in = append(f.in, make([]byte, len(f.in))...)
		}
	}
	n, err := f.src.Read(f.in[f.w:])
	f.w += n
	f.out = slices.Grow(f.out, n)
	f.ended = err == io.EOF // the end of a body is never wrapped
	f.parse()
	switch {
	case f.end != nil || err == nil:
	case f.ended:
		f.finish()
	default:
		f.end = fmt.Errorf("%w: %w", errBroken, err)
	}
}

func (f *frames) parse() {
	if f.form == unknown {
		f.r = f.w - len(bytes.TrimLeft(bytes.TrimPrefix(f.in[f.r:f.w], []byte("\ufeff")), " \t\r\n"))
		switch {
		case f.r == f.w:
			return
		case f.in[f.r] == 0xef && f.w-f.r < 3 && !f.ended:
			return // perhaps the beginning of a byte order mark
		case f.in[f.r] == '{' || f.in[f.r] == '[':
			f.form = document
		default:
			f.form = events
		}
	}
	if f.form == document {
		return
	}
	for !f.done && f.end == nil {
		line, ok := f.line()
		if !ok {
			return
		}
		f.take(line)
	}
}

// line cuts the next whole line off the input.
func (f *frames) line() ([]byte, bool) {
	if f.cr && f.r < f.w {
		f.cr = false
		if f.in[f.r] == '\n' {
			f.r++
		}
	}
	rest := f.in[f.r:f.w]
	end := bytes.IndexByte(rest[f.scanned:], '\n')
	if end >= 0 {
		end += f.scanned
	} else {
		end = len(rest)
	}
	if cr := bytes.IndexByte(rest[f.scanned:end], '\r'); cr >= 0 {
		end = f.scanned + cr
		f.cr = true
	} else if end == len(rest) {
		f.scanned = end
		return nil, false
	}
	f.scanned = 0
	f.r += end + 1
	return rest[:end], true
}

// take handles one line of an event stream.
func (f *frames) take(line []byte) {
	if len(line) == 0 {
		f.dispatch()
		return
	}
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData {
		f.other(line)
		return
	}
	f.known = true
	value = bytes.TrimSpace(value)
	if f.has {
		if len(f.data) > maxFrame {
			f.end = errFrameTooLong
			return
		}
		// A server that forgets the empty line between frames continues none of them.
		if string(value) != doneMarker && !jsontext.Value(f.data).IsValid() {
			f.data = append(append(f.data, ' '), value...)
			return
		}
		f.dispatch()
	}
	f.data = append(f.data, value...)
	f.has = true
}

// other handles a line without data: a comment, an event's name, an id, or text that does not belong into an event stream.
func (f *frames) other(line []byte) {
	for _, field := range fields {
		if bytes.HasPrefix(line, []byte(field)) {
			f.known = true
			return
		}
	}
	if !f.known && len(f.stray) < maxStray {
		f.stray = append(append(f.stray, ' '), line[:min(len(line), maxStray)]...)
	}
}

// dispatch hands the event on as one frame.
func (f *frames) dispatch() {
	f.has = false
	data := bytes.TrimSpace(f.data)
	f.data = f.data[:0]
	switch {
	case len(data) == 0:
	case string(data) == doneMarker:
		f.done = true
		f.end = io.EOF
		f.frame(data)
	default:
		f.frame(data)
	}
}

func (f *frames) frame(data []byte) {
	f.out = append(f.out, dataPrefix...)
	// The SDK's reader takes a frame that begins with exactly {"error": for the end of the stream and reads on for more of it.
	if rest, ok := bytes.CutPrefix(data, []byte(`{"error"`)); ok {
		f.out = append(f.out, `{ "error"`...)
		data = rest
	}
	f.out = append(f.out, data...)
	f.out = append(f.out, '\n')
}

// finish handles the end of the body.
func (f *frames) finish() {
	rest := f.in[f.r:f.w]
	f.r = f.w
	if f.form == document {
		for i, c := range rest {
			if c == '\n' || c == '\r' {
				rest[i] = ' ' // white space: a JSON string holds no raw line end
			}
		}
		if data := bytes.TrimSpace(rest); string(data) != doneMarker {
			f.frame(data)
		}
		f.frame([]byte(doneMarker))
		f.end = io.EOF
		return
	}
	switch {
	case len(rest) == 0:
	case slices.ContainsFunc(fields[:], func(field string) bool { return strings.HasPrefix(field, string(rest)) }):
		f.known = true // a torn field
	default:
		f.take(rest)
	}
	if data := bytes.TrimSpace(f.data); f.has && len(data) < len(doneMarker) && bytes.HasPrefix([]byte(doneMarker), data) {
		f.has = false // a torn end marker
	}
	if f.has {
		f.dispatch()
	}
	switch {
	case f.done || f.end != nil:
	case !f.known && len(f.stray) > 0:
		f.end = fmt.Errorf("%w: %s", errNoFormat, wire.Body(string(f.stray)))
	case f.form == unknown:
		f.end = wire.ErrEmpty
	default:
		f.end = errNoMarker
	}
}
