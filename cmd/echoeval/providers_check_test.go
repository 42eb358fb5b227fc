package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const probeScript = "version: 1\nname: probe\ndefault: {steps: [{text: Hello.}]}\n"

var _ = Describe("providers check", func() {
	const key = "not-a-real-key-0123456789"

	It("names keys, shows none and dials nobody", func() {
		p := emptyProject()
		p.env = []string{"OPENAI_API_KEY=" + key, "CI=1", "ECHO_DEFAULT_LLM_MODEL=gpt-4o"}
		o := p.succeed("providers", "check")
		Expect(o.stdout).To(And(MatchRegexp(`openai +OPENAI_API_KEY is set\n`), MatchRegexp(`anthropic +ANTHROPIC_API_KEY is not set\n`), MatchRegexp(`script +no key needed\n`)))
		Expect(o.stderr).To(Equal("note: ECHO_DEFAULT_LLM_MODEL is set and not read: a dataset says which model it asks and how\n"))
		Expect(o.all()).NotTo(ContainSubstring(key))
	})
	It("asks each provider that can be asked for one token", func() {
		p := emptyProject()
		p.write("probe.yaml", probeScript)
		e := p.emulate("probe.yaml")
		keyless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" || r.URL.Path != "/v1/chat/completions" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","model":"llama3","choices":[{"index":0,"message":{"role":"assistant","content":"H"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		}))
		DeferCleanup(keyless.Close)
		p.env = []string{"CI=1", "OPENAI_API_KEY=" + key}
		o := p.succeed("providers", "check", "--live", "--json", "--upstream=openai=http://"+e.address+"/v1", "--upstream=anthropic=http://"+e.address, "--upstream=gemini=http://"+e.address, "--upstream=compat="+keyless.URL+"/v1", "--model=compat=llama3")
		var list []struct {
			Name, Model string
			Answered    *bool
			Error       *string
		}
		Expect(json.Unmarshal([]byte(o.stdout), &list)).To(Succeed())
		asked := map[string]string{}
		for _, l := range list {
			Expect(l.Error).To(BeNil(), l.Name)
			if l.Answered != nil {
				Expect(*l.Answered).To(BeTrue(), l.Name)
				asked[l.Name] = l.Model
			}
		}
		Expect(asked).To(Equal(map[string]string{"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash", "compat": "llama3"}))
	})
	It("ends with 5 where one does not answer, and says why without the key", func() {
		p := emptyProject()
		p.write("probe.yaml", probeScript+"models: [\"claude-*\"]\n")
		e := p.emulate("probe.yaml")
		p.env = []string{"OPENAI_API_KEY=" + key}
		o := p.expect(5, "providers", "check", "--live", "--upstream=openai=http://"+e.address+"/v1", "--upstream=anthropic=http://"+e.address)
		Expect(o.stdout).To(And(ContainSubstring("claude-haiku-4-5 answers"), ContainSubstring("gpt-4o-mini does not answer: openai: status 404 (model_not_found)"), MatchRegexp(`gemini +GEMINI_API_KEY is not set +not asked`)))
		Expect(o.all()).NotTo(ContainSubstring(key))
	})
	It("ends with 5 where nobody could be asked", func() {
		p := emptyProject()
		Expect(p.expect(5, "providers", "check", "--live").stderr).To(ContainSubstring("nothing was asked"))
	})
	It("does not leave the machine in CI, and refuses what it cannot read", func() {
		p := emptyProject()
		p.env = []string{"OPENAI_API_KEY=" + key, "CI=1"}
		Expect(p.expect(2, "providers", "check", "--live").stderr).To(And(ContainSubstring("--live would dial api.openai.com, and CI is set"), ContainSubstring("--allow-network")))
		Expect(p.expect(2, "providers", "check", "--live", "--model", "opnai=x").stderr).To(ContainSubstring(`did you mean "openai"?`))
		Expect(p.expect(2, "providers", "check", "--live", "--model", "openai").stderr).To(ContainSubstring("want VENDOR=MODEL"))
	})
	It("has a list of models beside it, in which unknown is said", func() {
		p := emptyProject()
		o := p.succeed("providers", "ls", "--models")
		Expect(o.stdout).To(And(HavePrefix("as of 20"), MatchRegexp(`openai +gpt-4o-mini +128000 +16384 +0\.15 +0\.6 +tools, images`), MatchRegexp(`openai +o3-mini +unknown +unknown +1\.1 +4\.4 +unknown\n`), MatchRegexp(`gemini +gemini-embedding-001 +2048 +unknown +0\.15 +0 +embeddings\n`), MatchRegexp(`bedrock +amazon\.nova-2-lite-v1:0 +1000000 +unknown +unknown +unknown +tools`)))
		p.write("echoeval.yaml", "version: 1\nprices: own.yaml\n")
		p.write("own.yaml", "version: 1\ndate: 2026-12-01\nsource: our contract\nprices: {openai: {gpt-4o-mini: unknown}}\nmodels: {openai: {gpt-4o-mini: {context: 5}}}\n")
		p.succeed("validate", "own.yaml")
		o = p.succeed("providers", "ls", "--models")
		Expect(o.stdout).To(And(HavePrefix("as of 2026-12-01: our contract\n"), MatchRegexp(`openai +gpt-4o-mini +5 +unknown +unknown +unknown +unknown\n`)))
		var list []struct {
			Model   string
			Context *int
		}
		Expect(json.Unmarshal([]byte(p.succeed("providers", "ls", "--models", "--json").stdout), &list)).To(Succeed())
		Expect(len(list)).To(BeNumerically(">", 30))
	})
})
