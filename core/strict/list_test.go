package strict_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing/iotest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// split gives what Split and Entries say of a text: the rest of the file, then each entry with its place.
func split(file, text, key string) []string {
	head, list, err := strict.Split(file, strings.NewReader(text), key)
	out := []string{head.JSON()}
	if err != nil {
		out = append(out, problems(err))
	}
	if list != nil {
		for n, err := range list.Entries(strings.NewReader(text), 1000) {
			if err != nil {
				out = append(out, "! "+problems(err))
				continue
			}
			pos := n.Pos()
			out = append(out, fmt.Sprintf("%d:%d %s", pos.Line, pos.Column, n.JSON()))
		}
	}
	return out
}

var _ = Describe("a list read entry by entry", func() {
	DescribeTable("in YAML", func(key, text string, want ...string) { Expect(split("f.yaml", text, key)).To(Equal(want)) },
		Entry("cut out of a mapping", "items", "\ufeffname: x\nitems: # c\n\n# more\n- id: a\n  in: |\n    - x\n    # y\n\n# foo\n- {id: b,\n   c: d}\n-\n- 3\ngates:\n  é: 012\n",
			`{"name":"x","items":[],"gates":{"é":12}}`, `f.yaml:16:6: 012 is a number with a leading zero | write 12, or quote it: "012"`,
			`5:3 {"id":"a","in":"- x\n# y\n"}`, `11:3 {"id":"b","c":"d"}`, "13:2 null", "14:3 3"),
		Entry("indented, with CRLF", "items", "name: x\r\n\"items\":\r\n  - id: a\r\n    b: |\r\n      x\r\n  - [é, 012]\r\ngates: {a: 012}\r\n",
			`{"name":"x","items":[],"gates":{"a":12}}`, `f.yaml:7:12: 012 is a number with a leading zero | write 12, or quote it: "012"`,
			`3:5 {"id":"a","b":"x\n"}`, `! f.yaml:6:9: 012 is a number with a leading zero | write 12, or quote it: "012"`),
		Entry("with an entry that is wrong", "items", "items:\n- a: [\n- b\n-\tc\n- d: 1\n\te: 2\n- {f: 1, f: 2}\n",
			`{"items":[]}`, "! f.yaml:3:1: not YAML: did not find expected node content", `3:3 "b"`, `4:3 "c"`,
			"! f.yaml:6:1: a tab in the indentation | YAML is indented with spaces: replace the tab", `! f.yaml:7:10: key "f" stands here a second time, first at f.yaml:7:4 | remove one of the two`),
		Entry("that is no block list", "items", "items: [a, b]\n", `{"items":["a","b"]}`),
		Entry("that is a mapping", "items", "items:\n  a: b\n", `{"items":{"a":"b"}}`),
		Entry("that is absent", "items", "item:\n- a\n", `{"item":["a"]}`),
		Entry("of another key", "items", "more:\n  items:\n  - a\n", `{"more":{"items":["a"]}}`),
		Entry("that stands twice", "items", "items:\n- a\nitems:\n- b\n", `{"items":[],"items":["b"]}`, `f.yaml:3:1: key "items" stands here a second time, first at f.yaml:1:1 | remove one of the two`, `2:3 "a"`),
		Entry("before something that belongs nowhere", "items", "items:\n  - a\n foo: 1\n", "null", "f.yaml:3:2: not YAML: did not find expected key, while parsing a block mapping that begins at line 1:1", `2:5 "a"`),
		Entry("that is the whole file", "", "# c\n---\n- a\n\n- b: 1\n...\n", "[]", `3:3 "a"`, `5:3 {"b":1}`),
		Entry("that is the whole file, indented, without a last line break", "", "  - a\n  - b", "[]", `1:5 "a"`, `2:5 "b"`),
		Entry("with something after it", "", "- a\nfoo: 1\n", "null", "f.yaml:2:1: not YAML: did not find expected <document start>", `1:3 "a"`),
		Entry("with a second document", "", "- a\n---\n- b\n", "[]", "f.yaml:2:1: a second YAML document begins here | keep one document to a file", `1:3 "a"`),
		Entry("in an empty file", "", "", "null", "f.yaml:1:1: empty: want a YAML document"),
		Entry("with an anchor of another entry", "", "- &a 1\n- *a\n", "[]", "1:3 1", "! f.yaml:2:3: not YAML: unknown anchor 'a' referenced"),
	)

	DescribeTable("in JSON", func(key, text string, want ...string) { Expect(split("f.json", text, key)).To(Equal(want)) },
		Entry("cut out of an object", "items", "\ufeff{\"é\": 1, \"items\" : [\r\n {\"id\":\"a,]\\\"\"},\r\n {\"é\":[2], \"x\":012}\r\n, 3], \"z\": 1, \"z\":\r\n 3}",
			`{"é":1,"items":[],"z":1,"z":3}`, `f.json:4:15: key "z" stands here a second time, first at f.json:4:7 | remove one of the two`,
			`2:2 {"id":"a,]\""}`, "! f.json:3:17: not JSON: invalid character '1' after object value (expecting ',' or '}')", "4:3 3"),
		Entry("that is empty", "items", `{"items": [ ], "z": 1, "z": 3}`, `{"items":[],"z":1,"z":3}`, `f.json:1:24: key "z" stands here a second time, first at f.json:1:16 | remove one of the two`),
		Entry("with a comma too many", "items", `{"items": [1,]}`, `{"items":[]}`, "1:12 1", "! f.json:1:14: empty: want a JSON value"),
		Entry("that does not end", "items", `{"items": [1,{"a":2`, "null", "f.json:1:20: the JSON text ends too early", "1:12 1", "! f.json:1:20: the JSON text ends too early"),
		Entry("with crossed brackets", "items", `{"items": [{"a":1]}, 2]}`, `{"items":[]}`, "! f.json:1:18: not JSON: invalid character ']' after object value (expecting ',' or '}')", "1:22 2"),
		Entry("of another key or value", "items", `{"a":"items","b":{"items":[1]},"items": 3}`, `{"a":"items","b":{"items":[1]},"items":3}`),
		Entry("that is the whole file", "", " [1,[2,\"é\"],{}, tru\n]", "[]", "1:3 1", `1:5 [2,"é"]`, "1:13 {}", "! f.json:1:20: not JSON: invalid character '\\n' in literal true (expecting 'e')"),
		Entry("with something after it", "", "[1] 7", "null", "f.json:1:5: text after the end of the value", "1:2 1"),
		Entry("in an empty file", "", "", "null", "f.json:1:1: empty: want a JSON value"),
	)

	It("goes on after an entry that is too long", func() {
		long := strings.Repeat("x", 2000)
		Expect(split("f.yaml", "- a\n- "+long+"\n- b: "+strings.Repeat("\n   c", 400)+"\n- d\n", "")).To(Equal([]string{"[]", `1:3 "a"`,
			"! f.yaml:2:1: longer than 1000 bytes | move long texts into files and name them", "! f.yaml:3:1: longer than 1000 bytes | move long texts into files and name them", `404:3 "d"`}))
		Expect(split("f.json", `["a","`+long+`","b"]`, "")).To(Equal([]string{"[]", `1:2 "a"`, "! f.json:1:6: longer than 1000 bytes | move long texts into files and name them", `1:2009 "b"`}))
	})

	It("is read again from the same place", func() {
		text := "a: 1\nitems:\n- x\n- y\n"
		_, list, err := strict.Split("f.yaml", strings.NewReader(text), "items")
		Expect(err).NotTo(HaveOccurred())
		for range 2 {
			count := 0
			for _, err := range list.Entries(strings.NewReader(text), 100) {
				Expect(err).NotTo(HaveOccurred())
				if count++; count == 1 {
					continue
				}
				break
			}
			Expect(count).To(Equal(2))
		}
	})

	DescribeTable("takes memory for one entry", func(file, first, entry, last string) {
		const entries = 20_000
		r := io.MultiReader(strings.NewReader(first), &repeat{entry, entries}, strings.NewReader(last))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		head, list, err := strict.Split(file, r, "items")
		runtime.ReadMemStats(&after)
		Expect(err).NotTo(HaveOccurred())
		Expect(list).NotTo(BeNil())
		Expect(head.Get("after").Pos().Line).To(BeNumerically(">", entries))
		Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 1<<20))
	},
		Entry(nil, "f.yaml", "items:\n", "- id: a\n", "after: 1\n"),
		Entry(nil, "f.json", "{\"items\":[", "{\"id\":\n\"a\"},", "1\n], \"after\": 1}"),
	)

	It("refuses a file that is long apart from its list", func() {
		_, _, err := strict.Split("f.yaml", io.MultiReader(strings.NewReader("a: [\n"), &repeat{"x,\n", strict.MaxDocument / 2}), "items")
		Expect(problems(err)).To(HavePrefix("f.yaml:1:1: longer than 8 MiB | write long lists entry by entry"))
		_, _, err = strict.Split("f.json", &repeat{" ", strict.MaxDocument + 1}, "items")
		Expect(problems(err)).To(HavePrefix("f.json:1:1: longer than 8 MiB"))
	})

	It("tells errors of the disk from errors of the file", func() {
		broken := errors.New("disk on fire")
		for _, file := range []string{"f.yaml", "f.json"} {
			_, _, err := strict.Split(file, iotest.ErrReader(broken), "items")
			Expect(err).To(MatchError(broken))
			Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		}
		for _, err := range strict.Lines("f.jsonl", iotest.ErrReader(broken), 10) {
			Expect(err).To(MatchError(broken))
			Expect(err).To(MatchError("reading f.jsonl: disk on fire"))
		}
	})
})

// repeat reads as a text repeated n times.
type repeat struct {
	text string
	n    int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := min(r.n, max(1, len(p)/len(r.text)))
	r.n -= n
	return copy(p, strings.Repeat(r.text, n)), nil
}

var _ = Describe("JSON lines", func() {
	It("come one by one, blank ones left out, with their places", func() {
		text := "\ufeff{\"a\":1}\r\n\n  {\"a\": 012}\n[1,2]\n" + strings.Repeat("x", 2000) + "\n \"é\"  \n{"
		var out []string
		for n, err := range strict.Lines("f.jsonl", strings.NewReader(text), 1000) {
			if err != nil {
				out = append(out, problems(err))
				continue
			}
			out = append(out, n.Pos().String()+" "+n.JSON())
		}
		Expect(out).To(Equal([]string{
			`f.jsonl:1:1 {"a":1}`, "f.jsonl:3:10: not JSON: invalid character '1' after object value (expecting ',' or '}')", "f.jsonl:4:1 [1,2]",
			"f.jsonl:5:1: longer than 1000 bytes | move long texts into files and name them", `f.jsonl:6:2 "é"`, "f.jsonl:7:2: the JSON text ends too early",
		}))
	})

	It("keep their texts when the next line is read", func() {
		var all []strict.Node
		for n, err := range strict.Lines("f.jsonl", strings.NewReader("\"first\"\n\"other\"\n"), 100) {
			Expect(err).NotTo(HaveOccurred())
			all = append(all, n)
		}
		Expect(all).To(HaveLen(2))
		Expect(all[0].Text() + all[1].Text()).To(Equal("firstother"))
	})
})
