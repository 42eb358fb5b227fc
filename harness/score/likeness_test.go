package score_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/score"
)

var _ = Describe("a graded check of text", func() {
	DescribeTable("scores", func(ctx SpecContext, yaml, output string, want float64) {
		c := check("{" + yaml + ", threshold: 1}")
		r := c.Run(ctx, score.Case{Output: output})
		Expect(float64(deref(r.Score))).To(BeNumerically("~", want, 1e-6), r.Reason)
		Expect(r.Status == eval.CheckPass).To(Equal(want == 1))
	},
		Entry(nil, "similarity: kitten", "sitting", 1-3.0/7),
		Entry(nil, "similarity: kitten", "", 0.0),
		Entry(nil, "similarity: kitten", "KITTEN", 0.0),
		Entry(nil, "similarity: {value: kitten, ignore_case: true}", "KITTEN", 1.0),
		Entry(nil, "similarity: ab😀", "ab😁", 2.0/3),
		Entry(nil, "similarity: {values: [abcd, xyz]}", "xy", 2.0/3),
		Entry(nil, "similarity: \"caf\u00e9\"", "cafe\u0301", 1-2.0/5),
		Entry(nil, "similarity: {value: \"caf\u00e9\", unicode: nfc}", "cafe\u0301", 1.0),
		// Lin 2004, section 3: of the reference "police killed the gunman", S2 has 3 of 4 words in order and S3 2.
		Entry(nil, "rouge_l: police killed the gunman", "police kill the gunman", 0.75),
		Entry(nil, "rouge_l: police killed the gunman", "the gunman kill police", 0.5),
		Entry(nil, "rouge_l: police killed the gunman", "the gunman police killed", 0.5),
		Entry(nil, "rouge_l: {value: police killed the gunman, measure: recall}", "today police killed the old gunman, they say", 1.0),
		Entry(nil, "rouge_l: {value: police killed the gunman, measure: precision}", "police killed", 1.0),
		Entry(nil, "rouge_l: police killed the gunman", "Police: killed, the gunman!", 0.75),
		Entry(nil, "rouge_l: {value: police killed the gunman, ignore_case: true}", "Police: killed, the gunman!", 1.0),
		Entry(nil, "rouge_l: 我喜欢茶", "我喜欢水", 0.75),
		Entry(nil, "rouge_l: x", "!!!", 0.0),
		// By hand: 5 of 6 words, 3 of 5 pairs (4/6 smoothed), 1 of 4 triples (2/5), no four (1/4), no penalty.
		Entry(nil, "bleu: the cat is on the mat", "the cat sat on the mat", math.Pow(5.0/6*4/6*2/5*1/4, 0.25)),
		// Papineni et al. 2002: a word counts as often as the reference has it.
		Entry(nil, "bleu: the cat is on the mat", "the the the the the the the", math.Pow(2.0/7*1/7*1/6*1/5, 0.25)),
		// All words right, two of four: the penalty exp(1-4/2) alone.
		Entry(nil, "bleu: a b c d", "a b", math.Exp(-1)),
		Entry(nil, "bleu: a b c d", "x y", 0.0),
		Entry(nil, "bleu: a b c d", "", 0.0),
		Entry(nil, "bleu: a", "a", 1.0),
	)

	It("says that only Unicode normalisation differs, where that is so and more likeness is asked for", func(ctx SpecContext) {
		for _, kind := range []string{"similarity", "rouge_l", "bleu"} {
			c := check("{" + kind + ": \"le caf\u00e9 noir\", threshold: 0.99}")
			r := c.Run(ctx, score.Case{Output: "le cafe\u0301 noir"})
			Expect(r.Status).To(Equal(eval.CheckFail))
			Expect(r.Reason).To(ContainSubstring("only Unicode normalisation differs ({unicode: nfc} ignores it)"), kind)
			Expect(on(ctx, "{"+kind+": x y z, threshold: 0.9}", "a b c").Reason).NotTo(ContainSubstring("only"), kind)
		}
	})

	It("takes megabytes, or says that it cannot", func(ctx SpecContext) {
		one := strings.Repeat("lorem ipsum dolor ", 300_000) // 5 MB
		began := time.Now()
		c := check("{similarity: lorem ipsum, threshold: 0.5}")
		Expect(c.Run(ctx, score.Case{Output: one}).Status).To(Equal(eval.CheckFail))
		c = check("{similarity: '" + one[:200_000] + "', threshold: 0.5}")
		r := c.Run(ctx, score.Case{Output: strings.ToUpper(one)})
		Expect(r.Status).To(Equal(eval.CheckUnjudged))
		Expect(r.Reason).To(ContainSubstring("too long"))
		Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
	})

	const rounds = 60
	words := strings.Fields("the cat sat on a mat and saw one more dog near that old red house by our lake")
	kinds := []string{"similarity", "rouge_l", "bleu"}
	random := func() *rand.Rand { return rand.New(rand.NewPCG(5, uint64(GinkgoRandomSeed()))) }
	text := func(r *rand.Rand) []string {
		list := make([]string, 2+r.IntN(12))
		for i := range list {
			list[i] = words[r.IntN(len(words))]
		}
		return list
	}
	likeness := func(ctx SpecContext, kind string, want, got []string) float64 {
		GinkgoHelper()
		c := check(fmt.Sprintf("{%s: %s, threshold: 0.5}", kind, strings.Join(want, " ")))
		v, err := c.Score(ctx, score.Case{Output: strings.Join(got, " ")})
		Expect(err).NotTo(HaveOccurred())
		return v.Score
	}

	It("is 1 for identical input, and only less when something is put in, taken from its end or replaced", func(ctx SpecContext) {
		r := random()
		fell := 0
		for range rounds {
			want := text(r)
			for _, kind := range kinds {
				for _, edit := range []func([]string) []string{
					func(got []string) []string { return slices.Insert(got, r.IntN(len(got)+1), "ZZZ") },
					func(got []string) []string { return got[:len(got)-1] },
					func(got []string) []string { // as long as what it replaces: a shorter word would mend what a longer one broke
						i := r.IntN(len(got))
						got[i] = strings.Repeat("Z", len(got[i]))
						return got
					},
				} {
					got, last := slices.Clone(want), 1.0
					Expect(likeness(ctx, kind, want, got)).To(Equal(1.0))
					for range 4 {
						if got = edit(got); len(got) == 0 {
							break
						}
						now := likeness(ctx, kind, want, got)
						Expect(now).To(BeNumerically("<=", last+1e-12), "%s: %v, %v", kind, want, got)
						if now < last {
							fell++
						}
						last = now
					}
				}
			}
		}
		Expect(fell).To(BeNumerically(">", rounds*len(kinds)*3))
	})

	It("of rouge_l never rises by any error, whatever came before", func(ctx SpecContext) {
		r := random()
		for range rounds {
			want := text(r)
			got, last := slices.Clone(want), 1.0
			// Errors go from the end to the beginning, so that none mends another.
			for at := len(got) - 1; at >= 0; at-- {
				switch r.IntN(4) {
				case 0:
					got = slices.Insert(got, at, "ZZZ")
				case 1:
					if len(got) > 1 {
						got = slices.Delete(got, at, at+1)
					}
				case 2:
					got[at] = "ZZZ"
				}
				now := likeness(ctx, "rouge_l", want, got)
				Expect(now).To(BeNumerically("<=", last+1e-12), "%v, %v", want, got)
				last = now
			}
		}
	})

	It("of bleu may rise by a word too many after words too few, as its definition has it", func(ctx SpecContext) {
		want := strings.Fields("a b c d e f g h i j")
		short := likeness(ctx, "bleu", want, want[:5])
		Expect(likeness(ctx, "bleu", want, append(slices.Clone(want[:5]), "ZZZ"))).To(BeNumerically(">", short))
	})

	It("of several texts does not depend on their order", func(ctx SpecContext) {
		r := random()
		for range rounds {
			a, b, got := strings.Join(text(r), " "), strings.Join(text(r), " "), strings.Join(text(r), " ")
			for _, kind := range kinds {
				one := on(ctx, fmt.Sprintf("{%s: {values: [%s, %s]}, threshold: 0.5}", kind, a, b), got)
				other := on(ctx, fmt.Sprintf("{%s: {values: [%s, %s]}, threshold: 0.5}", kind, b, a), got)
				Expect(deref(one.Score)).To(Equal(deref(other.Score)))
			}
		}
	})
})

var _ = Describe("a check of length", func() {
	DescribeTable("counts", func(ctx SpecContext, yaml, output string, want eval.CheckStatus, reason string) {
		r := on(ctx, yaml, output)
		Expect(r.Status).To(Equal(want))
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry(nil, "length: {max: 3}", "abc", eval.CheckPass, "3 characters"),
		Entry(nil, "length: {max: 3}", "ab😀😀", eval.CheckFail, "4 characters"),
		Entry(nil, "length: {min: 2, max: 3, unit: words}", "Call 112, please", eval.CheckPass, "3 words"),
		Entry(nil, "length: {min: 2, unit: words}", "one", eval.CheckFail, "1 words"),
		Entry(nil, "length: {max: 2, unit: lines}", "a\r\n\r\nb\n", eval.CheckPass, "2 lines"),
		Entry(nil, "length: {max: 2, unit: lines}", "a\nb\nc", eval.CheckFail, "3 lines"),
		Entry("an empty answer is not short", "length: {max: 100}", "", eval.CheckFail, "the answer is empty"),
		Entry("nor long where that is negated", "not: {length: {max: 100}}", "", eval.CheckFail, "the answer is empty"),
		Entry(nil, "length: {max: 3, unit: words}", " ... ", eval.CheckFail, "the answer holds no words"),
		Entry("unless that is said", "length: {min: 0, max: 100}", "", eval.CheckPass, "0 characters"),
		Entry(nil, "not: {length: {max: 3}}", "abcd", eval.CheckPass, "4 characters"),
	)
})

var _ = Describe("a check of refusal", func() {
	DescribeTable("looks at how the answer begins", func(ctx SpecContext, yaml, output string, want bool) {
		r := on(ctx, yaml, output)
		Expect(r.Status == eval.CheckPass).To(Equal(want), r.Reason)
		Expect(on(ctx, "not: {"+yaml+"}", output).Status == eval.CheckPass).To(Equal(!want && output != ""))
	},
		Entry(nil, "refusal", "I'm sorry, but I can't help with that.", true),
		Entry(nil, "refusal", "I\u2019m sorry, I can\u2019t assist with this request.", true),
		Entry(nil, "refusal", "Unfortunately, I am unable to book that.", true),
		Entry(nil, "refusal", "**I cannot** do this.", true),
		Entry(nil, "refusal", "As an AI language model, I cannot give legal advice.", true),
		Entry(nil, "refusal", "No, I won't.", true),
		Entry(nil, "refusal", "I'm sorry to hear that. Here is what you can do.", false),
		Entry(nil, "refusal", "You can call 112. I can't stress this enough.", false),
		Entry(nil, "refusal", "Sorry, the shop is closed on Sunday.", false),
		Entry(nil, "refusal", "", false),
		Entry(nil, "refusal", "Leider kann ich dabei nicht helfen.", false),
		Entry(nil, "refusal: {phrases: [Leider kann ich]}", "Leider  kann ich dabei nicht helfen.", true),
	)

	It("takes the model's word", func(ctx SpecContext) {
		in := replying([]string{})
		in.Output = "Here you are."
		c := check("refusal")
		Expect(c.Run(ctx, in).Status).To(Equal(eval.CheckFail))
		in.Trace.Events[0].Reply.Stop = "refused"
		Expect(c.Run(ctx, in).Status).To(Equal(eval.CheckPass))
		in.Output = ""
		Expect(c.Run(ctx, in).Status).To(Equal(eval.CheckPass))
	})
})
