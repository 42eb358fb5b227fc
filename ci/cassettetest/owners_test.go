package cassettetest

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

var _ = Describe("the committed cassettes", func() {
	It("are one for each item, provider and repeat of the datasets, and nothing else", func() {
		owners, err := Owners(suite.Root())
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("owners", len(owners), ReportEntryVisibilityFailureOrVerbose)
		problems, err := Check(os.DirFS(suite.Root()), owners, Header)
		Expect(err).NotTo(HaveOccurred())
		if len(problems) > 0 {
			Fail("\n" + strings.Join(problems, "\n"))
		}
	})
})

var _ = Describe("the owners", func() {
	It("are found for items, providers and repeats, but not for what is not run", func() {
		root := GinkgoT().TempDir()
		Expect(os.Mkdir(filepath.Join(root, "datasets"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(root, "echoeval.yaml"), []byte("version: 1\n"), 0o644)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(root, "datasets", "d.yaml"), []byte(`version: 1
name: small
agent: {task: {description: answer}}
providers: [openai:a, openai:b]
items:
  - {id: both, input: x, checks: [{contains: x}]}
  - {id: twice, input: x, repeat: 2, providers: [openai:a], checks: [{contains: x}]}
  - {id: "odd/one", input: x, providers: [openai:b], checks: [{contains: x}]}
  - {id: none, input: x, skip: later, checks: [{contains: x}]}
`), 0o644)).To(Succeed())
		owners, err := Owners(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(owners).To(Equal(map[string][]Owner{
			"fixtures/cassettes/small/openai_a/both.yaml":               {{"small", "openai:a", "both", 1}},
			"fixtures/cassettes/small/openai_b/both.yaml":               {{"small", "openai:b", "both", 1}},
			"fixtures/cassettes/small/openai_a/twice.yaml":              {{"small", "openai:a", "twice", 1}},
			"fixtures/cassettes/small/openai_a/twice@2.yaml":            {{"small", "openai:a", "twice", 2}},
			"fixtures/cassettes/small/openai_b/odd_one~1c68e1b2aa.yaml": {{"small", "openai:b", "odd/one", 1}},
		}))
	})

	It("say which dataset cannot be read", func() {
		root := GinkgoT().TempDir()
		Expect(os.Mkdir(filepath.Join(root, "datasets"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(root, "datasets", "d.yaml"), []byte("version: 1\nitmes: []\n"), 0o644)).To(Succeed())
		_, err := Owners(root)
		Expect(err).To(MatchError(ContainSubstring("datasets/d.yaml:2")))
	})
})
