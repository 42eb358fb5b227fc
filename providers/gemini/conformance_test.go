package gemini_test

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/providertest"
)

var _ = providertest.Run(providertest.Suite{
	Name: "gemini",
	New: func(url string, rt http.RoundTripper) (llm.Model, error) {
		return gemini.New(gemini.Config{BaseURL: url, Model: "gemini-2.5-flash"}, rt)
	},
	Serve: func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
	Asked: providertest.GeminiAsked,

	BrokenStream: providertest.GeminiBrokenStream, ContentType: "text/event-stream", UnknownBlock: providertest.GeminiUnknownBlock,
})

var _ = providertest.RunEmbed(providertest.EmbedSuite{
	Name: "gemini",
	New: func(url string, rt http.RoundTripper) (llm.Embedder, error) {
		return gemini.NewEmbedder(gemini.Config{BaseURL: url, Model: "gemini-embedding-001"}, rt)
	},
	Batch: 100,
	Reply: func(vector string) string { return `{"embeddings":[{"values":` + vector + `}]}` },
})
