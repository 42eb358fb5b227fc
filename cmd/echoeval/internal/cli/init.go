package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/reports/escape"
)

// initFiles is the project that init writes, with recordings made against the emulator.
//
//go:embed all:initfiles
var initFiles embed.FS

func newInit(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "init [DIR]", Short: "Write a small project that runs at once", GroupID: "files", Args: between(0, 1, "at most one folder"),
		Long: "Write a small project: a dataset, its agent and workspace, recordings of it, the emulator's script, and a recipe for CI. It runs without a key and without a network.\n\n" +
			"Nothing is overwritten: where one of its files exists already, nothing is written.",
		Example: "  echoeval init demo && cd demo && echoeval run datasets/quickstart.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return initProject(s, dir)
		},
	}
}

// initFile is one file of the project.
type initFile struct {
	name string // relative, with slashes
	data []byte
}

func initProject(s *State, dir string) error {
	if dir == "" {
		return usage("echoeval init demo", "the folder has no name")
	}
	files, err := projectFiles()
	if err != nil {
		return err
	}
	root := s.path(dir)
	if err := vacant(s, root, files); err != nil {
		return err
	}
	if err := writeProject(s, root, files); err != nil {
		return err
	}
	for _, f := range files {
		if _, err := fmt.Fprintln(s.Stdout, escape.Line(s.show(filepath.Join(root, filepath.FromSlash(f.name))))); err != nil {
			return unwritable(err)
		}
	}
	next := "echoeval run datasets/quickstart.yaml"
	if root != s.Dir {
		next = "cd " + quote(dir) + " && " + next
	}
	_, err = fmt.Fprintf(s.Stderr, "hint: %s\n", escape.Line(next))
	return unwritable(err)
}

// release matches the versions that can be installed by name.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// projectFiles are the files of the project, sorted. The recipe for CI installs the version that wrote it, where that is a release.
func projectFiles() ([]initFile, error) {
	var files []initFile
	root, err := fs.Sub(initFiles, "initfiles")
	if err != nil {
		return nil, failure.WithCode(err, failure.Internal)
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if release.MatchString(version()) && strings.HasPrefix(name, ".github/") {
			data = []byte(strings.ReplaceAll(string(data), "echoeval@latest", "echoeval@"+version()))
		}
		files = append(files, initFile{name, data})
		return err
	})
	return files, failure.WithCode(err, failure.Internal)
}

// vacant says which of the files exist.
func vacant(s *State, root string, files []initFile) error {
	var taken []string
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.name))
		if _, err := os.Lstat(path); err == nil {
			taken = append(taken, s.show(path))
		}
	}
	if len(taken) > 0 {
		return failure.WithHint(failure.New(failure.Input, "nothing was written, for it would overwrite %s", strings.Join(taken, ", ")), "choose another folder: echoeval init DIR")
	}
	return nil
}

// writeProject writes the files; where that fails it takes back what it has written.
func writeProject(s *State, root string, files []initFile) (err error) {
	var made []string // files and folders, in order
	defer func() {
		if err == nil {
			return
		}
		for len(made) > 0 {
			_ = os.Remove(made[len(made)-1])
			made = made[:len(made)-1]
		}
	}()
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.name))
		folders, err := makeFolders(filepath.Dir(path))
		made = append(made, folders...)
		if err == nil {
			err = writeNew(path, f.data)
		}
		if err != nil {
			code := failure.Internal
			if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
				code = failure.Input
			}
			return failure.WithHint(failure.New(code, "%s cannot be written: %s", s.show(path), failure.Reason(err)), "nothing was written; choose another folder: echoeval init DIR")
		}
		made = append(made, path)
	}
	return nil
}

// makeFolders makes a folder and those above it, and returns the ones that were not there, outermost first.
func makeFolders(dir string) (made []string, err error) {
	info, err := os.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return nil, syscall.ENOTDIR
		}
		return nil, nil
	}
	if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
		return nil, err
	}
	if made, err = makeFolders(filepath.Dir(dir)); err != nil {
		return made, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return made, err
	}
	return append(made, dir), nil
}

// writeNew writes a file that does not exist.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
