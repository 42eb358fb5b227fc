package llm

import (
	"context"
	"fmt"
	"math"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
)

// Embedder turns texts into vectors, so that texts of a similar meaning get vectors of a similar direction. Its errors are those of a [Model]: *[Error] where a vendor or the way to it failed.
type Embedder interface {
	// Embed returns one vector for each text, in the order of the texts. Where there are more texts than the vendor takes at once, it asks several times, one request after the other; a failure of one is the failure of all.
	Embed(ctx context.Context, req EmbedRequest) (Embeddings, error)
}

// EmbedRequest is a list of texts to turn into vectors.
type EmbedRequest struct {
	// Texts are not empty, neither the list nor a text in it.
	Texts []string
	// Dimensions is how long the vectors are to be; 0 leaves it to the model.
	Dimensions int
}

// Check says what makes a request one that no vendor can answer, as an error of code [failure.Input].
func (r EmbedRequest) Check() error {
	if len(r.Texts) == 0 {
		return failure.New(failure.Input, "there is no text to embed")
	}
	for i, text := range r.Texts {
		if text == "" {
			return failure.New(failure.Input, "text %d of %d is empty, and an empty text has no embedding", i+1, len(r.Texts))
		}
	}
	if r.Dimensions < 0 {
		return failure.New(failure.Input, "want vectors of 1 dimension or more, got %d", r.Dimensions)
	}
	return nil
}

// Embeddings are the vectors of the texts of a request.
type Embeddings struct {
	// Vectors has as many elements as the request has texts, all of one length. Their own length (norm) is the vendor's; [Cosine] does not depend on it.
	Vectors [][]float32
	// Usage counts the tokens of the texts as input. It is zero where the vendor does not say.
	Usage conversation.Usage
	// Model is the model that the vendor says has answered, "" where it does not say.
	Model string
}

// EmbedBatches answers a request by calling ask with at most limit texts at a time, and joins what it returns. It checks the request before, and the vectors after: as many as there were texts, and all of one length. vendor names the vendor in errors.
func EmbedBatches(ctx context.Context, vendor string, limit int, req EmbedRequest, ask func(ctx context.Context, req EmbedRequest) (Embeddings, error)) (Embeddings, error) {
	if err := req.Check(); err != nil {
		return Embeddings{}, err
	}
	all := Embeddings{Vectors: make([][]float32, 0, len(req.Texts))}
	for first := 0; first < len(req.Texts); first += limit {
		batch := EmbedRequest{Texts: req.Texts[first:min(first+limit, len(req.Texts))], Dimensions: req.Dimensions}
		got, err := ask(ctx, batch)
		if err != nil {
			return Embeddings{}, err
		}
		if len(got.Vectors) != len(batch.Texts) {
			return Embeddings{}, &Error{Vendor: vendor, Message: fmt.Sprintf("%d texts were sent and %d vectors came back", len(batch.Texts), len(got.Vectors))}
		}
		all.Vectors = append(all.Vectors, got.Vectors...)
		all.Usage.InputTokens += got.Usage.InputTokens
		all.Model = got.Model
	}
	length := len(all.Vectors[0])
	if req.Dimensions > 0 {
		length = req.Dimensions
	}
	for i, vector := range all.Vectors {
		if len(vector) == 0 || len(vector) != length {
			return Embeddings{}, &Error{Vendor: vendor, Message: fmt.Sprintf("the vector of text %d has %d dimensions, want %d", i+1, len(vector), max(length, 1))}
		}
	}
	return all, nil
}

// Cosine is the cosine of the angle between two vectors, from -1 to 1: 1 where they point the same way. It is an error where their lengths differ or one of them is zero, since there is no angle then.
func Cosine(a, b []float32) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("vectors of %d and %d dimensions cannot be compared", len(a), len(b))
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		// The conversions keep a processor from fusing the operations, which would round differently elsewhere.
		dot += float64(x * y)
		aa += float64(x * x)
		bb += float64(y * y)
	}
	if !(aa > 0) || !(bb > 0) || math.IsInf(aa, 0) || math.IsInf(bb, 0) {
		return 0, fmt.Errorf("a vector without a direction cannot be compared")
	}
	return min(max(dot/(math.Sqrt(aa)*math.Sqrt(bb)), -1), 1), nil
}
