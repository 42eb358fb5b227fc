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

// shifting is a project whose tool gives another number whenever it is asked, and whose check wavers over item 1 whatever the answer is. Item 0 fails where the number is odd.
func shifting() *project {
	GinkgoHelper()
	p := wardProject(3, `{pass_rate: null}`, `verdict=pass
case $item in
0) case $case in *'"output":"it is '[13579]'"'*) verdict=fail;; esac;;
1) [ $((repeat % 2)) = 0 ] && verdict=fail;;
esac`)
	p.write("agent.yaml", "task: {description: Tell the number.}\ntools:\n  - {name: number, description: Tells a number., effect: read, command: [sh, number.sh]}\n")
	p.write("number.sh", "cat >/dev/null\necho x >>asked\nwc -l <asked | tr -d ' '\n")
	p.write("emulator.yaml", "version: 1\nname: ward\nconversations:\n  - match: {user_regex: \"^Move visit [0-9]+\\\\.$\"}\n    steps:\n      - calls: [{name: number, args: {}}]\n      - {text: \"it is {{last_tool_result}}\"}\n")
	return p
}

var _ = Describe("the noise ledger", func() {
	It("blames what wavers, from recordings that hold a part of the world fixed, and then offline", func() {
		p := shifting()
		e := p.emulate("emulator.yaml")
		record := func(args ...string) string {
			GinkgoHelper()
			p.succeed(append([]string{"record", "ward.yaml", "--repeat", "4", e.upstream(), "--recorded-at", recordedAt, "--quiet", "--concurrency", "1"}, args...)...)
			return filepath.Base(p.last())
		}
		outputs := func() map[string]map[string]bool {
			out := map[string]map[string]bool{}
			for _, line := range p.results(p.last()) {
				if out[line.Item] == nil {
					out[line.Item] = map[string]bool{}
				}
				out[line.Item][*line.Output] = true
			}
			return out
		}
		record()
		Expect(outputs()["visit-000"]).To(HaveLen(4), "the tool gives another number each time")
		asked := p.read("asked")
		judge := record("--freeze", "agent", "--cassettes", "noise/agent")
		Expect(outputs()).To(HaveEach(HaveLen(1)))
		Expect(p.read("asked")).To(Equal(asked), "no tool ran")
		agent := record("--freeze", "tools", "--cassettes", "noise/tools")
		Expect(outputs()).To(HaveEach(HaveLen(1)))
		Expect(p.read("asked")).To(Equal(asked), "no tool ran")
		Expect(p.expect(2, "noise", "ward", "--judge", agent).stderr).To(ContainSubstring("was recorded with --freeze tools: it belongs to --agent"))

		// From here on nothing answers.
		p.remove("number.sh")
		p.succeed("run", "ward.yaml", "--repeat", "4", "--cassettes", "noise/agent")
		Expect(outputs()).To(HaveEach(HaveLen(1)))
		replayed := filepath.Base(p.last())
		p.succeed("run", "ward.yaml", "--repeat", "4", "--cassettes", "noise/tools")
		p.succeed("run", "ward.yaml", "--repeat", "4")
		all := filepath.Base(p.last())
		Expect(p.expect(2, "noise", all, "--judge", all).stderr).To(ContainSubstring("does not have the agent frozen"))

		o := p.succeed("noise", all, "--judge", replayed, "--agent", agent)
		Expect(o.stdout).To(HavePrefix("noise of ward on openai:gpt-4o-mini: 3 items with repeats\n"))
		Expect(o.stdout).To(ContainSubstring("flaky: visit-000 (environment) 2/4, judge alone "))
		Expect(o.stdout).To(ContainSubstring("flaky: visit-001 (judge) 2/4, judge alone 2/4, tools frozen 2/4"))
		Expect(o.stdout).To(MatchRegexp(`(?m)^    agent +±0, variance 0 \[0, 0\.\d+\], 0 %$`))
		Expect(o.stdout).To(MatchRegexp(`(?m)^    environment +±0\.\d+, variance 0\.111 \[0, 0\.\d+\], 50 %$`))
		Expect(o.stdout).To(ContainSubstring("frozen tools: 9 calls repeated, all with the same result"))
		Expect(p.succeed("noise", all, "--judge", judge, "--agent", agent).stdout).To(Equal(o.stdout), "the run of a recording says the same")

		o = p.succeed("noise", all)
		Expect(o.stdout).To(MatchRegexp(`(?m)^    judge +not told: record --freeze agent, and give its run as --judge$`))
		Expect(o.stdout).To(ContainSubstring("flaky: visit-000 (not told) 2/4"))
		Expect(p.succeed("noise", all, "--judge", judge, "--format", "json").stdout).To(And(ContainSubstring(`"source":"agent and environment"`), ContainSubstring(`{"source":"environment","variance":null,"low":null,"high":null,"share":null,"why":"record --freeze tools, and give its run as --agent"}`)))
		Expect(p.succeed("noise", all, "--judge", judge, "--agent", agent, "--format", "markdown").stdout).To(ContainSubstring("| `visit-000` | environment | 2/4 |"))
		page := p.succeed("noise", all, "--format", "html").stdout
		Expect(page).To(And(HavePrefix("<!doctype html>"), ContainSubstring("not told"), Not(ContainSubstring("<script"))))
	})

	It("freezes only what there is, and beside the dataset's own cassettes", func() {
		p := shifting()
		e := p.emulate("emulator.yaml")
		args := []string{"record", "ward.yaml", "--repeat", "2", e.upstream()}
		Expect(p.expect(2, append(args, "--freeze", "agent")...).stderr).To(And(ContainSubstring("records beside the dataset's own cassettes"), ContainSubstring("hint: echoeval record ward.yaml --freeze agent --cassettes noise/agent")))
		Expect(p.expect(2, append(args, "--freeze", "tool", "--cassettes", "x")...).stderr).To(ContainSubstring("want agent or tools"))
		Expect(p.expect(2, "run", "ward.yaml", "--freeze", "agent", "--cassettes", "x").stderr).To(ContainSubstring("--freeze is for recording whole"))
		for _, freeze := range []string{"agent", "tools"} {
			o := p.expect(4, append(args, "--freeze", freeze, "--cassettes", "noise")...)
			Expect(o.all()).To(ContainSubstring("hint: echoeval record ward.yaml --repeat 2 --stale"), "what is frozen comes from the dataset's own cassettes")
			Expect(p.path("noise")).NotTo(BeADirectory())
		}
		// What no longer fits is stale, not recorded anew.
		p.succeed(args...)
		p.edit("agent.yaml", "Tell the number.", "Tell the number now.")
		o := p.expect(4, append(args, "--freeze", "agent", "--cassettes", "noise")...)
		Expect(o.all()).To(ContainSubstring("stale: system-prompt"))
	})
})

var _ = Describe("gold", func() {
	It("begins a file of labels, holds the check against it and says what its rate is worth", func() {
		p := wardProject(12, `{pass_rate: null}`, `verdict=pass
[ "$item" -ge 9 ] && verdict=fail`)
		e := p.emulate("emulator.yaml")
		p.succeed("record", "ward.yaml", e.upstream(), "--recorded-at", recordedAt, "--quiet")
		p.succeed("run", "ward.yaml")
		o := p.succeed("gold", "ward", "--check", "verdict", "--template")
		Expect(o.stdout).To(HavePrefix("version: 1\nlabels:\n  - {item: \"visit-000\", answer: \"moved: Move visit 000.\", pass: null}\n"))
		Expect(strings.Count(o.stdout, "pass: null")).To(Equal(12))
		p.write("gold/verdict.yaml", o.stdout)
		o = p.succeed("gold", "ward", "--check", "verdict", "--labels", "gold/verdict.yaml")
		Expect(o.stdout).To(And(ContainSubstring("0 labels; 12 still to be given"), ContainSubstring("agreement   not told"), ContainSubstring("advisory: no label")))
		p.expect(1, "gold", "ward", "--check", "verdict", "--labels", "gold/verdict.yaml", "--gate")

		// Of the nine that it passes people pass eight; the three that it fails are bad.
		text := p.read("gold/verdict.yaml")
		for n, line := range strings.Split(text, "\n")[2:14] {
			pass := "true"
			if n >= 8 {
				pass = "false"
			}
			text = strings.Replace(text, line, strings.Replace(line, "null", pass, 1), 1)
		}
		p.write("gold/verdict.yaml", text)
		o = p.succeed("gold", "ward", "--check", "verdict", "--labels", "gold/verdict.yaml", "--gate")
		Expect(o.stdout).To(MatchRegexp(`^verdict against 12 labels
  agreement   0\.917 \[0\.\d+, 0\.\d+\]
  sensitivity 1 \[0\.\d+, 1\] of 8 that pass
  specificity 0\.75 \[0\.\d+, 0\.\d+\] of 4 that do not
  pass rate of openai:gpt-4o-mini: found 0\.75 \[0\.\d+, 0\.\d+\], corrected 0\.667 \[0\.\d+, 1\]
  visit-008 on openai:gpt-4o-mini: passed, people do not: it may
$`))
		Expect(p.expect(1, "gold", "ward", "--check", "verdict", "--labels", "gold/verdict.yaml", "--gate", "--floor", "0.95").stdout).To(ContainSubstring("advisory: agreement is below 0.95"))
		Expect(p.succeed("gold", "ward", "--check", "verdict", "--labels", "gold/verdict.yaml", "--json").stdout).To(ContainSubstring(`"matched":12,"unmatched":0,"open":0,`))
		Expect(p.expect(2, "gold", "ward", "--check", "kind", "--labels", "gold/verdict.yaml").stderr).To(ContainSubstring(`has no check "kind"`))
		Expect(p.expect(2, "gold", "ward", "--check", "verdict").stderr).To(ContainSubstring("want one of --labels and --template"))
		Expect(p.expect(2, "gold", "ward", "--check", "verdict", "--labels", "absent.yaml").stderr).To(ContainSubstring("hint: echoeval gold ward --check verdict --template begins one"))
	})
})
