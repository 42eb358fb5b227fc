package dataset

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/strict"
)

// scope is what {{name}} stands for in the texts of one item.
type scope struct {
	item                     string // the item's id, for messages
	vars, expected, metadata strict.Node
	unsure                   bool // one of them is wrong, so that a name may well be right
}

// hasTemplate reports whether a tree holds a text that render would change.
func hasTemplate(n strict.Node) bool {
	switch n.Kind() {
	case strict.String:
		return strings.Contains(n.Text(), "{{")
	case strict.Sequence, strict.Mapping:
		for i := range n.Len() {
			if hasTemplate(n.Index(i)) {
				return true
			}
		}
	}
	return false
}

// lookup finds a name: a variable, "expected", a metadata value; else a path with dots that begins with vars, expected or metadata, or with one of their names.
func (s scope) lookup(name string) strict.Node {
	direct := func(name string) strict.Node {
		if v := s.vars.Get(name); !v.IsZero() {
			return v
		}
		if name == "expected" {
			return s.expected
		}
		return s.metadata.Get(name)
	}
	if v := direct(name); !v.IsZero() {
		return v
	}
	steps := strings.Split(name, ".")
	v := direct(steps[0])
	if v.IsZero() {
		switch steps[0] {
		case "vars":
			v = s.vars
		case "metadata":
			v = s.metadata
		}
	}
	for _, step := range steps[1:] {
		v = v.Get(step)
	}
	return v
}

func (s scope) names() []string {
	var names []string
	if !s.expected.IsZero() {
		names = append(names, "expected")
	}
	for _, m := range []strict.Node{s.vars, s.metadata} {
		for key := range m.Fields() {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// render replaces each {{name}} in the strings of a tree, once: what is put in is not looked at again. A text that is nothing but one {{name}} becomes the value itself, of whatever type. \{{ is the text {{.
func (s scope) render(n strict.Node, p *strict.Problems) strict.Node {
	if !hasTemplate(n) {
		return n
	}
	return n.MapStrings(func(n strict.Node) strict.Node { return s.text(n, p) })
}

func (s scope) text(n strict.Node, p *strict.Problems) strict.Node {
	text := n.Text()
	if !strings.Contains(text, "{{") {
		return n
	}
	var out strings.Builder
	seen := map[string]int{} // to tell where in the file the same text stands a second time
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{{")
		if !found {
			out.WriteString(rest)
			return n.WithText(out.String())
		}
		if literal, ok := strings.CutSuffix(before, `\`); ok {
			out.WriteString(literal + "{{")
			rest = after
			continue
		}
		inner, next, closed := strings.Cut(after, "}}")
		if !closed {
			p.Add(n.Locate("{{", strings.Count(text[:len(text)-len(after)-2], "{{")), `write \{{ where the text {{ is meant`, "{{ without }}")
			return n.WithText(out.String())
		}
		written := "{{" + inner + "}}"
		nth := seen[written]
		seen[written]++
		name := strings.TrimSpace(inner)
		value := s.lookup(name)
		if value.IsZero() {
			s.unknown(n, written, nth, name, p)
			rest = next
			continue
		}
		if before == "" && next == "" && rest == text {
			return value.At(n)
		}
		out.WriteString(before)
		if value.Kind() == strict.Sequence || value.Kind() == strict.Mapping {
			out.WriteString(value.JSON())
		} else {
			out.WriteString(value.Text())
		}
		rest = next
	}
}

func (s scope) unknown(n strict.Node, written string, nth int, name string, p *strict.Problems) {
	if s.unsure {
		return
	}
	if len(name) > maxFile {
		name = name[:maxFile]
	}
	pos := n.Locate(written, nth)
	if pos != n.Pos() {
		pos.Column += utf8.RuneCountInString(written[:strings.Index(written, name)]) // the name itself
	}
	names := s.names()
	hint := "item " + strconv.Quote(s.item) + " has "
	if len(names) == 0 {
		hint += "none; give it one: vars: {" + name + ": ...}"
	} else if near, ok := strict.Nearest(name, names); ok {
		hint = "did you mean {{" + near + "}}?"
	} else {
		hint += strings.Join(names, ", ")
	}
	p.Add(pos, hint+`; \{{ is the text {{`, "{{%s}} is in neither vars, expected nor metadata", name)
}
