package score

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/echoeval/echoeval/core/strict"
)

// form says what does not count when texts are compared. The zero value compares exactly.
type form struct {
	IgnoreCase        bool   `yaml:"ignore_case"`
	Trim              bool   `yaml:"trim"`
	CollapseSpace     bool   `yaml:"collapse_space"`
	IgnorePunctuation bool   `yaml:"ignore_punctuation"`
	Unicode           string `yaml:"unicode"`
}

func (f form) check(n strict.Node, a at) {
	if value := n.Get("unicode"); value.Kind() == strict.String && f.Unicode != "nfc" {
		a.key("unicode").bad(value, "leave it out to compare as written, or write nfc", "unknown form %q", f.Unicode)
	}
}

// apply brings a text into the form, in this order: composition, case, punctuation, white space within, white space at the ends.
func (f form) apply(s string) string {
	if f.Unicode == "nfc" {
		s = norm.NFC.String(s)
	}
	if f.IgnoreCase {
		s = strings.Map(fold, s)
	}
	if f.IgnorePunctuation {
		s = strings.Map(func(r rune) rune {
			if unicode.IsPunct(r) {
				return -1
			}
			return r
		}, s)
	}
	if f.CollapseSpace {
		s = collapse(s)
	}
	if f.Trim {
		s = strings.TrimSpace(s)
	}
	return s
}

// fold returns the same character for all that differ only in case.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' { // the Kelvin sign folds to k
		least += 'a' - 'A'
	}
	return least
}

func collapse(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// relaxations are the differences that a failed comparison is explained by, each with the option that ignores it.
var relaxations = []struct {
	what, option string
	relax        func(*form)
}{
	{"Unicode normalisation", "unicode: nfc", func(f *form) { f.Unicode = "nfc" }},
	{"the case", "ignore_case: true", func(f *form) { f.IgnoreCase = true }},
	{"white space at the ends", "trim: true", func(f *form) { f.Trim = true }},
	{"white space", "trim: true, collapse_space: true", func(f *form) { f.Trim, f.CollapseSpace = true, true }},
	{"punctuation", "ignore_punctuation: true", func(f *form) { f.IgnorePunctuation = true }},
	{"case, white space and punctuation", "ignore_case: true, trim: true, collapse_space: true, ignore_punctuation: true", func(f *form) {
		*f = form{IgnoreCase: true, Trim: true, CollapseSpace: true, IgnorePunctuation: true, Unicode: "nfc"}
	}},
}

// explained is the longest answer for which a failed comparison is tried again in other forms.
const explained = 1 << 20

// hint says which single difference makes the comparison fail, or "".
func (f form) hint(output string, holds func(form) bool) string {
	if len(output) > explained {
		return ""
	}
	for _, r := range relaxations {
		relaxed := f
		r.relax(&relaxed)
		if relaxed != f && holds(relaxed) {
			return fmt.Sprintf("; only %s differs ({%s} ignores it)", r.what, r.option)
		}
	}
	return ""
}

// text decodes a text or {value, options}.
func text(n strict.Node, a at) (string, form) {
	if n.Kind() != strict.Mapping {
		var value string
		a.decode(n, &value, "a text")
		return value, form{}
	}
	var value string
	f := options(n, "value", a)
	if v := n.Get("value"); v.IsZero() && n.Misspells(append(strict.Keys(f), "value"), "value") {
		return value, f
	} else if v.IsZero() {
		a.bad(n, "add it: value: ...", "key %q is missing", "value")
	} else {
		strict.Decode(v, &value, a.Key("value"))
	}
	return value, f
}

// options decodes the options beside the key main.
func options(n strict.Node, main string, a at) form {
	var f form
	fields := make([]strict.Field, 0, n.Len())
	known := append(strict.Keys(f), main)
	for key, value := range n.Fields() {
		switch {
		case key.Name == main:
		case !slices.Contains(known, key.Name):
			a.Unknown(key, known)
		default:
			fields = append(fields, strict.Field{Key: key, Value: value})
		}
	}
	strict.Decode(n.NewMapping(fields), &f, a.Problems)
	f.check(n, a)
	return f
}

// list decodes a list of texts or {values, options}; an empty one is a mistake.
func list(n strict.Node, a at) ([]string, form) {
	var f form
	values, inner := n, a
	if n.Kind() == strict.Mapping {
		f = options(n, "values", a)
		values, inner = n.Get("values"), a.key("values")
		if values.IsZero() && n.Misspells(append(strict.Keys(f), "values"), "values") {
			return nil, f
		}
		if values.IsZero() {
			a.bad(n, "add it: values: [...]", "key %q is missing", "values")
			return nil, f
		}
	}
	var texts []string
	inner.decode(values, &texts, "a list of texts: [a, b]")
	if values.Kind() == strict.Sequence && values.Len() == 0 {
		inner.bad(values, "name at least one text", "the list is empty")
	}
	for i, item := range values.Items() {
		if item.Kind() == strict.String {
			notEmpty(f, texts[i], item, inner.index(i))
		}
	}
	return texts, f
}

// notEmpty refuses a text that stands in every answer.
func notEmpty(f form, s string, n strict.Node, a at) {
	if f.apply(s) == "" {
		what := "the text is empty"
		if s != "" {
			what = "with these options nothing is left of the text"
		}
		a.bad(n, "it would stand in every answer", "%s", what)
	}
}

func compileEquals(args strict.Node, a at) judge {
	want, f := text(args, a)
	normal := f.apply(want)
	return func(_ context.Context, c *Case) (Verdict, error) {
		got := f.apply(c.Output)
		if got == normal {
			return Verdict{Score: 1, Expected: around(want, 0), Actual: around(c.Output, 0), Reason: "equal"}, nil
		}
		i := difference(normal, got)
		v := Verdict{Expected: around(normal, i), Actual: around(got, i)}
		switch {
		case c.Output == "":
			v.Reason = "the answer is empty"
		case i == len(got):
			v.Reason = fmt.Sprintf("ends after %d characters, before %s", character(got, i)-1, quote(normal, i))
		case i == len(normal):
			v.Reason = fmt.Sprintf("goes on after %d characters with %s", character(got, i)-1, quote(got, i))
		default:
			v.Reason = fmt.Sprintf("differs at character %d: want %s, got %s", character(got, i), quote(normal, i), quote(got, i))
		}
		v.Reason += f.hint(c.Output, func(g form) bool { return g.apply(c.Output) == g.apply(want) })
		return v, nil
	}
}

func compileContains(args strict.Node, a at) judge {
	want, f := text(args, a)
	if isText(args) {
		notEmpty(f, want, args, a)
	}
	return containing(want, f, strings.Index, "not found", func(g form, output string) bool {
		return strings.Contains(g.apply(output), g.apply(want))
	})
}

func compileStartsWith(args strict.Node, a at) judge {
	want, f := text(args, a)
	if isText(args) {
		notEmpty(f, want, args, a)
	}
	start := func(s, prefix string) int {
		if strings.HasPrefix(s, prefix) {
			return 0
		}
		return -1
	}
	return containing(want, f, start, "does not begin with it", func(g form, output string) bool {
		return strings.HasPrefix(g.apply(output), g.apply(want))
	})
}

// isText reports that the arguments have the shape of a text, so that it can be looked at.
func isText(args strict.Node) bool {
	return args.Kind() == strict.String || args.Get("value").Kind() == strict.String
}

func containing(want string, f form, index func(s, part string) int, missing string, holds func(form, string) bool) judge {
	normal := f.apply(want)
	expected := around(want, 0)
	return func(_ context.Context, c *Case) (Verdict, error) {
		got := f.apply(c.Output)
		if i := index(got, normal); i >= 0 {
			return Verdict{Score: 1, Expected: expected, Actual: around(got, i), Reason: fmt.Sprintf("found at character %d", character(got, i))}, nil
		}
		v := Verdict{Expected: expected, Actual: around(got, 0), Reason: missing}
		if c.Output == "" {
			v.Reason = "the answer is empty"
		}
		v.Reason += f.hint(c.Output, func(g form) bool { return holds(g, c.Output) })
		return v, nil
	}
}

func compileContainsAll(args strict.Node, a at) judge {
	want, f := list(args, a)
	return several(want, f, func(found int) float64 { return float64(found) / float64(len(want)) })
}

func compileContainsAny(args strict.Node, a at) judge {
	want, f := list(args, a)
	return several(want, f, func(found int) float64 { return hold(found > 0) })
}

func several(want []string, f form, score func(found int) float64) judge {
	normal := make([]string, len(want))
	quoted := make([]string, len(want))
	for i, w := range want {
		normal[i], quoted[i] = f.apply(w), quote(w, 0)
	}
	expected := cut(strings.Join(quoted, ", "))
	return func(_ context.Context, c *Case) (Verdict, error) {
		got := f.apply(c.Output)
		var missing []string
		first := 0
		for i, w := range normal {
			at := strings.Index(got, w)
			if at < 0 {
				missing = append(missing, quoted[i]+f.hint(c.Output, func(g form) bool { return strings.Contains(g.apply(c.Output), g.apply(want[i])) }))
			} else if len(missing) == i {
				first = at
			}
		}
		v := Verdict{Score: score(len(want) - len(missing)), Expected: expected, Actual: around(got, first)}
		switch {
		case c.Output == "":
			v.Reason = "the answer is empty"
		case len(missing) == 0:
			v.Reason = fmt.Sprintf("found all %d", len(want))
		default:
			v.Reason = fmt.Sprintf("found %d of %d; missing: %s", len(want)-len(missing), len(want), strings.Join(missing, ", "))
		}
		return v, nil
	}
}

func compileRegex(args strict.Node, a at) judge {
	var pattern string
	a.decode(args, &pattern, "an expression: regex: \"[0-9]+\"")
	re := expression(pattern, args, a)
	if re != nil && pattern == "" {
		a.bad(args, "it would match every answer", "the expression is empty")
	}
	return func(_ context.Context, c *Case) (Verdict, error) {
		v := Verdict{Expected: cut(pattern)}
		match := re.FindStringIndex(c.Output)
		if match == nil {
			v.Actual, v.Reason = around(c.Output, 0), "no match"
			if c.Output == "" {
				v.Reason = "no match; the answer is empty"
			}
			return v, nil
		}
		v.Score, v.Actual = 1, around(c.Output, match[0])
		v.Reason = fmt.Sprintf("matches %s at character %d", quote(c.Output[:match[1]], match[0]), character(c.Output, match[0]))
		return v, nil
	}
}

// expression compiles a regular expression, or says what is wrong with it.
func expression(pattern string, n strict.Node, a at) *regexp.Regexp {
	re, err := expressions.compile(pattern)
	if err == nil {
		return re
	}
	message, hint := err.Error(), "the syntax is RE2's"
	var syntaxErr *syntax.Error
	if errors.As(err, &syntaxErr) {
		message = fmt.Sprintf("%s: %s", syntaxErr.Code, syntaxErr.Expr)
		if syntaxErr.Code == syntax.ErrInvalidPerlOp {
			hint = "the syntax is RE2's: it has no look-around and no back references"
		}
	}
	a.bad(n, hint, "bad expression: %s", message)
	return nil
}
