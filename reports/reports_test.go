package reports_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/json"
	"github.com/echoeval/echoeval/reports/junit"
	"github.com/echoeval/echoeval/reports/terminal"
)

func TestReports(t *testing.T) { suite.Run(t, "reports") }

var _ = Describe("a table of reporters", func() {
	table := []reports.Reporter{
		{Name: "terminal", Write: terminal.Write},
		{Name: "json", File: "report.json", Write: json.Write},
		{Name: "junit", File: "junit.xml", Write: junit.Write},
	}
	It("finds each by its name", func() {
		for _, want := range table {
			got, err := reports.Find(table, want.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.File).To(Equal(want.File))
		}
	})
	It("suggests the nearest for a name that it does not have", func() {
		_, err := reports.Find(table, "jsn")
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).To(Equal([]string{`did you mean "json"?`}))
		_, err = reports.Find(table, "spreadsheet")
		Expect(failure.Hints(err)).To(Equal([]string{"choices: json, junit, terminal"}))
	})
})
