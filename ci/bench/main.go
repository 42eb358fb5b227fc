// Command bench measures what the project promises about speed and prints one table. Each figure is a ratio taken in one run on one machine, or a rate next to its bound, so that the tables of two machines can be compared.
//
//	go run ./ci/bench            everything
//	go run ./ci/bench live       the rows whose name contains "live"
//
// It builds the command, works in a temporary folder and leaves nothing behind.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"
)

// row is one measurement: what was measured, the figure, what it is held against, and whether it holds.
type row struct {
	name, figure, bound string
	holds               bool
}

type bench struct {
	dir    string // temporary
	binary string
	rows   []row
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(3)
	}
}

func run(args []string) error {
	dir, err := os.MkdirTemp("", "echoeval-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, binary: filepath.Join(dir, "echoeval")}
	build := exec.Command("go", "build", "-trimpath", "-o", b.binary, "./cmd/echoeval")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command: %w\n%s", err, out)
	}
	for _, m := range []struct {
		name    string
		measure func() error
	}{
		{"start", b.start},
		{"live", b.live},
		{"replay", b.replay},
		{"lookup", b.lookup},
		{"recording", b.recording},
	} {
		if len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(m.name, a) }) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", m.name)
		if err := m.measure(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if len(b.rows) == 0 {
		return errors.New("no measurement has such a name")
	}
	fmt.Println("| measured | figure | bound | holds |")
	fmt.Println("|---|---|---|---|")
	for _, r := range b.rows {
		holds := "yes"
		if !r.holds {
			holds = "NO"
		}
		fmt.Printf("| %s | %s | %s | %s |\n", r.name, r.figure, r.bound, holds)
	}
	return nil
}

func (b *bench) add(name, figure, bound string, holds bool) {
	b.rows = append(b.rows, row{name, figure, bound, holds})
}

// start measures how long the command takes to say its version.
func (b *bench) start() error {
	var times []time.Duration
	for range 30 {
		began := time.Now()
		if err := exec.Command(b.binary, "version").Run(); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	median := times[len(times)/2]
	b.add("`echoeval version`, median of 30", ms(median), "< 20 ms", median < 20*time.Millisecond)
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// emulate starts the emulator in a process of its own and returns its base URL.
func (b *bench) emulate(script string) (url string, stop func(), err error) {
	file := filepath.Join(b.dir, "address")
	_ = os.Remove(file)
	args := []string{"emulate", "--address-file", file}
	if script != "" {
		args = append(args, "--script", script)
	}
	cmd := exec.Command(b.binary, args...)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	for range 200 {
		if address, err := os.ReadFile(file); err == nil {
			return "http://" + strings.TrimSpace(string(address)) + "/v1", stop, nil
		}
		time.Sleep(10 * time.Millisecond) // waits for another process to listen
	}
	stop()
	return "", nil, errors.New("the emulator did not start within two seconds")
}

// command runs the binary in a folder and returns how long it took and its peak memory.
func (b *bench) command(dir string, args ...string) (time.Duration, int64, error) {
	cmd := exec.Command(b.binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CI=", "OPENAI_API_KEY=key-of-the-benchmark")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return took, 0, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, tail(out.String(), 2000))
	}
	return took, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024, nil
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func write(path string, data string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(data), 0o644)
}

// live measures 10,000 single-turn items against the emulator in another process.
func (b *bench) live() error {
	const items = 10_000
	url, stop, err := b.emulate("")
	if err != nil {
		return err
	}
	defer stop()
	dir := filepath.Join(b.dir, "live")
	var lines strings.Builder
	for i := range items {
		fmt.Fprintf(&lines, "{\"id\":\"item-%05d\",\"input\":\"Question number %d\"}\n", i, i)
	}
	err = errors.Join(
		write(filepath.Join(dir, "items.jsonl"), lines.String()),
		write(filepath.Join(dir, "live.yaml"), "version: 1\nname: live\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\ndefaults: {checks: [{contains: emulator}]}\nitems: items.jsonl\n"))
	if err != nil {
		return err
	}
	took, memory, err := b.command(dir, "run", "live.yaml", "--mode", "live", "--upstream", "openai="+url, "--concurrency", "16", "-q")
	if err != nil {
		return err
	}
	rate := items / took.Seconds()
	b.add("10,000 live items, concurrency 16, start to exit", fmt.Sprintf("%.0f items/s", rate), ">= 5,000 items/s", rate >= 5000)
	b.add("peak memory of the same run", fmt.Sprintf("%d MB", memory>>20), "< 100 MB", memory < 100<<20)
	return nil
}

// replay measures 1,000 items of three model steps and two tool calls against what go-vcr needs to load their files.
func (b *bench) replay() error {
	const items = 1_000
	dir := filepath.Join(b.dir, "replay")
	filler := strings.Repeat("The harbour lies to the north of the old town, and the ferry leaves at nine. ", 12)
	err := errors.Join(
		write(filepath.Join(dir, "script.yaml"), "version: 1\nname: bench\ndefault:\n  steps:\n"+
			"    - calls: [{name: list_dir, args: {path: .}}]\n      latency: 100ms\n      ttft: 50ms\n      fragment: 400\n"+
			"    - calls: [{name: read_file, args: {path: notes.txt}}]\n      latency: 100ms\n      ttft: 50ms\n      fragment: 400\n"+
			"    - text: \""+filler+"\"\n      latency: 100ms\n      ttft: 50ms\n      fragment: 400\n"),
		write(filepath.Join(dir, "files", "notes.txt"), filler+"\n"),
		write(filepath.Join(dir, "replay.yaml"), "version: 1\nname: replay\nagent: {task: {description: Answer.}, tools: [list_dir, read_file]}\nproviders: [openai:gpt-4o-mini]\ndefaults: {workspace: files, checks: [{contains: ferry}]}\nitems: items.jsonl\n"))
	if err != nil {
		return err
	}
	var lines strings.Builder
	for i := range items {
		fmt.Fprintf(&lines, "{\"id\":\"item-%04d\",\"input\":\"Question number %d\"}\n", i, i)
	}
	if err := write(filepath.Join(dir, "items.jsonl"), lines.String()); err != nil {
		return err
	}
	url, stop, err := b.emulate(filepath.Join(dir, "script.yaml"))
	if err != nil {
		return err
	}
	_, _, err = b.command(dir, "record", "replay.yaml", "--upstream", "openai="+url, "--recorded-at", "2026-01-05T09:00:00Z", "-q")
	stop()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "fixtures", "cassettes", "replay", "*", "*.yaml"))
	if err != nil || len(files) != items {
		return fmt.Errorf("%d cassettes were recorded, want %d (%v)", len(files), items, err)
	}
	var bytes int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		bytes += info.Size()
	}
	load := func() (time.Duration, error) {
		began := time.Now()
		for _, f := range files {
			if _, err := vcr.Load(strings.TrimSuffix(f, ".yaml")); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
	var loads, replays []time.Duration
	for range 5 {
		l, err := load()
		if err != nil {
			return err
		}
		r, _, err := b.command(dir, "run", "replay.yaml", "-q")
		if err != nil {
			return err
		}
		loads, replays = append(loads, l), append(replays, r)
	}
	slices.Sort(loads)
	slices.Sort(replays)
	ratio := float64(replays[2]) / float64(loads[2])
	b.add(fmt.Sprintf("replay of 1,000 items (%d KB a cassette), whole command, median of 5", bytes/items/1024), ms(replays[2]), "", true)
	b.add("the same over go-vcr's `cassette.Load` of the files on one goroutine ("+ms(loads[2])+")", fmt.Sprintf("%.2f times", ratio), "<= 3 times, aim 1", ratio <= 3)
	return nil
}

var benchLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:.*?\s([\d.]+) added-us/op)?`)

// goBench runs benchmarks of one package and returns their times in nanoseconds by name.
func goBench(pkg, pattern string) (map[string]float64, error) {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", pattern, "-benchtime", "1s", pkg)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, tail(string(out), 2000))
	}
	found := map[string]float64{}
	scanner := bufio.NewScanner(bytes.NewReader(out))
	for scanner.Scan() {
		if m := benchLine.FindStringSubmatch(scanner.Text()); m != nil {
			found[m[1]], err = strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, err
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no benchmark of %s matches %s", pkg, pattern)
	}
	return found, nil
}

// lookup compares the index of a session with go-vcr's matcher over the bodies.
func (b *bench) lookup() error {
	return errors.New("not wired")
}

// recording measures what the recorder adds to the first chunk of a stream.
func (b *bench) recording() error {
	return errors.New("not wired")
}
