package emulator_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/emulator"
)

var _ = Describe("a script", func() {
	DescribeTable("that is wrong says where and why", func(text string, want ...string) {
		_, err := emulator.Load("s.yaml", []byte(text))
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		rendered := failure.Render(err)
		for _, w := range want {
			Expect(rendered).To(ContainSubstring(w))
		}
		Expect(strings.Count("\n"+rendered, "\nerror: ")).To(Equal(strings.Count(strings.Join(want, ""), "s.yaml:")), rendered)
	},
		Entry("unknown key", "version: 1\nname: x\ndefalt: {steps: [{text: a}]}\n", "s.yaml:3:1", `did you mean "default"?`),
		Entry("version", "version: 2\nname: x\ndefault: {steps: [{text: a}]}\n", "s.yaml:1:10: version: version 2 is not known"),
		Entry("nothing to answer", "version: 1\nname: x\n", "s.yaml:1:1: the script has no conversation"),
		Entry("empty step", "version: 1\nname: x\ndefault:\n  steps:\n  - {latency: 1s}\n", "s.yaml:5:5: default.steps[0]: the step answers nothing"),
		Entry("no steps", "version: 1\nname: x\ndefault: {steps: []}\n", "s.yaml:3:18: default.steps: the conversation has no steps"),
		Entry("match of everything", "version: 1\nname: x\nconversations: [{steps: [{text: a}]}]\n", "s.yaml:3:17: conversations[0]: the conversation matches everything"),
		Entry("empty match", "version: 1\nname: x\nconversations: [{match: {model: m, user: ''}, steps: [{text: a}]}]\n", "s.yaml:3:42: conversations[0].match.user: an empty text"),
		Entry("match in default", "version: 1\nname: x\ndefault: {match: {user: a}, steps: [{text: a}]}\n", "s.yaml:3:18: default.match: default answers everything"),
		Entry("regular expression", "version: 1\nname: x\nconversations: [{match: {user_regex: '('}, steps: [{text: a}]}]\n", "s.yaml:3:38: conversations[0].match.user_regex:"),
		Entry("pattern", "version: 1\nname: x\nconversations: [{match: {model: '['}, steps: [{text: a}]}]\n", `s.yaml:3:33: conversations[0].match.model: "[" is no pattern`),
		Entry("placeholder", "version: 1\nname: x\ndefault: {steps: [{text: 'a {{last_usr}}'}]}\n", "s.yaml:3:26: default.steps[0].text: unknown placeholder \"last_usr\""),
		Entry("placeholder in arguments", "version: 1\nname: x\ndefault: {steps: [{calls: [{name: f, args: {a: ['{{x}}']}}]}]}\n", "s.yaml:3:44: default.steps[0].calls[0].args: unknown placeholder"),
		Entry("open placeholder", "version: 1\nname: x\ndefault: {steps: [{text: 'a {{last_user'}]}\n", "s.yaml:3:26: default.steps[0].text: a placeholder is not closed"),
		Entry("arguments twice", "version: 1\nname: x\ndefault: {steps: [{calls: [{name: f, args: {}, raw: x}]}]}\n", "s.yaml:3:53: default.steps[0].calls[0].raw: args and raw"),
		Entry("arguments of another type", "version: 1\nname: x\ndefault: {steps: [{calls: [{name: f, args: [1]}]}]}\n", "s.yaml:3:44: default.steps[0].calls[0].args: want a mapping"),
		Entry("empty name", "version: 1\nname: x\ndefault: {steps: [{calls: [{name: ''}]}]}\n", "s.yaml:3:35: default.steps[0].calls[0].name: the call needs"),
		Entry("finish", "version: 1\nname: x\ndefault: {steps: [{text: a, finish: end}]}\n", `s.yaml:3:37: default.steps[0].finish: "end" is not one of stop, length`),
		Entry("finish without calls", "version: 1\nname: x\ndefault: {steps: [{text: a, finish: tool_calls}]}\n", "s.yaml:3:37: default.steps[0].finish: tool_calls without calls"),
		Entry("status", "version: 1\nname: x\ndefault: {steps: [{error: {status: 418}}]}\n", "s.yaml:3:36: default.steps[0].error.status: status 418 is not one of 400, 401"),
		Entry("error and text", "version: 1\nname: x\ndefault: {steps: [{error: {status: 500}, text: a}]}\n", "s.yaml:3:27: default.steps[0].error: a step with an error has nothing else"),
		Entry("refusal and text", "version: 1\nname: x\ndefault: {steps: [{refusal: no, text: a}]}\n", "s.yaml:3:29: default.steps[0].refusal: a refusal has no text"),
		Entry("attempts and text", "version: 1\nname: x\ndefault: {steps: [{attempts: [{text: a}], text: a}]}\n", "s.yaml:3:19: default.steps[0]: attempts stands alone"),
		Entry("attempts in attempts", "version: 1\nname: x\ndefault: {steps: [{attempts: [{text: a, attempts: [{text: b}]}]}]}\n", "s.yaml:3:51: default.steps[0].attempts[0].attempts: attempts do not nest"),
		Entry("no attempts", "version: 1\nname: x\ndefault: {steps: [{attempts: []}]}\n", "s.yaml:3:30: default.steps[0].attempts: the list is empty"),
		Entry("cut", "version: 1\nname: x\ndefault: {steps: [{text: a, cut: {after: 3}}]}\n", "s.yaml:3:42: default.steps[0].cut.after: want a number of frames or bytes", "hint: write a number and its unit"),
		Entry("cut before the beginning", "version: 1\nname: x\ndefault: {steps: [{text: a, cut: {after: -3 frames}}]}\n", "s.yaml:3:42: default.steps[0].cut.after: must not be negative"),
		Entry("latency", "version: 1\nname: x\ndefault: {steps: [{text: a, latency: 5}]}\n", "s.yaml:3:38: default.steps[0].latency: want a duration"),
		Entry("first byte after the last", "version: 1\nname: x\ndefault: {steps: [{text: a, latency: 5ms, ttft: 6ms}]}\n", "s.yaml:3:49: default.steps[0].ttft: the first byte"),
		Entry("no delay", "version: 1\nname: x\ndefault: {steps: [{text: a, slow: {chunk_delay: 0s}}]}\n", "s.yaml:3:49: default.steps[0].slow.chunk_delay: must be positive"),
		Entry("usage", "version: 1\nname: x\ndefault: {steps: [{text: a, usage: {input: 1, cached_input: 2}}]}\n", "s.yaml:3:61: default.steps[0].usage.cached_input: more than input"),
		Entry("two of one name", "version: 1\nname: x\nconversations: [{name: a, match: {user: a}, steps: [{text: a}]}, {name: a, match: {user: b}, steps: [{text: a}]}]\n", `s.yaml:3:73: conversations[1].name: another conversation is named "a"`),
		Entry("several at once", "version: 1\nname: x\ndefault:\n  steps:\n  - {text: a, fragment: -1}\n  - {latency: -1s, text: '{{'}\n", "s.yaml:5:25", "s.yaml:6:15", "s.yaml:6:26"),
		Entry("not YAML", "version: [", "s.yaml:1"),
	)

	It("has a hash that depends on what it says only", func() {
		a := load("version: 1\nname: x\ndefault: {steps: [{calls: [{name: f, args: {a: 1, b: 2}}]}]}\n")
		b := load("# comment\r\nname: 'x'\r\nversion: 1\r\ndefault:\r\n  steps:\r\n  - calls:\r\n    - args: {\"a\": 1, b: 2}\r\n      name: f\r\n")
		c := load("version: 1\nname: x\ndefault: {steps: [{calls: [{name: f, args: {b: 2, a: 1}}]}]}\n")
		hash := func(s emulator.Script) string {
			h, err := s.Hash()
			Expect(err).NotTo(HaveOccurred())
			Expect(h).To(HaveLen(64))
			return h
		}
		Expect(hash(a)).To(Equal(hash(b)))
		Expect(hash(a)).NotTo(Equal(hash(c)))
		// A fixed value, so that a change of the hash, which changes every recorded id, is seen.
		Expect(hash(a)).To(HavePrefix("dd3fea8ab053"))
	})

	It("can be made by code", func() {
		text, after := "hello", emulator.Amount{Count: 5, Bytes: true}
		long := time.Hour
		script := emulator.Script{Version: 1, Name: "code", Default: &emulator.Conversation{Steps: []emulator.Step{{Text: &text, Cut: &emulator.Cut{After: after}, Latency: &long}}}}
		_, err := emulator.New(script, emulator.Options{})
		Expect(err).NotTo(HaveOccurred())

		broken := "\xff"
		script.Default.Steps = []emulator.Step{{Text: &broken}, {Calls: []emulator.Call{{Name: "f", Args: emulator.Object("[")}}}}
		_, err = emulator.New(script, emulator.Options{})
		Expect(err).To(MatchError("default.steps[0].text: not valid UTF-8\ndefault.steps[1].calls[0].args: the arguments must be a JSON object"))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	})
})
