package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/stats"
)

// rounds is how often each experiment is repeated: the standard error of a share of 5 % is then 0.7 points.
const rounds = 1_000

// world is an agent before and after a change, asked the same items.
type world struct {
	items, repeats int
	group          int     // items in a group, which the change moves together; 0 for no groups
	alike          bool    // every item passes with the same probability; else three of four always or never pass
	drop           float64 // by which the change lowers each probability
	level          float64 // of scores in place of verdicts: by how much they vary evenly to each side
}

// draw is one experiment.
func (w world) draw(random *rand.Rand) *stats.Pairs {
	p := &stats.Pairs{Scale: 1}
	chance, shock := 0.8, 0.0
	for i := range w.items {
		if !w.alike && w.level == 0 {
			chance = 0.6
			if random.IntN(4) > 0 {
				chance = float64(random.IntN(2))
			}
		}
		if w.group > 0 && i%w.group == 0 {
			shock = 0.2 * float64(2*random.IntN(2)-1)
		}
		share := func(chance float64) float64 {
			if w.level > 0 {
				return chance - 0.1 + w.level*(2*random.Float64()-1)
			}
			passed := 0
			for range w.repeats {
				if random.Float64() < chance {
					passed++
				}
			}
			return float64(passed) / float64(w.repeats)
		}
		var group *string
		if w.group > 0 {
			name := fmt.Sprint(i / w.group)
			group = &name
		}
		p.Add(share(chance), share(chance-w.drop+shock), group, w.repeats == 1 && w.level == 0)
	}
	return p
}

// outcome is how often, of all rounds, a difference was called significant at 5 %, the interval held the true one, and the interval lay wholly below zero.
type outcome struct{ alarms, covered, below float64 }

func (w world) simulate() (o outcome) {
	random := rand.New(rand.NewPCG(20, 26))
	for range rounds {
		c, _ := w.draw(random).Compare(0.95)
		o.alarms += share(c.P < 0.05)
		o.covered += share(c.Low <= -w.drop && -w.drop <= c.High)
		o.below += share(c.High < 0)
	}
	return o
}

func share(yes bool) float64 {
	if yes {
		return 1.0 / rounds
	}
	return 0
}

// within is three standard errors of a share that is simulated.
func within(p float64) float64 { return 3 * math.Sqrt(p*(1-p)/rounds) }

var unchanged = []struct {
	name string
	world
}{
	{"12 items", world{items: 12, repeats: 1, alike: true}},
	{"50 items", world{items: 50, repeats: 1, alike: true}},
	{"12 items, 3 repeats", world{items: 12, repeats: 3}},
	{"50 items, 4 repeats", world{items: 50, repeats: 4}},
	{"50 items, 8 repeats", world{items: 50, repeats: 8}},
	{"100 items in 20 groups, 2 repeats", world{items: 100, repeats: 2, group: 5, alike: true}},
}

var _ = It("by simulation, where nothing has changed the test gives no more false alarms than it says, and the interval covers", func() {
	for _, w := range unchanged {
		o := w.simulate()
		suite.Documented("statistics.md", w.name, o.alarms, o.covered)
		Expect(o.alarms).To(BeNumerically("<=", 0.05+within(0.05)), w.name)
		Expect(o.covered).To(BeNumerically(">=", 0.95-within(0.95)), w.name)
		Expect(o.below).To(BeNumerically("<=", 0.025+within(0.025)), w.name)
	}
})

var _ = It("by simulation, McNemar's test over items and repeats would give false alarms, which is why it is not used", func() {
	random := rand.New(rand.NewPCG(20, 26))
	const items, repeats = 20, 8
	alarms := 0.0
	for range rounds {
		// The change moves each item for better or worse, all its repeats alike; on average it does nothing.
		lost, gained := 0, 0
		for range items {
			shock := 0.3 * float64(2*random.IntN(2)-1)
			for range repeats {
				before, now := random.Float64() < 0.6, random.Float64() < 0.6+shock
				if before && !now {
					lost++
				}
				if now && !before {
					gained++
				}
			}
		}
		alarms += share(stats.McNemar(lost, gained) < 0.05)
	}
	suite.Documented("statistics.md", "McNemar over 20 items x 8 repeats, which is not used", alarms)
	Expect(alarms).To(BeNumerically(">", 0.1))
})

// seen is how often a drop that is called detectable is detected, where the spread is what such a comparison says it is.
func (w world) seen(rate float64) (drop float64, o outcome) {
	random := rand.New(rand.NewPCG(3, 4))
	d := stats.Design{Pairs: w.items, Rate: rate}
	if w.level == 0 {
		d.Verdict = 1 / float64(w.repeats)
	}
	for range 200 {
		c, _ := w.draw(random).Compare(0.95)
		d.Spread += c.Spread / 200
		d.Clusters = c.Clusters
	}
	w.drop, _ = stats.DetectableDrop(d, 0.95)
	return w.drop, w.simulate()
}

var _ = DescribeTable("by simulation, a detectable drop is detected four times out of five", func(name string, w world, rate float64) {
	drop, o := w.seen(rate)
	suite.Documented("statistics.md", name, drop, o.below, o.covered)
	Expect(o.below).To(BeNumerically(">=", 0.79))
	Expect(o.below).To(BeNumerically("<", 0.95), "what is seen nearly always is not the smallest drop that is seen")
	Expect(o.covered).To(BeNumerically(">=", 0.95-within(0.95)))
},
	Entry(nil, "12 items, a detectable drop", world{items: 12, repeats: 1, alike: true}, 0.8),
	Entry(nil, "50 items, a detectable drop", world{items: 50, repeats: 1, alike: true}, 0.8),
	Entry(nil, "200 items, a detectable drop", world{items: 200, repeats: 1, alike: true}, 0.8),
	Entry(nil, "20 items, 5 repeats, a detectable drop", world{items: 20, repeats: 5, alike: true}, 0.8),
	Entry(nil, "100 items, 5 repeats, a detectable drop", world{items: 100, repeats: 5, alike: true}, 0.8),
	Entry(nil, "100 items in 20 groups, 2 repeats, a detectable drop", world{items: 100, repeats: 2, group: 5, alike: true}, 0.8),
	Entry(nil, "50 items with scores, a detectable drop", world{items: 50, repeats: 1, level: 0.1}, 0.7),
)

var _ = DescribeTable("by simulation, the interval of one run covers", func(name string, w world, method func(values []float64) (low, high float64)) {
	random := rand.New(rand.NewPCG(5, 6))
	covered := 0.0
	for range rounds {
		values := make([]float64, w.items)
		for i := range values {
			for range w.repeats {
				if random.Float64() < 0.8 {
					values[i] += 1 / float64(w.repeats)
				}
			}
		}
		low, high := method(values)
		covered += share(low <= 0.8 && 0.8 <= high)
	}
	suite.Documented("statistics.md", name, covered)
	Expect(covered).To(BeNumerically(">=", 0.95-2*within(0.95)))
	Expect(covered).To(BeNumerically("<=", 0.99))
},
	Entry(nil, "Wilson's of a rate", world{items: 50, repeats: 1}, func(values []float64) (low, high float64) {
		sum := 0.0
		for _, x := range values {
			sum += x
		}
		low, high, _ = stats.Wilson(sum/float64(len(values)), len(values), 0.95)
		return low, high
	}),
	Entry(nil, "Student's of a mean", world{items: 50, repeats: 5}, func(values []float64) (low, high float64) {
		var c stats.Clusters
		for _, x := range values {
			c.Add(x, 1)
		}
		low, high, _ = c.Interval(0.95)
		return low, high
	}),
	Entry(nil, "the bootstrap's of a mean", world{items: 50, repeats: 5}, func(values []float64) (low, high float64) {
		low, high, _ = stats.Bootstrap(values, stats.Mean, 0.95, 400)
		return low, high
	}),
)
