// Package gate bounds metrics and makes the verdict: which exit code a run ends with, and what is said about it.
//
// Gates are parsed and checked against their metrics before the first item runs, evaluated when the last has, and joined with everything else that keeps a run from code 0 by one function, [Decide], so that the printed verdict and the code cannot differ.
//
//	gates, err := gate.Parse(specs)
//	plan.Judge = gate.Judge(gates, gate.Input{...})
//
// # Bounds
//
//	bound    = operator number [unit]
//	operator = ">=" | "<=" | "==" | ">" | "<"
//	unit     = "ms" | "s"          only for durations, which are milliseconds without one
//
// A fraction lies in [0,1], everything else is not negative, and a bound that nothing can break or nothing can keep is refused.
package gate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/results"
)

// Spec is a gate as the dataset gives it: a metric's name and its bound, or Off where the bound is null.
type Spec struct {
	Metric string
	Bound  string
	Off    bool
	// Provider limits the gate to one column, for which it takes the place of the gate of the same metric for all; "" is for all.
	Provider string
	// Tag limits it to the lines with a tag, Check to those with a check, whose verdict and score then stand for the line's.
	Tag, Check string
	// Drop is set where the metric is "regression", which has no Bound.
	Drop *Drop
	Pos  failure.Position
}

// Gate is a gate that was checked. The zero value is none; see [Parse].
type Gate struct {
	Metric   string
	provider string
	where    results.Where
	pos      failure.Position
	drop     *Drop
	off      bool
	// standard says that the dataset does not name the gate.
	standard bool
	bound    eval.Bound
	text     string // of the bound
}

// standard are the gates that hold where a dataset does not name them.
var standard = []Gate{
	{Metric: passRate, bound: eval.Bound{Op: "==", Value: 1}, text: "== 1", standard: true},
	{Metric: violations, bound: eval.Bound{Op: "==", Value: 0}, text: "== 0", standard: true},
	{Metric: errorRate, bound: eval.Bound{Op: "==", Value: 0}, text: "== 0", standard: true},
}

// Metrics whose gates mean more than their bound.
const (
	passRate   = "pass_rate"
	violations = "invariant_violations"
	errorRate  = "error_rate"
)

// Parse checks a dataset's gates and adds the standard ones that it does not name: those of the dataset first, in its order. All problems come at once, each with its place and code Input.
func Parse(specs []Spec) ([]Gate, error) {
	var gates []Gate
	var errs []error
	type scope struct{ metric, provider, tag, check, dropped string }
	named := map[scope]failure.Position{}
	for _, spec := range specs {
		at := scope{spec.Metric, spec.Provider, spec.Tag, spec.Check, ""}
		if spec.Drop != nil {
			at.dropped = spec.Drop.Metric
		}
		if first, twice := named[at]; twice {
			errs = append(errs, failure.At(spec.Pos, failure.Input, "the gate %q stands here a second time, first at %s", spec.Metric, first))
			continue
		}
		named[at] = spec.Pos
		g, err := parse(spec)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		gates = append(gates, g)
	}
	for _, g := range standard {
		if _, ok := named[scope{metric: g.Metric}]; !ok {
			gates = append(gates, g)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return gates, nil
}

// byCheck are the metrics that a gate limited by check can bound: those made of verdicts and scores.
var byCheck = []string{passRate, "score", "item_pass_rate"}

func parse(spec Spec) (Gate, error) {
	where := results.Where{Tag: spec.Tag, Check: spec.Check}
	if spec.Metric == regression {
		g := Gate{Metric: regression, provider: spec.Provider, where: where, pos: spec.Pos, off: spec.Off, drop: spec.Drop}
		if spec.Drop != nil {
			g.text = fmt.Sprintf("%s drops <= %s", spec.Drop.Metric, strconv.FormatFloat(spec.Drop.MaxDrop, 'f', -1, 64))
		}
		return g, nil
	}
	kind, ok := results.FindMetric(spec.Metric)
	if !ok {
		return Gate{}, failure.WithHint(failure.At(spec.Pos, failure.Input, "unknown metric %q", spec.Metric), "%s", strict.Suggest(spec.Metric, metricNames()))
	}
	if spec.Check != "" && !slices.Contains(byCheck, spec.Metric) && !strings.HasPrefix(spec.Metric, "pass_") {
		return Gate{}, failure.WithHint(failure.At(spec.Pos, failure.Input, "gate %s: a check has no %s", spec.Metric, spec.Metric), "limited by check are %s", strings.Join(byCheck, ", "))
	}
	if spec.Off {
		return Gate{Metric: spec.Metric, provider: spec.Provider, where: where, pos: spec.Pos, off: true}, nil
	}
	wrong := func(hint, format string, args ...any) (Gate, error) {
		return Gate{}, failure.WithHint(failure.At(spec.Pos, failure.Input, "gate %s: %s", spec.Metric, fmt.Sprintf(format, args...)), "%s", hint)
	}
	text := strings.TrimSpace(spec.Bound)
	i := slices.IndexFunc(eval.BoundOperators, func(op string) bool { return strings.HasPrefix(text, op) })
	if i < 0 {
		return wrong(`a comparison and a number, as in "`+example[kind.Unit]+`"`, "the bound %q does not begin with one of >= <= == > <", spec.Bound)
	}
	op := eval.BoundOperators[i]
	number := strings.TrimSpace(text[len(op):])
	limit, unit, err := amount(number)
	if err != nil {
		return wrong(`a comparison and a number, as in "`+example[kind.Unit]+`"`, "%q is no number", number)
	}
	switch {
	case kind.Unit == results.UnitMS && (unit == "" || unit == "ms"):
	case kind.Unit == results.UnitMS && unit == "s":
		limit *= 1000
	case kind.Unit == results.UnitMS:
		return wrong("a duration is in ms or s", "%s is in ms, %q is not", spec.Metric, number)
	case unit == "%" && kind.Unit == results.UnitFraction:
		return wrong("write "+strconv.FormatFloat(limit/100, 'f', -1, 64), "%s is a fraction in [0,1], not a percentage", spec.Metric)
	case unit != "":
		return wrong("write the number alone", "%s is a %s and takes no unit %q", spec.Metric, noun[kind.Unit], unit)
	}
	g := Gate{Metric: spec.Metric, provider: spec.Provider, where: where, pos: spec.Pos, bound: eval.Bound{Op: op, Value: limit}, text: op + " " + number}
	low, high := 0.0, math.Inf(1)
	if kind.Unit == results.UnitFraction {
		high = 1
	}
	if limit < low || limit > high {
		hint := "it is never negative"
		if kind.Unit == results.UnitFraction {
			hint = "write 0.95 for 95 %"
		}
		return wrong(hint, "%s is a %s, and %s is outside its range", spec.Metric, noun[kind.Unit], number)
	}
	// Comparisons are monotone, so that the ends of the range tell whether anything can break or keep them; == tells itself.
	atLow, atHigh := g.bound.Holds(low), g.bound.Holds(high)
	switch {
	case op != "==" && atLow && atHigh:
		return wrong("null switches the gate off, visibly", "nothing can break %q", g.text)
	case op != "==" && !atLow && !atHigh:
		return wrong("leave room on one side", "nothing can keep %q", g.text)
	}
	return g, nil
}

var (
	example = map[results.Unit]string{results.UnitFraction: ">= 0.95", results.UnitCount: "<= 10", results.UnitUSD: "<= 1.00", results.UnitMS: "<= 2500 ms"}
	noun    = map[results.Unit]string{results.UnitFraction: "fraction", results.UnitCount: "count", results.UnitUSD: "number of US dollars", results.UnitMS: "duration"}
)

// amount splits a number from the letters behind it.
func amount(text string) (value float64, unit string, err error) {
	end := len(text)
	for end > 0 && (text[end-1] < '0' || text[end-1] > '9') && text[end-1] != '.' {
		end--
	}
	unit = strings.TrimSpace(text[end:])
	digits := text[:end]
	// Hexadecimal, underscores, infinities and what else Go reads as a number are not for people to guess.
	if strings.Trim(strings.TrimPrefix(digits, "-"), "0123456789.") != "" {
		return 0, "", fmt.Errorf("%q is no decimal number", digits)
	}
	value, err = strconv.ParseFloat(digits, 64)
	return value, unit, err
}

func metricNames() []string {
	names := make([]string, len(results.MetricTable))
	for i, kind := range results.MetricTable {
		names[i] = kind.Name
	}
	return names
}

// covers says whether the gate is for a column: all are but those of another, and those for which another gate stands.
func (g Gate) covers(provider string, gates []Gate) bool {
	if g.provider != "" {
		return g.provider == provider
	}
	return !slices.ContainsFunc(gates, func(other Gate) bool {
		same := other.Metric == g.Metric && other.where == g.where && other.provider == provider
		return same && (g.drop == nil || other.drop == nil || g.drop.Metric == other.drop.Metric)
	})
}

// Limit is a part of a run that a gate looks at alone, and the place of the gate.
type Limit struct {
	results.Where
	Pos failure.Position
}

// Limits are the parts of a run that the gates look at, each once.
func Limits(gates []Gate) []Limit {
	var out []Limit
	for _, g := range gates {
		if (g.where != results.Where{}) && !slices.ContainsFunc(out, func(l Limit) bool { return l.Where == g.where }) {
			out = append(out, Limit{g.where, g.pos})
		}
	}
	return out
}

// OfShard are the gates that a part of a run is judged by: those of error_rate over all that it holds.
func OfShard(gates []Gate) []Gate {
	return slices.DeleteFunc(slices.Clone(gates), func(g Gate) bool { return g.Metric != errorRate || g.where != results.Where{} })
}

// Repeats is the most repeats that a gate needs, with the gate's metric and place; 0 where none needs any.
func Repeats(gates []Gate) (k int, metric string, at failure.Position) {
	for _, g := range gates {
		if n := results.RepeatsOf(g.Metric); n > k && !g.off {
			k, metric, at = n, g.Metric, g.pos
		}
	}
	return k, metric, at
}

// Over lists the k of the metrics over k repeats that gates bound, ascending, each once.
func Over(gates []Gate) []int {
	var out []int
	for _, g := range gates {
		if n := results.RepeatsOf(g.Metric); n > 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Evaluate applies the gates to the columns that they are for, in the order of the gates. The values are those of the summary, as they are written there, and of its parts for the gates that are limited to one. Gates on regressions are left out.
func Evaluate(gates []Gate, providers []results.Provider, parts []results.Part) []results.Gate {
	out := make([]results.Gate, 0, len(gates)*len(providers))
	for _, g := range gates {
		if g.Metric == regression {
			continue
		}
		for i, p := range providers {
			if !g.covers(p.ID, gates) {
				continue
			}
			metric := p.Metrics[g.Metric]
			entry := results.Gate{Metric: g.Metric, Provider: p.ID, Default: g.standard}
			if (g.where != results.Where{}) {
				where := g.where.String()
				entry.Where = &where
				metric = partOf(parts, where, i)[g.Metric]
			}
			entry.Value, entry.N = metric.Value, metric.N
			if !g.off {
				bound := g.text
				entry.Bound = &bound
			}
			switch {
			case g.off:
				entry.Status = results.GateOff
			case metric.Value == nil || metric.N == 0:
				entry.Status = results.GateNoData
			case g.bound.Holds(float64(*metric.Value)):
				entry.Status = results.GateHolds
			default:
				entry.Status = results.GateFailed
			}
			out = append(out, entry)
		}
	}
	return out
}

// partOf gives the metrics of a column in a part of the run; none where there is no such part.
func partOf(parts []results.Part, where string, column int) results.Metrics {
	for _, part := range parts {
		if part.Where.String() == where && column < len(part.Columns) {
			return part.Columns[column].Metrics
		}
	}
	return nil
}
