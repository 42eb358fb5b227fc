package reports

import (
	"iter"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
)

// SideBySide names the metrics that are shown of each column where several stand beside each other, in their order.
var SideBySide = []string{"pass_rate", "score", "error_rate", "cost_usd", "p50_latency", "p95_latency", "tokens", "tool_calls", "invariant_violations"}

// Share is how often an item passed on a column, of the repeats that were judged.
type Share struct {
	Provider string `json:"provider"`
	Passed   int    `json:"passed"`
	Of       int    `json:"of"`
}

// Disagreement is an item on which columns of a run disagree, with a share for each column that judged it.
type Disagreement struct {
	Item    string  `json:"item"`
	Columns []Share `json:"columns"`
}

// Disagree says whether two columns judged an item differently: at least one repeat each, and not the same share of them passed. What got no verdict, as on a provider that is down, disagrees with nothing. Nor does what is quarantined.
func Disagree(columns [][]eval.Result) (d Disagreement, ok bool) {
	for _, lines := range columns {
		var share Share
		for i := range lines {
			line := &lines[i]
			if line.Quarantined || line.Status != eval.Pass && line.Status != eval.Fail {
				continue
			}
			d.Item, share.Provider = line.Item, line.Provider
			share.Of++
			if line.Status == eval.Pass {
				share.Passed++
			}
		}
		if share.Of == 0 {
			continue
		}
		if len(d.Columns) > 0 {
			first := d.Columns[0]
			ok = ok || first.Passed*share.Of != share.Passed*first.Of
		}
		d.Columns = append(d.Columns, share)
	}
	return d, ok
}

// Disagreements yields the items of a run on which its columns disagree, in the run's order. It reads the results once and holds one item of them; an error ends it.
func Disagreements(run *results.Run) iter.Seq2[Disagreement, error] {
	return func(yield func(Disagreement, error) bool) {
		places := map[string]int{}
		for i, p := range run.Summary.Providers {
			places[p.ID] = i
		}
		if len(places) < 2 {
			return
		}
		columns := make([][]eval.Result, len(places))
		index := 0
		flush := func() bool {
			d, ok := Disagree(columns)
			for i := range columns {
				columns[i] = columns[i][:0]
			}
			return !ok || yield(d, nil)
		}
		for line, err := range run.Lines() {
			if err != nil {
				yield(Disagreement{}, err)
				return
			}
			if line.Index != index {
				if !flush() {
					return
				}
				index = line.Index
			}
			if place, ok := places[line.Provider]; ok {
				columns[place] = append(columns[place], line)
			}
		}
		flush()
	}
}
