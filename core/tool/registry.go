package tool

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/echoeval/echoeval/core/conversation"
)

// Reserved are the names that no tool may have: the first two are kept for agents that work together and have no code, the others belong to the skills.
var Reserved = []string{"agents_list", "agents_route", "load_skill", "unload_skill"}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Warning tells of something that was left out or put right.
type Warning struct {
	Code string // "duplicate-tool"
	Text string
}

// Registry holds the tools of an agent in the order in which they were given. It does not change after it was made and is safe for concurrent use.
type Registry struct {
	entries []entry
	index   map[string]int
}

type entry struct {
	tool   Tool
	spec   Spec
	schema *Schema
}

// NewRegistry checks every tool's name and schema and returns all errors at once, joined. Of tools with the same name the first is kept, with a warning.
func NewRegistry(tools ...Tool) (*Registry, []Warning, error) {
	r := &Registry{entries: make([]entry, 0, len(tools)), index: make(map[string]int, len(tools))}
	var warnings []Warning
	var errs []error
	for i, t := range tools {
		if t == nil {
			errs = append(errs, fmt.Errorf("tool %d is nil", i+1))
			continue
		}
		spec := t.Spec()
		switch {
		case !validName.MatchString(spec.Name):
			errs = append(errs, fmt.Errorf("tool %d: the name %q is not allowed; a name is 1 to 64 of A-Z a-z 0-9 _ and -", i+1, spec.Name))
			continue
		case slices.Contains(Reserved, spec.Name):
			errs = append(errs, fmt.Errorf("tool %s: the name is reserved", spec.Name))
			continue
		}
		if _, ok := r.index[spec.Name]; ok {
			warnings = append(warnings, Warning{Code: "duplicate-tool", Text: fmt.Sprintf("tool %s stands in the list a second time, at place %d; the first is kept", spec.Name, i+1)})
			continue
		}
		schema, err := CompileSchema(spec.Parameters)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", spec.Name, err))
			continue
		}
		r.index[spec.Name] = len(r.entries)
		r.entries = append(r.entries, entry{tool: t, spec: spec, schema: schema})
	}
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	return r, warnings, nil
}

// Len is the number of tools.
func (r *Registry) Len() int { return len(r.entries) }

// All iterates over the tools in order.
func (r *Registry) All() iter.Seq2[Spec, Tool] {
	return func(yield func(Spec, Tool) bool) {
		for _, e := range r.entries {
			if !yield(e.spec, e.tool) {
				return
			}
		}
	}
}

// Specs returns the descriptions of the tools in order.
func (r *Registry) Specs() []Spec {
	specs := make([]Spec, len(r.entries))
	for i, e := range r.entries {
		specs[i] = e.spec
	}
	return specs
}

// Lookup returns the tool of exactly this name.
func (r *Registry) Lookup(name string) (Tool, Spec, bool) {
	i, ok := r.index[name]
	if !ok {
		return nil, Spec{}, false
	}
	return r.entries[i].tool, r.entries[i].spec, true
}

// Select returns a registry of the tools that keep wants, in the same order.
func (r *Registry) Select(keep func(Spec) bool) *Registry {
	out := &Registry{index: map[string]int{}}
	for _, e := range r.entries {
		if keep(e.spec) {
			out.index[e.spec.Name] = len(out.entries)
			out.entries = append(out.entries, e)
		}
	}
	return out
}

// Validate checks arguments against the schema of the tool of this name; see [Schema.Validate]. An unknown tool is an error with the text of [Registry.Unknown].
func (r *Registry) Validate(name string, arguments conversation.JSON) error {
	i, ok := r.index[name]
	if !ok {
		return errors.New(r.Unknown(name))
	}
	return r.entries[i].schema.Validate(arguments)
}

// Unknown is what a model is told that has called a tool which is not there. It suggests the nearest name and lists all of them.
func (r *Registry) Unknown(name string) string {
	names := make([]string, len(r.entries))
	for i, e := range r.entries {
		names[i] = e.spec.Name
	}
	slices.Sort(names)
	var b strings.Builder
	if slices.Contains(Reserved, name) {
		fmt.Fprintf(&b, "tool %q is reserved and not available; do not call it again", name)
	} else {
		fmt.Fprintf(&b, "there is no tool %s; do not call it again", quoteShort(name))
		if nearest, ok := Nearest(name, names); ok {
			fmt.Fprintf(&b, "; did you mean %s?", nearest)
		}
	}
	if len(names) == 0 {
		return b.String() + " (no tools are available)"
	}
	return b.String() + " (available: " + strings.Join(names, ", ") + ")"
}

// Nearest returns the name that differs least from a misspelt one, if any comes close: at most a third of its letters wrong, or two, upper and lower case and - and _ being the same. Of equally near names the first in order counts.
func Nearest(name string, names []string) (string, bool) {
	fold := strings.NewReplacer("-", "_", " ", "_", ".", "_")
	key := fold.Replace(strings.ToLower(short(name)))
	best, nearest := max(2, len(key)/3)+1, ""
	for _, candidate := range slices.Sorted(slices.Values(names)) {
		if d := levenshtein.ComputeDistance(key, fold.Replace(strings.ToLower(candidate))); d < best {
			best, nearest = d, candidate
		}
	}
	return nearest, nearest != ""
}
