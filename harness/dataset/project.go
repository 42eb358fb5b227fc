package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"regexp"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// ProjectFile is the name of the file whose folder is a project's root.
const ProjectFile = "echoeval.yaml"

// Project is what the project file says. A project without the file, or with an empty one, has the defaults.
type Project struct {
	// File is "echoeval.yaml", and "" where there is none.
	File string
	// Root is the absolute project folder.
	Root string
	// Datasets are the files that a run without arguments runs, sorted, relative to Root, with slashes.
	Datasets []string
	// Cassettes and Baselines are folders relative to Root, with slashes: fixtures/cassettes and baselines unless given.
	Cassettes, Baselines string
	// Prices is the file with prices, relative to Root; "" is the built-in table alone.
	Prices string
	// Redact are detectors of secrets beside the built-in ones, RedactAllow are texts that are none.
	Redact      []Redact
	RedactAllow []RedactAllow
	// Drift is replay.drift: what a replay does about each class of drift.
	Drift map[string]string

	defaults, use strict.Node
}

// Redact is a detector: what the expression matches is a secret of that name.
type Redact struct {
	Name  string
	Regex *regexp.Regexp
	Pos   failure.Position
}

// RedactAllow says that what the expression matches is no secret, and why.
type RedactAllow struct {
	Regex *regexp.Regexp
	Why   string
	Pos   failure.Position
}

type projectKeys struct {
	Version     strict.Node       `yaml:"version,required" schema:"version" doc:"1"`
	Datasets    []string          `yaml:"datasets" schema:"use" doc:"paths and globs: what run without an argument runs"`
	Use         []string          `yaml:"use" schema:"use" doc:"paths and globs of libraries, whose names every dataset knows"`
	Defaults    strict.Node       `yaml:"defaults" schema:"defaults" doc:"the lowest layer of every dataset"`
	Cassettes   string            `yaml:"cassettes" schema:"filled" doc:"folder of the cassettes, fixtures/cassettes unless given"`
	Baselines   string            `yaml:"baselines" schema:"filled" doc:"folder of the baselines, baselines unless given"`
	Redact      []redactKeys      `yaml:"redact" doc:"detectors of secrets beside the built-in ones"`
	RedactAllow []redactAllowKeys `yaml:"redact_allow" doc:"what looks like a secret and is none"`
	Replay      projectReplayKeys `yaml:"replay"`
	Prices      string            `yaml:"prices" schema:"filled" doc:"file with USD per million tokens by model"`
}

type redactKeys struct {
	Name  string `yaml:"name,required" schema:"word"`
	Regex string `yaml:"regex,required" schema:"filled" doc:"an RE2 expression"`
}

type redactAllowKeys struct {
	Regex string `yaml:"regex,required" schema:"filled" doc:"an RE2 expression"`
	Why   string `yaml:"why,required"`
}

type projectReplayKeys struct {
	Drift driftKeys `yaml:"drift" schema:"drift" doc:"what a replay does about each class of drift"`
}

// driftKeys are actions by class.
type driftKeys struct{ node strict.Node }

// DecodeStrict implements [strict.Decoder].
func (k *driftKeys) DecodeStrict(n strict.Node, _ *strict.Problems) { k.node = n }

// OpenProject reads the project file of a folder, which is a root, and all libraries that it names. There may be none.
func OpenProject(dir string, options Options) (*Project, error) {
	dir, err := options.absolute(dir)
	if err != nil {
		return nil, err
	}
	var p strict.Problems
	d := newDataset(filepath.Join(dir, ProjectFile), options)
	d.Root = dir
	d.project(&p)
	d.use(d.Project.use, p.Key("use"))
	if !d.Project.defaults.IsZero() {
		d.below("project", d.Project.defaults, &p)
	}
	return d.Project, p.Err()
}

// project reads the project file of the dataset's root, but for its libraries and defaults.
func (d *Dataset) project(p *strict.Problems) {
	project := &Project{Root: d.Root, Cassettes: "fixtures/cassettes", Baselines: "baselines"}
	d.Project = project
	data, err := readBounded(os.DirFS(d.Root), ProjectFile, strict.MaxDocument)
	if err != nil {
		if _, statErr := os.Lstat(filepath.Join(d.Root, ProjectFile)); statErr == nil {
			p.AddError(failure.WithHint(unreadable(failure.Position{}, ProjectFile, err), "an empty %s marks the root of a project too", ProjectFile))
		}
		return
	}
	project.File = ProjectFile
	if onlyComments(data) {
		return
	}
	found := p.Len()
	defer func() { d.libraries.unread = d.libraries.unread || p.Len() != found }() // it may name libraries
	root, err := strict.Parse(ProjectFile, data)
	p.AddError(err)
	if root.IsZero() {
		return
	}
	if root.Kind() != strict.Mapping {
		p.WrongType(root, "a mapping with the keys of a project")
		return
	}
	var keys projectKeys
	strict.Decode(root, &keys, p)
	versionOne(keys.Version, p)
	project.use, project.defaults = root.Get("use"), keys.Defaults
	if n := root.Get("datasets"); n.Kind() == strict.Sequence {
		d.datasets(n, p.Key("datasets"))
	}
	for _, one := range []struct {
		key string
		to  *string
	}{{"cassettes", &project.Cassettes}, {"baselines", &project.Baselines}, {"prices", &project.Prices}} {
		n := root.Get(one.key)
		if n.Kind() != strict.String {
			continue
		}
		if file, ok := d.resolve(n, p.Key(one.key)); ok {
			*one.to = d.show(file)
		}
	}
	for i, r := range keys.Redact {
		at, n := p.Key("redact").At(i), root.Get("redact").Index(i)
		if expression := compiled(n.Get("regex"), at.Key("regex")); expression != nil {
			project.Redact = append(project.Redact, Redact{r.Name, expression, n.Pos()})
		}
		if name := n.Get("name"); name.Kind() == strict.String && (r.Name == "" || !onlyBytes(r.Name, "._-")) {
			at.Key("name").Add(name.Pos(), "write letters, digits, dot, underscore and hyphen", "%q is no name", r.Name)
		}
	}
	for i, r := range keys.RedactAllow {
		at, n := p.Key("redact_allow").At(i), root.Get("redact_allow").Index(i)
		if expression := compiled(n.Get("regex"), at.Key("regex")); expression != nil {
			project.RedactAllow = append(project.RedactAllow, RedactAllow{expression, r.Why, n.Pos()})
		}
	}
	project.Drift = d.drift(keys.Replay.Drift.node, nil, p.Key("replay").Key("drift"))
}

// compiled compiles an expression that must not match the empty text, which stands everywhere.
func compiled(n strict.Node, p *strict.Problems) *regexp.Regexp {
	if n.Kind() != strict.String {
		return nil
	}
	expression, err := regexp.Compile(n.Text())
	switch {
	case err != nil:
		p.Add(n.Pos(), "RE2 has no look-around and no back references", "%s", err)
		return nil
	case expression.MatchString(""):
		p.Add(n.Pos(), "write what must be there", "%q matches the empty text", n.Text())
		return nil
	}
	return expression
}

// datasets finds the files that the key datasets names.
func (d *Dataset) datasets(n strict.Node, p *strict.Problems) {
	for i, entry := range n.Items() {
		if entry.Kind() != strict.String {
			continue // said
		}
		at := p.At(i)
		for _, file := range d.glob(entry, at) {
			name := d.show(file)
			if name == ProjectFile {
				if !isGlob(entry.Text()) {
					at.Add(entry.Pos(), "name datasets", "the project file is no dataset")
				}
				continue
			}
			if _, err := os.Stat(file); err != nil {
				at.AddError(failure.WithHint(unreadable(entry.Pos(), "dataset file "+name, err), "the path is relative to %s", ProjectFile))
				continue
			}
			d.Project.Datasets = append(d.Project.Datasets, name)
		}
	}
	slices.Sort(d.Project.Datasets)
	d.Project.Datasets = slices.Compact(d.Project.Datasets)
}

// onlyComments reports whether a YAML file says nothing.
func onlyComments(data []byte) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// below decodes a layer that lies below the items.
func (d *Dataset) below(name string, n strict.Node, p *strict.Problems) {
	at := p.Key("defaults")
	if n.Kind() != strict.Mapping {
		at.WrongType(n, "a mapping with keys of items")
		return
	}
	l := &layer{name: name, path: func(root *strict.Problems) *strict.Problems { return root.Key("defaults") }}
	d.decodeLayer(l, n, "", at)
	checkNames(l.checks, at)
	d.lower = append(d.lower, l)
}

// The actions about drift.
var driftActions = []string{"serve", "warn", "fail"}

// drift reads actions by class, over those that are inherited.
func (d *Dataset) drift(n strict.Node, under map[string]string, p *strict.Problems) map[string]string {
	if n.IsZero() {
		return under
	}
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping of classes of drift to serve, warn or fail")
		return under
	}
	all := make(map[string]string, len(under)+n.Len())
	for class, action := range under {
		all[class] = action
	}
	for key, v := range n.Fields() {
		switch {
		case d.options.Drift != nil && !slices.Contains(d.options.Drift, key.Name):
			p.Add(key.Pos(), strict.Suggest(key.Name, d.options.Drift), "unknown class of drift %q", key.Name)
		case v.IsNull():
			delete(all, key.Name)
		case v.Kind() != strict.String:
			p.Key(key.Name).WrongType(v, "a string")
		case !slices.Contains(driftActions, v.Text()):
			p.Key(key.Name).Add(v.Pos(), strict.Suggest(v.Text(), driftActions), "unknown action %q", v.Text())
		default:
			all[key.Name] = v.Text()
		}
	}
	return all
}

// normalize reads replay.normalize.
func normalize(n strict.Node, p *strict.Problems) []Normalize {
	var keys []normalizeKeys
	if n.IsZero() {
		return nil
	}
	before := p.Len()
	strict.Decode(n, &keys, p)
	if p.Len() != before {
		return nil // a rule that says something else than it seems is none
	}
	list := make([]Normalize, 0, len(keys))
	for i, k := range keys {
		found := p.Len()
		compiled(n.Index(i).Get("regex"), p.At(i).Key("regex"))
		if as := n.Index(i).Get("as"); as.Kind() == strict.String && (k.As == "" || !onlyBytes(k.As, "._-")) {
			p.At(i).Key("as").Add(as.Pos(), "write letters, digits, dot, underscore and hyphen: as: today", "%q cannot stand in a placeholder", k.As)
		}
		if p.Len() == found {
			list = append(list, Normalize{k.In, k.Regex, k.As, n.Index(i).Pos()})
		}
	}
	return list
}
