package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"iter"
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Items streams the items in the order of the dataset, each decoded, with defaults merged, templates rendered, media read and hashes set. It may be called again, and reads the files again; two streams of one dataset must not be read at the same time.
// An item that is wrong comes as an error, after which the next items follow; after [Dataset.Validate] there is none unless a file has changed.
func (d *Dataset) Items() iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		index, m := 0, &media{}
		for e := range d.entries() {
			index++
			var p strict.Problems
			item := d.read(e, index, m, &p)
			err := p.Err()
			if err != nil {
				item = nil
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// read makes an item of an entry. It is usable only where p has no new problems.
func (d *Dataset) read(e entry, index int, m *media, p *strict.Problems) *Item {
	p = e.path(p, index-1)
	if e.err != nil {
		p.AddError(e.err)
		return nil
	}
	n := e.node
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "an item: {id: ..., input: ...}")
		return nil
	}
	m.own = layer{name: "item", data: e.data}
	d.decodeLayer(&m.own, n, "", p)
	if n.Get("id").IsZero() && !n.Misspells(itemKeyNames, "id") {
		p.Add(n.Pos(), "add it: id: ...", "key \"id\" is missing")
	}
	return d.build(&m.own, index, n, m, p)
}

// Validate looks at all items once and reports what is wrong with any of them, up to [strict.MaxProblems] problems, each with its place. It finds ids that stand twice or differ only in case, and sets Count, Hash and Warnings.
//
// look, unless nil, is called with each item, and may add what else is wrong with it; see [Dataset.Inspect] for those that are wrong already. The item is not kept.
func (d *Dataset) Validate(look func(*Item, *strict.Problems)) error {
	var p strict.Problems
	d.Inspect(look, &p)
	return p.Err()
}

// seenID is what is kept of an item to find its id again: 16 bytes.
type seenID struct {
	sum   [12]byte // of the id without case
	index uint32
}

// Inspect is [Dataset.Validate] with the problems added to others. An item that is wrong is looked at too, as far as its checks are known: without those of its checks and invariants that are wrong, and with Partial set where something else is.
func (d *Dataset) Inspect(look func(*Item, *strict.Problems), p *strict.Problems) {
	sum := sha256.New()
	sum.Write(d.head)
	var ids []seenID
	index, m := 0, &media{}
	begin := p.Len()
	for i := range d.overrides {
		d.overrides[i].met, d.overrides[i].why = false, ""
	}
	var line []byte
	var idle vacuous
	for e := range d.entries() {
		index++
		found := p.Len()
		item := d.read(e, index, m, p)
		if item == nil {
			continue
		}
		if item.ID != "" {
			full := sha256.Sum256([]byte(foldID(item.ID)))
			ids = append(ids, seenID{[12]byte(full[:12]), uint32(index)})
		}
		if wrong := p.Len() - found; wrong > 0 {
			if look != nil && !m.unrendered {
				item.Partial = wrong != m.own.judging
				look(item, e.path(p, index-1))
			}
			continue
		}
		idle.see(item)
		if look != nil {
			look(item, e.path(p, index-1))
		}
		line = item.appendResolved(line[:0])
		sum.Write(line)
	}
	if index == 0 && p.Len() == begin && len(d.items.files) > 0 {
		p.AddError(noItems(d.items.at))
	}
	d.duplicates(ids, p)
	d.warn(&idle)
	d.Count, d.Hash = index, digits(sum)
}

func digits(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:8]) }

// duplicates reads the items again to name those whose ids are the same or differ only in case, if there are any.
func (d *Dataset) duplicates(ids []seenID, p *strict.Problems) {
	slices.SortFunc(ids, func(a, b seenID) int {
		return cmp.Or(cmp.Compare(binary.BigEndian.Uint64(a.sum[:8]), binary.BigEndian.Uint64(b.sum[:8])), slices.Compare(a.sum[8:], b.sum[8:]), cmp.Compare(a.index, b.index))
	})
	first := map[uint32]uint32{} // by the index of the later item
	for i := 1; i < len(ids) && len(first) < 2*strict.MaxProblems; i++ {
		if ids[i].sum == ids[i-1].sum {
			of, ok := first[ids[i-1].index]
			if !ok {
				of = ids[i-1].index
			}
			first[ids[i].index] = of
		}
	}
	if len(first) == 0 {
		return
	}
	type place struct {
		id  string
		pos failure.Position
	}
	places := map[uint32]place{}
	for _, of := range first {
		places[of] = place{}
	}
	index := 0
	for e := range d.entries() {
		index++
		id := e.node.Get("id")
		if of, ok := first[uint32(index)]; ok {
			a := places[of]
			at := e.path(p, index-1).Key("id")
			if a.id == id.Text() {
				at.Add(id.Pos(), "give each item its own id", "item %s stands here a second time, first at %s", strconv.Quote(id.Text()), a.pos)
			} else {
				at.Add(id.Pos(), "file names need more than case to differ: give one of them another id", "item %s differs only in case from %s at %s", strconv.Quote(id.Text()), strconv.Quote(a.id), a.pos)
			}
		}
		if _, ok := places[uint32(index)]; ok {
			places[uint32(index)] = place{id.Text(), id.Pos()}
		}
	}
}
