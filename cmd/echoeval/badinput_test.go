//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// shards runs shards of the small dataset, which has several items here, and returns their folders.
func (p *project) shards(args ...string) []string {
	GinkgoHelper()
	var dirs []string
	for _, words := range args {
		before := p.runs()
		p.run(append([]string{"run", "--mode", "live"}, strings.Fields(words)...)...)
		dirs = append(dirs, p.newRun(before))
		Expect(dirs[len(dirs)-1]).NotTo(BeEmpty())
	}
	return dirs
}

func severalItems() *project {
	GinkgoHelper()
	p := smallWith("items:\n", "items:\n  - {id: two, input: Hello, script: [{text: yourself}], checks: [{contains: yourself}]}\n  - {id: three, input: Hello, script: [{text: yourself}], checks: [{contains: yourself}]}\n")
	p.write("e.yaml", strings.Replace(p.read("d.yaml"), "name: small", "name: other", 1))
	return p
}

var _ = Describe("shards that do not fit together", func() {
	DescribeTable("are code 2, with what is wrong and what to do, and leave no run", func(message, hint string, runs ...string) {
		p := severalItems()
		dirs := p.shards(runs...)
		before := p.runs()
		o := p.expect(2, append([]string{"merge"}, dirs...)...)
		for i, dir := range dirs {
			message = strings.ReplaceAll(message, fmt.Sprintf("DIR%d", i), dir)
		}
		Expect(o.stderr).To(Equal("error: " + message + "\nhint: " + hint + "\n"))
		Expect(o.stdout).To(BeEmpty())
		Expect(p.runs()).To(Equal(before))
	},
		Entry("one is missing", "missing: shard 2/3", "run what is missing: --shard 2/3", "d.yaml --shard 1/3", "d.yaml --shard 3/3"),
		Entry("one is there twice", "shard 1/2 is there twice: DIR0 and DIR1", "name each shard once", "d.yaml --shard 1/2", "d.yaml --shard 1/2", "d.yaml --shard 2/2"),
		Entry("they are of two divisions", "shard 1/2 and shard 2/3 are parts of different divisions", "merge shards of one division", "d.yaml --shard 1/2", "d.yaml --shard 2/3"),
		Entry("they are of two datasets", "shards of two datasets: small and other", "merge the shards of each dataset apart", "d.yaml --shard 1/2", "e.yaml --shard 2/2"),
		Entry("they had other flags", "shard 1/2 was started with run --mode=live, shard 2/2 with run --mode=live --repeat=2", "shards need the same flags but for --shard", "d.yaml --shard 1/2", "d.yaml --shard 2/2 --repeat 2"),
		Entry("one is a whole run", "DIR1 is no shard of a run", "echoeval run DATASET --shard 1/2", "d.yaml --shard 1/2", "d.yaml"),
	)

	It("are of two versions of a dataset", func() {
		p := severalItems()
		dirs := p.shards("d.yaml --shard 1/2")
		p.edit("d.yaml", "input: Hello\n", "input: Hello you\n")
		dirs = append(dirs, p.shards("d.yaml --shard 2/2")...)
		o := p.expect(2, append([]string{"merge"}, dirs...)...)
		Expect(o.stderr).To(Equal("error: shard 2/2 was made with another version of dataset small than shard 1/2\nhint: run it again where the files differ\n"))
		// And where the file has changed since.
		p.edit("d.yaml", "input: Hello you\n", "input: Hello\n")
		dirs[1] = p.shards("d.yaml --shard 2/2")[0]
		p.succeed(append([]string{"merge"}, dirs...)...)
		p.edit("d.yaml", "input: Hello\n", "input: Hello you\n")
		Expect(p.expect(2, append([]string{"merge"}, dirs...)...).stderr).To(And(ContainSubstring("changed since"), ContainSubstring("hint: ")))
	})

	It("are not finished", func() {
		p := recordMany()
		s := p.start(p.command("run", "many.yaml", "--concurrency", "1", "--shard", "1/2"))
		run := p.whenRunning(s, 5)
		Expect(s.cmd.Process.Kill()).To(Succeed())
		Expect(p.end(s).signal).To(Equal(syscall.SIGKILL))
		p.sweep()
		before := p.runs()
		p.succeed("run", "many.yaml", "--shard", "2/2")
		other := p.newRun(before)
		o := p.expect(2, "merge", run, other)
		Expect(o.stderr).To(Equal("error: shard 1/2 in " + run + " is not finished\nhint: echoeval run --resume " + run + "\n"))
		Expect(p.obey(resumption(o)).code).To(Equal(0))
		p.succeed("merge", run, other)
	})

	It("are no shards at all", func() {
		p := severalItems()
		Expect(p.expect(2, "merge").stderr).To(ContainSubstring("hint: "))
		Expect(p.expect(2, "merge", "nowhere").stderr).To(And(ContainSubstring(`there is no run "nowhere"`), ContainSubstring("hint: ")))
		for _, shard := range []string{"0/2", "3/2", "2", "1/0", "a/b", "-1/2", "1/2/3"} {
			Expect(p.expect(2, "run", "d.yaml", "--shard", shard).stderr).To(And(ContainSubstring("--shard"), ContainSubstring("hint: ")), shard)
		}
	})
})

var _ = Describe("libraries that define a name which there is", func() {
	DescribeTable("are code 2, with both places", func(library, message string) {
		p := smallWith("items:\n", "use: [one.yaml, two.yaml]\nitems:\n")
		p.write("one.yaml", "version: 1\nchecks: {polite: {contains: please}}\ninvariants: {loops: {use: iteration-limit, max: 3}}\npolicies: {public: {}}\nproviders: [{id: haiku, provider: script}]\n")
		p.write("two.yaml", "version: 1\n"+library+"\n")
		for _, args := range [][]string{{"validate", "d.yaml"}, {"run", "d.yaml"}} {
			o := p.expect(2, args...)
			Expect(o.stderr).To(HavePrefix("error: two.yaml:2:"))
			Expect(o.stderr).To(And(ContainSubstring(message), ContainSubstring("hint: give ")))
		}
	},
		Entry("a check", "checks: {polite: {contains: thanks}}", `check "polite" is defined a second time, first at one.yaml:2:10`),
		Entry("an invariant", "invariants: {loops: {use: iteration-limit, max: 4}}", `invariant "loops" is defined a second time, first at one.yaml:3:14`),
		Entry("a policy", "policies: {public: {hardened: true}}", `policy "public" is defined a second time, first at one.yaml:4:12`),
		Entry("a provider", "providers: [{id: haiku, provider: script}]", `provider "haiku" is defined a second time, first at one.yaml:5:18`),
		Entry("a built-in check", "checks: {contains: {regex: x}}", `check "contains" is built in`),
		Entry("a built-in invariant", "invariants: {tool-call-pairing: {use: iteration-limit}}", `invariant "tool-call-pairing" is built in`),
	)
})

var _ = Describe("a budget", func() {
	It("over a column without a price is code 2, with its place", func() {
		p := exampleProject()
		p.edit(quickstart, "  - openai:gpt-4.1-mini\n", "  - openai:gpt-unheard-of\n")
		o := p.expect(2, "record", quickstart, "--max-cost", "1", "--upstream", "openai=http://127.0.0.1:9/v1")
		Expect(o.stderr).To(And(MatchRegexp(`(?m)^error: datasets/quickstart\.yaml:\d+:5: .*openai:gpt-unheard-of`), ContainSubstring("hint: ")))
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
		for _, amount := range []string{"-1", "0", "NaN", "Inf", "much"} {
			Expect(p.expect(2, "record", quickstart, "--max-cost", amount, "--upstream", "openai=http://127.0.0.1:9/v1").stderr).To(And(ContainSubstring("--max-cost"), ContainSubstring("hint: ")), amount)
		}
	})
})

var _ = Describe("items from a CSV file", func() {
	csv := func(text string) *project {
		GinkgoHelper()
		p := emptyProject()
		p.write("d.yaml", "version: 1\nname: table\nagent: {task: {description: Answer.}}\nproviders: [{provider: script, id: script}]\ndefaults: {script: [{text: \"{{expected}}\"}], checks: [{equals: \"{{expected}}\"}]}\nitems: q.csv\n")
		p.write("q.csv", text)
		return p
	}

	It("may have quotes, line breaks, CRLF and a byte order mark", func() {
		p := csv("\ufeffid,input,expected\r\n1a,\"say \"\"hi\"\", please\",\"hi\nthere, you\"\r\n\r\nb,x,{{not a template}}\r\n")
		p.succeed("run", "d.yaml", "--mode", "live")
		Expect(p.count()).To(Equal(map[string]int{"pass": 2}))
		lines := p.results(p.last())
		Expect(*lines[0].Output).To(Equal("hi\nthere, you"))
		Expect(*lines[1].Output).To(Equal("{{not a template}}"), "data is never rendered")
	})

	DescribeTable("that is wrong is code 2, with its place", func(text, at, message string) {
		p := csv(text)
		for _, args := range [][]string{{"validate", "d.yaml"}, {"run", "d.yaml"}} {
			o := p.expect(2, args...)
			Expect(o.stderr).To(And(ContainSubstring("error: q.csv:"+at+": "), ContainSubstring(message), ContainSubstring("hint: ")))
		}
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
		Expect(p.peak("validate", "d.yaml")).To(BeNumerically("<", 200<<10))
		Expect(p.peak("run", "d.yaml")).To(BeNumerically("<", 200<<10))
	},
		Entry("a row that is too short", "id,input,expected\na,x,y\nb,x\n", "3:1", "cells"),
		Entry("a row that is too long", "id,input,expected\na,x,y,z\n", "2:1", "cells"),
		Entry("a cell of 10 MB", "id,input,expected\na,"+strings.Repeat("x", 10<<20)+",y\n", "2:1", "longer than"),
		Entry("a quoted cell of 10 MB in many lines", "id,input,expected\na,\""+strings.Repeat("x\n", 5<<20)+"\",y\n", "2:1", "longer than"),
		Entry("a quote that does not end", "id,input,expected\na,\"x,y\nb,x,y\n", "2:1", "quote"),
		Entry("the same id twice", "id,input,expected\na,x,y\na,x,y\n", "3:1", `"a"`),
		Entry("an unknown column", "id,inptu,expected\na,x,y\n", "2:1", `"input" is missing`),
		Entry("semicolons", "id;input;expected\na;x;y\n", "1:1", "commas"),
	)

	It("that is empty, or has a header alone, has no items", func() {
		for _, text := range []string{"", "\n", "id,input,expected\n"} {
			p := csv(text)
			Expect(p.expect(2, "run", "d.yaml").stderr).To(And(ContainSubstring("q.csv"), ContainSubstring("hint: ")), "%q", text)
		}
	})
})

var _ = Describe("an override that meets nothing", func() {
	It("is a warning with its place, and one whose expression is wrong code 2", func() {
		p := smallWith("items:\n", "overrides: [{match: \"id == 'nobody'\", skip: x}]\nitems:\n")
		Expect(p.succeed("validate", "d.yaml").stderr).To(Equal("warning: d.yaml:5:21: no item meets \"id == 'nobody'\": the override changes nothing\nhint: mend the expression or remove the override\n"))
		p.edit("d.yaml", "id == 'nobody'", "di == 'nobody'")
		o := p.expect(2, "validate", "d.yaml")
		Expect(o.stderr).To(And(HavePrefix("error: d.yaml:5:22: "), ContainSubstring("di"), ContainSubstring("hint: ")))
	})
})
