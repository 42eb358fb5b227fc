package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

// Digest is 16 hex digits of SHA-256 over a message's JSON.
func Digest(m conversation.Message) string {
	sum := sha256.Sum256(m.AppendJSON(nil))
	return hex.EncodeToString(sum[:8])
}

// Digests returns the digest of every message of a conversation.
func Digests(c conversation.Context) []string {
	out := make([]string, 0, c.Len())
	for _, m := range c.Messages() {
		out = append(out, Digest(m))
	}
	return out
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = conversation.AppendString(dst, s)
	}
	return append(dst, ']')
}

func appendField(dst []byte, key, value string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return conversation.AppendString(dst, value)
}

func appendInt(dst []byte, key string, value int64) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return strconv.AppendInt(dst, value, 10)
}

func appendMS(dst []byte, key string, value int64) []byte {
	if value >= 0 {
		return appendInt(dst, key, value)
	}
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	return append(dst, `":null`...)
}

func appendRaw(dst []byte, key string, value conversation.JSON) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return conversation.AppendValue(dst, value)
}

func appendBool(dst []byte, key string, value bool) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return strconv.AppendBool(dst, value)
}

// AppendJSON appends the event as one JSON object: n, kind, step, at_ms, then what its kind records. A request repeats the system prompt and the tools only where they differ from the previous request, previous; pass nil for the first.
func (e Event) AppendJSON(dst []byte, previous *Request) []byte {
	dst = append(dst, `{"n":`...)
	dst = strconv.AppendInt(dst, int64(e.N), 10)
	dst = appendField(dst, "kind", string(e.Kind))
	dst = appendInt(dst, "step", int64(e.Step))
	dst = appendInt(dst, "at_ms", e.AtMS)
	switch {
	case e.Start != nil:
		dst = appendField(dst, "agent", e.Start.Agent)
		dst = appendField(dst, "model", e.Start.Model)
		dst = appendInt(dst, "max_iterations", int64(e.Start.MaxIterations))
		dst = append(dst, `,"hidden":`...)
		dst = appendStrings(dst, e.Start.Hidden)
		dst = append(dst, `,"input":[`...)
		for i, m := range e.Start.Input {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.AppendJSON(dst)
		}
		dst = append(dst, ']')
	case e.Request != nil:
		dst = appendInt(dst, "messages", int64(e.Request.Messages))
		if previous == nil || previous.System != e.Request.System {
			dst = appendField(dst, "system", e.Request.System)
		}
		if previous == nil || !sameTools(previous.Tools, e.Request.Tools) {
			dst = append(dst, `,"tools":[`...)
			for i, t := range e.Request.Tools {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = append(dst, `{"name":`...)
				dst = conversation.AppendString(dst, t.Name)
				dst = appendField(dst, "description", t.Description)
				dst = appendField(dst, "effect", string(t.Effect))
				dst = appendField(dst, "scope", string(t.Scope))
				dst = appendRaw(dst, "parameters", t.Parameters)
				dst = append(dst, '}')
			}
			dst = append(dst, ']')
		}
	case e.Exchange != nil:
		x := e.Exchange
		dst = appendInt(dst, "attempt", int64(x.Attempt))
		dst = appendField(dst, "method", x.Method)
		dst = appendField(dst, "url", x.URL)
		dst = appendInt(dst, "status", int64(x.Status))
		dst = appendInt(dst, "duration_ms", x.DurationMS)
		dst = appendMS(dst, "ttft_ms", x.TTFTMS)
		dst = appendField(dst, "source", x.Source)
		dst = appendInt(dst, "interaction", int64(x.Interaction))
		dst = append(dst, `,"leaks":`...)
		dst = appendStrings(dst, x.Leaks)
		if x.Error != "" {
			dst = appendField(dst, "error", x.Error)
		}
	case e.Reply != nil:
		dst = appendField(dst, "stop", e.Reply.Stop)
		dst = appendField(dst, "model", e.Reply.Model)
		dst = appendInt(dst, "latency_ms", e.Reply.LatencyMS)
		dst = appendMS(dst, "ttft_ms", e.Reply.TTFTMS)
		dst = appendInt(dst, "retries", int64(e.Reply.Retries))
		dst = append(dst, `,"message":`...)
		dst = e.Reply.Message.AppendJSON(dst)
	case e.Tool != nil:
		t := e.Tool
		dst = appendInt(dst, "seq", int64(t.Seq))
		dst = appendField(dst, "tool_call_id", t.CallID)
		dst = appendField(dst, "name", t.Name)
		dst = append(dst, `,"arguments":`...)
		dst = conversation.AppendArguments(dst, t.Arguments, "arguments_raw")
		dst = appendField(dst, "effect", string(t.Effect))
		dst = appendField(dst, "scope", string(t.Scope))
		dst = appendField(dst, "outcome", string(t.Outcome))
		dst = appendField(dst, "source", string(t.Source))
		dst = appendRaw(dst, "result", t.Result)
		dst = appendBool(dst, "is_error", t.IsError)
		dst = appendInt(dst, "duration_ms", t.DurationMS)
		dst = append(dst, `,"paths":`...)
		dst = appendStrings(dst, t.Paths)
	case e.Results != nil:
		dst = append(dst, `,"message":`...)
		dst = e.Results.Message.AppendJSON(dst)
	case e.Warning != nil:
		dst = appendField(dst, "code", e.Warning.Code)
		dst = appendField(dst, "text", e.Warning.Text)
	case e.End != nil:
		dst = appendField(dst, "stop", e.End.Stop)
		dst = appendField(dst, "error", e.End.Error)
		dst = append(dst, `,"usage":`...)
		dst = e.End.Usage.AppendJSON(dst)
		dst = appendInt(dst, "steps", int64(e.End.Steps))
		dst = appendInt(dst, "terminals", int64(e.End.Terminals))
		dst = appendInt(dst, "after", int64(e.End.After))
		dst = append(dst, `,"input":`...)
		dst = appendStrings(dst, e.End.Input)
		dst = append(dst, `,"context":`...)
		dst = appendStrings(dst, e.End.Context)
	}
	return append(dst, '}')
}

func sameTools(a, b []tool.Spec) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// AppendJSON appends the trace as a JSON list of events.
func (t Trace) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	var previous *Request
	for i, e := range t.Events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.AppendJSON(dst, previous)
		if e.Request != nil {
			previous = e.Request
		}
	}
	return append(dst, ']')
}

// MarshalJSON is [Trace.AppendJSON].
func (t Trace) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

type wireTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Effect      tool.Effect    `json:"effect"`
	Scope       tool.Scope     `json:"scope"`
	Parameters  jsontext.Value `json:"parameters"`
}

type wireEvent struct {
	N    int   `json:"n"`
	Kind Kind  `json:"kind"`
	Step int   `json:"step"`
	AtMS int64 `json:"at_ms"`

	Agent         string         `json:"agent"`
	Model         string         `json:"model"`
	MaxIterations int            `json:"max_iterations"`
	Hidden        []string       `json:"hidden"`
	Input         jsontext.Value `json:"input"`
	Messages      int            `json:"messages"`
	System        *string        `json:"system"`
	Tools         *[]wireTool    `json:"tools"`
	Attempt       int            `json:"attempt"`
	Method        string         `json:"method"`
	URL           string         `json:"url"`
	Status        int            `json:"status"`
	DurationMS    int64          `json:"duration_ms"`
	TTFTMS        *int64         `json:"ttft_ms"`
	Source        string         `json:"source"`
	Interaction   int            `json:"interaction"`
	Leaks         []string       `json:"leaks"`
	Error         string         `json:"error"`
	Stop          string         `json:"stop"`
	LatencyMS     int64          `json:"latency_ms"`
	Retries       int            `json:"retries"`
	Message       jsontext.Value `json:"message"`
	Seq           int            `json:"seq"`
	CallID        string         `json:"tool_call_id"`
	Name          string         `json:"name"`
	Arguments     jsontext.Value `json:"arguments"`
	ArgumentsRaw  *string        `json:"arguments_raw"`
	Effect        tool.Effect    `json:"effect"`
	Scope         tool.Scope     `json:"scope"`
	Outcome       Outcome        `json:"outcome"`
	Result        jsontext.Value `json:"result"`
	IsError       bool           `json:"is_error"`
	Paths         []string       `json:"paths"`
	Code          string         `json:"code"`
	Text          string         `json:"text"`
	Usage         jsontext.Value `json:"usage"`
	Steps         int            `json:"steps"`
	Terminals     int            `json:"terminals"`
	After         int            `json:"after"`
	Context       []string       `json:"context"`
}

// Decode reads a trace that [Trace.AppendJSON] wrote.
func Decode(data []byte) (Trace, error) {
	var wire []wireEvent
	if err := json.Unmarshal(data, &wire); err != nil {
		return Trace{}, fmt.Errorf("reading a trace: %w", err)
	}
	t := Trace{Events: make([]Event, 0, len(wire))}
	var previous Request
	for i, w := range wire {
		e, err := w.decode(&previous)
		if err != nil {
			return Trace{}, fmt.Errorf("event %d: %w", i+1, err)
		}
		t.Events = append(t.Events, e)
	}
	return t, nil
}

// UnmarshalJSON is [Decode].
func (t *Trace) UnmarshalJSON(data []byte) error {
	decoded, err := Decode(data)
	if err != nil {
		return err
	}
	*t = decoded
	return nil
}

func msOr(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

func (w wireEvent) decode(previous *Request) (Event, error) {
	e := Event{N: w.N, Kind: w.Kind, Step: w.Step, AtMS: w.AtMS}
	var err error
	switch w.Kind {
	case KindStart:
		e.Start = &Start{Agent: w.Agent, Model: w.Model, MaxIterations: w.MaxIterations, Hidden: w.Hidden}
		if len(w.Input) > 0 {
			err = json.Unmarshal(w.Input, &e.Start.Input)
		}
	case KindRequest:
		if w.System != nil {
			previous.System = *w.System
		}
		if w.Tools != nil {
			previous.Tools = nil
			for _, t := range *w.Tools {
				previous.Tools = append(previous.Tools, tool.Spec{Name: t.Name, Description: t.Description, Effect: t.Effect, Scope: t.Scope, Parameters: conversation.JSON(t.Parameters)})
			}
		}
		e.Request = &Request{System: previous.System, Tools: previous.Tools, Messages: w.Messages}
	case KindExchange:
		e.Exchange = &Exchange{Attempt: w.Attempt, Method: w.Method, URL: w.URL, Status: w.Status, DurationMS: w.DurationMS, TTFTMS: msOr(w.TTFTMS), Source: w.Source, Interaction: w.Interaction, Leaks: w.Leaks, Error: w.Error}
	case KindReply:
		e.Reply = &Reply{Stop: w.Stop, Model: w.Model, LatencyMS: w.LatencyMS, TTFTMS: msOr(w.TTFTMS), Retries: w.Retries}
		e.Reply.Message, err = conversation.DecodeMessage(w.Message)
	case KindTool:
		arguments := conversation.JSON(w.Arguments)
		if w.ArgumentsRaw != nil {
			arguments = conversation.JSON(*w.ArgumentsRaw)
		}
		e.Tool = &ToolRun{Seq: w.Seq, CallID: w.CallID, Name: w.Name, Arguments: arguments, Effect: w.Effect, Scope: w.Scope, Outcome: w.Outcome, Source: tool.Source(w.Source), Result: conversation.JSON(w.Result), IsError: w.IsError, DurationMS: w.DurationMS, Paths: w.Paths}
	case KindResults:
		e.Results = &Results{}
		e.Results.Message, err = conversation.DecodeMessage(w.Message)
	case KindWarning:
		e.Warning = &Warning{Code: w.Code, Text: w.Text}
	case KindEnd:
		e.End = &End{Stop: w.Stop, Error: w.Error, Steps: w.Steps, Context: w.Context, Terminals: w.Terminals, After: w.After}
		if len(w.Input) > 0 {
			err = json.Unmarshal(w.Input, &e.End.Input)
		}
		if err == nil {
			e.End.Usage, err = conversation.DecodeUsage(w.Usage)
		}
	}
	return e, err
}
