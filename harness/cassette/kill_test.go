package cassette_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

// savePath tells the test binary, run again by TestKillWhileSaving, to save for ever.
const savePath = "ECHOEVAL_TEST_SAVE"

func version(n int) *cassette.File {
	f := sample()
	f.Header.Item = fmt.Sprintf("item-%d", n)
	f.Interactions[0].Response.Body = strings.Repeat(f.Header.Item+" and more of it\n", 5000)
	return f
}

// children are what the test binary does when it is run again with one of these variables set: the value is its argument, the result its exit code.
var children = map[string]func(arg string) int{savePath: saveForEver}

func TestMain(m *testing.M) {
	for name, run := range children {
		if arg := os.Getenv(name); arg != "" {
			os.Exit(run(arg))
		}
	}
	os.Exit(m.Run())
}

func saveForEver(path string) int {
	files := []*cassette.File{version(0), version(1)}
	for n := 0; ; n++ {
		if err := cassette.Save(path, "c.yaml", files[n%2]); err != nil {
			fmt.Println(err)
			return 1
		}
		if n == 0 {
			fmt.Println("saved")
		}
	}
}

func TestKillWhileSaving(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "c.yaml")
	want := map[string]bool{}
	for n := range 2 {
		data, err := cassette.Encode(version(n))
		g.Expect(err).NotTo(HaveOccurred())
		want[string(data)] = true
	}
	seen := map[string]bool{}
	for round := range 10 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), savePath+"="+path)
		out, err := child.StdoutPipe()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(child.Start()).To(Succeed())
		line, err := bufio.NewReader(out).ReadString('\n')
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(line).To(Equal("saved\n"))
		time.Sleep(time.Duration(round) * 1461 * time.Microsecond) // another moment of a save each time
		g.Expect(child.Process.Kill()).To(Succeed())
		_ = child.Wait()
		data, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(want).To(HaveKey(string(data)), "round %d", round)
		seen[string(data)] = true
	}
	g.Expect(seen).NotTo(BeEmpty())
	left, err := os.ReadDir(filepath.Dir(path))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(left)).To(BeNumerically("<=", 2), "each process sweeps what the one before it left")
	for _, e := range left {
		if e.Name() == "c.yaml" {
			continue
		}
		match, err := filepath.Match(cassette.TempPattern, e.Name())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(match).To(BeTrue(), e.Name())
	}
}
