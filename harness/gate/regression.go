package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/stats"
)

// Drop is what a regression gate bounds: how much a metric may fall against the baseline.
type Drop struct {
	Metric  string
	MaxDrop float64 // in the metric's unit
	// Confidence is the level of the interval; 0 is [stats.Confidence].
	Confidence float64
	// FailInconclusive says that code 6 follows where the interval leaves the question open.
	FailInconclusive bool
}

// regression is the name of the gates that have a [Drop].
const regression = "regression"

// Settle says of a comparison what its interval shows about a drop of more than maxDrop: it lies below -maxDrop (regressed), above it (not worse), or holds it (inconclusive). Then ItemsNeeded is how many items would settle it, if difference and spread stay what they are. A comparison without pairs stays one without baseline.
func Settle(c *results.Comparison, maxDrop float64) {
	n := results.Number(maxDrop)
	c.MaxDrop, c.ItemsNeeded = &n, nil
	switch {
	case c.Status == results.CompareNoBaseline:
	case c.Difference == nil || c.Low == nil || c.High == nil:
		c.Status = results.CompareInconclusive
	case float64(*c.High) < -maxDrop:
		c.Status = results.CompareRegressed
	case float64(*c.Low) >= -maxDrop:
		c.Status = results.CompareNotWorse
	default:
		c.Status = results.CompareInconclusive
		if items, ok := stats.ItemsNeeded(c.Pairs, float64(*c.High-*c.Low)/2, math.Abs(float64(*c.Difference)+maxDrop)); ok {
			c.ItemsNeeded = &items
		}
	}
}

// Drops reports whether a gate needs a baseline.
func Drops(gates []Gate) bool {
	return slices.ContainsFunc(gates, func(g Gate) bool { return g.drop != nil })
}

// DropParts are the parts of a run that regression gates look at alone, each once.
func DropParts(gates []Gate) []results.Where {
	var out []results.Where
	for _, g := range gates {
		if g.drop != nil && g.where != (results.Where{}) && !slices.Contains(out, g.where) {
			out = append(out, g.where)
		}
	}
	return out
}

// Bounds returns what says whether a gate bounds a metric of a part, or of the whole, on a column against the baseline.
func Bounds(gates []Gate) func(provider, metric string, where results.Where) bool {
	return func(provider, metric string, where results.Where) bool {
		_, ok := dropOf(gates, provider, metric, where)
		return ok
	}
}

// dropOf finds the gate that bounds a metric on a column against the baseline.
func dropOf(gates []Gate, provider, metric string, where results.Where) (Gate, bool) {
	for _, g := range gates {
		if g.drop != nil && g.drop.Metric == metric && g.where == where && g.covers(provider, gates) {
			return g, true
		}
	}
	return Gate{}, false
}

// Level gives the confidence that the interval of a comparison has. Of several comparisons that are gated each has a higher one (Bonferroni), so that all of them together hold at the level of their gates: a run with many columns gives no more false alarms than one with one.
func Level(gates []Gate, providers []string, metrics []string) func(provider, metric string, where results.Where) float64 {
	gated := 0
	for _, where := range append(DropParts(gates), results.Where{}) {
		for _, provider := range providers {
			for _, metric := range metrics {
				if _, ok := dropOf(gates, provider, metric, where); ok {
					gated++
				}
			}
		}
	}
	return func(provider, metric string, where results.Where) float64 {
		g, ok := dropOf(gates, provider, metric, where)
		if !ok {
			return stats.Confidence
		}
		level := g.drop.Confidence
		if level == 0 {
			level = stats.Confidence
		}
		return 1 - (1-level)/float64(max(gated, 1))
	}
}

// compare settles every comparison that a gate bounds and returns the gates' entries for the summary, and whether a comparison that stays open fails the run.
func compare(gates []Gate, s *results.Summary) (out []results.Gate, fails func(*results.Comparison) bool) {
	for _, g := range gates {
		if g.Metric != regression || !g.off {
			continue
		}
		for _, p := range s.Providers {
			if g.covers(p.ID, gates) {
				out = append(out, results.Gate{Metric: regression, Provider: p.ID, Where: g.limit(), Status: results.GateOff})
			}
		}
	}
	strict := map[*results.Comparison]bool{}
	if s.Regression != nil {
		for i := range s.Regression.Comparisons {
			c := &s.Regression.Comparisons[i]
			g, ok := dropOf(gates, c.Provider, c.Metric, c.Where())
			if !ok {
				continue
			}
			Settle(c, g.drop.MaxDrop)
			strict[c] = g.drop.FailInconclusive
			bound := g.text
			out = append(out, results.Gate{Metric: regression, Provider: c.Provider, Where: g.limit(), Bound: &bound, Value: c.Difference, N: c.Pairs, Status: statuses[c.Status]})
		}
	}
	return out, func(c *results.Comparison) bool { return strict[c] }
}

// limit names the part that the gate looks at; nil is everything.
func (g Gate) limit() *string {
	if g.where == (results.Where{}) {
		return nil
	}
	text := g.where.String()
	return &text
}

var statuses = map[string]results.GateStatus{
	results.CompareRegressed: results.GateFailed, results.CompareNotWorse: results.GateHolds,
	results.CompareInconclusive: results.GateInconclusive, results.CompareNoBaseline: results.GateInconclusive,
}

// Points writes the difference of a fraction in points, with its sign: -0.013 is "-1.3".
func Points(n results.Number) string {
	text := strconv.FormatFloat(100*float64(n), 'f', 1, 64)
	switch {
	case strings.Trim(text, "-0.") == "":
		return "0.0"
	case n > 0:
		return "+" + text
	}
	return text
}

// Whole gives a drop in whole points, as it is said of what a dataset sees: "6 points". What is below one is not rounded.
func Whole(n results.Number) string {
	points := 100 * float64(n)
	if points < 1 {
		return strconv.FormatFloat(points, 'f', 2, 64) + " points"
	}
	return count(int(math.Round(points)), "point")
}

// IsRegression reports whether a gate is one on a drop against the baseline, whose values are in the unit of what it compares.
func IsRegression(metric string) bool { return metric == regression }

// Found says what a comparison of fractions found: "-1.3 points [-4.1, +1.5] over 195 items".
func Found(c *results.Comparison) string {
	if c.Difference == nil {
		return "no item is asked and judged as in the baseline"
	}
	text := Points(*c.Difference) + " points"
	if c.Low != nil && c.High != nil {
		text += fmt.Sprintf(" [%s, %s]", Points(*c.Low), Points(*c.High))
	}
	return text + " over " + count(c.Pairs, "item")
}

// Open says how a comparison that is inconclusive could be settled; "" for any other.
func Open(c *results.Comparison) string {
	switch {
	case c.Status != results.CompareInconclusive || c.Difference == nil:
		return ""
	case c.ItemsNeeded != nil:
		return thousands(*c.ItemsNeeded) + " items would settle it"
	}
	return "no number of items would settle it, it lies on the bound"
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Name says what a comparison compares: "score of haiku", or of a part "score of haiku (tag urgent)".
func Name(c *results.Comparison) string {
	text := c.Metric + " of " + c.Provider
	if where := c.Where(); where != (results.Where{}) {
		text += " (" + where.String() + ")"
	}
	return text
}

// said is what the verdict and the warnings say of a comparison that is gated.
func said(c *results.Comparison) string {
	text := Name(c)
	switch c.Status {
	case results.CompareNoBaseline:
		return text + " cannot be compared: " + Found(c)
	case results.CompareRegressed:
		text += " regressed: "
	case results.CompareInconclusive:
		text += " is inconclusive: "
	default:
		text += " is not worse: "
	}
	text += Found(c)
	if c.MaxDrop != nil {
		text += fmt.Sprintf(", max_drop %s points", strings.TrimPrefix(Points(*c.MaxDrop), "+"))
	}
	if open := Open(c); open != "" {
		text += "; " + open
	}
	return text
}

// regressions makes the reasons of what is worse than the baseline, and of what stays open where that fails the run.
func regressions(s *results.Summary, in Input) []results.Reason {
	if s.Regression == nil || in.IgnoreRegression {
		return nil
	}
	show := results.Command("echoeval", "show", s.Dataset.Name)
	var out []results.Reason
	gate := regression
	for i := range s.Regression.Comparisons {
		c := &s.Regression.Comparisons[i]
		if c.MaxDrop == nil {
			continue
		}
		r := reason(failure.Gate, results.KindRegression, said(c))
		r.Gate, r.Provider = &gate, &c.Provider
		switch c.Status {
		case results.CompareRegressed:
			items := s.Regression.Items.Worse.Count
			r.Items = &items
			out = append(out, hinted(r, show))
		case results.CompareInconclusive, results.CompareNoBaseline:
			if in.failing != nil && in.failing(c) && !leftOut(s, c) {
				r.Code, r.Kind = failure.Inconclusive, results.KindInconclusive
				out = append(out, hinted(r, settle(s, c)))
			}
		}
	}
	if items := s.Regression.Items.NewViolations.Count; items > 0 {
		r := reason(failure.Gate, results.KindRegression, fmt.Sprintf("%s with an invariant violated that was kept in the baseline", count(items, "item")))
		r.Items = &items
		out = append(out, hinted(r, show))
	}
	return out
}

// leftOut reports whether a part cannot be compared because not all items were selected: that is a warning.
func leftOut(s *results.Summary, c *results.Comparison) bool {
	return c.Status == results.CompareNoBaseline && c.Where() != (results.Where{}) && s.Selected.Items < s.Dataset.Items
}

// settle is what to do about a comparison that is open.
func settle(s *results.Summary, c *results.Comparison) string {
	if c.Status == results.CompareNoBaseline && c.Check != nil && s.Regression.Baseline.Hash != nil {
		return "a baseline holds the verdicts of a check once a gate looks at it: " + results.Command("echoeval", "baseline", "accept", s.Dataset.Name)
	}
	if c.Status == results.CompareNoBaseline {
		return "a run without failures can be made the reference: " + results.Command("echoeval", "baseline", "accept", s.Dataset.Name)
	}
	return "more items, or more repeats of each: --repeat 5, recorded"
}

// openWarnings are the comparisons that a gate leaves open: the run passes, visibly.
func openWarnings(s *results.Summary, in Input) []results.Warning {
	if s.Regression == nil {
		return nil
	}
	var out []results.Warning
	for i := range s.Regression.Comparisons {
		c := &s.Regression.Comparisons[i]
		open := c.Status == results.CompareInconclusive || c.Status == results.CompareNoBaseline
		if c.MaxDrop == nil || !open || in.failing != nil && in.failing(c) && !leftOut(s, c) {
			continue
		}
		hint := settle(s, c)
		out = append(out, results.Warning{Code: "regression-inconclusive", Text: said(c), Hint: &hint})
	}
	return out
}

// open reports whether a gate leaves a comparison open.
func open(s *results.Summary) bool {
	return s.Regression != nil && slices.ContainsFunc(s.Regression.Comparisons, func(c results.Comparison) bool {
		return c.MaxDrop != nil && (c.Status == results.CompareInconclusive || c.Status == results.CompareNoBaseline)
	})
}
