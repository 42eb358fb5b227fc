package mutate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/mutate"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
)

func TestMutate(t *testing.T) { suite.Run(t, "mutate") }

// script is a model that gives the item's scripted steps in order, each with a text beside its calls.
type script struct {
	steps []dataset.Step
	mu    sync.Mutex
	next  int
}

func (s *script) Stream(context.Context, llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		s.mu.Lock()
		step := s.steps[min(s.next, len(s.steps)-1)]
		s.next++
		n := s.next
		s.mu.Unlock()
		usage := conversation.Usage{InputTokens: 100 + n, OutputTokens: 10 + n, CacheReadTokens: n}
		if step.Text != nil {
			_ = yield(llm.TextDelta{Text: *step.Text}, nil) && yield(llm.Finish{Stop: llm.StopEnd, Usage: usage}, nil)
			return
		}
		for i, c := range step.Calls {
			if !yield(llm.CallStart{Index: i, ID: fmt.Sprintf("call-%d-%d", n, i), Name: c.Name}, nil) || !yield(llm.CallDelta{Index: i, Arguments: c.Args.JSON()}, nil) {
				return
			}
		}
		yield(llm.Finish{Stop: llm.StopToolCalls, Usage: usage}, nil)
	}
}

const head = `version: 1
name: d
agent: {name: a, task: {description: Help.}, tools: [read_file, write_file, list_dir], max_iterations: 9}
providers: [script:one]
defaults: {workspace: files}
`

// rich has conversations of several turns, calls side by side and one after the other, and hidden values.
const rich = head + `items:
  - id: turns
    tool_context: {tenant: tenant-7f3a91, deep: {token: "0123456789ab", n: 7}}
    turns: [{input: first, checks: [{contains: one}]}, {input: second, checks: [no_tool_calls]}, {input: third}]
    checks: [{contains: three}]
    script:
      - calls: [{name: read_file, args: {path: notes.txt}}, {name: list_dir, args: {path: .}}, {name: write_file, args: {path: new.txt, content: "7"}}]
      - call: {name: read_file, args: {path: new.txt, limit: 1}}
      - {text: "one is done"}
      - {text: "two is done"}
      - call: {name: list_dir, args: {path: .}}
      - {text: "three is done"}
  - {id: plain, input: x, checks: [{contains: answer}], script: [{text: the plain answer}]}
  - {id: again, input: x, checks: [{contains: read}], script: [{call: {name: read_file, args: {path: notes.txt}}}, {call: {name: read_file, args: {path: notes.txt}}}, {text: it is read twice}]}
`

// plan makes an experiment that asks the scripts and nothing else.
func plan(text string, edit ...func(*experiment.Options)) *experiment.Experiment {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for name, text := range map[string]string{"echoeval.yaml": "version: 1\n", "files/notes.txt": "one\ntwo\n", "d.yaml": text} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	}
	d, err := dataset.Open(filepath.Join(dir, "d.yaml"), dataset.Options{Dir: dir})
	Expect(err).NotTo(HaveOccurred())
	opts := experiment.Options{
		Dataset: d, Mode: replay.Live, Seed: 1, Repeat: 1, RecordedAt: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), Traces: results.KeepFailed,
		Temp: GinkgoT().TempDir(), Cassettes: filepath.Join(dir, "cassettes"), Clock: clock.NewVirtual(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)),
		Tools:         func(ws experiment.Workspace) []tool.Tool { return files.New(ws) },
		RecordCommand: func(item, _ string) string { return "record " + item },
	}
	for _, provider := range d.Providers {
		opts.Columns = append(opts.Columns, experiment.Column{
			Provider: provider, Scripted: true,
			Model: func(item *dataset.Item, _ http.RoundTripper, _ clock.Clock) (llm.Model, error) {
				return &script{steps: item.Script}, nil
			},
			Cost: func(r llm.Response) (money.USD, bool) { return money.USD(r.Usage.OutputTokens), true },
		})
	}
	for _, e := range edit {
		e(&opts)
	}
	e, err := experiment.New(opts)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Close)
	return e
}

// outcomes are those of all items of a dataset, by id.
func outcomes(ctx context.Context, text string) map[string]experiment.Outcome {
	GinkgoHelper()
	out := map[string]experiment.Outcome{}
	var mu sync.Mutex
	Expect(plan(text).Try(ctx, nil, func(_ context.Context, line *eval.Result, trial *experiment.Trial) error {
		defer GinkgoRecover()
		mu.Lock()
		defer mu.Unlock()
		Expect(line.Status).To(Equal(eval.Pass), "%+v", line)
		out[line.Item] = trial.Outcome
		return nil
	})).To(Succeed())
	return out
}

// all makes every mutant of an outcome.
func all(item string, out experiment.Outcome) []*mutate.Mutant {
	subject := mutate.Subject{Item: item, Repeat: 1, Outcome: out, Checked: []int{0}, Others: []mutate.Answer{{Item: "other", Text: "something else"}}}
	var list []*mutate.Mutant
	for m := range (mutate.Choice{Seed: 1, Limit: 100}).Mutants(subject) {
		if m != nil {
			list = append(list, m)
		}
	}
	return list
}

// calls are those that the model made, in order.
func calls(t trace.Trace) []string {
	var out []string
	for _, e := range t.Events {
		if e.Reply != nil {
			for _, c := range e.Reply.Message.ToolCalls() {
				out = append(out, c.Name+string(c.Input))
			}
		}
	}
	return out
}

func answers(o experiment.Outcome) []string {
	var out []string
	for _, t := range o.Turns {
		out = append(out, t.Text)
	}
	return out
}

func run(ctx context.Context, text string, o mutate.Options, edit ...func(*experiment.Options)) *mutate.Result {
	GinkgoHelper()
	if o.Limit == 0 {
		o.Limit = 5
	}
	r, err := mutate.Run(ctx, plan(text, edit...), o)
	Expect(err).NotTo(HaveOccurred())
	return r
}

func operator(r *mutate.Result, name string) mutate.Count {
	GinkgoHelper()
	i := slices.IndexFunc(r.Operators, func(o mutate.OperatorCount) bool { return o.Name == name })
	Expect(i).To(BeNumerically(">=", 0))
	return r.Operators[i].Count
}

var (
	ofText  = []string{"truncate", "negate", "other-answer", "refuse"}
	ofCalls = []string{"drop-call", "repeat-call", "swap-calls", "change-argument", "plant-call"}
)

var _ = Describe("a mutant", func() {
	It("is a coherent outcome: events, messages, numbers, digests and sums agree", func(ctx context.Context) {
		looked := map[string]int{}
		for item, out := range outcomes(ctx, rich) {
			for _, m := range all(item, out) {
				looked[m.Operator.Name]++
				at := func() string {
					return fmt.Sprintf("%s: %s, %s: %s -> %s", item, m.Operator.Name, m.What, m.Before, m.After)
				}
				o := m.Outcome
				names := map[string]bool{}
				for _, v := range invariant.Select(nil, nil, nil).Evaluate(o.Trace).Violations {
					names[v.Name] = true
				}
				want := map[string]bool{}
				if m.Operator.Name == "leak-hidden" && !strings.HasPrefix(m.What, "deep.n") { // a number alone is no leak that anybody could tell
					want["no-hidden-parameter-leak"] = true
				}
				Expect(names).To(Equal(want), at)

				var usage conversation.Usage
				steps, made, ran, at0 := 0, 0, 0, 0
				turn, seq := -1, 0
				for i, e := range o.Trace.Events {
					Expect(e.N).To(Equal(i+1), at)
					Expect(int(e.AtMS)).To(BeNumerically(">=", at0), at)
					at0 = int(e.AtMS)
					switch {
					case e.Start != nil:
						turn++
						Expect(o.Turns[turn].From).To(Equal(i), at)
					case e.End != nil:
						Expect(o.Turns[turn].To).To(Equal(i+1), at)
						Expect(e.End.Context).To(HaveLen(len(e.End.Input)+messages(o.Trace.Events[o.Turns[turn].From:i])), at)
					case e.Reply != nil:
						steps++
						u, ok := e.Reply.Message.Usage()
						Expect(ok).To(BeTrue())
						usage = usage.Add(u)
						made += len(e.Reply.Message.ToolCalls())
					case e.Tool != nil:
						seq++
						ran++
						Expect(e.Tool.Seq).To(Equal(seq), at)
					}
				}
				Expect(turn+1).To(Equal(len(o.Turns)), at)
				Expect(o.Response.Usage).To(Equal(usage), at)
				Expect([]int{o.Response.Steps, o.Response.Calls, o.Response.ToolCalls}).To(Equal([]int{steps, made, ran}), at)
				Expect(o.Response.Text).To(Equal(o.Turns[len(o.Turns)-1].Text), at)
				data := o.Trace.AppendJSON(nil)
				decoded, err := trace.Decode(data)
				Expect(err).NotTo(HaveOccurred(), at)
				Expect(string(decoded.AppendJSON(nil))).To(Equal(string(data)), at)
			}
		}
		for _, op := range mutate.Operators {
			Expect(looked[op.Name]).To(BeNumerically(">", 0), op.Name)
		}
	})

	It("leaves the outcome that it was made of as it was", func(ctx context.Context) {
		for item, out := range outcomes(ctx, rich) {
			before := string(out.Trace.AppendJSON(nil))
			turns := slices.Clone(out.Turns)
			Expect(all(item, out)).NotTo(BeEmpty())
			Expect(string(out.Trace.AppendJSON(nil))).To(Equal(before))
			Expect(out.Turns).To(Equal(turns))
		}
	})

	It("has the fault that its operator names, and no other", func(ctx context.Context) {
		out := outcomes(ctx, rich)["turns"]
		was := calls(out.Trace)
		Expect(was).To(HaveLen(5))
		sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
		for _, m := range all("turns", out) {
			now, said := calls(m.Outcome.Trace), answers(m.Outcome)
			at := m.Operator.Name + ", " + m.What
			if slices.Contains(ofCalls, m.Operator.Name) {
				Expect(said).To(Equal(answers(out)), at)
			} else if m.Operator.Name != "refuse" {
				Expect(now).To(Equal(was), at)
			}
			switch m.Operator.Name {
			case "drop-call":
				Expect(now).To(HaveLen(4), at)
				Expect(sorted(append(now, m.Before))).To(Equal(sorted(was)), at)
			case "repeat-call":
				Expect(now).To(HaveLen(6), at)
				var number int
				Expect(fmt.Sscanf(m.What, "call %d", &number)).To(Equal(1))
				Expect(now[number]).To(Equal(m.Before), at)
				Expect(slices.Delete(now, number, number+1)).To(Equal(was), at)
			case "swap-calls":
				Expect(now).NotTo(Equal(was), at)
				Expect(sorted(now)).To(Equal(sorted(was)), at)
			case "change-argument":
				differ := 0
				for i := range was {
					if now[i] != was[i] {
						differ++
						Expect(strings.Replace(was[i], m.Before, m.After, 1)).To(Equal(now[i]), at)
					}
				}
				Expect(differ).To(Equal(1), at)
			case "plant-call":
				Expect(now).To(HaveLen(6), at)
				Expect(now[5]).To(And(Equal(m.After), HavePrefix("write_file")), at)
			case "truncate", "negate", "other-answer", "leak-hidden":
				differ := 0
				for i := range said {
					if said[i] != out.Turns[i].Text {
						differ++
						Expect(said[i]).To(Equal(m.After), at)
					}
				}
				Expect(differ).To(Equal(1), at)
			case "refuse":
				Expect(said).To(ContainElement("I'm sorry, but I can't help with that."), at)
				Expect(len(now)).To(BeNumerically("<", len(was)), at)
			default:
				Fail("no expectation for " + m.Operator.Name)
			}
		}
	})

	It("is none where it comes to the same as the outcome or as another mutant", func(ctx context.Context) {
		out := outcomes(ctx, rich)["again"]
		equal := 0
		var made []string
		for m := range (mutate.Choice{Seed: 1, Limit: 100, Operators: []string{"drop-call", "swap-calls"}}).Mutants(mutate.Subject{Item: "again", Repeat: 1, Outcome: out}) {
			if m == nil {
				equal++
				continue
			}
			made = append(made, m.Operator.Name)
		}
		Expect(made).To(Equal([]string{"drop-call"}), "leaving out either of two equal calls is the same, and so is swapping them")
		Expect(equal).To(Equal(2))
	})

	It("exchanges no calls that run side by side", func(ctx context.Context) {
		text := head + "items: [{id: a, input: x, checks: [{contains: ok}], script: [{calls: [{name: read_file, args: {path: notes.txt}}, {name: list_dir, args: {path: .}}, {name: write_file, args: {path: a.txt, content: x}}]}, {text: ok}]}]\n"
		var swapped []string
		for _, m := range all("a", outcomes(ctx, text)["a"]) {
			if m.Operator.Name == "swap-calls" {
				swapped = append(swapped, m.What)
			}
		}
		Expect(swapped).To(Equal([]string{"calls 2 and 3"}))
	})
})

// messages counts those that replies and results add.
func messages(events []trace.Event) (n int) {
	for _, e := range events {
		if e.Reply != nil || e.Results != nil {
			n++
		}
	}
	return n
}

// item is an item that reads a file and answers, with other checks each time.
func item(id, answer, checks string) string {
	return fmt.Sprintf("  - {id: %s, input: x, checks: [%s], script: [{call: {name: read_file, args: {path: notes.txt}}}, {call: {name: list_dir, args: {path: .}}}, {text: %q}]}\n", id, checks, answer)
}

const exact = `{tool_calls: {match: exact, calls: [{name: read_file, args: {$equal: {path: notes.txt}}}, {name: list_dir, args: {$equal: {path: .}}}]}}`

func equals(answer string) string { return fmt.Sprintf("{equals: %q}", answer) }

var _ = Describe("checks", func() {
	It("that always pass kill nothing", func(ctx context.Context) {
		r := run(ctx, head+"items:\n"+item("a", "It is here.", `{regex: (?s).*}, {not: {contains: "\u0001"}}`)+item("b", "It is there.", `{regex: (?s).*}`), mutate.Options{})
		Expect(r.Mutants).To(BeNumerically(">", 15))
		Expect(r.Killed).To(BeZero())
		Expect(r.Survived).To(Equal(r.Mutants))
		Expect(*r.KillRate).To(BeZero())
		Expect(r.Survivors.Count).To(Equal(r.Mutants))
		for _, c := range r.Checks {
			Expect(c.Noticed).To(BeZero())
			Expect(c.Of).To(BeNumerically(">", 0))
		}
	})

	It("on the whole answer kill every fault of the text, those on all calls every fault of the calls, and both everything", func(ctx context.Context) {
		dataset := func(checks func(answer string) string) string {
			return head + "items:\n" + item("a", "It is here.", checks("It is here.")) + item("b", "It is there.", checks("It is there."))
		}
		texts := run(ctx, dataset(equals), mutate.Options{})
		for _, name := range ofText {
			c := operator(texts, name)
			Expect(c.Mutants).To(BeNumerically(">", 0), name)
			Expect(c.Killed).To(Equal(c.Mutants), name)
		}
		for _, name := range ofCalls {
			Expect(operator(texts, name).Killed).To(BeZero(), name)
		}
		made := run(ctx, dataset(func(string) string { return exact }), mutate.Options{})
		for _, name := range ofCalls {
			c := operator(made, name)
			Expect(c.Mutants).To(BeNumerically(">", 0), name)
			Expect(c.Killed).To(Equal(c.Mutants), name)
		}
		for _, name := range []string{"truncate", "negate", "other-answer"} {
			Expect(operator(made, name).Killed).To(BeZero(), name)
		}
		both := run(ctx, dataset(func(answer string) string { return equals(answer) + ", " + exact }), mutate.Options{})
		Expect(both.Mutants).To(And(Equal(texts.Mutants), Equal(made.Mutants)), "the checks do not change what is tried")
		Expect(both.Killed).To(Equal(both.Mutants))
		Expect(both.Survivors.Items).To(BeEmpty())
		Expect(both.Checks[0].Name).To(Equal("equals"))
		Expect(both.Checks[0].Alone+both.Checks[1].Alone).To(BeNumerically("<", both.Killed), "a refusal is noticed by both")
		Expect(both.Checks[0].Noticed + both.Checks[1].Noticed).To(BeNumerically(">", both.Killed))
	})

	It("never kill less when there is one more", func(ctx context.Context) {
		weak := run(ctx, head+"items:\n"+item("a", "It is here.", `{contains: here}`), mutate.Options{})
		more := run(ctx, head+"items:\n"+item("a", "It is here.", `{contains: here}, {tool_calls: {match: subset, calls: [{name: list_dir}]}}`), mutate.Options{})
		Expect(more.Killed).To(BeNumerically(">", weak.Killed))
		for _, o := range weak.Operators {
			Expect(operator(more, o.Name).Killed).To(BeNumerically(">=", o.Killed), o.Name)
		}
	})

	It("that only report notice and do not kill", func(ctx context.Context) {
		r := run(ctx, head+"items:\n"+item("a", "It is here.", `{equals: It is here., weight: 0}, {regex: (?s).*}`), mutate.Options{})
		Expect(r.Killed).To(BeZero())
		Expect(r.Checks[0]).To(And(HaveField("Name", "equals"), HaveField("Reports", true), HaveField("Alone", 0)))
		Expect(r.Checks[0].Noticed).To(BeNumerically(">", 0))
		Expect(r.Survivors.Items).To(ContainElement(And(HaveField("Operator", "refuse"), HaveField("Noticed", []string{"equals"}))))
	})

	It("that a threshold outweighs notice and do not kill", func(ctx context.Context) {
		text := strings.Replace(head+"items:\n"+item("a", "It is here.", `{contains: here}, {regex: (?s).*}, {not: {contains: zzz}}`), "input: x", "input: x, threshold: 0.6", 1)
		r := run(ctx, text, mutate.Options{})
		Expect(r.Killed).To(BeZero())
		Expect(r.Survivors.Items).To(ContainElement(HaveField("Noticed", []string{"contains"})))
	})

	It("are asked turn by turn, and an answer that nobody checks is not changed", func(ctx context.Context) {
		r := run(ctx, rich, mutate.Options{Choice: mutate.Choice{Operators: []string{"truncate"}}})
		Expect(operator(r, "truncate").Mutants).To(Equal(5), "turns 1, 2 and 3 of the first item (the second has a check on calls), and the two others")
		Expect(r.Items.Items).To(HaveLen(3))
	})
})

var _ = Describe("hidden values", func() {
	It("that are told are noticed, and those that are too short survive visibly", func(ctx context.Context) {
		text := head + "items: [{id: a, input: x, tool_context: {tenant: tenant-7f3a91, pin: \"17\"}, checks: [{contains: ok}], script: [{text: ok}]}]\n"
		r := run(ctx, text, mutate.Options{Choice: mutate.Choice{Operators: []string{"leak-hidden"}}})
		Expect(r.Mutants).To(Equal(2))
		Expect(r.Killed).To(Equal(1))
		Expect(r.Invariants).To(HaveLen(1))
		Expect(r.Invariants[0]).To(And(HaveField("Name", "no-hidden-parameter-leak"), HaveField("Noticed", 1), HaveField("Alone", 1)))
		Expect(r.Survivors.Items).To(HaveLen(1))
		Expect(r.Survivors.Items[0].What).To(HavePrefix("pin"))
	})

	It("never stand in a report", func(ctx context.Context) {
		text := head + "items: [{id: a, input: x, tool_context: {tenant: tenant-7f3a91}, drop: [no-hidden-parameter-leak], checks: [{contains: ok}], script: [{text: ok}]}]\n"
		r := run(ctx, text, mutate.Options{})
		Expect(r.Survivors.Items).To(ContainElement(HaveField("Operator", "leak-hidden")))
		data, err := json.Marshal(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(data)).To(ContainSubstring("(tenant: "))
		Expect(string(data)).NotTo(ContainSubstring("tenant-7f3a91"))
	})

	It("that a fault cut or changed are not shown either", func(ctx context.Context) {
		text := head + "items: [{id: a, input: x, tool_context: {tenant: tenant-7f3a91}, drop: [no-hidden-parameter-leak], checks: [{regex: (?s).*}], script: [{call: {name: read_file, args: {path: tenant-7f3a91}}}, {text: ab tenant-7f3a91}]}]\n"
		r := run(ctx, text, mutate.Options{})
		Expect(r.Killed).To(BeZero())
		data, err := json.Marshal(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(data)).NotTo(MatchRegexp("tenant-|7f3a9"))
		for _, s := range r.Survivors.Items {
			if s.Operator == "truncate" || s.Operator == "change-argument" {
				Expect(s.After).To(Equal("(not shown: a secret stood there before)"), s.Operator)
			}
		}
	})
})

var _ = Describe("a report", func() {
	many := func() string {
		text := head + "items:\n"
		for i := range 30 {
			text += item(fmt.Sprintf("i%02d", i), fmt.Sprintf("It is number %d.", i), fmt.Sprintf("{contains: %q}", fmt.Sprint(i)))
		}
		return text
	}
	encoded := func(r *mutate.Result) string {
		data, err := json.Marshal(r)
		Expect(err).NotTo(HaveOccurred())
		return string(data)
	}

	It("is the same for the same seed, whatever the concurrency, and another for another", func(ctx context.Context) {
		of := func(seed uint64, concurrency int) *mutate.Result {
			return run(ctx, many(), mutate.Options{Choice: mutate.Choice{Seed: seed, Limit: 1}}, func(o *experiment.Options) { o.Concurrency = concurrency })
		}
		first := of(1, 1)
		Expect(encoded(of(1, 7))).To(Equal(encoded(first)))
		other := of(2, 1)
		Expect(other.Mutants).To(Equal(first.Mutants), "the seed draws, it does not count")
		what := func(r *mutate.Result) []string {
			var out []string
			for _, s := range r.Survivors.Items {
				out = append(out, s.Item+s.Operator+s.What+s.After)
			}
			return out
		}
		Expect(what(other)).NotTo(Equal(what(first)))
	})

	It("counts the same however it is added up", func(ctx context.Context) {
		r := run(ctx, many(), mutate.Options{})
		sum := mutate.Count{}
		for _, o := range r.Operators {
			sum.Mutants += o.Mutants
			sum.Killed += o.Killed
			sum.Survived += o.Survived
		}
		Expect([]int{sum.Mutants, sum.Killed, sum.Survived}).To(Equal([]int{r.Mutants, r.Killed, r.Survived}))
		sum = mutate.Count{}
		for _, i := range r.Items.Items {
			sum.Mutants += i.Mutants
			sum.Killed += i.Killed
		}
		Expect([]int{sum.Mutants, sum.Killed}).To(Equal([]int{r.Mutants, r.Killed}))
		Expect(r.Survivors.Count).To(Equal(r.Survived))
		Expect(r.Outcomes).To(Equal(30))
		rates := []float64{}
		for _, i := range r.Items.Items {
			rates = append(rates, float64(*i.KillRate))
		}
		Expect(slices.IsSorted(rates)).To(BeTrue(), "the weakest first")
	})

	It("keeps to the limit, and with a higher one makes at least the same mutants", func(ctx context.Context) {
		low := run(ctx, many(), mutate.Options{Choice: mutate.Choice{Limit: 1}})
		high := run(ctx, many(), mutate.Options{Choice: mutate.Choice{Limit: 9}})
		Expect(low.Mutants).To(BeNumerically("<", high.Mutants))
		for _, o := range low.Operators {
			Expect(o.Mutants).To(BeNumerically("<=", 30))
			Expect(operator(high, o.Name).Mutants).To(BeNumerically(">=", o.Mutants))
		}
	})

	It("leaves out what does not pass as recorded, and says so", func(ctx context.Context) {
		r := run(ctx, head+"items:\n"+item("good", "here", "{contains: here}")+item("bad", "there", "{contains: nowhere}")+"  - {id: not-now, skip: later, input: x, checks: [json], script: [{text: x}]}\n", mutate.Options{})
		Expect(r.Outcomes).To(Equal(3))
		Expect(r.Mutated).To(Equal(1))
		Expect(r.LeftOut.Items).To(Equal([]mutate.LeftOut{
			{Item: "bad", Provider: "script:one", Repeat: 1, Status: eval.Fail, Cause: "check"},
			{Item: "not-now", Provider: "script:one", Repeat: 1, Status: eval.Skipped, Cause: "dataset"},
		}))
		Expect(r.Verdict.Code).To(Equal(failure.OK))
		Expect(r.Survivors.Items).NotTo(ContainElement(HaveField("Item", "bad")))
	})

	It("has nothing to say where nothing passes: code 2", func(ctx context.Context) {
		half := 0.5
		r := run(ctx, head+"items:\n"+item("bad", "there", "{contains: nowhere}"), mutate.Options{MinKill: &half})
		Expect(r.KillRate).To(BeNil())
		Expect(r.Gate.Status).To(Equal(results.GateNoData))
		Expect(r.Verdict.Code).To(Equal(failure.Input))
		Expect(r.Verdict.Text).To(ContainSubstring("no outcome passes"))
	})

	DescribeTable("bounds the kill rate", func(ctx context.Context, bound float64, status results.GateStatus, code failure.Code) {
		// Of the two mutants of the operators, one is noticed.
		r := run(ctx, head+"items:\n"+item("a", "It is here.", "{contains: here}"), mutate.Options{MinKill: &bound, Choice: mutate.Choice{Operators: []string{"negate", "truncate"}}})
		Expect(*r.KillRate).To(BeEquivalentTo(0.5))
		Expect(r.Gate.Status).To(Equal(status))
		Expect(r.Verdict.Code).To(Equal(code))
	},
		Entry("below", 0.49, results.GateHolds, failure.OK),
		Entry("equal", 0.5, results.GateHolds, failure.OK),
		Entry("above", 0.51, results.GateFailed, failure.Gate),
	)

	It("of an interrupted run is incomplete: code 130", func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		r := run(ctx, many(), mutate.Options{}, func(o *experiment.Options) {
			o.Concurrency = 1
			o.Progress = func(p experiment.Progress) {
				if p.Done == 3 {
					cancel()
				}
			}
		})
		Expect(r.Complete).To(BeFalse())
		Expect(r.Verdict.Code).To(Equal(failure.Interrupted))
		Expect(r.Mutated).To(BeNumerically("~", 3, 1))
	})

	It("bounds its lists, and they hold the first of the dataset", func(ctx context.Context) {
		text := head + "items:\n"
		for i := range 300 {
			text += fmt.Sprintf("  - {id: i%03d, input: x, checks: [{regex: (?s).*}], script: [{text: It is %d.}]}\n", i, i)
		}
		r := run(ctx, text, mutate.Options{})
		Expect(r.Survivors.Count).To(And(Equal(r.Survived), BeNumerically(">", results.ListLimit)))
		Expect(r.Survivors.Items).To(HaveLen(results.ListLimit))
		ids := map[string]bool{}
		for _, s := range r.Survivors.Items {
			ids[s.Item] = true
		}
		list := slices.Sorted(maps.Keys(ids))
		for i, id := range list {
			Expect(id).To(Equal(fmt.Sprintf("i%03d", i)))
		}
	})
})

var _ = Describe("an item alone", func() {
	It("is given no other answer", func(ctx context.Context) {
		r := run(ctx, head+"items:\n"+item("a", "It is here.", "{contains: here}"), mutate.Options{})
		Expect(operator(r, "other-answer").Mutants).To(BeZero())
		Expect(operator(r, "other-answer").KillRate).To(BeNil())
	})
})
