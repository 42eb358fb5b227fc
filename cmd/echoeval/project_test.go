//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// recordedAt is the time at which the committed cassettes begin.
const recordedAt = "2026-01-05T09:00:00Z"

// patience bounds every wait for the command.
const patience = 60 * time.Second

// project is a folder with a root mark, and a machine of its own: home, temporary folder, environment.
type project struct {
	binary          string
	dir, home, temp string
	env             []string // beside HOME, PATH and TMPDIR
}

// emptyProject makes a project without any files.
func emptyProject() *project {
	GinkgoHelper()
	base, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	p := &project{binary: binary, dir: filepath.Join(base, "project"), home: filepath.Join(base, "home"), temp: filepath.Join(base, "temp")}
	for _, dir := range []string{filepath.Join(p.dir, ".git"), p.home, p.temp} {
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	}
	return p
}

// exampleProject makes a project with the example datasets and their committed cassettes.
func exampleProject() *project {
	GinkgoHelper()
	p := emptyProject()
	for _, dir := range []string{"datasets", "fixtures"} {
		Expect(os.CopyFS(p.path(dir), os.DirFS(filepath.Join(suite.Root(), dir)))).To(Succeed())
	}
	return p
}

func (p *project) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *project) write(name, text string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(p.path(name)), 0o755)).To(Succeed())
	Expect(os.WriteFile(p.path(name), []byte(text), 0o644)).To(Succeed())
}

func (p *project) read(name string) string {
	GinkgoHelper()
	data, err := os.ReadFile(p.path(name))
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// edit replaces every occurrence of a text that must be there.
func (p *project) edit(name, before, after string) {
	GinkgoHelper()
	text := p.read(name)
	Expect(text).To(ContainSubstring(before), "%s has nothing to edit", name)
	p.write(name, strings.ReplaceAll(text, before, after))
}

func (p *project) remove(name string) {
	GinkgoHelper()
	Expect(os.Remove(p.path(name))).To(Succeed())
}

// files returns the files below a folder of the project with their contents, by path.
func (p *project) files(name string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	root := p.path(name)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(root, path)
		out[filepath.ToSlash(rel)] = string(data)
		return errors.Join(err, relErr)
	})
	if !errors.Is(err, fs.ErrNotExist) {
		Expect(err).NotTo(HaveOccurred())
	}
	return out
}

// expectSameFiles compares files by name and contents, and names the first that differs.
func expectSameFiles(got, want map[string]string) {
	GinkgoHelper()
	Expect(want).NotTo(BeEmpty())
	Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		Expect(got[name]).To(Equal(want[name]), name)
	}
}

func (p *project) environ() []string {
	return append([]string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.temp}, p.env...)
}

// command prepares the command in the project's folder.
func (p *project) command(args ...string) *exec.Cmd {
	return p.program(p.binary, args...)
}

func (p *project) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.dir, p.environ()
	return cmd
}

// outcome is what a finished command leaves behind.
type outcome struct {
	code           int // -1 where a signal ended it
	signal         syscall.Signal
	stdout, stderr string
}

func (o outcome) all() string { return o.stdout + o.stderr }

// String is what a failed assertion shows.
func (o outcome) String() string {
	return "stdout:\n" + o.stdout + "\nstderr:\n" + o.stderr
}

// run runs the command to its end. Whatever it does, it must not crash, race, hang or leave temporary files.
func (p *project) run(args ...string) outcome {
	GinkgoHelper()
	return p.await(p.start(p.command(args...)))
}

// peak is the most memory that a command holds, in KiB. It is measured by a small process that starts it: a process counts as its own what the one that started it held, and the tests hold much.
func (p *project) peak(args ...string) int {
	GinkgoHelper()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		Skip("no python3: memory is not measured")
	}
	const measure = "import resource, subprocess, sys; subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
	out, err := p.program(strings.TrimSpace(string(python)), append([]string{"-c", measure, p.binary}, args...)...).Output()
	Expect(err).NotTo(HaveOccurred())
	kib, err := strconv.Atoi(strings.TrimSpace(string(out)))
	Expect(err).NotTo(HaveOccurred())
	Expect(kib).To(BeNumerically(">", 5<<10), "the start of the command alone takes more")
	return kib
}

// process is a command under way.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan error
}

func (p *project) start(cmd *exec.Cmd) *process {
	GinkgoHelper()
	s := &process{cmd: cmd, ended: make(chan error, 1)}
	if cmd.Stdout == nil {
		cmd.Stdout = &s.stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &s.stderr
	}
	cmd.WaitDelay = 10 * time.Second
	Expect(cmd.Start()).To(Succeed())
	go func() { s.ended <- cmd.Wait() }()
	return s
}

func (p *project) await(s *process) outcome {
	GinkgoHelper()
	o := p.end(s)
	Expect(o.signal).To(BeZero(), "%v was ended by a signal\n%s", s.cmd.Args, o)
	left, err := os.ReadDir(p.temp)
	Expect(err).NotTo(HaveOccurred())
	Expect(left).To(BeEmpty(), "%v left temporary files", s.cmd.Args)
	return o
}

// end waits for a process that may have been killed.
func (p *project) end(s *process) outcome {
	GinkgoHelper()
	select {
	case err := <-s.ended:
		s.ended <- err // whoever waits again learns it too
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			Expect(err).NotTo(HaveOccurred(), "%v", s.cmd.Args)
		}
	case <-time.After(patience):
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.ended
		Fail("the command hangs: " + strings.Join(s.cmd.Args, " ") + "\n" + s.stdout.String() + s.stderr.String())
	}
	state := s.cmd.ProcessState
	o := outcome{code: state.ExitCode(), stdout: s.stdout.String(), stderr: s.stderr.String()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		o.signal = status.Signal()
	}
	for _, hint := range hints(o) {
		Expect(isCommand(hint)).To(BeTrue(), "the hint names a command that there is not: %s", hint)
	}
	for _, sign := range []string{"panic:", "goroutine 1 ", "fatal error:", "DATA RACE"} {
		Expect(o.all()).NotTo(ContainSubstring(sign), "%v", s.cmd.Args)
	}
	return o
}

// succeed runs the command and expects code 0.
func (p *project) succeed(args ...string) outcome {
	GinkgoHelper()
	return p.expect(0, args...)
}

// expect runs the command and expects a code.
func (p *project) expect(code int, args ...string) outcome {
	GinkgoHelper()
	o := p.run(args...)
	Expect(o.code).To(Equal(code), "%v\n%s", args, o)
	return o
}

// result is a line of results.jsonl as the format says, read without the code that writes it.
type result struct {
	Item     string `json:"item"`
	ItemHash string `json:"item_hash"`
	// ChecksHash says how the item is judged, OverheadUSD what its judges cost.
	ChecksHash  string   `json:"checks_hash"`
	OverheadUSD float64  `json:"overhead_usd"`
	Index       int      `json:"index"`
	Provider    string   `json:"provider"`
	Repeat      int      `json:"repeat"`
	Status      string   `json:"status"`
	Cause       *string  `json:"cause"`
	Output      *string  `json:"output"`
	Checks      []check  `json:"checks"`
	Error       *problem `json:"error"`
	Cassette    *struct {
		File  string `json:"file"`
		State string `json:"state"`
		Drift []struct {
			Class, Path, Old, New string
			Request               int
		} `json:"drift"`
	} `json:"cassette"`
	Invariants struct {
		Violations []struct{ Name string } `json:"violations"`
	} `json:"invariants"`
	LatencyMS *int     `json:"latency_ms"`
	CostUSD   *float64 `json:"cost_usd"`
	Retries   int      `json:"retries"`
	Steps     int      `json:"steps"`
	ToolCalls int      `json:"tool_calls"`
	Trace     *struct {
		Segment, Offset, Length int
	} `json:"trace"`
}

type check struct {
	Name, Status, At string
	Reason           string
}

type problem struct {
	Kind       string
	HTTPStatus *int `json:"http_status"`
	Code, Hint *string
	Message    string
	Retries    int
}

// verdict gives status and cause: "fail/check", "pass".
func (r result) verdict() string {
	if r.Cause == nil {
		return r.Status
	}
	return r.Status + "/" + *r.Cause
}

type summary struct {
	Complete bool           `json:"complete"`
	Counts   map[string]int `json:"counts"`
	Verdict  struct {
		Code    int
		Text    string
		Reasons []struct {
			Code       int
			Kind, Text string
			Hint       *string
		}
	} `json:"verdict"`
	Cassettes struct {
		Fresh, Stale, Missing, Orphaned int
		ByClass                         map[string]int `json:"by_class"`
	} `json:"cassettes"`
	Warnings []struct{ Code, Text string } `json:"warnings"`
}

// runs lists the folders of the runs, oldest first.
func (p *project) runs() []string {
	GinkgoHelper()
	found, err := filepath.Glob(p.path(".echoeval/runs/*/manifest.json"))
	Expect(err).NotTo(HaveOccurred())
	started := map[string]string{}
	for _, file := range found {
		var manifest struct{ Started string }
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(data, &manifest)).To(Succeed())
		rel, err := filepath.Rel(p.dir, filepath.Dir(file))
		Expect(err).NotTo(HaveOccurred())
		if !slices.Contains(slices.Collect(maps.Keys(started)), rel) && !strings.HasPrefix(filepath.Base(rel), "latest") {
			started[rel] = manifest.Started
		}
	}
	return slices.SortedFunc(maps.Keys(started), func(a, b string) int { return strings.Compare(started[a]+a, started[b]+b) })
}

// last is the folder of the newest run, relative to the project.
func (p *project) last() string {
	GinkgoHelper()
	runs := p.runs()
	Expect(runs).NotTo(BeEmpty(), "no run was made")
	return runs[len(runs)-1]
}

// results reads results.jsonl of a run.
func (p *project) results(run string) []result {
	GinkgoHelper()
	var out []result
	lines := bufio.NewScanner(strings.NewReader(p.read(run + "/results.jsonl")))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r result
		Expect(json.Unmarshal(lines.Bytes(), &r)).To(Succeed())
		out = append(out, r)
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	Expect(out).NotTo(BeEmpty())
	return out
}

// verdicts maps "item provider@repeat" of the newest run to status and cause.
func (p *project) verdicts() map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for _, r := range p.results(p.last()) {
		key := r.Item + " " + r.Provider
		if r.Repeat > 1 {
			key += "@" + string(rune('0'+r.Repeat))
		}
		Expect(out).NotTo(HaveKey(key))
		out[key] = r.verdict()
	}
	return out
}

// count tells how many lines of the newest run have each status and cause.
func (p *project) count() map[string]int {
	GinkgoHelper()
	out := map[string]int{}
	for _, v := range p.verdicts() {
		out[v]++
	}
	return out
}

// only returns the only line of the newest run.
func (p *project) only() result {
	GinkgoHelper()
	lines := p.results(p.last())
	Expect(lines).To(HaveLen(1))
	return lines[0]
}

func (p *project) summary(run string) summary {
	GinkgoHelper()
	var s summary
	Expect(json.Unmarshal([]byte(p.read(run+"/summary.json")), &s)).To(Succeed())
	return s
}

// identity is a hash of everything of a run that two replays have in common.
func (p *project) identity(run string) string {
	GinkgoHelper()
	h := sha256.New()
	files := p.files(run)
	Expect(files).To(HaveKey("results.jsonl"))
	Expect(files).To(HaveKey("summary.json"))
	Expect(files).To(HaveKey("traces/001.jsonl"))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "manifest.json" {
			Expect(files[name]).NotTo(BeEmpty(), "%s is empty", name)
			_, _ = io.WriteString(h, name+"\x00"+files[name]+"\x00")
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hintPattern finds commands of echoeval in hints.
var hintPattern = regexp.MustCompile("(?m)^ *hint: (echoeval .*)$")

// hints are the commands that an output names, each once.
func hints(o outcome) []string {
	var out []string
	for _, m := range hintPattern.FindAllStringSubmatch(o.stdout+"\n"+o.stderr, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// helped remembers what `help` says of commands.
var helped = map[string]string{}

// isCommand says whether the first words of a hint name a command that there is.
func isCommand(hint string) bool {
	GinkgoHelper()
	words := strings.Fields(hint)[1:]
	var names []string
	for _, word := range words[:min(len(words), 2)] {
		if strings.HasPrefix(word, "-") {
			break
		}
		names = append(names, word)
		name := strings.Join(names, " ")
		if _, ok := helped[name]; !ok {
			out, err := exec.Command(binary, append([]string{"help"}, names...)...).Output()
			Expect(err).NotTo(HaveOccurred(), hint)
			helped[name] = string(out)
		}
		if !strings.Contains(helped[name], "\n  echoeval "+name+" ") {
			return false
		}
		if !strings.Contains(helped[name], "echoeval "+name+" [command]") {
			return true // what follows is no command but its argument
		}
	}
	return true
}

// obey types a command that was printed, as a shell takes it apart, with further flags.
func (p *project) obey(hint string, flags ...string) outcome {
	GinkgoHelper()
	rest, ok := strings.CutPrefix(hint, "echoeval ")
	Expect(ok).To(BeTrue(), "no command of echoeval: %s", hint)
	script := `binary=$1; shift; set -- "$@"; eval "exec \"\$binary\" $ECHOEVAL_HINT \"\$@\""`
	cmd := p.program("/bin/sh", append([]string{"-c", script, "sh", p.binary}, flags...)...)
	cmd.Env = append(cmd.Env, "ECHOEVAL_HINT="+rest)
	return p.await(p.start(cmd))
}

// emulator is a running `echoeval emulate`.
type emulator struct {
	address string
	process *process
}

// upstream is the flag that makes a run dial the emulator.
func (e emulator) upstream() string { return "--upstream=openai=http://" + e.address + "/v1" }

// emulate serves a script, a file of the project, until the spec ends.
func (p *project) emulate(script string, flags ...string) emulator {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "address")
	s := p.start(p.command(append([]string{"emulate", "--script", script, "--listen", "127.0.0.1:0", "--address-file", file}, flags...)...))
	e := emulator{process: s}
	DeferCleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		o := p.end(s)
		Expect(o.code).To(BeElementOf(0, 130), "%s", o)
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	Eventually(ctx, func() (string, error) {
		data, err := os.ReadFile(file)
		e.address = strings.TrimSpace(string(data))
		return e.address, err
	}).WithPolling(5*time.Millisecond).ShouldNot(BeEmpty(), "the emulator does not start: %s", &s.stderr)
	return e
}

// refuseNothing takes the refusals with a pause out of quickstart's script. Where an item is repeated each of them comes once for every repeat, the vendor is asked one by one after the third, and the spec takes a minute.
func (p *project) refuseNothing() {
	GinkgoHelper()
	p.edit("datasets/emulator/quickstart.yaml", "          - error: {status: 429, retry_after: 2s}\n            latency: 35ms\n", "")
}

// recordExample records a dataset against the script of its name, as the committed cassettes were.
func (p *project) recordExample(name string, flags ...string) outcome {
	GinkgoHelper()
	e := p.emulate("datasets/emulator/" + name + ".yaml")
	args := []string{"record", "datasets/" + name + ".yaml", e.upstream(), "--recorded-at", recordedAt}
	for _, vendor := range []string{"anthropic", "gemini", "bedrock"} {
		args = append(args, "--upstream="+vendor+"=http://"+e.address)
	}
	return p.run(append(args, flags...)...)
}
