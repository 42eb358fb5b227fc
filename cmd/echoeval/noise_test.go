//go:build unix

package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a regression gate on a part", func() {
	It("fails where that part is worse, though the whole is within its bound", func() {
		p := wardProject(60, `[{pass_rate: ">= 0.5"}, {regression: {metric: score, max_drop: 0.6}}, {regression: {metric: pass_rate, max_drop: 0.05}, tag: t1}, {regression: {metric: score, max_drop: 0.05}, check: verdict}]`, `verdict=pass
[ "$wording" = pushed ] && [ $((item % 2)) = 1 ] && [ $((item % 3)) = 0 ] && verdict=fail`)
		record := func() {
			GinkgoHelper()
			e := p.emulate("emulator.yaml")
			p.run("record", "ward.yaml", "--repeat", "2", e.upstream(), "--recorded-at", recordedAt, "--quiet", "--fail-on", "none")
		}
		record()
		o := p.succeed("run", "ward.yaml", "--repeat", "2")
		Expect(o.stdout).To(ContainSubstring("score of openai:gpt-4o-mini (check verdict) cannot be compared"))
		p.succeed("baseline", "accept", "latest")
		Expect(p.read("baselines/ward.json")).To(ContainSubstring(`"checks":{"verdict":{"passed":[true,true],"scores":[1,1]}}`))
		o = p.succeed("run", "ward.yaml", "--repeat", "2")
		Expect(o.stdout).To(ContainSubstring("(tag t1): "))

		p.edit("emulator.yaml", "moved:", "pushed:")
		record()
		o = p.expect(1, "run", "ward.yaml", "--repeat", "2", "--format", "markdown", "--format", "html", "--format", "json")
		Expect(o.stdout).To(MatchRegexp(`pass_rate of openai:gpt-4o-mini \(tag t1\): 1 -> 0\.667, -33\.3 points .* over 30 items: regressed`))
		Expect(o.stdout).To(MatchRegexp(`score of openai:gpt-4o-mini \(check verdict\): 1 -> 0\.833, -16\.7 points .* over 60 items: (regressed|inconclusive)`))
		Expect(o.stdout).To(MatchRegexp(`score of openai:gpt-4o-mini: 1 -> 0\.833, .*: not worse`))
		Expect(p.read(p.last() + "/reports/report.md")).To(ContainSubstring("pass_rate (tag t1)"))
		Expect(p.read(p.last() + "/reports/report.html")).To(ContainSubstring("(tag t1)"))
		Expect(p.read(p.last() + "/reports/report.json")).To(ContainSubstring(`"tag":"t1"`))

		o = p.expect(2, "run", "ward.yaml", "--set", `gates=[{regression: {metric: score, max_drop: 0.1}, tag: t9}]`)
		Expect(o.stderr).To(And(ContainSubstring("a gate looks at tag t9, and no item has it")))
	})
})

var _ = Describe("view", func() {
	It("serves the runs on a loopback address until it is interrupted, and changes nothing", func() {
		p := committedProject()
		p.succeed("run", quickstart)
		p.succeed("run", quickstart)
		before := p.files(".echoeval")
		served := p.start(p.command("view", "--address-file", "address"))
		Eventually(func() string { data, _ := os.ReadFile(p.path("address")); return string(data) }, "60s", "20ms").ShouldNot(BeEmpty())
		address := strings.TrimSpace(p.read("address"))
		Expect(address).To(HavePrefix("127.0.0.1:"))
		client := &http.Client{Transport: &http.Transport{}}
		get := func(path, host string) (int, string) {
			GinkgoHelper()
			r, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
			Expect(err).NotTo(HaveOccurred())
			if host != "" {
				r.Host = host
			}
			response, err := client.Do(r)
			Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			Expect(err).NotTo(HaveOccurred())
			return response.StatusCode, string(body)
		}
		code, page := get("/", "")
		Expect(code).To(Equal(200))
		Expect(page).To(And(ContainSubstring("Pass rate over 2 runs"), ContainSubstring(filepath.Base(p.last()))))
		code, page = get("/run/"+filepath.Base(p.last()), "")
		Expect(code).To(Equal(200))
		Expect(page).To(ContainSubstring("<title>quickstart: "))
		code, page = get("/", "evil.example")
		Expect(code).To(Equal(403))
		Expect(page).NotTo(ContainSubstring("quickstart"))
		Expect(served.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		o := p.await(served)
		Expect(o.code).To(Equal(0))
		Expect(o.stderr).To(ContainSubstring("the runs in .echoeval/runs on http://" + address + "/"))
		Expect(p.files(".echoeval")).To(Equal(before))
	})

	It("says what is no folder of runs, and listens on no other address", func() {
		p := committedProject()
		Expect(p.expect(2, "view").stderr).To(And(ContainSubstring("there is no folder of runs .echoeval/runs"), ContainSubstring("hint: run something first: echoeval run")))
		p.succeed("run", quickstart)
		Expect(p.expect(2, "view", p.last()).stderr).To(And(ContainSubstring("is one run"), ContainSubstring("hint: echoeval view .echoeval/runs")))
		Expect(p.expect(2, "view", "--listen", "0.0.0.0:0").stderr).To(ContainSubstring("it serves this machine only"))
		Expect(p.expect(2, "view", "a", "b").stderr).To(ContainSubstring("a folder of runs"))
	})
})
