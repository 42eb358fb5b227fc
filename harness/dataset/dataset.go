// Package dataset reads dataset files: what is asked of an agent, item by item, and how the answers are judged.
//
// [Open] reads everything but the items, [Dataset.Validate] looks at every item once and finds all problems, [Dataset.Items] streams them, as often as needed; memory does not grow with the number of items.
//
//	d, err := dataset.Open("datasets/triage.yaml", dataset.Options{Dir: cwd})
//	if err != nil {
//		return err
//	}
//	if err := d.Validate(nil); err != nil {
//		return err
//	}
//	// d.Warnings are for the report
//	for item, err := range d.Items() {
//		...
//	}
//
// # Layers
//
// An item is read over the defaults of the project file and those of the dataset, and under the overrides that it meets and the settings of the command line; the highest counts. A value replaces what lies below it; vars, metadata, tool_context, user, policy and limits merge by key at every level, tool_mocks and answers by their names; checks, invariants and tags add up, and null takes back what was inherited (inside a mapping it takes back the key).
// A value of null where nothing is inherited is a value inside a mapping and means "not set" as a key of the item. input, turns and user take back each other where two of them cannot stand together. drop removes by name the checks and invariants of the layers below the one that says it.
//
// # Templates
//
// {{name}} stands for a variable (vars), for "expected" or for a metadata value, in this order; {{expected.city}}, {{vars.a.b}} reach inside. It is rendered in input, turns, messages and user, in the arguments of checks and invariants, in script, tool_context, tool_mocks and answers; never in vars, expected and metadata, where the values come from, and never in ids, tags, names and numbers.
// It is rendered once: a value that holds {{ is put in as it is. Alone in its text it keeps the value's type; within a text, a list or mapping is put in as JSON. An unknown name is an error; \{{ is the text {{.
// The items of .jsonl and .csv files are data: their texts are never rendered, but their values fill the templates of the defaults and of libraries.
//
// # Paths
//
// A path is relative to the file that names it and is never absolute. Agent and item files may lie anywhere; workspaces, images and documents, which reach tools and models, must lie under the project's root, symbolic links followed. Every path that this package gives is relative to the root, with slashes.
package dataset

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
)

// Bounds on what is read.
const (
	MaxItem  = 1 << 20  // bytes of one item in its file
	MaxMedia = 20 << 20 // bytes of one image or document
)

// Options says what [Open] knows beside the file. Lists that are nil are not checked against.
type Options struct {
	// Dir is the absolute current folder, which a relative path starts from.
	Dir string
	// Checks are the kinds of checks, Invariants the names of invariants, Metrics the names that gates may bound, Vendors those of providers.
	Checks, Invariants, Metrics, Vendors []string
	// Bounds are what vendors take of a model's settings at most, by vendor; nil bounds nothing. One that is not in it has no setting of a cache.
	Bounds map[string]llm.Bounds
	// Compared are the metrics that a regression gate may name.
	Compared []string
	// Drift are the classes of drift.
	Drift []string
	// Judging is a hash of what judges are told beside the arguments of their checks; it is part of how an item is judged.
	Judging string
	// Arguments describe the arguments of checks by kind: a type that they are decoded into beside a bare text, or what makes their schema, a func(*[strict.Schemas]) [strict.Schema]. Of a kind that is not in it any arguments fit the schema.
	Arguments map[string]any
	// Later are kinds of checks of the format that this version refuses.
	Later []string
	// TargetVariables are the environment variables that the recorder of a target sets itself.
	TargetVariables []string
	// Set are KEY=VALUE pairs over the dataset: KEY is a path of keys of the dataset file with dots (gates.pass_rate, defaults.timeout), or items and keys of an item, which are set for every item; VALUE is YAML.
	Set []string
	// Temp is the folder for temporary files; "" is that of the system.
	Temp string
	// Beyond is called where something beside the items is wrong, so that what does not follow from it is told too. It is given what there is of the dataset, which it may look at by [Dataset.Inspect] and not keep; nil looks at the items alone.
	Beyond func(d *Dataset, p *strict.Problems)
}

// absolute returns a path as seen from Dir.
func (o *Options) absolute(file string) (string, error) {
	if !filepath.IsAbs(file) {
		if !filepath.IsAbs(o.Dir) {
			return "", failure.New(failure.Internal, "the current folder %q is not absolute", o.Dir)
		}
		file = filepath.Join(o.Dir, file)
	}
	return filepath.Clean(file), nil
}

// Dataset is a dataset file without its items.
type Dataset struct {
	Name        string
	Description string
	// File is the dataset's file, relative to Root, with slashes.
	File string
	// Root is the absolute project folder; see [Root].
	Root string
	// Agent is the dataset's agent. It is missing only where every provider has its own.
	Agent Agent
	// Target is the program under test in place of an agent; nil where there is none.
	Target *Target
	// Providers are the columns in the order of the file. There may be none: the command line can name them.
	Providers []Provider
	// Spare are the providers of role spare: columns where the command line names them, whose cassettes the dataset keeps.
	Spare []Provider
	// Roles are the providers of role judge, user or embed, which are no columns.
	Roles []Provider
	// Gates are those that the file names, in its order.
	Gates []Gate
	// AllowLeftover is replay.allow_leftover: interactions of a cassette may be left over.
	AllowLeftover bool
	// Normalize is replay.normalize, in its order.
	Normalize []Normalize
	// Drift is what a replay does about each class of drift, over that of the project file: "serve", "warn" or "fail" by class. Classes that nobody names are not in it.
	Drift map[string]string
	// Project is what the project file of Root says.
	Project *Project
	// Warnings are set by [Dataset.Validate]: what a report must say although the dataset is right.
	Warnings []Warning
	// Count and Hash are set by [Dataset.Validate]: the number of items, and the hash of all that acts in a run: agents, providers, gates and items as resolved, but neither the description nor the contents of workspaces.
	Count int
	Hash  string

	options   Options
	unsure    bool // a provider is wrong, so that a name may well be right
	lessNames bool // so is a check or an invariant
	libraries libraries
	// fromLibraries are the providers that the dataset has from libraries.
	fromLibraries []libraryProvider
	lower         []*layer   // those below the items: the project's, the defaults
	overrides     []override // those above, for some items
	setItems      strict.Node
	set           *layer // the highest, from the command line; nil where there is none
	items         items
	spooled       map[string]*os.File // what pipes gave, by their absolute path
	folders       map[string]string   // what is wrong with the workspaces seen so far
	head          []byte              // canonical text of what Hash covers beside the items
}

// Role returns the provider of a role: the one of that id, or the only one where id is "". The error says what is missing or that there are several.
func (d *Dataset) Role(role, id string) (Provider, error) {
	var ids []string
	found := Provider{}
	for _, v := range d.Roles {
		if v.Role != role {
			continue
		}
		if v.ID == id {
			return v, nil
		}
		found, ids = v, append(ids, v.ID)
	}
	example := "add one to providers: {id: " + role + ", provider: openai, model: ..., role: " + role + "}"
	switch {
	case len(ids) == 0:
		return found, failure.WithHint(failure.New(failure.Input, "%s has no provider of role %s", d.File, role), "%s", example)
	case id != "":
		return found, failure.WithHint(failure.New(failure.Input, "%s has no provider %q of role %s", d.File, id, role), "%s", strict.Suggest(id, ids))
	case len(ids) > 1:
		return found, failure.WithHint(failure.New(failure.Input, "%s has several providers of role %s", d.File, role), "name one: provider: %s", ids[0])
	}
	return found, nil
}

// Agent is an agent's configuration, for core/agent to decode.
type Agent struct {
	// Node is the configuration; it is missing where none is given.
	Node strict.Node
	// Broken says that its file cannot be read, or does not hold a mapping: what it gives names to is not known.
	Broken bool
	// File is the agent's file relative to the root, and "" for an agent within the dataset file. Paths in the configuration are relative to the folder of Node.Pos().File.
	File string
}

// Gate bounds a metric.
type Gate struct {
	Metric string
	// Bound is the bound as written, such as ">= 0.95". It is "" where the gate is switched off.
	Bound string
	Off   bool
	// Provider, Tag and Check limit the gate; "" does not.
	Provider, Tag, Check string
	// Regression is set for the gate of the metric "regression", which has no Bound.
	Regression *Regression
	Pos        failure.Position
}

// Regression bounds how much a metric may drop against the baseline.
type Regression struct {
	// Metric is what is compared; it is one of the metrics that the caller compares.
	Metric string
	// MaxDrop is the largest drop that is no regression, in the metric's unit, from 0 on.
	MaxDrop float64
	// Confidence is the level of the interval, in (0.5, 1); 0 where it is not given.
	Confidence float64
	// FailInconclusive says that a run fails where the interval leaves the question open.
	FailInconclusive bool
	Pos              failure.Position
}

type fileKeys struct {
	Version     strict.Node `yaml:"version,required" schema:"version" doc:"1"`
	Name        strict.Node `yaml:"name,required" schema:"name" doc:"names the cassette folder and the baseline"`
	Description string      `yaml:"description"`
	Use         strict.Node `yaml:"use" schema:"use" doc:"paths and globs of libraries, which give names to checks, invariants and providers"`
	Agent       strict.Node `yaml:"agent" schema:"agent" doc:"the path of an agent file, or the agent"`
	Target      strict.Node `yaml:"target" schema:"target" doc:"a program under test in place of an agent"`
	Providers   strict.Node `yaml:"providers" schema:"providers" doc:"the columns: vendor:model, the name of a library's, or a mapping"`
	Defaults    strict.Node `yaml:"defaults" schema:"defaults" doc:"what items inherit"`
	Items       strict.Node `yaml:"items,required" schema:"items" doc:"a list; the path or glob of .yaml, .json, .jsonl or .csv files; or {path, map}"`
	Overrides   strict.Node `yaml:"overrides" schema:"overrides" doc:"other values for the items that an expression meets"`
	Gates       strict.Node `yaml:"gates" schema:"gates" doc:"bounds on metrics"`
	Replay      replayKeys  `yaml:"replay" doc:"how recordings are replayed"`
}

type replayKeys struct {
	AllowLeftover bool        `yaml:"allow_leftover" doc:"what a cassette holds beyond what was asked is no failure"`
	Normalize     strict.Node `yaml:"normalize" schema:"normalize" doc:"what differs from one run to the next, and what stands in its place"`
	Drift         driftKeys   `yaml:"drift" schema:"drift" doc:"what a replay does about each class of drift"`
}

// later tells keys of the format that this version does not read from misspelt ones.
func later(name string, keys ...string) (message, hint string) {
	if slices.Contains(keys, name) {
		return "key \"" + name + "\" is not read by this version", "remove it; reading the file without it would run something else than it says"
	}
	return "", ""
}

// Open reads a dataset file but for its items. Its problems are reported together, each with its place, and with those of the items where these can be found.
func Open(file string, options Options) (*Dataset, error) {
	file, err := options.absolute(file)
	if err != nil {
		return nil, err
	}
	d := newDataset(file, options)
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".yaml" && ext != ".yml" && ext != ".json" {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: a dataset file ends in .yaml or .json", d.File), "items in other formats are named by a dataset file: items: %s", path.Base(d.File))
	}
	in, err := openRegular(file)
	if err != nil {
		return nil, unreadable(failure.Position{}, "dataset file "+d.File, err)
	}
	defer in.Close()
	root, list, err := strict.Split(d.File, in, "items")
	var p strict.Problems
	p.AddError(err)
	if root.IsZero() || root.Kind() != strict.Mapping {
		if err == nil {
			p.WrongType(root, "a mapping with the keys of a dataset")
		}
		return nil, p.Err()
	}
	d.decode(d.apply(root, &p), list, &p)
	if p.Len() > 0 {
		if options.Beyond != nil {
			options.Beyond(d, &p)
		} else {
			d.Inspect(nil, &p)
		}
		return nil, p.Err()
	}
	return d, nil
}

// Unsure reports that a provider is wrong, so that what names one may well be right.
func (d *Dataset) Unsure() bool { return d.unsure }

// newDataset returns a dataset of a file that is not read yet.
func newDataset(file string, options Options) *Dataset {
	d := &Dataset{Root: Root(file, options.Dir), options: options, folders: map[string]string{}, libraries: newLibraries()}
	d.File = d.show(file)
	return d
}

func (d *Dataset) decode(root strict.Node, list *strict.List, p *strict.Problems) {
	var keys fileKeys
	strict.Decode(root, &keys, p)
	d.Description, d.AllowLeftover = keys.Description, keys.Replay.AllowLeftover
	versionOne(keys.Version, p)
	if !keys.Name.IsZero() {
		strict.Decode(keys.Name, &d.Name, p.Key("name"))
		if problem := datasetNameProblem(d.Name); problem != "" && keys.Name.Kind() == strict.String {
			p.Key("name").Add(keys.Name.Pos(), "the name becomes the name of folders: clinic-triage", "%s", problem)
		}
	}
	d.Agent = d.agent(keys.Agent, p.Key("agent"))
	d.project(p)
	d.use(d.Project.use, p.Key("use"))
	d.use(keys.Use, p.Key("use"))
	d.Target = d.target(keys.Target, p.Key("target"))
	if !keys.Agent.IsZero() && !keys.Target.IsZero() {
		p.Add(root.KeyPos("target"), "a provider may have an agent or a target of its own", "a dataset has an agent or a target, not both")
	}
	d.providers(keys.Providers, p.Key("providers"))
	if d.Target != nil && len(d.Providers) == 0 && !d.unsure {
		d.Providers = []Provider{{ID: TargetProvider, Vendor: TargetProvider, Pos: d.Target.Pos}}
	}
	if keys.Agent.IsZero() && keys.Target.IsZero() && (len(d.Providers) == 0 || slices.ContainsFunc(d.Providers, func(v Provider) bool { return v.Agent.Node.IsZero() && v.Target == nil })) {
		p.Add(root.Pos(), "add it: agent: {task: {description: ...}}, or the path of an agent file; or target: {command: [...]} for a program", "key \"agent\" is missing")
	}
	if n := d.Project.defaults; !n.IsZero() {
		d.below("project", n, p)
	}
	if n := keys.Defaults; !n.IsZero() {
		d.below("defaults", n, p)
	}
	d.decodeOverrides(keys.Overrides, p.Key("overrides"))
	if n := d.setItems; n.Len() > 0 {
		d.set = &layer{name: "--set", path: func(root *strict.Problems) *strict.Problems { return root.Key("items") }}
		d.decodeLayer(d.set, n, "", p.Key("items"))
	}
	d.Normalize = normalize(keys.Replay.Normalize, p.Key("replay").Key("normalize"))
	d.Drift = d.drift(keys.Replay.Drift.node, d.Project.Drift, p.Key("replay").Key("drift"))
	d.gates(keys.Gates, p.Key("gates"))
	d.items = d.sources(keys.Items, list, p.Key("items"))
	d.head = d.headText(root)
}

// show gives a path as it is shown and written: relative to the root, with slashes.
func (d *Dataset) show(file string) string {
	rel, err := filepath.Rel(d.Root, file)
	if err != nil {
		return filepath.Base(file) // another drive
	}
	return filepath.ToSlash(rel)
}

// resolve returns the absolute path that a node names. It adds a problem where the text cannot be a path.
func (d *Dataset) resolve(n strict.Node, p *strict.Problems) (string, bool) {
	text := n.Text()
	switch {
	case text == "":
		p.Add(n.Pos(), "", "the path is empty")
	case strings.ContainsRune(text, 0):
		p.Add(n.Pos(), "", "a path holds no NUL")
	case filepath.IsAbs(text) || path.IsAbs(text):
		p.Add(n.Pos(), "write it relative to the file that names it", "the path is absolute")
	case strings.Contains(text, `\`):
		p.Add(n.Pos(), "write it with slashes", "the path has a backslash")
	default:
		return filepath.Join(d.folderOf(n), filepath.FromSlash(text)), true
	}
	return "", false
}

// folderOf returns the absolute folder of the file that a node stands in; what stands on the command line is seen from the dataset.
func (d *Dataset) folderOf(n strict.Node) string {
	file := n.Pos().File
	if strings.HasPrefix(file, setPlace) {
		file = d.File
	}
	return filepath.Join(d.Root, filepath.FromSlash(path.Dir(file)))
}

// resolveInside is resolve for what must lie under the root.
func (d *Dataset) resolveInside(n strict.Node, p *strict.Problems) (string, bool) {
	file, ok := d.resolve(n, p)
	if ok && !inside(d.Root, file) {
		p.Add(n.Pos(), "move it under the folder that holds echoeval.yaml or .git", "%s leaves the project's folder", n.Text())
		return "", false
	}
	return file, ok
}

// openRegular opens a regular file. Others, such as pipes, could block for ever and cannot be read twice.
func openRegular(file string) (*os.File, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	return os.Open(file)
}

// unreadable says why a file cannot be read, without its absolute path.
func unreadable(pos failure.Position, what string, err error) error {
	reason := "cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		reason = "cannot be read: permission denied"
	case errors.Is(err, errNoFile):
		reason = "is no file"
	case errors.Is(err, errTooLong):
		reason = "is too long"
	}
	if pos.Line > 0 {
		return failure.At(pos, failure.Input, "%s %s", what, reason)
	}
	return failure.New(failure.Input, "%s %s", what, reason)
}

func (d *Dataset) agent(n strict.Node, p *strict.Problems) Agent {
	switch n.Kind() {
	case strict.Missing:
		return Agent{}
	case strict.Mapping:
		return Agent{Node: n}
	case strict.String:
		file, ok := d.resolve(n, p)
		if !ok {
			return Agent{Node: n, Broken: true}
		}
		name := d.show(file)
		data, err := readBounded(os.DirFS(filepath.Dir(file)), filepath.Base(file), strict.MaxDocument)
		if err != nil {
			p.AddError(failure.WithHint(unreadable(n.Pos(), "agent file "+name, err), "the path is relative to the file that names it"))
			return Agent{Node: n, File: name, Broken: true}
		}
		node, err := strict.Parse(name, data)
		p.AddError(err)
		if err == nil && node.Kind() != strict.Mapping {
			p.WrongType(node, "a mapping with the keys of an agent")
		}
		return Agent{Node: node, File: name, Broken: err != nil || node.Kind() != strict.Mapping}
	}
	p.WrongType(n, "the path of an agent file or a mapping")
	return Agent{Node: n, Broken: true}
}

func (d *Dataset) gates(n strict.Node, p *strict.Problems) {
	switch n.Kind() {
	case strict.Missing:
	case strict.Mapping:
		for key, bound := range n.Fields() {
			d.gate(key, bound, Gate{}, p)
		}
	case strict.Sequence:
		for i, entry := range n.Items() {
			at := p.At(i)
			if entry.Kind() != strict.Mapping {
				at.WrongType(entry, "a mapping such as {pass_rate: \">= 0.95\", provider: ...}")
				continue
			}
			var where Gate
			found := 0
			for key, value := range entry.Fields() {
				switch key.Name {
				case "provider":
					strict.Decode(value, &where.Provider, at.Key(key.Name))
					d.checkProvider(value, at.Key(key.Name))
				case "tag":
					strict.Decode(value, &where.Tag, at.Key(key.Name))
				case "check":
					strict.Decode(value, &where.Check, at.Key(key.Name))
				default:
					found++
				}
			}
			if found == 0 {
				at.Add(entry.Pos(), "add it: pass_rate: \">= 0.95\"", "a gate names a metric")
			}
			for key, value := range entry.Fields() {
				if key.Name != "provider" && key.Name != "tag" && key.Name != "check" {
					d.gate(key, value, where, at)
				}
			}
		}
	default:
		p.WrongType(n, "a mapping of metrics to bounds, or a list of such")
	}
	seen := map[Gate]failure.Position{}
	for _, g := range d.Gates {
		key := Gate{Metric: g.Metric, Provider: g.Provider, Tag: g.Tag, Check: g.Check}
		if g.Regression != nil {
			key.Bound = g.Regression.Metric
		}
		if first, ok := seen[key]; ok {
			p.Add(g.Pos, "remove one of the two", "the gate on %s stands here a second time, first at %s", g.Metric, first)
			continue
		}
		seen[key] = g.Pos
	}
}

func (d *Dataset) gate(key strict.Key, bound strict.Node, where Gate, p *strict.Problems) {
	g := where
	g.Metric, g.Pos = key.Name, key.Pos()
	if key.Name == RegressionGate {
		switch bound.Kind() {
		case strict.Null:
			g.Off = true
		case strict.Mapping:
			g.Regression = d.regression(bound, p.Key(key.Name))
		default:
			p.Key(key.Name).WrongType(bound, "a mapping such as {metric: score, max_drop: 0.02}")
		}
		d.Gates = append(d.Gates, g)
		return
	}
	if d.options.Metrics != nil && !slices.Contains(d.options.Metrics, key.Name) && !repeatMetric.MatchString(key.Name) {
		p.Add(key.Pos(), strict.Suggest(key.Name, d.options.Metrics), "unknown metric %q", key.Name)
		return
	}
	switch bound.Kind() {
	case strict.Null:
		g.Off = true
	case strict.String:
		g.Bound = bound.Text()
	case strict.Int, strict.Float:
		p.Key(key.Name).Add(bound.Pos(), "write how the metric is bound: \">= "+bound.Text()+"\"", "want a bound, got a number")
	default:
		p.Key(key.Name).WrongType(bound, "a bound such as \">= 0.95\"")
	}
	d.Gates = append(d.Gates, g)
}

// RegressionGate is the name of the gate that compares with the baseline.
const RegressionGate = "regression"

// repeatMetric matches the metrics over k repeats, of which there is one for each k.
var repeatMetric = regexp.MustCompile(repeatMetricPattern)

const repeatMetricPattern = `^pass_(at|hat)_[1-9][0-9]{0,4}$`

type regressionKeys struct {
	Metric         string   `yaml:"metric,required" doc:"what is compared: pass_rate or score"`
	MaxDrop        *float64 `yaml:"max_drop,required" schema:"drop" doc:"the largest drop that is no regression, in the metric's unit"`
	Confidence     *float64 `yaml:"confidence" schema:"level" doc:"the level of the interval of the difference, 0.95 unless given"`
	OnInconclusive string   `yaml:"on_inconclusive" values:"pass,fail" doc:"what becomes of a run whose interval leaves the question open; pass unless given"`
}

func (d *Dataset) regression(n strict.Node, p *strict.Problems) *Regression {
	var keys regressionKeys
	strict.Decode(n, &keys, p)
	r := &Regression{Metric: keys.Metric, FailInconclusive: keys.OnInconclusive == "fail", Pos: n.Pos()}
	if v := n.Get("metric"); v.Kind() == strict.String && d.options.Compared != nil && !slices.Contains(d.options.Compared, keys.Metric) {
		p.Key("metric").Add(v.Pos(), strict.Suggest(keys.Metric, d.options.Compared), "%q is not compared with a baseline", keys.Metric)
	}
	if keys.MaxDrop != nil {
		r.MaxDrop = *keys.MaxDrop
		if r.MaxDrop < 0 || r.MaxDrop >= 1 {
			p.Key("max_drop").Add(n.Get("max_drop").Pos(), "0.02 is two points", "want a drop from 0 to below 1")
		}
	}
	if keys.Confidence != nil {
		r.Confidence = *keys.Confidence
		if r.Confidence <= 0.5 || r.Confidence >= 1 {
			p.Key("confidence").Add(n.Get("confidence").Pos(), "0.95 is usual", "want a level between 0.5 and 1")
		}
	}
	return r
}
