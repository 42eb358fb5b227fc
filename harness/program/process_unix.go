//go:build unix

package program

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var errFormat = syscall.ENOEXEC

// killGroup kills a process and what it has started, as far as that has not left its process group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

var errNotExecutable = errors.New("not executable")

// executable returns the path where a program lies there.
func executable(path string, _ []string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fs.ErrNotExist
	case info.Mode().Perm()&0o111 == 0:
		return "", errNotExecutable
	}
	return path, nil
}
