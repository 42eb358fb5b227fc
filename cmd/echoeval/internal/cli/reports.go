package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/csv"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/github"
	"github.com/echoeval/echoeval/reports/html"
	jsonreport "github.com/echoeval/echoeval/reports/json"
	"github.com/echoeval/echoeval/reports/junit"
	"github.com/echoeval/echoeval/reports/markdown"
	"github.com/echoeval/echoeval/reports/terminal"
)

// reporters is the table of reports.
var reporters = []reports.Reporter{
	{Name: "terminal", Write: terminal.Write},
	{Name: "json", File: "report.json", Write: jsonreport.Write, Several: jsonreport.Several},
	{Name: "junit", File: "junit.xml", Write: junit.Write, Several: junit.Several},
	{Name: "markdown", File: "report.md", Write: markdown.Write, Several: markdown.Several},
	{Name: "csv", File: "results.csv", Write: csv.Write, Several: csv.Several},
	{Name: "html", File: "report.html", Write: html.Write, Several: html.Several},
	{Name: "github", File: "github.md", Write: github.Write, Several: github.Several},
}

func reportNames() []string {
	names := make([]string, len(reporters))
	for i, r := range reporters {
		names[i] = r.Name
	}
	return names
}

// writeReport writes FORMAT into the run's reports/ folder, or FORMAT=PATH to that path, and says where unless the run is quiet.
func (o *runOptions) writeReport(s *State, run *results.Run, flag string) error {
	name, path, given := strings.Cut(flag, "=")
	r, err := reports.Find(reporters, name)
	if err != nil {
		return err
	}
	switch {
	case given && path == "":
		return usage("--format junit=out/junit.xml", "--format %s: the path is empty", flag)
	case given:
		path = s.path(path)
	case r.File == "":
		return r.Write(s.Stdout, run, reports.Options{Width: s.tableWidth(), Color: s.color(false)})
	default:
		path = filepath.Join(run.Dir, "reports", r.File)
	}
	if err := reportTo(s, []*results.Run{run}, r, path); err != nil {
		return err
	}
	o.wrote(s, name, path)
	return nil
}

// wrote says where a report went.
func (o *runOptions) wrote(s *State, format, path string) {
	if !o.quiet {
		fmt.Fprintf(s.Stderr, "report %s: %s\n", format, escape.Line(s.show(path)))
	}
}

// reportTo writes runs, of which there are several only for a kind that takes them, to a file.
func reportTo(s *State, runs []*results.Run, r reports.Reporter, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return failure.New(failure.Internal, "the folder of %s cannot be made: %s", s.show(path), failure.Reason(err))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return failure.New(failure.Internal, "%s cannot be written: %s", s.show(path), failure.Reason(err))
	}
	out := &sink{w: f}
	opts := reports.Options{Width: 120}
	if len(runs) > 1 {
		err = r.Several(out, runs, opts)
	} else {
		err = r.Write(out, runs[0], opts)
	}
	if err != nil && out.err == nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name())) // the run cannot be read
	}
	err = errors.Join(out.err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return failure.New(failure.Internal, "%s cannot be written: %s", s.show(path), failure.Reason(errors.Join(err, os.Remove(f.Name()))))
	}
	return nil
}

// runsFolder is where the runs of the current project lie.
func runsFolder(s *State, out string) string {
	if out != "" {
		return s.path(out)
	}
	return filepath.Join(dataset.Root(filepath.Join(s.Dir, "dataset.yaml"), s.Dir), ".echoeval", "runs")
}

func resolveRun(s *State, out, name string) (string, error) {
	switch info, err := os.Stat(s.path(name)); {
	case err == nil && info.IsDir():
		return results.Resolve(filepath.Dir(s.path(name)), s.path(name))
	case err == nil && filepath.Base(name) != results.LatestName:
		return "", usage("name its folder, its id, latest, or a dataset by its name: echoeval show latest", "%s is a file, and no run", name)
	}
	return results.Resolve(runsFolder(s, out), name)
}

// openRun opens a run by folder, id, latest, or dataset.
func openRun(s *State, out, name string) (*results.Run, error) {
	dir, err := resolveRun(s, out, name)
	if err != nil {
		return nil, err
	}
	return results.Open(dir)
}

func newShow(s *State) *cobra.Command {
	var provider, out string
	var all, noColor bool
	cmd := &cobra.Command{
		Use: "show RUN [ITEM]", Short: "Show the failures of a run, or one item whole", GroupID: "look", Args: between(1, 2, "a run and perhaps an item"),
		Long:    "Show what failed in a run, or of one item the transcript with paired calls, the checks with their evidence, and the invariants. RUN is a folder, a run's id, `latest`, or the name of a dataset.",
		Example: "  echoeval show latest\n  echoeval show quickstart mends-a-typo --provider openai:gpt-4o-mini",
		RunE: func(_ *cobra.Command, args []string) error {
			run, err := openRun(s, out, args[0])
			if err != nil {
				return err
			}
			defer run.Close()
			opts := reports.Options{Width: s.tableWidth(), Color: s.color(noColor), All: all}
			if len(args) == 1 && provider != "" {
				return usage("echoeval show "+args[0]+" ITEM --provider "+quote(provider), "--provider wants an item")
			}
			if len(args) == 1 {
				return terminal.Write(s.Stdout, run, opts)
			}
			return terminal.Show(s.Stdout, run, args[1], provider, opts)
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "only this column of the item")
	cmd.Flags().StringVar(&out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	cmd.Flags().BoolVar(&all, "all", false, "show everything, cut nothing")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "no colours")
	return cmd
}

func newReport(s *State) *cobra.Command {
	var formats []string
	var folder, out string
	cmd := &cobra.Command{
		Use: "report RUN...", Short: "Write reports from finished runs", GroupID: "look", Args: atLeast(1, "a run"),
		Long:    "Write reports from finished runs, without running anything again. They go into the folder of -o, several runs each into one of its own, or into the run's reports/ folder.",
		Example: "  echoeval report latest --format junit,json -o out",
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			var finished []finishedRun
			seen := map[string]bool{}
			for _, name := range args {
				dir, err := resolveRun(s, out, name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if !seen[dir] {
					seen[dir] = true
					errs = append(errs, writeReports(s, dir, formats, folder, len(args) > 1))
					finished = append(finished, finishedRun{dir: dir})
				}
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return publish(s, s.Stdout, formats, finished)
		},
	}
	cmd.Flags().StringSliceVar(&formats, "format", []string{"terminal"}, "formats, separated by commas: "+strings.Join(reportNames(), ", "))
	cmd.Flags().StringVarP(&folder, "output", "o", "", "folder to write to")
	cmd.Flags().StringVar(&out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	return cmd
}

func writeReports(s *State, dir string, formats []string, folder string, several bool) error {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	for _, name := range formats {
		r, err := reports.Find(reporters, name)
		if err != nil {
			return err
		}
		if r.File == "" {
			if err := r.Write(s.Stdout, run, reports.Options{Width: s.tableWidth(), Color: s.color(false)}); err != nil {
				return err
			}
			continue
		}
		path := filepath.Join(dir, "reports", r.File)
		if folder != "" {
			path = filepath.Join(s.path(folder), r.File)
			if several {
				path = filepath.Join(s.path(folder), filepath.Base(dir), r.File)
			}
		}
		if err := reportTo(s, []*results.Run{run}, r, path); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.Stdout, s.show(path)); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

// writeCauses writes what made cassettes stale, each cause once.
func writeCauses(w io.Writer, run *results.Run) error {
	var causes results.Causes
	for line, err := range run.Lines() {
		if err != nil {
			return err
		}
		causes.Add(&line)
	}
	for _, c := range causes.List() {
		if _, err := fmt.Fprintln(w, describeCause(c)); err != nil {
			return err
		}
	}
	return nil
}

func describeCause(c results.Cause) string {
	cause := c.Cause
	if cause == eval.CauseSecret {
		cause = gate.StaleWord(c)
	}
	text := fmt.Sprintf("%s %s: %s", count(c.Items, "item"), c.Status, escape.Line(cause))
	if c.Detail != "" {
		text += ", " + escape.Line(c.Detail)
	}
	if c.Drift != nil && c.Drift.Path != "" {
		text += fmt.Sprintf("\n  at %s\n  recorded %s\n  now      %s", escape.Line(c.Drift.Path), escape.Line(c.Drift.Old), escape.Line(c.Drift.New))
	}
	return text
}
