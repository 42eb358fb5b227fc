package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/cassette"
)

// Version is set when a release is built; otherwise it comes from the build information.
var Version = ""

func version() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

func newVersion(s *State) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version and the formats it writes", GroupID: "more", Args: between(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				_, err := fmt.Fprintf(s.Stdout, "echoeval %s (%s)\n", version(), runtime.Version())
				return unwritable(err)
			}
			return printJSON(s, struct {
				Version string         `json:"version"`
				Go      string         `json:"go"`
				Formats map[string]int `json:"formats"`
			}{version(), runtime.Version(), map[string]int{"dataset": 1, "results": eval.Version, "trace": trace.Version, "cassette": cassette.Format, "canonical_form": cassette.Canon}})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
