package stats

// PassAtK estimates without bias the probability that at least one of k repeats passes, from c that passed of n (Chen et al. 2021, "Evaluating large language models trained on code"):
//
//	1 - C(n-c,k)/C(n,k)
//
// It is undefined, and ok false, for n < k, k < 1 and c outside 0..n.
func PassAtK(n, c, k int) (p float64, ok bool) {
	none, ok := drawn(n, n-c, k)
	return 1 - none, ok
}

// PassHatK estimates without bias the probability that all of k repeats pass, from c that passed of n (Yao et al. 2024, "tau-bench"):
//
//	C(c,k)/C(n,k)
//
// It is undefined, and ok false, for n < k, k < 1 and c outside 0..n.
func PassHatK(n, c, k int) (p float64, ok bool) { return drawn(n, c, k) }

// drawn is the probability that k draws without replacement from n things are all among m of them.
func drawn(n, m, k int) (p float64, ok bool) {
	if k < 1 || n < k || m < 0 || m > n {
		return 0, false
	}
	p = 1
	for i := range k {
		p *= max(0, float64(m-i)) / float64(n-i)
	}
	return p, true
}
