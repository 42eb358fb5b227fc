package openai

import (
	"slices"
	"strings"
)

// Rule is what is known about the models whose names begin with Prefix. Models without a rule of their own are sent everything: there is no list of allowed models.
type Rule struct {
	Prefix string
	// MaxTokens is the request's field for the output limit; max_completion_tokens by default.
	MaxTokens string
	// NoSampling: the model refuses temperature and top_p.
	NoSampling bool
	// Effort: the model takes reasoning_effort.
	Effort bool
	// Efforts are the values that it takes; nil for any. Another value is sent as "low".
	Efforts []string
	// EffortWithTools is the only value that the model takes together with tools; "" for no such limit.
	EffortWithTools string
	// Responses: the model is asked through the Responses API; ResponsesWithTools: only where the request has tools.
	Responses, ResponsesWithTools bool
}

const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// Rules are those of OpenAI's own models.
var Rules = []Rule{
	{Prefix: "", MaxTokens: maxCompletionTokens},
	{Prefix: "gpt-4o", MaxTokens: maxTokens},
	{Prefix: "o1", MaxTokens: maxCompletionTokens, NoSampling: true, Effort: true},
	{Prefix: "o3", MaxTokens: maxCompletionTokens, NoSampling: true, Effort: true},
	{Prefix: "o4-mini", MaxTokens: maxCompletionTokens, NoSampling: true, Effort: true},
	{Prefix: "gpt-5", MaxTokens: maxCompletionTokens, Effort: true},
	{Prefix: "gpt-5.6", MaxTokens: maxCompletionTokens, NoSampling: true, Effort: true, Efforts: []string{"none", "low", "medium", "high", "xhigh", "max"}, EffortWithTools: "none"},
	{Prefix: "o1-pro", NoSampling: true, Effort: true, Responses: true},
	{Prefix: "o3-pro", NoSampling: true, Effort: true, Responses: true},
	{Prefix: "gpt-5-pro", NoSampling: true, Effort: true, Responses: true},
	{Prefix: "gpt-5-codex", NoSampling: true, Effort: true, Responses: true},
	{Prefix: "codex-", NoSampling: true, Effort: true, Responses: true},
	{Prefix: "gpt-6", MaxTokens: maxCompletionTokens, NoSampling: true, Effort: true, Efforts: []string{"low", "medium", "high", "xhigh", "max"}, ResponsesWithTools: true},
}

// ruleFor returns the rule with the longest prefix of model.
func ruleFor(rules []Rule, model string) Rule {
	var best Rule
	for _, r := range rules {
		if strings.HasPrefix(model, r.Prefix) && len(r.Prefix) >= len(best.Prefix) {
			best = r
		}
	}
	return best
}

// maxTokens returns the field for the output limit.
func (r Rule) maxTokens() string {
	if r.MaxTokens == "" {
		return maxCompletionTokens
	}
	return r.MaxTokens
}

// effort returns what to send for the wanted reasoning effort, "" for nothing.
func (r Rule) effort(wanted string, tools bool) string {
	switch {
	case !r.Effort:
		return ""
	case tools && r.EffortWithTools != "":
		return r.EffortWithTools
	case wanted == "" || r.Efforts == nil || slices.Contains(r.Efforts, wanted):
		return wanted
	}
	return "low"
}
