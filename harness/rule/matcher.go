package rule

import (
	"slices"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/score"
)

// named is a tool that a rule names, and where.
type named struct {
	tool string
	pos  failure.Position
}

// pattern says which calls, or which results of calls, are meant.
type pattern struct {
	tools    []string
	args     score.Arguments
	hasArgs  bool
	executed *bool
	isError  *bool
}

// patternKeys are the keys of a call that a rule describes.
type patternKeys struct {
	Tool     strict.Node `yaml:"tool,required" schema:"rule_tools" doc:"the tool's name, or several of which any is meant"`
	Args     strict.Node `yaml:"args" schema:"values" doc:"what the arguments must have, as in the check tool_calls"`
	Executed *bool       `yaml:"executed" doc:"only calls that ran (true), or that did not (false)"`
	Error    *bool       `yaml:"error" doc:"only calls whose result is an error (true), or is none (false)"`
}

// patternOf reads a tool's name, a list of names and patterns, or a mapping.
func patternsOf(n strict.Node, r *Rule, p *strict.Problems) []pattern {
	switch n.Kind() {
	case strict.String:
		return []pattern{{tools: r.tools(n, p)}}
	case strict.Mapping:
		return []pattern{patternOf(n, r, p)}
	case strict.Sequence:
		if n.Len() == 0 {
			p.Add(n.Pos(), "name a tool: [exec]", "the list is empty")
		}
		var list []pattern
		for i, entry := range n.Items() {
			switch entry.Kind() {
			case strict.String:
				list = append(list, pattern{tools: r.tools(entry, p.At(i))})
			case strict.Mapping:
				list = append(list, patternOf(entry, r, p.At(i)))
			default:
				p.At(i).WrongType(entry, "the name of a tool, or {tool: exec, args: ...}")
			}
		}
		return list
	}
	p.WrongType(n, "the name of a tool, a list of them, or {tool: exec, args: ...}")
	return nil
}

func patternOf(n strict.Node, r *Rule, p *strict.Problems) pattern {
	var keys patternKeys
	strict.Decode(n, &keys, p)
	v := pattern{executed: keys.Executed, isError: keys.Error}
	if !keys.Tool.IsZero() {
		v.tools = r.tools(keys.Tool, p.Key("tool"))
	}
	if !keys.Args.IsZero() {
		v.hasArgs = true
		if keys.Args.Kind() != strict.Mapping {
			p.Key("args").WrongType(keys.Args, "a mapping")
			return v
		}
		v.args = score.CompileArguments(keys.Args, p.Key("args"))
	}
	return v
}

// tools reads one name or a list of names.
func (r *Rule) tools(n strict.Node, p *strict.Problems) []string {
	var names []string
	add := func(n strict.Node, p *strict.Problems) {
		switch {
		case n.Kind() != strict.String:
			p.WrongType(n, "the name of a tool")
		case n.Text() == "":
			p.Add(n.Pos(), "name a tool", "the name is empty")
		default:
			names = append(names, n.Text())
			r.names = append(r.names, named{n.Text(), n.Pos()})
		}
	}
	if n.Kind() != strict.Sequence {
		add(n, p)
		return names
	}
	if n.Len() == 0 {
		p.Add(n.Pos(), "name a tool", "the list is empty")
	}
	for i, entry := range n.Items() {
		add(entry, p.At(i))
	}
	return names
}

func (m *pattern) match(c *call) bool {
	if !slices.Contains(m.tools, c.tool) {
		return false
	}
	if m.executed != nil && *m.executed != c.executed() {
		return false
	}
	if m.isError != nil && (c.result == nil || *m.isError != c.result.isError) {
		return false
	}
	return !m.hasArgs || m.args.Match(arguments(c.input))
}

func anyMatch(list []pattern, c *call) bool {
	for i := range list {
		if list[i].match(c) {
			return true
		}
	}
	return false
}

// arguments reads the arguments of a call; the zero node where they are malformed.
func arguments(input conversation.JSON) strict.Node {
	if input == "" {
		input = "{}"
	}
	n, err := strict.ParseJSON("", 1, []byte(input))
	if err != nil {
		return strict.Node{}
	}
	return n
}
