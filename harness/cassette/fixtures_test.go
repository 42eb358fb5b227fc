package cassette

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// Every committed cassette is what the encoder would write, so that it is read fast and recording it again can give the same bytes; go-vcr loads it with the same contents; and its requests are in their canonical form.
func TestCommittedCassettes(t *testing.T) {
	g := NewWithT(t)
	root := filepath.Join(suite.Root(), "fixtures", "cassettes")
	count := 0
	g.Expect(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		count++
		data, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		f, err := Decode(data, path)
		g.Expect(err).NotTo(HaveOccurred())
		again, err := Encode(f)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bytes.Equal(data, again)).To(BeTrue(), "%s is not what the encoder writes", path)
		same(t, f, data)
		for n, i := range f.Interactions {
			if r := Recanonical(i.Request, nil); !reflect.DeepEqual(r, i.Request) {
				t.Errorf("%s: interaction %d is not in its canonical form", path, n+1)
			}
		}
		return nil
	})).To(Succeed())
	g.Expect(count).To(BeNumerically(">", 0), "no cassettes below fixtures")
}
