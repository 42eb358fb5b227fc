package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestArchtest(t *testing.T) { suite.Run(t, "archtest") }

// project is read once and only read by the specs.
var project = sync.OnceValues(func() (*Tree, error) { return Load(os.DirFS(suite.Root())) })

var _ = Describe("the project", func() {
	for _, rule := range Rules {
		It("keeps the rule "+rule.Name, func() {
			tree, err := project()
			Expect(err).NotTo(HaveOccurred())
			looked, found := rule.Check(tree)
			AddReportEntry(rule.Name, fmt.Sprintf("looked at %d", looked), ReportEntryVisibilityFailureOrVerbose)
			Expect(looked).To(BeNumerically(">", 0), "the rule looked at nothing")
			expectNone(found, rule.Why)
		})
	}

	It("has Go files in every layer", func() {
		tree, err := project()
		Expect(err).NotTo(HaveOccurred())
		files := map[string]int{}
		for _, file := range tree.Go {
			if !file.Test {
				files[layer(file.Dir())]++
			}
		}
		for in := range direction {
			Expect(files[in]).To(BeNumerically(">", 0), "Go files of %s", in)
		}
	})

	It("links no library of tests into the command", func() {
		deps := func(name string) []string {
			list := exec.Command("go", "list", "-deps", name)
			list.Dir = suite.Root()
			out, err := list.Output()
			Expect(err).NotTo(HaveOccurred())
			return strings.Fields(string(out))
		}
		linked := func(packages []string) []string {
			return slices.DeleteFunc(packages, func(p string) bool {
				return !slices.ContainsFunc(testOnly, func(library string) bool { return below(p, library) })
			})
		}
		Expect(linked(deps("./cmd/echoeval"))).To(BeEmpty())
		Expect(linked(deps("./cmd/echoeval/evaltest"))).To(ContainElements("github.com/onsi/ginkgo/v2", "github.com/onsi/gomega"), "nothing was looked at")
	})

	It("names only packages that serve tests", func() {
		for _, dir := range forTests {
			Expect(filepath.Join(suite.Root(), dir)).To(BeADirectory())
		}
	})

	It("uses every library where it may", func() {
		tree, err := project()
		Expect(err).NotTo(HaveOccurred())
		var idle []string
		for _, l := range libraries {
			for _, dir := range l.dirs {
				used := slices.ContainsFunc(tree.Go, func(file *GoFile) bool {
					if file.Test || !below(file.Dir(), dir) {
						return false
					}
					for importPath := range file.imports {
						if below(importPath, l.path) {
							return true
						}
					}
					return false
				})
				if !used {
					idle = append(idle, l.path+" in "+dir)
				}
			}
		}
		Expect(idle).To(BeEmpty(), "allowed and not used: take these out of the list")
	})
})

// expectNone fails with one line for each violation.
func expectNone(found []Violation, why string) {
	GinkgoHelper()
	var b strings.Builder
	for _, v := range found {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	if b.Len() > 0 {
		Fail("broken, although " + why + ":\n" + b.String())
	}
}

// breach is a tree that breaks one rule, and where.
type breach struct {
	rule  string
	files map[string]string
	at    string
	what  string // a part of the message
}

const house = `"example.com/house/`

var breaches = map[string]breach{
	"core knows the harness": {"import-direction",
		map[string]string{"core/a/a.go": "package a\n\nimport _ " + house + `harness/b"`}, "core/a/a.go:3", "core/a imports harness/b: core may import no other layer"},
	"core knows a provider": {"import-direction",
		map[string]string{"core/a/a.go": "package a\n\nimport _ " + house + `providers/b"`}, "core/a/a.go:3", "core/a imports providers/b"},
	"the harness knows a provider": {"import-direction",
		map[string]string{"harness/a/a.go": "package a\n\nimport _ " + house + `providers/b"`}, "harness/a/a.go:3", "harness may import core"},
	"the harness knows a report": {"import-direction",
		map[string]string{"harness/a/a.go": "package a\n\nimport _ " + house + `reports/b"`}, "harness/a/a.go:3", "harness/a imports reports/b"},
	"a provider knows the harness": {"import-direction",
		map[string]string{"providers/a/a.go": "package a\n\nimport _ " + house + `harness/b"`}, "providers/a/a.go:3", "providers may import core"},
	"a report knows a provider": {"import-direction",
		map[string]string{"reports/a/a.go": "package a\n\nimport _ " + house + `providers/b"`}, "reports/a/a.go:3", "reports may import harness, core"},
	"a report knows the command": {"import-direction",
		map[string]string{"reports/a/a.go": "package a\n\nimport _ " + house + `cmd/b"`}, "reports/a/a.go:3", "reports/a imports cmd/b"},
	"a package outside the layers": {"import-direction",
		map[string]string{"pkg/a/a.go": "package a"}, "pkg/a/a.go", "outside the layers"},

	"the command starts test suites": {"test-helpers",
		map[string]string{"cmd/a/a.go": "package main\n\nimport _ " + house + `ci/suite"`}, "cmd/a/a.go:3", "ci/suite, which serves tests only"},
	"a provider uses the conformance suite": {"test-helpers",
		map[string]string{"providers/a/a.go": "package a\n\nimport _ " + house + `providers/providertest"`}, "providers/a/a.go:3", "providers/providertest, which serves tests only"},

	"the harness uses the matchers of Go tests": {"test-helpers",
		map[string]string{"harness/a/a.go": "package a\n\nimport _ " + house + `harness/matchers"`}, "harness/a/a.go:3", "harness/matchers, which serves tests only"},
	"the command uses what runs it in Go tests": {"test-helpers",
		map[string]string{"cmd/echoeval/internal/cli/a.go": "package cli\n\nimport _ " + house + `cmd/echoeval/evaltest"`}, "cmd/echoeval/internal/cli/a.go:3", "cmd/echoeval/evaltest, which serves tests only"},

	"a vendor's SDK in the core": {"libraries",
		map[string]string{"core/a/a.go": "package a\n\nimport _ \"github.com/sashabaranov/go-openai\""}, "core/a/a.go:3", "core/a imports github.com/sashabaranov/go-openai, which belongs to providers/openai"},
	"a library that nobody listed": {"libraries",
		map[string]string{"harness/a/a.go": "package a\n\nimport _ \"example.org/left/pad\""}, "harness/a/a.go:3", "example.org/left/pad is not among the libraries"},
	"a test library in the program": {"libraries",
		map[string]string{"core/a/a.go": "package a\n\nimport _ \"github.com/onsi/gomega/format\""}, "core/a/a.go:3", "for tests only"},

	"an exit from deep code": {"process-doors",
		map[string]string{"core/a/a.go": "package a\n\nimport \"os\"\n\nfunc f() { os.Exit(1) }"}, "core/a/a.go:5", "os.Exit is used only in cmd/echoeval/main.go"},
	"the environment read under another name": {"process-doors",
		map[string]string{"harness/a/a.go": "package a\n\nimport sys \"os\"\n\nvar k = sys.Getenv(\"KEY\")"}, "harness/a/a.go:5", "os.Getenv"},
	"the arguments read in a report": {"process-doors",
		map[string]string{"reports/a/a.go": "package a\n\nimport \"os\"\n\nvar k = os.Args[0]"}, "reports/a/a.go:5", "os.Args"},
	"the machine's clock": {"process-doors",
		map[string]string{"providers/a/a.go": "package a\n\nimport \"time\"\n\nvar now = time.Now"}, "providers/a/a.go:5", "time.Now is used only in core/clock"},
	"a sleep": {"process-doors",
		map[string]string{"providers/a/a.go": "package a\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }"}, "providers/a/a.go:5", "time.Sleep is used nowhere but in tests"},
	"randomness": {"process-doors",
		map[string]string{"core/a/a.go": "package a\n\nimport \"math/rand/v2\"\n\nvar n = rand.Int()"}, "core/a/a.go:5", "rand.Int is used nowhere but in tests: a source of randomness is made from a seed"},
	"randomness of the system": {"process-doors",
		map[string]string{"core/a/a.go": "package a\n\nimport \"crypto/rand\"\n\nvar n = rand.Reader"}, "core/a/a.go:3", "crypto/rand is used nowhere but in tests"},
	"a process started": {"process-doors",
		map[string]string{"core/a/a.go": "package a\n\nimport _ \"os/exec\""}, "core/a/a.go:3", "os/exec is used only in cmd/echoeval/internal/cli, harness/program: a replay starts no process"},
	"the default transport": {"process-doors",
		map[string]string{"providers/a/a.go": "package a\n\nimport \"net/http\"\n\nvar t = http.DefaultTransport"}, "providers/a/a.go:5", "http.DefaultTransport"},
	"a client without a transport": {"process-doors",
		map[string]string{"providers/a/a.go": "package a\n\nimport \"net/http\"\n\nvar c = &http.Client{Timeout: 1}"}, "providers/a/a.go:5", "an http.Client without a Transport"},

	"no package comment": {"package-doc",
		map[string]string{"core/a/a.go": "package a"}, "core/a", "no package comment"},
	"two package comments": {"package-doc",
		map[string]string{"core/a/a.go": "// Package a is one.\npackage a", "core/a/b.go": "// Package a is two.\npackage a"}, "core/a", "more than one file"},
	"a package comment of another form": {"package-doc",
		map[string]string{"cmd/a/a.go": "// Package main runs.\npackage main"}, "cmd/a", `begin with "Command a "`},

	"a function without a comment": {"doc-comments",
		map[string]string{"core/a/a.go": "package a\n\nfunc Do() {}\n\nfunc do() {}"}, "core/a/a.go:3", "Do has no comment"},
	"a method without a comment": {"doc-comments",
		map[string]string{"core/a/a.go": "package a\n\n// T is one.\ntype T[K any] struct{}\n\ntype u struct{}\n\nfunc (u) Do() {}\n\nfunc (*T[K]) Do() {}"}, "core/a/a.go:10", "Do has no comment"},
	"a name in a group without a comment": {"doc-comments",
		map[string]string{"core/a/a.go": "package a\n\n// All are these.\nconst (\n\tA = 1\n)\n\nvar (\n\tB = 1 // is documented\n\tC = 2\n)"}, "core/a/a.go:10", "C has no comment"},

	"a home folder": {"machine-paths",
		map[string]string{"docs/a.md": "one\nsee /home/ana/echoeval\n"}, "docs/a.md:2", "/home/ana/echoeval"},
	"a home folder on Windows": {"machine-paths",
		map[string]string{"core/a/a.txt": `path = "C:\Users\ana\x"`}, "core/a/a.txt:1", `C:\Users\ana\x`},
	"the module proxy": {"registry-hosts",
		map[string]string{"Makefile": "x:\n\tGOPROXY=https://proxy.golang.org go build\n"}, "Makefile:2", "proxy.golang.org"},

	"a merge that was not finished": {"merge-marks",
		map[string]string{"docs/a.md": "one\n<<<<<<< HEAD\ntwo\n"}, "docs/a.md:2", "unfinished merge"},

	"a link to a file that is gone": {"links",
		map[string]string{"docs/a.md": "# A\n\nsee [b](b.md)\n"}, "docs/a.md:3", "there is no docs/b.md"},
	"a link to a heading that is gone": {"links",
		map[string]string{"docs/a.md": "see [b](../README.md#how-to)\n", "README.md": "# How not to\n"}, "docs/a.md:1", "README.md has no such heading"},
	"a folder that has moved": {"doc-paths",
		map[string]string{"docs/a.md": "It lives in `core/old/`.\n"}, "docs/a.md:1", "there is no core/old/"},
	"a function that is gone": {"doc-names",
		map[string]string{"core/a/a.go": "package a\n\nvar Old int", "docs/a.md": "Call `core/a.New`.\n"}, "docs/a.md:1", "core/a has no New"},
	"a function of a package that is gone": {"doc-names",
		map[string]string{"docs/a.md": "Call `core/old.New`.\n"}, "docs/a.md:1", "there is no package core/old"},

	"a gap between decisions": {"decisions",
		map[string]string{"docs/decisions/001-a.md": "# 001. A\n", "docs/decisions/003-c.md": "# 003. C\n"}, "docs/decisions/003-c.md", "the next number is 002"},
	"two decisions of one number": {"decisions",
		map[string]string{"docs/decisions/001-a.md": "# 001. A\n", "docs/decisions/001-b.md": "# 001. B\n"}, "docs/decisions/001-b.md", "the next number is 002"},
	"a decision under another title": {"decisions",
		map[string]string{"docs/decisions/001-a.md": "# 010. A\n"}, "docs/decisions/001-a.md", `"# 001. title"`},
	"a decision under another name": {"decisions",
		map[string]string{"docs/decisions/1-Why.md": "# 1\n"}, "docs/decisions/1-Why.md", "NNN-words"},

	"a library without a row": {"dependencies",
		map[string]string{"go.mod": "module example.com/house\n\nrequire (\n\texample.org/a v1.0.0\n\texample.org/b v1.0.0 // indirect\n)\n", "docs/dependencies.md": "| module |\n"}, "go.mod", "example.org/a has no row"},
	"a row without a library": {"dependencies",
		map[string]string{"go.mod": "module example.com/house\n\nrequire example.org/a v1.0.0\n", "docs/dependencies.md": "| `example.org/a` | x (tests only) |\n| `example.org/c` | x |\n"}, "docs/dependencies.md:2", "go.mod does not require example.org/c"},
	"a library for tests that the program uses": {"dependencies",
		map[string]string{"go.mod": "module example.com/house\n\nrequire example.org/a v1.0.0\n", "core/a/a.go": "package a\n\nimport _ \"example.org/a/b\"", "docs/dependencies.md": "| `example.org/a` | x (tests only) |\n"}, "docs/dependencies.md:1", "exactly if tests alone import it"},
	"a library that only tests use, without the mark": {"dependencies",
		map[string]string{"go.mod": "module example.com/house\n\nrequire example.org/a v1.0.0\n", "core/a/a_test.go": "package a\n\nimport _ \"example.org/a/b\"", "docs/dependencies.md": "| `example.org/a` | x |\n"}, "docs/dependencies.md:1", "exactly if tests alone import it"},
}

var _ = Describe("a rule", func() {
	for name, b := range breaches {
		It("notices "+name, func() {
			for _, rule := range Rules {
				if rule.Name != b.rule {
					continue
				}
				_, found := rule.Check(fixture(b.files))
				Expect(found).To(HaveLen(1))
				Expect(found[0].At).To(Equal(b.at))
				Expect(found[0].What).To(ContainSubstring(b.what))
			}
		})
	}

	It("has a tree that breaks it, and a reason", func() {
		broken := map[string]int{}
		for _, b := range breaches {
			broken[b.rule]++
		}
		for _, rule := range Rules {
			Expect(broken).To(HaveKey(rule.Name))
			Expect(rule.Why).NotTo(BeEmpty())
			delete(broken, rule.Name)
		}
		Expect(broken).To(BeEmpty(), "breaches of rules that do not exist")
	})

	It("leaves tests, helpers and the listed files alone", func() {
		tree := fixture(map[string]string{
			"core/a/a.go":                   "// Package a is a.\npackage a\n\nimport \"time\"\n\n// Clock is one.\ntype Clock struct{}\n\n// Now is never.\nfunc (Clock) Now() (t time.Time) { return t }\n\nvar c Clock\n\nvar now = c.Now()",
			"core/a/a_test.go":              "package a\n\nimport (\n\t\"os\"\n\t\"time\"\n\n\t_ " + house + "ci/suite\"\n\t_ " + house + "harness/b\"\n\t_ \"github.com/onsi/gomega\"\n)\n\nvar x, y = os.Getenv(\"X\"), time.Now()",
			"core/clock/clock.go":           "// Package clock is time.\npackage clock\n\nimport \"time\"\n\nvar now = time.Now",
			"harness/b/b.go":                "// Package b is b.\npackage b\n\nimport \"math/rand/v2\"\n\nvar r = rand.New(rand.NewPCG(1, 2)).IntN(3)",
			"core/strict/json.go":           "// Package strict is strict.\npackage strict\n\nimport _ \"github.com/go-json-experiment/json/jsontext\"",
			"cmd/echoeval/main.go":          "// Command echoeval is the command.\npackage main\n\nimport (\n\t\"os\"\n\n\t_ " + house + "providers/p\"\n\t_ " + house + "reports/r\"\n)\n\nfunc main() { os.Exit(len(os.Args)) }",
			"providers/providertest/p.go":   "// Package providertest is a suite.\npackage providertest\n\nimport (\n\t_ " + house + "ci/suite\"\n\t_ " + house + "harness/replay\"\n)",
			"harness/matchers/m.go":         "// Package matchers is for tests of users.\npackage matchers\n\nimport (\n\t_ " + house + "core/a\"\n\t_ \"github.com/onsi/gomega\"\n)",
			"cmd/echoeval/evaltest/e.go":    "// Package evaltest is for tests of users.\npackage evaltest\n\nimport (\n\t_ " + house + "harness/matchers\"\n\t_ \"github.com/onsi/ginkgo/v2\"\n)",
			"providers/p/p.go":              "// Package p is p.\npackage p\n\nimport \"net/http\"\n\nfunc client(t http.RoundTripper) *http.Client { return &http.Client{Transport: t} }",
			"core/a/testdata/broken.go":     "package",
			"ci/tools/go.mod":               "module example.com/house/ci/tools\n",
			"ci/tools/tools.go":             "not Go",
			"bin/echoeval":                  "see /home/ana",
			"docs/a.md":                     "# A: `b` & c\n\n[self](#a-b--c) [dir](decisions) [site](https://example.com/x)\n\n```sh\n[not](a-link)\n```\n`[nor](this)` `core/a/` `core/<name>/` `providers/NAME`\n",
			"docs/decisions/README.md":      "# Decisions\n",
			"docs/decisions/001-the-one.md": "# 001. The one\n",
			"docs/dependencies.md":          "| module |\n|---|\n",
		})
		for _, rule := range Rules {
			_, found := rule.Check(tree)
			expectNone(found, rule.Why)
		}
	})
})

var _ = DescribeTable("a tree that cannot be read", func(files map[string]string, message string) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	_, err := Load(fsys)
	Expect(err).To(MatchError(ContainSubstring(message)))
},
	Entry("no go.mod", map[string]string{".gitignore": ""}, "go.mod"),
	Entry("no .gitignore", map[string]string{"go.mod": "module a\n"}, ".gitignore"),
	Entry("a .gitignore beyond what is understood", map[string]string{"go.mod": "module a\n", ".gitignore": "!keep\n"}, `"!keep"`),
	Entry("broken Go", map[string]string{"go.mod": "module a\n", ".gitignore": "", "core/a/a.go": "package"}, "core/a/a.go"),
)
