package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/reports/escape"
)

func newCassetteScrub(s *State) *cobra.Command {
	var values []string
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use: "scrub FILE...", Short: "Take secrets and named values out of cassettes", Args: atLeast(1, "a cassette file"),
		Long: "Replace what looks like a key, the values of the environment's secrets, and the values that --value names by placeholders, and say where. The files stay cassettes; each is replaced as a whole or not at all. " +
			"A value that --value gives the name that it has in tool_context is filled in again in a replay; anything else stays a placeholder, so that a recording whose requests held it may be stale now. What was committed stays in the history: a key that was there must be revoked.",
		Example: "  echoeval cassette scrub fixtures/cassettes/quickstart/*/*.yaml --value tenant_id=TENANT",
		RunE: func(_ *cobra.Command, files []string) error {
			redactions, err := scrubValues(s, values)
			if err != nil {
				return err
			}
			project, err := currentProject(s)
			if err != nil {
				return err
			}
			own := detectorOf(s, project)
			detector := &own
			var errs []error
			changed := 0
			for _, file := range files {
				found, err := scrub(s, file, detector, redactions, dryRun)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if len(found) > 0 {
					changed++
				}
				if err := printScrubbed(s, file, found, dryRun, asJSON); err != nil {
					return errors.Join(append(errs, err)...)
				}
			}
			if changed > 0 {
				fmt.Fprintln(s.Stderr, "hint: revoke keys that were committed; a replay tells which recordings are stale now")
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringArrayVar(&values, "value", nil, "NAME=ENV: replace the value of the environment variable ENV by the placeholder NAME (repeat)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be replaced and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// scrubValues reads --value. Values come from the environment, so that none stands on a command line.
func scrubValues(s *State, flags []string) ([]cassette.Redaction, error) {
	var out []cassette.Redaction
	for _, flag := range flags {
		name, variable, ok := strings.Cut(flag, "=")
		if !ok || name == "" || variable == "" {
			return nil, usage("--value tenant_id=TENANT takes the value of the environment variable TENANT", "--value %s: want NAME=ENV", flag)
		}
		value := s.Getenv(variable)
		if value == "" {
			return nil, usage("export "+variable+"=...", "--value %s: the environment variable %s is not set", flag, variable)
		}
		out = append(out, cassette.Redaction{Name: name, Value: value})
	}
	if _, err := cassette.NewRules(out); err != nil {
		return nil, failure.New(failure.Input, "--value: %w", err)
	}
	return out, nil
}

func scrub(s *State, file string, detector *secret.Detector, redactions []cassette.Redaction, dryRun bool) ([]cassette.Finding, error) {
	target := s.path(file)
	// A link keeps pointing where it points: what is replaced is the file behind it.
	if resolved, err := filepath.EvalSymlinks(target); err == nil {
		target = resolved
	}
	f, err := loadCassette(target, file)
	if err != nil {
		return nil, err
	}
	out, found, err := cassette.Scrub(f, detector, redactions)
	if err != nil {
		return nil, failure.WithHint(failure.At(failure.Position{File: file}, failure.Cassette, "not scrubbed: %w", err), "record the item anew without it, or delete the file")
	}
	if out == nil || dryRun {
		return found, nil
	}
	data, err := cassette.Encode(out)
	if err != nil {
		return nil, failure.At(failure.Position{File: file}, failure.Cassette, "%w", err)
	}
	if _, err := cassette.Decode(data, file); err != nil {
		return nil, failure.WithCode(err, failure.Internal)
	}
	perm := fs.FileMode(0o644)
	if info, err := os.Stat(target); err == nil {
		perm = info.Mode().Perm()
	}
	return found, cassette.Write(target, file, data, perm)
}

func printScrubbed(s *State, file string, found []cassette.Finding, dryRun, asJSON bool) error {
	places := []string{}
	for _, f := range found {
		places = append(places, f.String())
	}
	if asJSON {
		return printJSON(s, struct {
			File     string   `json:"file"`
			Replaced []string `json:"replaced"`
			Written  bool     `json:"written"`
		}{file, places, len(found) > 0 && !dryRun})
	}
	verb := "replaced"
	if dryRun {
		verb = "would be replaced"
	}
	var b strings.Builder
	if len(found) == 0 {
		fmt.Fprintf(&b, "%s: nothing to replace\n", escape.Line(file))
	}
	for _, place := range places {
		fmt.Fprintf(&b, "%s: %s: %s\n", escape.Line(file), verb, escape.Line(place))
	}
	_, err := fmt.Fprint(s.Stdout, b.String())
	return unwritable(err)
}
