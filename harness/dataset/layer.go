package dataset

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/echoeval/echoeval/core/strict"
)

// layer is what the defaults or an item say, before they are laid upon each other. A key set to null is in reset.
type layer struct {
	reset uint32
	data  bool // from a .jsonl file: never rendered

	defaults bool
	id       string
	input    strict.Node
	script   strict.Node

	expected                    strict.Node
	metadata, vars, toolContext strict.Node

	checks     []listed[Check]
	invariants []listed[Invariant]
	checkNames []string // by which an item may drop them
	drop       []string
	dropAt     []strict.Node
	tags       []string
	workspace  *string
	timeout    *time.Duration
	repeat     *int
	skip       *string
	group      *string
	providers  []string
	threshold  *float64
}

// The keys of an item, in the order of itemKeys.
const (
	keyID = iota
	keyInput
	keyExpected
	keyChecks
	keyInvariants
	keyDrop
	keyTags
	keyMetadata
	keyVars
	keyToolContext
	keyWorkspace
	keyTimeout
	keyRepeat
	keySkip
	keyGroup
	keyProviders
	keyThreshold
	keyScript
)

var itemKeys = []string{"id", "input", "expected", "checks", "invariants", "drop", "tags", "metadata", "vars", "tool_context", "workspace", "timeout", "repeat", "skip", "group", "providers", "threshold", "script"}

// laterItemKeys are keys of the format that this version does not read.
var laterItemKeys = []string{"turns", "messages", "audio", "user", "tool_mocks", "approvals", "answers", "limits", "pass_if", "quarantine", "database", "policy", "channels", "artifacts"}

func (l *layer) isReset(key int) bool { return l.reset&(1<<key) != 0 }

// layer decodes one layer. What is wrong is added to p.
func (d *Dataset) layer(n strict.Node, defaults, data bool, p *strict.Problems) layer {
	l := layer{data: data, defaults: defaults}
	for key, v := range n.Fields() {
		k := slices.Index(itemKeys, key.Name)
		if k < 0 || k == keyID && defaults {
			d.unknownItemKey(key, defaults, p)
			continue
		}
		if v.IsNull() && k != keyID {
			l.reset |= 1 << k
			continue
		}
		at := p.Key(key.Name)
		switch k {
		case keyID:
			if l.id = v.Text(); v.Kind() != strict.String {
				l.id = ""
				at.WrongType(v, "a string")
			} else if problem := itemIDProblem(l.id); problem != "" {
				at.Add(v.Pos(), "", "%s", problem)
			}
		case keyInput:
			l.input = v
			if defaults && !hasTemplate(v) {
				checkInput(v, at) // that of an item is looked at when it is rendered
			}
		case keyExpected:
			l.expected = v
		case keyChecks:
			l.checks = d.checks(v, data, at)
		case keyInvariants:
			l.invariants = d.invariants(v, data, at)
		case keyDrop:
			strict.Decode(v, &l.drop, at)
			for _, name := range v.Items() {
				l.dropAt = append(l.dropAt, name)
			}
		case keyTags:
			l.tags = tags(v, at)
		case keyMetadata:
			l.metadata = mapping(v, at)
		case keyVars:
			l.vars = mapping(v, at)
		case keyToolContext:
			l.toolContext = mapping(v, at)
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
		case keyScript:
			l.script = v
			if defaults && !hasTemplate(v) {
				steps(v, false, at)
			}
		}
	}
	return l
}

const maxRepeat = 10_000

func (d *Dataset) unknownItemKey(key strict.Key, defaults bool, p *strict.Problems) {
	if message, hint := later(key.Name, laterItemKeys...); message != "" {
		p.Add(key.Pos(), hint, "%s", message)
		return
	}
	if key.Name == "id" {
		p.Add(key.Pos(), "give each item its own", "defaults have no id")
		return
	}
	choices := itemKeys
	if defaults {
		choices = itemKeys[keyID+1:]
	}
	p.Unknown(key, choices)
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

// merge lays over upon under as the rules of layers say for mappings: by key at every level, null taking back what is inherited.
func merge(under, over strict.Node) strict.Node {
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
		case !upper.IsNull():
			fields = append(fields, strict.Field{Key: key, Value: merge(value, upper)})
		}
	}
	for key, value := range over.Fields() {
		if under.Get(key.Name).IsZero() {
			fields = append(fields, strict.Field{Key: key, Value: value})
		}
	}
	return over.NewMapping(fields)
}

// rendered renders the value of a key of the layer, unless the layer is data.
func (l *layer) rendered(s scope, n strict.Node, p *strict.Problems, key string) strict.Node {
	if l.data || !hasTemplate(n) {
		return n
	}
	return s.render(n, l.problems(p).Key(key))
}

// problems gives the problems of an item as seen from the layer.
func (l *layer) problems(p *strict.Problems) *strict.Problems {
	if l.defaults {
		return p.Root().Key("defaults")
	}
	return p
}
