package view

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
)

// history is what a folder of runs holds.
type history struct {
	folder   string
	datasets []*datasetRuns // by name
	broken   []broken       // by name
	// left is how many runs were not read: the oldest, beyond [mostRuns].
	left int
}

// datasetRuns are the runs of one dataset, the newest first.
type datasetRuns struct {
	name string
	runs []run
}

// run is one that can be read. summary is nil where it goes on or was killed.
type run struct {
	id      string // the folder's name
	started time.Time
	head    results.Head
	shard   string
	summary *results.Summary
}

// broken is a folder that looks like a run's and cannot be read.
type broken struct{ name, why string }

const (
	// mostRuns is how many runs are read for a page.
	mostRuns = 5_000
	// mostGlance is the length of a manifest or a summary that is read.
	mostGlance = 64 << 20
)

// whole reports whether the run says something about the dataset as a whole: it has come to its end with all items.
func (r *run) whole() bool {
	return r.summary != nil && r.summary.Complete && r.shard == "" && r.summary.Selected.Items == r.summary.Dataset.Items
}

// read looks at every run below the folder. Only what lies in it is read: links are not followed.
func read(folder string) (*history, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, failure.New(failure.Internal, "the folder of the runs cannot be read: %s", failure.Reason(err))
	}
	h := &history{folder: folder}
	var names []string
	for _, e := range entries {
		if e.IsDir() && (results.IsID(e.Name()) || has(filepath.Join(folder, e.Name()), results.ManifestFile)) {
			names = append(names, e.Name())
		}
	}
	// Ids begin with the time, so that these are the newest.
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	h.left = max(0, len(names)-mostRuns)
	byName := map[string]*datasetRuns{}
	for _, name := range names[:min(len(names), mostRuns)] {
		r, err := glance(filepath.Join(folder, name))
		if err != nil {
			h.broken = append(h.broken, broken{name, err.Error()})
			continue
		}
		d := byName[r.head.Dataset.Name]
		if d == nil {
			d = &datasetRuns{name: r.head.Dataset.Name}
			byName[d.name] = d
			h.datasets = append(h.datasets, d)
		}
		d.runs = append(d.runs, r)
	}
	for _, d := range h.datasets {
		slices.SortStableFunc(d.runs, func(a, b run) int { return cmp.Or(b.started.Compare(a.started), strings.Compare(b.id, a.id)) })
	}
	slices.SortFunc(h.datasets, func(a, b *datasetRuns) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(h.broken, func(a, b broken) int { return strings.Compare(a.name, b.name) })
	return h, nil
}

func (h *history) find(name string) *datasetRuns {
	for _, d := range h.datasets {
		if d.name == name {
			return d
		}
	}
	return nil
}

// glance reads what a run says at a glance.
func glance(dir string) (run, error) {
	for _, file := range []string{results.ManifestFile, results.SummaryFile} {
		info, err := os.Lstat(filepath.Join(dir, file))
		switch {
		case err != nil && file == results.ManifestFile:
			return run{}, fmt.Errorf("it has no %s: it was cut off as it began", file)
		case err != nil:
		case !info.Mode().IsRegular():
			return run{}, fmt.Errorf("its %s is no file", file)
		case info.Size() > mostGlance:
			return run{}, fmt.Errorf("its %s is larger than %d MiB", file, mostGlance>>20)
		}
	}
	m, summary, err := results.Peek(dir)
	if err != nil {
		return run{}, err
	}
	r := run{id: filepath.Base(dir), started: m.Started.UTC(), head: m.Plan, summary: summary}
	if m.Shard != nil {
		r.shard = *m.Shard
	}
	if info, err := os.Lstat(filepath.Join(dir, results.ResultsFile)); summary != nil && (err != nil || !info.Mode().IsRegular()) {
		return run{}, fmt.Errorf("it has a %s and no %s: files were lost", results.SummaryFile, results.ResultsFile)
	}
	if summary != nil {
		r.head.Dataset, r.head.Selected, r.head.Mode = summary.Dataset, summary.Selected, summary.Mode
	}
	return r, nil
}

// locate finds the folder of a run by its name and proves that nothing in it leads elsewhere or never ends: every entry is a file or a folder.
func locate(folder, name string) (string, error) {
	unknown := failure.WithHint(failure.New(failure.Input, "there is no run %q", name), "it may have been removed since the list was made")
	if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
		return "", unknown
	}
	dir := filepath.Join(folder, name)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return "", unknown
	}
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !e.Type().IsRegular():
			return failure.New(failure.Input, "the run %q holds %q, which is no file", name, e.Name())
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return dir, nil
}

func has(dir, file string) bool {
	_, err := os.Lstat(filepath.Join(dir, file))
	return err == nil
}
