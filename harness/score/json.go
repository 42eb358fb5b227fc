package score

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"

	"github.com/echoeval/echoeval/core/strict"
)

// parse reads the JSON value that an answer is, or, with fence, that its only code block holds. why says what is wrong with the answer.
func parse(output string, fence bool) (n strict.Node, why string) {
	if strings.TrimSpace(output) == "" {
		return n, "the answer is empty"
	}
	if fence {
		blocks := fenced(output)
		switch {
		case len(blocks) == 1:
			output = blocks[0]
		case len(blocks) > 1:
			return n, fmt.Sprintf("the answer holds %d code blocks that may be meant", len(blocks))
		}
	}
	n, err := strict.ParseJSON("answer", 1, []byte(output))
	if err == nil {
		return n, ""
	}
	why = err.Error()
	if !fence && len(fenced(output)) == 1 {
		why += " (the JSON may stand in a code block; {fence: true} takes it from there)"
	}
	return strict.Node{}, why
}

// fenced returns the insides of the code blocks that are marked json, or, where none is, of those without a mark. A block that is not closed ends with the text (CommonMark 0.31, section 4.5).
func fenced(s string) []string {
	var marked, plain []string
	var open, info string
	var block strings.Builder
	flush := func() {
		switch strings.ToLower(info) {
		case "json":
			marked = append(marked, block.String())
		case "":
			plain = append(plain, block.String())
		}
		open = ""
		block.Reset()
	}
	for line := range strings.Lines(s) {
		text := strings.TrimRight(line, " \t\r\n")
		text = strings.TrimLeft(text, " ")
		mark := text[:len(text)-len(strings.TrimLeft(text, "`"))]
		if mark == "" {
			mark = text[:len(text)-len(strings.TrimLeft(text, "~"))]
		}
		switch {
		case open == "" && len(mark) >= 3:
			open = mark
			info, _, _ = strings.Cut(strings.TrimSpace(text[len(mark):]), " ")
		case open != "" && strings.HasPrefix(mark, open) && mark == text:
			flush()
		case open != "":
			block.WriteString(line)
		}
	}
	if open != "" {
		flush()
	}
	if len(marked) > 0 {
		return marked
	}
	return plain
}

func compileJSON(args strict.Node, a at) judge {
	var in struct {
		Fence bool `yaml:"fence"`
	}
	if !bare(args) {
		a.decode(args, &in, "json")
	}
	return func(_ context.Context, c *Case) (Verdict, error) {
		v := Verdict{Expected: "JSON", Actual: around(c.Output, 0)}
		n, why := parse(c.Output, in.Fence)
		if why != "" {
			v.Reason = why
			return v, nil
		}
		v.Score, v.Reason = 1, "the answer is "+n.Kind().String()+" in JSON"
		return v, nil
	}
}

// bare reports that a check without arguments is meant: {json: } and {json: true} besides the bare word.
func bare(args strict.Node) bool {
	return args.IsZero() || args.IsNull() || args.Kind() == strict.Bool && args.Text() == "true"
}

func compileJSONSchema(args strict.Node, a at) judge {
	schema, fence := args, false
	where := a
	if inner := args.Get("schema"); !inner.IsZero() {
		var in struct {
			Schema strict.Node `yaml:"schema"`
			Fence  bool        `yaml:"fence"`
		}
		a.decode(args, &in, "")
		schema, fence, where = inner, in.Fence, a.key("schema")
	}
	if schema.Kind() != strict.Mapping {
		where.decode(schema, &struct{}{}, "json_schema: {type: object, required: [a]}")
		return nil
	}
	resolved := resolve(schema, where)
	return func(_ context.Context, c *Case) (Verdict, error) {
		v := Verdict{Expected: cut(schema.JSON()), Actual: around(c.Output, 0)}
		n, why := parse(c.Output, fence)
		if why != "" {
			v.void, v.Reason = true, why
			return v, nil
		}
		if err := resolved.Validate(n.Any()); err != nil {
			v.Reason = cut(err.Error())
			return v, nil
		}
		v.Score, v.Reason = 1, "satisfies the schema"
		return v, nil
	}
}

// valueTests are tests on the values that a path selects.
type valueTests struct {
	Equals   strict.Node `yaml:"equals" doc:"the value that each is"`
	Contains strict.Node `yaml:"contains" doc:"what each text or list holds"`
	Matches  *string     `yaml:"matches" doc:"an RE2 expression that each text matches"`
	Min      strict.Node `yaml:"min" schema:"number" doc:"the least that each number is"`
	Max      strict.Node `yaml:"max" schema:"number" doc:"the most that each number is"`
	Exists   *bool       `yaml:"exists" doc:"whether there is a value"`
	Count    *int        `yaml:"count" schema:"count" doc:"how many there are"`

	source string
	path   *jsonpath.Path
	re     *regexp.Regexp
	bounds bounds
}

func compileJSONPath(args strict.Node, a at) judge {
	var t struct {
		Path  string `yaml:"path,required"`
		Fence bool   `yaml:"fence"`
		valueTests
	}
	a.decode(args, &t, "json_path: {path: $.name, equals: x}")
	if args.Kind() != strict.Mapping {
		return nil
	}
	if path := args.Get("path"); path.Kind() == strict.String {
		t.source, t.path = t.Path, parsePath(path, a.key("path"))
	}
	if !t.compile(args, a) {
		a.bad(args, "add one of equals, contains, matches, min, max, exists, count", "no test on what the path selects")
	}
	expected := cut(args.JSON())
	return func(_ context.Context, c *Case) (Verdict, error) {
		n, why := parse(c.Output, t.Fence)
		if why != "" {
			return Verdict{Expected: expected, Actual: around(c.Output, 0), Reason: why, void: true}, nil
		}
		v := t.judge(n)
		v.Expected = expected
		if v.Actual == "" {
			v.Actual = around(c.Output, 0)
		}
		return v, nil
	}
}

// parsePath compiles an RFC 9535 path, or says what is wrong with it.
func parsePath(n strict.Node, a at) *jsonpath.Path {
	path, err := jsonpath.Parse(n.Text())
	if err != nil {
		a.bad(n, "paths follow RFC 9535: $.items[0].name, $..id", "bad path %q: %s", n.Text(), strings.TrimPrefix(err.Error(), "jsonpath: "))
		return nil
	}
	return path
}

// compile prepares the tests and reports whether there is one.
func (t *valueTests) compile(args strict.Node, a at) bool {
	if t.Matches != nil {
		t.re = expression(*t.Matches, args.Get("matches"), a.key("matches"))
	}
	ranged := !t.Min.IsZero() || !t.Max.IsZero()
	if ranged {
		t.bounds = numberArgs{Min: t.Min, Max: t.Max}.bounds(args, a)
	}
	valued := !t.Equals.IsZero() || !t.Contains.IsZero() || t.Matches != nil || ranged
	absent := t.Exists != nil && !*t.Exists
	if absent && (valued || t.Count != nil) || valued && t.Count != nil && *t.Count == 0 {
		a.bad(args, "leave out the other tests", "a value that must not exist is tested")
	}
	if t.Count != nil && *t.Count < 0 {
		a.key("count").bad(args.Get("count"), "", "a negative count")
	}
	return valued || t.Exists != nil || t.Count != nil
}

func (t *valueTests) judge(root strict.Node) Verdict {
	located := t.path.SelectLocated(root.Any())
	fail := func(actual, format string, args ...any) Verdict {
		return Verdict{Actual: actual, Reason: fmt.Sprintf(format, args...)}
	}
	if t.Exists != nil && !*t.Exists {
		if len(located) > 0 {
			return fail("", "%s selects %s", t.source, located[0].Path)
		}
		return Verdict{Score: 1, Reason: t.source + " selects nothing"}
	}
	if t.Count != nil && len(located) != *t.Count {
		return fail("", "%s selects %d values, want %d", t.source, len(located), *t.Count)
	}
	if len(located) == 0 && t.Count == nil {
		return fail("", "%s selects nothing", t.source)
	}
	for _, l := range located {
		value := follow(root, l.Path)
		if why := t.test(value); why != "" {
			return fail(cut(value.JSON()), "%s: %s", l.Path, why)
		}
	}
	return Verdict{Score: 1, Reason: fmt.Sprintf("%s selects %d values, all as expected", t.source, len(located))}
}

// follow returns the value at a normalized path of a tree: the library works on plain Go values, which lose digits of large numbers.
func follow(n strict.Node, path spec.NormalizedPath) strict.Node {
	for _, step := range path {
		switch step := step.(type) {
		case spec.Name:
			n = n.Get(string(step))
		case spec.Index:
			n = n.Index(int(step))
		}
	}
	return n
}

// test says in what a selected value fails, or "".
func (t *valueTests) test(n strict.Node) string {
	show := func(n strict.Node) string { return excerpt(n.JSON(), 0, 80) }
	if !t.Equals.IsZero() && !same(t.Equals, n) {
		return "is " + show(n) + ", want " + show(t.Equals)
	}
	if !t.Contains.IsZero() && !holds(n, t.Contains) {
		return show(n) + " does not contain " + show(t.Contains)
	}
	if t.re != nil && (n.Kind() != strict.String || !t.re.MatchString(n.Text())) {
		return show(n) + " does not match " + quote(*t.Matches, 0)
	}
	if !t.Min.IsZero() || !t.Max.IsZero() {
		if n.Kind() != strict.Int && n.Kind() != strict.Float {
			return show(n) + " is no number"
		}
		if ok, why := t.bounds.hold(n.Text()); !ok {
			return why
		}
	}
	return ""
}

// holds reports whether a text holds a text, or a list an equal entry.
func holds(n, part strict.Node) bool {
	switch n.Kind() {
	case strict.String:
		return part.Kind() == strict.String && strings.Contains(n.Text(), part.Text())
	case strict.Sequence:
		for _, item := range n.Items() {
			if same(part, item) {
				return true
			}
		}
	}
	return false
}

// same reports whether two JSON values are equal: numbers as numbers, mappings whatever the order of their keys.
func same(a, b strict.Node) bool {
	if number(a) && number(b) {
		return sameNumber(a.Text(), b.Text())
	}
	if a.Kind() != b.Kind() || a.Len() != b.Len() || a.Text() != b.Text() {
		return false
	}
	for key, value := range a.Fields() {
		if !same(value, b.Get(key.Name)) {
			return false
		}
	}
	for i, item := range a.Items() {
		if !same(item, b.Index(i)) {
			return false
		}
	}
	return true
}

func number(n strict.Node) bool { return n.Kind() == strict.Int || n.Kind() == strict.Float }
