package recordings_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/imports/recordings"
)

// digests is what Python's own libraries make of the recorded traffic, see testdata/digests.py.
//
//go:embed testdata/digests.tsv
var digests string

// handedOut is a line of the index of the recorded traffic.
type handedOut struct {
	file, format string
	exchanges    int
}

// index reads which recordings are there, and that all files are in it.
func index(dir string) (list []handedOut) {
	data, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(data)) {
		columns := strings.Split(line, "\t")
		if columns[0] == "file" {
			continue
		}
		n, err := strconv.Atoi(columns[3])
		Expect(err).NotTo(HaveOccurred(), columns[0])
		format, _, _ := strings.Cut(columns[0], "/")
		list = append(list, handedOut{columns[0], format, n})
	}
	files := 0
	Expect(filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return err
	})).To(Succeed())
	Expect(list).To(HaveLen(files - 1))
	return list
}

// formatOf tells which of our formats a folder of the recorded traffic is in.
var formatOf = map[string]string{
	"go-vcr-v1": "go-vcr 1", "go-vcr-v2": "go-vcr 2", "vcrpy-v1": "VCR.py", "langchain-requests-responses+gz": "VCR.py requests and responses", "ruby-vcr": "Ruby VCR", "polly-har": "Polly HAR",
	"httprr": "httprr", "nock-json": "nock", "json-req-resp": "one exchange",
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return fmt.Sprintf("%d\t%s", len(body), hex.EncodeToString(sum[:8]))
}

func read(dir, file string) *recordings.Recording {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	Expect(err).NotTo(HaveOccurred())
	r, err := recordings.Read(file, data)
	Expect(err).NotTo(HaveOccurred())
	return r
}

var _ = Describe("the recorded traffic", func() {
	It("is read whole, in the format that it is in", func() {
		dir := suite.SharedData("cassettes")
		type count struct{ files, exchanges int }
		formats, vendors := map[string]count{}, map[string]count{}
		for _, f := range index(dir) {
			r := read(dir, f.file)
			Expect(r.Format).To(Equal(formatOf[f.format]), f.file)
			Expect(r.Exchanges).To(HaveLen(f.exchanges), f.file)
			c := formats[r.Format]
			formats[r.Format] = count{c.files + 1, c.exchanges + len(r.Exchanges)}
			here := map[string]int{}
			for i := range r.Exchanges {
				here[cmp.Or(recordings.Vendor(r.Exchanges[i].URL), "no vendor of models")]++
			}
			for name, n := range here {
				c := vendors[name]
				vendors[name] = count{c.files + 1, c.exchanges + n}
			}
		}
		var b strings.Builder
		for _, table := range []map[string]count{formats, vendors} {
			sum := 0
			for _, name := range slices.Sorted(maps.Keys(table)) {
				fmt.Fprintf(&b, "%-32s %3d files %4d exchanges\n", name, table[name].files, table[name].exchanges)
				sum += table[name].exchanges
			}
			fmt.Fprintf(&b, "%-32s           %4d exchanges\n\n", "all", sum)
		}
		fmt.Fprint(os.Stdout, "\n"+b.String())
		for _, name := range recordings.Formats() {
			if name != "HAR" { // none is handed out; testdata has one
				Expect(formats[name].exchanges).To(BeNumerically(">", 0), name)
			}
		}
		for _, vendor := range []string{"anthropic", "azure", "bedrock", "gemini", "mistral", "ollama", "openai", "openrouter", "together", "vertex"} {
			Expect(vendors[vendor].exchanges).To(BeNumerically(">", 0), vendor)
		}
	})

	It("has the bodies that another program finds in it, to the byte", func() {
		dir := suite.SharedData("cassettes")
		var got strings.Builder
		for _, f := range index(dir) {
			for i, x := range read(dir, f.file).Exchanges {
				fmt.Fprintf(&got, "%s\t%d\t%s\t%d\t%s\t%s\n", f.file, i+1, x.Method, x.Code, digest(x.Request.Body), digest(x.Response.Body))
			}
		}
		want := strings.Split(digests, "\n")
		Expect(len(want)).To(BeNumerically(">", 200))
		Expect(strings.Split(got.String(), "\n")).To(Equal(want))
	})

	It("becomes cassettes that lose no byte of a response, are read again as the same, and are read by go-vcr", func() {
		dir := suite.SharedData("cassettes")
		folder := GinkgoT().TempDir()
		streams, coded, repeated := 0, 0, 0
		for _, f := range index(dir) {
			r := read(dir, f.file)
			file, err := r.Cassette(cassette.Header{}, &secret.Detector{}, nil)
			Expect(err).NotTo(HaveOccurred(), f.file)
			data, err := cassette.Encode(file)
			Expect(err).NotTo(HaveOccurred(), f.file)
			again, err := cassette.Decode(data, f.file)
			Expect(err).NotTo(HaveOccurred())
			twice, err := cassette.Encode(again)
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.Equal(twice, data)).To(BeTrue(), f.file)

			path := filepath.Join(folder, "a")
			Expect(os.WriteFile(path+".yaml", data, 0o644)).To(Succeed())
			theirs, err := vcr.Load(path)
			Expect(err).NotTo(HaveOccurred(), f.file)
			Expect(theirs.Interactions).To(HaveLen(f.exchanges))

			rules, err := cassette.NewRules(nil)
			Expect(err).NotTo(HaveOccurred())
			seen := map[cassette.Key]string{}
			for i, x := range r.Exchanges {
				got := &again.Interactions[i]
				place := fmt.Sprintf("%s exchange %d", f.file, i+1)
				Expect(rules.Open(got.Response.Body) == string(x.Response.Body)).To(BeTrue(), place)
				Expect(got.Response.Code).To(Equal(x.Code), place)
				Expect(theirs.Interactions[i].Response.Body == got.Response.Body && theirs.Interactions[i].Request.Body == got.Request.Body).To(BeTrue(), place)
				Expect(got.Response.Headers).NotTo(HaveKey("Content-Encoding"), place)
				header := x.Request.Header.Clone()
				if !strings.Contains(header.Get("Content-Type"), "/") && got.Request.Headers.Get("Content-Type") != "" {
					header.Set("Content-Type", got.Request.Headers.Get("Content-Type")) // added, and reported
				}
				canonical, _ := cassette.Canonical(x.Method, x.URL, header, x.Request.Body, rules)
				Expect(got.Request).To(Equal(canonical), place)
				Expect(cassette.Recanonical(got.Request, nil)).To(Equal(got.Request), place)
				if strings.Contains(got.Response.Headers.Get("Content-Type"), "event") {
					streams++
				}
				if got.Extra.Encoding != "" {
					coded++
				}
				if before, is := seen[cassette.KeyOf(got.Request)]; is && before != got.Response.Body {
					repeated++
				}
				seen[cassette.KeyOf(got.Request)] = got.Response.Body
			}
		}
		Expect(streams).To(BeNumerically(">", 50))
		Expect(coded).To(BeNumerically(">", 10))
		Expect(repeated).To(BeNumerically(">", 5), "equal requests with different replies, in their order")
	})
})
