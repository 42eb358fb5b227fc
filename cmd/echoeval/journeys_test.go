//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

	It("(b) of an agent in Python, recorded, into CI with replay", func() {
		python()
		p := emptyProject()
		Expect(os.RemoveAll(p.path(".git"))).To(Succeed())
		Expect(os.CopyFS(p.dir, os.DirFS(filepath.Join("testdata", "support")))).To(Succeed())
		p.write(".gitignore", ".echoeval/\neval-runs/\n__pycache__/\n")
		crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"order": 71, "total": "41.50"}`)
		}))
		DeferCleanup(crm.Close)
		e := p.emulate("emulator/support.yaml")
		p.env = []string{"UP=" + e.upstream() + " --upstream=CRM_URL=" + crm.URL, "OPENAI_API_KEY=" + targetKey}
		p.git("init", "--quiet")

		o := p.types("echoeval record datasets/support.yaml --dry-run $UP")
		Expect(o.stdout).To(MatchRegexp(`^support: 1 item, 1 run in mode record, .* s`))
		p.types("echoeval record datasets/support.yaml $UP && echoeval run datasets/support.yaml")
		once := p.identity(p.last())
		p.types("echoeval run datasets/support.yaml")
		Expect(p.identity(p.last())).To(Equal(once))
		p.types("git add datasets fixtures/cassettes && echoeval baseline accept latest && git add baselines")
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "an agent and its evaluation")
		p.git("branch", "origin/main")
		p.expectNowhere(targetKey)

		// CI: no key, and nothing that could be dialled.
		crm.Close()
		p.env = []string{"CI=true", "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + filepath.Join(p.home, "summary.md")}
		o = p.types("echoeval run --baseline git:origin/main --out eval-runs --format github --format junit --format markdown datasets/support.yaml")
		Expect(o.stdout).To(ContainSubstring("all gates hold"))
		reports, err := filepath.Glob(p.path("eval-runs/2*/reports/*"))
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, report := range reports {
			names = append(names, filepath.Base(report))
		}
		Expect(names).To(ConsistOf("github.md", "junit.xml", "report.md"))
		summary, err := os.ReadFile(filepath.Join(p.home, "summary.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(summary)).To(ContainSubstring("support"))
	})

	It("(c) of a prompt change in a pull request", func() {
		p := committedProject()
		p.git("branch", "-m", "main")
		p.write(".gitignore", ".echoeval/\n")
		p.types("echoeval run datasets/quickstart.yaml && echoeval baseline accept latest")
		p.git("add", "--all")
		p.git("commit", "--quiet", "--message", "baseline")
		p.git("branch", "origin/main")
		p.git("checkout", "--quiet", "-b", "change")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.env = []string{"UP=" + e.upstream()}

		p.types("sed -i 's/never guess what a file says/never invent what a file says/' datasets/agents/clerk.yaml")
		o := p.shell(4, ".", "echoeval run datasets/quickstart.yaml")
		Expect(strings.Count(o.stdout, "12 items stale: system-prompt")).To(Equal(1))
		o = p.shell(4, ".", "echoeval cassette verify datasets/quickstart.yaml")
		Expect(o.stdout).To(And(MatchRegexp(`0 fresh, 24 stale, 0 missing, 0 orphaned`), MatchRegexp(`system-prompt`), MatchRegexp(`re-recording: 24 cassettes, about \$0\.\d+, \d+ s`)))
		p.types("echoeval record datasets/quickstart.yaml --stale $UP --recorded-at " + recordedAt)
		o = p.types("echoeval run datasets/quickstart.yaml")
		Expect(o.stdout).To(ContainSubstring("all gates hold"))
		o = p.types("echoeval cassette diff origin/main datasets/quickstart.yaml")
		Expect(o.stdout).To(And(ContainSubstring("24 with other requests only"), ContainSubstring("system-prompt: 24")))
		p.types("echoeval baseline accept quickstart")
		p.types("git add datasets fixtures baselines && git -c user.name=Test -c user.email=test@example.com commit --quiet --message 'another prompt'")
		o = p.types("echoeval run datasets/quickstart.yaml --baseline git:origin/main")
		Expect(o.stdout).To(ContainSubstring("all gates hold"))
	})

	It("(d) of three providers, repeated, within twenty dollars", func() {
		p := exampleProject()
		p.refuseNothing()
		p.write("evals/shared.yaml", "version: 1\nproviders:\n  - {id: haiku, provider: anthropic, model: claude-haiku-4-5, price: {input: 1.0, output: 5.0}}\n")
		p.write("echoeval.yaml", "version: 1\ndatasets: [datasets/*.yaml]\nuse: [evals/*.yaml]\n")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.env = []string{"UP=" + e.upstream() + " --upstream=anthropic=http://" + e.address + " --upstream=gemini=http://" + e.address}
		const columns = "echoeval record datasets/quickstart.yaml --provider openai:gpt-4o-mini --provider haiku --provider gemini:gemini-2.5-flash --repeat 5 --max-cost 20 --cassettes eval-cassettes --set gates.pass_rate=null --set gates.cost_usd=null "
		o := p.types(columns + "--dry-run")
		Expect(o.stdout).To(MatchRegexp(`^quickstart: 12 items, 180 runs in mode record, about \$\d+\.\d+, .*, sees \d+ points`))
		Expect(p.path("eval-cassettes")).NotTo(BeADirectory())

		// Cut off in the middle, and gone on with.
		cmd := p.program("/bin/sh", "-c", "exec "+p.binary+strings.TrimPrefix(columns, "echoeval")+"$UP --recorded-at "+recordedAt+" --concurrency 1")
		s := p.start(cmd)
		Eventually(func() int { return len(p.files("eval-cassettes")) }).WithTimeout(patience).Should(BeNumerically(">", 20))
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(p.await(s).code).To(Equal(130))
		cut := p.last()
		p.types("echoeval run --resume latest")
		Expect(p.last()).To(Equal(cut), "it is the same run")
		Expect(p.results(cut)).To(HaveLen(180))
		Expect(p.files("eval-cassettes")).To(HaveLen(180))

		o = p.types("echoeval compare latest")
		Expect(o.stdout).To(And(ContainSubstring("haiku"), ContainSubstring("gemini:gemini-2.5-flash"), ContainSubstring("Holm")))
		p.types("echoeval report latest --format html,csv -o out")
		Expect(strings.Count(p.read("out/results.csv"), "\n")).To(Equal(181))
		Expect(p.read("out/report.html")).To(HavePrefix("<!doctype html>"))
	})

	It("of one dataset on every vendor, side by side from the recordings that come with it", func() {
		p := exampleProject()
		o := p.types("echoeval run datasets/quickstart.yaml --provider openai:gpt-4o-mini --provider anthropic:claude-haiku-4-5 --provider gemini:gemini-2.5-flash --provider bedrock:amazon.nova-lite-v1:0 --json")
		Expect(o.stdout).To(And(ContainSubstring(`"counts":{"pass":48,"fail":0,`), ContainSubstring(`"cassettes":{"fresh":48,`)))
		o = p.types("echoeval cassette prune datasets/quickstart.yaml --dry-run")
		Expect(o.stdout).To(Equal("quickstart: no orphans\n"))
	})

	It("(e) of a flaky test", func() {
		p := wardProject(6, `{pass_rate: ">= 0.5"}`, "verdict=pass\ncase $item-$repeat in 1-1|1-3|2-*) verdict=fail;; esac")
		e := p.emulate("emulator.yaml")
		p.env = []string{"UP=" + e.upstream()}
		p.types("echoeval run ward.yaml --repeat 1..5 --mode record --cassettes eval-cassettes $UP --recorded-at " + recordedAt)
		o := p.types("echoeval show latest")
		Expect(o.stdout).To(MatchRegexp(`flaky: visit-001 3/5 on openai:gpt-4o-mini`))
		p.write("ward.yaml", p.read("ward.yaml")+`overrides:
  - {match: "id == 'visit-001'", pass_if: ">= 0.6"}
  - {match: "id == 'visit-002'", quarantine: {owner: ana, until: 2099-01-31, reason: "lookup race"}}
`)
		o = p.types("echoeval run ward.yaml --repeat 5 --mode record --cassettes eval-cassettes $UP --recorded-at " + recordedAt + " --set 'gates.pass_rate=== 1'")
		Expect(o.stdout).To(And(ContainSubstring("all gates hold"), ContainSubstring("visit-002"), ContainSubstring("ana")))
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
