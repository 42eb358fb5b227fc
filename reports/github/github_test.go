package github_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/baseline/baselinetest"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/github"
)

func TestGitHub(t *testing.T) { suite.Run(t, "github report") }

func ptr[T any](v T) *T { return &v }

func open(dir string) *results.Run {
	GinkgoHelper()
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

func gallery() *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
	Expect(err).NotTo(HaveOccurred())
	return open(dir)
}

func compared() *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
	Expect(err).NotTo(HaveOccurred())
	Expect(baselinetest.Compare(dir, func(i *baseline.Item) {
		switch i.Item {
		case "huge":
			i.Passed, i.Failed = []*bool{ptr(true), ptr(true)}, []string{}
		case "web-before-exec":
			i.Violations = []string{}
		}
	})).To(Succeed())
	return open(dir)
}

// made is a run of lines that edit has changed, on one provider.
func made(items int, edit func(*eval.Result)) *results.Run {
	GinkgoHelper()
	plan := resultstest.Size{Items: items, Providers: 1, Repeats: 1}.Plan()
	id, dir, err := results.NewFolder(GinkgoT().TempDir(), resultstest.Start, plan.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{ID: id, Tool: results.Tool{Version: "1.0.0", Platform: "any"}, Started: resultstest.Start, Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	for index := 1; index <= items; index++ {
		line := resultstest.Line(index, 0, 1)
		edit(&line)
		Expect(journal.Append(line, nil, 0)).To(Succeed())
	}
	Expect(journal.Close()).To(Succeed())
	gates, err := gate.Parse([]gate.Spec{{Metric: "pass_rate", Bound: ">= 0.95"}})
	Expect(err).NotTo(HaveOccurred())
	plan.Judge = gate.Judge(gates, gate.Input{})
	_, err = results.Fold(dir, plan)
	Expect(err).NotTo(HaveOccurred())
	return open(dir)
}

func fails(line *eval.Result) {
	line.Status, line.Cause = eval.Fail, ptr(eval.CauseCheck)
	line.Checks[0].Status, line.Checks[0].Reason = eval.CheckFail, "not found"
}

func annotations(runs ...github.Placed) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(github.Annotations(&out, runs)).To(Succeed())
	return out.String()
}

// command is the host's form of a workflow command.
var command = regexp.MustCompile(`^::(error|warning|notice)( (?:(?:file|line|col|title)=[^,:\r\n]*)(?:,(?:file|line|col|title)=[^,:\r\n]*)*)?::[^\r\n]*$`)

// unescape reads a value as the host does.
var unescape = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")

func parse(text string) (kinds map[string]int, lines []string) {
	GinkgoHelper()
	kinds = map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		m := command.FindStringSubmatch(line)
		Expect(m).NotTo(BeNil(), line)
		kinds[m[1]]++
		lines = append(lines, line)
	}
	return kinds, lines
}

var _ = Describe("annotations", func() {
	It("of a run with every status and cause are the golden ones, and within the host's limits", func() {
		got := annotations(github.Placed{Run: compared()})
		suite.Golden("annotations.txt", []byte(got))
		Expect(annotations(github.Placed{Run: compared()})).To(Equal(got), "equal runs give equal bytes")
		kinds, _ := parse(got)
		Expect(kinds["error"]).To(Equal(github.MaxAnnotations), "there are more than are shown")
		Expect(kinds["notice"]).To(Equal(1))
		Expect(kinds["warning"]).To(And(BeNumerically(">", 0), BeNumerically("<=", github.MaxAnnotations)))
	})

	It("put regressions before violations before failures before missing verdicts, and flaky items among the warnings", func() {
		_, lines := parse(annotations(github.Placed{Run: compared()}))
		at := func(word string) (first, last int) {
			first, last = -1, -1
			for i, line := range lines {
				if strings.Contains(line, "title="+word) {
					if first < 0 {
						first = i
					}
					last = i
				}
			}
			Expect(first).To(BeNumerically(">=", 0), word)
			return first, last
		}
		_, regressions := at("regression%3A")
		failures, _ := at("failed%3A")
		flaky, _ := at("flaky%3A")
		Expect(regressions).To(BeNumerically("<", failures))
		Expect(lines[flaky]).To(HavePrefix("::warning "))
		Expect(lines[0]).To(ContainSubstring("web-before-exec"), "a new violation is a regression")
		Expect(lines[1]).To(ContainSubstring("huge"))
	})

	It("are one for an item, however many providers and repeats it fails on", func() {
		got := annotations(github.Placed{Run: gallery()})
		Expect(strings.Count(got, "goes-round of")).To(Equal(1))
		_, lines := parse(got)
		for _, line := range lines {
			if strings.Contains(line, "goes-round of") {
				Expect(line).To(ContainSubstring("haiku, repeat 1: iterations%0Ahaiku, repeat 2: iterations%0Acompat:llama3/8b, repeat 1"))
			}
		}
	})

	It("stand at the check of the item, in the repository's terms", func() {
		run := made(1, fails)
		_, lines := parse(annotations(github.Placed{Run: run}))
		Expect(lines).To(HaveLen(1))
		Expect(lines[0]).To(HavePrefix("::error file=datasets/regular.yaml,line=31,col=9,title=failed%3A item-000001 of regular (contains)::p0: contains: not found"))
		_, lines = parse(annotations(github.Placed{Run: run, Folder: "services/shop"}))
		Expect(lines[0]).To(HavePrefix("::error file=services/shop/datasets/regular.yaml,line=31,col=9,"))
		_, lines = parse(annotations(github.Placed{Run: run, Folder: "../elsewhere"}))
		Expect(lines[0]).To(HavePrefix("::error title="), "the host has no such file")
	})

	It("prefer the check that failed, then one of the item's own", func() {
		shared := func(line *eval.Result) {
			fails(line)
			line.Checks[0].At = "evals/shared.yaml:4:2"
			line.Checks = append(line.Checks, eval.CheckResult{Name: "own", Status: eval.CheckPass, At: "datasets/regular.yaml:77:3"})
		}
		Expect(annotations(github.Placed{Run: made(1, shared)})).To(HavePrefix("::error file=datasets/regular.yaml,line=77,col=3,"))
		Expect(annotations(github.Placed{Run: made(1, func(line *eval.Result) { shared(line); line.Checks = line.Checks[:1] })})).To(HavePrefix("::error file=evals/shared.yaml,line=4,col=2,"))
		Expect(annotations(github.Placed{Run: made(1, func(line *eval.Result) {
			line.Status, line.Cause, line.Checks = eval.Fail, ptr(eval.CauseAgent), nil
		})})).To(HavePrefix("::error file=datasets/regular.yaml,title="))
	})

	It("count what they leave out, over all runs of the step", func() {
		a, b := made(30, fails), made(7, fails)
		kinds, lines := parse(annotations(github.Placed{Run: a}, github.Placed{Run: b}))
		Expect(kinds).To(Equal(map[string]int{"error": 10, "notice": 1}))
		Expect(lines[10]).To(ContainSubstring("left out: 27 more failed items; the job"))
	})

	It("are none where all is well", func() {
		Expect(annotations(github.Placed{Run: made(5, func(line *eval.Result) {})})).To(BeEmpty())
	})

	DescribeTable("cannot be broken out of", func(hostile string) {
		run := made(1, func(line *eval.Result) {
			fails(line)
			line.Item, line.Checks[0].Name, line.Checks[0].Reason, line.Checks[0].Actual = hostile, hostile, hostile, &hostile
		})
		kinds, lines := parse(annotations(github.Placed{Run: run}))
		Expect(kinds).To(Equal(map[string]int{"error": 1}))
		Expect(unescape.Replace(lines[0])).NotTo(MatchRegexp("\x1b|\u202e|\r"))
	},
		Entry("line ends", "a\n::error::b\r\n::set-env name=PATH::/tmp"), Entry("separators", "a,line=1::b"), Entry("escapes of the host", "%0A::stop-commands::x"), Entry("a terminal", "\x1b]0;x\a\u202e"), Entry("no UTF-8", "\xff::warning::"),
	)

	It("bound their length", func() {
		run := made(1, func(line *eval.Result) {
			fails(line)
			for range 50 {
				line.Checks = append(line.Checks, line.Checks[0])
			}
			for i := range line.Checks {
				line.Checks[i].Actual = ptr(strings.Repeat("漢", 400))
			}
		})
		Expect(len(annotations(github.Placed{Run: run}))).To(BeNumerically("<", 4*1_700))
	})
})

func summary(most int, runs ...*results.Run) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(github.Summary(&out, runs, reports.Options{}, most)).To(Succeed())
	return out.String()
}

var _ = Describe("the summary", func() {
	It("of two runs is the golden one", func() {
		var out bytes.Buffer
		Expect(github.Several(&out, []*results.Run{made(3, func(line *eval.Result) {}), made(12, fails)}, reports.Options{})).To(Succeed())
		suite.Golden("github.md", out.Bytes())
	})

	It("keeps to its bound, shares it fairly, and says what it leaves out", func() {
		large, small := made(3_000, func(line *eval.Result) {
			fails(line)
			line.Checks[0].Reason = strings.Repeat("because ", 30)
		}), made(2, fails)
		for _, most := range []int{20_000, github.MaxComment, github.MaxSummary} {
			text := summary(most, large, small)
			Expect(len(text)).To(BeNumerically("<=", most))
			Expect(len(text)).To(Or(BeNumerically(">", most/4), BeNumerically(">", 300_000)))
			Expect(strings.Count(text, "\n## ❌ `regular`")).To(Equal(2), "each run has its section")
			Expect(text).To(ContainSubstring("- `item-000002` on `p0`: `check`"), "of the small one, too")
			if most < github.MaxSummary {
				Expect(text).To(MatchRegexp(`_and \d+ more results that failed_`))
			}
		}
		Expect(len(summary(github.MaxComment, large))).To(BeNumerically("<=", 65_536))
	})

	It("of one run is written by Write", func() {
		run := compared()
		var out bytes.Buffer
		Expect(github.Write(&out, run, reports.Options{})).To(Succeed())
		Expect(out.String()).To(Equal(summary(github.MaxComment, run)))
		Expect(out.String()).To(MatchRegexp(`(?s)### Worse.*### New violations.*### Failed`))
	})

	It("gives the error of the sink and of a run that cannot be read", func() {
		Expect(failure.CodeOf(github.Write(failing{}, gallery(), reports.Options{}))).To(Equal(failure.Internal))
		Expect(failure.CodeOf(github.Annotations(failing{}, []github.Placed{{Run: gallery()}}))).To(Equal(failure.Internal))
		run := compared()
		Expect(os.Remove(filepath.Join(run.Dir, baseline.RunFile))).To(Succeed())
		Expect(github.Annotations(&bytes.Buffer{}, []github.Placed{{Run: run}})).To(MatchError(ContainSubstring("baseline")))
	})
})

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }
