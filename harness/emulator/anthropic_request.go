package emulator

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// anthropicRequest is what of a request concerns the format alone.
type anthropicRequest struct {
	stream bool
	thinks bool // reasoning is asked for
	omits  bool // its text is not to be shown
}

// shownThinking is the text of the reasoning as it is shown.
func (r *anthropicRequest) shownThinking(answer *reply) string {
	if r.omits {
		return ""
	}
	return answer.reasoning
}

// anthropicReader reads a request. The checks follow the vendor's words where these are known; the first refusal ends it.
type anthropicReader struct {
	latest  bool // the newer version of the API
	refused *anthropicError
}

// readAnthropic checks a request as the vendor does and fills q with what it asks.
func readAnthropic(root *value, q *query, version string) (anthropicRequest, *anthropicError) {
	r := &anthropicReader{latest: version == anthropicLatest}
	req := r.request(root, q)
	return req, r.refused
}

func (r *anthropicReader) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = &anthropicError{400, invalidRequest, fmt.Sprintf(format, args...)}
	}
}

func (r *anthropicReader) ok() bool { return r.refused == nil }

// The vendor's words for the kinds of values.
var anthropicKinds = map[byte]string{'"': "a valid string", '[': "a valid list", '{': "a valid dictionary", 't': "a valid boolean"}

// kind checks that a value is of a kind ('t' stands for both booleans).
func (r *anthropicReader) kind(at string, v *value, want byte) bool {
	got := byte(v.kind)
	if got == 'f' {
		got = 't'
	}
	if got != want {
		if v.kind == 0 {
			r.refuse("%s: Field required", at)
		} else {
			r.refuse("%s: Input should be %s", at, anthropicKinds[want])
		}
	}
	return r.ok()
}

// whole checks a whole number of at least low.
func (r *anthropicReader) whole(at string, v *value, low int64) int64 {
	n, err := strconv.ParseInt(v.text, 10, 64)
	switch {
	case v.kind == 0:
		r.refuse("%s: Field required", at)
	case v.kind != '0' || err != nil:
		r.refuse("%s: Input should be a valid integer", at)
	case n < low:
		r.refuse("%s: Input should be greater than or equal to %d", at, low)
	}
	return n
}

func (r *anthropicReader) between(at string, v *value, low, high float64) {
	x, err := strconv.ParseFloat(v.text, 64)
	switch {
	case v.kind != '0' || err != nil:
		r.refuse("%s: Input should be a valid number", at)
	case x < low:
		r.refuse("%s: Input should be greater than or equal to %g", at, low)
	case x > high:
		r.refuse("%s: Input should be less than or equal to %g", at, high)
	}
}

func (r *anthropicReader) oneOf(at string, v *value, choices ...string) {
	if v.kind != '"' || !slices.Contains(choices, v.text) {
		r.refuse("%s: Input should be %s", at, quotedList(choices, "or"))
	}
}

// keys refuses members of an object that the format does not know.
func (r *anthropicReader) keys(at string, v *value, known ...string) {
	for _, name := range v.keys {
		if !slices.Contains(known, name) {
			if at != "" {
				name = at + "." + name
			}
			r.refuse("%s: Extra inputs are not permitted", shorten(name, 200))
		}
	}
}

// tag checks the member type of an object and returns it.
func (r *anthropicReader) tag(at string, v *value, choices ...string) string {
	if !r.kind(at, v, '{') {
		return ""
	}
	t := v.get("type")
	switch {
	case t.kind == 0:
		r.refuse("%s: Unable to extract tag using discriminator 'type'", at)
	case t.kind != '"' || !slices.Contains(choices, t.text):
		r.refuse("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", at, shorten(t.text, 200), strings.Join(choices, "', '"))
	}
	return t.text
}

var anthropicParameters = []string{"model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences", "thinking", "output_config", "metadata", "service_tier", "cache_control", "container", "inference_geo"}

var anthropicSampling = []string{"temperature", "top_p", "top_k"}

func (r *anthropicReader) request(root *value, q *query) anthropicRequest {
	var req anthropicRequest
	if root.kind != '{' {
		r.refuse("Input should be a valid dictionary")
		return req
	}
	known := anthropicParameters
	if r.latest {
		known = slices.Concat(known, []string{"speed", "diagnostics"})
	} else {
		known = slices.Concat(known, anthropicSampling)
	}
	r.keys("", root, known...)
	model := root.get("model")
	if r.kind("model", model, '"') && model.text == "" {
		r.refuse("model: String should have at least 1 character")
	}
	q.model = model.text
	limit := r.whole("max_tokens", root.get("max_tokens"), 1)
	r.scalars(root)
	r.system(root.get("system"), q)
	r.thinking(root, &req, limit)
	r.tools(root, q)
	r.messages(root.get("messages"), q, root.get("thinking").get("type").text == "enabled")
	if r.ok() {
		q.index()
	}
	req.stream = root.get("stream").isTrue()
	return req
}

func (r *anthropicReader) scalars(root *value) {
	for _, name := range []string{"stream"} {
		if v := root.get(name); v.kind != 0 {
			r.kind(name, v, 't')
		}
	}
	for _, name := range []string{"metadata", "output_config"} {
		if v := root.get(name); v.given() {
			r.kind(name, v, '{')
		}
	}
	if !r.latest {
		if v := root.get("temperature"); v.given() {
			r.between("temperature", v, 0, 1)
		}
		if v := root.get("top_p"); v.given() {
			r.between("top_p", v, 0, 1)
		}
		if v := root.get("top_k"); v.given() {
			r.whole("top_k", v, 0)
		}
	}
	if v := root.get("service_tier"); v.given() {
		r.oneOf("service_tier", v, "auto", "standard_only")
	}
	if stops := root.get("stop_sequences"); stops.given() && r.kind("stop_sequences", stops, '[') {
		for i := range stops.items {
			if r.kind("stop_sequences."+strconv.Itoa(i), &stops.items[i], '"') && strings.TrimSpace(stops.items[i].text) == "" {
				r.refuse("stop_sequences: each stop sequence must contain non-whitespace")
			}
		}
	}
	if output := root.get("output_config"); output.given() && r.ok() {
		r.keys("output_config", output, "effort", "format")
		if effort := output.get("effort"); effort.given() {
			r.oneOf("output_config.effort", effort, "low", "medium", "high", "xhigh", "max")
		}
		if format := output.get("format"); format.given() && r.tag("output_config.format", format, "json_schema") != "" {
			r.kind("output_config.format.schema", format.get("schema"), '{')
		}
	}
}

func (r *anthropicReader) system(v *value, q *query) {
	if !v.given() || !r.ok() {
		return
	}
	t := turn{role: roleSystem, text: v.text}
	if v.kind == '[' {
		var texts []string
		for i := range v.items {
			at := "system." + strconv.Itoa(i)
			if r.tag(at, &v.items[i], "text") != "" {
				texts = append(texts, r.text(at, &v.items[i], "system"))
			}
		}
		t.text = strings.Join(texts, "\n")
	} else {
		r.kind("system", v, '"')
	}
	q.turns = append(q.turns, t)
}

// text returns the text of a text block. place names the list it stands in, as the vendor does.
func (r *anthropicReader) text(at string, v *value, place string) string {
	r.keys(at, v, "type", "text", "cache_control", "citations")
	text := v.get("text")
	if r.kind(at+".text", text, '"') {
		switch {
		case text.text == "":
			r.refuse("%s: text content blocks must be non-empty", place)
		case strings.TrimSpace(text.text) == "":
			r.refuse("%s: text content blocks must contain non-whitespace text", place)
		}
	}
	return text.text
}

func (r *anthropicReader) thinking(root *value, req *anthropicRequest, limit int64) {
	v := root.get("thinking")
	if !v.given() || !r.ok() {
		return
	}
	kinds := []string{"adaptive", "disabled", "enabled"}
	if r.latest {
		kinds = append(kinds, "between_tools")
	}
	kind := r.tag("thinking", v, kinds...)
	at := "thinking." + kind
	switch kind {
	case "enabled":
		r.keys(at, v, "type", "budget_tokens", "display")
		if budget := r.whole(at+".budget_tokens", v.get("budget_tokens"), 1024); budget >= limit {
			r.refuse("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
		}
		for _, name := range []string{"temperature", "top_k"} {
			if x := root.get(name); x.given() && x.text != "1" && x.text != "1.0" {
				r.refuse("`%s` may only be set to 1 when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking", name)
			}
		}
	case "disabled":
		r.keys(at, v, "type")
		return
	default:
		r.keys(at, v, "type", "display")
	}
	if display := v.get("display"); display.given() {
		r.oneOf(at+".display", display, "summarized", "omitted")
		req.omits = display.text == "omitted"
	}
	if choice := root.get("tool_choice").get("type").text; choice == "any" || choice == "tool" {
		r.refuse("Thinking may not be enabled when tool_choice forces tool use.")
	}
	req.thinks = true
}

func (r *anthropicReader) tools(root *value, q *query) {
	tools, choice := root.get("tools"), root.get("tool_choice")
	if !r.ok() {
		return
	}
	if !tools.given() || len(tools.items) == 0 {
		if tools.given() {
			r.kind("tools", tools, '[')
		}
		if choice.given() {
			r.refuse("tool_choice: Tool_choice may only be specified while providing tools.")
		}
		return
	}
	if !r.kind("tools", tools, '[') {
		return
	}
	var names []string
	for i := range tools.items {
		name := r.tool("tools."+strconv.Itoa(i), &tools.items[i])
		if !r.ok() {
			return
		}
		if slices.Contains(names, name) {
			r.refuse("tools: Tool names must be unique.")
		}
		names = append(names, name)
	}
	q.schemas = tools.size()
	if !choice.given() {
		return
	}
	switch r.tag("tool_choice", choice, "any", "auto", "none", "tool") {
	case "tool":
		if name := choice.get("name"); r.kind("tool_choice.tool.name", name, '"') && !slices.Contains(names, name.text) {
			r.refuse("tool_choice.tool.name: Tool '%s' not found in provided tools", shorten(name.text, 200))
		}
	case "none":
		r.keys("tool_choice.none", choice, "type")
	}
	if single := choice.get("disable_parallel_tool_use"); single.given() {
		r.kind("tool_choice."+choice.get("type").text+".disable_parallel_tool_use", single, 't')
	}
}

// tool checks one tool and returns its name. Tools that run at the vendor have types of their own; of them only the name is looked at.
func (r *anthropicReader) tool(at string, v *value) string {
	if !r.kind(at, v, '{') {
		return ""
	}
	name := v.get("name")
	if kind := v.get("type"); kind.given() && kind.text != "custom" {
		r.kind(at+".name", name, '"')
		return name.text
	}
	at += ".custom"
	r.keys(at, v, "type", "name", "description", "input_schema", "cache_control", "strict", "eager_input_streaming", "allowed_callers", "defer_loading", "input_examples")
	if r.kind(at+".name", name, '"') && !isName(name.text, 128) {
		r.refuse("%s.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", at)
	}
	if d := v.get("description"); d.given() {
		r.kind(at+".description", d, '"')
	}
	schema := v.get("input_schema")
	if r.kind(at+".input_schema", schema, '{') {
		if kind := schema.get("type"); kind.kind == 0 {
			r.refuse("%s.input_schema.type: Field required", at)
		} else if kind.text != "object" {
			r.refuse("%s.input_schema.type: Input should be 'object'", at)
		}
	}
	return name.text
}

// isName reports whether a text is made of at most so many letters, digits, _ and -.
func isName(s string, longest int) bool {
	return s != "" && len(s) <= longest && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

// anthropicMessage is one message as the check of pairs needs it.
type anthropicMessage struct {
	assistant bool
	uses      []string // the ids of calls
	results   []place  // the results of calls
	thoughts  bool     // the first block is reasoning
	first     string   // the type of the first block
}

type place struct {
	id    string
	block int
}

func (r *anthropicReader) messages(list *value, q *query, thinking bool) {
	if !r.ok() || !r.kind("messages", list, '[') {
		return
	}
	if len(list.items) == 0 {
		r.refuse("messages: at least one message is required")
		return
	}
	messages := make([]anthropicMessage, 0, len(list.items))
	for i := range list.items {
		m := r.message("messages."+strconv.Itoa(i), &list.items[i], q, i == len(list.items)-1)
		if !r.ok() {
			return
		}
		messages = append(messages, m)
	}
	if messages[0].assistant {
		r.refuse(`messages: first message must use the "user" role`)
	}
	r.pairs(messages)
	if thinking {
		r.opening(messages)
	}
}

var (
	anthropicBlocks = map[string][]string{
		"user":      {"document", "image", "search_result", "text", "tool_result"},
		"assistant": {"document", "image", "redacted_thinking", "text", "thinking", "tool_use"},
		"system":    {"text"},
	}
	anthropicTags = []string{"document", "image", "redacted_thinking", "search_result", "text", "thinking", "tool_result", "tool_use"}
)

func (r *anthropicReader) message(at string, v *value, q *query, last bool) anthropicMessage {
	var m anthropicMessage
	if !r.kind(at, v, '{') {
		return m
	}
	r.keys(at, v, "role", "content")
	role := v.get("role")
	switch {
	case role.kind == 0:
		r.refuse("%s.role: Field required", at)
	case role.text == "system" && !r.latest:
		r.refuse("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.")
	case anthropicBlocks[role.text] == nil:
		r.oneOf(at+".role", role, "user", "assistant")
	}
	if !r.ok() {
		return m
	}
	m.assistant = role.text == "assistant"
	content := v.get("content")
	switch content.kind {
	case '"':
		if strings.TrimSpace(content.text) == "" && !(m.assistant && last) {
			r.refuse("messages: text content blocks must contain non-whitespace text")
		}
		q.turns = append(q.turns, turn{role: anthropicRole(role.text), text: content.text})
		return m
	case '[':
	case 0:
		r.refuse("%s.content: Field required", at)
		return m
	default:
		r.refuse("%s.content: Input should be a valid list", at)
		return m
	}
	if len(content.items) == 0 && !(m.assistant && last) {
		r.refuse("%s: all messages must have non-empty content except for the optional final assistant message", at)
	}
	t := turn{role: anthropicRole(role.text)}
	var texts []string
	said := m.assistant
	for i := range content.items {
		here, b := at+".content."+strconv.Itoa(i), &content.items[i]
		kind := r.tag(here, b, anthropicTags...)
		if r.ok() && !slices.Contains(anthropicBlocks[role.text], kind) {
			r.refuse("%s: `%s` blocks are not permitted in `%s` messages", here, kind, role.text)
		}
		if !r.ok() {
			return m
		}
		if i == 0 {
			m.first, m.thoughts = kind, kind == "thinking" || kind == "redacted_thinking"
		}
		switch kind {
		case "text":
			texts = append(texts, r.text(here, b, "messages"))
			said = true
		case "image":
			r.image(here+".image", b)
			t.images++
			said = true
		case "document":
			if m.assistant && r.latest {
				r.refuse("%s: `document` blocks are not permitted in `assistant` messages", here)
			}
			r.document(here+".document", b)
			said = true
		case "search_result":
			said = true
		case "thinking":
			r.thought(here, b)
		case "redacted_thinking":
			r.keys(here+".redacted_thinking", b, "type", "data")
			r.kind(here+".redacted_thinking.data", b.get("data"), '"')
		case "tool_use":
			c := r.use(here+".tool_use", b)
			m.uses = append(m.uses, c.id)
			t.calls = append(t.calls, c)
		case "tool_result":
			result := r.result(here+".tool_result", b)
			m.results = append(m.results, place{result.callID, i})
			q.turns = append(q.turns, result)
		}
	}
	if said {
		t.text = strings.Join(texts, "\n")
		q.turns = append(q.turns, t)
	}
	return m
}

func anthropicRole(name string) role {
	switch name {
	case "assistant":
		return roleAssistant
	case "system":
		return roleSystem
	}
	return roleUser
}

func (r *anthropicReader) thought(at string, v *value) {
	r.keys(at+".thinking", v, "type", "thinking", "signature")
	text, sign := v.get("thinking"), v.get("signature")
	if r.kind(at+".thinking.thinking", text, '"') && r.kind(at+".thinking.signature", sign, '"') && !signs(sign.text, text.text) {
		r.refuse("%s: Invalid `signature` in `thinking` block", at)
	}
}

const toolUseID = "^[a-zA-Z0-9_-]+$"

func (r *anthropicReader) id(at string, v *value) string {
	if r.kind(at, v, '"') && !isName(v.text, len(v.text)) {
		r.refuse("%s: String should match pattern '%s'", at, toolUseID)
	}
	return v.text
}

func (r *anthropicReader) use(at string, v *value) callRef {
	r.keys(at, v, "type", "id", "name", "input", "cache_control", "caller", "toolset_name")
	c := callRef{id: r.id(at+".id", v.get("id")), name: v.get("name").text}
	r.kind(at+".name", v.get("name"), '"')
	input := v.get("input")
	if r.kind(at+".input", input, '{') {
		c.args = input.json()
	}
	return c
}

func (r *anthropicReader) result(at string, v *value) turn {
	r.keys(at, v, "type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name")
	t := turn{role: roleTool, callID: r.id(at+".tool_use_id", v.get("tool_use_id"))}
	if isError := v.get("is_error"); isError.given() {
		r.kind(at+".is_error", isError, 't')
	}
	content := v.get("content")
	switch content.kind {
	case 0, 'n':
	case '"':
		t.text = content.text
	case '[':
		var texts []string
		for i := range content.items {
			here, b := at+".content."+strconv.Itoa(i), &content.items[i]
			switch r.tag(here, b, "document", "image", "search_result", "text", "tool_reference") {
			case "text":
				texts = append(texts, r.text(here, b, "messages"))
			case "image":
				r.image(here+".image", b)
				t.images++
			case "document":
				r.document(here+".document", b)
			}
		}
		t.text = strings.Join(texts, "\n")
	default:
		r.refuse("%s.content: Input should be a valid list", at)
	}
	return t
}

// image checks an image. Nothing is fetched.
func (r *anthropicReader) image(at string, v *value) {
	r.keys(at, v, "type", "source", "cache_control", "transformations")
	source := v.get("source")
	switch kind := r.tag(at+".source", source, "base64", "file", "url"); kind {
	case "url":
		r.kind(at+".source.url.url", source.get("url"), '"')
	case "base64":
		at += ".source.base64"
		media := source.get("media_type")
		r.oneOf(at+".media_type", media, "image/jpeg", "image/png", "image/gif", "image/webp")
		if data, ok := r.data(at, source); ok && !strings.HasPrefix(data, imageTypes[media.text]) {
			r.refuse("%s.data: The image was specified using the %s media type, but does not appear to be one", at, media.text)
		}
	}
}

func (r *anthropicReader) document(at string, v *value) {
	r.keys(at, v, "type", "source", "title", "context", "citations", "cache_control")
	source := v.get("source")
	switch r.tag(at+".source", source, "base64", "content", "file", "text", "url") {
	case "url":
		r.kind(at+".source.url.url", source.get("url"), '"')
	case "base64":
		at += ".source.base64"
		r.oneOf(at+".media_type", source.get("media_type"), "application/pdf")
		if data, ok := r.data(at, source); ok && !strings.HasPrefix(data, "%PDF") {
			r.refuse("%s.data: The PDF specified was not valid.", at)
		}
	}
}

// data decodes the bytes of a source.
func (r *anthropicReader) data(at string, source *value) (string, bool) {
	data := source.get("data")
	if !r.kind(at+".data", data, '"') {
		return "", false
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(data.text)
	if err != nil || len(decoded) == 0 {
		r.refuse("%s: invalid base64 data", at)
	}
	return string(decoded), r.ok()
}

// pairs checks that each call has one result, at the beginning of the message after it, and each result its call. Messages of one role in a row count as one.
func (r *anthropicReader) pairs(messages []anthropicMessage) {
	var open []string // the calls of the latest assistant messages
	var at int        // where they were made
	for i := 0; i < len(messages); {
		m := messages[i]
		if m.assistant {
			open, at = nil, i
			for ; i < len(messages) && messages[i].assistant; i++ {
				for _, id := range messages[i].uses {
					if slices.Contains(open, id) {
						r.refuse("messages.%d: `tool_use` ids must be unique", i)
						return
					}
					open = append(open, id)
				}
			}
			if i == len(messages) && len(open) > 0 {
				r.unanswered(at, open)
			}
			continue
		}
		var answered []string
		for ; i < len(messages) && !messages[i].assistant; i++ {
			for _, result := range messages[i].results {
				switch {
				case !slices.Contains(open, result.id):
					r.refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, result.block, shorten(result.id, 200))
				case slices.Contains(answered, result.id):
					r.refuse("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, result.block, shorten(result.id, 200))
				}
				answered = append(answered, result.id)
			}
			if len(messages[i].results) > 0 && messages[i].first != "tool_result" {
				r.unanswered(at, open)
			}
		}
		open = slices.DeleteFunc(open, func(id string) bool { return slices.Contains(answered, id) })
		if len(open) > 0 {
			r.unanswered(at, open)
		}
		open = nil
		if !r.ok() {
			return
		}
	}
}

func (r *anthropicReader) unanswered(at int, ids []string) {
	r.refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at, shorten(strings.Join(ids, ", "), 2000))
}

// opening checks that the assistant message before the last results begins with its reasoning: thinking with a budget wants it back.
func (r *anthropicReader) opening(messages []anthropicMessage) {
	last := len(messages) - 1
	if !r.ok() || len(messages[last].results) == 0 {
		return
	}
	for last >= 0 && !messages[last].assistant {
		last--
	}
	if last >= 0 && len(messages[last].uses) > 0 && !messages[last].thoughts {
		r.refuse("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", last, messages[last].first)
	}
}
