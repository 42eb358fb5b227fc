package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/transport"
)

// server is a vendor that answers so many requests a second, saved up to as many, and refuses the others.
type server struct {
	perSecond float64
	down      bool
	takes     func() time.Duration // an answer
	header    func(wait time.Duration) http.Header

	mu             sync.Mutex
	tokens         float64
	filled         time.Time
	running, most  int
	good, refusals int
	began          []time.Time
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	now := time.Now()
	if s.filled.IsZero() {
		s.tokens = s.perSecond
	} else {
		s.tokens = min(s.perSecond, s.tokens+now.Sub(s.filled).Seconds()*s.perSecond)
	}
	s.filled = now
	s.running++
	s.most = max(s.most, s.running)
	s.began = append(s.began, now)
	status, header := 200, http.Header{}
	if s.tokens < 1 || s.down {
		status = 429
		s.refusals++
		if s.header != nil {
			header = s.header(time.Duration((1 - s.tokens) / s.perSecond * float64(time.Second)))
		}
	} else {
		s.tokens--
		s.good++
	}
	wait := s.takes()
	s.mu.Unlock()
	if status != 200 {
		wait = 10 * time.Millisecond
	}
	time.Sleep(wait)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(&leaving{func() { s.mu.Lock(); s.running--; s.mu.Unlock() }})}, nil
}

// reset forgets what was counted.
func (s *server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good, s.refusals, s.most, s.began = 0, 0, 0, nil
}

// work lets workers ask until the time is over; a refused one asks again.
func work(t *testing.T, rt http.RoundTripper, workers int, d time.Duration) {
	t.Helper()
	until := time.Now().Add(d)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for time.Now().Before(until) {
				resp, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	group.Wait()
}

// about is a wait that differs, the same for the same seed.
func about(seed uint64, d time.Duration) func() time.Duration {
	random := rand.New(rand.NewPCG(seed, 1))
	return func() time.Duration { return time.Duration((0.5 + random.Float64()) * float64(d)) }
}

func TestLimiterConvergesToWhatTheVendorTakes(t *testing.T) {
	hints := map[string]func(time.Duration) http.Header{
		"no hint": nil,
		"retry-after-ms": func(d time.Duration) http.Header {
			return http.Header{"Retry-After-Ms": {fmt.Sprint(d.Milliseconds() + 1)}}
		},
		"reset": func(d time.Duration) http.Header {
			return http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {(d + time.Millisecond).String()}}
		},
	}
	for name, hint := range hints {
		for _, perSecond := range []float64{2, 5, 20} {
			for _, workers := range []int{4, 32} {
				t.Run(fmt.Sprintf("%s, %g a second, %d workers", name, perSecond, workers), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						g := NewWithT(t)
						s := &server{perSecond: perSecond, takes: about(7, 100*time.Millisecond), header: hint}
						rt := transport.Limiter(transport.Limits{Concurrency: workers, Clock: clock.Wall{}}, s)
						work(t, rt, workers, 30*time.Second) // it learns
						s.reset()
						work(t, rt, workers, 5*time.Minute)
						t.Logf("%d answers, %d refusals, at most %d at once", s.good, s.refusals, s.most)
						g.Expect(float64(s.good)).To(BeNumerically(">", 0.7*300*min(perSecond, float64(workers)*10)), "it uses most of what there is")
						g.Expect(float64(s.refusals)).To(BeNumerically("<", 0.06*float64(s.good)), "and is seldom refused")
						g.Expect(s.most).To(BeNumerically("<=", workers))
					})
				})
			}
		}
	}
}

func TestLimiterIsTheSameForTheSameSeed(t *testing.T) {
	var runs [2]string
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			s := &server{perSecond: 5, takes: about(3, 80*time.Millisecond)}
			began := time.Now()
			// One worker, so that nothing depends on who of two comes first at the same time.
			work(t, transport.Limiter(transport.Limits{Concurrency: 8, Clock: clock.Wall{}}, s), 1, time.Minute)
			for _, at := range s.began {
				runs[i] += at.Sub(began).String() + " "
			}
		})
	}
	NewWithT(t).Expect(runs[0]).To(And(Equal(runs[1]), ContainSubstring("s ")))
}

func TestLimiterRecoversAfterABurstOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &server{perSecond: 1e6, takes: about(5, 500*time.Millisecond)}
		rt := transport.Limiter(transport.Limits{Concurrency: 16, Clock: clock.Wall{}}, s)
		work(t, rt, 16, 30*time.Second)
		before := float64(s.good) / 30
		s.down = true
		s.reset()
		work(t, rt, 16, 5*time.Second)
		g.Expect(s.refusals).To(BeNumerically(">", 50), "an outage is told at once")
		s.down = false
		work(t, rt, 16, 2*time.Minute)
		s.reset()
		work(t, rt, 16, 30*time.Second)
		g.Expect(float64(s.good) / 30).To(BeNumerically(">", 0.9*before))
		g.Expect(s.refusals).To(BeZero())
	})
}

// A vendor may refuse for reasons of its own. Going slower and slower would not help it, and the run would never end.
func TestLimiterDoesNotCrawlWhereRefusalsDoNotDependOnThePace(t *testing.T) {
	for _, pause := range []time.Duration{0, 2 * time.Second} {
		t.Run(fmt.Sprintf("one request in twelve, %s to wait", pause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var mu sync.Mutex
				takes := about(11, 700*time.Millisecond)
				asked, good := 0, 0
				rt := transport.Limiter(transport.Limits{Concurrency: 16, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
					mu.Lock()
					asked++
					refused, wait := asked%12 == 0, takes()
					if !refused {
						good++
					}
					mu.Unlock()
					if refused {
						header := http.Header{}
						if pause > 0 {
							header.Set("Retry-After-Ms", fmt.Sprint(pause.Milliseconds()))
						}
						return &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: http.NoBody}, nil
					}
					time.Sleep(wait)
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
				}))
				work(t, rt, 16, 5*time.Minute)
				good = 0
				work(t, rt, 16, 5*time.Minute)
				t.Logf("%d answers", good)
				g.Expect(float64(good)/300).To(BeNumerically(">", 1), "a second, of about three that the pauses leave with two at once")
			})
		})
	}
}

func TestLimiterNeverExceedsItsBound(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			random := rand.New(rand.NewPCG(seed, 2))
			limit, workers := 1+random.IntN(8), 1+random.IntN(24)
			var mu sync.Mutex
			chance := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
			running, most, sent := 0, 0, 0
			leave := func() { mu.Lock(); running--; mu.Unlock() }
			rt := transport.Limiter(transport.Limits{Concurrency: limit, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
				mu.Lock()
				running++
				sent++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Duration(chance(500)) * time.Millisecond)
				if chance(10) == 0 {
					leave()
					return nil, errors.New("reset")
				}
				header := http.Header{}
				if chance(3) == 0 {
					header.Set("Retry-After-Ms", fmt.Sprint(chance(3000)))
				}
				return &http.Response{StatusCode: []int{200, 200, 200, 500, 429, 503, 529}[chance(7)], Header: header, Body: io.NopCloser(&leaving{leave})}, nil
			}))
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(chance(5000))*time.Millisecond)
						resp, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://a.example/", nil))
						if err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							_ = resp.Body.Close()
						}
						cancel()
					}
				})
			}
			group.Wait()
			g.Expect(sent).To(BeNumerically(">", 0))
			g.Expect(most).To(BeNumerically("<=", limit), "seed %d", seed)
		})
	}
}

func TestLimiterIsFair(t *testing.T) {
	for _, limits := range []transport.Limits{{Concurrency: 1}, {Concurrency: 1, Clock: clock.Wall{}}, {PerMinute: 60, Clock: clock.Wall{}}} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			var mu sync.Mutex
			var order []string
			rt := transport.Limiter(limits, roundTrip(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				order = append(order, req.URL.Path)
				mu.Unlock()
				time.Sleep(time.Second)
				return nil, errors.New("no matter")
			}))
			var want []string
			var group sync.WaitGroup
			for i := range 30 {
				path := fmt.Sprintf("/%d", i)
				want = append(want, path)
				group.Go(func() {
					_, _ = rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example"+path, nil))
				})
				synctest.Wait() // it waits in the queue
			}
			group.Wait()
			g.Expect(order).To(Equal(want))
		})
	}
}

func TestLimiterTakesNothingFromThoseWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var times []time.Duration
		began := time.Now()
		rt := transport.Limiter(transport.Limits{PerMinute: 6, TokensPerMinute: 60, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
			times = append(times, time.Since(began))
			return nil, errors.New("no matter")
		}))
		ask := func(ctx context.Context) error {
			ctx, tokens := transport.WithTokens(ctx, 5)
			_, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "https://a.example/", nil))
			tokens.Settle(5)
			return err
		}
		g.Expect(ask(t.Context())).To(HaveOccurred())
		because := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if err := ask(ctx); !errors.Is(err, because) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel(because)
		group.Wait()
		g.Expect(ask(t.Context())).To(HaveOccurred())
		g.Expect(times).To(Equal([]time.Duration{0, 10 * time.Second}))
	})
}

func TestLimiterTellsHowLongItKeptARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rt := transport.Limiter(transport.Limits{Concurrency: 1, PerMinute: 12, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
			time.Sleep(7 * time.Second)
			return nil, errors.New("no matter")
		}))
		var group sync.WaitGroup
		var waits [3]time.Duration
		for i := range waits {
			group.Go(func() {
				ctx, waited := transport.WithWait(t.Context())
				_, _ = rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://a.example/", nil))
				waits[i] = waited()
			})
			synctest.Wait()
		}
		group.Wait()
		g.Expect(waits).To(Equal([3]time.Duration{0, 7 * time.Second, 14 * time.Second}))
	})
}

func TestLimiterKeepsAllBackWhereTheVendorAsksFor(t *testing.T) {
	for _, test := range []struct {
		after string
		want  time.Duration
	}{{"7", 7 * time.Second}, {"60", time.Minute}, {"61", 0}, {"86400", 0}} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := &scripted{steps: []step{{status: 503, header: http.Header{"Retry-After": {test.after}}}, {status: 200}}}
			rt := transport.Limiter(transport.Limits{Concurrency: 4, Clock: clock.Wall{}}, s)
			began := time.Now()
			for range 2 {
				resp, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", http.NoBody))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(resp.Body.Close()).To(Succeed())
			}
			g.Expect(time.Since(began)).To(Equal(test.want))
		})
	}
}
