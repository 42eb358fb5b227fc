package score

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/strict"
)

// largest is the largest exponent, and the largest number of digits, that numbers are compared with: larger ones are beyond every double, and exact arithmetic with them would cost time and memory.
const largest = 400

// decimal reads a decimal number exactly. It fails on numbers beyond the range that is compared.
func decimal(text string) (*big.Rat, bool) {
	mantissa, exponent := text, "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	e, err := strconv.Atoi(exponent)
	if err != nil || e > largest || e < -largest || len(mantissa) > largest {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// sameNumber compares the texts of two JSON numbers as numbers; beyond the range of [decimal], as texts.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if i, err := strconv.ParseInt(a, 10, 64); err == nil {
		if j, err := strconv.ParseInt(b, 10, 64); err == nil {
			return i == j
		}
	}
	x, ok := decimal(a)
	y, also := decimal(b)
	return ok && also && x.Cmp(y) == 0
}

// bounds is what a number may be: near a value, or between two. Nil fields do not bind.
type bounds struct {
	value, near *big.Rat
	min, max    *big.Rat
	text        string
}

// numberArgs are the keys that state bounds.
type numberArgs struct {
	Value strict.Node `yaml:"value"`
	Abs   strict.Node `yaml:"abs"`
	Rel   strict.Node `yaml:"rel"`
	Min   strict.Node `yaml:"min"`
	Max   strict.Node `yaml:"max"`
}

func (args numberArgs) bounds(n strict.Node, a at) bounds {
	number := func(n strict.Node, key string) *big.Rat {
		if n.IsZero() {
			return nil
		}
		if n.Kind() != strict.Int && n.Kind() != strict.Float {
			a.Problems.Key(key).WrongType(n, "a number")
			return nil
		}
		r, ok := decimal(n.Text())
		if !ok {
			a.key(key).bad(n, "", "%s is out of range", n.Text())
		}
		return r
	}
	b := bounds{value: number(args.Value, "value"), min: number(args.Min, "min"), max: number(args.Max, "max")}
	abs, rel := number(args.Abs, "abs"), number(args.Rel, "rel")
	single, ranged := !args.Value.IsZero(), !args.Min.IsZero() || !args.Max.IsZero()
	switch {
	case single && ranged:
		a.bad(n, "write {value, abs, rel} or {min, max}", "both a value and a range")
	case !single && !ranged && n.Misspells(strict.Keys(args), "value", "min", "max"):
	case !single && !ranged:
		a.bad(n, "write {value: 42}, {value: 42, abs: 0.5} or {min: 1, max: 2}", "no value and no range")
	case ranged && (abs != nil || rel != nil):
		a.bad(n, "abs and rel stand beside value", "a tolerance without a value")
	}
	for _, tolerance := range []*big.Rat{abs, rel} {
		if tolerance != nil && tolerance.Sign() < 0 {
			a.bad(n, "", "a negative tolerance")
		}
	}
	if b.min != nil && b.max != nil && b.min.Cmp(b.max) > 0 {
		a.bad(n, "swap them", "min is above max")
	}
	if b.value != nil {
		// As usual for two tolerances, the wider one counts.
		b.near = new(big.Rat)
		if rel != nil {
			b.near.Mul(rel, new(big.Rat).Abs(b.value))
		}
		if abs != nil && abs.Cmp(b.near) > 0 {
			b.near = abs
		}
	}
	b.text = args.describe(b)
	return b
}

func (args numberArgs) describe(b bounds) string {
	switch {
	case b.value != nil:
		s := args.Value.Text()
		if !args.Abs.IsZero() {
			s += " ± " + args.Abs.Text()
		}
		if !args.Rel.IsZero() {
			s += " ± " + args.Rel.Text() + " of it"
		}
		return s
	case b.min != nil && b.max != nil:
		return "from " + args.Min.Text() + " to " + args.Max.Text()
	case b.min != nil:
		return "at least " + args.Min.Text()
	case b.max != nil:
		return "at most " + args.Max.Text()
	}
	return ""
}

// hold reports whether a number is within the bounds and describes it. One that is too large or too long to be compared is not.
func (b bounds) hold(text string) (bool, string) {
	r, ok := decimal(text)
	if !ok {
		return false, quote(text, 0) + " is beyond all numbers that can be compared"
	}
	ok = true
	if b.value != nil {
		ok = new(big.Rat).Abs(new(big.Rat).Sub(r, b.value)).Cmp(b.near) <= 0
	}
	if b.min != nil {
		ok = ok && r.Cmp(b.min) >= 0
	}
	if b.max != nil {
		ok = ok && r.Cmp(b.max) <= 0
	}
	if ok {
		return true, text + " is " + b.text
	}
	return false, text + " is not " + b.text
}

func compileNumeric(args strict.Node, a at) judge {
	var in struct {
		Value strict.Node `yaml:"value"`
		Abs   strict.Node `yaml:"abs"`
		Rel   strict.Node `yaml:"rel"`
		Min   strict.Node `yaml:"min"`
		Max   strict.Node `yaml:"max"`
		Take  string      `yaml:"take"`
	}
	in.Take = "only"
	a.decode(args, &in, "numeric: {value: 42, abs: 0.5} or {min: 1, max: 2}")
	if args.Kind() != strict.Mapping {
		return nil
	}
	takes := []string{"only", "first", "last"}
	if in.Take != "only" && in.Take != "first" && in.Take != "last" {
		a.key("take").bad(args.Get("take"), strict.Suggest(in.Take, takes), "unknown choice %q", in.Take)
	}
	b := numberArgs{in.Value, in.Abs, in.Rel, in.Min, in.Max}.bounds(args, a)
	return func(_ context.Context, c *Case) (Verdict, error) {
		v := Verdict{Expected: cut(b.text), Actual: around(c.Output, 0)}
		found := Numbers(c.Output)
		switch {
		case len(found) == 0:
			v.void = true
			v.Reason = "the answer holds no number"
			if c.Output == "" {
				v.Reason = "the answer is empty"
			}
			return v, nil
		case len(found) > 1 && in.Take == "only":
			v.void = true
			texts := make([]string, 0, 5)
			for _, n := range found[:min(len(found), 5)] {
				texts = append(texts, n.Text)
			}
			if len(found) > len(texts) {
				texts = append(texts, ellipsis)
			}
			v.Reason = fmt.Sprintf("the answer holds %d numbers (%s) and must hold one; take: first or last picks one", len(found), strings.Join(texts, ", "))
			return v, nil
		}
		n := found[0]
		if in.Take == "last" {
			n = found[len(found)-1]
		}
		v.Actual = around(c.Output, n.Offset)
		ok, reason := b.hold(n.Text)
		v.Score, v.Reason = hold(ok), reason
		return v, nil
	}
}

// Number is a number found in text: as JSON would write it, and the byte at which it begins.
type Number struct {
	Text   string
	Offset int
}

// Numbers finds the decimal numbers in a text. Commas between groups of three digits separate thousands ("1,234.5" is one number), every other comma ends a number; a minus sign (U+2212 too) belongs to a number unless a letter, a digit or a closing
// bracket stands before it ("3-5" and "2024-01-31" hold no negative number); a number inside a word ("gpt4", "x_1") is none, while one that a unit follows ("5km", "3%") is.
// Numbers in other scripts or in words are not seen.
func Numbers(text string) []Number {
	var found []Number
	for i := 0; i < len(text); {
		c := text[i]
		fraction := c == '.' && i+1 < len(text) && digit(text[i+1])
		if !digit(c) && !fraction {
			i++
			continue
		}
		start := i
		before, size := utf8.DecodeLastRuneInString(text[:start])
		if fraction && (before == '.' || unicode.IsLetter(before) || unicode.IsDigit(before)) {
			i++ // an ellipsis or the end of a word; digits begin after it
			continue
		}
		integer, end := "0", i
		if !fraction {
			integer, end = grouped(text, i)
		}
		var rest string
		if end+1 < len(text) && text[end] == '.' && digit(text[end+1]) {
			stop := digits(text, end+1)
			rest, end = text[end:stop], stop
		}
		if stop := exponent(text, end); stop > end {
			rest, end = rest+text[end:stop], stop
		}
		if i = end; unicode.IsLetter(before) || unicode.IsDigit(before) || before == '_' {
			continue
		}
		sign := ""
		if before == '-' || before == '\u2212' {
			prior, _ := utf8.DecodeLastRuneInString(text[:start-size])
			if !unicode.IsLetter(prior) && !unicode.IsDigit(prior) && !strings.ContainsRune(")]}", prior) {
				sign, start = "-", start-size
			}
		}
		integer = strings.TrimLeft(integer, "0")
		if integer == "" {
			integer = "0"
		}
		found = append(found, Number{sign + integer + rest, start})
	}
	return found
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func digits(s string, i int) int {
	for i < len(s) && digit(s[i]) {
		i++
	}
	return i
}

// grouped reads the digits from i on, with thousands separated by commas where they are, and returns them without commas.
func grouped(s string, i int) (string, int) {
	end := digits(s, i)
	if end-i > 3 || s[i] == '0' {
		return s[i:end], end
	}
	integer := s[i:end]
	for end < len(s) && s[end] == ',' && digits(s, end+1) == end+4 {
		integer += s[end+1 : end+4]
		end += 4
	}
	return integer, end
}

// exponent returns the end of an exponent at i, or i.
func exponent(s string, i int) int {
	if i+1 >= len(s) || s[i]|0x20 != 'e' {
		return i
	}
	from := i + 1
	if s[from] == '+' || s[from] == '-' {
		from++
	}
	end := digits(s, from)
	if end == from {
		return i
	}
	if r, _ := utf8.DecodeRuneInString(s[end:]); unicode.IsLetter(r) {
		return i // "5e2x" is a word, not an exponent
	}
	return end
}
