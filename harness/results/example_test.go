package results_test

import (
	"fmt"
	"os"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

// A run of three items of which the second never finished, from its folder to its verdict.
func Example() {
	if err := run(); err != nil {
		fmt.Print(failure.Render(err))
	}
	// Output:
	// interrupted: 1 of 3 items not run (exit code 130)
	// item-000001 pass
	// item-000002 not_run
	// item-000003 pass
}

func run() error {
	runs, err := os.MkdirTemp("", "runs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(runs) // a temporary folder

	size := resultstest.Size{Items: 3, Providers: 1, Repeats: 1}
	id, dir, err := results.NewFolder(runs, resultstest.Start, "regular")
	if err != nil {
		return err
	}
	if err := results.WriteManifest(dir, results.Manifest{ID: id, Started: resultstest.Start, Plan: size.Head()}); err != nil {
		return err
	}
	journal, err := results.Create(dir, resultstest.Clock())
	if err != nil {
		return err
	}
	for _, index := range []int{3, 1} { // in order of completion
		line := resultstest.Line(index, 0, 1)
		if err := journal.Append(line, resultstest.RawTrace(line, 100), 0); err != nil {
			return err
		}
	}
	if err := journal.Close(); err != nil {
		return err
	}

	gates, err := gate.Parse([]gate.Spec{{Metric: "pass_rate", Bound: ">= 0.95"}})
	if err != nil {
		return err
	}
	plan := size.Plan()
	plan.Judge = gate.Judge(gates, gate.Input{})
	summary, err := results.Fold(dir, plan)
	if err != nil {
		return err
	}
	fmt.Printf("%s (exit code %d)\n", summary.Verdict.Text, summary.Verdict.Code)

	finished, err := results.Open(dir)
	if err != nil {
		return err
	}
	defer finished.Close() // only read
	for line, err := range finished.Lines() {
		if err != nil {
			return err
		}
		fmt.Println(line.Item, line.Status)
	}
	return nil
}
