package score_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/score"
)

// Faults that scorers of tool calls are known for. Each spec fails for a scorer that has the fault.
var _ = Describe("tool_calls has none of these faults", func() {
	// Scores are those of a check with the calls expected, separated by spaces, on the replies made, separated by |.
	points := func(ctx SpecContext, args, made string) float64 {
		GinkgoHelper()
		var replies [][]string
		for reply := range strings.SplitSeq(made, "|") {
			replies = append(replies, strings.Fields(reply))
		}
		c := check("tool_calls: " + args)
		v, err := c.Score(ctx, replying(replies...))
		Expect(err).NotTo(HaveOccurred())
		return v.Score
	}

	It("sets: two equal calls expected, one made, and all is well", func(ctx SpecContext) {
		for _, match := range []string{"exact", "unordered", "subset"} {
			Expect(points(ctx, "{match: "+match+", calls: [{name: search}, {name: search}]}", "search")).To(BeNumerically("<", 1), match)
		}
	})

	It("duplicates: two equal calls expected and made, and half is well", func(ctx SpecContext) {
		for _, match := range []string{"exact", "unordered", "subset", "superset"} {
			Expect(points(ctx, "{match: "+match+", calls: [{name: search}, {name: search}]}", "search search")).To(Equal(1.0), match)
		}
	})

	It("greedy pairing: the score changes with the order of the expectations", func(ctx SpecContext) {
		made := `search{"q":"x"} search`
		one := points(ctx, "{match: unordered, calls: [{name: search}, {name: search, args: {q: x}}]}", made)
		other := points(ctx, "{match: unordered, calls: [{name: search, args: {q: x}}, {name: search}]}", made)
		Expect(one).To(Equal(other))
		Expect(one).To(Equal(1.0))
	})

	It("one call satisfies two expectations", func(ctx SpecContext) {
		Expect(points(ctx, "{match: subset, calls: [{name: search, args: {q: x}}, {name: search}]}", `search{"q":"x"}`)).To(Equal(0.5))
	})

	It("the longer of the two is cut to the shorter", func(ctx SpecContext) {
		Expect(points(ctx, "{calls: [{name: search}, {name: book}]}", "search")).To(BeNumerically("<", 1))
		Expect(points(ctx, "{calls: [{name: search}]}", "search book")).To(BeNumerically("<", 1))
		Expect(points(ctx, "{calls: [{name: search}]}", "search | book")).To(BeNumerically("<", 1))
	})

	It("hand-offs and calls are counted instead of compared", func(ctx SpecContext) {
		Expect(points(ctx, "{calls: [{name: search}, {name: book}]}", "exec exec")).To(BeZero())
	})

	It("side by side is not told from one after another", func(ctx SpecContext) {
		parallel, sequential := "{match: unordered, same_turn: true, calls: [{name: search}, {name: book}]}", "{same_turn: false, calls: [{name: search}, {name: book}]}"
		Expect(points(ctx, parallel, "search book")).To(Equal(1.0))
		Expect(points(ctx, parallel, "search | book")).To(BeNumerically("<", 1))
		Expect(points(ctx, sequential, "search | book")).To(Equal(1.0))
		Expect(points(ctx, sequential, "search book")).To(BeNumerically("<", 1))
	})

	It("whether a call succeeded cannot be said", func(ctx SpecContext) {
		Expect(points(ctx, "{calls: [{name: book, status: ok}]}", "book")).To(Equal(1.0))
		Expect(points(ctx, "{calls: [{name: book, status: ok}]}", "book!")).To(BeNumerically("<", 1))
		Expect(points(ctx, "{calls: [{name: book, status: error}]}", "book!")).To(Equal(1.0))
	})

	It("order and exactness are one thing", func(ctx SpecContext) {
		// In order with others between, exactly in any order, exactly in order, in any order with others.
		calls := "calls: [{ordered: [{name: search}, {name: book}]}]"
		Expect(points(ctx, "{match: subset, "+calls+"}", "search exec book")).To(Equal(1.0))
		Expect(points(ctx, "{match: subset, "+calls+"}", "book search")).To(BeNumerically("<", 1))
		flat := "calls: [{name: search}, {name: book}]"
		Expect(points(ctx, "{match: unordered, "+flat+"}", "book search")).To(Equal(1.0))
		Expect(points(ctx, "{match: unordered, "+flat+"}", "book exec search")).To(BeNumerically("<", 1))
		Expect(points(ctx, "{match: exact, "+flat+"}", "book search")).To(BeNumerically("<", 1))
		Expect(points(ctx, "{match: subset, "+flat+"}", "book exec search")).To(Equal(1.0))
	})

	It("no calls at all are right", func(ctx SpecContext) {
		for _, match := range []string{"exact", "unordered", "subset"} {
			Expect(points(ctx, "{match: "+match+", calls: [{name: search}]}", "")).To(BeZero(), match)
		}
		Expect(points(ctx, "{match: superset, calls: [{name: search}]}", "")).To(Equal(1.0), "which superset means, and says")
		c := check("tool_calls: {calls: [{name: search}]}")
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged), "a run of which nobody saw the calls")
	})

	It("the reason takes one side for the other", func(ctx SpecContext) {
		c := check("tool_calls: {calls: [{name: contacts}]}")
		r := c.Run(ctx, replying([]string{"book"}))
		Expect(deref(r.Expected)).To(And(ContainSubstring("contacts"), Not(ContainSubstring("book"))))
		Expect(deref(r.Actual)).To(And(ContainSubstring("book"), Not(ContainSubstring("contacts"))))
		Expect(r.Reason).To(Equal("missing call 1: contacts; unexpected call 1: book{}"))
		Expect(r.Edits).To(ConsistOf("- 1: contacts", "+ 1 book{}"))
	})

	It("a value that the docs name does not exist", func(ctx SpecContext) {
		for _, match := range []string{"exact", "unordered", "subset", "superset"} {
			Expect(points(ctx, "{match: "+match+", calls: [{name: search}]}", "search")).To(Equal(1.0), match)
		}
		Expect(problems("- tool_calls: {match: strict, calls: [{name: search}]}")).To(ContainSubstring("choices: exact, subset, superset, unordered"))
	})

	It("arguments are all or nothing, or cannot be left out", func(ctx SpecContext) {
		made := `book{"a":1,"request_id":"9f"}`
		Expect(points(ctx, "{calls: [{name: book}]}", made)).To(Equal(1.0))
		Expect(points(ctx, "{calls: [{name: book, args: {a: 1}}]}", made)).To(Equal(1.0))
		Expect(points(ctx, "{calls: [{name: book, args: {$equal: {a: 1}, $ignore: [request_id]}}]}", made)).To(Equal(1.0))
		Expect(points(ctx, "{calls: [{name: book, args: {$equal: {a: 1}}}]}", made)).To(And(BeNumerically(">", 0.5), BeNumerically("<", 1)))
		Expect(points(ctx, "{calls: [{name: book, args: {$equal: {a: 1, b: 2}}}]}", `book{"b":2,"a":1}`)).To(Equal(1.0), "the order of keys")
	})

	It("ids of calls are compared", func(ctx SpecContext) {
		in := replying([]string{"search"}, []string{"search"})
		c := check("tool_calls: {calls: [{name: search, status: ok}, {name: search, status: ok}]}")
		Expect(c.Run(ctx, in).Status).To(Equal(eval.CheckPass), "ids return in the second reply")
	})

	It("partial credit breaks on tools that are called again and again", func(ctx SpecContext) {
		Expect(points(ctx, "{match: unordered, calls: [{name: search, args: {q: a}}, {name: search, args: {q: b}}, {name: search, args: {q: c}}]}", `search{"q":"c"} search{"q":"a"}`)).To(BeNumerically("~", 0.8, 1e-9))
	})

	It("names with dots are no names", func(ctx SpecContext) {
		var p strict.Problems
		checks := score.Compile(specs("- tool_calls: {calls: [{name: math.sum, args: {a: 1}}]}"), score.Env{Tools: []string{"math.sum"}}, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		Expect(checks[0].Run(ctx, calling(`math.sum{"a":1}`)).Status).To(Equal(eval.CheckPass))
	})

	It("1.5 is 15, and -5 is 5", func(ctx SpecContext) {
		Expect(points(ctx, "{calls: [{name: book, args: {a: '1.5'}}]}", `book{"a":"15"}`)).To(Equal(0.5))
		Expect(points(ctx, "{calls: [{name: book, args: {a: -5}}]}", `book{"a":5}`)).To(Equal(0.5))
	})
})
