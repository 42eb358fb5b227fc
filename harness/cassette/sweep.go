package cassette

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/echoeval/echoeval/core/claim"
)

// swept holds the folders that this process has swept: once is enough, what comes later is its own.
var swept sync.Map

// sweep removes from a folder the temporary files of savers that were killed. A file that a living saver holds stays, see [claim.Take]. It never fails: what cannot be removed does no harm.
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
			if claim.Take(f) {
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
		if claim.Take(f) && claim.Present(f) {
			return f, nil
		}
		// A sweep came between the making and the claim.
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}
