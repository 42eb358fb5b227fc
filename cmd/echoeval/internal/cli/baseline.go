package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/compare"
	"github.com/echoeval/echoeval/reports/escape"
)

// baselineName is the name of a baseline beside the dataset's own.
var baselineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkBaselineName(name string) error {
	if !baselineName.MatchString(name) || name == "none" || strings.HasSuffix(name, ".json") {
		return usage("letters, digits, dots, dashes and underscores, as in release", "%q is no name of a baseline", name)
	}
	return nil
}

// baselinesOf is the folder of a project's baselines.
func baselinesOf(p *dataset.Project) string {
	return filepath.Join(p.Root, filepath.FromSlash(p.Baselines))
}

// baselineFile is the file of a dataset's baseline; the name is empty for the one that is taken unasked.
func baselineFile(p *dataset.Project, dataset, name string) string {
	if name != "" {
		dataset += "@" + name
	}
	return filepath.Join(baselinesOf(p), dataset+".json")
}

// readBaseline reads a baseline of the dataset. Where there is none the error is [fs.ErrNotExist].
func readBaseline(s *State, path, dataset string) (*baseline.File, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", s.show(path), fs.ErrNotExist)
	}
	if err != nil {
		return nil, failure.New(failure.Input, "%s cannot be read: %s", s.show(path), failure.Reason(err))
	}
	return decodeBaseline(s.show(path), data, dataset)
}

func decodeBaseline(name string, data []byte, dataset string) (*baseline.File, error) {
	f, err := baseline.Decode(name, data)
	if err != nil {
		return nil, err
	}
	if f.Dataset != dataset {
		return nil, failure.At(failure.Position{File: name, Line: 1}, failure.Input, "a baseline of dataset %s, not of %s", f.Dataset, dataset)
	}
	return f, nil
}

// reference is the baseline that a run is compared with. Nil is none.
type reference struct {
	file *baseline.File // empty where git has none
	// name is what the summary says of it.
	name     results.Baseline
	warnings []results.Warning
	*baseline.Comparer
}

// newReference reads what --baseline names: nothing for the dataset's own file if it is there, a name, a file, git:REV, or none. Where a gate needs one and there is none, it is an empty one that says so.
func newReference(s *State, d *dataset.Dataset, flag string, needed bool) (*reference, error) {
	path, from := baselineFile(d.Project, d.Name, ""), "file"
	none := func(format string, args ...any) (*reference, error) {
		if !needed {
			return nil, nil
		}
		ref := reach(&baseline.File{Dataset: d.Name}, results.Baseline{File: relative(d.Root, path), From: from})
		ref.warnings = []results.Warning{{Code: "no-baseline", Text: fmt.Sprintf(format, args...) + ", so nothing is compared"}}
		return ref, nil
	}
	switch rev, git := strings.CutPrefix(flag, "git:"); {
	case flag == "none":
		return none("--baseline none is given")
	case git:
		return gitReference(s, d, path, rev)
	case strings.HasSuffix(flag, ".json"):
		path = s.path(flag)
	case flag != "":
		if err := checkBaselineName(flag); err != nil {
			return nil, failure.WithHint(err, "a file ends in .json; else NAME, git:REV or none")
		}
		path = baselineFile(d.Project, d.Name, flag)
	}
	f, err := readBaseline(s, path, d.Name)
	if errors.Is(err, fs.ErrNotExist) {
		if flag == "" {
			return none("there is no %s", relative(d.Root, path))
		}
		return nil, missingBaseline(s, d.Project, d.Name, path)
	}
	if err != nil {
		return nil, failure.WithHint(err, "or run without it: --baseline none")
	}
	hash := f.Hash()
	return reach(f, results.Baseline{File: relative(d.Root, path), From: from, Hash: &hash}), nil
}

func reach(f *baseline.File, name results.Baseline) *reference {
	return &reference{file: f, name: name, Comparer: baseline.NewComparer(f, nil)}
}

func missingBaseline(s *State, p *dataset.Project, name, path string) error {
	err := failure.New(failure.Input, "there is no baseline %s", s.show(path))
	if names := baselineNames(p, name); len(names) > 0 {
		return failure.WithHint(err, "there are: %s", strings.Join(names, ", "))
	}
	return failure.WithHint(err, "make one from a run: echoeval baseline accept %s", quote(name))
}

// baselineNames lists the baselines of a dataset as they are shown and compared: DATASET, DATASET@NAME.
func baselineNames(p *dataset.Project, dataset string) []string {
	entries, err := os.ReadDir(baselinesOf(p))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if of, _, _ := strings.Cut(name, "@"); ok && !e.IsDir() && (dataset == "" || of == dataset) {
			names = append(names, name)
		}
	}
	return names
}

// relative gives a path as summaries hold it: relative to the root, with slashes.
func relative(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		rel = filepath.Base(path)
	}
	return filepath.ToSlash(rel)
}

// gitReference reads the dataset's baseline at the merge base of a revision and HEAD, so that a change cannot approve itself.
func gitReference(s *State, d *dataset.Dataset, path, rev string) (*reference, error) {
	if rev == "" || strings.HasPrefix(rev, "-") || strings.ContainsFunc(rev, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, usage("--baseline git:origin/main", "--baseline git:%s names no revision", rev)
	}
	commit, err := git(s, d.Root, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil {
		if _, inside := git(s, d.Root, "rev-parse", "--git-dir"); inside != nil {
			return nil, failure.WithHint(failure.New(failure.Input, "--baseline git:%s: %w", rev, inside), "run in a clone, or name a file: --baseline %s", s.show(path))
		}
		return nil, failure.WithHint(failure.New(failure.Input, "--baseline git:%s: git knows no such revision", rev), "git fetch origin, or in CI fetch the whole history (fetch-depth: 0)")
	}
	base, err := git(s, d.Root, "merge-base", strings.TrimSpace(string(commit)), "HEAD")
	if err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "--baseline git:%s: it has no common ancestor with HEAD here", rev), "git fetch --unshallow, or in CI fetch the whole history (fetch-depth: 0)")
	}
	at := strings.TrimSpace(string(base))
	name := results.Baseline{File: relative(d.Root, path), From: "git:" + rev}
	now, nowErr := os.ReadFile(path)
	blob, err := git(s, d.Root, "rev-parse", "--verify", "--quiet", at+":./"+name.File)
	if err != nil {
		ref := reach(&baseline.File{Dataset: d.Name}, name)
		edited := nowErr == nil
		ref.name.EditedHere = &edited
		ref.warnings = []results.Warning{{Code: "no-baseline", Text: fmt.Sprintf("%s is not at the merge base with %s, so nothing is compared", name.File, rev)}}
		return ref, nil
	}
	data, err := git(s, d.Root, "cat-file", "blob", strings.TrimSpace(string(blob)))
	if err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "--baseline git:%s: %w", rev, err), "git fetch origin")
	}
	before, err := decodeBaseline(fmt.Sprintf("%.10s:%s", at, name.File), data, d.Name)
	if err != nil {
		return nil, err
	}
	hash := before.Hash()
	name.Hash = &hash
	edited := true
	text := "this change deletes its own baseline"
	if nowErr == nil {
		text = "this change edits its own baseline, and what it made of it cannot be read"
		if after, err := baseline.Decode(path, now); err == nil {
			edited = after.Hash() != hash
			text = fmt.Sprintf("this change edits its own baseline: %s moved", count(after.Moved(before), "verdict"))
		}
	}
	name.EditedHere = &edited
	ref := reach(before, name)
	if edited {
		ref.warnings = []results.Warning{{Code: "baseline-edited", Text: text, At: &ref.name.File}}
	}
	return ref, nil
}

// save puts the copy of the baseline into the run's folder, or takes an older one away.
func (r *reference) save(dir string) error {
	path := filepath.Join(dir, baseline.RunFile)
	if r == nil || r.name.Hash == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failure.New(failure.Internal, "an older %s cannot be removed: %s", baseline.RunFile, failure.Reason(err))
		}
		return nil
	}
	return baseline.Write(path, r.file)
}

// judge returns what compares with the baseline, evaluates the gates and decides.
func (p *planned) judge(o *runOptions, resume string) experiment.Judge {
	decide := gate.Judge(p.gates, gate.Input{IgnoreChecks: o.ignores("checks"), IgnoreRegression: o.ignores("regression"), Shard: p.shard, Record: p.record, Resume: resume})
	return func(s *results.Summary, t results.Tally) {
		if r := p.reference; r != nil {
			now := baseline.Now{Mode: s.Mode, Whole: s.Selected.Items == s.Dataset.Items}
			var ids []string
			for _, provider := range s.Providers {
				now.Providers = append(now.Providers, provider.ProviderInfo)
				ids = append(ids, provider.ID)
			}
			now.Level, now.Wants = gate.Level(p.gates, ids, baseline.Gated()), gate.Bounds(p.gates)
			s.Regression = r.Finish(now)
			s.Regression.Baseline = r.name
			s.Warnings = append(s.Warnings, r.warnings...)
		}
		decide(s, t)
	}
}

// ignores reports whether --fail-on leaves out what it could name.
func (o *runOptions) ignores(what string) bool {
	return len(o.failOn) > 0 && !slices.Contains(o.failOn, what)
}

func newBaseline(s *State) *cobra.Command {
	cmd := group("baseline", "The committed reference of a dataset", "files", newBaselineAccept(s), newBaselineShow(s), newBaselineList(s))
	cmd.Long = "The committed reference of a dataset: what each item did when somebody last said that this is right. It lies in baselines/DATASET.json below the project's root, one line an item and provider, and every run is compared with it."
	return cmd
}

func newBaselineAccept(s *State) *cobra.Command {
	var name, out string
	cmd := &cobra.Command{
		Use: "accept RUN", Short: "Make a run the reference of its dataset", Args: between(1, 1, "a run"),
		Long:    "Write what a run did as the reference of its dataset. A run of all items and providers replaces the file, of any other the lines that ran replace theirs. A run with lines that got no verdict is refused.",
		Example: "  echoeval baseline accept latest\n  echoeval baseline accept quickstart --name release",
		RunE: func(_ *cobra.Command, args []string) error {
			if name != "" {
				if err := checkBaselineName(name); err != nil {
					return err
				}
			}
			run, err := openRun(s, out, args[0])
			if err != nil {
				return err
			}
			defer run.Close()
			return accept(s, run, name)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "keep it beside the dataset's own, as baselines/DATASET@NAME.json")
	cmd.Flags().StringVar(&out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	return cmd
}

func accept(s *State, run *results.Run, name string) error {
	if run.Manifest.Shard != nil {
		return usage("echoeval merge RUN...", "%s is shard %s of a run: only the joined run has verdicts", run.Manifest.ID, *run.Manifest.Shard)
	}
	now, err := baseline.FromRun(run)
	if err != nil {
		return err
	}
	file, err := findDataset(s, run.Dir, run.Summary.Dataset.File)
	if err != nil {
		return err
	}
	whole := baseline.Whole(run) && !slices.ContainsFunc(run.Manifest.Flags, func(flag string) bool { return strings.HasPrefix(flag, "--provider=") })
	project, err := openProject(s, dataset.Root(file, s.Dir))
	if err != nil {
		return err
	}
	path := baselineFile(project, now.Dataset, name)
	old, err := readBaseline(s, path, now.Dataset)
	replaced := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, baseline.ErrLater):
		return err
	case err != nil && !whole:
		return failure.WithHint(err, "accept a run of the whole dataset, which needs nothing of it")
	case err != nil:
		// A file that was merged badly is made anew; what was wrong with it is said once.
		s.complain(err)
		replaced = ", in place of a file that cannot be read"
	}
	f := baseline.Accept(old, now, whole)
	if err := baseline.Write(path, f); err != nil {
		return err
	}
	for i := range now.Items {
		if now.Items[i].Calls == nil {
			if _, err := fmt.Fprintln(s.Stderr, "warning: the run kept the traces of failures alone, so that the tools that were called are not in every line"); err != nil {
				return unwritable(err)
			}
			break
		}
	}
	added, changed, removed := f.Changes(old)
	_, err = fmt.Fprintf(s.Stdout, "%s: %s, %d new, %d changed, %d removed%s\n", s.show(path), count(len(f.Items), "line"), added, changed, removed, replaced)
	return unwritable(err)
}

// namedBaseline reads DATASET or DATASET@NAME of the current project.
func namedBaseline(s *State, p *dataset.Project, name string) (f *baseline.File, path string, err error) {
	dataset, label, named := strings.Cut(name, "@")
	if named {
		if err := checkBaselineName(label); err != nil {
			return nil, "", err
		}
	}
	if dataset == "" || dataset != filepath.Base(dataset) || strings.ContainsAny(dataset, `/\`) || dataset == ".." {
		return nil, "", usage("a dataset's name, as in quickstart or quickstart@release", "%q is no name of a dataset", dataset)
	}
	path = baselineFile(p, dataset, label)
	f, err = readBaseline(s, path, dataset)
	if errors.Is(err, fs.ErrNotExist) {
		err = missingBaseline(s, p, dataset, path)
	}
	return f, path, err
}

// currentProject is the project that the current folder lies in.
func currentProject(s *State) (*dataset.Project, error) {
	return openProject(s, dataset.Root(filepath.Join(s.Dir, "dataset.yaml"), s.Dir))
}

func openProject(s *State, root string) (*dataset.Project, error) {
	return dataset.OpenProject(root, datasetOptions(s))
}

func newBaselineShow(s *State) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "show DATASET[@NAME]", Short: "Show a reference", Args: between(1, 1, "a dataset's name"),
		Example: "  echoeval baseline show quickstart@release",
		RunE: func(_ *cobra.Command, args []string) error {
			project, err := currentProject(s)
			if err != nil {
				return err
			}
			f, path, err := namedBaseline(s, project, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				_, err := s.Stdout.Write(escape.JSON(f.Append(nil)))
				return unwritable(err)
			}
			return showBaseline(s, f, path, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the file")
	cmd.Flags().BoolVar(&all, "all", false, "cut nothing")
	return cmd
}

func showBaseline(s *State, f *baseline.File, path string, all bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s\n", s.show(path), count(len(f.Items), "line"), count(f.Repeat, "repeat"))
	for _, p := range f.Providers {
		passed, items := passedItems(f, p.ID)
		fmt.Fprintf(&b, "%s (%s): %d of %s passed\n", escape.Line(p.ID), escape.Line(p.Model), passed, count(items, "item"))
	}
	b.WriteByte('\n')
	for i := range f.Items {
		item := &f.Items[i]
		passed, of := item.Judged()
		text := fmt.Sprintf("%d/%d  %s on %s", passed, of, item.Item, item.Provider)
		for _, list := range []struct {
			name  string
			names []string
		}{{"failed", item.Failed}, {"violates", item.Violations}, {"calls", item.Calls}} {
			if len(list.names) > 0 {
				text += fmt.Sprintf("; %s %s", list.name, strings.Join(list.names, ", "))
			}
		}
		if item.Answer != nil {
			text += "; " + *item.Answer
		}
		b.WriteString(escape.Line(compare.Short(text, max(40, s.tableWidth()-1), all)) + "\n")
	}
	_, err := s.Stdout.Write([]byte(b.String()))
	return unwritable(err)
}

// passedItems counts the items of a provider that passed in every judged repeat, and all of them.
func passedItems(f *baseline.File, provider string) (passed, items int) {
	for i := range f.Items {
		if f.Items[i].Provider == provider {
			items++
			if n, of := f.Items[i].Judged(); n == of {
				passed++
			}
		}
	}
	return passed, items
}

// baselineEntry is a line of `baseline ls --json`.
type baselineEntry struct {
	Name      string   `json:"name"`
	File      string   `json:"file"`
	Lines     int      `json:"lines"`
	Repeat    int      `json:"repeat"`
	Providers []string `json:"providers"`
	Hash      string   `json:"hash"`
}

func newBaselineList(s *State) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the references of the project", Args: between(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			project, err := currentProject(s)
			if err != nil {
				return err
			}
			list := []baselineEntry{}
			var errs []error
			for _, name := range baselineNames(project, "") {
				f, path, err := namedBaseline(s, project, name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				entry := baselineEntry{Name: name, File: relative(project.Root, path), Lines: len(f.Items), Repeat: f.Repeat, Providers: []string{}, Hash: f.Hash()}
				for _, p := range f.Providers {
					entry.Providers = append(entry.Providers, p.ID)
				}
				list = append(list, entry)
			}
			if asJSON {
				return errors.Join(append(errs, printJSON(s, list))...)
			}
			if len(list) == 0 && len(errs) == 0 {
				_, err := fmt.Fprintf(s.Stderr, "no baseline in %s: echoeval baseline accept RUN\n", s.show(baselinesOf(project)))
				return unwritable(err)
			}
			for _, entry := range list {
				if _, err := fmt.Fprintf(s.Stdout, "%s  %s, %s, %s\n", escape.Line(entry.Name), count(entry.Lines, "line"), count(entry.Repeat, "repeat"), escape.Line(strings.Join(entry.Providers, ", "))); err != nil {
					return unwritable(err)
				}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}
