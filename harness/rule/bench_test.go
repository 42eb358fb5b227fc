//go:build unix

package rule_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/rule"
)

// long is a trace of about n events in which a model calls tools by turns and gets results of a hundred characters.
func long(n int) []trace.Event {
	events := []trace.Event{{N: 1, Kind: trace.KindStart, Start: &trace.Start{Input: []conversation.Message{conversation.User("u", conversation.Text{Text: "Begin."})}}}}
	add := func(e trace.Event) {
		e.N = len(events) + 1
		events = append(events, e)
	}
	tools := []string{"lookup", "read", "web_fetch", "write"}
	for i := 0; len(events) < n; i++ {
		c := conversation.ToolCall{ID: fmt.Sprint("c", i), Name: tools[i%len(tools)], Input: conversation.JSON(fmt.Sprintf(`{"path":"notes/%d.txt","text":"the %dth line of these notes"}`, i, i))}
		result := conversation.String(fmt.Sprintf("line %d: nothing that anybody would want to keep, but long enough to be a line of some text", i))
		add(trace.Event{Kind: trace.KindRequest, Request: &trace.Request{}})
		add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: conversation.Assistant("a", c)}})
		add(trace.Event{Kind: trace.KindTool, Tool: &trace.ToolRun{CallID: c.ID, Name: c.Name, Arguments: c.Input, Outcome: trace.Executed, Result: result}})
		add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: conversation.ToolResults("a", conversation.ToolResult{ID: c.ID, Result: result})}})
	}
	add(trace.Event{Kind: trace.KindEnd, End: &trace.End{Stop: "end"}})
	return events
}

// processor is the time that the process took of processors.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEvents measures one rule over a long trace, reading the story included, in events for each second of a processor.
func BenchmarkEvents(b *testing.B) {
	events := long(100_000)
	for name, text := range map[string]string{
		"condition": "rule: \"trace.calls('write').all(c, !c.args.text.contains('rm -rf'))\"",
		"order":     "never: {after: web_fetch, call: exec, unless: approval}",
		"flow":      "never: {from: web_fetch, call: write}",
		"sequence":  "sequence: \"(lookup | read | web_fetch write)*\"",
		"count":     "count: {call: write, max: 10, within: 30 calls}",
	} {
		n, err := strict.Parse("rule.yaml", []byte(text))
		if err != nil {
			b.Fatal(err)
		}
		var p strict.Problems
		r := rule.Compile(n, &p)
		if r == nil {
			b.Fatal(p.Err())
		}
		b.Run(name, func(b *testing.B) {
			began := processor(b)
			for b.Loop() {
				if o := r.Evaluate(rule.Read(events)); !o.Applicable || o.Broken > 0 {
					b.Fatalf("%+v", o)
				}
			}
			b.ReportMetric(float64(len(events))*float64(b.N)/(processor(b)-began).Seconds(), "events/cpu-s")
		})
	}
}
