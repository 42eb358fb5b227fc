package emulator

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// geminiRequest is what of a request concerns the format alone.
type geminiRequest struct {
	thoughts bool // are to be shown
}

// readGemini checks a request as the vendor does and fills q with what it asks.
func readGemini(root *value, q *query) (geminiRequest, *geminiError) {
	r := &geminiReader{}
	r.message("", "GenerateContentRequest", root)
	if len(r.violations) > 0 {
		return geminiRequest{}, r.badRequest()
	}
	r.contents(root, q)
	r.tools(root, q)
	r.config(root.get("generationConfig"), q)
	r.unsupported(root)
	if r.refused == nil {
		q.index()
	}
	return geminiRequest{thoughts: root.get("generationConfig").get("thinkingConfig").get("includeThoughts").isTrue()}, r.refused
}

// badRequest tells the violations, each also as a detail.
func (r *geminiReader) badRequest() *geminiError {
	const most = 20
	list := r.violations[:min(len(r.violations), most)]
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"description":`)
		b.Write(quoted(v))
		b.WriteByte('}')
	}
	return &geminiError{400, invalidArgument, strings.Join(list, "\n"), []string{`{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[` + b.String() + `]}`}}
}

func (r *geminiReader) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = &geminiError{status: 400, word: invalidArgument, message: fmt.Sprintf(format, args...)}
	}
}

// at refuses a field, in the form that the vendor has for it.
func (r *geminiReader) at(path, format string, args ...any) {
	r.refuse("* GenerateContentRequest.%s: %s\n", path, fmt.Sprintf(format, args...))
}

// unsupported refuses what the vendor offers and the emulator does not.
func (r *geminiReader) unsupported(root *value) {
	refuse := func(name string) {
		if r.refused == nil {
			r.refused = &geminiError{400, invalidArgument, "the emulator does not support " + name + ": its scripts answer with one candidate of text and function calls", []string{errorInfo("EMULATOR_UNSUPPORTED")}}
		}
	}
	if root.get("cachedContent").given() {
		refuse("cached_content")
	}
	for i := range root.get("tools").items {
		for _, name := range root.get("tools").items[i].keys {
			if name != "functionDeclarations" {
				refuse("tools." + snake(name))
			}
		}
	}
	config := root.get("generationConfig")
	if n := config.get("candidateCount"); n.given() && n.text != "1" {
		refuse("generation_config.candidate_count")
	}
	if config.get("responseLogprobs").isTrue() {
		refuse("generation_config.response_logprobs")
	}
	for _, m := range config.get("responseModalities").items {
		if !strings.EqualFold(m.text, "TEXT") {
			refuse("generation_config.response_modalities")
		}
	}
}

func (r *geminiReader) contents(root *value, q *query) {
	if system := root.get("systemInstruction"); system.given() {
		t := turn{role: roleSystem}
		for i := range system.get("parts").items {
			p := &system.get("parts").items[i]
			if !p.get("text").given() {
				r.refuse("System instruction can only have text parts.")
			}
			t.text = addLine(t.text, p.get("text").text, i == 0)
		}
		q.turns = append(q.turns, t)
	}
	list := root.get("contents").items
	if len(list) == 0 {
		r.at("contents", "contents is not specified")
	}
	pending := []madeCall(nil) // the calls of the content before
	for i := range list {
		pending = r.content(i, &list[i], pending, q)
	}
	if len(pending) > 0 {
		r.refuse("Please ensure that function call turns are followed by the responses to their calls.")
	}
}

// madeCall is a call with the id that the request gives it, "" for none.
type madeCall struct {
	callRef
	given string
}

// functionAnswer is a function response. Its id is "" where the request gives none.
type functionAnswer struct{ id, name, text string }

// of reports whether the response answers a call.
func (a *functionAnswer) of(c madeCall) bool {
	return a.name == c.name && (a.id == "" || c.given == "" || a.id == c.given)
}

// addLine joins texts by line feeds.
func addLine(text, more string, first bool) string {
	if first {
		return more
	}
	return text + "\n" + more
}

// content reads one content into turns: the text and media of a user, the answer of a model, each function response by itself. It returns the calls that are to be answered.
func (r *geminiReader) content(i int, v *value, pending []madeCall, q *query) []madeCall {
	path := "contents[" + strconv.Itoa(i) + "]"
	role, parts := v.get("role").text, v.get("parts").items
	if role != "" && role != "user" && role != "model" && role != "function" {
		r.refuse("Please use a valid role: user, model.")
	}
	if len(parts) == 0 {
		r.at(path+".parts", "contents.parts must not be empty.")
	}
	t := turn{role: roleUser}
	if role == "model" {
		t.role = roleAssistant
	}
	var calls []madeCall
	var answers []functionAnswer
	texts, others := 0, 0
	for j := range parts {
		at, p := path+".parts["+strconv.Itoa(j)+"]", &parts[j]
		kind := r.kind(at, p)
		switch kind {
		case "text":
			if !p.get("thought").isTrue() {
				t.text = addLine(t.text, p.get("text").text, texts == 0)
				texts++
			}
			others++
		case "functionCall":
			calls = append(calls, r.call(at, i, calls, p, q))
		case "functionResponse":
			f := p.get(kind)
			r.functionName(at+".function_response.name", f.get("name"))
			if !f.get("response").given() {
				r.at(at+".function_response.response", "Response cannot be empty.")
			}
			answers = append(answers, functionAnswer{f.get("id").text, f.get("name").text, responseText(f.get("response"))})
		default:
			t.images++
			others++
		}
	}
	r.order(i, t.role, calls, answers, pending)
	if r.refused != nil {
		return nil
	}
	for _, a := range answers {
		at := slices.IndexFunc(pending, a.of)
		q.turns = append(q.turns, turn{role: roleTool, callID: pending[at].id, text: a.text})
		pending = slices.Delete(pending, at, at+1)
	}
	for _, c := range calls {
		t.calls = append(t.calls, c.callRef)
	}
	if others > 0 || len(calls) > 0 || len(answers) == 0 {
		q.turns = append(q.turns, t)
	}
	return calls
}

// order checks how calls and responses follow each other.
func (r *geminiReader) order(i int, from role, calls []madeCall, answers []functionAnswer, pending []madeCall) {
	switch {
	case len(calls) > 0 && from != roleAssistant:
		r.refuse("Please ensure that function call turn comes from the model: role 'model'.")
	case len(answers) > 0 && from == roleAssistant:
		r.refuse("Please ensure that function response turn comes from the user: role 'user'.")
	case len(calls) > 0 && (i == 0 || len(pending) > 0):
		r.refuse("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	case len(answers) > 0 && len(pending) == 0:
		r.refuse("Please ensure that function response turn comes immediately after a function call turn.")
	case len(pending) != len(answers):
		r.refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	open := slices.Clone(pending)
	for _, a := range answers {
		at := slices.IndexFunc(open, a.of)
		if at < 0 {
			r.refuse("Please ensure that each function response has the name and, where there is one, the id of a function call of the turn before: %q has not.", shorten(a.name, 200))
			return
		}
		open = slices.Delete(open, at, at+1)
	}
}

// responseText is the result as a script sees it: what the usual keys hold, else the whole as JSON.
func responseText(v *value) string {
	for _, key := range []string{"result", "output", "error"} {
		if text := v.get(key); len(v.keys) == 1 && text.kind == '"' {
			return text.text
		}
	}
	return string(v.append(nil))
}

// kind is which of the data of a part is given.
func (r *geminiReader) kind(path string, p *value) string {
	var given []string
	for _, name := range []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"} {
		if p.get(name).given() {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0:
		r.at(path+".data", "required oneof field 'data' must have one initialized field")
		return ""
	case len(given) > 1:
		r.refuse("Invalid value at '%s' (oneof), oneof field 'data' is already set. Cannot set '%s'", path, given[1])
		return ""
	}
	body := p.get(given[0])
	switch given[0] {
	case "inlineData":
		r.mediaType(path+".inline_data.mime_type", body.get("mimeType"))
		if body.get("data").text == "" {
			r.at(path+".inline_data.data", "data must not be empty.")
		}
	case "fileData":
		if u, err := url.Parse(body.get("fileUri").text); err != nil || u.Scheme == "" {
			r.refuse("Invalid or unsupported file uri: %s", shorten(body.get("fileUri").text, 200))
		}
	}
	return given[0]
}

// mediaTypes are the beginnings of what the vendor takes.
var mediaTypes = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf", "text/", "audio/", "video/", "application/json"}

func (r *geminiReader) mediaType(path string, v *value) {
	switch {
	case v.text == "":
		r.at(path, "mime_type must not be empty.")
	case !slices.ContainsFunc(mediaTypes, func(t string) bool { return strings.HasPrefix(v.text, t) }):
		r.refuse("Unsupported MIME type: %s", shorten(v.text, 200))
	}
}

func (r *geminiReader) call(path string, content int, before []madeCall, p *value, q *query) madeCall {
	f := p.get("functionCall")
	r.functionName(path+".function_call.name", f.get("name"))
	if len(before) == 0 && isGemini3(q.model) && p.get("thoughtSignature").text == "" {
		r.refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", shorten(f.get("name").text, 200), content+1)
	}
	c := madeCall{callRef{id: f.get("id").text, name: f.get("name").text, args: "{}"}, f.get("id").text}
	if c.id == "" {
		c.id = "position " + strconv.Itoa(content) + " " + strconv.Itoa(len(before))
	}
	if slices.ContainsFunc(before, func(b madeCall) bool { return b.id == c.id }) {
		r.refuse("Please ensure that function calls of one turn have different ids: %q stands there twice.", shorten(c.id, 200))
	}
	if args := f.get("args"); args.given() {
		c.args = string(args.append(nil))
	}
	return c
}

// functionName checks that a name is there.
func (r *geminiReader) functionName(path string, v *value) {
	if v.text == "" {
		r.at(path, "Name cannot be empty.")
	}
}

func (r *geminiReader) tools(root *value, q *query) {
	var names []string
	tools := root.get("tools")
	for i := range tools.items {
		list := tools.items[i].get("functionDeclarations")
		for j := range list.items {
			path := fmt.Sprintf("tools[%d].function_declarations[%d]", i, j)
			f := &list.items[j]
			name := f.get("name").text
			if !isFunctionName(name) {
				r.at(path+".name", "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.")
			}
			if slices.Contains(names, name) {
				r.refuse("Duplicate function declaration found: %s", shorten(name, 200))
			}
			names = append(names, name)
			if f.get("parameters").given() && f.get("parametersJsonSchema").given() {
				r.at(path, "parameters and parameters_json_schema must not both be set.")
			}
			if schema := f.get("parameters"); schema.given() {
				if !strings.EqualFold(schema.get("type").text, "OBJECT") {
					r.at(path+".parameters.type", "functionDeclaration parameters schema should be of type OBJECT.")
				}
				r.schema(path+".parameters", schema)
			}
		}
	}
	q.schemas = tools.size()
	calling := root.get("toolConfig").get("functionCallingConfig")
	allowed := calling.get("allowedFunctionNames")
	if len(allowed.items) > 0 && !strings.EqualFold(calling.get("mode").text, "ANY") && !strings.EqualFold(calling.get("mode").text, "VALIDATED") {
		r.refuse("Function calling config is set without function_declarations or allowed_function_names is set while mode is not ANY.")
	}
	for _, name := range allowed.items {
		if !slices.Contains(names, name.text) {
			r.refuse("allowed_function_names contains %q, which is not one of the function declarations.", shorten(name.text, 200))
		}
	}
}

func isFunctionName(name string) bool {
	const longest = 128
	if name == "" || len(name) > longest || strings.ContainsAny(name[:1], "0123456789.:-") {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune("_.:-", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}

// schema checks what the fields of a schema say together.
func (r *geminiReader) schema(path string, v *value) {
	kind := strings.ToUpper(v.get("type").text)
	if kind == "ARRAY" && !v.get("items").given() {
		r.at(path+".items", "missing field.")
	}
	if len(v.get("enum").items) > 0 && kind != "STRING" && kind != "" {
		r.at(path+".enum", "only allowed for STRING type")
	}
	if format := v.get("format"); format.given() && kind == "STRING" && format.text != "enum" && format.text != "date-time" {
		r.at(path+".format", "only 'enum' and 'date-time' are supported for STRING type")
	}
	properties := v.get("properties")
	for i, name := range v.get("required").items {
		if !slices.Contains(properties.keys, name.text) {
			r.at(path+".required["+strconv.Itoa(i)+"]", "property is not defined")
		}
	}
	for i, name := range properties.keys {
		r.schema(path+".properties["+shorten(name, 100)+"]", &properties.items[i])
	}
	if items := v.get("items"); items.given() {
		r.schema(path+".items", items)
	}
	for i := range v.get("anyOf").items {
		r.schema(path+".any_of["+strconv.Itoa(i)+"]", &v.get("anyOf").items[i])
	}
}

func (r *geminiReader) config(c *value, q *query) {
	between := func(name string, low, high float64, bounds string) {
		v := c.get(name)
		if x, err := strconv.ParseFloat(v.text, 64); v.given() && (err != nil || x < low || x > high) {
			r.at("generation_config."+snake(name), "%s must be in the range %s.", snake(name), bounds)
		}
	}
	between("temperature", 0, 2, "[0.0, 2.0]")
	between("topP", 0, 1, "[0.0, 1.0]")
	between("maxOutputTokens", 1, 1<<31-1, "[1, 2147483647]")
	between("seed", -1<<31, 1<<31-1, "of 32 bits")
	const mostStops = 5
	if len(c.get("stopSequences").items) > mostStops {
		r.at("generation_config.stop_sequences", "at most %d stop sequences are allowed.", mostStops)
	}
	if schema := c.get("responseSchema"); schema.given() {
		r.schema("generation_config.response_schema", schema)
	}
	if (c.get("responseSchema").given() || c.get("responseJsonSchema").given()) && c.get("responseMimeType").text != "application/json" {
		r.refuse("Response schema is only supported with a response_mime_type of application/json.")
	}
	thinking := c.get("thinkingConfig")
	budget, level := thinking.get("thinkingBudget"), thinking.get("thinkingLevel")
	switch {
	case budget.given() && level.given():
		r.refuse("You can only set only one of thinking budget and thinking level.")
	case level.given() && !isGemini3(q.model):
		r.refuse("Thinking level is not supported for this model.")
	case strings.HasPrefix(budget.text, "-") && budget.text != "-1":
		r.at("generation_config.thinking_config.thinking_budget", "thinking budget must be -1, 0 or positive.")
	}
}
