package main_test

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("checks in other programs, on Linux", func() {
	It("are started by a run and not by validate, init or completion", func() {
		p := checkedBy("{command: [./word.sh], threshold: 0.5}")
		p.script("word.sh", word)
		for _, args := range [][]string{{"validate", "evals/d.yaml"}, {"cassette", "ls", "evals/d.yaml"}, {"__complete", "run", "evals/d.yaml", "--item", ""}, {"init", "demo"}, {"doctor"}, {"providers", "ls"}} {
			o := p.end(p.start(sandboxed(p.command(args...))))
			Expect(o.signal).To(BeZero(), "%v\n%s", args, o)
			Expect(o.code).To(Equal(0), "%v\n%s", args, o)
		}
		o := p.end(p.start(sandboxed(p.command("run", "--mode", "live", "evals/d.yaml"))))
		Expect(o.signal).To(Equal(syscall.SIGSYS), "%s", o)
		p.sweep()
		p.succeed("run", "--mode", "live", "evals/d.yaml")
	})

	It("end with the command, even where that is killed", func() {
		p := checkedBy("{command: [./slow.sh]}", "{command: {run: [./slow.sh], workers: lines}}")
		p.script("slow.sh", "echo $$ >>pids; exec sleep 600")
		s := p.start(p.command("run", "--mode", "live", "evals/d.yaml", "--concurrency", "2"))
		var pids []int
		Eventually(func() int {
			pids = pids[:0]
			for _, line := range strings.Fields(p.files("evals")["pids"]) {
				pid, err := strconv.Atoi(line)
				Expect(err).NotTo(HaveOccurred())
				pids = append(pids, pid)
			}
			return len(pids)
		}).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Equal(2))
		Expect(s.cmd.Process.Kill()).To(Succeed())
		p.end(s)
		for _, pid := range pids {
			Eventually(func() bool { return alive(pid) }).WithTimeout(5 * time.Second).Should(BeFalse())
		}
	})
})
