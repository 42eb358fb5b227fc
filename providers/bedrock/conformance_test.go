package bedrock_test

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

const claude = "us.anthropic.claude-haiku-4-5-20251001-v1:0"

var _ = providertest.Run(providertest.Suite{
	Name: "bedrock",
	New: func(url string, rt http.RoundTripper) (llm.Model, error) {
		return bedrock.New(bedrock.Config{BaseURL: url, Model: claude}, rt)
	},
	Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
	Asked:        providertest.ConverseAsked,
	BrokenStream: providertest.ConverseBrokenStream,
	ContentType:  "application/vnd.amazon.eventstream",
	Frames:       providertest.ConverseFrames,
	UnknownBlock: providertest.ConverseUnknownBlock,
	Stretch:      providertest.ConverseStretch,
})

// refusal is the vendor's form of an error.
func refusal(int) string { return `{"message":"no, thanks"}` }

var _ = providertest.RunEmbed(providertest.EmbedSuite{
	Name:  "bedrock, Titan",
	New:   embedderOf("amazon.titan-embed-text-v2:0"),
	Batch: 1, Usage: true, Dimensions: 256, Refusal: refusal,
	Reply: func(vector string) string { return `{"embedding":` + vector + `,"inputTextTokenCount":1}` },
})

var _ = providertest.RunEmbed(providertest.EmbedSuite{
	Name:  "bedrock, Cohere",
	New:   embedderOf("us.cohere.embed-v4:0"),
	Batch: 96, Usage: true, Dimensions: 256, Refusal: refusal,
	Reply: func(vector string) string {
		return `{"embeddings":{"float":[` + vector + `]},"response_type":"embeddings_by_type","texts":["a"]}`
	},
})

func embedderOf(model string) func(url string, rt http.RoundTripper) (llm.Embedder, error) {
	return func(url string, rt http.RoundTripper) (llm.Embedder, error) {
		return bedrock.NewEmbedder(bedrock.Config{BaseURL: url, Model: model}, rt)
	}
}

func ptr[T any](v T) *T { return &v }
