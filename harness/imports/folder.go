package imports

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Folder is the folder of a source, from which it may name files.
type Folder struct {
	// Dir is the absolute path of the folder.
	Dir string
	// AllowOutside lets names leave the folder, by .. or a symbolic link or because they are absolute.
	AllowOutside bool
}

// errOutside is why a file is refused.
var errOutside = errors.New("it lies outside of the source's folder")

// Read returns the content of a file that the source names, relative to the folder and with slashes. Its errors say what is wrong with the file, without its absolute path.
func (f Folder) Read(name string) ([]byte, error) {
	data, err := f.read(name)
	if err != nil {
		return nil, reason(name, err)
	}
	return data, nil
}

func (f Folder) read(name string) ([]byte, error) {
	if strings.ContainsRune(name, 0) || name == "" {
		return nil, fs.ErrInvalid
	}
	if f.AllowOutside {
		if !path.IsAbs(name) && !filepath.IsAbs(name) {
			name = filepath.Join(f.Dir, filepath.FromSlash(name))
		}
		return bounded(os.DirFS(filepath.Dir(name)), filepath.Base(name))
	}
	if !fs.ValidPath(path.Clean(name)) || filepath.IsAbs(name) {
		return nil, errOutside
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return bounded(root.FS(), path.Clean(name))
}

func bounded(from fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(from, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile // a pipe could block for ever
	}
	in, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, strict.MaxDocument+1))
	if err == nil && len(data) > strict.MaxDocument {
		err = errTooLong
	}
	return data, err
}

var (
	errNoFile  = errors.New("it is no file")
	errTooLong = errors.New("it is too long")
)

// reason is an error that says why a file cannot be read.
func reason(name string, err error) error {
	switch {
	case errors.Is(err, errOutside):
		return failure.WithHint(failure.New(failure.Input, "%s is not read: %s", name, errOutside), "--allow-outside permits it")
	case errors.Is(err, errNoFile), errors.Is(err, fs.ErrInvalid):
		return failure.New(failure.Input, "%q is no file", name)
	case errors.Is(err, errTooLong):
		return failure.New(failure.Input, "%s is longer than %d MiB", name, strict.MaxDocument>>20)
	case errors.Is(err, fs.ErrNotExist):
		return failure.New(failure.Input, "%s does not exist", name)
	}
	// A symbolic link that leaves the folder has an error of its own, which is not exported.
	var at *fs.PathError
	if errors.As(err, &at) && strings.Contains(at.Err.Error(), "escapes") {
		return reason(name, errOutside)
	}
	return failure.New(failure.Input, "%s cannot be read: %s", name, failure.Reason(err))
}

// Glob returns the names of files that a pattern matches, sorted, and the pattern itself where it is none. ** is not a pattern of its own.
func (f Folder) Glob(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	if !fs.ValidPath(path.Clean(pattern)) {
		return nil, reason(pattern, errOutside)
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, reason(pattern, err)
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), path.Clean(pattern))
	if err != nil {
		return nil, failure.New(failure.Input, "%q is no pattern", pattern)
	}
	if len(names) == 0 {
		return nil, failure.New(failure.Input, "no file matches %s", pattern)
	}
	slices.Sort(names)
	return names, nil
}
