package dataset

import (
	"errors"
	"fmt"
	"slices"
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

// CodeNoCheck is the code of the warning about items that pass whatever the agent does, short of breaking an invariant.
const CodeNoCheck = "no-check"

// canFail says whether a check of the item can make it fail. One of weight 0 only reports, and nothing misses a threshold of 0.
func (i *Item) canFail() bool {
	checks := i.Checks
	for _, turn := range i.Turns {
		checks = append(checks[:len(checks):len(checks)], turn.Checks...)
	}
	return slices.ContainsFunc(checks, func(c Check) bool {
		counts := c.Weight == nil || *c.Weight > 0
		switch {
		case c.Threshold != nil && *c.Threshold == 0 && i.Threshold == nil:
			return false
		case c.Required:
			return true
		case i.Threshold != nil:
			return counts && *i.Threshold > 0
		}
		return counts
	})
}

// vacuous gathers items that cannot fail, for one warning.
type vacuous struct {
	count int
	ids   []string // the first
	at    failure.Position
}

func (v *vacuous) see(it *Item) {
	if it.Skip != "" || it.canFail() {
		return
	}
	const most = 5
	if v.count++; v.count == 1 {
		v.at = it.Pos
	}
	if len(v.ids) < most {
		v.ids = append(v.ids, it.ID)
	}
}

func (v *vacuous) warning() Warning {
	text := "no check of " + strings.Join(v.ids, ", ")
	if more := v.count - len(v.ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return Warning{Code: CodeNoCheck, Text: text + " can fail: only an invariant could", At: v.at, Hint: "checks: [{contains: ...}]"}
}

// warn sets the warnings once all items are seen.
func (d *Dataset) warn(v *vacuous) {
	d.Warnings = nil
	if v.count > 0 {
		d.Warnings = append(d.Warnings, v.warning())
	}
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
