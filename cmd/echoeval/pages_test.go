//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const regressionSet = "datasets/regression.yaml"

var _ = Describe("the reports html and github", func() {
	It("go into a run's folder, and are the same bytes for the same results", func() {
		p := exampleProject()
		p.expect(1, "run", regressionSet, "--format", "html", "--format", "github", "-q")
		first := p.last()
		page, text := p.read(first+"/reports/report.html"), p.read(first+"/reports/github.md")
		Expect(page).To(And(HavePrefix("<!doctype html>"), HaveSuffix("</html>\n"), ContainSubstring("pass_rate of openai:gpt-4o-mini is 0.25"), Not(ContainSubstring(p.dir))))
		Expect(text).To(HavePrefix("## ❌ `regression`"))
		p.expect(1, "run", regressionSet, "--concurrency", "1", "-q")
		o := p.succeed("report", "latest", "--format", "html,github", "-o", "later")
		Expect(o.stdout).To(HavePrefix("later/report.html\nlater/github.md\n::error "))
		Expect(p.last()).NotTo(Equal(first))
		Expect(p.read("later/report.html")).To(Equal(page))
		Expect(p.read("later/github.md")).To(Equal(text))
	})

	It("put several datasets into one file with a section each", func() {
		p := exampleProject()
		p.expect(1, "run", quickstart, regressionSet, "--format", "html=out/all.html", "--format", "github=out/all.md", "--format", "html", "-q")
		page, text := p.read("out/all.html"), p.read("out/all.md")
		Expect(strings.Count(page, `<section class="run"`)).To(Equal(2))
		Expect(strings.Index(text, "## ✅ `quickstart`")).To(BeNumerically(">", 0))
		Expect(strings.Index(text, "## ❌ `regression`")).To(BeNumerically(">", strings.Index(text, "## ✅ `quickstart`")))
		pages, err := filepath.Glob(p.path(".echoeval/runs/*-*/reports/report.html"))
		Expect(err).NotTo(HaveOccurred())
		Expect(pages).To(HaveLen(2), "without a path each goes into its own folder")
		p.expect(1, "run", quickstart, regressionSet, "--format", "csv=out/all.csv", "--format", "json=out/all.json", "--format", "junit=out/all.xml", "--format", "markdown=out/few.md", "-q")
		rows := strings.Split(strings.TrimSpace(p.read("out/all.csv")), "\n")
		Expect(rows).To(HaveLen(1 + 24 + 4))
		Expect(rows[1]).To(HaveSuffix(",quickstart"))
		Expect(rows[len(rows)-1]).To(HaveSuffix(",regression"))
		var both struct{ Runs []struct{ Results []any } }
		Expect(json.Unmarshal([]byte(p.read("out/all.json")), &both)).To(Succeed())
		Expect(both.Runs).To(HaveLen(2))
		Expect(both.Runs[1].Results).To(HaveLen(4))
		Expect(p.read("out/all.xml")).To(ContainSubstring(`<testsuites name="quickstart, regression" tests="28" failures="3"`))
		Expect(p.read("out/few.md")).To(And(ContainSubstring("| dataset | verdict |"), ContainSubstring("## ❌ `regression`")))
		o := p.expect(2, "run", quickstart, regressionSet, "--format", "html=out/all.txt")
		Expect(o.stderr).To(ContainSubstring(".html"))
	})

	It("annotate the dataset's lines and add to the step's summary, within its limit", func() {
		p := exampleProject()
		p.env = append(p.env, "GITHUB_STEP_SUMMARY="+p.path("summary.md"), "GITHUB_WORKSPACE="+filepath.Dir(p.dir))
		p.write("summary.md", "before\n")
		o := p.expect(1, "run", quickstart, regressionSet, "--format", "github", "-q")
		var commands []string
		for line := range strings.Lines(o.stdout) {
			if strings.HasPrefix(line, "::") {
				commands = append(commands, line)
			}
		}
		Expect(commands).To(HaveLen(3), "for both datasets together, once")
		Expect(commands[0]).To(HavePrefix("::error file=project/datasets/regression.yaml,line=29,col=9,title=violation%3A calls-what-it-does-not-have of regression"))
		summary := p.read("summary.md")
		Expect(summary).To(And(HavePrefix("before\n"), ContainSubstring("## ✅ `quickstart`"), ContainSubstring("## ❌ `regression`")))
		Expect(strings.Count(summary, "## ❌")).To(Equal(1))

		p.write("summary.md", strings.Repeat("x", 1<<20-20_000))
		p.expect(1, "run", regressionSet, "--format", "github", "-q")
		Expect(len(p.read("summary.md"))).To(And(BeNumerically(">", 1<<20-20_000), BeNumerically("<=", 1<<20)))
		p.write("summary.md", strings.Repeat("x", 1<<20-100))
		o = p.expect(1, "run", regressionSet, "--format", "github", "-q")
		Expect(len(p.read("summary.md"))).To(Equal(1<<20-100), "no half of a summary")
		Expect(o.stderr).To(ContainSubstring("full"))
	})

	It("leave the JSON of stdout alone, and a summary nobody asked for", func() {
		p := exampleProject()
		p.env = append(p.env, "GITHUB_STEP_SUMMARY="+p.path("summary.md"))
		o := p.expect(1, "run", regressionSet, "--format", "github", "--json", "-q")
		Expect(o.stdout).To(And(HavePrefix("{"), Not(ContainSubstring("::error"))))
		Expect(o.stderr).To(ContainSubstring("::error file=datasets/regression.yaml,"))
		Expect(os.Remove(p.path("summary.md"))).To(Succeed())
		o = p.expect(1, "run", regressionSet, "--format", "html", "-q")
		Expect(o.all()).NotTo(ContainSubstring("::error"))
		Expect(p.path("summary.md")).NotTo(BeAnExistingFile())
	})

	It("say when the step's summary cannot be written", func() {
		p := exampleProject()
		p.env = append(p.env, "GITHUB_STEP_SUMMARY="+p.dir)
		o := p.expect(3, "run", regressionSet, "--format", "github", "-q")
		Expect(o.stderr).To(ContainSubstring("the summary of the step cannot be written"))
	})
})
