package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/harness/results"
)

const (
	// mostPoints is how many runs a chart shows, the newest, and mostLines how many columns.
	mostPoints = 100
	mostLines  = 6
)

// The room of a chart, in its own units.
const (
	chartWidth, chartHeight = 320.0, 170.0
	left, right, top, foot  = 64.0, 10.0, 10.0, 22.0
)

// chart is a trend: a metric of every column over the runs, the oldest first.
type chart struct {
	Title, Note string
	// Spoken says in words what is drawn.
	Spoken string
	Ticks  []tick // of the values
	Ends   []end  // of the time
	Lines  []line
}

type tick struct {
	Y, Label string
}

type end struct {
	X, Anchor, Label string
}

// line is one column. Paths are its unbroken parts.
type line struct {
	Class string
	Paths []string
	Dots  []dot
}

type dot struct {
	X, Y      string
	Low, High string // "" where there is no interval
	ID, Title string
}

// trends are the metrics that are drawn.
var trends = []struct {
	metric, title, note string
	fraction            bool
}{
	{"pass_rate", "Pass rate", "with its interval of 95 %", true},
	{"score", "Score", "with its interval of 95 %", true},
	{"cost_usd", "Cost", "of the agent, a run", false},
	{"p95_latency", "Latency", "95th percentile", false},
}

// charts draws the trends of the whole runs, which come the newest first. There are none of fewer than two runs.
func charts(runs []run) (out []chart, legend []legendEntry, more int) {
	var shown []run
	for i := range runs {
		if runs[i].whole() && len(shown) < mostPoints {
			shown = append(shown, runs[i])
		}
	}
	if len(shown) < 2 {
		return nil, nil, 0
	}
	slices.Reverse(shown)
	columns := columnsOf(shown)
	more = max(0, len(columns)-mostLines)
	columns = columns[:min(len(columns), mostLines)]
	for i, name := range columns {
		legend = append(legend, legendEntry{class(i), name})
	}
	for _, t := range trends {
		if c, ok := trend(shown, columns, t.metric, t.fraction); ok {
			c.Title, c.Note = t.title, t.note
			out = append(out, c)
		}
	}
	return out, legend, more
}

type legendEntry struct{ Class, Name string }

func class(i int) string { return "s" + strconv.Itoa(i+1) }

// columnsOf lists the columns, those of the newest run first.
func columnsOf(runs []run) []string {
	var names []string
	for i := len(runs) - 1; i >= 0; i-- {
		for _, p := range runs[i].summary.Providers {
			if !slices.Contains(names, p.ID) {
				names = append(names, p.ID)
			}
		}
	}
	return names
}

func trend(runs []run, columns []string, metric string, fraction bool) (chart, bool) {
	kind, _ := results.FindMetric(metric)
	least, most, any := 1.0, 0.0, false
	each := func(column string, visit func(at int, m results.Metric)) {
		for i := range runs {
			for _, p := range runs[i].summary.Providers {
				if m, ok := p.Metrics[metric]; ok && p.ID == column && m.Value != nil && !math.IsNaN(float64(*m.Value)) && !math.IsInf(float64(*m.Value), 0) {
					visit(i, m)
				}
			}
		}
	}
	for _, column := range columns {
		each(column, func(_ int, m results.Metric) {
			least, most, any = min(least, float64(*m.Value)), max(most, float64(*m.Value)), true
			if m.Low != nil {
				least = min(least, float64(*m.Low))
			}
		})
	}
	if !any {
		return chart{}, false
	}
	if fraction {
		// Rates are high, and move little: the scale begins at the tenth below them, and says so.
		least, most = max(0, math.Floor(least*10+1e-9)/10), 1
		least = min(least, 0.9)
	} else {
		least, most = 0, round(most)
	}
	x := func(i int) string {
		return place(left + (chartWidth-left-right)*float64(i)/float64(len(runs)-1))
	}
	y := func(v float64) string {
		return place(top + (chartHeight-top-foot)*(1-min(1, max(0, (v-least)/(most-least)))))
	}
	c := chart{}
	for k := range 3 {
		v := least + (most-least)*float64(k)/2
		c.Ticks = append(c.Ticks, tick{y(v), kind.Unit.Format(results.Number(v))})
	}
	c.Ends = []end{{x(0), "start", runs[0].day()}, {x(len(runs) - 1), "end", runs[len(runs)-1].day()}}
	var spoken []string
	for k, column := range columns {
		l := line{Class: class(k)}
		path, last := "", -1
		var first, now *results.Number
		each(column, func(i int, m results.Metric) {
			d := dot{X: x(i), Y: y(float64(*m.Value)), ID: runs[i].id}
			d.Title = fmt.Sprintf("%s: %s %s", runs[i].time(), column, kind.Unit.Format(*m.Value))
			if fraction && m.Low != nil && m.High != nil {
				d.Low, d.High = y(float64(*m.Low)), y(float64(*m.High))
				d.Title += fmt.Sprintf(" [%s, %s]", kind.Unit.Format(*m.Low), kind.Unit.Format(*m.High))
			}
			l.Dots = append(l.Dots, d)
			if i != last+1 || path == "" {
				if path != "" {
					l.Paths = append(l.Paths, path)
				}
				path = "M" + d.X + " " + d.Y
			} else {
				path += "L" + d.X + " " + d.Y
			}
			last = i
			if first == nil {
				first = m.Value
			}
			now = m.Value
		})
		if now == nil {
			continue
		}
		l.Paths = append(l.Paths, path)
		c.Lines = append(c.Lines, l)
		spoken = append(spoken, fmt.Sprintf("%s from %s to %s", column, kind.Unit.Format(*first), kind.Unit.Format(*now)))
	}
	c.Spoken = fmt.Sprintf("over %d runs: %s", len(runs), strings.Join(spoken, "; "))
	return c, true
}

// round is the next number above with one digit that a scale can end at.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 4, 6, 8, 10} {
		if step*unit >= v {
			return step * unit
		}
	}
	return v
}

func place(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func (r *run) time() string { return r.started.Format("2006-01-02 15:04:05") }
func (r *run) day() string  { return r.started.Format("2006-01-02") }
