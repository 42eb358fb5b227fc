package eval

// BoundOperators are the comparisons of a [Bound], in the order in which they are looked for at the beginning of a text.
var BoundOperators = []string{">=", "<=", "==", ">", "<"}

// Bound is a comparison with a number.
type Bound struct {
	// Op is one of [BoundOperators].
	Op    string
	Value float64
}

// boundTolerance is smaller than any difference between two values as results write them (money to a billionth of a dollar), and larger than what adding up shares loses.
const boundTolerance = 1e-10

// Holds reports whether a value keeps the bound. Values that are equal but for rounding are equal.
func (b Bound) Holds(value float64) bool {
	switch b.Op {
	case ">=":
		return value >= b.Value-boundTolerance
	case "<=":
		return value <= b.Value+boundTolerance
	case ">":
		return value > b.Value+boundTolerance
	case "<":
		return value < b.Value-boundTolerance
	}
	return value >= b.Value-boundTolerance && value <= b.Value+boundTolerance
}

// Settled reports whether every value of a range keeps the bound, or none does.
func (b Bound) Settled(low, high float64) bool {
	if b.Op == "==" && !b.Holds(low) && !b.Holds(high) {
		return b.Value < low || b.Value > high
	}
	return b.Holds(low) == b.Holds(high)
}
