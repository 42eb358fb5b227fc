package experiment_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/replay"
)

// bench is a judge that says what a function makes of the material; "wait" waits for the end, "fail" is an error.
type bench struct {
	mu       sync.Mutex
	requests []llm.Request
	says     func(material string) string
}

func (b *bench) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		b.mu.Lock()
		b.requests = append(b.requests, req)
		b.mu.Unlock()
		switch text := b.says(req.Messages[0].Text()); text {
		case "wait":
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		case "fail":
			yield(nil, &llm.Error{Vendor: "fake", Status: 503, Message: "down"})
		default:
			_ = yield(llm.TextDelta{Text: text}, nil) && yield(llm.Finish{Stop: llm.StopEnd, Usage: conversation.Usage{InputTokens: 5, OutputTokens: 3}}, nil)
		}
	}
}

// judgedProject has one judge, which says that.
func judgedProject(items string, says func(material string) string) (*project, *bench) {
	GinkgoHelper()
	p := newProject(strings.Replace(head, "providers: [script:one]", "providers: [script:one, {id: strict, provider: script, role: judge, temperature: 0}]", 1) + items)
	b := &bench{says: says}
	p.opts.Judges = map[string]*experiment.Column{"strict": {
		Provider: dataset.Provider{ID: "strict"}, Scripted: true,
		Model: func(*dataset.Item, http.RoundTripper, clock.Clock) (llm.Model, error) { return b, nil },
		Cost:  func(r llm.Response) (money.USD, bool) { return money.USD(100 * r.Usage.OutputTokens), true },
	}}
	return p, b
}

func always(text string) func(string) string { return func(string) string { return text } }

var _ = Describe("judging", func() {
	It("looks at turns and at the whole, and costs apart from the agent", func(ctx context.Context) {
		p, b := judgedProject(`items:
  - id: two
    turns: [{input: first, checks: [{judge: Kind, threshold: 0.5}]}, {input: second}]
    checks: [{judge: {rubric: Brief, votes: 3}, threshold: 0.5, name: brief}]
    script: [{text: one}, {text: two}]
`, always(`{"score":1,"reason":"so"}`))
		e, _, err := p.plan()
		Expect(err).NotTo(HaveOccurred())
		Expect(e.Questions()).To(Equal(4))
		_, lines := p.run(ctx)
		l := lines[0]
		Expect(l.Status).To(Equal(eval.Pass))
		Expect(l.OverheadUSD).To(Equal(money.USD(4 * 300)))
		Expect(*l.CostUSD).To(Equal(money.USD(20)))
		Expect(l.Steps).To(Equal(2))
		Expect(l.Usage.OutputTokens).To(Equal(20))
		Expect(b.requests).To(HaveLen(4))
		Expect(b.requests[3].Messages[0].Text()).To(Equal(`{"conversation":[{"by":"user","text":"first"}],"answer":"one"}`), "the turn is judged by itself")
		Expect(b.requests[0].Messages[0].Text()).To(HaveSuffix(`{"by":"user","text":"second"}],"answer":"two"}`))
		Expect(b.requests[0].Settings.ResponseSchema).NotTo(BeEmpty())
	})

	DescribeTable("says what kept an item from being judged", func(ctx context.Context, says, checks string, want eval.Status, cause string, asked int) {
		p, b := judgedProject("items:\n  - {id: a, input: x, timeout: 50ms, checks: ["+checks+"], script: [{text: ok}]}\n", always(says))
		p.opts.Mode = replay.Live
		_, lines := p.run(ctx)
		l := lines[0]
		Expect(l.Status).To(Equal(want))
		Expect(deref(l.Cause)).To(Equal(cause))
		Expect(b.requests).To(HaveLen(asked))
		Expect(*l.Output).To(Equal("ok"))
		if want == eval.Error {
			Expect(l.Error.Kind).To(Equal(eval.ErrJudge))
			Expect(l.Checks).To(BeEmpty())
		}
	},
		Entry("prose", "well", "{judge: Kind, threshold: 0.5}", eval.Unjudged, eval.CauseJudgeAnswer, 1),
		Entry("prose where it only reports", "well", "{judge: Kind, threshold: 0.5, weight: 0}, {contains: ok}", eval.Pass, "", 1),
		Entry("prose beside a failure", "well", "{judge: Kind, threshold: 0.5}, {contains: no}", eval.Fail, eval.CauseCheck, 1),
		Entry("an outage, after which nobody is asked", "fail", "{judge: Kind, threshold: 0.5}, {judge: {rubric: Brief, votes: 3}, threshold: 0.5, name: b}", eval.Error, "judge", 1),
		Entry("a judge that does not end", "wait", "{judge: Kind, threshold: 0.5}", eval.Error, "judge", 1),
		Entry("another check without a verdict", `{"score":1}`, "{judge: Kind, threshold: 0.5}, {command: [sh, x.sh]}", eval.Unjudged, eval.CauseCheckCrash, 1),
	)

	It("is bounded by the budget", func(ctx context.Context) {
		p, b := judgedProject("items:\n  - {id: a, input: x, checks: [{judge: {rubric: Kind, votes: 2}, threshold: 0.5}], script: [{text: ok}]}\n", always(`{"score":1}`))
		p.opts.Mode = replay.Live
		p.opts.Budget = experiment.NewBudget(4096*100+10, 0)
		summary, lines := p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.NotRun))
		Expect(*lines[0].Cause).To(Equal(eval.CauseBudget))
		Expect(b.requests).To(HaveLen(1), "the second might have cost more than was left")
		Expect(summary.Counts.NotRun).To(Equal(1))
	})

	It("alone is part of a run that only looks at cassettes", func(ctx context.Context) {
		p, b := judgedProject("items:\n  - {id: a, input: x, checks: [{judge: Kind, threshold: 0.5}, {contains: no}], script: [{text: ok}]}\n", always(`{"score":0}`))
		p.opts.ReplayOnly = true
		_, lines := p.run(ctx)
		Expect(lines[0].Status).To(Equal(eval.Fail))
		Expect(lines[0].Checks).To(BeEmpty())
		Expect(b.requests).To(HaveLen(1))
	})

	It("is part of how an item is judged: another judge is another measure", func() {
		hash := func(judge, check string) string {
			GinkgoHelper()
			p, _ := judgedProject("items:\n  - {id: a, input: x, checks: ["+check+"], script: [{text: ok}]}\n", nil)
			p.write("d.yaml", strings.Replace(head, "providers: [script:one]", "providers: [script:one, "+judge+"]", 1)+"items:\n  - {id: a, input: x, checks: ["+check+"], script: [{text: ok}]}\n")
			d, err := dataset.Open(p.dir+"/d.yaml", dataset.Options{Dir: p.dir, Judging: "aa"})
			Expect(err).NotTo(HaveOccurred())
			for item, err := range d.Items() {
				Expect(err).NotTo(HaveOccurred())
				return item.ChecksHash
			}
			Fail("no item")
			return ""
		}
		const judge, check = "{id: strict, provider: script, model: m, role: judge}", "{judge: Kind, threshold: 0.5}"
		same := hash(judge, check)
		for name, of := range map[string][2]string{
			"model": {"{id: strict, provider: script, model: n, role: judge}", check}, "settings": {"{id: strict, provider: script, model: m, role: judge, temperature: 0}", check},
			"rubric": {judge, "{judge: Warm, threshold: 0.5}"}, "limit": {"{id: strict, provider: script, model: m, role: judge, max_tokens: 5}", check},
		} {
			Expect(hash(of[0], of[1])).NotTo(Equal(same), name)
		}
		Expect(hash("{id: strict, provider: script, model: m, role: judge, price: {input: 1, output: 1}}", check)).To(Equal(same), "the price is no part of it")
		Expect(hash(judge+", {id: other, provider: script, model: o, role: judge}", "{judge: {rubric: Kind, provider: strict}, threshold: 0.5}")).
			To(Equal(hash(judge+", {id: other, provider: script, model: x, role: judge}", "{judge: {rubric: Kind, provider: strict}, threshold: 0.5}")), "who is not asked is no part of it")
		Expect(hash(judge, "{contains: ok}")).To(Equal(hash("{id: strict, provider: script, model: n, role: judge}", "{contains: ok}")))
	})
})

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
