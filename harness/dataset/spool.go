package dataset

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// MaxSpool is how many bytes are kept of a pipe.
const MaxSpool = 4 << 30

// isPipe reports whether a file can be read once only.
func isPipe(mode fs.FileMode) bool { return mode&(fs.ModeNamedPipe|fs.ModeSocket) == fs.ModeNamedPipe }

// opened is a file of items that is read from its beginning.
type opened struct {
	readerAt
	file *os.File // nil for a spooled one, which is closed with the program
}

// Close implements io.Closer.
func (o *opened) Close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

// source opens a file of items. What cannot be read twice is copied into a temporary file the first time, which has no name and ends with the program.
func (d *Dataset) source(file string) (*opened, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !isPipe(info.Mode()) {
		in, err := openRegular(file)
		if err != nil {
			return nil, err
		}
		return &opened{in, in}, nil
	}
	kept, ok := d.spooled[file]
	if !ok {
		if kept, err = d.spool(file); err != nil {
			return nil, err
		}
		if d.spooled == nil {
			d.spooled = map[string]*os.File{}
		}
		d.spooled[file] = kept
	}
	return &opened{io.NewSectionReader(kept, 0, MaxSpool), nil}, nil
}

func (d *Dataset) spool(file string) (*os.File, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	kept, err := os.CreateTemp(d.options.Temp, "echoeval-items-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(kept.Name()) // it stays readable; where it cannot be removed while it is open, the system's cleaning does
	n, err := io.Copy(kept, io.LimitReader(in, MaxSpool+1))
	if err == nil && n > MaxSpool {
		err = errTooLong
	}
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return kept, nil
}
