package markdown_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/markdown"
)

func TestMarkdown(t *testing.T) { suite.Run(t, "markdown report") }

func ptr[T any](v T) *T { return &v }

func open(unfinished bool) *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), unfinished)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

// compared is the gallery's run, compared with a baseline that edit has made of it.
func compared(edit func(*baseline.Item)) *results.Run {
	GinkgoHelper()
	run := open(false)
	f, err := baseline.Collect(run, nil)
	Expect(err).NotTo(HaveOccurred())
	for i := range f.Items {
		edit(&f.Items[i])
	}
	f = baseline.Accept(nil, f, true)
	Expect(baseline.Write(filepath.Join(run.Dir, baseline.RunFile), f)).To(Succeed())
	c := baseline.NewComparer(f, nil)
	for line, err := range run.Lines() {
		Expect(err).NotTo(HaveOccurred())
		c.Add(&line)
	}
	now := baseline.Now{Mode: "replay", Whole: true}
	for _, p := range run.Summary.Providers {
		now.Providers = append(now.Providers, p.ProviderInfo)
	}
	run.Summary.Regression = c.Finish(now)
	run.Summary.Regression.Baseline = results.Baseline{File: "baselines/gallery.json", From: "git:origin/main", Hash: ptr(f.Hash())}
	return run
}

func written(run *results.Run) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(markdown.Write(&out, run, reports.Options{})).To(Succeed())
	Expect(out.Len()).To(BeNumerically("<=", markdown.MaxBytes))
	return out.String()
}

func moved(i *baseline.Item) {
	yes, no := ptr(true), ptr(false)
	switch i.Item {
	case "wrong answer 🩺":
		i.Passed, i.Failed, i.Calls, i.Answer = []*bool{yes, yes}, []string{}, []string{"contacts"}, ptr("`112` | [x](http://a) @ana\n# now")
	case "all-is-well":
		i.Passed, i.CostUSD = []*bool{no, no}, nil
	case "web-before-exec":
		i.Violations = []string{}
	case "too-dear":
		i.ItemHash = "otherwise"
	case "too-slow":
		i.Item = "gone"
	}
}

var _ = Describe("the report", func() {
	It("of a run with every status and cause is the golden one", func() {
		got := written(open(false))
		suite.Golden("gallery.md", []byte(got))
		Expect(written(open(false))).To(Equal(got), "equal runs give equal bytes")
	})

	It("against a baseline is the golden one", func() {
		got := written(compared(moved))
		suite.Golden("compared.md", []byte(got))
		Expect(written(compared(moved))).To(Equal(got))
	})

	It("begins with the verdict, whatever else there is", func() {
		for _, run := range []*results.Run{open(false), open(true), compared(moved)} {
			head, rest, _ := strings.Cut(written(run), "\n\n")
			Expect(head).To(Equal("## ❌ `gallery`"))
			Expect(rest).To(HavePrefix("`" + run.Summary.Verdict.Text))
		}
	})

	It("puts worse before newly violated before better before numbers", func() {
		text := written(compared(moved))
		at := -1
		for _, title := range []string{"### Worse: 2", "### New violations: 2", "### Better: 2", "### Against `baselines/gallery.json at git:origin/main`", "### Not compared: 6", "### Failed, as before or not compared", "### Without a verdict", "### Notes"} {
			next := strings.Index(text, "\n"+title)
			Expect(next).To(BeNumerically(">", at), title)
			at = next
		}
	})

	It("lets nothing act that a model, a tool or a dataset wrote", func() {
		attack := "``` </details><img src=x onerror=alert(1)> ![i](http://evil/x.png) [l](javascript:x) @octocat #1 **b** | x | $`y`$ <!-- `` \n# h\n- [ ] t\r\n::error::x \x1b[31m \u202e"
		run := open(false)
		s := &run.Summary
		s.Dataset.Name, s.Verdict.Text, s.Verdict.Reasons[0].Text, s.Verdict.Reasons[0].Hint = attack, attack, attack, &attack
		s.Providers[0].ID, s.Warnings[0].Text, s.Warnings[0].At = attack, attack, &attack
		text := written(run)
		Expect(strings.Count(text, "octocat")).To(BeNumerically(">", 5))
		for _, word := range []string{"octocat", "<img", "![i]", "[l]", "# h", "</details>", "<!--", "::error"} {
			Expect(outside(text)).NotTo(ContainSubstring(word))
		}
		Expect(outside(written(compared(moved)))).NotTo(Or(ContainSubstring("@ana"), ContainSubstring("](")))
	})

	It("stays within its size and counts what it leaves out", func() {
		run := open(false)
		s := &run.Summary
		for i := range 500 {
			s.Verdict.Reasons = append(s.Verdict.Reasons, results.Reason{Kind: "gate", Text: strings.Repeat("\U000e0041", 400), Hint: ptr(strings.Repeat("`", 400))})
			s.Warnings = append(s.Warnings, results.Warning{Code: "x", Text: fmt.Sprint(strings.Repeat("漢", 400), i)})
		}
		s.Verdict.Text, s.Dataset.Name = strings.Repeat("\U000e0041", 9_000), strings.Repeat("`\U000e0041", 9_000)
		text := written(run)
		Expect(len(text)).To(BeNumerically(">", markdown.MaxBytes/2))
		Expect(text).To(MatchRegexp(`\n_and \d+ more reasons_\n`))
		Expect(text).To(MatchRegexp(`\n_and \d+ more notes_\n`))
		for _, title := range []string{"### Side by side", "### Providers disagree", "### Failed", "### Without a verdict", "### Notes"} {
			Expect(text).To(ContainSubstring("\n"+title), "a flood in one section hides no other")
		}
	})

	It("says that the baseline is not there yet", func() {
		run := open(false)
		run.Summary.Regression = baseline.NewComparer(&baseline.File{Dataset: "gallery"}, nil).Finish(baseline.Now{Providers: []results.ProviderInfo{run.Summary.Providers[0].ProviderInfo}})
		run.Summary.Regression.Baseline = results.Baseline{File: "baselines/gallery.json", From: "git:origin/main"}
		Expect(written(run)).To(And(ContainSubstring("there is none yet"), ContainSubstring("| pass_rate |")))
	})

	It("reports what the sink refuses, and what it cannot read", func() {
		run := compared(moved)
		err := markdown.Write(refusing{}, run, reports.Options{})
		Expect(err).To(MatchError(errFull))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(os.Remove(filepath.Join(run.Dir, baseline.RunFile))).To(Succeed())
		Expect(failure.CodeOf(markdown.Write(&bytes.Buffer{}, run, reports.Options{}))).To(Equal(failure.Internal))
		run = open(false)
		Expect(os.Truncate(filepath.Join(run.Dir, results.ResultsFile), 5000)).To(Succeed())
		Expect(markdown.Write(&bytes.Buffer{}, run, reports.Options{})).To(MatchError(ContainSubstring("cut off within a line")))
	})
})

var ticks = regexp.MustCompile("`+")

// outside is what stands outside of code spans: a run of backticks opens one that the next run of the same length closes.
func outside(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for {
			open := ticks.FindStringIndex(line)
			if open == nil {
				break
			}
			b.WriteString(line[:open[0]])
			size := open[1] - open[0]
			rest := line[open[1]:]
			closed := false
			for _, at := range ticks.FindAllStringIndex(rest, -1) {
				if at[1]-at[0] == size {
					line, closed = rest[at[1]:], true
					break
				}
			}
			Expect(closed).To(BeTrue(), "a code span is not closed: %s", line)
		}
		b.WriteString(line)
	}
	return b.String()
}

var _ = It("a run that passed says so", func() {
	run := open(false)
	run.Summary.Verdict = results.Verdict{Text: "passed: 3 of 3 results passed, all gates hold"}
	Expect(written(run)).To(HavePrefix("## ✅ `gallery`\n\n`passed: 3 of 3 results passed, all gates hold` (exit code 0)\n"))
})

var errFull = errors.New("no space left on device")

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errFull }
