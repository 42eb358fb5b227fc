package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/noise"
	"github.com/echoeval/echoeval/harness/results"
	report "github.com/echoeval/echoeval/reports/noise"
)

func newNoise(s *State) *cobra.Command {
	var judge, agent, format, out string
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	cmd := &cobra.Command{
		Use: "noise RUN", Short: "Split the noise of repeats into agent, judge and environment", GroupID: "look", Args: between(1, 1, "a run with repeats"),
		Long: "Split what repeats of an item differ by into what the agent, its environment and its judges add, and name the culprit of each item that comes and goes. RUN repeats everything; --judge repeats the judges on a frozen answer, --agent the models with frozen tools, as `record --freeze` records them. " +
			"What no run measures is not told. The exit code is 0.",
		Example: "  echoeval record datasets/clinic.yaml --repeat 5 --freeze agent --cassettes noise/agent\n  echoeval noise clinic --judge RUN --agent RUN",
		RunE: func(_ *cobra.Command, args []string) (err error) {
			at := slices.IndexFunc(report.Formats(), func(f report.Format) bool { return f.Name == format })
			if at < 0 {
				return usage(strict.Suggest(format, names), "unknown format %q of a ledger", format)
			}
			var runs [3]*results.Run
			defer func() {
				for _, run := range runs {
					if run != nil {
						err = errors.Join(err, run.Close())
					}
				}
			}()
			for i, name := range []string{args[0], judge, agent} {
				if name == "" {
					continue
				}
				if runs[i], err = openRun(s, out, name); err != nil {
					return err
				}
			}
			for i, frozen := range []experiment.Freeze{experiment.FreezeNothing, experiment.FreezeAgent, experiment.FreezeTools} {
				if err := frozenAs(runs[i], frozen); err != nil {
					return err
				}
			}
			ledger, err := noise.New(noise.Runs{All: runs[0], JudgeAlone: runs[1], ToolsFrozen: runs[2]})
			if err != nil {
				return err
			}
			return report.Formats()[at].Write(s.Stdout, ledger)
		},
	}
	cmd.Flags().StringVar(&judge, "judge", "", "a run that repeats the judges alone: record --freeze agent")
	cmd.Flags().StringVar(&agent, "agent", "", "a run that repeats the models with the results of tools frozen: record --freeze tools")
	cmd.Flags().StringVar(&format, "format", "terminal", strings.Join(names, ", "))
	cmd.Flags().StringVar(&out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	return cmd
}

// frozenAs proves that a run which says what it froze stands in the place for it. A replay does not say.
func frozenAs(run *results.Run, want experiment.Freeze) error {
	if run == nil {
		return nil
	}
	for _, flag := range run.Manifest.Flags {
		if name, ok := strings.CutPrefix(flag, "--freeze="); ok && name != string(want) {
			place := map[string]string{string(experiment.FreezeAgent): "--judge", string(experiment.FreezeTools): "--agent"}[name]
			return usage(fmt.Sprintf("echoeval noise RUN %s %s", place, quote(run.Manifest.ID)), "%s was recorded with --freeze %s: it belongs to %s", run.Manifest.ID, name, place)
		}
	}
	return nil
}
