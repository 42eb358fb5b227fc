// Package money holds amounts in US dollars as integers, so that sums do not depend on their order.
package money

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// USD is an amount in thousand-millionths of a dollar (nine decimals).
type USD int64

// Dollar is one dollar.
const Dollar USD = 1_000_000_000

// FromFloat rounds an amount in dollars to nine decimals. It fails on NaN, infinities and amounts beyond 9 thousand million dollars.
func FromFloat(dollars float64) (USD, error) {
	nanos := math.Round(dollars * float64(Dollar))
	if math.IsNaN(nanos) || math.Abs(nanos) > 9e18 {
		return 0, fmt.Errorf("%v is no amount of money", dollars)
	}
	return USD(nanos), nil
}

// Float is the amount in dollars, for arithmetic that needs no exact sums.
func (u USD) Float() float64 { return float64(u) / float64(Dollar) }

// String gives the shortest exact decimal: "0.001292", "12", "-0.5".
func (u USD) String() string { return string(u.AppendJSON(nil)) }

// AppendJSON appends the amount as a JSON number with as many decimals as it needs, at most nine.
func (u USD) AppendJSON(dst []byte) []byte {
	if u < 0 {
		dst = append(dst, '-')
	}
	abs := uint64(u)
	if u < 0 {
		abs = -abs
	}
	dst = strconv.AppendUint(dst, abs/uint64(Dollar), 10)
	fraction := abs % uint64(Dollar)
	if fraction == 0 {
		return dst
	}
	decimals := strings.TrimRight(fmt.Sprintf("%09d", fraction), "0")
	dst = append(dst, '.')
	return append(dst, decimals...)
}

// RoundUp gives the least amount of at most two significant digits that is not less.
func (u USD) RoundUp() USD {
	unit := USD(1)
	for u/unit >= 100 {
		unit *= 10
	}
	return (u + unit - 1) / unit * unit
}

// MarshalJSON is [USD.AppendJSON].
func (u USD) MarshalJSON() ([]byte, error) { return u.AppendJSON(nil), nil }

// UnmarshalJSON reads a JSON number: exactly up to nine decimals, rounded beyond and in scientific notation.
func (u *USD) UnmarshalJSON(data []byte) error {
	amount, err := parse(string(data))
	if err != nil {
		return err
	}
	*u = amount
	return nil
}

func parse(text string) (USD, error) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.Trim(digits, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("%s is no amount of money", text)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) <= 9 && !strings.ContainsAny(digits, "eE") {
		// A float64 holds 16 digits, an amount up to 19.
		nanos, err := strconv.ParseInt(whole+fraction+"000000000"[len(fraction):], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is no amount of money", text)
		}
		return USD(nanos), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no amount of money", text)
	}
	return FromFloat(f)
}

// PerMillion returns what n tokens cost at a price per million tokens, rounded half up.
func PerMillion(price USD, n int) USD {
	whole, rest := int64(price)/1_000_000, int64(price)%1_000_000
	return USD(whole*int64(n) + (rest*int64(n)+500_000)/1_000_000)
}
