package experiment

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("a secret that an excerpt was cut in", func(text, want string) {
	Expect(withoutPart(text, "correct-horse")).To(Equal(want))
},
	Entry("at its end", "the password is correct-ho…", "the password is [secret]…"),
	Entry("at its end, quoted", `found "the password is correct-ho"…`, `found "the password is [secret]"…`),
	Entry("at its beginning", "…ct-horse is the password", "…[secret] is the password"),
	Entry("at the beginning of a quote", `"t-horse is it"`, `"[secret] is it"`),
	Entry("on both sides", "…-horse and correct…", "…[secret] and [secret]…"),
	Entry("three letters tell nothing", "…rse and cor…", "…rse and cor…"),
	Entry("a word at the end of what is whole", "this is correct", "this is correct"),
)
