package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/mutate"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/mutation"
)

// mutateFlags are the flags of mutate beside those that select items.
type mutateFlags struct {
	runOptions
	operators []string
	limit     int
	minKill   float64
	format    string
}

// maxLimit bounds --limit: an operator with more places in one outcome is drawn from.
const maxLimit = 1_000

func newMutate(s *State) *cobra.Command {
	o := &mutateFlags{runOptions: runOptions{mode: "replay", traces: "failed", repeat: "1"}}
	cmd := &cobra.Command{
		Use: "mutate DATASET", Short: "Put faults into recorded outcomes: do the checks notice?", GroupID: "run", Args: between(1, 1, "one dataset"),
		Long: "Replay a dataset, put one fault at a time into each outcome that passes (a tool call left out, another argument, half the answer, a refusal, ...) and judge the mutants by the item's own checks and invariants. The kill rate is the share of mutants that fail; those that survive are shown with the difference, so that one sees which check is missing. " +
			"No key is needed and nothing dials. Judges answer from the cassette what they were asked when it was recorded; where a mutant would have them asked anything else, that check is left out. Programs of command checks run. The exit code is 0; with --min-kill 1 where the kill rate is lower; 3 where the harness itself failed, 4 and 5 where outcomes could not be replayed or judged, and 2 where nothing can be mutated.\n\nOperators:\n" + operatorTable(),
		Example: "  echoeval mutate datasets/quickstart.yaml --seed 1\n  echoeval mutate datasets/quickstart.yaml --item mends-a-typo --operator change-argument --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			return mutateDataset(cmd.Context(), s, o, args[0], cmd.Flags().Changed("min-kill"))
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.items, "item", nil, "only this item (repeat)")
	f.StringArrayVar(&o.tags, "tag", nil, "only items with one of these tags; !TAG: without it (repeat)")
	f.StringVar(&o.filter, "filter", "", "CEL expression over id, tags, metadata and vars: only items that it is true for")
	f.StringVar(&o.sample, "sample", "", "N or P%: only so many of the selected items, by lot, the same ones for the same --seed")
	f.StringArrayVar(&o.providers, "provider", nil, "an id of the dataset or VENDOR:MODEL, in place of the dataset's list (repeat)")
	f.StringArrayVar(&o.set, "set", nil, "KEY=VALUE over the dataset: a path of its keys, or items.KEY for every item; VALUE is YAML (repeat)")
	f.StringVar(&o.repeat, "repeat", "1", "how many of the recorded repeats of each item are mutated")
	f.StringArrayVar(&o.operators, "operator", nil, "only this operator (repeat): "+strings.Join(operatorNames(), ", "))
	f.IntVar(&o.limit, "limit", 5, "how many mutants an operator makes of one outcome at most, drawn by the seed")
	f.Uint64Var(&o.seed, "seed", 1, "seed of what is drawn: the same seed makes the same mutants")
	f.Float64Var(&o.minKill, "min-kill", 0, "exit with 1 where the kill rate is lower, 0.8 is 80 %")
	f.IntVar(&o.concurrency, "concurrency", 0, "how many items run at the same time (default: twice the processors)")
	cassettesFlag(cmd, &o.cassettes)
	f.StringArrayVar(&o.drift, "drift", nil, "CLASS=serve|warn|fail: what is done about a class of drift (repeat)")
	f.BoolVar(&o.leftover, "allow-leftover", false, "do not leave out items that leave recorded requests unused")
	f.StringVar(&o.format, "format", "terminal", strings.Join(comparisonFormats, ", "))
	f.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&o.all, "all", false, "show every survivor and every item")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "a line for each item as it finishes")
	return cmd
}

func operatorNames() []string {
	var names []string
	for _, op := range mutate.Operators {
		names = append(names, op.Name)
	}
	return names
}

// operatorTable lists the operators with what each does.
func operatorTable() string {
	var b strings.Builder
	for _, op := range mutate.Operators {
		fmt.Fprintf(&b, "  %-16s %s\n", op.Name, op.Statement)
	}
	return strings.TrimRight(b.String(), "\n")
}

// choice checks the flags that say which mutants are made.
func (o *mutateFlags) choice(bounded bool) (mutate.Options, error) {
	opts := mutate.Options{Choice: mutate.Choice{Seed: o.seed, Limit: o.limit, Operators: o.operators}}
	for _, name := range o.operators {
		if !slices.Contains(operatorNames(), name) {
			return opts, usage(strict.Suggest(name, operatorNames()), "--operator %s: unknown operator", name)
		}
	}
	if strings.Contains(o.repeat, "..") {
		return opts, usage("--repeat 3", "--repeat %s: no verdict is open here, want a number", o.repeat)
	}
	if o.limit < 1 || o.limit > maxLimit {
		return opts, usage("leave it out for 5", "--limit %d: want 1 to %d", o.limit, maxLimit)
	}
	if bounded {
		if !(o.minKill > 0 && o.minKill <= 1) {
			return opts, usage("--min-kill 0.8 is 80 %", "--min-kill %v: want a fraction above 0, at most 1", o.minKill)
		}
		opts.MinKill = &o.minKill
	}
	return opts, nil
}

func mutateDataset(ctx context.Context, s *State, o *mutateFlags, file string, bounded bool) error {
	opts, err := o.choice(bounded)
	if err != nil {
		return err
	}
	if o.asJSON {
		o.format = "json"
	}
	if !slices.Contains(comparisonFormats, o.format) {
		return usage("choose among "+strings.Join(comparisonFormats, ", "), "unknown format %q of a report on mutants", o.format)
	}
	p, err := plan(s, &o.runOptions, file)
	if err != nil {
		return err
	}
	ctx, stop := s.interruptible(ctx)
	defer stop()
	report, err := mutate.Run(ctx, p.experiment, opts)
	if p.bar != nil {
		p.bar.end()
	}
	if err := errors.Join(err, p.experiment.Close()); err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	shown := reports.Options{Width: s.tableWidth(), All: o.all}
	switch o.format {
	case "json":
		err = mutation.JSON(s.Stdout, report)
	case "markdown":
		err = mutation.Markdown(s.Stdout, report, shown)
	default:
		err = mutation.Write(s.Stdout, report, shown)
	}
	if err != nil {
		return err
	}
	if !o.quiet {
		for _, reason := range report.Verdict.Reasons {
			if reason.Hint != nil {
				fmt.Fprintf(s.Stderr, "hint: %s\n", *reason.Hint)
			}
		}
	}
	if report.Verdict.Code != failure.OK {
		return exit{report.Verdict.Code}
	}
	return nil
}
