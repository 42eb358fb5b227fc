package agent_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
)

var _ = Describe("tools that an agent file describes", func() {
	decode := func(tools string) (agent.Config, string) {
		GinkgoHelper()
		n, err := strict.Parse("agents/a.yaml", []byte("task: {description: x}\ntools: "+tools+"\n"))
		Expect(err).NotTo(HaveOccurred())
		var p strict.Problems
		c := agent.Decode(n, &p)
		return c, strings.TrimSuffix(strings.NewReplacer("error: ", "", "\nhint: ", " | ").Replace(failure.Render(p.Err())), "\n")
	}

	It("stand beside those that are named", func() {
		c, wrong := decode("[read_file, {name: weather, description: Of today, parameters: {type: object, properties: {city: {type: string}}}, effect: read, scope: item, command: [./weather, -v]}, {name: contacts, description: c}]")
		Expect(wrong).To(BeEmpty())
		Expect(c.Tools).To(Equal([]string{"read_file", "weather", "contacts"}))
		Expect(c.CommandTools).To(HaveLen(2))
		w := c.CommandTools[0]
		Expect([]string{w.Name, w.Description, w.Scope, w.Pos.File}).To(Equal([]string{"weather", "Of today", "item", "agents/a.yaml"}))
		Expect(w.Effect).To(Equal(tool.Read))
		Expect(w.Command).To(Equal([]string{"./weather", "-v"}))
		Expect(w.Parameters.JSON()).To(Equal(`{"type":"object","properties":{"city":{"type":"string"}}}`))
		m := c.CommandTools[1]
		Expect(m.Command).To(BeNil())
		Expect(m.Effect).To(Equal(tool.Write))
		Expect(m.Scope).To(Equal("item"))
		Expect(m.Parameters.JSON()).To(Equal(`{"type":"object"}`))
	})

	DescribeTable("are refused where they are wrong", func(tools, want string) {
		_, wrong := decode(tools)
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "[5]", "agents/a.yaml:2:9: tools[0]: want a string with the name of a tool, or {name: ..., description: ..., command: [...]}, got a whole number | quote it: \"5\""),
		Entry(nil, "[{name: a}]", `agents/a.yaml:2:9: tools[0]: key "description" is missing | add it: description: ...`),
		Entry(nil, "[{name: '', description: x}]", "agents/a.yaml:2:16: tools[0].name: a name is empty"),
		Entry(nil, "[a, {name: a, description: x}]", `agents/a.yaml:2:12: tools[1]: tool "a" stands here a second time, first at agents/a.yaml:2:9 | remove one of the two`),
		Entry(nil, "[{name: a, description: x, effect: reads}]", `agents/a.yaml:2:43: tools[0].effect: unknown value "reads" | did you mean "read"?`),
		Entry(nil, "[{name: a, description: x, parameters: {type: string}}]", "agents/a.yaml:2:54: tools[0].parameters.type: the arguments of a tool are an object | write type: object"),
		Entry(nil, "[{name: a, description: x, scope: run}]", "agents/a.yaml:2:42: tools[0].scope: a process that lives as long as the run is not in this version | leave it out: each call starts the program"),
		Entry(nil, "[{name: a, description: x, command: []}]", "agents/a.yaml:2:44: tools[0].command: the command is empty | write the program first: [./weather]"),
		Entry(nil, "[{name: a, description: x, comand: [x]}]", `agents/a.yaml:2:35: tools[0]: unknown key "comand" | did you mean "command"?`),
	)

	It("are nil where the file has no list, and empty where it is empty", func() {
		n, err := strict.Parse("a.yaml", []byte("task: {description: x}\n"))
		Expect(err).NotTo(HaveOccurred())
		var p strict.Problems
		Expect(agent.Decode(n, &p).Tools).To(BeNil())
		c, _ := decode("[]")
		Expect(c.Tools).To(Equal([]string{}))
	})
})
