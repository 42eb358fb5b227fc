package files

import "errors"

// budget bounds the comparisons of one call of patch, in pairs of equal characters that were looked at: about a quarter of a second; counted, so that every machine stops at the same place.
const budget = 100_000_000

var errBudget = errors.New("the file and the text to find are too large to compare by similarity; give the text exactly as it is in the file")

// similarity compares texts with one needle by the ratio of Ratcliff and Obershelp, as Python's difflib has it: twice the number of characters in the longest common runs, taken recursively, over the number of characters in both; 1 for equal texts.
// Unlike difflib's default it does not leave out characters that are frequent in a text of 200 or more: that rule makes matching faster, and the ratio of long texts lower than that of short ones which differ as little.
//
// It works on numbers in slices; the library go-difflib, which its tests compare it with, takes 18 times as long for two texts of 450 characters.
type similarity struct {
	needle    []int32
	ids       map[rune]int32 // 0 for characters that the needle does not have
	positions [][]int32      // by id, ascending
	counts    []int32        // by id
	spent     *int
	row, next []int32
	left      []int32
}

func newSimilarity(needle string, spent *int) *similarity {
	s := &similarity{ids: map[rune]int32{}, positions: make([][]int32, 1), counts: make([]int32, 1), spent: spent}
	for _, r := range needle {
		id, ok := s.ids[r]
		if !ok {
			id = int32(len(s.positions))
			s.ids[r] = id
			s.positions = append(s.positions, nil)
			s.counts = append(s.counts, 0)
		}
		s.positions[id] = append(s.positions[id], int32(len(s.needle)))
		s.counts[id]++
		s.needle = append(s.needle, id)
	}
	s.row, s.next = make([]int32, len(s.needle)+1), make([]int32, len(s.needle)+1)
	s.left = make([]int32, len(s.counts))
	return s
}

// ratio returns the similarity of text and needle if it is above floor, and -1 where it cannot be.
func (s *similarity) ratio(text string, floor float64) (float64, error) {
	a := make([]int32, 0, len(text))
	copy(s.left, s.counts)
	common := 0
	for _, r := range text {
		id := s.ids[r]
		a = append(a, id)
		if id > 0 && s.left[id] > 0 {
			s.left[id]--
			common++
		}
	}
	total := len(a) + len(s.needle)
	if total == 0 {
		return above(1, floor), nil
	}
	*s.spent += len(a)
	// No order of the characters gives more than those that both have.
	if 2*float64(common)/float64(total) <= floor {
		return -1, nil
	}
	matches, err := s.matches(a, 0, len(a), 0, len(s.needle))
	if err != nil {
		return 0, err
	}
	return above(2*float64(matches)/float64(total), floor), nil
}

func above(ratio, floor float64) float64 {
	if ratio > floor {
		return ratio
	}
	return -1
}

// matches counts the characters of the longest common run of a[alo:ahi] and needle[blo:bhi], the first of several, and of those before and behind it.
func (s *similarity) matches(a []int32, alo, ahi, blo, bhi int) (int, error) {
	sum := 0
	for alo < ahi && blo < bhi {
		i, j, size, err := s.longest(a, alo, ahi, blo, bhi)
		if err != nil || size == 0 {
			return sum, err
		}
		before, err := s.matches(a, alo, i, blo, j)
		if err != nil {
			return 0, err
		}
		sum += size + before
		alo, blo = i+size, j+size
	}
	return sum, nil
}

func (s *similarity) longest(a []int32, alo, ahi, blo, bhi int) (besti, bestj, best int, err error) {
	for i := alo; i < ahi; i++ {
		positions := s.positions[a[i]]
		*s.spent += len(positions) + 1
		if *s.spent > budget {
			clear(s.row)
			clear(s.next)
			return 0, 0, 0, errBudget
		}
		for _, j := range positions {
			if int(j) < blo {
				continue
			}
			if int(j) >= bhi {
				break
			}
			// row[j] is the length of the run that ends before j on the line above.
			k := s.row[j] + 1
			s.next[j+1] = k
			if int(k) > best {
				besti, bestj, best = i-int(k)+1, int(j)-int(k)+1, int(k)
			}
		}
		if i > alo {
			for _, j := range s.positions[a[i-1]] {
				s.row[j+1] = 0
			}
		}
		s.row, s.next = s.next, s.row
	}
	for _, j := range s.positions[a[ahi-1]] {
		s.row[j+1] = 0
	}
	return besti, bestj, best, nil
}
