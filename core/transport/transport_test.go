package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
)

func TestTransport(t *testing.T) { suite.Run(t, "transport") }

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// step is one answer of a scripted transport.
type step struct {
	status int
	header http.Header
	body   string
	err    error
}

// scripted answers with one step after the other and keeps what it saw.
type scripted struct {
	mu       sync.Mutex
	steps    []step
	requests []*http.Request
	bodies   []string
	closed   int
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := ""
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		body = string(data)
	}
	s.requests = append(s.requests, req)
	s.bodies = append(s.bodies, body)
	next := s.steps[min(len(s.requests), len(s.steps))-1]
	if next.err != nil {
		return nil, next.err
	}
	header := next.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: next.status, Header: header, Body: &counted{strings.NewReader(next.body), s}, ContentLength: int64(len(next.body)), Request: req}, nil
}

type counted struct {
	io.Reader
	s *scripted
}

func (c *counted) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.closed++
	return nil
}

func post(body string) *http.Request {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://api.example/v1/chat?x=1", strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", "Bearer placeholder")
	return req
}

func read(resp *http.Response) string {
	GinkgoHelper()
	data, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	return string(data)
}

type tornReader struct{ err error }

func (r tornReader) Read([]byte) (int, error) { return 0, r.err }

type finalError struct{}

func (finalError) Error() string { return "a miss" }
func (finalError) Final() bool   { return true }

var _ = Describe("Retry", func() {
	var c *clock.Virtual
	BeforeEach(func() { c = clock.NewVirtual(start) })
	retry := func(config transport.RetryConfig, s *scripted) http.RoundTripper {
		config.Clock = c
		return transport.Retry(config, s)
	}

	It("repeats what may pass, with the same body, and counts in the header", func() {
		s := &scripted{steps: []step{{status: 503, body: "busy"}, {err: errors.New("reset")}, {status: 200, body: "ok"}}}
		req := post("question")
		resp, err := retry(transport.RetryConfig{}, s).RoundTrip(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(read(resp)).To(Equal("ok"))
		Expect(s.bodies).To(Equal([]string{"question", "question", "question"}))
		for i, r := range s.requests {
			Expect(r.Header.Get("X-Stainless-Retry-Count")).To(Equal(fmt.Sprint(i)))
		}
		Expect(resp.Request.Header.Get(transport.RetryCountHeader)).To(Equal("2"))
		Expect(req.Header).NotTo(HaveKey(transport.RetryCountHeader), "the caller's request stays as it is")
		Expect(s.closed).To(Equal(2), "the refused reply's body is closed too")
		Expect(c.Now().Sub(start)).To(Equal(500*time.Millisecond + time.Second))
	})

	DescribeTable("which replies it repeats", func(status int, header string, attempts int) {
		s := &scripted{steps: []step{{status: status, header: http.Header{"X-Should-Retry": {header}}, body: "last"}}}
		resp, err := retry(transport.RetryConfig{}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.StatusCode).To(Equal(status))
		Expect(read(resp)).To(Equal("last"))
		Expect(s.requests).To(HaveLen(attempts))
	},
		Entry(nil, 200, "", 1), Entry(nil, 400, "", 1), Entry(nil, 401, "", 1), Entry(nil, 404, "", 1), Entry(nil, 422, "", 1),
		Entry(nil, 408, "", 3), Entry(nil, 409, "", 3), Entry(nil, 429, "", 3), Entry(nil, 500, "", 3), Entry(nil, 503, "", 3), Entry(nil, 529, "", 3),
		Entry(nil, 429, "false", 1), Entry(nil, 400, "true", 3), Entry(nil, 200, "true", 1), Entry(nil, 302, "true", 1),
	)

	DescribeTable("how long it waits", func(header http.Header, want time.Duration) {
		s := &scripted{steps: []step{{status: 429, header: header}, {status: 200}}}
		resp, err := retry(transport.RetryConfig{}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.StatusCode).To(Equal(200))
		Expect(c.Now().Sub(start)).To(Equal(want))
	},
		Entry("not told", http.Header{}, 500*time.Millisecond),
		Entry("in seconds", http.Header{"Retry-After": {"7"}}, 7*time.Second),
		Entry("in fractions of a second", http.Header{"Retry-After": {" 0.25 "}}, 250*time.Millisecond),
		Entry("in milliseconds first", http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"120"}}, 120*time.Millisecond),
		Entry("until a date", http.Header{"Retry-After": {start.Add(9 * time.Second).Format(http.TimeFormat)}}, 9*time.Second),
		Entry("until a date that has passed", http.Header{"Retry-After": {start.Add(-time.Hour).Format(http.TimeFormat)}}, time.Duration(0)),
		Entry("nonsense", http.Header{"Retry-After": {"soon"}}, 500*time.Millisecond),
		Entry("less than nothing", http.Header{"Retry-After": {"-5"}}, 500*time.Millisecond),
		Entry("no number", http.Header{"Retry-After": {"NaN"}}, 500*time.Millisecond),
		Entry("until OpenAI's limit of requests is full", http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"1.5s"}, "X-Ratelimit-Remaining-Tokens": {"9"}, "X-Ratelimit-Reset-Tokens": {"6m0s"}}, 1500*time.Millisecond),
		Entry("until the later of two limits", http.Header{"X-Ratelimit-Reset-Requests": {"20ms"}, "X-Ratelimit-Reset-Tokens": {"3"}}, 3*time.Second),
		Entry("until Anthropic's limit is full", http.Header{"Anthropic-Ratelimit-Input-Tokens-Remaining": {"0"}, "Anthropic-Ratelimit-Input-Tokens-Reset": {start.Add(4 * time.Second).Format(time.RFC3339)}}, 4*time.Second),
		Entry("until a reset that has passed", http.Header{"Anthropic-Ratelimit-Requests-Reset": {start.Add(-time.Hour).Format(time.RFC3339)}}, time.Duration(0)),
		Entry("no limit is used up", http.Header{"Anthropic-Ratelimit-Requests-Remaining": {"3"}, "Anthropic-Ratelimit-Requests-Reset": {start.Add(4 * time.Second).Format(time.RFC3339)}}, 500*time.Millisecond),
		Entry("Retry-After counts before limits", http.Header{"Retry-After": {"2"}, "X-Ratelimit-Reset-Requests": {"9s"}}, 2*time.Second),
		Entry("a share of the time where the limit is full much later", http.Header{"X-Ratelimit-Reset-Requests": {"1h"}}, 30*time.Second),
		Entry("a limit that says nonsense", http.Header{"X-Ratelimit-Reset-Requests": {"-3s"}, "X-Ratelimit-Reset-Tokens": {"later"}}, 500*time.Millisecond),
	)

	It("looks at limits after a 429 alone", func() {
		s := &scripted{steps: []step{{status: 500, header: http.Header{"X-Ratelimit-Reset-Requests": {"9s"}}}, {status: 200}}}
		_, err := retry(transport.RetryConfig{}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Now().Sub(start)).To(Equal(500 * time.Millisecond))
	})

	DescribeTable("spreads those whom the vendor told the same, by no more than a second", func(after string, want time.Duration) {
		s := &scripted{steps: []step{{status: 429, header: http.Header{"Retry-After": {after}}}, {status: 200}}}
		_, err := retry(transport.RetryConfig{Random: func() float64 { return 0.5 }}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Now().Sub(start)).To(Equal(want))
	},
		Entry(nil, "0", time.Duration(0)), Entry(nil, "2", 2250*time.Millisecond), Entry(nil, "60", 60*time.Second+500*time.Millisecond),
	)

	It("does not repeat what must be done once", func() {
		s := &scripted{steps: []step{{status: 503}}}
		resp, err := retry(transport.RetryConfig{}, s).RoundTrip(post("q").WithContext(transport.Once(context.Background())))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.StatusCode).To(Equal(503))
		Expect(s.requests).To(HaveLen(1))
	})

	It("does not repeat a reply that has begun, whatever becomes of its body", func() {
		torn := errors.New("torn")
		sent := 0
		rt := transport.Retry(transport.RetryConfig{Clock: c}, roundTrip(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader("begin"), tornReader{torn}))}, nil
		}))
		resp, err := rt.RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(resp.Body)
		Expect(err).To(MatchError(torn))
		Expect(string(data)).To(Equal("begin"))
		Expect(sent).To(Equal(1))
	})

	It("gives up where the vendor asks for more than it may wait", func() {
		s := &scripted{steps: []step{{status: 429, header: http.Header{"Retry-After": {"1e99"}}}}}
		resp, err := retry(transport.RetryConfig{Total: time.Minute}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.StatusCode).To(Equal(429))
		Expect(s.requests).To(HaveLen(1))
		Expect(c.Now()).To(Equal(start))
	})

	It("lets the pauses grow to a bound and spreads them", func() {
		s := &scripted{steps: []step{{status: 500}}}
		_, err := retry(transport.RetryConfig{Attempts: 6, Pause: time.Second, MaxPause: 4 * time.Second}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Now().Sub(start)).To(Equal((1 + 2 + 4 + 4 + 4) * time.Second))

		c = clock.NewVirtual(start)
		_, err = retry(transport.RetryConfig{Attempts: 2, Pause: time.Second, Random: func() float64 { return 0.5 }}, s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Now().Sub(start)).To(Equal(875 * time.Millisecond))
	})

	It("does not repeat what is final, what was given up and what cannot be sent again", func() {
		for _, err := range []error{finalError{}, fmt.Errorf("wrapped: %w", finalError{}), context.Canceled, context.DeadlineExceeded} {
			s := &scripted{steps: []step{{err: err}}}
			_, got := retry(transport.RetryConfig{}, s).RoundTrip(post("q"))
			Expect(got).To(MatchError(err))
			Expect(s.requests).To(HaveLen(1))
		}
		s := &scripted{steps: []step{{status: 500}}}
		req := post("q")
		req.GetBody = nil
		_, err := retry(transport.RetryConfig{}, s).RoundTrip(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.requests).To(HaveLen(1))
	})

	It("tells how often it tried", func() {
		cause := errors.New("refused")
		s := &scripted{steps: []step{{err: cause}}}
		_, err := retry(transport.RetryConfig{}, s).RoundTrip(post("q"))
		var retried *transport.RetriedError
		Expect(errors.As(err, &retried)).To(BeTrue())
		Expect(retried.Retries).To(Equal(2))
		Expect(err).To(MatchError(cause))
		Expect(err.Error()).To(Equal("refused (after 2 retries)"))
	})

	It("stops waiting when the context ends", func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		because := errors.New("stop")
		s := &scripted{steps: []step{{status: 500}}}
		rt := transport.Retry(transport.RetryConfig{Clock: cancelling{c, func() { cancel(because) }}}, s)
		_, err := rt.RoundTrip(post("q").WithContext(ctx))
		Expect(err).To(MatchError(because))
		Expect(s.requests).To(HaveLen(1))
		Expect(s.closed).To(Equal(1))
	})
})

// cancelling is a clock on which somebody gives up as soon as it waits.
type cancelling struct {
	*clock.Virtual
	cancel func()
}

func (c cancelling) Sleep(ctx context.Context, d time.Duration) error {
	c.cancel()
	return c.Virtual.Sleep(ctx, d)
}

func TestRetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &scripted{steps: []step{{status: 429, header: http.Header{"Retry-After": {"3"}}}, {status: 200}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		resp, err := transport.Retry(transport.RetryConfig{Clock: clock.Wall{}}, s).RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.StatusCode).To(Equal(200))
		g.Expect(time.Since(began)).To(Equal(3 * time.Second))
	})
}

func key(value string) func(context.Context) (transport.Secret, error) {
	return func(context.Context) (transport.Secret, error) { return transport.NewSecret(value), nil }
}

var _ = Describe("Auth", func() {
	const secret = "sk-very-secret-12345"

	It("replaces the placeholder below, and shows the layers above their own request", func() {
		s := &scripted{steps: []step{{status: 200}}}
		req := post("q")
		resp, err := transport.Auth(transport.Bearer, key(secret+"\n"), s).RoundTrip(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.requests[0].Header.Get("Authorization")).To(Equal("Bearer " + secret))
		Expect(req.Header.Get("Authorization")).To(Equal("Bearer placeholder"))
		Expect(resp.Request).To(BeIdenticalTo(req))
	})

	It("takes the header away where there is no key", func() {
		s := &scripted{steps: []step{{status: 200}}}
		_, err := transport.Auth(transport.Bearer, key(""), s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(s.requests[0].Header).NotTo(HaveKey("Authorization"))
	})

	It("hides a key that a refusal repeats", func() {
		long := strings.Repeat("x", 64<<10-10) + secret + " and more"
		for _, body := range []string{"wrong key " + secret + "!", long, ""} {
			s := &scripted{steps: []step{{status: 401, body: body, header: http.Header{"Content-Length": {"1"}}}}}
			resp, err := transport.Auth(transport.Bearer, key(secret), s).RoundTrip(post("q"))
			Expect(err).NotTo(HaveOccurred())
			got := read(resp)
			Expect(got).NotTo(ContainSubstring(secret[:12]))
			Expect(s.closed).To(Equal(1))
			if body != "" && len(body) < 100 {
				Expect(got).To(Equal("wrong key [secret]!"))
				Expect(resp.ContentLength).To(BeEquivalentTo(-1))
			}
		}
	})

	It("sends nothing where the key cannot be had or sent, and does not print it", func() {
		s := &scripted{steps: []step{{status: 200}}}
		missing := errors.New("OPENAI_API_KEY is not set")
		_, err := transport.Auth(transport.Bearer, func(context.Context) (transport.Secret, error) { return transport.Secret{}, missing }, s).RoundTrip(post("q"))
		Expect(err).To(MatchError(missing))
		var final interface{ Final() bool }
		Expect(errors.As(err, &final)).To(BeTrue())
		_, err = transport.Auth(transport.Bearer, key("ab\ncd"), s).RoundTrip(post("q"))
		Expect(err).To(MatchError(And(ContainSubstring("header"), Not(ContainSubstring("cd")))))
		Expect(s.requests).To(BeEmpty())
	})

	It("never prints a secret", func() {
		value := transport.NewSecret(secret)
		wrapped := struct{ Key transport.Secret }{value}
		encoded, err := json.Marshal(wrapped)
		Expect(err).NotTo(HaveOccurred())
		for _, text := range []string{value.String(), fmt.Sprint(value), fmt.Sprintf("%v %+v %#v %s %q %x %d", value, wrapped, wrapped, value, value, value, value), fmt.Sprintf("%v", &wrapped), string(encoded)} {
			Expect(text).NotTo(ContainSubstring("secret-1"))
			Expect(text).NotTo(ContainSubstring(fmt.Sprintf("%x", secret)))
			Expect(text).To(ContainSubstring("[secret]"))
		}
		Expect(value.Reveal()).To(Equal(secret))
		Expect(transport.Secret{}.String()).To(BeEmpty())
	})
})

var _ = Describe("Redirect", func() {
	DescribeTable("dials another base", func(from, to, asked, dialled string) {
		s := &scripted{steps: []step{{status: 200}}}
		rt, err := transport.Redirect(from, to, s)
		Expect(err).NotTo(HaveOccurred())
		req := post("q")
		req.URL, err = url.Parse(asked)
		Expect(err).NotTo(HaveOccurred())
		req.Host = req.URL.Host
		resp, err := rt.RoundTrip(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.requests[0].URL.String()).To(Equal(dialled))
		Expect(s.requests[0].Host).To(BeEmpty(), "the host header is that of the URL")
		Expect(resp.Request.URL.String()).To(Equal(asked))
		Expect(s.bodies).To(Equal([]string{"q"}))
	},
		Entry(nil, "https://api.openai.com/v1", "http://127.0.0.1:8080/v1", "https://api.openai.com/v1/chat/completions", "http://127.0.0.1:8080/v1/chat/completions"),
		Entry(nil, "https://api.openai.com/v1/", "http://127.0.0.1:8080", "https://api.openai.com/v1/chat/completions?a=b%20c", "http://127.0.0.1:8080/chat/completions?a=b%20c"),
		Entry(nil, "https://API.example", "https://proxy.example/a/b/", "https://api.EXAMPLE/x%2Fy/z", "https://proxy.example/a/b/x%2Fy/z"),
		Entry(nil, "https://api.example/v1", "https://proxy.example/p", "https://api.example/v1", "https://proxy.example/p"),
	)

	DescribeTable("refuses every other place", func(asked string) {
		s := &scripted{steps: []step{{status: 200}}}
		rt, err := transport.Redirect("https://api.example/v1", "http://127.0.0.1:1", s)
		Expect(err).NotTo(HaveOccurred())
		req := post("q")
		req.URL, err = url.Parse(asked)
		Expect(err).NotTo(HaveOccurred())
		_, err = rt.RoundTrip(req)
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).NotTo(ContainSubstring("hidden"))
		var final interface{ Final() bool }
		Expect(errors.As(err, &final)).To(BeTrue())
		Expect(s.requests).To(BeEmpty())
	},
		Entry(nil, "https://other.example/v1/x"), Entry(nil, "http://api.example/v1/x"), Entry(nil, "https://api.example/v10/x"), Entry(nil, "https://api.example/?key=hidden"), Entry(nil, "https://api.example:444/v1/x"),
	)

	DescribeTable("refuses bases that are none", func(base string) {
		for _, pair := range [][2]string{{base, "https://a.example"}, {"https://a.example", base}} {
			_, err := transport.Redirect(pair[0], pair[1], &scripted{})
			Expect(failure.CodeOf(err)).To(Equal(failure.Input))
			Expect(err.Error()).NotTo(ContainSubstring("hidden"))
		}
	},
		Entry(nil, ""), Entry(nil, "api.example"), Entry(nil, "ftp://a.example"), Entry(nil, "https://"), Entry(nil, "https://u:hidden@a.example"), Entry(nil, "https://a.example?key=hidden"), Entry(nil, "https://u:hidden@a b"), Entry(nil, "/v1"),
	)
})

func TestLimiterBoundsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var mu sync.Mutex
		running, most := 0, 0
		slow := roundTrip(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(&leaving{func() { mu.Lock(); running--; mu.Unlock() }})}, nil
		})
		rt := transport.Limiter(transport.Limits{Concurrency: 3}, slow)
		began := time.Now()
		var group sync.WaitGroup
		for range 9 {
			group.Go(func() {
				resp, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
				}
				if err == nil {
					err = resp.Body.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		g.Expect(most).To(Equal(3))
		g.Expect(time.Since(began)).To(Equal(3 * time.Second))
	})
}

func TestLimiterSpreadsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var times []time.Duration
		began := time.Now()
		rt := transport.Limiter(transport.Limits{PerMinute: 30, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
			times = append(times, time.Since(began))
			return nil, errors.New("no matter")
		}))
		for range 4 {
			_, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
			g.Expect(err).To(HaveOccurred())
		}
		g.Expect(times).To(Equal([]time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second}))
	})
}

func TestLimiterSpreadsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var times []time.Duration
		began := time.Now()
		rt := transport.Limiter(transport.Limits{TokensPerMinute: 600, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
			times = append(times, time.Since(began))
			return nil, errors.New("no matter")
		}))
		ask := func(ctx context.Context, body string) {
			_, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "https://a.example/", strings.NewReader(body)))
			g.Expect(err).To(HaveOccurred())
		}
		// Ten tokens a second. The first begins at once, the second when it is paid for.
		ctx, tokens := transport.WithTokens(t.Context(), 100)
		ask(ctx, "")
		ask(ctx, "") // as a retry does: it is charged again
		tokens.Settle(50)
		tokens.Settle(1_000) // only once
		// The second is paid for at 10 + 5 s.
		ctx, tokens = transport.WithTokens(t.Context(), 10)
		ask(ctx, "")
		tokens.Settle(60)
		// At 15 + 6 s; nobody says what this one needs: 80 bytes are 20 tokens.
		ask(t.Context(), strings.Repeat("a", 80))
		ask(t.Context(), "a")
		g.Expect(times).To(Equal([]time.Duration{0, 10 * time.Second, 15 * time.Second, 21 * time.Second, 23 * time.Second}))
	})
}

func TestLimiterKeepsBothLimitsByTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var times []time.Duration
		began := time.Now()
		rt := transport.Limiter(transport.Limits{TokensPerMinute: 60, PerMinute: 30, Clock: clock.Wall{}}, roundTrip(func(*http.Request) (*http.Response, error) {
			times = append(times, time.Since(began))
			return nil, errors.New("no matter")
		}))
		for _, estimate := range []int{5, 1, 1, 0} {
			ctx, tokens := transport.WithTokens(t.Context(), estimate)
			_, err := rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "https://a.example/", nil))
			g.Expect(err).To(HaveOccurred())
			tokens.Settle(estimate)
		}
		// The second waits for five tokens, the others for two seconds each.
		g.Expect(times).To(Equal([]time.Duration{0, 5 * time.Second, 7 * time.Second, 9 * time.Second}))
	})
}

func TestTokensWithoutALimitHaveNothingToSettle(t *testing.T) {
	_, tokens := transport.WithTokens(t.Context(), 5)
	tokens.Settle(7)
}

func TestLimiterGivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		held := &scripted{steps: []step{{status: 200}}}
		rt := transport.Limiter(transport.Limits{Concurrency: 1}, held)
		first, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://a.example/", nil))
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(first.Body.Close()).To(Succeed())
		g.Expect(first.Body.Close()).To(Succeed(), "a second close frees no second slot")
		again, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.example/", nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Body.Close()).To(Succeed())
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// leaving ends at once and tells of it.
type leaving struct{ left func() }

func (l *leaving) Read([]byte) (int, error) { l.left(); return 0, io.EOF }

var _ = Describe("Observe", func() {
	observe := func(s *scripted, ctype string, use func(*http.Response, error, *clock.Virtual)) []trace.Exchange {
		c := clock.NewVirtual(start)
		recorder := trace.NewRecorder(c)
		recorder.Step(1)
		if len(s.steps) > 0 && ctype != "" {
			s.steps[0].header = http.Header{"Content-Type": {ctype}}
		}
		rt := transport.Observe(c, roundTrip(func(req *http.Request) (*http.Response, error) {
			c.AdvanceTo(c.Now().Add(10 * time.Millisecond))
			return s.RoundTrip(req)
		}))
		req := post("q")
		req.URL.User = url.UserPassword("u", "hidden")
		resp, err := rt.RoundTrip(req.WithContext(trace.WithRecorder(context.Background(), recorder)))
		use(resp, err, c)
		return recorder.Exchanges()
	}

	It("records a stream when it has ended", func() {
		got := observe(&scripted{steps: []step{{status: 200, body: "data"}}}, "text/event-stream", func(resp *http.Response, err error, c *clock.Virtual) {
			Expect(err).NotTo(HaveOccurred())
			c.AdvanceTo(start.Add(25 * time.Millisecond))
			Expect(resp.Body.Read(make([]byte, 2))).To(Equal(2))
			c.AdvanceTo(start.Add(70 * time.Millisecond))
			read(resp)
		})
		Expect(got).To(Equal([]trace.Exchange{{Attempt: 1, Method: "POST", URL: "https://api.example/v1/chat?x=1", Status: 200, DurationMS: 70, TTFTMS: 25, Source: "live"}}))
	})

	It("records a reply that is no stream, and an error", func() {
		got := observe(&scripted{steps: []step{{status: 404, body: "no"}}}, "application/json", func(resp *http.Response, err error, _ *clock.Virtual) {
			Expect(err).NotTo(HaveOccurred())
			read(resp)
		})
		Expect(got).To(HaveExactElements(And(HaveField("Status", 404), HaveField("DurationMS", int64(10)), HaveField("TTFTMS", int64(-1)), HaveField("Error", ""))))
		got = observe(&scripted{steps: []step{{err: errors.New("refused")}}}, "", func(_ *http.Response, err error, _ *clock.Virtual) {
			Expect(err).To(HaveOccurred())
		})
		Expect(got).To(HaveExactElements(And(HaveField("Status", 0), HaveField("Error", "refused"))))
	})

	It("numbers the attempts of a step", func() {
		c := clock.NewVirtual(start)
		recorder := trace.NewRecorder(c)
		rt := transport.Retry(transport.RetryConfig{Clock: c}, transport.Observe(c, &scripted{steps: []step{{status: 500}, {status: 200}}}))
		resp, err := rt.RoundTrip(post("q").WithContext(trace.WithRecorder(context.Background(), recorder)))
		Expect(err).NotTo(HaveOccurred())
		read(resp)
		Expect(recorder.Exchanges()).To(HaveExactElements(And(HaveField("Attempt", 1), HaveField("Status", 500)), And(HaveField("Attempt", 2), HaveField("Status", 200))))
	})

	It("leaves requests without a recorder alone", func() {
		s := &scripted{steps: []step{{status: 200, body: "x"}}}
		resp, err := transport.Observe(clock.NewVirtual(start), s).RoundTrip(post("q"))
		Expect(err).NotTo(HaveOccurred())
		Expect(read(resp)).To(Equal("x"))
	})
})

var _ = Describe("Net", func() {
	It("dials with what it is given", func() {
		refused := errors.New("guarded")
		proxied := 0
		rt := transport.Net(
			func(context.Context, string, string) (net.Conn, error) { return nil, refused },
			func(*http.Request) (*url.URL, error) { proxied++; return nil, nil })
		_, err := rt.RoundTrip(post("q"))
		Expect(err).To(MatchError(refused))
		Expect(proxied).To(Equal(1))
		Expect(rt.MaxIdleConnsPerHost).To(BeNumerically(">=", 16))
	})
})

func TestLimiterAdaptsToTheVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var mu sync.Mutex
		capacity, running, refused, served := 4, 0, 0, 0
		most := 0
		vendor := roundTrip(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			running++
			most = max(most, running)
			status := 200
			if running > capacity {
				status = 429
				refused++
			} else {
				served++
			}
			mu.Unlock()
			time.Sleep(time.Second)
			return &http.Response{StatusCode: status, Body: io.NopCloser(&leaving{func() { mu.Lock(); running--; mu.Unlock() }})}, nil
		})
		rt := transport.Limiter(transport.Limits{Concurrency: 16}, vendor)
		work := func(n int) {
			var group sync.WaitGroup
			for range 16 {
				group.Go(func() {
					for range n {
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
		work(5)
		g.Expect(most).To(Equal(16), "it begins with what it was given")
		refused, served, most = 0, 0, 0
		work(50)
		g.Expect(refused).To(BeNumerically("<", served/5), "it keeps near what the vendor takes")
		g.Expect(most).To(BeNumerically("<=", 6))
		capacity, most = 16, 0
		work(50)
		g.Expect(most).To(BeNumerically(">", 6), "it grows again")
		capacity, refused, served = 0, 0, 0
		work(1)
		g.Expect(refused).To(Equal(16), "it never stops asking")
	})
}
