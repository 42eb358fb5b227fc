// Package tool is the contract between an agent and what it can do: the [Tool] itself, the [Registry] that holds the tools of an agent, the check of a model's arguments against a tool's JSON Schema, and the conversion of that schema to the
// forms that the vendors take.
package tool

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
)

// Effect says what running a tool does to the world.
type Effect string

// The effects, from harmless to not. Only pure and read calls may run side by side.
const (
	Pure         Effect = "pure"         // depends on its arguments alone
	Read         Effect = "read"         // looks at the world
	Write        Effect = "write"        // changes it in a way that can be put back
	Irreversible Effect = "irreversible" // a payment, a message
)

// Parallel reports whether calls of this effect may run at the same time as others of such effects.
func (e Effect) Parallel() bool { return e == Pure || e == Read }

// Scope says which world a tool touches.
type Scope string

// The scopes. Workspace tools run again in a replay, external ones are served from the recording.
const (
	Workspace Scope = "workspace"
	External  Scope = "external"
)

// Spec describes a tool to a model and to the harness.
type Spec struct {
	// Name is 1 to 64 of A-Z a-z 0-9 _ and -. A tool answers to it alone.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments, an object schema.
	Parameters conversation.JSON
	Effect     Effect
	Scope      Scope
}

// Hidden is the read-only view that a tool has of the conversation's tool_context.
type Hidden struct{ values conversation.Hidden }

// NewHidden returns a view of a copy of values.
func NewHidden(values conversation.Hidden) Hidden { return Hidden{values: maps.Clone(values)} }

// Get returns the JSON text of one value.
func (h Hidden) Get(name string) (conversation.JSON, bool) { v, ok := h.values[name]; return v, ok }

// All iterates over the values, sorted by name.
func (h Hidden) All() iter.Seq2[string, conversation.JSON] {
	return func(yield func(string, conversation.JSON) bool) {
		for _, name := range slices.Sorted(maps.Keys(h.values)) {
			if !yield(name, h.values[name]) {
				return
			}
		}
	}
}

// Call is one call of a tool.
type Call struct {
	ID   string
	Name string
	// Arguments is a JSON object that satisfies the tool's schema.
	Arguments conversation.JSON
	Hidden    Hidden
	// Seq counts the calls of a run in the order in which the model made them, from 1.
	Seq int
	// At is when the call began. Calls that run side by side began at the same time.
	At time.Time
}

// Flow says how the loop goes on after a call.
type Flow string

// The flows. The zero value is Continue.
const (
	Continue  Flow = ""          // the result goes back to the model
	Pause     Flow = "pause"     // the run ends and the host answers the call later
	Interrupt Flow = "interrupt" // the result is kept, and the agent rebuilds its prompt and tools before it goes on
)

// Output is what a tool gives back.
type Output struct {
	// Result is any JSON value; a JSON string reaches the model as its text.
	Result conversation.JSON
	// IsError marks a failure that the model should see and may repair.
	IsError bool
	// Meta is data about the result that no model sees; "" for none.
	Meta conversation.JSON
	Flow Flow
	// Paths are the files that the call touched, relative to the workspace with slashes, sorted.
	Paths []string
	// Source says where the output came from; the tool itself leaves it empty, what stands in for the tool fills it.
	Source Source
	// Took is how long the call took on the run's clock. It is read where Source is set; else the loop measures.
	Took time.Duration
}

// Source says where an output came from.
type Source string

// The sources of an output.
const (
	Ran    Source = "ran"
	Served Source = "served" // from a recording
	Mocked Source = "mocked"
)

// Text returns an output whose result is a text.
func Text(text string) Output { return Output{Result: conversation.String(text)} }

// Failed returns an output that tells the model of a failure. The text is the model's to read: no host path and no secret belongs in it.
func Failed(text string) Output { return Output{Result: conversation.String(text), IsError: true} }

// AbortError is an error of the host, not of the call: a workspace that cannot be made, say. It ends the run; no model is told of it and no recording keeps it.
type AbortError struct{ Err error }

// Error gives the cause.
func (e *AbortError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Err }

// Tool does something for an agent. Run may be called from several goroutines at once. A returned error becomes an error result for the model; only an [AbortError] ends the run. Run must return soon after ctx ends.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, call Call) (Output, error)
}
