package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/tools/files"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
)

func TestExperiment(t *testing.T) { suite.Run(t, "experiment") }

// answers is a model that gives the item's scripted steps in order; a step "fail" is an error of the provider, a step "wait" waits for the end of the context.
type answers struct {
	steps []dataset.Step
	mu    sync.Mutex
	next  int
}

func (a *answers) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a.mu.Lock()
		step := a.steps[min(a.next, len(a.steps)-1)]
		a.next++
		a.mu.Unlock()
		usage := conversation.Usage{InputTokens: 100, OutputTokens: 10}
		if step.Text != nil {
			switch *step.Text {
			case "fail":
				yield(nil, &llm.Error{Vendor: "fake", Status: 500, Code: "server_error", Message: "down"})
				return
			case "wait":
				<-ctx.Done()
				yield(nil, context.Cause(ctx))
				return
			}
			_ = yield(llm.TextDelta{Text: *step.Text}, nil) && yield(llm.Finish{Stop: llm.StopEnd, Usage: usage}, nil)
			return
		}
		for i, c := range step.Calls {
			if !yield(llm.CallStart{Index: i, ID: fmt.Sprintf("call-%s-%d", c.Name, i), Name: c.Name}, nil) || !yield(llm.CallDelta{Index: i, Arguments: c.Args.JSON()}, nil) {
				return
			}
		}
		yield(llm.Finish{Stop: llm.StopToolCalls, Usage: usage}, nil)
	}
}

// project is a folder with a dataset.
type project struct {
	dir  string
	opts experiment.Options
}

func newProject(text string, more ...string) *project {
	GinkgoHelper()
	p := &project{dir: GinkgoT().TempDir()}
	p.write("echoeval.yaml", "version: 1\n")
	p.write("files/notes.txt", "one\ntwo\n")
	p.write("d.yaml", text)
	for i := 0; i+1 < len(more); i += 2 {
		p.write(more[i], more[i+1])
	}
	p.opts = experiment.Options{
		Mode: replay.Record, Seed: 1, RecordedAt: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), Traces: results.KeepAll,
		Temp: GinkgoT().TempDir(), Cassettes: filepath.Join(p.dir, "cassettes"), Quarantine: filepath.Join(p.dir, "quarantine"), Clock: clock.Wall{},
		Tools:         func(ws experiment.Workspace) []tool.Tool { return files.New(ws) },
		RecordCommand: func(item, provider string) string { return "record " + item },
	}
	return p
}

func (p *project) write(name, text string) {
	GinkgoHelper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
}

func (p *project) plan() (*experiment.Experiment, []gate.Gate, error) {
	GinkgoHelper()
	d, err := dataset.Open(filepath.Join(p.dir, "d.yaml"), dataset.Options{Dir: p.dir})
	if err != nil {
		return nil, nil, err
	}
	opts := p.opts
	opts.Dataset = d
	for _, provider := range d.Providers {
		opts.Columns = append(opts.Columns, experiment.Column{
			Provider: provider, Scripted: true,
			Model: func(item *dataset.Item, _ http.RoundTripper, _ clock.Clock) (llm.Model, error) {
				return &answers{steps: item.Script}, nil
			},
			Cost: func(r llm.Response) (money.USD, bool) { return money.USD(r.Usage.OutputTokens), true },
		})
	}
	var specs []gate.Spec
	for _, g := range d.Gates {
		specs = append(specs, gate.Spec{Metric: g.Metric, Bound: g.Bound, Off: g.Off, Pos: g.Pos})
	}
	gates, err := gate.Parse(specs)
	Expect(err).NotTo(HaveOccurred())
	e, err := experiment.New(opts)
	return e, gates, err
}

func (p *project) run(ctx context.Context) (*results.Summary, []eval.Result) {
	GinkgoHelper()
	e, gates, err := p.plan()
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	Expect(results.WriteManifest(dir, results.Manifest{ID: "x", Plan: e.Head()})).To(Succeed())
	journal, err := results.Create(dir, clock.Wall{})
	Expect(err).NotTo(HaveOccurred())
	summary, _, err := e.Run(ctx, dir, journal, &results.Finished{}, gate.Judge(gates, gate.Input{}))
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	defer run.Close()
	var lines []eval.Result
	for line, err := range run.Lines() {
		Expect(err).NotTo(HaveOccurred())
		lines = append(lines, line)
	}
	left, err := os.ReadDir(p.opts.Temp)
	Expect(err).NotTo(HaveOccurred())
	Expect(left).To(BeEmpty(), "workspaces are removed")
	return summary, lines
}

const head = "version: 1\nname: d\nagent: {name: a, task: {description: Help.}, tools: [read_file, write_file], max_iterations: 3}\nproviders: [script:one]\n"

var _ = Describe("a run", func() {
	It("gives every line the status and cause of the table", func(ctx context.Context) {
		p := newProject(head + `defaults: {workspace: files, checks: [{contains: ok}]}
items:
  - {id: pass, input: x, script: [{text: ok}]}
  - {id: fail-check, input: x, script: [{text: no}]}
  - {id: fail-invariant, input: x, script: [{call: {name: nothing, args: {}}}, {text: ok}]}
  - {id: fail-iterations, input: x, script: [{call: {name: read_file, args: {path: notes.txt}}}]}
  - {id: error-provider, input: x, script: [{text: fail}]}
  - {id: error-timeout, input: x, timeout: 30ms, script: [{text: wait}]}
  - {id: skipped, input: x, skip: not today, script: [{text: ok}]}
`)
		p.opts.Mode = replay.Live
		_, lines := p.run(ctx)
		got := map[string]string{}
		for _, l := range lines {
			cause := "-"
			if l.Cause != nil {
				cause = *l.Cause
			}
			got[l.Item] = string(l.Status) + " " + cause
			Expect(l.Cassette).To(BeNil())
		}
		Expect(got).To(Equal(map[string]string{
			"pass": "pass -", "fail-check": "fail check", "fail-invariant": "fail invariant", "fail-iterations": "fail iterations",
			"error-provider": "error provider", "error-timeout": "error timeout", "skipped": "skipped dataset",
		}))
		for _, l := range lines {
			if l.Item == "error-provider" {
				Expect(*l.Error.HTTPStatus).To(Equal(500))
				Expect(*l.Error.Code).To(Equal("server_error"))
			}
		}
	})

	It("records, replays and judges tools of the workspace on a fresh copy", func(ctx context.Context) {
		p := newProject(head + `defaults: {workspace: files, checks: [{contains: ok}]}
items:
  - {id: one, input: x, script: [{call: {name: write_file, args: {path: notes.txt, content: new}}}, {call: {name: read_file, args: {path: notes.txt}}}, {text: ok}]}
  - {id: two, input: x, script: [{call: {name: read_file, args: {path: notes.txt}}}, {text: ok}]}
`)
		_, recorded := p.run(ctx)
		p.opts.Mode = replay.Replay
		summary, replayed := p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.OK))
		for i := range recorded {
			Expect(recorded[i].Cassette.State).To(Equal(eval.CassetteRecorded))
			Expect(replayed[i].Cassette.State).To(Equal(eval.CassetteFresh))
			Expect(replayed[i].Status).To(Equal(eval.Pass))
			Expect(replayed[i].Usage).To(Equal(recorded[i].Usage))
		}
		original, err := os.ReadFile(filepath.Join(p.dir, "files", "notes.txt"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(original)).To(Equal("one\ntwo\n"))

		p.write("files/notes.txt", "other\n")
		summary, lines := p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.Cassette))
		for _, l := range lines {
			Expect(l.Status).To(Equal(eval.Stale))
			Expect(l.Cassette.Drift).To(HaveLen(1))
			Expect(l.Cassette.Drift[0].Class).To(Equal("input-files"))
		}

		p.opts.Mode, p.opts.OnlyStale = replay.Record, true
		_, lines = p.run(ctx)
		Expect(string(lines[0].Cassette.State)).To(Equal("extended"))
		_, lines = p.run(ctx)
		Expect(lines[0].Cassette.State).To(Equal(eval.CassetteFresh), "what is fresh is not recorded again")
	})

	It("says what is missing, and names cassettes without an owner", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: one, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		p.run(ctx)
		p.write("d.yaml", head+"items:\n  - {id: two, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		p.opts.Mode = replay.Replay
		summary, lines := p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.Cassette))
		Expect(*lines[0].Cause).To(Equal("missing"))
		Expect(summary.Cassettes.Missing).To(Equal(1))
		Expect(summary.Cassettes.Orphaned).To(Equal(1))
		e, _, err := p.plan()
		Expect(err).NotTo(HaveOccurred())
		Expect(e.Orphans()).To(Equal([]string{"script_one/one.yaml"}))
	})

	It("keeps hidden values out of everything that is written", func(ctx context.Context) {
		p := newProject(head + `defaults: {workspace: files, checks: [{contains: ok}], tool_context: {tenant: t-secret-77, nested: {token: abcdefgh-1}}}
items:
  - {id: leaks, input: x, script: [{text: "ok, tenant t-secret-77 and abcdefgh-1"}]}
  - {id: writes, input: x, script: [{call: {name: write_file, args: {path: a.txt, content: t-secret-77}}}, {text: ok}]}
`)
		e, gates, err := p.plan()
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		journal, err := results.Create(dir, clock.Wall{})
		Expect(err).NotTo(HaveOccurred())
		summary, _, err := e.Run(ctx, dir, journal, &results.Finished{}, gate.Judge(gates, gate.Input{}))
		Expect(err).NotTo(HaveOccurred())
		Expect(summary.Counts.Fail).To(Equal(2), "both leaks are seen")
		looked := 0
		for _, root := range []string{dir, p.opts.Cassettes} {
			Expect(filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				looked++
				data, err := os.ReadFile(path)
				Expect(string(data)).NotTo(ContainSubstring("t-secret-77"), path)
				Expect(string(data)).NotTo(ContainSubstring("abcdefgh-1"), path)
				return err
			})).To(Succeed())
		}
		Expect(looked).To(BeNumerically(">=", 4))
	})

	It("runs repeats, and tells flaky items apart", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: one, input: x, repeat: 3, checks: [{contains: ok}], script: [{text: ok}]}\n  - {id: two, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		_, lines := p.run(ctx)
		Expect(lines).To(HaveLen(4))
		Expect([]int{lines[0].Repeat, lines[1].Repeat, lines[2].Repeat, lines[3].Repeat}).To(Equal([]int{1, 2, 3, 1}))
		for _, name := range []string{"one.yaml", "one@2.yaml", "one@3.yaml", "two.yaml"} {
			Expect(filepath.Join(p.opts.Cassettes, "d", "script_one", name)).To(BeARegularFile())
		}
	})

	It("makes not_run of what an interruption leaves, and finishes the rest", func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		p := newProject(head + "items:\n" + strings.Repeat("", 1) + "  - {id: one, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n  - {id: two, input: x, timeout: 10s, checks: [{contains: ok}], script: [{text: wait}]}\n  - {id: three, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		p.opts.Mode, p.opts.Concurrency = replay.Live, 1
		p.opts.Progress = func(x experiment.Progress) {
			if x.Done == 1 {
				cancel(errors.New("stop"))
			}
		}
		summary, lines := p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.Interrupted))
		Expect(summary.Complete).To(BeFalse())
		var statuses []eval.Status
		for _, l := range lines {
			statuses = append(statuses, l.Status)
		}
		Expect(statuses).To(Equal([]eval.Status{eval.Pass, eval.NotRun, eval.NotRun}))
	})

	It("skips items on providers that they are not for", func(ctx context.Context) {
		p := newProject(strings.Replace(head, "[script:one]", "[script:one, script:two]", 1) + "items:\n  - {id: one, input: x, providers: [\"script:two\"], checks: [{contains: ok}], script: [{text: ok}]}\n")
		summary, lines := p.run(ctx)
		Expect(lines).To(HaveLen(2))
		Expect(lines[0].Status).To(Equal(eval.Skipped))
		Expect(lines[1].Status).To(Equal(eval.Pass))
		Expect(summary.Counts.Skipped).To(Equal(1))
	})

	It("keeps a clear order between an own timeout and an interruption", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: one, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		p.opts.Mode, p.opts.Timeout = replay.Live, time.Nanosecond
		_, lines := p.run(ctx)
		Expect(*lines[0].Cause).To(Equal("timeout"))
	})
})

var _ = Describe("a plan", func() {
	DescribeTable("refuses what could only pass vacuously", func(text string, set func(*experiment.Options), message, hint string) {
		p := newProject(text)
		if set != nil {
			set(&p.opts)
		}
		_, _, err := p.plan()
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Render(err)).To(And(ContainSubstring(message), ContainSubstring(hint)))
	},
		Entry("an item that is not there", head+"items:\n  - {id: alpha, input: x, checks: [json], script: [{text: ok}]}\n", func(o *experiment.Options) { o.Items = []string{"alpah"} }, "no such item", "did you mean --item alpha?"),
		Entry("a tag that nothing has", head+"items:\n  - {id: alpha, input: x, tags: [a], checks: [json], script: [{text: ok}]}\n", func(o *experiment.Options) { o.Tags = []string{"b"} }, "no item of d.yaml", "drop one of --item"),
		Entry("a tag that everything has, excluded", head+"items:\n  - {id: alpha, input: x, tags: [a], checks: [json], script: [{text: ok}]}\n", func(o *experiment.Options) { o.Tags = []string{"!a"} }, "no item of d.yaml", "drop one of --item"),
		Entry("a tool that there is not", strings.Replace(head, "read_file", "raed_file", 1)+"items:\n  - {id: alpha, input: x, checks: [json], script: [{text: ok}]}\n", nil, `d.yaml:3:54: tools[0]: unknown tool "raed_file"`, `did you mean "read_file"?`),
		Entry("a check on a tool that the agent lacks", head+"items:\n  - {id: alpha, input: x, checks: [{tool_calls: {match: exact, calls: [{name: list_dir}]}}], script: [{text: ok}]}\n", nil, "list_dir", "d.yaml:6:"),
		Entry("a scripted item without a script", head+"items:\n  - {id: alpha, input: x, checks: [json]}\n", nil, "answers by script", "add script"),
		Entry("an invariant on tools of an agent without any", strings.Replace(head, "tools: [read_file, write_file], ", "", 1)+"items:\n  - {id: alpha, input: x, invariants: [path-confined], checks: [json], script: [{text: ok}]}\n", nil, "d.yaml:6:40: items[0]: invariant path-confined can never apply", "drop it"),
		Entry("an invariant on a tool_context that is not there", head+"items:\n  - {id: alpha, input: x, invariants: [no-hidden-parameter-leak], checks: [json], script: [{text: ok}]}\n", nil, "can never apply: the item has no tool_context", "drop it"),
		Entry("a hidden parameter named like a tool's", head+"items:\n  - {id: alpha, input: x, tool_context: {path: secret-path}, checks: [json], script: [{text: ok}]}\n", nil, `"path" is the name of a parameter`, "rename it"),
	)

	It("selects by tags: any of them, and without those excluded", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: a, input: x, tags: [x], checks: [{contains: ok}], script: [{text: ok}]}\n  - {id: b, input: x, tags: [x, y], checks: [{contains: ok}], script: [{text: ok}]}\n  - {id: c, input: x, tags: [z], checks: [{contains: ok}], script: [{text: ok}]}\n")
		p.opts.Tags = []string{"x", "z", "!y"}
		_, lines := p.run(ctx)
		var ids []string
		for _, l := range lines {
			ids = append(ids, l.Item)
		}
		Expect(ids).To(Equal([]string{"a", "c"}))
		Expect(lines[1].Index).To(Equal(3), "an item keeps its place in the whole dataset")
	})
})
