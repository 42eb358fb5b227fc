// Package trace is the record of one run of an agent: what it was given, what it asked the model, what the model answered, which tools ran and how it ended. Invariants, checks and reports read traces and nothing else.
//
// A trace is a list of events, numbered from 1 in the order in which they happened; calls that ran side by side stand in call order. The JSON form is versioned by [Version]; keys are only added, and readers ignore those they do not know.
package trace

import (
	"context"
	"sync"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

// Version is the format version of the JSON form.
const Version = 1

// Kind says what an event records and which field of [Event] it fills.
type Kind string

// The kinds of event.
const (
	KindStart    Kind = "start"    // the run begins
	KindRequest  Kind = "request"  // the agent asks the model
	KindExchange Kind = "exchange" // one HTTP request and its reply, retries included
	KindReply    Kind = "reply"    // what the model answered
	KindTool     Kind = "tool"     // a call was executed, refused or answered with an error
	KindResults  Kind = "results"  // the message with the results was added to the conversation
	KindWarning  Kind = "warning"  // something was left out or put right
	KindEnd      Kind = "end"      // the run ended
)

// Event is one thing that happened. The field of its kind is set, the others are nil.
type Event struct {
	N    int
	Kind Kind
	// Step is the model step, from 1; 0 before the first.
	Step int
	// AtMS is milliseconds since the run began, on the run's own clock.
	AtMS int64

	Start    *Start
	Request  *Request
	Exchange *Exchange
	Reply    *Reply
	Tool     *ToolRun
	Results  *Results
	Warning  *Warning
	End      *End
}

// Start is what the run was given.
type Start struct {
	Agent         string
	Model         string
	MaxIterations int
	// Input is the conversation that was passed in.
	Input []conversation.Message
	// Hidden are the names in tool_context, sorted. Values are never in the JSON form; see [Trace.Hidden].
	Hidden []string
}

// Request is what the model was asked. The messages are those of the input and of all replies and results before.
type Request struct {
	System string
	// Tools are the tools that the model was shown, in order.
	Tools []tool.Spec
	// Messages is how many messages the request held.
	Messages int
}

// Exchange is one HTTP request of a model step.
type Exchange struct {
	// Attempt counts from 1 within the step.
	Attempt    int
	Method     string
	URL        string
	Status     int // 0 where no reply came
	DurationMS int64
	// TTFTMS is the time to the first text, -1 where unknown.
	TTFTMS int64
	// Source is "live", "recorded" or "served".
	Source string
	// Interaction is the place in the cassette, from 1; 0 for none.
	Interaction int
	// Leaks are the names in tool_context whose values stood in the request.
	Leaks []string
	Error string
}

// Reply is the model's answer.
type Reply struct {
	Message conversation.Message
	// Stop is one of end, tool_calls, length, refused, other.
	Stop  string
	Model string
	// LatencyMS is the wait for the answer, without earlier attempts and the pauses between them; TTFTMS is -1 where unknown.
	LatencyMS int64
	TTFTMS    int64
	Retries   int
}

// ToolRun is one call and what came of it.
type ToolRun struct {
	Seq       int
	CallID    string
	Name      string
	Arguments conversation.JSON // as the model wrote them; may be malformed
	Effect    tool.Effect
	Scope     tool.Scope
	// Outcome says whether the tool was executed.
	Outcome    Outcome
	Source     tool.Source
	Result     conversation.JSON
	IsError    bool
	DurationMS int64
	Paths      []string
}

// Outcome says what became of a call.
type Outcome string

// The outcomes.
const (
	Executed Outcome = "executed"
	Unknown  Outcome = "unknown" // no tool of that name was visible
	Invalid  Outcome = "invalid" // the arguments were malformed or did not satisfy the schema
	Paused   Outcome = "paused"  // waits for the host
	CutOff   Outcome = "cut_off" // the run ended before it began
)

// Results is the message that carries the results of one step.
type Results struct{ Message conversation.Message }

// Warning is a named warning.
type Warning struct{ Code, Text string }

// End is how the run ended.
type End struct {
	// Stop is one of end, max_iterations, paused, refused, length, error.
	Stop  string
	Error string
	Usage conversation.Usage
	Steps int
	// Context are the digests of the messages of the conversation that was returned, in order; see [Digest].
	Context []string
	// Terminals counts the done and error events of the stream that the host saw, After the events that followed the first of them.
	Terminals, After int
	// Input are the digests of the messages that were passed in, taken again at the end.
	Input []string
}

// Trace is the record of one run.
type Trace struct {
	Events []Event
	// Hidden is the tool_context of the run. It is never encoded.
	Hidden conversation.Hidden
}

// Recorder collects the events of one run. It is safe for concurrent use; a nil Recorder records nothing.
type Recorder struct {
	mu     sync.Mutex
	clock  clock.Clock
	start  int64
	events []Event
	step   int
	begun  int // events before the current step
}

// NewRecorder returns a recorder whose run begins now.
func NewRecorder(c clock.Clock) *Recorder {
	return &Recorder{clock: c, start: c.Now().UnixMilli()}
}

// Step begins model step n: events added from now on belong to it.
func (r *Recorder) Step(n int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step, r.begun = n, len(r.events)
}

// Add numbers the event, dates it and appends it.
func (r *Recorder) Add(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.N = len(r.events) + 1
	e.Step = r.step
	// The time is taken under the lock, so that it never runs backwards along the numbers.
	e.AtMS = r.clock.Now().UnixMilli() - r.start
	r.events = append(r.events, e)
}

// Warn adds a warning.
func (r *Recorder) Warn(code, text string) {
	r.Add(Event{Kind: KindWarning, Warning: &Warning{Code: code, Text: text}})
}

// Exchanges returns the exchanges of the current step so far.
func (r *Recorder) Exchanges() []Exchange {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Exchange
	for _, e := range r.events[r.begun:] {
		if e.Exchange != nil {
			out = append(out, *e.Exchange)
		}
	}
	return out
}

// Len is the number of events so far.
func (r *Recorder) Len() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// Events returns what was recorded. The recorder must not be used afterwards.
func (r *Recorder) Events() []Event {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

type recorderKey struct{}

// WithRecorder returns a context that carries r to the transports below the model.
func WithRecorder(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// FromContext returns the recorder that ctx carries, or nil.
func FromContext(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}
