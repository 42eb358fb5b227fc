package html

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
)

// section is a run on the page.
type section struct {
	number int
	run    *results.Run
	sum    *results.Summary
	before *baseline.File // nil where the run was not compared

	columns   map[string]int // provider: column
	latencies [][]int64      // by column, in ms
	causes    results.Causes
	moves     map[cellKey]move
	// notable are the items whose details are kept first, by index.
	notable map[int]bool
	// places are where the details of each line lie, in the order of the lines; a block of -1 is none.
	places []place
}

// cellKey is an item on a provider.
type cellKey struct{ index, column int }

// move is what has become of a cell since the baseline.
type move struct {
	kind       baseline.Kind
	violations []string // that are new
}

// survey goes through the results once, for what must be known before the first byte is written.
func survey(run *results.Run, number int) (*section, error) {
	s := &section{number: number, run: run, sum: &run.Summary, columns: map[string]int{}, moves: map[cellKey]move{}, notable: map[int]bool{}}
	s.latencies = make([][]int64, len(s.sum.Providers))
	for i, p := range s.sum.Providers {
		s.columns[p.ID] = i
	}
	if err := s.readBaseline(); err != nil {
		return nil, err
	}
	var comparer *baseline.Comparer
	if s.before != nil {
		comparer = baseline.NewComparer(s.before, s.moved)
	}
	for line, err := range run.Lines() {
		if err != nil {
			return nil, err
		}
		column, ok := s.columns[line.Provider]
		if !ok {
			return nil, failure.New(failure.Internal, "item %q: the summary has no provider %q", line.Item, line.Provider)
		}
		if line.LatencyMS != nil {
			s.latencies[column] = append(s.latencies[column], *line.LatencyMS)
		}
		s.causes.Add(&line)
		if line.Status != eval.Pass || len(line.Invariants.Violations) > 0 {
			s.notable[line.Index] = true
		}
		s.places = append(s.places, place{block: -1})
		if comparer != nil {
			comparer.Add(&line)
		}
	}
	if comparer != nil {
		comparer.Finish(baseline.Now{Mode: s.sum.Mode})
	}
	return s, nil
}

// readBaseline reads the copy in the run's folder.
func (s *section) readBaseline() error {
	if s.sum.Regression == nil || s.sum.Regression.Baseline.Hash == nil {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.run.Dir, baseline.RunFile))
	if err != nil {
		return failure.WithCode(fmt.Errorf("reading the baseline of the run: %w", err), failure.Internal)
	}
	s.before, err = baseline.Decode(baseline.RunFile, data)
	return err
}

func (s *section) moved(m baseline.Move) {
	if m.Now == nil || (m.Kind == baseline.Same || m.Kind == baseline.Open) && len(m.NewViolations) == 0 {
		return
	}
	s.moves[cellKey{m.Now.Index, s.columns[m.Now.Provider]}] = move{m.Kind, slices.Clone(m.NewViolations)}
	s.notable[m.Now.Index] = true
}

// details writes the details of all lines: of notable items first, so that those are complete when the bounds are reached. It returns the number of blocks.
func (s *section) details(out *counter, limit *limits) (int, error) {
	b, err := newBlocks(out, fmt.Sprintf("r%dd", s.number))
	if err != nil {
		return 0, err
	}
	for _, notable := range []bool{true, false} {
		n := -1
		for line, err := range s.run.Lines() {
			if err != nil {
				return 0, err
			}
			n++
			if n >= len(s.places) {
				break // a run that goes on has grown since
			}
			if s.notable[line.Index] != notable || b.written >= limit.details {
				continue
			}
			d, err := s.detail(&line, b.written < limit.transcripts)
			if err != nil {
				return 0, err
			}
			if s.places[n], err = b.add(d); err != nil {
				return 0, err
			}
		}
	}
	if err := b.close(); err != nil {
		return 0, err
	}
	limit.details -= b.written
	limit.transcripts -= b.written
	return b.closed, nil
}

// row is an item in the index of the grid.
type row struct {
	ID          string   `json:"id"`
	Tags        []string `json:"tags,omitempty"`
	Group       string   `json:"group,omitempty"`
	Quarantined bool     `json:"quarantined,omitempty"`
	Cells       []cell   `json:"cells"` // one a provider
}

// cell is an item on a provider, with its repeats in order.
type cell struct {
	Move       string  `json:"move,omitempty"`
	Violations int     `json:"new_violations,omitempty"`
	Lines      []entry `json:"lines"`
}

// entry is a line in the grid. Block is -1 where its details were left out.
type entry struct {
	Repeat   int            `json:"repeat"`
	Status   int            `json:"status"` // place in the statuses of the head
	Score    *eval.Fraction `json:"score"`
	MS       *int64         `json:"ms"`
	Cost     *money.USD     `json:"usd"`
	Why      string         `json:"why,omitempty"`
	Broken   int            `json:"violations,omitempty"`
	Answer   string         `json:"answer,omitempty"` // its beginning, for the search
	Block    int            `json:"block"`
	Position int            `json:"at"`
}

// Bounds on what the index repeats of a line, in characters.
const (
	mostWhy    = 120
	mostAnswer = 160
)

// index writes the rows of the grid in the order of the dataset and returns the number of blocks.
func (s *section) index(out *counter) (int, error) {
	b, err := newBlocks(out, fmt.Sprintf("r%di", s.number))
	if err != nil {
		return 0, err
	}
	var open row
	index, n := 0, -1
	flush := func() error {
		if index == 0 {
			return nil
		}
		_, err := b.add(open)
		return err
	}
	for line, err := range s.run.Lines() {
		if err != nil {
			return 0, err
		}
		n++
		if n >= len(s.places) {
			break
		}
		if line.Index != index {
			if err := flush(); err != nil {
				return 0, err
			}
			index = line.Index
			open = row{ID: escape.Line(line.Item), Tags: escaped(line.Tags), Quarantined: line.Quarantined, Cells: make([]cell, len(s.sum.Providers))}
			if line.Group != nil {
				open.Group = escape.Line(*line.Group)
			}
			for c := range open.Cells {
				open.Cells[c].Lines = []entry{}
				if m, ok := s.moves[cellKey{index, c}]; ok {
					open.Cells[c].Violations = len(m.violations)
					if m.kind != baseline.Same && m.kind != baseline.Open {
						open.Cells[c].Move = string(m.kind)
					}
				}
			}
		}
		c := &open.Cells[s.columns[line.Provider]]
		c.Lines = append(c.Lines, s.entry(&line, s.places[n]))
	}
	if err := flush(); err != nil {
		return 0, err
	}
	err = b.close()
	return b.closed, err
}

func (s *section) entry(line *eval.Result, at place) entry {
	e := entry{
		Repeat: line.Repeat, Status: slices.Index(eval.Statuses, line.Status), Score: line.Score, MS: line.LatencyMS, Cost: line.CostUSD,
		Why: beginning(escape.Line(reports.Why(line)), mostWhy), Broken: len(line.Invariants.Violations), Block: at.block, Position: at.at,
	}
	if line.Output != nil {
		e.Answer = beginning(escape.Line(head(*line.Output, 4*mostAnswer)), mostAnswer)
	}
	return e
}

func escaped(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = escape.Line(s)
	}
	return out
}

// head is at most n bytes of a text, ending at a character, so that megabytes need not be escaped for a line.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// beginning is at most n characters of a text, with a mark where there was more.
func beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// beforeItem is what the baseline has of a cell, nil for nothing.
func (s *section) beforeItem(item, provider string) *baseline.Item {
	if s.before == nil {
		return nil
	}
	at, ok := slices.BinarySearchFunc(s.before.Items, [2]string{item, provider}, func(i baseline.Item, key [2]string) int {
		if c := strings.Compare(i.Item, key[0]); c != 0 {
			return c
		}
		return strings.Compare(i.Provider, key[1])
	})
	if !ok {
		return nil
	}
	return &s.before.Items[at]
}
