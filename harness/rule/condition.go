package rule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/filter"
)

// maxCost bounds what one evaluation may cost, in steps as CEL counts them: a second or two.
const maxCost = 10_000_000

// environment is made when the first rule is compiled: the start of a program that has none must not pay for it.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(append([]cel.EnvOption{
		cel.CustomTypeProvider(provider{registry}),
		cel.CustomTypeAdapter(registry),
		cel.Variable("trace", traceType),
		cel.CrossTypeNumericComparisons(true),
	}, functions()...)...)
})

// condition is an expression that must be true of every trace, where its other expression is true.
type condition struct {
	rule, when *expression
}

// expression is a compiled expression.
type expression struct {
	text    string
	ast     *ast.AST
	program cel.Program
	traced  func() (cel.Program, error) // remembers what it saw
}

func compileCondition(k keys, r *Rule, p *strict.Problems) (check, string) {
	v := &condition{rule: compileExpression(k.Rule, r, p.Key("rule"))}
	if !k.When.IsZero() {
		v.when = compileExpression(k.When, r, p.Key("when"))
	}
	statement := strings.Join(strings.Fields(k.Rule.Text()), " ")
	if v.when != nil {
		statement += " where " + strings.Join(strings.Fields(k.When.Text()), " ")
	}
	return v, statement
}

func compileExpression(n strict.Node, r *Rule, p *strict.Problems) *expression {
	const example = "write one: trace.calls('exec').all(c, !c.args.command.contains('rm -rf'))"
	switch {
	case n.Kind() != strict.String:
		p.WrongType(n, "a condition in CEL")
		return nil
	case len(n.Text()) > filter.MaxLength:
		p.Add(n.Pos(), "", "the expression is too long")
		return nil
	case strings.TrimSpace(n.Text()) == "":
		p.Add(n.Pos(), example, "the expression is empty")
		return nil
	}
	env, err := environment()
	if err != nil {
		p.AddError(failure.WithCode(err, failure.Internal))
		return nil
	}
	checked, issues := env.Compile(n.Text())
	if issues.Err() != nil {
		wrong := filter.First(n.Text(), issues)
		offset, hint := suggestion(n.Text(), wrong)
		message, _, _ := strings.Cut(wrong.Message, " (did you mean")
		p.Add(n.PosOf(offset), hint, "%s", message)
		return nil
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		p.Add(n.Pos(), "compare it: trace.calls('exec').size() <= 3", "the expression is no condition: its value is a %s", t)
		return nil
	}
	e := &expression{text: n.Text(), ast: checked.NativeRep()}
	if e.program, err = env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost)); err != nil {
		p.Add(n.Pos(), "", "%s", err)
		return nil
	}
	e.traced = sync.OnceValues(func() (cel.Program, error) {
		return env.Program(checked, cel.EvalOptions(cel.OptTrackState), cel.CostLimit(maxCost))
	})
	e.collect(n, r, p)
	return e
}

var undefined = regexp.MustCompile(`undefined field '([^']*)'|undeclared reference to '([^']*)'|no matching overload for '([^']*)'`)

// suggestion makes of an error of the checker what to write instead, and moves it from the dot to the name.
func suggestion(text string, wrong *filter.Error) (offset int, hint string) {
	const speaks = "a rule speaks of trace: trace.calls, trace.results, trace.messages, trace.steps, and trace.calls('exec')"
	m := undefined.FindStringSubmatch(wrong.Message)
	if m == nil {
		return wrong.Offset, speaks
	}
	offset = wrong.Offset
	name := m[1] + m[2] + m[3]
	// The checker points at the dot before a field, and at the parenthesis behind a function.
	if i := strings.Index(text[offset:], name); m[1] != "" && i >= 0 {
		offset += i
	} else if strings.HasPrefix(text[offset:], "(") && strings.HasSuffix(text[:offset], name) {
		offset -= len(name)
	}
	methods, functions := []string{"calls", "results", "messages"}, []string{"all", "contains", "endsWith", "exists", "exists_one", "filter", "has", "map", "matches", "size", "startsWith"}
	lists := [][]string{methods, functions}
	switch {
	case m[1] != "":
		var all []string
		for of := range fields {
			all = append(all, fieldNames(of)...)
		}
		slices.Sort(all)
		lists = [][]string{slices.Compact(all)}
		if strings.HasSuffix(text[:offset], "trace.") {
			lists = [][]string{fieldNames("Trace")}
		}
	case m[2] != "" && !strings.HasSuffix(text[:offset], "."):
		lists = [][]string{{"trace"}, functions}
	}
	for _, choices := range lists {
		if near, ok := strict.Nearest(name, choices); ok && near != name {
			return offset, fmt.Sprintf("did you mean %q?", near)
		}
	}
	if m[1] != "" {
		var list []string
		for _, of := range []string{"Trace", "Call", "Result", "Message", "Step"} {
			list = append(list, of+" has "+strings.Join(fieldNames(of), ", "))
		}
		return offset, strings.Join(list, "; ")
	}
	return offset, speaks
}

// collect notes the tools that the expression names: in trace.calls('exec'), and where it compares the field tool with a text.
func (e *expression) collect(n strict.Node, r *Rule, p *strict.Problems) {
	add := func(x ast.Expr) {
		literals := []ast.Expr{x}
		if x.Kind() == ast.ListKind {
			literals = x.AsList().Elements()
		}
		for _, x := range literals {
			if x.Kind() != ast.LiteralKind {
				continue
			}
			if name, ok := x.AsLiteral().(types.String); ok {
				at := e.ast.SourceInfo().GetStartLocation(x.ID())
				r.names = append(r.names, named{string(name), n.PosOf(filter.Offset(n.Text(), at.Line(), at.Column()))})
			}
		}
	}
	isTool := func(x ast.Expr) bool {
		if x.Kind() != ast.SelectKind || x.AsSelect().FieldName() != "tool" {
			return false
		}
		of := e.ast.GetType(x.AsSelect().Operand().ID())
		return of.IsExactType(callType) || of.IsExactType(resultType)
	}
	ast.PreOrderVisit(e.ast.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind {
			return
		}
		c := x.AsCall()
		switch c.FunctionName() {
		case "calls", "results":
			for _, arg := range c.Args() {
				add(arg)
			}
		case operators.Equals, operators.NotEquals, operators.In:
			if len(c.Args()) == 2 && isTool(c.Args()[0]) {
				add(c.Args()[1])
			} else if len(c.Args()) == 2 && isTool(c.Args()[1]) {
				add(c.Args()[0])
			}
		}
	}))
}

// seen is what an expression is given.
type seen struct{ trace object }

// ResolveName implements the interface of CEL.
func (s *seen) ResolveName(name string) (any, bool) {
	if name == "trace" {
		return &s.trace, true
	}
	return nil, false
}

// Parent implements the interface of CEL.
func (*seen) Parent() cel.Activation { return nil }

func over(v *view) *seen { return &seen{object{traceType, v}} }

func (e *expression) eval(v *view) (bool, error) { return filter.Holds(e.program, over(v)) }

// nothing is a story in which nothing has happened yet.
var nothing = &Story{cut: true}

func (v *condition) look(s *Story) (o Outcome, ok bool) {
	view := &view{Story: s}
	if v.when != nil {
		met, err := v.when.eval(view)
		if err != nil {
			o.broken(places(s.last), func() string { return v.when.unknown("when", err) })
			return o, true
		}
		if !met {
			return o, true
		}
		view.asked = false // the condition itself says when the rule is about something
	}
	met, err := v.rule.eval(view)
	o.Triggered = v.when != nil || !view.asked || view.found
	switch {
	case err != nil:
		var events []int
		text := ""
		if !strings.Contains(err.Error(), tooCostly) { // a second time would take as long
			events, text = v.rule.explain(view)
		}
		if len(events) == 0 {
			events, text = places(s.last), ""
		}
		o.broken(events, func() string { return strings.TrimSuffix(v.rule.unknown("rule", err)+"; "+text, "; ") })
	case met:
	case s.cut && !v.holdsAtFirst():
		// It asks for something to happen, and that may still have come.
	default:
		events, text := v.rule.explain(view)
		if len(events) == 0 {
			events = places(s.last)
		}
		o.broken(events, func() string { return text })
	}
	return o, true
}

// tooCostly stands in the error of CEL about an expression that takes too long.
const tooCostly = "cost limit"

// unknown says why an expression has no value. A rule that cannot be evaluated has not been kept.
func (e *expression) unknown(what string, err error) string {
	text := err.Error()
	hint := ""
	switch {
	case strings.Contains(text, tooCostly):
		text = fmt.Sprintf("it takes more than %d steps", maxCost)
	case strings.Contains(text, "no such key"):
		hint = "; has() asks whether there is one"
	}
	return fmt.Sprintf("%s cannot be evaluated: %s%s", what, visible(text, 160), hint)
}

// holdsAtFirst reports that the rule holds before anything has happened.
func (v *condition) holdsAtFirst() bool {
	met, err := v.rule.eval(&view{Story: nothing})
	return err == nil && met
}

// explain evaluates again, remembering values, and finds what made the expression false or broke it: of a comprehension the element at which it stopped, of a comparison the things that stand in it.
func (e *expression) explain(v *view) (events []int, text string) {
	program, err := e.traced()
	if err != nil {
		return nil, err.Error()
	}
	_, details, _ := program.Eval(over(&view{Story: v.Story, traced: true}))
	w := witness{e: e}
	if details != nil {
		w.state = details.State()
		w.find(e.ast.Expr())
	}
	return w.finish()
}

// witness gathers the things that make an expression false.
type witness struct {
	e      *expression
	state  interpreter.EvalState
	things []*object
	values []string
}

func (w *witness) value(x ast.Expr) (ref.Val, bool) {
	if w.state == nil {
		return nil, false
	}
	return w.state.Value(x.ID())
}

// is reports that an expression had a value of true or false, and that it was this one.
func (w *witness) is(x ast.Expr, want bool) bool {
	v, ok := w.value(x)
	b, isBool := v.(types.Bool)
	return ok && isBool && bool(b) == want
}

func (w *witness) failed(x ast.Expr) bool {
	v, ok := w.value(x)
	return ok && types.IsError(v)
}

// find looks for what made an expression of type bool what it is.
func (w *witness) find(x ast.Expr) {
	switch x.Kind() {
	case ast.CallKind:
		c := x.AsCall()
		args := c.Args()
		switch c.FunctionName() {
		case operators.LogicalNot, operators.NotStrictlyFalse:
			w.find(args[0])
			return
		case operators.LogicalAnd, operators.LogicalOr:
			w.logical(c.FunctionName() == operators.LogicalAnd, args, x)
			return
		case operators.Conditional:
			w.find(args[0])
			if w.is(args[0], true) {
				w.find(args[1])
			} else {
				w.find(args[2])
			}
			return
		}
		w.leaf(x)
	case ast.ComprehensionKind:
		w.comprehension(x.AsComprehension())
	default:
		w.leaf(x)
	}
}

// logical looks at the operands that decided: one false makes a conjunction false, one true a disjunction true.
func (w *witness) logical(and bool, args []ast.Expr, x ast.Expr) {
	decides := !and // the value of an operand that decides alone
	for _, arg := range args {
		if w.is(arg, decides) && w.is(x, decides) {
			w.find(arg)
			return
		}
	}
	for _, arg := range args {
		if !w.failed(x) || w.failed(arg) {
			w.find(arg)
		}
	}
}

// comprehension looks at the element at which the loop stopped: what all found false, exists true. Where it went to the end, or made a list, every element counts.
func (w *witness) comprehension(c ast.ComprehensionExpr) {
	step := c.LoopStep()
	if step.Kind() == ast.CallKind && len(step.AsCall().Args()) == 2 {
		body := step.AsCall().Args()[1]
		decided := step.AsCall().FunctionName() == operators.LogicalAnd && w.is(body, false) ||
			step.AsCall().FunctionName() == operators.LogicalOr && w.is(body, true)
		list, _ := w.value(c.IterRange())
		if read, ok := list.(*tracked); ok && (decided || w.failed(body)) && read.last != nil {
			w.thing(read.last)
			w.find(body)
			return
		}
	}
	w.leaf(c.IterRange())
}

// leaf adds the things that an expression is or speaks of, or else the values that it compares.
func (w *witness) leaf(x ast.Expr) {
	if w.within(x) {
		return
	}
	if x.Kind() == ast.CallKind && len(x.AsCall().Args()) == 2 {
		for _, arg := range x.AsCall().Args() {
			w.scalar(arg)
		}
		return
	}
	w.scalar(x)
}

// within adds the things nearest below an expression, and reports whether there are any.
func (w *witness) within(x ast.Expr) bool {
	if v, ok := w.value(x); ok {
		before := len(w.things)
		if w.thing(v); len(w.things) > before {
			return true
		}
	}
	var parts []ast.Expr
	switch x.Kind() {
	case ast.CallKind:
		parts = x.AsCall().Args()
		if x.AsCall().IsMemberFunction() {
			parts = append(parts[:len(parts):len(parts)], x.AsCall().Target())
		}
	case ast.SelectKind:
		parts = []ast.Expr{x.AsSelect().Operand()}
	case ast.ListKind:
		parts = x.AsList().Elements()
	case ast.ComprehensionKind:
		parts = []ast.Expr{x.AsComprehension().IterRange()}
	}
	found := false
	for _, part := range parts {
		found = w.within(part) || found
	}
	return found
}

// scalar notes the value of a part that is no literal.
func (w *witness) scalar(x ast.Expr) {
	v, ok := w.value(x)
	if !ok || x.Kind() == ast.LiteralKind {
		return
	}
	switch v := v.(type) {
	case types.String:
		w.values = append(w.values, fmt.Sprintf("%q", clip(string(v), 60)))
	case types.Int, types.Double:
		w.values = append(w.values, fmt.Sprint(v.Value()))
	}
}

func (w *witness) thing(v ref.Val) {
	switch v := v.(type) {
	case *object:
		if v.event() > 0 && len(w.things) < mostThings && !slices.Contains(w.things, v) {
			w.things = append(w.things, v)
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if o, ok := it.Next().(*object); ok {
				w.thing(o)
			} else {
				return
			}
			if len(w.things) == mostThings {
				return
			}
		}
	}
}

// mostThings bounds the witness of a rule that counts.
const mostThings = 100

func (w *witness) finish() (events []int, text string) {
	slices.SortStableFunc(w.things, func(a, b *object) int { return a.event() - b.event() })
	const most = 3
	var parts []string
	for i, o := range w.things {
		if len(events) == 0 || events[len(events)-1] != o.event() {
			events = append(events, o.event())
		}
		if i < most {
			parts = append(parts, fmt.Sprintf("event %d: %s", o.event(), o.of))
		}
	}
	if more := len(w.things) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if len(parts) == 0 {
		text := "the rule is false: " + visible(strings.Join(strings.Fields(w.e.text), " "), 200)
		if len(w.values) > 0 {
			text += ", here " + strings.Join(w.values, ", ")
		}
		return nil, text
	}
	if len(w.values) > 0 {
		parts = append(parts, "with "+strings.Join(w.values, ", "))
	}
	return events, strings.Join(parts, "; ")
}

// String shows a step for evidence.
func (s *step) String() string {
	if len(s.calls) > 0 && strings.TrimSpace(s.text) == "" {
		var names []string
		for _, c := range s.calls {
			names = append(names, c.tool)
		}
		return fmt.Sprintf("step %d of the model calls %s", s.n, visible(strings.Join(names, ", "), 120))
	}
	return fmt.Sprintf("step %d of the model: %s", s.n, visible(s.text, 120))
}
