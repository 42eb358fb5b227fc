package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/providers/wire"
)

// frames cuts a reply's body into the JSON texts that it is made of.
//
// The body is a stream of server-sent events, read by the rules of the HTML standard and beyond them as servers are known to send it (a last line without an end, no empty line between two events, an error as bare JSON); or a JSON array, which is what the vendor streams without alt=sse; or one JSON document, as the blocking endpoint sends it. Which of them it is shows in its first byte.
type frames struct {
	src   *bufio.Reader
	limit *limited

	form    form
	decoder *jsontext.Decoder // of an array or document

	chunk []byte   // what was read of an event stream, up to a line end
	lines [][]byte // of chunk, as far as they were not used
	ended error    // what follows them
	data  []byte   // of the event that is being read
	bare  bool     // the event is JSON that stands there without a field's name
	stray []byte   // the beginning of text that is no event stream
	known bool     // a line of an event stream was seen

	end error
}

type form uint8

const (
	unknown form = iota
	events
	array
	document
)

// errBroken is a body that could not be read to its end.
var errBroken = errors.New("the reply was cut short")

var (
	errFrameTooLong = fmt.Errorf("a frame of the reply is longer than %d MiB", maxFrame>>20)
	errMalformed    = errors.New("the reply is no valid JSON")
	errNoFormat     = errors.New("the reply is neither JSON nor an event stream")
	errTorn         = wire.Cut("the reply ended within a frame")
)

const (
	maxFrame = 64 << 20
	maxStray = 1 << 10
)

// fields are the beginnings of the lines of an event stream; a colon alone begins a comment.
var fields = [...]string{"data:", "event:", "id:", "retry:", ":"}

func newFrames(src io.Reader) *frames {
	l := &limited{src: src, left: maxFrame}
	return &frames{src: bufio.NewReaderSize(l, 8<<10), limit: l}
}

// limited fails where more is read than left, and tells a broken connection from the end.
type limited struct {
	src  io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errFrameTooLong
	}
	n, err := l.src.Read(p[:min(len(p), l.left)])
	l.left -= n
	if err != nil && err != io.EOF { // readers return it bare
		err = fmt.Errorf("%w: %w", errBroken, err)
	}
	return n, err
}

// next returns the next frame, which is valid until the next call and need not be JSON. The end of the body is [io.EOF], an end in the middle of a frame wraps [io.ErrUnexpectedEOF].
func (f *frames) next() ([]byte, error) {
	if f.end != nil {
		return nil, f.end
	}
	f.limit.left = maxFrame
	if f.form == unknown {
		if f.end = f.begin(); f.end != nil {
			return nil, f.end
		}
	}
	var frame []byte
	if f.form == events {
		frame, f.end = f.event()
	} else {
		frame, f.end = f.value()
	}
	if f.end != nil && frame != nil {
		return frame, nil // the end is for the next call
	}
	return frame, f.end
}

// begin finds out what the body is.
func (f *frames) begin() error {
	if mark, _ := f.src.Peek(3); string(mark) == "\ufeff" {
		if _, err := f.src.Discard(len(mark)); err != nil {
			return err
		}
	}
	for {
		c, err := f.src.ReadByte()
		if err == io.EOF { // readers return it bare
			return wire.ErrEmpty
		}
		if err != nil {
			return err
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '[':
			f.form = array
		case '{':
			f.form = document
		default:
			f.form = events
		}
		if err := f.src.UnreadByte(); err != nil {
			return err
		}
		break
	}
	if f.form == events {
		return nil
	}
	f.decoder = jsontext.NewDecoder(f.src, lenient)
	if f.form == array {
		_, err := f.decoder.ReadToken()
		return err
	}
	return nil
}

// value reads the next element of the array, or the document.
func (f *frames) value() ([]byte, error) {
	if f.form == array && f.decoder.PeekKind() == ']' {
		if _, err := f.decoder.ReadToken(); err != nil {
			return nil, jsonEnd(err)
		}
		f.form = document // nothing may follow
	}
	v, err := f.decoder.ReadValue()
	if err != nil {
		return nil, jsonEnd(err)
	}
	return v, nil
}

// jsonEnd tells the end of the body from the end of what came before it.
func jsonEnd(err error) error {
	var broken *jsontext.SyntacticError
	switch {
	case errors.Is(err, errBroken), errors.Is(err, errFrameTooLong):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errTorn
	case errors.As(err, &broken):
		// The decoder's own text quotes the reply, as far as it was read by then.
		return fmt.Errorf("%w: byte %d", errMalformed, broken.ByteOffset)
	}
	return err
}

// event reads lines up to the end of the next event.
func (f *frames) event() ([]byte, error) {
	f.data, f.bare = f.data[:0], false
	for {
		line, err := f.nextLine()
		switch {
		case err != nil:
			return f.last(err)
		case len(line) == 0:
			if len(f.data) > 0 {
				return f.data, nil
			}
		case !f.take(line):
			f.lines = append([][]byte{bytes.Clone(line)}, f.lines...)
			return f.data, nil
		}
	}
}

// take takes a line that is not empty into the event. It returns false where the line begins another one, although no empty line stands before it.
func (f *frames) take(line []byte) bool {
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData {
		for _, field := range fields {
			if bytes.HasPrefix(line, []byte(field)) {
				f.known = true
				return true
			}
		}
		value = line
		if !f.bare && (line[0] != '{' || len(f.data) > 0) {
			if !f.known && len(f.stray) < maxStray {
				f.stray = append(append(f.stray, ' '), line[:min(len(line), maxStray)]...)
			}
			return true
		}
		f.bare = true
	}
	if len(f.data) > 0 && jsontext.Value(f.data).IsValid(lenient) {
		return false
	}
	f.known = true
	if len(f.data) > 0 {
		f.data = append(f.data, ' ')
	}
	f.data = append(f.data, bytes.TrimSpace(value)...)
	return true
}

// last handles the end of an event stream.
func (f *frames) last(end error) ([]byte, error) {
	switch {
	case end != io.EOF: // readers return it bare
		return nil, end
	case len(f.data) > 0 && jsontext.Value(f.data).IsValid(lenient):
		return f.data, io.EOF
	case len(f.data) > 0:
		return nil, errTorn
	case !f.known && len(f.stray) > 0 && !slices.ContainsFunc(fields[:], func(field string) bool { return strings.HasPrefix(field, string(bytes.TrimSpace(f.stray))) }):
		return nil, fmt.Errorf("%w: %s", errNoFormat, wire.Body(string(f.stray)))
	}
	return nil, io.EOF
}

// nextLine returns the next line without its end, which is LF, CR LF or CR. A last line need not have one.
func (f *frames) nextLine() ([]byte, error) {
	for len(f.lines) == 0 {
		if f.ended != nil {
			return nil, f.ended
		}
		f.chunk = f.chunk[:0]
		for f.ended = bufio.ErrBufferFull; f.ended == bufio.ErrBufferFull; { // bufio returns it bare
			var piece []byte
			piece, f.ended = f.src.ReadSlice('\n')
			f.chunk = append(f.chunk, piece...)
		}
		text, whole := bytes.CutSuffix(f.chunk, []byte{'\n'})
		if whole {
			text = bytes.TrimSuffix(text, []byte{'\r'})
		}
		for rest, more := text, whole || len(text) > 0; more; {
			var line []byte
			line, rest, more = bytes.Cut(rest, []byte{'\r'})
			f.lines = append(f.lines, line)
		}
	}
	line := f.lines[0]
	f.lines = f.lines[1:]
	return line, nil
}
