package stats_test

import (
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/stats"
)

var _ = Describe("a rate that a judge found", func() {
	It("is corrected by what the judge gets wrong", func() {
		// 0.85 and 0.90: of 80 % that pass in truth the judge passes 0.8*0.85 + 0.2*0.1 = 70 %.
		judge := stats.Tested{Positives: 100, Found: 85, Negatives: 100, Rejected: 90}
		rate, low, high, ok := stats.RoganGladen(0.7, 200, judge, 0.95)
		Expect(ok).To(BeTrue())
		Expect(rate).To(BeNumerically("~", 0.8, 1e-12))
		Expect([]float64{low, high}).To(HaveExactElements(BeNumerically("~", 0.69, 0.02), BeNumerically("~", 0.91, 0.02)))
		plainLow, plainHigh, _ := stats.Wilson(0.7, 200, 0.95)
		Expect(high-low).To(BeNumerically(">", plainHigh-plainLow), "the judge adds doubt of its own")
	})
	It("stays as it is with a judge that is right", func() {
		rate, low, high, ok := stats.RoganGladen(0.7, 200, stats.Tested{Positives: 5_000, Found: 5_000, Negatives: 5_000, Rejected: 5_000}, 0.95)
		Expect(ok).To(BeTrue())
		Expect(rate).To(BeNumerically("~", 0.7, 1e-12))
		wilsonLow, wilsonHigh, _ := stats.Wilson(0.7, 200, 0.95)
		Expect([]float64{low, high}).To(HaveExactElements(BeNumerically("~", wilsonLow, 0.005), BeNumerically("~", wilsonHigh, 0.005)))
	})
	It("lies within 0 and 1, and around the estimate", func() {
		for _, p := range []float64{0, 0.05, 0.5, 1} {
			for _, t := range []stats.Tested{{1, 1, 1, 1}, {10, 6, 10, 5}, {3, 3, 40, 39}, {50, 26, 50, 25}} {
				rate, low, high, ok := stats.RoganGladen(p, 20, t, 0.95)
				Expect(ok).To(BeTrue())
				Expect([]float64{0, low, rate, high, 1}).To(HaveExactElements(BeNumerically("<=", low), BeNumerically("<=", rate), BeNumerically("<=", high), BeNumerically("<=", 1), Not(BeNil())))
			}
		}
	})
	It("is unknown where the judge is", func() {
		for _, t := range []stats.Tested{{}, {Positives: 10, Found: 10}, {Negatives: 10, Rejected: 10}, {10, 5, 10, 5}, {10, 2, 10, 1}} {
			_, _, _, ok := stats.RoganGladen(0.5, 100, t, 0.95)
			Expect(ok).To(BeFalse())
		}
	})
})

var _ = DescribeTable("by simulation, the interval of a corrected rate covers", func(name string, truth float64, labels int) {
	random := rand.New(rand.NewPCG(9, 10))
	draws := func(n int, p float64) int {
		k := 0
		for range n {
			if random.Float64() < p {
				k++
			}
		}
		return k
	}
	const sensitivity, specificity, n = 0.85, 0.9, 200
	covered, plain := 0.0, 0.0
	for range rounds {
		p := float64(draws(n, truth*sensitivity+(1-truth)*(1-specificity))) / n
		t := stats.Tested{Positives: labels, Found: draws(labels, sensitivity), Negatives: labels, Rejected: draws(labels, specificity)}
		_, low, high, ok := stats.RoganGladen(p, n, t, 0.95)
		covered += share(ok && low <= truth && truth <= high)
		low, high, _ = stats.Wilson(p, n, 0.95)
		plain += share(low <= truth && truth <= high)
	}
	suite.Documented("statistics.md", name, covered, plain)
	Expect(covered).To(BeNumerically(">=", 0.93))
	Expect(plain).To(BeNumerically("<", covered), "what is not corrected does worse")
},
	Entry(nil, "80 % pass in truth, 50 labels of each kind", 0.8, 50),
	Entry(nil, "95 % pass in truth, 50 labels of each kind", 0.95, 50),
	Entry(nil, "80 % pass in truth, 15 labels of each kind", 0.8, 15),
)
