//go:build unix

package main_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// governed is a dataset whose agent reads and writes files and has a tool of its own.
const governed = `version: 1
name: governed
agent:
  task: {description: Answer.}
  tools: [read_file, write_file, {name: weather, description: Weather., effect: read}]
providers: [{provider: script, id: script}]
defaults: {workspace: desk, tool_mocks: {weather: sunny}}
items:
  - id: one
    input: Write it down
    script: [{call: {name: write_file, args: {path: a.txt, content: x}}}, {text: done}]
    checks: [{contains: done}]
`

func governedProject(policy string) *project {
	GinkgoHelper()
	p := emptyProject()
	p.write("desk/README.md", "A desk.\n")
	p.write("d.yaml", strings.Replace(governed, "    checks:", policy+"    checks:", 1))
	return p
}

var _ = Describe("a policy", func() {
	It("keeps a tool from being offered and from running, and says so nowhere where it denies nothing", func() {
		p := governedProject("")
		p.succeed("run", "d.yaml", "--mode", "live")
		free := p.read(p.last() + "/traces/001.jsonl")
		Expect(free).To(ContainSubstring("write_file"))
		hash := p.only().ItemHash
		Expect(p.succeed("show", p.last()).all()).NotTo(ContainSubstring("security profile"))

		p = governedProject("    policy: {tools: {deny: [write_file]}}\n")
		o := p.run("run", "d.yaml", "--mode", "live")
		Expect(o.code).To(Equal(1), "the model called what it was not shown\n%s", o)
		Expect(o.all()).To(ContainSubstring("visible-tools-only"))
		trace := p.read(p.last() + "/traces/001.jsonl")
		Expect(trace).To(ContainSubstring("there is no tool"))
		Expect(trace).To(ContainSubstring(`available: read_file, weather`))
		Expect(p.only().ItemHash).NotTo(Equal(hash), "what is given has changed")
	})

	It("comes from a library by name, with the layers of any key", func() {
		p := governedProject("    policy: {tools: {also_allow: [write_file]}}\n")
		p.edit("d.yaml", "defaults: {", "use: [lib.yaml]\ndefaults: {policy: public, ")
		p.write("lib.yaml", "version: 1\npolicies:\n  public:\n    tools: {profile: coding}\n    security: {profile: public_gateway}\n")
		o := p.succeed("validate", "d.yaml", "--item", "one")
		Expect(o.stdout).To(ContainSubstring("policy:\n  tools:\n    profile: \"coding\"  # lib.yaml:4:22 defaults\n    also_allow: [\"write_file\"]  # d.yaml:13:34 item\n  security:\n    profile: \"public_gateway\"  # lib.yaml:5:25 defaults\n"))
		o = p.succeed("validate", "d.yaml")
		Expect(o.stderr).To(Equal("warning: d.yaml:13:13: tool write_file is allowed by name, although the security profile public_gateway denies it\nhint: name it under deny, or leave it out of allow and also_allow\n"))
		o = p.succeed("run", "d.yaml", "--mode", "live")
		Expect(o.stdout).To(ContainSubstring("although the security profile public_gateway denies it"))
		trace := p.read(p.last() + "/traces/001.jsonl")
		Expect(trace).To(ContainSubstring("write_file"))
		Expect(trace).NotTo(ContainSubstring(`"weather"`), "the profile coding holds no tool of the project's own")
		for _, w := range p.summary(p.last()).Warnings {
			Expect(w.Code).To(Equal("policy-lifted"))
		}
	})

	It("is warned of once where it lets pass what nothing is known of", func() {
		p := governedProject("    policy: {security: {profile: daemon}}\n")
		p.write("d.yaml", p.read("d.yaml")+strings.ReplaceAll(p.read("d.yaml")[strings.Index(p.read("d.yaml"), "  - id: one"):], "id: one", "id: two"))
		o := p.succeed("validate", "d.yaml")
		Expect(o.stderr).To(Equal("warning: d.yaml:12:13: the security profile daemon knows nothing of what these tools do, and lets them pass: weather\nhint: name under deny what the agent must not use\n"))
		o = p.succeed("run", "d.yaml", "--mode", "live")
		Expect(strings.Count(o.stdout, "lets them pass: weather")).To(Equal(1))
		p.write("d.yaml", strings.ReplaceAll(p.read("d.yaml"), "{security:", "{hardened: true, security:"))
		Expect(p.succeed("validate", "d.yaml").stderr).To(BeEmpty())
	})

	DescribeTable("that is wrong is code 2, with its place", func(policy, at, message string) {
		p := governedProject("    policy: " + policy + "\n")
		o := p.expect(2, "validate", "d.yaml")
		Expect(o.stderr).To(And(HavePrefix("error: d.yaml:12:"+at+": "), ContainSubstring(message)))
		Expect(strings.Count(o.stderr, "error: ")).To(Equal(1), o.stderr)
	},
		Entry("a name without a library", "public", "13", `no library defines a policy "public"`),
		Entry("a list", "[public]", "13", "want the name of a library's policy, or a mapping"),
		Entry("an unknown profile", "{tools: {profile: codin}}", "31", `unknown value "codin"`),
		Entry("an unknown security profile", "{security: {profile: deamon}}", "34", "did you mean \"daemon\"?"),
		Entry("an unknown key", "{tool: {profile: coding}}", "14", `did you mean "tools"?`),
		Entry("a tool that there is not", "{tools: {deny: [wirte_file]}}", "29", `did you mean "write_file"?`),
		Entry("a tool without a name", "{tools: {deny: ['']}}", "29", "the name of a tool is empty"),
		Entry("nothing allowed", "{tools: {allow: []}}", "29", "no tool is allowed by an empty list"),
	)

	It("that denies a tool which a check looks for is code 2", func() {
		p := governedProject("    policy: {tools: {deny: [write_file]}}\n")
		p.edit("d.yaml", "checks: [{contains: done}]", "checks: [{tool_calls: {match: subset, calls: [{name: write_file}]}}]")
		Expect(p.expect(2, "run", "d.yaml").stderr).To(And(HavePrefix("error: d.yaml:13:"), ContainSubstring("write_file")))
	})

	It("names tools of later versions too", func() {
		p := governedProject("    policy: {tools: {deny: [exec, web_fetch]}}\n")
		p.succeed("run", "d.yaml", "--mode", "live")
	})
})

var _ = Describe("approvals and answers", func() {
	It("are read and layered, count as what is given, and say that nobody asks", func() {
		p := governedProject("")
		p.succeed("run", "d.yaml", "--mode", "live")
		before := p.only()
		p.edit("d.yaml", "defaults: {", "defaults: {answers: {weather: rain, read_file: [a, b]}, approvals: [{tool: read_file, answer: allow}], ")
		p.edit("d.yaml", "    checks:", "    approvals: [{tool: write_file, answer: deny, scope: session}]\n    answers: {weather: snow}\n    checks:")
		o := p.succeed("validate", "d.yaml", "--item", "one")
		Expect(o.stdout).To(ContainSubstring("approvals: [{\"tool\":\"write_file\",\"answer\":\"deny\",\"scope\":\"session\"}]  # d.yaml:12:16 item\nanswers:\n  weather: \"snow\"  # d.yaml:13:24 item\n  read_file: [\"a\",\"b\"]  # d.yaml:7:"))
		o = p.succeed("run", "d.yaml", "--mode", "live")
		Expect(p.only().verdict()).To(Equal("pass"))
		Expect(p.only().ItemHash).NotTo(Equal(before.ItemHash))
		Expect(o.stdout).To(ContainSubstring("1 item has approvals or answers, and no tool of the agent asks"))
		var codes []string
		for _, w := range p.summary(p.last()).Warnings {
			codes = append(codes, w.Code)
		}
		Expect(codes).To(Equal([]string{"nobody-asks"}))
	})

	DescribeTable("that name a tool which the agent does not have are code 2", func(key, at, message string) {
		p := governedProject("    " + key + "\n")
		o := p.expect(2, "run", "d.yaml")
		Expect(o.stderr).To(And(HavePrefix("error: d.yaml:12:"+at+": "), ContainSubstring(message), ContainSubstring("hint: ")))
	},
		Entry("an approval", "approvals: [{tool: exec, answer: deny}]", "24", `approvals: the agent has no tool "exec"`),
		Entry("an answer", "answers: {clarify: at nine}", "24", `answers: the agent has no tool "clarify"`),
		Entry("a misspelt one", "answers: {wether: at nine}", "23", `did you mean "weather"?`),
		Entry("an answer that is none", "approvals: [{tool: read_file, answer: maybe}]", "43", `unknown value "maybe"`),
		Entry("a scope that is none", "approvals: [{tool: read_file, answer: deny, scope: ever}]", "56", `unknown value "ever"`),
		Entry("no answers", "answers: {weather: []}", "24", "the list of answers is empty"),
	)
})

var _ = Describe("a provider of role judge", func() {
	It("is no column, and is checked like one", func() {
		p := governedProject("")
		p.edit("d.yaml", "providers: [", "providers: [{id: judge, provider: openai, model: gpt-4o, role: judge}, ")
		p.env = []string{"OPENAI_API_KEY=sk-" + strings.Repeat("judge", 8)} // it is never used: no check asks a judge
		Expect(p.succeed("validate", "d.yaml").stdout).To(ContainSubstring("1 item on 1 provider"))
		p.succeed("run", "d.yaml", "--mode", "live")
		Expect(p.only().Provider).To(Equal("script"))
		p.edit("d.yaml", "role: judge", "role: jugde")
		Expect(p.expect(2, "validate", "d.yaml").stderr).To(And(HavePrefix("error: d.yaml:6:"), ContainSubstring(`did you mean "judge"?`)))
		p.edit("d.yaml", "role: jugde", "role: judge")
		p.edit("d.yaml", "provider: openai", "provider: opnai")
		Expect(p.expect(2, "validate", "d.yaml").stderr).To(ContainSubstring(`did you mean "openai"?`))
	})
})

var _ = Describe("replay.normalize", func() {
	DescribeTable("that is wrong is code 2 once, before anything runs", func(entry, at, message string) {
		p := governedProject("")
		p.edit("d.yaml", "items:\n", "replay: {normalize: ["+entry+"]}\nitems:\n  - {id: more, input: x, script: [{text: x}], checks: [{contains: x}]}\n")
		for _, args := range [][]string{{"validate", "d.yaml"}, {"run", "d.yaml"}, {"run", "d.yaml", "--mode", "live"}} {
			o := p.expect(2, args...)
			Expect(o.stderr).To(And(HavePrefix("error: d.yaml:8:"+at+": replay.normalize[0]"), ContainSubstring(message)))
			Expect(strings.Count(o.stderr, "error: ")).To(Equal(1), o.stderr)
		}
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	},
		Entry("an expression that is none", `{in: system, regex: "(", as: x}`, "42", "missing closing )"),
		Entry("an expression that matches nothing", `{in: system, regex: "x*", as: x}`, "42", "matches the empty text"),
		Entry("a name with a blank", `{in: system, regex: x, as: "a b"}`, "49", "cannot stand in a placeholder"),
		Entry("no name", `{in: system, regex: x, as: ""}`, "49", "cannot stand in a placeholder"),
		Entry("a part that is none", `{in: sytem, regex: x, as: y}`, "27", `did you mean "system"?`),
	)
})
