package dataset

import (
	"os"
	"path/filepath"
	"strings"
)

// Root returns the project's folder for a dataset file, both absolute: the nearest folder at or above the file that holds echoeval.yaml; else the nearest with .git; else the current folder if the file lies in it; else the file's folder. current may be empty.
func Root(file, current string) string {
	dir := filepath.Dir(file)
	for _, marker := range []string{"echoeval.yaml", ".git"} {
		for at := dir; ; at = filepath.Dir(at) {
			if _, err := os.Stat(filepath.Join(at, marker)); err == nil {
				return at
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	if current != "" && inside(current, dir) {
		return current
	}
	return dir
}

// inside reports whether path is dir or lies in it, by their names alone.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolvesInside reports whether path is dir or lies in it, symbolic links followed.
func resolvesInside(dir, path string) bool {
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	realPath, err := filepath.EvalSymlinks(path)
	return err == nil && inside(realDir, realPath)
}
