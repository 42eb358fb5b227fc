package transport_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/transport"
)

// telling is a vendor whose bucket of requests is emptied by each and fills evenly. Its replies tell what is left.
type telling struct {
	size, perSecond float64
	tell            func(h http.Header, size, left float64, full time.Duration)
	takes           func() time.Duration

	mu             sync.Mutex
	left           float64
	at             time.Time
	good, refusals int
}

func (v *telling) RoundTrip(*http.Request) (*http.Response, error) {
	v.mu.Lock()
	now := time.Now()
	if v.at.IsZero() {
		v.left = v.size
	} else {
		v.left = min(v.size, v.left+now.Sub(v.at).Seconds()*v.perSecond)
	}
	v.at = now
	status, header := http.StatusOK, http.Header{}
	if v.left < 1 {
		status = http.StatusTooManyRequests
		v.refusals++
	} else {
		v.left--
		v.good++
	}
	v.tell(header, v.size, math.Floor(v.left), time.Duration((v.size-v.left)/v.perSecond*float64(time.Second)))
	wait := v.takes()
	v.mu.Unlock()
	time.Sleep(wait)
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody}, nil
}

func tellOpenAI(h http.Header, size, left float64, full time.Duration) {
	h.Set("X-Ratelimit-Limit-Requests", fmt.Sprint(size))
	h.Set("X-Ratelimit-Remaining-Requests", fmt.Sprint(left))
	h.Set("X-Ratelimit-Reset-Requests", full.Round(time.Millisecond).String())
}

func tellAnthropic(h http.Header, size, left float64, full time.Duration) {
	h.Set("Anthropic-Ratelimit-Requests-Limit", fmt.Sprint(size))
	h.Set("Anthropic-Ratelimit-Requests-Remaining", fmt.Sprint(left))
	h.Set("Anthropic-Ratelimit-Requests-Reset", time.Now().Add(full).Truncate(time.Second).Add(time.Second).UTC().Format(time.RFC3339))
}

func TestLimiterSlowsDownBeforeItIsRefused(t *testing.T) {
	for name, tell := range map[string]func(http.Header, float64, float64, time.Duration){"OpenAI": tellOpenAI, "Anthropic": tellAnthropic} {
		for _, workers := range []int{1, 8, 32} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := NewWithT(t)
					v := &telling{size: 60, perSecond: 1, tell: tell, takes: about(4, 300*time.Millisecond)}
					rt := transport.ForModel("m", transport.Limiter(transport.Limits{Concurrency: workers, Clock: clock.Wall{}}, v))
					work(t, rt, workers, 10*time.Minute)
					t.Logf("%d answers, %d refusals", v.good, v.refusals)
					g.Expect(v.good).To(BeNumerically(">", 0.85*(60+600)), "it uses most of what there is")
					g.Expect(v.refusals).To(BeNumerically("<=", 3))
				})
			})
		}
	}
}

// Without the headers the same vendor refuses many: the spec above is not true for another reason.
func TestLimiterIsRefusedWhereRepliesTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &telling{size: 60, perSecond: 1, tell: func(http.Header, float64, float64, time.Duration) {}, takes: about(4, 300*time.Millisecond)}
		work(t, transport.ForModel("m", transport.Limiter(transport.Limits{Concurrency: 8, Clock: clock.Wall{}}, v)), 8, 10*time.Minute)
		NewWithT(t).Expect(v.refusals).To(BeNumerically(">", 20))
	})
}

// told is a vendor that gives the same headers with each reply.
func told(pairs ...string) http.RoundTripper {
	return roundTrip(func(*http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody}, nil
	})
}

// began gives when each of the requests began, after the first; bodies have that many bytes.
func began(t *testing.T, rt http.RoundTripper, bytes, requests int) (times []time.Duration) {
	t.Helper()
	first := time.Now()
	for range requests {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.example/", strings.NewReader(strings.Repeat("x", bytes)))
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		times = append(times, time.Since(first))
	}
	return times
}

func TestLimiterReadsWhatIsLeft(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		bytes int
		tells []string
		want  []time.Duration
	}{
		"nothing is left and comes back evenly":      {0, []string{"X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m0s"}, []time.Duration{0, s, 2 * s}},
		"nothing is left of a limit of unknown size": {0, []string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "5"}, []time.Duration{0, 5 * s, 10 * s}},
		"one is left":                                  {0, []string{"X-Ratelimit-Remaining-Requests", "1", "X-Ratelimit-Reset-Requests", "5"}, []time.Duration{0, 0, 0}},
		"the text is larger than what is left":         {4000, []string{"X-Ratelimit-Limit-Tokens", "1200", "X-Ratelimit-Remaining-Tokens", "200", "X-Ratelimit-Reset-Tokens", "10s"}, []time.Duration{0, 8 * s, 16 * s}},
		"the text is smaller":                          {400, []string{"X-Ratelimit-Limit-Tokens", "1200", "X-Ratelimit-Remaining-Tokens", "200", "X-Ratelimit-Reset-Tokens", "10s"}, []time.Duration{0, 0, 0}},
		"the text is larger than the limit":            {8000, []string{"X-Ratelimit-Limit-Tokens", "1000", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "10s"}, []time.Duration{0, 10 * s, 20 * s}},
		"no token of a reply is left":                  {0, []string{"Anthropic-Ratelimit-Output-Tokens-Remaining", "0", "Anthropic-Ratelimit-Output-Tokens-Reset", "2000-01-01T00:00:07Z"}, []time.Duration{0, 7 * s, 7 * s}},
		"it takes longer than a minute":                {0, []string{"X-Ratelimit-Limit-Requests", "1", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1h"}, []time.Duration{0, 0, 0}},
		"nobody says until when":                       {0, []string{"X-Ratelimit-Remaining-Requests", "0"}, []time.Duration{0, 0, 0}},
		"a clock that is behind":                       {0, []string{"Anthropic-Ratelimit-Requests-Remaining", "0", "Anthropic-Ratelimit-Requests-Reset", "2000-01-01T01:00:00Z"}, []time.Duration{0, 0, 0}},
		"a clock that is ahead":                        {0, []string{"Anthropic-Ratelimit-Requests-Remaining", "0", "Anthropic-Ratelimit-Requests-Reset", "1999-01-01T01:00:00Z"}, []time.Duration{0, 0, 0}},
		"numbers that are none":                        {0, []string{"X-Ratelimit-Limit-Requests", "NaN", "X-Ratelimit-Remaining-Requests", "-1", "X-Ratelimit-Reset-Requests", "soon"}, []time.Duration{0, 0, 0}},
		"numbers without end":                          {0, []string{"X-Ratelimit-Limit-Requests", "1e400", "X-Ratelimit-Remaining-Requests", "1e300", "X-Ratelimit-Reset-Requests", "1e300"}, []time.Duration{0, 0, 0}},
		"nothing is left, and the reset is not a time": {0, []string{"X-Ratelimit-Limit-Requests", "9", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "\u202e"}, []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := transport.ForModel("m", transport.Limiter(transport.Limits{Clock: clock.Wall{}}, told(test.tells...)))
				NewWithT(t).Expect(began(t, rt, test.bytes, 3)).To(Equal(test.want))
			})
		})
	}
}

func TestLimiterKeepsModelsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		l := transport.Limiter(transport.Limits{Concurrency: 1, Clock: clock.Wall{}}, roundTrip(func(req *http.Request) (*http.Response, error) {
			h := http.Header{}
			if req.URL.Path == "/a" {
				tellOpenAI(h, 60, 0, time.Minute)
			}
			return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody}, nil
		}))
		ask := func(rt http.RoundTripper, path string) time.Duration {
			start := time.Now()
			resp, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example"+path, nil))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Body.Close()).To(Succeed())
			return time.Since(start)
		}
		a, b := transport.ForModel("a", l), transport.ForModel("b", l)
		g.Expect(ask(a, "/a")).To(BeZero())
		var group sync.WaitGroup
		var waited time.Duration
		group.Go(func() { waited = ask(a, "/a") })
		synctest.Wait()
		g.Expect(ask(b, "/b")).To(BeZero(), "what waits for its own model keeps nothing of the other's")
		g.Expect(ask(l, "/a")).To(BeZero(), "of which model nobody says is not kept back")
		group.Wait()
		g.Expect(waited).To(Equal(time.Second))
	})
}

func TestLimiterKeepsNothingForThoseWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rt := transport.ForModel("m", transport.Limiter(transport.Limits{Concurrency: 1, Clock: clock.Wall{}}, told("X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "1", "X-Ratelimit-Reset-Requests", "59s")))
		first, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://a.example/", nil)); err == nil {
				t.Error("the only place is taken")
			}
		})
		synctest.Wait()
		cancel()
		group.Wait()
		g.Expect(first.Body.Close()).To(Succeed())
		start := time.Now()
		second, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second.Body.Close()).To(Succeed())
		g.Expect(time.Since(start)).To(BeZero(), "the request that is left is still there")
	})
}
