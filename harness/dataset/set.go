package dataset

import (
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// setPlace is how a place on the command line is called.
const setPlace = "--set "

// setting is one KEY=VALUE of the command line.
type setting struct {
	path  []string
	value strict.Node
}

// settings reads the settings of the options.
func (d *Dataset) settings(p *strict.Problems) []setting {
	var all []setting
	for _, text := range d.options.Set {
		key, value, found := strings.Cut(text, "=")
		path := strings.Split(key, ".")
		at := failure.Position{File: setPlace + key, Line: 1, Column: 1}
		if !found || slices.Contains(path, "") {
			p.Add(failure.Position{}, "--set gates.pass_rate=null, --set defaults.timeout=5s, --set items.timeout=5s (every item)", "--set %s: want KEY=VALUE", text)
			continue
		}
		if onlyComments([]byte(value)) {
			p.Add(at, "write null to take back what is inherited, \"\" for an empty text", "there is no value")
			continue
		}
		n, err := strict.Parse(setPlace+key, []byte(value))
		p.AddError(err)
		if err != nil {
			continue
		}
		switch path[0] {
		case "version", "name", "use":
			p.Add(at, "edit the file", "%s cannot be set", path[0])
			continue
		case "items":
			if len(path) == 1 {
				p.Add(at, "--set items.timeout=5s sets a key of every item", "items cannot be set")
				continue
			}
		}
		all = append(all, setting{path, n})
	}
	return all
}

// apply puts the settings into the tree of the dataset file; those of items become the highest layer of every item.
func (d *Dataset) apply(root strict.Node, p *strict.Problems) strict.Node {
	items := root.NewMapping(nil)
	for _, s := range d.settings(p) {
		if s.path[0] == "items" {
			items = put(items, s.path[1:], s.value, p)
			continue
		}
		root = put(root, s.path, s.value, p)
	}
	d.setItems = items
	return root
}

// put returns a mapping with the value at a path; mappings on the way are made where there are none.
func put(n strict.Node, path []string, value strict.Node, p *strict.Problems) strict.Node {
	if len(path) == 0 {
		return value
	}
	if k := n.Kind(); k != strict.Mapping && k != strict.Missing && k != strict.Null {
		p.Add(value.Pos(), "set the whole of it, or edit the file", "cannot set %q within %s", path[0], k)
		return n
	}
	fields := make([]strict.Field, 0, n.Len()+1)
	done := false
	for key, v := range n.Fields() {
		if key.Name == path[0] {
			v, done = put(v, path[1:], value, p), true
			key = value.NewKey(key.Name)
		}
		fields = append(fields, strict.Field{Key: key, Value: v})
	}
	if !done {
		fields = append(fields, strict.Field{Key: value.NewKey(path[0]), Value: put(strict.Node{}, path[1:], value, p)})
	}
	if n.IsZero() || n.IsNull() {
		n = value
	}
	return n.NewMapping(fields)
}
