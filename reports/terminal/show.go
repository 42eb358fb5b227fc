package terminal

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/transcript"
)

// Show writes everything about one item: the transcript with each call beside its result, checks, invariants with their evidence, the cassette, tokens and cost. An empty provider means all of them; all repeats are shown.
//
// Long texts are cut unless opts.All holds. An item or provider that the run does not have is an error of code Input that suggests the nearest.
func Show(w io.Writer, run *results.Run, item, provider string, opts reports.Options) error {
	if err := knownProvider(run, provider); err != nil {
		return err
	}
	return reports.To(w, func(out *bufio.Writer) error {
		p := newPrinter(out, run, opts)
		found := 0
		var ids []string
		for line, err := range run.Lines() {
			if err != nil {
				return err
			}
			if line.Item != item {
				if found > 0 {
					return nil
				}
				if len(ids) == 0 || ids[len(ids)-1] != line.Item {
					ids = append(ids, line.Item)
				}
				continue
			}
			found++
			if provider != "" && line.Provider != provider {
				continue
			}
			if err := p.result(line); err != nil {
				return err
			}
		}
		if found == 0 {
			return unknownItem(run, item, ids)
		}
		return nil
	})
}

func knownProvider(run *results.Run, provider string) error {
	var ids []string
	for _, p := range run.Summary.Providers {
		ids = append(ids, p.ID)
	}
	if provider == "" || slices.Contains(ids, provider) {
		return nil
	}
	return failure.WithHint(failure.New(failure.Input, "the run has no provider %q", provider), "%s", strict.Suggest(provider, ids))
}

func unknownItem(run *results.Run, item string, ids []string) error {
	hint := results.Command("echoeval", "show", run.Summary.Dataset.Name, "--all") + " lists the items"
	if nearest, ok := strict.Nearest(item, ids); ok {
		hint = fmt.Sprintf("did you mean %q?", nearest)
	}
	return failure.WithHint(failure.New(failure.Input, "the run has no item %q", item), "%s", hint)
}

func (p *printer) result(line eval.Result) error {
	head := escape.Line(line.Item) + " on " + escape.Line(line.Provider)
	if p.run.Summary.Selected.Repeat > 1 {
		head += fmt.Sprintf(", repeat %d", line.Repeat)
	}
	status := string(line.Status)
	if line.Cause != nil {
		status += " (" + escape.Line(*line.Cause) + ")"
	}
	p.line("%s: %s", p.paint(bold, head), p.paint(styles[line.Status], status))
	if line.Score != nil {
		p.line("score %s", fraction(*line.Score))
	}
	if line.Quarantined {
		p.line("quarantined: shown, but out of the rates")
	}
	p.line("")
	record, ok, err := p.run.Trace(line)
	switch {
	case err != nil:
		return err
	case ok:
		p.transcript(record.Events)
	case line.Output != nil:
		p.title("output (no trace was kept)")
		p.block(*line.Output)
	}
	p.checks(line.Checks)
	p.invariants(&line.Invariants)
	p.failed(line.Error)
	p.injected(line.Faults)
	p.cassette(line.Cassette)
	if line.Status != eval.NotRun && line.Status != eval.Skipped {
		p.numbers(&line)
	}
	p.line("%s %s", p.paint(dim, "replay:"), escape.Line(p.run.Summary.ReplayCommand(line)))
	p.line("")
	return nil
}

func fraction(f eval.Fraction) string { return results.UnitFraction.Format(results.Number(f)) }

func (p *printer) title(format string, args ...any) {
	p.line("%s", p.paint(bold, fmt.Sprintf(format, args...)))
}

// Bounds on a text in the transcript without opts.All.
const (
	mostBlockLines = 40
	mostBlockChars = 4_000
)

// block writes untrusted text of any length, indented.
func (p *printer) block(text string) {
	text = strings.TrimRight(escape.Block(text), "\n")
	if text == "" {
		p.line("  %s", p.paint(dim, "(empty)"))
		return
	}
	left := 0
	if !p.opts.All {
		whole := text
		if len(text) > mostBlockChars {
			text = strings.ToValidUTF8(text[:mostBlockChars], "")
		}
		if lines := strings.SplitAfterN(text, "\n", mostBlockLines+1); len(lines) > mostBlockLines {
			text = strings.TrimRight(strings.Join(lines[:mostBlockLines], ""), "\n")
		}
		left = len(whole) - len(text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.line("  %s", line)
	}
	if left > 0 {
		p.line("  %s", p.paint(dim, fmt.Sprintf("… %d more bytes: --all shows them", left)))
	}
}

// transcript writes the events in order. Numbers in front are those that evidence names.
func (p *printer) transcript(t trace.Trace) {
	var system string
	var tools []string
	paired := transcript.Pair(t.Events)
	for i := range t.Events {
		e := &t.Events[i]
		switch {
		case e.Start != nil:
			for _, m := range e.Start.Input {
				p.title("#%d %s", e.N, escape.Line(string(m.Role())))
				p.message(m, nil)
			}
		case e.Request != nil:
			var names []string
			for _, spec := range e.Request.Tools {
				names = append(names, spec.Name)
			}
			if e.Request.System != system {
				system = e.Request.System
				p.title("#%d system", e.N)
				p.block(system)
			}
			if !slices.Equal(names, tools) {
				tools = names
				p.title("#%d tools shown: %s", e.N, escape.Line(strings.Join(names, ", ")))
			}
		case e.Exchange != nil:
			p.exchange(e)
		case e.Reply != nil:
			p.title("#%d assistant, step %d%s", e.N, e.Step, timing(e.Reply))
			p.message(e.Reply.Message, paired.Of(i))
		case e.Tool != nil:
			if paired.Orphan(i) {
				p.title("#%d tool %s, answering no call", e.N, escape.Line(e.Tool.Name))
				p.ran(e)
			}
		case e.Warning != nil:
			p.line("%s", p.paint(yellow, fmt.Sprintf("#%d warning: %s (%s)", e.N, escape.Line(e.Warning.Text), escape.Line(e.Warning.Code))))
		case e.End != nil:
			text := fmt.Sprintf("#%d end: %s after %s", e.N, escape.Line(e.End.Stop), count(e.End.Steps, "step"))
			if e.End.Error != "" {
				text += ": " + escape.Line(e.End.Error)
			}
			p.title("%s", text)
		}
	}
	p.line("")
}

// exchange writes requests that did not succeed at once; with opts.All every one.
func (p *printer) exchange(e *trace.Event) {
	x := e.Exchange
	if !p.opts.All && x.Error == "" && x.Status >= 200 && x.Status < 300 {
		return
	}
	text := fmt.Sprintf("#%d attempt %d: %s %s, status %d, %d ms, %s", e.N, x.Attempt, escape.Line(x.Method), escape.Line(x.URL), x.Status, x.DurationMS, escape.Line(x.Source))
	if x.Error != "" {
		text += ": " + escape.Line(x.Error)
	}
	p.line("%s", p.paint(dim, text))
}

func timing(r *trace.Reply) string {
	text := fmt.Sprintf(", %d ms", r.LatencyMS)
	if r.TTFTMS >= 0 {
		text += fmt.Sprintf(", first text after %d ms", r.TTFTMS)
	}
	if r.Retries > 0 {
		text += fmt.Sprintf(", %d repeated", r.Retries)
	}
	if r.Stop != "end" && r.Stop != "tool_calls" {
		text += ", stopped: " + escape.Line(r.Stop)
	}
	return text
}

// message writes the parts of a message in order. Calls stand with what came of them; results of earlier turns stand alone.
func (p *printer) message(m conversation.Message, ran func(id string) *trace.Event) {
	for _, part := range m.Parts() {
		switch part := part.(type) {
		case conversation.Text:
			p.block(part.Text)
		case conversation.Reasoning:
			p.line("  %s", p.paint(dim, "(reasoning)"))
			p.block(part.Text)
		case conversation.Image:
			p.line("  [image %s, %s]", escape.Line(part.MediaType), source(part.Source))
		case conversation.Document:
			p.line("  [document %s %s, %s]", escape.Line(part.MediaType), escape.Line(part.Name), source(part.Source))
		case conversation.ToolCall:
			p.line("  %s %s %s", p.paint(bold, "call"), escape.Line(part.Name), p.short(string(part.Input)))
			if ran == nil {
				break
			}
			if e := ran(part.ID); e != nil {
				p.ran(e)
			} else {
				p.line("    %s", p.paint(red, "no result"))
			}
		case conversation.ToolResult:
			p.line("  result %s", p.short(part.ResultText()))
		}
	}
}

func source(s conversation.Source) string {
	if s.Type == conversation.SourceURL {
		return escape.Line(s.URL)
	}
	return count(len(s.Data), "base64 character")
}

// ran writes what came of a call.
func (p *printer) ran(e *trace.Event) {
	t := e.Tool
	text := fmt.Sprintf("#%d %s", e.N, escape.Line(string(t.Outcome)))
	shown := green
	if t.IsError {
		text += ", error"
		shown = red
	}
	if t.Source != "" {
		text += ", " + escape.Line(string(t.Source))
	}
	text += fmt.Sprintf(", %d ms", t.DurationMS)
	if len(t.Paths) > 0 {
		text += ", touched " + escape.Line(strings.Join(t.Paths, ", "))
	}
	p.line("    %s: %s", p.paint(shown, text), p.short(conversation.ToolResult{Result: t.Result}.ResultText()))
}

// mostShort bounds arguments and results without opts.All, in columns.
const mostShort = 400

// short is untrusted text on one line.
func (p *printer) short(text string) string {
	if p.opts.All {
		return escape.Line(text)
	}
	const enough = 8 * mostShort // bytes: no need to escape megabytes for one line
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return cut(escape.Line(text), mostShort)
}

var checkStyles = map[eval.CheckStatus]style{eval.CheckPass: green, eval.CheckFail: red, eval.CheckUnjudged: yellow}

func (p *printer) checks(list []eval.CheckResult) {
	if len(list) == 0 {
		return
	}
	p.title("checks")
	for i := range list {
		c := &list[i]
		text := fmt.Sprintf("  %s %s", p.paint(checkStyles[c.Status], string(c.Status)), escape.Line(c.Name))
		if c.Turn != nil {
			text += fmt.Sprintf(", turn %d", *c.Turn)
		}
		if c.Score != nil {
			text += fmt.Sprintf(", score %s of %s", fraction(*c.Score), fraction(c.Threshold))
		}
		if c.Weight != 1 {
			text += ", weight " + results.Number(c.Weight).String()
		}
		if c.Required {
			text += ", required"
		}
		if c.Reason != "" {
			text += ": " + escape.Line(c.Reason)
		}
		p.line("%s", text)
		if c.Status == eval.CheckPass && !p.opts.All {
			continue
		}
		if c.Expected != nil {
			p.line("    expected: %s", escape.Line(*c.Expected))
		}
		if c.Actual != nil {
			p.line("    actual:   %s", escape.Line(*c.Actual))
		}
		p.line("    at:       %s", escape.Line(c.At))
	}
	p.line("")
}

func (p *printer) invariants(inv *eval.Invariants) {
	if inv.Held == 0 && len(inv.NotApplicable) == 0 && len(inv.Violations) == 0 {
		return
	}
	p.title("invariants: %d held", inv.Held)
	if len(inv.NotApplicable) > 0 {
		p.line("  not applicable: %s", escape.Line(strings.Join(inv.NotApplicable, ", ")))
	}
	if len(inv.Triggered) > 0 {
		p.line("  triggered: %s", escape.Line(strings.Join(inv.Triggered, ", ")))
	}
	for _, v := range inv.Violations {
		events := make([]string, len(v.Events))
		for i, n := range v.Events {
			events[i] = "#" + strconv.Itoa(n)
		}
		shown := red
		if v.Severity == eval.SeverityWarn {
			shown = yellow
		}
		p.line("  %s %s, events %s: %s", p.paint(shown, "violated ("+escape.Line(string(v.Severity))+")"), escape.Line(v.Name), strings.Join(events, " "), escape.Line(v.Evidence))
		if v.At != "" {
			p.line("    at: %s", escape.Line(v.At))
		}
	}
	p.line("")
}

func (p *printer) failed(e *eval.ErrorInfo) {
	if e == nil {
		return
	}
	text := "error of the " + string(e.Kind)
	if e.Code != nil {
		text += ", " + *e.Code
	}
	if e.HTTPStatus != nil {
		text += ", HTTP " + strconv.Itoa(*e.HTTPStatus)
	}
	if e.Retries > 0 {
		text += fmt.Sprintf(", after %d repeats", e.Retries)
	}
	p.title("%s", escape.Line(text))
	p.block(e.Message)
	if e.Hint != nil {
		p.line("  hint: %s", escape.Line(*e.Hint))
	}
	p.line("")
}

func (p *printer) cassette(c *eval.CassetteInfo) {
	if c == nil {
		return
	}
	p.title("cassette %s: %s", escape.Line(c.File), escape.Line(string(c.State)))
	for _, d := range c.Drift {
		p.line("  drift %s%s at %s (%s)", escape.Line(d.Class), inRequest(d.Request), escape.Line(d.Path), escape.Line(d.Action))
		p.line("    recorded: %s", p.short(d.Old))
		p.line("    now:      %s", p.short(d.New))
	}
	if c.LeftOver > 0 {
		p.line("  %s left over", count(c.LeftOver, "recorded interaction"))
	}
	p.line("")
}

func (p *printer) numbers(line *eval.Result) {
	u := line.Usage
	p.line("%s %d in (%d cached), %d out (%d reasoning)", p.paint(dim, "tokens:"), u.InputTokens, u.CachedInputTokens, u.OutputTokens, u.ReasoningTokens)
	cost := "unknown"
	if line.CostUSD != nil {
		cost = usd(*line.CostUSD)
	}
	p.line("%s %s, judges and simulated user %s", p.paint(dim, "cost:"), cost, usd(line.OverheadUSD))
	p.line("%s %s, first text after %s; %s, %s, %s, %s", p.paint(dim, "time:"), ms(line.LatencyMS), ms(line.TTFTMS),
		count(line.Turns, "turn"), count(line.Steps, "step"), count(line.ToolCalls, "tool call"), count(line.Retries, "repeated request"))
}

func usd(amount money.USD) string { return results.UnitUSD.Format(results.Number(amount.Float())) }

func ms(v *int64) string {
	if v == nil {
		return "unknown"
	}
	return strconv.FormatInt(*v, 10) + " ms"
}
