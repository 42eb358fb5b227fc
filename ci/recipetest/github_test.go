//go:build unix

package recipetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/strict"
)

// step is a step of an action or of a job. A key that GitHub does not know, or that nothing here looks at, is an error.
type step struct {
	Name  string         `yaml:"name"`
	ID    string         `yaml:"id"`
	If    string         `yaml:"if"`
	Uses  string         `yaml:"uses"`
	With  map[string]any `yaml:"with"`
	Shell string         `yaml:"shell"`
	Dir   string         `yaml:"working-directory"`
	Env   map[string]any `yaml:"env"`
	Run   string         `yaml:"run"`
}

type action struct {
	Name        string `yaml:"name,required"`
	Description string `yaml:"description,required"`
	Inputs      map[string]struct {
		Description string  `yaml:"description,required"`
		Default     *string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description,required"`
		Value       string `yaml:"value,required"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using,required"`
		Steps []step `yaml:"steps,required"`
	} `yaml:"runs,required"`
}

type job struct {
	Needs    string `yaml:"needs"`
	If       string `yaml:"if"`
	RunsOn   string `yaml:"runs-on,required"`
	Timeout  int    `yaml:"timeout-minutes"`
	Strategy struct {
		FailFast *bool            `yaml:"fail-fast"`
		Matrix   map[string][]any `yaml:"matrix"`
	} `yaml:"strategy"`
	Steps []step `yaml:"steps,required"`
}

type workflow struct {
	Name        string            `yaml:"name,required"`
	On          strict.Node       `yaml:"on,required"`
	Permissions map[string]string `yaml:"permissions,required"`
	Jobs        map[string]job    `yaml:"jobs,required"`
}

// read decodes a file of the project strictly.
func read(name string, into any) {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(suite.Root(), filepath.FromSlash(name)))
	Expect(err).NotTo(HaveOccurred())
	node, err := strict.Parse(name, data)
	Expect(err).NotTo(HaveOccurred())
	var p strict.Problems
	strict.Decode(node, into, &p)
	Expect(p.Err()).NotTo(HaveOccurred())
}

var (
	expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)
	pinned     = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
)

const own = "echoeval/echoeval/ci/github@COMMIT"

// faults says what is unsafe about a step.
func faults(s step) []string {
	var out []string
	if expression.MatchString(s.Run) || strings.Contains(s.Run, "${{") {
		out = append(out, "an expression becomes text of a shell")
	}
	if s.Uses != "" && s.Uses != own && !pinned.MatchString(s.Uses) {
		out = append(out, s.Uses+" is not pinned by its commit")
	}
	if (s.Uses == "") == (s.Run == "") {
		out = append(out, "a step either runs or uses something")
	}
	return out
}

// runner plays the host for one job.
type runner struct {
	dir, temp string
	// values are what expressions stand for.
	values map[string]string
	env    []string
	// artifacts are the folders that were uploaded, by name.
	artifacts map[string]string
	// stdout and stderr of all steps, and codes of those that ran, by name.
	stdout, stderr bytes.Buffer
	codes          map[string]int
	ran            []string
	failed         bool
}

// newRunner plays a job in a checkout.
func newRunner(dir string, env ...string) *runner {
	GinkgoHelper()
	temp := GinkgoT().TempDir()
	r := &runner{dir: dir, temp: temp, values: map[string]string{"github.token": "t0ken"}, artifacts: map[string]string{}, codes: map[string]int{}}
	r.env = append([]string{
		"PATH=" + filepath.Join(temp, "bin") + ":" + os.Getenv("PATH"), "HOME=" + GinkgoT().TempDir(), "TMPDIR=" + temp, "RUNNER_TEMP=" + temp,
		"CI=true", "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + dir, "GITHUB_REPOSITORY=ana/clinic", "GITHUB_STEP_SUMMARY=" + filepath.Join(temp, "summary.md"),
		"GITHUB_ACTION_PATH=" + filepath.Join(suite.Root(), "ci", "github"), "GIT_CONFIG_GLOBAL=/dev/null",
	}, env...)
	return r
}

// eval puts in the values of expressions. One that nobody has set fails the spec.
func (r *runner) eval(text string) string {
	GinkgoHelper()
	return expression.ReplaceAllStringFunc(text, func(m string) string {
		GinkgoHelper()
		name := expression.FindStringSubmatch(m)[1]
		value, ok := r.values[name]
		Expect(ok || strings.HasPrefix(name, "steps.")).To(BeTrue(), "no value for %s", name) // an output that no step has written is empty
		return value
	})
}

var comparison = regexp.MustCompile(`^([\w.-]+) (==|!=) '([^']*)'$`)

// holds evaluates the condition of a step.
func (r *runner) holds(condition string) bool {
	GinkgoHelper()
	if r.failed && !strings.Contains(condition, "always()") {
		return false
	}
	if condition == "" {
		return true
	}
	for _, term := range strings.Split(condition, " && ") {
		if term == "always()" {
			continue
		}
		m := comparison.FindStringSubmatch(term)
		Expect(m).NotTo(BeNil(), "a condition of a form that is not understood: %s", term)
		if equal := r.eval("${{ "+m[1]+" }}") == m[3]; equal != (m[2] == "==") {
			return false
		}
	}
	return true
}

// act runs the action with inputs.
func (r *runner) act(a action, inputs map[string]string) {
	GinkgoHelper()
	for name, input := range a.Inputs {
		if input.Default != nil {
			r.values["inputs."+name] = r.eval(*input.Default)
		}
	}
	for name, value := range inputs {
		Expect(a.Inputs).To(HaveKey(name))
		r.values["inputs."+name] = value
	}
	if _, ok := r.values["github.event.pull_request.number"]; !ok {
		r.values["github.event.pull_request.number"] = ""
	}
	for _, s := range a.Runs.Steps {
		if r.holds(s.If) {
			r.ran = append(r.ran, s.Name)
			r.step(s)
		}
	}
}

func (r *runner) step(s step) {
	GinkgoHelper()
	name, _, _ := strings.Cut(s.Uses, "@")
	switch name {
	case "":
		r.script(s)
	case "actions/setup-go":
	case "actions/upload-artifact":
		path := filepath.Join(r.dir, r.eval(text(s.With["path"])))
		artifact := r.eval(text(s.With["name"]))
		Expect(r.artifacts).NotTo(HaveKey(artifact))
		for part := range strings.SplitSeq(path, string(filepath.Separator)) {
			Expect(part).NotTo(HavePrefix(".echoeval"), "hidden folders are not uploaded")
		}
		if _, err := os.Stat(path); err != nil {
			Expect(text(s.With["if-no-files-found"])).To(Equal("warn"))
			return
		}
		kept := GinkgoT().TempDir()
		cp := exec.Command("cp", "-R", path+"/.", kept)
		out, err := cp.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		r.artifacts[artifact] = kept
	default:
		Fail("nobody plays " + s.Uses)
	}
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// script runs a step as GitHub runs one of the shell bash.
func (r *runner) script(s step) {
	GinkgoHelper()
	Expect(s.Shell).To(Equal("bash"), "a composite action names the shell of each script")
	file := filepath.Join(r.temp, "step-"+strconv.Itoa(len(r.ran))+".sh")
	outputs := file + ".out"
	Expect(os.WriteFile(file, []byte(s.Run), 0o644)).To(Succeed())
	Expect(os.WriteFile(outputs, nil, 0o644)).To(Succeed())
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	cmd.Dir = filepath.Join(r.dir, r.eval(s.Dir))
	cmd.Env = append(slices.Clone(r.env), "GITHUB_OUTPUT="+outputs)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		cmd.Env = append(cmd.Env, name+"="+r.eval(text(s.Env[name])))
	}
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
		r.codes[s.Name] = exit.ExitCode()
		r.failed = true
	} else {
		r.codes[s.Name] = 0
	}
	data, err := os.ReadFile(outputs)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		Expect(ok).To(BeTrue(), "an output of a form that GitHub refuses: %q", line)
		r.values["steps."+s.ID+".outputs."+name] = value
	}
}

// said is everything that the steps wrote, for failures.
func (r *runner) said() string { return r.stdout.String() + r.stderr.String() }

// summary is the step's summary.
func (r *runner) summary() string {
	data, err := os.ReadFile(filepath.Join(r.temp, "summary.md"))
	if err != nil {
		return ""
	}
	return string(data)
}

// output is an output of the action.
func (r *runner) output(a action, name string) string {
	GinkgoHelper()
	Expect(a.Outputs).To(HaveKey(name))
	return r.eval(a.Outputs[name].Value)
}

// tool puts a program on the path of the job.
func (r *runner) tool(name, script string) {
	GinkgoHelper()
	dir := filepath.Join(r.temp, "bin")
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, name), []byte("#!/usr/bin/env bash\nset -eu\n"+script), 0o755)).To(Succeed())
}
