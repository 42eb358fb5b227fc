package gemini

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/wire"
)

// lenient takes what servers send although RFC 8259 advises against it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// The frame of a reply, of a whole one as well as of a piece.
type (
	frame struct {
		Candidates     []candidate     `json:"candidates"`
		PromptFeedback *promptFeedback `json:"promptFeedback"`
		Usage          *usage          `json:"usageMetadata"`
		Model          string          `json:"modelVersion"`
		ID             string          `json:"responseId"`
		Error          *answer         `json:"error"`
	}
	candidate struct {
		Index   int `json:"index"`
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		Finish finishReason `json:"finishReason"`
	}
	part struct {
		Text         *string        `json:"text"`
		Thought      bool           `json:"thought"`
		Signature    string         `json:"thoughtSignature"`
		FunctionCall *functionCall  `json:"functionCall"`
		InlineData   *inlineData    `json:"inlineData"`
		Others       jsontext.Value `json:",embed"`
	}
	functionCall struct {
		ID   string         `json:"id"`
		Name string         `json:"name"`
		Args jsontext.Value `json:"args"`
	}
	inlineData struct {
		MediaType string `json:"mimeType"`
		Data      string `json:"data"`
	}
	promptFeedback struct {
		BlockReason finishReason `json:"blockReason"`
	}
	usage struct {
		Prompt     int `json:"promptTokenCount"`
		ToolPrompt int `json:"toolUsePromptTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
	}
)

// finishReason is the vendor's word. Who asks for $alt=json;enum-encoding=int gets its number.
type finishReason string

// finishNumbers are the words by their numbers.
var finishNumbers = [...]genai.FinishReason{
	genai.FinishReasonUnspecified, genai.FinishReasonStop, genai.FinishReasonMaxTokens, genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonOther,
	genai.FinishReasonLanguage, genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonMalformedFunctionCall,
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (r *finishReason) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		*r = finishReason(b)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	case '0':
		*r = finishReason(genai.FinishReasonOther)
		for n, word := range finishNumbers {
			if string(v) == fmt.Sprint(n) {
				*r = finishReason(word)
			}
		}
	}
	if *r == finishReason(genai.FinishReasonUnspecified) || *r == finishReason(genai.BlockedReasonUnspecified) {
		*r = ""
	}
	return nil
}

// errStopped says that the caller has broken off.
var errStopped = errors.New("stopped")

var (
	errNoCandidate = wire.Cut("the reply holds no answer")
	errNoFinish    = wire.Cut("the reply ended without a finish reason")
)

// reply turns frames into events.
type reply struct {
	yield    func(llm.Event, error) bool
	position int // of the reply in the conversation: how many contents the request had

	id, model string
	seen      bool // there was a candidate
	stop      finishReason
	blocked   finishReason // why the prompt was
	usage     *usage
	ids       []string // of the calls
	warned    []string
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
		return wire.Unreadable("a frame of the reply", data, err)
	}
	if f.Error != nil {
		return &answerError{*f.Error}
	}
	if f.ID != "" && r.id == "" {
		r.id = f.ID
	}
	if f.Model != "" {
		r.model = f.Model
	}
	if f.Usage != nil {
		r.usage = f.Usage
	}
	if f.PromptFeedback != nil && f.PromptFeedback.BlockReason != "" {
		r.blocked = f.PromptFeedback.BlockReason
	}
	for i := range f.Candidates {
		c := &f.Candidates[i]
		if c.Index != 0 {
			continue
		}
		r.seen = true
		for j := range c.Content.Parts {
			if err := r.part(&c.Content.Parts[j]); err != nil {
				return err
			}
		}
		if c.Finish != "" {
			r.stop = c.Finish
		}
	}
	return nil
}

// part takes a whole part, or a piece of a text.
func (r *reply) part(p *part) error {
	extras := signed(p.Signature)
	switch {
	case p.FunctionCall != nil:
		return r.call(p.FunctionCall, extras)
	case p.InlineData != nil:
		return r.image(p.InlineData)
	case p.Text == nil && len(p.Others) > len("{}"):
		return r.opaque(p)
	}
	text := ""
	if p.Text != nil {
		text = strings.ToValidUTF8(*p.Text, "\ufffd")
	}
	switch {
	case text == "" && extras == nil:
		return nil
	case p.Thought:
		return r.emit(llm.ReasoningDelta{Text: text, Extras: extras})
	}
	return r.emit(llm.TextDelta{Text: text, Extras: extras})
}

// opaque keeps a part of a kind that is not known as it came, for the next request.
func (r *reply) opaque(p *part) error {
	raw, err := json.Marshal(wirePart{Thought: p.Thought, Signature: p.Signature, Others: p.Others}, lenient)
	if kept := jsontext.Value(raw); err != nil || !kept.IsValid() {
		return r.warn("content-left-out", fmt.Sprintf("a part with %s was left out of the reply: it is no JSON that can be kept", kinds(p.Others)))
	}
	if err := r.warn("content-opaque", fmt.Sprintf("a part with %s is kept unread", kinds(p.Others))); err != nil {
		return err
	}
	return r.emit(llm.Part{Content: conversation.Reasoning{Extras: conversation.Extras(nil).With(Name, conversation.JSON("["+string(raw)+"]"))}})
}

// signed keeps a signature, nil for none.
func signed(signature string) conversation.Extras {
	if signature == "" {
		return nil
	}
	return conversation.Extras(nil).With(Name, conversation.String(signature))
}

// kinds names the members of a part that is not known.
func kinds(others jsontext.Value) string {
	var members map[string]jsontext.Value
	if json.Unmarshal(others, &members, lenient) != nil {
		return "unknown content"
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return excerpt(strings.Join(names, ", "))
}

func (r *reply) image(d *inlineData) error {
	image := conversation.Image{MediaType: d.MediaType, Source: conversation.Source{Type: conversation.SourceBase64, Data: d.Data}}
	if conversation.Assistant("", image).Validate() != nil {
		return r.warn("content-left-out", fmt.Sprintf("data of type %q was left out of the reply", excerpt(d.MediaType)))
	}
	return r.emit(llm.Part{Content: image})
}

func (r *reply) call(c *functionCall, extras conversation.Extras) error {
	index, id := len(r.ids), c.ID
	if id == "" || slices.Contains(r.ids, id) {
		if id != "" {
			if err := r.warn("call-id-repeated", fmt.Sprintf("two calls of the reply had the id %q; the later one got another", excerpt(id))); err != nil {
				return err
			}
		}
		id = wire.CallID("call_", r.position, index, c.Name)
	}
	r.ids = append(r.ids, id)
	if err := r.emit(llm.CallStart{Index: index, ID: id, Name: c.Name, Extras: extras}); err != nil {
		return err
	}
	arguments := string(c.Args)
	if k := c.Args.Kind(); k == 0 || k == 'n' {
		arguments = "{}"
	} else if c.Args.Compact(lenient, jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) == nil {
		arguments = string(c.Args)
	}
	return r.emit(llm.CallDelta{Index: index, Arguments: strings.ToValidUTF8(arguments, "\ufffd")})
}

// ended reports whether the reply has said that it is whole.
func (r *reply) ended() bool { return r.stop != "" || r.blocked != "" }

// end emits the finish.
func (r *reply) end() error {
	switch {
	case r.ended():
	case !r.seen:
		return errNoCandidate
	default:
		return errNoFinish
	}
	if r.blocked != "" {
		if err := r.warn("prompt-blocked", fmt.Sprintf("the vendor blocked the prompt: %s", excerpt(string(r.blocked)))); err != nil {
			return err
		}
	}
	finish := llm.Finish{Stop: r.reason(), Model: r.model, ID: r.id}
	if r.usage != nil {
		finish.Usage = r.usage.counts()
	} else if err := r.warn("usage-missing", "the reply does not say how many tokens it took"); err != nil {
		return err
	}
	return r.emit(finish)
}

// stops maps the vendor's words.
var stops = map[genai.FinishReason]llm.StopReason{
	genai.FinishReasonStop:                   llm.StopEnd,
	genai.FinishReasonMaxTokens:              llm.StopLength,
	genai.FinishReasonSafety:                 llm.StopRefused,
	genai.FinishReasonRecitation:             llm.StopRefused,
	genai.FinishReasonLanguage:               llm.StopRefused,
	genai.FinishReasonBlocklist:              llm.StopRefused,
	genai.FinishReasonProhibitedContent:      llm.StopRefused,
	genai.FinishReasonSPII:                   llm.StopRefused,
	genai.FinishReasonImageSafety:            llm.StopRefused,
	genai.FinishReasonImageProhibitedContent: llm.StopRefused,
	genai.FinishReasonImageRecitation:        llm.StopRefused,
}

func (r *reply) reason() llm.StopReason {
	stop, ok := stops[genai.FinishReason(r.stop)]
	switch {
	case r.blocked != "":
		return llm.StopRefused
	case !ok:
		return llm.StopOther
	case stop == llm.StopEnd && len(r.ids) > 0:
		return llm.StopToolCalls
	}
	return stop
}

// counts brings the vendor's counts to ours: input with what was cached and what the vendor's own tools gave, output with the thoughts.
func (u *usage) counts() conversation.Usage {
	return conversation.Usage{
		InputTokens:     u.Prompt + u.ToolPrompt,
		OutputTokens:    u.Candidates + u.Thoughts,
		CacheReadTokens: u.Cached,
		ReasoningTokens: u.Thoughts,
	}
}
