package conversation_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
)

// calls and results are messages in short: the ids of their parts.
func calls(ids ...string) conversation.Message {
	var parts []conversation.Content
	for _, id := range ids {
		parts = append(parts, conversation.ToolCall{ID: id, Name: "f"})
	}
	return conversation.Assistant("m", parts...)
}

func results(ids ...string) conversation.Message {
	var parts []conversation.Content
	for _, id := range ids {
		parts = append(parts, conversation.ToolResult{ID: id, Result: "1"})
	}
	return conversation.ToolResults("m", parts...)
}

func says(text string) conversation.Message {
	return conversation.User("m", conversation.Text{Text: text})
}

var _ = Describe("pairing", func() {
	DescribeTable("holds", func(messages ...conversation.Message) {
		Expect(conversation.CheckPairing(slices.All(messages))).To(BeEmpty())
	},
		Entry("without messages"),
		Entry("without calls", says("a"), says("b")),
		Entry("of a call and its result", says("a"), calls("1"), results("1"), says("b")),
		Entry("of calls and results in another order", calls("1", "2", "3"), results("3", "1", "2")),
		Entry("of results in several messages", calls("1", "2"), results("2"), results("1")),
		Entry("of ids that return in a later message", calls("1"), results("1"), calls("1"), results("1")),
		Entry("of results beside a picture", calls("1"), conversation.ToolResults("m", one[conversation.KindImage], conversation.ToolResult{ID: "1", Result: "1"})),
	)

	DescribeTable("fails", func(problem conversation.PairingProblem, text string, messages ...conversation.Message) {
		Expect(conversation.CheckPairing(slices.All(messages))).To(Equal([]conversation.PairingProblem{problem}))
		Expect(problem.String()).To(Equal(text))
	},
		Entry("unanswered", conversation.PairingProblem{Kind: conversation.Unanswered, CallID: "2", Tool: "f", Message: 0, Part: 1},
			`message 1, part 2: call "2" of f has no result before the next message`, calls("1", "2"), results("1"), says("b")),
		Entry("unanswered at the end", conversation.PairingProblem{Kind: conversation.UnansweredAtTail, CallID: "1", Tool: "f", Message: 1, Part: 0},
			`message 2, part 1: call "1" of f has no result and the conversation ends`, says("a"), calls("1")),
		Entry("orphan", conversation.PairingProblem{Kind: conversation.OrphanResult, CallID: "9", Message: 1, Part: 1},
			`message 2, part 2: result "9" answers no call`, calls("1"), results("1", "9")),
		Entry("orphan of a call that was answered long ago", conversation.PairingProblem{Kind: conversation.OrphanResult, CallID: "1", Message: 3, Part: 0},
			`message 4, part 1: result "1" answers no call`, calls("1"), results("1"), says("a"), results("1")),
		Entry("answered twice", conversation.PairingProblem{Kind: conversation.DuplicateResult, CallID: "1", Tool: "f", Message: 2, Part: 0},
			`message 3, part 1: call "1" of f is answered twice`, calls("1"), results("1"), results("1")),
		Entry("one id for two calls", conversation.PairingProblem{Kind: conversation.DuplicateCallID, CallID: "1", Tool: "f", Message: 0, Part: 1},
			`message 1, part 2: call id "1" of f is used twice in one message`, calls("1", "1"), results("1")),
		Entry("a call without id", conversation.PairingProblem{Kind: conversation.MissingCallID, Tool: "f", Message: 0, Part: 0},
			`message 1, part 1: a tool call or result has no id`, calls("")),
		Entry("a result without id", conversation.PairingProblem{Kind: conversation.MissingCallID, Message: 0, Part: 0},
			`message 1, part 1: a tool call or result has no id`, results("")),
	)

	It("tells a late result from an orphan, and reports in the order of the messages", func() {
		problems := conversation.CheckPairing(slices.All([]conversation.Message{calls("1"), says("a"), results("1", "1"), calls("2"), calls("3"), results("2", "3")}))
		var kinds []conversation.PairingKind
		for _, p := range problems {
			kinds = append(kinds, p.Kind)
			Expect(p.String()).NotTo(BeEmpty())
		}
		Expect(kinds).To(Equal([]conversation.PairingKind{conversation.Unanswered, conversation.LateResult, conversation.OrphanResult, conversation.Unanswered, conversation.LateResult}))
		Expect(problems[1].String()).To(Equal(`message 3, part 1: the result of call "1" of f comes too late`))
		Expect(conversation.PairingProblem{Kind: "new", CallID: "1"}.String()).To(Equal(`message 1, part 1: new "1"`))
	})
})
