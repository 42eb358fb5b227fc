//go:build unix

package main_test

import (
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	bedrockColumn = "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0"
	bedrockFolder = "fixtures/cassettes/quickstart/bedrock_us.anthropic.claude-haiku-4-5-20251001-v1_0/"
	bedrockKeyID  = "AKIAIOSFODNN7EXAMPLE"
	bedrockSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	bedrockToken  = "IQoJb3JpZ2luX2VjEXAMPLEsessionTOKEN0123456789"
)

// bedrockProject makes the second column of the example one of Bedrock, with the same script.
func bedrockProject() *project {
	GinkgoHelper()
	p := exampleProject()
	p.edit(quickstart, "openai:gpt-4.1-mini", "{provider: bedrock, model: "+strings.TrimPrefix(bedrockColumn, "bedrock:")+", price: {input: 1, output: 5}}") // no price of the vendor is built in
	p.edit("datasets/emulator/quickstart.yaml", "gpt-4.1-mini", "us.anthropic.*")
	p.env = []string{"AWS_ACCESS_KEY_ID=" + bedrockKeyID, "AWS_SECRET_ACCESS_KEY=" + bedrockSecret, "AWS_SESSION_TOKEN=" + bedrockToken}
	return p
}

// recordBedrock records the column against the emulator.
func (p *project) recordBedrock() outcome {
	GinkgoHelper()
	e := p.emulate("datasets/emulator/quickstart.yaml")
	return p.succeed("record", quickstart, "--provider", bedrockColumn, "--upstream=bedrock=http://"+e.address, "--recorded-at", recordedAt)
}

var _ = Describe("a column of Bedrock", func() {
	It("has the same conversation as one of OpenAI, recorded and replayed to the same bytes", func() {
		p := bedrockProject()
		p.recordBedrock()
		Expect(p.results(p.last())).To(HaveLen(12))
		p.env = nil // a replay needs no key
		p.succeed("run", quickstart)
		Expect(p.count()).To(Equal(map[string]int{"pass": 24}))

		type talk struct {
			output                           string
			calls, steps, retries, latencyMS int
		}
		said := map[string]map[string]talk{}
		for _, r := range p.results(p.last()) {
			if said[r.Provider] == nil {
				said[r.Provider] = map[string]talk{}
			}
			said[r.Provider][r.Item] = talk{*r.Output, r.ToolCalls, r.Steps, r.Retries, *r.LatencyMS}
		}
		Expect(said[bedrockColumn]).To(HaveLen(12))
		Expect(said[bedrockColumn]).To(Equal(said["openai:gpt-4o-mini"]))

		first := p.files(strings.TrimPrefix(p.last(), p.dir+"/"))
		p.succeed("run", quickstart)
		second := p.files(strings.TrimPrefix(p.last(), p.dir+"/"))
		Expect(second["results.jsonl"]).To(Equal(first["results.jsonl"]))
		Expect(first["results.jsonl"]).NotTo(BeEmpty())

		cassettes := p.files(bedrockFolder)
		Expect(cassettes).To(HaveLen(12))
		for name, text := range cassettes {
			Expect(text).To(ContainSubstring("bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-haiku-4-5-20251001-v1"), name)
			Expect(strings.ToLower(text)).NotTo(Or(ContainSubstring("akia"), ContainSubstring("aws4-hmac"), ContainSubstring("x-amz-"), ContainSubstring("amz-sdk"), ContainSubstring(strings.ToLower(bedrockToken)), ContainSubstring("authorization")), name)
		}
	})

	It("records the same bytes again", func() {
		p := bedrockProject()
		p.recordBedrock()
		before := p.files(bedrockFolder)
		Expect(before).To(HaveLen(12))
		p.recordBedrock()
		expectSameFiles(p.files(bedrockFolder), before)
	})

	It("is stale where the prompt has changed, and shows what its recordings say", func() {
		p := bedrockProject()
		p.recordBedrock()
		Expect(p.succeed("cassette", "show", bedrockFolder+"price-of-a-book.yaml", "--bodies").stdout).To(ContainSubstring(`"toolUse":{"name":"read_file"`))
		p.edit("datasets/agents/clerk.yaml", "and never guess what a file says", "and never invent what a file says")
		p.expect(4, "run", quickstart, "--provider", bedrockColumn)
		drifts := p.drifts()
		Expect(drifts).To(HaveLen(12))
		for _, class := range drifts {
			Expect(class).To(Equal("system-prompt"))
		}
		Expect(p.results(p.last())[0].Cassette.Drift[0].Path).To(Equal("system[0].text"))
	})

	It("shows in the difference of two recordings what was called and said", func() {
		p := bedrockProject()
		p.recordBedrock()
		for name, text := range p.files("fixtures/cassettes") {
			p.write("before/"+name, text)
		}
		p.edit("datasets/emulator/quickstart.yaml", "Nine Winters costs 21.00 EUR.", "Nine Winters is 21.00 EUR.")
		p.recordBedrock()
		type item struct {
			Item, State   string
			Before, After struct {
				Tools  []string
				Answer string
			}
		}
		var diff struct{ Items []item }
		o := p.succeed("cassette", "diff", "before", quickstart, "--json")
		Expect(json.Unmarshal([]byte(o.stdout), &diff)).To(Succeed(), "%s", o)
		// Ids of calls come from the script, so that other items ask differently; only one answers differently.
		changed := slices.DeleteFunc(diff.Items, func(i item) bool { return i.State != "changed" })
		Expect(changed).To(HaveLen(1))
		i := changed[0]
		Expect(i.Item + " " + i.State).To(Equal("price-of-a-book changed"))
		Expect(i.Before.Tools).To(Equal([]string{"read_file"}))
		Expect(i.Before.Answer).To(Equal("Nine Winters costs 21.00 EUR."))
		Expect(i.After.Answer).To(Equal("Nine Winters is 21.00 EUR."))
	})

	It("takes its key from the usual variables, and says which is missing", func() {
		p := bedrockProject()
		p.env = nil
		live := []string{"run", quickstart, "--mode", "live", "--provider", bedrockColumn, "--item", "total-copies"}
		Expect(p.expect(2, live...).all()).To(ContainSubstring("AWS_BEARER_TOKEN_BEDROCK is not set"))
		p.env = []string{"AWS_ACCESS_KEY_ID=" + bedrockKeyID}
		Expect(p.expect(2, live...).all()).To(And(ContainSubstring("AWS_SECRET_ACCESS_KEY"), Not(ContainSubstring(bedrockKeyID))))
		p.env = []string{"AWS_ACCESS_KEY_ID=" + bedrockKeyID, "AWS_SECRET_ACCESS_KEY=" + bedrockSecret, "AWS_REGION=eu-central-1"}
		Expect(p.succeed("providers", "ls").stdout).To(MatchRegexp(`bedrock +AWS_ACCESS_KEY_ID is set .*https://bedrock-runtime.eu-central-1.amazonaws.com`))
	})

	It("is set up by a region, which is checked before anything runs", func() {
		p := bedrockProject()
		dataset := func(provider string) {
			p.write("d.yaml", "version: 1\nname: d\nagent: datasets/agents/clerk.yaml\nproviders:\n  - "+provider+"\nitems: [{id: a, input: x}]\n")
		}
		dataset("{provider: bedrock, model: amazon.nova-lite-v1:0, region: eu-west-1}")
		p.succeed("validate", "d.yaml")
		dataset("{provider: bedrock, model: amazon.nova-lite-v1:0, region: EU West}")
		Expect(p.expect(2, "validate", "d.yaml").all()).To(And(ContainSubstring("is no region"), ContainSubstring("d.yaml:5:")))
		dataset("{provider: openai, model: gpt-5, region: eu-west-1}")
		Expect(p.expect(2, "validate", "d.yaml").all()).To(ContainSubstring(`provider "openai" has no region`))
	})
})
