package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/target"
	"github.com/echoeval/echoeval/reports/escape"
)

func newCassetteVerify(s *State) *cobra.Command {
	var folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify DATASET...", Short: "Replay datasets without judging them: fresh, stale by class, missing, orphaned, cost of re-recording", Args: atLeast(1, "a dataset"),
		Long: "Replay datasets without judging them and tell which cassettes still fit, and what recording the others anew would cost: by the tokens and durations of their last recording, and for those that are missing by the mean of their provider's others. The exit code is 0 where all fit, and 4 where one is stale, missing or unreadable; orphans are only named.",
		RunE: func(cmd *cobra.Command, files []string) error {
			code := failure.OK
			for _, file := range files {
				c, err := verify(cmd.Context(), s, folder, file, asJSON)
				if err != nil {
					return err
				}
				code = failure.Worse(code, c)
			}
			if code != failure.OK {
				return exit{code}
			}
			return nil
		},
	}
	cassettesFlag(cmd, &folder)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func verify(ctx context.Context, s *State, folder, file string, asJSON bool) (failure.Code, error) {
	p, err := plan(s, &runOptions{mode: "replay", traces: "failed", quiet: true, cassettes: folder, replayOnly: true}, file)
	if err != nil {
		return failure.Input, err
	}
	dir, err := os.MkdirTemp(s.temp(), "echoeval-verify-")
	if err != nil {
		return failure.Internal, failure.New(failure.Internal, "making a temporary folder: %s", failure.Reason(err))
	}
	defer os.RemoveAll(dir)
	ctx, stop := s.interruptible(ctx)
	defer stop()
	if err := results.WriteManifest(dir, results.Manifest{ID: "verify", Started: s.Clock.Now(), Plan: p.experiment.Head()}); err != nil {
		return failure.Internal, err
	}
	journal, err := results.Create(dir, s.Clock)
	if err != nil {
		return failure.Internal, err
	}
	summary, _, err := p.experiment.Run(ctx, dir, journal, &results.Finished{}, nil)
	if err != nil {
		return failure.Internal, err
	}
	run, err := results.Open(dir)
	if err != nil {
		return failure.Internal, err
	}
	defer run.Close()
	e, err := estimateAgain(p, run)
	if err != nil {
		return failure.Internal, err
	}
	setup := unreadableSetup(p, p.cassettes(s, folder))
	if asJSON {
		err = printJSON(s, struct {
			Dataset string `json:"dataset"`
			results.Cassettes
			Again again  `json:"re_recording"`
			Setup string `json:"setup_problem,omitempty"`
		}{p.dataset.Name, summary.Cassettes, e, setup})
	} else {
		err = printVerified(s, p, run, summary, e)
		if setup != "" {
			fmt.Fprintf(s.Stdout, "unreadable: %s\n", escape.Line(setup))
		}
	}
	if err != nil {
		return failure.Internal, failure.WithCode(err, failure.Internal)
	}
	switch {
	case !summary.Complete:
		return failure.Interrupted, nil
	case summary.Counts.Stale > 0 || setup != "":
		return failure.Cassette, nil
	}
	return failure.OK, nil
}

// unreadableSetup says what is wrong with the cassette of what a run fetches once; "" where nothing is, or where there is none.
func unreadableSetup(p *planned, base string) string {
	_, err := cassette.Load(filepath.Join(base, p.dataset.Name, cassette.SetupFile), p.dataset.Name+"/"+cassette.SetupFile)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return err.Error()
}

func printVerified(s *State, p *planned, run *results.Run, summary *results.Summary, e again) error {
	c := summary.Cassettes
	if _, err := fmt.Fprintf(s.Stdout, "%s: %d fresh, %d stale, %d missing, %d orphaned\n", p.dataset.Name, c.Fresh, c.Stale, c.Missing, c.Orphaned); err != nil {
		return err
	}
	if err := writeCauses(s.Stdout, run); err != nil {
		return err
	}
	if e.Cassettes > 0 {
		fmt.Fprintf(s.Stdout, "re-recording: %s\n", e.total())
		if len(e.ByCause) > 1 {
			for _, c := range e.ByCause {
				fmt.Fprintf(s.Stdout, "  %-16s %s\n", c.Cause, c.total())
			}
		}
	}
	orphans, err := p.experiment.Orphans()
	for _, file := range orphans {
		fmt.Fprintf(s.Stdout, "orphaned: %s\n", escape.Line(p.dataset.Name+"/"+file))
	}
	if e.Cassettes > 0 {
		fmt.Fprintf(s.Stderr, "hint: %s --stale\n", p.record)
	}
	return err
}

// spending is what recording some cassettes anew takes. Nothing is known of cassettes without an estimate; their number stands in Unknown, and the sums leave them out.
type spending struct {
	Cassettes int `json:"cassettes"`
	// CostUSD is nil where nothing has a price. TimeMS is how long it takes as many items at once as a recording runs.
	CostUSD *money.USD `json:"cost_usd"`
	TimeMS  int64      `json:"time_ms"`
	Unknown int        `json:"unknown"`
	// Guessed counts those of which nothing was ever recorded: they are estimated by the length of what is asked.
	Guessed int `json:"guessed"`

	busy, longest time.Duration
}

// again is what recording anew takes, in all and by what made it necessary.
type again struct {
	spending
	ByCause []causeSpending `json:"by_cause"`
}

type causeSpending struct {
	Cause string `json:"cause"` // a class of drift, or missing, unreadable, left_over
	spending
}

func (t *spending) add(o outlay) {
	t.Cassettes++
	if o.guessed {
		t.Guessed++
	}
	if o.priced {
		sum := o.cost
		if t.CostUSD != nil {
			sum += *t.CostUSD
		}
		t.CostUSD = &sum
	} else {
		t.Unknown++
	}
	t.busy += o.took
	t.longest = max(t.longest, o.took)
	t.TimeMS = max(t.longest, t.busy/experiment.DefaultConcurrency).Milliseconds()
}

// total says it in words, such as "187 cassettes, about $0.41, 3 min".
func (t *spending) total() string {
	text := count(t.Cassettes, "cassette")
	if t.CostUSD != nil {
		text += fmt.Sprintf(", about $%.*f", digits(*t.CostUSD), t.CostUSD.Float())
	}
	if t.TimeMS > 0 {
		text += ", " + roughly(time.Duration(t.TimeMS)*time.Millisecond)
	}
	switch {
	case t.Unknown == t.Cassettes:
		text += ", cost unknown"
	case t.Unknown > 0:
		text += fmt.Sprintf(" without %d whose cost is unknown", t.Unknown)
	}
	return text + t.guess()
}

// guess says how much of the sums is guessed.
func (t *spending) guess() string {
	switch {
	case t.Guessed == 0 || t.CostUSD == nil:
		return ""
	case t.Guessed == t.Cassettes:
		return " (a guess: nothing was recorded yet)"
	}
	return fmt.Sprintf(" (%d of them guessed)", t.Guessed)
}

// digits is how many decimals show an amount to two places that count.
func digits(u money.USD) int {
	n := 2
	for limit := 0.1; n < 6 && u > 0 && u.Float() < limit; limit /= 10 {
		n++
	}
	return n
}

func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	}
	return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
}

// outlay is what one recording took.
type outlay struct {
	cost   money.USD
	priced bool
	took   time.Duration
	// guessed says that it was never recorded, nor anything like it.
	guessed bool
}

// What a reply is taken to be where nothing is known of any.
const (
	guessedReply   = 200 // tokens
	guessedLatency = 2 * time.Second
	bytesOfToken   = 4
)

// guess estimates a recording by what is asked.
func guess(c experiment.Cassette, cost func(string, conversation.Usage) (money.USD, bool)) outlay {
	o := outlay{took: time.Duration(c.Requests) * guessedLatency, guessed: true}
	if cost != nil {
		o.cost, o.priced = cost("", conversation.Usage{InputTokens: c.Asked / bytesOfToken, OutputTokens: c.Requests * guessedReply})
	}
	return o
}

// key names a line of results.
type key struct {
	item, provider string
	repeat         int
}

// estimateAgain looks at the last recording of everything that does not fit any more. What is missing is taken to be like the mean of what its provider has.
func estimateAgain(p *planned, run *results.Run) (again, error) {
	unfit := map[key]string{} // cause
	means := map[string]*mean{}
	of := func(provider string) *mean {
		if means[provider] == nil {
			means[provider] = &mean{}
		}
		return means[provider]
	}
	for line, err := range run.Lines() {
		if err != nil {
			return again{}, err
		}
		switch {
		case line.Status == eval.Stale:
			unfit[key{line.Item, line.Provider, line.Repeat}] = causeOf(&line)
		case line.Cassette != nil && line.CostUSD != nil && line.LatencyMS != nil:
			of(line.Provider).add(outlay{cost: *line.CostUSD, priced: true, took: time.Duration(*line.LatencyMS) * time.Millisecond})
		}
	}
	if len(unfit) == 0 {
		return again{ByCause: []causeSpending{}}, nil
	}
	return estimate(p, means, func(c experiment.Cassette) (string, bool) {
		cause, is := unfit[key{c.Item, c.Provider, c.Repeat}]
		return cause, is
	})
}

// estimate sums up what recording takes: of all cassettes that causeOf names a cause for, by their last recording, and of those that have none by the mean of their provider's others.
func estimate(p *planned, means map[string]*mean, causeOf func(experiment.Cassette) (string, bool)) (again, error) {
	e := again{ByCause: []causeSpending{}}
	of := func(provider string) *mean {
		if means[provider] == nil {
			means[provider] = &mean{}
		}
		return means[provider]
	}
	costs := map[string]func(string, conversation.Usage) (money.USD, bool){}
	for _, c := range slices.Concat(p.columns, p.roles) {
		costs[c.Provider.ID] = recordedCost(p.dataset, c.Provider)
	}
	byCause := map[string]*spending{}
	var unread []struct {
		experiment.Cassette
		to *spending
	}
	for c, err := range p.experiment.Cassettes() {
		if err != nil {
			return e, err
		}
		cause, is := causeOf(c)
		if !is || c.Skipped {
			continue
		}
		to := byCause[cause]
		if to == nil {
			to = &spending{}
			byCause[cause] = to
		}
		file, err := cassette.Load(c.Path, c.File)
		if err != nil { // counted as the others are, once these are known
			unread = append(unread, struct {
				experiment.Cassette
				to *spending
			}{c, to})
			continue
		}
		o := recordedOutlay(file, costs, c.Provider)
		of(c.Provider).add(o)
		to.add(o)
		e.add(o)
	}
	for _, u := range unread {
		o := of(u.Provider).outlay()
		if of(u.Provider).n == 0 {
			o = guess(u.Cassette, costs[u.Provider])
		}
		u.to.add(o)
		e.add(o)
	}
	for _, cause := range slices.Sorted(maps.Keys(byCause)) {
		e.ByCause = append(e.ByCause, causeSpending{cause, *byCause[cause]})
	}
	slices.SortStableFunc(e.ByCause, func(a, b causeSpending) int { return cmp.Compare(b.Cassettes, a.Cassettes) })
	return e, nil
}

// causeOf is the class of the drift that made a line stale, or else its cause.
func causeOf(line *eval.Result) string {
	cause := ""
	if line.Cause != nil {
		cause = *line.Cause
	}
	if line.Cassette == nil || cause != string(replay.Drift) {
		return cause
	}
	for _, d := range line.Cassette.Drift {
		if d.Action == string(replay.Fail) {
			return d.Class
		}
	}
	return cause
}

// mean is the mean of the recordings that are known.
type mean struct {
	n, priced int64
	cost      money.USD
	took      time.Duration
}

func (m *mean) add(o outlay) {
	m.n++
	m.took += o.took
	if o.priced {
		m.priced++
		m.cost += o.cost
	}
}

func (m *mean) outlay() outlay {
	var o outlay
	if m.n > 0 {
		o.took = m.took / time.Duration(m.n)
	}
	if m.priced > 0 {
		o.cost, o.priced = m.cost/money.USD(m.priced), true
	}
	return o
}

// recordedCost prices the recorded replies of a provider. Those of a program under test go by the model that each request names, or by that of its entry, of whichever vendor has a price for it.
func recordedCost(d *dataset.Dataset, p dataset.Provider) func(model string, u conversation.Usage) (money.USD, bool) {
	if d.TargetOf(p) == nil {
		cost := costOf(pricesOf(d.Project), p, vendors[p.Vendor].scripted)
		return func(_ string, u conversation.Usage) (money.USD, bool) { return cost(llm.Response{Usage: u}) }
	}
	cost := costByModel(pricesOf(d.Project), p)
	return func(model string, u conversation.Usage) (money.USD, bool) {
		for _, v := range target.Vendors {
			if usd, ok := cost(v.Name, cmp.Or(model, p.Model), u); ok {
				return usd, true
			}
		}
		return 0, false
	}
}

// recordedOutlay is what a recording took: the prices of today for the tokens that its replies tell, and its durations one after the other. It has no price where a reply tells no tokens. costs are those of the providers, judges among them.
func recordedOutlay(file *cassette.File, costs map[string]func(string, conversation.Usage) (money.USD, bool), provider string) outlay {
	o := outlay{priced: costs[provider] != nil}
	for n := range file.Interactions {
		i := &file.Interactions[n]
		o.took += i.Response.Duration
		reply, ok := i.Reply()
		if !ok {
			continue
		}
		cost := costs[cmp.Or(i.Extra.Judge, provider)]
		if reply.Usage == nil || cost == nil || !o.priced {
			o.priced = false
			continue
		}
		u := conversation.Usage{InputTokens: reply.Usage.Input, OutputTokens: reply.Usage.Output, CacheReadTokens: reply.Usage.Cached, CacheWriteTokens: reply.Usage.Written, ReasoningTokens: reply.Usage.Reasoning}
		usd, known := cost(i.Model(), u)
		o.cost += usd
		o.priced = known
	}
	if !o.priced {
		o.cost = 0
	}
	return o
}

// String names an item, provider and repeat in a line of text.
func (k key) String() string {
	parts := []string{k.item, k.provider}
	if k.repeat > 1 {
		parts = append(parts, fmt.Sprintf("repeat %d", k.repeat))
	}
	return escape.Line(strings.Join(parts, " / "))
}
