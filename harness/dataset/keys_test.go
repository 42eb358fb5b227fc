package dataset_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

// everyKey is a dataset with every key, each on a line of its own. What stands before a key may hold characters of several bytes.
const everyKey = `version: 1
name: every-key
description: é😀
agent: {task: {description: x}}
providers:
- script:m
- id: terse
  provider: compat
  model: llama3
  base_url: http://127.0.0.1:11434/v1
  api_key_env: KEY
  agent: {task: {description: x}}
  max_tokens: 5
  temperature: 0.5
  top_p: 1
  seed: 7
  stop: [END]
  tool_choice: auto
  parallel_tool_calls: true
  reasoning_effort: low
  capabilities: strict
  price:
    input: 1
    output: 2
  limits:
    rpm: 60
    tpm: 1000
    concurrency: 2
- id: person
  provider: script
  role: user
use: [lib.yaml]
defaults:
  input: hi
  expected: x
  checks: [{contains: x}]
  invariants: [role-content]
  drop: [tool-call-pairing]
  tags: [a]
  metadata: {a: 1}
  vars: {a: 1}
  tool_context: {a: 1}
  workspace: w
  timeout: 5s
  repeat: 2
  skip: why
  group: g
  providers: [terse]
  threshold: 0.5
  script: [{text: x}]
  messages: [{role: user, content: x}]
  tool_mocks: {a: 1}
  approvals: [{tool: a, answer: allow}]
  answers: {clarify: x}
  limits: {steps: 3}
  pass_if: ">= 0.5"
  quarantine:
    owner: ana
    until: 2027-01-31
    reason: x
items:
  - id: one
    input: hi
    expected: x
    checks: [{contains: x}]
    invariants: [role-content]
    drop: [tool-call-pairing]
    tags: [a]
    metadata: {a: 1}
    vars: {a: 1}
    tool_context: {a: 1}
    workspace: w
    timeout: 5s
    repeat: 2
    skip: why
    group: g
    providers: [terse]
    threshold: 0.5
    script: [{text: x}]
    messages: [{role: user, content: x}]
    tool_mocks: {a: 1}
    approvals: [{tool: a, answer: allow}]
    answers: {clarify: x}
    limits: {steps: 3}
    pass_if: ">= 0.5"
    quarantine:
      owner: ana
      until: 2027-01-31
      reason: x
  - id: two
    turns:
    - input: x
      checks: [{contains: x}]
    tool_mocks:
      a:
      - args: {a: 1}
        result: 1
        times: 2
      b:
      - error: x
    approvals:
    - tool: a
      answer: allow
      scope: once
    limits:
      cost_usd: 0.5
      tokens: 5
      tool_calls: 5
      steps: 5
  - id: three
    user:
      persona: curt
      goal: x
      knows: {a: 1}
      max_turns: 3
      stop: x
      provider: person
overrides:
- match: "true"
  skip: x
gates: {pass_rate: ">= 1"}
replay:
  allow_leftover: true
  normalize:
  - in: any
    regex: x
    as: y
  drift: {tool-result: warn}
`

var keyLine = regexp.MustCompile(`^( *)((?:- )?)([a-z_]+):( ?)(.*)$`)

// everyProjectKey, everyLibraryKey and everyAgentKey are files with every key of theirs, each on a line of its own.
const everyProjectKey = `version: 1
datasets: [datasets/d.yaml]
use: [datasets/lib.yaml]
defaults:
  tags: [a]
  timeout: 5s
  quarantine: {owner: a, until: 2027-01-31, reason: x}
cassettes: c/d
baselines: b
redact:
- name: patient-id
  regex: "P-[0-9]{8}"
redact_allow:
- regex: "sk-example-.*"
  why: a fake key
replay:
  drift: {tool-result: warn}
prices: prices.yaml
`

const everyLibraryKey = `version: 1
checks:
  polite: {contains: please}
  long:
    regex: "[a-z]{50}"
    name: length
    weight: 2
    threshold: 0.5
    required: true
invariants:
  strict-loop: {use: iteration-limit, max: 3, severity: warn}
policies:
  public: {tools: {profile: minimal}}
providers:
- id: haiku
  provider: openai
  model: m
  temperature: 0
  price: {input: 1.0, output: 5.0}
`

const everyAgentKey = `version: 1
name: clerk
persona:
  role: r
  goal: g
  backstory: b
task:
  description: d
  expected_output: e
tools:
- read_file
- name: weather
  description: d
  parameters: {type: object}
  effect: read
  scope: item
  command: [./weather]
base_tool_names: [read_file]
max_iterations: 3
`

// everyFile are the kinds of files with all their keys. Keys of one letter are names that the file gives, free are keys that take any value, or that are kinds of checks.
var everyFile = []struct {
	kind, file, text string
	free             string
	least            int
	load             func(dir string) error
}{
	{"dataset", "datasets/d.yaml", everyKey, "expected result", 110, func(dir string) error { _, err := load(dir); return err }},
	{"project", "echoeval.yaml", everyProjectKey, "", 16, func(dir string) error {
		_, err := dataset.OpenProject(dir, options(dir))
		return err
	}},
	{"library", "datasets/lib.yaml", everyLibraryKey, "polite long regex public", 14, func(dir string) error { return dataset.OpenLibrary("datasets/lib.yaml", options(dir)) }},
	{"agent", "datasets/agent.yaml", everyAgentKey, "", 17, func(dir string) error {
		data, err := os.ReadFile(filepath.Join(dir, "datasets/agent.yaml"))
		if err != nil {
			return err
		}
		n, err := strict.Parse("datasets/agent.yaml", data)
		if err != nil {
			return err
		}
		var p strict.Problems
		agent.Decode(n, &p)
		return p.Err()
	}},
}

func options(dir string) dataset.Options {
	o := known
	o.Dir = dir
	return o
}

var _ = Describe("every key", func() {
	for _, file := range everyFile {
		Describe("of a "+file.kind, func() {
			lines := strings.Split(strings.TrimSuffix(file.text, "\n"), "\n")
			free := strings.Fields(file.free)
			found := func(all []string, end string) string {
				files := map[string]string{"datasets/d.yaml": head + "items: [{id: a, input: b}]\n", "datasets/w/x": "", "datasets/lib.yaml": "version: 1\n"}
				files[file.file] = strings.Join(all, end) + end
				if err := file.load(project(files)); err != nil {
					return "\n" + strings.ReplaceAll(problems(err), file.file+":", "d:")
				}
				return ""
			}
			// valueEnd is the line behind the value of the key in a line.
			valueEnd := func(i int, indent, value string) int {
				next := i + 1
				for value == "" && next < len(lines) && (strings.HasPrefix(lines[next], indent+" ") || strings.HasPrefix(lines[next], indent+"- ")) {
					next++
				}
				return next
			}

			It("stands in the file of this test, which is right", func() {
				Expect(found(lines, "\n")).To(BeEmpty())
			})

			keys := 0
			for i, original := range lines {
				m := keyLine.FindStringSubmatch(original)
				if m == nil || strings.HasPrefix(original, "- script") || len(m[3]) == 1 {
					continue
				}
				keys++
				indent, key, value := m[1]+strings.Repeat(" ", len(m[2])), m[3], m[5]
				line, column := i+1, utf8.RuneCountInString(m[1]+m[2])+1
				end := valueEnd(i, indent, value)
				with := func(from, to int, replaced ...string) []string {
					return slices.Concat(lines[:from], replaced, lines[to:])
				}
				for _, ending := range []string{"\n", "\r\n"} {
					say := fmt.Sprintf(", line %d: %s, line end %q", line, key, ending)
					if !slices.Contains(free, key) || key == "expected" || key == "result" {
						It("is named when misspelt"+say, func() {
							misspelt := strings.Replace(original, key+":", "x"+key+":", 1)
							Expect(found(with(i, i+1, misspelt), ending)).To(MatchRegexp(fmt.Sprintf(`\nd:%d:%d: (\S+: )?unknown (key|metric) "x%s" \| did you mean "%s"\?`, line, column, key, key)))
						})
					}
					if !slices.Contains(free, key) {
						It("is named when of a wrong type"+say, func() {
							// Of [[5]] the list may be right, and its entry wrong.
							at := column + utf8.RuneCountInString(key) + 2
							wrong := original[:strings.Index(original, key)] + key + ": [[5]]"
							Expect(found(with(i, end, wrong), ending)).To(MatchRegexp(fmt.Sprintf(`\nd:%d:(%d|%d): (.*: )?want `, line, at, at+1)))
						})
					}
					It("is named when doubled"+say, func() {
						second := with(end, end, indent+key+": 1")
						Expect(found(second, ending)).To(ContainSubstring(fmt.Sprintf("d:%d:%d: key %q stands here a second time, first at d:%d:%d", end+1, column, key, line, column)))
					})
				}
			}
			Expect(keys).To(BeNumerically(">=", file.least))
		})
	}
})

var _ = Describe("names on disk", func() {
	DescribeTable("of items", func(id, want string) { Expect(dataset.FileName(id)).To(Equal(want)) },
		Entry(nil, "chest-pain", "chest-pain"),
		Entry(nil, "A.b_c-9", "A.b_c-9"),
		Entry(nil, strings.Repeat("a", 80), strings.Repeat("a", 80)),
		Entry(nil, strings.Repeat("a", 81), strings.Repeat("a", 80)+"~8c48280d57"),
		Entry(nil, "a/b", "a_b~c14cddc033"),
		Entry(nil, "..", "_.~5ec1f7e700"),
		Entry(nil, "-x", "_x~a420962426"),
		Entry(nil, "é🙂", "______~7382f537af"),
		Entry(nil, "a b", "a_b~c8687a08aa"),
		Entry(nil, "a~b", "a_b~941528e5e7"),
		Entry(nil, "CON", "CON~a3dbc4b644"),
		Entry(nil, "nul.txt", "nul_txt~7f3cbdd58a"),
		Entry(nil, "com1", "com1~957a49c3e8"),
		Entry(nil, "com10", "com10"),
		Entry(nil, "console", "console"),
		Entry(nil, "a@2", "a_2~0984172834"),
		Entry(nil, "_setup", "_setup~95924c4a58"),
		Entry(nil, "", "~e3b0c44298"),
	)

	It("of providers", func() {
		Expect(dataset.FolderName("openai:gpt-4o-mini")).To(Equal("openai_gpt-4o-mini"))
		Expect(dataset.FolderName("a/b:c@d")).To(Equal("a_b_c@d"))
	})

	It("are always plain, and differ where ids differ", func() {
		plain := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}(~[0-9a-f]{10})?$`)
		seen := map[string]string{}
		for i := range 0x3000 {
			for _, id := range []string{string(rune(i + 1)), "x" + string(rune(i+1)), strings.Repeat(string(rune(i+1)), 90)} {
				name := dataset.FileName(id)
				Expect(plain.MatchString(name)).To(BeTrue(), "%q", name)
				if first, ok := seen[name]; ok && first != id {
					Fail(fmt.Sprintf("%q and %q are both %s", first, id, name))
				}
				seen[name] = id
			}
		}
		Expect(len(seen)).To(BeNumerically(">", 30_000))
	})
})
