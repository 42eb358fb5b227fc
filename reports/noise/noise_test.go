package noise_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/browsertest"
	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/noise"
	"github.com/echoeval/echoeval/harness/results"
	report "github.com/echoeval/echoeval/reports/noise"
)

func TestNoise(t *testing.T) { suite.Run(t, "noise report") }

func ptr[T any](v T) *T { return &v }

// ledger has something of each kind, and names that would do harm.
func ledger() *noise.Ledger {
	part := func(source string, v, low, high, share float64) noise.Part {
		n := func(x float64) *results.Number { return ptr(results.Number(x)) }
		return noise.Part{Source: source, Variance: n(v), Low: n(low), High: n(high), Share: n(share)}
	}
	total := part("all", 0.026, 0.019, 0.033, 1)
	total.Share = nil
	return &noise.Ledger{V: 1, Dataset: "clinic", Columns: []noise.Column{
		{
			Provider: "haiku", Items: 58, All: 60, Calls: ptr(120), Thawed: ptr(4),
			Metrics: []noise.Metric{{Name: "pass_rate", Total: total, Parts: []noise.Part{part(noise.Judge, 0.008, 0.005, 0.011, 0.31), part(noise.Agent, 0.014, 0.01, 0.019, 0.55), part(noise.Environment, 0.004, 0, 0.009, 0.14)}}},
			Flaky: []noise.Flaky{
				{Item: "<script>alert(1)</script>|\x1b[31m\u202e", Blame: noise.Agent, Quarantined: true, All: noise.Count{Passed: 3, Of: 5}, JudgeAlone: &noise.Count{Passed: 5, Of: 5}, ToolsFrozen: &noise.Count{Passed: 2, Of: 5}},
				{Item: "move-visit", Blame: noise.NotTold, All: noise.Count{Passed: 1, Of: 5}, Why: "it was not judged in the other runs, or otherwise"},
			},
		},
		{Provider: "sonnet", Metrics: []noise.Metric{{Name: "score", Total: total, Parts: []noise.Part{{Source: noise.Judge, Why: "record --freeze agent, and give its run as --judge"}}}}, Flaky: []noise.Flaky{}},
	}}
}

var _ = Describe("the ledger", func() {
	It("is said alike in every form, and hostile names are text", func() {
		for _, f := range report.Formats() {
			var b bytes.Buffer
			Expect(f.Write(&b, ledger())).To(Succeed())
			Expect(b.String()).NotTo(Or(ContainSubstring("\x1b"), ContainSubstring("\u202e")), f.Name)
			Expect(b.String()).To(And(ContainSubstring("move-visit"), ContainSubstring("0.014"), ContainSubstring("environment"), ContainSubstring("not told")), f.Name)
			if f.Name == "html" {
				Expect(b.String()).NotTo(ContainSubstring("<script"))
			}
			suite.Golden("ledger."+f.Name, b.Bytes())
		}
	})

	It("is a page that needs nothing else", func() {
		var b bytes.Buffer
		Expect(report.HTML(&b, ledger())).To(Succeed())
		file := filepath.Join(GinkgoT().TempDir(), "noise.html")
		Expect(os.WriteFile(file, b.Bytes(), 0o644)).To(Succeed())
		page := browsertest.Open("file://"+file, "main section", "file://"+file)
		Expect(browsertest.JS[string](page, `getComputedStyle(document.body).backgroundColor`)).To(Equal("rgb(244, 245, 247)"), "its style is allowed")
		Expect(browsertest.JS[int](page, `document.querySelectorAll("tbody tr").length`)).To(Equal(8))
		for _, width := range []int64{390, 820, 1300} {
			page.Run(chromedp.EmulateViewport(width, 900))
			Expect(browsertest.JS[bool](page, `document.documentElement.scrollWidth <= innerWidth`)).To(BeTrue(), "%d wide: nothing sticks out", width)
		}
		page.Shoot("noise-light")
		page.Media("dark")
		page.Shoot("noise-dark")
	})
})
