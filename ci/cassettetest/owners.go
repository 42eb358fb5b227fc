package cassettetest

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
)

// Owners says whose recordings should lie below [Folder], by path: those of every item that is run, on every provider that it is for, in every repeat, of the datasets in the folder datasets of the project at root.
func Owners(root string) (map[string][]Owner, error) {
	files, err := filepath.Glob(filepath.Join(root, "datasets", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for datasets: %w", err)
	}
	owners := map[string][]Owner{}
	for _, file := range files {
		d, err := dataset.Open(file, dataset.Options{Dir: root})
		if err != nil {
			return nil, err
		}
		for item, err := range d.Items() {
			if err != nil {
				return nil, err
			}
			for _, p := range d.Columns() {
				if item.Skip != "" || item.Providers != nil && !slices.Contains(item.Providers, p.ID) {
					continue
				}
				for repeat := 1; repeat <= item.Repeat; repeat++ {
					name := place(d.Name, p.ID, item.ID, repeat)
					owners[name] = append(owners[name], Owner{Dataset: d.Name, Provider: p.ID, Item: item.ID, Repeat: repeat})
				}
			}
		}
	}
	return owners, nil
}

// place is where a recording lies. It is written out here, and not taken from the code that records, so that a change of the layout does not pass unseen.
func place(name, provider, item string, repeat int) string {
	file := dataset.FileName(item)
	if repeat > 1 {
		file = fmt.Sprintf("%s@%d", file, repeat)
	}
	return path.Join(Folder, name, dataset.FolderName(provider), file+".yaml")
}

// Header reads from a recording whom it was made for.
func Header(name string, data []byte) (Owner, error) {
	file, err := cassette.Decode(data, name)
	if err != nil {
		return Owner{}, err
	}
	if len(file.Interactions) == 0 {
		return Owner{}, fmt.Errorf("a recording of nothing")
	}
	h := file.Header
	return Owner{Dataset: h.Dataset, Provider: h.Provider, Item: h.Item, Repeat: h.Repeat}, nil
}
