package bedrock

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/go-json-experiment/json"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// NewEmbedder returns an embedder of the configuration's model, which sends its requests to /model/MODEL/invoke through rt. It needs no key: rt adds it, or signs. The embedder is safe for concurrent use.
//
// The body of such a request is that of the model's maker, and there is no other way to ask: models of Amazon Titan and of Cohere that embed texts are known, by what their ids and those of their inference profiles say. Another model is an error.
// Titan takes one text in a request. Cohere's models are told that the texts are to be compared with each other (input type clustering), and refuse a text that is too long, as Titan does.
func NewEmbedder(config Config, rt http.RoundTripper) (llm.Embedder, error) {
	m, err := newModel(config, rt)
	if err != nil {
		return nil, err
	}
	for _, maker := range makers {
		if strings.Contains(m.name, maker.model) {
			return embedder{m, maker}, nil
		}
	}
	return nil, failure.WithHint(failure.New(failure.Input, "%s:%s: the model is not known to embed texts", Name, m.name), "name one of Titan or Cohere, such as amazon.titan-embed-text-v2:0 or cohere.embed-v4:0")
}

// maker is how the models of one maker are asked.
type maker struct {
	model  string // is part of the model's id
	batch  int    // how many texts one request may hold
	body   func(texts []string, dimensions int) any
	vector func(data []byte) ([][]float32, int, error)
}

var makers = []maker{
	{"amazon.titan-embed-text", 1, titanBody, titanVectors},
	{"cohere.embed-", 96, cohereBody, cohereVectors},
}

type embedder struct {
	*model
	maker
}

// Embed implements [llm.Embedder].
func (e embedder) Embed(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	return llm.EmbedBatches(ctx, Name, e.batch, req, e.ask)
}

// maxEmbedReply is the largest reply to a request for embeddings that is read.
const maxEmbedReply = 64 << 20

// tokenCount is the header that counts the tokens of the input, for makers whose replies do not.
const tokenCount = "X-Amzn-Bedrock-Input-Token-Count"

func (e embedder) ask(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	body, err := json.Marshal(e.body(req.Texts, req.Dimensions), lenient)
	if err != nil {
		return llm.Embeddings{}, fmt.Errorf("%s: encoding the request: %w", Name, err)
	}
	c := &call{request: body}
	got, err := e.invoke(ctx, c, len(req.Texts))
	if err != nil {
		return llm.Embeddings{}, e.failed(ctx, err, c)
	}
	return got, nil
}

func (e embedder) invoke(ctx context.Context, c *call, texts int) (llm.Embeddings, error) {
	err := e.send(ctx, c, func(making context.Context) error {
		_, err := e.client.InvokeModel(making, &sdk.InvokeModelInput{ModelId: &e.name, Body: c.request})
		return err
	})
	if err != nil {
		return llm.Embeddings{}, err
	}
	defer func() { _ = c.reply.Body.Close() }()
	data, err := transport.Whole(c.reply.Body, maxEmbedReply)
	switch {
	case err != nil && ctx.Err() != nil:
		return llm.Embeddings{}, ctx.Err()
	case err != nil:
		return llm.Embeddings{}, fmt.Errorf("%w: %w", errBroken, err)
	case len(bytes.TrimSpace(data)) == 0:
		return llm.Embeddings{}, errEmpty
	}
	vectors, used, err := e.vector(data)
	if err != nil || vectors == nil {
		if a, ok := readAnswer(data); ok {
			return llm.Embeddings{}, &answerError{a}
		}
		return llm.Embeddings{}, fmt.Errorf("the reply is no list of embeddings: %s", wire.Excerpt(string(data[:min(len(data), 200)])))
	}
	if len(vectors) != texts {
		return llm.Embeddings{}, fmt.Errorf("%d texts were sent and %d vectors came back", texts, len(vectors))
	}
	for i, v := range vectors {
		if len(v) == 0 {
			return llm.Embeddings{}, fmt.Errorf("vector %d of the reply is empty", i+1)
		}
	}
	if n, err := strconv.Atoi(c.reply.Header.Get(tokenCount)); err == nil && used == 0 && n > 0 {
		used = n
	}
	return llm.Embeddings{Vectors: vectors, Usage: conversation.Usage{InputTokens: used}}, nil
}

func titanBody(texts []string, dimensions int) any {
	return struct {
		Text       string `json:"inputText"`
		Dimensions int    `json:"dimensions,omitzero"`
	}{texts[0], dimensions}
}

func titanVectors(data []byte) ([][]float32, int, error) {
	var in struct {
		Embedding []float32 `json:"embedding"`
		Tokens    int       `json:"inputTextTokenCount"`
	}
	if err := json.Unmarshal(data, &in, lenient); err != nil || in.Embedding == nil {
		return nil, 0, err
	}
	return [][]float32{in.Embedding}, in.Tokens, nil
}

func cohereBody(texts []string, dimensions int) any {
	return struct {
		Texts      []string `json:"texts"`
		Input      string   `json:"input_type"`
		Types      []string `json:"embedding_types"`
		Dimensions int      `json:"output_dimension,omitzero"`
	}{texts, "clustering", []string{"float"}, dimensions}
}

func cohereVectors(data []byte) ([][]float32, int, error) {
	var in struct {
		Embeddings struct {
			Float [][]float32 `json:"float"`
		} `json:"embeddings"`
	}
	err := json.Unmarshal(data, &in, lenient)
	return in.Embeddings.Float, 0, err
}
