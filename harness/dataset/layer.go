package dataset

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
)

// layer is what one place says of an item, before it is laid upon others. A key set to null is in reset.
type layer struct {
	// name is how the layer is called where an item is explained.
	name string
	// path is where the layer stands, for problems; nil for the item itself.
	path  func(root *strict.Problems) *strict.Problems
	reset uint32
	data  bool // from a file of data: never rendered
	// judging counts the problems with its checks and invariants.
	judging int
	// unsure says that what templates look at is wrong.
	unsure bool

	id    string
	nodes [keyCount]strict.Node // as written; zero where the key is not there or null

	checks     []listed[Check]
	invariants []listed[Invariant]
	turns      []turn
	drop       []string
	tags       []string
	workspace  *string
	timeout    *time.Duration
	repeat     *int
	skip       *string
	group      *string
	providers  []string
	threshold  *float64
	passIf     *eval.Bound
	approvals  []Approval
	quarantine *Quarantine
}

// turn is a turn before it is rendered.
type turn struct {
	node   strict.Node
	input  strict.Node
	checks []listed[Check]
}

func (l *layer) isReset(key int) bool { return l.reset&(1<<key) != 0 }

// own reports whether the layer is that of the item itself, which is looked at as a whole when it is made.
func (l *layer) own() bool { return l.path == nil }

// problems gives the problems of an item as seen from the layer.
func (l *layer) problems(p *strict.Problems) *strict.Problems {
	if l.own() {
		return p
	}
	return l.path(p.Root())
}

// decode decodes the keys of one layer into l, whose name, path and data are set. extra names a key that is not the item's. What is wrong is added to p, which is seen from the layer.
func (d *Dataset) decodeLayer(l *layer, n strict.Node, extra string, p *strict.Problems) {
	var at strict.Problems
	for key, v := range n.Fields() {
		k := slices.Index(itemKeyNames, key.Name)
		if k < 0 || k == keyID && !l.own() {
			if key.Name != extra || extra == "" {
				d.unknownItemKey(key, l, extra, p)
				near, ok := strict.Nearest(key.Name, itemKeyNames)
				l.unsure = l.unsure || ok && slices.Contains([]string{"vars", "expected", "metadata"}, near)
			}
			continue
		}
		if v.IsNull() && k != keyID {
			l.reset |= 1 << k
			continue
		}
		l.nodes[k] = v
		found := p.Len()
		d.decodeKey(l, k, v, p.Enter(itemKeyNames[k], &at))
		if k == keyChecks || k == keyInvariants {
			l.judging += p.Len() - found
		}
	}
	for _, rule := range instead {
		if l.nodes[rule.key].IsZero() {
			continue
		}
		for _, other := range rule.over {
			if l.nodes[other].IsZero() {
				l.reset |= 1 << other
			} else if rule.key < other {
				p.Add(n.KeyPos(itemKeyNames[other]), "leave one of them out", "an item has either %s or %s", itemKeyNames[rule.key], itemKeyNames[other])
			}
		}
	}
}

func (d *Dataset) decodeKey(l *layer, k int, v strict.Node, at *strict.Problems) {
	whole := !l.own() && !hasTemplate(v) // the item's own values are looked at when they are rendered
	switch k {
	case keyID:
		if l.id = v.Text(); v.Kind() != strict.String {
			l.id = ""
			at.WrongType(v, "a string")
		} else if problem := itemIDProblem(l.id); problem != "" {
			at.Add(v.Pos(), "", "%s", problem)
		}
	case keyInput:
		if whole {
			checkInput(v, at)
		}
	case keyTurns:
		l.turns = d.turns(v, l.data, at)
	case keyMessages:
		if whole {
			messages(v, at)
		}
	case keyUser:
		if !l.own() {
			user(v, false, at)
		}
	case keyToolMocks:
		if mapping(v, at).IsZero() {
			l.nodes[k] = strict.Node{}
		} else if whole {
			mocks(v, at)
		}
	case keyAnswers, keyMetadata, keyVars, keyToolContext:
		l.nodes[k] = mapping(v, at)
		l.unsure = l.unsure || l.nodes[k].IsZero() && (k == keyMetadata || k == keyVars)
	case keyLimits:
		limits(v, at)
	case keyPolicy:
		l.nodes[k] = d.policy(v, at)
	case keyApprovals:
		l.approvals = approvals(v, at)
	case keyChecks:
		l.checks = d.checks(v, l.data, at)
	case keyInvariants:
		l.invariants = d.invariants(v, l.data, at)
	case keyDrop:
		strict.Decode(v, &l.drop, at)
	case keyTags:
		l.tags = tags(v, at)
	case keyWorkspace:
		l.workspace = d.workspace(v, at)
	case keyTimeout:
		strict.Decode(v, &l.timeout, at)
		if l.timeout != nil && *l.timeout <= 0 {
			at.Add(v.Pos(), "write how long the item may take: 60s", "want a duration above 0")
		}
	case keyRepeat:
		strict.Decode(v, &l.repeat, at)
		if l.repeat != nil && (*l.repeat < 1 || *l.repeat > maxRepeat) {
			at.Add(v.Pos(), "", "want a whole number from 1 to %d", maxRepeat)
		}
	case keySkip:
		strict.Decode(v, &l.skip, at)
		if l.skip != nil && strings.TrimSpace(*l.skip) == "" && v.Kind() == strict.String {
			at.Add(v.Pos(), "say why: skip: waits for the new form", "the reason is empty")
		}
	case keyGroup:
		strict.Decode(v, &l.group, at)
		if l.group != nil && *l.group == "" && v.Kind() == strict.String {
			at.Add(v.Pos(), "", "the group is empty")
		}
	case keyProviders:
		strict.Decode(v, &l.providers, at)
		for i, id := range v.Items() {
			d.checkProvider(id, at.At(i))
		}
		if v.Kind() == strict.Sequence && v.Len() == 0 {
			at.Add(v.Pos(), "name one, leave the key out, or say why: skip: ...", "the item is for no provider")
		}
	case keyThreshold:
		l.threshold = fraction(v, at)
	case keyPassIf:
		l.passIf = share(v, at)
	case keyScript:
		if whole {
			steps(v, false, at)
		}
	case keyQuarantine:
		l.quarantine = quarantine(v, at)
	}
}

const maxRepeat = 10_000

func (d *Dataset) unknownItemKey(key strict.Key, l *layer, extra string, p *strict.Problems) {
	if message, hint := later(key.Name, laterItemKeys...); message != "" {
		p.Add(key.Pos(), hint, "%s", message)
		return
	}
	if key.Name == "id" {
		p.Add(key.Pos(), "give each item its own", "%s have no id", plural(l.name))
		return
	}
	choices := itemKeyNames
	if !l.own() {
		choices = slices.Clone(itemKeyNames[keyID+1:])
	}
	if extra != "" {
		choices = append(choices, extra)
	}
	p.Unknown(key, choices)
}

// plural is what a layer is made of.
func plural(layer string) string {
	switch layer {
	case "project":
		return "defaults"
	case "--set":
		return "settings"
	}
	return layer
}

func mapping(n strict.Node, p *strict.Problems) strict.Node {
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping")
		return strict.Node{}
	}
	return n
}

func tags(n strict.Node, p *strict.Problems) []string {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of strings")
		return nil
	}
	list := make([]string, 0, n.Len())
	for i, tag := range n.Items() {
		text := tag.Text()
		switch {
		case tag.Kind() != strict.String:
			p.At(i).WrongType(tag, "a string")
		case text == "" || text[0] == '!' || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == ',' }):
			p.At(i).Add(tag.Pos(), "write one word; \"!\" before it means \"without\" on the command line", "%q is no tag", text)
		default:
			list = append(list, text)
		}
	}
	return list
}

// merge lays over upon under as the rules of layers say for mappings: by key at every level, null taking back what is inherited. With shallow the values of keys replace.
func merge(under, over strict.Node, shallow bool) strict.Node {
	if under.Kind() != strict.Mapping || over.Kind() != strict.Mapping {
		return over
	}
	if under.Len() == 0 {
		return over
	}
	var fields []strict.Field
	for key, value := range under.Fields() {
		upper := over.Get(key.Name)
		switch {
		case upper.IsZero():
			fields = append(fields, strict.Field{Key: key, Value: value})
		case upper.IsNull():
		case shallow:
			fields = append(fields, strict.Field{Key: key, Value: upper})
		default:
			fields = append(fields, strict.Field{Key: key, Value: merge(value, upper, false)})
		}
	}
	for key, value := range over.Fields() {
		if under.Get(key.Name).IsZero() {
			fields = append(fields, strict.Field{Key: key, Value: value})
		}
	}
	return over.NewMapping(fields)
}
