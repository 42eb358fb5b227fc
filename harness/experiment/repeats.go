package experiment

import (
	"iter"
	"math/bits"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/results"
)

// MaxRepeats is the largest MAX of --repeat MIN..MAX.
const MaxRepeats = 64

// repeats decides which items are repeated beyond the first ones: those whose verdict is open.
//
// An item with pass_if is open until no outcome of the repeats that are left, up to the last, can change whether its bound is kept (curtailed sampling): its verdict is that of all repeats, whenever it stops, and so errs as seldom. Any other item is open where one of its first repeats failed: the rest tells a failure from one that comes and goes. As that choice depends on what came of them, the added repeats count in no rate and no comparison; so these, too, err as they would without.
// What an item needs follows from its own lines alone, in the order of its repeats. So shards, interruptions and the order in which items finish leave no mark.
type repeats struct {
	first, most int // most is 0 where no item is repeated for what came of it
	bounds      map[int]eval.Bound
	// items are those with a bound, and those that failed.
	items map[place]outcomes
}

type place struct{ index, column int }

// outcomes has a bit for each repeat.
type outcomes struct{ done, passed, failed uint64 }

// note takes a line that has its verdict.
func (r *repeats) note(line *eval.Result, column int) {
	if r.most == 0 || line.Repeat > MaxRepeats || line.Status == eval.Skipped {
		return
	}
	at := place{line.Index, column}
	known, kept := r.items[at]
	_, bounded := r.bounds[line.Index]
	if !kept && !bounded && line.Status != eval.Fail && line.Repeat <= r.first {
		return
	}
	bit := uint64(1) << (line.Repeat - 1)
	known.done |= bit
	switch line.Status {
	case eval.Pass:
		known.passed |= bit
	case eval.Fail:
		known.failed |= bit
	}
	if r.items == nil {
		r.items = map[place]outcomes{}
	}
	r.items[at] = known
}

// open reports whether the item is repeated once more after its first n repeats.
func (r *repeats) open(at place, n int) bool {
	known, ok := r.items[at]
	if !ok || n >= r.most {
		return false
	}
	bound, bounded := r.bounds[at.index]
	if !bounded {
		return known.failed&(1<<r.first-1) != 0
	}
	passed, judged := bits.OnesCount64(known.passed&(1<<n-1)), bits.OnesCount64((known.passed|known.failed)&(1<<n-1))
	left := r.most - n
	all := float64(judged + left)
	return !bound.Settled(float64(passed)/all, float64(passed+left)/all)
}

// needs is how many lines the item has: those that it needs, and what it has already. An item that was cut off gets a line for the first repeat that is missing, whose absence then shows; after a budget only if its own verdict is open without it.
func (r *repeats) needs(at place, cause string) int {
	known := r.items[at]
	_, bounded := r.bounds[at.index]
	n := r.first
	for r.open(at, n) {
		if known.done>>n&1 == 0 {
			if bounded || cause != eval.CauseBudget {
				n++
			}
			break
		}
		n++
	}
	return max(n, bits.Len64(known.done))
}

// added is how many lines there are beyond the first repeats of all items.
func (r *repeats) added(cause string) int {
	n := 0
	for at := range r.items {
		n += r.needs(at, cause) - r.first
	}
	return n
}

// cut counts the items that would be repeated further.
func (r *repeats) cut() int {
	n := 0
	for at, known := range r.items {
		if last := max(r.first, bits.Len64(known.done)); r.open(at, last) {
			n++
		}
	}
	return n
}

// feedOpen feeds the repeats of items whose verdict is open, a round at a time; settled waits until what was fed is done.
func (r *runner) feedOpen(send func(*dataset.Item, int, int) bool, settled func()) error {
	for repeat := r.repeated.first + 1; repeat <= r.repeated.most; repeat++ {
		settled()
		open := r.openAfter(repeat - 1)
		if len(open) == 0 {
			return nil
		}
		for item, err := range r.Selected() {
			if err != nil {
				return err
			}
			for column := range r.opts.Columns {
				if open[place{item.Index, column}] && !send(item, column, repeat) {
					return nil
				}
			}
		}
	}
	settled()
	return nil
}

// openAfter lists what is repeated once more after n repeats.
func (r *runner) openAfter(n int) map[place]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[place]bool{}
	for at := range r.repeated.items {
		if r.repeated.open(at, n) {
			out[at] = true
		}
	}
	if len(out) > 0 {
		r.progress.Total += len(out)
	}
	return out
}

// each yields every line of the run in the order of the results. cause is why lines are missing.
func (e *Experiment) each(repeated *repeats, cause string) iter.Seq2[results.Planned, error] {
	return func(yield func(results.Planned, error) bool) {
		for item, err := range e.Selected() {
			if err != nil {
				yield(results.Planned{}, err)
				return
			}
			for column := range e.opts.Columns {
				lines := e.repeats(item)
				if repeated.most > 0 {
					lines = repeated.needs(place{item.Index, column}, cause)
				}
				for repeat := 1; repeat <= lines; repeat++ {
					if !yield(results.Planned{Line: e.line(item, &e.opts.Columns[column], repeat), Column: column}, nil) {
						return
					}
				}
			}
		}
	}
}
