package imports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

func TestImports(t *testing.T) { suite.Run(t, "imports") }

// field is a field of a mapping, for short.
func field(key string, v imports.Value) imports.Field { return imports.Field{Key: key, Value: v} }

var _ = Describe("the writer", func() {
	It("writes what people would write", func() {
		items := imports.List()
		items.Comment("before the first")
		items.Append(imports.Map(field("id", imports.Text("a")), field("vars", imports.Map(field("x", imports.Text("1")), field("y", imports.Number(0.5))))).Block(), "of the first")
		items.Append(imports.Map(field("contains", imports.Text("one"))))
		items.Append(imports.Map(field("contains", imports.Text("one")), field("weight", imports.Literal("2"))))
		items.Comment("after the last")
		root := imports.Map(field("text", imports.Text("line\n  indented\n\nend\n")), field("short", imports.Text("a\nb")), field("odd", imports.Text(" a\nb")))
		root.Set("items", items.Block(), "all of them")
		root.Set("none", imports.Value{})
		root.Set("empty", imports.Map())
		Expect(string(root.Block().YAML("Head."))).To(Equal(strings.TrimPrefix(`
# Head.
text: |
  line
    indented

  end
short: |-
  a
  b
odd: " a\nb"
# all of them
items:
  # before the first
  # of the first
  - id: a
    vars: {x: "1", y: 0.5}
  - contains: one
  - {contains: one, weight: 2}
  # after the last
empty: {}
`, "\n")))
	})

	It("keeps comments on one line and harmless", func() {
		v := imports.Map(field("a", imports.Text("b")))
		v.Comment("x\ninjected: true\u2028\x1b[31m")
		Expect(string(v.Block().YAML())).To(Equal("a: b\n# x injected: true\\u2028\\u001b[31m\n"))
	})

	DescribeTable("writes texts that are read as the same text", func(text string) {
		roundTrip(text)
	},
		Entry(nil, ""), Entry(nil, "null"), Entry(nil, "no"), Entry(nil, "1"), Entry(nil, "0x1f"), Entry(nil, "1e3"), Entry(nil, ".inf"), Entry(nil, "~"), Entry(nil, "<<"), Entry(nil, "- a"), Entry(nil, "a: b"), Entry(nil, "a #b"),
		Entry(nil, "a:"), Entry(nil, "{{x}}"), Entry(nil, "[a"), Entry(nil, "'q'"), Entry(nil, `"q"`), Entry(nil, "a\tb"), Entry(nil, "a\r\nb"), Entry(nil, "\ufeffa"), Entry(nil, "a\u0085b"), Entry(nil, "👋🏽 é\u0301"), Entry(nil, "a\n\n"), Entry(nil, "\na"), Entry(nil, "a\n \nb"),
		Entry(nil, "a\n\tb"), Entry(nil, "# a\nb"), Entry(nil, "---\na"), Entry(nil, "a\n---\nb"), Entry(nil, "a\n...\nb"), Entry(nil, "\U000e0041"), Entry(nil, strings.Repeat("long ", 2000)), Entry(nil, "a "), Entry(nil, "a\nb "), Entry(nil, "%a"), Entry(nil, "@a"), Entry(nil, "a, b"), Entry(nil, "A: {b}"), Entry(nil, `\{{x}}`),
	)
})

// roundTrip writes a text in every place where it can stand and reads it again.
func roundTrip(text string) {
	GinkgoHelper()
	if err := tripped(text); err != "" {
		Fail(err)
	}
}

func tripped(text string) string {
	key := text
	if key == "" || len(key) > 100 {
		key = "k"
	}
	v := imports.Map(
		field("block", imports.Text(text)), field("flow", imports.List(imports.Entry{Value: imports.Text(text)})), field("deep", imports.Map(field("in", imports.Map(field("x", imports.Text(text))).Block())).Block()),
		field("list", imports.List(imports.Entry{Value: imports.Text(text), Comments: []string{text}}, imports.Entry{Value: imports.Map(field("a", imports.Text(text))).Block()}).Block()),
	)
	v.Set("keys", imports.Map(field(key, imports.Text("v"))))
	data := v.Block().YAML(text)
	n, err := strict.Parse("x.yaml", data)
	if err != nil {
		return err.Error() + "\n" + string(data)
	}
	want := strings.ToValidUTF8(text, "\ufffd")
	for _, got := range []strict.Node{n.Get("block"), n.Get("flow").Index(0), n.Get("deep").Get("in").Get("x"), n.Get("list").Index(0), n.Get("list").Index(1).Get("a")} {
		if got.Kind() != strict.String || got.Text() != want {
			return "got " + got.JSON() + "\n" + string(data)
		}
	}
	if n.Get("keys").Get(strings.ToValidUTF8(key, "\ufffd")).Text() != "v" {
		return "the key is lost\n" + string(data)
	}
	return ""
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"a", "a\nb", "- x: y", "\u2028", "null", "a\n  b\n", "? a", "&a *b", "!t", "|", ">", "=", "a\x00b", "\xff", "0o7", "1_000", "2001-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := tripped(text); err != "" {
			t.Fatal(err)
		}
	})
}

var _ = Describe("names", func() {
	DescribeTable("are readable", func(text, want string) { Expect(imports.Slug(text, 20)).To(Equal(want)) },
		Entry(nil, "What is it?", "what-is-it"), Entry(nil, "  --", ""), Entry(nil, "Ünïcode 日本", "ünïcode-日本"), Entry(nil, "one two three four five", "one-two-three-four"), Entry(nil, "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrst"), Entry(nil, "a\x00b\nc", "a-b-c"),
	)

	DescribeTable("of datasets are names of folders", func(file, want string) { Expect(imports.DatasetName(file)).To(Equal(want)) },
		Entry(nil, "datasets/Support Desk.yaml", "support-desk"), Entry(nil, `a\b.yml`, "b"), Entry(nil, "con.yaml", "imported-con"), Entry(nil, "é.yaml", "imported"), Entry(nil, "x.v1.yaml", "x.v1"),
	)

	It("are unique whatever the case", func() {
		var names imports.Names
		Expect([]string{names.Unique("a"), names.Unique("A"), names.Unique("a-2"), names.Unique("a")}).To(Equal([]string{"a", "A-2", "a-2-2", "a-3"}))
	})
})

var _ = Describe("a folder", func() {
	var f imports.Folder
	BeforeEach(func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "out.txt"), []byte("out"), 0o644)).To(Succeed())
		f = imports.Folder{Dir: filepath.Join(dir, "in")}
		Expect(os.MkdirAll(filepath.Join(f.Dir, "sub"), 0o755)).To(Succeed())
		for _, name := range []string{"b.txt", "a.txt", "sub/c.txt"} {
			Expect(os.WriteFile(filepath.Join(f.Dir, name), []byte(name), 0o644)).To(Succeed())
		}
		Expect(os.Symlink("../out.txt", filepath.Join(f.Dir, "link.txt"))).To(Succeed())
	})

	It("gives what lies in it", func() {
		for _, name := range []string{"a.txt", "./a.txt", "sub/../a.txt"} {
			data, err := f.Read(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(data)).To(Equal("a.txt"))
		}
		Expect(f.Glob("*.txt")).To(Equal([]string{"a.txt", "b.txt", "link.txt"}))
		Expect(f.Glob("a.txt")).To(Equal([]string{"a.txt"}))
	})

	DescribeTable("refuses the rest", func(name, why string) {
		_, err := f.Read(name)
		Expect(err).To(MatchError(ContainSubstring(why)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err.Error()).NotTo(ContainSubstring(f.Dir))
	},
		Entry(nil, "../out.txt", "outside"), Entry(nil, "sub/../../out.txt", "outside"), Entry(nil, "/etc/hosts", "outside"), Entry(nil, "link.txt", "outside"), Entry(nil, "sub", "no file"), Entry(nil, "", "no file"), Entry(nil, "a\x00", "no file"), Entry(nil, "x.txt", "does not exist"),
	)

	It("refuses patterns that leave it or match nothing", func() {
		for _, pattern := range []string{"../*.txt", "*.md", "[*"} {
			_, err := f.Glob(pattern)
			Expect(err).To(HaveOccurred(), pattern)
		}
	})

	It("can be left where that is allowed", func() {
		f.AllowOutside = true
		for _, name := range []string{"../out.txt", "link.txt"} {
			data, err := f.Read(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(data)).To(Equal("out"))
		}
	})
})

var _ = Describe("a report", func() {
	It("says what is alike together", func() {
		var r imports.Report
		for line := range 12 {
			r.Add(imports.Lost, failure.Position{File: "c.yaml", Line: line + 1, Column: 3}, "write it", "a thing")
		}
		r.Add(imports.Lost, failure.Position{File: "c.yaml", Line: 1, Column: 3}, "write it", "a thing")
		r.Add(imports.Wrong, failure.Position{}, "", "all of it")
		r.Count("x", imports.Lost)
		r.Count("x", imports.Changed)
		r.Count("a", imports.Todo)
		r.Lose("x")
		r.Summary = []string{"1 -> 1"}
		Expect(r.Sum()).To(Equal(imports.Count{Type: "all", Total: 3, Todo: 1, Lost: 2}))
		Expect(r.Text()).To(Equal(strings.TrimPrefix(`
1 -> 1
converted 0 of 3 assertions; 1 to do by hand, 2 lost
  a: 0 of 1 converted
  x: 0 of 2 converted
lost: a thing, 12 times (c.yaml:1:3, 2:3, 3:3, 4:3, 5:3, 6:3, and 6 more)
  write it
wrong: all of it (everywhere)
`, "\n")))
	})
})
