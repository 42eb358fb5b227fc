package score

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// slowDistance is the textbook's table.
func slowDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		left := row[0]
		row[0] = i + 1
		for j := range b {
			up := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(left+cost, up+1, row[j]+1)
			left = up
		}
	}
	return row[len(b)]
}

func slowCommon(a, b []rune) int {
	row := make([]int, len(b)+1)
	for i := range a {
		left := 0
		for j := range b {
			up := row[j+1]
			if a[i] == b[j] {
				row[j+1] = left + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			left = up
		}
	}
	return row[len(b)]
}

// TestDistances compares the bit vectors with the tables, across the borders of 64 cells.
func TestDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) []rune {
		s := make([]rune, n)
		for i := range s {
			s[i] = 'a' + rune(r.IntN(4))
		}
		return s
	}
	lengths := []int{0, 1, 2, 5, 62, 63, 64, 65, 127, 128, 129, 200}
	for _, n := range lengths {
		for _, m := range lengths {
			a, b := text(n), text(m)
			if n > 0 && r.IntN(3) == 0 { // near each other
				b = slices.Clone(a)
				b[r.IntN(n)] = 'z'
			}
			if got, want := levenshtein(a, b), slowDistance(a, b); got != want {
				t.Fatalf("distance of %q and %q: %d, want %d", string(a), string(b), got, want)
			}
			if got, want := common(a, b), slowCommon(a, b); got != want {
				t.Fatalf("common of %q and %q: %d, want %d", string(a), string(b), got, want)
			}
		}
	}
}

// TestGrowingSums compares the sums of pairings that grow call by call with those made at once.
func TestGrowingSums(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		expected, made := r.IntN(6), 1+r.IntN(8)
		values := make([][]int, made)
		for i := range values {
			values[i] = make([]int, expected)
			for e := range values[i] {
				if r.IntN(3) > 0 {
					values[i][e] = r.IntN(6)
				}
			}
		}
		value := func(e, m int) int { return values[m][e] }
		for _, c := range []struct {
			growing growing
			pair    func(int, int, func(int, int) int) ([]int, int)
		}{{newUnordered(expected), assigned}, {make(orderedSums, expected+1), ordered}} {
			g := c.growing
			for m := range made {
				before := g.clone()
				got := g.add(values[m])
				if _, want := c.pair(expected, m+1, value); got != want {
					t.Fatalf("%T, %d calls of %v: %d, want %d", g, m+1, values, got, want)
				}
				if again := before.add(values[m]); again != got {
					t.Fatalf("a clone gives %d, not %d", again, got)
				}
			}
		}
	}
}
