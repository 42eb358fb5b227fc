//go:build unix

package recipetest

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/strict"
)

// gitlabJob is a job as it stands in a file; what it extends is not in it.
type gitlabJob struct {
	Extends   string            `yaml:"extends"`
	Stage     string            `yaml:"stage"`
	Image     string            `yaml:"image"`
	Parallel  int               `yaml:"parallel"`
	Needs     []string          `yaml:"needs"`
	When      string            `yaml:"when"`
	Variables map[string]string `yaml:"variables"`
	Before    []string          `yaml:"before_script"`
	Script    []string          `yaml:"script"`
	Artifacts struct {
		When     string           `yaml:"when"`
		ExposeAs *string          `yaml:"expose_as"`
		Paths    []string         `yaml:"paths"`
		Reports  *gitlabArtifacts `yaml:"reports"`
	} `yaml:"artifacts"`
}

type gitlabArtifacts struct {
	JUnit string `yaml:"junit,required"`
}

// gitlabFile is a file of jobs: the keys that are no jobs stand apart.
type gitlabFile struct {
	jobs      map[string]gitlabJob
	variables map[string]string
}

func readGitLab(name string) gitlabFile {
	GinkgoHelper()
	var all map[string]strict.Node
	read(name, &all)
	f := gitlabFile{jobs: map[string]gitlabJob{}}
	var p strict.Problems
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch key {
		case "include":
			var include []struct {
				Local string `yaml:"local,required"`
			}
			strict.Decode(all[key], &include, &p)
		case "workflow":
			var workflow struct {
				Rules []struct {
					If string `yaml:"if,required"`
				} `yaml:"rules,required"`
			}
			strict.Decode(all[key], &workflow, &p)
		case "variables":
			strict.Decode(all[key], &f.variables, &p)
		default:
			var j gitlabJob
			strict.Decode(all[key], &j, &p)
			f.jobs[key] = j
		}
	}
	Expect(p.Err()).NotTo(HaveOccurred())
	return f
}

// resolved is a job with what it extends: mappings merge, other values replace.
func resolved(jobs map[string]gitlabJob, name string) gitlabJob {
	GinkgoHelper()
	Expect(jobs).To(HaveKey(name))
	j := jobs[name]
	if j.Extends == "" {
		return j
	}
	under := resolved(jobs, j.Extends)
	variables := maps.Clone(under.Variables)
	if variables == nil {
		variables = map[string]string{}
	}
	maps.Copy(variables, j.Variables)
	j.Variables = variables
	if j.Before == nil {
		j.Before = under.Before
	}
	if j.Script == nil {
		j.Script = under.Script
	}
	if j.Artifacts.Paths == nil {
		j.Artifacts = under.Artifacts
	}
	if j.Image == "" {
		j.Image = under.Image
	}
	return j
}

// pipeline plays GitLab: jobs of the example over the template.
type pipeline struct {
	jobs      map[string]gitlabJob
	variables map[string]string
	dir, temp string
}

func newPipeline(dir string) *pipeline {
	GinkgoHelper()
	template, example := readGitLab("ci/gitlab/evals.yml"), readGitLab("ci/gitlab/example.gitlab-ci.yml")
	p := &pipeline{jobs: maps.Clone(template.jobs), variables: maps.Clone(example.variables), dir: dir, temp: GinkgoT().TempDir()}
	maps.Copy(p.jobs, example.jobs)
	p.variables["ECHOEVAL_VERSION"] = "v0.9.1-0.20260102030405-0123456789ab"
	// What the image's go would do with the network, it does with the command and the scripts that are here.
	write(p.temp, "bin/go", `#!/usr/bin/env bash
set -eu
printf '%s\n' "$*" >>"$GO_TOLD"
case $1 in
install) cp "$BINARY" "$(dirname "$0")/echoeval" ;;
list) printf '%s\n' "$SOURCE" ;;
*) exit 9 ;;
esac
`)
	return p
}

// run runs a job and gives its code and what it said.
func (p *pipeline) run(name string, env ...string) (int, string) {
	GinkgoHelper()
	j := resolved(p.jobs, name)
	Expect(j.Script).NotTo(BeEmpty())
	Expect(j.Image).To(MatchRegexp(`^[a-z]+:\d+\.\d+\.\d+$`))
	known := append([]string{
		"PATH=" + filepath.Join(p.temp, "bin") + ":" + os.Getenv("PATH"), "HOME=" + GinkgoT().TempDir(), "TMPDIR=" + p.temp, "GIT_CONFIG_GLOBAL=/dev/null",
		"CI=true", "GITLAB_CI=true", "CI_PROJECT_DIR=" + p.dir, "BINARY=" + binary, "SOURCE=" + suite.Root(), "GO_TOLD=" + filepath.Join(p.temp, "told"),
	}, env...)
	lookup := func(name string) string {
		for _, entry := range slices.Backward(known) {
			if key, value, _ := strings.Cut(entry, "="); key == name {
				return value
			}
		}
		return ""
	}
	for _, variables := range []map[string]string{p.variables, j.Variables} {
		for _, key := range slices.Sorted(maps.Keys(variables)) {
			known = append(known, key+"="+os.Expand(variables[key], lookup)) // the host expands variables in variables
		}
	}
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", strings.Join(append(slices.Clone(j.Before), j.Script...), "\n"))
	cmd.Dir, cmd.Env = p.dir, known
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	Expect(err).NotTo(HaveOccurred())
	return 0, string(out)
}

var _ = Describe("what GitLab runs", func() {
	It("builds the version that is named, and keeps reports where the host looks for them", func() {
		dir := checkout("datasets/regression.yaml")
		p := newPipeline(dir)
		delete(p.variables, "EVAL_DATASETS")
		code, out := p.run(".echoeval")
		Expect(code).To(Equal(1), "%s", out)
		Expect(slurp(p.temp, "told")).To(Equal("install github.com/echoeval/echoeval/cmd/echoeval@v0.9.1-0.20260102030405-0123456789ab\nlist -m -f {{.Dir}} github.com/echoeval/echoeval@v0.9.1-0.20260102030405-0123456789ab\n"))
		j := resolved(p.jobs, ".echoeval")
		Expect(j.Artifacts.When).To(Equal("always"))
		all, failed := cases(filepath.Join(dir, j.Artifacts.Reports.JUnit))
		Expect([]int{all, failed}).To(Equal([]int{4, 3}))
		for _, path := range j.Artifacts.Paths {
			Expect(filepath.Join(dir, path)).To(BeADirectory())
		}
		Expect(out).NotTo(ContainSubstring("::error"))
		Expect(filepath.Join(dir, "eval-runs", "reports", "github.md")).NotTo(BeAnExistingFile())
	})

	It("wants a version", func() {
		p := newPipeline(checkout("datasets/quickstart.yaml"))
		p.variables["ECHOEVAL_VERSION"] = ""
		code, out := p.run(".echoeval")
		Expect(code).NotTo(BeZero())
		Expect(out).To(ContainSubstring("ECHOEVAL_VERSION: names the version of echoeval to build"))
	})

	It("compares a merge request with the baseline where it parted", func() {
		dir := checkout("datasets/quickstart.yaml")
		edit(dir, "datasets/quickstart.yaml", `pass_rate: "== 1"`, "pass_rate: null\n  regression: {metric: pass_rate, max_drop: 0.02}")
		git(dir, "switch", "-q", "main")
		accept(dir, "quickstart")
		push(dir, "main")
		base, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
		Expect(err).NotTo(HaveOccurred())
		git(dir, "switch", "-q", "-C", "change")
		spoil(dir)
		accept(dir, "quickstart") // which does not help
		push(dir, "change")
		p := newPipeline(dir)
		code, out := p.run(".echoeval", "CI_MERGE_REQUEST_DIFF_BASE_SHA="+strings.TrimSpace(string(base)))
		Expect(code).To(Equal(1), "%s", out)
		Expect(out).To(And(ContainSubstring("regressed"), ContainSubstring("git:"+strings.TrimSpace(string(base)))))
		code, out = p.run(".echoeval") // in a pipeline of a branch the file of the tree counts
		Expect(code).To(Equal(0), "%s", out)
	})

	It("joins the parts of several machines", func() {
		dir := checkout("datasets/quickstart.yaml")
		p := newPipeline(dir)
		parts := p.jobs["parts"]
		Expect(parts.Parallel).To(Equal(4))
		Expect(p.jobs["evals"].Needs).To(Equal([]string{"parts"}))
		Expect(resolved(p.jobs, "parts").Artifacts.Reports).To(BeNil())
		Expect(resolved(p.jobs, "parts").Artifacts.Paths).To(Equal([]string{"eval-parts"}))
		for i := range parts.Parallel {
			code, out := p.run("parts", "CI_NODE_INDEX="+strconv.Itoa(i+1), "CI_NODE_TOTAL="+strconv.Itoa(parts.Parallel))
			Expect(code).To(BeZero(), "%s", out)
			Expect(out).To(ContainSubstring("part " + strconv.Itoa(i+1) + "/4 is judged by error_rate alone"))
			Expect(filepath.Join(dir, "eval-parts", strconv.Itoa(i+1))).To(BeADirectory())
		}
		code, out := p.run("evals")
		Expect(code).To(BeZero(), "%s", out)
		Expect(out).To(ContainSubstring("passed: 24 of 24"))
		Expect(cases(filepath.Join(dir, "eval-runs", "reports", "junit.xml"))).To(Equal(24))
	})

	It("takes its variables as data", func() {
		dir := checkout("datasets/quickstart.yaml")
		p := newPipeline(dir)
		p.variables["EVAL_DATASETS"] = "$(touch pwned)\n; touch pwned"
		code, out := p.run(".echoeval", "CI_MERGE_REQUEST_DIFF_BASE_SHA=`touch pwned`")
		Expect(code).To(Equal(2), "%s", out)
		Expect(filepath.Join(dir, "pwned")).NotTo(BeAnExistingFile())
	})
})

var _ = Describe("the script", func() {
	It("is told how it is used", func() {
		for _, words := range [][]string{{}, {"merge"}, {"run", "x"}, {"help"}} {
			out, err := exec.Command(filepath.Join(suite.Root(), "ci", "shell", "evals.sh"), words...).CombinedOutput()
			var exit *exec.ExitError
			Expect(errors.As(err, &exit)).To(BeTrue())
			Expect(exit.ExitCode()).To(Equal(2))
			Expect(string(out)).To(And(HavePrefix("Runs evaluations in CI"), ContainSubstring("\nusage: ci/shell/evals.sh run\n"), ContainSubstring("EVAL_BASELINE")))
		}
	})

	It("runs without a host", func() {
		dir := checkout("datasets/quickstart.yaml")
		cmd := exec.Command(filepath.Join(suite.Root(), "ci", "shell", "evals.sh"), "run")
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "ECHOEVAL=" + binary, "EVAL_FORMATS=json csv"}
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(string(out)).To(ContainSubstring("passed: 24 of 24"))
		for _, name := range []string{"report.json", "results.csv"} {
			Expect(filepath.Join(dir, "eval-runs", "reports", name)).To(BeARegularFile())
		}
	})

	DescribeTable("gives the code that counts", func(codes string, want string) {
		script := slurp(suite.Root(), "ci", "shell", "evals.sh")
		_, rest, _ := strings.Cut(script, "\nworse() {")
		body, _, ok := strings.Cut(rest, "\n}\n")
		Expect(ok).To(BeTrue())
		out, err := exec.Command("bash", "-euc", "worse() {"+body+"\n}\nworse "+codes).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(string(out)).To(Equal(want))
	},
		Entry("of 0 and 1", "0 1", "1"),
		Entry("of 5 and 1", "5 1", "1"),
		Entry("of 1 and 4", "1 4", "4"),
		Entry("of 4 and 3", "4 3", "3"),
		Entry("of 2 and 130", "2 130", "130"),
		Entry("of 6 and 0", "6 0", "6"),
		Entry("of 6 and 5", "6 5", "5"),
		Entry("of 0 and 0", "0 0", "0"),
		Entry("of a signal and 130", "137 130", "137"),
		Entry("of nothing and what cannot be found", "0 127", "127"),
	)
})
