package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"

	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

const chatURL = "https://api.openai.com/v1/chat/completions"

func big(n int) string {
	return fmt.Sprintf(`{"messages":[{"content":"%s","role":"system"},{"content":"question %d","role":"user"}],"model":"m"}`, strings.Repeat("You answer from the notes and from nothing else. ", 400), n)
}

func post(b *testing.B, body string) *http.Request {
	b.Helper()
	req, err := http.NewRequest(http.MethodPost, chatURL, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// BenchmarkLookup finds one of n interactions of 20 KB, out of order: ours by key, the canonical form of the request included, and go-vcr's with a matcher that compares bodies, reading the request's body once for each candidate as its documentation shows.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		dir := b.TempDir()
		conf := config(dir, replay.Replay)
		file := &cassette.File{Header: conf.Expect}
		file.Header.RecordedAt = start
		bodies := make([]string, n)
		theirs := vcr.New("x")
		theirs.ReplayableInteractions = true
		theirs.Matcher = func(r *http.Request, i vcr.Request) bool {
			if r.Method != i.Method || r.URL.String() != i.URL {
				return false
			}
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return false
			}
			r.Body = io.NopCloser(bytes.NewReader(data))
			return string(data) == i.Body
		}
		for i := range n {
			bodies[i] = big(i)
			r, _ := cassette.Canonical(http.MethodPost, chatURL, http.Header{"Content-Type": {"application/json"}}, []byte(bodies[i]), nil)
			file.Interactions = append(file.Interactions, cassette.Interaction{Request: r, Response: cassette.Response{Body: "{}", Status: "200 OK", Code: 200}})
			theirs.AddInteraction(&vcr.Interaction{Request: vcr.Request{Method: r.Method, URL: r.URL, Body: bodies[i]}, Response: vcr.Response{Body: "{}"}})
		}
		if err := cassette.Save(conf.Path, "c.yaml", file); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("ours/%d", n), func(b *testing.B) {
			var rt http.RoundTripper
			used := n
			for b.Loop() {
				if used == n {
					b.StopTimer()
					s, err := replay.Open(conf)
					if err != nil {
						b.Fatal(err)
					}
					rt, used = s.RoundTripper(nil), 0
					b.StartTimer()
				}
				resp, err := rt.RoundTrip(post(b, bodies[(used*7919)%n]))
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
				used++
			}
		})
		if n > 1000 {
			continue
		}
		b.Run(fmt.Sprintf("go-vcr/%d", n), func(b *testing.B) {
			used := 0
			for b.Loop() {
				if _, err := theirs.GetInteraction(post(b, bodies[(used*7919)%n])); err != nil {
					b.Fatal(err)
				}
				used++
			}
		})
	}
}

// BenchmarkFirstChunk measures the wait for the first bytes of a stream, over loopback, with and without the recorder.
func BenchmarkFirstChunk(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 20 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"word %d\"}}]}\n\n", n)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	body := big(1)
	for _, mode := range []string{"plain", "recorded"} {
		b.Run(mode, func(b *testing.B) {
			rt := http.DefaultTransport
			if mode == "recorded" {
				s, err := replay.Open(config(b.TempDir(), replay.Record))
				if err != nil {
					b.Fatal(err)
				}
				rt = s.RoundTripper(rt)
			}
			var wait time.Duration
			p := make([]byte, 4096)
			for b.Loop() {
				req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := resp.Body.Read(p); n == 0 {
					b.Fatal(err)
				}
				wait += time.Since(began)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			b.ReportMetric(float64(wait.Microseconds())/float64(b.N), "µs/first")
		})
	}
}

// BenchmarkReplay replays 1,000 cassettes of three model steps and two tool calls on all cores, requests, bodies and outputs included, and beside it lets go-vcr only load the files.
func BenchmarkReplay(b *testing.B) {
	const items = 1000
	dir := b.TempDir()
	words := strings.Repeat("Read before you write; say what you did. ", 8)
	requests := func(item int) []string {
		messages := fmt.Sprintf(`{"role":"system","content":"%s"},{"role":"user","content":"What does note %d say?"}`, words, item)
		var all []string
		for step := range 3 {
			all = append(all, fmt.Sprintf(`{"model":"gpt-4o-mini","stream":true,"stream_options":{"include_usage":true},"messages":[%s],"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file","parameters":{"type":"object","properties":{"path":{"type":"string","description":"path in the workspace"},"offset":{"type":"integer"}},"required":["path"]}}}]}`, messages))
			messages += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"%d\"}"}}]},{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, step, step, step, strings.Repeat("the text of a note, ", 10))
		}
		return all
	}
	reader := echo("read_file", tool.Read, tool.External, nil)
	run := func(s *replay.Session, live http.RoundTripper, bodies []string) error {
		rt, t := s.RoundTripper(live), s.Tool(reader)
		for step, body := range bodies {
			req, err := http.NewRequest(http.MethodPost, chatURL, strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := rt.RoundTrip(req)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				return err
			}
			_ = resp.Body.Close()
			if step < 2 {
				if _, err := t.Run(req.Context(), call(step+1, fmt.Sprintf(`{"path":"%d"}`, step))); err != nil {
					return err
				}
			}
		}
		_, err := s.Close(true)
		return err
	}
	var stream strings.Builder
	for chunk := range 10 {
		fmt.Fprintf(&stream, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d of it\"},\"finish_reason\":null}]}\n\n", chunk)
	}
	stream.WriteString("data: [DONE]\n\n")
	live := answer(stream.String())
	conf := func(item int, mode replay.Mode) replay.Config {
		c := config(dir, mode)
		c.Path = filepath.Join(dir, fmt.Sprintf("%d.yaml", item))
		return c
	}
	bodies := make([][]string, items)
	for item := range items {
		bodies[item] = requests(item)
		s, err := replay.Open(conf(item, replay.Record))
		if err != nil {
			b.Fatal(err)
		}
		if err := run(s, live, bodies[item]); err != nil {
			b.Fatal(err)
		}
	}
	info, err := os.Stat(conf(0, replay.Record).Path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d files of %d bytes", items, info.Size())
	each := func(b *testing.B, do func(item int) error) {
		for b.Loop() {
			var group sync.WaitGroup
			workers := runtime.GOMAXPROCS(0)
			for w := range workers {
				group.Go(func() {
					for item := w; item < items; item += workers {
						if err := do(item); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		}
	}
	b.Run("ours-whole-replay", func(b *testing.B) {
		b.ReportAllocs()
		each(b, func(item int) error {
			s, err := replay.Open(conf(item, replay.Replay))
			if err != nil {
				return err
			}
			return run(s, nil, bodies[item])
		})
	})
	b.Run("go-vcr-load-only", func(b *testing.B) {
		each(b, func(item int) error {
			_, err := vcr.Load(filepath.Join(dir, fmt.Sprint(item)))
			return err
		})
	})
}

// answer is a live transport that always gives the same stream.
type answer string

func (a answer) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(a))), Request: req}, nil
}
