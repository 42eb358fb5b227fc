package score_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/score"
)

func numbers(text string) string {
	var list []string
	for _, n := range score.Numbers(text) {
		list = append(list, n.Text)
	}
	return strings.Join(list, " ")
}

var _ = DescribeTable("Numbers", func(text, want string) {
	Expect(numbers(text)).To(Equal(want))
},
	Entry(nil, "", ""),
	Entry(nil, "none, really", ""),
	Entry(nil, "42", "42"),
	Entry(nil, "It is 42.", "42"),
	Entry(nil, "007", "7"),
	Entry(nil, "0", "0"),
	Entry(nil, "-0.50 or .5 or -.5", "-0.50 0.5 -0.5"),
	Entry(nil, "\u2212 3 and \u22123", "3 -3"),
	Entry(nil, "+5", "5"),
	Entry(nil, "1,234,567.89", "1234567.89"),
	Entry(nil, "1,23", "1 23"),
	Entry(nil, "1,2345", "1 2345"),
	Entry(nil, "0,123", "0 123"),
	Entry(nil, "1234,567", "1234 567"),
	Entry(nil, "1,234,56", "1234 56"),
	Entry(nil, "1e3 2E-2 3e+4 4e", "1e3 2E-2 3e+4 4"),
	Entry(nil, "3-5", "3 5"),
	Entry(nil, "(3)-5", "3 5"),
	Entry(nil, "2024-01-31 12:30", "2024 1 31 12 30"),
	Entry(nil, "1.2.3", "1.2 3"),
	Entry(nil, "wait...5", "5"),
	Entry(nil, "gpt4 x_1 h2o é1", ""),
	Entry(nil, "5km 3% €7 2nd", "5 3 7 2"),
	Entry(nil, "a-5", "5"),
	Entry(nil, "\u0661\u0662", ""),
	Entry(nil, "\xff5\xff", "5"),
)

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"1,234.5e-3", "-.5", "\u22127", "00.0e1", "...1", "1e5x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		last := -1
		for _, n := range score.Numbers(s) {
			if !json.Valid([]byte(n.Text)) {
				t.Fatalf("%q is no number of JSON", n.Text)
			}
			if n.Offset <= last || n.Offset >= len(s) {
				t.Fatalf("%q at %d, after one at %d", n.Text, n.Offset, last)
			}
			last = n.Offset
		}
	})
}
