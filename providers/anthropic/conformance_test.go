package anthropic_test

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/providertest"
)

// conformance runs the suite on one version of the API.
func conformance(version string) bool {
	return providertest.Run(providertest.Suite{
		Name: "anthropic " + version,
		New: func(url string, rt http.RoundTripper) (llm.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: url, APIVersion: version, Model: "claude-haiku-4-5"}, rt)
		},
		Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
		Asked:        providertest.MessagesAsked,
		BrokenStream: providertest.MessagesBrokenStream,
		UnknownBlock: providertest.MessagesUnknownBlock,
		ContentType:  "text/event-stream",
		Abilities: providertest.Abilities{
			Images: true, ImageURLs: true, Documents: true, Refusals: true, Blocking: true, CachedTokens: true, ReasoningTokens: true, References: true, Opaque: true,
			Thinking: &llm.Thinking{BudgetTokens: ptr(2048)},
		},
	})
}

var (
	_ = conformance(anthropic.VersionLatest)
	_ = conformance(anthropic.Version2023)
)
