package emulator_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/echoeval/echoeval/harness/emulator"
)

func echo(b *testing.B) emulator.Script {
	script, err := emulator.Echo()
	if err != nil {
		b.Fatal(err)
	}
	return script
}

const benchBody = `{"model":"gpt-4o-mini","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is the capital of France?"}],"stream":true,"stream_options":{"include_usage":true}}`

// nowhere is a ResponseWriter that keeps nothing.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(int)             {}

// BenchmarkHandler measures one streamed reply without the network.
func BenchmarkHandler(b *testing.B) {
	h, err := emulator.New(echo(b), emulator.Options{})
	if err != nil {
		b.Fatal(err)
	}
	body := strings.NewReader(benchBody)
	r := request(benchBody)
	w := &nowhere{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(benchBody)
		r.Body = io.NopCloser(body)
		h.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// BenchmarkServe measures streamed replies over loopback at concurrency 16; the client's work is part of the figure.
func BenchmarkServe(b *testing.B) {
	running, err := emulator.Start(b.Context(), echo(b), emulator.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = running.Close() }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				r, err := http.NewRequest(http.MethodPost, running.URL+"/v1/chat/completions", strings.NewReader(benchBody))
				if err != nil {
					b.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+key)
				reply, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, reply.Body)
				_ = reply.Body.Close()
				if reply.StatusCode != http.StatusOK {
					b.Error(reply.Status)
				}
			}
		})
	}
	wait.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
