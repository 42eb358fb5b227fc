package guard_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/guard"
)

func plant(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

var _ = Describe("a tree", func() {
	var src string
	BeforeEach(func() {
		src = plant(GinkgoTB(), map[string]string{"a.txt": "a", "run.sh": "#!", "sub/deep/b.txt": "b", "sub/🦊.md": "fox", "empty.txt": ""})
		Expect(os.Mkdir(filepath.Join(src, "hollow"), 0o700)).To(Succeed())
		Expect(os.Chmod(filepath.Join(src, "run.sh"), 0o700)).To(Succeed())
		Expect(os.Chmod(filepath.Join(src, "a.txt"), 0o640)).To(Succeed())
		Expect(os.Symlink("../a.txt", filepath.Join(src, "sub/link"))).To(Succeed())
		Expect(os.Symlink("nothing", filepath.Join(src, "dangling"))).To(Succeed())
	})

	It("is copied with modes made the same, and has the hash of its original", func() {
		dst := filepath.Join(GinkgoT().TempDir(), "new", "copy")
		Expect(guard.CopyTree(src, dst)).To(Succeed())
		modes := map[string]string{}
		Expect(filepath.WalkDir(dst, func(path string, d fs.DirEntry, err error) error {
			Expect(err).NotTo(HaveOccurred())
			info, err := d.Info()
			Expect(err).NotTo(HaveOccurred())
			rel, _ := filepath.Rel(dst, path)
			if info.Mode()&fs.ModeSymlink != 0 {
				modes[rel] = "link"
			} else {
				modes[rel] = info.Mode().String()
			}
			return nil
		})).To(Succeed())
		Expect(modes).To(Equal(map[string]string{".": "drwxr-xr-x", "a.txt": "-rw-r--r--", "run.sh": "-rwxr-xr-x", "sub": "drwxr-xr-x", "sub/deep": "drwxr-xr-x", "sub/deep/b.txt": "-rw-r--r--", "sub/🦊.md": "-rw-r--r--", "empty.txt": "-rw-r--r--", "hollow": "drwxr-xr-x", "sub/link": "link", "dangling": "link"}))
		Expect(os.ReadFile(filepath.Join(dst, "sub/link"))).To(Equal([]byte("a")))
		a, err := guard.HashTree(src)
		Expect(err).NotTo(HaveOccurred())
		Expect(a).To(MatchRegexp("^[0-9a-f]{16}$"))
		Expect(guard.HashTree(dst)).To(Equal(a))
	})

	DescribeTable("changes its hash with", func(change func(src string) error, changes bool) {
		before, err := guard.HashTree(src)
		Expect(err).NotTo(HaveOccurred())
		Expect(change(src)).To(Succeed())
		after, err := guard.HashTree(src)
		Expect(err).NotTo(HaveOccurred())
		Expect(after != before).To(Equal(changes))
	},
		Entry("content", func(d string) error { return os.WriteFile(filepath.Join(d, "a.txt"), []byte("A"), 0o644) }, true),
		Entry("a name", func(d string) error { return os.Rename(filepath.Join(d, "a.txt"), filepath.Join(d, "b.txt")) }, true),
		Entry("another folder", func(d string) error { return os.Rename(filepath.Join(d, "sub/deep"), filepath.Join(d, "deep")) }, true),
		Entry("a new empty file", func(d string) error { return os.WriteFile(filepath.Join(d, "z"), nil, 0o644) }, true),
		Entry("permission to execute", func(d string) error { return os.Chmod(filepath.Join(d, "a.txt"), 0o744) }, true),
		Entry("the target of a link", func(d string) error {
			os.Remove(filepath.Join(d, "dangling"))
			return os.Symlink("other", filepath.Join(d, "dangling"))
		}, true),
		Entry("other permissions", func(d string) error { return os.Chmod(filepath.Join(d, "a.txt"), 0o600) }, false),
		Entry("an empty folder", func(d string) error { return os.Mkdir(filepath.Join(d, "new"), 0o755) }, false),
	)

	It("has a hash of its own when it is empty, and one that does not move between versions", func() {
		Expect(guard.HashTree(GinkgoT().TempDir())).To(Equal("e3b0c44298fc1c14"))
		Expect(guard.HashTree(plant(GinkgoTB(), map[string]string{"a": "1", "b/c": "2"}))).To(Equal("d7d5807e5f65d938"))
	})

	DescribeTable("is refused with", func(spoil func(src string) error, text string) {
		Expect(spoil(src)).To(Succeed())
		dst := filepath.Join(GinkgoT().TempDir(), "copy")
		Expect(guard.CopyTree(src, dst)).To(MatchError(And(ContainSubstring(text), Not(ContainSubstring(src)))))
		_, err := os.Stat(dst)
		Expect(err).To(MatchError(fs.ErrNotExist), "nothing was written")
		_, err = guard.HashTree(src)
		Expect(err).To(MatchError(ContainSubstring(text)))
	},
		Entry("a link upwards", func(d string) error { return os.Symlink("../..", filepath.Join(d, "sub/bad")) }, "sub/bad: the link leads outside"),
		Entry("a link upwards to nothing", func(d string) error { return os.Symlink("../../none", filepath.Join(d, "sub/bad")) }, "sub/bad: the link leads outside"),
		Entry("an absolute link", func(d string) error { return os.Symlink(filepath.Join(d, "a.txt"), filepath.Join(d, "bad")) }, "bad: the link leads outside"),
		Entry("a link in a circle", func(d string) error { return os.Symlink("bad", filepath.Join(d, "bad")) }, "in a circle"),
		Entry("a pipe", func(d string) error { return syscall.Mkfifo(filepath.Join(d, "pipe"), 0o644) }, "pipe: neither"),
		Entry("too many bytes", func(d string) error {
			f, err := os.Create(filepath.Join(d, "huge"))
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(guard.MaxTreeBytes + 1) // a file with a hole takes no room
		}, "more than 268435456 bytes"),
		Entry("too many entries", func(d string) error {
			if err := os.Mkdir(filepath.Join(d, "many"), 0o755); err != nil {
				return err
			}
			for i := range guard.MaxTreeEntries {
				if err := os.Symlink("x", filepath.Join(d, "many", string(rune('a'+i%26))+string(rune(0x4e00+i)))); err != nil {
					return err
				}
			}
			return nil
		}, "more than 20000 entries"),
	)

	It("is not copied over something, into itself or from nowhere", func() {
		Expect(guard.CopyTree(src, plant(GinkgoTB(), map[string]string{"x": ""}))).To(MatchError(ContainSubstring("not empty")))
		Expect(guard.CopyTree(src, filepath.Join(src, "sub", "copy"))).To(MatchError(ContainSubstring("inside the folder that is copied")))
		Expect(guard.CopyTree(src, src)).To(MatchError(ContainSubstring("inside the folder that is copied")))
		Expect(guard.CopyTree(filepath.Join(src, "none"), GinkgoT().TempDir())).To(MatchError(fs.ErrNotExist))
		_, err := guard.HashTree(filepath.Join(src, "none"))
		Expect(err).To(MatchError(fs.ErrNotExist))
		Expect(guard.CopyTree(src, GinkgoT().TempDir())).To(Succeed(), "an empty folder is taken")
	})
})

func BenchmarkCopyTree(b *testing.B) {
	src := plant(b, map[string]string{"a.txt": "a", "b/c.txt": "c", "b/d.txt": "d", "e.md": "e"})
	base := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		if err := guard.CopyTree(src, filepath.Join(base, string(rune('a'+n%26)), string(rune(0x4e00+n)))); err != nil {
			b.Fatal(err)
		}
	}
}
