package gate_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
)

func TestGate(t *testing.T) { suite.Run(t, "gate") }

var pos = failure.Position{File: "datasets/a.yaml", Line: 7, Column: 3}

func number(v float64) *results.Number { n := results.Number(v); return &n }

func column(id string, metrics results.Metrics) results.Provider {
	return results.Provider{ProviderInfo: results.ProviderInfo{ID: id}, Metrics: metrics}
}

// one evaluates a single gate on a value.
func one(metric, bound string, value *results.Number, n int) results.GateStatus {
	gates, err := gate.Parse([]gate.Spec{{Metric: metric, Bound: bound}})
	Expect(err).NotTo(HaveOccurred())
	out := gate.Evaluate(gates[:1], []results.Provider{column("p", results.Metrics{metric: {Value: value, N: n}})}, nil)
	Expect(out).To(HaveLen(1))
	return out[0].Status
}

var _ = DescribeTable("a bound on a value", func(metric, bound string, value float64, want results.GateStatus) {
	Expect(one(metric, bound, number(value), 10)).To(Equal(want))
},
	Entry(nil, "pass_rate", ">= 0.95", 0.95, results.GateHolds),
	Entry(nil, "pass_rate", ">= 0.95", 0.949999, results.GateFailed),
	Entry(nil, "pass_rate", "== 1", 1.0, results.GateHolds),
	Entry(nil, "pass_rate", "==1", 0.999999, results.GateFailed),
	Entry(nil, "pass_rate", "  >  0.5 ", 0.5, results.GateFailed),
	Entry(nil, "error_rate", "< 0.1", 0.099999, results.GateHolds),
	Entry(nil, "error_rate", "< 0.1", 0.1, results.GateFailed),
	Entry("a tenth is not exact in binary", "score", ">= 0.3", 0.1+0.2, results.GateHolds),
	Entry(nil, "invariant_violations", "== 0", 0.0, results.GateHolds),
	Entry(nil, "invariant_violations", "<= 2", 3.0, results.GateFailed),
	Entry(nil, "p95_latency", "<= 2500", 2500.0, results.GateHolds),
	Entry(nil, "p95_latency", "<= 2500ms", 2501.0, results.GateFailed),
	Entry(nil, "p95_latency", "<= 2.5 s", 2500.0, results.GateHolds),
	Entry(nil, "p50_latency", "< 1s", 1000.0, results.GateFailed),
	Entry(nil, "mean_latency", "<= 1s", 999.0, results.GateHolds),
	Entry(nil, "p50_ttft", "<= 400", 412.0, results.GateFailed),
	Entry(nil, "cost_usd", "<= 1.00", 1.0, results.GateHolds),
	Entry(nil, "cost_usd_per_item", "<= 0.000000001", 0.000000002, results.GateFailed),
	Entry(nil, "tokens", "<= 1000000", 1000001.0, results.GateFailed),
	Entry(nil, "steps", "<= 3", 2.5, results.GateHolds),
	Entry(nil, "tool_calls", "> 0", 0.0, results.GateFailed),
	Entry(nil, "item_pass_rate", ">= 0.5", 0.5, results.GateHolds),
)

var _ = It("takes a gate on every metric", func() {
	Expect(results.MetricTable).NotTo(BeEmpty())
	for _, kind := range results.MetricTable {
		Expect(one(kind.Name, "> 0", number(1), 1)).To(Equal(results.GateHolds), kind.Name)
		Expect(one(kind.Name, "> 0", number(0), 1)).To(Equal(results.GateFailed), kind.Name)
	}
})

var _ = DescribeTable("a metric without samples", func(value *results.Number, n int) {
	Expect(one("cost_usd", "<= 1", value, n)).To(Equal(results.GateNoData))
},
	Entry("no value", nil, 3),
	Entry("no lines", number(0), 0),
)

var _ = DescribeTable("what is refused before the run", func(metric, bound, message, hint string) {
	_, err := gate.Parse([]gate.Spec{{Metric: metric, Bound: bound, Pos: pos}})
	Expect(err).To(MatchError(ContainSubstring(message)))
	Expect(err).To(MatchError(HavePrefix("datasets/a.yaml:7:3: ")))
	Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	Expect(failure.Hints(err)).To(ContainElement(ContainSubstring(hint)))
},
	Entry(nil, "pas_rate", ">= 1", `unknown metric "pas_rate"`, `did you mean "pass_rate"?`),
	Entry(nil, "quality", ">= 1", `unknown metric "quality"`, "choices: cost_usd, cost_usd_per_item, error_rate"),
	Entry(nil, "", ">= 1", `unknown metric ""`, "choices: "),
	Entry(nil, "pass_rate", "", `the bound "" does not begin`, ">= 0.95"),
	Entry(nil, "pass_rate", "0.95", "does not begin", ">= 0.95"),
	Entry(nil, "pass_rate", "=> 0.95", "does not begin", ">= 0.95"),
	Entry(nil, "pass_rate", "!= 0.95", "does not begin", ">= 0.95"),
	Entry(nil, "pass_rate", ">= high", `"high" is no number`, ">= 0.95"),
	Entry(nil, "pass_rate", ">= NaN", "is no number", ">= 0.95"),
	Entry(nil, "cost_usd", "<= inf", "is no number", "<= 1.00"),
	Entry(nil, "tokens", "<= 0x10", "is no number", "<= 10"),
	Entry(nil, "tokens", "<= 1_000", "is no number", "<= 10"),
	Entry(nil, "tokens", "<= 1e6", "is no number", "<= 10"),
	Entry(nil, "tokens", "<= 1.2.3", "is no number", "<= 10"),
	Entry(nil, "pass_rate", ">= 95", "outside its range", "0.95"),
	Entry(nil, "pass_rate", ">= 95%", "not a percentage", "write 0.95"),
	Entry(nil, "pass_rate", ">= -0.1", "outside its range", "0.95"),
	Entry(nil, "steps", "<= -1", "outside its range", "never negative"),
	Entry(nil, "steps", "<= 10 ms", `takes no unit "ms"`, "alone"),
	Entry(nil, "cost_usd", "<= $1", "is no number", "<= 1.00"),
	Entry(nil, "cost_usd", "<= 1 USD", `takes no unit "USD"`, "alone"),
	Entry(nil, "p95_latency", "<= 2 min", "is in ms", "ms or s"),
	Entry("holds always", "pass_rate", ">= 0", "nothing can break", "null"),
	Entry("holds always", "error_rate", "<= 1", "nothing can break", "null"),
	Entry("holds always", "tokens", ">= 0", "nothing can break", "null"),
	Entry("holds never", "pass_rate", "> 1", "nothing can keep", "room"),
	Entry("holds never", "steps", "< 0", "nothing can keep", "room"),
)

var _ = Describe("the gates of a dataset", func() {
	It("come in its order, and those not named stay", func() {
		gates, err := gate.Parse([]gate.Spec{{Metric: "cost_usd", Bound: "<=1"}, {Metric: "pass_rate", Bound: ">= 0.9"}})
		Expect(err).NotTo(HaveOccurred())
		got := gate.Evaluate(gates, []results.Provider{column("a", nil), column("b", nil)}, nil)
		var rows []string
		for _, g := range got {
			rows = append(rows, fmt.Sprintf("%s %s %s %v", g.Metric, g.Provider, *g.Bound, g.Default))
		}
		Expect(rows).To(Equal([]string{
			"cost_usd a <= 1 false", "cost_usd b <= 1 false",
			"pass_rate a >= 0.9 false", "pass_rate b >= 0.9 false",
			"invariant_violations a == 0 true", "invariant_violations b == 0 true",
			"error_rate a == 0 true", "error_rate b == 0 true",
		}))
	})
	It("are off, visibly, where they are null", func() {
		gates, err := gate.Parse([]gate.Spec{{Metric: "pass_rate", Off: true}})
		Expect(err).NotTo(HaveOccurred())
		got := gate.Evaluate(gates, []results.Provider{column("a", results.Metrics{"pass_rate": {Value: number(0.2), N: 5}})}, nil)
		Expect(got[0].Status).To(Equal(results.GateOff))
		Expect(got[0].Bound).To(BeNil())
		Expect(*got[0].Value).To(BeNumerically("==", 0.2))
	})
	It("are all looked at before anything is said", func() {
		_, err := gate.Parse([]gate.Spec{{Metric: "x", Pos: pos}, {Metric: "steps", Bound: "<= 1", Pos: pos}, {Metric: "steps", Off: true, Pos: pos}, {Metric: "score", Bound: "?", Pos: pos}})
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring(`unknown metric "x"`), ContainSubstring(`"steps" stands here a second time`), ContainSubstring("gate score"))))
	})
})

func ptr[T any](v T) *T { return &v }

var _ = Describe("the verdict", func() {
	summary := func(metrics results.Metrics) *results.Summary {
		return &results.Summary{
			Dataset: results.Dataset{Name: "clinic", File: "datasets/clinic.yaml"}, Selected: results.Selected{Items: 200, Repeat: 1},
			Counts: results.Counts{Pass: 186, Fail: 14}, Providers: []results.Provider{column("haiku", metrics)},
		}
	}
	good := results.Metrics{"pass_rate": {Value: number(1), N: 200}, "invariant_violations": {Value: number(0), N: 200}, "error_rate": {Value: number(0), N: 200}}
	with := func(name string, m results.Metric) results.Metrics {
		out := results.Metrics{}
		for k, v := range good {
			out[k] = v
		}
		out[name] = m
		return out
	}
	decide := func(s *results.Summary, t results.Tally, in gate.Input, specs ...gate.Spec) results.Verdict {
		GinkgoHelper()
		gates, err := gate.Parse(specs)
		Expect(err).NotTo(HaveOccurred())
		if t.Columns == nil {
			t.Columns = make([]results.ColumnTally, len(s.Providers))
		}
		gate.Judge(gates, in)(s, t)
		return s.Verdict
	}

	It("is that of the results contract", func() {
		v := decide(summary(with("pass_rate", results.Metric{Value: number(0.93), Low: number(0.885945), High: number(0.957848), N: 200})),
			results.Tally{Columns: []results.ColumnTally{{Failed: 14}}}, gate.Input{}, gate.Spec{Metric: "pass_rate", Bound: ">= 0.95"})
		Expect(v).To(Equal(results.Verdict{
			Code: 1, Text: "failed: pass_rate of haiku is 0.93, bound >= 0.95",
			Reasons: []results.Reason{{Code: 1, Kind: "gate", Gate: ptr("pass_rate"), Provider: ptr("haiku"), Items: ptr(14), Text: "0.93 [0.886, 0.958], bound >= 0.95", Hint: ptr("echoeval show clinic")}},
		}))
	})
	It("passes where nothing speaks against it", func() {
		v := decide(summary(good), results.Tally{}, gate.Input{})
		Expect(v.Code).To(Equal(failure.OK))
		Expect(v.Text).To(Equal("passed: 186 of 200 results passed, all gates hold"))
		Expect(v.Reasons).To(BeEmpty())
	})
	It("says when no gate is on", func() {
		v := decide(summary(good), results.Tally{}, gate.Input{}, gate.Spec{Metric: "pass_rate", Off: true}, gate.Spec{Metric: "invariant_violations", Off: true}, gate.Spec{Metric: "error_rate", Off: true})
		Expect(v.Text).To(HaveSuffix("no gate is on"))
	})
	It("fails where a gate has no data", func() {
		v := decide(summary(with("pass_rate", results.Metric{})), results.Tally{}, gate.Input{})
		Expect(v.Code).To(Equal(failure.Gate))
		Expect(v.Text).To(Equal("failed: pass_rate of haiku has no data, bound == 1"))
	})
	It("makes code 5 of the error rate, never 1", func() {
		s := summary(with("error_rate", results.Metric{Value: number(0.25), N: 200}))
		t := results.Tally{Columns: []results.ColumnTally{{Unavailable: 50}}, Causes: []results.Cause{{Status: eval.Error, Cause: "provider", Detail: "HTTP 429", Items: 50}}}
		v := decide(s, t, gate.Input{})
		Expect(v.Code).To(Equal(failure.Unavailable))
		Expect(v.Text).To(Equal("unavailable: 50 items could not be judged (provider HTTP 429): error_rate 0.25, bound == 0"))
		Expect(decide(s, t, gate.Input{IgnoreChecks: true}).Code).To(Equal(failure.Unavailable))
		Expect(decide(s, t, gate.Input{}, gate.Spec{Metric: "error_rate", Bound: "<= 0.3"}).Code).To(Equal(failure.OK))
	})
	It("does not hide a proven failure behind an outage", func() {
		metrics := with("error_rate", results.Metric{Value: number(0.25), N: 200})
		metrics["pass_rate"] = results.Metric{Value: number(0.5), N: 150}
		v := decide(summary(metrics), results.Tally{}, gate.Input{})
		Expect(v.Code).To(Equal(failure.Gate))
		Expect(v.Reasons).To(HaveLen(2))
		Expect(v.Text).To(HaveSuffix("(and 1 more)"))
	})
	It("takes a gate without data for a failure only where nothing else explains it", func() {
		metrics := with("error_rate", results.Metric{Value: number(1), N: 200})
		metrics["pass_rate"] = results.Metric{}
		s := summary(metrics)
		Expect(decide(s, results.Tally{}, gate.Input{}).Code).To(Equal(failure.Unavailable))
		Expect(s.Gates[0].Status).To(Equal(results.GateNoData))
		stale := results.Tally{Causes: []results.Cause{{Status: eval.Stale, Cause: eval.CauseMissing, Items: 1, First: eval.Result{Item: "a"}}}}
		Expect(decide(s, stale, gate.Input{}).Reasons).To(HaveLen(2))
		Expect(decide(s, results.Tally{}, gate.Input{}, gate.Spec{Metric: "error_rate", Off: true}, gate.Spec{Metric: "pass_rate", Bound: ">= 0.5"}).Code).To(Equal(failure.Gate), "nothing explains it")
	})
	It("says each cause of staleness once, with the command", func() {
		t := results.Tally{Causes: []results.Cause{
			{Status: eval.Stale, Cause: eval.CauseDrift, Detail: "system-prompt", Items: 187, First: eval.Result{Item: "a"}},
			{Status: eval.Stale, Cause: eval.CauseMissing, Items: 1, First: eval.Result{Item: "it's"}},
		}}
		v := decide(summary(good), t, gate.Input{})
		Expect(v.Code).To(Equal(failure.Cassette))
		Expect(v.Text).To(Equal("cassettes: 0 of 200 results stale"))
		Expect(*v.Reasons[0].Hint).To(Equal("echoeval record datasets/clinic.yaml --stale"))
		Expect(v.Reasons[1].Text).To(Equal("1 item stale: no cassette"))
		Expect(v.Reasons[1].Hint).To(Equal(v.Reasons[0].Hint))
		t.Causes = t.Causes[1:]
		Expect(*decide(summary(good), t, gate.Input{}).Reasons[0].Hint).To(Equal(`echoeval record datasets/clinic.yaml --item 'it'\''s' --stale`))
		Expect(*decide(summary(good), t, gate.Input{Record: "do it"}).Reasons[0].Hint).To(Equal(`do it --item 'it'\''s' --stale`))
	})
	It("counts violations whatever else happened, and leaves gates alone on request", func() {
		s := summary(with("invariant_violations", results.Metric{Value: number(3), N: 200}))
		t := results.Tally{Columns: []results.ColumnTally{{Violated: 2}}}
		v := decide(s, t, gate.Input{})
		Expect(v.Code).To(Equal(failure.Gate))
		Expect(*v.Reasons[0].Items).To(Equal(2))
		v = decide(s, t, gate.Input{IgnoreChecks: true})
		Expect(v.Code).To(Equal(failure.OK))
		Expect(v.Text).To(HaveSuffix("gates that failed do not count"))
		Expect(s.Gates[1].Status).To(Equal(results.GateFailed))
	})
	It("orders everything by precedence", func() {
		metrics := with("error_rate", results.Metric{Value: number(1), N: 200})
		metrics["pass_rate"] = results.Metric{Value: number(0.5), N: 2}
		t := results.Tally{Harness: 1, Causes: []results.Cause{
			{Status: eval.Error, Cause: "harness", Items: 1, Lines: 1, First: eval.Result{Error: &eval.ErrorInfo{Message: "boom"}}},
			{Status: eval.Stale, Cause: eval.CauseUnreadable, Items: 2},
			{Status: eval.NotRun, Cause: eval.CauseInterrupted, Items: 40},
		}}
		in := gate.Input{Errors: []error{
			nil, errors.New("no code"),
			errors.Join(failure.WithHint(failure.New(failure.Input, "the target sends no model request"), "set OPENAI_BASE_URL"), failure.New(failure.Unavailable, "gone")),
		}}
		v := decide(summary(metrics), t, in)
		var codes []failure.Code
		for _, r := range v.Reasons {
			codes = append(codes, r.Code)
		}
		Expect(codes).To(Equal([]failure.Code{130, 2, 3, 3, 4, 1, 5, 5}))
		Expect(v.Code).To(Equal(failure.Interrupted))
		Expect(v.Text).To(Equal("interrupted: 40 of 200 items not run (and 7 more)"))
		Expect(*v.Reasons[0].Hint).To(Equal("echoeval run --resume clinic"))
		Expect(*v.Reasons[1].Hint).To(Equal("set OPENAI_BASE_URL"))
		Expect(v.Reasons[3].Text).To(Equal("the harness itself failed on 1 result: boom"))
	})
	It("is an interruption also where everything had finished", func() {
		Expect(decide(summary(good), results.Tally{}, gate.Input{Interrupted: true}).Code).To(Equal(failure.Interrupted))
	})
	It("has one code over several datasets", func() {
		Expect(gate.Code()).To(Equal(failure.OK))
		Expect(gate.Code(results.Verdict{Code: 5}, results.Verdict{}, results.Verdict{Code: 1})).To(Equal(failure.Gate))
	})
})

func FuzzParse(f *testing.F) {
	for _, bound := range []string{">= 0.95", "<=1s", "== 1 ms", "> -1", "", "<", ">=\x00", "<= 9999999999999999999999999999"} {
		f.Add("p95_latency", bound)
		f.Add("pass_rate", bound)
	}
	f.Fuzz(func(t *testing.T, metric, bound string) {
		gates, err := gate.Parse([]gate.Spec{{Metric: metric, Bound: bound, Pos: pos}})
		if err != nil {
			if failure.CodeOf(err) != failure.Input {
				t.Fatalf("%v has code %d", err, failure.CodeOf(err))
			}
			return
		}
		// What is accepted is written so that it is accepted again, with the same meaning.
		out := gate.Evaluate(gates[:1], []results.Provider{column("p", nil)}, nil)
		again, err := gate.Parse([]gate.Spec{{Metric: metric, Bound: *out[0].Bound, Pos: pos}})
		if err != nil {
			t.Fatalf("%q became %q: %v", bound, *out[0].Bound, err)
		}
		if again[0] != gates[0] {
			t.Fatalf("%q became %q", bound, *out[0].Bound)
		}
	})
}
