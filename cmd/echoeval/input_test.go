//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// small is a dataset of one item that passes by script: it needs neither a cassette nor a model.
const small = `version: 1
name: small
agent: {task: {description: Answer.}, tools: [read_file]}
providers: [{provider: script, id: script}]
items:
  - id: one
    input: Hello
    tags: [greeting]
    script: [{text: Hello yourself}]
    checks: [{contains: yourself}]
`

// smallWith makes a project whose d.yaml is the small dataset after an edit.
func smallWith(before, after string) *project {
	GinkgoHelper()
	p := emptyProject()
	p.write("d.yaml", small)
	if before != "" {
		p.edit("d.yaml", before, after)
	}
	return p
}

var place = regexp.MustCompile(`(?m)^error: [a-z./-]+:\d+:\d+: `)

var _ = Describe("nothing passes vacuously", func() {
	It("does not fail what is right", func() {
		p := smallWith("", "")
		p.succeed("validate", "d.yaml")
		p.succeed("run", "d.yaml", "--mode", "live")
		Expect(p.only().verdict()).To(Equal("pass"))
		Expect(p.only().Cassette).To(BeNil())
	})

	DescribeTable("a dataset that says too little is code 2, with its place", func(before, after, message, at string) {
		p := smallWith(before, after)
		for _, args := range [][]string{{"run", "d.yaml"}, {"run", "d.yaml", "--mode", "live"}, {"validate", "d.yaml"}, {"record", "d.yaml", "--upstream", "openai=http://127.0.0.1:9/v1"}} {
			o := p.expect(2, args...)
			Expect(o.stdout).To(BeEmpty())
			Expect(o.stderr).To(ContainSubstring(message))
			if at != "" {
				Expect(o.stderr).To(ContainSubstring("error: " + at + ": "))
			}
			Expect(p.path(".echoeval")).NotTo(BeADirectory(), "nothing was run")
		}
		// As data, the same.
		o := p.expect(2, "validate", "d.yaml", "--json")
		var reports []struct {
			File     string
			OK       bool
			Problems []struct{ At, Message string }
		}
		Expect(json.Unmarshal([]byte(o.stdout), &reports)).To(Succeed())
		Expect(reports).To(HaveLen(1))
		Expect(reports[0].OK).To(BeFalse())
		Expect(reports[0].Problems).NotTo(BeEmpty())
		if at != "" {
			var places []string
			for _, problem := range reports[0].Problems {
				places = append(places, problem.At)
			}
			Expect(places).To(ContainElement(at))
		}
	},
		Entry("no items", small[strings.Index(small, "items:"):], "items: []\n", "no items", "d.yaml:5:8"),
		Entry("items of nothing", small[strings.Index(small, "items:"):], "items:\n", "items", "d.yaml:5:7"),
		Entry("no key items", small[strings.Index(small, "items:"):], "", `"items" is missing`, "d.yaml:1:1"),
		Entry("an unknown key", "    input:", "    inputs:", `unknown key "inputs"`, "d.yaml:7:5"),
		Entry("an unknown key above", "name: small", "nmae: small", `unknown key "nmae"`, "d.yaml:2:1"),
		Entry("an undefined template variable", "input: Hello", "input: Hello {{name}}", `{{name}}`, "d.yaml:7:20"),
		Entry("an undefined variable in a check", "contains: yourself", `contains: "{{expected}}"`, "{{expected}}", "d.yaml:10:28"),
		Entry("no checks that could fail", "    checks: [{contains: yourself}]\n", "    checks: [{contians: yourself}]\n", `"contians"`, "d.yaml:10:15"),
		Entry("an expected tool that the agent does not have", "{contains: yourself}", "{tool_calls: {match: subset, calls: [{name: write_file}]}}", "write_file", ""),
		Entry("an expected tool that is misspelt", "{contains: yourself}", "{tool_calls: {match: subset, calls: [{name: read_fil}]}}", "read_fil", ""),
		Entry("a tool of the agent that there is not", "tools: [read_file]", "tools: [read_files]", `unknown tool "read_files"`, "d.yaml:3:47"),
		Entry("a gate on an unknown metric", "items:", "gates: {pas_rate: \">= 1\"}\nitems:", `unknown metric "pas_rate"`, "d.yaml:5:9"),
		Entry("a gate that bounds nothing", "items:", "gates: {pass_rate: \"sometimes\"}\nitems:", "pass_rate", "d.yaml:5:9"),
		Entry("no providers", "providers: [{provider: script, id: script}]\n", "", "providers", ""),
		Entry("an empty list of providers", "[{provider: script, id: script}]", "[]", "providers", "d.yaml:4:12"),
		Entry("an unknown provider", "provider: script,", "provider: scrip,", `unknown provider "scrip"`, "d.yaml:4:24"),
		Entry("an unknown invariant", "    tags:", "    invariants: [tool-call-paring]\n    tags:", "tool-call-paring", "d.yaml:8:18"),
		Entry("a drop of nothing", "    tags:", "    drop: [polite]\n    tags:", "polite", "d.yaml:8:12"),
		Entry("a workspace that is not there", "    tags:", "    workspace: nowhere\n    tags:", "nowhere", "d.yaml:8:16"),
		Entry("an agent file that is not there", "agent: {task: {description: Answer.}, tools: [read_file]}", "agent: nobody.yaml", "nobody.yaml", "d.yaml:3:8"),
		Entry("a script that is not there", "    script: [{text: Hello yourself}]\n", "", "script", "d.yaml:6:5"),
		Entry("another version", "version: 1", "version: 2", "version", "d.yaml:1:10"),
		Entry("a tab", "    input: Hello", "\tinput: Hello", "tab", "d.yaml:7:1"),
		Entry("a key twice", "    input: Hello", "    input: Hello\n    input: Hello", `"input"`, "d.yaml:8:5"),
		Entry("a YAML bomb", "    input: Hello", "    vars: {a: &a [x,x,x,x,x,x,x,x,x], b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c], e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d], f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e], g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]}\n    input: Hello", "", ""),
		Entry("a tag that makes something", "    input: Hello", "    input: !!python/object:os.system Hello", "", "d.yaml:7:12"),
		Entry("what is not UTF-8", "    input: Hello", "    input: \"H\xffllo\"", "UTF-8", ""),
	)

	DescribeTable("a selection that leaves nothing is code 2 and says what is near", func(want string, flags ...string) {
		p := exampleProject()
		for _, command := range []string{"run", "record"} {
			o := p.expect(2, append([]string{command, quickstart, "--upstream", "openai=http://127.0.0.1:9/v1"}, flags...)...)
			Expect(o.stderr).To(And(HavePrefix("error: "), ContainSubstring(want), ContainSubstring("\nhint: ")))
			Expect(o.stdout).To(BeEmpty())
			Expect(p.path(".echoeval")).NotTo(BeADirectory())
		}
	},
		Entry(nil, "did you mean --item mends-a-typo?", "--item", "mend-a-typo"),
		Entry(nil, "no such item", "--item", "something altogether different"),
		Entry(nil, "no such item", "--item", "total-copies", "--item", "nothing"),
		Entry(nil, "no item", "--tag", "nothing"),
		Entry(nil, "no item", "--tag", "image", "--item", "total-copies"),
		Entry(nil, "no item", "--tag", "read", "--tag", "!read"),
		Entry(nil, "openai:gpt-4o-mini", "--provider", "openai.gpt-4o-mimi"),
		Entry(nil, "vendors are", "--provider", "nobody"),
	)

	It("an empty file of items is code 2", func() {
		p := smallWith(small[strings.Index(small, "items:"):], "items: items.jsonl\n")
		for _, text := range []string{"", "\n\n", " "} {
			p.write("items.jsonl", text)
			o := p.expect(2, "run", "d.yaml")
			Expect(o.stderr).To(ContainSubstring("items.jsonl"))
		}
		o := p.expect(2, "run", "absent.yaml")
		Expect(o.stderr).To(ContainSubstring("absent.yaml"))
		p.write("empty.yaml", "")
		Expect(p.expect(2, "run", "empty.yaml").stderr).To(ContainSubstring("empty.yaml"))
		p.edit("d.yaml", "items: items.jsonl", "items: none/*.jsonl")
		Expect(p.expect(2, "run", "d.yaml").stderr).To(ContainSubstring("none/*.jsonl"))
		Expect(p.expect(2, "run").stderr).To(ContainSubstring("no dataset"))
		Expect(p.expect(2, "run", "-").stderr).To(HavePrefix("error: "))
	})

	It("shows all problems of a file at once, each with its place", func() {
		p := smallWith("    input: Hello\n", "    inputt: Hello {{x}}\n    repeat: zero\n    timeout: -1s\n")
		o := p.expect(2, "run", "d.yaml")
		Expect(len(place.FindAllString(o.stderr, -1))).To(BeNumerically(">=", 3), "%s", o)
		for _, at := range []string{"d.yaml:7:5", "d.yaml:8:13", "d.yaml:9:14"} {
			Expect(o.stderr).To(ContainSubstring(at))
		}
	})

	It("an item of which everything is skipped is a run that proves nothing", func() {
		p := smallWith("    tags:", "    skip: waits for something\n    tags:")
		o := p.run("run", "d.yaml", "--mode", "live")
		Expect(p.only().verdict()).To(Equal("skipped/dataset"))
		Expect(o.code).To(Equal(1), "pass_rate has no data\n%s", o)
	})
})

var _ = Describe("datasets as people write them", func() {
	It("reads CRLF and a byte order mark as if they were not there", func() {
		plain := smallWith("", "")
		plain.succeed("run", "d.yaml", "--mode", "live")
		want := plain.read(plain.last() + "/results.jsonl")
		for _, text := range []string{strings.ReplaceAll(small, "\n", "\r\n"), "\ufeff" + small, "\ufeff" + strings.ReplaceAll(small, "\n", "\r\n"), strings.TrimSuffix(small, "\n")} {
			p := emptyProject()
			p.write("d.yaml", text)
			p.succeed("run", "d.yaml", "--mode", "live")
			Expect(p.read(p.last() + "/results.jsonl")).To(Equal(want))
			// In places too.
			p.edit("d.yaml", "contains:", "contians:")
			Expect(p.expect(2, "run", "d.yaml").stderr).To(ContainSubstring("d.yaml:10:15: "))
		}
		line := `{"id":"one","input":"Hello","script":[{"text":"yourself"}],"checks":[{"contains":"yourself"}]}`
		for _, text := range []string{line, line + "\n", "\ufeff" + line + "\r\n", "\r\n" + line + "\r\n\r\n"} {
			p := smallWith(small[strings.Index(small, "items:"):], "items: items.jsonl\n")
			p.write("items.jsonl", text)
			p.succeed("run", "d.yaml", "--mode", "live")
			Expect(p.only().verdict()).To(Equal("pass"))
		}
	})

	DescribeTable("refuses ids that cannot be told apart", func(first, second, message string) {
		p := emptyProject()
		p.write("d.yaml", small+fmt.Sprintf("  - {id: %q, input: a, script: [{text: a}], checks: [{contains: a}]}\n  - {id: %q, input: a, script: [{text: a}], checks: [{contains: a}]}\n", first, second))
		o := p.expect(2, "run", "d.yaml")
		Expect(o.stderr).To(And(ContainSubstring("error: d.yaml:12:10: "), ContainSubstring(message), ContainSubstring("d.yaml:11:10")))
	},
		Entry("twice the same", "two", "two", `"two"`),
		Entry("only in case", "Two", "tWo", `case`),
		Entry("only in the case of another script", "straße", "STRAßE", `case`),
	)

	It("refuses the same id in another file", func() {
		p := smallWith(small[strings.Index(small, "items:"):], "items: parts/*.jsonl\n")
		line := `{"id":"one","input":"Hello","script":[{"text":"yourself"}],"checks":[{"contains":"yourself"}]}` + "\n"
		p.write("parts/a.jsonl", line)
		p.write("parts/b.jsonl", "\n"+line)
		o := p.expect(2, "run", "d.yaml")
		Expect(o.stderr).To(And(ContainSubstring("parts/b.jsonl:2:"), ContainSubstring("parts/a.jsonl:1:")))
	})

	DescribeTable("refuses an id", func(yaml string) {
		p := smallWith("id: one", "id: "+yaml)
		Expect(p.expect(2, "run", "d.yaml").stderr).To(ContainSubstring("d.yaml:6:9: "))
	},
		Entry("of nothing", `""`),
		Entry("of blanks", `"  "`),
		Entry("with a control character", `"a\u001bb"`),
		Entry("with a line break", `"a\nb"`),
		Entry("that is a number", `17`),
		Entry("that is too long", `"`+strings.Repeat("x", 1001)+`"`),
	)

	It("keeps hostile ids apart and below the folder of the cassettes, in recording and in replay", func() {
		ids := []string{
			"plain", "a/b", "../../../escape", "..", ".", "/etc/passwd", `..\..\windows`, "C:/x", "🦊 fox", "naïve", "nai\u0308ve", strings.Repeat("x", 300), strings.Repeat("y", 80) + "a", strings.Repeat("y", 80) + "b",
			"CON", "com1.txt", "trailing.", " space ", "a b", "a_b", "-rf", "~", "@2", "plain@2", "%2e%2e", "\u202egnp.exe", "a:b", "a*b?", "$(touch pwned)", "'; touch pwned; '", "`touch pwned`", "{{x}}", "_setup", ".hidden",
		}
		p := emptyProject()
		var items strings.Builder
		for i, id := range ids {
			item, err := json.Marshal(map[string]any{"id": id, "input": fmt.Sprintf("number %d", i), "checks": []any{map[string]string{"contains": "number"}}})
			Expect(err).NotTo(HaveOccurred())
			items.Write(append(item, '\n'))
		}
		p.write("deep/er/d.yaml", "version: 1\nname: hostile\nagent: {task: {description: Answer.}}\nproviders: [openai:gpt-4o-mini]\nitems: items.jsonl\n")
		p.write("deep/er/items.jsonl", items.String())
		p.write("script.yaml", "version: 1\nname: s\ndefault: {steps: [{text: \"{{last_user}}\"}]}\n")
		base := filepath.Dir(p.dir)
		list := func() []string {
			var out []string
			Expect(filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
				if err == nil && !strings.HasPrefix(path, p.path(".echoeval")) && d.Type().IsRegular() {
					out = append(out, path)
				}
				return err
			})).To(Succeed())
			return out
		}
		before := list()
		e := p.emulate("script.yaml")
		o := p.succeed("record", "deep/er/d.yaml", e.upstream(), "--all", "-v")
		Expect(p.count()).To(Equal(map[string]int{"pass": len(ids)}))
		folder := p.path("fixtures/cassettes/hostile/openai_gpt-4o-mini")
		var written []string
		for _, file := range list() {
			if !slices.Contains(before, file) {
				Expect(filepath.Dir(file)).To(Equal(folder), "written outside")
				written = append(written, filepath.Base(file))
			}
		}
		Expect(written).To(HaveLen(len(ids)))
		folded := map[string]bool{}
		for _, name := range written {
			Expect(name).To(MatchRegexp(`^([A-Za-z0-9][A-Za-z0-9._-]{0,79}|[A-Za-z0-9_][A-Za-z0-9._-]{0,79}~[0-9a-f]{10})\.yaml$`))
			folded[strings.ToLower(name)] = true
		}
		Expect(folded).To(HaveLen(len(ids)), "the names are apart where case does not count")
		Expect(written).To(ContainElement("plain.yaml"))
		Expect(o.all()).NotTo(ContainSubstring("\u202e"))

		o = p.succeed("replay", "deep/er/d.yaml", "--all")
		Expect(p.count()).To(Equal(map[string]int{"pass": len(ids)}))
		Expect(o.all()).NotTo(ContainSubstring("\u202e"))
		for i, line := range p.results(p.last()) {
			Expect(line.Item).To(Equal(ids[i]), "ids stand in the results as they are")
		}
		// One of them alone, by its id; and the command that records it is safe to type.
		for _, i := range []int{2, 11, 28, 29, 30} {
			p.succeed("run", "deep/er/d.yaml", "--item", ids[i])
			Expect(p.only().Item).To(Equal(ids[i]))
			p.remove("fixtures/cassettes/hostile/openai_gpt-4o-mini/" + filepath.Base(p.only().Cassette.File))
			o = p.expect(4, "run", "deep/er/d.yaml", "--item", ids[i])
			o = p.obey(recording(o), e.upstream())
			Expect(o.code).To(Equal(0), "%s", o)
			p.succeed("run", "deep/er/d.yaml", "--item", ids[i])
		}
		Expect(p.path("pwned")).NotTo(BeAnExistingFile())
	})

	It("reads a dataset, its items and its agent from folders with hostile names", func() {
		p := emptyProject()
		dir := "a b/ünï 🦊/'q'/-x"
		p.write(dir+"/d.yaml", small)
		p.succeed("run", dir+"/d.yaml", "--mode", "live")
		Expect(p.only().Checks[0].At).To(HavePrefix(dir + "/d.yaml:"))
	})
})

var _ = Describe("a cassette that nobody can read", func() {
	const file = mini + "total-copies.yaml"
	bomb := "version: 1\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'n'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	DescribeTable("is code 4, with the file and the reason, quickly", func(message string, change func(text string) string) {
		p := exampleProject()
		p.succeed("run", quickstart, "--item", "total-copies", "--provider", "openai:gpt-4o-mini")
		before := p.read(file)
		text := change(before)
		Expect(text).NotTo(Equal(before))
		p.write(file, text)
		began := time.Now()
		o := p.expect(4, "run", quickstart, "--item", "total-copies", "--provider", "openai:gpt-4o-mini")
		Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
		Expect(p.only().verdict()).To(Equal("stale/unreadable"))
		Expect(o.all()).To(And(ContainSubstring(file), MatchRegexp(message)))
		Expect(p.read(file)).To(Equal(text), "it is left as it is")
		o = p.expect(4, "cassette", "show", file)
		Expect(o.stderr).To(And(HavePrefix("error: "+file), MatchRegexp(message)))
		// The others run.
		p.expect(4, "run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"pass": 23, "stale/unreadable": 1}))

		held := p.peak("run", quickstart, "--item", "total-copies", "--provider", "openai:gpt-4o-mini")
		p.write(file, before)
		Expect(held).To(BeNumerically("<", 3*p.peak("run", quickstart, "--item", "total-copies", "--provider", "openai:gpt-4o-mini")))
	},
		Entry("another version of go-vcr", `version "?2`, func(s string) string { return strings.Replace(s, "\nversion: 1\n", "\nversion: 2\n", 1) }),
		Entry("a later version of ours", "version 9.*update|version 9", func(s string) string { return strings.Replace(s, "  format: 1\n", "  format: 9\n", 1) }),
		Entry("a later canonical form", "version 9", func(s string) string { return strings.Replace(s, "  canon: 1\n", "  canon: 9\n", 1) }),
		Entry("truncated in a line", "truncated", func(s string) string { return s[:len(s)/2] }),
		Entry("truncated between two lines", "truncated|without the key", func(s string) string { return s[:strings.LastIndex(s[:len(s)/2], "\n")+1] }),
		Entry("truncated between two interactions", "truncated", func(s string) string { return s[:strings.LastIndex(s, "- echoeval:")] }),
		Entry("a key twice", "(?i)twice|duplicate|already", func(s string) string { return strings.Replace(s, "  canon: 1\n", "  canon: 1\n  canon: 1\n", 1) }),
		Entry("a YAML bomb", "unknown key|alias|anchor", func(string) string { return bomb }),
		Entry("an alias", "alias|anchor", func(s string) string {
			return strings.Replace(s, "  dataset: quickstart\n", "  dataset: &a quickstart\n  group: *a\n", 1)
		}),
		Entry("deep nesting", "", func(string) string { return "version: 1\nx: " + strings.Repeat("[", 100_000) + "\n" }),
		Entry("not UTF-8", "UTF-8", func(s string) string { return strings.Replace(s, "shelves", "shel\xffes", 1) }),
		Entry("a pointer of Git LFS", "(?s)LFS.*git lfs pull", func(string) string {
			return "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
		}),
		Entry("empty", "empty", func(string) string { return "" }),
		Entry("blank", "empty", func(string) string { return "\n\n \n" }),
		Entry("JSON of something else", "version|cassette", func(string) string { return "{\"log\": {\"version\": \"1.2\"}}\n" }),
		Entry("saved by go-vcr", "echoeval", func(s string) string {
			return "---\nversion: 1\n" + s[strings.Index(s, "interactions:\n"):]
		}),
		Entry("a tag that makes something", "tag", func(s string) string {
			return strings.Replace(s, "    method: POST\n", "    method: !!python/object:os.system POST\n", 1)
		}),
		Entry("binary rubbish", "", func(string) string { return string([]byte{0, 1, 2, 3, 0, 0, 0, 255}) }),
	)

	It("may be a folder", func() {
		p := exampleProject()
		p.remove(file)
		p.write(file+"/x", "")
		o := p.expect(4, "run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"pass": 23, "stale/unreadable": 1}))
		Expect(o.all()).To(ContainSubstring("folder"))
	})
})
