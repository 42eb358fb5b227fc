package invariant

import (
	"fmt"
	"iter"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/trace"
)

// view is one run of a trace with what several rules need, gathered once.
type view struct {
	events  []trace.Event
	hidden  conversation.Hidden
	live    bool // the trace is in memory: nothing is redacted
	secrets *secret.Detector

	start, end *trace.Event // nil where the trace has none
	messages   []placed     // the conversation: input, replies and results
	texts      []text       // everything that a model reads or writes
	calls      int          // tool calls in messages
	results    int          // tool results in messages
}

// placed is a message and the number of the event that it came with.
type placed struct {
	*conversation.Message
	event int
}

// text is a piece of text and where it stands.
type text struct {
	text  string
	kind  place
	event int
	id    string // of the call, for arguments and results
	tool  string
	role  conversation.Role
}

// place says what a text is.
type place uint8

const (
	inMessage place = iota
	inSystem
	inDescription
	inSchema
	inArguments
	inResult
	inMeta
)

// json reports whether a text is JSON by its place.
func (p place) json() bool { return p >= inArguments }

// String says where the text stands, for evidence.
func (t text) String() string {
	call := func(what string) string {
		s := fmt.Sprintf("the %s of call %s", what, quote(t.id))
		if t.tool != "" {
			s += " of " + quote(t.tool)
		}
		return s
	}
	switch t.kind {
	case inSystem:
		return "the system prompt"
	case inDescription:
		return "the description of tool " + quote(t.tool)
	case inSchema:
		return "the schema of tool " + quote(t.tool)
	case inArguments:
		return call("arguments")
	case inResult:
		return call("result")
	case inMeta:
		return call("result's meta")
	}
	return fmt.Sprintf("a message of the %s", t.role)
}

// views splits a trace into its runs; there is at least one, which may be empty.
func (s *Set) views(t trace.Trace) []view {
	views := make([]view, 0, 1)
	from := 0
	started := false
	for i := range t.Events {
		if t.Events[i].Start == nil {
			continue
		}
		if started {
			views = append(views, s.view(t, t.Events[from:i]))
			from = i
		}
		started = true
	}
	return append(views, s.view(t, t.Events[from:]))
}

func (s *Set) view(t trace.Trace, events []trace.Event) view {
	v := view{events: events, hidden: t.Hidden, live: t.Hidden != nil, secrets: &s.Secrets}
	size := len(events)
	if len(events) > 0 && events[0].Start != nil {
		size += len(events[0].Start.Input)
	}
	v.messages = make([]placed, 0, size)
	v.texts = make([]text, 0, 3*size)
	var system string
	var open []*trace.Event
	for i := range events {
		e := &events[i]
		switch {
		case e.Start != nil:
			if v.start == nil {
				v.start = e
			}
			for j := range e.Start.Input {
				v.message(&e.Start.Input[j], e.N)
			}
		case e.Request != nil:
			if e.Request.System != "" && e.Request.System != system {
				system = e.Request.System
				v.texts = append(v.texts, text{text: system, kind: inSystem, event: e.N})
			}
		case e.Reply != nil:
			v.message(&e.Reply.Message, e.N)
		case e.Tool != nil:
			open = append(open, e)
		case e.Results != nil:
			open = open[:0]
			v.message(&e.Results.Message, e.N)
		case e.End != nil:
			if v.end == nil {
				v.end = e
			}
		}
	}
	// Results that reached no message: the run was cut off, or paused.
	for _, e := range open {
		v.texts = append(v.texts, text{text: string(e.Tool.Result), kind: inResult, event: e.N, id: e.Tool.CallID, tool: e.Tool.Name})
	}
	return v
}

func (v *view) message(m *conversation.Message, event int) {
	v.messages = append(v.messages, placed{m, event})
	add := func(t text) {
		if t.text != "" {
			t.event, t.role = event, m.Role()
			v.texts = append(v.texts, t)
		}
	}
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			add(text{text: p.Text})
		case conversation.Reasoning:
			add(text{text: p.Text})
		case conversation.Image:
			add(text{text: p.Source.URL})
		case conversation.Document:
			add(text{text: p.Name})
			add(text{text: p.Source.URL})
		case conversation.ToolCall:
			v.calls++
			add(text{text: string(p.Input), kind: inArguments, id: p.ID, tool: p.Name})
		case conversation.ToolResult:
			v.results++
			add(text{text: string(p.Result), kind: inResult, id: p.ID})
			add(text{text: string(p.Meta), kind: inMeta, id: p.ID})
		}
	}
}

// all iterates over the conversation.
func (v *view) all() iter.Seq2[int, conversation.Message] {
	return func(yield func(int, conversation.Message) bool) {
		for i, m := range v.messages {
			if !yield(i, *m.Message) {
				return
			}
		}
	}
}

// stop is how the run ended, "" where the trace does not say.
func (v *view) stop() string {
	if v.end == nil {
		return ""
	}
	return v.end.End.Stop
}

// run returns the event of the last run of a call, or nil.
func (v *view) run(id string) *trace.ToolRun {
	for i := len(v.events) - 1; i >= 0; i-- {
		if t := v.events[i].Tool; t != nil && t.CallID == id {
			return t
		}
	}
	return nil
}

// replies iterates over the model's replies with the last request before each, nil where the trace has none.
func (v *view) replies() iter.Seq2[*trace.Event, *trace.Request] {
	return func(yield func(*trace.Event, *trace.Request) bool) {
		var asked *trace.Request
		for i := range v.events {
			e := &v.events[i]
			if e.Request != nil {
				asked = e.Request
			}
			if e.Reply != nil && !yield(e, asked) {
				return
			}
		}
	}
}
