package llm_test

import (
	"context"
	"errors"
	"fmt"
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
)

var _ = Describe("embeddings", func() {
	It("are asked for in batches, joined in the order of the texts", func() {
		var sizes []int
		ask := func(_ context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
			sizes = append(sizes, len(req.Texts))
			out := llm.Embeddings{Usage: conversation.Usage{InputTokens: len(req.Texts)}, Model: "m"}
			for _, text := range req.Texts {
				out.Vectors = append(out.Vectors, []float32{float32(len(text))})
			}
			return out, nil
		}
		got, err := llm.EmbedBatches(context.Background(), "v", 2, llm.EmbedRequest{Texts: []string{"a", "bb", "ccc", "dddd", "eeeee"}}, ask)
		Expect(err).NotTo(HaveOccurred())
		Expect(sizes).To(Equal([]int{2, 2, 1}))
		Expect(got).To(Equal(llm.Embeddings{Vectors: [][]float32{{1}, {2}, {3}, {4}, {5}}, Usage: conversation.Usage{InputTokens: 5}, Model: "m"}))
	})
	It("are none where one batch fails or brings vectors of another length", func() {
		n := 0
		_, err := llm.EmbedBatches(context.Background(), "v", 1, llm.EmbedRequest{Texts: []string{"a", "b"}}, func(context.Context, llm.EmbedRequest) (llm.Embeddings, error) {
			n++
			return llm.Embeddings{Vectors: [][]float32{make([]float32, n)}}, nil
		})
		var failed *llm.Error
		Expect(errors.As(err, &failed)).To(BeTrue())
		Expect(err).To(MatchError("v: the vector of text 2 has 2 dimensions, want 1"))
		_, err = llm.EmbedBatches(context.Background(), "v", 1, llm.EmbedRequest{Texts: []string{"a"}}, func(context.Context, llm.EmbedRequest) (llm.Embeddings, error) {
			return llm.Embeddings{}, errors.New("down")
		})
		Expect(err).To(MatchError("down"))
	})
	DescribeTable("are compared by the cosine of their angle", func(a, b []float32, want float64) {
		got, err := llm.Cosine(a, b)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(BeNumerically("~", want, 1e-7))
	},
		Entry("the same way, whatever the norm", []float32{1, 2}, []float32{2, 4}, 1.0),
		Entry("at a right angle", []float32{1, 0}, []float32{0, 3}, 0.0),
		Entry("the other way", []float32{1, -1}, []float32{-2, 2}, -1.0),
		Entry("at 60 degrees", []float32{1, 0}, []float32{1, float32(math.Sqrt(3))}, 0.5),
	)
	It("are not compared where there is no angle", func() {
		for _, pair := range [][2][]float32{{{1}, {1, 2}}, {{0, 0}, {1, 0}}, {{}, {}}, {{float32(math.NaN())}, {1}}, {{float32(math.Inf(1))}, {1}}} {
			_, err := llm.Cosine(pair[0], pair[1])
			Expect(err).To(HaveOccurred(), "%v", pair)
		}
	})
})

// bytesEmbedder is an [llm.Embedder] for the example: it counts vowels and consonants.
type bytesEmbedder struct{}

func (bytesEmbedder) Embed(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	return llm.EmbedBatches(ctx, "example", 10, req, func(_ context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
		var out llm.Embeddings
		for _, text := range req.Texts {
			v := []float32{0, 0}
			for _, r := range text {
				switch r {
				case 'a', 'e', 'i', 'o', 'u':
					v[0]++
				default:
					v[1]++
				}
			}
			out.Vectors = append(out.Vectors, v)
		}
		return out, nil
	})
}

func ExampleEmbedder() {
	var e llm.Embedder = bytesEmbedder{}
	got, err := e.Embed(context.Background(), llm.EmbedRequest{Texts: []string{"banana", "papaya"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	similarity, err := llm.Cosine(got.Vectors[0], got.Vectors[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n", similarity)
	// Output: 1.00
}
