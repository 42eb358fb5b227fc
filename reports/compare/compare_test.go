package compare_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/compare"
)

func TestCompare(t *testing.T) { suite.Run(t, "compare") }

func ptr[T any](v T) *T { return &v }

func gallery() *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

// made is a run whose lines edit may change; each called the tool that is its answer's first word.
func made(size resultstest.Size, edit func(*eval.Result)) *results.Run {
	GinkgoHelper()
	plan := size.Plan()
	_, dir, err := results.NewFolder(GinkgoT().TempDir(), resultstest.Start, plan.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	for index := 1; index <= size.Items; index++ {
		for column := range size.Providers {
			for repeat := 1; repeat <= size.Repeats; repeat++ {
				line := resultstest.Line(index, column, repeat)
				edit(&line)
				t := trace.Trace{}
				if line.Output != nil {
					name, _, _ := strings.Cut(*line.Output, " ")
					t.Events = []trace.Event{{N: 1, Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 1, CallID: "a", Name: name, Arguments: `{}`, Outcome: trace.Executed, Result: `1`}}}
				}
				raw := append(t.AppendJSON([]byte(`{"v":1,"item":{},"events":`)), '}')
				Expect(journal.Append(line, raw, column)).To(Succeed())
			}
		}
	}
	Expect(journal.Close()).To(Succeed())
	_, err = results.Fold(dir, plan)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

func same(*eval.Result) {}

// worse fails item 1, mends item 10, asks item 3 otherwise, and lets item 5 break an invariant.
func worse(line *eval.Result) {
	switch line.Index {
	case 1:
		line.Status, line.Cause, line.Score, line.Output = eval.Fail, ptr(eval.CauseCheck), ptr(eval.Fraction(0)), ptr("wait \x1b[31m<b>`please`")
		line.Checks[0].Status = eval.CheckFail
	case 3:
		line.ItemHash = "otherwise"
	case 5:
		line.Invariants.Violations = []eval.Violation{{Name: "web-then-exec", Severity: eval.SeverityError}}
	case 10:
		line.Status, line.Cause, line.Score = eval.Pass, nil, ptr(eval.Fraction(1))
	}
}

func document(sides ...compare.Side) *compare.Document {
	GinkgoHelper()
	d, err := compare.New(sides, compare.DefaultBound)
	Expect(err).NotTo(HaveOccurred())
	return d
}

func texts(d *compare.Document, all bool) (text, markdown, data string) {
	GinkgoHelper()
	var a, b, c bytes.Buffer
	Expect(compare.Write(&a, d, reports.Options{All: all})).To(Succeed())
	Expect(compare.Markdown(&b, d, reports.Options{All: all})).To(Succeed())
	Expect(compare.JSON(&c, d)).To(Succeed())
	return a.String(), b.String(), c.String()
}

var size = resultstest.Size{Items: 12, Providers: 1, Repeats: 1}

var _ = Describe("two runs", func() {
	It("are set side by side, what is worse first, with what was done and said", func() {
		d := document(compare.Side{Name: "before", Run: made(size, same)}, compare.Side{Name: "now", Run: made(size, worse)})
		Expect(d.Comparisons).To(HaveLen(1))
		var kinds []string
		for _, m := range d.Comparisons[0].Disagree {
			kinds = append(kinds, m.Item+" "+m.Kind)
		}
		Expect(kinds).To(Equal([]string{"item-000001 worse", "item-000005 same", "item-000010 better", "item-000003 changed"}))
		first := d.Comparisons[0].Disagree[0]
		Expect(first.Before.Calls).To(Equal([]string{"Call"}))
		Expect(first.Now.Calls).To(Equal([]string{"wait"}))
		Expect(d.Regressed()).To(BeTrue())
		Expect(d.Paired()).To(BeTrue())
		text, markdown, data := texts(d, false)
		suite.Golden("runs.txt", []byte(text))
		suite.Golden("runs.md", []byte(markdown))
		var back compare.Document
		Expect(json.Unmarshal([]byte(data), &back)).To(Succeed())
		Expect(data).NotTo(ContainSubstring(`"ids":null`), "lists are lists")
		Expect(back.Comparisons[0].Items).To(Equal(d.Comparisons[0].Items))
	})

	It("that are alike agree", func() {
		d := document(compare.Side{Name: "a", Run: gallery()}, compare.Side{Name: "b", Run: gallery()})
		Expect(d.Comparisons).To(HaveLen(2))
		for _, c := range d.Comparisons {
			Expect(c.Disagree).To(BeEmpty())
			Expect(c.Unchanged).To(BeNumerically(">", 5))
		}
		Expect(d.Regressed()).To(BeFalse())
	})

	It("are compared column by column of one name, or the only ones of both", func() {
		one := func(id string) *baseline.File {
			f, err := baseline.Collect(made(size, func(line *eval.Result) {}), nil)
			Expect(err).NotTo(HaveOccurred())
			f.Providers[0].ID = id
			for i := range f.Items {
				f.Items[i].Provider = id
			}
			return f
		}
		d := document(compare.Side{Name: "a", Baseline: one("left")}, compare.Side{Name: "b", Baseline: one("right")})
		Expect(d.Comparisons).To(HaveLen(1))
		Expect(d.Comparisons[0].Pairs()).To(Equal(12))
		text, _, _ := texts(d, false)
		Expect(text).To(ContainSubstring("\nleft -> right\n"))
		_, err := compare.New([]compare.Side{{Name: "a", Run: made(resultstest.Size{Items: 2, Providers: 2, Repeats: 1}, same)}, {Name: "b", Baseline: one("other")}}, compare.DefaultBound)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(ContainSubstring("no column in common")))
	})

	It("of different datasets are refused", func() {
		_, err := compare.New([]compare.Side{{Name: "a", Run: gallery()}, {Name: "b", Run: made(size, same)}}, compare.DefaultBound)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError("a is of dataset gallery, b of regular"))
	})

	It("that share no question are not paired", func() {
		d := document(compare.Side{Name: "a", Run: made(size, same)}, compare.Side{Name: "b", Run: made(size, func(line *eval.Result) { line.ChecksHash = "x" })})
		Expect(d.Paired()).To(BeFalse())
		Expect(d.Regressed()).To(BeFalse())
		text, _, _ := texts(d, false)
		Expect(text).To(And(ContainSubstring("no item is asked and judged alike"), ContainSubstring("... and 2 more changed")))
		all, _, _ := texts(d, true)
		Expect(strings.Count(all, "changed: item-")).To(Equal(12))
	})
})

var _ = Describe("the columns of one run", func() {
	It("are compared each with each", func() {
		run := made(resultstest.Size{Items: 12, Providers: 3, Repeats: 2}, func(line *eval.Result) {
			if line.Provider == "p1" {
				worse(line)
				line.ItemHash = "51c0b8a2e97d4f06"
			}
		})
		d := document(compare.Side{Name: "run", Run: run})
		var pairs []string
		for _, c := range d.Comparisons {
			pairs = append(pairs, fmt.Sprint(c.Before.Provider, " ", c.Now.Provider, " ", c.Items.Worse.Count, c.Items.Better.Count, c.Pairs()))
			Expect(c.Changed).To(BeEmpty())
		}
		Expect(pairs).To(Equal([]string{"p0 p1 1 1 12", "p0 p2 0 0 12", "p1 p2 1 1 12"}))
		text, _, _ := texts(d, false)
		suite.Golden("columns.txt", []byte(text))
	})

	It("stand beside each other as far as the width goes, and then below", func() {
		d := document(compare.Side{Name: "run", Run: made(resultstest.Size{Items: 12, Providers: 5, Repeats: 1}, same)})
		Expect(d.Columns).To(HaveLen(5))
		var out bytes.Buffer
		Expect(compare.Write(&out, d, reports.Options{Width: 50})).To(Succeed())
		var heads []string
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "metric ") {
				heads = append(heads, strings.Join(strings.Fields(line)[1:], " "))
				Expect(len(line)).To(BeNumerically("<=", 51))
			}
		}
		Expect(heads).To(Equal([]string{"p0 p1 p2", "p3 p4"}))
	})

	It("of a run with one are refused", func() {
		_, err := compare.New([]compare.Side{{Name: "run", Run: made(size, same)}}, compare.DefaultBound)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err).To(MatchError(ContainSubstring("one column")))
	})
})

var _ = Describe("a baseline", func() {
	It("is what the run is compared with, wherever it is named", func() {
		f, err := baseline.FromRun(made(size, same))
		Expect(err).NotTo(HaveOccurred())
		f.Items = f.Items[:11]
		run := made(size, worse)
		first := document(compare.Side{Name: "baseline:regular", Baseline: f}, compare.Side{Name: "now", Run: run})
		last := document(compare.Side{Name: "now", Run: run}, compare.Side{Name: "baseline:regular", Baseline: f})
		Expect(last).To(Equal(first))
		Expect(first.Sides).To(Equal([]string{"baseline:regular", "now"}))
		Expect(first.Comparisons[0].Items.New.IDs).To(Equal([]string{"item-000012"}))
		two := document(compare.Side{Name: "a", Baseline: f}, compare.Side{Name: "b", Baseline: f})
		Expect(two.Comparisons[0].Disagree).To(BeEmpty())
		Expect(two.Paired()).To(BeTrue())
	})
})

var _ = It("the texts report what the sink refuses", func() {
	d := document(compare.Side{Name: "a", Run: gallery()})
	for _, write := range []func() error{
		func() error { return compare.Write(refusing{}, d, reports.Options{}) },
		func() error { return compare.Markdown(refusing{}, d, reports.Options{}) },
		func() error { return compare.JSON(refusing{}, d) },
	} {
		err := write()
		Expect(err).To(MatchError(errFull))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	}
})

var errFull = errors.New("no space left on device")

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errFull }
