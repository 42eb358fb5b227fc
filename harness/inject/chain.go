package inject

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/replay"
)

// way is what a variant saw on its way. It belongs to one run.
type way struct {
	mu   sync.Mutex
	met  int      // how often the fault was met
	next *request // the first that the recording has no answer for
}

// request is one that an agent sent.
type request struct {
	method, url string
	header      http.Header
	body        []byte
}

func (v *Variant) meet() {
	v.way.mu.Lock()
	defer v.way.mu.Unlock()
	v.way.met++
}

// Transport puts the fault between the retries and the replayer of [Variant.File]: it makes what no recording can hold, and looks at the request where the recording ends. For a program under test, which has retries of its own, what is injected is not tried again by ours.
func (v *Variant) Transport(retry func(http.RoundTripper) http.RoundTripper, replayer http.RoundTripper, program bool) http.RoundTripper {
	return cleaned{retry(&transport{variant: v, next: replayer, once: program}), program}
}

// mayRetry is the header of a vendor's reply that has the last word on retries.
const mayRetry = "X-Should-Retry"

// cleaned takes off what marks a reply, above the retries. A program waits in real time, so that it is told a shorter pause in the header that has the first word on it.
type cleaned struct {
	next    http.RoundTripper
	program bool
}

// RoundTrip implements [http.RoundTripper].
func (c cleaned) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	switch {
	case c.program && errors.As(err, new(timeoutError)):
		return nil, timeoutError{}
	case err != nil || resp.Header.Get(marker) == "":
		return resp, err
	case c.program && resp.Header.Get("Retry-After") != "":
		resp.Header.Set("Retry-After-Ms", "1")
	}
	resp.Header.Del(marker)
	resp.Header.Del(mayRetry)
	return resp, nil
}

type transport struct {
	variant *Variant
	next    http.RoundTripper
	once    bool // what is injected must not be tried again here
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, errors.Join(err, req.Body.Close())
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
		again := *req
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req = &again
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		if errors.As(err, new(*replay.Miss)) {
			t.variant.ended(&request{req.Method, req.URL.String(), req.Header, body})
		}
		return nil, err
	}
	if resp.Header.Get(marker) == "" {
		return resp, nil
	}
	t.variant.meet()
	if t.once {
		resp.Header.Set(mayRetry, "false")
	}
	switch t.variant.Fault.Kind {
	case Timeout:
		_, _ = io.Copy(io.Discard, resp.Body) // the item's clock moves on by the wait
		_ = resp.Body.Close()
		return nil, timeoutError{final: t.once}
	case SplitRune:
		resp.Body, resp.ContentLength = &splitting{ReadCloser: resp.Body}, -1
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

func (v *Variant) ended(next *request) {
	v.way.mu.Lock()
	defer v.way.mu.Unlock()
	if v.way.next == nil {
		v.way.next = next
	}
}

// timeoutError is what net/http returns where no reply came in time: it has a method Timeout, and is taken for the end of a context by errors.Is.
type timeoutError struct{ final bool }

// Final reports that our retries must not try again.
func (e timeoutError) Final() bool { return e.final }

func (timeoutError) Error() string   { return "no reply came in time" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
func (timeoutError) Is(err error) bool {
	return err == context.DeadlineExceeded //nolint:errorlint // as in net/http: the question is about this very value
}

// splitting is a body whose reads end within characters.
type splitting struct {
	io.ReadCloser
	rest []byte
	err  error
}

// Read implements [io.Reader].
func (s *splitting) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil {
		buffer := make([]byte, 32<<10)
		n, err := s.ReadCloser.Read(buffer)
		s.rest, s.err = buffer[:n], err
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	end := len(s.rest)
	for i, b := range s.rest {
		if b >= utf8.RuneSelf && utf8.RuneStart(b) {
			end = i + 1 // the rest of the character comes with the next read
			break
		}
	}
	n := copy(p, s.rest[:end])
	s.rest = s.rest[n:]
	return n, nil
}

// Tool stands behind the mocks of a tool, in the place of its recorder: where the conversation has left the recording, recorded has nothing to compare with, and tools that stay in the item's workspace run.
func (v *Variant) Tool(recorded, raw tool.Tool) tool.Tool {
	if v.beyond == 0 || !replay.Stays(raw.Spec()) {
		return recorded
	}
	return &beyond{Tool: recorded, raw: raw, from: v.beyond}
}

type beyond struct {
	tool.Tool
	raw  tool.Tool
	from int
}

// Run implements [tool.Tool].
func (b *beyond) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	if call.Seq >= b.from {
		return b.raw.Run(ctx, call)
	}
	return b.Tool.Run(ctx, call)
}

// Failing stands in front of a tool, mocked or not, and lets the call fail that bears the fault. The wait for a tool in vain is one on the item's clock.
func (v *Variant) Failing(t tool.Tool, c *clock.Virtual) tool.Tool {
	if !v.Fault.OfTool() {
		return t
	}
	return &failing{Tool: t, variant: v, clock: c}
}

type failing struct {
	tool.Tool
	variant *Variant
	clock   *clock.Virtual
}

// Run implements [tool.Tool].
func (f *failing) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	v := f.variant
	if call.Seq != v.Call {
		return f.Tool.Run(ctx, call)
	}
	v.meet()
	if v.Fault.Kind == ToolError {
		return tool.Failed("Error: " + errorText), nil
	}
	f.clock.AdvanceTo(call.At.Add(v.Fault.After))
	return tool.Output{}, fmt.Errorf("no answer within %s: %w", v.Fault.After, timeoutError{})
}
