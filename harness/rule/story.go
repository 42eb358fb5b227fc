package rule

import (
	"cel.dev/cel-go/common/types/ref"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/trace"
)

// call is one call of a tool, as a model asked for it.
type call struct {
	self     object // as CEL sees it
	id, tool string
	input    conversation.JSON
	index    int // among the calls, from 0; -1 where it stood in the conversation that the run was given
	step     int
	event    int
	atMS     int64
	run      *trace.ToolRun
	result   *result
	approved bool // the run waited for the host with this call, and then it ran

	args ref.Val // made when a rule asks for it
}

// executed reports that the tool ran.
func (c *call) executed() bool { return c.run != nil && c.run.Outcome == trace.Executed }

// result is what a tool gave back.
type result struct {
	self    object // as CEL sees it
	call    *call  // nil where nobody has called
	id      string
	value   conversation.JSON
	isError bool
	step    int
	event   int
	json    ref.Val
}

func (r *result) tool() string {
	if r.call == nil {
		return ""
	}
	return r.call.tool
}

// text is the result as a model reads it: a string without its quotes, else JSON.
func (r *result) text() string { return conversation.ToolResult{Result: r.value}.ResultText() }

// message is one message of the conversation.
type message struct {
	self  object // as CEL sees it
	role  conversation.Role
	text  string
	step  int
	event int
	given bool // it stood in the conversation that the run was given
}

// step is one answer of a model.
type step struct {
	self     object // as CEL sees it
	n, event int
	text     string
	stop     string
	model    string
	shown    []string // the tools that the model was shown
	calls    []*call
}

// moment is one thing of the conversation in its order; one field is set.
type moment struct {
	call    *call
	result  *result
	message *message
	system  string
	event   int
}

// Story is a trace as rules look at it, made once for all of them by [Read]: the runs of a conversation of several turns are one, and what a later run is given again counts once.
type Story struct {
	calls    []*call // made in the trace, not those that it was given
	results  []*result
	messages []*message
	steps    []*step
	order    []moment
	lists

	agent, model, stop, err string
	last                    int  // the number of the last event
	timed                   bool // the trace says when things happened
	cut                     bool // the trace ends before the run did, or the run broke down or waits
}

// block gives out values of one kind from blocks, as one allocation for each costs more than all else.
type block[T any] struct{ free []T }

func (b *block[T]) take() *T {
	if len(b.free) == 0 {
		b.free = make([]T, 64)
	}
	v := &b.free[0]
	b.free = b.free[1:]
	return v
}

// teller makes a story of a trace.
type teller struct {
	*Story
	open     map[string]*call // by id, the last one counts
	said     []*conversation.Message
	shown    []string
	system   string
	replying bool // the step of what comes is about to be added
	calls    block[call]
	results  block[result]
	messages block[message]
	steps    block[step]
}

// Read makes a story of the events of a trace. It keeps pointers into them.
func Read(events []trace.Event) *Story {
	t := teller{Story: &Story{cut: true, order: make([]moment, 0, len(events))}, open: map[string]*call{}}
	for i := range events {
		t.event(&events[i])
	}
	return t.Story
}

func (t *teller) event(e *trace.Event) {
	t.last = e.N
	t.timed = t.timed || e.AtMS > 0
	switch {
	case e.Start != nil:
		t.begin(e)
	case e.Request != nil:
		t.request(e)
	case e.Reply != nil:
		t.reply(e)
	case e.Tool != nil:
		t.ran(e)
	case e.Results != nil:
		t.message(e, &e.Results.Message, false)
	case e.End != nil:
		t.stop, t.err = e.End.Stop, e.End.Error
		t.cut = e.End.Stop == llm.RunError || e.End.Stop == llm.RunPaused
	}
}

// begin takes what a run is given. A later run of the trace is given what was said before it and what is new.
func (t *teller) begin(e *trace.Event) {
	t.agent, t.model, t.cut, t.stop = e.Start.Agent, e.Start.Model, true, ""
	input := e.Start.Input
	known := 0
	for known < len(input) && known < len(t.said) && alike(&input[known], t.said[known]) {
		known++
	}
	for i := known; i < len(input); i++ {
		t.message(e, &input[i], true)
	}
}

// alike compares what tells messages of one conversation apart, without making their JSON.
func alike(a, b *conversation.Message) bool {
	if a.Role() != b.Role() || a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		switch p := a.Part(i).(type) {
		case conversation.Text:
			if q, ok := b.Part(i).(conversation.Text); !ok || p.Text != q.Text {
				return false
			}
		case conversation.ToolCall:
			if q, ok := b.Part(i).(conversation.ToolCall); !ok || p.ID != q.ID || p.Name != q.Name {
				return false
			}
		case conversation.ToolResult:
			if q, ok := b.Part(i).(conversation.ToolResult); !ok || p.ID != q.ID {
				return false
			}
		default:
			if b.Part(i).Kind() != p.Kind() {
				return false
			}
		}
	}
	return true
}

func (t *teller) request(e *trace.Event) {
	if e.Request.System != "" && e.Request.System != t.system {
		t.system = e.Request.System
		t.order = append(t.order, moment{system: t.system, event: e.N})
	}
	same := len(t.shown) == len(e.Request.Tools)
	for i := 0; same && i < len(t.shown); i++ {
		same = t.shown[i] == e.Request.Tools[i].Name
	}
	if same {
		return
	}
	t.shown = make([]string, len(e.Request.Tools))
	for i, tool := range e.Request.Tools {
		t.shown[i] = tool.Name
	}
}

func (t *teller) reply(e *trace.Event) {
	s := t.steps.take()
	*s = step{self: object{stepType, s}, n: len(t.Story.steps) + 1, event: e.N, text: e.Reply.Message.Text(), stop: e.Reply.Stop, model: e.Reply.Model, shown: t.shown}
	before := len(t.Story.calls)
	t.replying = true
	t.message(e, &e.Reply.Message, false)
	t.replying = false
	s.calls = t.Story.calls[before:len(t.Story.calls):len(t.Story.calls)]
	t.Story.steps = append(t.Story.steps, s)
}

// message takes a message with its calls and results.
func (t *teller) message(e *trace.Event, m *conversation.Message, given bool) {
	t.said = append(t.said, m)
	spoke := false
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case conversation.ToolCall:
			if !spoke { // what is said stands before what is called
				t.say(e, m, given)
				spoke = true
			}
			t.called(e, p, given)
		case conversation.ToolResult:
			t.answered(e, p.ID, p.Result, p.IsError)
			spoke = true
		}
	}
	if !spoke {
		t.say(e, m, given)
	}
}

// step is the number of the step under way: steps are counted through all runs of the trace.
func (t *teller) step() int {
	if t.replying {
		return len(t.Story.steps) + 1
	}
	return len(t.Story.steps)
}

func (t *teller) say(e *trace.Event, m *conversation.Message, given bool) {
	v := t.messages.take()
	*v = message{self: object{messageType, v}, role: m.Role(), text: m.Text(), step: t.step(), event: e.N, given: given}
	t.Story.messages = append(t.Story.messages, v)
	t.order = append(t.order, moment{message: v, event: e.N})
}

func (t *teller) called(e *trace.Event, p conversation.ToolCall, given bool) *call {
	c := t.calls.take()
	*c = call{self: object{callType, c}, id: p.ID, tool: p.Name, input: p.Input, index: len(t.Story.calls), step: t.step(), event: e.N, atMS: e.AtMS}
	if given {
		c.index = -1
	} else {
		t.Story.calls = append(t.Story.calls, c)
	}
	t.open[p.ID] = c
	t.order = append(t.order, moment{call: c, event: e.N})
	return c
}

// ran takes the run of a tool. One that no model asked for was made by the program under test itself, and is a call as well.
func (t *teller) ran(e *trace.Event) {
	c := t.open[e.Tool.CallID]
	switch {
	case c == nil || c.tool != e.Tool.Name || c.run != nil && c.run.Outcome != trace.Paused:
		c = t.called(e, conversation.ToolCall{ID: e.Tool.CallID, Name: e.Tool.Name, Input: e.Tool.Arguments}, false)
	case c.run != nil:
		c.approved = e.Tool.Outcome == trace.Executed
	}
	c.run = e.Tool
	if e.Tool.Result != "" && e.Tool.Outcome != trace.Paused {
		t.answered(e, e.Tool.CallID, e.Tool.Result, e.Tool.IsError)
	}
}

// answered takes a result, once: it stands where the tool ran, and again in the message with the results.
func (t *teller) answered(e *trace.Event, id string, value conversation.JSON, isError bool) {
	c := t.open[id]
	if c != nil && c.result != nil {
		return
	}
	r := t.results.take()
	*r = result{self: object{resultType, r}, call: c, id: id, value: value, isError: isError, step: len(t.Story.steps), event: e.N}
	if c != nil {
		c.result = r
	}
	t.Story.results = append(t.Story.results, r)
	t.order = append(t.order, moment{result: r, event: e.N})
}
