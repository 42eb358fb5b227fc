package emulator

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/clock"
)

// engine is what all wire formats share: the script, and how it is served.
type engine struct {
	plan     *plan
	keys     []string
	maxBody  int64
	realTime bool
	clock    clock.Clock
	server   []string // names the script, so that a recording can say what it was made against
}

// wait sleeps in real time, if the handler does, and reports whether the client is still there.
func (e *engine) wait(ctx context.Context, d time.Duration) bool {
	return !e.realTime || d <= 0 || e.clock.Sleep(ctx, d) == nil
}

// formats lists the wire formats, each with the paths that are its own. A path that is nobody's is answered by the first.
var formats = []struct {
	serves func(path string) bool
	answer func(*engine) http.Handler
}{
	{func(path string) bool { return strings.HasPrefix(path, openAIPath) }, func(e *engine) http.Handler { return &openAI{e} }},
	{func(path string) bool { return strings.HasPrefix(path, responsesPath) }, func(e *engine) http.Handler { return &responses{&openAI{e}} }},
	{func(path string) bool { return strings.HasPrefix(path, embeddingsPath) }, func(e *engine) http.Handler { return &embeddings{&openAI{e}} }},
	{func(path string) bool { return strings.HasPrefix(path, anthropicPath) }, func(e *engine) http.Handler { return &anthropic{e} }},
	{geminiServes, func(e *engine) http.Handler { return &gemini{e} }},
	{func(path string) bool { return strings.HasPrefix(path, bedrockPath) }, func(e *engine) http.Handler { return &bedrock{e} }},
}

// vendors passes each request to the format that its path belongs to.
type vendors struct{ handlers []http.Handler }

func newVendors(e *engine) *vendors {
	v := &vendors{}
	for _, f := range formats {
		v.handlers = append(v.handlers, f.answer(e))
	}
	return v
}

func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i, f := range formats {
		if f.serves(r.URL.Path) {
			v.handlers[i].ServeHTTP(w, r)
			return
		}
	}
	v.handlers[0].ServeHTTP(w, r)
}

// frames gathers the frames of one streamed reply and hands them on: each at once where the stream is paced, else when enough have gathered. It also carries out the cut.
type frames struct {
	e     *engine
	ctx   context.Context
	w     http.ResponseWriter
	cut   *Cut
	pause time.Duration // after each frame
	buf   []byte
	count int // frames that were ended
	sent  int // bytes handed to w
	over  bool
}

const flushAt = 32 << 10

// end ends the frame that was appended to buf.
func (f *frames) end() {
	f.count++
	if c := f.cut; c != nil && (!c.After.Bytes && f.count >= c.After.Count || c.After.Bytes && f.sent+len(f.buf) >= c.After.Count) {
		f.cutShort()
		return
	}
	switch {
	case f.pause > 0:
		f.send()
		if !f.over && (http.NewResponseController(f.w).Flush() != nil || f.e.clock.Sleep(f.ctx, f.pause) != nil) {
			f.over = true
		}
	case len(f.buf) >= flushAt:
		f.send()
	}
}

func (f *frames) send() {
	n, err := f.w.Write(f.buf)
	f.sent += n
	f.buf = f.buf[:0]
	if err != nil {
		f.over = true
	}
}

// cutShort sends what the cut leaves and closes the connection.
func (f *frames) cutShort() {
	if after := f.cut.After; after.Bytes {
		f.buf = f.buf[:min(len(f.buf), max(after.Count-f.sent, 0))]
	}
	f.send()
	f.over = true
	sever(f.w)
}

// sever closes the connection without ending the reply, so that the client sees it cut short.
func sever(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	// What was written so far must get through; whether it did is the client's business.
	_ = control.Flush()
	if conn, _, err := control.Hijack(); err == nil {
		_ = conn.Close()
		return
	}
	// HTTP/2 has no connection to take over; this is net/http's way to reset the stream.
	panic(http.ErrAbortHandler)
}
