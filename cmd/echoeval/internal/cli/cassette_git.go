package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
)

// revision is the cassettes of a dataset as a revision of git has them. It reads objects through one process of git and touches neither the index nor the working tree.
type revision struct {
	name   string // as it was typed
	commit string
	folder string // of the dataset's cassettes, from the top of the repository, with slashes
	git    func(args ...string) *exec.Cmd
	ask    func(args ...string) (string, error) // git's answer without the line end

	batch *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

// openRevision resolves a revision of the repository that the project lies in.
func openRevision(s *State, p *planned, base, name string) (*revision, error) {
	folderHint := "or name a folder of cassettes"
	if strings.HasPrefix(name, "-") || name == "" {
		return nil, usage("echoeval cassette diff origin/main "+quote(p.dataset.File), "%q is no revision", name)
	}
	rel, err := filepath.Rel(p.dataset.Root, base)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, failure.WithHint(failure.New(failure.Input, "the cassettes lie outside of the project, where no revision has them"), "name the folder to compare with")
	}
	r := &revision{name: name}
	r.git = func(args ...string) *exec.Cmd { return gitCommand(s, p.dataset.Root, args...) }
	r.ask = func(args ...string) (string, error) {
		out, err := git(s, p.dataset.Root, args...)
		return strings.TrimSuffix(strings.TrimSuffix(string(out), "\n"), "\r"), err
	}
	prefix, err := r.ask("rev-parse", "--show-prefix")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, failure.WithHint(failure.New(failure.Input, "%s is no folder, and to read a revision git is needed, which is not installed", name), "install git, %s", folderHint)
	case err != nil:
		return nil, failure.WithHint(failure.New(failure.Input, "%s is no folder, and the project lies in no repository of git: %w", name, err), "check the path, %s", folderHint)
	}
	r.commit, err = r.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil || r.commit == "" {
		return nil, failure.WithHint(failure.New(failure.Input, "%s is neither a folder nor a revision of this repository", name), "git fetch may bring it; git branch -a and git tag list what there is")
	}
	r.folder = path.Join(filepath.ToSlash(prefix), filepath.ToSlash(rel), p.dataset.Name)
	return r, nil
}

func (r *revision) list() ([]string, error) {
	listed, err := r.ask("--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", "--full-tree", r.commit, "--", r.folder)
	if err != nil {
		return nil, failure.New(failure.Input, "listing the cassettes of %s: %w", r.name, err)
	}
	var out []string
	for file := range strings.SplitSeq(listed, "\x00") {
		if rel, below := strings.CutPrefix(file, r.folder+"/"); below && strings.HasSuffix(rel, ".yaml") {
			out = append(out, rel)
		}
	}
	return out, nil
}

func (r *revision) read(file string) (*cassette.File, error) {
	display := r.name + ":" + file
	if strings.ContainsAny(file, "\n\r") {
		return nil, failure.At(failure.Position{File: display}, failure.Cassette, "no cassette of ours has a line end in its name")
	}
	data, err := r.object(r.commit + ":" + r.folder + "/" + file)
	if err != nil {
		return nil, failure.At(failure.Position{File: display}, failure.Cassette, "%w", err)
	}
	return cassette.Decode(data, display)
}

// maxObject bounds what is read of one object: more no cassette may have.
const maxObject = 256 << 20

// object reads one object through `git cat-file --batch`, which is started at the first.
func (r *revision) object(name string) ([]byte, error) {
	if r.batch == nil {
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	if _, err := fmt.Fprintln(r.in, name); err != nil {
		return nil, fmt.Errorf("git cat-file ended: %w", err)
	}
	header, err := r.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file ended: %w", err)
	}
	words := strings.Fields(header)
	if len(words) < 3 || words[len(words)-2] != "blob" {
		return nil, fs.ErrNotExist
	}
	size, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	if err != nil || size < 0 {
		return nil, fmt.Errorf("git cat-file says %q", strings.TrimSpace(header))
	}
	if size > maxObject {
		_, err := io.CopyN(io.Discard, r.out, size+1)
		return nil, errors.Join(fmt.Errorf("%d MiB are more than a cassette may have", size>>20), err)
	}
	data := make([]byte, size+1) // with the line end that follows the object
	if _, err := io.ReadFull(r.out, data); err != nil {
		return nil, fmt.Errorf("git cat-file ended: %w", err)
	}
	return data[:size], nil
}

func (r *revision) start() error {
	cmd := r.git("cat-file", "--batch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.batch, r.in, r.out = cmd, in, bufio.NewReader(out)
	return nil
}

func (r *revision) close() error {
	if r.batch == nil {
		return nil
	}
	if err := errors.Join(r.in.Close(), r.batch.Wait()); err != nil {
		return failure.New(failure.Internal, "git cat-file: %w", err)
	}
	return nil
}
