package score_test

import (
	"context"
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/score"
)

// space gives each text the vector that it is said to have.
type space struct {
	vectors  map[string][]float32
	err      error
	asked    []string
	requests []llm.EmbedRequest
}

func (s *space) Embed(_ context.Context, embedder string, req llm.EmbedRequest) ([][]float32, error) {
	s.asked = append(s.asked, embedder)
	s.requests = append(s.requests, req)
	var out [][]float32
	for _, text := range req.Texts {
		out = append(out, s.vectors[text])
	}
	return out, s.err
}

// nearBy is the one check that the YAML text states.
func nearBy(yaml string, env score.Env) *score.Check {
	GinkgoHelper()
	c := judged(yaml, env)
	return &c
}

var near = score.Env{Embedders: []string{"near"}}

var _ = Describe("embedding_similarity", func() {
	plane := map[string][]float32{"east": {2, 0}, "also east": {0.5, 0}, "north": {0, 1}, "west": {-1, 0}, "north-east": {1, 1}, "nowhere": {0, 0}, "deep": {1, 0, 0}}

	DescribeTable("scores (1 + cosine)/2", func(ctx SpecContext, output, reference string, want float64) {
		c := nearBy("{embedding_similarity: "+reference+", threshold: 0.8}", near)
		Expect(c.Asks).To(Equal(1))
		s := &space{vectors: plane}
		r := c.Run(ctx, score.Case{Output: output, Embedder: s})
		Expect(r.Score).NotTo(BeNil(), r.Reason)
		Expect(float64(*r.Score)).To(BeNumerically("~", want, 1e-6))
		Expect(r.Status == eval.CheckPass).To(Equal(want >= 0.8))
		Expect(s.asked).To(Equal([]string{"near"}))
		Expect(*r.Expected).To(ContainSubstring("a similarity of at least 0.8 by near to "))
		Expect(r.Reason).To(ContainSubstring("cosine"))
	},
		Entry("the same direction, whatever the length", "east", "also east", 1.0),
		Entry("nothing in common", "east", "north", 0.5),
		Entry("the opposite", "east", "west", 0.0),
		Entry("half way", "north-east", "north", 0.853553),
		Entry("the nearest of several", "east", "{reference: [west, north, north-east]}", 0.853553),
		Entry("one of a list", "east", "{reference: [west]}", 0.0),
	)

	It("sends the answer first, then the references, with the dimensions that are asked for", func(ctx SpecContext) {
		s := &space{vectors: plane}
		both := score.Env{Embedders: []string{"near", "far"}}
		r := nearBy("{embedding_similarity: {reference: [west, north], provider: far, dimensions: 2}, threshold: 0.5}", both).Run(ctx, score.Case{Output: "east", Embedder: s})
		Expect(s.requests).To(Equal([]llm.EmbedRequest{{Texts: []string{"east", "west", "north"}, Dimensions: 2}}))
		Expect(s.asked).To(Equal([]string{"far"}))
		Expect(r.Reason).To(HaveSuffix("to reference 2 of 2"))
		Expect(*r.Expected).To(HaveSuffix(" or 1 other texts"))
	})

	It("takes numbers and mappings of the data as their text", func(ctx SpecContext) {
		s := &space{vectors: map[string][]float32{"112": {1}, `{"a":1}`: {1}}}
		Expect(nearBy("{embedding_similarity: {reference: 112}, threshold: 0.5}", near).Run(ctx, score.Case{Output: "112", Embedder: s}).Status).To(Equal(eval.CheckPass))
		Expect(nearBy("{embedding_similarity: {reference: {a: 1}}, threshold: 0.5}", near).Run(ctx, score.Case{Output: "112", Embedder: s}).Status).To(Equal(eval.CheckPass))
	})

	It("fails an empty answer without asking, negated too", func(ctx SpecContext) {
		s := &space{vectors: plane}
		for _, output := range []string{"", " \r\n"} {
			for _, check := range []string{"{embedding_similarity: east, threshold: 0.8}", "{not: {embedding_similarity: east}, threshold: 0.8}"} {
				r := nearBy(check, near).Run(ctx, score.Case{Output: output, Embedder: s})
				Expect(r.Status).To(Equal(eval.CheckFail))
				Expect(float64(*r.Score)).To(BeZero())
				Expect(r.Reason).To(Equal("the answer is empty"))
			}
		}
		Expect(s.asked).To(BeEmpty())
	})

	DescribeTable("does not judge what it cannot", func(ctx SpecContext, output string, s score.Embedder, why string) {
		for _, check := range []string{"{embedding_similarity: east, threshold: 0.8}", "{not: {embedding_similarity: east}, threshold: 0.8}"} {
			r := nearBy(check, near).Run(ctx, score.Case{Output: output, Embedder: s})
			Expect(r.Status).To(Equal(eval.CheckUnjudged))
			Expect(r.Score).To(BeNil())
			Expect(r.Reason).To(ContainSubstring(why))
		}
	},
		Entry("a vendor that is down", "east", &space{vectors: plane, err: errors.New("no route")}, "no route"),
		Entry("a vector without a direction", "nowhere", &space{vectors: plane}, "without a direction"),
		Entry("vectors of two spaces", "deep", &space{vectors: plane}, "3 and 2 dimensions"),
		Entry("nobody to ask", "east", nil, "nobody turns texts into vectors"),
		Entry("too long an answer", strings.Repeat("x", 600<<10), &space{vectors: plane}, "600 KiB"),
	)

	DescribeTable("says what is wrong with its arguments", func(check string, env score.Env, want string) {
		var p strict.Problems
		Expect(score.Compile(specs("- "+check), env, &p)).To(BeEmpty())
		Expect(failure.Render(p.Err())).To(ContainSubstring(want))
	},
		Entry("no threshold", "{embedding_similarity: east}", near, "d.yaml:1:3: check embedding_similarity is graded and states no threshold"),
		Entry("bare", "embedding_similarity", near, "arguments are missing"),
		Entry("an empty text", `{embedding_similarity: " ", threshold: 0.5}`, near, "d.yaml:1:26: embedding_similarity: the reference is empty"),
		Entry("no reference", `{embedding_similarity: {provider: near}, threshold: 0.5}`, near, `key "reference" is missing`),
		Entry("null", `{embedding_similarity: {reference: null}, threshold: 0.5}`, near, "the reference is empty"),
		Entry("none", `{embedding_similarity: {reference: []}, threshold: 0.5}`, near, "d.yaml:1:38: embedding_similarity.reference: the list is empty"),
		Entry("an empty one among others", `{embedding_similarity: {reference: [a, ""]}, threshold: 0.5}`, near, "d.yaml:1:42: embedding_similarity.reference[1]: the reference is empty"),
		Entry("a list outside a mapping", `{embedding_similarity: [a], threshold: 0.5}`, near, "want a reference, or a mapping"),
		Entry("a number outside a mapping", `{embedding_similarity: 5, threshold: 0.5}`, near, "want a reference, or a mapping"),
		Entry("an unknown key", `{embedding_similarity: {reference: a, treshold: 1}, threshold: 0.5}`, near, `unknown key "treshold"`),
		Entry("no dimension", `{embedding_similarity: {reference: a, dimensions: 0}, threshold: 0.5}`, near, "want a whole number from 1, got 0"),
		Entry("nobody to ask", `{embedding_similarity: a, threshold: 0.5}`, score.Env{Judges: []string{"strict"}}, "role: embed}"),
		Entry("several to ask", `{embedding_similarity: a, threshold: 0.5}`, score.Env{Embedders: []string{"a", "b"}}, "there are several providers of role embed"),
		Entry("another one", `{embedding_similarity: {reference: a, provider: neer}, threshold: 0.5}`, near, `did you mean "near"?`),
		Entry("a long reference", `{embedding_similarity: "`+strings.Repeat("x", 600<<10)+`", threshold: 0.5}`, near, "600 KiB"),
		Entry("too many", `{embedding_similarity: {reference: [`+strings.Repeat("x, ", 100)+`x]}, threshold: 0.5}`, near, "101 references"),
	)
})
