package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/tools/files"
)

func TestFiles(t *testing.T) { suite.Run(t, "files") }

// bench is a workspace with the tools on it.
type bench struct {
	t        testing.TB
	dir      string
	registry *tool.Registry
}

func open(t testing.TB, content map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	for name, text := range content {
		b.plant(name, text)
	}
	ws, err := guard.NewWorkspace(b.dir)
	check(t, err)
	t.Cleanup(func() { ws.Close() })
	registry, _, err := tool.NewRegistry(files.New(files.Opened(ws))...)
	check(t, err)
	b.registry = registry
	return b
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, filepath.FromSlash(name)) }

func (b *bench) plant(name, text string) {
	b.t.Helper()
	check(b.t, os.MkdirAll(filepath.Dir(b.path(name)), 0o755))
	check(b.t, os.WriteFile(b.path(name), []byte(text), 0o644))
}

func (b *bench) content(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	check(b.t, err)
	return string(data)
}

type args map[string]any

// call runs a tool with arguments that must satisfy its schema.
func (b *bench) call(name string, a args) tool.Output {
	b.t.Helper()
	text, err := json.Marshal(a)
	check(b.t, err)
	check(b.t, b.registry.Validate(name, conversation.JSON(text)))
	t, _, _ := b.registry.Lookup(name)
	out, err := t.Run(context.Background(), tool.Call{Name: name, Arguments: conversation.JSON(text)})
	check(b.t, err)
	if !out.Result.Valid() || out.Meta != "" && !out.Meta.Valid() {
		b.t.Fatalf("no JSON: %q %q", out.Result, out.Meta)
	}
	if strings.Contains(string(out.Result), b.dir) {
		b.t.Fatalf("a path of the machine: %s", out.Result)
	}
	return out
}

func text(out tool.Output) string { return conversation.ToolResult{Result: out.Result}.ResultText() }

// ok returns the text of a call that succeeds.
func (b *bench) ok(name string, a args) string {
	b.t.Helper()
	out := b.call(name, a)
	if out.IsError {
		b.t.Fatalf("%s failed: %s", name, out.Result)
	}
	return text(out)
}

// fail returns the text of a call that does not.
func (b *bench) fail(name string, a args) string {
	b.t.Helper()
	out := b.call(name, a)
	if !out.IsError {
		b.t.Fatalf("%s succeeded: %s", name, out.Result)
	}
	return text(out)
}

var _ = Describe("the tools", func() {
	It("have the names and parameters of the reference", func() {
		data, err := os.ReadFile(suite.SharedData("seed-policy.json"))
		Expect(err).NotTo(HaveOccurred())
		type parameter struct {
			Name     string `json:"name"`
			Type     any    `json:"type"`
			Required bool   `json:"required"`
			Default  any    `json:"default"`
			Enum     []any  `json:"enum"`
		}
		var policy struct {
			Parameters map[string][]parameter `json:"parameters"`
		}
		Expect(json.Unmarshal(data, &policy)).To(Succeed())
		seen := 0
		for spec := range open(GinkgoTB(), nil).registry.All() {
			want := policy.Parameters[spec.Name]
			Expect(want).NotTo(BeEmpty(), spec.Name)
			var schema struct {
				Properties map[string]map[string]any `json:"properties"`
				Required   []string                  `json:"required"`
			}
			Expect(json.Unmarshal([]byte(spec.Parameters), &schema)).To(Succeed())
			var got []parameter
			for _, p := range want {
				property := schema.Properties[p.Name]
				Expect(property).NotTo(BeNil(), "%s %s", spec.Name, p.Name)
				Expect(property["description"]).NotTo(BeEmpty())
				enum, _ := property["enum"].([]any)
				got = append(got, parameter{Name: p.Name, Type: property["type"], Required: slices.Contains(schema.Required, p.Name), Default: property["default"], Enum: enum})
				seen++
			}
			Expect(got).To(Equal(want), spec.Name)
			Expect(slices.Collect(maps.Keys(schema.Properties))).To(HaveLen(len(want)), spec.Name)
		}
		Expect(seen).To(Equal(17))
	})

	It("declare effect and scope", func() {
		effects := map[string]tool.Effect{}
		for spec := range open(GinkgoTB(), nil).registry.All() {
			effects[spec.Name] = spec.Effect
			Expect(spec.Scope).To(Equal(tool.Workspace))
			Expect(spec.Description).NotTo(BeEmpty())
		}
		Expect(effects).To(Equal(map[string]tool.Effect{"read_file": tool.Read, "list_dir": tool.Read, "search_files": tool.Read, "write_file": tool.Write, "edit_file": tool.Write, "patch": tool.Write}))
	})

	It("ask for the workspace at each call, to read or to write as the tool does", func() {
		var asked []guard.Access
		ws, err := guard.NewWorkspace(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ws.Close)
		tools := files.New(func(access guard.Access) (*guard.Workspace, error) { asked = append(asked, access); return ws, nil })
		Expect(asked).To(BeEmpty())
		for _, t := range tools {
			before := len(asked)
			_, err := t.Run(GinkgoT().Context(), tool.Call{Arguments: `{"path":"x"}`})
			Expect(err).NotTo(HaveOccurred())
			want := guard.Write
			if t.Spec().Effect == tool.Read {
				want = guard.Read
			}
			Expect(asked[before:]).To(Equal([]guard.Access{want}), t.Spec().Name)
		}
	})

	It("end the run where there is no workspace", func() {
		cause := errors.New("disk full at /secret/place")
		for _, t := range files.New(func(guard.Access) (*guard.Workspace, error) { return nil, cause }) {
			_, err := t.Run(GinkgoT().Context(), tool.Call{Arguments: `{}`})
			Expect(err).To(MatchError(cause))
			var abort *tool.AbortError
			Expect(errors.As(err, &abort)).To(BeTrue())
		}
	})

	It("do nothing once the run has ended", func() {
		b := open(GinkgoTB(), map[string]string{"a": "a"})
		ctx, cancel := context.WithCancelCause(context.Background())
		stop := errors.New("interrupted")
		cancel(stop)
		for spec, t := range b.registry.All() {
			_, err := t.Run(ctx, tool.Call{Arguments: `{"path":"a","content":"b","pattern":"a"}`})
			Expect(err).To(MatchError(stop), spec.Name)
		}
		Expect(b.content("a")).To(Equal("a"))
	})

	It("refuse the same paths with the same words", func() {
		b := open(GinkgoTB(), map[string]string{".env": "S=1", ".ssh/id": "k", "a": "a"})
		Expect(os.Symlink("..", b.path("up"))).To(Succeed())
		with := map[string]func(path string) args{
			"read_file":    func(p string) args { return args{"path": p} },
			"write_file":   func(p string) args { return args{"path": p, "content": "x"} },
			"edit_file":    func(p string) args { return args{"path": p, "old_string": "a", "new_string": "b"} },
			"patch":        func(p string) args { return args{"file_path": p, "patch": "<<<SEARCH\na\n===\nb\nREPLACE>>>"} },
			"list_dir":     func(p string) args { return args{"path": p} },
			"search_files": func(p string) args { return args{"path": p, "pattern": "a"} },
		}
		Expect(with).To(HaveLen(b.registry.Len()))
		for name, a := range with {
			Expect(b.fail(name, a("/etc/passwd"))).To(Equal(`"/etc/passwd" is absolute; name files relative to the workspace, such as notes/a.txt`), name)
			Expect(b.fail(name, a("../x"))).To(Equal(`"../x" leads outside the workspace`), name)
			Expect(b.fail(name, a("up/x"))).To(Equal(`"up/x" leads outside the workspace`), name)
			Expect(b.fail(name, a("a\nb"))).To(Equal(`"a\nb" holds control characters or is not UTF-8`), name)
			Expect(b.fail(name, a(strings.Repeat("n", 300)))).To(HaveSuffix("is too long a name"), name)
			Expect(b.fail(name, a(".ssh/id"))).To(Or(HaveSuffix("its name marks credentials"), HaveSuffix("may not be written")), name)
			Expect(b.fail(name, a("a/b"))).To(Equal(`"a/b" is not a folder`), name)
		}
		for _, name := range []string{"read_file", "edit_file", "patch"} {
			Expect(b.fail(name, with[name](".env"))).To(Equal(`".env" is withheld: its name marks credentials`), name)
			Expect(b.fail(name, with[name]("none"))).To(Equal(`"none": no such file or folder`), name)
			Expect(b.fail(name, with[name]("."))).To(Equal(`"." is a folder`), name)
		}
		for _, name := range []string{"list_dir", "search_files"} {
			Expect(b.fail(name, with[name]("none"))).To(Equal(`"none": no such file or folder`), name)
			Expect(b.fail(name, with[name]("a"))).To(Equal(`"a" is not a folder`), name)
		}
		Expect(b.fail("write_file", with["write_file"]("."))).To(Equal(`"." is a folder`))
		Expect(b.fail("write_file", with["write_file"](".bashrc"))).To(ContainSubstring("is protected"))
		for _, name := range []string{"read_file", "write_file", "edit_file", "patch", "list_dir"} {
			Expect(b.fail(name, with[name](""))).To(ContainSubstring("is empty"), name)
		}
	})

	It("take names in every script", func() {
		for _, name := range []string{"caf\u00e9.txt", "cafe\u0301.txt", "🦊 fox/🐿️.md", "مرحبا.txt", "日本/語.txt", "a b.txt", "~", "-rf", "'\"$(x).txt", strings.Repeat("é", 127)} {
			b := open(GinkgoTB(), nil)
			Expect(b.ok("write_file", args{"path": name, "content": "one\n"})).To(Equal("wrote 4 characters to " + name))
			Expect(b.ok("edit_file", args{"path": name, "old_string": "one", "new_string": "two"})).To(Equal("edited " + name + ": 1 replacement"))
			Expect(b.ok("patch", args{"file_path": name, "patch": "@@ -1 +1 @@\n-two\n+three\n"})).To(Equal("applied 1 of 1 hunk to " + name))
			Expect(b.ok("read_file", args{"path": name})).To(Equal("1\tthree\n"))
			Expect(b.ok("search_files", args{"pattern": "three"})).To(Equal(name + ":1: three"))
			dir, base := filepath.Split(name)
			Expect(b.ok("list_dir", args{"path": "./" + dir})).To(Equal("file\t" + base))
		}
	})
})

var _ = Describe("read_file", func() {
	DescribeTable("shows", func(content string, a args, want string) {
		b := open(GinkgoTB(), map[string]string{"f.txt": content})
		a["path"] = "f.txt"
		out := b.call("read_file", a)
		Expect(out.IsError).To(BeFalse(), text(out))
		Expect(text(out)).To(Equal(want))
		Expect(out.Paths).To(Equal([]string{"f.txt"}))
	},
		Entry("lines with their numbers", "a\nb\n", args{}, "1\ta\n2\tb\n"),
		Entry("a last line without an end", "a\nb", args{}, "1\ta\n2\tb"),
		Entry("an empty file", "", args{}, ""),
		Entry("an empty line", "\n", args{}, "1\t\n"),
		Entry("from a line", "a\nb\nc\n", args{"offset": 2}, "2\tb\n3\tc\n"),
		Entry("some lines", "a\nb\nc\n", args{"offset": 2, "limit": 1}, "2\tb\n"),
		Entry("the same with 2.0", "a\nb\nc\n", args{"offset": json.Number("2.0"), "limit": json.Number("1e0")}, "2\tb\n"),
		Entry("nothing past the end", "a\n", args{"offset": 2}, ""),
		Entry("as many lines as there are", "a\n", args{"limit": 9007199254740992}, "1\ta\n"),
		Entry("CRLF as LF", "a\r\nb\r\n", args{}, "1\ta\n2\tb\n"),
		Entry("no other line ends", "a\rb\vc\fd\u2028e\u0085f\n", args{}, "1\ta\rb\vc\fd\u2028e\u0085f\n"),
		Entry("no byte order mark", "\ufeffa\n", args{}, "1\ta\n"),
		Entry("bytes that are no UTF-8", "a\xffb\n", args{}, "1\ta\ufffdb\n"),
		Entry("NUL far behind", strings.Repeat("x", 8000)+"\x00", args{}, "1\t"+strings.Repeat("x", 8000)+"\x00"),
	)

	It("shows 2000 lines and counts all", func() {
		b := open(GinkgoTB(), map[string]string{"f": strings.Repeat("x\n", 2500)})
		out := b.call("read_file", args{"path": "f"})
		Expect(strings.Count(text(out), "\n")).To(Equal(2000))
		Expect(text(out)).To(HaveSuffix("\n2000\tx\n"))
		Expect(out.Meta).To(Equal(conversation.JSON(`{"total_lines":2500}`)))
	})

	It("refuses what it cannot show", func() {
		b := open(GinkgoTB(), map[string]string{"f": "a\n", "logo.png": "\x89PNG\x00\x01", "utf16": "\xff\xfea\x00"})
		Expect(b.fail("read_file", args{"path": "f", "offset": 0})).To(Equal("offset must be at least 1, the number of the first line"))
		Expect(b.fail("read_file", args{"path": "f", "offset": -1})).To(ContainSubstring("offset must be at least 1"))
		Expect(b.fail("read_file", args{"path": "f", "limit": 0})).To(Equal("limit must be at least 1"))
		Expect(b.fail("read_file", args{"path": "f", "limit": -5})).To(Equal("limit must be at least 1"))
		Expect(b.fail("read_file", args{"path": "f", "limit": json.Number("123456789012345678901234567890")})).To(ContainSubstring("no integer that fits"))
		Expect(b.fail("read_file", args{"path": "logo.png"})).To(Equal(`"logo.png" is a binary file of 6 bytes; only text can be shown`))
		Expect(b.fail("read_file", args{"path": "utf16"})).To(ContainSubstring("binary"))
		Expect(os.Truncate(b.path("f"), files.MaxFile+1)).To(Succeed())
		Expect(b.fail("read_file", args{"path": "f"})).To(Equal(`"f" is too large; at most 10485760 bytes are allowed`))
		Expect(b.fail("edit_file", args{"path": "f", "old_string": "a", "new_string": "b"})).To(ContainSubstring("too large"))
		Expect(b.fail("patch", args{"file_path": "f", "patch": "@@ -1 +1 @@\n-a\n+b\n"})).To(ContainSubstring("too large"))
	})
})

var _ = Describe("write_file", func() {
	It("writes the text as it is and makes folders", func() {
		b := open(GinkgoTB(), map[string]string{"old": "longer than the new"})
		for name, content := range map[string]string{"old": "new", "x/y/z": "a\r\nb\n", "empty": "", "bom": "\ufeffé🦊\x00"} {
			out := b.call("write_file", args{"path": name, "content": content})
			Expect(text(out)).To(Equal(fmt.Sprintf("wrote %d characters to %s", len([]rune(content)), name)))
			Expect(out.Paths).To(Equal([]string{name}))
			Expect(b.content(name)).To(Equal(content))
		}
		Expect(b.fail("write_file", args{"path": "old/x", "content": ""})).To(Equal(`"old/x" is not a folder`))
		Expect(b.fail("write_file", args{"path": "new/", "content": ""})).To(Equal(`"new/" is a folder`))
		Expect(b.fail("write_file", args{"path": "big", "content": strings.Repeat("x", files.MaxFile+1)})).To(ContainSubstring("too large"))
		Expect(os.Chmod(b.path("old"), 0o444)).To(Succeed())
		Expect(b.fail("write_file", args{"path": "old", "content": ""})).To(Equal(`"old": permission denied`))
		Expect(b.content("old")).To(Equal("new"))
	})

	It("says where a file is, not where a link to it is", func() {
		b := open(GinkgoTB(), map[string]string{"real/f": "x"})
		Expect(os.Symlink("real", b.path("link"))).To(Succeed())
		Expect(b.call("write_file", args{"path": "link/f", "content": "y"}).Paths).To(Equal([]string{"real/f"}))
		Expect(b.content("real/f")).To(Equal("y"))
	})
})

var _ = Describe("edit_file", func() {
	DescribeTable("changes a file", func(content, old, replacement string, all bool, want, says string) {
		b := open(GinkgoTB(), map[string]string{"f": content})
		out := b.call("edit_file", args{"path": "f", "old_string": old, "new_string": replacement, "replace_all": all})
		Expect(out.IsError).To(BeFalse(), text(out))
		Expect(text(out)).To(Equal("edited f: " + says))
		Expect(out.Paths).To(Equal([]string{"f"}))
		Expect(b.content("f")).To(Equal(want))
	},
		Entry("in one place", "a b c", "b", "x", false, "a x c", "1 replacement"),
		Entry("in all places", "b b b", "b", "xx", true, "xx xx xx", "3 replacements"),
		Entry("away", "a b", " b", "", false, "a", "1 replacement"),
		Entry("by itself", "a b", "b", "b", false, "a b", "1 replacement"),
		Entry("overlaps count once", "aaa", "aa", "b", false, "ba", "1 replacement"),
		Entry("over lines", "a\nb\nc", "a\nb", "x\ny", false, "x\ny\nc", "1 replacement"),
		Entry("CRLF stays CRLF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", "1 replacement"),
		Entry("CRLF given as CRLF", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n", "1 replacement"),
		Entry("mixed ends are taken as they are", "a\r\nb\nc\n", "b\nc", "x\r\ny", false, "a\r\nx\r\ny\n", "1 replacement"),
		Entry("a byte order mark stays", "\ufeffa b", "a", "x", false, "\ufeffx b", "1 replacement"),
		Entry("special characters are plain", "a.*$1\\b", ".*$1\\", "$0", false, "a$0b", "1 replacement"),
		Entry("NUL", "a\x00b", "\x00", "-", false, "a-b", "1 replacement"),
	)

	DescribeTable("fails and leaves the file", func(content, old string, all bool, says string) {
		b := open(GinkgoTB(), map[string]string{"f": content})
		Expect(b.fail("edit_file", args{"path": "f", "old_string": old, "new_string": "x", "replace_all": all})).To(Equal(says))
		Expect(b.content("f")).To(Equal(content))
	},
		Entry("absent", "abc", "d", false, `old_string is not in "f"`),
		Entry("absent, all", "abc", "d", true, `old_string is not in "f"`),
		Entry("other case", "abc", "A", false, `old_string is not in "f"`),
		Entry("not unique", "a a a", "a", false, `old_string is 3 times in "f", not unique; add text around it, or set replace_all`),
		Entry("an empty text", "abc", "", false, "old_string is empty; give the text to replace, or use write_file for a whole file"),
		Entry("an empty text, all", "abc", "", true, "old_string is empty; give the text to replace, or use write_file for a whole file"),
		Entry("an empty text, empty file", "", "", false, "old_string is empty; give the text to replace, or use write_file for a whole file"),
		Entry("not UTF-8", "a\xff", "a", false, `"f" is not UTF-8 text`),
		Entry("mixed ends", "a\r\nb\nc", "a\nb", false, `old_string is not in "f"`),
	)

	It("does not blow up a file", func() {
		b := open(GinkgoTB(), map[string]string{"f": strings.Repeat("a", 5000)})
		Expect(b.fail("edit_file", args{"path": "f", "old_string": "a", "new_string": strings.Repeat("x", 5000), "replace_all": true})).To(Equal(`"f" is too large; at most 10485760 bytes are allowed`))
	})
})

var _ = Describe("list_dir", func() {
	It("lists one level, sorted, hidden entries and links included", func() {
		b := open(GinkgoTB(), map[string]string{"b.txt": "", "a/x/y": "", ".hidden": "", "B": "", "é": "", "🦊": "", "a.txt": "", "line\nbreak": "", ".ssh/id": ""})
		for link, target := range map[string]string{"to-a": "a", "to-b": "b.txt", "to-none": "none", "to-up": "..", "to-etc": "/etc"} {
			Expect(os.Symlink(target, b.path(link))).To(Succeed())
		}
		out := b.call("list_dir", args{"path": "."})
		Expect(text(out)).To(Equal(strings.Join([]string{
			"file\t.hidden", "dir\t.ssh", "file\tB", "dir\ta", "file\ta.txt", "file\tb.txt", "file\t\"line\\nbreak\"", "dir\tto-a", "file\tto-b", "file\tto-etc", "file\tto-none", "file\tto-up", "file\té", "file\t🦊",
		}, "\n")))
		Expect(out.Meta).To(Equal(conversation.JSON(`{"count":14}`)))
		Expect(out.Paths).To(Equal([]string{"."}))
		Expect(b.ok("list_dir", args{"path": "to-a/"})).To(Equal("dir\tx"))
		Expect(os.Mkdir(b.path("empty"), 0o755)).To(Succeed())
		Expect(b.ok("list_dir", args{"path": "empty"})).To(BeEmpty())
	})
})
