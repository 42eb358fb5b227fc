// Package cli is the command line: one file per command, the tables of providers, tools and reports, and [State], the only door to the process.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/echoeval/echoeval/core/clock"
)

// State is everything that a command may know of the process: arguments, environment, streams, the current folder, the clock and the signals. Nothing below this package asks the operating system for any of it.
type State struct {
	Args    []string // without the program's name
	Environ []string // NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Dir is the current folder, absolute.
	Dir      string
	Hostname string
	Clock    clock.Clock
	// Interrupts delivers SIGINT and SIGTERM; LetThrough gives them back to the system, which ends the process.
	Interrupts <-chan os.Signal
	LetThrough func()
	// StdoutWidth and StderrWidth are the widths of the terminals behind the streams, 0 where they are none.
	StdoutWidth, StderrWidth int
}

// System returns the state of the real process.
func System() *State {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	hostname, _ := os.Hostname()
	s := &State{Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Dir: dir, Hostname: hostname, Clock: clock.Wall{}, Interrupts: signals, LetThrough: func() { signal.Stop(signals) }}
	s.StdoutWidth, s.StderrWidth = s.width(os.Stdout), s.width(os.Stderr)
	return s
}

func (s *State) width(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) || s.Getenv("TERM") == "dumb" {
		return 0
	}
	if n, err := strconv.Atoi(s.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// Getenv returns the value of an environment variable, "" where it is not set. Of several entries the last counts.
func (s *State) Getenv(name string) string {
	value, _ := s.lookupEnv(name)
	return value
}

// lookupEnv says beside that whether the variable is set at all.
func (s *State) lookupEnv(name string) (value string, set bool) {
	for _, entry := range slices.Backward(s.Environ) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// tableWidth is the width that tables are made for.
func (s *State) tableWidth() int {
	if s.StdoutWidth > 0 {
		return s.StdoutWidth
	}
	if n, err := strconv.Atoi(s.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 120
}

// color says whether stdout takes colours: on a terminal unless NO_COLOR is set, elsewhere only where CLICOLOR_FORCE asks for them.
func (s *State) color(off bool) bool {
	if off || s.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := s.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return s.StdoutWidth > 0
}

// ci says whether a CI system runs the command.
func (s *State) ci() bool {
	value := s.Getenv("CI")
	return value != "" && value != "false"
}

// path makes a path of the command line absolute.
func (s *State) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(s.Dir, p)
}

// show gives a path as the user would type it: relative to the current folder where it lies below.
func (s *State) show(p string) string {
	if rel, err := filepath.Rel(s.Dir, p); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return p
}

// interruptible returns a context that ends at the first interrupt, so that what is finished can be saved. The second one ends the process.
func (s *State) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		select {
		case <-s.Interrupts:
			s.LetThrough()
			cancel(errInterrupted)
		case <-done:
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// temp is the folder for temporary files.
func (s *State) temp() string {
	if dir := s.Getenv("TMPDIR"); dir != "" {
		return dir
	}
	return os.TempDir()
}
