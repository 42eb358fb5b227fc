//go:build !unix

package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var errFormat = errors.New("not a format of programs")

func group() *syscall.SysProcAttr { return nil }

func limit(int, Limits) {}

// killGroup kills a process. What it has started lives on: there are no process groups.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

var errNotExecutable = errors.New("not executable")

// executable returns the path where a program lies there, its ending left out or not.
func executable(path string, env []string) (string, error) {
	endings := strings.Split(strings.ToLower(value(env, "PATHEXT")), ";")
	if slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		endings = []string{""}
	}
	for _, ending := range endings {
		if info, err := os.Stat(path + ending); err == nil && info.Mode().IsRegular() {
			return path + ending, nil
		}
	}
	return "", fs.ErrNotExist
}
