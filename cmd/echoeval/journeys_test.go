//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// The journeys are what users type from end to end, as they type it: in a shell, with echoeval on the path.

// shell types a line into a shell in a folder of the project and expects its code.
func (p *project) shell(code int, dir, line string) outcome {
	GinkgoHelper()
	cmd := p.program("/bin/bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = p.path(dir)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(p.binary)+":"+os.Getenv("PATH"))
	o := p.await(p.start(cmd))
	Expect(o.code).To(Equal(code), "%s\n%s", line, o)
	return o
}

// types is shell for what succeeds.
func (p *project) types(line string) outcome {
	GinkgoHelper()
	return p.shell(0, ".", line)
}

// python skips a spec where there is no interpreter.
func python() {
	GinkgoHelper()
	if _, err := exec.LookPath("python3"); err != nil {
		Skip("no python3: the journey with a program in Python is not walked")
	}
}

// within gives the project that lies in a folder of another.
func (p *project) within(dir string) *project {
	return &project{dir: p.path(dir), home: p.home, temp: p.temp, binary: p.binary, env: p.env}
}

var _ = Describe("the journey", func() {
	It("(a) of the first ten minutes on a laptop, without a key", func() {
		p := emptyProject()
		p.types("echoeval init demo")
		demo := p.within("demo")
		demo.types("echoeval run")
		items := demo.count()["pass"]
		Expect(items).To(BeNumerically(">", 3))

		o := demo.types("echoeval show latest lists-two-files")
		Expect(o.stdout).To(MatchRegexp(`(?s)user\n.*call list_dir .*assistant.*checks\n  pass .*as expected`))

		demo.types("sed -i 's/helpful/terse/' agents/assistant.yaml")
		o = demo.shell(4, ".", "echoeval run")
		Expect(strings.Count(o.stdout, fmt.Sprintf("%d items stale: system-prompt", items))).To(Equal(1))
		Expect(o.stdout).To(MatchRegexp(`path: +messages\[0\]\.content in request 1\n +recorded: .*helpful.*\n +now: .*terse`))
		Expect(o.stdout).To(ContainSubstring("hint: echoeval record datasets/quickstart.yaml --stale\n"))
		Expect(o.stderr).To(And(ContainSubstring("OPENAI_API_KEY is not set"), ContainSubstring("--drift system-prompt=serve"), ContainSubstring("provider compat")))

		o = demo.types("echoeval run --drift system-prompt=serve")
		Expect(o.stdout).To(ContainSubstring(fmt.Sprintf("%d items served across drift", items)))
		Expect(demo.count()).To(Equal(map[string]int{"pass": items}))
	})

	It("(i) of 300 promptfoo tests", func() {
		p := emptyProject()
		var b strings.Builder
		b.WriteString("description: support\nprompts:\n  - 'Answer {{question}}'\n  - 'Answer briefly: {{question}}'\nproviders: [openai:gpt-4o-mini, openai:gpt-4o, openai:gpt-4.1-mini]\ndefaultTest:\n  assert:\n    - {type: not-contains, value: sorry}\ntests:\n")
		for i := range 300 {
			name := "question"
			if i%100 == 7 {
				name = "qestion"
			}
			fmt.Fprintf(&b, "  - vars: {%s: 'number %d'}\n    assert:\n      - {type: icontains, value: '%d'}\n", name, i, i)
			if i%10 == 3 {
				b.WriteString("      - {type: javascript, value: 'output.length < 9'}\n")
			}
			if i == 50 {
				b.WriteString("    treshold: 0.5\n")
			}
		}
		p.write("promptfooconfig.yaml", b.String())
		o := p.types("echoeval import promptfooconfig.yaml -o datasets/support.yaml")
		Expect(o.stdout).To(And(
			ContainSubstring("300 tests -> 600 items; prompts 2 x providers 3 -> 6 providers; defaultTest -> defaults\n"),
			MatchRegexp(`converted \d+ of \d+ assertions; 30 to do by hand`),
			MatchRegexp(`to do: javascript, 30 times \(promptfooconfig\.yaml:\d+:\d+`),
			ContainSubstring("treshold"), ContainSubstring(`did you mean "qestion"?`),
		))
		o = p.types("echoeval validate datasets/support.yaml")
		Expect(o.stdout).To(ContainSubstring("600 items on 6 providers"))
		o = p.types("echoeval record datasets/support.yaml --dry-run")
		Expect(o.stdout).To(And(ContainSubstring("support: 600 items, 1800 runs in mode record, about $")))
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})

	It("(l) of many items on four machines", func() {
		p := emptyProject()
		var b strings.Builder
		for i := range 400 {
			fmt.Fprintf(&b, "{\"id\":\"q-%03d\",\"input\":\"Question %d\",\"expected\":\"ok\"}\n", i, i)
		}
		p.write("datasets/items/big.jsonl", b.String())
		p.write("datasets/big.yaml", "version: 1\nname: big\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\ndefaults: {checks: [{contains: emulator}]}\nitems: items/big.jsonl\n")
		e := p.emulate("")
		whole := fmt.Sprintf("echoeval run datasets/big.yaml --mode live --allow-network %s --traces failed --out whole", e.upstream())
		p.types(whole)
		for i := 1; i <= 4; i++ {
			o := p.types(fmt.Sprintf("echoeval run datasets/big.yaml --mode live --allow-network %s --shard %d/4 --max-cost 25 --traces failed --out eval-runs", e.upstream(), i))
			Expect(o.stdout).NotTo(ContainSubstring("all gates hold"), "a shard has no verdict")
		}
		o := p.types("echoeval merge eval-runs/*/ --out merged; echoeval report merged/latest --format html,junit -o out")
		Expect(o.stdout).To(ContainSubstring("passed: 400 of 400 results passed, all gates hold"))
		timeless := func(run string) string {
			return regexp.MustCompile(`"(latency|ttft)_ms":\d+`).ReplaceAllString(p.read(run+"/results.jsonl"), "")
		}
		Expect(timeless("merged/latest")).To(Equal(timeless("whole/latest")), "all but how long it took")
		Expect(p.read("out/report.html")).To(HavePrefix("<!doctype html>"))
		Expect(strings.Count(p.read("out/junit.xml"), "<testcase ")).To(Equal(400))
	})

	It("(m) of one failed item from an artifact", func() {
		p := committedProject()
		o := p.shell(1, ".", "echoeval run datasets/regression.yaml --out eval-runs")
		Expect(o.stdout).To(ContainSubstring("failed"))
		runs, err := filepath.Glob(p.path("eval-runs/2*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(runs).To(HaveLen(1))
		run := filepath.Base(runs[0])
		var failed result
		for _, line := range p.results("eval-runs/" + run) {
			if line.verdict() == "fail/check" {
				failed = line
			}
		}
		Expect(failed.Item).NotTo(BeEmpty())
		commit := strings.TrimSpace(p.git("rev-parse", "HEAD"))

		// The artifact is looked at where there is no repository.
		elsewhere := emptyProject()
		Expect(os.RemoveAll(elsewhere.path(".git"))).To(Succeed())
		Expect(os.CopyFS(elsewhere.path("ci/"+run), os.DirFS(runs[0]))).To(Succeed())
		o = elsewhere.types(fmt.Sprintf("echoeval show ci/%s %s --provider %s", run, failed.Item, failed.Provider))
		Expect(o.stdout).To(And(ContainSubstring(failed.Item+" on "+failed.Provider+": fail"), MatchRegexp(`(?s)#1 user\n.*assistant.*\nchecks\n.*  fail `)))

		var manifest struct {
			Git struct{ Commit string }
		}
		Expect(json.Unmarshal([]byte(elsewhere.read("ci/"+run+"/manifest.json")), &manifest)).To(Succeed())
		Expect(manifest.Git.Commit).To(Equal(commit))
		p.git("commit", "--quiet", "--allow-empty", "--message", "second")
		p.git("checkout", "--quiet", manifest.Git.Commit)
		o = p.shell(1, ".", fmt.Sprintf("echoeval run datasets/regression.yaml --item %s --provider %s -v", failed.Item, failed.Provider))
		Expect(p.only().Output).To(Equal(failed.Output))
		Expect(o.stderr).To(ContainSubstring(failed.Item))

		Expect(os.CopyFS(p.path("ci/nightly"), os.DirFS(p.path("fixtures/cassettes")))).To(Succeed())
		p.shell(1, ".", fmt.Sprintf("echoeval run datasets/regression.yaml --item %s --cassettes ci/nightly", failed.Item))
		Expect(p.results(p.last())[0].Cassette.File).To(HavePrefix("ci/nightly/"))
	})

	It("(n) of a check in Python and one in Go", func() {
		python()
		p := exampleProject()
		p.write("datasets/checks/short.py", `import json, sys
c = json.load(sys.stdin); n = len(c["output"].split())
print(json.dumps({"score": min(1, 80 / max(n, 1)), "reason": f"{n} words"}))
`)
		p.write("short/main.go", `package main

import (
	"strings"

	"github.com/echoeval/echoeval/harness/checkcmd"
)

func wordScore(output string) float64 {
	return min(1, 80/float64(max(len(strings.Fields(output)), 1)))
}

func main() {
	checkcmd.Main(func(c checkcmd.Case) checkcmd.Verdict { return checkcmd.Score(wordScore(c.Output), "words") })
}
`)
		build := exec.Command("go", "build", "-o", p.path("datasets/bin/short"), p.path("short/main.go"))
		build.Dir = suite.Root()
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		p.edit(quickstart, "  checks:\n    - {", "  checks:\n    - {command: [python3, checks/short.py], name: short, threshold: 0.8}\n    - {command: {run: [./bin/short], workers: lines, with: {max: 80}}, name: short-go, threshold: 0.8}\n    - {")
		p.types("echoeval run " + quickstart)
		seen := 0
		for _, line := range p.results(p.last()) {
			byName := map[string]check{}
			for _, c := range line.Checks {
				byName[c.Name] = c
			}
			Expect(byName["short"].Status).To(Equal("pass"), line.Item)
			Expect(byName["short"].Reason).To(MatchRegexp(`^\d+ words$`))
			Expect(byName["short-go"].Status).To(Equal("pass"), line.Item)
			Expect(byName["short-go"].Reason).To(Equal("words"))
			seen++
		}
		Expect(seen).To(BeNumerically(">", 10))
	})

	It("(q) of six agents in one repository, with shared checks", func() {
		p := emptyProject()
		names := []string{"billing", "catalog", "orders", "returns", "search", "support"}
		p.write("echoeval.yaml", "version: 1\ndatasets: [services/*/evals/*.yaml]\nuse: [evals/shared/*.yaml]\ndefaults: {invariants: [{use: no-secret-in-content, severity: warn}], checks: [brief]}\n")
		p.write("evals/shared/common.yaml", "version: 1\nchecks:\n  brief: {not: {regex: '.{200}'}}\n  greets: {contains: emulator}\nproviders:\n  - {id: mini, provider: openai, model: gpt-4o-mini, temperature: 0, price: {input: 1.0, output: 5.0}}\n")
		for _, name := range names {
			p.write("services/"+name+"/agent/"+name+".yaml", "name: "+name+"\ntask: {description: Answer about "+name+".}\ntools: [list_dir]\n")
			p.write("services/"+name+"/evals/"+name+".yaml", "version: 1\nname: "+name+"\nagent: ../agent/"+name+".yaml\nproviders: [mini]\ndefaults: {checks: [greets]}\nitems:\n  - {id: refund-1, input: Hello from "+name+"}\n  - {id: refund-2, input: Hello again}\n")
		}
		e := p.emulate("")
		p.types("echoeval record " + e.upstream() + " --recorded-at " + recordedAt)
		o := p.types("echoeval run --format junit=out/junit.xml")
		for _, name := range names {
			Expect(strings.Count(o.stdout, name+": 2 items x 1 provider, replay")).To(Equal(1))
		}
		var report struct {
			Suites []struct {
				Name  string `xml:"name,attr"`
				Tests int    `xml:"tests,attr"`
			} `xml:"testsuite"`
		}
		Expect(xml.Unmarshal([]byte(p.read("out/junit.xml")), &report)).To(Succeed())
		Expect(report.Suites).To(HaveLen(6))
		cassettes := p.files("fixtures/cassettes")
		Expect(cassettes).To(HaveLen(12))

		// The root comes from the dataset, not from the shell.
		p.shell(0, "services/billing", "echoeval run evals/billing.yaml")
		Expect(p.results(p.last())[0].Cassette.File).To(Equal("fixtures/cassettes/billing/mini/refund-1.yaml"))
		expectSameFiles(p.files("fixtures/cassettes"), cassettes)
		Expect(p.path("services/billing/.echoeval")).NotTo(BeADirectory())

		o = p.types("echoeval validate --item refund-1 services/billing/evals/billing.yaml")
		Expect(o.stdout).To(And(MatchRegexp(`brief.*evals/shared/common\.yaml:3`), MatchRegexp(`greets.*services/billing/evals/billing\.yaml:5|greets.*evals/shared/common\.yaml:4`), MatchRegexp(`no-secret-in-content.*echoeval\.yaml:4`)))
	})
})
