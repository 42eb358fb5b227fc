package results

import (
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
)

// Where limits what a gate looks at: to the lines with a tag, to those with a check, whose verdict and score then stand for the line's, or to both. "" does not limit.
type Where struct{ Tag, Check string }

// String is "tag urgent, check polite".
func (w Where) String() string {
	var parts []string
	if w.Tag != "" {
		parts = append(parts, "tag "+w.Tag)
	}
	if w.Check != "" {
		parts = append(parts, "check "+w.Check)
	}
	return strings.Join(parts, ", ")
}

// Part is what a gate with a limit looks at, with an entry per provider.
type Part struct {
	Where   Where
	Columns []PartColumn
}

// PartColumn is one column of a [Part].
type PartColumn struct {
	Metrics Metrics
	ColumnTally
}

// Of gives the line as a part sees it; false where it does not.
func (w Where) Of(r *eval.Result) (*eval.Result, bool) {
	if w.Tag != "" && !slices.Contains(r.Tags, w.Tag) {
		return nil, false
	}
	if w.Check == "" {
		return r, true
	}
	seen := *r
	seen.Checks, seen.Score = nil, nil
	var scores float64
	scored, unjudged, failed := 0, false, false
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Name != w.Check {
			continue
		}
		seen.Checks = append(seen.Checks, *c)
		failed = failed || c.Status == eval.CheckFail
		unjudged = unjudged || c.Status == eval.CheckUnjudged
		if c.Score != nil {
			scored++
			scores += float64(*c.Score)
		}
	}
	if len(seen.Checks) == 0 {
		return nil, false
	}
	if scored > 0 {
		score := eval.Fraction(scores / float64(scored))
		seen.Score = &score
	}
	switch {
	case r.Status != eval.Pass && r.Status != eval.Fail && r.Status != eval.Unjudged:
	case failed:
		seen.Status = eval.Fail
	case unjudged:
		seen.Status = eval.Unjudged
	default:
		seen.Status = eval.Pass
	}
	return &seen, true
}

// The metrics over k repeats; their names end in k.
const (
	passAt  = "pass_at_"
	passHat = "pass_hat_"
)

// RepeatsOf is the k of a metric over k repeats, such as pass_hat_3; 0 for every other.
func RepeatsOf(metric string) int {
	for _, prefix := range []string{passAt, passHat} {
		if text, ok := strings.CutPrefix(metric, prefix); ok {
			if k, err := strconv.Atoi(text); err == nil && k > 0 && strconv.Itoa(k) == text {
				return k
			}
		}
	}
	return 0
}
