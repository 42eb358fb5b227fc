// Package matchers holds Gomega matchers for what an agent did: which tools it called and with what, what it answered, whether the invariants hold, and whether its recording still fits. Only tests import it.
//
//	Expect(outcome).To(CallTool("edit_file", WithArgs(map[string]any{"path": "notes/delivery.md"})))
//	Expect(outcome).To(HavePairedToolCalls())
//	Expect(outcome).NotTo(CallTool("exec"))
//	Expect(outcome).To(Answer(ContainSubstring("courier")))
//	Expect(outcome).To(ReplayCleanly())
//
// The value may be an [Outcome], as package evaltest gives for each item of a dataset; the trace of an agent of your own; or a conversation and its messages, which hold enough for all but [Pass] and [ReplayCleanly].
//
// Every failure shows the calls that were made, each with its result, or the evidence of the check or invariant. What models and tools wrote is shown with escapes, so that nothing in it acts on a terminal.
//
// A matcher that has nothing to look at (an empty trace, a named invariant that cannot apply) returns an error, so that neither To nor NotTo passes.
package matchers
