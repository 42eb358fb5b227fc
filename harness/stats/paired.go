package stats

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Pairs collects what was measured twice, before and now, and compares the two. The zero value is empty. It holds eight bytes a pair, or a few numbers a group.
type Pairs struct {
	// Scale is the width of the range that a value lies in: 1 for fractions. 0 is a value without bounds.
	Scale float64

	items       int
	before, now float64
	table       [2][2]int // verdicts, by before and now
	compound    bool      // a value is more than one verdict
	differences []float64 // of those without a group
	groups      map[string]*groupSum
}

type groupSum struct {
	sum float64
	n   int
}

// Add takes a pair. Pairs of one group may depend on each other; nil is none. verdicts says that each value is one verdict, 0 or 1, and no mean of repeats.
func (p *Pairs) Add(before, now float64, group *string, verdicts bool) {
	p.items++
	p.before += before
	p.now += now
	if p.compound = p.compound || !verdicts; !p.compound {
		p.table[int(before)][int(now)]++
	}
	if group == nil {
		p.differences = append(p.differences, now-before)
		return
	}
	if p.groups == nil {
		p.groups = map[string]*groupSum{}
	}
	g := p.groups[*group]
	if g == nil {
		g = &groupSum{}
		p.groups[*group] = g
	}
	g.sum += now - before
	g.n++
}

// Len is how many pairs were added.
func (p *Pairs) Len() int { return p.items }

// The methods of a [Comparison]: how p and interval were found.
const (
	// MethodMcNemar is the exact test of McNemar with the interval of Newcombe, for one verdict a side and no groups.
	MethodMcNemar = "mcnemar"
	// MethodSignFlip is the permutation of signs with the interval of Student's t over the differences of items, MethodClusteredSignFlip the same over groups.
	MethodSignFlip          = "sign-flip"
	MethodClusteredSignFlip = "clustered-sign-flip"
	// MethodPairedT and MethodClusteredPairedT have Student's t for both: there are too many differences to permute, or the values have no bounds.
	MethodPairedT          = "paired-t"
	MethodClusteredPairedT = "clustered-paired-t"
)

// Comparison is what pairs say. Difference is now - before.
type Comparison struct {
	Pairs, Clusters         int
	Before, Now, Difference float64
	// Low and High are an interval of the difference; Bounded is false where there is none.
	Low, High float64
	Bounded   bool
	// P is the two-sided p-value of no difference; Tested is false where there is none.
	P      float64
	Tested bool
	// Spread is the standard deviation of one pair's difference as the interval has it: its standard error times the root of Pairs.
	Spread float64
	Method string
}

// Compare compares at a level of confidence; ok is false without pairs.
//
// Of one verdict a side, without groups, the interval is that of Newcombe 1998 ("Improved confidence intervals for the difference between binomial proportions based on paired data", method 10) and p that of McNemar's exact test. Else differences are collapsed to one a cluster, an item or a group, and p comes from a permutation of their signs (exact up to 2^16 of them, else of 9,999 drawn ones), the interval from Student's t.
// To the spread of bounded values that of one more cluster is added, one that moves as far as the farthest did, and by the whole scale where none did, much as Agresti and Min 2005 add a pair for verdicts: few clusters without any difference do not prove that there is none.
func (p *Pairs) Compare(confidence float64) (c Comparison, ok bool) {
	if p.items == 0 {
		return c, false
	}
	n := float64(p.items)
	c = Comparison{Pairs: p.items, Before: p.before / n, Now: p.now / n}
	c.Difference = (p.now - p.before) / n
	if !p.compound && p.groups == nil {
		p.verdicts(&c, confidence)
		return c, true
	}
	p.means(&c, confidence)
	return c, true
}

// verdicts compares by the table of verdicts.
func (p *Pairs) verdicts(c *Comparison, confidence float64) {
	both, lost, gained, neither := p.table[1][1], p.table[1][0], p.table[0][1], p.table[0][0]
	c.Method, c.Clusters = MethodMcNemar, p.items
	c.P, c.Tested = McNemar(lost, gained), true
	c.Low, c.High = Newcombe(both, gained, lost, neither, confidence)
	c.Bounded = true
	n := float64(p.items)
	// One more pair that moves: half of it each way.
	spread := DiscordantSpread(float64(lost)/n, float64(gained)/n)
	c.Spread = math.Sqrt(spread*spread + 1/n)
}

// means compares by the differences of clusters.
func (p *Pairs) means(c *Comparison, confidence float64) {
	var clusters Clusters
	var sizes []float64 // of the clusters' differences
	farthest := 0.0
	add := func(sum float64, n int) {
		clusters.Add(sum, n)
		if sum != 0 {
			sizes = append(sizes, math.Abs(sum))
			farthest = max(farthest, math.Abs(sum)/float64(n))
		}
	}
	for _, d := range p.differences {
		add(d, 1)
	}
	for _, name := range slices.Sorted(maps.Keys(p.groups)) {
		add(p.groups[name].sum, p.groups[name].n)
	}
	c.Clusters = clusters.Len()
	n := float64(p.items)
	e, known := clusters.Error()
	if p.Scale > 0 {
		if farthest == 0 {
			farthest = p.Scale
		}
		e = math.Hypot(e, farthest*math.Sqrt(clusters.meanSquaredSize())/n)
	}
	c.Spread = e * math.Sqrt(n)
	switch {
	case !known && p.Scale == 0, known && e == 0:
	case !known:
		c.Low, c.High, c.Bounded = -p.Scale, p.Scale, true
	default:
		half := student(clusters.Len()-1).Quantile(1-(1-confidence)/2) * e
		c.Low, c.High, c.Bounded = c.Difference-half, c.Difference+half, true
		if p.Scale > 0 {
			c.Low, c.High = max(c.Low, -p.Scale), min(c.High, p.Scale)
		}
	}
	c.Method = MethodSignFlip
	if p.Scale == 0 || len(sizes) > mostFlips {
		c.Method = MethodPairedT
		if known && e > 0 {
			c.P, c.Tested = 2*student(clusters.Len()-1).Survival(math.Abs(c.Difference)/e), true
		}
	} else {
		c.P, c.Tested = signFlip(sizes, math.Abs(p.now-p.before)), true
	}
	if p.groups != nil {
		c.Method = map[string]string{MethodSignFlip: MethodClusteredSignFlip, MethodPairedT: MethodClusteredPairedT}[c.Method]
	}
}

// Effect is the difference in units of its spread over clusters (Cohen's d of paired data) with an interval by the bootstrap. Fewer than three clusters, and differences that are all alike, have none; an end of the interval may be infinite.
func (p *Pairs) Effect(confidence float64) (d, low, high float64, ok bool) {
	values := slices.Clone(p.differences)
	for _, name := range slices.Sorted(maps.Keys(p.groups)) {
		values = append(values, p.groups[name].sum/float64(p.groups[name].n))
	}
	if len(values) < 3 {
		return 0, 0, 0, false
	}
	var sum, squares float64
	for _, x := range values {
		sum += x
		squares += x * x
	}
	d = Effect(sum, squares, len(values))
	if squares == 0 || math.IsInf(d, 0) {
		return 0, 0, 0, false
	}
	low, high, ok = Bootstrap(values, Effect, confidence, Resamples)
	return d, low, high, ok
}

// McNemar is the exact two-sided p-value of McNemar's test (McNemar 1947), where lost things passed only before and gained ones only now: min(1, 2*min(P(X<=lost), P(X>=lost))) with X ~ Bin(lost+gained, 1/2).
func McNemar(lost, gained int) float64 {
	n := lost + gained
	if n == 0 {
		return 1
	}
	x := distuv.Binomial{N: float64(n), P: 0.5}
	return min(1, 2*x.CDF(float64(min(lost, gained))))
}

// Newcombe is the interval of the difference of two paired rates, first less second (Newcombe 1998, method 10): of both + first + second + neither pairs, both or one alone or neither passed.
func Newcombe(both, first, second, neither int, confidence float64) (low, high float64) {
	a, b, c, d := float64(both), float64(first), float64(second), float64(neither)
	n := a + b + c + d
	p1, p2 := (a+b)/n, (a+c)/n
	l1, u1, _ := Wilson(p1, int(n), confidence)
	l2, u2, _ := Wilson(p2, int(n), confidence)
	phi := 0.0
	if margins := (a + b) * (c + d) * (a + c) * (b + d); margins > 0 {
		product := a*d - b*c
		if product > 0 {
			product = max(product-n/2, 0)
		}
		phi = product / math.Sqrt(margins)
	}
	width := func(x, y float64) float64 { return math.Sqrt(max(0, x*x-2*phi*x*y+y*y)) }
	return p1 - p2 - width(p1-l1, u2-p2), p1 - p2 + width(u1-p1, p2-l2)
}

const (
	// mostEnumerated is how many differences have all their signs tried.
	mostEnumerated = 16
	// drawnFlips is how many permutations of more are drawn, mostFlips how many differences there may be.
	drawnFlips = 9_999
	mostFlips  = 10_000
)

// signFlip is the two-sided p-value of a permutation of signs (Fisher 1935, "The design of experiments"): how often the sum of the differences, of which sizes has the absolute values that are not 0, lies at least as far from 0 as it did. sizes is sorted.
func signFlip(sizes []float64, observed float64) float64 {
	total := 0.0
	for _, x := range sizes {
		total += x
	}
	// What adding in another order changes is no difference.
	least := observed - 1e-9*total
	m := len(sizes)
	if m == 0 {
		return 1
	}
	if m <= mostEnumerated {
		// The first sign is held: its other half is the mirror image.
		reached := 0
		for signs := range 1 << (m - 1) {
			sum := sizes[0]
			for i, x := range sizes[1:] {
				if signs>>i&1 == 1 {
					sum += x
				} else {
					sum -= x
				}
			}
			if math.Abs(sum) >= least {
				reached++
			}
		}
		return float64(reached) / float64(int(1)<<(m-1))
	}
	f := newFlips(sizes)
	random := rand.NewPCG(seed, uint64(m))
	reached := 1 // what was observed is one of them
	for range drawnFlips {
		if math.Abs(f.draw(random)) >= least {
			reached++
		}
	}
	return float64(reached) / (drawnFlips + 1)
}
