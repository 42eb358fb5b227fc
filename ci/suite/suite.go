// Package suite starts every Ginkgo suite of the project the same way, so that none of them can pass by testing nothing: specs run in random order, an empty suite fails, a pending spec fails, and a skipped spec fails unless its reason is one
// of those listed in [AllowedSkips].
//
// A suite file holds one function:
//
//	func TestCassette(t *testing.T) { suite.Run(t, "cassette") }
//
// Only test files import this package.
package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// AllowedSkips lists the reasons for which a spec may be skipped, as prefixes of the skip message. Each names something that the machine lacks and that no test can install by itself. With CI set none of them is allowed, but for the recorded traffic where ECHOEVAL_WITHOUT_SHARED_DATA says that it was not handed out; .ci/run sets that, and says so.
var AllowedSkips = []string{
	"no recorded traffic:",
	"no python3:",
	"no chromium:",
	"no JavaScript clients:",
}

// Run runs the specs that the calling package has defined.
//
// It must be called once per package, from the package's only Test function that starts Ginkgo.
func Run(t *testing.T, name string) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	config, reporter := ginkgo.GinkgoConfiguration()
	config.RandomizeAllSpecs = true
	config.FailOnPending = true
	config.FailOnEmpty = true
	var skips []string
	ginkgo.ReportAfterSuite("no unlisted skips", func(report types.Report) {
		for _, spec := range report.SpecReports {
			if focused(config) && spec.Failure.Message == "" {
				continue // not asked for
			}
			if spec.State.Is(types.SpecStateSkipped) && spec.LeafNodeType.Is(types.NodeTypeIt) && !allowed(spec.Failure.Message) {
				skips = append(skips, spec.FullText()+": "+spec.Failure.Message)
			}
		}
	})
	if !ginkgo.RunSpecs(t, name, config, reporter) {
		return
	}
	for _, skip := range skips {
		t.Errorf("skipped for a reason that is not listed in ci/suite: %s", skip)
	}
}

// focused says that someone asked for some specs only, on the command line.
func focused(config types.SuiteConfig) bool {
	return len(config.FocusStrings)+len(config.SkipStrings)+len(config.FocusFiles)+len(config.SkipFiles) > 0
}

func allowed(reason string) bool {
	if os.Getenv("CI") != "" {
		return os.Getenv("ECHOEVAL_WITHOUT_SHARED_DATA") != "" && strings.HasPrefix(reason, AllowedSkips[0])
	}
	for _, prefix := range AllowedSkips {
		if strings.HasPrefix(reason, prefix) {
			return true
		}
	}
	return false
}

// Root returns the folder of the project, the one that holds go.mod.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// SharedData returns the path of a file or folder of the recorded traffic that is handed out beside the project: $ECHOEVAL_SHARED_DATA, or ../shared/data as seen from the project's folder.
// Where that is absent the spec is skipped, visibly and with the reason.
func SharedData(elem ...string) string {
	ginkgo.GinkgoHelper()
	dir := os.Getenv("ECHOEVAL_SHARED_DATA")
	if dir == "" {
		dir = filepath.Join(Root(), "..", "shared", "data")
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		ginkgo.Skip("no recorded traffic: " + filepath.Join(elem...) + " is absent; set ECHOEVAL_SHARED_DATA to the folder that holds it")
	}
	return path
}

// Update reports whether golden files are to be rewritten instead of compared. `make golden` sets it.
func Update() bool { return os.Getenv("ECHOEVAL_GOLDEN") == "update" }

// Golden compares got with the file testdata/name of the calling package, or rewrites that file when [Update] holds.
func Golden(name string, got []byte) {
	ginkgo.GinkgoHelper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if Update() {
		gomega.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(gomega.Succeed())
		gomega.Expect(os.WriteFile(path, got, 0o644)).To(gomega.Succeed())
		return
	}
	want, err := os.ReadFile(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "run `make golden` to write it")
	gomega.Expect(string(got)).To(gomega.Equal(string(want)), "golden file %s; run `make golden` if the change is meant", path)
}

// Documented expects a row of a table in a page of docs with these shares, as percentages of one decimal: what simulations found. Half a point is what another processor's rounding may change. `make bench` rewrites the row.
func Documented(page, name string, shares ...float64) {
	ginkgo.GinkgoHelper()
	page = filepath.Join(Root(), "docs", page)
	text, err := os.ReadFile(page)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*$`)
	old := row.Find(text)
	gomega.Expect(old).NotTo(gomega.BeNil(), "%s has no row %q", page, name)
	line := "| " + name + " |"
	for _, share := range shares {
		line += fmt.Sprintf(" %.1f %% |", 100*share)
	}
	if Update() {
		gomega.Expect(os.WriteFile(page, row.ReplaceAllLiteral(text, []byte(line)), 0o644)).To(gomega.Succeed())
		return
	}
	cells := strings.Split(strings.Trim(string(old), "| "), "|")[1:]
	gomega.Expect(cells).To(gomega.HaveLen(len(shares)), string(old))
	for i, share := range shares {
		var shown float64
		_, err := fmt.Sscanf(strings.TrimSpace(cells[i]), "%f %%", &shown)
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), string(old))
		gomega.Expect(100*share).To(gomega.BeNumerically("~", shown, 0.5), "%s: run make bench if the change is meant", name)
	}
}
