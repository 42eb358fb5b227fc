package recordings_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
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
	features     []string
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
		list = append(list, handedOut{columns[0], format, n, strings.Split(strings.TrimSpace(columns[5]), ",")})
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

// wholeFrames counts the messages of an event-stream of AWS; 0 where a checksum is wrong, or anything is left over.
func wholeFrames(body []byte) (n int) {
	for ; len(body) > 0; n++ {
		if len(body) < 16 || binary.BigEndian.Uint32(body[8:]) != crc32.ChecksumIEEE(body[:8]) {
			return 0
		}
		size := int(binary.BigEndian.Uint32(body))
		if size < 16 || size > len(body) || binary.BigEndian.Uint32(body[size-4:]) != crc32.ChecksumIEEE(body[:size-4]) {
			return 0
		}
		body = body[size:]
	}
	return n
}

// repliedTwice says that equal requests have different replies.
func repliedTwice(r *recordings.Recording) bool {
	replies := map[string]string{}
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		request := x.Method + " " + x.URL + "\n" + string(x.Request.Body)
		if reply, is := replies[request]; is && reply != string(x.Response.Body)+x.Status {
			return true
		}
		replies[request] = string(x.Response.Body) + x.Status
	}
	return false
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

	It("shows each thing that its index says of a file", func() {
		dir := suite.SharedData("cassettes")
		any := func(holds func(x *recordings.Exchange) bool) func(*recordings.Recording) bool {
			return func(r *recordings.Recording) bool {
				for i := range r.Exchanges {
					if holds(&r.Exchanges[i]) {
						return true
					}
				}
				return false
			}
		}
		begins := func(text string) func(*recordings.Recording) bool {
			return any(func(x *recordings.Exchange) bool { return strings.HasPrefix(string(x.Response.Body), text) })
		}
		arrays := 0
		features := map[string]func(*recordings.Recording) bool{
			"aws_eventstream": any(func(x *recordings.Exchange) bool { return wholeFrames(x.Response.Body) > 0 }),
			"body_gzip": any(func(x *recordings.Exchange) bool {
				return x.Response.Encoding == "gzip" && len(x.Response.Body) > 0 && !strings.HasPrefix(string(x.Response.Body), "\x1f\x8b")
			}),
			"ce_gzip_but_body_plain":    func(r *recordings.Recording) bool { return strings.Contains(r.Report.Text(), "the body is plain") },
			"dup_request_diff_response": repliedTwice,
			"req_headers_empty":         any(func(x *recordings.Exchange) bool { return len(x.Request.Header) == 0 }),
			"resp_headers_empty":        any(func(x *recordings.Exchange) bool { return len(x.Response.Header) == 0 }),
			"binary_resp:image/jpeg": any(func(x *recordings.Exchange) bool {
				return x.Response.Header.Get("Content-Type") == "image/jpeg" && (x.Method == "HEAD" || strings.HasPrefix(string(x.Response.Body), "\xff\xd8\xff"))
			}),
			"binary_resp:application/pdf": begins("%PDF-"),
			// The index means the method, which answers with events to some and with a list to others.
			"json_array_stream": any(func(x *recordings.Exchange) bool {
				if strings.HasPrefix(string(x.Response.Body), "[{") {
					arrays++
				}
				return strings.Contains(x.URL, ":streamGenerateContent")
			}),
			// In the files of httprr these are the ends of chunks, which are no part of a body.
			"crlf_in_stream": func(r *recordings.Recording) bool {
				return r.Format == "httprr" || any(func(x *recordings.Exchange) bool { return strings.Contains(string(x.Response.Body), "\r\n\r\n") })(r)
			},
			"sse_done_marker": any(func(x *recordings.Exchange) bool { return strings.Contains(string(x.Response.Body), "data: [DONE]") }),
			"multipart_req": any(func(x *recordings.Exchange) bool {
				return strings.HasPrefix(x.Request.Header.Get("Content-Type"), "multipart/") && strings.HasPrefix(string(x.Request.Body), "--")
			}),
			"err_500":  any(func(x *recordings.Exchange) bool { return x.Code == 500 }),
			"redirect": any(func(x *recordings.Exchange) bool { return x.Code/100 == 3 }),
		}
		seen := map[string]int{}
		for _, f := range index(dir) {
			r := read(dir, f.file)
			for _, name := range f.features {
				if shows := features[name]; shows != nil {
					seen[name]++
					Expect(shows(r)).To(BeTrue(), "%s of %s", name, f.file)
				}
			}
		}
		for name := range features {
			Expect(seen).To(HaveKey(name))
		}
		Expect(arrays).To(BeNumerically(">", 0), "a stream that is a list of JSON")
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
