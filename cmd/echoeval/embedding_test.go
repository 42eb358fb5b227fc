//go:build unix

package main_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// nearTo is a dataset of one item whose answer is compared with a reference by a provider of role embed.
func nearTo(entry, checks string) *project {
	GinkgoHelper()
	p := emptyProject()
	p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders:\n  - openai:gpt-4o-mini\n  - {id: near, role: embed, "+entry+"}\n"+
		"items:\n  - {id: a, input: Chest pain, expected: Please call 112 now., checks: ["+checks+"]}\n")
	p.write("s.yaml", "version: 1\nname: s\ndefault:\n  steps: [{text: Call 112 now.}]\n")
	return p
}

const (
	nearMeaning = `{embedding_similarity: "{{expected}}", threshold: 0.9}`
	smallOne    = "provider: openai, model: text-embedding-3-small"
)

var _ = Describe("a check that compares meanings", func() {
	DescribeTable("is recorded behind the agent, replayed without a network, and priced apart from it", func(vendor, entry, path, address string, priced bool) {
		p := nearTo(entry, nearMeaning)
		e := p.emulate("s.yaml")
		if vendor == "compat" {
			p.edit("d.yaml", "BASE", "http://"+e.address+"/v1")
		}
		p.env = append(p.env, "AWS_ACCESS_KEY_ID="+bedrockKeyID, "AWS_SECRET_ACCESS_KEY="+bedrockSecret, "GEMINI_API_KEY="+geminiKey, "OPENAI_API_KEY=sk-of-the-embedder-0123456789")
		flags := []string{"record", "d.yaml", e.upstream()}
		if vendor != "openai" && vendor != "compat" {
			flags = append(flags, "--upstream="+vendor+"=http://"+e.address)
		}
		p.succeed(flags...)
		recorded := p.read(judgedFile)
		Expect(strings.Count(recorded, "judge: near")).To(BeNumerically(">=", 1))
		Expect(recorded).To(ContainSubstring(path))
		Expect(recorded).To(ContainSubstring(address))
		for _, secret := range []string{bedrockKeyID, bedrockSecret, geminiKey, "sk-of-the-embedder"} {
			Expect(recorded).NotTo(ContainSubstring(secret))
		}
		p.env = append(p.env[:0:0], "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9")
		p.succeed("run", "d.yaml")
		first := p.last()
		line := p.only()
		Expect(line.Checks).To(HaveLen(1))
		Expect(line.Checks[0].Status).To(Equal("pass"))
		Expect(line.Checks[0].Reason).To(MatchRegexp(`^the cosine is 0\.[89]\d*, the similarity 0\.9\d*$`))
		Expect(line.Steps).To(Equal(1), "no step of the agent")
		Expect(p.overhead(first) > 0).To(Equal(priced))
		p.succeed("run", "d.yaml")
		Expect(p.identity(p.last())).To(Equal(p.identity(first)))
		Expect(p.succeed("cassette", "verify", "d.yaml").stdout).To(ContainSubstring("1 fresh"))
		for name, text := range p.files(strings.TrimPrefix(first, p.dir+"/") + "/traces") {
			Expect(text).NotTo(ContainSubstring("embedding"), name)
		}
		Expect(p.succeed("cassette", "show", judgedFile).stdout).To(ContainSubstring("asked by a check: near"))
	},
		Entry("of OpenAI", "openai", smallOne, "/v1/embeddings", "api.openai.com", true),
		Entry("of a server that copies it", "compat", `provider: compat, model: nomic, base_url: "BASE", api_key_env: OPENAI_API_KEY, price: {input: 5, output: 0}`, "/v1/embeddings", "127.0.0.1", true),
		Entry("of Gemini, which does not count", "gemini", "provider: gemini, model: gemini-embedding-001", ":batchEmbedContents", "generativelanguage", false),
		Entry("of Titan", "bedrock", `provider: bedrock, model: "amazon.titan-embed-text-v2:0"`, "/invoke", "bedrock-runtime.us-east-1", true),
		Entry("of Cohere", "bedrock", `provider: bedrock, region: eu-west-1, model: "cohere.embed-v4:0"`, "/invoke", "bedrock-runtime.eu-west-1", true),
	)

	It("is asked again where the reference changed, and the agent is not", func() {
		p := nearTo(smallOne, `{embedding_similarity: "{{expected}}", threshold: 0.6}`)
		d := p.door(p.emulate("s.yaml"))
		p.succeed("record", "d.yaml", d.upstream())
		Expect(d.counts()["text-embedding-3-small"]).To(Equal(1), "one request for both texts")
		p.edit("d.yaml", "Please call", "You should call")
		o := p.expect(4, "run", "d.yaml")
		line := p.only()
		Expect(line.verdict()).To(Equal("stale/drift"))
		Expect(line.Cassette.Drift[0].Class).To(Equal("user-input"))
		Expect(line.Cassette.Drift[0].Path).To(Equal("judge.input[1]"))
		Expect(o.all()).To(ContainSubstring("hint: echoeval record d.yaml"))
		d.forget()
		p.succeed("record", "d.yaml", "--stale", d.upstream())
		Expect(d.counts()).To(Equal(map[string]int{"text-embedding-3-small": 1}))
		p.succeed("run", "d.yaml")
		before := p.only().ChecksHash
		p.edit("d.yaml", "text-embedding-3-small", "text-embedding-3-large")
		p.expect(4, "run", "d.yaml")
		Expect(p.only().Cassette.Drift[0].Class).To(Equal("model"))
		Expect(p.only().ChecksHash).NotTo(Equal(before), "another space is another measure")
	})

	It("that is down is an outage of the judge's kind: the agent's conversation is kept", func() {
		p := nearTo(smallOne, nearMeaning)
		d := p.door(p.emulate("s.yaml"))
		d.down("text-embedding-3-small", http.StatusUnauthorized)
		o := p.expect(5, "record", "d.yaml", d.upstream())
		line := p.only()
		Expect(line.verdict()).To(Equal("error/judge"))
		Expect(line.Error.Kind).To(Equal("judge"))
		Expect(*line.Error.HTTPStatus).To(Equal(401))
		Expect(o.all()).To(ContainSubstring("the key in OPENAI_API_KEY was refused"))
		Expect(p.read(judgedFile)).NotTo(ContainSubstring("judge: near"))
		d.down("text-embedding-3-small", 0)
		d.forget()
		p.succeed("record", "d.yaml", "--stale", d.upstream())
		Expect(d.counts()).To(Equal(map[string]int{"text-embedding-3-small": 1}))
	})

	It("is counted before a run and spends from its budget", func() {
		p := nearTo(smallOne+", price: {input: 1000000, output: 0}", nearMeaning)
		Expect(p.succeed("record", "d.yaml", "--dry-run").stdout).To(ContainSubstring("1 question of checks"))
		d := p.door(p.emulate("s.yaml"))
		p.expect(5, "record", "d.yaml", d.upstream(), "--max-cost", "5")
		Expect(p.only().verdict()).To(Equal("not_run/budget"))
		Expect(d.counts()["text-embedding-3-small"]).To(BeZero())
		o := p.expect(2, "record", "d.yaml", d.upstream(), "--max-cost", "5", "--set", "providers=[openai:gpt-4o-mini, {id: near, provider: openai, model: secret-embedding, role: embed}]")
		Expect(o.stderr).To(ContainSubstring("no price is known for provider near"))
	})

	DescribeTable("is refused before anything runs, with its place", func(entry, checks, want string) {
		p := nearTo(entry, checks)
		for _, command := range []string{"validate", "run"} {
			Expect(p.expect(2, command, "d.yaml").stderr).To(MatchRegexp(want))
		}
	},
		Entry("without a threshold", smallOne, `{embedding_similarity: "{{expected}}"}`, `d\.yaml:8:\d+: .*states no threshold`),
		Entry("of a vendor without embeddings", "provider: anthropic, model: claude-haiku-4-5", nearMeaning, `d\.yaml:6:5: provider near: anthropic has no embeddings\n.*bedrock, compat, gemini, openai`),
		Entry("of a script", "provider: script", nearMeaning, `provider near: script has no embeddings`),
		Entry("of a model that embeds nothing", "provider: bedrock, model: amazon.nova-lite-v1", nearMeaning, `d\.yaml:6:5: .*not known to embed texts`),
		Entry("with a setting that means nothing", smallOne+", temperature: 0", nearMeaning, `d\.yaml:6:\d+: providers\[1\]: key "temperature" does nothing here`),
		Entry("of nobody", smallOne, `{embedding_similarity: {reference: x, provider: far}, threshold: 0.9}`, `d\.yaml:8:\d+: .*there is no provider "far" of role embed`),
	)

	It("has a schema that knows its arguments", func() {
		p := emptyProject()
		schema := p.schema("dataset")
		valid := func(check string) error {
			text := "version: 1\nname: d\nproviders: [{id: n, provider: openai, model: m, role: embed}]\nitems: [{id: a, input: x, checks: [{embedding_similarity: " + check + ", threshold: 0.7}]}]\n"
			return schema.Validate(value("d.yaml", []byte(text)))
		}
		for _, check := range []string{"Kind", "{reference: Kind}", "{reference: [a, b], provider: n, dimensions: 256}"} {
			Expect(valid(check)).To(Succeed(), check)
		}
		for _, check := range []string{"{referense: Kind}", "{}", "{reference: x, dimensions: 0}", "{reference: x, provider: [a]}", "[x]"} {
			Expect(valid(check)).NotTo(Succeed(), check)
		}
	})
})

// overhead is what the checks of a run's only line cost.
func (p *project) overhead(run string) float64 {
	GinkgoHelper()
	lines := p.results(run)
	Expect(lines).To(HaveLen(1))
	return lines[0].OverheadUSD
}
