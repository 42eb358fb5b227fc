package score

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
)

// KindEmbedding is the kind of check that compares meanings by vectors.
const KindEmbedding = "embedding_similarity"

// Embedder asks a model that turns texts into vectors.
type Embedder interface {
	// Embed returns the vector of each text of a request, by the provider of role embed of that id. An error says why there are none.
	Embed(ctx context.Context, embedder string, req llm.EmbedRequest) ([][]float32, error)
}

// EmbeddingArgs are the arguments of the check embedding_similarity; a text alone is the reference.
type EmbeddingArgs struct {
	Reference  strict.Node `yaml:"reference,required" doc:"a text that means what a good answer means, such as \"{{expected}}\", or several, of which the nearest counts"`
	Provider   *string     `yaml:"provider" schema:"filled_or_null" doc:"the id of a provider of role embed; the only one unless given"`
	Dimensions *int        `yaml:"dimensions" schema:"positive" doc:"how long the vectors are, for models that can shorten them; the model's own length unless given"`
}

// maxReferences bounds how many texts an answer is compared with.
const maxReferences = 100

// nearness is a compiled check of kind embedding_similarity.
type nearness struct {
	references []string
	embedder   string
	dimensions int
}

func compileEmbedding(args strict.Node, a at) judge {
	n := &nearness{}
	known := embeddersOf(a)
	const example = `embedding_similarity: {reference: "{{expected}}"}`
	switch args.Kind() {
	case strict.String:
		n.refer(args, a)
		args = strict.Node{}
	case strict.Mapping, strict.Missing, strict.Null:
		var in EmbeddingArgs
		a.decode(args, &in, example)
		n.given(args, in, a)
		if provider := args.Get("provider"); in.Provider != nil && known.has(provider, a.key("provider")) {
			n.embedder = *in.Provider
		}
	default:
		a.bad(args, "write "+example, "want a reference, or a mapping with reference")
		return nil
	}
	if args.Get("provider").IsZero() {
		known.only(args, "", a)
		if len(known.ids) == 1 {
			n.embedder = known.ids[0]
		}
	}
	*a.asks = 1
	return n.judge
}

// given takes references and dimensions from a mapping.
func (n *nearness) given(args strict.Node, in EmbeddingArgs, a at) {
	at := a.key("reference")
	switch reference := in.Reference; reference.Kind() {
	case strict.Missing: // said already
	case strict.Sequence:
		switch count := reference.Len(); {
		case count == 0:
			at.bad(args.Get("reference"), `reference: "{{expected}}"`, "the list is empty")
		case count > maxReferences:
			at.bad(args.Get("reference"), "keep those that differ most", "%d references are more than %d", count, maxReferences)
		}
		for i, text := range reference.Items() {
			n.refer(text, at.index(i))
		}
	default:
		n.refer(reference, at)
	}
	if in.Dimensions != nil {
		n.dimensions = *in.Dimensions
		if n.dimensions < 1 {
			a.key("dimensions").bad(args.Get("dimensions"), "leave it out for the model's own length", "want a whole number from 1, got %d", n.dimensions)
		}
	}
}

// refer takes a text to compare with.
func (n *nearness) refer(text strict.Node, a at) {
	reference := textOf(text)
	switch {
	case reference == "":
		a.bad(text, "give a text", "the reference is empty, and an empty text has no meaning to be near to")
	case len(reference) > maxMaterial:
		a.bad(text, "give a shorter text", "%d KiB are more than is compared (%d)", len(reference)>>10, maxMaterial>>10)
	}
	n.references = append(n.references, reference)
}

// judge compares the answer with each reference.
func (n *nearness) judge(ctx context.Context, c *Case) (Verdict, error) {
	v := Verdict{Expected: n.expects(c.check.Threshold), Actual: around(c.Output, 0)}
	switch {
	case strings.TrimSpace(c.Output) == "":
		v.void, v.Reason = true, "the answer is empty"
		return v, nil
	case len(c.Output) > maxMaterial:
		return v, fmt.Errorf("%d KiB are more than is compared (%d)", len(c.Output)>>10, maxMaterial>>10)
	case c.Embedder == nil:
		return v, errors.New("nobody turns texts into vectors here")
	}
	vectors, err := c.Embedder.Embed(ctx, n.embedder, llm.EmbedRequest{Texts: append([]string{c.Output}, n.references...), Dimensions: n.dimensions})
	if err != nil {
		return v, err
	}
	if len(vectors) != 1+len(n.references) {
		return v, fmt.Errorf("%d texts were sent and %d vectors came back", 1+len(n.references), len(vectors))
	}
	best, nearest := -2.0, 0
	for i, reference := range vectors[1:] {
		cosine, err := llm.Cosine(vectors[0], reference)
		if err != nil {
			return v, err
		}
		if cosine > best {
			best, nearest = cosine, i
		}
	}
	v.Score = (1 + best) / 2
	v.Reason = "the cosine is " + points(best) + ", the similarity " + points(v.Score)
	if len(n.references) > 1 {
		v.Reason += fmt.Sprintf(", to reference %d of %d", nearest+1, len(n.references))
	}
	return v, nil
}

func (n *nearness) expects(threshold float64) string {
	text := fmt.Sprintf("a similarity of at least %s by %s to %s", strconv.FormatFloat(threshold, 'f', -1, 64), n.embedder, quote(n.references[0], 0))
	if more := len(n.references) - 1; more > 0 {
		text += fmt.Sprintf(" or %d other texts", more)
	}
	return text
}
