package dataset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/filter"
	"github.com/echoeval/echoeval/harness/rule"
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
	// Policy says which tools the agent may use; the zero value allows all.
	Policy Policy
	// Limits are those of the invariant budget; nil where none is given.
	Limits *Limits
	// PassIf bounds the share of repeats that pass, and makes one verdict of them; nil where each repeat has its own.
	PassIf *eval.Bound
	// Quarantine is nil where the item counts as any other.
	Quarantine *Quarantine
	// Partial says that the item is wrong, so that only its checks can be looked at; see [Dataset.Inspect].
	Partial bool
	// ItemHash covers what is asked and given: input with the bytes of its media, vars, tool_context, script and policy. ChecksHash covers how it is judged: checks, invariants, drop, threshold and expected. Both are 16 hexadecimal digits and do not depend on the order of keys or on where things stand.
	ItemHash, ChecksHash string
}

// build makes one item of its layers.
type build struct {
	d     *Dataset
	item  *Item
	stack []*layer // the lowest first
	scope scope
	media *media
	p     *strict.Problems // seen from the item
}

// top returns the highest layer that has the key, unless one above takes it back.
func (b *build) top(key int) *layer {
	for _, l := range slices.Backward(b.stack) {
		if !l.nodes[key].IsZero() {
			return l
		}
		if l.isReset(key) {
			return nil
		}
	}
	return nil
}

// at gives the problems of a key of a layer.
func (b *build) at(l *layer, key int) *strict.Problems {
	return l.problems(b.p).Key(itemKeyNames[key])
}

// value returns the value of a key with its layers laid upon each other, rendered where its texts are, and the highest layer that has it; nothing and nil where there is none.
func (b *build) value(key int) (strict.Node, *layer) {
	top := b.top(key)
	if top == nil {
		return strict.Node{}, nil
	}
	k := &itemKeys[key]
	if k.layering == replaces {
		return b.rendered(top, key), top
	}
	var n strict.Node
	for _, l := range b.stack {
		if l.isReset(key) {
			n = strict.Node{}
		}
		if own := b.rendered(l, key); n.IsZero() {
			n = own
		} else if !own.IsZero() {
			n = merge(n, own, k.layering == gathers)
		}
	}
	return n, top
}

func (b *build) rendered(l *layer, key int) strict.Node {
	n := l.nodes[key]
	if l.data || !itemKeys[key].rendered || !hasTemplate(n) {
		return n
	}
	return b.scope.render(n, b.at(l, key))
}

// set puts the value of a key into to where a layer has it.
func set[T any](b *build, key int, to *T, from func(*layer) *T) {
	if l := b.top(key); l != nil {
		if v := from(l); v != nil {
			*to = *v
		}
	}
}

// build lays the layers of an item upon each other, renders them and computes the hashes. The item is usable only where p has no new problems.
func (d *Dataset) build(own *layer, index int, node strict.Node, m *media, p *strict.Problems) *Item {
	it := &Item{ID: own.id, Index: index, Pos: node.Pos(), Timeout: time.Minute, Repeat: 1}
	b := &m.build
	*b = build{d: d, item: it, stack: append(append(b.stack[:0], d.lower...), own), media: m, p: p}
	b.identify()
	if len(d.overrides) > 0 {
		before := len(b.stack)
		b.override()
		if len(b.stack) > before {
			b.identify()
		}
	}
	if d.set != nil {
		b.stack = append(b.stack, d.set)
		b.identify()
	}
	it.ToolContext, _ = b.value(keyToolContext)
	set(b, keyTimeout, &it.Timeout, func(l *layer) *time.Duration { return l.timeout })
	set(b, keyRepeat, &it.Repeat, func(l *layer) *int { return l.repeat })
	set(b, keySkip, &it.Skip, func(l *layer) *string { return l.skip })
	set(b, keyGroup, &it.Group, func(l *layer) *string { return l.group })
	set(b, keyWorkspace, &it.Workspace, func(l *layer) *string { return l.workspace })
	set(b, keyProviders, &it.Providers, func(l *layer) *[]string { return &l.providers })
	set(b, keyApprovals, &it.Approvals, func(l *layer) *[]Approval { return &l.approvals })
	if l := b.top(keyThreshold); l != nil {
		it.Threshold = l.threshold
	}
	if l := b.top(keyPassIf); l != nil {
		it.PassIf = l.passIf
	}
	if l := b.top(keyQuarantine); l != nil {
		it.Quarantine = l.quarantine
	}
	before := p.Len()
	b.judge()
	m.unrendered = b.scope.unsure || p.Len() != before
	h := &m.hashed
	*h = hashed{turns: h.turns[:0]}
	b.speak(node, h)
	b.world(h)
	if n, l := b.value(keyScript); l != nil {
		it.Script = steps(n, hasTemplate(l.nodes[keyScript]), b.at(l, keyScript))
	}
	m.scratch = it.setHashes(h, m.scratch, b.d)
	return it
}

// identify sets what templates and overrides look at.
func (b *build) identify() {
	it := b.item
	it.Vars, _ = b.value(keyVars)
	it.Metadata, _ = b.value(keyMetadata)
	it.Expected, _ = b.value(keyExpected)
	it.Tags = nil
	for _, l := range b.stack {
		if l.isReset(keyTags) {
			it.Tags = nil
		}
		it.Tags = append(it.Tags, l.tags...)
	}
	slices.Sort(it.Tags)
	it.Tags = slices.Compact(it.Tags)
	b.scope = scope{item: it.ID, vars: it.Vars, expected: it.Expected, metadata: it.Metadata}
	b.scope.unsure = slices.ContainsFunc(b.stack, func(l *layer) bool { return l.unsure })
}

// override adds the layers of the overrides that the item meets.
func (b *build) override() {
	it := b.item
	subject := &filter.Subject{ID: it.ID, Tags: it.Tags, Metadata: it.Metadata, Vars: it.Vars}
	for i := range b.d.overrides {
		o := &b.d.overrides[i]
		met, err := o.match.Match(subject)
		if err != nil && o.why == "" {
			o.why = fmt.Sprintf("item %q: %s", it.ID, err)
		}
		if met {
			o.met = true
			b.stack = append(b.stack, &o.layer)
		}
	}
}

// speak sets what the user says: input, turns, messages and user.
func (b *build) speak(node strict.Node, h *hashed) {
	it, d := b.item, b.d
	input, turns := b.top(keyInput), b.top(keyTurns)
	if n, l := b.value(keyMessages); l != nil {
		it.Messages = messages(n, b.at(l, keyMessages))
		h.messages = n
		if last := len(it.Messages); input == nil && turns == nil && b.top(keyUser) == nil && last > 0 && it.Messages[last-1].Role() != conversation.RoleUser {
			b.at(l, keyMessages).Add(n.Index(n.Len()-1).Pos(), "add input: ..., or end with a message of the user", "nobody asks anything: the last message is not the user's")
		}
	}
	if n, l := b.value(keyUser); l != nil {
		at := b.at(l, keyUser)
		it.User = user(n, true, at)
		h.user = n
		if it.User != nil && !d.unsure {
			if _, err := d.Role(RoleUser, it.User.Provider); err != nil {
				at.Add(n.Pos(), strings.Join(failure.Hints(err), "; "), "%s", err)
			}
		}
	}
	if input != nil {
		it.Input, h.input = d.content(input.nodes[keyInput], input, b, b.at(input, keyInput))
	}
	if turns != nil {
		b.turns(turns, h)
	}
	if input == nil && turns == nil && it.User == nil && it.Messages == nil && !node.Misspells(itemKeyNames, "input", "turns", "user", "messages") {
		b.p.Add(node.Pos(), "add it: input: ...", "key \"input\" is missing")
	}
}

func (b *build) turns(l *layer, h *hashed) {
	at := b.at(l, keyTurns)
	for i, t := range l.turns {
		own := at.At(i)
		turn := Turn{Pos: t.node.Pos()}
		var text []byte
		if !t.input.IsZero() {
			turn.Input, text = b.d.content(t.input, l, b, own.Key("input"))
		}
		h.turns = append(append(h.turns, text...), ',')
		for k, c := range t.checks {
			turn.Checks = append(turn.Checks, b.check(c, own.Key("checks").At(k)))
		}
		nameChecks(turn.Checks, own)
		b.item.Turns = append(b.item.Turns, turn)
	}
}

// world sets what answers the agent beside its model.
func (b *build) world(h *hashed) {
	if n, l := b.value(keyToolMocks); l != nil {
		b.item.ToolMocks = mocks(n, b.at(l, keyToolMocks))
		h.mocks = n
	}
	if n, l := b.value(keyAnswers); l != nil {
		b.item.Answers = answers(n, b.at(l, keyAnswers))
		h.answers = n
	}
	if n, l := b.value(keyPolicy); l != nil {
		var looked strict.Problems // each layer was looked at by itself
		b.item.Policy = policyOf(n, &looked)
		h.policy = n
	}
	if l := b.top(keyApprovals); l != nil {
		h.approvals = l.nodes[keyApprovals]
	}
	if n, l := b.value(keyLimits); l != nil {
		b.item.Limits = limits(n, b.at(l, keyLimits))
		h.limits = n
	}
}

// check renders a check. at is where it stands in its list.
func (b *build) check(c listed[Check], at *strict.Problems) Check {
	if c.render {
		at = at.Key(c.value.Kind)
		if c.library != "" {
			at = b.p.Root().Key("checks").Key(c.library)
		}
		c.value.Args = b.scope.render(c.value.Args, at)
	}
	return c.value
}

// from is a check or an invariant and where it comes from.
type from[T any] struct {
	listed[T]
	layer *layer
	index int
}

// judge sets what the item is judged by. The highest layer that drops something drops what those below it brought.
func (b *build) judge() {
	it := b.item
	checks, invariants := b.media.checks[:0], b.media.invariants[:0]
	dropping := b.top(keyDrop)
	for _, l := range b.stack {
		if l.isReset(keyChecks) {
			checks = checks[:0]
		}
		if l.isReset(keyInvariants) {
			invariants = invariants[:0]
		}
		if l == dropping && len(l.drop) > 0 {
			checks, invariants = b.drop(l, checks, invariants)
		}
		for i, c := range l.checks {
			checks = append(checks, from[Check]{c, l, i})
		}
		for i, v := range l.invariants {
			invariants = append(invariants, from[Invariant]{v, l, i})
		}
	}
	b.media.checks, b.media.invariants = checks, invariants
	it.Checks = make([]Check, 0, len(checks))
	for _, c := range checks {
		if !c.render {
			it.Checks = append(it.Checks, c.value)
			continue
		}
		it.Checks = append(it.Checks, b.check(c.listed, c.layer.problems(b.p).Key("checks").At(c.index)))
	}
	nameChecks(it.Checks, b.p)
	for _, v := range invariants {
		if v.render {
			at := v.layer.problems(b.p).Key("invariants").At(v.index)
			if v.library != "" {
				at = b.p.Root().Key("invariants").Key(v.library)
			}
			v.value.Params = b.scope.render(v.value.Params, at)
			if rule.Is(v.value.Params) {
				if v.value.Rule = rule.Compile(v.value.Params, at); v.value.Rule == nil {
					continue
				}
				v.value.Rule = v.value.Rule.Named(v.value.Name)
			}
		}
		it.Invariants = append(it.Invariants, v.value)
	}
}

// drop removes what a layer drops. An invariant of the standard group need not be named by the dataset; any other name must be met.
func (b *build) drop(l *layer, checks []from[Check], invariants []from[Invariant]) ([]from[Check], []from[Invariant]) {
	met := make(map[string]bool, len(l.drop))
	for _, name := range l.drop {
		met[name] = false
	}
	b.item.Drop = l.drop
	var names []string
	if len(checks) > 0 {
		inherited := make([]Check, len(checks))
		for i := range checks {
			inherited[i] = checks[i].value
		}
		nameChecks(inherited, nil)
		kept := checks[:0]
		for i, c := range checks {
			name := inherited[i].Name
			names = append(names, name)
			if _, drop := met[name]; drop {
				met[name] = true
				continue
			}
			kept = append(kept, c)
		}
		checks = kept
	}
	invariants = slices.DeleteFunc(invariants, func(v from[Invariant]) bool {
		name := v.value.Name
		if v.library != "" {
			name = v.library
		}
		names = append(names, name)
		_, drop := met[name]
		if drop {
			met[name] = true
		}
		return drop
	})
	if b.d.options.Invariants == nil {
		return checks, invariants
	}
	at := l.problems(b.p).Key("drop")
	for i, n := range l.nodes[keyDrop].Items() {
		name := n.Text()
		if !met[name] && !b.d.lessNames && !slices.Contains(b.d.options.Invariants, name) {
			at.At(i).Add(n.Pos(), strict.Suggest(name, slices.Concat(names, b.d.options.Invariants)), "nothing inherited is named %q", name)
		}
	}
	return checks, invariants
}
