package cli

import (
	"fmt"
	"time"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/replay"
)

// outlook is what a run would take.
type outlook struct {
	Dataset string `json:"dataset"`
	Mode    string `json:"mode"`
	Items   int    `json:"items"`
	Runs    int    `json:"runs"`
	// Recorded is how many of the runs ask a vendor, at most where only what is stale is recorded.
	Recorded spending `json:"recorded"`
	AtMost   bool     `json:"at_most"`
	// OverBudget says that it is more than --max-cost allows.
	OverBudget bool `json:"over_budget"`
}

// dryRun says what a run would do, cost and take, and runs nothing. Estimates go by the tokens and durations of the last recordings, and where there are none by the length of what is asked.
func (p *planned) dryRun(s *State, o *runOptions) error {
	head := p.experiment.Head()
	look := outlook{Dataset: p.dataset.Name, Mode: head.Mode, Items: head.Selected.Items, Runs: head.Lines}
	for c, err := range p.experiment.Cassettes() {
		if err != nil {
			return err
		}
		if c.Skipped {
			look.Runs--
		}
	}
	look.AtMost = o.stale || head.Mode == string(replay.Extend)
	if head.Mode != string(replay.Replay) {
		e, err := estimate(p, map[string]*mean{}, func(experiment.Cassette) (string, bool) { return eval.CauseMissing, true })
		if err != nil {
			return err
		}
		look.Recorded = e.spending
	}
	if limit, err := money.FromFloat(o.maxCost); err == nil && o.maxCost > 0 && look.Recorded.CostUSD != nil {
		look.OverBudget = *look.Recorded.CostUSD > limit
	}
	if o.asJSON {
		return printJSON(s, look)
	}
	text := fmt.Sprintf("%s: %s, %s in mode %s", look.Dataset, count(look.Items, "item"), count(look.Runs, "run"), look.Mode)
	switch {
	case head.Mode == string(replay.Replay):
		text += ", nothing is dialled"
	default:
		if look.AtMost {
			text += ", at most"
		} else {
			text += ","
		}
		text += " " + look.Recorded.price()
		if look.Recorded.TimeMS > 0 {
			text += ", " + roughly(time.Duration(look.Recorded.TimeMS)*time.Millisecond)
		}
		text += look.Recorded.guess()
	}
	if look.OverBudget {
		text += fmt.Sprintf("; more than --max-cost %v", o.maxCost)
	}
	_, err := fmt.Fprintln(s.Stdout, text)
	return unwritable(err)
}

// price says what is known of the cost.
func (t *spending) price() string {
	switch {
	case t.CostUSD == nil:
		return "cost unknown"
	case t.Unknown > 0:
		return fmt.Sprintf("about $%.*f without %d whose cost is unknown", digits(*t.CostUSD), t.CostUSD.Float(), t.Unknown)
	}
	return fmt.Sprintf("about $%.*f", digits(*t.CostUSD), t.CostUSD.Float())
}
