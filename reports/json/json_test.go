package json_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	codec "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/json"
)

func TestJSON(t *testing.T) { suite.Run(t, "json report") }

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
	Expect(json.Write(&out, run, reports.Options{})).To(Succeed())
	return out.Bytes()
}

var _ = Describe("the report", func() {
	It("of a run with every status and cause is the golden one", func() {
		got := written(open(false))
		suite.Golden("gallery.json", got)
		Expect(written(open(false))).To(Equal(got), "equal runs give equal bytes")
	})

	DescribeTable("is one document of the summary and every line", func(unfinished bool) {
		run := open(unfinished)
		var document struct {
			V        int                    `json:"v"`
			Summary  results.Summary        `json:"summary"`
			Disagree []reports.Disagreement `json:"disagree"`
			Results  []jsontext.Value       `json:"results"`
		}
		Expect(codec.Unmarshal(written(run), &document, codec.RejectUnknownMembers(true))).To(Succeed())
		Expect(document.Summary.Counts).To(Equal(run.Summary.Counts))
		if !unfinished {
			Expect(document.Disagree).To(Equal([]reports.Disagreement{{Item: "flaky", Columns: []reports.Share{{Provider: "haiku", Passed: 1, Of: 2}, {Provider: "compat:llama3/8b", Passed: 2, Of: 2}}}}))
		}
		Expect(document.Results).To(HaveLen(run.Summary.Counts.Total()))
		statuses := map[eval.Status]int{}
		for _, raw := range document.Results {
			var line eval.Result
			Expect(codec.Unmarshal(raw, &line, codec.RejectUnknownMembers(true))).To(Succeed())
			statuses[line.Status]++
		}
		Expect(statuses).To(HaveLen(len(eval.Statuses)))
	}, Entry("finished", false), Entry("unfinished", true))

	It("holds the lines of results.jsonl as they are", func() {
		run := open(false)
		want, err := os.ReadFile(filepath.Join(run.Dir, results.ResultsFile))
		Expect(err).NotTo(HaveOccurred())
		got := written(run)
		n := 0
		for line := range bytes.Lines(want) {
			n++
			Expect(bytes.Contains(got, bytes.TrimSpace(line))).To(BeTrue())
		}
		Expect(n).To(BeNumerically(">", 100))
	})

	It("reports what the sink refuses, and what it cannot read", func() {
		run := open(false)
		err := json.Write(refusing{}, run, reports.Options{})
		Expect(err).To(MatchError(errFull))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(os.Truncate(filepath.Join(run.Dir, results.ResultsFile), 5000)).To(Succeed())
		Expect(json.Write(&bytes.Buffer{}, run, reports.Options{})).To(MatchError(ContainSubstring("cut off within a line")))
	})
})

var errFull = errors.New("no space left on device")

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errFull }
