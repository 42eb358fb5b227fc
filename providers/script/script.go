// Package script is a model that answers from a list: step 1 is its first answer, step 2 the second. It serves tests, and datasets that try out an agent without a vendor. It sends nothing, and equal scripts give equal answers, ids included.
//
//	m := script.New(script.Calls(script.Call{Name: "read_file", Arguments: `{"path":"a.txt"}`}), script.Text("done"))
package script

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"sync"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
)

// Name is the provider's name in a dataset.
const Name = "script"

// Step is one answer: a text, calls, or both, or an error alone.
type Step struct {
	// Reasoning is what the model shows of its thoughts.
	Reasoning string
	Text      string
	Calls     []Call
	// Stop is why the answer ended; by default tool_calls where there are calls, else end.
	Stop llm.StopReason
	// Usage are the tokens; zero by default.
	Usage conversation.Usage
	// Err ends the answer after what stands before it.
	Err error
}

// Call is one tool call. An empty ID is replaced by one that is derived from the place in the script and the name.
type Call struct {
	ID        string
	Name      string
	Arguments conversation.JSON
}

// Text returns a step that answers with a text.
func Text(text string) Step { return Step{Text: text} }

// Calls returns a step that calls tools.
func Calls(calls ...Call) Step { return Step{Calls: calls} }

// Fail returns a step that fails.
func Fail(err error) Step { return Step{Err: err} }

// New returns a model that gives the steps in order, one for each request, whatever is asked. A request beyond the last is an error. One model serves one run: its place in the script is its own. It is safe for concurrent use.
func New(steps ...Step) *Model { return &Model{steps: steps} }

// Model is a scripted model.
type Model struct {
	steps []Step

	mu       sync.Mutex
	requests []llm.Request
}

// Requests returns what the model was asked so far.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[:len(m.requests):len(m.requests)]
}

// Stream implements [llm.Model]. The step is taken when the iteration begins.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if ctx.Err() != nil {
			yield(nil, &llm.Error{Vendor: Name, Err: context.Cause(ctx)})
			return
		}
		m.mu.Lock()
		m.requests = append(m.requests, req)
		n := len(m.requests)
		m.mu.Unlock()
		if n > len(m.steps) {
			err := failure.New(failure.Input, "the script has no answer to request %d: its steps end at %d", n, len(m.steps))
			yield(nil, failure.WithHint(err, "add a step to the script, or lower max_iterations"))
			return
		}
		m.steps[n-1].play(n, yield)
	}
}

func (s Step) play(n int, yield func(llm.Event, error) bool) {
	if s.Reasoning != "" && !yield(llm.ReasoningDelta{Text: s.Reasoning}, nil) {
		return
	}
	if s.Text != "" && !yield(llm.TextDelta{Text: s.Text}, nil) {
		return
	}
	for i, c := range s.Calls {
		id := c.ID
		if id == "" {
			id = callID(n, i, c.Name)
		}
		if !yield(llm.CallStart{Index: i, ID: id, Name: c.Name}, nil) {
			return
		}
		if c.Arguments != "" && !yield(llm.CallDelta{Index: i, Arguments: string(c.Arguments)}, nil) {
			return
		}
	}
	if s.Err != nil {
		yield(nil, s.Err)
		return
	}
	stop := s.Stop
	if stop == "" {
		stop = llm.StopEnd
		if len(s.Calls) > 0 {
			stop = llm.StopToolCalls
		}
	}
	yield(llm.Finish{Stop: stop, Usage: s.Usage, Model: Name}, nil)
}

func callID(step, index int, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", step, index, name))
	return "call_" + hex.EncodeToString(sum[:12])
}
