package junit_test

import (
	"strings"

	gojunit "github.com/joshdk/go-junit"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("is read by another program's reader: the same names, states and counts", func() {
	data := written(false)
	suites, err := gojunit.Ingest(data)
	Expect(err).NotTo(HaveOccurred())
	count := map[gojunit.Status]int{}
	var wrong *gojunit.Test
	for _, s := range suites {
		for i := range s.Tests {
			test := &s.Tests[i]
			count[test.Status]++
			Expect(test.Name).NotTo(BeEmpty())
			Expect(test.Classname).NotTo(BeEmpty())
			if wrong == nil && test.Status == gojunit.StatusFailed && strings.Contains(test.Name, "wrong answer") {
				wrong = test
			}
		}
		Expect(s.Totals.Tests).To(Equal(len(s.Tests)))
	}
	// What the file itself counts, as text.
	text := string(data)
	Expect(count[gojunit.StatusFailed]).To(Equal(strings.Count(text, "<failure")))
	Expect(count[gojunit.StatusError]).To(Equal(strings.Count(text, "<error")))
	Expect(count[gojunit.StatusSkipped]).To(Equal(strings.Count(text, "<skipped")))
	Expect(count[gojunit.StatusPassed]).To(Equal(strings.Count(text, "<testcase") - count[gojunit.StatusFailed] - count[gojunit.StatusError] - count[gojunit.StatusSkipped]))
	for status, n := range count {
		Expect(n).To(BeNumerically(">", 0), string(status))
	}
	Expect(count).To(HaveLen(4))
	Expect(wrong).NotTo(BeNil())
	Expect(wrong.Error.Error()).To(ContainSubstring("contains"))
})
