package score

import "math"

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
