package inject

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/trace"
)

// Run is what came of an item: as it was recorded, or of a variant.
type Run struct {
	Response llm.Response
	Trace    trace.Trace
	Err      error
	// Program says that a program in any language ran. Of one only its answers, and what it asks its models, are known.
	Program bool
	// Violations are the invariants of severity error that the run broke and that are the agent's or the harness's to keep.
	Violations []eval.Violation
}

// Endings of a run of a variant, as [eval.FaultResult] has them beside the ways in which a run stops.
const (
	endedRecorded   = "recorded"   // as the recording
	endedUnrecorded = "unrecorded" // with a request that the recording has no answer for
	endedError      = "error"      // with an error of the provider
	endedBroken     = "broken"     // in any other way
)

// Judge says what came of a variant. recorded is the run of the recording itself.
func (v *Variant) Judge(recorded, got Run) eval.FaultResult {
	v.way.mu.Lock()
	met, next := v.way.met, v.way.next
	v.way.mu.Unlock()
	r := eval.FaultResult{
		Name: v.Fault.Name, Kind: string(v.Fault.Kind), Request: v.Request, Call: v.Call,
		Stop: got.Response.Stop, Retries: got.Response.Retries, Violations: got.Violations,
	}
	r.Ending = v.ending(recorded, got, next)
	if met == 0 {
		r.Status, r.Reason = eval.FaultNotInjected, "the agent never came to the place of the fault"
		return r
	}
	r.Status, r.Reason = eval.FaultSurvived, "ended as recorded"
	why, good := v.judge(recorded, got, r.Ending)
	switch {
	case len(got.Violations) > 0:
		broken := got.Violations[0]
		why = fmt.Sprintf("broke %s: %s", broken.Name, broken.Evidence)
	case why != "":
	case next != nil:
		if refused := refusalOf(v.asked, next); refused != "" {
			why = "asked on in a way that the vendor refuses: " + refused
		}
	}
	switch {
	case why != "":
		r.Status, r.Reason = eval.FaultBroke, why
	case good != "":
		r.Reason = good
	}
	return r
}

func (v *Variant) ending(recorded, got Run, next *request) string {
	switch {
	case next != nil:
		return endedUnrecorded
	case got.Err == nil && v.same(recorded, got):
		return endedRecorded
	case got.Err == nil:
		return got.Response.Stop
	case errors.As(got.Err, new(*llm.Error)):
		return endedError
	}
	return endedBroken
}

// same reports whether a run did what the recorded one did and said what it said.
func (v *Variant) same(recorded, got Run) bool {
	a, b := recorded.Response, got.Response
	said := b.Text == a.Text
	if v.said != nil && v.Fault.Kind == SplitRune {
		// One character more than recorded. What a program makes of the answer is its own, but it must not spoil the character.
		without := strings.Replace(b.Text, rune4, "", 1)
		said = without == a.Text && (without != b.Text || got.Program)
	}
	if got.Program {
		return said
	}
	return said && a.Stop == b.Stop && a.Steps == b.Steps && a.Calls == b.Calls && a.ToolCalls == b.ToolCalls
}

// judge says why a run did not survive, or what it did well where that is not to end as recorded.
func (v *Variant) judge(recorded, got Run, ending string) (why, good string) {
	if !got.Program {
		if why := terminal(got.Trace); why != "" {
			return why, ""
		}
	}
	if ending == endedBroken {
		return "broke down: " + got.Err.Error(), ""
	}
	if got.Err != nil && got.Response.Stop != llm.RunError {
		return fmt.Sprintf("ended in an error, and says that it stopped for %q", got.Response.Stop), ""
	}
	switch infoOf(v.Fault.Kind).expects {
	case heals:
		return v.healed(recorded, got, ending), ""
	case fails:
		return v.failed(got, ending)
	case told:
		return v.wasTold(got, ending)
	default:
		return v.stopped(got, ending)
	}
}

// terminal says what is wrong with the end of a run, "" where it ended once.
func terminal(t trace.Trace) string {
	i := slices.IndexFunc(t.Events, func(e trace.Event) bool { return e.End != nil })
	if i < 0 {
		return "never said that it ended"
	}
	for _, e := range t.Events {
		if e.End != nil && (e.End.Terminals != 1 || e.End.After != 0) {
			return fmt.Sprintf("ended with %d terminal events, and %d events after the first", e.End.Terminals, e.End.After)
		}
	}
	return ""
}

func (v *Variant) healed(recorded, got Run, ending string) string {
	switch ending {
	case endedRecorded:
		return ""
	case endedUnrecorded:
		return "went on otherwise than recorded: " + got.Err.Error()
	case endedError:
		return "gave up: " + got.Err.Error()
	}
	if got.Response.Text != recorded.Response.Text {
		return fmt.Sprintf("answered %s, recorded is %s", short(got.Response.Text), short(recorded.Response.Text))
	}
	return "came to the same answer in another way than recorded"
}

func (v *Variant) failed(got Run, ending string) (why, good string) {
	switch ending {
	case endedRecorded:
		return "", "ended as recorded"
	case endedError:
		replies := 0
		for _, e := range got.Trace.Events {
			if e.Reply != nil {
				replies++
			}
		}
		if replies > v.before && !got.Program {
			return "kept a reply that had broken off", ""
		}
		return "", "ended with an error and kept nothing of the broken reply"
	case endedUnrecorded:
		return "went on with a reply that had broken off", ""
	}
	return "took a reply that had broken off for a whole one: " + short(got.Response.Text), ""
}

func (v *Variant) wasTold(got Run, ending string) (why, good string) {
	if ending == endedError {
		return "gave up instead of telling the model: " + got.Err.Error(), ""
	}
	good = "went on, as far as the recording goes"
	if got.Program || v.Fault.Kind == DuplicateCallID {
		return "", good
	}
	if why := v.answered(got.Trace); why != "" {
		return why, ""
	}
	return "", "told the model of the error and went on, as far as the recording goes"
}

// answered says why the model does not know that its call failed.
func (v *Variant) answered(t trace.Trace) string {
	run := v.callRun(t)
	switch {
	case run == nil:
		return "the call was passed over"
	case !run.IsError:
		return "the call counts as a success: " + short(string(run.Result))
	}
	for _, e := range t.Events {
		if e.Results == nil {
			continue
		}
		for _, p := range e.Results.Message.Parts() {
			if result, ok := p.(conversation.ToolResult); ok && result.ID == run.CallID && result.IsError {
				return ""
			}
		}
	}
	return "the model never heard of the error"
}

// callRun is what became of the call that bears the fault.
func (v *Variant) callRun(t trace.Trace) *trace.ToolRun {
	for _, e := range t.Events {
		if e.Tool != nil && e.Tool.Seq == v.Call {
			return e.Tool
		}
	}
	return nil
}

func (v *Variant) stopped(got Run, ending string) (why, good string) {
	if v.stop == "" && !got.Program { // the output limit within a call
		if run := v.callRun(got.Trace); run != nil && run.Outcome == trace.Executed {
			return "executed a call that had broken off", ""
		}
	}
	switch {
	case ending == endedUnrecorded:
		return "", "asked on, as far as the recording goes"
	case got.Err != nil:
		return "gave up: " + got.Err.Error(), ""
	case got.Program:
		return "", "came to an end"
	case v.stop == "" && got.Response.Stop != llm.RunLength, v.stop != "" && got.Response.Stop != v.stop:
		return fmt.Sprintf("says that it stopped for %q", got.Response.Stop), ""
	case v.said != nil && got.Response.Text != strings.TrimSpace(*v.said):
		return fmt.Sprintf("answered %s, the model said %s", short(got.Response.Text), short(*v.said)), ""
	}
	return "", "stopped, and says why: " + got.Response.Stop
}

// short quotes the beginning of a text of a model.
func short(s string) string {
	const most = 80
	for i := range s {
		if i > most {
			return fmt.Sprintf("%q…", s[:i])
		}
	}
	return fmt.Sprintf("%q", s)
}
