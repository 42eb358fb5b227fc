//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

var _ = Describe("the README", func() {
	It("shows what its first command prints", func() {
		readme, err := os.ReadFile(filepath.Join(suite.Root(), "README.md"))
		Expect(err).NotTo(HaveOccurred())
		_, rest, ok := strings.Cut(string(readme), "\n```text\n")
		Expect(ok).To(BeTrue(), "the README shows no output")
		shown, _, ok := strings.Cut(rest, "```\n")
		Expect(ok).To(BeTrue())
		Expect(exampleProject().succeed("run", quickstart).stdout).To(Equal(shown))
	})
})
