package strict

import (
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Rows reads a CSV file (RFC 4180 as package encoding/csv reads it): the first row names the columns, and each further row becomes a mapping of column names to strings, in the order of the columns. Empty lines are left out. Places are those of the cells.
//
// Quoted cells may hold commas, doubled quotes and line breaks; a byte order mark is left out. A row with more or fewer cells than there are columns, one that is not UTF-8 or one that holds NUL is given as an error, after which the next rows follow.
// A wrong quote, a row longer than limit bytes, a column without a name or two of one name end the file. A file without rows yields nothing.
func Rows(file string, r io.Reader, limit int) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		t := newTable(file, r, limit)
		header, err := t.header()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				yield(Node{}, err)
			}
			return
		}
		for {
			n, err, end := t.row(header)
			if end {
				if err != nil {
					yield(Node{}, err)
				}
				return
			}
			if !yield(n, err) {
				return
			}
		}
	}
}

// table reads the rows of a CSV file together with their text, from which places are found.
type table struct {
	file  string
	in    *rowInput
	csv   *csv.Reader
	line  int   // of the next row's first byte
	taken int64 // bytes of the rows so far
}

// rowInput keeps what was read since the last row, and refuses to read more of a row than limit.
type rowInput struct {
	from  *input
	kept  []byte
	limit int
}

var errLongRow = errors.New("row too long")

// Read implements io.Reader.
func (i *rowInput) Read(p []byte) (int, error) {
	if len(i.kept) > i.limit+len(p) {
		return 0, errLongRow
	}
	n, err := i.from.r.Read(p)
	i.kept = append(i.kept, p[:n]...)
	return n, err
}

func newTable(file string, r io.Reader, limit int) *table {
	in := newInput(r)
	in.skipBOM()
	t := &table{file: file, in: &rowInput{from: in, limit: limit}, line: 1}
	t.csv = csv.NewReader(t.in)
	t.csv.ReuseRecord = true
	return t
}

// next reads a row. The source holds its text; it is what places are told by, also where the row is wrong.
func (t *table) next() ([]string, *source, error) {
	cells, err := t.csv.Read()
	end := t.csv.InputOffset()
	size := min(int(end-t.taken), len(t.in.kept))
	src := &source{file: t.file, line: t.line, column: 1, text: string(t.in.kept[:size])}
	t.in.kept = append(t.in.kept[:0], t.in.kept[size:]...)
	t.taken = end
	t.line += strings.Count(src.text, "\n")
	return cells, src, err
}

// at gives the byte of a row's text by the line and the column that package csv tells, from 1 and in bytes.
func (s *source) at(line, column int) int {
	off := 0
	for line -= s.line; line > 0; line-- {
		i := strings.IndexByte(s.text[off:], '\n')
		if i < 0 {
			break
		}
		off += i + 1
	}
	return max(0, min(off+column-1, len(s.text)))
}

// failed turns an error of package csv into one of this package. last tells that no further row can be read.
func (t *table) failed(err error, src *source, columns int) (wrapped error, last bool) {
	var wrong *csv.ParseError
	switch {
	case errors.Is(err, errLongRow):
		return src.error(len(src.text)-len(strings.TrimLeft(src.text, "\r\n")), "is a closing quote missing? move long texts into files and name them", "a row is longer than %d bytes", t.in.limit), true
	case !errors.As(err, &wrong):
		return readError(t.file, err), true
	case errors.Is(err, csv.ErrFieldCount):
		return src.error(src.at(wrong.Line, wrong.Column), `write one cell for each column, "" for an empty one; a cell with a comma is quoted`, "the row has not as many cells as there are columns, want %d", columns), false
	case errors.Is(err, csv.ErrBareQuote):
		return src.error(src.at(wrong.Line, wrong.Column), `quote the whole cell and double the quotes in it: "say ""yes"""`, "a quote within a cell that is not quoted"), true
	default:
		return src.error(src.at(wrong.StartLine, 1), `a quoted cell ends with a quote before a comma or the end of the line; quotes in it are doubled: "say ""yes"""`, "a quoted cell does not end, or does not end where it should"), true
	}
}

func (t *table) header() ([]Key, error) {
	names, src, err := t.next()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil {
		err, _ = t.failed(err, src, len(names))
		return nil, err
	}
	if i := strings.IndexByte(strings.TrimSuffix(strings.TrimSuffix(src.text, "\n"), "\r"), '\r'); i >= 0 {
		return nil, src.error(i, "save the file with line ends LF or CRLF", "the first row holds a carriage return")
	}
	if err := src.cellText(); err != nil {
		return nil, err
	}
	keys := make([]Key, 0, len(names))
	for i, name := range names {
		off := src.at(t.csv.FieldPos(i))
		if strings.TrimSpace(name) == "" {
			return nil, src.error(off, "name the column in the first row, or remove it", "column %d has no name", i+1)
		}
		if first := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); first >= 0 {
			return nil, src.error(off, "give each column its own name", "column %q stands here a second time, first at %s", name, keys[first].Pos())
		}
		keys = append(keys, Key{Name: strings.Clone(name), src: src, off: int32(off)}) //nolint:gosec // a row is no longer than its limit
	}
	if len(keys) == 1 && strings.ContainsAny(keys[0].Name, ";\t") {
		return nil, src.error(0, "separate them by commas", "the columns are not separated by commas")
	}
	t.csv.FieldsPerRecord = len(keys)
	return keys, nil
}

// row reads one row. end tells that nothing follows, with an error where there is one.
func (t *table) row(header []Key) (n Node, err error, end bool) {
	cells, src, err := t.next()
	switch {
	case errors.Is(err, io.EOF):
		return Node{}, nil, true
	case err != nil:
		err, end = t.failed(err, src, len(header))
		return Node{}, err, end
	}
	if len(src.text) > t.in.limit {
		return Node{}, src.tooLong(src.at(t.csv.FieldPos(0)), t.in.limit), false
	}
	if err := src.cellText(); err != nil {
		return Node{}, err, false
	}
	sub := &composite{keys: header, items: make([]Node, len(cells))}
	for i, cell := range cells {
		sub.items[i] = Node{src: src, off: int32(src.at(t.csv.FieldPos(i))), kind: String, text: strings.Clone(cell)} //nolint:gosec // a row is no longer than its limit
	}
	return Node{src: src, off: sub.items[0].off, kind: Mapping, sub: sub}, nil, false
}

// cellText refuses what is no text in a row.
func (s *source) cellText() error {
	if i := strings.IndexByte(s.text, 0); i >= 0 {
		return s.error(i, "", "control character U+0000")
	}
	if utf8.ValidString(s.text) {
		return nil
	}
	for i, r := range s.text {
		if r == utf8.RuneError && !strings.HasPrefix(s.text[i:], "\ufffd") {
			return s.error(i, "save the file as UTF-8", "not UTF-8: byte 0x%02x", s.text[i])
		}
	}
	return nil
}
