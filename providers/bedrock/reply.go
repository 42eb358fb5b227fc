package bedrock

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/wire"
)

// lenient takes what servers send although RFC 8259 advises against it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// The parts of a reply, as far as they are read.
type (
	whole struct {
		Output *struct {
			Message *struct {
				Content []jsontext.Value `json:"content"`
			} `json:"message"`
		} `json:"output"`
		Stop string `json:"stopReason"`
		metadata
	}
	metadata struct {
		Usage *usage `json:"usage"`
		Trace struct {
			Router struct {
				Model string `json:"invokedModelId"`
			} `json:"promptRouter"`
		} `json:"trace"`
	}
	usage struct {
		Input      int `json:"inputTokens"`
		Output     int `json:"outputTokens"`
		CacheRead  int `json:"cacheReadInputTokens"`
		CacheWrite int `json:"cacheWriteInputTokens"`
	}
	// block is a content block. Exactly one member is there.
	block struct {
		Text      *string `json:"text"`
		ToolUse   *use    `json:"toolUse"`
		Reasoning *struct {
			Text     *thinking `json:"reasoningText"`
			Redacted *string   `json:"redactedContent"`
		} `json:"reasoningContent"`
		Citations *struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"citationsContent"`
	}
	use struct {
		ID    string         `json:"toolUseId"`
		Name  string         `json:"name"`
		Input jsontext.Value `json:"input"`
		Type  string         `json:"type"`
	}
	thinking struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	}
	// frame is the payload of an event.
	frame struct {
		Index int            `json:"contentBlockIndex"`
		Start jsontext.Value `json:"start"`
		Delta jsontext.Value `json:"delta"`
		Stop  string         `json:"stopReason"`
		metadata
	}
	delta struct {
		Text    *string `json:"text"`
		ToolUse *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning *struct {
			Text      string  `json:"text"`
			Signature string  `json:"signature"`
			Redacted  *string `json:"redactedContent"`
		} `json:"reasoningContent"`
		Citation jsontext.Value `json:"citation"`
	}
)

var (
	// errStopped says that the caller has broken off.
	errStopped = errors.New("stopped")
	errNoEnd   = wire.Cut("the stream ended without its messageStop and its metadata")
	errEmpty   = wire.ErrEmpty
	errTooLong = fmt.Errorf("the reply is longer than %d MiB", maxReply>>20)
	errNoForm  = errors.New("the reply is neither JSON nor an event stream")
)

// maxReply is the largest reply in one piece.
const maxReply = 64 << 20

// reply turns frames into events.
type reply struct {
	yield    func(llm.Event, error) bool
	position int // of the reply in the conversation: how many messages the request had

	id, model string
	stop      string
	stopped   bool // messageStop came
	usage     *usage
	measured  bool // metadata came
	calls     int
	ids       []string
	open      map[int]*openBlock
	thoughts  []thought // of the stretch of reasoning that is being read
	ended     bool      // the reply is whole
	warned    []string
}

type blockKind uint8

const (
	kindText blockKind = iota
	kindCall
	kindThinking
	kindRedacted
	kindOpaque
)

// openBlock is a block whose pieces are arriving.
type openBlock struct {
	kind      blockKind
	call      int
	input     jsontext.Value
	given     bool   // a piece of arguments came
	pieces    []byte // of thinking, or of what is redacted
	signature string
	opaque    []jsontext.Value // the start and the pieces of a block that is not known
}

// read reads a whole reply and emits its events, the finish included.
func (r *reply) read(ctx context.Context, resp *http.Response) error {
	r.open = map[int]*openBlock{}
	body := bufio.NewReaderSize(resp.Body, 32<<10)
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var err error
	if mediaType == jsonType {
		err = r.whole(body)
	} else {
		err = r.guess(ctx, body)
	}
	if cause := ctx.Err(); cause != nil && err != nil && !errors.Is(err, errStopped) {
		return cause
	}
	return err
}

// guess reads a reply by how it begins, since a page may come under the type of a stream too. The first byte of a stream is the highest of a length, which is never as large.
func (r *reply) guess(ctx context.Context, body *bufio.Reader) error {
	first, err := body.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return errEmpty
	case err != nil:
		return fmt.Errorf("%w: %w", errBroken, err)
	case first[0] == 0:
		return r.stream(ctx, body)
	}
	head, _ := body.Peek(512)
	if begin := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"); len(begin) > 0 && begin[0] != '{' {
		return fmt.Errorf("%w: %s", errNoForm, wire.Body(string(begin)))
	}
	return r.whole(body)
}

// whole reads a blocking reply.
func (r *reply) whole(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxReply+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errBroken, err)
	case len(data) > maxReply:
		return errTooLong
	case len(bytes.TrimSpace(data)) == 0:
		return errEmpty
	}
	var w whole
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &w, lenient); err != nil {
		return wire.Unreadable("the reply", data, err)
	}
	if w.Output == nil || w.Output.Message == nil {
		if a, ok := readAnswer(data); ok {
			return &answerError{a}
		}
		return fmt.Errorf("the reply is no message: %s", wire.Excerpt(string(data)))
	}
	for i, raw := range w.Output.Message.Content {
		if err := r.block(i, raw); err != nil {
			return err
		}
	}
	r.stop, r.stopped = w.Stop, true
	r.measure(&w.metadata)
	return r.end()
}

// block takes a whole block.
func (r *reply) block(index int, raw jsontext.Value) error {
	var b block
	if err := json.Unmarshal(raw, &b, lenient); err != nil {
		return wire.Unreadable("a block of the reply", raw, err)
	}
	switch {
	case b.Text != nil:
		return r.text(*b.Text)
	case b.ToolUse != nil && !b.ToolUse.server():
		o, err := r.call(b.ToolUse)
		if err != nil {
			return err
		}
		o.input = b.ToolUse.Input
		r.open[index] = o
	case b.Reasoning != nil && b.Reasoning.Text != nil:
		r.open[index] = &openBlock{kind: kindThinking, pieces: []byte(b.Reasoning.Text.Text), signature: b.Reasoning.Text.Signature}
		if err := r.thought(b.Reasoning.Text.Text); err != nil {
			return err
		}
	case b.Reasoning != nil && b.Reasoning.Redacted != nil:
		r.open[index] = &openBlock{kind: kindRedacted, pieces: []byte(*b.Reasoning.Redacted)}
	case b.Citations != nil:
		for _, c := range b.Citations.Content {
			if err := r.text(c.Text); err != nil {
				return err
			}
		}
		return r.warn("content-left-out", "citations were left out of the reply")
	default:
		r.open[index] = &openBlock{kind: kindOpaque, opaque: []jsontext.Value{raw.Clone()}}
	}
	return r.finishBlock(index)
}

// server reports whether the vendor runs the tool itself.
func (u *use) server() bool { return u.Type == "server_tool_use" }

func (r *reply) call(u *use) (*openBlock, error) {
	id := u.ID
	if slices.Contains(r.ids, id) && id != "" {
		if err := r.warn("call-id-repeated", fmt.Sprintf("two calls of the reply had the id %q; the later one got another", wire.Excerpt(id))); err != nil {
			return nil, err
		}
		id = ""
	}
	r.ids = append(r.ids, id)
	if id == "" {
		id = wire.CallID("tooluse_", r.position, r.calls, u.Name)
	}
	o := &openBlock{kind: kindCall, call: r.calls}
	r.calls++
	return o, r.emit(llm.CallStart{Index: o.call, ID: id, Name: u.Name})
}

// stream reads a streamed reply.
func (r *reply) stream(ctx context.Context, body io.Reader) error {
	decoder := eventstream.NewDecoder()
	var payload []byte
	for began := false; ; began = true {
		message, err := decoder.Decode(body, payload[:0])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var checksum eventstream.ChecksumError
		switch {
		case errors.Is(err, io.EOF) && !began && message.Payload == nil:
			return r.over(errEmpty)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r.over(errNoEnd)
		case errors.As(err, &checksum):
			return r.over(fmt.Errorf("%w: the checksum of a frame is wrong", errBroken))
		case err != nil:
			return r.over(fmt.Errorf("%w: %w", errBroken, err))
		}
		payload = message.Payload
		if err := r.message(&message); err != nil || r.ended {
			return err
		}
	}
}

// over ends a stream that has no more frames. What broke it matters only where it is not whole.
func (r *reply) over(err error) error {
	if r.stopped && r.measured {
		return r.end()
	}
	return err
}

// message takes the next frame.
func (r *reply) message(m *eventstream.Message) error {
	header := func(name string) string {
		v, _ := m.Headers.Get(name).(eventstream.StringValue)
		return string(v)
	}
	switch header(eventstreamapi.MessageTypeHeader) {
	case eventstreamapi.ExceptionMessageType:
		a, ok := readAnswer(m.Payload)
		if !ok {
			a.Message = string(m.Payload)
		}
		if kind := errorType(header(eventstreamapi.ExceptionTypeHeader)); kind != "" {
			// The model of the service names the members of a stream with a small letter.
			a.Type = strings.ToUpper(kind[:1]) + kind[1:]
		}
		return &answerError{a}
	case eventstreamapi.ErrorMessageType:
		return &answerError{answer{Type: errorType(header(eventstreamapi.ErrorCodeHeader)), Message: header(eventstreamapi.ErrorMessageHeader)}}
	case eventstreamapi.EventMessageType:
	default:
		return nil
	}
	kind := header(eventstreamapi.EventTypeHeader)
	if !slices.Contains(eventTypes, kind) {
		return nil
	}
	var f frame
	if err := json.Unmarshal(m.Payload, &f, lenient); err != nil {
		return wire.Unreadable("a frame of the reply", m.Payload, err)
	}
	switch kind {
	case "contentBlockStart":
		return r.start(f.Index, f.Start)
	case "contentBlockDelta":
		return r.piece(f.Index, f.Delta)
	case "contentBlockStop":
		return r.finishBlock(f.Index)
	case "messageStop":
		r.stop, r.stopped = f.Stop, true
	case "metadata":
		r.measure(&f.metadata)
	}
	if r.stopped && r.measured {
		return r.end()
	}
	return nil
}

// eventTypes are those that are read. Others say nothing.
var eventTypes = []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}

func (r *reply) measure(m *metadata) {
	r.usage, r.model, r.measured = m.Usage, m.Trace.Router.Model, true
}

// start begins a block that announces itself; texts and reasoning begin with their first piece.
func (r *reply) start(index int, raw jsontext.Value) error {
	var s struct {
		ToolUse *use `json:"toolUse"`
	}
	if err := json.Unmarshal(raw, &s, lenient); err != nil {
		return wire.Unreadable("the start of a block", raw, err)
	}
	if s.ToolUse == nil || s.ToolUse.server() {
		r.open[index] = &openBlock{kind: kindOpaque, opaque: []jsontext.Value{raw.Clone()}}
		return nil
	}
	o, err := r.call(s.ToolUse)
	r.open[index] = o
	return err
}

// piece takes a piece of a block.
func (r *reply) piece(index int, raw jsontext.Value) error {
	o := r.open[index]
	if o != nil && o.kind == kindOpaque {
		o.opaque = append(o.opaque, raw.Clone())
		return nil
	}
	var d delta
	if err := json.Unmarshal(raw, &d, lenient); err != nil {
		return wire.Unreadable("a piece of a block", raw, err)
	}
	kind := kindOpaque
	switch {
	case d.Text != nil, d.Citation != nil:
		kind = kindText
	case d.ToolUse != nil:
		kind = kindCall
	case d.Reasoning != nil && d.Reasoning.Redacted != nil:
		kind = kindRedacted
	case d.Reasoning != nil:
		kind = kindThinking
	}
	switch {
	case kind == kindCall && o == nil:
		return fmt.Errorf("arguments came for block %d, which is no call", index)
	case o == nil:
		o = &openBlock{kind: kind}
		r.open[index] = o
		if kind == kindOpaque {
			o.opaque = []jsontext.Value{raw.Clone()}
		}
	case o.kind != kind:
		return fmt.Errorf("block %d goes on as another kind of block", index)
	}
	switch kind {
	case kindText:
		if d.Citation != nil {
			return r.warn("content-left-out", "citations were left out of the reply")
		}
		return r.text(*d.Text)
	case kindCall:
		if d.ToolUse.Input == "" {
			return nil
		}
		o.given = true
		return r.emit(llm.CallDelta{Index: o.call, Arguments: d.ToolUse.Input})
	case kindRedacted:
		o.pieces = append(o.pieces, *d.Reasoning.Redacted...)
	case kindThinking:
		o.pieces = append(o.pieces, d.Reasoning.Text...)
		o.signature += d.Reasoning.Signature
		return r.thought(d.Reasoning.Text)
	}
	return nil
}

func (r *reply) emit(e llm.Event) error {
	if _, reasoning := e.(llm.ReasoningDelta); !reasoning {
		if _, warning := e.(llm.Warning); !warning {
			r.thoughts = nil
		}
	}
	if !r.yield(e, nil) {
		return errStopped
	}
	return nil
}

func (r *reply) warn(code, text string) error {
	if slices.Contains(r.warned, text) {
		return nil
	}
	r.warned = append(r.warned, text)
	return r.emit(llm.Warning{Code: code, Text: text})
}

func (r *reply) text(s string) error {
	if s == "" {
		return nil
	}
	return r.emit(llm.TextDelta{Text: s})
}

func (r *reply) thought(s string) error {
	if s == "" {
		return nil
	}
	return r.emit(llm.ReasoningDelta{Text: s})
}

// finishBlock ends a block.
func (r *reply) finishBlock(index int) error {
	o := r.open[index]
	if o == nil {
		return nil
	}
	delete(r.open, index)
	switch o.kind {
	case kindText:
		return nil
	case kindCall:
		if o.given || len(o.input) == 0 || o.input.Kind() == 'n' {
			return nil
		}
		return r.emit(llm.CallDelta{Index: o.call, Arguments: string(o.input)})
	case kindThinking:
		text := string(o.pieces)
		r.thoughts = append(r.thoughts, thought{Text: &text, Signature: o.signature})
	case kindRedacted:
		redacted := string(o.pieces)
		r.thoughts = append(r.thoughts, thought{Redacted: &redacted})
	case kindOpaque:
		raw, err := join(o.opaque)
		if err != nil {
			return wire.Unreadable("a block of the reply", raw, err)
		}
		if err := r.warn("content-opaque", fmt.Sprintf("a block of type %q is kept unread", wire.Excerpt(firstName(raw)))); err != nil {
			return err
		}
		r.thoughts = append(r.thoughts, thought{Block: raw})
	}
	kept, err := writeThoughts(r.thoughts)
	if err != nil {
		return err
	}
	return r.emit(llm.ReasoningDelta{Extras: conversation.Extras(nil).With(Name, kept)})
}

// end emits the finish. Blocks that a stream did not end are ended here, in their order.
func (r *reply) end() error {
	if r.ended {
		return nil
	}
	var left []int
	for index := range r.open {
		left = append(left, index)
	}
	slices.Sort(left)
	for _, index := range left {
		if err := r.finishBlock(index); err != nil {
			return err
		}
	}
	r.ended = true
	if r.usage == nil {
		if err := r.warn("usage-missing", "the reply does not say how many tokens it took"); err != nil {
			return err
		}
		r.usage = &usage{}
	}
	return r.emit(llm.Finish{Stop: r.why(), Model: r.model, ID: r.id, Usage: r.usage.counts()})
}

// stops maps the vendor's words.
var stops = map[string]llm.StopReason{
	"end_turn":                      llm.StopEnd,
	"stop_sequence":                 llm.StopEnd,
	"max_tokens":                    llm.StopLength,
	"model_context_window_exceeded": llm.StopLength,
	"tool_use":                      llm.StopToolCalls,
	"content_filtered":              llm.StopRefused,
	"guardrail_intervened":          llm.StopRefused,
	"refusal":                       llm.StopRefused,
}

func (r *reply) why() llm.StopReason {
	if stop, ok := stops[r.stop]; ok {
		return stop
	}
	return llm.StopOther
}

// counts brings the vendor's counts to ours: input with what was read from and written to the cache.
func (u *usage) counts() conversation.Usage {
	read, wrote := max(u.CacheRead, 0), max(u.CacheWrite, 0)
	return conversation.Usage{InputTokens: max(u.Input, 0) + read + wrote, OutputTokens: max(u.Output, 0), CacheReadTokens: read, CacheWriteTokens: wrote}
}
