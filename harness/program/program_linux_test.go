package program_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/program"
)

var _ = Describe("a program on Linux", func() {
	It("does not wait for what has left its process group", func() {
		m := newMachine(program.DefaultLimits)
		started := time.Now()
		out, err := m.run(shell(`setsid sh -c 'echo $$ >escaped; sleep 30' & while ! [ -s escaped ]; do sleep 0.01; done; echo done`), "")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal("done\n"))
		Expect(time.Since(started)).To(BeNumerically("<", 9*time.Second))
		text, err := os.ReadFile(filepath.Join(m.root, "checks", "escaped"))
		Expect(err).NotTo(HaveOccurred())
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		Expect(err).NotTo(HaveOccurred())
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	})

	It("has limits", func() {
		m := newMachine(program.DefaultLimits)
		out, err := m.run(shell(`sleep 0.2; cat /proc/self/limits`), "")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(MatchRegexp(`Max data size +1073741824 `), MatchRegexp(`Max core file size +0 `), MatchRegexp(`Max processes +([1-7]?\d{1,3}|8[01]\d\d) `)))
		m = newMachine(program.Limits{Time: 20 * time.Second, Output: 1 << 20, Memory: 64 << 20})
		_, err = m.run(shell(`sleep 0.2; x=$(head -c 300000000 /dev/zero | tr '\0' a); echo ${#x}`), "")
		Expect(err).To(MatchError(MatchRegexp("ended (with code|by a signal)|was ended by a signal")))
	})
})
