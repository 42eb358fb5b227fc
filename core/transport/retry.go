package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/clock"
)

// RetryConfig says how often and how long to try again. A zero number means its default.
type RetryConfig struct {
	// Clock is needed: it dates a Retry-After and waits.
	Clock clock.Clock
	// Random gives numbers from 0 to below 1 that spread the pauses; nil spreads nothing. It may be called from several goroutines.
	Random func() float64
	// Attempts is how often a request is sent at most, the first time included; 3 by default, as in the vendors' SDKs.
	Attempts int
	// Pause is the pause before the second attempt, 500 ms by default. It doubles each time, up to MaxPause, 8 s by default; up to a quarter of it is taken away at random.
	Pause, MaxPause time.Duration
	// Total bounds the sum of the pauses, 60 s by default. A vendor that asks for more gets no other attempt.
	Total time.Duration
}

func (c RetryConfig) withDefaults() RetryConfig {
	if c.Attempts <= 0 {
		c.Attempts = 3
	}
	if c.Pause <= 0 {
		c.Pause = 500 * time.Millisecond
	}
	if c.MaxPause <= 0 {
		c.MaxPause = 8 * time.Second
	}
	if c.Total <= 0 {
		c.Total = time.Minute
	}
	return c
}

// Retry sends a request again after a failure that may pass: the statuses 408, 409, 429 and 5xx, and an error that came before any reply. A reply's x-should-retry header has the last word, as in the vendors' SDKs.
//
// The pause is what the vendor asks for in retry-after-ms or Retry-After, else it grows exponentially. A request is sent once alone where its body cannot be read again, where its context has ended and where the error says that it is final through a method Final() bool.
// When attempts or time are used up, the last reply or error is returned as it came, an error after repetitions within a [RetriedError]; a reply's Request has the repetitions in [RetryCountHeader].
func Retry(config RetryConfig, next http.RoundTripper) http.RoundTripper {
	return &retry{RetryConfig: config.withDefaults(), next: next}
}

// RetriedError is an error that came although the request was repeated.
type RetriedError struct {
	Retries int
	Err     error
}

// Error gives the cause and how many repetitions there were.
func (e *RetriedError) Error() string { return fmt.Sprintf("%v (after %d retries)", e.Err, e.Retries) }

// Unwrap returns the cause.
func (e *RetriedError) Unwrap() error { return e.Err }

type retry struct {
	RetryConfig
	next http.RoundTripper
}

func (r *retry) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	replayable := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	var waited time.Duration
	for n := 0; ; n++ {
		out := clone(req)
		out.Header.Set(RetryCountHeader, strconv.Itoa(n))
		if n > 0 && req.GetBody != nil {
			var err error
			if out.Body, err = req.GetBody(); err != nil {
				return nil, &RetriedError{Retries: n - 1, Err: fmt.Errorf("reading the request's body again: %w", err)}
			}
		}
		resp, err := r.next.RoundTrip(out)
		if err == nil {
			resp.Request = out
		}
		if !replayable || n+1 >= r.Attempts || !again(ctx, resp, err) {
			return resp, retried(n, err)
		}
		pause := r.pause(n, resp)
		if waited+pause > r.Total {
			return resp, retried(n, err)
		}
		waited += pause
		if resp != nil {
			discard(resp.Body)
		}
		if err := r.Clock.Sleep(ctx, pause); err != nil {
			return nil, retried(n, err)
		}
	}
}

func retried(n int, err error) error {
	if err == nil || n == 0 {
		return err
	}
	return &RetriedError{Retries: n, Err: err}
}

// again reports whether another attempt may help.
func again(ctx context.Context, resp *http.Response, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		var f interface{ Final() bool }
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !(errors.As(err, &f) && f.Final())
	}
	switch strings.ToLower(resp.Header.Get("X-Should-Retry")) {
	case "true":
		return true
	case "false":
		return false
	}
	return MayPass(resp.StatusCode)
}

// MayPass reports whether the same request may succeed later although it was answered with status.
func MayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

func (r *retry) pause(n int, resp *http.Response) time.Duration {
	if resp != nil {
		if d, ok := RetryAfter(resp.Header, r.Clock.Now()); ok {
			return d
		}
	}
	pause := min(float64(r.Pause)*math.Pow(2, float64(n)), float64(r.MaxPause))
	if r.Random != nil {
		pause *= 1 - r.Random()/4
	}
	return time.Duration(pause)
}

// RetryAfter returns how long a vendor asks to wait: retry-after-ms in milliseconds, else Retry-After in seconds or as an HTTP date (RFC 9110, 10.2.3), which now is subtracted from. A date that has passed is 0.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return ms, true
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, ok := number(value, time.Second); ok {
		return s, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0), true
	}
	return 0, false
}

// number reads a count of units; fractions are common in the wild. Beyond a day the exact value no longer matters and could overflow.
func number(s string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || f < 0 {
		return 0, false
	}
	const day = 24 * time.Hour
	return time.Duration(min(f*float64(unit), float64(day))), true
}

// discard reads the rest of a short body so that its connection can be used again.
func discard(b io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, b, maxErrorBody)
	_ = b.Close()
}
