package mutate

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/ident"
	"github.com/echoeval/echoeval/harness/experiment"
)

// Mutant is an outcome with one fault put into it.
type Mutant struct {
	Operator *Operator
	// What says where the fault is, Before and After what stood and stands there: texts of the model, whole.
	What, Before, After string
	Outcome             experiment.Outcome
}

// Subject is an outcome that faults are put into.
type Subject struct {
	Item    string
	Repeat  int
	Outcome experiment.Outcome
	// Checked are the turns, from 0, whose answer a check looks at. The last is always one of them.
	Checked []int
	// Others are answers to other items, the nearest first.
	Others []Answer
}

// Answer is what the agent answered to an item.
type Answer struct{ Item, Text string }

// Choice says which mutants are made.
type Choice struct {
	Seed uint64
	// Limit is how many mutants an operator makes of one outcome at most.
	Limit int
	// Operators are names; empty is all.
	Operators []string
}

// Mutants makes the mutants of an outcome, operator by operator, in the order of their places. Where an operator has more places than the limit, the seed draws. What comes to the same as the outcome, or as an earlier mutant, is no mutant: it is nil.
func (c Choice) Mutants(of Subject) iter.Seq[*Mutant] {
	return func(yield func(*Mutant) bool) {
		s := of.read()
		seen := map[string]bool{s.essence(): true}
		for i := range Operators {
			op := &Operators[i]
			if len(c.Operators) > 0 && !slices.Contains(c.Operators, op.Name) {
				continue
			}
			made := map[int]*story{}
			sites := op.sites(s)
			for _, at := range c.draw(of, op, len(sites)) {
				if len(made) == c.Limit {
					break
				}
				told := sites[at].make()
				essence := told.essence()
				if seen[essence] {
					if !yield(nil) {
						return
					}
					continue
				}
				seen[essence] = true
				made[at] = told
			}
			for _, at := range slices.Sorted(maps.Keys(made)) {
				x := sites[at]
				if !yield(&Mutant{Operator: op, What: x.what, Before: x.before, After: x.after, Outcome: made[at].tell(&of.Outcome, s.story)}) {
					return
				}
			}
		}
	}
}

// read takes the outcome apart.
func (of *Subject) read() *subject {
	s := &subject{story: read(&of.Outcome), checked: slices.Clone(of.Checked), hidden: of.Outcome.Trace.Hidden, others: of.Others}
	for _, t := range of.Outcome.Turns {
		s.answers = append(s.answers, t.Text)
	}
	if last := len(s.answers) - 1; !slices.Contains(s.checked, last) {
		s.checked = append(s.checked, last)
	}
	s.checked = slices.DeleteFunc(s.checked, func(turn int) bool { return turn < 0 || turn >= len(s.answers) })
	return s
}

// draw puts the places of an operator in the order in which they are tried.
func (c Choice) draw(of Subject, op *Operator, places int) []int {
	source := ident.Source{Seed: c.Seed, Item: of.Item, Repeat: of.Repeat}
	lots := make([]string, places)
	order := make([]int, places)
	for i := range places {
		lots[i], order[i] = source.ID(i, op.Name, 1), i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(lots[a], lots[b]) })
	return order
}

// essence is what a story comes to: what was said and which tools were called, call by call. Calls of one reply that may run side by side have no order, and neither ids nor the way in which arguments are written matter.
func (s *story) essence() string {
	var b strings.Builder
	for i := range s.segments {
		b.WriteString("\x00")
		for k := range s.segments[i].steps {
			st := &s.segments[i].steps[k]
			if st.reply == nil {
				continue
			}
			b.WriteString("\x01" + strings.TrimSpace(st.reply.Message.Text()))
			var beside []string
			flush := func() {
				slices.Sort(beside)
				for _, c := range beside {
					b.WriteString("\x02" + c)
				}
				beside = nil
			}
			for _, c := range st.reply.Message.ToolCalls() {
				x, _ := st.exchange(c)
				if x.run == nil || !x.run.Effect.Parallel() {
					flush()
					b.WriteString("\x02" + c.Name + canonical(c.Input))
					continue
				}
				beside = append(beside, c.Name+canonical(c.Input))
			}
			flush()
		}
	}
	return b.String()
}

func canonical(arguments conversation.JSON) string {
	v := jsontext.Value(arguments)
	if err := v.Canonicalize(); err != nil {
		return string(arguments)
	}
	return string(v)
}
