package results

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/eval"
)

// Cause is why lines did not get a verdict, said once for all of them.
type Cause struct {
	Status eval.Status
	// Cause is the line's cause, Detail what tells apart within it: the drift class, or the error's code or HTTP status; "" for none.
	Cause, Detail string
	Items, Lines  int
	// IDs are the first items, at most [CauseIDs].
	IDs []string
	// First is the first such line, in the order of the plan: its drift, error and cassette stand for all.
	First eval.Result
	// Drift is the drift of First that decided, nil for none.
	Drift *eval.Drift
}

// CauseIDs is how many items a [Cause] names.
const CauseIDs = 10

type causeKey struct {
	status        eval.Status
	cause, detail string
}

// Causes groups lines by why they did not get a verdict. Lines must be added in the order of the plan. The zero value is empty.
type Causes struct {
	groups map[causeKey]*causeGroup
}

type causeGroup struct {
	Cause
	last int
}

// Add looks at a line. A line that passed or failed is left out: each failure is its own.
func (c *Causes) Add(r *eval.Result) {
	if r.Status == eval.Pass || r.Status == eval.Fail {
		return
	}
	k := causeKey{status: r.Status}
	if r.Cause != nil {
		k.cause = *r.Cause
	}
	var drift *eval.Drift
	switch {
	case r.Status == eval.Stale && r.Cassette != nil:
		if drift = decisive(r.Cassette.Drift); drift != nil {
			k.detail = drift.Class
		}
	case r.Error != nil && r.Error.Code != nil:
		k.detail = *r.Error.Code
	case r.Error != nil && r.Error.HTTPStatus != nil:
		k.detail = "HTTP " + strconv.Itoa(*r.Error.HTTPStatus)
	}
	group, ok := c.groups[k]
	if !ok {
		if c.groups == nil {
			c.groups = map[causeKey]*causeGroup{}
		}
		group = &causeGroup{Cause: Cause{Status: k.status, Cause: k.cause, Detail: k.detail, First: *r, Drift: drift}}
		c.groups[k] = group
	}
	group.Lines++
	if group.last != r.Index {
		group.last = r.Index
		group.Items++
		if len(group.IDs) < CauseIDs {
			group.IDs = append(group.IDs, r.Item)
		}
	}
}

// List returns the groups: by status as in [eval.Statuses], then most items first.
func (c *Causes) List() []Cause {
	groups := slices.SortedFunc(maps.Values(c.groups), func(a, b *causeGroup) int {
		return cmp.Or(
			cmp.Compare(slices.Index(eval.Statuses, a.Status), slices.Index(eval.Statuses, b.Status)),
			cmp.Compare(b.Items, a.Items),
			cmp.Compare(a.Cause.Cause, b.Cause.Cause),
			cmp.Compare(a.Detail, b.Detail),
		)
	})
	out := make([]Cause, len(groups))
	for i, g := range groups {
		out[i] = g.Cause
	}
	return out
}

// Served reports whether an answer was given although the request differed from the recorded one.
func Served(d eval.Drift) bool { return d.Action == "serve" || d.Action == "warn" }

// decisive returns the first drift that was not served across.
func decisive(drifts []eval.Drift) *eval.Drift {
	for i := range drifts {
		if !Served(drifts[i]) {
			return &drifts[i]
		}
	}
	return nil
}
