package score_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/score"
)

// FuzzOutput gives every kind of check that looks at text an answer that nobody expects.
func FuzzOutput(f *testing.F) {
	for _, s := range []string{"", "a", "42", `{"a":[1]}`, "```json\n{}\n```", "~~~\n1", "\xff\xfe", strings.Repeat("[", 200), "cafe\u0301"} {
		f.Add(s)
	}
	checks := []score.Check{
		check("equals: caf\u00e9"), check("equals: {value: A b, ignore_case: true, trim: true, collapse_space: true, ignore_punctuation: true, unicode: nfc}"),
		check("contains: a"), check("contains_all: [a, b]"), check("contains_any: [a, b]"), check("starts_with: a"), check("regex: '(a|b)+'"), check("json"), check("json: {fence: true}"),
		check("json_schema: {type: object, properties: {a: {type: array, items: {type: integer}}}}"), check("json_path: {path: '$..a[*]', min: 0}"), check("numeric: {value: 42, rel: 0.1}"),
		check("{similarity: caf\u00e9 au lait, threshold: 0.5}"), check("{rouge_l: {values: [a b, b a], ignore_case: true}, threshold: 0.5}"), check("{bleu: a b c d e, threshold: 0.5}"), check("length: {max: 3, unit: words}"), check("refusal"), check("json_equal: {value: {a: [1]}, ignore: ['$..b']}"),
		check("cel: \"answer.size() < 3 || answer.contains('a')\""), check("any: [{contains: a}, {all: [json, {numeric: {min: 3}}]}]"),
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range checks {
			plain := c.Run(context.Background(), score.Case{Output: s})
			c.Not = true
			negated := c.Run(context.Background(), score.Case{Output: s})
			if plain.Status == eval.CheckUnjudged || negated.Status == eval.CheckUnjudged || plain.Status == eval.CheckPass && negated.Status == eval.CheckPass {
				t.Fatalf("%s: %s (%s), negated %s (%s)", c.Kind, plain.Status, plain.Reason, negated.Status, negated.Reason)
			}
			for _, text := range []*string{plain.Expected, plain.Actual, &plain.Reason, &negated.Reason} {
				if text != nil && (!utf8.ValidString(*text) || utf8.RuneCountInString(*text) > 500) {
					t.Fatalf("%s: %q", c.Kind, *text)
				}
			}
		}
	})
}

// FuzzArguments compiles arbitrary YAML as the arguments of every kind, and judges with what compiles.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"a", "{value: a}", "[a, b]", "{type: object}", "{path: $.a, equals: 1}", "{value: 1, abs: 0.1}", "{match: subset, calls: [{name: book, args: {a: {$regex: x}}}]}", "{max: 1s}", "{$ref: '#'}", "null", "{calls: [{name: book, args: {$$a: [1, {$partial: {b: 2}}]}}]}",
		"{match: subset, calls: [{unordered: [{name: book, times: {max: 2}}, {any_of: [{name: book}, {name: exec, status: ok}]}], same_turn: true}, {name: book}]}", "{calls: [{name: book, args: {$equal: {a: {$date: 2026-01-05}}, $ignore: ['x*'], $defaults: {b: 1}}}]}",
		"{calls: [{name: book, args: {a: {$one_of: [1, {$schema: {type: integer}}, {$text: {value: x}}]}}}]}", "{name: book, path: '$.a', equals: 1}", "[{contains: a}, {not: {json: true}}]", "{min: 1, max: 2}", "answer == 'a'", "{files: {a: {exists: true}}}"} {
		f.Add(s, `{"a":1}`)
	}
	f.Fuzz(func(t *testing.T, yaml, output string) {
		args, err := strict.Parse("d.yaml", []byte(yaml))
		if err != nil {
			t.Skip()
		}
		reply := &trace.Reply{Message: conversation.Assistant("m", conversation.ToolCall{ID: "c", Name: "book", Input: conversation.JSON(output)})}
		in := score.Case{Output: output, Trace: trace.Trace{Events: []trace.Event{{Reply: reply}}}}
		for _, k := range score.Kinds() {
			var p strict.Problems
			checks := score.Compile([]score.Spec{{Kind: k.Name, Args: args}}, env, &p)
			if (p.Len() == 0) != (len(checks) == 1) {
				t.Fatalf("%s: %d checks, %d problems", k.Name, len(checks), p.Len())
			}
			for _, c := range checks {
				if v, err := c.Score(context.Background(), in); err == nil && !(v.Score >= 0 && v.Score <= 1) {
					t.Fatalf("%s: score %v", k.Name, v.Score)
				} else if err != nil && strings.Contains(err.Error(), "crashed") {
					t.Fatalf("%s: %v", k.Name, err)
				}
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	list := specs("- contains: Paris\n- regex: (?i)paris\n- tool_calls: {match: subset, calls: [{name: search, args: {q: x}}]}\n")
	b.ReportAllocs()
	for b.Loop() {
		var p strict.Problems
		if len(score.Compile(list, env, &p)) != 3 {
			b.Fatal(p.Err())
		}
	}
}

func BenchmarkResult(b *testing.B) {
	in := calling(`search{"q":"x","limit":10}`, `book{"a":1}`)
	in.Output = strings.Repeat("Words about a city. ", 50) + "Paris"
	for _, yaml := range []string{"contains: Paris", "contains: {value: paris, ignore_case: true}", "equals: Paris", "tool_calls: {match: subset, calls: [{name: search, args: {q: x}}]}"} {
		c := check(yaml)
		b.Run(c.Kind+fmt.Sprint(len(yaml)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Run(context.Background(), in)
			}
		})
	}
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf(`search{"q":"%d"}`, i)
	}
	expected := expect(many)
	for _, mode := range modes[:2] {
		c := toolCalls(mode, expected...)
		in := calling(many...)
		b.Run(mode+"60x60", func(b *testing.B) {
			for b.Loop() {
				c.Run(context.Background(), in)
			}
		})
	}
}
