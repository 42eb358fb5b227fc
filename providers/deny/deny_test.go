package deny_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/deny"
)

func TestDeny(t *testing.T) { suite.Run(t, "deny") }

var _ = It("refuses every call, names the caller and says what to do", func() {
	m := deny.New("the agent triage")
	for range 2 {
		reply, err := llm.Generate(context.Background(), m, llm.Request{})
		Expect(reply.Parts).To(BeEmpty())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Render(err)).To(Equal("error: the agent triage asked a model, but none is configured\n" +
			"hint: name one under providers: in the dataset, or with --provider, as in --provider openai:gpt-4o-mini\n"))
	}
})
