package dataset

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Item is one item as it will run: defaults merged, templates rendered.
type Item struct {
	ID string
	// Index is the item's place in the whole dataset, from 1.
	Index int
	Pos   failure.Position
	// Input is what the user says: [conversation.Text], [conversation.Image] and [conversation.Document] parts, at least one.
	Input []conversation.Content
	// Expected is the answer looked for; the zero node where none is given.
	Expected   strict.Node
	Checks     []Check
	Invariants []Invariant
	// Drop are names of inherited checks, which are gone from Checks already, and of invariants, the standard ones included.
	Drop []string
	// Tags are sorted, each once.
	Tags []string
	// Metadata, Vars and ToolContext are mappings, or zero nodes. ToolContext never reaches a model.
	Metadata, Vars, ToolContext strict.Node
	// Workspace is the folder that is copied for the item, relative to the root; "" for none.
	Workspace string
	Timeout   time.Duration // 60s unless given
	Repeat    int           // 1 unless given
	// Skip is the reason why the item is not run; "" where it is.
	Skip string
	// Group is the cluster for standard errors; "" is the item itself.
	Group string
	// Providers are the ids of the providers that the item is for; nil is all.
	Providers []string
	// Threshold is asked of the weighted mean of the checks; nil asks each check for its own.
	Threshold *float64
	// Script is what the provider "script" answers.
	Script []Step
	// ItemHash covers what is asked and given: input with the bytes of its media, vars, tool_context and script. ChecksHash covers how it is judged: checks, invariants, drop, threshold and expected. Both are 16 hexadecimal digits and do not depend on the order of keys or on where things stand.
	ItemHash, ChecksHash string
}

// Step is one answer of a scripted model: a text or calls.
type Step struct {
	Text  *string
	Calls []Call
	Pos   failure.Position
}

// Call is a scripted tool call. Args is a mapping, or the zero node for no arguments.
type Call struct {
	Name string
	Args strict.Node
}

// layer is what the defaults or an item say, before they are laid upon each other. A key set to null is in reset.
type layer struct {
	reset  uint32
	data   bool // from a .jsonl file: never rendered
	id     string
	idAt   failure.Position
	input  strict.Node
	script strict.Node

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
	l := layer{data: data}
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
			l.idAt = v.Pos()
			found := p.Len()
			strict.Decode(v, &l.id, at)
			if problem := itemIDProblem(l.id); problem != "" && p.Len() == found {
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
			strict.Decode(v, &l.tags, at)
			checkTags(v, at)
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

func checkTags(n strict.Node, p *strict.Problems) {
	for i, tag := range n.Items() {
		if tag.Kind() != strict.String {
			continue // said already
		}
		if text := tag.Text(); text == "" || text[0] == '!' || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == ',' }) {
			p.At(i).Add(tag.Pos(), "write one word; \"!\" before it means \"without\" on the command line", "%q is no tag", text)
		}
	}
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

// pick returns the item's value of a key, else the default unless the item takes it back.
func pick[T any](over, under *T, reset bool) *T {
	if over != nil || reset {
		return over
	}
	return under
}

// item lays a layer upon the defaults, renders it and computes the hashes. The item is usable only where p has no new problems.
func (d *Dataset) item(own *layer, index int, pos failure.Position, m *media, p *strict.Problems) *Item {
	base := &d.defaults
	it := &Item{ID: own.id, Index: index, Pos: pos, Timeout: time.Minute, Repeat: 1}
	combine := func(key int, under, over strict.Node) strict.Node {
		switch {
		case own.isReset(key):
			return strict.Node{}
		case over.IsZero():
			return under
		}
		return merge(under, over)
	}
	it.Vars = combine(keyVars, base.vars, own.vars)
	it.Metadata = combine(keyMetadata, base.metadata, own.metadata)
	it.Expected = own.expected
	if it.Expected.IsZero() && !own.isReset(keyExpected) {
		it.Expected = base.expected
	}
	s := scope{item: it.ID, vars: it.Vars, expected: it.Expected, metadata: it.Metadata}
	under := p.Root().Key("defaults")
	it.ToolContext = combine(keyToolContext, s.render(base.toolContext, under.Key("tool_context")), own.rendered(s, own.toolContext, p.Key("tool_context")))

	if timeout := pick(own.timeout, base.timeout, own.isReset(keyTimeout)); timeout != nil {
		it.Timeout = *timeout
	}
	if repeat := pick(own.repeat, base.repeat, own.isReset(keyRepeat)); repeat != nil {
		it.Repeat = *repeat
	}
	it.Skip = value(pick(own.skip, base.skip, own.isReset(keySkip)))
	it.Group = value(pick(own.group, base.group, own.isReset(keyGroup)))
	it.Workspace = value(pick(own.workspace, base.workspace, own.isReset(keyWorkspace)))
	it.Threshold = pick(own.threshold, base.threshold, own.isReset(keyThreshold))
	it.Providers = own.providers
	if it.Providers == nil && !own.isReset(keyProviders) {
		it.Providers = base.providers
	}
	it.Tags = own.tags
	if len(base.tags) > 0 && !own.isReset(keyTags) {
		it.Tags = slices.Concat(base.tags, own.tags)
	}
	slices.Sort(it.Tags)
	it.Tags = slices.Compact(it.Tags)

	d.judged(it, base, own, s, p)
	input := d.content(it, base, own, s, m, p)
	from, script, at := base, base.script, under.Key("script")
	if own.isReset(keyScript) || !own.script.IsZero() {
		from, script, at = own, own.script, p.Key("script")
	}
	if !script.IsZero() {
		it.Script = steps(from.rendered(s, script, at), hasTemplate(script), at)
	}
	m.scratch = it.setHashes(input, m.scratch)
	return it
}

// rendered renders a part of the layer, unless the layer is data.
func (l *layer) rendered(s scope, n strict.Node, p *strict.Problems) strict.Node {
	if l.data {
		return n
	}
	return s.render(n, p)
}

// judged sets what the item is judged by.
func (d *Dataset) judged(it *Item, base, own *layer, s scope, p *strict.Problems) {
	dropAt := own.dropAt
	it.Drop = own.drop
	if it.Drop == nil && !own.isReset(keyDrop) {
		it.Drop, dropAt = base.drop, base.dropAt
	}
	inherited := base.checks
	if own.isReset(keyChecks) {
		inherited = nil
	}
	it.Checks = make([]Check, 0, len(inherited)+len(own.checks))
	under := p.Root().Key("defaults")
	addCheck := func(c listed[Check], i int, p *strict.Problems) {
		if c.render {
			c.value.Args = s.render(c.value.Args, p.Key("checks").At(i).Key(c.value.Kind))
		}
		it.Checks = append(it.Checks, c.value)
	}
	dropped := map[string]bool{} // whether the name was met
	for _, name := range it.Drop {
		dropped[name] = false
	}
	for i, c := range inherited {
		if _, drop := dropped[base.checkNames[i]]; drop {
			dropped[base.checkNames[i]] = true
			continue
		}
		addCheck(c, i, under)
	}
	for i, c := range own.checks {
		addCheck(c, i, p)
	}
	nameChecks(it.Checks, p.Key("checks"))

	invariants := base.invariants
	if own.isReset(keyInvariants) {
		invariants = nil
	}
	add := func(v listed[Invariant], i int, p *strict.Problems) {
		if v.render {
			v.value.Params = s.render(v.value.Params, p.Key("invariants").At(i))
		}
		it.Invariants = append(it.Invariants, v.value)
	}
	for i, v := range invariants {
		if _, drop := dropped[v.value.Name]; drop {
			dropped[v.value.Name] = true
			continue
		}
		add(v, i, under)
	}
	for i, v := range own.invariants {
		add(v, i, p)
	}
	d.checkDrop(dropped, dropAt, p)
}

// checkDrop reports names that nothing bears. An invariant of the standard group need not be named by the dataset.
func (d *Dataset) checkDrop(dropped map[string]bool, at []strict.Node, p *strict.Problems) {
	if len(dropped) == 0 || d.options.Invariants == nil {
		return
	}
	for i, n := range at {
		name := n.Text()
		if dropped[name] || slices.Contains(d.options.Invariants, name) {
			continue
		}
		choices := slices.Concat(d.defaults.checkNames, d.options.Invariants)
		p.Key("drop").At(i).Add(n.Pos(), strict.Suggest(name, choices), "nothing inherited is named %q", name)
	}
}

// steps decodes a script. In a rendered one a template may have put a number or a boolean in the place of a text.
func steps(n strict.Node, rendered bool, p *strict.Problems) []Step {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of steps such as {text: ...} or {call: {name: ..., args: {...}}}")
		return nil
	}
	list := make([]Step, 0, n.Len())
	for i, entry := range n.Items() {
		at := p.At(i)
		if entry.Kind() != strict.Mapping {
			at.WrongType(entry, "a step such as {text: ...} or {call: {name: ..., args: {...}}}")
			continue
		}
		step, kinds := Step{Pos: entry.Pos()}, 0
		for key, v := range entry.Fields() {
			inner := at.Key(key.Name)
			switch key.Name {
			case "text":
				kinds++
				if k := v.Kind(); rendered && (k == strict.Int || k == strict.Float || k == strict.Bool) {
					v = v.WithText(v.Text())
				}
				strict.Decode(v, &step.Text, inner)
			case "call":
				kinds++
				step.Calls = append(step.Calls, call(v, inner))
			case "calls":
				kinds++
				if v.Kind() != strict.Sequence {
					inner.WrongType(v, "a list of calls")
				}
				for k, c := range v.Items() {
					step.Calls = append(step.Calls, call(c, inner.At(k)))
				}
			default:
				at.Unknown(key, []string{"text", "call", "calls"})
			}
		}
		if kinds != 1 {
			at.Add(entry.Pos(), "write one of {text: ...}, {call: {...}}, {calls: [...]}", "a step is one answer, got %d", kinds)
		}
		list = append(list, step)
	}
	return list
}

type callKeys struct {
	Name string      `yaml:"name,required"`
	Args strict.Node `yaml:"args"`
}

func call(n strict.Node, p *strict.Problems) Call {
	var keys callKeys
	strict.Decode(n, &keys, p)
	if !keys.Args.IsZero() && keys.Args.Kind() != strict.Mapping {
		p.Key("args").WrongType(keys.Args, "a mapping of arguments")
	}
	if keys.Name == "" && n.Get("name").Kind() == strict.String {
		p.Key("name").Add(n.Get("name").Pos(), "", "a name is empty")
	}
	return Call{Name: keys.Name, Args: keys.Args}
}
