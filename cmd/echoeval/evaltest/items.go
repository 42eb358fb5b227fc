package evaltest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/echoeval/echoeval/cmd/echoeval/internal/cli"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/matchers"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

// Option changes what [Items] does.
type Option func(*options)

type options struct {
	flags []string
	each  []func(matchers.Outcome)
}

// Flags are flags of `echoeval replay`, such as Flags("--provider", "haiku", "--tag", "urgent").
func Flags(flags ...string) Option {
	return func(o *options) { o.flags = append(o.flags, flags...) }
}

// Each runs body in the spec of each item, once per repeat that has a verdict, after the item's own checks were looked at. It is the place for assertions that a dataset cannot make:
//
//	evaltest.Items("datasets/clinic.yaml", evaltest.Each(func(o matchers.Outcome) {
//		Expect(o).To(ReplayCleanly())
//	}))
func Each(body func(matchers.Outcome)) Option {
	return func(o *options) { o.each = append(o.each, body) }
}

// Items makes a container of specs for a dataset: one for each item on each provider, and one for its gates. It stands at the top of a file, or in a container that is not ordered. The path starts from the folder of the test.
//
// The dataset is replayed once, before the first of its specs that runs. Specs fail exactly where the command ends with another code than 0, and are judged as it judges:
//
//   - An item that failed, that could not be judged, or whose recording does not fit fails its spec; checks and invariants are shown with their evidence, and the transcript stands beside them.
//   - Where the dataset's gates put up with that (pass_rate ">= 0.95", error_rate "<= 0.02"), the spec is skipped and says so. A stale recording is never put up with. With pass_if the share of the repeats decides.
//   - An item that the dataset skips is skipped, with the reason. One in quarantine runs and is shown; where it does not pass its spec is skipped with owner and day, unless an invariant is broken or its recording is stale, which count as ever.
//   - The spec "keeps its gates" holds every reason of the verdict: metrics, regressions against the baseline, items without a verdict.
//
// A spec's place is the item's in the dataset, its labels are the item's tags; what Ginkgo does not take in a label (& | ! , ( ) / :) becomes "_". A dataset that cannot be read is one spec that fails with all its mistakes.
func Items(file string, opts ...Option) bool {
	var o options
	for _, option := range opts {
		option(&o)
	}
	at := types.NewCodeLocation(1)
	return ginkgo.Describe("dataset "+file, ginkgo.Ordered, ginkgo.ContinueOnFailure, at, func() {
		listing, err := list(file, o.flags)
		if err != nil {
			ginkgo.It("can be read", at, func() { ginkgo.Fail(err.Error()) })
			return
		}
		s := &specs{file: file, options: o, lines: map[results.Key][]eval.Result{}}
		ginkgo.BeforeAll(s.start)
		ginkgo.AfterAll(s.end)
		for _, provider := range listing.Providers {
			ginkgo.Context("on "+escape.Line(provider), at, func() {
				for _, item := range listing.Items {
					place := types.CodeLocation{FileName: filepath.Join(listing.Root, filepath.FromSlash(item.Pos.File)), LineNumber: item.Pos.Line}
					ginkgo.It(escape.Line(item.ID), place, labels(item.Tags), func(ctx ginkgo.SpecContext) { s.item(ctx, item, provider) })
				}
			})
		}
		ginkgo.It("keeps its gates", at, s.gates)
	})
}

// list plans the run.
func list(file string, flags []string) (*cli.Listing, error) {
	state, err := cli.Embedded(nil, nil, nil)
	if err != nil {
		return nil, err
	}
	listing, err := cli.List(state, file, flags)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimSpace(escape.Block(failure.Render(err))))
	}
	return listing, nil
}

// labels are tags as Ginkgo takes them.
func labels(tags []string) ginkgo.Labels {
	var out ginkgo.Labels
	for _, tag := range tags {
		label := strings.TrimSpace(strings.Map(func(r rune) rune {
			if strings.ContainsRune("&|!,()/:", r) {
				return '_'
			}
			return r
		}, escape.Line(tag)))
		if label != "" {
			out = append(out, label)
		}
	}
	return out
}

// specs is what the specs of one dataset share.
type specs struct {
	file string
	options
	run   *Run
	lines map[results.Key][]eval.Result
}

func (s *specs) start(ctx ginkgo.SpecContext) {
	run, err := Replay(ctx, s.file, s.flags...)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	s.run = run
	for _, line := range run.Lines {
		key := results.Key{Item: line.Item, Provider: line.Provider}
		s.lines[key] = append(s.lines[key], line)
	}
}

func (s *specs) end() {
	if s.run == nil {
		return
	}
	if err := s.run.Close(); err != nil {
		ginkgo.Fail(err.Error())
	}
}

// item is the spec of an item on a provider.
func (s *specs) item(ctx context.Context, item cli.Listed, provider string) {
	lines := s.lines[results.Key{Item: item.ID, Provider: provider}]
	if len(lines) == 0 {
		ginkgo.Fail("the run has no result of the item")
	}
	v := judge(item, lines, s.run.Summary.Verdict.Reasons)
	if v.shown != "" {
		s.transcript(ctx, item.ID, provider)
	}
	switch {
	case v.skip != "":
		ginkgo.Skip(v.skip + v.shown)
	case v.fail != "":
		ginkgo.Fail(v.fail + v.shown)
	}
	for _, line := range lines {
		if line.Status != eval.Pass && line.Status != eval.Fail {
			continue
		}
		outcome, err := s.run.Outcome(line)
		if err != nil {
			ginkgo.Fail(err.Error())
		}
		for _, body := range s.each {
			body(outcome)
		}
	}
}

// transcript adds what `echoeval show` says of the item to the report of the spec.
func (s *specs) transcript(ctx context.Context, item, provider string) {
	said, err := command(ctx, []string{"show", s.run.run.Dir, item, "--provider", provider, "--no-color"})
	if err != nil {
		said = err.Error()
	}
	ginkgo.AddReportEntry("transcript", said, ginkgo.ReportEntryVisibilityFailureOrVerbose)
}

func (s *specs) gates() {
	v := s.run.Summary.Verdict
	if v.Code == failure.OK {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "echoeval replay would end with code %d: %s", v.Code, escape.Line(v.Text))
	for _, r := range v.Reasons {
		b.WriteString("\n" + r.Kind)
		if r.Gate != nil {
			b.WriteString(" " + escape.Line(*r.Gate))
		}
		if r.Provider != nil {
			b.WriteString(" of " + escape.Line(*r.Provider))
		}
		b.WriteString(": " + escape.Line(r.Text))
		// Where a gate failed, the hint is to look at the run, which the specs of the items have done.
		if r.Hint != nil && r.Kind != results.KindGate && r.Kind != results.KindRegression {
			b.WriteString("\nhint: " + escape.Line(*r.Hint))
		}
	}
	ginkgo.Fail(b.String())
}
