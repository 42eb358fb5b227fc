package experiment

import (
	"cmp"
	"maps"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/rule"
)

// rules is what a plan knows of the rules of its items. Most items have those of the defaults, so that only the others are kept.
type rules struct {
	first map[string]*firstRule // by name, of all items
	asked map[string]eval.Severity
	// common are the names that the first selected item asks and what it drops; special are those of the items that differ from it.
	common  *asking
	special map[int]asking
}

// firstRule is the rule that had a name first.
type firstRule struct {
	at   failure.Position
	last *rule.Rule // the last one of that name whose tools were looked at
}

// asking is what an item asks beside the standard invariants, and what it drops.
type asking struct{ rules, drop []string }

// check looks at the rules of an item: the tools that they name must exist, and a name stands for one rule.
func (r *rules) check(item *dataset.Item, e *Experiment, p *strict.Problems) {
	for i := range item.Invariants {
		v := &item.Invariants[i]
		if v.Rule == nil {
			continue
		}
		if r.first == nil {
			r.first = map[string]*firstRule{}
		}
		known := r.first[v.Name]
		if known == nil {
			known = &firstRule{at: v.Rule.Pos}
			r.first[v.Name] = known
		}
		if known.at != v.Rule.Pos && known.last != nil && !known.last.Node.Equal(v.Rule.Node) {
			p.Add(v.Rule.Pos, "give one of them another name", "rule %q is defined a second time, first at %s", v.Name, known.at)
		}
		if known.last == v.Rule {
			continue
		}
		known.last = v.Rule
		if !e.programRuns(item) { // whose tools nobody knows before
			v.Rule.CheckTools(e.everyName, p)
		}
	}
}

// see notes what a selected item asks.
func (r *rules) see(item *dataset.Item) {
	now := asking{drop: item.Drop}
	for i := range item.Invariants {
		v := &item.Invariants[i]
		if v.Rule == nil || slices.Contains(item.Drop, v.Name) {
			continue
		}
		now.rules = append(now.rules, v.Name)
		if r.asked == nil {
			r.asked = map[string]eval.Severity{}
		}
		if _, ok := r.asked[v.Name]; !ok {
			r.asked[v.Name] = cmp.Or(eval.Severity(v.Severity), v.Rule.Severity)
		}
	}
	switch {
	case r.common == nil:
		r.common = &now
	case slices.Equal(now.rules, r.common.rules) && slices.Equal(now.drop, r.common.drop):
	default:
		if r.special == nil {
			r.special = map[int]asking{}
		}
		r.special[item.Index] = now
	}
}

// infos are the rules that the selected items ask, sorted by name.
func (r *rules) infos() []results.InvariantInfo {
	var infos []results.InvariantInfo
	for _, name := range slices.Sorted(maps.Keys(r.asked)) {
		infos = append(infos, results.InvariantInfo{Name: name, Severity: r.asked[name], Rule: true})
	}
	return infos
}

// notAsked are the invariants that an item drops, and the rules that it does not have.
func (r *rules) notAsked(index int) []string {
	now, ok := r.special[index]
	if !ok && r.common != nil {
		now = *r.common
	}
	names := slices.Clone(now.drop)
	for name := range r.asked {
		if !slices.Contains(now.rules, name) {
			names = append(names, name)
		}
	}
	return names
}
