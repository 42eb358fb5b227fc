//go:build unix

package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/program"
)

func TestProgram(t *testing.T) { suite.Run(t, "program") }

// quick leaves a busy machine enough time and keeps the specs short that wait for the limit.
var quick = program.Limits{Time: 700 * time.Millisecond, Output: 1 << 20}

// limitsFor are long where a program ends by itself, so that a busy machine changes nothing, and quick where it is expected to hang.
func limitsFor(want string) program.Limits {
	if strings.Contains(want, "did not answer") {
		return quick
	}
	return program.Limits{Time: time.Minute, Output: 1 << 20}
}

// machine is a project folder with the programs of one spec.
type machine struct {
	root string
	pool *program.Pool
}

func newMachine(limits program.Limits, environ ...string) *machine {
	GinkgoHelper()
	root, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(filepath.Join(root, "checks"), 0o755)).To(Succeed())
	m := &machine{root: root}
	m.pool = program.NewPool(program.Options{
		Root: root, Environ: append([]string{"PATH=" + os.Getenv("PATH")}, environ...), Limits: limits,
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2-hunter2", "[secret]") },
	})
	DeferCleanup(m.pool.Close)
	return m
}

// write makes checks/name executable, a script of the shell.
func (m *machine) write(name, script string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(m.root, "checks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)).To(Succeed())
}

// shell is a command that runs a script once.
func shell(script string) program.Command {
	return program.Command{Dir: "checks", Run: []string{"sh", "-c", script}}
}

func worker(script string) program.Command {
	c := shell(script)
	c.Lines = true
	return c
}

func (m *machine) run(c program.Command, question string) (string, error) {
	out, err := m.pool.Run(context.Background(), c, []byte(question))
	return string(out), err
}

// echo answers each line with its process id and the line.
const echo = `while IFS= read -r line; do echo "$$ $line"; done`

// pidOf takes the process id from an answer of echo.
func pidOf(answer string) int {
	GinkgoHelper()
	pid, err := strconv.Atoi(strings.Fields(answer)[0])
	Expect(err).NotTo(HaveOccurred())
	return pid
}

// alive reports whether a process exists that is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// expectGone waits until a process whose id a program wrote into a file has ended.
func (m *machine) expectGone(file string) {
	GinkgoHelper()
	var text []byte
	Eventually(func() (string, error) {
		var err error
		text, err = os.ReadFile(filepath.Join(m.root, "checks", file))
		return strings.TrimSpace(string(text)), err
	}).WithTimeout(30 * time.Second).ShouldNot(BeEmpty())
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() bool { return alive(pid) }).WithTimeout(5 * time.Second).Should(BeFalse())
}

var _ = Describe("a program that runs once", func() {
	It("is told on standard input, starts in its folder and answers on standard output", func() {
		m := newMachine(program.DefaultLimits)
		m.write("here", `read line; echo "$line in $(basename "$(pwd)") with $1"`)
		Expect(m.run(program.Command{Dir: "checks", Run: []string{"./here", "a b; $HOME"}}, "question")).To(Equal("question in checks with a b; $HOME\n"))
		Expect(m.run(program.Command{Dir: ".", Run: []string{"checks/here", ""}}, "x")).To(HavePrefix("x in "))
	})

	It("takes a large question and gives a large answer", func() {
		m := newMachine(program.Limits{Time: 20 * time.Second, Output: 1 << 20})
		question := strings.Repeat("é", 400_000)
		Expect(m.run(shell("cat"), question)).To(Equal(question))
	})

	It("gets neither keys nor proxies", func() {
		m := newMachine(program.DefaultLimits, "OPENAI_API_KEY=hunter2-hunter2", "HTTPS_PROXY=http://proxy.example", "https_proxy=http://proxy.example", "HOME=/somewhere", "LANG=de_DE", "ECHOEVAL_MODE=x", "TMPDIR=")
		out, err := m.run(shell("env"), "")
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for line := range strings.Lines(out) {
			name, _, _ := strings.Cut(line, "=")
			if name != "_" && name != "PWD" && name != "SHLVL" && name != "OLDPWD" { // the shell's own
				names = append(names, strings.TrimSpace(line))
			}
		}
		Expect(names).To(ConsistOf("PATH="+os.Getenv("PATH"), "HOME=/somewhere", "LANG=C.UTF-8", "TZ=UTC"))
	})

	DescribeTable("is not believed when it", func(script, want string) {
		m := newMachine(limitsFor(want))
		out, err := m.run(shell(script), "question")
		Expect(out).To(BeEmpty())
		var fault *program.Error
		Expect(errors.As(err, &fault)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(MatchRegexp(want))
		Expect(err.Error()).NotTo(ContainSubstring(m.root))
	},
		Entry("crashes", `echo '{"score":1}'; echo boom >&2; exit 3`, "^the program ended with code 3: boom$"),
		Entry("is ended by a signal", `kill -SEGV $$`, `^the program was ended by a signal \(segmentation fault`),
		Entry("hangs", `sleep 600`, "^the program did not answer within 700ms$"),
		Entry("hangs with its output closed", `exec >&- 2>&-; sleep 600`, "did not answer within"),
		Entry("hangs and ignores signals", `trap '' TERM INT HUP; sleep 600; sleep 600`, "did not answer within"),
		Entry("floods its output", `yes`, "^the program wrote more than 1 MiB$"),
		Entry("floods its output without a line end", `head -c 100000000 /dev/zero`, "^the program wrote more than 1 MiB$"),
		Entry("floods its errors", `yes 1>&2`, "did not answer within 700ms: …?\\s*y\\ny"),
		Entry("is not there", `exec ./absent`, "ended with code 127"),
	)

	It("may end without reading", func() {
		m := newMachine(program.DefaultLimits)
		for range 20 {
			Expect(m.run(shell(`exec <&-; echo early`), strings.Repeat("x", 1<<20))).To(Equal("early\n"))
		}
	})

	It("leaves no children behind, whether it ends or hangs", func() {
		m := newMachine(program.Limits{Time: 3 * time.Second, Output: 1 << 20})
		Expect(m.run(shell(`sleep 600 & echo $! >child; echo done`), "")).To(Equal("done\n"))
		m.expectGone("child")
		_, err := m.run(shell(`(sleep 600 & echo $! >grandchild; wait) & sleep 600`), "")
		Expect(err).To(MatchError(ContainSubstring("did not answer")))
		m.expectGone("grandchild")
	})

	It("survives a program that forks and forks", func() {
		m := newMachine(program.Limits{Time: 3 * time.Second, Output: 1 << 20})
		// Each notes its id and has two children; seven generations are enough to see whether all of them end.
		m.write("bomb", `echo $$ >>pids; [ "$1" -gt 6 ] && sleep 600; ./bomb $(($1+1)) & ./bomb $(($1+1)) & wait`)
		_, err := m.run(program.Command{Dir: "checks", Run: []string{"./bomb", "0"}}, "")
		Expect(err).To(MatchError(ContainSubstring("did not answer")))
		text, err := os.ReadFile(filepath.Join(m.root, "checks", "pids"))
		Expect(err).NotTo(HaveOccurred())
		pids := strings.Fields(string(text))
		Expect(len(pids)).To(BeNumerically(">", 3))
		for _, text := range pids {
			pid, err := strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() bool { return alive(pid) }).WithTimeout(5 * time.Second).Should(BeFalse())
		}
	})

	It("ends with the context, with its cause", func() {
		m := newMachine(program.DefaultLimits)
		cause := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			for {
				// The shell makes the file before it writes into it.
				if pid, err := os.ReadFile(filepath.Join(m.root, "checks", "child")); err == nil && len(pid) > 0 {
					cancel(cause)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		_, err := m.pool.Run(ctx, shell(`sleep 600 & echo $! >child; wait`), nil)
		Expect(err).To(Equal(cause))
		m.expectGone("child")
		_, err = m.pool.Run(ctx, shell(`echo x`), nil)
		Expect(err).To(Equal(cause))
	})

	It("is heard on standard error: the end, redacted, without the places of this machine", func() {
		m := newMachine(program.DefaultLimits)
		_, err := m.run(shell(`echo "File \"$PWD/short.py\", line 3 of /usr/lib/python3/json/decoder.py: hunter2-hunter2" >&2; exit 1`), "")
		Expect(err).To(MatchError(`the program ended with code 1: File "checks/short.py", line 3 of decoder.py: [secret]`))
		_, err = m.run(shell(`seq 1 5000 >&2; printf 'end \377' >&2; exit 1`), "")
		var fault *program.Error
		Expect(errors.As(err, &fault)).To(BeTrue())
		Expect(len(fault.Stderr)).To(And(BeNumerically(">", 4000), BeNumerically("<=", 4<<10+8)))
		Expect(fault.Stderr).To(And(MatchRegexp(`^\d{4}\n\d{4}\n`), HaveSuffix("5000\nend \ufffd")))
		Expect([]rune(err.Error())).To(HaveLen(len("the program ended with code 1: ") + 1 + 400))
		Expect(err.Error()).To(HaveSuffix("5000\nend \ufffd"))
	})

	It("says why it cannot be started", func() {
		m := newMachine(program.DefaultLimits)
		Expect(os.WriteFile(filepath.Join(m.root, "checks", "data"), []byte("\x00\x01 no program"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(m.root, "checks", "orphan"), []byte("#!/nowhere/python9\n"), 0o755)).To(Succeed())
		for name, want := range map[string]string{"./data": "cannot execute it", "./orphan": "its first line names", "./absent": "there is no program ./absent"} {
			_, err := m.run(program.Command{Dir: "checks", Run: []string{name}}, "")
			Expect(err).To(MatchError(And(HavePrefix("the program cannot be started: "), ContainSubstring(want))))
		}
	})
})

var _ = Describe("a worker", func() {
	It("stays and answers a line for each line", func() {
		m := newMachine(program.DefaultLimits)
		var pids []int
		for i := range 50 {
			out, err := m.run(worker(echo), fmt.Sprint("question ", i))
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(HaveSuffix(fmt.Sprint(" question ", i)))
			pids = append(pids, pidOf(out))
		}
		for _, pid := range pids {
			Expect(pid).To(Equal(pids[0]))
		}
		m.pool.Close()
		Expect(alive(pids[0])).To(BeFalse())
	})

	It("is asked by one at a time, as many as ask at once", func() {
		m := newMachine(program.DefaultLimits)
		var mu sync.Mutex
		pids := map[int]int{}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				defer GinkgoRecover()
				for j := range 20 {
					out, err := m.run(worker(echo), fmt.Sprint(i, "-", j))
					Expect(err).NotTo(HaveOccurred())
					Expect(out).To(HaveSuffix(fmt.Sprint(" ", i, "-", j)))
					mu.Lock()
					pids[pidOf(out)]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		Expect(len(pids)).To(And(BeNumerically(">=", 1), BeNumerically("<=", 8)))
	})

	It("is not shared by other commands", func() {
		m := newMachine(program.DefaultLimits)
		first, err := m.run(worker(echo), "x")
		Expect(err).NotTo(HaveOccurred())
		second, err := m.run(worker(echo+" # another"), "x")
		Expect(err).NotTo(HaveOccurred())
		Expect(pidOf(first)).NotTo(Equal(pidOf(second)))
	})

	It("answers a large line", func() {
		m := newMachine(program.Limits{Time: 20 * time.Second, Output: 1 << 20})
		question := strings.Repeat("x", 1<<20)
		out, err := m.run(worker("cat"), question)
		Expect(err).NotTo(HaveOccurred())
		Expect(out == question).To(BeTrue())
	})

	DescribeTable("is not believed when it", func(script, want string) {
		m := newMachine(limitsFor(want))
		for range 2 {
			out, err := m.run(worker(script), "question")
			Expect(out).To(BeEmpty())
			Expect(err).To(MatchError(MatchRegexp(want)))
		}
	},
		Entry("crashes", `echo boom >&2; exit 3`, "^the program ended with code 3 in place of an answer: boom$"),
		Entry("ends without an answer", `cat >/dev/null & exit 0`, "ended with code 0 in place of an answer"),
		Entry("hangs", `read line; sleep 600`, "did not answer within 700ms .a worker reads a line"),
		Entry("waits for the end of its input", `cat >/dev/null; echo late`, "did not answer within"),
		Entry("writes no line end", `read line; printf answer; sleep 600`, "did not answer within"),
		Entry("closes its output", `exec >&-; sleep 600`, "closed its output in place of an answer"),
		Entry("writes two lines", `while read line; do printf 'one\ntwo\n'; done`, "wrote more than one line"),
		Entry("floods its output", `yes ''`, "did not answer within|wrote more than"),
		Entry("floods a line", `read line; head -c 100000000 /dev/zero`, "wrote more than 1 MiB"),
	)

	It("may crash in one case without harm to the next", func() {
		m := newMachine(program.DefaultLimits)
		c := worker(`while read -r line; do [ "$line" = bad ] && { echo "bad line" >&2; exit 1; }; echo "$$ $line"; done`)
		first, err := m.run(c, "good")
		Expect(err).NotTo(HaveOccurred())
		_, err = m.run(c, "bad")
		Expect(err).To(MatchError("the program ended with code 1 in place of an answer: bad line"))
		second, err := m.run(c, "good")
		Expect(err).NotTo(HaveOccurred())
		Expect(pidOf(second)).NotTo(Equal(pidOf(first)))
	})

	It("may end after each answer: the next one is fresh, whatever was asked before", func() {
		m := newMachine(program.DefaultLimits)
		for i := range 10 {
			Expect(m.run(worker(`read -r line; echo "got $line"`), fmt.Sprint(i))).To(Equal(fmt.Sprint("got ", i)))
		}
	})

	It("is ended when it speaks unasked", func() {
		m := newMachine(program.DefaultLimits)
		c := worker(`while read -r line; do echo "$$ $line"; sleep 0.05; echo stray; done`)
		first, err := m.run(c, "a")
		Expect(err).NotTo(HaveOccurred())
		time.Sleep(300 * time.Millisecond)
		second, err := m.run(c, "b")
		Expect(err).NotTo(HaveOccurred())
		Expect(second).To(HaveSuffix(" b"))
		Expect(pidOf(second)).NotTo(Equal(pidOf(first)))
	})

	It("may answer without reading", func() {
		m := newMachine(program.DefaultLimits)
		for range 3 {
			Expect(m.run(worker(`echo early; sleep 600`), strings.Repeat("x", 1<<20))).To(Equal("early"))
		}
	})

	It("is killed with its children when the pool closes, even where it ignores the end of its input", func() {
		m := newMachine(program.DefaultLimits)
		out, err := m.run(worker(`sleep 600 & echo $! >child; trap '' TERM; `+echo+`; while :; do sleep 600; done`), "x")
		Expect(err).NotTo(HaveOccurred())
		m.pool.Close()
		Expect(alive(pidOf(out))).To(BeFalse())
		m.expectGone("child")
	})
})

var _ = Describe("finding a program", func() {
	It("looks in the folder of the file and on the PATH, and starts nothing", func() {
		m := newMachine(program.DefaultLimits)
		m.write("tone", `touch ../started`)
		Expect(os.WriteFile(filepath.Join(m.root, "checks", "plain.py"), nil, 0o644)).To(Succeed())
		Expect(m.pool.Find("checks", "./tone")).To(Equal(filepath.Join(m.root, "checks", "tone")))
		Expect(m.pool.Find(".", "checks/tone")).To(Equal(filepath.Join(m.root, "checks", "tone")))
		Expect(m.pool.Find("checks", "sh")).To(HaveSuffix("/sh"))
		for _, x := range []struct{ dir, name, message, hint string }{
			{"checks", "tone", `there is no program "tone" on the PATH`, "./tone"},
			{"checks", "no-such-program-here", "on the PATH", "install it"},
			{"checks", "./absent", "there is no program ./absent", "relative to the folder"},
			{".", "./tone", "there is no program ./tone", "relative to the folder"},
			{"checks", "./plain.py", "./plain.py is not executable", "chmod +x ./plain.py"},
			{".", "./checks", "there is no program ./checks", ""},
		} {
			for range 2 { // the second time it is remembered
				_, err := m.pool.Find(x.dir, x.name)
				Expect(err).To(MatchError(ContainSubstring(x.message)), x.name)
				Expect(strings.Join(failure.Hints(err), "\n")).To(ContainSubstring(x.hint))
				Expect(err.Error()).NotTo(ContainSubstring(m.root))
			}
		}
		Expect(filepath.Join(m.root, "started")).NotTo(BeAnExistingFile())
	})

	It("does not trust relative entries of the PATH", func() {
		root := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(root, "tool"), []byte("#!/bin/sh\n"), 0o755)).To(Succeed())
		pool := program.NewPool(program.Options{Root: root, Environ: []string{"PATH=.::bin"}})
		_, err := pool.Find(".", "tool")
		Expect(err).To(MatchError(ContainSubstring("on the PATH")))
	})
})

func BenchmarkOnce(b *testing.B) {
	benchmark(b, program.Command{Dir: ".", Run: []string{"sh", "-c", "read -r line; echo $line"}})
}

func BenchmarkWorker(b *testing.B) {
	benchmark(b, program.Command{Dir: ".", Run: []string{"sh", "-c", "while read -r line; do echo $line; done"}, Lines: true})
}

func benchmark(b *testing.B, c program.Command) {
	pool := program.NewPool(program.Options{Root: b.TempDir(), Environ: os.Environ()})
	defer pool.Close()
	question := bytes.Repeat([]byte("x"), 2000)
	for b.Loop() {
		if _, err := pool.Run(b.Context(), c, question); err != nil {
			b.Fatal(err)
		}
	}
}
