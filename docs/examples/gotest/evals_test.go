// Package gotest_test shows how Go tests look at an agent: each item of a dataset as a spec, and assertions in Go where a dataset has no check for them. Everything is replayed from the recordings in fixtures/cassettes.
package gotest_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/cmd/echoeval/evaltest"
	. "github.com/echoeval/echoeval/harness/matchers"
)

func TestEvals(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "evals")
}

// Each item is a spec, judged by its own checks. What holds for all of them is said once.
var _ = evaltest.Items("datasets/quickstart.yaml", evaltest.Each(func(o Outcome) {
	Expect(o).To(ReplayCleanly())
	Expect(o).To(KeepInvariants("visible-tools-only"))
	Expect(o).NotTo(CallTool("exec"))
}))

var _ = Describe("the assistant of the café", Ordered, func() {
	var run *evaltest.Run

	BeforeAll(func(ctx SpecContext) {
		var err error
		run, err = evaltest.Replay(ctx, "datasets/quickstart.yaml")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(run.Close)
	})

	It("raises a price once, where it stands", func() {
		o, err := run.Item("raises-a-price")
		Expect(err).NotTo(HaveOccurred())
		Expect(o).To(CallTool("edit_file", Times(1), WithArgs(map[string]any{
			"path":       "menus/winter.md",
			"new_string": ContainSubstring("7.00"),
		})))
		Expect(o).To(HavePairedToolCalls())
		Expect(o).To(Answer(ContainSubstring("7.00")))
	})

	It("answers a question from one look", func() {
		o, err := run.Item("lists-two-files")
		Expect(err).NotTo(HaveOccurred())
		Expect(o).To(CallTools("list_dir"))
	})
})
