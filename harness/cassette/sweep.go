package cassette

import (
	"os"
	"path/filepath"
	"sync"
)

// swept holds the folders that this process has swept: once is enough, what comes later is its own.
var swept sync.Map

// sweep removes from a folder the temporary files of savers that were killed. A file that a living saver holds stays, see [claim]. It never fails: what cannot be removed does no harm.
func sweep(dir string) {
	if _, done := swept.LoadOrStore(dir, true); done {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if match, _ := filepath.Match(TempPattern, e.Name()); !match || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			if claim(f) {
				_ = os.Remove(path)
			}
			_ = f.Close()
		}
	}
}

// create makes a temporary file that no sweep of another process removes.
func create(dir, pattern string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		if claim(f) && present(f) {
			return f, nil
		}
		// A sweep came between the making and the claim.
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// present reports whether the file still stands under its name.
func present(f *os.File) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(ours, there)
}
