package files_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
)

var _ = Describe("search_files", func() {
	tree := map[string]string{
		"a.go": "package a\nfunc A() {}\n", "b/a.go": "package b\r\nfunc A() {}\r\n", "b/c/d.go": "func D()", "src/x.py": "def x():\n", "src/deep/y.py": "def y():   \t\n", "z.txt": "Zeta\nfunc",
		".env": "func=secret", "conf/credentials.json": "func", ".ssh/config": "func", ".git/config": "func", "node_modules/m/i.js": "func", "__pycache__/p": "func", "venv/v": "func", ".venv/v": "func", "b/.git/x": "func",
		"bin.dat": "func\x00", "latin": "func \xe9", "bom": "\ufefffunc",
	}

	DescribeTable("finds lines", func(a args, want ...string) {
		b := open(GinkgoTB(), tree)
		Expect(b.ok("search_files", a)).To(Equal(strings.Join(want, "\n")))
	},
		Entry("in all files, sorted", args{"pattern": "func"}, "a.go:2: func A() {}", "b/a.go:2: func A() {}", "b/c/d.go:1: func D()", "bom:1: func", "latin:1: func \ufffd", "z.txt:2: func"),
		Entry("in a folder", args{"pattern": "func", "path": "b", "mode": "content"}, "b/a.go:2: func A() {}", "b/c/d.go:1: func D()"),
		Entry("with the path left empty", args{"pattern": "Zeta", "path": ""}, "z.txt:1: Zeta"),
		Entry("by a regular expression", args{"pattern": `^def \w+\(\):\s*$`}, "src/deep/y.py:1: def y():", "src/x.py:1: def x():"),
		Entry("in either case", args{"pattern": "(?i)zeta"}, "z.txt:1: Zeta"),
		Entry("at the end of a line with CRLF", args{"pattern": `b$`}, "b/a.go:1: package b"),
		Entry("with a named group", args{"pattern": `(?P<x>Z)eta`}, "z.txt:1: Zeta"),
		Entry("of nothing", args{"pattern": "nowhere", "path": "src"}, "nothing in src matches nowhere"),
		Entry("from within a folder that is not entered", args{"pattern": "func", "path": "node_modules"}, "node_modules/m/i.js:1: func"),
	)

	DescribeTable("finds files", func(pattern string, want ...string) {
		b := open(GinkgoTB(), tree)
		Expect(b.ok("search_files", args{"pattern": pattern, "mode": "glob"})).To(Equal(strings.Join(want, "\n")))
	},
		Entry("at any depth", "*.go", "a.go", "b/a.go", "b/c/d.go"),
		Entry("by the last two names", "b/*.go", "b/a.go"),
		Entry("by the last two names, deeper", "deep/*.py", "src/deep/y.py"),
		Entry("under any number of folders", "src/**/*.py", "src/deep/y.py", "src/x.py"),
		Entry("everywhere", "**/*.py", "src/deep/y.py", "src/x.py"),
		Entry("at the top", "/*.go", "a.go"),
		Entry("with ./", "./a.go", "a.go", "b/a.go"),
		Entry("one character", "?.go", "a.go", "b/a.go", "b/c/d.go"),
		Entry("a set", "[a-c].go", "a.go", "b/a.go"),
		Entry("not in a set", "[!a-c].go", "b/c/d.go"),
		Entry("a bracket in a set", "[]z].txt", "z.txt"),
		Entry("case counts", "*.GO", "nothing in . matches *.GO"),
		Entry("an open bracket is itself", "[a.go", "nothing in . matches [a.go"),
		Entry("a slash alone", "/", "nothing in . matches /"),
		Entry("names are shown even where contents are withheld", "*.json", "conf/credentials.json"),
		Entry("all below a folder", "src/**", "src/deep/y.py", "src/x.py"),
	)

	It("stops at max_results and says so to the harness", func() {
		b := open(GinkgoTB(), map[string]string{"a": "x\nx\nx\n", "b": "x\n"})
		out := b.call("search_files", args{"pattern": "x", "max_results": 2})
		Expect(text(out)).To(Equal("a:1: x\na:2: x"))
		Expect(out.Meta).To(Equal(conversation.JSON(`{"count":2,"scanned":1,"truncated":true}`)))
		Expect(out.Paths).To(Equal([]string{"a"}))
		out = b.call("search_files", args{"pattern": "x", "max_results": 4})
		Expect(out.Meta).To(Equal(conversation.JSON(`{"count":4,"scanned":2,"truncated":true}`)))
		out = b.call("search_files", args{"pattern": "x", "max_results": 5})
		Expect(out.Meta).To(Equal(conversation.JSON(`{"count":4,"scanned":2}`)))
		Expect(out.Paths).To(Equal([]string{"a", "b"}))
		b.plant("many", strings.Repeat("x\n", 60))
		Expect(strings.Count(b.ok("search_files", args{"pattern": "x", "path": "."}), "\n")).To(Equal(49))
	})

	It("cuts long lines by characters and passes over large files", func() {
		b := open(GinkgoTB(), map[string]string{"long": strings.Repeat("é", 300) + "\n", "exact": strings.Repeat("é", 200) + "  \n", "large": strings.Repeat("é\n", 333_334), "limit": "é" + strings.Repeat("x", 999_998)})
		Expect(b.ok("search_files", args{"pattern": "é"})).To(Equal("exact:1: " + strings.Repeat("é", 200) + "\nlimit:1: é" + strings.Repeat("x", 199) + "\nlong:1: " + strings.Repeat("é", 200)))
		Expect(b.ok("search_files", args{"pattern": "large", "mode": "glob"})).To(Equal("large"))
	})

	It("follows links to files within the workspace only", func() {
		b := open(GinkgoTB(), map[string]string{"dir/f": "needle", ".env": "needle"})
		outside := open(GinkgoTB(), map[string]string{"secret": "needle"})
		for link, target := range map[string]string{"again": "dir/f", "folder": "dir", "hidden": ".env", "out": outside.path("secret"), "outdir": outside.dir, "none": "nothing"} {
			Expect(os.Symlink(target, b.path(link))).To(Succeed())
		}
		Expect(b.ok("search_files", args{"pattern": "needle"})).To(Equal("again:1: needle\ndir/f:1: needle"))
	})

	It("scans 20,000 files at most", func() {
		b := open(GinkgoTB(), nil)
		for i := range 20_001 {
			Expect(os.WriteFile(b.path(fmt.Sprintf("f%05d", i)), nil, 0o644)).To(Succeed())
		}
		out := b.call("search_files", args{"pattern": "f2*", "mode": "glob"})
		Expect(text(out)).To(Equal("nothing in . matches f2*"))
		Expect(out.Meta).To(Equal(conversation.JSON(`{"count":0,"scanned":20000,"truncated":true}`)))
	})

	DescribeTable("fails", func(a args, says string) {
		Expect(open(GinkgoTB(), tree).fail("search_files", a)).To(Equal(says))
	},
		Entry("an empty pattern", args{"pattern": ""}, "pattern is empty"),
		Entry("no result", args{"pattern": "a", "max_results": 0}, "max_results must be from 1 to 10000"),
		Entry("too many results", args{"pattern": "a", "max_results": 10001}, "max_results must be from 1 to 10000"),
		Entry("a broken expression", args{"pattern": "(a"}, `invalid regex "(a": missing closing ): (a`),
		Entry("look-ahead", args{"pattern": "a(?=b)"}, `invalid regex "a(?=b)": look-ahead is not supported`),
		Entry("negative look-ahead", args{"pattern": "a(?!b)"}, `invalid regex "a(?!b)": look-ahead is not supported`),
		Entry("look-behind", args{"pattern": "(?<=a)b"}, `invalid regex "(?<=a)b": look-behind is not supported`),
		Entry("back-references", args{"pattern": `(a)\1`}, `invalid regex "(a)\\1": a back-reference is not supported`),
		Entry("named back-references", args{"pattern": `(?P<n>a)(?P=n)`}, `invalid regex "(?P<n>a)(?P=n)": a back-reference is not supported`),
		Entry("conditions", args{"pattern": `(a)?(?(1)b)`}, `invalid regex "(a)?(?(1)b)": a condition is not supported`),
		Entry("atomic groups", args{"pattern": `(?>a)`}, `invalid regex "(?>a)": an atomic group is not supported`),
		Entry("possessive quantifiers", args{"pattern": `a++`}, `invalid regex "a++": a possessive quantifier is not supported`),
		Entry("\\Z", args{"pattern": `a\Z`}, `invalid regex "a\\Z": \Z (write \z) is not supported`),
		Entry("too many repetitions", args{"pattern": `a{5000}`}, `invalid regex "a{5000}": invalid repeat count: {5000}`),
		Entry("no folder", args{"pattern": "a", "path": "none"}, `"none": no such file or folder`),
		Entry("a file", args{"pattern": "a", "path": "a.go"}, `"a.go" is not a folder`),
		Entry("outside", args{"pattern": "a", "path": ".."}, `".." leads outside the workspace`),
		Entry("a credential folder", args{"pattern": "a", "path": ".ssh"}, `".ssh" is withheld: its name marks credentials`),
	)
})
