package abilities_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/providers/abilities"
)

func TestAbilities(t *testing.T) { suite.Run(t, "abilities") }

var document = filepath.Join(suite.Root(), "docs", "providers.md")

// read joins the files of a pattern below the project's folder.
func read(pattern string, tests bool) string {
	GinkgoHelper()
	names, err := filepath.Glob(filepath.Join(suite.Root(), filepath.FromSlash(pattern)))
	Expect(err).NotTo(HaveOccurred())
	var text strings.Builder
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		data, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		text.Write(data)
	}
	Expect(text.Len()).To(BeNumerically(">", 0), pattern)
	return text.String()
}

func table() string {
	var b strings.Builder
	b.WriteString("| ability |")
	for _, r := range abilities.Table {
		fmt.Fprintf(&b, " %s |", r.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(abilities.Table)) + "\n")
	for _, a := range abilities.Abilities {
		fmt.Fprintf(&b, "| %s |", a.Word)
		for _, r := range abilities.Table {
			fmt.Fprintf(&b, " %s |", map[bool]string{true: "yes", false: "-"}[a.Has(r.Set)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

var _ = Describe("the table of abilities", func() {
	It("stands in docs/providers.md", func() {
		data, err := os.ReadFile(document)
		Expect(err).NotTo(HaveOccurred())
		place := regexp.MustCompile(`(?s)(<!-- abilities: written [^\n]*-->\n).*?(<!-- abilities: end -->\n)`)
		Expect(place.FindAllIndex(data, -1)).To(HaveLen(1))
		want := place.ReplaceAll(data, []byte("${1}\n"+strings.ReplaceAll(table(), "$", "$$")+"\n${2}"))
		if suite.Update() {
			Expect(os.WriteFile(document, want, 0o644)).To(Succeed())
			return
		}
		Expect(bytes.Equal(data, want)).To(BeTrue(), "docs/providers.md differs from abilities.Table; run `make golden`:\n%s", table())
	})

	It("has rows in order, each for a provider of its own package that runs the suite under that name", func() {
		names := make([]string, len(abilities.Table))
		for i, r := range abilities.Table {
			names[i] = r.Name
			tests := read("providers/"+r.Provider+"/*_test.go", true)
			Expect(tests).To(ContainSubstring("providertest.Run("), r.Name)
			Expect(tests).To(ContainSubstring(`"`+r.Name+`"`), r.Name)
			Expect(abilities.Words(r.Provider)).NotTo(BeEmpty())
		}
		Expect(names).NotTo(BeEmpty())
		Expect(slices.IsSorted(names)).To(BeTrue(), "%v", names)
		Expect(slices.Compact(names)).To(HaveLen(len(abilities.Table)))
	})

	It("has a row for every provider that speaks a wire format", func() {
		folders, err := filepath.Glob(filepath.Join(suite.Root(), "providers", "*", "conformance_test.go"))
		Expect(err).NotTo(HaveOccurred())
		Expect(folders).NotTo(BeEmpty())
		for _, name := range folders {
			Expect(abilities.Words(filepath.Base(filepath.Dir(name)))).NotTo(BeEmpty(), name)
		}
		Expect(abilities.Words("nobody")).To(BeNil())
		_, found := abilities.Find("nobody")
		Expect(found).To(BeFalse())
	})

	It("finds each ability in some row, and tells rows apart", func() {
		for _, a := range abilities.Abilities {
			Expect(slices.ContainsFunc(abilities.Table, func(r abilities.Row) bool { return a.Has(r.Set) })).To(BeTrue(), a.Word)
		}
	})
})

var _ = Describe("the warnings of docs/providers.md", func() {
	It("are those that the providers give", func() {
		given := map[string]bool{}
		sources := map[string]bool{}
		for _, r := range abilities.Table {
			sources["providers/"+r.Provider+"/*.go"] = true
		}
		for pattern := range sources {
			for _, m := range regexp.MustCompile(`\.(?:warn|leftOut)\(\s*"([a-z-]+)"`).FindAllStringSubmatch(read(pattern, false), -1) {
				given[m[1]] = true
			}
		}
		for _, m := range regexp.MustCompile(`\.warn\("([a-z-]+)"|Code: +"([a-z-]+)"`).FindAllStringSubmatch(read("core/tool/gemini.go", false)+read("core/tool/vendor.go", false), -1) {
			given[m[1]+m[2]] = true
		}
		for _, setting := range []string{"temperature", "top_p"} { // their codes are made of their names
			Expect(read("providers/openai/request.go", false)).To(ContainSubstring(`"` + setting + `"`))
			given[strings.ReplaceAll(setting, "_", "-")+"-left-out"] = true
		}
		data, err := os.ReadFile(document)
		Expect(err).NotTo(HaveOccurred())
		_, rest, ok := strings.Cut(string(data), "## What a vendor cannot take\n")
		Expect(ok).To(BeTrue())
		section, _, _ := strings.Cut(rest, "\n## ")
		told := map[string]bool{}
		for line := range strings.Lines(section) {
			if cells := strings.Split(line, "|"); len(cells) > 2 {
				for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
					told[m[1]] = true
				}
			}
		}
		Expect(slices.Sorted(maps.Keys(told))).To(Equal(slices.Sorted(maps.Keys(given))))
		Expect(len(given)).To(BeNumerically(">", 10))
	})
})
