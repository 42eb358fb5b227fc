package emulator

import (
	"slices"
	"strconv"
	"strings"
)

// bedrockRequest is what of a request concerns the format alone.
type bedrockRequest struct {
	thinks bool // reasoning is asked for
}

// readBedrock checks a request as the vendor does and fills q with what it asks.
func readBedrock(root *value, q *query) (bedrockRequest, *bedrockError) {
	r := &bedrockReader{}
	var req bedrockRequest
	r.check("", root, bedrockRequestShape)
	for _, name := range []string{"guardrailConfig", "promptVariables"} {
		if root.get(name).given() {
			r.refuse("emulator_unsupported: the emulator has no %s", name)
		}
	}
	if !r.ok() {
		return req, r.refused
	}
	thinking := root.get("additionalModelRequestFields").get("thinking")
	req.thinks = thinking.get("type").text == "enabled" || thinking.get("type").text == "adaptive"
	r.thinking(root, thinking)
	r.system(root.get("system"), q)
	names := r.tools(root.get("toolConfig"), q)
	r.messages(root.get("messages"), q, names)
	if r.ok() {
		q.index()
	}
	return req, r.refused
}

// thinking checks the budget of Claude's models. The service passes the field on, so that the words are the model's.
func (r *bedrockReader) thinking(root, v *value) {
	if v.get("type").text != "enabled" {
		return
	}
	const failed = "The model returned the following errors: "
	budget, err := strconv.Atoi(v.get("budget_tokens").text)
	limit, limited := strconv.Atoi(root.get("inferenceConfig").get("maxTokens").text)
	switch {
	case err != nil || budget < 1024:
		r.refuse(failed + "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case limited == nil && budget >= limit:
		r.refuse(failed + "`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	if choice := root.get("toolConfig").get("toolChoice"); choice.get("any").given() || choice.get("tool").given() {
		r.refuse(failed + "Thinking may not be enabled when tool_choice forces tool use.")
	}
}

func (r *bedrockReader) system(list *value, q *query) {
	var texts []string
	for i := range list.items {
		text := list.items[i].get("text")
		if text.kind == '"' && strings.TrimSpace(text.text) == "" {
			r.refuse("The text field in the SystemContentBlock object at system.%d is blank. Add text to the text field, and try again.", i)
		}
		texts = append(texts, text.text)
	}
	if texts != nil {
		q.turns = append(q.turns, turn{role: roleSystem, text: strings.Join(texts, "\n")})
	}
}

// tools returns the names of the tools, nil where there are none.
func (r *bedrockReader) tools(config *value, q *query) []string {
	var names []string
	for i, t := range config.get("tools").items {
		spec := t.get("toolSpec")
		if !spec.given() {
			if t.get("systemTool").given() {
				r.refuse("emulator_unsupported: the emulator has no tools that the vendor runs")
			}
			continue
		}
		name := spec.get("name").text
		if slices.Contains(names, name) {
			r.refuse("The tool names in toolConfig.tools must be unique: %s", name)
		}
		names = append(names, name)
		if schema := spec.get("inputSchema").get("json"); schema.kind != '{' || schema.get("type").text != "object" {
			r.refuse("The value at toolConfig.tools.%d.toolSpec.inputSchema.json.type must be one of the following: object.", i)
		}
	}
	q.schemas = config.get("tools").size()
	if choice := config.get("toolChoice").get("tool"); choice.given() && !slices.Contains(names, choice.get("name").text) {
		r.refuse("The tool at toolConfig.toolChoice.tool.name is not among the tools: %s", choice.get("name").text)
	}
	return names
}

// bedrockMessage is what the checks of order need of the message before.
type bedrockMessage struct {
	role string
	uses []string // the ids of its calls
}

func (r *bedrockReader) messages(list *value, q *query, tools []string) {
	if len(list.items) == 0 {
		r.refuse("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	var before bedrockMessage
	var documents []string
	for i := range list.items {
		m := r.message(i, &list.items[i], q, before, tools, &documents)
		if !r.ok() {
			return
		}
		if m.role != "system" {
			before = m
		}
	}
	if len(before.uses) > 0 {
		r.refuse("Expected toolResult blocks at messages.%d.content for the following Ids: %s", len(list.items), shorten(strings.Join(before.uses, ", "), 2000))
	}
}

func (r *bedrockReader) message(i int, v *value, q *query, before bedrockMessage, tools []string, documents *[]string) bedrockMessage {
	m := bedrockMessage{role: v.get("role").text}
	at := "messages." + strconv.Itoa(i)
	content := v.get("content")
	switch {
	case m.role == "system":
	case before.role == "" && m.role != "user":
		r.refuse("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	case before.role == m.role:
		r.refuse("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
	}
	if len(content.items) == 0 {
		r.refuse("The content field in the Message object at %s is empty. Add a ContentBlock object to the content field and try again.", at)
	}
	t := turn{role: roleUser}
	switch m.role {
	case "assistant":
		t.role = roleAssistant
	case "system":
		t.role = roleSystem
	}
	var texts, answered []string
	said, hasDocument := t.role == roleAssistant, false
	for j := range content.items {
		here, b := at+".content."+strconv.Itoa(j), &content.items[j]
		kind := bedrockKind(b)
		r.place(here, kind, m.role)
		switch kind {
		case "text":
			text := b.get("text").text
			if strings.TrimSpace(text) == "" {
				r.refuse("The text field in the ContentBlock object at %s is blank. Add text to the text field, and try again.", here)
			}
			texts = append(texts, text)
			said = true
		case "image":
			r.image(here, b.get("image"))
			t.images++
			said = true
		case "document":
			r.document(here, b.get("document"), documents)
			said, hasDocument = true, true
		case "toolUse":
			use := b.get("toolUse")
			id := use.get("toolUseId").text
			if slices.Contains(m.uses, id) {
				r.refuse("The toolUse blocks at %s.content contain duplicate Ids: %s", at, id)
			}
			if use.get("input").kind != '{' {
				r.refuse("The format of the value at %s.toolUse.input is invalid. Provide a json object for the field and try again.", here)
			}
			m.uses = append(m.uses, id)
			t.calls = append(t.calls, callRef{id: id, name: use.get("name").text, args: use.get("input").json()})
		case "toolResult":
			id := b.get("toolResult").get("toolUseId").text
			switch {
			case slices.Contains(answered, id):
				r.refuse("The toolResult blocks at %s.content contain duplicate Ids: %s", at, id)
			case !slices.Contains(before.uses, id):
				r.refuse("The number of toolResult blocks at %s.content exceeds the number of toolUse blocks of previous turn.", at)
			}
			answered = append(answered, id)
			q.turns = append(q.turns, r.result(here, b.get("toolResult"), documents))
		case "reasoningContent":
			if text := b.get(kind).get("reasoningText"); text.given() && !signs(text.get("signature").text, text.get("text").text) {
				r.refuse("The model returned the following errors: %s: Invalid `signature` in `thinking` block", here)
			}
		}
		if tools == nil && (kind == "toolUse" || kind == "toolResult") {
			r.refuse("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
		}
	}
	if hasDocument && len(texts) == 0 {
		r.refuse("A text block must be included beside the document at %s.content.", at)
	}
	if m.role == "user" && len(answered) < len(before.uses) {
		left := slices.DeleteFunc(slices.Clone(before.uses), func(id string) bool { return slices.Contains(answered, id) })
		r.refuse("Expected toolResult blocks at %s.content for the following Ids: %s", at, shorten(strings.Join(left, ", "), 2000))
	}
	if said {
		t.text = strings.Join(texts, "\n")
		q.turns = append(q.turns, t)
	}
	return m
}

// bedrockKind is the one member of a block.
func bedrockKind(v *value) string {
	for i, name := range v.keys {
		if v.items[i].given() {
			return name
		}
	}
	return ""
}

// bedrockPlaces says which blocks a message of a role may hold; others are passed over where no other rule speaks of them.
var bedrockPlaces = map[string][]string{
	"user":      {"text", "image", "document", "toolResult", "cachePoint"},
	"assistant": {"text", "toolUse", "reasoningContent", "cachePoint"},
	"system":    {"text", "cachePoint"},
}

func (r *bedrockReader) place(at, kind, role string) {
	if slices.Contains(bedrockPlaces[role], kind) {
		return
	}
	for _, places := range bedrockPlaces {
		if slices.Contains(places, kind) {
			r.refuse("The %s block at %s is not permitted in a message with the %s role.", kind, at, role)
			return
		}
	}
	r.refuse("emulator_unsupported: the emulator has no blocks of type %s", kind)
}

func (r *bedrockReader) result(at string, v *value, documents *[]string) turn {
	t := turn{role: roleTool, callID: v.get("toolUseId").text}
	var texts []string
	for j, b := range v.get("content").items {
		here := at + ".toolResult.content." + strconv.Itoa(j)
		switch kind := bedrockKind(&b); kind {
		case "text":
			texts = append(texts, b.get(kind).text)
		case "json":
			texts = append(texts, b.get(kind).json())
		case "image":
			r.image(here, b.get(kind))
			t.images++
		case "document":
			r.document(here, b.get(kind), documents)
		default:
			r.refuse("emulator_unsupported: the emulator has no results of type %s", kind)
		}
	}
	t.text = strings.Join(texts, "\n")
	return t
}

// image checks that bytes are of the kind that is said. Nothing is fetched.
func (r *bedrockReader) image(at string, v *value) {
	data := v.get("source").get("bytes")
	if decoded, ok := decodeBase64(data.text); data.given() && ok && !strings.HasPrefix(decoded, imageTypes["image/"+v.get("format").text]) {
		r.refuse("The provided image at %s does not match the specified image format.", at)
	}
}

// document checks the name, which no other document of the request may have.
func (r *bedrockReader) document(at string, v *value, names *[]string) {
	name := v.get("name").text
	odd := func(c rune) bool {
		return !strings.ContainsRune(" -()[]\t\n\r", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}
	if strings.ContainsFunc(name, odd) || strings.Contains(name, "  ") {
		r.refuse("The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.")
	}
	if slices.Contains(*names, name) {
		r.refuse("Messages contains duplicate document names: %s", name)
	}
	*names = append(*names, name)
	if data := v.get("source").get("bytes"); data.given() && v.get("format").text == "pdf" {
		if decoded, ok := decodeBase64(data.text); ok && !strings.HasPrefix(decoded, "%PDF") {
			r.refuse("The provided document at %s is not a valid PDF.", at)
		}
	}
}
