package score

import (
	"fmt"
	"slices"
	"strings"
)

// turns says how the calls of a group are spread over the replies of the model.
type turns int

const (
	anyTurn  turns = iota
	oneTurn        // all in one reply
	ownTurns       // each in a reply of its own
)

// unlimited is how often a call without a maximum may be made.
const unlimited = -1

// place is a call that is expected, so many times.
type place struct {
	choices     []expectedCall // one of them
	least, most int
	bounded     bool // the most was stated
	number      int  // of the call among those expected, from 1
	text        string
}

// group is a part of the trajectory: calls made one after another, before those of the next group.
type group struct {
	ordered bool
	turns   turns
	calls   []place
}

// expectation is a sequence of groups. The calls made are cut into as many pieces as there are groups, and each piece is compared with its group.
//
// match says what counts beside what pairs: exact and unordered, all calls on both sides; subset, those expected (and those made that are more than the stated most); superset, those made.
type expectation struct {
	match  string
	groups []group
}

// number gives the calls their numbers.
func (e *expectation) number() {
	n := 0
	for g := range e.groups {
		for i := range e.groups[g].calls {
			n++
			e.groups[g].calls[i].number = n
		}
	}
}

// places is how many calls must be made.
func (e *expectation) places() (n int) {
	for _, g := range e.groups {
		for _, p := range g.calls {
			n += p.least
		}
	}
	return n
}

// String shows the expectation on one line.
func (e *expectation) String() string {
	texts := make([]string, len(e.groups))
	for i, g := range e.groups {
		calls := make([]string, len(g.calls))
		for k, p := range g.calls {
			calls[k] = p.String()
		}
		text := strings.Join(calls, ", ")
		if len(g.calls) > 1 && len(e.groups) > 1 {
			text = "[" + text + "]"
			if !g.ordered {
				text += " in any order"
			}
		}
		switch g.turns {
		case oneTurn:
			text += " in one reply"
		case ownTurns:
			text += " each in its own reply"
		}
		texts[i] = text
	}
	return e.match + ": " + strings.Join(texts, ", then ")
}

// String shows the call and how often it is expected.
func (p place) String() string {
	switch {
	case p.least == 1 && p.most == 1:
		return p.text
	case p.least == p.most:
		return fmt.Sprintf("%s %d times", p.text, p.least)
	case p.most == unlimited:
		return fmt.Sprintf("%s %d times or more", p.text, p.least)
	}
	return fmt.Sprintf("%s %d to %d times", p.text, p.least, p.most)
}

// unanswered names a call whose outcome is asked for while the trace tells the outcome of none, "" where there is no such call.
func (e *expectation) unanswered(calls []madeCall) string {
	for i := range calls {
		if calls[i].status != "" {
			return ""
		}
	}
	for _, g := range e.groups {
		for _, p := range g.calls {
			for _, choice := range p.choices {
				if choice.status != "" && slices.ContainsFunc(calls, func(c madeCall) bool { return c.name == choice.name }) {
					return choice.name
				}
			}
		}
	}
	return ""
}

// slot is one call of a place that is expected several times.
type slot struct {
	place    *place
	row      int // of the place in the table of fits
	required bool
}

// matching is an expectation beside the calls that were made.
type matching struct {
	*expectation
	made   []madeCall
	slots  [][]slot // of each group
	fits   [][]int  // of each place and call made: the best of the choices
	counts []bool   // of each call made: it must pair
	total  int      // how much would pair if all did
	found  pairing  // the best
}

// pairing says what pairs: the slot of each call made, by group and number within it.
type pairing struct {
	sum    int
	slotOf []int // of each call made, unpaired where it has none
	group  []int // of each call made
}

// fits are the worths of all pairs, a row for each place.
func (e *expectation) fits(calls []madeCall) (fits [][]int) {
	for g := range e.groups {
		for i := range e.groups[g].calls {
			fits = append(fits, e.groups[g].calls[i].fits(calls))
		}
	}
	return fits
}

// compare finds the best pairing. wide leaves out the bounds of turns.
func (e *expectation) compare(calls []madeCall, fits [][]int, wide bool) *matching {
	m := &matching{expectation: e, made: calls, fits: fits}
	row := 0
	for g := range e.groups {
		var slots []slot
		for i := range e.groups[g].calls {
			p := &e.groups[g].calls[i]
			most := p.most
			if most == unlimited || most > p.least+len(calls) {
				most = p.least + len(calls)
			}
			for n := range most {
				slots = append(slots, slot{p, row, n < p.least})
			}
			row++
		}
		m.slots = append(m.slots, slots)
	}
	m.counts = make([]bool, len(calls))
	for i := range calls {
		m.counts[i] = e.match != "subset" || m.tooMuch(i)
		if m.counts[i] {
			m.total++
		}
	}
	if e.match != "superset" {
		m.total += e.places()
	}
	m.find(wide)
	return m
}

// tooMuch reports that a call made is one of which only so many are wanted, so that each of them must pair.
func (m *matching) tooMuch(i int) bool {
	row := 0
	for _, g := range m.groups {
		for _, p := range g.calls {
			if p.bounded && m.fits[row][i] == worth {
				return true
			}
			row++
		}
	}
	return false
}

func (p *place) fits(calls []madeCall) []int {
	fits := make([]int, len(calls))
	for i := range calls {
		for c := range p.choices {
			fits[i] = max(fits[i], p.choices[c].fit(&calls[i]))
		}
	}
	return fits
}

// value is what a pair adds: how well it fits, for each of its sides that counts.
func (m *matching) value(s slot, call int) int {
	sides := 0
	if s.required && m.match != "superset" {
		sides++
	}
	if m.counts[call] {
		sides++
	}
	return sides * m.fits[s.row][call]
}

// find cuts the calls made into a piece for each group so that the sum of what pairs is as high as can be: dynamic programming over the places of the cuts.
func (m *matching) find(wide bool) {
	n := len(m.made)
	turnsOf := func(g int) turns {
		if wide {
			return anyTurn
		}
		return m.groups[g].turns
	}
	// best[g][end] is the highest sum of the groups before g over the calls before end, from[g][end] where the last of these groups begins.
	best, from := [][]int{make([]int, n+1)}, [][]int{nil}
	if len(m.groups) > 1 {
		for g := range m.groups {
			sums, begins := slices.Clone(best[g]), make([]int, n+1)
			for end := range begins {
				begins[end] = end // an empty piece
			}
			for begin := range n {
				for k, sum := range m.sums(g, turnsOf(g), begin) {
					if end := begin + k + 1; best[g][begin]+sum > sums[end] {
						sums[end], begins[end] = best[g][begin]+sum, begin
					}
				}
			}
			best, from = append(best, sums), append(from, begins)
		}
	}
	m.found = pairing{slotOf: make([]int, n), group: make([]int, n)}
	for i := range m.found.slotOf {
		m.found.slotOf[i] = unpaired
	}
	end := n
	for g := len(m.groups) - 1; g >= 0; g-- {
		begin := 0
		if len(m.groups) > 1 {
			begin = from[g+1][end]
		}
		for s, call := range m.pairs(g, turnsOf(g), begin, end) {
			if call != unpaired {
				m.found.slotOf[call] = s
				m.found.sum += m.value(m.slots[g][s], call)
			}
		}
		for i := begin; i < end; i++ {
			m.found.group[i] = g
		}
		end = begin
	}
}

// replies are the calls from begin to end, each run of them that one reply made: where it ends.
func (m *matching) replies(begin, end int) (ends []int) {
	for i := begin + 1; i <= end; i++ {
		if i == end || m.made[i].reply != m.made[begin].reply {
			ends, begin = append(ends, i), i
		}
	}
	return ends
}

// sums are the highest sums of a group over the calls from begin on: over one of them, over two, and so on to the last.
func (m *matching) sums(g int, turns turns, begin int) []int {
	slots := m.slots[g]
	var fresh growing = newUnordered(len(slots))
	if m.groups[g].ordered {
		fresh = make(orderedSums, len(slots)+1)
	}
	column := make([]int, len(slots))
	values := func(call int) {
		for s := range slots {
			column[s] = m.value(slots[s], call)
		}
	}
	sums := make([]int, 0, len(m.made)-begin)
	switch turns {
	case anyTurn:
		for call := begin; call < len(m.made); call++ {
			values(call)
			sums = append(sums, fresh.add(column))
		}
	case oneTurn:
		highest := 0
		for _, end := range m.replies(begin, len(m.made)) {
			within := fresh.clone()
			for call := begin; call < end; call++ {
				values(call)
				highest = max(highest, within.add(column))
				sums = append(sums, highest)
			}
			begin = end
		}
	case ownTurns:
		for _, end := range m.replies(begin, len(m.made)) {
			// Of the calls of a reply one pairs: it is as if the reply made the best of them for each slot.
			merged := make([]int, len(slots))
			var after growing
			for call := begin; call < end; call++ {
				values(call)
				for s := range merged {
					merged[s] = max(merged[s], column[s])
				}
				after = fresh.clone()
				sums = append(sums, after.add(merged))
			}
			fresh, begin = after, end
		}
	}
	return sums
}

// pairs gives each slot of a group its call among those from begin to end, so that the sum is the highest.
func (m *matching) pairs(g int, turns turns, begin, end int) []int {
	slots := m.slots[g]
	pair := assigned
	if m.groups[g].ordered {
		pair = ordered
	}
	shifted := func(begin, end int) ([]int, int) {
		partner, sum := pair(len(slots), end-begin, func(s, i int) int { return m.value(slots[s], begin+i) })
		for s := range partner {
			if partner[s] != unpaired {
				partner[s] += begin
			}
		}
		return partner, sum
	}
	switch turns {
	case oneTurn:
		partner, highest := shifted(begin, begin)
		for _, next := range m.replies(begin, end) {
			if within, sum := shifted(begin, next); sum > highest {
				partner, highest = within, sum
			}
			begin = next
		}
		return partner
	case ownTurns:
		ends := m.replies(begin, end)
		best := func(s, r int) (call int) {
			call = begin
			if r > 0 {
				call = ends[r-1]
			}
			for i := call + 1; i < ends[r]; i++ {
				if m.value(slots[s], i) > m.value(slots[s], call) {
					call = i
				}
			}
			return call
		}
		partner, _ := pair(len(slots), len(ends), func(s, r int) int { return m.value(slots[s], best(s, r)) })
		for s, r := range partner {
			if r != unpaired {
				partner[s] = best(s, r)
			}
		}
		return partner
	}
	partner, _ := shifted(begin, end)
	return partner
}

// judge compares the calls made with those expected. The score divides what pairs by what had to: with twice the sum over both sides' number it is the coefficient of Dice (1945).
func (e *expectation) judge(calls []madeCall) Verdict {
	m := e.compare(calls, e.fits(calls), false)
	v := Verdict{Score: 1, Reason: "no call was made, so none is unexpected"}
	if m.total > 0 {
		v.Score = float64(m.found.sum) / (float64(m.total) * worth)
	}
	edits, reasons := m.script()
	switch {
	case len(reasons) > 0:
		v.Edits = edits
		v.Reason = cut(m.only() + strings.Join(reasons, "; "))
	case len(calls) > 0 && e.match == "subset":
		v.Reason = fmt.Sprintf("all %d expected calls are among the %d made", e.places(), len(calls))
	case len(calls) > 0:
		v.Reason = fmt.Sprintf("all %d calls as expected", len(calls))
	}
	return v
}

// only says that the calls are right, and just their order or their replies are not.
func (m *matching) only() string {
	full := func(e *expectation, wide bool) bool {
		all := e.compare(m.made, m.fits, wide)
		return all.found.sum == all.total*worth
	}
	bound := slices.ContainsFunc(m.groups, func(g group) bool { return g.turns != anyTurn })
	if bound && full(m.expectation, true) {
		return "only the replies that made the calls differ: "
	}
	loose := expectation{match: m.match, groups: []group{{}}}
	sequence := len(m.groups) > 1
	for _, g := range m.groups {
		sequence = sequence || g.ordered
		loose.groups[0].calls = append(loose.groups[0].calls, g.calls...)
	}
	if sequence && !bound && full(&loose, true) {
		return "only the order differs: "
	}
	return ""
}

// maxEdits bounds the lines of an edit script.
const maxEdits = 100

// script lists what happened to each call, in the order of those made: "=" as expected, "~" otherwise than expected, "+" not expected, "-" expected and not made; and in reasons only what would have to change. Calls that are free to be there or not are not among them.
func (m *matching) script() (edits, reasons []string) {
	missing := m.missing()
	next := 0
	lost := func(until func(*lostCall) bool) {
		for next < len(missing) && until(&missing[next]) {
			edits = append(edits, "- "+missing[next].text())
			next++
		}
	}
	for i := range missing {
		reasons = append(reasons, "missing call "+missing[i].text())
	}
	var wrong, surplus []string
	for i := range m.made {
		got := &m.made[i]
		g, s := m.found.group[i], m.found.slotOf[i]
		if s == unpaired {
			lost(func(l *lostCall) bool { return l.group < g })
			if m.counts[i] {
				edits = append(edits, fmt.Sprintf("+ %d %s", i+1, got.text))
				surplus = append(surplus, fmt.Sprintf("unexpected call %d: %s", i+1, got.text))
			} else {
				edits = append(edits, fmt.Sprintf("  %d %s", i+1, got.text))
			}
			continue
		}
		lost(func(l *lostCall) bool { return l.group < g || l.group == g && m.groups[g].ordered && l.slot < s })
		differences := m.slots[g][s].place.nearest(got).differences(got)
		if len(differences) == 0 {
			edits = append(edits, fmt.Sprintf("= %d %s", i+1, got.text))
			continue
		}
		edits = append(edits, fmt.Sprintf("~ %d %s: %s", i+1, got.text, strings.Join(differences, ", ")))
		wrong = append(wrong, fmt.Sprintf("call %d, %s: %s", i+1, got.name, strings.Join(differences, ", ")))
	}
	lost(func(*lostCall) bool { return true })
	reasons = append(append(reasons, wrong...), surplus...)
	if more := len(edits) - maxEdits; more > 0 {
		edits = append(edits[:maxEdits], fmt.Sprintf("and %d more", more))
	}
	for i := range edits {
		edits[i] = cut(edits[i])
	}
	return edits, reasons
}

// nearest is the alternative that a call fits best, the first of several.
func (p *place) nearest(got *madeCall) *expectedCall {
	best := &p.choices[0]
	for i := range p.choices[1:] {
		if c := &p.choices[i+1]; c.fit(got) > best.fit(got) {
			best = c
		}
	}
	return best
}

// lostCall is an expected call that was not made.
type lostCall struct {
	group, slot int
	place       *place
}

func (l *lostCall) text() string { return fmt.Sprintf("%d: %s", l.place.number, l.place.text) }

// missing are the calls that had to be made and were not, in the order of the dataset.
func (m *matching) missing() (all []lostCall) {
	if m.match == "superset" {
		return nil
	}
	used := make([][]bool, len(m.groups))
	for g := range used {
		used[g] = make([]bool, len(m.slots[g]))
	}
	for i, s := range m.found.slotOf {
		if s != unpaired {
			used[m.found.group[i]][s] = true
		}
	}
	for g, slots := range m.slots {
		for s := range slots {
			if slots[s].required && !used[g][s] {
				all = append(all, lostCall{g, s, slots[s].place})
			}
		}
	}
	return all
}
