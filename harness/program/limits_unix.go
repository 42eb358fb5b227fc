//go:build unix && !linux

package program

import "syscall"

// group gives a program a process group of its own.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// limit does nothing: this system sets no limits on another process. Those of time and output remain.
func limit(int, Limits) {}
