// Package conversation is the model of a conversation between a user, an agent and its tools: messages that mix text, reasoning, images, documents, tool calls and tool results, and the [Context] that holds them.
//
// Everything here is an immutable value: a Context is shared freely between goroutines, and adding a message gives a new Context whose prefix is the old one. The JSON codec in this package is the only one for these types; a file written by
// any version with the same major format is read by every later one.
//
//	ctx := conversation.New(conversation.Hidden{"tenant_id": `"t-7"`})
//	ctx, err := ctx.Append(conversation.User("m1", conversation.Text{Text: "hello"}))
package conversation

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Role says who speaks.
type Role string

// The roles. What each may carry is checked by [Message.Validate].
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// JSON is the text of one JSON value. It is a string so that it cannot be changed by whoever holds it. Where a field may hold malformed text, its comment says so.
type JSON string

// SourceType says where the bytes of an image or document are.
type SourceType string

// The source types.
const (
	SourceBase64 SourceType = "base64"
	SourceURL    SourceType = "url"
)

// Source is the bytes of an image or document: base64 text in Data, or an address in URL, as Type says.
type Source struct {
	Type SourceType
	Data string
	URL  string
}

// Extra is something that only one vendor understands (a signature of its reasoning, say). It is carried unread and given back to that vendor alone.
type Extra struct {
	Vendor string
	Data   JSON
}

// Extras are sorted by vendor, one entry each. They are not to be changed in place; [Extras.With] gives a changed copy.
type Extras []Extra

// Get returns what is kept for vendor, or "".
func (e Extras) Get(vendor string) JSON {
	for _, x := range e {
		if x.Vendor == vendor {
			return x.Data
		}
	}
	return ""
}

// With returns a copy in which vendor's entry is data.
func (e Extras) With(vendor string, data JSON) Extras {
	out := make(Extras, 0, len(e)+1)
	for _, x := range e {
		if x.Vendor != vendor {
			out = append(out, x)
		}
	}
	out = append(out, Extra{Vendor: vendor, Data: data})
	slices.SortFunc(out, func(a, b Extra) int { return strings.Compare(a.Vendor, b.Vendor) })
	return out
}

// Content is one part of a message: [Text], [Reasoning], [Image], [Document], [ToolCall] or [ToolResult].
type Content interface {
	// Kind is the part's `type` in JSON.
	Kind() Kind
}

// Kind names a variant of [Content] as in JSON.
type Kind string

// The kinds of content.
const (
	KindText       Kind = "text"
	KindReasoning  Kind = "reasoning"
	KindImage      Kind = "image"
	KindDocument   Kind = "document"
	KindToolCall   Kind = "tool_call"
	KindToolResult Kind = "tool_result"
)

// Text is plain text.
type Text struct {
	Text   string
	Extras Extras
}

// Reasoning is what a model thought before it answered. Text may be empty where the vendor shows only a signature or a redacted block, which Extras then carry.
type Reasoning struct {
	Text   string
	Extras Extras
}

// Image is a picture: image/jpeg, image/png, image/gif or image/webp.
type Image struct {
	MediaType string
	Source    Source
}

// Document is a PDF. Name may be empty.
type Document struct {
	MediaType string
	Name      string
	Source    Source
}

// ToolCall asks for a tool to be run. Input is the arguments as the model wrote them: usually a JSON object, empty for none, and possibly malformed, which [ToolCall.Arguments] tells apart.
type ToolCall struct {
	ID     string
	Name   string
	Input  JSON
	Extras Extras
}

// ToolResult answers the call of the same ID. Result is any JSON value.
type ToolResult struct {
	ID      string
	Result  JSON
	IsError bool
	// Meta is data about the result that no model sees; "" for none.
	Meta JSON
}

// Kind implements [Content].
func (Text) Kind() Kind { return KindText }

// Kind implements [Content].
func (Reasoning) Kind() Kind { return KindReasoning }

// Kind implements [Content].
func (Image) Kind() Kind { return KindImage }

// Kind implements [Content].
func (Document) Kind() Kind { return KindDocument }

// Kind implements [Content].
func (ToolCall) Kind() Kind { return KindToolCall }

// Kind implements [Content].
func (ToolResult) Kind() Kind { return KindToolResult }

// ResultText is the result as a model reads it: a JSON string stands for itself, anything else is its JSON text.
func (r ToolResult) ResultText() string {
	if s, ok := stringValue(r.Result); ok {
		return s
	}
	return string(r.Result)
}

// Usage counts the tokens of one model reply and the time it took.
type Usage struct {
	InputTokens      int // all input, cached included
	OutputTokens     int // all output, reasoning included
	CacheReadTokens  int
	CacheWriteTokens int
	ReasoningTokens  int
	LatencyMS        int
}

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
		LatencyMS:        u.LatencyMS + v.LatencyMS,
	}
}

// Message is what one role said at once: parts in order.
type Message struct {
	id       string
	role     Role
	parts    []Content
	usage    Usage
	hasUsage bool
	time     int64
	hasTime  bool
}

// NewMessage returns a message without looking at what it holds; see [Message.Validate]. The parts are copied, their extras too. A [Context] takes only valid messages, a record of what somebody else said may hold others.
func NewMessage(role Role, id string, parts ...Content) Message {
	m := Message{id: id, role: role, parts: slices.Clone(parts)}
	for i, p := range m.parts {
		switch p := p.(type) {
		case Text:
			p.Extras = slices.Clone(p.Extras)
			m.parts[i] = p
		case Reasoning:
			p.Extras = slices.Clone(p.Extras)
			m.parts[i] = p
		case ToolCall:
			p.Extras = slices.Clone(p.Extras)
			m.parts[i] = p
		}
	}
	return m
}

// User returns a message of the user.
func User(id string, parts ...Content) Message { return NewMessage(RoleUser, id, parts...) }

// Assistant returns a message of the model.
func Assistant(id string, parts ...Content) Message { return NewMessage(RoleAssistant, id, parts...) }

// ToolResults returns a message with the results of tools.
func ToolResults(id string, parts ...Content) Message { return NewMessage(RoleTool, id, parts...) }

// WithUsage returns a copy that bears usage.
func (m Message) WithUsage(u Usage) Message { m.usage, m.hasUsage = u, true; return m }

// WithTime returns a copy that bears a time, in seconds since 1970.
func (m Message) WithTime(seconds int64) Message { m.time, m.hasTime = seconds, true; return m }

// ID is the message's id; all messages of one turn of the agent share one.
func (m Message) ID() string { return m.id }

// Role says who speaks.
func (m Message) Role() Role { return m.role }

// Usage returns the tokens of the reply, if the message bears any.
func (m Message) Usage() (Usage, bool) { return m.usage, m.hasUsage }

// Time returns the message's time in seconds since 1970, if it bears one.
func (m Message) Time() (int64, bool) { return m.time, m.hasTime }

// Len is the number of parts.
func (m Message) Len() int { return len(m.parts) }

// Part returns part i, from 0.
func (m Message) Part(i int) Content { return m.parts[i] }

// Parts iterates over the parts in order.
func (m Message) Parts() iter.Seq2[int, Content] { return slices.All(m.parts) }

// Text joins the message's text parts.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.parts {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// ToolCalls returns the calls in order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

var allowedContent = map[Role][]Kind{
	RoleSystem:    {KindText},
	RoleUser:      {KindText, KindImage, KindDocument},
	RoleAssistant: {KindText, KindReasoning, KindImage, KindDocument, KindToolCall},
	RoleTool:      {KindToolResult, KindImage, KindDocument},
}

// Carries lists the kinds of content that a message of the role may hold; nil for an unknown role. Callers own the list.
func (r Role) Carries() []Kind { return slices.Clone(allowedContent[r]) }

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// Validate checks that the role is known and carries only what it may carry, that every call and result has an id, and that every medium has the source that its type names.
func (m Message) Validate() error {
	allowed, ok := allowedContent[m.role]
	if !ok {
		return fmt.Errorf("unknown role %q", string(m.role))
	}
	for i, p := range m.parts {
		switch p.(type) {
		case Text, Reasoning, Image, Document, ToolCall, ToolResult:
		case nil:
			return fmt.Errorf("part %d is empty", i+1)
		default:
			// A pointer to a part, or a type of somebody else: the codec would lose it.
			return fmt.Errorf("part %d is a %T, which is no kind of content", i+1, p)
		}
		if !slices.Contains(allowed, p.Kind()) {
			return fmt.Errorf("part %d: a message of role %s may not carry %s", i+1, m.role, p.Kind())
		}
		if err := validatePart(p); err != nil {
			return fmt.Errorf("part %d: %w", i+1, err)
		}
	}
	return nil
}

func validatePart(p Content) error {
	switch p := p.(type) {
	case Image:
		if !slices.Contains(imageTypes, p.MediaType) {
			return fmt.Errorf("an image of type %q; it must be one of %s", p.MediaType, strings.Join(imageTypes, ", "))
		}
		return p.Source.validate()
	case Document:
		if p.MediaType != "application/pdf" {
			return fmt.Errorf("a document of type %q; it must be application/pdf", p.MediaType)
		}
		return p.Source.validate()
	case ToolCall:
		if p.ID == "" {
			return fmt.Errorf("tool call %q has no tool_call_id", p.Name)
		}
		if p.Name == "" {
			return fmt.Errorf("tool call %q has no name", p.ID)
		}
	case ToolResult:
		if p.ID == "" {
			return fmt.Errorf("a tool result has no tool_call_id")
		}
	}
	return nil
}

func (s Source) validate() error {
	switch s.Type {
	case SourceBase64:
		if s.Data == "" {
			return fmt.Errorf("data is required when source_type is base64")
		}
	case SourceURL:
		if s.URL == "" {
			return fmt.Errorf("url is required when source_type is url")
		}
	default:
		return fmt.Errorf("unknown source_type %q; it must be base64 or url", string(s.Type))
	}
	return nil
}

// Hidden is what tools get besides the model's arguments and no model ever sees: tenant, user, tokens. The values are JSON texts.
type Hidden map[string]JSON

// Context is a conversation so far. The zero value is empty.
type Context struct {
	messages []Message
	summary  string
	// system holds everything of system_context but tool_context.
	system map[string]JSON
	hidden Hidden
}

// New returns an empty context with the given tool_context, which is copied.
func New(hidden Hidden) Context { return Context{hidden: maps.Clone(hidden)} }

// Append returns a context with the messages added; the receiver stays as it is. An invalid message is an error.
func (c Context) Append(messages ...Message) (Context, error) {
	for i, m := range messages {
		if err := m.Validate(); err != nil {
			return c, fmt.Errorf("message %d: %w", len(c.messages)+i+1, err)
		}
	}
	c.messages = append(slices.Clip(c.messages), messages...)
	return c, nil
}

// WithSummary returns a context that bears a short summary of the turns before its messages.
func (c Context) WithSummary(summary string) Context { c.summary = summary; return c }

// WithSystem returns a context in which the key of system_context has the given value. The key tool_context is set with [New].
func (c Context) WithSystem(key string, value JSON) Context {
	c.system = maps.Clone(c.system)
	if c.system == nil {
		c.system = map[string]JSON{}
	}
	c.system[key] = value
	return c
}

// Len is the number of messages.
func (c Context) Len() int { return len(c.messages) }

// Message returns message i, from 0.
func (c Context) Message(i int) Message { return c.messages[i] }

// Messages iterates over the messages in order.
func (c Context) Messages() iter.Seq2[int, Message] { return slices.All(c.messages) }

// Summary is the summary of the turns before the first message, or "".
func (c Context) Summary() string { return c.summary }

// System returns a value of system_context other than tool_context, or "".
func (c Context) System(key string) JSON { return c.system[key] }

// ToolContext returns a copy of system_context.tool_context; it is never nil.
func (c Context) ToolContext() Hidden {
	if c.hidden == nil {
		return Hidden{}
	}
	return maps.Clone(c.hidden)
}

// HasPrefix reports whether the context begins with exactly the messages of prefix.
func (c Context) HasPrefix(prefix Context) bool {
	if len(prefix.messages) > len(c.messages) {
		return false
	}
	for i, m := range prefix.messages {
		if !m.Equal(c.messages[i]) {
			return false
		}
	}
	return true
}

// Equal reports whether both messages have the same JSON.
func (m Message) Equal(other Message) bool {
	return string(m.AppendJSON(nil)) == string(other.AppendJSON(nil))
}
