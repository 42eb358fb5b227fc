package program

import (
	"syscall"
	"unsafe"
)

// The numbers of prlimit(2) that package syscall does not have.
const rlimitNproc = 6

// maxProcesses bounds how many processes the user may have while a program runs: a fork bomb fails before the machine does. It does not bind root.
const maxProcesses = 8192

// group gives a program a process group of its own, and lets it end with us: a kill -9 leaves none behind.
func group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limit sets the limits of a process that was just started, and of what it starts from now on. Where the system refuses them the limits of time and output remain.
func limit(pid int, l Limits) {
	set := func(resource int, most uint64) {
		var now syscall.Rlimit
		if !prlimit(pid, resource, nil, &now) {
			return
		}
		if most < now.Cur {
			prlimit(pid, resource, &syscall.Rlimit{Cur: most, Max: min(most, now.Max)}, nil)
		}
	}
	set(syscall.RLIMIT_CORE, 0)
	set(rlimitNproc, maxProcesses)
	if l.Memory > 0 {
		set(syscall.RLIMIT_DATA, l.Memory)
	}
}

func prlimit(pid, resource int, set, get *syscall.Rlimit) bool {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	return errno == 0
}
