package replay

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/harness/cassette"
)

// served is the body of a reply from the cassette. A stream comes one frame at a time, so that a reader sees what it saw live; a partial body ends as a cut.
type served struct {
	*exchange
	ctx         context.Context
	interaction *cassette.Interaction
	stream      bool

	mu    sync.Mutex
	rest  string
	begun bool
	ended bool
}

func (b *served) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended && b.rest != "" {
		return 0, http.ErrBodyReadAfterClose
	}
	if err := context.Cause(b.ctx); err != nil {
		b.finish(err)
		return 0, err
	}
	if b.rest == "" {
		err := io.EOF
		if b.interaction.Extra.Partial {
			err = io.ErrUnexpectedEOF
		}
		b.finish(cut(err))
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.stream && !b.begun {
		b.first(b.interaction.Extra.TTFT)
	}
	b.begun = true
	frame := b.rest
	if b.stream {
		frame = frame[:frameEnd(frame)]
	}
	n := copy(p, frame)
	b.rest = b.rest[n:]
	return n, nil
}

// Close ends the exchange, read or not.
func (b *served) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finish(nil)
	return nil
}

func (b *served) finish(err error) {
	if b.ended {
		return
	}
	b.ended = true
	b.end(b.interaction.Response.Duration, err)
}

// cut drops the error that is a regular end.
func cut(err error) error {
	if err == io.EOF { // readers return it bare
		return nil
	}
	return err
}

// frameEnd returns the length of the first frame of a stream of events: up to and with its blank line.
func frameEnd(s string) int {
	end := len(s)
	for _, blank := range []string{"\n\n", "\r\n\r\n"} {
		if i := strings.Index(s[:end], blank); i >= 0 {
			end = i + len(blank)
		}
	}
	return end
}

// terminals are the lines by which vendors say that a stream is whole. A reader may stop there without waiting for the end of the body.
var terminals = []string{"data: [DONE]", "data:[DONE]", "event: message_stop", "event:message_stop"}

// The drain after a terminal line, or after a short body whose end its reader did not look for.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// recorded is the body of a reply from the network. It hands on every byte as it arrives and keeps a copy.
type recorded struct {
	*exchange
	place    *slot // nil keeps nothing
	live     io.ReadCloser
	response *http.Response
	header   http.Header
	began    time.Time // on the wall
	stream   bool
	// What the server says of its own time.
	total, ttft time.Duration

	mu      sync.Mutex
	data    []byte // all of it, or in Live the last few bytes
	begun   bool
	ended   bool
	reading int
}

// tail is enough of a stream to hold its terminal line.
const tail = 256

func (b *recorded) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.reading++
	b.mu.Unlock()
	n, err := b.live.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading--
	if b.ended {
		return n, err
	}
	if n > 0 {
		if !b.begun && b.stream {
			b.first(b.toFirst())
		}
		b.begun = true
		b.keep(p[:n])
	}
	if err != nil {
		b.finish(err, err == io.EOF) // readers return it bare
	}
	return n, err
}

func (b *recorded) keep(p []byte) {
	if b.place != nil {
		b.data = append(b.data, p...)
		return
	}
	if len(p) >= tail {
		b.data = b.data[:0]
	}
	b.data = append(b.data, p[max(0, len(p)-tail):]...)
	if over := len(b.data) - tail; over > 0 {
		b.data = append(b.data[:0], b.data[over:]...)
	}
}

func (b *recorded) toFirst() time.Duration {
	if b.session.config.Reproducible {
		return b.ttft
	}
	return b.session.round(b.session.wall.Now().Sub(b.began))
}

// Close ends the exchange. A body that was not read to its end is whole if its terminal line was seen or, where it is no stream, if little of it is missing; what is missing is read for a moment.
func (b *recorded) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		whole := b.stream && terminal(b.data)
		if (whole || !b.stream) && b.reading == 0 {
			ended := b.drain()
			whole = whole || ended
		}
		b.finish(nil, whole)
	}
	return b.live.Close()
}

// drain reads on for a short while and reports whether the body ended.
func (b *recorded) drain() bool {
	timer := time.AfterFunc(drainTime, func() { _ = b.live.Close() })
	defer timer.Stop()
	rest, err := io.ReadAll(io.LimitReader(b.live, drainBytes))
	b.keep(rest)
	return err == nil && len(rest) < drainBytes
}

func terminal(data []byte) bool {
	for _, t := range terminals {
		at := bytes.LastIndex(data, []byte(t))
		if at < 0 {
			continue
		}
		rest := bytes.TrimLeft(data[at+len(t):], " ")
		if (at == 0 || data[at-1] == '\n') && (len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r') {
			return true
		}
	}
	return false
}

// abandon ends an exchange whose body its reader has forgotten.
func (b *recorded) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.finish(nil, false)
	}
}

// finish fills the place in the recording. The caller holds mu.
func (b *recorded) finish(err error, whole bool) {
	b.ended = true
	s := b.session
	duration := s.round(s.wall.Now().Sub(b.began))
	if s.config.Reproducible {
		duration = max(b.total, b.ttft)
	}
	if b.place != nil {
		header, body, applied := s.rules.Seal(b.response.StatusCode, b.header, string(b.data))
		x := cassette.Interaction{
			Request:  b.request,
			Response: cassette.Response{Body: body, Headers: header, Status: status(b.response), Code: b.response.StatusCode, Duration: duration},
			Extra:    cassette.Extra{Partial: !whole, Judge: b.judge},
		}
		if b.trace.TTFTMS > 0 {
			x.Extra.TTFT = time.Duration(b.trace.TTFTMS) * time.Millisecond
		}
		s.mu.Lock()
		b.place.interaction, b.place.filled = x, true
		b.trace.Interaction = s.position(b.place)
		s.note(applied)
		s.mu.Unlock()
	}
	b.end(duration, cut(err))
}

func status(r *http.Response) string {
	if r.Status != "" {
		return r.Status
	}
	return strconv.Itoa(r.StatusCode) + " " + http.StatusText(r.StatusCode)
}
