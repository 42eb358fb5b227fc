package cli

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/terminal"
)

func newMerge(s *State) *cobra.Command {
	var out string
	var asJSON, all, noColor bool
	cmd := &cobra.Command{
		Use: "merge RUN...", Short: "Join the shards of a run; only the joined run has a verdict", GroupID: "run", Args: atLeast(1, "the shards of a run"),
		Long:    "Join the shards of a run (run --shard I/N). All of them are needed, of one dataset, agent and selection. The joined run has the bytes of a run in one piece, and is judged like one. The dataset must be there as it was.",
		Example: "  echoeval merge eval-runs/*/ --out merged",
		RunE: func(_ *cobra.Command, names []string) error {
			code, err := merge(s, names, out, asJSON, reports.Options{Width: s.tableWidth(), Color: s.color(noColor), All: all})
			if err != nil {
				return err
			}
			if code != failure.OK {
				return exit{code}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder of the joined run (default: .echoeval/runs below the project's root)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the summary as JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show all items, not only those that did not pass")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "no colours")
	return cmd
}

func merge(s *State, names []string, out string, asJSON bool, opts reports.Options) (failure.Code, error) {
	shards, err := openShards(s, names)
	defer func() {
		for _, shard := range shards {
			_ = shard.Close() // nothing was written through it
		}
	}()
	if err != nil {
		return failure.Input, err
	}
	first := shards[0].Manifest
	words := withoutFlags(first.Flags[1:], slices.Concat(resumable, []string{"shard", "max-cost", "traces"}))
	o := &runOptions{}
	set := pflag.NewFlagSet("merge", pflag.ContinueOnError)
	o.flags(set, kind{use: "run", mode: startMode(first.Flags[0])})
	if err := set.Parse(append(words, "--traces="+string(first.Plan.Traces), "--quiet", "--allow-network")); err != nil {
		return failure.Input, failure.New(failure.Input, "the shards were started with a flag that this version does not know: %s", err)
	}
	o.out = out
	file, err := findDataset(s, shards[0].Dir, first.Plan.Dataset.File)
	if err != nil {
		return failure.Input, err
	}
	o.offline = true
	p, err := plan(s, o, file)
	if err != nil {
		return failure.Input, err
	}
	lines, goOn := 0, ""
	for _, shard := range shards {
		if goOn == "" && !shard.Summary.Complete {
			goOn = "echoeval run --resume " + quote(s.show(shard.Dir)) // the merged run is none that can go on
		}
		then, now := shard.Manifest.Plan, p.experiment.Head()
		lines += then.Lines
		then.Lines, now.Inputs = now.Lines, then.Inputs
		if err := sameInputs(then, now); err != nil {
			return failure.Input, fmt.Errorf("shard %s: %w", *shard.Manifest.Shard, err)
		}
	}
	if whole := p.experiment.Head().Lines; lines != whole {
		return failure.Input, usage("were all shards made with the same dataset and flags?", "the shards hold %d results, the whole run has %d", lines, whole)
	}
	started := s.Clock.Now()
	id, dir, err := results.NewFolder(p.runs, started, p.dataset.Name)
	if err != nil {
		return failure.Internal, err
	}
	done, err := results.Merging(dir)
	if err != nil {
		return failure.Internal, err
	}
	manifest := results.Manifest{
		ID: id, Tool: results.Tool{Version: version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}, Started: started, Host: s.Hostname,
		Git: gitCommit(p.dataset.Root), Flags: append([]string{first.Flags[0]}, words...), Plan: p.experiment.Head(), Environment: environmentNames(s.Environ), Warnings: []results.WarningCount{},
	}
	if err := p.reference.save(dir); err != nil {
		return failure.Internal, err
	}
	summary, warnings, err := p.experiment.Merge(dir, shards, p.judge(o, goOn))
	if err != nil {
		return failure.Internal, err
	}
	finished := s.Clock.Now()
	manifest.Finished, manifest.Warnings = &finished, warnings
	if err := errors.Join(results.WriteManifest(dir, manifest), done(), results.SetLatest(p.runs, id)); err != nil {
		return failure.Internal, err
	}
	run, err := results.Open(dir)
	if err != nil {
		return failure.Internal, err
	}
	defer run.Close()
	if asJSON {
		err = printSummary(s, summary)
	} else {
		err = terminal.Write(s.Stdout, run, opts)
	}
	return summary.Verdict.Code, err
}

// openShards opens the named runs, each once, and checks that they are all the shards of one run. What was opened is returned also where that fails.
func openShards(s *State, names []string) ([]*results.Run, error) {
	var shards []*results.Run
	seen := map[string]bool{}
	for _, name := range names {
		dir, err := resolveRun(s, "", name)
		if err != nil {
			return shards, err
		}
		if seen[dir] {
			continue
		}
		seen[dir] = true
		run, err := results.Open(dir)
		if err != nil {
			return shards, err
		}
		shards = append(shards, run)
		if run.Manifest.Shard == nil || len(run.Manifest.Flags) == 0 {
			return shards, usage("echoeval run DATASET --shard 1/2", "%s is no shard of a run", s.show(dir))
		}
		if run.Incomplete {
			return shards, usage("echoeval run --resume "+quote(s.show(dir)), "shard %s in %s is not finished", *run.Manifest.Shard, s.show(dir))
		}
	}
	slices.SortFunc(shards, func(a, b *results.Run) int { return cmp.Compare(part(a), part(b)) })
	first := shards[0].Manifest
	_, of, _ := strings.Cut(*first.Shard, "/")
	for i, shard := range shards {
		m := shard.Manifest
		if m.Plan.Dataset.Name != first.Plan.Dataset.Name {
			return shards, usage("merge the shards of each dataset apart", "shards of two datasets: %s and %s", first.Plan.Dataset.Name, m.Plan.Dataset.Name)
		}
		if m.Plan.Dataset.Hash != first.Plan.Dataset.Hash {
			return shards, usage("run it again where the files differ", "shard %s was made with another version of dataset %s than shard %s", *m.Shard, m.Plan.Dataset.Name, *first.Shard)
		}
		if a, b := withoutFlags(first.Flags, unequal), withoutFlags(m.Flags, unequal); !slices.Equal(a, b) {
			return shards, usage("shards need the same flags but for --shard", "shard %s was started with %s, shard %s with %s", *first.Shard, strings.Join(a, " "), *m.Shard, strings.Join(b, " "))
		}
		if _, n, _ := strings.Cut(*m.Shard, "/"); n != of {
			return shards, usage("merge shards of one division", "shard %s and shard %s are parts of different divisions", *first.Shard, *m.Shard)
		}
		if i > 0 && part(shard) == part(shards[i-1]) {
			return shards, usage("name each shard once", "shard %s is there twice: %s and %s", *m.Shard, s.show(shards[i-1].Dir), s.show(shard.Dir))
		}
	}
	have := map[int]bool{}
	for _, shard := range shards {
		have[part(shard)] = true
	}
	n, err := strconv.Atoi(of)
	if err != nil {
		return shards, failure.New(failure.Input, "%s: its shard %s cannot be read", s.show(shards[0].Dir), *first.Shard)
	}
	var missing []string
	for i := 1; i <= n; i++ {
		if !have[i] {
			missing = append(missing, experiment.Shard{I: i, N: n}.String())
		}
	}
	if len(missing) > 0 {
		return shards, usage("run what is missing: --shard "+missing[0], "missing: shard %s", strings.Join(missing, ", "))
	}
	return shards, nil
}

// unequal are the flags in which shards may differ: what does not change results.
var unequal = slices.Concat(resumable, []string{"shard"})

func part(run *results.Run) int {
	i, _, _ := strings.Cut(*run.Manifest.Shard, "/")
	n, _ := strconv.Atoi(i)
	return n
}

// withoutFlags takes flags out of the words of a manifest.
func withoutFlags(words, names []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		return strings.HasPrefix(word, "--") && slices.Contains(names, name)
	})
}
