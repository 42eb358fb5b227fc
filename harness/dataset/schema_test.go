package dataset_test

import (
	encoding "encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

// schemaOf compiles the schema of a kind of file.
func schemaOf(kind string, options dataset.Options) *jsonschema.Resolved {
	GinkgoHelper()
	made, ok := dataset.Schema(kind, options)
	Expect(ok).To(BeTrue())
	text, err := encoding.Marshal(made)
	Expect(err).NotTo(HaveOccurred())
	var schema jsonschema.Schema
	Expect(encoding.Unmarshal(text, &schema)).To(Succeed())
	Expect(schema.Schema).To(Equal("https://json-schema.org/draft/2020-12/schema"))
	resolved, err := schema.Resolve(nil)
	Expect(err).NotTo(HaveOccurred())
	return resolved
}

// valueOf reads a file as a JSON Schema looks at it.
func valueOf(file, text string) any {
	GinkgoHelper()
	n, err := strict.Parse(file, []byte(text))
	Expect(err).NotTo(HaveOccurred())
	var value any
	Expect(encoding.Unmarshal(n.AppendJSON(nil), &value)).To(Succeed())
	return value
}

var _ = Describe("schemas", func() {
	It("are there for each kind, and for no other", func() {
		for _, kind := range dataset.SchemaKinds {
			schemaOf(kind, known)
			schemaOf(kind, dataset.Options{})
		}
		_, ok := dataset.Schema("x", known)
		Expect(ok).To(BeFalse())
	})

	for _, file := range everyFile {
		Describe("of a "+file.kind, func() {
			lines := strings.Split(strings.TrimSuffix(file.text, "\n"), "\n")
			free := strings.Fields(file.free)

			It("takes every key, also without the names of checks, metrics and vendors", func() {
				Expect(schemaOf(file.kind, known).Validate(valueOf(file.file, file.text))).To(Succeed())
				Expect(schemaOf(file.kind, dataset.Options{}).Validate(valueOf(file.file, file.text))).To(Succeed())
			})

			It("takes no key that is misspelt or has a value of a wrong type", func() {
				schema := schemaOf(file.kind, known)
				tried := 0
				for i, original := range lines {
					m := keyLine.FindStringSubmatch(original)
					if m == nil || strings.HasPrefix(original, "- script") || len(m[3]) == 1 || slices.Contains(free, m[3]) {
						continue
					}
					indent, key := m[1]+strings.Repeat(" ", len(m[2])), m[3]
					end := i + 1
					for m[5] == "" && end < len(lines) && (strings.HasPrefix(lines[end], indent+" ") || strings.HasPrefix(lines[end], indent+"- ")) {
						end++
					}
					for _, line := range []string{strings.Replace(original, key+":", "x"+key+":", 1), original[:strings.Index(original, key)] + key + ": [[5]]"} {
						to := end
						if !strings.HasSuffix(line, "[[5]]") {
							to = i + 1
						}
						text := strings.Join(slices.Concat(lines[:i], []string{line}, lines[to:]), "\n") + "\n"
						Expect(schema.Validate(valueOf(file.file, text))).NotTo(Succeed(), "line %d: %s", i+1, line)
						tried++
					}
				}
				Expect(tried).To(BeNumerically(">", file.least))
			})
		})
	}

	It("take the files that come with the project", func() {
		count := 0
		for pattern, kind := range map[string]string{"*.yaml": "dataset", "agents/*.yaml": "agent"} {
			files, err := filepath.Glob(filepath.Join("../../datasets", pattern))
			Expect(err).NotTo(HaveOccurred())
			for _, file := range files {
				text, err := os.ReadFile(file)
				Expect(err).NotTo(HaveOccurred())
				Expect(schemaOf(kind, dataset.Options{}).Validate(valueOf(file, string(text)))).To(Succeed(), file)
				count++
			}
		}
		Expect(count).To(BeNumerically(">=", 3))
	})

	It("are the same every time", func() {
		first, _ := dataset.Schema("dataset", known)
		second, _ := dataset.Schema("dataset", known)
		a, err := encoding.Marshal(first)
		Expect(err).NotTo(HaveOccurred())
		b, err := encoding.Marshal(second)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(a)).To(Equal(string(b)))
		Expect(len(a)).To(BeNumerically("<", 60_000), fmt.Sprint(len(a)))
	})
})
