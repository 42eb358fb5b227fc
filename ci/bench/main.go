// Command bench measures what the project promises about speed and prints one table. Each figure is a ratio taken in one run on one machine, or a rate next to its bound, so that the tables of two machines can be compared.
//
//	go run ./ci/bench            everything
//	go run ./ci/bench live       the rows whose name contains "live"
//
// It builds the command, works in a temporary folder and leaves nothing behind.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
		{"provider", b.provider},
		{"trajectory", b.trajectory},
		{"rules", b.rules},
		{"large", b.large},
		{"mutate", b.mutate},
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

// large measures 100,000 items with three checks of text and a scripted model: reading, running, joining four parts.
func (b *bench) large() error {
	const items, shards = 100_000, 4
	dir := filepath.Join(b.dir, "large")
	var lines strings.Builder
	for i := range items {
		fmt.Fprintf(&lines, "{\"id\":\"item-%06d\",\"input\":\"Question number %d\",\"expected\":\"ok\",\"script\":[{\"text\":\"ok, number %d\"}]}\n", i, i, i)
	}
	err := errors.Join(
		write(filepath.Join(dir, "items.jsonl"), lines.String()),
		write(filepath.Join(dir, "large.yaml"), "version: 1\nname: large\nagent: {task: {description: Answer.}}\nproviders: [{id: script, provider: script}]\ndefaults: {checks: [{contains: ok}, {starts_with: ok}, {regex: 'number [0-9]+'}]}\nitems: items.jsonl\n"))
	if err != nil {
		return err
	}
	took, _, err := b.command(dir, "validate", "large.yaml")
	if err != nil {
		return err
	}
	b.add("`validate` of 100,000 JSONL items", fmt.Sprintf("%.2f s", took.Seconds()), "< 1 s", took < time.Second)
	took, memory, err := b.command(dir, "run", "large.yaml", "--mode", "live", "--traces", "failed", "-q")
	if err != nil {
		return err
	}
	b.add("100,000 items with three text checks, start to exit", fmt.Sprintf("%.2f s", took.Seconds()), "", true)
	b.add("peak memory of the same run", fmt.Sprintf("%d MB", memory>>20), "< 100 MB", memory < 100<<20)
	found, err := goBench("./harness/experiment", "BenchmarkJudged$", fmt.Sprintf("%dx", items))
	if err != nil {
		return err
	}
	judged := time.Duration(found["BenchmarkJudged ns/op"] * items)
	if judged == 0 {
		return errors.New("a figure is missing")
	}
	b.add("of that, without the agent and the reading of the dataset: scored, looked at by the invariants, journaled and folded", fmt.Sprintf("%.2f s", judged.Seconds()), "< 2 s", judged < 2*time.Second)
	merge := []string{"merge"}
	for i := range shards {
		out := fmt.Sprintf("part%d", i+1)
		if _, _, err := b.command(dir, "run", "large.yaml", "--mode", "live", "--traces", "failed", "-q", "--out", out, "--shard", fmt.Sprintf("%d/%d", i+1, shards)); err != nil {
			return err
		}
		merge = append(merge, filepath.Join(out, "latest"))
	}
	if took, _, err = b.command(dir, merge...); err != nil {
		return err
	}
	b.add("`merge` of four shards of 25,000", fmt.Sprintf("%.2f s", took.Seconds()), "< 1 s", took < time.Second)
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
	var size int64
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		size += info.Size()
	}
	load := func() (time.Duration, error) {
		began := time.Now()
		work := make(chan string)
		errs := make(chan error, runtime.GOMAXPROCS(0))
		for range cap(errs) {
			go func() {
				var err error
				for f := range work {
					_, loadErr := vcr.Load(strings.TrimSuffix(f, ".yaml"))
					err = errors.Join(err, loadErr)
				}
				errs <- err
			}()
		}
		for _, f := range files {
			work <- f
		}
		close(work)
		var err error
		for range cap(errs) {
			err = errors.Join(err, <-errs)
		}
		return time.Since(began), err
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
	b.add(fmt.Sprintf("replay of 1,000 items (%d KB a cassette), whole command, median of 5", size/items/1024), ms(replays[2]), "", true)
	b.add("the same over go-vcr's `cassette.Load` of the files on all processors ("+ms(loads[2])+")", fmt.Sprintf("%.2f times", ratio), "<= 3 times, aim 1", ratio <= 3)
	took, _, err := b.command(dir, "cassette", "verify", "replay.yaml")
	if err != nil {
		return err
	}
	b.add("`cassette verify` of the same 1,000 cassettes", ms(took), "< 500 ms", took < 500*time.Millisecond)
	return nil
}

// mutate measures mutants of recorded outcomes with three model steps, judged by five checks; the time is that of the whole command, the replay of the items included.
func (b *bench) mutate() error {
	const items, more = 800, 4_000
	measure := func(n int) (mutants int, took time.Duration, memory int64, err error) {
		dir := filepath.Join(b.dir, fmt.Sprintf("mutate-%d", n))
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, "{\"id\":\"item-%04d\",\"input\":\"Question number %d\",\"expected\":\"number %d\",\"script\":[{\"call\":{\"name\":\"list_dir\",\"args\":{\"path\":\".\"}}},{\"call\":{\"name\":\"read_file\",\"args\":{\"path\":\"notes.txt\"}}},{\"text\":\"It is number %d, and the ferry leaves at nine.\"}]}\n", i, i, i, i)
		}
		err = errors.Join(
			write(filepath.Join(dir, "items.jsonl"), lines.String()),
			write(filepath.Join(dir, "files", "notes.txt"), "The ferry leaves at nine.\n"),
			write(filepath.Join(dir, "mutate.yaml"), "version: 1\nname: mutate\nagent: {task: {description: Answer.}, tools: [list_dir, read_file, write_file]}\nproviders: [{id: script, provider: script}]\n"+
				"defaults: {workspace: files, tool_context: {shop: shop-7f3a91}, checks: [{contains: ferry}, {regex: 'number [0-9]+'}, {tool_calls: {match: subset, calls: [{name: read_file}]}}, {not: {contains: sorry}}, {tokens: {max: 1000}}]}\nitems: items.jsonl\n"))
		if err != nil {
			return 0, 0, 0, err
		}
		if _, _, err := b.command(dir, "record", "mutate.yaml", "-q"); err != nil {
			return 0, 0, 0, err
		}
		if took, memory, err = b.command(dir, "mutate", "mutate.yaml", "-q"); err != nil {
			return 0, 0, 0, err
		}
		out, err := exec.Command(b.binary, "mutate", filepath.Join(dir, "mutate.yaml"), "--json").Output()
		if err != nil {
			return 0, 0, 0, err
		}
		var report struct{ Mutants int }
		err = json.Unmarshal(out, &report)
		return report.Mutants, took, memory, err
	}
	mutants, took, memory, err := measure(items)
	if err != nil {
		return err
	}
	many, _, large, err := measure(more)
	if err != nil {
		return err
	}
	each := took / time.Duration(mutants)
	b.add(fmt.Sprintf("`mutate` of %d mutants, start to exit", mutants), fmt.Sprintf("%.2f s, %.2f s for 10,000", took.Seconds(), (10_000*each).Seconds()), "< 5 s for 10,000", 10_000*each < 5*time.Second)
	ratio := float64(large) / float64(memory)
	b.add(fmt.Sprintf("peak memory of `mutate` of %d mutants over that of %d (%d MB)", many, mutants, memory>>20), fmt.Sprintf("%.2f times", ratio), "flat: <= 1.5 times", ratio <= 1.5)
	return nil
}

// goBench runs benchmarks of one package and returns what they report: "name unit" -> value, the name without the number of processors.
func goBench(pkg, pattern, benchtime string) (map[string]float64, error) {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", pattern, "-benchtime", benchtime, pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, tail(string(out), 2000))
	}
	found := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := fields[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("a line of the benchmark cannot be read: %s", line)
			}
			found[name+" "+fields[i+1]] = value
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no benchmark of %s matches %s", pkg, pattern)
	}
	return found, nil
}

// lookup compares the index of a session with go-vcr's matcher over the bodies.
func (b *bench) lookup() error {
	found, err := goBench("./harness/replay", "BenchmarkLookup/(ours|go-vcr)/(10|1000)$", "1s")
	if err != nil {
		return err
	}
	ours, few, theirs := found["BenchmarkLookup/ours/1000 ns/op"], found["BenchmarkLookup/ours/10 ns/op"], found["BenchmarkLookup/go-vcr/1000 ns/op"]
	if ours == 0 || few == 0 || theirs == 0 {
		return errors.New("a figure is missing")
	}
	b.add(fmt.Sprintf("lookup among 1,000 interactions of 20 KB, out of order (%.0f us), against go-vcr's matcher comparing bodies", ours/1000), fmt.Sprintf("%.0f times faster", theirs/ours), ">= 100 times", theirs/ours >= 100)
	b.add("the same among 1,000 over among 10", fmt.Sprintf("%.2f times", ours/few), "flat: <= 1.5", ours/few <= 1.5)
	return nil
}

// recording measures what the recorder adds to the first chunk of a stream.
func (b *bench) recording() error {
	found, err := goBench("./harness/replay", "BenchmarkFirstChunk", "2000x")
	if err != nil {
		return err
	}
	plain, recorded := found["BenchmarkFirstChunk/plain µs/first"], found["BenchmarkFirstChunk/recorded µs/first"]
	if plain == 0 || recorded == 0 {
		return errors.New("a figure is missing")
	}
	b.add(fmt.Sprintf("recording, added to the first chunk of a stream (%.0f us without)", plain), fmt.Sprintf("%.0f us", recorded-plain), "< 1,000 us", recorded-plain < 1000)
	return nil
}

// trajectory measures the check tool_calls with 50 calls expected and 50 made, out of order.
func (b *bench) trajectory() error {
	found, err := goBench("./harness/score", "BenchmarkTrajectory", "1s")
	if err != nil {
		return err
	}
	for _, m := range []struct {
		groups int
		what   string
		bound  float64 // ns
	}{{1, "in one group", 1e6}, {10, "in ten groups", 50e6}} {
		ordered, unordered := found[fmt.Sprintf("BenchmarkTrajectory/ordered/%d ns/op", m.groups)], found[fmt.Sprintf("BenchmarkTrajectory/unordered/%d ns/op", m.groups)]
		if ordered == 0 || unordered == 0 {
			return errors.New("a figure is missing")
		}
		b.add("`tool_calls`, 50 calls against 50 "+m.what+", the slower of ordered and unordered", fmt.Sprintf("%.2f ms", max(ordered, unordered)/1e6), fmt.Sprintf("< %.0f ms", m.bound/1e6), max(ordered, unordered) < m.bound)
	}
	return nil
}

// rules measures one rule of each form over a trace of 100,000 events.
func (b *bench) rules() error {
	found, err := goBench("./harness/rule", "BenchmarkEvents", "20x")
	if err != nil {
		return err
	}
	for _, form := range []string{"condition", "order", "flow", "sequence", "count"} {
		rate := found["BenchmarkEvents/"+form+" events/cpu-s"]
		if rate == 0 {
			return errors.New("a figure is missing")
		}
		b.add(fmt.Sprintf("a rule (%s) over a trace of 100,000 events, for each second of a processor", form), fmt.Sprintf("%.2f million events", rate/1e6), ">= 1 million", rate >= 1e6)
	}
	return nil
}

// provider compares a whole call through each provider with the bare SDK.
func (b *bench) provider() error {
	for _, vendor := range []string{"openai", "anthropic", "gemini", "bedrock"} {
		found, err := goBench("./providers/"+vendor, "BenchmarkCall$", "2000x")
		if err != nil {
			return err
		}
		bare, ours := found["BenchmarkCall bare-us/op"], found["BenchmarkCall provider-us/op"]
		if bare == 0 || ours == 0 {
			return errors.New("a figure is missing")
		}
		b.add(fmt.Sprintf("a call through providers/%s, 20 KB out and 5 KB streamed back, over the bare SDK (%.0f us)", vendor, bare), fmt.Sprintf("%.2f times, %+.0f us", ours/bare, ours-bare), "<= +120 us", ours-bare <= 120)
	}
	return nil
}
