package emulator

import (
	"slices"
	"strconv"
	"strings"
)

// responsesRequest is what of a request concerns the format alone.
type responsesRequest struct {
	stream      bool
	obfuscation bool
	encrypted   bool   // reasoning is asked for in its encrypted form
	root        *value // what the reply repeats
}

// responsesParameters are the names that a request may have.
var responsesParameters = map[string]func(*openAIReader, string, *value){
	"background": isBool, "conversation": nil, "include": nil, "input": nil, "instructions": isString, "max_output_tokens": integer(16, 0), "max_tool_calls": integer(1, 0), "metadata": isObject, "model": nil,
	"parallel_tool_calls": isBool, "previous_response_id": isString, "prompt": isObject, "prompt_cache_key": isString, "prompt_cache_options": isObject, "prompt_cache_retention": oneOf("in_memory", "24h"), "reasoning": nil,
	"safety_identifier": isString, "service_tier": oneOf("auto", "default", "flex", "scale", "priority", "fast"), "store": isBool, "stream": isBool, "stream_options": isObject, "temperature": number(0, 2),
	"text": nil, "tool_choice": nil, "tools": nil, "top_logprobs": integer(0, 20), "top_p": number(0, 1), "truncation": oneOf("auto", "disabled"), "user": isString,
}

// readResponses checks a request as the vendor does and fills q with what it asks.
func readResponses(root *value, q *query) (responsesRequest, *openAIError) {
	r := &openAIReader{}
	if root.kind != '{' {
		r.refuse("", "", "Invalid body: expected an object, but got %s instead.", root.describe())
		return responsesRequest{}, r.refused
	}
	model := root.get("model")
	switch {
	case !model.given() || model.kind == '"' && model.text == "":
		r.missing("model")
	case model.kind != '"':
		r.wrongType("model", "a string", model)
	}
	q.model = model.text
	for i, name := range root.keys {
		check, known := responsesParameters[name]
		if !known {
			r.refuse(shorten(name, 200), "unknown_parameter", "Unknown parameter: '%s'.", shorten(name, 200))
		}
		if check != nil && root.items[i].given() {
			check(r, name, &root.items[i])
		}
	}
	if instructions := root.get("instructions"); r.ok() && instructions.given() {
		q.turns = append(q.turns, turn{role: roleSystem, text: instructions.text})
	}
	r.input(root.get("input"), q)
	if r.ok() {
		q.index()
	}
	r.responsesSampling(root, q)
	r.responsesText(root.get("text"))
	r.responsesTools(root, q)
	for _, name := range []string{"background", "conversation", "previous_response_id", "prompt"} {
		if v := root.get(name); v.given() && v.kind != 'f' {
			r.refuse(name, "emulator_unsupported", "the emulator does not support '%s': it stores nothing", name)
		}
	}
	req := responsesRequest{stream: root.get("stream").isTrue(), obfuscation: root.get("stream_options").get("include_obfuscation").kind != 'f', root: root}
	if include := root.get("include"); include.given() {
		if include.kind != '[' {
			r.wrongType("include", "an array of strings", include)
		}
		for i := range include.items {
			r.include("include["+strconv.Itoa(i)+"]", &include.items[i], q, &req)
		}
	}
	return req, r.refused
}

var included = []string{"file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs", "reasoning.encrypted_content", "message.output_text.logprobs"}

func (r *openAIReader) include(param string, v *value, q *query, req *responsesRequest) {
	switch {
	case v.kind != '"':
		r.wrongType(param, "a string", v)
	case !slices.Contains(included, v.text):
		r.invalidValue(param, v.text, included)
	case v.text == "reasoning.encrypted_content":
		if family, _ := reasons(q.model); !family {
			r.refuse("include", "", "Encrypted content is not supported with this model.")
		}
		req.encrypted = true
	case v.text == "message.output_text.logprobs":
		r.refuse(param, "emulator_unsupported", "the emulator does not support '%s'", v.text)
	}
}

func (r *openAIReader) responsesSampling(root *value, q *query) {
	family, strict := reasons(q.model)
	for _, name := range []string{"temperature", "top_p"} {
		v := root.get(name)
		if x, err := strconv.ParseFloat(v.text, 64); family && strict && v.given() && err == nil && x != 1 {
			r.refuse(name, "", "Unsupported parameter: '%s' is not supported with this model.", name)
		}
	}
	reasoning := root.get("reasoning")
	if !reasoning.given() {
		return
	}
	if reasoning.kind != '{' {
		r.wrongType("reasoning", "an object", reasoning)
	}
	if effort := reasoning.get("effort"); effort.given() {
		oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max")(r, "reasoning.effort", effort)
		if !family {
			r.refuse("reasoning.effort", "unsupported_parameter", "Unsupported parameter: 'reasoning.effort' is not supported with this model.")
		}
	}
	if summary := reasoning.get("summary"); summary.given() {
		oneOf("auto", "concise", "detailed")(r, "reasoning.summary", summary)
	}
}

func (r *openAIReader) responsesText(text *value) {
	if !text.given() {
		return
	}
	if text.kind != '{' {
		r.wrongType("text", "an object", text)
		return
	}
	format := text.get("format")
	switch kind := format.get("type"); {
	case !format.given():
	case format.kind != '{':
		r.wrongType("text.format", "an object", format)
	case !kind.given():
		r.missing("text.format.type")
	case kind.text == "json_schema":
		r.name("text.format.name", format.get("name"))
		if schema := format.get("schema"); !schema.given() {
			r.missing("text.format.schema")
		} else {
			isObject(r, "text.format.schema", schema)
		}
	case kind.text != "text" && kind.text != "json_object":
		r.invalidValue("text.format.type", kind.text, []string{"json_object", "json_schema", "text"})
	}
}

func (r *openAIReader) responsesTools(root *value, q *query) {
	tools := root.get("tools")
	if !tools.given() {
		return
	}
	if tools.kind != '[' {
		r.wrongType("tools", "an array of objects", tools)
		return
	}
	var names []string
	for i := range tools.items {
		at, v := "tools["+strconv.Itoa(i)+"]", &tools.items[i]
		kind := v.get("type")
		switch {
		case v.kind != '{':
			r.wrongType(at, "an object", v)
		case !kind.given():
			r.missing(at + ".type")
		case kind.kind != '"':
			r.wrongType(at+".type", "a string", kind)
		case kind.text != "function":
			r.refuse(at+".type", "emulator_unsupported", "the emulator does not support tools of type '%s': they run with the vendor", shorten(kind.text, 200))
		}
		if !r.ok() {
			return
		}
		r.name(at+".name", v.get("name"))
		names = append(names, v.get("name").text)
		if schema := v.get("parameters"); schema.given() {
			isObject(r, at+".parameters", schema)
			if kind := schema.get("type"); len(schema.keys) > 0 && kind.text != "object" {
				r.refuse(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", v.get("name").text, shorten(kind.text, 200))
			}
		}
	}
	q.schemas = tools.size()
	switch choice := root.get("tool_choice"); {
	case !choice.given():
	case choice.kind == '"':
		if choices := []string{"none", "auto", "required"}; !slices.Contains(choices, choice.text) {
			r.invalidValue("tool_choice", choice.text, choices)
		}
	case choice.kind != '{':
		r.wrongType("tool_choice", "one of a string or object", choice)
	case choice.get("type").text == "function" && !slices.Contains(names, choice.get("name").text):
		r.refuse("tool_choice", "", "Tool choice 'function' not found in 'tools' parameter.")
	}
}

// input reads the conversation. Items that the model made one after the other are one reply.
func (r *openAIReader) input(v *value, q *query) {
	switch {
	case !v.given():
		r.missing("input")
		return
	case v.kind == '"':
		q.turns = append(q.turns, turn{role: roleUser, text: v.text})
		return
	case v.kind != '[':
		r.wrongType("input", "one of a string or array of input items", v)
		return
	case len(v.items) == 0:
		r.emptyArray("input")
		return
	}
	open := map[string]bool{} // calls without a result yet
	known := map[string]bool{}
	var order []string
	for i := range v.items {
		at := "input[" + strconv.Itoa(i) + "]"
		t, call := r.inputItem(at, &v.items[i])
		if !r.ok() {
			return
		}
		if call != "" {
			switch {
			case t.role == roleAssistant && known[call]:
				r.refuse("input", "", "Duplicate item found with call_id %s. Remove duplicate items from your input and try again.", shorten(call, 200))
			case t.role == roleAssistant:
				known[call], open[call] = true, true
				order = append(order, call)
			case !open[call]:
				r.refuse("input", "", "No tool call found for function call output with call_id %s.", shorten(call, 200))
			default:
				delete(open, call)
			}
		}
		if last := len(q.turns) - 1; t.role == roleAssistant && last >= 0 && q.turns[last].role == roleAssistant {
			before := &q.turns[last]
			before.calls = append(before.calls, t.calls...)
			before.text = strings.Trim(before.text+"\n"+t.text, "\n")
			continue
		}
		q.turns = append(q.turns, t)
	}
	for _, call := range order {
		if open[call] {
			r.refuse("input", "", "No tool output found for function call %s.", shorten(call, 200))
		}
	}
}

var responsesItems = []string{"message", "function_call", "function_call_output", "reasoning"}

// inputItem reads one item; call is the id of a call or of the one that a result answers.
func (r *openAIReader) inputItem(param string, v *value) (t turn, call string) {
	if v.kind != '{' {
		r.wrongType(param, "an object", v)
		return t, ""
	}
	kind := v.get("type")
	name := kind.text
	if !kind.given() {
		name = "message"
	}
	switch name {
	case "message":
		return r.inputMessage(param, v), ""
	case "function_call":
		call = r.text(param+".call_id", v.get("call_id"))
		if r.ok() {
			r.name(param+".name", v.get("name"))
		}
		ref := callRef{id: call, name: v.get("name").text, args: r.text(param+".arguments", v.get("arguments"))}
		return turn{role: roleAssistant, calls: []callRef{ref}}, call
	case "function_call_output":
		call = r.text(param+".call_id", v.get("call_id"))
		t = turn{role: roleTool, callID: call}
		if output := v.get("output"); !output.given() {
			r.missing(param + ".output")
		} else {
			t.text, t.images = r.inputContent(param+".output", "user", output)
		}
		return t, call
	case "reasoning":
		if id := v.get("id"); !id.given() {
			r.missing(param + ".id")
		}
		if summary := v.get("summary"); !summary.given() {
			r.missing(param + ".summary")
		}
		return turn{role: roleAssistant}, ""
	}
	r.invalidValue(param+".type", name, responsesItems)
	return t, ""
}

var responsesRoles = []string{"assistant", "system", "developer", "user"}

func (r *openAIReader) inputMessage(param string, v *value) turn {
	role := v.get("role")
	switch {
	case !role.given():
		r.missing(param + ".role")
		return turn{}
	case role.kind != '"':
		r.wrongType(param+".role", "a string", role)
		return turn{}
	case !slices.Contains(responsesRoles, role.text):
		r.invalidValue(param+".role", role.text, responsesRoles)
		return turn{}
	}
	t := turn{role: roleSystem}
	switch role.text {
	case "user":
		t.role = roleUser
	case "assistant":
		t.role = roleAssistant
	}
	content := v.get("content")
	if !content.given() {
		r.missing(param + ".content")
		return t
	}
	t.text, t.images = r.inputContent(param+".content", role.text, content)
	return t
}

var responsesParts = map[string][]string{
	"user": {"input_text", "input_image", "input_file"}, "system": {"input_text", "input_image", "input_file"}, "developer": {"input_text", "input_image", "input_file"},
	"assistant": {"output_text", "refusal"},
}

func (r *openAIReader) inputContent(param, role string, v *value) (text string, images int) {
	switch v.kind {
	case '"':
		return v.text, 0
	case '[':
	default:
		r.wrongType(param, "one of a string or array of objects", v)
		return "", 0
	}
	var texts []string
	for i := range v.items {
		at, p := param+"["+strconv.Itoa(i)+"]", &v.items[i]
		kind := p.get("type")
		switch {
		case p.kind != '{':
			r.wrongType(at, "an object", p)
		case !kind.given():
			r.missing(at + ".type")
		case !slices.Contains(responsesParts[role], kind.text):
			r.invalidValue(at+".type", kind.text, responsesParts[role])
		}
		if !r.ok() {
			return "", 0
		}
		switch kind.text {
		case "input_text", "output_text":
			texts = append(texts, r.text(at+".text", p.get("text")))
		case "refusal":
			texts = append(texts, r.text(at+".refusal", p.get("refusal")))
		case "input_image":
			images++
			if address := p.get("image_url"); address.given() {
				// The checks are those of chat completions, which have the address one level deeper.
				r.image(at+".image_url", &value{kind: '{', keys: []string{"url"}, items: []value{*address}})
			} else if !p.get("file_id").given() {
				r.missing(at + ".image_url")
			}
		case "input_file":
			if !p.get("file_data").given() && !p.get("file_url").given() && !p.get("file_id").given() {
				r.missing(at + ".file_data")
			}
			if data := p.get("file_data"); data.given() && !p.get("filename").given() {
				r.missing(at + ".filename")
			}
		}
	}
	return strings.Join(texts, "\n"), images
}
