package inject_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/inject"
)

var _ = Describe("a plan", func() {
	It("names faults, with options where they are wanted", func() {
		p, err := inject.Load("faults.yaml", []byte("version: 1\r\nfaults:\r\n- rate_limit\r\n- timeout: {at: each, times: 2, after: 1m}\r\n- timeout\r\n- cut_stream: {frame: 3, silent: true, name: torn}\r\n- tool_error: {tool: \"büchen 📚\", at: last}\r\n- length: {at: 2}\r\n"))
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Faults).To(Equal([]inject.Fault{
			{Kind: inject.RateLimit, Name: "rate_limit", Times: 1, RetryAfter: 2 * time.Second},
			{Kind: inject.Timeout, Name: "timeout", At: inject.Each, Times: 2, After: time.Minute},
			{Kind: inject.Timeout, Name: "timeout#2", Times: 1, After: 10 * time.Second},
			{Kind: inject.CutStream, Name: "torn", Times: 1, Frame: 3, Silent: true},
			{Kind: inject.ToolError, Name: "tool_error", At: inject.Last, Times: 1, Tool: "büchen 📚"},
			{Kind: inject.Length, Name: "length", At: 2, Times: 1},
		}))
	})

	It("is built in, with every kind", func() {
		seen := map[inject.Kind]int{}
		names := map[string]bool{}
		for _, f := range inject.Builtin().Faults {
			seen[f.Kind]++
			names[f.Name] = true
		}
		Expect(seen).To(HaveLen(len(inject.Kinds())))
		Expect(names).To(HaveLen(len(inject.Builtin().Faults)))
	})

	DescribeTable("says where it is wrong", func(text, place, message, hint string) {
		_, err := inject.Load("faults.yaml", []byte(text))
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		pos, ok := failure.PositionOf(err)
		Expect(ok).To(BeTrue())
		Expect(pos.String()).To(Equal("faults.yaml:" + place))
		Expect(err.Error()).To(ContainSubstring(message))
		Expect(strings.Join(failure.Hints(err), "\n")).To(ContainSubstring(hint))
	},
		Entry("empty", "", "1:1", "", ""),
		Entry("no list", "version: 1\n", "1:1", `key "faults" is missing`, "add it"),
		Entry("an empty list", "version: 1\nfaults: []\n", "2:9", "nothing would be injected", "rate_limit"),
		Entry("another version", "version: 2\nfaults: [timeout]\n", "1:10", "unknown version 2", "version: 1"),
		Entry("an unknown fault", "version: 1\nfaults:\n  - time_out\n", "3:5", `unknown fault "time_out"`, `"timeout"`),
		Entry("an unknown fault with options", "version: 1\nfaults:\n  - earthquake: {at: last}\n", "3:5", `unknown fault "earthquake"`, "refusal"),
		Entry("an unknown option", "version: 1\nfaults:\n  - timeout: {tims: 2}\n", "3:15", `unknown key "tims"`, "times"),
		Entry("an option of another kind", "version: 1\nfaults:\n  - refusal: {times: 2}\n", "3:15", "refusal has no times", "at, name"),
		Entry("two in one", "version: 1\nfaults:\n  - {timeout: {}, refusal: {}}\n", "3:5", "want one fault, got 2 keys", "one name"),
		Entry("no place", "version: 1\nfaults:\n  - timeout: {at: middle}\n", "3:19", `"middle" is no place`, "first, last, each"),
		Entry("place 0", "version: 1\nfaults:\n  - timeout: {at: 0}\n", "3:19", "want a number from 1", "first, last, each"),
		Entry("too many times", "version: 1\nfaults:\n  - timeout: {times: 11}\n", "3:22", "want a number from 1 to 10", ""),
		Entry("a number for a duration", "version: 1\nfaults:\n  - timeout: {after: 3}\n", "3:22", "want a duration", "3s"),
		Entry("too long", "version: 1\nfaults:\n  - timeout: {after: 1h}\n", "3:22", "want a duration up to 10m0s", ""),
		Entry("a name that no file can bear", "version: 1\nfaults:\n  - timeout: {name: \"../x\\e[31m\"}\n", "3:21", "is no name", "letters, digits"),
		Entry("twice one name", "version: 1\nfaults:\n  - timeout: {name: a}\n  - refusal: {name: a}\n", "4:5", `another fault is named "a", at faults.yaml:3:5`, "a name of its own"),
		Entry("an empty tool", "version: 1\nfaults:\n  - tool_error: {tool: \"\"}\n", "3:24", "an empty name", "leave the key out"),
		Entry("a text for the list", "version: 1\nfaults: timeout\n", "2:9", "want a list", "[\"timeout\"]"),
		Entry("null", "version: 1\nfaults: [null]\n", "2:10", "want a string", ""),
	)

	It("has bounds", func() {
		_, err := inject.Load("faults.yaml", []byte("version: 1\nfaults: ["+strings.Repeat("timeout, ", 101)+"]\n"))
		Expect(err).To(MatchError(ContainSubstring("101 faults, at most 100")))
	})
})
