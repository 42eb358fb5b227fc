package bedrock

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// MinBudget is the smallest budget for thinking that Claude's models take.
const MinBudget = 1024

// defaultMaxTokens is the limit of the output where a budget for thinking needs one and the settings give none. The budget is added to it.
const defaultMaxTokens = 4096

// The body of a request, as far as it is said here.
type (
	wireBody struct {
		System    []wireText     `json:"system,omitzero"`
		Messages  []wireMessage  `json:"messages"`
		Tools     *wireTools     `json:"toolConfig,omitzero"`
		Inference *wireInference `json:"inferenceConfig,omitzero"`
		Output    *wireOutput    `json:"outputConfig,omitzero"`
		More      *wireMore      `json:"additionalModelRequestFields,omitzero"`
	}
	wireText struct {
		Text  string     `json:"text,omitzero"`
		Point *wirePoint `json:"cachePoint,omitzero"`
	}
	wirePoint struct {
		Type string `json:"type"`
		TTL  string `json:"ttl,omitzero"`
	}
	wireMessage struct {
		Role    string           `json:"role"`
		Content []jsontext.Value `json:"content"`
	}
	// wireBlock is a block of a message or of a tool's result. One member is set.
	wireBlock struct {
		Text      *string        `json:"text,omitzero"`
		Image     *wireMedium    `json:"image,omitzero"`
		Document  *wireMedium    `json:"document,omitzero"`
		ToolUse   *wireUse       `json:"toolUse,omitzero"`
		Result    *wireResult    `json:"toolResult,omitzero"`
		Reasoning *wireReasoning `json:"reasoningContent,omitzero"`
		Point     *wirePoint     `json:"cachePoint,omitzero"`
	}
	wireMedium struct {
		Format string     `json:"format"`
		Name   string     `json:"name,omitzero"`
		Source wireSource `json:"source"`
	}
	wireSource struct {
		Bytes    string        `json:"bytes,omitzero"`
		Location *wireLocation `json:"s3Location,omitzero"`
	}
	wireLocation struct {
		URI string `json:"uri"`
	}
	wireUse struct {
		ID    string         `json:"toolUseId"`
		Name  string         `json:"name"`
		Input jsontext.Value `json:"input"`
	}
	wireResult struct {
		ID      string      `json:"toolUseId"`
		Content []wireBlock `json:"content"`
		Status  string      `json:"status,omitzero"`
	}
	wireReasoning struct {
		Text     *wireThinking `json:"reasoningText,omitzero"`
		Redacted *string       `json:"redactedContent,omitzero"`
	}
	wireThinking struct {
		Text      string `json:"text"`
		Signature string `json:"signature,omitzero"`
	}
	wireTools struct {
		Tools  jsontext.Value `json:"tools"`
		Choice *wireChoice    `json:"toolChoice,omitzero"`
	}
	wireChoice struct {
		Auto *struct{}  `json:"auto,omitzero"`
		Any  *struct{}  `json:"any,omitzero"`
		Tool *wireNamed `json:"tool,omitzero"`
	}
	wireNamed struct {
		Name string `json:"name"`
	}
	wireInference struct {
		MaxTokens   *int     `json:"maxTokens,omitzero"`
		Temperature *float64 `json:"temperature,omitzero"`
		TopP        *float64 `json:"topP,omitzero"`
		Stop        []string `json:"stopSequences,omitempty"`
	}
	wireOutput struct {
		Format *wireFormat `json:"textFormat,omitzero"`
		Effort string      `json:"effort,omitzero"`
	}
	wireFormat struct {
		Type      string        `json:"type"`
		Structure wireStructure `json:"structure"`
	}
	wireStructure struct {
		Schema wireSchema `json:"jsonSchema"`
	}
	wireSchema struct {
		Schema string `json:"schema"`
	}
	wireMore struct {
		Thinking wireBudget `json:"thinking"`
	}
	wireBudget struct {
		Type   string `json:"type"`
		Tokens int    `json:"budget_tokens"`
	}
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// builder turns a request into the vendor's.
type builder struct {
	*model
	strict   bool
	wire     wireBody
	messages []wireMessage
	warnings []llm.Warning
	err      error

	results   []wireBlock // of the tool messages that are being read
	early     []wireBlock // media that came before any of them
	called    []string    // names of the tools that were called
	documents []string    // names so far
	reasoning bool        // reasoning was left out

	body []byte
}

func (m *model) build(req llm.Request) (*builder, error) {
	b := &builder{model: m, strict: req.Settings.Strict}
	b.conversation(req)
	b.settings(req)
	b.wire.Messages = b.messages
	if b.err != nil {
		return nil, b.err
	}
	var err error
	if b.body, err = json.Marshal(&b.wire, lenient); err != nil {
		return nil, fmt.Errorf("%s: encoding the request: %w", Name, err)
	}
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

// settings sets everything but the messages.
func (b *builder) settings(req llm.Request) {
	s := req.Settings
	inference := wireInference{MaxTokens: s.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, Stop: s.Stop}
	if s.Seed != nil {
		b.leftOut("seed-left-out", "the vendor takes no seed")
	}
	b.thinking(s, &inference)
	b.cache(s)
	if inference.MaxTokens != nil || inference.Temperature != nil || inference.TopP != nil || len(inference.Stop) > 0 {
		b.wire.Inference = &inference
	}
	output := wireOutput{Effort: cmp.Or(s.Thinking.Effort, s.ReasoningEffort)}
	if s.ResponseSchema != "" {
		output.Format = &wireFormat{Type: "json_schema", Structure: wireStructure{wireSchema{string(s.ResponseSchema)}}}
	}
	if output != (wireOutput{}) {
		b.wire.Output = &output
	}
	b.offer(req.Tools, s)
}

// cachingModels are parts of the ids of models that are known to keep prompts; others refuse to be asked.
var cachingModels = []string{"claude", "amazon.nova-"}

// cache sets the points up to which the vendor is to keep the prompt: behind the instructions, and behind the last message.
func (b *builder) cache(s llm.Settings) {
	if s.PromptCacheKey != "" {
		b.leftOut("prompt-cache-key-left-out", "the vendor groups no requests by a key")
	}
	if s.CacheTTL == "" && !s.CacheMessages {
		return
	}
	if !slices.ContainsFunc(cachingModels, func(part string) bool { return strings.Contains(b.name, part) }) {
		b.leftOut("cache-left-out", "%s: the model is not known to keep prompts", b.name)
		return
	}
	point := &wirePoint{Type: "default"}
	if s.CacheTTL != defaultTTL {
		point.TTL = s.CacheTTL
	}
	if len(b.wire.System) > 0 && s.CacheTTL != "" {
		b.wire.System = append(b.wire.System, wireText{Point: point})
	}
	if n := len(b.messages); n > 0 && s.CacheMessages {
		b.say(b.messages[n-1].Role, wireBlock{Point: point})
	}
}

// defaultTTL is how long the vendor keeps a prompt where it is not told, and need not be told.
const defaultTTL = "5m"

// thinking gives Claude's models a budget. It counts towards the limit of the output.
func (b *builder) thinking(s llm.Settings, inference *wireInference) {
	if s.Thinking.Level != "" {
		b.leftOut("thinking-level-left-out", "the vendor knows no level of thinking")
	}
	if s.Thinking.BudgetTokens == nil {
		return
	}
	budget := *s.Thinking.BudgetTokens
	switch {
	case !b.claude:
		b.leftOut("thinking-budget-left-out", "%s: the model is not known to take a budget for its thinking", b.name)
		return
	case budget < MinBudget:
		b.err = cmp.Or(b.err, error(failure.WithHint(failure.New(failure.Input, "%s:%s: a budget of %d tokens for thinking is too small", Name, b.name, budget), "give it %d or more", MinBudget)))
	case s.MaxTokens != nil && budget >= *s.MaxTokens:
		b.err = cmp.Or(b.err, error(failure.WithHint(failure.New(failure.Input, "%s:%s: the budget of %d tokens for thinking leaves nothing of max_tokens %d", Name, b.name, budget, *s.MaxTokens), "max_tokens counts thinking too: raise it above the budget")))
	}
	if s.MaxTokens == nil {
		limit := defaultMaxTokens + budget
		inference.MaxTokens = &limit
	}
	b.wire.More = &wireMore{wireBudget{"enabled", budget}}
}

// toolList is a list of tools and its JSON.
type toolList struct {
	specs []tool.Spec
	json  jsontext.Value
}

// offer sends the tools.
func (b *builder) offer(specs []tool.Spec, s llm.Settings) {
	if len(specs) == 0 {
		if len(b.called) == 0 {
			return
		}
		for _, name := range b.called {
			specs = append(specs, tool.Spec{Name: name, Parameters: `{"type":"object"}`})
		}
		b.warn("tools-declared", "the conversation has calls and the request no tools: those that were called are declared, since the vendor demands it")
	}
	list := b.tools.Load()
	if list == nil || !slices.Equal(list.specs, specs) {
		list = &toolList{specs: slices.Clone(specs)}
		text := []byte{'['}
		for i, spec := range specs {
			if i > 0 {
				text = append(text, ',')
			}
			one, err := tool.BedrockSchema(spec)
			if err != nil {
				b.err = cmp.Or(b.err, failure.WithCode(fmt.Errorf("%s: %w", Name, err), failure.Input))
				return
			}
			text = append(text, one...)
		}
		list.json = append(text, ']')
		b.tools.Store(list)
	}
	b.wire.Tools = &wireTools{Tools: list.json}
	switch s.ToolChoice {
	case "":
	case "auto":
		b.wire.Tools.Choice = &wireChoice{Auto: &struct{}{}}
	case "none":
		b.leftOut("tool-choice-left-out", "the vendor has no choice of tools \"none\"")
	case "required":
		b.wire.Tools.Choice = &wireChoice{Any: &struct{}{}}
	default:
		b.wire.Tools.Choice = &wireChoice{Tool: &wireNamed{s.ToolChoice}}
	}
	if s.ParallelToolCalls != nil && !*s.ParallelToolCalls {
		b.leftOut("parallel-tool-calls-left-out", "the vendor has no setting against parallel calls")
	}
}

func (b *builder) conversation(req llm.Request) {
	var system []string
	if strings.TrimSpace(req.System) != "" {
		system = append(system, req.System)
	}
	for _, m := range req.Messages {
		if text := m.Text(); m.Role() == conversation.RoleSystem && strings.TrimSpace(text) != "" {
			system = append(system, text)
		}
	}
	if len(system) > 0 {
		b.wire.System = []wireText{{Text: strings.Join(system, "\n\n")}}
	}
	b.messages = make([]wireMessage, 0, len(req.Messages))
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			b.flushResults()
			b.say(roleUser, b.user(m)...)
		case conversation.RoleAssistant:
			b.flushResults()
			b.assistant(m)
		case conversation.RoleTool:
			b.toolMessage(m)
		}
	}
	b.flushResults()
	if b.reasoning {
		b.warn("reasoning-left-out", "reasoning of earlier replies that is not this vendor's is not sent back")
	}
}

// say adds blocks to the message of a role, or begins it.
func (b *builder) say(role string, blocks ...wireBlock) {
	for i := range blocks {
		raw, err := json.Marshal(&blocks[i], lenient)
		if err != nil {
			b.err = cmp.Or(b.err, fmt.Errorf("%s: encoding the request: %w", Name, err))
			return
		}
		b.sayRaw(role, raw)
	}
}

func (b *builder) sayRaw(role string, block jsontext.Value) {
	n := len(b.messages)
	if n == 0 || b.messages[n-1].Role != role {
		b.messages = append(b.messages, wireMessage{Role: role})
		n++
	}
	m := &b.messages[n-1]
	m.Content = append(m.Content, block)
}

// text adds a text, unless the vendor would refuse it for having nothing to see.
func (b *builder) text(blocks []wireBlock, text string) []wireBlock {
	if strings.TrimSpace(text) == "" {
		if text != "" {
			b.warn("blank-text-left-out", "a text of white space alone is not sent")
		}
		return blocks
	}
	return append(blocks, wireBlock{Text: &text})
}

func (b *builder) user(m conversation.Message) (blocks []wireBlock) {
	for _, p := range m.Parts() {
		if t, ok := p.(conversation.Text); ok {
			blocks = b.text(blocks, t.Text)
		} else if medium, ok := b.medium(p); ok {
			blocks = append(blocks, medium)
		}
	}
	return blocks
}

// medium returns the block for an image or a document.
func (b *builder) medium(p conversation.Content) (wireBlock, bool) {
	switch p := p.(type) {
	case conversation.Image:
		format := imageFormats[mediaType(p.MediaType)]
		source, ok := source(p.Source)
		switch {
		case !ok:
			b.leftOut("image-left-out", "an image was left out: the vendor takes bytes and addresses that begin with s3://")
		case format == "":
			b.leftOut("image-left-out", "an image was left out: the vendor takes no %s", p.MediaType)
		default:
			return wireBlock{Image: &wireMedium{Format: format, Source: source}}, true
		}
	case conversation.Document:
		format := documentFormats[mediaType(p.MediaType)]
		source, ok := source(p.Source)
		switch {
		case !ok:
			b.leftOut("document-left-out", "document %q was left out: the vendor takes bytes and addresses that begin with s3://", p.Name)
		case format == "":
			b.leftOut("document-left-out", "document %q was left out: the vendor takes no %s", p.Name, p.MediaType)
		default:
			return wireBlock{Document: &wireMedium{Format: format, Name: b.documentName(p.Name), Source: source}}, true
		}
	}
	return wireBlock{}, false
}

// mediaType is a media type without its parameters.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// The vendor's words for kinds of media.
var (
	imageFormats    = map[string]string{"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
	documentFormats = map[string]string{
		"application/pdf":    "pdf",
		"text/csv":           "csv",
		"application/msword": "doc",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
		"application/vnd.ms-excel": "xls",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
		"text/html":     "html",
		"text/plain":    "txt",
		"text/markdown": "md",
	}
)

func source(s conversation.Source) (wireSource, bool) {
	if s.Type == conversation.SourceURL {
		return wireSource{Location: &wireLocation{s.URL}}, strings.HasPrefix(s.URL, "s3://")
	}
	_, err := base64.StdEncoding.DecodeString(s.Data)
	return wireSource{Bytes: s.Data}, err == nil && s.Data != ""
}

// maxDocumentName is the longest name of a document, in characters.
const maxDocumentName = 200

// documentName makes a name one that the vendor takes, and that no other document of the request has.
func (b *builder) documentName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("-()[]", r) || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return ' '
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	name = strings.TrimSpace(name[:min(len(name), maxDocumentName-len(" (1000)"))])
	if name == "" {
		name = "document"
	}
	unique := name
	for n := 2; slices.Contains(b.documents, unique); n++ {
		unique = fmt.Sprintf("%s (%d)", name, n)
	}
	b.documents = append(b.documents, unique)
	return unique
}

func (b *builder) assistant(m conversation.Message) {
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			b.say(roleAssistant, b.text(nil, p.Text)...)
		case conversation.Reasoning:
			b.thought(p)
		case conversation.ToolCall:
			if !slices.Contains(b.called, p.Name) {
				b.called = append(b.called, p.Name)
			}
			b.say(roleAssistant, wireBlock{ToolUse: &wireUse{ID: callID(p.ID), Name: p.Name, Input: b.arguments(p)}})
		case conversation.Image:
			b.leftOut("image-left-out", "an image was left out: an assistant message takes none")
		case conversation.Document:
			b.leftOut("document-left-out", "document %q was left out: an assistant message takes none", p.Name)
		}
	}
}

// thought sends reasoning back as it came.
func (b *builder) thought(p conversation.Reasoning) {
	kept, err := readThoughts(p.Extras.Get(Name))
	if err != nil || len(kept) == 0 {
		b.reasoning = true
		return
	}
	for _, t := range kept {
		switch {
		case t.Block != nil:
			b.sayRaw(roleAssistant, t.Block)
		case t.Redacted != nil:
			b.say(roleAssistant, wireBlock{Reasoning: &wireReasoning{Redacted: t.Redacted}})
		default:
			text := p.Text
			if t.Text != nil {
				text = *t.Text
			}
			b.say(roleAssistant, wireBlock{Reasoning: &wireReasoning{Text: &wireThinking{Text: text, Signature: t.Signature}}})
		}
	}
}

// arguments are the JSON object of a call. Text that is none is wrapped.
func (b *builder) arguments(c conversation.ToolCall) jsontext.Value {
	arguments, err := c.Arguments()
	if err != nil {
		b.warn("arguments-wrapped", "arguments of a call that are no JSON object are sent within one")
		return jsontext.Value(`{"INVALID_JSON":` + string(conversation.String(string(c.Input))) + `}`)
	}
	return jsontext.Value(arguments)
}

// maxCallID is the longest id of a call.
const maxCallID = 64

// callID is the id of a call as the vendor takes it: up to 64 letters, digits and _ . : -. Ids of other vendors may hold more; those get a hash, so that no two become one.
func callID(id string) string {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_.:-", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if plain == id && id != "" && len(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return plain[:min(len(plain), maxCallID-13)] + "_" + hex.EncodeToString(sum[:6])
}

func (b *builder) toolMessage(m conversation.Message) {
	for _, p := range m.Parts() {
		if p, ok := p.(conversation.ToolResult); ok {
			result := &wireResult{ID: callID(p.ID), Content: []wireBlock{}}
			if p.IsError {
				result.Status = "error"
			}
			if text := p.ResultText(); strings.TrimSpace(text) != "" {
				result.Content = append(result.Content, wireBlock{Text: &text})
			}
			b.results = append(b.results, wireBlock{Result: result})
			continue
		}
		medium, ok := b.medium(p)
		if !ok {
			continue
		}
		if n := len(b.results); n > 0 {
			result := b.results[n-1].Result
			result.Content = append(result.Content, medium)
			continue
		}
		b.warn("tool-media-moved", "images or documents that a tool message holds before any result are sent after the results")
		b.early = append(b.early, medium)
	}
}

// flushResults sends the results of the tool messages so far in one user message, as the vendor demands.
func (b *builder) flushResults() {
	b.say(roleUser, append(b.results, b.early...)...)
	b.results, b.early = nil, nil
}
