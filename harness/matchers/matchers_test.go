package matchers_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/cassette"
	. "github.com/echoeval/echoeval/harness/matchers"
	"github.com/echoeval/echoeval/harness/replay"
)

// expectMatch asks a matcher both ways: it matches, and the message of the opposite assertion holds all the texts.
func expectMatch(m types.GomegaMatcher, actual any, said ...string) {
	GinkgoHelper()
	ok, err := m.Match(actual)
	Expect(err).NotTo(HaveOccurred())
	Expect(ok).To(BeTrue(), "%s", m.FailureMessage(actual))
	Expect(said).NotTo(BeEmpty())
	for _, text := range said {
		Expect(m.NegatedFailureMessage(actual)).To(ContainSubstring(text))
	}
}

// expectNoMatch likewise for a value that does not match.
func expectNoMatch(m types.GomegaMatcher, actual any, said ...string) {
	GinkgoHelper()
	ok, err := m.Match(actual)
	Expect(err).NotTo(HaveOccurred())
	Expect(ok).To(BeFalse())
	Expect(said).NotTo(BeEmpty())
	for _, text := range said {
		Expect(m.FailureMessage(actual)).To(ContainSubstring(text))
	}
	Expect(m.FailureMessage(actual)).NotTo(ContainSubstring("\x1b"))
}

func expectError(m types.GomegaMatcher, actual any, said string) {
	GinkgoHelper()
	ok, err := m.Match(actual)
	Expect(ok).To(BeFalse())
	Expect(err).To(MatchError(ContainSubstring(said)))
}

type args = map[string]any

// shown are the calls of edit, as every message about calls lists them.
const shown = `the model's calls:
  1. read_file {"path":"notes.md","limit":20} -> a courrier comes
  2. edit_file {"path":"notes.md","old_string":"courrier","new_string":"courier"} -> error: the file is read-only`

var _ = DescribeTable("a call that was made", func(m types.GomegaMatcher, said ...string) {
	expectMatch(m, edit(), append(said, shown)...)
},
	Entry("by name", CallTool("read_file"), "not to call read_file\n", "these match: 1"),
	Entry("by some of its arguments", CallTool("read_file", WithArgs(args{"path": "notes.md"})), `not to call read_file with path "notes.md"`),
	Entry("numbers compare by value", CallTool("read_file", WithArgs(args{"limit": 20.0})), "these match: 1"),
	Entry("by a matcher", CallTool("read_file", WithArgs(args{"path": HaveSuffix(".md"), "limit": BeNumerically(">", 10)})), "limit matching BeNumericallyMatcher, path matching HaveSuffixMatcher"),
	Entry("by a matcher of datasets", CallTool("read_file", WithArgs(args{"path": args{"$regex": "^notes"}})), `{"$regex":"^notes"}`),
	Entry("with any arguments", CallTool("read_file", WithArgs(nil)), "with any arguments"),
	Entry("by its result", CallTool("read_file", Returning("a courrier comes")), "with a certain result"),
	Entry("by a part of its result", CallTool("edit_file", Returning(ContainSubstring("read-only")), Failing()), "failing with a certain result"),
	Entry("that failed", CallTool("edit_file", Failing()), "call edit_file, failing"),
	Entry("so many times", CallTool("read_file", Times(1)), "read_file, 1 times"),
	Entry("never", CallTool("exec", Times(0)), "not to call exec, 0 times", "no call matches"),
	Entry("all of them, in order", CallTools("read_file", "edit_file"), "not to call exactly read_file, edit_file"),
)

var _ = DescribeTable("a call that was not made", func(m types.GomegaMatcher, said ...string) {
	expectNoMatch(m, edit(), append(said, shown)...)
},
	Entry("another tool", CallTool("exec"), "expected the model to call exec\n"),
	Entry("another value", CallTool("read_file", WithArgs(args{"path": "a.md"})), `with path "a.md"`, "call 1: its arguments are not these"),
	Entry("a value more", CallTool("read_file", WithArgs(args{"path": "notes.md", "offset": 1})), "call 1: its arguments are not these"),
	Entry("another type", CallTool("read_file", WithArgs(args{"limit": "20"})), "its arguments are not these"),
	Entry("a matcher that does not hold", CallTool("read_file", WithArgs(args{"path": HaveSuffix(".txt")})), `call 1: its argument "path": Expected`, ".txt"),
	Entry("an argument that is not there", CallTool("read_file", WithArgs(args{"offset": BeNumerically(">", 1)})), `call 1: it has no argument "offset"`),
	Entry("a matcher of another type", CallTool("read_file", WithArgs(args{"path": BeNumerically(">", 1)})), `its argument "path" cannot be matched`),
	Entry("another result", CallTool("read_file", Returning("b")), "call 1: its result: Expected"),
	Entry("a call that went well", CallTool("read_file", Failing()), "call 1: its result is no error"),
	Entry("more often", CallTool("read_file", Times(2)), "1 call matched"),
	Entry("in another order", CallTools("edit_file", "read_file"), "to call exactly edit_file, read_file"),
	Entry("less than all", CallTools("read_file"), "to call exactly read_file\n"),
	Entry("none", CallNoTools(), "expected the model to call no tool"),
)

var _ = Describe("calls", func() {
	It("may be none", func() {
		expectMatch(CallNoTools(), talk(), "to call a tool, and it called none")
		expectNoMatch(CallTool("read_file"), talk(), "the model called no tool")
	})

	It("in the conversation that a run was given are not the model's", func() {
		t := talk()
		t.Events[0].Start.Input = []conversation.Message{
			conversation.User("u0", says("Read.")), conversation.Assistant("a0", calls("c0", "exec", "{}")), conversation.ToolResults("a0", gives("c0", "x")), conversation.User("u1", says("Hello")),
		}
		expectMatch(CallNoTools(), t, "called none")
	})

	It("that share an id have a result each", func() {
		t := asked("Go").reply(calls("c1", "read_file", `{"path":"a"}`)).results(gives("c1", "first")).
			reply(calls("c1", "read_file", `{"path":"b"}`)).results(gives("c1", "second")).reply(says("Done")).ended()
		expectMatch(CallTool("read_file", WithArgs(args{"path": "b"}), Returning("second")), t, "these match: 2")
		expectNoMatch(CallTool("read_file", WithArgs(args{"path": "a"}), Returning("second")), t, `1. read_file {"path":"a"} -> first`)
	})

	It("whose arguments are no object match no arguments", func() {
		t := asked("Go").reply(calls("c1", "read_file", `{"path":`)).ended()
		expectMatch(CallTool("read_file"), t, `read_file {"path": -> no result`)
		expectNoMatch(CallTool("read_file", WithArgs(nil)), t, "no JSON object")
		expectNoMatch(CallTool("read_file", Returning(Not(BeEmpty()))), t, "call 1: it has no result")
	})

	It("are shown in a way that acts on nothing", func() {
		t := asked("Go").reply(calls("c1", "exec\x1b[2J", "{\"a\":\"\u202egnp.exe\"}")).results(gives("c1", "\x1b]0;owned\a\r\nsecond \U0001F9E0 \xff\U000E0041")).ended()
		m := CallTool("read_file")
		Expect(m.Match(t)).To(BeFalse())
		Expect(m.FailureMessage(t)).To(HaveSuffix(`1. exec\u001b[2J {"a":"\u202egnp.exe"} -> \u001b]0;owned\u0007\u000d\nsecond 🧠 ` + "\uFFFD" + `\U000e0041`))
	})

	It("are cut where they are long", func() {
		t := asked("Go").reply(calls("c1", "read_file", `{"path":"a"}`)).results(gives("c1", string(make([]byte, 5000)))).ended()
		m := CallTool("exec")
		Expect(m.Match(t)).To(BeFalse())
		Expect(len(m.FailureMessage(t))).To(BeNumerically("<", 2500))
		Expect(m.FailureMessage(t)).To(ContainSubstring("… (5000 bytes in all)"))
	})

	It("are counted where there are many", func() {
		r := asked("Go")
		for range 1000 {
			r.reply(calls("c1", "read_file", `{"path":"a"}`)).results(gives("c1", "x"))
		}
		t := r.ended()
		expectMatch(CallTool("read_file", Times(1000)), t, "  50. read_file", "\n  … and 950 more")
		m := CallTool("read_file", WithArgs(args{"path": HavePrefix("b")}))
		expectNoMatch(m, t, "call 50: ", "\n  … and 950 more")
		Expect(m.FailureMessage(t)).NotTo(ContainSubstring("call 51: "))
	})

	DescribeTable("that nobody can look for", func(m types.GomegaMatcher, actual any, said string) { expectError(m, actual, said) },
		Entry("an empty trace", CallTool("exec"), trace.Trace{}, "no reply of a model, so nobody knows"),
		Entry("an empty trace, and none expected", CallNoTools(), trace.Trace{}, "nobody knows"),
		Entry("an outcome without a trace", CallNoTools(), Outcome{Result: line(nil)}, "the trace of item mends-a-typo holds no reply"),
		Entry("a conversation of the user alone", CallNoTools(), []conversation.Message{conversation.User("u1", says("Hello"))}, "the conversation holds no reply"),
		Entry("another type", CallTool("exec"), 3, "got a int: want a matchers.Outcome"),
		Entry("nothing", CallTool("exec"), nil, "got a <nil>"),
		Entry("a nil pointer", CallTool("exec"), (*trace.Trace)(nil), "got a *trace.Trace"),
		Entry("a matcher within a value", CallTool("read_file", WithArgs(args{"a": []any{args{"b": Equal(1)}}})), edit(), `a matcher stands within the value of "a"`),
		Entry("what is no JSON", CallTool("read_file", WithArgs(args{"a": func() {}})), edit(), "unsupported type: func()"),
		Entry("an unknown matcher of datasets", CallTool("read_file", WithArgs(args{"a": args{"$regx": "x"}})), edit(), "$regx"),
		Entry("a matcher of no strings", CallTool("read_file", Returning(BeNumerically(">", 1))), edit(), "Returning:"),
		Entry("less than none", CallTool("read_file", Times(-1)), edit(), "Times(-1)"),
	)
})

var _ = Describe("an answer", func() {
	It("is the last reply, by text or by matcher", func() {
		expectMatch(Answer("The typo courier is mended."), edit(), "not to equal", shown)
		expectMatch(Answer(ContainSubstring("courier")), edit(), "not to contain substring", shown)
		expectNoMatch(Answer("mended"), edit(), "to equal", "The typo courier is mended.", shown)
		expectNoMatch(Answer(ContainSubstring("exec")), edit(), "to contain substring", shown)
	})

	It("of a program comes from its result", func() {
		o := Outcome{Result: line(func(r *eval.Result) { r.Output = ptr("forty\x1b[2J two") })}
		expectMatch(Answer(ContainSubstring("two")), o, `forty\u001b[2J two`, "the trace of item mends-a-typo holds no reply of a model, so nobody knows which tools it called")
		expectNoMatch(Answer("42"), &o, `forty\x1b[2J two`, "nobody knows")
		expectError(Answer("42"), Outcome{Result: line(nil)}, "holds no reply")
	})

	It("is matched as a string", func() {
		expectError(Answer(BeNumerically("==", 42)), edit(), "Answer:")
		expectError(Answer("x"), 3, "got a int")
	})
})

var _ = Describe("paired calls", func() {
	It("have a result each", func() {
		expectMatch(HavePairedToolCalls(), edit(), "expected an invariant to be broken", shown)
		expectMatch(HavePairedToolCalls(), talk(), "called no tool")
		expectNoMatch(HavePairedToolCalls(), unpaired(), "every tool call to have its one result", `tool-call-pairing (error) is broken: call "c1" of "read_file" has no result before the next message (event 3, 5)`, `1. read_file {"path":"notes.md"} -> no result`)
	})

	It("have ids of their own", func() {
		t := asked("Go").reply(calls("c1", "read_file", `{"path":"a"}`), calls("c1", "read_file", `{"path":"b"}`)).results(gives("c1", "x"), gives("c1", "y")).reply(says("Done")).ended()
		expectNoMatch(HavePairedToolCalls(), t, "tool-call-unique-ids (error) is broken")
	})

	It("are looked at in a conversation", func() {
		user, reply := conversation.User("u1", says("Go")), conversation.Assistant("a1", calls("c1", "read_file", "{}"))
		whole, err := conversation.New(nil).Append(user, reply, conversation.ToolResults("a1", gives("c1", "x")))
		Expect(err).NotTo(HaveOccurred())
		expectMatch(HavePairedToolCalls(), whole, "read_file {} -> x")
		expectMatch(CallTool("read_file", Returning("x")), whole, "these match: 1")
		expectNoMatch(HavePairedToolCalls(), []conversation.Message{user, reply}, "tool-call-pairing (error) is broken", "(event 2)")
		expectNoMatch(HavePairedToolCalls(), []conversation.Message{user, conversation.ToolResults("a1", gives("c9", "x"))}, "c9")
	})

	It("need something to look at", func() {
		expectError(HavePairedToolCalls(), trace.Trace{}, "the trace is empty")
		expectError(HavePairedToolCalls(), conversation.New(nil), "the trace is empty")
		expectError(HavePairedToolCalls(), "text", "got a string")
	})
})

var _ = Describe("invariants", func() {
	It("hold or show their evidence", func() {
		expectMatch(KeepInvariants(), edit(), "expected an invariant to be broken", shown)
		t := asked("Go").reply(calls("c1", "exec", "{}")).results(breaks("c1", "no such tool")).reply(says("I cannot.")).ended()
		expectNoMatch(KeepInvariants(), t, `visible-tools-only (error) is broken: step 1 calls "exec"`, "(event 3)", "1. exec {} -> error: no such tool")
	})

	It("count where they are named, whatever their severity", func() {
		o := Outcome{Result: line(func(r *eval.Result) {
			r.Invariants.Violations = []eval.Violation{{Name: "path-confined", Severity: eval.SeverityWarn, Events: []int{4}, Evidence: "../a left the workspace"}}
		}), Trace: edit()}
		expectNoMatch(KeepInvariants("path-confined"), o, "path-confined (warn) is broken: ../a left the workspace (event 4)")
		expectMatch(KeepInvariants(), o, "none of those looked at is")
		expectMatch(KeepInvariants("visible-tools-only"), edit(), "none of those looked at is")
	})

	It("that are named must have something to look at", func() {
		expectError(KeepInvariants("path-confined"), talk(), "path-confined had nothing to look at in the trace: it has proven nothing")
		expectError(KeepInvariants("tool-call-paring"), edit(), `there is no invariant "tool-call-paring": did you mean "tool-call-pairing"?`)
		expectError(KeepInvariants(), trace.Trace{}, "the trace is empty")
		expectError(KeepInvariants(), 1, "got a int")
	})

	It("that the run saw broken count, though its trace does not show it", func() {
		o := Outcome{Result: line(func(r *eval.Result) {
			r.Invariants.Violations = []eval.Violation{{Name: "no-hidden-parameter-leak", Severity: eval.SeverityError, Events: []int{2}, Evidence: "shop_id stood in a request"}}
		}), Trace: edit()}
		expectNoMatch(KeepInvariants(), o, "no-hidden-parameter-leak (error) is broken: shop_id stood in a request (event 2)")
	})

	It("see the hidden values of a conversation", func() {
		c, err := conversation.New(conversation.Hidden{"tenant_id": `"t-7f3a91c2"`}).Append(conversation.User("u1", says("Who am I?")), conversation.Assistant("a1", says("You are t-7f3a91c2.")))
		Expect(err).NotTo(HaveOccurred())
		expectNoMatch(KeepInvariants(), c, "no-hidden-parameter-leak (error) is broken")
	})
})

var _ = Describe("an item", func() {
	It("passes, or shows what did not", func() {
		expectMatch(Pass(), line(nil), "expected the item not to pass: mends-a-typo on haiku: pass")
		expectNoMatch(Pass(), ptr(line(fails)), "expected the item to pass: mends-a-typo on haiku: fail (check)\n",
			"\ncheck contains failed: not found at datasets/clerk.yaml:9:9\n  expected: courier\n  actual:   I do not\\u001b[31m know.\n",
			"\ncheck polite could not judge: no verdict in the answer at datasets/clerk.yaml:10:9",
			"\nvisible-tools-only (error) is broken: step 1 calls \"exec\" (event 3, 5) at datasets/clerk.yaml:7:5",
			"\nanswer: I do not know.")
		Expect(Pass().Match(Outcome{Result: line(fails)})).To(BeFalse())
		m := Pass()
		Expect(m.Match(line(fails))).To(BeFalse())
		Expect(m.FailureMessage(nil)).NotTo(ContainSubstring("latency"))
	})

	It("that has no verdict shows why", func() {
		expectNoMatch(Pass(), line(func(r *eval.Result) {
			r.Status, r.Repeat = eval.Error, 2
			r.Error = &eval.ErrorInfo{Kind: eval.ErrProvider, Message: "slow down\x1b[2J", Hint: ptr("lower --concurrency")}
		}), "on haiku, repeat 2: error", `provider error: slow down\u001b[2J`, "hint: lower --concurrency")
		expectNoMatch(Pass(), line(stale), "stale", "request 1 differs: system-prompt: $.messages[0].content: You are kind. -> You are terse. (fail)")
	})

	It("is a line of results", func() {
		expectError(Pass(), edit(), "got a trace.Trace: want a matchers.Outcome or an eval.Result")
		expectError(Pass(), (*eval.Result)(nil), "got a *eval.Result")
	})
})

func stale(r *eval.Result) {
	r.Status = eval.Stale
	r.Cassette.State = eval.CassetteStale
	r.Cassette.Drift = []eval.Drift{{Class: "system-prompt", Request: 1, Path: "$.messages[0].content", Old: "You are kind.", New: "You are terse.", Action: "fail"}}
}

var _ = Describe("a replay", func() {
	It("is clean where the recording fits", func() {
		expectMatch(ReplayCleanly(), line(nil), "expected the replay of fixtures/cassettes/clerk/haiku/mends-a-typo.yaml to differ")
		expectMatch(ReplayCleanly(), Outcome{Result: line(func(r *eval.Result) {
			r.Cassette.Drift = []eval.Drift{{Class: "transport", Request: 1, Path: "$.headers", Action: "serve"}}
		})}, "it does not")
		expectMatch(ReplayCleanly(), replay.Outcome{State: replay.Fresh}, "it does not")
	})

	It("is not where it differs, was served all the same, or left something over", func() {
		expectNoMatch(ReplayCleanly(), line(stale), "expected a clean replay of fixtures/cassettes/clerk/haiku/mends-a-typo.yaml, which is stale\nrequest 1 differs: system-prompt")
		expectNoMatch(ReplayCleanly(), line(func(r *eval.Result) {
			stale(r)
			r.Status, r.Cassette.State, r.Cassette.Drift[0].Action = eval.Pass, eval.CassetteFresh, "serve"
		}), "request 1 differs", "(serve)")
		expectNoMatch(ReplayCleanly(), line(func(r *eval.Result) { r.Cassette.LeftOver = 2 }), "2 recorded and not used")
		expectNoMatch(ReplayCleanly(), line(func(r *eval.Result) { r.Cassette.State = eval.CassetteMissing }), "which is missing")
		miss := &replay.Miss{Class: cassette.ClassHistory, Request: 3, Path: "$.messages[2]", Old: "a", New: "b"}
		expectNoMatch(ReplayCleanly(), replay.Outcome{State: replay.Stale, Miss: miss, Drift: []replay.Drifted{{Miss: miss, Action: replay.Fail}}}, "request 3 differs: history: $.messages[2]: a -> b (fail)")
	})

	It("needs a recording", func() {
		expectError(ReplayCleanly(), line(func(r *eval.Result) { r.Cassette = nil }), "mends-a-typo on haiku has no recording")
		expectError(ReplayCleanly(), replay.Outcome{}, "read no cassette")
		expectError(ReplayCleanly(), errors.New("x"), "want a matchers.Outcome or an eval.Result")
	})
})

var _ = It("prints an outcome by its name", func() {
	m := BeNil()
	o := Outcome{Result: line(func(r *eval.Result) { r.Item = "a\x1b[2J" }), Trace: edit()}
	Expect(m.Match(o)).To(BeFalse())
	Expect(m.FailureMessage(o)).To(ContainSubstring(`item a\u001b[2J on haiku`))
	Expect(m.FailureMessage(o)).NotTo(ContainSubstring("courrier"))
})
