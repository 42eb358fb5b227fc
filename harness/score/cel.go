package score

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	celtypes "cel.dev/cel-go/common/types"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/filter"
)

// celTrace is what expressions see of a run.
type celTrace struct {
	Calls []celCall `cel:"calls"`
	Steps int64     `cel:"steps"`
	Stop  string    `cel:"stop"`
}

// celCall is a call that the model made.
type celCall struct {
	Name   string `cel:"name"`
	Args   any    `cel:"args"` // null where they are no JSON
	Step   int64  `cel:"step"`
	Status string `cel:"status"` // ok, error, or "" where it has no result
	Result any    `cel:"result"`
}

// celNames are what expressions speak of.
var celNames = []string{"answer", "expected", "metadata", "trace", "vars"}

// maxCELCost bounds the evaluation for one case, in steps as CEL counts them.
const maxCELCost = 1_000_000

// celEnvironment is made when the first expression is compiled: the start of a program that has none must not pay for it.
var celEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	values := cel.MapType(cel.StringType, cel.DynType)
	env, err := cel.NewEnv()
	if err != nil {
		return nil, err
	}
	provider, adapter, err := celtypes.ComposeTypes(env.CELTypeProvider(), env.CELTypeAdapter(),
		celtypes.NativeTypeFor[celTrace](celtypes.NativeTypeAlias("Trace"), celtypes.ParseStructTags(true)),
		celtypes.NativeTypeFor[celCall](celtypes.NativeTypeAlias("Call"), celtypes.ParseStructTags(true)))
	if err != nil {
		return nil, err
	}
	return env.Extend(
		cel.CustomTypeAdapter(adapter), cel.CustomTypeProvider(provider),
		cel.Variable("answer", cel.StringType), cel.Variable("expected", cel.DynType), cel.Variable("vars", values), cel.Variable("metadata", values),
		cel.Variable("trace", cel.ObjectType("Trace")), cel.CrossTypeNumericComparisons(true),
	)
})

func compileCEL(args strict.Node, a at) judge {
	const example = `cel: "answer.size() < 200 && trace.calls.exists(c, c.name == 'search')"`
	var text string
	a.decode(args, &text, example)
	if args.Kind() != strict.String {
		return nil
	}
	switch {
	case strings.TrimSpace(text) == "":
		a.bad(args, "write "+example, "the expression is empty")
		return nil
	case len(text) > filter.MaxLength:
		a.bad(args, "a program can say it: command", "the expression is longer than %d bytes", filter.MaxLength)
		return nil
	}
	env, err := celEnvironment()
	if err != nil {
		a.bad(args, "", "%s", err)
		return nil
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		wrong := filter.First(text, issues)
		a.Add(args.PosOf(wrong.Offset), celHint(text[wrong.Offset:]), "%s", wrong.Message)
		return nil
	}
	graded := false
	switch t := ast.OutputType(); {
	case t.IsExactType(cel.BoolType), t.IsExactType(cel.DynType):
	case t.IsExactType(cel.DoubleType):
		if graded = true; !a.stated {
			a.bad(args, "add one beside the kind: threshold: 0.8", "the value is a score and no threshold is stated")
		}
	default:
		a.bad(args, "compare it: answer.size() < 200", "the value is a %s, neither true or false nor a score (double)", t)
		return nil
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCELCost), cel.InterruptCheckFrequency(1000))
	if err != nil {
		a.bad(args, "", "%s", err)
		return nil
	}
	return func(ctx context.Context, c *Case) (Verdict, error) {
		value, _, err := program.ContextEval(ctx, activation{c})
		v := Verdict{Expected: cut(text), Actual: around(c.Output, 0)}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return Verdict{}, cause
			}
			if strings.Contains(err.Error(), "cost limit exceeded") {
				return Verdict{}, errors.New("the expression takes too long")
			}
			// What it asks for is not there: an entry of a list, a key.
			v.void, v.Reason = true, "the expression has no value here: "+excerpt(err.Error(), 0, 200)
			return v, nil
		}
		switch value := value.(type) {
		case celtypes.Bool:
			v.Score, v.Reason = hold(bool(value)), fmt.Sprintf("the expression is %t", bool(value))
		case celtypes.Double:
			score := float64(value)
			if !graded || math.IsNaN(score) || score < 0 || score > 1 {
				return Verdict{}, fmt.Errorf("the expression is %v, want true, false or, where its type is double, a score in [0,1]", score)
			}
			v.Score, v.Reason = score, fmt.Sprintf("the expression is %v", score)
		default:
			return Verdict{}, fmt.Errorf("the expression is a %s, want true or false", value.Type().TypeName())
		}
		return v, nil
	}
}

// celHint says what to write where an expression is wrong.
func celHint(at string) string {
	name := at
	if i := strings.IndexFunc(at, func(r rune) bool { return r != '_' && (r|0x20 < 'a' || r|0x20 > 'z') }); i >= 0 {
		name = at[:i]
	}
	if near, ok := strict.Nearest(name, celNames); ok && near != name {
		return "did you mean \"" + near + "\"?"
	}
	return "an expression speaks of answer, expected, vars, metadata and trace: trace.calls (name, args, step, status, result), trace.steps, trace.stop"
}

// activation gives CEL the value of a name, which is made only where the expression asks for it.
type activation struct{ c *Case }

// ResolveName implements the interface of CEL.
func (a activation) ResolveName(name string) (any, bool) {
	switch name {
	case "answer":
		return a.c.Output, true
	case "expected":
		return a.c.Expected.Any(), true
	case "vars":
		return mapping(a.c.Item.Vars), true
	case "metadata":
		return mapping(a.c.Item.Metadata), true
	case "trace":
		return a.c.seen(), true
	}
	return nil, false
}

// Parent implements the interface of CEL: there is nothing behind the names.
func (activation) Parent() cel.Activation { return nil }

func mapping(n strict.Node) any {
	if m, ok := n.Any().(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// seen is the trace for expressions. Of a trace without replies all is empty.
func (c *Case) seen() *celTrace {
	t := &celTrace{Steps: int64(steps(c)), Calls: []celCall{}}
	calls, _ := made(c.Trace) // errUnseen: there are none
	for i := range calls {
		call := &calls[i]
		call.parse()
		t.Calls = append(t.Calls, celCall{Name: call.name, Args: call.args.Any(), Step: int64(call.step), Status: call.status, Result: valueOf(call.result)})
	}
	for _, e := range c.Trace.Events {
		if e.End != nil {
			t.Stop = e.End.Stop
		}
	}
	return t
}

func valueOf(text conversation.JSON) any {
	if text == "" {
		return nil
	}
	n, err := strict.ParseJSON("result", 1, []byte(text))
	if err != nil {
		return string(text)
	}
	return n.Any()
}
