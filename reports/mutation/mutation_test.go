package mutation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/mutate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/mutation"
)

func TestMutation(t *testing.T) { suite.Run(t, "mutation") }

func rate(f float64) *results.Number {
	n := results.Number(f)
	return &n
}

// hostile is what a model may write.
const hostile = "\x1b]0;title\x07 <script>alert(1)</script> \u202e`code` | cell"

// example has something in every place.
func example() *mutate.Result {
	count := func(killed, survived, open int) mutate.Count {
		return mutate.Count{Mutants: killed + survived, Killed: killed, Survived: survived, Open: open, KillRate: rate(float64(killed) / float64(killed+survived))}
	}
	survivor := func(provider, operator, what, before, after string) mutate.Survivor {
		return mutate.Survivor{Item: "a", Provider: provider, Repeat: 1, Operator: operator, What: what, Before: before, After: after, Noticed: []string{}, Unjudged: []string{}}
	}
	r := &mutate.Result{
		V: 1, Dataset: "shop", File: "datasets/shop.yaml", Seed: 7, Limit: 5, Complete: true, Outcomes: 5, Mutated: 3, Count: count(6, 4, 1), Equivalent: 2,
		Verdict: results.Verdict{Code: failure.Gate, Text: "kill rate 60.0 %, bound >= 0.8", Reasons: []results.Reason{{Code: failure.Gate, Kind: results.KindGate, Text: "kill rate 60.0 %, bound >= 0.8"}}},
		Gate:    &mutate.Gate{Bound: ">= 0.8", Status: results.GateFailed},
		Operators: []mutate.OperatorCount{
			{Name: "drop-call", Count: count(5, 2, 0)}, {Name: "swap-calls"}, {Name: "negate", Count: count(1, 2, 1)},
		},
		Checks:     []mutate.Noticing{{Name: "contains", Of: 10, Noticed: 6, Alone: 4}, {Name: "tone " + hostile, Of: 9, Unjudged: 1, Reports: true}},
		Invariants: []mutate.Noticing{{Name: "tool-call-pairing", Of: 10, Noticed: 1}},
		Unjudged:   []mutate.Unjudged{{Check: "tone", Mutants: 1, Reason: "the recording has no answer of the judge to this"}},
	}
	r.LeftOut.Add(mutate.LeftOut{Item: "b", Provider: "one", Repeat: 2, Status: eval.Fail, Cause: "check"})
	r.LeftOut.Add(mutate.LeftOut{Item: "c", Provider: "one", Repeat: 1, Status: eval.Unjudged, Cause: mutate.NotRepeatable})
	r.Items.Add(mutate.Item{Item: "a", Provider: "one", Repeat: 1, Count: count(2, 2, 0)})
	r.Items.Add(mutate.Item{Item: "a", Provider: "two|three", Repeat: 1, Count: count(2, 2, 1)})
	r.Items.Add(mutate.Item{Item: "d", Provider: "one", Repeat: 1, Count: count(2, 0, 0)})
	r.Survivors.Add(survivor("one", "drop-call", "call 1", `read_file{"path":"a.txt"}`, ""))
	r.Survivors.Add(survivor("one", "negate", "the answer", hostile, "not "+hostile))
	r.Survivors.Add(survivor("two|three", "drop-call", "call 1", `read_file{"path":"a.txt"}`, ""))
	last := survivor("two|three", "negate", "the answer", "It is.", "It is not.")
	last.Noticed, last.Unjudged = []string{"polite"}, []string{"tone"}
	r.Survivors.Add(last)
	return r
}

var _ = Describe("the report on mutants", func() {
	write := func(f func(*bytes.Buffer) error) string {
		GinkgoHelper()
		var out bytes.Buffer
		Expect(f(&out)).To(Succeed())
		return out.String()
	}
	terminal := func(r *mutate.Result, all bool) string {
		return write(func(b *bytes.Buffer) error { return mutation.Write(b, r, reports.Options{All: all}) })
	}
	markdown := func(r *mutate.Result, all bool) string {
		return write(func(b *bytes.Buffer) error { return mutation.Markdown(b, r, reports.Options{All: all}) })
	}
	encoded := func(r *mutate.Result) string {
		return write(func(b *bytes.Buffer) error { return mutation.JSON(b, r) })
	}

	It("has one form for each format", func() {
		suite.Golden("terminal.txt", []byte(terminal(example(), false)))
		suite.Golden("report.md", []byte(markdown(example(), false)))
		suite.Golden("report.json", []byte(encoded(example())))
	})

	It("lets nothing that others wrote act", func() {
		for _, text := range []string{terminal(example(), true), markdown(example(), true), encoded(example())} {
			Expect(text).NotTo(ContainSubstring("\x1b"))
			Expect(text).NotTo(ContainSubstring("\u202e"))
			Expect(text).NotTo(ContainSubstring("\x07"))
		}
		found := 0
		for line := range strings.Lines(markdown(example(), true)) {
			if strings.Contains(line, "script") {
				found++
				Expect(line).To(MatchRegexp("(?s)^[^`]*(?:`[^`]+`[^`]*)*``.*<script>.*``[^`<]*$"), "within a span that the text's own marks do not end")
			}
		}
		Expect(found).To(Equal(3))
	})

	It("shows the same survivor of several providers once, and how many there are more", func() {
		r := example()
		Expect(terminal(r, false)).To(ContainSubstring("a on one, two|three: drop-call, call 1\n"))
		for range 200 {
			s := r.Survivors.Items[0]
			s.Item = strings.Repeat("x", len(r.Survivors.Items))
			r.Survivors.Add(s)
		}
		Expect(strings.Count(terminal(r, false), ": drop-call, call 1")).To(Equal(18))
		Expect(terminal(r, false)).To(ContainSubstring("... and 183 more, --all shows them"))
		Expect(strings.Count(terminal(r, true), ": drop-call, call 1")).To(Equal(201))
		Expect(markdown(r, false)).To(ContainSubstring("- and 183 more\n"))
	})

	It("of a kill rate of nearly 1 does not say 100 %", func() {
		Expect(mutate.Percent(rate(0.99999))).To(Equal("99.9 %"))
		Expect(mutate.Percent(rate(1))).To(Equal("100.0 %"))
		Expect(mutate.Percent(nil)).To(Equal("-"))
	})

	It("of nothing still has every key", func() {
		var got map[string]any
		Expect(json.Unmarshal([]byte(encoded(&mutate.Result{})), &got)).To(Succeed())
		Expect(got).To(And(HaveKeyWithValue("kill_rate", BeNil()), HaveKeyWithValue("gate", BeNil()), HaveKey("survivors"), HaveKey("left_out"), HaveLen(23)))
		Expect(terminal(&mutate.Result{}, false)).To(ContainSubstring("0 mutants of 0 outcomes"))
	})

	It("tells of a sink that refuses", func() {
		for _, err := range []error{mutation.Write(full{}, example(), reports.Options{}), mutation.Markdown(full{}, example(), reports.Options{}), mutation.JSON(full{}, example())} {
			Expect(err).To(MatchError(ContainSubstring("no space")))
			Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		}
	})
})

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }
