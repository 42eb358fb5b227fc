package guard_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/guard"
)

func TestGuard(t *testing.T) { suite.Run(t, "guard") }

const canary = "the canary outside"

// build makes a workspace beside a folder that must never be reached.
func build(t testing.TB) (ws *guard.Workspace, inside, outside string) {
	t.Helper()
	base := t.TempDir()
	inside, outside = filepath.Join(base, "workspace"), filepath.Join(base, "workspace-outside")
	for _, dir := range []string{"notes/deep", ".ssh", ".config/gh", ".config/other", "empty"} {
		must(t, os.MkdirAll(filepath.Join(inside, filepath.FromSlash(dir)), 0o755))
	}
	must(t, os.Mkdir(outside, 0o755))
	for name, content := range map[string]string{"a.txt": "alpha\n", "notes/b.txt": "beta\n", ".env": "SECRET=1\n", "prod.env": "SECRET=2\n", ".ssh/config": "Host x\n", ".config/gh/hosts.yml": "token\n", ".config/other/c": "c\n", "id_rsa": "key\n", ".bashrc": "alias\n", "~": "tilde\n"} {
		must(t, os.WriteFile(filepath.Join(inside, filepath.FromSlash(name)), []byte(content), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(outside, "canary.txt"), []byte(canary), 0o644))
	for link, target := range map[string]string{
		"to-a": "a.txt", "to-notes": "notes", "notes/up": "../a.txt", "notes/deep/top": "../..", "to-env": ".env", "to-nothing": "new.txt", "loop": "loop", "ring1": "ring2", "ring2": "ring1",
		"out-rel": "../workspace-outside/canary.txt", "out-dir": "../workspace-outside", "out-abs": outside, "abs-in": filepath.Join(inside, "a.txt"), "out-root": "/", "proc": "/proc/self/environ",
	} {
		must(t, os.Symlink(target, filepath.Join(inside, filepath.FromSlash(link))))
	}
	ws, err := guard.NewWorkspace(inside)
	must(t, err)
	t.Cleanup(func() { ws.Close() })
	return ws, inside, outside
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var _ = Describe("the path guard", func() {
	var ws *guard.Workspace
	var inside string
	BeforeEach(func() { ws, inside, _ = build(GinkgoTB()) })

	const all = guard.Read | guard.Write | guard.List

	DescribeTable("leads to files of the workspace", func(given, rel string, exists bool) {
		r, err := ws.Resolve(given, all)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Given).To(Equal(given))
		Expect(r.Rel).To(Equal(rel))
		Expect(r.Exists()).To(Equal(exists))
	},
		Entry(nil, "a.txt", "a.txt", true),
		Entry(nil, "./a.txt", "a.txt", true),
		Entry(nil, "notes//b.txt", "notes/b.txt", true),
		Entry(nil, "notes/../a.txt", "a.txt", true),
		Entry(nil, ".", ".", true),
		Entry(nil, "notes/", "notes", true),
		Entry(nil, "notes/..", ".", true),
		Entry("a link", "to-a", "a.txt", true),
		Entry("a link to a folder", "to-notes/b.txt", "notes/b.txt", true),
		Entry(".. behind a link is the parent of where it leads", "to-notes/../a.txt", "a.txt", true),
		Entry("a link upwards", "notes/up", "a.txt", true),
		Entry("a link to the top", "notes/deep/top/a.txt", "a.txt", true),
		Entry("a link to nothing", "to-nothing", "new.txt", false),
		Entry("nothing yet", "new/folder/x.txt", "new/folder/x.txt", false),
		Entry(".. after nothing", "new/../a.txt", "a.txt", true),
		Entry("~ is a name", "~", "~", true),
		Entry("a percent sign is a name", "%2e%2e/x", "%2e%2e/x", false),
		Entry("dots are a name", "...", "...", false),
		Entry("emoji", "notes/🦊 fox.md", "notes/🦊 fox.md", false),
		Entry("right to left", "notes/مرحبا.txt", "notes/مرحبا.txt", false),
		Entry("the longest name", strings.Repeat("n", 255), strings.Repeat("n", 255), false),
	)

	DescribeTable("refuses", func(given string, access guard.Access, kind guard.Kind) {
		_, err := ws.Resolve(given, access)
		var e *guard.Error
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect(e.Kind).To(Equal(kind))
		Expect(e.Path).To(Equal(given))
		Expect(err.Error()).NotTo(ContainSubstring(inside))
	},
		Entry("nothing", "", guard.Read, guard.Empty),
		Entry("an absolute path", "/etc/passwd", guard.Read, guard.Absolute),
		Entry("a device", "/dev/zero", guard.Read, guard.Absolute),
		Entry("/proc", "/proc/self/environ", guard.Read, guard.Absolute),
		Entry("the root", "/", guard.List, guard.Absolute),
		Entry("NUL", "a\x00.txt", guard.Read, guard.Malformed),
		Entry("a newline", "a\n.txt", guard.Write, guard.Malformed),
		Entry("an escape", "\x1b[31m", guard.Read, guard.Malformed),
		Entry("C1", "a\u0085b", guard.Read, guard.Malformed),
		Entry("invalid UTF-8", "a\xff", guard.Read, guard.Malformed),
		Entry("a backslash", `notes\b.txt`, guard.Read, guard.Backslash),
		Entry("upwards with backslashes", `..\x`, guard.Write, guard.Backslash),
		Entry("upwards", "../x", guard.Read, guard.Outside),
		Entry("upwards and back", "../workspace/a.txt", guard.Read, guard.Outside),
		Entry("upwards later", "notes/../../workspace-outside/canary.txt", guard.Read, guard.Outside),
		Entry("upwards after nothing", "new/../../x", guard.Write, guard.Outside),
		Entry("upwards behind a link to the top", "notes/deep/top/../a.txt", guard.Read, guard.Outside),
		Entry("a link out", "out-rel", guard.Read, guard.Outside),
		Entry("a folder link out", "out-dir/canary.txt", guard.Read, guard.Outside),
		Entry("a new file behind a link out", "out-dir/new.txt", guard.Write, guard.Outside),
		Entry("an absolute link out", "out-abs/canary.txt", guard.Read, guard.Outside),
		Entry("an absolute link in", "abs-in", guard.Read, guard.Outside),
		Entry("a link to the root", "out-root/etc/passwd", guard.Read, guard.Outside),
		Entry("a link to /proc", "proc", guard.Read, guard.Outside),
		Entry("a link in a circle", "loop", guard.Read, guard.TooManyHops),
		Entry("links in a ring", "ring1/x", guard.Write, guard.TooManyHops),
		Entry("a name of 300 bytes", strings.Repeat("n", 300), guard.Write, guard.TooLong),
		Entry("a name of 256 bytes in 128 characters", strings.Repeat("é", 128), guard.Write, guard.TooLong),
		Entry("a path of 5,000 bytes", strings.Repeat("ab/", 1700), guard.Read, guard.TooLong),
		Entry("a file as folder", "a.txt/b", guard.Read, guard.NoFolder),
		Entry("a file with a slash", "a.txt/", guard.Read, guard.NoFolder),
		Entry("a new file with a slash", "new/", guard.Write, guard.IsFolder),
		Entry("credentials by name", ".env", guard.Read, guard.Withheld),
		Entry("credentials by the end of a name", "prod.env", guard.Read, guard.Withheld),
		Entry("credentials in other case", "PROD.ENV", guard.Read, guard.Withheld),
		Entry("credentials in letters that fold", "ſecrets.yaml", guard.Read, guard.Withheld),
		Entry("credentials not there", "x/my-credentials.json", guard.Read, guard.Withheld),
		Entry("credentials behind a link", "to-env", guard.Read, guard.Withheld),
		Entry("credentials behind ..", "notes/../.env", guard.Read, guard.Withheld),
		Entry("a key", "id_rsa", guard.Read, guard.Withheld),
		Entry("a credential folder", ".ssh/config", guard.Read, guard.Withheld),
		Entry("a credential folder, listed", ".ssh", guard.List, guard.Withheld),
		Entry("a credential folder of two names", ".config/gh/hosts.yml", guard.Read, guard.Withheld),
		Entry("writing below a credential folder", ".aws/new", guard.Write, guard.Protected),
		Entry("settings of a shell", ".bashrc", guard.Write, guard.Protected),
		Entry("settings of a shell, deeper", "notes/.zshrc", guard.Write, guard.Protected),
		Entry("reading what is edited", "prod.env", guard.Read|guard.Write, guard.Withheld),
	)

	DescribeTable("lets pass what only looks like credentials", func(given string, access guard.Access) {
		_, err := ws.Resolve(given, access)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry(nil, ".env.example", guard.Read), Entry(nil, "environment", guard.Read), Entry(nil, ".config/other/c", guard.Read), Entry(nil, ".config", guard.List),
		Entry(nil, "ssh/config", guard.Read), Entry(nil, ".bashrc", guard.Read), Entry(nil, "new.env", guard.Write), Entry(nil, "secrets.yaml.md", guard.Read),
	)

	It("says the same of every failure, without the machine's words", func() {
		_, err := ws.Resolve("nope.txt", guard.Read)
		Expect(err).NotTo(HaveOccurred())
		for _, c := range []struct {
			path string
			use  func(guard.Resolved) error
			want string
		}{
			{"nope.txt", func(r guard.Resolved) error { _, err := ws.ReadFile(r, 10); return err }, `"nope.txt": no such file or folder`},
			{"notes", func(r guard.Resolved) error { _, err := ws.ReadFile(r, 10); return err }, `"notes" is a folder`},
			{"a.txt", func(r guard.Resolved) error { _, err := ws.ReadFile(r, 3); return err }, `"a.txt" is too large; at most 3 bytes are allowed`},
			{"nope", func(r guard.Resolved) error { _, err := ws.ReadDir(r); return err }, `"nope": no such file or folder`},
			{"a.txt", func(r guard.Resolved) error { _, err := ws.ReadDir(r); return err }, `"a.txt" is not a folder`},
			{"notes", func(r guard.Resolved) error { return ws.WriteFile(r, nil, true) }, `"notes" is a folder`},
			{"no/x", func(r guard.Resolved) error { return ws.WriteFile(r, nil, false) }, `"no/x": no such file or folder`},
		} {
			r, err := ws.Resolve(c.path, all)
			Expect(err).NotTo(HaveOccurred())
			Expect(c.use(r)).To(MatchError(c.want))
		}
	})

	DescribeTable("reduces errors of the operating system", func(err error, kind guard.Kind) {
		Expect(guard.KindOf(&fs.PathError{Op: "open", Path: "/secret", Err: err})).To(Equal(kind))
	},
		Entry(nil, syscall.ENOENT, guard.Missing), Entry(nil, syscall.EEXIST, guard.Exists), Entry(nil, syscall.EACCES, guard.Permission), Entry(nil, syscall.EPERM, guard.Permission), Entry(nil, syscall.EROFS, guard.Permission),
		Entry(nil, syscall.ENOTDIR, guard.NoFolder), Entry(nil, syscall.EISDIR, guard.IsFolder), Entry(nil, syscall.ENAMETOOLONG, guard.TooLong), Entry(nil, syscall.ELOOP, guard.TooManyHops), Entry(nil, syscall.ENOSPC, guard.NoSpace), Entry(nil, syscall.EIO, guard.Failed),
	)

	It("never opens a pipe", func() {
		Expect(syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o644)).To(Succeed())
		Expect(os.Symlink("pipe", filepath.Join(inside, "to-pipe"))).To(Succeed())
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer GinkgoRecover()
			for _, path := range []string{"pipe", "to-pipe"} {
				_, err := ws.Resolve(path, guard.Read)
				Expect(err).To(MatchError(fmt.Sprintf("%q is neither a file nor a folder", path)))
			}
			// It takes the place of a file that was resolved.
			r, err := ws.Resolve("a.txt", guard.Read)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.Rename(filepath.Join(inside, "pipe"), filepath.Join(inside, "a.txt"))).To(Succeed())
			_, err = ws.ReadFile(r, 100)
			Expect(guard.KindOf(err)).To(Equal(guard.Changed))
		}()
		Eventually(done, 10*time.Second).Should(BeClosed())
	})

	It("writes all or nothing and keeps permissions", func() {
		Expect(os.Chmod(filepath.Join(inside, "a.txt"), 0o751)).To(Succeed())
		r, err := ws.Resolve("to-a", all)
		Expect(err).NotTo(HaveOccurred())
		Expect(ws.WriteFile(r, []byte("new"), false)).To(Succeed())
		info, err := os.Lstat(filepath.Join(inside, "a.txt"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()).To(Equal(fs.FileMode(0o751)))
		info, err = os.Lstat(filepath.Join(inside, "to-a"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()&fs.ModeSymlink).NotTo(BeZero(), "the link stays")
		r, err = ws.Resolve("x/y/z.txt", all)
		Expect(err).NotTo(HaveOccurred())
		Expect(ws.WriteFile(r, []byte("deep"), true)).To(Succeed())
		r, err = ws.Resolve("x/y", guard.List)
		Expect(err).NotTo(HaveOccurred())
		entries, err := ws.ReadDir(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(1), "nothing is left over")
		Expect(os.Chmod(filepath.Join(inside, "a.txt"), 0o444)).To(Succeed())
		r, err = ws.Resolve("a.txt", all)
		Expect(err).NotTo(HaveOccurred())
		Expect(ws.WriteFile(r, nil, false)).To(MatchError(`"a.txt": permission denied`))
	})

	It("reads a file that grew since it was resolved, within the limit", func() {
		r, err := ws.Resolve("a.txt", guard.Read)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(inside, "a.txt"), []byte(strings.Repeat("x", 5000)), 0o644)).To(Succeed())
		data, err := ws.ReadFile(r, 5000)
		Expect(err).NotTo(HaveOccurred())
		Expect(data).To(HaveLen(5000))
		_, err = ws.ReadFile(r, 4999)
		Expect(guard.KindOf(err)).To(Equal(guard.TooLarge))
	})

	It("tells NFC from NFD where the file system does", func() {
		nfc, nfd := "caf\u00e9.txt", "cafe\u0301.txt"
		Expect(os.WriteFile(filepath.Join(inside, nfc), []byte("c"), 0o644)).To(Succeed())
		_, statErr := os.Stat(filepath.Join(inside, nfd))
		r, err := ws.Resolve(nfd, guard.Read)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Exists()).To(Equal(statErr == nil))
	})

	It("is not opened on what is no folder", func() {
		_, err := guard.NewWorkspace(filepath.Join(inside, "a.txt"))
		Expect(err).To(HaveOccurred())
		_, err = guard.NewWorkspace(filepath.Join(inside, "none"))
		Expect(err).To(MatchError(fs.ErrNotExist))
	})

	It("does not let a race escape", func() {
		ws, inside, outside := build(GinkgoTB())
		link := filepath.Join(inside, "swap")
		before, err := guard.HashTree(outside)
		Expect(err).NotTo(HaveOccurred())
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			targets := []string{"notes", "../workspace-outside", outside}
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				os.Remove(link)
				os.Symlink(targets[i%3], link)
			}
		})
		tried, read := 0, 0
		for tried = 0; tried < 1000; tried++ {
			if r, err := ws.Resolve("swap/canary.txt", guard.Read); err == nil {
				if data, err := ws.ReadFile(r, 100); err == nil {
					read++
					Expect(string(data)).NotTo(Equal(canary))
				}
			}
			if r, err := ws.Resolve("swap/b.txt", guard.Write); err == nil {
				_ = ws.WriteFile(r, []byte("w"), true)
			}
		}
		close(stop)
		wg.Wait()
		Expect(tried).To(Equal(1000))
		Expect(guard.HashTree(outside)).To(Equal(before))
	})
})

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"a.txt", "../workspace-outside/canary.txt", "out-dir/canary.txt", "notes/deep/top/../x", "out-abs/x", "/etc/passwd", "to-notes/../..", "ring1", "notes/up/..", "x/../../y", ".ssh/../a.txt", "a\x00b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		ws, _, outside := build(t)
		before, err := guard.HashTree(outside)
		must(t, err)
		for _, access := range []guard.Access{guard.Read, guard.Write, guard.List, guard.Read | guard.Write} {
			r, err := ws.Resolve(given, access)
			if err != nil {
				var e *guard.Error
				if !errors.As(err, &e) || strings.Contains(err.Error(), "workspace-outside") && !strings.Contains(given, "workspace-outside") {
					t.Fatalf("%q: %v", given, err)
				}
				continue
			}
			if r.Rel != "." && !filepath.IsLocal(r.Rel) {
				t.Fatalf("%q leads to %q", given, r.Rel)
			}
			if data, err := ws.ReadFile(r, 1000); err == nil && (string(data) == canary || access == guard.Read && strings.Contains(string(data), "SECRET")) {
				t.Fatalf("%q reads %q", given, data)
			}
			if entries, err := ws.ReadDir(r); err == nil && len(entries) == 1 && entries[0].Name() == "canary.txt" {
				t.Fatalf("%q lists the outside", given)
			}
			if access&guard.Write != 0 {
				_ = ws.WriteFile(r, []byte("written"), true)
			}
		}
		if after, err := guard.HashTree(outside); err != nil || after != before {
			t.Fatalf("%q changed the outside: %v", given, err)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	ws, _, _ := build(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ws.Resolve("notes/b.txt", guard.Read); err != nil {
			b.Fatal(err)
		}
	}
}
