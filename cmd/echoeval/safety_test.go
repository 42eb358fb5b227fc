//go:build unix

package main_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// closedPort returns an address on which nobody listens.
func closedPort() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().String()
}

// expectNowhere fails where a text stands in any file of the project's machine, or in the name of one. Files that the spec has written itself are named by except.
func (p *project) expectNowhere(text string, except ...string) {
	GinkgoHelper()
	looked := 0
	err := filepath.WalkDir(filepath.Dir(p.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, name := range except {
			if path == p.path(name) {
				return nil
			}
		}
		Expect(path).NotTo(ContainSubstring(text))
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			return errors.New("it stands in " + path)
		}
		looked++
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(looked).To(BeNumerically(">", 3), "nothing was looked at")
}

// oneItem makes a project with a dataset d.yaml of one item and an emulator script s.yaml of one answer.
func oneItem(answer string) *project {
	GinkgoHelper()
	p := emptyProject()
	p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer.}, tools: [read_file, write_file]}\nproviders: [openai:gpt-4o-mini]\ndefaults: {workspace: desk}\nitems:\n  - {id: a, input: hello, checks: [{not: {contains: nothing of the kind}}]}\n")
	p.write("desk/README.md", "A desk.\n")
	p.write("s.yaml", "version: 1\nname: s\ndefault:\n  steps:\n"+answer)
	return p
}

var _ = Describe("secrets", func() {
	key := "sk-" + "test-0123456789abcdef0123456789abcdef"
	other := "sk-" + "proj-ABCDEFGHIJKLMNOPQRST0123456789abcdefghij"

	It("never show the key that a recording used", func() {
		p := exampleProject()
		Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
		p.env = []string{"OPENAI_API_KEY=" + key, "CI="}
		o := p.recordExample("quickstart", "-v")
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(p.files("fixtures")).To(HaveLen(24))
		Expect(o.all()).NotTo(ContainSubstring(key))
		o = p.succeed("run", quickstart, "--format", "junit", "--format", "json", "--all", "-v")
		Expect(o.all()).NotTo(ContainSubstring(key))
		p.expectNowhere(key)
		p.expectNowhere(key[len(key)-16:])
		Expect(p.read(p.last()+"/manifest.json")).To(ContainSubstring(`"OPENAI_API_KEY"`), "its name may stand there")
	})

	It("are not shown where they stand in a flag", func() {
		p := exampleProject()
		p.env = []string{"OPENAI_API_KEY=" + key}
		p.run("run", quickstart, "--item", "total-copies", "--upstream", "openai=http://127.0.0.1:1/"+key)
		o := p.expect(2, "run", quickstart, "--item", key)
		Expect(o.all()).NotTo(ContainSubstring(key))
		p.expectNowhere(key)
	})

	It("in an answer keep a recording from being saved", func() {
		p := oneItem("    - text: the key is " + other + "\n")
		e := p.emulate("s.yaml")
		o := p.expect(4, "record", "d.yaml", e.upstream(), "-v")
		Expect(o.all()).NotTo(ContainSubstring(other))
		Expect(o.all()).To(ContainSubstring("openai-key"))
		Expect(p.files("fixtures")).To(BeEmpty())
		p.expectNowhere(other, "s.yaml")
		quarantine := p.files(".echoeval/quarantine")
		Expect(quarantine).To(HaveLen(1))
		for name, text := range quarantine {
			Expect(text).To(And(ContainSubstring("hello"), ContainSubstring("openai-key")), "what was recorded, but for the secret")
			info, err := os.Stat(p.path(".echoeval/quarantine/" + name))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))
		}
		// An old cassette stays.
		p.edit("s.yaml", other, "none")
		again := p.emulate("s.yaml")
		p.succeed("record", "d.yaml", again.upstream())
		before := p.files("fixtures")
		Expect(before).To(HaveLen(1))
		p.expect(4, "record", "d.yaml", e.upstream())
		expectSameFiles(p.files("fixtures"), before)
	})

	It("in the result of a tool keep a recording from being saved, and stand in no live result", func() {
		p := oneItem("    - calls: [{name: read_file, args: {path: README.md}}]\n    - text: \"it says {{last_tool_result}}\"\n")
		p.write("desk/README.md", "token: "+other+"\n")
		e := p.emulate("s.yaml")
		o := p.expect(4, "record", "d.yaml", e.upstream(), "-v")
		Expect(p.files("fixtures")).To(BeEmpty())
		live := p.run("run", "d.yaml", "--mode", "live", e.upstream(), "--all", "--format", "junit", "--format", "json")
		Expect(p.only().verdict()).To(Equal("fail/invariant"))
		Expect(p.only().Invariants.Violations[0].Name).To(Equal("no-secret-in-content"))
		for _, text := range []string{o.all(), live.all(), p.run("show", "latest", "a").all(), p.run("show", "latest", "--all").all()} {
			Expect(text).NotTo(ContainSubstring(other))
		}
		p.expectNowhere(other, "desk/README.md")
	})

	It("of the environment count wherever they stand", func() {
		p := oneItem("    - text: the password is correct-horse-battery\n")
		p.env = []string{"DB_PASSWORD=correct-horse-battery", "SHORT_KEY=password"}
		e := p.emulate("s.yaml")
		o := p.expect(4, "record", "d.yaml", e.upstream())
		Expect(o.all()).To(And(ContainSubstring("DB_PASSWORD"), Not(ContainSubstring("correct-horse"))))
		p.expectNowhere("correct-horse", "s.yaml")
	})

	It("handed to the tools alone stand in no file and no report, and come back in a replay", func() {
		const tenant = "tenant-5d41402abc4b"
		p := oneItem("    - calls: [{name: read_file, args: {path: README.md}}]\n    - calls: [{name: write_file, args: {path: out.txt, content: \"{{last_tool_result}}\"}}]\n    - text: \"it says {{last_tool_result}}\"\n")
		p.edit("d.yaml", "{workspace: desk}", "{workspace: desk, tool_context: {tenant_id: "+tenant+"}}")
		p.write("desk/README.md", "the tenant is "+tenant+".\n")
		e := p.emulate("s.yaml")
		o := p.run("record", "d.yaml", e.upstream(), "--all", "-v", "--recorded-at", recordedAt)
		Expect(o.code).To(Equal(1), "%s", o)
		Expect(p.only().Invariants.Violations[0].Name).To(Equal("no-hidden-parameter-leak"))
		Expect(p.files("fixtures")).To(HaveLen(1))
		recorded := p.only()
		o2 := p.expect(1, "run", "d.yaml", "--all", "-v", "--format", "junit", "--format", "json")
		Expect(p.only().Status).To(Equal(recorded.Status))
		Expect(p.only().Steps).To(Equal(3))
		Expect(p.only().Cassette.State).To(Equal("fresh"))
		for _, text := range []string{o.all(), o2.all(), p.run("show", "latest", "a").all(), p.run("cassette", "show", "fixtures/cassettes/d/openai_gpt-4o-mini/a.yaml", "--bodies").all()} {
			Expect(text).NotTo(ContainSubstring(tenant))
		}
		p.expectNowhere(tenant, "d.yaml", "desk/README.md")
	})
})

// harmful says whether a character must not reach a terminal.
func harmful(r rune) bool {
	return r != '\n' && (unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c)
}

var _ = Describe("text of a model", func() {
	const evil = `\e[31mred \x9b2J \u202Edrowssap\u2066 \0 \a \b\b\b \r\e]0;title\a \x7f end`

	It("reaches no terminal as it is", func() {
		p := oneItem("    - calls: [{name: read_file, args: {path: \"" + evil + "\"}}, {name: write_file, args: {path: b.txt, content: \"" + evil + "\"}}]\n" +
			"    - text: \"" + evil + "\"\n")
		p.write("d.yaml", strings.Replace(p.read("d.yaml"), "{not: {contains: nothing of the kind}}", `{contains: nothing}, {name: same, equals: "\e[32m\u202e\x9b"}`, 1)+
			"  - {id: \"b\\u202e\\u200f\", input: fails, tags: [\"c\\u202e\"], checks: [{contains: x}]}\n  - {id: c, input: calls, checks: [{contains: x}]}\n")
		p.write("s.yaml", "version: 1\nname: s\nconversations:\n  - match: {user: fails}\n    steps: [{error: {status: 400, code: \"bad\\e[2J\", message: \""+evil+"\"}}]\n"+
			"  - match: {user: calls}\n    steps: [{calls: [{name: delete_everything, args: {path: \""+evil+"\"}}]}, {text: \""+evil+"\"}]\n"+
			strings.TrimPrefix(p.read("s.yaml"), "version: 1\nname: s\n"))
		e := p.emulate("s.yaml")
		p.expect(1, "record", "d.yaml", e.upstream(), "--all", "-v")
		recorded := p.results(p.last())
		Expect(recorded).To(HaveLen(3))
		Expect(recorded[0].verdict()).To(Equal("fail/check"))
		Expect(*recorded[0].Output).To(And(ContainSubstring("\x1b[31mred"), ContainSubstring("\u202e"), ContainSubstring("\u009b")), "the results hold what was said")
		Expect(recorded[1].verdict()).To(Equal("error/provider"))

		const cassette = "fixtures/cassettes/d/openai_gpt-4o-mini/a.yaml"
		printed := 0
		for _, args := range [][]string{
			{"record", "d.yaml", e.upstream(), "--all", "-v"},
			{"run", "d.yaml"},
			{"run", "d.yaml", "--all", "-v", "--format", "junit", "--format", "json"},
			{"run", "d.yaml", "--json"},
			{"run", "d.yaml", "--mode", "live", e.upstream(), "--all", "-v"},
			{"show", "latest"}, {"show", "latest", "--all"}, {"show", "latest", "a"}, {"show", "latest", "b\u202e\u200f"}, {"show", "latest", "c", "--all"},
			{"report", "latest", "--format", "terminal"},
			{"report", "latest", "--format", "junit,json", "-o", "out"},
			{"cassette", "ls", "d.yaml"}, {"cassette", "ls", "d.yaml", "--json"},
			{"cassette", "show", cassette}, {"cassette", "show", cassette, "--bodies"},
			{"cassette", "verify", "d.yaml"},
			{"run", "d.yaml", "--item", "\u202eb"},
			{"run", "d.yaml", "--item", "\x1b[31m"},
			{"run", "\x1b[31m\u202e.yaml"},
			{"show", "latest", "\x1b[31m\u202e"},
			{"\x1b[31m\u202e"}, {"run", "--\x1b[31m"}, {"run", "d.yaml", "--mode", "\x1b[31m"}, {"cassette", "show", "\x1b[31m"}, {"run", "d.yaml", "--format", "\x1b[31m"}, {"run", "d.yaml", "--provider", "\u202e"},
			{"run", "--resume", "\x1b[31m"}, {"validate", "\x1b[31m\u202e"}, {"emulate", "--script", "\x1b[31m"}, {"run", "d.yaml", "--timeout", "\x1b[31m"},
		} {
			o := p.run(args...)
			Expect(o.all()).NotTo(BeEmpty())
			at := strings.IndexFunc(o.all(), harmful)
			Expect(at).To(Equal(-1), "%q prints %q", args, o.all()[max(at-20, 0):])
			printed += len(o.all())
		}
		Expect(printed).To(BeNumerically(">", 5000))

		report := p.read("out/junit.xml")
		Expect(strings.IndexFunc(report, harmful)).To(Equal(-1))
		Expect(report).To(ContainSubstring("drowssap"))
		decoder := xml.NewDecoder(strings.NewReader(report))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(json.Valid([]byte(p.read("out/report.json")))).To(BeTrue())
		for _, file := range []string{"results.jsonl", "traces/001.jsonl", "summary.json"} {
			for line := range strings.Lines(p.read(p.last() + "/" + file)) {
				Expect(json.Valid([]byte(line))).To(BeTrue(), file)
				Expect(strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < 0x20 })).To(Equal(-1), file)
			}
		}
	})

	It("is the same in the cassette: recording and replay agree", func() {
		p := oneItem("    - text: \"" + evil + "\"\n")
		e := p.emulate("s.yaml")
		p.succeed("record", "d.yaml", e.upstream())
		want := *p.only().Output
		p.succeed("run", "d.yaml")
		Expect(*p.only().Output).To(Equal(want))
		Expect(want).To(HavePrefix("\x1b[31mred"))
	})
})

var _ = Describe("a provider that is down", func() {
	It("is code 5, and the cassettes stay as they are", func() {
		p := exampleProject()
		before := p.files("fixtures")
		upstream := "--upstream=openai=http://" + closedPort() + "/v1"
		for _, args := range [][]string{{"run", quickstart, "--mode", "live"}, {"record", quickstart}} {
			began := time.Now()
			o := p.expect(5, append(args, upstream, "--item", "total-copies", "--item", "mends-a-typo")...)
			Expect(time.Since(began)).To(BeNumerically("<", 10*time.Second))
			Expect(p.count()).To(Equal(map[string]int{"error/provider": 4}))
			for _, line := range p.results(p.last()) {
				Expect(line.Error.Kind).To(Equal("provider"))
				Expect(line.Error.Message).NotTo(BeEmpty())
				Expect(line.Error.Retries).To(BeNumerically(">", 0))
			}
			Expect(o.all()).To(ContainSubstring("provider"))
			expectSameFiles(p.files("fixtures"), before)
		}
		Expect(p.files(".echoeval/quarantine")).To(BeEmpty())
		// In a replay nobody notices.
		p.succeed("run", quickstart, upstream)
	})

	DescribeTable("answers with an error", func(status, retries int) {
		p := oneItem(fmt.Sprintf("    - error: {status: %d, retry_after: 10ms}\n", status))
		e := p.emulate("s.yaml")
		p.expect(5, "record", "d.yaml", e.upstream())
		line := p.only()
		Expect(line.verdict()).To(Equal("error/provider"))
		Expect(*line.Error.HTTPStatus).To(Equal(status))
		Expect(line.Error.Retries).To(Equal(retries))
		Expect(line.Retries).To(Equal(retries))
		Expect(p.files("fixtures")).To(BeEmpty(), "an item that did not come to its end is not recorded")
	},
		Entry(nil, 400, 0), Entry(nil, 401, 0), Entry(nil, 404, 0), Entry(nil, 429, 2), Entry(nil, 500, 2), Entry(nil, 503, 2),
	)

	It("cuts an answer", func() {
		p := oneItem("    - {text: This will never arrive as a whole., cut: {after: 3 frames}}\n")
		e := p.emulate("s.yaml")
		p.expect(5, "record", "d.yaml", e.upstream())
		Expect(p.only().verdict()).To(Equal("error/provider"))
		Expect(p.files("fixtures")).To(BeEmpty())
	})

	It("hides no proven failure, and does not stop the others", func() {
		p := exampleProject()
		p.edit("datasets/emulator/regression.yaml", "      - text: I cannot delete files.", "      - error: {status: 500, retry_after: 1ms}")
		o := p.recordExample("regression")
		Expect(o.code).To(Equal(1), "%s", o)
		Expect(p.count()).To(Equal(map[string]int{"pass": 1, "fail/check": 2, "error/provider": 1}))
		codes := map[int]bool{}
		for _, reason := range p.summary(p.last()).Verdict.Reasons {
			codes[reason.Code] = true
		}
		Expect(codes).To(Equal(map[int]bool{1: true, 5: true}), "every reason is listed")
		Expect(p.files("fixtures/cassettes/regression")).To(HaveLen(4), "the old cassette of what failed is kept")
		// One of twelve down: only the outage counts.
		p.edit("datasets/emulator/quickstart.yaml", "      - text: Nine Winters costs 21.00 EUR.", "      - error: {status: 500, retry_after: 1ms}")
		e := p.emulate("datasets/emulator/quickstart.yaml")
		p.expect(5, "run", quickstart, "--mode", "live", e.upstream(), "--provider", "openai:gpt-4o-mini")
		Expect(p.count()).To(Equal(map[string]int{"pass": 11, "error/provider": 1}))
	})
})

var _ = Describe("with CI set", func() {
	It("refuses to dial, unless it is told to or stays on this machine", func() {
		for _, ci := range []string{"1", "true", "yes"} {
			p := exampleProject()
			before := p.files("fixtures")
			p.env = []string{"CI=" + ci, "OPENAI_API_KEY=unused-key-of-a-test"}
			for _, args := range [][]string{
				{"record", quickstart}, {"run", quickstart, "--mode", "record"}, {"run", quickstart, "--mode", "live"},
				{"record", quickstart, "--upstream", "openai=http://192.0.2.1/v1"}, {"record", quickstart, "--upstream", "openai=http://localhost.example.com/v1"},
			} {
				began := time.Now()
				o := p.expect(2, args...)
				Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
				Expect(o.stderr).To(And(ContainSubstring("CI is set"), ContainSubstring("--allow-network")))
				Expect(o.stdout).To(BeEmpty())
				Expect(p.path(".echoeval")).NotTo(BeADirectory())
			}
			expectSameFiles(p.files("fixtures"), before)
			e := p.emulate("datasets/emulator/quickstart.yaml")
			p.succeed("record", quickstart, "--item", "total-copies", e.upstream())
			p.succeed("run", quickstart, "--mode", "live", "--item", "total-copies", strings.Replace(e.upstream(), "127.0.0.1", "localhost", 1))
			p.succeed("run", quickstart)
		}
	})

	It("wants a key for what is not on this machine", func() {
		p := exampleProject()
		p.env = []string{"CI=false"}
		o := p.expect(2, "record", quickstart)
		Expect(o.stderr).To(And(ContainSubstring("OPENAI_API_KEY"), MatchRegexp(`datasets/quickstart\.yaml:\d+:\d+`)))
	})
})
