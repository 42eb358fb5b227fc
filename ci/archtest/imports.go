package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// direction says which layers the packages of a layer may import beside their own. As no layer may import one that it does not list, and helpers are imported by tests alone, what holds for direct imports holds for indirect ones.
var direction = map[string][]string{
	"cmd":       {"reports", "harness", "providers", "core"},
	"reports":   {"harness", "core"},
	"harness":   {"core"},
	"providers": {"core"},
	"core":      {},
}

func checkDirection(t *Tree) (looked int, found []Violation) {
	for _, file := range t.Go {
		from := layer(file.Dir())
		allowed, known := direction[from]
		if !known && from != "ci" {
			found = append(found, Violation{At: file.Path, What: fmt.Sprintf("a Go file outside the layers cmd, reports, harness, providers, core and ci: %s", file.Dir())})
			continue
		}
		if file.Test {
			continue
		}
		for importPath, spec := range file.imports {
			dir, ok := t.local(importPath)
			if !ok {
				continue
			}
			looked++
			if to := layer(dir); to != from && !helper(dir) && !slices.Contains(allowed, to) {
				found = append(found, Violation{At: t.at(spec.Pos()), What: fmt.Sprintf("%s imports %s: %s may import %s", file.Dir(), dir, from, listed(allowed))})
			}
		}
	}
	return looked, found
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no other layer"
	}
	return strings.Join(names, ", ")
}

func checkHelpers(t *Tree) (looked int, found []Violation) {
	for _, file := range t.Go {
		for importPath, spec := range file.imports {
			dir, ok := t.local(importPath)
			if !ok {
				continue
			}
			looked++
			if helper(dir) && !file.Test {
				found = append(found, Violation{At: t.at(spec.Pos()), What: fmt.Sprintf("%s imports %s, which serves tests only", file.Dir(), dir)})
			}
		}
	}
	return looked, found
}

// library says where a library may be imported outside tests.
type library struct {
	path string   // import path; packages below it are included
	dirs []string // folders; packages below them are included
	why  string
}

// testOnly are the libraries of tests: no other file may import them.
var testOnly = []string{
	"github.com/onsi/ginkgo/v2",
	"github.com/onsi/gomega",
	"github.com/pmezard/go-difflib",
}

func checkLibraries(t *Tree) (looked int, found []Violation) {
	for _, file := range t.Go {
		if file.Test {
			continue
		}
		for importPath, spec := range file.imports {
			first, _, _ := strings.Cut(importPath, "/")
			if _, ok := t.local(importPath); ok || !strings.Contains(first, ".") {
				continue
			}
			looked++
			if slices.ContainsFunc(testOnly, func(p string) bool { return below(importPath, p) }) {
				found = append(found, Violation{At: t.at(spec.Pos()), What: importPath + " is for tests only"})
				continue
			}
			i := slices.IndexFunc(libraries, func(l library) bool { return below(importPath, l.path) })
			if i < 0 {
				found = append(found, Violation{At: t.at(spec.Pos()), What: fmt.Sprintf("%s is not among the libraries of ci/archtest: add it with its folders and the reason, or do without it", importPath)})
				continue
			}
			allowed := libraries[i]
			if !slices.ContainsFunc(allowed.dirs, func(dir string) bool { return below(file.Dir(), dir) }) {
				found = append(found, Violation{At: t.at(spec.Pos()), What: fmt.Sprintf("%s imports %s, which belongs to %s: %s", file.Dir(), importPath, strings.Join(allowed.dirs, ", "), allowed.why)})
			}
		}
	}
	return looked, found
}

// below reports whether the slash-separated name is dir or lies below it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, path.Clean(dir)+"/")
}
