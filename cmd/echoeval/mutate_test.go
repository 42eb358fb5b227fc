//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// mutants is what mutate --json prints, as the docs say.
type mutants struct {
	V             int
	Dataset, File string
	Seed          int
	Limit         int
	Complete      bool
	Verdict       struct {
		Code    int
		Text    string
		Reasons []struct {
			Code       int
			Kind, Text string
			Hint       *string
		}
	}
	Outcomes, Mutated         int
	Mutants, Killed, Survived int
	Open, Equivalent          int
	KillRate                  *float64 `json:"kill_rate"`
	Gate                      *struct{ Bound, Status string }
	LeftOut                   struct {
		Count int
		Items []struct{ Item, Provider, Status, Cause string }
	} `json:"left_out"`
	Operators []struct {
		Name                      string
		Mutants, Killed, Survived int
	}
	Checks []struct {
		Name                         string
		Of, Noticed, Alone, Unjudged int
	}
	Items struct {
		Count int
		Items []struct {
			Item            string
			Mutants, Killed int
			Checks          []struct{ Name, At string }
		}
	}
	Survivors struct {
		Count int
		Items []struct {
			Item, Provider, Operator, What, Before, After string
			Unjudged                                      []string
		}
	}
	Unjudged []struct {
		Check, Reason string
		Mutants       int
	}
}

func (p *project) mutate(code int, args ...string) mutants {
	GinkgoHelper()
	var m mutants
	o := p.expect(code, append([]string{"mutate", "--json"}, args...)...)
	Expect(json.Unmarshal([]byte(o.stdout), &m)).To(Succeed(), "%s", o)
	Expect(strings.Count(o.stdout, "\n")).To(Equal(1))
	Expect(m.Verdict.Code).To(Equal(code))
	return m
}

func (m mutants) of(operator string) (mutants, killed int) {
	GinkgoHelper()
	for _, o := range m.Operators {
		if o.Name == operator {
			return o.Mutants, o.Killed
		}
	}
	Fail("no operator " + operator)
	return 0, 0
}

var _ = Describe("mutate", func() {
	It("shows which faults the quickstart's checks do not notice, without a key or a network, and leaves nothing behind", func() {
		p := exampleProject()
		p.env = append(p.env, "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "CI=true")
		before := p.files(".")
		o := p.succeed("mutate", quickstart)
		Expect(o.stdout).To(MatchRegexp(`^quickstart: \d+ mutants of 24 outcomes, \d+ killed, \d+ survived, kill rate \d`))
		for _, text := range []string{"\n operator ", "\n drop-call ", "\n leak-hidden ", "\n check or invariant ", "\n no-hidden-parameter-leak ", "\nsurvivors\n", "\n   - ", "\n   + ", "\nwhat would notice\n"} {
			Expect(o.stdout).To(ContainSubstring(text))
		}
		Expect(o.stdout).NotTo(ContainSubstring("shop-7f3a91"), "a leaked value does not stand in the report that tells of it")
		Expect(o.stderr).To(BeEmpty())
		expectSameFiles(p.files("."), before)
		Expect(p.runs()).To(BeEmpty())

		m := p.mutate(0, quickstart)
		Expect([]int{m.V, m.Outcomes, m.Mutated, m.LeftOut.Count}).To(Equal([]int{1, 24, 24, 0}))
		Expect(m.Mutants).To(And(Equal(m.Killed+m.Survived), BeNumerically(">", 200)))
		Expect(m.Survivors.Count).To(Equal(m.Survived))
		Expect(*m.KillRate).To(And(BeNumerically(">", 0.5), BeNumerically("<", 1)))
		for _, o := range m.Operators {
			Expect(o.Mutants).To(BeNumerically(">", 0), o.Name)
		}
		made, killed := m.of("leak-hidden")
		Expect(killed).To(Equal(made))
	})

	It("leaves out what fails as recorded, and says so", func() {
		p := exampleProject()
		m := p.mutate(0, "datasets/regression.yaml")
		Expect([]int{m.Outcomes, m.Mutated, m.LeftOut.Count}).To(Equal([]int{4, 1, 3}))
		Expect(m.LeftOut.Items[2].Item + " " + m.LeftOut.Items[2].Status + " " + m.LeftOut.Items[2].Cause).To(Equal("calls-what-it-does-not-have fail invariant"))
		o := p.succeed("mutate", "datasets/regression.yaml")
		Expect(o.stdout).To(ContainSubstring("left out: wrong-figure on openai:gpt-4o-mini, fail as recorded (check)\n"))
	})

	It("is the same for the same seed, whatever runs at once", func() {
		p := exampleProject()
		of := func(args ...string) string {
			return p.succeed(append([]string{"mutate", quickstart, "--limit", "1", "--json"}, args...)...).stdout
		}
		first := of("--seed", "4", "--concurrency", "1")
		Expect(of("--seed", "4", "--concurrency", "9")).To(Equal(first))
		Expect(strings.Replace(of("--seed", "5"), `"seed":5`, `"seed":4`, 1)).NotTo(Equal(first))
		Expect(strings.Replace(of(), `"seed":1`, `"seed":4`, 1)).NotTo(Equal(first))
	})

	It("takes selections, operators and formats", func() {
		p := exampleProject()
		m := p.mutate(0, quickstart, "--item", "mends-a-typo", "--provider", "openai:gpt-4o-mini", "--operator", "change-argument", "--operator", "drop-call", "--limit", "2")
		Expect(m.Outcomes).To(Equal(1))
		Expect(m.Mutants).To(Equal(4))
		Expect(m.Operators).To(HaveLen(2))
		Expect(m.Items.Items).To(HaveLen(1))
		Expect(m.Items.Items[0].Checks[2].At).To(MatchRegexp(`^datasets/quickstart\.yaml:\d+:\d+$`))
		o := p.succeed("mutate", quickstart, "--tag", "write", "--format", "markdown")
		Expect(o.stdout).To(And(HavePrefix("### Mutants of `quickstart`: "), ContainSubstring("\n| operator | mutants |"), ContainSubstring("\n- `ticks-off-a-task` on ")))
		some, every := p.succeed("mutate", quickstart).stdout, p.succeed("mutate", quickstart, "--all").stdout
		Expect(some).To(ContainSubstring("--all shows them"))
		Expect(every).NotTo(ContainSubstring("--all shows them"))
		Expect(len(every)).To(BeNumerically(">", len(some)))
		o = p.succeed("mutate", quickstart, "--item", "mends-a-typo", "-v")
		Expect(o.stderr).To(ContainSubstring("pass  mends-a-typo  openai:gpt-4o-mini\n"))
	})

	It("is bounded by --min-kill: code 1", func() {
		p := exampleProject()
		m := p.mutate(0, quickstart, "--min-kill", "0.5")
		Expect(m.Gate.Bound + " " + m.Gate.Status).To(Equal(">= 0.5 holds"))
		m = p.mutate(1, quickstart, "--min-kill", "0.99")
		Expect(m.Gate.Bound + " " + m.Gate.Status).To(Equal(">= 0.99 failed"))
		Expect(m.Verdict.Reasons[0].Kind).To(Equal("gate"))
		o := p.expect(1, "mutate", quickstart, "--min-kill", "0.99")
		Expect(o.stdout).To(MatchRegexp(`\nfailed: kill rate [\d.]+ %, bound >= 0\.99\n$`))
	})

	It("of a stale or missing recording is code 4, and mutates the others", func() {
		p := exampleProject()
		p.remove(mini + "mends-a-typo.yaml")
		p.edit("datasets/quickstart.yaml", "Which order files do we have?", "Which order files do you have?")
		m := p.mutate(4, quickstart)
		Expect([]int{m.Outcomes, m.Mutated, m.LeftOut.Count}).To(Equal([]int{24, 21, 3}))
		Expect(m.Verdict.Reasons).To(HaveLen(1))
		Expect(*m.Verdict.Reasons[0].Hint).To(Equal("echoeval record datasets/quickstart.yaml --stale"))
		o := p.expect(4, "mutate", quickstart)
		Expect(o.stdout).To(ContainSubstring("left out: mends-a-typo on openai:gpt-4o-mini, stale as recorded (missing)\n"))
		Expect(o.stderr).To(Equal("hint: echoeval record datasets/quickstart.yaml --stale\n"))
		m = p.mutate(4, quickstart, "--min-kill", "0.99")
		Expect(m.Verdict.Reasons).To(HaveLen(2), "the recording is the first thing to mend, the kill rate the next")
	})

	DescribeTable("refuses", func(message string, args ...string) {
		p := exampleProject()
		o := p.expect(2, append([]string{"mutate"}, args...)...)
		Expect(o.stderr).To(And(HavePrefix("error: "), ContainSubstring(message), ContainSubstring("\nhint: ")))
		Expect(o.stdout).To(BeEmpty())
	},
		Entry("no dataset", "want one dataset"),
		Entry("two", "want one dataset", quickstart, quickstart),
		Entry("something else than a dataset", "datasets/agents/clerk.yaml", "datasets/agents/clerk.yaml"),
		Entry("an unknown operator", `unknown operator`, quickstart, "--operator", "drop-cal"),
		Entry("an unknown item", "no such item", quickstart, "--item", "mends-a-typ"),
		Entry("a limit of none", "--limit 0: want 1 to 1000", quickstart, "--limit", "0"),
		Entry("a bound that everything keeps", "--min-kill 0: want a fraction", quickstart, "--min-kill", "0"),
		Entry("a bound in percent", "--min-kill 80: want a fraction", quickstart, "--min-kill", "80"),
		Entry("a bound that is no number", "--min-kill NaN: want a fraction", quickstart, "--min-kill", "NaN"),
		Entry("repeats while something is open", "--repeat 1..3: no verdict is open", quickstart, "--repeat", "1..3"),
		Entry("an unknown format", "unknown format", quickstart, "--format", "html"),
		Entry("drift that goes live", "--drift", quickstart, "--drift", "system-prompt=live"),
		Entry("a seed that is no number", "--seed", quickstart, "--seed", "x"),
	)

	It("has nothing to say where nothing passes: code 2", func() {
		p := exampleProject()
		m := p.mutate(2, "datasets/regression.yaml", "--item", "wrong-figure")
		Expect(m.KillRate).To(BeNil())
		Expect(m.Verdict.Text).To(ContainSubstring("no outcome passes as recorded"))
	})

	It("does what the docs show", func() {
		p := exampleProject()
		docs, err := os.ReadFile(filepath.Join(suite.Root(), "docs", "mutation.md"))
		Expect(err).NotTo(HaveOccurred())
		_, block, ok := strings.Cut(string(docs), "```text\n")
		Expect(ok).To(BeTrue())
		block, _, _ = strings.Cut(block, "```")
		got := strings.Split(p.succeed("mutate", quickstart, "--item", "books-by-an-author", "--provider", "openai:gpt-4o-mini").stdout, "\n")
		lines := 0
		for line := range strings.Lines(block) {
			if line = strings.TrimRight(line, "\n"); line != " ..." {
				Expect(got).To(ContainElement(line))
				lines++
			}
		}
		Expect(lines).To(BeNumerically(">", 20))
		for _, file := range []string{quickstart, "datasets/regression.yaml"} {
			m := p.mutate(0, file)
			Expect(string(docs)).To(ContainSubstring(fmt.Sprintf(" %d of %d mutants are killed", m.Killed, m.Mutants)), file)
		}
		help := p.succeed("mutate", "--help").stdout
		for _, o := range p.mutate(0, quickstart).Operators {
			Expect(string(docs)).To(ContainSubstring("\n| `" + o.Name + "` | "))
			Expect(help).To(MatchRegexp("(?m)^  " + o.Name + " +[a-z]"))
		}
	})

	It("completes datasets, items and operators", func() {
		p := exampleProject()
		Expect(p.succeed("__complete", "mutate", "").stdout).To(ContainSubstring("yaml"))
		Expect(p.succeed("__complete", "mutate", quickstart, "--operator", "re").stdout).To(HavePrefix("repeat-call\nrefuse\n"))
		Expect(p.succeed("__complete", "mutate", quickstart, "--item", "mends").stdout).To(ContainSubstring("mends-a-typo"))
	})

	It("asks no judge: what it was asked when it was recorded it answers from the cassette, and else its check is left out", func() {
		p := emptyProject()
		p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders:\n  - openai:gpt-4o-mini\n  - {id: strict, provider: openai, model: gpt-4o, role: judge}\n"+
			"items:\n  - id: a\n    turns: [{input: Chest pain, checks: ["+urges+"]}, {input: And now?, checks: [{contains: \"112\"}]}]\n    checks: [{regex: now}]\n")
		p.write("s.yaml", fmt.Sprintf("version: 1\nname: s\nconversations:\n  - match: {model: gpt-4o}\n    steps: [{text: %q}]\ndefault:\n  steps: [{text: Call 112 now.}]\n", kind))
		d := p.door(p.emulate("s.yaml"))
		p.succeed("record", "d.yaml", d.upstream())
		d.since()
		m := p.mutate(0, "d.yaml")
		agent, judge := d.since()
		Expect([]int{agent, judge}).To(Equal([]int{0, 0}))
		// The first turn's answer is what the judge was asked about: half of it was never judged. The second turn's it was never asked about, so that its question is the recorded one.
		Expect(m.Unjudged).To(HaveLen(1))
		Expect(m.Unjudged[0].Check).To(Equal("judge"))
		Expect(m.Unjudged[0].Reason).To(Equal("the recording has no answer of the judge to this"))
		left := 0
		for _, s := range m.Survivors.Items {
			if s.What == "the answer of turn 1" {
				Expect(s.Unjudged).To(Equal([]string{"judge"}), s.Operator)
				left++
			} else {
				Expect(s.Unjudged).To(BeEmpty(), s.Operator)
			}
		}
		Expect(left).To(And(BeNumerically(">", 0), Equal(m.Open)))
		for _, c := range m.Checks {
			if c.Name == "judge" {
				Expect(c.Unjudged).To(Equal(m.Unjudged[0].Mutants))
				Expect(c.Of).To(BeNumerically(">", 0), "it judged the mutants of the second turn")
				Expect(c.Noticed).To(BeZero())
			}
		}
	})

	It("runs the programs of command checks, and leaves out those that cannot judge", func() {
		p := checkedBy(`{command: [./word.sh], threshold: 0.5, name: word}`, `{command: [./breaks.sh], name: breaks}`)
		p.script("word.sh", `grep -q '"output":"one two three"' && echo '{"score":0.75}' || echo '{"score":0.1}'`)
		p.script("breaks.sh", `grep -q '"output":"one two three"' && echo '{"score":1}' || exit 3`)
		p.succeed("record", "evals/d.yaml")
		m := p.mutate(0, "evals/d.yaml", "--operator", "truncate", "--operator", "refuse")
		Expect(m.Mutants).To(Equal(4))
		Expect(m.Killed).To(Equal(2), "%+v", m)
		Expect(m.Open).To(Equal(2))
		Expect(m.Unjudged).To(HaveLen(1))
		Expect(m.Unjudged[0].Check).To(Equal("breaks"))
	})

	// What a check that is always true and the invariants find in these mutants would be a fault of the mutants.
	DescribeTable("makes coherent mutants of what programs in other languages did", func(how, keys, items string, calls int) {
		p, e := targeted("command: "+programUnderTest(how)+", workers: lines"+keys, items)
		p.succeed("record", "evals/d.yaml", e.upstream())
		m := p.mutate(0, "evals/d.yaml", "--all")
		Expect(m.Mutated).To(Equal(m.Outcomes))
		Expect(m.Killed).To(BeZero(), "%+v", m)
		for operator, want := range map[string]int{"drop-call": calls, "truncate": 1, "refuse": 1} {
			made, _ := m.of(operator)
			Expect(made).To(BeNumerically(">=", want), operator)
		}
	},
		Entry("one question", "answer", "", "items: [{id: hello, input: hello, checks: [{regex: (?s).*}]}]\n", 0),
		Entry("several turns", "turns", "", "items: [{id: hello, turns: [{input: one, checks: [{regex: (?s).*}]}, {input: two}], checks: [{regex: (?s).*}]}]\n", 0),
		Entry("several conversations at once", "parallel", "", "items: [{id: hello, input: hello, checks: [{regex: (?s).*}]}]\n", 0),
		Entry("messages that it tells itself", "messages", ", model_calls: optional", "items: [{id: hello, input: hello, checks: [{regex: (?s).*}]}]\n", 1),
		Entry("tools that go by the recorder", "tool", "", "items: [{id: hello, input: hello, checks: [{regex: (?s).*}]}]\n", 0),
	)

	It("that is interrupted says so: code 130", func() {
		p := checkedBy(`{command: [./slow.sh], name: slow}`)
		p.script("slow.sh", `grep -q '"output":"one two three"' || { echo x >began; sleep 60; }; echo '{"score":1}'`)
		p.succeed("record", "evals/d.yaml")
		s := p.start(p.command("mutate", "evals/d.yaml", "--json"))
		Eventually(func() error { _, err := os.Stat(p.path("evals/began")); return err }).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(Succeed())
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		o := p.await(s)
		Expect(o.code).To(Equal(130), "%s", o)
		var m mutants
		Expect(json.Unmarshal([]byte(o.stdout), &m)).To(Succeed())
		Expect(m.Complete).To(BeFalse())
		Expect(m.Verdict.Reasons[0].Kind).To(Equal("interrupted"))
	})
})
