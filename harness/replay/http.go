package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/eventstream"
)

// RoundTripper returns the transport below the retries of a model. In Replay it serves from the cassette and does not use live, which may be nil; else it passes requests on to live, in Extend from the first miss on, and callers see a reply's bytes as they arrive.
//
// Every exchange is added to the [trace.Recorder] of the request's context when its body has ended or was closed; until then the item's clock does not show its whole duration. A miss is added too, as an exchange with an error.
func (s *Session) RoundTripper(live http.RoundTripper) http.RoundTripper {
	return &roundTripper{session: s, live: live}
}

type roundTripper struct {
	session *Session
	live    http.RoundTripper
	judge   string // whom it leads to; "" is the agent's own
}

// exchange is one request on its way.
type exchange struct {
	session  *Session
	judge    string
	recorder *trace.Recorder
	request  cassette.Request // canonical
	trace    trace.Exchange
	start    time.Time // on the item's clock
}

func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	s := rt.session
	body, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	x := &exchange{session: s, judge: rt.judge, start: s.clock.Now()}
	if !s.judge { // what judges say is no part of what the agent did
		x.recorder = trace.FromContext(req.Context())
	}
	var applied []string
	x.request, applied = cassette.Canonical(req.Method, req.URL.String(), req.Header, body, s.rules)
	x.trace = trace.Exchange{Attempt: len(x.recorder.Exchanges()) + 1, Method: x.request.Method, URL: x.request.URL, TTFTMS: -1, Source: "live"}
	for _, rule := range applied {
		if name, is := strings.CutPrefix(rule, "placeholder:"); is {
			x.trace.Leaks = append(x.trace.Leaks, name)
		}
	}
	at, place, err := s.place(x.request, applied)
	switch {
	case err != nil:
		if at < 0 { // the first miss is part of the trace, what is refused after it is not
			x.trace.Source = "served"
			x.end(0, err)
		}
		return nil, err
	case at >= 0:
		return x.serve(req, at)
	}
	return x.record(req, rt.live, body, place)
}

// place says where a request goes: to the interaction of the tape that answers it, or with -1 to the network, where place, if it is set, is its place in the recording. An error is the miss that ended the session; the index is -1 where this request is the one that missed, and 0 after it.
func (s *Session) place(request cassette.Request, applied []string) (at int, place *slot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.miss != nil {
		return 0, nil, s.miss
	}
	var normalized []string
	if s.judge {
		s.live = s.tape == nil
	}
	if !s.live {
		var match cassette.Request
		match, normalized = s.equal.Request(request)
		if at = s.tape.next(cassette.KeyOf(match)); at < 0 {
			at = s.across(match, s.requests, 0)
		}
		if at >= 0 {
			s.keep(at)
			return at, nil, nil
		}
		m := s.tape.explain(match, s.allowed, s.bearable)
		m.Request = s.requests
		if s.judge && m.Nearest == 0 {
			m.Note = "no check asked when it was recorded"
		}
		if err := s.lost(m, -1); err != nil {
			return -1, nil, err
		}
	} else if s.records() {
		_, normalized = s.equal.Request(request)
	}
	if s.records() {
		place = s.reserve(applied, normalized)
	}
	return -1, place, nil
}

// takeBody reads the whole body of a request and closes it.
func takeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	if req.ContentLength <= 0 {
		body, err := io.ReadAll(req.Body)
		return body, errors.Join(err, req.Body.Close())
	}
	body := make([]byte, req.ContentLength)
	_, err := io.ReadFull(req.Body, body)
	return body, errors.Join(err, req.Body.Close())
}

// end moves the item's clock to the end of the exchange and tells the trace.
func (x *exchange) end(duration time.Duration, err error) {
	x.session.clock.AdvanceTo(x.start.Add(duration))
	x.trace.DurationMS = duration.Milliseconds()
	if err != nil {
		x.trace.Error = err.Error()
	}
	x.recorder.Add(trace.Event{Kind: trace.KindExchange, Exchange: &x.trace})
}

// first moves the item's clock to the first bytes of a stream.
func (x *exchange) first(ttft time.Duration) {
	x.trace.TTFTMS = ttft.Milliseconds()
	x.session.clock.AdvanceTo(x.start.Add(ttft))
}

func (x *exchange) serve(req *http.Request, at int) (*http.Response, error) {
	s := x.session
	x.trace.Source = "served"
	i := &s.tape.file.Interactions[at]
	x.trace.Interaction, x.trace.Status = at+1, i.Response.Code
	body := s.rules.Open(i.Response.Body)
	header := make(http.Header, len(i.Response.Headers))
	for name, values := range i.Response.Headers {
		for _, v := range values {
			header[name] = append(header[name], s.rules.Open(v))
		}
	}
	resp := &http.Response{
		Status: i.Response.Status, StatusCode: i.Response.Code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(body)), Request: req,
		Body: &served{exchange: x, ctx: req.Context(), interaction: i, rest: body, stream: isStream(header)},
	}
	if isStream(header) || i.Extra.Partial {
		resp.ContentLength = -1
	}
	return resp, nil
}

func isStream(header http.Header) bool {
	mediaType := header.Get("Content-Type")
	return strings.HasPrefix(mediaType, "text/event-stream") || strings.HasPrefix(mediaType, eventstream.MediaType)
}

// reserve takes the next place in the recording. The caller holds mu.
func (s *Session) reserve(applied ...[]string) *slot {
	x := &slot{}
	s.slots = append(s.slots, x)
	for _, rules := range applied {
		s.note(rules)
	}
	return x
}

// release gives back a place that nothing will fill.
func (s *Session) release(x *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots = slices.DeleteFunc(s.slots, func(y *slot) bool { return y == x })
}

// note keeps the names of rules that changed something. The caller holds mu.
func (s *Session) note(applied []string) {
	for _, rule := range applied {
		s.applied[rule] = true
	}
}

// record sends a request on. Without a place nothing is kept.
func (x *exchange) record(req *http.Request, live http.RoundTripper, body []byte, place *slot) (*http.Response, error) {
	s := x.session
	ctx, waited := transport.WithWait(req.Context())
	out := req.Clone(ctx)
	if req.Body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.ContentLength = int64(len(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	// The transport below asks for compression itself, and then takes it off again; what is stored must be readable.
	out.Header.Del("Accept-Encoding")
	began := s.wall.Now()
	resp, err := live.RoundTrip(out)
	began = began.Add(waited())
	if err != nil {
		s.release(place)
		d := s.round(s.wall.Now().Sub(began))
		if s.config.Reproducible {
			d = 0
		}
		x.end(d, err)
		return nil, err
	}
	x.trace.Status = resp.StatusCode
	r := &recorded{exchange: x, place: place, live: resp.Body, response: resp, began: began, stream: isStream(resp.Header), header: resp.Header.Clone()}
	r.total, r.ttft = serverTiming(resp.Header)
	if place != nil {
		x.trace.Source = "recorded"
		s.mu.Lock()
		s.answered = true
		if server := resp.Header.Get("Server"); strings.HasPrefix(server, cassette.EmulatorServer) {
			s.upstream = server
		}
		place.finish = r.abandon
		s.mu.Unlock()
	}
	resp.Request = req
	resp.Body = r
	return resp, nil
}

// round makes a measured duration one that a cassette holds.
func (s *Session) round(d time.Duration) time.Duration { return max(d, 0).Round(time.Millisecond) }

// serverTiming reads the metrics total and ttft, in milliseconds, of a Server-Timing header (W3C, Server Timing).
func serverTiming(header http.Header) (total, ttft time.Duration) {
	for _, line := range header.Values("Server-Timing") {
		for metric := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(strings.TrimSpace(metric), ";")
			for param := range strings.SplitSeq(params, ";") {
				key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
				d, err := time.ParseDuration(strings.Trim(value, `"`) + "ms")
				if key != "dur" || err != nil || d < 0 {
					continue
				}
				switch strings.TrimSpace(name) {
				case "total":
					total = d.Round(time.Millisecond)
				case "ttft":
					ttft = d.Round(time.Millisecond)
				}
			}
		}
	}
	return total, ttft
}

// ordered returns the interactions in call order: tools by the number of their call, in the places that tools have, as calls that run side by side begin in any order. The caller holds mu.
func (s *Session) ordered() []*cassette.Interaction {
	var all, tools []*cassette.Interaction
	for _, x := range s.slots {
		all = append(all, &x.interaction)
		if x.interaction.Request.Method == cassette.Method {
			tools = append(tools, &x.interaction)
		}
	}
	slices.SortStableFunc(tools, func(a, b *cassette.Interaction) int { return a.Extra.Seq - b.Extra.Seq })
	equal := map[cassette.Key]int{}
	for i, x := range all {
		if x.Request.Method != cassette.Method {
			continue
		}
		all[i], tools = tools[0], tools[1:]
		key := cassette.KeyOf(all[i].Request)
		equal[key]++
		all[i].Extra.Occurrence = equal[key]
	}
	return all
}

// position is the number that an interaction will have in the file. The caller holds mu.
func (s *Session) position(x *slot) int { return slices.Index(s.slots, x) + 1 }

// waiting waits in real time, once the network answers, and moves the item's clock on.
type waiting struct{ s *Session }

func (w waiting) Now() time.Time { return w.s.clock.Now() }

func (w waiting) Sleep(ctx context.Context, d time.Duration) error {
	if !w.s.Live() {
		return w.s.clock.Sleep(ctx, d)
	}
	if err := w.s.wall.Sleep(ctx, d); err != nil {
		return err
	}
	return w.s.clock.Sleep(ctx, d)
}

var _ clock.Clock = waiting{}
