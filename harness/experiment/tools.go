package experiment

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/score"
)

// itemTools are the tools of the column's agent as the item sees them: the built-in ones on the item's workspace and those that the agent file describes, behind the recorder, and in front of it what the dataset mocks. Mocks are never recorded.
func (r *itemRun) itemTools() []tool.Tool {
	var tools []tool.Tool
	add := func(t tool.Tool) {
		inner := r.session.Tool(t)
		if r.variant != nil {
			inner = r.variant.Tool(inner, t)
		}
		if mock, ok := r.item.ToolMocks[t.Spec().Name]; ok {
			inner = newMocked(inner, mock)
		}
		if r.variant != nil {
			inner = r.variant.Failing(inner, r.session.Clock())
		}
		tools = append(tools, inner)
	}
	names := permitted(r.item, r.column.Agent.Tools)
	for _, t := range r.opts.Tools(r.space.get) {
		if slices.Contains(names, t.Spec().Name) {
			add(t)
		}
	}
	for _, own := range r.column.Agent.CommandTools {
		if !slices.Contains(names, own.Name) {
			continue
		}
		add(described{spec: commandSpec(own), command: own, programs: r.opts.Programs})
	}
	return tools
}

// commandSpec is what a model sees of a tool that an agent file describes.
func commandSpec(t agent.CommandTool) tool.Spec {
	parameters := conversation.JSON(`{"type":"object"}`)
	if !t.Parameters.IsZero() {
		parameters = conversation.JSON(t.Parameters.JSON())
	}
	return tool.Spec{Name: t.Name, Description: t.Description, Parameters: parameters, Effect: t.Effect, Scope: tool.External}
}

// described is a tool of an agent file. Without a command it exists only through its mocks.
//
// A program is started for each call, in the folder of the agent file, and gets {"v":1,"tool":NAME,"arguments":{...}} on standard input. The arguments are the model's with the hidden parameters put in, the hidden value winning. What it writes to standard output is the result: a JSON value, else a
// text; an object with the single key "error" is an error for the model. A program that fails or takes too long is an error too.
type described struct {
	spec     tool.Spec
	command  agent.CommandTool
	programs *program.Pool
}

// Spec implements [tool.Tool].
func (d described) Spec() tool.Spec { return d.spec }

// Run implements [tool.Tool].
func (d described) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	switch {
	case len(d.command.Command) == 0:
		return tool.Failed("no answer is prepared for these arguments"), nil
	case d.programs == nil:
		return tool.Output{}, errors.New("this run starts no programs")
	}
	question, err := d.question(call)
	if err != nil {
		return tool.Output{}, err
	}
	answer, err := d.programs.Run(ctx, program.Command{Dir: path.Dir(d.command.Pos.File), Run: d.command.Command}, question)
	if err != nil {
		return tool.Output{}, err
	}
	return result(answer), nil
}

func (d described) question(call tool.Call) ([]byte, error) {
	arguments, err := strict.ParseJSON("", 1, []byte(call.Arguments))
	if err != nil {
		return nil, err
	}
	question := append([]byte(nil), `{"v":1,"tool":`...)
	question = conversation.AppendString(question, d.spec.Name)
	question = append(question, `,"arguments":{`...)
	first := true
	add := func(name, value string) {
		if !first {
			question = append(question, ',')
		}
		first = false
		question = conversation.AppendString(question, name)
		question = append(question, ':')
		question = append(question, value...)
	}
	for key, value := range arguments.Fields() {
		if _, hidden := call.Hidden.Get(key.Name); !hidden {
			add(key.Name, value.JSON())
		}
	}
	for name, value := range call.Hidden.All() {
		add(name, string(value))
	}
	return append(question, "}}"...), nil
}

// result reads what a program wrote.
func result(answer []byte) tool.Output {
	text := strings.TrimSpace(strings.ToValidUTF8(string(answer), "\uFFFD"))
	if !conversation.JSON(text).Valid() {
		return tool.Text(text)
	}
	if n, err := strict.ParseJSON("", 1, []byte(text)); err == nil && n.Kind() == strict.Mapping && n.Len() == 1 && n.Get("error").Kind() == strict.String {
		return tool.Failed(n.Get("error").Text())
	}
	return tool.Output{Result: conversation.JSON(text)}
}

// mocked serves the cases of the dataset and passes on what none of them answers.
type mocked struct {
	tool.Tool
	cases []mockCase

	mu   sync.Mutex
	used []int // how often each case has served
}

type mockCase struct {
	dataset.MockCase
	args score.Arguments
}

func newMocked(inner tool.Tool, mock dataset.Mock) *mocked {
	m := &mocked{Tool: inner, used: make([]int, len(mock.Cases))}
	var p strict.Problems // the plan has looked at them
	for _, c := range mock.Cases {
		m.cases = append(m.cases, mockCase{c, score.CompileArguments(c.Args, &p)})
	}
	return m
}

// Run implements [tool.Tool].
func (m *mocked) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	if c := m.pick(call.Arguments); c != nil {
		if c.Error != "" {
			out := tool.Failed(c.Error)
			out.Source = tool.Mocked
			return out, nil
		}
		return tool.Output{Result: conversation.JSON(c.Result.JSON()), Source: tool.Mocked}, nil
	}
	return m.Tool.Run(ctx, call)
}

// pick takes the first case that matches and is not used up.
func (m *mocked) pick(arguments conversation.JSON) *dataset.MockCase {
	got, err := strict.ParseJSON("", 1, []byte(arguments))
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.cases {
		c := &m.cases[i]
		if c.Times > 0 && m.used[i] >= c.Times || !c.args.Match(got) {
			continue
		}
		m.used[i]++
		return &c.MockCase
	}
	return nil
}
