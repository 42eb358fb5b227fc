package score

import "github.com/echoeval/echoeval/core/strict"

// Arguments compares the arguments of tool calls with an expectation, by the matchers of the check tool_calls: the expected keys must be there, others may be.
type Arguments struct{ matcher matcher }

// CompileArguments reads an expectation, a mapping; what is wrong with it is added to p. The zero node expects nothing.
func CompileArguments(n strict.Node, p *strict.Problems) Arguments {
	if n.IsZero() {
		return Arguments{matcher: anything{}}
	}
	return Arguments{matcher: compileMatcher(n, false, at{Problems: p, pos: n.Pos(), env: &Env{}})}
}

// Match reports whether arguments keep the expectation.
func (a Arguments) Match(arguments strict.Node) bool {
	return a.matcher.holds(arguments)
}
