// Package json writes a run as one JSON document: {"v":1,"summary":{...},"results":[...]}, where summary is summary.json and each result is a line of results.jsonl. Equal runs give equal bytes.
package json

import (
	"bufio"
	"io"

	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
)

// Write writes the document, with one result a line. It holds no option; the results stream.
func Write(w io.Writer, run *results.Run, _ reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		buffer, err := run.Summary.AppendJSON([]byte(`{"v":1,"summary":`))
		if err != nil {
			return err
		}
		buffer = append(buffer, `,"results":[`...)
		separator := "\n"
		for line, err := range run.Lines() {
			if err != nil {
				return err
			}
			buffer = append(buffer, separator...)
			buffer = results.AppendLine(buffer, &line)
			separator = ",\n"
			// What the sink refuses is reported by the last flush.
			_, _ = out.Write(buffer)
			buffer = buffer[:0]
		}
		buffer = append(buffer, "\n]}\n"...)
		_, _ = out.Write(buffer)
		return nil
	})
}
