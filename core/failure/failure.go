// Package failure is how errors reach the user: what went wrong, where in the input, what to do next, and with which exit code the command ends.
//
// An error gets its place, hint and code where it is found and is rendered once, at the top:
//
//	err := failure.At(pos, failure.Input, "unknown key %q", key)
//	err = failure.WithHint(err, "did you mean %q?", nearest)
//
// Wrapping with fmt.Errorf and %w keeps all three.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// Code is an exit code of the command.
type Code int

// The exit codes. Where several hold the first of Interrupted, Input, Internal, Cassette, Gate, Unavailable, Inconclusive counts; see [Worse].
const (
	OK           Code = 0   // everything ran, all gates hold
	Gate         Code = 1   // a gate failed: a check, an invariant or a regression
	Input        Code = 2   // usage or input: a flag, a file, a name
	Internal     Code = 3   // an internal or I/O error of the harness
	Cassette     Code = 4   // a cassette is missing, stale, left over or unreadable
	Unavailable  Code = 5   // a provider, a tool or a judge was unavailable, or the budget was reached
	Inconclusive Code = 6   // a regression gate is inconclusive and says that this fails
	Interrupted  Code = 130 // the run was interrupted
)

var precedence = []Code{Interrupted, Input, Internal, Cassette, Gate, Unavailable, Inconclusive, OK}

// Worse returns the code that counts where both hold.
func Worse(a, b Code) Code {
	for _, code := range precedence {
		if a == code || b == code {
			return code
		}
	}
	return Internal
}

// Position is a place in an input file. Line and Column count from 1, columns in Unicode code points; 0 is unknown.
type Position struct {
	File         string
	Line, Column int
}

// IsZero reports whether the position names nothing.
func (p Position) IsZero() bool { return p == Position{} }

// String gives file:line:column, as far as each is known.
func (p Position) String() string {
	s := p.File
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			s += ":" + strconv.Itoa(p.Column)
		}
	}
	return s
}

type failure struct {
	err  error
	pos  Position
	hint string
	code Code
}

func (f *failure) Error() string {
	if f.pos.IsZero() {
		return f.err.Error()
	}
	return f.pos.String() + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// New returns an error with an exit code.
func New(code Code, format string, args ...any) error {
	return &failure{err: fmt.Errorf(format, args...), code: code}
}

// At returns an error with an exit code and the place in the input where it was found. The place heads the message.
func At(pos Position, code Code, format string, args ...any) error {
	return &failure{err: fmt.Errorf(format, args...), pos: pos, code: code}
}

// WithCode gives err an exit code unless it has one already. A nil err stays nil.
func WithCode(err error, code Code) error {
	if err == nil || CodeOf(err) != OK {
		return err
	}
	return &failure{err: err, code: code}
}

// WithHint adds what the user should do next, one command or edit. A nil err stays nil.
func WithHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &failure{err: err, hint: fmt.Sprintf(format, args...)}
}

// CodeOf returns the worst exit code found in err, joined errors included, and OK where there is none.
func CodeOf(err error) Code {
	code := OK
	walk(err, func(f *failure) {
		if f.code != OK {
			code = Worse(code, f.code)
		}
	})
	return code
}

// PositionOf returns the outermost position found in err.
func PositionOf(err error) (Position, bool) {
	var found Position
	walk(err, func(f *failure) {
		if found.IsZero() {
			found = f.pos
		}
	})
	return found, !found.IsZero()
}

// Message returns the text of err without the place that heads it, where it has one.
func Message(err error) string {
	pos, ok := PositionOf(err)
	if !ok {
		return err.Error()
	}
	return strings.TrimPrefix(err.Error(), pos.String()+": ")
}

// Hints returns every hint in err, outermost first, each once.
func Hints(err error) []string {
	var hints []string
	seen := map[string]bool{}
	walk(err, func(f *failure) {
		if f.hint != "" && !seen[f.hint] {
			seen[f.hint] = true
			hints = append(hints, f.hint)
		}
	})
	return hints
}

func walk(err error, visit func(*failure)) {
	for err != nil {
		if f, ok := err.(*failure); ok { // every layer is looked at in turn
			visit(f)
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok { // see above
			for _, e := range joined.Unwrap() {
				walk(e, visit)
			}
			return
		}
		err = errors.Unwrap(err)
	}
}

// Split returns the errors of a joined error, and the hints that layers around it add for all of them. Only the outermost join is split, and none below a layer with a text or a place of its own: then errs is nil.
func Split(err error) (errs []error, hints []string) {
	for err != nil {
		if joined, ok := err.(interface{ Unwrap() []error }); ok { // the outermost
			return joined.Unwrap(), hints
		}
		f, ok := err.(*failure) // a layer that adds nothing but a hint or a code
		if !ok || !f.pos.IsZero() {
			break
		}
		if f.hint != "" {
			hints = append(hints, f.hint)
		}
		err = f.err
	}
	return nil, nil
}

// Render gives the text that is shown to the user: the message, then each hint on a line of its own. The errors of a joined error each keep their own hints.
func Render(err error) string {
	if err == nil {
		return ""
	}
	var b strings.Builder
	if all, hints := Split(err); all != nil {
		for _, e := range all {
			b.WriteString(Render(e))
		}
		for _, hint := range hints {
			b.WriteString("hint: " + hint + "\n")
		}
		return b.String()
	}
	b.WriteString("error: " + err.Error() + "\n")
	for _, hint := range Hints(err) {
		b.WriteString("hint: " + hint + "\n")
	}
	return b.String()
}

// Reason reduces an error of the operating system to its kind, without the paths and host names that its text holds.
func Reason(err error) string {
	for _, kind := range reasons {
		if errors.Is(err, kind.err) {
			return kind.text
		}
	}
	return "the system reported an error"
}

var reasons = []struct {
	err  error
	text string
}{
	{syscall.ENOSPC, "no space left on the device"},
	{syscall.EDQUOT, "the disk quota is used up"},
	{syscall.EROFS, "the file system is read-only"},
	{syscall.EISDIR, "it is a folder"},
	{syscall.ENOTDIR, "a part of the path is no folder"},
	{syscall.ENAMETOOLONG, "the name is too long"},
	{syscall.EMFILE, "too many open files"},
	{syscall.EIO, "the device reported an I/O error"},
	{fs.ErrNotExist, "no such file or folder"},
	{fs.ErrExist, "it exists already"},
	{fs.ErrPermission, "permission denied"},
	{fs.ErrClosed, "it is closed already"},
}
