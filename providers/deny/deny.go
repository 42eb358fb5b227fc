// Package deny is the model of whoever has configured none: it refuses every call and says what is missing. Code that needs a model gets it instead of nil.
package deny

import (
	"context"
	"iter"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
)

// Name is the provider's name in a dataset.
const Name = "deny"

// New returns a model each of whose calls ends in an error of code [failure.Input] that names caller, the part of the program that asked. It never sends anything.
func New(caller string) llm.Model { return model{caller} }

type model struct{ caller string }

// Stream implements [llm.Model].
func (m model) Stream(context.Context, llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		err := failure.New(failure.Input, "%s asked a model, but none is configured", m.caller)
		yield(nil, failure.WithHint(err, "name one under providers: in the dataset, or with --provider, as in --provider openai:gpt-4o-mini"))
	}
}
