package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

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

// setHashes sets the item's hashes. input is the canonical text of the input.
func (i *Item) setHashes(input []byte, scratch text) text {
	t := scratch[:0]
	t.raw(input)
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
	i.ItemHash = t.hash()

	t = t[:0]
	for _, c := range i.Checks {
		t.string(c.Kind)
		t.node(c.Args)
		t.string(c.Name)
		t.bool(c.Not)
		t.number(c.Weight)
		t.number(c.Threshold)
		t.bool(c.Required)
	}
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
	return append(t, '\n')
}
