// Package csv writes the results of a run as comma-separated values (RFC 4180): a row of names, then one row per item, provider and repeat, in the order of the results. Equal runs give equal bytes.
//
// The columns are those of [Columns] in that order, whatever the dataset; later versions only add to them at the end. Lists stand in one cell, separated by "; ". What is not known is an empty cell.
// A cell of text never acts: one that a spreadsheet would take for a formula begins with an apostrophe, and control characters, line ends among them, are written as escapes, so that a row is a line. The file is UTF-8 without a byte order mark, its lines end with LF.
package csv

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// field is a column: its name and how a line's cell is written, without quotes.
type field struct {
	name string
	cell func(r *eval.Result) string
}

// fields is the table of columns. It only grows at its end.
var fields = []field{
	{"item", func(r *eval.Result) string { return text(r.Item) }},
	{"index", func(r *eval.Result) string { return strconv.Itoa(r.Index) }},
	{"provider", func(r *eval.Result) string { return text(r.Provider) }},
	{"repeat", func(r *eval.Result) string { return strconv.Itoa(r.Repeat) }},
	{"group", func(r *eval.Result) string { return maybe(r.Group) }},
	{"tags", func(r *eval.Result) string { return text(strings.Join(r.Tags, "; ")) }},
	{"quarantined", func(r *eval.Result) string { return strconv.FormatBool(r.Quarantined) }},
	{"status", func(r *eval.Result) string { return text(string(r.Status)) }},
	{"cause", func(r *eval.Result) string { return maybe(r.Cause) }},
	{"score", func(r *eval.Result) string { return fraction(r.Score) }},
	{"failed_checks", func(r *eval.Result) string { return checks(r, eval.CheckFail) }},
	{"unjudged_checks", func(r *eval.Result) string { return checks(r, eval.CheckUnjudged) }},
	{"violations", violations},
	{"error_kind", func(r *eval.Result) string {
		if r.Error == nil {
			return ""
		}
		return text(string(r.Error.Kind))
	}},
	{"error", func(r *eval.Result) string {
		message, _ := results.Problem(r)
		return text(message)
	}},
	{"stop", func(r *eval.Result) string { return maybe(r.Stop) }},
	{"cassette_state", func(r *eval.Result) string {
		if r.Cassette == nil {
			return ""
		}
		return text(string(r.Cassette.State))
	}},
	{"input_tokens", func(r *eval.Result) string { return strconv.Itoa(r.Usage.InputTokens) }},
	{"cached_input_tokens", func(r *eval.Result) string { return strconv.Itoa(r.Usage.CachedInputTokens) }},
	{"output_tokens", func(r *eval.Result) string { return strconv.Itoa(r.Usage.OutputTokens) }},
	{"reasoning_tokens", func(r *eval.Result) string { return strconv.Itoa(r.Usage.ReasoningTokens) }},
	{"cost_usd", func(r *eval.Result) string { return usd(r.CostUSD) }},
	{"overhead_usd", func(r *eval.Result) string { return usd(&r.OverheadUSD) }},
	{"latency_ms", func(r *eval.Result) string { return ms(r.LatencyMS) }},
	{"ttft_ms", func(r *eval.Result) string { return ms(r.TTFTMS) }},
	{"turns", func(r *eval.Result) string { return strconv.Itoa(r.Turns) }},
	{"steps", func(r *eval.Result) string { return strconv.Itoa(r.Steps) }},
	{"tool_calls", func(r *eval.Result) string { return strconv.Itoa(r.ToolCalls) }},
	{"retries", func(r *eval.Result) string { return strconv.Itoa(r.Retries) }},
	{"item_hash", func(r *eval.Result) string { return text(r.ItemHash) }},
	{"checks_hash", func(r *eval.Result) string { return text(r.ChecksHash) }},
	{"output", func(r *eval.Result) string { return maybe(r.Output) }},
	{"output_cut", func(r *eval.Result) string { return strconv.FormatBool(r.OutputCut) }},
}

// Columns returns the names of the columns.
func Columns() []string {
	names := make([]string, len(fields), len(fields)+1)
	for i, f := range fields {
		names[i] = f.name
	}
	return append(names, "dataset")
}

// Write writes the file. It holds one line at a time.
func Write(w io.Writer, run *results.Run, opts reports.Options) error {
	return Several(w, []*results.Run{run}, opts)
}

// Several writes the rows of several runs, one after the other.
func Several(w io.Writer, runs []*results.Run, _ reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		// What the sink refuses is reported by the last flush.
		_, _ = out.WriteString(strings.Join(Columns(), ",") + "\n")
		var row []byte
		for _, run := range runs {
			for line, err := range run.Lines() {
				if err != nil {
					return err
				}
				row = row[:0]
				for _, f := range fields {
					row = append(appendCell(row, f.cell(&line)), ',')
				}
				row = appendCell(row, text(run.Summary.Dataset.Name))
				_, _ = out.Write(append(row, '\n'))
			}
		}
		return nil
	})
}

// appendCell quotes what has to be quoted, and what a reader that separates by semicolons would take apart.
func appendCell(dst []byte, s string) []byte {
	if !strings.ContainsAny(s, ",;\"'") && s == strings.TrimSpace(s) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}

func text(s string) string { return escape.Line(escape.Formula(s)) }

func maybe(s *string) string {
	if s == nil {
		return ""
	}
	return text(*s)
}

func fraction(f *eval.Fraction) string {
	if f == nil {
		return ""
	}
	return string(f.AppendJSON(nil))
}

func usd(u *money.USD) string {
	if u == nil {
		return ""
	}
	return u.String()
}

func ms(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func checks(r *eval.Result, status eval.CheckStatus) string {
	var names []string
	for i := range r.Checks {
		if r.Checks[i].Status == status {
			names = append(names, r.Checks[i].Name)
		}
	}
	return text(strings.Join(names, "; "))
}

func violations(r *eval.Result) string {
	var names []string
	for _, v := range r.Invariants.Violations {
		names = append(names, v.Name)
	}
	return text(strings.Join(names, "; "))
}
