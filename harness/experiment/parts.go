package experiment

import (
	"errors"
	"maps"
	"slices"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
)

// parts finds out whether the dataset has what limited gates look at: a gate that can never be evaluated is an error.
type parts struct {
	limits []gate.Limit
	found  map[results.Where]bool
	// tags and checks are the names that there are, a few of them: for hints.
	tags, checks map[string]bool
}

// mostNames is how many names are kept for hints.
const mostNames = 1_000

func (p *parts) see(item *dataset.Item) {
	if len(p.limits) == 0 {
		return
	}
	if p.found == nil {
		p.found, p.tags, p.checks = map[results.Where]bool{}, map[string]bool{}, map[string]bool{}
	}
	checks := slices.Clone(item.Checks)
	for _, turn := range item.Turns {
		checks = append(checks, turn.Checks...)
	}
	keep := func(names map[string]bool, name string) {
		if len(names) < mostNames {
			names[name] = true
		}
	}
	for _, tag := range item.Tags {
		keep(p.tags, tag)
	}
	for _, c := range checks {
		keep(p.checks, c.Name)
	}
	for _, l := range p.limits {
		tagged := l.Tag == "" || slices.Contains(item.Tags, l.Tag)
		checked := l.Check == "" || slices.ContainsFunc(checks, func(c dataset.Check) bool { return c.Name == l.Check })
		if tagged && checked {
			p.found[l.Where] = true
		}
	}
}

func (p *parts) err() error {
	var errs []error
	for _, l := range p.limits {
		if p.found[l.Where] {
			continue
		}
		err := failure.At(l.Pos, failure.Input, "a gate looks at %s, and no item has it", l.Where)
		hint := "the two are not together in one item"
		switch {
		case l.Check != "" && !p.checks[l.Check]:
			hint = strict.Suggest(l.Check, slices.Sorted(maps.Keys(p.checks)))
		case l.Tag != "" && !p.tags[l.Tag]:
			hint = strict.Suggest(l.Tag, slices.Sorted(maps.Keys(p.tags)))
		}
		errs = append(errs, failure.WithHint(err, "%s", hint))
	}
	return errors.Join(errs...)
}

func wheres(limits []gate.Limit) []results.Where {
	out := make([]results.Where, len(limits))
	for i, l := range limits {
		out[i] = l.Where
	}
	return out
}
