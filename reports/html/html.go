// Package html writes finished runs as one page that needs nothing else: no server, no network, no second file. It opens from a disk as from a server.
//
// The verdict, the gates and every number of the summary are plain markup, which is there without a script. What can be large lies in blocks behind it: the index of the grid, and of each result its checks, evidence and transcript. A block is JSON, compressed (RFC 1951) and in base64; the page's script opens those that it needs. So a run of ten thousand items is one file that opens at once, and text of a model is never part of the markup.
//
// A content security policy in the page allows the scripts and styles by their hashes and nothing else: no request, no frame, no form, no markup made from text.
//
// # Bounds
//
// Each text, each transcript and the file as a whole have a bound, see [MaxBytes]. Results that failed, moved against the baseline or differ between providers keep their transcripts first. Whatever is left out says so, with the command that shows it.
package html

import (
	"bufio"
	"fmt"
	"io"

	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
)

// MaxBytes is the length that the page of a run of ten thousand items keeps below. The index of the grid is never cut, so that a run of hundreds of thousands of items may exceed it.
const MaxBytes = 30_000_000

// Shares of [MaxBytes], in bytes as written.
const (
	// mostTranscripts is where transcripts end: later results keep their checks and evidence.
	mostTranscripts = 20_000_000
	// mostDetails is where details end: later results keep their row in the grid.
	mostDetails = 25_000_000
)

// Write writes the page of one run. It reads the results a few times and holds a few words of each, one transcript, and the baseline.
func Write(w io.Writer, run *results.Run, opts reports.Options) error {
	return Several(w, []*results.Run{run}, opts)
}

// Several writes one page of several runs, each a section of its own under the name of its dataset. It holds no option.
func Several(w io.Writer, runs []*results.Run, _ reports.Options) error {
	return reports.To(w, func(out *bufio.Writer) error {
		p := page{out: &counter{out: out}, runs: runs, limits: limits{mostTranscripts, mostDetails}}
		return p.write()
	})
}

// limits are where transcripts and details end, in bytes of blocks.
type limits struct{ transcripts, details int }

// counter counts what is written. What the sink refuses is reported by the last flush.
type counter struct {
	out *bufio.Writer
	n   int
}

func (c *counter) Write(data []byte) (int, error) {
	c.n += len(data)
	return c.out.Write(data)
}

func (c *counter) printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }
