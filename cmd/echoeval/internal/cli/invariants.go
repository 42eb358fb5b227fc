package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/invariant"
)

func newInvariants(s *State) *cobra.Command {
	return group("invariants", "What must be true of every trace", "more", newInvariantsLs(s), newInvariantsExplain(s))
}

// listedInvariant is one invariant in JSON.
type listedInvariant struct {
	Name      string           `json:"name"`
	Severity  string           `json:"severity"`
	Blame     string           `json:"blame"`
	Standard  bool             `json:"standard"`
	Needs     *string          `json:"needs"`
	Statement string           `json:"statement"`
	Notes     string           `json:"notes"`
	Params    []invariantParam `json:"params"`
}

type invariantParam struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func newInvariantsLs(s *State) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the invariants; a star marks those that apply unless dropped", Args: between(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				_, err := fmt.Fprint(s.Stdout, invariant.List())
				return unwritable(err)
			}
			list := []listedInvariant{}
			for _, v := range invariant.Catalogue() {
				l := listedInvariant{Name: v.Name, Severity: string(v.Severity), Blame: string(v.Blame), Standard: v.Standard, Statement: v.Statement, Notes: v.Notes, Params: []invariantParam{}}
				if v.Needs != "" {
					needs := string(v.Needs)
					l.Needs = &needs
				}
				for _, p := range v.Params {
					l.Params = append(l.Params, invariantParam{p.Name, p.Doc})
				}
				list = append(list, l)
			}
			return printJSON(s, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func invariantNames() []string {
	var names []string
	for _, v := range invariant.Catalogue() {
		names = append(names, v.Name)
	}
	return names
}

func newInvariantsExplain(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "explain NAME", Short: "Say what an invariant looks at, with a trace that keeps it and one that breaks it", Args: between(1, 1, "the name of an invariant"),
		Example: "  echoeval invariants explain tool-call-pairing",
		RunE: func(_ *cobra.Command, args []string) error {
			text, ok := invariant.Explain(args[0])
			if !ok {
				return failure.WithHint(failure.New(failure.Input, "unknown invariant %q", args[0]), "%s", strict.Suggest(args[0], invariantNames()))
			}
			_, err := fmt.Fprint(s.Stdout, text)
			return unwritable(err)
		},
	}
}
