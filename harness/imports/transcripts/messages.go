package transcripts

import (
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
)

// message is a message that is being read. A vendor's message may hold what belongs to two of ours: Anthropic's users say what tools gave.
type message struct {
	role    conversation.Role
	parts   []conversation.Content
	results []conversation.Content
}

// roles of the vendors.
var roles = map[string]conversation.Role{
	"system": conversation.RoleSystem, "developer": conversation.RoleSystem,
	"user": conversation.RoleUser, "human": conversation.RoleUser,
	"assistant": conversation.RoleAssistant, "model": conversation.RoleAssistant, "ai": conversation.RoleAssistant,
	"tool": conversation.RoleTool, "function": conversation.RoleTool,
}

// messagesOf reads a list of messages, or of the items of OpenAI's Responses API.
func messagesOf(list strict.Node) ([]conversation.Message, error) {
	var all []message
	unnamed := calls{}
	for _, n := range list.Items() {
		m, err := readMessage(n, &unnamed)
		if err != nil {
			return nil, err
		}
		// Items of the Responses API, and results that came one by one, stand together as one message.
		if last := len(all) - 1; last >= 0 && n.Get("role").IsZero() && all[last].role == m.role && m.role == conversation.RoleAssistant {
			all[last].parts = append(all[last].parts, m.parts...)
			continue
		}
		all = append(all, m)
	}
	var out []conversation.Message
	results := func(parts []conversation.Content) {
		if last := len(out) - 1; last >= 0 && out[last].Role() == conversation.RoleTool {
			var before []conversation.Content
			for i := range out[last].Len() {
				before = append(before, out[last].Part(i))
			}
			out[last] = conversation.ToolResults(out[last].ID(), append(before, parts...)...)
			return
		}
		out = append(out, conversation.ToolResults("m"+strconv.Itoa(len(out)+1), parts...))
	}
	for _, m := range all {
		if len(m.results) > 0 {
			results(m.results)
		}
		if len(m.parts) > 0 || len(m.results) == 0 {
			out = append(out, conversation.NewMessage(m.role, "m"+strconv.Itoa(len(out)+1), m.parts...))
		}
	}
	return out, nil
}

// calls gives ids to calls of vendors that give none: a result answers the first open call of its name.
type calls struct {
	n    int
	open map[string][]string
}

func (c *calls) call(id, name string) string {
	if id != "" {
		return id
	}
	c.n++
	id = name + "-" + strconv.Itoa(c.n)
	if c.open == nil {
		c.open = map[string][]string{}
	}
	c.open[name] = append(c.open[name], id)
	return id
}

func (c *calls) result(id, name string) string {
	if id != "" {
		return id
	}
	if list := c.open[name]; len(list) > 0 {
		c.open[name] = list[1:]
		return list[0]
	}
	return name // which answers nothing, and says what it meant to
}

func readMessage(n strict.Node, unnamed *calls) (message, error) {
	if n.Kind() != strict.Mapping {
		return message{}, failure.WithHint(failure.At(n.Pos(), failure.Input, "want a message, got %s", n.Kind()), "a message is a mapping with role and content")
	}
	name := n.Get("role").Text()
	switch {
	case name == "" && n.Get("parts").Kind() == strict.Sequence:
		name = "user" // Gemini's default
	case name == "":
		return item(n)
	}
	role, ok := roles[name]
	if !ok {
		known := []string{"system", "developer", "user", "assistant", "model", "tool", "function"}
		return message{}, failure.WithHint(failure.At(n.Get("role").Pos(), failure.Input, "unknown role %q", name), "%s", strict.Suggest(name, known))
	}
	m := message{role: role}
	content := n.Get("content")
	if content.IsZero() {
		content = n.Get("parts")
	}
	if role == conversation.RoleTool {
		id := n.Get("tool_call_id").Text()
		if id == "" && name == "function" {
			id = functionID(n.Get("name").Text())
		}
		if id != "" || content.Kind() == strict.String {
			m.results = append(m.results, conversation.ToolResult{ID: id, Result: resultOf(content)})
			return m, nil
		}
	}
	if err := m.content(content, unnamed); err != nil {
		return message{}, err
	}
	for _, call := range n.Get("tool_calls").Items() {
		f := call.Get("function")
		if f.IsZero() {
			f = call
		}
		id := unnamed.call(call.Get("id").Text(), f.Get("name").Text())
		input := f.Get("arguments")
		if input.IsZero() {
			input = f.Get("args")
		}
		m.parts = append(m.parts, conversation.ToolCall{ID: id, Name: f.Get("name").Text(), Input: argumentsOf(input)})
	}
	if f := n.Get("function_call"); f.Kind() == strict.Mapping {
		m.parts = append(m.parts, conversation.ToolCall{ID: functionID(f.Get("name").Text()), Name: f.Get("name").Text(), Input: argumentsOf(f.Get("arguments"))})
	}
	return m, nil
}

// functionID stands for the id of a call in the older form of OpenAI's API, which has none.
func functionID(name string) string { return "function:" + name }

// content reads a text or a list of parts.
func (m *message) content(n strict.Node, unnamed *calls) error {
	switch n.Kind() {
	case strict.String:
		m.say(n.Text())
	case strict.Sequence:
		for _, part := range n.Items() {
			switch part.Kind() {
			case strict.String:
				m.say(part.Text())
			case strict.Mapping:
				m.part(part, unnamed)
			default:
				return failure.At(part.Pos(), failure.Input, "want a part of a message, got %s", part.Kind())
			}
		}
	case strict.Missing, strict.Null:
	default:
		return failure.WithHint(failure.At(n.Pos(), failure.Input, "want the content of a message, got %s", n.Kind()), "write a text or a list of parts")
	}
	return nil
}

func (m *message) say(text string) {
	if text != "" {
		m.parts = append(m.parts, conversation.Text{Text: text})
	}
}

// part reads one part: of Anthropic and OpenAI by their type, of Gemini and Bedrock by their one key. What is none of these is nothing that rules speak of.
func (m *message) part(n strict.Node, unnamed *calls) {
	first := func(keys ...string) strict.Node {
		for _, key := range keys {
			if v := n.Get(key); !v.IsZero() {
				return v
			}
		}
		return strict.Node{}
	}
	kind := n.Get("type").Text()
	switch {
	case kind == "tool_use":
		m.parts = append(m.parts, conversation.ToolCall{ID: n.Get("id").Text(), Name: n.Get("name").Text(), Input: argumentsOf(n.Get("input"))})
	case kind == "tool_result":
		m.results = append(m.results, conversation.ToolResult{ID: n.Get("tool_use_id").Text(), Result: resultOf(n.Get("content")), IsError: n.Get("is_error").Text() == "true"})
	case kind == "thinking" || kind == "reasoning":
		m.parts = append(m.parts, conversation.Reasoning{Text: first("thinking", "text").Text()})
	case kind == "refusal":
		m.say(n.Get("refusal").Text())
	case n.Get("text").Kind() == strict.String && n.Get("thought").Text() == "true":
		m.parts = append(m.parts, conversation.Reasoning{Text: n.Get("text").Text()})
	case n.Get("text").Kind() == strict.String:
		m.say(n.Get("text").Text())
	case first("functionCall", "function_call").Kind() == strict.Mapping:
		f := first("functionCall", "function_call")
		id := unnamed.call(f.Get("id").Text(), f.Get("name").Text())
		m.parts = append(m.parts, conversation.ToolCall{ID: id, Name: f.Get("name").Text(), Input: argumentsOf(f.Get("args"))})
	case first("functionResponse", "function_response").Kind() == strict.Mapping:
		f := first("functionResponse", "function_response")
		m.results = append(m.results, conversation.ToolResult{ID: unnamed.result(f.Get("id").Text(), f.Get("name").Text()), Result: resultOf(f.Get("response"))})
	case n.Get("toolUse").Kind() == strict.Mapping:
		u := n.Get("toolUse")
		m.parts = append(m.parts, conversation.ToolCall{ID: u.Get("toolUseId").Text(), Name: u.Get("name").Text(), Input: argumentsOf(u.Get("input"))})
	case n.Get("toolResult").Kind() == strict.Mapping:
		r := n.Get("toolResult")
		m.results = append(m.results, conversation.ToolResult{ID: r.Get("toolUseId").Text(), Result: resultOf(r.Get("content")), IsError: r.Get("status").Text() == "error"})
	}
}

// item reads an item of OpenAI's Responses API that has no role.
func item(n strict.Node) (message, error) {
	m := message{role: conversation.RoleAssistant}
	switch kind := n.Get("type").Text(); kind {
	case "function_call", "custom_tool_call":
		input := n.Get("arguments")
		if input.IsZero() {
			input = n.Get("input")
		}
		m.parts = append(m.parts, conversation.ToolCall{ID: n.Get("call_id").Text(), Name: n.Get("name").Text(), Input: argumentsOf(input)})
	case "function_call_output", "custom_tool_call_output":
		m.role = conversation.RoleTool
		m.results = append(m.results, conversation.ToolResult{ID: n.Get("call_id").Text(), Result: resultOf(n.Get("output"))})
	case "":
		return m, failure.WithHint(failure.At(n.Pos(), failure.Input, "a message without a role"), "add it: role: user")
	}
	return m, nil // the calls that a vendor runs itself, reasoning and the like
}

// argumentsOf are the arguments of a call as the model wrote them.
func argumentsOf(n strict.Node) conversation.JSON {
	switch n.Kind() {
	case strict.String:
		return conversation.JSON(n.Text())
	case strict.Missing, strict.Null:
		return ""
	}
	return conversation.JSON(n.JSON())
}

// resultOf is what a tool gave: one text where there are only texts.
func resultOf(n strict.Node) conversation.JSON {
	switch n.Kind() {
	case strict.Missing:
		return `""`
	case strict.Sequence:
		var texts []string
		for _, part := range n.Items() {
			text := part.Get("text")
			if part.Kind() == strict.String {
				text = part
			}
			if text.Kind() != strict.String {
				return conversation.JSON(n.JSON())
			}
			texts = append(texts, text.Text())
		}
		return conversation.String(strings.Join(texts, "\n"))
	}
	return conversation.JSON(n.JSON())
}

// systemOf is the system prompt that stands beside the messages.
func systemOf(n strict.Node) string {
	for _, key := range []string{"system", "systemInstruction", "system_instruction", "instructions"} {
		v := n.Get(key)
		if v.Kind() == strict.String {
			return v.Text()
		}
		var m message
		parts := v
		if v.Kind() == strict.Mapping {
			parts = v.Get("parts")
		}
		if parts.Kind() != strict.Sequence || m.content(parts, &calls{}) != nil {
			continue
		}
		return conversation.NewMessage(conversation.RoleSystem, "", m.parts...).Text()
	}
	return ""
}

// toolsOf are the tools that a request shows a model; false where it does not say. Tools that a vendor runs itself are none of the agent's.
func toolsOf(n strict.Node) ([]tool.Spec, bool) {
	list := n.Get("tools")
	if list.IsZero() {
		list = n.Get("toolConfig").Get("tools")
	}
	functions := n.Get("functions")
	if list.Kind() != strict.Sequence && functions.Kind() != strict.Sequence {
		return nil, false
	}
	var specs []tool.Spec
	add := func(f strict.Node, schema strict.Node) {
		if name := f.Get("name").Text(); name != "" {
			spec := tool.Spec{Name: name, Description: f.Get("description").Text(), Scope: tool.External}
			if schema.Kind() == strict.Mapping {
				spec.Parameters = conversation.JSON(lowerTypes(schema).JSON())
			}
			specs = append(specs, spec)
		}
	}
	schemaOf := func(f strict.Node) strict.Node {
		for _, key := range []string{"parameters", "parametersJsonSchema", "input_schema"} {
			if v := f.Get(key); v.Kind() == strict.Mapping {
				return v
			}
		}
		return f.Get("inputSchema").Get("json")
	}
	for _, f := range functions.Items() {
		add(f, schemaOf(f))
	}
	for _, t := range list.Items() {
		for _, key := range []string{"functionDeclarations", "function_declarations"} {
			for _, f := range t.Get(key).Items() {
				add(f, schemaOf(f))
			}
		}
		f := t
		for _, key := range []string{"function", "custom", "toolSpec"} {
			if inner := t.Get(key); inner.Kind() == strict.Mapping {
				f = inner
			}
		}
		add(f, schemaOf(f))
	}
	return specs, true
}

// lowerTypes writes the types of a schema in small letters: Gemini's are those of OpenAPI in capitals.
func lowerTypes(n strict.Node) strict.Node {
	switch n.Kind() {
	case strict.Mapping:
		var list []strict.Field
		for key, v := range n.Fields() {
			if key.Name == "type" && v.Kind() == strict.String {
				v = v.WithText(strings.ToLower(v.Text()))
			}
			list = append(list, strict.Field{Key: key, Value: lowerTypes(v)})
		}
		return n.NewMapping(list)
	case strict.Sequence:
		var list []strict.Node
		for _, v := range n.Items() {
			list = append(list, lowerTypes(v))
		}
		return n.NewSequence(list)
	}
	return n
}
