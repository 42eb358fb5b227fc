package results_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/harness/stats"
)

func TestResults(t *testing.T) { suite.Run(t, "results") }

func ptr[T any](v T) *T { return &v }

func file(elem ...string) []byte {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(elem...))
	Expect(err).NotTo(HaveOccurred())
	return data
}

// tree returns every file below dir but those named.
func tree(dir string, except ...string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	Expect(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && !slices.Contains(except, name) {
			out[filepath.ToSlash(name)] = string(file(path))
		}
		return err
	})).To(Succeed())
	return out
}

// lines reads all lines of a run.
func lines(run *results.Run) ([]eval.Result, error) {
	var out []eval.Result
	for line, err := range run.Lines() {
		if err != nil {
			return out, err
		}
		out = append(out, line)
	}
	return out, nil
}

// place is a line of a regular run.
type place struct{ index, column, repeat int }

func places(s resultstest.Size) []place {
	var out []place
	for index := 1; index <= s.Items; index++ {
		for column := range s.Providers {
			for repeat := 1; repeat <= s.Repeats; repeat++ {
				out = append(out, place{index, column, repeat})
			}
		}
	}
	return out
}

func appendPlace(journal *results.Journal, p place) error {
	line := resultstest.Line(p.index, p.column, p.repeat)
	return journal.Append(line, resultstest.RawTrace(line, 200), p.column)
}

// newRun makes a folder with a manifest.
func newRun(head results.Head) string {
	GinkgoHelper()
	_, dir, err := results.NewFolder(GinkgoT().TempDir(), resultstest.Start, head.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{ID: filepath.Base(dir), Started: resultstest.Start, Plan: head})).To(Succeed())
	return dir
}

// journaled makes a run whose journal holds the given lines of a regular run, in that order.
func journaled(s resultstest.Size, list []place) string {
	GinkgoHelper()
	dir := newRun(s.Head())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	for _, p := range list {
		Expect(appendPlace(journal, p)).To(Succeed())
	}
	Expect(journal.Close()).To(Succeed())
	return dir
}

func folded(s resultstest.Size) (string, *results.Summary) {
	GinkgoHelper()
	dir := journaled(s, places(s))
	summary, err := results.Fold(dir, s.Plan())
	Expect(err).NotTo(HaveOccurred())
	return dir, summary
}

func open(dir string) *results.Run {
	GinkgoHelper()
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

var _ = Describe("the bytes of the contract", func() {
	It("of a result line come back as they are", func() {
		want := bytes.TrimSpace(file("testdata", "line.json"))
		var line eval.Result
		Expect(json.Unmarshal(want, &line, json.RejectUnknownMembers(true))).To(Succeed())
		Expect(string(results.AppendLine(nil, &line))).To(Equal(string(want)))
	})
	It("of a summary come back as they are", func() {
		want := bytes.TrimSpace(file("testdata", "summary.json"))
		var summary results.Summary
		Expect(json.Unmarshal(want, &summary, json.RejectUnknownMembers(true))).To(Succeed())
		got, err := summary.AppendJSON(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(got)).To(Equal(string(want)))
	})
	It("of an empty summary hold every key, lists and maps as empty ones", func() {
		got, err := (&results.Summary{}).AppendJSON(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(got)).To(ContainSubstring(`"providers":[],"invariants":[],"gates":[],"regression":null,"pairs":[],"quarantined":{"count":0,"items":[]},"cassettes":{"fresh":0,"stale":0,"missing":0,"orphaned":0,"by_class":{},"served_across_drift":0}`))
	})
})

var _ = Describe("a result line", func() {
	// fill sets every field of v to something that is not its zero value, so that a field which the encoder forgot shows.
	var fill func(v reflect.Value, depth int)
	fill = func(v reflect.Value, depth int) {
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range 2 {
				fill(v.Index(i), depth+1)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), depth+1)
			}
		case reflect.String:
			v.SetString(fmt.Sprintf("text <%d> \"\u2028 \\ é", depth))
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(1000 + depth))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Float64:
			v.SetFloat(0.333333)
		default:
			Fail("the test does not know " + v.Kind().String())
		}
	}

	It("is written as encoding by reflection would, field by field", func() {
		for _, line := range []eval.Result{{}, func() (r eval.Result) { fill(reflect.ValueOf(&r).Elem(), 0); return }(), resultstest.Line(1, 0, 1), resultstest.Line(10, 0, 1)} {
			want, err := json.Marshal(line)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(results.AppendLine(nil, &line))).To(Equal(string(want)))
		}
	})

	It("is cut at its bounds, at a character", func() {
		line := resultstest.Line(1, 0, 1)
		line.Output = ptr(strings.Repeat("é", results.MaxOutput))
		line.Checks[0].Expected = ptr(strings.Repeat("🩺", results.MaxText+1))
		line.Checks[0].Actual = ptr(strings.Repeat("e", results.MaxText))
		line.Checks[0].Reason = strings.Repeat("é", results.MaxText)
		var got eval.Result
		Expect(json.Unmarshal(results.AppendLine(nil, &line), &got)).To(Succeed())
		Expect(*got.Output).To(HaveLen(results.MaxOutput))
		Expect(got.OutputCut).To(BeTrue())
		Expect(utf8.RuneCountInString(*got.Checks[0].Expected)).To(Equal(results.MaxText))
		Expect(*got.Checks[0].Actual).To(Equal(*line.Checks[0].Actual))
		Expect(got.Checks[0].Reason).To(Equal(line.Checks[0].Reason))
		Expect(line.OutputCut).To(BeFalse(), "the caller's line stays as it is")
	})

	It("takes text that is not UTF-8 and cuts it too", func() {
		line := resultstest.Line(1, 0, 1)
		line.Output = ptr("a\xff" + strings.Repeat("\x80", results.MaxOutput))
		line.Item = "b\xfe"
		got := results.AppendLine(nil, &line)
		Expect(jsontext.Value(got).IsValid()).To(BeTrue())
		Expect(string(got)).To(ContainSubstring(`"item":"b` + "\ufffd"))
	})
})

func FuzzLine(f *testing.F) {
	f.Add("item", "output", 0.5, int64(12), []byte("trace"))
	f.Add("", "\xff\x00\n", -1.0, int64(-9e18), []byte(`{"a":[1,"\n"]}`))
	f.Fuzz(func(t *testing.T, item, output string, score float64, cost int64, _ []byte) {
		line := resultstest.Line(1, 0, 1)
		line.Item, line.Output = item, &output
		line.Score = ptr(eval.Fraction(score))
		*line.CostUSD = 0
		once := results.AppendLine(nil, &line)
		if !jsontext.Value(once).IsValid() || bytes.IndexByte(once, '\n') >= 0 {
			t.Fatalf("no line of JSON: %s", once)
		}
		var back eval.Result
		if err := json.Unmarshal(once, &back); err != nil {
			t.Fatal(err)
		}
		if twice := results.AppendLine(nil, &back); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nbecame\n%s", once, twice)
		}
	})
}

var _ = Describe("a run", func() {
	size := resultstest.Size{Items: 40, Providers: 2, Repeats: 2}

	It("ends in the same bytes in any order of completion", func() {
		want := tree(first(folded(size)), "manifest.json")
		Expect(want).To(HaveLen(3))
		Expect(strings.Count(want["results.jsonl"], "\n")).To(Equal(160))
		for seed := range uint64(5) {
			list := places(size)
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
			dir := journaled(size, list)
			_, err := results.Fold(dir, size.Plan())
			Expect(err).NotTo(HaveOccurred())
			Expect(tree(dir, "manifest.json")).To(Equal(want))
		}
	})

	It("takes lines from many goroutines", func() {
		want := tree(first(folded(size)), "manifest.json")
		dir := newRun(size.Head())
		journal, err := results.Create(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		var group sync.WaitGroup
		list := places(size)
		for worker := range 8 {
			group.Go(func() {
				for i := worker; i < len(list); i += 8 {
					if err := appendPlace(journal, list[i]); err != nil {
						panic(err)
					}
				}
			})
		}
		group.Wait()
		Expect(journal.Close()).To(Succeed())
		_, err = results.Fold(dir, size.Plan())
		Expect(err).NotTo(HaveOccurred())
		Expect(tree(dir, "manifest.json")).To(Equal(want))
	})

	It("is read back line by line, with each trace", func() {
		dir, _ := folded(size)
		run := open(dir)
		Expect(run.Incomplete).To(BeFalse())
		got, err := lines(run)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(HaveLen(160))
		for i, p := range places(size) {
			want := resultstest.Line(p.index, p.column, p.repeat)
			Expect(got[i].Key()).To(Equal(want.Key()))
			raw, ok, err := run.RawTrace(got[i])
			Expect(err).NotTo(HaveOccurred())
			Expect(ok).To(BeTrue())
			Expect(raw).To(Equal(resultstest.RawTrace(want, 200)))
		}
		trace, ok, err := run.Trace(got[0])
		Expect(err).NotTo(HaveOccurred())
		Expect(ok).To(BeTrue())
		Expect(string(trace.Item)).To(HavePrefix(`{"id":"item-000001"`))
		Expect(trace.Events.Events).To(BeEmpty())
	})

	It("keeps the traces of what did not pass, on request", func() {
		plan := size.Plan()
		plan.Traces = results.KeepFailed
		dir := journaled(size, places(size))
		_, err := results.Fold(dir, plan)
		Expect(err).NotTo(HaveOccurred())
		run := open(dir)
		kept := 0
		got, err := lines(run)
		Expect(err).NotTo(HaveOccurred())
		for _, line := range got {
			_, ok, err := run.RawTrace(line)
			Expect(err).NotTo(HaveOccurred())
			Expect(ok).To(Equal(line.Status == eval.Fail))
			if ok {
				kept++
			}
		}
		Expect(kept).To(Equal(16))
		Expect(strings.Count(tree(dir)["traces/001.jsonl"], "\n")).To(Equal(16))
	})

	It("begins a segment after ten thousand traces", func() {
		large := resultstest.Size{Items: results.SegmentSize + 5, Providers: 1, Repeats: 1}
		dir, _ := folded(large)
		files := tree(dir)
		Expect(strings.Count(files["traces/001.jsonl"], "\n")).To(Equal(results.SegmentSize))
		Expect(strings.Count(files["traces/002.jsonl"], "\n")).To(Equal(5))
		run := open(dir)
		got, err := lines(run)
		Expect(err).NotTo(HaveOccurred())
		for _, i := range []int{0, results.SegmentSize - 1, results.SegmentSize, results.SegmentSize + 4, 3} {
			raw, _, err := run.RawTrace(got[i])
			Expect(err).NotTo(HaveOccurred())
			Expect(string(raw)).To(ContainSubstring(got[i].Item))
		}
	})

	It("lists what never finished as not run", func() {
		list := slices.DeleteFunc(places(size), func(p place) bool { return p.index%7 == 0 })
		dir := journaled(size, list)
		summary, err := results.Fold(dir, size.Plan())
		Expect(err).NotTo(HaveOccurred())
		Expect(summary.Counts.NotRun).To(Equal(20))
		Expect(summary.Complete).To(BeFalse())
		got, err := lines(open(dir))
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(HaveLen(160))
		missing := 0
		for _, line := range got {
			if line.Index%7 == 0 {
				missing++
				Expect(line.Status).To(Equal(eval.NotRun))
				Expect(*line.Cause).To(Equal(eval.CauseInterrupted))
				Expect(line.Trace).To(BeNil())
				Expect(line.Tags).To(Equal([]string{"regular"}))
			}
		}
		Expect(missing).To(Equal(20))
	})

	It("may have nothing finished, or nothing at all", func() {
		dir := journaled(size, nil)
		plan := size.Plan()
		plan.NotRun = eval.CauseBudget
		summary, err := results.Fold(dir, plan)
		Expect(err).NotTo(HaveOccurred())
		Expect(summary.Counts).To(Equal(results.Counts{NotRun: 160}))
		Expect(summary.Providers[0].Metrics["error_rate"].Value).To(Equal(ptr(results.Number(1))))
		Expect(summary.Providers[0].Metrics["pass_rate"].Value).To(BeNil())

		empty := resultstest.Size{Providers: 1, Repeats: 1}
		dir = journaled(empty, nil)
		_, err = results.Fold(dir, empty.Plan())
		Expect(err).NotTo(HaveOccurred())
		got, err := lines(open(dir))
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(BeEmpty())
	})

	DescribeTable("that does not fit its plan is an error, and keeps its journal", func(change func(*results.Plan), message string) {
		dir := journaled(size, places(size)[:150])
		before := tree(dir)
		plan := size.Plan()
		change(&plan)
		_, err := results.Fold(dir, plan)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(tree(dir)).To(Equal(before))
	},
		Entry("fewer columns", func(p *results.Plan) { p.Providers = p.Providers[:1] }, `provider "p1" is not column 2`),
		Entry("other columns", func(p *results.Plan) { p.Providers[0].ID = "q" }, `provider "p0" is not column 1`),
		Entry("no lines to compare with", func(p *results.Plan) { p.Each = nil }, "holds 150 lines, the plan has 160"),
		Entry("a plan of fewer items", func(p *results.Plan) { p.Each = resultstest.Size{Items: 3, Providers: 2, Repeats: 2}.Plan().Each }, "a line that the plan does not have: index 4, column 1"),
		Entry("a plan that counts wrongly", func(p *results.Plan) { p.Lines = 161 }, "yields 160 lines and says that it has 161"),
		Entry("a plan that fails", func(p *results.Plan) {
			p.Each = func(yield func(results.Planned, error) bool) { yield(results.Planned{}, fs.ErrPermission) }
		}, "permission denied"),
	)
})

func first[A, B any](a A, _ B) A { return a }

var _ = Describe("a run taken up again", func() {
	size := resultstest.Size{Items: 30, Providers: 2, Repeats: 1}

	// rest finishes what is not done, as a runner would.
	rest := func(dir string) {
		GinkgoHelper()
		journal, done, err := results.Resume(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		for _, p := range places(size) {
			if !done.Has(p.index, p.column, p.repeat) {
				Expect(appendPlace(journal, p)).To(Succeed())
			}
		}
		Expect(journal.Close()).To(Succeed())
	}

	It("ends in the same bytes, wherever it was cut off", func() {
		want := tree(first(folded(size)), "manifest.json")
		whole := file(journaled(size, places(size)), "journal.jsonl")
		random := rand.New(rand.NewPCG(7, 7))
		cuts := []int{0, 1, len(whole) - 1, len(whole)}
		for range 20 {
			cuts = append(cuts, random.IntN(len(whole)))
		}
		for _, cut := range cuts {
			dir := newRun(size.Head())
			Expect(os.WriteFile(filepath.Join(dir, "journal.jsonl"), whole[:cut], 0o644)).To(Succeed())
			run := open(dir)
			got, err := lines(run)
			Expect(err).NotTo(HaveOccurred())
			Expect(run.Incomplete).To(BeTrue())
			Expect(got).To(HaveLen(bytes.Count(whole[:cut], []byte("\n"))))
			rest(dir)
			_, err = results.Fold(dir, size.Plan())
			Expect(err).NotTo(HaveOccurred())
			Expect(tree(dir, "manifest.json")).To(Equal(want), "cut at byte %d", cut)
		}
	})

	It("ends in the same bytes after it was folded", func() {
		want := tree(first(folded(size)), "manifest.json")
		for _, keep := range []results.Keep{results.KeepAll, results.KeepFailed} {
			dir := journaled(size, places(size)[11:47])
			plan := size.Plan()
			plan.Traces = keep
			_, err := results.Fold(dir, plan)
			Expect(err).NotTo(HaveOccurred())
			rest(dir)
			Expect(open(dir).Incomplete).To(BeTrue(), "the journal counts while it is there")
			_, err = results.Fold(dir, plan)
			Expect(err).NotTo(HaveOccurred())
			got := tree(dir, "manifest.json")
			if keep == results.KeepAll {
				Expect(got).To(Equal(want))
			} else {
				all := journaled(size, places(size))
				_, err := results.Fold(all, plan)
				Expect(err).NotTo(HaveOccurred())
				Expect(got).To(Equal(tree(all, "manifest.json")))
			}
		}
	})

	It("repeats errors and keeps every other verdict", func() {
		dir := newRun(size.Head())
		journal, err := results.Create(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		for i, status := range eval.Statuses {
			line := resultstest.Line(i+1, 0, 1)
			line.Status, line.Cause = status, ptr("x")
			Expect(journal.Append(line, nil, 0)).To(Succeed())
		}
		Expect(journal.Close()).To(Succeed())
		journal, done, err := results.Resume(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		Expect(journal.Close()).To(Succeed())
		for i, status := range eval.Statuses {
			Expect(done.Has(i+1, 0, 1)).To(Equal(status != eval.Error && status != eval.NotRun), string(status))
		}
		Expect(done.Len()).To(Equal(5))
	})

	It("lets the later of two lines of one item count", func() {
		dir := newRun(size.Head())
		journal, err := results.Create(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		line := resultstest.Line(1, 0, 1)
		line.Status, line.Cause = eval.Error, ptr("provider")
		Expect(journal.Append(line, []byte(`{"v":1,"item":{},"events":[]}`), 0)).To(Succeed())
		for _, p := range places(size) {
			Expect(appendPlace(journal, p)).To(Succeed())
		}
		Expect(journal.Close()).To(Succeed())
		_, err = results.Fold(dir, size.Plan())
		Expect(err).NotTo(HaveOccurred())
		Expect(tree(dir, "manifest.json")).To(Equal(tree(first(folded(size)), "manifest.json")))
	})

	It("has a journal already: Create refuses", func() {
		dir := journaled(size, nil)
		_, err := results.Create(dir, resultstest.Clock())
		Expect(err).To(MatchError(fs.ErrExist))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	})
})

var _ = Describe("a crash while folding", func() {
	size := resultstest.Size{Items: 12, Providers: 1, Repeats: 1}

	// Each step leaves the folder as a crash right after it would.
	It("leaves the journal or the results whole, at every step", func() {
		want := tree(first(folded(size)), "manifest.json")
		journal := file(journaled(size, places(size)), "journal.jsonl")
		write := func(name, text string) func(dir string) {
			return func(dir string) {
				path := filepath.Join(dir, filepath.FromSlash(name))
				Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
				Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
			}
		}
		steps := []func(dir string){
			write("traces.tmp/001.jsonl.tmp", "{\"v"),
			write("traces.tmp/001.jsonl", want["traces/001.jsonl"]),
			write("results.jsonl.tmp", want["results.jsonl"][:100]),
			write("summary.json.tmp", "{"),
			write("traces/001.jsonl", "old"),
			write("traces/009.jsonl", "older"),
			write("results.jsonl", "old\n"),
			write("summary.json", "old"),
		}
		for n := range len(steps) + 1 {
			dir := newRun(size.Head())
			write("journal.jsonl", string(journal))(dir)
			for _, step := range steps[:n] {
				step(dir)
			}
			run := open(dir)
			got, err := lines(run)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(HaveLen(12))
			raw, ok, err := run.RawTrace(got[3])
			Expect(err).NotTo(HaveOccurred())
			Expect(ok).To(BeTrue())
			Expect(string(raw)).To(ContainSubstring(got[3].Item))
			_, err = results.Fold(dir, size.Plan())
			Expect(err).NotTo(HaveOccurred())
			Expect(tree(dir, "manifest.json")).To(Equal(want), "crashed after step %d", n)
		}
	})
})

var _ = Describe("a damaged folder", func() {
	size := resultstest.Size{Items: 5, Providers: 1, Repeats: 1}

	edit := func(dir, name string, change func([]byte) []byte) {
		GinkgoHelper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		Expect(os.WriteFile(path, change(file(path)), 0o644)).To(Succeed())
	}
	// read opens the run and reads all of it.
	read := func(dir string) error {
		run, err := results.Open(dir)
		if err != nil {
			return err
		}
		defer run.Close() // only read
		got, err := lines(run)
		if err != nil {
			return err
		}
		for _, line := range got {
			if _, _, err := run.Trace(line); err != nil {
				return err
			}
		}
		return nil
	}

	DescribeTable("of a finished run", func(name string, change func([]byte) []byte, message string, code failure.Code) {
		dir, _ := folded(size)
		Expect(read(dir)).To(Succeed())
		edit(dir, name, change)
		err := read(dir)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(code))
	},
		Entry("results cut within a line", "results.jsonl", func(b []byte) []byte { return b[:len(b)-10] }, "results.jsonl:5: the file is cut off within a line", failure.Internal),
		Entry("results cut between lines", "results.jsonl", func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }, "ends after 4 lines, summary.json counts 5", failure.Internal),
		Entry("no results", "results.jsonl", func(b []byte) []byte { return nil }, "ends after 0 lines", failure.Internal),
		Entry("a line that is no JSON", "results.jsonl", func(b []byte) []byte { b[0] = 'x'; return b }, "results.jsonl:1: the line is damaged", failure.Internal),
		Entry("a line that is empty", "results.jsonl", func(b []byte) []byte { return append([]byte("\n"), b...) }, "results.jsonl:1: the line is damaged", failure.Internal),
		Entry("a line of another type", "results.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(`"index":2`), []byte(`"index":"2"`), 1) }, "results.jsonl:2: the line is damaged", failure.Internal),
		Entry("a line without its key", "results.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(`"index":3`), []byte(`"inde":3`), 1) }, "results.jsonl:3: the line is damaged", failure.Internal),
		Entry("a line of a later version", "results.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(`{"v":1`), []byte(`{"v":2`), 1) }, "results.jsonl:1: format version 2", failure.Input),
		Entry("a summary of a later version", "summary.json", func(b []byte) []byte { return bytes.Replace(b, []byte(`{"v":1`), []byte(`{"v":7`), 1) }, "format version 7 was written by a later echoeval", failure.Input),
		Entry("a summary of a later version that means something else", "summary.json", func(b []byte) []byte { return []byte(`{"v":2,"dataset":"x"}`) }, "format version 2", failure.Input),
		Entry("a summary that is cut", "summary.json", func(b []byte) []byte { return b[:40] }, "summary.json: the file is damaged", failure.Internal),
		Entry("a summary without its version", "summary.json", func(b []byte) []byte { return []byte("{}") }, `"v" is missing`, failure.Internal),
		Entry("a manifest of a later version", "manifest.json", func(b []byte) []byte { return bytes.Replace(b, []byte(`"v": 1`), []byte(`"v": 2`), 1) }, "manifest.json: format version 2", failure.Input),
		Entry("a manifest that is empty", "manifest.json", func(b []byte) []byte { return nil }, "manifest.json: the file is damaged", failure.Internal),
		Entry("a trace that is cut", "traces/001.jsonl", func(b []byte) []byte { return b[:len(b)-10] }, "beyond the end of", failure.Internal),
		Entry("traces that moved", "traces/001.jsonl", func(b []byte) []byte { return append([]byte("0123456"), b...) }, "is damaged", failure.Internal),
		Entry("a trace that is no JSON", "traces/001.jsonl", func(b []byte) []byte { b[0] = 'x'; return b }, `the trace of item "item-000001" on p0, repeat 1, is damaged`, failure.Internal),
		Entry("a trace of a later version", "traces/001.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(`{"v":1`), []byte(`{"v":2`), 1) }, "format version 2", failure.Input),
		Entry("a trace without events", "traces/001.jsonl", func(b []byte) []byte { return bytes.Replace(b, []byte(`"events"`), []byte(`"event_"`), 1) }, "v or events is missing", failure.Internal),
	)

	DescribeTable("without a file", func(name, message string, code failure.Code) {
		dir, _ := folded(size)
		Expect(os.RemoveAll(filepath.Join(dir, name))).To(Succeed())
		err := read(dir)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(code))
	},
		Entry(nil, "manifest.json", "manifest.json: no such file", failure.Input),
		Entry(nil, "results.jsonl", "holds neither results.jsonl nor journal.jsonl", failure.Internal),
		Entry(nil, "summary.json", "summary.json: no such file", failure.Input),
		Entry(nil, "traces", `reading the trace of item "item-000001"`, failure.Internal),
	)

	DescribeTable("of a run that goes on", func(change func([]byte) []byte, message string, code failure.Code) {
		dir := journaled(size, places(size))
		Expect(read(dir)).To(Succeed())
		edit(dir, "journal.jsonl", change)
		for what, attempt := range map[string]func() error{
			"reading":  func() error { return read(dir) },
			"folding":  func() error { _, err := results.Fold(dir, size.Plan()); return err },
			"resuming": func() error { _, _, err := results.Resume(dir, resultstest.Clock()); return err },
		} {
			err := attempt()
			Expect(err).To(MatchError(ContainSubstring(message)), what)
			Expect(failure.CodeOf(err)).To(Equal(code), what)
		}
	},
		Entry("a bit that flipped", func(b []byte) []byte { i := bytes.Index(b, []byte(`"item-000003"`)); b[i+3] ^= 1; return b }, "journal.jsonl:3: the line is damaged", failure.Internal),
		Entry("a cut line that is not the last", func(b []byte) []byte {
			at := bytes.IndexByte(b, '\n')
			return append(b[:at-20:at-20], b[at:]...)
		}, "journal.jsonl:1: the line is damaged", failure.Internal),
		Entry("an empty line", func(b []byte) []byte { return append(b, '\n') }, "journal.jsonl:6: the line is damaged", failure.Internal),
		Entry("a line of a later version", func(b []byte) []byte { return append(b, "{\"v\":2}\n"...) }, "journal.jsonl:6: format version 2", failure.Input),
		Entry("another file", func(b []byte) []byte { return []byte("hello\n") }, "journal.jsonl:1: the line is damaged", failure.Internal),
	)

	It("forgives a last line that was cut, NULs of a lost power supply included", func() {
		for _, tail := range []string{`{"v":1,"crc":"0000`, "x", strings.Repeat("\x00", 5000)} {
			dir := journaled(size, places(size)[:3])
			edit(dir, "journal.jsonl", func(b []byte) []byte { return append(b, tail...) })
			run := open(dir)
			got, err := lines(run)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(HaveLen(3))
			Expect(run.Summary.Complete).To(BeFalse())
			Expect(run.Summary.Counts).To(Equal(results.Counts{Pass: 3, NotRun: 2}))
			Expect(run.Summary.Verdict.Code).To(Equal(failure.Interrupted))
			Expect(run.Summary.Verdict.Text).To(Equal("incomplete: 3 of 5 lines finished; the run was killed or still goes on"))
			Expect(*run.Summary.Verdict.Reasons[0].Hint).To(HavePrefix("echoeval run --resume 20270104T081500Z-regular-"))
		}
	})
})

func FuzzJournal(f *testing.F) {
	size := resultstest.Size{Items: 2, Providers: 1, Repeats: 1}
	dir := f.TempDir()
	journal, err := results.Create(dir, resultstest.Clock())
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range places(size) {
		if err := appendPlace(journal, p); err != nil {
			f.Fatal(err)
		}
	}
	if err := journal.Close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	if err := results.WriteManifest(dir, results.Manifest{Plan: size.Head()}); err != nil {
		f.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add([]byte("{\"v\":1,\"crc\":\"00000000\",\"index\":1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "journal.jsonl"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		run, err := results.Open(dir)
		if err != nil {
			if failure.CodeOf(err) == failure.OK {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		defer run.Close() // only read
		for line, err := range run.Lines() {
			if err != nil {
				t.Fatalf("opened, but not to be read: %v", err)
			}
			if _, _, err := run.RawTrace(line); err != nil {
				t.Fatal(err)
			}
		}
	})
}

var _ = Describe("the summary", func() {
	size := resultstest.Size{Items: 20, Providers: 1, Repeats: 1}

	// summarise runs lines made by change from those of a regular run.
	summarise := func(size resultstest.Size, plan results.Plan, change func(line *eval.Result)) *results.Summary {
		GinkgoHelper()
		dir := newRun(size.Head())
		journal, err := results.Create(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		for _, p := range places(size) {
			line := resultstest.Line(p.index, p.column, p.repeat)
			change(&line)
			Expect(journal.Append(line, nil, p.column)).To(Succeed())
		}
		Expect(journal.Close()).To(Succeed())
		summary, err := results.Fold(dir, plan)
		Expect(err).NotTo(HaveOccurred())
		return summary
	}
	metric := func(s *results.Summary, name string) results.Metric {
		GinkgoHelper()
		Expect(s.Providers[0].Metrics).To(HaveKey(name))
		return s.Providers[0].Metrics[name]
	}
	fail := func(line *eval.Result) { line.Status, line.Cause = eval.Fail, ptr(eval.CauseCheck) }
	pass := func(line *eval.Result) { line.Status, line.Cause = eval.Pass, nil }

	It("has every metric of the table, and no other", func() {
		s := summarise(size, size.Plan(), func(*eval.Result) {})
		var names []string
		for _, kind := range results.MetricTable {
			if kind.Name != results.FaultSurvival { // of runs that inject faults alone
				names = append(names, kind.Name)
			}
		}
		Expect(s.Providers[0].Metrics.Names()).To(Equal(names))
		Expect(s.Faults).To(BeNil())
		plan := size.Plan()
		plan.Faults = []results.FaultInfo{{Name: "a", Kind: "timeout"}}
		Expect(summarise(size, plan, func(*eval.Result) {}).Providers[0].Metrics.Names()).To(Equal(append(names, results.FaultSurvival)))
	})

	It("counts faults by name and column, and their survival as the mean over items", func() {
		plan := size.Plan()
		plan.Faults = []results.FaultInfo{{Name: "slow", Kind: "timeout"}, {Name: "refusal", Kind: "refusal"}}
		reason := func(line *eval.Result) string { return "broke on " + line.Item }
		s := summarise(size, plan, func(line *eval.Result) {
			line.Faults = []eval.FaultResult{
				{Name: "slow", Kind: "timeout", Status: eval.FaultSurvived, Violations: []eval.Violation{}},
				{Name: "slow", Kind: "timeout", Status: eval.FaultSurvived, Violations: []eval.Violation{}},
				{Name: "refusal", Kind: "refusal", Status: eval.FaultNotInjected, Violations: []eval.Violation{}},
			}
			if line.Index <= 5 {
				line.Faults[1].Status, line.Faults[1].Reason = eval.FaultBroke, reason(line)
			}
		})
		Expect(s.Faults).To(HaveLen(2))
		slow := s.Faults[0]
		Expect([]any{slow.Name, slow.Kind, slow.Provider, slow.Injected, slow.Survived, slow.Absent, slow.Broke.Count}).To(Equal([]any{"slow", "timeout", s.Providers[0].ID, 40, 35, 0, 5}))
		Expect(*slow.Reason).To(Equal("broke on " + slow.Broke.IDs[0]))
		Expect([]any{s.Faults[1].Injected, s.Faults[1].Absent, s.Faults[1].Reason}).To(Equal([]any{0, 20, (*string)(nil)}))
		m := metric(s, results.FaultSurvival)
		Expect(*m.Value).To(BeNumerically("==", 0.875))
		Expect([]any{m.N, m.Clusters}).To(Equal([]any{40, 20}), "a fault more in an item makes no item more")
		Expect(s.Warnings).To(ContainElement(HaveField("Code", "fault-not-injected")))
	})

	It("writes faults into a line and reads them again", func() {
		line := eval.Result{V: 1, Item: "x", Tags: []string{}, Checks: []eval.CheckResult{}, Faults: []eval.FaultResult{{
			Name: "a", Kind: "timeout", Request: 2, Call: 3, Status: eval.FaultBroke, Ending: "broken", Stop: "error", Retries: 1, Reason: "said \x1b[31m \"no\"",
			Violations: []eval.Violation{{Name: "v", Severity: eval.SeverityError, Events: []int{1, 2}, Evidence: "e", At: "f:1:2"}},
		}}}
		line.Invariants = eval.Invariants{NotApplicable: []string{}, Triggered: []string{}, Violations: []eval.Violation{}}
		var back eval.Result
		Expect(json.Unmarshal(results.AppendLine(nil, &line), &back, json.RejectUnknownMembers(true))).To(Succeed())
		Expect(back.Faults).To(Equal(line.Faults))
		line.Faults = []eval.FaultResult{}
		Expect(string(results.AppendLine(nil, &line))).To(ContainSubstring(`"faults":[]`))
		line.Faults = nil
		Expect(string(results.AppendLine(nil, &line))).NotTo(ContainSubstring("faults"))
	})

	It("gives a rate with Wilson's interval, and totals without", func() {
		s := summarise(size, size.Plan(), func(*eval.Result) {})
		m := metric(s, "pass_rate")
		Expect(*m.Value).To(BeNumerically("==", 0.9))
		Expect(*m.Low).To(BeNumerically("==", 0.698966))
		Expect(*m.High).To(BeNumerically("==", 0.972134))
		Expect([]any{m.N, m.Clusters, m.Method}).To(Equal([]any{20, 20, "wilson"}))
		Expect(metric(s, "tokens")).To(Equal(results.Metric{Value: ptr(results.Number(20 * 908)), N: 20, Clusters: 20, Method: "total"}))
		Expect(metric(s, "cost_usd")).To(Equal(results.Metric{Value: ptr(results.Number(0.02584)), N: 20, Clusters: 20, Method: "total"}))
		Expect(*metric(s, "cost_usd_per_item").Value).To(BeNumerically("==", 0.001292))
		Expect(*metric(s, "steps").Value).To(BeNumerically("==", 2))
		Expect(metric(s, "p95_latency").Method).To(Equal("quantile"))
		Expect(s.Cost.AgentUSD.String()).To(Equal("0.02584"))
	})

	It("collapses repeats to item means, so that more repeats lower nothing", func() {
		repeats := resultstest.Size{Items: 4, Providers: 1, Repeats: 4}
		s := summarise(repeats, repeats.Plan(), func(line *eval.Result) {
			pass(line)
			if line.Index == 1 && line.Repeat > 1 || line.Index == 2 && line.Repeat == 4 {
				fail(line)
			}
		})
		m := metric(s, "pass_rate")
		Expect(*m.Value).To(BeNumerically("==", (0.25+0.75+1+1)/4))
		Expect([]any{m.N, m.Clusters, m.Method}).To(Equal([]any{16, 4, "clustered-t"}))
		Expect(*metric(s, "item_pass_rate").Value).To(BeNumerically("==", 0.5))
		Expect(s.Providers[0].Flaky).To(Equal(results.List[results.Flaky]{Count: 2, Items: []results.Flaky{{Item: "item-000001", Passed: 1, Of: 4}, {Item: "item-000002", Passed: 3, Of: 4}}}))
	})

	It("does not claim to know everything where nothing varies", func() {
		repeats := resultstest.Size{Items: 4, Providers: 1, Repeats: 2}
		m := metric(summarise(repeats, repeats.Plan(), pass), "pass_rate")
		Expect(*m.Value).To(BeNumerically("==", 1))
		Expect(*m.Low).To(BeNumerically("<", 0.6))
		Expect(m.Method).To(Equal("wilson"))
	})

	It("clusters by group", func() {
		grouped := func(line *eval.Result) { line.Group = ptr(fmt.Sprintf("g%d", line.Index%3)) }
		m := metric(summarise(size, size.Plan(), grouped), "pass_rate")
		Expect(*m.Value).To(BeNumerically("==", 0.9))
		Expect([]any{m.N, m.Clusters, m.Method}).To(Equal([]any{20, 3, "clustered-t"}))
	})

	It("takes pass_if for the verdict on an item's repeats", func() {
		repeats := resultstest.Size{Items: 2, Providers: 1, Repeats: 4}
		plan := repeats.Plan()
		plan.PassIf = func(index int) func(float64) bool {
			if index == 1 {
				return func(share float64) bool { return share >= 0.5 }
			}
			return nil
		}
		s := summarise(repeats, plan, func(line *eval.Result) {
			pass(line)
			if line.Repeat > 2 {
				fail(line)
			}
		})
		m := metric(s, "pass_rate")
		Expect(*m.Value).To(BeNumerically("==", 0.75))
		Expect(m.N).To(Equal(8))
		Expect(s.Providers[0].Flaky.Items).To(Equal([]results.Flaky{{Item: "item-000002", Passed: 2, Of: 4}}))
	})

	It("names apart what pass_if tolerates, and counts as failed what it does not", func() {
		repeats := resultstest.Size{Items: 3, Providers: 1, Repeats: 4}
		plan := repeats.Plan()
		plan.PassIf = func(int) func(float64) bool { return func(share float64) bool { return share >= 0.5 } }
		var tally results.Tally
		plan.Judge = func(_ *results.Summary, t results.Tally) { tally = t }
		s := summarise(repeats, plan, func(line *eval.Result) {
			pass(line)
			if line.Index == 1 && line.Repeat == 2 || line.Index == 2 && line.Repeat > 1 {
				fail(line)
			}
		})
		Expect(s.Providers[0].Flaky.Count).To(BeZero())
		Expect(s.Providers[0].Tolerated.Items).To(Equal([]results.Flaky{{Item: "item-000001", Passed: 3, Of: 4}}))
		Expect(tally.Columns[0].Failed).To(Equal(1))
		Expect(s.Apart()).To(Equal(map[results.Key]bool{{Item: "item-000001", Provider: s.Providers[0].ID}: true}))
	})

	It("estimates without bias that one or all of k repeats pass, and nothing where there are too few", func() {
		repeats := resultstest.Size{Items: 2, Providers: 1, Repeats: 4}
		plan := repeats.Plan()
		plan.Over = []int{2, 9}
		s := summarise(repeats, plan, func(line *eval.Result) {
			pass(line)
			if line.Index == 1 && line.Repeat > 1 {
				fail(line)
			}
		})
		// By the definition: of 4 with 1 passed 1-C(3,2)/C(4,2) = 0.5 and 0; of 4 with 4 passed 1 and 1.
		Expect(*metric(s, "pass_at_2").Value).To(BeNumerically("==", 0.75))
		Expect(*metric(s, "pass_hat_2").Value).To(BeNumerically("==", 0.5))
		Expect(*metric(s, "pass_at_4").Value).To(BeNumerically("==", 1), "as many as were run, unasked")
		Expect(*metric(s, "pass_hat_4").Value).To(BeNumerically("==", 0.5))
		Expect(metric(s, "pass_at_9").Value).To(BeNil())
		Expect(metric(s, "pass_hat_9").N).To(BeZero())
	})

	It("counts the first repeats alone where more were added for what came of them", func() {
		repeats := resultstest.Size{Items: 4, Providers: 1, Repeats: 3}
		plan := repeats.Plan()
		plan.Selected.Repeat, plan.Selected.RepeatMax = 1, ptr(3)
		s := summarise(repeats, plan, func(line *eval.Result) {
			pass(line)
			if line.Index == 1 && line.Repeat == 1 {
				fail(line)
				line.Score = ptr(eval.Fraction(0))
			}
		})
		Expect(*metric(s, "pass_rate").Value).To(BeNumerically("==", 0.75))
		Expect(metric(s, "pass_rate").N).To(Equal(4))
		Expect(metric(s, "p95_latency").N).To(Equal(4))
		Expect(metric(s, "tokens").N).To(Equal(12), "what was spent was spent")
		Expect(s.Providers[0].Flaky.Items).To(Equal([]results.Flaky{{Item: "item-000001", Passed: 2, Of: 3}}))
	})

	It("looks at parts: the lines with a tag, and checks as if each were the line", func() {
		plan := size.Plan()
		plan.Parts = []results.Where{{Tag: "urgent"}, {Check: "polite"}, {Tag: "urgent", Check: "polite"}, {Check: "nobody"}}
		var tally results.Tally
		plan.Judge = func(_ *results.Summary, t results.Tally) { tally = t }
		s := summarise(size, plan, func(line *eval.Result) {
			pass(line)
			line.Tags, line.Checks = nil, nil
			if line.Index <= 4 {
				line.Tags = []string{"urgent"}
			}
			if line.Index%2 == 0 {
				line.Checks = []eval.CheckResult{{Name: "polite", Status: eval.CheckPass, Score: ptr(eval.Fraction(1))}}
			}
			switch line.Index {
			case 2: // the check failed, the line did not: it has weight 0
				line.Checks[0].Status, line.Checks[0].Score = eval.CheckFail, ptr(eval.Fraction(0.5))
			case 3:
				fail(line)
			case 6:
				line.Checks[0].Status, line.Checks[0].Score = eval.CheckUnjudged, nil
			case 8:
				line.Status, line.Cause = eval.Error, ptr("provider")
			}
		})
		Expect(*metric(s, "pass_rate").Value).To(BeNumerically("~", 18.0/19, 1e-6))
		value := func(part int, name string) any {
			m := tally.Parts[part].Columns[0].Metrics[name]
			if m.Value == nil {
				return nil
			}
			return []float64{float64(*m.Value), float64(m.N)}
		}
		Expect(value(0, "pass_rate")).To(Equal([]float64{0.75, 4}))
		Expect(tally.Parts[0].Columns[0].Failed).To(Equal(1))
		Expect(value(0, "tokens")).To(Equal([]float64{4 * 908, 4}))
		Expect(value(1, "pass_rate")).To(Equal([]float64{0.875, 8}), "7 of 8: neither what was not judged nor what the world failed")
		Expect(value(1, "score")).To(Equal([]float64{0.9375, 8}))
		Expect(value(2, "pass_rate")).To(Equal([]float64{0.5, 2}))
		Expect(value(3, "pass_rate")).To(BeNil())
		Expect(tally.Parts[2].Where.String()).To(Equal("tag urgent, check polite"))
	})

	It("compares every two columns by item, corrected for their number", func() {
		columns := resultstest.Size{Items: 20, Providers: 3, Repeats: 1}
		s := summarise(columns, columns.Plan(), func(line *eval.Result) {
			pass(line)
			if line.Provider == resultstest.Line(1, 1, 1).Provider && line.Index <= 8 {
				fail(line)
			}
			if line.Index == 20 && line.Provider == resultstest.Line(1, 2, 1).Provider {
				line.Status, line.Cause = eval.Error, ptr("provider")
			}
		})
		Expect(s.Pairs).To(HaveLen(3))
		first := s.Pairs[0]
		Expect([]any{first.A, first.B, first.Metric, first.Pairs, first.Disagree, first.Method}).To(Equal([]any{"p0", "p1", "pass_rate", 20, 8, "mcnemar"}))
		Expect(*first.Difference).To(BeNumerically("==", -0.4))
		// 8 lost, none gained: 2/2^8; three pairs: times three.
		Expect(*first.P).To(BeNumerically("==", 0.007813))
		Expect(*first.PAdjusted).To(BeNumerically("~", 3*0.0078125, 1e-6))
		Expect(*first.High).To(BeNumerically("<", 0))
		Expect(s.Pairs[1].Pairs).To(Equal(19))
		Expect(*s.Pairs[1].P).To(BeNumerically("==", 1))
	})

	It("says what drop it could see, which is never none", func() {
		full := func(line *eval.Result) {
			pass(line)
			line.Score = ptr(eval.Fraction(1))
		}
		s := summarise(size, size.Plan(), full)
		Expect(s.Power).To(HaveLen(2))
		Expect([]string{s.Power[0].Provider, s.Power[0].Metric}).To(Equal([]string{"p0", "pass_rate"}))
		// Twice the variance of 21 of 22, of verdicts that all pass.
		design := stats.Design{Spread: math.Sqrt(2 * 21.0 / 22 / 22), Pairs: 20, Clusters: 20, Verdict: 1, Rate: 1}
		want, _ := stats.DetectableDrop(design, 0.95)
		Expect(*s.Power[0].DetectableDrop).To(BeNumerically("~", want, 1e-5))
		Expect(want).To(BeNumerically(">", 0.3))
		Expect(s.Power[1]).To(Equal(results.Power{Provider: "p0", Metric: "score", DetectableDrop: s.Power[0].DetectableDrop}), "scores that are all 1 are verdicts")
		graded := summarise(size, size.Plan(), func(line *eval.Result) {
			if full(line); line.Index == 1 {
				line.Score = ptr(eval.Fraction(0.999))
			}
		})
		Expect(*graded.Power[1].DetectableDrop).To(BeNumerically("<", *s.Power[0].DetectableDrop))
		repeats := resultstest.Size{Items: 20, Providers: 1, Repeats: 5}
		more := summarise(repeats, repeats.Plan(), pass)
		Expect(*more.Power[0].DetectableDrop).To(BeNumerically("<", *s.Power[0].DetectableDrop))
		none := summarise(size, size.Plan(), func(line *eval.Result) { line.Status, line.Cause = eval.Error, ptr("provider") })
		Expect(none.Power[0].DetectableDrop).To(BeNil())
	})

	It("keeps what could not be judged out of the pass rate, and counts it in the error rate", func() {
		s := summarise(size, size.Plan(), func(line *eval.Result) {
			switch line.Index {
			case 1:
				line.Status, line.Cause = eval.Error, ptr("provider")
			case 2:
				line.Status, line.Cause = eval.Unjudged, ptr(eval.CauseJudgeAnswer)
			case 3:
				line.Status, line.Cause = eval.NotRun, ptr(eval.CauseBudget)
			case 4:
				line.Status, line.Cause = eval.Stale, ptr(eval.CauseMissing)
			case 5:
				line.Status, line.Cause = eval.Skipped, ptr(eval.CauseDataset)
			case 6:
				line.Status, line.Cause = eval.NotRun, ptr(eval.CauseInterrupted)
			}
		})
		Expect(metric(s, "pass_rate").N).To(Equal(14))
		Expect(*metric(s, "error_rate").Value).To(BeNumerically("==", 0.157895)) // 3 of 19
		Expect(metric(s, "error_rate").N).To(Equal(19))
		Expect(s.Counts).To(Equal(results.Counts{Pass: 12, Fail: 2, Unjudged: 1, Error: 1, Stale: 1, NotRun: 2, Skipped: 1}))
		Expect(metric(s, "p50_latency").N).To(Equal(15))
	})

	It("leaves quarantined items out of rates, but not out of violations", func() {
		s := summarise(size, size.Plan(), func(line *eval.Result) {
			if line.Status == eval.Fail {
				line.Quarantined = true
				line.Invariants.Violations = []eval.Violation{{Name: "tool-call-pairing", Severity: eval.SeverityError}, {Name: "tool-call-pairing", Severity: eval.SeverityError}}
			}
		})
		Expect(*metric(s, "pass_rate").Value).To(BeNumerically("==", 1))
		Expect(metric(s, "pass_rate").N).To(Equal(18))
		Expect(*metric(s, "invariant_violations").Value).To(BeNumerically("==", 4))
		Expect(s.Invariants[0].Violated).To(Equal(2))
		Expect(s.Counts.Fail).To(Equal(2))
	})

	It("never rounds a share to none or all", func() {
		Expect(results.UnitFraction.Format(0.999999)).To(Equal("0.999999"))
		Expect(results.UnitFraction.Format(0.0000012)).To(Equal("0.000001"))
		Expect(results.UnitFraction.Format(0.93)).To(Equal("0.93"))
		Expect(results.UnitFraction.Format(1)).To(Equal("1"))
		Expect(results.UnitUSD.Format(0.2584)).To(Equal("$0.2584"))
		Expect(results.UnitUSD.Format(0.00000129)).To(Equal("$0.00000129"))
		Expect(results.UnitMS.Format(2410)).To(Equal("2410 ms"))
		Expect(results.UnitCount.Format(2.3333)).To(Equal("2.33"))
	})

	It("counts invariants by line, also those that items dropped", func() {
		plan := size.Plan()
		plan.Invariants = append(plan.Invariants, results.InvariantInfo{Name: "web-then-exec", Severity: eval.SeverityError, Rule: true}, results.InvariantInfo{Name: "sql-bound", Severity: eval.SeverityWarn, Rule: true})
		plan.Dropped = func(index int) []string {
			if index == 3 {
				return []string{"sql-bound"}
			}
			return nil
		}
		s := summarise(size, plan, func(line *eval.Result) {
			line.Invariants = eval.Invariants{Held: 4}
			switch line.Index {
			case 1:
				line.Invariants = eval.Invariants{Held: 3, Triggered: []string{"web-then-exec"}, Violations: []eval.Violation{{Name: "web-then-exec", Severity: eval.SeverityError}}}
			case 2:
				line.Invariants = eval.Invariants{Held: 3, NotApplicable: []string{"sql-bound"}}
			case 3:
				line.Invariants = eval.Invariants{Held: 3}
			case 4:
				line.Status, line.Invariants = eval.NotRun, eval.Invariants{}
			}
		})
		Expect(s.Invariants).To(Equal([]results.Invariant{
			{Name: "tool-call-pairing", Severity: "error", Evaluated: 19},
			{Name: "one-terminal-event", Severity: "error", Evaluated: 19},
			{Name: "web-then-exec", Severity: "error", Evaluated: 19, Triggered: 1, Violated: 1},
			{Name: "sql-bound", Severity: "warn", Evaluated: 17, NotApplicable: 1},
		}))
		Expect(s.Warnings).To(HaveLen(1))
		Expect(s.Warnings[0].Code).To(Equal("never-triggered"))
		Expect(s.Warnings[0].Text).To(ContainSubstring("sql-bound"))
	})

	It("warns of drift that was served across, orphans and missing prices", func() {
		plan := size.Plan()
		plan.Orphaned = 2
		plan.Warnings = []results.Warning{{Code: "given", Text: "by the runner"}}
		s := summarise(size, plan, func(line *eval.Result) {
			if line.Index <= 3 {
				line.CostUSD = nil
				line.Cassette.State = eval.CassetteStale
				line.Cassette.Drift = []eval.Drift{{Class: "system-prompt", Action: "serve"}}
			}
			if line.Index == 4 {
				line.Status, line.Cause = eval.Stale, ptr(eval.CauseDrift)
				line.Cassette.State = eval.CassetteStale
				line.Cassette.Drift = []eval.Drift{{Class: "tool-description", Action: "warn"}, {Class: "messages", Action: "fail"}, {Class: "messages", Action: "fail"}}
			}
		})
		var codes []string
		for _, w := range s.Warnings {
			codes = append(codes, w.Code)
		}
		Expect(codes).To(Equal([]string{"given", "served-across-drift", "orphaned-cassettes", "unpriced"}))
		Expect(s.Warnings[1].Text).To(HavePrefix("4 items served across drift"))
		Expect(s.Warnings[2].Text).To(Equal("2 cassettes belong to no item"))
		Expect(s.Cassettes).To(Equal(results.Cassettes{Fresh: 16, Stale: 4, Orphaned: 2, ByClass: map[string]int{"messages": 1}, ServedAcrossDrift: 4}))
		Expect(s.Providers[0].Unpriced).To(Equal(3))
		Expect(metric(s, "cost_usd").N).To(Equal(17))
		Expect(s.Cost.SpentNowUSD).To(BeZero())
	})

	It("counts as spent what the run asked the vendor for, and nothing of a replay or of what was fresh", func() {
		plan := size.Plan()
		plan.Mode = "record"
		s := summarise(size, plan, func(line *eval.Result) {
			line.CostUSD = ptr(money.USD(7))
			line.OverheadUSD = 1
			line.Cassette.State = eval.CassetteFresh
			switch line.Index {
			case 1:
				line.Cassette.State = eval.CassetteRecorded
			case 2:
				line.Cassette = nil
			}
		})
		Expect(s.Cost.SpentNowUSD).To(Equal(money.USD(16)))
	})

	It("takes gates and verdict with it", func() {
		gates, err := gate.Parse(nil)
		Expect(err).NotTo(HaveOccurred())
		plan := size.Plan()
		plan.Judge = gate.Judge(gates, gate.Input{})
		s := summarise(size, plan, func(*eval.Result) {})
		Expect(s.Verdict.Code).To(Equal(failure.Gate))
		Expect(*s.Verdict.Reasons[0].Items).To(Equal(2))
		Expect(s.Verdict.Text).To(Equal("failed: pass_rate of p0 is 0.9, bound == 1"))
		Expect(s.Gates).To(HaveLen(3))
	})

	It("keeps the first thousand of a list", func() {
		var list results.List[int]
		for i := range 2500 {
			list.Add(i)
		}
		Expect(list.Count).To(Equal(2500))
		Expect(list.Items).To(HaveLen(results.ListLimit))
		Expect(list.Items[999]).To(Equal(999))
	})
})

var _ = DescribeTable("commands that a shell splits again", func(want string, words ...string) {
	Expect(results.Command(words...)).To(Equal(want))
},
	Entry(nil, "echoeval show a-b_c.d/e:f@g", "echoeval", "show", "a-b_c.d/e:f@g"),
	Entry(nil, `x '' 'a b' 'it'\''s' '$(rm)' '🩺' '~x'`, "x", "", "a b", "it's", "$(rm)", "🩺", "~x"),
)
