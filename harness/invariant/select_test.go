package invariant

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
)

func node(yaml string) strict.Node {
	n, err := strict.Parse("d.yaml", []byte(yaml))
	if err != nil {
		panic(err)
	}
	return n
}

var _ = Describe("Select", func() {
	pos := failure.Position{File: "d.yaml", Line: 4, Column: 5}

	It("takes the standard group, adds and drops", func() {
		var p strict.Problems
		Expect(Select(nil, nil, &p).Names()).To(Equal(Names()))
		set := Select([]Spec{{Name: "usage-accounted", Severity: "warn", Pos: pos}}, []string{"path-confined", "polite", "role-content"}, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		Expect(set.Names()).To(HaveLen(10))
		Expect(set.Names()).NotTo(ContainElements("path-confined", "role-content"))

		got := set.Evaluate(breaksUsage())
		Expect(got.Violations).To(HaveLen(1))
		Expect(got.Violations[0]).To(And(HaveField("Severity", eval.SeverityWarn), HaveField("At", "d.yaml:4:5")))
		Expect(Select(nil, []string{"usage-accounted"}, &p).Evaluate(breaksUsage()).Violations).To(BeEmpty())
		Expect(Select(nil, nil, &p).Evaluate(breaksUsage()).Violations[0].Severity).To(Equal(eval.SeverityError), "the standard group stays as it is")
	})

	It("states one severity for a rule that has two", func() {
		t := good().end("end")
		r, o := event(t, trace.KindReply, 2), event(t, trace.KindResults, 2)
		r.Reply.Message = edit(r.Reply.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{call("c1", `{"path":"b.txt"}`)}
		})
		o.Results.Message = edit(o.Results.Message, func([]conversation.Content) []conversation.Content {
			return []conversation.Content{result("c1", "beta")}
		})
		var p strict.Problems
		got := Select([]Spec{{Name: "tool-call-unique-ids", Severity: "error"}}, nil, &p).Evaluate(seal(t))
		Expect(got.Violations).To(HaveLen(1))
		Expect(got.Violations[0].Severity).To(Equal(eval.SeverityError))
	})

	It("takes parameters", func() {
		var p strict.Problems
		set := Select([]Spec{{Name: "iteration-limit", Params: node("max: 2")}}, nil, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		got := set.Evaluate(good().end("end"))
		Expect(got.Violations).To(HaveLen(1))
		Expect(got.Violations[0].Evidence).To(Equal("3 model steps, at most 2 are allowed"))
	})

	DescribeTable("says what is wrong", func(spec Spec, message, hint string) {
		var p strict.Problems
		spec.Pos = pos
		Select([]Spec{spec}, nil, &p)
		Expect(p.Err()).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(p.Err())).To(Equal(failure.Input))
		Expect(strings.Join(failure.Hints(p.Err()), "")).To(ContainSubstring(hint))
	},
		Entry(nil, Spec{Name: "tool-call-pairs"}, `d.yaml:4:5: unknown invariant "tool-call-pairs"`, `did you mean "tool-call-pairing"?`),
		Entry(nil, Spec{Name: "budget"}, `unknown invariant "budget"`, "choices: arguments-match-schema, "),
		Entry(nil, Spec{Name: "role-content", Severity: "fatal"}, `unknown severity "fatal"`, "error or warn"),
		Entry(nil, Spec{Name: "role-content", Params: node("max: 2")}, "takes no parameters", "leave it out"),
		Entry(nil, Spec{Name: "iteration-limit", Params: node("maks: 2")}, `unknown key "maks"`, "choices: max"),
		Entry(nil, Spec{Name: "iteration-limit", Params: node("max: 0")}, "want at least 1", ""),
		Entry(nil, Spec{Name: "iteration-limit", Params: node("max: x")}, "want a whole number", ""),
	)

	It("looks for known secrets too where it is given them", func() {
		var p strict.Problems
		set := Select(nil, nil, &p)
		set.Secrets = secret.Detector{Values: []secret.Value{{Name: "CRM_TOKEN", Value: "correct horse"}}}
		got := set.Evaluate(begin("x").ask().reply(say("correct horse battery")).end("end"))
		Expect(got.Violations).To(HaveLen(1))
		Expect(got.Violations[0].Evidence).To(Equal("value of CRM_TOKEN at byte 0 of a message of the assistant"))
	})

	It("takes hidden values and secrets out of what it quotes", func() {
		s := begin("x").hide(tenant).ask(read)
		got := Select(nil, nil, nil).Evaluate(s.reply(conversation.ToolCall{ID: "c1", Name: "t-7f3a91", Input: "{}"}).end("error"))
		Expect(got.Violations).To(HaveLen(1))
		Expect(got.Violations[0].Evidence).To(ContainSubstring("[tenant_id]"))
		Expect(got.Violations[0].Evidence).NotTo(ContainSubstring("t-7f3a91"))
	})
})

// FuzzEvaluate gives every rule traces as a damaged or hostile file may hold them.
func FuzzEvaluate(f *testing.F) {
	f.Add([]byte("[]"))
	f.Add(good().end("end").AppendJSON(nil))
	for _, e := range catalogue {
		f.Add(e.Breaks().AppendJSON(nil))
	}
	hidden := conversation.Hidden{"tenant_id": `"t-7f3a91"`, "user": `{"a":[1,"x"]}`}
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := trace.Decode(data)
		if err != nil {
			t.Skip()
		}
		set := Select(nil, nil, nil)
		for _, h := range []conversation.Hidden{nil, hidden} {
			decoded.Hidden = h
			got := set.Evaluate(decoded)
			names := map[string]bool{}
			for _, v := range got.Violations {
				names[v.Name] = true
				if len(v.Events) == 0 || v.Evidence == "" || h != nil && strings.Contains(v.Evidence, "t-7f3a91") {
					t.Fatalf("%+v", v)
				}
			}
			if got.Held+len(got.NotApplicable)+len(names) != len(catalogue) {
				t.Fatalf("%+v", got)
			}
			again := set.Evaluate(decoded)
			if got.Held != again.Held || len(got.Violations) != len(again.Violations) {
				t.Fatal("the second time is not the first")
			}
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	set := Select(nil, nil, nil)
	plain := good().end("end")
	large := good()
	large.Events[0].Start.Input[0] = conversation.User("u1", say(string(bytes.Repeat([]byte("a long message \\\"of the user\\\" "), 1000))))
	large.messages[0] = large.Events[0].Start.Input[0]
	for _, bench := range []struct {
		name string
		t    trace.Trace
	}{{"three steps", plain}, {"30 KB of input", large.end("end")}, {"single turn", keepsInput()}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(set.Evaluate(bench.t).Violations) > 0 {
					b.Fatal("broken")
				}
			}
		})
	}
}
