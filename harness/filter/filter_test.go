package filter_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/filter"
)

func TestFilter(t *testing.T) { suite.Run(t, "filter") }

func subject() *filter.Subject {
	GinkgoHelper()
	n, err := strict.ParseJSON("x.json", 1, []byte(`{"metadata":{"level":3,"ratio":0.5,"deep":{"a":[1,2]},"none":null},"vars":{"clinic":"North"}}`))
	Expect(err).NotTo(HaveOccurred())
	return &filter.Subject{ID: "i-17", Tags: []string{"a", "urgent"}, Metadata: n.Get("metadata"), Vars: n.Get("vars")}
}

var _ = Describe("an expression", func() {
	DescribeTable("meets an item or not", func(text string, want bool) {
		p, err := filter.Compile(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.String()).To(Equal(text))
		met, err := p.Match(subject())
		Expect(err).NotTo(HaveOccurred())
		Expect(met).To(Equal(want))
	},
		Entry(nil, "id == 'i-17'", true),
		Entry(nil, "id.startsWith('j-')", false),
		Entry(nil, "'urgent' in tags && !('b' in tags)", true),
		Entry(nil, "tags.exists(t, t.startsWith('u'))", true),
		Entry(nil, "metadata.level > 2", true),
		Entry(nil, "metadata.level == 3.0", true),
		Entry(nil, "metadata.ratio < 1", true),
		Entry(nil, "metadata.deep.a[1] == 2", true),
		Entry(nil, "metadata['level'] == 3", true),
		Entry(nil, "metadata.none == null", true),
		Entry(nil, "has(metadata.level) && !has(vars.town)", true),
		Entry(nil, "vars.clinic == 'South'", false),
		Entry(nil, "vars.clinic.matches('^N')", true),
	)

	DescribeTable("that cannot be evaluated meets nothing and says why", func(text, why string) {
		p, err := filter.Compile(text)
		Expect(err).NotTo(HaveOccurred())
		met, err := p.Match(subject())
		Expect(met).To(BeFalse())
		Expect(err).To(MatchError(ContainSubstring(why)))
	},
		Entry(nil, "metadata.levle == 3", "no such key"),
		Entry(nil, "!(metadata.levle == 3)", "no such key"),
		Entry(nil, "metadata.level.startsWith('x')", "no such overload"),
		Entry(nil, "metadata.level", "neither true nor false"),
		Entry(nil, "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))", "cost limit"),
	)

	DescribeTable("that is wrong is refused with its place", func(text string, at int, message, hint string) {
		_, err := filter.Compile(text)
		var wrong *filter.Error
		Expect(errors.As(err, &wrong)).To(BeTrue())
		Expect(wrong.Offset).To(Equal(at))
		Expect(wrong.Error()).To(ContainSubstring(message))
		Expect(wrong.Hint).To(ContainSubstring(hint))
	},
		Entry(nil, "", 0, "empty", "id == "),
		Entry(nil, "id", 0, "no condition", "compare"),
		Entry(nil, "é == 1", 0, "", ""),
		Entry(nil, "'é' == id && metadat.x == 1", 14, "undeclared", `did you mean "metadata"?`),
		Entry(nil, "id == 'x' &&\n tagss == 1", 14, "undeclared", `did you mean "tags"?`),
		Entry(nil, "id ==", 5, "Syntax error", ""),
		Entry(nil, "id == 5", 3, "no matching overload", ""),
		Entry(nil, strings.Repeat("x", 20_000), 0, "too long", ""),
	)

	It("looks at an item without metadata and vars", func() {
		p, err := filter.Compile("!has(metadata.a) && vars == {}")
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Match(&filter.Subject{ID: "x"})).To(BeTrue())
	})
})

func FuzzCompile(f *testing.F) {
	for _, text := range []string{"id == 'x'", "has(metadata.a)", "id ==\n", "'\\u00", "tags[", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := filter.Compile(text)
		var wrong *filter.Error
		if err != nil && (!errors.As(err, &wrong) || wrong.Offset < 0 || wrong.Offset > len(text)) {
			t.Fatalf("%q: %v", text, err)
		}
		if p != nil {
			if met, err := p.Match(&filter.Subject{ID: "x"}); met && err != nil {
				t.Fatal("met and failed")
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p, err := filter.Compile("id == 'i-17' || 'urgent' in tags && metadata.level > 2")
	if err != nil {
		b.Fatal(err)
	}
	n, err := strict.ParseJSON("x.json", 1, []byte(`{"level":3,"source":"handmade"}`))
	if err != nil {
		b.Fatal(err)
	}
	s := &filter.Subject{ID: "i-18", Tags: []string{"a", "urgent"}, Metadata: n}
	b.ReportAllocs()
	for b.Loop() {
		if met, err := p.Match(s); !met || err != nil {
			b.Fatal(met, err)
		}
	}
}
