// Package abilities says, as data, what can be said in each wire format that the providers speak. The rows of [Table] are what the conformance suite (providers/providertest) asks of a provider, what the command lists, and the table in docs/providers.md: there is no second list.
//
//	row, ok := abilities.Find("anthropic 2023-06-01")
//	words := abilities.Words("anthropic") // streaming, tools, images, documents, thinking
package abilities

import (
	"slices"

	"github.com/echoeval/echoeval/core/llm"
)

// Row is one wire format of a provider. A model may know less than its format.
type Row struct {
	// Name heads the specs of the suite that shows the row to be true, and is unique.
	Name string
	// Provider is the name in a dataset.
	Provider string
	Set
}

// Set is what a format can say, beyond text and tools.
type Set struct {
	Images bool
	// ImageURLs: an image may be given by its URL.
	ImageURLs bool
	// Documents: a PDF may be given by its bytes.
	Documents bool
	// Refusals: a reply may be marked as declined.
	Refusals bool
	// Blocking: there is a blocking endpoint beside the streaming one.
	Blocking bool
	// CachedTokens and ReasoningTokens are counted in the usage.
	CachedTokens, ReasoningTokens bool
	// References: the schema of a tool may have $ref.
	References bool
	// Thinking are settings with which a reply shows what the model thought; nil where there are none.
	Thinking *llm.Thinking
	// ThoughtsBack: what the model thought goes back to it as it came, signed.
	ThoughtsBack bool
	// RequestIDs: an error says which request it answers.
	RequestIDs bool
	// Opaque: a block of an unknown kind may be given back as it came.
	Opaque bool
	// ObjectArguments: the arguments of a call are an object by the format, so that none can be malformed.
	ObjectArguments bool
	// Embeddings: the provider has embeddings too, shown by a suite of their own.
	Embeddings bool
	// MixedEnums: an enum in a tool's schema may hold more than strings.
	MixedEnums bool
	// Caching are settings that say which part of a prompt the vendor is to keep; nil where there are none.
	Caching *llm.Settings
}

// Ability is a column of the table in the documents.
type Ability struct {
	// Word is how it is called there and by the command.
	Word string
	// Listed: `echoeval providers ls` names it.
	Listed bool
	Has    func(Set) bool
}

// Abilities are the columns, in their order.
var Abilities = []Ability{
	{"streaming", true, func(Set) bool { return true }},
	{"blocking", false, func(s Set) bool { return s.Blocking }},
	{"tools", true, func(Set) bool { return true }},
	{"images", true, func(s Set) bool { return s.Images }},
	{"image URLs", false, func(s Set) bool { return s.ImageURLs }},
	{"documents", true, func(s Set) bool { return s.Documents }},
	{"thinking", true, func(s Set) bool { return s.Thinking != nil }},
	{"thoughts sent back", false, func(s Set) bool { return s.ThoughtsBack }},
	{"unknown blocks sent back", false, func(s Set) bool { return s.Opaque }},
	{"refusals", false, func(s Set) bool { return s.Refusals }},
	{"cached tokens", false, func(s Set) bool { return s.CachedTokens }},
	{"prompt caching settings", false, func(s Set) bool { return s.Caching != nil }},
	{"reasoning tokens", false, func(s Set) bool { return s.ReasoningTokens }},
	{"$ref in schemas", false, func(s Set) bool { return s.References }},
	{"mixed enums", false, func(s Set) bool { return s.MixedEnums }},
	{"embeddings", true, func(s Set) bool { return s.Embeddings }},
	{"request ids", false, func(s Set) bool { return s.RequestIDs }},
}

// Table has a row for each wire format, sorted by name.
var Table = []Row{
	{Name: "anthropic 2023-06-01", Provider: "anthropic", Set: messages},
	{Name: "anthropic 2026-10-21", Provider: "anthropic", Set: messages},
	{Name: "bedrock", Provider: "bedrock", Set: Set{
		Images: true, Documents: true, Refusals: true, Blocking: true, CachedTokens: true, References: true, RequestIDs: true, MixedEnums: true,
		Thinking: &llm.Thinking{BudgetTokens: budget(2048)}, ThoughtsBack: true, Opaque: true, Embeddings: true, Caching: marks,
	}},
	{Name: "compat", Provider: "compat", Set: without(chat, func(s *Set) { s.Documents, s.Caching = false, nil })},
	{Name: "gemini", Provider: "gemini", Set: Set{
		Images: true, ImageURLs: true, Documents: true, Refusals: true, Blocking: true, CachedTokens: true, ReasoningTokens: true,
		Thinking: &llm.Thinking{BudgetTokens: budget(2048)}, ObjectArguments: true, Embeddings: true, Opaque: true,
	}},
	{Name: "openai", Provider: "openai", Set: chat},
	{Name: "openai, Responses API", Provider: "openai", Set: without(chat, func(s *Set) { s.References, s.Opaque = false, true })},
}

var (
	chat     = Set{Embeddings: true, Images: true, ImageURLs: true, Documents: true, Refusals: true, Blocking: true, CachedTokens: true, ReasoningTokens: true, References: true, RequestIDs: true, MixedEnums: true, Caching: &llm.Settings{PromptCacheKey: "clinic"}}
	messages = Set{
		Images: true, ImageURLs: true, Documents: true, Refusals: true, Blocking: true, CachedTokens: true, ReasoningTokens: true, References: true, RequestIDs: true, MixedEnums: true,
		Thinking: &llm.Thinking{BudgetTokens: budget(2048)}, ThoughtsBack: true, Opaque: true, Caching: marks,
	}
	marks = &llm.Settings{CacheTTL: "1h", CacheMessages: true}
)

// Bounds are what each provider takes of the settings at most, whatever the model: what lies outside is found before anything runs. A provider that is not in it takes no setting of a cache, and nothing else is known of it.
//
// Sources: the vendors' descriptions of their APIs (OpenAI's and Anthropic's OpenAPI documents, the service model of the Bedrock runtime, the reference of GenerationConfig). Of the servers behind compat nothing is known.
var Bounds = map[string]llm.Bounds{
	"anthropic": {Temperature: 1, Efforts: []string{"low", "medium", "high", "xhigh", "max"}, Cache: []string{"cache_ttl", "cache_messages"}},
	"bedrock":   {Temperature: 1, Stops: 2500, Cache: []string{"cache_ttl", "cache_messages"}},
	"gemini":    {Temperature: 2, SeedBits: 32, Stops: 5},
	"openai":    {Temperature: 2, Stops: 4, Efforts: []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}, Cache: []string{"prompt_cache_key"}},
}

func without(s Set, change func(*Set)) Set {
	change(&s)
	return s
}

func budget(tokens int) *int { return &tokens }

// Find returns the row of that name.
func Find(name string) (Row, bool) {
	for _, r := range Table {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

// Words lists what a provider can do in at least one of its formats, of the abilities that are listed; nil for a provider without a row.
func Words(provider string) []string {
	var words []string
	for _, a := range Abilities {
		if a.Listed && slices.ContainsFunc(Table, func(r Row) bool { return r.Provider == provider && a.Has(r.Set) }) {
			words = append(words, a.Word)
		}
	}
	return words
}
