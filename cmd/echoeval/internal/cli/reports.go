package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/harness/results"
)

type terminalOptions struct{ all, noColor, quiet bool }

func reportNames() []string                                  { return []string{"terminal"} }
func findReport(name string) (any, error)                    { return nil, nil }
func writeReport(s *State, run *results.Run, f string) error { return nil }
func writeCauses(w io.Writer, run *results.Run) error        { return nil }
func writeTerminal(s *State, w io.Writer, run *results.Run, o terminalOptions) error {
	for l, err := range run.Lines() {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s %s %s", l.Item, l.Provider, l.Status)
		if l.Cause != nil {
			fmt.Fprintf(w, " %s", *l.Cause)
		}
		if l.Error != nil {
			fmt.Fprintf(w, " %+v", l.Error.Message)
		}
		for _, c := range l.Checks {
			if c.Status != "pass" {
				fmt.Fprintf(w, "\n   %s %s %s", c.Name, c.Status, c.Reason)
			}
		}
		for _, v := range l.Invariants.Violations {
			fmt.Fprintf(w, "\n   %s %s", v.Name, v.Evidence)
		}
		if l.Cassette != nil {
			for _, v := range l.Cassette.Drift {
				fmt.Fprintf(w, "\n   %+v", v)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, run.Summary.Verdict.Text)
	return nil
}
func newShow(s *State) *cobra.Command   { return &cobra.Command{Use: "show", GroupID: "look"} }
func newReport(s *State) *cobra.Command { return &cobra.Command{Use: "report", GroupID: "look"} }
func resolveRun(s *State, out, name string) (string, error) {
	return results.Resolve(s.path(".echoeval/runs"), name)
}
func escapeLine(s string) string { return s }
