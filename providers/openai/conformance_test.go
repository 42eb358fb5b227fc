package openai_test

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/providertest"
)

var _ = providertest.Run(providertest.Suite{
	Name: "openai",
	New: func(url string, rt http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Config{BaseURL: url + "/v1", Model: "gpt-4o-mini"}, rt)
	},
	Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
	Asked:        providertest.ChatAsked,
	BrokenStream: providertest.ChatBrokenStream,
	UnknownBlock: providertest.ChatUnknownBlock,
	ContentType:  "text/event-stream",
})

var _ = providertest.Run(providertest.Suite{
	Name: "openai, Responses API",
	New: func(url string, rt http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Config{BaseURL: url + "/v1", Model: "gpt-4o-mini", API: openai.Responses}, rt)
	},
	Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
	Asked:        providertest.ResponsesAsked,
	BrokenStream: providertest.ResponsesBrokenStream,
	UnknownBlock: providertest.ResponsesUnknownBlock,
	ContentType:  "text/event-stream",
})

var _ = providertest.RunEmbed(providertest.EmbedSuite{
	Name: "openai",
	New: func(url string, rt http.RoundTripper) (llm.Embedder, error) {
		return openai.NewEmbedder(openai.Config{BaseURL: url + "/v1", Model: "text-embedding-3-small"}, rt)
	},
	Batch: 2048,
	Reply: func(vector string) string {
		return `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + vector + `}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`
	},
	Usage: true,
})
