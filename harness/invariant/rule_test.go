package invariant

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/rule"
)

// ruleSpec is a rule as a dataset adds it.
func ruleSpec(name, text string) Spec {
	GinkgoHelper()
	var p strict.Problems
	r := rule.Compile(node(text), &p)
	Expect(p.Err()).NotTo(HaveOccurred())
	return Spec{Name: name, Rule: r, Pos: failure.Position{File: "d.yaml", Line: 7, Column: 3}}
}

var _ = Describe("rules of the user", func() {
	It("are judged beside the standard ones, and say whether their case occurred", func() {
		var p strict.Problems
		set := Select([]Spec{
			ruleSpec("a-kept", "never: {after: read_file, call: exec}"),
			ruleSpec("b-broken", "rule: \"trace.calls('read_file').all(c, c.args.path != 'a.txt')\""),
			ruleSpec("c-idle", "never: {after: web_fetch, call: exec}"),
			ruleSpec("z-dropped", "never: {call: read_file}"),
		}, []string{"z-dropped"}, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		got := set.Evaluate(keepsArguments())
		Expect(got.Triggered).To(Equal([]string{"a-kept", "b-broken"}))
		Expect(got.Violations).To(Equal([]eval.Violation{{Name: "b-broken", Severity: eval.SeverityError, Events: []int{3}, Evidence: `event 3: read_file({"path":"a.txt"}); with "a.txt"`, At: "d.yaml:7:3"}}))
		alone := Select(nil, nil, &p).Evaluate(keepsArguments())
		Expect(got.Held).To(Equal(alone.Held + 2))
		Expect(got.NotApplicable).To(Equal(alone.NotApplicable))

		none := set.Evaluate(trace.Trace{})
		Expect(none.NotApplicable).To(ContainElements("a-kept", "b-broken", "c-idle"))
		Expect(none.Triggered).To(BeEmpty())
	})

	It("take the severity of where they are used", func() {
		var p strict.Problems
		spec := ruleSpec("x", "never: {call: read_file}")
		spec.Severity = "warn"
		Expect(Select([]Spec{spec}, nil, &p).Evaluate(keepsArguments()).Violations[0].Severity).To(Equal(eval.SeverityWarn))
		Select([]Spec{ruleSpec("role-content", "never: {call: read_file}")}, nil, &p)
		Expect(p.Err()).To(MatchError(ContainSubstring(`the name of rule "role-content" is that of an invariant`)))
	})

	It("never show a secret or a hidden value as evidence", func() {
		hidden := conversation.Hidden{"tenant_id": `"t-7f3a91c2"`}
		c := call("c1", `{"path":"t-7f3a91c2","key":"sk-`+`example0example1example2"}`)
		t := begin("x").hide(hidden).ask(read).reply(c).end("end")
		var p strict.Problems
		got := Select([]Spec{ruleSpec("x", "never: {call: read_file}")}, nil, &p).Evaluate(t)
		i := len(got.Violations) - 1
		Expect(got.Violations[i].Name).To(Equal("x"))
		Expect(got.Violations[i].Evidence).To(ContainSubstring("[tenant_id]"))
		Expect(got.Violations[i].Evidence).NotTo(Or(ContainSubstring("t-7f3a91c2"), ContainSubstring("example0example1")))
	})
})
