package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/reports/escape"
)

// progress shows how far a run is, on stderr: a bar that is drawn again on a terminal, a plain line every few seconds elsewhere.
type progress struct {
	s       *State
	verbose bool

	mu      sync.Mutex
	started time.Time
	drawn   time.Time
	bar     bool // a bar stands on the current line
	last    experiment.Progress
}

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
)

func newProgress(s *State, verbose bool) *progress {
	now := s.Clock.Now()
	return &progress{s: s, verbose: verbose, started: now, drawn: now}
}

// update is told of each finished item.
func (p *progress) update(x experiment.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = x
	if p.verbose {
		p.clear()
		fmt.Fprintf(p.s.Stderr, "%s  %s  %s\n", x.Last.Status, escape.Line(x.Last.Item), escape.Line(x.Last.Provider))
	}
	now := p.s.Clock.Now()
	every := lineEvery
	if p.s.StderrWidth > 0 {
		every = barEvery
	}
	if now.Sub(p.drawn) < every {
		return
	}
	p.drawn = now
	if p.s.StderrWidth == 0 {
		fmt.Fprintln(p.s.Stderr, p.text(now, 0))
		return
	}
	fmt.Fprint(p.s.Stderr, "\r\x1b[K"+p.text(now, 20))
	p.bar = true
}

// text is the state in one line, with a bar of so many cells.
func (p *progress) text(now time.Time, cells int) string {
	var b strings.Builder
	x := p.last
	if cells > 0 && x.Total > 0 {
		full := cells * x.Done / x.Total
		b.WriteString("[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + "] ")
	}
	fmt.Fprintf(&b, "%d/%d", x.Done, x.Total)
	for _, status := range eval.Statuses {
		if n := x.Counts[status]; n > 0 {
			fmt.Fprintf(&b, "  %s %d", status, n)
		}
	}
	if took := now.Sub(p.started); x.Done > 0 && x.Done < x.Total && took > time.Second {
		left := time.Duration(float64(took) / float64(x.Done) * float64(x.Total-x.Done))
		fmt.Fprintf(&b, "  about %s left", left.Round(time.Second))
	}
	return b.String()
}

func (p *progress) clear() {
	if p.bar {
		fmt.Fprint(p.s.Stderr, "\r\x1b[K")
		p.bar = false
	}
}

// end takes the bar away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
