//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the project file", func() {
	It("names what a run without arguments runs", func() {
		p := exampleProject()
		o := p.expect(2, "run")
		Expect(o.stderr).To(ContainSubstring("no dataset is named"))
		p.write("echoeval.yaml", "version: 1\ndatasets: [datasets/quick*.yaml]\n")
		o = p.succeed("run")
		Expect(o.stdout).To(ContainSubstring("quickstart"))
		Expect(p.count()).To(Equal(map[string]int{"pass": 24}))
		Expect(os.MkdirAll(p.path("below/it"), 0o755)).To(Succeed())
		cmd := p.command("run", "--item", "mends-a-typo")
		cmd.Dir = p.path("below/it")
		Expect(p.await(p.start(cmd)).code).To(Equal(0), "from a folder below")
	})

	It("says where cassettes lie", func() {
		p := exampleProject()
		Expect(os.Rename(p.path("fixtures/cassettes"), p.path("recordings"))).To(Succeed())
		p.expect(4, "run", quickstart)
		p.write("echoeval.yaml", "version: 1\ncassettes: recordings\n")
		p.succeed("run", quickstart)
	})

	It("says what drift is served, and a flag says otherwise", func() {
		p := exampleProject()
		p.edit("datasets/agents/clerk.yaml", "clerk in a small bookshop", "clerk in a large bookshop")
		p.expect(4, "run", quickstart)
		p.write("echoeval.yaml", "version: 1\nreplay: {drift: {system-prompt: serve}}\n")
		p.succeed("run", quickstart)
		p.expect(4, "run", quickstart, "--drift", "system-prompt=fail")
	})

	It("has prices of its own, which must be readable", func() {
		p := exampleProject()
		p.succeed("run", quickstart, "--provider", "openai:gpt-4o-mini")
		var before, after struct {
			Providers []struct {
				Metrics map[string]struct{ Value float64 }
			} `json:"providers"`
		}
		Expect(json.Unmarshal([]byte(p.read(p.last()+"/summary.json")), &before)).To(Succeed())
		p.write("echoeval.yaml", "version: 1\nprices: prices.yaml\n")
		p.write("prices.yaml", "version: 1\ndate: 2026-11-01\nsource: our contract\nprices: {openai: {gpt-4o-mini: {input: 300, output: 600}}}\n")
		p.expect(1, "run", quickstart, "--provider", "openai:gpt-4o-mini")
		Expect(json.Unmarshal([]byte(p.read(p.last()+"/summary.json")), &after)).To(Succeed())
		Expect(after.Providers[0].Metrics["cost_usd"].Value).To(BeNumerically(">", 500*before.Providers[0].Metrics["cost_usd"].Value))
		Expect(p.succeed("validate", "prices.yaml").stdout).To(ContainSubstring("prices.yaml: prices"))
		p.write("prices.yaml", "version: 1\nprizes: {}\n")
		o := p.expect(2, "run", quickstart)
		Expect(o.stderr).To(ContainSubstring("prices.yaml:2:1"))
		p.remove("prices.yaml")
		p.expect(2, "run", quickstart)
	})

	It("knows shapes of secrets that are the project's own", func() {
		p := exampleProject()
		p.succeed("run", quickstart, "--provider", "openai:gpt-4o-mini")
		p.write("echoeval.yaml", "version: 1\nredact: [{name: book-title, regex: 'Nine Winters'}]\n")
		p.run("run", quickstart, "--provider", "openai:gpt-4o-mini")
		for name, text := range p.files(p.last()) {
			Expect(text).NotTo(ContainSubstring("Nine Winters"), name)
		}
	})
})

var _ = Describe("what runs", func() {
	It("is selected by an expression", func() {
		p := exampleProject()
		p.succeed("run", quickstart, "--filter", "'read' in tags && id.startsWith('total')", "--provider", "openai:gpt-4o-mini")
		Expect(p.verdicts()).To(HaveLen(1))
		Expect(p.only().Item).To(Equal("total-copies"))
		p.expect(2, "run", quickstart, "--filter", "id == 'nobody'")
		o := p.expect(2, "run", quickstart, "--filter", "tag == 'read'")
		Expect(o.stderr).To(And(ContainSubstring("character 1"), ContainSubstring(`did you mean "tags"?`)))
		o = p.expect(2, "run", quickstart, "--filter", "id")
		Expect(o.stderr).To(ContainSubstring("no condition"))
	})

	It("is told by --dry-run, which runs nothing and needs no key", func() {
		p := exampleProject()
		o := p.succeed("record", quickstart, "--dry-run", "--provider", "openai:gpt-4o-mini")
		Expect(o.stdout).To(MatchRegexp(`^quickstart: 12 items, 12 runs in mode record, about \$0\.\d+, `))
		o = p.succeed("record", quickstart, "--dry-run", "--json", "--max-cost", "0.000001")
		var look struct {
			Items, Runs int
			Recorded    struct {
				Cassettes, Unknown int
				Cost               float64 `json:"cost_usd"`
			}
			Over bool `json:"over_budget"`
		}
		Expect(json.Unmarshal([]byte(o.stdout), &look)).To(Succeed())
		Expect(look.Runs).To(Equal(24))
		Expect(look.Recorded.Cassettes).To(Equal(24))
		Expect(look.Recorded.Unknown).To(BeZero())
		Expect(look.Recorded.Cost).To(BeNumerically(">", 0))
		Expect(look.Over).To(BeTrue())
		Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
		Expect(p.succeed("record", quickstart, "--dry-run").stdout).To(MatchRegexp(`24 runs in mode record, about \$0\.\d+, \d+ s \(a guess: nothing was recorded yet\); not set: OPENAI_API_KEY, sees .*\n`))
		Expect(p.succeed("record", quickstart, "--dry-run", "--provider", "openai:a-model-without-a-price").stdout).To(ContainSubstring("12 runs in mode record, cost unknown"))
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})

	It("is bounded for one provider by a gate of its own", func() {
		p := exampleProject()
		gates := func(text string) { p.write("datasets/gated.yaml", p.read("datasets/regression.yaml")+text) }
		p.edit("datasets/regression.yaml", "name: regression", "name: gated")
		Expect(os.Rename(p.path("fixtures/cassettes/regression"), p.path("fixtures/cassettes/gated"))).To(Succeed())
		for name := range p.files("fixtures/cassettes/gated") {
			p.edit(filepath.Join("fixtures/cassettes/gated", name), "dataset: regression", "dataset: gated")
		}
		gates("gates: [{pass_rate: '>= 0.9'}, {pass_rate: '>= 0.1', provider: 'openai:gpt-4o-mini'}, {invariant_violations: null}]\n")
		p.succeed("run", "datasets/gated.yaml")
		gates("gates: [{pass_rate: '>= 0.1', provider: 'openai:gpt-4o-mimi'}]\n")
		Expect(p.expect(2, "run", "datasets/gated.yaml").stderr).To(And(MatchRegexp(`gated\.yaml:\d+:\d+`), ContainSubstring(`"openai:gpt-4o-mini"`)))
		gates("gates: [{pass_rate: '>= 0.1', tag: x}]\n")
		Expect(p.expect(2, "run", "datasets/gated.yaml").stderr).To(And(MatchRegexp(`gated\.yaml:\d+:\d+`), ContainSubstring("a gate looks at tag x, and no item has it")))
	})

	It("follows --set, which stands in the hints, too", func() {
		p := exampleProject()
		p.expect(1, "run", "datasets/regression.yaml", "--set", "gates.error_rate=null")
		p.succeed("run", "datasets/regression.yaml", "--set", "gates={pass_rate: '>= 0.1', invariant_violations: null}")
		o := p.expect(4, "run", quickstart, "--set", "items.input=What is this?", "--item", "mends-a-typo", "--provider", "openai:gpt-4o-mini")
		Expect(o.all()).To(ContainSubstring("--set 'items.input=What is this?'"))
		o = p.expect(2, "run", quickstart, "--set", "gatez.pass_rate=null")
		Expect(o.stderr).To(ContainSubstring("gatez"))
	})

	It("is warned of overrides that change nothing, and keeps limits in tokens", func() {
		p := exampleProject()
		o := p.succeed("run", quickstart, "--set", "overrides=[{match: \"id == 'nobody'\", timeout: 5s}]")
		Expect(o.stdout).To(ContainSubstring("the override changes nothing"))
		// An item takes more tokens than the limit gives in its time, so that the second request of a run would wait for half an hour: it is cut off.
		p.edit(quickstart, "  - openai:gpt-4.1-mini\n", "  - {id: slow, provider: openai, model: gpt-4.1-mini, limits: {tpm: 10}}\n")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		o = p.expect(5, "record", quickstart, e.upstream(), "--provider", "slow", "--item", "lists-two-files", "--timeout", "300ms")
		Expect(p.only().Status + " " + *p.only().Cause).To(Equal("error timeout"))
		p.edit(quickstart, "limits: {tpm: 10}", "limits: {tpm: 10000000}")
		p.succeed("record", quickstart, e.upstream(), "--provider", "slow", "--item", "lists-two-files")
	})

	It("is what any of several datasets has", func() {
		p := exampleProject()
		o := p.succeed("run", quickstart, "datasets/regression.yaml", "--item", "total-copies")
		Expect(o.stderr).To(ContainSubstring("regression.yaml: nothing selected"))
		p.expect(2, "run", quickstart, "datasets/regression.yaml", "--item", "nobody")
	})

	It("is warned of where nothing can fail", func() {
		p := emptyProject()
		p.write("a.yaml", "version: 1\nname: a\nproviders: [{id: s, provider: script}]\nagent: {task: {description: Answer.}}\nitems:\n"+
			"  - {id: nothing, input: Hi, script: [{text: Hi}]}\n"+
			"  - {id: reports, input: Hi, script: [{text: Hi}], checks: [{contains: no, weight: 0}]}\n"+
			"  - {id: asks, input: Hi, script: [{text: Hi}], checks: [{contains: Hi}]}\n")
		o := p.succeed("run", "a.yaml", "--mode", "live")
		Expect(o.stdout).To(ContainSubstring("no check of nothing, reports can fail"))
		o = p.succeed("validate", "a.yaml")
		Expect(o.stderr).To(And(ContainSubstring("a.yaml:6:5"), ContainSubstring("no check of nothing, reports can fail")))
	})

	It("does not write two reports to one path, nor a report over something else", func() {
		p := exampleProject()
		before := p.read(quickstart)
		Expect(p.expect(2, "run", quickstart, "--format", "junit="+quickstart).stderr).To(ContainSubstring(".xml"))
		Expect(p.read(quickstart)).To(Equal(before))
		Expect(p.expect(2, "run", quickstart, "datasets/regression.yaml", "--format", "terminal=out.txt").stderr).To(ContainSubstring("2 datasets"))
		Expect(p.expect(2, "run", quickstart, "--format", "json=a.json", "--format", "json=./a.json").stderr).To(ContainSubstring("one path"))
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})

	DescribeTable("takes no zero", func(flag, value string) {
		o := exampleProject().expect(2, "run", quickstart, flag, value)
		Expect(o.stderr).To(And(ContainSubstring(flag), ContainSubstring("want more than 0")))
	}, Entry(nil, "--repeat", "0"), Entry(nil, "--concurrency", "0"), Entry(nil, "--timeout", "0s"), Entry(nil, "--max-cost", "0"))

	It("never takes the cassette of another item", func() {
		p := exampleProject()
		dir := "fixtures/cassettes/quickstart/openai_gpt-4o-mini/"
		p.write(dir+"total-copies.yaml", p.read(dir+"price-of-a-book.yaml"))
		o := p.expect(4, "run", quickstart, "--item", "total-copies")
		Expect(o.stdout).To(ContainSubstring("of another item: price-of-a-book"))
	})

	It("clears away the workspaces of a run that was killed", func() {
		p := exampleProject()
		left := filepath.Join(p.temp, "echoeval-run-123")
		Expect(os.MkdirAll(filepath.Join(left, "456"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(left, "lock"), nil, 0o600)).To(Succeed())
		// One that was being cleared away when that was killed has no lock any more.
		Expect(os.MkdirAll(filepath.Join(p.temp, "echoeval-run-124", "456"), 0o755)).To(Succeed())
		p.succeed("run", quickstart) // which expects an empty temporary folder afterwards
	})

	It("starts no program where nothing is judged", func() {
		p := exampleProject()
		p.edit("datasets/regression.yaml", "defaults:\n", "defaults:\n  checks: [{command: {run: [sh, ../ran.sh]}}]\n")
		p.write("ran.sh", "touch ran\necho '{\"score\": 1}'\n")
		p.succeed("cassette", "verify", "datasets/regression.yaml")
		Expect(p.path("datasets/ran")).NotTo(BeAnExistingFile())
		p.expect(1, "run", "datasets/regression.yaml")
		Expect(p.path("datasets/ran")).To(BeAnExistingFile(), "the run does start it")
	})
})
