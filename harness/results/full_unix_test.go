//go:build unix

package results_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

// inChild is set in the process whose files may not grow. The limit holds for a whole process, the go command's own log included, so that the tests below need one of their own.
const inChild = "ECHOEVAL_TEST_FULL_DISK"

// TestFullDisk runs its parts in a child process. It is plain Go: Ginkgo's suite stays in the parent.
func TestFullDisk(t *testing.T) {
	parts := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"run", fullDuringRun},
		{"fold", fullDuringFold},
		{"manifest", fullDuringManifest},
	}
	if os.Getenv(inChild) != "" {
		for _, part := range parts {
			t.Run(part.name, part.run)
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	child.Env = append(os.Environ(), inChild+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range parts {
		if !strings.Contains(string(out), "--- PASS: TestFullDisk/"+part.name) {
			t.Errorf("the part %q did not run:\n%s", part.name, out)
		}
	}
}

// limited runs f while no file may grow beyond size: the write that reaches it falls short, the next one fails, as on a full disk.
func limited(g *WithT, size uint64, f func()) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	g.Expect(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before)).To(Succeed())
	g.Expect(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max})).To(Succeed())
	defer func() { g.Expect(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)).To(Succeed()) }()
	f()
}

var crowded = resultstest.Size{Items: 200, Providers: 1, Repeats: 1}

// crowdedRun makes a run's folder with a journal of all lines.
func crowdedRun(t *testing.T, g *WithT) string {
	dir := t.TempDir()
	g.Expect(results.WriteManifest(dir, results.Manifest{Plan: crowded.Head()})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	g.Expect(err).NotTo(HaveOccurred())
	for _, p := range places(crowded) {
		g.Expect(appendPlace(journal, p)).To(Succeed())
	}
	g.Expect(journal.Close()).To(Succeed())
	return dir
}

// content returns the names and bytes of all files, as one text.
func content(g *WithT, dir string) string {
	var b strings.Builder
	for _, pattern := range []string{"*", "traces/*", "traces.tmp/*"} {
		names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil && filepath.Base(name) != "manifest.json" {
				b.WriteString(strings.TrimPrefix(name, dir) + "\n")
				b.Write(data)
			}
		}
	}
	return b.String()
}

func wholeRun(t *testing.T, g *WithT) string {
	dir := crowdedRun(t, g)
	_, err := results.Fold(dir, crowded.Plan())
	g.Expect(err).NotTo(HaveOccurred())
	return content(g, dir)
}

func fullDuringRun(t *testing.T) {
	g := NewWithT(t)
	dir, written := t.TempDir(), 0
	g.Expect(results.WriteManifest(dir, results.Manifest{Plan: crowded.Head()})).To(Succeed())
	limited(g, 64<<10, func() {
		journal, err := results.Create(dir, resultstest.Clock())
		g.Expect(err).NotTo(HaveOccurred())
		for _, p := range places(crowded) {
			if err = appendPlace(journal, p); err != nil {
				break
			}
			written++
		}
		g.Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		g.Expect(journal.Close()).NotTo(Succeed())
	})
	g.Expect(written).To(BeNumerically(">", 10))
	run, err := results.Open(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Summary.Counts.Pass + run.Summary.Counts.Fail).To(Equal(written))
	g.Expect(run.Close()).To(Succeed())

	journal, done, err := results.Resume(dir, resultstest.Clock())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done.Len()).To(Equal(written))
	for _, p := range places(crowded) {
		if !done.Has(p.index, p.column, p.repeat) {
			g.Expect(appendPlace(journal, p)).To(Succeed())
		}
	}
	g.Expect(journal.Close()).To(Succeed())
	_, err = results.Fold(dir, crowded.Plan())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content(g, dir)).To(Equal(wholeRun(t, g)))
}

func fullDuringFold(t *testing.T) {
	g := NewWithT(t)
	dir := crowdedRun(t, g)
	before := content(g, dir)
	for _, room := range []uint64{0, 1 << 10, 40 << 10, 100 << 10} {
		limited(g, room, func() {
			_, err := results.Fold(dir, crowded.Plan())
			g.Expect(failure.CodeOf(err)).To(Equal(failure.Internal), "room for %d bytes", room)
		})
		g.Expect(content(g, dir)).To(Equal(before))
	}
	_, err := results.Fold(dir, crowded.Plan())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content(g, dir)).To(Equal(wholeRun(t, g)))
}

func fullDuringManifest(t *testing.T) {
	g := NewWithT(t)
	dir := crowdedRun(t, g)
	path := filepath.Join(dir, "manifest.json")
	before, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	limited(g, 100, func() {
		err := results.WriteManifest(dir, results.Manifest{ID: "other", Plan: crowded.Head()})
		g.Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	})
	g.Expect(os.ReadFile(path)).To(Equal(before))
	_, err = os.Stat(path + ".tmp")
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
