package dataset

import (
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// columnMap tells which column each key of an item comes from, and where that is said. It may be nil.
type columnMap map[string]mapped

// mapped is a path of keys of an item, and the place of the column's name.
type mapped struct {
	path []string
	at   strict.Node
}

// columns reads map: keys of items, with dots for what lies within vars, metadata and tool_context, to names of columns.
func columns(n strict.Node, p *strict.Problems) columnMap {
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping of keys of items to columns: {input: question}")
		return nil
	}
	m := make(columnMap, n.Len())
	for key, v := range n.Fields() {
		path := strings.Split(key.Name, ".")
		at := p.Key(key.Name)
		within := slices.Contains([]string{"vars", "metadata", "tool_context"}, path[0])
		switch {
		case !isItemKey(path[0]):
			p.Unknown(key, itemKeyNames)
		case len(path) > 1 && !within || len(path) > 2 || path[len(path)-1] == "":
			p.Add(key.Pos(), "write vars.NAME, metadata.NAME or tool_context.NAME", "%q is no key of an item", key.Name)
		case v.Kind() != strict.String:
			at.WrongType(v, "a string with the name of a column")
		case m[v.Text()].path != nil:
			at.Add(v.Pos(), "a template can take it from there: {{"+strings.Join(m[v.Text()].path, ".")+"}}", "column %q is used a second time", v.Text())
		default:
			m[v.Text()] = mapped{path, v}
		}
	}
	return m
}

// missing reports the columns that are named and are not in a file, by its first row.
func (m columnMap) missing(row strict.Node) error {
	var p strict.Problems
	var names []string
	for key := range row.Fields() {
		names = append(names, key.Name)
	}
	for column, to := range m {
		if row.Get(column).IsZero() {
			p.Add(to.at.Pos(), strict.Suggest(column, names), "%s has no column %q", row.Pos().File, column)
		}
	}
	return p.Err()
}

// item makes an item of a row: a column is the key that the map says, or else the key of its name; of a CSV file any other column is a variable.
func (m columnMap) item(row strict.Node, csv bool, p *strict.Problems) strict.Node {
	if row.Kind() != strict.Mapping {
		return row // said by who reads it
	}
	fields := make([]strict.Field, 0, row.Len())
	within := map[string][]strict.Field{}
	for key, v := range row.Fields() {
		path := []string{key.Name}
		if to, ok := m[key.Name]; ok {
			path = to.path
		} else if csv && !isItemKey(key.Name) {
			path = []string{"vars", key.Name}
		}
		if len(path) > 1 {
			key.Name = path[1]
			within[path[0]] = append(within[path[0]], strict.Field{Key: key, Value: v})
			continue
		}
		key.Name = path[0]
		if csv {
			var ok bool
			if v, ok = cell(key, v, p); !ok {
				continue
			}
		}
		if slices.ContainsFunc(fields, func(f strict.Field) bool { return f.Key.Name == key.Name }) {
			p.Add(key.Pos(), "map one of the columns to another key", "two columns are the key %q", key.Name)
			continue
		}
		fields = append(fields, strict.Field{Key: key, Value: v})
	}
	for _, name := range []string{"vars", "metadata", "tool_context"} {
		if len(within[name]) == 0 {
			continue
		}
		inner := within[name][0].Value.NewMapping(within[name])
		if i := slices.IndexFunc(fields, func(f strict.Field) bool { return f.Key.Name == name }); i >= 0 {
			fields[i].Value = merge(fields[i].Value, inner, false)
			continue
		}
		fields = append(fields, strict.Field{Key: within[name][0].Value.NewKey(name), Value: inner})
	}
	return row.NewMapping(fields)
}

// cell gives a cell as the value of a key of an item. An empty one is none. Texts are themselves, numbers are read, words are separated by commas or spaces, and everything else is written as JSON.
func cell(key strict.Key, v strict.Node, p *strict.Problems) (strict.Node, bool) {
	if v.Text() == "" {
		return v, false
	}
	switch slices.Index(itemKeyNames, key.Name) {
	case keyID, keyInput, keyExpected, keyGroup, keySkip, keyWorkspace, keyTimeout, keyPassIf:
		return v, true
	case keyRepeat, keyThreshold:
		number, ok := v.Number()
		if !ok {
			p.Key(key.Name).Add(v.Pos(), "", "%q is no number", v.Text())
		}
		return number, ok
	case keyTags, keyProviders, keyDrop:
		var words []strict.Node
		for _, word := range strings.FieldsFunc(v.Text(), func(r rune) bool { return r == ',' || r == ' ' }) {
			words = append(words, v.WithText(word))
		}
		return v.NewSequence(words), true
	}
	n, err := strict.ParseJSON(v.Pos().File, v.Pos().Line, []byte(v.Text()))
	if err != nil {
		p.Key(key.Name).Add(v.Pos(), "write the value as JSON", "the cell is no JSON: %s", failure.Message(err))
		return v, false
	}
	return n.At(v), true
}
