//go:build unix

package main_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// clerk is a dataset whose agent reads, writes and answers by script.
const clerk = `version: 1
name: clerk
agent:
  task: {description: Keep the notes.}
  tools: [read_file, write_file]
providers: [{id: script, provider: script}]
defaults: {workspace: desk}
items:
  - id: notes
    input: Write down the total
    expected: {total: 3}
    vars: {limit: 40}
    script:
      - calls: [{name: read_file, args: {path: a.txt}}, {name: read_file, args: {path: missing.txt}}]
      - call: {name: write_file, args: {path: total.json, content: '{"total": 3}'}}
      - text: The total is 3.
    checks:
`

func clerkWith(checks ...string) *project {
	GinkgoHelper()
	p := emptyProject()
	p.write("desk/a.txt", "1 2\n")
	p.write("desk/keep.txt", "keep\n")
	text := clerk
	for _, c := range checks {
		text += "      - " + c + "\n"
	}
	p.write("d.yaml", text)
	return p
}

var _ = Describe("checks of what an agent did", func() {
	It("hold in a run of the command", func() {
		p := clerkWith(
			"tool_calls: {calls: [{unordered: [{name: read_file, args: {path: missing.txt}, status: error}, {name: read_file, args: {path: a.txt}, status: ok}], same_turn: true}, {name: write_file, args: {path: {$regex: json$}, content: {$any: true}}}]}",
			"tool_calls: {match: subset, calls: [{name: read_file, times: {min: 1, max: 2}}]}",
			"tool_result: {name: read_file, args: {path: a.txt}, contains: 1 2}",
			"tool_result: {name: read_file, args: {path: missing.txt}, status: error}",
			"final_state: {files: {total.json: {json: {total: 3}}, a.txt: {unchanged: true}, missing.txt: {exists: false}}, others: unchanged}",
			"steps: {min: 3, max: 3}",
			"{similarity: {value: the total is 3, ignore_case: true, ignore_punctuation: true}, threshold: 1}",
			"{rouge_l: {value: total is 3, measure: recall}, threshold: 1}",
			"{bleu: The total is 3, threshold: 1}",
			"length: {max: 5, unit: words}",
			"not: refusal",
			`cel: "answer.contains(string(expected.total)) && answer.size() < vars.limit && trace.calls.size() == 3"`,
			"any: [{equals: nothing}, {all: [{contains: total}, {not: {contains: sum}}]}]",
		)
		p.succeed("validate", "d.yaml")
		p.succeed("run", "d.yaml", "--mode", "live")
		line := p.only()
		Expect(line.Status).To(Equal("pass"))
		Expect(line.Checks).To(HaveLen(13))

		// What was copied for the run is gone, and the original is untouched.
		Expect(p.read("desk/a.txt")).To(Equal("1 2\n"))
		Expect(p.has("desk/total.json")).To(BeFalse())
	})

	It("fail in a run of the command, and show tells the calls as an edit script", func() {
		p := clerkWith(
			"tool_calls: {calls: [{name: read_file, args: {path: b.txt}}, {name: write_file}, {name: write_file}]}",
			"final_state: {others: unchanged}",
			"final_state: {files: {total.json: nothing}}",
		)
		p.expect(1, "run", "d.yaml", "--mode", "live")
		run := p.last()
		Expect(p.read(run + "/results.jsonl")).To(ContainSubstring(`"edits":["+ 1 read_file`))
		shown := p.succeed("show", "latest", "notes").stdout
		lines := strings.Split(shown, "\n")
		at := func(text string) int {
			GinkgoHelper()
			for i, line := range lines {
				if strings.HasPrefix(strings.TrimSpace(line), text) {
					return i
				}
			}
			Fail(text + " is not in\n" + shown)
			return 0
		}
		first := at("calls:")
		Expect(lines[first+1]).To(HavePrefix(`      + 1 read_file{"path":"a.txt"}`))
		Expect(lines[first+2]).To(HavePrefix(`      ~ 2 read_file{"path":"missing.txt"}: /path is "missing.txt", want "b.txt"`))
		Expect(lines[first+3 : first+5]).To(ConsistOf(HavePrefix("      = 3 write_file"), HavePrefix("      - ")))
		Expect(shown).To(ContainSubstring("total.json was made"))
		Expect(shown).To(ContainSubstring(`total.json differs at character 1: want "nothing"`))
	})

	It("of the text of hostile tools are shown without harm", func() {
		p := clerkWith("tool_calls: {calls: [{name: write_file}]}")
		p.edit("d.yaml", "path: a.txt", `path: "\e]0;x\a\u202e<script>"`)
		p.expect(1, "run", "d.yaml", "--mode", "live")
		for _, args := range [][]string{{"show", "latest", "notes"}, {"show", "latest", "notes", "--all"}} {
			out := p.succeed(args...).stdout
			Expect(out).To(ContainSubstring("+ 1 read_file"))
			Expect(out).NotTo(ContainSubstring("\x1b]"))
			Expect(out).NotTo(ContainSubstring("\a"))
			Expect(out).NotTo(ContainSubstring("\u202e"))
		}
	})

	It("say where they are wrong", func() {
		for check, want := range map[string]string{
			"skill_active: triage":                `check "skill_active" is not in this version`,
			"sql_equal: {query: x}":               `check "sql_equal" is not in this version`,
			"final_state: {rows: {}}":             `key "rows" is not in this version`,
			"cel: answr.size() > 3":               "undeclared reference to 'answr'",
			"any: [{contans: x}]":                 `unknown check "contans"`,
			"tool_result: {name: read_fil}":       `the agent has no tool "read_fil"`,
			"{similarity: x, treshold: 0.5}":      `unknown key "treshold"`,
			"similarity: x":                       "states no threshold",
			"tool_calls: {calls: [{name: \"\"}]}": "the agent has no tool",
		} {
			p := clerkWith(check)
			out := p.expect(2, "validate", "d.yaml").stderr
			Expect(out).To(MatchRegexp(`d\.yaml:18:\d+: `), check)
			Expect(out).To(ContainSubstring(want), check)
		}
	})

	It("of files do not stand in a turn", func() {
		p := clerkWith("steps: {max: 9}")
		p.edit("d.yaml", "    input: Write down the total\n", "    turns: [{input: Write, checks: [{final_state: {others: unchanged}}]}]\n")
		Expect(p.expect(2, "validate", "d.yaml").stderr).To(ContainSubstring("files are looked at when the last turn is over"))
	})
})
