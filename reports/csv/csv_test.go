package csv_test

import (
	"bytes"
	reader "encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/csv"
)

func TestCSV(t *testing.T) { suite.Run(t, "csv report") }

func open(unfinished bool) *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), unfinished)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

func written(run *results.Run) []byte {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(csv.Write(&out, run, reports.Options{})).To(Succeed())
	return out.Bytes()
}

// one is a run of one line.
func one(edit func(*eval.Result)) *results.Run {
	GinkgoHelper()
	size := resultstest.Size{Items: 1, Providers: 1, Repeats: 1}
	plan := size.Plan()
	id, dir, err := results.NewFolder(GinkgoT().TempDir(), resultstest.Start, plan.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{ID: id, Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	line := resultstest.Line(1, 0, 1)
	edit(&line)
	Expect(journal.Append(line, nil, 0)).To(Succeed())
	Expect(journal.Close()).To(Succeed())
	_, err = results.Fold(dir, plan)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

var _ = Describe("the report", func() {
	It("of a run with every status and cause is the golden one", func() {
		got := written(open(false))
		suite.Golden("gallery.csv", got)
		Expect(written(open(false))).To(Equal(got), "equal runs give equal bytes")
	})

	DescribeTable("has a row per line, of the columns that there are", func(unfinished bool) {
		run := open(unfinished)
		text := written(run)
		rows, err := reader.NewReader(bytes.NewReader(text)).ReadAll()
		Expect(err).NotTo(HaveOccurred())
		Expect(rows[0]).To(Equal(csv.Columns()))
		Expect(rows).To(HaveLen(run.Summary.Counts.Total() + 1))
		Expect(bytes.Count(text, []byte("\n"))).To(Equal(len(rows)), "a row is a line")
		for _, b := range text {
			Expect(b == '\n' || b >= 0x20 && b != 0x7f).To(BeTrue(), "a control character %x", b)
		}
		column := slices.Index(rows[0], "status")
		statuses := map[string]bool{}
		for _, row := range rows[1:] {
			statuses[row[column]] = true
		}
		Expect(statuses).To(HaveLen(len(eval.Statuses)))
	}, Entry("finished", false), Entry("unfinished", true))

	It("keeps the order of its columns", func() {
		Expect(strings.Join(csv.Columns(), ",")).To(HavePrefix("item,index,provider,repeat,group,tags,quarantined,status,cause,score,failed_checks,"))
	})

	DescribeTable("makes no formula of an answer", func(answer, want string) {
		text := written(one(func(line *eval.Result) { line.Output = &answer }))
		rows, err := reader.NewReader(bytes.NewReader(text)).ReadAll()
		Expect(err).NotTo(HaveOccurred())
		Expect(rows).To(HaveLen(2))
		Expect(rows[1][slices.Index(rows[0], "output")]).To(Equal(want))
	},
		Entry(nil, "=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
		Entry(nil, "+1", "'+1"), Entry(nil, "-1", "'-1"), Entry(nil, "@SUM(A1)", "'@SUM(A1)"),
		Entry("after spaces", "  =1", "'  =1"), Entry("full width", "＝1", "'＝1"),
		Entry("a tab", "\t=1", `'\t=1`), Entry("a line end", "\r\n=1", `'\r\n=1`),
		Entry("after what cannot be seen", "\ufeff=1", `\ufeff=1`), Entry("after NUL", "\x00=1", `\x00=1`),
		Entry("quotes and commas", "a \"b\", c;=1\nd", `a "b", c;=1\nd`),
		Entry("an empty one", "", ""), Entry("an honest one", "2 = 1 + 1 @ home - ok", "2 = 1 + 1 @ home - ok"),
		Entry("not UTF-8", "a\xff", "a\ufffd"),
	)

	It("reports what the sink refuses, and what it cannot read", func() {
		run := open(false)
		err := csv.Write(refusing{}, run, reports.Options{})
		Expect(err).To(MatchError(errFull))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(os.Truncate(filepath.Join(run.Dir, results.ResultsFile), 5000)).To(Succeed())
		Expect(csv.Write(&bytes.Buffer{}, run, reports.Options{})).To(MatchError(ContainSubstring("cut off within a line")))
	})
})

var errFull = errors.New("no space left on device")

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errFull }
