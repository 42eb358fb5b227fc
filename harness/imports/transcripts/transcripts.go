// Package transcripts reads conversations that other programs recorded, as traces that invariants and rules can judge: lists of messages as the APIs of OpenAI and Anthropic take them, trajectories of tau-bench, and the requests in cassettes.
//
// What a record does not tell stands in no trace: without the tools that the model was shown there are no requests, so that invariants about them do not apply. Each message of the user begins a run of the trace. A record that ends on calls or their results ends before its run did.
package transcripts

import (
	"fmt"
	"path"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// Transcript is one conversation.
type Transcript struct {
	// Name tells it from the others of its file.
	Name  string
	Pos   failure.Position
	Trace trace.Trace
}

// Unseen are the invariants that no transcript tells anything about: what they compare is taken by the run itself.
var Unseen = []string{"input-context-unchanged", "iteration-limit", "one-terminal-event", "usage-accounted"}

// Lists reads the conversations of a file of JSON or YAML, or of one with a conversation a line (.jsonl): a list of messages, {messages: [...], tools: [...]}, a record of tau-bench, or a list of these. The error has the code failure.Input and the place.
func Lists(name string, data []byte) ([]Transcript, error) {
	var records []strict.Node
	if strings.EqualFold(path.Ext(name), ".jsonl") {
		for n, err := range strict.Lines(name, strings.NewReader(string(data)), strict.MaxDocument) {
			if err != nil {
				return nil, err
			}
			records = append(records, n)
		}
	} else {
		n, err := strict.Parse(name, data)
		if err != nil {
			return nil, err
		}
		records = []strict.Node{n}
		if n.Kind() == strict.Sequence && (n.Len() == 0 || !isMessage(n.Index(0))) {
			records = nil
			for _, entry := range n.Items() {
				records = append(records, entry)
			}
		}
	}
	var out []Transcript
	for i, n := range records {
		t, err := record(n)
		if err != nil {
			return nil, err
		}
		if t.Name == "" && len(records) > 1 {
			t.Name = fmt.Sprint(i + 1)
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: there is no conversation in it", name), "a conversation is a list of messages with roles, or {messages: [...]}")
	}
	return out, nil
}

func isMessage(n strict.Node) bool {
	return n.Kind() == strict.Mapping && (n.Get("role").Kind() == strict.String || n.Get("type").Kind() == strict.String)
}

// record reads one conversation.
func record(n strict.Node) (Transcript, error) {
	t := Transcript{Pos: n.Pos()}
	list := n
	var tools []tool.Spec
	known := false
	if n.Kind() == strict.Mapping {
		for _, key := range []string{"messages", "traj", "contents", "input"} {
			if list = n.Get(key); list.Kind() == strict.Sequence {
				break
			}
		}
		switch id := n.Get("id"); {
		case id.Kind() == strict.String:
			t.Name = id.Text()
		case !n.Get("task_id").IsZero():
			t.Name = "task-" + n.Get("task_id").Text()
			if trial := n.Get("trial"); !trial.IsZero() {
				t.Name += "-trial-" + trial.Text()
			}
		}
		tools, known = toolsOf(n)
	}
	if list.Kind() != strict.Sequence || list.Len() == 0 || !isMessage(list.Index(0)) {
		return t, failure.WithHint(failure.At(n.Pos(), failure.Input, "there is no conversation in it"), "a conversation is a list of messages with roles, or {messages: [...]}")
	}
	messages, err := messagesOf(list)
	if err != nil {
		return t, err
	}
	if system := systemOf(n); system != "" {
		messages = append([]conversation.Message{conversation.NewMessage(conversation.RoleSystem, "system", conversation.Text{Text: system})}, messages...)
	}
	shown := func(int) ([]tool.Spec, bool) { return tools, known }
	t.Trace = narrate(messages, shown)
	return t, nil
}

// Of reads a list of messages by itself.
func Of(list strict.Node) (trace.Trace, error) {
	messages, err := messagesOf(list)
	if err != nil || len(messages) == 0 {
		return trace.Trace{}, err
	}
	return narrate(messages, func(int) ([]tool.Spec, bool) { return nil, false }), nil
}

// mostRepeated bounds how many messages the runs of a conversation are given again, in all. Beyond it they are given what is new alone, as thousands of turns would make of each a list of all before.
const mostRepeated = 1_000_000

// narrate makes a trace of messages. shown gives the tools that the model was shown before the message at an index, where they are known.
func narrate(messages []conversation.Message, shown func(int) ([]tool.Spec, bool)) trace.Trace {
	var t trace.Trace
	step := 0
	add := func(e trace.Event) {
		e.N, e.Step = len(t.Events)+1, step
		t.Events = append(t.Events, e)
	}
	end := func() { add(trace.Event{Kind: trace.KindEnd, End: &trace.End{Stop: llm.RunEnd, Terminals: 1}}) }
	told := 0   // messages before given that a run was given already, or made
	repeat := 0 // messages that runs were given again
	var given []conversation.Message
	open := map[string]conversation.ToolCall{}
	running, seq := false, 0
	begin := func() {
		if running {
			return
		}
		running = true
		input := given
		if repeat += told; repeat <= mostRepeated {
			input = messages[: told+len(given) : told+len(given)]
		}
		add(trace.Event{Kind: trace.KindStart, Start: &trace.Start{Input: input}})
		given = nil
	}
	for i, m := range messages {
		switch m.Role() {
		case conversation.RoleAssistant:
			begin()
			step++
			if tools, known := shown(i); known {
				add(trace.Event{Kind: trace.KindRequest, Request: &trace.Request{Tools: tools, Messages: i}})
			}
			stop := llm.StopEnd
			for _, c := range m.ToolCalls() {
				open[c.ID], stop = c, llm.StopToolCalls
			}
			add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: m, Stop: string(stop), TTFTMS: -1}})
		case conversation.RoleTool:
			begin()
			for j := range m.Len() {
				r, ok := m.Part(j).(conversation.ToolResult)
				if !ok {
					continue
				}
				c, called := open[r.ID]
				if !called {
					continue // tool-call-pairing says so
				}
				delete(open, r.ID)
				seq++
				add(trace.Event{Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: seq, CallID: r.ID, Name: c.Name, Arguments: c.Input, Scope: tool.External, Outcome: trace.Executed, Source: tool.Ran, Result: r.Result, IsError: r.IsError}})
			}
			add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: m}})
		default:
			if running {
				end()
				running, told = false, i
			}
			given = append(given, m)
		}
	}
	last := messages[len(messages)-1]
	switch {
	case len(given) > 0:
		begin()
		end()
	case last.Role() == conversation.RoleAssistant && len(last.ToolCalls()) == 0:
		end()
	}
	return t
}
