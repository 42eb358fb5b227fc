package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Resamples is how many resamples an interval by the bootstrap is made of.
const Resamples = 2_000

// Statistic is a number about n values, of which it sees their sum and the sum of their squares.
type Statistic func(sum, squares float64, n int) float64

// Mean is the arithmetic mean.
func Mean(sum, _ float64, n int) float64 { return sum / float64(n) }

// Effect is the mean in units of the standard deviation: Cohen's d of paired differences. Without any spread it is 0 for a mean of 0, and else infinite.
func Effect(sum, squares float64, n int) float64 {
	mean := sum / float64(n)
	spread := math.Sqrt(max(0, squares-sum*mean) / float64(n-1))
	// What the subtraction leaves of equal values is rounding.
	if spread <= 1e-9*math.Abs(mean) {
		if mean == 0 {
			return 0
		}
		return math.Inf(int(math.Copysign(1, mean)))
	}
	return mean / spread
}

// Bootstrap returns the percentile interval of a statistic (Efron 1979, "Bootstrap methods: another look at the jackknife"): that of resamples with replacement, drawn from a fixed seed. ok is false for fewer than two values.
func Bootstrap(values []float64, s Statistic, confidence float64, resamples int) (low, high float64, ok bool) {
	n := len(values)
	if n < 2 || resamples < 1 || n > math.MaxUint32 {
		return 0, 0, false
	}
	random := rand.NewPCG(seed, uint64(n))
	drawn := make([]float64, resamples)
	for r := range drawn {
		var sum, squares float64
		// Each word of 64 bits gives two indexes by multiplication (Lemire 2019); the bias is below n/2^32.
		for i := 0; i < n; i += 2 {
			word := random.Uint64()
			x := values[index(uint32(word), n)]
			sum += x
			squares += x * x
			if i+1 < n {
				x = values[index(uint32(word>>32), n)]
				sum += x
				squares += x * x
			}
		}
		drawn[r] = s(sum, squares, n)
	}
	slices.Sort(drawn)
	tail := (1 - confidence) / 2
	at := func(p float64) float64 {
		return drawn[min(max(int(math.Ceil(p*float64(resamples)))-1, 0), resamples-1)]
	}
	return at(tail), at(1 - tail), true
}

// seed is that of everything that is drawn here.
const seed = 1

func index(word uint32, n int) uint64 { return uint64(word) * uint64(n) >> 32 }

// flips draws sums of values with random signs. Equal values are drawn together, 64 signs at a time.
type flips struct {
	sizes  []float64 // each different one, ascending
	counts []int
}

func newFlips(sizes []float64) *flips {
	slices.Sort(sizes)
	f := &flips{}
	for _, x := range sizes {
		if last := len(f.sizes) - 1; last >= 0 && f.sizes[last] == x {
			f.counts[last]++
		} else {
			f.sizes, f.counts = append(f.sizes, x), append(f.counts, 1)
		}
	}
	return f
}

func (f *flips) draw(random rand.Source) float64 {
	var sum float64
	var word uint64
	left := 0
	for i, x := range f.sizes {
		plus := 0
		for n := f.counts[i]; n > 0; {
			if left == 0 {
				word, left = random.Uint64(), 64
			}
			take := min(n, left)
			plus += bits.OnesCount64(word & (1<<take - 1))
			word >>= take
			left -= take
			n -= take
		}
		sum += x * float64(2*plus-f.counts[i])
	}
	return sum
}
