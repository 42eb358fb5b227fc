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
	paths []string // ends of the URL's path; a * stands for one segment
	// urlModel says that the path names the model, so that another path is another model.
	urlModel bool
	// fields gives the class of a path in the body: the longest pattern that begins the path counts, of equally long ones the first. A [] in it stands for any index, .* for any member, and [role=NAME] for an element whose member role is NAME. What no pattern covers is a parameter.
	fields []fieldClass
	// messages is the list that grows from request to request.
	messages string
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
	},
}

// descriptions are members of a JSON Schema that only explain. Anywhere within a tool's schema they are tool-description.
var descriptions = []string{"description", "title", "examples"}

func shapeOf(rawURL string) *shape {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "tool" {
		return nil
	}
	for i := range shapes {
		for _, end := range shapes[i].paths {
			if endsLike(u.Path, end) {
				return &shapes[i]
			}
		}
	}
	return nil
}

func endsLike(path, pattern string) bool {
	p, q := strings.Split(path, "/"), strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	if len(p) < len(q) {
		return false
	}
	for i, segment := range p[len(p)-len(q):] {
		if q[i] != "*" && q[i] != segment {
			return false
		}
	}
	return true
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

// matches returns how much of a pattern there is, or -1 where it does not begin the path.
func matches(pattern, path, role string) int {
	weight := 0
	for pattern != "" {
		switch {
		case strings.HasPrefix(pattern, "["):
			inside, rest, _ := strings.Cut(pattern[1:], "]")
			_, after, found := strings.Cut(path, "]")
			if !found || path[0] != '[' || inside != "" && inside != "role="+role {
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
