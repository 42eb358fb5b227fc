package score_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/score"
)

// modes are all values of match.
var modes = []string{"exact", "unordered", "subset", "superset"}

func toolCalls(mode string, calls ...string) score.Check {
	return check("tool_calls: {match: " + mode + ", calls: [" + strings.Join(calls, ", ") + "]}")
}

// points judges calls and returns the score.
func points(ctx SpecContext, mode string, expected, made []string) float64 {
	c := toolCalls(mode, expected...)
	v, err := c.Score(ctx, calling(made...))
	Expect(err).NotTo(HaveOccurred())
	Expect(v.Score).To(And(BeNumerically(">=", 0), BeNumerically("<=", 1)))
	return v.Score
}

var _ = Describe("tool_calls", func() {
	DescribeTable("scores what pairs and prints an edit script", func(ctx SpecContext, yaml string, made []string, want float64, reason string) {
		c := check(yaml)
		r := c.Run(ctx, calling(made...))
		Expect(float64(deref(r.Score))).To(BeNumerically("~", want, 1e-6), r.Reason)
		Expect(r.Reason).To(Equal(reason))
		Expect(r.Status == eval.CheckPass).To(Equal(want == 1))
	},
		Entry(nil, "tool_calls: {calls: [{name: contacts, args: {of: p-1}}, {name: book}]}", []string{`contacts{"of":"p-1"}`, "book"}, 1.0, "all 2 calls as expected"),
		Entry(nil, "tool_calls: {calls: [{name: contacts}, {name: book}]}", []string{"book", "contacts"}, 0.5, "only the order differs: missing call 1: contacts; unexpected call 2: contacts{}"),
		Entry(nil, "tool_calls: {match: unordered, calls: [{name: contacts}, {name: book}]}", []string{"book", "contacts"}, 1.0, "all 2 calls as expected"),
		Entry(nil, "tool_calls: {match: unordered, calls: [{name: contacts}, {name: book}]}", []string{"contacts"}, 2.0/3, "missing call 2: book"),
		Entry(nil, "tool_calls: {calls: [{name: contacts}]}", []string{}, 0.0, "missing call 1: contacts"),
		Entry(nil, "tool_calls: {calls: [{name: contacts}]}", []string{`search{"q":"x"}`}, 0.0, `missing call 1: contacts; unexpected call 1: search{"q":"x"}`),
		Entry(nil, "tool_calls: {match: subset, calls: [{name: contacts, args: {of: p-1}}]}", []string{"search", `contacts{"of":"p-1","limit":5}`, "book"}, 1.0, "all 1 expected calls are among the 3 made"),
		Entry(nil, "tool_calls: {match: subset, calls: [{name: contacts, args: {of: p-1}}]}", []string{`contacts{"of":"p-2"}`}, 0.5, `call 1, contacts: /of is "p-2", want "p-1"`),
		Entry(nil, "tool_calls: {match: subset, calls: [{name: contacts}, {name: contacts}]}", []string{"contacts"}, 0.5, "missing call 2: contacts"),
		Entry(nil, "tool_calls: {match: superset, calls: [{name: contacts}, {name: book}]}", []string{"book"}, 1.0, "all 1 calls as expected"),
		Entry(nil, "tool_calls: {match: superset, calls: [{name: contacts}]}", []string{}, 1.0, "no call was made, so none is unexpected"),
		Entry(nil, "tool_calls: {match: superset, calls: [{name: contacts}]}", []string{"contacts", "contacts"}, 0.5, "unexpected call 2: contacts{}"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: 1, b: x}}]}", []string{`book{"a":1.0,"b":"y"}`}, 0.75, `call 1, book: /b is "y", want "x"`),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: 1}}]}", []string{`book{"a":`}, 0.5, "call 1, book: the arguments are not valid JSON"),
		Entry(nil, "tool_calls: {calls: [{name: book}]}", []string{`book{"a":`}, 1.0, "all 1 calls as expected"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$regex: '^x'}, b: {$any: true}, c: {$numeric: {value: 5, abs: 0.5}}}}]}", []string{`book{"a":"xy","b":null,"c":5.25,"d":0}`}, 1.0, "all 1 calls as expected"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$regex: '^x'}, b: {$any: true}, c: {$numeric: {min: 6}}}}]}", []string{`book{"a":1,"c":5.25}`}, 0.5, `call 1, book: /a is 1, want a text that matches "^x", /b is missing, /c is 5.25, want at least 6`),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {x: 1}}}]}", []string{`book{"a":{"x":1,"y":2}}`}, 0.5, "call 1, book: /a/y is not expected"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$partial: {x: 1, l: [1, {$any: true}]}}}}]}", []string{`book{"a":{"y":2,"x":1,"l":[1,"z"]}}`}, 1.0, "all 1 calls as expected"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: [1, 2]}}]}", []string{`book{"a":[2,1]}`}, 0.5, "call 1, book: /a/0 is 2, want 1, /a/1 is 1, want 2"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {$equal: {a: 1}}}]}", []string{`book{"a":1,"b":2}`}, 0.75, "call 1, book: /b is not expected"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {$equal: {}}}]}", []string{`book`}, 1.0, "all 1 calls as expected"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {q: {$$gt: 1, a/b~c: 2}}}]}", []string{`book{"q":{"$gt":1,"a/b~c":3}}`}, 0.5, "call 1, book: /q/a~1b~0c is 3, want 2"),
	)

	It("does not pair greedily", func(ctx SpecContext) {
		// The general expectation must not take the call that only it could leave to the special one.
		general, special := "{name: search}", "{name: search, args: {q: x}}"
		made := []string{`search{"q":"x"}`, `search{"q":"y"}`}
		for _, expected := range [][]string{{general, special}, {special, general}} {
			for _, calls := range [][]string{made, {made[1], made[0]}} {
				Expect(points(ctx, "unordered", expected, calls)).To(Equal(1.0))
				Expect(points(ctx, "subset", expected, calls)).To(Equal(1.0))
			}
		}
	})

	It("is unjudged where no reply was seen", func(ctx SpecContext) {
		c := toolCalls("superset", "{name: book}")
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged))
		n := check("no_tool_calls")
		Expect(n.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged))
	})

	It("keeps to 500 characters", func(ctx SpecContext) {
		c := toolCalls("exact", "{name: book}")
		made := make([]string, 200)
		for i := range made {
			made[i] = fmt.Sprintf(`search{"q":%q}`, strings.Repeat("é", 300))
		}
		r := c.Run(ctx, calling(made...))
		for _, s := range []string{deref(r.Actual), r.Reason} {
			Expect([]rune(s)).To(HaveLen(500))
		}
	})

	It("ignores calls of the conversation that the run was given", func(ctx SpecContext) {
		in := calling("book")
		given := trace.Event{Kind: trace.KindStart, Start: &trace.Start{}}
		given.Start.Input = append(given.Start.Input, in.Trace.Events[0].Reply.Message)
		in = calling()
		in.Trace.Events = append([]trace.Event{given}, in.Trace.Events...)
		c := check("no_tool_calls")
		Expect(c.Run(ctx, in).Status).To(Equal(eval.CheckPass))
	})

	DescribeTable("no_tool_calls", func(ctx SpecContext, yaml string, made []string, want eval.CheckStatus, reason string) {
		c := check(yaml)
		r := c.Run(ctx, calling(made...))
		Expect(r.Status).To(Equal(want))
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry(nil, "no_tool_calls", []string{}, eval.CheckPass, "none was made"),
		Entry(nil, "no_tool_calls", []string{"exec{}"}, eval.CheckFail, "call 1: exec{}"),
		Entry(nil, "no_tool_calls: true", []string{"exec{}"}, eval.CheckFail, "call 1: exec{}"),
		Entry(nil, "no_tool_calls: [exec]", []string{"search"}, eval.CheckPass, ""),
		Entry(nil, "no_tool_calls: [exec]", []string{"search", "exec"}, eval.CheckFail, "call 2: exec"),
		Entry(nil, "not: {no_tool_calls: [exec]}", []string{"search", "exec"}, eval.CheckPass, "call 2: exec"),
	)
})

// world makes random calls: few names and values, so that duplicates abound.
type world struct{ *rand.Rand }

func (w world) call() string {
	return fmt.Sprintf(`%s{"a":%d,"b":%d}`, []string{"contacts", "book", "search"}[w.IntN(3)], w.IntN(3), w.IntN(2))
}

func (w world) calls(most int) []string {
	list := make([]string, 1+w.IntN(most))
	for i := range list {
		list[i] = w.call()
	}
	return list
}

// expect writes made calls as expectations.
func expect(made []string) []string {
	list := make([]string, len(made))
	for i, m := range made {
		c := call(m)
		list[i] = fmt.Sprintf("{name: %s, args: %s}", c.Name, c.Input)
	}
	return list
}

var _ = Describe("the properties of tool_calls", func() {
	const rounds = 150
	random := func() world { return world{rand.New(rand.NewPCG(7, uint64(GinkgoRandomSeed())))} }

	It("scores identical input 1, duplicates included, and passes", func(ctx SpecContext) {
		w := random()
		for range rounds {
			made := w.calls(7)
			for _, mode := range modes {
				Expect(points(ctx, mode, expect(made), made)).To(Equal(1.0), "%s %v", mode, made)
			}
		}
	})

	It("does not depend on the order of unordered expectations or calls", func(ctx SpecContext) {
		w := random()
		for range rounds {
			expected, made := expect(w.calls(6)), w.calls(6)
			for _, mode := range modes[1:] {
				want := points(ctx, mode, expected, made)
				w.Shuffle(len(expected), func(i, j int) { expected[i], expected[j] = expected[j], expected[i] })
				w.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
				Expect(points(ctx, mode, expected, made)).To(Equal(want), mode)
			}
		}
	})

	It("never raises the score when an error is added", func(ctx SpecContext) {
		w := random()
		for range rounds {
			right := w.calls(6)
			expected := expect(right)
			for _, mode := range modes {
				made := slices.Clone(right)
				untouched := len(made)
				last := 1.0
				for untouched > 0 {
					at := w.IntN(untouched)
					switch w.IntN(4) {
					case 0: // a call that nobody expects
						made = slices.Insert(made, w.IntN(len(made)+1), `exec{"c":1}`)
						if i := slices.Index(made[:min(untouched+1, len(made))], `exec{"c":1}`); i >= 0 && i < untouched {
							untouched = i // what follows it is left alone
						}
					case 1: // a call not made
						if mode == "superset" { // is no error there
							untouched--
							continue
						}
						made = slices.Delete(made, at, at+1)
						untouched = at
					case 2: // an argument that nobody expects
						made[at] = strings.Replace(made[at], `"a":`, `"a":9`, 1)
						untouched = at
					case 3: // another tool
						made[at] = "exec" + made[at][strings.IndexByte(made[at], '{'):]
						untouched = at
					}
					now := points(ctx, mode, expected, made)
					Expect(now).To(BeNumerically("<=", last), "%s\nwant %v\ngot  %v", mode, expected, made)
					last = now
				}
			}
		}
	})

	It("finds the best of all pairings", func(ctx SpecContext) {
		w := random()
		for range rounds {
			expected, made := w.calls(4), w.calls(4)
			for _, mode := range modes {
				want := best(mode, expected, made)
				Expect(points(ctx, mode, expect(expected), made)).To(BeNumerically("~", want, 1e-6), "%s\nwant %v\ngot  %v", mode, expected, made)
			}
		}
	})

	It("is a pass exactly where the edit script is empty", func(ctx SpecContext) {
		w := random()
		passed := 0
		for range rounds {
			expected, made := w.calls(2), w.calls(2)
			for _, mode := range modes {
				c := toolCalls(mode, expect(expected)...)
				r := c.Run(ctx, calling(made...))
				if r.Status == eval.CheckPass {
					passed++
				}
				Expect(r.Status == eval.CheckPass).To(Equal(strings.HasPrefix(r.Reason, "all ")), r.Reason)
			}
		}
		Expect(passed).To(And(BeNumerically(">", 0), BeNumerically("<", rounds*len(modes))))
	})
})

// best tries all pairings: the definition that the check must meet.
func best(mode string, expected, made []string) float64 {
	value := func(e, m string) float64 {
		x, y := call(e), call(m)
		if x.Name != y.Name {
			return 0
		}
		var a, b map[string]int
		if json.Unmarshal([]byte(x.Input), &a) != nil || json.Unmarshal([]byte(y.Input), &b) != nil {
			panic("no JSON")
		}
		v := 0.5
		for k := range a {
			if a[k] == b[k] {
				v += 0.5 / float64(len(a))
			}
		}
		return v
	}
	var search func(e int, used []bool, last int) float64
	search = func(e int, used []bool, last int) float64 {
		if e == len(expected) {
			return 0
		}
		most := search(e+1, used, last)
		for m := range made {
			if used[m] || mode == "exact" && m <= last || value(expected[e], made[m]) == 0 {
				continue
			}
			used[m] = true
			most = max(most, value(expected[e], made[m])+search(e+1, used, m))
			used[m] = false
		}
		return most
	}
	sum := search(0, make([]bool, len(made)), -1)
	switch mode {
	case "subset":
		return sum / float64(len(expected))
	case "superset":
		return sum / float64(len(made))
	}
	return 2 * sum / float64(len(expected)+len(made))
}
