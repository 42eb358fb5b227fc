package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
)

// Embedded is the state of a command that runs within another program: in its folder and environment, without a terminal. An entry in interrupts ends it as Ctrl-C would; the signals of the process stay the program's own.
func Embedded(stdout, stderr io.Writer, interrupts <-chan os.Signal) (*State, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, failure.New(failure.Internal, "the current folder is unknown: %s", failure.Reason(err))
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	hostname, _ := os.Hostname()
	return &State{
		Environ: os.Environ(), Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Dir: dir, Hostname: hostname,
		Clock: clock.Wall{}, Interrupts: interrupts, LetThrough: func() {},
	}, nil
}

// Listing is what a replay would judge.
type Listing struct {
	Dataset string
	// Root is the absolute folder of the project, which the places of items are relative to.
	Root      string
	Providers []string
	// Items are the selected ones, in the order of the dataset.
	Items []Listed
}

// Listed is what is known of an item before it runs.
type Listed struct {
	ID         string
	Pos        failure.Position
	Tags       []string
	Skip       string // a reason, "" for none
	PassIf     *eval.Bound
	Quarantine *dataset.Quarantine
}

// List plans `echoeval replay FILE FLAGS...` and runs nothing.
func List(s *State, file string, flags []string) (*Listing, error) {
	o := &runOptions{}
	set := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	o.flags(set, replayKind)
	if err := set.Parse(flags); err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "%s", err), "flags are those of echoeval replay")
	}
	if set.NArg() > 0 {
		return nil, failure.New(failure.Input, "%q is no flag", set.Arg(0))
	}
	if o.resume != "" || o.dryRun {
		return nil, failure.New(failure.Input, "--resume and --dry-run are for the command line")
	}
	if err := positive(set); err != nil {
		return nil, err
	}
	o.mode, o.quiet = replayKind.mode, true
	p, err := plan(s, o, file)
	if err != nil {
		return nil, err
	}
	out := &Listing{Dataset: p.dataset.Name, Root: p.dataset.Root}
	for _, c := range p.columns {
		out.Providers = append(out.Providers, c.Provider.ID)
	}
	for item, err := range p.experiment.Selected() {
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, Listed{item.ID, item.Pos, item.Tags, item.Skip, item.PassIf, item.Quarantine})
	}
	return out, nil
}
