package clock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
)

func TestClock(t *testing.T) { suite.Run(t, "clock") }

var _ clock.Clock = clock.Wall{}
var _ clock.Clock = (*clock.Virtual)(nil)

var errStop = errors.New("stopped")

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var _ = Describe("a virtual clock", func() {
	It("moves only when told, and only forwards", func() {
		c := clock.NewVirtual(start)
		Expect(c.Now()).To(Equal(start))
		Expect(c.Now()).To(Equal(start))
		c.AdvanceTo(start.Add(time.Minute))
		c.AdvanceTo(start.Add(time.Second))
		Expect(c.Now()).To(Equal(start.Add(time.Minute)))
		Expect(c.Sleep(GinkgoT().Context(), time.Hour)).To(Succeed())
		Expect(c.Sleep(GinkgoT().Context(), -time.Hour)).To(Succeed())
		Expect(c.Sleep(GinkgoT().Context(), 0)).To(Succeed())
		Expect(c.Now()).To(Equal(start.Add(time.Hour + time.Minute)))
		Expect(new(clock.Virtual).Now()).To(Equal(time.Time{}))
	})

	It("does not sleep once the context has ended, and says why", func() {
		c := clock.NewVirtual(start)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errStop)
		Expect(c.Sleep(ctx, time.Hour)).To(MatchError(errStop))
		Expect(c.Now()).To(Equal(start))
	})

	It("joins branches that ran side by side at the latest", func() {
		c := clock.NewVirtual(start)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { c.AdvanceTo(start.Add(time.Duration(i) * time.Second)) })
		}
		wg.Wait()
		Expect(c.Now()).To(Equal(start.Add(99 * time.Second)))
		for range 100 {
			wg.Go(func() { _ = c.Sleep(context.Background(), time.Second) })
		}
		wg.Wait()
		Expect(c.Now()).To(Equal(start.Add(199 * time.Second)))
	})
})

func TestWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := clock.Wall{}
		g.Expect(c.Now().Location()).To(Equal(time.UTC))

		before := c.Now()
		g.Expect(c.Sleep(t.Context(), time.Hour)).To(Succeed())
		g.Expect(c.Now().Sub(before)).To(Equal(time.Hour))

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errStop) })
		before = c.Now()
		g.Expect(c.Sleep(ctx, time.Hour)).To(MatchError(errStop))
		g.Expect(c.Now().Sub(before)).To(Equal(time.Minute))

		g.Expect(c.Sleep(ctx, 0)).To(MatchError(errStop))
		g.Expect(c.Sleep(ctx, -time.Second)).To(MatchError(errStop))
		g.Expect(c.Sleep(t.Context(), 0)).To(Succeed())
	})
}

func ExampleVirtual() {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	_ = c.Sleep(context.Background(), 90*time.Minute) // returns at once
	fmt.Println(c.Now().Format(time.DateTime))
	// Output: 2026-01-01 01:30:00
}
