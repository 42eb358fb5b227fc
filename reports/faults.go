package reports

import "github.com/echoeval/echoeval/harness/results"

// FaultTable gives the faults of a run by rows, one fault each, with a cell for each column in their order; nil where none were injected.
func FaultTable(s *results.Summary) [][]results.Fault {
	n := len(s.Providers)
	if n == 0 || len(s.Faults)%n != 0 {
		return nil
	}
	var rows [][]results.Fault
	for at := 0; at < len(s.Faults); at += n {
		rows = append(rows, s.Faults[at:at+n])
	}
	return rows
}
