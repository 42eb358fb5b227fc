package replay

import (
	"slices"

	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
)

// tape is a cassette being replayed: which interactions there are, found by key, and which are used up.
type tape struct {
	file     *cassette.File
	requests []cassette.Request // canonical and normalized, beside file.Interactions
	index    map[cassette.Key][]int
	used     []bool
	offset   int // of its interactions in the numbers of the cassette
	// toolless says that the cassette was imported and holds no call of a tool.
	toolless bool
	// written is the number of the last call of a tool outside the workspace that was served and that wrote.
	written int
	writes  []int // indices of such calls that were not served yet, in order, perhaps after some that were
}

func newTape(file *cassette.File, rules *cassette.Rules, equal *cassette.Normalizer) *tape {
	n := len(file.Interactions)
	t := &tape{file: file, requests: make([]cassette.Request, n), index: make(map[cassette.Key][]int, n), used: make([]bool, n), toolless: file.Header.Imported != ""}
	for i := range file.Interactions {
		t.toolless = t.toolless && file.Interactions[i].Request.Method != cassette.Method
		t.requests[i], _ = equal.Request(cassette.Recanonical(file.Interactions[i].Request, rules))
		key := cassette.KeyOf(t.requests[i])
		t.index[key] = append(t.index[key], i)
		if writes(&file.Interactions[i].Extra) {
			t.writes = append(t.writes, i)
		}
	}
	return t
}

func writes(x *cassette.Extra) bool {
	return x.Scope == string(tool.External) && (x.Effect == string(tool.Write) || x.Effect == string(tool.Irreversible))
}

// next uses up the next interaction of an HTTP request, -1 for none. Equal requests get theirs in the order in which they were recorded.
func (t *tape) next(key cassette.Key) int {
	queue := t.index[key]
	if len(queue) == 0 {
		return -1
	}
	t.index[key] = queue[1:]
	t.used[queue[0]] = true
	return queue[0]
}

// call uses up the interaction of a call: of equal ones that with the same number, else the first. A recording is not served across a write to the same world: barred says that there are interactions, and all are on the other side of one.
func (t *tape) call(key cassette.Key, seq int) (found int, barred bool) {
	queue := t.index[key]
	best := -1
	for at, i := range queue {
		x := &t.file.Interactions[i].Extra
		if x.Scope == string(tool.External) && !t.reachable(x) {
			continue
		}
		if x.Seq == seq {
			best = at
			break
		}
		if best < 0 {
			best = at
		}
	}
	if best < 0 {
		return -1, len(queue) > 0
	}
	i := queue[best]
	t.index[key] = slices.Concat(queue[:best], queue[best+1:])
	t.used[i] = true
	if x := &t.file.Interactions[i].Extra; writes(x) {
		t.written = max(t.written, x.Seq)
	}
	return i, false
}

// reachable says that between now and the moment of a recording no write lies: none was served that came after it, and none is still to come that came before it.
func (t *tape) reachable(x *cassette.Extra) bool {
	if x.Seq < t.written {
		return false
	}
	for len(t.writes) > 0 && t.used[t.writes[0]] {
		t.writes = t.writes[1:]
	}
	return len(t.writes) == 0 || t.file.Interactions[t.writes[0]].Extra.Seq >= x.Seq
}

// left lists what was not used.
func (t *tape) left() []Entry {
	var entries []Entry
	for i, used := range t.used {
		if !used {
			entries = append(entries, Entry{Number: t.offset + i + 1, Method: t.requests[i].Method, URL: t.requests[i].URL})
		}
	}
	return entries
}

// take uses up an interaction that was found other than by its key.
func (t *tape) take(i int) {
	key := cassette.KeyOf(t.requests[i])
	t.index[key] = slices.DeleteFunc(slices.Clone(t.index[key]), func(j int) bool { return i == j })
	t.used[i] = true
	if x := &t.file.Interactions[i].Extra; writes(x) {
		t.written = max(t.written, x.Seq)
	}
}

// position returns the interaction at the place where the replay stands, -1 for none: of HTTP requests the first that is not used, of a tool the call of the same number.
func (t *tape) position(got cassette.Request, seq int) int {
	for i, r := range t.requests {
		switch {
		case t.used[i] || (r.Method == cassette.Method) != (got.Method == cassette.Method):
		case r.Method != cassette.Method:
			return i
		case r.URL == got.URL && t.file.Interactions[i].Extra.Seq == seq:
			return i
		}
	}
	return -1
}

// explain says how a request differs from the nearest unused interaction, or, where all are used, from the nearest one. The change it shows is the first whose class bearable refuses, or where there is none, allowed does.
func (t *tape) explain(got cassette.Request, allowed, bearable func(cassette.Class) bool) *Miss {
	candidates := make([]cassette.Request, 0, len(t.requests))
	numbers := make([]int, 0, len(t.requests))
	for _, used := range []bool{false, true} {
		for i, r := range t.requests {
			if t.used[i] == used {
				candidates, numbers = append(candidates, r), append(numbers, t.offset+i+1)
			}
		}
		if len(candidates) > 0 {
			break
		}
	}
	m := &Miss{Method: got.Method, URL: got.URL, Class: cassette.ClassOf(got)}
	best, d := cassette.Nearest(candidates, got)
	if best < 0 {
		m.Note = "the cassette is empty"
		return m
	}
	m.Nearest = numbers[best]
	if d.Count == 0 {
		m.Note = "it was asked more often than recorded"
		return m
	}
	change := d.Changes[0]
	for _, accepts := range []func(cassette.Class) bool{bearable, allowed} {
		if at := slices.IndexFunc(d.Changes, func(c cassette.Change) bool { return !accepts(c.Class) }); at >= 0 {
			change = d.Changes[at]
			break
		}
	}
	m.Class, m.Path, m.Old, m.New = change.Class, change.Path, change.Old, change.New
	return m
}
