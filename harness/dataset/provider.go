package dataset

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
)

// Provider is a column: a model with its settings and, if it likes, its own agent.
type Provider struct {
	// ID names the column; its folder is [FolderName] of it.
	ID string
	// Vendor is the provider's package (openai, compat, script, ...), Model the vendor's name of the model.
	Vendor, Model string
	// BaseURL replaces the vendor's address; "" does not.
	BaseURL string
	// Region is where a vendor that has regions is asked; "" leaves it to the environment.
	Region string
	// API is which of a vendor's ways is taken, where it has more than one; "" leaves it to the model.
	API string
	// APIVersion is the version of the vendor's API; "" is the provider's default.
	APIVersion string
	// APIKeyEnv names the environment variable that holds the key; "" is the vendor's usual one.
	APIKeyEnv string
	Settings  llm.Settings
	// Price replaces that of the price file; nil does not.
	Price *Price
	// Agent replaces the dataset's; it is missing where it does not.
	Agent Agent
	// Target is the provider's own program under test; nil where it has none.
	Target *Target
	// Role is "" for a column, else [RoleJudge], [RoleUser], [RoleEmbed] or [RoleSpare].
	Role string
	// Limits bound the requests to the provider.
	Limits ProviderLimits
	Pos    failure.Position
}

// Price is what a million tokens cost.
type Price struct{ Input, Output money.USD }

type providerKeys struct {
	ID         *string             `yaml:"id" schema:"provider_id"`
	Provider   string              `yaml:"provider,required" schema:"filled"`
	Model      *string             `yaml:"model"`
	BaseURL    *string             `yaml:"base_url" schema:"address"`
	Region     *string             `yaml:"region" doc:"bedrock: where it is asked; else AWS_REGION, AWS_DEFAULT_REGION or us-east-1"`
	APIVersion *string             `yaml:"api_version" doc:"the version of the vendor's API"`
	API        *string             `yaml:"api" values:"chat,responses" doc:"which of OpenAI's two ways is taken; by default the model decides"`
	APIKeyEnv  *string             `yaml:"api_key_env" schema:"variable"`
	Agent      strict.Node         `yaml:"agent" schema:"agent" doc:"in place of the agent of the dataset"`
	Target     strict.Node         `yaml:"target" schema:"target" doc:"a program under test, in place of the agent or target of the dataset"`
	Role       *string             `yaml:"role" values:"judge,user,embed,spare" doc:"no column: it scores answers, speaks for simulated users, turns texts into vectors, or waits for --provider to name it"`
	Price      *priceKeys          `yaml:"price" doc:"USD per million tokens"`
	Limits     *providerLimitsKeys `yaml:"limits"`

	MaxTokens         *int          `yaml:"max_tokens" schema:"positive"`
	Temperature       *float64      `yaml:"temperature" schema:"amount"`
	TopP              *float64      `yaml:"top_p" schema:"share_or_null"`
	Seed              *int64        `yaml:"seed"`
	Stop              []string      `yaml:"stop"`
	ToolChoice        *string       `yaml:"tool_choice"`
	ParallelToolCalls *bool         `yaml:"parallel_tool_calls"`
	ReasoningEffort   *string       `yaml:"reasoning_effort"`
	Thinking          *thinkingKeys `yaml:"thinking" doc:"how the model thinks before it answers"`
	CacheTTL          *string       `yaml:"cache_ttl" values:"5m,1h" doc:"anthropic, bedrock: how long the vendor is asked to keep the instructions"`
	CacheMessages     *bool         `yaml:"cache_messages" doc:"anthropic, bedrock: the vendor is asked to keep the conversation too"`
	PromptCacheKey    *string       `yaml:"prompt_cache_key" schema:"filled_or_null" doc:"openai: groups requests whose prompts begin alike"`
	Capabilities      *string       `yaml:"capabilities" values:"strict" doc:"what the vendor cannot take is an error"`
}

// UnknownKey implements [strict.UnknownKey].
func (*providerKeys) UnknownKey(name string) (message, hint string) {
	if name == "api_key" {
		return "a key does not stand in a file", "name the environment variable that holds it: api_key_env: OPENAI_API_KEY"
	}
	return "", ""
}

type thinkingKeys struct {
	BudgetTokens *int    `yaml:"budget_tokens" doc:"the most tokens of it; anthropic and bedrock: from 1024; gemini: 0 is none, -1 as many as the model likes"`
	Effort       *string `yaml:"effort" values:"low,medium,high,xhigh,max" doc:"anthropic, bedrock"`
	Level        *string `yaml:"level" values:"minimal,low,medium,high" doc:"gemini, from generation 3 on"`
}

// apiVersions are the versions of those vendors' APIs that have several, the default first.
var apiVersions = map[string][]string{"anthropic": {"2026-10-21", "2023-06-01"}}

// thinkingOf lists the keys of thinking that a vendor has.
var thinkingOf = map[string][]string{"anthropic": {"budget_tokens", "effort"}, "bedrock": {"budget_tokens", "effort"}, "gemini": {"budget_tokens", "level"}}

// minBudget is the smallest number of tokens that Anthropic's models take for thinking.
const minBudget = 1024

type priceKeys struct {
	Input  *float64 `yaml:"input,required" schema:"amount"`
	Output *float64 `yaml:"output,required" schema:"amount"`
}

func (d *Dataset) providers(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of providers")
		return
	}
	if n.Len() == 0 {
		p.Add(n.Pos(), "add one, or leave the key out and use --provider", "the list of providers is empty")
	}
	before := p.Len()
	defer func() { d.unsure = d.unsure || p.Len() != before }()
	folders := map[string]Provider{}
	for i, entry := range n.Items() {
		at := p.At(i)
		v, ok := d.provider(entry, at)
		if !ok {
			continue
		}
		// Folders that differ only in case are one on Windows and macOS.
		folder := strings.ToLower(FolderName(v.ID))
		if first, taken := folders[folder]; taken {
			if first.ID == v.ID {
				at.Add(v.Pos, "give one of them another id", "provider %q stands here a second time, first at %s", v.ID, first.Pos)
			} else {
				at.Add(v.Pos, "give one of them another id", "provider %q and %q, at %s, would share the folder %s", v.ID, first.ID, first.Pos, FolderName(first.ID))
			}
			continue
		}
		folders[folder] = v
		switch v.Role {
		case "":
			d.Providers = append(d.Providers, v)
		case RoleSpare:
			d.Spare = append(d.Spare, v)
		default:
			d.Roles = append(d.Roles, v)
		}
	}
}

func (d *Dataset) provider(n strict.Node, p *strict.Problems) (Provider, bool) {
	v := Provider{Pos: n.Pos()}
	found := p.Len()
	idAt := n
	switch n.Kind() {
	case strict.String:
		if of, ok := d.libraries.providers[n.Text()]; ok {
			d.fromLibraries = append(d.fromLibraries, of)
			of.value.Pos = n.Pos()
			return of.value, true
		}
		var colon bool
		v.ID = n.Text()
		v.Vendor, v.Model, colon = strings.Cut(v.ID, ":")
		if !colon && d.libraries.mayDefine("provider", v.ID) {
			d.unsure = true
			return v, false
		}
		if !colon || v.Vendor == "" || v.Model == "" {
			hint := "write vendor:model, such as openai:gpt-4o-mini"
			if near, ok := strict.Nearest(v.ID, namesOf(d.libraries.providers)); ok {
				hint = "did you mean \"" + near + "\"?"
			}
			p.Add(n.Pos(), hint, "%q is no provider", v.ID)
			return v, false
		}
		d.checkVendor(n, v.Vendor, p)
	case strict.Mapping:
		var keys providerKeys
		strict.Decode(n, &keys, p)
		v.Vendor, v.Model, v.BaseURL, v.APIKeyEnv, v.API = keys.Provider, value(keys.Model), value(keys.BaseURL), value(keys.APIKeyEnv), value(keys.API)
		v.ID = v.Vendor + ":" + v.Model
		if keys.ID != nil {
			v.ID, idAt = *keys.ID, n.Get("id")
		}
		if vendor := n.Get("provider"); vendor.Kind() == strict.String {
			d.checkVendor(vendor, v.Vendor, p.Key("provider"))
		}
		if v.Model == "" && v.Vendor != "script" && v.Vendor != "deny" && p.Len() == found {
			p.Add(n.Pos(), "add it: model: ...", "key \"model\" is missing")
		}
		v.Agent = d.agent(keys.Agent, p.Key("agent"))
		v.Target = d.target(keys.Target, p.Key("target"))
		if !keys.Agent.IsZero() && !keys.Target.IsZero() {
			p.Add(n.KeyPos("target"), "leave one of them out", "a provider has an agent or a target, not both")
		}
		keys.settings(n, &v, p)
		if (v.Role == "" || v.Role == RoleSpare) && d.TargetOf(v) != nil {
			decidesItself(n, p)
		}
		if v.Role == RoleEmbed {
			onlyEmbeds(n, p)
		}
		keys.check(n, p)
		keys.checkVendor(n, p)
		if d.options.Bounds != nil {
			for _, out := range d.options.Bounds[v.Vendor].Check(v.Vendor, v.Settings) {
				p.Key(out.Setting).Add(n.Get(out.Setting).Pos(), out.Hint, "%s", out.Problem)
			}
		}
	default:
		p.WrongType(n, "a provider: vendor:model, or a mapping")
		return v, false
	}
	if problem := providerIDProblem(v.ID); problem != "" && p.Len() == found {
		p.Add(idAt.Pos(), "give it another id: {id: ..., provider: ..., model: ...}", "%s", problem)
	}
	return v, p.Len() == found
}

// Columns are the providers that can be columns by the dataset alone: its own, then the spare ones.
func (d *Dataset) Columns() []Provider { return slices.Concat(d.Providers, d.Spare) }

// Shared is the provider of that name in the libraries that the dataset uses.
func (d *Dataset) Shared(name string) (Provider, bool) {
	of, ok := d.libraries.providers[name]
	return of.value, ok
}

// SharedNames are the names of the libraries' providers, sorted.
func (d *Dataset) SharedNames() []string { return slices.Sorted(maps.Keys(d.libraries.providers)) }

func value[T any](of *T) T {
	if of == nil {
		var zero T
		return zero
	}
	return *of
}

func (d *Dataset) checkVendor(n strict.Node, vendor string, p *strict.Problems) {
	if d.options.Vendors != nil && !slices.Contains(d.options.Vendors, vendor) {
		p.Add(n.Pos(), strict.Suggest(vendor, d.options.Vendors), "unknown provider %q", vendor)
	}
}

// checkProvider adds a problem where a node names a provider that the dataset does not have. Without providers of its own any may come from the command line.
func (d *Dataset) checkProvider(n strict.Node, p *strict.Problems) {
	if n.Kind() != strict.String || len(d.Providers) == 0 || d.unsure {
		return
	}
	var ids []string
	for _, v := range d.Columns() {
		ids = append(ids, v.ID)
	}
	if !slices.Contains(ids, n.Text()) {
		p.Add(n.Pos(), strict.Suggest(n.Text(), ids), "unknown provider %q", n.Text())
	}
}

func (k *providerKeys) settings(n strict.Node, v *Provider, p *strict.Problems) {
	v.Settings = llm.Settings{
		MaxTokens: k.MaxTokens, Temperature: k.Temperature, TopP: k.TopP, Seed: k.Seed, Stop: k.Stop,
		ToolChoice: value(k.ToolChoice), ParallelToolCalls: k.ParallelToolCalls, ReasoningEffort: value(k.ReasoningEffort),
	}
	v.Settings.Strict = k.Capabilities != nil
	v.Settings.CacheTTL, v.Settings.CacheMessages, v.Settings.PromptCacheKey = value(k.CacheTTL), value(k.CacheMessages), value(k.PromptCacheKey)
	v.APIVersion, v.Region = value(k.APIVersion), value(k.Region)
	if t := k.Thinking; t != nil {
		v.Settings.Thinking = llm.Thinking{BudgetTokens: t.BudgetTokens, Effort: value(t.Effort), Level: value(t.Level)}
	}
	v.Role = value(k.Role)
	if l := k.Limits; l != nil {
		v.Limits = ProviderLimits{value(l.RPM), value(l.TPM), value(l.Concurrency)}
		for _, one := range []struct {
			key   string
			value *int
		}{{"rpm", l.RPM}, {"tpm", l.TPM}, {"concurrency", l.Concurrency}} {
			if one.value != nil && *one.value < 1 {
				p.Key("limits").Key(one.key).Add(n.Get("limits").Get(one.key).Pos(), "leave it out for no limit", "want a whole number from 1")
			}
		}
	}
	if k.Price == nil {
		return
	}
	v.Price = &Price{}
	for _, side := range []struct {
		name string
		from *float64
		to   *money.USD
	}{{"input", k.Price.Input, &v.Price.Input}, {"output", k.Price.Output, &v.Price.Output}} {
		if side.from == nil {
			continue
		}
		usd, err := money.FromFloat(*side.from)
		if err != nil || usd < 0 {
			p.Key("price").Key(side.name).Add(n.Get("price").Get(side.name).Pos(), "it is USD per million tokens", "want a price, from 0")
		}
		*side.to = usd
	}
}

// check looks at what the types do not say. It repeats neither a key nor an address in a message: either may be a secret that was put in the wrong place.
func (k *providerKeys) check(n strict.Node, p *strict.Problems) {
	at := func(key string) (*strict.Problems, failure.Position) { return p.Key(key), n.Get(key).Pos() }
	if k.BaseURL != nil {
		q, pos := at("base_url")
		u, err := url.Parse(*k.BaseURL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			q.Add(pos, "write it whole: http://127.0.0.1:11434/v1", "want an http or https address")
		case u.User != nil:
			q.Add(pos, "name an environment variable that holds the key: api_key_env", "an address holds no credentials")
		}
	}
	if k.APIKeyEnv != nil {
		if name := *k.APIKeyEnv; name == "" || name[0] >= '0' && name[0] <= '9' || !onlyBytes(name, "_") {
			q, pos := at("api_key_env")
			q.Add(pos, "name the environment variable that holds the key: OPENAI_API_KEY", "want the name of an environment variable, not the key itself")
		}
	}
	if k.Temperature != nil && *k.Temperature < 0 {
		q, pos := at("temperature")
		q.Add(pos, "", "want a number from 0")
	}
	if k.TopP != nil && (*k.TopP < 0 || *k.TopP > 1) {
		q, pos := at("top_p")
		q.Add(pos, "", "want a number from 0 to 1")
	}
	if k.PromptCacheKey != nil && *k.PromptCacheKey == "" {
		q, pos := at("prompt_cache_key")
		q.Add(pos, "leave it out, or name what the prompts have in common", "the text is empty")
	}
	if k.MaxTokens != nil && *k.MaxTokens < 1 {
		q, pos := at("max_tokens")
		q.Add(pos, "", "want a whole number from 1")
	}
}

// checkVendor looks at the settings that only some vendors have. What they mean differs, so that none is taken for another.
func (k *providerKeys) checkVendor(n strict.Node, p *strict.Problems) {
	if k.Region != nil {
		at := n.Get("region").Pos()
		switch {
		case k.Provider != "bedrock":
			p.Key("region").Add(at, "leave it out", "provider %q has no region", k.Provider)
		case *k.Region == "" || strings.Trim(*k.Region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			p.Key("region").Add(at, "us-east-1", "%q is no region", *k.Region)
		}
	}
	if k.APIVersion != nil {
		at, known := n.Get("api_version").Pos(), apiVersions[k.Provider]
		switch {
		case known == nil:
			p.Key("api_version").Add(at, "leave it out", "provider %q has no api_version", k.Provider)
		case !slices.Contains(known, *k.APIVersion):
			p.Key("api_version").Add(at, strict.Suggest(*k.APIVersion, known), "unknown api_version %q", *k.APIVersion)
		}
	}
	effort, has := p.Key("reasoning_effort"), thinkingOf[k.Provider]
	at := n.Get("reasoning_effort").Pos()
	switch {
	case k.ReasoningEffort == nil:
	case k.Provider == "gemini":
		effort.Add(at, "thinking: {level: ...}", "gemini has no reasoning_effort")
	case k.Thinking != nil && k.Thinking.Effort != nil:
		effort.Add(at, "keep one of them", "reasoning_effort and an effort of thinking exclude each other")
	}
	if k.Thinking == nil {
		return
	}
	in, q := n.Get("thinking"), p.Key("thinking")
	if has == nil {
		q.Add(in.Pos(), "remove it; openai and its copies have reasoning_effort", "%s has no setting thinking", k.Provider)
		return
	}
	for key := range in.Fields() {
		if !slices.Contains(has, key.Name) {
			q.Key(key.Name).Add(in.Get(key.Name).Pos(), "choose one of "+strings.Join(has, ", "), "%s has no thinking.%s", k.Provider, key.Name)
		}
	}
	k.checkBudget(in, q)
}

// checkBudget looks at the tokens for thinking, whose bounds are the vendor's.
func (k *providerKeys) checkBudget(in strict.Node, p *strict.Problems) {
	budget := k.Thinking.BudgetTokens
	if budget == nil {
		return
	}
	q, at := p.Key("budget_tokens"), in.Get("budget_tokens").Pos()
	switch {
	case k.Provider == "gemini" && k.Thinking.Level != nil:
		p.Add(in.Pos(), "keep one of them: level for generation 3, budget_tokens for those before", "gemini takes either a level or a budget")
	case k.Provider == "gemini":
		if *budget < -1 {
			q.Add(at, "0 is none, -1 as many as the model likes", "want a whole number from -1")
		}
	case *budget < minBudget:
		q.Add(at, "", "want a whole number from %d", minBudget)
	case k.MaxTokens != nil && *budget >= *k.MaxTokens:
		q.Add(at, "max_tokens counts thinking too: raise it above the budget", "a budget of %d leaves nothing of max_tokens %d", *budget, *k.MaxTokens)
	}
}

// decidesItself refuses what a program under test decides itself: nothing would follow from it.
func decidesItself(n strict.Node, p *strict.Problems) {
	for key := range n.Fields() {
		switch key.Name {
		case "id", "provider", "model", "base_url", "price", "role", "agent", "target":
		default:
			p.Add(key.Pos(), "the program is told id, provider and model, and sends its own requests", "key %q does nothing here: the target decides it itself", key.Name)
		}
	}
}

// onlyEmbeds refuses what means nothing to a model that turns texts into vectors.
func onlyEmbeds(n strict.Node, p *strict.Problems) {
	for key := range n.Fields() {
		switch key.Name {
		case "id", "provider", "model", "base_url", "region", "api_key_env", "price", "role", "limits":
		default:
			p.Add(key.Pos(), "leave it out; how long vectors are is said by dimensions, in the check", "key %q does nothing here: a provider of role embed answers with vectors", key.Name)
		}
	}
}
