//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the command line", func() {
	DescribeTable("does not take", func(message, hint string, args ...string) {
		p := exampleProject()
		o := p.expect(2, args...)
		Expect(o.stdout).To(BeEmpty())
		Expect(o.stderr).To(And(HavePrefix("error: "), ContainSubstring(message)))
		Expect(o.stderr).To(MatchRegexp("(?m)^hint: .*" + hint))
		Expect(o.stderr).NotTo(ContainSubstring("Usage:"))
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	},
		Entry("an unknown command", `unknown command "rum"`, "echoeval run", "rum"),
		Entry("an unknown command that nothing is near", `unknown command "xyzzy"`, "echoeval --help", "xyzzy"),
		Entry("an unknown command below another", `unknown command "verfy"`, "echoeval cassette verify", "cassette", "verfy"),
		Entry("an unknown flag", "--concurency", "--concurrency|echoeval run --help", "run", quickstart, "--concurency", "2"),
		Entry("an unknown short flag", "'z'", "echoeval run --help", "run", quickstart, "-z"),
		Entry("a flag without its value", "--item", "echoeval run --help", "run", quickstart, "--item"),
		Entry("a number that is none", "many", "echoeval run --help", "run", quickstart, "--concurrency", "many"),
		Entry("a duration that is none", "soon", "echoeval run --help", "run", quickstart, "--timeout", "soon"),
		Entry("an unknown format", `"junitt"`, "junit", "run", quickstart, "--format", "junitt"),
		Entry("an unknown mode", "--mode relay", "", "run", quickstart, "--mode", "relay"),
		Entry("an unknown choice of traces", "--traces some", "", "run", quickstart, "--traces", "some"),
		Entry("an unknown --fail-on", "--fail-on maybe", "", "run", quickstart, "--fail-on", "maybe"),
		Entry("a negative concurrency", "--concurrency -1", "", "run", quickstart, "--concurrency", "-1"),
		Entry("a negative timeout", "--timeout -1s", "", "run", quickstart, "--timeout", "-1s"),
		Entry("too many repeats", "--repeat 100000000", "", "run", quickstart, "--repeat", "100000000"),
		Entry("a time that is none", "--recorded-at yesterday", "", "record", quickstart, "--recorded-at", "yesterday", "--upstream", "openai=http://127.0.0.1:9/v1"),
		Entry("an upstream of nobody", `"opnai"`, "openai", "record", quickstart, "--upstream", "opnai=http://127.0.0.1:9/v1"),
		Entry("an upstream without an address", "--upstream openai", "--upstream openai=http", "record", quickstart, "--upstream", "openai"),
		Entry("an upstream of another scheme", "ftp", "", "record", quickstart, "--upstream", "openai=ftp://127.0.0.1/"),
		Entry("a run that there is not", "latest", "", "show", "latest"),
		Entry("a run without a name", "", "", "show"),
		Entry("a missing file", "absent.yaml", "", "validate", "absent.yaml"),
		Entry("no file", "", "", "validate"),
		Entry("an emulator for everybody", "--listen", "127.0.0.1", "emulate", "--listen", "0.0.0.0:0"),
		Entry("a script that there is not", "absent.yaml", "", "emulate", "--script", "absent.yaml"),
		Entry("the same dataset twice", "quickstart", "", "run", quickstart, quickstart),
	)

	It("prints its version, in short time", func() {
		p := emptyProject()
		o := p.succeed("version")
		Expect(o.stdout).To(MatchRegexp(`^echoeval \S+ .*go1\.`))
		Expect(o.stderr).To(BeEmpty())
		o = p.succeed("version", "--json")
		var v struct {
			Version string
			Go      string
			Formats map[string]int
		}
		Expect(json.Unmarshal([]byte(o.stdout), &v)).To(Succeed())
		Expect(v.Go).To(Equal(runtime.Version()))
		Expect(v.Formats).To(And(HaveKeyWithValue("dataset", 1), HaveKeyWithValue("results", 1), HaveKeyWithValue("cassette", 1)))
	})

	It("helps", func() {
		p := emptyProject()
		for _, args := range [][]string{{}, {"help"}, {"--help"}, {"-h"}} {
			o := p.succeed(args...)
			for _, command := range []string{"run", "record", "replay", "show", "report", "validate", "cassette", "emulate", "version", "completion"} {
				Expect(o.stdout).To(MatchRegexp(`(?m)^  `+command+` +\S`), "%v", args)
			}
			Expect(o.stderr).To(BeEmpty())
		}
		for _, command := range []string{"run", "record", "replay", "show", "report", "validate", "cassette", "emulate", "version", "cassette ls", "cassette show", "cassette verify"} {
			o := p.succeed(append([]string{"help"}, strings.Fields(command)...)...)
			Expect(o.stdout).To(ContainSubstring("echoeval " + command))
			Expect(p.succeed(append(strings.Fields(command), "--help")...).stdout).To(Equal(o.stdout))
		}
		Expect(p.succeed("cassette").stdout).To(ContainSubstring("verify"))
	})

	It("completes", func() {
		p := emptyProject()
		for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
			o := p.succeed("completion", shell)
			Expect(o.stdout).To(ContainSubstring("echoeval"))
			Expect(o.stderr).To(BeEmpty())
		}
		p.write("completion.bash", p.succeed("completion", "bash").stdout)
		o := p.await(p.start(p.program("bash", "-n", "completion.bash")))
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(p.succeed("__complete", "re").stdout).To(And(ContainSubstring("record"), ContainSubstring("replay"), ContainSubstring("report")))
	})

	It("validates files of every kind, and tells all that is wrong", func() {
		p := exampleProject()
		good := []string{quickstart, "datasets/regression.yaml", "datasets/agents/clerk.yaml", "datasets/emulator/quickstart.yaml", "datasets/emulator/regression.yaml"}
		o := p.succeed(append([]string{"validate"}, good...)...)
		Expect(strings.Count(o.stdout, "\n")).To(Equal(5))
		Expect(o.stdout).To(And(ContainSubstring("12 items"), ContainSubstring("2 providers")))
		type report struct {
			File, Kind string
			OK         bool
			Problems   []struct {
				At, Message string
				Hints       []string
			}
		}
		var reports []report
		Expect(json.Unmarshal([]byte(p.succeed(append([]string{"validate", "--json"}, good...)...).stdout), &reports)).To(Succeed())
		Expect(reports).To(HaveLen(5))
		kinds := map[string]int{}
		for _, r := range reports {
			Expect(r.OK).To(BeTrue())
			Expect(r.Problems).To(BeEmpty())
			kinds[r.Kind]++
		}
		Expect(kinds).To(Equal(map[string]int{"dataset": 2, "agent": 1, "emulator script": 2}))

		p.edit(quickstart, "contains: January", "contain: January")
		p.edit(quickstart, "numeric: {value:", "numeric: {valu:")
		p.edit("datasets/agents/clerk.yaml", "persona:", "perzona:")
		p.edit("datasets/emulator/quickstart.yaml", "latency: 640ms", "latency: soon")
		p.write("nothing.yaml", "a: b\n")
		bad := []string{quickstart, "datasets/agents/clerk.yaml", "datasets/emulator/quickstart.yaml", "nothing.yaml", "absent.yaml"}
		o = p.expect(2, append([]string{"validate", "datasets/emulator/regression.yaml"}, bad...)...)
		Expect(o.stdout).To(Equal("datasets/emulator/regression.yaml: an emulator script of 4 conversations\n"))
		for _, at := range []string{"datasets/quickstart.yaml:58:9: ", "datasets/agents/clerk.yaml:2:1: ", "datasets/emulator/quickstart.yaml:9:18: ", "nothing.yaml:1:1: ", "absent.yaml"} {
			Expect(o.stderr).To(ContainSubstring("error: " + at))
		}
		Expect(o.stderr).To(ContainSubstring(`did you mean "contains"?`))
		o = p.expect(2, append([]string{"validate", "--json"}, bad...)...)
		Expect(json.Unmarshal([]byte(o.stdout), &reports)).To(Succeed())
		Expect(reports).To(HaveLen(5))
		for _, r := range reports {
			Expect(r.OK).To(BeFalse(), r.File)
			Expect(r.Problems).NotTo(BeEmpty(), r.File)
		}
	})

	It("writes reports while it runs and afterwards", func() {
		p := exampleProject()
		o := p.expect(1, "run", "datasets/regression.yaml", "--format", "junit", "--format", "json=out/r.json", "-q")
		run := p.last()
		var suites struct {
			Suites []struct {
				Tests    int `xml:"tests,attr"`
				Failures int `xml:"failures,attr"`
				Errors   int `xml:"errors,attr"`
				Cases    []struct {
					Name    string `xml:"name,attr"`
					Failure *struct {
						Text string `xml:",chardata"`
					} `xml:"failure"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		junit := p.read(run + "/reports/junit.xml")
		Expect(xml.Unmarshal([]byte(junit), &suites)).To(Succeed())
		Expect(suites.Suites).To(HaveLen(1))
		s := suites.Suites[0]
		Expect([]int{s.Tests, s.Failures, s.Errors}).To(Equal([]int{4, 3, 0}))
		failures := 0
		for _, c := range s.Cases {
			Expect(c.Name).NotTo(BeEmpty())
			if c.Failure != nil {
				failures++
				Expect(c.Failure.Text).To(ContainSubstring("echoeval "), "the command that runs it again")
				if c.Name == "wrong-figure" {
					Expect(c.Failure.Text).To(And(ContainSubstring("3"), ContainSubstring("five copies")), "expected and actual")
				}
			}
		}
		Expect(failures).To(Equal(3))
		Expect(json.Valid([]byte(p.read("out/r.json")))).To(BeTrue())

		o = p.succeed("report", "latest", "--format", "junit,json", "-o", "later")
		Expect(p.read("later/junit.xml")).To(Equal(junit))
		Expect(p.read("later/report.json")).To(Equal(p.read("out/r.json")))
		o = p.expect(2, "report", "latest", "--format", "jsn")
		Expect(o.stderr).To(And(ContainSubstring(`"jsn"`), ContainSubstring("json")))
		o = p.succeed("report", "regression", "--format", "terminal")
		Expect(o.stdout).To(ContainSubstring("wrong-figure"))
		// A second replay gives the same bytes.
		p.expect(1, "run", "datasets/regression.yaml", "--format", "junit", "--format", "json")
		Expect(p.read(p.last() + "/reports/junit.xml")).To(Equal(junit))
		Expect(p.read(p.last() + "/reports/report.json")).To(Equal(p.read("out/r.json")))
	})

	It("shows a run and an item of it, whatever names them", func() {
		p := exampleProject()
		p.expect(1, "run", "datasets/regression.yaml")
		run := p.last()
		p.succeed("run", quickstart)
		for _, name := range []string{"regression", run, filepath.Base(run), filepath.Base(run)[:len(filepath.Base(run))-2]} {
			o := p.succeed("show", name)
			Expect(o.stdout).To(And(ContainSubstring("wrong-figure"), ContainSubstring("guesses-without-looking")), name)
		}
		Expect(p.succeed("show", "latest").stdout).To(ContainSubstring("24 of 24"))
		o := p.succeed("show", "regression", "wrong-figure")
		Expect(o.stdout).To(And(ContainSubstring("How many copies of Nine Winters"), ContainSubstring("read_file"), ContainSubstring("five copies"), ContainSubstring("contains")))
		o = p.succeed("show", "latest", "mends-a-typo", "--provider", "openai:gpt-4.1-mini")
		Expect(o.stdout).To(And(ContainSubstring("edit_file"), ContainSubstring("courrier"), ContainSubstring("gpt-4.1-mini")))
		Expect(p.expect(2, "show", "latest", "mends-a-tipo").stderr).To(ContainSubstring("mends-a-typo"))
		Expect(p.expect(2, "show", "latest", "mends-a-typo", "--provider", "openai:gpt-4o-maxi").stderr).To(ContainSubstring("openai:gpt-4o-mini"))
		Expect(p.expect(2, "show", "regresion").stderr).To(ContainSubstring("regression"))
	})

	It("serves answers that anybody can record against", func() {
		p := emptyProject()
		p.write("s.yaml", "version: 1\nname: s\ndefault: {steps: [{text: hi}]}\n")
		e := p.emulate("s.yaml")
		Expect(e.address).To(HavePrefix("127.0.0.1:"))
		o := p.expect(2, "emulate", "--script", "s.yaml", "--listen", e.address)
		Expect(o.stderr).To(ContainSubstring(e.address))
		Expect(e.process.cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
		Eventually(e.process.ended).WithTimeout(5 * time.Second).Should(Receive(BeNil()))
		e.process.ended <- nil
	})
})

var _ = Describe("the streams", func() {
	shell := func(p *project, script string) outcome {
		return p.end(p.start(p.program("/bin/sh", "-c", script, "sh", p.binary)))
	}

	It("may be closed before the command begins", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		want := p.identity(p.last())
		for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
			o := shell(p, `exec "$1" run datasets/quickstart.yaml --all -v --json `+closed)
			Expect(o.code).To(BeElementOf(0, 3), "%s\n%s", closed, o)
			Expect(p.identity(p.last())).To(Equal(want), closed)
		}
		Expect(p.runs()).To(HaveLen(5))
		expectSameFiles(p.files("datasets"), exampleProject().files("datasets"))
	})

	It("may be closed while it writes", func() {
		p := exampleProject()
		p.succeed("run", quickstart)
		want := p.identity(p.last())
		o := shell(p, `"$1" run datasets/quickstart.yaml --all | head -n 1; "$1" cassette show fixtures/cassettes/quickstart/openai_gpt-4o-mini/mends-a-typo.yaml --bodies | head -n 1; "$1" run datasets/quickstart.yaml -v 2>&1 >/dev/null | head -n 1`)
		Expect(strings.Count(o.stdout, "\n")).To(Equal(3), "%s", o)
		runs := p.runs()
		Expect(runs).To(HaveLen(3))
		Expect(p.identity(runs[1])).To(Equal(want), "what was not printed is written all the same")
		p.sweep()
	})

	DescribeTable("that cannot be written to are code 3", func(args string) {
		if _, err := os.Stat("/dev/full"); err != nil {
			return // only some systems have it; the other specs hold everywhere
		}
		p := exampleProject()
		p.succeed("run", quickstart)
		o := shell(p, `exec "$1" `+args+` >/dev/full`)
		Expect(o.code).To(Equal(3), "%s", o)
		Expect(o.stderr).To(HavePrefix("error: "))
	},
		Entry(nil, "run datasets/quickstart.yaml"), Entry(nil, "run datasets/quickstart.yaml --json"), Entry(nil, "version"), Entry(nil, "version --json"),
		Entry(nil, "cassette ls datasets/quickstart.yaml"), Entry(nil, "cassette ls datasets/quickstart.yaml --json"), Entry(nil, "cassette verify datasets/quickstart.yaml"), Entry(nil, "cassette show "+mini+"mends-a-typo.yaml"),
		Entry(nil, "validate datasets/quickstart.yaml"), Entry(nil, "validate datasets/quickstart.yaml --json"), Entry(nil, "show latest"), Entry(nil, "show latest mends-a-typo"), Entry(nil, "report latest"), Entry(nil, "help"), Entry(nil, "completion bash"),
	)
})

var _ = Describe("an output folder that cannot be written", func() {
	DescribeTable("is code 3, before anything is run", func(make func(p *project) string) {
		p := exampleProject()
		out := make(p)
		before := p.files("fixtures")
		for _, args := range [][]string{{"run", quickstart}, {"record", quickstart, "--upstream", "openai=http://" + closedPort() + "/v1"}} {
			o := p.expect(3, append(args, "--out", out)...)
			Expect(o.stderr).To(And(HavePrefix("error: "), ContainSubstring("\nhint: "), ContainSubstring("--out")))
			Expect(strings.Count(o.stderr, "error: ")).To(Equal(1))
			Expect(o.stdout).To(BeEmpty())
		}
		expectSameFiles(p.files("fixtures"), before)
	},
		Entry("a file", func(p *project) string { p.write("out", "mine"); return "out" }),
		Entry("below a file", func(p *project) string { p.write("out", "mine"); return "out/runs" }),
		Entry("a link that leads nowhere", func(p *project) string {
			Expect(os.Symlink("nowhere/at/all", p.path("out"))).To(Succeed())
			return "out"
		}),
		Entry("a folder that only others may write", func(p *project) string {
			if os.Getuid() == 0 { // to whom every folder is open but those of the kernel
				return fmt.Sprintf("/proc/%d/runs", os.Getpid())
			}
			Expect(os.Mkdir(p.path("out"), 0o555)).To(Succeed())
			return "out"
		}),
	)

	It("may be any other", func() {
		p := exampleProject()
		p.succeed("run", quickstart, "--out", "a b/ü/runs")
		p.succeed("run", quickstart, "--out", filepath.Join(p.home, "runs"))
		for _, dir := range []string{p.path("a b/ü/runs"), filepath.Join(p.home, "runs")} {
			found, err := filepath.Glob(filepath.Join(dir, "*-quickstart-*", "summary.json"))
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(HaveLen(1))
		}
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
		p.succeed("show", "latest", "--out", "a b/ü/runs")
	})

	It("is where a report cannot go", func() {
		p := exampleProject()
		p.write("out", "mine")
		o := p.expect(3, "run", quickstart, "--format", "junit=out/junit.xml")
		Expect(o.stderr).To(ContainSubstring("out/junit.xml"))
		Expect(o.stdout).To(ContainSubstring("24 of 24"), "the result is told all the same")
		p.expect(3, "report", "latest", "--format", "junit", "-o", "out")
	})
})
