package target

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// Turn is what is known of one turn of a program.
type Turn struct {
	// Given is the conversation that the program was told, Hidden the names in tool_context, sorted.
	Given  []conversation.Message
	Hidden []string
	// Agent names the program in traces, MessageID the messages of the turn.
	Agent, MessageID string
	// Exchanges and Runs are those of the turn, in order; see [Worker.Turn].
	Exchanges []*Exchange
	Runs      []*ToolRun
	// Answer is what the program said, Err why it said nothing.
	Answer Answer
	Err    error
}

// Spent is what one answer of a model took.
type Spent struct {
	Vendor, Model string
	// Usage is nil where the answer does not say.
	Usage *conversation.Usage
}

// Told is what one turn adds to a run.
type Told struct {
	Response llm.Response
	Spent    []Spent
	// Asked is how many requests models were sent.
	Asked int
	// Failed is the last request to a model where it has failed, nil where it has not.
	Failed *Exchange
}

// Teller makes the trace of an item, turn by turn, of what a program asked and was answered. What it did in between is not seen: there are no events for it, and rules that need it do not apply.
//
// Each conversation with a model is told as a run of its own, from what the model was given to its last answer; requests that only add results of tools go on with it. A tool has run where its result stands in a later request. Times are sums of the durations of the exchanges, as if they had been made one after the other, so that a replay tells the same.
type Teller struct {
	events []trace.Event
	at     int64
	step   int
	calls  map[string]conversation.ToolCall // made and not yet answered, by id
	seq    int                              // of the tools that have run
}

// Events are those told so far.
func (t *Teller) Events() []trace.Event { return t.events }

// run is one conversation with a model.
type run struct {
	open  bool
	sent  []conversation.Message // what the last request held
	asked bool                   // a model was asked
	tail  []string               // ids of the calls of the last answer that have no result yet
	usage conversation.Usage
	steps int
}

func (t *Teller) add(e trace.Event) {
	e.N, e.Step, e.AtMS = len(t.events)+1, t.step, t.at
	t.events = append(t.events, e)
}

// Tell adds the events of a turn.
func (t *Teller) Tell(turn Turn) Told {
	told := Told{Response: llm.Response{Stop: llm.RunEnd, TTFTMS: -1}}
	t.step = 0
	if t.calls == nil {
		t.calls = map[string]conversation.ToolCall{}
	}
	n := narrator{Teller: t, turn: &turn, told: &told, runs: slices.Clone(turn.Runs)}
	n.begin(n.opening())
	unread := map[string]bool{}
	for _, x := range turn.Exchanges {
		n.exchange(x, unread)
	}
	for _, r := range n.runs { // tools that no model saw the result of
		n.ran(conversation.ToolCall{ID: fmt.Sprintf("program-%d", t.seq+1), Name: r.Name, Input: r.Arguments}, r.Output.Result, r.Output.IsError, r)
	}
	if turn.Err == nil {
		n.answered()
	}
	n.end(turn.Err)
	return told
}

// narrator tells one turn.
type narrator struct {
	*Teller
	turn *Turn
	told *Told
	runs []*ToolRun // not told yet
	run  run
}

// opening is what the first model of the turn is given, and where none is asked, what the program was.
func (n *narrator) opening() (string, []conversation.Message) {
	for _, x := range n.turn.Exchanges {
		if step, err := x.step(n.turn.MessageID); err == nil && step != nil {
			return step.Model, step.Messages
		}
	}
	return "", n.turn.Given
}

// step reads an exchange; nil where it is no step of a model that anybody can read.
func (x *Exchange) step(id string) (*Step, error) {
	if !x.asked() {
		return nil, nil
	}
	reader := readerOf(x.Path)
	if reader == nil || reader.read == nil {
		return nil, nil
	}
	reply := x.Reply
	if x.Status != http.StatusOK || x.Err != nil {
		reply = nil
	}
	step, err := reader.read(x.Request, reply, x.Stream, id)
	if err != nil {
		return nil, err
	}
	return &step, nil
}

func (n *narrator) begin(model string, input []conversation.Message) {
	n.run = run{open: true, sent: input}
	n.add(trace.Event{Kind: trace.KindStart, Start: &trace.Start{Agent: n.turn.Agent, Model: model, Input: input, Hidden: n.turn.Hidden}})
}

// end ends the run. Calls that it leaves open wait for somebody whom nobody sees.
func (n *narrator) end(err error) {
	end := &trace.End{Stop: llm.RunEnd, Usage: n.run.usage, Steps: n.run.steps, Terminals: 1}
	switch {
	case err != nil:
		end.Stop, end.Error = llm.RunError, err.Error()
	case len(n.run.tail) > 0:
		end.Stop = llm.RunPaused
	}
	n.add(trace.Event{Kind: trace.KindEnd, End: end})
	n.run = run{}
}

func (n *narrator) exchange(x *Exchange, unread map[string]bool) {
	step, err := x.step(n.turn.MessageID)
	if x.asked() {
		n.told.Asked++
		n.told.Failed = nil
		if x.Err != nil || x.Status >= http.StatusBadRequest {
			n.told.Failed = x
		}
	}
	if step == nil {
		n.attempts(x)
		if why := n.unread(x, err); why != "" && !unread[why] {
			unread[why] = true
			n.add(trace.Event{Kind: trace.KindWarning, Warning: &trace.Warning{Code: "unread-model-traffic", Text: why}})
			n.told.Spent = append(n.told.Spent, Spent{Vendor: x.Service.Name})
		}
		return
	}
	results := n.results(step.Messages)
	goesOn := n.goesOn(step.Messages)
	if !goesOn {
		n.end(nil)
		n.begin(step.Model, step.Messages)
	}
	parts := make([]conversation.Content, 0, len(results))
	for _, r := range results {
		n.ran(n.calls[r.ID], r.Result, r.IsError, n.wrapped(n.calls[r.ID]))
		delete(n.calls, r.ID)
		n.run.tail = slices.DeleteFunc(n.run.tail, func(id string) bool { return id == r.ID })
		parts = append(parts, r)
	}
	if goesOn && len(parts) > 0 {
		n.add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: conversation.ToolResults(n.turn.MessageID, parts...)}})
	}
	n.run.sent, n.run.asked = step.Messages, true
	n.step++
	n.add(trace.Event{Kind: trace.KindRequest, Request: &trace.Request{System: step.System, Tools: step.Tools, Messages: len(step.Messages)}})
	n.attempts(x)
	n.told.Response.Retries += max(0, len(x.Attempts)-1)
	if step.Reply.Role() == "" {
		return
	}
	n.reply(x, step)
}

// unread says why traffic with a model tells nothing; "" for what needs no reader.
func (n *narrator) unread(x *Exchange, err error) string {
	switch {
	case !x.asked() || x.Err != nil || x.Status >= http.StatusBadRequest:
		return ""
	case err != nil:
		return fmt.Sprintf("a request to %s%s is recorded but could not be read, so that its steps, calls and cost are not known: %s", x.Service.Name, x.Path, err)
	case readerOf(x.Path) == nil:
		return fmt.Sprintf("requests to %s%s are recorded but not read by this version, so that their steps, calls and cost are not known", x.Service.Name, x.Path)
	}
	return ""
}

// goesOn reports that a request goes on with the run: it holds what the one before held, the answer to that, and results of tools.
func (n *narrator) goesOn(messages []conversation.Message) bool {
	if !n.run.asked {
		return len(messages) == len(n.run.sent) && samePrefix(n.run.sent, messages)
	}
	sent := len(n.run.sent)
	if len(messages) < sent+2 || !samePrefix(n.run.sent, messages) || messages[sent].Role() != conversation.RoleAssistant {
		return false
	}
	return !slices.ContainsFunc(messages[sent+1:], func(m conversation.Message) bool { return m.Role() != conversation.RoleTool })
}

func samePrefix(a, b []conversation.Message) bool {
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// results are the results of open calls among messages, in order.
func (n *narrator) results(messages []conversation.Message) []conversation.ToolResult {
	var out []conversation.ToolResult
	for _, m := range messages {
		for _, p := range m.Parts() {
			r, ok := p.(conversation.ToolResult)
			if !ok {
				continue
			}
			if _, open := n.calls[r.ID]; open && !slices.ContainsFunc(out, func(x conversation.ToolResult) bool { return x.ID == r.ID }) {
				out = append(out, r)
			}
		}
	}
	return out
}

// wrapped finds the run of a call that went by the recorder, and takes it from the list.
func (n *narrator) wrapped(call conversation.ToolCall) *ToolRun {
	i := slices.IndexFunc(n.runs, func(r *ToolRun) bool { return r.Name == call.Name && sameJSON(r.Arguments, call.Input) })
	if i < 0 {
		i = slices.IndexFunc(n.runs, func(r *ToolRun) bool { return r.Name == call.Name })
	}
	if i < 0 {
		return nil
	}
	r := n.runs[i]
	n.runs = slices.Delete(n.runs, i, i+1)
	return r
}

func (n *narrator) ran(call conversation.ToolCall, result conversation.JSON, failed bool, wrapped *ToolRun) {
	n.seq++
	record := &trace.ToolRun{Seq: n.seq, CallID: call.ID, Name: call.Name, Arguments: call.Input, Scope: tool.External, Outcome: trace.Executed, Source: tool.Ran, Result: result, IsError: failed}
	if wrapped != nil {
		record.Effect, record.Source, record.IsError = wrapped.Effect, wrapped.Output.Source, wrapped.Output.IsError
		record.DurationMS = wrapped.Output.Took.Milliseconds()
		n.at += record.DurationMS
		n.told.Response.LatencyMS += record.DurationMS
	}
	n.told.Response.ToolCalls++
	n.add(trace.Event{Kind: trace.KindTool, Tool: record})
}

// attempts adds the requests of an exchange and moves the time on.
func (n *narrator) attempts(x *Exchange) {
	for i, a := range x.Attempts {
		a.Attempt = i + 1
		if !x.Service.Model {
			a.Leaks = nil // the world of tools may see what models may not
		}
		n.at += a.DurationMS
		n.add(trace.Event{Kind: trace.KindExchange, Exchange: &a})
	}
}

func (n *narrator) reply(x *Exchange, step *Step) {
	reply := &trace.Reply{Message: step.Reply, Stop: step.Stop, Model: step.Answered, TTFTMS: -1, Retries: max(0, len(x.Attempts)-1)}
	if len(x.Attempts) > 0 {
		last := x.Attempts[len(x.Attempts)-1]
		reply.LatencyMS, reply.TTFTMS = last.DurationMS, last.TTFTMS
	}
	response := &n.told.Response
	if response.TTFTMS < 0 && reply.TTFTMS >= 0 && step.Reply.Text() != "" {
		response.TTFTMS = response.LatencyMS + reply.TTFTMS
	}
	response.LatencyMS += reply.LatencyMS
	n.told.Spent = append(n.told.Spent, Spent{Vendor: x.Service.Name, Model: cmp.Or(step.Model, step.Answered), Usage: step.Usage})
	n.said(reply, step.Usage)
	response.Steps++
}

// said adds what an assistant said.
func (n *narrator) said(reply *trace.Reply, usage *conversation.Usage) {
	response := &n.told.Response
	if usage != nil {
		withTime := *usage
		withTime.LatencyMS = int(reply.LatencyMS)
		reply.Message = reply.Message.WithUsage(withTime)
		n.run.usage = n.run.usage.Add(withTime)
		response.Usage = response.Usage.Add(withTime)
	}
	n.run.steps++
	n.run.tail = nil
	for _, c := range reply.Message.ToolCalls() {
		response.Calls++
		n.calls[c.ID] = c
		n.run.tail = append(n.run.tail, c.ID)
	}
	n.add(trace.Event{Kind: trace.KindReply, Reply: reply})
}

// answered tells what the program said itself: the messages that it gives where no model was asked through the recorder, and its answer where that is not what the model said last.
func (n *narrator) answered() {
	output := n.turn.Answer.Output
	n.told.Response.Text = strings.TrimSpace(output)
	if n.told.Asked == 0 {
		n.messages()
	}
	for _, e := range slices.Backward(n.events) {
		if e.Start != nil {
			break
		}
		if e.Reply != nil {
			if strings.TrimSpace(e.Reply.Message.Text()) == n.told.Response.Text {
				return
			}
			break
		}
	}
	if n.told.Response.Text == "" {
		return
	}
	if len(n.run.tail) > 0 {
		n.end(nil)
		n.begin("", n.turn.Given)
	}
	n.add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: conversation.Assistant(n.turn.MessageID, conversation.Text{Text: output}), Stop: string(llm.StopEnd), TTFTMS: -1}})
}

// messages tells the messages that a program gives whose models are asked past the recorder.
func (n *narrator) messages() {
	usage := n.turn.Answer.Usage
	if usage != nil {
		n.told.Spent = append(n.told.Spent, Spent{Usage: usage})
	}
	for i, m := range n.turn.Answer.Messages {
		switch m.Role() {
		case conversation.RoleAssistant:
			last := !slices.ContainsFunc(n.turn.Answer.Messages[i+1:], func(m conversation.Message) bool { return m.Role() == conversation.RoleAssistant })
			var of *conversation.Usage
			if last {
				of, usage = usage, nil
			}
			n.step++
			n.said(&trace.Reply{Message: m, Stop: string(llm.StopOther), TTFTMS: -1}, of)
			n.told.Response.Steps++
		case conversation.RoleTool:
			for _, r := range n.results([]conversation.Message{m}) {
				n.ran(n.calls[r.ID], r.Result, r.IsError, n.wrapped(n.calls[r.ID]))
				delete(n.calls, r.ID)
				n.run.tail = slices.DeleteFunc(n.run.tail, func(id string) bool { return id == r.ID })
			}
			n.add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: m}})
		}
	}
	if usage != nil {
		n.run.usage, n.told.Response.Usage = n.run.usage.Add(*usage), n.told.Response.Usage.Add(*usage)
		n.add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: conversation.Assistant(n.turn.MessageID, conversation.Text{Text: n.turn.Answer.Output}).WithUsage(*usage), Stop: string(llm.StopEnd), TTFTMS: -1}})
	}
}
