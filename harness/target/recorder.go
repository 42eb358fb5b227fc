package target

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
)

// Item is what the recorder needs to know of the item under way.
type Item struct {
	// Transport builds the round tripper of the item over the one that dials: the recorder or replayer, with its retries.
	Transport func(live http.RoundTripper) http.RoundTripper
	// Clock is the item's.
	Clock clock.Clock
	// Reserve is asked before a request to a model of that vendor is sent; size is the request's in bytes, most how many tokens the answer may have, 0 where it does not say. The function that it returns is told the usage, nil where the answer did not say. An error refuses the request. nil asks nobody.
	Reserve func(ctx context.Context, vendor, model string, size, most int) (settle func(*conversation.Usage), err error)
	// Wrap puts recorder, replayer and mocks around a tool that the program runs itself.
	Wrap func(tool.Tool) tool.Tool
	// Retries leaves it to the program to try again: its clients are not told that it is of no use, and where no reply came the connection breaks.
	Retries bool
}

// Exchange is one request that a program made and what it was answered. Attempts are the events of the requests that it took, in order.
type Exchange struct {
	Service  Service
	Method   string
	Path     string // of the request
	Request  []byte
	Status   int // 0 where no answer came
	Stream   bool
	Reply    []byte
	Attempts []trace.Exchange
	// Err is why there was no answer, or none that is whole.
	Err error

	arrived int
}

// asked reports a request that a model must answer.
func (x *Exchange) asked() bool { return x.Service.Model && x.Method == http.MethodPost }

// Bounds of what passes the recorder.
const (
	maxRequest = 64 << 20
	maxKept    = 64 << 20 // of a reply that is read for the trace
)

// drain is how long requests that are under way when a program has answered may take to their end.
const drain = 2 * time.Second

// recorder is the listener of one program.
type recorder struct {
	routes   []route
	live     func(Service) (http.RoundTripper, error) // nil where nothing may be dialled
	listener net.Listener
	server   *http.Server
	served   chan struct{}

	mu   sync.Mutex
	item *underWay // nil between items
}

// underWay is the item whose requests the recorder takes.
type underWay struct {
	Item
	running sync.WaitGroup // of wrapped tools

	mu sync.Mutex
	// ctx is that of the turn; it has ended between turns. lost is called once a turn with the first error that no answer of the program can mend.
	ctx       context.Context
	cancel    context.CancelCauseFunc
	lost      func(error)
	open      int
	quiet     chan struct{} // closed when nothing is open; nil while nobody waits
	arrived   int           // requests of the item
	answered  bool          // a turn of the item
	exchanges []*Exchange
	tools     wrappedTools
	err       error
}

func newRecorder(s *Spec, live func(Service) (http.RoundTripper, error)) (*recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a recorder on the loopback address: %w", err)
	}
	r := &recorder{routes: s.routes(), live: live, listener: listener, served: make(chan struct{})}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, DisableGeneralOptionsHandler: true}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(listener) // it ends with close
	}()
	return r, nil
}

func (r *recorder) close() {
	_ = r.server.Close()
	<-r.served
}

// address is the recorder's own URL.
func (r *recorder) address() string { return "http://" + r.listener.Addr().String() }

// toolPath is where programs ask for wrapped tools, below the URL that ECHOEVAL_URL gives.
const toolPath = "/echoeval"

// serve makes the recorder take the requests of an item, or with nil those of none.
func (r *recorder) serve(u *underWay) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.item = u
}

// begin opens a turn.
func (u *underWay) begin(ctx context.Context, lost func(error)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	u.lost = lost
}

// ServeHTTP implements [http.Handler].
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodConnect || req.URL.IsAbs() {
		host := req.Host
		if req.URL.IsAbs() {
			host = req.URL.Host
		}
		refuse(w, http.StatusForbidden, "replay", fmt.Sprintf("a replay opens no connection to %s; record the service: target: {proxy: {VARIABLE: https://%s}}", host, host))
		return
	}
	r.mu.Lock()
	u := r.item
	r.mu.Unlock()
	var ctx context.Context
	if u != nil {
		ctx = u.enter()
	}
	if ctx == nil {
		refuse(w, http.StatusServiceUnavailable, "between_items", "no item is under way: the program sends requests after its answer")
		return
	}
	defer u.leave()
	// A program that neither reads nor writes on must not hold up the end of its turn.
	control := http.NewResponseController(w)
	defer context.AfterFunc(ctx, func() {
		_, _ = control.SetReadDeadline(time.Unix(1, 0)), control.SetWriteDeadline(time.Unix(1, 0))
	})()
	if rest, is := strings.CutPrefix(req.URL.Path, toolPath+"/tool"); is {
		u.tool(ctx, w, req, rest)
		return
	}
	for i := range r.routes {
		if rest, is := strings.CutPrefix(req.URL.EscapedPath(), r.routes[i].prefix+"/"); is {
			r.pass(ctx, u, w, req, &r.routes[i], "/"+rest)
			return
		}
	}
	refuse(w, http.StatusNotFound, "unknown_path", "the recorder knows no such address: "+req.URL.Path)
}

// enter gives the context of the turn to a request; nil between turns.
func (u *underWay) enter() context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ctx == nil || u.ctx.Err() != nil || u.quiet != nil {
		return nil
	}
	u.open++
	return u.ctx
}

func (u *underWay) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open--
	if u.open == 0 && u.quiet != nil {
		close(u.quiet)
	}
}

// errOver ends what is under way when the program has answered.
var errOver = errors.New("the program answered while the request was under way")

// end ends a turn: it waits a while for requests under way and cuts off what is left.
func (u *underWay) end() {
	u.mu.Lock()
	quiet := make(chan struct{})
	if u.open == 0 {
		close(quiet)
	} else {
		u.quiet = quiet
	}
	cancel := u.cancel
	u.mu.Unlock()
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C:
	}
	cancel(errOver)
	<-quiet
	u.running.Wait()
	u.mu.Lock()
	u.quiet = nil
	u.mu.Unlock()
}

// begun reports whether anything has come from the program for the item.
func (u *underWay) begun() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answered || u.arrived > 0 || u.tools.calls > 0
}

// fail keeps the first error that no answer of the program can mend.
func (u *underWay) fail(err error) {
	u.mu.Lock()
	first := u.err == nil
	if first {
		u.err = err
	}
	u.mu.Unlock()
	if first {
		u.lost(err)
	}
}

// credentials are headers that hold keys. They are taken off above the recorder and put back below it.
var credentials = []transport.Scheme{{Header: "Authorization"}, {Header: "X-Api-Key"}, {Header: "Api-Key"}, {Header: "X-Goog-Api-Key"}, {Header: "Cookie"}}

// hopByHop are headers of one connection (RFC 9110, 7.6.1).
var hopByHop = []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// pass sends a request on through the item's round tripper and gives the program the reply as it comes.
func (r *recorder) pass(turn context.Context, u *underWay, w http.ResponseWriter, req *http.Request, to *route, rest string) {
	if to.refused != "" {
		refuse(w, http.StatusNotImplemented, "refused", to.refused)
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest+1))
	if err != nil || len(body) > maxRequest {
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("a request of more than %d MiB", maxRequest>>20))
		return
	}
	x := u.exchange(to.service, req.Method, rest, body)
	address, err := url.Parse(to.base.Scheme + "://" + to.base.Host + rest)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad_address", "the address cannot be read")
		return
	}
	address.RawQuery = req.URL.RawQuery
	// The end of the turn cuts the connection too, which ends the request's own context, at times before the other is heard: what ended first is asked for, not who came first.
	ctx, stop := context.WithCancelCause(context.WithoutCancel(req.Context()))
	defer stop(nil)
	over := func() { stop(cmp.Or(context.Cause(turn), context.Cause(req.Context()))) }
	defer context.AfterFunc(turn, over)()
	defer context.AfterFunc(req.Context(), over)()
	live, err := r.dial(to.service, req.Header)
	settle := func(*conversation.Usage) {}
	if err == nil && u.Reserve != nil && x.asked() {
		settle, err = u.reserve(ctx, x)
	}
	if err != nil {
		x.Err = err
		u.fail(err)
		refuse(w, http.StatusForbidden, "refused", err.Error())
		return
	}
	attempts := trace.NewRecorder(u.Clock)
	if !to.service.Model && !slices.Contains(idempotent, req.Method) {
		ctx = transport.Once(ctx)
	}
	out, err := http.NewRequestWithContext(trace.WithRecorder(ctx, attempts), req.Method, address.String(), bytes.NewReader(body))
	if err != nil {
		u.refused(w, x, err)
		return
	}
	out.Header = req.Header.Clone()
	for _, name := range hopByHop {
		out.Header.Del(name)
	}
	for _, c := range credentials {
		out.Header.Del(c.Header)
	}
	if len(body) == 0 {
		out.Body, out.GetBody = http.NoBody, nil
	}
	resp, err := u.Transport(live).RoundTrip(out)
	if err == nil {
		err = x.relay(w, resp, u.Retries)
	}
	x.Err, x.Attempts = err, attempts.Exchanges()
	if x.Status >= http.StatusBadRequest || x.Status == 0 {
		settle(&conversation.Usage{}) // refused before anything was written
	} else {
		settle(x.usage())
	}
	if err == nil {
		return
	}
	if x.Status != 0 {
		panic(http.ErrAbortHandler) // the program has the beginning of a reply: only a cut connection tells that it is not whole
	}
	u.refused(w, x, err)
}

// relay gives the reply to the program as it comes and keeps it.
func (x *Exchange) relay(w http.ResponseWriter, resp *http.Response, retries bool) (err error) {
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	header := w.Header()
	for name, values := range resp.Header {
		if !slices.Contains(hopByHop, name) && name != "Content-Length" {
			header[name] = values
		}
	}
	if resp.StatusCode >= http.StatusBadRequest && !retries {
		header.Set("X-Should-Retry", "false") // it was tried as often as it may be, and a client that waits in real time would slow down each replay
	}
	x.Status, x.Stream = resp.StatusCode, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	w.WriteHeader(resp.StatusCode)
	control := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 {
			if len(x.Reply)+n <= maxKept {
				x.Reply = append(x.Reply, buffer[:n]...)
			}
			if _, err := w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("the program closed the connection: %w", err)
			}
			_ = control.Flush()
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// exchange begins a new one.
func (u *underWay) exchange(service Service, method, path string, body []byte) *Exchange {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrived++
	x := &Exchange{Service: service, Method: method, Path: path, Request: body, arrived: u.arrived}
	u.exchanges = append(u.exchanges, x)
	return x
}

// idempotent are the methods whose requests may be repeated (RFC 9110, 9.2.2), whatever the service; a model's may be in any case.
var idempotent = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete, http.MethodTrace}

// dial is what lies below the item's recorder: the credentials that the program sent, then what dials the service.
func (r *recorder) dial(service Service, header http.Header) (http.RoundTripper, error) {
	if r.live == nil {
		return nil, nil
	}
	rt, err := r.live(service)
	if err != nil {
		return nil, err
	}
	for _, scheme := range credentials {
		value := header.Get(scheme.Header)
		if value == "" {
			continue
		}
		for _, prefix := range []string{"Bearer ", "Basic "} {
			if rest, is := strings.CutPrefix(value, prefix); is && scheme.Header == "Authorization" {
				scheme.Prefix, value = prefix, rest
			}
		}
		key := transport.NewSecret(value)
		rt = transport.Auth(scheme, func(context.Context) (transport.Secret, error) { return key, nil }, rt)
	}
	return rt, nil
}

func (u *underWay) reserve(ctx context.Context, x *Exchange) (func(*conversation.Usage), error) {
	model, most := "", 0
	if reader := readerOf(x.Path); reader != nil && reader.bound != nil {
		model, most = reader.bound(x.Request)
	}
	return u.Reserve(ctx, x.Service.Name, model, len(x.Request), most)
}

// usage is what the reply says that it took, nil where it does not or cannot be read.
func (x *Exchange) usage() *conversation.Usage {
	reader := readerOf(x.Path)
	if reader == nil || reader.read == nil || x.Status != http.StatusOK {
		return nil
	}
	step, err := reader.read(x.Request, x.Reply, x.Stream, "")
	if err != nil {
		return nil
	}
	return step.Usage
}

// refused answers a request that got no reply. What no repetition can mend ends the item.
func (u *underWay) refused(w http.ResponseWriter, x *Exchange, err error) {
	x.Err = err
	var final interface{ Final() bool }
	if errors.As(err, &final) && final.Final() {
		u.fail(err)
		refuse(w, http.StatusBadRequest, "stale", err.Error())
		return
	}
	if u.Retries {
		panic(http.ErrAbortHandler)
	}
	refuse(w, http.StatusBadGateway, "unreachable", err.Error())
}

// refuse answers in the form of OpenAI's errors, which other vendors' clients show too, and asks clients not to try again.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(status)
	b := conversation.AppendString([]byte(`{"error":{"message":`), "echoeval: "+message)
	b = conversation.AppendString(append(b, `,"type":"echoeval","code":`...), code)
	_, _ = w.Write(append(b, "}}\n"...))
}

// turn returns what has happened since the last call, in the order of the cassette, and that in which requests came where it has none.
func (u *underWay) turn() ([]*Exchange, []*ToolRun) {
	u.mu.Lock()
	defer u.mu.Unlock()
	exchanges, runs := u.exchanges, u.tools.finished()
	u.exchanges = nil
	slices.SortStableFunc(exchanges, func(a, b *Exchange) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.arrived, b.arrived))
	})
	return exchanges, runs
}

// place is the number of the first interaction of an exchange; what has none comes last.
func (x *Exchange) place() int {
	for _, a := range x.Attempts {
		if a.Interaction > 0 {
			return a.Interaction
		}
	}
	return int(^uint(0) >> 1)
}
