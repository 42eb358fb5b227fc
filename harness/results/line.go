package results

import (
	"strconv"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
)

// Bounds on what a result line repeats of a conversation; the whole stands in the trace.
const (
	MaxOutput = 16 << 10 // bytes of the final text
	MaxText   = 500      // characters of a check's expected, actual and reason
)

// AppendLine appends a line of results.jsonl without its end. Texts beyond their bounds are cut at a character, and invalid UTF-8 is replaced.
func AppendLine(dst []byte, r *eval.Result) []byte {
	output, cut := r.Output, r.OutputCut
	if output != nil && len(*output) > MaxOutput {
		short := cutBytes(*output, MaxOutput)
		output, cut = &short, true
	}
	dst = append(dst, `{"v":`...)
	dst = appendInt(dst, r.V)
	dst = append(dst, `,"item":`...)
	dst = conversation.AppendString(dst, r.Item)
	dst = append(dst, `,"index":`...)
	dst = appendInt(dst, r.Index)
	dst = append(dst, `,"provider":`...)
	dst = conversation.AppendString(dst, r.Provider)
	dst = append(dst, `,"repeat":`...)
	dst = appendInt(dst, r.Repeat)
	dst = append(dst, `,"group":`...)
	dst = appendText(dst, r.Group)
	dst = append(dst, `,"tags":`...)
	dst = appendTexts(dst, r.Tags)
	dst = append(dst, `,"quarantined":`...)
	dst = strconv.AppendBool(dst, r.Quarantined)
	dst = append(dst, `,"item_hash":`...)
	dst = conversation.AppendString(dst, r.ItemHash)
	dst = append(dst, `,"checks_hash":`...)
	dst = conversation.AppendString(dst, r.ChecksHash)
	dst = append(dst, `,"status":`...)
	dst = conversation.AppendString(dst, string(r.Status))
	dst = append(dst, `,"cause":`...)
	dst = appendText(dst, r.Cause)
	dst = append(dst, `,"score":`...)
	dst = appendFraction(dst, r.Score)
	dst = append(dst, `,"output":`...)
	dst = appendText(dst, output)
	dst = append(dst, `,"output_cut":`...)
	dst = strconv.AppendBool(dst, cut)
	dst = append(dst, `,"stop":`...)
	dst = appendText(dst, r.Stop)
	dst = append(dst, `,"checks":[`...)
	for i := range r.Checks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCheck(dst, &r.Checks[i])
	}
	dst = append(dst, `],"invariants":`...)
	dst = appendInvariants(dst, &r.Invariants)
	dst = append(dst, `,"error":`...)
	dst = appendError(dst, r.Error)
	dst = append(dst, `,"cassette":`...)
	dst = appendCassette(dst, r.Cassette)
	dst = append(dst, `,"usage":{"input_tokens":`...)
	dst = appendInt(dst, r.Usage.InputTokens)
	dst = append(dst, `,"cached_input_tokens":`...)
	dst = appendInt(dst, r.Usage.CachedInputTokens)
	dst = append(dst, `,"output_tokens":`...)
	dst = appendInt(dst, r.Usage.OutputTokens)
	dst = append(dst, `,"reasoning_tokens":`...)
	dst = appendInt(dst, r.Usage.ReasoningTokens)
	dst = append(dst, `},"cost_usd":`...)
	if r.CostUSD != nil {
		dst = r.CostUSD.AppendJSON(dst)
	} else {
		dst = append(dst, null...)
	}
	dst = append(dst, `,"overhead_usd":`...)
	dst = r.OverheadUSD.AppendJSON(dst)
	dst = append(dst, `,"latency_ms":`...)
	dst = appendMS(dst, r.LatencyMS)
	dst = append(dst, `,"ttft_ms":`...)
	dst = appendMS(dst, r.TTFTMS)
	dst = append(dst, `,"turns":`...)
	dst = appendInt(dst, r.Turns)
	dst = append(dst, `,"steps":`...)
	dst = appendInt(dst, r.Steps)
	dst = append(dst, `,"tool_calls":`...)
	dst = appendInt(dst, r.ToolCalls)
	dst = append(dst, `,"retries":`...)
	dst = appendInt(dst, r.Retries)
	dst = appendFaults(dst, r.Faults)
	dst = append(dst, traceKey...)
	dst = appendPlace(dst, r.Trace)
	return append(dst, '}')
}

const (
	null = "null"
	// traceKey begins the last field of a line, which is filled in when the traces are put in order.
	traceKey   = `,"trace":`
	noTraceEnd = traceKey + null + "}"
)

func appendCheck(dst []byte, c *eval.CheckResult) []byte {
	dst = append(dst, `{"name":`...)
	dst = conversation.AppendString(dst, c.Name)
	dst = append(dst, `,"turn":`...)
	if c.Turn != nil {
		dst = appendInt(dst, *c.Turn)
	} else {
		dst = append(dst, null...)
	}
	dst = append(dst, `,"status":`...)
	dst = conversation.AppendString(dst, string(c.Status))
	dst = append(dst, `,"score":`...)
	dst = appendFraction(dst, c.Score)
	dst = append(dst, `,"threshold":`...)
	dst = c.Threshold.AppendJSON(dst)
	dst = append(dst, `,"weight":`...)
	dst = eval.Fraction(c.Weight).AppendJSON(dst)
	dst = append(dst, `,"required":`...)
	dst = strconv.AppendBool(dst, c.Required)
	dst = append(dst, `,"expected":`...)
	dst = appendShort(dst, c.Expected)
	dst = append(dst, `,"actual":`...)
	dst = appendShort(dst, c.Actual)
	dst = append(dst, `,"reason":`...)
	dst = appendShort(dst, &c.Reason)
	dst = append(dst, `,"at":`...)
	dst = conversation.AppendString(dst, c.At)
	return append(dst, '}')
}

func appendInvariants(dst []byte, inv *eval.Invariants) []byte {
	dst = append(dst, `{"held":`...)
	dst = appendInt(dst, inv.Held)
	dst = append(dst, `,"not_applicable":`...)
	dst = appendTexts(dst, inv.NotApplicable)
	dst = append(dst, `,"triggered":`...)
	dst = appendTexts(dst, inv.Triggered)
	dst = append(dst, `,"violations":`...)
	dst = appendViolations(dst, inv.Violations)
	return append(dst, '}')
}

func appendViolations(dst []byte, violations []eval.Violation) []byte {
	dst = append(dst, '[')
	for i := range violations {
		v := &violations[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = conversation.AppendString(dst, v.Name)
		dst = append(dst, `,"severity":`...)
		dst = conversation.AppendString(dst, string(v.Severity))
		dst = append(dst, `,"events":[`...)
		for k, event := range v.Events {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = appendInt(dst, event)
		}
		dst = append(dst, `],"evidence":`...)
		dst = conversation.AppendString(dst, v.Evidence)
		dst = append(dst, `,"at":`...)
		dst = conversation.AppendString(dst, v.At)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendFaults writes nothing where no faults were to be injected.
func appendFaults(dst []byte, faults []eval.FaultResult) []byte {
	if faults == nil {
		return dst
	}
	dst = append(dst, `,"faults":[`...)
	for i := range faults {
		f := &faults[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = conversation.AppendString(dst, f.Name)
		dst = append(dst, `,"kind":`...)
		dst = conversation.AppendString(dst, f.Kind)
		dst = append(dst, `,"request":`...)
		dst = appendInt(dst, f.Request)
		dst = append(dst, `,"call":`...)
		dst = appendInt(dst, f.Call)
		dst = append(dst, `,"status":`...)
		dst = conversation.AppendString(dst, string(f.Status))
		dst = append(dst, `,"ending":`...)
		dst = conversation.AppendString(dst, f.Ending)
		dst = append(dst, `,"stop":`...)
		dst = conversation.AppendString(dst, f.Stop)
		dst = append(dst, `,"retries":`...)
		dst = appendInt(dst, f.Retries)
		dst = append(dst, `,"reason":`...)
		dst = appendShort(dst, &f.Reason)
		dst = append(dst, `,"violations":`...)
		dst = appendViolations(dst, f.Violations)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendError(dst []byte, e *eval.ErrorInfo) []byte {
	if e == nil {
		return append(dst, null...)
	}
	dst = append(dst, `{"kind":`...)
	dst = conversation.AppendString(dst, string(e.Kind))
	dst = append(dst, `,"code":`...)
	dst = appendText(dst, e.Code)
	dst = append(dst, `,"http_status":`...)
	if e.HTTPStatus != nil {
		dst = appendInt(dst, *e.HTTPStatus)
	} else {
		dst = append(dst, null...)
	}
	dst = append(dst, `,"message":`...)
	dst = conversation.AppendString(dst, e.Message)
	dst = append(dst, `,"retries":`...)
	dst = appendInt(dst, e.Retries)
	dst = append(dst, `,"hint":`...)
	dst = appendText(dst, e.Hint)
	return append(dst, '}')
}

func appendCassette(dst []byte, c *eval.CassetteInfo) []byte {
	if c == nil {
		return append(dst, null...)
	}
	dst = append(dst, `{"file":`...)
	dst = conversation.AppendString(dst, c.File)
	dst = append(dst, `,"state":`...)
	dst = conversation.AppendString(dst, string(c.State))
	dst = append(dst, `,"drift":[`...)
	for i := range c.Drift {
		d := &c.Drift[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"class":`...)
		dst = conversation.AppendString(dst, d.Class)
		dst = append(dst, `,"request":`...)
		dst = appendInt(dst, d.Request)
		dst = append(dst, `,"path":`...)
		dst = conversation.AppendString(dst, d.Path)
		dst = append(dst, `,"old":`...)
		dst = conversation.AppendString(dst, d.Old)
		dst = append(dst, `,"new":`...)
		dst = conversation.AppendString(dst, d.New)
		dst = append(dst, `,"action":`...)
		dst = conversation.AppendString(dst, d.Action)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"left_over":`...)
	dst = appendInt(dst, c.LeftOver)
	return append(dst, '}')
}

func appendPlace(dst []byte, p *eval.TracePlace) []byte {
	if p == nil {
		return append(dst, null...)
	}
	dst = append(dst, `{"segment":`...)
	dst = appendInt(dst, p.Segment)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, p.Offset, 10)
	dst = append(dst, `,"length":`...)
	dst = strconv.AppendInt(dst, p.Length, 10)
	return append(dst, '}')
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

func appendText(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, null...)
	}
	return conversation.AppendString(dst, *s)
}

func appendShort(dst []byte, s *string) []byte {
	if s == nil || len(*s) <= MaxText {
		return appendText(dst, s)
	}
	return conversation.AppendString(dst, cutCharacters(*s, MaxText))
}

func appendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = conversation.AppendString(dst, s)
	}
	return append(dst, ']')
}

func appendFraction(dst []byte, f *eval.Fraction) []byte {
	if f == nil {
		return append(dst, null...)
	}
	return f.AppendJSON(dst)
}

func appendMS(dst []byte, ms *int64) []byte {
	if ms == nil {
		return append(dst, null...)
	}
	return strconv.AppendInt(dst, *ms, 10)
}

// cutBytes returns at most n bytes of s, ending at a character.
func cutBytes(s string, n int) string {
	// No character is longer than four bytes; what continues longer is none.
	end := n
	for end > n-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// cutCharacters returns the first n characters of s, which is longer than n bytes.
func cutCharacters(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
