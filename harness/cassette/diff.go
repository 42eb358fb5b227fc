package cassette

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Difference says how a request differs from a recorded one.
type Difference struct {
	// Changes are the first change of each class that holds, in the order of the classes; the first of them says what the difference is about.
	Changes []Change
	// Count is the number of paths that differ, Prefix that of messages at the beginning that do not.
	Count, Prefix int
}

// Change is one path at which two requests differ.
type Change struct {
	Class Class
	// Path is where: a path of JSON in the body such as messages[3].content, or method, url, headers.NAME, body.
	Path string
	// Old and New are the recorded value and the present one, shortened around the first place where they part and escaped for a terminal. A value that is not there is "absent".
	Old, New string
}

// change is one path whose values differ; a side is nil where it has none.
type change struct {
	path, role string
	old, new   *tree
}

const absent = "absent"

// Diff returns the first path at which two canonical requests differ, in the order method, URL, headers, body, with both values as [Difference] has them. Equal requests give "".
func Diff(recorded, got Request) (path, old, new string) {
	outside, inside := changes(recorded, got)
	switch {
	case len(outside) > 0:
		return show(outside[0])
	case len(inside) > 0:
		return show(inside[0])
	}
	return "", "", ""
}

// Compare classifies the difference between two canonical requests. Equal requests give the zero Difference.
func Compare(recorded, got Request) Difference {
	outside, inside := changes(recorded, got)
	d := Difference{Count: len(outside) + len(inside)}
	if d.Count == 0 {
		return d
	}
	s := shapeOf(got.URL)
	first := map[Class]change{}
	take := func(class Class, c change) {
		if _, there := first[class]; !there {
			first[class] = c
		}
	}
	for _, c := range outside {
		take(outsideClass(s, recorded, got, c.path), c)
	}
	for _, c := range inside {
		take(insideClass(s, got, c), c)
	}
	for _, class := range Classes {
		if c, there := first[class]; there {
			path, old, new := show(c)
			d.Changes = append(d.Changes, Change{class, path, old, new})
		}
	}
	if s != nil {
		d.Prefix = prefix(s, recorded.Body, got.Body)
	}
	return d
}

func outsideClass(s *shape, recorded, got Request, path string) Class {
	switch {
	case s == nil && got.Method == Method && recorded.Method == Method && path != "url":
		return ClassToolArguments
	case s == nil || path == "method":
		return ClassOther
	case path == "url":
		_, way, model := addressed(got.URL)
		was, before, old := addressed(recorded.URL)
		switch {
		case s != was:
			return ClassOther
		case s.urlModel && model != old:
			return ClassModel
		case way != before:
			return ClassParameters // a stream in the place of a whole reply
		}
	}
	return ClassTransport
}

func insideClass(s *shape, got Request, c change) Class {
	switch {
	case s != nil:
		return s.class(c.path, c.role)
	case got.Method == Method:
		return ClassToolArguments
	}
	return ClassOther
}

// changes compares two requests. What is outside the body comes first, each in order of name; within the body the order is that of the canonical form.
func changes(a, b Request) (outside, inside []change) {
	add := func(path, old, new string) {
		if old != new {
			outside = append(outside, change{path: path, old: text(old), new: text(new)})
		}
	}
	add("method", a.Method, b.Method)
	add("url", a.URL, b.URL)
	all := map[string]bool{}
	for name := range a.Headers {
		all[name] = true
	}
	for name := range b.Headers {
		all[name] = true
	}
	for _, name := range names(all) {
		add(join("headers", strings.ToLower(name)), strings.Join(a.Headers[name], ", "), strings.Join(b.Headers[name], ", "))
	}
	if a.Body == b.Body {
		return outside, nil
	}
	old, ok := parse(a.Body)
	new, ok2 := parse(b.Body)
	if !ok || !ok2 {
		return outside, []change{{path: "body", old: text(a.Body), new: text(b.Body)}}
	}
	differ(old, new, "", "", &inside)
	for i := range inside {
		if inside[i].path == "" { // the bodies are no objects or lists
			inside[i].path = "body"
		}
	}
	if len(inside) == 0 { // differently written, the same to a reader of JSON
		inside = append(inside, change{path: "body", old: text(a.Body), new: text(b.Body)})
	}
	return outside, inside
}

func text(s string) *tree { return &tree{kind: '"', text: s} }

// differ collects the paths at which two values part. role is that of the message they are in.
func differ(a, b *tree, path, role string, to *[]change) {
	switch {
	case a.kind != b.kind:
		*to = append(*to, change{path, role, a, b})
	case a.kind == '{':
		if role == "" {
			role = b.role()
		}
		all := map[string]bool{}
		for _, name := range a.names {
			all[name] = true
		}
		for _, name := range b.names {
			all[name] = true
		}
		for _, name := range names(all) {
			one(a.member(name), b.member(name), join(path, name), role, to)
		}
	case a.kind == '[':
		for i := range max(len(a.kids), len(b.kids)) {
			var x, y *tree
			if i < len(a.kids) {
				x = &a.kids[i]
			}
			if i < len(b.kids) {
				y = &b.kids[i]
			}
			one(x, y, index(path, i), role, to)
		}
	case a.text != b.text:
		*to = append(*to, change{path, role, a, b})
	}
}

func one(a, b *tree, path, role string, to *[]change) {
	if a != nil && b != nil {
		differ(a, b, path, role, to)
		return
	}
	there := a
	if there == nil {
		there = b
	}
	if role == "" {
		role = there.role()
	}
	if there.kind == '{' && len(there.names) == 1 && there.names[0] == bedrockPoint {
		path = join(path, bedrockPoint) // an entry of a list that is nothing but this
	}
	*to = append(*to, change{path, role, a, b})
}

// bedrockPoint marks in a list up to where Bedrock is to keep the prompt. The model does not see it.
const bedrockPoint = "cachePoint"

// prefix counts the messages at the beginning that two bodies share.
func prefix(s *shape, a, b string) int {
	old, ok := parse(a)
	new, ok2 := parse(b)
	if !ok || !ok2 {
		return 0
	}
	x, y := old.member(s.messages), new.member(s.messages)
	if x == nil || y == nil {
		return 0
	}
	n := 0
	for n < min(len(x.kids), len(y.kids)) && x.kids[n].text == y.kids[n].text {
		n++
	}
	return n
}

// Nearest returns the index of the recorded request that differs least from got, and how: first those of the same method and URL, then those with the fewest paths that differ, then with the longest common beginning of the messages, then the first. It returns -1 where there are none.
func Nearest(recorded []Request, got Request) (int, Difference) {
	best, least := -1, Difference{}
	address := func(d Request) bool { return d.Method == got.Method && d.URL == got.URL }
	for i, r := range recorded {
		if best >= 0 && address(recorded[best]) && !address(r) {
			continue
		}
		d := Compare(r, got)
		if best < 0 || address(r) && !address(recorded[best]) || d.Count < least.Count || d.Count == least.Count && d.Prefix > least.Prefix {
			best, least = i, d
		}
	}
	return best, least
}

// show shortens both values of a change around the first place where they part.
func show(c change) (path, old, new string) {
	if c.old == nil || c.new == nil || c.old.kind != '"' || c.new.kind != '"' {
		return c.path, whole(c.old), whole(c.new)
	}
	a, b := c.old.text, c.new.text
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return c.path, around(a, at), around(b, at)
}

// The number of characters shown before and after the place where two texts part.
const before, after = 24, 56

func around(s string, at int) string {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	from, to := at, at
	for n := 0; from > 0 && n < before; n++ {
		_, width := utf8.DecodeLastRuneInString(s[:from])
		from -= width
	}
	for n := 0; to < len(s) && n < after; n++ {
		_, width := utf8.DecodeRuneInString(s[to:])
		to += width
	}
	quoted := strconv.Quote(s[from:to])
	if from > 0 {
		quoted = "…" + quoted
	}
	if to < len(s) {
		quoted += "…"
	}
	return quoted
}

func whole(t *tree) string {
	if t == nil {
		return absent
	}
	if t.kind == '"' {
		return around(t.text, 0)
	}
	v := jsontext.Value(t.text)
	if v.Compact() != nil {
		v = jsontext.Value(t.text)
	}
	s := string(v)
	if n := before + after; utf8.RuneCountInString(s) > n {
		s = string([]rune(s)[:n]) + "…"
	}
	// JSON has no control characters of its own; what else a terminal could act on is escaped.
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// ClassOf returns the class of a request that has no counterpart at all: to a model it goes on with a conversation that was not recorded.
func ClassOf(got Request) Class {
	switch {
	case got.Method == Method:
		return ClassToolArguments
	case shapeOf(got.URL) != nil:
		return ClassHistory
	}
	return ClassOther
}
