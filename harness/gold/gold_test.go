package gold_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/gold"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

func TestGold(t *testing.T) { suite.Run(t, "gold") }

func FuzzDecode(f *testing.F) {
	f.Add([]byte("version: 1\nlabels:\n  - {item: a, answer: \"x\\n🩺\", pass: true}\n"))
	f.Add([]byte(`{"version":1,"labels":[{"item":"a","answer":"x","pass":null}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := gold.Decode("a.yaml", data); (l == nil) == (err == nil) {
			t.Fatal("labels or an error, never both")
		} else if err != nil && failure.CodeOf(err) != failure.Input {
			t.Fatal(err)
		}
	})
}

var _ = DescribeTable("a file of labels is refused at its place", func(text, message string) {
	_, err := gold.Decode("gold/polite.yaml", []byte(text))
	Expect(err).To(MatchError(ContainSubstring(message)))
	Expect(failure.CodeOf(err)).To(Equal(failure.Input))
},
	Entry(nil, "", "gold/polite.yaml:1:1: empty"),
	Entry(nil, "version: 2\nlabels: []\n", "gold/polite.yaml:1:10: version: unknown version 2"),
	Entry(nil, "version: 1\nlabels: {a: true}\n", "gold/polite.yaml:2:9: labels: want a list"),
	Entry(nil, "version: 1\nlabels:\n  - {item: a, answer: x}\n", "pass"),
	Entry(nil, "version: 1\nlabels:\n  - {item: a, answer: x, pass: yes please}\n", "gold/polite.yaml:3:32"),
	Entry(nil, "version: 1\nlabels:\n  - {item: a, answer: x, pass: true, by: ana}\n", `unknown key "by"`),
	Entry(nil, "version: 1\nlabels:\n  - {item: a, answer: x, pass: true}\n  - {item: a, answer: x, pass: false}\n", `gold/polite.yaml:4:5: labels[1]: this answer of "a" is labelled a second time, first at gold/polite.yaml:3:5`),
	Entry(nil, "version: 1\r\nlabel: []\r\n", `unknown key "label"`),
)

// judged is a run of n items in which the judge passes the answers of those up to passed.
func judged(n, passed, repeats int) *results.Run {
	GinkgoHelper()
	size := resultstest.Size{Items: n, Providers: 1, Repeats: repeats}
	plan := size.Plan()
	id, dir, err := results.NewFolder(GinkgoT().TempDir(), resultstest.Start, plan.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{ID: id, Started: resultstest.Start, Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	for index := 1; index <= n; index++ {
		for repeat := 1; repeat <= repeats; repeat++ {
			line := resultstest.Line(index, 0, repeat)
			answer := fmt.Sprint("answer ", index)
			line.Output = &answer
			line.Checks[0].Name, line.Checks[0].Status, line.Checks[0].Reason = "polite", eval.CheckPass, "as it should be"
			if index > passed {
				line.Checks[0].Status, line.Checks[0].Reason = eval.CheckFail, "too curt"
			}
			Expect(journal.Append(line, nil, 0)).To(Succeed())
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

// labels are what people say: true of the items in right, false of those in wrong.
func labels(extra string, right, wrong []int) *gold.Labels {
	GinkgoHelper()
	var b strings.Builder
	b.WriteString("version: 1\nlabels:\n" + extra)
	for pass, list := range map[bool][]int{true: right, false: wrong} {
		for _, i := range list {
			fmt.Fprintf(&b, "  - {item: item-%06d, answer: answer %d, pass: %v}\n", i, i, pass)
		}
	}
	l, err := gold.Decode("a.yaml", []byte(b.String()))
	Expect(err).NotTo(HaveOccurred())
	return l
}

var _ = Describe("a judge against labels", func() {
	It("is told by sensitivity, specificity and agreement, and its rate is corrected", func() {
		// Of 40 answers it passes 30. Of ten good ones it passes eight, of five bad ones it fails four.
		l := labels("  - {item: item-000001, answer: another, pass: true}\n  - {item: item-000002, answer: open, pass: null}\n", []int{1, 2, 3, 4, 5, 6, 7, 8, 31, 32}, []int{9, 33, 34, 35, 36})
		r, err := gold.Measure(judged(40, 30, 2), "polite", l, 0.8)
		Expect(err).NotTo(HaveOccurred())
		Expect([]int{r.Matched, r.Unmatched, r.Open}).To(Equal([]int{15, 1, 1}))
		Expect([]float64{float64(*r.Agreement.Value), float64(*r.Sensitivity.Value), float64(*r.Specificity.Value)}).To(Equal([]float64{0.8, 0.8, 0.8}))
		Expect(r.Sensitivity.N+r.Specificity.N).To(Equal(15), "a label counts once, however often the answer was given")
		Expect(r.Advisory).To(BeFalse())
		c := r.Columns[0]
		Expect(*c.Found.Value).To(BeNumerically("==", 0.75))
		Expect(c.Found.N).To(Equal(40), "items, not repeats")
		// (0.75 + 0.8 - 1) / 0.6
		Expect(*c.Corrected.Value).To(BeNumerically("~", 0.916667, 1e-6))
		Expect(*c.Corrected.High - *c.Corrected.Low).To(BeNumerically(">", *c.Found.High-*c.Found.Low))
		var wrong []string
		for _, w := range r.Wrong {
			wrong = append(wrong, fmt.Sprintf("%s %v %s", w.Item, w.Pass, w.Reason))
		}
		Expect(wrong).To(Equal([]string{"item-000009 false as it should be", "item-000031 true too curt", "item-000032 true too curt"}))
	})

	It("is advisory below the floor, and where no label is about its answers", func() {
		r, err := gold.Measure(judged(40, 30, 1), "polite", labels("", []int{1, 31}, []int{2, 32}), 0.8)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Advisory).To(BeTrue())
		Expect(r.Columns[0].Corrected.Value).To(BeNil(), "no better than chance")
		r, err = gold.Measure(judged(40, 30, 1), "polite", labels("  - {item: a, answer: x, pass: null}\n", nil, nil), 0)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Advisory).To(BeTrue())
		Expect([]any{r.Agreement.Value, r.Sensitivity.Value, r.Specificity.Value}).To(HaveEach(BeNil()))
	})

	It("wants a check that the run has", func() {
		_, err := gold.Measure(judged(4, 3, 1), "kind", labels("", []int{1}, nil), 0.8)
		Expect(err).To(MatchError(ContainSubstring(`has no check "kind"`)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	})
})
