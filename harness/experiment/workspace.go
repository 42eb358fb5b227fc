package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/echoeval/echoeval/core/guard"
)

// workspaces makes the fresh workspaces of a run and knows the hashes of their originals. It is safe for concurrent use.
type workspaces struct {
	temp string // where the copies go
	root string // the project

	mu     sync.Mutex
	dir    string // of this run, below temp; "" before the first
	hashes map[string]*hashed
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

// space is the workspace of one item, made when a tool first asks for it.
type space struct {
	from *workspaces
	rel  string

	once sync.Once
	dir  string
	ws   *guard.Workspace
	err  error
}

func (w *workspaces) space(rel string) *space { return &space{from: w, rel: rel} }

func (s *space) get() (*guard.Workspace, error) {
	s.once.Do(func() {
		if s.dir, s.err = s.from.make(); s.err != nil {
			return
		}
		if s.rel != "" {
			if s.err = guard.CopyTree(filepath.Join(s.from.root, filepath.FromSlash(s.rel)), s.dir); s.err != nil {
				return
			}
		}
		s.ws, s.err = guard.NewWorkspace(s.dir)
	})
	return s.ws, s.err
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

func (w *workspaces) make() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		dir, err := os.MkdirTemp(w.temp, "echoeval-")
		if err != nil {
			return "", fmt.Errorf("making a workspace: %w", err)
		}
		w.dir = dir
	}
	dir, err := os.MkdirTemp(w.dir, "")
	if err != nil {
		return "", fmt.Errorf("making a workspace: %w", err)
	}
	return dir, nil
}

func (w *workspaces) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}
