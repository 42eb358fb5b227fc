package noise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

func TestNoise(t *testing.T) { suite.Run(t, "noise") }

// repeats is an item with these verdicts, each from an answer of its own.
func repeats(passed ...float64) *observed {
	o := &observed{item: "a", provider: "p", passed: passed, scores: passed}
	for i := range passed {
		o.said = append(o.said, fmt.Sprint(i))
	}
	return o
}

var (
	steady = []float64{1, 1, 1, 1}
	comes  = []float64{1, 0, 1, 0}
	seldom = []float64{1, 1, 1, 0}
)

var _ = DescribeTable("the blame for an item", func(all, judge, tools []float64, source string) {
	row := [3]*observed{0: repeats(all...)}
	if judge != nil {
		row[1] = repeats(judge...)
	}
	if tools != nil {
		row[2] = repeats(tools...)
	}
	f, ok := flaky(row, judge != nil, tools != nil)
	Expect(ok).To(Equal(source != ""))
	if ok {
		Expect(f.Blame).To(Equal(source))
	}
},
	Entry("nobody's: it is steady", steady, steady, steady, ""),
	Entry("the judge's: it wavers over one answer", comes, comes, comes, Judge),
	Entry("the agent's: it wavers although the tools say the same", comes, steady, comes, Agent),
	Entry("the environment's: it is steady once the tools are", comes, steady, steady, Environment),
	Entry("the larger one's", comes, seldom, comes, Judge),
	Entry("the judge's, though all repeats happened to agree", steady, seldom, steady, Judge),
	Entry("nobody told", comes, nil, nil, NotTold),
	Entry("one of two, where the tools were not frozen", comes, steady, nil, Together),
	Entry("the judge's, where the tools were not frozen", comes, comes, nil, Judge),
	Entry("the environment's, where judges were not alone", comes, nil, steady, Environment),
	Entry("agent's or judge's, which is not told", comes, nil, comes, NotTold),
)

var _ = It("sees a judge waver in one run alone, where an answer was judged both ways", func() {
	o := repeats(comes...)
	o.said = []string{"x", "x", "y", "y"}
	source, why := blame([3]*observed{0: o}, false, false)
	Expect([]string{source, why}).To(Equal([]string{Judge, "the same answer was judged both ways"}))
	o.said = []string{"x", "y", "x", "y"}
	source, _ = blame([3]*observed{0: o}, false, false)
	Expect(source).To(Equal(NotTold), "other answers, other verdicts")
})

var _ = Describe("the split of a metric", func() {
	many := func(n int, all, judge, tools []float64) (used [][3]*observed) {
		for range n {
			row := [3]*observed{0: repeats(all...)}
			if judge != nil {
				row[1] = repeats(judge...)
			}
			if tools != nil {
				row[2] = repeats(tools...)
			}
			used = append(used, row)
		}
		return used
	}
	passed := func(o *observed) []float64 { return o.passed }
	sources := func(m Metric) (out []string) {
		for _, p := range m.Parts {
			text := p.Source
			if p.Told() {
				text += fmt.Sprintf(" %.4f", *p.Variance)
				Expect([]any{p.Low, p.High}).NotTo(ContainElement(BeNil()))
				Expect(*p.Low).To(BeNumerically("<=", *p.Variance))
				Expect(*p.High).To(BeNumerically(">=", *p.Variance))
			} else {
				Expect(p.Why).To(ContainSubstring("--freeze"))
				Expect([]any{p.Low, p.High, p.Share}).To(HaveEach(BeNil()))
			}
			out = append(out, text)
		}
		return out
	}

	It("adds up", func() {
		// Variances of four verdicts: 1/3 of two in four, 1/4 of one in four.
		m := metric("pass_rate", many(20, comes, steady, seldom), passed, true, true)
		Expect(*m.Total.Variance).To(BeNumerically("~", 1.0/3, 1e-6))
		Expect(sources(m)).To(Equal([]string{"judge 0.0000", "agent 0.2500", "environment 0.0833"}))
		Expect(*m.Parts[1].Share + *m.Parts[2].Share).To(BeNumerically("~", 1, 1e-5))
	})

	It("tells nothing of what was not measured", func() {
		Expect(sources(metric("pass_rate", many(20, comes, nil, nil), passed, false, false))).To(Equal([]string{"judge", "agent", "environment"}))
		Expect(sources(metric("pass_rate", many(20, comes, seldom, nil), passed, true, false))).To(Equal([]string{"judge 0.2500", "agent and environment 0.0833", "environment"}))
		Expect(sources(metric("pass_rate", many(20, comes, nil, seldom), passed, false, true))).To(Equal([]string{"judge", "agent", "environment 0.0833"}))
	})

	It("does not take few steady items for a proof that there is no noise", func() {
		m := metric("pass_rate", many(5, steady, steady, steady), passed, true, true)
		Expect(float64(*m.Total.Variance)).To(BeZero())
		Expect(float64(*m.Total.High)).To(BeNumerically(">", 0.05))
		Expect(m.Parts[0].Share).To(BeNil(), "there is nothing to have a share of")
		one := metric("pass_rate", many(1, comes, steady, steady), passed, true, true)
		Expect(float64(*one.Total.High)).To(BeNumerically(">=", 1.0/3-1e-6))
	})
})

// Sources of a synthetic suite: how far each moves a score, as standard deviations.
const ofAgent, ofEnvironment, ofJudge = 0.12, 0.06, 0.09

func synthetic(random *rand.Rand, items, n int) (used [][3]*observed) {
	for range items {
		level := 0.5 + 0.1*random.NormFloat64()
		draw := func(sd float64) float64 { return sd * random.NormFloat64() }
		environment, agent := draw(ofEnvironment), draw(ofAgent)
		row := [3]*observed{{}, {}, {}}
		for range n {
			row[0].scores = append(row[0].scores, level+draw(ofEnvironment)+draw(ofAgent)+draw(ofJudge))
			row[1].scores = append(row[1].scores, level+environment+agent+draw(ofJudge))
			row[2].scores = append(row[2].scores, level+environment+draw(ofAgent)+draw(ofJudge))
		}
		used = append(used, row)
	}
	return used
}

var _ = It("by simulation, finds the sources of a synthetic suite, and its intervals cover", func() {
	random := rand.New(rand.NewPCG(7, 8))
	scores := func(o *observed) []float64 { return o.scores }
	const rounds, items, n = 200, 60, 5
	truth := map[string]float64{Judge: ofJudge * ofJudge, Agent: ofAgent * ofAgent, Environment: ofEnvironment * ofEnvironment}
	total := truth[Judge] + truth[Agent] + truth[Environment]
	mean, covered := map[string]float64{}, map[string]float64{}
	for range rounds {
		for _, p := range metric("score", synthetic(random, items, n), scores, true, true).Parts {
			mean[p.Source] += float64(*p.Variance) / total / rounds
			if float64(*p.Low) <= truth[p.Source] && truth[p.Source] <= float64(*p.High) {
				covered[p.Source] += 1.0 / rounds
			}
		}
	}
	for _, source := range []string{Agent, Judge, Environment} {
		suite.Documented("noise.md", source, truth[source]/total, mean[source], covered[source])
		Expect(math.Abs(mean[source]-truth[source]/total)).To(BeNumerically("<", 0.02), "%s: the estimate is right on average", source)
		Expect(covered[source]).To(BeNumerically(">=", 0.93), source)
	}
})

// made is a run of three items repeated four times; edit may change each line.
func made(edit func(*eval.Result)) *results.Run {
	GinkgoHelper()
	size := resultstest.Size{Items: 3, Providers: 1, Repeats: 4}
	plan := size.Plan()
	id, dir, err := results.NewFolder(GinkgoT().TempDir(), resultstest.Start, plan.Dataset.Name)
	Expect(err).NotTo(HaveOccurred())
	Expect(results.WriteManifest(dir, results.Manifest{ID: id, Started: resultstest.Start, Plan: plan.Head})).To(Succeed())
	journal, err := results.Create(dir, resultstest.Clock())
	Expect(err).NotTo(HaveOccurred())
	for index := 1; index <= size.Items; index++ {
		for repeat := 1; repeat <= size.Repeats; repeat++ {
			line := resultstest.Line(index, 0, repeat)
			edit(&line)
			t := trace.Trace{Events: []trace.Event{
				{N: 1, Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 1, CallID: "a", Name: "search", Arguments: `{}`, Scope: tool.External, Effect: tool.Read, Outcome: trace.Executed, Result: conversation.JSON(fmt.Sprint(index * (repeat / 4)))}},
				{N: 2, Kind: trace.KindTool, Tool: &trace.ToolRun{Seq: 2, CallID: "b", Name: "read_file", Arguments: `{}`, Scope: tool.Workspace, Effect: tool.Read, Outcome: trace.Executed, Result: conversation.JSON(fmt.Sprint(repeat))}},
			}}
			Expect(journal.Append(line, append(t.AppendJSON([]byte(`{"v":1,"item":{},"events":`)), '}'), 0)).To(Succeed())
		}
	}
	Expect(journal.Close()).To(Succeed())
	_, err = results.Fold(dir, plan)
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

func pass(line *eval.Result) { line.Status, line.Cause = eval.Pass, nil }

func fail(line *eval.Result) {
	cause := eval.CauseCheck
	line.Status, line.Cause = eval.Fail, &cause
}

var _ = Describe("a ledger of runs", func() {
	wavering := func(line *eval.Result) {
		if pass(line); line.Index == 2 && line.Repeat%2 == 0 {
			fail(line)
		}
		text := fmt.Sprint("answer ", line.Repeat)
		line.Output = &text
	}

	It("says which items come and go, and whose doing it is", func() {
		l, err := New(Runs{All: made(wavering), JudgeAlone: made(func(line *eval.Result) { pass(line) }), ToolsFrozen: made(wavering)})
		Expect(err).NotTo(HaveOccurred())
		c := l.Columns[0]
		Expect([]int{c.Items, c.All}).To(Equal([]int{3, 3}))
		Expect(c.Flaky).To(HaveLen(1))
		Expect([]any{c.Flaky[0].Blame, c.Flaky[0].All, *c.Flaky[0].JudgeAlone, *c.Flaky[0].ToolsFrozen}).To(Equal([]any{Agent, Count{2, 4}, Count{4, 4}, Count{2, 4}}))
		// Of three items the search was made three times more; the last gave something else. Tools of the workspace do not count.
		Expect([]int{*c.Calls, *c.Thawed}).To(Equal([]int{9, 3}))
	})

	It("leaves out what was not judged, or judged otherwise", func() {
		l, err := New(Runs{All: made(wavering), JudgeAlone: made(func(line *eval.Result) {
			switch pass(line); line.Index {
			case 1:
				line.Status, line.Cause = eval.Error, &[]string{"provider"}[0]
			case 2:
				line.ChecksHash = "0000000000000000"
			}
		})})
		Expect(err).NotTo(HaveOccurred())
		c := l.Columns[0]
		Expect([]int{c.Items, c.All}).To(Equal([]int{1, 3}))
		Expect(c.Flaky[0].JudgeAlone).To(BeNil())
		Expect([]string{c.Flaky[0].Blame, c.Flaky[0].Why}).To(Equal([]string{NotTold, whyTools}))
	})

	It("refuses a run whose agent was not frozen, another dataset, and one without repeats", func() {
		_, err := New(Runs{All: made(wavering), JudgeAlone: made(wavering)})
		Expect(err).To(MatchError(MatchRegexp(`does not have the agent frozen: the repeats of "[^"]+" on "p0" have different answers`)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		other := made(pass)
		other.Summary.Dataset.Name = "other"
		_, err = New(Runs{All: made(wavering), ToolsFrozen: other})
		Expect(err).To(MatchError(ContainSubstring("two datasets")))
		_, err = New(Runs{All: made(func(line *eval.Result) {
			if pass(line); line.Repeat > 1 {
				line.Status, line.Cause = eval.NotRun, &[]string{"interrupted"}[0]
			}
		})})
		Expect(err).To(MatchError(ContainSubstring("no item that was judged more than once")))
	})
})
