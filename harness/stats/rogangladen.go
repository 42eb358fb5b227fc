package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Tested is how a judge did on things whose truth is known.
type Tested struct {
	// Positives passed in truth, of which the judge passed Found; Negatives did not, of which it failed Rejected.
	Positives, Found, Negatives, Rejected int
}

// RoganGladen corrects a rate for the errors of the judge that found it (Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test"): of n things the share p passed,
//
//	(p + specificity - 1) / (sensitivity + specificity - 1)
//
// within [0,1]. The interval counts the doubt about the judge too (Lang and Reiczigel 2014, "Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity"). ok is false where the judge is not known from both sides, or does no better than chance, so that its verdicts say nothing.
func RoganGladen(p float64, n int, t Tested, confidence float64) (rate, low, high float64, ok bool) {
	if n < 1 || t.Positives < 1 || t.Negatives < 1 {
		return 0, 0, 0, false
	}
	positives, negatives := float64(t.Positives), float64(t.Negatives)
	sensitivity, specificity := float64(t.Found)/positives, float64(t.Rejected)/negatives
	if sensitivity+specificity <= 1 {
		return 0, 0, 0, false
	}
	unit := func(x float64) float64 { return min(1, max(0, x)) }
	rate = unit((p + specificity - 1) / (sensitivity + specificity - 1))
	z := distuv.UnitNormal.Quantile(1 - (1-confidence)/2)
	size := float64(n) + z*z
	p = (p*float64(n) + z*z/2) / size
	positives, negatives = positives+2, negatives+2
	sensitivity, specificity = (float64(t.Found)+1)/positives, (float64(t.Rejected)+1)/negatives
	better := sensitivity + specificity - 1
	if better <= 0 {
		return rate, 0, 1, true
	}
	middle := (p + specificity - 1) / better
	ofSensitivity, ofSpecificity := sensitivity*(1-sensitivity)/positives, specificity*(1-specificity)/negatives
	shift := 2 * z * z * (middle*ofSensitivity - (1-middle)*ofSpecificity)
	e := math.Sqrt(p*(1-p)/size+middle*middle*ofSensitivity+(1-middle)*(1-middle)*ofSpecificity) / better
	low, high = unit(middle+shift-z*e), unit(middle+shift+z*e)
	return rate, min(low, rate), max(high, rate), true
}
