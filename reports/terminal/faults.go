package terminal

import (
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// faults writes which of the injected faults the agent survived on which column, and why it did not.
func (p *printer) faults() error {
	table := reports.FaultTable(&p.run.Summary)
	if len(table) == 0 {
		return nil
	}
	g := grid{corner: "fault survived"}
	for _, provider := range p.run.Summary.Providers {
		g.heads = append(g.heads, escape.Line(provider.ID))
	}
	for _, row := range table {
		out := gridRow{name: escape.Line(row[0].Name)}
		for i := range row {
			out.cells = append(out.cells, survived(&row[i]))
		}
		g.rows = append(g.rows, out)
	}
	if err := p.grid(g); err != nil {
		return err
	}
	for i := range p.run.Summary.Faults {
		f := &p.run.Summary.Faults[i]
		if f.Broke.Count == 0 {
			continue
		}
		p.line("%s", p.paint(red, fmt.Sprintf("fault %s not survived by %s on %s", escape.Line(f.Name), count(f.Broke.Count, "item"), escape.Line(f.Provider))))
		p.field("items", listedIDs(f.Broke))
		if f.Reason != nil {
			p.field("first", *f.Reason)
		}
		p.line("")
	}
	return nil
}

func survived(f *results.Fault) cell {
	if f.Injected == 0 {
		return cell{text: "-", style: dim}
	}
	shown := green
	if f.Survived < f.Injected {
		shown = red
	}
	return cell{text: fmt.Sprintf("%d of %d", f.Survived, f.Injected), style: shown}
}

func listedIDs(l results.IDs) string {
	n := min(len(l.IDs), mostListed)
	text := strings.Join(l.IDs[:n], ", ")
	if more := l.Count - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

var faultStyles = map[eval.FaultStatus]style{eval.FaultSurvived: green, eval.FaultBroke: red, eval.FaultNotInjected: dim}

// injected writes what came of each fault of a line.
func (p *printer) injected(list []eval.FaultResult) {
	if len(list) == 0 {
		return
	}
	p.title("faults")
	for i := range list {
		f := &list[i]
		where := ""
		if f.Request > 0 {
			where = fmt.Sprintf(", request %d", f.Request)
		}
		if f.Call > 0 {
			where += fmt.Sprintf(", call %d", f.Call)
		}
		if f.Retries > 0 {
			where += fmt.Sprintf(", %d repeated", f.Retries)
		}
		word := strings.ReplaceAll(string(f.Status), "_", " ")
		p.line("  %s %s%s: %s", p.paint(faultStyles[f.Status], escape.Line(word)), escape.Line(f.Name), where, escape.Line(f.Reason))
		for _, v := range f.Violations {
			p.line("    violated %s: %s", escape.Line(v.Name), escape.Line(v.Evidence))
		}
	}
	p.line("")
}
