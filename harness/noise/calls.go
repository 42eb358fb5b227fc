package noise

import (
	"fmt"

	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/results"
)

// thawed looks at the calls of tools outside the workspace in a run whose tools were frozen: how many were made in an earlier repeat too, with the same arguments the same number of times before, and how many of these gave another result. Both are nil where no trace was kept.
func thawed(run *results.Run, provider string) (calls, other *int, err error) {
	var n, differ int
	kept, item := false, ""
	results := map[string]string{} // of the item, by call
	for line, err := range run.Lines() {
		if err != nil {
			return nil, nil, err
		}
		if line.Provider != provider {
			continue
		}
		if line.Item != item {
			item = line.Item
			clear(results)
		}
		t, ok, err := run.Trace(line)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		kept = true
		times := map[string]int{}
		each(t.Events, func(r *trace.ToolRun) {
			call := r.Name + " " + string(r.Arguments)
			times[call]++
			call = fmt.Sprintf("%d %s", times[call], call)
			was, repeated := results[call]
			if !repeated {
				results[call] = string(r.Result)
				return
			}
			n++
			if was != string(r.Result) {
				differ++
			}
		})
	}
	if !kept {
		return nil, nil, nil
	}
	return &n, &differ, nil
}

// each visits the executed calls of tools outside the workspace.
func each(t trace.Trace, visit func(*trace.ToolRun)) {
	for i := range t.Events {
		if r := t.Events[i].Tool; r != nil && r.Outcome == trace.Executed && r.Scope == tool.External && r.Effect != tool.Pure {
			visit(r)
		}
	}
}
