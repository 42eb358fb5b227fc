package score

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
)

// joined are the kinds that hold other checks.
const (
	kindAll = "all"
	kindAny = "any"
)

// compileAll judges by the checks of a list: each must pass. The score is the share that does.
func compileAll(args strict.Node, a at) judge { return compileJoined(args, a, kindAll) }

// compileAny judges by the checks of a list: one must pass.
func compileAny(args strict.Node, a at) judge { return compileJoined(args, a, kindAny) }

// maxNesting bounds lists within lists.
const maxNesting = 8

func compileJoined(args strict.Node, a at, kind string) judge {
	example := "write " + kind + ": [{contains: a}, {contains: b}]"
	switch {
	case args.Kind() != strict.Sequence:
		a.bad(args, example, "want a list of checks, got %s", args.Kind())
		return nil
	case args.Len() == 0:
		a.bad(args, example, "the list is empty")
		return nil
	case a.depth >= maxNesting:
		a.bad(args, "", "checks lie more than %d deep within one another", maxNesting)
		return nil
	}
	before := a.Len()
	checks := make([]Check, 0, args.Len())
	for i, n := range args.Items() {
		inner := a.index(i)
		inner.depth++
		if s, ok := nested(n, inner); ok {
			checks = append(checks, compileOne(s, inner))
		}
	}
	if a.Len() > before {
		return nil
	}
	return func(ctx context.Context, c *Case) (Verdict, error) { return join(ctx, c, kind, checks) }
}

// join judges by each check and puts the verdicts together. What one of them cannot judge leaves the whole open only where the others do not decide it.
func join(ctx context.Context, c *Case, kind string, checks []Check) (Verdict, error) {
	expected := make([]string, len(checks))
	var passed, failed, open []string
	var actual string
	var edits []string
	void := 0
	for i := range checks {
		v, err := checks[i].Score(ctx, *c)
		if cause := context.Cause(ctx); cause != nil {
			return Verdict{}, cause
		}
		expected[i] = checks[i].Kind
		if v.Expected != "" {
			expected[i] += " " + excerpt(v.Expected, 0, 120)
		}
		text := fmt.Sprintf("%d, %s: ", i+1, checks[i].Kind)
		switch {
		case err != nil:
			open = append(open, text+err.Error())
		case reaches(v.Score, checks[i].Threshold):
			passed = append(passed, text+v.Reason)
		default:
			failed = append(failed, text+v.Reason)
			edits = append(edits, v.Edits...)
			if actual == "" {
				actual = v.Actual
			}
			if v.void {
				void++
			}
		}
	}
	holds, decided := len(failed) == 0, len(failed) > 0
	score := float64(len(passed)) / float64(len(checks))
	// Negated, a list holds where the negation of one check does, or of each: a failure for want of anything to look at is then no pass either.
	nothing := void == len(failed)
	if kind == kindAny {
		holds, decided = len(passed) > 0, len(passed) > 0
		score, nothing = hold(holds), void > 0
	}
	if len(open) > 0 && !decided {
		return Verdict{}, errors.New(strings.Join(open, "; "))
	}
	v := Verdict{Score: score, Expected: cut(kind + ": " + strings.Join(expected, "; ")), Actual: actual, Reason: cut(strings.Join(failed, "; "))}
	if holds {
		v.Reason, edits = cut(strings.Join(passed, "; ")), nil
	}
	v.void = !holds && nothing
	v.Edits = edits[:min(len(edits), maxEdits)]
	return v, nil
}

// single are the kinds that stand in the list of checks alone: what they ask is counted and recorded there.
var single = []string{KindJudge, KindEmbedding}

// nested reads a check within another: its kind, not and a threshold.
func nested(n strict.Node, a at) (Spec, bool) {
	s := Spec{Pos: n.Pos()}
	switch n.Kind() {
	case strict.String:
		s.Kind = n.Text()
		return s, true
	case strict.Mapping:
	default:
		a.Problems.WrongType(n, "a check: {contains: ...}, or a word such as no_tool_calls")
		return s, false
	}
	before := a.Len()
	kinds := make([]strict.Field, 0, 1)
	for key, value := range n.Fields() {
		switch key.Name {
		case "threshold":
			s.Threshold = fraction(value, a.Problems.Key(key.Name))
		case "name", "weight", "required", "use":
			a.Add(key.Pos(), "put it beside "+kindAll+" or "+kindAny+", or leave it out", "%s stands within a check of checks", key.Name)
		default:
			kinds = append(kinds, strict.Field{Key: key, Value: value})
		}
	}
	isKind := func(f strict.Field) bool {
		_, known := find(a.table, f.Key.Name)
		return known || f.Key.Name == "not" || slices.Contains(later, f.Key.Name)
	}
	if known := slices.DeleteFunc(slices.Clone(kinds), func(f strict.Field) bool { return !isKind(f) }); len(kinds) > 1 && len(known) == 1 {
		for _, f := range kinds { // a misspelt threshold most often
			if f.Key != known[0].Key {
				a.Problems.Unknown(f.Key, []string{"threshold"})
			}
		}
		kinds = known
	}
	switch {
	case len(kinds) == 0:
		a.bad(n, "add it: contains: ...", "a check names its kind")
		return s, false
	case len(kinds) > 1:
		a.Add(kinds[1].Key.Pos(), "write two entries in the list", "a check has one kind, not both %q and %q", kinds[0].Key.Name, kinds[1].Key.Name)
		return s, false
	}
	kind, args := kinds[0].Key, kinds[0].Value
	switch {
	case kind.Name == "not":
		inner := a.key("not")
		for _, key := range []string{"not", "threshold"} {
			if !args.Get(key).IsZero() {
				inner.Add(args.KeyPos(key), "put it beside not, once", "%s within not", key)
				return s, false
			}
		}
		within, ok := nested(args, inner)
		if !ok {
			return s, false
		}
		s.Not, s.Kind, s.Args = true, within.Kind, within.Args
	case slices.Contains(single, kind.Name):
		a.Add(kind.Pos(), "put it into the list of checks itself", "check %s within another is not in this version", kind.Name)
	case !isKind(kinds[0]):
		a.Add(kind.Pos(), strict.Suggest(kind.Name, names(a.table)), "unknown check %q", kind.Name)
	default:
		s.Kind, s.Args, s.Pos = kind.Name, args, kind.Pos()
	}
	return s, a.Len() == before
}

// fraction reads a threshold.
func fraction(n strict.Node, p *strict.Problems) *float64 {
	var f *float64
	strict.Decode(n, &f, p)
	if f != nil && !(*f >= 0 && *f <= 1) {
		p.Add(n.Pos(), "a score is a fraction: 0.8 for 80 %", "want a fraction from 0 to 1")
	}
	return f
}
