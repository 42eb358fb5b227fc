// Package score judges what an agent said and did: text, structure, tool calls, time and cost.
//
// [Compile] turns the checks of an item into [Check] values and finds every mistake in their arguments before anything runs. [Check.Run] judges one case; [Total] makes the item's score and verdict of the results.
//
//	checks := score.Compile(specs, score.Env{Tools: names}, &problems)
//	if err := problems.Err(); err != nil {
//		return err
//	}
//	for _, check := range checks {
//		results = append(results, check.Run(ctx, c))
//	}
//	total, verdict := score.Total(results, item.Threshold)
//
// A check gives a score in [0,1] or says that it could not judge, never both. What is not known (a cost without a price, a trace without replies) is unjudged: neither a pass nor a fail.
// Docs of the kinds and their arguments stand at [Kinds].
package score

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
)

// Spec is one check as the dataset states it.
type Spec struct {
	// Kind is the name of a row of [Kinds].
	Kind string
	// Args is what stands under the kind; the zero Node where the check is a bare word.
	Args strict.Node
	// Name is "" where the check has none of its own.
	Name string
	// Not asks for the opposite.
	Not bool
	// Weight is the weight in the item's score; nil is 1, 0 only reports.
	Weight *float64
	// Threshold is the score from which the check passes; nil is 1 for checks that hold or not.
	Threshold *float64
	// Required checks must pass even where the item has a threshold of its own.
	Required bool
	// Pos is where the check stands.
	Pos failure.Position
}

// Env is what is known of the agent before a run.
type Env struct {
	// Tools are the names of all tools that the agent has, visible or not.
	Tools []string
	// ToolsUnknown says that nobody knows them before the run (an agent in another language); expected names are then taken as they are.
	ToolsUnknown bool
	// Programs runs the programs of command checks. Where it is nil nobody looks whether they exist, and the checks judge nothing.
	Programs Programs
	// Judges and Embedders are the ids of the providers of roles judge and embed, in the dataset's order.
	Judges, Embedders []string
	// Turn says that the checks are those of a turn and not of the whole item.
	Turn bool
	// RolesUnknown says that there may be other providers of a role: one is wrong.
	RolesUnknown bool
}

// Case is what is judged: the end of one run, or of one turn of it.
type Case struct {
	// Turn counts user turns from 1; nil is the whole item.
	Turn *int
	// Output is the agent's final text, "" where it said nothing.
	Output string
	Trace  trace.Trace
	// LatencyMS is the agent's waiting for models and tools; nil where unknown.
	LatencyMS *int64
	// Cost is what the agent cost; nil where a price is unknown.
	Cost *money.USD
	// Tokens is input and output tokens together; nil where a reply did not say.
	Tokens *int
	// Item and Expected are told to the programs of command checks.
	Item     Item
	Expected strict.Node
	// Workspace opens the files that the run left; nil where they are gone.
	Workspace Workspace
	// Redact takes out of what a program says what must not be written, before it is shortened; nil leaves it as it is.
	Redact func(string) string
	// Judge asks the models of judge checks, and Embedder those that turn texts into vectors; where one is nil its checks judge nothing.
	Judge    Judge
	Embedder Embedder

	check *Check // that judges it
}

// Verdict is what a check says of a case.
type Verdict struct {
	// Score is in [0,1].
	Score float64
	// Expected and Actual are at most 500 characters, around the place where they differ.
	Expected, Actual string
	// Reason says what was found, in at most 500 characters.
	Reason string
	// Edits is the edit script of a comparison of tool calls, a line for each call; see [eval.CheckResult].
	Edits []string

	// void marks a failure for want of anything to look at (an answer that is no JSON, one without a number): negating the check does not turn it into a pass.
	void bool
}

// Check is a compiled check. It is immutable and safe for concurrent use.
type Check struct {
	Name      string
	Kind      string
	Not       bool
	Weight    float64
	Threshold float64
	Required  bool
	Pos       failure.Position
	// Asks is how many questions the check puts to models, judges and embedders.
	Asks int

	judge judge
}

// judge gives the verdict of one kind with its arguments, not negated; an error says why none can be given.
type judge func(ctx context.Context, c *Case) (Verdict, error)

// Compile validates the checks of one item or turn and adds everything that is wrong to p. Checks with a mistake are left out of the result.
//
// A check without a name is called by its kind, the second of a kind "contains#2". Names are unique in the result.
func Compile(specs []Spec, env Env, p *strict.Problems) []Check {
	return compile(specs, env, kinds, p)
}

func compile(specs []Spec, env Env, table []kind, p *strict.Problems) []Check {
	checks := make([]Check, 0, len(specs))
	taken := make(map[string]failure.Position, len(specs))
	for _, s := range specs {
		if s.Name == "" {
			continue
		}
		if first, ok := taken[s.Name]; ok {
			p.Add(s.Pos, "give one of them another name, or drop the inherited one: drop: ["+s.Name+"]", "a second check named %q, the first is at %s", s.Name, first)
			continue
		}
		taken[s.Name] = s.Pos
	}
	for _, s := range specs {
		before := p.Len()
		c := compileOne(s, at{Problems: p, env: &env, table: table})
		if p.Len() > before && c.judge == nil {
			continue
		}
		for n := 1; c.Name == ""; n++ {
			name := s.Kind
			if n > 1 {
				name += "#" + strconv.Itoa(n)
			}
			if _, used := taken[name]; !used {
				taken[name] = s.Pos
				c.Name = name
			}
		}
		if p.Len() == before {
			checks = append(checks, c)
		}
	}
	return checks
}

// compileOne compiles a check, without a name where it has none of its own. The problems of a are seen from where the check stands.
func compileOne(s Spec, a at) Check {
	c := Check{Name: s.Name, Kind: s.Kind, Not: s.Not, Weight: 1, Threshold: 1, Required: s.Required, Pos: s.Pos}
	row, ok := find(a.table, s.Kind)
	switch {
	case slices.Contains(later, s.Kind):
		a.Add(s.Pos, "remove it; reading the file without it would run something else than it says", "check %q is not in this version", s.Kind)
		return c
	case !ok:
		a.Add(s.Pos, strict.Suggest(s.Kind, names(a.table)), "unknown check %q", s.Kind)
		return c
	}
	c.limits(s, row.graded, a.Problems)
	a.pos, a.asks, a.stated, a.Problems = s.Pos, &c.Asks, s.Threshold != nil, a.Problems.Key(s.Kind)
	c.judge = row.compile(s.Args, a)
	return c
}

// limits takes weight and threshold from the spec.
func (c *Check) limits(s Spec, graded bool, p *strict.Problems) {
	if s.Weight != nil {
		c.Weight = *s.Weight
		if !(c.Weight >= 0) || math.IsInf(c.Weight, 1) {
			p.Add(s.Pos, "0 only reports, 1 is the default", "weight %v is negative or no number", c.Weight)
		}
		if c.Weight == 0 && s.Required {
			p.Add(s.Pos, "leave out one of the two", "weight 0 only reports, and required asks that the check passes")
		}
	}
	switch {
	case s.Threshold != nil:
		c.Threshold = *s.Threshold
		if !(c.Threshold >= 0 && c.Threshold <= 1) {
			p.Add(s.Pos, "a score is a fraction: 0.8 for 80 %", "threshold %v is outside [0,1]", c.Threshold)
		}
		if s.Not && c.Threshold == 0 {
			p.Add(s.Pos, "every score reaches 0; state a higher threshold", "not with threshold 0 can never pass")
		}
	case graded:
		p.Add(s.Pos, "add one beside the kind: threshold: 0.8", "check %s is graded and states no threshold", s.Kind)
	}
}

// at is where the arguments of a check stand and what is known of the agent.
type at struct {
	*strict.Problems
	pos failure.Position
	env *Env
	// table are the kinds that there are, depth how many checks the check lies in, and stated says that it states a threshold.
	table  []kind
	depth  int
	stated bool
	// asks is where a check says how many questions it puts to models.
	asks *int
}

// key is the same for what stands under a key.
func (a at) key(name string) at { a.Problems = a.Problems.Key(name); return a }

// index is the same for an entry of a list.
func (a at) index(i int) at { a.Problems = a.At(i); return a }

// bad adds a problem at the node, or at the check where there is no node.
func (a at) bad(n strict.Node, hint, format string, args ...any) {
	pos := n.Pos()
	if n.IsZero() || pos.IsZero() {
		pos = a.pos
	}
	a.Add(pos, hint, format, args...)
}

// decode fills a struct of arguments; a missing node is said to be missing.
func (a at) decode(n strict.Node, into any, example string) {
	if n.IsZero() || n.IsNull() {
		a.bad(n, "write "+example, "arguments are missing")
		return
	}
	strict.Decode(n, into, a.Problems)
}

// Score judges a case. An error says why no verdict can be given; the verdict then means nothing. The score of a negated check is 1 where the check under it stays below the threshold, else 0.
func (c *Check) Score(ctx context.Context, in Case) (v Verdict, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			v, err = Verdict{}, fmt.Errorf("the check crashed: %v", crash)
		}
	}()
	if err := context.Cause(ctx); err != nil {
		return Verdict{}, err
	}
	in.check = c
	v, err = c.judge(ctx, &in)
	if err != nil || !c.Not {
		return v, err
	}
	v.Expected = "not: " + v.Expected
	reached := reaches(v.Score, c.Threshold)
	v.Score = 0
	switch {
	case v.void:
	case reached:
		v.Reason = "must not hold, and does: " + v.Reason
	default:
		v.Score = 1
	}
	return v, nil
}

// Run judges a case and gives the line of results.jsonl. Actual is null where the check passes, and expected too where it could not judge.
func (c *Check) Run(ctx context.Context, in Case) eval.CheckResult {
	r := eval.CheckResult{Name: c.Name, Turn: in.Turn, Status: eval.CheckUnjudged, Threshold: eval.Fraction(c.Threshold), Weight: eval.Number(c.Weight), Required: c.Required, At: c.Pos.String()}
	v, err := c.Score(ctx, in)
	if err != nil {
		r.Reason = cut(err.Error())
		return r
	}
	score := eval.Fraction(v.Score)
	r.Score = &score
	r.Reason = cut(v.Reason)
	expected := cut(v.Expected)
	r.Expected = &expected
	r.Status = eval.CheckPass
	// A negated check scores 0 or 1, and passes with 1.
	if !reaches(v.Score, c.Threshold) {
		r.Status = eval.CheckFail
		actual := cut(v.Actual)
		r.Actual, r.Edits = &actual, v.Edits
	}
	return r
}

// reaches compares as results are written, with six decimals, so that no report shows a score that is its threshold and failed.
func reaches(score, threshold float64) bool {
	return math.Round(score*1e6) >= math.Round(threshold*1e6)
}

// hold is the score of a check that holds or not.
func hold(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
