package score

import (
	"slices"

	"github.com/echoeval/echoeval/core/strict"
)

// role are the providers of one role, which a check may ask.
type role struct {
	name string
	ids  []string
	// unknown says that there may be others.
	unknown bool
}

func judgesOf(a at) role    { return role{"judge", a.env.Judges, a.env.RolesUnknown} }
func embeddersOf(a at) role { return role{"embed", a.env.Embedders, a.env.RolesUnknown} }

// only adds a problem unless there is exactly one provider of the role. more is what else the hint says where there are several.
func (r role) only(args strict.Node, more string, a at) {
	switch {
	case len(r.ids) == 0 && r.unknown, len(r.ids) == 1:
	case len(r.ids) == 0:
		a.bad(args, "add one to providers: {id: "+r.name+", provider: openai, model: ..., role: "+r.name+"}", "there is no provider of role %s", r.name)
	default:
		a.bad(args, "name one: provider: "+r.ids[0]+more, "there are several providers of role %s", r.name)
	}
}

// has says whether a node names a provider of the role, and adds a problem where it cannot be one.
func (r role) has(n strict.Node, a at) bool {
	switch {
	case slices.Contains(r.ids, n.Text()):
		return true
	case r.unknown:
	case len(r.ids) == 0:
		a.bad(n, "add it to providers: {id: "+n.Text()+", provider: openai, model: ..., role: "+r.name+"}", "there is no provider of role %s", r.name)
	default:
		a.bad(n, strict.Suggest(n.Text(), r.ids), "there is no provider %q of role %s", n.Text(), r.name)
	}
	return false
}
