package score_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/score"
)

// replying is a case whose trace holds a reply for each list of calls. A call that ends in ! failed, one that ends in ? has no result, the others succeeded with "ok".
func replying(replies ...[]string) score.Case {
	var events []trace.Event
	add := func(e trace.Event) {
		e.N = len(events) + 1
		events = append(events, e)
	}
	for step, calls := range replies {
		parts, results := []conversation.Content{}, []conversation.Content{}
		for i, text := range calls {
			c := call(strings.TrimRight(text, "!?"))
			c.ID = fmt.Sprintf("c%d", i+1) // ids return in the next reply
			parts = append(parts, c)
			if !strings.HasSuffix(text, "?") {
				results = append(results, conversation.ToolResult{ID: c.ID, Result: `"ok"`, IsError: strings.HasSuffix(text, "!")})
			}
		}
		add(trace.Event{Kind: trace.KindReply, Step: step + 1, Reply: &trace.Reply{Message: conversation.Assistant("m", parts...)}})
		for _, r := range results {
			r := r.(conversation.ToolResult)
			name := call(strings.TrimRight(calls[int(r.ID[1]-'1')], "!?")).Name
			add(trace.Event{Kind: trace.KindTool, Step: step + 1, Tool: &trace.ToolRun{CallID: r.ID, Name: name, Outcome: trace.Executed, Result: r.Result, IsError: r.IsError}})
		}
		if len(results) > 0 {
			add(trace.Event{Kind: trace.KindResults, Step: step + 1, Results: &trace.Results{Message: conversation.ToolResults("m", results...)}})
		}
	}
	return score.Case{Trace: trace.Trace{Events: events}}
}

var _ = Describe("tool_calls with groups", func() {
	split := func(text string) (replies [][]string) {
		for reply := range strings.SplitSeq(text, " | ") {
			replies = append(replies, strings.Fields(reply))
		}
		return replies
	}
	DescribeTable("pairs, and says what differs", func(ctx SpecContext, yaml, made string, want float64, reason string) {
		c := check("tool_calls: " + yaml)
		r := c.Run(ctx, replying(split(made)...))
		Expect(float64(deref(r.Score))).To(BeNumerically("~", want, 1e-9), r.Reason)
		Expect(r.Status == eval.CheckPass).To(Equal(want == 1))
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry("groups follow one another", "{calls: [{unordered: [{name: contacts}, {name: search}]}, {name: book}]}", "search contacts book", 1.0, "all 3 calls as expected"),
		Entry("a group in the wrong place", "{calls: [{unordered: [{name: contacts}, {name: search}]}, {name: book}]}", "book search contacts", 2.0/3, "only the order differs: missing call 3: book; unexpected call 1: book{}"),
		Entry("two ordered groups", "{calls: [{ordered: [{name: contacts}, {name: book}]}, {ordered: [{name: contacts}, {name: book}]}]}", "contacts book contacts book", 1.0, ""),
		Entry("others between the groups of a subset", "{match: subset, calls: [{unordered: [{name: contacts}, {name: search}]}, {name: book}]}", "exec search exec contacts book exec", 1.0, "all 3 expected calls are among the 6 made"),
		Entry("order in a subset", "{match: subset, calls: [{ordered: [{name: search}, {name: book}]}]}", "book search", 0.5, "only the order differs: missing call 1: search"),
		Entry("groups of a superset", "{match: superset, calls: [{name: contacts}, {unordered: [{name: search}, {name: book}]}]}", "book", 1.0, "all 1 calls as expected"),
		Entry("in one reply", "{match: unordered, same_turn: true, calls: [{name: contacts}, {name: search}]}", "search contacts", 1.0, ""),
		Entry("not in one reply", "{match: unordered, same_turn: true, calls: [{name: contacts}, {name: search}]}", "search | contacts", 0.5, "only the replies that made the calls differ: missing call 1: contacts; unexpected call 2: contacts{}"),
		Entry("one after the other", "{same_turn: false, calls: [{name: contacts}, {name: search}]}", "contacts | search", 1.0, ""),
		Entry("side by side and not one after the other", "{same_turn: false, calls: [{name: contacts}, {name: search}]}", "contacts search", 0.5, "only the replies that made the calls differ: "),
		Entry("a group side by side, then another", "{calls: [{unordered: [{name: contacts}, {name: search}], same_turn: true}, {name: book}]}", "search contacts | book", 1.0, ""),
		Entry("each in its own reply, in any order", "{match: unordered, same_turn: false, calls: [{name: contacts}, {name: search}]}", "search | contacts", 1.0, ""),
		Entry("exactly twice", "{calls: [{name: search, times: 2}]}", "search search", 1.0, "all 2 calls as expected"),
		Entry("twice and once", "{calls: [{name: search, times: 2}]}", "search", 2.0/3, "missing call 1: search"),
		Entry("twice and three times", "{calls: [{name: search, times: 2}]}", "search search search", 0.8, "unexpected call 1: search{}"),
		Entry("up to three times", "{calls: [{name: search, times: {min: 1, max: 3}}, {name: book}]}", "search search book", 1.0, ""),
		Entry("at least once", "{calls: [{name: search, times: {min: 1}}, {name: book}]}", "search search search search search book", 1.0, ""),
		Entry("maybe", "{calls: [{name: contacts, times: {max: 1}}, {name: book}]}", "book", 1.0, "all 1 calls as expected"),
		Entry("at most twice, whatever else", "{match: subset, calls: [{name: search, times: {max: 2}}]}", "book search exec search", 1.0, ""),
		Entry("at most twice and three times", "{match: subset, calls: [{name: search, times: {max: 2}}]}", "search search book search", 2.0/3, "unexpected call"),
		Entry("one of several", "{calls: [{any_of: [{name: search, args: {q: x}}, {name: contacts}]}, {name: book}]}", "contacts book", 1.0, ""),
		Entry("none of several", "{calls: [{any_of: [{name: search, args: {q: x}}, {name: contacts}]}]}", `search{"q":"y"}`, 0.5, `call 1, search: /q is "y", want "x"`),
		Entry("that succeeded", "{calls: [{name: book, status: ok}]}", "book", 1.0, ""),
		Entry("that succeeded and did not", "{calls: [{name: book, status: ok}]}", "book!", 0.5, "call 1, book: failed, want ok"),
		Entry("that failed and did not", "{calls: [{name: book, status: error}]}", "book", 0.5, "call 1, book: succeeded, want error"),
		Entry("failed and then succeeded", "{calls: [{name: book, status: error}, {name: book, status: ok}]}", "book! | book", 1.0, ""),
		Entry("without a result", "{calls: [{name: book, status: ok}, {name: search}]}", "book? search", 0.75, "call 1, book: has no result, want ok"),
		Entry("arguments and status", "{calls: [{name: book, args: {a: 1}, status: ok}]}", `book{"a":1}!`, 0.75, "failed, want ok"),
	)

	It("is unjudged where the outcome is asked for and the trace tells none", func(ctx SpecContext) {
		c := check("tool_calls: {calls: [{name: book, status: ok}]}")
		r := c.Run(ctx, replying([]string{"book?"}))
		Expect(r.Status).To(Equal(eval.CheckUnjudged))
		Expect(r.Reason).To(ContainSubstring("nobody knows what came of book"))
		Expect(c.Run(ctx, replying([]string{"exec?"})).Status).To(Equal(eval.CheckFail), "no call that is asked about")
	})

	It("gives an edit script, where it fails", func(ctx SpecContext) {
		c := check("tool_calls: {calls: [{name: contacts, args: {a: 1}}, {name: search}, {name: book}]}")
		r := c.Run(ctx, replying([]string{`contacts{"a":2}`, "exec", "book"}))
		Expect(r.Edits).To(Equal([]string{`~ 1 contacts{"a":2}: /a is 2, want 1`, `+ 2 exec{}`, "- 2: search", "= 3 book{}"}))
		Expect(c.Run(ctx, replying([]string{`contacts{"a":1}`, "search", "book"})).Edits).To(BeNil())

		c = check("tool_calls: {match: subset, calls: [{name: book}]}")
		Expect(c.Run(ctx, replying([]string{"exec"})).Edits).To(Equal([]string{"  1 exec{}", "- 1: book"}))

		many := make([]string, 300)
		for i := range many {
			many[i] = fmt.Sprintf(`exec{"a":%q}`, strings.Repeat("é", 900))
		}
		r = c.Run(ctx, replying(many))
		Expect(r.Edits).To(HaveLen(101))
		Expect(r.Edits[100]).To(Equal("and 201 more"))
		for _, e := range r.Edits {
			Expect(len([]rune(e))).To(BeNumerically("<=", 500))
		}
	})

	DescribeTable("matchers of arguments", func(ctx SpecContext, args, made string, differs string) {
		c := check("tool_calls: {calls: [{name: book, args: " + args + "}]}")
		r := c.Run(ctx, calling("book"+made))
		if differs == "" {
			Expect(r.Status).To(Equal(eval.CheckPass), r.Reason)
			return
		}
		Expect(r.Status).To(Equal(eval.CheckFail))
		Expect(r.Reason).To(ContainSubstring(differs))
	},
		Entry(nil, "{a: {$one_of: [x, {$regex: '^y'}]}}", `{"a":"yes"}`, ""),
		Entry(nil, "{a: {$one_of: [x, 1]}}", `{"a":1.0}`, ""),
		Entry(nil, "{a: {$one_of: [x, 1]}}", `{"a":2}`, `/a is 2, want one of ["x",1]`),
		Entry(nil, "{$one_of: [{a: 1}, {b: 1}]}", `{"b":1,"c":5}`, ""),
		Entry(nil, "{a: {$one_of: [{b: 1}]}}", `{"a":{"b":1,"c":5}}`, "want one of"),
		Entry(nil, "{$equal: {a: 1}, $ignore: [id, 'x_*']}", `{"a":1,"id":"7","x_1":0}`, ""),
		Entry(nil, "{$equal: {a: 1}, $ignore: [id, 'x_*']}", `{"a":1,"y_1":0}`, "/y_1 is not expected"),
		Entry(nil, "{$equal: {a: 1}, $defaults: {limit: 10}}", `{"a":1,"limit":10.0}`, ""),
		Entry(nil, "{$equal: {a: 1}, $defaults: {limit: 10}}", `{"a":1,"limit":11}`, "/limit is not expected"),
		Entry(nil, "{$equal: {a: 1, limit: 10}, $defaults: {limit: 10}}", `{"a":1}`, ""),
		Entry(nil, "{$equal: {a: 1, limit: 9}, $defaults: {limit: 10}}", `{"a":1}`, "/limit is 10, want 9"),
		Entry(nil, "{$partial: {limit: 10}, $defaults: {limit: 10}}", `{"a":1}`, ""),
		Entry(nil, "{o: {$equal: {a: 1}, $ignore: [id], $defaults: {n: 0}}}", `{"o":{"a":1,"id":2,"n":0}}`, ""),
		Entry(nil, "{a: {$schema: {type: string, minLength: 2}}}", `{"a":"xy"}`, ""),
		Entry(nil, "{a: {$schema: {type: string, minLength: 2}}}", `{"a":"x"}`, "/a is \"x\" and does not satisfy the schema"),
		Entry(nil, "{a: {$text: {value: paris, ignore_case: true}}}", `{"a":"PARIS"}`, ""),
		Entry(nil, "{a: {$text: {value: paris}}}", `{"a":"PARIS"}`, "only the case differs"),
		Entry(nil, "{a: \"caf\u00e9\"}", `{"a":"cafe`+"\u0301"+`"}`, "only Unicode normalisation differs ({$text: {value: ..., unicode: nfc}} ignores it)"),
		Entry(nil, "{a: {$text: {value: \"caf\u00e9\", unicode: nfc}}}", `{"a":"cafe`+"\u0301"+`"}`, ""),
		Entry(nil, "{a: {$date: 2026-01-05}}", `{"a":"5 January 2026"}`, ""),
		Entry(nil, "{a: {$date: '2026-01-05'}}", `{"a":"2026-01-05T23:59:00-08:00"}`, ""),
		Entry(nil, "{a: {$date: '2026-01-05'}}", `{"a":"2026-01-06T01:00:00Z"}`, "want the date"),
		Entry(nil, "{a: {$date: '2026-01-05T10:00:00+01:00'}}", `{"a":"2026-01-05T09:00:00Z"}`, ""),
		Entry(nil, "{a: {$date: '2026-01-05T10:00:00+01:00'}}", `{"a":"Mon, 05 Jan 2026 09:00:00 GMT"}`, ""),
		Entry(nil, "{a: {$date: '2026-01-05T10:00:00+01:00'}}", `{"a":"2026-01-05T10:00:00"}`, "it names no zone"),
		Entry(nil, "{a: {$date: '2026-01-05T10:00:00+01:00'}}", `{"a":"2026-01-05"}`, "it has no time of day"),
		Entry(nil, "{a: {$date: '2026-01-05 10:00'}}", `{"a":"2026-01-05T10:00:00+09:00"}`, ""),
		Entry(nil, "{a: {$date: {value: '2026-01-05T10:00:00Z', within: 1m}}}", `{"a":"2026-01-05T10:00:59Z"}`, ""),
		Entry(nil, "{a: {$date: {value: '2026-01-05T10:00:00Z', within: 1m}}}", `{"a":"2026-01-05T10:01:01Z"}`, "give or take 1m0s"),
		Entry(nil, "{a: {$date: '2026-01-05'}}", `{"a":"01/05/2026"}`, "no date or time that can be read one way only"),
		Entry(nil, "{a: {$date: '2026-01-05'}}", `{"a":20260105}`, "want the date"),
		Entry(nil, "{a: {$date: '2026-01-05'}}", `{"a":"2026-02-30"}`, "no date or time"),
	)

	DescribeTable("says what is wrong with it", func(yaml, want string) {
		Expect(problems("- tool_calls: " + yaml)).To(ContainSubstring(want))
	},
		Entry(nil, "{calls: [{ordered: []}]}", "the group is empty"),
		Entry(nil, "{calls: [{ordered: [{name: book}], unordered: [{name: book}]}]}", "d.yaml:1:50: tool_calls.calls[0]: a group is ordered or unordered, not both"),
		Entry(nil, "{calls: [{ordered: [{unordered: [{name: book}]}]}]}", "a group within a group"),
		Entry(nil, "{calls: [{orderd: [{name: book}]}]}", `unknown key "orderd"`),
		Entry(nil, "{match: unordered, calls: [{ordered: [{name: book}]}]}", "match: unordered knows no groups"),
		Entry(nil, "{same_turn: true, calls: [{ordered: [{name: book}]}]}", "put it into the groups that it is for"),
		Entry(nil, "{same_turn: yes, calls: [{name: book}]}", "want true or false"),
		Entry(nil, "{calls: [{name: book, times: 0}]}", "want a number from 1 to 1000"),
		Entry(nil, "{calls: [{name: book, times: 2.5}]}", "want a whole number"),
		Entry(nil, "{calls: [{name: book, times: {}}]}", "neither min nor max"),
		Entry(nil, "{calls: [{name: book, times: {max: 0}}]}", "to expect none, use no_tool_calls"),
		Entry(nil, "{calls: [{name: book, times: {min: 3, max: 2}}]}", "min is above max"),
		Entry(nil, "{calls: [{name: book, times: {mn: 3}}]}", `unknown key "mn"`),
		Entry(nil, "{calls: [{name: book, status: failed}]}", `unknown value "failed"`),
		Entry(nil, "{calls: [{any_of: [{name: book}]}]}", "want several calls"),
		Entry(nil, "{calls: [{any_of: [{name: book}, {name: boko}]}]}", `the agent has no tool "boko"`),
		Entry(nil, "{calls: [{any_of: [{name: book, times: 2}, {name: exec}]}]}", "times stands within any_of"),
		Entry(nil, "{calls: [{name: book, args: {a: {$one_of: []}}}]}", "want a list of at least one value"),
		Entry(nil, "{calls: [{name: book, args: {a: {$date: 5 Foo 2026}}}]}", "no date or time that can be read one way only"),
		Entry(nil, "{calls: [{name: book, args: {a: {$date: {valu: x}}}}]}", `unknown key "valu"`),
		Entry(nil, "{calls: [{name: book, args: {a: {$date: {value: 2026-01-05, within: 5}}}}]}", "write the unit"),
		Entry(nil, "{calls: [{name: book, args: {a: {$schema: {typ: string}}}}]}", `JSON Schema has no keyword "typ"`),
		Entry(nil, "{calls: [{name: book, args: {a: {$text: {value: x, ignorecase: true}}}}]}", `unknown key "ignorecase"`),
		Entry(nil, "{calls: [{name: book, args: {$equal: {a: 1}, $ignore: []}}]}", "the list is empty"),
		Entry(nil, "{calls: [{name: book, args: {$equal: {a: 1}, $ignore: [a]}}]}", `"a" is expected and ignored`),
		Entry(nil, "{calls: [{name: book, args: {$equal: {a: 1}, $ignore: ['[']}}]}", `bad pattern "["`),
		Entry(nil, "{calls: [{name: book, args: {$ignore: [a]}}]}", "stands without $equal or $partial"),
		Entry(nil, "{calls: [{name: book, args: {a: {$equal: 1, $ignore: [a]}}}]}", "want a mapping"),
		Entry(nil, "{calls: [{name: book, args: {$equal: {a: 1}, $defaults: 5}}]}", "want a mapping of at least one key"),
		Entry(nil, "{calls: [{name: book, args: {$equal: {a: 1}, b: 1}}]}", "matcher $equal stands beside other keys"),
		Entry(nil, "{calls: [{name: book, args: {$equal: {a: 1}, $partial: {b: 1}}}]}", "stands beside other keys"),
	)
})

// piece is a group of a random expectation.
type piece struct {
	ordered bool
	turns   int // 0: any, 1: one reply, 2: each its own
	calls   []string
}

func (p piece) yaml() string {
	key := "unordered"
	if p.ordered {
		key = "ordered"
	}
	return fmt.Sprintf("{%s: [%s]%s}", key, strings.Join(expect(p.calls), ", "), []string{"", ", same_turn: true", ", same_turn: false"}[p.turns])
}

func (w world) pieces(most int) []piece {
	list := make([]piece, 1+w.IntN(most))
	for i := range list {
		list[i] = piece{ordered: w.IntN(2) == 0, turns: w.IntN(3), calls: w.calls(3)}
	}
	return list
}

// replies spreads calls over replies.
func (w world) replies(calls []string) (out [][]string) {
	for i, c := range calls {
		if i == 0 || w.IntN(2) == 0 {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

func grouped(mode string, pieces []piece) score.Check {
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = p.yaml()
	}
	return check(fmt.Sprintf("tool_calls: {match: %s, calls: [%s]}", mode, strings.Join(texts, ", ")))
}

// fit is the worth of a pair, by its definition.
func fit(e, m string) float64 {
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

// bestGrouped tries all cuts and all pairings.
func bestGrouped(mode string, pieces []piece, replies [][]string) float64 {
	var made []string
	var of []int
	for r, calls := range replies {
		for _, c := range calls {
			made, of = append(made, c), append(of, r)
		}
	}
	// pairings gives the highest sum of a piece over made[from:to].
	pairings := func(p piece, from, to int) float64 {
		var search func(e int, used map[int]bool, last int) float64
		search = func(e int, used map[int]bool, last int) float64 {
			if e == len(p.calls) {
				return 0
			}
			most := search(e+1, used, last)
			for m := from; m < to; m++ {
				if used[m] || p.ordered && m <= last || fit(p.calls[e], made[m]) == 0 {
					continue
				}
				right := true
				for other := range used {
					right = right && (p.turns == 0 || (of[other] == of[m]) == (p.turns == 1))
				}
				if right {
					next := maps.Clone(used)
					next[m] = true
					most = max(most, fit(p.calls[e], made[m])+search(e+1, next, m))
				}
			}
			return most
		}
		return search(0, map[int]bool{}, -1)
	}
	var cuts func(g, from int) float64
	cuts = func(g, from int) float64 {
		if g == len(pieces) {
			return 0
		}
		most := 0.0
		for to := from; to <= len(made); to++ {
			most = max(most, pairings(pieces[g], from, to)+cuts(g+1, to))
		}
		return most
	}
	expected := 0
	for _, p := range pieces {
		expected += len(p.calls)
	}
	switch sum := cuts(0, 0); mode {
	case "subset":
		return sum / float64(expected)
	case "superset":
		return sum / float64(len(made))
	default:
		return 2 * sum / float64(expected+len(made))
	}
}

var _ = Describe("the properties of tool_calls with groups", func() {
	const rounds = 120
	random := func() world { return world{rand.New(rand.NewPCG(11, uint64(GinkgoRandomSeed())))} }
	groupModes := []string{"exact", "subset", "superset"}
	of := func(ctx context.Context, c score.Check, replies [][]string) float64 {
		GinkgoHelper()
		v, err := c.Score(ctx, replying(replies...))
		Expect(err).NotTo(HaveOccurred())
		return v.Score
	}

	It("finds the best of all cuts and pairings", func(ctx SpecContext) {
		w := random()
		between := 0
		for range rounds {
			pieces, replies := w.pieces(3), w.replies(w.calls(5))
			for _, mode := range groupModes {
				want := bestGrouped(mode, pieces, replies)
				Expect(of(ctx, grouped(mode, pieces), replies)).To(BeNumerically("~", want, 1e-6), "%s\nwant %v\ngot  %v", mode, pieces, replies)
				if want > 0 && want < 1 {
					between++
				}
			}
		}
		Expect(between).To(BeNumerically(">", rounds), "nearly all cases were trivial")
	})

	It("scores identical input 1, duplicates included, and unordered means unordered", func(ctx SpecContext) {
		w := random()
		for range rounds {
			pieces := w.pieces(4)
			var replies [][]string
			for g, p := range pieces {
				calls := slices.Clone(p.calls)
				if !p.ordered {
					w.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
				}
				switch p.turns {
				case 0:
					replies = append(replies, w.replies(calls)...)
				case 1:
					replies = append(replies, calls)
				case 2:
					for _, c := range calls {
						replies = append(replies, []string{c})
					}
				}
				if !p.ordered { // nor does the order of the expectations matter
					pieces[g].calls = slices.Clone(p.calls)
					w.Shuffle(len(p.calls), func(i, j int) {
						pieces[g].calls[i], pieces[g].calls[j] = pieces[g].calls[j], pieces[g].calls[i]
					})
				}
			}
			for _, mode := range groupModes {
				Expect(of(ctx, grouped(mode, pieces), replies)).To(Equal(1.0), "%s %v %v", mode, pieces, replies)
			}
		}
	})

	It("never raises the score when an error is added", func(ctx SpecContext) {
		w := random()
		fell := 0
		for range rounds {
			pieces := w.pieces(3)
			for g := range pieces {
				pieces[g].turns = 0
			}
			var made []string
			for _, p := range pieces {
				made = append(made, p.calls...)
			}
			c := grouped("exact", pieces)
			last := 1.0
			for untouched := len(made); untouched > 0; {
				at := w.IntN(untouched)
				switch w.IntN(3) {
				case 0:
					made = slices.Insert(made, at, `exec{"c":1}`)
				case 1:
					made = slices.Delete(made, at, at+1)
				case 2:
					made[at] = strings.Replace(made[at], `"a":`, `"a":9`, 1)
				}
				untouched = at
				now := of(ctx, c, [][]string{made})
				Expect(now).To(BeNumerically("<=", last), "want %v\ngot  %v", pieces, made)
				if now < last {
					fell++
				}
				last = now
			}
		}
		Expect(fell).To(BeNumerically(">", rounds))
	})

	It("keeps count: one more or one less than allowed is never better", func(ctx SpecContext) {
		w := random()
		for range rounds {
			least, more := 1+w.IntN(3), w.IntN(3)
			c := check(fmt.Sprintf("tool_calls: {match: %s, calls: [{name: book}, {name: search, times: {min: %d, max: %d}}]}", groupModes[w.IntN(2)], least, least+more))
			last := 0.0
			for n := range least + more + 3 {
				made := append([]string{"book"}, slices.Repeat([]string{"search"}, n)...)
				now := of(ctx, c, [][]string{made})
				switch {
				case n < least:
					Expect(now).To(And(BeNumerically(">", last), BeNumerically("<", 1)))
				case n <= least+more:
					Expect(now).To(Equal(1.0))
				default:
					Expect(now).To(BeNumerically("<", last))
				}
				last = now
			}
		}
	})

	It("is a pass exactly where the edit script changes nothing", func(ctx SpecContext) {
		w := random()
		passed := 0
		for range rounds {
			pieces, replies := w.pieces(2), w.replies(w.calls(3))
			if w.IntN(3) == 0 {
				replies = nil
				for i := range pieces {
					pieces[i].turns = 0
					replies = append(replies, pieces[i].calls)
				}
			}
			for _, mode := range groupModes {
				c := grouped(mode, pieces)
				r := c.Run(ctx, replying(replies...))
				if r.Status == eval.CheckPass {
					passed++
				}
				changes := slices.ContainsFunc(r.Edits, func(e string) bool { return strings.ContainsAny(e[:1], "-+~") })
				Expect(changes).To(Equal(r.Status == eval.CheckFail), "%s %v: %v", r.Reason, replies, r.Edits)
			}
		}
		Expect(passed).To(And(BeNumerically(">", 0), BeNumerically("<", 3*rounds)))
	})
})

// BenchmarkTrajectory compares 50 calls with 50 expected ones, in one group and in ten.
func BenchmarkTrajectory(b *testing.B) {
	w := world{rand.New(rand.NewPCG(3, 4))}
	calls := make([]string, 50)
	for i := range calls {
		calls[i] = w.call()
	}
	made := slices.Clone(calls)
	w.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	for _, groups := range []int{1, 10} {
		for _, ordered := range []bool{true, false} {
			var pieces []piece
			for part := range slices.Chunk(calls, len(calls)/groups) {
				pieces = append(pieces, piece{ordered: ordered, calls: part})
			}
			c := grouped("exact", pieces)
			in := replying(w.replies(made)...)
			name := "unordered"
			if ordered {
				name = "ordered"
			}
			b.Run(fmt.Sprintf("%s/%d", name, groups), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Score(context.Background(), in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
