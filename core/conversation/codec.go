package conversation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The codec. Keys are written in a fixed order and nulls are written out, except for what only some parts have (extras, is_error, tool_input_raw, reasoning_t); readers ignore keys they do not know. What is written never holds a line break, so that it may stand on a line of a file.

// Warning is something that a reader put right and that the user should know.
type Warning struct {
	Code string // "results-in-user-message"
	Text string
}

// AppendString appends s as a JSON string; bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		// The only error is invalid UTF-8, and the replacement has been written all the same.
		return dst
	}
	return dst
}

// String returns the JSON text of a string.
func String(s string) JSON { return JSON(AppendString(nil, s)) }

// Valid reports whether the text is exactly one JSON value.
func (j JSON) Valid() bool { return jsontext.Value(j).IsValid() }

func stringValue(j JSON) (string, bool) {
	if len(j) == 0 || jsontext.Value(j).Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, []byte(trimSpace(j)))
	if err != nil {
		return "", false
	}
	return string(b), true
}

func trimSpace(j JSON) JSON {
	for len(j) > 0 && isSpace(j[0]) {
		j = j[1:]
	}
	for len(j) > 0 && isSpace(j[len(j)-1]) {
		j = j[:len(j)-1]
	}
	return j
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Arguments returns the arguments as a JSON object, "{}" where the model wrote nothing, and an error that says what is wrong where it wrote something else.
func (c ToolCall) Arguments() (JSON, error) {
	if trimSpace(c.Input) == "" {
		return "{}", nil
	}
	v := jsontext.Value(c.Input)
	if !v.IsValid() {
		return "", fmt.Errorf("the arguments are not valid JSON")
	}
	if v.Kind() != '{' {
		return "", fmt.Errorf("the arguments are %s, not a JSON object", kindName(v.Kind()))
	}
	return c.Input, nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '[':
		return "a list"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "an object"
}

// AppendValue appends JSON text, or null where it is empty or no JSON. Text that spreads over several lines loses the white space between its tokens.
func AppendValue(dst []byte, j JSON) []byte {
	j = readable(j)
	switch {
	case j == "" || !j.Valid():
		return append(dst, "null"...)
	case !oneLine(j):
		v := jsontext.Value(j)
		if v.Compact() != nil {
			// Not reached: Valid has read the text.
			return append(dst, "null"...)
		}
		return append(dst, v...)
	}
	return append(dst, j...)
}

// readable replaces bytes that are not UTF-8 as [AppendString] does, before anything else is decided, so that the text means the same when it is read back.
func readable(j JSON) JSON {
	if utf8.ValidString(string(j)) {
		return j
	}
	return JSON([]rune(string(j)))
}

// oneLine reports whether valid JSON text stands on one line without space around it. Within strings JSON has no line breaks.
func oneLine(j JSON) bool {
	return j != "" && !isSpace(j[0]) && !isSpace(j[len(j)-1]) && !strings.ContainsAny(string(j), "\r\n")
}

// AppendArguments appends the arguments of a call, as the model wrote them, as a JSON object. Where an object does not tell their text, because they are malformed or spread over several lines, a second member with the name rawKey keeps it: null or the object without white space,
// then the text as a string. Empty arguments are the empty object.
func AppendArguments(dst []byte, input JSON, rawKey string) []byte {
	input = readable(input)
	args, err := ToolCall{Input: input}.Arguments()
	switch {
	case err != nil:
		dst = append(dst, "null"...)
	case input == "" || oneLine(input):
		return append(dst, args...)
	default:
		dst = AppendValue(dst, args)
	}
	dst = append(dst, ',')
	dst = AppendString(dst, rawKey)
	dst = append(dst, ':')
	return AppendString(dst, string(input))
}

func appendStringOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return AppendString(dst, s)
}

func appendExtras(dst []byte, e Extras) []byte {
	if len(e) == 0 {
		return dst
	}
	dst = append(dst, `,"extras":{`...)
	for i, x := range e {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, x.Vendor)
		dst = append(dst, ':')
		dst = AppendValue(dst, x.Data)
	}
	return append(dst, '}')
}

func appendSource(dst []byte, s Source) []byte {
	dst = append(dst, `,"source_type":`...)
	dst = AppendString(dst, string(s.Type))
	dst = append(dst, `,"data":`...)
	dst = appendStringOrNull(dst, s.Data)
	dst = append(dst, `,"url":`...)
	return appendStringOrNull(dst, s.URL)
}

// AppendContent appends the JSON of one part.
func AppendContent(dst []byte, p Content) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, p.Kind()...)
	dst = append(dst, '"')
	switch p := p.(type) {
	case Text:
		dst = append(dst, `,"text":`...)
		dst = AppendString(dst, p.Text)
		dst = appendExtras(dst, p.Extras)
	case Reasoning:
		dst = append(dst, `,"text":`...)
		dst = AppendString(dst, p.Text)
		dst = appendExtras(dst, p.Extras)
	case Image:
		dst = append(dst, `,"media_type":`...)
		dst = AppendString(dst, p.MediaType)
		dst = appendSource(dst, p.Source)
	case Document:
		dst = append(dst, `,"media_type":`...)
		dst = AppendString(dst, p.MediaType)
		dst = appendSource(dst, p.Source)
		dst = append(dst, `,"name":`...)
		dst = appendStringOrNull(dst, p.Name)
	case ToolCall:
		dst = append(dst, `,"tool_call_id":`...)
		dst = AppendString(dst, p.ID)
		dst = append(dst, `,"tool_name":`...)
		dst = AppendString(dst, p.Name)
		dst = append(dst, `,"tool_input":`...)
		dst = AppendArguments(dst, p.Input, "tool_input_raw")
		dst = appendExtras(dst, p.Extras)
	case ToolResult:
		dst = append(dst, `,"tool_call_id":`...)
		dst = AppendString(dst, p.ID)
		dst = append(dst, `,"result":`...)
		dst = AppendValue(dst, p.Result)
		dst = append(dst, `,"meta":`...)
		dst = AppendValue(dst, p.Meta)
		if p.IsError {
			dst = append(dst, `,"is_error":true`...)
		}
	}
	return append(dst, '}')
}

// AppendJSON appends the usage as JSON.
func (u Usage) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"in_t":`...)
	dst = strconv.AppendInt(dst, int64(u.InputTokens), 10)
	dst = append(dst, `,"op_t":`...)
	dst = strconv.AppendInt(dst, int64(u.OutputTokens), 10)
	dst = append(dst, `,"latency_ms":`...)
	dst = strconv.AppendInt(dst, int64(u.LatencyMS), 10)
	dst = append(dst, `,"cache_write_t":`...)
	dst = strconv.AppendInt(dst, int64(u.CacheWriteTokens), 10)
	dst = append(dst, `,"cache_read_t":`...)
	dst = strconv.AppendInt(dst, int64(u.CacheReadTokens), 10)
	if u.ReasoningTokens != 0 {
		dst = append(dst, `,"reasoning_t":`...)
		dst = strconv.AppendInt(dst, int64(u.ReasoningTokens), 10)
	}
	return append(dst, '}')
}

// AppendJSON appends the message as JSON.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"role":`...)
	dst = AppendString(dst, string(m.role))
	dst = append(dst, `,"content":[`...)
	for i, p := range m.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendContent(dst, p)
	}
	dst = append(dst, `],"usage":`...)
	if m.hasUsage {
		dst = m.usage.AppendJSON(dst)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"timestamp":`...)
	if m.hasTime {
		dst = strconv.AppendInt(dst, m.time, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"msg_id":`...)
	dst = AppendString(dst, m.id)
	return append(dst, '}')
}

// MarshalJSON is [Message.AppendJSON].
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// AppendJSON appends the context as JSON, tool_context included: whoever stores it stores what is hidden from the model.
func (c Context) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"messages":[`...)
	for i, m := range c.messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.AppendJSON(dst)
	}
	dst = append(dst, `],"conversation_summary":`...)
	dst = appendStringOrNull(dst, c.summary)
	dst = append(dst, `,"system_context":{`...)
	system := maps.Clone(c.system)
	if c.hidden != nil {
		if system == nil {
			system = map[string]JSON{}
		}
		system["tool_context"] = JSON(c.hidden.AppendJSON(nil))
	}
	for i, key := range slices.Sorted(maps.Keys(system)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, key)
		dst = append(dst, ':')
		dst = AppendValue(dst, system[key])
	}
	return append(dst, "}}"...)
}

// MarshalJSON is [Context.AppendJSON].
func (c Context) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// AppendJSON appends the values as a JSON object with sorted keys.
func (h Hidden) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, key)
		dst = append(dst, ':')
		dst = AppendValue(dst, h[key])
	}
	return append(dst, '}')
}

type wireUsage struct {
	In         int `json:"in_t"`
	Out        int `json:"op_t"`
	LatencyMS  int `json:"latency_ms"`
	CacheWrite int `json:"cache_write_t"`
	CacheRead  int `json:"cache_read_t"`
	Reasoning  int `json:"reasoning_t"`
}

func (w wireUsage) decode() Usage {
	return Usage{InputTokens: w.In, OutputTokens: w.Out, LatencyMS: w.LatencyMS, CacheWriteTokens: w.CacheWrite, CacheReadTokens: w.CacheRead, ReasoningTokens: w.Reasoning}
}

// DecodeUsage reads what [Usage.AppendJSON] wrote.
func DecodeUsage(data []byte) (Usage, error) {
	var w wireUsage
	if err := json.Unmarshal(data, &w); err != nil {
		return Usage{}, fmt.Errorf("reading a usage: %w", err)
	}
	return w.decode(), nil
}

type wireContent struct {
	Type       Kind                      `json:"type"`
	Text       *string                   `json:"text"`
	MediaType  string                    `json:"media_type"`
	SourceType SourceType                `json:"source_type"`
	Data       string                    `json:"data"`
	URL        string                    `json:"url"`
	Name       string                    `json:"name"`
	CallID     *string                   `json:"tool_call_id"`
	OldID      *string                   `json:"tool_id"`
	ToolName   string                    `json:"tool_name"`
	Input      jsontext.Value            `json:"tool_input"`
	InputRaw   *string                   `json:"tool_input_raw"`
	Result     jsontext.Value            `json:"result"`
	Meta       jsontext.Value            `json:"meta"`
	IsError    bool                      `json:"is_error"`
	Extras     map[string]jsontext.Value `json:"extras"`
}

type wireMessage struct {
	Role    Role          `json:"role"`
	Content []wireContent `json:"content"`
	Usage   *wireUsage    `json:"usage"`
	Time    *int64        `json:"timestamp"`
	ID      string        `json:"msg_id"`
}

type wireContext struct {
	Messages []wireMessage             `json:"messages"`
	Summary  string                    `json:"conversation_summary"`
	System   map[string]jsontext.Value `json:"system_context"`
}

func (w wireContent) extras() Extras {
	var e Extras
	for _, vendor := range slices.Sorted(maps.Keys(w.Extras)) {
		e = append(e, Extra{Vendor: vendor, Data: JSON(w.Extras[vendor])})
	}
	return e
}

func (w wireContent) callID() (string, error) {
	switch {
	case w.CallID != nil && w.OldID != nil && *w.CallID != *w.OldID:
		return "", fmt.Errorf("tool_call_id %q and tool_id %q differ", *w.CallID, *w.OldID)
	case w.CallID != nil:
		return *w.CallID, nil
	case w.OldID != nil:
		return *w.OldID, nil
	}
	return "", nil
}

func (w wireContent) decode() (Content, error) {
	source := Source{Type: w.SourceType, Data: w.Data, URL: w.URL}
	switch w.Type {
	case KindText, "":
		if w.Text == nil {
			return nil, fmt.Errorf("a text part without text")
		}
		return Text{Text: *w.Text, Extras: w.extras()}, nil
	case KindReasoning:
		var text string
		if w.Text != nil {
			text = *w.Text
		}
		return Reasoning{Text: text, Extras: w.extras()}, nil
	case KindImage:
		return Image{MediaType: w.MediaType, Source: source}, nil
	case KindDocument:
		if w.MediaType == "" {
			w.MediaType = "application/pdf"
		}
		return Document{MediaType: w.MediaType, Name: w.Name, Source: source}, nil
	case KindToolCall:
		id, err := w.callID()
		if err != nil {
			return nil, err
		}
		input := JSON(w.Input)
		if w.InputRaw != nil {
			input = JSON(*w.InputRaw)
		}
		return ToolCall{ID: id, Name: w.ToolName, Input: input, Extras: w.extras()}, nil
	case KindToolResult:
		id, err := w.callID()
		if err != nil {
			return nil, err
		}
		result, meta := JSON(w.Result), JSON(w.Meta)
		if result == "" {
			result = "null"
		}
		if meta == "null" {
			meta = ""
		}
		return ToolResult{ID: id, Result: result, Meta: meta, IsError: w.IsError}, nil
	}
	return nil, fmt.Errorf("unknown content type %q", string(w.Type))
}

func (w wireMessage) decode() (Message, error) {
	m := Message{id: w.ID, role: w.Role}
	m.parts = slices.Grow(m.parts, len(w.Content))
	for i, c := range w.Content {
		p, err := c.decode()
		if err != nil {
			return Message{}, fmt.Errorf("content[%d]: %w", i, err)
		}
		m.parts = append(m.parts, p)
	}
	if w.Usage != nil {
		m = m.WithUsage(w.Usage.decode())
	}
	if w.Time != nil {
		m = m.WithTime(*w.Time)
	}
	return m, nil
}

// DecodeMessage reads one message as it stands, valid or not; see [Message.Validate].
func DecodeMessage(data []byte) (Message, error) {
	var w wireMessage
	if err := json.Unmarshal(data, &w); err != nil {
		return Message{}, fmt.Errorf("reading a message: %w", err)
	}
	return w.decode()
}

// UnmarshalJSON is [DecodeMessage].
func (m *Message) UnmarshalJSON(data []byte) error {
	decoded, err := DecodeMessage(data)
	if err != nil {
		return err
	}
	*m = decoded
	return nil
}

// Decode reads a context. Every message must be valid, with one exception that old files need: results in a user message are split off into a tool message, in order, and reported.
func Decode(data []byte) (Context, []Warning, error) {
	var w wireContext
	if err := json.Unmarshal(data, &w); err != nil {
		return Context{}, nil, fmt.Errorf("reading a conversation: %w", err)
	}
	c := Context{summary: w.Summary}
	for _, key := range slices.Sorted(maps.Keys(w.System)) {
		if key == "tool_context" {
			var hidden map[string]jsontext.Value
			if err := json.Unmarshal(w.System[key], &hidden); err != nil {
				return Context{}, nil, fmt.Errorf("system_context.tool_context: want an object")
			}
			c.hidden = Hidden{}
			for k, v := range hidden {
				c.hidden[k] = JSON(v)
			}
			continue
		}
		c = c.WithSystem(key, JSON(w.System[key]))
	}
	var warnings []Warning
	for i, wm := range w.Messages {
		m, err := wm.decode()
		if err != nil {
			return Context{}, nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		split := splitResults(m)
		if len(split) > 1 || split[0].role != m.role {
			warnings = append(warnings, Warning{Code: "results-in-user-message", Text: fmt.Sprintf("messages[%d]: tool results in a user message were moved to a tool message", i)})
		}
		for _, part := range split {
			if err := part.Validate(); err != nil {
				return Context{}, nil, fmt.Errorf("messages[%d]: %w", i, err)
			}
		}
		c.messages = append(c.messages, split...)
	}
	return c, warnings, nil
}

// UnmarshalJSON is [Decode] without its warnings.
func (c *Context) UnmarshalJSON(data []byte) error {
	decoded, _, err := Decode(data)
	if err != nil {
		return err
	}
	*c = decoded
	return nil
}

// splitResults turns a user message with results into runs of tool and user messages, order kept.
func splitResults(m Message) []Message {
	if m.role != RoleUser || !slices.ContainsFunc(m.parts, isResult) {
		return []Message{m}
	}
	var out []Message
	for _, p := range m.parts {
		role := RoleUser
		if isResult(p) {
			role = RoleTool
		}
		if len(out) == 0 || out[len(out)-1].role != role {
			next := Message{id: m.id, role: role, time: m.time, hasTime: m.hasTime}
			out = append(out, next)
		}
		last := &out[len(out)-1]
		last.parts = append(last.parts, p)
	}
	return out
}

func isResult(p Content) bool { return p.Kind() == KindToolResult }
