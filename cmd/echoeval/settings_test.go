//go:build unix

package main_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("settings of a provider", func() {
	dataset := func(entry string) *project {
		p := emptyProject()
		p.write("d.yaml", "version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders:\n  - "+entry+"\nitems:\n  - {id: a, input: Hi, checks: [{contains: Hello}]}\n")
		p.write("s.yaml", "version: 1\nname: s\ndefault:\n  steps: [{text: Hello.}]\n")
		return p
	}

	DescribeTable("that no model of the vendor takes are found with their place", func(entry, message string) {
		key, _, _ := strings.Cut(message, ": ")
		place := len("  - ") + strings.Index(entry, " "+key+": ") + len(" "+key+": ") + 1
		p := dataset(entry)
		o := p.expect(2, "validate", "d.yaml")
		Expect(o.stderr).To(ContainSubstring(fmt.Sprintf("d.yaml:5:%d: providers[0].%s", place, message)))
		Expect(p.expect(2, "run", "d.yaml").stderr).To(ContainSubstring(message))
	},
		Entry(nil, "{provider: openai, model: gpt-4o, temperature: 99}", "temperature: openai takes a temperature from 0 to 2, got 99"),
		Entry(nil, "{provider: anthropic, model: claude-haiku-4-5, temperature: 1.5}", "temperature: anthropic takes a temperature from 0 to 1, got 1.5"),
		Entry(nil, "{provider: bedrock, model: m, temperature: 2}", "temperature: bedrock takes a temperature from 0 to 1, got 2"),
		Entry(nil, "{provider: gemini, model: m, temperature: 2.01}", "temperature: gemini takes"),
		Entry(nil, "{provider: compat, base_url: 'http://127.0.0.1:1/v1', model: m, temperature: .nan}", "temperature: "),
		Entry(nil, "{provider: openai, model: gpt-5, reasoning_effort: hihg}", `reasoning_effort: openai knows no effort "hihg"`),
		Entry(nil, "{provider: anthropic, model: m, reasoning_effort: none}", `reasoning_effort: anthropic knows no effort "none"`),
		Entry(nil, "{provider: gemini, model: m, seed: 2147483648}", "seed: gemini takes a seed of 32 bits"),
		Entry(nil, "{provider: openai, model: m, seed: 9223372036854775808}", "seed: "),
		Entry(nil, "{provider: openai, model: m, stop: [a, b, c, d, e]}", "stop: openai takes at most 4 stop sequences, got 5"),
		Entry(nil, "{provider: openai, model: m, cache_ttl: 5m}", "cache_ttl: openai has no setting cache_ttl"),
		Entry(nil, "{provider: anthropic, model: m, cache_ttl: 2h}", `cache_ttl: unknown value "2h"`),
		Entry(nil, "{provider: anthropic, model: m, prompt_cache_key: k}", "prompt_cache_key: anthropic has no setting"),
		Entry(nil, `{provider: openai, model: m, prompt_cache_key: ""}`, "prompt_cache_key: "),
		Entry(nil, "{provider: script, cache_messages: true}", "cache_messages: script has no setting"),
	)

	It("that say what a vendor is to keep of a prompt need no new recording", func() {
		for vendor, settings := range map[string]struct{ plain, kept, word string }{
			"anthropic": {"{provider: anthropic, model: claude-haiku-4-5}", "{provider: anthropic, model: claude-haiku-4-5, cache_ttl: 1h, cache_messages: true}", "cache_control"},
			"bedrock":   {"{provider: bedrock, model: amazon.nova-lite-v1:0}", "{provider: bedrock, model: amazon.nova-lite-v1:0, cache_ttl: 5m, cache_messages: true}", "cachePoint"},
			"openai":    {"{provider: openai, model: gpt-4o-mini}", "{provider: openai, model: gpt-4o-mini, prompt_cache_key: clinic}", "prompt_cache_key"},
		} {
			p := dataset(settings.plain)
			e := p.emulate("s.yaml")
			p.env = []string{"ANTHROPIC_API_KEY=sk-ant-0123456789abcdef", "OPENAI_API_KEY=sk-0123456789abcdef", "AWS_ACCESS_KEY_ID=" + bedrockKeyID, "AWS_SECRET_ACCESS_KEY=" + bedrockSecret}
			upstream := "--upstream=" + vendor + "=http://" + e.address
			if vendor == "openai" {
				upstream = e.upstream()
			}
			p.succeed("record", "d.yaml", upstream)
			recorded := func() (text string) {
				for _, text := range p.files("fixtures/cassettes/d") {
					return text
				}
				Fail("nothing was recorded")
				return ""
			}
			Expect(recorded()).NotTo(ContainSubstring(settings.word), vendor)
			p.edit("d.yaml", settings.plain, settings.kept)
			p.succeed("run", "d.yaml")
			Expect(p.only().Cassette.Drift).To(HaveEach(HaveField("Class", "transport")), vendor)
			Expect(p.only().Cassette.Drift).NotTo(BeEmpty(), vendor)
			Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
			p.succeed("record", "d.yaml", upstream)
			Expect(recorded()).To(ContainSubstring(settings.word), vendor)
			p.succeed("run", "d.yaml")
			Expect(p.only().Cassette.Drift).To(BeEmpty(), vendor)
			Expect(strings.Count(recorded(), settings.word)).To(BeNumerically("<=", 2), vendor)
		}
	})
})
