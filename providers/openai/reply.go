package openai

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/wire"
)

// lenient takes what servers send although RFC 8259 advises against it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// The frame of a reply. A stream has deltas, a blocking reply messages. The SDK's types for it refuse a content that is a list and lose reasoning, written cache tokens and errors, so that a frame is decoded into these, once.
type (
	frame struct {
		ID      string         `json:"id"`
		Model   string         `json:"model"`
		Object  string         `json:"object"`
		Choices []choice       `json:"choices"`
		Usage   *usage         `json:"usage"`
		Error   jsontext.Value `json:"error"`
	}
	choice struct {
		Index   int            `json:"index"`
		Delta   *message       `json:"delta"`
		Message *message       `json:"message"`
		Finish  string         `json:"finish_reason"`
		Error   jsontext.Value `json:"error"` // OpenRouter, beside a finish_reason error
	}
	message struct {
		Content          content        `json:"content"`
		Refusal          string         `json:"refusal"`
		Reasoning        content        `json:"reasoning"`         // OpenRouter, Groq, Ollama, newer vLLM
		ReasoningContent content        `json:"reasoning_content"` // DeepSeek and its followers
		ToolCalls        []toolCall     `json:"tool_calls"`
		Images           []content      `json:"images"` // OpenRouter
		FunctionCall     jsontext.Value `json:"function_call"`
	}
	toolCall struct {
		Index    *int     `json:"index"`
		ID       string   `json:"id"`
		Function function `json:"function"`
	}
	function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	}
	usage struct {
		Prompt        int `json:"prompt_tokens"`
		Completion    int `json:"completion_tokens"`
		Total         int `json:"total_tokens"`
		PromptDetails struct {
			Cached     int `json:"cached_tokens"`
			CacheWrite int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheHit      int `json:"prompt_cache_hit_tokens"`     // DeepSeek
		CacheCreation int `json:"cache_creation_input_tokens"` // gateways to Anthropic
	}
)

// arguments are a string of JSON, or with some servers the JSON itself.
type arguments string

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (a *arguments) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*a = arguments(plain(v))
	return nil
}

// content is a text, or a list of typed parts.
type content struct {
	text  string // the whole of it, where parts is nil
	parts []part
}

type part struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	Refusal  string         `json:"refusal"`
	Thinking content        `json:"thinking"` // Mistral
	ImageURL jsontext.Value `json:"image_url"`
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (c *content) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case '[':
		return json.UnmarshalDecode(d, &c.parts)
	case '{':
		var p part
		err := json.UnmarshalDecode(d, &p)
		c.parts = []part{p}
		return err
	case '"':
		return json.UnmarshalDecode(d, &c.text)
	}
	return d.SkipValue() // null; a number or boolean says nothing
}

// plain joins all texts of the content.
func (c content) plain() string {
	text := c.text
	for _, p := range c.parts {
		text += p.Text + p.Thinking.plain()
	}
	return text
}

// errStopped says that the caller has broken off.
var errStopped = errors.New("stopped")

var errNoChoice error = wire.Cut("the reply holds no answer")

// reply turns frames into events.
type reply struct {
	yield     func(llm.Event, error) bool
	position  int // of the reply in the conversation: how many messages the request had
	wantUsage bool

	id, model string
	seen      bool // there was a choice
	stop      string
	refused   bool
	usage     *usage
	calls     []startedCall
	warned    []string
}

// startedCall is a call whose pieces are arriving.
type startedCall struct {
	index   int // the server's, -1 for none
	id      string
	started bool
	// waiting are arguments that came before the name.
	waiting string
}

func (r *reply) emit(e llm.Event) error {
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

// add takes the next frame.
func (r *reply) add(data []byte) error {
	var f frame
	if err := json.Unmarshal(data, &f, lenient); err != nil {
		// A text that is no chat frame may still be an error that says why.
		if a, ok := readAnswer(data); ok {
			return &answerError{a}
		}
		return wire.Unreadable("a frame of the reply", data, err)
	}
	if k := f.Error.Kind(); k != 0 && k != 'n' {
		return asError(f.Error)
	}
	if f.Choices == nil && f.Usage == nil && f.Object == "error" {
		return asError(data)
	}
	if r.id == "" {
		r.id = f.ID
	}
	if f.Model != "" {
		r.model = f.Model
	}
	if f.Usage != nil {
		r.usage = f.Usage
	}
	for i := range f.Choices {
		if c := &f.Choices[i]; c.Index == 0 {
			if err := r.choice(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func asError(data []byte) error {
	a, ok := readAnswer(data)
	if !ok {
		a.Message = string(data)
	}
	return &answerError{a}
}

func (r *reply) choice(c *choice) error {
	r.seen = true
	if k := c.Error.Kind(); k != 0 && k != 'n' {
		return asError(c.Error)
	}
	for _, m := range [...]*message{c.Delta, c.Message} {
		if m == nil {
			continue
		}
		if err := r.message(m, m == c.Message); err != nil {
			return err
		}
	}
	if c.Finish != "" {
		r.stop = c.Finish
	}
	return nil
}

// message takes a whole message or a piece of one.
func (r *reply) message(m *message, whole bool) error {
	thought := m.Reasoning.plain()
	if thought == "" { // servers that send both send the same twice
		thought = m.ReasoningContent.plain()
	}
	if err := r.thought(thought); err != nil {
		return err
	}
	if err := r.content(m.Content); err != nil {
		return err
	}
	if err := r.refusal(m.Refusal); err != nil {
		return err
	}
	for _, image := range m.Images {
		if err := r.content(image); err != nil {
			return err
		}
	}
	for i := range m.ToolCalls {
		if err := r.call(&m.ToolCalls[i], whole); err != nil {
			return err
		}
	}
	if m.FunctionCall.Kind() == '{' {
		return r.warn("content-left-out", "the reply used the deprecated function_call, which was left out")
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

func (r *reply) refusal(s string) error {
	if s != "" {
		r.refused = true
	}
	return r.text(s)
}

func (r *reply) content(c content) error {
	if err := r.text(c.text); err != nil {
		return err
	}
	for _, p := range c.parts {
		var err error
		switch p.Type {
		case "text", "output_text":
			err = r.text(p.Text)
		case "thinking", "reasoning":
			err = r.thought(p.Text + p.Thinking.plain())
		case "refusal":
			err = r.refusal(p.Refusal)
		case "image_url":
			err = r.image(p)
		default:
			err = r.warn("content-left-out", fmt.Sprintf("a part of type %q was left out of the reply", wire.Excerpt(p.Type)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reply) image(p part) error {
	var ref struct {
		URL string `json:"url"`
	}
	if p.ImageURL.Kind() == '"' {
		ref.URL = plain(p.ImageURL)
	} else if json.Unmarshal(p.ImageURL, &ref, lenient) != nil {
		ref.URL = ""
	}
	image := conversation.Image{Source: conversation.Source{Type: conversation.SourceURL, URL: ref.URL}}
	if head, data, ok := strings.Cut(ref.URL, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		image.MediaType = strings.TrimPrefix(head, "data:")
		image.Source = conversation.Source{Type: conversation.SourceBase64, Data: data}
	}
	if conversation.Assistant("", image).Validate() != nil {
		return r.warn("content-left-out", "an image was left out of the reply: its type is not known")
	}
	return r.emit(llm.Part{Content: image})
}

// call takes a whole tool call or a piece of one.
func (r *reply) call(piece *toolCall, whole bool) error {
	i := r.find(piece, whole)
	c := &r.calls[i]
	if c.id == "" {
		c.id = piece.ID
	}
	if !c.started && piece.Function.Name != "" {
		if err := r.start(i, piece.Function.Name); err != nil {
			return err
		}
	}
	text := string(piece.Function.Arguments)
	switch {
	case text == "":
		return nil
	case !c.started:
		c.waiting += text
		return nil
	}
	return r.emit(llm.CallDelta{Index: i, Arguments: text})
}

// find returns the place of the call that a piece belongs to. The server's index tells, but some send none, and some send several calls with the same index and different ids.
func (r *reply) find(piece *toolCall, whole bool) int {
	last := len(r.calls) - 1
	index := -1
	if piece.Index != nil {
		index = *piece.Index
		for last >= 0 && r.calls[last].index != index {
			last--
		}
	}
	another := whole
	if last >= 0 && piece.Function.Name != "" && r.calls[last].started {
		another = another || piece.ID != "" && piece.ID != r.calls[last].id || piece.ID == "" && piece.Index == nil
	}
	if last < 0 || another {
		r.calls = append(r.calls, startedCall{index: index})
		return len(r.calls) - 1
	}
	return last
}

func (r *reply) start(i int, name string) error {
	c := &r.calls[i]
	c.started = true
	id := c.id
	if id == "" || r.taken(i, id) {
		if id != "" {
			if err := r.warn("call-id-repeated", fmt.Sprintf("two calls of the reply had the id %q; the later one got another", wire.Excerpt(id))); err != nil {
				return err
			}
		}
		id = wire.CallID("call_", r.position, i, name)
	}
	if err := r.emit(llm.CallStart{Index: i, ID: id, Name: name}); err != nil || c.waiting == "" {
		return err
	}
	return r.emit(llm.CallDelta{Index: i, Arguments: c.waiting})
}

// taken reports whether a call before the ith has an id.
func (r *reply) taken(i int, id string) bool {
	return slices.ContainsFunc(r.calls[:i], func(c startedCall) bool { return c.id == id })
}

// end emits what is left, and the finish.
func (r *reply) end() error {
	if !r.seen {
		return errNoChoice
	}
	for i := range r.calls {
		if !r.calls[i].started {
			if err := r.start(i, ""); err != nil {
				return err
			}
		}
	}
	finish := llm.Finish{Stop: r.reason(), Model: r.model, ID: r.id}
	if r.usage != nil {
		finish.Usage = r.usage.counts()
	} else if r.wantUsage {
		if err := r.warn("usage-missing", "the reply does not say how many tokens it took"); err != nil {
			return err
		}
	}
	return r.emit(finish)
}

// stops maps the vendors' words. The SDK knows those of OpenAI; the others are Mistral's, and those of text-generation-inference.
var stops = map[string]llm.StopReason{
	string(sdk.FinishReasonStop):          llm.StopEnd,
	string(sdk.FinishReasonLength):        llm.StopLength,
	string(sdk.FinishReasonToolCalls):     llm.StopToolCalls,
	string(sdk.FinishReasonFunctionCall):  llm.StopToolCalls,
	string(sdk.FinishReasonContentFilter): llm.StopRefused,
	"model_length":                        llm.StopLength,
	"eos_token":                           llm.StopEnd,
	"stop_sequence":                       llm.StopEnd,
}

func (r *reply) reason() llm.StopReason {
	stop, ok := stops[r.stop]
	switch {
	case r.refused:
		return llm.StopRefused
	case !ok:
		return llm.StopOther
	case stop == llm.StopEnd && len(r.calls) > 0:
		return llm.StopToolCalls
	}
	return stop
}

// counts brings the vendors' counts to ours: input with what was cached, output with reasoning. xAI alone counts reasoning beside the output; its total tells.
func (u *usage) counts() conversation.Usage {
	out := conversation.Usage{
		InputTokens:      u.Prompt,
		OutputTokens:     u.Completion,
		CacheReadTokens:  max(u.PromptDetails.Cached, u.CacheHit),
		CacheWriteTokens: max(u.PromptDetails.CacheWrite, u.CacheCreation),
		ReasoningTokens:  u.CompletionDetails.Reasoning,
	}
	if out.ReasoningTokens > 0 && u.Total == u.Prompt+u.Completion+out.ReasoningTokens {
		out.OutputTokens += out.ReasoningTokens
	}
	return out
}
