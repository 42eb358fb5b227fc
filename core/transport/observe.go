package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/trace"
)

// Observe records each request as a [trace.Exchange] with source "live", for programs that run agents without a recorder. The event is added when the reply's body has ended, to the recorder that the request's context carries; without one nothing is recorded.
//
// The time to the first text is that of the body's first bytes, and unknown for a reply that is no stream.
func Observe(c clock.Clock, next http.RoundTripper) http.RoundTripper {
	return &observer{clock: c, next: next}
}

type observer struct {
	clock clock.Clock
	next  http.RoundTripper
}

func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	recorder := trace.FromContext(req.Context())
	if recorder == nil {
		return o.next.RoundTrip(req)
	}
	start := o.clock.Now()
	since := func() int64 { return int64(o.clock.Now().Sub(start) / time.Millisecond) }
	address := *req.URL
	address.User = nil
	x := trace.Exchange{Attempt: len(recorder.Exchanges()) + 1, Method: req.Method, URL: address.String(), TTFTMS: -1, Source: "live"}
	add := func(err error) {
		x.DurationMS = since()
		if err != nil && !errors.Is(err, io.EOF) {
			x.Error = err.Error()
		}
		recorder.Add(trace.Event{Kind: trace.KindExchange, Exchange: &x})
	}
	resp, err := o.next.RoundTrip(req)
	if err != nil {
		add(err)
		return nil, err
	}
	x.Status = resp.StatusCode
	observed := &body{ReadCloser: resp.Body, done: add}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		observed.read = func(int) { x.TTFTMS = since(); observed.read = nil }
	}
	resp.Body = observed
	return resp, nil
}
