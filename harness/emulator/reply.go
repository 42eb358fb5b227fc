package emulator

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// reply is what a script answers to one request, in no vendor's format. A reply is either an error (failure is set) or an answer.
type reply struct {
	seed      seed // ids are derived from it; a format adds the purpose
	text      *string
	reasoning string
	refusal   string
	calls     []replyCall
	finish    string // stop, length, content_filter or tool_calls
	usage     usage
	latency   time.Duration // until the end
	ttft      time.Duration // until the first byte
	delay     time.Duration // after each frame, really waited
	fragment  int           // characters of a piece, 0 is the default
	cut       *Cut
	failure   *Error
	pieces    *pieces // of the text or refusal and of each call's arguments, where they were cut in advance
}

type replyCall struct {
	name, args string
	id         string // empty: derived
}

type usage struct{ input, cached, output, reasoning int }

// unanswered is why a script has no reply to a request.
type unanswered struct {
	code string
	what string
}

const (
	codeNoScript = "emulator_no_script" // the script has no step for the request
	codeTemplate = "emulator_template"  // a placeholder cannot be filled
)

// allows reports whether a model may be asked for.
func (p *plan) allows(model string) bool {
	if len(p.models) == 0 {
		return true
	}
	for _, pattern := range p.models {
		if matchesModel(pattern, model) {
			return true
		}
	}
	return false
}

func matchesModel(pattern, model string) bool {
	if pattern == model {
		return true
	}
	// A pattern's star does not cross a slash in path.Match; model names of gateways hold slashes.
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(model, "/", "\x00"))
	return ok && err == nil
}

// reply finds the step for a request and fills it.
func (p *plan) reply(q *query) (reply, *unanswered) {
	c, anchor := p.find(q)
	if c == nil {
		return reply{}, p.noConversation(q)
	}
	k := q.answersAfter(anchor)
	if k >= len(c.steps) {
		return reply{}, &unanswered{codeNoScript, fmt.Sprintf("the emulator's script %q has no answer: the conversation %q has %d %s, but step %d is asked for; %s. Add the step to the conversation.",
			p.name, c.name, len(c.steps), plural("step", len(c.steps)), k+1, q.describe())}
	}
	a := c.steps[k][min(q.attempt, len(c.steps[k])-1)]
	var r reply
	if a.ready != nil {
		r = *a.ready
	} else {
		filled, err := a.fill(q)
		if err != nil {
			return reply{}, &unanswered{codeTemplate, fmt.Sprintf("the emulator's script %q cannot fill step %d of the conversation %q: %v", p.name, k+1, c.name, err)}
		}
		r = *filled
	}
	if a.step.Usage == nil || a.step.Usage.Input == nil {
		r.usage.input = max(q.inputTokens(), r.usage.cached)
	}
	r.seed = p.seed(q)
	return r, nil
}

// seed is the hash of the script and of the request's content.
func (p *plan) seed(q *query) seed { return seed(p.sum).mix(q.digest) }

// find returns the conversation for a request and the message from which its steps are counted (-1: from the beginning). A match with the last user message is better than one with the first, whatever the order of the conversations.
func (p *plan) find(q *query) (*conversation, int) {
	system := q.system(p.conversations)
	for _, c := range p.conversations {
		if c.holds(q, q.lastUser, system) {
			return c, q.lastUser
		}
	}
	if q.firstUser != q.lastUser {
		for _, c := range p.conversations {
			if c.asksUser() && c.holds(q, q.firstUser, system) {
				return c, q.firstUser
			}
		}
	}
	return p.fallback, q.lastUser
}

func (c *conversation) asksUser() bool {
	return c.match.User != "" || c.match.UserContains != "" || c.match.UserRegex != ""
}

func (c *conversation) holds(q *query, user int, system string) bool {
	m := &c.match
	if m.Model != "" && !matchesModel(m.Model, q.model) {
		return false
	}
	if m.SystemContains != "" && !strings.Contains(system, m.SystemContains) {
		return false
	}
	if !c.asksUser() {
		return true
	}
	if user < 0 {
		return false
	}
	text := q.turns[user].text
	return (m.User == "" || m.User == text) && (m.UserContains == "" || strings.Contains(text, m.UserContains)) && (c.regex == nil || c.regex.MatchString(text))
}

// system returns the system messages, joined, where a conversation asks for them.
func (q *query) system(conversations []*conversation) string {
	for _, c := range conversations {
		if c.match.SystemContains == "" {
			continue
		}
		var texts []string
		for _, t := range q.turns {
			if t.role == roleSystem {
				texts = append(texts, t.text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

// fill makes the reply; its seed and, unless the step gives it, its input count are set by the caller.
func (a *answer) fill(q *query) (*reply, error) {
	s := &a.step
	r := &reply{fragment: a.fragment, cut: s.Cut, failure: s.Error, finish: s.Finish}
	var err error
	render := func(t template) string {
		text, e := t.render(q)
		if err == nil {
			err = e
		}
		return text
	}
	if s.Text != nil {
		text := render(a.text)
		r.text = &text
	}
	r.reasoning, r.refusal = render(a.reasoning), render(a.refusal)
	for _, c := range a.calls {
		args := c.args
		switch {
		case c.raw != nil:
			args = render(*c.raw)
		case c.filled:
			filled, e := mapStrings(c.args, func(text string) (string, error) {
				t, e := parseTemplate(text)
				if e != nil {
					return "", e
				}
				return t.render(q)
			})
			if err == nil {
				err = e
			}
			args = filled
		}
		r.calls = append(r.calls, replyCall{name: c.name, args: args, id: c.id})
	}
	if err != nil {
		return nil, err
	}
	if r.finish == "" {
		r.finish = "stop"
		if len(r.calls) > 0 {
			r.finish = "tool_calls"
		}
	}
	r.count(s.Usage)
	r.time(s)
	if a.step.Slow != nil {
		r.delay = a.step.Slow.ChunkDelay
	}
	if r.failure == nil {
		r.pieces = cutPieces(r)
	}
	return r, nil
}

func (r *reply) count(u *Usage) {
	const perCall = 4
	r.usage.reasoning = tokens(r.reasoning)
	r.usage.output = r.usage.reasoning + tokens(r.refusal)
	if r.text != nil {
		r.usage.output += tokens(*r.text)
	}
	for _, c := range r.calls {
		r.usage.output += perCall + tokens(c.name) + tokens(c.args)
	}
	if u == nil {
		return
	}
	for _, field := range []struct {
		to   *int
		from *int
	}{{&r.usage.input, u.Input}, {&r.usage.cached, u.CachedInput}, {&r.usage.output, u.Output}, {&r.usage.reasoning, u.Reasoning}} {
		if field.from != nil {
			*field.to = *field.from
		}
	}
	// A part that is given alone makes its whole at least as large.
	if u.Output == nil {
		r.usage.output = max(r.usage.output, r.usage.reasoning)
	}
	if u.Reasoning == nil {
		r.usage.reasoning = min(r.usage.reasoning, r.usage.output)
	}
}

func (r *reply) time(s *Step) {
	const first, perToken = 180 * time.Millisecond, 8 * time.Millisecond
	r.ttft = first
	switch {
	case s.TTFT != nil:
		r.ttft = *s.TTFT
	case s.Latency != nil:
		r.ttft = min(first, *s.Latency)
	}
	r.latency = r.ttft + time.Duration(r.usage.output)*perToken
	if s.Latency != nil {
		r.latency = *s.Latency
	}
	if r.failure != nil && s.Latency == nil {
		r.latency = r.ttft
	}
}

// describe says what a request asks, for a message to the script's author.
func (q *query) describe() string {
	const limit = 120
	var b strings.Builder
	fmt.Fprintf(&b, "asked was model %q", shorten(q.model, limit))
	if q.lastUser < 0 {
		b.WriteString(" without a user message")
		return b.String()
	}
	fmt.Fprintf(&b, ", last user message %q", shorten(q.turns[q.lastUser].text, limit))
	if q.firstUser != q.lastUser {
		fmt.Fprintf(&b, ", first user message %q", shorten(q.turns[q.firstUser].text, limit))
	}
	n := q.answersAfter(q.lastUser)
	fmt.Fprintf(&b, ", %d assistant %s after the last user message", n, plural("message", n))
	return b.String()
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func (p *plan) noConversation(q *query) *unanswered {
	what := fmt.Sprintf("the emulator's script %q has no answer: no conversation matches; %s", p.name, q.describe())
	if c := p.nearest(q); c != nil {
		what += fmt.Sprintf("; the nearest conversation is %q with %s", c.name, c.describe())
	}
	return &unanswered{codeNoScript, what + ". Correct its match or add a conversation."}
}

func (c *conversation) describe() string {
	var given []string
	for _, g := range [][2]string{{"model", c.match.Model}, {"user", c.match.User}, {"user_contains", c.match.UserContains}, {"user_regex", c.match.UserRegex}, {"system_contains", c.match.SystemContains}} {
		if g[1] != "" {
			given = append(given, fmt.Sprintf("%s %q", g[0], shorten(g[1], 120)))
		}
	}
	return strings.Join(given, " and ")
}

// nearest returns the conversation whose user text is most like one of the request's, the first of several. Long texts are compared by their beginnings and long scripts by their first conversations, so that a wrong request costs little.
func (p *plan) nearest(q *query) *conversation {
	const characters, conversations = 200, 500
	var best *conversation
	least := 2.0
	for _, c := range p.conversations[:min(len(p.conversations), conversations)] {
		distance := 1.0
		want := shorten(c.match.User+c.match.UserContains+c.match.UserRegex, characters)
		for _, i := range []int{q.lastUser, q.firstUser} {
			if i < 0 || want == "" {
				continue
			}
			got := shorten(q.turns[i].text, characters)
			longer := max(utf8.RuneCountInString(got), utf8.RuneCountInString(want))
			distance = min(distance, float64(levenshtein.ComputeDistance(got, want))/float64(max(longer, 1)))
		}
		if c.match.Model != "" && !matchesModel(c.match.Model, q.model) {
			distance += 0.5
		}
		if distance < least {
			best, least = c, distance
		}
	}
	return best
}
