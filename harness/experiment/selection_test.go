package experiment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
)

// many is a dataset of n items on two providers.
func many(n int) *project {
	var text strings.Builder
	text.WriteString(strings.Replace(head, "[script:one]", "[script:one, script:two]", 1) + "defaults: {checks: [{contains: ok}], script: [{text: ok}]}\nitems:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - {id: item-%d, input: x}\n", i)
	}
	p := newProject(text.String())
	p.opts.Mode = replay.Live
	return p
}

func ids(lines []eval.Result) []string {
	var out []string
	for _, l := range lines {
		if len(out) == 0 || out[len(out)-1] != l.Item {
			out = append(out, l.Item)
		}
	}
	return out
}

var _ = Describe("a selection", func() {
	It("by shards is a partition in which no item is split", func(ctx context.Context) {
		var all []string
		for i := 1; i <= 3; i++ {
			p := many(10)
			p.opts.Shard = experiment.Shard{I: i, N: 3}
			_, lines := p.run(ctx)
			Expect(lines).To(HaveLen(2 * len(ids(lines))))
			all = append(all, ids(lines)...)
		}
		slices.Sort(all)
		_, whole := many(10).run(ctx)
		want := ids(whole)
		slices.Sort(want)
		Expect(all).To(Equal(want))
	})

	It("by a sample takes exactly so many, the same for the same seed, others for another", func(ctx context.Context) {
		draw := func(text string, seed uint64) []string {
			p := many(40)
			sample, err := experiment.ParseSample(text)
			Expect(err).NotTo(HaveOccurred())
			p.opts.Sample, p.opts.Seed = sample, seed
			summary, lines := p.run(ctx)
			Expect(*summary.Selected.Sample).To(Equal(text))
			Expect(summary.Selected.Items).To(Equal(len(ids(lines))))
			return ids(lines)
		}
		Expect(draw("7", 1)).To(HaveLen(7))
		Expect(draw("7", 1)).To(Equal(draw("7", 1)))
		Expect(draw("7", 1)).NotTo(Equal(draw("7", 2)))
		Expect(draw("100", 1)).To(HaveLen(40))
		Expect(draw("100%", 1)).To(HaveLen(40))
		share := draw("25%", 1)
		Expect(len(share)).To(And(BeNumerically(">", 2), BeNumerically("<", 25)))
		for _, id := range draw("7", 1) {
			Expect(draw("12", 1)).To(ContainElement(id), "a larger sample contains a smaller one")
		}
	})

	It("of a sample in shards is the sample", func(ctx context.Context) {
		var all []string
		for i := 1; i <= 2; i++ {
			p := many(20)
			p.opts.Sample, p.opts.Shard = experiment.Sample{Count: 19, Text: "19"}, experiment.Shard{I: i, N: 2}
			_, lines := p.run(ctx)
			all = append(all, ids(lines)...)
		}
		Expect(all).To(HaveLen(19))
	})

	It("by what an earlier run left", func(ctx context.Context) {
		p := many(4)
		p.opts.Only, p.opts.OnlyText = map[string]bool{"item-2": true}, "fail"
		summary, lines := p.run(ctx)
		Expect(ids(lines)).To(Equal([]string{"item-2"}))
		Expect(*summary.Selected.Only).To(Equal("fail"))
	})

	DescribeTable("is refused where it makes no sense", func(parse func() error, message string) {
		err := parse()
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).NotTo(BeEmpty())
	},
		Entry(nil, func() error { _, err := experiment.ParseSample("0"); return err }, "want a number"),
		Entry(nil, func() error { _, err := experiment.ParseSample("-3"); return err }, "want a number"),
		Entry(nil, func() error { _, err := experiment.ParseSample("0%"); return err }, "above 0%"),
		Entry(nil, func() error { _, err := experiment.ParseSample("101%"); return err }, "above 0%"),
		Entry(nil, func() error { _, err := experiment.ParseSample("NaN%"); return err }, "above 0%"),
		Entry(nil, func() error { _, err := experiment.ParseSample("x"); return err }, "want a number"),
		Entry(nil, func() error { _, err := experiment.ParseShard("0/4"); return err }, "want I/N"),
		Entry(nil, func() error { _, err := experiment.ParseShard("5/4"); return err }, "want I/N"),
		Entry(nil, func() error { _, err := experiment.ParseShard("1"); return err }, "want I/N"),
		Entry(nil, func() error { _, err := experiment.ParseShard("1/4/2"); return err }, "want I/N"),
	)
})

var _ = Describe("a budget", func() {
	It("stops the run before the call that it does not cover, and leaves whole items", func(ctx context.Context) {
		p := many(10)
		p.opts.Concurrency = 1
		p.opts.Budget = experiment.NewBudget(money.USD(4096+45), 0) // a call reserves 4,096 and costs 10
		summary, lines := p.run(ctx)
		Expect(summary.Verdict.Code).To(Equal(failure.Unavailable))
		Expect(summary.Complete).To(BeFalse())
		var ran, left int
		for _, l := range lines {
			switch l.Status {
			case eval.Pass:
				ran++
			case eval.NotRun:
				left++
				Expect(*l.Cause).To(Equal(eval.CauseBudget))
			default:
				Fail("an item ended as " + string(l.Status))
			}
		}
		Expect(ran).To(Equal(5), "five calls of 10 leave less than a reservation")
		Expect(left).To(Equal(15))
		Expect(summary.Cost.SpentNowUSD).To(Equal(money.USD(50)))
	})

	It("is never overdrawn by calls side by side", func(ctx context.Context) {
		p := many(200)
		p.opts.Concurrency = 16
		p.opts.Budget = experiment.NewBudget(money.USD(3*4096+500), 0)
		summary, _ := p.run(ctx)
		Expect(int64(summary.Cost.SpentNowUSD)).To(BeNumerically("<=", 3*4096+500))
		Expect(summary.Counts.Pass).To(BeNumerically(">", 0))
	})

	It("lets calls wait for those under way, so that it covers as much side by side as one after the other", func(ctx context.Context) {
		p := many(10)
		p.opts.Concurrency = 8
		p.opts.Budget = experiment.NewBudget(money.USD(4096+190), 0) // twenty calls cost 200, and what is left covers the last one's reservation
		summary, _ := p.run(ctx)
		Expect(summary.Counts.Pass).To(Equal(20))
		Expect(summary.Cost.SpentNowUSD).To(Equal(money.USD(200)))
	})

	It("is not asked in a replay", func(ctx context.Context) {
		p := newProject(head + "items:\n  - {id: one, input: x, checks: [{contains: ok}], script: [{text: ok}]}\n")
		p.run(ctx)
		p.opts.Mode, p.opts.Budget = replay.Replay, experiment.NewBudget(1, 0)
		summary, _ := p.run(ctx)
		Expect(summary.Counts.Pass).To(Equal(1))
	})
})

var _ = Describe("a merge", func() {
	It("of shards has the bytes of the whole, whatever their order", func(ctx context.Context) {
		part := func(shard experiment.Shard) *results.Run {
			p := many(11)
			p.opts.Shard = shard
			e, gates, err := p.plan()
			Expect(err).NotTo(HaveOccurred())
			dir := GinkgoT().TempDir()
			journal, err := results.Create(dir, clock.Wall{})
			Expect(err).NotTo(HaveOccurred())
			_, warnings, err := e.Run(ctx, dir, journal, &results.Finished{}, gate.Judge(gates, gate.Input{}))
			Expect(err).NotTo(HaveOccurred())
			Expect(results.WriteManifest(dir, results.Manifest{ID: "x", Plan: e.Head(), Warnings: warnings})).To(Succeed())
			run, err := results.Open(dir)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(run.Close)
			return run
		}
		whole, _ := many(11).run(ctx)
		want, err := whole.AppendJSON(nil)
		Expect(err).NotTo(HaveOccurred())
		shards := []*results.Run{part(experiment.Shard{I: 1, N: 3}), part(experiment.Shard{I: 2, N: 3}), part(experiment.Shard{I: 3, N: 3})}
		for range 2 {
			slices.Reverse(shards)
			e, gates, err := many(11).plan()
			Expect(err).NotTo(HaveOccurred())
			summary, _, err := e.Merge(GinkgoT().TempDir(), shards, gate.Judge(gates, gate.Input{}))
			Expect(err).NotTo(HaveOccurred())
			got, err := summary.AppendJSON(nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(got)).To(Equal(string(want)))
		}
	})
})
