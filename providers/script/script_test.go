package script_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/script"
)

func TestScript(t *testing.T) { suite.Run(t, "script") }

var _ = Describe("a scripted model", func() {
	generate := func(m llm.Model) (llm.Reply, error) {
		return llm.Generate(context.Background(), m, llm.Request{System: "s"})
	}

	It("gives its steps in order and then says that there are no more", func() {
		cause := errors.New("down")
		m := script.New(
			script.Step{Reasoning: "hm", Text: "wait", Calls: []script.Call{{Name: "look", Arguments: `{"a":1}`}, {ID: "mine", Name: "look"}}, Usage: conversation.Usage{InputTokens: 3}},
			script.Fail(cause),
			script.Text("done"),
			script.Step{Text: "cut", Stop: llm.StopLength},
		)
		first, err := generate(m)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Parts).To(HaveExactElements(
			conversation.Reasoning{Text: "hm"}, conversation.Text{Text: "wait"},
			And(HaveField("ID", HavePrefix("call_")), HaveField("Name", "look"), HaveField("Input", conversation.JSON(`{"a":1}`))),
			conversation.ToolCall{ID: "mine", Name: "look"}))
		Expect(first.Finish).To(Equal(llm.Finish{Stop: llm.StopToolCalls, Usage: conversation.Usage{InputTokens: 3}, Model: "script"}))
		_, err = generate(m)
		Expect(err).To(MatchError(cause))
		last, err := generate(m)
		Expect(err).NotTo(HaveOccurred())
		Expect(last.Parts).To(Equal([]conversation.Content{conversation.Text{Text: "done"}}))
		Expect(last.Finish.Stop).To(Equal(llm.StopEnd))
		last, err = generate(m)
		Expect(err).NotTo(HaveOccurred())
		Expect(last.Finish.Stop).To(Equal(llm.StopLength))
		_, err = generate(m)
		Expect(err).To(MatchError("the script has no answer to request 5: its steps end at 4"))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(m.Requests()).To(HaveLen(5))
		Expect(m.Requests()[0].System).To(Equal("s"))
	})

	It("gives equal ids each time, and different ones at each place", func() {
		ids := map[string]int{}
		for range 2 {
			m := script.New(script.Calls(script.Call{Name: "a"}, script.Call{Name: "a"}), script.Calls(script.Call{Name: "a"}, script.Call{Name: "b"}))
			for range 2 {
				reply, err := generate(m)
				Expect(err).NotTo(HaveOccurred())
				for _, p := range reply.Parts {
					ids[p.(conversation.ToolCall).ID]++
				}
			}
		}
		Expect(ids).To(HaveLen(4))
		for _, n := range ids {
			Expect(n).To(Equal(2))
		}
	})

	It("can be asked from several goroutines, and be broken off", func() {
		steps := make([]script.Step, 50)
		for i := range steps {
			steps[i] = script.Text(fmt.Sprint(i))
		}
		m := script.New(steps...)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				for range m.Stream(context.Background(), llm.Request{}) {
					break
				}
			})
		}
		group.Wait()
		Expect(m.Requests()).To(HaveLen(50))
		ctx, cancel := context.WithCancelCause(context.Background())
		because := errors.New("enough")
		cancel(because)
		_, err := llm.Generate(ctx, m, llm.Request{})
		Expect(err).To(MatchError(because))
		Expect(m.Requests()).To(HaveLen(50))
	})
})

func ExampleNew() {
	m := script.New(script.Text("Hello."))
	reply, err := llm.Generate(context.Background(), m, llm.Request{})
	fmt.Println(reply.Parts[0].(conversation.Text).Text, err)
	// Output: Hello. <nil>
}
