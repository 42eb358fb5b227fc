//go:build unix

package recipetest

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestRecipes(t *testing.T) { suite.Run(t, "recipes") }

// binary is the command.
var binary string

var _ = BeforeSuite(func() {
	dir, err := os.MkdirTemp("", "recipes-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	binary = filepath.Join(dir, "echoeval")
	build := exec.Command("go", "build", "-o", binary, "./cmd/echoeval")
	build.Dir = suite.Root()
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
})

// checkout is a clone with the committed datasets, of which echoeval.yaml lists some. Its origin has the branch main; it stands on the branch change.
func checkout(datasets ...string) string {
	GinkgoHelper()
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"datasets", "fixtures"} {
		Expect(os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(suite.Root(), name)))).To(Succeed())
	}
	write(dir, "echoeval.yaml", "version: 1\ndatasets: ["+strings.Join(datasets, ", ")+"]\n")
	origin := GinkgoT().TempDir()
	git(origin, "init", "-q", "--bare", "-b", "main")
	git(dir, "init", "-q", "-b", "main")
	git(dir, "remote", "add", "origin", origin)
	push(dir, "main")
	git(dir, "switch", "-qc", "change")
	return dir
}

// push commits everything and pushes the branch.
func push(dir, branch string) {
	GinkgoHelper()
	git(dir, "add", "-A")
	git(dir, "-c", "user.name=ana", "-c", "user.email=ana@example.com", "-c", "commit.gpgsign=false", "commit", "-qm", "a change")
	git(dir, "push", "-q", "origin", branch)
}

func git(dir string, args ...string) {
	GinkgoHelper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

func write(dir, name, text string) {
	GinkgoHelper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o755)).To(Succeed())
}

func slurp(elem ...string) string {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(elem...))
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// edit replaces a text that stands once in a file.
func edit(dir, name, before, after string) {
	GinkgoHelper()
	text := slurp(dir, name)
	Expect(strings.Count(text, before)).To(Equal(1), "%s in %s", before, name)
	write(dir, name, strings.Replace(text, before, after, 1))
}

// echoeval runs the command in a folder and wants it to succeed.
func echoeval(dir string, args ...string) {
	GinkgoHelper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// accept makes the baseline of a dataset.
func accept(dir, dataset string) {
	GinkgoHelper()
	runs := GinkgoT().TempDir()
	cmd := exec.Command(binary, "run", "datasets/"+dataset+".yaml", "--out", runs, "--quiet", "--fail-on", "none")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	echoeval(dir, "baseline", "accept", filepath.Join(runs, "latest"))
}

// cases counts the test cases of a JUnit file, and those that failed.
func cases(path string) (all, failed int) {
	GinkgoHelper()
	var suites struct {
		Suites []struct {
			Cases []struct {
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	Expect(xml.Unmarshal([]byte(slurp(path)), &suites)).To(Succeed())
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			all++
			if c.Failure != nil {
				failed++
			}
		}
	}
	return all, failed
}

// spoiled are items of quickstart whose last words can be others without the recording becoming another conversation.
var spoiled = []string{"lists-two-files", "price-of-a-book", "total-copies", "books-by-an-author", "two-months-at-once", "notes-by-pattern", "ticks-off-a-task", "looks-at-a-cover"}

var said = regexp.MustCompile(`"content":"[^"]+"`)

// spoil makes the answers of those items wrong.
func spoil(dir string) {
	GinkgoHelper()
	for _, item := range spoiled {
		for _, model := range []string{"openai_gpt-4o-mini", "openai_gpt-4.1-mini"} {
			name := filepath.Join("fixtures", "cassettes", "quickstart", model, item+".yaml")
			lines, changed := strings.SplitAfter(slurp(dir, name), "\n"), false
			for i, line := range lines {
				if strings.HasPrefix(strings.TrimSpace(line), "data: ") {
					lines[i] = said.ReplaceAllString(line, `"content":"x"`)
					changed = changed || lines[i] != line
				}
			}
			Expect(changed).To(BeTrue(), name)
			write(dir, name, strings.Join(lines, ""))
		}
	}
}

// workflows are the example workflows.
var workflows = []string{"ci/github/evals.yml", "ci/github/shards.yml", "cmd/echoeval/internal/cli/initfiles/.github/workflows/evals.yml"}

var _ = Describe("what GitHub runs", func() {
	It("is read strictly, pinned, and puts nothing of a pull request into a shell", func() {
		var a action
		read("ci/github/action.yml", &a)
		Expect(a.Runs.Using).To(Equal("composite"))
		steps := a.Runs.Steps
		for _, name := range workflows {
			var w workflow
			read(name, &w)
			Expect(w.On.JSON()).NotTo(ContainSubstring("pull_request_target"), name)
			Expect(w.Permissions).To(HaveKeyWithValue("contents", "read"), name)
			Expect(w.Jobs).NotTo(BeEmpty(), name)
			for _, j := range w.Jobs {
				steps = append(steps, j.Steps...)
				for _, s := range j.Steps {
					if s.Uses != own {
						continue
					}
					for input := range s.With {
						Expect(a.Inputs).To(HaveKey(input), name)
					}
				}
			}
		}
		Expect(len(steps)).To(BeNumerically(">", 12))
		for _, s := range steps {
			Expect(faults(s)).To(BeEmpty(), "%+v", s)
		}
	})

	It("is what docs/ci.md shows", func() {
		var a action
		read("ci/github/action.yml", &a)
		doc := slurp(suite.Root(), "docs", "ci.md")
		for name := range a.Inputs {
			Expect(doc).To(MatchRegexp("(?m)^\\| .*`" + name + "`"))
		}
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(doc, -1)
		Expect(blocks).To(HaveLen(2))
		Expect(slurp(suite.Root(), "ci", "github", "evals.yml")).To(ContainSubstring(blocks[0][1]))
		Expect(slurp(suite.Root(), "ci", "gitlab", "example.gitlab-ci.yml")).To(ContainSubstring(blocks[1][1]))
	})

	DescribeTable("is refused where it is unsafe", func(s step, fault string) {
		Expect(faults(s)).To(ConsistOf(ContainSubstring(fault)))
	},
		Entry("a title in a script", step{Run: "echo ${{ github.event.pull_request.title }}"}, "text of a shell"),
		Entry("an input in a script", step{Run: "a\nb '${{inputs.datasets}}'"}, "text of a shell"),
		Entry("an expression over lines", step{Run: "echo ${{\n inputs.x }}"}, "text of a shell"),
		Entry("a tag", step{Uses: "actions/checkout@v4"}, "not pinned"),
		Entry("a branch", step{Uses: "echoeval/echoeval/ci/github@main"}, "not pinned"),
		Entry("nothing", step{}, "either"),
	)

	It("names every variable of its scripts, and no other", func() {
		var a action
		read("ci/github/action.yml", &a)
		script := slurp(suite.Root(), "ci", "shell", "evals.sh")
		header, _, _ := strings.Cut(script, "\nset -")
		documented := regexp.MustCompile(`(?m)^#   (ECHOEVAL|EVAL_[A-Z]+) `).FindAllStringSubmatch(header, -1)
		Expect(documented).NotTo(BeEmpty())
		for _, name := range documented {
			Expect(strings.Count(script, "${"+name[1]+":-")).To(BeNumerically(">", 0), name[1])
		}
		used := map[string]bool{}
		for _, m := range regexp.MustCompile(`\b(EVAL_[A-Z]+)\b`).FindAllStringSubmatch(script, -1) {
			used[m[1]] = true
		}
		Expect(used).To(HaveLen(len(documented) - 1)) // ECHOEVAL is the other
		for _, s := range a.Runs.Steps {
			if s.ID != "evals" {
				continue
			}
			for name := range used {
				Expect(s.Env).To(HaveKey(name))
			}
		}
	})
})

var _ = Describe("the action", func() {
	var a action
	BeforeEach(func() {
		a = action{}
		read("ci/github/action.yml", &a)
	})

	// pull plays a pull request to main.
	pull := func(dir string, inputs map[string]string) *runner {
		GinkgoHelper()
		r := newRunner(dir, "GITHUB_BASE_REF=main")
		r.values["github.event.pull_request.number"] = "17"
		all := map[string]string{"echoeval": binary}
		maps.Copy(all, inputs)
		r.act(a, all)
		return r
	}

	It("keeps runs and reports, and ends well where the gates hold", func() {
		dir := checkout("datasets/quickstart.yaml")
		r := pull(dir, nil)
		Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "verdict": 0}), "%s", r.said())
		Expect(r.ran).To(Equal([]string{"evaluate", "upload runs and reports", "verdict"}))
		Expect(r.stdout.String()).To(ContainSubstring("passed: 24 of 24"))
		Expect(r.stdout.String()).NotTo(ContainSubstring("::error"))
		Expect(r.summary()).To(ContainSubstring("quickstart"))
		Expect(r.output(a, "code")).To(Equal("0"))
		Expect(slurp(dir, r.output(a, "body"))).To(ContainSubstring("24 of 24"))
		kept := r.artifacts["eval-runs"]
		Expect(cases(filepath.Join(kept, "reports", "junit.xml"))).To(Equal(24))
		for _, name := range []string{"report.md", "report.html", "github.md"} {
			Expect(filepath.Join(kept, "reports", name)).To(BeARegularFile())
		}
		runs, err := filepath.Glob(filepath.Join(kept, "*-quickstart-*", "summary.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(runs).To(HaveLen(1))
	})

	It("fails its step, annotates and uploads where items fail", func() {
		r := pull(checkout(), map[string]string{"datasets": "datasets/quickstart.yaml\r\n\ndatasets/regression.yaml\n"})
		Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "verdict": 1}), "%s", r.said())
		Expect(r.ran).To(ContainElement("upload runs and reports"))
		Expect(r.stdout.String()).To(MatchRegexp(`(?m)^::error file=datasets/regression\.yaml,line=18,col=\d+,title=[^\n]*wrong-figure`))
		Expect(strings.Count(r.stdout.String(), "\n::error ")).To(Equal(3))
		Expect(r.summary()).To(And(ContainSubstring("wrong-figure"), ContainSubstring("quickstart")))
		Expect(r.output(a, "code")).To(Equal("1"))
		all, failed := cases(filepath.Join(r.artifacts["eval-runs"], "reports", "junit.xml"))
		Expect([]int{all, failed}).To(Equal([]int{28, 3}))
	})

	It("builds the echoeval of its own commit", func() {
		r := newRunner(checkout("datasets/quickstart.yaml"))
		// What a runner has: caches of its own. The build reads the module and nothing from the network.
		for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
			out, err := exec.Command("go", "env", name).Output()
			Expect(err).NotTo(HaveOccurred())
			r.env = append(r.env, name+"="+strings.TrimSpace(string(out)))
		}
		r.env = append(r.env, "GOPROXY=off", "GOFLAGS=-mod=vendor", "GOWORK=/nowhere/go.work")
		r.act(a, map[string]string{"artifact": ""})
		Expect(r.codes).To(Equal(map[string]int{"build echoeval": 0, "evaluate": 0, "verdict": 0}), "%s", r.said())
		Expect(r.ran).To(Equal([]string{"set up Go", "build echoeval", "evaluate", "verdict"}))
		Expect(filepath.Join(r.temp, "echoeval")).To(BeARegularFile())
	})

	Describe("on a regression", func() {
		var dir string
		BeforeEach(func() {
			dir = checkout("datasets/quickstart.yaml")
			edit(dir, "datasets/quickstart.yaml", `pass_rate: "== 1"`, "pass_rate: null\n  regression: {metric: pass_rate, max_drop: 0.02}")
			git(dir, "switch", "-q", "main")
			accept(dir, "quickstart")
			push(dir, "main")
			git(dir, "switch", "-q", "-C", "change")
			spoil(dir)
		})

		It("fails, against the baseline of the branch that the change goes to", func() {
			r := pull(dir, nil)
			Expect(r.codes).To(HaveKeyWithValue("verdict", 1), "%s", r.said())
			Expect(r.stdout.String()).To(MatchRegexp(`(?m)^::error [^\n]*regress`))
			Expect(slurp(dir, r.output(a, "body"))).To(And(ContainSubstring("regressed"), ContainSubstring("git:origin/main")))
		})

		It("fails too where the change accepts it itself, and says so", func() {
			accept(dir, "quickstart")
			push(dir, "change")
			echoeval(dir, "run", "--quiet", "--out", GinkgoT().TempDir()) // by its own baseline it is none
			r := pull(dir, nil)
			Expect(r.codes).To(HaveKeyWithValue("verdict", 1), "%s", r.said())
			Expect(slurp(dir, r.output(a, "body"))).To(ContainSubstring("edits its own baseline"))
		})

		It("says what to do in a checkout without history", func() {
			push(dir, "change")
			shallow := filepath.Join(GinkgoT().TempDir(), "clone")
			git(dir, "clone", "-q", "--depth", "1", "--branch", "change", "file://"+dir, shallow)
			r := pull(shallow, nil)
			Expect(r.codes).To(HaveKeyWithValue("verdict", 2), "%s", r.said())
			Expect(r.stderr.String()).To(ContainSubstring("fetch-depth: 0"))
		})
	})

	It("ends with 5 where nothing could be judged", func() {
		dir := checkout("datasets/quickstart.yaml")
		write(dir, "datasets/crash.sh", "#!/bin/sh\nexit 3\n")
		edit(dir, "datasets/quickstart.yaml", "- {cost: {max_usd: 0.01}, name: cheap}\n", "- command: [./crash.sh]\n")
		r := pull(dir, nil)
		Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "verdict": 5}), "%s", r.said())
		Expect(r.output(a, "code")).To(Equal("5"))
		Expect(r.artifacts).To(HaveKey("eval-runs"))
		Expect(r.stdout.String()).To(ContainSubstring("::error"))
	})

	DescribeTable("takes its inputs as data", func(inputs map[string]string, code int, message string) {
		dir := checkout("datasets/quickstart.yaml")
		r := pull(dir, inputs)
		Expect(r.codes).To(HaveKeyWithValue("verdict", code), "%s", r.said())
		Expect(r.said()).To(ContainSubstring(message))
		for _, place := range []string{dir, r.temp, suite.Root()} {
			Expect(filepath.Join(place, "pwned")).NotTo(BeAnExistingFile())
		}
	},
		Entry("a substitution", map[string]string{"datasets": "$(touch pwned)"}, 2, "dataset file $(touch pwned) does not exist"),
		Entry("a second command", map[string]string{"datasets": "datasets/quickstart.yaml; touch pwned"}, 2, "touch pwned"),
		Entry("quotes and backticks", map[string]string{"baseline": "git:`touch pwned`\"'"}, 2, "touch pwned"),
		Entry("a flag among the datasets", map[string]string{"datasets": "--out=pwned"}, 2, "--out=pwned"),
		Entry("a shard", map[string]string{"shard": "1/2; touch pwned"}, 2, "touch pwned"),
		Entry("a flag with blanks", map[string]string{"flags": "--item\nlists-two-files\n--set\ngates.pass_rate=\">= 0.5\""}, 0, "2 of 2"),
		Entry("a command", map[string]string{"command": "run; touch pwned"}, 2, "usage: ci/shell/evals.sh run"),
		Entry("a report", map[string]string{"formats": "junit $(touch pwned)"}, 2, "there is no report"),
		Entry("a folder", map[string]string{"out": "eval runs/$(touch pwned)"}, 0, "24 of 24"),
	)

	It("fails where the script itself does", func() {
		r := pull(checkout("datasets/quickstart.yaml"), map[string]string{"echoeval": "/nowhere/echoeval"})
		Expect(r.codes).To(HaveKeyWithValue("verdict", 127), "%s", r.said())
	})

	Describe("commenting", func() {
		// gh notes what it was told, and answers with $ANSWER.
		const gh = `printf '%s\n' "$@" -- >>"$RUNNER_TEMP/gh"
for word in "$@"; do
  case $word in body=@*) cp "${word#body=@}" "$RUNNER_TEMP/posted" ;; esac
done
[ -z "${GH_FAILS:-}" ] || { echo "403: no right to comment" >&2; exit 1; }
case " $* " in *" --jq "*) printf '%s' "${ANSWER:-}" ;; esac
[ "$GH_TOKEN" = t0ken ]
`
		commented := func(dir string, inputs map[string]string, env ...string) *runner {
			GinkgoHelper()
			r := newRunner(dir, append(env, "GITHUB_BASE_REF=main")...)
			r.tool("gh", gh)
			r.values["github.event.pull_request.number"] = "17"
			all := map[string]string{"echoeval": binary, "comment": "true", "baseline": "none"}
			maps.Copy(all, inputs)
			r.act(a, all)
			return r
		}

		It("writes one, and later writes over it", func() {
			dir := checkout("datasets/regression.yaml")
			r := commented(dir, nil)
			Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "comment": 0, "verdict": 1}), "%s", r.said())
			told := slurp(r.temp, "gh")
			Expect(told).To(ContainSubstring("--paginate\nrepos/ana/clinic/issues/17/comments\n--jq\n" + `.[] | select(.user.type == "Bot" and (.body | startswith("<!-- echoeval:evals -->"))) | .id`))
			Expect(told).To(ContainSubstring("--method\nPOST\nrepos/ana/clinic/issues/17/comments\n-F\nbody=@"))
			posted := slurp(r.temp, "posted")
			Expect(posted).To(And(HavePrefix("<!-- echoeval:evals -->\n"), ContainSubstring("wrong-figure")))
			Expect(strings.TrimPrefix(posted, "<!-- echoeval:evals -->\n")).To(Equal(slurp(dir, r.output(a, "body"))))

			r = commented(dir, map[string]string{"comment-key": "nightly"}, "ANSWER=4711\n4712\n")
			Expect(slurp(r.temp, "gh")).To(ContainSubstring("--method\nPATCH\nrepos/ana/clinic/issues/comments/4711\n"))
			Expect(slurp(r.temp, "posted")).To(HavePrefix("<!-- echoeval:nightly -->\n"))
		})

		It("warns where it may not, and fails nothing", func() {
			r := commented(checkout("datasets/quickstart.yaml"), nil, "GH_FAILS=1")
			Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "comment": 0, "verdict": 0}), "%s", r.said())
			Expect(r.stdout.String()).To(ContainSubstring("::warning title=echoeval::the comments of the pull request cannot be read\n"))
			r = commented(checkout("datasets/quickstart.yaml"), map[string]string{"datasets": "none.yaml"})
			Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "comment": 0, "verdict": 2}), "%s", r.said())
			Expect(r.stdout.String()).To(ContainSubstring("::warning title=echoeval::there is no text for a comment\n"))
			r = commented(checkout("datasets/quickstart.yaml"), map[string]string{"comment-key": `x"; touch pwned`})
			Expect(r.stdout.String()).To(ContainSubstring("::warning title=echoeval::comment-key takes letters"))
			Expect(filepath.Join(r.temp, "gh")).NotTo(BeAnExistingFile())
		})

		It("stays within what a comment holds", func() {
			dir := checkout("datasets/regression.yaml")
			items, folder := slurp(dir, "datasets/regression.yaml"), "fixtures/cassettes/regression/openai_gpt-4o-mini/"
			recorded := slurp(dir, folder+"wrong-figure.yaml")
			Expect(strings.Count(recorded, "item: wrong-figure\n")).To(Equal(1))
			for i := range 400 {
				id := fmt.Sprintf("wrong-figure-%03d", i)
				items += fmt.Sprintf("  - {id: %s, input: How many copies of Nine Winters do we have?, checks: [{contains: \"%s\"}]}\n", id, strings.Repeat("🩺 three ", 12))
				write(dir, folder+id+".yaml", strings.Replace(recorded, "item: wrong-figure\n", "item: "+id+"\n", 1))
			}
			write(dir, "datasets/regression.yaml", items)
			r := commented(dir, nil)
			Expect(r.codes).To(HaveKeyWithValue("verdict", 1), "%s", r.said())
			posted := slurp(r.temp, "posted")
			Expect(len(posted)).To(BeNumerically("<=", 65_536))
			Expect(len(posted)).To(BeNumerically(">", 20_000), "the text is not near the limit")
		})
	})

	Describe("on several machines", func() {
		// machines plays the workflow: each part, then the job that joins them.
		machines := func(dir string, skip string, inputs map[string]string) (parts []*runner, joined *runner) {
			GinkgoHelper()
			var w workflow
			read("ci/github/shards.yml", &w)
			downloads := GinkgoT().TempDir()
			for _, n := range w.Jobs["parts"].Strategy.Matrix["part"] {
				r := newRunner(dir, "GITHUB_BASE_REF=main")
				r.values["matrix.part"] = text(n)
				with := map[string]string{"echoeval": binary, "out": "eval-runs-" + text(n)} // one checkout plays all machines
				maps.Copy(with, inputs)
				s := w.Jobs["parts"].Steps
				for name, value := range s[len(s)-1].With {
					with[name] = r.eval(text(value))
				}
				r.act(a, with)
				parts = append(parts, r)
				for name, kept := range r.artifacts {
					if name != skip {
						Expect(name).To(HavePrefix("eval-part-"))
						Expect(exec.Command("cp", "-R", kept, filepath.Join(downloads, name)).Run()).To(Succeed())
					}
				}
			}
			Expect(parts).To(HaveLen(4))
			joined = newRunner(dir, "GITHUB_BASE_REF=main")
			joined.tool("gh", "cat >/dev/null </dev/null")
			joined.values["github.event.pull_request.number"] = "17"
			with := map[string]string{"echoeval": binary, "parts": downloads}
			s := w.Jobs["evals"].Steps
			for name, value := range s[len(s)-1].With {
				with[name] = joined.eval(text(value))
			}
			joined.act(a, with)
			return parts, joined
		}

		It("judges the joined run alone", func() {
			dir := checkout("datasets/quickstart.yaml", "datasets/regression.yaml")
			parts, joined := machines(dir, "", nil)
			for i, r := range parts {
				Expect(r.codes).To(Equal(map[string]int{"evaluate": 0, "verdict": 0}), "%s", r.said())
				Expect(r.artifacts).To(HaveKey("eval-part-" + strconv.Itoa(i+1)))
				Expect(r.summary()).To(BeEmpty())
			}
			Expect(joined.codes).To(Equal(map[string]int{"evaluate": 0, "comment": 0, "verdict": 1}), "%s", joined.said())
			Expect(joined.stdout.String()).To(And(ContainSubstring("passed: 24 of 24"), MatchRegexp(`(?m)^::error file=datasets/regression\.yaml,line=\d+,col=\d+,title=[^\n]*wrong-figure`)))
			Expect(joined.summary()).To(And(ContainSubstring("quickstart"), ContainSubstring("wrong-figure")))
			Expect(slurp(dir, joined.output(a, "body"))).To(And(ContainSubstring("24 of 24"), ContainSubstring("wrong-figure")))
			reports, err := filepath.Glob(filepath.Join(joined.artifacts["eval-runs"], "reports", "*", "junit.xml"))
			Expect(err).NotTo(HaveOccurred())
			Expect(reports).To(HaveLen(2))
		})

		It("has the reports of an undivided run", func() {
			dir := checkout("datasets/quickstart.yaml")
			_, joined := machines(dir, "", nil)
			Expect(joined.codes).To(HaveKeyWithValue("verdict", 0), "%s", joined.said())
			whole := pull(dir, map[string]string{"out": "whole", "baseline": "none"})
			Expect(slurp(joined.artifacts["eval-runs"], "reports", "junit.xml")).To(Equal(slurp(whole.artifacts["eval-runs"], "reports", "junit.xml")))
			Expect(cases(filepath.Join(whole.artifacts["eval-runs"], "reports", "junit.xml"))).To(Equal(24))
		})

		It("fails where a part is missing, and names it", func() {
			_, joined := machines(checkout("datasets/quickstart.yaml"), "eval-part-3", nil)
			Expect(joined.codes).To(HaveKeyWithValue("verdict", 2), "%s", joined.said())
			Expect(joined.stderr.String()).To(ContainSubstring("missing: shard 3/4"))
		})

		It("fails where nothing was uploaded", func() {
			r := pull(checkout("datasets/quickstart.yaml"), map[string]string{"command": "merge", "parts": "eval-parts"})
			Expect(r.codes).To(HaveKeyWithValue("verdict", 2), "%s", r.said())
			Expect(r.stderr.String()).To(ContainSubstring("eval-parts holds no part of a run"))
		})

		It("leaves to the joined run what a part could not judge", func() {
			dir := checkout("datasets/quickstart.yaml")
			edit(dir, "datasets/quickstart.yaml", "input: Which order files do we have?", "input: Which order files are there?")
			parts, joined := machines(dir, "", nil)
			for _, r := range parts {
				Expect(r.codes).To(HaveKeyWithValue("verdict", 0), "%s", r.said())
			}
			Expect(slices.ContainsFunc(parts, func(r *runner) bool {
				return strings.Contains(r.stderr.String(), "ended with code 4: the joined run decides")
			})).To(BeTrue())
			Expect(joined.codes).To(HaveKeyWithValue("verdict", 4), "%s", joined.said())
		})

		It("ends a part whose dataset is wrong", func() {
			dir := checkout("datasets/quickstart.yaml")
			edit(dir, "datasets/quickstart.yaml", "items:\n", "itms:\n")
			parts, _ := machines(dir, "", nil)
			Expect(parts[0].codes).To(HaveKeyWithValue("verdict", 2), "%s", parts[0].said())
		})
	})
})
