//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/targetcmd"
)

// targetMark makes this test's binary a program under test.
const targetMark = "as-a-target"

func init() {
	if len(os.Args) > 2 && os.Args[1] == targetMark {
		runTarget(os.Args[2:])
	}
}

// runTarget is a program under test. What it does is said by its arguments.
func runTarget(args []string) {
	if len(args) > 1 {
		_ = os.WriteFile(args[1], []byte(strconv.Itoa(os.Getpid())), 0o644)
	}
	switch args[0] {
	case "garbage":
		fmt.Println("Hello, I am an agent.")
		os.Exit(0)
	case "two":
		_, _ = os.Stdout.WriteString("{\"output\":\"one\"}\n{\"output\":\"two\"}\n") // in one piece, so that neither is read alone
		os.Exit(0)
	case "flood":
		for {
			_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<16))
		}
	case "late crash":
		fmt.Fprintln(os.Stderr, "Traceback: the key was", os.Getenv("SECRET_TOKEN"))
		_, _ = targetAsk("")
		os.Exit(3)
	case "early crash":
		fmt.Fprintln(os.Stderr, "cannot \x1b[31mimport")
		os.Exit(3)
	case "hang", "fork", "fork and answer":
		if args[0] != "hang" {
			child := exec.Command("sleep", "600")
			if err := child.Start(); err != nil {
				panic(err)
			}
			_ = os.WriteFile("child.pid", []byte(strconv.Itoa(child.Process.Pid)), 0o644)
		}
		if args[0] != "fork and answer" {
			fmt.Fprintln(os.Stderr, "thinking")
			time.Sleep(10 * time.Minute)
		}
	}
	targetcmd.MainHandler(func(_ context.Context, t targetcmd.Turn) (targetcmd.Answer, error) { return targetAnswer(args[0], t) })
}

func targetAnswer(how string, t targetcmd.Turn) (a targetcmd.Answer, err error) {
	switch how {
	case "silent":
		a.Output = "42"
	case "messages":
		a.Output = "It is 42."
		a.Messages = []json.RawMessage{
			json.RawMessage(`{"role":"user","content":"dropped"}`),
			json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"think","arguments":"{\"of\":1}"}}]}`),
			json.RawMessage(`{"role":"tool","tool_call_id":"c1","content":"42"}`),
			json.RawMessage(`{"role":"assistant","content":"It is 42."}`),
		}
		a.Usage = &targetcmd.Usage{PromptTokens: 10, CompletionTokens: 5}
	case "error":
		_, _ = targetAsk(t.Input)
		err = errors.New("out of patience")
	case "environment":
		var b strings.Builder
		for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ECHOEVAL_MODE", "ECHOEVAL_SEED", "ECHOEVAL_NOW", "NO_PROXY", "APP_ENV", "PASSED_ON", "NOT_PASSED_ON"} {
			value := os.Getenv(name)
			if value == targetKey {
				value = "the key"
			}
			fmt.Fprintf(&b, "%s=%s ", name, value)
		}
		for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "ECHOEVAL_URL", "HTTP_PROXY", "HTTPS_PROXY", "CRM_URL"} {
			u, err := url.Parse(os.Getenv(name))
			if err != nil {
				return a, err
			}
			fmt.Fprintf(&b, "%s=%s%s ", name, u.Hostname(), u.Path)
		}
		a.Output = strings.TrimSpace(b.String())
	case "vendors":
		var b strings.Builder
		for _, name := range []string{"ANTHROPIC_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"} {
			status, text, err := targetPost(os.Getenv(name)+"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
			fmt.Fprintf(&b, "%d %s %v;", status, text, err)
		}
		a.Output = b.String()
	case "escape":
		var b strings.Builder
		proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
		if err != nil {
			return a, err
		}
		plain := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
		resp, err := plain.Get("http://api.example.com/x")
		if err != nil {
			return a, err
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Fprintf(&b, "%d %s", resp.StatusCode, text)
		_, err = plain.Get("https://api.example.com/x")
		fmt.Fprintf(&b, "%v", err)
		a.Output = b.String()
	case "workspace":
		a.Output, err = targetAsk("In " + t.Workspace + " I find " + strings.Join(entries(t.Workspace), ","))
		if err == nil {
			err = os.WriteFile(filepath.Join(t.Workspace, "written"), nil, 0o644)
		}
	case "stream":
		a.Output, err = targetStream(t.Input)
	case "parallel":
		var wg sync.WaitGroup
		said := make([]string, 4)
		for i := range said {
			wg.Go(func() { said[i], _ = targetAsk(fmt.Sprintf("%s part %d", t.Input, i)) })
		}
		wg.Wait()
		a.Output = strings.Join(said, "|")
	case "turns":
		var raw []byte
		raw, err = json.Marshal(t.Messages)
		if err == nil {
			a.Output, err = targetChat(string(raw), nil)
		}
	case "tool":
		result := targetTool("find", `{"of":"`+t.Input+`"}`, "read", `{"rows":[`+strconv.Itoa(os.Getpid())+`]}`)
		a.Output, err = targetAsk("found " + result)
	case "stubborn":
		for i := 0; ; i++ {
			if a.Output, err = targetAsk(t.Input); err == nil || i > 100 {
				return a, err
			}
			time.Sleep(50 * time.Millisecond)
		}
	default:
		a.Output, err = targetAsk(t.Input)
	}
	return a, err
}

func entries(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// targetAsk asks the model what the user asks.
func targetAsk(input string) (string, error) {
	raw, err := json.Marshal([]map[string]string{{"role": "system", "content": os.Getenv("PROMPT")}, {"role": "user", "content": input}})
	if err != nil {
		return "", err
	}
	return targetChat(string(raw), nil)
}

func targetChat(messages string, more map[string]any) (string, error) {
	body := map[string]any{"model": "gpt-4o-mini", "messages": json.RawMessage(messages)}
	for k, v := range more {
		body[k] = v
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	status, text, err := targetPost(os.Getenv("OPENAI_BASE_URL")+"/chat/completions", string(raw))
	if err != nil || status != http.StatusOK {
		return "", fmt.Errorf("status %d: %s: %w", status, text, err)
	}
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(text), &reply); err != nil || len(reply.Choices) == 0 {
		return "", fmt.Errorf("no reply: %s: %w", text, err)
	}
	return reply.Choices[0].Message.Content, nil
}

func targetPost(address, body string) (int, string, error) {
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(text)), err
}

// targetStream asks for a stream and says how many pieces came.
func targetStream(input string) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "gpt-4o-mini", "stream": true, "stream_options": map[string]bool{"include_usage": true}, "messages": []map[string]string{{"role": "user", "content": input}}})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequest(http.MethodPost, os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var text strings.Builder
	frames := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || data == "[DONE]" {
			continue
		}
		if frames++; frames == 1 && os.Getenv("CRM_URL") != "" {
			if resp, err := http.Get(os.Getenv("CRM_URL") + "/seen"); err == nil {
				_ = resp.Body.Close()
			}
		}
		var frame struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &frame); err != nil {
			return "", err
		}
		for _, c := range frame.Choices {
			text.WriteString(c.Delta.Content)
		}
	}
	return fmt.Sprintf("%s (%d frames)", text.String(), frames), nil
}

// targetTool asks the recorder about a tool, and runs it where it is told to.
func targetTool(name, arguments, effect, result string) string {
	call, _ := json.Marshal(map[string]any{"name": name, "arguments": json.RawMessage(arguments), "effect": effect})
	_, text, err := targetPost(os.Getenv("ECHOEVAL_URL")+"/tool", string(call))
	var answer struct {
		Run    string
		Result json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &answer)
	}
	if err == nil && answer.Run != "" {
		_, text, err = targetPost(os.Getenv("ECHOEVAL_URL")+"/tool/"+answer.Run, `{"result":`+result+`}`)
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
	}
	if err != nil {
		return err.Error()
	}
	return string(answer.Result)
}

// program gives the YAML list of the command that makes this binary a target.
func programUnderTest(how string, more ...string) string {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(append([]string{self, targetMark, how}, more...))
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// parrot is an emulator script whose model repeats what the user says.
const parrot = "version: 1\nname: parrot\ndefault:\n  steps: [{text: 'You said: {{last_user}}'}, {text: 'Then: {{last_user}}'}]\n"

// targeted makes a project whose dataset has a target: its keys, and what else stands in the file. Its only model is a parrot.
func targeted(target, more string) (*project, emulator) {
	GinkgoHelper()
	p := emptyProject()
	p.write("parrot.yaml", parrot)
	p.write("evals/d.yaml", "version: 1\nname: d\ntarget: {"+target+"}\n"+more)
	p.env = []string{"OPENAI_API_KEY=" + targetKey}
	return p, p.emulate("parrot.yaml")
}

const targetKey = "not-a-real-key-0123456789abcdef"

const helloItem = "items: [{id: hello, input: hello, checks: [{contains: hello}]}]\n"

func both(f func(workers string)) {
	for _, workers := range []string{"once", "lines"} {
		By(workers)
		f(workers)
	}
}

var _ = Describe("a target", func() {
	It("in Python is recorded and replayed, as its journey says", func() {
		if _, err := exec.LookPath("python3"); err != nil {
			Skip("no python3: the program in Python is not run")
		}
		p := emptyProject()
		Expect(os.CopyFS(p.dir, os.DirFS(filepath.Join("testdata", "support")))).To(Succeed())
		var mu sync.Mutex
		var seen []string
		tenants := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(seen)
		}
		crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, r.Header.Get("X-Tenant"))
			mu.Unlock()
			_, _ = io.WriteString(w, `{"order": 71, "total": "41.50"}`)
		}))
		DeferCleanup(crm.Close)
		e := p.emulate("emulator/support.yaml")
		p.env = []string{"OPENAI_API_KEY=" + targetKey}
		up := []string{e.upstream(), "--upstream", "CRM_URL=" + crm.URL}
		p.succeed("validate", "datasets/support.yaml")
		Expect(p.succeed(append([]string{"record", "datasets/support.yaml", "--dry-run"}, up...)...).stdout).To(HavePrefix("support: 1 item, 1 run in mode record, cost unknown, "))
		Expect(tenants()).To(BeEmpty(), "a dry run starts nothing")

		p.succeed(append([]string{"record", "datasets/support.yaml"}, up...)...)
		Expect(p.only().verdict()).To(Equal("pass"))
		Expect(tenants()).To(Equal([]string{"t-7f3a91"}))
		recorded := p.read("fixtures/cassettes/support/target/refund-1.yaml")
		Expect(recorded).To(And(ContainSubstring("url: https://api.openai.com/v1/chat/completions"), ContainSubstring("url: https://crm.example.com/orders/71"), ContainSubstring(" support/agent.py\n"), Not(ContainSubstring("127.0.0.1"))))
		p.expectNowhere(targetKey)
		p.expectNowhere("t-7f3a91", "datasets/support.yaml")

		crm.Close()
		var identities []string
		for range 2 {
			p.succeed("run", "datasets/support.yaml")
			identities = append(identities, p.identity(p.last()))
		}
		Expect(identities[0]).To(Equal(identities[1]))
		line := p.only()
		Expect(line.verdict()).To(Equal("pass"))
		Expect(*line.Output).To(Equal(`Refunded: {"order": 71, "total": "41.50"}`))
		Expect(line.Steps).To(Equal(2))
		Expect(line.ToolCalls).To(Equal(1))
		Expect(*line.CostUSD).To(BeNumerically(">", 0))
		Expect(p.summary(p.last()).Warnings).To(ContainElement(HaveField("Text", ContainSubstring("isolation: proxy"))))
		Expect(p.succeed("record", "datasets/support.yaml", "--dry-run", "--upstream=openai=http://127.0.0.1:9/v1").stdout).To(MatchRegexp(`^support: 1 item, 1 run in mode record, about \$0\.0000\d+, less than 1 s, sees \d+ points( if half of the items pass)?\n$`))
		Expect(p.succeed("cassette", "verify", "datasets/support.yaml").stdout).To(ContainSubstring("1 fresh, 0 stale"))
		Expect(p.succeed("show", "latest", "refund-1").stdout).To(And(ContainSubstring(`call lookup_order {"order":71}`), ContainSubstring(`executed, ran`)))
		p.succeed("baseline", "accept", "latest")
		Expect(p.read("baselines/support.json")).To(ContainSubstring(`"calls":["lookup_order"]`))

		p.edit("prompts/system.md", "of a shop", "of two shops")
		o := p.expect(4, "run", "datasets/support.yaml")
		Expect(o.stdout).To(And(ContainSubstring("1 item stale: input-files"), ContainSubstring("path:     prompts/system.md")))
		o = p.expect(4, "run", "datasets/support.yaml", "--drift", "input-files=warn")
		Expect(o.stdout).To(And(ContainSubstring("1 item stale: system-prompt"), ContainSubstring(`of two shops`)))
		p.write("support/more.py", "")
		Expect(p.expect(4, "run", "datasets/support.yaml", "--set", "target.files=[../support/*.py]").stdout).To(ContainSubstring("path:     prompts/system.md"))
	})

	It("whose prompt changed is stale by system-prompt, and recorded anew", func() {
		both(func(workers string) {
			p, e := targeted("command: "+programUnderTest("answer")+", workers: "+workers+", env: {PROMPT: Be kind.}", helloItem)
			p.succeed("record", "evals/d.yaml", e.upstream())
			p.succeed("run", "evals/d.yaml")
			p.edit("evals/d.yaml", "Be kind.", "Be terse.")
			o := p.expect(4, "run", "evals/d.yaml")
			Expect(o.stdout).To(And(ContainSubstring("1 item stale: system-prompt"), ContainSubstring(`recorded: "Be kind."`)))
			Expect(p.only().verdict()).To(Equal("stale/drift"))
			first := p.identity(p.last())
			p.expect(4, "run", "evals/d.yaml")
			Expect(p.identity(p.last())).To(Equal(first))
			p.succeed("record", "evals/d.yaml", "--stale", e.upstream())
			p.succeed("run", "evals/d.yaml")
		})
	})

	It("that asks again and again is not waited for when the recording does not fit", func() {
		p, e := targeted("command: "+programUnderTest("stubborn")+", workers: lines, env: {PROMPT: Be kind.}", helloItem)
		p.succeed("record", "evals/d.yaml", e.upstream())
		p.edit("evals/d.yaml", "Be kind.", "Be terse.")
		started := time.Now()
		p.expect(4, "run", "evals/d.yaml")
		Expect(time.Since(started)).To(BeNumerically("<", 20*time.Second))
	})

	It("that fails has failed, with the end of its standard error as evidence", func() {
		for how, want := range map[string]string{
			"garbage":     `wrote something else than {"output": "..."} or {"error": "..."}`,
			"early crash": ": cannot \x1b[31mimport",
			"late crash":  ": Traceback: the key was [value of SECRET_TOKEN]",
			"error":       "the program answered with an error: out of patience",
			"flood":       "the program wrote more than 16 MiB",
			"two":         `the program wrote `,
		} {
			both(func(workers string) {
				p, e := targeted("command: "+programUnderTest(how)+", workers: "+workers+", env_from: [SECRET_TOKEN]", helloItem)
				p.env = append(p.env, "SECRET_TOKEN=hush-hush-0123456789")
				code, verdict := 1, "fail/agent"
				if how == "early crash" { // it never comes as far as the question
					code, verdict = 5, "error/target"
				}
				o := p.expect(code, "record", "evals/d.yaml", e.upstream())
				line := p.only()
				Expect(line.verdict()).To(Equal(verdict), how)
				Expect(line.Error.Kind).To(Equal("target"))
				Expect(line.Error.Message).To(And(HavePrefix("the program "), ContainSubstring(want)), how)
				if strings.HasSuffix(how, "crash") {
					Expect(line.Error.Message).To(ContainSubstring("ended with code 3"))
				}
				Expect(o.all()).NotTo(ContainSubstring("\x1b[31m"))
				p.expectNowhere("hush-hush-0123456789")
				if how == "error" || how == "late crash" { // a model was asked: the failure can be replayed
					p.env = []string{"SECRET_TOKEN=hush-hush-0123456789"}
					p.expect(1, "run", "evals/d.yaml")
					Expect(p.only().verdict()).To(Equal("fail/agent"), how)
				} else {
					Expect(p.path("fixtures")).NotTo(BeADirectory())
				}
			})
		}
	})

	It("that hangs or leaves children is killed with them", func() {
		both(func(workers string) {
			for _, how := range []string{"hang", "fork", "fork and answer"} {
				p, e := targeted("command: "+programUnderTest(how, "own.pid")+", workers: "+workers, "defaults: {timeout: 2s}\n"+helloItem)
				code, want := 1, "fail/agent"
				if how == "fork and answer" {
					code, want = 0, "pass"
				}
				p.expect(code, "record", "evals/d.yaml", e.upstream())
				line := p.only()
				Expect(line.verdict()).To(Equal(want), how)
				if code == 1 {
					Expect(line.Error.Message).To(Equal("the program did not answer in time: thinking"))
				}
				Expect(alive(p.pid("evals/own.pid"))).To(BeFalse(), how)
				if how != "hang" {
					Eventually(func() bool { return alive(p.pid("evals/child.pid")) }).WithTimeout(5*time.Second).Should(BeFalse(), how)
				}
			}
		})
	})

	It("is killed with its children by an interrupt, and asked again by the resumed run", func() {
		both(func(workers string) {
			p, e := targeted("command: "+programUnderTest("fork", "own.pid")+", workers: "+workers, helloItem)
			s := p.start(p.command("record", "evals/d.yaml", e.upstream()))
			child, own := p.pid("evals/child.pid"), p.pid("evals/own.pid")
			Expect(s.cmd.Process.Signal(os.Interrupt)).To(Succeed())
			Expect(p.await(s).code).To(Equal(130))
			Expect(alive(own)).To(BeFalse())
			Eventually(func() bool { return alive(child) }).WithTimeout(5 * time.Second).Should(BeFalse())
			Expect(p.only().verdict()).To(Equal("not_run/interrupted"))
		})
	})

	It("that asks no model ends the run with 2, unless it may", func() {
		both(func(workers string) {
			p, e := targeted("command: "+programUnderTest("silent")+", workers: "+workers, "items: [{id: hello, input: hello, checks: [{contains: 42}]}]\n")
			p.edit("evals/d.yaml", "contains: 42", "contains: '42'")
			o := p.expect(2, "record", "evals/d.yaml", e.upstream())
			Expect(o.stderr).To(And(MatchRegexp(`error: evals/d.yaml:3:9: hello/target/1 answered without a request to a model`), ContainSubstring("hint: the program must read OPENAI_BASE_URL")))
			Expect(p.path("fixtures")).NotTo(BeADirectory())
			p.edit("evals/d.yaml", "workers", "model_calls: optional, workers")
			p.succeed("record", "evals/d.yaml", e.upstream())
			p.succeed("run", "evals/d.yaml")
			line := p.only()
			Expect(line.verdict()).To(Equal("pass"))
			Expect(line.Steps).To(Equal(0))
			Expect(line.CostUSD).To(BeNil())
			Expect(line.LatencyMS).To(BeNil())
		})
	})

	It("may tell what the recorder does not see", func() {
		p, _ := targeted("command: "+programUnderTest("messages")+", model_calls: optional", "providers: [{id: own, provider: openai, model: gpt-4o-mini}]\nitems: [{id: hello, input: hello, checks: [{tool_calls: {match: exact, calls: [{name: think, args: {of: 1}}]}}]}]\n")
		p.succeed("run", "evals/d.yaml", "--mode", "live", "--upstream=openai=http://127.0.0.1:9/v1")
		line := p.only()
		Expect(line.verdict()).To(Equal("pass"))
		Expect(line.Steps).To(Equal(2))
		Expect(line.ToolCalls).To(Equal(1))
	})

	It("sees the recorder's environment, and of the keys what the mode allows", func() {
		p, e := targeted("command: "+programUnderTest("environment")+", workers: lines, model_calls: optional, env: {APP_ENV: test}, env_from: [PASSED_ON], proxy: {CRM_URL: \"https://crm.example.com/api\"}", "items: [{id: hello, input: hello}]\n")
		p.env = append(p.env, "PASSED_ON=yes-this-is-passed-on", "NOT_PASSED_ON=no", "HTTP_PROXY=")
		p.succeed("record", "evals/d.yaml", e.upstream(), "--seed", "7", "--allow-network")
		urls := "OPENAI_BASE_URL=127.0.0.1/openai/v1 OPENAI_API_BASE=127.0.0.1/openai/v1 ANTHROPIC_BASE_URL=127.0.0.1/anthropic GOOGLE_GEMINI_BASE_URL=127.0.0.1/gemini AZURE_OPENAI_ENDPOINT=127.0.0.1/azure AWS_ENDPOINT_URL_BEDROCK_RUNTIME=127.0.0.1/bedrock ECHOEVAL_URL=127.0.0.1/echoeval "
		Expect(*p.only().Output).To(Equal("OPENAI_API_KEY=the key ANTHROPIC_API_KEY= ECHOEVAL_MODE=record ECHOEVAL_SEED=7 ECHOEVAL_NOW= NO_PROXY=127.0.0.1,localhost,::1 APP_ENV=test PASSED_ON=yes-this-is-passed-on NOT_PASSED_ON= " + urls + "HTTP_PROXY= HTTPS_PROXY= CRM_URL=127.0.0.1/-/CRM_URL/api"))
		p.succeed("run", "evals/d.yaml")
		Expect(*p.only().Output).To(Equal("OPENAI_API_KEY=replay ANTHROPIC_API_KEY=replay ECHOEVAL_MODE=replay ECHOEVAL_SEED=1 ECHOEVAL_NOW= NO_PROXY=127.0.0.1,localhost,::1 APP_ENV=test PASSED_ON=replay NOT_PASSED_ON= " + urls + "HTTP_PROXY=127.0.0.1 HTTPS_PROXY=127.0.0.1 CRM_URL=127.0.0.1/-/CRM_URL/api"))
		p.edit("evals/d.yaml", "workers: lines", "workers: once")
		p.succeed("run", "evals/d.yaml", "--drift", "input-files=serve")
		Expect(*p.only().Output).To(MatchRegexp(`ECHOEVAL_NOW=\d{4}-\d\d-\d\dT`))
	})

	It("reaches nothing by the proxy in a replay", func() {
		p, e := targeted("command: "+programUnderTest("escape")+", model_calls: optional", "items: [{id: hello, input: hello}]\n")
		p.succeed("record", "evals/d.yaml", e.upstream(), "--set", "target.command="+programUnderTest("silent"))
		p.succeed("run", "evals/d.yaml")
		Expect(*p.only().Output).To(And(HavePrefix("403 "), ContainSubstring("a replay opens no connection to api.example.com"), ContainSubstring("Forbidden")))
	})

	It("is told which vendors cannot be passed on, and why others were not read", func() {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"message","path":"`+r.URL.Path+`"}`)
		}))
		DeferCleanup(upstream.Close)
		p, e := targeted("command: "+programUnderTest("vendors"), "items: [{id: hello, input: hello}]\n")
		p.succeed("record", "evals/d.yaml", e.upstream(), "--upstream", "anthropic="+upstream.URL)
		for range 2 {
			Expect(*p.only().Output).To(And(HavePrefix(`200 {"type":"message","path":"/v1/messages"}`), ContainSubstring("501"), ContainSubstring("proxy: {AZURE_OPENAI_ENDPOINT"), ContainSubstring("signed anew")))
			Expect(p.summary(p.last()).Warnings).To(ContainElement(HaveField("Code", "unread-model-traffic")))
			Expect(p.only().CostUSD).To(BeNil())
			p.succeed("run", "evals/d.yaml")
		}
		Expect(p.read("fixtures/cassettes/d/target/hello.yaml")).To(ContainSubstring("url: https://api.anthropic.com/v1/messages"))
	})

	It("gets streams as they come, in a replay too", func() {
		p, e := targeted("command: "+programUnderTest("stream"), helloItem)
		p.succeed("record", "evals/d.yaml", e.upstream())
		output := *p.only().Output
		Expect(output).To(MatchRegexp(`^You said: hello \(\d+ frames\)$`))
		Expect(output).NotTo(ContainSubstring("(1 frames)"))
		p.succeed("run", "evals/d.yaml")
		Expect(*p.only().Output).To(Equal(output))
		Expect(p.only().Steps).To(Equal(1))
	})

	It("passes a stream on before it has ended", func() {
		seen := make(chan struct{})
		early := true
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet { // the program says that it has read the first piece
				close(seen)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			frame := func(text string) {
				_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
				w.(http.Flusher).Flush()
			}
			frame("hel")
			select {
			case <-seen:
			case <-time.After(20 * time.Second):
				early = false
			}
			frame("lo")
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		}))
		DeferCleanup(upstream.Close)
		p, _ := targeted("command: "+programUnderTest("stream")+", proxy: {CRM_URL: \"https://crm.example.com\"}", helloItem)
		p.succeed("record", "evals/d.yaml", "--upstream", "openai="+upstream.URL+"/v1", "--upstream", "CRM_URL="+upstream.URL)
		Expect(early).To(BeTrue())
		Expect(*p.only().Output).To(Equal("hello (2 frames)"))
		p.succeed("run", "evals/d.yaml")
	})

	It("that waits for a model when its time is over was failed by the model", func() {
		upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client is gone
			<-r.Context().Done()
		}))
		DeferCleanup(upstream.Close)
		p, _ := targeted("command: "+programUnderTest("answer"), "defaults: {timeout: 2s}\n"+helloItem)
		p.expect(5, "record", "evals/d.yaml", "--upstream", "openai="+upstream.URL+"/v1")
		Expect(p.only().verdict()).To(Equal("error/timeout"))
		Expect(p.path("fixtures")).NotTo(BeADirectory())
	})

	It("may ask several models at once, and replays to the same bytes whatever the concurrency", func() {
		var items strings.Builder
		items.WriteString("items:\n")
		for i := range 12 {
			fmt.Fprintf(&items, "  - {id: i-%d, input: question %d, checks: [{contains: question %d part 3}]}\n", i, i, i)
		}
		both(func(workers string) {
			p, e := targeted("command: "+programUnderTest("parallel")+", workers: "+workers, items.String())
			p.succeed("record", "evals/d.yaml", e.upstream(), "--concurrency", "4", "--recorded-at", recordedAt)
			Expect(p.count()).To(Equal(map[string]int{"pass": 12}))
			identities := map[string]bool{}
			for _, n := range []string{"1", "6"} {
				p.succeed("run", "evals/d.yaml", "--concurrency", n)
				identities[p.identity(p.last())] = true
			}
			Expect(identities).To(HaveLen(1))
		})
	})

	It("keeps a process for each worker, and its state for the turns of an item", func() {
		p, e := targeted("command: "+programUnderTest("turns")+", workers: lines", "items: [{id: talk, turns: [{input: first, checks: [{contains: first}]}, {input: second, checks: [{contains: 'You said: second'}]}]}]\n")
		p.succeed("record", "evals/d.yaml", e.upstream())
		for range 2 {
			Expect(p.only().verdict()).To(Equal("pass"))
			p.succeed("run", "evals/d.yaml")
		}
		Expect(p.only().Steps).To(Equal(2))
	})

	It("works in a copy of the workspace, whose place no recording knows", func() {
		both(func(workers string) {
			p, e := targeted("command: "+programUnderTest("workspace")+", workers: "+workers, "defaults: {workspace: files}\n"+"items: [{id: hello, input: hello, checks: [{contains: 'a.txt,b.txt'}]}]\n")
			p.write("evals/files/a.txt", "a")
			p.write("evals/files/b.txt", "b")
			p.succeed("record", "evals/d.yaml", e.upstream())
			p.succeed("run", "evals/d.yaml")
			Expect(p.path("evals/files/written")).NotTo(BeAnExistingFile())
			Expect(p.read("fixtures/cassettes/d/target/hello.yaml")).To(ContainSubstring("In {{echoeval:echoeval.workspace}} I find"))
			for name, text := range p.files(".") {
				Expect(text).NotTo(ContainSubstring(p.temp), name)
			}
		})
	})

	It("has its tools recorded, served and mocked where it asks the recorder", func() {
		p, e := targeted("command: "+programUnderTest("tool"), helloItem)
		p.edit("evals/d.yaml", "contains: hello", "contains: found")
		p.succeed("record", "evals/d.yaml", e.upstream())
		output := *p.only().Output
		Expect(output).To(MatchRegexp(`^You said: found \{"rows":\[\d+\]\}$`))
		Expect(p.read("fixtures/cassettes/d/target/hello.yaml")).To(ContainSubstring("url: tool:///find"))
		p.succeed("run", "evals/d.yaml")
		Expect(*p.only().Output).To(Equal(output), "the tool did not run: another process would have given another result")
		Expect(p.only().ToolCalls).To(Equal(1))
		Expect(p.succeed("show", "latest", "hello").stdout).To(ContainSubstring("served"))
		p.edit("evals/d.yaml", "input: hello,", "input: hello, tool_mocks: {find: {rows: [mocked]}},")
		p.succeed("record", "evals/d.yaml", e.upstream())
		Expect(*p.only().Output).To(Equal(`You said: found {"rows":["mocked"]}`))
		Expect(p.read("fixtures/cassettes/d/target/hello.yaml")).NotTo(ContainSubstring("tool:///find"))
	})

	It("tells an outage of the vendor from a failure of its own", func() {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		DeferCleanup(upstream.Close)
		p, _ := targeted("command: "+programUnderTest("answer"), helloItem)
		p.expect(5, "record", "evals/d.yaml", "--upstream", "openai="+upstream.URL+"/v1")
		line := p.only()
		Expect(line.verdict()).To(Equal("error/provider"))
		Expect(*line.Error.HTTPStatus).To(Equal(503))
		Expect(line.Retries).To(Equal(2))
	})

	It("stays within --max-cost", func() {
		p, e := targeted("command: "+programUnderTest("answer"), helloItem)
		p.expect(5, "record", "evals/d.yaml", e.upstream(), "--max-cost", "0.000001")
		Expect(p.only().verdict()).To(Equal("not_run/budget"))
		p.succeed("record", "evals/d.yaml", e.upstream(), "--max-cost", "1")
	})

	It("dials nothing in CI that nobody allowed", func() {
		p, e := targeted("command: "+programUnderTest("answer")+", proxy: {CRM_URL: \"https://crm.example.com\"}", helloItem)
		p.env = append(p.env, "CI=true")
		Expect(p.expect(2, "record", "evals/d.yaml").stderr).To(ContainSubstring("--mode record would dial crm.example.com, and CI is set"))
		p.edit("evals/d.yaml", `, proxy: {CRM_URL: "https://crm.example.com"}`, "")
		Expect(p.expect(2, "record", "evals/d.yaml").stderr).To(ContainSubstring("--mode record would dial api.openai.com, and CI is set"))
		p.succeed("record", "evals/d.yaml", e.upstream())
		p.succeed("run", "evals/d.yaml")
	})

	It("is found before anything runs, and validate starts it not", func() {
		p, _ := targeted("command: [./absent]", helloItem)
		for _, args := range [][]string{{"run", "evals/d.yaml"}, {"validate", "evals/d.yaml"}} {
			Expect(p.expect(2, args...).stderr).To(MatchRegexp(`(?m)^error: evals/d.yaml:3:20: .*there is no program ./absent$`))
		}
		p.edit("evals/d.yaml", "[./absent]", "[sh, -c, 'echo started >../started']")
		p.succeed("validate", "evals/d.yaml")
		Expect(p.succeed("validate", "evals/d.yaml", "--item", "hello").stdout).To(ContainSubstring("target:\n  command:"))
		Expect(p.path("started")).NotTo(BeAnExistingFile())
		Expect(p.path(".echoeval")).NotTo(BeADirectory())
	})
})
