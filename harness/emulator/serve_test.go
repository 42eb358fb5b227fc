package emulator_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/harness/emulator"
)

// gate is a clock whose sleepers wait until they are let go, so that a test can look at a stream between its frames.
type gate struct {
	clock.Wall
	asleep chan time.Duration
	wake   chan struct{}
}

func newGate() *gate {
	return &gate{asleep: make(chan time.Duration), wake: make(chan struct{})}
}

func (g *gate) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case g.asleep <- d:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-g.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raw sends a request over a connection of its own and returns every byte that comes back.
func raw(url, body string) string {
	GinkgoHelper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
	Expect(err).NotTo(HaveOccurred())
	data, err := io.ReadAll(conn)
	Expect(err).NotTo(HaveOccurred(), "the connection must be closed in order, with what was sent delivered")
	return string(data)
}

var _ = Describe("a reply that is cut", func() {
	DescribeTable("ends unexpectedly for the client", func(text, more string, check func(body string)) {
		url := start(full(), emulator.Options{})
		reply, data, err := post(url, ask(text, more))
		Expect(reply.StatusCode).To(Equal(200))
		Expect(errors.Is(err, io.ErrUnexpectedEOF)).To(BeTrue(), "%v", err)
		Expect(string(data)).NotTo(ContainSubstring("[DONE]"))
		check(string(data))
	},
		Entry("after frames", "cut frames", streamed, func(b string) {
			Expect(strings.Count(b, "data: ")).To(Equal(3))
			Expect(b).To(HaveSuffix("\n\n"))
		}),
		Entry("after bytes", "cut bytes", streamed, func(b string) { Expect(b).To(HaveLen(100)) }),
		Entry("before the end", "cut end", streamedWithUsage, func(b string) {
			Expect(b).To(And(ContainSubstring(`"finish_reason":"stop"`), ContainSubstring(`"choices":[],"usage":{`)))
		}),
		Entry("before the first frame", "cut at once", streamed, func(b string) { Expect(b).To(BeEmpty()) }),
		Entry("after bytes of a blocking reply", "cut bytes", "", func(b string) { Expect(b).To(HaveLen(100)) }),
		Entry("in the middle of a blocking reply", "cut frames", "", func(b string) { Expect(b).To(HavePrefix("{\n  \"id\": ")) }),
	)

	It("leaves the connection closed without the last chunk", func() {
		url := start(full(), emulator.Options{})
		Expect(raw(url, ask("cut frames", streamed))).NotTo(HaveSuffix("0\r\n\r\n"))
		// The same way of looking does see the last chunk of a whole stream.
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close() }()
		body := ask("unicode", streamed)
		_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
		Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(conn)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(data)).To(HaveSuffix("data: [DONE]\n\n\r\n0\r\n\r\n"))
	})
})

var _ = Describe("a slow stream", func() {
	It("arrives frame by frame", func() {
		g := newGate()
		url := start(full(), emulator.Options{Clock: g})
		r := request(ask("slow", streamed))
		r.RequestURI, r.URL.Host = "", strings.TrimPrefix(url, "http://")
		reply, err := http.DefaultClient.Do(r.WithContext(GinkgoT().Context()))
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = reply.Body.Close() }()
		lines := bufio.NewReader(reply.Body)
		seen := 0
		for {
			line, err := lines.ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
			if line == "data: [DONE]\n" {
				break
			}
			if line == "\n" {
				continue
			}
			// The frame is here although the server still sleeps after it.
			Expect(<-g.asleep).To(Equal(5 * time.Millisecond))
			g.wake <- struct{}{}
			seen++
		}
		Expect(seen).To(BeNumerically(">=", 6))
	})

	It("ends when the client is gone", func() {
		g := newGate()
		url := start(full(), emulator.Options{Clock: g})
		ctx, cancel := context.WithCancel(GinkgoT().Context())
		r := request(ask("slow", streamed))
		r.RequestURI, r.URL.Host = "", strings.TrimPrefix(url, "http://")
		reply, err := http.DefaultClient.Do(r.WithContext(ctx))
		Expect(err).NotTo(HaveOccurred())
		<-g.asleep
		cancel()
		_ = reply.Body.Close()
		// Closing the server, which waits for its replies, ends without anybody waking the sleeper.
	})
})

func TestLatency(t *testing.T) {
	script := func(g *WithT) emulator.Script {
		s, err := emulator.Load("s.yaml", []byte(`
version: 1
name: late
conversations:
  - {match: {user: text}, steps: [{text: One two three four., latency: 412ms, ttft: 90ms}]}
  - {match: {user: calls}, steps: [{calls: [{name: f}, {name: g, args: {a: b}}], latency: 1s, ttft: 0s}]}
  - {match: {user: call}, steps: [{calls: [{name: f}], latency: 1s}]}
  - {match: {user: error}, steps: [{error: {status: 500}, latency: 30s}]}
  - {match: {user: slow}, steps: [{text: abcd, latency: 40ms, ttft: 10ms, slow: {chunk_delay: 1s}}]}
`))
		g.Expect(err).NotTo(HaveOccurred())
		return s
	}
	for _, test := range []struct {
		text, more string
		realTime   bool
		want       time.Duration
	}{
		{"text", "", true, 412 * time.Millisecond},
		{"text", streamed, true, 412 * time.Millisecond},
		{"text", streamedWithUsage, true, 412 * time.Millisecond},
		{"calls", streamed, true, time.Second},
		{"call", streamedWithUsage, true, time.Second},
		{"error", "", true, 30 * time.Second},
		{"slow", streamed, true, 40*time.Millisecond + 3*time.Second},
		{"slow", streamed, false, 3 * time.Second},
		{"slow", "", false, 0},
		{"text", "", false, 0},
		{"text", streamed, false, 0},
		{"error", "", false, 0},
	} {
		t.Run(test.text+" "+test.more, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				h, err := emulator.New(script(g), emulator.Options{RealTime: test.realTime})
				g.Expect(err).NotTo(HaveOccurred())
				before := time.Now()
				w := httptest.NewRecorder()
				body := `{"model":"m",`
				if test.more != "" {
					body += test.more + ","
				}
				h.ServeHTTP(w, request(body+`"messages":[{"role":"user","content":"`+test.text+`"}]}`))
				g.Expect(w.Body.Len()).To(BeNumerically(">", 0))
				g.Expect(time.Since(before)).To(Equal(test.want))
			})
		})
	}
}

var _ = Describe("serving", func() {
	It("answers loopback names alone", func() {
		h := emulator.Guard(handler(full(), emulator.Options{}))
		for host, allowed := range map[string]bool{
			"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.9.9.9:1": true, "[::1]:8080": true, "[::1]": true, "[::ffff:127.0.0.1]:1": true,
			"": false, "example.com": false, "localhost.example.com": false, "127.0.0.1.nip.io": false, "0.0.0.0": false, "10.0.0.1:80": false, "localhost:80:80": false,
		} {
			r := request(ask("unicode", ""))
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			Expect(w.Code == 200).To(Equal(allowed), "%q: %d", host, w.Code)
			if !allowed {
				Expect(w.Code).To(Equal(403))
				Expect(w.Body.String()).To(ContainSubstring(`"code": "emulator_host"`))
			}
		}
		for origin, allowed := range map[string]bool{"http://localhost:3000": true, "https://127.0.0.1": true, "http://example.com": false, "null": false, "file://localhost": false, "http://[": false} {
			r := request(ask("unicode", ""), "Origin", origin)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			Expect(w.Code == 200).To(Equal(allowed), origin)
		}
	})

	It("stops when told, and tells when it cannot go on", func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(GinkgoT().Context())
		ended := make(chan error, 1)
		go func() { ended <- emulator.Serve(ctx, listener, handler(full(), emulator.Options{})) }()
		_, _, err = post("http://"+listener.Addr().String(), ask("unicode", ""))
		Expect(err).NotTo(HaveOccurred())
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
		_, err = net.Dial("tcp", listener.Addr().String())
		Expect(err).To(HaveOccurred())

		Expect(emulator.Serve(GinkgoT().Context(), listener, handler(full(), emulator.Options{}))).To(MatchError(net.ErrClosed))
	})

	It("does not wait for ever for a slow stream", func() {
		g := newGate()
		running, err := emulator.Start(GinkgoT().Context(), full(), emulator.Options{Clock: g})
		Expect(err).NotTo(HaveOccurred())
		failed := make(chan error, 1)
		go func() {
			defer GinkgoRecover()
			_, _, err := post(running.URL, ask("slow", streamed))
			failed <- err
		}()
		<-g.asleep
		Expect(running.Close()).To(Succeed())
		Eventually(failed).Should(Receive(HaveOccurred()))
	})
})
