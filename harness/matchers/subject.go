package matchers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
)

// Outcome is what one item left behind on one provider: the line of its results, and the trace of its run.
type Outcome struct {
	Result eval.Result
	// Trace has no events where none was kept.
	Trace trace.Trace
}

// String names the item, for what Gomega prints.
func (o Outcome) String() string {
	return plain(fmt.Sprintf("item %s on %s", o.Result.Item, o.Result.Provider))
}

// GomegaString is what Gomega's own matchers print of an outcome, in place of every field.
func (o Outcome) GomegaString() string { return o.String() }

// subject is what the matchers look at, whatever it was given as.
type subject struct {
	trace trace.Trace
	// messages is the conversation where there is no trace of a run.
	messages []conversation.Message
	// result is nil where there is no line of results.
	result *eval.Result
}

// of reads the actual value of an assertion.
func of(actual any) (subject, error) {
	switch a := actual.(type) {
	case Outcome:
		return subject{trace: a.Trace, result: &a.Result}, nil
	case *Outcome:
		if a != nil {
			return of(*a)
		}
	case trace.Trace:
		return subject{trace: a}, nil
	case *trace.Trace:
		if a != nil {
			return of(*a)
		}
	case []trace.Event:
		return subject{trace: trace.Trace{Events: a}}, nil
	case conversation.Context:
		s := said(slices.Collect(second(a)))
		s.trace.Hidden = a.ToolContext()
		return s, nil
	case []conversation.Message:
		return said(a), nil
	}
	return subject{}, fmt.Errorf("got a %T: want a matchers.Outcome, a trace.Trace, a conversation.Context or a list of its messages", actual)
}

func second(c conversation.Context) func(yield func(conversation.Message) bool) {
	return func(yield func(conversation.Message) bool) {
		for _, m := range c.Messages() {
			if !yield(m) {
				return
			}
		}
	}
}

// said is a conversation that nobody traced: for invariants it is the input of a run that did nothing yet.
func said(messages []conversation.Message) subject {
	if len(messages) == 0 {
		return subject{}
	}
	start := trace.Event{N: 1, Kind: trace.KindStart, Start: &trace.Start{Input: messages}}
	return subject{trace: trace.Trace{Events: []trace.Event{start}}, messages: messages}
}

// call is a tool call of the model and what came of it.
type call struct {
	conversation.ToolCall
	answered bool
	result   conversation.ToolResult
}

// calls returns the calls in the model's replies, in order. Those in the conversation that a run was given are not the model's. It is an error where nobody saw a model reply: then nobody knows what it called.
func (s subject) calls() ([]call, error) {
	var out []call
	seen := false
	open := 0 // calls before it belong to earlier replies
	take := func(m conversation.Message) {
		switch m.Role() {
		case conversation.RoleAssistant:
			seen, open = true, len(out)
			for _, c := range m.ToolCalls() {
				out = append(out, call{ToolCall: c})
			}
		case conversation.RoleTool:
			for _, p := range m.Parts() {
				r, ok := p.(conversation.ToolResult)
				if !ok {
					continue
				}
				for i := open; i < len(out); i++ {
					if c := &out[i]; c.ID == r.ID && !c.answered {
						c.answered, c.result = true, r
						break
					}
				}
			}
		}
	}
	for _, m := range s.messages {
		take(m)
	}
	if s.messages == nil {
		for _, e := range s.trace.Events {
			switch {
			case e.Reply != nil:
				take(e.Reply.Message)
			case e.Results != nil:
				take(e.Results.Message)
			}
		}
	}
	if !seen {
		return nil, fmt.Errorf("%s holds no reply of a model, so nobody knows which tools it called", s.name())
	}
	return out, nil
}

// answer is the text of the model's last reply.
func (s subject) answer() (string, error) {
	text, seen := "", false
	for _, m := range s.messages {
		if m.Role() == conversation.RoleAssistant {
			text, seen = m.Text(), true
		}
	}
	if s.messages == nil {
		for _, e := range s.trace.Events {
			if e.Reply != nil {
				text, seen = e.Reply.Message.Text(), true
			}
		}
	}
	switch {
	case seen:
		return text, nil
	case s.result != nil && s.result.Output != nil:
		return *s.result.Output, nil // of a program whose models nobody saw
	}
	return "", fmt.Errorf("%s holds no reply of a model", s.name())
}

func (s subject) name() string {
	switch {
	case s.result != nil:
		return plain("the trace of item " + s.result.Item)
	case s.messages != nil:
		return "the conversation"
	}
	return "the trace"
}

// listed shows the calls, one to a line.
func listed(calls []call) string {
	if len(calls) == 0 {
		return "the model called no tool"
	}
	var b strings.Builder
	b.WriteString("the model's calls:")
	for i, c := range calls {
		if i == mostCalls {
			fmt.Fprintf(&b, "\n  … and %d more", len(calls)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %d. %s", i+1, c)
	}
	return b.String()
}

// shown shows the calls where they are known.
func (s subject) shown() string {
	calls, err := s.calls()
	if err != nil {
		return err.Error()
	}
	return listed(calls)
}

// Bounds on what a message shows.
const (
	mostCalls = 50  // calls, and reasons why one of the name is not the one that is looked for
	mostText  = 300 // characters of arguments and of a result
)

// String is the call on one line, with its result.
func (c call) String() string {
	input := string(c.Input)
	if input == "" {
		input = "{}"
	}
	out := plain(c.Name) + " " + short(input)
	switch {
	case !c.answered:
		return out + " -> no result"
	case c.result.IsError:
		return out + " -> error: " + short(c.result.ResultText())
	}
	return out + " -> " + short(c.result.ResultText())
}
