package invariant

import (
	"slices"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// story writes the example traces as the agent's loop records them.
type story struct {
	trace.Trace
	step     int
	messages []conversation.Message
	usage    conversation.Usage
}

// begin starts a run that is given one message of the user.
func begin(said string) *story {
	s := &story{Trace: trace.Trace{Hidden: conversation.Hidden{}}}
	s.messages = []conversation.Message{conversation.User("u1", conversation.Text{Text: said})}
	s.add(trace.Event{Kind: trace.KindStart, Start: &trace.Start{Agent: "example", Model: "m", MaxIterations: 5, Input: slices.Clone(s.messages)}})
	return s
}

// hide gives the run a tool_context.
func (s *story) hide(hidden conversation.Hidden) *story {
	s.Hidden = hidden
	for name := range tool.NewHidden(hidden).All() {
		s.Events[0].Start.Hidden = append(s.Events[0].Start.Hidden, name)
	}
	return s
}

func (s *story) add(e trace.Event) {
	e.N, e.Step = len(s.Events)+1, s.step
	s.Events = append(s.Events, e)
}

// ask asks the model, showing it tools.
func (s *story) ask(tools ...tool.Spec) *story {
	s.step++
	s.add(trace.Event{Kind: trace.KindRequest, Request: &trace.Request{System: "You are an example.", Tools: tools, Messages: len(s.messages)}})
	return s
}

// reply is what the model answers, at the price of 10 tokens in and 2 out.
func (s *story) reply(parts ...conversation.Content) *story {
	usage := conversation.Usage{InputTokens: 10, OutputTokens: 2}
	s.usage = s.usage.Add(usage)
	m := conversation.Assistant("a1", parts...).WithUsage(usage)
	s.messages = append(s.messages, m)
	s.add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: m, TTFTMS: -1}})
	return s
}

// ran records the run of a tool of the workspace.
func (s *story) ran(c conversation.ToolCall, outcome trace.Outcome, result conversation.JSON, paths ...string) *story {
	s.add(trace.Event{Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 1, CallID: c.ID, Name: c.Name, Arguments: c.Input, Effect: tool.Read, Scope: tool.Workspace, Outcome: outcome, Source: tool.Ran, Result: result, Paths: paths}})
	return s
}

// results adds the message with results.
func (s *story) results(parts ...conversation.Content) *story {
	m := conversation.ToolResults("a1", parts...)
	s.messages = append(s.messages, m)
	s.add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: m}})
	return s
}

// end ends the run as the agent would.
func (s *story) end(stop string) trace.Trace {
	end := &trace.End{Stop: stop, Usage: s.usage, Steps: s.step, Terminals: 1}
	for _, m := range s.messages {
		end.Context = append(end.Context, trace.Digest(m))
	}
	for _, m := range s.Events[0].Start.Input {
		end.Input = append(end.Input, trace.Digest(m))
	}
	s.add(trace.Event{Kind: trace.KindEnd, End: end})
	return s.Trace
}

func say(text string) conversation.Text { return conversation.Text{Text: text} }

// read is the tool of the examples, call a call of it, and result its result.
var read = tool.Spec{
	Name: "read_file", Description: "Reads a file.", Effect: tool.Read, Scope: tool.Workspace,
	Parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`,
}

func call(id, args string) conversation.ToolCall {
	return conversation.ToolCall{ID: id, Name: "read_file", Input: conversation.JSON(args)}
}

func result(id, text string) conversation.ToolResult {
	return conversation.ToolResult{ID: id, Result: conversation.String(text)}
}

// reading is a run that reads a file with the given arguments and answers.
func reading(said, args, found string, paths ...string) *story {
	c := call("c1", args)
	return begin(said).ask(read).reply(c).ran(c, trace.Executed, conversation.String(found), paths...).results(result("c1", found)).ask(read).reply(say("It says: " + found))
}

func keepsArguments() trace.Trace {
	return reading("What is in a.txt?", `{"path":"a.txt"}`, "hello", "a.txt").end("end")
}

func breaksArguments() trace.Trace {
	c := call("c1", `{"file":7}`)
	return begin("What is in a.txt?").ask(read).reply(c).ran(c, trace.Invalid, `"path is missing"`).results(result("c1", "path is missing")).ask(read).reply(say("I cannot tell.")).end("end")
}

func keepsInput() trace.Trace {
	return begin("Hello").ask().reply(say("Good day.")).end("end")
}

func breaksInput() trace.Trace {
	t := keepsInput()
	end := t.Events[len(t.Events)-1].End
	end.Context[0] = trace.Digest(conversation.User("u1", say("Hello!")))
	return t
}

func keepsIterations() trace.Trace { return keepsArguments() }

func breaksIterations() trace.Trace {
	s := reading("What is in a.txt?", `{"path":"a.txt"}`, "hello", "a.txt")
	s.Events[0].Start.MaxIterations = 1
	return s.end("end")
}

var tenant = conversation.Hidden{"tenant_id": `"t-7f3a91"`}

func keepsHidden() trace.Trace {
	return begin("Who am I?").hide(tenant).ask().reply(say("A customer.")).end("end")
}

func breaksHidden() trace.Trace {
	return begin("Who am I?").hide(tenant).ask().reply(say("You belong to t-7f3a91.")).end("end")
}

func keepsSecret() trace.Trace {
	return reading("Which key?", `{"path":".env"}`, "KEY is set elsewhere", ".env").end("end")
}

func breaksSecret() trace.Trace {
	return reading("Which key?", `{"path":".env"}`, "KEY=sk-"+"example0example1example2", ".env").end("end")
}

func keepsTerminal() trace.Trace { return keepsInput() }

func breaksTerminal() trace.Trace {
	t := keepsInput()
	end := t.Events[len(t.Events)-1].End
	end.Terminals, end.After = 2, 1
	return t
}

func keepsPath() trace.Trace { return keepsArguments() }

func breaksPath() trace.Trace {
	return reading("Read the password file", `{"path":"../../etc/passwd"}`, "root").end("end")
}

func keepsRole() trace.Trace { return keepsInput() }

func breaksRole() trace.Trace {
	s := begin("Hello")
	s.messages = []conversation.Message{conversation.User("u1", conversation.Reasoning{Text: "hm"})}
	s.Events[0].Start.Input = s.messages
	return s.ask().reply(say("Good day.")).end("end")
}

func keepsPairing() trace.Trace { return keepsArguments() }

func breaksPairing() trace.Trace {
	return begin("What is in a.txt?").ask(read).reply(call("c1", `{"path":"a.txt"}`)).ask(read).reply(say("I cannot tell.")).end("end")
}

func twoCalls(second string) trace.Trace {
	a, b := call("c1", `{"path":"a.txt"}`), call(second, `{"path":"b.txt"}`)
	return begin("What is in both files?").ask(read).reply(a, b).ran(a, trace.Executed, `"x"`, "a.txt").ran(b, trace.Executed, `"y"`, "b.txt").
		results(result("c1", "x"), result(second, "y")).ask(read).reply(say("x and y.")).end("end")
}

func keepsIDs() trace.Trace { return twoCalls("c2") }

func breaksIDs() trace.Trace { return twoCalls("c1") }

func keepsUsage() trace.Trace { return keepsInput() }

func breaksUsage() trace.Trace {
	t := keepsInput()
	t.Events[len(t.Events)-1].End.Usage.OutputTokens = 3
	return t
}

func keepsVisible() trace.Trace { return keepsArguments() }

func breaksVisible() trace.Trace {
	c := call("c1", `{"path":"a.txt"}`)
	return begin("What is in a.txt?").ask().reply(c).ran(c, trace.Unknown, `"no such tool"`).results(result("c1", "no such tool")).ask().reply(say("I cannot tell.")).end("end")
}
