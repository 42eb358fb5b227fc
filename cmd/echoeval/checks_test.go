//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// checkedBy makes a project with a dataset of one item a check, each answered "one two three" by script. A check is written as in the dataset.
func checkedBy(checks ...string) *project {
	GinkgoHelper()
	p := emptyProject()
	var b strings.Builder
	b.WriteString("version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders: [{id: script, provider: script}]\ndefaults: {script: [{text: one two three}]}\nitems:\n")
	for i, c := range checks {
		fmt.Fprintf(&b, "  - {id: item-%d, input: hello, expected: three, tags: [a], checks: [%s]}\n", i, c)
	}
	p.write("evals/d.yaml", b.String())
	return p
}

// script writes a script of the shell below evals.
func (p *project) script(name, text string) {
	GinkgoHelper()
	p.write("evals/"+name, "#!/bin/sh\n"+text+"\n")
	Expect(os.Chmod(p.path("evals/"+name), 0o755)).To(Succeed())
}

// word answers as the check "word" of the specs: a score by the words of the output.
const word = `grep -q '"output":"one two three"' && echo '{"score":0.75,"reason":"three words"}'`

// alive reports whether a process exists that is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// pid waits for a file with a process id.
func (p *project) pid(file string) int {
	GinkgoHelper()
	var pid int
	Eventually(func() (err error) {
		data, err := os.ReadFile(p.path(file))
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err
	}).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(Succeed())
	return pid
}

var _ = Describe("checks in other programs", func() {
	It("judge, in the folder of the file that names them, wherever the command is typed", func() {
		p := checkedBy("{command: [checks/word.sh], name: word, threshold: 0.75}", "{command: [sh, -c, 'cd checks; ./word.sh'], name: word, threshold: 0.76}", "{not: {command: [checks/word.sh]}}", "{command: [checks/word.sh], weight: 0}")
		p.script("checks/word.sh", word)
		p.expect(1, "run", "--mode", "live", "evals/d.yaml")
		Expect(p.verdicts()).To(Equal(map[string]string{"item-0 script": "pass", "item-1 script": "fail/check", "item-2 script": "pass", "item-3 script": "pass"}))
		Expect(p.succeed("show", "latest", "item-1").stdout).To(And(ContainSubstring("three words"), ContainSubstring("a score of at least 0.76 from sh -c")))
		first := p.identity(p.last())
		cmd := p.command("run", "--mode", "live", "../evals/d.yaml")
		cmd.Dir = p.path("evals")
		Expect(p.await(p.start(cmd)).code).To(Equal(1))
		Expect(p.identity(p.last())).To(Equal(first))
		Expect(p.succeed("validate", "evals/d.yaml").stdout).To(ContainSubstring("4 items"))
	})

	It("are unjudged, never failed, when they misbehave", func() {
		p := checkedBy(
			`{command: [sh, -c, 'exit 3']}`,
			`{command: [sh, -c, 'echo nothing of the kind']}`,
			`{command: [sh, -c, 'yes']}`,
			`{command: [sh, -c, 'sleep 600']}`,
			`{command: [./bomb.sh, "0"]}`,
			`{command: [sh, -c, 'kill -9 $$']}`,
			`{command: {run: [./two.sh], workers: lines}}`,
			`{command: {run: [sh, -c, 'read line; sleep 600'], workers: lines}}`,
			`{command: [sh, -c, 'printf "{\"score\":1,\"reason\":\"\377\"}"']}`,
			`{command: [sh, -c, 'exec <&-; echo "{\"score\":1}"']}`,
		)
		p.script("two.sh", `while read -r line; do printf '{"score":1}\n{"score":0}\n'; done`)
		p.script("bomb.sh", `[ "$1" -gt 5 ] && { echo $$ >last.pid; sleep 600; }; ./bomb.sh $(($1+1)) & ./bomb.sh $(($1+1)) & wait`)
		started := time.Now()
		p.expect(5, "run", "--mode", "live", "evals/d.yaml", "--concurrency", "16")
		Expect(time.Since(started)).To(BeNumerically("<", 40*time.Second))
		want := []string{"ended with code 3", "no verdict", "wrote more than 1 MiB", "did not answer within 10s", "did not answer within 10s", "ended by a signal (killed)", "more than one line", "did not answer within 10s (a worker reads a line", "UTF-8", "the program scored 1"}
		lines := p.results(p.last())
		Expect(lines).To(HaveLen(len(want)))
		for i, line := range lines {
			verdict := "unjudged/check_crash"
			if i == len(want)-1 {
				verdict = "pass"
			}
			Expect(line.verdict()).To(Equal(verdict), line.Item)
			Expect(line.Checks[0].Reason).To(ContainSubstring(want[i]), line.Item)
		}
		Eventually(func() bool { return alive(p.pid("evals/last.pid")) }).WithTimeout(5 * time.Second).Should(BeFalse())
	})

	It("that do not exist are found before anything runs", func() {
		p := checkedBy("{command: [./absent, x]}", "{command: {run: [no-such-program-here]}}", "{command: [./plain]}")
		p.write("evals/plain", "")
		for _, args := range [][]string{{"run", "--mode", "live", "evals/d.yaml"}, {"validate", "evals/d.yaml"}} {
			o := p.expect(2, args...)
			Expect(o.stderr).To(And(
				MatchRegexp(`(?m)^error: evals/d.yaml:7:\d+: .*there is no program ./absent$`),
				MatchRegexp(`(?m)^error: evals/d.yaml:8:\d+: .*there is no program "no-such-program-here" on the PATH$`),
				MatchRegexp(`(?m)^error: evals/d.yaml:9:\d+: .*./plain is not executable$`),
				ContainSubstring("hint: chmod +x ./plain"),
			))
		}
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})

	It("get no keys and no proxy, and what they say is redacted", func() {
		key := "not-a-real-key-0123456789"
		p := checkedBy(`{command: [./env.sh]}`, `{command: [./leak.sh]}`, `{command: [./crash.sh]}`)
		p.env = []string{"OPENAI_API_KEY=" + key, "HTTPS_PROXY=http://127.0.0.1:9", "AWS_PROFILE=work", "CI="}
		p.script("env.sh", `printf '{"score":1,"reason":"%s"}' "$(env | sed 's/=.*//' | grep -v -e '^_$' -e PWD -e SHLVL | sort | tr '\n' ' ')"`)
		p.script("leak.sh", `printf '{"score":1,"reason":"the key is `+key+`"}'`)
		p.script("crash.sh", `echo "in $PWD: `+key+`" >&2; exit 1`)
		p.expect(5, "run", "--mode", "live", "evals/d.yaml", "--format", "junit")
		lines := p.results(p.last())
		Expect(lines[0].Checks[0].Reason).To(Equal("HOME LANG PATH TMPDIR TZ "))
		Expect(lines[1].Checks[0].Reason).To(Equal("the key is [value of OPENAI_API_KEY]"))
		Expect(lines[2].Checks[0].Reason).To(Equal("the program ended with code 1: in evals: [value of OPENAI_API_KEY]"))
		p.expectNowhere(key, "evals/leak.sh", "evals/crash.sh")
	})

	It("as workers give the same bytes, whatever the concurrency", func() {
		var checks []string
		for range 60 {
			checks = append(checks, "{command: {run: [./word.sh], workers: lines, with: {max: 80}}, name: short, threshold: 0.5}")
		}
		p := checkedBy(checks...)
		p.script("word.sh", `echo started >>starts
while IFS= read -r line; do case $line in *'"with":{"max":80}'*) echo '{"score":0.75,"reason":"as told"}';; *) echo '{"score":0}';; esac; done`)
		identities := map[string]bool{}
		for _, n := range []string{"1", "8"} {
			p.write("evals/starts", "")
			p.succeed("run", "--mode", "live", "evals/d.yaml", "--concurrency", n)
			identities[p.identity(p.last())] = true
			most, err := strconv.Atoi(n)
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(p.read("evals/starts"), "started")).To(And(BeNumerically(">=", 1), BeNumerically("<=", most)), "a process is kept for each worker")
		}
		Expect(identities).To(HaveLen(1))
		Expect(p.count()).To(Equal(map[string]int{"pass": 60}))
	})

	It("are killed with their children by an interrupt, and judged by the resumed run", func() {
		p := checkedBy(`{command: [./slow.sh]}`)
		p.script("slow.sh", `[ -f go ] || { sleep 600 & echo $! >child.pid; wait; }; echo '{"score":1}'`)
		s := p.start(p.command("run", "--mode", "live", "evals/d.yaml"))
		child := p.pid("evals/child.pid")
		Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(p.await(s).code).To(Equal(130))
		Eventually(func() bool { return alive(child) }).WithTimeout(5 * time.Second).Should(BeFalse())
		Expect(p.only().verdict()).To(Equal("not_run/interrupted"))
		p.write("evals/go", "")
		p.succeed("run", "--resume", p.last())
		Expect(p.only().verdict()).To(Equal("pass"))
	})

	It("may be written in Python", func() {
		if _, err := exec.LookPath("python3"); err != nil {
			Skip("no python3: the check in Python is not run")
		}
		p := checkedBy("{command: [python3, checks/short.py], name: short, threshold: 0.8}", "{command: {run: [python3, checks/lines.py], workers: lines, with: {max: 1}}, name: short-lines, threshold: 0.8}", "{command: [python3, checks/broken.py]}")
		p.write("evals/checks/short.py", `import json, sys
c = json.load(sys.stdin); n = len(c["output"].split())
print(json.dumps({"score": min(1, 80 / max(n, 1)), "reason": f"{n} words"}))
`)
		p.write("evals/checks/lines.py", `import json, sys
for line in sys.stdin:
    c = json.loads(line); n = len(c["output"].split())
    print(json.dumps({"score": min(1, c["check"]["with"]["max"] / n), "reason": f"{n} words, {c['item']['id']}, {c['expected']}, {len(c['messages'])} messages"}), flush=True)
`)
		p.write("evals/checks/broken.py", "import json, sys\nc = json.load(sys.stdin)\nprint(c['absent'])\n")
		p.expect(1, "run", "--mode", "live", "evals/d.yaml")
		lines := p.results(p.last())
		Expect(lines[0].verdict()).To(Equal("pass"))
		Expect(lines[0].Checks[0].Reason).To(Equal("3 words"))
		Expect(lines[1].verdict()).To(Equal("fail/check"))
		Expect(lines[1].Checks[0].Reason).To(Equal("3 words, item-1, three, 2 messages"))
		Expect(lines[2].verdict()).To(Equal("unjudged/check_crash"))
		Expect(lines[2].Checks[0].Reason).To(And(ContainSubstring("ended with code 1"), ContainSubstring("KeyError: 'absent'"), ContainSubstring("checks/broken.py")))
	})
})
