package strict_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

func parsed(text string) strict.Node {
	GinkgoHelper()
	n, err := strict.Parse("f.yaml", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	return n
}

var _ = Describe("a node", func() {
	It("tells kinds apart, and a missing value from null", func() {
		n := parsed("a: null\nb: 1\nc: 1.0\nd: x\ne: []\nf: {}\ng: true\n")
		var kinds []strict.Kind
		for _, v := range n.Fields() {
			kinds = append(kinds, v.Kind())
		}
		Expect(kinds).To(Equal([]strict.Kind{strict.Null, strict.Int, strict.Float, strict.String, strict.Sequence, strict.Mapping, strict.Bool}))
		Expect(n.Get("a").IsNull()).To(BeTrue())
		Expect(n.Get("a").IsZero()).To(BeFalse())
		Expect(n.Get("z").IsZero()).To(BeTrue())
		Expect(n.Get("z").IsNull()).To(BeFalse())
		Expect(n.Get("z").Pos()).To(Equal(failure.Position{}))
		Expect(n.Get("z").JSON()).To(Equal("null"))
		Expect(n.Get("b").Get("x").IsZero()).To(BeTrue())
		Expect(n.Get("b").Len()).To(BeZero())
		for range n.Get("b").Items() {
			Fail("a number has no entries")
		}
	})

	It("becomes plain values", func() {
		Expect(parsed("a: [1, 2.5, 99999999999999999999, 1e999, x, null, true]\nb: {}\n").Any()).To(Equal(map[string]any{
			"a": []any{int64(1), 2.5, 99999999999999999999.0, "1e999", "x", nil, true}, "b": map[string]any{},
		}))
	})

	It("writes canonical JSON: keys by UTF-16 code units, numbers as written", func() {
		// U+1F600 is before U+FB33 in UTF-16 and after it in UTF-8.
		n := parsed("\"\\uFB33\": 1.0\n\"\\U0001F600\": 2\nb: {d: <, c: 1}\na: 12345678901234567890123\nab: 0\n")
		Expect(string(n.AppendCanonical(nil))).To(Equal("{\"a\":12345678901234567890123,\"ab\":0,\"b\":{\"c\":1,\"d\":\"<\"},\"😀\":2,\"\ufb33\":1.0}"))
	})

	It("is rebuilt with other strings, keeping places and sharing what does not change", func() {
		n := parsed("a: [x, {b: y, x: 1}]\nc: z\n")
		m := n.MapStrings(func(s strict.Node) strict.Node {
			if s.Text() != "y" {
				return s
			}
			return parsed("[1, 2]").At(s)
		})
		Expect(m.JSON()).To(Equal(`{"a":["x",{"b":[1,2],"x":1}],"c":"z"}`))
		Expect(m.Get("a").Index(1).Get("b").Pos().String()).To(Equal("f.yaml:1:12"))
		Expect(n.JSON()).To(Equal(`{"a":["x",{"b":"y","x":1}],"c":"z"}`), "the old tree stays")
		same := n.MapStrings(func(s strict.Node) strict.Node { return s })
		Expect(same).To(Equal(n))
		Expect(n.Get("c").WithText("new").Pos()).To(Equal(n.Get("c").Pos()))
	})

	It("finds a part of its text in the file", func() {
		n := parsed("a: |\n  é {{x}} and\n  {{x}} {{y}}\nb: \"\\u007b{x}}\"\n")
		a := n.Get("a")
		Expect(a.Locate("{{x}}", 0).String()).To(Equal("f.yaml:2:5"))
		Expect(a.Locate("{{x}}", 1).String()).To(Equal("f.yaml:3:3"))
		Expect(a.Locate("{{z}}", 0)).To(Equal(a.Pos()))
		Expect(n.Get("b").Locate("{{x}}", 0)).To(Equal(n.Get("b").Pos()))
		Expect(strict.NewString("x").Locate("x", 0)).To(Equal(failure.Position{}))
	})

	It("compares by value", func() {
		a := parsed("a: 1\nb: [x, null]\n")
		Expect(a.Equal(parsed("{b: [x, ~], a: 1}"))).To(BeTrue())
		for _, other := range []string{"{b: [x, ~], a: 1.0}", "{b: [~, x], a: 1}", "{b: [x], a: 1}", "{b: [x, ~], c: 1}", "[]"} {
			Expect(a.Equal(parsed(other))).To(BeFalse(), other)
		}
	})
})

var _ = DescribeTable("suggestions", func(name, want string) {
	Expect(strict.Suggest(name, []string{"version", "items", "input", "id", "tool_context", "repeat"})).To(Equal(want))
},
	Entry(nil, "itmes", `did you mean "items"?`),
	Entry("swapped letters", "inptu", `did you mean "input"?`),
	Entry("in a short name", "di", `did you mean "id"?`),
	Entry("other case", "Version", `did you mean "version"?`),
	Entry(nil, "toolcontext", `did you mean "tool_context"?`),
	Entry("nothing near", "zebra", "choices: id, input, items, repeat, tool_context, version"),
	Entry("too far", "x", "choices: id, input, items, repeat, tool_context, version"),
	Entry("empty", "", "choices: id, input, items, repeat, tool_context, version"),
	Entry("very long", strings.Repeat("items", 1000), "choices: id, input, items, repeat, tool_context, version"),
)
