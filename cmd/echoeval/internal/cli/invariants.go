package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/rule"
	"github.com/echoeval/echoeval/reports/escape"
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
	var libraries []string
	cmd := &cobra.Command{
		Use: "ls", Short: "List the invariants; a star marks those that apply unless dropped", Args: between(0, 0, "no arguments"),
		Example: "  echoeval invariants ls --rules evals/shared/safety.yaml",
		RunE: func(*cobra.Command, []string) error {
			rules, err := rulesOf(s, libraries)
			if err != nil {
				return err
			}
			if !asJSON {
				text := invariant.List()
				width := 0
				for _, r := range rules {
					width = max(width, len(r.Name))
				}
				for _, r := range rules {
					text += fmt.Sprintf("  %-*s  %-5s  %-7s  %s\n", width, r.Name, r.Severity, r.Blame, escape.Line(r.Statement))
				}
				_, err := fmt.Fprint(s.Stdout, text)
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
			for _, r := range rules {
				list = append(list, listedInvariant{Name: r.Name, Severity: string(r.Severity), Blame: r.Blame, Statement: r.Statement, Params: []invariantParam{}})
			}
			return printJSON(s, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	rulesFlag(cmd, &libraries)
	return cmd
}

func rulesFlag(cmd *cobra.Command, libraries *[]string) {
	cmd.Flags().StringArrayVar(libraries, "rules", nil, "a library whose rules are listed too (repeat)")
}

// rulesOf are the rules of libraries, in the order of the libraries and of their names.
func rulesOf(s *State, libraries []string) ([]*rule.Rule, error) {
	var rules []*rule.Rule
	var errs []error
	for _, library := range libraries {
		list, err := dataset.LibraryInvariants(s.path(library), datasetOptions(s))
		errs = append(errs, err)
		for _, v := range list {
			if v.Rule != nil {
				rules = append(rules, v.Rule)
			}
		}
	}
	return rules, errors.Join(errs...)
}

// explainRule says what is known of a rule.
func explainRule(r *rule.Rule) string {
	text := fmt.Sprintf("%s: a rule of the form %s, severity %s, blames the %s\n\n  %s\n\n", r.Name, r.Form, r.Severity, r.Blame, escape.Line(r.Statement))
	if r.Why != "" {
		text += fmt.Sprintf("  why: %s\n", escape.Line(r.Why))
	}
	if tools := r.Tools(); len(tools) > 0 {
		text += fmt.Sprintf("  tools that it names: %s\n", escape.Line(strings.Join(tools, ", ")))
	}
	return text + fmt.Sprintf("  at %s:\n    %s\n", escape.Line(r.Pos.String()), escape.Line(r.Node.JSON()))
}

func invariantNames() []string {
	var names []string
	for _, v := range invariant.Catalogue() {
		names = append(names, v.Name)
	}
	return names
}

func newInvariantsExplain(s *State) *cobra.Command {
	var libraries []string
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Say what an invariant looks at, with a trace that keeps it and one that breaks it", Args: between(1, 1, "the name of an invariant"),
		Example: "  echoeval invariants explain tool-call-pairing",
		RunE: func(_ *cobra.Command, args []string) error {
			rules, err := rulesOf(s, libraries)
			if err != nil {
				return err
			}
			text, ok := invariant.Explain(args[0])
			names := invariantNames()
			for _, r := range rules {
				names = append(names, r.Name)
				if r.Name == args[0] {
					text, ok = explainRule(r), true
				}
			}
			if !ok {
				return failure.WithHint(failure.New(failure.Input, "unknown invariant %q", args[0]), "%s", strict.Suggest(args[0], names))
			}
			_, err = fmt.Fprint(s.Stdout, text)
			return unwritable(err)
		},
	}
	rulesFlag(cmd, &libraries)
	return cmd
}
