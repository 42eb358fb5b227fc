package gemini

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/go-json-experiment/json"
	"google.golang.org/genai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
)

// maxEmbedTexts is how many texts one batch may hold: the vendor refuses a larger one.
const maxEmbedTexts = 100

// maxEmbedReply is the largest reply to a request for embeddings that is read.
const maxEmbedReply = 64 << 20

// NewEmbedder returns an embedder of the configuration's model, which sends its requests to :batchEmbedContents through rt, one text or several. It needs no key: rt adds it, in [KeyHeader]. Config.Rules have no meaning here. The embedder is safe for concurrent use.
//
// A vector that is shorter than the model's own comes as the vendor sends it, which is not always of norm 1.
func NewEmbedder(config Config, rt http.RoundTripper) (llm.Embedder, error) {
	m, err := newModel(config, rt)
	if err != nil {
		return nil, err
	}
	return embedder{m}, nil
}

type embedder struct{ *model }

// Embed implements [llm.Embedder].
func (e embedder) Embed(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	if req.Dimensions > math.MaxInt32 {
		return llm.Embeddings{}, failure.New(failure.Input, "%s: a vector cannot have %d dimensions", Name, req.Dimensions)
	}
	return llm.EmbedBatches(ctx, Name, maxEmbedTexts, req, e.ask)
}

func (e embedder) ask(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	contents := make([]*genai.Content, len(req.Texts))
	for i, text := range req.Texts {
		contents[i] = &genai.Content{Parts: []*genai.Part{{Text: text}}}
	}
	config := &genai.EmbedContentConfig{}
	if n := int32(req.Dimensions); n > 0 {
		config.OutputDimensionality = &n
	}
	c := &call{}
	_, err := e.client.Models.EmbedContent(context.WithValue(ctx, callKey{}, c), e.name, contents, config)
	if c.body != nil {
		defer func() { _ = c.body.Close() }()
	} else if err == nil {
		err = errors.New("the SDK sent nothing")
	}
	var got llm.Embeddings
	if err == nil {
		got, err = c.embeddings(len(req.Texts))
	}
	if err != nil {
		return llm.Embeddings{}, e.failed(ctx, err, c)
	}
	return got, nil
}

// embedAnswer is the body of a reply, as far as it is read.
type embedAnswer struct {
	Embeddings []struct {
		Values []float32 `json:"values"`
	} `json:"embeddings"`
	UsageMetadata struct {
		PromptTokenCount int `json:"promptTokenCount"`
	} `json:"usageMetadata"`
}

// embeddings reads the reply to n texts. The vendor keeps their order.
func (c *call) embeddings(n int) (llm.Embeddings, error) {
	data, err := transport.Whole(c.body, maxEmbedReply)
	if err != nil {
		return llm.Embeddings{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	var in embedAnswer
	if err := json.Unmarshal(data, &in, lenient); err != nil || in.Embeddings == nil {
		if a, ok := readAnswer(data); ok {
			return llm.Embeddings{}, &answerError{a}
		}
		return llm.Embeddings{}, fmt.Errorf("the reply is no list of embeddings: %s", excerpt(string(data[:min(len(data), 200)])))
	}
	if len(in.Embeddings) != n {
		return llm.Embeddings{}, fmt.Errorf("%d texts were sent and %d vectors came back", n, len(in.Embeddings))
	}
	out := llm.Embeddings{Usage: conversation.Usage{InputTokens: in.UsageMetadata.PromptTokenCount}}
	for i, e := range in.Embeddings {
		if len(e.Values) == 0 {
			return llm.Embeddings{}, fmt.Errorf("vector %d of the reply is empty", i+1)
		}
		out.Vectors = append(out.Vectors, e.Values)
	}
	return out, nil
}
