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
)

// outlook is what a run would take.
type outlook struct {
	Dataset string `json:"dataset"`
	Mode    string `json:"mode"`
	Items   int    `json:"items"`
	Runs    int    `json:"runs"`
	// Judging is how many questions the checks put to judges and embedders, at most where only what is stale is recorded.
	Judging int `json:"judge_questions"`
	// RunsMost is how many there are if every verdict stays open to the last repeat.
	RunsMost int `json:"runs_most"`
	// DetectableDrop is the smallest drop of the pass rate that a run like this sees against another, at 80 % power, on the column that sees least. A column is taken to be as it was in the baseline, else in the newest run of the dataset that has it.
	DetectableDrop float64 `json:"detectable_drop"`
	// Assumed says that of some column nothing is known, which is taken to pass on half of the items: the worst there is.
	Assumed bool `json:"assumed"`
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
	look.DetectableDrop, look.Assumed = p.sees()
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
	case look.Runs == 0:
		text += ": every item is skipped"
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
		text += ", " + count(look.Judging, "question") + " of checks"
	}
	if len(look.MissingKeys) > 0 {
		text += "; not set: " + strings.Join(look.MissingKeys, ", ")
	}
	text += ", sees " + gate.Whole(results.Number(look.DetectableDrop))
	if look.Assumed {
		text += " if half of the items pass"
	}
	if look.OverBudget {
		text += fmt.Sprintf("; more than --max-cost %v", o.maxCost)
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

// sees is the smallest drop of the pass rate that the planned run sees on the column that sees least; assumed says that it goes by a rate of one half.
func (p *planned) sees() (drop float64, assumed bool) {
	head := p.experiment.Head()
	clusters, repeats := p.experiment.Clusters(), float64(head.Lines)/float64(max(1, head.Selected.Items*len(head.Providers)))
	earlier := p.earlier()
	for _, c := range head.Providers {
		own, known := p.reference.detectable(c.ID, clusters, repeats)
		if !known {
			own, known = detectableAsIn(earlier, c.ID, clusters, repeats)
		}
		if !known {
			own, assumed = results.Detectable(0.25, 0.5, clusters, repeats), true
		}
		drop = max(drop, own)
	}
	return drop, assumed
}

// detectable is what a run sees on a column whose pass rate is that of the baseline.
func (r *reference) detectable(provider string, clusters int, repeats float64) (float64, bool) {
	if r == nil {
		return 0, false
	}
	sum, n := 0.0, 0
	for i := range r.file.Items {
		item := &r.file.Items[i]
		if passed, of := item.Judged(); item.Provider == provider && of > 0 {
			sum += float64(passed) / float64(of)
			n++
		}
	}
	return results.Detectable(results.Spread(sum, sum, n), sum/float64(max(1, n)), clusters, repeats), n > 0
}

// earlier is the summary of the newest run of the dataset, nil where there is none that can be read.
func (p *planned) earlier() *results.Summary {
	dir, err := results.Resolve(p.runs, p.dataset.Name)
	if err != nil {
		return nil
	}
	run, err := results.Open(dir)
	if err != nil {
		return nil
	}
	defer run.Close()
	return &run.Summary
}

// detectableAsIn is what an earlier run has seen on a column, for as many items and repeats as are planned now.
func detectableAsIn(s *results.Summary, provider string, clusters int, repeats float64) (float64, bool) {
	if s == nil {
		return 0, false
	}
	for _, power := range s.Power {
		if power.Provider != provider || power.Metric != "pass_rate" || power.DetectableDrop == nil {
			continue
		}
		for _, c := range s.Providers {
			if m := c.Metrics["pass_rate"]; c.ID == provider && m.Clusters > 0 && clusters > 0 {
				was := float64(*power.DetectableDrop) * math.Sqrt(float64(m.Clusters)*float64(max(1, s.Selected.Repeat)))
				return min(1, was/math.Sqrt(float64(clusters)*repeats)), true
			}
		}
	}
	return 0, false
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
