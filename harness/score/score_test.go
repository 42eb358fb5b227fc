package score_test

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/score"
)

func deref[T any](p *T) T {
	GinkgoHelper()
	Expect(p).NotTo(BeNil())
	return *p
}

var _ = Describe("a check of text", func() {
	DescribeTable("holds or not",
		func(ctx SpecContext, yaml, output string, want eval.CheckStatus, reason string) {
			r := on(ctx, yaml, output)
			Expect(r.Status).To(Equal(want), r.Reason)
			Expect(r.Reason).To(ContainSubstring(reason))
			Expect(r.Score).NotTo(BeNil())
			Expect(r.Actual == nil).To(Equal(want == eval.CheckPass), "actual is shown where the check fails")

			// Negation turns a verdict round, save where there was nothing to look at.
			negated := on(ctx, "not: {"+yaml+"}", output)
			if want == eval.CheckPass {
				Expect(negated.Status).To(Equal(eval.CheckFail))
				Expect(negated.Reason).To(HavePrefix("must not hold, and does: "))
			} else {
				Expect(negated.Status).To(Equal(eval.CheckPass))
			}
			if r.Expected != nil {
				Expect(deref(negated.Expected)).To(Equal("not: " + *r.Expected))
			}
		},
		Entry(nil, "equals: a", "a", eval.CheckPass, "equal"),
		Entry(nil, "equals: ''", "", eval.CheckPass, "equal"),
		Entry(nil, "equals: a", "", eval.CheckFail, "the answer is empty"),
		Entry(nil, "equals: a", "A", eval.CheckFail, `want "a", got "A"; only the case differs ({ignore_case: true} ignores it)`),
		Entry(nil, "equals: {value: a, ignore_case: true}", "A", eval.CheckPass, ""),
		Entry(nil, "equals: abcd", "abxd", eval.CheckFail, `differs at character 3: want "cd", got "xd"`),
		Entry(nil, "equals: abcd", "ab", eval.CheckFail, `ends after 2 characters, before "cd"`),
		Entry(nil, "equals: ab", "abcd", eval.CheckFail, `goes on after 2 characters with "cd"`),
		Entry(nil, "equals: a b", "a  b\n", eval.CheckFail, "only white space differs ({trim: true, collapse_space: true}"),
		Entry(nil, "equals: a b", "a b\n", eval.CheckFail, "only white space at the ends differs ({trim: true}"),
		Entry(nil, "equals: {value: a b, trim: true, collapse_space: true}", " a\t\r\n b ", eval.CheckPass, ""),
		Entry(nil, "equals: a b", "a, b!", eval.CheckFail, "only punctuation differs"),
		Entry(nil, "equals: {value: 'a-b', ignore_punctuation: true}", "ab.", eval.CheckPass, ""),
		Entry(nil, `equals: "caf\u00e9"`, "cafe\u0301", eval.CheckFail, "only Unicode normalisation differs ({unicode: nfc}"),
		Entry(nil, `equals: {value: "caf\u00e9", unicode: nfc}`, "cafe\u0301", eval.CheckPass, ""),
		Entry(nil, `equals: {value: "STRASSE \u212a", ignore_case: true}`, "strasse k", eval.CheckPass, ""),
		Entry(nil, "equals: a b", "A,  B.", eval.CheckFail, "only case, white space and punctuation differs"),
		Entry(nil, "equals: yes", "no", eval.CheckFail, `differs at character 1: want "yes", got "no"`),
		Entry(nil, "contains: '112'", "call 112 now", eval.CheckPass, "found at character 6"),
		Entry(nil, "contains: '112'", "Please call your doctor.", eval.CheckFail, "not found"),
		Entry(nil, "contains: '112'", "", eval.CheckFail, "the answer is empty"),
		Entry(nil, "contains: Paris", "PARIS", eval.CheckFail, "not found; only the case differs"),
		Entry(nil, "contains: {value: Paris, ignore_case: true}", "in PARIS", eval.CheckPass, "character 4"),
		Entry(nil, "contains: 😀", "ab😀", eval.CheckPass, "character 3"),
		Entry(nil, "contains: a", "\xff\xfea", eval.CheckPass, "character 3"),
		Entry(nil, "starts_with: ab", "abc", eval.CheckPass, ""),
		Entry(nil, "starts_with: b", "abc", eval.CheckFail, "does not begin with it"),
		Entry(nil, "starts_with: {value: A, ignore_case: true, trim: true}", "  abc", eval.CheckPass, ""),
		Entry(nil, "contains_all: [a, b]", "b a", eval.CheckPass, "found all 2"),
		Entry(nil, "contains_all: [a, b, c]", "b a", eval.CheckFail, `found 2 of 3; missing: "c"`),
		Entry(nil, "contains_all: {values: [A, B], ignore_case: true}", "b a", eval.CheckPass, ""),
		Entry(nil, "contains_any: [x, b]", "b a", eval.CheckPass, ""),
		Entry(nil, "contains_any: [x, y]", "b a", eval.CheckFail, "found 0 of 2"),
		Entry(nil, `regex: "[0-9]+"`, "it is 42", eval.CheckPass, `matches "42" at character 7`),
		Entry(nil, `regex: "^[0-9]+$"`, "it is 42", eval.CheckFail, "no match"),
		Entry(nil, `regex: "(?i)PARIS"`, "paris\r\n", eval.CheckPass, ""),
		Entry(nil, `regex: "a.b"`, "a\nb", eval.CheckFail, "no match"),
		Entry(nil, `regex: x`, "", eval.CheckFail, "the answer is empty"),
		Entry(nil, "json", "{\"a\": [1, null]}\n", eval.CheckPass, "a mapping"),
		Entry(nil, "json: true", "3", eval.CheckPass, "a whole number"),
		Entry(nil, "json", "{'a': 1}", eval.CheckFail, "answer:1:2"),
		Entry(nil, "json", `{"a":1,"a":2}`, eval.CheckFail, "second time"),
		Entry(nil, "json", "", eval.CheckFail, "the answer is empty"),
		Entry(nil, "json", "Here:\n```json\n{}\n```\n", eval.CheckFail, "{fence: true}"),
		Entry(nil, "json: {fence: true}", "Here:\n```json\n{}\n```\nDone.", eval.CheckPass, ""),
		Entry(nil, "json: {fence: true}", "```\n[1]\n", eval.CheckPass, "a list"),
		Entry(nil, "json: {fence: true}", "~~~~ json x\n```\n[1]\n~~~~", eval.CheckFail, "not JSON"),
		Entry(nil, "json: {fence: true}", "```python\nx\n```\n```json\r\n[1]\r\n```\n", eval.CheckPass, "a list"),
		Entry(nil, "json: {fence: true}", "```json\n1\n```\n```json\n2\n```", eval.CheckFail, "2 code blocks"),
		Entry(nil, "json: {fence: true}", "[1]", eval.CheckPass, ""),
		Entry(nil, "json_schema: {type: object, required: [a]}", `{"a":1}`, eval.CheckPass, "satisfies"),
		Entry(nil, "json_schema: {type: object, required: [a]}", `{"b":1}`, eval.CheckFail, "required"),
		Entry(nil, "json_schema: {schema: {type: integer}, fence: true}", "```\n1.0\n```", eval.CheckPass, ""),
		Entry(nil, "json_schema: {$defs: {n: {type: number}}, type: array, items: {$ref: '#/$defs/n'}}", "[1, 2.5]", eval.CheckPass, ""),
		Entry(nil, "json_schema: {$defs: {n: {type: number}}, type: array, items: {$ref: '#/$defs/n'}}", `[1, "x"]`, eval.CheckFail, "number"),
		Entry(nil, "json_schema: {type: object, properties: {next: {$ref: '#'}}, additionalProperties: false}", `{"next":{"next":{"last":1}}}`, eval.CheckFail, "last"),
		Entry(nil, "json_path: {path: $.a, equals: 1}", `{"a":1.0}`, eval.CheckPass, "selects 1 values"),
		Entry(nil, "json_path: {path: $.a, equals: 9007199254740993}", `{"a":9007199254740992}`, eval.CheckFail, "$['a']: is 9007199254740992, want 9007199254740993"),
		Entry(nil, "json_path: {path: $.a, equals: null}", `{"a":null}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: $.a, equals: {x: 1, y: [2]}}", `{"a":{"y":[2],"x":1}}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: '$.a[*].n', min: 0}", `{"a":[{"n":1},{"n":-1}]}`, eval.CheckFail, "$['a'][1]['n']: -1 is not at least 0"),
		Entry(nil, "json_path: {path: '$.a[*].n', min: 0, max: 5}", `{"a":[{"n":1},{"n":2}]}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: '$.a[*].n', min: 0}", `{"a":[]}`, eval.CheckFail, "selects nothing"),
		Entry(nil, "json_path: {path: '$.a[*]', count: 0}", `{"a":[]}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: '$.a[*]', count: 2}", `{"a":[1]}`, eval.CheckFail, "selects 1 values, want 2"),
		Entry(nil, "json_path: {path: $.a, exists: true}", `{"a":null}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: $.a, exists: false}", `{"b":null}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: $.a, exists: false}", `{"a":null}`, eval.CheckFail, "selects $['a']"),
		Entry(nil, "json_path: {path: $.a, contains: x}", `{"a":"axb"}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: $.a, contains: 1}", `{"a":[2, 1.0]}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: $.a, contains: x}", `{"a":{"x":1}}`, eval.CheckFail, "does not contain"),
		Entry(nil, "json_path: {path: $.a, matches: '^x'}", `{"a":"xy"}`, eval.CheckPass, ""),
		Entry(nil, "json_path: {path: $.a, matches: '^x'}", `{"a":1}`, eval.CheckFail, "does not match"),
		Entry(nil, "json_path: {path: '$.a[?@.k == \"z\"].v', equals: 3}", `{"a":[{"k":"y","v":2},{"k":"z","v":3}]}`, eval.CheckPass, ""),
		Entry(nil, "numeric: {value: 42}", "The answer is 42.", eval.CheckPass, "42 is 42"),
		Entry(nil, "numeric: {value: 42}", "41", eval.CheckFail, "41 is not 42"),
		Entry(nil, "numeric: {value: 0.3, abs: 0.1}", "0.4", eval.CheckPass, "0.4 is 0.3 ± 0.1"),
		Entry(nil, "numeric: {value: 100, rel: 0.05}", "105 EUR", eval.CheckPass, "of it"),
		Entry(nil, "numeric: {value: 100, abs: 1, rel: 0.05}", "105", eval.CheckPass, ""),
		Entry(nil, "numeric: {value: 1234.5}", "about 1,234.50 in all", eval.CheckPass, ""),
		Entry(nil, "numeric: {min: 1, max: 2}", "1.5", eval.CheckPass, "from 1 to 2"),
		Entry(nil, "numeric: {min: 1}", "-1.5e3", eval.CheckFail, "-1.5e3 is not at least 1"),
		Entry(nil, "numeric: {max: 1}", "1e999999999", eval.CheckFail, "beyond all numbers"),
		Entry(nil, "numeric: {value: 3, take: last}", "1 and 2 make 3", eval.CheckPass, ""),
		Entry(nil, "numeric: {value: 3, take: first}", "1 and 2 make 3", eval.CheckFail, "1 is not 3"),
	)

	DescribeTable("fails, negated or not, where there is nothing to look at",
		func(ctx SpecContext, yaml, output, reason string) {
			for _, y := range []string{yaml, "not: {" + yaml + "}"} {
				r := on(ctx, y, output)
				Expect(r.Status).To(Equal(eval.CheckFail), y)
				Expect(r.Reason).To(ContainSubstring(reason))
			}
		},
		Entry(nil, "numeric: {value: 1}", "none", "no number"),
		Entry(nil, "numeric: {value: 1}", "", "the answer is empty"),
		Entry(nil, "numeric: {value: 1.05}", "$1,05", "holds 2 numbers (1, 5)"),
		Entry(nil, "numeric: {value: 1}", "1 2 3 4 5 6", "holds 6 numbers (1, 2, 3, 4, 5, …)"),
		Entry(nil, "json_path: {path: $.a, exists: false}", "no JSON", "not JSON"),
		Entry(nil, "json_schema: {type: object}", "no JSON", "not JSON"),
	)

	It("gives the share of the texts that contains_all finds", func(ctx SpecContext) {
		r := on(ctx, "{contains_all: [a, b, c], threshold: 0.6}", "a b")
		Expect(deref(r.Score)).To(BeNumerically("~", 2.0/3))
		Expect(r.Status).To(Equal(eval.CheckPass))
		r = on(ctx, "{not: {contains_all: [a, b, c]}, threshold: 0.6}", "a b")
		Expect(r.Status).To(Equal(eval.CheckFail))
		Expect(deref(r.Score)).To(BeZero())
	})

	It("shows at most 500 characters around the difference", func(ctx SpecContext) {
		long := strings.Repeat("é", 3000)
		r := on(ctx, "equals: "+long+"x"+long, long+"y"+long)
		for _, s := range []string{deref(r.Expected), deref(r.Actual)} {
			Expect(utf8.RuneCountInString(s)).To(Equal(500))
			Expect(utf8.ValidString(s)).To(BeTrue())
		}
		Expect(*r.Expected).To(ContainSubstring("x"))
		Expect(*r.Actual).To(ContainSubstring("y"))
		Expect(r.Reason).To(ContainSubstring("character 3001"))

		r = on(ctx, "not: {contains: needle}", long+"needle"+long)
		Expect(*r.Actual).To(ContainSubstring("needle"))

		r = on(ctx, "contains: x", "\xff"+long)
		Expect(utf8.ValidString(*r.Actual)).To(BeTrue())
	})
})

var _ = Describe("a check of time and money", func() {
	ms, cost, tokens := int64(2000), 10*money.Dollar/1000, 1000
	known := score.Case{LatencyMS: &ms, Cost: &cost, Tokens: &tokens}

	DescribeTable("compares with the bound, which is included", func(ctx SpecContext, yaml string, want eval.CheckStatus, reason string) {
		c := check(yaml)
		r := c.Run(ctx, known)
		Expect(r.Status).To(Equal(want))
		Expect(r.Reason).To(ContainSubstring(reason))
		unknown := c.Run(ctx, score.Case{})
		Expect(unknown.Status).To(Equal(eval.CheckUnjudged), "what is not known is no verdict")
		Expect(unknown.Score).To(BeNil())
		Expect(unknown.Reason).To(ContainSubstring("not known"))
		c.Not = true
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged))
	},
		Entry(nil, "latency: {max: 2s}", eval.CheckPass, "2s is within 2s"),
		Entry(nil, "latency: {max: 1999ms}", eval.CheckFail, "2s is more than 1.999s"),
		Entry(nil, "cost: {max_usd: 0.01}", eval.CheckPass, "0.01 USD is within 0.01 USD"),
		Entry(nil, "cost: {max_usd: 0.009999}", eval.CheckFail, "more than"),
		Entry(nil, "tokens: {max: 1000}", eval.CheckPass, "within"),
		Entry(nil, "tokens: {max: 999}", eval.CheckFail, "1000 is more than 999"),
	)

	It("is unjudged when the run was stopped", func(ctx SpecContext) {
		stopped, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		defer cancel()
		c := check("contains: a")
		Expect(c.Run(stopped, score.Case{Output: "a"}).Status).To(Equal(eval.CheckUnjudged))
	})
})

var _ = Describe("Compile", func() {
	DescribeTable("says what is wrong, where, and what to do", func(yaml string, want ...string) {
		got := problems("- " + yaml)
		for _, w := range want {
			Expect(got).To(ContainSubstring(w))
		}
		Expect(got).To(ContainSubstring("d.yaml:1:"))
	},
		Entry(nil, "contians: a", `unknown check "contians"`, `did you mean "contains"?`),
		Entry(nil, "sql: a", `unknown check "sql"`, "choices: all, any, bleu, cel, command, contains, contains_all, contains_any, cost, embedding_similarity, equals, final_state,"),
		Entry(nil, "contains: 112", "d.yaml:1:13", "contains: want a string, got a whole number", `quote it: "112"`),
		Entry(nil, "contains", "arguments are missing", "write a text"),
		Entry(nil, "contains: ''", "the text is empty", "it would stand in every answer"),
		Entry(nil, "contains: {value: '!!', ignore_punctuation: true}", "nothing is left of the text"),
		Entry(nil, "contains: {value: a, ignorecase: true}", `contains: unknown key "ignorecase"`, `did you mean "ignore_case"?`),
		Entry(nil, "contains: {ignore_case: true}", `key "value" is missing`),
		Entry(nil, "contains: {value: a, ignore_case: yes}", "contains.ignore_case: want true or false, got a string"),
		Entry(nil, "equals: {value: a, unicode: nfd}", `unknown form "nfd"`),
		Entry(nil, "starts_with: ''", "the text is empty"),
		Entry(nil, "contains_all: []", "the list is empty"),
		Entry(nil, "contains_all: a", "want a list of strings, got a string", `write it as a list: ["a"]`),
		Entry(nil, "contains_any: {values: []}", "contains_any.values: the list is empty"),
		Entry(nil, "contains_any: {ignore_case: true}", `key "values" is missing`),
		Entry(nil, "contains_any: [a, '']", "contains_any[1]: the text is empty"),
		Entry(nil, "regex: '('", "bad expression: missing closing )"),
		Entry(nil, "regex: '(?=a)'", "no look-around"),
		Entry(nil, "regex: ''", "the expression is empty"),
		Entry(nil, "json: false", "want a mapping"),
		Entry(nil, "json: {fense: true}", `did you mean "fence"?`),
		Entry(nil, "json_schema", "arguments are missing"),
		Entry(nil, "json_schema: {}", "accepts everything"),
		Entry(nil, "json_schema: {type: objct}", `json_schema.type: no type "objct"`, `did you mean "object"?`),
		Entry(nil, "json_schema: {type: object, requierd: [a]}", `JSON Schema has no keyword "requierd"`, `did you mean "required"?`),
		Entry(nil, "json_schema: {properties: {a: {anyOf: [{minimun: 1}]}}}", `json_schema.properties.a.anyOf[0]: JSON Schema has no keyword "minimun"`, `did you mean "minimum"?`),
		Entry(nil, "json_schema: {$ref: 'http://example.com/s.json'}", `reference "http://example.com/s.json" leaves the schema`, "#/$defs/name"),
		Entry(nil, "json_schema: {$ref: '#/$defs/x'}", "names nothing"),
		Entry(nil, "json_schema: {$ref: '#'}", "refers to itself without end"),
		Entry(nil, "json_schema: {$defs: {a/b: {anyOf: [{type: string}, {$ref: '#/$defs/a~1b'}]}}, $ref: '#/$defs/a~1b'}", "refers to itself without end"),
		Entry(nil, "json_schema: {allOf: [{type: object}, {not: {$ref: '#/allOf/1'}}]}", "refers to itself without end"),
		Entry(nil, "json_schema: {properties: {a: {$id: 'http://x/y', type: string}}}", "$id is not supported here"),
		Entry(nil, "json_schema: {$schema: 'http://json-schema.org/draft-04/schema#', type: object}", "unknown draft"),
		Entry(nil, "json_schema: {pattern: '('}", "bad schema"),
		Entry(nil, "json_path: {path: 'a.b', equals: 1}", `bad path "a.b"`, "RFC 9535"),
		Entry(nil, "json_path: {path: $.a}", "no test on what the path selects"),
		Entry(nil, "json_path: {equals: 1}", `key "path" is missing`),
		Entry(nil, "json_path: {path: $.a, exists: false, equals: 1}", "must not exist is tested"),
		Entry(nil, "json_path: {path: $.a, count: -1}", "negative count"),
		Entry(nil, "json_path: {path: $.a, matches: '['}", "bad expression"),
		Entry(nil, "json_path: {path: $.a, min: x}", "want a number"),
		Entry(nil, "numeric: 42", "want a mapping"),
		Entry(nil, "numeric: {}", "no value and no range"),
		Entry(nil, "numeric: {value: 1, min: 0}", "both a value and a range"),
		Entry(nil, "numeric: {min: 0, abs: 1}", "a tolerance without a value"),
		Entry(nil, "numeric: {value: 1, abs: -1}", "negative tolerance"),
		Entry(nil, "numeric: {min: 2, max: 1}", "min is above max"),
		Entry(nil, "numeric: {value: 1, take: lst}", `did you mean "last"?`),
		Entry(nil, "numeric: {value: 1e999}", "out of range"),
		Entry(nil, "latency: {max: 2}", "write the unit: 2s"),
		Entry(nil, "latency: {}", `key "max" is missing`),
		Entry(nil, "latency: {max: null}", "got null"),
		Entry(nil, "latency: {max: -1s}", "a negative time"),
		Entry(nil, "cost: {max_usd: -1}", "is no price"),
		Entry(nil, "tokens: {max: -1}", "negative number of tokens"),
		Entry(nil, "tokens: {max: 1.5}", "want a whole number"),
		Entry(nil, "tool_calls: {match: subset, calls: []}", "the list is empty", "use no_tool_calls"),
		Entry(nil, "tool_calls: {match: subst, calls: [{name: book}]}", `did you mean "subset"?`),
		Entry(nil, "tool_calls: {calls: [{name: contact}]}", `the agent has no tool "contact"`, `did you mean "contacts"?`),
		Entry(nil, "tool_calls: {calls: [{name: book, arg: {}}]}", `tool_calls.calls[0]: unknown key "arg"`),
		Entry(nil, "tool_calls: {calls: [{args: {}}]}", `key "name" is missing`),
		Entry(nil, "tool_calls: {calls: [{name: book, args: [1]}]}", "want a mapping"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$regx: x}}}]}", `unknown matcher "$regx"`, `did you mean "$regex"?`),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$regex: x, b: 1}}}]}", "stands beside other keys"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$regex: '['}}}]}", "bad expression"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$any: 1}}}]}", "want true"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$partial: 1}}}]}", "want a mapping"),
		Entry(nil, "tool_calls: {calls: [{name: book, args: {a: {$numeric: {abs: 1}}}}]}", "no value and no range"),
		Entry(nil, "no_tool_calls: [exek]", `the agent has no tool "exek"`, `did you mean "exec"?`),
		Entry(nil, "no_tool_calls: []", "the list is empty"),
		Entry(nil, "{contains: a, threshold: 1.5}", "threshold 1.5 is outside [0,1]"),
		Entry(nil, "{contains: a, weight: -1}", "weight -1 is negative"),
		Entry(nil, "{contains: a, weight: 0, required: true}", "weight 0 only reports"),
		Entry(nil, "{not: {contains: a}, threshold: 0}", "can never pass"),
	)

	It("tells all mistakes at once, in the order of the file", func() {
		got := problems("- contians: a\n- contains: 1\n- regex: '('\n- tokens: {}\n")
		Expect(strings.Count(got, "error: ")).To(Equal(4))
		Expect(got).To(MatchRegexp(`(?s)d\.yaml:1:.*d\.yaml:2:.*d\.yaml:3:.*d\.yaml:4:`))
	})

	It("names checks by their kind and keeps names apart", func() {
		var p strict.Problems
		checks := score.Compile(specs("- contains: a\n- {contains: b, name: 'contains#2'}\n- contains: c\n- not: {contains: d}\n- json\n"), env, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		var got []string
		for _, c := range checks {
			got = append(got, c.Name)
		}
		Expect(got).To(Equal([]string{"contains", "contains#2", "contains#3", "contains#4", "json"}))
		Expect(problems("- {contains: a, name: x}\n- {contains: b, name: x}\n")).To(ContainSubstring(`a second check named "x", the first is at d.yaml:1:3`))
	})

	It("takes expected tools as they are where nobody knows the agent's", func() {
		var p strict.Problems
		score.Compile(specs("- no_tool_calls: [whatever]"), score.Env{ToolsUnknown: true}, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		score.Compile(specs("- no_tool_calls: [whatever]"), score.Env{}, &p)
		Expect(p.Err()).To(MatchError(ContainSubstring(`the agent has no tool "whatever"`)))
	})

	It("has a doc for every kind", func() {
		kinds := score.Kinds()
		Expect(kinds).To(HaveLen(30))
		for _, k := range kinds {
			Expect(k.Doc).NotTo(BeEmpty(), k.Name)
		}
	})
})

var _ = Describe("Total", func() {
	result := func(status eval.CheckStatus, points, weight float64, required bool) eval.CheckResult {
		r := eval.CheckResult{Status: status, Weight: eval.Number(weight), Required: required}
		if status != eval.CheckUnjudged {
			s := eval.Fraction(points)
			r.Score = &s
		}
		return r
	}
	pass, fail := result(eval.CheckPass, 1, 1, false), result(eval.CheckFail, 0, 1, false)
	open := result(eval.CheckUnjudged, 0, 1, false)
	list := func(r ...eval.CheckResult) []eval.CheckResult { return r }
	at := func(f float64) *float64 { return &f }

	DescribeTable("makes one score and one verdict", func(results []eval.CheckResult, threshold *float64, mean *float64, want eval.CheckStatus) {
		got, verdict := score.Total(results, threshold)
		Expect(verdict).To(Equal(want))
		if mean == nil {
			Expect(got).To(BeNil())
			return
		}
		Expect(float64(deref(got))).To(BeNumerically("~", *mean, 1e-9))
	},
		Entry("nothing", list(), nil, nil, eval.CheckPass),
		Entry("nothing under a threshold", list(), at(0.5), nil, eval.CheckUnjudged),
		Entry("all pass", list(pass, pass), nil, at(1), eval.CheckPass),
		Entry("one fails", list(pass, fail), nil, at(0.5), eval.CheckFail),
		Entry("one open", list(pass, open), nil, at(1), eval.CheckUnjudged),
		Entry("only open", list(open), nil, nil, eval.CheckUnjudged),
		Entry("a fail beats an open one", list(open, fail), nil, at(0), eval.CheckFail),
		Entry("weights", list(result(eval.CheckPass, 1, 2, false), fail), at(0.6), at(2.0/3), eval.CheckPass),
		Entry("weight 0 reports", list(pass, result(eval.CheckFail, 0, 0, false), result(eval.CheckUnjudged, 0, 0, false)), nil, at(1), eval.CheckPass),
		Entry("only weight 0", list(result(eval.CheckFail, 0, 0, false)), nil, nil, eval.CheckPass),
		Entry("a threshold forgives", list(pass, fail), at(0.5), at(0.5), eval.CheckPass),
		Entry("a threshold not reached", list(pass, fail), at(0.6), at(0.5), eval.CheckFail),
		Entry("a required check fails under a threshold", list(pass, result(eval.CheckFail, 0.9, 1, true)), at(0.5), at(0.95), eval.CheckFail),
		Entry("an open check could still reach it", list(fail, open), at(0.5), at(0), eval.CheckUnjudged),
		Entry("an open check cannot reach it", list(fail, fail, open), at(0.5), at(0), eval.CheckFail),
		Entry("graded", list(result(eval.CheckPass, 0.7, 1, false), result(eval.CheckPass, 0.8, 1, false)), nil, at(0.75), eval.CheckPass),
		Entry("thirds do not fail by rounding", list(result(eval.CheckFail, 0.1, 1, false), result(eval.CheckFail, 0.1, 1, false), result(eval.CheckFail, 0.1, 1, false)), at(0.1), at(0.1), eval.CheckPass),
	)
})
