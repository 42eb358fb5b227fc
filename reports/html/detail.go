package html

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/transcript"
)

// Bounds on the texts of one result, in bytes. The trace has the whole.
const (
	mostText       = 8 << 10  // a message, a prompt
	mostArguments  = 4 << 10  // the arguments or the result of a call
	mostTranscript = 64 << 10 // all of them
)

// detail is everything about a line that the page shows when it is opened. All texts are escaped for the eye: what cannot be seen stands as an escape.
type detail struct {
	Status      string       `json:"status"`
	Cause       string       `json:"cause,omitempty"`
	Score       *json.Number `json:"score"`
	Stop        string       `json:"stop,omitempty"`
	Quarantined bool         `json:"quarantined,omitempty"`
	Answer      *text        `json:"answer"`
	Checks      []check      `json:"checks"`
	Held        int          `json:"held"`
	NotApplied  []string     `json:"not_applicable,omitempty"`
	Triggered   []string     `json:"triggered,omitempty"`
	Violations  []violation  `json:"violations,omitempty"`
	Error       []string     `json:"error,omitempty"` // head, message, hint
	Cassette    *cassette    `json:"cassette,omitempty"`
	Facts       [][2]string  `json:"facts"`
	Calls       []string     `json:"calls"` // null: not known
	Before      *before      `json:"before,omitempty"`
	Replay      string       `json:"replay"`
	Events      []event      `json:"events,omitempty"`
	// Left says why events are missing: "none" was kept by the run, "bound" of the page's size, "cut" within the transcript.
	Left string `json:"left,omitempty"`
}

// text is a text that may have been cut: More counts the bytes that are missing.
type text struct {
	Text string `json:"text"`
	More int    `json:"more,omitempty"`
}

type check struct {
	Name     string  `json:"name"`
	Turn     *int    `json:"turn,omitempty"`
	Status   string  `json:"status"`
	Score    string  `json:"score,omitempty"` // with the threshold, unless that is 1
	Notes    string  `json:"notes,omitempty"` // weight, required
	Expected *string `json:"expected,omitempty"`
	Actual   *string `json:"actual,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	At       string  `json:"at,omitempty"`
}

type violation struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Events   []int  `json:"events"`
	Evidence string `json:"evidence"`
	At       string `json:"at,omitempty"`
}

type cassette struct {
	File     string  `json:"file"`
	State    string  `json:"state"`
	LeftOver int     `json:"left_over,omitempty"`
	Drift    []drift `json:"drift,omitempty"`
}

type drift struct {
	Title string `json:"title"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// before is the cell in the baseline.
type before struct {
	Passed     string   `json:"passed"`
	Failed     []string `json:"failed"`
	Violations []string `json:"violations"`
	Calls      []string `json:"calls"`
	Answer     *string  `json:"answer"`
	Cost       string   `json:"cost"`
	Latency    string   `json:"latency"`
	// Other says that the item is asked or judged otherwise now, so that the two do not compare.
	Other bool `json:"other,omitempty"`
}

// event is a part of the transcript. Role is that of a message, or system, tools, request, tool, warning, end.
type event struct {
	N     int    `json:"n"`
	Role  string `json:"role"`
	Note  string `json:"note,omitempty"`
	Parts []part `json:"parts,omitempty"`
}

// part is one of text, reasoning, media, call, result.
type part struct {
	Kind string `json:"kind"`
	text
	Name string `json:"name,omitempty"` // of the tool
	Ran  *ran   `json:"ran,omitempty"`  // nil: the call has no result
}

// ran is what came of a call.
type ran struct {
	N       int    `json:"n"`
	Outcome string `json:"outcome"`
	Error   bool   `json:"error,omitempty"`
	Note    string `json:"note"`
	text
}

func (s *section) detail(line *eval.Result, withTranscript bool) (*detail, error) {
	d := &detail{Status: string(line.Status), Quarantined: line.Quarantined, Held: line.Invariants.Held, Checks: []check{}, Facts: facts(line), Replay: escape.Line(s.sum.ReplayCommand(*line))}
	if line.Cause != nil {
		d.Cause = escape.Line(*line.Cause)
	}
	if line.Stop != nil {
		d.Stop = escape.Line(*line.Stop)
	}
	if line.Score != nil {
		d.Score = fraction(*line.Score)
	}
	if line.Output != nil {
		answer := cutText(*line.Output, results.MaxOutput)
		d.Answer = &answer
	}
	for i := range line.Checks {
		d.Checks = append(d.Checks, checkOf(&line.Checks[i]))
	}
	d.NotApplied, d.Triggered = escaped(line.Invariants.NotApplicable), escaped(line.Invariants.Triggered)
	for _, v := range line.Invariants.Violations {
		d.Violations = append(d.Violations, violation{escape.Line(v.Name), escape.Line(string(v.Severity)), v.Events, beginning(escape.Block(head(v.Evidence, mostArguments)), mostArguments), escape.Line(v.At)})
	}
	if e := line.Error; e != nil {
		d.Error = errorOf(e)
	}
	if c := line.Cassette; c != nil {
		d.Cassette = cassetteOf(c)
	}
	record, kept, err := s.run.Trace(*line)
	if err != nil {
		return nil, err
	}
	switch {
	case !kept:
		d.Left = "none"
	default:
		d.Calls = escaped(baseline.Path(record.Events))
		if withTranscript {
			d.Events, d.Left = events(record.Events)
		} else {
			d.Left = "bound"
		}
	}
	s.compare(d, line)
	return d, nil
}

func fraction(f eval.Fraction) *json.Number {
	n := json.Number(f.AppendJSON(nil))
	return &n
}

func cutText(s string, most int) text {
	short := head(s, most)
	return text{Text: escape.Block(short), More: len(s) - len(short)}
}

func optional(s *string) *string {
	if s == nil {
		return nil
	}
	shown := escape.Block(*s)
	return &shown
}

func checkOf(c *eval.CheckResult) check {
	out := check{Name: escape.Line(c.Name), Turn: c.Turn, Status: string(c.Status), Expected: optional(c.Expected), Actual: optional(c.Actual), Reason: escape.Block(c.Reason), At: escape.Line(c.At)}
	if c.Score != nil {
		out.Score = results.UnitFraction.Format(results.Number(*c.Score))
		if c.Threshold != 1 {
			out.Score += ", threshold " + results.UnitFraction.Format(results.Number(c.Threshold))
		}
	}
	var notes []string
	if c.Weight != 1 {
		notes = append(notes, "weight "+results.Number(c.Weight).String())
	}
	if c.Required {
		notes = append(notes, "required")
	}
	out.Notes = strings.Join(notes, ", ")
	return out
}

func errorOf(e *eval.ErrorInfo) []string {
	title := "error of the " + string(e.Kind)
	if e.Code != nil {
		title += ", " + *e.Code
	}
	if e.HTTPStatus != nil {
		title += ", HTTP " + strconv.Itoa(*e.HTTPStatus)
	}
	if e.Retries > 0 {
		title += ", after " + count(e.Retries, "repeat")
	}
	out := []string{escape.Line(title), escape.Block(head(e.Message, mostText))}
	if e.Hint != nil {
		out = append(out, escape.Line(*e.Hint))
	}
	return out
}

func cassetteOf(c *eval.CassetteInfo) *cassette {
	out := &cassette{File: escape.Line(c.File), State: string(c.State), LeftOver: c.LeftOver}
	for _, d := range c.Drift {
		title := d.Class
		if d.Request > 0 {
			title += " in request " + strconv.Itoa(d.Request)
		}
		title += " at " + d.Path + " (" + d.Action + ")"
		out.Drift = append(out.Drift, drift{escape.Line(title), escape.Block(head(d.Old, mostArguments)), escape.Block(head(d.New, mostArguments))})
	}
	return out
}

func facts(line *eval.Result) [][2]string {
	if line.Status == eval.NotRun || line.Status == eval.Skipped {
		return [][2]string{}
	}
	u := line.Usage
	out := [][2]string{
		{"tokens", fmt.Sprintf("%d in (%d cached), %d out (%d reasoning)", u.InputTokens, u.CachedInputTokens, u.OutputTokens, u.ReasoningTokens)},
		{"cost", usd(line.CostUSD)},
		{"judging", usd(&line.OverheadUSD)},
		{"latency", ms(line.LatencyMS)},
		{"first text", ms(line.TTFTMS)},
		{"steps", fmt.Sprintf("%s, %s, %s", count(line.Turns, "turn"), count(line.Steps, "step"), count(line.ToolCalls, "tool call"))},
	}
	if line.Retries > 0 {
		out = append(out, [2]string{"repeated requests", strconv.Itoa(line.Retries)})
	}
	return out
}

func usd(amount *money.USD) string {
	if amount == nil {
		return "unknown"
	}
	return results.UnitUSD.Format(results.Number(amount.Float()))
}

func ms(v *int64) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatInt(*v, 10) + " ms"
}

// compare sets what the baseline has of the line's cell.
func (s *section) compare(d *detail, line *eval.Result) {
	item := s.beforeItem(line.Item, line.Provider)
	if item == nil {
		return
	}
	passed, of := item.Judged()
	b := &before{
		Passed: fmt.Sprintf("%d of %d", passed, of), Failed: escaped(item.Failed), Violations: escaped(item.Violations), Answer: optional(item.Answer), Cost: usd(item.CostUSD), Latency: ms(item.LatencyMS),
		Other: item.ItemHash != line.ItemHash || item.ChecksHash != line.ChecksHash,
	}
	if of == 0 {
		b.Passed = "unjudged"
	}
	if item.Calls != nil {
		b.Calls = escaped(item.Calls)
	}
	d.Before = b
}

// events are the transcript: messages with each call beside its result, and what else a reader of the evidence needs. left is "cut" where the bound ended it.
func events(t trace.Trace) (out []event, left string) {
	pairs := transcript.Pair(t.Events)
	var system string
	var tools []string
	size := 0
	for i := range t.Events {
		e := &t.Events[i]
		var add []event
		switch {
		case e.Start != nil:
			for _, m := range e.Start.Input {
				add = append(add, event{N: e.N, Role: escape.Line(string(m.Role())), Parts: parts(m, nil)})
			}
		case e.Request != nil:
			var names []string
			for _, spec := range e.Request.Tools {
				names = append(names, spec.Name)
			}
			if e.Request.System != system {
				system = e.Request.System
				add = append(add, event{N: e.N, Role: "system", Parts: []part{{Kind: "text", text: cutText(system, mostText)}}})
			}
			if !slices.Equal(names, tools) {
				tools = names
				add = append(add, event{N: e.N, Role: "tools", Note: escape.Line(head(strings.Join(names, ", "), mostArguments))})
			}
		case e.Exchange != nil:
			if x := e.Exchange; x.Error != "" || x.Status < 200 || x.Status >= 300 {
				note := fmt.Sprintf("attempt %d: %s %s, status %d, %d ms, %s", x.Attempt, x.Method, x.URL, x.Status, x.DurationMS, x.Source)
				if x.Error != "" {
					note += ": " + x.Error
				}
				add = append(add, event{N: e.N, Role: "request", Note: escape.Line(head(note, mostArguments))})
			}
		case e.Reply != nil:
			add = append(add, event{N: e.N, Role: "assistant", Note: timing(e), Parts: parts(e.Reply.Message, pairs.Of(i))})
		case e.Tool != nil:
			if pairs.Orphan(i) {
				add = append(add, event{N: e.N, Role: "tool", Note: "answers no call", Parts: []part{{Kind: "call", Name: escape.Line(e.Tool.Name), text: cutText(string(e.Tool.Arguments), mostArguments), Ran: ranOf(e)}}})
			}
		case e.Warning != nil:
			add = append(add, event{N: e.N, Role: "warning", Note: escape.Line(e.Warning.Text + " (" + e.Warning.Code + ")")})
		case e.End != nil:
			note := fmt.Sprintf("%s after %s", e.End.Stop, count(e.End.Steps, "step"))
			if e.End.Error != "" {
				note += ": " + e.End.Error
			}
			add = append(add, event{N: e.N, Role: "end", Note: escape.Line(head(note, mostText))})
		}
		for _, one := range add {
			if size += one.size(); size > mostTranscript {
				return out, "cut"
			}
			out = append(out, one)
		}
	}
	return out, ""
}

func (e event) size() int {
	n := len(e.Note) + 16
	for _, p := range e.Parts {
		n += len(p.Text) + len(p.Name) + 16
		if p.Ran != nil {
			n += len(p.Ran.Text) + len(p.Ran.Note) + 16
		}
	}
	return n
}

func timing(e *trace.Event) string {
	r := e.Reply
	note := fmt.Sprintf("step %d, %d ms", e.Step, r.LatencyMS)
	if r.TTFTMS >= 0 {
		note += fmt.Sprintf(", first text after %d ms", r.TTFTMS)
	}
	if r.Retries > 0 {
		note += fmt.Sprintf(", %d repeated", r.Retries)
	}
	if r.Stop != "end" && r.Stop != "tool_calls" {
		note += ", stopped: " + escape.Line(r.Stop)
	}
	return note
}

// parts are those of a message in order; of says what came of a call, nil that this is not known here.
func parts(m conversation.Message, of func(id string) *trace.Event) []part {
	var out []part
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			out = append(out, part{Kind: "text", text: cutText(p.Text, mostText)})
		case conversation.Reasoning:
			out = append(out, part{Kind: "reasoning", text: cutText(p.Text, mostText)})
		case conversation.Image:
			out = append(out, part{Kind: "media", text: cutText("image "+p.MediaType+", "+source(p.Source), mostArguments)})
		case conversation.Document:
			out = append(out, part{Kind: "media", text: cutText("document "+p.MediaType+" "+p.Name+", "+source(p.Source), mostArguments)})
		case conversation.ToolCall:
			call := part{Kind: "call", Name: escape.Line(head(p.Name, mostArguments)), text: cutText(string(p.Input), mostArguments)}
			if of != nil {
				if e := of(p.ID); e != nil {
					call.Ran = ranOf(e)
				}
			} else {
				call.Kind = "asked" // its result, if any, is a message of its own
			}
			out = append(out, call)
		case conversation.ToolResult:
			out = append(out, part{Kind: "result", text: cutText(p.ResultText(), mostArguments)})
		}
	}
	return out
}

func source(s conversation.Source) string {
	if s.Type == conversation.SourceURL {
		return s.URL
	}
	return count(len(s.Data), "base64 character")
}

func ranOf(e *trace.Event) *ran {
	t := e.Tool
	note := fmt.Sprintf("%d ms", t.DurationMS)
	if t.Source != "" {
		note = string(t.Source) + ", " + note
	}
	if len(t.Paths) > 0 {
		note += ", touched " + strings.Join(t.Paths, ", ")
	}
	return &ran{N: e.N, Outcome: escape.Line(string(t.Outcome)), Error: t.IsError, Note: escape.Line(head(note, mostArguments)), text: cutText(conversation.ToolResult{Result: t.Result}.ResultText(), mostArguments)}
}
