// Package claim tells what a living process uses from what a killed one left behind: a file that is claimed stays claimed until it is closed or its process ends, however it ends.
package claim

import "os"

// Present reports whether an open file still stands under its name: between its making and its claim somebody may have removed it.
func Present(f *os.File) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(ours, there)
}
