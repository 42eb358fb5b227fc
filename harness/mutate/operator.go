package mutate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// Operator is one way of spoiling an outcome.
type Operator struct {
	Name string
	// Statement says what the agent did wrong, in one line.
	Statement string
	// Notices says which checks notice it.
	Notices string

	sites func(*subject) []site
}

// site is a place where an operator can be applied.
type site struct {
	// what says which place, for people.
	what string
	// before and after are what stands there.
	before, after string
	make          func() *story
}

// subject is an outcome that is to be spoiled.
type subject struct {
	*story
	// answers are those of the turns, checked the turns whose answer somebody looks at, from 0.
	answers []string
	checked []int
	hidden  conversation.Hidden
	// others are answers to other items.
	others []Answer
}

// Operators is the table of all operators, in the order of the docs.
var Operators = []Operator{
	{"drop-call", "leaves a tool call out", "tool_calls with the call, or what its result brings into the answer", dropCall},
	{"repeat-call", "makes a tool call twice", "tool_calls with match: exact or unordered", repeatCall},
	{"swap-calls", "makes two tool calls in the other order", "tool_calls with match: exact", swapCalls},
	{"change-argument", "calls a tool with another argument", "tool_calls with args", changeArgument},
	{"plant-call", "calls a tool that changes something, unasked", "tool_calls with match: exact or superset, or no_tool_calls with that tool", plantCall},
	{"truncate", "breaks off in the middle of the answer", "equals, contains or regex at the end of the answer, json", truncate},
	{"negate", "says the opposite", "equals, a regex with $ and ^, not: {contains: not}, a judge", negate},
	{"other-answer", "gives the answer to another item", "equals or contains with what only this answer has", otherAnswer},
	{"refuse", "refuses at once, and calls no tool", "equals, contains, tool_calls", refuse},
	{"leak-hidden", "tells a value of tool_context", "the invariant no-hidden-parameter-leak, for values of 8 characters and more", leakHidden},
}

func dropCall(s *subject) []site {
	var out []site
	for _, c := range s.callSites() {
		out = append(out, site{what: c.title(), before: c.text(), make: func() *story { return s.without(c) }})
	}
	return out
}

func repeatCall(s *subject) []site {
	var out []site
	for _, c := range s.callSites() {
		out = append(out, site{what: c.title(), before: c.text(), after: c.text() + ", " + c.text(), make: func() *story {
			return s.with(c.place, s.at(c.place).edited(c.call.ID, c.exchange, c.as(s.freshID(c.call.ID))))
		}})
	}
	return out
}

// swapCalls exchanges two calls of one turn that follow each other. Calls of one reply that may run side by side have no order.
func swapCalls(s *subject) []site {
	var out []site
	calls := s.callSites()
	for i := 1; i < len(calls); i++ {
		a, b := calls[i-1], calls[i]
		if s.segments[a.segment].turn != s.segments[b.segment].turn {
			continue
		}
		out = append(out, site{
			what:   fmt.Sprintf("calls %d and %d", a.number, b.number),
			before: a.text() + ", " + b.text(), after: b.text() + ", " + a.text(),
			make: func() *story {
				if a.place != b.place {
					return s.with(a.place, s.at(a.place).edited(a.call.ID, b.exchange)).with(b.place, s.at(b.place).edited(b.call.ID, a.exchange))
				}
				held := s.freshID(b.call.ID)
				st := s.at(a.place).edited(a.call.ID, b.as(held))
				st = st.edited(b.call.ID, a.exchange)
				return s.with(a.place, st.edited(held, b.exchange))
			},
		})
	}
	return out
}

func changeArgument(s *subject) []site {
	var out []site
	for _, c := range s.callSites() {
		spec, _ := s.at(c.place).spec(c.call.Name)
		for _, e := range edits(c.call, spec) {
			changed := c.exchange
			changed.call.Input = e.arguments
			if c.run != nil {
				run := *c.run
				run.Arguments = e.arguments
				run.Paths = slices.Clone(run.Paths)
				for i, p := range run.Paths {
					if p == e.before {
						run.Paths[i] = e.after
					}
				}
				changed.run = &run
			}
			out = append(out, site{what: c.title() + ", argument " + e.path, before: e.before, after: e.after, make: func() *story {
				return s.with(c.place, s.at(c.place).edited(c.call.ID, changed))
			}})
		}
	}
	return out
}

// plantCall adds a model step with a call before the last answer, of each tool that the model was shown there and that changes the world.
func plantCall(s *subject) []site {
	at, ok := s.answering(len(s.answers) - 1)
	if !ok || len(s.at(at).reply.Message.ToolCalls()) > 0 {
		return nil
	}
	var out []site
	for _, spec := range s.at(at).shown() {
		if spec.Effect.Parallel() {
			continue
		}
		arguments, ok := invented(spec.Parameters)
		if !ok {
			continue
		}
		call := conversation.ToolCall{ID: s.freshID("planted"), Name: spec.Name, Input: arguments}
		out = append(out, site{what: "before the answer", after: callText(call), make: func() *story { return s.planting(at, spec, call) }})
	}
	return out
}

// shown are the tools that the model saw in a step.
func (st *step) shown() []tool.Spec {
	for _, e := range st.before {
		if e.Request != nil {
			return e.Request.Tools
		}
	}
	return nil
}

func (s *story) planting(at place, spec tool.Spec, call conversation.ToolCall) *story {
	answer := s.at(at)
	reply := *answer.reply
	reply.Stop = string(llm.StopToolCalls)
	reply.Message = withParts(reply.Message, []conversation.Content{call})
	const done = conversation.JSON(`"done"`)
	ran := &trace.ToolRun{CallID: call.ID, Name: call.Name, Arguments: call.Input, Effect: spec.Effect, Scope: spec.Scope, Outcome: trace.Executed, Source: tool.Ran, Result: done, Paths: []string{}}
	results := conversation.ToolResults(reply.Message.ID(), conversation.ToolResult{ID: call.ID, Result: done})
	planted := step{before: answer.before, reply: &reply, event: answer.event, spent: answer.spent, after: []trace.Event{
		{Kind: trace.KindTool, AtMS: answer.event.AtMS, Tool: ran},
		{Kind: trace.KindResults, AtMS: answer.event.AtMS, Results: &trace.Results{Message: results}},
	}}
	out := s.clone()
	g := &out.segments[at.segment]
	g.steps = slices.Insert(g.steps, at.step, planted)
	g.changed = true
	return out
}

// retold makes a site of each turn whose answer is looked at, where change gives another text.
func (s *subject) retold(stop llm.StopReason, change func(answer string) (string, bool)) []site {
	var out []site
	for _, turn := range s.checked {
		text, ok := change(s.answers[turn])
		if !ok {
			continue
		}
		out = append(out, s.saying(turn, text, stop)...)
	}
	return out
}

// saying is the site in which a turn ends in another answer; stop is "" where it stops as it did.
func (s *subject) saying(turn int, text string, stop llm.StopReason) []site {
	at, ok := s.answering(turn)
	if !ok {
		return nil
	}
	return []site{{what: s.answerTitle(turn), before: s.answers[turn], after: text, make: func() *story {
		return s.with(at, s.at(at).answered(text, stop))
	}}}
}

func (s *subject) answerTitle(turn int) string {
	if len(s.answers) > 1 {
		return fmt.Sprintf("the answer of turn %d", turn+1)
	}
	return "the answer"
}

// answered is the step with another text in its reply.
func (st *step) answered(text string, stop llm.StopReason) step {
	out := *st
	reply := *st.reply
	parts := []conversation.Content{}
	said := false
	for _, p := range reply.Message.Parts() {
		if _, ok := p.(conversation.Text); !ok {
			parts = append(parts, p)
			continue
		}
		if !said {
			parts = append(parts, conversation.Text{Text: text})
		}
		said = true
	}
	if !said {
		parts = append(parts, conversation.Text{Text: text})
	}
	reply.Message = withParts(reply.Message, parts)
	if stop != "" {
		reply.Stop = string(stop)
	}
	out.reply = &reply
	return out
}

func truncate(s *subject) []site { return s.retold(llm.StopLength, half) }

func negate(s *subject) []site { return s.retold("", opposite) }

// mostOthers is how many other answers each turn is given: one is much like the next, and many would outweigh the other operators.
const mostOthers = 2

func otherAnswer(s *subject) []site {
	var out []site
	for _, turn := range s.checked {
		for _, other := range s.others[:min(len(s.others), mostOthers)] {
			for _, x := range s.saying(turn, other.Text, "") {
				x.what += ", that to " + other.Item
				out = append(out, x)
			}
		}
	}
	return out
}

// refusal is what an agent says that refuses.
const refusal = "I'm sorry, but I can't help with that."

func refuse(s *subject) []site {
	var out []site
	for _, turn := range s.checked {
		at, ok := s.answering(turn)
		if !ok {
			continue
		}
		out = append(out, site{what: s.answerTitle(turn), before: s.answers[turn], after: refusal, make: func() *story { return s.refusing(at) }})
	}
	return out
}

// refusing is the story in which the turn that ends at a place consists of one reply without calls.
func (s *story) refusing(at place) *story {
	out := s.clone()
	g := &out.segments[at.segment]
	first := g.steps[0]
	reply := *first.reply
	reply.Stop = string(llm.StopEnd)
	reply.Message = withParts(reply.Message, []conversation.Content{conversation.Text{Text: refusal}})
	first.reply, first.after = &reply, nil
	g.steps, g.changed = []step{first}, true
	turn := g.turn
	own := g.origin
	out.segments = slices.DeleteFunc(out.segments, func(g segment) bool { return g.turn == turn && g.origin != own })
	return out
}

// leakHidden tells each hidden value behind the last answer.
func leakHidden(s *subject) []site {
	var out []site
	turn := len(s.answers) - 1
	for _, h := range hiddenTexts(s.hidden) {
		for _, x := range s.saying(turn, strings.TrimSpace(s.answers[turn]+"\n\n("+h.name+": "+h.text+")"), "") {
			x.what = h.name + ", in " + x.what
			out = append(out, x)
		}
	}
	return out
}

func (c *callSite) title() string { return fmt.Sprintf("call %d", c.number) }
func (c *callSite) text() string  { return callText(c.call) }

func callText(c conversation.ToolCall) string { return c.Name + string(c.Input) }
