package llm

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/transport"
)

// Config says which model of which provider a program talks to, and how. It is for programs that use the packages of core as a library; the command takes what it needs from the dataset alone.
type Config struct {
	// Provider is a name in the table that [Get] is given; letter case does not count.
	Provider string
	// Model is the model's name as the provider knows it. Every name is taken: which models there are is the provider's to say.
	Model string
	// Temperature is sent with every request; nil sends none.
	Temperature *float64
	// Region is that of Bedrock.
	Region string
	// MaxTokens bounds each reply, MaxIterations the model steps of a turn.
	MaxTokens, MaxIterations int
	// APIKey is the provider's key. With a zero one the round tripper that [Get] is given must add it.
	APIKey transport.Secret
	// BaseURL is where the provider answers; "" is the provider's own address.
	BaseURL string
	// ReasoningEffort is how long a model of OpenAI, or of a server that copies its API, thinks; "" leaves it to the model.
	ReasoningEffort string
	// Thinking is the same for Anthropic (budget or effort) and Gemini (budget or level).
	Thinking Thinking
	// AWSAccessKeyID and AWSSecretAccessKey are for Bedrock, and count where both are set; else AWS's own chain of credentials does.
	AWSAccessKeyID, AWSSecretAccessKey transport.Secret
	// CacheTTL is how long a vendor is asked to keep the prompt's beginning, 5m or 1h; "" asks for nothing. CacheMessages asks the same for the conversation. A provider that cannot ask for it refuses them.
	CacheTTL      string
	CacheMessages bool
}

// The values of a configuration for which no variable is set, beside [DefaultMaxIterations].
const (
	DefaultProvider    = "bedrock"
	DefaultModel       = "anthropic.claude-3-haiku-20240307-v1:0" // of the default provider; another has none
	DefaultTemperature = 0.2
	DefaultRegion      = "ap-south-1"
	DefaultMaxTokens   = 4096
)

// The variables of a configuration that hold for every provider.
const (
	EnvProvider      = "ECHO_DEFAULT_LLM_PROVIDER"
	EnvModel         = "ECHO_DEFAULT_LLM_MODEL"
	EnvTemperature   = "ECHO_DEFAULT_LLM_TEMPERATURE"
	EnvMaxTokens     = "ECHO_DEFAULT_LLM_MAX_TOKENS"
	EnvMaxIterations = "ECHO_DEFAULT_LLM_MAX_ITERATIONS"
	EnvRegion        = "AWS_DEFAULT_REGION"
)

// configEnv are the variables of one provider: the first that is set counts.
type configEnv struct{ key, baseURL []string }

var (
	serverEnv  = configEnv{key: []string{"ECHO_LLM_API_KEY"}, baseURL: []string{"ECHO_LLM_BASE_URL"}}
	configEnvs = map[string]configEnv{
		"anthropic":         {key: []string{"ANTHROPIC_API_KEY"}},
		"openai":            {key: []string{"OPENAI_API_KEY"}},
		"gemini":            {key: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}},
		"compat":            serverEnv,
		"openai_compatible": serverEnv,
	}
)

// ConfigFromEnv returns the configuration that the variables of an environment describe, with the defaults for those that are not set. getenv returns a variable's value, "" where it is not set; it is asked now and not again. A number that is none is an error of code [failure.Input] that names its variable; what the values mean together is checked by [Config.Check].
func ConfigFromEnv(getenv func(name string) string) (Config, error) {
	temperature := DefaultTemperature
	c := Config{
		Provider: strings.ToLower(cmp.Or(getenv(EnvProvider), DefaultProvider)), Model: getenv(EnvModel), Temperature: &temperature,
		Region: cmp.Or(getenv(EnvRegion), DefaultRegion), MaxTokens: DefaultMaxTokens, MaxIterations: DefaultMaxIterations,
	}
	if c.Model == "" && c.Provider == DefaultProvider {
		c.Model = DefaultModel
	}
	if text := getenv(EnvTemperature); text != "" {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Config{}, failure.WithHint(failure.New(failure.Input, "%s is no number", EnvTemperature), "export %s=0.2", EnvTemperature)
		}
		c.Temperature = &f
	}
	for _, n := range []struct {
		name string
		into *int
	}{{EnvMaxTokens, &c.MaxTokens}, {EnvMaxIterations, &c.MaxIterations}} {
		if text := getenv(n.name); text != "" {
			i, err := strconv.Atoi(text)
			if err != nil {
				return Config{}, failure.WithHint(failure.New(failure.Input, "%s is no whole number", n.name), "export %s=%d", n.name, *n.into)
			}
			*n.into = i
		}
	}
	first := func(names []string) string {
		for _, name := range names {
			if value := getenv(name); value != "" {
				return value
			}
		}
		return ""
	}
	own := configEnvs[c.Provider]
	c.BaseURL = first(own.baseURL)
	if key := first(own.key); key != "" {
		c.APIKey = transport.NewSecret(key)
	}
	return c, nil
}

// thinkingKinds lists which settings of thinking a provider has.
var thinkingKinds = map[string][]string{
	"anthropic":         {"thinking.budget_tokens", "thinking.effort"},
	"gemini":            {"thinking.budget_tokens", "thinking.level"},
	"openai":            {"reasoning_effort"},
	"compat":            {"reasoning_effort"},
	"openai_compatible": {"reasoning_effort"},
}

// caching are the providers that can be asked to keep a prompt.
var caching = []string{"anthropic", "bedrock"}

// The words of the settings.
var thinkingWords = map[string][]string{
	"thinking.effort":  {"low", "medium", "high", "xhigh", "max"},
	"thinking.level":   {"minimal", "low", "medium", "high"},
	"reasoning_effort": {"none", "minimal", "low", "medium", "high", "xhigh", "max"},
}

// minThinkingBudget is the least that Anthropic's models take.
const minThinkingBudget = 1024

// Check finds what is wrong with a configuration whatever the model: a setting of thinking that the provider does not have or that is out of its bounds, numbers out of theirs. Settings that a model does not know are no error: the provider leaves them out with a warning. The error has code [failure.Input].
func (c Config) Check() error {
	bad := func(hint, format string, args ...any) error {
		err := failure.New(failure.Input, format, args...)
		if hint == "" {
			return err
		}
		return failure.WithHint(err, "%s", hint)
	}
	switch {
	case c.Provider == "":
		return bad("", "no provider is named")
	case c.Model == "":
		return bad("name it, as in "+EnvModel, "no model is named")
	case c.Temperature != nil && !(*c.Temperature >= 0 && *c.Temperature <= 2):
		return bad("most vendors take 0 to 1, some up to 2", "the temperature %v is outside [0,2]", *c.Temperature)
	case c.MaxTokens < 1:
		return bad("", "want max_tokens from 1, got %d", c.MaxTokens)
	case c.MaxIterations < 1:
		return bad("", "want max_iterations from 1, got %d", c.MaxIterations)
	}
	if c.CacheTTL != "" && !slices.Contains(CacheTTLs, c.CacheTTL) {
		return bad("choose one of "+strings.Join(CacheTTLs, ", "), "cache_ttl: unknown time %q", c.CacheTTL)
	}
	provider := strings.ToLower(c.Provider)
	if (c.CacheTTL != "" || c.CacheMessages) && !slices.Contains(caching, provider) {
		return bad("leave out cache_ttl and cache_messages", "%s has no setting cache_ttl or cache_messages", provider)
	}
	has := thinkingKinds[provider]
	for _, s := range []struct{ name, word string }{{"thinking.effort", c.Thinking.Effort}, {"thinking.level", c.Thinking.Level}, {"reasoning_effort", c.ReasoningEffort}} {
		if s.word == "" {
			continue
		}
		if !slices.Contains(has, s.name) {
			return bad(kinds(has), "%s has no setting %s", provider, s.name)
		}
		if words := thinkingWords[s.name]; !slices.Contains(words, s.word) {
			return bad("choose one of "+strings.Join(words, ", "), "%s: unknown word %q", s.name, s.word)
		}
	}
	budget := c.Thinking.BudgetTokens
	switch {
	case budget == nil:
	case !slices.Contains(has, "thinking.budget_tokens"):
		return bad(kinds(has), "%s has no setting thinking.budget_tokens", provider)
	case provider == "gemini" && c.Thinking.Level != "":
		return bad("keep one of them", "gemini takes either a level or a budget")
	case provider == "gemini":
		if *budget < -1 {
			return bad("0 is none, -1 as many as the model likes", "want thinking.budget_tokens from -1, got %d", *budget)
		}
	case *budget < minThinkingBudget:
		return bad("", "want thinking.budget_tokens from %d, got %d", minThinkingBudget, *budget)
	case *budget >= c.MaxTokens:
		return bad("max_tokens counts thinking too: raise it above the budget", "a budget of %d leaves nothing of max_tokens %d", *budget, c.MaxTokens)
	}
	return nil
}

func kinds(has []string) string {
	if len(has) == 0 {
		return "remove it"
	}
	return "it has " + strings.Join(has, " and ")
}

// Settings are those of a request.
func (c Config) Settings() Settings {
	return Settings{Temperature: c.Temperature, MaxTokens: &c.MaxTokens, ReasoningEffort: c.ReasoningEffort, Thinking: c.Thinking, CacheTTL: c.CacheTTL, CacheMessages: c.CacheMessages}
}

// Constructor makes the model that a configuration names, over the round tripper that its requests go through. It needs no key and sends nothing.
type Constructor func(c Config, rt http.RoundTripper) (Model, error)

// Get checks a configuration and makes its model with the constructor that table has under the provider's name. An unknown name is an error with the nearest one and all that there are. The package that knows providers has a table; see providers/catalog.
func Get(table map[string]Constructor, c Config, rt http.RoundTripper) (Model, error) {
	c.Provider = strings.ToLower(c.Provider)
	construct, ok := table[c.Provider]
	if !ok {
		names := slices.Sorted(maps.Keys(table))
		hint := "choose one of " + strings.Join(names, ", ")
		if near, ok := strict.Nearest(c.Provider, names); ok {
			hint = "did you mean " + strconv.Quote(near) + "? There are " + strings.Join(names, ", ")
		}
		return nil, failure.WithHint(failure.New(failure.Input, "unknown provider %q", c.Provider), "%s", hint)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return construct(c, rt)
}
