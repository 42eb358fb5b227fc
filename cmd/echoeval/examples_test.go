//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dnaeon/go-vcr/v2/cassette"
	"github.com/dnaeon/go-vcr/v2/recorder"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// committed lists the committed cassettes of a dataset.
// everyColumn names the columns that quickstart has recordings for.
var everyColumn = []string{"--provider", "openai:gpt-4o-mini", "--provider", "openai:gpt-4.1-mini", "--provider", "anthropic:claude-haiku-4-5", "--provider", "gemini:gemini-2.5-flash", "--provider", "bedrock:amazon.nova-lite-v1:0"}

var vendorAddresses = map[string]string{
	"openai":    "https://api.openai.com/v1/chat/completions",
	"anthropic": "https://api.anthropic.com/v1/messages",
	"gemini":    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:",
	"bedrock":   "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse",
}

func committed(dataset string) []string {
	GinkgoHelper()
	found, err := filepath.Glob(filepath.Join(suite.Root(), "fixtures", "cassettes", dataset, "*", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(found).NotTo(BeEmpty())
	return found
}

var _ = Describe("the example datasets", func() {
	It("replays quickstart to the same bytes, whatever the folder and however many items run at once", func() {
		absolute := regexp.MustCompile(`(^|["'\s=(])/(home|root|tmp|usr|var|work|private|Users|builds?)/`)
		host, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		hostname := regexp.MustCompile(`\b` + regexp.QuoteMeta(host) + `\b`)
		identities := map[string]int{}
		manifests := map[string]bool{}
		for range 2 {
			p := exampleProject()
			for _, concurrency := range []string{"1", "16"} {
				o := p.succeed("run", "datasets/quickstart.yaml", "--concurrency", concurrency)
				Expect(o.stdout).To(ContainSubstring("passed: 24 of 24"))
				run := p.last()
				identities[p.identity(run)]++
				files := p.files(run)
				Expect(files).To(HaveLen(4), "%v", files)
				for name, text := range files {
					if name == "manifest.json" {
						manifests[text] = true
						continue
					}
					for _, base := range []string{p.dir, p.home, p.temp} {
						Expect(text).NotTo(ContainSubstring(base), name)
					}
					Expect(absolute.FindAllString(text, -1)).To(BeEmpty(), name)
					Expect(hostname.FindAllString(text, -1)).To(BeEmpty(), name)
				}
				lines := p.results(run)
				Expect(lines).To(HaveLen(24))
				for i, line := range lines {
					Expect(line.Index).To(Equal(i/2 + 1))
					Expect(line.verdict()).To(Equal("pass"))
					Expect(line.Checks).NotTo(BeEmpty())
					Expect(line.Cassette.State).To(Equal("fresh"))
				}
				traces := files["traces/001.jsonl"]
				Expect(strings.Count(traces, "\n")).To(Equal(24))
				for _, line := range lines {
					raw := traces[line.Trace.Offset : line.Trace.Offset+line.Trace.Length]
					Expect(json.Valid([]byte(raw))).To(BeTrue())
					Expect(raw).To(ContainSubstring(fmt.Sprintf(`"id":%q,"provider":%q`, line.Item, line.Provider)))
				}

				var manifest struct {
					ID, Host, Started, Finished string
					Flags                       []string
					Environment                 []string
				}
				Expect(json.Unmarshal([]byte(files["manifest.json"]), &manifest)).To(Succeed())
				Expect(manifest.ID).To(MatchRegexp(`^\d{8}T\d{6}Z-quickstart-[0-9a-f]{4}$`))
				Expect(manifest.Host).To(Equal(host))
				Expect(manifest.Flags).To(ContainElement("--concurrency=" + concurrency))
				Expect(manifest.Environment).To(Equal([]string{"HOME", "PATH", "TMPDIR"}))
				Expect(manifest.Finished > manifest.Started).To(BeTrue())
			}
			latest, err := os.Readlink(p.path(".echoeval/runs/latest"))
			Expect(err).NotTo(HaveOccurred())
			Expect(latest).To(Equal(filepath.Base(p.last())))
			// Nothing outside of the runs was written.
			for _, name := range []string{"datasets", "fixtures"} {
				for file, text := range p.files(name) {
					data, err := os.ReadFile(filepath.Join(suite.Root(), name, file))
					Expect(err).NotTo(HaveOccurred())
					Expect(text == string(data)).To(BeTrue(), file)
				}
			}
			Expect(os.ReadDir(p.home)).To(BeEmpty())
		}
		Expect(identities).To(HaveLen(1))
		Expect(identities).To(ContainElement(4))
		Expect(manifests).To(HaveLen(4))
	})

	It("gives the same from another folder and as replay", func() {
		p := exampleProject()
		p.succeed("run", "datasets/quickstart.yaml")
		first := p.identity(p.last())
		cmd := p.command("replay", "../../datasets/quickstart.yaml")
		cmd.Dir = p.path("fixtures/cassettes")
		o := p.await(p.start(cmd))
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(p.runs()).To(HaveLen(2))
		Expect(p.identity(p.last())).To(Equal(first))
		// From outside, by an absolute path.
		cmd = p.command("run", p.path("datasets/quickstart.yaml"))
		cmd.Dir = p.home
		Expect(p.await(p.start(cmd)).code).To(Equal(0))
		Expect(p.runs()).To(HaveLen(3))
		Expect(p.identity(p.last())).To(Equal(first))
	})

	It("shows the three failures of regression", func() {
		p := exampleProject()
		o := p.expect(1, "run", "datasets/regression.yaml")
		const model = " openai:gpt-4o-mini"
		Expect(p.verdicts()).To(Equal(map[string]string{
			"still-right" + model:                 "pass",
			"wrong-figure" + model:                "fail/check",
			"guesses-without-looking" + model:     "fail/check",
			"calls-what-it-does-not-have" + model: "fail/invariant",
		}))
		for _, item := range []string{"wrong-figure", "guesses-without-looking", "calls-what-it-does-not-have"} {
			Expect(o.stdout).To(ContainSubstring(item))
		}
		Expect(o.stdout).To(ContainSubstring("pass_rate"))
		for _, line := range p.results(p.last()) {
			switch line.Item {
			case "wrong-figure":
				Expect(line.Checks).To(HaveLen(1))
				Expect(line.Checks[0].Status).To(Equal("fail"))
				Expect(line.Checks[0].At).To(MatchRegexp(`^datasets/regression\.yaml:\d+:\d+$`))
			case "calls-what-it-does-not-have":
				Expect(line.Invariants.Violations).To(HaveLen(1))
				Expect(line.Invariants.Violations[0].Name).To(Equal("visible-tools-only"))
			}
		}
		s := p.summary(p.last())
		Expect(s.Verdict.Code).To(Equal(1))
		Expect(s.Counts["fail"]).To(Equal(3))
		Expect(s.Verdict.Reasons).NotTo(BeEmpty())
		for _, reason := range s.Verdict.Reasons {
			Expect(reason.Code).To(Equal(1))
			Expect(reason.Kind).To(Equal("gate"))
		}
		// The verdict does not count, and is told all the same.
		o = p.succeed("run", "datasets/regression.yaml", "--fail-on", "none")
		Expect(o.stdout).To(ContainSubstring("wrong-figure"))
	})

	It("runs several datasets, each into its own folder, with the worst code", func() {
		p := exampleProject()
		o := p.expect(1, "run", "datasets/quickstart.yaml", "datasets/regression.yaml")
		Expect(p.runs()).To(HaveLen(2))
		Expect(o.stdout).To(ContainSubstring("passed: 24 of 24"))
		Expect(o.stdout).To(ContainSubstring("wrong-figure"))
	})

	It("prints the summary as JSON and nothing else on stdout", func() {
		p := exampleProject()
		o := p.expect(1, "run", "datasets/regression.yaml", "--json")
		Expect(o.stdout).To(Equal(p.read(p.last()+"/summary.json")), "stdout is not summary.json")
		o = p.expect(1, "run", "datasets/regression.yaml", "--json", "-q")
		Expect(o.stderr).To(BeEmpty())
	})

	for _, dataset := range []string{"quickstart", "regression"} {
		It("records "+dataset+" again, byte for byte", func() {
			p := exampleProject()
			want := p.files("fixtures/cassettes/" + dataset)
			Expect(os.RemoveAll(p.path("fixtures/cassettes/" + dataset))).To(Succeed())
			p.env = []string{"OPENAI_API_KEY=emulator", "ANTHROPIC_API_KEY=emulator", "GEMINI_API_KEY=emulator", "AWS_BEARER_TOKEN_BEDROCK=emulator"}
			var columns []string
			if dataset == "quickstart" {
				columns = everyColumn
			}
			o := p.recordExample(dataset, columns...)
			Expect(o.code).To(Equal(map[string]int{"quickstart": 0, "regression": 1}[dataset]), "%s", o)
			got := p.files("fixtures/cassettes/" + dataset)
			Expect(len(want)).To(BeNumerically(">=", 4))
			expectSameFiles(got, want)
			for _, line := range p.results(p.last()) {
				Expect(line.Cassette.State).To(Equal("recorded"))
			}
			// Over the old ones, one at a time and without a key: the same.
			p.env = nil
			o = p.recordExample(dataset, append([]string{"--concurrency", "1", "--tag", "!read"}, columns...)...)
			Expect(o.code).To(BeElementOf(0, 1), "%s", o)
			expectSameFiles(p.files("fixtures/cassettes/"+dataset), want)
		})
	}

	It("gives a recording the verdicts that its replay has", func() {
		p := exampleProject()
		p.recordExample("regression")
		recorded := p.verdicts()
		p.expect(1, "run", "datasets/regression.yaml")
		Expect(p.verdicts()).To(Equal(recorded))
	})

	It("writes cassettes that go-vcr loads", func() {
		count, requests, tools := 0, 0, 0
		for _, dataset := range []string{"quickstart", "regression"} {
			for _, file := range committed(dataset) {
				loaded, err := cassette.Load(strings.TrimSuffix(file, ".yaml"))
				Expect(err).NotTo(HaveOccurred(), file)
				Expect(loaded.Interactions).NotTo(BeEmpty(), file)
				for _, i := range loaded.Interactions {
					Expect(i.Request.URL).NotTo(BeEmpty())
					Expect(i.Response.Body).NotTo(BeEmpty())
					switch i.Method {
					case "TOOL":
						tools++
					case http.MethodPost:
						requests++
						Expect(i.URL).To(HavePrefix(vendorAddresses[strings.SplitN(filepath.Base(filepath.Dir(file)), "_", 2)[0]]))
					default:
						Fail("unknown method " + i.Method)
					}
				}
				count++
			}
		}
		fmt.Fprintf(GinkgoWriter, "%d cassettes, %d requests, %d tool calls\n", count, requests, tools)
		Expect(count).To(Equal(64))
		Expect(requests).To(BeNumerically(">", 140))
		Expect(tools).To(BeNumerically(">", 80))
	})

	It("writes cassettes that go-vcr's recorder replays to a client", func() {
		const item = "fixtures/cassettes/quickstart/openai_gpt-4o-mini/total-copies"
		path := filepath.Join(suite.Root(), filepath.FromSlash(item))
		loaded, err := cassette.Load(path)
		Expect(err).NotTo(HaveOccurred())
		r, err := recorder.NewAsMode(path, recorder.ModeReplaying, nil)
		Expect(err).NotTo(HaveOccurred())
		client := &http.Client{Transport: r}
		served := 0
		for _, i := range loaded.Interactions {
			if i.Method != http.MethodPost {
				continue
			}
			resp, err := client.Post(i.URL, "application/json", strings.NewReader(i.Request.Body))
			Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(resp.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			Expect(resp.StatusCode).To(Equal(http.StatusOK))
			Expect(string(body)).To(Equal(i.Response.Body))
			Expect(string(body)).To(HaveSuffix("data: [DONE]\n\n"))
			served++
		}
		Expect(served).To(Equal(2))
		Expect(r.Stop()).To(Succeed())
	})

	It("holds in a cassette a limit that was hit, and waits it out in no time", func() {
		p := exampleProject()
		p.succeed("run", "datasets/quickstart.yaml", "--item", "price-of-a-book")
		lines := p.results(p.last())
		Expect(lines).To(HaveLen(2))
		for _, line := range lines {
			Expect(line.Retries).To(Equal(1))
			Expect(line.Steps).To(Equal(2))
		}
		Expect(p.read("fixtures/cassettes/quickstart/openai_gpt-4o-mini/price-of-a-book.yaml")).To(ContainSubstring("code: 429"))
	})
})
