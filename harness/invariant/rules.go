package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// The ways in which a run may end, as End.Stop says.
const (
	stopPaused = "paused"
	stopError  = "error"
)

func pairing(v *view, _ params) (o outcome) {
	o.looked = v.calls+v.results > 0
	if !o.looked {
		return o
	}
	shared := map[string]int{} // ids that one message uses twice belong to tool-call-unique-ids
	for _, p := range conversation.CheckPairing(v.all()) {
		events := []int{v.messages[p.Message].event}
		switch p.Kind {
		case conversation.DuplicateCallID:
			shared[p.CallID]++
			continue
		case conversation.DuplicateResult:
			if shared[p.CallID] > 0 {
				shared[p.CallID]--
				continue
			}
		case conversation.UnansweredAtTail:
			if v.open(p.CallID) {
				continue
			}
		case conversation.Unanswered:
			// The call and the message that came instead of its result.
			next := p.Message + 1
			for next < len(v.messages)-1 && v.messages[next].Role() == conversation.RoleTool {
				next++
			}
			if next < len(v.messages) {
				events = append(events, v.messages[next].event)
			}
		}
		o.find(finding{events: events, evidence: describe(p)})
	}
	return o
}

func describe(p conversation.PairingProblem) string {
	call := "call " + quote(p.CallID)
	if p.Tool != "" {
		call += " of " + quote(p.Tool)
	}
	switch p.Kind {
	case conversation.Unanswered:
		return call + " has no result before the next message"
	case conversation.UnansweredAtTail:
		return call + " has no result, and the run ended"
	case conversation.LateResult:
		return "the result of " + call + " comes after another message"
	case conversation.OrphanResult:
		return "a result for " + quote(p.CallID) + ", which nothing called"
	case conversation.DuplicateResult:
		return call + " is answered twice"
	case conversation.MissingCallID:
		return "a call or a result has no tool_call_id"
	}
	return call + ": " + string(p.Kind)
}

// open reports whether a call at the end of the conversation may be without a result: the trace stops there, the run ended in an error there, or it paused on this call.
func (v *view) open(id string) bool {
	switch v.stop() {
	case "", stopError:
		return true
	case stopPaused:
		run := v.run(id)
		return run == nil || run.Outcome == trace.Paused
	}
	return false
}

func uniqueIDs(v *view, _ params) (o outcome) {
	earlier := make(map[string]int, v.calls) // id to the event of its first call
	var own []string                         // ids of the message at hand
	for _, m := range v.messages {
		own = own[:0]
		for _, p := range m.Parts() {
			c, ok := p.(conversation.ToolCall)
			if !ok || c.ID == "" {
				continue
			}
			o.looked = true
			if slices.Contains(own, c.ID) {
				o.find(finding{events: []int{m.event}, evidence: "two calls of one message have the id " + quote(c.ID)})
				continue
			}
			own = append(own, c.ID)
			first, again := earlier[c.ID]
			switch {
			case !again:
				earlier[c.ID] = m.event
			case first == m.event: // both stand in the input
				o.find(finding{severity: eval.SeverityWarn, events: []int{first}, evidence: "two messages of the input use the id " + quote(c.ID)})
			default:
				o.find(finding{severity: eval.SeverityWarn, events: []int{first, m.event}, evidence: "the id " + quote(c.ID) + " of an earlier call returns"})
			}
		}
	}
	return o
}

func roleContent(v *view, _ params) (o outcome) {
	o.looked = len(v.messages) > 0
	broken := func(event int, format string, args ...any) {
		o.find(finding{events: []int{event}, evidence: fmt.Sprintf(format, args...)})
	}
	for _, m := range v.messages {
		err := m.Validate()
		if err == nil {
			continue
		}
		// A missing id is tool-call-pairing's.
		if err = withIDs(*m.Message).Validate(); err != nil {
			broken(m.event, "%s", err)
		}
	}
	for i := range v.events {
		e := &v.events[i]
		if e.Reply != nil && e.Reply.Message.Role() != conversation.RoleAssistant {
			broken(e.N, "the model's reply has the role %s", quote(string(e.Reply.Message.Role())))
		}
		if e.Results != nil && e.Results.Message.Role() != conversation.RoleTool {
			broken(e.N, "the message with tool results has the role %s", quote(string(e.Results.Message.Role())))
		}
	}
	return o
}

// withIDs returns the message with an id on every call and result.
func withIDs(m conversation.Message) conversation.Message {
	parts := make([]conversation.Content, 0, m.Len())
	for _, p := range m.Parts() {
		switch c := p.(type) {
		case conversation.ToolCall:
			if c.ID == "" {
				c.ID = "?"
			}
			p = c
		case conversation.ToolResult:
			if c.ID == "" {
				c.ID = "?"
			}
			p = c
		}
		parts = append(parts, p)
	}
	return conversation.NewMessage(m.Role(), m.ID(), parts...)
}

func inputUnchanged(v *view, _ params) (o outcome) {
	if v.start == nil || v.end == nil || len(v.start.Start.Input) == 0 || v.end.End.Input == nil && v.end.End.Context == nil {
		return o
	}
	o.looked = true
	input, end := v.start.Start.Input, v.end.End
	both := []int{v.start.N, v.end.N}
	if len(end.Input) != len(input) {
		o.find(finding{events: both, evidence: fmt.Sprintf("%d messages were passed in, at the end there are %d of them", len(input), len(end.Input))})
		return o
	}
	for i := range input {
		// A decoded trace may be redacted: only the digests that the run took itself can be compared.
		if v.live && trace.Digest(input[i]) != end.Input[i] {
			o.find(finding{events: both, evidence: fmt.Sprintf("message %d of the input was changed during the run", i+1)})
			return o
		}
		if i >= len(end.Context) || end.Context[i] != end.Input[i] {
			o.find(finding{events: both, evidence: fmt.Sprintf("message %d of the input is not message %d of the returned context", i+1, i+1)})
			return o
		}
	}
	if !v.live {
		return o
	}
	rest := end.Context[len(input):]
	for _, m := range v.messages[len(input):] {
		at := slices.Index(rest, trace.Digest(*m.Message))
		if at < 0 {
			if end.Stop == stopError { // what came before the error is not always given back
				break
			}
			o.find(finding{events: []int{m.event, v.end.N}, evidence: fmt.Sprintf("the message of event %d is not in the returned context as it was added", m.event)})
			break
		}
		rest = rest[at+1:]
	}
	return o
}

func noSecret(v *view, _ params) (o outcome) {
	for _, t := range v.texts {
		o.looked = true
		if hit, ok := v.secrets.First(t.text); ok {
			o.find(finding{events: []int{t.event}, evidence: fmt.Sprintf("%s at byte %d of %s", hit.Kind, hit.Start, t)})
		}
	}
	return o
}

func visibleOnly(v *view, _ params) (o outcome) {
	for e, asked := range v.replies() {
		if asked == nil {
			continue // nobody saw what the model was shown
		}
		for _, p := range e.Reply.Message.Parts() {
			c, ok := p.(conversation.ToolCall)
			if !ok || c.Name == "" {
				continue
			}
			o.looked = true
			if spec(asked.Tools, c.Name) == nil {
				o.find(finding{events: []int{e.N}, evidence: fmt.Sprintf("step %d calls %s, and the model was shown %s", e.Step, quote(c.Name), shown(asked.Tools))})
			}
		}
	}
	return o
}

func spec(tools []tool.Spec, name string) *tool.Spec {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

func shown(tools []tool.Spec) string {
	if len(tools) == 0 {
		return "no tools"
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return clip(strings.Join(names, ", "), 300)
}

func argumentsMatch(v *view, _ params) (o outcome) {
	for e, asked := range v.replies() {
		if asked == nil {
			continue
		}
		for _, p := range e.Reply.Message.Parts() {
			c, ok := p.(conversation.ToolCall)
			if !ok {
				continue
			}
			t := spec(asked.Tools, c.Name)
			if t == nil || t.Parameters == "" {
				continue
			}
			schema, err := tool.CompileSchema(t.Parameters)
			if err != nil {
				continue // such a schema can say nothing of arguments
			}
			o.looked = true
			args, err := c.Arguments()
			if err == nil {
				err = schema.Validate(args)
			}
			if err != nil {
				o.find(finding{events: []int{e.N}, evidence: fmt.Sprintf("call %s of %s: %s", quote(c.ID), quote(c.Name), clip(err.Error(), 300))})
			}
		}
	}
	return o
}

func oneTerminal(v *view, _ params) (o outcome) {
	// A run that never began has no stream.
	if v.start == nil || v.end == nil {
		return o
	}
	o.looked = true
	switch end := v.end.End; {
	case end.Terminals == 0:
		o.find(finding{events: []int{v.end.N}, evidence: "the stream ended without a done or error event"})
	case end.Terminals > 1:
		o.find(finding{events: []int{v.end.N}, evidence: fmt.Sprintf("the stream had %d done and error events", end.Terminals)})
	case end.After > 0:
		o.find(finding{events: []int{v.end.N}, evidence: fmt.Sprintf("%d events followed the done or error event", end.After)})
	}
	if last := v.events[len(v.events)-1]; last.N != v.end.N {
		o.find(finding{events: []int{v.end.N, last.N}, evidence: "the run went on after its end"})
	}
	return o
}

func iterationLimit(v *view, p params) (o outcome) {
	limit := 0
	if v.start != nil {
		limit = v.start.Start.MaxIterations
	}
	if p.Max != nil {
		limit = *p.Max
	}
	if limit <= 0 {
		return o
	}
	steps := 0
	var over *trace.Event
	for i := range v.events {
		if v.events[i].Request == nil {
			continue
		}
		if steps++; steps == limit+1 {
			over = &v.events[i]
		}
	}
	o.looked = steps > 0
	if over != nil {
		o.find(finding{events: []int{over.N}, evidence: fmt.Sprintf("%d model steps, at most %d are allowed", steps, limit)})
	}
	return o
}

func usageAccounted(v *view, _ params) (o outcome) {
	if v.end == nil {
		return o
	}
	var sum conversation.Usage
	stated := false
	for e := range v.replies() {
		if u, ok := e.Reply.Message.Usage(); ok {
			sum, stated = sum.Add(u), true
		}
	}
	end := v.end.End
	got := end.Usage
	sum.LatencyMS, got.LatencyMS = 0, 0 // tokens are what must add up
	nothing := got == (conversation.Usage{})
	if !stated && nothing || end.Stop == stopError && nothing && end.Steps == 0 {
		return o // nobody counted, or the run broke down before it could
	}
	o.looked = true
	if sum == got {
		return o
	}
	var parts []string
	for _, f := range []struct {
		name      string
		sum, told int
	}{
		{"input", sum.InputTokens, got.InputTokens},
		{"output", sum.OutputTokens, got.OutputTokens},
		{"cache read", sum.CacheReadTokens, got.CacheReadTokens},
		{"cache write", sum.CacheWriteTokens, got.CacheWriteTokens},
		{"reasoning", sum.ReasoningTokens, got.ReasoningTokens},
	} {
		if f.sum != f.told {
			parts = append(parts, fmt.Sprintf("%s tokens: the steps have %d, the result %d", f.name, f.sum, f.told))
		}
	}
	o.find(finding{events: []int{v.end.N}, evidence: strings.Join(parts, "; ")})
	return o
}
