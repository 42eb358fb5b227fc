package gemini

import (
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// The body of a request, as far as it is said here.
type (
	wireContent struct {
		Role  string     `json:"role,omitzero"`
		Parts []wirePart `json:"parts"`
	}
	wirePart struct {
		Text             *string       `json:"text,omitzero"`
		Thought          bool          `json:"thought,omitzero"`
		InlineData       *inlineData   `json:"inlineData,omitzero"`
		FileData         *wireFile     `json:"fileData,omitzero"`
		FunctionCall     *functionCall `json:"functionCall,omitzero"`
		FunctionResponse *wireResponse `json:"functionResponse,omitzero"`
		Signature        string        `json:"thoughtSignature,omitzero"`
		// Others are the members of a part that was kept unread.
		Others jsontext.Value `json:",embed"`
	}
	wireFile struct {
		MediaType string `json:"mimeType"`
		URI       string `json:"fileUri"`
	}
	wireResponse struct {
		ID       string     `json:"id,omitzero"`
		Name     string     `json:"name"`
		Response wireResult `json:"response"`
	}
	wireResult struct {
		Result *string `json:"result,omitzero"`
		Error  *string `json:"error,omitzero"`
	}
	wireConfig struct {
		MaxOutputTokens    *int           `json:"maxOutputTokens,omitzero"`
		Temperature        *float64       `json:"temperature,omitzero"`
		TopP               *float64       `json:"topP,omitzero"`
		Seed               *int64         `json:"seed,omitzero"`
		StopSequences      []string       `json:"stopSequences,omitzero"`
		ResponseMediaType  string         `json:"responseMimeType,omitzero"`
		ResponseJSONSchema jsontext.Value `json:"responseJsonSchema,omitzero"`
		Thinking           *wireThinking  `json:"thinkingConfig,omitzero"`
	}
	wireThinking struct {
		IncludeThoughts bool   `json:"includeThoughts,omitzero"`
		Budget          *int   `json:"thinkingBudget,omitzero"`
		Level           string `json:"thinkingLevel,omitzero"`
	}
	wireToolConfig struct {
		FunctionCalling wireCalling `json:"functionCallingConfig"`
	}
	wireCalling struct {
		Mode    string   `json:"mode"`
		Allowed []string `json:"allowedFunctionNames,omitzero"`
	}
)

const (
	roleUser  = "user"
	roleModel = "model"
)

// unsigned stands in the place of a signature that a model insists on and nobody has, as for a call of another vendor's model. The vendor documents it.
const unsigned = "skip_thought_signature_validator"

// builder turns a request into the vendor's.
type builder struct {
	*model
	strict     bool
	system     string
	contents   []wireContent
	config     wireConfig
	tools      jsontext.Value
	toolConfig *wireToolConfig
	warnings   []llm.Warning
	err        error

	names     map[string]string // tools by the ids of the calls so far
	results   []wirePart        // of the tool messages that are being read
	media     []wirePart        // of the same
	reasoning bool              // reasoning was left out
}

func (m *model) build(req llm.Request) (*builder, error) {
	b := &builder{model: m, strict: req.Settings.Strict, names: map[string]string{}}
	b.messages(req)
	b.settings(req)
	return b, b.err
}

// body is the request as the SDK takes it.
func (b *builder) body() map[string]any {
	body := map[string]any{"contents": b.raw(b.contents)}
	if b.system != "" {
		body["systemInstruction"] = b.raw(wireContent{Parts: []wirePart{{Text: &b.system}}})
	}
	if config := b.raw(b.config); string(config) != "{}" {
		body["generationConfig"] = config
	}
	if b.tools != nil {
		body["tools"] = stdjson.RawMessage(b.tools)
		if b.toolConfig != nil {
			body["toolConfig"] = b.raw(b.toolConfig)
		}
	}
	return body
}

func (b *builder) raw(v any) stdjson.RawMessage {
	data, err := json.Marshal(v, lenient)
	if err != nil { // only what the types above cannot hold
		return stdjson.RawMessage("null")
	}
	return data
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

// settings sets everything but the messages.
func (b *builder) settings(req llm.Request) {
	s := req.Settings
	b.config = wireConfig{MaxOutputTokens: s.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, Seed: s.Seed, StopSequences: s.Stop}
	if s.CacheTTL != "" || s.CacheMessages || s.PromptCacheKey != "" {
		b.leftOut("cache-left-out", "the vendor keeps prompts by itself, or as contents that are made before")
	}
	if s.ResponseSchema != "" {
		b.config.ResponseMediaType = "application/json"
		b.config.ResponseJSONSchema = jsontext.Value(s.ResponseSchema)
		if !b.config.ResponseJSONSchema.IsValid() && b.err == nil {
			b.err = failure.New(failure.Input, "%s: the schema of the response is no JSON", Name)
		}
	}
	b.thinking(s)
	b.offer(req.Tools, s)
}

// thinking asks for the thoughts too, wherever something is said about them: else only their signatures come.
func (b *builder) thinking(s llm.Settings) {
	t := wireThinking{}
	switch {
	case s.Thinking.BudgetTokens == nil:
	case b.rule.NoBudget:
		b.leftOut("thinking-budget-left-out", "%s: the model takes no budget for its thinking", b.name)
	default:
		t.Budget = s.Thinking.BudgetTokens
	}
	switch {
	case s.Thinking.Level == "":
	case b.rule.NoLevel:
		b.leftOut("thinking-level-left-out", "%s: the model takes no level of thinking", b.name)
	default:
		t.Level = s.Thinking.Level
	}
	if t == (wireThinking{}) {
		return
	}
	t.IncludeThoughts = t.Budget == nil || *t.Budget != 0
	b.config.Thinking = &t
}

// toolList is a list of tools and its JSON.
type toolList struct {
	specs    []tool.Spec
	json     jsontext.Value
	warnings []tool.Warning
}

// offer sends the tools.
func (b *builder) offer(specs []tool.Spec, s llm.Settings) {
	if len(specs) == 0 {
		return
	}
	list := b.model.tools.Load()
	if list == nil || !slices.Equal(list.specs, specs) {
		list = &toolList{specs: slices.Clone(specs)}
		text := []byte(`[{"functionDeclarations":[`)
		for i, spec := range specs {
			if i > 0 {
				text = append(text, ',')
			}
			one, warnings, err := tool.GeminiSchema(spec)
			if err != nil {
				if b.err == nil {
					b.err = failure.WithCode(fmt.Errorf("%s: %w", Name, err), failure.Input)
				}
				return
			}
			list.warnings = append(list.warnings, warnings...)
			text = append(text, one...)
		}
		list.json = append(text, "]}]"...)
		b.model.tools.Store(list)
	}
	for _, w := range list.warnings {
		b.leftOut(w.Code, "%s", w.Text)
	}
	b.tools = list.json
	mode := map[string]string{"auto": "AUTO", "none": "NONE", "required": "ANY"}
	switch m, ok := mode[s.ToolChoice]; {
	case s.ToolChoice == "":
	case ok:
		b.toolConfig = &wireToolConfig{wireCalling{Mode: m}}
	default:
		b.toolConfig = &wireToolConfig{wireCalling{Mode: "ANY", Allowed: []string{s.ToolChoice}}}
	}
	if s.ParallelToolCalls != nil && !*s.ParallelToolCalls {
		b.leftOut("parallel-tool-calls-left-out", "%s: the vendor has no setting against parallel calls", b.name)
	}
}

func (b *builder) messages(req llm.Request) {
	system := []string{req.System}
	for _, m := range req.Messages {
		if m.Role() == conversation.RoleSystem {
			system = append(system, m.Text())
		}
	}
	b.system = strings.Join(slices.DeleteFunc(system, func(t string) bool { return t == "" }), "\n\n")
	b.contents = make([]wireContent, 0, len(req.Messages))
	for _, m := range req.Messages {
		if m.Role() != conversation.RoleTool {
			b.flush()
		}
		switch m.Role() {
		case conversation.RoleUser:
			b.content(roleUser, b.parts(m))
		case conversation.RoleAssistant:
			b.content(roleModel, b.parts(m))
		case conversation.RoleTool:
			b.toolMessage(m)
		}
	}
	b.flush()
	if b.reasoning {
		b.warn("reasoning-left-out", "reasoning of earlier replies that has no signature of the vendor is not sent back")
	}
}

func (b *builder) content(role string, parts []wirePart) {
	if len(parts) > 0 {
		b.contents = append(b.contents, wireContent{role, parts})
	}
}

func (b *builder) parts(m conversation.Message) []wirePart {
	var parts []wirePart
	calls := 0
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			if signature := signatureOf(p.Extras); p.Text != "" || signature != "" {
				parts = append(parts, wirePart{Text: &p.Text, Signature: signature})
			}
		case conversation.Reasoning:
			signature, kept := signatureOf(p.Extras), keptOf(p.Extras)
			switch {
			case signature != "":
				parts = append(parts, wirePart{Text: &p.Text, Thought: true, Signature: signature})
			case kept != nil:
				for _, part := range kept {
					parts = append(parts, wirePart{Others: part})
				}
			default:
				b.reasoning = true
			}
		case conversation.ToolCall:
			call := wirePart{FunctionCall: &functionCall{ID: p.ID, Name: p.Name, Args: b.arguments(p)}, Signature: signatureOf(p.Extras)}
			// The first of parallel calls bears the signature of all.
			if b.rule.Signed && calls == 0 && call.Signature == "" {
				call.Signature = unsigned
			}
			calls++
			b.names[p.ID] = p.Name
			parts = append(parts, call)
		default:
			if part, ok := b.medium(p); ok {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// signatureOf returns the vendor's signature of a part, "" for none.
func signatureOf(extras conversation.Extras) string {
	data := extras.Get(Name)
	if data == "" {
		return ""
	}
	var signature string
	if json.Unmarshal([]byte(data), &signature) != nil {
		return ""
	}
	return signature
}

// keptOf returns the parts that were kept unread, nil for none.
func keptOf(extras conversation.Extras) []jsontext.Value {
	var parts []jsontext.Value
	if json.Unmarshal([]byte(extras.Get(Name)), &parts) != nil || slices.ContainsFunc(parts, func(p jsontext.Value) bool { return p.Kind() != '{' }) {
		return nil
	}
	return parts
}

func (b *builder) arguments(c conversation.ToolCall) jsontext.Value {
	v := jsontext.Value(strings.TrimSpace(string(c.Input)))
	switch {
	case len(v) == 0:
		return jsontext.Value("{}")
	case !v.IsValid() || v.Kind() != '{':
		b.leftOut("arguments-left-out", "the arguments of a call of %s were left out: they are no JSON object", c.Name)
		return jsontext.Value("{}")
	}
	return v
}

// medium returns the part for an image or a document.
func (b *builder) medium(p conversation.Content) (wirePart, bool) {
	var mediaType string
	var source conversation.Source
	switch p := p.(type) {
	case conversation.Image:
		mediaType, source = p.MediaType, p.Source
		if mediaType == "image/gif" {
			b.leftOut("image-left-out", "an image was left out: %s takes no GIF", Name)
			return wirePart{}, false
		}
	case conversation.Document:
		mediaType, source = p.MediaType, p.Source
	default:
		return wirePart{}, false
	}
	if source.Type == conversation.SourceURL {
		return wirePart{FileData: &wireFile{mediaType, source.URL}}, true
	}
	return wirePart{InlineData: &inlineData{mediaType, source.Data}}, true
}

func (b *builder) toolMessage(m conversation.Message) {
	for _, p := range m.Parts() {
		r, ok := p.(conversation.ToolResult)
		if !ok {
			if part, ok := b.medium(p); ok {
				b.media = append(b.media, part)
			}
			continue
		}
		name, known := b.names[r.ID]
		if !known {
			b.leftOut("result-left-out", "the result of call %q was left out: the conversation has no such call", r.ID)
			continue
		}
		text := r.ResultText()
		result := wireResult{Result: &text}
		if r.IsError {
			result = wireResult{Error: &text}
		}
		b.results = append(b.results, wirePart{FunctionResponse: &wireResponse{ID: r.ID, Name: name, Response: result}})
	}
}

// flush sends the results of the tool messages so far, and their media in a content of its own: the vendor counts the parts that answer calls.
func (b *builder) flush() {
	b.content(roleUser, b.results)
	if b.media != nil {
		b.warn("tool-media-moved", "images or documents of a tool message are sent in a content after it")
		b.content(roleUser, b.media)
	}
	b.results, b.media = nil, nil
}
