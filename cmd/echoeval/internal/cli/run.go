package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/terminal"
)

// kind is one of the three names of the run command: they differ in the mode that they begin with.
type kind struct{ use, short, long, mode string }

var (
	runKind    = kind{"run", "Run datasets and judge them", "Run datasets, each into a folder of its own, and judge them. The default mode is replay: requests are answered from cassettes and nothing dials.", "replay"}
	recordKind = kind{"record", "Run datasets against the real models and record cassettes", "Run datasets against the real models and write their cassettes. It is `run --mode record`. An item whose run did not come to its end keeps its old cassette.", "record"}
	replayKind = kind{"replay", "Run datasets from their cassettes", "Run datasets from their cassettes. It is `run --mode replay`.", "replay"}
)

func newRun(s *State, k kind) *cobra.Command {
	o := &runOptions{mode: k.mode}
	cmd := &cobra.Command{
		Use: k.use + " [DATASET...]", Short: k.short, Long: k.long, GroupID: "run",
		Example: "  echoeval " + k.use + " datasets/quickstart.yaml --item mends-a-typo",
		Args:    cobra.ArbitraryArgs,
	}
	o.flags(cmd.Flags(), k)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := positive(cmd.Flags()); err != nil {
			return err
		}
		if cmd.Flags().Changed("faults") && o.faults == "" {
			return usage("--faults builtin, or a file; leave it out for none", "--faults is empty")
		}
		return runDatasets(cmd.Context(), s, k, o, args, changed(cmd.Flags()))
	}
	return cmd
}

func runDatasets(ctx context.Context, s *State, k kind, o *runOptions, files, flags []string) error {
	if o.resume != "" {
		if len(files) > 0 {
			return failure.WithHint(failure.New(failure.Input, "--resume takes the dataset from the run"), "echoeval %s --resume %s", k.use, o.resume)
		}
		return resume(ctx, s, k, o, flags)
	}
	if len(files) == 0 {
		project, err := currentProject(s)
		if err != nil {
			return err
		}
		for _, file := range project.Datasets {
			files = append(files, s.show(filepath.Join(project.Root, filepath.FromSlash(file))))
		}
	}
	if len(files) == 0 {
		return failure.WithHint(failure.New(failure.Input, "no dataset is named, and no %s lists any", dataset.ProjectFile), "echoeval %s datasets/quickstart.yaml", k.use)
	}
	if err := o.checkFormats(s, len(files)); err != nil {
		return err
	}
	var plans []*planned
	var errs, unselected []error
	var empty []string
	names := map[string]string{}
	for _, file := range files {
		p, err := plan(s, o, file)
		switch {
		case errors.Is(err, experiment.ErrNothingSelected):
			empty = append(empty, file)
			unselected = append(unselected, err)
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		}
		if other, twice := names[p.dataset.Name]; twice {
			errs = append(errs, usage("name each dataset once, and give each a name of its own", "%s and %s are both named %q", other, file, p.dataset.Name))
		}
		names[p.dataset.Name] = file
		plans = append(plans, p)
	}
	if len(plans) == 0 {
		errs = append(errs, unselected...) // a selection is for all datasets: one that has what it asks for is enough
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, file := range empty {
		fmt.Fprintf(s.Stderr, "%s: nothing selected\n", escape.Line(file))
	}
	if o.dryRun {
		for _, p := range plans {
			if err := p.dryRun(s, o); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, stop := s.interruptible(ctx)
	defer stop()
	code := failure.OK
	var finished []finishedRun
	for _, p := range plans {
		c, err := p.start(ctx, s, k, o, flags)
		if err != nil {
			s.complain(err)
			c = failure.CodeOf(failure.WithCode(err, failure.Internal))
		}
		if p.finished.dir != "" {
			finished = append(finished, p.finished)
		}
		code = failure.Worse(code, c)
	}
	if err := o.afterAll(s, finished); err != nil {
		s.complain(err)
		code = failure.Worse(code, failure.CodeOf(failure.WithCode(err, failure.Internal)))
	}
	if code != failure.OK {
		return exit{code}
	}
	return nil
}

// start makes the run's folder and runs the plan in it.
func (p *planned) start(ctx context.Context, s *State, k kind, o *runOptions, flags []string) (failure.Code, error) {
	started := s.Clock.Now()
	id, dir, err := results.NewFolder(p.runs, started, p.dataset.Name)
	if err != nil {
		return failure.Internal, err
	}
	manifest := results.Manifest{
		ID: id, Tool: results.Tool{Version: version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}, Started: started, Host: s.Hostname,
		Git: gitCommit(p.dataset.Root), Flags: append([]string{k.use}, p.redacted(s, flags)...), Plan: p.experiment.Head(), Environment: environmentNames(s.Environ), Warnings: []results.WarningCount{},
	}
	if p.shard != "" {
		manifest.Shard = &p.shard
	}
	if err := results.WriteManifest(dir, manifest); err != nil {
		return failure.Internal, err
	}
	journal, err := results.Create(dir, s.Clock)
	if err != nil {
		return failure.Internal, err
	}
	if err := results.SetLatest(p.runs, id); err != nil {
		return failure.Internal, errors.Join(err, journal.Close())
	}
	return p.finish(ctx, s, o, dir, manifest, journal, &results.Finished{})
}

func (p *planned) redacted(s *State, flags []string) []string {
	detector := detectorOf(s, p.dataset.Project)
	out := make([]string, len(flags))
	for i, f := range flags {
		out[i] = detector.Redact(f)
	}
	return out
}

func environmentNames(environ []string) []string {
	names := map[string]bool{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// finish runs what is left, folds, reports and gives the exit code.
func (p *planned) finish(ctx context.Context, s *State, o *runOptions, dir string, manifest results.Manifest, journal *results.Journal, done *results.Finished) (failure.Code, error) {
	if err := p.reference.save(dir); err != nil {
		return failure.Internal, errors.Join(err, journal.Close())
	}
	summary, warnings, err := p.experiment.Run(ctx, dir, journal, done, p.judge(o, "echoeval run --resume "+quote(s.show(dir))))
	if p.bar != nil {
		p.bar.end()
	}
	if err != nil {
		return failure.Internal, failure.WithHint(failure.WithCode(err, failure.Internal), "what is finished is kept: echoeval run --resume %s", quote(s.show(dir)))
	}
	finished := s.Clock.Now()
	manifest.Finished, manifest.Warnings, manifest.SpentUSD = &finished, warnings, p.experiment.Spent()
	if err := results.WriteManifest(dir, manifest); err != nil {
		return failure.Internal, err
	}
	code := summary.Verdict.Code
	run, err := results.Open(dir)
	if err != nil {
		return failure.Internal, err
	}
	defer run.Close()
	p.finished = finishedRun{dir, p.dataset.Root}
	var errs []error
	if o.asJSON {
		errs = append(errs, printSummary(s, summary))
	} else {
		errs = append(errs, terminal.Write(s.Stdout, run, reports.Options{Width: s.tableWidth(), Color: s.color(o.noColor), All: o.all}))
	}
	for _, f := range o.formats {
		if !o.shared(f) {
			errs = append(errs, o.writeReport(s, run, f))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return failure.Worse(code, failure.Internal), failure.WithCode(err, failure.Internal)
	}
	if !o.quiet && code == failure.Cassette {
		p.withoutKey(s, summary)
	}
	if c := summary.Counts; !o.quiet && o.stale && summary.Cassettes.Fresh > 0 && summary.Cassettes.Fresh+c.Skipped == c.Total() && summary.Cost.SpentNowUSD == 0 {
		fmt.Fprintf(s.Stderr, "nothing was stale: no vendor was asked, and it cost nothing; the verdict is that of %s\n", count(summary.Cassettes.Fresh, "recording"))
	}
	return code, nil
}

// withoutKey says what can be done about recordings that do not fit where they cannot be made again for want of a key.
func (p *planned) withoutKey(s *State, summary *results.Summary) {
	missing := missingKeys(s, p.providers(), p.up)
	if len(missing) == 0 {
		return
	}
	verb := "is"
	if len(missing) > 1 {
		verb = "are"
	}
	fmt.Fprintf(s.Stderr, "hint: to record, a key is needed: %s %s not set\n", strings.Join(missing, ", "), verb)
	serve := ""
	for _, class := range slices.Sorted(maps.Keys(summary.Cassettes.ByClass)) {
		serve += " --drift " + class + "=serve"
	}
	if serve != "" {
		fmt.Fprintf(s.Stderr, "hint: no key?%s shows the old answers; a model on this machine needs none: provider compat\n", serve)
	}
}

// providers are those that the run asks, judges and simulated users included.
func (p *planned) providers() []dataset.Provider {
	var out []dataset.Provider
	for _, c := range slices.Concat(p.columns, p.roles) {
		out = append(out, c.Provider)
	}
	return out
}

// resume goes on with a run: dataset and flags are those of its manifest.
func resume(ctx context.Context, s *State, k kind, o *runOptions, flags []string) error {
	dir, err := resolveRun(s, o.out, o.resume)
	if err != nil {
		return err
	}
	manifest, err := results.ReadManifest(dir)
	if err != nil {
		return err
	}
	if len(manifest.Flags) == 0 {
		return failure.New(failure.Input, "%s does not say how it was started", s.show(dir))
	}
	k.mode = startMode(manifest.Flags[0])
	words := slices.Clone(manifest.Flags[1:])
	// How it is shown and how many run at once may differ from before; nothing else may.
	for _, flag := range flags {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !slices.Contains(resumable, name) {
			return failure.WithHint(failure.New(failure.Input, "--%s cannot be changed by a resumed run", name), "dataset and flags are taken from the run; allowed are --%s", strings.Join(resumable, ", --"))
		}
		words = append(words, flag)
		if name == "max-cost" { // a further resumption keeps it
			manifest.Flags = append(withoutFlags(manifest.Flags, []string{name}), flag)
		}
	}
	again := &runOptions{spent: manifest.SpentUSD}
	set := pflag.NewFlagSet("resume", pflag.ContinueOnError)
	again.flags(set, kind{use: "run", mode: k.mode})
	if err := set.Parse(words); err != nil {
		return failure.New(failure.Input, "%s was started with a flag that this version does not know: %s", s.show(dir), err)
	}
	file, err := findDataset(s, dir, manifest.Plan.Dataset.File)
	if err != nil {
		return err
	}
	p, err := plan(s, again, file)
	if err != nil {
		return err
	}
	if err := sameInputs(manifest.Plan, p.experiment.Head()); err != nil {
		return err
	}
	ctx, stop := s.interruptible(ctx)
	defer stop()
	journal, done, err := results.Resume(dir, s.Clock)
	if err != nil {
		return err
	}
	manifest.Finished = nil
	code, err := p.finish(ctx, s, again, dir, manifest, journal, done)
	if err != nil {
		return err
	}
	if err := again.afterAll(s, []finishedRun{p.finished}); err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	if code != failure.OK {
		return exit{code}
	}
	return nil
}

// startMode is the mode that a command begins with.
func startMode(command string) string {
	if command == recordKind.use {
		return recordKind.mode
	}
	return runKind.mode
}

// resumable are the flags that a resumed run may be given anew.
var resumable = []string{"concurrency", "out", "json", "all", "quiet", "verbose", "no-color", "format", "allow-network", "fail-on", "max-cost"}

// findDataset looks for the dataset's file from the run's folder and from the current one upwards.
func findDataset(s *State, dir, file string) (string, error) {
	for _, start := range []string{dir, s.Dir} {
		for at := start; ; at = filepath.Dir(at) {
			path := filepath.Join(at, filepath.FromSlash(file))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return "", failure.WithHint(failure.New(failure.Input, "the run's dataset %s is not found", file), "run the command in the project's folder")
}

// sameInputs refuses to go on with a run whose inputs have changed.
func sameInputs(then, now results.Head) error {
	hint := "start a new run: echoeval run " + quote(then.Dataset.File)
	if then.Inputs != now.Inputs {
		return failure.WithHint(failure.New(failure.Input, "a workspace of %s has changed since the run began", then.Dataset.File), "%s", hint)
	}
	if !slices.Equal(then.Faults, now.Faults) {
		return failure.WithHint(failure.New(failure.Input, "the faults of %s have changed since the run began", then.Dataset.File), "%s", hint)
	}
	if then.Dataset.Hash != now.Dataset.Hash || then.Lines != now.Lines {
		return failure.WithHint(failure.New(failure.Input, "%s has changed since the run began", then.Dataset.File), "%s", hint)
	}
	if !slices.Equal(then.Providers, now.Providers) {
		return failure.WithHint(failure.New(failure.Input, "an agent, its tools or a provider of %s has changed since the run began", then.Dataset.File), "%s", hint)
	}
	return nil
}
