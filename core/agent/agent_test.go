package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

func TestAgent(t *testing.T) { suite.Run(t, "agent") }

// model answers with what the function returns.
type model func(llm.Request) ([]llm.Event, error)

func (m model) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		events, err := m(req)
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func saying(text string) model {
	return func(llm.Request) ([]llm.Event, error) {
		return []llm.Event{llm.TextDelta{Text: text}, llm.Finish{Stop: llm.StopEnd}}, nil
	}
}

type named string

func (n named) Spec() tool.Spec {
	return tool.Spec{Name: string(n), Parameters: `{"type":"object","properties":{}}`, Effect: tool.Read, Scope: tool.Workspace}
}

func (n named) Run(context.Context, tool.Call) (tool.Output, error) {
	return tool.Text("from " + string(n)), nil
}

func hello() conversation.Context {
	c, _ := conversation.New(nil).Append(conversation.User("u", conversation.Text{Text: "hello"}))
	return c
}

var _ = Describe("the base prompt", func() {
	It("holds role, goal, backstory, task and expected output in this order", func() {
		full := agent.Config{Persona: agent.Persona{Role: "nurse", Goal: "help", Backstory: "Ten years at sea."}, Task: agent.Task{Description: "Answer.\nBriefly.", ExpectedOutput: "one line"}}
		bare := agent.Config{Task: agent.Task{Description: "  Answer.  "}}
		suite.Golden("prompt.txt", []byte(full.Prompt()+"\n---\n"+bare.Prompt()+"\n"))
	})

	It("reaches the model with the goal in it", func(ctx context.Context) {
		var seen llm.Request
		g, _, err := agent.NewGeneric(agent.Options{
			Config: agent.Config{Persona: agent.Persona{Goal: "mend boats"}, Task: agent.Task{Description: "Mend."}},
			Model:  model(func(r llm.Request) ([]llm.Event, error) { seen = r; return saying("ok")(r) }),
		})
		Expect(err).NotTo(HaveOccurred())
		g.Run(ctx, hello(), agent.RunOptions{})
		Expect(seen.System).To(ContainSubstring("Your goal is: mend boats"))
		Expect(seen.Tools).To(BeEmpty())
	})
})

var _ = Describe("visible tools", func() {
	build := func(tools []string, base *[]string) (*agent.Generic, error) {
		g, _, err := agent.NewGeneric(agent.Options{
			Config: agent.Config{Task: agent.Task{Description: "x"}, Tools: tools, BaseToolNames: base},
			Model:  saying(""), Tools: []tool.Tool{named("a"), named("b"), named("c")},
		})
		return g, err
	}
	names := func(g *agent.Generic) (out []string) {
		for spec := range g.VisibleTools().All() {
			out = append(out, spec.Name)
		}
		return out
	}
	DescribeTable("by the configuration", func(tools []string, base *[]string, want []string) {
		g, err := build(tools, base)
		Expect(err).NotTo(HaveOccurred())
		Expect(names(g)).To(Equal(want))
	},
		Entry("all where nothing is said", nil, nil, []string{"a", "b", "c"}),
		Entry("the named ones", []string{"c", "a"}, nil, []string{"a", "c"}),
		Entry("none by an empty list of base tools", []string{"a"}, &[]string{}, nil),
		Entry("the base tools alone", []string{"a", "b"}, &[]string{"b"}, []string{"b"}),
		Entry("none by an empty list of tools", []string{}, nil, nil),
	)

	It("refuses a tool that is not there and suggests the nearest", func() {
		_, err := build([]string{"aa"}, nil)
		Expect(err).To(MatchError(ContainSubstring(`unknown tool "aa"`)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).To(ContainElement(`did you mean "a"?`))
		_, err = build([]string{"a"}, &[]string{"b"})
		Expect(err).To(MatchError(ContainSubstring("base_tool_names")))
	})

	It("keeps the first of two tools of a name, with a warning", func() {
		g, warnings, err := agent.NewGeneric(agent.Options{Config: agent.Config{Task: agent.Task{Description: "x"}}, Model: saying(""), Tools: []tool.Tool{named("a"), named("a")}})
		Expect(err).NotTo(HaveOccurred())
		Expect(names(g)).To(Equal([]string{"a"}))
		Expect(warnings).To(HaveLen(1))
	})

	It("does not follow changes of the caller's list", func() {
		tools := []tool.Tool{named("a"), named("b")}
		g, _, err := agent.NewGeneric(agent.Options{Config: agent.Config{Task: agent.Task{Description: "x"}}, Model: saying(""), Tools: tools})
		Expect(err).NotTo(HaveOccurred())
		tools[0] = named("z")
		Expect(names(g)).To(Equal([]string{"a", "b"}))
	})

	It("needs a task", func() {
		_, _, err := agent.NewGeneric(agent.Options{Config: agent.Config{Task: agent.Task{Description: " "}}, Model: saying("")})
		Expect(err).To(MatchError(ContainSubstring("task description is required")))
	})
})

// custom is an agent of somebody else that embeds Base and breaks the rules of a stream as its field says.
type custom struct {
	*agent.Base
	breaks string
}

func (c custom) RunStream(ctx context.Context, input conversation.Context, opts agent.RunOptions) iter.Seq[llm.StreamEvent] {
	return func(yield func(llm.StreamEvent) bool) {
		done := llm.StreamEvent{Type: llm.StreamDone, Response: &llm.Response{Text: "first"}, Context: input}
		switch c.breaks {
		case "panics":
			panic("oh")
		case "ends early":
			yield(llm.StreamEvent{Type: llm.StreamText, Text: "x"})
		case "goes on":
			if yield(done) {
				yield(llm.StreamEvent{Type: llm.StreamError, Err: errors.New("late"), Context: input})
			}
		default:
			for e := range c.Stream(ctx, input, opts) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

var _ = Describe("a run", func() {
	It("returns a new context and bears the id that it was given", func(ctx context.Context) {
		g, _, err := agent.NewGeneric(agent.Options{Config: agent.Config{Name: "n", Task: agent.Task{Description: "x"}}, Model: saying("hi")})
		Expect(err).NotTo(HaveOccurred())
		in := hello()
		r := g.Run(ctx, in, agent.RunOptions{MessageID: "out-1"})
		Expect(r.Err).NotTo(HaveOccurred())
		Expect(r.Agent).To(Equal("n"))
		Expect(r.Context.HasPrefix(in)).To(BeTrue())
		Expect(r.Context.Message(1).ID()).To(Equal("out-1"))
		r = g.Run(ctx, in, agent.RunOptions{NewID: func(purpose string) string { return purpose + "-7" }})
		Expect(r.Context.Message(1).ID()).To(Equal("message-7"))
	})

	It("turns an error and a panic of the model into the result", func(ctx context.Context) {
		for _, m := range []model{
			func(llm.Request) ([]llm.Event, error) { return nil, errors.New("no network") },
			func(llm.Request) ([]llm.Event, error) { panic("no network") },
		} {
			g, _, err := agent.NewGeneric(agent.Options{Config: agent.Config{Task: agent.Task{Description: "x"}}, Model: m})
			Expect(err).NotTo(HaveOccurred())
			r := g.Run(ctx, hello(), agent.RunOptions{})
			Expect(r.Err).To(MatchError(ContainSubstring("no network")))
			Expect(r.Context.Len()).To(Equal(1))
			var terminals int
			for e := range g.RunStream(ctx, hello(), agent.RunOptions{}) {
				if e.Type == llm.StreamDone || e.Type == llm.StreamError {
					terminals++
				}
			}
			Expect(terminals).To(Equal(1))
		}
	})

	DescribeTable("holds custom agents to one terminal event", func(ctx context.Context, breaks, wantText, wantErr string) {
		base, _, err := agent.NewBase(agent.Options{Config: agent.Config{Task: agent.Task{Description: "x"}}, Model: saying("hi")})
		Expect(err).NotTo(HaveOccurred())
		r := agent.Run(ctx, custom{Base: base, breaks: breaks}, hello(), agent.RunOptions{})
		Expect(r.Response.Text).To(Equal(wantText))
		if wantErr == "" {
			Expect(r.Err).NotTo(HaveOccurred())
		} else {
			Expect(r.Err).To(MatchError(ContainSubstring(wantErr)))
		}
	},
		Entry(nil, "", "hi", ""),
		Entry(nil, "panics", "", "crashed"),
		Entry(nil, "ends early", "", "without a done or error"),
		Entry(nil, "goes on", "first", ""),
	)

	It("leaves a panic of the host to the host", func(ctx context.Context) {
		g, _, err := agent.NewGeneric(agent.Options{Config: agent.Config{Task: agent.Task{Description: "x"}}, Model: saying("hi")})
		Expect(err).NotTo(HaveOccurred())
		Expect(func() {
			for range g.RunStream(ctx, hello(), agent.RunOptions{}) {
				panic("the host's own")
			}
		}).To(PanicWith("the host's own"))
	})
})

var _ = Describe("an agent file", func() {
	load := func(text string) (agent.Config, error) {
		path := filepath.Join(GinkgoT().TempDir(), "a.yaml")
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return agent.Load(path)
	}

	It("is read whole", func() {
		c, err := load("name: clerk\npersona: {role: r, goal: g, backstory: b}\ntask: {description: d, expected_output: e}\ntools: [read_file]\nbase_tool_names: []\nmax_iterations: 3\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(c).To(Equal(agent.Config{Name: "clerk", Persona: agent.Persona{Role: "r", Goal: "g", Backstory: "b"}, Task: agent.Task{Description: "d", ExpectedOutput: "e"}, Tools: []string{"read_file"}, BaseToolNames: &[]string{}, MaxIterations: 3}))
	})

	DescribeTable("tells what is wrong and where", func(text, place, message string) {
		_, err := load(text)
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err.Error()).To(ContainSubstring(place))
		Expect(failure.Render(err)).To(ContainSubstring(message))
	},
		Entry("a misspelt key", "task: {description: d}\ntolls: [a]\n", ":2:1", `did you mean "tools"?`),
		Entry("a missing task", "name: x\n", ":1:1", "task"),
		Entry("a key of a later version", "task: {description: d}\nskills: []\n", ":2:1", "not read by this version"),
		Entry("a bad bound", "task: {description: d}\nmax_iterations: -1\n", ":2:17", "from 1"),
		Entry("a wrong type", "task: {description: d}\ntools: read_file\n", ":2:8", "list"),
	)
})

func ExampleNewGeneric() {
	greeter, _, err := agent.NewGeneric(agent.Options{
		Config: agent.Config{Name: "greeter", Task: agent.Task{Description: "Greet."}},
		Model:  saying("Good morning!"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result := greeter.Run(context.Background(), hello(), agent.RunOptions{MessageID: "m1"})
	fmt.Println(result.Response.Text)
	// Output: Good morning!
}

// shouting embeds Base and changes what its hosts see.
type shouting struct{ *agent.Base }

func (s shouting) RunStream(ctx context.Context, input conversation.Context, opts agent.RunOptions) iter.Seq[llm.StreamEvent] {
	return func(yield func(llm.StreamEvent) bool) {
		for e := range s.Stream(ctx, input, opts) {
			if e.Response != nil {
				e.Response.Text = strings.ToUpper(e.Response.Text)
			}
			if !yield(e) {
				return
			}
		}
	}
}

func ExampleBase() {
	base, _, err := agent.NewBase(agent.Options{
		Config: agent.Config{Task: agent.Task{Description: "Greet."}},
		Model:  saying("good morning"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.Run(context.Background(), shouting{base}, hello(), agent.RunOptions{}).Response.Text)
	// Output: GOOD MORNING
}
