package transport

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echoeval/echoeval/core/clock"
)

// Limits bound the traffic to one vendor. 0 is no bound.
type Limits struct {
	// Concurrency is how many requests may be under way at once, their replies' bodies included. When the vendor says that it is too much (429, 503, 529) it is halved, down to one, and with every reply that is none of these it grows again, slowly: additive increase, multiplicative
	// decrease.
	Concurrency int
	// PerMinute is how many requests may begin in a minute; they are spread evenly.
	PerMinute int
	// TokensPerMinute is how many tokens may be asked for and answered in a minute; they are spread evenly. Before a request begins, it is taken to need what [WithTokens] says, else a token for four bytes of it; what it has needed is settled by [Tokens.Settle].
	TokensPerMinute int
	// Clock tells when the next request may begin. It is needed for the two limits by the minute. With it a vendor that says that it is too much is believed for all requests, not only for those that it refused: none begins before the time that it names, if that is within a minute,
	// and where it says so again within ten seconds, they begin no faster than a little below what it has answered lately; with its replies the pace grows again.
	// What its replies say is left of a model's limits (x-ratelimit-remaining-*, anthropic-ratelimit-*) is not overdrawn: where a limit has no room for a request of that model, see [ForModel], it waits until there is, if that is within a minute.
	Clock clock.Clock
}

// Limiter makes requests wait until the limits allow them, in the order in which they came. A request whose context ends while it waits takes nothing of any limit. One limiter serves one vendor and key; share it between the models that call it.
func Limiter(limits Limits, next http.RoundTripper) http.RoundTripper {
	l := &limiter{next: next, clock: limits.Clock, gate: make(chan struct{}, 1), quotas: map[string]*quota{}}
	if limits.Concurrency > 0 {
		l.slots = make(chan struct{}, limits.Concurrency)
	}
	if limits.PerMinute > 0 {
		l.interval = time.Minute / time.Duration(limits.PerMinute)
	}
	if limits.TokensPerMinute > 0 {
		l.perToken = float64(time.Minute) / float64(limits.TokensPerMinute)
	}
	return l
}

// Tokens is what one call of a model takes of a limit in tokens. It belongs to the context that [WithTokens] made, and is safe for concurrent use.
type Tokens struct {
	mu       sync.Mutex
	estimate int
	limiter  *limiter
	charged  int // for the last request
}

type tokensKey struct{}

// WithTokens says how many tokens the requests of a context need, each; input and the reply's bound together. Its Settle is called when it is known what the last of them has needed.
func WithTokens(ctx context.Context, estimate int) (context.Context, *Tokens) {
	t := &Tokens{estimate: max(estimate, 0)}
	return context.WithValue(ctx, tokensKey{}, t), t
}

// Settle corrects what the last request of the context was charged: what it needed less is free again for the next ones, what it needed more they wait for. A request that no limit in tokens was applied to has nothing to settle.
func (t *Tokens) Settle(used int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limiter == nil {
		return
	}
	t.limiter.settle(used - t.charged)
	t.limiter, t.charged = nil, 0
}

// charge notes what a request is charged, and gives it.
func (t *Tokens) charge(l *limiter) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limiter, t.charged = l, t.estimate
	return t.estimate
}

type waitKey struct{}

// WithWait makes a context whose requests add up how long a limiter with a clock has kept them, so that it is not taken for the time of the vendor. waited tells it, and is safe to call at any time.
func WithWait(ctx context.Context) (with context.Context, waited func() time.Duration) {
	var sum atomic.Int64
	return context.WithValue(ctx, waitKey{}, &sum), func() time.Duration { return time.Duration(sum.Load()) }
}

type limiter struct {
	next     http.RoundTripper
	slots    chan struct{} // a full one is a request, or is held back
	gate     chan struct{} // full while the request whose turn is next waits for it
	clock    clock.Clock
	interval time.Duration
	perToken float64 // in nanoseconds

	mu     sync.Mutex
	last   time.Time // when the latest request began
	paid   time.Time // when the tokens of all requests so far are paid for
	hold   time.Time // before this the vendor wants no request
	pace   pace
	quotas map[string]*quota // by model
	began  int               // requests so far
	cut    int               // requests that had begun when the concurrency was last halved
	held   int               // slots held back
	owed   int               // slots to hold back as soon as they are released
	earned int               // good replies since the concurrency last changed
}

func (l *limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	begun, err := l.enter(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		l.release()
		return nil, err
	}
	l.adapt(begun, resp)
	resp.Body = &body{ReadCloser: resp.Body, done: func(error) { l.release() }}
	return resp, nil
}

// begun is a request that has begun.
type begun struct {
	number  int
	quota   *quota // of its model; nil where nobody says which that is
	cost    charge
	place   int    // among the model's requests
	charged charge // to the model's requests until then
}

// enter waits until the request may begin.
func (l *limiter) enter(req *http.Request) (begun, error) {
	ctx := req.Context()
	if sum, ok := ctx.Value(waitKey{}).(*atomic.Int64); ok && l.clock != nil {
		came := l.clock.Now()
		defer func() { sum.Add(int64(l.clock.Now().Sub(came))) }()
	}
	// A model's own limits come first, so that nothing that other models wait for is kept meanwhile.
	b := begun{quota: l.quota(ctx), cost: charge{1, float64(max(req.ContentLength, 0)) / bytesPerToken, 1}}
	if err := l.room(ctx, &b); err != nil {
		return b, err
	}
	err := l.acquire(ctx)
	if err == nil {
		if err = l.wait(ctx, req); err != nil {
			l.release()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if b.quota != nil {
			b.quota.giveBack(b.cost)
		}
		return b, err
	}
	l.began++
	b.number = l.began
	return b, nil
}

// room waits until the limits of the request's model have room for it.
func (l *limiter) room(ctx context.Context, b *begun) error {
	q := b.quota
	if q == nil {
		return nil
	}
	select {
	case q.gate <- struct{}{}:
		defer func() { <-q.gate }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		l.mu.Lock()
		now := l.clock.Now()
		turn := q.turn(now, b.cost)
		if !turn.After(now) {
			b.place, b.charged = q.take(now, b.cost)
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		if err := l.clock.Sleep(ctx, turn.Sub(now)); err != nil {
			return err
		}
	}
}

func (l *limiter) acquire(ctx context.Context) error {
	if l.slots == nil {
		return nil
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *limiter) release() {
	if l.slots == nil {
		return
	}
	l.mu.Lock()
	keep := l.owed > 0
	if keep {
		l.owed--
		l.held++
	}
	l.mu.Unlock()
	if !keep {
		<-l.slots
	}
}

// adapt changes concurrency and pace by what the vendor answered. Of the requests that were under way when they were lowered, none lowers them again.
func (l *limiter) adapt(b begun, resp *http.Response) {
	tooMuch := TooMuch(resp.StatusCode)
	number := b.number
	l.mu.Lock()
	if l.clock != nil {
		now := l.clock.Now()
		if b.quota != nil {
			b.quota.hear(now, b.place, b.charged, resp.Header)
		}
		switch {
		case tooMuch:
			held := l.hold
			if d, ok := asked(resp, now); ok && d <= maxHold && l.hold.Before(now.Add(d)) {
				l.hold = now.Add(d)
			}
			if number > l.cut {
				l.pace.lower(now, held)
			}
		case resp.StatusCode < http.StatusInternalServerError:
			l.pace.answered(now)
		}
	}
	allowed := cap(l.slots) - l.held - l.owed
	grow := false
	switch {
	case tooMuch:
		if number > l.cut {
			l.owed += allowed - max(allowed/2, min(allowed, 1))
			l.cut, l.earned = l.began, 0
		}
	case l.held+l.owed > 0:
		if l.earned++; l.earned >= patience*allowed {
			l.earned = 0
			if l.owed > 0 {
				l.owed--
			} else {
				l.held--
				grow = true
			}
		}
	}
	l.mu.Unlock()
	if grow {
		<-l.slots
	}
}

// TooMuch reports whether a vendor says by a status that it has more to do than it can or wants to.
func TooMuch(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == statusOverloaded
}

// maxHold is the longest time for which a vendor's word keeps all requests back. Whoever asks for more is asked again at once, so that what waits for an answer learns that there is none.
const maxHold = time.Minute

// patience is how many good replies each of the allowed requests must have had before there may be one more. A larger one finds less of what the vendor takes, a smaller one is refused more often.
const patience = 4

// statusOverloaded is what some vendors answer instead of 503.
const statusOverloaded = 529

// bytesPerToken is how many bytes of a request are taken for a token where nobody says how many it needs.
const bytesPerToken = 4

// tokens is what a request is charged; 0 without a limit in tokens.
func (l *limiter) tokens(req *http.Request) int {
	if l.perToken == 0 {
		return 0
	}
	if t, ok := req.Context().Value(tokensKey{}).(*Tokens); ok {
		return t.charge(l)
	}
	return int(max(req.ContentLength, 0)+bytesPerToken-1) / bytesPerToken
}

// wait waits for the request's turn and takes it.
func (l *limiter) wait(ctx context.Context, req *http.Request) error {
	if l.clock == nil {
		return nil
	}
	select {
	case l.gate <- struct{}{}:
		defer func() { <-l.gate }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		l.mu.Lock()
		now := l.clock.Now()
		turn := l.turn()
		if !turn.After(now) {
			l.last = now
			if l.perToken > 0 {
				l.paid = now.Add(l.price(l.tokens(req)))
			}
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		// The turn may have moved when it has come: a vendor has asked for a pause, or a request has needed more tokens.
		if err := l.clock.Sleep(ctx, turn.Sub(now)); err != nil {
			return err
		}
	}
}

// quota is that of the model that a request's context names.
func (l *limiter) quota(ctx context.Context) *quota {
	model, ok := ctx.Value(modelKey{}).(string)
	if !ok || l.clock == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quotas[model] == nil {
		l.quotas[model] = &quota{gate: make(chan struct{}, 1)}
	}
	return l.quotas[model]
}

// turn is when the next request may begin.
func (l *limiter) turn() time.Time {
	turn := l.hold
	if l.perToken > 0 && turn.Before(l.paid) {
		turn = l.paid
	}
	if gap := max(l.interval, l.pace.gap()); gap > 0 && !l.last.IsZero() && turn.Before(l.last.Add(gap)) {
		turn = l.last.Add(gap)
	}
	return turn
}

// price is how long tokens take to be paid for.
func (l *limiter) price(tokens int) time.Duration {
	return time.Duration(float64(tokens) * l.perToken)
}

// settle corrects what was charged.
func (l *limiter) settle(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paid = l.paid.Add(l.price(more))
}
