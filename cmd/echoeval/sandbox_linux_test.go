package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// sandboxVariable makes this test's binary run another program in a sandbox, see [sandboxed].
const sandboxVariable = "ECHOEVAL_TEST_SANDBOX"

func init() {
	if os.Getenv(sandboxVariable) == "" {
		return
	}
	err := os.Unsetenv(sandboxVariable)
	if err == nil {
		err = enterSandbox()
	}
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	os.Exit(125)
}

// sandboxed runs a command in a sandbox in which the kernel kills, with SIGSYS, a process that opens a socket or starts another process. Threads are allowed.
func sandboxed(cmd *exec.Cmd) *exec.Cmd {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.Env = append(cmd.Env, sandboxVariable+"=1")
	return cmd
}

// enterSandbox puts the filter on this thread, which then becomes the program. The filter is a program of the kernel's packet filter over the number and the arguments of each system call; see seccomp(2).
func enterSandbox() error {
	const (
		load, jumpEqual, jumpSet, give = 0x20, 0x15, 0x45, 0x06 // BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JSET|K, BPF_RET|K
		allow, kill, refuse            = 0x7fff0000, 0x80000000, 0x00050000 | uint32(syscall.ENOSYS)

		number, firstArgument = 0, 16 // offsets in struct seccomp_data; both architectures are little-endian
		clone3                = 435
		thread                = 0x10000 // CLONE_THREAD
	)
	forks := map[string][]uint32{"amd64": {57, 58}, "arm64": nil}[runtime.GOARCH] // fork, vfork
	killed := append([]uint32{syscall.SYS_SOCKET, syscall.SYS_SOCKETPAIR}, forks...)

	var filter []syscall.SockFilter
	add := func(code uint16, k uint32, yes, no uint8) {
		filter = append(filter, syscall.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
	}
	add(load, number, 0, 0)
	for _, call := range killed {
		add(jumpEqual, call, 0, 1)
		add(give, kill, 0, 0)
	}
	// Its flags lie in memory, out of the filter's sight. Refused, it is clone that makes the thread.
	add(jumpEqual, clone3, 0, 1)
	add(give, refuse, 0, 0)
	add(jumpEqual, syscall.SYS_CLONE, 0, 3)
	add(load, firstArgument, 0, 0)
	add(jumpSet, thread, 1, 0)
	add(give, kill, 0, 0)
	add(give, allow, 0, 0)

	runtime.LockOSThread()
	const setNoNewPrivileges, setSeccomp, modeFilter = 38, 22, 2
	if _, _, err := syscall.Syscall6(syscall.SYS_PRCTL, setNoNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return err
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, err := syscall.Syscall(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&program))); err != 0 {
		return err
	}
	return nil
}

var _ = Describe("a replay", func() {
	It("opens no socket and starts no process", func() {
		p := exampleProject()
		alone := func(args ...string) outcome { return p.end(p.start(sandboxed(p.command(args...)))) }
		o := alone("run", quickstart, "--format", "junit", "--format", "json", "-v")
		Expect(o.signal).To(BeZero(), "%s", o)
		Expect(o.code).To(Equal(0), "%s", o)
		Expect(p.count()).To(Equal(map[string]int{"pass": 24}))
		for _, args := range [][]string{
			{"replay", "datasets/regression.yaml"}, {"validate", quickstart, "datasets/agents/clerk.yaml", "datasets/emulator/quickstart.yaml"}, {"show", "latest"}, {"report", "latest", "--format", "terminal,junit,json"},
			{"cassette", "ls", quickstart}, {"cassette", "verify", quickstart}, {"version"}, {"help"},
			// Not even where a provider is named, or the cassette is missing.
			{"run", quickstart, "--upstream", "openai=http://127.0.0.1:9/v1"}, {"run", quickstart, "--provider", "openai:gpt-4o"},
		} {
			o := alone(args...)
			Expect(o.signal).To(BeZero(), "%v\n%s", args, o)
			Expect(o.code).To(BeElementOf(0, 1, 4), "%v\n%s", args, o)
		}
	})

	It("is told from a live run by that sandbox", func() {
		p := exampleProject()
		e := p.emulate("datasets/emulator/quickstart.yaml")
		for _, args := range [][]string{{"run", quickstart, "--mode", "live", e.upstream()}, {"record", quickstart, e.upstream()}} {
			o := p.end(p.start(sandboxed(p.command(args...))))
			Expect(o.signal).To(Equal(syscall.SIGSYS), "%s", o)
		}
		p.sweep()
		o := p.end(p.start(sandboxed(p.program("/bin/sh", "-c", "true && /bin/true; echo survived"))))
		Expect(o.stdout).NotTo(ContainSubstring("survived"))
	})

	It("with CI set is refused a connection before it dials", func() {
		p := exampleProject()
		end := func(env string, args ...string) outcome {
			p.env = []string{"OPENAI_API_KEY=unused-key-of-a-test", env}
			o := p.end(p.start(sandboxed(p.command(args...))))
			p.sweep()
			return o
		}
		Expect(end("CI=1", "record", quickstart).code).To(Equal(2))
		Expect(end("CI=1", "run", quickstart, "--mode", "live").code).To(Equal(2))
		// What is allowed does dial.
		Expect(end("CI=1", "record", quickstart, "--allow-network").signal).To(Equal(syscall.SIGSYS))
		Expect(end("CI=false", "record", quickstart).signal).To(Equal(syscall.SIGSYS))
		Expect(end("CI=", "record", quickstart).signal).To(Equal(syscall.SIGSYS))
	})
})

// cramped is a script that runs the command with an output folder of little room, then with enough of it: a small file system where this user may mount one, else a limit on the size of files.
const cramped = `
binary=$1 out=$2; shift 2
mkdir -p "$out"
if mount -t tmpfs -o size=200k tmpfs "$out" 2>/dev/null; then
  echo "limit: file system"
  "$binary" "$@"; echo "code: $?"
  mount -o remount,size=64m "$out" || exit 98
else
  echo "limit: file size"
  (ulimit -f 200; trap '' XFSZ; "$binary" "$@"); echo "code: $?"
fi
cp -r "$out" "$out.kept"
`

var _ = Describe("a full disk", func() {
	// squeeze runs the command in the script, as root of a world of its own where the system allows that.
	squeeze := func(p *project, out string, args ...string) outcome {
		cmd := p.program("/bin/sh", append([]string{"-c", cramped, "sh", p.binary, out}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
			cmd.SysProcAttr = nil
		}
		o := p.end(p.start(cmd))
		Expect(o.code).To(Equal(0), "%s", o)
		fmt.Fprintln(GinkgoWriter, o.stdout[:strings.IndexByte(o.stdout, '\n')])
		return o
	}

	It("ends a run with code 3; what was finished is kept and gone on with", func() {
		p := recordMany()
		p.succeed("run", "many.yaml")
		want := p.identity(p.last())
		o := squeeze(p, "out", "run", "many.yaml", "--out", "out", "--concurrency", "2")
		Expect(o.stdout).To(ContainSubstring("code: 3\n"), "%s", o)
		Expect(o.stderr).To(And(MatchRegexp("(?m)^error: .*(no space|disk|too large|full)"), ContainSubstring("\nhint: ")))
		Expect(o.stderr).To(ContainSubstring("--resume"))
		var run string
		entries, err := os.ReadDir(p.path("out.kept"))
		Expect(err).NotTo(HaveOccurred())
		for _, e := range entries {
			if e.IsDir() {
				run = "out.kept/" + e.Name()
			}
		}
		Expect(p.journalled(run)).To(And(BeNumerically(">", 5), BeNumerically("<", many)))
		before := p.journalled(run)
		o = p.succeed("run", "--resume", run, "-v")
		Expect(strings.Count(o.stderr, "pass  item-")).To(And(BeNumerically(">=", many-before), BeNumerically("<=", many-before+1)), "what was finished is not run again")
		Expect(p.identity(run)).To(Equal(want))
	})

	It("ends a recording with code 3; no cassette is half written", func() {
		p := recordMany()
		want := p.files("fixtures/cassettes")
		Expect(os.RemoveAll(p.path("fixtures"))).To(Succeed())
		e := p.emulate("script.yaml")
		o := squeeze(p, "tapes", "record", "many.yaml", e.upstream(), "--recorded-at", recordedAt, "--cassettes", "tapes", "--concurrency", "2")
		if strings.Contains(o.stdout, "limit: file system") {
			Expect(o.stdout).To(ContainSubstring("code: 3\n"), "%s", o)
		}
		saved := p.files("tapes.kept")
		Expect(len(saved)).To(And(BeNumerically(">", 3), BeNumerically("<=", many)))
		for file, text := range saved {
			Expect(text).To(Equal(want[file]), file)
		}
	})
})
