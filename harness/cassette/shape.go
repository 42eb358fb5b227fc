package cassette

import (
	"net/url"
	"slices"
	"strings"
)

// Class says what changed between a recording and the present.
type Class string

// The classes, in order: of several that hold the first counts.
const (
	ClassOther           Class = "other" // no request to a model
	ClassInputFiles      Class = "input-files"
	ClassModel           Class = "model"
	ClassSystemPrompt    Class = "system-prompt"
	ClassToolSchema      Class = "tool-schema"
	ClassToolDescription Class = "tool-description"
	ClassUserInput       Class = "user-input"
	ClassHistory         Class = "history"
	ClassToolArguments   Class = "tool-arguments"
	ClassToolResult      Class = "tool-result"
	ClassParameters      Class = "parameters" // limit of the output, format of the response, choice of tools
	ClassSampling        Class = "sampling"
	ClassTransport       Class = "transport" // headers, addresses, and what the model does not see; a stream in the place of a whole reply is a parameter, as its reader could not read the other
)

// Classes lists all classes in order.
var Classes = []Class{ClassOther, ClassInputFiles, ClassModel, ClassSystemPrompt, ClassToolSchema, ClassToolDescription, ClassUserInput, ClassHistory, ClassToolArguments, ClassToolResult, ClassParameters, ClassSampling, ClassTransport}

// shape tells what the parts of a vendor's requests are. A further vendor is a further row.
type shape struct {
	name  string
	paths []string // ends of the URL's path; a * stands for one segment, or for the beginning of one
	// urlModel says that the path names the model, where the * is, so that another name there is another model. Another of the paths is another way to be answered.
	urlModel bool
	// fields gives the class of a path in the body: the longest pattern that begins the path counts, of equally long ones the first. A [] in it stands for any index, [0] for one, and [role=NAME] for an element whose member role is NAME. What no pattern covers is a parameter.
	fields []fieldClass
	// messages is the list that grows from request to request.
	messages string
	// texts tells which strings the rules of replay.normalize look at: patterns as in fields, that must match a whole path, or where they end in * its beginning. A text of no part of its own is one of any alone.
	texts []textPart
	// reply tells where a response has what it says.
	reply replyPaths
}

type textPart struct {
	pattern string
	part    Part
}

// replyPaths are patterns of paths in a whole response, and in the events of a stream; "" where a vendor has none.
type replyPaths struct {
	text, call                       string // of a whole response: the answer, and the names of the tools that it calls
	pieces, callPiece                string // the same in the events of a stream
	input, output, cached, reasoning string // tokens, in a response or an event
	written                          string // tokens of the input that were written to a cache
	within                           string // the member of an event that holds a whole response; "" for none
	// unsummed says that input counts neither what was read from a cache nor what was written to one.
	unsummed bool
	// beside says that the vendor counts reasoning beside the output, not within.
	beside bool
	// unsaid is a member that is true in what is no part of the answer, such as a thought.
	unsaid string
}

type fieldClass struct {
	pattern string
	class   Class
}

var shapes = []shape{
	{
		name:     "OpenAI chat completions",
		paths:    []string{"/chat/completions"},
		messages: "messages",
		fields: []fieldClass{
			{"model", ClassModel},
			{"messages", ClassHistory},
			{"messages[]", ClassHistory},
			{"messages[role=system]", ClassSystemPrompt},
			{"messages[role=developer]", ClassSystemPrompt},
			{"messages[role=user]", ClassUserInput},
			{"messages[role=assistant].tool_calls[].function.arguments", ClassToolArguments},
			{"messages[role=assistant].function_call.arguments", ClassToolArguments},
			{"messages[role=tool]", ClassToolResult},
			{"messages[role=function]", ClassToolResult},
			{"tools", ClassToolSchema},
			{"tools[].function.description", ClassToolDescription},
			{"functions", ClassToolSchema},
			{"functions[].description", ClassToolDescription},
			{"temperature", ClassSampling},
			{"top_p", ClassSampling},
			{"seed", ClassSampling},
			{"frequency_penalty", ClassSampling},
			{"presence_penalty", ClassSampling},
			{"logit_bias", ClassSampling},
			{"logprobs", ClassSampling},
			{"top_logprobs", ClassSampling},
			{"stream_options", ClassTransport},
			{"user", ClassTransport},
			{"safety_identifier", ClassTransport},
			{"prompt_cache_key", ClassTransport},
			{"prompt_cache_retention", ClassTransport},
			{"service_tier", ClassTransport},
			{"store", ClassTransport},
			{"metadata", ClassTransport},
		},
		texts: []textPart{
			{"messages[role=system].content", PartSystem},
			{"messages[role=system].content[].text", PartSystem},
			{"messages[role=developer].content", PartSystem},
			{"messages[role=developer].content[].text", PartSystem},
			{"messages[role=user].content", PartUser},
			{"messages[role=user].content[].text", PartUser},
			{"messages[role=tool].content", PartTool},
			{"messages[role=tool].content[].text", PartTool},
			{"messages[role=function].content", PartTool},
			{"messages[role=assistant].content", PartAny},
			{"messages[role=assistant].content[].text", PartAny},
			{"messages[role=assistant].tool_calls[].function.arguments", PartAny},
			{"messages[role=assistant].function_call.arguments", PartAny},
			{"tools[].function.description", PartAny},
			{"functions[].description", PartAny},
		},
		reply: replyPaths{
			text: "choices[0].message.content", call: "choices[0].message.tool_calls[].function.name",
			pieces: "choices[0].delta.content", callPiece: "choices[0].delta.tool_calls[].function.name",
			input: "usage.prompt_tokens", output: "usage.completion_tokens",
			cached: "usage.prompt_tokens_details.cached_tokens", reasoning: "usage.completion_tokens_details.reasoning_tokens",
		},
	},
	{
		name:     "OpenAI responses",
		paths:    []string{"/responses"},
		messages: "input",
		fields: []fieldClass{
			{"model", ClassModel},
			{"instructions", ClassSystemPrompt},
			{"input", ClassHistory},
			{"input[]", ClassHistory},
			{"input[role=system]", ClassSystemPrompt},
			{"input[role=developer]", ClassSystemPrompt},
			{"input[role=user]", ClassUserInput},
			{"input[role=function_call].arguments", ClassToolArguments},
			{"input[role=function_call_output]", ClassToolResult},
			{"tools", ClassToolSchema},
			{"tools[].description", ClassToolDescription},
			{"temperature", ClassSampling},
			{"top_p", ClassSampling},
			{"top_logprobs", ClassSampling},
			{"stream_options", ClassTransport},
			{"user", ClassTransport},
			{"safety_identifier", ClassTransport},
			{"prompt_cache_key", ClassTransport},
			{"prompt_cache_retention", ClassTransport},
			{"service_tier", ClassTransport},
			{"store", ClassTransport},
			{"metadata", ClassTransport},
		},
		texts: []textPart{
			{"instructions", PartSystem},
			{"input[role=system].content", PartSystem},
			{"input[role=system].content[].text", PartSystem},
			{"input[role=developer].content", PartSystem},
			{"input[role=developer].content[].text", PartSystem},
			{"input", PartUser},
			{"input[role=user].content", PartUser},
			{"input[role=user].content[].text", PartUser},
			{"input[role=function_call_output].output", PartTool},
			{"input[role=function_call_output].output[].text", PartTool},
			{"input[role=assistant].content", PartAny},
			{"input[role=assistant].content[].text", PartAny},
			{"input[role=function_call].arguments", PartAny},
			{"tools[].description", PartAny},
		},
		reply: replyPaths{
			text: "output[].content[].text", call: "output[].name",
			pieces: "response.output[].content[].text", callPiece: "response.output[].name",
			input: "usage.input_tokens", output: "usage.output_tokens",
			cached: "usage.input_tokens_details.cached_tokens", reasoning: "usage.output_tokens_details.reasoning_tokens",
			within: "response",
		},
	},
	{
		name:     "Anthropic messages",
		paths:    []string{"/v1/messages"},
		messages: "messages",
		fields: []fieldClass{
			{"model", ClassModel},
			{"system", ClassSystemPrompt},
			{"messages", ClassHistory},
			{"messages[]", ClassHistory},
			{"messages[role=system]", ClassSystemPrompt},
			{"messages[role=user]", ClassUserInput},
			{"messages[role=assistant].content[].input", ClassToolArguments},
			{"messages[role=tool]", ClassToolResult},
			{"messages[role=tool].content[].text", ClassUserInput},
			{"messages[].content[].cache_control", ClassTransport},
			{"system[].cache_control", ClassTransport},
			{"tools", ClassToolSchema},
			{"tools[].description", ClassToolDescription},
			{"tools[].cache_control", ClassTransport},
			{"temperature", ClassSampling},
			{"top_p", ClassSampling},
			{"top_k", ClassSampling},
			{"cache_control", ClassTransport},
			{"diagnostics", ClassTransport},
			{"inference_geo", ClassTransport},
			{"metadata", ClassTransport},
			{"service_tier", ClassTransport},
			{"speed", ClassTransport},
		},
		texts: []textPart{
			{"system", PartSystem},
			{"system[].text", PartSystem},
			{"messages[role=user].content", PartUser},
			{"messages[role=user].content[].text", PartUser},
			{"messages[role=tool].content[].text", PartUser},
			{"messages[role=tool].content[].content", PartTool},
			{"messages[role=tool].content[].content[].text", PartTool},
			{"messages[role=assistant].content", PartAny},
			{"messages[role=assistant].content[].text", PartAny},
			{"tools[].description", PartAny},
		},
		reply: replyPaths{
			text: "content[].text", call: "content[].name",
			pieces: "delta.text", callPiece: "content_block.name",
			input: "usage.input_tokens", output: "usage.output_tokens",
			cached: "usage.cache_read_input_tokens", reasoning: "usage.output_tokens_details.thinking_tokens",
			written: "usage.cache_creation_input_tokens", unsummed: true, within: "message",
		},
	},
	{
		name:     "Gemini",
		paths:    []string{"/models/*:generateContent", "/models/*:streamGenerateContent"},
		urlModel: true,
		messages: "contents",
		fields: []fieldClass{
			{"model", ClassModel},
			{"systemInstruction", ClassSystemPrompt},
			{"contents", ClassHistory},
			{"contents[]", ClassHistory},
			{"contents[role=user]", ClassUserInput},
			{"contents[role=user].parts[].functionResponse", ClassToolResult},
			{"contents[role=function]", ClassToolResult},
			{"contents[role=model].parts[].functionCall.args", ClassToolArguments},
			{"tools", ClassToolSchema},
			{"tools[].functionDeclarations[].description", ClassToolDescription},
			{"generationConfig.temperature", ClassSampling},
			{"generationConfig.topP", ClassSampling},
			{"generationConfig.topK", ClassSampling},
			{"generationConfig.seed", ClassSampling},
			{"generationConfig.presencePenalty", ClassSampling},
			{"generationConfig.frequencyPenalty", ClassSampling},
			{"generationConfig.responseLogprobs", ClassSampling},
			{"generationConfig.logprobs", ClassSampling},
			{"labels", ClassTransport},
			{"serviceTier", ClassTransport},
			{"store", ClassTransport},
		},
		texts: []textPart{
			{"systemInstruction.parts[].text", PartSystem},
			{"contents[role=user].parts[].text", PartUser},
			{"contents[role=user].parts[].functionResponse.response*", PartTool},
			{"contents[role=function].parts[].functionResponse.response*", PartTool},
			{"contents[role=model].parts[].text", PartAny},
			{"contents[role=model].parts[].functionCall.args*", PartAny},
			{"tools[].functionDeclarations[].description", PartAny},
		},
		reply: replyPaths{
			text: "candidates[0].content.parts[].text", call: "candidates[0].content.parts[].functionCall.name",
			pieces: "candidates[0].content.parts[].text", callPiece: "candidates[0].content.parts[].functionCall.name",
			input: "usageMetadata.promptTokenCount", output: "usageMetadata.candidatesTokenCount",
			cached: "usageMetadata.cachedContentTokenCount", reasoning: "usageMetadata.thoughtsTokenCount",
			beside: true, unsaid: "thought",
		},
	},
	{
		name:     "Bedrock Converse",
		paths:    []string{"/model/*/converse", "/model/*/converse-stream"},
		urlModel: true,
		messages: "messages",
		fields: []fieldClass{
			{"system", ClassSystemPrompt},
			{"messages", ClassHistory},
			{"messages[]", ClassHistory},
			{"messages[role=system]", ClassSystemPrompt},
			{"messages[role=user]", ClassUserInput},
			{"messages[role=assistant].content[].toolUse.input", ClassToolArguments},
			{"messages[role=tool]", ClassToolResult},
			{"messages[role=tool].content[].text", ClassUserInput},
			{"messages[].content[].cachePoint", ClassTransport},
			{"system[].cachePoint", ClassTransport},
			{"toolConfig", ClassToolSchema},
			{"toolConfig.tools[].toolSpec.description", ClassToolDescription},
			{"toolConfig.tools[].cachePoint", ClassTransport},
			{"toolConfig.toolChoice", ClassParameters},
			{"inferenceConfig.temperature", ClassSampling},
			{"inferenceConfig.topP", ClassSampling},
			{"performanceConfig", ClassTransport},
			{"requestMetadata", ClassTransport},
			{"serviceTier", ClassTransport},
		},
		texts: []textPart{
			{"system[].text", PartSystem},
			{"messages[role=system].content[].text", PartSystem},
			{"messages[role=user].content[].text", PartUser},
			{"messages[role=tool].content[].text", PartUser},
			{"messages[role=tool].content[].toolResult.content[].text", PartTool},
			{"messages[role=tool].content[].toolResult.content[].json*", PartTool},
			{"messages[role=assistant].content[].text", PartAny},
			{"messages[role=assistant].content[].toolUse.input*", PartAny},
			{"toolConfig.tools[].toolSpec.description", PartAny},
		},
		reply: replyPaths{
			text: "output.message.content[].text", call: "output.message.content[].toolUse.name",
			pieces: "delta.text", callPiece: "start.toolUse.name",
			input: "usage.inputTokens", output: "usage.outputTokens",
			cached: "usage.cacheReadInputTokens", written: "usage.cacheWriteInputTokens", unsummed: true,
		},
	},
	{
		name:  "OpenAI embeddings",
		paths: []string{"/embeddings"},
		fields: []fieldClass{
			{"model", ClassModel},
			{"input", ClassUserInput},
			{"user", ClassTransport},
		},
		texts: []textPart{{"input", PartUser}, {"input[]", PartUser}},
		reply: replyPaths{input: "usage.prompt_tokens"},
	},
	{
		name:     "Gemini embeddings",
		paths:    []string{"/models/*:batchEmbedContents", "/models/*:embedContent"},
		urlModel: true,
		fields: []fieldClass{
			{"model", ClassModel},
			{"requests[].model", ClassModel},
			{"content", ClassUserInput},
			{"requests", ClassUserInput},
			{"requests[].outputDimensionality", ClassParameters},
			{"requests[].taskType", ClassParameters},
		},
		texts: []textPart{{"content.parts[].text", PartUser}, {"requests[].content.parts[].text", PartUser}},
		reply: replyPaths{input: "usageMetadata.promptTokenCount"},
	},
	{
		// The bodies are those of the model's maker: Amazon's and Cohere's embeddings, and Anthropic's messages.
		name:     "Bedrock InvokeModel",
		paths:    []string{"/model/*/invoke"},
		urlModel: true,
		messages: "messages",
		fields: []fieldClass{
			{"inputText", ClassUserInput},
			{"texts", ClassUserInput},
			{"system", ClassSystemPrompt},
			{"messages", ClassHistory},
			{"messages[role=user]", ClassUserInput},
			{"tools", ClassToolSchema},
			{"tools[].description", ClassToolDescription},
			{"temperature", ClassSampling},
			{"top_p", ClassSampling},
			{"top_k", ClassSampling},
		},
		texts: []textPart{{"inputText", PartUser}, {"texts[]", PartUser}},
		reply: replyPaths{input: "inputTextTokenCount"},
	},
}

// descriptions are members of a JSON Schema that only explain. Anywhere within a tool's schema they are tool-description.
var descriptions = []string{"description", "title", "examples"}

func shapeOf(rawURL string) *shape {
	s, _, _ := addressed(rawURL)
	return s
}

// addressed returns the shape of the requests to an address, which of its paths that is, and what stands in the place of the *.
func addressed(rawURL string) (s *shape, path, wild string) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "tool" {
		return nil, "", ""
	}
	for i := range shapes {
		for _, end := range shapes[i].paths {
			if wild, ok := endsLike(u.EscapedPath(), end); ok {
				return &shapes[i], end, wild
			}
		}
	}
	return nil, "", ""
}

func endsLike(path, pattern string) (wild string, ok bool) {
	p, q := strings.Split(path, "/"), strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if len(p) < len(q) {
		return "", false
	}
	for i, segment := range p[len(p)-len(q):] {
		// The name of a model may hold a slash, which does not end the segment.
		if plain, err := url.PathUnescape(segment); err == nil {
			segment = plain
		}
		end, any := strings.CutPrefix(q[i], "*")
		switch begin, ends := strings.CutSuffix(segment, end); {
		case any && ends && begin != "":
			wild = begin
		case any || segment != end:
			return "", false
		}
	}
	return wild, true
}

// class gives the class of a path whose element of the list of messages has the given role.
func (s *shape) class(path, role string) Class {
	best, class := -1, ClassParameters
	for _, f := range s.fields {
		if n := matches(f.pattern, path, role); n > best {
			best, class = n, f.class
		}
	}
	if class == ClassToolSchema && slices.Contains(descriptions, path[strings.LastIndexAny(path, ".[")+1:]) && !strings.HasSuffix(path, ".properties."+path[strings.LastIndexAny(path, ".[")+1:]) {
		class = ClassToolDescription
	}
	return class
}

// text gives the part of a string that the rules of replay.normalize look at.
func (s *shape) text(path, role string) (Part, bool) {
	for _, t := range s.texts {
		if fits(t.pattern, path, role) {
			return t.part, true
		}
	}
	return "", false
}

// fits reports that a pattern matches the whole path, or its beginning where the pattern ends in *.
func fits(pattern, path, role string) bool {
	if begin, below := strings.CutSuffix(pattern, "*"); below {
		return matches(begin, path, role) >= 0
	}
	return strings.Count(pattern, ".") == strings.Count(path, ".") && strings.Count(pattern, "[") == strings.Count(path, "[") && matches(pattern, path, role) >= 0
}

// matches returns how much of a pattern there is, or -1 where it does not begin the path.
func matches(pattern, path, role string) int {
	weight := 0
	for pattern != "" {
		switch {
		case strings.HasPrefix(pattern, "["):
			inside, rest, _ := strings.Cut(pattern[1:], "]")
			place, after, found := strings.Cut(path, "]")
			if !found || !strings.HasPrefix(place, "[") || inside != "" && inside != "role="+role && inside != place[1:] {
				return -1
			}
			weight += 1 + len(inside)
			pattern, path = rest, after
		default:
			n := strings.IndexAny(pattern[1:], ".[") + 1
			if n == 0 {
				n = len(pattern)
			}
			word := pattern[:n]
			after, found := strings.CutPrefix(path, word)
			if !found || after != "" && after[0] != '.' && after[0] != '[' {
				return -1
			}
			weight += n
			pattern, path = pattern[n:], after
		}
	}
	return weight
}
