//go:build unix

package main_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// template is the folder of the project that init writes.
var template = filepath.Join(suite.Root(), "cmd", "echoeval", "internal", "cli", "initfiles")

// templateFiles are the files of the template with their contents.
func templateFiles() map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	Expect(filepath.WalkDir(template, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(template, path)
		out[filepath.ToSlash(rel)] = string(data)
		if err == nil {
			err = relErr
		}
		return err
	})).To(Succeed())
	Expect(len(out)).To(BeNumerically(">", 12))
	return out
}

var _ = Describe("init", func() {
	It("writes a project that runs at once, without a key", func() {
		p := emptyProject()
		o := p.succeed("init", "demo")
		want := templateFiles()
		expectSameFiles(p.files("demo"), want)
		Expect(strings.Fields(o.stdout)).To(HaveLen(len(want)))
		for _, name := range strings.Fields(o.stdout) {
			Expect(p.path(name)).To(BeARegularFile())
		}
		Expect(o.stderr).To(Equal("hint: cd demo && echoeval run datasets/quickstart.yaml\n"))

		demo := &project{dir: p.path("demo"), home: p.home, temp: p.temp, binary: p.binary}
		demo.succeed("run", "datasets/quickstart.yaml")
		Expect(demo.count()).To(Equal(map[string]int{"pass": 6}))
		for _, line := range demo.results(demo.last()) {
			Expect(line.Cassette.State).To(Equal("fresh"))
			Expect(len(line.Checks)).To(BeNumerically(">", 1))
		}
		Expect(demo.succeed("show", "latest", "lists-two-files").stdout).To(ContainSubstring("list_dir"))
		demo.succeed("validate", "datasets/quickstart.yaml", "agents/assistant.yaml", "emulator/quickstart.yaml")
		Expect(demo.succeed("cassette", "verify", "datasets/quickstart.yaml").stdout).To(ContainSubstring("6 fresh, 0 stale, 0 missing, 0 orphaned"))

		demo.edit("agents/assistant.yaml", "helpful", "terse")
		o = demo.expect(4, "run", "datasets/quickstart.yaml")
		Expect(strings.Count(o.stdout, "6 items stale: system-prompt")).To(Equal(1))
		demo.succeed("run", "datasets/quickstart.yaml", "--drift", "system-prompt=serve")
		Expect(demo.count()).To(Equal(map[string]int{"pass": 6}))
	})

	It("writes into the current folder, beside other files", func() {
		p := emptyProject()
		p.write("main.go", "package main\n")
		o := p.succeed("init")
		Expect(o.stderr).To(Equal("hint: echoeval run datasets/quickstart.yaml\n"))
		Expect(p.read("main.go")).To(Equal("package main\n"))
		p.succeed("run", "datasets/quickstart.yaml")
		p = emptyProject()
		p.succeed("init", "a folder/of mine")
		Expect(p.path("a folder/of mine/echoeval.yaml")).To(BeARegularFile())
	})

	It("is the same as a recording made now", func() {
		p := emptyProject()
		p.succeed("init", ".")
		committed := p.files("fixtures")
		Expect(committed).To(HaveLen(6))
		p.env = []string{"OPENAI_API_KEY=not-a-real-key", "CI="}
		e := p.emulate("emulator/quickstart.yaml")
		p.succeed("record", "datasets/quickstart.yaml", e.upstream(), "--recorded-at", recordedAt, "--cassettes", "again/cassettes")
		if suite.Update() {
			Expect(os.RemoveAll(filepath.Join(template, "fixtures"))).To(Succeed())
			Expect(os.CopyFS(filepath.Join(template, "fixtures"), os.DirFS(p.path("again")))).To(Succeed())
			return
		}
		expectSameFiles(p.files("again"), committed)
	})

	DescribeTable("overwrites nothing", func(prepare func(p *project), named string) {
		p := emptyProject()
		prepare(p)
		before := p.files("")
		o := p.expect(2, "init")
		Expect(o.stdout).To(BeEmpty())
		Expect(o.stderr).To(And(HavePrefix("error: "), ContainSubstring(named), ContainSubstring("hint: ")))
		after := p.files("")
		Expect(slices.Sorted(maps.Keys(after))).To(Equal(slices.Sorted(maps.Keys(before))))
		Expect(after).To(Equal(before))
		for _, folder := range []string{"agents", "emulator", "fixtures", ".github"} {
			Expect(p.path(folder)).NotTo(BeADirectory())
		}
	},
		Entry("a file", func(p *project) { p.write("README.md", "mine\n") }, "README.md"),
		Entry("two files", func(p *project) { p.write(".gitignore", "x\n"); p.write("echoeval.yaml", "version: 1\n") }, ".gitignore, echoeval.yaml"),
		Entry("a link to nowhere", func(p *project) { Expect(os.Symlink("nowhere", p.path("echoeval.yaml"))).To(Succeed()) }, "echoeval.yaml"),
		Entry("a folder in place of a file", func(p *project) { Expect(os.Mkdir(p.path("README.md"), 0o755)).To(Succeed()) }, "README.md"),
		Entry("a file in place of a folder", func(p *project) { p.write("datasets", "x") }, "datasets"),
	)

	It("refuses what it does not know", func() {
		p := emptyProject()
		Expect(p.expect(2, "init", "--target", "agent").stderr).To(ContainSubstring("unknown flag: --target"))
		p.expect(2, "init", "a", "b")
		p.expect(2, "init", "")
		p.write("file", "x")
		Expect(p.expect(2, "init", "file").stderr).To(ContainSubstring("no folder"))
		Expect(p.read("file")).To(Equal("x"))
		Expect(p.files("")).To(HaveLen(1))
	})

	It("writes a recipe for CI that types commands that there are", func() {
		recipe := templateFiles()[".github/workflows/evals.yml"]
		p := emptyProject()
		p.succeed("init")
		commands := regexp.MustCompile(`(?m)^ +- run: (echoeval .*)$`).FindAllStringSubmatch(recipe, -1)
		Expect(commands).To(HaveLen(1))
		p.env = []string{"CI=true"}
		script := strings.Replace(commands[0][1], "echoeval ", `"$ECHOEVAL" `, 1)
		p.env = append(p.env, "ECHOEVAL="+p.binary)
		o := p.await(p.start(p.program("/bin/sh", "-c", script)))
		Expect(o.code).To(Equal(0), "%s", o)
		junit, err := filepath.Glob(p.path("eval-runs/*/reports/junit.xml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(junit).NotTo(BeEmpty())
	})
})

var _ = Describe("doctor", func() {
	type report struct {
		OK       bool
		Version  string
		Findings []struct {
			Name, State, Detail, Enables string
			Fix                          *string
		}
	}
	examine := func(p *project, code int) (report, map[string]string) {
		GinkgoHelper()
		var r report
		Expect(json.Unmarshal([]byte(p.expect(code, "doctor", "--json").stdout), &r)).To(Succeed())
		states := map[string]string{}
		for _, f := range r.Findings {
			Expect(states).NotTo(HaveKey(f.Name))
			states[f.Name] = f.State
			Expect(f.Detail).NotTo(BeEmpty(), f.Name)
			Expect(f.Enables).NotTo(BeEmpty(), f.Name)
			Expect(f.Fix != nil).To(Equal(f.State != "ok"), f.Name)
		}
		return r, states
	}

	It("says what is set up, and what a missing thing would enable, by names alone", func() {
		p := emptyProject()
		p.env = []string{"PATH=" + p.home}
		r, states := examine(p, 0)
		Expect(r.OK).To(BeTrue())
		Expect(states).To(Equal(map[string]string{
			"project": "missing", "temporary folder": "ok", "runs": "ok", "cassettes": "ok", "time": "ok", "OPENAI_API_KEY": "missing", "ANTHROPIC_API_KEY": "missing", "AWS_BEARER_TOKEN_BEDROCK": "missing", "GEMINI_API_KEY": "missing", "git": "missing", "CI": "ok", "proxy": "ok", "terminal": "ok",
		}))
		o := p.succeed("doctor")
		Expect(o.stdout).To(And(ContainSubstring("missing  OPENAI_API_KEY"), ContainSubstring("enables: recording and live runs of openai"), ContainSubstring("fix: export OPENAI_API_KEY=...")))

		p = exampleProject()
		p.write("echoeval.yaml", "version: 1\n")
		key := "not-a-real-key-0123456789"
		p.env = []string{"OPENAI_API_KEY=" + key, "HTTPS_PROXY=http://user:" + key + "@127.0.0.1:9", "CI=true"}
		r, states = examine(p, 0)
		Expect(states).To(HaveKeyWithValue("project", "ok"))
		Expect(states).To(HaveKeyWithValue("OPENAI_API_KEY", "ok"))
		o = p.succeed("doctor")
		Expect(o.all()).NotTo(ContainSubstring(key))
		Expect(o.stdout).To(And(ContainSubstring("set: HTTPS_PROXY"), ContainSubstring("--allow-network")))
		Expect(r.Version).NotTo(BeEmpty())
		before := p.files("")
		p.succeed("doctor")
		Expect(p.files("")).To(Equal(before), "doctor writes nothing")
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})

	It("fails where a replay could not work", func() {
		p := exampleProject()
		p.write(".echoeval", "a file")
		r, states := examine(p, 3)
		Expect(r.OK).To(BeFalse())
		Expect(states).To(HaveKeyWithValue("runs", "broken"))

		p = exampleProject()
		p.env = []string{"TMPDIR=" + p.path("datasets/quickstart.yaml")}
		_, states = examine(p, 3)
		Expect(states).To(HaveKeyWithValue("temporary folder", "broken"))

		p = emptyProject()
		p.write("fixtures/cassettes", "a file")
		_, states = examine(p, 3)
		Expect(states).To(HaveKeyWithValue("cassettes", "broken"))
	})
})

var _ = Describe("providers ls", func() {
	It("lists all, with keys by name", func() {
		p := emptyProject()
		key := "not-a-real-key-0123456789"
		for _, set := range []bool{false, true} {
			if set {
				p.env = []string{"OPENAI_API_KEY=" + key}
			}
			var list []struct {
				Name    string
				BaseURL *string `json:"base_url"`
				KeyEnv  *string `json:"key_env"`
				KeySet  *bool   `json:"key_set"`
				Ready   bool
				Can     []string
				Note    *string
			}
			Expect(json.Unmarshal([]byte(p.succeed("providers", "ls", "--json").stdout), &list)).To(Succeed())
			names := map[string]bool{}
			for _, l := range list {
				names[l.Name] = l.Ready
				Expect(l.Can).NotTo(BeEmpty(), l.Name)
				Expect(l.BaseURL != nil || l.Note != nil).To(BeTrue(), l.Name)
				Expect(l.KeyEnv == nil).To(Equal(l.KeySet == nil))
			}
			Expect(names).To(HaveKeyWithValue("openai", set))
			Expect(names).To(HaveKeyWithValue("anthropic", false))
			Expect(names).To(HaveKeyWithValue("compat", true))
			Expect(names).To(HaveKeyWithValue("script", true))
			o := p.succeed("providers", "ls")
			Expect(strings.Count(o.stdout, "\n")).To(Equal(len(list)))
			Expect(o.stdout).To(ContainSubstring(map[bool]string{true: "OPENAI_API_KEY is set", false: "OPENAI_API_KEY is not set"}[set]))
			Expect(o.all()).NotTo(ContainSubstring(key))
		}
		Expect(p.expect(2, "providers", "list").stderr).To(ContainSubstring(`unknown command "list"`))
	})
})

var _ = Describe("invariants", func() {
	It("are listed and explained", func() {
		p := emptyProject()
		o := p.succeed("invariants", "ls")
		var list []struct {
			Name, Severity, Blame, Statement, Notes string
			Standard                                bool
		}
		Expect(json.Unmarshal([]byte(p.succeed("invariants", "ls", "--json").stdout), &list)).To(Succeed())
		Expect(len(list)).To(And(BeNumerically(">", 10), Equal(strings.Count(o.stdout, "\n"))))
		for _, v := range list {
			Expect(o.stdout).To(ContainSubstring(v.Name))
			text := p.succeed("invariants", "explain", v.Name).stdout
			Expect(text).To(And(HavePrefix(v.Name+": "), ContainSubstring(v.Statement), ContainSubstring("breaks it:")))
		}
		o = p.expect(2, "invariants", "explain", "tool-call-pairin")
		Expect(o.stderr).To(And(ContainSubstring(`unknown invariant "tool-call-pairin"`), ContainSubstring("tool-call-pairing")))
		p.expect(2, "invariants", "explain")
	})
})

var _ = Describe("completion", func() {
	// offers are what a shell is given for a command line whose last word is typed.
	offers := func(p *project, words ...string) []string {
		GinkgoHelper()
		lines := strings.Split(strings.TrimSpace(p.succeed(append([]string{"__complete"}, words...)...).stdout), "\n")
		Expect(lines[len(lines)-1]).To(MatchRegexp(`^:\d+$`))
		return lines[:len(lines)-1]
	}

	It("offers items, tags, providers and runs of the files that are typed", func() {
		p := exampleProject()
		Expect(offers(p, "run", quickstart, "--item", "")).To(HaveLen(12))
		Expect(offers(p, "run", quickstart, "--item", "l")).To(Equal([]string{"lists-two-files", "looks-at-a-cover"}))
		Expect(offers(p, "replay", quickstart, "--item=mends")).To(ContainElement(ContainSubstring("mends-a-typo")))
		Expect(offers(p, "run", quickstart, "--tag", "!r")).To(ContainElement("!read"))
		Expect(offers(p, "run", quickstart, "--provider", "openai:gpt-4o")).To(Equal([]string{"openai:gpt-4o-mini"}))
		Expect(offers(p, "record", quickstart, "--upstream", "")).To(ContainElement("openai="))
		Expect(offers(p, "run", quickstart, "--mode", "re")).To(ContainElements("replay", "record"))
		Expect(offers(p, "run", quickstart, "--drift", "system-prompt=")).To(ContainElement("system-prompt=serve"))
		Expect(offers(p, "run", "--format", "ju")).To(Equal([]string{"junit"}))
		Expect(offers(p, "invariants", "explain", "tool-call-p")).To(Equal([]string{"tool-call-pairing"}))
		Expect(offers(p, "run", "")).To(ContainElements("yaml", "json"))
		Expect(offers(p, "show", "")).To(BeEmpty())
		p.succeed("run", quickstart)
		Expect(offers(p, "show", "")).To(Equal([]string{"latest", filepath.Base(p.last())}))
		Expect(offers(p, "show", "latest", "mends")).To(Equal([]string{"mends-a-typo"}))
		Expect(offers(p, "run", "--resume", "late")).To(Equal([]string{"latest"}))
		Expect(offers(p, "do")).To(ContainElement(HavePrefix("doctor")))
	})

	It("offers nothing where a file is broken or absent, and no control characters", func() {
		p := emptyProject()
		p.write("broken.yaml", "version: 1\nname: [")
		Expect(offers(p, "run", "broken.yaml", "absent.yaml", "--item", "")).To(BeEmpty())
		Expect(offers(p, "run", "broken.yaml", "--tag", "")).To(BeEmpty())
		Expect(offers(p, "run", "broken.yaml", "--provider", "op")).To(Equal([]string{"openai:"}))
		Expect(offers(p, "show", "latest", "")).To(BeEmpty())
	})
})
