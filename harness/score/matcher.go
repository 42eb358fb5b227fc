package score

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/text/unicode/norm"

	"github.com/echoeval/echoeval/core/strict"
)

// matcher is what an argument must be.
type matcher interface {
	// holds reports whether the value matches, without a word about what differs.
	holds(n strict.Node) bool
	// differences returns what is wrong with the value at path, nothing where it matches. Paths are JSON pointers.
	differences(n strict.Node, path string) []string
}

type (
	anything    struct{}
	scalar      struct{ want strict.Node }
	sequence    struct{ items []matcher }
	pattern     struct{ re *regexp.Regexp }
	numberMatch struct{ bounds bounds }
	// choice wants one of several.
	choice struct {
		of   []matcher
		text string
	}
	// valid wants what a JSON Schema accepts.
	valid struct{ schema *jsonschema.Resolved }
	// textual compares texts in a form.
	textual struct {
		want string
		form form
	}
	// object wants each of its keys; closed, no others but those ignored and those with their default.
	object struct {
		keys     []string
		values   []matcher
		closed   bool
		ignore   []string // patterns of keys
		defaults []strict.Field
	}
)

func where(path string) string {
	if path == "" {
		return "the arguments"
	}
	return path
}

func show(n strict.Node) string {
	if n.IsZero() {
		return "missing"
	}
	return excerpt(n.JSON(), 0, 60)
}

func (anything) holds(strict.Node) bool { return true }

func (m scalar) holds(n strict.Node) bool { return same(m.want, n) }

func (m choice) holds(n strict.Node) bool {
	return slices.ContainsFunc(m.of, func(of matcher) bool { return of.holds(n) })
}

func (m valid) holds(n strict.Node) bool { return m.schema.Validate(n.Any()) == nil }

func (m textual) holds(n strict.Node) bool {
	return n.Kind() == strict.String && m.form.apply(n.Text()) == m.form.apply(m.want)
}

func (m sequence) holds(n strict.Node) bool {
	if n.Kind() != strict.Sequence || n.Len() != len(m.items) {
		return false
	}
	for i, item := range n.Items() {
		if !m.items[i].holds(item) {
			return false
		}
	}
	return true
}

func (m pattern) holds(n strict.Node) bool {
	return n.Kind() == strict.String && m.re.MatchString(n.Text())
}

func (m numberMatch) holds(n strict.Node) bool {
	if !number(n) {
		return false
	}
	ok, _ := m.bounds.hold(n.Text())
	return ok
}

func (m object) holds(n strict.Node) bool {
	if n.Kind() != strict.Mapping {
		return false
	}
	held, asked := share(m, n)
	return held == asked
}

func (anything) differences(strict.Node, string) []string { return nil }

func (m scalar) differences(n strict.Node, path string) []string {
	if m.holds(n) {
		return nil
	}
	text := fmt.Sprintf("%s is %s, want %s", where(path), show(n), show(m.want))
	if n.Kind() == strict.String && m.want.Kind() == strict.String && norm.NFC.String(n.Text()) == norm.NFC.String(m.want.Text()) {
		text += "; only Unicode normalisation differs ({$text: {value: ..., unicode: nfc}} ignores it)"
	}
	return []string{text}
}

func (m choice) differences(n strict.Node, path string) []string {
	if m.holds(n) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, want one of %s", where(path), show(n), m.text)}
}

func (m valid) differences(n strict.Node, path string) []string {
	if err := m.schema.Validate(n.Any()); err != nil {
		return []string{fmt.Sprintf("%s is %s and does not satisfy the schema: %s", where(path), show(n), excerpt(err.Error(), 0, 120))}
	}
	return nil
}

func (m textual) differences(n strict.Node, path string) []string {
	if m.holds(n) {
		return nil
	}
	text := fmt.Sprintf("%s is %s, want a text like %s", where(path), show(n), quote(m.want, 0))
	if n.Kind() == strict.String {
		text += m.form.hint(n.Text(), func(g form) bool { return g.apply(n.Text()) == g.apply(m.want) })
	}
	return []string{text}
}

func (m sequence) differences(n strict.Node, path string) []string {
	if n.Kind() != strict.Sequence || n.Len() != len(m.items) {
		return []string{fmt.Sprintf("%s is %s, want a list of %d", where(path), show(n), len(m.items))}
	}
	var all []string
	for i, item := range n.Items() {
		all = append(all, m.items[i].differences(item, fmt.Sprintf("%s/%d", path, i))...)
	}
	return all
}

func (m pattern) differences(n strict.Node, path string) []string {
	if m.holds(n) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, want a text that matches %s", where(path), show(n), quote(m.re.String(), 0))}
}

func (m numberMatch) differences(n strict.Node, path string) []string {
	if m.holds(n) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, want %s", where(path), show(n), m.bounds.text)}
}

func (m object) differences(n strict.Node, path string) []string {
	if n.Kind() != strict.Mapping {
		return []string{fmt.Sprintf("%s is %s, want a mapping", where(path), show(n))}
	}
	var all []string
	for i, key := range m.keys {
		at := path + "/" + pointer(key)
		value := m.get(n, key)
		if value.IsZero() {
			all = append(all, at+" is missing")
			continue
		}
		all = append(all, m.values[i].differences(value, at)...)
	}
	for _, key := range m.extra(n) {
		all = append(all, path+"/"+pointer(key)+" is not expected")
	}
	return all
}

// extra are the keys of n that the object does not allow, in the order of n.
func (m object) extra(n strict.Node) []string {
	if !m.closed {
		return nil
	}
	var keys []string
	for key := range n.Fields() {
		if !slices.Contains(m.keys, key.Name) && !m.ignored(key.Name) && !same(m.standard(key.Name), n.Get(key.Name)) {
			keys = append(keys, key.Name)
		}
	}
	return keys
}

// get is the value of a key, its default where it is missing.
func (m object) get(n strict.Node, key string) strict.Node {
	if value := n.Get(key); !value.IsZero() {
		return value
	}
	return m.standard(key)
}

// standard is the default of a key, the zero node where it has none.
func (m object) standard(key string) strict.Node {
	for _, f := range m.defaults {
		if f.Key.Name == key {
			return f.Value
		}
	}
	return strict.Node{}
}

func (m object) ignored(key string) bool {
	return slices.ContainsFunc(m.ignore, func(pattern string) bool {
		ok, err := path.Match(pattern, key)
		return ok && err == nil
	})
}

// pointer shortens and escapes a key for a JSON pointer (RFC 6901) that people read.
func pointer(key string) string {
	return escapePointer(excerpt(key, 0, 40))
}

// share counts how many of the things that a matcher asks of the arguments hold: one for each key at the top, one in all for everything else.
func share(m matcher, n strict.Node) (held, asked int) {
	o, ok := m.(object)
	if !ok || n.Kind() != strict.Mapping {
		if m.holds(n) {
			return 1, 1
		}
		return 0, 1
	}
	for i, key := range o.keys {
		value := o.get(n, key)
		if !value.IsZero() && o.values[i].holds(value) {
			held++
		}
	}
	return held, len(o.keys) + len(o.extra(n))
}

// operators are the keys that stand for a value instead of being one; of them ignoreKey and defaultsKey stand beside $equal or $partial.
var operators = []string{"$any", "$date", defaultsKey, "$equal", ignoreKey, "$numeric", "$one_of", "$partial", "$regex", "$schema", "$text"}

const (
	ignoreKey   = "$ignore"
	defaultsKey = "$defaults"
)

// compileMatcher turns the value of an argument into its matcher. closed says whether a plain mapping allows no other keys.
func compileMatcher(n strict.Node, closed bool, a at) matcher {
	switch n.Kind() {
	case strict.Sequence:
		items := make([]matcher, n.Len())
		for i, item := range n.Items() {
			items[i] = compileMatcher(item, true, a.index(i))
		}
		return sequence{items}
	case strict.Mapping:
	default:
		return scalar{n}
	}
	o := object{closed: closed, keys: make([]string, 0, n.Len()), values: make([]matcher, 0, n.Len())}
	for key, value := range n.Fields() {
		name := key.Name
		switch {
		case strings.HasPrefix(name, "$$"):
			name = name[1:]
		case strings.HasPrefix(name, "$"):
			if !slices.Contains(operators, name) {
				a.Add(key.Pos(), strict.Suggest(name, operators)+"; for a key of this name write $"+name, "unknown matcher %q", name)
				return anything{}
			}
			return compileOperators(n, key, value, closed, a)
		}
		o.keys = append(o.keys, name)
		o.values = append(o.values, compileMatcher(value, true, a.key(key.Name)))
	}
	return o
}

// compileOperators reads a mapping that holds an operator: that one alone, or $equal or $partial with what stands beside it.
func compileOperators(n strict.Node, first strict.Key, value strict.Node, closed bool, a at) matcher {
	if n.Len() == 1 && first.Name != ignoreKey && first.Name != defaultsKey {
		return compileOperator(first.Name, value, closed, a.key(first.Name))
	}
	main := ""
	for key := range n.Fields() {
		switch {
		case key.Name == ignoreKey || key.Name == defaultsKey:
		case main == "" && (key.Name == "$equal" || key.Name == "$partial"):
			main = key.Name
		default:
			if !strings.HasPrefix(key.Name, "$") || strings.HasPrefix(key.Name, "$$") {
				key = first
			}
			a.Add(key.Pos(), "for a key of this name write $"+key.Name, "matcher %s stands beside other keys", key.Name)
			return anything{}
		}
	}
	if main == "" {
		a.Add(first.Pos(), "write {$equal: {...}, "+first.Name+": ...}", "%s stands without $equal or $partial", first.Name)
		return anything{}
	}
	o, ok := compileOperator(main, n.Get(main), closed, a.key(main)).(object)
	if !ok {
		if n.Get(main).Kind() != strict.Mapping {
			a.key(main).bad(n.Get(main), "only keys of a mapping are ignored or have defaults", "want a mapping, got %s", n.Get(main).Kind())
		}
		return anything{}
	}
	if ignore := n.Get(ignoreKey); !ignore.IsZero() {
		o.ignore = compileIgnore(ignore, o, a.key(ignoreKey))
	}
	if defaults := n.Get(defaultsKey); !defaults.IsZero() {
		if defaults.Kind() != strict.Mapping || defaults.Len() == 0 {
			a.key(defaultsKey).bad(defaults, "write {$defaults: {limit: 10}}", "want a mapping of at least one key, got %s", defaults.Kind())
		}
		for key, value := range defaults.Fields() {
			o.defaults = append(o.defaults, strict.Field{Key: key, Value: value})
		}
	}
	return o
}

// compileIgnore reads the patterns of the keys that do not count.
func compileIgnore(n strict.Node, o object, a at) []string {
	var patterns []string
	a.decode(n, &patterns, "a list of keys: {$ignore: [request_id, \"x_*\"]}")
	if n.Kind() == strict.Sequence && n.Len() == 0 {
		a.bad(n, "name at least one key", "the list is empty")
	}
	for i, item := range n.Items() {
		if item.Kind() != strict.String {
			continue
		}
		if _, err := path.Match(item.Text(), ""); err != nil || item.Text() == "" {
			a.index(i).bad(item, "a key, or a pattern with * and ?", "bad pattern %q", item.Text())
			continue
		}
		if k := slices.IndexFunc(o.keys, func(key string) bool { return object{ignore: []string{item.Text()}}.ignored(key) }); k >= 0 {
			a.index(i).bad(item, "leave it out in one of the two places", "%q is expected and ignored", o.keys[k])
		}
	}
	return patterns
}

func compileOperator(name string, n strict.Node, closed bool, a at) matcher {
	switch name {
	case "$any":
		if !bare(n) {
			a.bad(n, "write {$any: true}", "want true, got %s", n.Kind())
		}
	case "$equal":
		return compileMatcher(n, true, a)
	case "$partial":
		if n.Kind() != strict.Mapping || n.Len() == 0 {
			a.bad(n, "write {$partial: {key: value}}", "want a mapping of at least one key, got %s", n.Kind())
			break
		}
		return compileMatcher(n, false, a)
	case "$regex":
		var text string
		strict.Decode(n, &text, a.Problems)
		if re := expression(text, n, a); re != nil {
			return pattern{re}
		}
	case "$numeric":
		var args numberArgs
		strict.Decode(n, &args, a.Problems)
		if n.Kind() == strict.Mapping {
			return numberMatch{args.bounds(n, a)}
		}
	case "$one_of":
		if n.Kind() != strict.Sequence || n.Len() == 0 {
			a.bad(n, "write {$one_of: [a, b]}", "want a list of at least one value, got %s", n.Kind())
			break
		}
		c := choice{text: excerpt(n.JSON(), 0, 120)}
		for i, item := range n.Items() {
			c.of = append(c.of, compileMatcher(item, closed, a.index(i)))
		}
		return c
	case "$schema":
		if n.Kind() != strict.Mapping {
			a.bad(n, "write {$schema: {type: string, minLength: 1}}", "want a JSON Schema, got %s", n.Kind())
			break
		}
		if resolved := resolve(n, a); resolved != nil {
			return valid{resolved}
		}
	case "$text":
		if n.Kind() != strict.Mapping {
			a.bad(n, "write {$text: {value: Paris, ignore_case: true}}", "want a mapping, got %s", n.Kind())
			break
		}
		want, f := text(n, a)
		return textual{want, f}
	case "$date":
		return compileDate(n, a)
	}
	return anything{}
}
