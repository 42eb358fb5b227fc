package markdown

import (
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
)

// faults is the table of the faults that were injected, one column a provider, and below it why those were not survived that were not.
func (r *report) faults() *section {
	sec := &section{what: "lines"}
	table := reports.FaultTable(r.s)
	if len(table) == 0 {
		return sec
	}
	shown := min(len(r.s.Providers), mostColumns)
	sec.head = "### Faults survived\n\n"
	if more := len(r.s.Providers) - shown; more > 0 {
		sec.head += fmt.Sprintf("_the first %d of %d providers_\n\n", shown, more+shown)
	}
	sec.head += "| fault |"
	for _, p := range r.s.Providers[:shown] {
		sec.head += " " + cell(p.ID) + " |"
	}
	sec.head += "\n|---|" + strings.Repeat("--:|", shown) + "\n"
	for _, row := range table {
		text := "| " + cell(row[0].Name) + " |"
		for i := range row[:shown] {
			text += " " + survived(&row[i]) + " |"
		}
		sec.add("%s", text)
	}
	first := true
	for i := range r.s.Faults {
		f := &r.s.Faults[i]
		if f.Broke.Count == 0 || f.Reason == nil {
			continue
		}
		lead := ""
		if first {
			lead, first = "\n", false // behind the table
		}
		more := ""
		if f.Broke.Count > 1 {
			more = fmt.Sprintf(" and %d more", f.Broke.Count-1)
		}
		sec.add("%s- %s on %s: %s%s: %s", lead, short(f.Name), short(f.Provider), short(f.Broke.IDs[0]), more, short(*f.Reason))
	}
	return sec
}

func survived(f *results.Fault) string {
	switch {
	case f.Injected == 0:
		return "-"
	case f.Survived < f.Injected:
		return fmt.Sprintf("❌ %d/%d", f.Survived, f.Injected)
	}
	return fmt.Sprintf("%d/%d", f.Survived, f.Injected)
}
