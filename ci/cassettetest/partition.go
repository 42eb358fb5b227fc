// Package cassettetest checks the committed recordings: each belongs to exactly one item, provider and repeat of a dataset, each of these has its recording, and none holds what does not belong into a repository.
package cassettetest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/echoeval/echoeval/core/secret"
)

// Folder is where the recordings lie, relative to the project.
const Folder = "fixtures/cassettes"

// MaxSize is the size in bytes that a committed recording may have. Larger ones belong outside the repository (`--cassettes`).
const MaxSize = 1 << 20

// Owner is what a recording belongs to.
type Owner struct {
	Dataset, Provider, Item string
	Repeat                  int // from 1
}

// String names all four, for messages.
func (o Owner) String() string {
	return fmt.Sprintf("%s, %s, %s, repeat %d", o.Dataset, o.Provider, o.Item, o.Repeat)
}

// Check compares the files below [Folder] with the owners, by path relative to the project, and looks at what the files hold. Header reads from a recording whom it was made for. The problems come sorted by path.
func Check(fsys fs.FS, owners map[string][]Owner, header func(name string, data []byte) (Owner, error)) ([]string, error) {
	found := map[string]bool{}
	var problems []string
	report := func(name, format string, args ...any) {
		problems = append(problems, name+": "+fmt.Sprintf(format, args...))
	}
	var detector secret.Detector
	err := fs.WalkDir(fsys, Folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found[name] = true
		if !d.Type().IsRegular() {
			report(name, "not a plain file")
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if len(data) > MaxSize {
			report(name, "%d bytes, more than the %d that a committed recording may have", len(data), MaxSize)
		}
		for hit := range detector.All(string(data)) {
			report(name, "holds a secret (%s) at byte %d", hit.Kind, hit.Start)
		}
		of, err := header(name, data)
		switch {
		case err != nil:
			report(name, "%v", err)
		case len(owners[name]) == 0:
			report(name, "belongs to no item of any dataset: delete it")
		case !slices.Contains(owners[name], of):
			report(name, "was recorded for %s, and lies where the one for %s belongs", of, owners[name][0])
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the recordings: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		if len(owners[name]) > 1 {
			report(name, "has more than one owner: %v", owners[name])
		}
		if !found[name] {
			report(name, "is absent, the recording of %s: make record", owners[name][0])
		}
	}
	if len(found) == 0 {
		report(path.Clean(Folder), "no recordings")
	}
	if len(owners) == 0 {
		report("datasets", "no items")
	}
	slices.Sort(problems)
	return problems, nil
}
