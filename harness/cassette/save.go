package cassette

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/echoeval/echoeval/core/failure"
)

// Save writes the cassette to path, with the folders that it needs. Whoever reads path sees the old file whole or the new one whole, also after a crash: the text goes to a temporary file of the same folder, reaches the disk and then takes the old one's place.
// On failure the temporary file is removed and the old file stays. Of several savers at once the last wins, whole. A process that is killed may leave a temporary file behind, named [TempPattern]; nothing reads it, and the next process that saves into the folder removes it.
//
// An error has the code [failure.Cassette] if the contents cannot be written down and [failure.Internal] if the disk refuses; it names display, not path.
func Save(path, display string, f *File) error {
	data, err := Encode(f)
	if err != nil {
		return failure.At(failure.Position{File: display}, failure.Cassette, "%w", err)
	}
	if len(data) > maxSize {
		return failure.At(failure.Position{File: display}, failure.Cassette, "%d MiB are more than a cassette may have (%d)", len(data)>>20, maxSize>>20)
	}
	return Write(path, display, data, 0o644)
}

// TempPattern matches the names of temporary files, for those who list a folder or keep it out of version control.
const TempPattern = ".*.yaml.tmp*"

// Write replaces the file at path by data as [Save] does, with the given permissions whatever the umask.
func Write(path, display string, data []byte, perm os.FileMode) (err error) {
	defer func() {
		if err != nil {
			var at *os.PathError
			var link *os.LinkError
			switch { // the paths in them may be absolute, and name a temporary file
			case errors.As(err, &at):
				err = at.Err
			case errors.As(err, &link):
				err = link.Err
			}
			err = failure.At(failure.Position{File: display}, failure.Internal, "saving: %w", err)
		}
	}()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sweep(dir)
	f, err := create(dir, "."+filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// Nothing is left behind as far as the disk allows; the cause is what is told.
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(perm); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the new name reach the disk. Windows cannot sync a folder.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
