package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/filter"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/score"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/terminal"
)

// kind is one of the three names of the run command: they differ in the mode that they begin with.
type kind struct{ use, short, long, mode string }

var (
	runKind    = kind{"run", "Run datasets and judge them", "Run datasets, each into a folder of its own, and judge them. The default mode is replay: requests are answered from cassettes and nothing dials.", "replay"}
	recordKind = kind{"record", "Run datasets against the real models and record cassettes", "Run datasets against the real models and write their cassettes. It is `run --mode record`. An item whose run did not come to its end keeps its old cassette.", "record"}
	replayKind = kind{"replay", "Run datasets from their cassettes", "Run datasets from their cassettes. It is `run --mode replay`.", "replay"}
)

// runOptions are the flags of run.
type runOptions struct {
	mode         string
	items        []string
	tags         []string
	filter       string
	only         string
	sample       string
	shard        string
	maxCost      float64
	providers    []string
	set          []string
	repeat       int
	concurrency  int
	timeout      time.Duration
	seed         uint64
	upstream     []string
	recordedAt   string
	cassettes    string
	leftover     bool
	drift        []string
	stale        bool
	allowNetwork bool
	out          string
	traces       string
	resume       string
	baseline     string
	compared     bool // with a baseline, as every command is that has these flags
	failOn       []string
	formats      []string
	asJSON       bool
	all          bool
	quiet        bool
	verbose      bool
	// offline plans a run that was made elsewhere: nothing is dialled, and no key is needed.
	offline bool
	// replayOnly judges nothing.
	replayOnly bool
	dryRun     bool
	noColor    bool
}

func (o *runOptions) flags(f *pflag.FlagSet, k kind) {
	if k.use == "run" {
		f.StringVar(&o.mode, "mode", k.mode, "replay, record, extend or live")
	}
	if k.use != "replay" {
		f.BoolVar(&o.stale, "stale", false, "in mode record: only what is missing or no longer matches")
	}
	f.StringArrayVar(&o.items, "item", nil, "only this item (repeat)")
	f.StringArrayVar(&o.tags, "tag", nil, "only items with one of these tags; !TAG: without it (repeat)")
	f.StringVar(&o.filter, "filter", "", "CEL expression over id, tags, metadata and vars: only items that it is true for")
	f.StringVar(&o.only, "only", "", "STATUS[,STATUS][@RUN]: only items that RUN (default: the dataset's latest) left in one of these")
	f.StringVar(&o.sample, "sample", "", "N or P%: only so many of the selected items, by lot, the same ones for the same --seed")
	f.StringVar(&o.shard, "shard", "", "I/N: part I of N of the selected items; join them with `echoeval merge`")
	f.Float64Var(&o.maxCost, "max-cost", 0, "USD that the run may spend; reserved before each call")
	f.StringArrayVar(&o.providers, "provider", nil, "an id of the dataset or VENDOR:MODEL, in place of the dataset's list (repeat)")
	f.StringArrayVar(&o.set, "set", nil, "KEY=VALUE over the dataset: a path of its keys, or items.KEY for every item; VALUE is YAML (repeat)")
	f.IntVar(&o.repeat, "repeat", 0, "how often each item runs (default: as the dataset says)")
	f.IntVar(&o.concurrency, "concurrency", 0, "how many items run at the same time (default: twice the processors in replay, else 8)")
	f.DurationVar(&o.timeout, "timeout", 0, "how long an item may take (default: as the dataset says)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of ids and pauses; never part of a request")
	f.StringArrayVar(&o.upstream, "upstream", nil, "VENDOR=URL: dial this address instead (repeat)")
	f.StringVar(&o.recordedAt, "recorded-at", "", "start of a recording's clock (RFC 3339); makes the recording reproducible")
	f.StringVar(&o.cassettes, "cassettes", "", "folder of the cassettes (default: fixtures/cassettes below the project's root)")
	f.BoolVar(&o.leftover, "allow-leftover", false, "do not fail items that leave recorded requests unused")
	f.StringArrayVar(&o.drift, "drift", nil, "CLASS=serve|warn|fail|live: what is done about a class of drift; live in mode extend and with --stale (repeat)")
	f.BoolVar(&o.allowNetwork, "allow-network", false, "let record and live dial although CI is set")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would run, what it costs and how long it takes, by the last recordings")
	f.StringVar(&o.out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	f.StringVar(&o.traces, "traces", "all", "which traces to keep: all or failed")
	f.StringVar(&o.resume, "resume", "", "go on with this run; dataset and flags are taken from it")
	o.compared = true
	f.StringVar(&o.baseline, "baseline", "", "FILE.json, NAME, git:REV or none: what the run is compared with (default: baselines/DATASET.json, where it is there)")
	f.StringArrayVar(&o.failOn, "fail-on", nil, "checks, regression or none: what makes exit code 1 (repeat; default: both)")
	f.StringArrayVar(&o.formats, "format", nil, "a report, FORMAT or FORMAT=PATH: "+strings.Join(reportNames(), ", ")+" (repeat)")
	f.BoolVar(&o.asJSON, "json", false, "print the summary as JSON")
	f.BoolVar(&o.all, "all", false, "show all items, not only those that did not pass")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no hints")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "a line for each item as it finishes")
	f.BoolVar(&o.noColor, "no-color", false, "no colours")
}

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
		return runDatasets(cmd.Context(), s, k, o, args, changed(cmd.Flags()))
	}
	return cmd
}

// positive refuses zero where it was typed: left out, it stands for what the dataset or the machine says.
func positive(f *pflag.FlagSet) error {
	for _, name := range []string{"repeat", "concurrency", "timeout", "max-cost"} {
		if flag := f.Lookup(name); flag.Changed && strings.Trim(flag.Value.String(), "0.smh") == "" {
			return usage("leave it out for what the dataset says", "--%s %s: want more than 0", name, flag.Value)
		}
	}
	return nil
}

// changed are the flags that were given, as they would be typed again.
func changed(f *pflag.FlagSet) []string {
	var out []string
	f.Visit(func(flag *pflag.Flag) {
		if flag.Name == "resume" {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				out = append(out, "--"+flag.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+flag.Name+"="+flag.Value.String())
	})
	return out
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
	var errs []error
	names := map[string]string{}
	for _, file := range files {
		p, err := plan(s, o, file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, twice := names[p.dataset.Name]; twice {
			errs = append(errs, usage("name each dataset once, and give each a name of its own", "%s and %s are both named %q", other, file, p.dataset.Name))
		}
		names[p.dataset.Name] = file
		plans = append(plans, p)
	}
	if err := errors.Join(errs...); err != nil {
		return err
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
	for _, p := range plans {
		c, err := p.start(ctx, s, k, o, flags)
		if err != nil {
			s.complain(err)
			c = failure.CodeOf(failure.WithCode(err, failure.Internal))
		}
		code = failure.Worse(code, c)
	}
	if code != failure.OK {
		return exit{code}
	}
	return nil
}

// planned is a dataset that is ready to run.
type planned struct {
	dataset    *dataset.Dataset
	experiment *experiment.Experiment
	gates      []gate.Gate
	runs       string // folder of the runs
	shard      string // I/N, "" for the whole
	reference  *reference
	record     string // the command that records the dataset again, as it was selected
	bar        *progress
}

// openDataset reads a dataset with everything that the command knows.
func openDataset(s *State, file string, set ...string) (*dataset.Dataset, error) {
	options := datasetOptions(s)
	options.Set, options.Temp = set, s.temp()
	return dataset.Open(s.path(file), options)
}

// datasetOptions are the names that files may use.
func datasetOptions(s *State) dataset.Options {
	var checks, invariants, metrics, drift []string
	for _, c := range cassette.Classes {
		drift = append(drift, string(c))
	}
	for _, c := range score.Kinds() {
		checks = append(checks, c.Name)
	}
	for _, i := range invariant.Catalogue() {
		invariants = append(invariants, i.Name)
	}
	for _, m := range results.MetricTable {
		metrics = append(metrics, m.Name)
	}
	return dataset.Options{Dir: s.Dir, Checks: checks, Invariants: invariants, Metrics: metrics, Drift: drift, Vendors: vendorNames()}
}

func parseGates(d *dataset.Dataset) ([]gate.Gate, error) {
	var specs []gate.Spec
	var errs []error
	var ids []string
	for _, p := range d.Providers {
		ids = append(ids, p.ID)
	}
	for _, g := range d.Gates {
		switch {
		case g.Tag != "" || g.Check != "":
			errs = append(errs, failure.WithHint(failure.At(g.Pos, failure.Input, "gate %s: limits by tag and check are not in this version", g.Metric), "limit it by provider, or run the items of a tag on their own with --tag"))
		case g.Provider != "" && !slices.Contains(ids, g.Provider):
			errs = append(errs, failure.WithHint(failure.At(g.Pos, failure.Input, "gate %s: the dataset has no provider %q", g.Metric, g.Provider), "%s", strict.Suggest(g.Provider, ids)))
		}
		specs = append(specs, gate.Spec{Metric: g.Metric, Bound: g.Bound, Off: g.Off, Provider: g.Provider, Pos: g.Pos})
	}
	gates, err := gate.Parse(specs)
	return gates, errors.Join(append(errs, err)...)
}

func plan(s *State, o *runOptions, file string) (*planned, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	mode, err := parseMode(o.mode)
	if err != nil {
		return nil, err
	}
	up, err := parseUpstreams(o.upstream)
	if err != nil {
		return nil, err
	}
	drift, err := parseDrift(o.drift)
	if err != nil {
		return nil, err
	}
	if mode != replay.Extend && !o.stale && slices.Contains(slices.Collect(maps.Values(drift)), replay.GoLive) {
		return nil, usage("echoeval record DATASET --stale", "--drift CLASS=live is for --mode extend and record --stale")
	}
	recordedAt, err := o.recorded()
	if err != nil {
		return nil, err
	}
	d, err := openDataset(s, file, o.set...)
	if err != nil {
		return nil, err
	}
	if d.Project.Prices != "" {
		if _, err := pricesOf(d.Project)(); err != nil {
			return nil, err
		}
	}
	providers, err := chooseProviders(d, o.providers)
	if err != nil {
		return nil, err
	}
	dialled := mode
	if o.offline || o.dryRun {
		dialled = replay.Replay
	}
	cols, err := columns(s, d.Project, providers, dialled, up, o.allowNetwork, cmp.Or(o.concurrency, experiment.DefaultConcurrency))
	if err != nil {
		return nil, err
	}
	users, err := users(s, d, dialled, up, o)
	if err != nil {
		return nil, err
	}
	gates, gateErr := parseGates(d)
	p := &planned{dataset: d, gates: gates, runs: filepath.Join(d.Root, ".echoeval", "runs")}
	if o.out != "" {
		p.runs = s.path(o.out)
	}
	detector := detectorOf(s, d.Project)
	for class, action := range d.Drift {
		if _, given := drift[cassette.Class(class)]; !given {
			drift[cassette.Class(class)] = replay.Action(action)
		}
	}
	opts := experiment.Options{
		Dataset: d, Columns: cols, Users: users, Tools: tools, Mode: mode, OnlyStale: o.stale,
		Repeat: o.repeat, Timeout: o.timeout,
		Concurrency: o.concurrency, Seed: o.seed, RecordedAt: recordedAt, AllowLeftover: o.leftover, Drift: drift,
		Traces: results.Keep(o.traces), Temp: s.temp(),
		Cassettes: cassetteFolder(s, d, o.cassettes), Quarantine: filepath.Join(d.Root, ".echoeval", "quarantine"),
		Secrets: detector, Clock: s.Clock, ReplayOnly: o.replayOnly,
		Programs: program.NewPool(program.Options{Root: d.Root, Environ: s.Environ, Redact: detector.Redact}),
	}
	if opts.Selection, err = o.selection(p); err != nil {
		return nil, err
	}
	paid := slices.Clone(cols)
	for _, u := range users {
		paid = append(paid, *u)
	}
	if opts.Budget, err = o.budget(paid, mode); err != nil {
		return nil, err
	}
	if opts.Shard.N > 0 {
		p.shard = opts.Shard.String()
		p.gates = slices.DeleteFunc(p.gates, func(g gate.Gate) bool { return g.Metric != "error_rate" })
	} else if o.compared {
		if p.reference, err = newReference(s, d, o.baseline); err != nil {
			return nil, err
		}
	}
	if p.reference != nil {
		opts.Look = p.reference.Add
	}
	p.record = recordCommand(s, d, o)
	opts.RecordCommand = func(item, provider string) string {
		command := p.record + " --item " + quote(item)
		if len(o.providers) == 0 {
			command += " --provider " + quote(provider)
		}
		return command
	}
	if !o.quiet {
		p.bar = newProgress(s, o.verbose)
		opts.Progress = p.bar.update
	}
	p.experiment, err = experiment.New(opts)
	if err := errors.Join(err, gateErr); err != nil {
		return nil, err
	}
	return p, nil
}

// users are the providers of role user, by id.
func users(s *State, d *dataset.Dataset, mode replay.Mode, up upstreams, o *runOptions) (map[string]*experiment.Column, error) {
	var providers []dataset.Provider
	for _, p := range d.Roles {
		if p.Role == dataset.RoleUser {
			providers = append(providers, p)
		}
	}
	cols, err := columns(s, d.Project, providers, mode, up, o.allowNetwork, cmp.Or(o.concurrency, experiment.DefaultConcurrency))
	if err != nil {
		return nil, err
	}
	out := make(map[string]*experiment.Column, len(cols))
	for i := range cols {
		out[cols[i].Provider.ID] = &cols[i]
	}
	return out, nil
}

// detectorOf finds secrets: key shapes, what the project names, values of the environment.
func detectorOf(s *State, project *dataset.Project) secret.Detector {
	d := secret.Detector{Values: secret.FromEnviron(s.Environ)}
	for _, r := range project.Redact {
		d.Patterns = append(d.Patterns, secret.Pattern{Kind: r.Name, Regex: r.Regex})
	}
	if len(project.RedactAllow) > 0 {
		d.Allow = func(text string) bool {
			return slices.ContainsFunc(project.RedactAllow, func(a dataset.RedactAllow) bool { return a.Regex.MatchString(text) })
		}
	}
	return d
}

func cassetteFolder(s *State, d *dataset.Dataset, flag string) string {
	if flag != "" {
		return s.path(flag)
	}
	return filepath.Join(d.Root, filepath.FromSlash(d.Project.Cassettes))
}

// recordCommand is the command that records the dataset again, with the flags that select what is run and where cassettes lie.
func recordCommand(s *State, d *dataset.Dataset, o *runOptions) string {
	words := []string{"echoeval record", quote(s.show(filepath.Join(d.Root, filepath.FromSlash(d.File))))}
	for _, p := range o.providers {
		words = append(words, "--provider", quote(p))
	}
	if o.repeat > 0 {
		words = append(words, "--repeat", strconv.Itoa(o.repeat))
	}
	for _, pair := range o.set {
		words = append(words, "--set", quote(pair))
	}
	if o.cassettes != "" {
		words = append(words, "--cassettes", quote(o.cassettes))
	}
	return strings.Join(words, " ")
}

// quote makes a word safe for a shell.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (o *runOptions) check() error {
	switch {
	case o.repeat < 0 || o.repeat > results.MaxRepeat:
		return usage("leave it out for what the dataset says", "--repeat %d: want 1 to %d", o.repeat, results.MaxRepeat)
	case o.concurrency < 0 || o.concurrency > 10_000:
		return usage("leave it out for a sensible number", "--concurrency %d: want 1 to 10000", o.concurrency)
	case o.stale && o.mode != string(replay.Record):
		return failure.WithHint(failure.New(failure.Input, "--stale is for recording"), "echoeval record DATASET --stale")
	case o.timeout < 0:
		return usage("--timeout 90s", "--timeout %s: want a positive duration", o.timeout)
	case o.traces != string(results.KeepAll) && o.traces != string(results.KeepFailed):
		return usage("--traces failed keeps those of items that did not pass", "--traces %s: want all or failed", o.traces)
	}
	for _, f := range o.failOn {
		if f != "checks" && f != "regression" && f != "none" {
			return usage("--fail-on regression lets the gates of checks pass", "--fail-on %s: want checks, regression or none", f)
		}
		if f == "none" && len(o.failOn) > 1 {
			return usage("--fail-on none alone", "--fail-on none contradicts the others")
		}
	}
	return nil
}

// checkFormats refuses, before anything runs, reports that would overwrite one another or something else.
func (o *runOptions) checkFormats(s *State, datasets int) error {
	taken := map[string]string{}
	for _, f := range o.formats {
		name, path, given := strings.Cut(f, "=")
		r, err := reports.Find(reporters, name)
		if err != nil {
			return err
		}
		switch {
		case !given:
			continue
		case path == "":
			return usage("--format junit=out/junit.xml", "--format %s: the path is empty", f)
		case datasets > 1:
			return usage("--format "+name+" writes each into its run's folder", "--format %s: one path for %d datasets", f, datasets)
		case r.File != "" && !strings.EqualFold(filepath.Ext(path), filepath.Ext(r.File)):
			return usage("--format "+name+"=out/"+r.File, "--format %s: the path does not end in %s", f, filepath.Ext(r.File))
		}
		path = filepath.Clean(s.path(path))
		if other, twice := taken[path]; twice {
			return usage("give each a path of its own", "--format %s and --format %s write to one path", other, f)
		}
		taken[path] = f
	}
	return nil
}

func parseDrift(flags []string) (map[cassette.Class]replay.Action, error) {
	out := map[cassette.Class]replay.Action{}
	for _, flag := range flags {
		class, action, _ := strings.Cut(flag, "=")
		if !slices.Contains(cassette.Classes, cassette.Class(class)) {
			var names []string
			for _, c := range cassette.Classes {
				names = append(names, string(c))
			}
			return nil, failure.WithHint(failure.New(failure.Input, "--drift %s: unknown class %q", flag, class), "%s", strict.Suggest(class, names))
		}
		if !slices.Contains([]replay.Action{replay.Serve, replay.Warn, replay.Fail, replay.GoLive}, replay.Action(action)) {
			return nil, usage("--drift "+class+"=warn", "--drift %s: want %s=serve, warn, fail or live", flag, class)
		}
		out[cassette.Class(class)] = replay.Action(action)
	}
	return out, nil
}

// selection is what the flags select of the dataset's items.
func (o *runOptions) selection(p *planned) (experiment.Selection, error) {
	sel := experiment.Selection{Items: o.items, Tags: o.tags, OnlyText: o.only}
	var err error
	if o.filter != "" {
		if sel.Filter, err = filter.Compile(o.filter); err != nil {
			var wrong *filter.Error
			if errors.As(err, &wrong) && wrong.Hint != "" {
				return sel, usage(wrong.Hint, "--filter, character %d: %s", wrong.Offset+1, wrong.Message)
			}
			return sel, usage("--filter \"'urgent' in tags\"", "--filter: %s", err)
		}
	}
	if o.sample != "" {
		if sel.Sample, err = experiment.ParseSample(o.sample); err != nil {
			return sel, err
		}
	}
	if o.shard != "" {
		if sel.Shard, err = experiment.ParseShard(o.shard); err != nil {
			return sel, err
		}
	}
	if o.only != "" {
		sel.Only, err = onlyItems(p, o.only)
	}
	return sel, err
}

// onlyItems are the ids that a run left in one of the statuses.
func onlyItems(p *planned, text string) (map[string]bool, error) {
	list, name, given := strings.Cut(text, "@")
	if !given {
		name = p.dataset.Name
	}
	wanted := map[eval.Status]bool{}
	for _, status := range strings.Split(list, ",") {
		if !slices.Contains(eval.Statuses, eval.Status(status)) {
			var names []string
			for _, s := range eval.Statuses {
				names = append(names, string(s))
			}
			return nil, usage(strict.Suggest(status, names), "--only %s: unknown status %q", text, status)
		}
		wanted[eval.Status(status)] = true
	}
	dir, err := results.Resolve(p.runs, name)
	if err != nil {
		return nil, err
	}
	run, err := results.Open(dir)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	if run.Summary.Dataset.Name != p.dataset.Name {
		return nil, usage("name a run of this dataset after the @", "--only %s: that is a run of %s", text, run.Summary.Dataset.Name)
	}
	ids := map[string]bool{}
	for line, err := range run.Lines() {
		if err != nil {
			return nil, err
		}
		if wanted[line.Status] {
			ids[line.Item] = true
		}
	}
	return ids, nil
}

// budget is the bound of --max-cost; every column must have a price.
func (o *runOptions) budget(cols []experiment.Column, mode replay.Mode) (*experiment.Budget, error) {
	if o.maxCost == 0 {
		return nil, nil
	}
	limit, err := money.FromFloat(o.maxCost)
	if err != nil || o.maxCost < 0 {
		return nil, usage("--max-cost 5", "--max-cost %v: want an amount in USD", o.maxCost)
	}
	if mode == replay.Replay {
		return nil, nil // a replay spends nothing
	}
	for _, c := range cols {
		if _, ok := c.Cost(llm.Response{}); !ok {
			return nil, failure.WithHint(failure.At(c.Provider.Pos, failure.Input, "--max-cost: no price is known for provider %s", c.Provider.ID), "price: {input: USD, output: USD} per million tokens in its entry")
		}
	}
	return experiment.NewBudget(limit), nil
}

// modes are what --mode takes.
var modes = []replay.Mode{replay.Replay, replay.Record, replay.Extend, replay.Live}

func parseMode(name string) (replay.Mode, error) {
	if mode := replay.Mode(name); slices.Contains(modes, mode) {
		return mode, nil
	}
	return "", usage(strict.Suggest(name, []string{"replay", "record", "extend", "live"}), "--mode %s: want replay, record, extend or live", name)
}

func (o *runOptions) recorded() (time.Time, error) {
	if o.recordedAt == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, o.recordedAt)
	if err != nil {
		return t, usage("--recorded-at 2026-01-05T09:00:00Z", "--recorded-at %s: want a time of RFC 3339", o.recordedAt)
	}
	return t.UTC(), nil
}

// chooseProviders are those of the command line in place of the dataset's.
func chooseProviders(d *dataset.Dataset, flags []string) ([]dataset.Provider, error) {
	if len(flags) == 0 {
		return d.Providers, nil
	}
	var out []dataset.Provider
	for _, flag := range flags {
		if i := slices.IndexFunc(d.Providers, func(p dataset.Provider) bool { return p.ID == flag }); i >= 0 {
			out = append(out, d.Providers[i])
			continue
		}
		name, model, ok := strings.Cut(flag, ":")
		if _, known := vendors[name]; !ok || !known || model == "" {
			var ids []string
			for _, p := range d.Providers {
				ids = append(ids, p.ID)
			}
			err := failure.New(failure.Input, "--provider %s: neither a provider of %s nor VENDOR:MODEL", flag, d.File)
			if near, ok := strict.Nearest(flag, ids); ok {
				return nil, failure.WithHint(err, "did you mean %q?", near)
			}
			return nil, failure.WithHint(err, "vendors are %s", strings.Join(vendorNames(), ", "))
		}
		out = append(out, dataset.Provider{ID: flag, Vendor: name, Model: model})
	}
	for i, p := range out {
		for _, q := range out[:i] {
			if dataset.FolderName(p.ID) == dataset.FolderName(q.ID) {
				return nil, usage("give each provider once", "--provider %s is given twice, or shares its folder with %s", p.ID, q.ID)
			}
		}
	}
	return out, nil
}

// start makes the run's folder and runs the plan in it.
func (p *planned) start(ctx context.Context, s *State, k kind, o *runOptions, flags []string) (failure.Code, error) {
	started := s.Clock.Now()
	id, dir, err := results.NewFolder(p.runs, started, p.dataset.Name)
	if err != nil {
		return failure.Internal, failure.WithHint(err, "is %s writable? --out names another folder", s.show(p.runs))
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
	manifest.Finished, manifest.Warnings = &finished, warnings
	if err := results.WriteManifest(dir, manifest); err != nil {
		return failure.Internal, err
	}
	code := summary.Verdict.Code
	run, err := results.Open(dir)
	if err != nil {
		return failure.Internal, err
	}
	defer run.Close()
	var errs []error
	if o.asJSON {
		errs = append(errs, printSummary(s, summary))
	} else {
		errs = append(errs, terminal.Write(s.Stdout, run, reports.Options{Width: s.tableWidth(), Color: s.color(o.noColor), All: o.all}))
	}
	for _, f := range o.formats {
		errs = append(errs, writeReport(s, run, f))
	}
	if err := errors.Join(errs...); err != nil {
		return failure.Worse(code, failure.Internal), failure.WithCode(err, failure.Internal)
	}
	return code, nil
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
	}
	again := &runOptions{}
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
var resumable = []string{"concurrency", "out", "json", "all", "quiet", "verbose", "no-color", "format", "allow-network", "fail-on"}

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
	if then.Dataset.Hash != now.Dataset.Hash || then.Lines != now.Lines {
		return failure.WithHint(failure.New(failure.Input, "%s has changed since the run began", then.Dataset.File), "%s", hint)
	}
	if !slices.Equal(then.Providers, now.Providers) {
		return failure.WithHint(failure.New(failure.Input, "an agent, its tools or a provider of %s has changed since the run began", then.Dataset.File), "%s", hint)
	}
	return nil
}

// gitCommit reads the commit of the repository that root lies in, without starting git; nil where there is none.
func gitCommit(root string) *results.Git {
	for dir := root; ; dir = filepath.Dir(dir) {
		if git, ok := gitFolder(filepath.Join(dir, ".git")); ok {
			commit := headCommit(git)
			if commit == "" {
				return nil
			}
			return &results.Git{Commit: commit}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// gitFolder follows the file that stands in place of the folder in a worktree.
func gitFolder(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return path, true
	}
	data, err := os.ReadFile(path)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !ok {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return dir, true
}

func headCommit(git string) string {
	read := func(elem ...string) string {
		data, err := os.ReadFile(filepath.Join(elem...))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(data))
	}
	head := read(git, "HEAD")
	ref, symbolic := strings.CutPrefix(head, "ref: ")
	if !symbolic {
		return head
	}
	common := git
	if c := read(git, "commondir"); c != "" {
		common = filepath.Join(git, c)
	}
	for _, dir := range []string{git, common} {
		if commit := read(dir, filepath.FromSlash(ref)); commit != "" {
			return commit
		}
	}
	for line := range strings.Lines(read(common, "packed-refs")) {
		if commit, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return commit
		}
	}
	return ""
}
