package baseline_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

func TestBaseline(t *testing.T) { suite.Run(t, "baseline") }

func ptr[T any](v T) *T { return &v }

// made is a finished run of a size, whose lines edit may change. The trace of every line calls two tools, which ended in the other order.
func made(tb testing.TB, size resultstest.Size, edit func(*eval.Result)) *results.Run {
	tb.Helper()
	g := NewWithT(tb)
	runs := tb.TempDir()
	plan := size.Plan()
	id, dir, err := results.NewFolder(runs, resultstest.Start, plan.Dataset.Name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results.WriteManifest(dir, results.Manifest{ID: id, Started: resultstest.Start, Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	g.Expect(err).NotTo(HaveOccurred())
	for index := 1; index <= size.Items; index++ {
		for column := range size.Providers {
			for repeat := 1; repeat <= size.Repeats; repeat++ {
				line := resultstest.Line(index, column, repeat)
				if edit != nil {
					edit(&line)
				}
				t := trace.Trace{Events: []trace.Event{
					{N: 1, Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 2, CallID: "b", Name: "book", Arguments: `{}`, Outcome: trace.Executed, Result: `1`}},
					{N: 2, Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 1, CallID: "a", Name: "contacts", Arguments: `{}`, Outcome: trace.Executed, Result: `1`}},
				}}
				raw := append(t.AppendJSON([]byte(`{"v":1,"item":{},"events":`)), '}')
				g.Expect(journal.Append(line, raw, column)).To(Succeed())
			}
		}
	}
	g.Expect(journal.Close()).To(Succeed())
	_, err = results.Fold(dir, plan)
	g.Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	g.Expect(err).NotTo(HaveOccurred())
	tb.Cleanup(func() { g.Expect(run.Close()).To(Succeed()) })
	return run
}

func accepted(run *results.Run) *baseline.File {
	GinkgoHelper()
	f, err := baseline.FromRun(run)
	Expect(err).NotTo(HaveOccurred())
	return baseline.Accept(nil, f, true)
}

func odd(line *eval.Result) {
	switch line.Item {
	case "item-000002": // flaky, dear, slow, and of a broken invariant
		line.Output = ptr("line one\r\n\x1b[31m<b>🩺</b> \u2028 \xff" + strings.Repeat("漢", 2_000))
		line.CostUSD, line.LatencyMS = ptr(*line.CostUSD+1), ptr(int64(line.Repeat))
		if line.Repeat == 2 {
			line.Status, line.Cause, line.Score = eval.Fail, ptr(eval.CauseInvariant), ptr(eval.Fraction(1)/3)
			line.Invariants.Violations = []eval.Violation{{Name: "web-then-exec", Severity: eval.SeverityError}, {Name: "web-then-exec", Severity: eval.SeverityError}, {Name: "tidy", Severity: eval.SeverityWarn}}
		}
	case "item-000003":
		line.CostUSD, line.Output, line.Score, line.Trace = nil, nil, nil, nil
	case "item-000004":
		*line = eval.Result{V: 1, Item: line.Item, Index: line.Index, Provider: line.Provider, Repeat: line.Repeat, ItemHash: line.ItemHash, ChecksHash: line.ChecksHash, Status: eval.Skipped, Cause: ptr(eval.CauseDataset)}
	}
}

var _ = Describe("a baseline", func() {
	It("is the golden file, one line an item and provider, and comes back byte by byte", func() {
		f := accepted(made(GinkgoTB(), resultstest.Size{Items: 12, Providers: 2, Repeats: 2}, odd))
		text := f.Append(nil)
		suite.Golden("regular.json", text)
		Expect(bytes.Count(text, []byte("\n{\"item\":"))).To(Equal(22), "two columns of twelve items, one of them skipped")
		back, err := baseline.Decode("regular.json", text)
		Expect(err).NotTo(HaveOccurred())
		Expect(back).To(Equal(f))
		Expect(string(back.Append(nil))).To(Equal(string(text)))
		Expect(back.Hash()).To(Equal(f.Hash()))
		Expect(f.Hash()).To(MatchRegexp(`^[0-9a-f]{16}$`))
		crlf, err := baseline.Decode("regular.json", bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
		Expect(err).NotTo(HaveOccurred())
		Expect(crlf.Hash()).To(Equal(f.Hash()), "line ends that git has changed do not count")
	})

	It("is written atomically and made again with the same bytes", func() {
		path := filepath.Join(GinkgoT().TempDir(), "baselines", "regular.json")
		size := resultstest.Size{Items: 3, Providers: 1, Repeats: 1}
		Expect(baseline.Write(path, accepted(made(GinkgoTB(), size, nil)))).To(Succeed())
		first, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(baseline.Write(path, accepted(made(GinkgoTB(), size, nil)))).To(Succeed())
		Expect(os.ReadFile(path)).To(Equal(first))
		left, err := os.ReadDir(filepath.Dir(path))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(HaveLen(1))
		Expect(failure.CodeOf(baseline.Write(filepath.Join(path, "below-a-file.json"), &baseline.File{}))).To(Equal(failure.Internal))
	})

	DescribeTable("is not made of a run with lines that got no verdict", func(status eval.Status) {
		run := made(GinkgoTB(), resultstest.Size{Items: 20, Providers: 1, Repeats: 1}, func(line *eval.Result) {
			if line.Index > 5 {
				line.Status, line.Cause = status, ptr("x")
			}
		})
		_, err := baseline.FromRun(run)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(And(ContainSubstring("15 results of"), ContainSubstring("item-000006 on p0 ("+string(status)+")"), ContainSubstring("and 5 more"))))
	}, Entry(nil, eval.Error), Entry(nil, eval.Stale), Entry(nil, eval.Unjudged), Entry(nil, eval.NotRun))

	It("is not made of a run that judged nothing, or was killed", func() {
		run := made(GinkgoTB(), resultstest.Size{Items: 2, Providers: 1, Repeats: 1}, func(line *eval.Result) { line.Status = eval.Skipped })
		_, err := baseline.FromRun(run)
		Expect(err).To(MatchError(ContainSubstring("judged nothing")))
		dir, err := resultstest.Gallery(GinkgoT().TempDir(), true)
		Expect(err).NotTo(HaveOccurred())
		killed, err := results.Open(dir)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(killed.Close)
		_, err = baseline.FromRun(killed)
		Expect(err).To(MatchError(ContainSubstring("incomplete")))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	})

	It("takes from a part of a run only the lines that ran", func() {
		old := accepted(made(GinkgoTB(), resultstest.Size{Items: 12, Providers: 2, Repeats: 2}, nil))
		part := accepted(made(GinkgoTB(), resultstest.Size{Items: 3, Providers: 1, Repeats: 1}, func(line *eval.Result) { line.Item += "-new" }))
		part.Items[0].Item = "item-000001"
		part.Items[0].Answer = ptr("otherwise")
		f := baseline.Accept(old, part, false)
		Expect(f.Items).To(HaveLen(26))
		Expect(f.Repeat).To(Equal(2))
		Expect(f.Providers).To(HaveLen(2))
		added, changed, removed := f.Changes(old)
		Expect([]int{added, changed, removed}).To(Equal([]int{2, 1, 0}))
		_, err := baseline.Decode("b.json", f.Append(nil))
		Expect(err).NotTo(HaveOccurred(), "it is sorted again")

		whole := baseline.Accept(old, part, true)
		Expect(whole.Items).To(HaveLen(3))
		Expect(whole.Providers).To(HaveLen(1))
		Expect(whole.Repeat).To(Equal(1))
		added, changed, removed = whole.Changes(old)
		Expect([]int{added, changed, removed}).To(Equal([]int{2, 1, 23}))
		Expect(whole.Moved(old)).To(Equal(1), "one repeat in place of two")
		Expect(old.Moved(old)).To(BeZero())
	})
})

const good = `{"v":1,"dataset":"d","dataset_hash":"7a1f0c33d2b94e58","repeat":1,
"providers":{"a":{"model":"m","agent_hash":"x","prompt_hash":"y","tools_hash":"z"}},
"items":[
{"item":"i1","provider":"a","item_hash":"1","checks_hash":"2","passed":[true],"scores":[0.5],"failed":[],"violations":[],"calls":null,"cost_usd":null,"latency_ms":null,"answer":null},
{"item":"i2","provider":"a","item_hash":"1","checks_hash":"2","passed":[null],"scores":[null],"failed":["x"],"violations":["y"],"calls":[],"cost_usd":0.000000001,"latency_ms":0,"answer":""}
]}
`

var _ = Describe("a file that people edit", func() {
	It("is read as it stands", func() {
		f, err := baseline.Decode("b.json", []byte(good))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(f.Append(nil))).To(Equal(good))
		empty := `{"v":1,"dataset":"d","dataset_hash":"","repeat":0,` + "\n" + `"providers":{},` + "\n" + `"items":[` + "\n]}\n"
		f, err = baseline.Decode("b.json", []byte(empty))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(f.Append(nil))).To(Equal(empty))
	})

	DescribeTable("is refused with the place", func(before, after, place, message string) {
		Expect(good).To(ContainSubstring(before))
		_, err := baseline.Decode("b.json", []byte(strings.Replace(good, before, after, 1)))
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err.Error()).To(HavePrefix("b.json:" + place))
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.Hints(err)).NotTo(BeEmpty())
	},
		Entry("of another version", `"v":1`, `"v":2`, "1:6", "format version 2 was written by a later echoeval"),
		Entry("of no version", `"v":1,`, ``, "1:1", `"v"`),
		Entry("of version 0", `"v":1`, `"v":0`, "1:6", "no format version 0"),
		Entry("with a conflict", "{\"item\":\"i2\"", "<<<<<<< HEAD\n{\"item\":\"i2\"", "5", "unresolved merge"),
		Entry("that is cut off", "]}\n", "", "6", ""),
		Entry("that is no object", good, "[]", "1:1", ""),
		Entry("that is empty", good, "", "1", "empty"),
		Entry("with an unknown key", `"failed":["x"]`, `"faild":["x"]`, "5:", "faild"),
		Entry("with a key twice", `"failed":["x"]`, `"failed":["x"],"failed":[]`, "5:", "a second time"),
		Entry("with a key missing", `"violations":["y"],`, ``, "5:1", "violations"),
		Entry("with a number for a name", `"item":"i2"`, `"item":2`, "5:9", ""),
		Entry("without an id", `"item":"i1"`, `"item":""`, "4:9", "no id"),
		Entry("with an item twice", `"item":"i2"`, `"item":"i1"`, "5:1", "a second time"),
		Entry("with lines out of order", `"item":"i2"`, `"item":"i0"`, "5:1", "stands behind"),
		Entry("with a provider that is not declared", `"item":"i2","provider":"a"`, `"item":"i2","provider":"b"`, "5:25", `unknown provider "b"`),
		Entry("with providers out of order", `"providers":{`, `"providers":{"b":{"model":"m","agent_hash":"x","prompt_hash":"y","tools_hash":"z"},`, "2:84", "stands behind"),
		Entry("with a score above 1", `0.5`, `1.5`, "4:89", "a number from 0 to 1"),
		Entry("with a score in words", `0.5`, `"half"`, "4:89", "a number from 0 to 1"),
		Entry("with a repeat that has no score", `"scores":[0.5]`, `"scores":[]`, "4:72", "scores has 0"),
		Entry("without a repeat", `"passed":[true],"scores":[0.5]`, `"passed":[],"scores":[]`, "4:72", "0 entries"),
		Entry("with another number of repeats", `"repeat":1`, `"repeat":3`, "1:65", "have up to 1"),
		Entry("with a negative cost", `0.000000001`, `-1`, "5:", "US dollars"),
		Entry("with a negative latency", `"latency_ms":0`, `"latency_ms":-1`, "5:", "not negative"),
		Entry("with a yes", `[true]`, `["yes"]`, "4:73", ""),
		Entry("of no dataset", `"dataset":"d"`, `"dataset":""`, "1:18", "no name"),
		Entry("with items that are no list", good[strings.Index(good, "[\n{"):], "{}}", "3:9", ""),
	)

	It("tells many problems at once", func() {
		text := strings.ReplaceAll(good, `"provider":"a"`, `"provider":"z"`)
		_, err := baseline.Decode("b.json", []byte(text))
		Expect(strings.Count(err.Error(), "unknown provider")).To(Equal(2))
	})
})

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.ReplaceAll(good, "\n", "\r\n")))
	f.Add([]byte(`{"v":1,"dataset":"d","dataset_hash":"","repeat":0,"providers":{},"items":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := baseline.Decode("b.json", data)
		if err != nil {
			if failure.CodeOf(err) != failure.Input {
				t.Fatalf("code %d: %v", failure.CodeOf(err), err)
			}
			return
		}
		text := file.Append(nil)
		again, err := baseline.Decode("b.json", text)
		if err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, text)
		}
		if out := again.Append(nil); !bytes.Equal(out, text) {
			t.Fatalf("not the same bytes:\n%s\n%s", text, out)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	f := large(10_000)
	text := f.Append(nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := baseline.Decode("b.json", text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	size := resultstest.Size{Items: 10_000, Providers: 1, Repeats: 1}
	run := made(b, size, nil)
	f, err := baseline.FromRun(run)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c := baseline.NewComparer(f, nil)
		for line, err := range run.Lines() {
			if err != nil {
				b.Fatal(err)
			}
			c.Add(&line)
		}
		if r := c.Finish(baseline.Now{Providers: size.Head().Providers, Mode: "replay", Whole: true}); r.Comparisons[0].Pairs != 10_000 {
			b.Fatal(r.Comparisons[0])
		}
	}
}

func large(n int) *baseline.File {
	f := &baseline.File{Dataset: "d", DatasetHash: "7a1f0c33d2b94e58", Repeat: 1, Providers: []baseline.Provider{{ID: "a"}}}
	for i := range n {
		f.Items = append(f.Items, baseline.Item{
			Item: fmt.Sprintf("item-%06d", i), Provider: "a", ItemHash: "51c0b8a2e97d4f06", ChecksHash: "0e4d2b7a91c3f855", Passed: []*bool{ptr(true)}, Scores: []*eval.Fraction{ptr(eval.Fraction(1))},
			Calls: []string{"contacts", "book"}, LatencyMS: ptr(int64(1790)), Answer: ptr(strings.Repeat("Call 112 now. ", 20)),
		})
	}
	return f
}
