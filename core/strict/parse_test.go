package strict_test

import (
	"fmt"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// problems gives an error as the user sees it, without the words "error:" and "hint:" being repeated in every table.
func problems(err error) string {
	return strings.TrimSuffix(strings.NewReplacer("error: ", "", "\nhint: ", " | ").Replace(failure.Render(err)), "\n")
}

var _ = Describe("reading YAML", func() {
	DescribeTable("values follow the core schema of YAML 1.2", func(text, json string) {
		n, err := strict.Parse("f.yaml", []byte("v: "+text+"\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(n.Get("v").JSON()).To(Equal(json))
	},
		Entry(nil, "", "null"), Entry(nil, "~", "null"), Entry(nil, "NULL", "null"), Entry(nil, "nul", `"nul"`),
		Entry(nil, "true", "true"), Entry(nil, "FALSE", "false"), Entry(nil, "yes", `"yes"`), Entry(nil, "off", `"off"`),
		Entry(nil, "12", "12"), Entry(nil, "-0", "-0"), Entry(nil, "+5", "5"), Entry(nil, "0", "0"),
		Entry("digits beyond Go's types", "123456789012345678901234567890", "123456789012345678901234567890"),
		Entry(nil, "0x1F", "31"), Entry(nil, "0o17", "15"), Entry(nil, "0xffffffffffffffffff", "4722366482869645213695"),
		Entry(nil, "0x", `"0x"`), Entry(nil, "0o8", `"0o8"`), Entry(nil, "0x-1", `"0x-1"`), Entry(nil, "0b1", `"0b1"`), Entry(nil, "-0x1", `"-0x1"`),
		Entry(nil, ".5", "0.5"), Entry(nil, "-.5", "-0.5"), Entry(nil, "5.", "5.0"), Entry(nil, "1.50", "1.50"), Entry(nil, "1e5", "1e5"), Entry(nil, "5.e+3", "5.0e+3"),
		Entry(nil, ".", `"."`), Entry(nil, "1e", `"1e"`), Entry(nil, "1.2.3", `"1.2.3"`), Entry(nil, "+", `"+"`), Entry(nil, "--", `"--"`),
		Entry(nil, "1_000", `"1_000"`), Entry(nil, "12:30", `"12:30"`), Entry(nil, "2024-01-31", `"2024-01-31"`),
		Entry(nil, `"12"`, `"12"`), Entry(nil, `'true'`, `"true"`), Entry(nil, "!!str 12", `"12"`), Entry(nil, "! 12", `"12"`), Entry(nil, `!!int "12"`, "12"), Entry(nil, "!!float 1", "1"),
		Entry(nil, "|\n  a\n  b\n", `"a\nb\n"`), Entry(nil, ">-\n  a\n  b\n", `"a b"`), Entry(nil, `"<&>\u00e9\n"`, `"<&>é\n"`),
		Entry(nil, "[a, {b: c}]", `["a",{"b":"c"}]`),
	)

	DescribeTable("what is wrong is named with its place", func(text string, want ...string) {
		_, err := strict.Parse("f.yaml", []byte(text))
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(problems(err)).To(Equal(strings.Join(want, "\n")))
	},
		Entry("nothing", "", "f.yaml:1:1: empty: want a YAML document"),
		Entry("only comments", "\n# a\n", "f.yaml:1:1: empty: want a YAML document"),
		Entry("a bound without quotes", "a: >= 0.9", `f.yaml:1:5: not YAML: did not find expected comment or line break, while scanning a block scalar that begins at line 1:4 | put the text in quotes, ">= 0.9": > begins a block of lines`),
		Entry("a bound alone", ">= 0.9", `f.yaml:1:2: not YAML: did not find expected comment or line break, while scanning a block scalar that begins at line 1:1 | put the text in quotes, ">= 0.9": > begins a block of lines`),
		Entry("a leading zero", "a: 012", `f.yaml:1:4: 012 is a number with a leading zero | write 12, or quote it: "012"`),
		Entry("a leading zero in a fraction", "a: -00.5", `f.yaml:1:4: -00.5 is a number with a leading zero | write -0.5, or quote it: "-00.5"`),
		Entry("infinity", "a: [-.inf]", `f.yaml:1:5: -.inf is no number that JSON has | quote it: "-.inf"`),
		Entry("duplicate keys", "é: {x: 1, y: 2, x: 3}\na: 1\nb: 1\na: 2\n",
			`f.yaml:1:17: key "x" stands here a second time, first at f.yaml:1:5 | remove one of the two`,
			`f.yaml:4:1: key "a" stands here a second time, first at f.yaml:2:1 | remove one of the two`),
		Entry("keys that are no strings", "12: a\ntrue: b\n? [c]\n: d\n? {e: f}\n: g\n012: h\n",
			`f.yaml:1:1: a key is a string, not a whole number | quote it: "12"`, `f.yaml:2:1: a key is a string, not true or false | quote it: "true"`,
			"f.yaml:3:3: a key is a string, not a list", "f.yaml:5:3: a key is a string, not a mapping", `f.yaml:7:1: a key is a string, not a whole number | quote it: "012"`),
		Entry("tags", "a: !foo 1\nb: !!int x\nc: !!seq {}\nd: !!map [1]\ne: !!binary aGk=\nf: !!seq x\n",
			"f.yaml:1:4: tag !foo is not known here | remove it", "f.yaml:2:4: tag !!int does not fit the value | remove it", "f.yaml:3:4: tag !!seq does not fit the value | remove it",
			"f.yaml:4:4: tag !!map does not fit the value | remove it", "f.yaml:5:4: tag !!binary is not known here | remove it", "f.yaml:6:4: tag !!seq does not fit the value | remove it"),
		Entry("a second document", "a: 1\n---\nb: 2\n", "f.yaml:2:1: a second YAML document begins here | keep one document to a file"),
		Entry("a broken second document", "a: 1\n---\nb: [\n", "f.yaml:4:1: not YAML: did not find expected node content"),
		Entry("a tab", "a:\n\t- b\n", "f.yaml:2:1: a tab in the indentation | YAML is indented with spaces: replace the tab"),
		Entry("a tab behind spaces", "a:\n  b: 1\n  \tc: 2\n", "f.yaml:3:3: a tab in the indentation | YAML is indented with spaces: replace the tab"),
		Entry("not UTF-8", "a: b\nc: é\xff", "f.yaml:2:5: not UTF-8: byte 0xff | save the file as UTF-8"),
		Entry("UTF-16", "\xff\xfea\x00", "f.yaml:1:1: not UTF-8: byte 0xff | save the file as UTF-8"),
		Entry("NUL", "a: \x00", `f.yaml:1:4: control character U+0000 | in a double-quoted string write it as \u0000`),
		Entry("a control character", "a: \"é\x07\"", `f.yaml:1:6: control character U+0007 | in a double-quoted string write it as \u0007`),
		Entry("no character", "a: \uffff", "f.yaml:1:4: U+ffff is no character"),
		Entry("an unknown anchor", "a: *q", "f.yaml:1:4: not YAML: unknown anchor 'q' referenced"),
		Entry("an anchor within itself", "a: &x [*x]", `f.yaml:1:8: anchor "x" contains itself`),
		Entry("an anchor that merges itself", "a: &x {<<: *x}", `f.yaml:1:12: anchor "x" contains itself`),
		Entry("two merge keys", "a: &x {b: 1}\nc: {<<: *x, <<: *x}", `f.yaml:2:13: key "<<" stands here a second time | write << once, with a list`),
		Entry("a merge key without a mapping", "a: {<<: 3}", `f.yaml:1:5: a merge key wants a mapping or a list of mappings, got a whole number | quote it where a key of that name is meant: "<<"`),
		Entry("an unquoted colon", "a: b: c", `f.yaml:1:5: not YAML: mapping values are not allowed in this context | put the text in quotes: it holds ": " or begins with one of @ `+"` %"),
		Entry("an open bracket", "é: [1,\n2", "f.yaml:2:2: not YAML: did not find expected ',' or ']', while parsing a flow sequence that begins at line 1:4"),
	)

	It("accepts a byte order mark, CRLF, CR and line ends that only YAML 1.1 has, and counts columns in characters", func() {
		for _, c := range []struct{ text, at string }{
			{"\ufeffa: 1\r\né😀: {b: 2, c: 012}\r\n", "f.yaml:2:15"},
			{"a: 1\ré😀: {b: 2, c: 012}\r", "f.yaml:2:15"},
			{"a: 1 # \u2028b: 2 # \u0085c: 012\n", "f.yaml:1:20"},
			{"\ufeffc: 012\n", "f.yaml:1:4"},
		} {
			_, err := strict.Parse("f.yaml", []byte(c.text))
			pos, ok := failure.PositionOf(err)
			Expect(ok).To(BeTrue(), "%q", c.text)
			Expect(pos.String()).To(Equal(c.at), "%q", c.text)
		}
	})

	It("finds places far into a long text", func() {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, "é%d: {a: 😀, b: [%d]}\r\n", i, i)
		}
		n, err := strict.Parse("f.yaml", []byte(b.String()))
		Expect(err).NotTo(HaveOccurred())
		i := 0
		for key, v := range n.Fields() {
			i++
			Expect(key.Pos().String()).To(Equal(fmt.Sprintf("f.yaml:%d:1", i)))
			digits := len(fmt.Sprint(i - 1))
			Expect(v.Get("b").Index(0).Pos().String()).To(Equal(fmt.Sprintf("f.yaml:%d:%d", i, 15+digits)))
		}
		Expect(i).To(Equal(3000))
	})

	It("keeps a place for each part of a long single line", func() {
		text := "[" + strings.Repeat("é, ", 40_000) + "é]"
		n, err := strict.Parse("f.yaml", []byte(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(n.Len()).To(Equal(40_001))
		for i, item := range n.Items() {
			if i%1000 == 0 {
				Expect(item.Pos().Column).To(Equal(2 + 3*i))
			}
		}
	})

	Describe("aliases", func() {
		It("repeats values and merges mappings: a key of its own wins, then the earlier source", func() {
			n, err := strict.Parse("f.yaml", []byte("a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: *a\nd: {x: 0, <<: [*b, *a], w: 5}\ne: {\"<<\": 6}\n? &k f\n: *k\n"))
			Expect(err).NotTo(HaveOccurred())
			Expect(n.JSON()).To(Equal(`{"a":{"x":1,"y":2},"b":{"y":3,"z":4},"c":{"x":1,"y":2},"d":{"x":0,"y":3,"z":4,"w":5},"e":{"<<":6},"f":"f"}`))
			Expect(n.Get("c").Get("y").Pos().String()).To(Equal("f.yaml:1:17"), "the place of what is repeated")
		})

		It("refuses a bomb without doing what it asks for", func() {
			text := "a0: &a0 [" + strings.Repeat("lol,", 9) + "lol]\n"
			for i := range 30 {
				text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
			}
			grown := allocated(func() {
				_, err := strict.Parse("f.yaml", []byte(text))
				Expect(problems(err)).To(HaveSuffix("aliases repeat more than 4 MiB | write the values out or make them smaller"))
			})
			Expect(grown).To(BeNumerically("<", 4<<20))
		})

		It("refuses aliases that nest deeper than a person could write", func() {
			text := "a0: &a0 [x]\n"
			for i := range 200 {
				text += fmt.Sprintf("a%d: &a%d [*a%d]\n", i+1, i+1, i)
			}
			_, err := strict.Parse("f.yaml", []byte(text))
			Expect(problems(err)).To(Equal("f.yaml:100:12: nested more than 100 deep"))
		})
	})

	DescribeTable("bounds nesting", func(file, open, shut string) {
		deep := func(n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
		_, err := strict.Parse(file, []byte(deep(strict.MaxDepth)))
		Expect(err).NotTo(HaveOccurred())
		_, err = strict.Parse(file, []byte(deep(strict.MaxDepth+1)))
		Expect(problems(err)).To(HaveSuffix("nested more than 100 deep"))
		grown := allocated(func() {
			_, err = strict.Parse(file, []byte(strings.Repeat(open, 20_000)))
		})
		Expect(problems(err)).To(HaveSuffix("nested more than 100 deep"))
		Expect(grown).To(BeNumerically("<", 4<<20))
	},
		Entry("flow lists", "f.yaml", "[", "]"), Entry("flow mappings", "f.yaml", "{a: ", "}"), Entry("block lists", "f.yaml", "- ", ""),
		Entry("JSON lists", "f.json", "[", "]"), Entry("JSON objects", "f.json", `{"a":`, "}"),
	)

	It("bounds the length of a document", func() {
		_, err := strict.Parse("f.yaml", make([]byte, strict.MaxDocument+1))
		Expect(problems(err)).To(Equal("f.yaml:1:1: longer than 8 MiB"))
	})
})

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

var _ = Describe("reading JSON", func() {
	It("keeps order, numbers and places", func() {
		n, err := strict.Parse("F.JSON", []byte("\ufeff{\"z\": [1, 2.50, -0, 1E5, 123456789012345678901234567890],\r\n \"é\\u00e9\\/\": {\"😀\": null, \"t\": true}}\r\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(n.JSON()).To(Equal(`{"z":[1,2.50,-0,1E5,123456789012345678901234567890],"éé/":{"😀":null,"t":true}}`))
		Expect(n.Get("z").Index(3).Pos().String()).To(Equal("F.JSON:1:21"))
		Expect(n.Get("éé/").Get("t").Pos().String()).To(Equal("F.JSON:2:32"))
		Expect(n.Get("éé/").KeyPos("t").String()).To(Equal("F.JSON:2:27"))
		Expect(n.KeyPos("none")).To(Equal(n.Pos()))
	})

	It("numbers the lines of JSONL", func() {
		_, err := strict.ParseJSON("q.jsonl", 17, []byte(`{"a":1,"a":2}`))
		Expect(problems(err)).To(Equal(`q.jsonl:17:8: key "a" stands here a second time, first at q.jsonl:17:2 | remove one of the two`))
	})

	It("finds a duplicate among many keys", func() {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, `"k%d":1,`, i)
		}
		_, err := strict.Parse("f.json", []byte("{"+b.String()+`"k7":2}`))
		Expect(problems(err)).To(Equal(fmt.Sprintf(`f.json:1:%d: key "k7" stands here a second time, first at f.json:1:51 | remove one of the two`, b.Len()+2)))
	})

	DescribeTable("what is wrong is named with its place", func(text, want string) {
		_, err := strict.Parse("f.json", []byte(text))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(problems(err)).To(Equal(want))
	},
		Entry(nil, "", "f.json:1:1: empty: want a JSON value"),
		Entry(nil, " \n", "f.json:1:1: empty: want a JSON value"),
		Entry(nil, "{\n", "f.json:2:1: the JSON text ends too early"),
		Entry(nil, `["a`, "f.json:1:4: the JSON text ends too early"),
		Entry(nil, "[1 2]", "f.json:1:4: not JSON: invalid character '2' after array element (expecting ',' or ']')"),
		Entry(nil, "{a:1}", "f.json:1:2: not JSON: invalid character 'a' at start of value"),
		Entry(nil, "[012]", "f.json:1:3: not JSON: invalid character '1' after array element (expecting ',' or ']')"),
		Entry(nil, "[1]\r\nx", "f.json:2:1: text after the end of the value"),
		Entry(nil, "[1]]", "f.json:1:4: text after the end of the value"),
		Entry(nil, "\"é\x07\"", `f.json:1:3: not JSON: invalid character '\a' in string (expecting non-control character)`),
		Entry(nil, `["é","\ud800"]`, "f.json:1:7: not JSON: invalid surrogate pair `\\ud800\"]` in string"),
		Entry(nil, "[\"\xff\"]", "f.json:1:3: not UTF-8: byte 0xff | save the file as UTF-8"),
		Entry(nil, "[\x00]", `f.json:1:2: control character U+0000 | in a double-quoted string write it as \u0000`),
	)

	It("gives the same tree as YAML for the same value", func() {
		text := `{"a":[1,-2.5,1e3,"x: y",null,true,{},[]],"b":{"c":"é😀\n\t\"\\","":""}}`
		a, err := strict.Parse("f.json", []byte(text))
		Expect(err).NotTo(HaveOccurred())
		b, err := strict.Parse("f.yaml", []byte(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Equal(b)).To(BeTrue())
		Expect(a.JSON()).To(Equal(text))
		Expect(b.JSON()).To(Equal(text))
		c, err := strict.Parse("f.yaml", []byte("b:\n  '': ''\n  c: \"é😀\\n\\t\\\"\\\\\"\na:\n  - 1\n  - -2.5\n  - 1e3\n  - 'x: y'\n  -\n  - True\n  - {}\n  - []\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Equal(c)).To(BeTrue())
		Expect(string(a.AppendCanonical(nil))).To(Equal(string(c.AppendCanonical(nil))))
	})
})
