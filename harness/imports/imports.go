// Package imports is what the importers share: the files they may read, the files they make, the report of what became of the source, and the writer of YAML that people go on editing.
//
// The importers themselves are the packages below it: promptfoo for configurations, traces for recorded conversations; and recordings, which makes cassettes and shares the report alone. The others give a [Result]: the dataset and the files beside it, in memory, and a [Report] that leaves nothing out: what was converted, what was lost, what is left to do by hand,
// and what the source's own program lets pass although it is wrong. Nothing is run and nothing is dialled.
package imports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
)

// File is a file that an import makes.
type File struct {
	// Path is relative to the folder of the dataset, with slashes.
	Path string
	Data []byte
}

// Result is what an import makes.
type Result struct {
	// Files are the dataset, which comes first, and the files that it names.
	Files  []File
	Report Report
}

// Class says what a [Note] is about.
type Class string

// The classes, in the order of a report.
const (
	Lost    Class = "lost"    // not in what was made, except as a comment
	Todo    Class = "to do"   // not in what was made; it can be written by hand, as the note says
	Changed Class = "changed" // in what was made, with a meaning that is not quite the source's
	Wrong   Class = "wrong"   // a mistake in the source that its own program lets pass
)

var classes = []Class{Lost, Todo, Changed, Wrong}

// Note is one thing that the user should know about.
type Note struct {
	Class Class
	Pos   failure.Position
	// Text says what it is, in words that are the same for all that are alike.
	Text string
	// Hint is what to do; "" where nothing can be done.
	Hint string
}

// Count tells what became of the assertions of one type. Total is the sum of the others.
type Count struct {
	Type      string `json:"type"`
	Total     int    `json:"total"`
	Converted int    `json:"converted"`
	Todo      int    `json:"todo"`
	Lost      int    `json:"lost"`
}

// Report tells what became of a source.
type Report struct {
	// Summary is what was converted, a line each: "300 tests -> 300 items".
	Summary []string
	// Items and Providers are how many the dataset has.
	Items, Providers int
	// Assertions count by type, sorted by it.
	Assertions []Count

	notes []Note
	seen  map[Note]bool
}

// Add adds a note; what was said of a place already is said once.
func (r *Report) Add(class Class, pos failure.Position, hint, format string, args ...any) {
	n := Note{class, pos, fmt.Sprintf(format, args...), hint}
	if r.seen[n] {
		return
	}
	if r.seen == nil {
		r.seen = map[Note]bool{}
	}
	r.seen[n] = true
	r.notes = append(r.notes, n)
}

// Count counts one assertion of a type as what became of it: [Lost], [Todo], or anything else for converted.
func (r *Report) Count(kind string, became Class) {
	i, found := slices.BinarySearchFunc(r.Assertions, kind, func(c Count, kind string) int { return strings.Compare(c.Type, kind) })
	if !found {
		r.Assertions = slices.Insert(r.Assertions, i, Count{Type: kind})
	}
	c := &r.Assertions[i]
	c.Total++
	switch became {
	case Lost:
		c.Lost++
	case Todo:
		c.Todo++
	default:
		c.Converted++
	}
}

// Lose makes one assertion of a type that was counted as converted a lost one.
func (r *Report) Lose(kind string) {
	for i := range r.Assertions {
		if c := &r.Assertions[i]; c.Type == kind && c.Converted > 0 {
			c.Converted--
			c.Lost++
		}
	}
}

// Sum adds up the counts of all types.
func (r *Report) Sum() Count {
	sum := Count{Type: "all"}
	for _, c := range r.Assertions {
		sum.Total += c.Total
		sum.Converted += c.Converted
		sum.Todo += c.Todo
		sum.Lost += c.Lost
	}
	return sum
}

// Notes are the notes by class, file and place.
func (r *Report) Notes() []Note {
	notes := slices.Clone(r.notes)
	slices.SortStableFunc(notes, func(a, b Note) int {
		return cmp.Or(
			cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class)),
			strings.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column), strings.Compare(a.Text, b.Text),
		)
	})
	return notes
}

// mostPlaces is how many places of notes that are alike are written out.
const mostPlaces = 6

// Text is the report for people: the summary, then each note with its places, those that are alike together.
func (r *Report) Text() string {
	var b strings.Builder
	for _, line := range r.Summary {
		b.WriteString(line + "\n")
	}
	if sum := r.Sum(); sum.Total > 0 {
		fmt.Fprintf(&b, "converted %d of %d assertions; %d to do by hand, %d lost\n", sum.Converted, sum.Total, sum.Todo, sum.Lost)
		for _, c := range r.Assertions {
			if c.Converted != c.Total {
				fmt.Fprintf(&b, "  %s: %d of %d converted\n", c.Type, c.Converted, c.Total)
			}
		}
	}
	type group struct {
		Note
		places []failure.Position
	}
	var groups []*group
	index := map[Note]*group{}
	for _, n := range r.Notes() {
		key := Note{Class: n.Class, Text: n.Text, Hint: n.Hint}
		g := index[key]
		if g == nil {
			g = &group{Note: n}
			index[key] = g
			groups = append(groups, g)
		}
		g.places = append(g.places, n.Pos)
	}
	for _, g := range groups {
		times := ""
		if n := len(g.places); n > 1 {
			times = fmt.Sprintf(", %d times", n)
		}
		fmt.Fprintf(&b, "%s: %s%s (%s)\n", g.Class, g.Text, times, places(g.places))
		if g.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", g.Hint)
		}
	}
	return b.String()
}

// places lists positions: the file once, then lines.
func places(list []failure.Position) string {
	var parts []string
	file := ""
	for i, pos := range list {
		if i == mostPlaces && len(list) > mostPlaces+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		switch {
		case pos.IsZero():
			continue
		case pos.File == file:
			pos.File = ""
			parts = append(parts, strings.TrimPrefix(pos.String(), ":"))
		default:
			file = pos.File
			parts = append(parts, pos.String())
		}
	}
	if parts == nil {
		return "everywhere"
	}
	return strings.Join(parts, ", ")
}
