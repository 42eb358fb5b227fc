package dataset

import (
	"bufio"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/ahead"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// items is where a dataset's items come from: a list in the dataset file that is read entry by entry, a list that stands in the tree, or files.
type items struct {
	list    *strict.List
	nodes   strict.Node
	files   []string // absolute
	at      failure.Position
	columns columnMap
}

// entry is one item as it stands in its file.
type entry struct {
	node strict.Node
	err  error
	data bool // a line of JSONL, a row of CSV
	path func(p *strict.Problems, i int) *strict.Problems
}

// sourceKeys are the keys of items that come from a file whose columns have other names.
type sourceKeys struct {
	Path strict.Node `yaml:"path,required" schema:"text" doc:"the path or glob of .jsonl or .csv files"`
	Map  strict.Node `yaml:"map" schema:"columns" doc:"keys of items, and the columns that they come from"`
}

// UnknownKey implements [strict.UnknownKey].
func (*sourceKeys) UnknownKey(name string) (message, hint string) { return later(name, "langfuse") }

const (
	formats     = "a .yaml, .json, .jsonl or .csv file"
	itemsWanted = "a list of items or the path of " + formats
)

func (d *Dataset) sources(n strict.Node, list *strict.List, p *strict.Problems) items {
	s := items{list: list, at: n.Pos()}
	if list != nil {
		return s
	}
	switch n.Kind() {
	case strict.Missing:
	case strict.Sequence:
		s.nodes = n
		if n.Len() == 0 {
			p.Add(n.Pos(), "write one: [{id: first, input: ...}]", "the dataset has no items")
		}
	case strict.String:
		s.files = d.itemFiles(n, p)
	case strict.Mapping:
		var keys sourceKeys
		if langfuse := n.Get("langfuse"); !langfuse.IsZero() {
			message, hint := keys.UnknownKey("langfuse")
			p.Add(n.KeyPos("langfuse"), hint, "%s", message)
			break
		}
		strict.Decode(n, &keys, p)
		if keys.Path.Kind() == strict.String {
			s.files = d.itemFiles(keys.Path, p.Key("path"))
		} else if !keys.Path.IsZero() {
			p.Key("path").WrongType(keys.Path, "a string")
		}
		if !keys.Map.IsZero() {
			found := p.Len()
			if s.columns = columns(keys.Map, p.Key("map")); p.Len() > found {
				s.files = nil // what follows from a wrong map would hide it
			}
			for _, file := range s.files {
				if !isData(file) {
					p.Add(n.KeyPos("map"), "write the items with the keys of items", "the columns of %s cannot be named otherwise: it is neither .jsonl nor .csv", d.show(file))
				}
			}
		}
	default:
		p.WrongType(n, itemsWanted)
	}
	return s
}

func isData(file string) bool { return isCSV(file) || strings.EqualFold(filepath.Ext(file), ".jsonl") }
func isCSV(file string) bool  { return strings.EqualFold(filepath.Ext(file), ".csv") }

func (d *Dataset) itemFiles(n strict.Node, p *strict.Problems) []string {
	return slices.DeleteFunc(d.glob(n, p), func(file string) bool { return !d.isItemFile(file, n, p) })
}

// isItemFile adds a problem where a file cannot hold items.
func (d *Dataset) isItemFile(file string, n strict.Node, p *strict.Problems) bool {
	found := p.Len()
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml", ".json", ".jsonl", ".csv":
		if info, err := os.Stat(file); err != nil {
			p.AddError(failure.WithHint(unreadable(n.Pos(), "items file "+d.show(file), err), "the path is relative to the file that names it"))
		} else if !info.Mode().IsRegular() && !isPipe(info.Mode()) {
			p.Add(n.Pos(), "", "%s is no file", d.show(file))
		}
	default:
		p.Add(n.Pos(), "write "+formats, "items file %s has an unknown extension", d.show(file))
	}
	if filepath.Join(d.Root, filepath.FromSlash(d.File)) == file {
		p.Add(n.Pos(), "name another file, or write the items as a list", "the dataset names itself as its items")
	}
	return p.Len() == found
}

// globIn matches a pattern of slashes and names below a folder, whose own name is no pattern. The result is sorted.
func globIn(dir, pattern string) ([]string, error) {
	names := []string{""}
	for _, part := range strings.Split(filepath.Clean(pattern), string(filepath.Separator)) {
		if _, err := filepath.Match(part, ""); err != nil {
			return nil, err
		}
		var next []string
		for _, base := range names {
			if !strings.ContainsAny(part, "*?[") {
				next = append(next, filepath.Join(base, part))
				continue
			}
			entries, err := os.ReadDir(filepath.Join(dir, base))
			if err != nil {
				continue
			}
			for _, e := range entries {
				if ok, _ := filepath.Match(part, e.Name()); ok && !strings.HasPrefix(e.Name(), ".") {
					next = append(next, filepath.Join(base, e.Name()))
				}
			}
		}
		names = next
	}
	files := make([]string, 0, len(names))
	for _, name := range names {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files, nil
}

// entries goes through all items in order. Each call reads the files again. An error that ends the reading comes last.
func (d *Dataset) entries() iter.Seq[entry] {
	inline := func(p *strict.Problems, i int) *strict.Problems { return p.Key("items").At(i) }
	inFile := func(p *strict.Problems, i int) *strict.Problems { return p.At(i) }
	line := func(p *strict.Problems, _ int) *strict.Problems { return p }
	return func(yield func(entry) bool) {
		if d.items.list != nil {
			file := filepath.Join(d.Root, filepath.FromSlash(d.File))
			in, err := openRegular(file)
			if err != nil {
				yield(entry{err: unreadable(d.items.at, "items file "+d.show(file), err), path: inline})
				return
			}
			defer in.Close()
			listEntries(in, d.items.list, inline, yield)
			return
		}
		for i := range d.items.nodes.Len() {
			if !yield(entry{node: d.items.nodes.Index(i), path: inline}) {
				return
			}
		}
		for _, file := range d.items.files {
			read, path := d.file, inFile
			if isData(file) {
				read, path = d.lines, line
			}
			if !d.open(file, path, read, yield) {
				return
			}
		}
	}
}

type pathOf = func(*strict.Problems, int) *strict.Problems

// readFunc yields the entries of an open file, whose name is the one it is shown under.
type readFunc = func(in readerAt, file, name string, path pathOf, yield func(entry) bool) bool

type readerAt interface {
	io.Reader
	io.ReaderAt
}

// open reads the entries of a file; a pipe is spooled the first time.
func (d *Dataset) open(file string, path pathOf, read readFunc, yield func(entry) bool) bool {
	name := d.show(file)
	in, err := d.source(file)
	if err != nil {
		return yield(entry{err: unreadable(d.items.at, "items file "+name, err), path: path})
	}
	defer in.Close()
	return read(in, file, name, path, yield)
}

func listEntries(in io.ReaderAt, list *strict.List, path pathOf, yield func(entry) bool) bool {
	for n, err := range list.Entries(in, MaxItem) {
		if !yield(entry{node: n, err: err, path: path}) {
			return false
		}
	}
	return true
}

// lines reads the lines of a JSONL file or the rows of a CSV file.
func (d *Dataset) lines(in readerAt, file, name string, path pathOf, yield func(entry) bool) bool {
	rows, csv := strict.Lines(name, in, MaxItem), isCSV(file)
	if csv {
		rows = strict.Rows(name, in, MaxItem)
	}
	empty, checked := true, false
	parsed := func(yield func(entry) bool) {
		for n, err := range rows {
			if !yield(entry{node: n, err: err, data: true, path: path}) {
				return
			}
		}
	}
	const some = 16 // rows that change hands at once; each may be as long as MaxItem
	for e := range ahead.Seq(parsed, some) {
		n, err := e.node, e.err
		empty = false
		if err == nil && (csv || d.items.columns != nil) {
			if csv && !checked {
				checked = true
				if problem := d.items.columns.missing(n); problem != nil {
					return yield(entry{err: problem, path: path})
				}
			}
			var p strict.Problems
			e.node = d.items.columns.item(n, csv, &p)
			e.err = p.Err()
		}
		if !yield(e) {
			return false
		}
	}
	return !empty || yield(entry{err: noItems(failure.Position{File: name, Line: 1, Column: 1}), path: path})
}

// file reads a file whose root is a list of items.
func (d *Dataset) file(in readerAt, _, name string, path pathOf, yield func(entry) bool) bool {
	root, list, err := strict.Split(name, bufio.NewReader(in), "")
	switch {
	case err != nil && !yield(entry{err: err, path: path}):
		return false
	case err != nil && list == nil && root.IsZero():
		return true
	case list != nil:
		return listEntries(in, list, path, yield)
	case root.Kind() != strict.Sequence:
		var p strict.Problems
		p.WrongType(root, "a list of items")
		return yield(entry{err: p.Err(), path: path})
	case root.Len() == 0:
		return yield(entry{err: noItems(root.Pos()), path: path})
	}
	for _, n := range root.Items() {
		if !yield(entry{node: n, path: path}) {
			return false
		}
	}
	return true
}

func noItems(pos failure.Position) error {
	return failure.WithHint(failure.At(pos, failure.Input, "the file has no items"), "write one, or remove the file from the dataset")
}

// workspace checks that a node names a folder under the root, and returns it relative to the root.
func (d *Dataset) workspace(n strict.Node, p *strict.Problems) *string {
	if n.Kind() != strict.String {
		p.WrongType(n, "a string")
		return nil
	}
	dir, ok := d.resolveInside(n, p)
	if !ok {
		return nil
	}
	name := d.show(dir)
	problem, known := d.folders[dir]
	if !known {
		problem = d.folderProblem(dir)
		if len(d.folders) < 1000 { // a folder an item must not make memory grow
			d.folders[dir] = problem
		}
	}
	if problem != "" {
		p.Add(n.Pos(), "the path is relative to the file that names it", "workspace %s %s", name, problem)
	}
	return &name
}

func (d *Dataset) folderProblem(dir string) string {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "does not exist"
	case !info.IsDir():
		return "is no folder"
	case !resolvesInside(d.Root, dir):
		return "leaves the project's folder through a symbolic link"
	}
	return ""
}
