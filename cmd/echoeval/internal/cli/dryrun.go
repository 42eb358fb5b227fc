package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/stats"
)

// outlook is what a run would take.
type outlook struct {
	Dataset string `json:"dataset"`
	Mode    string `json:"mode"`
	Items   int    `json:"items"`
	Runs    int    `json:"runs"`
	// Judging is how many questions the checks put to judges, at most where only what is stale is recorded.
	Judging int `json:"judge_questions"`
	// RunsMost is how many there are if every verdict stays open to the last repeat.
	RunsMost int `json:"runs_most"`
	// DetectableDrop is the smallest drop of the pass rate that a run like this sees against another, at 80 % power, if repeats of an item are as unlike as its pass rate of AssumedPassRate allows: that of the baseline, or the worst there is.
	DetectableDrop  float64 `json:"detectable_drop"`
	AssumedPassRate float64 `json:"assumed_pass_rate"`
	// Recorded is how many of the runs ask a vendor, at most where only what is stale is recorded.
	Recorded spending `json:"recorded"`
	AtMost   bool     `json:"at_most"`
	// Missing is how many of the runs have no cassette. In a replay they are stale.
	Missing int `json:"missing"`
	// MissingKeys names the variables of keys that the run needs and that are not set; null in a replay, which needs none.
	MissingKeys []string `json:"missing_keys"`
	// OverBudget says that it is more than --max-cost allows.
	OverBudget bool `json:"over_budget"`
}

// dryRun says what a run would do, cost and take, and runs nothing. Estimates go by the tokens and durations of the last recordings, and where there are none by the length of what is asked.
func (p *planned) dryRun(s *State, o *runOptions) error {
	head := p.experiment.Head()
	look := outlook{Dataset: p.dataset.Name, Mode: head.Mode, Items: head.Selected.Items, Runs: head.Lines, Judging: p.experiment.Questions()}
	_, most, err := o.repeats()
	if err != nil {
		return err
	}
	look.AssumedPassRate = p.reference.passRate()
	look.DetectableDrop = p.sees(look.AssumedPassRate)
	for c, err := range p.experiment.Cassettes() {
		if err != nil {
			return err
		}
		if c.Skipped {
			look.Runs--
		}
	}
	look.RunsMost = look.Runs
	if most > 0 && head.Lines > 0 {
		look.RunsMost = max(look.Runs, look.Items*len(head.Providers)*most*look.Runs/head.Lines)
	}
	look.AtMost = o.stale || head.Mode == string(replay.Extend)
	if look.Missing, err = p.experiment.Missing(); err != nil {
		return err
	}
	if head.Mode != string(replay.Replay) {
		e, err := estimate(p, map[string]*mean{}, func(experiment.Cassette) (string, bool) { return eval.CauseMissing, true })
		if err != nil {
			return err
		}
		look.Recorded = e.spending
		look.MissingKeys = append([]string{}, missingKeys(s, p.providers(), p.up)...)
	}
	if limit, err := money.FromFloat(o.maxCost); err == nil && o.maxCost > 0 && look.Recorded.CostUSD != nil {
		look.OverBudget = *look.Recorded.CostUSD > limit
	}
	if o.asJSON {
		return printJSON(s, look)
	}
	runs := count(look.Runs, "run")
	if look.RunsMost > look.Runs {
		runs = fmt.Sprintf("%d to %s", look.Runs, count(look.RunsMost, "run"))
	}
	text := fmt.Sprintf("%s: %s, %s in mode %s", look.Dataset, count(look.Items, "item"), runs, look.Mode)
	switch {
	case head.Mode == string(replay.Replay):
		text += ", nothing is dialled"
		if look.Missing > 0 {
			text += fmt.Sprintf("; %s no cassette", has(look.Missing))
		}
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
	if look.Judging > 0 {
		text += ", " + count(look.Judging, "question") + " to judges"
	}
	text += ", sees " + gate.Whole(results.Number(look.DetectableDrop))
	if look.OverBudget {
		text += fmt.Sprintf("; more than --max-cost %v", o.maxCost)
	}
	if len(look.MissingKeys) > 0 {
		text += "; not set: " + strings.Join(look.MissingKeys, ", ")
	}
	if _, err := fmt.Fprintln(s.Stdout, text); err != nil {
		return unwritable(err)
	}
	if head.Mode == string(replay.Replay) && look.Missing > 0 {
		fmt.Fprintf(s.Stderr, "hint: %s --stale\n", p.record)
	}
	return nil
}

func has(n int) string {
	if n == 1 {
		return "1 has"
	}
	return fmt.Sprintf("%d have", n)
}

// sees is the smallest drop of the pass rate that the planned run sees.
func (p *planned) sees(rate float64) float64 {
	head := p.experiment.Head()
	repeats := float64(head.Lines) / float64(max(1, head.Selected.Items*len(head.Providers)))
	spread := stats.DiscordantSpread(rate*(1-rate), rate*(1-rate)) / math.Sqrt(repeats)
	drop, _ := stats.DetectableDrop(spread, p.experiment.Clusters(), stats.Confidence)
	return min(1, math.Round(drop*1e6)/1e6)
}

// passRate is that of the baseline, with one more item that may fall either way; the worst there is where there is no baseline.
func (r *reference) passRate() float64 {
	sum, n := 0.0, 0.0
	if r != nil {
		for i := range r.file.Items {
			if passed, of := r.file.Items[i].Judged(); of > 0 {
				sum += float64(passed) / float64(of)
				n++
			}
		}
	}
	if n == 0 {
		return 0.5
	}
	return (sum + 1) / (n + 2)
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
