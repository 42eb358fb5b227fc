package cassette_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/dnaeon/go-vcr/v2/recorder"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
)

// sample is a cassette with a stream, a tool, bytes that are no text, and every extra.
func sample() *cassette.File {
	chat, applied := cassette.Canonical("POST", chatURL, http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"go"}},
		[]byte(`{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"system","content":"Answer from the notes.\nBe brief."},{"role":"user","content":"What does the note say?"}]}`), nil)
	tool, _ := cassette.Canonical(cassette.Method, cassette.ToolURL("read_file"), nil, []byte(`{"path":"notes/a.txt"}`), nil)
	return &cassette.File{
		Header: cassette.Header{
			Dataset: "quickstart", Item: "note", Repeat: 1, Provider: "openai:gpt-4o-mini", Vendor: "openai", Model: "gpt-4o-mini",
			RecordedAt: time.Date(2027, 1, 4, 8, 15, 0, 0, time.UTC), Seed: 1, Upstream: "emulator 51c0b8a2e97d4f06",
			Hashes: map[string]string{"agent": "c2d95e71aa038b64", "prompt": "90b1f4e2757cd6a3", "tools": "3be86a0d1f94c752", "workspace": ""}, Rules: applied,
		},
		Interactions: []cassette.Interaction{
			{
				Request:  chat,
				Response: cassette.Response{Body: "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n", Headers: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, Status: "200 OK", Code: 200, Duration: 412 * time.Millisecond},
				Extra:    cassette.Extra{TTFT: 90 * time.Millisecond},
			},
			{
				Request:  tool,
				Response: cassette.Response{Body: `{"output":"call 112"}`, Status: "200 OK", Code: 200},
				Extra:    cassette.Extra{Seq: 1, Effect: "read", Scope: "workspace", Occurrence: 1},
			},
			{
				Request:  cassette.Request{URL: "https://example.com/image", Method: "GET"},
				Response: cassette.Response{Body: "\x89PNG\r\n\x1a\n\x00\xff", Headers: http.Header{"Content-Type": {"image/png"}}, Status: "200 OK", Code: 200, Duration: time.Second},
				Extra:    cassette.Extra{Partial: true},
			},
		},
	}
}

func encoded(f *cassette.File) []byte {
	GinkgoHelper()
	data, err := cassette.Encode(f)
	Expect(err).NotTo(HaveOccurred())
	return data
}

var _ = Describe("the file", func() {
	It("is readable, and the same each time", func() {
		data := encoded(sample())
		Expect(encoded(sample())).To(Equal(data))
		suite.Golden("sample.yaml", data)
		f, err := cassette.Decode(data, "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		want := sample()
		want.Header.Format, want.Header.Canon = 1, 1
		Expect(f).To(Equal(want))
	})

	It("is replayed by go-vcr's recorder", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "c.yaml"), encoded(sample()), 0o600)).To(Succeed())
		r, err := recorder.New(filepath.Join(dir, "c"))
		Expect(err).NotTo(HaveOccurred())
		r.SkipRequestLatency = true
		r.SetTransport(nil)
		for n, i := range sample().Interactions {
			if i.Request.Method == cassette.Method {
				continue
			}
			req, err := http.NewRequest(i.Request.Method, i.Request.URL, strings.NewReader(i.Request.Body))
			Expect(err).NotTo(HaveOccurred())
			resp, err := r.RoundTrip(req)
			Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(resp.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(body)).To(Equal(i.Response.Body), "interaction %d", n)
			Expect(resp.StatusCode).To(Equal(200))
		}
		Expect(r.Stop()).To(Succeed())
	})

	It("survives a checkout that turned its line ends", func() {
		data := bytes.ReplaceAll(encoded(sample()), []byte("\n"), []byte("\r\n"))
		f, err := cassette.Decode(data, "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Interactions).To(Equal(sample().Interactions))
		f, err = cassette.Decode(append([]byte("\ufeff"), encoded(sample())...), "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Interactions).To(Equal(sample().Interactions))
	})

	It("survives a hand that writes other YAML", func() {
		data := strings.Replace(string(encoded(sample())), "  item: note\n", "  item: 'note' # a comment\n", 1)
		f, err := cassette.Decode([]byte(data), "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Header.Item).To(Equal("note"))
	})

	It("refuses what it cannot hold", func() {
		for _, spoil := range []func(f *cassette.File){
			func(f *cassette.File) { f.Interactions[0].Response.Duration = -1 },
			func(f *cassette.File) { f.Interactions[0].Request.Headers.Set("No", "x") },
			func(f *cassette.File) { f.Interactions[0].Request.Headers["a b"] = []string{"x"} },
			func(f *cassette.File) { f.Header.Hashes["A B"] = "x" },
			func(f *cassette.File) { f.Header.RecordedAt = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) },
		} {
			f := sample()
			spoil(f)
			_, err := cassette.Encode(f)
			Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		}
	})
})

var _ = Describe("a bad file", func() {
	good := func() string { return string(encoded(sample())) }
	replaced := func(old, new string) string {
		GinkgoHelper()
		Expect(good()).To(ContainSubstring(old))
		return strings.Replace(good(), old, new, 1)
	}
	bomb := func() string {
		text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c < 'j'; c++ {
			text += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
		}
		return text
	}

	DescribeTable("has its own error, with place and hint", func(text func() string, message string, hints ...string) {
		f, err := cassette.Decode([]byte(text()), "fixtures/c.yaml")
		Expect(f).To(BeNil())
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		pos, _ := failure.PositionOf(err)
		Expect(pos.File).To(Equal("fixtures/c.yaml"))
		Expect(failure.Hints(err)).To(HaveExactElements(hints))
		Expect(len(err.Error())).To(BeNumerically("<", 300))
	},
		Entry("empty", func() string { return "" }, "the file is empty"),
		Entry("blank", func() string { return strings.Repeat(" \n", 100) }, "the file is empty"),
		Entry("a pointer of Git LFS", func() string { return "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n" }, "Git LFS pointer", "git lfs pull"),
		Entry("another version", func() string { return replaced("version: 1\n", "version: 2\n") }, `fixtures/c.yaml:2:10: version "2" of the cassette format; this release reads version 1`, "record it again"),
		Entry("a version that is no number", func() string { return replaced("version: 1\n", "version: [1]\n") }, "of the cassette format", "record it again"),
		Entry("no version", func() string { return replaced("version: 1\n", "") }, "no key version"),
		Entry("a newer format", func() string { return replaced("format: 1", "format: 7") }, "version 7 of the format; this release reads up to 1", "update echoeval"),
		Entry("a newer canonical form", func() string { return replaced("canon: 1", "canon: 2") }, "version 2 of the canonical form", "update echoeval"),
		Entry("an impossible format", func() string { return replaced("format: 1", "format: 0") }, "versions count from 1"),
		Entry("saved again by go-vcr", func() string {
			text := good()
			return text[:strings.Index(text, "echoeval:")] + text[strings.Index(text, "interactions:"):]
		}, "the echoeval block is missing", "restore it from version control, or record it again"),
		Entry("a key that comes twice", func() string { return replaced("  item: note\n", "  item: note\n  item: note\n") }, `fixtures/c.yaml:9:3: the key "item" comes twice`),
		Entry("a header that comes twice", func() string {
			return replaced("      Accept:\n      - text/event-stream\n", "      Accept:\n      - a\n      Accept:\n      - b\n")
		}, `the key "Accept" comes twice`),
		Entry("an unknown key", func() string { return replaced("  item: note\n", "  itme: note\n") }, `unknown key "itme"`, "a later release of echoeval may know it"),
		Entry("an anchor", func() string { return replaced("  item: note\n", "  item: &a note\n") }, "anchors and aliases"),
		Entry("a bomb", func() string { return bomb() + good()[4:] }, "unknown key", "a later release of echoeval may know it"),
		Entry("a bomb that is read", func() string { return replaced("interactions:\n", bomb()+"interactions: *i\nx:\n") }, "unknown key", "a later release of echoeval may know it"),
		Entry("a bomb in a place that is read", func() string { return replaced("  rules:\n", "  rules: &a [x]\n  rulez: *a\n  x:\n") }, "anchors and aliases"),
		Entry("a tag", func() string { return replaced("  item: note\n", "  item: !!python/object:os.system note\n") }, "has no place in a cassette"),
		Entry("depth", func() string { return replaced("  item: note\n", "  item: "+strings.Repeat("[", 20000)+"\n") }, "exceeded max depth"),
		Entry("depth of blocks", func() string { return replaced("  item: note\n", "  item:\n    "+strings.Repeat("- ", 20000)+"\n") }, "exceeded max depth"),
		Entry("not UTF-8", func() string { return replaced("  item: note\n", "  item: nö\xffte\n") }, "fixtures/c.yaml:8:11: not UTF-8: byte 0xff"),
		Entry("a list", func() string { return "- a\n" }, "a cassette is a mapping"),
		Entry("two documents", func() string { return good() + good() }, "not a cassette"),
		Entry("no YAML", func() string { return "{{{\n" }, "not a cassette"),
		Entry("a text for a number", func() string { return replaced("code: 200", "code: x") }, "must be a whole number"),
		Entry("nothing for a text", func() string { return replaced("item: note", "item: null") }, "must be a text"),
		Entry("no duration", func() string { return replaced("duration: 412ms", "duration: 412") }, `"412" is no duration`),
		Entry("no time", func() string { return replaced(`"2027-01-04T08:15:00Z"`, "today") }, "is no time of RFC 3339"),
		Entry("no base64", func() string { return replaced("!!binary |-\n", "!!binary |-\n      ?\n") }, "not base64"),
		Entry("partial of another kind", func() string { return replaced("partial: true", "partial: maybe") }, "must be true or false"),
		Entry("a header that is no list", func() string { return replaced("    headers: {}\n", "    headers: []\n") }, "must be a mapping of lists"),
		Entry("interactions that are no list", func() string { return replaced("interactions:\n", "interactions: {}\nx:\n") }, "must be a list"),
	)

	It("is noticed wherever it is cut", func() {
		text := good()
		for n := 1; n < len(text); n++ {
			_, err := cassette.Decode([]byte(text[:n]), "c.yaml")
			Expect(err).To(HaveOccurred(), "cut at %d", n)
			Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		}
		_, err := cassette.Decode([]byte(text[:len(text)-2]), "c.yaml")
		Expect(err).To(MatchError(ContainSubstring("truncated")))
		_, err = cassette.Decode([]byte(text[:strings.LastIndex(text, "- echoeval:")]), "c.yaml")
		Expect(err).To(MatchError(ContainSubstring("the header says 3 interactions and the file holds 2")))
	})

	It("is told from one that is not there", func() {
		_, err := cassette.Load(filepath.Join(GinkgoT().TempDir(), "none.yaml"), "fixtures/none.yaml")
		Expect(errors.Is(err, fs.ErrNotExist)).To(BeTrue())
		Expect(err).To(MatchError("fixtures/none.yaml: no such file or directory"))
		_, err = cassette.Load(GinkgoT().TempDir(), "fixtures")
		Expect(err).To(MatchError("fixtures: is a folder"))
	})
})

var _ = Describe("saving", func() {
	It("writes a file for everyone, with its folders, and leaves nothing else behind", func() {
		dir := filepath.Join(GinkgoT().TempDir(), "a", "b")
		path := filepath.Join(dir, "c.yaml")
		Expect(cassette.Save(path, "c.yaml", sample())).To(Succeed())
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o644)))
		Expect(os.ReadDir(dir)).To(HaveLen(1))
		f, err := cassette.Load(path, "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Interactions).To(Equal(sample().Interactions))
	})

	It("leaves the old file and nothing else on failure", func() {
		dir := GinkgoT().TempDir()
		path := filepath.Join(dir, "c.yaml")
		Expect(cassette.Save(path, "c.yaml", sample())).To(Succeed())
		before, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		bad := sample()
		bad.Interactions[0].Response.Duration = -1
		Expect(failure.CodeOf(cassette.Save(path, "c.yaml", bad))).To(Equal(failure.Cassette))
		Expect(os.ReadFile(path)).To(Equal(before))
		// A folder in the place of the file lets everything succeed but the last step.
		blocked := filepath.Join(dir, "d.yaml")
		Expect(os.MkdirAll(filepath.Join(blocked, "x"), 0o755)).To(Succeed())
		err = cassette.Save(blocked, "fixtures/d.yaml", sample())
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(err.Error()).To(HavePrefix("fixtures/d.yaml: saving: "))
		Expect(err.Error()).NotTo(ContainSubstring(dir))
		Expect(filepath.Glob(filepath.Join(dir, cassette.TempPattern))).To(BeEmpty())
	})

	It("fails in a folder that cannot be", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)).To(Succeed())
		err := cassette.Save(filepath.Join(dir, "file", "c.yaml"), "file/c.yaml", sample())
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(err.Error()).NotTo(ContainSubstring(dir))
	})

	It("never mixes two savers", func() {
		dir := GinkgoT().TempDir()
		path := filepath.Join(dir, "c.yaml")
		var group sync.WaitGroup
		want := map[string]bool{}
		for n := range 8 {
			f := sample()
			f.Header.Item = fmt.Sprintf("item-%d", n)
			f.Interactions[0].Response.Body = strings.Repeat(f.Header.Item+"\n", 1000*(n+1))
			want[string(encoded(f))] = true
			group.Go(func() {
				defer GinkgoRecover()
				for range 5 {
					Expect(cassette.Save(path, "c.yaml", f)).To(Succeed())
				}
			})
		}
		group.Go(func() {
			defer GinkgoRecover()
			for range 200 {
				if data, err := os.ReadFile(path); err == nil {
					Expect(want).To(HaveKey(string(data)))
				}
				runtime.Gosched()
			}
		})
		group.Wait()
		Expect(os.ReadDir(dir)).To(HaveLen(1))
	})
})
