// Package stats holds the statistics that runs, gates and comparisons need. Each names its source and is tested against known answers and by simulation.
//
//   - One run: [Wilson] for rates, [Clusters] for means whose observations come in clusters, [Quantile], [PassAtK] and [PassHatK].
//   - Two runs: [Pairs] collects what was measured twice and compares it, [Holm] corrects for several comparisons.
//   - Before and after: [DetectableDrop] and [ItemsNeeded].
//
// Everything is a plain function of numbers or a small accumulator, so that a run of any size is summarised while it streams. What is drawn at random is drawn from a fixed seed: equal data give equal bytes.
package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the level of every interval that is not asked for at another one.
const Confidence = 0.95

// Wilson returns the score interval of a rate (Wilson 1927): p is the share in [0,1] that was observed in n independent trials. It is never empty and never leaves [0,1], also at p = 0 and p = 1.
//
// Where each trial is itself a share (the passed repeats of an item), the interval is conservative: no variable in [0,1] varies more than a yes-or-no one of the same mean.
//
// ok is false where n is not positive.
func Wilson(p float64, n int, confidence float64) (low, high float64, ok bool) {
	if n <= 0 {
		return 0, 0, false
	}
	z := distuv.UnitNormal.Quantile(1 - (1-confidence)/2)
	size := float64(n)
	scale := 1 + z*z/size
	middle := (p + z*z/(2*size)) / scale
	half := z / scale * math.Sqrt(p*(1-p)/size+z*z/(4*size*size))
	low, high = max(0, middle-half), min(1, middle+half)
	// The two ends below are exact; computed they miss by a rounding error.
	if p == 0 {
		low = 0
	}
	if p == 1 {
		high = 1
	}
	return low, high, true
}

// Clusters accumulates a mean and its standard error where observations of one cluster may depend on each other. The zero value is empty. It keeps six numbers, however many clusters there are.
type Clusters struct {
	observations, clusters int
	// Sums are kept of the distances from the first observation's mean, so that equal observations have no spread at all and large ones lose no digits.
	origin                     float64
	sum, squares, cross, sizes float64
}

// Add adds one cluster: the sum of its n observations. A cluster without observations is left out.
func (c *Clusters) Add(sum float64, n int) {
	if n <= 0 {
		return
	}
	size := float64(n)
	if c.clusters == 0 {
		c.origin = sum / size
	}
	d := sum - c.origin*size
	c.clusters++
	c.observations += n
	c.sum += d
	c.squares += d * d
	c.cross += d * size
	c.sizes += size * size
}

// Observations is how many observations were added.
func (c *Clusters) Observations() int { return c.observations }

// Len is how many clusters were added.
func (c *Clusters) Len() int { return c.clusters }

// Mean returns the mean of all observations; ok is false where there are none.
func (c *Clusters) Mean() (mean float64, ok bool) {
	if c.observations == 0 {
		return 0, false
	}
	return c.origin + c.sum/float64(c.observations), true
}

// Error returns the clustered standard error of the mean: with C clusters and n observations,
//
//	sqrt(C/(C-1) * sum over clusters of (sum of deviations)^2) / n
//
// (Miller 2024, "Adding error bars to evals"; with one observation per cluster it is the ordinary one). ok is false for fewer than two clusters.
func (c *Clusters) Error() (e float64, ok bool) {
	if c.clusters < 2 {
		return 0, false
	}
	n, k := float64(c.observations), float64(c.clusters)
	shift := c.sum / n
	squares := c.squares - 2*shift*c.cross + shift*shift*c.sizes
	return math.Sqrt(max(0, k/(k-1)*squares)) / n, true
}

// Interval returns the interval of the mean by Student's t with C-1 degrees of freedom; ok is false for fewer than two clusters.
func (c *Clusters) Interval(confidence float64) (low, high float64, ok bool) {
	e, ok := c.Error()
	if !ok {
		return 0, 0, false
	}
	mean, _ := c.Mean()
	t := student(c.clusters - 1).Quantile(1 - (1-confidence)/2)
	return mean - t*e, mean + t*e, true
}

func student(degrees int) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(degrees)}
}

// meanSquaredSize is the mean of the squared sizes of the clusters; 1 where each has one observation.
func (c *Clusters) meanSquaredSize() float64 { return c.sizes / float64(max(c.clusters, 1)) }

// Quantile returns the nearest-rank quantile of values that are sorted in ascending order: the smallest of them that at least the share p does not exceed. It is always a value that was observed. ok is false where there are none.
func Quantile(sorted []int64, p float64) (value int64, ok bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1], true
}
