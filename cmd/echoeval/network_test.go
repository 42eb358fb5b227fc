//go:build unix

package main_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("what keeps a provider from answering", func() {
	const key = "sk-proj-WrongWrongWrong0123456789"
	// fails runs one item that no answer comes for, and gives its line. What the user sees says why and what to do.
	fails := func(p *project, code, hint string, args ...string) result {
		GinkgoHelper()
		o := p.expect(5, append([]string{"run", "d.yaml", "--mode", "live", "--allow-network"}, args...)...)
		line := p.only()
		Expect(line.verdict()).To(Equal("error/provider"))
		Expect(line.Error.Kind).To(Equal("provider"))
		Expect(line.Error.Hint).To(HaveValue(ContainSubstring(hint)))
		if code == "" {
			Expect(line.Error.HTTPStatus).NotTo(BeNil())
		} else {
			Expect(line.Error.Code).To(HaveValue(Equal(code)))
			Expect(line.Error.HTTPStatus).To(BeNil())
		}
		Expect(o.all()).To(ContainSubstring(hint))
		Expect(p.succeed("show", "latest", "a").stdout).To(ContainSubstring(hint))
		Expect(o.all()).NotTo(ContainSubstring(key))
		p.expectNowhere(key)
		return line
	}
	asking := func(answer string) *project {
		GinkgoHelper()
		p := oneItem("    - " + answer + "\n")
		p.env = []string{"OPENAI_API_KEY=" + key}
		return p
	}

	DescribeTable("is a wrong key, told by the name of its variable", func(provider, variable string) {
		p := asking("error: {status: 401, message: Incorrect key " + key + "}")
		p.edit("d.yaml", "[openai:gpt-4o-mini]", "["+provider+"]")
		p.env = []string{variable + "=" + key}
		server := p.emulate("s.yaml")
		vendor := strings.TrimPrefix(strings.Split(provider, ":")[0], "{provider")
		upstream := server.upstream()
		if vendor != "openai" && vendor != "" {
			upstream = strings.TrimSuffix(strings.Replace(upstream, "openai=", vendor+"=", 1), "/v1")
		}
		p.write("s.yaml", "") // it holds the key, which stands nowhere else
		line := fails(p, "", "the key in "+variable+" was refused", upstream)
		Expect(*line.Error.HTTPStatus).To(Equal(401))
		Expect(line.Error.Retries).To(BeZero())
	},
		Entry(nil, "openai:gpt-4o-mini", "OPENAI_API_KEY"),
		Entry(nil, "{provider: openai, model: gpt-4o-mini, api_key_env: MY_TOKEN}", "MY_TOKEN"),
		Entry(nil, "anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
		Entry(nil, "gemini:gemini-2.5-flash", "GEMINI_API_KEY"),
		Entry(nil, "gemini:gemini-2.5-flash", "GOOGLE_API_KEY"),
	)

	It("is a wrong address", func() {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<html><title>Nothing here</title></html>")
		}))
		DeferCleanup(server.Close)
		line := fails(asking("text: unused"), "", "check the model's name, and --upstream ("+server.URL+"/v2)", "--upstream=openai="+server.URL+"/v2")
		Expect(line.Error.Message).To(ContainSubstring("a page of HTML and no JSON: Nothing here"))
	})

	It("is a certificate that nobody vouches for", func() {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		DeferCleanup(server.Close)
		line := fails(asking("text: unused"), "tls", "check --upstream ("+server.URL+"/v1)", "--upstream=openai="+server.URL+"/v1")
		Expect(line.Error.Retries).To(BeZero())
		Expect(line.Error.Message).To(ContainSubstring("certificate"))
		Expect(line.Error.Hint).To(HaveValue(ContainSubstring("SSL_CERT_FILE=")))
	})

	It("is a name that does not exist", func() {
		line := fails(asking("text: unused"), "dns", "check the host in --upstream (http://no-such-host.invalid/v1)", "--upstream=openai=http://no-such-host.invalid/v1")
		Expect(line.Error.Message).To(ContainSubstring("no-such-host.invalid"))
		p := asking("text: unused")
		p.edit("d.yaml", "[openai:gpt-4o-mini]", "[{provider: openai, model: gpt-4o-mini, base_url: 'http://no-such-host.invalid/v1'}]")
		fails(p, "dns", "check the host in base_url (http://no-such-host.invalid/v1)")
	})

	It("is a proxy that is not there", func() {
		p := asking("text: unused")
		p.env = append(p.env, "HTTPS_PROXY=http://user:hidden-word@"+closedPort())
		line := fails(p, "proxy", "check the proxy in HTTPS_PROXY, or except the host: NO_PROXY=api.invalid", "--upstream=openai=https://api.invalid/v1")
		Expect(line.Error.Retries).To(Equal(2))
		p.expectNowhere("hidden-word")
	})

	It("is a proxy that is none, before anything runs", func() {
		p := asking("text: unused")
		p.env = append(p.env, "HTTPS_PROXY=http://user:hidden-word@:bad port")
		o := p.expect(2, "run", "d.yaml", "--mode", "live", "--allow-network", "--upstream=openai=https://api.invalid/v1")
		Expect(o.stderr).To(And(ContainSubstring("HTTPS_PROXY is no address of a proxy"), Not(ContainSubstring("hidden-word"))))
		Expect(p.runs()).To(BeEmpty())
	})

	It("is told in what was repeated, in the result and in show", func() {
		p := oneItem("    - attempts: [{error: {status: 429, retry_after: 10ms}}, {error: {status: 503, retry_after: 10ms}}, {text: At last.}]\n")
		p.succeed("record", "d.yaml", p.emulate("s.yaml").upstream())
		for _, again := range []bool{false, true} {
			if again {
				p.succeed("run", "d.yaml")
			}
			line := p.only()
			Expect(line.Retries).To(Equal(2))
			shown := p.succeed("show", "latest", "a").stdout
			Expect(shown).To(And(ContainSubstring("attempt 1: POST"), ContainSubstring("status 429"), ContainSubstring("attempt 2: POST"), ContainSubstring("status 503"), ContainSubstring("2 repeated")))
		}
	})

	DescribeTable("is a key that is missing, before anything runs", func(provider, variable string) {
		p := asking("text: unused")
		p.env = nil
		p.edit("d.yaml", "[openai:gpt-4o-mini]", "["+provider+"]")
		o := p.expect(2, "run", "d.yaml", "--mode", "live", "--allow-network")
		Expect(o.stderr).To(And(ContainSubstring(variable+" is not set"), ContainSubstring("hint: export "+variable+"=...")))
		Expect(p.runs()).To(BeEmpty())
	},
		Entry(nil, "openai:gpt-4o-mini", "OPENAI_API_KEY"),
		Entry(nil, "anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
		Entry(nil, "gemini:gemini-2.5-flash", "GEMINI_API_KEY"),
		Entry(nil, "{provider: compat, model: m, base_url: 'https://api.invalid/v1', api_key_env: MY_TOKEN}", "MY_TOKEN"),
	)
})
