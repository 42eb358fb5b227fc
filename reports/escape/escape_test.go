package escape_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/reports/escape"
)

func TestEscape(t *testing.T) { suite.Run(t, "escape") }

var _ = DescribeTable("text in the three sinks", func(in, line, block, xml string) {
	Expect(escape.Line(in)).To(Equal(line))
	Expect(escape.Block(in)).To(Equal(block))
	Expect(escape.XML(in)).To(Equal(xml))
},
	Entry("empty", "", "", "", ""),
	Entry("plain", `a "b" \ <c>`, `a "b" \ <c>`, `a "b" \ <c>`, `a "b" \ <c>`),
	Entry("letters", "é 漢字 עברית 🩺", "é 漢字 עברית 🩺", "é 漢字 עברית 🩺", "é 漢字 עברית 🩺"),
	Entry("an emoji of several characters", "👩‍⚕️", "👩‍⚕️", "👩‍⚕️", "👩‍⚕️"),
	Entry("escape sequences", "\x1b[31mred\x1b[0m\a", `\x1b[31mred\x1b[0m\x07`, `\x1b[31mred\x1b[0m\x07`, "[31mred[0m"),
	Entry("C1", "\u009b31m\u0085", `\u009b31m\u0085`, `\u009b31m\u0085`, "31m"),
	Entry("NUL and DEL", "a\x00b\x7f", `a\x00b\x7f`, `a\x00b\x7f`, "ab"),
	Entry("line ends", "a\nb\r\nc\rd", `a\nb\r\nc\rd`, "a\nb\nc\nd", "a\nb\nc\nd"),
	Entry("a tab", "a\tb", `a\tb`, "a    b", "a\tb"),
	Entry("reordering", "\u202efdp.exe\u2066x\u2069\u200f", `\u202efdp.exe\u2066x\u2069\u200f`, `\u202efdp.exe\u2066x\u2069\u200f`, `\u202efdp.exe\u2066x\u2069\u200f`),
	Entry("other line separators", "a\u2028b\u2029c", `a\u2028b\u2029c`, `a\u2028b\u2029c`, `a\u2028b\u2029c`),
	Entry("nothing to see", "\u200b\ufeff\u00ad\u3164", `\u200b\ufeff\u00ad\u3164`, `\u200b\ufeff\u00ad\u3164`, `\u200b\ufeff\u00ad\u3164`),
	Entry("hidden tags", "a\U000e0041", `a\U000e0041`, `a\U000e0041`, `a\U000e0041`),
	Entry("no characters", "\ufffe\uffff\U0001ffff", `\ufffe\uffff\U0001ffff`, `\ufffe\uffff\U0001ffff`, `\ufffe\uffff\U0001ffff`),
	Entry("not UTF-8", "a\xff\xc3", `a\xff\xc3`, `a\xff\xc3`, "a\ufffd\ufffd"),
)

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "\x1b]0;title\a", "\u202e", "a\r\nb", "\xff", "👩‍⚕️"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, block := escape.Line(s), escape.Block(s)
		for name, text := range map[string]string{"line": line, "block": strings.ReplaceAll(block, "\n", "")} {
			if !utf8.ValidString(text) {
				t.Fatalf("%s: not UTF-8: %q", name, text)
			}
			for _, r := range text {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
					t.Fatalf("%s: %U in %q", name, r, text)
				}
			}
		}
		if again := escape.Line(line); again != line {
			t.Fatalf("escaping twice changed %q to %q", line, again)
		}
		var out strings.Builder
		if err := xml.EscapeText(&out, []byte(escape.XML(s))); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := xml.Unmarshal([]byte("<a>"+out.String()+"</a>"), &back); err != nil {
			t.Fatalf("%q is no XML: %v", out.String(), err)
		}
		if back != escape.XML(s) {
			t.Fatalf("%q became %q", escape.XML(s), back)
		}
	})
}

var _ = Describe("JSON", func() {
	It("keeps the meaning and shows what is dangerous", func() {
		for _, text := range []string{"\u202e", "\u0085", "\x7f", "\U000e0041", "plain", "a\u200bb", "\ufffd", "emoji 👩‍👩‍👧"} {
			data, err := json.Marshal(map[string]string{"v": text})
			Expect(err).NotTo(HaveOccurred())
			shown := escape.JSON(data)
			var back map[string]string
			Expect(json.Unmarshal(shown, &back)).To(Succeed())
			Expect(back["v"]).To(Equal(text))
			Expect(escape.Line(string(shown))).To(Equal(string(shown)), text)
		}
		Expect(string(escape.JSON([]byte("{\n\t\"a\": \"\u202e\"\n}")))).To(Equal("{\n\t\"a\": \"\\u202e\"\n}"))
	})
})
