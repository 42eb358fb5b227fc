package experiment

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/filter"
)

// Selection says which items run. All that is given must hold; the zero value selects everything.
type Selection struct {
	// Items are ids.
	Items []string
	// Tags: any of them; one that begins with "!" must be absent.
	Tags []string
	// Filter is an expression that must be true; one that cannot be evaluated for an item does not select it. Nil selects all.
	Filter *filter.Program
	// Only holds the ids that an earlier run left in some status, and OnlyText is how that was asked for; nil selects all.
	Only     map[string]bool
	OnlyText string
	// Sample takes some of the items that all of the above select, by a hash of seed and id: the same ones each time.
	Sample Sample
	// Shard takes the items of one machine of several, after everything else.
	Shard Shard
}

// Sample is a number of items or a share of them; the zero value takes all.
type Sample struct {
	Count int
	Share float64 // in (0,1)
	Text  string  // as given
}

// ParseSample reads "20" or "12.5%".
func ParseSample(text string) (Sample, error) {
	s := Sample{Text: text}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		share, err := strconv.ParseFloat(number, 64)
		if err != nil || !(share > 0 && share <= 100) {
			return s, failure.WithHint(failure.New(failure.Input, "--sample %s: want a share above 0%% and up to 100%%", text), "--sample 20%%")
		}
		s.Share = share / 100
		return s, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return s, failure.WithHint(failure.New(failure.Input, "--sample %s: want a number of items or a share", text), "--sample 50, or --sample 20%%")
	}
	s.Count = n
	return s, nil
}

// Shard is part I of N, from 1; the zero value is the whole. An item is never split.
type Shard struct{ I, N int }

// ParseShard reads "2/4".
func ParseShard(text string) (Shard, error) {
	i, n, ok := strings.Cut(text, "/")
	part, err1 := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !ok || err1 != nil || err2 != nil || of < 1 || of > 10_000 || part < 1 || part > of {
		return Shard{}, failure.WithHint(failure.New(failure.Input, "--shard %s: want I/N with I from 1 to N", text), "--shard 2/4 is the second of four machines")
	}
	return Shard{I: part, N: of}, nil
}

// String gives I/N, and "" for the whole.
func (s Shard) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.I, s.N)
}

func (s Shard) has(item *dataset.Item) bool { return s.N == 0 || (item.Index-1)%s.N == s.I-1 }

// chosen says whether items, tags and only select the item.
func (s *Selection) chosen(item *dataset.Item) bool {
	if len(s.Items) > 0 && !slices.Contains(s.Items, item.ID) || s.Only != nil && !s.Only[item.ID] {
		return false
	}
	wanted, found := false, false
	for _, tag := range s.Tags {
		if without, ok := strings.CutPrefix(tag, "!"); ok {
			if slices.Contains(item.Tags, without) {
				return false
			}
			continue
		}
		wanted = true
		found = found || slices.Contains(item.Tags, tag)
	}
	if !found && wanted {
		return false
	}
	if s.Filter == nil {
		return true
	}
	met, err := s.Filter.Match(&filter.Subject{ID: item.ID, Tags: item.Tags, Metadata: item.Metadata, Vars: item.Vars})
	return met && err == nil
}

// flags tells the selection as it was given, but for sample, only and shard; nil where everything is selected.
func (s *Selection) flags() *string {
	var parts []string
	for _, id := range s.Items {
		parts = append(parts, "--item "+id)
	}
	for _, tag := range s.Tags {
		parts = append(parts, "--tag "+tag)
	}
	if s.Filter != nil {
		parts = append(parts, "--filter "+s.Filter.String())
	}
	if len(parts) == 0 {
		return nil
	}
	text := strings.Join(parts, " ")
	return &text
}

// lot is the place of an item in the draw of a sample: uniform, and the same each time for the same seed.
func lot(seed uint64, id string) uint64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), id...))
	return binary.BigEndian.Uint64(sum[:8])
}

// draw finds the bound below which lots are drawn. It is told of every item that is chosen; of a sample of n items it holds 8 bytes for each of the n.
type draw struct {
	sample Sample
	seed   uint64
	lowest lots
}

func (d *draw) see(item *dataset.Item) {
	if d.sample.Count == 0 {
		return
	}
	l := lot(d.seed, item.ID)
	switch {
	case len(d.lowest) < d.sample.Count:
		heap.Push(&d.lowest, l)
	case l < d.lowest[0]:
		d.lowest[0] = l
		heap.Fix(&d.lowest, 0)
	}
}

// bound is the highest lot that is drawn.
func (d *draw) bound() uint64 {
	switch {
	case d.sample.Count > 0 && len(d.lowest) > 0:
		return d.lowest[0]
	case d.sample.Share > 0 && d.sample.Share < 1:
		return uint64(d.sample.Share * math.MaxUint64)
	}
	return math.MaxUint64
}

// lots is a heap with the highest on top.
type lots []uint64

func (l lots) Len() int           { return len(l) }
func (l lots) Less(i, j int) bool { return l[i] > l[j] }
func (l lots) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lots) Push(x any)        { *l = append(*l, x.(uint64)) }
func (l *lots) Pop() any {
	old := *l
	last := old[len(old)-1]
	*l = old[:len(old)-1]
	return last
}
