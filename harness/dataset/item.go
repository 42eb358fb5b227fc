package dataset

import (
	"slices"
	"time"

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
	// Input is what the user says: [conversation.Text], [conversation.Image] and [conversation.Document] parts. It is nil where Turns, Messages or User say it: exactly one of Input and Turns is set, but for items with Messages or User, which may have neither.
	Input []conversation.Content
	// Turns are what the user says turn by turn, each with the checks of its answer; nil for an item of one turn. Checks look at the last answer.
	Turns []Turn
	// Messages is the conversation before Input or Turns; without these its last message is the user's. Every message is valid, and every message has an id.
	Messages []conversation.Message
	// User drives the conversation: after Input where there is one, else from the first turn. Nil where nobody is simulated.
	User *User
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
	// ToolMocks are answers to the calls of tools, by the tool's name.
	ToolMocks map[string]Mock
	// Approvals answer requests for approval; the first that names the tool and is not used up serves. What none names is denied.
	Approvals []Approval
	// Answers are replies to the questions that tools ask (clarify and other elicitations), by the tool's name, in the order in which they are asked.
	Answers map[string][]strict.Node
	// Limits are those of the invariant budget; nil where none is given.
	Limits *Limits
	// PassIf bounds the share of repeats that pass, and makes one verdict of them; nil where each repeat has its own.
	PassIf *Bound
	// Quarantine is nil where the item counts as any other.
	Quarantine *Quarantine
	// ItemHash covers what is asked and given: input with the bytes of its media, vars, tool_context and script. ChecksHash covers how it is judged: checks, invariants, drop, threshold and expected. Both are 16 hexadecimal digits and do not depend on the order of keys or on where things stand.
	ItemHash, ChecksHash string
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
	it.ToolContext = combine(keyToolContext, base.rendered(s, base.toolContext, p, "tool_context"), own.rendered(s, own.toolContext, p, "tool_context"))

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
	from, script := base, base.script
	if own.isReset(keyScript) || !own.script.IsZero() {
		from, script = own, own.script
	}
	if !script.IsZero() {
		it.Script = steps(from.rendered(s, script, p, "script"), hasTemplate(script), from.problems(p).Key("script"))
	}
	m.scratch = it.setHashes(input, m.scratch)
	return it
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
	addCheck := func(c listed[Check], i int, from *layer) {
		if c.render {
			c.value.Args = s.render(c.value.Args, from.problems(p).Key("checks").At(i).Key(c.value.Kind))
		}
		it.Checks = append(it.Checks, c.value)
	}
	var dropped map[string]bool // whether the name was met
	if len(it.Drop) > 0 {
		dropped = make(map[string]bool, len(it.Drop))
		for _, name := range it.Drop {
			dropped[name] = false
		}
	}
	for i, c := range inherited {
		if _, drop := dropped[base.checkNames[i]]; drop {
			dropped[base.checkNames[i]] = true
			continue
		}
		addCheck(c, i, base)
	}
	for i, c := range own.checks {
		addCheck(c, i, own)
	}
	nameChecks(it.Checks, p)

	invariants := base.invariants
	if own.isReset(keyInvariants) {
		invariants = nil
	}
	add := func(v listed[Invariant], i int, from *layer) {
		if v.render {
			v.value.Params = s.render(v.value.Params, from.problems(p).Key("invariants").At(i))
		}
		it.Invariants = append(it.Invariants, v.value)
	}
	for i, v := range invariants {
		if _, drop := dropped[v.value.Name]; drop {
			dropped[v.value.Name] = true
			continue
		}
		add(v, i, base)
	}
	for i, v := range own.invariants {
		add(v, i, own)
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
