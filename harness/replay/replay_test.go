package replay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dnaeon/go-vcr/v2/recorder"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

func TestReplay(t *testing.T) { suite.Run(t, "replay") }

var start = time.Date(2027, 1, 4, 8, 15, 0, 0, time.UTC)

// vendor answers like a chat model: a stream of two words that names the last message and how often it was asked, and errors on demand.
type vendor struct {
	*httptest.Server
	mu    sync.Mutex
	count int
}

func newVendor() *vendor {
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(v.serve))
	DeferCleanup(v.Close)
	return v
}

func (v *vendor) serve(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	v.count++
	n := v.count
	v.mu.Unlock()
	var body struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	last := ""
	if len(body.Messages) > 0 {
		last = body.Messages[len(body.Messages)-1].Content
	}
	w.Header().Set("Server-Timing", "total;dur=412, ttft;dur=90")
	w.Header().Set("X-Request-Id", fmt.Sprint(n))
	switch {
	case last == "busy" && n == 1:
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"slow down"}}`)
	case !body.Stream:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"n":%d,"text":%q}`, n, last)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		for _, word := range []string{last, fmt.Sprint(n)} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
			w.(http.Flusher).Flush()
		}
		if last == "cut" {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// item is one session with its trace.
type item struct {
	*replay.Session
	recorder *trace.Recorder
	client   http.RoundTripper
	url      string
}

func config(dir string, mode replay.Mode) replay.Config {
	return replay.Config{
		Mode: mode, Path: filepath.Join(dir, "c.yaml"), Display: "fixtures/c.yaml", RecordCommand: "echoeval record d.yaml --item i",
		Expect:     cassette.Header{Dataset: "d", Item: "i", Repeat: 1, Provider: "p", Vendor: "openai", Model: "m", Seed: 1, Hashes: map[string]string{"workspace": "aa", "agent": "bb"}},
		RecordedAt: start, Reproducible: true,
	}
}

func open(c replay.Config, live http.RoundTripper, url string) *item {
	GinkgoHelper()
	s, err := replay.Open(c)
	Expect(err).NotTo(HaveOccurred())
	return &item{s, trace.NewRecorder(s.Clock()), s.RoundTripper(live), url + "/v1/chat/completions"}
}

func (i *item) send(body string) (*http.Response, error) {
	GinkgoHelper()
	return i.sendBy(i.client, body)
}

func (i *item) sendBy(rt http.RoundTripper, body string) (*http.Response, error) {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(trace.WithRecorder(context.Background(), i.recorder), http.MethodPost, i.url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer placeholder")
	return rt.RoundTrip(req)
}

func (i *item) ask(body string) string {
	GinkgoHelper()
	resp, err := i.send(body)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func (i *item) exchanges() []trace.Exchange {
	var all []trace.Exchange
	for _, e := range i.recorder.Events() {
		if e.Exchange != nil {
			all = append(all, *e.Exchange)
		}
	}
	return all
}

func chat(stream bool, last string) string {
	return fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"system","content":"You answer."},{"role":"user","content":%q}]}`, stream, last)
}

// function is a tool made of a function.
type function struct {
	spec tool.Spec
	run  func(call tool.Call) (tool.Output, error)
	runs *int
}

func (f function) Spec() tool.Spec { return f.spec }

func (f function) Run(_ context.Context, call tool.Call) (tool.Output, error) {
	if f.runs != nil {
		*f.runs++
	}
	return f.run(call)
}

func echo(name string, effect tool.Effect, scope tool.Scope, runs *int) function {
	return function{tool.Spec{Name: name, Effect: effect, Scope: scope}, func(call tool.Call) (tool.Output, error) {
		return tool.Output{Result: conversation.JSON(`{"got": ` + string(call.Arguments) + `}`)}, nil
	}, runs}
}

func call(seq int, arguments string) tool.Call {
	return tool.Call{ID: fmt.Sprint(seq), Seq: seq, Arguments: conversation.JSON(arguments), At: start}
}

var _ = Describe("a session", func() {
	var (
		dir string
		v   *vendor
	)
	BeforeEach(func() { dir, v = GinkgoT().TempDir(), newVendor() })

	record := func(ask func(i *item)) {
		GinkgoHelper()
		i := open(config(dir, replay.Record), http.DefaultTransport, v.URL)
		ask(i)
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Recorded))
	}
	again := func(change func(*replay.Config)) *item {
		GinkgoHelper()
		c := config(dir, replay.Replay)
		if change != nil {
			change(&c)
		}
		return open(c, nil, v.URL)
	}

	It("records and replays, with the same bytes, times and trace", func() {
		var live []string
		var events []trace.Exchange
		var end time.Time
		record(func(i *item) {
			live = []string{i.ask(chat(true, "one")), i.ask(chat(true, "one")), i.ask(chat(false, "two"))}
			events, end = i.exchanges(), i.Clock().Now()
		})
		Expect(v.count).To(Equal(3))
		Expect(events).To(HaveLen(3))
		for range 2 {
			i := again(nil)
			Expect([]string{i.ask(chat(true, "one")), i.ask(chat(true, "one")), i.ask(chat(false, "two"))}).To(Equal(live))
			Expect(i.Clock().Now()).To(Equal(end))
			got := i.exchanges()
			for n := range got {
				Expect([]string{events[n].Source, got[n].Source}).To(Equal([]string{"recorded", "served"}))
				got[n].Source = "recorded"
			}
			Expect(got).To(Equal(events))
			outcome, err := i.Close(true)
			Expect(err).NotTo(HaveOccurred())
			Expect(outcome).To(Equal(replay.Outcome{State: replay.Fresh}))
		}
		Expect(v.count).To(Equal(3))
		Expect(end.Sub(start)).To(Equal(3 * 412 * time.Millisecond))
		Expect(events[0]).To(Equal(trace.Exchange{Attempt: 1, Method: "POST", URL: v.URL + "/v1/chat/completions", Status: 200, DurationMS: 412, TTFTMS: 90, Source: "recorded", Interaction: 1}))
		Expect(events[2].TTFTMS).To(BeEquivalentTo(-1))
	})

	It("records the same bytes each time", func() {
		ask := func(i *item) { i.ask(chat(true, "one")); i.ask(chat(false, "two")) }
		record(ask)
		first, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		v.count = 0
		record(ask)
		Expect(os.ReadFile(filepath.Join(dir, "c.yaml"))).To(Equal(first))
		Expect(string(first)).NotTo(Or(ContainSubstring("Server-Timing"), ContainSubstring("placeholder"), ContainSubstring("X-Request-Id")))
		r, err := recorder.New(filepath.Join(dir, "c"))
		Expect(err).NotTo(HaveOccurred())
		r.SkipRequestLatency = true
		req, err := http.NewRequest("POST", v.URL+"/v1/chat/completions", nil)
		Expect(err).NotTo(HaveOccurred())
		resp, err := r.RoundTrip(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(resp.Body)).To(ContainSubstring("[DONE]"))
	})

	It("says what a miss is about, once and for ever", func() {
		record(func(i *item) { i.ask(chat(true, "one")); i.ask(chat(true, "two")) })
		i := again(nil)
		i.ask(chat(true, "one"))
		changed := strings.Replace(chat(true, "two"), "You answer.", "You answer briefly.", 1)
		_, err := i.send(changed)
		var miss *replay.Miss
		Expect(errors.As(err, &miss)).To(BeTrue())
		Expect(*miss).To(Equal(replay.Miss{Item: "i", Request: 2, Method: "POST", URL: v.URL + "/v1/chat/completions", Class: cassette.ClassSystemPrompt, Path: "messages[0].content", Old: `"You answer."`, New: `"You answer briefly."`, Nearest: 2}))
		Expect(err).To(MatchError(`fixtures/c.yaml: request 2 (POST ` + v.URL + `/v1/chat/completions) is not in the recording: system-prompt at messages[0].content: recorded "You answer.", now "You answer briefly." (compared with interaction 2)`))
		Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		Expect(failure.Hints(err)).To(Equal([]string{"echoeval record d.yaml --item i"}))
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
		// What would match is not served any more.
		_, err2 := i.send(chat(true, "two"))
		Expect(err2).To(Equal(err))
		Expect(i.Miss()).To(Equal(err))
		outcome, err3 := i.Close(true)
		Expect(err3).To(Equal(err))
		Expect(outcome).To(Equal(replay.Outcome{State: replay.Stale, Miss: miss, Drift: []replay.Drifted{{Miss: miss, Action: replay.Fail}}}))
		last := i.exchanges()[1]
		Expect(last.Error).To(ContainSubstring("system-prompt"))
		Expect(v.count).To(Equal(2))
	})

	It("serves across the drift that it is told to serve, and counts it", func() {
		record(func(i *item) {
			i.ask(chat(true, "one"))
			i.ask(chat(true, "two"))
			_, err := i.Tool(echo("lookup", tool.Read, tool.External, nil)).Run(context.Background(), call(1, `{"a":1}`))
			Expect(err).NotTo(HaveOccurred())
		})
		edit := strings.NewReplacer("You answer.", "You answer briefly.", `"stream":true`, `"stream":true,"store":true`)
		serve := func(c *replay.Config) {
			c.Drift = map[cassette.Class]replay.Action{cassette.ClassSystemPrompt: replay.Warn, cassette.ClassToolArguments: replay.Serve, cassette.ClassInputFiles: replay.Serve}
			c.Expect.Hashes = map[string]string{"workspace": "cc"}
		}
		i := again(serve)
		Expect(i.ask(edit.Replace(chat(true, "one")))).To(ContainSubstring("one"))
		Expect(i.ask(edit.Replace(chat(true, "two")))).To(ContainSubstring("two"))
		out, err := i.Tool(echo("lookup", tool.Read, tool.External, nil)).Run(context.Background(), call(1, `{"a":2}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Result).To(Equal(conversation.JSON(`{"got": {"a":1}}`)))
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Fresh))
		var served []string
		for _, d := range outcome.Drift {
			served = append(served, fmt.Sprint(d.Miss.Nearest, " ", d.Miss.Class, " ", d.Action))
		}
		Expect(served).To(Equal([]string{"0 input-files serve", "1 system-prompt warn", "1 transport serve", "2 system-prompt warn", "2 transport serve", "3 tool-arguments serve"}))

		// What may be served does not take along what may not.
		i = again(serve)
		_, err = i.send(edit.Replace(chat(true, "another")))
		Expect(err).To(MatchError(ContainSubstring(`user-input at messages[1].content: recorded "one", now "another"`)))
		outcome, _ = i.Close(true)
		Expect(outcome.Drift).To(HaveLen(2))
		Expect(outcome.Drift[1].Action).To(Equal(replay.Fail))

		// By default only what the model does not see is served.
		i = again(nil)
		i.ask(strings.Replace(chat(true, "one"), `"stream":true`, `"stream":true,"store":true`, 1))
		Expect(i.Miss()).To(Succeed())
	})

	It("is not asked twice for what it does not have", func() {
		record(func(i *item) { i.ask(chat(true, "one")) })
		i := again(nil)
		retry := transport.Retry(transport.RetryConfig{Clock: i.Waiting()}, i.client)
		_, err := i.sendBy(retry, chat(true, "two"))
		var retried *transport.RetriedError
		Expect(errors.As(err, &retried)).To(BeFalse())
		Expect(errors.As(err, new(*replay.Miss))).To(BeTrue())
		Expect(i.exchanges()).To(HaveLen(1))
	})

	It("says when something is asked more often than recorded", func() {
		record(func(i *item) { i.ask(chat(true, "one")) })
		i := again(nil)
		i.ask(chat(true, "one"))
		_, err := i.send(chat(true, "one"))
		Expect(err).To(MatchError(ContainSubstring("is not in the recording: history; it was asked more often than recorded (compared with interaction 1)")))
	})

	It("records attempts as they come, and repeats them on its own clock", func() {
		c := config(dir, replay.Record)
		waits := &noWait{}
		c.Clock = waits
		i := open(c, http.DefaultTransport, v.URL)
		ask := func(i *item) {
			GinkgoHelper()
			resp, err := i.sendBy(transport.Retry(transport.RetryConfig{Clock: i.Waiting()}, i.client), chat(true, "busy"))
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.StatusCode).To(Equal(200))
			_, err = io.Copy(io.Discard, resp.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
		}
		ask(i)
		live := i.Clock().Now()
		_, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(waits.slept).To(Equal(2 * time.Second))
		i = again(nil)
		ask(i)
		Expect(i.Clock().Now()).To(Equal(live))
		Expect(live.Sub(start)).To(Equal(2*time.Second + 2*412*time.Millisecond))
		all := i.exchanges()
		Expect(all).To(HaveLen(2))
		Expect([]int{all[0].Attempt, all[0].Status, all[1].Attempt, all[1].Status}).To(Equal([]int{1, 429, 2, 200}))
	})

	It("serves a stream frame by frame, and a cut as a cut", func() {
		c := config(dir, replay.Record)
		i := open(c, http.DefaultTransport, v.URL)
		i.ask(chat(true, "one"))
		resp, err := i.send(chat(true, "cut"))
		Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(resp.Body)
		Expect(err).To(HaveOccurred())
		Expect(i.exchanges()[1].Error).NotTo(BeEmpty())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())

		i = again(nil)
		resp, err = i.send(chat(true, "one"))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.ContentLength).To(BeEquivalentTo(-1))
		var frames []string
		p := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(p)
			if n > 0 {
				frames = append(frames, string(p[:n]))
			}
			if err == io.EOF {
				break
			}
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(frames).To(HaveLen(3))
		Expect(frames[2]).To(Equal("data: [DONE]\n\n"))
		resp, err = i.send(chat(true, "cut"))
		Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(resp.Body)
		Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		Expect(string(data)).To(ContainSubstring("cut"))
		Expect(i.exchanges()[1].Error).To(Equal("unexpected EOF"))
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
	})

	It("takes a stream as whole at its terminal line, and only there", func() {
		read := func(lines int) *cassette.File {
			GinkgoHelper()
			i := open(config(dir, replay.Record), http.DefaultTransport, v.URL)
			resp, err := i.send(chat(true, "one"))
			Expect(err).NotTo(HaveOccurred())
			r := bufio.NewReaderSize(io.LimitReader(resp.Body, 1<<20), 16)
			for range lines {
				_, err := r.ReadString('\n')
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(resp.Body.Close()).To(Succeed())
			_, err = i.Close(true)
			Expect(err).NotTo(HaveOccurred())
			f, err := cassette.Load(filepath.Join(dir, "c.yaml"), "c.yaml")
			Expect(err).NotTo(HaveOccurred())
			return f
		}
		f := read(5)
		Expect(f.Interactions[0].Extra.Partial).To(BeFalse())
		Expect(f.Interactions[0].Response.Body).To(HaveSuffix("data: [DONE]\n\n"))
		Expect(read(1).Interactions[0].Extra.Partial).To(BeTrue())
	})

	It("marks what nobody read to the end, and keeps short replies whole", func() {
		i := open(config(dir, replay.Record), http.DefaultTransport, v.URL)
		resp, err := i.send(chat(false, "two"))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.Body.Close()).To(Succeed())
		_, err = i.send(chat(true, "one")) // forgotten
		Expect(err).NotTo(HaveOccurred())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		f, err := cassette.Load(filepath.Join(dir, "c.yaml"), "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Interactions[0].Extra.Partial).To(BeFalse())
		Expect(f.Interactions[0].Response.Body).To(Equal(`{"n":1,"text":"two"}`))
		Expect(f.Interactions[1].Extra.Partial).To(BeTrue())
	})

	It("keeps the old file until the new one is complete", func() {
		record(func(i *item) { i.ask(chat(true, "one")) })
		before, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		i := open(config(dir, replay.Record), http.DefaultTransport, v.URL)
		i.ask(chat(true, "two"))
		Expect(i.Close(false)).To(Equal(replay.Outcome{}))
		Expect(os.ReadFile(filepath.Join(dir, "c.yaml"))).To(Equal(before))
		Expect(os.ReadDir(dir)).To(HaveLen(1))
		_, err = i.Close(true)
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(os.ReadFile(filepath.Join(dir, "c.yaml"))).To(Equal(before))
	})

	It("leaves no place for a request that had no reply", func() {
		record(func(i *item) {
			_, err := i.sendBy(i.RoundTripper(failing{}), chat(true, "one"))
			Expect(err).To(MatchError("no route"))
			i.ask(chat(true, "one"))
			Expect(i.exchanges()[0].Error).To(Equal("no route"))
			Expect(i.exchanges()[1].Interaction).To(Equal(1))
		})
		i := again(nil)
		i.ask(chat(true, "one"))
		_, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
	})

	It("names what was left over", func() {
		record(func(i *item) {
			i.ask(chat(true, "one"))
			i.ask(chat(true, "two"))
			_, err := i.Tool(echo("lookup", tool.Read, tool.External, nil)).Run(context.Background(), call(1, `{}`))
			Expect(err).NotTo(HaveOccurred())
		})
		i := again(nil)
		i.ask(chat(true, "one"))
		outcome, err := i.Close(true)
		Expect(err).To(MatchError(`fixtures/c.yaml: 2 recorded interactions were not used: 2 (POST ` + v.URL + `/v1/chat/completions), 3 (TOOL tool:///lookup)`))
		Expect(outcome.State).To(Equal(replay.Stale))
		Expect(outcome.LeftOver).To(HaveLen(2))
		Expect(replay.CauseOf(err)).To(Equal(replay.LeftOver))
		Expect(failure.Hints(err)).To(ConsistOf("--allow-leftover lets it pass", "echoeval record d.yaml --item i"))

		i = again(func(c *replay.Config) { c.AllowLeftover = true })
		outcome, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Fresh))
		Expect(outcome.LeftOver).To(HaveLen(3))

		outcome, err = again(nil).Close(false)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.LeftOver).To(BeEmpty())
	})

	It("is stale when files changed that no request shows, and only then", func() {
		record(func(i *item) { i.ask(chat(true, "one")) })
		c := config(dir, replay.Replay)
		c.Expect.Hashes = map[string]string{"workspace": "cc", "agent": "dd"}
		_, err := replay.Open(c)
		var miss *replay.Miss
		Expect(errors.As(err, &miss)).To(BeTrue())
		Expect(miss.Class).To(Equal(cassette.ClassInputFiles))
		Expect(err).To(MatchError("fixtures/c.yaml: recorded for other input: input-files at workspace: recorded aa, now cc"))
		Expect(failure.Hints(err)).To(Equal([]string{"echoeval record d.yaml --item i"}))
		c.Expect.Hashes = map[string]string{"workspace": "aa", "agent": "dd", "new": "x"}
		_, err = replay.Open(c)
		Expect(err).NotTo(HaveOccurred())
	})

	It("tells a missing cassette from an unreadable one", func() {
		_, err := replay.Open(config(dir, replay.Replay))
		Expect(errors.Is(err, fs.ErrNotExist)).To(BeTrue())
		Expect(replay.CauseOf(err)).To(Equal(replay.Missing))
		Expect(failure.Hints(err)).To(Equal([]string{"echoeval record d.yaml --item i"}))
		Expect(os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("version https://git-lfs.github.com/spec/v1\n"), 0o600)).To(Succeed())
		_, err = replay.Open(config(dir, replay.Replay))
		Expect(replay.CauseOf(err)).To(Equal(replay.Unreadable))
		Expect(failure.Hints(err)).To(Equal([]string{"git lfs pull"}))
		_, err = replay.Open(replay.Config{Mode: "rehearse"})
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(replay.CauseOf(err)).To(BeEmpty())
		Expect(replay.CauseOf(nil)).To(BeEmpty())
	})

	It("keeps hidden values out of the file, reports where they leaked, and fills them in again", func() {
		hidden := func(c *replay.Config) {
			c.Redactions = []cassette.Redaction{{Name: "tenant_id", Value: "tenant-7f3a91"}}
		}
		c := config(dir, replay.Record)
		hidden(&c)
		i := open(c, http.DefaultTransport, v.URL)
		live := i.ask(chat(true, "for tenant-7f3a91"))
		Expect(i.exchanges()[0].Leaks).To(Equal([]string{"tenant_id"}))
		out, err := i.Tool(echo("lookup", tool.Read, tool.External, nil)).Run(context.Background(), call(1, `{"a":"tenant-7f3a91"}`))
		Expect(err).NotTo(HaveOccurred())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.ReadFile(c.Path)).NotTo(ContainSubstring("7f3a91"))

		i = again(hidden)
		Expect(i.ask(chat(true, "for tenant-7f3a91"))).To(Equal(live))
		served, err := i.Tool(echo("lookup", tool.Read, tool.External, nil)).Run(context.Background(), call(1, `{"a":"tenant-7f3a91"}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(served.Result).To(Equal(out.Result))
		Expect(i.exchanges()[0].Leaks).To(Equal([]string{"tenant_id"}))
		// Another value of the same name is the same request.
		i = again(func(c *replay.Config) {
			c.Redactions = []cassette.Redaction{{Name: "tenant_id", Value: "another-tenant"}}
		})
		Expect(i.ask(chat(true, "for another-tenant"))).To(ContainSubstring("for another-tenant"))
	})

	It("saves no secret, and puts the recording aside", func() {
		key := "sk-" + "proj-" + strings.Repeat("a1B2", 12)
		c := config(dir, replay.Record)
		c.Quarantine = filepath.Join(dir, "quarantine", "c.yaml")
		c.Secrets = &secret.Detector{Values: []secret.Value{{Name: "DB_PASSWORD", Value: "correct horse"}}}
		i := open(c, http.DefaultTransport, v.URL)
		i.ask(chat(true, "my key is "+key+" and correct horse"))
		outcome, err := i.Close(true)
		Expect(err).To(MatchError("fixtures/c.yaml: not saved: openai-key in messages[1].content of the request of interaction 1, and 1 more"))
		Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		Expect(failure.Hints(err)).To(HaveLen(1))
		Expect(outcome.Quarantined).To(BeTrue())
		Expect(c.Path).NotTo(BeAnExistingFile())
		info, err := os.Stat(c.Quarantine)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))
		Expect(os.ReadFile(c.Quarantine)).NotTo(Or(ContainSubstring(key), ContainSubstring("correct horse")))
	})

	It("in live mode keeps nothing and still tells the time", func() {
		i := open(config(dir, replay.Live), http.DefaultTransport, v.URL)
		i.ask(chat(true, "one"))
		out, err := i.Tool(echo("lookup", tool.Read, tool.External, nil)).Run(context.Background(), call(1, `{}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Source).To(Equal(tool.Ran))
		Expect(i.exchanges()[0].Source).To(Equal("live"))
		Expect(i.exchanges()[0].DurationMS).To(BeEquivalentTo(412))
		Expect(i.Close(true)).To(Equal(replay.Outcome{}))
		Expect(os.ReadDir(dir)).To(BeEmpty())
	})

	Describe("with tools", func() {
		It("goes on with the recorded result where drift in results is served", func() {
			result := `1`
			t := func() tool.Tool {
				return function{tool.Spec{Name: "t", Effect: tool.Read, Scope: tool.Workspace}, func(tool.Call) (tool.Output, error) {
					return tool.Output{Result: conversation.JSON(result)}, nil
				}, nil}
			}
			record(func(i *item) {
				_, err := i.Tool(t()).Run(context.Background(), call(1, `{}`))
				Expect(err).NotTo(HaveOccurred())
			})
			result = `2`
			i := again(func(c *replay.Config) {
				c.Drift = map[cassette.Class]replay.Action{cassette.ClassToolResult: replay.Serve}
			})
			out, err := i.Tool(t()).Run(context.Background(), call(1, `{}`))
			Expect(err).NotTo(HaveOccurred())
			Expect([]string{string(out.Result), string(out.Source)}).To(Equal([]string{"1", "served"}))
			outcome, err := i.Close(true)
			Expect(err).NotTo(HaveOccurred())
			Expect(outcome.Drift).To(HaveLen(1))
		})

		It("runs those of the workspace again and serves the others", func() {
			runs := map[string]*int{}
			use := func(i *item) []tool.Output {
				GinkgoHelper()
				var outputs []tool.Output
				seq := 0
				for _, t := range []struct {
					effect tool.Effect
					scope  tool.Scope
				}{{tool.Pure, tool.External}, {tool.Read, tool.Workspace}, {tool.Write, tool.Workspace}, {tool.Read, tool.External}, {tool.Irreversible, tool.External}} {
					seq++
					name := string(t.effect) + "-" + string(t.scope)
					if runs[name] == nil {
						runs[name] = new(int)
					}
					out, err := i.Tool(echo(name, t.effect, t.scope, runs[name])).Run(context.Background(), call(seq, `{"b":1, "a":2}`))
					Expect(err).NotTo(HaveOccurred())
					outputs = append(outputs, out)
				}
				return outputs
			}
			var recorded []tool.Output
			record(func(i *item) { recorded = use(i) })
			i := again(nil)
			replayed := use(i)
			_, err := i.Close(true)
			Expect(err).NotTo(HaveOccurred())
			for n, out := range replayed {
				Expect(out.Result).To(Equal(recorded[n].Result))
				Expect(out.Result).To(Equal(conversation.JSON(`{"got": {"b":1, "a":2}}`)), "to the byte")
				Expect(recorded[n].Source).To(Equal(tool.Ran))
			}
			Expect([]tool.Source{replayed[0].Source, replayed[1].Source, replayed[2].Source, replayed[3].Source, replayed[4].Source}).To(Equal([]tool.Source{tool.Ran, tool.Ran, tool.Ran, tool.Served, tool.Served}))
			counts := map[string]int{}
			for name, n := range runs {
				counts[name] = *n
			}
			Expect(counts).To(Equal(map[string]int{"pure-external": 2, "read-workspace": 2, "write-workspace": 2, "read-external": 1, "irreversible-external": 1}))
		})

		It("keeps everything that an output says", func() {
			outputs := []tool.Output{
				tool.Text("line\n\"two\" <&>"), tool.Failed("no such file"), {Result: "null"}, {Result: `[1, 2.50]`, Meta: `{"x": 1}`, Flow: tool.Pause, Paths: []string{"a.txt", "b/c.txt"}},
			}
			use := func(i *item) (all []tool.Output) {
				GinkgoHelper()
				for n := range outputs {
					out, err := i.Tool(function{tool.Spec{Name: "t", Effect: tool.Write, Scope: tool.External}, func(tool.Call) (tool.Output, error) { return outputs[n], nil }, nil}).Run(context.Background(), call(n+1, fmt.Sprintf(`{"n":%d}`, n)))
					Expect(err).NotTo(HaveOccurred())
					all = append(all, out)
				}
				return all
			}
			var recorded []tool.Output
			record(func(i *item) { recorded = use(i) })
			for n, out := range use(again(nil)) {
				want := recorded[n]
				want.Source = tool.Served
				Expect(out).To(Equal(want))
			}
		})

		It("records errors, crashes and results that are no JSON as the model sees them", func() {
			broken := []func(tool.Call) (tool.Output, error){
				func(tool.Call) (tool.Output, error) { return tool.Output{}, errors.New("disk is full") },
				func(tool.Call) (tool.Output, error) { panic("x") },
				func(tool.Call) (tool.Output, error) { return tool.Output{Result: "{"}, nil },
				func(tool.Call) (tool.Output, error) { return tool.Output{}, nil },
			}
			use := func(i *item) (results []string) {
				GinkgoHelper()
				for n, run := range broken {
					out, err := i.Tool(function{tool.Spec{Name: "t", Effect: tool.Read, Scope: tool.Workspace}, run, nil}).Run(context.Background(), call(n+1, fmt.Sprintf(`{"n":%d}`, n)))
					Expect(err).NotTo(HaveOccurred())
					results = append(results, fmt.Sprint(out.IsError, out.Result))
				}
				return results
			}
			record(func(i *item) {
				Expect(use(i)).To(Equal([]string{`true"Error running tool: disk is full"`, `true"Error running tool: it crashed"`, `true"Error running tool: its result is not valid JSON"`, `falsenull`}))
			})
			use(again(nil))
		})

		It("finds drift in results and arguments", func() {
			result := `{"rows": [1,2]}`
			t := func() tool.Tool {
				return function{tool.Spec{Name: "read_file", Effect: tool.Read, Scope: tool.Workspace}, func(tool.Call) (tool.Output, error) {
					return tool.Output{Result: conversation.JSON(result)}, nil
				}, nil}
			}
			record(func(i *item) {
				i.ask(chat(true, "one"))
				_, err := i.Tool(t()).Run(context.Background(), call(1, `{"path":"a"}`))
				Expect(err).NotTo(HaveOccurred())
			})
			i := again(nil)
			_, err := i.Tool(t()).Run(context.Background(), call(1, `{"path":"b"}`))
			Expect(err).To(MatchError(`fixtures/c.yaml: call 1 (tool:///read_file) is not in the recording: tool-arguments at path: recorded "a", now "b" (compared with interaction 2)`))
			_, err2 := i.Tool(t()).Run(context.Background(), call(1, `{"path":"a"}`))
			Expect(err2).To(Equal(err))

			i = again(nil)
			result = `{"rows": [1,3]}`
			_, err = i.Tool(t()).Run(context.Background(), call(1, `{"path":"a"}`))
			Expect(err).To(MatchError(`fixtures/c.yaml: call 1 (tool:///read_file) gave another result than recorded: tool-result at output.rows[1]: recorded 2, now 3 (compared with interaction 2)`))
			_, err = i.send(chat(true, "one"))
			Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
			outcome, _ := i.Close(true)
			Expect(outcome.Miss.Class).To(Equal(cassette.ClassToolResult))
		})

		It("serves no recorded read across a write", func() {
			// Each read tells how often was written before.
			writes := 0
			tools := func(i *item) (read, write func(seq int) (tool.Output, error)) {
				r := i.Tool(function{tool.Spec{Name: "count", Effect: tool.Read, Scope: tool.External}, func(tool.Call) (tool.Output, error) {
					return tool.Output{Result: conversation.JSON(fmt.Sprint(writes))}, nil
				}, nil})
				w := i.Tool(function{tool.Spec{Name: "book", Effect: tool.Write, Scope: tool.External}, func(tool.Call) (tool.Output, error) { writes++; return tool.Text("ok"), nil }, nil})
				return func(seq int) (tool.Output, error) { return r.Run(context.Background(), call(seq, `{}`)) },
					func(seq int) (tool.Output, error) { return w.Run(context.Background(), call(seq, `{}`)) }
			}
			record(func(i *item) {
				read, write := tools(i)
				for seq, f := range []func(int) (tool.Output, error){read, write, read} {
					_, err := f(seq + 1)
					Expect(err).NotTo(HaveOccurred())
				}
			})
			read, write := tools(again(nil))
			_, err := write(1)
			Expect(err).NotTo(HaveOccurred())
			out, err := read(2)
			Expect(err).NotTo(HaveOccurred())
			Expect(out.Result).To(Equal(conversation.JSON("1")), "not the read from before the write")
			_, err = read(3)
			Expect(err).To(MatchError(ContainSubstring("its recordings lie on the other side of a write")))

			read, write = tools(again(nil))
			for n, want := range []string{"0", "", "1"} {
				f := read
				if want == "" {
					f = write
				}
				out, err := f(n + 1)
				Expect(err).NotTo(HaveOccurred())
				if want != "" {
					Expect(out.Result).To(Equal(conversation.JSON(want)))
				}
			}
			read, _ = tools(again(nil))
			_, err = read(1)
			Expect(err).NotTo(HaveOccurred())
			_, err = read(2)
			Expect(err).To(MatchError(ContainSubstring("other side of a write")), "the write is still to come")
		})

		It("stores calls that run side by side in call order, and gives each its own", func() {
			const calls = 16
			run := func(i *item, order []int) []string {
				results := make([]string, calls)
				var group sync.WaitGroup
				t := i.Tool(function{tool.Spec{Name: "draw", Effect: tool.Read, Scope: tool.External}, func(c tool.Call) (tool.Output, error) {
					time.Sleep(time.Duration(calls-c.Seq) * 100 * time.Microsecond)
					return tool.Output{Result: conversation.JSON(fmt.Sprint(c.Seq))}, nil
				}, nil})
				for _, n := range order {
					group.Go(func() {
						out, err := t.Run(context.Background(), call(n+1, `{"same":true}`))
						if err == nil {
							results[n] = string(out.Result)
						}
					})
				}
				group.Wait()
				return results
			}
			var order []int
			for n := range calls {
				order = append(order, n)
			}
			var recorded []string
			record(func(i *item) { i.ask(chat(true, "one")); recorded = run(i, order); i.ask(chat(true, "two")) })
			f, err := cassette.Load(filepath.Join(dir, "c.yaml"), "c.yaml")
			Expect(err).NotTo(HaveOccurred())
			for n := range calls {
				Expect(f.Interactions[n+1].Extra).To(Equal(cassette.Extra{Seq: n + 1, Effect: "read", Scope: "external", Occurrence: n + 1}))
			}
			slices.Reverse(order)
			i := again(nil)
			i.ask(chat(true, "one"))
			Expect(run(i, order)).To(Equal(recorded))
			i.ask(chat(true, "two"))
			_, err = i.Close(true)
			Expect(err).NotTo(HaveOccurred())
		})
	})
})

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }

// noWait is a clock that stands still and counts what it was asked to wait.
type noWait struct{ slept time.Duration }

func (*noWait) Now() time.Time { return start }

func (c *noWait) Sleep(_ context.Context, d time.Duration) error { c.slept += d; return nil }
