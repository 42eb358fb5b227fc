package dataset

import (
	"bufio"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// items is where a dataset's items come from: a list in the dataset file that is read entry by entry, a list that stands in the tree, or files.
type items struct {
	list  *strict.List
	nodes strict.Node
	files []string // absolute
	at    failure.Position
}

// entry is one item as it stands in its file.
type entry struct {
	node strict.Node
	err  error
	data bool // a line of JSONL
	path func(p *strict.Problems, i int) *strict.Problems
}

func (d *Dataset) sources(n strict.Node, list *strict.List, p *strict.Problems) items {
	s := items{list: list, nodes: n, at: n.Pos()}
	if list != nil {
		return s
	}
	switch n.Kind() {
	case strict.Missing:
	case strict.Sequence:
		if n.Len() == 0 {
			p.Add(n.Pos(), "write one: [{id: first, input: ...}]", "the dataset has no items")
		}
	case strict.String:
		s.files = d.itemFiles(n, p)
	case strict.Mapping:
		key, hint := n.KeyPos(""), "remove it; reading the file without it would run something else than it says"
		for k := range n.Fields() {
			key = k.Pos()
			break
		}
		p.Add(key, hint, "items from {path: ..., map: ...} and {langfuse: ...} are not read by this version")
	default:
		p.WrongType(n, "a list of items or the path of a .yaml, .json or .jsonl file")
	}
	return s
}

func (d *Dataset) itemFiles(n strict.Node, p *strict.Problems) []string {
	pattern, ok := d.resolve(n, p)
	if !ok {
		return nil
	}
	files := []string{pattern}
	if strings.ContainsAny(n.Text(), "*?[") {
		var err error
		// Only the text is a pattern, not the folder that the project lies in.
		dir := filepath.Join(d.Root, filepath.FromSlash(filepath.Dir(filepath.FromSlash(d.File))))
		files, err = globIn(dir, filepath.FromSlash(n.Text()))
		if err != nil {
			p.Add(n.Pos(), "* and ? stand for characters of one name, [a-z] for one of several", "%q is no pattern", n.Text())
			return nil
		}
		if len(files) == 0 {
			p.Add(n.Pos(), "the pattern is relative to the file that names it", "no file matches %s", n.Text())
			return nil
		}
	}
	return slices.DeleteFunc(files, func(file string) bool { return !d.isItemFile(file, n, p) })
}

// isItemFile adds a problem where a file cannot hold items.
func (d *Dataset) isItemFile(file string, n strict.Node, p *strict.Problems) bool {
	found := p.Len()
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml", ".json", ".jsonl":
		if info, err := os.Stat(file); err != nil {
			p.AddError(failure.WithHint(unreadable(n.Pos(), "items file "+d.show(file), err), "the path is relative to the file that names it"))
		} else if !info.Mode().IsRegular() {
			p.Add(n.Pos(), "", "%s is no file", d.show(file))
		}
	case ".csv":
		p.Add(n.Pos(), "convert it to .jsonl", "items from .csv files are not read by this version")
	default:
		p.Add(n.Pos(), "write a .yaml, .json or .jsonl file", "items file %s has an unknown extension", d.show(file))
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
			d.listed(filepath.Join(d.Root, filepath.FromSlash(d.File)), d.items.list, inline, yield)
			return
		}
		for i := range d.items.nodes.Len() {
			if d.items.nodes.Kind() != strict.Sequence || !yield(entry{node: d.items.nodes.Index(i), path: inline}) {
				return
			}
		}
		for _, file := range d.items.files {
			name := d.show(file)
			if strings.EqualFold(filepath.Ext(file), ".jsonl") {
				if !d.lines(file, name, line, yield) {
					return
				}
				continue
			}
			if !d.file(file, name, inFile, yield) {
				return
			}
		}
	}
}

type pathOf = func(*strict.Problems, int) *strict.Problems

func (d *Dataset) listed(file string, list *strict.List, path pathOf, yield func(entry) bool) bool {
	in, err := openRegular(file)
	if err != nil {
		return yield(entry{err: unreadable(d.items.at, "items file "+d.show(file), err), path: path})
	}
	defer in.Close()
	for n, err := range list.Entries(in, MaxItem) {
		if !yield(entry{node: n, err: err, path: path}) {
			return false
		}
	}
	return true
}

func (d *Dataset) lines(file, name string, path pathOf, yield func(entry) bool) bool {
	in, err := openRegular(file)
	if err != nil {
		return yield(entry{err: unreadable(d.items.at, "items file "+name, err), path: path})
	}
	defer in.Close()
	empty := true
	for n, err := range strict.Lines(name, in, MaxItem) {
		empty = false
		if !yield(entry{node: n, err: err, data: true, path: path}) {
			return false
		}
	}
	return !empty || yield(entry{err: noItems(failure.Position{File: name, Line: 1, Column: 1}), path: path})
}

// file reads a file whose root is a list of items.
func (d *Dataset) file(file, name string, path pathOf, yield func(entry) bool) bool {
	in, err := openRegular(file)
	if err != nil {
		return yield(entry{err: unreadable(d.items.at, "items file "+name, err), path: path})
	}
	defer in.Close()
	root, list, err := strict.Split(name, bufio.NewReader(in), "")
	switch {
	case err != nil && !yield(entry{err: err, path: path}):
		return false
	case err != nil && list == nil && root.IsZero():
		return true
	case list != nil:
		return d.listed(file, list, path, yield)
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
