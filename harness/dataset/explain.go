package dataset

import (
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Explained is one value of an item as it will run, and where it comes from.
type Explained struct {
	// Key is the key of the value; "" for an entry of a list.
	Key string
	// Value is the value, rendered. It is the zero node where the value is made of Inside.
	Value strict.Node
	// Layer is the layer that the value comes from: "built in", "project", "defaults", "item", "overrides" or "--set"; a check or an invariant of a library has ", library" behind the layer that uses it.
	Layer string
	// Pos is the place of the value. It is zero for what is built in.
	Pos failure.Position
	// Inside are the fields of a mapping or the entries of a list that come from several places.
	Inside []Explained
}

const builtIn = "built in"

// Explain returns the values of one item, by the id, in the order of [Schema]'s keys, with their places. What is wrong with the item is its error.
func (d *Dataset) Explain(id string) ([]Explained, error) {
	var ids []string
	index := 0
	for e := range d.entries() {
		index++
		own := e.node.Get("id").Text()
		if own != id {
			if len(ids) < 10_000 {
				ids = append(ids, own)
			}
			continue
		}
		var p strict.Problems
		m := &media{}
		d.read(e, index, m, &p)
		if err := p.Err(); err != nil {
			return nil, err
		}
		return append(m.build.explain(), d.explainTarget()...), nil
	}
	err := failure.New(failure.Input, "%s has no item %q", d.File, id)
	if near, ok := strict.Nearest(id, ids); ok {
		return nil, failure.WithHint(err, "did you mean %q?", near)
	}
	return nil, failure.WithHint(err, "echoeval cassette ls %s lists the items", d.File)
}

func (b *build) explain() []Explained {
	var all []Explained
	for key := range keyCount {
		own := Explained{Key: itemKeyNames[key]}
		switch {
		case key == keyChecks:
			for i, c := range b.media.checks {
				own.Inside = append(own.Inside, Explained{Value: b.item.Checks[i].node(), Layer: layerName(c.layer, c.library), Pos: c.value.Pos})
			}
		case key == keyInvariants:
			for i, v := range b.media.invariants {
				own.Inside = append(own.Inside, Explained{Value: b.item.Invariants[i].node(v.library), Layer: layerName(v.layer, v.library), Pos: v.value.Pos})
			}
		case key == keyTags:
			own.Inside = b.explainTags()
		case itemKeys[key].layering == merges || itemKeys[key].layering == gathers:
			n, top := b.value(key)
			if top == nil {
				continue
			}
			own.Inside = b.explainFields(key, n, nil)
		default:
			n, top := b.value(key)
			switch {
			case top != nil:
				own.Value, own.Layer, own.Pos = n, top.name, n.Pos()
			case key == keyTimeout:
				own.Value, own.Layer = strict.NewString("60s"), builtIn
			case key == keyRepeat:
				own.Value, _ = strict.NewString("1").Number()
				own.Layer = builtIn
			}
		}
		if !own.Value.IsZero() || len(own.Inside) > 0 {
			all = append(all, own)
		}
	}
	return all
}

// explainTarget shows the program that the item is asked of, where the dataset has one.
func (d *Dataset) explainTarget() []Explained {
	if d.Target == nil {
		return nil
	}
	own := Explained{Key: "target"}
	for key, value := range d.Target.Node.Fields() {
		own.Inside = append(own.Inside, Explained{Key: key.Name, Value: value, Layer: "dataset", Pos: value.Pos()})
	}
	return []Explained{own}
}

func layerName(l *layer, library string) string {
	if library != "" {
		return l.name + ", library"
	}
	return l.name
}

func (b *build) explainTags() []Explained {
	var all []Explained
	for _, l := range b.stack {
		if l.isReset(keyTags) {
			all = nil
		}
		for _, tag := range l.nodes[keyTags].Items() {
			if !slices.ContainsFunc(all, func(e Explained) bool { return e.Value.Text() == tag.Text() }) {
				all = append(all, Explained{Value: tag, Layer: l.name, Pos: tag.Pos()})
			}
		}
	}
	slices.SortFunc(all, func(a, b Explained) int { return strings.Compare(a.Value.Text(), b.Value.Text()) })
	return all
}

// explainFields explains the fields of a merged mapping at a path within a key.
func (b *build) explainFields(key int, n strict.Node, path []string) []Explained {
	var all []Explained
	for k, v := range n.Fields() {
		own := Explained{Key: k.Name}
		at := append(slices.Clone(path), k.Name)
		if v.Kind() == strict.Mapping && v.Len() > 0 && itemKeys[key].layering == merges {
			own.Inside = b.explainFields(key, v, at)
		} else {
			own.Value, own.Layer, own.Pos = v, b.layerOf(key, at), v.Pos()
		}
		all = append(all, own)
	}
	return all
}

// layerOf is the name of the highest layer that has a path within a key.
func (b *build) layerOf(key int, path []string) string {
	for _, l := range slices.Backward(b.stack) {
		n := l.nodes[key]
		for _, step := range path {
			n = n.Get(step)
		}
		if !n.IsZero() {
			return l.name
		}
	}
	return builtIn
}

// node gives a check as it is written.
func (c *Check) node() strict.Node {
	at := c.Args
	field := func(name string, v strict.Node) strict.Field { return strict.Field{Key: at.NewKey(name), Value: v} }
	var fields []strict.Field
	switch {
	case c.Not && c.Args.IsZero():
		fields = append(fields, field("not", strict.NewString(c.Kind)))
	case c.Not:
		fields = append(fields, field("not", at.NewMapping([]strict.Field{field(c.Kind, c.Args)})))
	case c.Args.IsZero() && c.Name == c.Kind && c.Weight == nil && c.Threshold == nil && !c.Required:
		return strict.NewString(c.Kind)
	default:
		fields = append(fields, field(c.Kind, c.Args))
	}
	fields = append(fields, field("name", strict.NewString(c.Name)))
	for _, one := range []struct {
		key   string
		value *float64
	}{{"weight", c.Weight}, {"threshold", c.Threshold}} {
		if one.value != nil {
			fields = append(fields, field(one.key, strict.NewFloat(*one.value)))
		}
	}
	if c.Required {
		fields = append(fields, field("required", strict.NewBool(true)))
	}
	return at.NewMapping(fields)
}

// node gives an invariant as it is written; library is the name by which one of a library is used.
func (v *Invariant) node(library string) strict.Node {
	if v.Rule != nil && library == "" {
		return v.Params
	}
	name, params := strict.NewString(v.Name), v.Params
	if v.Rule != nil {
		params = strict.Node{}
	}
	if v.Severity == "" && params.IsZero() {
		return name
	}
	fields := []strict.Field{{Key: name.NewKey("use"), Value: name}}
	if v.Severity != "" {
		fields = append(fields, strict.Field{Key: name.NewKey("severity"), Value: strict.NewString(v.Severity)})
	}
	for key, value := range params.Fields() {
		fields = append(fields, strict.Field{Key: key, Value: value})
	}
	return name.NewMapping(fields)
}

// AppendYAML appends an explained item as YAML, each value on a line with its place and its layer in a comment. It is read as the item itself is.
func AppendYAML(dst []byte, all []Explained) []byte { return appendYAML(dst, all, "") }

func appendYAML(dst []byte, all []Explained, indent string) []byte {
	for i := range all {
		e := &all[i]
		dst = append(dst, indent...)
		if e.Key == "" {
			dst = append(dst, "- "...)
		} else {
			if plainKey(e.Key) {
				dst = append(dst, e.Key...)
			} else {
				dst = strict.NewString(e.Key).AppendJSON(dst)
			}
			dst = append(dst, ':')
			if len(e.Inside) == 0 {
				dst = append(dst, ' ')
			}
		}
		if len(e.Inside) > 0 {
			dst = appendYAML(append(dst, '\n'), e.Inside, indent+"  ")
			continue
		}
		dst = append(e.Value.AppendJSON(dst), "  # "...)
		if !e.Pos.IsZero() {
			dst = append(append(dst, e.Pos.String()...), ' ')
		}
		dst = append(append(dst, e.Layer...), '\n')
	}
	return dst
}

// plainKey reports whether YAML takes a key for itself without quotes.
func plainKey(key string) bool {
	switch strings.ToLower(key) {
	case "", "null", "true", "false":
		return false
	}
	return onlyBytes(key, "_") && (key[0] < '0' || key[0] > '9')
}

// AppendJSON appends an explained item as a JSON array of {"key", "value", "layer", "at"}, a value each; keys within others are joined by dots, entries of lists are numbered from 0.
func AppendJSON(dst []byte, all []Explained) []byte {
	dst = appendFlat(append(dst, '['), all, "")
	if n := len(dst) - 1; dst[n] == ',' {
		dst = dst[:n]
	}
	return append(dst, ']')
}

func appendFlat(dst []byte, all []Explained, prefix string) []byte {
	for i := range all {
		e := &all[i]
		key := prefix
		switch {
		case e.Key == "":
			key += "[" + strconv.Itoa(i) + "]"
		case prefix == "":
			key = e.Key
		default:
			key += "." + e.Key
		}
		if len(e.Inside) > 0 {
			dst = appendFlat(dst, e.Inside, key)
			continue
		}
		dst = strict.NewString(key).AppendJSON(append(dst, `{"key":`...))
		dst = e.Value.AppendJSON(append(dst, `,"value":`...))
		dst = strict.NewString(e.Layer).AppendJSON(append(dst, `,"layer":`...))
		dst = append(dst, `,"at":`...)
		if e.Pos.IsZero() {
			dst = append(dst, "null"...)
		} else {
			dst = strict.NewString(e.Pos.String()).AppendJSON(dst)
		}
		dst = append(dst, "},"...)
	}
	return dst
}
