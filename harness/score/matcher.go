package score

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
)

// matcher is what an argument must be.
type matcher interface {
	// differences returns what is wrong with the value at path, nothing where it matches. Paths are JSON pointers.
	differences(n strict.Node, path string) []string
}

type (
	anything    struct{}
	scalar      struct{ want strict.Node }
	sequence    struct{ items []matcher }
	pattern     struct{ re *regexp.Regexp }
	numberMatch struct{ bounds bounds }
	// object wants each of its keys; closed, no others.
	object struct {
		keys   []string
		values []matcher
		closed bool
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

func (anything) differences(strict.Node, string) []string { return nil }

func (m scalar) differences(n strict.Node, path string) []string {
	if same(m.want, n) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, want %s", where(path), show(n), show(m.want))}
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
	if n.Kind() == strict.String && m.re.MatchString(n.Text()) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, want a text that matches %s", where(path), show(n), quote(m.re.String(), 0))}
}

func (m numberMatch) differences(n strict.Node, path string) []string {
	if number(n) {
		if ok, _ := m.bounds.hold(n.Text()); ok {
			return nil
		}
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
		value := n.Get(key)
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
		if !slices.Contains(m.keys, key.Name) {
			keys = append(keys, key.Name)
		}
	}
	return keys
}

// pointer shortens and escapes a key for a JSON pointer (RFC 6901) that people read.
func pointer(key string) string {
	return escapePointer(excerpt(key, 0, 40))
}

// share counts how many of the things that a matcher asks of the arguments hold: one for each key at the top, one in all for everything else.
func share(m matcher, n strict.Node) (held, asked int) {
	o, ok := m.(object)
	if !ok || n.Kind() != strict.Mapping {
		if len(m.differences(n, "")) == 0 {
			return 1, 1
		}
		return 0, 1
	}
	for i, key := range o.keys {
		value := n.Get(key)
		if !value.IsZero() && len(o.values[i].differences(value, "")) == 0 {
			held++
		}
	}
	return held, len(o.keys) + len(o.extra(n))
}

// operators are the keys that stand for a value instead of being one.
var operators = []string{"$any", "$equal", "$numeric", "$partial", "$regex"}

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
			if n.Len() > 1 {
				a.Add(key.Pos(), "for a key of this name write $"+name, "matcher %s stands beside other keys", name)
				return anything{}
			}
			return compileOperator(name, value, a.key(name))
		}
		o.keys = append(o.keys, name)
		o.values = append(o.values, compileMatcher(value, true, a.key(key.Name)))
	}
	return o
}

func compileOperator(name string, n strict.Node, a at) matcher {
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
	}
	return anything{}
}
