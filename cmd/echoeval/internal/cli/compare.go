package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/compare"
	"github.com/echoeval/echoeval/reports/escape"
)

// comparisonFormats are what compare --format takes.
var comparisonFormats = []string{"terminal", "markdown", "json"}

func newCompare(s *State) *cobra.Command {
	var format, out string
	var asJSON, all, gated bool
	bound := compare.DefaultBound
	cmd := &cobra.Command{
		Use: "compare RUN [RUN...]", Short: "Set runs, baselines or the columns of one run side by side", GroupID: "look", Args: atLeast(1, "a run"),
		Long: "Set side by side the columns of one run, or the first of several runs with each of the others. RUN may also be baseline:DATASET[@NAME], which the others are compared with wherever it stands. " +
			"Only items that are asked and judged alike are compared. The exit code is 0; with --gate it is 1 where a metric has dropped beyond doubt, by more than --max-drop, or an item violates an invariant of severity error that it kept before, and 2 where nothing could be compared. What stays open is said and passes.",
		Example: "  echoeval compare latest\n  echoeval compare baseline:quickstart quickstart --gate",
		RunE: func(_ *cobra.Command, args []string) error {
			if asJSON {
				format = "json"
			}
			if !slices.Contains(baseline.Gated(), bound.Metric) {
				return usage(strict.Suggest(bound.Metric, baseline.Gated()), "--metric %s: it cannot be bounded here", bound.Metric)
			}
			if !(bound.MaxDrop >= 0 && bound.MaxDrop < 1) {
				return usage("--max-drop 0.02 is two points", "--max-drop %v: want a drop from 0 to below 1", bound.MaxDrop)
			}
			if !slices.Contains(comparisonFormats, format) {
				return usage("choose among "+strings.Join(comparisonFormats, ", "), "unknown format %q of a comparison", format)
			}
			sides, err := openSides(s, out, args)
			defer func() {
				for _, side := range sides {
					if side.Run != nil {
						_ = side.Run.Close() // only read
					}
				}
			}()
			if err != nil {
				return err
			}
			d, err := compare.New(sides, bound)
			if err != nil {
				return err
			}
			opts := reports.Options{Width: s.tableWidth(), All: all}
			switch format {
			case "json":
				err = compare.JSON(s.Stdout, d)
			case "markdown":
				err = compare.Markdown(s.Stdout, d, opts)
			default:
				err = compare.Write(s.Stdout, d, opts)
			}
			switch {
			case err != nil || !gated:
				return err
			case d.Regressed():
				return exit{failure.Gate}
			case !d.Paired():
				return usage("compare runs of the same items and checks", "--gate: no item is asked and judged alike on both sides")
			}
			for _, open := range d.Open() {
				fmt.Fprintf(s.Stderr, "warning: %s\n", escape.Line(open))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "terminal", strings.Join(comparisonFormats, ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the comparison as JSON")
	cmd.Flags().BoolVar(&gated, "gate", false, "exit with 1 where a metric has dropped beyond doubt, or an invariant is newly violated")
	cmd.Flags().StringVar(&bound.Metric, "metric", bound.Metric, "what must not drop: "+strings.Join(baseline.Gated(), ", "))
	cmd.Flags().Float64Var(&bound.MaxDrop, "max-drop", 0, "the largest drop that is none, in the metric's unit")
	cmd.Flags().BoolVar(&all, "all", false, "show every item that disagrees, cut nothing")
	cmd.Flags().StringVar(&out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	return cmd
}

// openSides opens what compare names. What was opened is returned also where that fails.
func openSides(s *State, out string, names []string) ([]compare.Side, error) {
	var sides []compare.Side
	var errs []error
	seen := map[string]bool{}
	for _, name := range names {
		if of, ok := strings.CutPrefix(name, "baseline:"); ok {
			project, err := currentProject(s)
			if err != nil {
				return sides, err
			}
			f, path, err := namedBaseline(s, project, of)
			if err == nil && !seen[path] {
				seen[path] = true
				sides = append(sides, compare.Side{Name: name, Baseline: f})
			}
			errs = append(errs, err)
			continue
		}
		dir, err := resolveRun(s, out, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if seen[dir] {
			errs = append(errs, usage("name each run once; one alone compares its columns", "%s and another argument are the same run", name))
			continue
		}
		seen[dir] = true
		run, err := results.Open(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sides = append(sides, compare.Side{Name: run.Manifest.ID, Run: run})
	}
	if err := errors.Join(errs...); err != nil {
		return sides, err
	}
	if len(sides) == 1 && sides[0].Baseline != nil {
		return sides, usage("echoeval compare "+names[0]+" latest", "a baseline alone has nothing to be compared with")
	}
	return sides, nil
}
