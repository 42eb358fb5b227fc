//go:build unix

package claim

import (
	"os"
	"syscall"
)

// Take takes the file for this process until it is closed or the process ends, and reports whether it could. A file system that knows no locks gives every claim to the maker of a file and to every sweep.
func Take(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK
}
