package score

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

var _ = Describe("an excerpt", func() {
	DescribeTable("holds the place and keeps to its length", func(s string, at, n int, want string) {
		Expect(excerpt(s, at, n)).To(Equal(want))
	},
		Entry(nil, "", 0, 5, ""),
		Entry(nil, "abcde", 2, 5, "abcde"),
		Entry(nil, "äöüßé", 8, 5, "äöüßé"),
		Entry(nil, "abcdefghij", 0, 6, "abcde…"),
		Entry(nil, "abcdefghij", 9, 6, "…fghij"),
		Entry(nil, "abcdefghij", 5, 6, "…defg…"),
		Entry(nil, "abcdefghij", 99, 6, "…fghij"),
		Entry(nil, "\xff\xffabcdefghij", 0, 6, "\ufffdabc…"),
	)
})

func FuzzExcerpt(f *testing.F) {
	f.Add("abc\xffdef😀", 3, 4)
	f.Add(strings.Repeat("é", 600), 700, 500)
	f.Fuzz(func(t *testing.T, s string, at, n int) {
		if n < 4 || n > 1000 {
			t.Skip()
		}
		got := excerpt(s, at, n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n {
			t.Fatalf("%q: %d characters of at most %d", got, utf8.RuneCountInString(got), n)
		}
		if at < 0 || at >= len(s) || !utf8.ValidString(s) || !utf8.RuneStart(s[at]) {
			return
		}
		if r, _ := utf8.DecodeRuneInString(s[at:]); !strings.ContainsRune(got, r) {
			t.Fatalf("%q does not hold %q, which stands at %d", got, r, at)
		}
	})
}

var _ = Describe("a graded kind", func() {
	table := []kind{{name: "similar", graded: true, compile: func(strict.Node, at) judge {
		return func(context.Context, *Case) (Verdict, error) { return Verdict{Score: 0.6, Reason: "rather"}, nil }
	}}}
	half, most := 0.5, 0.9

	It("must state a threshold, negated or not", func() {
		for _, not := range []bool{false, true} {
			var p strict.Problems
			compile([]Spec{{Kind: "similar", Not: not, Pos: failure.Position{File: "d.yaml", Line: 3}}}, Env{}, table, &p)
			Expect(p.Err()).To(MatchError("d.yaml:3: check similar is graded and states no threshold"))
			Expect(failure.Hints(p.Err())).To(ConsistOf("add one beside the kind: threshold: 0.8"))
		}
	})

	DescribeTable("passes from its threshold on, or below it", func(ctx SpecContext, not bool, threshold *float64, score float64, want eval.CheckStatus) {
		var p strict.Problems
		checks := compile([]Spec{{Kind: "similar", Not: not, Threshold: threshold}}, Env{}, table, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		r := checks[0].Run(ctx, Case{})
		Expect(r.Status).To(Equal(want))
		Expect(float64(*r.Score)).To(Equal(score))
	},
		Entry(nil, false, &half, 0.6, eval.CheckPass),
		Entry(nil, false, &most, 0.6, eval.CheckFail),
		Entry(nil, true, &half, 0.0, eval.CheckFail),
		Entry(nil, true, &most, 1.0, eval.CheckPass),
	)

	It("that crashes could not judge", func(ctx SpecContext) {
		c := Check{judge: func(context.Context, *Case) (Verdict, error) { panic("oh") }}
		Expect(c.Run(ctx, Case{}).Status).To(Equal(eval.CheckUnjudged))
	})
})
