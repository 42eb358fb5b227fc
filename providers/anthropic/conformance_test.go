package anthropic_test

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/providertest"
)

// conformance runs the suite on one version of the API.
func conformance(name, version string) bool {
	return providertest.Run(providertest.Suite{
		Name: name,
		New: func(url string, rt http.RoundTripper) (llm.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: url, APIVersion: version, Model: "claude-haiku-4-5"}, rt)
		},
		Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
		Asked:        providertest.MessagesAsked,
		BrokenStream: providertest.MessagesBrokenStream,
		UnknownBlock: providertest.MessagesUnknownBlock,
		ContentType:  "text/event-stream",
	})
}

var (
	_ = conformance("anthropic 2026-10-21", anthropic.VersionLatest)
	_ = conformance("anthropic 2023-06-01", anthropic.Version2023)
)
