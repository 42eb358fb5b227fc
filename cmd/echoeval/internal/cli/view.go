package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/localhost"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/view"
)

type viewOptions struct{ listen, addressFile string }

func newView(s *State) *cobra.Command {
	var o viewOptions
	cmd := &cobra.Command{
		Use: "view [DIR]", Short: "Serve a local page over all runs", GroupID: "look", Args: between(0, 1, "a folder of runs"),
		Long: "Serve a page over the runs of the project, or of the folder DIR: of each dataset the trend of pass rate, score, cost and latency, and of each run its html report.\n\n" +
			"It listens on a loopback address and refuses requests that came by another name. It changes nothing and asks for nothing from elsewhere.",
		Example: "  echoeval view\n  echoeval view eval-runs --listen 127.0.0.1:8080",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := runsFolder(s, "")
			if len(args) == 1 {
				dir = s.path(args[0])
			}
			return runView(cmd.Context(), s, dir, o)
		},
	}
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "the loopback address to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&o.addressFile, "address-file", "", "write the address to this file once the server listens")
	return cmd
}

func runView(ctx context.Context, s *State, dir string, o viewOptions) error {
	switch {
	case !isFolder(dir):
		return usage("run something first: echoeval run; or name the folder that --out was given", "there is no folder of runs %s", s.show(dir))
	case isRunFolder(dir):
		return usage("echoeval view "+quote(s.show(filepath.Dir(dir))), "%s is one run, not a folder of runs", s.show(dir))
	}
	listener, err := s.listen(o.listen, o.addressFile)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.Stderr, "the runs in %s on http://%s/ (interrupt to stop)\n", s.show(dir), listener.Addr()); err != nil {
		return errors.Join(unwritable(err), listener.Close())
	}
	ctx, stop := s.interruptible(ctx)
	defer stop()
	if err := localhost.Serve(ctx, listener, view.Handler(dir)); err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	return nil
}

func isRunFolder(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, results.ManifestFile))
	return err == nil && info.Mode().IsRegular()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
