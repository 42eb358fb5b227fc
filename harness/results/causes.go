package results

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
)

// Cause is why lines did not get a verdict, or why a program under test failed them, said once for all of them.
type Cause struct {
	Status eval.Status `json:"status"`
	// Cause is the line's cause, Detail what tells apart within it: the drift class, the error's code or HTTP status, or the check that gave no verdict; "" for none.
	Cause  string `json:"cause"`
	Detail string `json:"detail"`
	Items  int    `json:"items"`
	Lines  int    `json:"lines"`
	// IDs are the first items, at most [CauseIDs].
	IDs []string `json:"ids"`
	// Message is what happened on First, with the end of a program's standard error; Hint what can be done; "" for none. Both are untrusted text.
	Message string `json:"message"`
	Hint    string `json:"hint"`
	// First is the first such line, in the order of the plan: its drift, error and cassette stand for all.
	First eval.Result `json:"-"`
	// Drift is the drift of First that decided, nil for none.
	Drift *eval.Drift `json:"-"`
}

// CauseIDs is how many items a [Cause] names.
const CauseIDs = 10

// causeTexts is how many messages are told apart within one cause and detail. What differs further is counted with the last.
const causeTexts = 10

// causeKey tells causes apart; text is a program's message without its numbers.
type causeKey struct {
	status              eval.Status
	cause, detail, text string
}

// Causes groups lines by why they did not get a verdict. Lines must be added in the order of the plan. The zero value is empty.
type Causes struct {
	groups map[causeKey]*causeGroup
	texts  map[causeKey]int // how many there are, by key without text
}

type causeGroup struct {
	Cause
	last int
}

// Add looks at a line. A line that passed is left out, and one that failed, but for the failures of a program under test: of the others each is its own.
func (c *Causes) Add(r *eval.Result) {
	if r.Status == eval.Pass || r.Status == eval.Fail && r.Error == nil {
		return
	}
	k := causeKey{status: r.Status}
	if r.Cause != nil {
		k.cause = *r.Cause
	}
	first := Cause{First: *r}
	first.Message, first.Hint = Problem(r)
	switch {
	case r.Status == eval.Stale && r.Cassette != nil:
		if first.Drift = decisive(r.Cassette.Drift); first.Drift != nil {
			k.detail = first.Drift.Class
		}
	case r.Status == eval.Unjudged:
		if check := Unjudged(r); check != nil {
			k.detail = check.Name
		}
		c.tellApart(&k, first.Message)
	case r.Error != nil && r.Error.Kind == eval.ErrTarget:
		c.tellApart(&k, first.Message)
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
		first.Status, first.Cause, first.Detail = k.status, k.cause, k.detail
		group = &causeGroup{Cause: first}
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

// tellApart puts a message into the key, as long as there is room for another one.
func (c *Causes) tellApart(k *causeKey, message string) {
	known := *k
	k.text = withoutNumbers(message)
	if _, ok := c.groups[*k]; ok {
		return
	}
	if c.texts[known] == causeTexts {
		k.text = ""
		return
	}
	if c.texts == nil {
		c.texts = map[causeKey]int{}
	}
	c.texts[known]++
}

// withoutNumbers makes a message the same for each process, place and time in it.
func withoutNumbers(text string) string {
	var b strings.Builder
	digits := false
	for _, r := range text {
		digit := r >= '0' && r <= '9'
		if digit && !digits {
			b.WriteByte('0')
		}
		if !digit {
			b.WriteRune(r)
		}
		digits = digit
	}
	return b.String()
}

// Unjudged is the check that kept a line without a verdict, nil where there is none.
func Unjudged(r *eval.Result) *eval.CheckResult {
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Status == eval.CheckUnjudged && c.Weight > 0 {
			return c
		}
	}
	return nil
}

// Problem says what happened to a line that has an error, or a check without a verdict, and what can be done; "" for nothing. Both are untrusted text.
func Problem(r *eval.Result) (message, hint string) {
	if r.Error != nil {
		if r.Error.Hint != nil {
			hint = *r.Error.Hint
		}
		return r.Error.Message, hint
	}
	if check := Unjudged(r); r.Status == eval.Unjudged && check != nil {
		return check.Reason, ""
	}
	return "", ""
}

// List returns the groups: by status as in [eval.Statuses], then most items first.
func (c *Causes) List() []Cause {
	groups := slices.SortedFunc(maps.Values(c.groups), func(a, b *causeGroup) int {
		return cmp.Or(
			cmp.Compare(slices.Index(eval.Statuses, a.Status), slices.Index(eval.Statuses, b.Status)),
			cmp.Compare(b.Items, a.Items),
			cmp.Compare(a.Cause.Cause, b.Cause.Cause),
			cmp.Compare(a.Detail, b.Detail),
			cmp.Compare(a.First.Index, b.First.Index),
			cmp.Compare(a.First.Provider, b.First.Provider),
			cmp.Compare(a.First.Repeat, b.First.Repeat),
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
