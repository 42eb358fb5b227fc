package anthropic

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

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/wire"
)

// lenient takes what servers send although RFC 8259 advises against it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// The frames of a reply, as far as they are read.
type (
	frame struct {
		Type    string         `json:"type"`
		Message *message       `json:"message"`
		Index   int            `json:"index"`
		Block   jsontext.Value `json:"content_block"`
		Delta   delta          `json:"delta"`
		Usage   *usage         `json:"usage"`
		Error   jsontext.Value `json:"error"`
	}
	message struct {
		ID      string           `json:"id"`
		Model   string           `json:"model"`
		Content []jsontext.Value `json:"content"`
		Stop    string           `json:"stop_reason"`
		Usage   *usage           `json:"usage"`
	}
	block struct {
		Type      string         `json:"type"`
		Text      string         `json:"text"`
		Citations jsontext.Value `json:"citations"`
		ID        string         `json:"id"`
		Name      string         `json:"name"`
		Input     jsontext.Value `json:"input"`
		Thinking  string         `json:"thinking"`
		Signature string         `json:"signature"`
		Data      string         `json:"data"`
	}
	delta struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		JSON      string `json:"partial_json"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Stop      string `json:"stop_reason"`
	}
	usage struct {
		Input      *int `json:"input_tokens"`
		Output     *int `json:"output_tokens"`
		CacheWrite *int `json:"cache_creation_input_tokens"`
		CacheRead  *int `json:"cache_read_input_tokens"`
		Details    struct {
			Thinking *int `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
)

var (
	// errStopped says that the caller has broken off.
	errStopped      = errors.New("stopped")
	errNoEnd        = wire.Cut("the stream ended without its message_stop")
	errEmpty        = wire.ErrEmpty
	errTooLong      = fmt.Errorf("the reply is longer than %d MiB", maxReply>>20)
	errFrameTooLong = errors.New("a frame of the reply is too long")
	errNoForm       = errors.New("the reply is neither JSON nor an event stream")
)

// maxReply is the largest reply in one piece.
const maxReply = 64 << 20

// reply turns frames into events.
type reply struct {
	yield    func(llm.Event, error) bool
	position int // of the reply in the conversation: how many messages the request had

	id, model string
	stop      string
	usage     usage
	counted   bool
	calls     int
	ids       []string // of the calls, as the vendor gave them
	open      map[int]*openBlock
	thoughts  []thought // of the stretch of reasoning that is being read
	ended     bool      // the reply is whole
	warned    []string
}

// openBlock is a block whose pieces are arriving.
type openBlock struct {
	block
	raw    jsontext.Value
	call   int
	pieces []byte // of the arguments, or of the thinking
	given  bool   // a piece of arguments came
}

// read reads a whole reply and emits its events, the finish included.
func (r *reply) read(ctx context.Context, resp *http.Response) error {
	r.open = map[int]*openBlock{}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var err error
	switch mediaType {
	case "text/event-stream":
		err = r.stream(ctx, resp)
	case "application/json":
		err = r.whole(resp.Body)
	default:
		err = r.guess(ctx, resp)
	}
	if cause := ctx.Err(); cause != nil && err != nil && !errors.Is(err, errStopped) {
		return cause
	}
	return err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// guess reads a reply whose header does not say what it is.
func (r *reply) guess(ctx context.Context, resp *http.Response) error {
	var head [512]byte
	n, err := io.ReadFull(resp.Body, head[:])
	switch {
	case errors.Is(err, io.EOF):
		return errEmpty
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	begin := bytes.TrimLeft(bytes.TrimPrefix(head[:n], []byte("\ufeff")), " \t\r\n")
	body := io.MultiReader(bytes.NewReader(head[:n]), resp.Body)
	switch {
	case bytes.HasPrefix(begin, []byte("{")):
		return r.whole(body)
	case bytes.HasPrefix(begin, []byte("event:")), bytes.HasPrefix(begin, []byte("data:")), bytes.HasPrefix(begin, []byte(":")):
		other := *resp
		other.Body = io.NopCloser(body)
		return r.stream(ctx, &other)
	case len(begin) == 0:
		return errEmpty
	}
	return fmt.Errorf("%w: %s", errNoForm, wire.Body(string(begin)))
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
	var w struct {
		Type string `json:"type"`
		message
	}
	if err := json.Unmarshal(data, &w, lenient); err != nil {
		return wire.Unreadable("the reply", data, err)
	}
	if w.Type != "message" {
		if a, ok := readAnswer(data); ok {
			return &answerError{a}
		}
		return fmt.Errorf("the reply is no message: %s", wire.Excerpt(string(data)))
	}
	r.begin(&w.message)
	r.stop = w.Stop
	for i, raw := range w.Content {
		if err := r.start(i, raw); err != nil {
			return err
		}
		if err := r.finishBlock(i); err != nil {
			return err
		}
	}
	return r.end()
}

// stream reads a streamed reply.
func (r *reply) stream(ctx context.Context, resp *http.Response) error {
	// A page under the type of an event stream has no frames. It is told by its first byte, since more may not come for long.
	var first [1]byte
	n, err := resp.Body.Read(first[:])
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	body := io.MultiReader(bytes.NewReader(first[:n]), rest)
	if first[0] == '<' {
		head, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
		return fmt.Errorf("%w: %s", errNoForm, wire.Body(string(head)))
	}
	other := *resp
	other.Body = io.NopCloser(body)
	decoder := ssestream.NewDecoder(&other)
	began := false
	for decoder.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		event := decoder.Event()
		if len(bytes.TrimSpace(event.Data)) == 0 {
			continue
		}
		var f frame
		if err := json.Unmarshal(event.Data, &f, lenient); err != nil {
			if unknownType(event.Data) {
				continue
			}
			return wire.Unreadable("a frame of the reply", event.Data, err)
		}
		if f.Type == "" {
			f.Type = event.Type
		}
		began = true
		if err := r.frame(&f, event.Data); err != nil || r.ended {
			return err
		}
	}
	switch err := decoder.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return errFrameTooLong
	case err != nil:
		return fmt.Errorf("%w: %w", errBroken, err)
	case !began:
		return errEmpty
	}
	return errNoEnd
}

// frameTypes are those that are read.
var frameTypes = []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "error"}

// unknownType reports whether a frame is of a type that is not read, whose members may be of any kind.
func unknownType(data []byte) bool {
	var f struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(data, &f, lenient) == nil && f.Type != "" && !slices.Contains(frameTypes, f.Type)
}

// frame takes the next frame of a stream. Those of a type that is not known say nothing.
func (r *reply) frame(f *frame, data []byte) error {
	switch f.Type {
	case "message_start":
		if f.Message != nil {
			r.begin(f.Message)
		}
	case "content_block_start":
		return r.start(f.Index, f.Block)
	case "content_block_delta":
		return r.piece(f.Index, &f.Delta)
	case "content_block_stop":
		return r.finishBlock(f.Index)
	case "message_delta":
		if f.Delta.Stop != "" {
			r.stop = f.Delta.Stop
		}
		r.count(f.Usage)
	case "message_stop":
		return r.end()
	case "error":
		a, ok := readAnswer(data)
		if !ok {
			a.Message = string(data)
		}
		return &answerError{a}
	}
	return nil
}

func (r *reply) begin(m *message) {
	r.id, r.model = m.ID, m.Model
	r.count(m.Usage)
}

// count takes counts in. Later ones, which include earlier ones, win.
func (r *reply) count(u *usage) {
	if u == nil {
		return
	}
	r.counted = true
	for _, field := range [...]struct{ to, from **int }{
		{&r.usage.Input, &u.Input}, {&r.usage.Output, &u.Output}, {&r.usage.CacheWrite, &u.CacheWrite}, {&r.usage.CacheRead, &u.CacheRead}, {&r.usage.Details.Thinking, &u.Details.Thinking},
	} {
		if *field.from != nil {
			*field.to = *field.from
		}
	}
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

// start begins a block.
func (r *reply) start(index int, raw jsontext.Value) error {
	b := &openBlock{raw: raw.Clone()}
	if err := json.Unmarshal(raw, &b.block, lenient); err != nil {
		return wire.Unreadable("a block of the reply", raw, err)
	}
	r.open[index] = b
	switch b.Type {
	case "text":
		if k := b.Citations.Kind(); k == '[' && len(b.Citations) > len("[]") {
			if err := r.warn("content-left-out", "citations were left out of the reply"); err != nil {
				return err
			}
		}
		return r.text(b.Text)
	case "thinking":
		b.pieces = append(b.pieces, b.Thinking...)
		return r.thought(b.Thinking)
	case "tool_use":
		id := b.ID
		if slices.Contains(r.ids, id) && id != "" {
			if err := r.warn("call-id-repeated", fmt.Sprintf("two calls of the reply had the id %q; the later one got another", wire.Excerpt(id))); err != nil {
				return err
			}
			id = ""
		}
		r.ids = append(r.ids, id)
		if id == "" {
			id = wire.CallID("toolu_", r.position, r.calls, b.Name)
		}
		b.call = r.calls
		r.calls++
		return r.emit(llm.CallStart{Index: b.call, ID: id, Name: b.Name})
	}
	return nil
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

// piece takes a piece of a block. One of a type that is not known says nothing.
func (r *reply) piece(index int, d *delta) error {
	b := r.open[index]
	if b == nil {
		return fmt.Errorf("a piece of block %d came before the block", index)
	}
	switch d.Type {
	case "text_delta":
		return r.text(d.Text)
	case "thinking_delta":
		b.pieces = append(b.pieces, d.Thinking...)
		return r.thought(d.Thinking)
	case "signature_delta":
		b.Signature += d.Signature
	case "citations_delta":
		return r.warn("content-left-out", "citations were left out of the reply")
	case "input_json_delta":
		if d.JSON == "" {
			return nil
		}
		b.given = true
		if b.Type != "tool_use" {
			b.pieces = append(b.pieces, d.JSON...)
			return nil
		}
		return r.emit(llm.CallDelta{Index: b.call, Arguments: d.JSON})
	}
	return nil
}

// finishBlock ends a block.
func (r *reply) finishBlock(index int) error {
	b := r.open[index]
	if b == nil {
		return nil
	}
	delete(r.open, index)
	switch b.Type {
	case "text":
		return nil
	case "tool_use":
		// A stream begins with an empty input, whose pieces follow; a blocking reply has it whole.
		if b.given || len(b.Input) == 0 || b.Input.Kind() == 'n' {
			return nil
		}
		return r.emit(llm.CallDelta{Index: b.call, Arguments: string(b.Input)})
	case "thinking":
		text := string(b.pieces)
		r.thoughts = append(r.thoughts, thought{Type: b.Type, Thinking: &text, Signature: b.Signature})
	case "redacted_thinking":
		r.thoughts = append(r.thoughts, thought{Type: b.Type, Data: b.Data})
	default:
		if err := r.warn("content-opaque", fmt.Sprintf("a block of type %q is kept unread", wire.Excerpt(b.Type))); err != nil {
			return err
		}
		raw, err := b.opaque()
		if err != nil {
			return err
		}
		r.thoughts = append(r.thoughts, thought{Type: b.Type, raw: raw})
	}
	kept, err := writeThoughts(r.thoughts)
	if err != nil {
		return err
	}
	return r.emit(llm.ReasoningDelta{Extras: conversation.Extras(nil).With(Name, kept)})
}

// opaque is the block as it goes back: with its pieces in their place, and the same whether it came in pieces or not.
func (b *openBlock) opaque() (jsontext.Value, error) {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(b.raw, &members, lenient); err != nil {
		return nil, wire.Unreadable("a block of the reply", b.raw, err)
	}
	if input := jsontext.Value(b.pieces); b.given && input.IsValid() {
		members["input"] = input
	}
	for name, v := range members {
		if err := v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, err
		}
		members[name] = v
	}
	return json.Marshal(members, json.Deterministic(true), lenient)
}

// end emits the finish.
func (r *reply) end() error {
	r.ended = true
	if !r.counted {
		if err := r.warn("usage-missing", "the reply does not say how many tokens it took"); err != nil {
			return err
		}
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
	value := func(n *int) int {
		if n == nil {
			return 0
		}
		return max(*n, 0)
	}
	return conversation.Usage{
		InputTokens:      value(u.Input) + value(u.CacheRead) + value(u.CacheWrite),
		OutputTokens:     value(u.Output),
		CacheReadTokens:  value(u.CacheRead),
		CacheWriteTokens: value(u.CacheWrite),
		ReasoningTokens:  value(u.Details.Thinking),
	}
}
