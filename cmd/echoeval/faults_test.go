//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/harness/results"
)

// faulty is what --json says of a run that injects faults.
func faulty(o outcome) results.Summary {
	GinkgoHelper()
	var s results.Summary
	Expect(json.Unmarshal([]byte(o.stdout), &s)).To(Succeed(), "%s", o)
	Expect(s.Faults).NotTo(BeEmpty())
	return s
}

// broke are the names of the faults that were not survived.
func broke(s results.Summary) []string {
	out := []string{}
	for _, f := range s.Faults {
		if f.Survived < f.Injected {
			out = append(out, f.Name)
		}
	}
	return out
}

var _ = Describe("faults", func() {
	DescribeTable("are survived on the committed recordings, every kind of them, offline and with the same bytes", func(provider string) {
		p := exampleProject()
		args := []string{"run", "datasets/quickstart.yaml", "--faults", "builtin", "--provider", provider, "--set", `gates.fault_survival="== 1"`, "--json"}
		o := p.run(args...)
		Expect(o.code).To(Equal(0), "%s", o)
		s := faulty(o)
		kinds := map[string]bool{}
		for _, f := range s.Faults {
			Expect(f.Provider).To(Equal(provider))
			Expect(f.Injected).To(BeNumerically(">", 0), f.Name)
			Expect(f.Survived).To(Equal(f.Injected), "%s: %v", f.Name, f.Reason)
			Expect(f.Injected+f.Absent).To(Equal(12), f.Name)
			kinds[f.Kind] = true
		}
		Expect(kinds).To(HaveLen(len(inject.Kinds())))
		m := s.Providers[0].Metrics[results.FaultSurvival]
		Expect(*m.Value).To(BeNumerically("==", 1))
		Expect(m.Clusters).To(Equal(12))
		Expect(s.Counts.Pass).To(Equal(12), "the items themselves are judged as ever")

		first := p.runs()[0]
		Expect(p.run(append(args, "--concurrency", "1")...).code).To(Equal(0))
		second := p.runs()[1]
		for _, name := range []string{"results.jsonl", "summary.json", "traces/001.jsonl"} {
			Expect(p.read(filepath.Join(second, name))).To(Equal(p.read(filepath.Join(first, name))), name)
		}
		for _, text := range []string{p.dir, p.home} {
			Expect(p.read(filepath.Join(first, "results.jsonl"))).NotTo(ContainSubstring(text))
		}
	},
		Entry(nil, "openai:gpt-4o-mini"),
		Entry(nil, "anthropic:claude-haiku-4-5"),
		Entry(nil, "gemini:gemini-2.5-flash"),
		Entry(nil, "bedrock:amazon.nova-lite-v1:0"),
	)

	It("are shown as a table of faults and providers, item by item, and in markdown", func() {
		p := exampleProject()
		p.write("faults.yaml", "version: 1\nfaults:\n  - server_error: {times: 3}\n  - unknown_tool\n")
		o := p.run("run", "datasets/quickstart.yaml", "--faults", "faults.yaml", "--provider", "openai:gpt-4o-mini", "--provider", "gemini:gemini-2.5-flash", "--format", "markdown=faults.md")
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(o.stdout).To(MatchRegexp(`fault survived +│ openai:gpt-4o-mini +│ gemini:gemini-2.5-flash`))
		Expect(o.stdout).To(MatchRegexp(`server_error +│ 0 of 12 +│ 0 of 12`))
		Expect(o.stdout).To(MatchRegexp(`unknown_tool +│ 11 of 11 +│ 11 of 11`))
		Expect(o.stdout).To(ContainSubstring("fault server_error not survived by 12 items on gemini:gemini-2.5-flash"))
		Expect(o.stdout).To(ContainSubstring("no gate bounds that"))
		Expect(p.read("faults.md")).To(And(ContainSubstring("| `server_error` | ❌ 0/12 | ❌ 0/12 |"), ContainSubstring("| `unknown_tool` | 11/11 | 11/11 |")))
		o = p.run("show", "latest", "mends-a-typo", "--provider", "openai:gpt-4o-mini")
		Expect(o.stdout).To(MatchRegexp(`broke server_error, request 1, 2 repeated: gave up: openai: status 500`))
		Expect(o.stdout).To(MatchRegexp(`survived unknown_tool, request 1, call 1: told the model of the error`))
	})

	It("are bounded by a gate, which is not asked where none are injected", func() {
		p := exampleProject()
		p.edit("datasets/quickstart.yaml", "gates:\n", "gates:\n  fault_survival: \">= 0.9\"\n")
		o := p.run("run", "datasets/quickstart.yaml", "--provider", "openai:gpt-4o-mini")
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(o.stdout).To(ContainSubstring("gate fault_survival of openai:gpt-4o-mini: this run injects no faults"))
		Expect(o.stdout).To(ContainSubstring("all gates hold"))
		Expect(p.run("run", "datasets/quickstart.yaml", "--faults", "builtin", "-q").code).To(Equal(0))
		p.write("faults.yaml", "version: 1\nfaults: [{server_error: {times: 3}}, overloaded]\n")
		o = p.run("run", "datasets/quickstart.yaml", "--faults", "faults.yaml", "--provider", "openai:gpt-4o-mini")
		Expect(o.code).To(Equal(1), "%s", o)
		Expect(o.stdout).To(MatchRegexp(`failed: fault_survival of openai:gpt-4o-mini is 0\.\d+, bound >= 0\.9`))
		o = p.run("run", "datasets/quickstart.yaml", "--faults", "faults.yaml", "--provider", "openai:gpt-4o-mini", "--fail-on", "none")
		Expect(o.code).To(Equal(0), "%s", o)
	})

	It("that find no place are said to, and a gate over nothing fails", func() {
		p := exampleProject()
		p.write("faults.yaml", "version: 1\nfaults: [{tool_error: {tool: sing}}]\n")
		o := p.run("run", "datasets/quickstart.yaml", "--faults", "faults.yaml", "--provider", "openai:gpt-4o-mini")
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(o.stdout).To(ContainSubstring("fault tool_error was never injected on openai:gpt-4o-mini"))
		o = p.run("run", "datasets/quickstart.yaml", "--faults", "faults.yaml", "--provider", "openai:gpt-4o-mini", "--set", `gates.fault_survival=">= 0.1"`)
		Expect(o.code).To(Equal(1), "%s", o)
		Expect(o.stdout).To(ContainSubstring("fault_survival of openai:gpt-4o-mini has no data"))
	})

	It("leave a stale item what it is, and are not injected into it", func() {
		p := exampleProject()
		p.edit("datasets/quickstart.yaml", "input: Which order files do we have?", "input: Which order files are there?")
		o := p.run("run", "datasets/quickstart.yaml", "--faults", "builtin", "--provider", "openai:gpt-4o-mini", "--json")
		Expect(o.code).To(Equal(4), "%s", o)
		for _, f := range faulty(o).Faults {
			Expect(f.Absent).To(BeNumerically(">=", 1))
			Expect(f.Injected).To(BeNumerically(">", 0))
		}
		o = p.run("show", "latest", "lists-two-files")
		Expect(o.stdout).To(ContainSubstring("not injected rate_limit: the recording does not fit"))
	})

	It("are checked before anything runs", func() {
		p := exampleProject()
		p.write("faults.yaml", "version: 1\nfaults:\n  - time_out\n  - refusal: {times: 2}\n")
		for _, args := range [][]string{{"run", "datasets/quickstart.yaml", "--faults", "faults.yaml"}, {"validate", "faults.yaml"}} {
			o := p.run(args...)
			Expect(o.code).To(Equal(2), "%s", o)
			Expect(o.stderr).To(And(ContainSubstring(`faults.yaml:3:5: `), ContainSubstring(`unknown fault "time_out"`), ContainSubstring(`did you mean "timeout"?`)))
			Expect(o.stderr).To(ContainSubstring("faults.yaml:4:15"))
		}
		Expect(p.runs()).To(BeEmpty())
		o := p.run("run", "datasets/quickstart.yaml", "--faults", "nowhere.yaml")
		Expect(o.code).To(Equal(2))
		Expect(o.stderr).To(And(ContainSubstring("nowhere.yaml"), ContainSubstring("--faults builtin needs no file")))
		o = p.run("record", "datasets/quickstart.yaml", "--faults", "builtin", "--upstream", "openai=http://127.0.0.1:1/v1")
		Expect(o.code).To(Equal(2))
		Expect(o.stderr).To(ContainSubstring("none is recorded by this version"))
		p.write("good.yaml", "version: 1\nfaults: [timeout]\n")
		o = p.run("validate", "good.yaml")
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(o.stdout).To(ContainSubstring("a plan of 1 fault"))
		o = p.run("schema", "faults")
		Expect(o.code).To(Equal(0))
		for _, kind := range inject.Kinds() {
			Expect(o.stdout).To(ContainSubstring(fmt.Sprintf("%q", string(kind))))
		}
	})

	It("give the same in shards, and a resumed run holds to its plan", func() {
		p := exampleProject()
		whole := p.run("run", "datasets/quickstart.yaml", "--faults", "builtin", "--provider", "openai:gpt-4o-mini", "--out", "whole")
		Expect(whole.code).To(Equal(0), "%s", whole)
		for _, shard := range []string{"1/2", "2/2"} {
			o := p.run("run", "datasets/quickstart.yaml", "--faults", "builtin", "--provider", "openai:gpt-4o-mini", "--shard", shard, "--out", "parts")
			Expect(o.code).To(Equal(0), "%s", o)
		}
		parts, err := filepath.Glob(p.path("parts/2*"))
		Expect(err).NotTo(HaveOccurred())
		o := p.run(append([]string{"merge", "--out", "merged"}, parts...)...)
		Expect(o.code).To(Equal(0), "%s", o)
		for _, name := range []string{"results.jsonl", "summary.json"} {
			Expect(p.read("merged/latest/" + name)).To(Equal(p.read("whole/latest/" + name)))
		}

		p.write("faults.yaml", "version: 1\nfaults: [timeout]\n")
		Expect(p.run("run", "datasets/quickstart.yaml", "--faults", "faults.yaml", "--provider", "openai:gpt-4o-mini").code).To(Equal(0))
		p.write("faults.yaml", "version: 1\nfaults: [{timeout: {times: 2}}]\n")
		o = p.run("run", "--resume", "latest")
		Expect(o.code).To(Equal(2), "%s", o)
		Expect(o.stderr).To(ContainSubstring("the faults of datasets/quickstart.yaml have changed"))
	})

	Context("of a program under test", func() {
		run := func(how string, faults string) results.Summary {
			GinkgoHelper()
			p, e := targeted("command: "+programUnderTest(how), helloItem)
			o := p.run("record", "evals/d.yaml", e.upstream())
			Expect(o.code).To(Equal(0), "%s", o)
			p.write("faults.yaml", "version: 1\nfaults: ["+faults+"]\n")
			o = p.run("run", "evals/d.yaml", "--faults", "faults.yaml", "--json")
			Expect(o.code).To(Equal(0), "%s", o)
			return faulty(o)
		}

		It("reach the program, which has to try again itself", func() {
			const faults = "rate_limit, server_error, timeout, refusal"
			s := run("plain", faults)
			Expect(broke(s)).To(Equal([]string{"rate_limit", "server_error", "timeout"}))
			Expect(*s.Faults[0].Reason).To(HavePrefix("gave up: "))
			s = run("stubborn", faults)
			Expect(broke(s)).To(BeEmpty(), "%v", s.Faults)
		})

		It("are not survived by one that takes the half of a stream for the whole", func() {
			s := run("stream", "cut_stream: {silent: true}, split_rune, tool_error")
			Expect(broke(s)).To(Equal([]string{"cut_stream"}))
			Expect(*s.Faults[0].Reason).To(HavePrefix("took a reply that had broken off for a whole one: "))
			Expect(s.Faults[2].Absent).To(Equal(1), "its tools are its own")
		})
	})

	It("say nothing that a terminal would obey", func() {
		p, e := targeted("command: "+programUnderTest("stream"), "items: [{id: hello, input: \"hello \\e[31m red \\u202e and </script> much more of it\", checks: [{contains: hello}]}]\n")
		Expect(p.run("record", "evals/d.yaml", e.upstream()).code).To(Equal(0))
		p.write("faults.yaml", "version: 1\nfaults: [{cut_stream: {silent: true, frame: 12}}]\n")
		o := p.run("run", "evals/d.yaml", "--faults", "faults.yaml", "--format", "markdown=out.md")
		Expect(o.code).To(Equal(0), "%s", o)
		o2 := p.run("show", "latest", "hello")
		Expect(o.stdout).To(ContainSubstring("took a reply that had broken off"))
		for _, text := range []string{o.stdout, o2.stdout, p.read("out.md")} {
			Expect(text).NotTo(ContainSubstring("\x1b[31m"))
			Expect(text).NotTo(ContainSubstring("\u202e"))
		}
	})
})
