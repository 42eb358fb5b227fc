package experiment_test

import (
	"context"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/replay"
)

// player is the model of a simulated user: it says its lines in order and keeps what it was asked.
type player struct {
	mu       sync.Mutex
	lines    []string
	requests []llm.Request
}

func (p *player) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		p.mu.Lock()
		line := p.lines[len(p.requests)]
		p.requests = append(p.requests, req)
		p.mu.Unlock()
		_ = yield(llm.TextDelta{Text: line}, nil) && yield(llm.Finish{Stop: llm.StopEnd, Usage: conversation.Usage{InputTokens: 5, OutputTokens: 3}}, nil)
	}
}

func (p *project) plays(lines ...string) *player {
	player := &player{lines: lines}
	p.opts.Users = map[string]*experiment.Column{"sim": {
		Provider: dataset.Provider{ID: "sim"}, Scripted: true,
		Model: func(*dataset.Item, http.RoundTripper, clock.Clock) (llm.Model, error) { return player, nil },
		Cost:  func(r llm.Response) (money.USD, bool) { return money.USD(100 * r.Usage.OutputTokens), true },
	}}
	return player
}

var _ = Describe("a conversation", func() {
	It("of several turns is one conversation, judged turn by turn and at its end", func(ctx context.Context) {
		p := newProject(head + `defaults: {workspace: files}
items:
  - id: two
    turns: [{input: first, checks: [{contains: one}, {tool_calls: {match: exact, calls: [{name: read_file}]}}]}, {input: second, checks: [no_tool_calls, {contains: nothing}]}]
    checks: [{contains: two}]
    script: [{call: {name: read_file, args: {path: notes.txt}}}, {text: one}, {text: two}]
`)
		_, lines := p.run(ctx)
		l := lines[0]
		Expect(l.Turns).To(Equal(2))
		Expect(l.Steps).To(Equal(3))
		Expect(*l.Output).To(Equal("two"))
		var names []string
		for _, c := range l.Checks {
			turn := "item"
			if c.Turn != nil {
				turn = strings.Repeat("I", *c.Turn)
			}
			names = append(names, turn+" "+c.Name+" "+string(c.Status))
		}
		Expect(names).To(Equal([]string{"item contains pass", "I contains pass", "I tool_calls pass", "II no_tool_calls pass", "II contains fail"}))
		Expect(l.Status).To(Equal(eval.Fail))
		Expect(l.Invariants.Violations).To(BeEmpty())
		p.opts.Mode = replay.Replay
		_, again := p.run(ctx)
		Expect(again[0].Cassette.State).To(Equal(eval.CassetteFresh))
		Expect(again[0].Checks).To(Equal(l.Checks))
	})

	It("goes on from messages", func(ctx context.Context) {
		p := newProject(head + `items:
  - id: on
    messages: [{role: user, content: [{type: text, text: hello}]}, {role: assistant, content: [{type: text, text: hi}]}, {role: user, content: [{type: text, text: and}]}]
    checks: [{contains: ok}]
    script: [{text: ok}]
`)
		_, lines := p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.Pass))
		Expect(lines[0].Turns).To(Equal(1))
	})

	It("is driven by a simulated user until it says that it is over", func(ctx context.Context) {
		p := newProject(strings.Replace(head, "providers: [script:one]", "providers: [script:one, {id: sim, provider: script, role: user}]", 1) + `items:
  - id: talk
    input: Move my visit
    user: {persona: curt, goal: Friday, knows: {phone: 555}, max_turns: 6}
    checks: [{contains: moved}]
    script: [{text: to when?}, {text: moved}]
`)
		player := p.plays("to Friday", "<over>")
		_, lines := p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.Pass))
		Expect(lines[0].Turns).To(Equal(2))
		Expect(lines[0].OverheadUSD).To(Equal(money.USD(600)))
		Expect(player.requests).To(HaveLen(2))
		Expect(player.requests[0].System).To(And(ContainSubstring("curt"), ContainSubstring("Friday"), ContainSubstring("phone: 555")))
		var roles []conversation.Role
		for _, m := range player.requests[1].Messages {
			roles = append(roles, m.Role())
		}
		Expect(roles).To(Equal([]conversation.Role{"assistant", "user", "assistant", "user"}), "to the user's model the roles are turned")
	})

	It("with a simulated user alone begins with its line, and stops at max_turns", func(ctx context.Context) {
		p := newProject(strings.Replace(head, "providers: [script:one]", "providers: [script:one, {id: sim, provider: script, role: user}]", 1) + `items:
  - {id: talk, user: {goal: anything, max_turns: 3}, checks: [{contains: ok}], script: [{text: ok}]}
`)
		player := p.plays("a", "b", "c", "d")
		_, lines := p.run(ctx)
		Expect(lines[0].Turns).To(Equal(3))
		Expect(player.requests).To(HaveLen(3))
	})
})

var _ = Describe("the world of an item", func() {
	const mocked = "agent: {name: a, task: {description: Help.}, tools: [read_file, {name: weather, description: Weather., parameters: {type: object, properties: {of: {type: string}}}}], max_iterations: 5}"

	It("answers calls from mocks, case by case, and records none of them", func(ctx context.Context) {
		text := strings.Replace(head, "agent: {name: a, task: {description: Help.}, tools: [read_file, write_file], max_iterations: 3}", mocked, 1)
		p := newProject(text + `items:
  - id: mocks
    input: x
    tool_mocks:
      weather: [{args: {of: Rome}, result: {sky: blue}, times: 1}, {args: {of: Rome}, error: closed}, {result: grey}]
    checks: [{contains: ok}]
    script: [{calls: [{name: weather, args: {of: Rome}}, {name: weather, args: {of: Rome}}, {name: weather, args: {of: Oslo}}]}, {text: ok}]
`)
		e, _, err := p.plan()
		Expect(err).NotTo(HaveOccurred())
		Expect(e.Head().Providers[0].ToolsHash).NotTo(BeEmpty())
		_, lines := p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.Pass))
		Expect(lines[0].ToolCalls).To(Equal(3))
		cassette, err := os.ReadFile(filepath.Join(p.opts.Cassettes, "d", "script_one", "mocks.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(cassette)).NotTo(ContainSubstring("weather"))
	})

	It("refuses a tool that nothing answers, and a mock that nothing asks for", func() {
		text := strings.Replace(head, "agent: {name: a, task: {description: Help.}, tools: [read_file, write_file], max_iterations: 3}", mocked, 1)
		_, _, err := newProject(text + "items:\n  - {id: one, input: x, checks: [json], script: [{text: ok}]}\n").plan()
		Expect(err).To(MatchError(ContainSubstring("tool weather of agent a has no command, and the item does not mock it")))
		_, _, err = newProject(text + "items:\n  - {id: one, input: x, tool_mocks: {weather: sunny, wheather: x}, checks: [json], script: [{text: ok}]}\n").plan()
		Expect(err).To(MatchError(ContainSubstring(`the agent has no tool "wheather"`)))
		Expect(failure.Render(err)).To(ContainSubstring(`did you mean "weather"?`))
	})

	It("runs tools that are programs, with the hidden parameters, and serves them in a replay", func(ctx context.Context) {
		text := strings.Replace(head, "tools: [read_file, write_file]", `tools: [{name: ask, description: Asks., parameters: {type: object}, effect: read, command: [sh, -c, "grep -o t-secret-77 | wc -l; echo x >> ran"]}]`, 1)
		p := newProject(text + `items:
  - {id: one, input: x, tool_context: {tenant: t-secret-77}, checks: [{contains: ok}], script: [{call: {name: ask, args: {q: 1, tenant: forged}}}, {text: ok}]}
`)
		programs := func() *program.Pool {
			return program.NewPool(program.Options{Root: p.dir, Environ: os.Environ()})
		}
		p.opts.Programs = programs()
		_, lines := p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.Pass))
		cassette, err := os.ReadFile(filepath.Join(p.opts.Cassettes, "d", "script_one", "one.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(cassette)).To(And(ContainSubstring("forged"), Not(ContainSubstring("t-secret-77"))), "a recording holds the model's arguments alone")
		p.opts.Mode, p.opts.Programs = replay.Replay, programs()
		_, lines = p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.Pass))
		ran, err := os.ReadFile(filepath.Join(p.dir, "ran"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(ran)).To(Equal("x\n"), "a replay starts no program")
	})

	It("fails items beyond their limits, and tells which", func(ctx context.Context) {
		p := newProject(head + "defaults: {workspace: files, checks: [{contains: ok}]}\nitems:\n  - {id: one, input: x, limits: {steps: 1, tool_calls: 5, tokens: 100}, script: [{call: {name: read_file, args: {path: notes.txt}}}, {text: ok}]}\n  - {id: two, input: x, limits: {steps: 1}, script: [{text: ok}]}\n")
		_, lines := p.run(ctx)
		Expect(*lines[0].Cause).To(Equal(eval.CauseLimit))
		Expect(lines[0].Invariants.Violations).To(HaveLen(1))
		Expect(lines[0].Invariants.Violations[0].Evidence).To(Equal("tokens 220, limit 100; steps 2, limit 1"))
		Expect(lines[1].Status).To(Equal(eval.Pass))
	})

	It("keeps quarantined items out of the verdict until their day, and says so", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: a, input: x, checks: [{contains: ok}], script: [{text: no}], quarantine: {owner: ana, until: 2099-01-31, reason: race}}\n  - {id: b, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		summary, lines := p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.OK))
		Expect(lines[0].Quarantined).To(BeTrue())
		Expect(summary.Quarantined.Items[0].Owner).To(Equal("ana"))
		p.write("d.yaml", head+"items:\n  - {id: a, input: x, checks: [{contains: ok}], script: [{text: no}], quarantine: {owner: ana, until: 2020-01-31, reason: race}}\n")
		summary, _ = p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.Gate))
		Expect(summary.Quarantined.Items[0].Over).To(BeTrue())
	})

	It("makes one verdict of the repeats where an item says how many must pass", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: a, input: x, repeat: 4, pass_if: \">= 0.5\", checks: [{contains: ok}], script: [{text: no}]}\n  - {id: b, input: x, repeat: 2, pass_if: \">= 0.5\", checks: [{contains: ok}], script: [{text: ok}]}\n")
		summary, _ := p.run(ctx)
		Expect(float64(*summary.Providers[0].Metrics["pass_rate"].Value)).To(Equal(0.5))
		Expect(summary.Providers[0].Flaky.Count).To(BeZero())
	})
})
