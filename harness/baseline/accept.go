package baseline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
)

// mostNamed is how many lines an error names.
const mostNamed = 10

// FromRun makes a baseline of a finished run. Items that the dataset skips are left out. A run that was killed, one with lines that got no verdict (error, stale, unjudged, not_run) and one that judged nothing are refused with code Input.
func FromRun(run *results.Run) (*File, error) {
	s := &run.Summary
	if run.Incomplete {
		return nil, failure.WithHint(failure.New(failure.Input, "the run %s is incomplete: it was killed or still goes on", run.Manifest.ID), "%s", run.Resume())
	}
	open := 0
	var named []string
	for line, err := range run.Lines() {
		if err != nil {
			return nil, err
		}
		switch line.Status {
		case eval.Error, eval.Stale, eval.Unjudged, eval.NotRun:
			open++
			if len(named) < mostNamed {
				named = append(named, fmt.Sprintf("%s on %s (%s)", line.Item, line.Provider, line.Status))
			}
		}
	}
	if open > 0 {
		text := strings.Join(named, ", ")
		if more := open - len(named); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return nil, failure.WithHint(failure.New(failure.Input, "a baseline holds verdicts, and %s of %s got none: %s", count(open, "result"), run.Manifest.ID, text), "%s", results.Command("echoeval", "show", run.Manifest.ID))
	}
	f, err := Collect(run, func(e *Entry) error {
		var err error
		e.Calls, err = Calls(run, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(f.Items) == 0 {
		return nil, failure.WithHint(failure.New(failure.Input, "the run %s judged nothing: the dataset skips every item", run.Manifest.ID), "%s", results.Command("echoeval", "show", s.Dataset.Name))
	}
	return f, nil
}

// Collect makes a baseline of whatever a run holds, for a comparison: repeats without a verdict are null. each, which may be nil, completes an entry before it is kept.
func Collect(run *results.Run, each func(*Entry) error) (*File, error) {
	s := &run.Summary
	f := &File{Dataset: s.Dataset.Name, DatasetHash: s.Dataset.Hash}
	var failed error
	groups := entries{counted: s.Selected.Counted(), checks: limits(s), emit: func(e *Entry) {
		if e.Skipped || failed != nil {
			return
		}
		if each != nil {
			if failed = each(e); failed != nil {
				return
			}
		}
		f.Items = append(f.Items, e.Item)
	}}
	for line, err := range run.Lines() {
		if err != nil {
			return nil, err
		}
		groups.add(&line)
		if failed != nil {
			return nil, failed
		}
	}
	groups.flush()
	if failed != nil {
		return nil, failed
	}
	for _, p := range s.Providers {
		f.Providers = append(f.Providers, Provider{ID: p.ID, Model: p.Model, AgentHash: p.AgentHash, PromptHash: p.PromptHash, ToolsHash: p.ToolsHash})
	}
	f.order()
	return f, nil
}

// limits are the checks that regression gates of the run look at alone.
func limits(s *results.Summary) []string {
	var names []string
	if s.Regression != nil {
		for i := range s.Regression.Comparisons {
			if name := s.Regression.Comparisons[i].Where().Check; name != "" {
				names = append(names, name)
			}
		}
	}
	return sorted(names)
}

// order sorts providers and items, drops providers without an item and sets the number of repeats.
func (f *File) order() {
	used := map[string]bool{}
	f.Repeat = 0
	for i := range f.Items {
		used[f.Items[i].Provider] = true
		f.Repeat = max(f.Repeat, len(f.Items[i].Passed))
	}
	f.Providers = slices.DeleteFunc(f.Providers, func(p Provider) bool { return !used[p.ID] })
	slices.SortFunc(f.Providers, func(a, b Provider) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(f.Items, func(a, b Item) int { return a.key().compare(b.key()) })
}

// Accept gives the baseline after a run was accepted over an old one, nil for none. A whole run takes its place; of any other the lines that ran take the place of theirs, and all else stays. The arguments are not changed.
func Accept(old, now *File, whole bool) *File {
	out := &File{Dataset: now.Dataset, DatasetHash: now.DatasetHash, Providers: slices.Clone(now.Providers), Items: slices.Clone(now.Items)}
	if old != nil && !whole {
		for _, p := range old.Providers {
			if _, ok := now.Provider(p.ID); !ok {
				out.Providers = append(out.Providers, p)
			}
		}
		for i := range old.Items {
			if now.find(old.Items[i].key()) == nil {
				out.Items = append(out.Items, old.Items[i])
			}
		}
	}
	out.order()
	return out
}

func (f *File) find(k key) *Item {
	i, ok := slices.BinarySearchFunc(f.Items, k, func(item Item, k key) int { return item.key().compare(k) })
	if !ok {
		return nil
	}
	return &f.Items[i]
}

// Changes counts the lines in which f differs from old; nil is an empty file.
func (f *File) Changes(old *File) (added, changed, removed int) {
	if old == nil {
		old = &File{}
	}
	var a, b []byte
	for i := range f.Items {
		before := old.find(f.Items[i].key())
		if before == nil {
			added++
			continue
		}
		if a, b = f.Items[i].append(a[:0]), before.append(b[:0]); string(a) != string(b) {
			changed++
		}
	}
	return added, changed, len(old.Items) - (len(f.Items) - added)
}

// Moved counts the items and providers whose verdicts differ from those of old, among those that both hold.
func (f *File) Moved(old *File) int {
	n := 0
	for i := range f.Items {
		if before := old.find(f.Items[i].key()); before != nil {
			same := slices.EqualFunc(f.Items[i].Passed, before.Passed, func(a, b *bool) bool {
				return a == b || a != nil && b != nil && *a == *b
			})
			if !same || !slices.Equal(f.Items[i].Violations, before.Violations) {
				n++
			}
		}
	}
	return n
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
