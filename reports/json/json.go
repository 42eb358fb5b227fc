// Package json writes a run as one JSON document: {"v":1,"summary":{...},"disagree":[...],"results":[...]}, where summary is summary.json, disagree lists the items on which the providers disagree, and each result is a line of results.jsonl. Equal runs give equal bytes.
package json

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// Write writes the document, with one result a line. It holds no option; the results stream.
func Write(w io.Writer, run *results.Run, _ reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		if err := write(out, run); err != nil {
			return err
		}
		_ = out.WriteByte('\n') // what the sink refuses is reported by the last flush
		return nil
	})
}

// Several writes several runs as one document, {"v":1,"runs":[...]}, each as [Write] does.
func Several(w io.Writer, runs []*results.Run, _ reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		before := `{"v":1,"runs":[`
		for _, run := range runs {
			_, _ = out.WriteString(before)
			if err := write(out, run); err != nil {
				return err
			}
			before = ",\n"
		}
		_, _ = out.WriteString("]}\n")
		return nil
	})
}

func write(out *bufio.Writer, run *results.Run) error {
	buffer, err := run.Summary.AppendJSON([]byte(`{"v":1,"summary":`))
	if err != nil {
		return err
	}
	buffer = append(buffer, `,"disagree":[`...)
	separator := "\n"
	for d, err := range reports.Disagreements(run) {
		if err != nil {
			return err
		}
		text, err := json.Marshal(d)
		if err != nil {
			return failure.WithCode(err, failure.Internal)
		}
		buffer = append(append(buffer, separator...), escape.JSON(text)...)
		separator = ",\n"
		_, _ = out.Write(buffer)
		buffer = buffer[:0]
	}
	buffer = append(buffer, `],"results":[`...)
	separator = "\n"
	for line, err := range run.Lines() {
		if err != nil {
			return err
		}
		buffer = append(buffer, separator...)
		buffer = results.AppendLine(buffer, &line)
		separator = ",\n"
		_, _ = out.Write(buffer)
		buffer = buffer[:0]
	}
	_, _ = out.Write(append(buffer, "\n]}"...))
	return nil
}
