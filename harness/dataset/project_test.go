package dataset_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

// open opens and validates datasets/d.yaml of files, with settings of the command line.
func open(files map[string]string, set ...string) (*dataset.Dataset, string) {
	GinkgoHelper()
	dir := project(files)
	o := options(dir)
	o.Set = set
	o.Drift = []string{"tool-result", "system-prompt"}
	d, err := dataset.Open("datasets/d.yaml", o)
	if err == nil {
		err = d.Validate(nil)
	}
	if err != nil {
		return nil, problems(err)
	}
	return d, ""
}

func opened(files map[string]string, set ...string) *dataset.Dataset {
	GinkgoHelper()
	d, wrong := open(files, set...)
	Expect(wrong).To(BeEmpty())
	return d
}

// with adds files to those of a project.
func with(files map[string]string, more ...string) map[string]string {
	all := maps.Clone(files)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

const library = `version: 1
checks:
  polite: {contains: "please, {{name}}", threshold: 0.7}
  short: {not: {regex: "{{long}}"}}
invariants:
  loops: {use: iteration-limit, max: 3, severity: warn}
  exec-rule: {never: {call: [exec]}, severity: error, why: SEC-12}
policies:
  public: {tools: {profile: minimal}}
providers:
  - {id: haiku, provider: openai, model: m, temperature: 0, agent: agents/b.yaml}
`

var _ = Describe("a project", func() {
	read := func(files map[string]string) (*dataset.Project, string) {
		dir := project(files)
		o := options(dir)
		o.Drift = []string{"tool-result"}
		p, err := dataset.OpenProject(dir, o)
		if err != nil {
			return nil, problems(err)
		}
		return p, ""
	}

	It("has defaults without a file, with an empty one and with one of comments", func() {
		for _, text := range []string{"", "\ufeff# only\n\n  # comments\n"} {
			p, wrong := read(map[string]string{"echoeval.yaml": text})
			Expect(wrong).To(BeEmpty())
			Expect(p.File).To(Equal("echoeval.yaml"))
			Expect([]string{p.Cassettes, p.Baselines, p.Prices}).To(Equal([]string{"fixtures/cassettes", "baselines", ""}))
		}
		dir := GinkgoT().TempDir()
		p, err := dataset.OpenProject(dir, dataset.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(p.File).To(BeEmpty())
	})

	It("names datasets, folders, detectors and drift", func() {
		p, wrong := read(map[string]string{
			"echoeval.yaml":           "version: 1\ndatasets: ['services/*/evals/*.yaml', services/a/evals/a.yaml]\ncassettes: x/c\nbaselines: y\nprices: p.yaml\nredact: [{name: patient, regex: 'P-[0-9]{8}'}]\nredact_allow: [{regex: sk-example, why: fake}]\nreplay: {drift: {tool-result: warn}}\n",
			"services/b/evals/b.yaml": "", "services/a/evals/a.yaml": "", "services/a/evals/a.txt": "",
		})
		Expect(wrong).To(BeEmpty())
		Expect(p.Datasets).To(Equal([]string{"services/a/evals/a.yaml", "services/b/evals/b.yaml"}))
		Expect([]string{p.Cassettes, p.Baselines, p.Prices}).To(Equal([]string{"x/c", "y", "p.yaml"}))
		Expect(p.Redact).To(HaveLen(1))
		Expect(p.Redact[0].Regex.MatchString("P-12345678")).To(BeTrue())
		Expect(p.RedactAllow[0].Why).To(Equal("fake"))
		Expect(p.Drift).To(Equal(map[string]string{"tool-result": "warn"}))
	})

	DescribeTable("says what is wrong with its file", func(text, want string) {
		_, wrong := read(map[string]string{"echoeval.yaml": text, "datasets/d.yaml": ""})
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "a", "echoeval.yaml:1:1: want a mapping with the keys of a project, got a string"),
		Entry(nil, "datasets: []\n", `echoeval.yaml:1:1: key "version" is missing | add it: version: ...`),
		Entry(nil, "version: 2\n", "echoeval.yaml:1:10: version: this version of the program reads version 1 | write version: 1"),
		Entry(nil, "version: 1\ndatasets: [no.yaml, 'n*.yaml', echoeval.yaml, /a, 'x[']\n", "echoeval.yaml:2:12: dataset file no.yaml does not exist | the path is relative to echoeval.yaml\n"+
			"echoeval.yaml:2:21: datasets[1]: no file matches n*.yaml | the pattern is relative to the file that names it\n"+
			"echoeval.yaml:2:32: datasets[2]: the project file is no dataset | name datasets\n"+
			"echoeval.yaml:2:47: datasets[3]: the path is absolute | write it relative to the file that names it\n"+
			"echoeval.yaml:2:51: datasets[4]: \"x[\" is no pattern | * and ? stand for characters of one name, [a-z] for one of several"),
		Entry(nil, "version: 1\nredact: [{name: 'a b', regex: '('}, {name: c, regex: 'x*'}]\n", "echoeval.yaml:2:17: redact[0].name: \"a b\" is no name | write letters, digits, dot, underscore and hyphen\n"+
			"echoeval.yaml:2:31: redact[0].regex: error parsing regexp: missing closing ): `(` | RE2 has no look-around and no back references\n"+
			"echoeval.yaml:2:54: redact[1].regex: \"x*\" matches the empty text | write what must be there"),
		Entry(nil, "version: 1\nreplay: {drift: {tool-resul: warn, tool-result: wrn}}\n", "echoeval.yaml:2:18: replay.drift: unknown class of drift \"tool-resul\" | did you mean \"tool-result\"?\n"+
			"echoeval.yaml:2:49: replay.drift.tool-result: unknown action \"wrn\" | did you mean \"warn\"?"),
		Entry(nil, "version: 1\ndefaults: {timeout: 5, id: x}\n", "echoeval.yaml:2:21: defaults.timeout: want a duration, got a whole number | write the unit: 5s\nechoeval.yaml:2:24: defaults: defaults have no id | give each item its own"),
		Entry(nil, "version: 1\nuse: [no.yaml]\n", "echoeval.yaml:2:7: library no.yaml does not exist | the path is relative to the file that names it"),
	)

	It("is the lowest layer of its datasets", func() {
		d := opened(map[string]string{
			"echoeval.yaml":     "version: 1\nuse: [lib/*.yaml]\ndefaults: {timeout: 5s, tags: [p], vars: {name: Ada, a: 1}, checks: [polite], invariants: [loops], workspace: w}\nreplay: {drift: {tool-result: warn, system-prompt: fail}}\n",
			"lib/l.yaml":        library,
			"lib/l_test.yaml":   "not a library",
			"lib/agents/b.yaml": "task: {description: b}\n",
			"w/x":               "",
			"datasets/d.yaml":   head + "defaults: {tags: [d], vars: {a: 2, long: x}, checks: [{contains: y}]}\nreplay: {drift: {system-prompt: serve}}\nitems: [{id: a, input: b, tags: [i], checks: [{use: short, weight: 2}]}, {id: b, input: b, timeout: null, drop: [polite, loops], workspace: null}]\n",
		})
		list := collect(d)
		Expect(list[0].Timeout).To(Equal(5 * time.Second))
		Expect(list[0].Tags).To(Equal([]string{"d", "i", "p"}))
		Expect(list[0].Vars.JSON()).To(Equal(`{"name":"Ada","a":2,"long":"x"}`))
		Expect(checkTexts(list[0])).To(Equal([]string{`polite="please, Ada"`, `contains="y"`, `short="x"`}))
		Expect(*list[0].Checks[0].Threshold).To(Equal(0.7))
		Expect(list[0].Checks[0].Pos.String()).To(Equal("lib/l.yaml:3:3"))
		Expect(list[0].Checks[2].Not).To(BeTrue())
		Expect(*list[0].Checks[2].Weight).To(Equal(2.0))
		Expect(list[0].Workspace).To(Equal("w"))
		Expect(list[0].Invariants).To(HaveLen(1))
		Expect(list[0].Invariants[0].Name).To(Equal("iteration-limit"))
		Expect(list[0].Invariants[0].Severity).To(Equal("warn"))
		Expect(list[0].Invariants[0].Params.JSON()).To(Equal(`{"max":3}`))
		Expect(list[1].Timeout).To(Equal(time.Minute))
		Expect(checkTexts(list[1])).To(Equal([]string{`contains="y"`}))
		Expect(list[1].Invariants).To(BeEmpty())
		Expect(list[1].Workspace).To(BeEmpty())
		Expect(d.Drift).To(Equal(map[string]string{"tool-result": "warn", "system-prompt": "serve"}))
		Expect(d.Project.File).To(Equal("echoeval.yaml"))
	})
})

var _ = Describe("libraries", func() {
	files := map[string]string{"lib.yaml": library, "agents/b.yaml": "task: {description: b}\n"}
	const use = "use: [../lib.yaml]\n"

	It("give names to providers, with their own agents", func() {
		d := opened(with(files, "datasets/d.yaml", "version: 1\nname: d\nproviders: [haiku]\n"+use+"items: [{id: a, input: b, providers: [haiku]}]\n"))
		Expect(d.Providers).To(HaveLen(1))
		Expect([]string{d.Providers[0].ID, d.Providers[0].Vendor, d.Providers[0].Model, d.Providers[0].Agent.File}).To(Equal([]string{"haiku", "openai", "m", "agents/b.yaml"}))
		Expect(d.Providers[0].Pos.String()).To(Equal("datasets/d.yaml:3:13"))
		other := opened(with(files, "lib.yaml", strings.Replace(library, "temperature: 0", "temperature: 1", 1), "datasets/d.yaml", "version: 1\nname: d\nproviders: [haiku]\n"+use+"items: [{id: a, input: b, providers: [haiku]}]\n"))
		Expect(other.Hash).NotTo(Equal(d.Hash))
	})

	It("may override what they say where they are used", func() {
		d := opened(with(files, "datasets/d.yaml", head+use+"items: [{id: a, input: b, vars: {name: Bo}, checks: [{use: polite, threshold: 0.9, name: kind, required: true}], invariants: [{use: loops, max: 5, severity: error}]}]\n"))
		i := collect(d)[0]
		Expect(checkTexts(i)).To(Equal([]string{`kind="please, Bo"`}))
		Expect(*i.Checks[0].Threshold).To(Equal(0.9))
		Expect(i.Checks[0].Required).To(BeTrue())
		Expect(i.Invariants[0].Params.JSON() + i.Invariants[0].Severity).To(Equal(`{"max":5}error`))
	})

	It("are read once, however often they are named", func() {
		opened(with(files, "echoeval.yaml", "version: 1\nuse: ['*b.yaml', lib.yaml]\n", "datasets/d.yaml", head+use+"items: [{id: a, input: b}]\n"))
	})

	DescribeTable("are named with both places where they clash", func(second, want string) {
		_, wrong := open(with(files, "second.yaml", second, "datasets/d.yaml", head+"use: [../lib.yaml, ../second.yaml]\nitems: [{id: a, input: b}]\n"))
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "version: 1\nchecks: {polite: {contains: a}}\n", `second.yaml:2:10: checks: check "polite" is defined a second time, first at lib.yaml:3:3 | give one of them another name`),
		Entry(nil, "version: 1\ninvariants: {loops: {use: iteration-limit}}\n", `second.yaml:2:14: invariants: invariant "loops" is defined a second time, first at lib.yaml:6:3 | give one of them another name`),
		Entry(nil, "version: 1\npolicies: {public: {}}\n", `second.yaml:2:12: policies: policy "public" is defined a second time, first at lib.yaml:9:3 | give one of them another name`),
		Entry(nil, "version: 1\nproviders: [{id: haiku, provider: script}]\n", `second.yaml:2:18: providers[0].id: provider "haiku" is defined a second time, first at lib.yaml:11:10 | give one of them another id`),
		Entry(nil, "version: 1\nchecks: {regex: {contains: a}, not: {contains: a}}\ninvariants: {role-content: {use: iteration-limit}}\n", "second.yaml:2:10: checks: check \"regex\" is built in, and defined here a second time | give it another name\n"+
			"second.yaml:2:32: checks: check \"not\" is built in, and defined here a second time | give it another name\n"+
			"second.yaml:3:14: invariants: invariant \"role-content\" is built in, and defined here a second time | give it another name"),
		Entry(nil, "version: 1\nproviders: [{id: 'a:b', provider: script}, script:a]\n", "second.yaml:2:18: providers[0].id: \"a:b\" cannot name a provider of a library | a name with a colon is vendor:model\n"+
			"second.yaml:2:44: providers[1]: want a mapping such as {id: haiku, provider: ..., model: ...}, got a string"),
		Entry(nil, "version: 1\nchecks: {a: {use: polite}, b: {contans: x}, 'c d': {contains: x}}\n", "second.yaml:2:14: checks.a: a check of a library names a kind, not another check | write the kind and its arguments\n"+
			"second.yaml:2:32: checks.b: unknown check \"contans\" | did you mean \"contains\"?\n"+
			"second.yaml:2:45: checks: \"c d\" is no name | write letters, digits, dot, underscore and hyphen"),
	)

	DescribeTable("are used by names that they define", func(item, want string) {
		_, wrong := open(with(files, "datasets/d.yaml", head+use+"items: [{id: a, input: b, "+item+"}]\n"))
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "checks: [polit]", `d:6:36: items[0].checks[0]: unknown check "polit" | did you mean "polite"?`),
		Entry(nil, "checks: [{use: polit}]", `d:6:42: items[0].checks[0].use: no library defines a check "polit" | did you mean "polite"?`),
		Entry(nil, "checks: [{polite: x}]", `d:6:37: items[0].checks[0]: unknown check "polite" | a check of a library is used by its name: {use: polite}`),
		Entry(nil, "vars: {name: x}, checks: [{use: polite, wieght: 2}]", `d:6:67: items[0].checks[0]: unknown key "wieght" | did you mean "weight"?`),
		Entry(nil, "checks: [polite]", `lib.yaml:3:33: checks.polite: {{name}} is in neither vars, expected nor metadata | item "a" has none; give it one: vars: {name: ...}; \{{ is the text {{`),
		Entry(nil, "invariants: [loop]", `d:6:40: items[0].invariants[0]: unknown invariant "loop" | did you mean "loops"?`),
		Entry(nil, "invariants: [{use: exec-rule, max: 3}]", `d:6:57: items[0].invariants[0]: rule exec-rule takes no parameters beside severity | write a rule of its own`),
		Entry(nil, "invariants: [{rule: trace.stp == ''}]", `d:6:53: items[0].invariants[0].rule: undefined field 'stp' | did you mean "stop"?`),
		Entry(nil, "invariants: [{never: {call: exec}, name: loops}]", `d:6:68: items[0].invariants[0].name: the name of rule "loops" is taken | give it another name`),
		Entry(nil, "invariants: [{sequence: 'a {{b}}'}]", `d:6:54: items[0].invariants[0].sequence: a template cannot stand in an expression: its value would become part of it | write the rule out; templates serve in the arguments of never and count`),
		Entry(nil, "policy: publc", `d:6:35: items[0].policy: no library defines a policy "publc" | did you mean "public"?`),
	)
})

var _ = Describe("overrides", func() {
	const two = "items: [{id: a, input: x, tags: [red], vars: {n: 1}}, {id: b, input: x, metadata: {level: 3}}]\n"

	It("lie over the items that they meet, in order", func() {
		d := opened(map[string]string{"datasets/d.yaml": head + two + `defaults: {checks: [{contains: x}], timeout: 9s}
overrides:
- {match: "id == 'a'", timeout: 1s, tags: [over], vars: {n: 2}, checks: [{regex: "{{n}}"}]}
- {match: "'red' in tags || metadata.level > 2", repeat: 3, drop: [contains]}
- {match: "'over' in tags", repeat: 9}
`})
		list := collect(d)
		Expect(list[0].Timeout).To(Equal(time.Second))
		Expect(list[0].Tags).To(Equal([]string{"over", "red"}))
		Expect(checkTexts(list[0])).To(Equal([]string{"regex=2"}))
		Expect([]int{list[0].Repeat, list[1].Repeat}).To(Equal([]int{3, 3}))
		Expect(list[1].Timeout).To(Equal(9 * time.Second))
		Expect(list[1].Checks).To(BeEmpty())
		Expect(d.Warnings).To(HaveLen(2))
		Expect(d.Warnings[0].Text).To(Equal("no check of b can fail: only an invariant could"))
		Expect(d.Warnings[1]).To(Equal(dataset.Warning{Code: "override-unmet", Text: `no item meets "'over' in tags": the override changes nothing`, At: failure.Position{File: "datasets/d.yaml", Line: 10, Column: 11}, Hint: "mend the expression or remove the override"}))
	})

	It("that meet nothing since they cannot be evaluated say why", func() {
		d := opened(map[string]string{"datasets/d.yaml": head + two + "overrides: [{match: \"metadata.levle == 3\", skip: x}]\n"})
		Expect(d.Warnings).To(HaveLen(2))
		Expect(d.Warnings[1].Hint).To(ContainSubstring(`item "a": no such key: levle`))
		Expect(d.Validate(nil)).To(Succeed())
		Expect(d.Warnings).To(HaveLen(2))
	})

	It("are not needed for the warning about items that ask for nothing", func() {
		items := "items:\n- {id: none, input: x}\n- {id: reports, input: x, checks: [{contains: x, weight: 0}]}\n- {id: zero, input: x, checks: [{equals: x, threshold: 0}]}\n" +
			"- {id: mean, input: x, threshold: 0, checks: [{contains: x}]}\n- {id: required, input: x, threshold: 0, checks: [{contains: x, required: true}]}\n" +
			"- {id: skipped, input: x, skip: later}\n- {id: turns, turns: [{input: x, checks: [{contains: x}]}]}\n- {id: more, input: x}\n- {id: again, input: x}\n"
		d := opened(map[string]string{"datasets/d.yaml": head + items})
		Expect(d.Warnings).To(HaveLen(1))
		Expect(d.Warnings[0].Text).To(Equal("no check of none, reports, zero, mean, more and 1 more can fail: only an invariant could"))
	})

	DescribeTable("that are wrong", func(text, want string) {
		_, wrong := open(map[string]string{"datasets/d.yaml": head + two + "overrides: " + text + "\n"})
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "{}", "d:6:12: overrides: want a list of {match: EXPRESSION, ...}, got a mapping | begin each entry of the list with a dash"),
		Entry(nil, "[a]", "d:6:13: overrides[0]: want a mapping {match: EXPRESSION, ...}, got a string"),
		Entry(nil, "[{skip: x}]", "d:6:13: overrides[0]: key \"match\" is missing | add it: match: \"id == 'i-17'\"\nd:6:13: overrides[0]: the override changes nothing | add what is other: skip: ..."),
		Entry(nil, "[{match: 5, skip: x}]", "d:6:21: overrides[0].match: want a string with an expression such as \"id == 'i-17'\", got a whole number | quote it: \"5\""),
		Entry(nil, "[{match: \"id == 'x' && tgs == 1\", skip: x}]", "d:6:35: overrides[0].match: undeclared reference to 'tgs' (did you mean 'tags'?) | did you mean \"tags\"?"),
		Entry(nil, "[{match: id, skip: x}]", "d:6:21: overrides[0].match: the expression is no condition: its value is a string | compare it: id == 'i-17'"),
		Entry(nil, "[{match: 'true', id: x}]", "d:6:29: overrides[0]: overrides have no id | give each item its own"),
		Entry(nil, "[{match: 'true', timeout: 5}]", "d:6:38: overrides[0].timeout: want a duration, got a whole number | write the unit: 5s"),
		Entry(nil, "[{match: 'true', input: '{{no}}'}]", "d:6:39: overrides[0].input: {{no}} is in neither vars, expected nor metadata | item \"a\" has n; \\{{ is the text {{"),
	)
})

var _ = Describe("settings of the command line", func() {
	files := map[string]string{"datasets/d.yaml": head + "defaults: {timeout: 9s, vars: {a: 1}}\ngates: {cost_usd: '<= 1'}\nitems:\n- {id: a, input: x}\n- {id: b, input: x, timeout: 1s, tags: [t]}\n", "datasets/w/x": ""}

	It("change keys of the file, and of every item", func() {
		d := opened(files, "gates.pass_rate=null", "gates.cost_usd=<= 2", "defaults.timeout=5s", "defaults.vars.b=[1, 2]", "replay.allow_leftover=true")
		Expect(d.Gates).To(HaveLen(2))
		Expect(d.Gates[0].Bound).To(Equal("<= 2"))
		Expect(d.Gates[1].Off).To(BeTrue())
		Expect(d.AllowLeftover).To(BeTrue())
		list := collect(d)
		Expect(list[0].Timeout).To(Equal(5 * time.Second))
		Expect(list[1].Timeout).To(Equal(time.Second))
		Expect(list[0].Vars.JSON()).To(Equal(`{"a":1,"b":[1,2]}`))

		d = opened(files, "items.timeout=3s", "items.tags=[x]", "items.vars.a=2", "items.workspace=w")
		list = collect(d)
		Expect(list[0].Timeout).To(Equal(3 * time.Second))
		Expect(list[1].Timeout).To(Equal(3 * time.Second))
		Expect(list[1].Tags).To(Equal([]string{"t", "x"}))
		Expect(list[1].Vars.JSON()).To(Equal(`{"a":2}`))
		Expect(list[1].Workspace).To(Equal("datasets/w"))
	})

	DescribeTable("that are wrong", func(set, want string) {
		_, wrong := open(files, set)
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "gates", "--set gates: want KEY=VALUE | --set gates.pass_rate=null, --set defaults.timeout=5s, --set items.timeout=5s (every item)"),
		Entry(nil, "gates..x=1", "--set gates..x=1: want KEY=VALUE | --set gates.pass_rate=null, --set defaults.timeout=5s, --set items.timeout=5s (every item)"),
		Entry(nil, "gate.pass_rate=null", `--set gate.pass_rate:1:1: unknown key "gate" | did you mean "gates"?`),
		Entry(nil, "gates.pas_rate=null", `--set gates.pas_rate:1:1: gates: unknown metric "pas_rate" | did you mean "pass_rate"?`),
		Entry(nil, "defaults.timeout=5", "--set defaults.timeout:1:1: defaults.timeout: want a duration, got a whole number | write the unit: 5s"),
		Entry(nil, "defaults.timeout.x=5", `--set defaults.timeout.x:1:1: cannot set "x" within a string | set the whole of it, or edit the file`),
		Entry(nil, "items.id=x", "--set items.id:1:1: items: settings have no id | give each item its own"),
		Entry(nil, "items=x", "--set items:1:1: items cannot be set | --set items.timeout=5s sets a key of every item"),
		Entry(nil, "name=x", "--set name:1:1: name cannot be set | edit the file"),
		Entry(nil, "gates.pass_rate=", "--set gates.pass_rate:1:1: there is no value | write null to take back what is inherited, \"\" for an empty text"),
		Entry(nil, "gates.pass_rate=[", "--set gates.pass_rate:1:2: not YAML: did not find expected node content"),
	)
})

var _ = Describe("what an item says of its conversation and its world", func() {
	one := func(item string) *dataset.Item {
		GinkgoHelper()
		return items("defaults: {vars: {city: Bern, list: [1]}, user: {persona: curt, knows: {a: 1}}, limits: {steps: 5}, tool_mocks: {a: 1, b: 2}}\nitems:\n- {id: i, user: null, " + item + "}\n")[0]
	}

	It("decodes turns with their checks", func() {
		i := one("turns: [{input: 'To {{city}}', checks: [{contains: '{{city}}'}, {contains: x}]}, {input: [{text: b}]}]")
		Expect(i.Input).To(BeNil())
		Expect(i.Turns).To(HaveLen(2))
		Expect(inputText(&dataset.Item{Input: i.Turns[0].Input})).To(Equal("To Bern"))
		Expect(checkTexts(&dataset.Item{Checks: i.Turns[0].Checks})).To(Equal([]string{`contains="Bern"`, `contains#2="x"`}))
		Expect(i.Turns[1].Checks).To(BeEmpty())
	})

	It("decodes messages", func() {
		i := one("input: c, messages: [{role: user, content: 'a {{city}}'}, {role: assistant, content: [{type: tool_call, tool_call_id: c1, tool_name: t, tool_input: {x: 1}}]}, {role: tool, content: [{type: tool_result, tool_call_id: c1, tool_name: t, result: {y: 2}}]}, {role: assistant, content: b, msg_id: own}]")
		Expect(i.Messages).To(HaveLen(4))
		Expect(i.Messages[0].Text()).To(Equal("a Bern"))
		Expect([]string{i.Messages[0].ID(), i.Messages[3].ID()}).To(Equal([]string{"m1", "own"}))
		Expect(i.Messages[1].ToolCalls()).To(HaveLen(1))
		Expect(one("messages: [{role: user, content: a}]").Input).To(BeNil())
	})

	It("decodes a simulated user over that of the defaults", func() {
		i := items("providers2: 1\n"[:0]+"defaults: {user: {persona: curt, knows: {a: 1}}}\nitems: [{id: i, vars: {g: home}, user: {goal: 'go {{g}}', max_turns: 3, knows: {b: 2}}}]\n", map[string]string{"datasets/d.yaml": strings.Replace(head, "[script:m]", "[script:m, {id: p, provider: script, role: user}]", 1) + "defaults: {user: {persona: curt, knows: {a: 1}}}\nitems: [{id: i, vars: {g: home}, user: {goal: 'go {{g}}', max_turns: 3, knows: {b: 2}}}]\n"})[0]
		u := i.User
		Expect([]string{u.Persona, u.Goal, u.Knows.JSON()}).To(Equal([]string{"curt", "go home", `{"a":1,"b":2}`}))
		Expect(u.MaxTurns).To(Equal(3))
	})

	It("decodes mocks, approvals, answers and limits", func() {
		i := one("input: x, tool_mocks: {b: null, c: [{args: {x: 1}, result: '{{city}}', times: 2}, {error: gone}], d: {result: [1]}, e: {result: 1, other: 2}}, approvals: [{tool: exec, answer: allow}, {tool: exec, answer: deny, scope: session}], answers: {clarify: [a, {b: 1}], other: c}, limits: {cost_usd: 0.5, tokens: 10}")
		texts := map[string]string{}
		for name, m := range i.ToolMocks {
			for _, c := range m.Cases {
				texts[name] += c.Args.JSON() + c.Result.JSON() + c.Error + ";"
			}
		}
		Expect(texts).To(Equal(map[string]string{"a": "null1;", "c": `{"x":1}"Bern";nullnullgone;`, "d": "null[1];", "e": `null{"result":1,"other":2};`}))
		Expect(i.ToolMocks["c"].Cases[0].Times).To(Equal(2))
		Expect(i.Approvals).To(HaveLen(2))
		Expect(i.Approvals[0].Allow && i.Approvals[0].Scope == "once" && !i.Approvals[1].Allow && i.Approvals[1].Scope == "session").To(BeTrue())
		Expect(json(i.Answers["clarify"]...)).To(Equal([]string{`"a"`, `{"b":1}`}))
		Expect(i.Answers["other"]).To(HaveLen(1))
		Expect(*i.Limits.CostUSD).To(Equal(money.Dollar / 2))
		Expect([]int{*i.Limits.Tokens, *i.Limits.Steps}).To(Equal([]int{10, 5}))
		Expect(i.Limits.ToolCalls).To(BeNil())
	})

	It("decodes bounds on repeats and quarantines", func() {
		i := one("input: x, pass_if: '>= 0.8', quarantine: {owner: ana, until: 2027-01-31, reason: flaky}")
		Expect(*i.PassIf).To(Equal(eval.Bound{Op: ">=", Value: 0.8}))
		Expect(i.PassIf.Holds(0.8) && i.PassIf.Holds(4.0/5) && !i.PassIf.Holds(0.79)).To(BeTrue())
		q := i.Quarantine
		Expect(q.Over(time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC))).To(BeFalse())
		Expect(q.Over(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC))).To(BeTrue())
		Expect(q.Over(time.Date(2027, 2, 1, 0, 30, 0, 0, time.FixedZone("", 3600)))).To(BeFalse())
	})

	It("takes one way of speaking in place of an inherited one", func() {
		list := items("defaults: {input: x}\nitems: [{id: a, turns: [{input: y}]}, {id: b}]\n")
		Expect(list[0].Input).To(BeNil())
		Expect(list[0].Turns).To(HaveLen(1))
		Expect(list[1].Input).To(HaveLen(1))
		list = items("defaults: {turns: [{input: y}]}\nitems: [{id: a, input: x}, {id: b}]\n")
		Expect(list[0].Turns).To(BeNil())
		Expect(list[1].Turns).To(HaveLen(1))
	})

	DescribeTable("says what is wrong", func(item, want string) {
		Expect(wrong("items: [{id: a, " + item + "}]\n")).To(Equal(want))
	},
		Entry(nil, "tags: [x]", `d:5:9: items[0]: key "input" is missing | add it: input: ...`),
		Entry(nil, "input: x, turns: [{input: y}]", "d:5:27: items[0]: an item has either input or turns | leave one of them out"),
		Entry(nil, "turns: []", "d:5:24: items[0].turns: the list of turns is empty | write one: [{input: ...}]"),
		Entry(nil, "turns: [x]", "d:5:25: items[0].turns[0]: want a mapping, got a string"),
		Entry(nil, "turns: [{checks: [no_tool_calls]}]", `d:5:25: items[0].turns[0]: key "input" is missing | add it: input: ...`),
		Entry(nil, "turns: [{input: '{{x}}', checks: [{contans: y}]}]", "d:5:36: items[0].turns[0].input: {{x}} is in neither vars, expected nor metadata | item \"a\" has none; give it one: vars: {x: ...}; \\{{ is the text {{\n"+
			`d:5:52: items[0].turns[0].checks[0]: unknown check "contans" | did you mean "contains"?`),
		Entry(nil, "user: {goal: x}", "d:5:23: items[0].user: datasets/d.yaml has no provider of role user | add one to providers: {id: user, provider: openai, model: ..., role: user}"),
		Entry(nil, "user: {persona: x, max_turns: 0}", "d:5:23: items[0].user: key \"goal\" is missing | add it: goal: what the user wants\n"+
			"d:5:23: items[0].user: datasets/d.yaml has no provider of role user | add one to providers: {id: user, provider: openai, model: ..., role: user}\n"+
			"d:5:47: items[0].user.max_turns: want a whole number from 1 to 1000"),
		Entry(nil, "messages: [{role: usr, content: x}]", `d:5:35: items[0].messages[0].role: unknown role "usr" | did you mean "user"?`),
		Entry(nil, "messages: [{role: user, contnt: x}]", `d:5:41: items[0].messages[0]: unknown key "contnt" | did you mean "content"?`),
		Entry(nil, "messages: [{role: user, content: [{type: txt, txt: x}]}]", "d:5:58: items[0].messages[0].content[0].type: unknown type \"txt\" | did you mean \"text\"?\n"+
			`d:5:63: items[0].messages[0].content[0]: unknown key "txt" | did you mean "text"?`),
		Entry(nil, "messages: [{role: assistant, content: x}]", "d:5:28: items[0].messages: nobody asks anything: the last message is not the user's | add input: ..., or end with a message of the user"),
		Entry(nil, "input: x, messages: [{role: user, content: y, msg_id: a}, {role: assistant, content: z, msg_id: a}]", "d:5:75: items[0].messages[1].msg_id: message \"a\" stands here a second time, first at d:5:38 | give each message its own"),
		Entry(nil, "input: x, tool_mocks: {a: []}", "d:5:43: items[0].tool_mocks.a: the list of cases is empty | a result that is a list stands under result: {result: []}"),
		Entry(nil, "input: x, tool_mocks: {a: [{args: {}}, {result: 1, error: x}, {error: ''}, 5, {result: 1, times: 0}, {result: 1, reslt: 2}]}", strings.Join([]string{
			"d:5:44: items[0].tool_mocks.a[0]: a case has either a result or an error | write one of result and error",
			"d:5:56: items[0].tool_mocks.a[1]: a case has either a result or an error | write one of result and error",
			"d:5:87: items[0].tool_mocks.a[2].error: the error is empty | write what the tool says",
			"d:5:92: items[0].tool_mocks.a[3]: want a case such as {args: {...}, result: ...} or {error: ...}, got a whole number",
			"d:5:114: items[0].tool_mocks.a[4].times: want a whole number from 1 | leave it out for a case that serves without end",
			`d:5:130: items[0].tool_mocks.a[5]: unknown key "reslt" | did you mean "result"?`}, "\n")),
		Entry(nil, "input: x, approvals: [{tool: '', answer: yes}]", "d:5:46: items[0].approvals[0].tool: the name of a tool is empty | name the tool\n"+
			`d:5:58: items[0].approvals[0].answer: unknown value "yes" | choices: allow, deny`),
		Entry(nil, "input: x, answers: {clarify: []}", "d:5:46: items[0].answers.clarify: the list of answers is empty | write one"),
		Entry(nil, "input: x, limits: {cost_usd: -1, tokens: -1}", "d:5:46: items[0].limits.cost_usd: want an amount, from 0 | it is in USD\nd:5:58: items[0].limits.tokens: want a whole number from 0"),
		Entry(nil, "input: x, pass_if: 0.8", `d:5:36: items[0].pass_if: want a bound, got a number | write how the share is bound: ">= 0.8"`),
		Entry(nil, "input: x, pass_if: '>= 80'", `d:5:36: items[0].pass_if: ">= 80" is no bound on a share from 0 to 1 | write how the share is bound: ">= 0.8"`),
		Entry(nil, "input: x, pass_if: '>= 0'", `d:5:36: items[0].pass_if: every share keeps the bound ">= 0", or none | write how the share is bound: ">= 0.8"`),
		Entry(nil, "input: x, pass_if: some", `d:5:36: items[0].pass_if: "some" is no bound on a share | write how the share is bound: ">= 0.8"`),
		Entry(nil, "input: x, quarantine: {owner: a, reason: ' '}", "d:5:39: items[0].quarantine: key \"until\" is missing | add it: until: ...\nd:5:58: items[0].quarantine.reason: it is empty"),
		Entry(nil, "input: x, quarantine: {owner: a, reason: b, until: 2027-02-30}", `d:5:68: items[0].quarantine.until: "2027-02-30" is no day | write a day: 2027-01-31`),
	)

	It("has a place in the hashes", func() {
		base := one("input: x")
		for _, item := range []string{"tool_mocks: {z: 1}", "approvals: [{tool: a, answer: allow}]", "answers: {a: b}", "messages: [{role: user, content: a}]"} {
			i := one("input: x, " + item)
			Expect(i.ItemHash).NotTo(Equal(base.ItemHash), item)
			Expect(i.ChecksHash).To(Equal(base.ChecksHash), item)
		}
		for _, item := range []string{"limits: {steps: 6}", "pass_if: '> 0.5'"} {
			i := one("input: x, " + item)
			Expect(i.ItemHash).To(Equal(base.ItemHash), item)
			Expect(i.ChecksHash).NotTo(Equal(base.ChecksHash), item)
		}
		turns, other, checks := one("turns: [{input: a}, {input: b}]"), one("turns: [{input: ab}]"), one("turns: [{input: a}, {input: b, checks: [no_tool_calls]}]")
		Expect(turns.ItemHash).NotTo(Equal(other.ItemHash))
		Expect(checks.ItemHash).To(Equal(turns.ItemHash))
		Expect(checks.ChecksHash).NotTo(Equal(turns.ChecksHash))
	})
})

var _ = Describe("items of a CSV file", func() {
	source := func(items, csv string) map[string]string {
		return map[string]string{"datasets/d.yaml": head + "defaults: {input: 'Q: {{question}} {{city}}', checks: [{contains: '{{expected}}'}], vars: {city: x, question: y}}\n" + items, "datasets/q.csv": csv}
	}

	It("are keys, variables and what the map says", func() {
		list := collect(opened(source("items: {path: q.csv, map: {id: nr, expected: answer, metadata.level: lvl}}\n", "\ufeffnr,question,answer,lvl,tags,repeat,checks\r\n1,\"a, \"\"b\"\"\n{{city}}\",5,hard,\"t u,v\",2,\"[{\"\"regex\"\": \"\"x{{y}}\"\"}]\"\r\n2,c,6,,,,\r\n")))
		Expect(inputText(list[0])).To(Equal("Q: a, \"b\"\n{{city}} x"))
		Expect([]string{list[0].ID, list[0].Expected.JSON(), list[0].Metadata.JSON()}).To(Equal([]string{"1", `"5"`, `{"level":"hard"}`}))
		Expect(list[0].Tags).To(Equal([]string{"t", "u", "v"}))
		Expect(list[0].Repeat).To(Equal(2))
		Expect(checkTexts(list[0])).To(Equal([]string{`contains="5"`, `regex="x{{y}}"`}))
		Expect(list[0].Pos.String()).To(Equal("datasets/q.csv:2:1"))
	})

	It("come from several files, by name, and each from its own columns", func() {
		files := source("items: 'q*.csv'\n", "id,expected\nb,x\n")
		files["datasets/q1.csv"] = "expected,id\ny,a\n"
		list := collect(opened(files))
		Expect([]string{list[0].ID, list[1].ID}).To(Equal([]string{"b", "a"}))
		Expect(list[0].Expected.Text() + list[1].Expected.Text()).To(Equal("xy"))
	})

	DescribeTable("that are wrong", func(items, csv, want string) {
		_, wrong := open(source(items, csv))
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "items: q.csv\n", "id,expected\n", "datasets/q.csv:1:1: the file has no items | write one, or remove the file from the dataset"),
		Entry(nil, "items: q.csv\n", "", "datasets/q.csv:1:1: the file has no items | write one, or remove the file from the dataset"),
		Entry(nil, "items: q.csv\n", "expected\nx\n", `datasets/q.csv:2:1: key "id" is missing | add it: id: ...`),
		Entry(nil, "items: q.csv\n", "id,expected\na,x\na,y\nb\n", `datasets/q.csv:3:1: id: item "a" stands here a second time, first at datasets/q.csv:2:1 | give each item its own id`+"\n"+
			`datasets/q.csv:4:1: the row has not as many cells as there are columns, want 2 | write one cell for each column, "" for an empty one; a cell with a comma is quoted`),
		Entry(nil, "items: q.csv\n", "id,expected,repeat,timeout,checks\na,x,two,5,[\n", "datasets/q.csv:2:5: repeat: \"two\" is no number\ndatasets/q.csv:2:11: checks: the cell is no JSON: the JSON text ends too early | write the value as JSON"),
		Entry(nil, "items: {path: q.csv, map: {expected: anser}}\n", "id,answer\na,x\n", `d:6:38: datasets/q.csv has no column "anser" | did you mean "answer"?`),
		Entry(nil, "items: {path: q.csv, map: {expcted: answer, vars.a.b: c, input: 5}}\n", "id,answer\na,x\n", `d:6:28: items.map: unknown key "expcted" | did you mean "expected"?`+"\n"+
			`d:6:45: items.map: "vars.a.b" is no key of an item | write vars.NAME, metadata.NAME or tool_context.NAME`+"\n"+
			`d:6:65: items.map.input: want a string with the name of a column, got a whole number | quote it: "5"`),
		Entry(nil, "items: {path: q.csv, map: {expected: answer, group: answer}}\n", "id,answer\na,x\n", `d:6:53: items.map.group: column "answer" is used a second time | a template can take it from there: {{expected}}`),
		Entry(nil, "items: {path: d.yaml, map: {input: x}}\n", "", "d:6:15: items.path: the dataset names itself as its items | name another file, or write the items as a list"),
		Entry(nil, "items: {map: {input: x}}\n", "", `d:6:8: items: key "path" is missing | add it: path: ...`),
	)

	It("is bounded", func() {
		_, wrong := open(source("items: q.csv\n", "id,expected\na,\""+strings.Repeat("x", 10<<20)+"\"\nb,y\n"))
		Expect(wrong).To(Equal("datasets/q.csv:2:1: a row is longer than 1048576 bytes | is a closing quote missing? move long texts into files and name them"))
	})

	It("renames fields of JSONL too", func() {
		files := map[string]string{"datasets/d.yaml": head + "items: {path: q.jsonl, map: {input: question, vars.n: number}}\n", "datasets/q.jsonl": `{"id":"a","question":"x","number":3}` + "\n"}
		i := collect(opened(files))[0]
		Expect(inputText(i) + i.Vars.JSON()).To(Equal(`x{"n":3}`))
	})
})

var _ = Describe("items of a pipe", func() {
	It("are read twice", func() {
		dir := project(map[string]string{"datasets/d.yaml": head + "items: pipe.jsonl\n"})
		pipe := filepath.Join(dir, "datasets/pipe.jsonl")
		Expect(syscall.Mkfifo(pipe, 0o600)).To(Succeed())
		done := make(chan error)
		go func() {
			done <- os.WriteFile(pipe, []byte("{\"id\":\"a\",\"input\":\"x\"}\n{\"id\":\"b\",\"input\":\"y\"}\n"), 0o600)
		}()
		o := options(dir)
		o.Temp = GinkgoT().TempDir()
		d, err := dataset.Open("datasets/d.yaml", o)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Validate(nil)).To(Succeed())
		Expect(<-done).To(Succeed())
		Expect(collect(d)).To(HaveLen(2))
		Expect(collect(d)).To(HaveLen(2))
		left, err := os.ReadDir(o.Temp)
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})
})

var _ = Describe("an item explained", func() {
	files := map[string]string{
		"echoeval.yaml": "version: 1\nuse: [lib.yaml]\ndefaults: {timeout: 5s, tags: [p], vars: {name: Ada, a: 1}, checks: [polite]}\n",
		"lib.yaml":      library, "agents/b.yaml": "task: {description: b}\n",
		"datasets/d.yaml": head + "defaults: {tags: [d], vars: {a: 2}, input: \"hi {{name}} # \\\"x\\\"\"}\noverrides: [{match: \"id == 'a'\", skip: x}]\nitems: [{id: a, checks: [no_tool_calls, {not: {contains: y}, weight: 2}], tool_mocks: {t: {rows: []}}}, {id: bb}]\n",
	}

	It("shows each value with its place and its layer", func() {
		d := opened(files, "items.repeat=4")
		all, err := d.Explain("a")
		Expect(err).NotTo(HaveOccurred())
		text := string(dataset.AppendYAML(nil, all))
		Expect(text).To(Equal(`id: "a"  # datasets/d.yaml:7:14 item
input: "hi Ada # \"x\""  # datasets/d.yaml:5:44 defaults
vars:
  name: "Ada"  # echoeval.yaml:3:49 project
  a: 2  # datasets/d.yaml:5:33 defaults
tags:
  - "d"  # datasets/d.yaml:5:19 defaults
  - "p"  # echoeval.yaml:3:32 project
tool_mocks:
  t: {"rows":[]}  # datasets/d.yaml:7:91 item
checks:
  - {"contains":"please, Ada","name":"polite","threshold":0.7}  # lib.yaml:3:3 project, library
  - "no_tool_calls"  # datasets/d.yaml:7:26 item
  - {"not":{"contains":"y"},"name":"contains","weight":2}  # datasets/d.yaml:7:41 item
timeout: "5s"  # echoeval.yaml:3:21 project
repeat: 4  # --set items.repeat:1:1 --set
skip: "x"  # datasets/d.yaml:6:40 overrides
`))
		n, err := strict.Parse("x.yaml", []byte(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(n.Get("input").Text()).To(Equal(`hi Ada # "x"`))
		flat := string(dataset.AppendJSON(nil, all))
		Expect(flat).To(HavePrefix(`[{"key":"id","value":"a","layer":"item","at":"datasets/d.yaml:7:14"},`))
		Expect(flat).To(ContainSubstring(`{"key":"vars.name","value":"Ada","layer":"project","at":"echoeval.yaml:3:49"}`))
		_, err = strict.ParseJSON("x.json", 1, []byte(flat))
		Expect(err).NotTo(HaveOccurred())
	})

	It("shows what is built in", func() {
		d := opened(map[string]string{"datasets/d.yaml": head + "items: [{id: a, input: x}]\n"})
		all, err := d.Explain("a")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(dataset.AppendYAML(nil, all))).To(ContainSubstring("timeout: \"60s\"  # built in\nrepeat: 1  # built in\n"))
	})

	It("must be there", func() {
		_, err := opened(files).Explain("b")
		Expect(problems(err)).To(Equal(`datasets/d.yaml has no item "b" | did you mean "bb"?`))
	})
})
