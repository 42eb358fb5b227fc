package strict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/failure"
)

// MaxProblems is how many problems a [Problems] keeps; of the others only the number is told.
const MaxProblems = 100

// Problem is one thing that is wrong in a file.
type Problem struct {
	Pos     failure.Position
	Path    string // keys from the root of the file, such as items[2].checks[0].contains; empty for the root
	Message string
	Hint    string // what to do, or empty
	err     error
}

// Err returns the problem as an error of code [failure.Input] with its place and hint.
func (p Problem) Err() error {
	if p.err != nil {
		return p.err
	}
	message := p.Message
	if p.Path != "" {
		message = p.Path + ": " + message
	}
	err := failure.At(p.Pos, failure.Input, "%s", message)
	if p.Hint != "" {
		err = failure.WithHint(err, "%s", p.Hint)
	}
	return err
}

// Problems collects what is wrong in files, so that all of it can be told at once. What is found twice in the same place is told once. The zero value is ready for use; it is not safe for concurrent use.
//
// [Problems.Key] and [Problems.At] return the same collection seen from further inside the file: what is added there bears the longer path.
type Problems struct {
	found  *found // made when first needed, in the root, and shared by all that is seen from further inside
	parent *Problems
	key    string
	index  int // the place in a list, or -1 where key counts
}

// found is what has been collected.
type found struct {
	list  []Problem
	seen  map[said]bool
	total int
	more  int // different problems that are not kept
}

// said is what makes two problems one.
type said struct {
	pos     failure.Position
	message string
}

func (p *Problems) all() *found {
	if p.found == nil {
		p.found = &found{}
	}
	return p.found
}

// Root returns the collection seen from the root of the file.
func (p *Problems) Root() *Problems { return &Problems{found: p.all()} }

// Key returns the collection seen from the value of a key.
func (p *Problems) Key(name string) *Problems {
	return &Problems{found: p.all(), parent: p, key: name, index: -1}
}

// Enter is [Problems.Key] in memory of the caller, for code that looks at many keys and finds a problem with few. child serves until it is used again.
func (p *Problems) Enter(name string, child *Problems) *Problems {
	*child = Problems{found: p.all(), parent: p, key: name, index: -1}
	return child
}

// At returns the collection seen from entry i of a list.
func (p *Problems) At(i int) *Problems {
	return &Problems{found: p.all(), parent: p, index: i}
}

// appendPath appends the key path that p stands for.
func (p *Problems) appendPath(dst []byte) []byte {
	if p.parent == nil {
		return dst
	}
	dst = p.parent.appendPath(dst)
	if p.index >= 0 {
		return append(strconv.AppendInt(append(dst, '['), int64(p.index), 10), ']')
	}
	if !word(p.key) {
		return append(strconv.AppendQuote(append(dst, '['), p.key), ']')
	}
	if len(dst) > 0 {
		dst = append(dst, '.')
	}
	return append(dst, p.key...)
}

func word(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return s != ""
}

// Add adds a problem at a place. The hint says what to do; it may be empty.
func (p *Problems) Add(pos failure.Position, hint, format string, args ...any) {
	p.add(Problem{Pos: pos, Path: string(p.appendPath(nil)), Message: fmt.Sprintf(format, args...), Hint: hint})
}

// AddError adds an error that was found elsewhere, with the places, hints and codes that it has. The parts of a joined error count one by one. A nil error adds nothing.
func (p *Problems) AddError(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // only an outermost join is split
		for _, e := range joined.Unwrap() {
			p.AddError(e)
		}
		return
	}
	pos, _ := failure.PositionOf(err)
	p.add(Problem{Pos: pos, Message: err.Error(), err: err})
}

func (p *Problems) add(problem Problem) {
	top := p.all()
	top.total++
	key := said{problem.Pos, problem.Message}
	if top.seen[key] {
		return
	}
	if len(top.list) >= MaxProblems {
		top.more++
		return
	}
	if top.seen == nil {
		top.seen = map[said]bool{}
	}
	top.seen[key] = true
	top.list = append(top.list, problem)
}

// Len returns how often a problem was added so far. It serves to see whether something new was found, as a repeated problem counts here but is told once.
func (p *Problems) Len() int { return p.all().total }

// All returns the problems kept, by file, line and column.
func (p *Problems) All() []Problem {
	all := slices.Clone(p.all().list)
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return all
}

// Err returns all problems joined into one error, each with its place and hint, and nil where there is none.
func (p *Problems) Err() error {
	var errs []error
	for _, problem := range p.All() {
		errs = append(errs, problem.Err())
	}
	if more := p.all().more; more > 0 {
		errs = append(errs, failure.New(failure.Input, "and %d more problems", more))
	}
	return errors.Join(errs...)
}
