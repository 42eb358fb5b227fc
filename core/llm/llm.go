// Package llm is how an agent talks to a language model: [Model], the one streaming step that a provider implements, and on top of it the loop that runs tools until the model is done ([Loop]).
package llm

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

// Model answers one request.
//
// The sequence that Stream returns is used once. It yields events on the caller's goroutine only. A non-nil error is the last thing it yields; without an error the last event is a [Finish]. When the caller breaks off or ctx ends, the reply's body is
// closed before the iteration returns.
type Model interface {
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Request is one question to a model.
type Request struct {
	// System is the system prompt, "" for none.
	System string
	// Messages are the conversation; system messages among them are hoisted to the vendor's system field after System.
	Messages []conversation.Message
	Tools    []tool.Spec
	Settings Settings
	// Blocking asks for the vendor's blocking endpoint. The same events come, each part in one piece.
	Blocking bool
}

// Settings are the parameters of a request. A nil field is not sent, which leaves it to the vendor.
type Settings struct {
	MaxTokens   *int
	Temperature *float64
	TopP        *float64
	Seed        *int64
	Stop        []string
	// ToolChoice is "auto", "none", "required" or the name of a tool; "" is not sent.
	ToolChoice string
	// ParallelToolCalls is whether the model may make several calls at once.
	ParallelToolCalls *bool
	// ResponseSchema is a JSON Schema that the answer must satisfy; "" for none.
	ResponseSchema conversation.JSON
	// ReasoningEffort is the vendor's word for how long to think; "" is not sent.
	ReasoningEffort string
	// Thinking is how the model thinks before it answers, in the words of those vendors that have more than an effort.
	Thinking Thinking
	// CacheTTL asks the vendor to keep the instructions at the prompt's beginning for that time, one of [CacheTTLs]; "" asks for nothing. CacheMessages asks the same for the conversation so far, for five minutes unless CacheTTL says more.
	CacheTTL      string
	CacheMessages bool
	// PromptCacheKey groups requests with a common beginning, for vendors that keep prompts by themselves; "" is not sent.
	PromptCacheKey string
	// Strict makes content that the vendor cannot take an error instead of leaving it out with a warning.
	Strict bool
}

// Thinking are the settings of a model's reasoning. A zero field is not sent.
type Thinking struct {
	// BudgetTokens bounds the tokens of the reasoning, in the vendor's own bounds: Anthropic's models take 1024 or more, Gemini's also 0 for none and -1 for as many as they like.
	BudgetTokens *int
	// Effort is how long to think, of Anthropic's models: low, medium, high, xhigh or max.
	Effort string
	// Level is how long to think, of Gemini's models: minimal, low, medium or high.
	Level string
}

// Event is one piece of a reply: [TextDelta], [ReasoningDelta], [CallStart], [CallDelta], [Part], [Warning] or [Finish].
type Event interface{ event() }

// TextDelta is a piece of text. Extras, where set, belong to the text as a whole and replace earlier ones.
type TextDelta struct {
	Text   string
	Extras conversation.Extras
}

// ReasoningDelta is a piece of reasoning. Extras, where set, belong to the reasoning as a whole and replace earlier ones.
type ReasoningDelta struct {
	Text   string
	Extras conversation.Extras
}

// CallStart begins a tool call. Index tells the calls of one reply apart, counts from 0 and orders them.
type CallStart struct {
	Index  int
	ID     string
	Name   string
	Extras conversation.Extras
}

// CallDelta is a piece of the arguments of the call with the same index.
type CallDelta struct {
	Index     int
	Arguments string
}

// Part is a whole part of another kind, such as an image.
type Part struct{ Content conversation.Content }

// Warning tells of something that was left out or put right on the way to the vendor or back.
type Warning struct{ Code, Text string }

// Finish ends a reply.
type Finish struct {
	Stop  StopReason
	Usage conversation.Usage
	// Model is the model that the vendor says has answered.
	Model string
	// ID is the vendor's id of the reply.
	ID string
}

func (TextDelta) event()      {}
func (ReasoningDelta) event() {}
func (CallStart) event()      {}
func (CallDelta) event()      {}
func (Part) event()           {}
func (Warning) event()        {}
func (Finish) event()         {}

// StopReason says why a model stopped.
type StopReason string

// The reasons.
const (
	StopEnd       StopReason = "end"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	StopRefused   StopReason = "refused" // the model or a filter of the vendor declined
	StopOther     StopReason = "other"
)

// Error is a failure on the way to a model or back. Status is 0 where no reply came.
type Error struct {
	Vendor    string
	Status    int
	Type      string
	Code      string
	Message   string
	RequestID string
	// RetryAfter is how long the vendor asks to wait, 0 where it does not say.
	RetryAfter time.Duration
	// Retryable says that the same request may succeed later.
	Retryable bool
	// Retries is how many times the request was repeated before this error.
	Retries int
	Err     error
}

// Error gives vendor, status, code, message and request id, as far as each is known.
func (e *Error) Error() string {
	s := e.Vendor
	if e.Status != 0 {
		s += fmt.Sprintf(": status %d", e.Status)
	}
	switch {
	case e.Code != "":
		s += " (" + e.Code + ")"
	case e.Type != "":
		s += " (" + e.Type + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.RequestID != "" {
		s += " [request " + e.RequestID + "]"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Reply is a whole answer, put together from its events.
type Reply struct {
	// Parts are text, reasoning, calls and others in the order in which they began.
	Parts    []conversation.Content
	Finish   Finish
	Warnings []Warning
}

// Generate collects the events of one request into a whole reply. On an error the reply holds what came before it.
func Generate(ctx context.Context, m Model, req Request) (Reply, error) {
	var c Collector
	for event, err := range m.Stream(ctx, req) {
		if err != nil {
			return c.Reply(), err
		}
		c.Add(event)
	}
	return c.Reply(), c.Err()
}

// Collector puts a reply together from its events. The zero value is ready.
type Collector struct {
	parts    []partial
	calls    map[int]int // index of the call -> place in parts
	finish   *Finish
	warnings []Warning
	extra    bool
}

type partial struct {
	content conversation.Content
	text    []byte
	whole   bool // came as a [Part]: nothing is added to it
}

// Add takes the next event.
func (c *Collector) Add(event Event) {
	if c.finish != nil {
		c.extra = true
		return
	}
	switch e := event.(type) {
	case TextDelta:
		p := c.last(conversation.KindText, conversation.Text{})
		p.text = append(p.text, e.Text...)
		if e.Extras != nil {
			p.content = conversation.Text{Extras: e.Extras}
		}
	case ReasoningDelta:
		p := c.last(conversation.KindReasoning, conversation.Reasoning{})
		p.text = append(p.text, e.Text...)
		if e.Extras != nil {
			p.content = conversation.Reasoning{Extras: e.Extras}
		}
	case CallStart:
		if c.calls == nil {
			c.calls = map[int]int{}
		}
		c.calls[e.Index] = len(c.parts)
		c.parts = append(c.parts, partial{content: conversation.ToolCall{ID: e.ID, Name: e.Name, Extras: e.Extras}})
	case CallDelta:
		if i, ok := c.calls[e.Index]; ok {
			c.parts[i].text = append(c.parts[i].text, e.Arguments...)
		}
	case Part:
		c.parts = append(c.parts, partial{content: e.Content, whole: true})
	case Warning:
		c.warnings = append(c.warnings, e)
	case Finish:
		c.finish = &e
	}
}

func (c *Collector) last(kind conversation.Kind, fresh conversation.Content) *partial {
	if n := len(c.parts); n > 0 && c.parts[n-1].content.Kind() == kind && !c.parts[n-1].whole {
		return &c.parts[n-1]
	}
	c.parts = append(c.parts, partial{content: fresh})
	return &c.parts[len(c.parts)-1]
}

// Err reports a sequence that broke the contract of [Model]: no Finish, or events after it.
func (c *Collector) Err() error {
	switch {
	case c.finish == nil:
		return fmt.Errorf("the model's reply ended without a finish event")
	case c.extra:
		return fmt.Errorf("the model's reply went on after its finish event")
	}
	return nil
}

// Reply returns what has been collected so far.
func (c *Collector) Reply() Reply {
	r := Reply{Warnings: c.warnings}
	if c.finish != nil {
		r.Finish = *c.finish
	}
	for _, p := range c.parts {
		switch content := p.content.(type) {
		case conversation.Text:
			if len(p.text) == 0 && content.Extras == nil {
				continue
			}
			content.Text = string(p.text)
			r.Parts = append(r.Parts, content)
		case conversation.Reasoning:
			content.Text = string(p.text)
			r.Parts = append(r.Parts, content)
		case conversation.ToolCall:
			content.Input = conversation.JSON(p.text)
			r.Parts = append(r.Parts, content)
		default:
			r.Parts = append(r.Parts, content)
		}
	}
	return r
}
