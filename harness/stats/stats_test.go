package stats_test

import (
	"fmt"
	"math"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/stats"
)

func TestStats(t *testing.T) { suite.Run(t, "stats") }

var _ = DescribeTable("Wilson's interval", func(passed, n int, low, high, within float64) {
	p := float64(passed) / float64(n)
	gotLow, gotHigh, ok := stats.Wilson(p, n, 0.95)
	Expect(ok).To(BeTrue())
	Expect(gotLow).To(BeNumerically("~", low, within))
	Expect(gotHigh).To(BeNumerically("~", high, within))
	// The definition: at an end that is not 0 or 1 the observed share lies exactly z standard errors away.
	for _, end := range []float64{gotLow, gotHigh} {
		if end > 0 && end < 1 {
			Expect(math.Abs(p - end)).To(BeNumerically("~", 1.959963984540054*math.Sqrt(end*(1-end)/float64(n)), 1e-12))
		}
	}
},
	Entry("the figures of the results contract", 186, 200, 0.885945, 0.957848, 5e-7),
	// Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3, to four decimals.
	Entry("81 of 263", 81, 263, 0.2553, 0.3662, 5e-5),
	Entry("15 of 148", 15, 148, 0.0624, 0.1605, 5e-5),
	Entry("0 of 20", 0, 20, 0.0, 0.1611, 5e-5),
	Entry("1 of 29", 1, 29, 0.0061, 0.1718, 5e-5),
	Entry("20 of 20", 20, 20, 0.8389, 1.0, 5e-5),
	Entry("1 of 1", 1, 1, 0.2065, 1.0, 5e-5),
)

var _ = Describe("Wilson's interval at its limits", func() {
	It("is none without trials", func() {
		_, _, ok := stats.Wilson(0, 0, 0.95)
		Expect(ok).To(BeFalse())
	})
	It("holds the share and narrows with the trials", func() {
		width := 2.0
		for _, n := range []int{1, 10, 100, 1_000, 1_000_000} {
			low, high, ok := stats.Wilson(0.3, n, 0.95)
			Expect(ok).To(BeTrue())
			Expect(low).To(BeNumerically("<", 0.3))
			Expect(high).To(BeNumerically(">", 0.3))
			Expect(high - low).To(BeNumerically("<", width))
			width = high - low
		}
	})
})

var _ = Describe("a mean of clusters", func() {
	add := func(values ...float64) *stats.Clusters {
		var c stats.Clusters
		for _, v := range values {
			c.Add(v, 1)
		}
		return &c
	}

	It("is Student's interval where every cluster is one observation", func() {
		// Student 1908 after Cushny and Peebles 1905: extra hours of sleep; R's t.test gives 0.7001142 to 2.4598858 for the differences' paired sample below.
		c := add(1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4)
		mean, ok := c.Mean()
		Expect(ok).To(BeTrue())
		Expect(mean).To(BeNumerically("~", 1.58, 1e-12))
		low, high, ok := c.Interval(0.95)
		Expect(ok).To(BeTrue())
		Expect(low).To(BeNumerically("~", 0.7001142, 1e-7))
		Expect(high).To(BeNumerically("~", 2.4598858, 1e-7))
	})

	It("is the clustered formula, written out", func() {
		clusters := [][]float64{{1, 0, 1}, {0}, {1, 1}, {0.5, 0.25, 0, 1}}
		var c stats.Clusters
		n, total := 0, 0.0
		for _, cluster := range clusters {
			sum := 0.0
			for _, v := range cluster {
				sum += v
			}
			c.Add(sum, len(cluster))
			n, total = n+len(cluster), total+sum
		}
		squares := 0.0
		for _, cluster := range clusters {
			deviation := 0.0
			for _, v := range cluster {
				deviation += v - total/float64(n)
			}
			squares += deviation * deviation
		}
		e, ok := c.Error()
		Expect(ok).To(BeTrue())
		Expect(e).To(BeNumerically("~", math.Sqrt(4.0/3*squares)/float64(n), 1e-12))
		Expect(c.Observations()).To(Equal(n))
		Expect(c.Len()).To(Equal(4))
	})

	It("has no interval with one cluster, and no mean with none", func() {
		one := add(3)
		_, _, ok := one.Interval(0.95)
		Expect(ok).To(BeFalse())
		var none stats.Clusters
		none.Add(5, 0)
		_, ok = none.Mean()
		Expect(ok).To(BeFalse())
	})

	It("has no spread where all observations are equal, however large", func() {
		low, high, ok := add(1834567.1, 1834567.1, 1834567.1).Interval(0.95)
		Expect(ok).To(BeTrue())
		Expect(low).To(Equal(high))
	})
})

var _ = DescribeTable("nearest-rank quantiles", func(values []int64, p float64, want int64) {
	got, ok := stats.Quantile(values, p)
	Expect(ok).To(BeTrue())
	Expect(got).To(Equal(want))
},
	// The worked example of the method: 15, 20, 35, 40, 50.
	Entry(nil, []int64{15, 20, 35, 40, 50}, 0.05, int64(15)),
	Entry(nil, []int64{15, 20, 35, 40, 50}, 0.30, int64(20)),
	Entry(nil, []int64{15, 20, 35, 40, 50}, 0.40, int64(20)),
	Entry(nil, []int64{15, 20, 35, 40, 50}, 0.50, int64(35)),
	Entry(nil, []int64{15, 20, 35, 40, 50}, 1.0, int64(50)),
	Entry("one value", []int64{7}, 0.95, int64(7)),
	Entry("p95 of 20 is the 19th", []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 0.95, int64(19)),
)

var _ = It("has no quantile of nothing", func() {
	_, ok := stats.Quantile(nil, 0.5)
	Expect(ok).To(BeFalse())
})

func ExampleWilson() {
	low, high, _ := stats.Wilson(186.0/200, 200, stats.Confidence)
	fmt.Printf("0.93 [%.3f, %.3f]\n", low, high)
	// Output: 0.93 [0.886, 0.958]
}
