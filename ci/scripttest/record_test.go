//go:build unix

package scripttest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestScripts(t *testing.T) { suite.Run(t, "scripts") }

// standIn answers like the command: emulate writes its address and waits, record tells what it was given. It notes the ids of the emulators it starts.
const standIn = `#!/usr/bin/env bash
set -eu
case $1 in
emulate)
  [ -z "${NO_EMULATOR:-}" ] || { echo "the script is broken" >&2; exit 2; }
  echo $$ >>emulators
  while [ "$1" != --address-file ]; do shift; done
  echo 127.0.0.1:4711 >"$2.new"
  mv "$2.new" "$2"
  exec sleep 30 ;;
record)
  echo "$@"
  echo "key: $OPENAI_API_KEY"
  [ -z "${WAIT:-}" ] || { touch recording; sleep 0.3; }
  exit "${CODE:-1}" ;;
esac
`

// tree makes a project that holds only what ci/record.sh needs, and returns its folder.
func tree() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	script, err := os.ReadFile(filepath.Join(suite.Root(), "ci", "record.sh"))
	Expect(err).NotTo(HaveOccurred())
	for name, text := range map[string]string{"ci/record.sh": string(script), "bin/echoeval": standIn} {
		path := filepath.Join(dir, name)
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o755)).To(Succeed())
	}
	Expect(os.Mkdir(filepath.Join(dir, "scratch"), 0o755)).To(Succeed())
	return dir
}

// command prepares ci/record.sh in the tree. Its temporary files go to the tree's folder scratch.
func command(ctx context.Context, dir string, args []string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(dir, "ci", "record.sh")}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "TMPDIR="+filepath.Join(dir, "scratch"))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func code(err error) int {
	GinkgoHelper()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
	return exit.ExitCode()
}

// expectNothingLeft fails if an emulator runs or a temporary file lies there.
func expectNothingLeft(dir string, emulators int) {
	GinkgoHelper()
	noted, err := os.ReadFile(filepath.Join(dir, "emulators"))
	if emulators > 0 {
		Expect(err).NotTo(HaveOccurred())
	}
	ids := strings.Fields(string(noted))
	Expect(ids).To(HaveLen(emulators))
	for _, id := range ids {
		pid, err := strconv.Atoi(id)
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH), "an emulator is left")
	}
	left, err := os.ReadDir(filepath.Join(dir, "scratch"))
	Expect(err).NotTo(HaveOccurred())
	Expect(left).To(BeEmpty())
}

var _ = Describe("ci/record.sh", func() {
	It("records each dataset from the emulator of its own script, failing items or not", func(ctx SpecContext) {
		dir := tree()
		cmd, out := command(ctx, dir, nil)
		Expect(code(cmd.Run())).To(Equal(0), out.String())
		Expect(out.String()).To(MatchRegexp(`record datasets/quickstart\.yaml --provider openai:gpt-4o-mini .*--provider bedrock:\S+ --upstream openai=http://127\.0\.0\.1:4711/v1 .*--recorded-at 2026-01-05T09:00:00Z`))
		Expect(out.String()).To(ContainSubstring("record datasets/regression.yaml --upstream openai=http://127.0.0.1:4711/v1"))
		Expect(out.String()).To(ContainSubstring("key: not-a-real-key"))
		Expect(out.String()).NotTo(ContainSubstring("--cassettes"))
		expectNothingLeft(dir, 2)
	})

	It("records elsewhere, as seen from the caller's folder", func(ctx SpecContext) {
		dir := tree()
		cmd, out := command(ctx, dir, []string{"elsewhere"})
		cmd.Dir = GinkgoT().TempDir()
		Expect(code(cmd.Run())).To(Equal(0), out.String())
		where, err := filepath.EvalSymlinks(cmd.Dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(out.String(), "--cassettes "+filepath.Join(where, "elsewhere"))).To(Equal(2))
		expectNothingLeft(dir, 2)
	})

	DescribeTable("failures", func(ctx SpecContext, want, emulators int, message string, args []string, env ...string) {
		dir := tree()
		cmd, out := command(ctx, dir, args, env...)
		Expect(code(cmd.Run())).To(Equal(want), out.String())
		Expect(out.String()).To(ContainSubstring(message))
		expectNothingLeft(dir, emulators)
	},
		Entry("a recording that went wrong", 4, 1, "recording quickstart ended with code 4", nil, "CODE=4"),
		Entry("an emulator that does not start", 3, 0, "the script is broken", nil, "NO_EMULATOR=1"),
		Entry("too many arguments", 2, 0, "usage: ci/record.sh [DIR]", []string{"a", "b"}),
	)

	It("wants the binary", func(ctx SpecContext) {
		dir := tree()
		Expect(os.Remove(filepath.Join(dir, "bin", "echoeval"))).To(Succeed())
		cmd, out := command(ctx, dir, nil)
		Expect(code(cmd.Run())).To(Equal(2))
		Expect(out.String()).To(ContainSubstring("hint: make build"))
	})

	It("leaves nothing behind when it is ended in the middle", func(ctx SpecContext) {
		dir := tree()
		cmd, out := command(ctx, dir, nil, "WAIT=1")
		Expect(cmd.Start()).To(Succeed())
		Eventually(filepath.Join(dir, "recording")).WithTimeout(10 * time.Second).Should(BeAnExistingFile())
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(code(cmd.Wait())).To(Equal(143), out.String())
		expectNothingLeft(dir, 1)
	}, SpecTimeout(30*time.Second))
})
