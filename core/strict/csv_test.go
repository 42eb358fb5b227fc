package strict_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// rows gives the rows of a CSV text, a line each: values with their places, or the problem.
func rows(text string) []string {
	var out []string
	for n, err := range strict.Rows("q.csv", iotest.OneByteReader(strings.NewReader(text)), 1000) {
		if err != nil {
			out = append(out, strings.TrimSuffix(strings.NewReplacer("error: ", "", "\nhint: ", " | ").Replace(failure.Render(err)), "\n"))
			continue
		}
		var cells []string
		for key, v := range n.Fields() {
			cells = append(cells, fmt.Sprintf("%s@%d:%d=%q@%d:%d", key.Name, key.Pos().Line, key.Pos().Column, v.Text(), v.Pos().Line, v.Pos().Column))
		}
		out = append(out, strings.Join(cells, " "))
	}
	return out
}

var _ = Describe("a CSV file", func() {
	DescribeTable("is read row by row, with places", func(text string, want ...string) {
		Expect(rows(text)).To(Equal(want))
	},
		Entry("plain", "a,b\n1,2\n3,4", "a@1:1=\"1\"@2:1 b@1:3=\"2\"@2:3", "a@1:1=\"3\"@3:1 b@1:3=\"4\"@3:3"),
		Entry("CRLF and a BOM", "\ufeffa,b\r\n1,2\r\n", "a@1:1=\"1\"@2:1 b@1:3=\"2\"@2:3"),
		Entry("empty lines", "\na\n\n\n1\n\n2\n\n", "a@2:1=\"1\"@5:1", "a@2:1=\"2\"@7:1"),
		Entry("quotes, commas and line breaks in cells", "a,b\n\"x, \"\"y\"\"\nz\",2\n3,4\n", "a@1:1=\"x, \\\"y\\\"\\nz\"@2:1 b@1:3=\"2\"@3:4", "a@1:1=\"3\"@4:1 b@1:3=\"4\"@4:3"),
		Entry("CRLF in a quoted cell becomes LF", "a\r\n\"x\r\ny\"\r\nz\r\n", "a@1:1=\"x\\ny\"@2:1", "a@1:1=\"z\"@4:1"),
		Entry("characters of several bytes", "é,b\nö😀,2\n", "é@1:1=\"ö😀\"@2:1 b@1:3=\"2\"@2:4"),
		Entry("empty cells", "a,b,c\n,,\n", "a@1:1=\"\"@2:1 b@1:3=\"\"@2:2 c@1:5=\"\"@2:3"),
	)

	DescribeTable("that is wrong says where", func(text string, want ...string) {
		got := rows(text)
		Expect(got).To(HaveLen(len(want)), "%q", got)
		for i := range want {
			Expect(got[i]).To(HavePrefix(want[i]))
		}
	},
		Entry("ragged rows, after which others follow", "a,b\n1\n1,2,3\n1,2\n", "q.csv:2:1: the row has not as many cells", "q.csv:3:1: the row has not as many cells", "a@1:1"),
		Entry("two columns of a name", "a,b,a\n1,2,3\n", "q.csv:1:5: column \"a\" stands here a second time, first at q.csv:1:1"),
		Entry("a column without a name", "a,,c\n1,2,3\n", "q.csv:1:3: column 2 has no name"),
		Entry("semicolons", "id;input\n1;2\n", "q.csv:1:1: the columns are not separated by commas"),
		Entry("tabs", "id\tinput\n1\t2\n", "q.csv:1:1: the columns are not separated by commas"),
		Entry("CR alone", "id,input\r1,2\r3,4\r", "q.csv:1:9: the first row holds a carriage return"),
		Entry("a quote in a cell", "a,b\n1,x\"y\n2,3\n", "q.csv:2:4: a quote within a cell"),
		Entry("a quote that does not end", "a,b\n1,2\n\"3,4\n5,6\n", "a@1:1", "q.csv:3:1: a quoted cell does not end"),
		Entry("text behind a quote", "a,b\n\"1\"x,2\n", "q.csv:2:1: a quoted cell does not end, or"),
		Entry("a row beyond the limit", "a,b\n1,2\n\""+strings.Repeat("x\n", 5000)+"\",2\n3,4\n", "a@1:1", "q.csv:3:1: a row is longer than 1000 bytes | is a closing quote missing?"),
		Entry("a row a little beyond the limit", "a,b\n"+strings.Repeat("x", 1001)+",2\n3,4\n", "q.csv:2:1: longer than 1000 bytes", "a@1:1"),
		Entry("bytes that are no UTF-8", "a,b\n1,x\xff\n3,4\n", "q.csv:2:4: not UTF-8: byte 0xff", "a@1:1"),
		Entry("NUL", "a,b\n1,\x00\n3,4\n", "q.csv:2:3: control character U+0000", "a@1:1"),
	)

	It("may be empty", func() {
		Expect(rows("")).To(BeEmpty())
		Expect(rows("\ufeff\n\n")).To(BeEmpty())
		Expect(rows("a,b\n")).To(BeEmpty())
	})

	It("that cannot be read is an error of its own", func() {
		var last error
		for _, last = range strict.Rows("q.csv", io.MultiReader(strings.NewReader("a,b\n1,2\n"), iotest.ErrReader(iotest.ErrTimeout)), 100) {
		}
		Expect(last).To(MatchError(iotest.ErrTimeout))
		Expect(failure.CodeOf(last)).To(Equal(failure.Internal))
	})
})

func FuzzRows(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "\ufeffa\r\n\"x\ny\"\r\n", "a,\"b\n", "a,b\n\"\"\"\n", "\n\n,\n", "a\n\xff\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
		for n, err := range strict.Rows("q.csv", strings.NewReader(text), 100) {
			if err != nil {
				pos, ok := failure.PositionOf(err)
				if !ok || pos.Line < 1 || pos.Line > lines {
					t.Fatalf("%q: %v", text, err)
				}
				continue
			}
			for key, v := range n.Fields() {
				if key.Pos().Line > v.Pos().Line || v.Pos().Line > lines || v.Kind() != strict.String {
					t.Fatalf("%q: %s at %s", text, v.Pos(), key.Pos())
				}
			}
		}
	})
}

func BenchmarkRows(b *testing.B) {
	text := "id,input,expected\n" + strings.Repeat("item-000001,\"What is the capital of France, and how many people live there?\",Paris\n", 1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		count := 0
		for _, err := range strict.Rows("q.csv", strings.NewReader(text), 1<<20) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		if count != 1000 {
			b.Fatal(count)
		}
	}
}
