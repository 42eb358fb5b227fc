package recordings_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	vcr "github.com/dnaeon/go-vcr/v2/cassette"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/imports/recordings"
)

// examples are files of testdata, at least one for each format.
var examples = map[string]string{
	"govcr1.yaml": "go-vcr 1", "govcr2.yaml": "go-vcr 2", "vcrpy.yaml": "VCR.py", "vcrpy.json": "VCR.py", "lists.yaml.gz": "VCR.py requests and responses", "ruby.yml": "Ruby VCR", "r.yml": "Ruby VCR",
	"polly.har": "Polly HAR", "browser.har": "HAR", "trace.httprr": "httprr", "nock.json": "nock", "exchange.json": "one exchange",
}

func example(name string) []byte {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	Expect(err).NotTo(HaveOccurred())
	return data
}

func compressed(new func(io.Writer) io.WriteCloser, body string) []byte {
	GinkgoHelper()
	var b bytes.Buffer
	w := new(&b)
	_, err := io.WriteString(w, body)
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	return b.Bytes()
}

var coders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"raw": func(w io.Writer) io.WriteCloser {
		z, err := flate.NewWriter(w, flate.DefaultCompression)
		Expect(err).NotTo(HaveOccurred())
		return z
	},
}

// answered is a recording of VCR.py with one response.
func answered(encoding string, body []byte) []byte {
	header := ""
	if encoding != "" {
		header = "\n      Content-Encoding: [" + encoding + "]"
	}
	return []byte("interactions:\n- request:\n    body: null\n    headers: {}\n    method: GET\n    uri: https://example.com/\n  response:\n    body:\n      string: !!binary " + base64.StdEncoding.EncodeToString(body) +
		"\n    headers:\n      Content-Type: [text/plain]" + header + "\n    status: {code: 200, message: OK}\nversion: 1\n")
}

var _ = Describe("a recording", func() {
	It("of each format becomes a cassette, and says what was lost", func() {
		seen := map[string]bool{}
		for name, format := range examples {
			r, err := recordings.Read(name, example(name))
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(r.Format).To(Equal(format), name)
			seen[format] = true
			file, err := r.Cassette(cassette.Header{}, &secret.Detector{}, nil)
			Expect(err).NotTo(HaveOccurred(), name)
			data, err := cassette.Encode(file)
			Expect(err).NotTo(HaveOccurred(), name)
			again, err := cassette.Decode(data, name)
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(cassette.Encode(again)).To(Equal(data))
			path := filepath.Join(GinkgoT().TempDir(), "c")
			Expect(os.WriteFile(path+".yaml", data, 0o644)).To(Succeed())
			theirs, err := vcr.Load(path)
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(theirs.Interactions).To(HaveLen(len(r.Exchanges)))
			var notes strings.Builder
			for line := range strings.Lines(r.Report.Text()) {
				notes.WriteString("# " + line)
			}
			suite.Golden(name+".golden", append([]byte(notes.String()), data...))
		}
		for _, name := range recordings.Formats() {
			Expect(seen).To(HaveKey(name))
		}
	})

	It("is read the same when it is compressed", func() {
		for name := range examples {
			data := example(name)
			if strings.HasSuffix(name, ".gz") {
				continue
			}
			plain, err := recordings.Read(name, data)
			Expect(err).NotTo(HaveOccurred())
			zipped, err := recordings.Read(name, compressed(coders["gzip"], string(data)))
			Expect(err).NotTo(HaveOccurred())
			Expect(zipped.Exchanges).To(Equal(plain.Exchanges), name)
		}
	})

	It("that is cut short is refused or says so, wherever the cut is", func() {
		between := 0
		for name, format := range examples {
			data := example(name)
			whole, err := recordings.Read(name, data)
			Expect(err).NotTo(HaveOccurred())
			step := 1
			if data[0] == '{' || data[0] == '[' {
				step = 11 // JSON has no whole value before its last bracket
			}
			for n := 0; n < len(data)-1; n += step {
				r, err := recordings.Read(name, data[:n])
				if err != nil || strings.Contains(r.Report.Text(), "may be cut short") {
					continue
				}
				if len(r.Exchanges) == len(whole.Exchanges) {
					Expect(r.Exchanges).To(Equal(whole.Exchanges), "%s at %d", name, n)
					continue
				}
				// Nothing but the number of exchanges is missing: go-vcr and httprr write nothing behind the last one.
				Expect(format).To(BeElementOf("go-vcr 1", "go-vcr 2", "httprr"), "%s at %d", name, n)
				Expect(r.Exchanges).To(Equal(whole.Exchanges[:len(r.Exchanges)]), "%s at %d", name, n)
				between++
			}
		}
		Expect(between).To(BeNumerically("<", 5))
	})

	DescribeTable("has its body decoded", func(header, coder string) {
		const body = "the quick brown fox\x00\xff and much of the same, and much of the same, and much of the same"
		r, err := recordings.Read("a.yaml", answered(header, compressed(coders[coder], body)))
		Expect(err).NotTo(HaveOccurred())
		x := r.Exchanges[0].Response
		Expect(string(x.Body)).To(Equal(body))
		Expect(x.Encoding).To(Equal(header))
		Expect(x.Header).NotTo(HaveKey("Content-Encoding"))
		Expect(r.Report.Notes()).To(BeEmpty())
	}, Entry(nil, "gzip", "gzip"), Entry(nil, "x-gzip", "gzip"), Entry(nil, "GZIP", "gzip"), Entry(nil, "deflate", "deflate"), Entry("without the frame of zlib", "deflate", "raw"), Entry(nil, "br", "br"))

	It("has two codings undone, the last first", func() {
		inner := compressed(coders["br"], "twice")
		r, err := recordings.Read("a.yaml", answered("'br, gzip'", compressed(coders["gzip"], string(inner))))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(r.Exchanges[0].Response.Body)).To(Equal("twice"))
		Expect(r.Exchanges[0].Response.Encoding).To(Equal("br, gzip"))
	})

	DescribeTable("keeps a body that is not what the header says, and tells", func(encoding, body, want string, class imports.Class, note string, header, partial bool) {
		r, err := recordings.Read("a.yaml", answered(encoding, []byte(body)))
		Expect(err).NotTo(HaveOccurred())
		x := r.Exchanges[0].Response
		Expect(string(x.Body)).To(Equal(want))
		Expect(x.Partial).To(Equal(partial))
		_, has := x.Header["Content-Encoding"]
		Expect(has).To(Equal(header))
		notes := r.Report.Notes()
		Expect(notes).To(HaveLen(1))
		Expect(notes[0].Class).To(Equal(class))
		Expect(notes[0].Text).To(ContainSubstring(note))
		Expect(notes[0].Pos).To(Equal(failure.Position{File: "a.yaml", Line: 2, Column: 3}))
	},
		Entry("plain text", "gzip", `{"a":1}`, `{"a":1}`, imports.Changed, "the body is plain", false, false),
		Entry("plain bytes", "gzip", "\x89PNG\x00", "\x89PNG\x00", imports.Changed, "the body is plain", false, false),
		Entry("plain text as brotli", "br", "hello there", "hello there", imports.Changed, "the body is plain", false, false),
		Entry("plain text as zstd", "zstd", "hello there", "hello there", imports.Changed, "the body is plain", false, false),
		Entry("zstd", "zstd", "\x28\xb5\x2f\xfd\x00", "\x28\xb5\x2f\xfd\x00", imports.Lost, `coded as "zstd", which is not undone`, true, false),
		Entry("damaged", "gzip", "\x1f\x8b\x08damaged", "\x1f\x8b\x08damaged", imports.Lost, "cannot be decoded", true, false),
		Entry("cut short", "gzip", string(cut()), "0123456789", imports.Changed, "ends before its end", false, true),
	)

	It("never writes down a coding that nobody knows", func() {
		r, err := recordings.Read("a.yaml", answered("my-"+"secret-coding", []byte("plain")))
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Exchanges[0].Response.Encoding).To(Equal("unknown"))
	})

	It("names secrets and holds none", func() {
		key := "sk-" + "proj-ABCDEFGHIJKLMNOPQRST0123456789abcdefghij"
		data := strings.ReplaceAll(string(example("govcr1.yaml")), "Name a harbour.", "My key is "+key)
		data = strings.ReplaceAll(data, "Rotterdam", key+" of tenant-0815 is")
		r, err := recordings.Read("a.yaml", []byte(data))
		Expect(err).NotTo(HaveOccurred())
		file, err := r.Cassette(cassette.Header{}, &secret.Detector{}, []cassette.Redaction{{Name: "tenant", Value: "tenant-0815"}})
		Expect(err).NotTo(HaveOccurred())
		out, err := cassette.Encode(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).NotTo(Or(ContainSubstring(key), ContainSubstring("tenant-0815"), ContainSubstring("not-a-key")))
		Expect(string(out)).To(And(ContainSubstring("{{echoeval:scrubbed-openai-key}}"), ContainSubstring("{{echoeval:tenant}}")))
		Expect(r.Report.Text()).To(And(ContainSubstring("openai-key in messages[0].content of the request of interaction 1 is replaced"), Not(ContainSubstring(key))))
	})

	It("is refused where a secret cannot be replaced", func() {
		key := "sk-" + "proj-ABCDEFGHIJKLMNOPQRST0123456789abcdefghij"
		r, err := recordings.Read("a.yaml", bytes.ReplaceAll(example("govcr1.yaml"), []byte("gpt-4o-mini"), []byte(key)))
		Expect(err).NotTo(HaveOccurred())
		file, err := r.Cassette(cassette.Header{}, &secret.Detector{}, nil)
		Expect(err).To(MatchError(ContainSubstring("a.yaml: not imported: openai-key in model of the header cannot be replaced")))
		Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		out, err := cassette.Encode(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).NotTo(ContainSubstring(key))
	})

	It("keeps the place that the caller gives it", func() {
		r, err := recordings.Read("govcr1.yaml", example("govcr1.yaml"))
		Expect(err).NotTo(HaveOccurred())
		at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		file, err := r.Cassette(cassette.Header{Dataset: "d", Item: "i", Vendor: "v", Model: "m", RecordedAt: at}, &secret.Detector{}, nil)
		Expect(err).NotTo(HaveOccurred())
		h := file.Header
		Expect([]any{h.Dataset, h.Item, h.Vendor, h.Model, h.RecordedAt, h.Imported}).To(Equal([]any{"d", "i", "v", "m", at, "go-vcr 1"}))
	})
})

// cut is a gzip stream of which the end is missing, but whose first block has come.
func cut() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte("0123456789")); err != nil {
		panic(err)
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var _ = Describe("what is no recording", func() {
	DescribeTable("is refused with its place", func(data, want string, hint string) {
		_, err := recordings.Read("a", []byte(data))
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(err.Error()).To(HavePrefix(want))
		if hint == "" {
			Expect(failure.Hints(err)).To(BeEmpty())
		} else {
			Expect(strings.Join(failure.Hints(err), "\n")).To(ContainSubstring(hint))
		}
	},
		Entry("nothing", "", "a: the file is empty", ""),
		Entry("blanks", " \n\n", "a: the file is empty", ""),
		Entry("a text", "hello\n", "a:1:1: no recording that is known", "known are"),
		Entry("other YAML", "name: x\n", "a:1:1: no recording that is known", "known are"),
		Entry("other JSON", `{"name":1}`, "a:1:1: no recording that is known", "known are"),
		Entry("bytes", "\x00\x01\xff", "a:1:3: byte 0xff is no UTF-8", ""),
		Entry("broken JSON", "{\"log\":\n  {]}", "a:2:4: no JSON", ""),
		Entry("JSON and more", `{"log":{}} x`, "a:1:12: more follows", ""),
		Entry("JSON that ends early", "{\"log\":{\n\"entries\":[", "a:2:12: the file is cut short", "anew"),
		Entry("broken YAML", "a: [1\nb: {", "a:2:", "known are"),
		Entry("an unknown version", "version: 3\ninteractions:\n- request: {url: x}\n", "a:1:10: version \"3\" of a recording with interactions", "release"),
		Entry("interactions without a version", "interactions:\n- request: {uri: x}\n", "a:1:1: interactions without a version", "anew"),
		Entry("our own", "version: 1\nechoeval: {format: 1}\ninteractions:\n- request: {url: x}\n", "a:1:1: it is a cassette of echoeval already", "cassette show"),
		Entry("no exchanges", "http_interactions: []\nrecorded_with: x\n", "a: it holds no exchange", ""),
		Entry("no entries", `{"log":{"entries":[]}}`, "a: it holds no exchange", ""),
		Entry("a missing response", "version: 1\ninteractions:\n- request: {url: x, method: GET, body: ''}\n", "a:3:3: exchange 1 without response: the file is cut short", ""),
		Entry("a missing method", "version: 1\ninteractions:\n- request: {url: x, body: ''}\n  response: {code: 200, body: '', duration: ''}\n", "a:3:12: request without method", ""),
		Entry("a status that is none", "version: 1\ninteractions:\n- request: {url: x, method: GET, body: ''}\n  response: {code: 20, body: '', duration: ''}\n", `a:4:20: response.code: "20" is no status`, ""),
		Entry("a duration that is cut", "version: 2\ninteractions:\n- request: {url: x, method: GET, body: ''}\n  response: {code: 200, body: '', duration: 38}\n", `a:4:45: response.duration: "38" is no duration`, ""),
		Entry("a key that comes twice", "version: 1\ninteractions:\n- request: {url: x, url: y, method: GET, body: ''}\n  response: {code: 200, body: '', duration: ''}\n", `a:3:21: `, ""),
		Entry("a body that is no text", "version: 1\ninteractions:\n- request: {url: x, method: GET, body: [1]}\n  response: {code: 200, body: '', duration: ''}\n", "a:3:40: request.body: must be a text", ""),
		Entry("base64 that is none", "http_interactions:\n- request: {method: get, uri: x}\n  response: {status: 200, body: {base64_string: '!'}}\n", "a:3:49: response.body.base64_string: no base64", ""),
		Entry("binary that is none", "http_interactions:\n- request: {method: get, uri: !!binary '!'}\n", "a:2:31: !!binary that is no base64", ""),
		Entry("lists of unequal length", "requests:\n- {uri: x}\nresponses: []\n", "a:1:1: 1 requests and 0 responses", ""),
		Entry("an entry without a response", `{"log":{"entries":[{"request":{"method":"GET","url":"x"},"response":{"status":0}}]}}`, "a:1:79: response.status is 0", "take the entry out"),
		Entry("a httprr of another version", "httprr trace v2\n", `a:1:1: version "2" of httprr`, "version 1"),
		Entry("a httprr that ends early", "httprr trace v1\n10 20\nGET", "a:2:1: the file is cut short: request and response have 30 bytes, and 3 follow", "anew"),
		Entry("a httprr without lengths", "httprr trace v1\nGET /\n", "a:2:1: want a line with the lengths", "anew"),
		Entry("a httprr with lengths beyond", "httprr trace v1\n9223372036854775807 9223372036854775807\nx", "a:2:1: the file is cut short", "anew"),
		Entry("a httprr of no HTTP", "httprr trace v1\n3 3\nabcdef", "a:3:1: the request is none of HTTP", ""),
		Entry("nock without a status", `[{"scope":"http://a","path":"/","method":"GET","status":"x"}]`, `a:1:57: status: "x" is no status`, ""),
		Entry("gzip that ends early", string(cut()), "a: the file is cut short: it ends within its gzip stream", "anew"),
		Entry("gzip that is damaged", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a: its gzip stream is damaged", ""),
	)

	It("says nothing of keys in it", func() {
		key := "sk-" + "proj-ABCDEFGHIJKLMNOPQRST0123456789abcdefghij"
		for _, data := range []string{
			"version: " + key + "\ninteractions: [{}]\n", "httprr trace v" + key + "\n", "httprr trace v1\n" + fmt.Sprint(len(key)) + " 1\n" + key + "x", "version: 1\ninteractions:\n- request: {url: x, method: GET, body: ''}\n  response: {code: " + key + ", body: '', duration: ''}\n",
		} {
			_, err := recordings.Read("a", []byte(data))
			Expect(err).To(HaveOccurred())
			Expect(failure.Render(err)).NotTo(ContainSubstring(key))
		}
	})
})

var _ = Describe("bounds", func() {
	refused := func(data []byte, what string) {
		GinkgoHelper()
		began := time.Now()
		_, err := recordings.Read("a", data)
		Expect(err).To(MatchError(ContainSubstring(what)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
	}

	It("hold for what aliases multiply", func() {
		var b strings.Builder
		b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
		for i := range 9 {
			fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
		}
		refused([]byte(b.String()), "written out")
		long := strings.Repeat("x", 1<<20)
		refused([]byte("a: &a "+long+"\nb: ["+strings.TrimSuffix(strings.Repeat("*a,", 200), ",")+"]\n"), "written out")
	})

	It("hold for many values", func() {
		for _, unit := range []string{"- a\n", "a,", "a: b\n", "? a\n", "- - - a\n", "[],", "{a: b},", "\"a\":1,", "-\u2028"} {
			refused([]byte("interactions: ["+strings.Repeat(unit, 1<<20)), "may begin a value")
			refused([]byte("interactions:\n"+strings.Repeat(unit, 1<<20)), "may begin a value")
		}
		refused([]byte("["+strings.Repeat("1,", 1<<20)+"1]"), "values")
		refused([]byte("{"+strings.Repeat(`"a":1,`, 1<<20)+`"a":1}`), "values")
	})

	It("hold for an alias of itself", func() { refused([]byte("a: &a [*a]\n"), "") })

	It("hold for depth", func() {
		refused([]byte(strings.Repeat("[", 10_000)), "nested")
		refused([]byte("a: "+strings.Repeat("[", 10_000)), "")
		refused([]byte(strings.Repeat(`{"a":`, 10_000)), "nested")
	})

	It("hold for a file that grows when it is decompressed", func() {
		refused(compressed(coders["gzip"], strings.Repeat("a", recordings.MaxFile+1)), "more than a recording may have")
		refused(bytes.Repeat([]byte("a"), recordings.MaxFile+1), "more than a recording may have")
	})

	DescribeTable("hold for a body that grows when it is decoded", func(coding string) {
		refused(answered(coding, compressed(coders[coding], strings.Repeat("a", recordings.MaxBody+1))), "the decoded body has more than")
	}, Entry(nil, "gzip"), Entry(nil, "deflate"), Entry(nil, "br"))

	It("hold for many bodies that grow", func() {
		one := base64.StdEncoding.EncodeToString(compressed(coders["gzip"], strings.Repeat("a", recordings.MaxBody-1)))
		var b strings.Builder
		b.WriteString("http_interactions:\n")
		for range 3 {
			b.WriteString("- request: {method: get, uri: 'http://a/'}\n  response: {status: 200, headers: {content-encoding: gzip}, body: {base64_string: " + one + "}}\n")
		}
		refused([]byte(b.String()), "together")
	})

	It("hold for the bodies of R", func() {
		refused([]byte("http_interactions:\n- request: {method: get, uri: 'http://a/'}\n  response: {status: 200, body: {raw_gzip: "+base64.StdEncoding.EncodeToString(compressed(coders["deflate"], strings.Repeat("a", recordings.MaxBody+1)))+"}}\n"), "more than")
	})
})
