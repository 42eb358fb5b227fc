package files_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/pmezard/go-difflib/difflib"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tools/files"
)

func searchBlock(search, replace string) string {
	return "<<<SEARCH\n" + search + "\n===\n" + replace + "\nREPLACE>>>\n"
}

var _ = Describe("patch with blocks", func() {
	DescribeTable("changes a file", func(content, patch, want, says string) {
		b := open(GinkgoTB(), map[string]string{"d/f": content})
		out := b.call("patch", args{"file_path": "d/f", "patch": patch})
		Expect(out.IsError).To(BeFalse(), text(out))
		Expect(text(out)).To(Equal(says))
		Expect(out.Paths).To(Equal([]string{"d/f"}))
		Expect(b.content("d/f")).To(Equal(want))
	},
		Entry("where the text is exact", "a\nb\nc\n", searchBlock("b", "x"), "a\nx\nc\n", "applied 1 of 1 block to d/f"),
		Entry("the first of several exact places", "b b\n", searchBlock("b", "x"), "x b\n", "applied 1 of 1 block to d/f"),
		Entry("in order, each on what the one before left", "a\n", searchBlock("a", "b")+"words between\n"+searchBlock("b", "c"), "c\n", "applied 2 of 2 blocks to d/f"),
		Entry("away", "a\nb\nc\n", searchBlock("b\n", ""), "a\n\nc\n", "applied 1 of 1 block to d/f"),
		Entry("where the text is similar, and keeps the end of the line", "one\n  the quick brown fox\nthree\n", searchBlock("the quick brown box", "a slow fox"), "one\n  a slow fox\nthree\n", "applied 1 of 1 block to d/f"),
		Entry("similar, several lines", "func f() {\n\tx := 1\n\treturn x\n}\n", searchBlock("func f() {\n    x := 1\n    return x;\n}", "func g() {}"), "func g() {}\n", "applied 1 of 1 block to d/f"),
		Entry("similar, the last line without an end", "one\nthe quick brown fox", searchBlock("the quick brown box", "fox"), "one\nfox", "applied 1 of 1 block to d/f"),
		Entry("similar, away with the whole line", "one\nthe quick brown fox\nthree\n", searchBlock("the quick brown box", ""), "one\nthree\n", "applied 1 of 1 block to d/f"),
		Entry("the most similar place, not the first", "alpha beta gamma delta\nalpha beta gamma del\n", searchBlock("alpha beta gamma dex", "x"), "alpha beta gamma delta\nx\n", "applied 1 of 1 block to d/f"),
		Entry("the first of equally similar places", "abcdX\nabcdX\n", searchBlock("abcdY", "z"), "z\nabcdX\n", "applied 1 of 1 block to d/f"),
		Entry("in part, and says which block fits nowhere", "a\nb\n", searchBlock("zzzzzz", "y")+searchBlock("b", "x")+searchBlock("qqqqqq", "y"), "a\nx\n", "applied 1 of 3 blocks to d/f; no place was found for blocks 1, 3"),
		Entry("with === in the text", "if (a === b) {}\n", searchBlock("if (a === b) {}", "if (a !== b) {}"), "if (a !== b) {}\n", "applied 1 of 1 block to d/f"),
		Entry("with everything on one line", "a b c\n", "<<<SEARCH b === x REPLACE>>>", "a x c\n", "applied 1 of 1 block to d/f"),
		Entry("with CRLF in the file", "a\r\nb\r\nc\r\n", searchBlock("a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc\r\n", "applied 1 of 1 block to d/f"),
		Entry("with CRLF in the patch", "a\nb\n", strings.ReplaceAll(searchBlock("a\nb", "x\ny"), "\n", "\r\n"), "x\ny\n", "applied 1 of 1 block to d/f"),
		Entry("with a long text that one letter tells apart", strings.Repeat("it was the best of times\n", 20)+"end\n", searchBlock(strings.Repeat("it was the best of times\n", 19)+"it was the worst of times", "short"), "short\nend\n", "applied 1 of 1 block to d/f"),
	)

	DescribeTable("fails and leaves the file", func(patch string, threshold float64, says string) {
		b := open(GinkgoTB(), map[string]string{"f": "a\nb\n"})
		Expect(b.fail("patch", args{"file_path": "f", "patch": patch, "fuzzy_threshold": threshold})).To(Equal(says))
		Expect(b.content("f")).To(Equal("a\nb\n"))
	},
		Entry("nothing similar", searchBlock("zzzz", "y"), 0.6, `nothing was applied to "f": no place is similar enough (more than 0.6) for block 1`),
		Entry("more lines than the file", searchBlock("a\nb\nc\nd", "y"), 0.1, `nothing was applied to "f": no place is similar enough (more than 0.1) for block 1`),
		Entry("an opener in small letters", strings.ToLower(searchBlock("a", "b")), 0.6, "the patch has no valid blocks; a block is <<<SEARCH, the text to find, ===, the text to put there, REPLACE>>>"),
		Entry("no closer", "<<<SEARCH\na\n===\nb\n", 0.6, "the patch has no valid blocks; a block is <<<SEARCH, the text to find, ===, the text to put there, REPLACE>>>"),
		Entry("no separator", "<<<SEARCH\na\nb\nREPLACE>>>", 0.6, "the patch has no valid blocks; a block is <<<SEARCH, the text to find, ===, the text to put there, REPLACE>>>"),
		Entry("nothing to find", searchBlock("a", "x")+searchBlock(" \n", "x"), 0.6, "block 2 has no text to find"),
		Entry("a threshold below 0", searchBlock("a", "x"), -0.1, "fuzzy_threshold must be from 0 to 1"),
		Entry("a threshold above 1", searchBlock("a", "x"), 1.1, "fuzzy_threshold must be from 0 to 1"),
	)

	It("needs the file", func() {
		b := open(GinkgoTB(), map[string]string{"latin": "\xe9"})
		Expect(b.fail("patch", args{"file_path": "none", "patch": searchBlock("a", "b")})).To(Equal(`"none": no such file or folder`))
		Expect(b.fail("patch", args{"file_path": "latin", "patch": searchBlock("a", "b")})).To(Equal(`"latin" is not UTF-8 text`))
	})

	It("takes only what is more similar than the threshold", func() {
		// abcde and abcdX: 4 of 5 characters in common, so exactly 0.8.
		b := open(GinkgoTB(), map[string]string{"f": "abcdX\n"})
		Expect(b.fail("patch", args{"file_path": "f", "patch": searchBlock("abcde", "y"), "fuzzy_threshold": 0.8})).To(ContainSubstring("more than 0.8"))
		Expect(b.ok("patch", args{"file_path": "f", "patch": searchBlock("abcde", "y"), "fuzzy_threshold": 0.79})).To(ContainSubstring("applied 1 of 1"))
		Expect(b.ok("patch", args{"file_path": "f", "patch": searchBlock("y", "z"), "fuzzy_threshold": 1})).To(ContainSubstring("applied 1 of 1"), "exact text needs no threshold")
	})

	It("gives up on work without measure, at the same place everywhere", func() {
		b := open(GinkgoTB(), map[string]string{"f": strings.Repeat(strings.Repeat("a", 4000)+"\n", 50)})
		Expect(b.fail("patch", args{"file_path": "f", "patch": searchBlock(strings.Repeat("ab", 3000)+"c", "x"), "fuzzy_threshold": 0.1})).To(ContainSubstring("too large to compare by similarity"))
	})
})

var _ = Describe("patch with a unified diff", func() {
	DescribeTable("changes a file", func(content, patch, want, says string) {
		b := open(GinkgoTB(), map[string]string{"f": content})
		out := b.call("patch", args{"file_path": "f", "patch": patch})
		Expect(out.IsError).To(BeFalse(), text(out))
		Expect(text(out)).To(Equal(says))
		Expect(b.content("f")).To(Equal(want))
	},
		Entry("where it says", "a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", "applied 1 of 1 hunk to f"),
		Entry("without a header", "a\nb\nc\n", "@@ -2 +2 @@\n-b\n+x", "a\nx\nc\n", "applied 1 of 1 hunk to f"),
		Entry("with what git puts before", "a\nb\n", "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ func x\n a\n-b\n+c\n", "a\nc\n", "applied 1 of 1 hunk to f"),
		Entry("in two places, lines moved by the first", "1\n2\n3\n4\n5\n6\n", "@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n@@ -5,2 +6,1 @@\n 5\n-6\n", "1\n1.5\n2\n3\n4\n5\n", "applied 2 of 2 hunks to f"),
		Entry("50 lines from where it says", strings.Repeat("-\n", 50)+"target\n", "@@ -1 +1 @@\n-target\n+hit\n", strings.Repeat("-\n", 50)+"hit\n", "applied 1 of 1 hunk to f"),
		Entry("at the nearest of equal places", "x\nx\nx\nx\nx\n", "@@ -3 +3 @@\n-x\n+y\n", "x\nx\ny\nx\nx\n", "applied 1 of 1 hunk to f"),
		Entry("at a similar place, context keeps the text of the file", "alpha one\n    indented line\nomega one\n", "@@ -1,3 +1,3 @@\n alpha won\n-indented line\n+new line\n omega won\n", "alpha one\nnew line\nomega one\n", "applied 1 of 1 hunk to f"),
		Entry("only adding, behind the line that it names", "a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n", "applied 1 of 1 hunk to f"),
		Entry("only adding, at the top", "a\nb\n", "@@ -0,0 +1 @@\n+x\n", "x\na\nb\n", "applied 1 of 1 hunk to f"),
		Entry("only adding, far behind the end", "a\n", "@@ -99,0 +100 @@\n+x\n", "a\nx\n", "applied 1 of 1 hunk to f"),
		Entry("only adding, in front of a line", "a\nb\n", "@@ -2 +2,2 @@\n+x\n", "a\nx\nb\n", "applied 1 of 1 hunk to f"),
		Entry("everything away", "a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", "", "applied 1 of 1 hunk to f"),
		Entry("in part", "a\nb\n", "@@ -1 +1 @@\n-zzzz\n+y\n@@ -2 +2 @@\n-b\n+x\n", "a\nx\n", "applied 1 of 2 hunks to f; no place was found for hunk 1"),
		Entry("with an empty context line whose space was lost", "a\n\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+x\n", "a\n\nx\nc\n", "applied 1 of 1 hunk to f"),
		Entry("with empty lines at the end of a hunk", "a\nb\n", "@@ -1 +1 @@\n-a\n+x\n\n\n@@ -2 +2 @@\n-b\n+y\n\n", "x\ny\n", "applied 2 of 2 hunks to f"),
		Entry("a last line without an end stays one", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a\nx", "applied 1 of 1 hunk to f"),
		Entry("a last line gets an end", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n", "applied 1 of 1 hunk to f"),
		Entry("a last line loses its end", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb", "applied 1 of 1 hunk to f"),
		Entry("behind a last line without an end", "a", "@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n", "a\nb", "applied 1 of 1 hunk to f"),
		Entry("with CRLF in the file", "a\r\nb\r\n", "@@ -2 +2,2 @@\n-b\n+x\n+y\n", "a\r\nx\r\ny\r\n", "applied 1 of 1 hunk to f"),
		Entry("with CRLF in the diff", "a\nb\n", "@@ -2 +2 @@\r\n-b\r\n+x\r\n", "a\nx\n", "applied 1 of 1 hunk to f"),
		Entry("with lines that look like headers", "-- old\nx\n", "@@ -1,2 +1,2 @@\n--- old\n+++ new\n x\n", "++ new\nx\n", "applied 1 of 1 hunk to f"),
		Entry("in an empty file", "", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n", "applied 1 of 1 hunk to f"),
	)

	It("creates a file, not its folder", func() {
		b := open(GinkgoTB(), map[string]string{"d/x": ""})
		Expect(b.ok("patch", args{"file_path": "d/new", "patch": "--- /dev/null\n+++ b/d/new\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"})).To(Equal("applied 1 of 1 hunk to d/new"))
		Expect(b.content("d/new")).To(Equal("a\nb"))
		Expect(b.fail("patch", args{"file_path": "none/new", "patch": "@@ -0,0 +1 @@\n+a\n"})).To(Equal(`"none/new": no such file or folder`))
		Expect(b.fail("patch", args{"file_path": "other", "patch": "@@ -1 +1 @@\n-a\n+b\n"})).To(ContainSubstring(`nothing was applied to "other"`))
		_, err := os.Stat(b.path("other"))
		Expect(err).To(HaveOccurred())
	})

	DescribeTable("fails and leaves the file", func(content, patch string, threshold float64, says string) {
		b := open(GinkgoTB(), map[string]string{"f": content})
		Expect(b.fail("patch", args{"file_path": "f", "patch": patch, "fuzzy_threshold": threshold})).To(ContainSubstring(says))
		Expect(b.content("f")).To(Equal(content))
	},
		Entry("no diff", "a\n", "change a to b", 0.6, "neither a unified diff"),
		Entry("an empty patch", "a\n", "", 0.6, "neither a unified diff"),
		Entry("a hunk without lines", "a\n", "@@ -1 +1 @@\n", 0.6, "neither a unified diff"),
		Entry("a line number without measure", "a\n", "@@ -99999999999999999999 +1 @@\n-a\n+b\n", 0.6, "neither a unified diff"),
		Entry("no place", "a\n", "@@ -1 +1 @@\n-zzzz\n+y\n", 0.6, "no place is similar enough (more than 0.6) for hunk 1"),
		Entry("51 lines away", strings.Repeat("-\n", 51)+"target\n", "@@ -1 +1 @@\n-target\n+hit\n", 0.6, "no place is similar enough"),
		Entry("an exact place is not above the threshold 1", "a\n", "@@ -1 +1 @@\n-a\n+b\n", 1.0, "more than 1"),
		Entry("several files", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", 0.6, `several files, "b/f" and "b/g"`),
		Entry("not UTF-8", "a\xff\n", "@@ -1 +1 @@\n-a\n+b\n", 0.6, "not UTF-8"),
	)

	It("does what the diff of two texts says", func() {
		random := rand.New(rand.NewPCG(1, 2))
		applied := 0
		for range 200 {
			var before, after []string
			for range 1 + random.IntN(30) {
				line := fmt.Sprintf("line %d\n", random.IntN(1000))
				if random.IntN(4) > 0 {
					before = append(before, line)
				}
				if random.IntN(4) > 0 {
					after = append(after, line)
				}
			}
			diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: before, B: after, FromFile: "a/f", ToFile: "b/f", Context: 3})
			Expect(err).NotTo(HaveOccurred())
			if diff == "" {
				continue
			}
			b := open(GinkgoTB(), map[string]string{"f": strings.Join(before, "")})
			Expect(b.ok("patch", args{"file_path": "f", "patch": diff})).NotTo(ContainSubstring("no place"), diff)
			Expect(b.content("f")).To(Equal(strings.Join(after, "")), diff)
			applied++
		}
		Expect(applied).To(BeNumerically(">", 150))
	})
})

var _ = Describe("similarity", func() {
	// The numbers come from Python: difflib.SequenceMatcher(None, a, b, autojunk=False).ratio().
	DescribeTable("is that of difflib", func(a, b string, want float64) {
		got, err := files.Ratio(a, b)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(want))
	},
		Entry(nil, "abcd", "bcde", 0.75),
		Entry(nil, "private Thread currentThread;", "private volatile Thread currentThread;", 0.8656716417910447),
		Entry(nil, "", "a", 0.0),
		Entry(nil, "", "", 1.0),
		Entry(nil, "tide", "diet", 0.25),
		Entry(nil, "diet", "tide", 0.5),
		Entry(nil, strings.Repeat("x", 300)+"y", strings.Repeat("x", 300)+"z", 0.9966777408637874),
		Entry(nil, "héllo wörld", "hello world", 0.8181818181818182),
		Entry(nil, "a\nb\nc", "a\nB\nc", 0.8),
	)

	It("is that of the library on random texts", func() {
		random := rand.New(rand.NewPCG(3, 4))
		word := func() string {
			var b strings.Builder
			for range random.IntN(60) {
				b.WriteRune([]rune("abcab é\n")[random.IntN(8)])
			}
			return b.String()
		}
		for range 3000 {
			a, b := word(), word()
			want := difflib.NewMatcherWithJunk(strings.Split(a, ""), strings.Split(b, ""), false, nil).Ratio()
			Expect(files.Ratio(a, b)).To(Equal(want), "%q %q", a, b)
		}
	})
})

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", 0.6)
	f.Add("a\r\nb", "<<<SEARCH\nb\n===\nx\nREPLACE>>>", 0.0)
	f.Add("", "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", 0.5)
	f.Add("x\n", "@@ -1 +1 @@\n\n\n x\n-\n+\n", 1.0)
	f.Fuzz(func(t *testing.T, content, patch string, threshold float64) {
		b := open(t, map[string]string{"f": content})
		if !(threshold >= 0 && threshold <= 1) {
			threshold = 0.5
		}
		out := b.call("patch", args{"file_path": "f", "patch": patch, "fuzzy_threshold": threshold})
		if out.IsError && b.content("f") != content {
			t.Fatalf("failed and changed the file: %s", out.Result)
		}
		if !out.IsError && !conversation.JSON(out.Result).Valid() {
			t.Fatal("no JSON")
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add("a b a", "a", "x", true)
	f.Add("a\r\nb\r\n", "a\nb", "c\nd", false)
	f.Add("a\xff", "a", "", false)
	f.Fuzz(func(t *testing.T, content, old, replacement string, all bool) {
		b := open(t, map[string]string{"f": content})
		out := b.call("edit_file", args{"path": "f", "old_string": old, "new_string": replacement, "replace_all": all})
		after := b.content("f")
		switch {
		case out.IsError:
			if after != content {
				t.Fatalf("failed and changed the file: %s", out.Result)
			}
		case !strings.Contains(content, "\r"):
			// encoding/json has replaced what is no UTF-8 in the arguments.
			n := -1
			if !all {
				n = 1
			}
			if want := strings.Replace(content, strings.ToValidUTF8(old, "\ufffd"), strings.ToValidUTF8(replacement, "\ufffd"), n); after != want && strings.ToValidUTF8(old+replacement, "") == old+replacement {
				t.Fatalf("%q is not %q", after, want)
			}
		case strings.Contains(content, "\r\n") && strings.Count(content, "\r\n") == strings.Count(content, "\n") && strings.Count(after, "\r\n") != strings.Count(after, "\n"):
			t.Fatalf("line ends are mixed: %q", after)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("src/**/*.go", "src/a/b.go")
	f.Add("[!a-", "a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		b := open(t, map[string]string{"d/f.go": "x", "g": "y"})
		b.call("search_files", args{"pattern": pattern, "mode": "glob"})
		b.call("search_files", args{"pattern": pattern, "path": name})
	})
}

func BenchmarkReadFile(b *testing.B) {
	bench := open(b, map[string]string{"f": strings.Repeat("a line of text\n", 200)})
	for b.Loop() {
		bench.ok("read_file", args{"path": "f"})
	}
}

func BenchmarkSimilarBlock(b *testing.B) {
	var text strings.Builder
	random := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		fmt.Fprintf(&text, "\tvalue%d := compute(%d, %d) // explain\n", random.IntN(99), random.IntN(9999), random.IntN(9999))
	}
	bench := open(b, map[string]string{"f": text.String()})
	search := strings.Repeat("value1 = compute(1, 2) # explained\n", 10)
	for b.Loop() {
		bench.call("patch", args{"file_path": "f", "patch": searchBlock(search, "x"), "fuzzy_threshold": 0.95})
	}
}
