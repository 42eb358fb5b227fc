package dataset

import (
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Step is one answer of a scripted model: a text or calls.
type Step struct {
	Text  *string
	Calls []Call
	Pos   failure.Position
}

// Call is a scripted tool call. Args is a mapping, or the zero node for no arguments.
type Call struct {
	Name string
	Args strict.Node
}

// steps decodes a script. In a rendered one a template may have put a number or a boolean in the place of a text.
func steps(n strict.Node, rendered bool, p *strict.Problems) []Step {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of steps such as {text: ...} or {call: {name: ..., args: {...}}}")
		return nil
	}
	list := make([]Step, 0, n.Len())
	for i, entry := range n.Items() {
		at := p.At(i)
		if entry.Kind() != strict.Mapping {
			at.WrongType(entry, "a step such as {text: ...} or {call: {name: ..., args: {...}}}")
			continue
		}
		step, kinds := Step{Pos: entry.Pos()}, 0
		for key, v := range entry.Fields() {
			inner := at.Key(key.Name)
			switch key.Name {
			case "text":
				kinds++
				if k := v.Kind(); rendered && (k == strict.Int || k == strict.Float || k == strict.Bool) {
					v = v.WithText(v.Text())
				}
				strict.Decode(v, &step.Text, inner)
			case "call":
				kinds++
				step.Calls = append(step.Calls, call(v, inner))
			case "calls":
				kinds++
				if v.Kind() != strict.Sequence {
					inner.WrongType(v, "a list of calls")
				}
				for k, c := range v.Items() {
					step.Calls = append(step.Calls, call(c, inner.At(k)))
				}
			default:
				at.Unknown(key, []string{"text", "call", "calls"})
			}
		}
		if kinds != 1 {
			at.Add(entry.Pos(), "write one of {text: ...}, {call: {...}}, {calls: [...]}", "a step is one answer, got %d", kinds)
		}
		list = append(list, step)
	}
	return list
}

type callKeys struct {
	Name string      `yaml:"name,required" schema:"filled"`
	Args strict.Node `yaml:"args" schema:"values"`
}

func call(n strict.Node, p *strict.Problems) Call {
	var keys callKeys
	strict.Decode(n, &keys, p)
	if !keys.Args.IsZero() && keys.Args.Kind() != strict.Mapping {
		p.Key("args").WrongType(keys.Args, "a mapping of arguments")
	}
	if keys.Name == "" && n.Get("name").Kind() == strict.String {
		p.Key("name").Add(n.Get("name").Pos(), "", "a name is empty")
	}
	return Call(keys)
}
