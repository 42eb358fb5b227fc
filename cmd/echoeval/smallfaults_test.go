//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("import", func() {
	It("of a source without a provider that can run writes the dataset and is code 2, with the command that gives it one", func() {
		p := emptyProject()
		p.write("c.yaml", "prompts: ['Say {{x}}']\nproviders: ['file://custom.py']\ntests: [{vars: {x: hi}, assert: [{type: contains, value: hi}]}]\n")
		o := p.expect(2, "import", "c.yaml", "-o", "d.yaml")
		Expect(o.stdout).To(ContainSubstring("wrote d.yaml"))
		Expect(o.stderr).To(Equal("error: d.yaml names no provider, so that it cannot run yet\nhint: echoeval import c.yaml -o d.yaml --force --provider openai:gpt-4o-mini, or add one to the dataset\n"))
		p.expect(2, "validate", "d.yaml")
		p.succeed("import", "c.yaml", "-o", "d.yaml", "--force", "--provider", "openai:gpt-4o-mini")
		p.succeed("validate", "d.yaml")
	})
})

var _ = Describe("completion", func() {
	It("of a shell that is not known is code 2, with the choices", func() {
		p := emptyProject()
		o := p.expect(2, "completion", "tcsh")
		Expect(o.stdout).To(BeEmpty())
		Expect(o.stderr).To(Equal("error: completion: unknown shell \"tcsh\"\nhint: choices: bash, fish, powershell, zsh\n"))
		Expect(p.expect(2, "completion", "bsh").stderr).To(ContainSubstring(`did you mean "bash"?`))
		Expect(p.succeed("completion").stdout).To(ContainSubstring("powershell"))
		for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
			Expect(p.succeed("completion", shell).stdout).To(ContainSubstring("echoeval"))
		}
	})
})

var _ = Describe("run --dry-run", func() {
	It("of a replay tells what has no cassette", func() {
		p := exampleProject()
		Expect(p.succeed("run", quickstart, "--dry-run").stdout).To(HavePrefix("quickstart: 12 items, 24 runs in mode replay, nothing is dialled, sees "))
		p.remove(mini + "total-copies.yaml")
		o := p.succeed("run", quickstart, "--dry-run")
		Expect(o.stdout).To(MatchRegexp("^quickstart: 12 items, 24 runs in mode replay, nothing is dialled; 1 has no cassette, sees .*\n$"))
		Expect(o.stderr).To(Equal("hint: echoeval record datasets/quickstart.yaml --stale\n"))
		var look struct{ Missing int }
		Expect(json.Unmarshal([]byte(p.succeed("run", quickstart, "--dry-run", "--json").stdout), &look)).To(Succeed())
		Expect(look.Missing).To(Equal(1))
	})

	It("does not miss what the dataset skips", func() {
		p := smallWith("    tags:", "    skip: later\n    tags:")
		Expect(p.succeed("run", "d.yaml", "--dry-run").stdout).NotTo(ContainSubstring("no cassette"))
	})
})

var _ = Describe("a recording that held a secret", func() {
	secret := "sk-" + "proj-ABCDEFGHIJKLMNOPQRST0123456789abcdefghij"

	It("is called so, when it is refused and in later runs, and the hint mends it", func() {
		p := oneItem("    - text: the key is " + secret + "\n")
		e := p.emulate("s.yaml")
		for _, args := range [][]string{{"record", "d.yaml", e.upstream()}, {"run", "d.yaml"}, {"cassette", "verify", "d.yaml"}} {
			o := p.expect(4, args...)
			Expect(o.all()).To(ContainSubstring("the recording held a secret"), "%v", args)
			Expect(o.all()).NotTo(ContainSubstring("unreadable"), "%v", args)
			Expect(o.all()).NotTo(ContainSubstring(secret))
			if args[0] != "cassette" {
				Expect(p.only().verdict()).To(Equal("stale/secret"))
				Expect(o.all()).To(ContainSubstring("hint: the recording is in .echoeval/quarantine, redacted; take the secret out of what the item reads, or list it under redact_allow if it is none, and record again"))
			}
		}
		Expect(p.only().Cassette.State).To(Equal("missing"))
		// What the hint says.
		p.write("echoeval.yaml", "version: 1\nredact_allow: [{regex: sk-proj-.*, why: a fake key}]\n")
		p.succeed("record", "d.yaml", "--stale", e.upstream())
		p.succeed("run", "d.yaml")
		Expect(p.files(".echoeval/quarantine")).To(BeEmpty())
	})
})

var _ = Describe("the reports of a killed run", func() {
	It("say that it is incomplete, and stay files of their formats", func() {
		p := recordMany()
		s := p.start(p.command("run", "many.yaml", "--concurrency", "1", "--format", "junit"))
		run := p.whenRunning(s, 10)
		Expect(s.cmd.Process.Kill()).To(Succeed())
		Expect(p.end(s).signal).To(Equal(syscall.SIGKILL))
		p.sweep()
		p.succeed("report", run, "--format", "junit,json,markdown,csv", "-o", "reports")
		for name, text := range p.files("reports") {
			if !strings.HasSuffix(name, ".xml") {
				continue
			}
			var suites struct {
				Tests   int `xml:"tests,attr"`
				Skipped int `xml:"skipped,attr"`
				Cases   []struct {
					Name    string    `xml:"name,attr"`
					Skipped *struct{} `xml:"skipped"`
				} `xml:"testsuite>testcase"`
			}
			Expect(xml.Unmarshal([]byte(text), &suites)).To(Succeed())
			Expect(suites.Cases).To(HaveLen(many))
			Expect(suites.Tests).To(Equal(many))
			skipped := 0
			for _, c := range suites.Cases {
				if c.Skipped != nil {
					skipped++
				}
			}
			Expect(skipped).To(And(Equal(suites.Skipped), BeNumerically(">", 0), BeNumerically("<=", many-10)))
			Expect(text).To(And(ContainSubstring(`name="complete" value="false"`), ContainSubstring("not_run: interrupted")))
		}
	})
})
