package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/results"
)

// warnings collects the named warnings of all traces, one entry a code and text, in an order that does not depend on which item finished first.
type warnings struct{ counts map[trace.Warning]int }

func (w *warnings) add(list []trace.Warning) {
	for _, x := range list {
		if w.counts == nil {
			w.counts = map[trace.Warning]int{}
		}
		w.counts[x]++
	}
}

func (w *warnings) list() []results.Warning {
	var out []results.Warning
	for x, n := range w.counts {
		times := "once"
		if n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		out = append(out, results.Warning{Code: x.Code, Text: x.Text + " (" + times + ")"})
	}
	slices.SortFunc(out, func(a, b results.Warning) int {
		return strings.Compare(a.Code+"\x00"+a.Text, b.Code+"\x00"+b.Text)
	})
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
