package dataset

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/rule"
)

// libraries are the names that files named by use: give to checks, invariants, policies and providers.
type libraries struct {
	files      map[string]bool // read already, by absolute path
	checks     map[string]Check
	invariants map[string]*libraryInvariant
	policies   map[string]strict.Node
	providers  map[string]libraryProvider
	places     map[string]failure.Position // by kind and name
	unread     bool                        // what one defines is not known
}

// mayDefine reports that a name which is not known is one that a library defines wrongly, or may define where it could not be read: that is said already.
func (l *libraries) mayDefine(kind, name string) bool {
	_, defined := l.places[kind+" "+name]
	return defined || l.unread
}

// libraryInvariant is an invariant with other parameters, or a rule.
type libraryInvariant struct{ value Invariant }

type libraryProvider struct {
	id    string
	node  strict.Node
	value Provider
}

// libraryKeys are the keys of a library.
type libraryKeys struct {
	Version    strict.Node `yaml:"version,required" schema:"version" doc:"1"`
	Checks     strict.Node `yaml:"checks" schema:"library_checks" doc:"checks by name"`
	Invariants strict.Node `yaml:"invariants" schema:"library_invariants" doc:"invariants by name"`
	Policies   strict.Node `yaml:"policies" schema:"policies" doc:"policies by name"`
	Providers  strict.Node `yaml:"providers" schema:"library_providers" doc:"providers; their ids are their names"`
}

func newLibraries() libraries {
	return libraries{
		files: map[string]bool{}, checks: map[string]Check{}, invariants: map[string]*libraryInvariant{},
		policies: map[string]strict.Node{}, providers: map[string]libraryProvider{}, places: map[string]failure.Position{},
	}
}

// namesOf are the names of one kind, sorted.
func namesOf[T any](of map[string]T) []string { return slices.Sorted(maps.Keys(of)) }

// OpenLibrary reads a library by itself and reports what is wrong with it.
func OpenLibrary(file string, options Options) error {
	file, err := options.absolute(file)
	if err != nil {
		return err
	}
	var p strict.Problems
	d := newDataset(file, options)
	d.library(file, failure.Position{}, &p)
	return p.Err()
}

// LibraryInvariants reads a library by itself and returns its invariants and rules, sorted by the names that it gives them. Nothing fills the templates of one: it is an error.
func LibraryInvariants(file string, options Options) ([]Invariant, error) {
	file, err := options.absolute(file)
	if err != nil {
		return nil, err
	}
	var p strict.Problems
	d := newDataset(file, options)
	d.library(file, failure.Position{}, &p)
	var list []Invariant
	for _, name := range namesOf(d.libraries.invariants) {
		v := d.libraries.invariants[name].value
		if hasTemplate(v.Params) {
			p.Add(v.Pos, "write it out, or judge with --dataset", "%s has a template, and there is no item whose variables could fill it", name)
		}
		list = append(list, v)
	}
	return list, p.Err()
}

// use reads the libraries that a key use names: paths and globs, relative to the file that names them. Tests of rules (*_test.yaml) beside them are none.
func (d *Dataset) use(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of strings, the paths of libraries")
		return
	}
	for i, entry := range n.Items() {
		at := p.At(i)
		if entry.Kind() != strict.String {
			at.WrongType(entry, "a string")
			continue
		}
		files := d.glob(entry, at)
		d.libraries.unread = d.libraries.unread || len(files) == 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.yaml") && isGlob(entry.Text()) {
				continue
			}
			d.library(file, entry.Pos(), at)
		}
	}
}

func isGlob(text string) bool { return strings.ContainsAny(text, "*?[") }

// glob returns the absolute paths that a text names, sorted; a text without a wildcard names itself.
func (d *Dataset) glob(n strict.Node, p *strict.Problems) []string {
	file, ok := d.resolve(n, p)
	if !ok {
		return nil
	}
	if !isGlob(n.Text()) {
		return []string{file}
	}
	// Only the text is a pattern, not the folder that the project lies in.
	files, err := globIn(d.folderOf(n), filepath.FromSlash(n.Text()))
	switch {
	case err != nil:
		p.Add(n.Pos(), "* and ? stand for characters of one name, [a-z] for one of several", "%q is no pattern", n.Text())
	case len(files) == 0:
		p.Add(n.Pos(), "the pattern is relative to the file that names it", "no file matches %s", n.Text())
	}
	return files
}

// library reads one library. What it defines is known to the dataset afterwards. named is where it is named.
func (d *Dataset) library(file string, named failure.Position, p *strict.Problems) {
	if d.libraries.files[file] {
		return
	}
	d.libraries.files[file] = true
	name := d.show(file)
	data, err := readBounded(os.DirFS(filepath.Dir(file)), filepath.Base(file), strict.MaxDocument)
	if err != nil {
		p.AddError(failure.WithHint(unreadable(named, "library "+name, err), "the path is relative to the file that names it"))
		d.libraries.unread = true
		return
	}
	root, err := strict.Parse(name, data)
	p.AddError(err)
	d.libraries.unread = d.libraries.unread || root.Kind() != strict.Mapping
	if root.IsZero() {
		return
	}
	p = p.Root()
	var keys libraryKeys
	found := p.Len()
	strict.Decode(root, &keys, p)
	d.libraries.unread = d.libraries.unread || p.Len() != found
	versionOne(keys.Version, p)
	each := func(n strict.Node, key string, define func(key strict.Key, v strict.Node, at *strict.Problems)) {
		if n.IsZero() {
			return
		}
		at := p.Key(key)
		if n.Kind() != strict.Mapping {
			at.WrongType(n, "a mapping of names")
			d.libraries.unread = true
			return
		}
		for k, v := range n.Fields() {
			define(k, v, at)
		}
	}
	each(keys.Checks, "checks", d.defineCheck)
	each(keys.Invariants, "invariants", d.defineInvariant)
	each(keys.Policies, "policies", func(key strict.Key, v strict.Node, at *strict.Problems) {
		if policyOf(v, at.Key(key.Name)); d.define("policy", key, nil, at) {
			d.libraries.policies[key.Name] = v
		}
	})
	d.defineProviders(keys.Providers, p.Key("providers"))
}

// versionOne looks at the version of a file.
func versionOne(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Int {
		p.Key("version").WrongType(n, "a whole number")
	} else if n.Text() != "1" {
		p.Key("version").Add(n.Pos(), "write version: 1", "this version of the program reads version 1")
	}
}

// define notes that a name is defined, and adds a problem where it is already, or where it is one of those built in.
func (d *Dataset) define(kind string, key strict.Key, builtIn []string, p *strict.Problems) bool {
	switch first, twice := d.libraries.places[kind+" "+key.Name]; {
	case key.Name == "" || !onlyBytes(key.Name, "._-"):
		p.Add(key.Pos(), "write letters, digits, dot, underscore and hyphen", "%q is no name", key.Name)
	case twice:
		p.Add(key.Pos(), "give one of them another name", "%s %q is defined a second time, first at %s", kind, key.Name, first)
	case slices.Contains(builtIn, key.Name):
		p.Add(key.Pos(), "give it another name", "%s %q is built in, and defined here a second time", kind, key.Name)
	default:
		d.libraries.places[kind+" "+key.Name] = key.Pos()
		return true
	}
	return false
}

func (d *Dataset) defineCheck(key strict.Key, v strict.Node, at *strict.Problems) {
	if !d.define("check", key, append(slices.Clone(d.options.Checks), "not", "use"), at) {
		return
	}
	c := Check{Name: key.Name, Pos: key.Pos()}
	if use := v.Get("use"); !use.IsZero() {
		at.Key(key.Name).Add(v.KeyPos("use"), "write the kind and its arguments", "a check of a library names a kind, not another check")
		return
	}
	if d.check(v, &c, true, at.Key(key.Name)) {
		d.libraries.checks[key.Name] = c
	}
}

func (d *Dataset) defineInvariant(key strict.Key, v strict.Node, at *strict.Problems) {
	if !d.define("invariant", key, d.options.Invariants, at) {
		return
	}
	own := at.Key(key.Name)
	if rule.Is(v) {
		if name := v.Get("name"); !name.IsZero() {
			own.Key("name").Add(v.KeyPos("name"), "leave it out", "a rule of a library has the name that the library gives it")
			return
		}
		if of, ok := d.rule(v, false, own); ok {
			of.value.Name = key.Name
			if of.value.Rule != nil {
				of.value.Rule = of.value.Rule.Named(key.Name)
			}
			d.libraries.invariants[key.Name] = &libraryInvariant{of.value}
		}
		return
	}
	if v.Kind() != strict.Mapping {
		own.WrongType(v, "an invariant: {use: iteration-limit, ...}, or a rule")
		return
	}
	if name := v.Get("use"); name.Kind() == strict.String && d.libraries.invariants[name.Text()] != nil {
		own.Key("use").Add(name.Pos(), "name one that is built in", "an invariant of a library does not name another of one")
		return
	}
	if list := d.invariants(v.NewSequence([]strict.Node{v}), false, own); len(list) == 1 {
		d.libraries.invariants[key.Name] = &libraryInvariant{list[0].value}
	}
}

// use puts what the library says under what the place that uses it says.
func (l *libraryInvariant) use(v *Invariant, n strict.Node, p *strict.Problems) bool {
	if rule.Is(l.value.Params) {
		if !v.Params.IsZero() {
			for key := range v.Params.Fields() {
				p.Add(key.Pos(), "write a rule of its own", "rule %s takes no parameters beside severity", v.Name)
			}
			return false
		}
		v.Params, v.Rule = l.value.Params, l.value.Rule
		return true
	}
	v.Name = l.value.Name
	if v.Severity == "" {
		v.Severity = l.value.Severity
	}
	if v.Params.IsZero() {
		v.Params = l.value.Params
	} else if !l.value.Params.IsZero() {
		v.Params = merge(l.value.Params, v.Params, true)
	}
	return true
}

func (d *Dataset) defineProviders(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of providers")
		d.libraries.unread = true
		return
	}
	for i, entry := range n.Items() {
		at := p.At(i)
		id := entry.Get("id")
		switch {
		case entry.Kind() != strict.Mapping:
			at.WrongType(entry, "a mapping such as {id: haiku, provider: ..., model: ...}")
		case id.IsZero():
			d.provider(entry, at)
			at.Add(entry.Pos(), "add it: id: ..., by which datasets name the provider", "key \"id\" is missing")
		case id.Kind() == strict.String && strings.Contains(id.Text(), ":"):
			at.Key("id").Add(id.Pos(), "a name with a colon is vendor:model", "%q cannot name a provider of a library", id.Text())
		default:
			v, ok := d.provider(entry, at)
			first, twice := d.libraries.places["provider "+v.ID]
			if !twice {
				d.libraries.places["provider "+v.ID] = id.Pos()
			}
			if !ok {
				continue
			}
			if n := v.Agent.Node; n.Kind() == strict.Mapping {
				agent.Decode(n, at.Key("agent"))
			}
			if twice {
				at.Key("id").Add(id.Pos(), "give one of them another id", "provider %q is defined a second time, first at %s", v.ID, first)
				continue
			}
			d.libraries.providers[v.ID] = libraryProvider{v.ID, entry, v}
		}
	}
}

// libraryCheck gives the check that an entry of checks names: polite, or {use: polite, threshold: 0.9}. ok tells that it names one, well or not; a check that is none has no library.
func (d *Dataset) libraryCheck(n strict.Node, p *strict.Problems) (c listed[Check], ok bool) {
	name := n
	if n.Kind() == strict.Mapping {
		if name = n.Get("use"); name.IsZero() {
			return c, false
		}
		if name.Kind() != strict.String {
			p.Key("use").WrongType(name, "a string")
			return c, true
		}
	} else if _, known := d.libraries.checks[n.Text()]; n.Kind() != strict.String || !known {
		return c, false
	}
	found := p.Len()
	of, known := d.libraries.checks[name.Text()]
	if !known && !d.libraries.mayDefine("check", name.Text()) {
		p.Key("use").Add(name.Pos(), strict.Suggest(name.Text(), namesOf(d.libraries.checks)), "no library defines a check %q", name.Text())
	}
	for key, v := range n.Fields() {
		switch {
		case key.Name == "use":
		case slices.Contains(modifiers, key.Name):
			of.modify(key.Name, v, p.Key(key.Name))
		default:
			p.Unknown(key, append([]string{"use"}, modifiers...))
		}
	}
	if known && p.Len() == found {
		c = listed[Check]{of, hasTemplate(of.Args), name.Text()}
	}
	return c, true
}
