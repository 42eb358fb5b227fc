package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

func checkPackageDocs(t *Tree) (looked int, found []Violation) {
	type pkg struct {
		name, dir string
		docs      []string
	}
	packages := map[string]*pkg{}
	for _, file := range t.Go {
		if strings.HasSuffix(file.Path, "_test.go") {
			continue
		}
		p := packages[file.Dir()]
		if p == nil {
			p = &pkg{name: file.AST.Name.Name, dir: file.Dir()}
			packages[file.Dir()] = p
		}
		if file.AST.Doc != nil {
			p.docs = append(p.docs, file.AST.Doc.Text())
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		p := packages[dir]
		looked++
		want := "Package " + p.name + " "
		if p.name == "main" {
			want = "Command " + path.Base(dir) + " "
		}
		switch {
		case len(p.docs) == 0:
			found = append(found, Violation{At: dir, What: fmt.Sprintf("no package comment; one file should begin with %q", "// "+want+"...")})
		case len(p.docs) > 1:
			found = append(found, Violation{At: dir, What: "the package comment stands in more than one file"})
		case !strings.HasPrefix(p.docs[0], want):
			found = append(found, Violation{At: dir, What: fmt.Sprintf("the package comment should begin with %q", want)})
		}
	}
	return looked, found
}

// checkDocComments looks at every exported name at the top of a file, and at the exported methods of exported types. A comment on a group of names counts for each of them.
func checkDocComments(t *Tree) (looked int, found []Violation) {
	for _, file := range t.Go {
		if strings.HasSuffix(file.Path, "_test.go") || file.AST.Name.Name == "main" {
			continue
		}
		look := func(name *ast.Ident, comments ...*ast.CommentGroup) {
			if !name.IsExported() {
				return
			}
			looked++
			if !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
				found = append(found, Violation{At: t.at(name.Pos()), What: name.Name + " has no comment that gives its contract"})
			}
		}
		for _, d := range file.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || receiver(d.Recv.List[0].Type).IsExported() {
					look(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						look(spec.Name, d.Doc, spec.Doc)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							look(name, d.Doc, spec.Doc, spec.Comment)
						}
					}
				}
			}
		}
	}
	return looked, found
}

// receiver is the name of a method's type, without pointer and type parameters.
func receiver(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x
		default:
			return ast.NewIdent("_")
		}
	}
}

// document reports whether the file is one of the documents that the rules read: those of docs and those at the root.
func document(name string) bool {
	return path.Ext(name) == ".md" && (below(name, "docs") || path.Dir(name) == ".")
}

// prose yields the lines of a document outside fenced code, with their numbers.
func prose(text string) func(yield func(number int, line string) bool) {
	return func(yield func(int, string) bool) {
		number, fence := 0, ""
		for line := range strings.Lines(text) {
			number++
			trimmed := strings.TrimSpace(line)
			switch {
			case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
				fence = trimmed[:3]
			case fence != "":
				if strings.HasPrefix(trimmed, fence) {
					fence = ""
				}
			case !yield(number, line):
				return
			}
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	heading  = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*#*\s*$`)
)

func checkLinks(t *Tree) (looked int, found []Violation) {
	for _, name := range slices.Sorted(maps.Keys(t.Text)) {
		if !document(name) {
			continue
		}
		for number, line := range prose(t.Text[name]) {
			for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				looked++
				if what, ok := t.dead(name, m[1]); ok {
					found = append(found, Violation{At: fmt.Sprintf("%s:%d", name, number), What: what})
				}
			}
		}
	}
	return looked, found
}

// dead says what is wrong with a link in the document name. Links to other sites are not followed.
func (t *Tree) dead(name, target string) (what string, dead bool) {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return "", false
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	linked := name
	if file != "" {
		linked = path.Join(path.Dir(name), file)
	}
	if !t.exists(linked) {
		return fmt.Sprintf("the link %s leads nowhere: there is no %s", target, linked), true
	}
	if hasAnchor && !slices.Contains(anchors(t.Text[linked]), anchor) {
		return fmt.Sprintf("the link %s leads nowhere: %s has no such heading", target, linked), true
	}
	return "", false
}

// anchors gives the fragments by which a document's headings are linked: lower case, spaces as hyphens, punctuation left out, the second of a kind numbered.
func anchors(text string) []string {
	var out []string
	seen := map[string]int{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		if n := seen[slug]; n > 0 {
			out = append(out, fmt.Sprintf("%s-%d", slug, n))
		} else {
			out = append(out, slug)
		}
		seen[slug]++
	}
	return out
}

func (t *Tree) exists(name string) bool {
	_, ok := slices.BinarySearchFunc(t.Paths, strings.TrimSuffix(name, "/"), strings.Compare)
	return ok || name == "."
}

var treePath = regexp.MustCompile("`((?:\\.ci|ci|cmd|core|datasets|docs|fixtures|harness|providers|reports)/[^`\\s]*)`")

// checkDocPaths looks at what documents show as code and begin with a folder of the project. What holds a placeholder in capitals, angle brackets or a star is a pattern and not looked at, and names of Go are looked at by checkDocNames.
func checkDocPaths(t *Tree) (looked int, found []Violation) {
	for _, name := range slices.Sorted(maps.Keys(t.Text)) {
		if !document(name) {
			continue
		}
		for number, line := range prose(t.Text[name]) {
			for _, m := range treePath.FindAllStringSubmatch(line, -1) {
				if _, _, ok := declaredName(m[1]); ok || strings.ContainsAny(m[1], "<>*{}$ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
					continue
				}
				looked++
				file, _, _ := strings.Cut(m[1], "#")
				if !t.exists(file) {
					found = append(found, Violation{At: fmt.Sprintf("%s:%d", name, number), What: fmt.Sprintf("there is no %s", file)})
				}
			}
		}
	}
	return looked, found
}

var goName = regexp.MustCompile(`^((?:ci|cmd|core|harness|providers|reports)/[a-z0-9/]+)\.([A-Za-z][A-Za-z0-9]*)$`)

// fileTypes are the ends of file names that look like names of Go.
var fileTypes = []string{"go", "mod", "md", "sh", "yaml", "yml", "json", "mjs", "html", "css", "js"}

// declaredName splits the folder of a package from a name that it declares.
func declaredName(code string) (dir, name string, ok bool) {
	m := goName.FindStringSubmatch(code)
	if m == nil || slices.Contains(fileTypes, m[2]) {
		return "", "", false
	}
	return m[1], m[2], true
}

// checkDocNames looks at what documents show as code in the form of folder/of/package.Name: the package declares that name at the top of a file.
func checkDocNames(t *Tree) (looked int, found []Violation) {
	declared := map[string]map[string]bool{}
	for _, file := range t.Go {
		names := declared[file.Dir()]
		if names == nil {
			names = map[string]bool{}
			declared[file.Dir()] = names
		}
		for _, d := range file.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Text)) {
		if !document(name) {
			continue
		}
		for number, line := range prose(t.Text[name]) {
			for _, span := range codeSpan.FindAllString(line, -1) {
				dir, wanted, ok := declaredName(strings.Trim(span, "`"))
				if !ok {
					continue
				}
				looked++
				at := fmt.Sprintf("%s:%d", name, number)
				switch names := declared[dir]; {
				case names == nil:
					found = append(found, Violation{At: at, What: "there is no package " + dir})
				case !names[wanted]:
					found = append(found, Violation{At: at, What: fmt.Sprintf("%s has no %s", dir, wanted)})
				}
			}
		}
	}
	return looked, found
}

var decision = regexp.MustCompile(`^(\d{3})-[a-z0-9]+(?:-[a-z0-9]+)*\.md$`)

func checkDecisions(t *Tree) (looked int, found []Violation) {
	for _, name := range t.Paths {
		if path.Dir(name) != "docs/decisions" || path.Base(name) == "README.md" {
			continue
		}
		looked++
		m := decision.FindStringSubmatch(path.Base(name))
		if m == nil {
			found = append(found, Violation{At: name, What: "a decision is named NNN-words-in-lower-case.md"})
			continue
		}
		// Paths are sorted, so the numbers come in order: a gap or a number used twice shows at the first file after it.
		if want := fmt.Sprintf("%03d", looked); m[1] != want {
			found = append(found, Violation{At: name, What: fmt.Sprintf("the next number is %s", want)})
		}
		if first, _, _ := strings.Cut(t.Text[name], "\n"); !strings.HasPrefix(first, "# "+m[1]+". ") {
			found = append(found, Violation{At: name, What: fmt.Sprintf("the first line should be %q", "# "+m[1]+". title")})
		}
	}
	return looked, found
}

const dependencies = "docs/dependencies.md"

var dependencyRow = regexp.MustCompile("^\\|\\s*`([^`]+)`")

// testsOnly marks the row of a library that only tests import.
const testsOnly = "(tests only)"

// checkDependencies compares the modules of go.mod with the rows of docs/dependencies.md, each way, and the mark of those for tests with the imports.
func checkDependencies(t *Tree) (looked int, found []Violation) {
	var listed []string
	number := 0
	for line := range strings.Lines(t.Text[dependencies]) {
		number++
		m := dependencyRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		looked++
		listed = append(listed, m[1])
		if !slices.Contains(t.Requires, m[1]) {
			found = append(found, Violation{At: fmt.Sprintf("%s:%d", dependencies, number), What: fmt.Sprintf("go.mod does not require %s directly", m[1])})
			continue
		}
		if marked := strings.Contains(line, testsOnly); marked == t.shipped(m[1]) {
			found = append(found, Violation{At: fmt.Sprintf("%s:%d", dependencies, number), What: fmt.Sprintf("%s should bear the mark %s exactly if tests alone import it", m[1], testsOnly)})
		}
	}
	for _, module := range t.Requires {
		if !slices.Contains(listed, module) {
			found = append(found, Violation{At: "go.mod", What: fmt.Sprintf("%s has no row in %s", module, dependencies)})
		}
	}
	return looked, found
}

// shipped reports whether a file other than a test imports the module.
func (t *Tree) shipped(module string) bool {
	return slices.ContainsFunc(t.Go, func(file *GoFile) bool {
		if file.Test {
			return false
		}
		for importPath := range file.imports {
			if below(importPath, module) {
				return true
			}
		}
		return false
	})
}
