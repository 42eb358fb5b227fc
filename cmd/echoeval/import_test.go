//go:build unix

package main_test

import (
	"encoding/json"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

const promptfooConfig = `prompts: ['{{question}}']
providers: [openai:gpt-4o-mini]
tests:
  - vars: {question: Are you open?}
    assert: [{type: icontains, value: "yes"}, {type: javascript, value: output.length < 9}, {type: select-best, value: kind}, {type: llm-rubric, value: kind}]
  - vars: {qestion: And tomorrow?}
    assert: [{type: contains, value: "yes"}]
`

var _ = Describe("import", func() {
	It("makes a dataset of a promptfoo configuration that validate accepts", func() {
		p := emptyProject()
		p.write("old/promptfooconfig.yaml", promptfooConfig)
		o := p.succeed("import", "old/promptfooconfig.yaml", "-o", "datasets/support.yaml")
		Expect(o.stdout).To(And(
			ContainSubstring("2 tests -> 2 items; prompts 1 x providers 1 -> 1 provider\n"),
			ContainSubstring("converted 3 of 5 assertions; 1 to do by hand, 1 lost\n"),
			ContainSubstring("to do: javascript (old/promptfooconfig.yaml:5:54)\n"),
			ContainSubstring("lost: select-best (old/promptfooconfig.yaml:5:100)\n"), ContainSubstring("changed: llm-rubric: the judge has instructions of its own"),
			ContainSubstring(`wrong: variable "question" of the prompt is not defined (old/promptfooconfig.yaml:6:5)`), ContainSubstring(`did you mean "qestion"?`),
			HaveSuffix("wrote datasets/support.yaml\nnext: echoeval validate datasets/support.yaml\n"),
		))
		Expect(o.stderr).To(BeEmpty())
		Expect(p.succeed("validate", "datasets/support.yaml").stdout).To(ContainSubstring("dataset support, 2 items on 1 provider"))
		Expect(p.read("datasets/support.yaml")).To(ContainSubstring("# to do (promptfooconfig.yaml:5): javascript"))
	})

	It("overwrites nothing that would change, and compares", func() {
		p := emptyProject()
		p.write("c.yaml", promptfooConfig)
		o := p.expect(1, "import", "c.yaml", "-o", "d.yaml", "--check")
		Expect(o.stdout).To(ContainSubstring("d.yaml does not exist"))
		Expect(p.path("d.yaml")).NotTo(BeAnExistingFile())
		p.succeed("import", "c.yaml", "-o", "d.yaml")
		before := p.read("d.yaml")
		p.succeed("import", "c.yaml", "-o", "d.yaml", "--check")
		p.succeed("import", "c.yaml", "-o", "d.yaml")
		p.edit("c.yaml", "Are you open?", "Are you closed?")
		o = p.expect(1, "import", "c.yaml", "-o", "d.yaml", "--check")
		Expect(o.stdout).To(And(ContainSubstring("\n-"), ContainSubstring("\n+"), ContainSubstring("Are you closed?")))
		o = p.expect(2, "import", "c.yaml", "-o", "d.yaml")
		Expect(o.stderr).To(And(ContainSubstring("d.yaml: it exists and would change"), ContainSubstring("hint: ")))
		Expect(p.read("d.yaml")).To(Equal(before))
		p.succeed("import", "c.yaml", "-o", "d.yaml", "--force")
		Expect(p.read("d.yaml")).To(ContainSubstring("Are you closed?"))
		Expect(p.files(".")).To(And(HaveKey("c.yaml"), HaveKey("d.yaml"), HaveLen(2)), "no temporary file is left")
	})

	It("makes a dataset of traces, with an agent that has their tools", func() {
		p := emptyProject()
		data, err := os.ReadFile(suite.SharedData("traces", "tau-bench", "gpt-4o-airline-60.json"))
		Expect(err).NotTo(HaveOccurred())
		p.write("airline.json", string(data))
		p.succeed("import", "airline.json", "-o", "airline.yaml", "--provider", "openai:gpt-4o")
		Expect(p.succeed("validate", "airline.yaml").stdout).To(ContainSubstring("60 items on 1 provider"))
		Expect(p.read("agents/airline.yaml")).To(ContainSubstring("name: book_reservation"))
	})

	It("prints JSON", func() {
		p := emptyProject()
		p.write("c.yaml", promptfooConfig)
		o := p.succeed("import", "c.yaml", "-o", "d.yaml", "--json")
		var v struct {
			Items int
			Total struct{ Total, Converted, Todo, Lost int }
			Notes []struct{ Class, At, Text, Hint string }
			Files []string
		}
		Expect(json.Unmarshal([]byte(o.stdout), &v)).To(Succeed())
		Expect(v.Items).To(Equal(2))
		Expect(v.Total.Total).To(Equal(5))
		Expect(v.Total.Converted + v.Total.Todo + v.Total.Lost).To(Equal(5))
		Expect(v.Files).To(Equal([]string{"d.yaml"}))
		Expect(v.Notes).NotTo(BeEmpty())
	})

	DescribeTable("does not take", func(file, text, message string, args ...string) {
		p := emptyProject()
		if file != "" {
			p.write(file, text)
		}
		o := p.expect(2, append([]string{"import"}, args...)...)
		Expect(o.stderr).To(And(ContainSubstring(message), ContainSubstring("hint: ")))
		Expect(p.path("d.yaml")).NotTo(BeAnExistingFile())
	},
		Entry("no source", "", "", "want a source", "-o", "d.yaml"),
		Entry("no output", "c.yaml", promptfooConfig, "-o is missing", "c.yaml"),
		Entry("an output that is no dataset", "c.yaml", promptfooConfig, "ends in .yaml", "c.yaml", "-o", "d.csv"),
		Entry("a missing source", "", "", "c.yaml cannot be read", "c.yaml", "-o", "d.yaml"),
		Entry("two configurations", "c.yaml", promptfooConfig, "a dataset is made of one", "c.yaml", "c.yaml", "-o", "d.yaml"),
		Entry("something else", "c.yaml", "a: 1\n", "c.yaml:1:1: it is neither", "c.yaml", "-o", "d.yaml"),
		Entry("a configuration without tests", "c.yaml", "prompts: [a]\nredteam: {plugins: [x]}\n", "c.yaml:2:1: no tests", "c.yaml", "-o", "d.yaml"),
		Entry("an unknown provider", "c.yaml", promptfooConfig, `unknown provider "opnai"`, "c.yaml", "-o", "d.yaml", "--provider", "opnai:x"),
		Entry("a data set of Langfuse", "", "", "not fetched", "langfuse:golden", "-o", "d.yaml"),
	)
})
