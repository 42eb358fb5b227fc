package cassette

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Part names what a rule of replay.normalize looks at, whoever the vendor is. Which paths of a request are which part is told by the table of shapes.
type Part string

// The parts.
const (
	PartSystem Part = "system" // texts of the system prompt
	PartUser   Part = "user"   // texts of user messages
	PartTool   Part = "tool"   // texts of tool results
	// PartAny is all of these, what the assistant said and called, and the descriptions of tools; in requests to anything but a model, and in the arguments and outputs of recorded tools, every string.
	PartAny Part = "any"
)

// Parts lists the parts.
var Parts = []Part{PartSystem, PartUser, PartTool, PartAny}

// Normalization is one rule of replay.normalize: what Regex finds in the texts of a part counts as equal, whatever it is.
type Normalization struct {
	In    Part
	Regex *regexp.Regexp
	As    string // stands in the place of what was found: [A-Za-z0-9._-]+
}

// NewNormalization makes a rule of what a user wrote. It fails for an unknown part, for a name that cannot stand in a placeholder, and for an expression (RE2) that is none or that matches only nothing.
func NewNormalization(in Part, pattern, as string) (Normalization, error) {
	if !slices.Contains(Parts, in) {
		return Normalization{}, fmt.Errorf("in: %q is none of system, user, tool, any", in)
	}
	if as == "" || strings.Trim(as, unescaped) != "" {
		return Normalization{}, fmt.Errorf("as: %q is not made of letters, digits and ._-", as)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return Normalization{}, fmt.Errorf("regex: %w", err)
	}
	switch parsed.Simplify().Op {
	case syntax.OpEmptyMatch, syntax.OpNoMatch:
		return Normalization{}, fmt.Errorf("regex: %q never matches a text", pattern)
	}
	regex, err := regexp.Compile(pattern)
	if err != nil { // too large to compile
		return Normalization{}, fmt.Errorf("regex: %w", err)
	}
	return Normalization{in, regex, as}, nil
}

// Normalizer applies rules of replay.normalize. What it makes is compared and never stored: the same rules are applied to a recorded request and to the present one, so that a new rule needs no new recording. A nil Normalizer changes nothing. It may be used by several goroutines at once.
type Normalizer struct{ rules []Normalization }

// NewNormalizer makes a normalizer of rules, which are applied in their order; nil for none.
func NewNormalizer(rules []Normalization) *Normalizer {
	if len(rules) == 0 {
		return nil
	}
	return &Normalizer{slices.Clone(rules)}
}

// normalMark begins the placeholders of normalisation. No canonical form holds one by itself, as "=" is not in the name of a redaction; a text that has one is normalised already and stays.
const normalMark = open + "="

// Request returns a canonical request with what the rules find replaced by placeholders, again in the canonical form, and the names of the rules that changed something, sorted, as normalize:NAME.
func (n *Normalizer) Request(r Request) (Request, []string) {
	if n == nil || r.Body == "" {
		return r, nil
	}
	var applied []string
	body := n.body(r.Body, func(path, role string) func(Part) bool { return textsOf(r, path, role) }, &applied)
	if body == r.Body {
		return r, nil
	}
	r.Body = body
	if start := strings.TrimLeft(body, " \t\r\n"); start != "" && (start[0] == '{' || start[0] == '[') {
		c := canon{rules: &Rules{}}
		r.Body, _ = c.json(body) // other lengths, other lines
	}
	return r, applied
}

// Output returns the stored output of a tool with what rules for tools find replaced by placeholders, for comparison with another.
func (n *Normalizer) Output(body string) string {
	if n == nil {
		return body
	}
	var applied []string
	return n.body(body, func(string, string) func(Part) bool { return toolOutput }, &applied)
}

func toolOutput(p Part) bool { return p == PartTool || p == PartAny }

func onlyAny(p Part) bool { return p == PartAny }

// textsOf says which parts a string of a request belongs to; nil where it belongs to none.
func textsOf(r Request, path, role string) func(Part) bool {
	s := shapeOf(r.URL)
	if s == nil {
		return onlyAny
	}
	part, is := s.text(path, role)
	if !is {
		return nil
	}
	return func(p Part) bool { return p == part || p == PartAny }
}

// body applies the rules to the strings of a JSON body, or to the whole of any other.
func (n *Normalizer) body(body string, parts func(path, role string) func(Part) bool, applied *[]string) string {
	start := strings.TrimLeft(body, " \t\r\n")
	if start == "" || start[0] != '{' && start[0] != '[' {
		return n.whole(body, parts, applied)
	}
	t, ok := parse(body)
	if !ok {
		return n.whole(body, parts, applied)
	}
	var b strings.Builder
	done := 0
	t.roles("", "", func(path, role string, leaf *tree) {
		belongs := parts(path, role)
		if belongs == nil {
			return
		}
		text := n.text(leaf.text, belongs, applied)
		if text == leaf.text {
			return
		}
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil { // not UTF-8: such a body keeps its bytes
			return
		}
		b.WriteString(body[done:leaf.start])
		b.Write(quoted)
		done = leaf.end
	})
	if done == 0 {
		return body
	}
	b.WriteString(body[done:])
	slices.Sort(*applied)
	return b.String()
}

func (n *Normalizer) whole(body string, parts func(path, role string) func(Part) bool, applied *[]string) string {
	belongs := parts("", "")
	if belongs == nil {
		return body
	}
	return n.text(body, belongs, applied)
}

func (n *Normalizer) text(text string, belongs func(Part) bool, applied *[]string) string {
	if strings.Contains(text, normalMark) {
		return text
	}
	for i := range n.rules {
		rule := &n.rules[i]
		if !belongs(rule.In) {
			continue
		}
		next := rule.replace(text)
		if name := "normalize:" + rule.As; next != text && !slices.Contains(*applied, name) {
			*applied = append(*applied, name)
		}
		text = next
	}
	return text
}

// replace puts the placeholder in the place of every match that is not empty and touches no placeholder of an earlier rule.
func (r *Normalization) replace(text string) string {
	matches := r.Regex.FindAllStringIndex(text, -1)
	if len(matches) == 0 {
		return text
	}
	taken := placeholders(text)
	var b strings.Builder
	done := 0
	for _, m := range matches {
		for len(taken) > 0 && taken[0][1] <= m[0] {
			taken = taken[1:]
		}
		if m[0] == m[1] || len(taken) > 0 && taken[0][0] < m[1] {
			continue
		}
		b.WriteString(text[done:m[0]])
		b.WriteString(normalMark + r.As + close)
		done = m[1]
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// placeholders returns where placeholders of normalisation stand, in order.
func placeholders(text string) (spans [][2]int) {
	for from := 0; ; {
		at := strings.Index(text[from:], normalMark)
		if at < 0 {
			return spans
		}
		at += from
		end := strings.Index(text[at:], close)
		if end < 0 {
			return spans
		}
		from = at + end + len(close)
		spans = append(spans, [2]int{at, from})
	}
}

// roles visits every string below t in order of place, with its path and the role of the message that it is in.
func (t *tree) roles(path, role string, visit func(path, role string, leaf *tree)) {
	switch t.kind {
	case '"':
		visit(path, role, t)
	case '{':
		if role == "" {
			role = t.role()
		}
		for i := range t.kids {
			t.kids[i].roles(join(path, t.names[i]), role, visit)
		}
	case '[':
		for i := range t.kids {
			t.kids[i].roles(index(path, i), role, visit)
		}
	}
}
