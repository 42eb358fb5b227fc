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
	"github.com/echoeval/echoeval/harness/target"
)

// Target is the thing under test. Checks, invariants and reports never know which one they look at.
type Target interface {
	// Run runs one case to its end and returns what happened. It never fails: what went wrong stands in the outcome.
	Run(ctx context.Context, c Case) Outcome
}

// Case is one item, as a target sees it.
type Case struct {
	// Start is the conversation before the first turn, with the hidden parameters.
	Start conversation.Context
	// Next gives what the user says in a turn, from 1: a message to add, or none where the conversation as it stands ends with the user's. more is false when there is no such turn. answer is what the agent said last.
	Next      func(ctx context.Context, turn int, answer string) (say []conversation.Message, more bool, err error)
	Clock     clock.Clock
	IDs       ident.Source
	Transport http.RoundTripper
	Tools     []tool.Tool
	Settings  llm.Settings
	Blocking  bool
}

// Outcome is what a target did. Err is set where the run ended in an error.
type Outcome struct {
	Trace trace.Trace
	// Response sums up all turns; its text and its way of stopping are those of the last.
	Response llm.Response
	// Turns are the answers turn by turn, with the number of events before and after each.
	Turns []TurnOutcome
	// Spent is what each answer of a model took, where the models are known by the traffic alone; nil where they are the column's.
	Spent []target.Spent
	// Untimed says that nobody knows how long models and tools took.
	Untimed bool
	Err     error
}

// TurnOutcome is what came of one turn.
type TurnOutcome struct {
	Text     string
	From, To int // events [From:To] of the trace
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
	model, err := t.Model(c.Transport)
	var a *agent.Generic
	if err == nil {
		var warnings []agent.Warning
		a, warnings, err = agent.NewGeneric(agent.Options{Config: t.Config, Model: model, ModelName: t.ModelName, Tools: c.Tools})
		for _, w := range warnings {
			recorder.Warn(w.Code, w.Text)
		}
	}
	conv := c.Start
	for turn := 1; err == nil; turn++ {
		var say []conversation.Message
		var more bool
		say, more, err = c.Next(ctx, turn, out.Response.Text)
		if err == nil && more {
			conv, err = conv.Append(say...)
		}
		if err != nil || !more {
			break
		}
		from := recorder.Len()
		conv, err = out.turn(ctx, a, c, conv, recorder, turn)
		out.Turns = append(out.Turns, TurnOutcome{Text: out.Response.Text, From: from, To: recorder.Len()})
		if out.Response.Stop == llm.RunPaused || out.Response.Stop == llm.RunMaxIterations {
			break // calls are open, or results unread: nothing can be said next
		}
	}
	out.Err = err
	out.Trace = trace.Trace{Events: recorder.Events(), Hidden: c.Start.ToolContext()}
	return out
}

// turn lets the agent answer once, adds what it did to the outcome and returns the conversation as it then stands.
func (out *Outcome) turn(ctx context.Context, a *agent.Generic, c Case, input conversation.Context, recorder *trace.Recorder, turn int) (conversation.Context, error) {
	end := &trace.End{Stop: llm.RunError}
	final := input
	var response llm.Response
	var err error
	opts := agent.RunOptions{MessageID: c.IDs.ID(turn-1, "message", 1), Clock: c.Clock, Recorder: recorder, Settings: c.Settings, Blocking: c.Blocking, CallsBefore: out.Response.Calls}
	for e := range a.RunStream(ctx, input, opts) {
		if end.Terminals > 0 {
			end.After++
		}
		if e.Type != llm.StreamDone && e.Type != llm.StreamError {
			continue
		}
		end.Terminals++
		if end.Terminals == 1 {
			err, final = e.Err, e.Context
			if e.Response != nil {
				response = *e.Response
			}
		}
	}
	if end.Terminals == 0 {
		err = fmt.Errorf("the agent's stream ended without a done or error event")
	}
	end.Stop, end.Usage, end.Steps = response.Stop, response.Usage, response.Steps
	end.Input, end.Context = trace.Digests(input), trace.Digests(final)
	if err != nil {
		end.Error = err.Error()
	}
	recorder.Add(trace.Event{Kind: trace.KindEnd, End: end})
	out.add(response)
	return final, err
}

// add joins the response of a further turn to those before.
func (out *Outcome) add(next llm.Response) {
	sum := &out.Response
	if sum.TTFTMS < 0 && next.TTFTMS >= 0 {
		sum.TTFTMS = sum.LatencyMS + next.TTFTMS
	}
	sum.Text, sum.Stop, sum.PendingToolResults = next.Text, next.Stop, next.PendingToolResults
	sum.Verbose = append(sum.Verbose, next.Verbose...)
	sum.Usage = sum.Usage.Add(next.Usage)
	sum.Steps += next.Steps
	sum.ToolCalls += next.ToolCalls
	sum.Calls += next.Calls
	sum.Retries += next.Retries
	sum.LatencyMS += next.LatencyMS
}
