//go:build unix

package main_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("--mode extend", func() {
	// booking is a project whose agent writes to a world outside of the workspace: a line in a file for each booking.
	booking := func() *project {
		GinkgoHelper()
		p := emptyProject()
		p.write("book.sh", "echo booked >> bookings.txt\nwc -l < bookings.txt\n")
		p.write("agent.yaml", "task: {description: Book it.}\ntools:\n  - {name: book, description: Books a visit., effect: write, command: [sh, book.sh]}\n")
		p.write("d.yaml", "version: 1\nname: d\nagent: agent.yaml\nproviders: [openai:gpt-4o-mini]\nitems:\n  - {id: a, input: book a visit, checks: [{contains: done}]}\n")
		p.write("s.yaml", "version: 1\nname: s\ndefault:\n  steps:\n    - calls: [{name: book, args: {}}]\n    - text: done\n")
		return p
	}
	const file = "fixtures/cassettes/d/openai_gpt-4o-mini/a.yaml"
	bookings := func(p *project) int { return strings.Count(p.read("bookings.txt"), "booked\n") }

	It("records an item from its start when what it kept would hold a served write", func() {
		p := booking()
		e := p.emulate("s.yaml")
		p.succeed("record", "d.yaml", e.upstream())
		Expect(bookings(p)).To(Equal(1))
		for n, mode := range [][]string{{"run", "d.yaml", "--mode", "extend"}, {"record", "d.yaml", "--stale"}} {
			before := p.read(file)
			p.succeed(append(mode, e.upstream())...)
			Expect(p.read(file)).To(Equal(before))
			Expect(bookings(p)).To(Equal(1+n), "what fits is served: nothing is booked")
			// Another result than the second request was made with.
			text := p.read(file)
			request := strings.LastIndex(text, `"role":"tool"`)
			Expect(request).To(BeNumerically(">", 0))
			at := strings.LastIndex(text[:request], `"content":"`) + len(`"content":"`)
			p.write(file, text[:at]+"not "+text[at:])
			p.expect(4, "run", "d.yaml")
			p.succeed(append(mode, e.upstream())...)
			Expect(bookings(p)).To(Equal(2+n), "one booking, by the recording from the start")
			Expect(p.only().Cassette.State).To(Equal("recorded"))
			p.succeed("run", "d.yaml")
			Expect(p.read(file)).NotTo(ContainSubstring(`"content":"not `))
		}
	})

	It("takes live as the action of a class, and nothing else does", func() {
		p := exampleProject()
		e := p.emulate("datasets/emulator/quickstart.yaml")
		one := []string{"--item", "total-copies", "--provider", "openai:gpt-4o-mini"}
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		p.expect(4, append([]string{"run", quickstart, "--mode", "extend", "--drift", "system-prompt=fail", e.upstream()}, one...)...)
		p.succeed(append([]string{"run", quickstart, "--mode", "extend", "--drift", "system-prompt=live", e.upstream()}, one...)...)
		Expect(p.only().Cassette.State).To(Equal("recorded"))
		p.succeed(append([]string{"run", quickstart}, one...)...)
		o := p.expect(2, append([]string{"run", quickstart, "--drift", "system-prompt=live"}, one...)...)
		Expect(o.stderr).To(ContainSubstring("--mode extend"))
		p.env = append(p.env, "CI=1")
		p.expect(2, append([]string{"run", quickstart, "--mode", "extend"}, one...)...)
	})
})

var _ = Describe("replay.normalize", func() {
	It("makes equal what a rule finds, in recordings that are older than the rule, and nothing else", func() {
		p := exampleProject()
		before := p.files("fixtures")
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		p.expect(4, "run", quickstart)
		p.write(quickstart, p.read(quickstart)+"replay:\n  normalize:\n    - {in: system, regex: never (guess|invent), as: never}\n")
		p.succeed("run", quickstart)
		Expect(p.succeed("cassette", "verify", quickstart).stdout).To(ContainSubstring("24 fresh"))
		expectSameFiles(p.files("fixtures"), before)
		p.edit("datasets/agents/clerk.yaml", "what a file says", "what the files say")
		o := p.expect(4, "run", quickstart)
		Expect(o.all()).To(And(ContainSubstring("what the files say"), Not(ContainSubstring("never invent"))))
		for _, class := range p.drifts() {
			Expect(class).To(Equal("system-prompt"))
		}
	})

	It("is refused before anything runs where its expression is none", func() {
		p := exampleProject()
		p.write(quickstart, p.read(quickstart)+"replay: {normalize: [{in: system, regex: '(', as: x}]}\n")
		o := p.expect(2, "run", quickstart)
		Expect(o.stderr).To(MatchRegexp(`datasets/quickstart\.yaml:\d+:\d+: `))
		Expect(p.path(".echoeval/runs")).NotTo(BeADirectory())
	})
})
