package dataset_test

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
gates: {pass_rate: ">= 1"}
replay:
  allow_leftover: true
`

var keyLine = regexp.MustCompile(`^( *)((?:- )?)([a-z_]+):( ?)(.*)$`)

var _ = Describe("every key", func() {
	files := func(text string) map[string]string {
		return map[string]string{"datasets/d.yaml": text, "datasets/w/x": ""}
	}
	lines := strings.Split(strings.TrimSuffix(everyKey, "\n"), "\n")
	lists := map[string]bool{}
	for _, key := range strings.Fields("providers items checks invariants drop tags stop script input gates") {
		lists[key] = true
	}
	type keyAt struct {
		line, column     int // of the key, from 1
		indent, key, say string
		value            string
	}
	var keys []keyAt
	for i, line := range lines {
		m := keyLine.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(line, "- script") {
			continue
		}
		keys = append(keys, keyAt{i + 1, utf8.RuneCountInString(m[1]+m[2]) + 1, m[1] + strings.Repeat(" ", len(m[2])), m[3], fmt.Sprintf("line %d: %s", i+1, m[3]), m[5]})
	}

	It("stands in the dataset of this test, which is right", func() {
		d, err := load(project(files(everyKey)))
		Expect(err).NotTo(HaveOccurred())
		Expect(d.Count).To(Equal(1))
		Expect(len(keys)).To(BeNumerically(">=", 60))
	})

	for _, line := range []string{"\n", "\r\n"} {
		for _, k := range keys {
			rest := func(replaced string) string {
				all := append([]string{}, lines...)
				all[k.line-1] = replaced
				return strings.Join(all, line) + line
			}
			original := lines[k.line-1]
			at := func(column int) string { return fmt.Sprintf("d:%d:%d: ", k.line, column) }

			It(fmt.Sprintf("is named when misspelt, %s, line end %q", k.say, line), func() {
				text := rest(strings.Replace(original, k.key+":", "x"+k.key+":", 1))
				_, err := load(project(files(text)))
				Expect("\n" + problems(err)).To(MatchRegexp(fmt.Sprintf(`\n%s(\S+: )?unknown key "x%s" \| did you mean "%s"\?`, at(k.column), k.key, k.key)))
			})

			It(fmt.Sprintf("is named when of a wrong type, %s, line end %q", k.say, line), func() {
				if k.key == "expected" {
					return // any value will do
				}
				column := k.column + utf8.RuneCountInString(k.key) + 2
				if lists[k.key] && k.value != "1" { // one input is a price
					column++ // the list is right, its entry is not
				}
				prefix := original[:strings.Index(original, k.key)]
				all := append([]string{}, lines[:k.line-1]...)
				all = append(all, prefix+k.key+": [[5]]")
				// A value of several lines goes with its key.
				next := k.line
				for k.value == "" && next < len(lines) && (strings.HasPrefix(lines[next], k.indent+" ") || strings.HasPrefix(lines[next], k.indent+"- ")) {
					next++
				}
				all = append(all, lines[next:]...)
				_, err := load(project(files(strings.Join(all, line) + line)))
				Expect("\n" + problems(err)).To(MatchRegexp(fmt.Sprintf(`\nd:%d:%d: (.*: )?want `, k.line, column)))
			})

			It(fmt.Sprintf("is named when doubled, %s, line end %q", k.say, line), func() {
				all := append([]string{}, lines[:k.line-1]...)
				all = append(all, original, k.indent+k.key+": 1")
				if k.value == "" {
					// The second one stands behind the whole value.
					next := k.line
					for next < len(lines) && (strings.HasPrefix(lines[next], k.indent+" ") || strings.HasPrefix(lines[next], k.indent+"- ")) {
						next++
					}
					all = append(append(append([]string{}, lines[:next]...), k.indent+k.key+": 1"), lines[next:]...)
					_, err := load(project(files(strings.Join(all, line) + line)))
					Expect(problems(err)).To(ContainSubstring(fmt.Sprintf("d:%d:%d: key %q stands here a second time, first at d:%d:%d", next+1, k.column, k.key, k.line, k.column)))
					return
				}
				all = append(all, lines[k.line:]...)
				_, err := load(project(files(strings.Join(all, line) + line)))
				Expect(problems(err)).To(ContainSubstring(fmt.Sprintf("d:%d:%d: key %q stands here a second time, first at d:%d:%d", k.line+1, k.column, k.key, k.line, k.column)))
			})
		}
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
