//go:build race && unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// The other specs run a binary without the race detector, which would make each start some fifty times slower. Here the command does with it what it does with many goroutines.
var _ = Describe("the race detector", func() {
	It("finds nothing in recordings, replays and an interruption", func() {
		detecting := filepath.Join(GinkgoT().TempDir(), "echoeval")
		build := exec.Command("go", "build", "-race", "-o", detecting, "./cmd/echoeval")
		build.Dir = suite.Root()
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		with := func(p *project) *project {
			p.binary = detecting
			p.env = []string{"GORACE=atexit_sleep_ms=10"} // it would wait for a second at every end
			return p
		}

		p := with(exampleProject())
		p.recordExample("regression", "--concurrency", "16", "-v")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.succeed("record", quickstart, e.upstream(), "--concurrency", "16", "--repeat", "2", "-v", "--format", "junit")
		p.succeed("run", quickstart, "--concurrency", "16", "--repeat", "2", "-v", "--format", "json")
		p.succeed("run", quickstart, "--concurrency", "16", "--mode", "live", e.upstream())
		p.edit("datasets/agents/clerk.yaml", "never guess", "never invent")
		p.expect(4, "run", quickstart, "--concurrency", "16")
		p.succeed("record", quickstart, e.upstream(), "--stale", "--concurrency", "16", "--timeout", "30s")

		for _, how := range []string{"parallel", "tool"} {
			targets, asked := targeted("command: "+programUnderTest(how)+", workers: lines", "items: [{id: a, input: a}, {id: b, input: b}, {id: c, input: c}, {id: d, input: d}]\n")
			p = with(targets)
			p.succeed("record", "evals/d.yaml", asked.upstream(), "--concurrency", "4")
			p.succeed("run", "evals/d.yaml", "--concurrency", "4")
		}

		p = with(recordMany())
		s := p.start(p.command("run", "many.yaml", "--concurrency", "16", "-v"))
		run := p.whenRunning(s, 20)
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(p.await(s).code).To(Equal(130))
		p.succeed("run", "--resume", run, "--concurrency", "16")
	})
})
