package stats

import (
	"cmp"
	"slices"
)

// Holm adjusts p-values of several tests so that the probability of any false alarm among them stays below the level that each is compared with (Holm 1979, "A simple sequentially rejective multiple test procedure"). The order is kept; whatever the tests have to do with one another.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, min(1, p[i]*float64(len(p)-rank)))
		out[i] = largest
	}
	return out
}
