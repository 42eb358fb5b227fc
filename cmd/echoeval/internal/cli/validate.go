package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/reports/escape"
)

func newValidate(s *State) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "validate FILE...", Short: "Check datasets, agents and emulator scripts; run nothing", GroupID: "files",
		Long:    "Check files of every kind and report all problems with file, line and column. Nothing is run and nothing is dialled. What a file is, its keys say.",
		Example: "  echoeval validate datasets/*.yaml datasets/agents/*.yaml",
		Args:    atLeast(1, "a file"),
		RunE: func(_ *cobra.Command, files []string) error {
			var errs []error
			var reports []validated
			for _, file := range files {
				kind, text, err := validateFile(s, file)
				reports = append(reports, validated{File: file, Kind: kind, OK: err == nil, Problems: problemsOf(err)})
				if err != nil {
					errs = append(errs, err)
				} else if !asJSON {
					if _, err := fmt.Fprintf(s.Stdout, "%s: %s\n", escape.Line(file), escape.Line(text)); err != nil {
						return unwritable(err)
					}
				}
			}
			err := errors.Join(errs...)
			if !asJSON {
				return err
			}
			if printErr := printJSON(s, reports); printErr != nil {
				return printErr
			}
			if err != nil {
				return exit{failure.CodeOf(err)}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

type validated struct {
	File     string    `json:"file"`
	Kind     string    `json:"kind"`
	OK       bool      `json:"ok"`
	Problems []problem `json:"problems"`
}

type problem struct {
	At      string   `json:"at"`
	Message string   `json:"message"`
	Hints   []string `json:"hints"`
}

func problemsOf(err error) []problem {
	out := []problem{}
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok { // only an outermost join is split
			for _, e := range joined.Unwrap() {
				walk(e)
			}
			return
		}
		pos, _ := failure.PositionOf(err)
		out = append(out, problem{At: pos.String(), Message: err.Error(), Hints: failure.Hints(err)})
	}
	walk(err)
	return out
}

// validateFile checks one file and says what it is.
func validateFile(s *State, file string) (kind, text string, err error) {
	data, err := os.ReadFile(s.path(file))
	if err != nil {
		return "unknown", "", failure.WithHint(failure.New(failure.Input, "%s cannot be read: %s", file, failure.Reason(err)), "check the path")
	}
	n, err := strict.Parse(file, data)
	if err != nil {
		return "unknown", "", err
	}
	has := func(key string) bool { return n.Kind() == strict.Mapping && !n.Get(key).IsZero() }
	switch {
	case has("items") || has("providers") || has("defaults"):
		text, err = validateDataset(s, file)
		return "dataset", text, err
	case has("conversations") || has("default"):
		script, err := emulator.Load(file, data)
		return "emulator script", fmt.Sprintf("an emulator script of %s", count(len(script.Conversations), "conversation")), err
	case has("task") || has("persona"):
		var p strict.Problems
		c := agent.Decode(n, &p)
		return "agent", fmt.Sprintf("agent %s", c.Name), p.Err()
	}
	return "unknown", "", failure.WithHint(failure.At(n.Pos(), failure.Input, "it is no dataset, no agent and no emulator script"), "a dataset has items, an agent a task, a script conversations")
}

func validateDataset(s *State, file string) (string, error) {
	p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true}, file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("dataset %s, %s on %s", p.dataset.Name, count(p.dataset.Count, "item"), count(len(p.experiment.Head().Providers), "provider")), nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
