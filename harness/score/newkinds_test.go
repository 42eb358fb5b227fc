package score_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/score"
)

// yamlNode reads a value.
func yamlNode(text string) strict.Node {
	n, err := strict.Parse("v.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return n
}

var _ = Describe("a check of equal JSON", func() {
	DescribeTable("compares", func(ctx SpecContext, yaml, output string, want eval.CheckStatus, reason string) {
		r := on(ctx, "json_equal: "+yaml, output)
		Expect(r.Status).To(Equal(want), r.Reason)
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry(nil, "{value: {a: 1, b: [x, null]}}", `{"b":["x",null],"a":1.0}`, eval.CheckPass, "equal"),
		Entry(nil, "{value: {a: 1}}", `{"a":2}`, eval.CheckFail, "$['a'] is 2, want 1"),
		Entry(nil, "{value: {a: 1}}", `{"a":1,"b":2}`, eval.CheckFail, "$['b'] is 2 and not expected"),
		Entry(nil, "{value: {a: 1, b: 2}}", `{"a":1}`, eval.CheckFail, "$['b'] is missing, want 2"),
		Entry(nil, "{value: [1, 2]}", `[1]`, eval.CheckFail, "$[1] is missing, want 2"),
		Entry(nil, "{value: [1, 2]}", `[2, 1]`, eval.CheckFail, "$[0] is 2, want 1; $[1] is 1, want 2"),
		Entry(nil, "{value: {rows: [{id: 1, n: a}]}, ignore: ['$.rows[*].id']}", `{"rows":[{"id":99,"n":"a"}]}`, eval.CheckPass, ""),
		Entry(nil, "{value: {rows: [{n: a}]}, ignore: ['$..id']}", `{"rows":[{"id":99,"n":"a"}],"id":{"x":1}}`, eval.CheckPass, ""),
		Entry(nil, "{value: {rows: [{id: 1, n: a}]}, ignore: ['$.rows[*].id']}", `{"rows":[{"id":99,"n":"b"}]}`, eval.CheckFail, "$['rows'][0]['n'] is"),
		Entry(nil, "{value: {a: 1}, fence: true}", "```json\n{\"a\":1}\n```", eval.CheckPass, ""),
		Entry(nil, "{value: {a: 9007199254740993}}", `{"a":9007199254740992}`, eval.CheckFail, "9007199254740992"),
		Entry(nil, "{value: {a: \"caf\u00e9\"}}", `{"a":"cafe`+"\u0301"+`"}`, eval.CheckFail, "only Unicode normalisation differs ({unicode: nfc} ignores it)"),
		Entry(nil, "{value: {a: \"caf\u00e9\"}, unicode: nfc}", `{"a":"cafe`+"\u0301"+`"}`, eval.CheckPass, ""),
		Entry(nil, "{value: {a: \"caf\u00e9\"}}", `{"a":"coffee"}`, eval.CheckFail, "want"),
		Entry(nil, "{value: null}", `null`, eval.CheckPass, ""),
		Entry(nil, "{value: {a: 1}}", `{"a":`, eval.CheckFail, "ends too early"),
		Entry(nil, "{value: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1}}", `{}`, eval.CheckFail, "and 2 more differences"),
	)

	It("fails, negated or not, where there is no JSON", func(ctx SpecContext) {
		Expect(on(ctx, "not: {json_equal: {value: 1}}", "one").Status).To(Equal(eval.CheckFail))
		Expect(on(ctx, "not: {json_equal: {value: 1}}", "2").Status).To(Equal(eval.CheckPass))
	})

	It("takes itself for equal, in any order of keys, and nothing that one change was made to", func(ctx SpecContext) {
		r := rand.New(rand.NewPCG(8, uint64(GinkgoRandomSeed())))
		var value func(depth int) string
		value = func(depth int) string {
			switch n := r.IntN(5); {
			case depth == 0 || n < 2:
				return fmt.Sprint(r.IntN(9))
			case n == 2:
				return fmt.Sprintf("%q", strings.Repeat("x", r.IntN(3)))
			case n == 3:
				return fmt.Sprintf("[%s, %s]", value(depth-1), value(depth-1))
			default:
				return fmt.Sprintf(`{"a": %s, "b": %s}`, value(depth-1), value(depth-1))
			}
		}
		for range 100 {
			a, b := value(3), value(3)
			c := check("json_equal: {value: " + fmt.Sprintf(`{"p": %s, "q": %s}`, a, b) + "}")
			Expect(c.Run(ctx, score.Case{Output: fmt.Sprintf(`{"q": %s, "p": %s}`, b, a)}).Status).To(Equal(eval.CheckPass))
			Expect(c.Run(ctx, score.Case{Output: fmt.Sprintf(`{"q": %s, "p": [%s, 77]}`, b, a)}).Status).To(Equal(eval.CheckFail))
		}
	})
})

// returning is a case whose calls returned what is given, name by name.
func returning(pairs ...string) score.Case {
	var calls []string
	for i := 0; i < len(pairs); i += 2 {
		calls = append(calls, pairs[i])
	}
	in := replying(calls)
	at := 0
	for i, e := range in.Trace.Events {
		if e.Tool != nil {
			in.Trace.Events[i].Tool.Result = conversation.JSON(pairs[2*at+1])
			at++
		}
	}
	return in
}

var _ = Describe("a check of what a tool returned", func() {
	DescribeTable("tests it", func(ctx SpecContext, yaml string, in score.Case, want eval.CheckStatus, reason string) {
		c := check("tool_result: " + yaml)
		r := c.Run(ctx, in)
		Expect(r.Status).To(Equal(want), r.Reason)
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry(nil, "{name: search, status: ok}", returning("search", `"a"`), eval.CheckPass, "call 1, search: as expected"),
		Entry(nil, "{name: search, status: ok}", replying([]string{"search!"}), eval.CheckFail, "it ended error, want ok"),
		Entry(nil, "{name: search, status: error}", replying([]string{"search!"}), eval.CheckPass, ""),
		Entry(nil, "{name: search, contains: Ana}", returning("search", `"Ana, 112"`), eval.CheckPass, ""),
		Entry(nil, "{name: search, contains: Eva}", returning("search", `"Ana, 112"`), eval.CheckFail, "does not contain"),
		Entry(nil, "{name: search, path: '$.rows[*].name', equals: Ana}", returning("search", `{"rows":[{"name":"Ana"}]}`), eval.CheckPass, ""),
		Entry(nil, "{name: search, path: $.rows, count: 1, equals: []}", returning("search", `{"rows":[]}`), eval.CheckPass, ""),
		Entry(nil, "{name: search, path: '$.rows[*]', exists: false}", returning("search", `{"rows":[]}`), eval.CheckPass, ""),
		Entry(nil, "{name: search, contains: a}", returning("search", `"a"`, "search", `"b"`), eval.CheckFail, "call 2, search"),
		Entry(nil, "{name: search, contains: a, take: any}", returning("search", `"b"`, "search", `"a"`), eval.CheckPass, "call 2"),
		Entry(nil, "{name: search, contains: a, take: any}", returning("search", `"b"`, "search", `"c"`), eval.CheckFail, "call 2"),
		Entry(nil, "{name: search, contains: a, take: first}", returning("search", `"a"`, "search", `"b"`), eval.CheckPass, "call 1"),
		Entry(nil, "{name: search, contains: b, take: last}", returning("search", `"a"`, "search", `"b"`), eval.CheckPass, "call 2"),
		Entry(nil, "{name: search, args: {q: x}, contains: a}", returning(`search{"q":"x"}`, `"a"`, `search{"q":"y"}`, `"b"`), eval.CheckPass, "call 1"),
		Entry(nil, "{name: search, contains: a}", returning("book", `"a"`), eval.CheckFail, "search was not called"),
		Entry(nil, "{name: search, args: {q: z}, contains: a}", returning(`search{"q":"x"}`, `"a"`), eval.CheckFail, "with these arguments"),
		Entry(nil, "{name: search, contains: a}", replying([]string{"search?", "book"}), eval.CheckFail, "it has no result"),
		Entry(nil, "{name: search, contains: a}", replying([]string{"search?"}), eval.CheckUnjudged, "nobody knows what search returned"),
		Entry(nil, "{name: search, contains: a}", score.Case{}, eval.CheckUnjudged, "no reply of a model"),
		Entry(nil, "{name: search, contains: raw}", returning("search", "raw text, no JSON"), eval.CheckPass, ""),
	)

	It("fails, negated or not, where the tool was not called", func(ctx SpecContext) {
		c := check("not: {tool_result: {name: search, contains: a}}")
		Expect(c.Run(ctx, returning("book", `"a"`)).Status).To(Equal(eval.CheckFail))
		Expect(c.Run(ctx, returning("search", `"b"`)).Status).To(Equal(eval.CheckPass))
	})
})

var _ = Describe("a check of steps", func() {
	It("counts replies", func(ctx SpecContext) {
		in := replying([]string{"search"}, []string{"book"}, nil)
		for yaml, want := range map[string]eval.CheckStatus{"{max: 3}": eval.CheckPass, "{max: 2}": eval.CheckFail, "{min: 4}": eval.CheckFail, "{min: 3, max: 3}": eval.CheckPass} {
			c := check("steps: " + yaml)
			Expect(c.Run(ctx, in).Status).To(Equal(want), yaml)
			Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged))
		}
	})
})

// files is a workspace as before and after a run.
func files(before, after map[string]string) score.Case {
	of := func(files map[string]string) fs.FS {
		m := fstest.MapFS{}
		for name, text := range files {
			m[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return m
	}
	return score.Case{Workspace: func() (fs.FS, fs.FS, error) { return of(before), of(after), nil }}
}

var _ = Describe("a check of the final state", func() {
	before := map[string]string{"notes.txt": "old", "keep/a.txt": "a", "gone.txt": "x"}
	after := map[string]string{"notes.txt": "all done\n", "keep/a.txt": "a", "report.json": `{"total": 3, "id": "z"}`, "bin": "\xff\xfe"}
	DescribeTable("looks at files", func(ctx SpecContext, yaml string, want float64, reason string) {
		c := check("final_state: " + yaml)
		r := c.Run(ctx, files(before, after))
		Expect(r.Status).NotTo(Equal(eval.CheckUnjudged), r.Reason)
		Expect(float64(deref(r.Score))).To(BeNumerically("~", want, 1e-6), r.Reason)
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry(nil, `{files: {notes.txt: "all done\n"}}`, 1.0, "all 1 as expected"),
		Entry(nil, "{files: {notes.txt: all done}}", 0.0, `notes.txt differs at character 9`),
		Entry(nil, "{files: {notes.txt: {contains: done}}}", 1.0, ""),
		Entry(nil, "{files: {notes.txt: {contains: undone}}}", 0.0, "does not hold"),
		Entry(nil, "{files: {notes.txt: {matches: '^all'}}}", 1.0, ""),
		Entry(nil, "{files: {notes.txt: {matches: 'x$'}}}", 0.0, "does not match"),
		Entry(nil, "{files: {report.json: {json: {$partial: {total: 3}}}}}", 1.0, ""),
		Entry(nil, "{files: {report.json: {json: {total: 3}}}}", 0.0, "/id is not expected"),
		Entry(nil, "{files: {notes.txt: {json: {total: 3}}}}", 0.0, "is no JSON"),
		Entry(nil, "{files: {gone.txt: {exists: false}, report.json: {exists: true}}}", 1.0, "all 2 as expected"),
		Entry(nil, "{files: {gone.txt: {exists: true}, report.json: {exists: false}}}", 0.0, "gone.txt does not exist; report.json exists"),
		Entry(nil, "{files: {keep/a.txt: {unchanged: true}}}", 1.0, ""),
		Entry(nil, "{files: {notes.txt: {unchanged: true}, keep/a.txt: {unchanged: false}, gone.txt: {unchanged: true}, report.json: {unchanged: true}}}", 0.0, "notes.txt was changed; keep/a.txt is as before; gone.txt was removed; report.json was made"),
		Entry(nil, "{files: {missing.txt: {contains: x}, notes.txt: {contains: done}}}", 0.5, "missing.txt does not exist"),
		Entry(nil, "{files: {bin: {contains: x}}}", 0.0, "is no text in UTF-8"),
		Entry(nil, "{others: unchanged}", 0.0, "bin was made; gone.txt was removed; notes.txt was changed; report.json was made"),
		Entry(nil, "{files: {bin: {exists: true}, gone.txt: {exists: false}, notes.txt: {contains: done}, report.json: {exists: true}}, others: unchanged}", 1.0, "all 5"),
	)

	It("says that only Unicode normalisation differs", func(ctx SpecContext) {
		c := check("final_state: {files: {a: \"caf\u00e9\"}}")
		Expect(c.Run(ctx, files(nil, map[string]string{"a": "cafe\u0301"})).Reason).To(ContainSubstring("only Unicode normalisation differs"))
	})

	It("is unjudged where nobody can look", func(ctx SpecContext) {
		c := check("final_state: {files: {a: x}}")
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged))
		failing := score.Case{Workspace: func() (fs.FS, fs.FS, error) { return nil, nil, errors.New("no disk") }}
		Expect(c.Run(ctx, failing).Reason).To(Equal("no disk"))
		pipe := fstest.MapFS{"a": &fstest.MapFile{Mode: fs.ModeNamedPipe}}
		r := c.Run(ctx, score.Case{Workspace: func() (fs.FS, fs.FS, error) { return pipe, pipe, nil }})
		Expect(r.Status).To(Equal(eval.CheckUnjudged))
		Expect(r.Reason).To(Equal("a is no regular file"))
	})

	It("never scores more with one more file wrong", func(ctx SpecContext) {
		expected := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
		c := check("final_state: {files: {a: '1', b: '2', c: '3', d: '4'}, others: unchanged}")
		last := 2.0
		now := map[string]string{}
		for k, v := range expected {
			now[k] = v
		}
		for _, step := range []func(){func() {}, func() { now["b"] = "x" }, func() { delete(now, "a") }, func() { now["new"] = "y" }, func() { now["d"] = "" }, func() { now["new2"] = "" }} {
			step()
			r := c.Run(ctx, files(nil, now))
			score := float64(deref(r.Score))
			Expect(score).To(BeNumerically("<=", last))
			last = score
		}
		Expect(last).To(BeNumerically("<", 0.5))
	})
})

var _ = Describe("a check in CEL", func() {
	in := replying([]string{`search{"q":"x","n":3}`}, []string{"book!"})
	in.Output, in.Expected = "Call 112 now", yamlNode("{number: '112'}")
	in.Item = score.Item{Vars: yamlNode("{limit: 20}"), Metadata: yamlNode("{lang: en}")}
	in.Trace.Events = append(in.Trace.Events, trace.Event{Kind: trace.KindEnd, End: &trace.End{Stop: "end"}})
	quoted := func(expression string) string { return fmt.Sprintf("cel: %q", expression) }
	DescribeTable("holds or not", func(ctx SpecContext, expression string, want eval.CheckStatus) {
		c := check(quoted(expression))
		r := c.Run(ctx, in)
		Expect(r.Status).To(Equal(want), r.Reason)
		if want != eval.CheckUnjudged && !strings.Contains(r.Reason, "no value") {
			c.Not = true
			Expect(c.Run(ctx, in).Status == eval.CheckPass).To(Equal(want == eval.CheckFail))
		}
	},
		Entry(nil, "answer.contains(expected.number)", eval.CheckPass),
		Entry(nil, "answer.size() < vars.limit && metadata.lang == 'en'", eval.CheckPass),
		Entry(nil, "answer.size() > vars.limit", eval.CheckFail),
		Entry(nil, "trace.calls.exists(c, c.name == 'search' && c.args.n > 2.5 && c.status == 'ok')", eval.CheckPass),
		Entry(nil, "trace.calls.all(c, c.status == 'ok')", eval.CheckFail),
		Entry(nil, "trace.calls[1].status == 'error' && trace.calls[1].step == 2 && trace.calls[0].result == 'ok'", eval.CheckPass),
		Entry(nil, "trace.steps == 2 && trace.stop == 'end'", eval.CheckPass),
		Entry(nil, "vars.limit", eval.CheckUnjudged),
	)

	It("is a score where its type is double", func(ctx SpecContext) {
		c := check("{" + quoted("trace.calls.size() > 0 ? 0.75 : 0.0") + ", threshold: 0.7}")
		r := c.Run(ctx, in)
		Expect(r.Status).To(Equal(eval.CheckPass))
		Expect(float64(deref(r.Score))).To(Equal(0.75))
		c = check("{" + quoted("double(trace.calls.size())") + ", threshold: 0.7}")
		Expect(c.Run(ctx, in).Status).To(Equal(eval.CheckUnjudged), "2 is no score")
	})

	It("fails, negated or not, where what it asks for is not there", func(ctx SpecContext) {
		for _, expression := range []string{"trace.calls[5].name == 'x'", "expected.missing == 1"} {
			for _, not := range []string{"", "not: "} {
				yaml := quoted(expression)
				if not != "" {
					yaml = "not: {" + yaml + "}"
				}
				r := on2(ctx, yaml, in)
				Expect(r.Status).To(Equal(eval.CheckFail), yaml)
				Expect(r.Reason).To(ContainSubstring("no value here"))
			}
		}
	})

	It("is stopped where it takes too long", func(ctx SpecContext) {
		long := in
		long.Output = strings.Repeat("a ", 5000)
		c := check(quoted("[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, answer.size() + a + b + c + d + e > 0)))))"))
		began := c.Run(ctx, long)
		Expect(began.Status).To(Equal(eval.CheckUnjudged), began.Reason)
	})
})

func on2(ctx context.Context, yaml string, in score.Case) eval.CheckResult {
	c := check(yaml)
	return c.Run(ctx, in)
}

var _ = Describe("checks of checks", func() {
	DescribeTable("join verdicts", func(ctx SpecContext, yaml, output string, want float64, reason string) {
		r := on(ctx, yaml, output)
		Expect(float64(deref(r.Score))).To(BeNumerically("~", want, 1e-6), r.Reason)
		Expect(r.Status == eval.CheckPass).To(Equal(want == 1))
		Expect(r.Reason).To(ContainSubstring(reason))
	},
		Entry(nil, "all: [{contains: a}, {contains: b}]", "ab", 1.0, "1, contains: found"),
		Entry(nil, "all: [{contains: a}, {contains: b}]", "a", 0.5, "2, contains: not found"),
		Entry(nil, "any: [{contains: a}, {contains: b}]", "b", 1.0, "2, contains: found"),
		Entry(nil, "any: [{contains: a}, {contains: b}]", "c", 0.0, "1, contains: not found; 2, contains: not found"),
		Entry(nil, "any: [{contains: a}, {not: {contains: b}}]", "c", 1.0, ""),
		Entry(nil, "all: [{any: [{contains: a}, {contains: b}]}, json]", "[\"b\"]", 1.0, ""),
		Entry(nil, "any: [{similarity: abcd, threshold: 0.7}, {equals: x}]", "abcx", 1.0, ""),
		Entry(nil, "any: [{similarity: abcd, threshold: 0.8}, {equals: x}]", "abcx", 0.0, ""),
		Entry(nil, "any: [{not: {similarity: abcd}, threshold: 0.9}]", "abcx", 1.0, ""),
		Entry(nil, "not: {any: [{contains: a}, {contains: b}]}", "c", 1.0, ""),
		Entry(nil, "not: {all: [{contains: a}, {contains: b}]}", "a", 1.0, ""),
		Entry(nil, "not: {all: [{contains: a}, {contains: b}]}", "ab", 0.0, "must not hold"),
		Entry("nothing to look at is no pass", "not: {any: [{numeric: {value: 1}}, {contains: b}]}", "c", 0.0, ""),
		Entry("nothing to look at is no pass", "not: {all: [{numeric: {value: 1}}]}", "c", 0.0, ""),
		Entry("what decides, decides", "not: {all: [{numeric: {value: 1}}, {contains: b}]}", "c", 1.0, ""),
	)

	It("are unjudged only where the others do not decide", func(ctx SpecContext) {
		unknown := "{steps: {max: 3}}" // the cases have no trace
		for yaml, want := range map[string]eval.CheckStatus{
			"all: [{contains: a}, " + unknown + "]": eval.CheckUnjudged,
			"all: [{contains: x}, " + unknown + "]": eval.CheckFail,
			"any: [{contains: a}, " + unknown + "]": eval.CheckPass,
			"any: [{contains: x}, " + unknown + "]": eval.CheckUnjudged,
		} {
			r := on(ctx, yaml, "a")
			Expect(r.Status).To(Equal(want), yaml)
			if want == eval.CheckUnjudged {
				Expect(r.Reason).To(ContainSubstring("2, steps: "))
			}
		}
	})

	It("do not depend on the order of the list, nor on one check written twice in any", func(ctx SpecContext) {
		checks := []string{"{contains: a}", "{contains: b}", "{not: {contains: c}}", "{regex: 'd|e'}", "{length: {max: 3}}"}
		r := rand.New(rand.NewPCG(9, uint64(GinkgoRandomSeed())))
		for range 100 {
			r.Shuffle(len(checks), func(i, j int) { checks[i], checks[j] = checks[j], checks[i] })
			output := []string{"a", "ab", "abd", "c", "cde", "abcde"}[r.IntN(6)]
			some := checks[:1+r.IntN(len(checks))]
			list := strings.Join(some, ", ")
			r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			again := strings.Join(some, ", ")
			for _, kind := range []string{"all", "any"} {
				Expect(deref(on(ctx, kind+": ["+list+"]", output).Score)).To(Equal(deref(on(ctx, kind+": ["+again+"]", output).Score)))
			}
			Expect(deref(on(ctx, "any: ["+list+"]", output).Score)).To(Equal(deref(on(ctx, "any: ["+list+", "+some[0]+"]", output).Score)))
			one := on(ctx, "all: ["+some[0]+"]", output)
			Expect(deref(one.Score)).To(Equal(deref(on(ctx, strings.Trim(some[0], "{}")+strings.Repeat("}", strings.Count(some[0], "{")-strings.Count(strings.Trim(some[0], "{}"), "}")-1), output).Score)))
		}
	})
})

var _ = Describe("the arguments of checks", func() {
	DescribeTable("are told wrong with their place", func(yaml, want string) {
		Expect(problems(yaml)).To(ContainSubstring(want))
	},
		Entry(nil, "- similarity: a", "check similarity is graded and states no threshold"),
		Entry(nil, "- {similarity: 5, threshold: 1}", "d.yaml:1:16: similarity: want a string, got a whole number"),
		Entry(nil, "- {similarity: '', threshold: 1}", "there is nothing to compare with"),
		Entry(nil, "- {similarity: {valu: a}, threshold: 1}", `unknown key "valu"`),
		Entry(nil, "- {similarity: {}, threshold: 1}", "neither value nor values"),
		Entry(nil, "- {similarity: {value: a, values: [b]}, threshold: 1}", "both value and values"),
		Entry(nil, "- {rouge_l: {values: []}, threshold: 1}", "the list is empty"),
		Entry(nil, "- {rouge_l: {value: a, measure: f2}, threshold: 1}", `d.yaml:1:33: rouge_l.measure: unknown value "f2"`),
		Entry(nil, "- {bleu: {value: a, unicode: nfd}, threshold: 1}", `unknown form "nfd"`),
		Entry(nil, "- {bleu: {value: '!', ignore_punctuation: true}, threshold: 1}", "there is nothing to compare with"),
		Entry(nil, "- length: 5", "d.yaml:1:11: length: want a mapping"),
		Entry(nil, "- length: {}", "neither min nor max"),
		Entry(nil, "- length: {min: 3, max: 2}", "min is above max"),
		Entry(nil, "- length: {max: -1}", "want a number from 0"),
		Entry(nil, "- length: {max: 0}", "max is below 1"),
		Entry(nil, "- length: {min: 0}", "always holds"),
		Entry(nil, "- length: {max: 3, unit: tokens}", `unknown value "tokens"`),
		Entry(nil, "- steps: {max: x}", "want a whole number"),
		Entry(nil, "- refusal: {phrases: []}", "the list is empty"),
		Entry(nil, "- refusal: {phrases: ['']}", "the phrase is empty"),
		Entry(nil, "- refusal: {}", "no phrases are given"),
		Entry(nil, "- refusal: no", "want a mapping"),
		Entry(nil, "- json_equal: {a: 1}", `unknown key "a"`),
		Entry(nil, "- json_equal: {value: 1, ignore: [a]}", "d.yaml:1:35: json_equal.ignore[0]: bad path"),
		Entry(nil, "- json_equal: {value: 1, ignore: [$]}", "the whole value is ignored"),
		Entry(nil, "- json_equal: {value: 1, unicode: nfd}", `unknown value "nfd"`),
		Entry(nil, "- tool_result: {name: serch, status: ok}", `the agent has no tool "serch"`),
		Entry(nil, "- tool_result: {name: search}", "no test on the result"),
		Entry(nil, "- tool_result: {name: search, path: $.a}", "no test on what the path selects"),
		Entry(nil, "- tool_result: {name: search, path: a, exists: true}", "bad path"),
		Entry(nil, "- tool_result: {name: search, status: fine}", `unknown value "fine"`),
		Entry(nil, "- tool_result: {name: search, status: ok, take: second}", `unknown value "second"`),
		Entry(nil, "- tool_result: {name: search, args: 5, status: ok}", "want a mapping"),
		Entry(nil, "- final_state: {}", "nothing is said of any file"),
		Entry(nil, "- final_state: {files: {}}", "no file is named"),
		Entry(nil, "- final_state: {files: {../a: x}}", `d.yaml:1:25: final_state.files["../a"]: "../a" is no path of a file in the workspace`),
		Entry(nil, "- final_state: {files: {/a: x}}", "is no path of a file"),
		Entry(nil, "- final_state: {files: {a: {}}}", "no test on the file"),
		Entry(nil, "- final_state: {files: {a: {exists: false, contains: x}}}", "a file that must not exist is tested"),
		Entry(nil, "- final_state: {files: {a: {matches: '('}}}", "bad expression"),
		Entry(nil, "- final_state: {files: {a: {contans: x}}}", `unknown key "contans"`),
		Entry(nil, "- final_state: {others: same}", `unknown value "same"`),
		Entry(nil, "- final_state: {artifacts: {}}", `key "artifacts" is not in this version`),
		Entry(nil, "- final_state: {rows: {}}", `key "rows" is not in this version`),
		Entry(nil, "- sql_equal: {query: select 1}", `d.yaml:1:3: check "sql_equal" is not in this version`),
		Entry(nil, "- skill_active: triage", `check "skill_active" is not in this version`),
		Entry(nil, "- cel: ''", "the expression is empty"),
		Entry(nil, "- cel: answr == 'x'", "d.yaml:1:8: cel: undeclared reference to 'answr'"),
		Entry(nil, "- cel: answr == 'x'", `did you mean "answer"?`),
		Entry(nil, "- cel: answer == 'x' && trace.cals.size() > 1", "undefined field 'cals'"),
		Entry(nil, "- cel: answer.size()", "the value is a int"),
		Entry(nil, "- cel: answer ==", "d.yaml:1:"),
		Entry(nil, "- cel: '0.5'", "the value is a score and no threshold is stated"),
		Entry(nil, "- cel: 5", "want a string"),
		Entry(nil, "- all: []", "the list is empty"),
		Entry(nil, "- any: x", "want a list of checks"),
		Entry(nil, "- any: [{contans: x}]", `d.yaml:1:10: any[0]: unknown check "contans"`),
		Entry(nil, "- any: [{contains: x, weight: 2}]", "weight stands within a check of checks"),
		Entry(nil, "- any: [{use: polite}]", "use stands within a check of checks"),
		Entry(nil, "- any: [{contains: x, equals: y}]", `a check has one kind, not both "contains" and "equals"`),
		Entry(nil, "- any: [{threshold: 1}]", "a check names its kind"),
		Entry(nil, "- any: [{similarity: x}]", "states no threshold"),
		Entry(nil, "- any: [{not: {not: {contains: x}}}]", "not within not"),
		Entry(nil, "- any: [{judge: is kind}]", `d.yaml:1:10: any[0]: check judge within another is not in this version`),
		Entry(nil, "- any: [{contains: [x]}, 5]", "any[1]: want a check"),
		Entry(nil, "- all: [all: [all: [all: [all: [all: [all: [all: [all: [json]]]]]]]]]", "more than 8 deep"),
	)

	It("may not look at files in a turn", func() {
		var p strict.Problems
		score.Compile(specs("- final_state: {others: unchanged}"), score.Env{Turn: true}, &p)
		Expect(p.Err()).To(MatchError(ContainSubstring("files are looked at when the last turn is over")))
	})
})
