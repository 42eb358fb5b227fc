package dataset_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/policy"
	"github.com/echoeval/echoeval/harness/dataset"
)

var _ = Describe("layers", func() {
	const defaults = `defaults:
  input: default
  expected: {a: 1}
  timeout: 5s
  repeat: 2
  skip: why
  group: g
  workspace: w
  threshold: 0.5
  providers: [script:m]
  drop: [role-content]
  tags: [x]
  checks: [{contains: a}, {contains: b}, {regex: c, name: named}]
  invariants: [iteration-limit]
  vars: {a: 1, m: {x: 1, y: 2}}
  metadata: {a: 1}
  tool_context: {a: 1, b: 2}
  script: [{text: default}]
`
	one := func(item string) *dataset.Item {
		GinkgoHelper()
		return items(defaults+"items:\n- {id: i, "+item+"}\n", map[string]string{"datasets/w/x": "", "datasets/v/x": ""})[0]
	}

	It("inherit everything", func() {
		i := one("")
		Expect(inputText(i)).To(Equal("default"))
		Expect(json(i.Expected, i.Vars, i.Metadata, i.ToolContext)).To(Equal([]string{`{"a":1}`, `{"a":1,"m":{"x":1,"y":2}}`, `{"a":1}`, `{"a":1,"b":2}`}))
		Expect(i.Timeout).To(Equal(5 * time.Second))
		Expect(i.Repeat).To(Equal(2))
		Expect([]string{i.Skip, i.Group, i.Workspace}).To(Equal([]string{"why", "g", "datasets/w"}))
		Expect(*i.Threshold).To(Equal(0.5))
		Expect(i.Providers).To(Equal([]string{"script:m"}))
		Expect(i.Drop).To(Equal([]string{"role-content"}))
		Expect(i.Tags).To(Equal([]string{"x"}))
		Expect(checkTexts(i)).To(Equal([]string{`contains="a"`, `contains#2="b"`, `named="c"`}))
		Expect(i.Invariants).To(HaveLen(1))
		Expect(*i.Script[0].Text).To(Equal("default"))
	})

	It("replace values, merge mappings at every level, add up checks, invariants and tags", func() {
		i := one("input: own, expected: {b: 2}, timeout: 1s, repeat: 1, skip: own, group: h, workspace: v, threshold: 1, drop: [], tags: [a, x], checks: [{contains: d}], invariants: [role-content], vars: {b: 2, m: {y: 3, z: 4}}, metadata: {a: {b: 1}}, tool_context: {a: 3}, script: [{text: own}]")
		Expect(inputText(i)).To(Equal("own"))
		Expect(json(i.Expected, i.Vars, i.Metadata, i.ToolContext)).To(Equal([]string{`{"b":2}`, `{"a":1,"m":{"x":1,"y":3,"z":4},"b":2}`, `{"a":{"b":1}}`, `{"a":3,"b":2}`}))
		Expect(i.Timeout).To(Equal(time.Second))
		Expect(i.Repeat).To(Equal(1))
		Expect([]string{i.Skip, i.Group, i.Workspace}).To(Equal([]string{"own", "h", "datasets/v"}))
		Expect(*i.Threshold).To(Equal(1.0))
		Expect(i.Drop).To(BeEmpty())
		Expect(i.Tags).To(Equal([]string{"a", "x"}))
		Expect(checkTexts(i)).To(Equal([]string{`contains="a"`, `contains#2="b"`, `named="c"`, `contains#3="d"`}))
		Expect(i.Invariants).To(HaveLen(2))
		Expect(i.Script).To(HaveLen(1))
		Expect(*i.Script[0].Text).To(Equal("own"))
	})

	It("are taken back by null", func() {
		var keys []string
		for _, key := range []string{"expected", "timeout", "repeat", "skip", "group", "workspace", "threshold", "providers", "drop", "tags", "checks", "invariants", "metadata", "tool_context", "script"} {
			keys = append(keys, key+": null")
		}
		i := one(strings.Join(keys, ", ") + ", vars: {a: null, m: {x: null}, n: null}")
		Expect(i.Expected.IsZero() && i.Metadata.IsZero() && i.ToolContext.IsZero()).To(BeTrue())
		Expect(i.Vars.JSON()).To(Equal(`{"m":{"y":2},"n":null}`))
		Expect(i.Timeout).To(Equal(time.Minute))
		Expect(i.Repeat).To(Equal(1))
		Expect(i.Skip + i.Group + i.Workspace).To(BeEmpty())
		Expect(i.Threshold).To(BeNil())
		Expect(i.Providers).To(BeNil())
		Expect(i.Tags).To(BeEmpty())
		Expect(i.Drop).To(BeEmpty())
		Expect(i.Checks).To(BeEmpty())
		Expect(i.Invariants).To(BeEmpty())
		Expect(i.Script).To(BeEmpty())
		Expect(wrong(defaults+"items:\n- {id: i, input: null}\n", map[string]string{"datasets/w/x": ""})).To(Equal(`d:24:3: items[0]: key "input" is missing | add it: input: ...`))
	})

	It("drop what is inherited by name, and never what is the item's own", func() {
		i := one("drop: ['contains', named, iteration-limit, tool-call-pairing], checks: [{contains: d}]")
		Expect(checkTexts(i)).To(Equal([]string{`contains="b"`, `contains#2="d"`}))
		Expect(i.Invariants).To(BeEmpty())
		Expect(i.Drop).To(Equal([]string{"contains", "named", "iteration-limit", "tool-call-pairing"}))
		Expect(checkTexts(one("drop: ['contains#2']"))).To(Equal([]string{`contains="a"`, `named="c"`}))
	})

	It("do not share what one item changes", func() {
		list := items(defaults+"items:\n- {id: a, tags: [q]}\n- {id: b}\n", map[string]string{"datasets/w/x": ""})
		Expect(list[0].Tags).To(Equal([]string{"q", "x"}))
		Expect(list[1].Tags).To(Equal([]string{"x"}))
	})

	It("say once what is wrong with the defaults, however many items there are", func() {
		Expect(wrong("defaults: {timeout: 5, checks: [{contains: '{{expected}}'}, {contains: x, name: contains}], id: x}\nitems:\n- {id: a, input: b}\n- {id: b, input: b}\n")).To(Equal(strings.Join([]string{
			`d:5:21: defaults.timeout: want a duration, got a whole number | write the unit: 5s`,
			`d:5:47: defaults.checks[0].contains: {{expected}} is in neither vars, expected nor metadata | item "a" has none; give it one: vars: {expected: ...}; \{{ is the text {{`,
			`d:5:61: defaults.checks: a check named "contains" stands here a second time, first at d:5:33 | give it another name: name: ...`,
			`d:5:93: defaults: defaults have no id | give each item its own`}, "\n")))
	})

	It("refuse defaults that are no mapping", func() {
		Expect(wrong("defaults: [a]\nitems: [{id: a, input: b}]\n")).To(Equal("d:5:11: defaults: want a mapping with keys of items, got a list"))
	})
})

var _ = Describe("templates", func() {
	DescribeTable("are rendered", func(input, want string) {
		i := items("defaults: {vars: {who: \"Ana {{n}}\", n: 5, list: [1, a], a.b: dotted, m: {x: {y: deep}}, yes: true, nothing: null}}\nitems:\n- {id: i, expected: {city: Rome}, metadata: {n: 6, source: book, list: 1}, input: [{text: " + input + "}]}\n")[0]
		Expect(inputText(i)).To(Equal(want))
	},
		Entry("a value that looks like a template is put in as it is", `"Hi {{who}}!"`, "Hi Ana {{n}}!"),
		Entry("with spaces", `"Hi {{ n }}"`, "Hi 5"),
		Entry("vars before metadata", `"{{n}} {{source}}"`, "5 book"),
		Entry("a number alone becomes text where text is wanted", `"{{n}}"`, "5"),
		Entry("a boolean alone", `"{{yes}}"`, "true"),
		Entry("lists as JSON", `"= {{list}}"`, `= [1,"a"]`),
		Entry("mappings as JSON", `"= {{expected}}"`, `= {"city":"Rome"}`),
		Entry("null", `"= {{nothing}}"`, "= null"),
		Entry("paths", `"{{expected.city}} {{vars.m.x.y}} {{m.x.y}} {{metadata.n}} {{a.b}}"`, "Rome deep deep 6 dotted"),
		Entry("the text {{", `'\{{n}} {{n}} \{{'`, "{{n}} 5 {{"),
		Entry("single braces and a lone end", `"{n} }} {"`, "{n} }} {"),
	)

	It("keep the type where they stand alone, in checks, invariants, scripts and tool_context", func() {
		i := items(`defaults:
  vars: {n: 5, list: [1, {a: b}], s: x}
  checks: [{equals: "{{list}}"}, {contains: ["{{n}}", "n={{n}}"]}]
  invariants: [{use: iteration-limit, max: "{{n}}"}]
  tool_context: {tenant: "t-{{s}}", n: "{{n}}"}
  script: [{call: {name: f, args: {n: "{{n}}", s: "{{s}}!"}}}, {text: "{{n}}"}]
items:
- {id: i, input: x}
`)[0]
		Expect(checkTexts(i)).To(Equal([]string{`equals=[1,{"a":"b"}]`, `contains=[5,"n=5"]`}))
		Expect(i.Invariants[0].Params.JSON()).To(Equal(`{"max":5}`))
		Expect(i.ToolContext.JSON()).To(Equal(`{"tenant":"t-x","n":5}`))
		Expect(i.Script[0].Calls[0].Args.JSON()).To(Equal(`{"n":5,"s":"x!"}`))
		Expect(*i.Script[1].Text).To(Equal("5"))
	})

	It("are not rendered where the values come from, nor in names", func() {
		i := items("items:\n- {id: \"{{x}}\", input: x, expected: \"{{x}}\", vars: {a: \"{{x}}\"}, metadata: {b: \"{{x}}\"}, tags: [\"{{x}}\"], group: \"{{x}}\", skip: \"{{x}}\"}\n")[0]
		Expect([]string{i.ID, i.Expected.Text(), i.Vars.Get("a").Text(), i.Metadata.Get("b").Text(), i.Tags[0], i.Group, i.Skip}).To(HaveEach("{{x}}"))
	})

	It("never render the texts of .jsonl, but fill the defaults with its values", func() {
		i := items("defaults: {checks: [{contains: \"{{expected}} {{q}}\"}], tool_context: {t: \"{{q}}\"}}\nitems: q.jsonl\n", map[string]string{
			"datasets/q.jsonl": `{"id":"a","input":"Hi {{nobody}} \\{{","expected":"{{x}}","vars":{"q":"{{q}}"},"checks":[{"regex":"{{y}}"}],"invariants":[{"use":"iteration-limit","max":"{{z}}"}],"script":[{"text":"{{s}}"}],"tool_context":{"u":"{{u}}"}}`})[0]
		Expect(inputText(i)).To(Equal(`Hi {{nobody}} \{{`))
		Expect(checkTexts(i)).To(Equal([]string{`contains="{{x}} {{q}}"`, `regex="{{y}}"`}))
		Expect(i.Invariants[0].Params.JSON()).To(Equal(`{"max":"{{z}}"}`))
		Expect(i.ToolContext.JSON()).To(Equal(`{"t":"{{q}}","u":"{{u}}"}`))
		Expect(*i.Script[0].Text).To(Equal("{{s}}"))
	})

	It("render an input of the defaults with each item's values, image paths included", func() {
		list := items("defaults: {input: [{text: \"{{q}}?\"}, {image: \"{{file}}.png\"}]}\nitems: q.jsonl\n", map[string]string{"datasets/q.jsonl": `{"id":"a","vars":{"q":"one","file":"x"}}` + "\n" + `{"id":"b","vars":{"q":"two","file":"y"}}`, "datasets/x.png": png, "datasets/y.png": png + "y"})
		Expect(inputText(list[0]) + inputText(list[1])).To(Equal("one?two?"))
		Expect(list[0].Input[1]).NotTo(Equal(list[1].Input[1]))
	})

	DescribeTable("that are wrong are named at the name itself", func(text, want string) {
		Expect(wrong("items:\n- id: i\n  vars: {clinic: x, é: y}\n  input: " + text + "\n")).To(Equal(want))
	},
		Entry(nil, `"é {{clinc}}"`, `d:8:15: items[0].input: {{clinc}} is in neither vars, expected nor metadata | did you mean {{clinic}}?; \{{ is the text {{`),
		Entry("all of them, repeated ones too", `'{{a1}} \{{x}} {{ a1 }} {{a1}}'`, strings.Join([]string{
			`d:8:13: items[0].input: {{a1}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`,
			`d:8:28: items[0].input: {{a1}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`,
			`d:8:36: items[0].input: {{a1}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`}, "\n")),
		Entry("in a block text", "|\n    one\n    two {{zzz}}\n", `d:10:11: items[0].input: {{zzz}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`),
		Entry("where the file writes it otherwise", `"\u007b{zzz}}"`, `d:8:10: items[0].input: {{zzz}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`),
		Entry("without end", `"a {{clinic}} {{clinic"`, `d:8:24: items[0].input: {{ without }} | write \{{ where the text {{ is meant`),
		Entry("empty", `"{{}}"`, `d:8:11: items[0].input: {{}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`),
		Entry("expected without one", `"{{expected}}"`, `d:8:13: items[0].input: {{expected}} is in neither vars, expected nor metadata | item "i" has clinic, é; \{{ is the text {{`),
	)
})

var _ = Describe("hashes", func() {
	hashes := func(item string, files ...map[string]string) (string, string, string) {
		GinkgoHelper()
		all := map[string]string{"datasets/d.yaml": head + "items:\n- " + item + "\n", "datasets/x.png": png, "datasets/w/a": ""}
		for _, f := range files {
			for name, text := range f {
				all[name] = text
			}
		}
		d, err := load(project(all))
		Expect(err).NotTo(HaveOccurred())
		i := collect(d)[0]
		return i.ItemHash, i.ChecksHash, d.Hash
	}
	const base = "{id: a, input: [{text: q}, {image: x.png}], vars: {a: 1, b: 2}, tool_context: {t: u}, checks: [{contains: x}], expected: e, script: [{text: t}]}"

	DescribeTable("change with what they cover and nothing else", func(item string, asked, judged, whole bool) {
		a1, j1, w1 := hashes(base)
		a2, j2, w2 := hashes(item)
		Expect([]bool{a1 != a2, j1 != j2, w1 != w2}).To(Equal([]bool{asked, judged, whole}))
	},
		Entry("other order and notation", "{script: [{text: 't'}], expected: e, checks: [{contains: \"x\"}], tool_context: {t: u}, vars: {b: 2, a: 1}, input: [{text: q}, {image: ./x.png}], id: a}", false, false, false),
		Entry("text", strings.Replace(base, "text: q", "text: r", 1), true, false, true),
		Entry("vars", strings.Replace(base, "a: 1", "a: 2", 1), true, false, true),
		Entry("the type of a var", strings.Replace(base, "a: 1", "a: '1'", 1), true, false, true),
		Entry("tool_context names", strings.Replace(base, "t: u", "v: u", 1), true, false, true),
		Entry("script", strings.Replace(base, "text: t}", "text: v}", 1), true, false, true),
		Entry("check", strings.Replace(base, "contains: x", "contains: y", 1), false, true, true),
		Entry("negation", strings.Replace(base, "{contains: x}", "{not: {contains: x}}", 1), false, true, true),
		Entry("weight", strings.Replace(base, "contains: x", "contains: x, weight: 2", 1), false, true, true),
		Entry("expected", strings.Replace(base, "expected: e", "expected: f", 1), false, true, true),
		Entry("threshold", strings.Replace(base, "id: a", "id: a, threshold: 1", 1), false, true, true),
		Entry("invariants", strings.Replace(base, "id: a", "id: a, invariants: [role-content]", 1), false, true, true),
		Entry("drop", strings.Replace(base, "id: a", "id: a, drop: [role-content]", 1), false, true, true),
		Entry("id", strings.Replace(base, "id: a", "id: b", 1), false, false, true),
		Entry("tags", strings.Replace(base, "id: a", "id: a, tags: [x]", 1), false, false, true),
		Entry("repeat", strings.Replace(base, "id: a", "id: a, repeat: 2", 1), false, false, true),
		Entry("workspace", strings.Replace(base, "id: a", "id: a, workspace: w", 1), false, false, true),
	)

	It("cover the bytes of images, not their names", func() {
		a, _, _ := hashes(base)
		b, _, _ := hashes(base, map[string]string{"datasets/x.png": png + "!"})
		c, _, _ := hashes(strings.Replace(base, "x.png", "y.png", 1), map[string]string{"datasets/y.png": png})
		Expect(b).NotTo(Equal(a))
		Expect(c).To(Equal(a))
	})

	It("of a dataset cover the agent's file and its other keys, but no description", func() {
		hash := func(more, agent string) string {
			d, err := load(project(map[string]string{"datasets/d.yaml": strings.Replace(head, "agent: {task: {description: x}}", "agent: a.yaml", 1) + "items: [{id: a, input: b}]\n" + more, "datasets/a.yaml": agent}))
			Expect(err).NotTo(HaveOccurred())
			return d.Hash
		}
		first := hash("", "task: {description: x}")
		Expect(hash("description: new\n", "# comment\ntask: {\"description\": x}")).To(Equal(first))
		Expect(hash("", "task: {description: y}")).NotTo(Equal(first))
		Expect(hash("gates: {pass_rate: '>= 1'}\n", "task: {description: x}")).NotTo(Equal(first))
		Expect(hash("replay: {allow_leftover: true}\n", "task: {description: x}")).NotTo(Equal(first))
	})

	It("stay what they are from version to version", func() {
		a, j, w := hashes("{id: a, input: b, checks: [{contains: c}]}")
		Expect(fmt.Sprintln(a, j, w)).To(Equal("1c2fa97565e90ba5 de484c0b3e04bf38 b1a69c0136179bd5\n"))
	})
})

var _ = Describe("policies", func() {
	files := map[string]string{"lib.yaml": "version: 1\npolicies: {public: {tools: {profile: minimal, deny: [exec]}, security: {profile: daemon}, hardened: true}}\n"}
	of := func(rest string) *dataset.Item {
		GinkgoHelper()
		return collect(opened(with(files, "datasets/d.yaml", head+"use: [../lib.yaml]\n"+rest)))[0]
	}

	It("are laid upon each other by key, a name standing for its mapping", func() {
		i := of("defaults: {policy: public}\nitems: [{id: a, input: b, policy: {tools: {profile: null, also_allow: [x], deny: [y]}}}]\noverrides: [{match: 'true', policy: {security: {profile: public_gateway}}}]\n")
		Expect(i.Policy.Policy).To(Equal(policy.Policy{AlsoAllow: []string{"x"}, Deny: []string{"y"}, Security: "public_gateway", Hardened: true}))
		var names []string
		for _, n := range i.Policy.Names {
			names = append(names, n.Name+" "+n.Pos.String())
		}
		Expect(names).To(Equal([]string{"x datasets/d.yaml:7:72", "y datasets/d.yaml:7:83"}))
	})

	It("are taken back by null, and are part of the item's hash", func() {
		plain := of("items: [{id: a, input: b}]\n")
		Expect(plain.Policy).To(Equal(dataset.Policy{}))
		taken := of("defaults: {policy: public}\nitems: [{id: a, input: b, policy: null}]\n")
		Expect(taken.Policy).To(Equal(dataset.Policy{}))
		Expect(taken.ItemHash).To(Equal(plain.ItemHash))
		named := of("items: [{id: a, input: b, policy: public}]\n")
		Expect(named.ItemHash).NotTo(Equal(plain.ItemHash))
		written := of("items: [{id: a, input: b, policy: {hardened: true, security: {profile: daemon}, tools: {deny: [exec], profile: minimal}}}]\n")
		Expect(written.ItemHash).To(Equal(named.ItemHash))
		Expect(written.ChecksHash).To(Equal(plain.ChecksHash))
	})

	It("are looked at in their library", func() {
		_, wrong := open(with(files, "lib.yaml", "version: 1\npolicies: {a: {tool: {}}, b: 1}\n", "datasets/d.yaml", head+"use: [../lib.yaml]\nitems: [{id: a, input: b}]\n"))
		Expect(wrong).To(Equal("lib.yaml:2:16: policies.a: unknown key \"tool\" | did you mean \"tools\"?\nlib.yaml:2:30: policies.b: want a mapping, got a whole number"))
	})
})
