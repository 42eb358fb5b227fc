package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/echoeval/echoeval/core/claim"
	"github.com/echoeval/echoeval/core/guard"
)

// workspaces makes the fresh workspaces of a run and knows the hashes of their originals. It is safe for concurrent use.
type workspaces struct {
	temp string // where the copies go
	root string // the project

	mu        sync.Mutex
	dir       string   // of this run, below temp; "" before the first
	lock      *os.File // in dir: claimed as long as the run lives
	hashes    map[string]*hashed
	originals map[string]*guard.Workspace
}

type hashed struct {
	once sync.Once
	sum  string
	err  error
}

// hash is the hash of the folder rel, taken once a run.
func (w *workspaces) hash(rel string) (string, error) {
	w.mu.Lock()
	if w.hashes == nil {
		w.hashes = map[string]*hashed{}
	}
	h := w.hashes[rel]
	if h == nil {
		h = &hashed{}
		w.hashes[rel] = h
	}
	w.mu.Unlock()
	h.once.Do(func() { h.sum, h.err = guard.HashTree(filepath.Join(w.root, filepath.FromSlash(rel))) })
	return h.sum, h.err
}

// space is the workspace of one item. While the item only reads, it sees the original; its own copy is made when it first writes.
type space struct {
	from *workspaces
	rel  string

	mu  sync.Mutex
	dir string // of the copy
	ws  *guard.Workspace
	err error
}

func (w *workspaces) space(rel string) *space { return &space{from: w, rel: rel} }

func (s *space) get(access guard.Access) (*guard.Workspace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ws != nil || s.err != nil:
	case access&guard.Write == 0:
		return s.from.original(s.rel)
	default:
		s.err = s.copy()
	}
	return s.ws, s.err
}

func (s *space) copy() (err error) {
	if s.dir, err = s.from.make(); err != nil {
		return err
	}
	if s.rel != "" {
		if err := guard.CopyTree(filepath.Join(s.from.root, filepath.FromSlash(s.rel)), s.dir); err != nil {
			return err
		}
	}
	s.ws, err = guard.NewWorkspace(s.dir)
	return err
}

// files are the item's files as it found them and as it left them.
func (s *space) files() (before, after fs.FS, err error) {
	original, err := s.from.original(s.rel)
	if err != nil {
		return nil, nil, err
	}
	now, err := s.get(guard.Read)
	if err != nil {
		return nil, nil, err
	}
	return original.Files(), now.Files(), nil
}

// close removes the copy.
func (s *space) close() error {
	var err error
	if s.ws != nil {
		err = s.ws.Close()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// original opens the folder that items start from, once a run; "" is an empty folder. Nothing is ever written through it.
func (w *workspaces) original(rel string) (*guard.Workspace, error) {
	w.mu.Lock()
	ws := w.originals[rel]
	w.mu.Unlock()
	if ws != nil {
		return ws, nil
	}
	dir := filepath.Join(w.root, filepath.FromSlash(rel))
	if rel == "" {
		var err error
		if dir, err = w.make(); err != nil {
			return nil, err
		}
	}
	ws, err := guard.NewWorkspace(dir)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.originals[rel]; first != nil {
		return first, ws.Close()
	}
	if w.originals == nil {
		w.originals = map[string]*guard.Workspace{}
	}
	w.originals[rel] = ws
	return ws, nil
}

func (w *workspaces) make() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		sweep(w.temp)
		if err := w.begin(); err != nil {
			return "", fmt.Errorf("making a workspace: %w", err)
		}
	}
	dir, err := os.MkdirTemp(w.dir, "")
	if err != nil {
		return "", fmt.Errorf("making a workspace: %w", err)
	}
	return dir, nil
}

// Workspaces of a run lie in a folder of this name, which holds a file that the run claims.
const (
	runPattern = "echoeval-run-*"
	lockName   = "lock"
)

// begin makes the folder of the run, so that no sweep of another run removes it.
func (w *workspaces) begin() error {
	for {
		dir, err := os.MkdirTemp(w.temp, runPattern)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue // a sweep has taken it already
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		if claim.Take(f) && claim.Present(f) {
			w.dir, w.lock = dir, f
			return nil
		}
		// A sweep came between the making and the claim.
		if err := errors.Join(f.Close(), os.RemoveAll(dir)); err != nil {
			return err
		}
	}
}

// sweep removes the workspaces of runs that were killed. It never fails: what cannot be removed does no harm.
func sweep(temp string) {
	dirs, err := filepath.Glob(filepath.Join(temp, runPattern))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		// One without a lock was being removed when that sweep was killed, or is just being made; who makes it makes another then.
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			continue
		}
		if claim.Take(f) {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

func (w *workspaces) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	for _, ws := range w.originals {
		err = errors.Join(err, ws.Close())
	}
	w.originals = nil
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir), w.lock.Close())
	}
	return err
}
