// Package providertest is the conformance suite that every model provider passes. The provider talks to a server that speaks its vendor's wire format, and the suite looks at the events that come out and at the requests that went in:
//
//	var _ = providertest.Run(providertest.Suite{Name: "openai", New: ..., Serve: ..., Asked: ...})
//
// What a vendor cannot do is said in package abilities, as data; the suite asks for nothing by name. A spec that an ability rules out is not defined, so that none is skipped.
package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/abilities"
)

// Suite is a provider under test. All fields but Frames and Stretch must be set.
type Suite struct {
	// Name heads the specs. It is that of a row of abilities.Table, which says what the suite asks for.
	Name string
	// New returns a model of the provider that sends its requests to the server at url (http://host:port) through rt. It adds whatever the server takes for a key.
	New func(url string, rt http.RoundTripper) (llm.Model, error)
	// Serve returns a server of the vendor's wire format that answers from the script.
	Serve func(emulator.Script) (http.Handler, error)
	// Asked reads a request as the server got it.
	Asked func(body []byte) (Asked, error)
	// BrokenStream is the body of a streamed reply that says "Hel" and then reports an error with the message "broken in the middle", with its content type.
	BrokenStream, ContentType string
	// Frames counts the whole frames of a stream; nil counts server-sent events.
	Frames func(body []byte) int
	// UnknownBlock is the body of a streamed reply that says "Hello." and has a block of the kind "hologram", which nobody knows.
	UnknownBlock string
	// Stretch returns the beginning of a streamed reply, and the bytes of a piece with that text which may follow any number of times. It may be nil where streams are server-sent events: then both are cut out of BrokenStream.
	Stretch func(text string) (head, piece []byte)

	can abilities.Set
}

// Asked is what a request asks, in no vendor's form.
type Asked struct {
	System string
	// Messages are the messages after the system prompt in order. Results stand in messages of role tool, one message for each result, whatever the vendor's form.
	Messages []AskedMessage
	// Tools are the names of the tools, Schemas their schemas as JSON.
	Tools   []string
	Schemas []string
}

// AskedMessage is one message of a request.
type AskedMessage struct {
	Role conversation.Role
	// Parts are in order: "text:..." , "image:<media type>:<base64>" or "image:<url>", "document:<base64>", "reasoning:<text>", "call:<name>:<arguments>", "result:<text>".
	Parts []string
	// IDs are the ids of calls and results, in order.
	IDs []string
}

// Run defines the specs.
func Run(s Suite) bool {
	row, known := abilities.Find(s.Name)
	s.can = row.Set
	return ginkgo.Describe("conformance of "+s.Name, func() {
		ginkgo.It("is asked what its row of abilities.Table says", func() {
			gomega.Expect(known).To(gomega.BeTrue(), "abilities.Table has no row %q", s.Name)
		})
		s.requests()
		s.replies()
		s.failures()
		s.endings()
		s.badInput()
	})
}

// world is a server, and a model that talks to it.
type world struct {
	suite  Suite
	server *httptest.Server
	base   *http.Transport
	model  llm.Model

	// reads cuts the bodies into other reads; nil leaves them.
	reads func(io.Reader) io.Reader

	mu       sync.Mutex
	asked    [][]byte
	received []byte // of the last reply
	opened   int
	closed   int
	forgets  bool // received is not wanted
}

// RoundTrip passes the request on and counts the bodies.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	w.received = nil
	if w.reads != nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{w.reads(resp.Body), resp.Body}
	}
	resp.Body = &watched{ReadCloser: resp.Body, w: w}
	return resp, nil
}

type watched struct {
	io.ReadCloser
	w    *world
	once sync.Once
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if !b.w.forgets {
		b.w.received = append(b.w.received, p[:n]...)
	}
	return n, err
}

func (b *watched) Close() error {
	b.once.Do(func() {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		b.w.closed++
	})
	return b.ReadCloser.Close()
}

// start serves the handler until the spec ends, and then checks that nothing is left behind.
func (s Suite) start(handler http.Handler) *world {
	ginkgo.GinkgoHelper()
	before := gleak.Goroutines()
	w := &world{suite: s, base: &http.Transport{}}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.asked = append(w.asked, body)
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(rw, r)
	}))
	ginkgo.DeferCleanup(func() {
		w.mu.Lock()
		gomega.Expect(w.closed).To(gomega.Equal(w.opened), "every body is closed")
		w.mu.Unlock()
		w.base.CloseIdleConnections()
		w.server.Close()
		gomega.Eventually(gleak.Goroutines).WithTimeout(5*time.Second).ShouldNot(gleak.HaveLeaked(before), "no goroutine is left")
	})
	var err error
	w.model, err = s.New(w.server.URL, w)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return w
}

// script returns a handler that answers each request with the next step.
func (s Suite) script(steps ...emulator.Step) http.Handler {
	ginkgo.GinkgoHelper()
	handler, err := s.Serve(emulator.Script{Version: 1, Name: "conformance", Default: &emulator.Conversation{Steps: steps}})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return handler
}

// play starts a server that answers each request with the next step.
func (s Suite) play(steps ...emulator.Step) *world {
	ginkgo.GinkgoHelper()
	return s.start(s.script(steps...))
}

// generate asks and expects an answer.
func (w *world) generate(req llm.Request) llm.Reply {
	ginkgo.GinkgoHelper()
	reply, err := llm.Generate(context.Background(), w.model, req)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return reply
}

// fails asks and expects an error.
func (w *world) fails(req llm.Request) (llm.Reply, *llm.Error) {
	ginkgo.GinkgoHelper()
	reply, err := llm.Generate(context.Background(), w.model, req)
	var e *llm.Error
	gomega.Expect(errors.As(err, &e)).To(gomega.BeTrue(), "%v", err)
	return reply, e
}

// lastAsked reads the last request.
func (w *world) lastAsked() Asked {
	ginkgo.GinkgoHelper()
	w.mu.Lock()
	defer w.mu.Unlock()
	gomega.Expect(w.asked).NotTo(gomega.BeEmpty())
	asked, err := w.suite.Asked(w.asked[len(w.asked)-1])
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return asked
}

// last is the body of the last request.
func (w *world) last() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[len(w.asked)-1]
}

// ways are the two ways to ask, as far as the vendor has them.
func (s Suite) ways() []bool {
	if s.can.Blocking {
		return []bool{false, true}
	}
	return []bool{false}
}

func way(blocking bool) string {
	if blocking {
		return "blocking"
	}
	return "streamed"
}

func ptr[T any](v T) *T { return &v }

func text(s string) emulator.Step { return emulator.Step{Text: &s} }

func user(parts ...conversation.Content) conversation.Message {
	return conversation.User("m", parts...)
}

func ask(parts ...conversation.Content) llm.Request {
	return llm.Request{Messages: []conversation.Message{user(parts...)}}
}

func hello() llm.Request { return ask(conversation.Text{Text: "Hello?"}) }

func lookup() tool.Spec {
	return tool.Spec{Name: "lookup", Description: "Looks something up", Parameters: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`}
}

// calls returns the calls of a reply with their arguments in order.
func calls(r llm.Reply) []conversation.ToolCall {
	var list []conversation.ToolCall
	for _, p := range r.Parts {
		if c, ok := p.(conversation.ToolCall); ok {
			list = append(list, c)
		}
	}
	return list
}

// kept are the characters that go wrong first.
const kept = "naïve “quotes” \\ \" \t\n emoji 🧪👩‍⚕️ 漢字 \u2028 </script> \x7f"

func long() string { return strings.Repeat("0123456789abcde\n", 1<<16) }

// gate holds the server's reply back behind the first write with a text in it, until it is opened.
type gate struct {
	http.ResponseWriter
	behind string
	open   <-chan struct{}
	gone   <-chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	n, err := g.ResponseWriter.Write(p)
	if g.behind != "" && bytes.Contains(p, []byte(g.behind)) {
		g.behind = ""
		g.Flush()
		select {
		case <-g.open:
		case <-g.gone:
		}
	}
	return n, err
}

// Flush implements [http.Flusher].
func (g *gate) Flush() { _ = http.NewResponseController(g.ResponseWriter).Flush() }

// Unwrap returns the writer below.
func (g *gate) Unwrap() http.ResponseWriter { return g.ResponseWriter }
