package html

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

// regular is a run of so many items, every tenth of which fails on all providers and every 25th on the last alone, with transcripts of about 3 KB that differ.
func regular(items, providers int) *results.Run {
	GinkgoHelper()
	size := resultstest.Size{Items: items, Providers: providers, Repeats: 1}
	plan := size.Plan()
	runs := GinkgoT().TempDir()
	id, dir, err := results.NewFolder(runs, resultstest.Start, plan.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{ID: id, Tool: results.Tool{Version: "1.0.0", Platform: "any"}, Started: resultstest.Start, Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	for index := 1; index <= items; index++ {
		for column := range providers {
			line := resultstest.Line(index, column, 1)
			if index%25 == 0 && column == providers-1 {
				line.Status, line.Cause = eval.Fail, ptr(eval.CauseCheck)
				line.Checks[0].Status, line.Checks[0].Reason = eval.CheckFail, "not found"
			}
			Expect(journal.Append(line, regularTrace(line), column)).To(Succeed())
		}
	}
	Expect(journal.Close()).To(Succeed())
	_, err = results.Fold(dir, plan)
	Expect(err).NotTo(HaveOccurred())
	return open(dir)
}

func regularTrace(line eval.Result) []byte {
	var t trace.Trace
	add := func(kind trace.Kind, e trace.Event) {
		e.N, e.Kind, e.Step = len(t.Events)+1, kind, 1
		t.Events = append(t.Events, e)
	}
	// Words that a seed chooses compress about as well as prose does.
	seed := uint64(line.Index)*2654435761 + uint64(len(line.Provider))*97 + uint64(line.Provider[len(line.Provider)-1])
	prose := func(words int) string {
		var b strings.Builder
		for range words {
			seed = seed*6364136223846793005 + 1442695040888963407
			fmt.Fprintf(&b, "%s ", vocabulary[seed>>33%uint64(len(vocabulary))])
		}
		return b.String()
	}
	call := conversation.ToolCall{ID: "c1", Name: "search", Input: conversation.JSON(`{"query":"` + prose(12) + `"}`)}
	add(trace.KindStart, trace.Event{Start: &trace.Start{Agent: "a", Model: "m", MaxIterations: 4, Input: []conversation.Message{conversation.User("m1", conversation.Text{Text: prose(60)})}}})
	add(trace.KindRequest, trace.Event{Request: &trace.Request{System: strings.Repeat("You answer briefly. ", 40), Messages: 1}})
	add(trace.KindReply, trace.Event{Reply: &trace.Reply{Message: conversation.Assistant("m2", conversation.Text{Text: prose(30)}, call), Stop: "tool_calls", Model: "m", LatencyMS: 400, TTFTMS: 90}})
	add(trace.KindTool, trace.Event{Tool: &trace.ToolRun{Seq: 1, CallID: "c1", Name: "search", Arguments: call.Input, Outcome: trace.Executed, Result: conversation.String(prose(120)), DurationMS: 7}})
	add(trace.KindReply, trace.Event{Reply: &trace.Reply{Message: conversation.Assistant("m3", conversation.Text{Text: *line.Output + " " + prose(80)}), Stop: "end", Model: "m", LatencyMS: 600, TTFTMS: 110}})
	add(trace.KindEnd, trace.Event{End: &trace.End{Stop: "end", Steps: 2}})
	out := []byte(`{"v":1,"item":{"id":`)
	out = conversation.AppendString(out, line.Item)
	return append(t.AppendJSON(append(out, `},"events":`...)), '}')
}

var vocabulary = strings.Fields(`the a of to and in that it is was for on with as at by an be this which from or had not are but were one all their there been has when who will no more if out so what up said its about than into them can only other time new some could these two may first then do any like my now over such our man me even most made after also did many off before must well back through years much where your way down should because long each just state those people too mr good very make world still see own work men day get here old life both between being under three never know same last another while us might great year come since against go came right used take`)
