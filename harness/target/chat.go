package target

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// lenient takes what clients and servers send although RFC 8259 advises against it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// The messages of OpenAI's Chat Completions, as far as a trace needs them.
type (
	chatRequest struct {
		Model     string        `json:"model"`
		Messages  []chatMessage `json:"messages"`
		Tools     []chatTool    `json:"tools"`
		Functions []chatSpec    `json:"functions"`
		MaxTokens *int          `json:"max_tokens"`
		MaxOutput *int          `json:"max_completion_tokens"`
	}
	chatTool struct {
		Type     string   `json:"type"`
		Function chatSpec `json:"function"`
		Custom   chatSpec `json:"custom"`
	}
	chatSpec struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  jsontext.Value `json:"parameters"`
	}
	chatMessage struct {
		Role         string         `json:"role"`
		Content      jsontext.Value `json:"content"`
		Refusal      string         `json:"refusal"`
		ToolCalls    []chatCall     `json:"tool_calls"`
		FunctionCall *chatFunction  `json:"function_call"`
		ToolCallID   string         `json:"tool_call_id"`
		Name         string         `json:"name"`
	}
	chatCall struct {
		Index    *int         `json:"index"`
		ID       string       `json:"id"`
		Function chatFunction `json:"function"`
		Custom   chatCustom   `json:"custom"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatCustom struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	}
	chatPart struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Refusal  string `json:"refusal"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Name string `json:"filename"`
			Data string `json:"file_data"`
		} `json:"file"`
	}
	chatReply struct {
		Model   string `json:"model"`
		Choices []struct {
			Index   int          `json:"index"`
			Message *chatMessage `json:"message"`
			Delta   *chatMessage `json:"delta"`
			Finish  string       `json:"finish_reason"`
		} `json:"choices"`
		Usage *chatUsage `json:"usage"`
	}
	chatUsage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached     int `json:"cached_tokens"`
			CacheWrite int `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
)

func (u chatUsage) usage() (conversation.Usage, error) {
	out := conversation.Usage{InputTokens: u.Prompt, OutputTokens: u.Completion, CacheReadTokens: u.Details.Cached, CacheWriteTokens: u.Details.CacheWrite, ReasoningTokens: u.Output.Reasoning}
	if min(u.Prompt, u.Completion, u.Details.Cached, u.Details.CacheWrite, u.Output.Reasoning) < 0 {
		return conversation.Usage{}, errors.New("a number of tokens is negative")
	}
	return out, nil
}

func chatUsageOf(text string) (conversation.Usage, error) {
	var u chatUsage
	if err := json.Unmarshal([]byte(text), &u, lenient); err != nil {
		return conversation.Usage{}, err
	}
	return u.usage()
}

// chatMessages reads a list of messages; system messages become messages of role system.
func chatMessages(text, id string) ([]conversation.Message, error) {
	var list []chatMessage
	if err := json.Unmarshal([]byte(text), &list, lenient); err != nil {
		return nil, err
	}
	out := make([]conversation.Message, 0, len(list))
	for i := range list {
		m, err := list[i].message(id)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// message reads one message.
func (m *chatMessage) message(id string) (conversation.Message, error) {
	switch m.Role {
	case "system", "developer":
		text, err := m.text()
		return conversation.NewMessage(conversation.RoleSystem, id, conversation.Text{Text: text}), err
	case "user":
		parts, err := m.parts()
		return conversation.User(id, parts...), err
	case "assistant":
		parts, err := m.parts()
		return conversation.Assistant(id, append(parts, m.calls()...)...), err
	case "tool", "function":
		text, err := m.text()
		call := m.ToolCallID
		if m.Role == "function" {
			call = functionID(m.Name)
		}
		return conversation.ToolResults(id, conversation.ToolResult{ID: call, Result: resultOf(text)}), err
	}
	return conversation.Message{}, fmt.Errorf("unknown role %q", m.Role)
}

// functionID stands for the id that calls of the deprecated functions do not have.
func functionID(name string) string { return "function:" + name }

func (m *chatMessage) calls() []conversation.Content {
	var out []conversation.Content
	for _, c := range m.ToolCalls {
		name, input := c.Function.Name, c.Function.Arguments
		if c.Custom.Name != "" {
			name, input = c.Custom.Name, string(conversation.String(c.Custom.Input))
		}
		out = append(out, conversation.ToolCall{ID: c.ID, Name: name, Input: conversation.JSON(input)})
	}
	if f := m.FunctionCall; f != nil && f.Name != "" {
		out = append(out, conversation.ToolCall{ID: functionID(f.Name), Name: f.Name, Input: conversation.JSON(f.Arguments)})
	}
	return out
}

// resultOf is the result that a text stands for: JSON where it is an object or a list, else the text.
func resultOf(text string) conversation.JSON {
	if trimmed := strings.TrimSpace(text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && conversation.JSON(trimmed).Valid() {
		return conversation.JSON(trimmed)
	}
	return conversation.String(text)
}

func (m *chatMessage) text() (string, error) {
	parts, err := m.list()
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), err
}

// list is the content as a list of parts, whether it is a text, a list or null.
func (m *chatMessage) list() ([]chatPart, error) {
	switch m.Content.Kind() {
	case '"':
		var text string
		err := json.Unmarshal(m.Content, &text, lenient)
		return []chatPart{{Type: "text", Text: text}}, err
	case '[':
		var parts []chatPart
		err := json.Unmarshal(m.Content, &parts, lenient)
		return parts, err
	}
	return nil, nil
}

func (m *chatMessage) parts() ([]conversation.Content, error) {
	list, err := m.list()
	var out []conversation.Content
	for _, p := range list {
		switch {
		case p.ImageURL.URL != "":
			out = append(out, image(p.ImageURL.URL))
		case p.File.Data != "":
			if media, data, ok := dataURL(p.File.Data); ok && media == "application/pdf" {
				out = append(out, conversation.Document{MediaType: media, Name: p.File.Name, Source: conversation.Source{Type: conversation.SourceBase64, Data: data}})
			}
		case p.Text+p.Refusal != "":
			out = append(out, conversation.Text{Text: p.Text + p.Refusal})
		}
	}
	if m.Refusal != "" {
		out = append(out, conversation.Text{Text: m.Refusal})
	}
	return out, err
}

func image(address string) conversation.Content {
	if media, data, ok := dataURL(address); ok {
		return conversation.Image{MediaType: media, Source: conversation.Source{Type: conversation.SourceBase64, Data: data}}
	}
	media := "image/png" // the address does not say it, and a trace needs one
	for ending, of := range map[string]string{".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"} {
		if strings.HasSuffix(strings.ToLower(address), ending) {
			media = of
		}
	}
	return conversation.Image{MediaType: media, Source: conversation.Source{Type: conversation.SourceURL, URL: address}}
}

// dataURL takes a data URL with base64 (RFC 2397) apart.
func dataURL(text string) (media, data string, ok bool) {
	rest, ok := strings.CutPrefix(text, "data:")
	if !ok {
		return "", "", false
	}
	media, data, ok = strings.Cut(rest, ";base64,")
	return media, data, ok && data != ""
}

// Step is one question to a model and its answer, as a reader of the traffic sees it.
type Step struct {
	Model  string
	System string
	// Messages are those of the request without system messages.
	Messages []conversation.Message
	Tools    []tool.Spec
	// Reply holds the parts of the answer; its id is the one that was given.
	Reply conversation.Message
	Stop  string
	// Answered is the model that the vendor says has answered.
	Answered string
	// Usage is nil where the answer does not say.
	Usage *conversation.Usage
}

// readChat reads an exchange of OpenAI's Chat Completions. The answer is nil where none came that could be read.
func readChat(request, reply []byte, stream bool, id string) (Step, error) {
	var in chatRequest
	if err := json.Unmarshal(request, &in, lenient); err != nil {
		return Step{}, fmt.Errorf("the request: %w", err)
	}
	step := Step{Model: in.Model}
	var system []string
	for i := range in.Messages {
		m, err := in.Messages[i].message(id)
		if err != nil {
			return Step{}, fmt.Errorf("message %d of the request: %w", i+1, err)
		}
		if m.Role() == conversation.RoleSystem {
			system = append(system, m.Text())
			continue
		}
		step.Messages = append(step.Messages, m)
	}
	step.System = strings.Join(system, "\n\n")
	for _, t := range in.Tools {
		spec := t.Function
		if spec.Name == "" {
			spec = t.Custom
		}
		step.Tools = append(step.Tools, spec.spec())
	}
	for _, f := range in.Functions {
		step.Tools = append(step.Tools, f.spec())
	}
	if reply == nil {
		return step, nil
	}
	var out chatCollector
	if stream {
		for data := range events(reply) {
			if string(data) == "[DONE]" {
				break
			}
			if err := out.add(data); err != nil {
				return step, fmt.Errorf("a frame of the reply: %w", err)
			}
		}
	} else if err := out.add(reply); err != nil {
		return step, fmt.Errorf("the reply: %w", err)
	}
	return step, out.finish(&step, id)
}

func (s chatSpec) spec() tool.Spec {
	parameters := conversation.JSON(s.Parameters)
	if s.Parameters == nil {
		parameters = `{"type":"object"}`
	}
	return tool.Spec{Name: s.Name, Description: s.Description, Parameters: parameters, Scope: tool.External}
}

// boundChat is the model of a request and the tokens that its answer may have; 0 where it does not say.
func boundChat(request []byte) (model string, most int) {
	var in chatRequest
	if json.Unmarshal(request, &in, lenient) != nil {
		return "", 0
	}
	for _, n := range []*int{in.MaxTokens, in.MaxOutput} {
		if n != nil {
			most = max(most, *n)
		}
	}
	return in.Model, most
}

// chatCollector puts a reply together from its frames.
type chatCollector struct {
	model   string
	text    strings.Builder
	refusal strings.Builder
	calls   []*chatCall
	byIndex map[int]*chatCall
	old     chatFunction
	stop    string
	seen    bool
	usage   *chatUsage
}

func (c *chatCollector) add(data []byte) error {
	var frame chatReply
	if err := json.Unmarshal(data, &frame, lenient); err != nil {
		return err
	}
	if frame.Model != "" {
		c.model = frame.Model
	}
	if frame.Usage != nil {
		c.usage = frame.Usage
	}
	for i := range frame.Choices {
		choice := &frame.Choices[i]
		if choice.Index != 0 {
			continue
		}
		c.seen = true
		if choice.Finish != "" {
			c.stop = choice.Finish
		}
		for _, m := range []*chatMessage{choice.Message, choice.Delta} {
			if m == nil {
				continue
			}
			text, err := m.text()
			if err != nil {
				return err
			}
			c.text.WriteString(text)
			c.refusal.WriteString(m.Refusal)
			c.join(m)
		}
	}
	return nil
}

// join adds the calls of a message, or their pieces.
func (c *chatCollector) join(m *chatMessage) {
	if f := m.FunctionCall; f != nil {
		c.old.Name += f.Name
		c.old.Arguments += f.Arguments
	}
	for _, piece := range m.ToolCalls {
		var into *chatCall
		if piece.Index != nil {
			into = c.byIndex[*piece.Index]
		} else if piece.ID == "" && len(c.calls) > 0 {
			into = c.calls[len(c.calls)-1]
		}
		if into == nil {
			into = &chatCall{}
			c.calls = append(c.calls, into)
			if piece.Index != nil {
				if c.byIndex == nil {
					c.byIndex = map[int]*chatCall{}
				}
				c.byIndex[*piece.Index] = into
			}
		}
		if piece.ID != "" {
			into.ID = piece.ID
		}
		into.Function.Name += piece.Function.Name
		into.Function.Arguments += piece.Function.Arguments
		into.Custom.Name += piece.Custom.Name
		into.Custom.Input += piece.Custom.Input
	}
}

func (c *chatCollector) finish(step *Step, id string) error {
	if !c.seen {
		return errors.New("the reply holds no answer")
	}
	var parts []conversation.Content
	for _, text := range []string{c.text.String(), c.refusal.String()} {
		if text != "" {
			parts = append(parts, conversation.Text{Text: text})
		}
	}
	whole := chatMessage{FunctionCall: &c.old}
	for _, call := range c.calls {
		whole.ToolCalls = append(whole.ToolCalls, *call)
	}
	step.Reply = conversation.Assistant(id, append(parts, whole.calls()...)...)
	step.Answered = c.model
	switch {
	case c.refusal.Len() > 0 || c.stop == "content_filter":
		step.Stop = string(llm.StopRefused)
	case c.stop == "stop":
		step.Stop = string(llm.StopEnd)
	case c.stop == "tool_calls" || c.stop == "function_call":
		step.Stop = string(llm.StopToolCalls)
	case c.stop == "length":
		step.Stop = string(llm.StopLength)
	default:
		step.Stop = string(llm.StopOther)
	}
	if c.usage == nil {
		return nil
	}
	usage, err := c.usage.usage()
	step.Usage = &usage
	return err
}

// events yields the data of server-sent events, which may spread over several lines.
func events(stream []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		var data [][]byte
		flush := func() bool {
			if data == nil {
				return true
			}
			all := bytes.Join(data, []byte("\n"))
			data = nil
			return yield(all)
		}
		for line := range bytes.Lines(stream) {
			line = bytes.TrimRight(line, "\r\n")
			if len(line) == 0 {
				if !flush() {
					return
				}
				continue
			}
			if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = append(data, bytes.TrimPrefix(rest, []byte(" ")))
			}
		}
		flush()
	}
}

// appendChat appends a message in OpenAI's form.
func appendChat(dst []byte, m conversation.Message) []byte {
	if m.Role() == conversation.RoleTool {
		first := true
		for _, p := range m.Parts() {
			r, ok := p.(conversation.ToolResult)
			if !ok {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = conversation.AppendString(append(dst, `{"role":"tool","tool_call_id":`...), r.ID)
			dst = conversation.AppendString(append(dst, `,"content":`...), r.ResultText())
			dst = append(dst, '}')
		}
		if first {
			dst = append(dst, `{"role":"tool","tool_call_id":"","content":""}`...)
		}
		return dst
	}
	dst = conversation.AppendString(append(dst, `{"role":`...), string(m.Role()))
	dst = append(dst, `,"content":`...)
	calls := m.ToolCalls()
	switch {
	case onlyText(m) && (m.Text() != "" || len(calls) == 0):
		dst = conversation.AppendString(dst, m.Text())
	case onlyText(m):
		dst = append(dst, "null"...)
	default:
		dst = appendParts(dst, m)
	}
	for i, c := range calls {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = conversation.AppendString(append(dst, `{"id":`...), c.ID)
		dst = conversation.AppendString(append(dst, `,"type":"function","function":{"name":`...), c.Name)
		dst = conversation.AppendString(append(dst, `,"arguments":`...), string(c.Input))
		dst = append(dst, "}}"...)
	}
	if len(calls) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func onlyText(m conversation.Message) bool {
	for _, p := range m.Parts() {
		switch p.Kind() {
		case conversation.KindImage, conversation.KindDocument:
			return false
		}
	}
	return true
}

func appendParts(dst []byte, m conversation.Message) []byte {
	dst = append(dst, '[')
	first := true
	open := func(text string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, text...)
	}
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			open(`{"type":"text","text":`)
			dst = append(conversation.AppendString(dst, p.Text), '}')
		case conversation.Image:
			open(`{"type":"image_url","image_url":{"url":`)
			dst = append(conversation.AppendString(dst, address(p.MediaType, p.Source)), "}}"...)
		case conversation.Document:
			open(`{"type":"file","file":{"filename":`)
			dst = conversation.AppendString(dst, p.Name)
			dst = append(dst, `,"file_data":`...)
			dst = append(conversation.AppendString(dst, address(p.MediaType, p.Source)), "}}"...)
		}
	}
	return append(dst, ']')
}

func address(media string, s conversation.Source) string {
	if s.Type == conversation.SourceURL {
		return s.URL
	}
	return "data:" + media + ";base64," + s.Data
}

// sameJSON reports whether two texts are the same JSON, whatever the order of members and the white space.
func sameJSON(a, b conversation.JSON) bool {
	x, y := jsontext.Value(a), jsontext.Value(b)
	x, y = x.Clone(), y.Clone()
	if x.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil || y.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		return a == b
	}
	return string(x) == string(y)
}
