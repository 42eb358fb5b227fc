package score

import (
	"fmt"
	"time"

	"github.com/echoeval/echoeval/core/strict"
)

// moment is a date or a point in time as somebody wrote it.
type moment struct {
	at time.Time
	// day says that there is no time of day, zoned that a zone is named.
	day, zoned bool
}

// dateLayouts are the ways of writing that leave no doubt. Those whose reading depends on the country (01/02/2026) are not among them, nor names of zones but UTC and GMT.
var dateLayouts = []struct {
	layout     string
	day, zoned bool
}{
	{layout: "2006-01-02", day: true},
	{layout: "2006/01/02", day: true},
	{layout: "20060102", day: true},
	{layout: "2 January 2006", day: true},
	{layout: "2 Jan 2006", day: true},
	{layout: "January 2, 2006", day: true},
	{layout: "Jan 2, 2006", day: true},
	{layout: "Monday, 2 January 2006", day: true},
	{layout: "Monday, January 2, 2006", day: true},
	{layout: "2006-01-02T15:04:05Z07:00", zoned: true},
	{layout: "2006-01-02T15:04Z07:00", zoned: true},
	{layout: "2006-01-02T15:04:05-0700", zoned: true},
	{layout: "2006-01-02 15:04:05Z07:00", zoned: true},
	{layout: "2006-01-02 15:04Z07:00", zoned: true},
	{layout: "2006-01-02 15:04:05 Z07:00", zoned: true},
	{layout: "2006-01-02 15:04:05 -0700", zoned: true},
	{layout: "2006-01-02 15:04:05 UTC", zoned: true},
	{layout: "2006-01-02 15:04 UTC", zoned: true},
	{layout: "20060102T150405Z07:00", zoned: true},
	{layout: "Mon, 2 Jan 2006 15:04:05 -0700", zoned: true},
	{layout: "Mon, 2 Jan 2006 15:04:05 GMT", zoned: true},
	{layout: "2006-01-02T15:04:05"},
	{layout: "2006-01-02T15:04"},
	{layout: "2006-01-02 15:04:05"},
	{layout: "2006-01-02 15:04"},
	{layout: "20060102T150405"},
}

// parseMoment reads a date or time. A time without a zone is kept as the clock on the wall shows it.
func parseMoment(s string) (moment, bool) {
	if len(s) > 64 {
		return moment{}, false
	}
	for _, l := range dateLayouts {
		if t, err := time.Parse(l.layout, s); err == nil {
			return moment{t, l.day, l.zoned}, true
		}
	}
	return moment{}, false
}

// dateMatch wants a text that names a date or time.
type dateMatch struct {
	want   moment
	within time.Duration
	text   string
}

// dateArgs are the arguments of the matcher $date; a text alone is the value.
type dateArgs struct {
	Value  string        `yaml:"value,required"`
	Within time.Duration `yaml:"within"`
}

func compileDate(n strict.Node, a at) matcher {
	in := dateArgs{}
	value, where := n, a
	if n.Kind() == strict.Mapping {
		strict.Decode(n, &in, a.Problems)
		value, where = n.Get("value"), a.key("value")
	} else {
		a.decode(n, &in.Value, `{$date: "2026-01-05"}`)
	}
	if value.Kind() != strict.String {
		return anything{}
	}
	if in.Within < 0 {
		a.key("within").bad(n.Get("within"), "", "a negative time")
	}
	m := dateMatch{within: in.Within, text: quote(in.Value, 0)}
	var ok bool
	if m.want, ok = parseMoment(in.Value); !ok {
		where.bad(value, "write 2026-01-05, 2026-01-05T10:00:00Z or 5 January 2026", "%s is no date or time that can be read one way only", quote(in.Value, 0))
	}
	if in.Within > 0 {
		m.text += " give or take " + in.Within.String()
	}
	return m
}

func (m dateMatch) holds(n strict.Node) bool { return len(m.differences(n, "")) == 0 }

func (m dateMatch) differences(n strict.Node, path string) []string {
	wrong := func(why string) []string {
		return []string{fmt.Sprintf("%s is %s, want the date %s%s", where(path), show(n), m.text, why)}
	}
	if n.Kind() != strict.String {
		return wrong("")
	}
	got, ok := parseMoment(n.Text())
	switch {
	case !ok:
		return wrong("; it is no date or time that can be read one way only")
	case m.want.day != got.day && !m.want.day:
		return wrong("; it has no time of day")
	case m.want.zoned && !got.zoned:
		return wrong("; it names no zone")
	}
	want, at := m.want.at, got.at
	switch {
	case m.want.day: // the day that it is where the time was taken
		at = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	case !m.want.zoned: // the clock on the wall
		at = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	}
	if at.Sub(want).Abs() > m.within {
		return wrong("")
	}
	return nil
}
