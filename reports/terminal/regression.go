package terminal

import (
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

// regression says what differs from the baseline.
func (p *printer) regression() {
	r := p.run.Summary.Regression
	if r == nil {
		return
	}
	head := "against " + escape.Line(r.Baseline.File)
	if r.Baseline.From != "file" {
		head += " at " + escape.Line(r.Baseline.From)
	}
	switch {
	case r.Baseline.Hash == nil:
		head += ": there is none yet"
	case len(r.Changed) > 0:
		head += ": changed " + strings.Join(r.Changed, ", ")
	}
	p.line("%s", p.paint(bold, head))
	for _, c := range r.Comparisons {
		gated := c.MaxDrop != nil
		if !gated && (c.Difference == nil || *c.Difference == 0 && !p.opts.All) {
			continue
		}
		text := escape.Line(gate.Name(&c)) + ": "
		kind, _ := results.FindMetric(c.Metric)
		if c.Difference != nil {
			text += kind.Unit.Format(*c.Before) + " -> " + kind.Unit.Format(*c.Now)
		}
		switch {
		case c.Difference == nil:
			text += gate.Found(&c)
		case kind.Unit == results.UnitFraction && c.Low != nil:
			text += ", " + gate.Found(&c)
		default:
			text += " over " + count(c.Pairs, "item")
		}
		if gated {
			text += ": " + p.paint(compared[c.Status], strings.ReplaceAll(c.Status, "_", " "))
			if open := gate.Open(&c); open != "" {
				text += "; " + open
			}
		}
		p.line("  %s", text)
	}
	said := false
	for _, list := range []struct {
		name  string
		ids   results.IDs
		style style
	}{
		{"worse", r.Items.Worse, red}, {"new violations", r.Items.NewViolations, red}, {"better", r.Items.Better, green},
		{"changed", r.Items.Changed, dim}, {"new", r.Items.New, dim}, {"removed", r.Items.Removed, dim},
	} {
		if list.ids.Count > 0 {
			said = true
			p.line("  %s: %s", p.paint(list.style, list.name), p.named(list.ids))
		}
	}
	if !said && r.Baseline.Hash != nil {
		p.line("  no item is worse or better")
	}
	p.line("")
}

var compared = map[string]style{results.CompareRegressed: red, results.CompareNotWorse: green, results.CompareInconclusive: yellow, results.CompareNoBaseline: yellow}

// named names the first items and counts the rest.
func (p *printer) named(ids results.IDs) string {
	n := len(ids.IDs)
	if !p.opts.All {
		n = min(n, mostListed)
	}
	text := escape.Line(strings.Join(ids.IDs[:n], ", "))
	if more := ids.Count - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
