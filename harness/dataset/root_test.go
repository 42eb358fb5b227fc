package dataset_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/dataset"
)

var _ = DescribeTable("the root", func(current, want string, markers ...string) {
	// The folder must not itself lie in a repository, so markers are looked for below it only where none is above.
	top := GinkgoT().TempDir()
	dir := filepath.Join(top, "a", "b", "datasets")
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	for _, m := range markers {
		path := filepath.Join(top, filepath.FromSlash(m))
		if filepath.Base(path) == ".git" {
			Expect(os.Mkdir(path, 0o755)).To(Succeed())
			continue
		}
		Expect(os.WriteFile(path, nil, 0o644)).To(Succeed())
	}
	if current != "" {
		current = filepath.Join(top, filepath.FromSlash(current))
	}
	Expect(dataset.Root(filepath.Join(dir, "d.yaml"), current)).To(Equal(filepath.Join(top, filepath.FromSlash(want))))
},
	Entry("the nearest project file", "a", "a/b", "echoeval.yaml", "a/echoeval.yaml", "a/b/echoeval.yaml", "a/b/datasets/.git"),
	Entry("a project file further up than .git", "a", "a", "a/echoeval.yaml", "a/b/.git"),
	Entry("the nearest .git", "a", "a/b", ".git", "a/b/.git"),
	Entry("the current folder if the file lies in it", "a", "a"),
	Entry("the current folder itself", "a/b/datasets", "a/b/datasets"),
	Entry("the file's folder if it lies elsewhere", "a/c", "a/b/datasets"),
	Entry("no prefix that only looks like a folder above", "a/b/data", "a/b/datasets"),
	Entry("the file's folder without a current one", "", "a/b/datasets"),
)
