package matchers_test

import (
	"fmt"

	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	. "github.com/echoeval/echoeval/harness/matchers"
)

// clerk is what an agent of one's own might return: the conversation after its turn.
func clerk() []conversation.Message {
	return []conversation.Message{
		conversation.User("m1", conversation.Text{Text: "When do parcels leave?"}),
		conversation.Assistant("m2", conversation.ToolCall{ID: "c1", Name: "read_file", Input: `{"path":"notes/delivery.md"}`}),
		conversation.ToolResults("m2", conversation.ToolResult{ID: "c1", Result: `"Tuesdays and Fridays."`}),
		conversation.Assistant("m2", conversation.Text{Text: "On Tuesdays and Fridays."}),
	}
}

func ExampleCallTool() {
	g := NewGomega(func(message string, _ ...int) { fmt.Println(message) })

	g.Expect(clerk()).To(CallTool("read_file", WithArgs(map[string]any{"path": HaveSuffix(".md")})))
	g.Expect(clerk()).NotTo(CallTool("exec"))
	g.Expect(clerk()).To(CallTool("read_file", Times(2)))
	// Output:
	// expected the model to call read_file, 2 times
	// 1 call matched
	// the model's calls:
	//   1. read_file {"path":"notes/delivery.md"} -> Tuesdays and Fridays.
}

func ExampleCallTools() {
	g := NewGomega(func(message string, _ ...int) { fmt.Println(message) })

	g.Expect(clerk()).To(CallTools("read_file"))
	g.Expect(clerk()).To(CallNoTools())
	// Output:
	// expected the model to call no tool
	// the model's calls:
	//   1. read_file {"path":"notes/delivery.md"} -> Tuesdays and Fridays.
}

func ExampleAnswer() {
	g := NewGomega(func(message string, _ ...int) { fmt.Println(message) })

	g.Expect(clerk()).To(Answer(ContainSubstring("Fridays")))
	g.Expect(clerk()).To(Answer("Every day."))
	// Output:
	// the model's answer:
	//   Expected
	//       <string>: On Tuesdays and Fridays.
	//   to equal
	//       <string>: Every day.
	// the model's calls:
	//   1. read_file {"path":"notes/delivery.md"} -> Tuesdays and Fridays.
}

func ExampleHavePairedToolCalls() {
	g := NewGomega(func(message string, _ ...int) { fmt.Println(message) })

	g.Expect(clerk()).To(HavePairedToolCalls())
	g.Expect(clerk()[:2]).To(HavePairedToolCalls())
	// Output:
	// expected every tool call to have its one result
	// tool-call-pairing (error) is broken: message 2, part 1: call "c1" of read_file has no result and the conversation ends (event 2)
	// the model's calls:
	//   1. read_file {"path":"notes/delivery.md"} -> no result
}

func ExampleKeepInvariants() {
	g := NewGomega(func(message string, _ ...int) { fmt.Println(message) })

	g.Expect(clerk()).To(KeepInvariants())
	g.Expect(clerk()).To(KeepInvariants("tool-call-pairing"))
	// Output:
}
