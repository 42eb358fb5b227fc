package dataset

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/filter"
)

// Warning is something that a report says although the dataset is right.
type Warning struct {
	// Code names the kind of warning.
	Code string
	Text string
	At   failure.Position
	// Hint says what to do; it may be empty.
	Hint string
}

// CodeOverrideUnmet is the code of the warning that no item of the whole dataset meets the match of an override.
const CodeOverrideUnmet = "override-unmet"

// override is a layer for the items that an expression meets.
type override struct {
	layer layer
	match *filter.Program
	at    failure.Position
	met   bool
	why   string // why the expression could not be evaluated for an item
}

func (d *Dataset) decodeOverrides(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of {match: EXPRESSION, ...}")
		return
	}
	for i, entry := range n.Items() {
		at := p.At(i)
		if entry.Kind() != strict.Mapping {
			at.WrongType(entry, "a mapping {match: EXPRESSION, ...}")
			continue
		}
		o := override{layer: layer{name: "overrides", path: func(root *strict.Problems) *strict.Problems { return root.Key("overrides").At(i) }}}
		d.decodeLayer(&o.layer, entry, "match", at)
		checkNames(o.layer.checks, at)
		match := entry.Get("match")
		switch {
		case match.IsZero():
			at.Add(entry.Pos(), "add it: match: \"id == 'i-17'\"", "key \"match\" is missing")
		case match.Kind() != strict.String:
			at.Key("match").WrongType(match, "a string with an expression such as \"id == 'i-17'\"")
		default:
			o.at = match.Pos()
			o.match = expression(match, at.Key("match"))
		}
		if entry.Len() < 2 {
			at.Add(entry.Pos(), "add what is other: skip: ...", "the override changes nothing")
		}
		if o.match != nil {
			d.overrides = append(d.overrides, o)
		}
	}
}

// expression compiles an expression, and places what is wrong with it within its text.
func expression(n strict.Node, p *strict.Problems) *filter.Program {
	program, err := filter.Compile(n.Text())
	var wrong *filter.Error
	if errors.As(err, &wrong) {
		pos := n.Pos()
		if at := n.Locate(n.Text(), 0); at.Line == pos.Line && !strings.Contains(n.Text(), "\n") {
			pos = at
			pos.Column += utf8.RuneCountInString(n.Text()[:wrong.Offset])
		}
		p.Add(pos, wrong.Hint, "%s", wrong.Message)
		return nil
	}
	return program
}

// warn sets the warnings once all items are seen.
func (d *Dataset) warn() {
	d.Warnings = nil
	for i := range d.overrides {
		o := &d.overrides[i]
		if o.met {
			continue
		}
		hint := "mend the expression or remove the override"
		if o.why != "" {
			hint += fmt.Sprintf("; it cannot be evaluated for every item: %s", o.why)
		}
		d.Warnings = append(d.Warnings, Warning{Code: CodeOverrideUnmet, Text: fmt.Sprintf("no item meets %q: the override changes nothing", o.match), At: o.at, Hint: hint})
	}
}
