package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
)

// job is one item on one column, one repeat.
type job struct {
	item   *dataset.Item
	column int
	repeat int
	mode   replay.Mode
	// variant is the faulty recording that the item is replayed over; nil for its own.
	variant *inject.Variant
}

// Judge evaluates the gates of a run and makes its verdict.
type Judge = func(*results.Summary, results.Tally)

// Run runs what finished does not hold yet, writes it into the journal of dir, and folds the journal. When ctx ends, items under way are cut off, the rest is not started, and what is finished is folded all the same; the lines that are missing become not_run.
//
// The error is one of writing or of the harness itself. What the items did stands in the summary. The warnings are those of the whole run, for its manifest.
func (e *Experiment) Run(ctx context.Context, dir string, journal *results.Journal, finished *results.Finished, judge Judge) (*results.Summary, []results.WarningCount, error) {
	r := newRunner(e, journal, finished)
	if finished.Len() > 0 {
		if err := r.recall(dir); err != nil {
			return nil, nil, errors.Join(err, journal.Close())
		}
	}
	runErr := r.run(ctx, r.do)
	if err := errors.Join(runErr, journal.Close(), e.Close()); err != nil {
		return nil, nil, err
	}
	cause := eval.CauseInterrupted
	exceeded := e.opts.Budget.exceededBy()
	if exceeded != nil && ctx.Err() == nil {
		cause = eval.CauseBudget
	}
	// A resumed run still needs the traces that this one would drop.
	plan, err := e.plan(r.warnings, &r.repeated, cause, ctx.Err() != nil || cause == eval.CauseBudget, judge)
	if err != nil {
		return nil, nil, err
	}
	if cause == eval.CauseBudget {
		plan.Budget = exceeded
	}
	summary, err := results.Fold(dir, plan)
	return summary, r.warnings.counts(), err
}

// Spent is what the run has paid so far under its budget, the parts before it was resumed included; 0 where there is none.
func (e *Experiment) Spent() money.USD { return e.opts.Budget.Spent() }

// plan is what the results of the run are put in order by.
func (e *Experiment) plan(w warnings, repeated *repeats, notRun string, keepAll bool, judge Judge) (results.Plan, error) {
	orphans, err := e.orphans()
	if err != nil {
		return results.Plan{}, err
	}
	head := e.head
	if keepAll {
		head.Traces = results.KeepAll
	}
	head.Lines += repeated.added(notRun)
	list := slices.Concat(datasetWarnings(e.Warnings()), e.isolation(), w.list())
	if n := repeated.cut(); n > 0 && notRun == eval.CauseBudget {
		list = append(list, results.Warning{Code: "repeats-cut", Text: fmt.Sprintf("the budget ended before %d items whose verdict is open were repeated further", n)})
	}
	return results.Plan{
		Head:        head,
		Each:        e.each(repeated, notRun),
		NotRun:      notRun,
		PassIf:      e.passIf(),
		Dropped:     e.rules.notAsked,
		Quarantined: e.quarantined,
		Orphaned:    orphans,
		Over:        e.opts.Over,
		Parts:       wheres(e.opts.Parts),
		Warnings:    list,
		Look:        e.opts.Look,
		Judge:       judge,
	}, nil
}

// Merge joins the finished shards of this run in dir, a folder that is no run yet. Results, traces and summary become those of the run in one piece.
func (e *Experiment) Merge(dir string, shards []*results.Run, judge Judge) (summary *results.Summary, counts []results.WarningCount, err error) {
	repeated := e.newRepeats()
	var w warnings
	for _, shard := range shards {
		for _, c := range shard.Manifest.Warnings {
			w.note(trace.Warning{Code: c.Code, Text: c.Text}, c.Count)
		}
		if err := e.noteRepeats(shard, &repeated); err != nil {
			return nil, nil, err
		}
	}
	cause, budget := leftOut(shards)
	plan, err := e.plan(w, &repeated, cause, false, judge)
	if err != nil {
		return nil, nil, err
	}
	plan.Budget = budget
	summary, err = results.Merge(dir, shards, plan)
	return summary, w.counts(), err
}

// leftOut says why the lines are missing that no shard has: a budget only where no other shard was interrupted. It is that of the first.
func leftOut(shards []*results.Run) (cause string, budget *results.Budget) {
	cause = eval.CauseInterrupted
	for _, shard := range shards {
		switch s := &shard.Summary; {
		case s.Complete:
		case s.Cost.Budget == nil:
			return eval.CauseInterrupted, nil
		case budget == nil:
			cause, budget = eval.CauseBudget, s.Cost.Budget
		}
	}
	return cause, budget
}

// noteRepeats takes the lines of a shard, where what came of them decides how many there are.
func (e *Experiment) noteRepeats(shard *results.Run, repeated *repeats) error {
	if repeated.most == 0 {
		return nil
	}
	columns := e.columns()
	for line, err := range shard.Lines() {
		if err != nil {
			return err
		}
		if line.Status != eval.NotRun {
			repeated.note(&line, columns[line.Provider])
		}
	}
	return nil
}

// columns gives the place of each provider.
func (e *Experiment) columns() map[string]int {
	columns := map[string]int{}
	for i, p := range e.head.Providers {
		columns[p.ID] = i
	}
	return columns
}

// recall collects what an earlier part of the run has left: its warnings, and what it has paid.
func (r *runner) recall(dir string) (err error) {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	columns := r.columns()
	var paid money.USD
	for line, err := range run.Lines() {
		if err != nil {
			return err
		}
		paid += results.Paid(&line)
		if !r.finished.Has(line.Index, columns[line.Provider], line.Repeat) {
			continue
		}
		r.repeated.note(&line, columns[line.Provider])
		raw, ok, err := run.RawTrace(line)
		if err != nil {
			return err
		}
		if !ok || !bytes.Contains(raw, []byte(`"kind":"warning"`)) {
			continue
		}
		t, _, err := run.Trace(line)
		if err != nil {
			return err
		}
		r.warnings.add(warningsOf(t.Events.Events))
	}
	r.opts.Budget.before(paid)
	return nil
}

// orphans counts cassettes without an owner, where the run reads cassettes at all.
func (e *Experiment) orphans() (int, error) {
	if e.opts.Mode == replay.Live {
		return 0, nil
	}
	list, err := e.Orphans()
	return len(list), err
}

type runner struct {
	*Experiment
	journal  *results.Journal
	finished *results.Finished

	detector secret.Detector
	// tries says that outcomes are judged again after the run, so that workspaces are closed by who does.
	tries bool

	mu       sync.Mutex // guards what follows
	progress Progress
	warnings warnings
	repeated repeats
}

func (e *Experiment) newRepeats() repeats {
	return repeats{first: e.opts.Repeat, most: e.opts.RepeatMax, bounds: e.bounds}
}

func newRunner(e *Experiment, journal *results.Journal, finished *results.Finished) *runner {
	r := &runner{Experiment: e, journal: journal, finished: finished, detector: e.opts.Secrets, repeated: e.newRepeats()}
	r.progress = Progress{Total: e.head.Lines, Counts: map[eval.Status]int{}}
	r.progress.Done = finished.Len()
	return r
}

// Close ends the programs that the experiment has started and takes its folders away. [Experiment.Run] does so by itself.
func (e *Experiment) Close() error {
	if e.opts.Programs != nil {
		e.opts.Programs.Close()
	}
	if e.opts.Targets != nil {
		e.opts.Targets.Close()
	}
	return e.spaces.close()
}

// DefaultConcurrency is how many items run at the same time where models are asked and nothing else is said.
const DefaultConcurrency = 8

func (r *runner) concurrency() int {
	switch {
	case r.opts.Concurrency > 0:
		return r.opts.Concurrency
	case r.opts.Mode == replay.Replay:
		return 2 * runtime.GOMAXPROCS(0)
	}
	return DefaultConcurrency
}

// run feeds the jobs to the workers, which do them, in the order repeat, item, column, so that a cut leaves whole pairs.
func (r *runner) run(ctx context.Context, do func(context.Context, job) error) error {
	jobs := make(chan job)
	failed := make(chan struct{})
	var once sync.Once
	var failure error
	fail := func(err error) { once.Do(func() { failure = err; close(failed) }) }

	var wg, under sync.WaitGroup
	for range r.concurrency() {
		wg.Go(func() {
			for j := range jobs {
				if err := do(ctx, j); err != nil {
					fail(err)
				}
				under.Done()
			}
		})
	}
	feedErr := r.feed(ctx, func(j job) bool {
		under.Add(1)
		select {
		case jobs <- j:
			return true
		case <-ctx.Done():
		case <-failed:
		}
		under.Done()
		return false
	}, under.Wait)
	close(jobs)
	wg.Wait()
	return errors.Join(feedErr, failure)
}

func (r *runner) feed(ctx context.Context, send func(job) bool, settled func()) error {
	mode := r.opts.Mode
	if r.opts.OnlyStale {
		mode = replay.Extend // dials only from where an item turns out to be stale
	} else if mode == replay.Record && r.opts.Freeze == FreezeAgent {
		mode = replay.Extend // dials for judges alone
	}
	once := func(item *dataset.Item, column, repeat int) bool {
		if r.finished.Has(item.Index, column, repeat) {
			return true
		}
		return ctx.Err() == nil && r.opts.Budget.exceededBy() == nil && send(job{item: item, column: column, repeat: repeat, mode: mode})
	}
	for repeat, more := 1, true; more; repeat++ {
		more = false
		for item, err := range r.Selected() {
			if err != nil {
				return err
			}
			repeats := r.repeats(item)
			more = more || repeats > repeat
			if repeat > repeats {
				continue
			}
			if repeat == 1 {
				r.note(item)
			}
			for column := range r.opts.Columns {
				if !once(item, column, repeat) {
					return nil
				}
			}
		}
	}
	return r.feedOpen(once, settled)
}

// note remembers hidden values of an item that are too short to be told from ordinary text.
func (r *runner) note(item *dataset.Item) {
	if names := invariant.Weak(hiddenValues(item)); len(names) > 0 {
		r.mu.Lock()
		r.warnings.add([]trace.Warning{{Code: "short-hidden-values", Text: "values of tool_context that are too short or common to be told apart match only as whole values: " + strings.Join(names, ", ")}})
		r.mu.Unlock()
	}
}

// do runs one job and writes its line. An item that ctx has cut off leaves no line: it becomes not_run, and a resumed run does it again.
func (r *runner) do(ctx context.Context, j job) error {
	if ctx.Err() != nil {
		return nil
	}
	done := r.one(ctx, j)
	if done.restart {
		j.mode = replay.Record
		done = r.one(ctx, j)
	}
	if done.fatal != nil && ctx.Err() == nil {
		return done.fatal
	}
	if ctx.Err() != nil || done.overBudget && done.line.Status == eval.Error {
		return nil // whatever came of it, the end of the context may have had a part in it
	}
	if err := r.journal.Append(done.line, done.trace, j.column); err != nil {
		return fmt.Errorf("writing the result of %s: %w", j.item.ID, err)
	}
	r.mu.Lock()
	r.repeated.note(&done.line, j.column)
	r.warnings.add(done.warnings)
	r.mu.Unlock()
	r.advance(&done.line)
	return nil
}

// advance tells of a finished item.
func (r *runner) advance(line *eval.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Done++
	r.progress.Counts[line.Status]++
	r.progress.Last = *line
	if r.opts.Progress != nil {
		r.opts.Progress(r.progress)
	}
}
