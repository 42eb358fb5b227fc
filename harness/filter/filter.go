// Package filter tells which items an expression meets. The expression is CEL (the Common Expression Language, cel.dev) over what an item is:
//
//	id == 'i-17' || 'urgent' in tags && metadata.level > 2 && !has(vars.clinic)
//
// id is a string, tags a list of strings, metadata and vars are mappings of any values. The result is true or false.
//
// An item that the expression cannot be evaluated for, since it lacks a key or has a value of another type there, is not met: datasets are not uniform. Who asks for items and meets none should say so; [Program.Match] gives the reason.
package filter

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/echoeval/echoeval/core/strict"
)

// MaxLength is the longest expression in bytes.
const MaxLength = 10_000

// maxCost bounds the evaluation for one item, in steps as CEL counts them.
const maxCost = 1_000_000

// Names are what an expression may speak of.
var Names = []string{"id", "tags", "metadata", "vars"}

// environment is made when the first expression is compiled: the start of a program that has none must not pay for it.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	values := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(
		cel.Variable("id", cel.StringType),
		cel.Variable("tags", cel.ListType(cel.StringType)),
		cel.Variable("metadata", values),
		cel.Variable("vars", values),
		cel.CrossTypeNumericComparisons(true),
	)
})

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	text    string
	program cel.Program
}

// Error says what is wrong with an expression.
type Error struct {
	// Offset is the byte of the expression where it is wrong.
	Offset  int
	Message string
	Hint    string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Compile checks an expression and the types in it. Its error is an [Error].
func Compile(text string) (*Program, error) {
	if len(text) > MaxLength {
		return nil, &Error{Message: "the expression is too long"}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Message: "the expression is empty", Hint: "write one: id == 'i-17'"}
	}
	env, err := environment()
	if err != nil {
		return nil, &Error{Message: err.Error()}
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, explained(text, issues)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &Error{Message: "the expression is no condition: its value is a " + t.String(), Hint: "compare it: id == 'i-17'"}
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, &Error{Message: err.Error()}
	}
	return &Program{text, program}, nil
}

// First is the issue that stands first in the text, without a hint: what follows it is often a consequence.
func First(text string, issues *cel.Issues) *Error {
	all := issues.Errors()
	if len(all) == 0 {
		return &Error{Message: issues.Err().Error()}
	}
	first := slices.MinFunc(all, func(a, b *cel.Error) int {
		if a.Location.Line() != b.Location.Line() {
			return a.Location.Line() - b.Location.Line()
		}
		return a.Location.Column() - b.Location.Column()
	})
	e := &Error{Offset: Offset(text, first.Location.Line(), first.Location.Column()), Message: first.Message}
	if message, _, ok := strings.Cut(first.Message, " expecting {"); ok {
		e.Message = strings.TrimSuffix(message, ",") // the list of what could stand there is longer than what it explains
	}
	return e
}

func explained(text string, issues *cel.Issues) error {
	e := First(text, issues)
	name := word(text[e.Offset:])
	if near, ok := strict.Nearest(name, Names); ok && !slices.Contains(Names, name) {
		e.Hint = "did you mean \"" + near + "\"?"
	} else {
		e.Hint = "an expression speaks of id, tags, metadata and vars: id == 'i-17' && 'urgent' in tags"
	}
	return e
}

// Offset is the byte of a line, from 1, and a column in characters, from 0, as CEL counts them.
func Offset(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	for ; column > 0 && at < len(text); column-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// word is the name that a text begins with.
func word(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// String is the expression as it was written.
func (p *Program) String() string { return p.text }

// Subject is what an expression looks at. Metadata and Vars are mappings or zero nodes.
type Subject struct {
	ID             string
	Tags           []string
	Metadata, Vars strict.Node
}

// ResolveName gives CEL the value of a name, which is made only where the expression asks for it.
func (s *Subject) ResolveName(name string) (any, bool) {
	switch name {
	case "id":
		return s.ID, true
	case "tags":
		return s.Tags, true
	case "metadata":
		return values(s.Metadata), true
	case "vars":
		return values(s.Vars), true
	}
	return nil, false
}

// Parent implements the interface of CEL: there is nothing behind the names.
func (*Subject) Parent() cel.Activation { return nil }

func values(n strict.Node) any {
	if m, ok := n.Any().(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

var errNoCondition = errors.New("its value is neither true nor false")

// Holds evaluates a condition. An error says why it has no value.
func Holds(p cel.Program, names any) (bool, error) {
	value, _, err := p.Eval(names)
	if err != nil {
		return false, err
	}
	met, ok := value.(types.Bool)
	if !ok {
		return false, errNoCondition
	}
	return bool(met), nil
}

// Match reports whether the subject is met. Where it is not because the expression cannot be evaluated for it, the error says why; it is a reason to show, not a failure.
func (p *Program) Match(s *Subject) (bool, error) {
	return Holds(p.program, s)
}
