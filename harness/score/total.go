package score

import "github.com/echoeval/echoeval/core/eval"

// Total makes an item's score and verdict (pass, fail or unjudged) of its checks. Checks of weight 0 only report and count for neither.
//
// The score is the weighted mean of the judged checks, nil where none was judged. Without a threshold the item passes when each check passes. With one, the weighted mean must reach it and each required check must pass.
//
// Fail comes before unjudged: one failed check that counts decides, whatever the others would have said. An unjudged check makes the item unjudged. With a threshold, the item fails all the same where even a full score of the unjudged checks would not bring the mean to it.
// An item without a check that counts passes, unless it has a threshold: a mean of nothing reaches none.
func Total(results []eval.CheckResult, threshold *float64) (*eval.Fraction, eval.CheckStatus) {
	var sum, judged, open float64
	outcome := eval.CheckPass
	for _, r := range results {
		weight := float64(r.Weight)
		if weight <= 0 {
			continue
		}
		if r.Status == eval.CheckUnjudged || r.Score == nil {
			open += weight
			if outcome == eval.CheckPass {
				outcome = eval.CheckUnjudged
			}
			continue
		}
		sum += weight * float64(*r.Score)
		judged += weight
		if r.Status == eval.CheckFail && (threshold == nil || r.Required) {
			outcome = eval.CheckFail
		}
	}
	var score *eval.Fraction
	if judged > 0 {
		mean := eval.Fraction(sum / judged)
		score = &mean
	}
	if threshold == nil || outcome == eval.CheckFail {
		return score, outcome
	}
	switch best := (sum + open) / (judged + open); {
	case judged+open == 0:
		return score, eval.CheckUnjudged
	case !reaches(best, *threshold):
		return score, eval.CheckFail
	}
	return score, outcome
}
