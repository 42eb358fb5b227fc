package ident_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/ident"
)

func TestIdent(t *testing.T) { suite.Run(t, "ident") }

var _ = Describe("an id", func() {
	It("is the same whenever and wherever it is made", func() {
		s := ident.Source{Seed: 7, Item: "chest-pain", Repeat: 2}
		Expect(s.ID(1, "message", 1)).To(Equal(s.ID(1, "message", 1)))
		Expect(s.ID(1, "message", 1)).To(MatchRegexp("^[0-9a-f]{24}$"))
		Expect(ident.Source{}.ID(0, "", 0)).To(HaveLen(24), "the zero value is usable")
	})

	It("differs with everything that it is made of", func() {
		seen := map[string]string{}
		count := 0
		add := func(s ident.Source, step int, purpose string, ordinal int) {
			GinkgoHelper()
			count++
			what := fmt.Sprintf("%+v %d %q %d", s, step, purpose, ordinal)
			id := s.ID(step, purpose, ordinal)
			Expect(seen).NotTo(HaveKey(id), "%s and %s", what, seen[id])
			seen[id] = what
		}
		for _, seed := range []uint64{0, 1, 1 << 63} {
			for _, item := range []string{"", "a", "b", "ab", "a\x00", "a\x00\x00", "\x00a", "é", string(make([]byte, 47)), string(make([]byte, 48)), string(make([]byte, 200))} {
				for _, repeat := range []int{0, 1, 256} {
					add(ident.Source{Seed: seed, Item: item, Repeat: repeat}, 0, "message", 1)
				}
			}
		}
		s := ident.Source{Item: "x"}
		for step := range 3 {
			for _, purpose := range []string{"", "p", "pq", "p\x00"} {
				for ordinal := range 3 {
					add(s, step, purpose, ordinal)
				}
			}
		}
		Expect(seen).To(HaveLen(count))
		Expect(count).To(Equal(135))
	})

	It("does not change between versions: recordings hold it", func() {
		Expect(ident.Source{Seed: 1, Item: "item", Repeat: 1}.ID(1, "message", 1)).To(Equal("93363d48a463d304150fd83b"))
	})
})

func BenchmarkID(b *testing.B) {
	s := ident.Source{Seed: 1, Item: "chest-pain", Repeat: 1}
	for b.Loop() {
		s.ID(1, "message", 1)
	}
}
