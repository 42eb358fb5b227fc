package transport

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type modelKey struct{}

// ForModel says of which model the requests are that go through it. Vendors limit each model apart: a [Limiter] with a clock below it keeps the model's requests back before the vendor refuses them, by what replies say is left.
func ForModel(model string, next http.RoundTripper) http.RoundTripper { return &forModel{model, next} }

type forModel struct {
	model string
	next  http.RoundTripper
}

func (f *forModel) RoundTrip(req *http.Request) (*http.Response, error) {
	return f.next.RoundTrip(req.WithContext(context.WithValue(req.Context(), modelKey{}, f.model)))
}

// unit is what a limit of a vendor counts.
type unit int

const (
	perRequest unit = iota
	perToken
	perOutput // tokens of replies: nobody knows them before
	units
)

// budgets are the headers in which vendors tell a limit, what is left of it, and when it is full again.
var budgets = [...]struct {
	unit                    unit
	limit, remaining, reset string
}{
	{perRequest, "X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}, // OpenAI, Azure, Groq
	{perToken, "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	{perRequest, "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
	{perToken, "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	{perToken, "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
	{perOutput, "Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
}

// quota is what is left of a model's limits, as its latest reply has told. Its zero value is a model that has told nothing.
//
// A limit is taken for a bucket that fills evenly until it is full again at its reset, as OpenAI's and Anthropic's are. One that does not say how large it is gives nothing until its reset.
type quota struct {
	gate    chan struct{} // full while the request whose turn is next waits for room
	left    [len(budgets)]level
	began   int    // requests so far
	charged charge // to all of them
	latest  int    // the place of the request whose reply told
}

// level is what is left of one limit.
type level struct {
	told     bool
	amount   float64   // at the time at
	size     float64   // 0 is unknown
	second   float64   // how much comes back in a second; 0 is unknown
	at, full time.Time // full is zero where the reset is not known
}

// has is what is left now.
func (l *level) has(now time.Time) float64 {
	switch {
	case !l.full.IsZero() && !now.Before(l.full) && l.second == 0:
		return max(l.amount, l.size, 1)
	case l.second == 0:
		return l.amount
	}
	amount := l.amount + l.second*now.Sub(l.at).Seconds()
	if l.size > 0 {
		amount = min(amount, l.size)
	}
	return amount
}

// charge is what a request takes of the limits.
type charge [units]float64

// turn is when the model's limits have room for a charge; zero where nothing is known against it. What would take longer than maxHold is left to the vendor to refuse.
func (q *quota) turn(now time.Time, c charge) (turn time.Time) {
	for i := range q.left {
		l := &q.left[i]
		if !l.told {
			continue
		}
		need := c[budgets[i].unit]
		if l.size > 0 {
			need = min(need, l.size)
		}
		missing := need - l.has(now)
		if missing <= 0 {
			continue
		}
		at := l.full
		if l.second > 0 {
			at = now.Add(time.Duration(min(missing/l.second, maxHold.Seconds()+1) * float64(time.Second)))
		}
		if at.Sub(now) <= maxHold && turn.Before(at) {
			turn = at
		}
	}
	return turn
}

// take charges a request that begins, and returns its place and what all have been charged, itself included.
func (q *quota) take(now time.Time, c charge) (place int, charged charge) {
	for i := range q.left {
		if l := &q.left[i]; l.told {
			l.amount, l.at = l.has(now)-c[budgets[i].unit], now
		}
	}
	for i := range c {
		q.charged[i] += c[i]
	}
	q.began++
	return q.began, q.charged
}

// giveBack takes a charge back.
func (q *quota) giveBack(c charge) {
	for i := range q.left {
		q.left[i].amount += c[budgets[i].unit]
	}
	for i := range c {
		q.charged[i] -= c[i]
	}
}

// hear takes in what the reply to a request says; place and charged are what take returned for it. What began after it is not in what the vendor says. A reply that was overtaken says nothing new.
func (q *quota) hear(now time.Time, place int, charged charge, h http.Header) {
	if place < q.latest {
		return
	}
	q.latest = place
	for i, b := range budgets {
		remaining, err := strconv.ParseFloat(strings.TrimSpace(h.Get(b.remaining)), 64)
		if err != nil || !(remaining >= 0) || remaining > 1e15 {
			continue
		}
		old := q.left[i]
		l := level{told: true, amount: remaining - (q.charged[b.unit] - charged[b.unit]), at: now}
		if size, err := strconv.ParseFloat(strings.TrimSpace(h.Get(b.limit)), 64); err == nil && size >= remaining && size > 0 && size < 1e15 {
			l.size = size
		}
		if d, ok := resets(h.Get(b.reset), now); ok {
			l.full = now.Add(d)
			if l.size > remaining && d > 0 {
				l.second = (l.size - remaining) / d.Seconds()
			}
		}
		if l.second == 0 && l.size > 0 && l.size == old.size {
			l.second = old.second
		}
		q.left[i] = l
	}
}

// resets reads when a limit is full again: a duration such as 6m0s, seconds, or a date of RFC 3339, which now is subtracted from.
func resets(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if d, ok := number(text, time.Second); ok {
		return d, true
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, true
	}
	if date, err := time.Parse(time.RFC3339, text); err == nil {
		return max(date.Sub(now), 0), true
	}
	return 0, false
}
