package cli

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/score"
)

// planned is a dataset that is ready to run.
type planned struct {
	dataset    *dataset.Dataset
	experiment *experiment.Experiment
	columns    []experiment.Column
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
	p.columns = cols
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
		if p.Role == dataset.RoleJudge {
			return nil, failure.WithHint(failure.At(p.Pos, failure.Input, "provider %s: judges are not in this version", p.ID), "leave it out, or ask a program: checks: [{command: [...]}]")
		}
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
