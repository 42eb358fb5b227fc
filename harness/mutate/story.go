package mutate

import (
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/target"
)

// story is an outcome taken apart, so that it can be told otherwise. Whatever changes it works on copies: the events of the outcome stay as they are.
type story struct {
	segments []segment
}

// segment is one run of a trace, from its start to its end, or what stands before the first.
type segment struct {
	// turn is the place in the outcome's turns, -1 before the first.
	turn int
	// origin is its place in the story as it was read.
	origin  int
	changed bool
	head    []trace.Event // up to the first request
	steps   []step
	tail    []trace.Event // the end and what follows it
	// regular says that each request of the run counts the messages before it.
	regular bool
}

// step is one question to a model, its reply, and what the calls in that came to.
type step struct {
	before []trace.Event // the request and its exchanges
	reply  *trace.Reply  // nil where there is none
	event  trace.Event   // that of the reply
	after  []trace.Event // tools and their results
	spent  *target.Spent
}

// read takes an outcome apart.
func read(out *experiment.Outcome) *story {
	s := &story{}
	var now *segment
	ended := false
	for i, e := range out.Trace.Events {
		turn := turnOf(out, i)
		if now == nil || turn != now.turn || e.Start != nil && ended {
			s.segments = append(s.segments, segment{turn: turn, origin: len(s.segments)})
			now, ended = &s.segments[len(s.segments)-1], false
		}
		ended = ended || e.End != nil
		last := len(now.steps) - 1
		switch {
		case ended:
			now.tail = append(now.tail, e)
		case e.Request != nil:
			now.steps = append(now.steps, step{before: []trace.Event{e}})
		case e.Reply != nil:
			if last < 0 || now.steps[last].reply != nil {
				now.steps = append(now.steps, step{})
				last++
			}
			now.steps[last].reply, now.steps[last].event = e.Reply, e
		case last < 0:
			now.head = append(now.head, e)
		case now.steps[last].reply == nil:
			now.steps[last].before = append(now.steps[last].before, e)
		default:
			now.steps[last].after = append(now.steps[last].after, e)
		}
	}
	for i := range s.segments {
		s.segments[i].regular = s.segments[i].counts()
	}
	s.price(out.Spent)
	return s
}

func turnOf(out *experiment.Outcome, event int) int {
	for i, t := range out.Turns {
		if event >= t.From && event < t.To {
			return i
		}
	}
	return -1
}

// price gives each reply what it took, where that is known reply by reply.
func (s *story) price(spent []target.Spent) {
	var replies []*step
	for i := range s.segments {
		for k := range s.segments[i].steps {
			if st := &s.segments[i].steps[k]; st.reply != nil {
				replies = append(replies, st)
			}
		}
	}
	if len(replies) != len(spent) {
		return
	}
	for i, st := range replies {
		st.spent = &spent[i]
	}
}

// input is what the run was given.
func (g *segment) input() []conversation.Message {
	for _, e := range g.head {
		if e.Start != nil {
			return e.Start.Input
		}
	}
	return nil
}

// said are the messages that a step adds to the conversation.
func (st *step) said() []conversation.Message {
	var out []conversation.Message
	if st.reply != nil {
		out = append(out, st.reply.Message)
	}
	for _, e := range st.after {
		if e.Results != nil {
			out = append(out, e.Results.Message)
		}
	}
	return out
}

func (g *segment) counts() bool {
	n := len(g.input())
	for i := range g.steps {
		for _, e := range g.steps[i].before {
			if e.Request != nil && e.Request.Messages != n {
				return false
			}
		}
		n += len(g.steps[i].said())
	}
	return true
}

// clone is a story whose segments and steps may be exchanged.
func (s *story) clone() *story {
	c := &story{segments: slices.Clone(s.segments)}
	for i := range c.segments {
		c.segments[i].steps = slices.Clone(c.segments[i].steps)
	}
	return c
}

// place is a step of a story.
type place struct{ segment, step int }

func (s *story) at(p place) *step { return &s.segments[p.segment].steps[p.step] }

// answering is the step whose reply is the answer of a turn; false where there is none.
func (s *story) answering(turn int) (place, bool) {
	for i, g := range slices.Backward(s.segments) {
		if g.turn != turn {
			continue
		}
		for k := range slices.Backward(g.steps) {
			if g.steps[k].reply != nil {
				return place{i, k}, true
			}
		}
	}
	return place{}, false
}

// with puts another step in a place of a copy of the story.
func (s *story) with(p place, other step) *story {
	c := s.clone()
	c.segments[p.segment].steps[p.step] = other
	c.segments[p.segment].changed = true
	return c
}

// totals are what a story adds up to.
type totals struct {
	usage           conversation.Usage
	steps           int
	calls, executed int
	retries         int
	latency         int64
}

func (t totals) add(st *step) totals {
	if st.reply == nil {
		return t
	}
	t.steps++
	if u, ok := st.reply.Message.Usage(); ok {
		t.usage = t.usage.Add(u)
	}
	t.calls += len(st.reply.Message.ToolCalls())
	t.retries += st.reply.Retries
	t.latency += st.reply.LatencyMS
	var batch int64 // calls that ran side by side took as long as the longest
	for _, e := range st.after {
		if e.Tool == nil {
			continue
		}
		if e.Tool.Outcome == trace.Executed {
			t.executed++
		}
		if e.Tool.Effect.Parallel() {
			batch = max(batch, e.Tool.DurationMS)
			continue
		}
		t.latency += batch + e.Tool.DurationMS
		batch = 0
	}
	t.latency += batch
	return t
}

func (g *segment) totals() (t totals) {
	for i := range g.steps {
		t = t.add(&g.steps[i])
	}
	return t
}

func (s *story) totals() (t totals) {
	for i := range s.segments {
		for k := range s.segments[i].steps {
			t = t.add(&s.segments[i].steps[k])
		}
	}
	return t
}

// less is a - b.
func less(a, b conversation.Usage) conversation.Usage {
	return conversation.Usage{
		InputTokens:      a.InputTokens - b.InputTokens,
		OutputTokens:     a.OutputTokens - b.OutputTokens,
		CacheReadTokens:  a.CacheReadTokens - b.CacheReadTokens,
		CacheWriteTokens: a.CacheWriteTokens - b.CacheWriteTokens,
		ReasoningTokens:  a.ReasoningTokens - b.ReasoningTokens,
		LatencyMS:        a.LatencyMS - b.LatencyMS,
	}
}

// tell makes an outcome of a changed story: events, conversation, digests, usage and sums agree as they did in the outcome that was, of which the story was read.
func (s *story) tell(out *experiment.Outcome, was *story) experiment.Outcome {
	told := *out
	told.Turns = slices.Clone(out.Turns)
	for i := range told.Turns {
		told.Turns[i].From, told.Turns[i].To = -1, -1
	}
	told.Trace.Events = make([]trace.Event, 0, len(out.Trace.Events)+4)
	n := narrator{story: s, was: was, told: &told}
	for i := range s.segments {
		n.segment(i)
	}
	n.sums(out)
	return told
}

// narrator tells a changed story.
type narrator struct {
	*story
	was  *story
	told *experiment.Outcome
	seq  int
	// before and now are the conversation after the segments so far, as it was and as it is told.
	before, now []conversation.Message
	differs     bool // before and now do
}

func (n *narrator) add(e trace.Event) {
	e.N = len(n.told.Trace.Events) + 1
	if e.Tool != nil {
		n.seq++
		if e.Tool.Seq != n.seq {
			t := *e.Tool
			t.Seq = n.seq
			e.Tool = &t
		}
	}
	n.told.Trace.Events = append(n.told.Trace.Events, e)
}

func (n *narrator) segment(i int) {
	g := &n.segments[i]
	was := &n.was.segments[g.origin]
	from := len(n.told.Trace.Events)
	input := g.input()
	if n.differs && goesOn(n.before, input) {
		input = slices.Concat(n.now, input[len(n.before):])
		g.changed = true
	}
	for _, e := range g.head {
		if e.Start != nil && g.changed {
			start := *e.Start
			start.Input = input
			e.Start = &start
		}
		n.add(e)
	}
	conv := slices.Clip(slices.Clone(input))
	number := was.number()
	for k := range g.steps {
		st := &g.steps[k]
		for _, e := range st.events() {
			if g.changed {
				e.Step = number + k
			}
			if e.Request != nil && g.changed && g.regular {
				request := *e.Request
				request.Messages = len(conv)
				e.Request = &request
			}
			n.add(e)
		}
		conv = append(conv, st.said()...)
	}
	for _, e := range g.tail {
		if g.changed {
			e.Step = number + max(len(g.steps)-1, 0)
		}
		if e.End != nil && g.changed {
			e.End = g.end(e.End, was, input, conv)
		}
		n.add(e)
	}
	if g.changed {
		n.differs = true
	}
	n.before = slices.Clone(was.input())
	for k := range was.steps {
		n.before = append(n.before, was.steps[k].said()...)
	}
	n.now = conv
	if g.turn >= 0 {
		t := &n.told.Turns[g.turn]
		if t.From < 0 {
			t.From = from
		}
		t.To = len(n.told.Trace.Events)
	}
}

// number is that of the first step.
func (g *segment) number() int {
	if len(g.steps) > 0 {
		if events := g.steps[0].events(); len(events) > 0 {
			return events[0].Step
		}
	}
	return 0
}

// goesOn reports that a conversation goes on with another.
func goesOn(earlier, input []conversation.Message) bool {
	if len(input) < len(earlier) || len(earlier) == 0 {
		return false
	}
	for i := range earlier {
		if !earlier[i].Equal(input[i]) {
			return false
		}
	}
	return true
}

// events are those of a step in order.
func (st *step) events() []trace.Event {
	out := slices.Clone(st.before)
	if st.reply != nil {
		e := st.event
		e.Reply = st.reply
		out = append(out, e)
	}
	return append(out, st.after...)
}

// end is the end of a run as it would have been recorded.
func (g *segment) end(was *trace.End, original *segment, input, conv []conversation.Message) *trace.End {
	end := *was
	sum, before := g.totals(), original.totals()
	end.Usage = end.Usage.Add(less(sum.usage, before.usage))
	end.Steps += sum.steps - before.steps
	if last := len(g.steps) - 1; last >= 0 && g.steps[last].reply != nil && len(g.steps[last].reply.Message.ToolCalls()) == 0 {
		end.Stop = stopOf(g.steps[last].reply.Stop, end.Stop)
	}
	if end.Input != nil {
		end.Input = digests(input)
	}
	if end.Context != nil {
		end.Context = digests(conv)
	}
	return &end
}

// stopOf is how a run ends whose last reply stopped so.
func stopOf(reply, was string) string {
	switch llm.StopReason(reply) {
	case llm.StopLength:
		return llm.RunLength
	case llm.StopRefused:
		return llm.RunRefused
	case llm.StopEnd:
		return llm.RunEnd
	}
	return was
}

func digests(messages []conversation.Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = trace.Digest(m)
	}
	return out
}

// sums puts right what sums up the run.
func (n *narrator) sums(out *experiment.Outcome) {
	now, was := n.totals(), n.was.totals()
	r := &n.told.Response
	r.Usage = r.Usage.Add(less(now.usage, was.usage))
	r.Steps += now.steps - was.steps
	r.Calls += now.calls - was.calls
	r.ToolCalls += now.executed - was.executed
	r.Retries += now.retries - was.retries
	r.LatencyMS += now.latency - was.latency
	r.Verbose = nil
	end := len(n.told.Trace.Events)
	for i := range slices.Backward(n.told.Turns) {
		t := &n.told.Turns[i]
		if t.From < 0 {
			t.From, t.To = end, end // nothing happened in it
		}
		end = t.From
		if p, ok := n.answering(i); ok && n.segments[p.segment].changed {
			t.Text = strings.TrimSpace(n.at(p).reply.Message.Text())
		}
	}
	if last := len(n.told.Turns) - 1; last >= 0 {
		r.Text = n.told.Turns[last].Text
	}
	for _, e := range slices.Backward(n.told.Trace.Events) {
		if e.End != nil {
			r.Stop = e.End.Stop
			break
		}
	}
	if out.Spent == nil || n.spentApart() {
		return
	}
	n.told.Spent = []target.Spent{}
	for i := range n.segments {
		for _, st := range n.segments[i].steps {
			if st.spent != nil {
				n.told.Spent = append(n.told.Spent, *st.spent)
			}
		}
	}
}

// spentApart says that nobody knows which reply took what.
func (n *narrator) spentApart() bool {
	for i := range n.was.segments {
		for _, st := range n.was.segments[i].steps {
			if st.reply != nil && st.spent == nil {
				return true
			}
		}
	}
	return false
}
