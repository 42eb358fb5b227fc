package score

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("compiled expressions", func() {
	It("are kept, but never more than there may be", func() {
		c := expressionCache{most: 3}
		first, err := c.compile("a+")
		Expect(err).NotTo(HaveOccurred())
		Expect(c.compile("a+")).To(BeIdenticalTo(first))
		for i := range 10 {
			re, err := c.compile(fmt.Sprintf("b{%d}", i))
			Expect(err).NotTo(HaveOccurred())
			Expect(re.String()).To(Equal(fmt.Sprintf("b{%d}", i)))
			Expect(len(c.compiled)).To(BeNumerically("<=", 3))
		}
		_, err = c.compile("(")
		Expect(err).To(HaveOccurred())
		Expect(c.compiled).NotTo(HaveKey("("))
	})
})
