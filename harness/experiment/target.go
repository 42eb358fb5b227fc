package experiment

import (
	"context"
	"fmt"
	"net/http"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/ident"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// Target is the thing under test. Checks, invariants and reports never know which one they look at.
type Target interface {
	// Run runs one case to its end and returns what happened. It never fails: what went wrong stands in the outcome.
	Run(ctx context.Context, c Case) Outcome
}

// Case is one item, as a target sees it.
type Case struct {
	Input     conversation.Context
	Clock     clock.Clock
	IDs       ident.Source
	Transport http.RoundTripper
	Tools     []tool.Tool
	Settings  llm.Settings
	Blocking  bool
}

// Outcome is what a target did. Err is set where the run ended in an error.
type Outcome struct {
	Trace    trace.Trace
	Response llm.Response
	Err      error
}

// AgentTarget runs the built-in agent.
type AgentTarget struct {
	Config agent.Config
	// Model builds the model over the transport of one item.
	Model func(http.RoundTripper) (llm.Model, error)
	// ModelName is written into traces.
	ModelName string
}

// Run implements [Target].
func (t AgentTarget) Run(ctx context.Context, c Case) Outcome {
	recorder := trace.NewRecorder(c.Clock)
	out := Outcome{Response: llm.Response{Stop: llm.RunError, TTFTMS: -1}}
	end := &trace.End{Stop: llm.RunError}
	final := c.Input

	model, err := t.Model(c.Transport)
	var a *agent.Generic
	if err == nil {
		var warnings []agent.Warning
		a, warnings, err = agent.NewGeneric(agent.Options{Config: t.Config, Model: model, ModelName: t.ModelName, Tools: c.Tools})
		for _, w := range warnings {
			recorder.Warn(w.Code, w.Text)
		}
	}
	if err != nil {
		out.Err = err
	} else {
		opts := agent.RunOptions{MessageID: c.IDs.ID(0, "message", 1), Clock: c.Clock, Recorder: recorder, Settings: c.Settings, Blocking: c.Blocking}
		for e := range a.RunStream(ctx, c.Input, opts) {
			if end.Terminals > 0 {
				end.After++
			}
			if e.Type != llm.StreamDone && e.Type != llm.StreamError {
				continue
			}
			end.Terminals++
			if end.Terminals == 1 {
				out.Err, final = e.Err, e.Context
				if e.Response != nil {
					out.Response = *e.Response
				}
			}
		}
		if end.Terminals == 0 {
			out.Err = fmt.Errorf("the agent's stream ended without a done or error event")
		}
	}
	end.Stop, end.Usage, end.Steps = out.Response.Stop, out.Response.Usage, out.Response.Steps
	end.Input, end.Context = trace.Digests(c.Input), trace.Digests(final)
	if out.Err != nil {
		end.Error = out.Err.Error()
	}
	recorder.Add(trace.Event{Kind: trace.KindEnd, End: end})
	out.Trace = trace.Trace{Events: recorder.Events(), Hidden: c.Input.ToolContext()}
	return out
}
