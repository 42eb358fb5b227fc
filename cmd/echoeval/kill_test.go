//go:build unix

package main_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dnaeon/go-vcr/v2/cassette"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// many is how many items the generated dataset has.
const many = 300

// manyProject makes a project with a dataset of many items: each writes a file, reads it back and answers.
func manyProject() *project {
	GinkgoHelper()
	p := emptyProject()
	p.write("many.yaml", `version: 1
name: many
agent: {task: {description: Write down what you are told.}, tools: [write_file, read_file]}
providers: [openai:gpt-4o-mini]
defaults: {workspace: desk, checks: [{contains: noted}]}
items: many.jsonl
`)
	var items strings.Builder
	for i := range many {
		fmt.Fprintf(&items, "{\"id\":\"item-%03d\",\"input\":\"Note %03d.\",\"tags\":[\"t%d\"]}\n", i, i, i%7)
	}
	p.write("many.jsonl", items.String())
	p.write("desk/README.md", "A desk.\n")
	p.write("script.yaml", `version: 1
name: many
conversations:
  - match: {user_regex: "^Note [0-9]+\\.$"}
    steps:
      - calls: [{name: write_file, args: {path: note.txt, content: "{{last_user}}"}}]
        latency: 20ms
        ttft: 10ms
      - calls: [{name: read_file, args: {path: note.txt}}]
        latency: 30ms
        ttft: 10ms
      - text: "noted: {{last_tool_result}}"
        latency: 40ms
        ttft: 10ms
`)
	return p
}

// manyRecorded are the cassettes of the generated dataset. It is made once, by the first spec that asks.
var manyRecorded map[string]string

// recordMany makes a project with the generated dataset and its cassettes.
func recordMany() *project {
	GinkgoHelper()
	p := manyProject()
	if manyRecorded == nil {
		e := p.emulate("script.yaml")
		p.succeed("record", "many.yaml", e.upstream(), "--recorded-at", recordedAt)
		manyRecorded = p.files("fixtures")
		Expect(manyRecorded).To(HaveLen(many))
		return p
	}
	for file, text := range manyRecorded {
		p.write("fixtures/"+file, text)
	}
	return p
}

// journalled counts the items that a run under way has finished.
func (p *project) journalled(run string) int {
	data, err := os.ReadFile(p.path(run + "/journal.jsonl"))
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "\n")
}

// whenRunning waits until the newest run has finished so many items, and returns its folder.
func (p *project) whenRunning(s *process, items int) string {
	GinkgoHelper()
	var run string
	deadline := time.Now().Add(patience)
	for {
		found, err := filepath.Glob(p.path(".echoeval/runs/*/journal.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		for _, file := range found {
			if filepath.Base(filepath.Dir(file)) != "latest" {
				rel, err := filepath.Rel(p.dir, filepath.Dir(file))
				Expect(err).NotTo(HaveOccurred())
				run = rel
			}
		}
		if run != "" && p.journalled(run) >= items {
			return run
		}
		select {
		case err := <-s.ended:
			Fail(fmt.Sprintf("the run ended before it could be disturbed: %v\n%s%s", err, &s.stdout, &s.stderr))
		case <-time.After(2 * time.Millisecond):
		}
		Expect(time.Now().Before(deadline)).To(BeTrue(), "the run does not begin")
	}
}

// sweep removes what killed processes have left in the temporary folder.
func (p *project) sweep() {
	GinkgoHelper()
	left, err := os.ReadDir(p.temp)
	Expect(err).NotTo(HaveOccurred())
	for _, e := range left {
		Expect(os.RemoveAll(filepath.Join(p.temp, e.Name()))).To(Succeed())
	}
}

var temporary = regexp.MustCompile(`(^|/)\.[^/]+\.tmp[^/]*$`)

var _ = Describe("kill -9", func() {
	It("twenty times in runs: each goes on to the same bytes as an undisturbed one", func() {
		p := recordMany()
		p.succeed("run", "many.yaml")
		want := p.identity(p.last())
		var took time.Duration
		for range 2 {
			began := time.Now()
			p.succeed("run", "many.yaml", "--concurrency", "4")
			took = time.Since(began)
			Expect(p.identity(p.last())).To(Equal(want))
		}
		seed := uint64(GinkgoRandomSeed())
		random := rand.New(rand.NewPCG(seed, 1))
		fmt.Fprintf(GinkgoWriter, "seed %d, an undisturbed run takes %s\n", seed, took)
		var kills, unfinished, partly, resumed int
		for round := 0; unfinished < 20; round++ {
			Expect(round).To(BeNumerically("<", 60), "runs end before they can be killed")
			before := len(p.runs())
			args := []string{"run", "many.yaml", "--concurrency", "4"}
			var run string
			for attempt := 0; ; attempt++ {
				Expect(attempt).To(BeNumerically("<", 20), "round %d does not end", round)
				s := p.start(p.command(args...))
				var fuse <-chan time.Time
				if attempt == 0 || random.IntN(4) == 0 {
					fuse = time.After(time.Duration(random.Int64N(int64(took))))
				}
				select {
				case <-fuse:
					kills++
					Expect(s.cmd.Process.Kill()).To(Succeed())
				case err := <-s.ended:
					s.ended <- err
				}
				o := p.end(s)
				p.sweep()
				runs := p.runs()
				if len(runs) == before {
					// Killed before there was a run to go on with.
					Expect(o.signal).To(Equal(syscall.SIGKILL), "%s", o)
					continue
				}
				run = runs[before]
				Expect(runs).To(HaveLen(before+1), "a resumed run stays in its folder")
				if o.signal == 0 {
					Expect(o.code).To(Equal(0), "%s", o)
					break
				}
				unfinished++
				if n := p.journalled(run); n > 0 && n < many {
					partly++
				}
				args = []string{"run", "--resume", run}
				resumed++
			}
			Expect(p.files(run)).To(HaveLen(4), "manifest, results, summary and one segment of traces")
			Expect(p.identity(run)).To(Equal(want), "round %d", round)
		}
		fmt.Fprintf(GinkgoWriter, "%d kills, %d of them in a run, %d of these between two items; resumed %d times\n", kills, unfinished, partly, resumed)
		Expect(partly).To(BeNumerically(">=", 10), "hardly a run was disturbed in its middle")
		Expect(p.results(p.last())).To(HaveLen(many))
	})

	It("before the first line leaves a run that can be gone on with", func() {
		p := recordMany()
		p.succeed("run", "many.yaml")
		run, want := p.last(), p.identity(p.last())
		finished := regexp.MustCompile(`"finished": "[^"]*"`)
		manifest := p.read(run + "/manifest.json")
		Expect(finished.MatchString(manifest)).To(BeTrue())
		// What a kill leaves behind that comes before there is a journal.
		Expect(os.RemoveAll(p.path(run))).To(Succeed())
		p.write(run+"/manifest.json", finished.ReplaceAllString(manifest, `"finished": null`))
		o := p.run("show", run)
		Expect(o.stderr).To(And(ContainSubstring("cut off before its first item"), ContainSubstring("--resume"), Not(ContainSubstring(p.dir))))
		p.succeed("run", "--resume", run)
		Expect(p.identity(run)).To(Equal(want))
		// A run that was finished has lost something, and is not made up again.
		Expect(os.RemoveAll(p.path(run))).To(Succeed())
		p.write(run+"/manifest.json", manifest)
		o = p.expect(3, "run", "--resume", run)
		Expect(o.stderr).To(ContainSubstring("lost"))
	})

	It("leaves a run that says that it is incomplete", func() {
		p := recordMany()
		s := p.start(p.command("run", "many.yaml", "--concurrency", "1"))
		run := p.whenRunning(s, 10)
		Expect(s.cmd.Process.Kill()).To(Succeed())
		Expect(p.end(s).signal).To(Equal(syscall.SIGKILL))
		p.sweep()
		o := p.run("show", run)
		Expect(o.all()).To(ContainSubstring("incomplete"))
		p.succeed("run", "--resume", run)
		o = p.succeed("show", run)
		Expect(o.all()).NotTo(ContainSubstring("incomplete"))
	})

	It("in a recording: every cassette is whole, and the recording goes on to the same bytes", func() {
		undisturbed := manyProject()
		first := undisturbed.emulate("script.yaml")
		undisturbed.succeed("record", "many.yaml", first.upstream(), "--recorded-at", recordedAt)
		want := undisturbed.files("fixtures")
		Expect(want).To(HaveLen(many))

		p := manyProject()
		e := p.emulate("script.yaml")
		seed := uint64(GinkgoRandomSeed())
		random := rand.New(rand.NewPCG(seed, 2))
		s := p.start(p.command("record", "many.yaml", e.upstream(), "--recorded-at", recordedAt))
		run := p.whenRunning(s, 1)
		for range 6 {
			time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
			Expect(s.cmd.Process.Kill()).To(Succeed())
			o := p.end(s)
			p.sweep()
			if o.signal == 0 {
				break
			}
			whole := 0
			for file, text := range p.files("fixtures") {
				if temporary.MatchString(file) {
					continue // left by the kill; no reader takes it for a cassette
				}
				Expect(text).To(Equal(want[file]), "%s is not whole", file)
				_, err := cassette.Load(strings.TrimSuffix(p.path("fixtures/"+file), ".yaml"))
				Expect(err).NotTo(HaveOccurred())
				whole++
			}
			Expect(whole).To(BeNumerically(">=", p.journalled(run)), "what the journal holds has its cassette")
			s = p.start(p.command("run", "--resume", run))
		}
		o := p.await(s)
		Expect(o.code).To(Equal(0), "%s", o)
		got := p.files("fixtures")
		maps.DeleteFunc(got, func(file, _ string) bool { return temporary.MatchString(file) })
		expectSameFiles(got, want)
		Expect(p.runs()).To(HaveLen(1))
		Expect(p.results(run)).To(HaveLen(many))
		for _, file := range []string{"/results.jsonl", "/traces/001.jsonl", "/summary.json"} {
			Expect(p.read(run+file)).To(Equal(undisturbed.read(undisturbed.last()+file)), file)
		}
		o = p.succeed("cassette", "verify", "many.yaml")
		Expect(o.stdout).To(ContainSubstring("300 fresh, 0 stale, 0 missing, 0 orphaned"))
	})

	It("in a save leaves nothing that a later recording does not clear away", func() {
		p := recordMany()
		const file = "fixtures/cassettes/many/openai_gpt-4o-mini/item-007.yaml"
		before := p.files("fixtures")
		// What a killed save leaves is a temporary file beside the cassette.
		p.write(filepath.Dir(file)+"/.item-007.yaml.tmp123456", "half of it")
		o := p.succeed("cassette", "verify", "many.yaml")
		Expect(o.stdout).To(ContainSubstring("300 fresh, 0 stale, 0 missing, 0 orphaned"))
		e := p.emulate("script.yaml")
		p.succeed("record", "many.yaml", "--item", "item-007", e.upstream(), "--recorded-at", recordedAt)
		expectSameFiles(p.files("fixtures"), before)
	})
})

var _ = Describe("an interrupted run", func() {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		It("is saved and can be gone on with: replay, "+signal.String(), func() {
			p := recordMany()
			p.succeed("run", "many.yaml")
			want := p.identity(p.last())
			s := p.start(p.command("run", "many.yaml", "--concurrency", "1", "--out", "out"))
			var run string
			Eventually(func() int {
				found, err := filepath.Glob(p.path("out/*-many-*/journal.jsonl"))
				Expect(err).NotTo(HaveOccurred())
				if len(found) == 0 {
					return 0
				}
				run = "out/" + filepath.Base(filepath.Dir(found[0]))
				return p.journalled(run)
			}).WithTimeout(patience).WithPolling(time.Millisecond).Should(BeNumerically(">", 3))
			Expect(s.cmd.Process.Signal(signal)).To(Succeed())
			o := p.await(s)
			Expect(o.code).To(Equal(130), "%s", o)
			finished := expectInterrupted(p, run, o, func(r result) bool { return r.Status == "pass" })
			Expect(finished).To(BeNumerically(">", 3))
			resumed := p.obey(resumption(o))
			Expect(resumed.code).To(Equal(0), "%s", resumed)
			Expect(p.identity(run)).To(Equal(want))
			// There is nothing left to do, and doing it changes nothing.
			Expect(p.obey(resumption(o)).code).To(Equal(0))
			Expect(p.identity(run)).To(Equal(want))
		})
	}

	It("is cut between items and never within one, however often the signal comes", func() {
		p := recordMany()
		p.succeed("run", "many.yaml")
		want := p.identity(p.last())
		seed := uint64(GinkgoRandomSeed())
		random := rand.New(rand.NewPCG(seed, 3))
		fmt.Fprintf(GinkgoWriter, "seed %d\n", seed)
		interruptions := 0
		for range 4 {
			args := []string{"run", "many.yaml", "--concurrency", "16"}
			var run string
			before := len(p.runs())
			for at := random.IntN(40); ; at += 1 + random.IntN(120) {
				s := p.start(p.command(args...))
				if at < many {
					Eventually(func() bool {
						if runs := p.runs(); len(runs) > before && p.journalled(runs[before]) >= at {
							return true
						}
						select {
						case err := <-s.ended:
							s.ended <- err
							return true
						default:
							return false
						}
					}).WithTimeout(patience).WithPolling(time.Millisecond).Should(BeTrue())
					_ = s.cmd.Process.Signal(os.Interrupt) // it may have ended by itself
				}
				o := p.await(s)
				run = p.runs()[before]
				if o.code == 0 {
					break
				}
				Expect(o.code).To(Equal(130), "%s", o)
				interruptions++
				expectInterrupted(p, run, o, func(r result) bool { return r.Status == "pass" })
				args = []string{"run", "--resume", run}
			}
			Expect(p.identity(run)).To(Equal(want))
		}
		fmt.Fprintf(GinkgoWriter, "%d interruptions\n", interruptions)
		Expect(interruptions).To(BeNumerically(">=", 6))
	})

	It("is saved and can be gone on with: a recording in the middle of a slow answer", func() {
		dataset := "version: 1\nname: slow\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\nitems:\n"
		for i := range 12 {
			dataset += fmt.Sprintf("  - {id: i%02d, input: number %d, checks: [{contains: number}]}\n", i, i)
		}
		script := "version: 1\nname: slow\ndefault: {steps: [{text: \"{{last_user}} it is, and that takes a while to say\", fragment: 2, slow: {chunk_delay: 4ms}}]}\n"
		begin := func() (*project, *process) {
			p := emptyProject()
			p.write("slow.yaml", dataset)
			p.write("script.yaml", script)
			e := p.emulate("script.yaml")
			return p, p.start(p.command("record", "slow.yaml", e.upstream(), "--recorded-at", recordedAt, "--concurrency", "3"))
		}
		undisturbed, s := begin()
		o := undisturbed.await(s)
		Expect(o.code).To(Equal(0), "%s", o)

		p, s := begin()
		run := p.whenRunning(s, 3)
		asked := time.Now()
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		o = p.await(s)
		Expect(time.Since(asked)).To(BeNumerically("<", 3*time.Second))
		Expect(o.code).To(Equal(130), "%s", o)
		finished := expectInterrupted(p, run, o, func(r result) bool { return r.Status == "pass" && r.Cassette.State == "recorded" })
		Expect(finished).To(And(BeNumerically(">=", 3), BeNumerically("<", 12)))
		Expect(p.files("fixtures")).To(HaveLen(finished), "what was cut off is not saved, and nothing else lies there")
		o = p.obey(resumption(o))
		Expect(o.code).To(Equal(0), "%s", o)
		expectSameFiles(p.files("fixtures"), undisturbed.files("fixtures"))
		for _, file := range []string{"/results.jsonl", "/traces/001.jsonl", "/summary.json"} {
			Expect(p.read(run+file)).To(Equal(undisturbed.read(undisturbed.last()+file)), file)
		}
	})

	It("ends at once at the second signal", func() {
		p := emptyProject()
		p.write("slow.yaml", "version: 1\nname: slow\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\nitems:\n  - {id: a, input: hello, checks: [{contains: x}]}\n")
		p.write("script.yaml", "version: 1\nname: slow\ndefault: {steps: [{text: \"a long time\", fragment: 1, slow: {chunk_delay: 500ms}}]}\n")
		e := p.emulate("script.yaml")
		s := p.start(p.command("run", "slow.yaml", "--mode", "live", e.upstream()))
		p.whenRunning(s, 0)
		time.Sleep(50 * time.Millisecond)
		asked := time.Now()
		for range 2 {
			Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
			time.Sleep(5 * time.Millisecond)
		}
		o := p.end(s)
		p.sweep()
		Expect(time.Since(asked)).To(BeNumerically("<", 2*time.Second))
		Expect(o.code == 130 || o.signal == syscall.SIGINT).To(BeTrue(), "%s", o)
	})

	DescribeTable("is not gone on with where its inputs have changed", func(change func(*project)) {
		p := recordMany()
		s := p.start(p.command("run", "many.yaml", "--concurrency", "1"))
		run := p.whenRunning(s, 5)
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(p.await(s).code).To(Equal(130))
		before := p.files(run)
		change(p)
		o := p.expect(2, "run", "--resume", run)
		Expect(o.stderr).To(ContainSubstring("changed since"))
		Expect(o.stderr).To(ContainSubstring("hint: "))
		expectSameFiles(p.files(run), before)
	},
		Entry("an item", func(p *project) { p.edit("many.jsonl", "Note 250.", "Write 250.") }),
		Entry("an item more", func(p *project) {
			p.edit("many.jsonl", `{"id":"item-250"`, "{\"id\":\"new\",\"input\":\"Note 1.\"}\n{\"id\":\"item-250\"")
		}),
		Entry("a check", func(p *project) { p.edit("many.yaml", "contains: noted", "contains: note") }),
		Entry("the agent", func(p *project) { p.edit("many.yaml", "Write down what", "Take down what") }),
		Entry("the workspace", func(p *project) { p.write("desk/README.md", "Another desk.\n") }),
	)

	It("takes no other dataset or mode, and says what it takes", func() {
		p := exampleProject()
		p.succeed("run", "datasets/quickstart.yaml", "--item", "total-copies")
		p.expect(2, "run", "datasets/quickstart.yaml", "--resume", "latest")
		o := p.expect(2, "run", "--resume", "latest", "--mode", "live")
		Expect(o.stderr).To(ContainSubstring("--mode"))
		o = p.expect(2, "run", "--resume", "lates")
		Expect(o.stderr).To(ContainSubstring("latest"))
	})
})

// resumption is the command that goes on with a run.
func resumption(o outcome) string {
	GinkgoHelper()
	found := slices.DeleteFunc(hints(o), func(h string) bool { return !strings.Contains(h, "--resume") })
	Expect(found).To(HaveLen(1), "%s", o)
	return found[0]
}

// expectInterrupted looks at a run that a signal has ended, and returns how many items were finished.
func expectInterrupted(p *project, run string, o outcome, done func(result) bool) int {
	GinkgoHelper()
	files := p.files(run)
	Expect(files).NotTo(HaveKey("journal.jsonl"))
	finished := 0
	lines := p.results(run)
	for _, line := range lines {
		if line.verdict() != "not_run/interrupted" {
			Expect(done(line)).To(BeTrue(), "%s: %s", line.Item, line.verdict())
			finished++
		}
	}
	Expect(finished).To(BeNumerically("<", len(lines)), "the run was not disturbed")
	s := p.summary(run)
	Expect(s.Complete).To(BeFalse())
	Expect(s.Verdict.Code).To(Equal(130))
	Expect(s.Counts["not_run"]).To(Equal(len(lines) - finished))
	Expect(o.stdout).To(ContainSubstring("interrupted"))
	return finished
}
