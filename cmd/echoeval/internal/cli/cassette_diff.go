package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/reports/escape"
)

func newCassetteDiff(s *State) *cobra.Command {
	var folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "diff REV|DIR DATASET", Short: "Show how recorded conversations changed since a revision of git, or against another folder", Args: between(2, 2, "a revision or a folder, and a dataset"),
		Long: "Compare the cassettes of a dataset with those of a revision of git, or with those of another folder of cassettes (a folder of that name wins over a revision), conversation by conversation: what changed in the requests, by class, which tools were called, and what was answered. " +
			"Lines with - are those of the revision or folder, lines with + those of the dataset. Requests that changed without another path of tools or another answer are only counted.",
		Example: "  echoeval cassette diff origin/main datasets/quickstart.yaml\n  echoeval cassette diff nightly datasets/quickstart.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true, cassettes: folder}, args[1])
			if err != nil {
				return err
			}
			base := p.cassettes(s, folder)
			other, err := openOther(s, p, base, args[0])
			if err != nil {
				return err
			}
			d, err := diffCassettes(p, base, other)
			if err := errors.Join(err, other.close()); err != nil {
				return err
			}
			d.Before, d.After = args[0], filepath.ToSlash(s.show(base))
			if asJSON {
				err = printJSON(s, d)
			} else {
				_, err = fmt.Fprint(s.Stdout, d.text())
				err = unwritable(err)
			}
			if err == nil && d.Counts.Unreadable > 0 {
				return exit{failure.Cassette}
			}
			return err
		},
	}
	cassettesFlag(cmd, &folder)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// other is where the cassettes to compare with come from.
type other interface {
	// list returns the cassettes below the dataset's folder, as provider/item.yaml.
	list() ([]string, error)
	// read returns one of them; an error that is fs.ErrNotExist says that there is none.
	read(file string) (*cassette.File, error)
	close() error
}

// openOther finds out what the first argument of diff names.
func openOther(s *State, p *planned, base, name string) (other, error) {
	dir := s.path(name)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		below := filepath.Join(dir, p.dataset.Name)
		if isDir(below) {
			return folderOther{below, name}, nil
		}
		has, err := hasCassettes(p, dir)
		if err != nil {
			return nil, err
		}
		if !has {
			return nil, failure.WithHint(failure.New(failure.Input, "%s has no cassettes of %s", name, p.dataset.Name), "name the folder that holds the folder %s", p.dataset.Name)
		}
		return folderOther{dir, name}, nil
	}
	return openRevision(s, p, base, name)
}

func isDir(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// hasCassettes reports that a folder holds a cassette of the dataset under its name.
func hasCassettes(p *planned, dir string) (bool, error) {
	for owned, err := range p.experiment.Cassettes() {
		if err != nil {
			return false, err
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(owned.File, p.dataset.Name+"/")))); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// folderOther is another folder of cassettes.
type folderOther struct{ dir, name string }

func (f folderOther) list() ([]string, error) {
	var out []string
	err := filepath.WalkDir(f.dir, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.HasSuffix(p, ".yaml") {
			return err
		}
		rel, err := filepath.Rel(f.dir, p)
		out = append(out, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, failure.New(failure.Input, "%s cannot be listed: %s", f.name, failure.Reason(err))
	}
	return out, nil
}

func (f folderOther) read(file string) (*cassette.File, error) {
	return cassette.Load(filepath.Join(f.dir, filepath.FromSlash(file)), f.name+": "+file)
}

func (folderOther) close() error { return nil }

// cassetteDiff is how the conversations of a dataset differ from others.
type cassetteDiff struct {
	Dataset string     `json:"dataset"`
	Before  string     `json:"before"`
	After   string     `json:"after"`
	Counts  diffCounts `json:"counts"`
	Items   []itemDiff `json:"items"` // all that are not the same, in the order of the dataset, then those that it does not have
	classes map[string]int
}

type diffCounts struct {
	Same       int `json:"same"`
	Requests   int `json:"requests"` // only the requests differ
	Changed    int `json:"changed"`  // another path of tools or another answer
	Added      int `json:"added"`
	Removed    int `json:"removed"`
	Unreadable int `json:"unreadable"`
}

type itemDiff struct {
	File     string `json:"file"`
	Item     string `json:"item"`
	Provider string `json:"provider"`
	Repeat   int    `json:"repeat"`
	State    string `json:"state"` // requests, changed, added, removed, unreadable
	// Classes say what differs in the first request that does, in the order of the classes.
	Classes []cassette.Class `json:"classes"`
	Before  *talk            `json:"before"`
	After   *talk            `json:"after"`
	Problem string           `json:"problem"`
}

// talk is how a conversation went.
type talk struct {
	Tools  []string `json:"tools"`
	Answer string   `json:"answer"`
}

func talkOf(f *cassette.File) *talk {
	t := &talk{Tools: f.Calls(), Answer: f.Answer()}
	if t.Tools == nil {
		t.Tools = []string{}
	}
	return t
}

func diffCassettes(p *planned, base string, o other) (*cassetteDiff, error) {
	d := &cassetteDiff{Dataset: p.dataset.Name, Items: []itemDiff{}, classes: map[string]int{}}
	theirs, err := o.list()
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, file := range theirs {
		there[file] = true
	}
	prefix := p.dataset.Name + "/"
	for owned, err := range p.experiment.Cassettes() {
		if err != nil {
			return nil, err
		}
		file := strings.TrimPrefix(owned.File, prefix)
		now, err := cassette.Load(owned.Path, owned.File)
		var then *cassette.File
		var thenErr error = fs.ErrNotExist
		if there[file] {
			delete(there, file)
			then, thenErr = o.read(file)
		}
		d.add(itemDiff{File: owned.File, Item: owned.Item, Provider: owned.Provider, Repeat: owned.Repeat}, then, thenErr, now, err)
	}
	// What is left over there belongs to no item here. Where the file is here too, it is an orphan on both sides.
	for _, file := range slices.Sorted(maps.Keys(there)) {
		if _, err := os.Lstat(filepath.Join(base, p.dataset.Name, filepath.FromSlash(file))); err == nil || path.Base(file) == cassette.SetupFile {
			continue
		}
		then, err := o.read(file)
		i := itemDiff{File: prefix + file}
		if err == nil {
			i.Item, i.Provider, i.Repeat = then.Header.Item, then.Header.Provider, then.Header.Repeat
		}
		d.add(i, then, err, nil, fs.ErrNotExist)
	}
	return d, nil
}

// add compares one conversation.
func (d *cassetteDiff) add(i itemDiff, then *cassette.File, thenErr error, now *cassette.File, nowErr error) {
	gone, missing := errors.Is(thenErr, fs.ErrNotExist), errors.Is(nowErr, fs.ErrNotExist)
	i.Classes = []cassette.Class{}
	switch {
	case gone && missing:
		return
	case thenErr != nil && !gone || nowErr != nil && !missing:
		i.State, i.Problem = "unreadable", cmp.Or(problemText(thenErr, gone), problemText(nowErr, missing))
		d.Counts.Unreadable++
	case gone:
		i.State, i.After = "added", talkOf(now)
		d.Counts.Added++
	case missing:
		i.State, i.Before = "removed", talkOf(then)
		d.Counts.Removed++
	default:
		i.Classes = append(i.Classes, requestClasses(then, now)...)
		i.Before, i.After = talkOf(then), talkOf(now)
		switch {
		case !slices.Equal(i.Before.Tools, i.After.Tools) || i.Before.Answer != i.After.Answer:
			i.State = "changed"
			d.Counts.Changed++
		case len(i.Classes) > 0:
			i.State = "requests"
			d.Counts.Requests++
		default:
			d.Counts.Same++
			return
		}
		for _, c := range i.Classes[:min(1, len(i.Classes))] {
			d.classes[string(c)]++
		}
	}
	d.Items = append(d.Items, i)
}

func problemText(err error, absent bool) string {
	if err == nil || absent {
		return ""
	}
	return err.Error()
}

// requestClasses compares the requests to models, in order, and returns the classes of the first that differs. What follows it differs as its history does.
func requestClasses(then, now *cassette.File) []cassette.Class {
	a, b := modelRequests(then), modelRequests(now)
	for n := range min(len(a), len(b)) {
		var classes []cassette.Class
		for _, c := range cassette.Compare(a[n], b[n]).Changes {
			classes = append(classes, c.Class)
		}
		if len(classes) > 0 {
			return classes
		}
	}
	return nil
}

func modelRequests(f *cassette.File) []cassette.Request {
	var out []cassette.Request
	for n := range f.Interactions {
		if i := &f.Interactions[n]; i.Request.Method != cassette.Method && i.Response.Code < 400 {
			out = append(out, cassette.Recanonical(i.Request, nil))
		}
	}
	return out
}

// text is the difference for a reader.
func (d *cassetteDiff) text() string {
	var b strings.Builder
	c := d.Counts
	fmt.Fprintf(&b, "%s: %d changed, %d with other requests only, %d same, %d only in %s, %d only in %s", escape.Line(d.Dataset), c.Changed, c.Requests, c.Same, c.Removed, escape.Line(d.Before), c.Added, escape.Line(d.After))
	if c.Unreadable > 0 {
		fmt.Fprintf(&b, ", %d unreadable", c.Unreadable)
	}
	b.WriteString("\n")
	for _, class := range cassette.Classes {
		if n := d.classes[string(class)]; n > 0 {
			fmt.Fprintf(&b, "%s: %d\n", class, n)
		}
	}
	if c.Changed+c.Unreadable > 0 {
		fmt.Fprintf(&b, "\n--- %s\n+++ %s\n", escape.Line(d.Before), escape.Line(d.After))
	}
	for _, i := range d.Items {
		switch i.State {
		case "unreadable":
			fmt.Fprintf(&b, "\n%s: unreadable\n  %s\n", escape.Line(i.File), escape.Line(i.Problem))
		case "changed":
			fmt.Fprintf(&b, "\n%s%s\n", key{i.Item, i.Provider, i.Repeat}, classList(i.Classes))
			if !slices.Equal(i.Before.Tools, i.After.Tools) {
				fmt.Fprintf(&b, "  - tools   %s\n  + tools   %s\n", toolPath(i.Before.Tools), toolPath(i.After.Tools))
			}
			if i.Before.Answer != i.After.Answer {
				fmt.Fprintf(&b, "  - answer  %s\n  + answer  %s\n", excerpt(i.Before.Answer), excerpt(i.After.Answer))
			}
		}
	}
	return b.String()
}

func classList(classes []cassette.Class) string {
	if len(classes) == 0 {
		return ": same requests"
	}
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = string(c)
	}
	return ": " + strings.Join(names, ", ")
}

func toolPath(tools []string) string {
	if len(tools) == 0 {
		return "(none)"
	}
	return escape.Line(strings.Join(tools, " > "))
}

// longAnswer is how many characters of an answer are shown.
const longAnswer = 400

func excerpt(text string) string {
	if text == "" {
		return "(none)"
	}
	if runes := []rune(text); len(runes) > longAnswer {
		text = string(runes[:longAnswer]) + "…"
	}
	return escape.Line(text)
}
