package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
)

// text builds the canonical texts that hashes are made of: JSON arrays whose places have fixed meanings.
type text []byte

func (t *text) node(n strict.Node) { *t = append(n.AppendCanonical(*t), ',') }
func (t *text) string(s string)    { t.node(strict.NewString(s)) }
func (t *text) int(i int)          { *t = append(strconv.AppendInt(*t, int64(i), 10), ',') }
func (t *text) bool(b bool)        { *t = append(strconv.AppendBool(*t, b), ',') }
func (t *text) raw(b []byte)       { *t = append(append(*t, b...), ',') }

func (t *text) number(f *float64) {
	if f == nil {
		*t = append(*t, "null,"...)
		return
	}
	*t = append(strconv.AppendFloat(*t, *f, 'g', -1, 64), ',')
}

func (t *text) strings(list []string) {
	*t = append(*t, '[')
	for _, s := range list {
		t.string(s)
	}
	*t = append(*t, "],"...)
}

func (t text) hash() string {
	sum := sha256.Sum256(t)
	return hex.EncodeToString(sum[:8])
}

// hashed is what the hashes of an item cover beside what the item holds, as canonical text or as the nodes that it was decoded from.
type hashed struct {
	input, turns                                              []byte
	messages, user, mocks, approvals, answers, policy, limits strict.Node
}

// later appends the value of a key that the first datasets did not have: nothing where it is not set, so that their hashes stay.
func (t *text) later(key string, n strict.Node) {
	if !n.IsZero() {
		t.string(key)
		t.node(n)
	}
}

func (t *text) checks(list []Check, d *Dataset) {
	for _, c := range list {
		if role, asks := asked[c.Kind]; asks {
			t.asked(role, c.Args, d)
		}
		t.string(c.Kind)
		t.node(c.Args)
		t.string(c.Name)
		t.bool(c.Not)
		t.number(c.Weight)
		t.number(c.Threshold)
		t.bool(c.Required)
	}
}

// asked are the roles of the providers that kinds of checks ask.
var asked = map[string]string{"judge": RoleJudge, "embedding_similarity": RoleEmbed}

// asked appends whom a check asks and what judges are told: another judge is another measure, and so is another space of vectors.
func (t *text) asked(role string, args strict.Node, d *Dataset) {
	var named []string
	switch of := args.Get("provider"); of.Kind() {
	case strict.String:
		named = []string{of.Text()}
	case strict.Sequence:
		for _, n := range of.Items() {
			named = append(named, n.Text())
		}
	}
	t.string(role)
	if role == RoleJudge {
		t.string(d.options.Judging)
	}
	for _, v := range d.Roles {
		if v.Role != role || named != nil && !slices.Contains(named, v.ID) {
			continue
		}
		t.strings([]string{v.ID, v.Vendor, v.Model, v.BaseURL})
		t.settings(v.Settings)
	}
}

func (t *text) settings(s llm.Settings) {
	whole := func(i *int64) {
		if i == nil {
			*t = append(*t, "null,"...)
			return
		}
		*t = append(strconv.AppendInt(*t, *i, 10), ',')
	}
	var most *int64
	if s.MaxTokens != nil {
		n := int64(*s.MaxTokens)
		most = &n
	}
	whole(most)
	whole(s.Seed)
	t.number(s.Temperature)
	t.number(s.TopP)
	t.strings(s.Stop)
	t.string(s.ReasoningEffort)
}

// setHashes sets the item's hashes.
func (i *Item) setHashes(h *hashed, scratch text, d *Dataset) text {
	t := scratch[:0]
	t.raw(h.input)
	t.node(i.Vars)
	t.node(i.ToolContext)
	for _, s := range i.Script {
		t = append(t, '[')
		if s.Text != nil {
			t.string(*s.Text)
		}
		for _, c := range s.Calls {
			t.string(c.Name)
			t.node(c.Args)
		}
		t = append(t, ']')
	}
	if i.Turns != nil {
		t.string("turns")
		t.raw(h.turns)
	}
	t.later("messages", h.messages)
	t.later("user", h.user)
	t.later("tool_mocks", h.mocks)
	t.later("approvals", h.approvals)
	t.later("answers", h.answers)
	t.later("policy", h.policy)
	i.ItemHash = t.hash()

	t = t[:0]
	t.checks(i.Checks, d)
	t = append(t, ';')
	for _, v := range i.Invariants {
		t.string(v.Name)
		t.string(v.Severity)
		t.node(v.Params)
	}
	t = append(t, ';')
	drop := slices.Clone(i.Drop)
	slices.Sort(drop)
	t.strings(drop)
	t.number(i.Threshold)
	t.node(i.Expected)
	for k, turn := range i.Turns {
		if len(turn.Checks) > 0 {
			t.int(k + 1)
			t.checks(turn.Checks, d)
		}
	}
	t.later("limits", h.limits)
	if i.PassIf != nil {
		t.string("pass_if")
		t.string(i.PassIf.Op)
		t.number(&i.PassIf.Value)
	}
	i.ChecksHash = t.hash()
	return t
}

// appendResolved appends all that the dataset's hash covers of the item.
func (i *Item) appendResolved(dst []byte) []byte {
	t := text(dst)
	t.string(i.ID)
	t.string(i.ItemHash)
	t.string(i.ChecksHash)
	t.strings(i.Tags)
	t.node(i.Metadata)
	t.string(i.Workspace)
	t.string(i.Timeout.String())
	t.int(i.Repeat)
	t.string(i.Skip)
	t.string(i.Group)
	t.strings(i.Providers)
	if q := i.Quarantine; q != nil {
		t.string("quarantine")
		t.strings([]string{q.Owner, q.Until.Format(time.DateOnly), q.Reason})
	}
	return append(t, '\n')
}

// headText is what the dataset's hash covers beside the items.
func (d *Dataset) headText(root strict.Node) []byte {
	var t text
	t.string(d.Name)
	t.node(d.Agent.Node)
	t.node(root.Get("providers"))
	for _, v := range d.Providers {
		t.node(v.Agent.Node)
	}
	t.node(root.Get("gates"))
	t.bool(d.AllowLeftover)
	for _, v := range d.fromLibraries {
		t.later("provider "+v.id, v.node)
	}
	t.later("target", root.Get("target"))
	t.later("normalize", root.Get("replay").Get("normalize"))
	for _, class := range slices.Sorted(maps.Keys(d.Drift)) {
		t.strings([]string{"drift", class, d.Drift[class]})
	}
	return append(t, '\n')
}
