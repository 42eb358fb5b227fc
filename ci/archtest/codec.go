package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Typed is a package with its types, as [Codec] looks at it.
type Typed struct {
	Path  string
	Fset  *token.FileSet
	Files []*ast.File
	Info  *types.Info
}

// modelled are the packages whose types have one codec, by folder.
var modelled = []string{"core/conversation", "core/trace"}

// encoders are the packages that turn any Go value into text or bytes by looking at its fields. What they offer for that begins with one of the verbs.
var (
	encoders = []string{"encoding/gob", "encoding/json", "encoding/xml", "github.com/go-json-experiment/json", "go.yaml.in/yaml/v4"}
	verbs    = []string{"Marshal", "Encode", "Dump", "Unmarshal", "Decode", "Load"}
)

// CodecWhy is the reason for the rule that [Codec] checks.
const CodecWhy = "a conversation written in two ways is read wrongly by one of them: core/conversation and core/trace have the one codec each, AppendJSON and Decode"

// Codec finds the calls that hand a value of core/conversation or core/trace, or one that holds such a value, to an encoder that works by reflection. Within the two packages that is their own business, and types that are plain text or numbers may go anywhere.
//
// It sees the static type of what is passed. A value that has been put into an interface before escapes it; the tests of the formats catch that.
func Codec(module string, packages []Typed) (looked int, found []Violation) {
	own := func(pkg *types.Package) bool {
		if pkg == nil {
			return false
		}
		dir, ok := strings.CutPrefix(pkg.Path(), module+"/")
		return ok && slices.Contains(modelled, dir)
	}
	for _, p := range packages {
		if dir, _ := strings.CutPrefix(p.Path, module+"/"); slices.Contains(modelled, dir) {
			continue
		}
		for _, file := range p.Files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				name, ok := encoder(call, p.Info)
				if !ok {
					return true
				}
				for _, arg := range call.Args {
					looked++
					if t := modelType(p.Info.TypeOf(arg), own, map[types.Type]bool{}); t != nil {
						at := p.Fset.Position(call.Pos())
						found = append(found, Violation{At: fmt.Sprintf("%s:%d", at.Filename, at.Line), What: fmt.Sprintf("%s is given a %s: use the codec of its package", name, t.Obj().Pkg().Name()+"."+t.Obj().Name())})
					}
				}
				return true
			})
		}
	}
	return looked, found
}

// encoder returns the name of the function that the call calls, if it is one that encodes or decodes by reflection.
func encoder(call *ast.CallExpr, info *types.Info) (name string, ok bool) {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	function, ok := info.Uses[selector.Sel].(*types.Func)
	if !ok || function.Pkg() == nil || !slices.Contains(encoders, function.Pkg().Path()) {
		return "", false
	}
	for _, verb := range verbs {
		if strings.HasPrefix(function.Name(), verb) {
			return function.Pkg().Name() + "." + function.Name(), true
		}
	}
	return "", false
}

// modelType finds a type with an own codec in what reflection sees of t: the type itself, elements, and the exported or embedded fields.
func modelType(t types.Type, own func(*types.Package) bool, seen map[types.Type]bool) *types.Named {
	if t == nil || seen[t] {
		return nil
	}
	seen[t] = true
	if named, ok := types.Unalias(t).(*types.Named); ok && own(named.Obj().Pkg()) {
		if _, basic := named.Underlying().(*types.Basic); !basic {
			return named
		}
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return modelType(u.Elem(), own, seen)
	case *types.Slice:
		return modelType(u.Elem(), own, seen)
	case *types.Array:
		return modelType(u.Elem(), own, seen)
	case *types.Map:
		return modelType(u.Elem(), own, seen)
	case *types.Struct:
		for field := range u.Fields() {
			if !field.Exported() && !field.Embedded() {
				continue
			}
			if found := modelType(field.Type(), own, seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// LoadTypes checks the types of the module's packages, tests left out. The go command compiles what they import, or finds it compiled: dir is the module's folder. A package that does not compile is an error.
func LoadTypes(dir string) (module string, packages []Typed, err error) {
	listed, err := list(dir)
	if err != nil {
		return "", nil, err
	}
	exports := map[string]string{}
	for _, p := range listed {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range listed {
		if p.Module == nil || !p.Module.Main {
			continue
		}
		module = p.Module.Path
		var files []*ast.File
		for _, name := range p.GoFiles {
			relative, err := filepath.Rel(dir, filepath.Join(p.Dir, name))
			if err != nil {
				return "", nil, fmt.Errorf("reading %s: %w", p.ImportPath, err)
			}
			source, err := os.ReadFile(filepath.Join(dir, relative))
			if err != nil {
				return "", nil, fmt.Errorf("reading %s: %w", p.ImportPath, err)
			}
			file, err := parser.ParseFile(fset, filepath.ToSlash(relative), source, parser.SkipObjectResolution)
			if err != nil {
				return "", nil, fmt.Errorf("reading %s: %w", p.ImportPath, err)
			}
			files = append(files, file)
		}
		typed, _, err := check(p.ImportPath, fset, files, imports)
		if err != nil {
			return "", nil, err
		}
		packages = append(packages, typed)
	}
	return module, packages, nil
}

// listedPackage is what the go command says of a package.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct {
		Path string
		Main bool
	}
}

func list(dir string) ([]listedPackage, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Module", "./...")
	command.Dir = dir
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w: %s", err, stderr.String())
	}
	var listed []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return listed, nil
		case err != nil:
			return nil, fmt.Errorf("listing the packages: %w", err)
		}
		listed = append(listed, p)
	}
}

func check(path string, fset *token.FileSet, files []*ast.File, imports types.Importer) (Typed, *types.Package, error) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	pkg, err := config.Check(path, fset, files, info)
	if err != nil {
		return Typed{}, nil, fmt.Errorf("checking the types of %s: %w", path, err)
	}
	return Typed{Path: path, Fset: fset, Files: files, Info: info}, pkg, nil
}
