package dataset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/dataset"
)

var _ = Describe("rules", func() {
	const library = "version: 1\ninvariants:\n  no-exec: {never: {call: exec}, severity: warn}\n  of-user: {never: {call: {tool: exec, args: {who: '{{name}}'}}}}\n"

	It("of a library and of an item come to the items, and may be dropped by name", func() {
		d := opened(map[string]string{"lib.yaml": library, "datasets/d.yaml": head + "use: [../lib.yaml]\ndefaults: {invariants: [no-exec, {count: {call: exec, max: 1}, name: once}]}\nitems:\n" +
			"- {id: a, input: b, invariants: [{use: no-exec, severity: error}, {sequence: 'a b?'}]}\n- {id: b, input: b, drop: [no-exec, once]}\n"})
		items := collect(d)
		Expect(items).To(HaveLen(2))
		var names []string
		for _, v := range items[0].Invariants {
			Expect(v.Rule).NotTo(BeNil())
			names = append(names, v.Name+" "+v.Severity+" "+v.Rule.Form)
		}
		Expect(names).To(ConsistOf("no-exec  never", "once  count", "no-exec error never", MatchRegexp("^sequence-[0-9a-f]{6}  sequence$")))
		Expect(items[0].Invariants[0].Rule.Severity).To(Equal(eval.SeverityWarn))
		Expect(items[1].Invariants).To(BeEmpty())
	})

	It("are part of how an item is judged", func() {
		hash := func(max string) string {
			GinkgoHelper()
			d := opened(map[string]string{"lib.yaml": "version: 1\ninvariants: {few: {count: {call: exec, max: " + max + "}}}\n", "datasets/d.yaml": head + "use: [../lib.yaml]\nitems: [{id: a, input: b, invariants: [few]}]\n"})
			return collect(d)[0].ChecksHash
		}
		Expect(hash("1")).To(Equal(hash("1")))
		Expect(hash("1")).NotTo(Equal(hash("2")))
	})

	It("take templates as arguments, which each item fills", func() {
		d := opened(map[string]string{"lib.yaml": library, "datasets/d.yaml": head + "use: [../lib.yaml]\ndefaults: {invariants: [of-user]}\nitems: [{id: a, input: b, vars: {name: Ana}}, {id: b, input: b, vars: {name: Bo}}]\n"})
		items := collect(d)
		Expect(items[0].Invariants[0].Rule.Node.JSON()).To(Equal(`{"never":{"call":{"tool":"exec","args":{"who":"Ana"}}}}`))
		Expect(items[1].Invariants[0].Rule.Node.JSON()).To(ContainSubstring(`"Bo"`))
		Expect(items[1].Invariants[0].Rule.Name).To(Equal("of-user"))
	})

	It("are explained as they are written", func() {
		d := opened(map[string]string{"lib.yaml": library, "datasets/d.yaml": head + "use: [../lib.yaml]\nitems: [{id: a, input: b, invariants: [no-exec, {use: no-exec, severity: error}, {sequence: 'a b?', name: order}]}]\n"})
		all, err := d.Explain("a")
		Expect(err).NotTo(HaveOccurred())
		text := string(dataset.AppendYAML(nil, all))
		Expect(text).To(ContainSubstring(`- "no-exec"`))
		Expect(text).To(ContainSubstring(`- {"use":"no-exec","severity":"error"}`))
		Expect(text).To(ContainSubstring(`- {"sequence":"a b?","name":"order"}`))
	})
})
