package emulator

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const invalidRequest = "invalid_request_error"

// openAIRequest is what of a request concerns the format alone.
type openAIRequest struct {
	stream      bool
	usage       bool // a usage frame ends the stream
	obfuscation bool
}

// openAIReader reads a request. The checks follow the vendor's order and words where these are known; the first refusal ends it.
type openAIReader struct {
	refused *openAIError
}

// readOpenAI checks a request as the vendor does and fills q with what it asks.
func readOpenAI(root *value, q *query) (openAIRequest, *openAIError) {
	r := &openAIReader{}
	req := r.request(root, q)
	return req, r.refused
}

func (r *openAIReader) refuse(param, code, format string, args ...any) {
	if r.refused == nil {
		r.refused = &openAIError{400, fmt.Sprintf(format, args...), invalidRequest, param, code}
	}
}

func (r *openAIReader) ok() bool { return r.refused == nil }

// missing refuses the absence of a parameter.
func (r *openAIReader) missing(param string) {
	r.refuse(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// wrongType refuses a value; want is as in "a string", "one of a string or array of objects".
func (r *openAIReader) wrongType(param, want string, got *value) {
	r.refuse(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, got.describe())
}

// parameters are the names that a request may have, with the check of those that need no more than a look at their own value.
var parameters = map[string]func(*openAIReader, string, *value){
	"audio": isObject, "frequency_penalty": number(-2, 2), "function_call": nil, "functions": nil, "logit_bias": isObject, "logprobs": isBool,
	"max_completion_tokens": integer(1, 0), "max_tokens": integer(1, 0), "messages": nil, "metadata": isObject, "modalities": isArray, "model": nil, "moderation": isObject, "n": integer(1, 128),
	"parallel_tool_calls": isBool, "prediction": isObject, "presence_penalty": number(-2, 2), "prompt_cache_key": isString, "prompt_cache_options": isObject, "prompt_cache_retention": oneOf("in_memory", "24h"),
	"reasoning_effort": oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"), "response_format": nil, "safety_identifier": isString, "seed": integer(minusInfinity, 0),
	"service_tier": oneOf("auto", "default", "flex", "scale", "priority", "fast"), "stop": nil, "store": isBool, "stream": isBool, "stream_options": nil, "temperature": number(0, 2), "tool_choice": nil, "tools": nil,
	"top_logprobs": integer(0, 20), "top_p": number(0, 1), "user": isString, "verbosity": oneOf("low", "medium", "high"), "web_search_options": isObject,
}

func isObject(r *openAIReader, param string, v *value) {
	if v.kind != '{' {
		r.wrongType(param, "an object", v)
	}
}

func isArray(r *openAIReader, param string, v *value) {
	if v.kind != '[' {
		r.wrongType(param, "an array", v)
	}
}

func isBool(r *openAIReader, param string, v *value) {
	if v.kind != 't' && v.kind != 'f' {
		r.wrongType(param, "a boolean", v)
	}
}

func isString(r *openAIReader, param string, v *value) {
	if v.kind != '"' {
		r.wrongType(param, "a string", v)
	}
}

func oneOf(choices ...string) func(*openAIReader, string, *value) {
	return func(r *openAIReader, param string, v *value) {
		if v.kind != '"' {
			r.wrongType(param, "one of "+quotedList(choices, "or"), v)
		} else if !slices.Contains(choices, v.text) {
			r.invalidValue(param, v.text, choices)
		}
	}
}

func (r *openAIReader) invalidValue(param, got string, choices []string) {
	r.refuse(param, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", shorten(got, 200), quotedList(choices, "and"))
}

// quotedList writes 'a', 'b', and 'c'.
func quotedList(names []string, conjunction string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i < len(names)-1:
			b.WriteString(", ")
		case len(names) == 2:
			b.WriteString(" " + conjunction + " ")
		default:
			b.WriteString(", " + conjunction + " ")
		}
		b.WriteString("'" + name + "'")
	}
	return b.String()
}

func number(low, high float64) func(*openAIReader, string, *value) {
	return func(r *openAIReader, param string, v *value) {
		// A number beyond the range is an infinity, which is out of bounds all the same.
		x, _ := strconv.ParseFloat(v.text, 64)
		switch {
		case v.kind != '0':
			r.wrongType(param, "a decimal", v)
		case x > high:
			r.refuse(param, "decimal_above_max_value", "Invalid '%s': decimal above maximum value. Expected a value <= %g, but got %s instead.", param, high, v.text)
		case x < low:
			r.refuse(param, "decimal_below_min_value", "Invalid '%s': decimal below minimum value. Expected a value >= %g, but got %s instead.", param, low, v.text)
		}
	}
}

const minusInfinity = -1 << 63

// integer checks a whole number; a high of 0 is no bound.
func integer(low, high int64) func(*openAIReader, string, *value) {
	return func(r *openAIReader, param string, v *value) {
		x, err := strconv.ParseInt(v.text, 10, 64)
		switch {
		case v.kind != '0' || err != nil:
			r.wrongType(param, "an integer", v)
		case high > 0 && x > high:
			r.refuse(param, "integer_above_max_value", "Invalid '%s': integer above maximum value. Expected a value <= %d, but got %d instead.", param, high, x)
		case x < low:
			r.refuse(param, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", param, low, x)
		}
	}
}

func (r *openAIReader) request(root *value, q *query) openAIRequest {
	if root.kind != '{' {
		r.refuse("", "", "Invalid body: expected an object, but got %s instead.", root.describe())
		return openAIRequest{}
	}
	model := root.get("model")
	switch {
	case !model.given() || model.kind == '"' && model.text == "":
		r.refuse("", "", "you must provide a model parameter")
	case model.kind != '"':
		r.wrongType("model", "a string", model)
	}
	q.model = model.text
	r.scalars(root)
	r.messages(root.get("messages"), q)
	if r.ok() {
		q.index()
	}
	r.combinations(root, q)
	r.unsupported(root)
	options := root.get("stream_options")
	return openAIRequest{
		stream:      root.get("stream").isTrue(),
		usage:       options.get("include_usage").isTrue(),
		obfuscation: options.get("include_obfuscation").kind != 'f',
	}
}

func (r *openAIReader) scalars(root *value) {
	for i, name := range root.keys {
		check, known := parameters[name]
		if !known {
			r.refuse("", "", "Unrecognized request argument supplied: %s", shorten(name, 200))
		}
		if check != nil && root.items[i].given() {
			check(r, name, &root.items[i])
		}
		if !r.ok() {
			return
		}
	}
}

// combinations checks what depends on more than one parameter.
func (r *openAIReader) combinations(root *value, q *query) {
	if root.get("max_tokens").given() && root.get("max_completion_tokens").given() {
		r.refuse("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if family, strict := reasons(q.model); family {
		if root.get("max_tokens").given() {
			r.refuse("max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		}
		for _, name := range []string{"temperature", "top_p", "presence_penalty", "frequency_penalty"} {
			v, usual := root.get(name), 1.0
			if strings.HasSuffix(name, "penalty") {
				usual = 0
			}
			if x, err := strconv.ParseFloat(v.text, 64); strict && v.given() && err == nil && x != usual {
				r.refuse(name, "unsupported_value", "Unsupported value: '%s' does not support %s with this model. Only the default (%g) value is supported.", name, v.text, usual)
			}
		}
	}
	stream := root.get("stream").isTrue()
	if options := root.get("stream_options"); options.given() {
		switch {
		case options.kind != '{':
			r.wrongType("stream_options", "an object", options)
		case !stream:
			r.refuse("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
		}
		for i, name := range options.keys {
			param := "stream_options." + shorten(name, 200)
			if name != "include_usage" && name != "include_obfuscation" {
				r.refuse(param, "unknown_parameter", "Unknown parameter: '%s'.", param)
			} else if options.items[i].given() {
				isBool(r, param, &options.items[i])
			}
		}
	}
	if stop := root.get("stop"); stop.given() && stop.kind != '"' {
		const most = 4
		if stop.kind != '[' {
			r.wrongType("stop", "one of a string or array of strings", stop)
		}
		if len(stop.items) > most {
			r.refuse("stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", most, len(stop.items))
		}
		for i := range stop.items {
			isString(r, "stop["+strconv.Itoa(i)+"]", &stop.items[i])
		}
	}
	r.responseFormat(root.get("response_format"), q)
	r.tools(root, q)
}

// reasons reports whether a model is of a reasoning family, which knows no max_tokens, and whether it also insists on the usual sampling.
func reasons(model string) (family, strict bool) {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5"} {
		if rest, ok := strings.CutPrefix(model, prefix); ok && (rest == "" || rest[0] == '-' || rest[0] == '.') && !strings.HasPrefix(rest, "-chat") {
			return true, rest == "" || rest[0] == '-'
		}
	}
	return false, false
}

func (r *openAIReader) responseFormat(format *value, q *query) {
	if !format.given() || !r.ok() {
		return
	}
	if format.kind != '{' {
		r.wrongType("response_format", "an object", format)
		return
	}
	kind := format.get("type")
	switch {
	case !kind.given():
		r.missing("response_format.type")
	case kind.kind != '"':
		r.wrongType("response_format.type", "a string", kind)
	case kind.text == "json_object":
		// The vendor insists on it, since a model that is not told to write JSON may never end.
		for _, t := range q.turns {
			if strings.Contains(strings.ToLower(t.text), "json") {
				return
			}
		}
		r.refuse("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
	case kind.text == "json_schema":
		schema := format.get("json_schema")
		switch {
		case !schema.given():
			r.missing("response_format.json_schema")
		case schema.kind != '{':
			r.wrongType("response_format.json_schema", "an object", schema)
		default:
			r.name("response_format.json_schema.name", schema.get("name"))
		}
	case kind.text != "text":
		r.invalidValue("response_format.type", kind.text, []string{"json_object", "json_schema", "text"})
	}
}

// name checks the name of a function or of a schema.
func (r *openAIReader) name(param string, v *value) {
	const longest, pattern = 64, "^[a-zA-Z0-9_-]+$"
	switch {
	case !v.given():
		r.missing(param)
	case v.kind != '"':
		r.wrongType(param, "a string", v)
	case v.text == "":
		r.refuse(param, "empty_string", "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	case utf8.RuneCountInString(v.text) > longest:
		r.refuse(param, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, longest, utf8.RuneCountInString(v.text))
	case strings.ContainsFunc(v.text, func(c rune) bool {
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}):
		r.refuse(param, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", param, pattern)
	}
}

func (r *openAIReader) tools(root *value, q *query) {
	tools := root.get("tools")
	choice, parallel := root.get("tool_choice"), root.get("parallel_tool_calls")
	if !tools.given() {
		if choice.given() && choice.text != "none" {
			r.refuse("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
		}
		if parallel.given() {
			r.refuse("parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
		}
		return
	}
	const most = 128
	switch {
	case tools.kind != '[':
		r.wrongType("tools", "an array of objects", tools)
	case len(tools.items) == 0:
		r.emptyArray("tools")
	case len(tools.items) > most:
		r.refuse("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", most, len(tools.items))
	}
	var names []string
	for i := range tools.items {
		if !r.ok() {
			return
		}
		names = append(names, r.tool("tools["+strconv.Itoa(i)+"]", &tools.items[i]))
	}
	q.schemas = tools.size()
	switch {
	case !choice.given():
	case choice.kind == '"':
		if choices := []string{"none", "auto", "required"}; !slices.Contains(choices, choice.text) {
			r.invalidValue("tool_choice", choice.text, choices)
		}
	case choice.kind != '{':
		r.wrongType("tool_choice", "one of a string or object", choice)
	default:
		kind := choice.get("type")
		switch kind.text {
		case "function", "custom":
			name := choice.get(kind.text).get("name")
			if name.kind != '"' {
				r.missing("tool_choice." + kind.text + ".name")
			} else if !slices.Contains(names, name.text) {
				r.refuse("tool_choice", "", "Invalid value for 'tool_choice': Tool choice '%s' not found in 'tools' parameter.", shorten(name.text, 200))
			}
		case "allowed_tools":
			isObject(r, "tool_choice.allowed_tools", choice.get("allowed_tools"))
		case "":
			r.missing("tool_choice.type")
		default:
			r.invalidValue("tool_choice.type", kind.text, []string{"function", "allowed_tools", "custom"})
		}
	}
}

func (r *openAIReader) emptyArray(param string) {
	r.refuse(param, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

// tool checks one tool and returns its name.
func (r *openAIReader) tool(param string, v *value) string {
	if v.kind != '{' {
		r.wrongType(param, "an object", v)
		return ""
	}
	kind := v.get("type")
	switch {
	case !kind.given():
		r.missing(param + ".type")
		return ""
	case kind.kind != '"':
		r.wrongType(param+".type", "a string", kind)
		return ""
	case kind.text != "function" && kind.text != "custom":
		r.invalidValue(param+".type", kind.text, []string{"function", "custom"})
		return ""
	}
	body, at := v.get(kind.text), param+"."+kind.text
	switch {
	case !body.given():
		r.missing(at)
		return ""
	case body.kind != '{':
		r.wrongType(at, "an object", body)
		return ""
	}
	name := body.get("name")
	r.name(at+".name", name)
	if d := body.get("description"); d.given() {
		isString(r, at+".description", d)
	}
	if strict := body.get("strict"); strict.given() {
		isBool(r, at+".strict", strict)
	}
	if schema := body.get("parameters"); schema.given() {
		isObject(r, at+".parameters", schema)
		// An empty schema stands for a function without parameters.
		if kind := schema.get("type"); len(schema.keys) > 0 && kind.text != "object" {
			got := "None"
			if kind.kind == '"' {
				got = shorten(kind.text, 200)
			}
			r.refuse(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", name.text, got)
		}
	}
	return name.text
}

// size is the length of the value's texts and keys.
func (v *value) size() int {
	n := len(v.text)
	for i := range v.items {
		n += v.items[i].size()
	}
	for _, key := range v.keys {
		n += len(key)
	}
	return n
}

// unsupported refuses what the vendor offers and the emulator does not.
func (r *openAIReader) unsupported(root *value) {
	refuse := func(name string) {
		r.refuse(name, "emulator_unsupported", "the emulator does not support '%s' with this value: its scripts answer with one choice of text and tool calls, without log probabilities", name)
	}
	if n := root.get("n"); n.given() && n.text != "1" {
		refuse("n")
	}
	if root.get("logprobs").isTrue() {
		refuse("logprobs")
	}
	for _, name := range []string{"functions", "function_call", "audio", "moderation"} {
		if root.get(name).given() {
			refuse(name)
		}
	}
	if modalities := root.get("modalities"); slices.ContainsFunc(modalities.items, func(m value) bool { return m.text != "text" }) {
		refuse("modalities")
	}
}

var (
	openAIRoles = []string{"system", "assistant", "user", "function", "tool", "developer"}
	openAIParts = map[string][]string{
		"system":    {"text"},
		"developer": {"text"},
		"user":      {"text", "image_url", "input_audio", "file"},
		"assistant": {"text", "refusal"},
		"tool":      {"text"},
	}
)

func (r *openAIReader) messages(list *value, q *query) {
	switch {
	case !list.given():
		r.missing("messages")
	case list.kind != '[':
		r.wrongType("messages", "an array of objects", list)
	case len(list.items) == 0:
		r.emptyArray("messages")
	}
	if !r.ok() {
		return
	}
	q.turns = make([]turn, 0, len(list.items))
	for i := range list.items {
		t := r.message("messages["+strconv.Itoa(i)+"]", "messages.["+strconv.Itoa(i)+"]", &list.items[i])
		if !r.ok() {
			return
		}
		q.turns = append(q.turns, t)
	}
	r.pairs(q)
}

// message reads one message. The vendor names a place in two ways, with and without a dot before the bracket.
func (r *openAIReader) message(param, dotted string, v *value) turn {
	if v.kind != '{' {
		r.wrongType(param, "an object", v)
		return turn{}
	}
	name := v.get("role")
	switch {
	case !name.given():
		r.missing(param + ".role")
		return turn{}
	case name.kind != '"':
		r.wrongType(param+".role", "a string", name)
		return turn{}
	case !slices.Contains(openAIRoles, name.text):
		r.invalidValue(param+".role", name.text, openAIRoles)
		return turn{}
	}
	var t turn
	content, calls := v.get("content"), v.get("tool_calls")
	switch name.text {
	case "user":
		t.role = roleUser
	case "assistant":
		t.role = roleAssistant
		t.calls = r.calls(param+".tool_calls", calls)
	case "tool":
		t.role = roleTool
		id := v.get("tool_call_id")
		if !id.given() {
			r.missing(param + ".tool_call_id")
		} else {
			isString(r, param+".tool_call_id", id)
		}
		t.callID = id.text
	case "function":
		// A result of the deprecated functions belongs to no call, so it must not count as a tool's.
		t.role = roleSystem
		r.name(param+".name", v.get("name"))
	}
	if calls.given() && t.role != roleAssistant {
		r.refuse(param+".tool_calls", "unknown_parameter", "Unknown parameter: '%s.tool_calls'.", param)
	}
	switch {
	case content.given():
		t.text, t.images = r.content(param, name.text, content)
	case t.role == roleAssistant && (len(t.calls) > 0 || v.get("function_call").given() || v.get("refusal").given() || v.get("audio").given()):
	case content.kind == 0 && t.role != roleAssistant:
		r.missing(param + ".content")
	default:
		r.refuse(dotted+".content", "", "Invalid value for 'content': expected a string, got null.")
	}
	return t
}

// content returns the texts of a message, joined by line feeds, and the number of its images.
func (r *openAIReader) content(param, role string, v *value) (text string, images int) {
	at := param + ".content"
	switch v.kind {
	case '"':
		return v.text, 0
	case '[':
	default:
		r.wrongType(at, "one of a string or array of objects", v)
		return "", 0
	}
	if len(v.items) == 0 {
		r.emptyArray(at)
	}
	var texts []string
	for i := range v.items {
		here, p := at+"["+strconv.Itoa(i)+"]", &v.items[i]
		kind := p.get("type")
		switch {
		case p.kind != '{':
			r.wrongType(here, "an object", p)
		case !kind.given():
			r.missing(here + ".type")
		case kind.kind != '"':
			r.wrongType(here+".type", "a string", kind)
		case kind.text == "image_url" && role != "user":
			r.refuse(param, "invalid_value", "Invalid '%s'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", param, role)
		case !slices.Contains(openAIParts[role], kind.text):
			r.invalidValue(here+".type", kind.text, openAIParts[role])
		}
		if !r.ok() {
			return "", 0
		}
		switch kind.text {
		case "text", "refusal":
			part := p.get(kind.text)
			if !part.given() {
				r.missing(here + "." + kind.text)
			} else {
				isString(r, here+"."+kind.text, part)
			}
			texts = append(texts, part.text)
		case "image_url":
			images++
			r.image(here+".image_url", p.get("image_url"))
		default:
			if body := p.get(kind.text); !body.given() {
				r.missing(here + "." + kind.text)
			} else {
				isObject(r, here+"."+kind.text, body)
			}
		}
	}
	return strings.Join(texts, "\n"), images
}

// imageTypes are the media types that the vendor takes, with the bytes that such a file begins with.
var imageTypes = map[string]string{"image/png": "\x89PNG\r\n\x1a\n", "image/jpeg": "\xff\xd8\xff", "image/jpg": "\xff\xd8\xff", "image/gif": "GIF8", "image/webp": "RIFF"}

// image checks the URL of an image. Nothing is fetched.
func (r *openAIReader) image(param string, v *value) {
	if !v.given() {
		r.missing(param)
		return
	}
	isObject(r, param, v)
	if detail := v.get("detail"); detail.given() {
		oneOf("low", "high", "auto", "original")(r, param+".detail", detail)
	}
	address := v.get("url")
	switch {
	case !address.given():
		r.missing(param + ".url")
	case address.kind != '"':
		r.wrongType(param+".url", "a string", address)
	}
	if !r.ok() {
		return
	}
	data, isData := strings.CutPrefix(address.text, "data:")
	if !isData {
		if u, err := url.Parse(address.text); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			r.refuse(param+".url", "invalid_value", "Invalid '%s.url'. Expected a valid URL, but got a value with an invalid format.", param)
		}
		return
	}
	head, payload, found := strings.Cut(data, ",")
	media, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		r.refuse(param+".url", "invalid_value", "Invalid '%s.url'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'base64' prefix.", param)
		return
	}
	magic, known := imageTypes[strings.ToLower(media)]
	if !strings.HasPrefix(strings.ToLower(media), "image/") {
		r.refuse(param+".url", "invalid_value", "Invalid '%s.url'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type '%s'.", param, shorten(media, 200))
		return
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(payload)
	switch {
	case err != nil || len(decoded) == 0:
		r.refuse(param+".url", "invalid_base64", "Invalid base64 image_url.")
	case !known || !strings.HasPrefix(string(decoded[:min(len(decoded), len(magic))]), magic):
		r.refuse("", "invalid_image_format", "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].")
	}
}

func (r *openAIReader) calls(param string, list *value) []callRef {
	if !list.given() {
		return nil
	}
	if list.kind != '[' {
		r.wrongType(param, "an array of objects", list)
		return nil
	}
	if len(list.items) == 0 {
		r.emptyArray(param)
		return nil
	}
	out := make([]callRef, 0, len(list.items))
	for i := range list.items {
		at, c := param+"["+strconv.Itoa(i)+"]", &list.items[i]
		if c.kind != '{' {
			r.wrongType(at, "an object", c)
			return nil
		}
		ref := callRef{id: r.text(at+".id", c.get("id"))}
		kind := r.text(at+".type", c.get("type"))
		if kinds := []string{"function", "custom"}; r.ok() && !slices.Contains(kinds, kind) {
			r.invalidValue(at+".type", kind, kinds)
		}
		body, arguments := c.get(kind), "arguments"
		if kind == "custom" {
			arguments = "input"
		}
		if r.ok() && body.kind != '{' {
			if body.given() {
				r.wrongType(at+"."+kind, "an object", body)
			} else {
				r.missing(at + "." + kind)
			}
		}
		if r.ok() {
			r.name(at+"."+kind+".name", body.get("name"))
			ref.name = body.get("name").text
			ref.args = r.text(at+"."+kind+"."+arguments, body.get(arguments))
		}
		if !r.ok() {
			return nil
		}
		out = append(out, ref)
	}
	return out
}

// text returns a string that must be there.
func (r *openAIReader) text(param string, v *value) string {
	if !v.given() {
		r.missing(param)
	} else {
		isString(r, param, v)
	}
	return v.text
}

// pairs checks that each call has one result, right after the message that made it, and each result its call.
func (r *openAIReader) pairs(q *query) {
	for i := 0; i < len(q.turns); i++ {
		t := &q.turns[i]
		if t.role == roleTool {
			r.refuse("messages.["+strconv.Itoa(i)+"].role", "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			return
		}
		if len(t.calls) == 0 {
			continue
		}
		answered := make(map[string]int, len(t.calls)) // by id: the message that answers, or -1
		for j, c := range t.calls {
			if _, twice := answered[c.id]; twice {
				at := "messages.[" + strconv.Itoa(i) + "].tool_calls.[" + strconv.Itoa(j) + "].id"
				r.refuse(at, "", "Invalid parameter: Duplicate value for 'id' of '%s' in 'tool_calls' of messages[%d].", shorten(c.id, 200), i)
				return
			}
			answered[c.id] = -1
		}
		open := len(t.calls)
		for i+1 < len(q.turns) && q.turns[i+1].role == roleTool {
			i++
			id := q.turns[i].callID
			at := "messages.[" + strconv.Itoa(i) + "].tool_call_id"
			switch first, known := answered[id]; {
			case !known:
				r.refuse(at, "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", shorten(id, 200))
				return
			case first >= 0:
				r.refuse(at, "", "Invalid parameter: Duplicate value for 'tool_call_id' of '%s', in messages[%d] and messages[%d].", shorten(id, 200), first, i)
				return
			}
			answered[id] = i
			open--
		}
		if open > 0 {
			var ids []string
			for _, c := range t.calls {
				if answered[c.id] < 0 {
					ids = append(ids, c.id)
				}
			}
			param := "messages"
			if i+1 < len(q.turns) {
				param = "messages.[" + strconv.Itoa(i+1) + "].role"
			}
			r.refuse(param, "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", shorten(strings.Join(ids, ", "), 2000))
			return
		}
	}
}
