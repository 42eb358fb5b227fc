package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/results"
)

// warnings collects the named warnings of all traces, one entry a code and text, in an order that does not depend on which item finished first.
type warnings struct{ seen map[trace.Warning]int }

func (w *warnings) add(list []trace.Warning) {
	for _, x := range list {
		w.note(x, 1)
	}
}

func (w *warnings) note(x trace.Warning, times int) {
	if w.seen == nil {
		w.seen = map[trace.Warning]int{}
	}
	w.seen[x] += times
}

// counts are the warnings as the manifest keeps them, sorted.
func (w *warnings) counts() []results.WarningCount {
	out := make([]results.WarningCount, 0, len(w.seen))
	for x, n := range w.seen {
		out = append(out, results.WarningCount{Code: x.Code, Text: x.Text, Count: n})
	}
	slices.SortFunc(out, func(a, b results.WarningCount) int {
		return strings.Compare(a.Code+"\x00"+a.Text, b.Code+"\x00"+b.Text)
	})
	return out
}

func (w *warnings) list() []results.Warning {
	var out []results.Warning
	for _, c := range w.counts() {
		times := "once"
		if c.Count > 1 {
			times = fmt.Sprintf("%d times", c.Count)
		}
		out = append(out, results.Warning{Code: c.Code, Text: c.Text + " (" + times + ")"})
	}
	return out
}

// datasetWarnings are warnings about the dataset as a whole, whatever ran of it, as a summary holds them.
func datasetWarnings(all []dataset.Warning) []results.Warning {
	var out []results.Warning
	for _, w := range all {
		at := w.At.String()
		one := results.Warning{Code: w.Code, Text: w.Text, At: &at}
		if w.Hint != "" {
			one.Hint = &w.Hint
		}
		out = append(out, one)
	}
	return out
}

func warningsOf(events []trace.Event) []trace.Warning {
	var out []trace.Warning
	for _, e := range events {
		if e.Warning != nil && !slices.Contains(out, *e.Warning) {
			out = append(out, *e.Warning)
		}
	}
	return out
}

// isolation says what keeps a program under test from the world: the recorder, and nothing else.
func (e *Experiment) isolation() []results.Warning {
	for i := range e.opts.Columns {
		if t := e.opts.Columns[i].Target; t != nil {
			at := t.Pos.String()
			return []results.Warning{{Code: "isolation", Text: "isolation: proxy. The program under test runs as it is; what it does past the recorder is neither recorded nor prevented", At: &at}}
		}
	}
	return nil
}
