package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/github"
)

// finishedRun is a run's folder and the root of its project, "" where that is to be found.
type finishedRun struct{ dir, root string }

// openAll opens the runs; the caller closes them.
func openAll(list []finishedRun) ([]*results.Run, error) {
	var runs []*results.Run
	for _, f := range list {
		run, err := results.Open(f.dir)
		if err != nil {
			return nil, errors.Join(err, closeAll(runs))
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func closeAll(runs []*results.Run) error {
	var errs []error
	for _, run := range runs {
		errs = append(errs, run.Close())
	}
	return errors.Join(errs...)
}

// shared reports whether --format names one file for the runs of several datasets.
func (o *runOptions) shared(format string) bool {
	return o.datasets > 1 && strings.Contains(format, "=")
}

// afterAll writes what is made of all runs of the command together: one file for several datasets, and what the CI system shows.
func (o *runOptions) afterAll(s *State, list []finishedRun) error {
	if len(list) == 0 {
		return nil
	}
	for _, f := range o.formats {
		if !o.shared(f) {
			continue
		}
		name, path, _ := strings.Cut(f, "=")
		r, err := reports.Find(reporters, name)
		if err != nil {
			return err
		}
		runs, err := openAll(list)
		if err != nil {
			return err
		}
		if err := errors.Join(reportTo(s, runs, r, s.path(path)), closeAll(runs)); err != nil {
			return err
		}
		o.wrote(s, name, s.path(path))
	}
	out := s.Stdout
	if o.asJSON {
		out = s.Stderr // the host reads both, a program only what was promised
	}
	return publish(s, out, o.formats, list)
}

// publish shows runs on GitHub where --format asks for it: annotations go to the output, and the text to the end of the step's summary, where the host has named its file.
func publish(s *State, out io.Writer, formats []string, list []finishedRun) error {
	asked := slices.ContainsFunc(formats, func(f string) bool {
		name, _, _ := strings.Cut(f, "=")
		return name == "github"
	})
	if !asked || len(list) == 0 {
		return nil
	}
	runs, err := openAll(list)
	if err != nil {
		return err
	}
	placed := make([]github.Placed, len(runs))
	for i, run := range runs {
		placed[i] = github.Placed{Run: run, Folder: s.inRepository(list[i], run)}
	}
	return errors.Join(github.Annotations(out, placed), stepSummary(s, runs), closeAll(runs))
}

// inRepository is where the run's project lies below the workspace of the host, or below the current folder; a path outside of it begins with two dots.
func (s *State) inRepository(f finishedRun, run *results.Run) string {
	root := f.root
	if root == "" {
		file := run.Summary.Dataset.File
		found, err := findDataset(s, run.Dir, file)
		if err != nil {
			return ""
		}
		root = strings.TrimSuffix(found, filepath.FromSlash(file))
	}
	base := s.Getenv("GITHUB_WORKSPACE")
	if base == "" {
		base = s.Dir
	}
	if resolved, err := filepath.EvalSymlinks(base); err == nil {
		base = resolved
	}
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	rel, err := filepath.Rel(base, root)
	if err != nil || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

// leastSummary is the room below which nothing is added to a step's summary.
const leastSummary = 4 << 10

// stepSummary adds the runs to the step's summary. What stands there already counts against its limit.
func stepSummary(s *State, runs []*results.Run) error {
	path := s.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	path = s.path(path)
	taken := 0
	info, err := os.Stat(path)
	switch {
	case err == nil:
		taken = int(min(info.Size(), github.MaxSummary))
	case !errors.Is(err, fs.ErrNotExist):
		return failure.New(failure.Internal, "the summary of the step cannot be read: %s", failure.Reason(err))
	}
	room := github.MaxSummary - taken - 2
	if room < leastSummary {
		fmt.Fprintln(s.Stderr, "the summary of the step is full: nothing was added to it")
		return nil
	}
	var text bytes.Buffer
	if taken > 0 {
		text.WriteByte('\n')
	}
	if err := github.Summary(&text, runs, reports.Options{}, room); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.Write(text.Bytes())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return failure.New(failure.Internal, "the summary of the step cannot be written: %s", failure.Reason(err))
	}
	return nil
}
