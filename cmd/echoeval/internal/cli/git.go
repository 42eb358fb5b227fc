package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
)

// gitCommit reads the commit of the repository that root lies in, without starting git; nil where there is none.
func gitCommit(root string) *results.Git {
	for dir := root; ; dir = filepath.Dir(dir) {
		if git, ok := gitFolder(filepath.Join(dir, ".git")); ok {
			commit := headCommit(git)
			if commit == "" {
				return nil
			}
			return &results.Git{Commit: commit}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// gitFolder follows the file that stands in place of the folder in a worktree.
func gitFolder(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return path, true
	}
	data, err := os.ReadFile(path)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !ok {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return dir, true
}

func headCommit(git string) string {
	read := func(elem ...string) string {
		data, err := os.ReadFile(filepath.Join(elem...))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(data))
	}
	head := read(git, "HEAD")
	ref, symbolic := strings.CutPrefix(head, "ref: ")
	if !symbolic {
		return head
	}
	common := git
	if c := read(git, "commondir"); c != "" {
		common = filepath.Join(git, c)
	}
	for _, dir := range []string{git, common} {
		if commit := read(dir, filepath.FromSlash(ref)); commit != "" {
			return commit
		}
	}
	for line := range strings.Lines(read(common, "packed-refs")) {
		if commit, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return commit
		}
	}
	return ""
}

// gitCommand prepares git in a folder: messages are matched in no language, and nothing is locked, fetched or asked for.
func gitCommand(s *State, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(s.Environ), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	return cmd
}

// git runs git in a folder and gives what it says. Where it cannot be started the error satisfies errors.Is(err, exec.ErrNotFound).
func git(s *State, dir string, args ...string) ([]byte, error) {
	cmd := gitCommand(s, dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return out, nil
	case !errors.As(err, &exited):
		return nil, failure.WithHint(failure.New(failure.Input, "git cannot be started: %w", err), "install git, or name a file")
	}
	said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	if said == "" {
		said = "it failed"
	}
	return nil, failure.New(failure.Input, "git %s: %s", args[0], strings.TrimPrefix(said, "fatal: "))
}
