package failure_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
)

func TestFailure(t *testing.T) { suite.Run(t, "failure") }

var _ = Describe("an error for the user", func() {
	pos := failure.Position{File: "datasets/a.yaml", Line: 3, Column: 7}

	It("keeps place, hint and code through wrapping", func() {
		err := failure.WithHint(failure.At(pos, failure.Input, "unknown key %q", "itmes"), "did you mean %q?", "items")
		err = fmt.Errorf("reading the dataset: %w", err)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).To(Equal([]string{`did you mean "items"?`}))
		got, ok := failure.PositionOf(err)
		Expect(ok).To(BeTrue())
		Expect(got).To(Equal(pos))
		Expect(failure.Render(err)).To(Equal("error: reading the dataset: datasets/a.yaml:3:7: unknown key \"itmes\"\nhint: did you mean \"items\"?\n"))
	})

	It("gives its message without the place at its head", func() {
		Expect(failure.Message(failure.At(pos, failure.Input, "unknown key"))).To(Equal("unknown key"))
		Expect(failure.Message(fmt.Errorf("reading: %w", failure.At(pos, failure.Input, "unknown key")))).To(Equal("reading: datasets/a.yaml:3:7: unknown key"))
		Expect(failure.Message(errors.New("plain"))).To(Equal("plain"))
	})

	It("has no code of its own and keeps the first it is given", func() {
		err := errors.New("disk full")
		Expect(failure.CodeOf(err)).To(Equal(failure.OK))
		err = failure.WithCode(err, failure.Internal)
		Expect(failure.CodeOf(failure.WithCode(err, failure.Input))).To(Equal(failure.Internal))
		Expect(failure.WithCode(nil, failure.Input)).To(Succeed())
		Expect(failure.WithHint(nil, "nothing")).To(Succeed())
	})

	It("takes the worst code of joined errors and renders each with its hint", func() {
		err := errors.Join(
			failure.WithHint(failure.New(failure.Gate, "a"), "do a"),
			failure.WithHint(failure.New(failure.Cassette, "b"), "do b"),
		)
		Expect(failure.CodeOf(err)).To(Equal(failure.Cassette))
		Expect(failure.Render(err)).To(Equal("error: a\nhint: do a\nerror: b\nhint: do b\n"))
		Expect(failure.Render(nil)).To(BeEmpty())
	})

	DescribeTable("the order of exit codes", func(worse, better failure.Code) {
		Expect(failure.Worse(worse, better)).To(Equal(worse))
		Expect(failure.Worse(better, worse)).To(Equal(worse))
	},
		Entry(nil, failure.Interrupted, failure.Input),
		Entry(nil, failure.Input, failure.Internal),
		Entry(nil, failure.Internal, failure.Cassette),
		Entry(nil, failure.Cassette, failure.Gate),
		Entry(nil, failure.Gate, failure.Unavailable),
		Entry(nil, failure.Unavailable, failure.Inconclusive),
		Entry(nil, failure.Inconclusive, failure.OK),
	)

	DescribeTable("positions", func(p failure.Position, want string) { Expect(p.String()).To(Equal(want)) },
		Entry(nil, failure.Position{File: "a"}, "a"),
		Entry(nil, failure.Position{File: "a", Line: 2}, "a:2"),
		Entry(nil, failure.Position{File: "a", Line: 2, Column: 9}, "a:2:9"),
	)
})
