//go:build unix

package main_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// git runs git in the project, with a name and an address of its own.
func (p *project) git(args ...string) string {
	GinkgoHelper()
	cmd := p.program("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

// committedProject is the example project in a real repository, with one commit.
func committedProject() *project {
	GinkgoHelper()
	p := exampleProject()
	Expect(os.Remove(p.path(".git"))).To(Succeed())
	p.git("init", "--quiet")
	p.git("add", "--all")
	p.git("commit", "--quiet", "--message", "first")
	return p
}

var _ = Describe("record --stale", func() {
	It("keeps the beginning of a conversation that still fits and asks only for its new end", func() {
		p := exampleProject()
		const file = mini + "total-copies.yaml"
		before := p.read(file)
		untouched := p.read(mini + "looks-at-a-cover.yaml")
		p.edit("datasets/workspaces/bookshop/stock.csv", "21.00", "22.00")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.expect(4, "run", quickstart)
		p.succeed("record", quickstart, "--stale", e.upstream(), "--item", "total-copies", "--item", "looks-at-a-cover", "--provider", "openai:gpt-4o-mini")
		for _, line := range p.results(p.last()) {
			Expect(line.Cassette.State).To(Equal("extended"), line.Item)
		}
		after := p.read(file)
		_, entries, ok := strings.Cut(before, "\ninteractions:\n")
		Expect(ok).To(BeTrue())
		first, _, ok := strings.Cut(entries, "    seq: 1\n")
		Expect(ok).To(BeTrue())
		Expect(len(first)).To(BeNumerically(">", 1000))
		Expect(after).To(ContainSubstring("\ninteractions:\n"+first), "the first exchange is the recorded one, byte for byte")
		Expect(after).To(And(ContainSubstring("22.00"), Not(ContainSubstring("21.00"))))

		// No tool looked at what changed, so that only the header is new.
		_, entries, _ = strings.Cut(untouched, "\ninteractions:\n")
		Expect(p.read(mini + "looks-at-a-cover.yaml")).To(HaveSuffix("\ninteractions:\n" + entries))
		p.succeed("run", quickstart, "--item", "total-copies", "--item", "looks-at-a-cover", "--provider", "openai:gpt-4o-mini")
	})

	It("leaves what it cannot read but others can", func() {
		p := exampleProject()
		const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
		p.write(mini+"total-copies.yaml", pointer)
		e := p.emulate("datasets/emulator/quickstart.yaml")
		o := p.expect(4, "record", quickstart, "--stale", e.upstream(), "--item", "total-copies", "--provider", "openai:gpt-4o-mini")
		Expect(o.all()).To(ContainSubstring("LFS"))
		Expect(p.read(mini + "total-copies.yaml")).To(Equal(pointer))
	})
})

var _ = Describe("cassette verify", func() {
	It("says what recording anew would cost and take, by cause", func() {
		p := exampleProject()
		p.edit(quickstart, "Which order files do we have?", "Which order files are there?")
		p.remove(mini + "mends-a-typo.yaml")
		p.write(mini+"writes-a-summary.yaml", "version: 1\n")
		o := p.expect(4, "cassette", "verify", quickstart)
		Expect(o.stdout).To(MatchRegexp(`(?m)^re-recording: 4 cassettes, about \$0\.00\d+, \d+ s$`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^  user-input +2 cassettes, about \$0\.00`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^  missing +1 cassette, about \$0\.00`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^  unreadable +1 cassette, about \$0\.00`))
		o = p.expect(4, "cassette", "verify", quickstart, "--json")
		var got struct {
			Fresh int `json:"fresh"`
			Again struct {
				Cassettes int     `json:"cassettes"`
				Cost      float64 `json:"cost_usd"`
				Time      int     `json:"time_ms"`
				ByCause   []struct {
					Cause string  `json:"cause"`
					Cost  float64 `json:"cost_usd"`
				} `json:"by_cause"`
			} `json:"re_recording"`
		}
		Expect(json.Unmarshal([]byte(o.stdout), &got)).To(Succeed())
		Expect([]int{got.Fresh, got.Again.Cassettes, len(got.Again.ByCause)}).To(Equal([]int{20, 4, 3}))
		sum := 0.0
		for _, c := range got.Again.ByCause {
			Expect(c.Cost).To(BeNumerically(">", 0), c.Cause)
			sum += c.Cost
		}
		Expect(got.Again.Cost).To(BeNumerically("~", sum, 1e-8))
		Expect(got.Again.Time).To(BeNumerically(">", 0))

		// The estimate of what is stale is what its last recording cost.
		p = exampleProject()
		p.succeed("run", quickstart, "--item", "lists-two-files", "--provider", "openai:gpt-4o-mini")
		cost := *p.only().CostUSD
		p.edit(mini+"lists-two-files.yaml", "Which order files do we have?", "Which order files are there?")
		o = p.expect(4, "cassette", "verify", quickstart, "--json")
		Expect(json.Unmarshal([]byte(o.stdout), &got)).To(Succeed())
		Expect(got.Again.Cost).To(BeNumerically("~", cost, 1e-8))
	})

	It("says nothing of a cost where all is fresh, and guesses it where nothing was ever recorded", func() {
		p := exampleProject()
		Expect(p.succeed("cassette", "verify", quickstart).all()).NotTo(ContainSubstring("re-recording"))
		Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
		o := p.expect(4, "cassette", "verify", quickstart)
		Expect(o.stdout).To(MatchRegexp(`re-recording: 24 cassettes, about \$0\.0\d+, \d+ s \(a guess: nothing was recorded yet\)`))
		Expect(recording(o)).To(HaveSuffix("--stale"))
	})
})

var _ = Describe("cassette diff", func() {
	// rewritten is a project whose prompt and script have changed since its commit, and whose cassettes were recorded anew.
	rewritten := func() *project {
		GinkgoHelper()
		p := committedProject()
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		p.edit("datasets/emulator/quickstart.yaml", "Nine Winters costs 21.00 EUR.", "21.00 EUR.\\r\\x1b[31m")
		p.edit("datasets/emulator/quickstart.yaml", "  - name: total-copies\n    match: {user_contains: \"How many books are on the shelves in all?\"}\n    steps:\n", "  - name: total-copies\n    match: {user_contains: \"How many books are on the shelves in all?\"}\n    steps:\n      - calls: [{name: list_dir, args: {path: .}}]\n        latency: 655ms\n        ttft: 320ms\n")
		return p
	}

	It("shows how conversations changed since a revision", func() {
		p := rewritten()
		p.edit("datasets/emulator/quickstart.yaml", `21.00 EUR.\r\x1b[31m`, "21.00 EUR.")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.run("record", quickstart, "--stale", e.upstream(), "--recorded-at", recordedAt)
		p.remove(mini + "mends-a-typo.yaml")
		p.write(mini+"ticks-off-a-task.yaml", p.read("fixtures/cassettes/quickstart/openai_gpt-4.1-mini/ticks-off-a-task.yaml"))
		p.git("rm", "--quiet", "--cached", mini+"notes-by-pattern.yaml")
		p.git("commit", "--quiet", "--amend", "--message", "first, without one file")
		status := p.git("status", "--porcelain")
		o := p.succeed("cassette", "diff", "HEAD", quickstart)
		suite.Golden("cassette-diff.txt", []byte(o.stdout))
		Expect(p.git("status", "--porcelain")).To(Equal(status))
		o = p.succeed("cassette", "diff", "HEAD", quickstart, "--json")
		var d struct {
			Before, After string
			Counts        map[string]int
			Items         []struct {
				Item, Provider, State string
				Classes               []string
				Before, After         *struct {
					Tools  []string
					Answer string
				}
			}
		}
		Expect(json.Unmarshal([]byte(o.stdout), &d)).To(Succeed())
		Expect(d.Counts).To(Equal(map[string]int{"same": 0, "requests": 18, "changed": 4, "added": 1, "removed": 1, "unreadable": 0}))
		Expect(d.Items).To(HaveLen(24))
		Expect([]string{d.Before, d.After}).To(Equal([]string{"HEAD", "fixtures/cassettes"}))
		at := slices.IndexFunc(d.Items, func(i struct {
			Item, Provider, State string
			Classes               []string
			Before, After         *struct {
				Tools  []string
				Answer string
			}
		}) bool {
			return i.Item == "total-copies"
		})
		Expect(d.Items[at].Before.Tools).To(Equal([]string{"read_file"}))
		Expect(d.Items[at].After.Tools).To(Equal([]string{"list_dir", "read_file"}))
		Expect(d.Items[at].Classes).To(Equal([]string{"system-prompt"}))
	})

	It("compares with a folder, as a whole or that of the dataset, and with itself finds nothing", func() {
		p := exampleProject()
		Expect(os.CopyFS(p.path("nightly"), os.DirFS(p.path("fixtures/cassettes")))).To(Succeed())
		Expect(p.succeed("cassette", "diff", "nightly", quickstart).stdout).To(Equal("quickstart: 0 changed, 0 with other requests only, 24 same, 0 only in nightly, 0 only in fixtures/cassettes\n"))
		p.remove(mini + "mends-a-typo.yaml")
		p.write("nightly/quickstart/openai_gpt-4o-mini/total-copies.yaml", "version: 1\n")
		p.write("nightly/quickstart/openai_gpt-4o-mini/gone.yaml", p.read(mini+"looks-at-a-cover.yaml"))
		o := p.expect(4, "cassette", "diff", "nightly/quickstart", quickstart)
		Expect(o.stdout).To(And(ContainSubstring("22 same, 2 only in nightly/quickstart, 0 only in fixtures/cassettes, 1 unreadable"), ContainSubstring("quickstart/openai_gpt-4o-mini/total-copies.yaml: unreadable")))
		o = p.expect(4, "cassette", "diff", "fixtures/cassettes", quickstart, "--cassettes", "nightly")
		Expect(o.stdout).To(ContainSubstring("22 same, 0 only in fixtures/cassettes, 1 only in nightly, 1 unreadable"))
	})

	It("says what is wrong with a revision", func() {
		p := committedProject()
		o := p.expect(2, "cassette", "diff", "no-such-branch", quickstart)
		Expect(o.stderr).To(ContainSubstring("no-such-branch is neither a folder nor a revision"))
		p.expect(2, "cassette", "diff", "HEAD:datasets", quickstart)
		p.expect(2, "cassette", "diff", "--", "-p", quickstart)
		o = p.expect(2, "cassette", "diff", "HEAD", quickstart, "--cassettes", p.temp)
		Expect(o.stderr).To(ContainSubstring("outside of the project"))
		o = p.expect(2, "cassette", "diff", "datasets", quickstart)
		Expect(o.stderr).To(ContainSubstring("datasets has no cassettes of quickstart"))
		Expect(p.expect(2, "cassette", "diff", "HEAD").stderr).To(ContainSubstring("hint:"))

		p = exampleProject() // whose .git is no repository
		o = p.expect(2, "cassette", "diff", "HEAD", quickstart)
		Expect(o.stderr).To(ContainSubstring("no repository of git"))
		p.env = append(p.env, "PATH=/nowhere")
		o = p.expect(2, "cassette", "diff", "HEAD", quickstart)
		Expect(o.stderr).To(ContainSubstring("git is needed, which is not installed"))
	})

	It("lets no control character of a model through", func() {
		p := rewritten()
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.run("record", quickstart, "--stale", e.upstream(), "--recorded-at", recordedAt)
		o := p.succeed("cassette", "diff", "HEAD", quickstart)
		Expect(o.stdout).To(ContainSubstring("21.00 EUR."))
		Expect(strings.Trim(o.stdout, "\n")).NotTo(ContainSubstring("\x1b"))
	})
})

var _ = Describe("cassette prune", func() {
	It("deletes what belongs to nobody, and names it", func() {
		p := exampleProject()
		kept := p.files("fixtures")
		p.write(mini+"nobody.yaml", p.read(mini+"total-copies.yaml"))
		p.write(mini+"total-copies@2.yaml", p.read(mini+"total-copies.yaml"))
		p.write("fixtures/cassettes/quickstart/old_provider/total-copies.yaml", p.read(mini+"total-copies.yaml"))
		all := p.files("fixtures")
		o := p.succeed("cassette", "prune", quickstart, "--dry-run")
		Expect(strings.Count(o.stdout, "would be deleted: quickstart/")).To(Equal(3))
		expectSameFiles(p.files("fixtures"), all)
		o = p.succeed("cassette", "prune", quickstart, "--repeat", "2", "--dry-run")
		Expect(o.stdout).NotTo(ContainSubstring("total-copies@2.yaml"))
		o = p.succeed("cassette", "prune", quickstart)
		Expect(o.stdout).To(And(ContainSubstring("deleted: quickstart/openai_gpt-4o-mini/nobody.yaml"), ContainSubstring("3 cassettes deleted")))
		expectSameFiles(p.files("fixtures"), kept)
		Expect(p.path("fixtures/cassettes/quickstart/old_provider")).NotTo(BeAnExistingFile())
		Expect(p.succeed("cassette", "prune", quickstart).stdout).To(Equal("quickstart: no orphans\n"))
		p.succeed("run", quickstart)
	})

	It("never deletes what is not ours, what another dataset recorded, or what lies outside", func() {
		p := exampleProject()
		outside := filepath.Join(p.home, "precious")
		Expect(os.MkdirAll(outside, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(outside, "a.yaml"), []byte(p.read(mini+"total-copies.yaml")), 0o600)).To(Succeed())
		p.write(mini+"notes.yaml", "remember: the milk\n")
		p.write(mini+"foreign.yaml", strings.Replace(p.read(mini+"total-copies.yaml"), "dataset: quickstart", "dataset: other", 1))
		p.write(mini+"pointer.yaml", "version https://git-lfs.github.com/spec/v1\n")
		p.write("fixtures/cassettes/quickstart/_setup.yaml", p.read(mini+"total-copies.yaml"))
		p.write(mini+"readme.md", "not looked at")
		Expect(os.Symlink(filepath.Join(outside, "a.yaml"), p.path(mini+"link.yaml"))).To(Succeed())
		Expect(os.Symlink(outside, p.path("fixtures/cassettes/quickstart/elsewhere"))).To(Succeed())
		Expect(os.Mkdir(p.path(mini+"folder.yaml"), 0o755)).To(Succeed())
		before := p.files("fixtures")
		o := p.succeed("cassette", "prune", quickstart)
		for _, kept := range []string{"notes.yaml (it is no cassette)", "foreign.yaml (it was recorded for dataset other)", "pointer.yaml (this is a Git LFS pointer", "link.yaml (it is a symbolic link)"} {
			Expect(o.stdout).To(ContainSubstring(kept))
		}
		Expect(o.stdout).NotTo(Or(ContainSubstring("deleted"), ContainSubstring("_setup"), ContainSubstring("a.yaml")))
		expectSameFiles(p.files("fixtures"), before)
		_, err := os.Stat(filepath.Join(outside, "a.yaml"))
		Expect(err).NotTo(HaveOccurred())

		// The folder of the cassettes itself may be a link: then nothing is looked at.
		Expect(os.Rename(p.path("fixtures/cassettes/quickstart"), filepath.Join(p.home, "moved"))).To(Succeed())
		Expect(os.Symlink(filepath.Join(p.home, "moved"), p.path("fixtures/cassettes/quickstart"))).To(Succeed())
		p.succeed("cassette", "prune", quickstart)
		_, err = os.Stat(filepath.Join(p.home, "moved", "openai_gpt-4o-mini", "notes.yaml"))
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("cassette scrub", func() {
	const secretKey = "sk-" + "proj-abcdEFGH1234abcdEFGH1234abcdEFGH1234abcd"

	It("takes secrets and named values out, says where, and leaves a cassette", func() {
		p := exampleProject()
		const file = mini + "price-of-a-book.yaml"
		p.edit(file, `"id":"chatcmpl-`, `"id":"`+secretKey+`-`)
		p.edit(file, "Nine Winters", "Nine Nights7")
		p.env = append(p.env, "TITLE=Nine Nights7")
		Expect(os.Chmod(p.path(file), 0o600)).To(Succeed())
		before := p.files("fixtures")
		o := p.succeed("cassette", "scrub", file, "--value", "title=TITLE", "--dry-run")
		Expect(o.stdout).To(And(ContainSubstring("would be replaced: value of title"), ContainSubstring("openai-key"), ContainSubstring("interaction 2")))
		expectSameFiles(p.files("fixtures"), before)
		o = p.succeed("cassette", "scrub", file, mini+"total-copies.yaml", "--value", "title=TITLE")
		Expect(o.stdout).To(And(ContainSubstring("replaced: "), ContainSubstring("total-copies.yaml: nothing to replace")))
		Expect(o.all()).NotTo(Or(ContainSubstring(secretKey), ContainSubstring("Nine Nights7")))
		after := p.read(file)
		Expect(after).NotTo(Or(ContainSubstring(secretKey), ContainSubstring("Nine Nights7")))
		Expect(after).To(And(ContainSubstring("{{echoeval:title}}"), ContainSubstring("{{echoeval:scrubbed-openai-key")))
		info, err := os.Stat(p.path(file))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))
		changed := p.files("fixtures")
		for name, text := range before {
			if name != strings.TrimPrefix(file, "fixtures/") {
				Expect(changed[name]).To(Equal(text), name)
			}
		}
		p.succeed("cassette", "show", file)
		Expect(p.succeed("cassette", "scrub", file, "--value", "title=TITLE").stdout).To(ContainSubstring("nothing to replace"))
	})

	It("says what it cannot do", func() {
		p := exampleProject()
		Expect(p.expect(2, "cassette", "scrub", "absent.yaml").stderr).To(ContainSubstring("absent.yaml"))
		p.write("broken.yaml", "version: 1\n")
		Expect(p.expect(4, "cassette", "scrub", "broken.yaml").stderr).To(ContainSubstring("broken.yaml"))
		Expect(p.read("broken.yaml")).To(Equal("version: 1\n"))
		for _, value := range []string{"x", "=X", "x=", "x=NOT_SET", "a b=HOME"} {
			Expect(p.expect(2, "cassette", "scrub", mini+"total-copies.yaml", "--value", value).stderr).To(ContainSubstring("--value"), value)
		}
		p.expect(2, "cassette", "scrub")
	})
})

var _ = Describe("cassette ls", func() {
	It("shows what was put aside until a clean recording takes its place", func() {
		p := emptyProject()
		const key = "sk-" + "proj-abcdEFGH1234abcdEFGH1234abcdEFGH1234abcd"
		p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\nitems:\n  - {id: a, input: hello, checks: [{contains: key}]}\n")
		p.write("s.yaml", "version: 1\nname: s\ndefault:\n  steps: [{text: the key is "+key+"}]\n")
		e := p.emulate("s.yaml")
		p.expect(4, "record", "d.yaml", e.upstream())
		o := p.succeed("cassette", "ls", "d.yaml")
		Expect(o.stdout).To(MatchRegexp(`(?m)^missing +d/openai_gpt-4o-mini/a\.yaml`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^quarantined +\.echoeval/quarantine/d/openai_gpt-4o-mini/a\.yaml`))
		Expect(p.succeed("cassette", "ls", "d.yaml", "--json").stdout).To(ContainSubstring(`"state":"quarantined"`))
		p.edit("s.yaml", key, "none")
		p.succeed("record", "d.yaml", p.emulate("s.yaml").upstream())
		o = p.succeed("cassette", "ls", "d.yaml")
		Expect(o.stdout).To(And(MatchRegexp(`(?m)^recorded `), Not(ContainSubstring("quarantined"))))
		Expect(slices.Collect(maps.Keys(p.files(".echoeval/quarantine")))).To(BeEmpty())

		p.write("fixtures/cassettes/d/_setup.yaml", p.read("fixtures/cassettes/d/openai_gpt-4o-mini/a.yaml"))
		Expect(p.succeed("cassette", "ls", "d.yaml").stdout).To(MatchRegexp(`(?m)^setup +d/_setup\.yaml`))
		Expect(p.succeed("cassette", "verify", "d.yaml").stdout).To(ContainSubstring("0 orphaned"))
	})
})
