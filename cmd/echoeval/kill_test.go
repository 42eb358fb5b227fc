//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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
			if !strings.HasPrefix(filepath.Base(filepath.Dir(file)), "latest") { // nor a draft of the link
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

// kills is how many processes the specs of random kills end: few in the suite, as many as ECHOEVAL_KILLS says where it is set.
func kills() int {
	GinkgoHelper()
	text := os.Getenv("ECHOEVAL_KILLS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred(), "ECHOEVAL_KILLS")
	Expect(n).To(BeNumerically(">=", 20), "ECHOEVAL_KILLS")
	return n
}

// The phases of a command that a kill can hit.
const (
	atStart  = "before there is a run"
	inItems  = "between the first item and the last"
	inFold   = "in the fold"
	atEnd    = "behind the fold"
	inMerge  = "in a merge"
	inRecord = "in a recording"
)

// tally counts the kills that hit a living process, by phase.
type tally map[string]int

func (t tally) String() string {
	var b strings.Builder
	total := 0
	for _, phase := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "  %5d %s\n", t[phase], phase)
		total += t[phase]
	}
	return fmt.Sprintf("%d kills of living processes\n%s", total, &b)
}

// phase says how far a run was when it was killed. run is "" where there is none.
func (p *project) phase(run string) string {
	GinkgoHelper()
	if run == "" {
		return atStart
	}
	var manifest struct{ Finished *string }
	Expect(json.Unmarshal([]byte(p.read(run+"/manifest.json")), &manifest)).To(Succeed(), "a manifest is whole")
	data, err := os.ReadFile(p.path(run + "/journal.jsonl"))
	switch {
	case manifest.Finished != nil:
		return atEnd
	case err != nil && p.has(run+"/results.jsonl"), bytes.Count(data, []byte("\n")) >= many:
		return inFold
	}
	return inItems
}

func (p *project) has(name string) bool {
	_, err := os.Stat(p.path(name))
	return err == nil
}

// kill starts a command, kills it when a while has passed, and says whether it was still alive.
func (p *project) kill(after time.Duration, args ...string) (outcome, bool) {
	GinkgoHelper()
	s := p.start(p.command(args...))
	select {
	case <-time.After(after):
		_ = s.cmd.Process.Kill() // it may have ended
	case err := <-s.ended:
		s.ended <- err
	}
	o := p.end(s)
	return o, o.signal == syscall.SIGKILL
}

// complete runs a command that succeeds. In the temporary folder may lie what kills have left: only a run that makes workspaces clears it away.
func (p *project) complete(args ...string) {
	GinkgoHelper()
	o := p.end(p.start(p.command(args...)))
	Expect(o.code).To(Equal(0), "%s", o)
}

// newRun is the run that there was not before, "" for none.
func (p *project) newRun(before []string) string {
	GinkgoHelper()
	var found []string
	for _, run := range p.runs() {
		if !slices.Contains(before, run) {
			found = append(found, run)
		}
	}
	Expect(len(found)).To(BeNumerically("<=", 1))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// expectClean expects that a later run has cleared away what kills have left, and that nothing temporary lies anywhere.
func (p *project) expectClean() {
	GinkgoHelper()
	p.succeed("run", "many.yaml", "--concurrency", "2") // it expects an empty temporary folder too
	for name := range p.files(".") {
		Expect(temporary.MatchString(name) || strings.HasSuffix(name, ".tmp")).To(BeFalse(), "%s is left for ever", name)
	}
}

var _ = Describe("kill -9 at random", Serial, func() {
	var random *rand.Rand
	BeforeEach(func() {
		seed := uint64(GinkgoRandomSeed())
		random = rand.New(rand.NewPCG(seed, 7))
		fmt.Fprintf(GinkgoWriter, "seed %d\n", seed)
	})
	within := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	const concurrency = "4"

	// undisturbed makes a project with a finished run, and says what it is and how long it took.
	undisturbed := func() (p *project, want string, took time.Duration) {
		p = recordMany()
		for range 2 { // the first one warms up
			began := time.Now()
			p.succeed("run", "many.yaml", "--concurrency", concurrency)
			took = time.Since(began)
		}
		return p, p.identity(p.last()), took
	}
	// resume goes on with a run until it ends, disturbing it now and then.
	resume := func(p *project, run string, took time.Duration, count tally) {
		GinkgoHelper()
		for attempt := 0; ; attempt++ {
			Expect(attempt).To(BeNumerically("<", 30))
			if random.IntN(3) > 0 {
				p.complete("run", "--resume", run)
				return
			}
			if o, hit := p.kill(within(took), "run", "--resume", run); !hit {
				Expect(o.code).To(Equal(0), "%s", o)
				return
			}
			count[p.phase(run)]++
		}
	}
	total := func(t tally) (n int) {
		for _, c := range t {
			n += c
		}
		return n
	}

	It("ends a run anywhere, and it goes on to the same bytes", func() {
		p, want, took := undisturbed()
		count := tally{}
		for rounds := 0; total(count) < kills()*2/5; rounds++ {
			Expect(rounds).To(BeNumerically("<", 20*kills()), "runs end before they can be killed")
			before := p.runs()
			o, hit := p.kill(within(took+took/8), "run", "many.yaml", "--concurrency", concurrency)
			run := p.newRun(before)
			if !hit {
				Expect(o.code).To(Equal(0), "%s", o)
				Expect(p.identity(run)).To(Equal(want))
				continue
			}
			count[p.phase(run)]++
			if run == "" {
				continue
			}
			resume(p, run, took, count)
			Expect(p.files(run)).To(HaveLen(4), "manifest, results, summary and one segment of traces")
			Expect(p.identity(run)).To(Equal(want), "round %d", rounds)
			Expect(os.RemoveAll(p.path(run))).To(Succeed())
		}
		p.expectClean()
		AddReportEntry("runs", count.String())
		Expect(count[inItems]).To(BeNumerically(">", 0))
	})

	It("ends a fold anywhere, and it is done again to the same bytes", func() {
		p, want, took := undisturbed()
		// A run that was killed when its last item was in the journal.
		var full map[string]string
		for range 200 {
			before := p.runs()
			s := p.start(p.command("run", "many.yaml", "--concurrency", concurrency))
			p.whenJournalled(s, before)
			_ = s.cmd.Process.Kill() // it may have ended
			o := p.end(s)
			run := p.newRun(before)
			if o.signal == syscall.SIGKILL && p.journalled(run) == many && !p.has(run+"/results.jsonl") {
				full = p.files(run)
			}
			Expect(os.RemoveAll(p.path(run))).To(Succeed())
			if full != nil {
				break
			}
		}
		Expect(full).NotTo(BeNil(), "no run was hit between its last item and its end")
		fresh := func(name string) string {
			run := ".echoeval/runs/" + name
			for file, text := range full {
				if !strings.HasSuffix(file, ".tmp") {
					p.write(run+"/"+file, text)
				}
			}
			return run
		}
		began := time.Now()
		run := fresh("folded")
		p.complete("run", "--resume", run)
		fold := time.Since(began)
		Expect(fold).To(BeNumerically("<", 4*took))
		Expect(p.identity(run)).To(Equal(want))
		count, halves := tally{}, 0
		for rounds := 0; count[inFold] < kills()/4; rounds++ {
			Expect(rounds).To(BeNumerically("<", 20*kills()), "folds end before they can be killed")
			run := fresh(fmt.Sprintf("fold-%d", rounds))
			if _, hit := p.kill(within(fold), "run", "--resume", run); hit {
				count[p.phase(run)]++
				if names := p.files(run); len(names) != len(full) || len(p.temporaries(run)) > 0 {
					halves++ // the fold had begun to write
				}
			}
			resume(p, run, fold, count)
			Expect(p.files(run)).To(HaveLen(4))
			Expect(p.identity(run)).To(Equal(want), "round %d", rounds)
			Expect(os.RemoveAll(p.path(run))).To(Succeed())
		}
		p.expectClean()
		AddReportEntry("folds", count.String()+fmt.Sprintf("  %5d of them when files were half written\n", halves))
		if kills() >= 100 {
			Expect(halves).To(BeNumerically(">", 0))
		}
	})

	It("ends a recording anywhere: no cassette is broken, and it goes on to the same bytes", func() {
		reference := manyProject()
		reference.succeed("record", "many.yaml", reference.emulate("script.yaml").upstream(), "--recorded-at", recordedAt)
		want, identity := reference.files("fixtures"), reference.identity(reference.last())
		Expect(want).To(HaveLen(many))
		count := tally{}
		for rounds := 0; count[inRecord] < kills()*3/20; rounds++ {
			Expect(rounds).To(BeNumerically("<", 20*kills()), "recordings end before they can be killed")
			p := manyProject()
			e := p.emulate("script.yaml")
			s := p.start(p.command("record", "many.yaml", e.upstream(), "--recorded-at", recordedAt))
			run := p.whenRunning(s, 0)
			for range 10 {
				time.Sleep(within(150 * time.Millisecond))
				_ = s.cmd.Process.Kill() // it may have ended
				if o := p.end(s); o.signal == 0 {
					break
				}
				if p.phase(run) == inItems {
					count[inRecord]++
				} else {
					count[p.phase(run)]++
				}
				whole := 0
				for file, text := range p.files("fixtures") {
					if !temporary.MatchString(file) {
						Expect(text).To(Equal(want[file]), "%s is not whole", file)
						whole++
					}
				}
				Expect(whole).To(BeNumerically(">=", p.journalled(run)), "what the journal holds has its cassette")
				s = p.start(p.command("run", "--resume", run))
			}
			o := p.end(s)
			Expect(o.code).To(Equal(0), "%s", o)
			expectSameFiles(p.files("fixtures"), want)
			Expect(p.files(run)).To(HaveLen(4))
			Expect(p.identity(run)).To(Equal(identity))
			p.expectClean()
			o = p.succeed("cassette", "verify", "many.yaml")
			Expect(o.stdout).To(ContainSubstring("300 fresh, 0 stale, 0 missing, 0 orphaned"))
		}
		AddReportEntry("recordings", count.String())
	})

	It("ends a merge anywhere, and it is made again with the same bytes", func() {
		p, want, _ := undisturbed()
		args := []string{"merge"}
		for i := range 4 {
			before := p.runs()
			p.succeed("run", "many.yaml", "--shard", fmt.Sprintf("%d/4", i+1))
			args = append(args, p.newRun(before))
		}
		shards := map[string]string{}
		for _, shard := range args[1:] {
			for name, text := range p.files(shard) {
				shards[shard+"/"+name] = text
			}
		}
		var took time.Duration
		for range 2 {
			began := time.Now()
			p.succeed(args...)
			took = time.Since(began)
			Expect(p.identity(p.last())).To(Equal(want))
		}
		count := tally{}
		for rounds := 0; count[inMerge] < kills()/5; rounds++ {
			Expect(rounds).To(BeNumerically("<", 20*kills()), "merges end before they can be killed")
			before := p.runs()
			_, hit := p.kill(within(took), args...)
			left, err := filepath.Glob(p.path(".echoeval/runs/2*/merging.tmp"))
			Expect(err).NotTo(HaveOccurred())
			switch {
			case !hit:
			case len(left) == 0:
				count[atStart]++
			default:
				count[inMerge]++
			}
			killed := p.newRun(before)
			before = p.runs()
			p.succeed(args...)
			again := p.newRun(before)
			Expect(p.files(again)).To(HaveLen(4))
			Expect(p.identity(again)).To(Equal(want), "round %d", rounds)
			for name, text := range shards {
				Expect(p.read(name)).To(Equal(text), "a shard was touched")
			}
			if killed != "" {
				// What it left is a run like any other, and can be finished too.
				p.complete("run", "--resume", killed)
				Expect(p.files(killed)).To(HaveLen(4))
				Expect(p.identity(killed)).To(Equal(want), "round %d", rounds)
				Expect(os.RemoveAll(p.path(killed))).To(Succeed())
			}
			Expect(os.RemoveAll(p.path(again))).To(Succeed())
		}
		p.expectClean()
		AddReportEntry("merges", count.String())
	})
})

// temporaries are the files of a folder that are being written, or were.
func (p *project) temporaries(folder string) []string {
	GinkgoHelper()
	var found []string
	for name := range p.files(folder) {
		if strings.HasSuffix(name, ".tmp") || temporary.MatchString(name) {
			found = append(found, name)
		}
	}
	return found
}

// whenJournalled waits until the last item of a new run is in its journal, or until the process has ended.
func (p *project) whenJournalled(s *process, before []string) {
	GinkgoHelper()
	deadline := time.Now().Add(patience)
	for {
		found, err := filepath.Glob(p.path(".echoeval/runs/*/journal.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		for _, file := range found {
			rel, err := filepath.Rel(p.dir, filepath.Dir(file))
			Expect(err).NotTo(HaveOccurred())
			if !strings.HasPrefix(filepath.Base(rel), "latest") && !slices.Contains(before, rel) && p.journalled(rel) >= many {
				return
			}
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return
		case <-time.After(time.Millisecond):
		}
		Expect(time.Now().Before(deadline)).To(BeTrue(), "the run does not end")
	}
}

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
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		// Two signals of one kind that wait at the same time are one. The program may have ended at the first.
		time.Sleep(5 * time.Millisecond)
		if err := s.cmd.Process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
			Expect(err).NotTo(HaveOccurred())
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
