package ahead_test

import (
	"iter"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/ahead"
)

func TestAhead(t *testing.T) { suite.Run(t, "ahead") }

// counting yields the numbers below n and says how far it came and whether it has ended.
func counting(n int, reached *int, ended *bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer func() { *ended = true }()
		for i := range n {
			*reached = i
			if !yield(i) {
				return
			}
		}
	}
}

var _ = DescribeTable("a sequence read in advance has the same values in the same order", func(length, batch int) {
	var want []int
	for i := range length {
		want = append(want, i)
	}
	var reached int
	var ended bool
	Expect(slices.Collect(ahead.Seq(counting(length, &reached, &ended), batch))).To(Equal(want))
	Expect(ended).To(BeTrue())
},
	Entry("none", 0, 16), Entry("one", 1, 16), Entry("a batch but one", 15, 16), Entry("a batch", 16, 16), Entry("a batch and one", 17, 16), Entry("many", 1000, 7), Entry("one by one", 5, 1))

var _ = It("ends the reading with the loop, a few batches ahead of it", func() {
	var reached int
	var ended bool
	for v := range ahead.Seq(counting(1_000_000, &reached, &ended), 8) {
		if v == 100 {
			break
		}
	}
	Expect(ended).To(BeTrue())
	Expect(reached).To(BeNumerically("<=", 100+4*8))
})
