package cassette

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/secret"
)

// Redaction is a value that no cassette may hold, such as one of tool_context, and the name of the placeholder that stands for it.
type Redaction struct {
	Name  string // [A-Za-z0-9._-]+, public
	Value string
}

// String hides the value.
func (r Redaction) String() string { return r.Name }

// GoString hides the value.
func (r Redaction) GoString() string { return r.Name }

// Rules is what the canonical form depends on beside its version: the values that are replaced by placeholders. The zero value replaces none. Rules do not change once made and may be shared.
type Rules struct {
	redactions []Redaction // longest value first, then by name
}

// shortValue is the length in bytes below which a value is replaced only where it is a whole JSON string: shorter ones occur inside words.
const shortValue = 8

const (
	open  = "{{echoeval:"
	close = "}}"
)

// unescaped are characters that JSON writes as they are; names of placeholders are made of them.
const unescaped = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// NewRules makes rules of redactions. It fails for a name that cannot stand in a placeholder, for a name with two values, and for a value that contains the beginning of a placeholder. Redactions with an empty value are left out: there is nothing to replace.
func NewRules(redactions []Redaction) (*Rules, error) {
	r := &Rules{}
	values := map[string]string{}
	for _, x := range redactions {
		if x.Name == "" || strings.Trim(x.Name, unescaped) != "" {
			return nil, fmt.Errorf("the name %q of a placeholder is not made of letters, digits and ._-", x.Name)
		}
		if v, twice := values[x.Name]; twice && v != x.Value {
			return nil, fmt.Errorf("the placeholder %s stands for two values", x.Name)
		}
		if strings.Contains(x.Value, open) {
			return nil, fmt.Errorf("the value of %s contains %s, which begins a placeholder", x.Name, open)
		}
		if _, twice := values[x.Name]; !twice && x.Value != "" {
			r.redactions = append(r.redactions, x)
		}
		values[x.Name] = x.Value
	}
	slices.SortFunc(r.redactions, func(a, b Redaction) int {
		if d := len(b.Value) - len(a.Value); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return r, nil
}

func placeholder(name string) string { return open + name + close }

// Find reports the names of the redactions whose values occur in text, sorted: in plain text, JSON, or JSON inside JSON strings.
func (r *Rules) Find(text string) []string {
	if !r.possible(text) {
		return nil
	}
	var found []string
	for layer := range secret.Layers(text) {
		for i := range r.redactions {
			x := &r.redactions[i]
			if at, _ := r.index(layer.Text, 0, x); at >= 0 && !slices.Contains(found, x.Name) {
				found = append(found, x.Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// possible is a quick look: no value made of letters and digits can hide in a text that neither shows it nor escapes code points.
func (r *Rules) possible(text string) bool {
	if len(r.redactions) == 0 {
		return false
	}
	if strings.Contains(text, `\u`) {
		return true
	}
	escapes := strings.IndexByte(text, '\\') >= 0
	for i := range r.redactions {
		x := &r.redactions[i]
		if escapes && strings.Trim(x.Value, unescaped) != "" || strings.Contains(text, x.Value) {
			return true
		}
	}
	return false
}

// redact replaces values by placeholders in text; mark gives the placeholder for a value found under so many layers of escapes. In JSON, and in streams of it, what counts is what its strings mean: the outermost layer of escapes is not looked at as text, so that
// no escape is torn apart. It calls hit with the name of each value found.
func (r *Rules) redact(text string, json bool, mark func(x *Redaction, depth int) string, hit func(name string)) string {
	if len(r.Find(text)) == 0 {
		return text
	}
	for i := range r.redactions {
		text = r.replace(text, json, &r.redactions[i], mark, hit)
	}
	return text
}

func (r *Rules) replace(text string, json bool, x *Redaction, mark func(*Redaction, int) string, hit func(string)) string {
	for again := true; again; {
		again = false
		for layer := range secret.Layers(text) {
			if layer.Depth == 0 && json && strings.IndexByte(text, '\\') >= 0 {
				continue
			}
			spans := r.spans(layer, x)
			if len(spans) == 0 {
				continue
			}
			var b strings.Builder
			done := 0
			for _, s := range spans {
				if s[0] < done || s[1] <= s[0] {
					continue
				}
				b.WriteString(text[done:s[0]])
				b.WriteString(mark(x, layer.Depth))
				done = s[1]
			}
			if done == 0 {
				continue
			}
			b.WriteString(text[done:])
			hit(x.Name)
			text, again = b.String(), true
			break // the layers are made anew of the new text
		}
	}
	return text
}

// spans returns where in the raw text the values stand that layer shows, in order.
func (r *Rules) spans(layer *secret.Layer, x *Redaction) (spans [][2]int) {
	for from := 0; ; {
		at, end := r.index(layer.Text, from, x)
		if at < 0 {
			return spans
		}
		spans = append(spans, [2]int{layer.Raw(at), layer.Raw(end)})
		from = end
	}
}

// index finds the value in text from an offset on, outside of placeholders.
func (r *Rules) index(text string, from int, x *Redaction) (start, end int) {
	for from <= len(text)-len(x.Value) {
		at := strings.Index(text[from:], x.Value)
		if at < 0 {
			return -1, -1
		}
		at += from
		end := at + len(x.Value)
		if len(x.Value) < shortValue && !(at > 0 && text[at-1] == '"' && end < len(text) && text[end] == '"') {
			from = at + 1
			continue
		}
		if over := r.covered(text, at, end); over > 0 {
			from = over
			continue
		}
		return at, end
	}
	return -1, -1
}

// covered returns the end of the known placeholder that overlaps text[at:end], 0 if there is none.
func (r *Rules) covered(text string, at, end int) int {
	longest := 0
	for i := range r.redactions {
		longest = max(longest, len(r.redactions[i].Name))
	}
	from := max(0, at-len(open)-longest-len(depthMark)-len(close))
	for from < end {
		p := strings.Index(text[from:end+min(len(open), len(text)-end)], open)
		if p < 0 {
			return 0
		}
		p += from
		inside, _, found := strings.Cut(text[p+len(open):min(len(text), p+len(open)+longest+len(depthMark)+len(close))], close)
		stop := p + len(open) + len(inside) + len(close)
		if name, _ := splitDepth(inside); found && p < end && stop > at {
			if _, known := r.value(name); known {
				return stop
			}
		}
		from = p + 1
	}
	return 0
}

// depthMark shows what may stand between the name in a placeholder of a response and its end: under how many layers of escapes the value goes back.
const depthMark = "/1"

func splitDepth(inside string) (name string, depth int) {
	if n := len(inside) - len(depthMark); n > 0 && inside[n] == '/' && inside[n+1] >= '1' && inside[n+1] <= '3' {
		return inside[:n], int(inside[n+1] - '0')
	}
	return inside, 0
}

func (r *Rules) value(name string) (string, bool) {
	for i := range r.redactions {
		if r.redactions[i].Name == name {
			return r.redactions[i].Value, true
		}
	}
	return "", false
}
