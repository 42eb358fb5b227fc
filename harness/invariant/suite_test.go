package invariant

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

func TestInvariant(t *testing.T) { suite.Run(t, "invariant") }

// broken lists the violations of a trace as "name" or "name (warn)".
func broken(t trace.Trace) []string {
	var names []string
	for _, v := range Select(nil, nil, nil).Evaluate(t).Violations {
		if v.Severity == eval.SeverityWarn {
			v.Name += " (warn)"
		}
		names = append(names, v.Name)
	}
	return names
}

// reread is the trace as a file gives it back.
func reread(t trace.Trace) trace.Trace {
	GinkgoHelper()
	decoded, err := trace.Decode(t.AppendJSON(nil))
	Expect(err).NotTo(HaveOccurred())
	return decoded
}

// search is a second tool, of the outside world.
var search = tool.Spec{Name: "search", Description: "Finds files.", Effect: tool.Read, Scope: tool.External, Parameters: `{"type":"object","properties":{"q":{"type":"string"},"limit":{"type":"integer"}},"required":["q"]}`}

// good is a run of three model steps: two calls side by side, one more, an answer. Exchanges say that the transport looked at the requests.
func good() *story {
	a := call("c1", `{"path":"docs/a.txt"}`)
	b := conversation.ToolCall{ID: "c2", Name: "search", Input: `{"q":"b","limit":2.0}`}
	c := call("c3", `{"path":"./docs/../b.txt"}`)
	s := begin("What do a and b say?").hide(conversation.Hidden{"tenant_id": `"tenant-0042"`, "user": `{"token":"tok-91-abc","age":7}`})
	wire := func() {
		s.add(trace.Event{Kind: trace.KindExchange, Exchange: &trace.Exchange{Attempt: 1, Method: "POST", URL: "https://api.example.com/v1/chat", Status: 200, TTFTMS: -1, Source: "recorded", Leaks: []string{}}})
	}
	s.ask(read, search)
	wire()
	s.reply(say("Let me look."), a, b)
	s.ran(a, trace.Executed, `"alpha"`, "docs/a.txt").ran(b, trace.Executed, `{"hits":["b.txt"]}`)
	s.Events[len(s.Events)-1].Tool.Scope = tool.External
	s.results(result("c1", "alpha"), conversation.ToolResult{ID: "c2", Result: `{"hits":["b.txt"]}`})
	s.ask(read, search)
	wire()
	s.reply(c).ran(c, trace.Executed, `"beta"`, "b.txt").results(result("c3", "beta"))
	s.ask(read, search)
	wire()
	return s.reply(say("alpha and beta"))
}

// event returns the nth event of a kind, from 1.
func event(t trace.Trace, kind trace.Kind, n int) *trace.Event {
	for i := range t.Events {
		if t.Events[i].Kind == kind {
			if n--; n == 0 {
				return &t.Events[i]
			}
		}
	}
	panic("no such event: " + string(kind))
}

// edit replaces the parts of a message.
func edit(m conversation.Message, change func([]conversation.Content) []conversation.Content) conversation.Message {
	var parts []conversation.Content
	for _, p := range m.Parts() {
		parts = append(parts, p)
	}
	out := conversation.NewMessage(m.Role(), m.ID(), change(parts)...)
	if u, ok := m.Usage(); ok {
		out = out.WithUsage(u)
	}
	return out
}

// seal renumbers events and takes the digests at the end anew, so that a change to a message is the only thing wrong.
func seal(t trace.Trace) trace.Trace {
	var context []string
	for i := range t.Events {
		e := &t.Events[i]
		e.N = i + 1
		switch {
		case e.Start != nil:
			for _, m := range e.Start.Input {
				context = append(context, trace.Digest(m))
			}
		case e.Reply != nil:
			context = append(context, trace.Digest(e.Reply.Message))
		case e.Results != nil:
			context = append(context, trace.Digest(e.Results.Message))
		case e.End != nil:
			e.End.Context = context
			e.End.Input = context[:len(t.Events[0].Start.Input)]
		}
	}
	return t
}

func without(t trace.Trace, e *trace.Event) trace.Trace {
	n := e.N
	t.Events = slices.DeleteFunc(t.Events, func(e trace.Event) bool { return e.N == n })
	return t
}

var _ = Describe("the catalogue", func() {
	It("is sorted, complete and unique", func() {
		Expect(Names()).To(Equal([]string{
			"arguments-match-schema", "input-context-unchanged", "iteration-limit", "no-hidden-parameter-leak", "no-secret-in-content", "one-terminal-event",
			"path-confined", "role-content", "tool-call-pairing", "tool-call-unique-ids", "usage-accounted", "visible-tools-only",
		}))
		Expect(slices.IsSorted(Names())).To(BeTrue())
		for _, e := range Catalogue() {
			Expect(e.Statement).NotTo(BeEmpty())
			Expect(e.Notes).NotTo(BeEmpty())
			Expect(e.Severity).To(Equal(eval.SeverityError))
		}
	})

	for _, e := range Catalogue() {
		It("has a trace that keeps "+e.Name+" and one that breaks it", func() {
			for _, t := range []trace.Trace{e.Keeps(), reread(e.Keeps())} {
				got := Select(nil, nil, nil).Evaluate(t)
				Expect(got.Violations).To(BeEmpty())
				if t.Hidden != nil {
					Expect(got.NotApplicable).NotTo(ContainElement(e.Name), "held because there was something to look at")
				}
				Expect(got.Held + len(got.NotApplicable)).To(Equal(len(Catalogue())))
			}
			Expect(broken(e.Breaks())).To(Equal([]string{e.Name}))
			if e.Name != "no-hidden-parameter-leak" { // whose values are in no file
				Expect(broken(reread(e.Breaks()))).To(Equal([]string{e.Name}))
			}
			for _, v := range Select(nil, nil, nil).Evaluate(e.Breaks()).Violations {
				Expect(v.Events).NotTo(BeEmpty())
				Expect(v.Evidence).NotTo(BeEmpty())
				Expect(len(v.Evidence)).To(BeNumerically("<=", 500))
			}
		})

		It("explains "+e.Name, func() {
			text, ok := Explain(e.Name)
			Expect(ok).To(BeTrue())
			suite.Golden("explain/"+e.Name+".txt", []byte(text))
		})
	}

	It("lists itself", func() {
		suite.Golden("list.txt", []byte(List()))
		_, ok := Explain("no-such")
		Expect(ok).To(BeFalse())
	})
})

var _ = Describe("a good run", func() {
	It("keeps every rule, and every rule had something to look at", func() {
		got := Select(nil, nil, nil).Evaluate(good().end("end"))
		Expect(got).To(Equal(eval.Invariants{Held: 12, NotApplicable: []string{}, Triggered: []string{}, Violations: []eval.Violation{}}))
		got = Select(nil, nil, nil).Evaluate(reread(good().end("end")))
		Expect(got).To(Equal(eval.Invariants{Held: 12, NotApplicable: []string{}, Triggered: []string{}, Violations: []eval.Violation{}}))
	})

	It("keeps them as far as it came, wherever it is cut off", func() {
		whole := good().end("end")
		for n := range len(whole.Events) {
			cut := trace.Trace{Events: whole.Events[:n], Hidden: whole.Hidden}
			Expect(broken(cut)).To(BeEmpty(), "after %d events", n)
			Expect(broken(reread(cut))).To(BeEmpty(), "after %d events", n)
		}
	})

	It("keeps them where an outage ends it after any event", func() {
		whole := good().end("end")
		for n := 1; n < len(whole.Events); n++ {
			s := begin("")
			s.Events = slices.Clone(whole.Events[:n])
			s.Hidden = whole.Hidden
			s.messages = slices.Clone(whole.Events[0].Start.Input)
			for _, e := range s.Events {
				s.step = e.Step
				if e.Reply != nil {
					u, _ := e.Reply.Message.Usage()
					s.usage = s.usage.Add(u)
					s.messages = append(s.messages, e.Reply.Message)
				}
				if e.Results != nil {
					s.messages = append(s.messages, e.Results.Message)
				}
			}
			Expect(broken(s.end("error"))).To(BeEmpty(), "after %d events", n)
		}
	})

	It("gives nothing to look at where there is nothing", func() {
		got := Select(nil, nil, nil).Evaluate(trace.Trace{})
		Expect(got.Held).To(BeZero())
		Expect(got.NotApplicable).To(Equal(Names()))

		failed := trace.Trace{Events: []trace.Event{{N: 1, Kind: trace.KindEnd, End: &trace.End{Stop: "error", Error: "no model"}}}, Hidden: conversation.Hidden{}}
		Expect(Select(nil, nil, nil).Evaluate(failed).NotApplicable).To(Equal(Names()), "a run that never began")
	})

	It("says which rules have nothing to look at in a run without tools", func() {
		got := Select(nil, nil, nil).Evaluate(keepsInput())
		Expect(got.NotApplicable).To(Equal([]string{"arguments-match-schema", "no-hidden-parameter-leak", "path-confined", "tool-call-pairing", "tool-call-unique-ids", "visible-tools-only"}))
		Expect(got.Held).To(Equal(6))
	})
})

var _ = DescribeTable("a run broken in one way breaks one rule",
	func(change func(trace.Trace) trace.Trace, want string, evidence string, events ...int) {
		t := change(good().end("end"))
		got := Select(nil, nil, nil).Evaluate(t)
		Expect(broken(t)).To(Equal([]string{want}))
		v := got.Violations[0]
		Expect(v.Evidence).To(ContainSubstring(evidence))
		Expect(v.Events).To(Equal(events))
		for _, secret := range []string{"tenant-0042", "tok-91-abc", "ghp_" + strings.Repeat("a1", 20)} {
			Expect(v.Evidence).NotTo(ContainSubstring(secret))
		}
	},
	Entry("a result is lost", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 1)
		r.Results.Message = edit(r.Results.Message, func(p []conversation.Content) []conversation.Content { return p[:1] })
		return seal(t)
	}, "tool-call-pairing", `call "c2" of "search" has no result before the next message`, 4, 10),
	Entry("the message with results is lost", func(t trace.Trace) trace.Trace { return seal(without(t, event(t, trace.KindResults, 2))) },
		"tool-call-pairing", `call "c3" of "read_file" has no result before the next message`, 10, 14),
	Entry("a result is doubled", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 1)
		r.Results.Message = edit(r.Results.Message, func(p []conversation.Content) []conversation.Content { return append(p, p[0]) })
		return seal(t)
	}, "tool-call-pairing", `call "c1" of "read_file" is answered twice`, 7),
	Entry("a result without a call", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 2)
		r.Results.Message = edit(r.Results.Message, func(p []conversation.Content) []conversation.Content { return append(p, result("c9", "x")) })
		return seal(t)
	}, "tool-call-pairing", `a result for "c9", which nothing called`, 12),
	Entry("a result under another id", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 2)
		r.Results.Message = edit(r.Results.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{result("c8", "beta")}
		})
		return seal(t)
	}, "tool-call-pairing", `a result for "c8", which nothing called (and 1 more)`, 12),
	Entry("a late result", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 2)
		late := *r
		t = without(t, r)
		last := t.Events[len(t.Events)-1]
		return seal(trace.Trace{Events: append(t.Events[:len(t.Events)-1:len(t.Events)-1], late, last), Hidden: t.Hidden})
	}, "tool-call-pairing", `the result of call "c3" of "read_file" comes after another message (and 1 more)`, 15),
	Entry("a call without an id", func(t trace.Trace) trace.Trace {
		for _, e := range []*trace.Event{event(t, trace.KindReply, 2), event(t, trace.KindResults, 2)} {
			clear := func(p []conversation.Content) []conversation.Content {
				switch c := p[0].(type) {
				case conversation.ToolCall:
					c.ID = ""
					p[0] = c
				case conversation.ToolResult:
					c.ID = ""
					p[0] = c
				}
				return p
			}
			if e.Reply != nil {
				e.Reply.Message = edit(e.Reply.Message, clear)
			} else {
				e.Results.Message = edit(e.Results.Message, clear)
			}
		}
		return seal(t)
	}, "tool-call-pairing", "has no tool_call_id (and 1 more)", 10),
	Entry("two calls of one message share an id", func(t trace.Trace) trace.Trace {
		r, o := event(t, trace.KindReply, 1), event(t, trace.KindResults, 1)
		r.Reply.Message = edit(r.Reply.Message, func(p []conversation.Content) []conversation.Content {
			c := p[2].(conversation.ToolCall)
			c.ID = "c1"
			p[2] = c
			return p
		})
		o.Results.Message = edit(o.Results.Message, func(p []conversation.Content) []conversation.Content {
			c := p[1].(conversation.ToolResult)
			c.ID = "c1"
			p[1] = c
			return p
		})
		return seal(t)
	}, "tool-call-unique-ids", `two calls of one message have the id "c1"`, 4),
	Entry("an id returns", func(t trace.Trace) trace.Trace {
		r, o := event(t, trace.KindReply, 2), event(t, trace.KindResults, 2)
		r.Reply.Message = edit(r.Reply.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{call("c1", `{"path":"b.txt"}`)}
		})
		o.Results.Message = edit(o.Results.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{result("c1", "beta")}
		})
		return seal(t)
	}, "tool-call-unique-ids (warn)", `the id "c1" of an earlier call returns`, 4, 10),
	Entry("the user's message holds reasoning", func(t trace.Trace) trace.Trace {
		in := event(t, trace.KindStart, 1).Start
		in.Input = []conversation.Message{conversation.User("u1", conversation.Reasoning{Text: "x"})}
		return seal(t)
	}, "role-content", "a message of role user may not carry reasoning", 1),
	Entry("a reply of another role", func(t trace.Trace) trace.Trace {
		event(t, trace.KindReply, 3).Reply.Message = conversation.User("a1", say("alpha and beta")).WithUsage(conversation.Usage{InputTokens: 10, OutputTokens: 2})
		return seal(t)
	}, "role-content", `the model's reply has the role "user"`, 15),
	Entry("a digest of the input changes", func(t trace.Trace) trace.Trace {
		end := event(t, trace.KindEnd, 1).End
		end.Input = []string{"0123456789abcdef"}
		end.Context = slices.Concat(end.Input, end.Context[1:])
		return t
	}, "input-context-unchanged", "message 1 of the input was changed during the run", 1, 16),
	Entry("the returned context begins otherwise", func(t trace.Trace) trace.Trace {
		end := event(t, trace.KindEnd, 1).End
		end.Context = slices.Concat([]string{"0123456789abcdef"}, end.Context[1:])
		return t
	}, "input-context-unchanged", "message 1 of the input is not message 1 of the returned context", 1, 16),
	Entry("the returned context lacks the input", func(t trace.Trace) trace.Trace {
		event(t, trace.KindEnd, 1).End.Context = nil
		return t
	}, "input-context-unchanged", "message 1 of the input is not", 1, 16),
	Entry("a tool changes an earlier message", func(t trace.Trace) trace.Trace {
		end := event(t, trace.KindEnd, 1).End
		end.Context = slices.Clone(end.Context)
		end.Context[2] = "0123456789abcdef"
		return t
	}, "input-context-unchanged", "the message of event 7 is not in the returned context as it was added", 7, 16),
	Entry("the input grows", func(t trace.Trace) trace.Trace {
		end := event(t, trace.KindEnd, 1).End
		end.Input = append(slices.Clone(end.Input), "0123456789abcdef")
		return t
	}, "input-context-unchanged", "1 messages were passed in, at the end there are 2 of them", 1, 16),
	Entry("a hidden value in the answer", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindReply, 3)
		r.Reply.Message = edit(r.Reply.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{say("for tenant-0042")}
		})
		return seal(t)
	}, "no-hidden-parameter-leak", "the value of tenant_id stands in a message of the assistant", 15),
	Entry("a part of a hidden value in a result, escaped twice", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 2)
		r.Results.Message = edit(r.Results.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{result("c3", `{"auth":"{\"t\":\"tok\u002d91-abc\"}"}`)}
		})
		return seal(t)
	}, "no-hidden-parameter-leak", `the value of user.token stands in the result of call "c3"`, 12),
	Entry("a hidden value in the system prompt", func(t trace.Trace) trace.Trace {
		event(t, trace.KindRequest, 2).Request.System = "You serve tenant-0042."
		return t
	}, "no-hidden-parameter-leak", "stands in the system prompt", 8),
	Entry("a hidden value in a schema", func(t trace.Trace) trace.Trace {
		tools := slices.Clone(event(t, trace.KindRequest, 1).Request.Tools)
		tools[1].Parameters = `{"type":"object","properties":{"q":{"type":"string","default":"tenant-0042"},"limit":{"type":"integer"}}}`
		event(t, trace.KindRequest, 1).Request.Tools = tools
		return t
	}, "no-hidden-parameter-leak", `stands in the schema of tool "search"`, 2),
	Entry("a property with a hidden name", func(t trace.Trace) trace.Trace {
		tools := slices.Clone(event(t, trace.KindRequest, 1).Request.Tools)
		tools[1].Parameters = `{"type":"object","properties":{"q":{"type":"string"},"limit":{"type":"integer"},"x":{"type":"object","properties":{"tenant_id":{"type":"string"}}}}}`
		event(t, trace.KindRequest, 1).Request.Tools = tools
		return t
	}, "no-hidden-parameter-leak", `the schema of tool "search" has a property "tenant_id", which is hidden`, 2),
	Entry("the transport saw a hidden value", func(t trace.Trace) trace.Trace {
		event(t, trace.KindExchange, 2).Exchange.Leaks = []string{"tenant_id"}
		return t
	}, "no-hidden-parameter-leak", "the value of tenant_id stood in the request of step 2", 9),
	Entry("a hidden number as a whole value", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 1)
		r.Results.Message = edit(r.Results.Message, func(p []conversation.Content) []conversation.Content {
			p[1] = conversation.ToolResult{ID: "c2", Result: `{"hits":["b.txt",7]}`}
			return p
		})
		return seal(t)
	}, "no-hidden-parameter-leak (warn)", "the value of user.age, too short or too common to be sure, is a whole value in the result", 7),
	Entry("a secret in a result", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindResults, 1)
		r.Results.Message = edit(r.Results.Message, func(p []conversation.Content) []conversation.Content {
			p[0] = result("c1", "token: ghp_"+strings.Repeat("a1", 20))
			return p
		})
		return seal(t)
	}, "no-secret-in-content", `github-token at byte 8 of the result of call "c1"`, 7),
	Entry("a secret in the prompt", func(t trace.Trace) trace.Trace {
		event(t, trace.KindRequest, 3).Request.System = "Key: ghp_" + strings.Repeat("a1", 20)
		return t
	}, "no-secret-in-content", "github-token at byte 5 of the system prompt", 13),
	Entry("a call of a tool that is not there", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindReply, 2)
		r.Reply.Message = edit(r.Reply.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{conversation.ToolCall{ID: "c3", Name: "read_fiel", Input: `{"path":"b.txt"}`}}
		})
		return seal(t)
	}, "visible-tools-only", `step 2 calls "read_fiel", and the model was shown read_file, search`, 10),
	Entry("a tool that is no longer shown", func(t trace.Trace) trace.Trace {
		event(t, trace.KindRequest, 2).Request.Tools = []tool.Spec{search}
		return t
	}, "visible-tools-only", `step 2 calls "read_file", and the model was shown search`, 10),
	Entry("arguments without a required one", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindReply, 1)
		r.Reply.Message = edit(r.Reply.Message, func(p []conversation.Content) []conversation.Content {
			p[2] = conversation.ToolCall{ID: "c2", Name: "search", Input: `{"limit":"x"}`}
			return p
		})
		return seal(t)
	}, "arguments-match-schema", `call "c2" of "search": `, 4),
	Entry("malformed arguments", func(t trace.Trace) trace.Trace {
		r := event(t, trace.KindReply, 1)
		r.Reply.Message = edit(r.Reply.Message, func(p []conversation.Content) []conversation.Content {
			p[2] = conversation.ToolCall{ID: "c2", Name: "search", Input: `{"q":`}
			return p
		})
		return seal(t)
	}, "arguments-match-schema", `call "c2" of "search": the arguments are not valid JSON`, 4),
	Entry("a second terminal event", func(t trace.Trace) trace.Trace {
		end := event(t, trace.KindEnd, 1).End
		end.Terminals, end.After = 2, 1
		return t
	}, "one-terminal-event", "the stream had 2 done and error events", 16),
	Entry("no terminal event", func(t trace.Trace) trace.Trace {
		event(t, trace.KindEnd, 1).End.Terminals = 0
		return t
	}, "one-terminal-event", "ended without a done or error event", 16),
	Entry("text after the terminal event", func(t trace.Trace) trace.Trace {
		event(t, trace.KindEnd, 1).End.After = 3
		return t
	}, "one-terminal-event", "3 events followed", 16),
	Entry("the run goes on after its end", func(t trace.Trace) trace.Trace {
		t.Events = append(t.Events, trace.Event{N: 17, Kind: trace.KindWarning, Warning: &trace.Warning{Code: "x"}})
		return t
	}, "one-terminal-event", "went on after its end", 16, 17),
	Entry("a step too many", func(t trace.Trace) trace.Trace {
		event(t, trace.KindStart, 1).Start.MaxIterations = 2
		return t
	}, "iteration-limit", "3 model steps, at most 2 are allowed", 13),
	Entry("a file outside the workspace", func(t trace.Trace) trace.Trace {
		event(t, trace.KindTool, 3).Tool.Paths = []string{"../x"}
		return t
	}, "path-confined", `"read_file" touched "../x", outside the workspace`, 11),
	Entry("an argument that climbs out", func(t trace.Trace) trace.Trace {
		event(t, trace.KindTool, 3).Tool.Arguments = `{"opts":{"file_path":["a/../../x"]}}`
		return t
	}, "path-confined", `"read_file" succeeded with file_path "a/../../x", outside the workspace`, 11),
	Entry("an absolute argument and no word of the file", func(t trace.Trace) trace.Trace {
		event(t, trace.KindTool, 3).Tool.Arguments, event(t, trace.KindTool, 3).Tool.Paths = `{"p\u0061th":"C:\\Windows\\x"}`, nil
		return t
	}, "path-confined", `succeeded with path "C:\\Windows\\x"`, 11),
	Entry("other usage", func(t trace.Trace) trace.Trace {
		end := event(t, trace.KindEnd, 1).End
		end.Usage.InputTokens++
		end.Usage.CacheReadTokens = 4
		return t
	}, "usage-accounted", "input tokens: the steps have 30, the result 31; cache read tokens: the steps have 0, the result 4", 16),
)

var _ = Describe("no false alarm", func() {
	It("for a call on which the run paused, with its neighbours answered", func() {
		a, b := call("c1", `{"path":"a"}`), call("c2", `{"path":"b"}`)
		paused := func(outcome trace.Outcome) trace.Trace {
			return begin("x").ask(read).reply(a, b).ran(a, trace.Executed, `"1"`, "a").ran(b, outcome, `"ask"`).results(result("c1", "1")).end("paused")
		}
		Expect(broken(paused(trace.Paused))).To(BeEmpty())
		Expect(broken(paused(trace.Executed))).To(Equal([]string{"tool-call-pairing"}), "the result of an executed call is lost")
		Expect(broken(begin("x").ask(read).reply(a).ran(a, trace.Paused, `"ask"`).end("paused"))).To(BeEmpty())
	})

	It("for calls left open only where the run says that it ended in an error", func() {
		open := func(stop string) trace.Trace {
			return begin("x").ask(read).reply(call("c1", `{"path":"a"}`)).end(stop)
		}
		Expect(broken(open("error"))).To(BeEmpty())
		for _, stop := range []string{"end", "max_iterations", "length", "refused"} {
			Expect(broken(open(stop))).To(Equal([]string{"tool-call-pairing"}), stop)
		}
	})

	It("for paths that failed, are served from elsewhere, or lie inside", func() {
		change := func(f func(*trace.ToolRun)) []string {
			t := breaksPath()
			f(event(t, trace.KindTool, 1).Tool)
			return broken(t)
		}
		Expect(change(func(t *trace.ToolRun) { t.IsError = true })).To(BeEmpty())
		Expect(change(func(t *trace.ToolRun) { t.Outcome = trace.Invalid })).To(BeEmpty())
		Expect(change(func(t *trace.ToolRun) { t.Scope = tool.External })).To(BeEmpty())
		Expect(change(func(t *trace.ToolRun) { t.Arguments, t.Paths = `{"path":"/work/a.txt"}`, []string{"a.txt"} })).To(BeEmpty())
		Expect(change(func(t *trace.ToolRun) { t.Arguments = `{"path":"a/../b/./..c/...","profile":"../x","query":"/etc"}` })).To(BeEmpty())
		Expect(change(func(t *trace.ToolRun) { t.Arguments, t.Paths = `{"path":"/work/../a.txt"}`, []string{"a.txt"} })).To(BeEmpty())
	})

	It("for short hidden values inside other text", func() {
		hidden := conversation.Hidden{"region": `"eu"`, "debug": `true`, "n": `12345678901`, "none": `null`, "empty": `""`}
		t := func(text string) trace.Trace { return begin("x").hide(hidden).ask().reply(say(text)).end("end") }
		Expect(broken(t("neutral, true enough: 12345678901"))).To(BeEmpty())
		Expect(broken(t("eu"))).To(Equal([]string{"no-hidden-parameter-leak (warn)"}))
		Expect(broken(t(`{"a":{"b":[true]}}`))).To(Equal([]string{"no-hidden-parameter-leak (warn)"}))
		Expect(broken(t(`["{\"n\":12345678901}"]`))).To(Equal([]string{"no-hidden-parameter-leak (warn)"}))
		Expect(broken(t(`["true"]`))).To(BeEmpty(), "a text is no boolean")
		Expect(Weak(hidden)).To(Equal([]string{"debug", "n", "region"}))
		Expect(Weak(conversation.Hidden{"user": `{"name":"Ana","id":"user-000001"}`})).To(Equal([]string{"user.name"}))
	})

	It("for a decoded trace that was redacted after its digests were taken", func() {
		t := reread(good().end("end"))
		event(t, trace.KindReply, 3).Reply.Message = conversation.Assistant("a1", say("[redacted]")).WithUsage(conversation.Usage{InputTokens: 10, OutputTokens: 2})
		Expect(broken(t)).To(BeEmpty())
		event(t, trace.KindEnd, 1).End.Context[0] = "0123456789abcdef"
		Expect(broken(t)).To(Equal([]string{"input-context-unchanged"}))
	})

	It("for a run of several turns in one trace", func() {
		first, second := good().end("end"), good().end("end")
		both := trace.Trace{Events: slices.Concat(first.Events, second.Events), Hidden: first.Hidden}
		for i := range both.Events {
			both.Events[i].N = i + 1
		}
		got := Select(nil, nil, nil).Evaluate(both)
		Expect(got.Violations).To(BeEmpty())
		Expect(got.Held).To(Equal(12))
		both.Events[len(both.Events)-1].End.Usage.InputTokens = 0
		v := Select(nil, nil, nil).Evaluate(both).Violations
		Expect(v).To(HaveLen(1))
		Expect(v[0].Events).To(Equal([]int{32}))
	})

	It("for an agent that broke down before it could count", func() {
		t := good().end("error")
		end := event(t, trace.KindEnd, 1).End
		end.Usage, end.Steps, end.Context = conversation.Usage{}, 0, end.Input
		Expect(broken(t)).To(BeEmpty())
	})
})
