package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Power is the probability with which a detectable drop is detected.
const Power = 0.8

// DiscordantSpread is the standard deviation of the difference of two verdicts on one item, where the first alone passes with probability lost and the second alone with gained:
//
//	sqrt(lost + gained - (lost-gained)^2)
//
// (Miettinen 1968, "The matched pairs design in the case of all-or-none responses").
func DiscordantSpread(lost, gained float64) float64 {
	d := lost - gained
	return math.Sqrt(max(0, lost+gained-d*d))
}

// Design is a comparison of fractions that is planned, or was made, by as many pairs.
type Design struct {
	// Spread is the standard deviation of the difference of one pair where nothing has changed, with one more pair that moves, as [Comparison] has it.
	Spread float64
	// Pairs is how many there are, Clusters how many that do not depend on each other.
	Pairs, Clusters int
	// Verdict is the share that one verdict has in its item's value: 1 over the number of repeats, and 0 where the values are no shares of verdicts. Rate is the share of verdicts that hold before the drop.
	Verdict, Rate float64
}

// DetectableDrop is the smallest true drop for which the interval of a paired difference lies wholly below zero with probability [Power]: the smallest solution of
//
//	drop = (t_confidence + t_power) * sqrt(variance(drop) / pairs) + step/2
//
// with the quantiles of Student's t, that of the two-sided interval first. The variance is that of one pair after the drop. It is more than before it for two reasons: a rate r that falls by d has verdicts that vary by d*(2r-1) - d^2 more (which makes Miettinen's formula of it, see [DiscordantSpread]), and the one more pair that the interval of means adds moves as far as the farthest, which the drop moves further. step is by how much a share of verdicts moves at least (the continuity correction).
// It is 1 where no smaller one is seen. ok is false for fewer than two clusters.
func DetectableDrop(d Design, confidence float64) (drop float64, ok bool) {
	if d.Clusters < 2 || d.Pairs < 1 {
		return 0, false
	}
	n := float64(d.Pairs)
	t := student(d.Clusters - 1)
	quantiles := t.Quantile(1-(1-confidence)/2) + t.Quantile(Power)
	farthest := 0.0 // by how many spreads the farthest of the pairs lies off, about
	if d.Verdict < 1 {
		farthest = distuv.UnitNormal.Quantile(1 - 1/(2*n))
	}
	seen := func(x float64) bool {
		// What was before the drop keeps its half.
		variance := max(d.Spread*d.Spread/2, d.Spread*d.Spread+d.Verdict*(x*(2*d.Rate-1)-x*x))
		if d.Verdict < 1 {
			variance += (x*x + 2*x*farthest*d.Spread) / n
		}
		return x >= quantiles*math.Sqrt(variance/n)+d.Verdict/(2*n)
	}
	low, high := 0.0, 1.0
	if d.Verdict > 0 {
		high = d.Rate // no rate falls further
	}
	if !seen(high) {
		return 1, true
	}
	for range 60 {
		if middle := (low + high) / 2; seen(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true
}

// ItemsNeeded is how many pairs would settle a question that n pairs leave open, if difference and spread stay what they are: the interval of half width half must become narrower than margin, the distance of the difference from the bound. ok is false where no number is enough.
func ItemsNeeded(n int, half, margin float64) (items int, ok bool) {
	if n <= 0 || !(margin > 0) || !(half > 0) {
		return 0, false
	}
	ratio := half / margin
	needed := math.Ceil(float64(n) * ratio * ratio)
	if needed > math.MaxInt32 {
		return 0, false
	}
	// At least one more than there are: what is open is not settled by as many.
	return max(int(needed), n+1), true
}
