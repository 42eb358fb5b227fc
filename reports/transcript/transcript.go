// Package transcript is what reports that show a conversation share: which run of a tool belongs to which call of the model.
package transcript

import "github.com/echoeval/echoeval/core/trace"

// Pairs maps the calls of a reply to the events in which they ran.
type Pairs struct {
	events []trace.Event
	byCall map[int]map[string]int // event of the reply, id of the call: event of the tool
	used   map[int]bool
}

// Pair looks for each call of a reply among the tools that ran before the next reply. An id that stands twice in a reply belongs to the first run.
func Pair(events []trace.Event) Pairs {
	p := Pairs{events: events, byCall: map[int]map[string]int{}, used: map[int]bool{}}
	reply := -1
	for i := range events {
		switch e := &events[i]; {
		case e.Reply != nil:
			reply = i
			p.byCall[i] = map[string]int{}
			for _, call := range e.Reply.Message.ToolCalls() {
				p.byCall[i][call.ID] = -1
			}
		case e.Tool != nil && reply >= 0:
			if ran, asked := p.byCall[reply][e.Tool.CallID]; asked && ran < 0 {
				p.byCall[reply][e.Tool.CallID] = i
				p.used[i] = true
			}
		}
	}
	return p
}

// Of returns how to find the run of a call in the reply at place i of the events; nil is a call without a result.
func (p Pairs) Of(i int) func(id string) *trace.Event {
	return func(id string) *trace.Event {
		if at, ok := p.byCall[i][id]; ok && at >= 0 {
			return &p.events[at]
		}
		return nil
	}
}

// Orphan reports whether the tool run at place i answers no call.
func (p Pairs) Orphan(i int) bool { return !p.used[i] }
