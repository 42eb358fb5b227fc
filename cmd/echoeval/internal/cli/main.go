package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

var errInterrupted = failure.New(failure.Interrupted, "interrupted")

// exit is an exit code that a command reached by itself and has explained already.
type exit struct{ code failure.Code }

func (e exit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// Main runs the command and returns its exit code.
func Main(s *State) int {
	out := &sink{w: s.Stdout}
	s.Stdout = out
	root := newRoot(s)
	root.SetArgs(s.Args)
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = unwritable(out.err) // the help of a command drops the error of its writer
	}
	if err == nil {
		return int(failure.OK)
	}
	var e exit
	if errors.As(err, &e) {
		return int(e.code)
	}
	s.complain(err)
	if code := failure.CodeOf(err); code != failure.OK {
		return int(code)
	}
	return int(failure.Internal)
}

// complain shows an error with its hints. A value of the environment that looks like a secret is not shown, wherever the error has it from.
func (s *State) complain(err error) {
	detector := secret.Detector{Values: secret.FromEnviron(s.Environ)}
	fmt.Fprint(s.Stderr, escape.Block(detector.Redact(failure.Render(err))))
}

// usage is an error of the command line with the next thing to type.
func usage(hint, format string, args ...any) error {
	return failure.WithHint(failure.New(failure.Input, format, args...), "%s", hint)
}

// unwritable is the error of a stdout that refuses what is written to it; nil stays nil.
func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return failure.New(failure.Internal, "the output cannot be written: %s", failure.Reason(err))
}

// printSummary writes a summary as one line of JSON.
func printSummary(s *State, summary *results.Summary) error {
	data, err := summary.AppendJSON(nil)
	if err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	_, err = s.Stdout.Write(append(escape.JSON(data), '\n'))
	return unwritable(err)
}

// printJSON writes one JSON value and a line end to stdout.
func printJSON(s *State, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	_, err = s.Stdout.Write(append(escape.JSON(data), '\n'))
	return unwritable(err)
}

// sink remembers the first error of a writer.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

func newRoot(s *State) *cobra.Command {
	root := &cobra.Command{
		Use:                        "echoeval",
		SuggestionsMinimumDistance: 2,
		Short:                      "Evaluate tool-calling agents: run, record, replay, check, report",
		SilenceUsage:               true,
		SilenceErrors:              true,
		DisableAutoGenTag:          true,
		Args:                       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// The flags of a command that there is not are read as those of the one above it.
		words := slices.DeleteFunc(slices.Clone(s.Args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
		if depth := strings.Count(cmd.CommandPath(), " "); cmd.HasSubCommands() && len(words) > depth {
			return unknownCommand(cmd, words[depth])
		}
		text := err.Error()
		if i := strings.Index(text, ": strconv."); i >= 0 {
			text = text[:i] // what a parser of Go is called is of no use to who typed
		}
		return failure.WithHint(failure.New(failure.Input, "%s", text), "%s --help", cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "look", Title: "Look at a finished run:"},
		&cobra.Group{ID: "files", Title: "Files:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	root.AddCommand(
		newRun(s, runKind), newRun(s, recordKind), newRun(s, replayKind), newMutate(s), newMerge(s),
		newShow(s), newReport(s), newCompare(s), newCheck(s), newView(s), newNoise(s), newGold(s),
		newValidate(s), newSchema(s), newCassette(s), newBaseline(s),
		newInit(s), newImport(s),
		newInvariants(s), newProviders(s),
		newEmulate(s), newDoctor(s), newVersion(s),
	)
	root.InitDefaultCompletionCmd()
	refuseUnknownShell(root)
	completeAll(s, root)
	return root
}

func unknownCommand(cmd *cobra.Command, name string) error {
	err := failure.New(failure.Input, "unknown command %q", name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return failure.WithHint(err, "did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	return failure.WithHint(err, "%s --help", cmd.CommandPath())
}

// group is a command that only has commands below it.
func group(use, short, id string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, GroupID: id, SuggestionsMinimumDistance: 2, Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}}
	cmd.AddCommand(children...)
	return cmd
}

// atLeast asks for n arguments of a kind.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return failure.WithHint(failure.New(failure.Input, "%s: want %s", cmd.CommandPath(), what), "%s --help", cmd.CommandPath())
	}
}

// between asks for low to high arguments.
func between(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return failure.WithHint(failure.New(failure.Input, "%s: want %s", cmd.CommandPath(), what), "%s --help", cmd.CommandPath())
		}
		return nil
	}
}
