// Package agent is the agent itself: a configuration (persona, task, tools) that becomes a system prompt and a set of visible tools, and the runs over it.
//
// [Generic] is what most programs use. A custom agent embeds [Base], which holds the registry, the model and the composition of the prompt, and brings its own Run and RunStream. Both never let an error escape: Run returns it in its [Result], RunStream
// ends with exactly one done or error event.
package agent

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// Agent goes on with a conversation.
type Agent interface {
	Name() string
	// RunStream yields what happens as it happens and ends with exactly one event of type done or error. It is used once.
	RunStream(ctx context.Context, input conversation.Context, opts RunOptions) iter.Seq[llm.StreamEvent]
}

// RunOptions are what one run needs besides the conversation. The zero value runs on the wall clock and records nothing.
type RunOptions struct {
	// MessageID becomes the id of every message of the turn. Where it is empty NewID gives one.
	MessageID string
	// NewID makes an id for a purpose; nil makes ids that count within the conversation.
	NewID    func(purpose string) string
	Clock    clock.Clock
	Recorder *trace.Recorder
	Settings llm.Settings
	Blocking bool
	// CallsBefore is how many tool calls the earlier turns of the conversation made.
	CallsBefore int
}

// Result is how a run ended. Where Err is set, Response and Context hold what came before it.
type Result struct {
	Agent    string
	Response llm.Response
	Context  conversation.Context
	Err      error
}

// Base holds what every agent has. It is immutable after [NewBase] and safe for concurrent runs.
type Base struct {
	config   Config
	model    llm.Model
	modelID  string
	registry *tool.Registry
	visible  *tool.Registry
}

// Options are the parts of a [Base].
type Options struct {
	Config Config
	Model  llm.Model
	// ModelName is written into traces.
	ModelName string
	// Tools are what Config.Tools may name. Where Config.Tools is nil the agent has all of them.
	Tools []tool.Tool
}

// Warning is something that was dropped while an agent was built and that its user should know.
type Warning struct{ Code, Text string }

// NewBase builds the registry and checks the configuration: a tool that Config names and Options do not hold is an error, a duplicate is dropped with a warning.
func NewBase(o Options) (*Base, []Warning, error) {
	if strings.TrimSpace(o.Config.Task.Description) == "" {
		return nil, nil, fmt.Errorf("agent %q: a task description is required", o.Config.Name)
	}
	all, notes, err := tool.NewRegistry(o.Tools...)
	if err != nil {
		return nil, nil, fmt.Errorf("agent %q: %w", o.Config.Name, err)
	}
	var warnings []Warning
	for _, n := range notes {
		warnings = append(warnings, Warning{Code: n.Code, Text: n.Text})
	}
	registry := all
	if o.Config.Tools != nil {
		if registry, err = pick(all, o.Config.Tools); err != nil {
			return nil, nil, fmt.Errorf("agent %q: tools: %w", o.Config.Name, err)
		}
	}
	visible := registry
	if names := o.Config.BaseToolNames; names != nil {
		if visible, err = pick(registry, *names); err != nil {
			return nil, nil, fmt.Errorf("agent %q: base_tool_names: %w", o.Config.Name, err)
		}
	}
	return &Base{config: o.Config, model: o.Model, modelID: o.ModelName, registry: registry, visible: visible}, warnings, nil
}

// pick returns the named tools of a registry, in the registry's order.
func pick(r *tool.Registry, names []string) (*tool.Registry, error) {
	for _, name := range names {
		if _, _, ok := r.Lookup(name); !ok {
			return nil, unknownTool(name, r)
		}
	}
	return r.Select(func(s tool.Spec) bool { return slices.Contains(names, s.Name) }), nil
}

func unknownTool(name string, r *tool.Registry) error {
	var names []string
	for spec := range r.All() {
		names = append(names, spec.Name)
	}
	err := failure.New(failure.Input, "unknown tool %q", name)
	if near, ok := tool.Nearest(name, names); ok {
		return failure.WithHint(err, "did you mean %q?", near)
	}
	return failure.WithHint(err, "choose among %s", strings.Join(names, ", "))
}

// Name is the agent's name.
func (b *Base) Name() string {
	if b.config.Name == "" {
		return "agent"
	}
	return b.config.Name
}

// Registry holds all tools of the agent.
func (b *Base) Registry() *tool.Registry { return b.registry }

// VisibleTools are the tools that the model sees.
func (b *Base) VisibleTools() *tool.Registry { return b.visible }

// SystemPrompt is the prompt that the model gets: role, goal, backstory, task and expected output, each where it is set.
func (b *Base) SystemPrompt() string { return b.config.Prompt() }

// Prompt composes the base prompt.
func (c Config) Prompt() string {
	parts := make([]string, 0, 5)
	add := func(prefix, text string) {
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, prefix+text)
		}
	}
	add("You are a ", c.Persona.Role)
	add("Your goal is: ", c.Persona.Goal)
	add("Backstory: ", c.Persona.Backstory)
	add("", c.Task.Description)
	add("Expected Output: ", c.Task.ExpectedOutput)
	return strings.Join(parts, "\n\n")
}

// Stream runs the loop over the agent's model, prompt and visible tools. A panic below it becomes the error event.
func (b *Base) Stream(ctx context.Context, input conversation.Context, opts RunOptions) iter.Seq[llm.StreamEvent] {
	loop := &llm.Loop{
		Model:         b.model,
		Agent:         b.Name(),
		Name:          b.modelID,
		Prepare:       func(context.Context, int) (llm.Step, error) { return b.step(), nil },
		Settings:      opts.Settings,
		Blocking:      opts.Blocking,
		MaxIterations: b.config.MaxIterations,
		CallsBefore:   opts.CallsBefore,
		Clock:         opts.Clock,
		Recorder:      opts.Recorder,
	}
	return guarded(input, loop.Run(ctx, input, messageID(input, opts)))
}

func (b *Base) step() llm.Step {
	step := llm.Step{System: b.SystemPrompt()}
	if b.visible.Len() > 0 {
		step.Tools = b.visible
	}
	return step
}

func messageID(input conversation.Context, opts RunOptions) string {
	switch {
	case opts.MessageID != "":
		return opts.MessageID
	case opts.NewID != nil:
		return opts.NewID("message")
	}
	return fmt.Sprintf("message-%d", input.Len()+1)
}

// guarded passes a stream on up to its first terminal event and makes up an error event where the stream panics or ends without one.
func guarded(input conversation.Context, stream iter.Seq[llm.StreamEvent]) iter.Seq[llm.StreamEvent] {
	return func(yield func(llm.StreamEvent) bool) {
		ended, inHost := false, false
		fail := func(err error) {
			ended = true
			yield(llm.StreamEvent{Type: llm.StreamError, Err: err, Response: &llm.Response{Stop: llm.RunError, TTFTMS: -1}, Context: input})
		}
		defer func() {
			if inHost || ended {
				return // a panic of the host is the host's
			}
			if p := recover(); p != nil {
				fail(fmt.Errorf("the agent crashed: %v", p))
			}
		}()
		for e := range stream {
			terminal := e.Type == llm.StreamDone || e.Type == llm.StreamError
			inHost = true
			goOn := yield(e)
			inHost = false
			if terminal || !goOn {
				ended = true
				return
			}
		}
		fail(fmt.Errorf("the agent's stream ended without a done or error event"))
	}
}

// Generic is the agent that a configuration describes.
type Generic struct{ *Base }

// NewGeneric builds an agent; see [NewBase] for what is checked.
func NewGeneric(o Options) (*Generic, []Warning, error) {
	base, warnings, err := NewBase(o)
	if err != nil {
		return nil, nil, err
	}
	return &Generic{Base: base}, warnings, nil
}

// RunStream implements [Agent].
func (g *Generic) RunStream(ctx context.Context, input conversation.Context, opts RunOptions) iter.Seq[llm.StreamEvent] {
	return g.Stream(ctx, input, opts)
}

// Run runs to the end.
func (g *Generic) Run(ctx context.Context, input conversation.Context, opts RunOptions) Result {
	return Run(ctx, g, input, opts)
}

// Run drains the stream of any agent into a result. Agents that break the rule of one terminal event give an error result.
func Run(ctx context.Context, a Agent, input conversation.Context, opts RunOptions) Result {
	result := Result{Agent: a.Name(), Context: input}
	for e := range guarded(input, a.RunStream(ctx, input, opts)) {
		if e.Type != llm.StreamDone && e.Type != llm.StreamError {
			continue
		}
		result.Context, result.Err = e.Context, e.Err
		if e.Response != nil {
			result.Response = *e.Response
		}
	}
	return result
}
