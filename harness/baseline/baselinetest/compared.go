// Package baselinetest makes runs for tests that were compared with a baseline.
package baselinetest

import (
	"os"
	"path/filepath"

	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/results"
)

// Compare compares the finished run in dir with a baseline that edit has made of the run itself, item by item, and leaves the folder as a compared run's is.
func Compare(dir string, edit func(*baseline.Item)) error {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	f, err := baseline.Collect(run, func(e *baseline.Entry) error {
		e.Calls, err = baseline.Calls(run, e)
		return err
	})
	if err != nil {
		return err
	}
	for i := range f.Items {
		edit(&f.Items[i])
	}
	f = baseline.Accept(nil, f, true)
	if err := baseline.Write(filepath.Join(dir, baseline.RunFile), f); err != nil {
		return err
	}
	c := baseline.NewComparer(f, nil)
	for line, err := range run.Lines() {
		if err != nil {
			return err
		}
		c.Add(&line)
	}
	now := baseline.Now{Mode: run.Summary.Mode, Whole: true}
	for _, p := range run.Summary.Providers {
		now.Providers = append(now.Providers, p.ProviderInfo)
	}
	hash := f.Hash()
	run.Summary.Regression = c.Finish(now)
	run.Summary.Regression.Baseline = results.Baseline{File: "baselines/" + run.Summary.Dataset.Name + ".json", From: "git:origin/main", Hash: &hash}
	data, err := run.Summary.AppendJSON(nil)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, results.SummaryFile), append(data, '\n'), 0o644)
}
