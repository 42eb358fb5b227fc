package resultstest

import (
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
)

// Hostile is text that attacks a terminal, an XML file or the reader's eye.
const Hostile = "\x1b[2J\x1b]0;owned\a\u009b31m \u202egnp.exe\u2069 \x00 ]]> <b>&amp; | `x` \r\nsecond line\ttab \xff 🩺 漢字"

// verdict is one outcome of the gallery.
type verdict struct {
	item   string
	status eval.Status
	cause  string
	// edit changes the line of one column and repeat.
	edit func(line *eval.Result, column, repeat int)
}

var gallery = []verdict{
	{item: "all-is-well", status: eval.Pass},
	{item: "wrong answer 🩺", status: eval.Fail, cause: eval.CauseCheck, edit: func(line *eval.Result, _, _ int) { failCheck(line, "112", Hostile) }},
	{item: "flaky", status: eval.Pass, edit: func(line *eval.Result, column, repeat int) {
		if column == 0 && repeat == 2 {
			line.Status, line.Cause = eval.Fail, ptr(eval.CauseCheck)
			failCheck(line, "the ward's number", "no number")
		}
	}},
	{item: "web-before-exec", status: eval.Fail, cause: eval.CauseInvariant, edit: func(line *eval.Result, _, _ int) {
		line.Invariants = eval.Invariants{Held: 2, Triggered: []string{"web-then-exec"}, NotApplicable: []string{"sql-bound"}, Violations: []eval.Violation{{
			Name: "web-then-exec", Severity: eval.SeverityError, Events: []int{3, 5}, Evidence: "exec after web_fetch of \x1b[1mhttp://a\x1b[0m", At: "evals/shared/safety.yaml:6:3",
		}}}
	}},
	{item: "a warning only", status: eval.Pass, edit: func(line *eval.Result, _, _ int) {
		line.Invariants = eval.Invariants{Held: 3, Violations: []eval.Violation{{Name: "sql-bound", Severity: eval.SeverityWarn, Events: []int{4}, Evidence: "a literal in the text", At: "evals/shared/safety.yaml:9:3"}}}
	}},
	{item: "agent-breaks", status: eval.Fail, cause: eval.CauseAgent, edit: func(line *eval.Result, _, repeat int) {
		line.Error = &eval.ErrorInfo{Kind: eval.ErrTarget, Message: fmt.Sprintf("the program ended with code 1: worker %d\n\x1b[2J<b>ValueError</b>: no such order", 4000+repeat)}
	}},
	{item: "goes-round", status: eval.Fail, cause: eval.CauseIterations, edit: func(line *eval.Result, _, _ int) { line.Stop = ptr("max_iterations") }},
	{item: "too-dear", status: eval.Fail, cause: eval.CauseLimit},
	{item: "too-slow", status: eval.Fail, cause: eval.CauseTimeout},
	{item: "rate-limited", status: eval.Error, cause: string(eval.ErrProvider), edit: func(line *eval.Result, _, _ int) {
		line.Error = &eval.ErrorInfo{Kind: eval.ErrProvider, Code: ptr("rate_limit"), HTTPStatus: ptr(429), Message: "slow down \x1b[31mplease", Retries: 3, Hint: ptr("lower --concurrency")}
	}},
	{item: "tool-gone", status: eval.Error, cause: string(eval.ErrTool), edit: func(line *eval.Result, _, _ int) {
		line.Error = &eval.ErrorInfo{Kind: eval.ErrTool, Message: "contacts: connection refused"}
	}},
	{item: "harness-broke", status: eval.Error, cause: string(eval.ErrHarness), edit: func(line *eval.Result, _, _ int) {
		line.Error = &eval.ErrorInfo{Kind: eval.ErrHarness, Message: "a check panicked"}
	}},
	{item: "world-too-slow", status: eval.Error, cause: eval.CauseTimeout, edit: func(line *eval.Result, _, _ int) {
		line.Error = &eval.ErrorInfo{Kind: eval.ErrProvider, Message: "no answer within 60s"}
	}},
	{item: "never-recorded", status: eval.Stale, cause: eval.CauseMissing, edit: func(line *eval.Result, _, _ int) { line.Cassette.State = eval.CassetteMissing }},
	{item: "drifted-1", status: eval.Stale, cause: eval.CauseDrift, edit: drift},
	{item: "drifted-2", status: eval.Stale, cause: eval.CauseDrift, edit: drift},
	{item: "left-over", status: eval.Stale, cause: eval.CauseLeftOver, edit: func(line *eval.Result, _, _ int) {
		line.Cassette.State, line.Cassette.LeftOver = eval.CassetteStale, 2
	}},
	{item: "unreadable", status: eval.Stale, cause: eval.CauseUnreadable, edit: func(line *eval.Result, _, _ int) { line.Cassette.State = eval.CassetteStale }},
	{item: "served-anyway", status: eval.Pass, edit: func(line *eval.Result, _, _ int) {
		line.Cassette.State = eval.CassetteStale
		line.Cassette.Drift = []eval.Drift{{Class: "tool-description", Request: 1, Path: "$.tools[0].description", Old: "Contacts", New: "Contacts of a patient", Action: "warn"}}
	}},
	{item: "judge-babbles", status: eval.Unjudged, cause: eval.CauseJudgeAnswer, edit: unjudge},
	{item: "check-crashes", status: eval.Unjudged, cause: eval.CauseCheckCrash, edit: func(line *eval.Result, _, _ int) {
		line.Score = nil
		line.Checks[0].Status, line.Checks[0].Score, line.Checks[0].Reason = eval.CheckUnjudged, nil, "the program ended with code 1: \x1b[31mTraceback\nModuleNotFoundError: No module named 'numpyy'"
	}},
	{item: "interrupted", status: eval.NotRun, cause: eval.CauseInterrupted},
	{item: "no-money-left", status: eval.NotRun, cause: eval.CauseBudget, edit: func(line *eval.Result, _, _ int) {
		line.Error = &eval.ErrorInfo{Kind: eval.ErrBudget, Message: (&results.Budget{LimitUSD: money.Dollar, SpentUSD: money.Dollar * 9 / 10, NextUSD: money.Dollar / 5}).String()}
	}},
	{item: "skipped", status: eval.Skipped, cause: eval.CauseDataset},
	{item: "huge", status: eval.Fail, cause: eval.CauseCheck, edit: func(line *eval.Result, _, _ int) {
		line.Output = ptr(strings.Repeat("0123456789 漢字 ", 4000))
		failCheck(line, strings.Repeat("expected ", 200), strings.Repeat("actual ", 200))
	}},
	{item: "quarantined", status: eval.Fail, cause: eval.CauseCheck, edit: func(line *eval.Result, _, _ int) {
		line.Quarantined = true
		failCheck(line, "a", "b")
	}},
}

func drift(line *eval.Result, _, _ int) {
	line.Cassette.State = eval.CassetteStale
	line.Cassette.Drift = []eval.Drift{{Class: "system-prompt", Request: 1, Path: "$.messages[0].content", Old: "You are helpful.", New: "You are \x1b[31mterse.", Action: "fail"}}
}

func unjudge(line *eval.Result, _, _ int) {
	line.Score = nil
	line.Checks[0].Status, line.Checks[0].Score, line.Checks[0].Reason = eval.CheckUnjudged, nil, "no verdict in the answer"
}

func failCheck(line *eval.Result, expected, actual string) {
	line.Score = ptr(eval.Fraction(0.5))
	line.Checks[0].Status, line.Checks[0].Score = eval.CheckFail, ptr(eval.Fraction(0))
	line.Checks[0].Expected, line.Checks[0].Actual, line.Checks[0].Reason = &expected, &actual, "not found"
}

// GalleryProviders are the columns of the gallery.
var GalleryProviders = []string{"haiku", "compat:llama3/8b"}

// GalleryItems returns the ids of the gallery's items in order.
func GalleryItems() []string {
	items := make([]string, len(gallery))
	for i, v := range gallery {
		items[i] = v.item
	}
	return items
}

const galleryRepeats = 2

func galleryPlan() results.Plan {
	head := Size{Items: len(gallery), Providers: len(GalleryProviders), Repeats: galleryRepeats}.Head()
	head.Dataset.Name, head.Dataset.File = "gallery", "datasets/gallery.yaml"
	for i, id := range GalleryProviders {
		head.Providers[i].ID = id
	}
	head.Invariants = append(head.Invariants,
		results.InvariantInfo{Name: "web-then-exec", Severity: eval.SeverityError, Rule: true},
		results.InvariantInfo{Name: "sql-bound", Severity: eval.SeverityWarn, Rule: true})
	return results.Plan{
		Head: head, Orphaned: 1,
		Quarantined: []results.Quarantine{{Item: "quarantined", Owner: "ana", Until: "2027-01-31", Reason: "lookup race, #812"}},
		Warnings:    []results.Warning{{Code: "policy-lifted", Text: "exec is allowed by name under public_gateway", At: ptr("datasets/gallery.yaml:9:5"), Hint: ptr("drop it from also_allow")}},
	}
}

func galleryLine(index, column, repeat int) eval.Result {
	v := gallery[index-1]
	line := Line(1, 0, 1)
	line.Item, line.Index, line.Provider, line.Repeat = v.item, index, GalleryProviders[column], repeat
	line.Status, line.Tags = v.status, []string{"gallery"}
	line.Checks = append(line.Checks, eval.CheckResult{Name: "polite", Turn: ptr(1), Status: eval.CheckPass, Score: ptr(eval.Fraction(0.9)), Threshold: 0.7, Weight: 2, Required: true, Reason: "courteous", At: "evals/shared/safety.yaml:4:3"})
	line.Invariants = eval.Invariants{Held: 4}
	line.Cassette.File = fmt.Sprintf("fixtures/cassettes/gallery/%d/%d.yaml", column, index)
	line.LatencyMS, line.TTFTMS = ptr(int64(1000+100*index+10*column+repeat)), ptr(int64(100+index))
	if v.cause != "" {
		line.Cause = ptr(v.cause)
	}
	switch v.status {
	case eval.Error, eval.Stale:
		line.Score, line.Checks, line.Output, line.Stop, line.CostUSD, line.LatencyMS, line.TTFTMS, line.Steps = nil, nil, nil, ptr("error"), nil, nil, nil, 0
	case eval.NotRun, eval.Skipped:
		line = eval.Result{V: eval.Version, Item: v.item, Index: index, Provider: line.Provider, Repeat: repeat, Tags: line.Tags, ItemHash: line.ItemHash, ChecksHash: line.ChecksHash, Status: v.status, Cause: line.Cause, OverheadUSD: 0}
	default:
		line.OverheadUSD = money.USD(410_000)
	}
	if v.edit != nil {
		v.edit(&line, column, repeat)
	}
	return line
}

// galleryTrace is a conversation with a call that succeeds, one that fails, text that attacks, and a request that was repeated.
func galleryTrace(line eval.Result) []byte {
	var t trace.Trace
	add := func(step int, at int64, e trace.Event) {
		e.N, e.Step, e.AtMS = len(t.Events)+1, step, at
		t.Events = append(t.Events, e)
	}
	call := conversation.Assistant("m2",
		conversation.Reasoning{Text: "look it up"},
		conversation.Text{Text: "One moment."},
		conversation.ToolCall{ID: "c1", Name: "contacts", Input: `{"of":"p-1"}`},
		conversation.ToolCall{ID: "c2", Name: "read_file", Input: conversation.JSON(`{"path":"` + "`~`" + `"`)},
	).WithUsage(conversation.Usage{InputTokens: 400, OutputTokens: 40})
	answers := conversation.ToolResults("m2",
		conversation.ToolResult{ID: "c1", Result: `{"rows":[{"name":"Ana","phone":"112"}]}`},
		conversation.ToolResult{ID: "c2", Result: `"the arguments are no JSON: unexpected end"`, IsError: true})
	tools := []tool.Spec{{Name: "contacts", Description: "Contacts", Parameters: `{"type":"object"}`, Effect: "read", Scope: "external"}}
	add(0, 0, trace.Event{Kind: trace.KindStart, Start: &trace.Start{Agent: "triage", Model: "claude-haiku-4-5", MaxIterations: 8, Hidden: []string{"tenant_id"}, Input: []conversation.Message{
		conversation.User("m1", conversation.Text{Text: "Chest pain, North.\n" + Hostile}, conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBORw0KGgo="}}),
	}}})
	add(1, 1, trace.Event{Kind: trace.KindRequest, Request: &trace.Request{System: "You are a triage nurse.\nAnswer briefly.", Tools: tools, Messages: 1}})
	add(1, 300, trace.Event{Kind: trace.KindExchange, Exchange: &trace.Exchange{Attempt: 1, Method: "POST", URL: "https://api.example.com/v1/messages", Status: 429, DurationMS: 299, TTFTMS: -1, Source: "served", Interaction: 1}})
	add(1, 900, trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: call, Stop: "tool_calls", Model: "claude-haiku-4-5", LatencyMS: 600, TTFTMS: 110, Retries: 1}})
	add(1, 910, trace.Event{Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 1, CallID: "c1", Name: "contacts", Arguments: `{"of":"p-1"}`, Effect: "read", Scope: "external", Outcome: trace.Executed, Source: tool.Served, Result: `{"rows":[{"name":"Ana","phone":"112"}]}`, DurationMS: 9}})
	add(1, 911, trace.Event{Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 2, CallID: "c2", Name: "read_file", Arguments: conversation.JSON(`{"path":"` + "`~`" + `"`), Effect: "read", Scope: "workspace", Outcome: trace.Invalid, Source: tool.Ran, Result: `"the arguments are no JSON: unexpected end"`, IsError: true, Paths: []string{"a.txt"}}})
	add(1, 912, trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: answers}})
	add(2, 913, trace.Event{Kind: trace.KindWarning, Warning: &trace.Warning{Code: "image-dropped", Text: "the model takes no images"}})
	add(2, 914, trace.Event{Kind: trace.KindRequest, Request: &trace.Request{System: "You are a triage nurse.\nAnswer briefly.", Tools: tools, Messages: 3}})
	text := ""
	if line.Output != nil {
		text = *line.Output
	}
	add(2, 1500, trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: conversation.Assistant("m2", conversation.Text{Text: text}), Stop: "end", Model: "claude-haiku-4-5", LatencyMS: 586, TTFTMS: 90}})
	add(2, 1501, trace.Event{Kind: trace.KindEnd, End: &trace.End{Stop: "end", Usage: conversation.Usage{InputTokens: 812, OutputTokens: 96}, Steps: 2, Terminals: 1}})
	out := []byte(`{"v":1,"item":{"id":`)
	out = conversation.AppendString(out, line.Item)
	out = append(out, `},"events":`...)
	out = t.AppendJSON(out)
	return append(out, '}')
}

// Gallery makes the gallery's run below runs and returns its folder. With an unfinished one the journal is not folded.
func Gallery(runs string, unfinished bool) (dir string, err error) {
	plan := galleryPlan()
	id, dir, err := results.NewFolder(runs, Start, plan.Dataset.Name)
	if err != nil {
		return "", err
	}
	if err := results.WriteManifest(dir, results.Manifest{ID: id, Tool: results.Tool{Version: "1.0.0", Platform: "any"}, Started: Start, Plan: plan.Head}); err != nil {
		return "", err
	}
	journal, err := results.Create(dir, Clock())
	if err != nil {
		return "", err
	}
	for index := len(gallery); index >= 1; index-- {
		for column := range GalleryProviders {
			for repeat := range galleryRepeats {
				line := galleryLine(index, column, repeat+1)
				var record []byte
				if line.Status != eval.NotRun && line.Status != eval.Skipped {
					record = galleryTrace(line)
				}
				if err := journal.Append(line, record, column); err != nil {
					return "", err
				}
			}
		}
	}
	if err := journal.Close(); err != nil || unfinished {
		return dir, err
	}
	gates, err := gate.Parse([]gate.Spec{{Metric: "pass_rate", Bound: ">= 0.95"}, {Metric: "p95_latency", Bound: "<= 5 s"}, {Metric: "score", Off: true}})
	if err != nil {
		return "", err
	}
	plan.Judge = gate.Judge(gates, gate.Input{})
	_, err = results.Fold(dir, plan)
	return dir, err
}
