package anthropic

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// MinBudget is the smallest budget for thinking that the vendor takes.
const MinBudget = 1024

// builder turns a request into the SDK's, and into the members that are added to its JSON.
type builder struct {
	*model
	strict   bool
	params   sdk.MessageNewParams
	extra    []byte // more members of the request's object, each with a comma before it
	options  []option.RequestOption
	warnings []llm.Warning
	err      error

	results   []sdk.ContentBlockParamUnion // of the tool messages that are being read
	early     []sdk.ContentBlockParamUnion // media that came before any of them
	reasoning bool                         // reasoning was left out

	body     []byte
	messages int
}

func (m *model) build(req llm.Request) (*builder, error) {
	b := &builder{model: m, strict: req.Settings.Strict}
	b.conversation(req)
	b.settings(req)
	if b.err != nil {
		return nil, b.err
	}
	encoded, err := b.params.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("%s: encoding the request: %w", Name, err)
	}
	b.body = append(append(encoded[:len(encoded)-1], b.extra...), '}')
	b.messages = len(b.params.Messages)
	return b, nil
}

// leftOut warns of something that is not sent, or fails where the settings are strict.
func (b *builder) leftOut(code, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if b.strict && b.err == nil {
		b.err = failure.WithHint(failure.New(failure.Input, "%s:%s: %s", Name, b.name, text), "leave it out, or remove capabilities: strict to have it left out with the warning %s", code)
	}
	b.warn(code, text)
}

func (b *builder) warn(code, text string) {
	w := llm.Warning{Code: code, Text: text}
	if !slices.Contains(b.warnings, w) {
		b.warnings = append(b.warnings, w)
	}
}

// add adds a member to the request's object.
func (b *builder) add(name, value string) {
	b.extra = append(b.extra, `,"`+name+`":`+value...)
}

func (b *builder) settings(req llm.Request) {
	s := req.Settings
	b.params.Model = b.name
	b.params.StopSequences = s.Stop
	if !req.Blocking {
		b.add("stream", "true")
	}
	for _, sampling := range [...]struct {
		name  string
		value *float64
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}} {
		code := strings.ReplaceAll(sampling.name, "_", "-") + "-left-out"
		switch {
		case sampling.value == nil:
		case !b.sampling:
			b.leftOut(code, "version %s of the API takes no %s", VersionLatest, sampling.name)
		case !b.rule.Sampling:
			b.leftOut(code, "%s: the model takes no %s", b.name, sampling.name)
		default:
			b.add(sampling.name, strconv.FormatFloat(*sampling.value, 'g', -1, 64))
		}
	}
	if s.Seed != nil {
		b.leftOut("seed-left-out", "the vendor takes no seed")
	}
	b.thinking(s)
	b.cache(s)
	if s.ResponseSchema != "" {
		b.params.OutputConfig.Format = param.Override[sdk.JSONOutputFormatParam](json.RawMessage(`{"type":"json_schema","schema":` + string(s.ResponseSchema) + `}`))
	}
	b.offer(req.Tools, s)
}

// cache marks up to where the vendor is to keep the prompt: the instructions, which the tools stand before, and the last block of the conversation. A request has no more than these two marks, of the four that may be.
func (b *builder) cache(s llm.Settings) {
	if s.PromptCacheKey != "" {
		b.leftOut("prompt-cache-key-left-out", "the vendor groups no requests by a key")
	}
	mark := sdk.NewCacheControlEphemeralParam()
	mark.TTL = sdk.CacheControlEphemeralTTL(s.CacheTTL)
	if s.CacheTTL == longTTL && b.sampling {
		b.options = append(b.options, option.WithHeader("Anthropic-Beta", longBeta))
	}
	if n := len(b.params.System); n > 0 && s.CacheTTL != "" {
		b.params.System[n-1].CacheControl = mark
	}
	if n := len(b.params.Messages); n > 0 && s.CacheMessages {
		var blocks []sdk.ContentBlockParamUnion
		switch m := b.params.Messages[n-1]; {
		case m.OfUser != nil:
			blocks = m.OfUser.Content
		case m.OfAssistant != nil:
			blocks = m.OfAssistant.Content
		}
		for i := len(blocks) - 1; i >= 0; i-- {
			// Thoughts and blocks that are kept unread take no mark.
			if at := blocks[i].GetCacheControl(); at != nil {
				*at = mark
				return
			}
		}
	}
}

// What asks for more than five minutes, and what the earlier version of the API wants to hear then.
const (
	longTTL  = "1h"
	longBeta = "extended-cache-ttl-2025-04-11"
)

// thinking sets how the model thinks, and with it the limit of the output.
func (b *builder) thinking(s llm.Settings) {
	limit, budget := DefaultMaxTokens, 0
	wanted := cmp.Or(s.Thinking.Effort, s.ReasoningEffort)
	switch {
	case wanted == "":
	case !slices.Contains(Efforts, wanted):
		b.leftOut("reasoning-effort-left-out", "the vendor knows no effort %q", wanted)
	case !b.rule.Effort:
		b.leftOut("reasoning-effort-left-out", "%s: the model is not known to take an effort", b.name)
	default:
		b.params.OutputConfig.Effort = sdk.OutputConfigEffort(wanted)
	}
	adaptive := sdk.ThinkingConfigParamUnion{OfAdaptive: &sdk.ThinkingConfigAdaptiveParam{}}
	tokens := 0
	if s.Thinking.BudgetTokens != nil {
		tokens = *s.Thinking.BudgetTokens
	}
	switch {
	case s.Thinking.BudgetTokens == nil:
		if b.params.OutputConfig.Effort != "" && b.rule.Adaptive {
			b.params.Thinking = adaptive
		}
	case tokens < MinBudget:
		b.err = cmp.Or(b.err, error(failure.WithHint(failure.New(failure.Input, "%s:%s: a budget of %d tokens for thinking is too small", Name, b.name, tokens), "give it %d or more", MinBudget)))
	case b.rule.Budget:
		b.params.Thinking = sdk.ThinkingConfigParamOfEnabled(int64(tokens))
		budget = tokens
	case b.rule.Adaptive:
		b.leftOut("thinking-budget-left-out", "%s: the model takes no budget for thinking and chooses by itself", b.name)
		b.params.Thinking = adaptive
	default:
		b.leftOut("thinking-left-out", "%s: the model does not think", b.name)
	}
	if s.MaxTokens != nil {
		limit = *s.MaxTokens
		if budget >= limit {
			b.err = cmp.Or(b.err, error(failure.WithHint(failure.New(failure.Input, "%s:%s: the budget of %d tokens for thinking leaves nothing of max_tokens %d", Name, b.name, budget, limit), "max_tokens counts thinking too: raise it above the budget")))
		}
	} else {
		limit += budget
	}
	b.params.MaxTokens = int64(limit)
}

// toolList is a list of tools and its JSON.
type toolList struct {
	specs []tool.Spec
	json  string
}

// offer sends the tools. What is said about tools is refused by the vendor where there are none.
func (b *builder) offer(specs []tool.Spec, s llm.Settings) {
	if len(specs) == 0 {
		return
	}
	list := b.tools.Load()
	if list == nil || !slices.Equal(list.specs, specs) {
		list = &toolList{specs: slices.Clone(specs)}
		text := []byte{'['}
		for i, spec := range specs {
			if i > 0 {
				text = append(text, ',')
			}
			one, err := tool.AnthropicSchema(spec)
			if err != nil {
				b.err = cmp.Or(b.err, failure.WithCode(fmt.Errorf("%s: %w", Name, err), failure.Input))
				return
			}
			text = append(text, one...)
		}
		list.json = string(append(text, ']'))
		b.tools.Store(list)
	}
	b.add("tools", list.json)
	single := param.Opt[bool]{}
	if s.ParallelToolCalls != nil && !*s.ParallelToolCalls {
		single = param.NewOpt(true)
	}
	choice := &b.params.ToolChoice
	switch s.ToolChoice {
	case "":
		if single.Valid() {
			choice.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: single}
		}
	case "auto":
		choice.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: single}
	case "none":
		choice.OfNone = &sdk.ToolChoiceNoneParam{}
	case "required":
		choice.OfAny = &sdk.ToolChoiceAnyParam{DisableParallelToolUse: single}
	default:
		choice.OfTool = &sdk.ToolChoiceToolParam{Name: s.ToolChoice, DisableParallelToolUse: single}
	}
}

func (b *builder) conversation(req llm.Request) {
	var system []string
	if req.System != "" {
		system = append(system, req.System)
	}
	for _, m := range req.Messages {
		if text := m.Text(); m.Role() == conversation.RoleSystem && text != "" {
			system = append(system, text)
		}
	}
	if len(system) > 0 {
		b.params.System = []sdk.TextBlockParam{{Text: strings.Join(system, "\n\n")}}
	}
	b.params.Messages = make([]sdk.MessageParam, 0, len(req.Messages))
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			b.flushResults()
			if blocks := b.user(m); len(blocks) > 0 {
				b.params.Messages = append(b.params.Messages, sdk.NewUserMessage(blocks...))
			}
		case conversation.RoleAssistant:
			b.flushResults()
			if blocks := b.assistant(m); len(blocks) > 0 {
				b.params.Messages = append(b.params.Messages, sdk.NewAssistantMessage(blocks...))
			}
		case conversation.RoleTool:
			b.toolMessage(m)
		}
	}
	b.flushResults()
	if b.reasoning {
		b.warn("reasoning-left-out", "reasoning of earlier replies that is not this vendor's is not sent back")
	}
}

// text adds a text, unless the vendor would refuse it for having nothing to see.
func (b *builder) text(blocks []sdk.ContentBlockParamUnion, text string) []sdk.ContentBlockParamUnion {
	if strings.TrimSpace(text) == "" {
		if text != "" {
			b.warn("blank-text-left-out", "a text of white space alone is not sent")
		}
		return blocks
	}
	return append(blocks, sdk.NewTextBlock(text))
}

func (b *builder) user(m conversation.Message) (blocks []sdk.ContentBlockParamUnion) {
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			blocks = b.text(blocks, p.Text)
		case conversation.Image:
			blocks = append(blocks, sdk.ContentBlockParamUnion{OfImage: image(p)})
		case conversation.Document:
			blocks = append(blocks, sdk.ContentBlockParamUnion{OfDocument: document(p)})
		}
	}
	return blocks
}

func image(p conversation.Image) *sdk.ImageBlockParam {
	if p.Source.Type == conversation.SourceURL {
		return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfURL: &sdk.URLImageSourceParam{URL: p.Source.URL}}}
	}
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{Data: p.Source.Data, MediaType: sdk.Base64ImageSourceMediaType(p.MediaType)}}}
}

func document(p conversation.Document) *sdk.DocumentBlockParam {
	out := &sdk.DocumentBlockParam{}
	if p.Name != "" {
		out.Title = param.NewOpt(p.Name)
	}
	if p.Source.Type == conversation.SourceURL {
		out.Source.OfURL = &sdk.URLPDFSourceParam{URL: p.Source.URL}
	} else {
		out.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: p.Source.Data}
	}
	return out
}

func (b *builder) assistant(m conversation.Message) (blocks []sdk.ContentBlockParamUnion) {
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			blocks = b.text(blocks, p.Text)
		case conversation.Reasoning:
			blocks = b.thought(blocks, p)
		case conversation.ToolCall:
			blocks = append(blocks, sdk.NewToolUseBlock(callID(p.ID), b.arguments(p), p.Name))
		case conversation.Image:
			b.leftOut("image-left-out", "an image was left out: an assistant message takes none")
		case conversation.Document:
			if b.sampling {
				blocks = append(blocks, sdk.ContentBlockParamUnion{OfDocument: document(p)})
			} else {
				b.leftOut("document-left-out", "document %q was left out: an assistant message takes none", p.Name)
			}
		}
	}
	return blocks
}

// thought sends reasoning back as it came.
func (b *builder) thought(blocks []sdk.ContentBlockParamUnion, p conversation.Reasoning) []sdk.ContentBlockParamUnion {
	kept, err := readThoughts(p.Extras.Get(Name))
	if err != nil || len(kept) == 0 {
		b.reasoning = true
		return blocks
	}
	for _, t := range kept {
		switch t.Type {
		case "thinking":
			text := p.Text
			if t.Thinking != nil {
				text = *t.Thinking
			}
			blocks = append(blocks, sdk.NewThinkingBlock(t.Signature, text))
		case "redacted_thinking":
			blocks = append(blocks, sdk.NewRedactedThinkingBlock(t.Data))
		default:
			blocks = append(blocks, param.Override[sdk.ContentBlockParamUnion](json.RawMessage(t.raw)))
		}
	}
	return blocks
}

// arguments are the JSON object of a call. Text that is none is wrapped as the vendor's documentation of streamed arguments advises.
func (b *builder) arguments(c conversation.ToolCall) json.RawMessage {
	arguments, err := c.Arguments()
	if err != nil {
		b.warn("arguments-wrapped", "arguments of a call that are no JSON object are sent within one")
		return json.RawMessage(`{"INVALID_JSON":` + string(conversation.String(string(c.Input))) + `}`)
	}
	return json.RawMessage(arguments)
}

// callID is the id of a call as the vendor takes it: letters, digits, _ and -. Ids of other vendors may hold more; those get a hash, so that no two become one.
func callID(id string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if plain == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return plain + "_" + hex.EncodeToString(sum[:6])
}

func (b *builder) toolMessage(m conversation.Message) {
	for _, p := range m.Parts() {
		var medium sdk.ToolResultBlockParamContentUnion
		switch p := p.(type) {
		case conversation.ToolResult:
			result := &sdk.ToolResultBlockParam{ToolUseID: callID(p.ID)}
			if p.IsError {
				result.IsError = param.NewOpt(true)
			}
			if text := p.ResultText(); strings.TrimSpace(text) != "" {
				result.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
			}
			b.results = append(b.results, sdk.ContentBlockParamUnion{OfToolResult: result})
			continue
		case conversation.Image:
			medium.OfImage = image(p)
		case conversation.Document:
			medium.OfDocument = document(p)
		default:
			continue
		}
		if n := len(b.results); n > 0 {
			result := b.results[n-1].OfToolResult
			result.Content = append(result.Content, medium)
			continue
		}
		b.warn("tool-media-moved", "images or documents that a tool message holds before any result are sent after the results")
		b.early = append(b.early, sdk.ContentBlockParamUnion{OfImage: medium.OfImage, OfDocument: medium.OfDocument})
	}
}

// flushResults sends the results of the tool messages so far in one user message, as the vendor demands.
func (b *builder) flushResults() {
	if blocks := append(b.results, b.early...); len(blocks) > 0 {
		b.params.Messages = append(b.params.Messages, sdk.NewUserMessage(blocks...))
	}
	b.results, b.early = nil, nil
}
