package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
)

const (
	// mostPositions bounds how many names an expression has once its repetitions are written out.
	mostPositions = 1_000
	// mostDepth bounds how deep its parentheses are nested.
	mostDepth = 50
)

// sequenceKeys are those of sequence where it is a mapping.
type sequenceKeys struct {
	Calls  strict.Node `yaml:"calls,required" schema:"filled" doc:"the expression"`
	Ignore strict.Node `yaml:"ignore" schema:"rule_tools" doc:"tools whose calls are passed over"`
}

// symbol is what one position of an expression stands for.
type symbol struct {
	names []string
	not   bool // any tool but the names; without names, any tool
}

func (s *symbol) match(tool string) bool { return slices.Contains(s.names, tool) != s.not }

func (s *symbol) String() string {
	switch {
	case s.not && len(s.names) == 0:
		return "any tool"
	case s.not:
		return "any tool but " + strings.Join(s.names, ", ")
	}
	return strings.Join(s.names, ", ")
}

// automaton is an expression in the form of Glushkov (1961): a state is a position of the expression, and follow says which come next. A sequence of n calls is read in n steps over sets of positions, whatever the expression.
type automaton struct {
	symbols []symbol
	first   set
	last    set
	follow  []set
	empty   bool // nothing at all is a sequence too
}

// set is a set of positions.
type set []uint64

func newSet(n int) set       { return make(set, (n+63)/64) }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s set) union(other set) {
	for i := range other {
		s[i] |= other[i]
	}
}
func (s set) meets(o set) bool { return slices.ContainsFunc(o.indices(), s.has) }
func (s set) indices() []int {
	var list []int
	for i := range len(s) * 64 {
		if s.has(i) {
			list = append(list, i)
		}
	}
	return list
}

// sequence wants the calls of a run to be a sequence of an expression.
type sequence struct {
	automaton
	ignore []string
}

func compileSequence(n strict.Node, r *Rule, p *strict.Problems) (check, string) {
	v := &sequence{}
	text := n
	switch n.Kind() {
	case strict.String:
	case strict.Mapping:
		var k sequenceKeys
		strict.Decode(n, &k, p)
		if k.Calls.Kind() != strict.String {
			if !k.Calls.IsZero() {
				p.Key("calls").WrongType(k.Calls, "a string")
			}
			return nil, ""
		}
		text, p = k.Calls, p.Key("calls")
		if !k.Ignore.IsZero() {
			v.ignore = r.tools(k.Ignore, p.Key("ignore"))
		}
	default:
		p.WrongType(n, "an expression such as \"lookup+ (book | escalate)\"")
		return nil, ""
	}
	c := sequenceParser{text: text.Text(), rule: r, node: text}
	tree := c.alternatives(0)
	if c.err == "" && c.peek() != 0 {
		c.fail("what follows is no part of the expression", "close what is open, or leave it out")
	}
	if c.err == "" && tree == nil {
		c.fail("the expression is empty", "write the names of tools: lookup+ book")
	}
	if c.err != "" {
		p.Add(text.PosOf(c.errAt), c.hint, "%s", c.err)
		return nil, ""
	}
	b := builder{}
	if b.count(tree) > mostPositions {
		p.Add(text.Pos(), "repeat less", "the expression is too large: it has more than %d names when its repetitions are written out", mostPositions)
		return nil, ""
	}
	v.automaton = b.build(tree)
	return v, "the calls are " + strings.Join(strings.Fields(text.Text()), " ")
}

// tree is an expression that was read.
type tree struct {
	symbol   *symbol
	all      []*tree // one after the other
	any      []*tree // one of them
	repeat   *tree
	min, max int // of repeat; max -1 is without end
}

// sequenceParser reads an expression: names, `.` for any tool, `!name` and `!(a | b)` for any other, `|`, parentheses, and ? * + {n} {n,} {n,m} behind what they repeat. Names with other characters stand in single or double quotes.
type sequenceParser struct {
	text      string
	at        int
	rule      *Rule
	node      strict.Node
	err, hint string
	errAt     int
}

func (c *sequenceParser) fail(message, hint string) {
	if c.err == "" {
		c.err, c.hint, c.errAt = message, hint, min(c.at, len(c.text))
	}
}

func (c *sequenceParser) peek() byte {
	for c.at < len(c.text) && strings.IndexByte(" \t\r\n", c.text[c.at]) >= 0 {
		c.at++
	}
	if c.at == len(c.text) {
		return 0
	}
	return c.text[c.at]
}

func (c *sequenceParser) alternatives(depth int) *tree {
	if depth > mostDepth {
		c.fail("parentheses are nested too deep", "")
		return nil
	}
	var list []*tree
	for {
		one := c.concatenation(depth)
		if c.err != "" {
			return nil
		}
		if one == nil && (len(list) > 0 || c.peek() == '|') {
			c.fail("an alternative is empty", "write ( ... )? for what may be absent")
			return nil
		}
		list = append(list, one)
		if c.peek() != '|' {
			break
		}
		c.at++
	}
	if len(list) == 1 {
		return list[0]
	}
	return &tree{any: list}
}

func (c *sequenceParser) concatenation(depth int) *tree {
	var list []*tree
	for c.err == "" {
		switch b := c.peek(); {
		case b == 0 || b == '|' || b == ')':
			switch len(list) {
			case 0:
				return nil
			case 1:
				return list[0]
			}
			return &tree{all: list}
		default:
			if one := c.repetition(depth); one != nil {
				list = append(list, one)
			}
		}
	}
	return nil
}

func (c *sequenceParser) repetition(depth int) *tree {
	one := c.atom(depth)
	for c.err == "" {
		switch c.peek() {
		case '?':
			one = &tree{repeat: one, min: 0, max: 1}
		case '*':
			one = &tree{repeat: one, min: 0, max: -1}
		case '+':
			one = &tree{repeat: one, min: 1, max: -1}
		case '{':
			one = c.times(one)
			continue
		default:
			return one
		}
		c.at++
	}
	return nil
}

func (c *sequenceParser) times(of *tree) *tree {
	end := strings.IndexByte(c.text[c.at:], '}')
	if end < 0 {
		c.fail("a brace is not closed", "write {2} or {1,3}")
		return nil
	}
	low, high, ranged := strings.Cut(c.text[c.at+1:c.at+end], ",")
	least, err := strconv.Atoi(strings.TrimSpace(low))
	most := least
	if ranged {
		most = -1
		if high = strings.TrimSpace(high); high != "" && err == nil {
			most, err = strconv.Atoi(high)
		}
	}
	switch {
	case err != nil || least < 0 || most >= 0 && most < least || most == 0:
		c.fail("a number of times is wrong", "write {2}, {1,} or {1,3}")
		return nil
	case least > mostPositions || most > mostPositions:
		c.fail(fmt.Sprintf("more than %d times", mostPositions), "write + or * for without end")
		return nil
	}
	c.at += end + 1
	return &tree{repeat: of, min: least, max: most}
}

func (c *sequenceParser) atom(depth int) *tree {
	switch b := c.peek(); b {
	case '(':
		c.at++
		inner := c.alternatives(depth + 1)
		if c.err == "" && inner == nil {
			c.fail("parentheses are empty", "write what stands in them")
		}
		if c.err == "" && c.peek() != ')' {
			c.fail("a parenthesis is not closed", "close it")
		}
		c.at++
		return inner
	case '.':
		c.at++
		return &tree{symbol: &symbol{not: true}}
	case '!':
		c.at++
		if c.peek() != '(' {
			if name := c.name(); name != "" {
				return &tree{symbol: &symbol{names: []string{name}, not: true}}
			}
			return nil
		}
		s := &symbol{not: true}
		for {
			c.at++
			name := c.name()
			if name == "" {
				return nil
			}
			s.names = append(s.names, name)
			switch c.peek() {
			case '|':
			case ')':
				c.at++
				return &tree{symbol: s}
			default:
				c.fail("want | or ) behind a name", "write !(a | b)")
				return nil
			}
		}
	default:
		if name := c.name(); name != "" {
			return &tree{symbol: &symbol{names: []string{name}}}
		}
		return nil
	}
}

// name reads the name of a tool.
func (c *sequenceParser) name() string {
	b := c.peek()
	from := c.at
	if b == '\'' || b == '"' {
		end := strings.IndexByte(c.text[c.at+1:], b)
		if end <= 0 {
			c.fail("a name in quotes is empty or not closed", "")
			return ""
		}
		c.at += end + 2
		return c.named(c.text[from+1:c.at-1], from+1)
	}
	for c.at < len(c.text) && nameByte(c.text[c.at]) {
		c.at++
	}
	if c.at == from {
		if c.at == len(c.text) {
			c.fail("the expression ends where a name is wanted", "write the name of a tool")
		} else {
			c.fail(fmt.Sprintf("%q where the name of a tool is wanted", []rune(c.text[c.at:])[0]), "names with other characters than letters, digits, _ and - stand in quotes")
		}
		return ""
	}
	return c.named(c.text[from:c.at], from)
}

func (c *sequenceParser) named(name string, at int) string {
	c.rule.names = append(c.rule.names, named{name, c.node.PosOf(at)})
	return name
}

func nameByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

// builder makes the automaton of a tree.
type builder struct {
	automaton
	n, size int
}

// count is how many positions a tree has, or more than allowed.
func (b *builder) count(t *tree) int {
	n := 0
	switch {
	case t.symbol != nil:
		n = 1
	case t.repeat != nil:
		n = b.count(t.repeat) * max(1, t.min, t.max)
	}
	for _, one := range append(t.all[:len(t.all):len(t.all)], t.any...) {
		n += b.count(one)
	}
	return min(n, mostPositions+1)
}

// part is what is known of a part of the expression.
type part struct {
	empty       bool
	first, last set
}

func (b *builder) build(t *tree) automaton {
	b.size = b.count(t)
	b.follow = make([]set, b.size)
	for i := range b.follow {
		b.follow[i] = newSet(b.size)
	}
	whole := b.part(t)
	b.empty, b.first, b.last = whole.empty, whole.first, whole.last
	return b.automaton
}

func (b *builder) none() part { return part{true, newSet(b.size), newSet(b.size)} }

func (b *builder) part(t *tree) part {
	switch {
	case t.symbol != nil:
		p := b.none()
		p.empty = false
		p.first.add(b.n)
		p.last.add(b.n)
		b.symbols = append(b.symbols, *t.symbol)
		b.n++
		return p
	case t.all != nil:
		p := b.none()
		for _, one := range t.all {
			p = b.join(p, b.part(one))
		}
		return p
	case t.any != nil:
		p := b.none()
		p.empty = false
		for _, one := range t.any {
			q := b.part(one)
			p.empty = p.empty || q.empty
			p.first.union(q.first)
			p.last.union(q.last)
		}
		return p
	}
	// {2,4} is a a (a (a)?)?, and {2,} is a a+.
	p := b.none()
	times := max(t.min, t.max)
	if t.max < 0 {
		times = max(1, t.min)
	}
	for i := range times {
		q := b.part(t.repeat)
		if t.max < 0 && i == times-1 {
			b.connect(q.last, q.first)
		}
		q.empty = q.empty || i >= t.min
		p = b.join(p, q)
	}
	return p
}

// join puts one part behind another.
func (b *builder) join(p, q part) part {
	b.connect(p.last, q.first)
	if p.empty {
		p.first.union(q.first)
	}
	if q.empty {
		q.last.union(p.last)
	}
	return part{p.empty && q.empty, p.first, q.last}
}

func (b *builder) connect(from, to set) {
	for _, i := range from.indices() {
		b.follow[i].union(to)
	}
}

func (v *sequence) look(s *Story) (o Outcome, ok bool) {
	now := slices.Clone(v.first) // the positions that may come next
	last := set(nil)             // those that were reached
	reached := newSet(len(v.symbols))
	var before *call
	n := 0
	for _, c := range s.calls {
		if slices.Contains(v.ignore, c.tool) {
			continue
		}
		n++
		o.Triggered = true
		clear(reached)
		any := false
		for w, word := range now {
			for i := w * 64; word != 0; i, word = i+1, word>>1 {
				if word&1 != 0 && v.symbols[i].match(c.tool) {
					reached.add(i)
					any = true
				}
			}
		}
		if !any {
			o.broken([]int{c.event}, func() string { return v.unexpected(c, n, before, now, last) })
			return o, true
		}
		if last == nil {
			last = newSet(len(v.symbols))
		}
		copy(last, reached)
		clear(now)
		for w, word := range reached {
			for i := w * 64; word != 0; i, word = i+1, word>>1 {
				if word&1 != 0 {
					now.union(v.follow[i])
				}
			}
		}
		before = c
	}
	if s.cut || n == 0 && v.empty || last != nil && last.meets(v.last) {
		return o, true
	}
	o.broken([]int{s.last}, func() string {
		if before == nil {
			return fmt.Sprintf("the run ended without a call, the sequence begins with: %s", v.choices(v.first))
		}
		return fmt.Sprintf("the run ended after call %d, event %d: %s; the sequence goes on with: %s", n, before.event, before, v.choices(now))
	})
	return o, true
}

func (v *sequence) unexpected(c *call, n int, before *call, now, last set) string {
	text := fmt.Sprintf("event %d: call %d is %s", c.event, n, c)
	allowed := v.choices(now)
	if before != nil {
		text += " behind " + visible(before.tool, 60)
		if last.meets(v.last) {
			allowed = strings.TrimPrefix(allowed+", or the end", ", or ")
		}
	} else if v.empty {
		allowed += ", or no call at all"
	}
	return text + "; the sequence allows: " + allowed
}

// choices names what a set of positions stands for.
func (v *sequence) choices(of set) string {
	var names []string
	for _, i := range of.indices() {
		names = append(names, v.symbols[i].String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
