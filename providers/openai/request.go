package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// builder turns a request into the SDK's, and into the patch for what the SDK's types cannot say.
type builder struct {
	*model
	strict   bool
	request  sdk.ChatCompletionRequest
	call     call
	warnings []llm.Warning
	err      error

	media     []sdk.ChatMessagePart // of the tool messages that are being read
	reasoning bool                  // reasoning was left out
}

func (m *model) build(req llm.Request) (*builder, error) {
	b := &builder{model: m, strict: req.Settings.Strict}
	b.call.blocking = req.Blocking
	b.call.patch.reasoning = m.quirks.ReasoningField
	b.messages(req)
	b.settings(req)
	return b, b.err
}

// leftOut warns of something that is not sent, or fails where the settings are strict.
func (b *builder) leftOut(code, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if b.strict && b.err == nil {
		b.err = failure.WithHint(failure.New(failure.Input, "%s:%s: %s", b.vendor, b.name, text), "leave it out, or remove capabilities: strict to have it left out with the warning %s", code)
	}
	b.warn(code, text)
}

func (b *builder) warn(code, text string) {
	w := llm.Warning{Code: code, Text: text}
	if !slices.Contains(b.warnings, w) {
		b.warnings = append(b.warnings, w)
	}
}

func (b *builder) set(name, value string) {
	b.call.patch.set = append(b.call.patch.set, member{`"` + name + `"`, value})
}

// settings sets everything but the messages. The SDK's field for the model stays empty and the numbers pass it by: it refuses settings by the model's name, on every base URL, and its numbers are 32 bits wide and lose 0.
func (b *builder) settings(req llm.Request) {
	s := req.Settings
	b.set("model", string(conversation.String(b.name)))
	if req.Blocking {
		b.set("stream", "false")
	} else if !b.quirks.NoStreamOptions {
		b.request.StreamOptions = &sdk.StreamOptions{IncludeUsage: true}
	}
	if s.MaxTokens != nil {
		b.set(b.rule.maxTokens(), strconv.Itoa(*s.MaxTokens))
	}
	b.sampling(s)
	b.cache(s)
	if s.Seed != nil {
		b.set("seed", strconv.FormatInt(*s.Seed, 10))
	}
	b.request.Stop = s.Stop
	b.request.ReasoningEffort = b.effortBy(b.rule, s.ReasoningEffort, len(req.Tools) > 0)
	if s.ResponseSchema != "" {
		b.request.ResponseFormat = &sdk.ChatCompletionResponseFormat{Type: sdk.ChatCompletionResponseFormatTypeJSONSchema, JSONSchema: &sdk.ChatCompletionResponseFormatJSONSchema{Name: "answer", Schema: json.RawMessage(s.ResponseSchema), Strict: true}}
	}
	b.offer(req.Tools, s)
	b.addExtra()
}

// cache says which requests have a common beginning. That and no more can be said of what the vendor keeps.
func (b *builder) cache(s llm.Settings) {
	if s.CacheTTL != "" || s.CacheMessages {
		b.leftOut("cache-left-out", "the vendor chooses by itself which prompts it keeps")
	}
	switch {
	case s.PromptCacheKey == "":
	case b.quirks.NoPromptCacheKey:
		b.leftOut("prompt-cache-key-left-out", "the server is not known to take prompt_cache_key")
	default:
		b.set("prompt_cache_key", string(conversation.String(s.PromptCacheKey)))
	}
}

func (b *builder) sampling(s llm.Settings) {
	for _, sampling := range [...]struct {
		name  string
		value *float64
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}} {
		switch {
		case sampling.value == nil:
		case b.rule.NoSampling:
			b.leftOut(strings.ReplaceAll(sampling.name, "_", "-")+"-left-out", "%s: the model takes no %s", b.name, sampling.name)
		default:
			b.set(sampling.name, strconv.FormatFloat(*sampling.value, 'g', -1, 64))
		}
	}
}

// addExtra sets the members that the server's quirks name.
func (b *builder) addExtra() {
	for _, extra := range b.extra {
		i := slices.IndexFunc(b.call.patch.set, func(m member) bool { return m.name == extra.name })
		if i < 0 {
			b.call.patch.set = append(b.call.patch.set, extra)
		} else {
			b.call.patch.set[i] = extra
		}
	}
}

// effortBy returns the reasoning effort to send by a rule, "" for none.
func (b *builder) effortBy(rule Rule, wanted string, tools bool) string {
	sent := rule.effort(wanted, tools)
	switch {
	case wanted == "" || sent == wanted:
	case sent == "":
		b.leftOut("reasoning-effort-left-out", "%s: the model is not known to take reasoning_effort", b.name)
	default:
		b.leftOut("reasoning-effort-changed", "%s: reasoning_effort %q is sent as %q", b.name, wanted, sent)
	}
	return sent
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
			one, err := tool.OpenAISchema(spec)
			if err != nil {
				if b.err == nil {
					b.err = failure.WithCode(fmt.Errorf("%s: %w", b.vendor, err), failure.Input)
				}
				return
			}
			text = append(text, one...)
		}
		list.json = string(append(text, ']'))
		b.tools.Store(list)
	}
	b.set("tools", list.json)
	switch s.ToolChoice {
	case "":
	case "auto", "none", "required":
		b.request.ToolChoice = s.ToolChoice
	default:
		b.request.ToolChoice = sdk.ToolChoice{Type: sdk.ToolTypeFunction, Function: sdk.ToolFunction{Name: s.ToolChoice}}
	}
	if s.ParallelToolCalls != nil {
		b.request.ParallelToolCalls = *s.ParallelToolCalls
	}
}

func (b *builder) messages(req llm.Request) {
	system := []string{req.System}
	for _, m := range req.Messages {
		if m.Role() == conversation.RoleSystem {
			system = append(system, m.Text())
		}
	}
	b.request.Messages = make([]sdk.ChatCompletionMessage, 0, len(req.Messages)+1)
	if text := join(system, "\n\n"); text != "" {
		b.request.Messages = append(b.request.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleSystem, Content: text})
	}
	for _, m := range req.Messages {
		if m.Role() != conversation.RoleTool {
			b.flushMedia()
		}
		switch m.Role() {
		case conversation.RoleUser:
			b.user(m)
		case conversation.RoleAssistant:
			b.assistant(m)
		case conversation.RoleTool:
			b.results(m)
		}
	}
	b.flushMedia()
	if b.reasoning {
		b.warn("reasoning-left-out", "reasoning of earlier replies is not sent back")
	}
}

func (b *builder) user(m conversation.Message) {
	var texts []string
	var parts []sdk.ChatMessagePart
	media := false
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			texts = append(texts, p.Text)
			if p.Text != "" {
				parts = append(parts, sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeText, Text: p.Text})
			}
		default:
			if part, ok := b.medium(p); ok {
				parts, media = append(parts, part), true
			}
		}
	}
	switch {
	case media:
		b.request.Messages = append(b.request.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser, MultiContent: parts})
	case texts != nil:
		b.request.Messages = append(b.request.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser, Content: join(texts, " ")})
	}
}

// partTypeFile marks a document on its way to the dialect, in the fields of an image: the SDK's parts have none for a file.
const partTypeFile sdk.ChatMessagePartType = "file"

// medium returns the part for an image or a document. Where it cannot be sent it warns.
func (b *builder) medium(p conversation.Content) (part sdk.ChatMessagePart, ok bool) {
	switch p := p.(type) {
	case conversation.Image:
		if b.quirks.NoImages {
			b.leftOut("image-left-out", "an image was left out: %s is not known to take images", b.vendor)
			return part, false
		}
		return sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeImageURL, ImageURL: &sdk.ChatMessageImageURL{URL: address(p.MediaType, p.Source)}}, true
	case conversation.Document:
		name := p.Name
		if name == "" {
			name = "document.pdf"
		}
		switch {
		case b.quirks.NoDocuments:
			b.leftOut("document-left-out", "document %q was left out: %s is not known to take documents", name, b.vendor)
		case p.Source.Type != conversation.SourceBase64:
			b.leftOut("document-left-out", "document %q was left out: chat completions take the bytes of a document, not its URL", name)
		default:
			return sdk.ChatMessagePart{Type: partTypeFile, ImageURL: &sdk.ChatMessageImageURL{URL: address(p.MediaType, p.Source), Detail: sdk.ImageURLDetail(name)}}, true
		}
	}
	return part, false
}

func address(mediaType string, s conversation.Source) string {
	if s.Type == conversation.SourceURL {
		return s.URL
	}
	return "data:" + mediaType + ";base64," + s.Data
}

func (b *builder) assistant(m conversation.Message) {
	out := sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleAssistant}
	var texts, thoughts []string
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			texts = append(texts, p.Text)
		case conversation.Reasoning:
			thoughts = append(thoughts, p.Text)
		case conversation.ToolCall:
			arguments := string(p.Input)
			if strings.TrimSpace(arguments) == "" {
				arguments = "{}"
			}
			out.ToolCalls = append(out.ToolCalls, sdk.ToolCall{ID: p.ID, Type: sdk.ToolTypeFunction, Function: sdk.FunctionCall{Name: p.Name, Arguments: arguments}})
		case conversation.Image:
			b.leftOut("image-left-out", "an image was left out: an assistant message takes text and calls alone")
		case conversation.Document:
			b.leftOut("document-left-out", "document %q was left out: an assistant message takes text and calls alone", p.Name)
		}
	}
	if texts == nil && out.ToolCalls == nil {
		return
	}
	out.Content = join(texts, " ")
	if b.quirks.ReasoningField != "" {
		out.ReasoningContent = join(thoughts, "\n")
	} else if thoughts != nil {
		b.reasoning = true
	}
	b.request.Messages = append(b.request.Messages, out)
}

func (b *builder) results(m conversation.Message) {
	for _, p := range m.Parts() {
		if r, ok := p.(conversation.ToolResult); ok {
			b.request.Messages = append(b.request.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleTool, Content: r.ResultText(), ToolCallID: r.ID})
			continue
		}
		if part, ok := b.medium(p); ok {
			b.media = append(b.media, part)
		}
	}
}

// flushMedia sends the media of the tool messages so far in a user message of their own. All results stand before it, as the vendor demands.
func (b *builder) flushMedia() {
	if b.media == nil {
		return
	}
	b.warn("tool-media-moved", "images or documents of a tool message are sent in a user message after it")
	b.request.Messages = append(b.request.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser, MultiContent: b.media})
	b.media = nil
}

// join joins the texts that are not empty.
func join(texts []string, separator string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), separator)
}
