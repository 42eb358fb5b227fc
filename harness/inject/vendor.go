package inject

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/emulator"
)

// vendors holds requests to what the vendors take, as the emulator does.
var vendors = sync.OnceValue(func() http.Handler {
	said := "."
	handler, err := emulator.New(emulator.Script{Version: 1, Name: "faults", Default: &emulator.Conversation{Steps: []emulator.Step{{Text: &said}}}}, emulator.Options{MaxBody: 128 << 20})
	if err != nil {
		return http.NotFoundHandler() // the script is the one above
	}
	return handler
})

// refusalOf is what the vendor says to a request that it refuses, "" where it takes it. Where it would refuse what was recorded too, nothing is known: the emulator does not know all that vendors take.
func refusalOf(recorded cassette.Request, next *request) string {
	said := ask(next)
	if said == "" {
		return ""
	}
	header := recorded.Headers.Clone()
	if header == nil {
		header = http.Header{}
	}
	if ask(&request{recorded.Method, recorded.URL, header, []byte(recorded.Body)}) != "" {
		return ""
	}
	return said
}

// ask gives the refusal of a request, "" for none. What the emulator says for itself is none of the vendor's.
func ask(r *request) string {
	u, err := url.Parse(r.url)
	if err != nil {
		return err.Error()
	}
	req := &http.Request{
		Method: r.method, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header.Clone(), Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body)),
	}
	for name, value := range map[string]string{"Authorization": "Bearer placeholder", "X-Api-Key": "placeholder", "X-Goog-Api-Key": "placeholder"} {
		if req.Header.Get(name) == "" { // a recorded request has none
			req.Header.Set(name, value)
		}
	}
	w := &answer{header: http.Header{}, status: http.StatusOK}
	vendors().ServeHTTP(w, req)
	body := w.body.String()
	if w.status < http.StatusBadRequest || strings.Contains(strings.ToLower(body), "emulator_") {
		return ""
	}
	return strings.Join(strings.Fields(body), " ")
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// Flush implements [http.Flusher].
func (a *answer) Flush() {}
