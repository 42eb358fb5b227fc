package mutate

import (
	"slices"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// callSite is a call that was made and answered.
type callSite struct {
	place
	exchange
	// number counts the calls of the whole outcome from 1.
	number int
}

// exchange is a call with what came of it.
type exchange struct {
	call conversation.ToolCall
	run  *trace.ToolRun // nil where nobody saw it run
	// event is that of the run.
	event  trace.Event
	result conversation.ToolResult
}

// callSites are the calls of a story that have results: what is left open is how the run ended.
func (s *story) callSites() []callSite {
	var out []callSite
	number := 0
	for i := range s.segments {
		for k := range s.segments[i].steps {
			st := &s.segments[i].steps[k]
			if st.reply == nil {
				continue
			}
			for _, c := range st.reply.Message.ToolCalls() {
				number++
				if x, ok := st.exchange(c); ok {
					out = append(out, callSite{place{i, k}, x, number})
				}
			}
		}
	}
	return out
}

// exchange finds what came of a call; false where it has no result, or shares its id with another.
func (st *step) exchange(c conversation.ToolCall) (x exchange, ok bool) {
	x.call = c
	results := 0
	for _, e := range st.after {
		switch {
		case e.Tool != nil && e.Tool.CallID == c.ID:
			x.run, x.event = e.Tool, e
		case e.Results != nil:
			for _, p := range e.Results.Message.Parts() {
				if r, is := p.(conversation.ToolResult); is && r.ID == c.ID {
					x.result = r
					results++
				}
			}
		}
	}
	return x, results == 1
}

// spec is what the model was shown of a tool.
func (st *step) spec(name string) (tool.Spec, bool) {
	for _, e := range st.before {
		if e.Request == nil {
			continue
		}
		for _, t := range e.Request.Tools {
			if t.Name == name {
				return t, true
			}
		}
	}
	return tool.Spec{}, false
}

// withParts is the message with other parts.
func withParts(m conversation.Message, parts []conversation.Content) conversation.Message {
	out := conversation.NewMessage(m.Role(), m.ID(), parts...)
	if u, ok := m.Usage(); ok {
		out = out.WithUsage(u)
	}
	if t, ok := m.Time(); ok {
		out = out.WithTime(t)
	}
	return out
}

// edited is the step with every call, run and result of an id replaced by those that edit gives; of none it is left without.
func (st *step) edited(id string, with ...exchange) step {
	out := step{before: st.before, event: st.event, spent: st.spent}
	reply := *st.reply
	var parts []conversation.Content
	for _, p := range reply.Message.Parts() {
		if c, ok := p.(conversation.ToolCall); !ok || c.ID != id {
			parts = append(parts, p)
			continue
		}
		for _, x := range with {
			parts = append(parts, x.call)
		}
	}
	reply.Message = withParts(reply.Message, parts)
	out.reply = &reply
	for _, e := range st.after {
		switch {
		case e.Tool != nil && e.Tool.CallID == id:
			for _, x := range with {
				if x.run != nil {
					own := e // its time and step are those of the place
					own.Tool = x.run
					out.after = append(out.after, own)
				}
			}
		case e.Results != nil:
			var parts []conversation.Content
			for _, p := range e.Results.Message.Parts() {
				if r, ok := p.(conversation.ToolResult); !ok || r.ID != id {
					parts = append(parts, p)
					continue
				}
				for _, x := range with {
					parts = append(parts, x.result)
				}
			}
			if len(parts) > 0 {
				e.Results = &trace.Results{Message: withParts(e.Results.Message, parts)}
				out.after = append(out.after, e)
			}
		default:
			out.after = append(out.after, e)
		}
	}
	return out
}

// without is the story in which a call was not made. A step with no other call is left out whole: the model went on at once.
func (s *story) without(c callSite) *story {
	st := s.at(c.place)
	if len(st.reply.Message.ToolCalls()) > 1 {
		return s.with(c.place, st.edited(c.call.ID))
	}
	out := s.clone()
	g := &out.segments[c.segment]
	g.steps = slices.Delete(g.steps, c.step, c.step+1)
	g.changed = true
	return out
}

// as is the exchange under another id.
func (x exchange) as(id string) exchange {
	x.call.ID, x.result.ID = id, id
	if x.run != nil {
		run := *x.run
		run.CallID = id
		x.run = &run
	}
	return x
}

// freshID is an id that no call of the story has.
func (s *story) freshID(like string) string {
	taken := map[string]bool{}
	for _, c := range s.callSites() {
		taken[c.call.ID] = true
	}
	id := like + "-again"
	for taken[id] {
		id += "-again"
	}
	return id
}
