//go:build unix

package main_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	quickstart = "datasets/quickstart.yaml"
	mini       = "fixtures/cassettes/quickstart/openai_gpt-4o-mini/"
)

// recording returns the hint that records anew; there must be exactly one.
func recording(o outcome) string {
	GinkgoHelper()
	found := slices.DeleteFunc(hints(o), func(h string) bool { return !strings.HasPrefix(h, "echoeval record ") })
	Expect(found).To(HaveLen(1), "%s", o)
	return found[0]
}

// drifts maps each stale item of the newest run to its drift class.
func (p *project) drifts() map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for _, line := range p.results(p.last()) {
		if line.Status != "stale" {
			continue
		}
		Expect(line.verdict()).To(Equal("stale/drift"), line.Item)
		Expect(line.Cassette.State).To(Equal("stale"))
		Expect(line.Cassette.Drift).To(HaveLen(1))
		out[line.Item+" "+line.Provider] = line.Cassette.Drift[0].Class
	}
	return out
}

var _ = Describe("a cassette that does not fit", func() {
	It("is missing: code 4, the others run, and the printed command mends it", func() {
		p := exampleProject()
		const file = mini + "two-months-at-once.yaml"
		committed := p.read(file)
		before := p.files("fixtures")
		p.remove(file)
		o := p.expect(4, "run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"pass": 23, "stale/missing": 1}))
		Expect(p.verdicts()).To(HaveKeyWithValue("two-months-at-once openai:gpt-4o-mini", "stale/missing"))
		Expect(o.all()).To(MatchRegexp("missing|no cassette"))
		Expect(o.all()).To(ContainSubstring("two-months-at-once"))
		Expect(p.summary(p.last()).Cassettes.Missing).To(Equal(1))

		e := p.emulate("datasets/emulator/quickstart.yaml")
		o = p.obey(recording(o), e.upstream(), "--recorded-at", recordedAt)
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(p.read(file)).To(Equal(committed))
		expectSameFiles(p.files("fixtures"), before)
		p.succeed("run", quickstart)
	})

	It("is missing altogether: every item says so, once as a whole", func() {
		p := exampleProject()
		Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
		o := p.expect(4, "run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"stale/missing": 24}))
		Expect(recording(o)).To(ContainSubstring(quickstart))
		e := p.emulate("datasets/emulator/quickstart.yaml")
		o = p.obey(recording(o), e.upstream())
		Expect(o.code).To(Equal(0), "%s", o)
		p.succeed("run", quickstart)
	})

	It("names an edited system prompt once, with place, both values and a command that mends it", func() {
		p := exampleProject()
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		o := p.expect(4, "run", quickstart)
		drifts := p.drifts()
		Expect(drifts).To(HaveLen(24))
		for _, class := range drifts {
			Expect(class).To(Equal("system-prompt"))
		}
		for _, line := range p.results(p.last()) {
			d := line.Cassette.Drift[0]
			Expect(d.Path).To(ContainSubstring("messages"))
			Expect(d.Old).To(ContainSubstring("guess"))
			Expect(d.New).To(ContainSubstring("invent"))
		}
		path := p.results(p.last())[0].Cassette.Drift[0].Path
		for _, once := range []string{"system-prompt", path, "never guess", "never invent"} {
			Expect(strings.Count(o.stdout, once)).To(Equal(1), "%q\n%s", once, o)
		}
		Expect(o.all()).To(ContainSubstring("24"))
		Expect(p.summary(p.last()).Cassettes.ByClass).To(Equal(map[string]int{"system-prompt": 24}))

		e := p.emulate("datasets/emulator/quickstart.yaml")
		o = p.obey(recording(o), e.upstream())
		Expect(o.code).To(Equal(0), "%s", o)
		p.succeed("run", quickstart)
	})

	It("records anew only what does not fit, with --stale", func() {
		p := exampleProject()
		p.edit(quickstart, "Which month had more?", "Which of them had more?")
		p.remove(mini + "mends-a-typo.yaml")
		before := p.files("fixtures")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.succeed("record", quickstart, "--stale", e.upstream(), "--recorded-at", recordedAt)
		after := p.files("fixtures")
		var changed []string
		for file, text := range after {
			if before[file] != text {
				changed = append(changed, strings.TrimPrefix(file, "cassettes/quickstart/"))
			}
		}
		slices.Sort(changed)
		Expect(changed).To(Equal([]string{"openai_gpt-4.1-mini/two-months-at-once.yaml", "openai_gpt-4o-mini/mends-a-typo.yaml", "openai_gpt-4o-mini/two-months-at-once.yaml"}))
		p.succeed("run", quickstart)
	})

	all := func(class string) map[string]string { // every item of both providers
		out := map[string]string{}
		for _, item := range []string{"lists-two-files", "price-of-a-book", "total-copies", "books-by-an-author", "two-months-at-once", "finds-the-right-file", "notes-by-pattern", "opening-hours-as-json", "mends-a-typo", "ticks-off-a-task", "writes-a-summary", "looks-at-a-cover"} {
			out[item+" openai:gpt-4o-mini"] = class
			out[item+" openai:gpt-4.1-mini"] = class
		}
		return out
	}
	column := func(class string) map[string]string { // every item of the first provider
		out := all(class)
		maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasSuffix(key, "4.1-mini") })
		return out
	}
	setting := func(text string) func(*project) {
		return func(p *project) {
			p.edit(quickstart, "  - openai:gpt-4o-mini\n", `  - {id: "openai:gpt-4o-mini", provider: openai, `+text+"}\n")
		}
	}
	DescribeTable("says what changed", func(class string, want map[string]string, change func(*project)) {
		p := exampleProject()
		change(p)
		o := p.expect(4, "run", quickstart)
		Expect(p.drifts()).To(Equal(want))
		Expect(o.all()).To(ContainSubstring(class))
		for key, verdict := range p.verdicts() {
			if _, changed := want[key]; !changed {
				Expect(verdict).To(Equal("pass"), key)
			}
		}
		Expect(p.summary(p.last()).Cassettes.ByClass).To(Equal(map[string]int{class: len(want)}))
		recording(o)
	},
		Entry("a file of the workspace", "input-files", all("input-files"), func(p *project) {
			p.edit("datasets/workspaces/bookshop/stock.csv", "21.00", "22.00")
		}),
		Entry("a file more in the workspace", "input-files", all("input-files"), func(p *project) {
			p.write("datasets/workspaces/bookshop/new.txt", "")
		}),
		Entry("what the user says", "user-input", map[string]string{"lists-two-files openai:gpt-4o-mini": "user-input", "lists-two-files openai:gpt-4.1-mini": "user-input"}, func(p *project) {
			p.edit(quickstart, "Which order files do we have?", "Which order files are there?")
		}),
		Entry("a picture", "user-input", map[string]string{"looks-at-a-cover openai:gpt-4o-mini": "user-input", "looks-at-a-cover openai:gpt-4.1-mini": "user-input"}, func(p *project) {
			// Another chunk before the end: still a picture, another file.
			p.edit("datasets/images/cover.png", "\x00\x00\x00\x00IEND", "\x00\x00\x00\x00teST\x01\x02\x03\x04\x00\x00\x00\x00IEND")
		}),
		Entry("the model", "model", column("model"), setting("model: gpt-4o")),
		Entry("a setting of the sampling", "sampling", column("sampling"), setting("model: gpt-4o-mini, temperature: 0.5")),
		Entry("the output limit", "parameters", column("parameters"), setting("model: gpt-4o-mini, max_tokens: 100")),
		Entry("the list of tools", "tool-schema", all("tool-schema"), func(p *project) {
			p.edit("datasets/agents/clerk.yaml", "patch, list_dir", "list_dir")
			p.edit(quickstart, "      - tool_calls: {match: subset, calls: [{name: patch}]}\n", "")
		}),
		Entry("a tool's description", "tool-description", map[string]string{"notes-by-pattern openai:gpt-4o-mini": "tool-description"}, func(p *project) {
			p.edit(mini+"notes-by-pattern.yaml", "List a folder: one line", "List a folder; one line")
		}),
		Entry("a tool's parameters", "tool-schema", map[string]string{"notes-by-pattern openai:gpt-4o-mini": "tool-schema"}, func(p *project) {
			p.edit(mini+"notes-by-pattern.yaml", `How many results to return at most.","type":"integer"`, `How many results to return at most.","type":"number"`)
		}),
		Entry("what a tool gives", "tool-result", map[string]string{"total-copies openai:gpt-4o-mini": "tool-result"}, func(p *project) {
			// What was recorded says another price than the file on the disk.
			p.edit(mini+"total-copies.yaml", `Ada Okafor,21.00`, `Ada Okafor,23.00`)
		}),
		Entry("what a tool was asked", "tool-arguments", map[string]string{"total-copies openai:gpt-4o-mini": "tool-arguments"}, func(p *project) {
			p.edit(mini+"total-copies.yaml", "      {\"path\":\"stock.csv\"}\n", "      {\"path\":\"shop.json\"}\n")
		}),
	)

	It("has more than the run asks for", func() {
		p := exampleProject()
		const file = mini + "looks-at-a-cover.yaml"
		text := p.read(file)
		head, entry, ok := strings.Cut(text, "\ninteractions:\n")
		Expect(ok).To(BeTrue())
		Expect(head).To(ContainSubstring("entries: 1\n"))
		p.write(file, strings.Replace(head, "entries: 1\n", "entries: 2\n", 1)+"\ninteractions:\n"+entry+entry)
		o := p.expect(4, "run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"pass": 23, "stale/left_over": 1}))
		Expect(o.all()).To(ContainSubstring("looks-at-a-cover"))
		p.succeed("run", quickstart, "--allow-leftover")
	})

	It("lies where --cassettes says", func() {
		p := exampleProject()
		Expect(os.Rename(p.path("fixtures/cassettes"), p.path("elsewhere"))).To(Succeed())
		p.expect(4, "run", quickstart)
		p.succeed("run", quickstart, "--cassettes", "elsewhere")
		p.remove("elsewhere/quickstart/openai_gpt-4o-mini/mends-a-typo.yaml")
		o := p.expect(4, "run", quickstart, "--cassettes", "elsewhere")
		Expect(recording(o)).To(ContainSubstring("--cassettes elsewhere"))
		e := p.emulate("datasets/emulator/quickstart.yaml")
		Expect(p.obey(recording(o), e.upstream()).code).To(Equal(0))
		p.succeed("run", quickstart, "--cassettes", "elsewhere")
		Expect(p.path("fixtures/cassettes")).NotTo(BeADirectory())
	})
})

var _ = Describe("cassette", func() {
	It("lists, shows and verifies", func() {
		p := exampleProject()
		o := p.succeed("cassette", "ls", quickstart)
		Expect(strings.Count(o.stdout, "\n")).To(Equal(24))
		Expect(strings.Count(o.stdout, "recorded ")).To(BeNumerically(">=", 24))
		Expect(o.stdout).To(ContainSubstring("quickstart/openai_gpt-4o-mini/mends-a-typo.yaml"))
		o = p.succeed("cassette", "show", mini+"mends-a-typo.yaml")
		Expect(o.stdout).To(And(ContainSubstring("mends-a-typo"), ContainSubstring("tool:///edit_file"), ContainSubstring("2026-01-05T09:00:00Z")))
		o = p.succeed("cassette", "verify", quickstart)
		Expect(o.stdout).To(ContainSubstring("24 fresh, 0 stale, 0 missing, 0 orphaned"))
		Expect(p.path(".echoeval/runs")).NotTo(BeADirectory(), "verifying is no run")

		p.edit(quickstart, "Which order files do we have?", "Which order files are there?")
		p.remove(mini + "mends-a-typo.yaml")
		p.write(mini+"nobody.yaml", p.read(mini+"total-copies.yaml"))
		p.write(mini+"total-copies@2.yaml", p.read(mini+"total-copies.yaml"))
		p.write(mini+"writes-a-summary.yaml", "version: 1\n")
		o = p.expect(4, "cassette", "verify", quickstart)
		Expect(o.all()).To(And(ContainSubstring("20 fresh, 3 stale, 1 missing, 2 orphaned"), ContainSubstring("user-input"), ContainSubstring("nobody.yaml"), ContainSubstring("total-copies@2.yaml")))
		o = p.expect(4, "cassette", "verify", quickstart, "--json")
		Expect(o.stdout).To(MatchRegexp(`"orphaned": ?2\b`))
		o = p.succeed("cassette", "ls", quickstart)
		Expect(o.stdout).To(MatchRegexp(`(?m)^missing +quickstart/openai_gpt-4o-mini/mends-a-typo\.yaml`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^unreadable +quickstart/openai_gpt-4o-mini/writes-a-summary\.yaml`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^orphaned +quickstart/openai_gpt-4o-mini/nobody\.yaml`))
		o = p.expect(4, "run", quickstart)
		Expect(p.summary(p.last()).Cassettes.Orphaned).To(Equal(2))
		Expect(p.summary(p.last()).Warnings).NotTo(BeEmpty(), "orphans are a named warning")
	})

	It("gives code 4 for an unreadable file, and 2 where there is none", func() {
		p := exampleProject()
		p.write("broken.yaml", "version: 2\n")
		Expect(p.expect(4, "cassette", "show", "broken.yaml").stderr).To(ContainSubstring("broken.yaml:1:10: "))
		Expect(p.expect(2, "cassette", "show", "absent.yaml").stderr).To(ContainSubstring("absent.yaml"))
	})

	It("only warns of orphans", func() {
		p := exampleProject()
		p.write(mini+"nobody.yaml", p.read(mini+"total-copies.yaml"))
		o := p.succeed("cassette", "verify", quickstart)
		Expect(o.stdout).To(And(ContainSubstring("24 fresh"), ContainSubstring("1 orphaned"), ContainSubstring("nobody.yaml")))
		p.succeed("run", quickstart)
	})
})

var _ = Describe("repeats and selections", func() {
	It("records and replays each repeat in a file of its own", func() {
		p := exampleProject()
		Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.succeed("record", quickstart, e.upstream(), "--repeat", "3", "--item", "mends-a-typo", "--item", "total-copies", "--provider", "openai:gpt-4o-mini")
		Expect(slices.Sorted(maps.Keys(p.files("fixtures")))).To(Equal([]string{
			"cassettes/quickstart/openai_gpt-4o-mini/mends-a-typo.yaml", "cassettes/quickstart/openai_gpt-4o-mini/mends-a-typo@2.yaml", "cassettes/quickstart/openai_gpt-4o-mini/mends-a-typo@3.yaml",
			"cassettes/quickstart/openai_gpt-4o-mini/total-copies.yaml", "cassettes/quickstart/openai_gpt-4o-mini/total-copies@2.yaml", "cassettes/quickstart/openai_gpt-4o-mini/total-copies@3.yaml",
		}))
		p.succeed("run", quickstart, "--repeat", "3", "--item", "mends-a-typo", "--item", "total-copies", "--provider", "openai:gpt-4o-mini")
		lines := p.results(p.last())
		Expect(lines).To(HaveLen(6))
		for i, line := range lines {
			Expect(line.Item).To(Equal([]string{"total-copies", "mends-a-typo"}[i/3]), "the order is that of the dataset")
			Expect(line.Repeat).To(Equal(i%3 + 1))
			Expect(line.verdict()).To(Equal("pass"))
		}
		o := p.expect(4, "run", quickstart, "--repeat", "4", "--item", "mends-a-typo", "--provider", "openai:gpt-4o-mini")
		Expect(p.count()).To(Equal(map[string]int{"pass": 3, "stale/missing": 1}))
		o = p.obey(recording(o), e.upstream())
		Expect(o.code).To(Equal(0), "%s", o)
		p.succeed("run", quickstart, "--repeat", "4", "--item", "mends-a-typo", "--provider", "openai:gpt-4o-mini")
	})

	DescribeTable("selects", func(want []string, columns int, flags ...string) {
		p := exampleProject()
		p.succeed(append([]string{"run", quickstart}, flags...)...)
		var items []string
		for i, line := range p.results(p.last()) {
			if i%columns == 0 {
				items = append(items, line.Item)
			}
		}
		Expect(items).To(Equal(want))
		Expect(p.summary(p.last()).Counts["pass"]).To(Equal(len(want) * columns))
	},
		Entry(nil, []string{"total-copies"}, 2, "--item", "total-copies"),
		Entry(nil, []string{"looks-at-a-cover"}, 2, "--tag", "image"),
		Entry(nil, []string{"opening-hours-as-json", "looks-at-a-cover"}, 2, "--tag", "image", "--tag", "format"),
		Entry(nil, []string{"mends-a-typo", "ticks-off-a-task", "writes-a-summary", "looks-at-a-cover"}, 2, "--tag", "!read"),
		Entry(nil, []string{"books-by-an-author", "notes-by-pattern"}, 2, "--tag", "search", "--tag", "!image"),
		Entry(nil, []string{"total-copies"}, 1, "--item", "total-copies", "--provider", "openai:gpt-4.1-mini"),
		Entry(nil, []string{"finds-the-right-file"}, 2, "--tag", "recovery", "--item", "finds-the-right-file", "--item", "total-copies"),
	)

	It("adds a provider from the command line, which has no cassettes yet", func() {
		p := exampleProject()
		p.expect(4, "run", quickstart, "--provider", "openai:gpt-4o", "--item", "total-copies")
		Expect(p.only().verdict()).To(Equal("stale/missing"))
		Expect(p.only().Provider).To(Equal("openai:gpt-4o"))
	})

	It("keeps no trace of what passed with --traces failed", func() {
		p := exampleProject()
		p.expect(1, "run", "datasets/regression.yaml", "--traces", "failed")
		kept := 0
		for _, line := range p.results(p.last()) {
			Expect(line.Trace == nil).To(Equal(line.Status == "pass"), line.Item)
			if line.Trace != nil {
				kept++
			}
		}
		Expect(kept).To(Equal(3))
		Expect(strings.Count(p.read(p.last()+"/traces/001.jsonl"), "\n")).To(Equal(3))
	})

	It("ends an item that waits too long", func() {
		p := emptyProject()
		p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\nitems:\n  - {id: a, input: slow, checks: [{contains: x}]}\n")
		p.write("s.yaml", "version: 1\nname: s\ndefault:\n  steps: [{text: a b c d e f g h i j k l m n o p q r s t u v w x, slow: {chunk_delay: 100ms}}]\n")
		e := p.emulate("s.yaml")
		began := time.Now()
		for _, timeout := range []string{"100ms", "250ms"} {
			p.expect(5, "run", "d.yaml", "--mode", "live", e.upstream(), "--timeout", timeout)
			Expect(p.only().verdict()).To(Equal("error/timeout"))
			Expect(p.only().Error.Kind).To(Equal("provider"))
			Expect(p.only().Cassette).To(BeNil())
		}
		p.expect(5, "record", "d.yaml", e.upstream(), "--timeout", "150ms")
		Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
		Expect(p.files("fixtures")).To(BeEmpty(), "what was cut off is no recording")
		// An outage is no failed check, so that nothing but the gates of checks is switched off.
		p.expect(5, "run", "d.yaml", "--mode", "live", e.upstream(), "--timeout", "150ms", "--fail-on", "none")
	})
})
