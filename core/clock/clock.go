// Package clock is where time comes from. Code that needs the time takes a [Clock]; only [Wall] reads the machine's.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock tells the time and waits. Implementations are safe for concurrent use.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx ends, and then returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// Wall is the machine's clock.
type Wall struct{}

// Now returns the current time in UTC.
func (Wall) Now() time.Time { return time.Now().UTC() }

// Sleep waits in real time.
func (Wall) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Virtual is a clock that moves only when told. Waiting on it takes no time: it moves the clock on. The zero value stands at the zero time.
type Virtual struct {
	mu  sync.Mutex
	now time.Time
}

// NewVirtual returns a clock that stands at start.
func NewVirtual(start time.Time) *Virtual { return &Virtual{now: start} }

// Now returns the time at which the clock stands.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// AdvanceTo moves the clock to t unless it already stands later. Branches that run side by side each advance it to their own end, so that it joins them at the latest.
func (v *Virtual) AdvanceTo(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.After(v.now) {
		v.now = t
	}
}

// Sleep moves the clock on by d without waiting.
func (v *Virtual) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now.Add(max(d, 0))
	return nil
}
