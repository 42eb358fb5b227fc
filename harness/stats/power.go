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

// DetectableDrop is the smallest true drop for which the interval of a paired difference lies wholly below zero with probability [Power], by the normal approximation:
//
//	(z_confidence + z_power) * spread / sqrt(n)
//
// spread is the standard deviation of the difference of one pair, z_confidence that of the two-sided interval. ok is false where n is not positive.
func DetectableDrop(spread float64, n int, confidence float64) (drop float64, ok bool) {
	if n <= 0 {
		return 0, false
	}
	z := distuv.UnitNormal.Quantile(1-(1-confidence)/2) + distuv.UnitNormal.Quantile(Power)
	return z * spread / math.Sqrt(float64(n)), true
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
