package promptfoo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/imports/promptfoo"
)

const config = "promptfooconfig.yaml"

// from imports files that are written to a folder first: name and text by turns, the configuration first.
func from(files ...string) (imports.Result, error) {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "source")
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(files[i]))
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(files[i+1]), 0o644)).To(Succeed())
	}
	return promptfoo.Import(files[0], []byte(files[1]), promptfoo.Options{Name: "support", Vendors: vendors, Folder: imports.Folder{Dir: dir}})
}

// text is the report and all files of an import.
func text(r imports.Result) string {
	out := r.Report.Text()
	for _, f := range r.Files {
		out += "\n=== " + f.Path + "\n" + string(f.Data)
	}
	return out
}

// of imports a configuration of one prompt, one provider and what is given.
func of(rest string) imports.Result {
	GinkgoHelper()
	r, err := from(config, "prompts: ['{{q}}']\nproviders: [openai:gpt-4o]\n"+rest)
	Expect(err).NotTo(HaveOccurred())
	_, err = valid(r)
	Expect(err).NotTo(HaveOccurred(), text(r))
	return r
}

func notes(r imports.Result, class imports.Class) []string {
	list := []string{}
	for _, n := range r.Report.Notes() {
		if n.Class == class {
			list = append(list, n.Pos.String()+": "+n.Text)
		}
	}
	return list
}

var _ = Describe("a configuration", func() {
	It("of everything at once", func() {
		folder := filepath.Join("testdata", "support")
		data, err := os.ReadFile(filepath.Join(folder, config))
		Expect(err).NotTo(HaveOccurred())
		dir, err := filepath.Abs(folder)
		Expect(err).NotTo(HaveOccurred())
		r, err := promptfoo.Import(config, data, promptfoo.Options{Name: "support", Vendors: vendors, Folder: imports.Folder{Dir: dir}})
		Expect(err).NotTo(HaveOccurred())
		compiled, err := valid(r)
		Expect(err).NotTo(HaveOccurred(), text(r))
		Expect(compiled).To(BeNumerically(">", 10))
		suite.Golden("support.golden", []byte(text(r)))
	})

	It("with prompts that differ in what the system says has a column for each prompt and provider", func() {
		r, err := from(config, `
prompts: [file://a.json, file://b.json]
providers: [openai:gpt-4o, openai:gpt-4o-mini, {id: openai:o3, label: Slow One}]
tests: [{vars: {q: hi}, assert: [{type: contains, value: x}]}]
`, "a.json", `[{"role":"system","content":"Be brief."},{"role":"user","content":"{{q}}"}]`,
			"b.json", `[{"role":"system","content":"Be {{how}}."},{"role":"user","content":"{{ q }}"}]`)
		Expect(err).NotTo(HaveOccurred())
		_, err = valid(r)
		Expect(err).NotTo(HaveOccurred(), text(r))
		Expect(r.Report.Summary).To(ConsistOf("1 test -> 1 item; prompts 2 x providers 3 -> 6 providers"))
		suite.Golden("prompts.golden", []byte(text(r)))
	})

	It("with prompts that differ in what the user says has an item for each, in one group", func() {
		r, err := from(config, `
prompts: [file://p.txt]
providers: [openai:gpt-4o]
defaultTest: {vars: {tone: kind}, assert: [{type: icontains, value: "{{tone}}", metric: Tone}]}
tests:
  - {vars: {q: [one, two]}, assert: [{type: not-contains, value: "{{q}}!", metric: Tone}]}
`, "p.txt", "Say {{q}}, {{tone}}.\n---\nSing {{q}}.\n")
		Expect(err).NotTo(HaveOccurred())
		_, err = valid(r)
		Expect(err).NotTo(HaveOccurred(), text(r))
		suite.Golden("questions.golden", []byte(text(r)))
	})

	It("with scenarios multiplies them", func() {
		r := of(`
scenarios:
  - config: [{vars: {lang: French}}, {vars: {lang: German}}]
    tests: [{vars: {q: "Hello in {{lang}}"}, assert: [{type: contains, value: "{{lang}}"}]}, {description: Bye, vars: {q: bye}, assert: [{type: equals, value: 3}]}]
`)
		Expect(r.Report.Items).To(Equal(4))
		Expect(string(r.Files[0].Data)).To(And(ContainSubstring("q: Hello in German"), ContainSubstring("id: bye\n"), ContainSubstring("id: bye-2\n")))
	})

	It("reads its tests from tables", func() {
		r, err := from(config, "prompts: ['{{q}}']\nproviders: [openai:gpt-4o]\ntests: [file://t.csv, file://t.jsonl, more/*.yaml]\n",
			"t.csv", "\ufeffq,__expected1,__expected2,__description,__metadata:area,__metadata:tags[],__threshold,__oops\r\n\"a \"\"b\"\"\nc\",contains: x,\"icontains-any: p, \"\"q,r\"\"\",First,billing,\"a,b\",0.5,\r\nonly,javascript: output.length,,,,,,1\r\nragged\r\n",
			"t.jsonl", `{"vars":{"q":"from jsonl"},"assert":[{"type":"regex","value":"\\d{2}"}]}`+"\n",
			"more/x.yaml", "- vars: {q: from yaml}\n  assert: [{type: starts-with, value: A}]\n")
		Expect(err).NotTo(HaveOccurred())
		_, err = valid(r)
		Expect(err).NotTo(HaveOccurred(), text(r))
		suite.Golden("tables.golden", []byte(text(r)))
	})
})

var _ = DescribeTable("a prompt that cannot be asked as it is leaves its items skipped, with the reason", func(prompts, vars, skip string) {
	r, err := from(config, "prompts: "+prompts+"\nproviders: [openai:gpt-4o]\ntests: [{vars: {"+vars+"}}]\n")
	Expect(err).NotTo(HaveOccurred())
	_, err = valid(r)
	Expect(err).NotTo(HaveOccurred(), text(r))
	Expect(string(r.Files[0].Data)).To(MatchRegexp(`(?m)^ +skip: "?` + skip))
},
	Entry(nil, `['']`, ``, `its prompt is empty`),
	Entry(nil, `['{{q}}']`, `q: ''`, `its prompt is empty`),
	Entry(nil, `['{% if q %}a{% endif %}']`, `q: x`, `its prompt has the block \{% if %}`),
	Entry(nil, `['{{q | upper}}']`, `q: x`, `its prompt has the filter upper`),
	Entry(nil, `['{{q[0]}}']`, `q: [x, y]`, `its prompt has an index into a list`),
	Entry(nil, `['{{env.HOME}}']`, `q: x`, `its prompt has a variable of the environment`),
	Entry(nil, `[exec:./make.sh]`, `q: x`, `its prompt is made by code`),
	Entry(nil, `[langfuse://support:3]`, `q: x`, `its prompt is kept by a service`),
	Entry(nil, `[file://absent.txt]`, `q: x`, `its prompt cannot be read: absent.txt does not exist`),
	Entry(nil, `['[{"role":"user","content":[{"type":"image_url","image_url":{"url":"{{q}}"}}]}]']`, `q: cat.png`, `an image of its prompt is no address`),
	Entry(nil, `['[{"role":"user","content":"{{p}}"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]']`, `p: ''`, `a message of its prompt is empty`),
	Entry(nil, `['{{q}}']`, `q: file://cat.png`, `a variable holds an image`),
	Entry(nil, `['{{q.a}}']`, `q: {b: 1}`, `its prompt uses \{\{q.a}}, which is not defined`),
)

var _ = DescribeTable("a prompt that can be asked", func(prompts, vars, want string) {
	r, err := from(config, "prompts: "+prompts+"\nproviders: [openai:gpt-4o]\ntests: [{vars: {"+vars+"}}]\n")
	Expect(err).NotTo(HaveOccurred())
	_, err = valid(r)
	Expect(err).NotTo(HaveOccurred(), text(r))
	Expect(string(r.Files[0].Data)).To(And(ContainSubstring(want), Not(ContainSubstring("skip:"))))
},
	Entry(nil, `['a {{- q -}} b {# c #}d']`, `q: x`, "input: a{{q}}b d\n"),
	Entry(nil, `['{% raw %}{{x}}{% endraw %} {{q}}']`, `q: x`, `input: "\\{{x}} {{q}}"`),
	Entry(nil, `'{{q}}'`, `q: {a: [1]}`, `vars: {q: "{\"a\":[1]}"}`),
	Entry(nil, `['{{q.a}}']`, `q: {a: 1}`, `vars: {q: {a: 1}}`),
	Entry(nil, `['{{q}}']`, `q: 1.50`, `vars: {q: "1.5"}`),
	Entry(nil, `['[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"{{q}}"}]']`, `q: c`, "  messages:\n    - {role: user, content: a}\n    - {role: assistant, content: b}\n  input: \"{{q}}\"\n"),
	Entry(nil, `['[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"https://h.example/{{q}}"}}]}]']`, `q: a.png`, `input: [{text: See}, {image: "https://h.example/{{q}}"}]`),
)

var _ = It("many tests stand in a file of their own", func() {
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"vars":{"q":"number %d %s"},"assert":[{"type":"contains","value":"%d"}]}`+"\n", i, strings.Repeat("x", 1000), i)
	}
	r, err := from(config, "prompts: ['{{q}}']\nproviders: [openai:gpt-4o]\ntests: file://t.jsonl\n", "t.jsonl", lines.String())
	Expect(err).NotTo(HaveOccurred())
	Expect(r.Files).To(HaveLen(2))
	Expect(len(r.Files[0].Data)).To(BeNumerically("<", 1000))
	Expect(string(r.Files[0].Data)).To(ContainSubstring("\nitems: support.items.yaml\n"))
	Expect(r.Report.Items).To(Equal(3000))
	_, err = valid(r)
	Expect(err).NotTo(HaveOccurred())
})

var _ = DescribeTable("an assertion becomes a check", func(assertion, check string) {
	r := of("tests: [{vars: {q: hi, list: a}, assert: [" + assertion + "]}]\n")
	Expect(string(r.Files[0].Data)).To(ContainSubstring("      - " + check + "\n"))
	Expect(r.Report.Sum()).To(Equal(imports.Count{Type: "all", Total: 1, Converted: 1}))
},
	Entry(nil, `{type: contains, value: a b}`, `contains: a b`),
	Entry(nil, `{type: contains, value: 5}`, `contains: "5"`),
	Entry(nil, `{type: not-icontains, value: x, weight: 2, metric: m}`, `{not: {contains: {value: x, ignore_case: true}}, name: m, weight: 2}`),
	Entry(nil, `{type: contains-all, value: "a, b"}`, `contains_all: [a, b]`),
	Entry(nil, `{type: icontains-any, value: [a, 1]}`, `contains_any: {values: [a, "1"], ignore_case: true}`),
	Entry(nil, `{type: equals, value: {a: [1, null]}}`, `json_path: {path: "$", equals: {a: [1, null]}}`),
	Entry(nil, `{type: equals, value: "{{ q }}"}`, `equals: "{{q}}"`),
	Entry(nil, `{type: equals, value: "{% raw %}{{ q }}{% endraw %}"}`, `equals: "\\{{ q }}"`),
	Entry(nil, `{type: starts-with, value: A}`, `starts_with: A`),
	Entry(nil, `{type: regex, value: '\d+'}`, `regex: "\\d+"`),
	Entry(nil, `{type: is-json}`, `json`),
	Entry(nil, `{type: not-is-json}`, `not: json`),
	Entry(nil, `{type: contains-json}`, `json: {fence: true}`),
	Entry(nil, `{type: is-json, value: {type: object, required: [a]}}`, `json_schema: {type: object, required: [a]}`),
	Entry(nil, `{type: contains-json, value: '{"type": "object"}'}`, `json_schema: {schema: {type: object}, fence: true}`),
	Entry(nil, `{type: latency, threshold: 1500}`, `latency: {max: "1500ms"}`),
	Entry(nil, `{type: cost, threshold: 0.05, weight: 0}`, `{cost: {max_usd: 0.05}, weight: 0}`),
	Entry(nil, `{type: word-count, value: {min: 2, max: 5}}`, `regex: "^\\s*(?:\\S+\\s+){1,4}\\S+\\s*$"`),
)

var _ = DescribeTable("an assertion that asks a model becomes a check by a judge", func(assertion, check, judges string) {
	r := of("defaultTest: {options: {provider: openai:gpt-4.1}}\ntests: [{vars: {q: hi, list: a}, assert: [" + assertion + "]}]\n")
	data := string(r.Files[0].Data)
	oneLine := func(s string) string { return strings.Join(strings.Fields(s), " ") } // what is long stands on several
	Expect(oneLine(data)+" ").To(ContainSubstring(" - "+oneLine(check)+" "), text(r))
	Expect(data).To(ContainSubstring(judges), text(r))
	Expect(r.Report.Sum()).To(Equal(imports.Count{Type: "all", Total: 1, Converted: 1}))
	Expect(notes(r, imports.Changed)).To(ContainElement(ContainSubstring("the judge has instructions of its own")))
	compiled, err := valid(r)
	Expect(err).NotTo(HaveOccurred(), text(r))
	Expect(compiled).To(Equal(1))
},
	Entry(nil, `{type: llm-rubric, value: Is kind}`, `{judge: {rubric: Is kind, verdict: pass, provider: judge}, threshold: 1}`, `{id: judge, provider: openai, model: gpt-4.1, role: judge}`),
	Entry(nil, `{type: llm-rubric, value: "Answers {{ q }}", threshold: 0.6, weight: 2, metric: m}`, `{judge: {rubric: "Answers {{q}}", provider: judge}, name: m, threshold: 0.6, weight: 2}`, ""),
	Entry(nil, `{type: llm-rubric, value: x, threshold: 0}`, `{judge: {rubric: x, verdict: pass, provider: judge}, threshold: 1}`, ""),
	Entry(nil, `{type: not-llm-rubric, value: Is rude}`, `{not: {judge: {rubric: Is rude, verdict: pass, provider: judge}}, threshold: 1}`, ""),
	Entry(nil, `{type: llm-rubric, value: "Say: \"no\", and\nnothing else: {a}"}`, "judge:\n            rubric: |-\n              Say: \"no\", and\n              nothing else: {a}\n            verdict: pass\n            provider: judge\n          threshold: 1", ""),
	Entry(nil, `{type: llm-rubric, value: x, provider: {id: "openai:o3", config: {temperature: 0}}}`, `{judge: {rubric: x, verdict: pass, provider: judge}, threshold: 1}`, `{id: judge, provider: openai, model: o3, temperature: 0, role: judge}`),
	Entry(nil, `{type: llm-rubric, value: x, provider: {text: "openai:o3", embedding: "openai:embedding:x"}}`, `{judge: {rubric: x, verdict: pass, provider: judge}, threshold: 1}`, `{id: judge, provider: openai, model: o3, role: judge}`),
	Entry(nil, `{type: model-graded-closedqa, value: Names a book}`, `{judge: {rubric: Names a book, verdict: pass, provider: judge}, threshold: 1}`, ""),
	Entry(nil, `{type: g-eval, value: Is coherent}`, `{judge: {rubric: Is coherent, provider: judge}, threshold: 0.7}`, ""),
	Entry(nil, `{type: g-eval, value: [Is coherent, Is short], threshold: 0.9}`, `{judge: {criteria: [Is coherent, Is short], provider: judge}, threshold: 0.9}`, ""),
	Entry(nil, `{type: factuality, value: "Paris, {{list}}"}`, "judge:\n            rubric: States nothing that disagrees with the facts of the reference. Saying less or more than it is right, and so is every difference of wording.\n            reference: Paris, {{list}}\n            verdict: pass\n            provider: judge\n          threshold: 1", ""),
	Entry(nil, `{type: answer-relevance, threshold: 0.8}`, "judge: {rubric: \"Answers the question that was asked, and speaks of nothing else.\", provider: judge}\n        threshold: 0.8", ""),
)

var _ = DescribeTable("an assertion that compares vectors becomes a check by vectors, and its cosine a score", func(assertion, check, embedder string) {
	r := of("tests: [{vars: {q: hi, list: a}, assert: [" + assertion + "]}]\n")
	Expect(string(r.Files[0].Data)).To(And(ContainSubstring("      - "+check+"\n"), ContainSubstring("  - "+embedder+"\n")), text(r))
	Expect(r.Report.Sum()).To(Equal(imports.Count{Type: "all", Total: 1, Converted: 1}))
	compiled, err := valid(r)
	Expect(err).NotTo(HaveOccurred(), text(r))
	Expect(compiled).To(Equal(1))
},
	Entry(nil, `{type: similar, value: "We {{list}}", threshold: 0.8}`, `{embedding_similarity: {reference: "We {{list}}", provider: near}, threshold: 0.9}`, `{id: near, provider: openai, model: text-embedding-3-large, role: embed}`),
	Entry(nil, `{type: "similar:cosine", value: [a, b]}`, `{embedding_similarity: {reference: [a, b], provider: near}, threshold: 0.875}`, `{id: near, provider: openai, model: text-embedding-3-large, role: embed}`),
	Entry(nil, `{type: not-similar, value: a, provider: "openai:embedding:text-embedding-3-small"}`, `{not: {embedding_similarity: {reference: a, provider: near}}, threshold: 0.875}`, `{id: near, provider: openai, model: text-embedding-3-small, role: embed}`),
	Entry(nil, `{type: similar, value: a, provider: {text: "openai:o3", embedding: {id: "openai:embeddings:ada"}}}`, `{embedding_similarity: {reference: a, provider: near}, threshold: 0.875}`, `{id: near, provider: openai, model: ada, role: embed}`),
)

var _ = It("a grader that nobody names is the one that promptfoo takes, and is said", func() {
	r := of("tests:\n  - {vars: {q: hi}, assert: [{type: llm-rubric, value: a}]}\n  - {vars: {q: ho}, options: {provider: \"openai:o3\"}, assert: [{type: llm-rubric, value: a}, {type: llm-rubric, value: b, provider: \"openai:gpt-4.1\"}]}\n")
	Expect(string(r.Files[0].Data)).To(And(
		ContainSubstring("{id: judge, provider: openai, model: gpt-4o, role: judge}"), ContainSubstring("{id: judge-2, provider: openai, model: o3, role: judge}"), ContainSubstring("{id: judge-3, provider: openai, model: gpt-4.1, role: judge}"),
		ContainSubstring("{judge: {rubric: a, verdict: pass, provider: judge}, threshold: 1}"), ContainSubstring("{judge: {rubric: a, verdict: pass, provider: judge-2}, threshold: 1}"), ContainSubstring("{judge: {rubric: b, verdict: pass, provider: judge-3}, threshold: 1}")), text(r))
	Expect(notes(r, imports.Changed)).To(ContainElement(ContainSubstring("no provider grades")))
	_, err := valid(r)
	Expect(err).NotTo(HaveOccurred(), text(r))
})

var _ = DescribeTable("an assertion that becomes none is counted and said", func(assertion string, class imports.Class, said string) {
	r := of("tests: [{vars: {q: hi, list: [a, b]}, assert: [{type: contains, value: y},\n " + assertion + "]}]\n")
	sum := r.Report.Sum()
	Expect(sum.Converted + sum.Todo + sum.Lost).To(Equal(sum.Total))
	Expect(sum.Todo + sum.Lost).To(BeNumerically(">", 0))
	if class == imports.Todo {
		Expect(sum.Todo).To(Equal(1))
	}
	Expect(notes(r, class)).To(ContainElement(MatchRegexp(`^`+config+`:4:\d+: `+said)), text(r))
	Expect(string(r.Files[0].Data)).To(MatchRegexp(`(?m)^ +# (lost|to do|wrong) \(` + config + `:4\): `))
},
	Entry(nil, `{type: llm-rubric}`, imports.Wrong, "llm-rubric: an assertion without a text"),
	Entry(nil, `{type: llm-rubric, value: kind, provider: "python:grade.py"}`, imports.Lost, "assertions by a grader that this version does not have"),
	Entry(nil, `{type: llm-rubric, value: "{{ q | upper }}"}`, imports.Lost, "assertions with the filter upper"),
	Entry(nil, `{type: answer-relevance}`, imports.Wrong, "answer-relevance: an assertion that cannot fail"),
	Entry(nil, `{type: similar}`, imports.Wrong, "similar: an assertion without a text"),
	Entry(nil, `{type: "similar:dot", value: x, threshold: 0.8}`, imports.Lost, "similar:dot"),
	Entry(nil, `{type: similar, value: x, provider: "voyage:embedding:v"}`, imports.Lost, "assertions by an embedder that this version does not have"),
	Entry(nil, `{type: context-recall, value: x, threshold: 0.8}`, imports.Lost, "context-recall"),
	Entry(nil, `{type: select-best, value: x}`, imports.Lost, "select-best"),
	Entry(nil, `{type: javascript, value: output.length}`, imports.Todo, "javascript"),
	Entry(nil, `{type: equals, value: file://check.py}`, imports.Todo, "assertions whose value is code"),
	Entry(nil, `{type: contains, value: x, transform: output.text}`, imports.Todo, "assertions on a transformed answer"),
	Entry(nil, `{type: contians, value: x}`, imports.Wrong, `unknown assertion type "contians"`),
	Entry(nil, `{value: x}`, imports.Wrong, "an assertion without a type"),
	Entry(nil, `{type: contains, value: ""}`, imports.Wrong, "contains: an assertion that cannot fail"),
	Entry(nil, `{type: contains}`, imports.Wrong, "contains: an assertion without"),
	Entry(nil, `{type: regex, value: "(?=x)"}`, imports.Lost, "regex: bad expression"),
	Entry(nil, `{type: contains, value: "{{ q | upper }}"}`, imports.Lost, "assertions with the filter upper"),
	Entry(nil, `{type: is-json, value: {typ: object}}`, imports.Lost, "is-json: JSON Schema has no keyword"),
	Entry(nil, `{type: levenshtein, value: x, threshold: 3}`, imports.Lost, "levenshtein"),
	Entry(nil, `{type: "trajectory:tool-used", value: search}`, imports.Lost, "trajectory:tool-used"),
	Entry(nil, `{type: assert-set, threshold: 0.5, assert: [{type: contains, value: x}]}`, imports.Lost, "assertions in an assert-set with a threshold"),
	Entry(nil, `{$ref: "#/assertionTemplates/x"}`, imports.Lost, "an assertion by reference"),
)

var _ = DescribeTable("what promptfoo lets pass is said", func(rest, said string) {
	r := of(rest)
	Expect(notes(r, imports.Wrong)).To(ContainElement(ContainSubstring(said)), text(r))
},
	Entry(nil, "test: []\ntests: [{vars: {q: a}}]", config+`:3:1: unknown key "test" of a configuration`),
	Entry(nil, "tests: [{vars: {q: a}, asserts: []}]", config+`:3:24: unknown key "asserts" of a test`),
	Entry(nil, "tests: [{vars: {q: a}, assert: [{type: contains, value: a, metrics: x}]}]", `unknown key "metrics" of an assertion`),
	Entry(nil, "tests: [{vars: {p: a}, assert: [{type: contains, value: a}]}, {vars: {q: b}, assert: [{type: contains, value: a}]}]", config+`:3:9: variable "q" of the prompt is not defined`),
	Entry(nil, "tests: [{vars: {q: a}, assert: [{type: contains, value: '{{who}}'}]}]", `variable "who" of an assertion is not defined`),
	Entry(nil, "tests: [{description: x, vars: {q: a}}, {description: x, vars: {q: b}}]", "a description that stands twice"),
	Entry(nil, "tests: [{vars: {q: a}}, {vars: {q: a}}]", "a test that stands twice"),
	Entry(nil, "tests: [{vars: {q: a}}]", "a test without assertions"),
	Entry(nil, "tests: [{vars: {q: a}, threshold: 7}]", "a threshold that no mean can be compared with"),
	Entry(nil, "tests: [{vars: {q: a}, assert: [{type: contains, value: a, threshold: 0.5}]}]", "a threshold on contains, which has no effect"),
	Entry(nil, "tests: [{vars: {q: a, q: b}}]", `key "q" stands here a second time`),
	Entry(nil, "tests: [{vars: {q: file://../../secret.txt}}]", "it lies outside of the source's folder"),
	Entry(nil, "tests: [{vars: {q: file:///etc/passwd}}]", "it lies outside of the source's folder"),
	Entry(nil, "tests: [{vars: {q: a}}, file://nowhere.yaml]", "nowhere.yaml does not exist"),
)

var _ = Describe("untrusted and bad input", func() {
	It("runs no code and reads no file elsewhere", func() {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("swordfish"), 0o600)).To(Succeed())
		source := filepath.Join(dir, "source")
		Expect(os.MkdirAll(source, 0o755)).To(Succeed())
		Expect(os.Symlink("../secret.txt", filepath.Join(source, "link.txt"))).To(Succeed())
		data := []byte("prompts: ['{{q}} {{r}}', 'file://../secret.txt']\nproviders: [openai:gpt-4o]\ntests: [{vars: {q: file://link.txt, r: file://../secret.txt}}]\n")
		o := promptfoo.Options{Name: "x", Vendors: vendors, Folder: imports.Folder{Dir: source}}
		r, err := promptfoo.Import(config, data, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(text(r)).NotTo(ContainSubstring("swordfish"))
		Expect(notes(r, imports.Wrong)).To(ContainElements(ContainSubstring("link.txt is not read: it lies outside"), ContainSubstring("../secret.txt is not read")))
		o.Folder.AllowOutside = true
		r, err = promptfoo.Import(config, data, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(text(r)).To(ContainSubstring("swordfish"))
	})

	It("copies no key", func() {
		r, err := from(config, "prompts: [hi]\nproviders: [{id: openai:gpt-4o, config: {apiKey: verysecret, headers: {Authorization: Bearer abc}}}]\ntests: [{}]\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(text(r)).NotTo(Or(ContainSubstring("verysecret"), ContainSubstring("abc")))
		Expect(notes(r, imports.Lost)).To(ContainElement(ContainSubstring("a key in the file")))
	})

	It("ends circles", func() {
		r, err := from(config, "prompts: [hi]\nproviders: [openai:gpt-4o]\ntests: [{}, file://a.yaml]\n", "a.yaml", "[{vars: {a: b}}, file://b.yaml]", "b.yaml", "[file://a.yaml]")
		Expect(err).NotTo(HaveOccurred())
		Expect(notes(r, imports.Wrong)).To(ContainElement(ContainSubstring("files that name each other in a circle")))
		Expect(r.Report.Items).To(Equal(2))
	})

	It("bounds combinations", func() {
		list := "[" + strings.TrimSuffix(strings.Repeat("x,", 100), ",") + "]"
		_, err := from(config, "prompts: [hi]\nproviders: [openai:gpt-4o]\ntests: [{vars: {a: &l "+list+", b: *l, c: *l}}]\n")
		Expect(err).To(MatchError(ContainSubstring("more than 200000 tests")))
		Expect(failure.Hints(err)).NotTo(BeEmpty())
	})

	DescribeTable("says what is wrong with its place", func(data, message string) {
		_, err := from(config, data)
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	},
		Entry("empty", "", config+":1:1: empty"),
		Entry("no YAML", "a: [", config+":"),
		Entry("a list", "[1]", config+":1:1: want a mapping"),
		Entry("binary", "\xff\xfe", config+":1:1: not UTF-8"),
		Entry("a circle of anchors", "a: &a [*a]", config+":1:8: anchor"),
		Entry("no tests", "prompts: [a]\nproviders: [openai:x]\n", config+":1:1: no tests"),
		Entry("tests by code", "prompts: [a]\ntests: file://t.py\n", config+":2:1: no tests"),
		Entry("huge", "a: "+strings.Repeat("x", 9<<20), config+":1:1: longer than 8 MiB"),
	)

	It("takes CRLF, a byte order mark and emoji", func() {
		r, err := from(config, "\ufeffprompts: ['{{q}}']\r\nproviders: [openai:gpt-4o]\r\ntests:\r\n  - vars: {q: '👋🏽 hé', x: \"a\\u0007\\u2028b\"}\r\n    assert: [{type: contains, value: '👋🏽'}]\r\n")
		Expect(err).NotTo(HaveOccurred())
		_, err = valid(r)
		Expect(err).NotTo(HaveOccurred(), text(r))
		Expect(string(r.Files[0].Data)).To(And(ContainSubstring("contains: \"👋🏽\""), Not(ContainSubstring("\u2028")), Not(ContainSubstring("\r"))))
	})
})

func FuzzImport(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "support", config))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("prompts: ['{{a}} {% if b %}{{ c | d }}{%endif%} {{- e -}} {#x#}\\{{f}}']\nproviders: openai:x\ntests: [{vars: {a: [x, '{{b}}'], b: {c: [1]}}, assert: [{type: contains, value: '{{b.c}}'}, {type: not-regex, value: '{{a}}'}]}]\n"))
	f.Add([]byte("prompts: {a: b}\ntargets: [{openai:x: {config: {stop: [a]}}}]\ndefaultTest: {vars: {a: [1, 2]}, options: {prefix: '{{', suffix: '}}'}, assert: [{type: contains, value: '{{a}}', metric: contains}]}\nscenarios: [{config: [{vars: {a: b}}], tests: [{metadata: {b: 1}}]}]\n"))
	f.Add([]byte("prompts: ['[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"{{b}}\"},{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"http://h/{{c}}\"}}]}]']\ntests: [{vars: {b: 1.0, c: null}}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		r, err := promptfoo.Import(config, data, promptfoo.Options{Name: "x", Vendors: vendors, Folder: imports.Folder{Dir: dir}})
		for _, c := range r.Report.Assertions {
			if c.Converted+c.Todo+c.Lost != c.Total {
				t.Fatalf("%+v", c)
			}
		}
		if err != nil {
			return
		}
		for _, file := range r.Files {
			path := filepath.Join(dir, filepath.FromSlash(file.Path))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, err := dataset.Open(filepath.Join(dir, "x.yaml"), dataset.Options{Dir: dir, Vendors: vendors})
		if err == nil {
			err = d.Validate(func(item *dataset.Item, p *strict.Problems) { compile(item, judgesOf(d), p) })
		}
		if err != nil {
			t.Fatalf("%s\n%s", failure.Render(err), r.Files[0].Data)
		}
	})
}

func BenchmarkImport(b *testing.B) {
	dir := b.TempDir()
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, `{"vars":{"q":"number %d","a":"x"},"assert":[{"type":"contains","value":"{{a}}"},{"type":"icontains-any","value":["p","q"]}]}`+"\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "t.jsonl"), []byte(lines.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	data := []byte("prompts: ['{{q}}']\nproviders: [openai:gpt-4o]\ntests: file://t.jsonl\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := promptfoo.Import(config, data, promptfoo.Options{Name: "x", Vendors: vendors, Folder: imports.Folder{Dir: dir}}); err != nil {
			b.Fatal(err)
		}
	}
}
