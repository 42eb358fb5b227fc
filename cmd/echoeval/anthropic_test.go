//go:build unix

package main_test

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const twoVendors = `version: 1
name: vendors
agent: agents/clerk.yaml
providers:
  - openai:gpt-4o-mini
  - anthropic:claude-haiku-4-5
  - {id: older, provider: anthropic, model: claude-haiku-4-5, api_version: "2023-06-01", temperature: 0, max_tokens: 500}
  - {id: thinking, provider: anthropic, model: claude-opus-4-5, thinking: {budget_tokens: 2048}}
defaults:
  workspace: workspaces/bookshop
  checks: [{tokens: {max: 20000}}]
items:
  - id: price
    input: What does Nine Winters cost?
    checks: [{contains: "21.00"}, {tool_calls: {match: exact, calls: [{name: read_file, args: {path: stock.csv}}, {name: list_dir, args: {path: orders}}]}}, {cost: {max_usd: 0.2}}]
  - id: refused
    input: Tell me a secret.
    checks: [contains: cannot, no_tool_calls]
`

const twoVendorsScript = `version: 1
name: vendors
models: [gpt-4o-mini, claude-*]
conversations:
  - match: {user: "What does Nine Winters cost?", system_contains: Clerk}
    steps:
      - attempts:
          - error: {status: 529, retry_after: 2s}
          - {reasoning: The price is in the list., text: "I look, é 漢字.", calls: [{name: read_file, args: {path: stock.csv}}, {name: list_dir, args: {path: orders}}], usage: {input: 900, output: 60}}
      - {text: 'It costs 21.00 EUR.', usage: {input: 1000, cached_input: 800, output: 12}}
  - match: {user: Tell me a secret.}
    steps: [{refusal: I cannot do that.}]
`

var _ = Describe("a dataset with a column of another vendor", func() {
	const key = "sk-ant-not-a-real-key-0123456789"
	prepare := func() (*project, []string) {
		GinkgoHelper()
		p := exampleProject()
		p.write("datasets/vendors.yaml", twoVendors)
		p.write("datasets/emulator/vendors.yaml", twoVendorsScript)
		p.edit("datasets/agents/clerk.yaml", "role: ", "role: Clerk and ")
		p.env = []string{"OPENAI_API_KEY=" + key, "ANTHROPIC_API_KEY=" + key}
		e := p.emulate("datasets/emulator/vendors.yaml")
		return p, []string{e.upstream(), "--upstream=anthropic=http://" + e.address}
	}

	It("records, replays and holds the same conversation", func() {
		p, upstreams := prepare()
		p.succeed(append([]string{"record", "datasets/vendors.yaml", "--recorded-at", recordedAt}, upstreams...)...)
		Expect(p.count()).To(Equal(map[string]int{"pass": 8}))
		recorded := p.files("fixtures/cassettes/vendors")
		Expect(recorded).To(HaveLen(8))
		for name, text := range recorded {
			Expect(text).NotTo(Or(ContainSubstring(key), ContainSubstring("placeholder"), ContainSubstring("partial: true")), name)
			if !strings.HasPrefix(name, "openai") {
				Expect(text).To(And(ContainSubstring("https://api.anthropic.com/v1/messages"), ContainSubstring("Anthropic-Version")), name)
			}
		}

		p.env = []string{"CI=true"}
		p.succeed("run", "datasets/vendors.yaml")
		Expect(p.count()).To(Equal(map[string]int{"pass": 8}))
		identity := p.identity(p.last())
		byItem := map[string]result{}
		for _, r := range p.results(p.last()) {
			Expect(r.Cassette.State).To(Equal("fresh"))
			Expect(r.CostUSD).NotTo(BeNil(), "%s has a price", r.Provider)
			first, known := byItem[r.Item]
			if !known {
				byItem[r.Item] = r
				continue
			}
			Expect(r.Output).To(Equal(first.Output), r.Provider)
			Expect([]int{r.Steps, r.ToolCalls, r.Retries}).To(Equal([]int{first.Steps, first.ToolCalls, first.Retries}), r.Provider)
		}
		columns := p.conversations(p.last(), "price")
		Expect(columns).To(HaveLen(4))
		Expect(columns[0]).To(HaveExactElements(
			"user: What does Nine Winters cost?",
			`assistant: I look, é 漢字. read_file{"path":"stock.csv"} list_dir{"path":"orders"}`,
			HavePrefix("read_file gives "), HavePrefix("list_dir gives "),
			"assistant: It costs 21.00 EUR.",
		))
		Expect(columns).To(HaveEach(Equal(columns[0])), "the same script gives the same conversation")
		p.succeed("run", "datasets/vendors.yaml")
		Expect(p.identity(p.last())).To(Equal(identity), "two replays are the same")
		Expect(p.summary(p.last()).Warnings).To(BeEmpty())
		Expect(p.succeed("show", "latest", "price", "--provider", "thinking").stdout).To(ContainSubstring("21.00"))
	})

	It("is stale by the same classes, with the place in the vendor's request", func() {
		p, upstreams := prepare()
		record := append([]string{"record", "datasets/vendors.yaml", "--recorded-at", recordedAt}, upstreams...)
		p.succeed(record...)
		before := p.files("fixtures/cassettes/vendors")
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		p.expect(4, "run", "datasets/vendors.yaml", "--provider", "anthropic:claude-haiku-4-5")
		Expect(p.drifts()).To(Equal(map[string]string{"price anthropic:claude-haiku-4-5": "system-prompt", "refused anthropic:claude-haiku-4-5": "system-prompt"}))
		d := p.results(p.last())[0].Cassette.Drift[0]
		Expect(d.Path).To(Equal("system[0].text"))
		Expect(d.Old).To(ContainSubstring("guess"))
		Expect(d.New).To(ContainSubstring("invent"))

		p.edit("datasets/agents/clerk.yaml", "and never invent what a file says", "and never guess what a file says")
		p.edit("datasets/workspaces/bookshop/stock.csv", "21.00", "22.00")
		p.expect(4, "run", "datasets/vendors.yaml", "--provider", "thinking")
		Expect(p.drifts()).To(HaveKeyWithValue("price thinking", "input-files"))
		p.edit("datasets/workspaces/bookshop/stock.csv", "22.00", "21.00")
		p.edit("datasets/vendors.yaml", "temperature: 0", "temperature: 0.5")
		p.expect(4, "run", "datasets/vendors.yaml", "--provider", "older")
		Expect(p.drifts()).To(HaveKeyWithValue("price older", "sampling"))
		p.edit("datasets/vendors.yaml", "temperature: 0.5", "temperature: 0")

		p.edit("datasets/emulator/vendors.yaml", "It costs 21.00 EUR.", "It costs just 21.00 EUR.")
		e := p.emulate("datasets/emulator/vendors.yaml")
		p.succeed("record", "datasets/vendors.yaml", "--recorded-at", recordedAt, e.upstream(), "--upstream=anthropic=http://"+e.address, "--cassettes", "again")
		o := p.run("cassette", "diff", "fixtures/cassettes", "datasets/vendors.yaml", "--cassettes", "again")
		Expect(o.all()).To(And(ContainSubstring("It costs 21.00 EUR."), ContainSubstring("It costs just 21.00 EUR."), ContainSubstring("claude-haiku-4-5")), "%s", o)
		expectSameFiles(p.files("fixtures/cassettes/vendors"), before)
	})

	It("warns of settings that the API does not take, and refuses them where it must not", func() {
		p, upstreams := prepare()
		p.edit("datasets/vendors.yaml", `api_version: "2023-06-01", `, "")
		p.succeed(append([]string{"record", "datasets/vendors.yaml", "--provider", "older"}, upstreams...)...)
		Expect(p.summary(p.last()).Warnings).To(ContainElement(HaveField("Code", "temperature-left-out")))
		p.edit("datasets/vendors.yaml", "max_tokens: 500", "capabilities: strict")
		o := p.run(append([]string{"record", "datasets/vendors.yaml", "--provider", "older"}, upstreams...)...)
		Expect(o.code).NotTo(Equal(0), "%s", o)
		Expect(o.all()).To(ContainSubstring("version 2026-10-21 of the API takes no temperature"))
	})

	It("needs the vendor's key, and names the variable", func() {
		p, _ := prepare()
		p.env = []string{"CI="}
		o := p.expect(2, "record", "datasets/vendors.yaml", "--provider", "older")
		Expect(o.stderr).To(And(ContainSubstring("ANTHROPIC_API_KEY is not set"), ContainSubstring("hint: export ANTHROPIC_API_KEY=...")))
	})
})

// conversations gives what was said about an item in each column of a run, a line for each message and result.
func (p *project) conversations(run, item string) (out [][]string) {
	GinkgoHelper()
	traces := p.read(run + "/traces/001.jsonl")
	for _, r := range p.results(run) {
		if r.Item != item {
			continue
		}
		Expect(r.Trace.Segment).To(Equal(1))
		var trace struct {
			Events []struct {
				Kind, Name             string
				Input, Message, Result json.RawMessage // each kind of event has its own of that name
			}
		}
		Expect(json.Unmarshal([]byte(traces[r.Trace.Offset:r.Trace.Offset+r.Trace.Length]), &trace)).To(Succeed())
		var said []string
		for _, e := range trace.Events {
			switch e.Kind {
			case "start":
				var input []spoken
				Expect(json.Unmarshal(e.Input, &input)).To(Succeed())
				for _, m := range input {
					said = append(said, m.line())
				}
			case "reply":
				var m spoken
				Expect(json.Unmarshal(e.Message, &m)).To(Succeed())
				said = append(said, m.line())
			case "tool":
				said = append(said, e.Name+" gives "+string(e.Result))
			}
		}
		out = append(out, said)
	}
	return out
}

// spoken is a message as traces hold it.
type spoken struct {
	Role    string
	Content []struct {
		Type, Text string
		Tool       string          `json:"tool_name"`
		Input      json.RawMessage `json:"tool_input"`
	}
}

// line is the message on one line, without reasoning: not every vendor shows it.
func (m spoken) line() string {
	line := m.Role + ":"
	for _, c := range m.Content {
		switch c.Type {
		case "text":
			line += " " + c.Text
		case "tool_call":
			line += " " + c.Tool + string(c.Input)
		}
	}
	return line
}
