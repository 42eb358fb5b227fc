package dataset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
)

var mockCaseKeys = strict.Keys(caseKeys{})

// mocks decodes tool_mocks, a mapping.
func mocks(n strict.Node, p *strict.Problems) map[string]Mock {
	all := make(map[string]Mock, n.Len())
	for key, v := range n.Fields() {
		if key.Name == "" {
			p.Add(key.Pos(), "name the tool", "the name of a tool is empty")
		}
		all[key.Name] = mock(v, p.Key(key.Name))
	}
	return all
}

// mock decodes the answers of one tool: a list of cases, or a result. A result that is a list stands under result.
func mock(n strict.Node, p *strict.Problems) Mock {
	m := Mock{Pos: n.Pos()}
	switch {
	case n.Kind() == strict.Sequence:
		if n.Len() == 0 {
			p.Add(n.Pos(), "a result that is a list stands under result: {result: []}", "the list of cases is empty")
		}
		for i, entry := range n.Items() {
			m.Cases = append(m.Cases, mockCase(entry, p.At(i)))
		}
	case isWrapped(n):
		m.Cases = []MockCase{mockCase(n, p)}
	default:
		m.Cases = []MockCase{{Result: n, Pos: n.Pos()}}
	}
	return m
}

// isWrapped reports whether a mapping is a case rather than a result: it has result, and nothing that a case has not.
func isWrapped(n strict.Node) bool {
	if n.Get("result").IsZero() {
		return false
	}
	for key := range n.Fields() {
		if !slices.Contains(mockCaseKeys, key.Name) {
			return false
		}
	}
	return true
}

func mockCase(n strict.Node, p *strict.Problems) MockCase {
	c := MockCase{Pos: n.Pos()}
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a case such as {args: {...}, result: ...} or {error: ...}")
		return c
	}
	var keys caseKeys
	strict.Decode(n, &keys, p)
	if !keys.Args.IsZero() {
		c.Args = mapping(keys.Args, p.Key("args"))
	}
	c.Result, c.Error = keys.Result, value(keys.Error)
	switch {
	case keys.Error != nil && c.Error == "":
		p.Key("error").Add(n.Get("error").Pos(), "write what the tool says", "the error is empty")
	case n.Get("error").IsZero() == c.Result.IsZero():
		p.Add(n.Pos(), "write one of result and error", "a case has either a result or an error")
	}
	if keys.Times != nil {
		c.Times = *keys.Times
		if c.Times < 1 {
			p.Key("times").Add(n.Get("times").Pos(), "leave it out for a case that serves without end", "want a whole number from 1")
		}
	}
	return c
}

func approvals(n strict.Node, p *strict.Problems) []Approval {
	var keys []approvalKeys
	strict.Decode(n, &keys, p)
	list := make([]Approval, 0, len(keys))
	for i, k := range keys {
		a := Approval{Tool: k.Tool, Allow: k.Answer == "allow", Scope: "once", Pos: n.Index(i).Get("tool").Pos()}
		if k.Scope != nil {
			a.Scope = *k.Scope
		}
		if tool := n.Index(i).Get("tool"); k.Tool == "" && tool.Kind() == strict.String {
			p.At(i).Key("tool").Add(tool.Pos(), "name the tool", "the name of a tool is empty")
		}
		list = append(list, a)
	}
	return list
}

// answers decodes answers, a mapping: a list is several, in order.
func answers(n strict.Node, p *strict.Problems) map[string][]strict.Node {
	all := make(map[string][]strict.Node, n.Len())
	for key, v := range n.Fields() {
		if v.Kind() != strict.Sequence {
			all[key.Name] = []strict.Node{v}
			continue
		}
		if v.Len() == 0 {
			p.Key(key.Name).Add(v.Pos(), "write one", "the list of answers is empty")
		}
		for _, answer := range v.Items() {
			all[key.Name] = append(all[key.Name], answer)
		}
	}
	return all
}

func limits(n strict.Node, p *strict.Problems) *Limits {
	var keys limitsKeys
	strict.Decode(n, &keys, p)
	if n.Kind() != strict.Mapping {
		return nil
	}
	l := &Limits{Tokens: keys.Tokens, ToolCalls: keys.ToolCalls, Steps: keys.Steps}
	for _, one := range []struct {
		key   string
		value *int
	}{{"tokens", keys.Tokens}, {"tool_calls", keys.ToolCalls}, {"steps", keys.Steps}} {
		if one.value != nil && *one.value < 0 {
			p.Key(one.key).Add(n.Get(one.key).Pos(), "", "want a whole number from 0")
		}
	}
	if keys.CostUSD != nil {
		usd, err := money.FromFloat(*keys.CostUSD)
		if err != nil || usd < 0 {
			p.Key("cost_usd").Add(n.Get("cost_usd").Pos(), "it is in USD", "want an amount, from 0")
		}
		l.CostUSD = &usd
	}
	return l
}

// share decodes a bound on a share.
func share(n strict.Node, p *strict.Problems) *eval.Bound {
	const example = `write how the share is bound: ">= 0.8"`
	if n.Kind() == strict.Int || n.Kind() == strict.Float {
		p.Add(n.Pos(), `write how the share is bound: ">= `+n.Text()+`"`, "want a bound, got a number")
		return nil
	}
	if n.Kind() != strict.String {
		p.WrongType(n, `a bound such as ">= 0.8"`)
		return nil
	}
	text := strings.TrimSpace(n.Text())
	for _, op := range eval.BoundOperators {
		number, ok := strings.CutPrefix(text, op)
		if !ok {
			continue
		}
		b := &eval.Bound{Op: op}
		var err error
		b.Value, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch {
		case err != nil || !(b.Value >= 0 && b.Value <= 1):
			p.Add(n.Pos(), example, "%q is no bound on a share from 0 to 1", n.Text())
		case op == ">=" && b.Value == 0 || op == "<=" && b.Value == 1 || op == ">" && b.Value == 1 || op == "<" && b.Value == 0:
			p.Add(n.Pos(), example, "every share keeps the bound %q, or none", n.Text())
		}
		return b
	}
	p.Add(n.Pos(), example, "%q is no bound on a share", n.Text())
	return nil
}

func quarantine(n strict.Node, p *strict.Problems) *Quarantine {
	var keys quarantineKeys
	strict.Decode(n, &keys, p)
	q := &Quarantine{Owner: keys.Owner, Reason: keys.Reason, Pos: n.Pos()}
	for _, one := range []struct{ key, value string }{{"owner", keys.Owner}, {"reason", keys.Reason}} {
		if v := n.Get(one.key); v.Kind() == strict.String && strings.TrimSpace(one.value) == "" {
			p.Key(one.key).Add(v.Pos(), "", "it is empty")
		}
	}
	if v := n.Get("until"); v.Kind() == strict.String {
		day, err := time.Parse(time.DateOnly, keys.Until)
		if err != nil {
			p.Key("until").Add(v.Pos(), "write a day: 2027-01-31", "%q is no day", keys.Until)
		}
		q.Until = day
	}
	return q
}
