package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/target"
)

// errTimeout ends an item that took longer than its timeout.
var errTimeout = errors.New("the item took longer than its timeout")

// judged is what the checks of an item said: pass, fail, or unjudged with its cause.
type judged struct {
	status eval.Status
	cause  string
}

// decide sets status, cause and error of a line from what happened, by the table of the results format: the first that holds counts. stale is nil or the error with which the cassette failed the item.
func decide(line *eval.Result, out Outcome, stale error, checks judged) {
	set := func(status eval.Status, cause string) {
		line.Status = status
		line.Cause = &cause
		if cause == "" {
			line.Cause = nil
		}
	}
	var fault *target.Fault
	switch {
	case stale != nil:
		cause := replay.CauseOf(stale)
		set(eval.Stale, string(cause))
		if cause == replay.Unreadable || cause == replay.LeftOver || cause == replay.Secret {
			line.Error = explain(stale, line.Retries)
			line.Error.Message = failure.Message(stale) // the cassette's file stands beside it
		}
	case errors.Is(out.Err, errTimeout) && waiting(out.Trace):
		set(eval.Error, eval.CauseTimeout)
		line.Error = &eval.ErrorInfo{Kind: waitedFor(out.Trace), Message: errTimeout.Error(), Retries: line.Retries}
	case errors.Is(out.Err, errTimeout):
		set(eval.Fail, eval.CauseTimeout)
	case errors.As(out.Err, &fault):
		line.Error = explain(out.Err, line.Retries)
		line.Error.Kind = eval.ErrTarget
		if fault.Unstarted {
			set(eval.Error, string(eval.ErrTarget))
		} else {
			set(eval.Fail, eval.CauseAgent)
		}
	case out.Err != nil:
		line.Error = explain(out.Err, line.Retries)
		set(eval.Error, string(line.Error.Kind))
	case out.Response.Stop == llm.RunMaxIterations:
		set(eval.Fail, eval.CauseIterations)
	case checks.status == eval.Fail:
		set(eval.Fail, eval.CauseCheck)
	case slices.ContainsFunc(line.Invariants.Violations, func(v eval.Violation) bool { return v.Name == budgetInvariant }):
		set(eval.Fail, eval.CauseLimit)
	case slices.ContainsFunc(line.Invariants.Violations, func(v eval.Violation) bool { return v.Severity == eval.SeverityError }):
		set(eval.Fail, eval.CauseInvariant)
	case checks.status == eval.Unjudged:
		set(eval.Unjudged, checks.cause)
	default:
		set(eval.Pass, "")
	}
}

// budgetInvariant is the invariant of an item's limits.
const budgetInvariant = "budget"

// overLimits looks at the limits of an item: cost, tokens, executed calls and model steps of all its turns.
func overLimits(item *dataset.Item, line *eval.Result) *eval.Violation {
	l := item.Limits
	if l == nil {
		return nil
	}
	var over []string
	count := func(name string, got int, most *int) {
		if most != nil && got > *most {
			over = append(over, fmt.Sprintf("%s %d, limit %d", name, got, *most))
		}
	}
	if l.CostUSD != nil && line.CostUSD != nil && *line.CostUSD > *l.CostUSD {
		over = append(over, fmt.Sprintf("cost_usd %s, limit %s", *line.CostUSD, *l.CostUSD))
	}
	count("tokens", line.Usage.InputTokens+line.Usage.OutputTokens, l.Tokens)
	count("tool_calls", line.ToolCalls, l.ToolCalls)
	count("steps", line.Steps, l.Steps)
	if len(over) == 0 {
		return nil
	}
	return &eval.Violation{Name: budgetInvariant, Severity: eval.SeverityError, Events: []int{}, Evidence: strings.Join(over, "; ")}
}

// waiting says whether the run was cut off while it waited for a model or for a tool outside the workspace.
func waiting(t trace.Trace) bool { return waitedFor(t) != "" }

func waitedFor(t trace.Trace) eval.ErrorKind {
	for _, e := range slices.Backward(t.Events) {
		switch {
		case e.Kind == trace.KindEnd || e.Kind == trace.KindWarning:
			continue
		case e.Kind == trace.KindRequest || e.Kind == trace.KindExchange:
			return eval.ErrProvider
		case e.Tool != nil && e.Tool.Scope == tool.External:
			return eval.ErrTool
		}
		return ""
	}
	return ""
}

// explain turns the error that ended a run into what the line says of it.
func explain(err error, retries int) *eval.ErrorInfo {
	info := &eval.ErrorInfo{Kind: eval.ErrHarness, Message: err.Error(), Retries: retries}
	if hints := failure.Hints(err); len(hints) > 0 {
		info.Hint = &hints[0]
	}
	var provider *llm.Error
	switch {
	case errors.As(err, &provider):
		info.Kind = eval.ErrProvider
		if provider.Status != 0 {
			info.HTTPStatus = &provider.Status
		}
		if code := provider.Code; code != "" {
			info.Code = &code
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		info.Kind = eval.ErrProvider
	}
	if errors.As(err, new(*judgeError)) {
		info.Kind = eval.ErrJudge
	}
	return info
}
