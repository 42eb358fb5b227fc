package dataset

import (
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/rule"
)

// Check is one check of an item, with templates rendered. What its arguments mean is the check's own business.
type Check struct {
	Kind string
	// Args are the arguments; the zero node where the check is written as a bare word.
	Args strict.Node
	// Name is the name given, else the kind, with #2 for the second of the kind and so on. It is unique in its item.
	Name string
	// Not negates the check: {not: {regex: ...}} is kind regex.
	Not bool
	// Weight and Threshold are nil where they are not given.
	Weight, Threshold *float64
	Required          bool
	Pos               failure.Position
}

// Invariant is an invariant that an item names beside the standard ones.
type Invariant struct {
	Name string
	// Severity is "error" or "warn", and "" where it is not given.
	Severity string
	// Params are the further keys beside use and severity, a mapping; the zero node where there are none. Of a rule they are the rule as it is written.
	Params strict.Node
	// Rule is a rule of the user; nil for an invariant that is built in.
	Rule *rule.Rule
	Pos  failure.Position
}

// listed is a check or an invariant together with what rendering needs to know.
type listed[T any] struct {
	value   T
	render  bool   // its arguments hold templates
	library string // the name under which a library has it; "" where none does
}

func (d *Dataset) checks(n strict.Node, data bool, p *strict.Problems) []listed[Check] {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of checks")
		return nil
	}
	list := make([]listed[Check], 0, n.Len())
	for i, entry := range n.Items() {
		at := p.At(i)
		if c, ok := d.libraryCheck(entry, at); ok {
			if c.library != "" {
				list = append(list, c)
			} else {
				d.lessNames = true
			}
			continue
		}
		c := Check{Pos: entry.Pos()}
		if d.check(entry, &c, true, at) {
			list = append(list, listed[Check]{c, !data && hasTemplate(c.Args), ""})
		} else {
			d.lessNames = true
		}
	}
	return list
}

// check decodes one check. The check inside a not has no modifiers of its own.
func (d *Dataset) check(n strict.Node, c *Check, outer bool, p *strict.Problems) bool {
	if n.Kind() == strict.String {
		c.Kind = n.Text()
		return d.knownCheck(n.Pos(), c.Kind, p)
	}
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a check: {contains: ...}, or a word such as no_tool_calls")
		return false
	}
	found := p.Len()
	var kinds []strict.Field
	for key, v := range n.Fields() {
		if !slices.Contains(modifiers, key.Name) {
			kinds = append(kinds, strict.Field{Key: key, Value: v})
			continue
		}
		if !outer {
			p.Add(key.Pos(), "put it beside not", "%s stands within not", key.Name)
			continue
		}
		c.modify(key.Name, v, p.Key(key.Name))
	}
	if len(kinds) > 1 && d.options.Checks != nil {
		// Of several the ones that are no check are the mistake: a misspelt modifier most often.
		if known := slices.DeleteFunc(slices.Clone(kinds), func(f strict.Field) bool { return !d.isCheck(f.Key.Name) }); len(known) == 1 {
			for _, f := range kinds {
				if f.Key != known[0].Key {
					p.Unknown(f.Key, modifiers)
				}
			}
			kinds = known
		}
	}
	switch {
	case len(kinds) == 0:
		p.Add(n.Pos(), "add it: contains: ...", "a check names its kind")
		return false
	case len(kinds) > 1:
		p.Add(kinds[1].Key.Pos(), "write two entries in the list of checks", "a check has one kind, not both %q and %q", kinds[0].Key.Name, kinds[1].Key.Name)
		return false
	}
	kind := kinds[0]
	if kind.Key.Name == "not" {
		if !outer {
			p.Add(kind.Key.Pos(), "leave both out", "not within not")
			return false
		}
		c.Not = true
		return d.check(kind.Value, c, false, p.Key("not")) && p.Len() == found
	}
	c.Kind, c.Args = kind.Key.Name, kind.Value
	return d.knownCheck(kind.Key.Pos(), c.Kind, p) && p.Len() == found
}

// modify sets what stands beside the kind of a check.
func (c *Check) modify(key string, v strict.Node, at *strict.Problems) {
	switch key {
	case "name":
		strict.Decode(v, &c.Name, at)
		if v.Kind() == strict.String && c.Name == "" {
			at.Add(v.Pos(), "", "a name is empty")
		}
	case "weight":
		strict.Decode(v, &c.Weight, at)
		if c.Weight != nil && *c.Weight < 0 {
			at.Add(v.Pos(), "0 reports without counting", "want a weight from 0")
		}
	case "threshold":
		c.Threshold = fraction(v, at)
	case "required":
		strict.Decode(v, &c.Required, at)
	}
}

func (d *Dataset) isCheck(kind string) bool {
	return kind == "not" || slices.Contains(d.options.Checks, kind)
}

func (d *Dataset) knownCheck(pos failure.Position, kind string, p *strict.Problems) bool {
	if slices.Contains(d.options.Later, kind) {
		p.Add(pos, "remove it; reading the file without it would run something else than it says", "check %q is not in this version", kind)
		return false
	}
	if d.options.Checks != nil && !d.isCheck(kind) {
		if _, right := d.libraries.checks[kind]; !right && d.libraries.mayDefine("check", kind) {
			return false
		}
		hint := strict.Suggest(kind, slices.Concat(d.options.Checks, []string{"not"}, namesOf(d.libraries.checks)))
		if _, ok := d.libraries.checks[kind]; ok {
			hint = "a check of a library is used by its name: {use: " + kind + "}"
		}
		p.Add(pos, hint, "unknown check %q", kind)
		return false
	}
	return true
}

func fraction(n strict.Node, p *strict.Problems) *float64 {
	var f *float64
	strict.Decode(n, &f, p)
	if f != nil && (*f < 0 || *f > 1) {
		p.Add(n.Pos(), "", "want a fraction from 0 to 1")
	}
	return f
}

func (d *Dataset) invariants(n strict.Node, data bool, p *strict.Problems) []listed[Invariant] {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of invariants")
		return nil
	}
	list := make([]listed[Invariant], 0, n.Len())
	for i, entry := range n.Items() {
		at := p.At(i)
		if rule.Is(entry) && entry.Get("use").IsZero() {
			if l, ok := d.rule(entry, data, at); ok {
				list = append(list, l)
			}
			continue
		}
		v, library := Invariant{Pos: entry.Pos()}, ""
		nameAt := entry
		switch entry.Kind() {
		case strict.String:
			v.Name = entry.Text()
		case strict.Mapping:
			var params []strict.Field
			for key, value := range entry.Fields() {
				switch key.Name {
				case "use":
					strict.Decode(value, &v.Name, at.Key("use"))
					nameAt = value
				case "severity":
					strict.Decode(value, &v.Severity, at.Key("severity"))
					if v.Severity != "error" && v.Severity != "warn" && value.Kind() == strict.String {
						at.Key("severity").Add(value.Pos(), strict.Suggest(v.Severity, []string{"error", "warn"}), "unknown severity %q", v.Severity)
					}
				default:
					params = append(params, strict.Field{Key: key, Value: value})
				}
			}
			if entry.Get("use").IsZero() {
				if !rule.Misspelt(entry, at) {
					at.Add(entry.Pos(), "name it: {use: iteration-limit, ...}", "key \"use\" is missing")
				}
				continue
			}
			if params != nil {
				v.Params = entry.NewMapping(params)
			}
		default:
			at.WrongType(entry, "an invariant: its name, or {use: name, ...}")
			continue
		}
		if of, ok := d.libraries.invariants[v.Name]; ok && nameAt.Kind() == strict.String {
			library = v.Name
			if !of.use(&v, nameAt, at) {
				continue
			}
		} else if nameAt.Kind() == strict.String && !d.knownInvariant(nameAt, at) {
			d.lessNames = true
			continue
		}
		list = append(list, listed[Invariant]{v, (!data || library != "") && hasTemplate(v.Params), library})
	}
	return list
}

// rule reads a rule. One with templates is read when they are filled.
func (d *Dataset) rule(n strict.Node, data bool, p *strict.Problems) (listed[Invariant], bool) {
	v := Invariant{Name: rule.NameOf(n), Params: n, Pos: n.Pos()}
	if !data && hasTemplate(n) {
		found := p.Len()
		if rule.CheckTemplates(n, p); p.Len() > found {
			return listed[Invariant]{}, false
		}
		return listed[Invariant]{value: v, render: true}, true
	}
	if v.Rule = rule.Compile(n, p); v.Rule == nil {
		return listed[Invariant]{}, false
	}
	if slices.Contains(d.options.Invariants, v.Name) || d.libraries.invariants[v.Name] != nil {
		p.Key("name").Add(n.Get("name").Pos(), "give it another name", "the name of rule %q is taken", v.Name)
		return listed[Invariant]{}, false
	}
	return listed[Invariant]{value: v}, true
}

func (d *Dataset) knownInvariant(n strict.Node, p *strict.Problems) bool {
	if d.options.Invariants == nil || slices.Contains(d.options.Invariants, n.Text()) {
		return true
	}
	if d.libraries.mayDefine("invariant", n.Text()) {
		return false
	}
	p.Add(n.Pos(), strict.Suggest(n.Text(), slices.Concat(d.options.Invariants, namesOf(d.libraries.invariants))), "unknown invariant %q", n.Text())
	return false
}

// nameChecks gives each check without a name that of its kind, numbered from the second. p is seen from the mapping that holds the checks; nil tells nothing.
func nameChecks(checks []Check, p *strict.Problems) {
	if len(checks) < 2 {
		for i := range checks {
			if checks[i].Name == "" {
				checks[i].Name = checks[i].Kind
			}
		}
		return
	}
	count := map[string]int{}
	first := make(map[string]failure.Position, len(checks))
	for i := range checks {
		c := &checks[i]
		if c.Name == "" {
			count[c.Kind]++
			c.Name = c.Kind
			if n := count[c.Kind]; n > 1 {
				c.Name += "#" + strconv.Itoa(n)
			}
		}
		if at, taken := first[c.Name]; taken && p != nil {
			p.Key("checks").Add(c.Pos, "give it another name: name: ...", "a check named %q stands here a second time, first at %s", c.Name, at)
			continue
		}
		first[c.Name] = c.Pos
	}
}

// checkNames looks whether listed checks can be told apart by their names.
func checkNames(list []listed[Check], p *strict.Problems) {
	checks := make([]Check, len(list))
	for i := range list {
		checks[i] = list[i].value
	}
	nameChecks(checks, p)
}
