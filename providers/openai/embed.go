package openai

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/wire"
)

// maxEmbedTexts is how many texts one request for embeddings may hold (maxItems of its input in the vendor's description of its API).
const maxEmbedTexts = 2048

// maxEmbedReply is the largest reply to a request for embeddings that is read: room for the most texts and more dimensions than any model is known to have.
const maxEmbedReply = 256 << 20

// NewEmbedder returns an embedder of the configuration's model, which sends its requests to /embeddings through rt. It needs no key: rt adds it. Config.API has no meaning here, and of Config.Quirks only Extra has. The embedder is safe for concurrent use.
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
	return llm.EmbedBatches(ctx, e.vendor, maxEmbedTexts, req, e.ask)
}

func (e embedder) ask(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	c := &call{patch: patch{set: e.extra}, blocking: true, whole: true}
	_, err := e.client.CreateEmbeddings(context.WithValue(ctx, callKey{}, c), sdk.EmbeddingRequest{
		Input: req.Texts, Model: sdk.EmbeddingModel(e.name), EncodingFormat: sdk.EmbeddingEncodingFormatFloat, Dimensions: req.Dimensions,
	})
	if err == nil && c.body == nil {
		err = errors.New("the SDK sent nothing")
	}
	var got llm.Embeddings
	if err == nil {
		got, err = readEmbeddings(c.body, len(req.Texts))
	}
	if err != nil {
		return llm.Embeddings{}, e.failed(ctx, err, c)
	}
	return got, nil
}

// vector is a list of numbers on the wire, or the base64 of little-endian floats of 32 bits: some servers send the latter whatever was asked for.
type vector []float32

// UnmarshalJSON implements [json.Unmarshaler].
func (v *vector) UnmarshalJSON(data []byte) error {
	if jsontext.Value(data).Kind() != '"' {
		return json.Unmarshal(data, (*[]float32)(v), lenient)
	}
	var raw []byte
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("%d bytes are no floats of 32 bits", len(raw))
	}
	*v = make(vector, 0, len(raw)/4)
	for ; len(raw) > 0; raw = raw[4:] {
		f := math.Float32frombits(binary.LittleEndian.Uint32(raw))
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return errors.New("a vector holds what is no number")
		}
		*v = append(*v, f)
	}
	return nil
}

// embedAnswer is the body of a reply, as far as it is read.
type embedAnswer struct {
	Data []struct {
		Index     *int   `json:"index"`
		Embedding vector `json:"embedding"`
	} `json:"data"`
	Model string `json:"model"`
	Usage struct {
		PromptTokens int `json:"prompt_tokens"`
	} `json:"usage"`
}

// readEmbeddings reads a reply to n texts. The vectors are put in the order of their index; where none has one, they stand in the order of the texts.
func readEmbeddings(data []byte, n int) (llm.Embeddings, error) {
	var in embedAnswer
	if err := json.Unmarshal(data, &in, lenient); err != nil || in.Data == nil {
		if a, ok := readAnswer(data); ok {
			return llm.Embeddings{}, &answerError{a}
		}
		return llm.Embeddings{}, fmt.Errorf("the reply is no list of embeddings: %s", wire.Excerpt(string(data[:min(len(data), 200)])))
	}
	if len(in.Data) != n {
		return llm.Embeddings{}, fmt.Errorf("%d texts were sent and %d vectors came back", n, len(in.Data))
	}
	out := llm.Embeddings{Vectors: make([][]float32, n), Usage: conversation.Usage{InputTokens: in.Usage.PromptTokens}, Model: in.Model}
	for i, d := range in.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || out.Vectors[at] != nil || len(d.Embedding) == 0 {
			return llm.Embeddings{}, fmt.Errorf("vector %d of the reply, with index %d, is empty or belongs to no text", i+1, at)
		}
		out.Vectors[at] = d.Embedding
	}
	return out, nil
}
