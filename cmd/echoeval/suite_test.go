//go:build unix

// Package main_test drives the built command as a user does: as a process with arguments, files, an environment and signals, in a project of its own.
package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestCommand(t *testing.T) { suite.Run(t, "command") }

// binary is the command under test.
var binary string

var _ = BeforeSuite(func() {
	// Not GinkgoT().TempDir(): what must outlive a node is removed by the node's own cleanup.
	dir, err := os.MkdirTemp("", "echoeval-test-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	binary = filepath.Join(dir, "echoeval")
	build := exec.Command("go", "build", "-o", binary, "./cmd/echoeval")
	build.Dir = suite.Root()
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
})
