package archtest

import (
	"testing/fstest"

	. "github.com/onsi/gomega"
)

// fixture builds a tree from files; go.mod and .gitignore are there unless given.
func fixture(files map[string]string) *Tree {
	fsys := fstest.MapFS{
		"go.mod":     {Data: []byte("module example.com/house\n\ngo 1.26.0\n")},
		".gitignore": {Data: []byte("/bin/\n")},
	}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(fsys)
	Expect(err).NotTo(HaveOccurred())
	return tree
}
