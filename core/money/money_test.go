package money_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/money"
)

func TestMoney(t *testing.T) { suite.Run(t, "money") }

var _ = DescribeTable("an amount is rounded up to two digits", func(amount, want money.USD) {
	Expect(amount.RoundUp()).To(Equal(want))
},
	Entry(nil, money.USD(0), money.USD(0)),
	Entry(nil, money.USD(99), money.USD(99)),
	Entry(nil, money.USD(100), money.USD(100)),
	Entry(nil, money.USD(101), money.USD(110)),
	Entry(nil, money.USD(999), money.USD(1000)),
	Entry(nil, 12*money.Dollar+1, 13*money.Dollar),
)

var _ = Describe("an amount", func() {
	DescribeTable("has one text", func(amount money.USD, want string) {
		Expect(amount.String()).To(Equal(want))
		data, err := json.Marshal(amount)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(data)).To(Equal(want))
		var back money.USD
		Expect(json.Unmarshal(data, &back)).To(Succeed())
		Expect(back).To(Equal(amount))
		Expect(string(amount.AppendJSON([]byte("x")))).To(Equal("x" + want))
	},
		Entry(nil, money.USD(0), "0"),
		Entry(nil, money.Dollar, "1"),
		Entry(nil, 12*money.Dollar, "12"),
		Entry(nil, money.USD(1_292_000), "0.001292"),
		Entry(nil, money.USD(1), "0.000000001"),
		Entry(nil, money.USD(-500_000_000), "-0.5"),
		Entry(nil, money.USD(-1), "-0.000000001"),
		Entry(nil, money.USD(1_000_000_010), "1.00000001"),
		Entry("more digits than a float64 holds", money.USD(8_999_999_999_123_456_789), "8999999999.123456789"),
		Entry("the largest", money.USD(math.MaxInt64), "9223372036.854775807"),
		Entry("the smallest", money.USD(math.MinInt64), "-9223372036.854775808"),
	)

	DescribeTable("is read", func(text string, want money.USD) {
		var got money.USD
		Expect(json.Unmarshal([]byte(text), &got)).To(Succeed())
		Expect(got).To(Equal(want))
	},
		Entry(nil, "1.50", 1_500_000_000*money.USD(1)),
		Entry(nil, "-0", money.USD(0)),
		Entry(nil, "1e-3", money.USD(1_000_000)),
		Entry(nil, "1.2E2", 120*money.Dollar),
		Entry("rounded", "0.1234567894999", money.USD(123_456_789)),
		Entry("rounded", "0.1234567896", money.USD(123_456_790)),
	)

	DescribeTable("is not read", func(text string) {
		got := money.USD(7)
		Expect(got.UnmarshalJSON([]byte(text))).To(MatchError(ContainSubstring("is no amount of money")))
		Expect(got).To(Equal(money.USD(7)))
	},
		Entry(nil, `"1"`), Entry(nil, `null`), Entry(nil, `true`), Entry(nil, ``), Entry(nil, `-`), Entry(nil, `--1`), Entry(nil, `+1`), Entry(nil, `NaN`), Entry(nil, `Inf`), Entry(nil, `0x10`), Entry(nil, `1_0`), Entry(nil, `1e30`), Entry(nil, `1e999`),
		Entry(nil, `9223372036.854775808`), Entry(nil, `99999999999999999999`), Entry(nil, `1.2.3`), Entry(nil, `1-2`),
	)

	It("comes from a float, rounded to nine decimals", func() {
		for f, want := range map[float64]money.USD{0: 0, 0.1 + 0.2: 300_000_000, 1e-10: 0, 6e-10: 1, -0.5: -500_000_000, 9e9: 9_000_000_000 * money.Dollar} {
			Expect(money.FromFloat(f)).To(Equal(want))
		}
		for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 9.1e9, -9.1e9, math.MaxFloat64} {
			_, err := money.FromFloat(f)
			Expect(err).To(MatchError(ContainSubstring("is no amount of money")))
		}
		Expect(money.USD(1_500_000_000).Float()).To(Equal(1.5))
	})

	DescribeTable("prices tokens, rounded half up", func(price money.USD, n int, want money.USD) {
		Expect(money.PerMillion(price, n)).To(Equal(want))
	},
		Entry(nil, 3*money.Dollar, 0, money.USD(0)),
		Entry(nil, 3*money.Dollar, 1_000_000, 3*money.Dollar),
		Entry(nil, 3*money.Dollar, 1, money.USD(3000)),
		Entry(nil, money.USD(1), 499_999, money.USD(0)),
		Entry(nil, money.USD(1), 500_000, money.USD(1)),
		Entry(nil, money.USD(150_000_001), 7, money.USD(1050)),
		Entry("beyond what one product of 64 bits holds", 1000*money.Dollar, 9_000_000_000, money.USD(9_000_000_000_000_000)),
	)

	It("sums the same in every order", func() {
		var forward, backward money.USD
		for i := range 1000 {
			forward += money.PerMillion(150_000_000, i)
			backward += money.PerMillion(150_000_000, 999-i)
		}
		Expect(forward).To(Equal(backward))
	})
})

func FuzzUSD(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(math.MinInt64))
	f.Add(int64(1_000_000_010))
	f.Fuzz(func(t *testing.T, n int64) {
		var back money.USD
		if err := json.Unmarshal(money.USD(n).AppendJSON(nil), &back); err != nil || int64(back) != n {
			t.Fatalf("%d came back as %d: %v", n, back, err)
		}
	})
}

func ExamplePerMillion() {
	price, _ := money.FromFloat(0.15) // dollars for a million tokens
	fmt.Println(money.PerMillion(price, 1200))
	// Output: 0.00018
}
