// Package reports is what all reports share. A report reads a finished run and writes one file or the terminal; it never runs anything again, decides nothing and changes nothing.
//
// Each report is a package with a function Write of the same shape, so that the command assembles a table of them:
//
//	table := []reports.Reporter{
//		{Name: "terminal", Write: terminal.Write},
//		{Name: "json", File: "report.json", Write: json.Write},
//		{Name: "junit", File: "junit.xml", Write: junit.Write},
//	}
package reports

import (
	"bufio"
	"fmt"
	"io"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/results"
)

// Options say how a report looks. None of them is read from the environment here.
type Options struct {
	// Width is the columns of the terminal; 0 means 100.
	Width int
	// Color allows colours.
	Color bool
	// All shows everything, not only what failed, and cuts nothing.
	All bool
}

// Reporter is a kind of report.
type Reporter struct {
	Name string
	// File is its name in a run's reports/ folder; "" for a report that goes to the terminal alone.
	File  string
	Write func(w io.Writer, run *results.Run, opts Options) error
	// Several writes several runs as one file, a section each; nil for a kind that takes one run a file.
	Several func(w io.Writer, runs []*results.Run, opts Options) error
}

// Find returns the reporter of that name; an unknown one is an error of code Input that lists the choices.
func Find(table []Reporter, name string) (Reporter, error) {
	names := make([]string, len(table))
	for i, r := range table {
		if r.Name == name {
			return r, nil
		}
		names[i] = r.Name
	}
	return Reporter{}, failure.WithHint(failure.New(failure.Input, "unknown report format %q", name), "%s", strict.Suggest(name, names))
}

// To writes a report through a buffer and gives errors of the sink their code.
func To(w io.Writer, write func(w *bufio.Writer) error) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if err := write(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return failure.WithCode(fmt.Errorf("writing the report: %w", err), failure.Internal)
	}
	return nil
}
