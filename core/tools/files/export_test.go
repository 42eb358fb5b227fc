package files

// Ratio gives the similarity of a text and a needle to tests.
func Ratio(text, needle string) (float64, error) {
	spent := 0
	return newSimilarity(needle, &spent).ratio(text, -1)
}
