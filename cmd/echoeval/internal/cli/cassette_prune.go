package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/reports/escape"
)

func newCassettePrune(s *State) *cobra.Command {
	o := &runOptions{mode: "replay", traces: "all", quiet: true}
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use: "prune DATASET...", Short: "Delete the cassettes of items, providers and repeats that are no more", Args: atLeast(1, "a dataset"),
		Long: "Delete the cassettes that belong to no item, provider or repeat of a dataset any more, and name each. Recordings of providers and repeats that only a command line names belong to nobody unless --provider and --repeat name them here too. " +
			"Only files that are cassettes of this dataset are deleted: what cannot be read, what lies behind a symbolic link, and what another dataset has recorded is named and stays.",
		Example: "  echoeval cassette prune datasets/quickstart.yaml --dry-run",
		RunE: func(_ *cobra.Command, files []string) error {
			for _, file := range files {
				p, err := plan(s, o, file)
				if err != nil {
					return err
				}
				if err := prune(s, p, o.cassettes, dryRun, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cassettesFlag(cmd, &o.cassettes)
	cmd.Flags().StringArrayVar(&o.providers, "provider", nil, "the cassettes of this provider belong to somebody too: an id of the dataset or VENDOR:MODEL (repeat)")
	cmd.Flags().StringVar(&o.repeat, "repeat", "", "cassettes up to this repeat belong to somebody too: N, or MIN..MAX as in the run")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "name them and delete nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// pruned is what became of one orphan.
type pruned struct {
	File   string `json:"file"`
	State  string `json:"state"` // deleted, would be deleted, kept
	Reason string `json:"reason"`
}

func prune(s *State, p *planned, folder string, dryRun, asJSON bool) error {
	orphans, err := p.experiment.Orphans()
	if err != nil || len(orphans) == 0 {
		if err == nil && !asJSON {
			_, err = fmt.Fprintf(s.Stdout, "%s: no orphans\n", escape.Line(p.dataset.Name))
			err = unwritable(err)
		}
		return err
	}
	// A root opens nothing outside of its folder, whatever links lie within.
	root, err := os.OpenRoot(filepath.Join(p.cassettes(s, folder), p.dataset.Name))
	if err != nil {
		return failure.New(failure.Internal, "the cassettes of %s cannot be opened: %s", p.dataset.Name, failure.Reason(err))
	}
	defer root.Close()
	deleted := 0
	var failed error
	for _, file := range orphans {
		one := pruned{File: p.dataset.Name + "/" + file, State: "kept", Reason: keepReason(root, p.dataset.Name, file)}
		switch {
		case one.Reason != "":
		case dryRun:
			one.State = "would be deleted"
		default:
			if err := root.Remove(filepath.FromSlash(file)); err != nil {
				one.Reason = failure.Reason(err)
				failed = failure.New(failure.Internal, "%s cannot be deleted: %s", one.File, one.Reason)
				break
			}
			one.State = "deleted"
			deleted++
			removeEmpty(root, path.Dir(file))
		}
		if asJSON {
			err = printJSON(s, one)
		} else {
			line := one.State + ": " + one.File
			if one.Reason != "" {
				line += " (" + one.Reason + ")"
			}
			_, err = fmt.Fprintln(s.Stdout, escape.Line(line))
			err = unwritable(err)
		}
		if err != nil {
			return err
		}
	}
	if deleted > 0 && !asJSON {
		fmt.Fprintf(s.Stdout, "%s: %s deleted\n", escape.Line(p.dataset.Name), count(deleted, "cassette"))
	}
	return failed
}

// keepReason says why an orphan is not deleted, "" where it may be.
func keepReason(root *os.Root, dataset, file string) string {
	info, err := root.Lstat(filepath.FromSlash(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is gone"
	case err != nil:
		return failure.Reason(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case !info.Mode().IsRegular():
		return "it is no file"
	}
	data, err := root.ReadFile(filepath.FromSlash(file))
	if err != nil {
		return failure.Reason(err)
	}
	f, err := cassette.Decode(data, file)
	switch {
	case errors.As(err, new(*cassette.ElsewhereError)):
		return failure.Message(err)
	case err != nil:
		return "it is no cassette"
	case f.Header.Dataset != dataset:
		return "it was recorded for dataset " + f.Header.Dataset
	}
	return ""
}

// removeEmpty removes a provider's folder that has nothing left in it.
func removeEmpty(root *os.Root, dir string) {
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if root.Remove(filepath.FromSlash(dir)) != nil {
			return
		}
	}
}
