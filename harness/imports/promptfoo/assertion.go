package promptfoo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/score"
)

// assertion is an assertion as the source has it, from YAML or from a cell.
type assertion struct {
	kind      string // without not-
	not       bool
	value     strict.Node
	threshold strict.Node
	weight    strict.Node
	grader    strict.Node // who judges, where the assertion says so
	metric    string
	transform bool
	pos       failure.Position
}

func (a assertion) label() string {
	if a.not {
		return "not-" + a.kind
	}
	return a.kind
}

// check is what became of an assertion: a check, or a comment in its place.
type check struct {
	kind   string
	args   strict.Node // with the templates of a dataset; zero for a bare word
	not    bool
	weight *float64
	// threshold is stated for graded checks alone.
	threshold *float64
	name      string
	names     []string // of variables that the arguments use
	comment   string   // what to write instead; "" for a check
	label     string   // the assertion's type, as it is counted
	pos       failure.Position
}

// asProgram is how code of the user becomes a check.
const asProgram = `write it as a program: {command: [python3, checks/name.py]} gets the case in JSON and answers {"score": 1}`

// shownValue bounds what a comment tells of an assertion.
const shownValue = 300

// instead is the comment that stands for an assertion that is no check.
func (im *importer) instead(a assertion, class imports.Class) string {
	line := fmt.Sprintf("%s (%s): %s", class, im.place(a.pos), a.label())
	if !a.value.IsZero() {
		value := a.value.JSON()
		if r := []rune(value); len(r) > shownValue {
			value = string(r[:shownValue]) + "…"
		}
		line += ": " + value
	}
	if t := a.threshold; !t.IsZero() {
		line += ", threshold " + t.Text()
	}
	if a.metric != "" {
		line += ", metric " + strconv.Quote(a.metric)
	}
	return line
}

// assertions reads a list of assertions. With transformed, what they look at is made by code from the answer.
func (im *importer) assertions(n strict.Node, transformed bool) []check {
	if n.IsZero() || n.IsNull() {
		return nil
	}
	if n.Kind() != strict.Sequence {
		im.note(imports.Wrong, n.Pos(), "", "assert is no list")
		return nil
	}
	var list []check
	for _, entry := range n.Items() {
		list = append(list, im.assertion(entry, transformed, "")...)
	}
	return list
}

func (im *importer) assertion(n strict.Node, transformed bool, set string) []check {
	if n.Kind() != strict.Mapping {
		im.note(imports.Wrong, n.Pos(), "write {type: ..., value: ...}", "an assertion that is %s", n.Kind())
		return nil
	}
	if ref := n.Get("$ref"); !ref.IsZero() {
		a := assertion{kind: "$ref", value: ref, pos: n.Pos()}
		return []check{im.give(a, imports.Lost, "write the assertion out", "an assertion by reference")}
	}
	im.unknown(n, assertionKeys, "an assertion")
	a := assertion{value: n.Get("value"), threshold: n.Get("threshold"), weight: n.Get("weight"), grader: n.Get("provider"), metric: n.Get("metric").Text(), pos: n.Pos()}
	a.transform = transformed || !n.Get("transform").IsZero()
	if key := n.Get("rubricPrompt"); !key.IsZero() {
		im.note(imports.Lost, n.KeyPos("rubricPrompt"), "put what it asks for into the rubric", "rubricPrompt of an assertion")
	}
	kind := n.Get("type")
	if kind.Kind() != strict.String {
		a.kind = "(none)"
		im.note(imports.Wrong, n.Pos(), "write its type", "an assertion without a type")
		return []check{im.give(a, imports.Lost, "", "an assertion without a type")}
	}
	a.pos = kind.Pos()
	a.kind, a.not = strings.CutPrefix(kind.Text(), "not-")
	if set != "" && a.kind != "assert-set" {
		return []check{im.give(a, imports.Lost, "", "%s", set)}
	}
	if a.kind != "assert-set" {
		return []check{im.convert(a)}
	}
	return im.set(n, a, transformed, set)
}

// set reads a group of assertions. One without a threshold and a weight of its own asks for all of them, as the list around it does.
func (im *importer) set(n strict.Node, a assertion, transformed bool, outer string) []check {
	why := outer
	if why == "" && (!a.threshold.IsZero() || !a.weight.IsZero() || a.not) {
		why = "assertions in an assert-set with a threshold, a weight or not-"
	}
	var list []check
	if why != "" {
		list = append(list, im.give(a, imports.Lost, "a threshold on the item asks the weighted mean of its checks", "%s", why))
	} else {
		im.report.Count(a.label(), imports.Changed)
	}
	for _, entry := range n.Get("assert").Items() {
		list = append(list, im.assertion(entry, transformed, why)...)
	}
	return list
}

// give counts an assertion that becomes no check, notes why, and returns the comment.
func (im *importer) give(a assertion, class imports.Class, hint, format string, args ...any) check {
	im.note(class, a.pos, hint, format, args...)
	im.report.Count(a.label(), class)
	return check{comment: im.instead(a, class), pos: a.pos}
}

func (im *importer) convert(a assertion) check {
	fate, known := assertionTypes[a.kind]
	switch {
	case !known && strings.HasPrefix(a.kind, "promptfoo:redteam:"):
		return im.give(a, imports.Lost, "", "assertions of a red team")
	case !known:
		names := make([]string, 0, len(assertionTypes))
		for name := range assertionTypes {
			names = append(names, name)
		}
		slices.Sort(names)
		hint := ""
		if near, ok := strict.Nearest(a.kind, names); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		im.note(imports.Wrong, a.pos, hint, "unknown assertion type %q", a.kind)
		return im.give(a, imports.Lost, hint, "assertions of unknown type")
	case fate == byJudge:
		return im.give(a, imports.Lost, "add a provider of role judge, then write {judge: {rubric: ...}, threshold: 0.7}", "%s", a.kind)
	case fate == byTools:
		return im.give(a, imports.Lost, "declare the tools of the agent, then write {tool_calls: {match: subset, calls: [{name: ...}]}}", "%s", a.kind)
	case fate == missing:
		return im.give(a, imports.Lost, "there is no such check", "%s", a.kind)
	case fate == byCommand:
		return im.give(a, imports.Todo, asProgram, "%s", a.kind)
	case a.transform:
		return im.give(a, imports.Todo, asProgram, "assertions on a transformed answer")
	}
	if name, ok := im.ref(a.value.Text()); ok && a.value.Kind() == strict.String {
		if code(name) {
			return im.give(a, imports.Todo, asProgram, "assertions whose value is code")
		}
		value, ok := im.load(name, a.value)
		if !ok {
			return im.give(a, imports.Lost, "", "assertions whose value cannot be read")
		}
		a.value = value
	}
	c := check{not: a.not, pos: a.pos, label: a.label()}
	arguments := a.arguments
	if fate == byRubric {
		arguments = func(c *check) (string, string) { return im.rubric(a, c) }
	}
	if fate == byVectors {
		arguments = func(c *check) (string, string) { return im.similar(a, c) }
	}
	if why, hint := arguments(&c); why != "" {
		class := imports.Lost
		if strings.HasPrefix(why, "an assertion that cannot fail") || strings.HasPrefix(why, "an assertion without") {
			im.note(imports.Wrong, a.pos, hint, "%s: %s", a.label(), why)
		}
		return im.give(a, class, hint, "%s", why)
	}
	if problem := c.template(); problem != "" {
		return im.give(a, imports.Lost, "a dataset's template is {{name}} and nothing else: compute the value into a variable", "assertions with %s", problem)
	}
	if len(c.names) == 0 {
		if why := c.wrong(c.args, im); why != "" {
			return im.give(a, imports.Lost, "", "%s: %s", a.label(), why)
		}
	}
	im.modifiers(a, &c)
	im.report.Count(a.label(), imports.Changed)
	if a.kind == "contains-json" {
		im.note(imports.Changed, a.pos, "", "contains-json: the JSON is the answer or its only code block; promptfoo looks for it anywhere")
	}
	return c
}

// modifiers takes over weight, name and threshold.
func (im *importer) modifiers(a assertion, c *check) {
	if w := a.weight; !w.IsZero() {
		if f, err := strconv.ParseFloat(w.Text(), 64); err == nil && f >= 0 && f < 1e9 && (w.Kind() == strict.Int || w.Kind() == strict.Float) {
			if f != 1 {
				c.weight = &f
			}
		} else {
			im.note(imports.Wrong, w.Pos(), "", "a weight that is no number from 0")
		}
	}
	if isTemplate(a.metric) {
		im.note(imports.Lost, a.pos, "", "a metric whose name is a template")
	} else {
		c.name = strings.ReplaceAll(strings.TrimSpace(a.metric), "#", "-")
	}
	if !a.threshold.IsZero() && c.threshold == nil && a.kind != "cost" && a.kind != "latency" {
		im.note(imports.Wrong, a.threshold.Pos(), "", "a threshold on %s, which has no effect", a.kind)
	}
}

var anchoredNumber = regexp.MustCompile(`^[0-9]+$`)

// arguments finds kind and arguments of the check; why says that there is none.
func (a assertion) arguments(c *check) (why, hint string) {
	text, isText := scalarText(a.value)
	folded := strings.HasPrefix(a.kind, "i")
	switch a.kind {
	case "equals":
		if isText {
			c.kind, c.args = "equals", a.value.WithText(text)
			return "", ""
		}
		if a.value.IsZero() {
			return "an assertion without a value", ""
		}
		c.kind, c.args = "json_path", argument(`{"path":"$","equals":%s}`, a.value)
	case "contains", "icontains", "starts-with":
		if !isText {
			return "an assertion without a text as its value", ""
		}
		if text == "" {
			return "an assertion that cannot fail: its text is empty", "write what the answer must hold"
		}
		c.kind = map[string]string{"starts-with": "starts_with"}[a.kind]
		if c.kind == "" {
			c.kind = "contains"
		}
		c.args = a.value.WithText(text)
		if a.kind == "icontains" {
			c.args = argument(`{"value":%s,"ignore_case":true}`, c.args)
		}
	case "contains-all", "contains-any", "icontains-all", "icontains-any":
		list, ok := texts(a.value)
		if isText && !a.value.IsZero() {
			list, ok = splitList(text), true
		}
		if !ok || len(list) == 0 {
			return "an assertion without a list of texts as its value", ""
		}
		if slices.Contains(list, "") {
			return "an assertion that cannot fail: a text of its list is empty", "write what the answer must hold"
		}
		c.kind = "contains_" + a.kind[len(a.kind)-3:]
		c.args = listNode(list)
		if folded {
			c.args = argument(`{"values":%s,"ignore_case":true}`, c.args)
		}
	case "regex":
		if !isText {
			return "an assertion without a text as its value", ""
		}
		if text == "" {
			return "an assertion that cannot fail: its expression is empty", "write what the answer must match"
		}
		c.kind, c.args = "regex", a.value.WithText(text)
	case "is-json", "contains-json":
		fence := a.kind == "contains-json"
		schema := a.value
		if isText && text != "" {
			n, err := strict.Parse(a.pos.File, []byte(text))
			if err != nil || n.Kind() != strict.Mapping {
				return "a schema in a text that cannot be read", ""
			}
			schema = n
		}
		switch {
		case schema.IsZero() || schema.IsNull() || isText && text == "":
			c.kind = "json"
			if fence {
				c.args = argument(`{"fence":true}`)
			}
		case schema.Kind() != strict.Mapping:
			return "a schema that is no mapping", ""
		case fence:
			c.kind, c.args = "json_schema", argument(`{"schema":%s,"fence":true}`, schema)
		default:
			c.kind, c.args = "json_schema", schema
			if !schema.Get("schema").IsZero() {
				c.args = argument(`{"schema":%s}`, schema)
			}
		}
	case "latency":
		ms, err := strconv.ParseFloat(a.threshold.Text(), 64)
		if err != nil || ms < 0 || ms > 1e12 {
			return "an assertion without a threshold", "write threshold: 2000, in milliseconds"
		}
		c.kind, c.args = "latency", argument(`{"max":%s}`, strict.NewString(strconv.FormatInt(int64(ms), 10)+"ms"))
	case "cost":
		usd, err := strconv.ParseFloat(a.threshold.Text(), 64)
		if err != nil || usd < 0 {
			return "an assertion without a threshold", "write threshold: 0.01, in USD"
		}
		if _, err := money.FromFloat(usd); err != nil {
			return "a threshold that is no price", ""
		}
		c.kind, c.args = "cost", argument(`{"max_usd":%s}`, a.threshold)
	case "word-count":
		low, high, ok := wordBounds(a.value)
		if !ok {
			return "a number of words beyond what an expression can count", ""
		}
		c.kind, c.args = "regex", strict.NewString(words(low, high))
	}
	return "", ""
}

func scalarText(n strict.Node) (string, bool) {
	switch n.Kind() {
	case strict.String, strict.Int, strict.Float, strict.Bool:
		return n.Text(), true
	}
	return "", false
}

// argument parses JSON that is put together of nodes.
func argument(format string, parts ...strict.Node) strict.Node {
	args := make([]any, len(parts))
	for i, p := range parts {
		args[i] = p.JSON()
	}
	n, err := strict.ParseJSON("", 1, fmt.Appendf(nil, format, args...))
	if err != nil {
		return strict.Node{}
	}
	return n
}

func listNode(list []string) strict.Node {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strict.NewString(s).JSON())
	}
	n, err := strict.ParseJSON("", 1, []byte("["+b.String()+"]"))
	if err != nil {
		return strict.Node{}
	}
	return n
}

// splitList parts a text at commas, but for those in double quotes or behind a backslash.
func splitList(text string) []string {
	var list []string
	var b strings.Builder
	quoted, escaped := false, false
	flush := func() {
		list = append(list, strings.TrimSpace(b.String()))
		b.Reset()
	}
	for _, r := range text {
		switch {
		case escaped:
			if r != ',' && r != '"' {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"' && (quoted || strings.TrimSpace(b.String()) == ""):
			quoted = !quoted
		case r == ',' && !quoted:
			flush()
		default:
			b.WriteRune(r)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	flush()
	return list
}

// mostWords is how often an RE2 expression may repeat.
const mostWords = 1000

func wordBounds(n strict.Node) (low, high int, ok bool) {
	number := func(n strict.Node, otherwise int) int {
		if n.IsZero() {
			return otherwise
		}
		if !anchoredNumber.MatchString(n.Text()) || len(n.Text()) > 4 {
			return -1
		}
		i, _ := strconv.Atoi(n.Text())
		return i
	}
	if n.Kind() == strict.Mapping {
		low, high = number(n.Get("min"), 0), number(n.Get("max"), mostWords+1)
		if n.Get("min").IsZero() && n.Get("max").IsZero() {
			return 0, 0, false
		}
	} else {
		low = number(n, -1)
		high = low
	}
	return low, high, low >= 0 && high >= low && low <= mostWords && (high <= mostWords || n.Get("max").IsZero())
}

// words is an expression for an answer of low to high words; more than mostWords is without end.
func words(low, high int) string {
	switch {
	case high == 0:
		return `^\s*$`
	case high > mostWords && low == 0:
		return `^`
	case high > mostWords:
		return fmt.Sprintf(`^\s*(?:\S+\s+){%d,}\S+\s*$`, low-1)
	case low == 0:
		return fmt.Sprintf(`^\s*(?:(?:\S+\s+){0,%d}\S+\s*)?$`, high-1)
	}
	return fmt.Sprintf(`^\s*(?:\S+\s+){%d,%d}\S+\s*$`, low-1, high-1)
}

// template rewrites the templates in the arguments, and says what cannot be rewritten.
func (c *check) template() (problem string) {
	if c.args.IsZero() {
		return ""
	}
	seen := map[string]bool{}
	c.args = c.args.MapStrings(func(n strict.Node) strict.Node {
		if !isTemplate(n.Text()) {
			return n
		}
		t := parseTemplate(n.Text())
		if t.problem != "" && problem == "" {
			problem = t.problem
		}
		for _, name := range t.names() {
			if !seen[name] {
				seen[name] = true
				c.names = append(c.names, name)
			}
		}
		return n.WithText(t.ours())
	})
	return problem
}

// wrong says why the check cannot be made with these arguments, their templates filled in.
func (c *check) wrong(args strict.Node, im *importer) string {
	var p strict.Problems
	args = args.MapStrings(func(n strict.Node) strict.Node {
		return n.WithText(strings.ReplaceAll(n.Text(), `\{{`, "{{"))
	})
	score.Compile([]score.Spec{{Kind: c.kind, Args: args, Not: c.not, Threshold: c.threshold, Name: "check"}}, score.Env{ToolsUnknown: true, Judges: im.judgeIDs(roleJudge), Embedders: im.judgeIDs(roleEmbed)}, &p)
	all := p.All()
	if len(all) == 0 {
		return ""
	}
	text := all[0].Message
	if all[0].Hint != "" {
		text += " (" + all[0].Hint + ")"
	}
	return text
}

// filled are the arguments with the variables of an item; missing are the names that it does not have.
func (c *check) filled(vars map[string]strict.Node) (args strict.Node, missing []string) {
	args = c.args.MapStrings(func(n strict.Node) strict.Node {
		t := parseOurs(n.Text())
		if len(t.pieces) == 1 && t.pieces[0].name != "" {
			if v := follow(vars, t.pieces[0].name); !v.IsZero() {
				return v
			}
		}
		return n.WithText(t.render(func(name string) (string, bool) {
			v := follow(vars, name)
			if v.IsZero() {
				missing = append(missing, name)
			}
			return shown(v), true
		}))
	})
	return args, missing
}

// parseOurs takes a text apart that [template.ours] wrote.
func parseOurs(text string) template {
	var t template
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{{")
		if literal, ok := strings.CutSuffix(before, `\`); found && ok {
			t.pieces = append(t.pieces, piece{text: literal + "{{"})
			rest = after
			continue
		}
		if before != "" {
			t.pieces = append(t.pieces, piece{text: before})
		}
		if !found {
			break
		}
		var name string
		name, rest, _ = strings.Cut(after, "}}")
		t.pieces = append(t.pieces, piece{name: name})
	}
	return t
}

// value writes the check.
func (c *check) write() imports.Value {
	args := imports.Of(c.args)
	if c.args.IsZero() {
		args = imports.Literal("true")
		if !c.not && c.name == "" && c.weight == nil {
			return imports.Text(c.kind)
		}
	}
	v := imports.Map()
	switch {
	case c.not && c.args.IsZero():
		v.Set("not", imports.Text(c.kind))
	case c.not:
		v.Set("not", imports.Map(imports.Field{Key: c.kind, Value: args}))
	default:
		v.Set(c.kind, args)
	}
	if c.name != "" {
		v.Set("name", imports.Text(c.name))
	}
	if c.threshold != nil {
		v.Set("threshold", imports.Number(*c.threshold))
	}
	if c.weight != nil {
		v.Set("weight", imports.Number(*c.weight))
	}
	return v
}
