package results

import (
	"bytes"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
)

func p[T any](v T) *T { return &v }

// full is a line in which every field holds something.
func full() eval.Result {
	return eval.Result{
		V: 1, Item: "emoji-🧪\"\\\n", Index: 7, Provider: "openai:gpt-4o", Repeat: 2, Group: p("g"), Tags: []string{"a", "b"}, Quarantined: true,
		ItemHash: "51c0b8a2e97d4f06", ChecksHash: "0e4d2b7a91c3f855", Status: eval.Fail, Cause: p("check"), Score: p(eval.Fraction(0.666667)),
		Output: p("naïve \u2028 <b>\x7f</b>"), OutputCut: true, Stop: p("end"),
		Checks: []eval.CheckResult{
			{Name: "contains", Turn: p(1), Status: eval.CheckFail, Score: p(eval.Fraction(0)), Threshold: 1, Weight: 2.5, Required: true, Expected: p("112"), Actual: p(""), Reason: "not found", At: "d.yaml:3:9"},
			{Name: "polite", Status: eval.CheckUnjudged, Threshold: 0.7, Weight: 1},
		},
		Invariants: eval.Invariants{Held: 12, NotApplicable: []string{"sql-bound"}, Triggered: []string{}, Violations: []eval.Violation{{Name: "n", Severity: eval.SeverityWarn, Events: []int{3, 14}, Evidence: "e", At: "a"}}},
		Error:      &eval.ErrorInfo{Kind: eval.ErrProvider, Code: p("c"), HTTPStatus: p(529), Message: "m", Retries: 3, Hint: p("h")},
		Cassette:   &eval.CassetteInfo{File: "f.yaml", State: eval.CassetteStale, Drift: []eval.Drift{{Class: "model", Request: 1, Path: "$.model", Old: "a", New: "b", Action: "fail"}}, LeftOver: 2},
		Usage:      eval.Usage{InputTokens: 1, CachedInputTokens: 2, OutputTokens: 3, ReasoningTokens: 4},
		CostUSD:    p(money.USD(1_292_000)), OverheadUSD: 410_000, LatencyMS: p(int64(1834)), TTFTMS: p(int64(0)), Turns: 1, Steps: 2, ToolCalls: 3, Retries: 4,
		Faults: []eval.FaultResult{
			{Name: "slow#2", Kind: "timeout", Request: 1, Call: 2, Status: eval.FaultBroke, Ending: "broken", Stop: "error", Retries: 2, Reason: "r", Violations: []eval.Violation{{Name: "n", Severity: eval.SeverityError, Events: []int{}, Evidence: "e"}}},
			{Name: "refusal", Kind: "refusal", Status: eval.FaultNotInjected, Violations: []eval.Violation{}},
		},
		Trace: &eval.TracePlace{Segment: 1, Offset: 18, Length: 234},
	}
}

// TestScannerKnowsEveryField fails where a field was added to the line and not to the scanner: it would be slow for every line.
func TestScannerKnowsEveryField(t *testing.T) {
	g := NewWithT(t)
	empty := eval.Result{V: 1, Index: 1, Repeat: 1}
	for _, line := range []eval.Result{full(), empty} {
		text := AppendLine(nil, &line)
		var s scanner
		got, ok := s.line(text)
		g.Expect(ok).To(BeTrue(), "%s", text)
		want, err := decodeLine(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(want))
		g.Expect(AppendLine(nil, &got)).To(Equal(text))
	}
	line := full()
	v := reflect.ValueOf(line)
	for i := range v.NumField() {
		g.Expect(v.Field(i).IsZero()).To(BeFalse(), "the line of this test leaves %s empty", v.Type().Field(i).Name)
	}
}

// FuzzScanner holds the scanner against the reader of any JSON: what it takes is what that reader takes it for.
func FuzzScanner(f *testing.F) {
	line := full()
	text := AppendLine(nil, &line)
	f.Add(text)
	for _, change := range [][2]string{
		{`"v":1`, `"v":01`}, {`"v":1`, `"v":1.0`}, {`"v":1`, `"v":1e0`}, {`"v":1`, `"v":-0`}, {`0.666667`, `.5`}, {`0.666667`, `5.`}, {`0.666667`, `0.5e-3`}, {`2.5`, `-02`},
		{`"index":7`, `"index":9999999999999999999`}, {"not found", "not\\u0000 \\ud83e\\uddea found"}, {"not found", "\\ud83e"}, {"not found", "\xff"}, {"not found", "\x01"},
		{"not found", "\\x"}, {`"tags":["a","b"]`, `"tags":["a",]`}, {`"tags":["a","b"]`, `"tags":null`}, {`}`, `} `}, {`"group":"g"`, `"group": "g"`}, {`0.001292`, `0.00129200001`},
	} {
		f.Add(bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s scanner
		got, ok := s.line(data)
		if !ok {
			return
		}
		want, err := decodeLine(data)
		if err != nil {
			t.Fatalf("taken, but no JSON: %v\n%s", err, data)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nis\n%+v\nbut was read as\n%+v", data, want, got)
		}
	})
}

func BenchmarkDecodeLine(b *testing.B) {
	line := full()
	text := AppendLine(nil, &line)
	b.Run("scanner", func(b *testing.B) {
		var s scanner
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := s.line(text); !ok {
				b.Fatal("refused")
			}
		}
	})
	b.Run("any JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeLine(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
