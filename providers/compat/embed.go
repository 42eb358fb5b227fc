package compat

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/openai"
)

// NewEmbedder returns an embedder of the server's model over its /embeddings. The configuration is that of [New]; API has no meaning here.
func NewEmbedder(config Config, rt http.RoundTripper) (llm.Embedder, error) {
	under, err := config.underneath()
	if err != nil {
		return nil, err
	}
	return openai.NewEmbedder(under, rt)
}
