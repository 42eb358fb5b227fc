package strict

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
)

// List is a list in a file that is read entry by entry, see [Split]. Reading it again gives the same entries.
type List struct {
	file   string
	json   bool
	offset int64 // of the first entry's line in YAML, of the first byte after the bracket in JSON
	start  mark  // line and column of offset
	indent int   // spaces before the dashes of a YAML list
}

// Split reads a file, but for one list in it that may be too long for a tree: the value of a key of the root, or the root itself where key is empty. Memory does not grow with the list.
//
// The returned node holds everything else, with an empty list in that place; it is an empty list as a whole where key is empty. Places are those of the file.
// The list is nil where the file has no such list, or one that is not cut: a YAML list is cut where its entries stand on lines of their own that begin with a dash, and a key of the root at the beginning of its line; any other is part of the node, which is bound by [MaxDocument].
//
// Anchors reach from one entry neither into another nor to the rest of the file.
func Split(file string, r io.Reader, key string) (Node, *List, error) {
	s := &splitter{file: file, key: key, in: newInput(r)}
	if isJSON(file) {
		return s.json()
	}
	return s.yaml()
}

// Entries reads the list's entries in order from r, which holds the whole file. An entry longer than limit bytes, or one that is wrong in itself, is given as an error, after which the next entries follow; an error of r ends the list.
func (l *List) Entries(r io.ReaderAt, limit int) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		in := newInput(io.NewSectionReader(r, l.offset, 1<<62))
		in.at = l.start
		var e entry
		for {
			err := l.next(in, &e, limit)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Node{}, err)
				return
			}
			if !yield(l.parse(&e, limit)) || e.last {
				return
			}
		}
	}
}

// Lines reads a JSONL file: one JSON value a line, blank lines left out. A line longer than limit bytes, or one that is wrong in itself, is given as an error, after which the next lines follow; an error of r ends the file.
func Lines(file string, r io.Reader, limit int) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		in := newInput(r)
		in.skipBOM()
		var e entry
		for {
			e.reset(in.at)
			err := in.line(&e, limit)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Node{}, readError(file, err))
				return
			}
			if len(bytes.TrimSpace(e.text)) > 0 || e.long {
				src := &source{file: file, line: e.start.line, column: e.start.column}
				if e.long {
					if !yield(Node{}, src.tooLong(0, limit)) {
						return
					}
				} else if !yield(parse(src, e.text, true)) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// readError says that a file could not be read, by the name that it is shown under.
func readError(file string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return failure.WithCode(&readFailure{file, err}, failure.Internal)
}

type readFailure struct {
	file string
	err  error
}

func (f *readFailure) Error() string { return "reading " + f.file + ": " + f.err.Error() }
func (f *readFailure) Unwrap() error { return f.err }

func (s *source) tooLong(off, limit int) error {
	return s.error(off, "move long texts into files and name them", "longer than %d bytes", limit)
}

// next reads the text of the next entry. It returns [io.EOF] where there is none.
func (l *List) next(in *input, e *entry, limit int) error {
	e.reset(in.at)
	var err error
	if l.json {
		err = in.jsonEntry(e, limit)
	} else {
		err = in.yamlEntry(e, l.indent, limit)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return readError(l.file, err)
	}
	return err
}

func (l *List) parse(e *entry, limit int) (Node, error) {
	src := &source{file: l.file, line: e.start.line, column: e.start.column}
	if e.long {
		return Node{}, src.tooLong(0, limit)
	}
	n, err := parse(src, e.text, l.json)
	if !l.json && n.Len() == 1 {
		n = n.Index(0)
	}
	return n, err
}

// entry is the text of one entry.
type entry struct {
	text  []byte
	start mark
	long  bool // longer than the limit; text is then incomplete
	last  bool // nothing follows
}

func (e *entry) reset(start mark) { *e = entry{text: e.text[:0], start: start} }

// add appends text up to the limit; with limit 0 nothing is kept.
func (e *entry) add(text []byte, limit int) {
	if limit == 0 || e.long {
		return
	}
	if len(e.text)+len(text) > limit {
		e.long = true
		return
	}
	e.text = append(e.text, text...)
}

// input reads a file and knows the place of the next byte.
type input struct {
	r       *bufio.Reader
	at      mark
	cr      bool // the last byte read was CR
	entries int  // entries of a JSON list so far
}

func newInput(r io.Reader) *input {
	return &input{r: bufio.NewReaderSize(r, 64<<10), at: mark{line: 1, column: 1}}
}

func (in *input) skipBOM() {
	if b, _ := in.r.Peek(len(bom)); string(b) == bom {
		_, _ = in.r.Discard(len(bom))
		in.at.off = len(bom)
	}
}

// peekLine returns the beginning of the next line, as much as is needed to see its indentation and its first word, without taking it. At the end of the file it is empty.
func (in *input) peekLine() ([]byte, error) {
	const enough = 256
	b, err := in.r.Peek(enough)
	if len(b) > 0 {
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[:i+1]
		}
		return b, nil
	}
	return nil, err
}

// line takes one line with its line break.
func (in *input) line(e *entry, limit int) error {
	for {
		part, err := in.r.ReadSlice('\n')
		e.add(part, limit)
		in.at.off += len(part)
		in.at.line += bytes.Count(part, []byte("\r")) - bytes.Count(part, []byte("\r\n"))
		if !errors.Is(err, bufio.ErrBufferFull) {
			in.at.line, in.at.column = in.at.line+1, 1
			return err
		}
	}
}

// indentOf returns the number of spaces that a line begins with and what follows, without the line break.
func indentOf(line []byte) (int, []byte) {
	rest := bytes.TrimLeft(line, " ")
	return len(line) - len(rest), bytes.TrimRight(rest, "\r\n")
}

func isDash(rest []byte) bool {
	return len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\t')
}

func isBlank(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t")
	return len(rest) == 0 || rest[0] == '#'
}

// yamlEntry takes the lines of one entry of a list whose dashes stand behind indent spaces. What belongs to the entry is, by the grammar of YAML, all that is indented further.
func (in *input) yamlEntry(e *entry, indent, limit int) error {
	for first := true; ; first = false {
		line, err := in.peekLine()
		if err != nil {
			if first || !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}
		n, rest := indentOf(line)
		tab := len(rest) > 0 && rest[0] == '\t' // an error, but one of this entry
		if !isBlank(rest) && n <= indent && !tab && (!first || n < indent || !isDash(rest)) {
			if first {
				return io.EOF
			}
			return nil
		}
		if err := in.line(e, limit); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}

// step takes one byte.
func (in *input) step() (byte, error) {
	c, err := in.r.ReadByte()
	if err != nil {
		return 0, err
	}
	in.at.off++
	switch {
	case c == '\n' && in.cr:
	case c == '\n' || c == '\r':
		in.at.line, in.at.column = in.at.line+1, 1
	case utf8.RuneStart(c):
		in.at.column++
	}
	in.cr = c == '\r'
	return c, nil
}

// jsonEntry takes the text up to the comma or the bracket that ends the entry, the bracket left in place. Whether the text is JSON is not looked at. An empty list gives io.EOF.
func (in *input) jsonEntry(e *entry, limit int) error {
	depth, quoted, escaped, blank := 0, false, false, true
	var one [1]byte
	for {
		next, err := in.r.Peek(1)
		if err != nil {
			if errors.Is(err, io.EOF) {
				e.last = true
				if blank {
					return io.EOF
				}
				return nil
			}
			return err
		}
		c := next[0]
		if !quoted && depth == 0 && c == ']' {
			e.last = true
			if blank && in.entries == 0 {
				return io.EOF
			}
			in.entries++
			return nil
		}
		if _, err := in.step(); err != nil {
			return err
		}
		if !quoted && depth == 0 && c == ',' {
			in.entries++
			return nil
		}
		one[0] = c
		e.add(one[:], limit)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 0:
			depth--
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			blank = false
		}
	}
}

// splitter reads what stands around a list.
type splitter struct {
	file, key string
	in        *input
	head      []byte
	list      *List
	gap       mark
}

func (s *splitter) yaml() (Node, *List, error) {
	s.in.skipBOM()
	searching, found := true, s.key == ""
	for {
		line, err := s.in.peekLine()
		if errors.Is(err, io.EOF) {
			return s.finish(false)
		}
		if err != nil {
			return Node{}, nil, readError(s.file, err)
		}
		indent, rest := indentOf(line)
		if searching && !isBlank(rest) {
			switch {
			case found && isDash(rest):
				if err := s.cut(&List{indent: indent}); err != nil {
					return Node{}, nil, err
				}
				// An empty list takes its place, so that what follows cannot become its value.
				s.head = append(s.head, " []\n"...)
				s.gap = mark{len(s.head), s.in.at.line, s.in.at.column}
				searching = false
				continue
			case s.key == "":
				searching = rest[0] == '%' || string(rest) == "---"
			case found:
				searching = false
			default:
				found = indent == 0 && opens(rest, s.key)
			}
		}
		var e entry
		if err := s.in.line(&e, MaxDocument); err != nil && !errors.Is(err, io.EOF) {
			return Node{}, nil, readError(s.file, err)
		}
		s.head = append(s.head, e.text...)
		if e.long || len(s.head) > MaxDocument {
			return Node{}, nil, s.tooLong()
		}
	}
}

// opens reports whether a line holds a key and nothing else.
func opens(line []byte, key string) bool {
	text := string(line)
	for _, name := range []string{key, `"` + key + `"`, "'" + key + "'"} {
		if rest, ok := strings.CutPrefix(text, name); ok {
			rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), ":")
			if ok && (rest == "" || (rest[0] == ' ' || rest[0] == '\t') && isBlank([]byte(rest))) {
				return true
			}
		}
	}
	return false
}

func (s *splitter) json() (Node, *List, error) {
	s.in.skipBOM()
	depth, quoted, escaped := 0, false, false
	const (
		other = iota
		named // the key has been read
		opened
	)
	state, begin := other, 0
	if s.key == "" {
		state = opened
	}
	for {
		c, err := s.in.step()
		if errors.Is(err, io.EOF) {
			return s.finish(true)
		}
		if err != nil {
			return Node{}, nil, readError(s.file, err)
		}
		if s.head = append(s.head, c); len(s.head) > MaxDocument {
			return Node{}, nil, s.tooLong()
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case quoted && c == '"':
			quoted = false
			if depth == 1 && s.list == nil && string(s.head[begin:]) == `"`+s.key+`"` {
				state = named
			}
		case quoted || c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case c == '[' && state == opened && s.list == nil:
			if err := s.cut(&List{json: true}); err != nil {
				return Node{}, nil, err
			}
			s.gap = mark{len(s.head), s.in.at.line, s.in.at.column}
			state = other
			depth++
		case c == ':' && state == named:
			state = opened
		default:
			state = other
			switch c {
			case '"':
				quoted, begin = true, len(s.head)-1
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
		}
	}
}

// cut leaves out the entries of a list.
func (s *splitter) cut(l *List) error {
	l.file, l.offset, l.start = s.file, int64(s.in.at.off), s.in.at
	s.in.entries = 0
	var e entry
	for {
		err := l.next(s.in, &e, 0)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.list = l
		if e.last {
			return nil
		}
	}
}

func (s *splitter) tooLong() error {
	src := &source{file: s.file, line: 1, column: 1}
	return src.error(0, "write long lists entry by entry, each on a line that begins with a dash, or in a .jsonl file", "longer than %d MiB", MaxDocument>>20)
}

func (s *splitter) finish(json bool) (Node, *List, error) {
	n, err := parse(&source{file: s.file, line: 1, column: 1, gap: s.gap}, s.head, json)
	return n, s.list, err
}
