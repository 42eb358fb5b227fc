package stats_test

import (
	"math"
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/stats"
)

// pairsOf are the differences, each of an item of its own that was measured more than once.
func pairsOf(scale float64, differences ...float64) *stats.Pairs {
	p := &stats.Pairs{Scale: scale}
	for _, d := range differences {
		p.Add(0, d, nil, false)
	}
	return p
}

// verdicts are a table of verdicts: both, only before, only now, neither.
func verdicts(both, lost, gained, neither int) *stats.Pairs {
	p := &stats.Pairs{Scale: 1}
	for _, cell := range []struct {
		n           int
		before, now float64
	}{{both, 1, 1}, {lost, 1, 0}, {gained, 0, 1}, {neither, 0, 0}} {
		for range cell.n {
			p.Add(cell.before, cell.now, nil, true)
		}
	}
	return p
}

var _ = DescribeTable("McNemar's exact test", func(lost, gained int, p float64) {
	Expect(stats.McNemar(lost, gained)).To(BeNumerically("~", p, 5e-7))
	Expect(stats.McNemar(gained, lost)).To(Equal(stats.McNemar(lost, gained)))
},
	// By hand: 2 * (C(8,0)+C(8,1)) / 2^8, and likewise.
	Entry("1 and 7", 1, 7, 18.0/256),
	Entry("0 and 5", 0, 5, 2.0/32),
	Entry("0 and 6", 0, 6, 2.0/64),
	Entry("equal ones are never more than 1", 4, 4, 1.0),
	Entry("none", 0, 0, 1.0),
	// Agresti, "Categorical data analysis", the approval ratings: 150 and 86 who changed their minds.
	Entry("150 and 86", 150, 86, 0.0000372),
)

var _ = DescribeTable("Newcombe's interval of paired rates", func(both, first, second, neither int, low, high float64) {
	gotLow, gotHigh := stats.Newcombe(both, first, second, neither, 0.95)
	Expect(gotLow).To(BeNumerically("~", low, 6e-4))
	Expect(gotHigh).To(BeNumerically("~", high, 6e-4))
	mirrorLow, mirrorHigh := stats.Newcombe(both, second, first, neither, 0.95)
	Expect([]float64{-mirrorHigh, -mirrorLow}).To(HaveExactElements(BeNumerically("~", gotLow, 1e-12), BeNumerically("~", gotHigh, 1e-12)))
},
	// Fagerland, Lydersen and Laake 2014, "Recommended tests and confidence intervals for paired binomial proportions": airway hyper-responsiveness before and after stem cell transplantation (Bentur et al. 2009).
	Entry("1, 1, 7, 12", 1, 1, 7, 12, -0.507, -0.026),
	// Altman et al. 2000, "Statistics with confidence", table 6.2.
	Entry("14, 5, 0, 22", 14, 5, 0, 22, 0.011, 0.226),
)

var _ = Describe("pairs", func() {
	It("of one verdict a side are compared by McNemar and Newcombe", func() {
		c, ok := verdicts(1, 1, 7, 12).Compare(0.95)
		Expect(ok).To(BeTrue())
		Expect(c.Method).To(Equal(stats.MethodMcNemar))
		Expect(c.Difference).To(BeNumerically("~", 6.0/21, 1e-12))
		Expect(c.P).To(BeNumerically("~", 0.0703125, 1e-9))
		Expect(c.Low).To(BeNumerically("~", 0.026, 6e-4))
		Expect(c.High).To(BeNumerically("~", 0.507, 6e-4))
	})

	It("of means are compared by a permutation of signs: Darwin's maize", func() {
		// Fisher 1935, "The design of experiments", section 21: the excess of crossed over self-fertilised plants in eighths of an inch. Of the 32,768 arrangements 1,726 give as large a sum.
		p := pairsOf(0, 49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
		c, _ := p.Compare(0.95)
		Expect(c.Method).To(Equal(stats.MethodPairedT), "without bounds it is Student's")
		// The same section: t = 2.148 on 14 degrees of freedom.
		Expect(c.P).To(BeNumerically("~", 0.0497, 5e-5))
		c, _ = pairsOf(75, 49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48).Compare(0.95)
		Expect(c.Method).To(Equal(stats.MethodSignFlip))
		Expect(c.P).To(BeNumerically("~", 1726.0/32768, 1e-12))
	})

	It("have Student's interval: his own sleep data", func() {
		// Student 1908, "The probable error of a mean": 1.58 hours more, t = 4.0621, p = 0.002833, 95 % interval 0.7001142 to 2.4598858.
		c, _ := pairsOf(0, 1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4).Compare(0.95)
		Expect(c.Difference).To(BeNumerically("~", 1.58, 1e-12))
		Expect(c.P).To(BeNumerically("~", 0.002833, 5e-7))
		Expect(c.Low).To(BeNumerically("~", 0.7001142, 5e-8))
		Expect(c.High).To(BeNumerically("~", 2.4598858, 5e-8))
	})

	It("of a group are one observation", func() {
		grouped, single := &stats.Pairs{Scale: 1}, &stats.Pairs{Scale: 1}
		for i, d := range []float64{0.2, -0.4, 0.6, 0.1, -0.3, 0.5} {
			name := string(rune('a' + i))
			for range 3 {
				grouped.Add(0, d, &name, false)
			}
			single.Add(0, d, nil, false)
		}
		g, _ := grouped.Compare(0.95)
		s, _ := single.Compare(0.95)
		Expect(g.Method).To(Equal(stats.MethodClusteredSignFlip))
		Expect([]int{g.Pairs, g.Clusters}).To(Equal([]int{18, 6}))
		Expect(g.P).To(BeNumerically("~", s.P, 1e-12))
		Expect(g.Low).To(BeNumerically("~", s.Low, 1e-9))
		Expect(g.High).To(BeNumerically("~", s.High, 1e-9))
	})

	It("do not prove anything by being equal, alone or few", func() {
		_, ok := (&stats.Pairs{}).Compare(0.95)
		Expect(ok).To(BeFalse())
		for _, n := range []int{1, 2, 12} {
			for _, p := range []*stats.Pairs{verdicts(n, 0, 0, 0), pairsOf(1, make([]float64, n)...)} {
				c, ok := p.Compare(0.95)
				Expect(ok).To(BeTrue())
				Expect(c.Bounded).To(BeTrue())
				Expect(c.Low).To(BeNumerically("<", -0.1), "%d: %+v", n, c)
				Expect(c.High).To(BeNumerically(">", 0.1), "%d: %+v", n, c)
				Expect(c.P).To(Equal(1.0))
			}
		}
		c, _ := pairsOf(0, 3).Compare(0.95)
		Expect([]bool{c.Bounded, c.Tested}).To(Equal([]bool{false, false}))
		c, _ = pairsOf(0, 3, 3, 3).Compare(0.95)
		Expect([]bool{c.Bounded, c.Tested}).To(Equal([]bool{false, false}), "without spread nothing is known of it")
	})

	It("give equal bytes whenever they are compared, and nearly the exact p by drawing", func() {
		random := rand.New(rand.NewPCG(7, 7))
		var differences []float64
		for range 400 {
			differences = append(differences, math.Round(4*random.NormFloat64()+0.3)/20)
		}
		first, _ := pairsOf(1, differences...).Compare(0.95)
		second, _ := pairsOf(1, differences...).Compare(0.95)
		Expect(first).To(Equal(second))
		normal := math.Erfc(math.Abs(first.Difference) / (first.Spread / 20) / math.Sqrt2)
		Expect(first.P).To(BeNumerically("~", normal, 0.02))
	})

	It("have an effect size with an interval, where they differ", func() {
		d, low, high, ok := pairsOf(1, 0.2, -0.4, 0.6, 0.1, -0.3, 0.5).Effect(0.95)
		Expect(ok).To(BeTrue())
		// By hand: mean 0.11667, standard deviation 0.40702.
		Expect(d).To(BeNumerically("~", 0.28664, 5e-6))
		Expect(low).To(BeNumerically("<", d))
		Expect(high).To(BeNumerically(">", d))
		for _, none := range []*stats.Pairs{pairsOf(1, 0.1, 0.2), pairsOf(1, 0, 0, 0, 0), pairsOf(1, 0.1, 0.1, 0.1)} {
			_, _, _, ok := none.Effect(0.95)
			Expect(ok).To(BeFalse())
		}
	})
})

var _ = DescribeTable("repeats", func(n, c, k int, at, hat float64) {
	gotAt, ok := stats.PassAtK(n, c, k)
	Expect(ok).To(BeTrue())
	gotHat, ok := stats.PassHatK(n, c, k)
	Expect(ok).To(BeTrue())
	Expect(gotAt).To(BeNumerically("~", at, 1e-12))
	Expect(gotHat).To(BeNumerically("~", hat, 1e-12))
},
	// By the binomial coefficients of the definitions.
	Entry("of one", 5, 2, 1, 2.0/5, 2.0/5),
	Entry("of two", 5, 2, 2, 1-3.0/10, 1.0/10),
	Entry("of all", 5, 2, 5, 1.0, 0.0),
	Entry("of none", 5, 0, 3, 0.0, 0.0),
	Entry("of many", 200, 100, 100, 1.0, 1.1043627420e-59),
)

var _ = It("repeats are too few for k, and nonsense is no probability", func() {
	for _, bad := range [][3]int{{1, 1, 3}, {5, 6, 1}, {5, -1, 1}, {5, 2, 0}, {0, 0, 1}} {
		_, at := stats.PassAtK(bad[0], bad[1], bad[2])
		_, hat := stats.PassHatK(bad[0], bad[1], bad[2])
		Expect(at || hat).To(BeFalse(), "%v", bad)
	}
})

var _ = It("Holm's correction keeps the order and never falls", func() {
	// As p.adjust of R gives it.
	Expect(stats.Holm([]float64{0.01, 0.02, 0.03, 0.04})).To(HaveExactElements(BeNumerically("~", 0.04, 1e-12), BeNumerically("~", 0.06, 1e-12), BeNumerically("~", 0.06, 1e-12), BeNumerically("~", 0.06, 1e-12)))
	Expect(stats.Holm([]float64{0.04, 0.001, 0.7})).To(HaveExactElements(BeNumerically("~", 0.08, 1e-12), BeNumerically("~", 0.003, 1e-12), BeNumerically("~", 0.7, 1e-12)))
	Expect(stats.Holm(nil)).To(BeEmpty())
})

var _ = Describe("power", func() {
	It("is the figure of the results contract", func() {
		// 195 pairs, -0.013 [-0.041, 0.015]: a spread of 0.028*sqrt(195)/1.96; 3,120 items settle whether it is below -0.02.
		spread := 0.028 * math.Sqrt(195) / 1.959963984540054
		drop, ok := stats.DetectableDrop(stats.Design{Spread: spread, Pairs: 195, Clusters: 195}, 0.95)
		Expect(ok).To(BeTrue())
		Expect(drop).To(BeNumerically("~", 0.0406, 5e-4))
		items, ok := stats.ItemsNeeded(195, 0.028, 0.007)
		Expect(ok).To(BeTrue())
		Expect(items).To(BeNumerically("~", 3120, 1))
	})
	It("is what Miettinen's formula has after the drop", func() {
		// 500 verdicts of 80 % that fall by d are lost with 0.8(0.2+d) and gained with 0.2(0.8-d).
		d, ok := stats.DetectableDrop(stats.Design{Spread: stats.DiscordantSpread(0.16, 0.16), Pairs: 500, Clusters: 500, Verdict: 1, Rate: 0.8}, 0.95)
		Expect(ok).To(BeTrue())
		// The quantiles of Student's t with 499 degrees as R gives them.
		by := (1.964729 + 0.842388) * stats.DiscordantSpread(0.8*(0.2+d), 0.2*(0.8-d)) / math.Sqrt(500)
		Expect(d).To(BeNumerically("~", by+0.001, 1e-5))
		// A rate that is high has more room to vary when it falls.
		low, _ := stats.DetectableDrop(stats.Design{Spread: stats.DiscordantSpread(0.16, 0.16), Pairs: 500, Clusters: 500, Verdict: 1, Rate: 0.2}, 0.95)
		Expect(low).To(And(BeNumerically("<", d), BeNumerically(">", 0.05)))
		none, _ := stats.DetectableDrop(stats.Design{Spread: 0.1, Pairs: 500, Clusters: 500, Verdict: 1, Rate: 0}, 0.95)
		Expect(none).To(BeNumerically("==", 1), "what never passes cannot fall")
	})
	It("never promises to see a small drop with few items", func() {
		for _, verdict := range []float64{0, 0.2, 1} {
			two, ok := stats.DetectableDrop(stats.Design{Spread: 0.5, Pairs: 2, Clusters: 2, Verdict: verdict, Rate: 0.5}, 0.95)
			Expect(ok).To(BeTrue())
			Expect(two).To(BeNumerically("==", 1))
		}
	})
	It("takes what is lost and gained", func() {
		// By the definition: sqrt(0.3 - 0.01).
		Expect(stats.DiscordantSpread(0.2, 0.1)).To(BeNumerically("~", 0.53851648, 1e-8))
		Expect(stats.DiscordantSpread(0, 0)).To(BeZero())
	})
	It("is unknown without items, and no number settles what lies on the bound", func() {
		for _, clusters := range []int{0, 1} {
			_, ok := stats.DetectableDrop(stats.Design{Spread: 0.3, Pairs: 10, Clusters: clusters}, 0.95)
			Expect(ok).To(BeFalse())
		}
		for _, bad := range [][2]float64{{0.1, 0}, {0.1, -1}, {0, 0.1}, {1, 1e-9}} {
			_, ok := stats.ItemsNeeded(10, bad[0], bad[1])
			Expect(ok).To(BeFalse())
		}
	})
})
