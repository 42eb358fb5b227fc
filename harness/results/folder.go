package results

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/claim"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// idTime is how a run's id begins: UTC, to the second.
const idTime = "20060102T150405Z"

var idPattern = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}Z)-(.+)-([0-9a-f]{4})$`)

// IsID reports whether a folder's name has the form of a run's id.
func IsID(name string) bool { return idPattern.MatchString(name) }

// maxAttempts bounds the search for a free id; each second has 65,536 for a dataset.
const maxAttempts = 1_000

// maxSwept bounds how often a file is made again that the sweep of another run has taken.
const maxSwept = 10

// NewFolder makes the folder of a new run of the dataset below runs, which is made too where it is absent. The id is <UTC time>-<dataset>-<4 hex>; the digits are a hash of the start and of how many ids were taken, so that runs of one second differ.
func NewFolder(runs string, started time.Time, dataset string) (id, dir string, err error) {
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return "", "", cannotMake(err)
	}
	sweep(runs)
	for attempt := range maxAttempts {
		sum := sha256.Sum256([]byte(started.UTC().Format(time.RFC3339Nano) + "\x00" + dataset + "\x00" + strconv.Itoa(attempt)))
		id = started.UTC().Format(idTime) + "-" + dataset + "-" + hex.EncodeToString(sum[:2])
		dir = filepath.Join(runs, id)
		err = os.Mkdir(dir, 0o755)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", "", cannotMake(err)
	}
	return id, dir, nil
}

// mergingFile stands in the folder of a merge that is under way.
const mergingFile = "merging" + temporary

// Merging marks a folder as that of a merge under way, which becomes a run only when it is whole: killed before, it leaves nothing that could be gone on with, and the next run sweeps it away. done takes the mark off, after the manifest is written.
func Merging(dir string) (done func() error, err error) {
	path := filepath.Join(dir, mergingFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, writing(path, err)
	}
	claim.Take(f)
	return func() error { return writing(path, errors.Join(os.Remove(path), f.Close())) }, nil
}

// sweepMerge removes the folder of a merge that was killed, or only its mark where the run was whole.
func sweepMerge(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, mergingFile), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if !claim.Take(f) {
		return
	}
	if isRun(dir) {
		_ = os.Remove(f.Name())
		return
	}
	_ = os.RemoveAll(dir)
}

// sweep removes what runs have left that were killed before they had a manifest: folders that hold nothing but its draft, folders of merges, and drafts of the link to the latest run. It never fails: what cannot be removed does no harm.
//
// A living process that is just there makes again what a sweep has taken from it, see [WriteManifest] and [SetLatest].
func sweep(runs string) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(runs, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), LatestName+".") && strings.HasSuffix(e.Name(), temporary):
			_ = os.Remove(path)
		case !e.IsDir() || !IsID(e.Name()):
		case isRun(path):
			sweepMerge(path)
		default:
			sweepMerge(path)
			draft := filepath.Join(path, ManifestFile+temporary)
			f, err := os.OpenFile(draft, os.O_RDWR, 0)
			if err != nil {
				continue
			}
			if claim.Take(f) {
				_ = os.Remove(draft)
				_ = os.Remove(path) // stays where it holds anything else
			}
			_ = f.Close()
		}
	}
}

func cannotMake(err error) error {
	return failure.WithHint(failure.WithCode(fmt.Errorf("making the run's folder: %w", err), failure.Internal), "choose a folder that can be written: --out DIR")
}

// SetLatest makes runs/latest name the run, atomically: a symbolic link, or a file of one line where the system refuses links.
func SetLatest(runs, id string) error {
	path := filepath.Join(runs, LatestName)
	draft := path + "." + id + temporary
	for attempt := 1; ; attempt++ {
		_ = os.Remove(draft) // left by a crash; if it stays, the next line says why
		if err := os.Symlink(id, draft); err != nil {
			return writeFile(path, []byte(id+"\n"))
		}
		err := os.Rename(draft, path)
		if err == nil {
			return nil
		}
		_ = os.Remove(draft) // the error of the renaming is the one to report
		if !errors.Is(err, fs.ErrNotExist) || attempt == maxSwept {
			return writing(path, err)
		}
	}
}

// readLatest returns the id that runs/latest names, "" where there is none.
func readLatest(runs string) (string, error) {
	path := filepath.Join(runs, LatestName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		return filepath.Base(target), err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(data))
	if id == "" || id != filepath.Base(id) || id == "." || id == ".." {
		return "", failure.New(failure.Input, "%s names no run", path)
	}
	return id, nil
}

// Resolve returns the folder of the run that a user names: a folder, a run's id, "latest", a dataset's name (its newest run), or the beginning of exactly one id. Other names are an error of code Input that suggests the nearest.
func Resolve(runs, name string) (dir string, err error) {
	if name == "" {
		return "", failure.WithHint(failure.New(failure.Input, "the run has no name"), "latest, a run's id, a dataset's name or a folder")
	}
	if filepath.Base(name) == LatestName {
		if name != LatestName {
			runs, name = filepath.Dir(name), LatestName
		}
		id, err := readLatest(runs)
		if err != nil {
			return "", failure.WithCode(fmt.Errorf("finding the latest run: %w", err), failure.Input)
		}
		if id != "" && isRun(filepath.Join(runs, id)) {
			return filepath.Join(runs, id), nil
		}
	} else if isRun(name) {
		return name, nil
	} else if name == filepath.Base(name) && isRun(filepath.Join(runs, name)) {
		return filepath.Join(runs, name), nil
	}
	ids, err := listRuns(runs)
	if err != nil {
		return "", failure.WithCode(fmt.Errorf("listing the runs: %w", err), failure.Input)
	}
	if name == LatestName && len(ids) > 0 {
		// The link is lost, the runs are not.
		return newest(runs, ids), nil
	}
	if of := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return datasetOf(id) != name }); len(of) > 0 {
		return newest(runs, of), nil
	}
	beginning := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, name) })
	switch {
	case len(beginning) == 1:
		return filepath.Join(runs, beginning[0]), nil
	case len(beginning) > 1:
		return "", failure.WithHint(failure.New(failure.Input, "%d runs begin with %q", len(beginning), name), "%s", choices(beginning))
	}
	return "", unknownRun(name, ids)
}

func unknownRun(name string, ids []string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return failure.WithHint(failure.New(failure.Input, "%s is no folder of a run: it has no %s", filepath.Base(name), ManifestFile), "name the run's own folder, below the folder given by --out")
	}
	err := failure.New(failure.Input, "there is no run %q", name)
	if len(ids) == 0 {
		return failure.WithHint(err, "no run was made there yet: echoeval run, or say where they are with --out DIR")
	}
	known := []string{LatestName}
	for _, id := range ids {
		known = append(known, id, datasetOf(id))
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if nearest, ok := strict.Nearest(name, known); ok {
		return failure.WithHint(err, "did you mean %q?", nearest)
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	return failure.WithHint(err, "%s", choices(ids))
}

// choices lists the first names.
func choices(names []string) string {
	const most = 10
	text := "choices: " + strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func isRun(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, ManifestFile))
	return err == nil && info.Mode().IsRegular()
}

func datasetOf(id string) string {
	if m := idPattern.FindStringSubmatch(id); m != nil {
		return m[2]
	}
	return ""
}

// listRuns returns the ids of the runs below the folder, sorted; none where it is absent.
func listRuns(runs string) ([]string, error) {
	entries, err := os.ReadDir(runs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && idPattern.MatchString(e.Name()) && isRun(filepath.Join(runs, e.Name())) {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// newest returns the folder of the run that started last. Ids tell seconds apart, manifests what lies between.
func newest(runs string, ids []string) string {
	second := func(id string) string { return idPattern.FindStringSubmatch(id)[1] }
	last := slices.MaxFunc(ids, func(a, b string) int { return strings.Compare(second(a), second(b)) })
	tied := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return second(id) != second(last) })
	if len(tied) > 1 {
		last = slices.MaxFunc(tied, func(a, b string) int {
			return cmp.Or(startOf(runs, a).Compare(startOf(runs, b)), strings.Compare(a, b))
		})
	}
	return filepath.Join(runs, last)
}

// startOf is zero where the manifest cannot be read: such a run is older than any that can.
func startOf(runs, id string) time.Time {
	m, err := ReadManifest(filepath.Join(runs, id))
	if err != nil {
		return time.Time{}
	}
	return m.Started
}
