package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/stats"
)

var _ = Describe("the bootstrap", func() {
	It("gives about the interval of the normal approximation, and the same one every time", func() {
		random := rand.New(rand.NewPCG(1, 2))
		values := make([]float64, 501)
		var c stats.Clusters
		for i := range values {
			values[i] = random.NormFloat64()
			c.Add(values[i], 1)
		}
		low, high, ok := stats.Bootstrap(values, stats.Mean, 0.95, 4_000)
		Expect(ok).To(BeTrue())
		wantLow, wantHigh, _ := c.Interval(0.95)
		Expect(low).To(BeNumerically("~", wantLow, 0.01))
		Expect(high).To(BeNumerically("~", wantHigh, 0.01))
		again, _, _ := stats.Bootstrap(values, stats.Mean, 0.95, 4_000)
		Expect(again).To(Equal(low))
	})
	It("is none of fewer than two values", func() {
		_, _, ok := stats.Bootstrap([]float64{1}, stats.Mean, 0.95, 100)
		Expect(ok).To(BeFalse())
	})
	It("knows an effect without spread", func() {
		Expect(stats.Effect(0, 0, 4)).To(BeZero())
		Expect(stats.Effect(-0.4, 0.04, 4)).To(Equal(math.Inf(-1)))
	})
})

func BenchmarkBootstrap(b *testing.B) {
	values := make([]float64, 10_000)
	for i := range values {
		values[i] = float64(i%7) / 7
	}
	for b.Loop() {
		stats.Bootstrap(values, stats.Mean, 0.95, 10_000)
	}
}

func BenchmarkPairs(b *testing.B) {
	p := &stats.Pairs{Scale: 1}
	for i := range 10_000 {
		p.Add(float64(i%11)/10, float64(i%13)/12, nil, false)
	}
	for b.Loop() {
		p.Compare(0.95)
	}
}
