// Package promptfoo reads configurations of promptfoo and makes datasets of them.
//
// Prompts become the agent and the input of the items, providers the columns, defaultTest the defaults, tests and scenarios the items, assertions the checks. The variables of a prompt stay variables. What a dataset cannot say stays in its place as a comment and is told in the report with its line.
//
// promptfoo forgives much: keys that it does not know, variables that nobody defines, assertions that cannot fail. The report says so; the dataset then holds what promptfoo did, where that can be said.
package promptfoo

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// Options say what [Import] knows beside the configuration.
type Options struct {
	// Name is the dataset's.
	Name string
	// Vendors are the providers that this program has; the columns of others cannot run.
	Vendors []string
	// Providers are columns beside those of the configuration, each vendor:model.
	Providers []string
	// Folder is where the configuration lies: files that it names are read from there.
	Folder imports.Folder
}

// mostItems bounds what the combinations of lists of variables may come to.
const mostItems = 200_000

// importer is one import at work.
type importer struct {
	Options
	file    string // the name of the configuration, for places
	report  imports.Report
	reading []string // the files that are being read, which must not name themselves

	prompts  []prompt
	columns  []column
	judges   []judge
	grader   strict.Node // that of the test which is being read
	defaults test
	tests    []test
	repeat   string
	timeout  string
	tags     []string
	sources  int // tests as the source lists them
}

// Import reads a configuration. file is its name for places, relative to where the user stands.
//
// The error says why no dataset can be made of it; the result then holds the report and no files.
func Import(file string, data []byte, o Options) (imports.Result, error) {
	im := &importer{Options: o, file: file}
	n, err := strict.Parse(file, data)
	if n.IsZero() {
		return imports.Result{}, err
	}
	im.lenient(err)
	if n.Kind() != strict.Mapping {
		return imports.Result{}, failure.WithHint(failure.At(n.Pos(), failure.Input, "want a mapping with prompts, providers and tests, got %s", n.Kind()), "a configuration of promptfoo is a mapping; for traces give a .json file")
	}
	im.config(n)
	if len(im.tests) == 0 {
		err := im.noTests(n)
		return imports.Result{Report: im.report}, err
	}
	files, err := im.write(n)
	if err != nil {
		return imports.Result{Report: im.report}, err
	}
	return imports.Result{Files: files, Report: im.report}, nil
}

// Is reports whether a document looks like a configuration.
func Is(n strict.Node) bool {
	for _, key := range []string{"prompts", "providers", "targets", "tests", "redteam", "scenarios", "defaultTest"} {
		if !n.Get(key).IsZero() {
			return n.Get("version").IsZero() || n.Get("items").IsZero()
		}
	}
	return false
}

// lenient notes what a strict reading of a file found and promptfoo forgives.
func (im *importer) lenient(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // only an outermost join is split
		for _, e := range joined.Unwrap() {
			im.lenient(e)
		}
		return
	}
	pos, _ := failure.PositionOf(err)
	im.note(imports.Wrong, pos, strings.Join(failure.Hints(err), "; "), "%s", failure.Message(err))
}

func (im *importer) note(class imports.Class, pos failure.Position, hint, format string, args ...any) {
	im.report.Add(class, pos, hint, format, args...)
}

func (im *importer) noTests(n strict.Node) error {
	at := n.Pos()
	if tests := n.KeyPos("tests"); !n.Get("tests").IsZero() {
		at = tests
	}
	switch {
	case !n.Get("redteam").IsZero():
		return failure.WithHint(failure.At(n.KeyPos("redteam"), failure.Input, "no tests: promptfoo makes those of a red team while it runs"), "promptfoo redteam generate writes them to a file; import that")
	case n.Get("tests").IsZero() && n.Get("scenarios").IsZero():
		return failure.WithHint(failure.At(at, failure.Input, "no tests"), "write tests: [...] in the configuration")
	}
	return failure.WithHint(failure.At(at, failure.Input, "no tests that can be read; the report says why"), "save the tests as a .yaml, .json, .jsonl or .csv file and name that")
}

func (im *importer) config(n strict.Node) {
	im.unknown(n, fileKeys, "a configuration")
	im.readPrompts(n)
	providers := n.Get("providers")
	if providers.IsZero() {
		providers = n.Get("targets")
	} else if !n.Get("targets").IsZero() {
		im.note(imports.Wrong, n.KeyPos("targets"), "", "targets beside providers: one of the two counts")
	}
	im.readProviders(providers)
	for _, id := range im.Providers {
		im.providerText(id, failure.Position{}, strict.Node{})
	}
	im.nameColumns()
	if d := n.Get("defaultTest"); !d.IsZero() {
		im.defaultTest(d)
	}
	im.readTests(n.Get("tests"))
	im.scenarios(n.Get("scenarios"))
	for key, value := range n.Fields() {
		im.other(key, value)
	}
}

// other handles the keys of the file beside prompts, providers and tests.
func (im *importer) other(key strict.Key, value strict.Node) {
	lost := func(hint string) { im.note(imports.Lost, key.Pos(), hint, "%s", key.Name) }
	switch key.Name {
	case "redteam":
		lost("attacks are made by promptfoo; what it generated can be imported as tests")
	case "scenarios", "prompts", "providers", "targets", "tests", "defaultTest", "description", "$schema":
	case "tags":
		for name, v := range value.Fields() {
			tag := name.Name + "=" + v.Text()
			if strings.ContainsAny(tag, " ,\t\n") || strings.HasPrefix(tag, "!") || v.Kind() != strict.String {
				im.note(imports.Lost, name.Pos(), "a tag is one word", "a tag of more than a word")
				continue
			}
			im.tags = append(im.tags, tag)
		}
	case "evaluateOptions":
		im.evaluateOptions(value)
	case "env":
		lost("set the variables where the command runs; a dataset holds no environment")
	case "extensions", "nunjucksFilters":
		lost("it is code")
	case "derivedMetrics":
		lost("formulas over metrics are not in the format")
	case "metadata":
		lost("give it to defaults: {metadata: {...}} where items should have it")
	case "commandLineOptions", "outputPath", "sharing", "tracing", "writeLatestResults":
		lost("the command line says how a run is done and reported: echoeval run --help")
	}
}

func (im *importer) evaluateOptions(n strict.Node) {
	for key, v := range n.Fields() {
		switch key.Name {
		case "repeat":
			if v.Kind() == strict.Int && len(v.Text()) < 5 && v.Text() > "0" && v.Text()[0] != '-' {
				im.repeat = v.Text()
				continue
			}
			im.note(imports.Wrong, v.Pos(), "", "repeat is no whole number from 1")
		case "timeoutMs":
			if d, err := time.ParseDuration(v.Text() + "ms"); err == nil && d > 0 && d <= 24*time.Hour {
				im.timeout = d.String()
			}
		case "maxConcurrency":
			im.note(imports.Lost, key.Pos(), "on the command line: --concurrency "+v.Text(), "evaluateOptions.maxConcurrency")
		case "cache", "delay", "showProgressBar", "maxEvalTimeMs", "generateSuggestions", "eventSource", "interactiveProviders":
			im.note(imports.Lost, key.Pos(), "the command line says how a run is done: echoeval run --help", "evaluateOptions.%s", key.Name)
		default:
			im.note(imports.Wrong, key.Pos(), strict.Suggest(key.Name, []string{"repeat", "timeoutMs", "maxConcurrency", "cache", "delay", "showProgressBar", "maxEvalTimeMs"}), "unknown key %q of evaluateOptions", key.Name)
		}
	}
}

// unknown notes keys that promptfoo does not know, and so ignores.
func (im *importer) unknown(n strict.Node, known []string, what string) {
	for key := range n.Fields() {
		if !slices.Contains(known, key.Name) {
			im.note(imports.Wrong, key.Pos(), strict.Suggest(key.Name, known), "unknown key %q of %s", key.Name, what)
		}
	}
}

// ref tells a file:// reference, and gives its path relative to the folder of the configuration.
func (im *importer) ref(text string) (string, bool) {
	name, ok := strings.CutPrefix(text, "file://")
	if !ok {
		return "", false
	}
	return im.relative(name), true
}

// relative makes a path of a file relative to the folder of the configuration; promptfoo resolves all of them from there.
func (im *importer) relative(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Clean(name)
}

// shown is the name of a file for places: as seen from where the user stands.
func (im *importer) shown(name string) string {
	if path.IsAbs(name) {
		return path.Base(name)
	}
	return path.Join(path.Dir(im.file), name)
}

// place is a place as the dataset's comments name it: the same from wherever the import was asked for.
func (im *importer) place(pos failure.Position) string {
	name := strings.TrimPrefix(pos.File, strings.TrimSuffix(im.file, path.Base(im.file)))
	return fmt.Sprintf("%s:%d", name, pos.Line)
}

// code reports whether a reference names code, such as tests.py:make.
func code(name string) bool {
	base, _, _ := strings.Cut(path.Base(name), ":")
	return hasSuffix(base, codeFiles)
}

// parse reads a file that the configuration names as YAML or JSON.
func (im *importer) parse(name string, at failure.Position) (strict.Node, bool) {
	if slices.Contains(im.reading, name) {
		im.note(imports.Wrong, at, "remove the reference", "files that name each other in a circle")
		return strict.Node{}, false
	}
	data, err := im.Folder.Read(name)
	if err != nil {
		im.unreadable(at, err)
		return strict.Node{}, false
	}
	n, err := strict.Parse(im.shown(name), data)
	im.lenient(err)
	return n, !n.IsZero()
}

func (im *importer) unreadable(at failure.Position, err error) {
	im.note(imports.Wrong, at, strings.Join(failure.Hints(err), "; "), "%s", err)
}

// inside runs a function while a file is being read.
func (im *importer) inside(name string, f func()) {
	im.reading = append(im.reading, name)
	f()
	im.reading = im.reading[:len(im.reading)-1]
}

func tooMany(at failure.Position) error {
	return failure.WithHint(failure.At(at, failure.Input, "the combinations of variables come to more than %d tests", mostItems), "import fewer, or write the lists of variables out as a .jsonl file")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
