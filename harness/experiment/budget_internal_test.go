package experiment

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/results"
)

var _ = Describe("a call that waits for money", func() {
	It("ends with its context, and takes nothing", func(ctx context.Context) {
		b := NewBudget(15, 0)
		Expect(b.reserve(ctx, 10)).To(Succeed())
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		Expect(b.reserve(short, 10)).To(MatchError(context.DeadlineExceeded))
		Expect(b.exceededBy()).To(BeNil())
		b.settle(10, 3)
		Expect(b.reserve(ctx, 12)).To(Succeed())
	})

	It("is refused once those under way have cost too much", func(ctx context.Context) {
		b := NewBudget(15, 0)
		Expect(b.reserve(ctx, 10)).To(Succeed())
		waited := make(chan error)
		go func() { waited <- b.reserve(ctx, 10) }()
		Consistently(waited, "20ms").ShouldNot(Receive())
		b.settle(10, 10)
		Eventually(waited).Should(Receive(MatchError(errBudget)))
		Expect(b.exceededBy()).To(Equal(&results.Budget{LimitUSD: 15, SpentUSD: 10, NextUSD: 10}))
	})
})
