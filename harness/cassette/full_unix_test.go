//go:build unix

package cassette_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

// fullPath tells the test binary, run again by TestFullDisk, to save once where no file may grow beyond a few KB. To a program that is what a full disk looks like.
const fullPath = "ECHOEVAL_TEST_FULL"

func init() { children[fullPath] = saveOnFullDisk }

var _ = Describe("what is no regular file", func() {
	It("is refused instead of waited for", func() {
		path := filepath.Join(GinkgoT().TempDir(), "pipe.yaml")
		Expect(syscall.Mkfifo(path, 0o600)).To(Succeed())
		_, err := cassette.Load(path, "fixtures/pipe.yaml")
		Expect(err).To(MatchError(ContainSubstring("is no regular file")))
	})
})

func saveOnFullDisk(path string) int {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8 << 10, Max: 8 << 10}); err != nil {
		fmt.Println(err)
		return 2
	}
	if err := cassette.Save(path, "c.yaml", version(1)); err != nil {
		fmt.Print(err)
		return 1
	}
	return 0
}

func TestFullDisk(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "c.yaml")
	g.Expect(cassette.Save(path, "c.yaml", version(0))).To(Succeed())
	before, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), fullPath+"="+path)
	out, err := child.Output()
	g.Expect(err).To(HaveOccurred())
	g.Expect(child.ProcessState.ExitCode()).To(Equal(1))
	g.Expect(string(out)).To(Equal("c.yaml: saving: file too large"))
	g.Expect(os.ReadFile(path)).To(Equal(before))
	g.Expect(os.ReadDir(filepath.Dir(path))).To(HaveLen(1))
}
