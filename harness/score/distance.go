package score

import "math/bits"

// maxCells bounds what is compared: the product of the two lengths. It takes about a second at most.
const maxCells = 20_000_000_000

// feasible reports that two sequences of these lengths can be compared in time.
func feasible(a, b int) bool { return b == 0 || a <= maxCells/b }

// levenshtein is the number of insertions, deletions and substitutions that make one sequence the other (Levenshtein 1966), by the bit vectors of Myers (1999) in the form of Hyyrö (2003): 64 cells at a time.
func levenshtein[T symbol](a, b []T) int {
	a, b = trimmed(a, b)
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 {
		return len(b)
	}
	blocks := (len(a) + 63) / 64
	masks := masksOf(a, blocks)
	empty := make([]uint64, blocks)
	// The vectors hold where the cells of a column grow (plus) and shrink (minus) from one row to the next.
	plus, minus := make([]uint64, blocks), make([]uint64, blocks)
	for i := range plus {
		plus[i] = ^uint64(0)
	}
	distance := len(a)
	last := uint64(1) << ((len(a) - 1) % 64)
	for _, s := range b {
		mask := masks[s]
		if mask == nil {
			mask = empty
		}
		// The first row grows by one from column to column.
		plusIn, minusIn := uint64(1), uint64(0)
		for i := range blocks {
			p, m, eq := plus[i], minus[i], mask[i]
			vertical := eq | m
			eq |= minusIn
			horizontal := (((eq & p) + p) ^ p) | eq
			growing := m | ^(horizontal | p)
			shrinking := p & horizontal
			if i == blocks-1 {
				if growing&last != 0 {
					distance++
				}
				if shrinking&last != 0 {
					distance--
				}
			}
			plusOut, minusOut := growing>>63, shrinking>>63
			growing, shrinking = growing<<1|plusIn, shrinking<<1|minusIn
			plus[i], minus[i] = shrinking|^(vertical|growing), growing&vertical
			plusIn, minusIn = plusOut, minusOut
		}
	}
	return distance
}

// common is the length of the longest common subsequence, by the bit vectors of Hyyrö (2004).
func common[T symbol](a, b []T) int {
	shared := len(a)
	a, b = trimmed(a, b)
	shared -= len(a) // what both begin and end with belongs to one of the longest
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == 0 {
		return shared
	}
	blocks := (len(a) + 63) / 64
	masks := masksOf(a, blocks)
	rows := make([]uint64, blocks)
	for i := range rows {
		rows[i] = ^uint64(0)
	}
	for _, s := range b {
		mask := masks[s]
		if mask == nil {
			continue
		}
		carry := uint64(0)
		for i := range blocks {
			matching := rows[i] & mask[i]
			var sum uint64
			sum, carry = bits.Add64(rows[i], matching, carry)
			rows[i] = sum | (rows[i] &^ matching)
		}
	}
	for i, r := range rows {
		if rest := len(a) - 64*i; rest < 64 {
			r |= ^uint64(0) << rest
		}
		shared += 64 - bits.OnesCount64(r)
	}
	return shared
}

// symbol is what sequences are made of: characters and words.
type symbol interface{ ~rune | ~string }

// masksOf are the places of each symbol, a bit each.
func masksOf[T symbol](a []T, blocks int) map[T][]uint64 {
	masks := map[T][]uint64{}
	for i, s := range a {
		mask := masks[s]
		if mask == nil {
			mask = make([]uint64, blocks)
			masks[s] = mask
		}
		mask[i/64] |= 1 << (i % 64)
	}
	return masks
}

// trimmed leaves out what both begin and end with.
func trimmed[T symbol](a, b []T) ([]T, []T) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}
