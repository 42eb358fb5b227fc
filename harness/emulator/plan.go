package emulator

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// plan is a script made ready to answer: patterns compiled, templates parsed, fixed answers worked out.
type plan struct {
	name          string
	sum           [32]byte
	models        []string // allowed; none: every model
	conversations []*conversation
	fallback      *conversation
}

type conversation struct {
	name  string
	match Match
	regex *regexp.Regexp
	steps [][]*answer // for each step its attempts
}

// answer is one attempt of one step.
type answer struct {
	step      Step
	text      template
	reasoning template
	refusal   template
	calls     []plannedCall
	fragment  int
	ready     *reply // the reply, but for its seed and input count, where nothing in it is filled from the request
}

type plannedCall struct {
	name, id string
	raw      *template
	args     string
	filled   bool // args holds placeholders
}

// fault is something wrong in a script: where, as keys and indices from the top, and what.
type fault struct {
	path []any
	what string
}

func (f fault) String() string {
	var b strings.Builder
	for _, step := range f.path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	if b.Len() == 0 {
		return f.what
	}
	return b.String() + ": " + f.what
}

type planner struct {
	faults []fault
}

func (p *planner) fault(at []any, format string, args ...any) {
	p.faults = append(p.faults, fault{slices.Clone(at), fmt.Sprintf(format, args...)})
}

// at extends a path without sharing its memory with a sibling's.
func at(path []any, more ...any) []any { return append(slices.Clip(path), more...) }

// newPlan checks a script and makes it ready. The plan is of use only where there are no faults.
func newPlan(s Script) (*plan, []fault) {
	p := &planner{}
	out := &plan{name: s.Name, models: s.Models}
	if s.Version != 1 {
		p.fault([]any{"version"}, "version %d is not known, only 1 is", s.Version)
	}
	if s.Name == "" {
		p.fault([]any{"name"}, "the script needs a name")
	}
	if s.Fragment < 0 {
		p.fault([]any{"fragment"}, "must not be negative")
	}
	for i, pattern := range s.Models {
		p.pattern([]any{"models", i}, pattern)
	}
	if len(s.Conversations) == 0 && s.Default == nil {
		p.fault(nil, "the script has no conversation and no default: it could answer nothing")
	}
	anyModel := s.Default != nil
	var named []string
	seen := map[string]bool{}
	for i, c := range s.Conversations {
		where := []any{"conversations", i}
		if c.Name == "" {
			c.Name = "conversation " + strconv.Itoa(i+1)
		}
		if seen[c.Name] {
			p.fault(at(where, "name"), "another conversation is named %q", c.Name)
		}
		seen[c.Name] = true
		if c.Match.IsZero() {
			p.fault(where, "the conversation matches everything; move it to default")
		}
		if c.Match.Model == "" {
			anyModel = true
		} else {
			named = append(named, c.Match.Model)
		}
		out.conversations = append(out.conversations, p.conversation(where, c, s.Fragment))
	}
	if len(out.models) == 0 && !anyModel {
		out.models = named
	}
	if s.Default != nil {
		c := *s.Default
		if c.Name == "" {
			c.Name = "default"
		}
		if !c.Match.IsZero() {
			p.fault([]any{"default", "match"}, "default answers everything that no conversation matches, so it has no match")
		}
		out.fallback = p.conversation([]any{"default"}, c, s.Fragment)
	}
	if len(p.faults) == 0 {
		sum, err := s.sum()
		if err != nil {
			p.fault(nil, "%v", err)
		}
		out.sum = sum
	}
	return out, p.faults
}

func (p *planner) pattern(where []any, pattern string) {
	if _, err := path.Match(pattern, ""); err != nil {
		p.fault(where, "%q is no pattern", pattern)
	}
}

func (p *planner) conversation(where []any, c Conversation, fragment int) *conversation {
	out := &conversation{name: c.Name, match: c.Match}
	p.pattern(at(where, "match", "model"), c.Match.Model)
	if c.Match.UserRegex != "" {
		regex, err := regexp.Compile(c.Match.UserRegex)
		if err != nil {
			p.fault(at(where, "match", "user_regex"), "%v", err)
		}
		out.regex = regex
	}
	if len(c.Steps) == 0 {
		p.fault(at(where, "steps"), "the conversation has no steps")
	}
	for i, s := range c.Steps {
		here := at(where, "steps", i)
		attempts := []Step{s}
		if s.Attempts != nil {
			attempts = s.Attempts
			if len(attempts) == 0 {
				p.fault(at(here, "attempts"), "the list is empty")
			}
			s.Attempts = nil
			if !s.isZero() {
				p.fault(here, "attempts stands alone: move the other keys into its entries")
			}
		}
		step := make([]*answer, len(attempts))
		for j, a := range attempts {
			there := here
			if len(attempts) != 1 || c.Steps[i].Attempts != nil {
				there = at(here, "attempts", j)
			}
			if a.Fragment == 0 {
				a.Fragment = fragment
			}
			step[j] = p.answer(there, a)
		}
		out.steps = append(out.steps, step)
	}
	return out
}

func (s Step) isZero() bool {
	return s.Text == nil && s.Reasoning == "" && s.Calls == nil && s.Refusal == "" && s.Finish == "" && s.Usage == nil && s.Latency == nil && s.TTFT == nil &&
		s.Error == nil && s.Cut == nil && s.Slow == nil && s.Fragment == 0 && s.Attempts == nil
}

func (p *planner) answer(where []any, s Step) *answer {
	out := &answer{step: s, fragment: s.Fragment}
	fixed := true
	text := func(key, text string) template {
		if !utf8.ValidString(text) {
			p.fault(at(where, key), "not valid UTF-8")
		}
		t, err := parseTemplate(text)
		if err != nil {
			p.fault(at(where, key), "%v", err)
		}
		fixed = fixed && t.fixed
		return t
	}
	if s.Text != nil {
		out.text = text("text", *s.Text)
	}
	out.reasoning = text("reasoning", s.Reasoning)
	out.refusal = text("refusal", s.Refusal)
	for i, c := range s.Calls {
		call, callFixed := p.call(at(where, "calls", i), c)
		fixed = fixed && callFixed
		out.calls = append(out.calls, call)
	}
	p.checkStep(where, s)
	if fixed && len(p.faults) == 0 {
		out.ready, _ = out.fill(&query{lastUser: -1})
	}
	return out
}

func (p *planner) call(where []any, c Call) (call plannedCall, fixed bool) {
	call = plannedCall{name: c.Name, id: c.ID, args: "{}"}
	fixed = true
	if c.Name == "" {
		p.fault(at(where, "name"), "the call needs the name of a tool")
	}
	if !utf8.ValidString(c.Name) || !utf8.ValidString(c.ID) {
		p.fault(where, "not valid UTF-8")
	}
	switch {
	case c.Raw != nil && c.Args != nil:
		p.fault(at(where, "raw"), "args and raw exclude each other")
	case c.Raw != nil:
		if !utf8.ValidString(*c.Raw) {
			p.fault(at(where, "raw"), "not valid UTF-8")
		}
		t, err := parseTemplate(*c.Raw)
		if err != nil {
			p.fault(at(where, "raw"), "%v", err)
		}
		call.raw, fixed = &t, t.fixed
	case c.Args != nil:
		args := jsontext.Value(bytes.Clone(c.Args))
		if err := args.Compact(); err != nil || args.Kind() != '{' {
			p.fault(at(where, "args"), "the arguments must be a JSON object")
			return call, true
		}
		call.args = string(args)
		if strings.Contains(call.args, "{{") {
			filled, err := mapStrings(call.args, func(text string) (string, error) {
				t, err := parseTemplate(text)
				fixed = fixed && t.fixed
				return t.text, err
			})
			if err != nil {
				p.fault(at(where, "args"), "%v", err)
			}
			call.filled = !fixed
			if fixed {
				call.args = filled
			}
		}
	}
	return call, fixed
}

var finishes = []string{"stop", "length", "content_filter", "tool_calls"}

var errorStatuses = []int{400, 401, 403, 404, 408, 413, 429, 500, 503, 529}

func (p *planner) checkStep(where []any, s Step) {
	if s.Attempts != nil {
		p.fault(at(where, "attempts"), "attempts do not nest")
	}
	answers := s.Text != nil || s.Calls != nil || s.Refusal != ""
	switch {
	case s.Error != nil:
		if answers || s.Finish != "" || s.Usage != nil || s.Cut != nil || s.Slow != nil || s.Reasoning != "" {
			p.fault(at(where, "error"), "a step with an error has nothing else but latency and ttft")
		}
		if !slices.Contains(errorStatuses, s.Error.Status) {
			p.fault(at(where, "error", "status"), "status %d is not one of %s", s.Error.Status, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(errorStatuses)), ", "), "[]"))
		}
		for _, text := range []*string{&s.Error.Type, &s.Error.Message, s.Error.Code, s.Error.Param} {
			if text != nil && !utf8.ValidString(*text) {
				p.fault(at(where, "error"), "not valid UTF-8")
			}
		}
		p.duration(at(where, "error", "retry_after"), s.Error.RetryAfter)
	case !answers:
		p.fault(where, "the step answers nothing: it needs text, calls, refusal, error or attempts")
	}
	if s.Calls != nil && len(s.Calls) == 0 {
		p.fault(at(where, "calls"), "the list is empty")
	}
	if s.Refusal != "" && (s.Text != nil || s.Calls != nil) {
		p.fault(at(where, "refusal"), "a refusal has no text and no calls beside it")
	}
	if s.Finish != "" && !slices.Contains(finishes, s.Finish) {
		p.fault(at(where, "finish"), "%q is not one of %s", s.Finish, strings.Join(finishes, ", "))
	}
	if s.Finish == "tool_calls" && s.Calls == nil {
		p.fault(at(where, "finish"), "tool_calls without calls")
	}
	if s.Fragment < 0 {
		p.fault(at(where, "fragment"), "must not be negative")
	}
	p.duration(at(where, "latency"), s.Latency)
	p.duration(at(where, "ttft"), s.TTFT)
	if s.Latency != nil && s.TTFT != nil && *s.TTFT > *s.Latency {
		p.fault(at(where, "ttft"), "the first byte cannot come after the whole answer")
	}
	if s.Slow != nil && s.Slow.ChunkDelay <= 0 {
		p.fault(at(where, "slow", "chunk_delay"), "must be positive")
	}
	if s.Cut != nil {
		p.count(at(where, "cut", "after"), &s.Cut.After.Count)
	}
	if u := s.Usage; u != nil {
		p.count(at(where, "usage", "input"), u.Input)
		p.count(at(where, "usage", "cached_input"), u.CachedInput)
		p.count(at(where, "usage", "output"), u.Output)
		p.count(at(where, "usage", "reasoning"), u.Reasoning)
		if u.Input != nil && u.CachedInput != nil && *u.CachedInput > *u.Input {
			p.fault(at(where, "usage", "cached_input"), "more than input, of which it is a part")
		}
		if u.Output != nil && u.Reasoning != nil && *u.Reasoning > *u.Output {
			p.fault(at(where, "usage", "reasoning"), "more than output, of which it is a part")
		}
	}
}

func (p *planner) duration(where []any, d *time.Duration) {
	if d != nil && *d < 0 {
		p.fault(where, "must not be negative")
	}
}

func (p *planner) count(where []any, n *int) {
	if n != nil && *n < 0 {
		p.fault(where, "must not be negative")
	}
}

// mapStrings returns the JSON text with each string value, not the keys, replaced.
func mapStrings(text string, replace func(string) (string, error)) (string, error) {
	var out bytes.Buffer
	d := jsontext.NewDecoder(strings.NewReader(text))
	e := jsontext.NewEncoder(&out, jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	for {
		_, length := d.StackIndex(d.StackDepth())
		parent, _ := d.StackIndex(d.StackDepth())
		isKey := parent == '{' && length%2 == 0
		if d.PeekKind() == '"' && !isKey {
			token, err := d.ReadToken()
			if err != nil {
				return "", err
			}
			s, err := replace(token.String())
			if err != nil {
				return "", err
			}
			if err := e.WriteToken(jsontext.String(s)); err != nil {
				return "", err
			}
			continue
		}
		if d.PeekKind() == '0' {
			// A number keeps its text.
			v, err := d.ReadValue()
			if err != nil {
				return "", err
			}
			if err := e.WriteValue(v); err != nil {
				return "", err
			}
			continue
		}
		token, err := d.ReadToken()
		if err == io.EOF {
			return strings.TrimSuffix(out.String(), "\n"), nil
		}
		if err != nil {
			return "", err
		}
		if err := e.WriteToken(token); err != nil {
			return "", err
		}
	}
}
