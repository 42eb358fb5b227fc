package replay_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

// script is a live transport whose replies take their time: after the header each chunk comes after its pause.
type script struct {
	header http.Header
	pause  time.Duration
	chunks []string
	stall  bool // the body never ends, until it is closed
}

func (s script) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(s.pause)
	r, w := io.Pipe()
	go func() {
		for _, chunk := range s.chunks {
			time.Sleep(s.pause)
			if _, err := w.Write([]byte(chunk)); err != nil {
				return
			}
		}
		if !s.stall {
			_ = w.Close()
		}
	}()
	header := s.header
	if header == nil {
		header = http.Header{"Content-Type": {"text/event-stream"}}
	}
	return &http.Response{StatusCode: 200, Header: header, Body: r, Request: req}, nil
}

func request(t *testing.T, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.openai.com/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func timed(t *testing.T) replay.Config {
	c := config(t.TempDir(), replay.Record)
	c.Reproducible = false
	return c
}

func TestDurationsAreMeasuredAndReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := timed(t)
		s, err := replay.Open(c)
		g.Expect(err).NotTo(HaveOccurred())
		body := chat(true, "one")
		run := func(s *replay.Session, live http.RoundTripper) (first, last time.Duration) {
			resp, err := s.RoundTripper(live).RoundTrip(request(t, body))
			g.Expect(err).NotTo(HaveOccurred())
			p := make([]byte, 1)
			_, err = resp.Body.Read(p)
			g.Expect(err).NotTo(HaveOccurred())
			first = s.Clock().Now().Sub(start)
			_, err = io.ReadAll(resp.Body)
			g.Expect(err).NotTo(HaveOccurred())
			return first, s.Clock().Now().Sub(start)
		}
		first, last := run(s, script{pause: 40*time.Millisecond + 400*time.Microsecond, chunks: []string{"data: a\n\n", "data: b\n\n"}})
		g.Expect(first).To(Equal(81 * time.Millisecond))
		g.Expect(last).To(Equal(121 * time.Millisecond))
		_, err = s.Close(true)
		g.Expect(err).NotTo(HaveOccurred())

		c.Mode = replay.Replay
		s, err = replay.Open(c)
		g.Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		again, end := run(s, nil)
		g.Expect([]time.Duration{again, end}).To(Equal([]time.Duration{first, last}))
		g.Expect(time.Since(began)).To(BeZero(), "a replay waits for nothing")
	})
}

func TestBranchesJoinAtTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := timed(t)
		slow := func(name string, d time.Duration) tool.Tool {
			return function{tool.Spec{Name: name, Effect: tool.Read, Scope: tool.External}, func(tool.Call) (tool.Output, error) {
				time.Sleep(d)
				return tool.Text(name), nil
			}, nil}
		}
		for _, mode := range []replay.Mode{replay.Record, replay.Replay, replay.Live} {
			c.Mode = mode
			s, err := replay.Open(c)
			g.Expect(err).NotTo(HaveOccurred())
			took := make([]time.Duration, 2)
			done := make(chan error)
			for n, x := range []tool.Tool{slow("a", 300*time.Millisecond), slow("b", 200*time.Millisecond)} {
				go func() {
					out, err := s.Tool(x).Run(context.Background(), call(n+1, `{}`))
					took[n] = out.Took
					done <- err
				}()
			}
			g.Expect(<-done).To(Succeed())
			g.Expect(<-done).To(Succeed())
			g.Expect(took).To(Equal([]time.Duration{300 * time.Millisecond, 200 * time.Millisecond}), string(mode))
			g.Expect(s.Clock().Now().Sub(start)).To(Equal(300*time.Millisecond), string(mode))
			_, err = s.Close(true)
			g.Expect(err).NotTo(HaveOccurred())
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		script  script
		read    int
		waits   time.Duration
		partial bool
		body    string
	}{
		"the end comes soon":         {script{chunks: []string{"data: [DONE]\n", "\n"}, pause: time.Millisecond}, 13, time.Millisecond, false, "data: [DONE]\n\n"},
		"the end never comes":        {script{chunks: []string{"data: [DONE]\n\n"}, stall: true}, 14, 100 * time.Millisecond, false, "data: [DONE]\n\n"},
		"too much comes":             {script{chunks: []string{"data: [DONE]\n\n", strings.Repeat("x", 1<<17)}}, 14, 0, false, "data: [DONE]\n\n" + strings.Repeat("x", 64<<10)},
		"no terminal line":           {script{chunks: []string{"data: a\n\n", "data: b\n\n"}, stall: true}, 9, 0, true, "data: a\n\n"},
		"a terminal word in a line":  {script{chunks: []string{"data: \"data: [DONE]\"\n\n"}, stall: true}, 22, 0, true, "data: \"data: [DONE]\"\n\n"},
		"the end of another vendor":  {script{chunks: []string{"event: message_stop\ndata: {\"type\":\"message_stop\"      }\n\n"}, stall: true}, 54, 100 * time.Millisecond, false, "event: message_stop\ndata: {\"type\":\"message_stop\"      }\n\n"},
		"no stream, short":           {script{header: http.Header{"Content-Type": {"application/json"}}, chunks: []string{"{}", " "}}, 2, 0, false, "{} "},
		"no stream, never ends":      {script{header: http.Header{"Content-Type": {"application/json"}}, chunks: []string{"{}"}, stall: true}, 2, 100 * time.Millisecond, true, "{}"},
		"no stream, more than short": {script{header: http.Header{"Content-Type": {"application/json"}}, chunks: []string{"{}", strings.Repeat(" ", 1<<17)}}, 2, 0, true, "{}" + strings.Repeat(" ", 64<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				conf := config(dir, replay.Record)
				s, err := replay.Open(conf)
				g.Expect(err).NotTo(HaveOccurred())
				resp, err := s.RoundTripper(c.script).RoundTrip(request(t, chat(true, "one")))
				g.Expect(err).NotTo(HaveOccurred())
				_, err = io.ReadFull(resp.Body, make([]byte, c.read))
				g.Expect(err).NotTo(HaveOccurred())
				began := time.Now()
				g.Expect(resp.Body.Close()).To(Succeed())
				g.Expect(time.Since(began)).To(Equal(c.waits))
				_, err = s.Close(true)
				g.Expect(err).NotTo(HaveOccurred())
				f, err := cassette.Load(filepath.Join(dir, "c.yaml"), "c.yaml")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(f.Interactions[0].Extra.Partial).To(Equal(c.partial))
				g.Expect(f.Interactions[0].Response.Body == c.body).To(BeTrue(), "%d bytes", len(f.Interactions[0].Response.Body))
			})
		})
	}
}

func TestCancelledRequestsEnd(t *testing.T) {
	g := NewWithT(t)
	c := config(t.TempDir(), replay.Record)
	s, err := replay.Open(c)
	g.Expect(err).NotTo(HaveOccurred())
	resp, err := s.RoundTripper(script{chunks: []string{"data: a\n\n", "data: [DONE]\n\n"}}).RoundTrip(request(t, chat(true, "one")))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.ReadAll(resp.Body)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.Close(true)
	g.Expect(err).NotTo(HaveOccurred())

	c.Mode = replay.Replay
	s, err = replay.Open(c)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	resp, err = s.RoundTripper(nil).RoundTrip(request(t, chat(true, "one")).WithContext(ctx))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = resp.Body.Read(make([]byte, 3))
	g.Expect(err).NotTo(HaveOccurred())
	cancel()
	_, err = resp.Body.Read(make([]byte, 3))
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(resp.Body.Close()).To(Succeed())
	_, err = s.RoundTripper(nil).RoundTrip(request(t, chat(true, "one")).WithContext(ctx))
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(s.Miss()).To(Succeed())
}
