package transport

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/clock"
)

// Limits bound the traffic to one vendor. 0 is no bound.
type Limits struct {
	// Concurrency is how many requests may be under way at once, their replies' bodies included.
	Concurrency int
	// PerMinute is how many requests may begin in a minute; they are spread evenly.
	PerMinute int
	// Clock tells when the next request may begin; it is needed for PerMinute alone.
	Clock clock.Clock
}

// Limiter makes requests wait until the limits allow them. One limiter serves one vendor; share it between the models that call it.
func Limiter(limits Limits, next http.RoundTripper) http.RoundTripper {
	l := &limiter{next: next, clock: limits.Clock}
	if limits.Concurrency > 0 {
		l.slots = make(chan struct{}, limits.Concurrency)
	}
	if limits.PerMinute > 0 {
		l.interval = time.Minute / time.Duration(limits.PerMinute)
	}
	return l
}

type limiter struct {
	next     http.RoundTripper
	slots    chan struct{}
	clock    clock.Clock
	interval time.Duration

	mu   sync.Mutex
	free time.Time // when the next request may begin
}

func (l *limiter) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := l.acquire(ctx); err != nil {
		closeBody(req)
		return nil, err
	}
	if err := l.pace(ctx); err != nil {
		l.release()
		closeBody(req)
		return nil, err
	}
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		l.release()
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, done: func(error) { l.release() }}
	return resp, nil
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
	if l.slots != nil {
		<-l.slots
	}
}

// pace waits for the request's turn. A turn whose request is given up while it waits is lost.
func (l *limiter) pace(ctx context.Context) error {
	if l.interval == 0 {
		return nil
	}
	l.mu.Lock()
	now := l.clock.Now()
	turn := l.free
	if turn.Before(now) {
		turn = now
	}
	l.free = turn.Add(l.interval)
	l.mu.Unlock()
	return l.clock.Sleep(ctx, turn.Sub(now))
}
