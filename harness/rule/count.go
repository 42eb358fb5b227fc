package rule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/strict"
)

// countKeys are those of count.
type countKeys struct {
	Call   strict.Node `yaml:"call,required" schema:"rule_pattern" doc:"the calls that are counted"`
	Max    *int        `yaml:"max" schema:"rule_max" doc:"at most so many"`
	Min    *int        `yaml:"min" schema:"rule_min" doc:"at least so many in the whole run"`
	Within *string     `yaml:"within" schema:"rule_window" doc:"max holds in every window of so many calls, steps or of such a time: 3 calls, 2 steps, 10s"`
	Same   *[]string   `yaml:"same" schema:"names" doc:"only calls whose arguments of these names are equal count together"`
}

// counting bounds how often calls are made.
type counting struct {
	call     []pattern
	min, max int // max -1: no bound
	same     []string
	// One of these is the window, or none.
	calls, steps int
	ms           int64
	window       string
}

func compileCount(n strict.Node, r *Rule, p *strict.Problems) (check, string) {
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping such as {call: book, max: 1}")
		return nil, ""
	}
	var k countKeys
	strict.Decode(n, &k, p)
	v := &counting{max: -1}
	if !k.Call.IsZero() {
		v.call = patternsOf(k.Call, r, p.Key("call"))
	}
	empty := false
	for _, key := range []string{"max", "min"} {
		if bound := n.Get(key); bound.IsNull() {
			p.Key(key).WrongType(bound, "a whole number")
			empty = true
		}
	}
	if k.Max == nil && k.Min == nil && !empty {
		p.Add(n.Pos(), "add max: 1 or min: 1", "count has neither max nor min")
	}
	bound := func(key string, of *int, into *int) {
		if of == nil {
			return
		}
		if *of < 0 {
			p.Key(key).Add(n.Get(key).Pos(), "", "want a number from 0")
		}
		*into = *of
	}
	bound("max", k.Max, &v.max)
	bound("min", k.Min, &v.min)
	if k.Max != nil && k.Min != nil && v.max >= 0 && v.min > v.max {
		p.Key("min").Add(n.Get("min").Pos(), "", "min is above max")
	}
	if k.Min != nil && v.min == 0 {
		p.Key("min").Add(n.Get("min").Pos(), "leave it out", "at least 0 always holds")
	}
	if k.Same != nil {
		v.same = *k.Same
		if len(v.same) == 0 {
			p.Key("same").Add(n.Get("same").Pos(), "name arguments: [order_id]", "the list is empty")
		}
	}
	if k.Min != nil && (k.Within != nil || k.Same != nil) {
		p.Add(n.KeyPos("min"), "write a rule of its own for min", "min looks at the whole run, and stands without within and same")
	}
	if k.Within != nil {
		v.within(*k.Within, n.Get("within"), p.Key("within"))
	}
	what := toolsOf(v.call)
	var parts []string
	if k.Min != nil {
		parts = append(parts, fmt.Sprintf("at least %d of %s", v.min, what))
	}
	if k.Max != nil {
		text := fmt.Sprintf("at most %d of %s", v.max, what)
		if v.same != nil {
			text += " with the same " + strings.Join(v.same, ", ")
		}
		if v.window != "" {
			text += " within " + v.window
		}
		parts = append(parts, text)
	}
	return v, "calls: " + strings.Join(parts, ", ")
}

// within reads a window.
func (v *counting) within(text string, n strict.Node, p *strict.Problems) {
	v.window = text
	number, unit, spaced := strings.Cut(text, " ")
	if size, err := strconv.Atoi(number); spaced && err == nil {
		switch unit = strings.TrimSpace(unit); {
		case size < 1 || size > 1_000_000:
		case unit == "call" || unit == "calls":
			v.calls = size
			return
		case unit == "step" || unit == "steps":
			v.steps = size
			return
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= time.Millisecond {
		v.ms = d.Milliseconds()
		return
	}
	p.Add(n.Pos(), "write 3 calls, 2 steps or 10s", "%q is no window", text)
}

// counted is a call that counts.
type counted struct {
	*call
	place int // among all calls
}

func (v *counting) look(s *Story) (o Outcome, ok bool) {
	if v.ms > 0 && !s.timed {
		return o, false
	}
	windows := map[string][]counted{}
	total := 0
	for i, c := range s.calls {
		if !anyMatch(v.call, c) {
			continue
		}
		total++
		o.Triggered = true
		if v.max < 0 {
			continue
		}
		key, ok := v.key(c)
		if !ok {
			continue
		}
		window := append(windows[key], counted{c, i})
		for !v.inside(window[0], window[len(window)-1]) {
			window = window[1:]
		}
		if len(window) > v.max {
			o.broken(eventsOf(window), func() string { return v.tooMany(window) })
			window = window[1:] // one call more is one place more
		}
		windows[key] = window
	}
	if v.min > 0 && !s.cut {
		o.Triggered = true
		if total < v.min {
			o.broken([]int{s.last}, func() string {
				return fmt.Sprintf("the run ended with %d of %s, at least %d are wanted", total, toolsOf(v.call), v.min)
			})
		}
	}
	return o, true
}

// inside reports that two calls lie in one window.
func (v *counting) inside(first, last counted) bool {
	switch {
	case v.calls > 0:
		return last.place-first.place < v.calls
	case v.steps > 0:
		return last.step-first.step < v.steps
	case v.ms > 0:
		return last.atMS-first.atMS < v.ms
	}
	return true
}

// key tells calls apart that do not count together. A call that lacks an argument of same counts with none.
func (v *counting) key(c *call) (string, bool) {
	if v.same == nil {
		return "", true
	}
	args := arguments(c.input)
	var key []byte
	for _, name := range v.same {
		value := args.Get(name)
		if value.IsZero() {
			return "", false
		}
		key = append(value.AppendCanonical(key), ' ')
	}
	return string(key), true
}

func eventsOf(calls []counted) []int {
	var events []int
	for _, c := range calls {
		if len(events) == 0 || events[len(events)-1] != c.event {
			events = append(events, c.event)
		}
	}
	return events
}

func (v *counting) tooMany(window []counted) string {
	text := fmt.Sprintf("%d calls", len(window))
	if v.window != "" {
		text += " within " + v.window
	}
	text += fmt.Sprintf(", at most %d are allowed: ", v.max)
	const most = 3
	for i, c := range window {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(window)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("event %d %s", c.event, c)
	}
	return text
}
