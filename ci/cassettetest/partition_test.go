package cassettetest

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestCassettes(t *testing.T) { suite.Run(t, "committed cassettes") }

// recorded reads the header of the fixtures: what stands before the first line end, as dataset/provider/item.
func recorded(_ string, data []byte) (Owner, error) {
	line, _, _ := strings.Cut(string(data), "\n")
	part := strings.Split(line, "/")
	if len(part) != 3 {
		return Owner{}, errors.New("no cassette")
	}
	return Owner{Dataset: part[0], Provider: part[1], Item: part[2], Repeat: 1}, nil
}

var _ = DescribeTable("the partition of recordings", func(files map[string]string, owners map[string][]Owner, want ...string) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[Folder+"/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	full := map[string][]Owner{}
	for name, of := range owners {
		full[Folder+"/"+name] = of
	}
	problems, err := Check(fsys, full, recorded)
	Expect(err).NotTo(HaveOccurred())
	Expect(problems).To(HaveLen(len(want)), "%q", problems)
	for i := range want {
		Expect(problems[i]).To(ContainSubstring(want[i]))
	}
},
	Entry("one file for one item",
		map[string]string{"d/p/a.yaml": "d/p/a\nbody"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}}),
	Entry("a file without an item",
		map[string]string{"d/p/a.yaml": "d/p/a", "d/p/b.yaml": "d/p/b"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"d/p/b.yaml: belongs to no item"),
	Entry("an item without a file",
		map[string]string{"d/p/a.yaml": "d/p/a"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}, "d/p/b.yaml": {{"d", "p", "b", 1}}},
		"d/p/b.yaml: is absent, the recording of d, p, b, repeat 1"),
	Entry("a file for two items",
		map[string]string{"d/p/a.yaml": "d/p/a"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}, {"d", "p", "A", 1}}},
		"more than one owner"),
	Entry("a file in another's place",
		map[string]string{"d/p/a.yaml": "d/p/b"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"was recorded for d, p, b, repeat 1, and lies where the one for d, p, a, repeat 1 belongs"),
	Entry("a file that is no cassette",
		map[string]string{"d/p/a.yaml": "version of git-lfs"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"d/p/a.yaml: no cassette"),
	Entry("a file of another kind among them",
		map[string]string{"README.md": "Recordings", "d/p/a.yaml": "d/p/a"}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"README.md: no cassette"),
	Entry("a file that is too large",
		map[string]string{"d/p/a.yaml": "d/p/a\n" + strings.Repeat("x", MaxSize)}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"more than the 1048576"),
	Entry("a secret in a file",
		map[string]string{"d/p/a.yaml": "d/p/a\nkey: sk-" + strings.Repeat("aB3", 16)}, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"holds a secret"),
	Entry("no recordings at all",
		nil, map[string][]Owner{"d/p/a.yaml": {{"d", "p", "a", 1}}},
		"is absent", "no recordings"),
	Entry("nothing at all", nil, nil, "no items", "no recordings"),
)
