package score

import (
	"math"
	"slices"
)

// A pair of an expected call and one made is worth whole units, so that sums do not depend on their order.
const (
	worth = 1_000_000 // everything fits
	named = worth / 2 // the tool fits, none of its arguments
)

// unpaired marks a call without a partner.
const unpaired = -1

// ordered pairs the calls expected with those made so that both keep their order and the sum of worth is as high as can be: an alignment in the manner of Needleman and Wunsch (1970). A pair of worth 0 is none. It returns the partner of each expected call.
func ordered(expected, made int, value func(e, m int) int) (partner []int, sum int) {
	// best[e][m] is the highest sum of the calls from e and from m on.
	best := make([][]int, expected+1)
	for e := range best {
		best[e] = make([]int, made+1)
	}
	for e := expected - 1; e >= 0; e-- {
		for m := made - 1; m >= 0; m-- {
			best[e][m] = max(best[e+1][m], best[e][m+1])
			if v := value(e, m); v > 0 {
				best[e][m] = max(best[e][m], v+best[e+1][m+1])
			}
		}
	}
	partner = make([]int, expected)
	m := 0
	for e := range partner {
		partner[e] = unpaired
		for m < made && best[e][m] == best[e][m+1] && best[e][m] > best[e+1][m] {
			m++ // nothing is lost by leaving this one out, but something by leaving e out
		}
		if m == made {
			continue
		}
		if v := value(e, m); v > 0 && best[e][m] == v+best[e+1][m+1] {
			partner[e] = m
			m++
		}
	}
	return partner, best[0][0]
}

// assigned pairs the calls expected with those made, in any order, so that the sum of worth is as high as can be: the assignment problem, by shortest augmenting paths (Kuhn 1955, Munkres 1957). A pair of worth 0 is none. It returns the partner of each expected call.
func assigned(expected, made int, value func(e, m int) int) (partner []int, sum int) {
	partner = make([]int, expected)
	for e := range partner {
		partner[e] = unpaired
	}
	if expected == 0 || made == 0 {
		return partner, 0
	}
	if expected > made {
		other, sum := assigned(made, expected, func(e, m int) int { return value(m, e) })
		for m, e := range other {
			if e != unpaired {
				partner[e] = m
			}
		}
		return partner, sum
	}
	// Rows and columns count from 1; row 0 and column 0 are the root of each search. Cost is what a pair lacks.
	rowPotential, columnPotential := make([]int, expected+1), make([]int, made+1)
	row := make([]int, made+1) // the row that a column is given to
	way := make([]int, made+1)
	least := make([]int, made+1)
	seen := make([]bool, made+1)
	for r := 1; r <= expected; r++ {
		for c := range least {
			least[c], seen[c] = math.MaxInt, false
		}
		row[0] = r
		column := 0
		for row[column] != 0 {
			seen[column] = true
			current, next, delta := row[column], 0, math.MaxInt
			for c := 1; c <= made; c++ {
				if seen[c] {
					continue
				}
				if cost := worth - value(current-1, c-1) - rowPotential[current] - columnPotential[c]; cost < least[c] {
					least[c], way[c] = cost, column
				}
				if least[c] < delta {
					delta, next = least[c], c
				}
			}
			for c := range seen {
				switch {
				case seen[c]:
					rowPotential[row[c]] += delta
					columnPotential[c] -= delta
				case least[c] != math.MaxInt:
					least[c] -= delta
				}
			}
			column = next
		}
		for column != 0 {
			row[column] = row[way[column]]
			column = way[column]
		}
	}
	for c := 1; c <= made; c++ {
		if row[c] == 0 {
			continue
		}
		if v := value(row[c]-1, c-1); v > 0 {
			partner[row[c]-1] = c - 1
			sum += v
		}
	}
	return partner, sum
}

// growing is the highest sum of a pairing to which calls made are added one by one. It serves where the sums over many pieces of the calls are wanted and not yet the pairs.
type growing interface {
	// add takes what the next call is worth for each expected one and returns the highest sum so far.
	add(values []int) int
	clone() growing
}

// orderedSums are the highest sums of the first expected calls, of none to all: one column of the alignment of [ordered].
type orderedSums []int

func (o orderedSums) add(values []int) int {
	before := o[0]
	for e, v := range values {
		here := o[e+1]
		o[e+1] = max(here, o[e], before+v)
		before = here
	}
	return o[len(values)]
}

func (o orderedSums) clone() growing { return slices.Clone(o) }

// unorderedSums is the assignment of [assigned] with the calls made as rows, so that one more costs one augmenting path. Leaving a call without a partner is worth 0 and always possible: a path may end with that, too.
type unorderedSums struct {
	values          [][]int // of each row
	row             []int   // the row that an expected call is given to, none for none
	rowPotential    []int
	columnPotential []int

	least, way []int
	seen       []bool
}

// none marks an expected call that no call is given to.
const none = -1

func newUnordered(expected int) *unorderedSums {
	u := &unorderedSums{row: make([]int, expected), columnPotential: make([]int, expected), least: make([]int, expected), way: make([]int, expected), seen: make([]bool, expected)}
	for c := range u.row {
		u.row[c] = none
	}
	return u
}

func (u *unorderedSums) clone() growing {
	return &unorderedSums{
		values: slices.Clone(u.values), row: slices.Clone(u.row), rowPotential: slices.Clone(u.rowPotential), columnPotential: slices.Clone(u.columnPotential),
		least: make([]int, len(u.row)), way: make([]int, len(u.row)), seen: make([]bool, len(u.row)),
	}
}

// add searches the shortest path from the new row to an expected call that is free or to a row that does without. A cost is what a pair is worth, negated; with the potentials all reduced costs are at least 0, and 0 along the pairs and for the rows that do without.
func (u *unorderedSums) add(values []int) int {
	start := len(u.values)
	u.values = append(u.values, slices.Clone(values))
	// The dual of the new row: no reduced cost of it may be below 0, doing without (cost 0) included.
	potential := 0
	for c, v := range values {
		potential = min(potential, -v-u.columnPotential[c])
	}
	u.rowPotential = append(u.rowPotential, potential)
	for c := range u.least {
		u.least[c], u.seen[c] = math.MaxInt, false
	}
	// The path ends at column end, which is free or whose row does without from now on; where end is none, the new row does.
	row, distance, column := start, 0, none
	end, shortest := none, -u.rowPotential[start]
	for {
		next, delta := none, math.MaxInt
		for c, v := range u.values[row] {
			if u.seen[c] {
				continue
			}
			if d := distance - v - u.rowPotential[row] - u.columnPotential[c]; d < u.least[c] {
				u.least[c], u.way[c] = d, column
			}
			if u.least[c] < delta {
				next, delta = c, u.least[c]
			}
		}
		if next == none || delta >= shortest {
			break
		}
		if u.row[next] == none {
			end, shortest = next, delta
			break
		}
		u.seen[next] = true
		column, row, distance = next, u.row[next], delta
		if d := distance - u.rowPotential[row]; d < shortest {
			end, shortest = column, d
		}
	}
	// Potentials move by how much nearer than the end a row or column lies.
	u.rowPotential[start] += shortest
	for c := range u.seen {
		if u.seen[c] {
			gain := shortest - u.least[c]
			if gain > 0 {
				u.columnPotential[c] -= gain
				u.rowPotential[u.row[c]] += gain
			}
		}
	}
	for c := end; c != none; {
		previous, given := u.way[c], start
		if previous != none {
			given = u.row[previous]
		}
		u.row[c] = given
		c = previous
	}
	sum := 0
	for c, r := range u.row {
		if r != none {
			sum += u.values[r][c]
		}
	}
	return sum
}
