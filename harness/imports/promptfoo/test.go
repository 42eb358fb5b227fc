package promptfoo

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// variable is one of a test's vars.
type variable struct {
	name  string
	value strict.Node
}

// test is a test as the source lists it, or what all tests have in common.
type test struct {
	pos         failure.Position
	number      string // its place in the source, for an id where nothing better is there
	description string
	vars        []variable
	checks      []check
	asserted    bool // the source asks something of the answer
	threshold   *float64
	metadata    strict.Node
	providers   []string
	prompts     []string
	prefix      string
	suffix      string
	repeat      string
	whole       bool // lists of variables are not taken apart
	transformed bool
	noDefaults  bool
	skip        string      // why it cannot be asked as it is
	grader      strict.Node // who judges, where its options say so
}

func (t *test) get(name string) strict.Node {
	for _, v := range t.vars {
		if v.name == name {
			return v.value
		}
	}
	return strict.Node{}
}

func (t *test) set(name string, value strict.Node) {
	for i := range t.vars {
		if t.vars[i].name == name {
			t.vars[i].value = value
			return
		}
	}
	t.vars = append(t.vars, variable{name, value})
}

func (im *importer) defaultTest(n strict.Node) {
	if name, ok := im.ref(n.Text()); ok && n.Kind() == strict.String {
		if code(name) {
			im.note(imports.Lost, n.Pos(), "write the defaults out", "a defaultTest that code makes")
			return
		}
		file, ok := im.parse(name, n.Pos())
		if !ok {
			return
		}
		n = file
	}
	if n.Kind() != strict.Mapping {
		im.note(imports.Wrong, n.Pos(), "", "defaultTest is %s", n.Kind())
		return
	}
	im.defaults = im.test(n)
	if im.defaults.description != "" {
		im.note(imports.Lost, n.KeyPos("description"), "", "the description of defaultTest")
	}
}

// readTests reads what stands under tests: a list, a file, or an entry of either.
func (im *importer) readTests(n strict.Node) {
	switch n.Kind() {
	case strict.Missing, strict.Null:
	case strict.Sequence:
		for _, entry := range n.Items() {
			im.readTests(entry)
		}
	case strict.String:
		im.testFile(n)
	case strict.Mapping:
		if p := n.Get("path"); p.Kind() == strict.String && n.Get("vars").IsZero() && n.Get("assert").IsZero() {
			if !n.Get("config").IsZero() && !code(p.Text()) {
				im.note(imports.Lost, n.KeyPos("config"), "", "config of tests")
			}
			im.testFile(p)
			return
		}
		im.sources++
		t := im.test(n)
		t.number = "test-" + strconv.Itoa(im.sources)
		im.tests = append(im.tests, t)
	default:
		im.note(imports.Wrong, n.Pos(), "", "a test that is %s", n.Kind())
	}
}

func (im *importer) testFile(n strict.Node) {
	text := n.Text()
	name, ok := im.ref(text)
	switch {
	case !ok && strings.Contains(text, "://"):
		im.note(imports.Lost, n.Pos(), "save them as a .jsonl or .csv file and name that", "tests that are fetched from elsewhere")
		return
	case !ok:
		name = im.relative(text)
	}
	if code(name) {
		im.note(imports.Lost, n.Pos(), "save what it makes as a .yaml or .jsonl file and name that", "tests that code makes")
		return
	}
	files, err := im.Folder.Glob(name)
	if err != nil {
		im.unreadable(n.Pos(), err)
		return
	}
	for _, file := range files {
		switch strings.ToLower(path.Ext(file)) {
		case ".csv":
			im.csv(file, n.Pos())
		case ".jsonl":
			im.jsonl(file, n.Pos())
		case ".yaml", ".yml", ".json":
			if list, ok := im.parse(file, n.Pos()); ok {
				im.inside(file, func() { im.readTests(list) })
			}
		default:
			im.note(imports.Lost, n.Pos(), "save them as .yaml, .jsonl or .csv", "tests in a file of another kind, %s", path.Base(file))
		}
	}
}

func (im *importer) jsonl(name string, at failure.Position) {
	data, err := im.Folder.Read(name)
	if err != nil {
		im.unreadable(at, err)
		return
	}
	for n, err := range strict.Lines(im.shown(name), strings.NewReader(string(data)), 8<<20) {
		im.lenient(err)
		if n.Kind() == strict.Mapping {
			im.readTests(n)
		} else if err == nil {
			im.note(imports.Wrong, n.Pos(), "", "a test that is %s", n.Kind())
		}
	}
}

// test reads one test.
func (im *importer) test(n strict.Node) test {
	im.unknown(n, testKeys, "a test")
	t := test{pos: n.Pos(), description: strings.TrimSpace(n.Get("description").Text())}
	im.options(n.Get("options"), &t)
	im.vars(n.Get("vars"), &t)
	im.grader = t.grader
	t.checks = im.assertions(n.Get("assert"), t.transformed || im.defaults.transformed)
	im.grader = strict.Node{}
	t.asserted = n.Get("assert").Len() > 0
	if v := n.Get("threshold"); !v.IsZero() {
		f, err := strconv.ParseFloat(v.Text(), 64)
		if err != nil || f < 0 || f > 1 {
			im.note(imports.Wrong, v.Pos(), "a fraction from 0 to 1", "a threshold that no mean can be compared with")
		} else {
			t.threshold = &f
		}
	}
	if m := n.Get("metadata"); m.Kind() == strict.Mapping && m.Len() > 0 {
		t.metadata = m
	}
	if p := n.Get("provider"); !p.IsZero() {
		id := p
		if p.Kind() == strict.Mapping {
			id = p.Get("id")
		}
		t.providers = append(t.providers, id.Text())
	}
	for _, p := range n.Get("providers").Items() {
		t.providers = append(t.providers, p.Text())
	}
	for _, p := range n.Get("prompts").Items() {
		t.prompts = append(t.prompts, p.Text())
	}
	for _, key := range []string{"assertScoringFunction", "providerOutput"} {
		if !n.Get(key).IsZero() {
			hint := "the score of an item is the weighted mean of its checks"
			if key == "providerOutput" {
				hint = "the provider script answers what its item's script says"
			}
			im.note(imports.Lost, n.KeyPos(key), hint, "%s", key)
		}
	}
	return t
}

func (im *importer) options(n strict.Node, t *test) {
	im.unknown(n, optionKeys, "a test's options")
	for key, v := range n.Fields() {
		switch key.Name {
		case "prefix":
			t.prefix = v.Text()
		case "suffix":
			t.suffix = v.Text()
		case "disableVarExpansion":
			t.whole = v.Text() == "true"
		case "disableDefaultAsserts":
			t.noDefaults = v.Text() == "true"
		case "repeat":
			if v.Kind() == strict.Int && len(v.Text()) < 5 && v.Text()[0] != '-' && v.Text() != "0" {
				t.repeat = v.Text()
			}
		case "transform", "postprocess":
			t.transformed = true
			im.note(imports.Todo, key.Pos(), asProgram, "options.%s", key.Name)
		case "transformVars":
			t.skip = "its variables are made by code"
			im.note(imports.Lost, key.Pos(), "write out what the code makes of the variables", "options.transformVars")
		case "storeOutputAs":
			im.note(imports.Lost, key.Pos(), "several turns are one item", "options.storeOutputAs")
		case "runSerially", "disableConversationVar":
			// Items never share anything, so that nothing is lost.
		case "provider":
			t.grader = v
		case "rubricPrompt", "factuality":
			im.note(imports.Lost, key.Pos(), "put what they ask for into the rubrics", "options.%s", key.Name)
		case "response_format", "responseFormat":
			im.note(imports.Lost, key.Pos(), "", "options.%s", key.Name)
		}
	}
}

// vars reads the variables of a test, which may stand in files.
func (im *importer) vars(n strict.Node, t *test) {
	switch n.Kind() {
	case strict.Missing, strict.Null:
		return
	case strict.String:
		im.varsFile(n, t)
		return
	case strict.Sequence:
		for _, entry := range n.Items() {
			im.varsFile(entry, t)
		}
		return
	case strict.Mapping:
	default:
		im.note(imports.Wrong, n.Pos(), "", "vars is %s", n.Kind())
		return
	}
	for key, v := range n.Fields() {
		if strings.TrimSpace(key.Name) == "" {
			im.note(imports.Wrong, key.Pos(), "", "a variable without a name")
			continue
		}
		t.set(key.Name, im.variable(v, t))
	}
}

func (im *importer) varsFile(n strict.Node, t *test) {
	name, ok := im.ref(n.Text())
	if !ok {
		name = im.relative(n.Text())
	}
	files, err := im.Folder.Glob(name)
	if err != nil {
		im.unreadable(n.Pos(), err)
		return
	}
	for _, file := range files {
		if code(file) {
			im.note(imports.Lost, n.Pos(), "write the variables out", "variables that code makes")
			t.skip = "its variables are made by code"
			continue
		}
		if m, ok := im.parse(file, n.Pos()); ok {
			im.inside(file, func() { im.vars(m, t) })
		}
	}
}

// variable reads a value. Numbers and the like become the text that they are in a prompt.
func (im *importer) variable(v strict.Node, t *test) strict.Node {
	switch v.Kind() {
	case strict.String:
		if name, ok := im.ref(v.Text()); ok {
			return im.variableFile(name, v, t)
		}
		return v
	case strict.Int, strict.Float, strict.Bool, strict.Null:
		return v.WithText(scalar(v))
	}
	return v
}

// scalar is how JavaScript writes a number, a boolean or null in a text.
func scalar(n strict.Node) string {
	if n.Kind() == strict.Float {
		if f, err := strconv.ParseFloat(n.Text(), 64); err == nil && f > -1e21 && f < 1e21 {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	return shown(n)
}

func (im *importer) variableFile(name string, v strict.Node, t *test) strict.Node {
	switch {
	case code(name):
		im.note(imports.Lost, v.Pos(), "write the value out", "a variable that code makes")
		t.skip = "a variable is made by code"
	case hasSuffix(name, mediaFiles):
		im.note(imports.Lost, v.Pos(), "write the input as parts: [{text: ...}, {image: path}]", "an image, sound or document in a variable")
		t.skip = "a variable holds an image, a sound or a document: write the input as parts"
	default:
		if value, ok := im.load(name, v); ok {
			return value
		}
		t.skip = "a variable cannot be read: " + path.Base(name)
	}
	return v
}

// load reads a file that stands for a value: structured by its ending, else text.
func (im *importer) load(name string, at strict.Node) (strict.Node, bool) {
	if hasSuffix(name, []string{".yaml", ".yml", ".json"}) {
		return im.parse(name, at.Pos())
	}
	data, err := im.Folder.Read(name)
	if err != nil {
		im.unreadable(at.Pos(), err)
		return strict.Node{}, false
	}
	return at.WithText(strings.TrimSpace(strings.TrimPrefix(strings.ToValidUTF8(string(data), "\ufffd"), "\ufeff"))), true
}

// scenarios multiplies the variables of each scenario with its tests.
func (im *importer) scenarios(n strict.Node) {
	if n.Kind() == strict.String {
		im.scenarioFile(n)
		return
	}
	for i, s := range n.Items() {
		if s.Kind() == strict.String {
			im.scenarioFile(s)
			continue
		}
		im.scenario(s, i+1)
	}
}

func (im *importer) scenarioFile(n strict.Node) {
	name, ok := im.ref(n.Text())
	if !ok || code(name) {
		im.note(imports.Lost, n.Pos(), "write the scenario out", "a scenario that is no file of data")
		return
	}
	files, err := im.Folder.Glob(name)
	if err != nil {
		im.unreadable(n.Pos(), err)
		return
	}
	for _, file := range files {
		if s, ok := im.parse(file, n.Pos()); ok {
			im.inside(file, func() {
				if s.Kind() == strict.Sequence {
					im.scenarios(s)
				} else {
					im.scenario(s, 0)
				}
			})
		}
	}
}

func (im *importer) scenario(n strict.Node, number int) {
	im.unknown(n, []string{"config", "description", "tests"}, "a scenario")
	var sets []test
	for _, c := range n.Get("config").Items() {
		if c.Kind() != strict.Mapping || !c.Get("$values").IsZero() || !c.Get("$expand").IsZero() {
			im.note(imports.Lost, c.Pos(), "write the variables out", "a reference in the config of a scenario")
			continue
		}
		sets = append(sets, im.test(c))
	}
	if len(sets) == 0 {
		sets = []test{{}}
	}
	before := len(im.tests)
	im.readTests(n.Get("tests"))
	own := slices.Clone(im.tests[before:])
	im.tests = im.tests[:before]
	if len(own) == 0 {
		own = []test{{pos: n.Pos()}}
	}
	for i, set := range sets {
		for k, t := range own {
			merged := t
			merged.number = fmt.Sprintf("scenario-%d-%d-%d", number, i+1, k+1)
			merged.vars = nil
			for _, v := range slices.Concat(set.vars, t.vars) {
				merged.set(v.name, v.value)
			}
			merged.checks = slices.Concat(set.checks, t.checks)
			merged.asserted = set.asserted || t.asserted
			if merged.skip == "" {
				merged.skip = set.skip
			}
			if merged.threshold == nil {
				merged.threshold = set.threshold
			}
			if merged.metadata.IsZero() {
				merged.metadata = set.metadata
			}
			if merged.description == "" {
				merged.description = set.description
			}
			merged.prefix, merged.suffix = set.prefix+t.prefix, t.suffix+set.suffix
			im.tests = append(im.tests, merged)
		}
	}
}
