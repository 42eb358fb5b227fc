//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// paid is what a run says it has paid, in USD.
func (p *project) paid(run string) float64 {
	GinkgoHelper()
	var s struct {
		Cost struct {
			Spent float64 `json:"spent_now_usd"`
		} `json:"cost"`
	}
	Expect(json.Unmarshal([]byte(p.read(run+"/summary.json")), &s)).To(Succeed())
	return s.Cost.Spent
}

var _ = Describe("a run that its budget ends", func() {
	begin := func() (*project, emulator) {
		p := exampleProject()
		p.refuseNothing()
		return p, p.emulate("datasets/emulator/quickstart.yaml")
	}
	const figures = `--max-cost 0\.02 USD does not cover the next call: 0\.\d+ are spent, and it may cost 0\.\d+`

	It("tells the figures in every report, and what to type", func() {
		p, e := begin()
		args := []string{"record", quickstart, e.upstream(), "--cassettes", "c", "--concurrency", "2", "--max-cost", "0.02"}
		for _, format := range []string{"markdown", "junit", "csv", "html", "json"} {
			args = append(args, "--format", format)
		}
		o := p.expect(5, args...)
		Expect(o.stdout).To(MatchRegexp(`message: +` + figures))
		run := p.last()
		Expect(hints(o)).To(ConsistOf(MatchRegexp(`^echoeval run --resume ` + regexp.QuoteMeta(run) + ` --max-cost 0\.0\d+$`)))
		left := 0
		for _, r := range p.results(run) {
			if r.Status == "not_run" {
				left++
				Expect(r.verdict()).To(Equal("not_run/budget"))
				Expect(r.Error.Kind).To(Equal("budget"))
				Expect(r.Error.Message).To(MatchRegexp("^" + figures + "$"))
			}
		}
		Expect(left).To(BeNumerically(">", 0))
		for _, name := range []string{"report.md", "junit.xml", "results.csv", "report.html", "report.json"} {
			Expect(p.read(run+"/reports/"+name)).To(MatchRegexp(figures), name)
		}

		By("asking nothing more when it is resumed as it was")
		o = p.expect(5, "run", "--resume", run)
		Expect(p.results(run)).To(HaveLen(24))
		Expect(p.summary(run).Counts["not_run"]).To(Equal(left))

		By("going on with a higher limit, which the run keeps")
		o = p.obey(hints(o)[0])
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(p.summary(run).Counts["pass"]).To(Equal(24))
		Expect(p.read(run + "/manifest.json")).To(MatchRegexp(`"--max-cost=0\.0\d+"`))
		Expect(p.read(run + "/manifest.json")).NotTo(ContainSubstring(`"--max-cost=0.02"`))
	})

	It("counts what it has paid before it went on", func() {
		p, e := begin()
		p.expect(5, "record", quickstart, e.upstream(), "--cassettes", "c", "--concurrency", "1", "--max-cost", "0.015")
		run := p.last()
		before := p.paid(run)
		Expect(before).To(BeNumerically(">", 0))
		// A limit that only the rest would keep.
		o := p.expect(5, "run", "--resume", run, "--max-cost", fmt.Sprint(before+0.008), "--concurrency", "1")
		Expect(o.stdout).To(ContainSubstring("does not cover the next call"))
		Expect(p.paid(run)).To(BeNumerically("<=", before+0.008))

		By("of a run that was killed what its lines cost")
		p.edit(run+"/manifest.json", `"spent_usd"`, `"unknown"`)
		spent := p.paid(run)
		p.expect(5, "run", "--resume", run, "--max-cost", fmt.Sprint(spent))
		Expect(p.paid(run)).To(BeNumerically("~", spent, 1e-12))
	})

	It("is not taken for an interruption when shards are merged", func() {
		p, e := begin()
		for i := 1; i <= 2; i++ {
			args := []string{"record", quickstart, e.upstream(), "--cassettes", "c", "--shard", fmt.Sprintf("%d/2", i), "--out", "parts"}
			if i == 2 {
				args = append(args, "--max-cost", "0.01")
			}
			p.run(args...)
		}
		shards, err := filepath.Glob(p.path("parts/2*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(shards).To(HaveLen(2))
		o := p.expect(5, append([]string{"merge"}, shards...)...)
		Expect(o.stdout).To(And(MatchRegexp(`items? not_run: budget`), MatchRegexp(`hint: echoeval run --resume parts/\S+ --max-cost 0\.\d+`)))
	})

	It("says so where the gates allow it", func() {
		p, e := begin()
		o := p.succeed("record", quickstart, e.upstream(), "--cassettes", "c", "--concurrency", "2", "--max-cost", "0.02", "--set", "gates.error_rate=<= 0.9")
		Expect(o.stdout).To(MatchRegexp(`warning: ` + figures))
		Expect(hints(o)).To(ConsistOf(ContainSubstring(" --max-cost 0.0")))
	})
})

var _ = Describe("what a recording needs", func() {
	all := []string{"--provider", "openai:gpt-4o-mini", "--provider", "openai:gpt-4.1-mini", "--provider", "anthropic:claude-haiku-4-5", "--provider", "gemini:gemini-2.5-flash"}
	unset := []string{"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"}

	It("is said all at once, each key once, beside other mistakes", func() {
		p := exampleProject()
		o := p.expect(2, append([]string{"record", quickstart, "--filter", "tags ++"}, all...)...)
		for _, name := range unset {
			Expect(strings.Count(o.stderr, "a key, and "+name+" is not set")).To(Equal(1), "%s\n%s", name, o)
		}
		Expect(o.stderr).To(ContainSubstring("error: --filter, character "))
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})

	It("is said by a dry run, which needs nothing itself", func() {
		p := exampleProject()
		o := p.succeed(append([]string{"record", quickstart, "--dry-run"}, all...)...)
		Expect(o.stdout).To(ContainSubstring("; not set: ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENAI_API_KEY, sees "))
		var plan struct {
			Keys []string `json:"missing_keys"`
		}
		Expect(json.Unmarshal([]byte(p.succeed(append([]string{"record", quickstart, "--dry-run", "--json"}, all...)...).stdout), &plan)).To(Succeed())
		Expect(plan.Keys).To(Equal(unset))

		By("naming none that is there, or that an address of this machine does not need")
		p.env = append(p.env, "GEMINI_API_KEY=x")
		o = p.succeed(append([]string{"record", quickstart, "--dry-run", "--upstream", "openai=http://127.0.0.1:9/v1"}, all...)...)
		Expect(o.stdout).To(ContainSubstring("; not set: ANTHROPIC_API_KEY, sees "))
		Expect(p.succeed("run", quickstart, "--dry-run").stdout).NotTo(ContainSubstring("not set"))
		Expect(json.Unmarshal([]byte(p.succeed("run", quickstart, "--dry-run", "--json").stdout), &plan)).To(Succeed())
		Expect(plan.Keys).To(BeNil())
	})

	It("knows both ways of Amazon", func() {
		p := exampleProject()
		p.env = append(p.env, "AWS_ACCESS_KEY_ID=x")
		Expect(p.succeed("record", quickstart, "--dry-run", "--provider", "bedrock:amazon.nova-lite-v1:0").stdout).To(ContainSubstring("; not set: AWS_SECRET_ACCESS_KEY, sees "))
		p.env = append(p.env, "AWS_SECRET_ACCESS_KEY=x")
		Expect(p.succeed("record", quickstart, "--dry-run", "--provider", "bedrock:amazon.nova-lite-v1:0").stdout).NotTo(ContainSubstring("not set"))
	})

	It("is the variables that a program is passed, all of them", func() {
		p, e := targeted("command: "+programUnderTest("hello")+", env_from: [CRM_TOKEN, PATH, SHOP_TOKEN]", helloItem)
		o := p.expect(2, "record", "evals/d.yaml", e.upstream())
		Expect(o.stderr).To(And(ContainSubstring("evals/d.yaml:"), ContainSubstring("the target is passed variables that are not set: CRM_TOKEN, SHOP_TOKEN"), ContainSubstring("hint: export them")))
		p.env = append(p.env, "CRM_TOKEN=x", "SHOP_TOKEN=")
		p.succeed("record", "evals/d.yaml", e.upstream())
		p.env = slices.DeleteFunc(p.env, func(e string) bool { return strings.Contains(e, "_TOKEN=") })
		p.succeed("run", "evals/d.yaml")
	})
})

var _ = Describe("a program that is broken", func() {
	formats := []string{"--format", "markdown", "--format", "junit", "--format", "html", "--format", "json", "--format", "csv", "--format", "github"}
	everywhere := func(p *project, o outcome, words ...string) {
		GinkgoHelper()
		texts := map[string]string{"stdout": o.stdout}
		for name, text := range p.files(p.last() + "/reports") {
			texts[name] = text
		}
		Expect(texts).To(HaveLen(7))
		for name, text := range texts {
			for _, word := range words {
				Expect(text).To(ContainSubstring(word), "%s\n%s", name, text)
			}
			Expect(text).NotTo(ContainSubstring("\x1b"), name)
		}
	}

	It("as a check says in every report why there is no verdict, once", func() {
		p := emptyProject()
		p.write("broken.sh", "#!/bin/sh\nprintf 'loading 12%%\\nno module named \\033[31mnumpyy (pid %s)\\n' $$ >&2\nexit 3\n")
		Expect(os.Chmod(p.path("broken.sh"), 0o755)).To(Succeed())
		p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer}}\nproviders: [{id: s, provider: script}]\ndefaults: {script: [{text: hi}], checks: [{command: [./broken.sh], name: tone}]}\nitems: [{id: a, input: x}, {id: b, input: x}, {id: c, input: x}]\n")
		o := p.expect(5, append([]string{"run", "d.yaml", "--mode", "live"}, formats...)...)
		everywhere(p, o, "ended with code 3", "numpyy")
		Expect(o.stdout).To(And(ContainSubstring("3 items unjudged: check_crash tone\n  items:    a, b, c\n"), ContainSubstring("(check_crash tone)")))
		table, _, _ := strings.Cut(o.stdout, "::error")
		Expect(strings.Count(table, "no module named")).To(Equal(1), "the process id is no other cause")

		By("and in the summary")
		var s struct {
			Causes []struct {
				Status, Cause, Detail, Message string
				Items                          int
				IDs                            []string `json:"ids"`
			}
		}
		Expect(json.Unmarshal([]byte(p.expect(5, "run", "d.yaml", "--mode", "live", "--json").stdout), &s)).To(Succeed())
		Expect(s.Causes).To(HaveLen(1))
		Expect(s.Causes[0].Status + " " + s.Causes[0].Cause + " " + s.Causes[0].Detail).To(Equal("unjudged check_crash tone"))
		Expect(s.Causes[0].Message).To(ContainSubstring("numpyy"))
		Expect(s.Causes[0].IDs).To(Equal([]string{"a", "b", "c"}))
	})

	targets := func(command, workers string) *project {
		p := emptyProject()
		p.write("evals/d.yaml", "version: 1\nname: d\ntarget: {command: "+command+", workers: "+workers+", model_calls: optional}\nitems: [{id: a, input: one, checks: [{contains: x}]}, {id: b, input: two, checks: [{contains: x}]}]\n")
		return p
	}
	for _, workers := range []string{"once", "lines"} {
		It("before its first question is nobody's failure", func() {
			p := targets(`[sh, -c, 'echo "`+"\\033[2J"+`no module named evals, $$" >&2; exit 3']`, workers)
			o := p.expect(5, append([]string{"run", "evals/d.yaml", "--mode", "live"}, formats...)...)
			everywhere(p, o, "ended with code 3", "no module named evals")
			for _, r := range p.results(p.last()) {
				Expect(r.verdict()).To(Equal("error/target"))
				Expect(r.Error.Kind).To(Equal("target"))
				Expect(*r.Error.Hint).To(HavePrefix("it never came as far as the question: try it by hand, from the project's root: cd evals && sh -c "))
			}
			Expect(o.stdout).To(ContainSubstring("2 items error: target\n  items:    a, b\n"))

			By("which a resumed run does again")
			p.write("evals/d.yaml", p.read("evals/d.yaml"))
			Expect(p.expect(5, "run", "--resume", p.last()).stdout).To(ContainSubstring("2 items error: target"))
		})

		It("which the system cannot start is not either", func() {
			p := targets("[./run]", workers)
			p.write("evals/run", "#!/nonexistent/interpreter\n")
			Expect(os.Chmod(p.path("evals/run"), 0o755)).To(Succeed())
			o := p.expect(5, "run", "evals/d.yaml", "--mode", "live")
			Expect(o.stdout).To(And(ContainSubstring("2 items error: target"), ContainSubstring("cannot be started")))
		})

		It("by a question has failed it", func() {
			read := "read line; case $line in *two*) echo 'no answer to this' >&2; exit 3;; *) echo '{\"output\": \"x\"}';; esac"
			if workers == "lines" {
				read = "while " + strings.Replace(read, ";", "; do", 1) + "; done"
			}
			p := targets(`[./run]`, workers)
			p.write("evals/run", "#!/bin/sh\n"+read+"\n")
			Expect(os.Chmod(p.path("evals/run"), 0o755)).To(Succeed())
			o := p.expect(1, append([]string{"run", "evals/d.yaml", "--mode", "live"}, formats...)...)
			everywhere(p, o, "ended with code 3", "no answer to this")
			Expect(p.verdicts()).To(HaveKeyWithValue("b target", "fail/agent"))
			Expect(p.verdicts()).To(HaveKeyWithValue("a target", "pass"))
		})
	}
})

var _ = Describe("validate", func() {
	const wrong = `version: 1
name: a
use: [lib.yaml]
agent: agent.yaml
providers:
  - openia:gpt-4o-mini
  - {id: j, provider: openai, model: gpt-4o, role: judge}
defaults:
  checks: [{contian: x, name: polite}, {regex: "("}, nice, {use: alsonice}]
gates: {pass_rate: ">= 2", passrate: "== 1", "pass_at_2": ">= 0.5"}
items:
  - {id: one, input: x, providers: [foo], checks: [{contains_al: [a]}, {regex: "a("}, {tool_calls: {match: exact, calls: [{name: lookup}]}}], drop: [polite]}
  - {id: two, input: x, checks: [{judge: {rubric: x}, threshold: 0.5}, {json_schema: {type: strin}}]}
  - {id: two, inpt: x, checks: [{numeric: {valu: 3}}], tool_mocks: {zzz: 1}}
`
	with := func(library, agent string) *project {
		p := emptyProject()
		p.write("a.yaml", wrong)
		p.write("lib.yaml", library)
		p.write("agent.yaml", agent)
		return p
	}
	places := func(p *project) []string {
		GinkgoHelper()
		var got []string
		for _, line := range strings.Split(p.expect(2, "validate", "a.yaml").stderr, "\n") {
			if text, ok := strings.CutPrefix(line, "error: "); ok {
				got = append(got, text)
			}
		}
		return got
	}
	own := []any{
		HavePrefix("a.yaml:6:5: providers[0]: unknown provider"),
		HavePrefix("a.yaml:9:48: "), // the regex of the defaults
		HavePrefix("a.yaml:10:9: gate pass_rate"),
		HavePrefix("a.yaml:10:28: gates: unknown metric"),
		HavePrefix("a.yaml:12:80: "), // that of an item whose provider is one of those that are wrong, and whose other check is
		HavePrefix("a.yaml:13:93: items[1].json_schema.type"),
		HavePrefix("a.yaml:14:10: items[2].id"),
		HavePrefix("a.yaml:14:15: items[2]: unknown key"),
		HavePrefix("a.yaml:14:44: items[2].numeric: unknown key"),
	}

	It("tells all that is wrong in one go, and nothing that follows from it", func() {
		p := with("version: 1\nchecks:\n  nice: {contans: x}\n  alsonice: {contains: x, wieght: 2}\n", "name: x\ntask: {description: do, expected: x}\ntools: [read_fil]\n")
		Expect(places(p)).To(ConsistOf(append(own,
			HavePrefix("a.yaml:9:13: defaults.checks[0]: unknown check"),
			HavePrefix("a.yaml:12:53: items[0].checks[0]: unknown check"),
			HavePrefix("agent.yaml:2:25: task: unknown key"),
			HavePrefix("agent.yaml:3:9: tools[0]: unknown tool"),
			HavePrefix("lib.yaml:3:10: checks.nice: unknown check"),
			HavePrefix("lib.yaml:4:27: checks.alsonice: unknown key"),
		)...))
	})

	It("knows no name to be wrong that a file which cannot be read may define", func() {
		p := with("checks: [\n", "task: {descr\n")
		Expect(places(p)).To(ConsistOf(append(own, HavePrefix("lib.yaml:2:1: not YAML"), HavePrefix("agent.yaml:2:1: not YAML"))...))
		p.remove("lib.yaml")
		p.remove("agent.yaml")
		Expect(places(p)).To(ConsistOf(append(own, ContainSubstring("library lib.yaml does not exist"), ContainSubstring("agent file agent.yaml does not exist"))...))
	})

	It("of a dataset that is right but for one thing tells this alone", func() {
		for before, after := range map[string]string{
			"openai:gpt-4o-mini":                     "openia:gpt-4o-mini",
			"vars: {title: Nine Winters}":            "vars: [Nine Winters]",
			"vars: {shop: Harbour Books}":            "vras: {shop: Harbour Books}",
			"contains_all: [\"2026-01.txt\", \"2026": "contains_al: [\"2026-01.txt\", \"2026",
			"tool_context: {shop_id: shop-7f3a91}":   "tool_contxt: {shop_id: shop-7f3a91}",
			"agent: agents/clerk.yaml":               "agent: agents/clark.yaml",
			"numeric: {value: \"{{expected}}\"}":     "numeric: {valu: \"{{expected}}\"}",
			"input: Which order files do we have?":   "inptu: Which order files do we have?",
			"{latency: {max: 30s}, name: quick}":     "{latency: {mx: 30s}, name: quick}",
		} {
			p := exampleProject()
			p.edit(quickstart, before, after)
			o := p.expect(2, "validate", quickstart)
			Expect(strings.Count(o.stderr, "error: ")).To(Equal(1), "%s\n%s", after, o)
		}
	})
})

var _ = Describe("a name that is mistaken", func() {
	DescribeTable("is told from a file that is damaged, with what to type", func(message, hint string, args ...string) {
		p := exampleProject()
		p.succeed("run", quickstart, "-q")
		p.write("quick.txt", "no run\n")
		p.write("list.yaml", "- 1\n")
		o := p.expect(2, args...)
		Expect(o.stderr).To(And(ContainSubstring(message), MatchRegexp(`(?m)^hint: .*`+hint)))
		Expect(o.stderr).NotTo(ContainSubstring(p.dir))
	},
		Entry("a dataset for a cassette", quickstart+" is a dataset and no cassette", "echoeval cassette ls "+quickstart, "cassette", "scrub", quickstart),
		Entry("a dataset for a cassette that is shown", quickstart+" is a dataset and no cassette", "echoeval cassette ls", "cassette", "show", quickstart),
		Entry("a folder for a cassette", "datasets is a folder", `datasets/\*\.yaml`, "cassette", "scrub", "datasets"),
		Entry("a file for a run", "quick.txt is a file, and no run", "echoeval show latest", "report", "quick.txt", "--format", "json"),
		Entry("a dataset for a run", quickstart+" is a file, and no run", "a dataset by its name", "show", quickstart),
		Entry("a folder for a run", "datasets is no folder of a run", "name the run's own folder", "report", "datasets"),
		Entry("a misspelt dataset", "datasets/quikstart.yaml does not exist", "did you mean datasets/quickstart.yaml", "run", "datasets/quikstart.yaml"),
		Entry("a dataset without its folder", "dataset file regression.yaml does not exist", "did you mean datasets/regression.yaml", "run", "regression.yaml"),
		Entry("a dataset's name for its file", "dataset file regression does not exist", "did you mean datasets/regression.yaml", "run", "regression"),
		Entry("a dataset that is like none", "dataset file nosuch.yaml does not exist", "there are datasets/quickstart.yaml, datasets/regression.yaml, list.yaml", "run", "nosuch.yaml"),
		Entry("a file to validate", "datasets/quikstart.yaml cannot be read", "did you mean datasets/quickstart.yaml", "validate", "datasets/quikstart.yaml"),
	)

	It("leaves a cassette that is damaged one of its own kind", func() {
		p := exampleProject()
		file := "fixtures/cassettes/quickstart/openai_gpt-4o-mini/lists-two-files.yaml"
		p.edit(file, "version: ", "vresion: ")
		p.expect(4, "cassette", "scrub", file)
	})

	It("names a project's datasets where there is none here", func() {
		p := emptyProject()
		Expect(p.expect(2, "run", "nosuch.yaml").stderr).To(MatchRegexp("(?m)^hint: .*echoeval init"))
	})
})

var _ = Describe("what a run says beside its table", func() {
	It("is where each report went, unless it is to be quiet", func() {
		p := exampleProject()
		o := p.succeed("run", quickstart, "--out", "runs", "--format", "junit", "--format", "markdown=out/report.md")
		Expect(o.stderr).To(MatchRegexp(`(?m)^report junit: runs/\S+-quickstart-\S+/reports/junit\.xml$`))
		Expect(o.stderr).To(MatchRegexp(`(?m)^report markdown: out/report\.md$`))
		Expect(p.succeed("run", quickstart, "-q", "--format", "junit").stderr).To(BeEmpty())
		o = p.succeed("run", quickstart, "datasets/regression.yaml", "--fail-on", "none", "--format", "junit=all.xml")
		Expect(strings.Count(o.stderr, "report junit: all.xml\n")).To(Equal(1))
	})

	It("is that nothing was stale", func() {
		p := exampleProject()
		e := p.emulate("datasets/emulator/quickstart.yaml")
		o := p.succeed("record", quickstart, e.upstream(), "--stale")
		Expect(o.stderr).To(ContainSubstring("nothing was stale: no vendor was asked, and it cost nothing; the verdict is that of 24 recordings\n"))
		p.edit("datasets/agents/clerk.yaml", "never guess", "never invent")
		p.refuseNothing()
		Expect(p.run("record", quickstart, e.upstream(), "--stale").stderr).NotTo(ContainSubstring("nothing was stale"))
	})

	It("is each hint once where its folder cannot be written", func() {
		p := exampleProject()
		p.write("runs", "a file\n")
		o := p.expect(3, "run", quickstart, "--out", "runs")
		Expect(strings.Count(o.stderr, "hint: ")).To(Equal(1), "%s", o)
	})

	It("is what can be done about a damaged run", func() {
		p := exampleProject()
		p.succeed("run", quickstart, "-q")
		run := p.last()
		lines := strings.SplitAfter(p.read(run+"/results.jsonl"), "\n")
		lines[2] = "{" + lines[2]
		p.write(run+"/results.jsonl", strings.Join(lines, ""))
		o := p.expect(3, "report", run, "--format", "csv")
		Expect(o.stderr).To(And(ContainSubstring("results.jsonl:3"), ContainSubstring("the line is damaged"), ContainSubstring("hint: the files of a run are not edited")))
		p.write(run+"/summary.json", `{"v":`)
		Expect(p.expect(3, "show", run).stderr).To(And(ContainSubstring("summary.json: the file is damaged"), ContainSubstring("hint: the files of a run are not edited")))
	})
})

var _ = Describe("what a dry run sees", func() {
	sees := func(o outcome) string {
		GinkgoHelper()
		m := regexp.MustCompile(`sees (?:a drop of +│ )?(\d+) points?`).FindStringSubmatch(o.stdout)
		Expect(m).To(HaveLen(2), "%s", o)
		return m[1]
	}
	It("is what the run then says", func() {
		p := exampleProject()
		Expect(p.succeed("run", quickstart, "--dry-run").stdout).To(HaveSuffix(" points if half of the items pass\n"))
		said := sees(p.succeed("run", quickstart))
		o := p.succeed("run", quickstart, "--dry-run")
		Expect(sees(o)).To(Equal(said))
		Expect(o.stdout).NotTo(ContainSubstring("if half"))

		By("and by the baseline too")
		p.succeed("baseline", "accept", "latest")
		Expect(os.RemoveAll(p.path(".echoeval"))).To(Succeed())
		o = p.succeed("run", quickstart, "--dry-run")
		Expect(sees(o)).To(Equal(said))
		Expect(o.stdout).NotTo(ContainSubstring("if half"))

		By("less where there are fewer items")
		less := sees(p.succeed("run", quickstart, "--dry-run", "--tag", "read"))
		Expect(len(less) > len(said) || less > said).To(BeTrue(), "%s, %s", less, said)
	})
})

var _ = Describe("providers check --live", func() {
	It("hints as a run does", func() {
		p := emptyProject()
		p.env = append(p.env, "OPENAI_API_KEY=not-a-real-key-0123456789abcdef")
		o := p.expect(5, "providers", "check", "--live", "--upstream", "openai=http://127.0.0.1:9/v1")
		Expect(o.stderr).To(ContainSubstring("hint: openai: nothing listens there: check --upstream (http://127.0.0.1:9/v1)"))
		var list []struct {
			Name string
			Hint *string
		}
		Expect(json.Unmarshal([]byte(p.expect(5, "providers", "check", "--live", "--json", "--upstream", "openai=http://127.0.0.1:9/v1").stdout), &list)).To(Succeed())
		hinted := 0
		for _, l := range list {
			if l.Hint != nil {
				hinted++
				Expect(l.Name).To(Equal("openai"))
			}
		}
		Expect(hinted).To(Equal(1))
		p.env = nil
		Expect(p.expect(5, "providers", "check", "--live").stderr).To(ContainSubstring("hint: echoeval providers ls"))
	})
})

var _ = Describe("a comparison of runs", func() {
	It("fits the terminal, and names each run once", func() {
		p := exampleProject()
		for range 3 {
			p.succeed("run", quickstart, "-q")
		}
		var runs []string
		for _, run := range p.runs() {
			runs = append(runs, filepath.Base(run))
		}
		Expect(runs).To(HaveLen(3))
		for _, width := range []int{80, 120} {
			for _, sides := range [][]string{runs[:2], runs} {
				p.env = []string{fmt.Sprintf("COLUMNS=%d", width)}
				o := p.succeed(append([]string{"compare"}, sides...)...)
				for _, line := range strings.Split(o.stdout, "\n") {
					Expect(utf8.RuneCountInString(line)).To(BeNumerically("<=", width), line)
				}
				for i, run := range sides {
					Expect(strings.Count(o.stdout, run)).To(Equal(1))
					Expect(o.stdout).To(ContainSubstring(fmt.Sprintf("\n  %c  %s\n", 'A'+i, run)))
				}
				Expect(o.stdout).To(ContainSubstring("pass_rate"))
			}
		}
		o := p.succeed("compare", runs[0], runs[1], "--format", "markdown")
		Expect(strings.Count(o.stdout, runs[0])).To(Equal(1))
		Expect(o.stdout).To(And(ContainSubstring("- A: `"+runs[0]+"`"), ContainSubstring("| `openai:gpt-4o-mini in B` |")))
	})
})

var _ = Describe("an item in quarantine", func() {
	items := func(until string) *project {
		p := emptyProject()
		p.write("crash.sh", "#!/bin/sh\nexit 3\n")
		Expect(os.Chmod(p.path("crash.sh"), 0o755)).To(Succeed())
		p.write("d.yaml", `version: 1
name: d
agent: {task: {description: Answer}}
providers: [{id: s, provider: script}]
items:
  - {id: good, input: x, checks: [{contains: hi}], script: [{text: hi}]}
  - {id: fails, input: x, checks: [{contains: no}], script: [{text: hi}]}
  - {id: crashes, input: x, checks: [{command: [./crash.sh], name: tone}], script: [{text: hi}]}
overrides:
  - {match: "id != 'good'", quarantine: {owner: ana, until: `+until+`, reason: "lookup race, #812"}}
`)
		return p
	}
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }

	It("runs and is shown, and counts for nothing but its invariants", func() {
		p := items(day(1))
		o := p.succeed("run", "d.yaml", "--mode", "live", "--format", "junit", "--format", "markdown", "--format", "html", "--format", "csv")
		Expect(o.stdout).To(And(ContainSubstring("quarantined: fails, ana until "+day(1)+": lookup race, #812"), ContainSubstring("quarantined: crashes, ana until ")))
		Expect(p.verdicts()).To(Equal(map[string]string{"good s": "pass", "fails s": "fail/check", "crashes s": "unjudged/check_crash"}))
		for name, text := range p.files(p.last() + "/reports") {
			if name != "junit.xml" && name != "results.csv" {
				Expect(text).To(ContainSubstring("lookup race"), name)
			}
		}

		By("which still gate")
		p.edit("d.yaml", "{contains: no}], script: [{text: hi}]", "{contains: no}], script: [{call: {name: nope, args: {}}}, {text: hi}]")
		o = p.expect(1, "run", "d.yaml", "--mode", "live")
		Expect(o.stdout).To(ContainSubstring("gate invariant_violations of s: 1, bound == 0: failed"))
	})

	It("gates again once its day is over, and says so", func() {
		p := items(day(-1))
		o := p.expect(1, "run", "d.yaml", "--mode", "live")
		Expect(o.stdout).To(And(ContainSubstring("quarantined: fails, ana until "+day(-1)+", over: it gates again: lookup race, #812"), ContainSubstring("could not be judged (check_crash tone)")))
	})

	It("has an owner, a day and a reason", func() {
		p := items(day(1))
		for _, part := range []string{"owner: ana, ", "until: " + day(1) + ", ", `, reason: "lookup race, #812"`} {
			before := p.read("d.yaml")
			p.edit("d.yaml", part, "")
			Expect(p.expect(2, "validate", "d.yaml").stderr).To(MatchRegexp(`^error: d\.yaml:\d+:\d+: overrides\[0\]\.quarantine: key "\w+" is missing\n`))
			p.write("d.yaml", before)
		}
		p.edit("d.yaml", day(1), "soon")
		Expect(p.expect(2, "validate", "d.yaml").stderr).To(ContainSubstring(`"soon" is no day`))
	})
})

var _ = Describe("a command that there is not", func() {
	DescribeTable("is named, and not its flags", func(name string, args ...string) {
		o := emptyProject().expect(2, args...)
		Expect(o.stderr).To(And(ContainSubstring("unknown command \""+name+"\""), MatchRegexp("(?m)^hint: ")))
	},
		Entry(nil, "juggle", "juggle", "latest", "--rules", "x.yaml"),
		Entry(nil, "scrubb", "cassette", "scrubb", "--dry-run", "a.yaml"),
	)

	It("is none where the flag of a command is wrong", func() {
		Expect(emptyProject().expect(2, "run", "x.yaml", "--rulse", "y").stderr).To(ContainSubstring("unknown flag: --rulse"))
	})
})
