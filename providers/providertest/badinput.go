package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/emulator"
)

// notFound is what a server says that is none of the vendor's.
const notFound = "<!DOCTYPE html>\n<html><head><title>404 &mdash; Nothing here</title><style>p{}</style></head><body><p>Try <a href='/'>home</a></p></body></html>"

// badInput looks at what comes of everything that a user, a network or a server may get wrong: a clear error, and neither a hang, a panic nor anything that is left behind.
func (s Suite) badInput() {
	s.unreachable()
	s.wrongAnswers()
	s.tooMuch()
	s.strangeParts()
}

// reach asks at an address through a transport of the machine, and expects an error.
func (s Suite) reach(address string, rt *http.Transport) *llm.Error {
	ginkgo.GinkgoHelper()
	before := gleak.Goroutines()
	ginkgo.DeferCleanup(func() {
		rt.CloseIdleConnections()
		gomega.Eventually(gleak.Goroutines).WithTimeout(5*time.Second).ShouldNot(gleak.HaveLeaked(before), "no goroutine is left")
	})
	model, err := s.New(address, rt)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reply, err := llm.Generate(ctx, model, hello())
	var e *llm.Error
	gomega.Expect(errors.As(err, &e)).To(gomega.BeTrue(), "%v", err)
	gomega.Expect(reply.Parts).To(gomega.BeEmpty())
	gomega.Expect(e.Status).To(gomega.BeZero())
	gomega.Expect(e.Vendor).NotTo(gomega.BeEmpty())
	return e
}

func through(proxy string) *http.Transport {
	return transport.Net((&net.Dialer{Timeout: 10 * time.Second}).DialContext, func(*http.Request) (*url.URL, error) {
		if proxy == "" {
			return nil, nil
		}
		return url.Parse(proxy)
	})
}

// closedAddress is one that nobody listens on.
func closedAddress() string {
	ginkgo.GinkgoHelper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(l.Close()).To(gomega.Succeed())
	return l.Addr().String()
}

// unreachable looks at the way to the server.
func (s Suite) unreachable() {
	ginkgo.It("reports a name that does not exist", func() {
		e := s.reach("http://no-such-host.invalid", through(""))
		gomega.Expect(e.Code).To(gomega.Equal(transport.CauseDNS))
		gomega.Expect(e.Error()).To(gomega.ContainSubstring("no-such-host.invalid"))
		var name *net.DNSError
		gomega.Expect(errors.As(e, &name)).To(gomega.BeTrue())
		gomega.Expect(e.Retryable).To(gomega.Equal(!name.IsNotFound))
	})

	ginkgo.It("reports a certificate that nobody vouches for", func() {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		ginkgo.DeferCleanup(server.Close)
		e := s.reach(server.URL, through(""))
		gomega.Expect(e.Code).To(gomega.Equal(transport.CauseTLS))
		gomega.Expect(e.Error()).To(gomega.ContainSubstring("certificate"))
		gomega.Expect(e.Retryable).To(gomega.BeFalse())
	})

	ginkgo.It("reports a proxy that is not there", func() {
		e := s.reach("https://api.invalid", through("http://user:hidden-word@"+closedAddress()))
		gomega.Expect(e.Code).To(gomega.Equal(transport.CauseProxy))
		gomega.Expect(e.Retryable).To(gomega.BeTrue())
		gomega.Expect(e.Error()).NotTo(gomega.ContainSubstring("hidden-word"))
	})

	ginkgo.It("reports a proxy that lets nobody through", func() {
		proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusProxyAuthRequired) }))
		ginkgo.DeferCleanup(proxy.Close)
		e := s.reach("https://api.invalid", through("http://user:hidden-word@"+strings.TrimPrefix(proxy.URL, "http://")))
		gomega.Expect(e.Code).To(gomega.Equal(transport.CauseProxy))
		gomega.Expect(e.Retryable).To(gomega.BeFalse())
		gomega.Expect(e.Error()).To(gomega.And(gomega.ContainSubstring("407"), gomega.Not(gomega.ContainSubstring("hidden-word"))))
	})
}

// keyed puts a key into whatever header the provider has put its placeholder.
type keyed struct {
	key  string
	next http.RoundTripper
}

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	for name, values := range req.Header {
		for _, v := range values {
			if prefix, ok := strings.CutSuffix(v, "placeholder"); ok {
				return transport.Auth(transport.Scheme{Header: name, Prefix: prefix}, func(context.Context) (transport.Secret, error) { return transport.NewSecret(k.key), nil }, k.next).RoundTrip(req)
			}
		}
	}
	return k.next.RoundTrip(req)
}

// wrongAnswers looks at answers that are none.
func (s Suite) wrongAnswers() {
	ginkgo.It("reports a wrong key without a trace of it", func() {
		for _, key := range []string{"sk-proj-WrongWrongWrong0123456789", "correct-horse-battery-staple"} {
			var shown atomic.Bool
			w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				for _, values := range r.Header {
					if strings.Contains(strings.Join(values, " "), key) {
						shown.Store(true)
						rw.Header().Set("Content-Type", "application/json")
						rw.WriteHeader(http.StatusUnauthorized)
						_, _ = fmt.Fprintf(rw, `{"error":{"message":"Incorrect API key: %s","type":"authentication_error","status":"UNAUTHENTICATED"},"message":"Incorrect API key: %[1]s"}`, key)
					}
				}
				if !shown.Load() { // a signed request, which holds no key that could be repeated
					rw.WriteHeader(http.StatusUnauthorized)
					_, _ = io.WriteString(rw, `{"message":"The security token is wrong"}`)
				}
			}))
			model, err := s.New(w.server.URL, keyed{key, w})
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			w.model = model
			_, e := w.fails(hello())
			gomega.Expect(e.Status).To(gomega.Equal(http.StatusUnauthorized))
			gomega.Expect(e.Retryable).To(gomega.BeFalse())
			gomega.Expect(e.Message).NotTo(gomega.BeEmpty())
			for _, text := range []string{e.Error(), fmt.Sprintf("%+v", *e)} {
				gomega.Expect(text).NotTo(gomega.ContainSubstring(key[:12]))
			}
		}
	})

	// answers gives the error for a reply with that status, type and body.
	answers := func(status int, contentType, body string, blocking bool) *llm.Error {
		ginkgo.GinkgoHelper()
		w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", contentType)
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, body)
		}))
		req := hello()
		req.Blocking = blocking
		reply, e := w.fails(req)
		gomega.Expect(reply.Parts).To(gomega.BeEmpty())
		gomega.Expect(e.Error()).NotTo(gomega.ContainSubstring("\n"))
		gomega.Expect(len(e.Error())).To(gomega.BeNumerically("<", 1500))
		for _, inner := range []string{"json:", "jsontext", "unmarshal", "struct {", "[]", "unexpected EOF", "\x1b"} { // words of the decoder, and what a terminal obeys
			if !strings.Contains(body, inner) {
				gomega.Expect(e.Error()).NotTo(gomega.ContainSubstring(inner))
			}
		}
		return e
	}

	ginkgo.It("reports a wrong base URL, whose 404 is a page", func() {
		for _, blocking := range s.ways() {
			e := answers(http.StatusNotFound, "text/html; charset=utf-8", notFound, blocking)
			gomega.Expect(e.Status).To(gomega.Equal(http.StatusNotFound))
			gomega.Expect(e.Message).To(gomega.Equal("a page of HTML and no JSON: 404 — Nothing here"))
			gomega.Expect(e.Retryable).To(gomega.BeFalse())
		}
	})

	ginkgo.It("reports a page in the place of an answer", func() {
		for _, blocking := range s.ways() {
			for _, contentType := range []string{"text/html", "application/json", s.ContentType} {
				e := answers(http.StatusOK, contentType, notFound, blocking)
				gomega.Expect(e.Retryable).To(gomega.BeFalse(), contentType)
				if contentType == "text/html" {
					gomega.Expect(e.Error()).To(gomega.ContainSubstring("a page of HTML"))
				}
			}
		}
	})

	ginkgo.It("reports JSON of a wrong type", func() {
		for _, body := range []string{
			"[]", "{}", "null", "42", "true", `"an answer"`, "[[]]", "[null]", `{"unknown":{}}`,
			`{"object":"chat.completion","choices":7}`, `{"choices":[7]}`, `{"choices":[{"index":"a","message":[]}]}`,
			`{"object":"response","output":7}`, `{"object":"response","status":"completed","output":[7]}`,
			`{"type":"message","content":7}`, `{"type":"message","role":"assistant","content":[[]]}`,
			`{"candidates":7}`, `{"candidates":[{"content":{"parts":[7]}}]}`, `{"output":{"message":7}}`,
		} {
			for _, blocking := range s.ways() {
				answers(http.StatusOK, "application/json", body, blocking)
				answers(http.StatusOK, s.ContentType, "data: "+body+"\n\n", blocking)
			}
		}
	})

	ginkgo.It("reports an empty body, which the next try may mend", func() {
		for _, blocking := range s.ways() {
			for _, contentType := range []string{"application/json", s.ContentType, ""} {
				e := answers(http.StatusOK, contentType, "", blocking)
				gomega.Expect(e.Retryable).To(gomega.BeTrue())
				gomega.Expect(errors.Is(e, io.ErrUnexpectedEOF)).To(gomega.BeTrue())
				gomega.Expect(e.Error()).To(gomega.ContainSubstring("the reply is empty"), contentType)
			}
		}
	})
}

const mebibyte = 1 << 20

// stretch returns the beginning of a streamed reply, and a piece of it that may follow any number of times, with the given text.
func (s Suite) stretch(text string) (head, piece []byte) {
	ginkgo.GinkgoHelper()
	if s.Stretch != nil {
		return s.Stretch(text)
	}
	begin, _, ok := strings.Cut(s.BrokenStream, "Hel")
	gomega.Expect(ok).To(gomega.BeTrue())
	at := max(strings.LastIndex(begin, "\n\n")+2, 0)
	if crlf := strings.LastIndex(begin, "\r\n\r\n"); crlf >= 0 {
		at = crlf + 4
	} else if !strings.Contains(begin, "\n\n") {
		at = 0
	}
	rest := s.BrokenStream[at:]
	end := strings.IndexAny(rest, "\r\n")
	for end < len(rest) && !strings.HasSuffix(rest[:end], "\n\n") && !strings.HasSuffix(rest[:end], "\r\n\r\n") {
		end++
	}
	return []byte(begin[:at]), []byte(strings.Replace(rest[:end], "Hel", text, 1))
}

// tooMuch looks at replies that are larger than any.
func (s Suite) tooMuch() {
	// measure serves a body, which write writes piece by piece until it is done or the client has gone, and gives the error, how much was written and how much memory was in use beyond that before.
	measure := func(contentType string, blocking bool, write func(put func([]byte) bool)) (e *llm.Error, sent int, memory uint64) {
		ginkgo.GinkgoHelper()
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		before := stats.HeapAlloc
		done := make(chan struct{})
		w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			defer close(done)
			rw.Header().Set("Content-Type", contentType)
			sampled := 0
			write(func(p []byte) bool {
				n, err := rw.Write(p)
				if sent += n; sent-sampled > 8*mebibyte {
					sampled = sent
					runtime.ReadMemStats(&stats)
					memory = max(memory, stats.HeapAlloc-min(before, stats.HeapAlloc))
				}
				return err == nil && r.Context().Err() == nil
			})
		}))
		w.forgets = true
		req := hello()
		req.Blocking = blocking
		_, e = w.fails(req)
		<-done
		return e, sent, memory
	}
	filler := []byte(strings.Repeat("x", mebibyte))
	const large = 200

	ginkgo.It("ends a document of 200 MB, in bounded memory", func() {
		e, sent, memory := measure("application/json", s.can.Blocking, func(put func([]byte) bool) {
			put([]byte(`{"object":"`))
			for range large {
				if !put(filler) {
					return
				}
			}
			put([]byte(`"}`))
		})
		gomega.Expect(e.Retryable).To(gomega.BeFalse())
		gomega.Expect(e.Error()).To(gomega.ContainSubstring("longer than"))
		gomega.Expect(sent).To(gomega.BeNumerically("<", 150*mebibyte), "it is not read to its end")
		gomega.Expect(memory).To(gomega.BeNumerically("<", 512*mebibyte))
	})

	ginkgo.It("ends a frame of 200 MB, in bounded memory", func() {
		head, piece := s.stretch("\x00")
		begin, _, ok := strings.Cut(string(piece), "\x00")
		if s.Stretch != nil {
			ok, begin = true, string(piece)
		}
		gomega.Expect(ok).To(gomega.BeTrue())
		e, sent, memory := measure(s.ContentType, false, func(put func([]byte) bool) {
			put(head)
			put([]byte(begin))
			for range large {
				if !put(filler) {
					return
				}
			}
		})
		gomega.Expect(e.Retryable).To(gomega.BeFalse(), "%v", e)
		gomega.Expect(sent).To(gomega.BeNumerically("<", 150*mebibyte))
		gomega.Expect(memory).To(gomega.BeNumerically("<", 512*mebibyte))
	})

	ginkgo.It("ends a stream that does not, by its size", func() {
		head, piece := s.stretch(string(filler))
		e, sent, memory := measure(s.ContentType, false, func(put func([]byte) bool) {
			for put(head); put(piece); {
			}
		})
		gomega.Expect(e.Retryable).To(gomega.BeFalse(), "%v", e)
		gomega.Expect(e.Error()).To(gomega.ContainSubstring("longer than"))
		gomega.Expect(sent).To(gomega.BeNumerically("<", 150*mebibyte))
		gomega.Expect(memory).To(gomega.BeNumerically("<", 1024*mebibyte), "the text is collected")
	})

	ginkgo.It("ends a stream that does not, with the context", func() {
		head, piece := s.stretch("tick ")
		w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", s.ContentType)
			_, _ = rw.Write(head)
			for r.Context().Err() == nil {
				_, _ = rw.Write(piece)
				_ = http.NewResponseController(rw).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(time.Millisecond):
				}
			}
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		reply, err := llm.Generate(ctx, w.model, hello())
		gomega.Expect(err).To(gomega.MatchError(context.DeadlineExceeded))
		gomega.Expect(errors.As(err, new(*llm.Error))).To(gomega.BeTrue())
		gomega.Expect(reply.Parts).To(gomega.HaveExactElements(gomega.HaveField("Text", gomega.HavePrefix("tick tick "))))
	})
}

// strangeParts looks at answers that a model or a newer server gives.
func (s Suite) strangeParts() {
	const torn = `{"name": oops`
	if s.can.ObjectArguments {
		ginkgo.It("gives no call where the arguments are no JSON, and says that it did not end well", func() {
			w := s.play(emulator.Step{Calls: []emulator.Call{{Name: "lookup", Raw: ptr(torn)}}})
			req := hello()
			req.Tools = []tool.Spec{lookup()}
			reply := w.generate(req)
			gomega.Expect(calls(reply)).To(gomega.BeEmpty())
			gomega.Expect(reply.Finish.Stop).To(gomega.Equal(llm.StopOther))
		})
	} else {
		ginkgo.It("keeps arguments that are no JSON as the model wrote them, and gives them back", func() {
			w := s.play(emulator.Step{Calls: []emulator.Call{{Name: "lookup", Raw: ptr(torn)}}}, text("sorry"))
			req := hello()
			req.Tools = []tool.Spec{lookup()}
			reply := w.generate(req)
			gomega.Expect(calls(reply)).To(gomega.HaveExactElements(gomega.HaveField("Input", conversation.JSON(torn))))
			req.Messages = append(req.Messages, conversation.Assistant("m", reply.Parts...), conversation.ToolResults("m", conversation.ToolResult{ID: calls(reply)[0].ID, Result: `"no JSON"`, IsError: true}))
			gomega.Expect(w.generate(req).Parts).To(gomega.Equal([]conversation.Content{conversation.Text{Text: "sorry"}}))
		})
	}

	ginkgo.It("tells calls with one id apart, with a warning, the same each time", func() {
		for _, blocking := range s.ways() {
			w := s.play(emulator.Step{Calls: []emulator.Call{
				{ID: "twice", Name: "lookup", Args: emulator.Object(`{"name":"x"}`)},
				{ID: "twice", Name: "lookup", Args: emulator.Object(`{"name":"y"}`)},
				{ID: "twice", Name: "lookup", Args: emulator.Object(`{"name":"z"}`)},
			}}, text("done"))
			req := hello()
			req.Tools, req.Blocking = []tool.Spec{lookup()}, blocking
			reply := w.generate(req)
			made := calls(reply)
			gomega.Expect(made).To(gomega.HaveExactElements(gomega.HaveField("Input", conversation.JSON(`{"name":"x"}`)), gomega.HaveField("Input", conversation.JSON(`{"name":"y"}`)), gomega.HaveField("Input", conversation.JSON(`{"name":"z"}`))))
			ids := map[string]bool{}
			var results []conversation.Content
			for _, c := range made {
				ids[c.ID] = true
				results = append(results, conversation.ToolResult{ID: c.ID, Result: `"found"`})
			}
			gomega.Expect(ids).To(gomega.And(gomega.HaveLen(3), gomega.HaveKey("twice")))
			gomega.Expect(reply.Warnings).To(gomega.HaveExactElements(gomega.HaveField("Code", "call-id-repeated")))
			gomega.Expect(calls(w.generate(req))).To(gomega.Equal(made))
			req.Messages = append(req.Messages, conversation.Assistant("m", reply.Parts...), conversation.ToolResults("m", results...))
			gomega.Expect(w.generate(req).Parts).To(gomega.Equal([]conversation.Content{conversation.Text{Text: "done"}}))
		}
	})

	ginkgo.It("takes an answer with a block of an unknown kind, with a warning", func() {
		gomega.Expect(s.UnknownBlock).NotTo(gomega.BeEmpty())
		w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", s.ContentType)
			_, _ = io.WriteString(rw, s.UnknownBlock)
		}))
		reply := w.generate(hello())
		gomega.Expect(reply.Parts).To(gomega.ContainElement(conversation.Text{Text: "Hello."}))
		code, kept := "content-left-out", 0
		if s.can.Opaque {
			code = "content-opaque"
			for _, p := range reply.Parts {
				if strings.Contains(string(conversation.AppendContent(nil, p)), "hologram") {
					kept++
				}
			}
			gomega.Expect(kept).To(gomega.Equal(1))
			// It goes back in the next steps of a tool loop, after the conversation was stored too.
			call := conversation.ToolCall{ID: "call_1", Name: "lookup", Input: `{"name":"x"}`}
			parts := append(slices.Clone(reply.Parts), call)
			ctx, err := conversation.New(nil).Append(append(hello().Messages, conversation.Assistant("m", parts...), conversation.ToolResults("m", conversation.ToolResult{ID: "call_1", Result: `"42"`}))...)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			stored, warnings, err := conversation.Decode(ctx.AppendJSON(nil))
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			gomega.Expect(warnings).To(gomega.BeEmpty())
			again := llm.Request{Tools: []tool.Spec{lookup()}}
			for _, m := range stored.Messages() {
				again.Messages = append(again.Messages, m)
			}
			w.generate(again)
			gomega.Expect(bytes.Count(w.last(), []byte("hologram"))).To(gomega.Equal(1))
			gomega.Expect(string(w.last())).To(gomega.MatchRegexp(`"depth": ?3`))
		}
		gomega.Expect(reply.Warnings).To(gomega.ContainElement(gomega.And(gomega.HaveField("Code", code), gomega.HaveField("Text", gomega.ContainSubstring("hologram")))))
	})
}
