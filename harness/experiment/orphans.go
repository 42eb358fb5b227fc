package experiment

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
)

// owners knows which cassettes belong to an item, provider and repeat of the dataset: 8 bytes each.
type owners map[uint64]struct{}

func (o owners) add(item *dataset.Item, providers []dataset.Provider, repeats int) {
	for _, p := range providers {
		for repeat := 1; repeat <= repeats; repeat++ {
			o[fileHash(cassetteFile(item.ID, p.ID, repeat))] = struct{}{}
		}
	}
}

func fileHash(rel string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(rel))
	return h.Sum64()
}

// cassetteFile is the path of a cassette below the dataset's folder, with slashes.
func cassetteFile(item, provider string, repeat int) string {
	name := dataset.FileName(item)
	if repeat > 1 {
		name += "@" + strconv.Itoa(repeat)
	}
	return dataset.FolderName(provider) + "/" + name + ".yaml"
}

// Orphans returns the cassettes of the dataset that belong to no item, provider or repeat, relative to the folder of the dataset's cassettes, sorted.
func (e *Experiment) Orphans() ([]string, error) {
	root := filepath.Join(e.opts.Cassettes, e.opts.Dataset.Name)
	var out []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if _, owned := e.owners[fileHash(rel)]; !owned && rel != "_setup.yaml" {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		return nil, failure.New(failure.Internal, "looking through the cassettes of %s: %s", e.opts.Dataset.Name, failure.Reason(err))
	}
	slices.Sort(out)
	return out, nil
}

// Cassette is where the recording of one item, provider and repeat belongs.
type Cassette struct {
	Item     string
	Provider string
	Repeat   int
	// Path is absolute; File is relative to the folder of all cassettes, with slashes.
	Path, File string
	// Skipped says that the item does not run on that provider.
	Skipped bool
	// Asked estimates how many bytes the model is given in all requests of the item: prompt, tools, what the user says. Requests is how many these are likely to be.
	Asked, Requests int
}

// Missing counts the runs of the selected items whose cassettes are not there. What the dataset skips needs none.
func (e *Experiment) Missing() (int, error) {
	missing := 0
	for item, err := range e.Selected() {
		if err != nil {
			return 0, err
		}
		for i := range e.opts.Columns {
			c := &e.opts.Columns[i]
			if skipped(item, c) != "" {
				continue
			}
			for repeat := 1; repeat <= e.repeats(item); repeat++ {
				path := filepath.Join(e.opts.Cassettes, e.opts.Dataset.Name, filepath.FromSlash(cassetteFile(item.ID, c.Provider.ID, repeat)))
				if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
					missing++
				}
			}
		}
	}
	return missing, nil
}

// Cassettes yields where the recordings of the selected items belong, whether they are there or not.
func (e *Experiment) Cassettes() iter.Seq2[Cassette, error] {
	return func(yield func(Cassette, error) bool) {
		shown := make([]int, len(e.opts.Columns)) // bytes of prompt and tools
		tools := make([]bool, len(e.opts.Columns))
		for i := range e.opts.Columns {
			c := &e.opts.Columns[i]
			visible := e.visible(c)
			shown[i], tools[i] = len(c.Agent.Prompt())+len(toolsText(visible)), len(visible) > 0
		}
		for item, err := range e.Selected() {
			if err != nil {
				yield(Cassette{}, err)
				return
			}
			said, turns := sayings(item)
			for i := range e.opts.Columns {
				column := &e.opts.Columns[i]
				for repeat := 1; repeat <= e.repeats(item); repeat++ {
					c := Cassette{Item: item.ID, Provider: column.Provider.ID, Repeat: repeat, Skipped: skipped(item, column) != "", Requests: turns}
					if tools[i] {
						c.Requests *= 2 // one that calls, one that answers
					}
					c.Asked = c.Requests * (shown[i] + said)
					c.File = e.opts.Dataset.Name + "/" + cassetteFile(c.Item, c.Provider, c.Repeat)
					c.Path = filepath.Join(e.opts.Cassettes, filepath.FromSlash(c.File))
					if !yield(c, nil) {
						return
					}
				}
			}
		}
	}
}

// sayings is how many bytes the user says, and in how many turns.
func sayings(item *dataset.Item) (bytes, turns int) {
	add := func(parts []conversation.Content) { bytes += len(textOf(parts)) }
	add(item.Input)
	for _, t := range item.Turns {
		add(t.Input)
	}
	for _, m := range item.Messages {
		bytes += len(m.Text())
	}
	turns = max(len(item.Turns), 1)
	if item.User != nil {
		turns += item.User.MaxTurns
	}
	return bytes, turns
}
