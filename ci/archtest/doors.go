package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// door is a way out of the program to the machine: names of a standard package that only some files may use.
type door struct {
	path  string
	names []string // empty: everything of the package
	dirs  []string // folders and files where it may be used
	why   string
}

const (
	command = "cmd/echoeval/main.go"
	cli     = "cmd/echoeval/internal/cli"
	network = "core/transport"
)

// doors lists them. Tests and ci are exempt.
var doors = []door{
	{path: "os", dirs: []string{command, cli}, why: "the process is seen through the State of the command alone",
		names: []string{"Args", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Getwd", "Chdir", "Hostname", "UserHomeDir", "UserCacheDir", "UserConfigDir", "TempDir"}},
	{path: "os", dirs: []string{command, cli, "harness/checkcmd", "harness/targetcmd"}, why: "the process is seen through the State of the command alone; checkcmd.Main and targetcmd.Main are the main functions of programs of users",
		names: []string{"Exit", "Stdin", "Stdout", "Stderr"}},
	{path: "os/signal", dirs: []string{command, cli}, why: "the command turns a signal into the end of a context"},
	{path: "os/exec", dirs: []string{cli, "harness/program"}, why: "a replay starts no process but what a dataset declares as its command; the command line asks git for the commit"},
	{path: "time", names: []string{"Now", "Since", "Until"}, dirs: []string{"core/clock"}, why: "the time comes from a clock.Clock that is passed in"},
	{path: "time", names: []string{"Sleep", "Tick"}, dirs: nil, why: "a wait ends with its context and runs on the clock that is passed in"},
	{path: "math/rand", dirs: nil, why: "ids and choices are derived with core/ident"},
	{path: "math/rand/v2", dirs: nil, why: "a source of randomness is made from a seed",
		names: []string{"ExpFloat64", "Float32", "Float64", "Int", "Int32", "Int32N", "Int64", "Int64N", "IntN", "N", "NormFloat64", "Perm", "Shuffle", "Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN"}},
	{path: "crypto/rand", dirs: nil, why: "ids and choices are derived with core/ident"},
	{path: "log", dirs: []string{command}, why: "what the user should know is an event, a warning or an error; the command silences what libraries log"},
	{path: "net/http", names: []string{"DefaultClient", "DefaultTransport", "Transport", "Get", "Head", "Post", "PostForm"}, dirs: []string{network}, why: "a client is built from the http.RoundTripper that is passed in; in replay there is none that could dial"},
	{path: "net", names: []string{"Dial", "DialTimeout", "Dialer", "DialTCP", "DialUDP", "DialIP", "DialUnix", "DefaultResolver", "Resolver", "LookupHost", "LookupIP", "LookupAddr"}, dirs: []string{cli, network}, why: "the command says how connections are opened"},
}

func checkDoors(t *Tree) (looked int, found []Violation) {
	for _, file := range t.Go {
		if file.Test {
			continue
		}
		// The names under which this file knows the packages of doors.
		local := map[string]string{}
		for importPath, spec := range file.imports {
			for i, d := range doors {
				if d.path != importPath {
					continue
				}
				local[localName(importPath, spec)] = importPath
				if len(d.names) == 0 {
					looked++
					found = append(found, t.closed(file, spec, &doors[i], importPath)...)
				}
			}
		}
		ast.Inspect(file.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				importPath, ok := qualifier(n, local)
				if !ok {
					return true
				}
				looked++
				for i, d := range doors {
					if d.path == importPath && slices.Contains(d.names, n.Sel.Name) {
						found = append(found, t.closed(file, n, &doors[i], packageName(importPath)+"."+n.Sel.Name)...)
					}
				}
			case *ast.CompositeLit:
				selector, ok := n.Type.(*ast.SelectorExpr)
				if !ok || selector.Sel.Name != "Client" {
					return true
				}
				if importPath, ok := qualifier(selector, local); ok && importPath == "net/http" && !hasKey(n, "Transport") {
					found = append(found, Violation{At: t.at(n.Pos()), What: "an http.Client without a Transport dials with the default one: give it the http.RoundTripper that is passed in"})
				}
			}
			return true
		})
	}
	return looked, found
}

// closed gives the violation of using the door in this file, if it is one.
func (t *Tree) closed(file *GoFile, n ast.Node, d *door, name string) []Violation {
	if slices.ContainsFunc(d.dirs, func(dir string) bool { return below(file.Path, dir) }) {
		return nil
	}
	where := "nowhere but in tests"
	if len(d.dirs) > 0 {
		where = "only in " + strings.Join(d.dirs, ", ")
	}
	return []Violation{{At: t.at(n.Pos()), What: fmt.Sprintf("%s is used %s: %s", name, where, d.why)}}
}

// localName is the name by which a file refers to an import of the standard library.
func localName(importPath string, spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return packageName(importPath)
}

// packageName is the last element of an import path that is no version. For every package of the standard library that is the package's name.
func packageName(importPath string) string {
	base := path.Base(importPath)
	if version, ok := strings.CutPrefix(base, "v"); ok {
		if _, err := strconv.Atoi(version); err == nil {
			return path.Base(path.Dir(importPath))
		}
	}
	return base
}

// qualifier returns the import path of a listed package that stands before the dot.
func qualifier(n *ast.SelectorExpr, local map[string]string) (importPath string, ok bool) {
	ident, ok := n.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	importPath, ok = local[ident.Name]
	return importPath, ok
}

func hasKey(lit *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := kv.Key.(*ast.Ident)
		return ok && key.Name == name
	})
}
