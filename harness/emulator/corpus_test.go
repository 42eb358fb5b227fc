package emulator_test

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/echoeval/echoeval/harness/emulator"
)

// user and the others are messages as JSON.
func user(text string) string { return `{"role":"user","content":` + quote(text) + `}` }

func system(text string) string { return `{"role":"system","content":` + quote(text) + `}` }

func assistant(calls ...string) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func said(text string) string { return `{"role":"assistant","content":` + quote(text) + `}` }

func made(id, name, args string) string {
	return `{"id":` + quote(id) + `,"type":"function","function":{"name":` + quote(name) + `,"arguments":` + quote(args) + `}}`
}

func result(id, text string) string {
	return `{"role":"tool","tool_call_id":` + quote(id) + `,"content":` + quote(text) + `}`
}

func chat(model string, messages ...string) string {
	return `{"model":` + quote(model) + `,"messages":[` + strings.Join(messages, ",") + `]}`
}

// with adds parameters to a body.
func with(body, parameters string) string {
	return strings.TrimSuffix(body, "}") + "," + parameters + "}"
}

const (
	weather    = "What's the weather in Florence,Italy?"
	weatherUse = `"tools":[{"type":"function","function":{"name":"weather","description":"Get weather","parameters":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]},"strict":false}}],"tool_choice":"auto"`
)

var pixel = "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\nnot a whole picture"))

// accepted are requests that testdata/full.yaml answers with 200 and a whole body.
func accepted() map[string]string {
	first := made("call_1", "weather", `{"location":"Florence, Italy"}`)
	return map[string]string{
		"step 1":   with(chat("gpt-4o", system("You are a helpful assistant"), user(weather)), `"max_tokens":4000,`+weatherUse),
		"step 2":   with(chat("gpt-4o", user(weather), assistant(first), result("call_1", "40 C")), weatherUse+`,"temperature":0,"parallel_tool_calls":true`),
		"step 3":   chat("gpt-4o-mini", user(weather), assistant(first), result("call_1", "40 C"), assistant(made("call_2", "note", "{}")), `{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"ok"}]}`),
		"parallel": with(chat("gpt-4.1", user("Read both in parallel, please")), `"seed":7,"top_p":0.5,"stop":["x"],"user":"u","n":1`),
		"results of parallel calls, in another order": chat("gpt-4.1", user("Read both in parallel, please"), assistant(made("a", "read_file", "{}"), made("b", "read_file", "{}")), result("b", "B"), result("a", "A")),
		"malformed arguments":                         chat("gpt-4o", user("malformed")),
		"unicode":                                     chat("gpt-4o", user("unicode")),
		"refusal":                                     chat("gpt-4o", user("refuse")),
		"length":                                      with(chat("gpt-4o", user("long")), `"max_completion_tokens":5`),
		"content filter":                              chat("gpt-4o", user("filtered")),
		"reasoning":                                   with(chat("o3-mini", user("think")), `"reasoning_effort":"low","max_completion_tokens":100`),
		"slow":                                        chat("gpt-4o", user("slow")),
		"regex and system":                            with(chat("gpt-4o", system("You run a shop."), user("Order #12")), `"response_format":{"type":"text"},"metadata":{"a":"b"},"store":false`),
		"parts and images":                            chat("gpt-4o", `{"role":"user","content":[{"type":"text","text":"Compare these"},{"type":"image_url","image_url":{"url":"`+pixel+`","detail":"low"}},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"text","text":"in parallel"}]}`),
		"first of two user messages":                  chat("gpt-4o", user(weather), assistant(first), result("call_1", "40 C"), said("40 C."), user("And tomorrow?")),
		"developer message and JSON mode":             with(chat("gpt-4o", `{"role":"developer","content":"Answer in JSON, shop"}`, user("order #1")), `"response_format":{"type":"json_object"}`),
		"JSON schema":                                 with(chat("gpt-4o", user("unicode")), `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"},"strict":true}}`),
		"custom tools":                                with(chat("gpt-4o", user("both in parallel"), `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"c","input":"x y"}}]}`, result("a", "1")), `"tools":[{"type":"custom","custom":{"name":"c"}}],"tool_choice":{"type":"custom","custom":{"name":"c"}}`),
		"nulls for absent":                            with(chat("gpt-4o", user("unicode")), `"temperature":null,"stop":null,"service_tier":null,"metadata":null,"max_completion_tokens":null`),
	}
}

// refusal is a request that must be refused, and how.
type refusal struct {
	name    string
	body    string
	method  string
	path    string
	headers []string
	opts    emulator.Options
	status  int
	param   string
	code    string
}

func refusals() []refusal {
	messages := func(list string) string { return `{"model":"gpt-4o","messages":` + list + `}` }
	good := func(parameters string) string { return with(chat("gpt-4o", user("unicode")), parameters) }
	a := made("call_a", "f", "{}")
	b := made("call_b", "f", "{}")
	image := func(url string) string {
		return chat("gpt-4o", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"`+url+`"}}]}`)
	}
	tooled := func(choice string) string {
		return good(strings.Replace(weatherUse, `"tool_choice":"auto"`, `"tool_choice":`+choice, 1))
	}
	const missing, wrong = "missing_required_parameter", "invalid_type"
	return []refusal{
		{name: "no key", headers: []string{"Authorization", ""}, body: good(`"n":1`), status: 401},
		{name: "another scheme", headers: []string{"Authorization", "Basic " + key}, body: good(`"n":1`), status: 401},
		{name: "a key that is not accepted", opts: emulator.Options{Keys: []string{"sk-another"}}, body: good(`"n":1`), status: 401, code: "invalid_api_key"},
		{name: "a short key that is not accepted", opts: emulator.Options{Keys: []string{"sk-another"}}, headers: []string{"Authorization", "Bearer secret-1234"}, body: good(`"n":1`), status: 401, code: "invalid_api_key"},
		{name: "another path", path: "/v1/completions", body: "{}", status: 404},
		{name: "a path with a slash at the end", path: "/v1/chat/completions/", body: "{}", status: 404},
		{name: "another method", method: http.MethodGet, status: 405},
		{name: "too large", opts: emulator.Options{MaxBody: 100}, body: good(`"user":"` + strings.Repeat("x", 100) + `"`), status: 413},
		{name: "no body", body: "", status: 400},
		{name: "malformed JSON", body: `{"model":`, status: 400},
		{name: "invalid UTF-8", body: "{\"model\":\"\xff\"}", status: 400},
		{name: "two values", body: `{} {}`, status: 400},
		{name: "half a surrogate pair", body: `{"model":"\ud83d"}`, status: 400},
		{name: "an array", body: `[]`, status: 400},
		{name: "no model", body: `{"messages":[` + user("x") + `]}`, status: 400},
		{name: "a model of another type", body: `{"model":4,"messages":[` + user("x") + `]}`, status: 400, param: "model", code: wrong},
		{name: "an unknown parameter", body: good(`"temprature":1`), status: 400},
		{name: "no messages", body: `{"model":"gpt-4o"}`, status: 400, param: "messages", code: missing},
		{name: "messages of another type", body: messages(`"hello"`), status: 400, param: "messages", code: wrong},
		{name: "empty messages", body: messages(`[]`), status: 400, param: "messages", code: "empty_array"},
		{name: "a message of another type", body: messages(`["hello"]`), status: 400, param: "messages[0]", code: wrong},
		{name: "no role", body: messages(`[{"content":"x"}]`), status: 400, param: "messages[0].role", code: missing},
		{name: "an unknown role", body: messages(`[{"role":"bot","content":"x"}]`), status: 400, param: "messages[0].role", code: "invalid_value"},
		{name: "no content", body: messages(`[{"role":"user"}]`), status: 400, param: "messages[0].content", code: missing},
		{name: "null content", body: messages(`[{"role":"user","content":null}]`), status: 400, param: "messages.[0].content"},
		{name: "content of another type", body: messages(`[{"role":"user","content":12}]`), status: 400, param: "messages[0].content", code: wrong},
		{name: "empty parts", body: messages(`[{"role":"user","content":[]}]`), status: 400, param: "messages[0].content", code: "empty_array"},
		{name: "an unknown part", body: messages(`[{"role":"user","content":[{"type":"video","video":{}}]}]`), status: 400, param: "messages[0].content[0].type", code: "invalid_value"},
		{name: "an image from the system", body: messages(`[{"role":"system","content":[{"type":"image_url","image_url":{"url":"` + pixel + `"}}]}]`), status: 400, param: "messages[0]", code: "invalid_value"},
		{name: "an assistant message with nothing", body: messages(`[{"role":"assistant"}]`), status: 400, param: "messages.[0].content"},
		{name: "empty tool calls", body: messages(`[{"role":"assistant","tool_calls":[]}]`), status: 400, param: "messages[0].tool_calls", code: "empty_array"},
		{name: "a call without an id", body: messages(`[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}]`), status: 400, param: "messages[0].tool_calls[0].id", code: missing},
		{name: "arguments that are an object", body: messages(`[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}]`), status: 400, param: "messages[0].tool_calls[0].function.arguments", code: wrong},
		{name: "a call's name with a space", body: chat("gpt-4o", user("x"), assistant(made("a", "f g", "{}")), result("a", "1")), status: 400, param: "messages[1].tool_calls[0].function.name", code: "invalid_value"},
		{name: "a result without an id", body: chat("gpt-4o", user("x"), assistant(a), `{"role":"tool","content":"x"}`), status: 400, param: "messages[2].tool_call_id", code: missing},

		{name: "a result without a call", body: chat("gpt-4o", user("x"), result("call_a", "1")), status: 400, param: "messages.[1].role"},
		{name: "a result after a text", body: chat("gpt-4o", user("x"), assistant(a), result("call_a", "1"), said("so"), result("call_a", "1")), status: 400, param: "messages.[4].role"},
		{name: "a result of another call", body: chat("gpt-4o", user("x"), assistant(a), result("call_x", "1")), status: 400, param: "messages.[2].tool_call_id"},
		{name: "a second result", body: chat("gpt-4o", user("x"), assistant(a, b), result("call_a", "1"), result("call_a", "2")), status: 400, param: "messages.[3].tool_call_id"},
		{name: "calls without results at the end", body: chat("gpt-4o", user("x"), assistant(a, b)), status: 400, param: "messages"},
		{name: "one of two results missing", body: chat("gpt-4o", user("x"), assistant(a, b), result("call_b", "1"), user("go on")), status: 400, param: "messages.[3].role"},
		{name: "two calls of one id", body: chat("gpt-4o", user("x"), assistant(a, a), result("call_a", "1")), status: 400, param: "messages.[1].tool_calls.[1].id"},

		{name: "temperature too high", body: good(`"temperature":2.5`), status: 400, param: "temperature", code: "decimal_above_max_value"},
		{name: "temperature too low", body: good(`"temperature":-0.1`), status: 400, param: "temperature", code: "decimal_below_min_value"},
		{name: "temperature as a string", body: good(`"temperature":"1"`), status: 400, param: "temperature", code: wrong},
		{name: "temperature beyond all numbers", body: good(`"temperature":1e999`), status: 400, param: "temperature", code: "decimal_above_max_value"},
		{name: "top_p too high", body: good(`"top_p":1.1`), status: 400, param: "top_p", code: "decimal_above_max_value"},
		{name: "no tokens", body: good(`"max_tokens":0`), status: 400, param: "max_tokens", code: "integer_below_min_value"},
		{name: "half a token", body: good(`"max_tokens":0.5`), status: 400, param: "max_tokens", code: wrong},
		{name: "both limits", body: good(`"max_tokens":5,"max_completion_tokens":5`), status: 400, param: "max_tokens", code: "invalid_parameter_combination"},
		{name: "max_tokens for a reasoning model", body: with(chat("o3-mini", user("think")), `"max_tokens":5`), status: 400, param: "max_tokens", code: "unsupported_parameter"},
		{name: "temperature for a reasoning model", body: with(chat("gpt-5-mini", user("unicode")), `"temperature":0`), status: 400, param: "temperature", code: "unsupported_value"},
		{name: "stream as a string", body: good(`"stream":"true"`), status: 400, param: "stream", code: wrong},
		{name: "stream options without a stream", body: good(`"stream_options":{"include_usage":true}`), status: 400, param: "stream_options"},
		{name: "an unknown stream option", body: good(`"stream":true,"stream_options":{"usage":true}`), status: 400, param: "stream_options.usage", code: "unknown_parameter"},
		{name: "five stops", body: good(`"stop":["a","b","c","d","e"]`), status: 400, param: "stop", code: "array_above_max_length"},
		{name: "an unknown effort", body: good(`"reasoning_effort":"huge"`), status: 400, param: "reasoning_effort", code: "invalid_value"},
		{name: "JSON mode without the word", body: good(`"response_format":{"type":"json_object"}`), status: 400, param: "messages"},
		{name: "an unknown response format", body: good(`"response_format":{"type":"xml"}`), status: 400, param: "response_format.type", code: "invalid_value"},
		{name: "no tools", body: good(`"tools":[]`), status: 400, param: "tools", code: "empty_array"},
		{name: "a tool without a function", body: good(`"tools":[{"type":"function"}]`), status: 400, param: "tools[0].function", code: missing},
		{name: "a tool's name too long", body: good(`"tools":[{"type":"function","function":{"name":"` + strings.Repeat("n", 65) + `"}}]`), status: 400, param: "tools[0].function.name", code: "string_above_max_length"},
		{name: "a tool's schema of another type", body: good(`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"array"}}}]`), status: 400, param: "tools[0].function.parameters", code: "invalid_function_parameters"},
		{name: "a tool choice without tools", body: good(`"tool_choice":"auto"`), status: 400, param: "tool_choice"},
		{name: "a choice of no tool", body: tooled(`{"type":"function","function":{"name":"g"}}`), status: 400, param: "tool_choice"},
		{name: "parallel calls without tools", body: good(`"parallel_tool_calls":false`), status: 400, param: "parallel_tool_calls"},

		{name: "an image that is no URL", body: image("picture.png"), status: 400, param: "messages[0].content[0].image_url.url", code: "invalid_value"},
		{name: "an image without base64", body: image("data:image/png,abc"), status: 400, param: "messages[0].content[0].image_url.url", code: "invalid_value"},
		{name: "an image with broken base64", body: image("data:image/png;base64,###"), status: 400, param: "messages[0].content[0].image_url.url", code: "invalid_base64"},
		{name: "an image without data", body: image("data:image/png;base64,"), status: 400, param: "messages[0].content[0].image_url.url", code: "invalid_base64"},
		{name: "a text as an image", body: image("data:text/plain;base64,aGVsbG8="), status: 400, param: "messages[0].content[0].image_url.url", code: "invalid_value"},
		{name: "an image of another format", body: image("data:image/bmp;base64,Qk0="), status: 400, code: "invalid_image_format"},
		{name: "an image that is none", body: image("data:image/png;base64,aGVsbG8="), status: 400, code: "invalid_image_format"},

		{name: "metadata of another type", body: good(`"metadata":"x"`), status: 400, param: "metadata", code: wrong},
		{name: "modalities of another type", body: good(`"modalities":"text"`), status: 400, param: "modalities", code: wrong},
		{name: "verbosity of another type", body: good(`"verbosity":1`), status: 400, param: "verbosity", code: wrong},
		{name: "too many choices", body: good(`"n":129`), status: 400, param: "n", code: "integer_above_max_value"},
		{name: "a seed of another type", body: good(`"seed":"7"`), status: 400, param: "seed", code: wrong},
		{name: "a stop of another type", body: good(`"stop":{}`), status: 400, param: "stop", code: wrong},
		{name: "a stop with another type", body: good(`"stop":[1]`), status: 400, param: "stop[0]", code: wrong},
		{name: "stream options of another type", body: good(`"stream":true,"stream_options":true`), status: 400, param: "stream_options", code: wrong},
		{name: "a stream option of another type", body: good(`"stream":true,"stream_options":{"include_usage":1}`), status: 400, param: "stream_options.include_usage", code: wrong},
		{name: "a response format of another type", body: good(`"response_format":"json"`), status: 400, param: "response_format", code: wrong},
		{name: "a response format without a type", body: good(`"response_format":{}`), status: 400, param: "response_format.type", code: missing},
		{name: "a response format with a type of another type", body: good(`"response_format":{"type":1}`), status: 400, param: "response_format.type", code: wrong},
		{name: "a response schema that is missing", body: good(`"response_format":{"type":"json_schema"}`), status: 400, param: "response_format.json_schema", code: missing},
		{name: "a response schema of another type", body: good(`"response_format":{"type":"json_schema","json_schema":1}`), status: 400, param: "response_format.json_schema", code: wrong},
		{name: "a response schema without a name", body: good(`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), status: 400, param: "response_format.json_schema.name", code: missing},
		{name: "tools of another type", body: good(`"tools":{}`), status: 400, param: "tools", code: wrong},
		{name: "too many tools", body: good(`"tools":[` + strings.TrimSuffix(strings.Repeat(`{},`, 129), ",") + `]`), status: 400, param: "tools", code: "array_above_max_length"},
		{name: "a tool of another type", body: good(`"tools":["f"]`), status: 400, param: "tools[0]", code: wrong},
		{name: "a tool without a type", body: good(`"tools":[{"function":{"name":"f"}}]`), status: 400, param: "tools[0].type", code: missing},
		{name: "a tool with a type of another type", body: good(`"tools":[{"type":1}]`), status: 400, param: "tools[0].type", code: wrong},
		{name: "an unknown kind of tool", body: good(`"tools":[{"type":"web"}]`), status: 400, param: "tools[0].type", code: "invalid_value"},
		{name: "a function of another type", body: good(`"tools":[{"type":"function","function":"f"}]`), status: 400, param: "tools[0].function", code: wrong},
		{name: "a function without a name", body: good(`"tools":[{"type":"function","function":{}}]`), status: 400, param: "tools[0].function.name", code: missing},
		{name: "a function with a name of another type", body: good(`"tools":[{"type":"function","function":{"name":1}}]`), status: 400, param: "tools[0].function.name", code: wrong},
		{name: "a function with an empty name", body: good(`"tools":[{"type":"function","function":{"name":""}}]`), status: 400, param: "tools[0].function.name", code: "empty_string"},
		{name: "a function with a description of another type", body: good(`"tools":[{"type":"function","function":{"name":"f","description":1}}]`), status: 400, param: "tools[0].function.description", code: wrong},
		{name: "a function that is strict in another way", body: good(`"tools":[{"type":"function","function":{"name":"f","strict":"yes"}}]`), status: 400, param: "tools[0].function.strict", code: wrong},
		{name: "a schema without a type", body: good(`"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{}}}}]`), status: 400, param: "tools[0].function.parameters", code: "invalid_function_parameters"},
		{name: "an unknown tool choice", body: tooled(`"any"`), status: 400, param: "tool_choice", code: "invalid_value"},
		{name: "a tool choice of another type", body: tooled(`1`), status: 400, param: "tool_choice", code: wrong},
		{name: "a tool choice without a type", body: tooled(`{}`), status: 400, param: "tool_choice.type", code: missing},
		{name: "a tool choice of an unknown type", body: tooled(`{"type":"tool"}`), status: 400, param: "tool_choice.type", code: "invalid_value"},
		{name: "a tool choice without a name", body: tooled(`{"type":"function"}`), status: 400, param: "tool_choice.function.name", code: missing},
		{name: "allowed tools of another type", body: tooled(`{"type":"allowed_tools","allowed_tools":[]}`), status: 400, param: "tool_choice.allowed_tools", code: wrong},
		{name: "a role of another type", body: messages(`[{"role":1,"content":"x"}]`), status: 400, param: "messages[0].role", code: wrong},
		{name: "calls of the user", body: messages(`[{"role":"user","content":"x","tool_calls":[]}]`), status: 400, param: "messages[0].tool_calls", code: "unknown_parameter"},
		{name: "a part of another type", body: messages(`[{"role":"user","content":["x"]}]`), status: 400, param: "messages[0].content[0]", code: wrong},
		{name: "a part without a type", body: messages(`[{"role":"user","content":[{"text":"x"}]}]`), status: 400, param: "messages[0].content[0].type", code: missing},
		{name: "a part with a type of another type", body: messages(`[{"role":"user","content":[{"type":1}]}]`), status: 400, param: "messages[0].content[0].type", code: wrong},
		{name: "a text part without text", body: messages(`[{"role":"user","content":[{"type":"text"}]}]`), status: 400, param: "messages[0].content[0].text", code: missing},
		{name: "a text part of another type", body: messages(`[{"role":"user","content":[{"type":"text","text":1}]}]`), status: 400, param: "messages[0].content[0].text", code: wrong},
		{name: "a file part without a file", body: messages(`[{"role":"user","content":[{"type":"file"}]}]`), status: 400, param: "messages[0].content[0].file", code: missing},
		{name: "a file part of another type", body: messages(`[{"role":"user","content":[{"type":"file","file":"x"}]}]`), status: 400, param: "messages[0].content[0].file", code: wrong},
		{name: "an image part without an image", body: messages(`[{"role":"user","content":[{"type":"image_url"}]}]`), status: 400, param: "messages[0].content[0].image_url", code: missing},
		{name: "an image part of another type", body: messages(`[{"role":"user","content":[{"type":"image_url","image_url":"https://example.com/a.png"}]}]`), status: 400, param: "messages[0].content[0].image_url", code: wrong},
		{name: "an image without a URL", body: messages(`[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]`), status: 400, param: "messages[0].content[0].image_url.url", code: missing},
		{name: "an image with a URL of another type", body: messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":1}}]}]`), status: 400, param: "messages[0].content[0].image_url.url", code: wrong},
		{name: "an image with an unknown detail", body: messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"most"}}]}]`), status: 400, param: "messages[0].content[0].image_url.detail", code: "invalid_value"},
		{name: "calls of another type", body: messages(`[{"role":"assistant","tool_calls":"f"}]`), status: 400, param: "messages[0].tool_calls", code: wrong},
		{name: "a call of another type", body: messages(`[{"role":"assistant","tool_calls":["f"]}]`), status: 400, param: "messages[0].tool_calls[0]", code: wrong},
		{name: "a call of an unknown type", body: messages(`[{"role":"assistant","tool_calls":[{"id":"a","type":"web"}]}]`), status: 400, param: "messages[0].tool_calls[0].type", code: "invalid_value"},
		{name: "a call without a function", body: messages(`[{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]}]`), status: 400, param: "messages[0].tool_calls[0].function", code: missing},
		{name: "a call with a function of another type", body: messages(`[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":"f"}]}]`), status: 400, param: "messages[0].tool_calls[0].function", code: wrong},
		{name: "a call without arguments", body: messages(`[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f"}}]}]`), status: 400, param: "messages[0].tool_calls[0].function.arguments", code: missing},
		{name: "a tool call id of another type", body: chat("gpt-4o", user("x"), assistant(a), `{"role":"tool","tool_call_id":1,"content":"x"}`), status: 400, param: "messages[2].tool_call_id", code: wrong},
		{name: "a result of the deprecated functions without a name", body: messages(`[{"role":"function","content":"x"}]`), status: 400, param: "messages[0].name", code: missing},

		{name: "two choices", body: good(`"n":2`), status: 400, param: "n", code: "emulator_unsupported"},
		{name: "log probabilities", body: good(`"logprobs":true`), status: 400, param: "logprobs", code: "emulator_unsupported"},
		{name: "audio", body: good(`"modalities":["text","audio"]`), status: 400, param: "modalities", code: "emulator_unsupported"},
		{name: "functions", body: good(`"functions":[{"name":"f"}]`), status: 400, param: "functions", code: "emulator_unsupported"},

		{name: "no conversation", body: chat("gpt-4o", user("What's the wether in Florence, Italy?")), status: 400, param: "messages", code: "emulator_no_script"},
		{name: "no step", body: chat("gpt-4o", user("unicode"), said("x")), status: 400, param: "messages", code: "emulator_no_script"},
		{name: "no user message", body: chat("gpt-4o", system("unicode")), status: 400, param: "messages", code: "emulator_no_script"},
		{name: "a placeholder without a result", body: chat("gpt-4o", user("no result")), status: 400, param: "messages", code: "emulator_template"},
	}
}

// failures are the errors that testdata/full.yaml answers with, by the text that asks for them.
var failures = map[string]int{"e400": 400, "e401": 401, "e403": 403, "e404": 404, "e408": 408, "e413": 413, "e429": 429, "e500": 500, "e503": 503, "e529": 529}
