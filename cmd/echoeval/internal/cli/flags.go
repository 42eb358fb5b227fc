package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/filter"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
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
	spent        money.USD // by the run that is resumed
	providers    []string
	set          []string
	repeat       string
	concurrency  int
	timeout      time.Duration
	seed         uint64
	upstream     []string
	recordedAt   string
	cassettes    string
	leftover     bool
	drift        []string
	stale        bool
	faults       string
	freeze       string
	allowNetwork bool
	out          string
	traces       string
	resume       string
	baseline     string
	compared     bool // with a baseline, as every command is that has these flags
	failOn       []string
	formats      []string
	datasets     int // of the command; a file may be shared by several
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
		f.StringVar(&o.freeze, "freeze", "", "agent or tools: in mode record, hold this fixed to repeat 1 and record the rest into --cassettes, to learn where noise comes from")
		f.BoolVar(&o.stale, "stale", false, "in mode record: only what is missing or no longer matches")
	}
	f.StringArrayVar(&o.items, "item", nil, "only this item (repeat)")
	f.StringArrayVar(&o.tags, "tag", nil, "only items with one of these tags; !TAG: without it (repeat)")
	f.StringVar(&o.filter, "filter", "", "CEL expression over id, tags, metadata and vars: only items that it is true for")
	f.StringVar(&o.only, "only", "", "STATUS[,STATUS][@RUN]: only items that RUN (default: the dataset's latest) left in one of these")
	f.StringVar(&o.sample, "sample", "", "N or P%: only so many of the selected items, by lot, the same ones for the same --seed")
	f.StringVar(&o.shard, "shard", "", "I/N: part I of N of the selected items; merge joins them")
	f.Float64Var(&o.maxCost, "max-cost", 0, "USD that the run may spend, reserved before each call: by max_tokens, or 4,096 tokens of reply where a provider sets none")
	f.StringArrayVar(&o.providers, "provider", nil, "an id of the dataset or VENDOR:MODEL, in place of the dataset's list (repeat)")
	f.StringArrayVar(&o.set, "set", nil, "KEY=VALUE over the dataset: a path of its keys, or items.KEY for every item; VALUE is YAML (repeat)")
	f.StringVar(&o.repeat, "repeat", "", "N or MIN..MAX: how often each item runs, or more often than MIN only while its verdict is open (default: as the dataset says)")
	f.IntVar(&o.concurrency, "concurrency", 0, "how many items run at the same time (default: twice the processors in replay, else 8)")
	f.DurationVar(&o.timeout, "timeout", 0, "how long an item may take (default: as the dataset says)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of ids and pauses; never part of a request")
	f.StringArrayVar(&o.upstream, "upstream", nil, "VENDOR=URL: dial this address instead (repeat)")
	f.StringVar(&o.recordedAt, "recorded-at", "", "start of a recording's clock (RFC 3339); makes the recording reproducible")
	f.StringVar(&o.cassettes, "cassettes", "", "folder of the cassettes (default: fixtures/cassettes below the project's root)")
	f.BoolVar(&o.leftover, "allow-leftover", false, "do not fail items that leave recorded requests unused")
	f.StringArrayVar(&o.drift, "drift", nil, "CLASS=serve|warn|fail|live: what is done about a class of drift; live in mode extend and with --stale (repeat)")
	f.StringVar(&o.faults, "faults", "", "FILE or builtin: faults to inject into each recording, to see which of them the agent survives; in mode replay")
	f.BoolVar(&o.allowNetwork, "allow-network", false, "let record and live dial although CI is set")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would run, what it costs and how long it takes, by the last recordings")
	f.StringVar(&o.out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	f.StringVar(&o.traces, "traces", "all", "which traces to keep: all or failed")
	f.StringVar(&o.resume, "resume", "", "go on with this run; dataset and flags are taken from it")
	o.compared = true
	f.StringVar(&o.baseline, "baseline", "", "FILE.json, NAME, git:REV or none: what the run is compared with (default: baselines/DATASET.json, where it is there)")
	f.StringArrayVar(&o.failOn, "fail-on", nil, "checks, regression (a gate of that name, or an invariant broken that the baseline kept) or none: what makes exit code 1 (repeat; default: both)")
	f.StringArrayVar(&o.formats, "format", nil, "a report, FORMAT or FORMAT=PATH: "+strings.Join(reportNames(), ", ")+" (repeat)")
	f.BoolVar(&o.asJSON, "json", false, "print the summary as JSON")
	f.BoolVar(&o.all, "all", false, "show all items, not only those that did not pass")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no hints")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "a line for each item as it finishes")
	f.BoolVar(&o.noColor, "no-color", false, "no colours")
}

// positive refuses zero where it was typed: left out, it stands for what the dataset or the machine says.
func positive(f *pflag.FlagSet) error {
	for _, name := range []string{"repeat", "concurrency", "timeout", "max-cost"} {
		if flag := f.Lookup(name); flag.Changed && strings.Trim(flag.Value.String(), "0.smh") == "" {
			return usage("leave it out for the usual", "--%s %s: want more than 0", name, flag.Value)
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

func (o *runOptions) check() error {
	if _, _, err := o.repeats(); err != nil {
		return err
	}
	switch {
	case o.concurrency < 0 || o.concurrency > 10_000:
		return usage("leave it out for a sensible number", "--concurrency %d: want 1 to 10000", o.concurrency)
	case o.stale && o.mode != string(replay.Record):
		return failure.WithHint(failure.New(failure.Input, "--stale is for recording"), "echoeval record DATASET --stale")
	case o.faults != "" && o.mode != string(replay.Replay):
		return usage("echoeval run DATASET --faults "+quote(o.faults), "--faults is for mode replay, not for %s: faults are injected into recordings, and none is recorded by this version", o.mode)
	case o.freeze != "" && o.freeze != string(experiment.FreezeAgent) && o.freeze != string(experiment.FreezeTools):
		return usage(strict.Suggest(o.freeze, []string{string(experiment.FreezeAgent), string(experiment.FreezeTools)}), "--freeze %s: want agent or tools", o.freeze)
	case o.freeze != "" && (o.mode != string(replay.Record) || o.stale):
		return usage("echoeval record DATASET --repeat 5 --freeze "+o.freeze+" --cassettes DIR", "--freeze is for recording whole")
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

// repeats reads --repeat: how often each item runs, 0 for what the dataset says, and how often at most while its verdict is open, 0 for no more.
func (o *runOptions) repeats() (first, most int, err error) {
	if o.repeat == "" {
		return 0, 0, nil
	}
	low, high, ranged := strings.Cut(o.repeat, "..")
	first, err = strconv.Atoi(low)
	if err != nil || first < 1 || first > results.MaxRepeat {
		return 0, 0, usage("--repeat 5, or --repeat 1..5; leave it out for what the dataset says", "--repeat %s: want 1 to %d", o.repeat, results.MaxRepeat)
	}
	if !ranged {
		return first, 0, nil
	}
	most, err = strconv.Atoi(high)
	if err != nil || most <= first || most > experiment.MaxRepeats {
		return 0, 0, usage("--repeat 1..5", "--repeat %s: want MIN..MAX with MAX above MIN and at most %d", o.repeat, experiment.MaxRepeats)
	}
	return first, most, nil
}

// checkFormats refuses, before anything runs, reports that would overwrite one another or something else.
func (o *runOptions) checkFormats(s *State, datasets int) error {
	o.datasets = datasets
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
		case datasets > 1 && r.Several == nil:
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
		if c.Target != nil && c.Provider.Model == "" {
			continue // its models are known by their requests alone; one without a price is refused there
		}
		if _, ok := c.Cost(llm.Response{}); !ok {
			return nil, failure.WithHint(failure.At(c.Provider.Pos, failure.Input, "--max-cost: no price is known for provider %s", c.Provider.ID), "price: {input: USD, output: USD} per million tokens in its entry")
		}
	}
	return experiment.NewBudget(limit, o.spent), nil
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
	own := d.Columns()
	var out []dataset.Provider
	for _, flag := range flags {
		if i := slices.IndexFunc(own, func(p dataset.Provider) bool { return p.ID == flag }); i >= 0 {
			p := own[i]
			p.Role = ""
			out = append(out, p)
			continue
		}
		if p, ok := d.Shared(flag); ok {
			out = append(out, p)
			continue
		}
		name, model, ok := strings.Cut(flag, ":")
		if _, known := vendors[name]; !ok || !known || model == "" {
			if d.Unsure() {
				continue // it may be one that is wrong
			}
			ids := d.SharedNames()
			for _, p := range own {
				ids = append(ids, p.ID)
			}
			err := failure.New(failure.Input, "--provider %s: neither a provider of %s or of its libraries, nor VENDOR:MODEL", flag, d.File)
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
