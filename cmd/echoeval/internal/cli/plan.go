package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/score"
	"github.com/echoeval/echoeval/harness/target"
	"github.com/echoeval/echoeval/providers/abilities"
)

// planned is a dataset that is ready to run.
type planned struct {
	dataset    *dataset.Dataset
	experiment *experiment.Experiment
	columns    []experiment.Column
	roles      []experiment.Column // judges, embedders and simulated users
	gates      []gate.Gate
	runs       string // folder of the runs
	shard      string // I/N, "" for the whole
	reference  *reference
	record     string // the command that records the dataset again, as it was selected
	up         upstreams
	bar        *progress
	finished   finishedRun // once the run has ended
}

// openDataset reads a dataset with everything that the command knows. beyond is [dataset.Options.Beyond].
func openDataset(s *State, file string, beyond func(*dataset.Dataset, *strict.Problems), set ...string) (*dataset.Dataset, error) {
	if _, err := os.Stat(s.path(file)); errors.Is(err, fs.ErrNotExist) {
		return nil, noDataset(s, file)
	}
	options := datasetOptions(s)
	options.Set, options.Temp, options.Beyond = set, s.temp(), beyond
	return dataset.Open(s.path(file), options)
}

// noDataset says that there is no such dataset file, and which was meant: one of the project's, by its path, or by its name without folder and ending, or one that lies there.
func noDataset(s *State, file string) error {
	err := failure.New(failure.Input, "dataset file %s does not exist", file)
	stem := func(path string) string {
		base := filepath.Base(path)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	var known []string
	if project, err := currentProject(s); err == nil {
		for _, name := range project.Datasets {
			known = append(known, s.show(filepath.Join(project.Root, filepath.FromSlash(name))))
		}
	}
	for _, folder := range []string{filepath.Dir(s.path(file)), s.path("datasets")} {
		beside, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
		for _, path := range beside {
			known = append(known, s.show(path))
		}
	}
	stems := map[string]string{}
	var names []string
	for _, path := range slices.Backward(known) { // the project's win
		stems[stem(path)] = path
		names = append(names, stem(path))
	}
	if near, ok := strict.Nearest(stem(file), names); ok {
		return failure.WithHint(err, "did you mean %s?", quote(stems[near]))
	}
	if path, ok := stems[stem(file)]; ok {
		return failure.WithHint(err, "did you mean %s?", quote(path))
	}
	if len(known) > 0 {
		slices.Sort(known)
		return failure.WithHint(err, "there are %s", strings.Join(slices.Compact(known), ", "))
	}
	return failure.WithHint(err, "a path is seen from the current folder; echoeval init makes a project")
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
	return dataset.Options{
		Dir: s.Dir, Checks: checks, Invariants: invariants, Metrics: metrics, Compared: baseline.Gated(), Drift: drift, Vendors: vendorNames(), Bounds: abilities.Bounds, TargetVariables: target.Variables(),
		Judging: score.JudgePrompt, Arguments: checkArguments(), Later: score.Later(),
	}
}

// checkArguments describe the arguments of checks for schemas.
func checkArguments() map[string]any {
	arguments := map[string]any{score.KindJudge: score.JudgeArgs{}, score.KindEmbedding: score.EmbeddingArgs{}}
	for kind, of := range score.Schemas() {
		arguments[kind] = of
	}
	return arguments
}

func parseGates(d *dataset.Dataset) ([]gate.Gate, error) {
	var specs []gate.Spec
	var errs []error
	var ids []string
	for _, p := range d.Columns() {
		ids = append(ids, p.ID)
	}
	for _, g := range d.Gates {
		if g.Provider != "" && len(d.Providers) == 0 && !d.Unsure() && !slices.Contains(ids, g.Provider) { // else the dataset says so
			errs = append(errs, failure.WithHint(failure.At(g.Pos, failure.Input, "gate %s: the dataset has no provider %q", g.Metric, g.Provider), "%s", strict.Suggest(g.Provider, ids)))
		}
		spec := gate.Spec{Metric: g.Metric, Bound: g.Bound, Off: g.Off, Provider: g.Provider, Tag: g.Tag, Check: g.Check, Pos: g.Pos}
		if r := g.Regression; r != nil {
			spec.Drop = &gate.Drop{Metric: r.Metric, MaxDrop: r.MaxDrop, Confidence: r.Confidence, FailInconclusive: r.FailInconclusive}
		}
		specs = append(specs, spec)
	}
	gates, err := gate.Parse(specs)
	return gates, errors.Join(append(errs, err)...)
}

// freezable proves that a recording with something frozen goes to a place of its own, and that what is frozen is in our hands.
func freezable(s *State, o *runOptions, d *dataset.Dataset, opts *experiment.Options) error {
	command := "echoeval record " + quote(s.show(filepath.Join(d.Root, filepath.FromSlash(d.File)))) + " --freeze " + o.freeze + " --cassettes noise/" + o.freeze
	if opts.Cassettes == opts.Frozen {
		return usage(command, "--freeze %s records beside the dataset's own cassettes, which it freezes from", o.freeze)
	}
	if d.Target != nil && opts.Freeze == experiment.FreezeTools {
		return failure.WithHint(failure.New(failure.Input, "--freeze tools of a target is not in this version: its tools run in its own program"), "--freeze agent tells what the judges add")
	}
	return nil
}

// setting is what the flags of a run say, read once.
type setting struct {
	mode       replay.Mode
	up         upstreams
	drift      map[cassette.Class]replay.Action
	recordedAt time.Time
}

func (o *runOptions) setting() (w setting, err error) {
	if err = o.check(); err != nil {
		return w, err
	}
	if w.mode, err = parseMode(o.mode); err != nil {
		return w, err
	}
	if w.up, err = parseUpstreams(o.upstream); err != nil {
		return w, err
	}
	if w.drift, err = parseDrift(o.drift); err != nil {
		return w, err
	}
	if w.mode != replay.Extend && !o.stale && slices.Contains(slices.Collect(maps.Values(w.drift)), replay.GoLive) {
		return w, usage("echoeval record DATASET --stale", "--drift CLASS=live is for --mode extend and record --stale")
	}
	w.recordedAt, err = o.recorded()
	return w, err
}

// plan reads a dataset and makes it ready to run. The error joins all that is wrong with it and with what it needs.
func plan(s *State, o *runOptions, file string) (*planned, error) {
	w, err := o.setting()
	if err != nil {
		return nil, err
	}
	d, err := openDataset(s, file, func(d *dataset.Dataset, problems *strict.Problems) {
		p := &planned{}
		opts, errs := p.prepare(s, o, w, d)
		for _, err := range errs {
			problems.AddError(err)
		}
		experiment.Look(opts, problems)
	}, o.set...)
	if err != nil {
		return nil, err
	}
	p := &planned{}
	opts, errs := p.prepare(s, o, w, d)
	if len(opts.Columns) == 0 && errors.Join(errs...) != nil {
		return nil, errors.Join(errs...) // that there are none is said
	}
	p.experiment, err = experiment.New(opts)
	if others := errors.Join(errs...); others != nil && errors.Is(err, experiment.ErrNothingSelected) {
		return nil, others // an empty selection is passed over where another dataset has what is asked for
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return p, nil
}

// prepare fills in what is planned but for the experiment, whose options it returns beside all that is wrong.
func (p *planned) prepare(s *State, o *runOptions, w setting, d *dataset.Dataset) (opts experiment.Options, errs []error) {
	problem := func(err error) { errs = append(errs, err) }
	if d.Project.Prices != "" {
		_, err := pricesOf(d.Project)()
		problem(err)
	}
	providers, err := chooseProviders(d, o.providers)
	problem(err)
	dialled := w.mode
	if o.offline || o.dryRun {
		dialled = replay.Replay
	}
	paid, err := runColumns(s, d, slices.Concat(providers, d.Roles), dialled, w.up, o)
	problem(err)
	n := len(providers)
	if paid == nil {
		n = 0
	}
	cols, roles := paid[:n], paid[n:]
	problem(noScriptJudges(roles))
	gates, err := parseGates(d)
	problem(err)
	*p = planned{dataset: d, columns: cols, roles: roles, gates: gates, up: w.up, runs: filepath.Join(d.Root, ".echoeval", "runs")}
	if o.out != "" {
		p.runs = s.path(o.out)
	}
	detector := detectorOf(s, d.Project)
	drift := maps.Clone(w.drift)
	for class, action := range d.Drift {
		if _, given := drift[cassette.Class(class)]; !given {
			drift[cassette.Class(class)] = replay.Action(action)
		}
	}
	opts = experiment.Options{
		Dataset: d, Columns: cols, Users: ofRole(roles, dataset.RoleUser), Judges: ofRole(roles, dataset.RoleJudge), Embedders: ofRole(roles, dataset.RoleEmbed), Tools: tools, Mode: w.mode, OnlyStale: o.stale,
		Timeout:     o.timeout,
		Concurrency: o.concurrency, Seed: o.seed, RecordedAt: w.recordedAt, AllowLeftover: o.leftover, Drift: drift,
		Traces: results.Keep(o.traces), Temp: s.temp(),
		Cassettes: cassetteFolder(s, d, o.cassettes), Quarantine: filepath.Join(d.Root, ".echoeval", "quarantine"),
		Secrets: detector, Clock: s.Clock, ReplayOnly: o.replayOnly,
		Programs: program.NewPool(program.Options{Root: d.Root, Environ: s.Environ, Redact: detector.Redact}),
	}
	opts.Faults, err = faultPlan(s, o.faults)
	problem(err)
	opts.Repeat, opts.RepeatMax, err = o.repeats()
	problem(err)
	if opts.Freeze = experiment.Freeze(o.freeze); opts.Freeze != experiment.FreezeNothing {
		opts.Frozen = cassetteFolder(s, d, "")
		problem(freezable(s, o, d, &opts))
	}
	problem(w.up.check(cols))
	opts.Targets, err = targets(s, d, cols, o, w.mode, dialled, w.up, detector.Redact)
	problem(err)
	opts.Selection, err = o.selection(p)
	problem(err)
	opts.Budget, err = o.budget(paid, w.mode)
	problem(err)
	if opts.Shard.N > 0 {
		p.shard = opts.Shard.String()
		p.gates = gate.OfShard(p.gates)
	} else if o.compared {
		p.reference, err = newReference(s, d, o.baseline, gate.Drops(p.gates))
		problem(err)
		opts.Needs.Repeats, opts.Needs.Metric, opts.Needs.Pos = gate.Repeats(p.gates)
	}
	opts.Parts, opts.Over = gate.Limits(p.gates), gate.Over(p.gates)
	if p.reference != nil {
		if opts.RepeatMax > 0 {
			p.reference.Count(opts.Repeat)
		}
		p.reference.Limit(gate.DropParts(p.gates))
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
	return opts, errs
}

// runColumns makes the columns of a run, those of programs under test among them, in the order of the providers. Where some cannot be dialled, all are returned beside the error; where one cannot be made at all, none.
func runColumns(s *State, d *dataset.Dataset, providers []dataset.Provider, mode replay.Mode, up upstreams, o *runOptions) ([]experiment.Column, error) {
	targetOf := func(p dataset.Provider) *dataset.Target {
		if p.Role != "" {
			return nil
		}
		return d.TargetOf(p)
	}
	asked := slices.DeleteFunc(slices.Clone(providers), func(p dataset.Provider) bool { return targetOf(p) != nil })
	built, err := columns(s, d.Project, asked, mode, up, o.allowNetwork, cmp.Or(o.concurrency, experiment.DefaultConcurrency))
	if len(built) != len(asked) {
		return nil, err
	}
	out := make([]experiment.Column, 0, len(providers))
	for _, p := range providers {
		if t := targetOf(p); t != nil {
			out = append(out, targetColumn(d.Project, p, t))
			continue
		}
		out, built = append(out, built[0]), built[1:]
	}
	return out, err
}

// ofRole are the columns of a role, by id.
func ofRole(cols []experiment.Column, role string) map[string]*experiment.Column {
	out := map[string]*experiment.Column{}
	for i := range cols {
		if c := &cols[i]; c.Provider.Role == role {
			out[c.Provider.ID] = c
		}
	}
	return out
}

// noScriptJudges refuses judges that have nothing to say.
func noScriptJudges(cols []experiment.Column) error {
	for _, c := range cols {
		if p := c.Provider; p.Role == dataset.RoleJudge && c.Scripted {
			return failure.WithHint(failure.At(p.Pos, failure.Input, "provider %s: a script cannot judge, it has lines for the agent alone", p.ID), "name a model, or ask a program: checks: [{command: [...]}]")
		}
	}
	return nil
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
	if o.repeat != "" {
		words = append(words, "--repeat", quote(o.repeat))
	}
	for _, pair := range o.set {
		words = append(words, "--set", quote(pair))
	}
	if o.cassettes != "" && o.freeze == "" { // what is frozen comes from the dataset's own
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
