package escape_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/reports/escape"
)

var _ = DescribeTable("text as a code span", func(in, want string) {
	Expect(escape.Code(in)).To(Equal(want))
},
	Entry("empty", "", "_(empty)_"),
	Entry("plain", `a *b* <i> @x`, "`a *b* <i> @x`"),
	Entry("a backtick within", "a`b", "``a`b``"),
	Entry("two and one", "a``b`c", "```a``b`c```"),
	Entry("a backtick at the end", "a`", "`` a` ``"),
	Entry("backticks alone", "```", "```` ``` ````"),
	Entry("spaces on both sides", " a ", "`  a  `"),
	Entry("a space on one side", " a", "` a`"),
	Entry("spaces alone", "  ", "`  `"),
	Entry("line ends", "a\n```\nb", "````a\\n```\\nb````"),
	Entry("what cannot be seen", "\u202e\x1b", "`\\u202e\\x1b`"),
)

var _ = It("a cell of a table holds no bar", func() {
	Expect(escape.Cell(`a | b \| c`)).To(Equal("`a \\x7c b \\\\x7c c`"))
	Expect(strings.Contains(escape.Cell("||"), "|")).To(BeFalse())
})

var _ = DescribeTable("text in a spreadsheet", func(in, want string) {
	Expect(escape.Formula(in)).To(Equal(want))
},
	Entry(nil, "", ""), Entry(nil, "a=b", "a=b"), Entry(nil, "=b", "'=b"), Entry(nil, "-1", "'-1"), Entry(nil, "+1", "'+1"), Entry(nil, "@a", "'@a"),
	Entry(nil, "\tb", "'\tb"), Entry(nil, "\rb", "'\rb"), Entry(nil, "\nb", "'\nb"), Entry(nil, "\u00a0 =b", "'\u00a0 =b"), Entry(nil, "＠b", "'＠b"), Entry(nil, "   ", "   "),
)
