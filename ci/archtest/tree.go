// Package archtest checks the rules of the source tree that no compiler checks: which package may import which, where the doors to the process are, what committed files may not hold, and that the documents still describe the tree.
//
// The rules stand in [Rules]. Each says why it exists and reports how much it looked at, so that a rule which has come to look at nothing fails instead of passing. They read an [io/fs.FS], so that the tests can show each of them a small tree that breaks it.
package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Tree is what the rules look at: the text files of the project and the syntax of its Go files.
type Tree struct {
	// Module is the module path of go.mod.
	Module string
	// Requires holds the modules that go.mod requires directly.
	Requires []string
	// Go holds the Go files, sorted by path. Files under testdata and in nested modules are not among them.
	Go []*GoFile
	// Text holds every file that is valid UTF-8, by path, Go files included.
	Text map[string]string
	// Paths holds every file and folder, sorted.
	Paths []string

	fset *token.FileSet
}

// GoFile is one Go file.
type GoFile struct {
	// Path is relative to the project, with slashes.
	Path string
	// Test holds for _test.go files, for the packages that only tests use (see [helper]) and for everything below ci.
	Test bool
	AST  *ast.File
}

// Dir is the folder of the file: its package, relative to the module.
func (f *GoFile) Dir() string { return path.Dir(f.Path) }

// Violation is one place that breaks a rule.
type Violation struct {
	At   string // path, or path:line
	What string
}

// String gives place and message.
func (v Violation) String() string { return v.At + ": " + v.What }

// forTests are the packages that serve tests without being named so.
var forTests = []string{"harness/matchers"}

// helper reports whether the folder is a package that serves tests: those named something-test, those of [forTests], and everything below ci.
func helper(dir string) bool {
	base := path.Base(dir)
	return strings.HasSuffix(base, "test") && base != "test" || layer(dir) == "ci" || slices.Contains(forTests, dir)
}

// layer is the first element of a path: the part of the house that it belongs to.
func layer(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

// Load reads the tree. What .gitignore names is left out, and so are .git and nested modules' Go files.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{Text: map[string]string{}, fset: token.NewFileSet()}
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("reading the tree: %w", err)
	}
	t.Module, t.Requires = parseMod(mod)
	ignored, err := readIgnored(fsys)
	if err != nil {
		return nil, err
	}
	var modules []string
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == ".git" || ignored(name, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		t.Paths = append(t.Paths, name)
		if !d.Type().IsRegular() {
			return nil
		}
		if path.Base(name) == "go.mod" && name != "go.mod" {
			modules = append(modules, path.Dir(name)+"/")
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if utf8.Valid(data) {
			t.Text[name] = string(data)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tree: %w", err)
	}
	for _, name := range t.Paths {
		inside := func(dir string) bool { return strings.HasPrefix(name, dir) }
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") || slices.ContainsFunc(modules, inside) {
			continue
		}
		file, err := parser.ParseFile(t.fset, name, t.Text[name], parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the tree: %w", err)
		}
		t.Go = append(t.Go, &GoFile{Path: name, Test: strings.HasSuffix(name, "_test.go") || helper(path.Dir(name)), AST: file})
	}
	return t, nil
}

// at gives path:line of a position.
func (t *Tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// local returns the folder of an import path of this module.
func (t *Tree) local(importPath string) (dir string, ok bool) {
	return strings.CutPrefix(importPath, t.Module+"/")
}

// imports gives the import paths of a file with their places.
func (f *GoFile) imports(yield func(importPath string, spec *ast.ImportSpec) bool) {
	for _, spec := range f.AST.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err == nil && !yield(importPath, spec) {
			return
		}
	}
}

// parseMod reads the module path and the direct requirements from a go.mod as the go command formats it.
func parseMod(mod []byte) (module string, requires []string) {
	lines := bufio.NewScanner(bytes.NewReader(mod))
	block := false
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
			block = block && line != ")"
		case fields[0] == "module":
			module = fields[1]
		case fields[0] == "require" && fields[1] == "(":
			block = true
		case strings.HasSuffix(line, "// indirect"):
		case fields[0] == "require":
			requires = append(requires, fields[1])
		case block:
			requires = append(requires, fields[0])
		}
	}
	return module, requires
}

// readIgnored reads .gitignore. It knows the forms that stand there, a name or pattern, anchored or not, of a folder or of anything, and refuses others.
func readIgnored(fsys fs.FS) (ignored func(name string, isDir bool) bool, err error) {
	data, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil {
		return nil, fmt.Errorf("reading the tree: %w", err)
	}
	type pattern struct {
		glob              string
		anchored, dirOnly bool
	}
	var patterns []pattern
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p := pattern{glob: line}
		p.glob, p.dirOnly = strings.CutSuffix(p.glob, "/")
		p.glob, p.anchored = strings.CutPrefix(p.glob, "/")
		if strings.ContainsAny(p.glob, "!/") {
			return nil, fmt.Errorf("reading the tree: .gitignore: %q is of a form that ci/archtest does not know", line)
		}
		patterns = append(patterns, p)
	}
	return func(name string, isDir bool) bool {
		return slices.ContainsFunc(patterns, func(p pattern) bool {
			subject := path.Base(name)
			if p.anchored {
				subject = name
			}
			matched, _ := path.Match(p.glob, subject)
			return matched && (isDir || !p.dirOnly)
		})
	}, nil
}
