package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
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
	// Pause is the pause before the second attempt, 500 ms by default. It doubles each time, up to MaxPause, 8 s by default; up to a quarter of it is taken away at random. To a pause that the vendor asks for as much is added at random, at most a second, so that those whom it told the same do not
	// come back together.
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

// Retry sends a request again after a failure that may pass: the statuses 408, 409, 429 and 5xx, and an error that came before any reply. The x-should-retry header of a refusal has the last word, as in the vendors' SDKs.
//
// The pause is what the vendor asks for in retry-after-ms or Retry-After, after a 429 else what its rate limits say, see [Reset], else it grows exponentially. A limit fills up before it is reset: where that is further away than the time that is left, the attempts that are left share it.
//
// A request is sent once alone where its body cannot be read again, where its context has ended, where the error is [Final] and where [Once] marks its context. What fails after a reply has begun is never repeated: the caller may have used what came.
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
	repeatable := (req.Body == nil || req.Body == http.NoBody || req.GetBody != nil) && ctx.Value(onceKey{}) == nil
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
		if !repeatable || n+1 >= r.Attempts || !again(ctx, resp, err) {
			return resp, retried(n, err)
		}
		pause := r.pause(n, resp, r.Total-waited)
		if waited+pause > r.Total {
			return resp, retried(n, err)
		}
		waited += pause
		pause += r.spread(resp, pause)
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
		return !errors.Is(err, context.Canceled) && !outOfTime(err) && !Final(err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return false
	}
	switch strings.ToLower(resp.Header.Get("X-Should-Retry")) {
	case "true":
		return true
	case "false":
		return false
	}
	return MayPass(resp.StatusCode)
}

// outOfTime reports that a context has run out of its time. A timeout of the network is none, although errors.Is takes net's and net/http's for one: the next connection may well come about.
func outOfTime(err error) bool {
	if err == context.DeadlineExceeded { // this very value, and not what says of itself that it is one
		return true
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		return x.Unwrap() != nil && outOfTime(x.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(x.Unwrap(), outOfTime)
	}
	return false
}

// MayPass reports whether the same request may succeed later although it was answered with status.
func MayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// pause is how long to wait after the nth attempt, of the time that is left.
func (r *retry) pause(n int, resp *http.Response, left time.Duration) time.Duration {
	if resp != nil {
		now := r.Clock.Now()
		if d, ok := RetryAfter(resp.Header, now); ok {
			return d
		}
		if d, ok := asked(resp, now); ok {
			return min(d, left/time.Duration(r.Attempts-n-1))
		}
	}
	pause := min(float64(r.Pause)*math.Pow(2, float64(n)), float64(r.MaxPause))
	if r.Random != nil {
		pause *= 1 - r.Random()/4
	}
	return time.Duration(pause)
}

// spread is what is added to a pause that the vendor has asked for.
func (r *retry) spread(resp *http.Response, pause time.Duration) time.Duration {
	if resp == nil || r.Random == nil {
		return 0
	}
	if _, ok := asked(resp, r.Clock.Now()); !ok {
		return 0
	}
	return time.Duration(r.Random() * float64(min(pause/4, time.Second)))
}

type onceKey struct{}

// Once marks a context whose requests must not be repeated, since they may do something at each time.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// asked is how long a refusal asks to wait.
func asked(resp *http.Response, now time.Time) (time.Duration, bool) {
	if d, ok := RetryAfter(resp.Header, now); ok {
		return d, true
	}
	if resp.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	return Reset(resp.Header, now)
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

// Reset returns how long it takes until the limits are full again of which nothing is left, by what the reply to a refused request says: in x-ratelimit-reset-requests and -tokens as a duration such as 6m0s or in seconds, in anthropic-ratelimit-*-reset as a date of RFC 3339, which now is subtracted from.
// A limit that does not say what is left counts too, one that has something left does not. A date that has passed is 0.
func Reset(h http.Header, now time.Time) (longest time.Duration, ok bool) {
	for _, b := range budgets {
		if left, err := strconv.ParseFloat(strings.TrimSpace(h.Get(b.remaining)), 64); err == nil && left > 0 {
			continue
		}
		if d, known := resets(h.Get(b.reset), now); known {
			longest, ok = max(longest, d), true
		}
	}
	return longest, ok
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
