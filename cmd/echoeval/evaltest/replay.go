package evaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/cmd/echoeval/internal/cli"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/matchers"
	"github.com/echoeval/echoeval/harness/results"
)

// Run is a finished replay of one dataset.
type Run struct {
	// Summary is what reports and gates look at; its verdict bears the exit code of the command.
	Summary results.Summary
	// Lines are the results in their order: item, provider, repeat.
	Lines []eval.Result
	// Said is what the command wrote, results and complaints.
	Said string

	run  *results.Run
	temp string // removed by Close
}

// Replay replays a dataset, as `echoeval replay FILE FLAGS...` does in the folder of the test, and returns what came of it. The run lies in a temporary folder that [Run.Close] removes, unless a flag --out names one.
//
// A run whose gates fail is no error: its verdict says so. An error is whatever keeps the run from being made, such as a mistake in the dataset, with its place; or the end of ctx.
func Replay(ctx context.Context, file string, flags ...string) (*Run, error) {
	r := &Run{}
	out := ""
	for i, flag := range flags {
		if value, ok := strings.CutPrefix(flag, "--out="); ok {
			out = value
		} else if flag == "--out" && i+1 < len(flags) {
			out = flags[i+1]
		}
	}
	args := append([]string{"replay", file, "--quiet", "--no-color"}, flags...)
	if out == "" {
		temp, err := os.MkdirTemp("", "echoeval-")
		if err != nil {
			return nil, fmt.Errorf("no folder for the run of %s: %w", file, err)
		}
		r.temp, out = temp, temp
		args = append(args, "--out", out)
	}
	if err := r.replay(ctx, file, out, args); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Run) replay(ctx context.Context, file, out string, args []string) error {
	before, err := runsIn(out)
	if err != nil {
		return err
	}
	said, err := command(ctx, args)
	r.Said = said
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("the run of %s was ended: %w", file, cause)
	}
	if err != nil {
		return err
	}
	after, err := runsIn(out)
	if err != nil {
		return err
	}
	made := slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) })
	if len(made) != 1 {
		return fmt.Errorf("%s cannot be run:\n%s", file, strings.TrimSpace(said))
	}
	if r.run, err = results.Open(filepath.Join(out, made[0])); err != nil {
		return err
	}
	r.Summary = r.run.Summary
	for line, err := range r.run.Lines() {
		if err != nil {
			return err
		}
		r.Lines = append(r.Lines, line)
	}
	return nil
}

// runsIn lists the folders of runs; a folder that is not there has none.
func runsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the folder of the runs cannot be read: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// command runs the command and returns what it wrote. The end of ctx interrupts it.
func command(ctx context.Context, args []string) (string, error) {
	var said bytes.Buffer
	interrupts := make(chan os.Signal, 1)
	stop := context.AfterFunc(ctx, func() { interrupts <- os.Interrupt })
	defer stop()
	s, err := cli.Embedded(&said, &said, interrupts)
	if err != nil {
		return "", err
	}
	s.Args = args
	cli.Main(s)
	return said.String(), nil
}

// Close removes the run's temporary folder.
func (r *Run) Close() error {
	var errs []error
	if r.run != nil {
		errs = append(errs, r.run.Close())
	}
	if r.temp != "" {
		errs = append(errs, os.RemoveAll(r.temp))
	}
	return errors.Join(errs...)
}

// Outcome returns a line with its trace. The trace has no events where none was kept, as of an item that was skipped.
func (r *Run) Outcome(line eval.Result) (matchers.Outcome, error) {
	if line.Trace == nil {
		return matchers.Outcome{Result: line}, nil
	}
	t, ok, err := r.run.Trace(line)
	if err != nil {
		return matchers.Outcome{}, err
	}
	events := trace.Trace{}
	if ok {
		events = t.Events
	}
	return matchers.Outcome{Result: line, Trace: events}, nil
}

// Item returns the outcome of an item: its first repeat, on the provider of that id, or on the first one where none is named. An item or provider that the run does not have is an error that suggests the nearest.
func (r *Run) Item(id string, provider ...string) (matchers.Outcome, error) {
	if len(provider) > 1 {
		return matchers.Outcome{}, fmt.Errorf("item %q: name one provider at most", id)
	}
	var items, providers []string
	for _, line := range r.Lines {
		if line.Item != id {
			items = append(items, line.Item)
			continue
		}
		if len(provider) == 0 || line.Provider == provider[0] {
			return r.Outcome(line)
		}
		providers = append(providers, line.Provider)
	}
	if len(providers) > 0 {
		return matchers.Outcome{}, fmt.Errorf("item %q has no provider %q: %s", id, provider[0], strict.Suggest(provider[0], providers))
	}
	return matchers.Outcome{}, fmt.Errorf("the run has no item %q: %s", id, strict.Suggest(id, items))
}
