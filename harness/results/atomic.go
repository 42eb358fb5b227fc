package results

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/echoeval/echoeval/core/claim"
	"github.com/echoeval/echoeval/core/failure"
)

// temporary ends the names of files that are being written. What bears it and is found later was left by a crash.
const temporary = ".tmp"

// draft is a file that appears under its name only when it is whole and on the disk.
type draft struct {
	*bufio.Writer
	file *os.File
	path string
}

func newDraft(path string) (*draft, error) {
	f, err := os.OpenFile(path+temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	claim.Take(f) // no sweep removes it now; one that came before makes the publishing fail
	return &draft{Writer: bufio.NewWriterSize(f, 256<<10), file: f, path: path}, nil
}

// finish forces the file to the disk and closes it; it still bears its temporary name.
func (d *draft) finish() error {
	return errors.Join(d.Flush(), d.file.Sync(), d.file.Close())
}

// discard closes and removes a draft that will not be finished.
func (d *draft) discard() {
	_ = d.file.Close()           // an earlier error is the one to report
	_ = os.Remove(d.file.Name()) // what stays is overwritten by the next attempt
}

func (d *draft) publish() error { return os.Rename(d.path+temporary, d.path) }

// writeFile replaces a file atomically.
func writeFile(path string, data []byte) error {
	d, err := newDraft(path)
	if err != nil {
		return writing(path, err)
	}
	if _, err := d.Write(data); err != nil {
		d.discard()
		return writing(path, err)
	}
	if err := d.finish(); err != nil {
		d.discard()
		return writing(path, err)
	}
	if err := d.publish(); err != nil {
		return writing(path, err)
	}
	return writing(path, syncDir(filepath.Dir(path)))
}

// writing adds the name and the code to an error of writing a run's file; nil stays nil.
func writing(path string, err error) error {
	if err == nil {
		return nil
	}
	return failure.WithCode(fmt.Errorf("writing %s: %w", path, err), failure.Internal)
}

// syncDir forces the names in a folder to the disk, where the system can do that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
