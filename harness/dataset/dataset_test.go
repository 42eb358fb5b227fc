package dataset_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

var _ = Describe("a dataset file", func() {
	It("is read as a whole", func() {
		dir := project(map[string]string{
			"agents/a.yaml": "task: {description: from a file}\n", "datasets/book/x.txt": "x", "datasets/x.png": png,
			"datasets/d.yaml": `version: 1
name: clinic-triage
description: about a clinic
agent: ../agents/a.yaml
providers:
  - openai:gpt-4o-mini
  - {id: terse, provider: compat, model: llama3, base_url: "http://127.0.0.1:11434/v1", api_key_env: MY_KEY, agent: {task: {description: own}},
     price: {input: 0.15, output: 2}, temperature: 0, top_p: 1, max_tokens: 5, seed: 7, stop: [END], tool_choice: auto, parallel_tool_calls: false, reasoning_effort: low, capabilities: strict}
  - {provider: script, id: s}
defaults:
  vars: {clinic: North}
  checks: [{contains: "{{expected}}"}]
items:
  - id: chest-pain
    input:
      - text: "Chest pain, {{clinic}}"
      - image: x.png
      - image: https://example.org/a.webp?x=1
    expected: "112"
    checks: [no_tool_calls, {not: {regex: diagnos}, weight: 0, threshold: 0.5, required: true, name: humble}]
    invariants: [{use: iteration-limit, severity: warn, max: 5}, role-content]
    tags: [urgent, a, urgent]
    metadata: {source: handmade}
    tool_context: {tenant: t-1}
    workspace: book
    timeout: 1m30s
    repeat: 3
    skip: not yet
    group: chest
    providers: [terse]
    threshold: 0.7
    script:
      - {call: {name: read_file, args: {path: "{{clinic}}.txt"}}}
      - calls: [{name: a}, {name: b, args: {}}]
      - text: done
gates: {pass_rate: ">= 0.95", cost_usd: null}
replay: {allow_leftover: true}
`})
		d, err := load(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Name).To(Equal("clinic-triage"))
		Expect(d.Description).To(Equal("about a clinic"))
		Expect(d.File).To(Equal("datasets/d.yaml"))
		Expect(d.Root).To(Equal(dir))
		Expect(d.AllowLeftover).To(BeTrue())
		Expect(d.Count).To(Equal(1))
		Expect(d.Hash).To(MatchRegexp("^[0-9a-f]{16}$"))
		Expect(d.Agent.File).To(Equal("agents/a.yaml"))
		Expect(d.Agent.Node.Get("task").JSON()).To(Equal(`{"description":"from a file"}`))
		Expect(d.Agent.Node.Pos().File).To(Equal("agents/a.yaml"))

		Expect(d.Providers).To(HaveLen(3))
		Expect(d.Providers[0].ID).To(Equal("openai:gpt-4o-mini"))
		Expect(d.Providers[0].Vendor).To(Equal("openai"))
		Expect(d.Providers[0].Model).To(Equal("gpt-4o-mini"))
		Expect(d.Providers[0].Settings.Temperature).To(BeNil())
		terse := d.Providers[1]
		Expect([]string{terse.ID, terse.Vendor, terse.Model, terse.BaseURL, terse.APIKeyEnv}).To(Equal([]string{"terse", "compat", "llama3", "http://127.0.0.1:11434/v1", "MY_KEY"}))
		Expect(*terse.Settings.Temperature).To(BeZero())
		Expect(*terse.Settings.MaxTokens).To(Equal(5))
		Expect(*terse.Settings.Seed).To(Equal(int64(7)))
		Expect(terse.Settings.Stop).To(Equal([]string{"END"}))
		Expect(*terse.Settings.ParallelToolCalls).To(BeFalse())
		Expect(terse.Settings.Strict).To(BeTrue())
		Expect(terse.Price.Input.String() + " " + terse.Price.Output.String()).To(Equal("0.15 2"))
		Expect(terse.Agent.Node.JSON()).To(Equal(`{"task":{"description":"own"}}`))
		Expect(d.Providers[2].ID + d.Providers[2].Model).To(Equal("s"))
		Expect(d.Gates).To(HaveLen(2))
		Expect(d.Gates[0].Metric + d.Gates[0].Bound).To(Equal("pass_rate>= 0.95"))
		Expect(d.Gates[1].Off).To(BeTrue())
		Expect(d.Gates[1].Pos.String()).To(Equal("datasets/d.yaml:36:31"))

		i := collect(d)[0]
		Expect(i.ID).To(Equal("chest-pain"))
		Expect(i.Index).To(Equal(1))
		Expect(i.Pos.String()).To(Equal("datasets/d.yaml:14:5"))
		Expect(i.Input).To(Equal([]conversation.Content{
			conversation.Text{Text: "Chest pain, North"},
			conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBORw0KGgogdGhlIHJlc3Qgb2YgaXQ="}},
			conversation.Image{MediaType: "image/webp", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://example.org/a.webp?x=1"}},
		}))
		Expect(checkTexts(i)).To(Equal([]string{`contains="112"`, "no_tool_calls=null", `humble="diagnos"`}))
		Expect(i.Checks[0].Pos.String()).To(Equal("datasets/d.yaml:12:12"))
		humble := i.Checks[2]
		Expect(humble.Kind).To(Equal("regex"))
		Expect(humble.Not && humble.Required).To(BeTrue())
		Expect(*humble.Weight).To(BeZero())
		Expect(*humble.Threshold).To(Equal(0.5))
		Expect(i.Checks[1].Weight).To(BeNil())
		Expect(i.Invariants).To(HaveLen(2))
		Expect(i.Invariants[0].Name + i.Invariants[0].Severity + i.Invariants[0].Params.JSON()).To(Equal(`iteration-limitwarn{"max":5}`))
		Expect(i.Invariants[1].Params.IsZero()).To(BeTrue())
		Expect(i.Tags).To(Equal([]string{"a", "urgent"}))
		Expect(i.Metadata.JSON() + i.ToolContext.JSON() + i.Vars.JSON()).To(Equal(`{"source":"handmade"}{"tenant":"t-1"}{"clinic":"North"}`))
		Expect(i.Workspace).To(Equal("datasets/book"))
		Expect(i.Timeout).To(Equal(90 * time.Second))
		Expect(i.Repeat).To(Equal(3))
		Expect(i.Skip + i.Group).To(Equal("not yetchest"))
		Expect(i.Providers).To(Equal([]string{"terse"}))
		Expect(*i.Threshold).To(Equal(0.7))
		Expect(i.Script).To(HaveLen(3))
		Expect(i.Script[0].Calls[0].Args.JSON()).To(Equal(`{"path":"North.txt"}`))
		Expect(i.Script[1].Calls).To(HaveLen(2))
		Expect(*i.Script[2].Text).To(Equal("done"))
	})

	It("is read from JSON too, its items one by one", func() {
		dir := project(map[string]string{"datasets/d.json": `{"version":1,"name":"d","agent":{"task":{"description":"x"}},"items":[
{"id":"a","input":"hi {{n}}","vars":{"n":1}},
{"id":"b","input":"x","chekcs":[]}]}`})
		d, err := dataset.Open(filepath.Join(dir, "datasets", "d.json"), known)
		Expect(err).NotTo(HaveOccurred())
		Expect(problems(d.Validate(nil))).To(Equal(`datasets/d.json:3:23: items[1]: unknown key "chekcs" | did you mean "checks"?`))
		for i, err := range d.Items() {
			Expect(err).NotTo(HaveOccurred())
			Expect(inputText(i)).To(Equal("hi 1"))
			break
		}
	})

	It("has the defaults of the format", func() {
		i := items("items:\n- {id: a, input: hi}\n")[0]
		Expect(i.Timeout).To(Equal(time.Minute))
		Expect(i.Repeat).To(Equal(1))
		Expect(i.Threshold).To(BeNil())
		Expect(i.Checks).To(BeEmpty())
		Expect(i.Providers).To(BeNil())
		Expect(i.Expected.IsZero() && i.Vars.IsZero() && i.ToolContext.IsZero() && i.Metadata.IsZero()).To(BeTrue())
	})

	It("is read with a byte order mark, CRLF and emoji", func() {
		d, err := load(project(map[string]string{"datasets/d.yaml": "\ufeff" + strings.ReplaceAll(head+"items:\n  - id: 🙂\n    input: |\n      a\n      b 🙂\n", "\n", "\r\n")}))
		Expect(err).NotTo(HaveOccurred())
		i := collect(d)[0]
		Expect(i.ID + inputText(i)).To(Equal("🙂a\nb 🙂\n"))
	})

	DescribeTable("is refused as a whole, with the place", func(text, want string) {
		_, err := load(project(map[string]string{"datasets/d.yaml": text}))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(problems(err)).To(Equal(want))
	},
		Entry("empty", "", "d:1:1: empty: want a YAML document"),
		Entry("a list", "- a\n", "d:1:1: want a mapping with the keys of a dataset, got a list"),
		Entry("not UTF-8", "version: 1\nname: \xff\n", "d:2:7: not UTF-8: byte 0xff | save the file as UTF-8"),
		Entry("tabs", "version: 1\nname: x\nitems:\n\t- id: a\n", "d:4:1: a tab in the indentation | YAML is indented with spaces: replace the tab"),
		Entry("nothing that is required", "description: x\n", strings.Join([]string{
			"d:1:1: key \"version\" is missing | add it: version: ...", "d:1:1: key \"name\" is missing | add it: name: ...", "d:1:1: key \"items\" is missing | add it: items: ...",
			"d:1:1: key \"agent\" is missing | add it: agent: {task: {description: ...}}, or the path of an agent file; or target: {command: [...]} for a program"}, "\n")),
		Entry("another version", strings.Replace(head, "version: 1", "version: 2", 1)+"items: [{id: a, input: b}]\n", "d:1:10: version: this version of the program reads version 1 | write version: 1"),
	)

	It("is missed with its name", func() {
		dir := project(nil)
		_, err := load(dir)
		Expect(problems(err)).To(Equal("dataset file datasets/d.yaml does not exist"))
		_, err = dataset.Open("q.jsonl", dataset.Options{Dir: dir})
		Expect(problems(err)).To(Equal("q.jsonl: a dataset file ends in .yaml or .json | items in other formats are named by a dataset file: items: q.jsonl"))
		_, err = dataset.Open("q.yaml", dataset.Options{})
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	})

	DescribeTable("has a name that can name folders", func(name, want string) {
		_, err := load(project(map[string]string{"datasets/d.yaml": strings.Replace(head, "name: d", "name: "+name, 1) + "items: [{id: a, input: b}]\n"}))
		if want == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(problems(err)).To(Equal("d:2:7: name: " + want))
	},
		Entry(nil, "clinic-triage.v2_x", ""),
		Entry(nil, "Clinic", "a name has only the characters a-z, 0-9, dot, underscore and hyphen | the name becomes the name of folders: clinic-triage"),
		Entry(nil, "a/b", "a name has only the characters a-z, 0-9, dot, underscore and hyphen | the name becomes the name of folders: clinic-triage"),
		Entry(nil, `".."`, "a name begins with a letter or a digit | the name becomes the name of folders: clinic-triage"),
		Entry(nil, `""`, "a name is empty | the name becomes the name of folders: clinic-triage"),
		Entry(nil, "con", "the name is reserved by Windows | the name becomes the name of folders: clinic-triage"),
		Entry(nil, strings.Repeat("a", 81), "a name has at most 80 characters | the name becomes the name of folders: clinic-triage"),
		Entry(nil, "12", `want a string, got a whole number | quote it: "12"`),
	)

	DescribeTable("knows the keys of later versions", func(text, at string, keys ...string) {
		for _, key := range keys {
			Expect(wrong(fmt.Sprintf(text, key))).To(Equal(fmt.Sprintf("%skey %q is not read by this version | remove it; reading the file without it would run something else than it says", at, key)))
		}
	},
		Entry("of an item", "items: [{id: a, input: b, %s: 1}]\n", "d:5:27: items[0]: ", "audio", "database", "channels", "artifacts"),
		Entry("of the defaults", "items: [{id: a, input: b}]\ndefaults: {%s: 1}\n", "d:6:12: defaults: ", "database"),
		Entry("of items elsewhere", "items: {%s: 1}\n", "d:5:9: items: ", "langfuse"),
		Entry("of overrides", "items: [{id: a, input: b}]\ndefaults: {}\noverrides: [{match: 'true', %s: 1}]\n", "d:7:29: overrides[0]: ", "audio"),
	)

	It("takes an agent from each provider instead", func() {
		_, err := load(project(map[string]string{"datasets/d.yaml": "version: 1\nname: d\nproviders: [{provider: script, id: s, agent: {task: {description: x}}}]\nitems: [{id: a, input: b}]\n"}))
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("names what is wrong with an agent", func(agent, want string) {
		_, err := load(project(map[string]string{"datasets/d.yaml": "version: 1\nname: d\nagent: " + agent + "\nitems: [{id: a, input: b}]\n", "datasets/bad.yaml": "a: 1\na: 2\n", "datasets/list.yaml": "- a\n"}))
		Expect(problems(err)).To(Equal(want))
	},
		Entry(nil, "no.yaml", "d:3:8: agent file datasets/no.yaml does not exist | the path is relative to the file that names it"),
		Entry(nil, "bad.yaml", `datasets/bad.yaml:2:1: key "a" stands here a second time, first at datasets/bad.yaml:1:1 | remove one of the two`),
		Entry(nil, "list.yaml", "datasets/list.yaml:1:1: agent: want a mapping with the keys of an agent, got a list"),
		Entry(nil, "/a.yaml", "d:3:8: agent: the path is absolute | write it relative to the file that names it"),
		Entry(nil, `'..\a.yaml'`, "d:3:8: agent: the path has a backslash | write it with slashes"),
		Entry(nil, `""`, "d:3:8: agent: the path is empty"),
		Entry(nil, `"a\0"`, "d:3:8: agent: a path holds no NUL"),
		Entry(nil, "[a]", "d:3:8: agent: want the path of an agent file or a mapping, got a list"),
		Entry(nil, ".", "d:3:8: agent file datasets is no file | the path is relative to the file that names it"),
	)
})

var _ = DescribeTable("providers that are wrong", func(provider, want string) {
	_, err := load(project(map[string]string{"datasets/d.yaml": "version: 1\nname: d\nagent: {}\nitems: [{id: a, input: b}]\nproviders: " + provider + "\n"}))
	Expect(problems(err)).To(Equal(want))
},
	Entry(nil, "a", "d:5:12: providers: want a list of providers, got a string | write it as a list: [\"a\"]"),
	Entry(nil, "[]", "d:5:12: providers: the list of providers is empty | add one, or leave the key out and use --provider"),
	Entry(nil, "[haiku]", `d:5:13: providers[0]: "haiku" is no provider | write vendor:model, such as openai:gpt-4o-mini`),
	Entry(nil, `["openai:"]`, `d:5:13: providers[0]: "openai:" is no provider | write vendor:model, such as openai:gpt-4o-mini`),
	Entry(nil, "[opnai:x]", `d:5:13: providers[0]: unknown provider "opnai" | did you mean "openai"?`),
	Entry(nil, "[5]", "d:5:13: providers[0]: want a provider: vendor:model, or a mapping, got a whole number"),
	Entry(nil, "[{provider: opnai, model: m}]", `d:5:24: providers[0].provider: unknown provider "opnai" | did you mean "openai"?`),
	Entry(nil, "[{provider: openai}]", `d:5:13: providers[0]: key "model" is missing | add it: model: ...`),
	Entry(nil, "[{model: m}]", `d:5:13: providers[0]: key "provider" is missing | add it: provider: ...`),
	Entry(nil, `["openai:é"]`, "d:5:13: providers[0]: an id has only letters, digits and the characters . _ : / @ - | give it another id: {id: ..., provider: ..., model: ...}"),
	Entry(nil, `[{id: "..", provider: script}]`, "d:5:18: providers[0]: an id begins with a letter or a digit, since it names a folder | give it another id: {id: ..., provider: ..., model: ...}"),
	Entry(nil, `[{id: "nul", provider: script}]`, "d:5:18: providers[0]: the id names a folder, and Windows reserves its name | give it another id: {id: ..., provider: ..., model: ...}"),
	Entry(nil, "[script:a/b, script:c, script:A:b]", `d:5:35: providers[2]: provider "script:A:b" and "script:a/b", at d:5:13, would share the folder script_a_b | give one of them another id`),
	Entry(nil, "[script:a, script:a]", `d:5:23: providers[1]: provider "script:a" stands here a second time, first at d:5:13 | give one of them another id`),
	Entry(nil, "[{provider: openai, model: m, api_key: sk-secret}]", `d:5:42: providers[0]: a key does not stand in a file | name the environment variable that holds it: api_key_env: OPENAI_API_KEY`),
	Entry(nil, "[{provider: openai, model: m, api_key_env: sk-secret}]", `d:5:55: providers[0].api_key_env: want the name of an environment variable, not the key itself | name the environment variable that holds the key: OPENAI_API_KEY`),
	Entry(nil, "[{provider: openai, model: m, base_url: 'http://u:secret@h/'}]", `d:5:52: providers[0].base_url: an address holds no credentials | name an environment variable that holds the key: api_key_env`),
	Entry(nil, "[{provider: openai, model: m, base_url: localhost}]", `d:5:52: providers[0].base_url: want an http or https address | write it whole: http://127.0.0.1:11434/v1`),
	Entry(nil, "[{provider: openai, model: m, temperature: -1}]", `d:5:55: providers[0].temperature: want a number from 0`),
	Entry(nil, "[{provider: openai, model: m, top_p: 2}]", `d:5:49: providers[0].top_p: want a number from 0 to 1`),
	Entry(nil, "[{provider: openai, model: m, max_tokens: 0}]", `d:5:54: providers[0].max_tokens: want a whole number from 1`),
	Entry(nil, "[{provider: openai, model: m, price: {input: 1}}]", `d:5:49: providers[0].price: key "output" is missing | add it: output: ...`),
	Entry(nil, "[{provider: openai, model: m, price: {input: -1, output: 1e300}}]", "d:5:57: providers[0].price.input: want a price, from 0 | it is USD per million tokens\nd:5:69: providers[0].price.output: want a price, from 0 | it is USD per million tokens"),
	Entry(nil, "[{provider: openai, model: m, role: juge}]", `d:5:48: providers[0].role: unknown value "juge" | did you mean "judge"?`),
	Entry(nil, "[{provider: openai, model: m, limits: {rpm: 0}}]", `d:5:56: providers[0].limits.rpm: want a whole number from 1 | leave it out for no limit`),
	Entry(nil, "[{provider: openai, model: m, capabilities: lax}]", `d:5:56: providers[0].capabilities: unknown value "lax" | choices: strict`),
)

var _ = Describe("gates", func() {
	gates := func(text string) ([]dataset.Gate, string) {
		d, err := load(project(map[string]string{"datasets/d.yaml": head + "items: [{id: a, input: b}]\ngates: " + text + "\n"}))
		if err != nil {
			return nil, problems(err)
		}
		for i := range d.Gates {
			d.Gates[i].Pos = failure.Position{}
		}
		return d.Gates, ""
	}

	It("are limited by provider, tag and check in a list", func() {
		list, wrong := gates(`[{pass_rate: ">= 1", cost_usd: null}, {pass_rate: ">= 0.5", provider: "script:m", tag: t, check: c}]`)
		Expect(wrong).To(BeEmpty())
		Expect(list).To(Equal([]dataset.Gate{{Metric: "pass_rate", Bound: ">= 1"}, {Metric: "cost_usd", Off: true}, {Metric: "pass_rate", Bound: ">= 0.5", Provider: "script:m", Tag: "t", Check: "c"}}))
	})

	It("compare with a baseline, and look at repeats", func() {
		list, wrong := gates(`[{regression: {metric: score, max_drop: 0.02, confidence: 0.9, on_inconclusive: fail}, provider: "script:m"}, {regression: {metric: pass_rate, max_drop: 0}}, {pass_hat_3: ">= 0.8"}]`)
		Expect(wrong).To(BeEmpty())
		Expect(list).To(HaveLen(3))
		for i := range list[:2] {
			list[i].Regression.Pos = failure.Position{}
		}
		Expect(list).To(Equal([]dataset.Gate{
			{Metric: "regression", Provider: "script:m", Regression: &dataset.Regression{Metric: "score", MaxDrop: 0.02, Confidence: 0.9, FailInconclusive: true}},
			{Metric: "regression", Regression: &dataset.Regression{Metric: "pass_rate"}}, {Metric: "pass_hat_3", Bound: ">= 0.8"},
		}))
		list, wrong = gates("{regression: null}")
		Expect(wrong).To(BeEmpty())
		Expect(list).To(Equal([]dataset.Gate{{Metric: "regression", Off: true}}))
	})

	DescribeTable("are named where they are wrong", func(text, want string) {
		_, wrong := gates(text)
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "{pas_rate: '>= 1'}", `d:6:9: gates: unknown metric "pas_rate" | did you mean "pass_rate"?`),
		Entry(nil, "{pass_rate: 0.9}", `d:6:20: gates.pass_rate: want a bound, got a number | write how the metric is bound: ">= 0.9"`),
		Entry(nil, "{pass_rate: [1]}", `d:6:20: gates.pass_rate: want a bound such as ">= 0.95", got a list`),
		Entry(nil, "3", `d:6:8: gates: want a mapping of metrics to bounds, or a list of such, got a whole number`),
		Entry(nil, "[x]", `d:6:9: gates[0]: want a mapping such as {pass_rate: ">= 0.95", provider: ...}, got a string`),
		Entry(nil, "[{tag: x}]", `d:6:9: gates[0]: a gate names a metric | add it: pass_rate: ">= 0.95"`),
		Entry(nil, "[{pass_rate: '>= 1', provider: nobody}]", `d:6:39: gates[0].provider: unknown provider "nobody" | choices: script:m`),
		Entry(nil, "{regression: 1}", `d:6:21: gates.regression: want a mapping such as {metric: score, max_drop: 0.02}, got a whole number`),
		Entry(nil, "{regression: {metric: score}}", `d:6:21: gates.regression: key "max_drop" is missing | add it: max_drop: ...`),
		Entry(nil, "{regression: {metric: sore, max_drop: 2, confidence: 95, on_inconclusive: maybe}}", `d:6:30: gates.regression.metric: "sore" is not compared with a baseline | did you mean "score"?
d:6:46: gates.regression.max_drop: want a drop from 0 to below 1 | 0.02 is two points
d:6:61: gates.regression.confidence: want a level between 0.5 and 1 | 0.95 is usual
d:6:82: gates.regression.on_inconclusive: unknown value "maybe" | choices: fail, pass`),
		Entry(nil, "[{regression: {metric: score, max_drop: 0}}, {regression: {metric: score, max_drop: 0.1}}]", `d:6:54: gates: the gate on regression stands here a second time, first at d:6:10 | remove one of the two`),
		Entry(nil, "{pass_at_0: '>= 1'}", `d:6:9: gates: unknown metric "pass_at_0" | did you mean "pass_rate"?`),
		Entry(nil, "[{pass_rate: '>= 1'}, {pass_rate: '>= 2'}]", `d:6:31: gates: the gate on pass_rate stands here a second time, first at d:6:10 | remove one of the two`),
	)
})

var _ = Describe("items", func() {
	It("come from a list in any notation, in order and again", func() {
		for _, text := range []string{"items:\n- {id: a, input: x}\n- {id: b, input: y}\n", "items: [{id: a, input: x}, {id: b, input: y}]\n"} {
			d, err := load(project(map[string]string{"datasets/d.yaml": head + text}))
			Expect(err).NotTo(HaveOccurred())
			for range 2 {
				var ids []string
				for _, i := range collect(d) {
					ids = append(ids, fmt.Sprint(i.Index, " ", i.ID))
				}
				Expect(ids).To(Equal([]string{"1 a", "2 b"}))
			}
		}
	})

	It("come from files, with paths relative to them", func() {
		list := items("items: ../data/*.[jy]*\n", map[string]string{
			"data/a.yaml": "- {id: a, input: [{image: x.png}], workspace: w}\n", "data/b.json": `[{"id":"b","input":"y"}]`, "data/c.jsonl": "{\"id\":\"c\",\"input\":\"z\"}\r\n\n{\"id\":\"d\",\"input\":\"z\"}",
			"data/x.png": png, "data/w/": "", "data/.hidden.yaml": "[", "data/z.txt": "",
		})
		var got []string
		for _, i := range list {
			got = append(got, fmt.Sprint(i.Index, i.ID, " ", i.Pos))
		}
		Expect(got).To(Equal([]string{"1a data/a.yaml:1:3", "2b data/b.json:1:2", "3c data/c.jsonl:1:1", "4d data/c.jsonl:3:1"}))
		Expect(list[0].Workspace).To(Equal("data/w"))
	})

	It("are read for their own pattern though the project's folder looks like one", func() {
		dir := filepath.Join(project(nil), "[x]*")
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "d.yaml"), []byte(head+"items: q*.jsonl\n"), 0o644)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "q1.jsonl"), []byte(`{"id":"a","input":"b"}`), 0o644)).To(Succeed())
		d, err := dataset.Open(filepath.Join(dir, "d.yaml"), known)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Validate(nil)).To(Succeed())
		Expect(d.Count).To(Equal(1))
	})

	DescribeTable("that cannot be found", func(text, want string) {
		Expect(wrong(text, map[string]string{"datasets/empty.jsonl": "\n \n", "datasets/empty.yaml": "", "datasets/none.yaml": "[]", "datasets/map.yaml": "a: b\n", "datasets/none.json": "[ ]", "datasets/q.csv": "a", "datasets/q.txt": "a", "datasets/dir.yaml/": ""})).To(Equal(want))
	},
		Entry(nil, "items:\n", "d:5:7: items: want a list of items or the path of a .yaml, .json, .jsonl or .csv file, got null | write a value or leave the key out"),
		Entry(nil, "items: []\n", "d:5:8: items: the dataset has no items | write one: [{id: first, input: ...}]"),
		Entry(nil, "items: empty.jsonl\n", "datasets/empty.jsonl:1:1: the file has no items | write one, or remove the file from the dataset"),
		Entry(nil, "items: empty.yaml\n", "datasets/empty.yaml:1:1: empty: want a YAML document"),
		Entry(nil, "items: none.yaml\n", "datasets/none.yaml:1:1: the file has no items | write one, or remove the file from the dataset"),
		Entry(nil, "items: none.json\n", "datasets/none.json:1:1: the file has no items | write one, or remove the file from the dataset"),
		Entry(nil, "items: map.yaml\n", "datasets/map.yaml:1:1: want a list of items, got a mapping | begin each entry of the list with a dash"),
		Entry(nil, "items: no.jsonl\n", "d:5:8: items file datasets/no.jsonl does not exist | the path is relative to the file that names it"),
		Entry(nil, "items: no*.jsonl\n", "d:5:8: items: no file matches no*.jsonl | the pattern is relative to the file that names it"),
		Entry(nil, "items: 'no[.jsonl'\n", "d:5:8: items: \"no[.jsonl\" is no pattern | * and ? stand for characters of one name, [a-z] for one of several"),
		Entry(nil, "items: q.csv\n", "datasets/q.csv:1:1: the file has no items | write one, or remove the file from the dataset"),
		Entry(nil, "items: q.txt\n", "d:5:8: items: items file datasets/q.txt has an unknown extension | write a .yaml, .json, .jsonl or .csv file"),
		Entry(nil, "items: dir.yaml\n", "d:5:8: items: datasets/dir.yaml is no file"),
		Entry(nil, "items: d.yaml\n", "d:5:8: items: the dataset names itself as its items | name another file, or write the items as a list"),
		Entry(nil, "items: {langfuse: x}\n", "d:5:9: items: key \"langfuse\" is not read by this version | remove it; reading the file without it would run something else than it says"),
	)

	DescribeTable("that are wrong", func(item, want string) {
		Expect(wrong("items:\n- "+item+"\n", map[string]string{"datasets/w/x": "", "datasets/x.txt": "text"})).To(Equal(want))
	},
		Entry(nil, "x", `d:6:3: items[0]: want an item: {id: ..., input: ...}, got a string`),
		Entry(nil, "{id: a}", `d:6:3: items[0]: key "input" is missing | add it: input: ...`),
		Entry(nil, "{input: a}", `d:6:3: items[0]: key "id" is missing | add it: id: ...`),
		Entry(nil, "{id: 12, input: a}", `d:6:8: items[0].id: want a string, got a whole number | quote it: "12"`),
		Entry(nil, "{id: 012, input: a}", `d:6:8: 012 is a number with a leading zero | write 12, or quote it: "012"`),
		Entry(nil, `{id: "", input: a}`, `d:6:8: items[0].id: an id is empty`),
		Entry(nil, `{id: "a\tb", input: a}`, `d:6:8: items[0].id: an id holds no control characters and no line breaks`),
		Entry(nil, `{id: "`+strings.Repeat("é", 1001)+`", input: a}`, `d:6:8: items[0].id: an id has at most 1000 characters`),
		Entry(nil, "{id: a, input: ''}", `d:6:18: items[0].input: the input is empty | write what the user says`),
		Entry(nil, "{id: a, input: []}", `d:6:18: items[0].input: the input is empty | write what the user says`),
		Entry(nil, "{id: a, input: 5}", `d:6:18: items[0].input: want a string or a list of parts, got a whole number | quote it: "5"`),
		Entry(nil, "{id: a, input: [x]}", `d:6:19: items[0].input[0]: want a part: {text: ...}, {image: path} or {document: path}, got a string`),
		Entry(nil, "{id: a, input: [{text: 5}]}", `d:6:26: items[0].input[0].text: want a string, got a whole number | quote it: "5"`),
		Entry(nil, "{id: a, input: [{txt: x}]}", `d:6:20: items[0].input[0]: unknown key "txt" | did you mean "text"?`),
		Entry(nil, "{id: a, input: [{text: x, image: y}]}", `d:6:19: items[0].input[0]: a part is one thing, got 2 | write one of {text: ...}, {image: path}, {document: path}`),
		Entry(nil, "{id: a, input: [{}]}", `d:6:19: items[0].input[0]: a part is one thing, got 0 | write one of {text: ...}, {image: path}, {document: path}`),
		Entry(nil, "{id: a, input: [{image: no.png}]}", `d:6:27: file datasets/no.png does not exist`),
		Entry(nil, "{id: a, input: [{image: x.txt}]}", `d:6:27: items[0].input[0].image: datasets/x.txt is no JPEG, PNG, GIF or WebP image by its content | convert it`),
		Entry(nil, "{id: a, input: [{document: x.txt}]}", `d:6:30: items[0].input[0].document: datasets/x.txt is no PDF by its content | convert it`),
		Entry(nil, "{id: a, input: [{image: ../../x.png}]}", `d:6:27: items[0].input[0].image: ../../x.png leaves the project's folder | move it under the folder that holds echoeval.yaml or .git`),
		Entry(nil, "{id: a, input: [{image: 'ftp://h/x.png'}]}", `d:6:27: items[0].input[0].image: the address cannot be used | write a path, or an http or https address`),
		Entry(nil, "{id: a, input: [{image: 'data:x'}]}", `d:6:27: items[0].input[0].image: the address cannot be used | write a path, or an http or https address`),
		Entry(nil, "{id: a, input: b, workspace: no}", `d:6:32: items[0].workspace: workspace datasets/no does not exist | the path is relative to the file that names it`),
		Entry(nil, "{id: a, input: b, workspace: x.txt}", `d:6:32: items[0].workspace: workspace datasets/x.txt is no folder | the path is relative to the file that names it`),
		Entry(nil, "{id: a, input: b, workspace: ../..}", `d:6:32: items[0].workspace: ../.. leaves the project's folder | move it under the folder that holds echoeval.yaml or .git`),
		Entry(nil, "{id: a, input: b, timeout: 60}", `d:6:30: items[0].timeout: want a duration, got a whole number | write the unit: 60s`),
		Entry(nil, "{id: a, input: b, timeout: 0s}", `d:6:30: items[0].timeout: want a duration above 0 | write how long the item may take: 60s`),
		Entry(nil, "{id: a, input: b, repeat: 0}", `d:6:29: items[0].repeat: want a whole number from 1 to 10000`),
		Entry(nil, "{id: a, input: b, skip: true}", `d:6:27: items[0].skip: want a string, got true or false | quote it: "true"`),
		Entry(nil, "{id: a, input: b, skip: ' '}", `d:6:27: items[0].skip: the reason is empty | say why: skip: waits for the new form`),
		Entry(nil, "{id: a, input: b, group: ''}", `d:6:28: items[0].group: the group is empty`),
		Entry(nil, "{id: a, input: b, threshold: 2}", `d:6:32: items[0].threshold: want a fraction from 0 to 1`),
		Entry(nil, "{id: a, input: b, tags: [a b]}", `d:6:28: items[0].tags[0]: "a b" is no tag | write one word; "!" before it means "without" on the command line`),
		Entry(nil, "{id: a, input: b, tags: ['!x']}", `d:6:28: items[0].tags[0]: "!x" is no tag | write one word; "!" before it means "without" on the command line`),
		Entry(nil, "{id: a, input: b, providers: [script:n]}", `d:6:33: items[0].providers[0]: unknown provider "script:n" | did you mean "script:m"?`),
		Entry(nil, "{id: a, input: b, providers: []}", `d:6:32: items[0].providers: the item is for no provider | name one, leave the key out, or say why: skip: ...`),
		Entry(nil, "{id: a, input: b, vars: [1]}", `d:6:27: items[0].vars: want a mapping, got a list`),
		Entry(nil, "{id: a, input: b, drop: [nothing]}", `d:6:28: items[0].drop[0]: nothing inherited is named "nothing" | choices: iteration-limit, role-content, tool-call-pairing`),
		Entry(nil, "{id: a, input: b, drop: [role-contnt]}", `d:6:28: items[0].drop[0]: nothing inherited is named "role-contnt" | did you mean "role-content"?`),
		Entry(nil, "{id: a, input: b, script: {text: x}}", `d:6:29: items[0].script: want a list of steps such as {text: ...} or {call: {name: ..., args: {...}}}, got a mapping | begin each entry of the list with a dash`),
		Entry(nil, "{id: a, input: b, script: [x]}", `d:6:30: items[0].script[0]: want a step such as {text: ...} or {call: {name: ..., args: {...}}}, got a string`),
		Entry(nil, "{id: a, input: b, script: [{text: x, call: {name: y}}]}", `d:6:30: items[0].script[0]: a step is one answer, got 2 | write one of {text: ...}, {call: {...}}, {calls: [...]}`),
		Entry(nil, "{id: a, input: b, script: [{call: {args: {}}}]}", `d:6:37: items[0].script[0].call: key "name" is missing | add it: name: ...`),
		Entry(nil, "{id: a, input: b, script: [{call: {name: x, args: [1]}}]}", `d:6:53: items[0].script[0].call.args: want a mapping of arguments, got a list`),
		Entry(nil, "{id: a, input: b, script: [{calls: {name: x}}]}", `d:6:38: items[0].script[0].calls: want a list of calls, got a mapping | begin each entry of the list with a dash`),
	)

	DescribeTable("whose checks are wrong", func(check, want string) {
		Expect(wrong("items:\n- {id: a, input: b, checks: [" + check + "]}\n")).To(Equal(want))
	},
		Entry(nil, "contans", `d:6:30: items[0].checks[0]: unknown check "contans" | did you mean "contains"?`),
		Entry(nil, "{contans: x}", `d:6:31: items[0].checks[0]: unknown check "contans" | did you mean "contains"?`),
		Entry(nil, "{contains: x, wieght: 2}", `d:6:44: items[0].checks[0]: unknown key "wieght" | did you mean "weight"?`),
		Entry(nil, "{contains: x, regex: y}", `d:6:44: items[0].checks[0]: a check has one kind, not both "contains" and "regex" | write two entries in the list of checks`),
		Entry(nil, "{weight: 2}", `d:6:30: items[0].checks[0]: a check names its kind | add it: contains: ...`),
		Entry(nil, "{contains: x, weight: -1}", `d:6:52: items[0].checks[0].weight: want a weight from 0 | 0 reports without counting`),
		Entry(nil, "{contains: x, threshold: 1.1}", `d:6:55: items[0].checks[0].threshold: want a fraction from 0 to 1`),
		Entry(nil, "{contains: x, required: 1}", `d:6:54: items[0].checks[0].required: want true or false, got a whole number`),
		Entry(nil, "{contains: x, name: ''}", `d:6:50: items[0].checks[0].name: a name is empty`),
		Entry(nil, "{not: {contains: x, weight: 2}}", `d:6:50: items[0].checks[0].not: weight stands within not | put it beside not`),
		Entry(nil, "{not: {not: {contains: x}}}", `d:6:37: items[0].checks[0].not: not within not | leave both out`),
		Entry(nil, "{not: contans}", `d:6:36: items[0].checks[0].not: unknown check "contans" | did you mean "contains"?`),
		Entry(nil, "5", `d:6:30: items[0].checks[0]: want a check: {contains: ...}, or a word such as no_tool_calls, got a whole number`),
		Entry(nil, "{contains: x, name: y}, {regex: x, name: y}", `d:6:54: items[0].checks: a check named "y" stands here a second time, first at d:6:30 | give it another name: name: ...`),
	)

	DescribeTable("whose invariants are wrong", func(invariant, want string) {
		Expect(wrong("items:\n- {id: a, input: b, invariants: [" + invariant + "]}\n")).To(Equal(want))
	},
		Entry(nil, "role-contnt", `d:6:34: items[0].invariants[0]: unknown invariant "role-contnt" | did you mean "role-content"?`),
		Entry(nil, "{use: role-contnt}", `d:6:40: items[0].invariants[0]: unknown invariant "role-contnt" | did you mean "role-content"?`),
		Entry(nil, "{max: 5}", `d:6:34: items[0].invariants[0]: key "use" is missing | name it: {use: iteration-limit, ...}`),
		Entry(nil, "{use: role-content, severity: eror}", `d:6:64: items[0].invariants[0].severity: unknown severity "eror" | did you mean "error"?`),
		Entry(nil, "[x]", `d:6:34: items[0].invariants[0]: want an invariant: its name, or {use: name, ...}, got a list`),
	)

	It("are told apart by their ids, with both places", func() {
		Expect(wrong("items:\n- {id: a, input: b}\n- {id: É, input: b}\n- {id: c, input: b}\n- {id: é, input: b}\n- {id: a, input: b}\n- {id: A, input: b}\n")).To(Equal(strings.Join([]string{
			`d:9:8: items[3].id: item "é" differs only in case from "É" at d:7:8 | file names need more than case to differ: give one of them another id`,
			`d:10:8: items[4].id: item "a" stands here a second time, first at d:6:8 | give each item its own id`,
			`d:11:8: items[5].id: item "A" differs only in case from "a" at d:6:8 | file names need more than case to differ: give one of them another id`}, "\n")))
	})

	It("may have any text as id", func() {
		list := items("items:\n- {id: \"🙂\", input: b}\n- {id: a/b, input: b}\n- {id: \"..\", input: b}\n- {id: " + strings.Repeat("x", 300) + ", input: b}\n- {id: \" y \", input: b}\n")
		var names []string
		for _, i := range list {
			names = append(names, dataset.FileName(i.ID))
		}
		Expect(names).To(HaveLen(5))
		slices.Sort(names)
		Expect(slices.Compact(names)).To(HaveLen(5))
	})

	It("are at most 1 MiB long, and the next ones are still looked at", func() {
		long := strings.Repeat("x", dataset.MaxItem)
		Expect(wrong("items: q.jsonl\n", map[string]string{"datasets/q.jsonl": `{"id":"a","input":"` + long + "\"}\n{\"id\":\"b\"}\n"})).To(Equal(
			"datasets/q.jsonl:1:1: longer than 1048576 bytes | move long texts into files and name them\ndatasets/q.jsonl:2:1: key \"input\" is missing | add it: input: ..."))
		Expect(wrong("items:\n- id: a\n  input: " + long + "\n- id: b\n")).To(Equal(
			"d:6:1: longer than 1048576 bytes | move long texts into files and name them\nd:8:3: items[1]: key \"input\" is missing | add it: input: ..."))
	})

	It("report a hundred problems and count the rest", func() {
		var b strings.Builder
		for i := range 250 {
			fmt.Fprintf(&b, "{\"id\":\"i%d\"}\n", i)
		}
		lines := strings.Split(wrong("items: q.jsonl\n", map[string]string{"datasets/q.jsonl": b.String()}), "\n")
		Expect(lines).To(HaveLen(101))
		Expect(lines[100]).To(Equal("and 150 more problems"))
	})

	It("do not follow symbolic links out of the project", func() {
		outside := project(map[string]string{"x.png": png, "w/x": "x"})
		dir := project(map[string]string{"datasets/d.yaml": head + "items:\n- {id: a, input: [{image: x.png}]}\n- {id: b, input: b, workspace: w}\n"})
		Expect(os.Symlink(filepath.Join(outside, "x.png"), filepath.Join(dir, "datasets", "x.png"))).To(Succeed())
		Expect(os.Symlink(filepath.Join(outside, "w"), filepath.Join(dir, "datasets", "w"))).To(Succeed())
		_, err := load(dir)
		Expect(problems(err)).To(Equal("d:6:27: file datasets/x.png cannot be read\n" +
			"d:7:32: items[1].workspace: workspace datasets/w leaves the project's folder through a symbolic link | the path is relative to the file that names it"))
	})

	It("do not wait for pipes, and bound what they read", func() {
		dir := project(map[string]string{"datasets/d.yaml": head + "items:\n- {id: a, input: [{image: pipe.png}, {image: big.png}, {document: x.pdf}]}\n", "datasets/x.pdf": "%PDF-1.7 x"})
		big, err := os.Create(filepath.Join(dir, "datasets", "big.png"))
		Expect(err).NotTo(HaveOccurred())
		Expect(big.Truncate(dataset.MaxMedia + 1)).To(Succeed())
		Expect(big.Close()).To(Succeed())
		Expect(os.Mkdir(filepath.Join(dir, "datasets", "pipe.png"), 0o755)).To(Succeed())
		_, err = load(dir)
		Expect(problems(err)).To(Equal("d:6:27: file datasets/pipe.png is no file\nd:6:46: items[0].input[1].image: datasets/big.png is longer than 20 MiB | make it smaller or give its address"))
	})

	It("are handed to the caller's own checks, whose problems come with the others", func() {
		dir := project(map[string]string{"datasets/d.yaml": head + "items:\n- {id: a, input: b, checks: [{regex: '('}]}\n- {id: b}\n"})
		options := known
		options.Dir = dir
		d, err := dataset.Open("datasets/d.yaml", options)
		Expect(err).NotTo(HaveOccurred())
		var seen []string
		err = d.Validate(func(i *dataset.Item, p *strict.Problems) {
			if i.Partial {
				seen = append(seen, i.ID+" in part")
				return
			}
			seen = append(seen, i.ID)
			p.Key("checks").At(0).Add(i.Checks[0].Args.Pos(), "close the bracket", "no regular expression")
		})
		Expect(seen).To(Equal([]string{"a", "b in part"}))
		Expect(problems(err)).To(Equal("d:6:38: items[0].checks[0]: no regular expression | close the bracket\nd:7:3: items[1]: key \"input\" is missing | add it: input: ..."))
	})

	It("that are wrong are given as errors, and the others follow", func() {
		dir := project(map[string]string{"datasets/d.yaml": head + "items:\n- {id: a}\n- {id: b, input: c}\n"})
		d, err := dataset.Open(filepath.Join(dir, "datasets/d.yaml"), known)
		Expect(err).NotTo(HaveOccurred())
		var got []string
		for i, err := range d.Items() {
			if err != nil {
				Expect(i).To(BeNil())
				got = append(got, "wrong")
				continue
			}
			got = append(got, i.ID)
		}
		Expect(got).To(Equal([]string{"wrong", "b"}))
	})
})
