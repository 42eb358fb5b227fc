package experiment

import (
	"math/rand/v2"
	"testing"

	"github.com/echoeval/echoeval/core/eval"
)

// lineOf is a finished line.
func lineOf(index, repeat int, status eval.Status) *eval.Result {
	return &eval.Result{Index: index, Repeat: repeat, Status: status}
}

func noted(r repeats, statuses ...eval.Status) *repeats {
	for i, status := range statuses {
		r.note(lineOf(1, i+1, status), 0)
	}
	return &r
}

func TestWhatIsRepeated(t *testing.T) {
	const pass, fail, broken, skipped = eval.Pass, eval.Fail, eval.Error, eval.Skipped
	bound := func(op string, value float64) map[int]eval.Bound {
		return map[int]eval.Bound{1: {Op: op, Value: value}}
	}
	for _, c := range []struct {
		name     string
		first    int
		bounds   map[int]eval.Bound
		statuses []eval.Status
		want     int // lines of the item in a run that was interrupted, of 5 at most
	}{
		{"what passes is settled", 1, nil, []eval.Status{pass}, 1},
		{"what fails is not: is it always so?", 1, nil, []eval.Status{fail}, 2},
		{"nor is it when it passes the next time", 1, nil, []eval.Status{fail, pass, pass}, 4},
		{"until the last repeat", 1, nil, []eval.Status{fail, pass, pass, fail, pass}, 5},
		{"one of the first is enough", 3, nil, []eval.Status{pass, fail, pass}, 4},
		{"what the world did opens nothing", 2, nil, []eval.Status{broken, pass}, 2},
		{"nor what the dataset skips", 1, bound(">=", 0.6), []eval.Status{skipped}, 1},
		{"three of five are enough", 1, bound(">=", 0.6), []eval.Status{pass, pass, pass}, 3},
		{"and two are not", 1, bound(">=", 0.6), []eval.Status{pass, pass}, 3},
		{"three failures are enough", 1, bound(">=", 0.6), []eval.Status{fail, pass, fail, fail}, 4},
		{"a first pass with a bound is open", 1, bound(">=", 0.6), []eval.Status{pass}, 2},
		{"what the world did is no repeat, but takes its place", 1, bound(">=", 0.6), []eval.Status{broken, pass, pass, fail}, 5},
		{"all must pass", 1, bound("==", 1), []eval.Status{pass, fail}, 2},
		{"all must fail", 1, bound("<=", 0), []eval.Status{fail, pass}, 2},
	} {
		r := noted(repeats{first: c.first, most: 5, bounds: c.bounds}, c.statuses...)
		if got := r.needs(place{1, 0}, eval.CauseInterrupted); got != c.want {
			t.Errorf("%s: %d lines, want %d", c.name, got, c.want)
		}
	}
}

func TestABudgetThatEndsLeavesOutWhatOnlyExplains(t *testing.T) {
	open := noted(repeats{first: 1, most: 5}, eval.Fail, eval.Pass)
	if got := open.needs(place{1, 0}, eval.CauseBudget); got != 2 {
		t.Errorf("an item that failed has %d lines, want the 2 that ran", got)
	}
	bounded := noted(repeats{first: 1, most: 5, bounds: map[int]eval.Bound{1: {Op: ">=", Value: 0.6}}}, eval.Pass, eval.Fail)
	if got := bounded.needs(place{1, 0}, eval.CauseBudget); got != 3 {
		t.Errorf("an item whose own verdict is open has %d lines, want one more than the 2 that ran", got)
	}
	if open.cut() != 1 || bounded.cut() != 1 {
		t.Errorf("%d and %d items were cut, want 1 each", open.cut(), bounded.cut())
	}
}

// run plays an item as the runner does and returns how many repeats it had and how many passed of the first and of all.
func play(r *repeats, outcomes []bool) (n, passedFirst, passed int) {
	status := map[bool]eval.Status{true: eval.Pass, false: eval.Fail}
	for n = 0; n < r.first || r.open(place{1, 0}, n); n++ {
		r.note(lineOf(1, n+1, status[outcomes[n]]), 0)
		if outcomes[n] {
			passed++
			if n < r.first {
				passedFirst++
			}
		}
	}
	return n, passedFirst, passed
}

// The verdict of an item with a bound is that of all repeats, whatever they are and wherever it stops: so its error rate holds at every stopping time.
func TestAVerdictWithABoundIsThatOfAllRepeats(t *testing.T) {
	const most = 9
	saved := 0
	for _, op := range eval.BoundOperators {
		for _, value := range []float64{0, 1.0 / 3, 0.5, 0.6, 0.8, 1} {
			bound := eval.Bound{Op: op, Value: value}
			for bits := range 1 << most {
				outcomes, all := make([]bool, most), 0
				for i := range outcomes {
					if outcomes[i] = bits>>i&1 == 1; outcomes[i] {
						all++
					}
				}
				r := &repeats{first: 2, most: most, bounds: map[int]eval.Bound{1: bound}}
				n, _, passed := play(r, outcomes)
				saved += most - n
				if got, want := bound.Holds(float64(passed)/float64(n)), bound.Holds(float64(all)/most); got != want {
					t.Fatalf("%s %v of %v: kept %v after %d repeats, %v after all", op, value, outcomes, got, n, want)
				}
			}
		}
	}
	if saved == 0 {
		t.Error("no repeat was ever saved, so that nothing was tried")
	}
}

// Rates count the first repeats alone. Would they count all, those that failed first would have more chances to look better than the others.
func TestRatesAreNotMovedByWhatIsRepeated(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	const rounds, chance = 20_000, 0.7
	counted, all := 0.0, 0.0
	for range rounds {
		outcomes := make([]bool, 5)
		for i := range outcomes {
			outcomes[i] = random.Float64() < chance
		}
		n, first, passed := play(&repeats{first: 1, most: 5}, outcomes)
		counted += float64(first)
		all += float64(passed) / float64(n)
	}
	if rate := counted / rounds; rate < chance-0.01 || rate > chance+0.01 {
		t.Errorf("the rate of the first repeats is %v, want %v", rate, chance)
	}
	if rate := all / rounds; rate < chance+0.1 {
		t.Errorf("the rate of all repeats is %v: it should show why it is not used", rate)
	}
}

// The order in which lines are noted leaves no mark: so shards and resumed runs decide alike.
func TestTheOrderOfLinesLeavesNoMark(t *testing.T) {
	statuses := []eval.Status{eval.Pass, eval.Fail, eval.Error, eval.Fail, eval.Pass}
	want := noted(repeats{first: 2, most: 6}, statuses...).needs(place{1, 0}, "")
	for shift := range statuses {
		r := repeats{first: 2, most: 6}
		// Passes of an item without a bound matter only once it has failed; they may be noted before.
		for i := range statuses {
			k := (i + shift) % len(statuses)
			r.note(lineOf(1, k+1, statuses[k]), 0)
		}
		if got := r.needs(place{1, 0}, ""); got != want {
			t.Errorf("shifted by %d: %d lines, want %d", shift, got, want)
		}
	}
}
