// Package program asks other programs: it starts them, gives each question as JSON on standard input and takes the answer from standard output.
//
// A program runs once per question, which ends with its input, or serves as a worker that answers a line for each line. It is started without a shell, in the folder of the file that names it, in a process group of its own, with an environment that holds neither keys nor proxies,
// and within [Limits]. What it leaves running is killed when it ends. That bounds accidents; it is no sandbox: a program can read the user's files and open connections.
//
// A program that cannot be asked gives an [Error]; whoever asks decides what that means.
package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
)

// Limits bound one program.
type Limits struct {
	// Time is how long an answer may take, the start of the program included; 0 leaves it to the context.
	Time time.Duration
	// Output is how many bytes an answer may have.
	Output int
	// Memory is how many bytes of data each of its processes may hold; 0 is no limit. It is set on Linux only, as RLIMIT_DATA: what a run-time system reserves and does not use does not count.
	Memory uint64
}

// DefaultLimits are those of checks: 10 seconds, 1 MiB of output, 1 GiB of memory.
var DefaultLimits = Limits{Time: 10 * time.Second, Output: 1 << 20, Memory: 1 << 30}

// maxStderr is how many bytes from the end of standard error are kept.
const maxStderr = 4 << 10

// Command is a program with its arguments.
type Command struct {
	// Dir is the folder of the file that names the program, relative to the project's root, with slashes. The program starts there.
	Dir string
	// Run is the program, see [Pool.Find], and its arguments.
	Run []string
	// Lines says that the program stays and answers a line for each line.
	Lines bool
	// Env are variables, NAME=value, beside those that every program of the pool gets.
	Env []string
}

// Error says why a program gave no answer.
type Error struct {
	// What happened, such as "ended with code 3".
	What string
	// Stderr is the end of what it wrote to standard error, at most 4 KiB, redacted.
	Stderr string
	// Unstarted says that the system could not start it.
	Unstarted bool
	// Ended is how it ended by itself, without success and without having said anything, such as "ended with code 3"; else "".
	Ended string
}

// Error gives what happened and the end of standard error, at most 400 characters of it.
func (e *Error) Error() string {
	text := "the program " + e.What
	shown := e.Stderr
	if extra := utf8.RuneCountInString(shown) - 400; extra > 0 {
		for range extra {
			_, n := utf8.DecodeRuneInString(shown)
			shown = shown[n:]
		}
		shown = "…" + shown
	}
	if shown != "" {
		text += ": " + shown
	}
	return text
}

// Options are what a [Pool] needs to know.
type Options struct {
	// Root is the absolute folder of the project.
	Root string
	// Environ is the environment of the command, NAME=value. Programs get only part of it, see [Environment].
	Environ []string
	// Limits bound each program; zero means [DefaultLimits].
	Limits Limits
	// Redact takes secrets out of standard error; nil keeps the text.
	Redact func(string) string
}

// Pool starts programs and keeps the workers among them until it is closed. It is safe for concurrent use; each worker has one question at a time.
type Pool struct {
	opts Options
	env  []string

	mu     sync.Mutex
	closed bool
	idle   map[string][]*process
	found  map[string]found
}

type found struct {
	path string
	err  error
}

// NewPool returns a pool without processes.
func NewPool(opts Options) *Pool {
	if opts.Limits == (Limits{}) {
		opts.Limits = DefaultLimits
	}
	return &Pool{opts: opts, env: Environment(opts.Environ), idle: map[string][]*process{}, found: map[string]found{}}
}

// passed are the variables that programs get as they are. The second line is what Windows needs to start anything.
var passed = []string{
	"PATH", "HOME", "TMPDIR",
	"SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE",
}

// Environment returns what a program gets of an environment: PATH, HOME, TMPDIR, what Windows needs, and in every case LANG=C.UTF-8 and TZ=UTC, so that a program says the same on every machine.
func Environment(environ []string) []string {
	last := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && slices.Contains(passed, name) && value != "" {
			last[name] = value
		}
	}
	last["LANG"], last["TZ"] = "C.UTF-8", "UTC"
	out := make([]string, 0, len(last))
	for _, name := range slices.Sorted(maps.Keys(last)) {
		out = append(out, name+"="+last[name])
	}
	return out
}

// Find returns the file that is started for a name in a folder relative to the root, and starts nothing. A name with a slash is a path from that folder; another is looked for on the PATH. The error bears a hint.
func (p *Pool) Find(dir, name string) (string, error) {
	key := dir + "\x00" + name
	p.mu.Lock()
	f, ok := p.found[key]
	p.mu.Unlock()
	if !ok {
		f.path, f.err = p.find(dir, name)
		p.mu.Lock()
		p.found[key] = f
		p.mu.Unlock()
	}
	return f.path, f.err
}

func (p *Pool) find(dir, name string) (string, error) {
	folder := p.folder(dir)
	if strings.ContainsAny(name, `/`+string(filepath.Separator)) {
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		switch found, err := executable(path, p.env); {
		case err == nil:
			return found, nil
		case errors.Is(err, errNotExecutable):
			return "", failure.WithHint(fmt.Errorf("%s is not executable", name), "chmod +x %s, or name the program that reads it: [python3, %s]", name, name)
		default:
			return "", failure.WithHint(fmt.Errorf("there is no program %s", name), "a path is relative to the folder of the file that names it")
		}
	}
	for _, entry := range filepath.SplitList(value(p.env, "PATH")) {
		if !filepath.IsAbs(entry) {
			continue
		}
		if found, err := executable(filepath.Join(entry, name), p.env); err == nil {
			return found, nil
		}
	}
	err := fmt.Errorf("there is no program %q on the PATH", name)
	if _, beside := executable(filepath.Join(folder, name), p.env); beside == nil {
		return "", failure.WithHint(err, "one stands beside the file: ./%s", name)
	}
	return "", failure.WithHint(err, "install it, or give a path from the folder of the file that names it: ./%s", name)
}

func (p *Pool) folder(dir string) string { return filepath.Join(p.opts.Root, filepath.FromSlash(dir)) }

func value(env []string, name string) string {
	for _, entry := range env {
		if key, v, ok := strings.Cut(entry, "="); ok && key == name {
			return v
		}
	}
	return ""
}

// errTime is the cause of the end of a program that took too long.
var errTime = errors.New("the time is over")

// Run asks a program and returns what it wrote: all of standard output of a program that runs once, one line of a worker without its end. The question is JSON without line ends.
//
// The error is an [*Error], or the cause of ctx where that ended first.
func (p *Pool) Run(ctx context.Context, c Command, question []byte) ([]byte, error) {
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	limited, cancel := p.limit(ctx)
	defer cancel()
	if !c.Lines {
		out, _, err := p.once(limited, c, question)
		return out, err
	}
	key := c.Dir + "\x00" + strings.Join(c.Run, "\x00")
	for w := p.take(key); w != nil; w = p.take(key) {
		out, err := p.exchange(limited, w, key, question)
		var gone *goneError
		if errors.As(err, &gone) {
			continue // it had ended, or ends after each answer; only a fresh one tells whether the question is to blame
		}
		return out, err
	}
	w, err := p.start(c)
	if err != nil {
		return nil, err
	}
	out, err := p.exchange(limited, w, key, question)
	var gone *goneError
	if errors.As(err, &gone) {
		return nil, gone.err
	}
	return out, err
}

func (p *Pool) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.opts.Limits.Time == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, p.opts.Limits.Time, errTime)
}

// Once asks a program that runs once, as [Pool.Run] does, and returns the end of its standard error, redacted, too.
func (p *Pool) Once(ctx context.Context, c Command, question []byte) (out []byte, stderr string, err error) {
	if cause := context.Cause(ctx); cause != nil {
		return nil, "", cause
	}
	limited, cancel := p.limit(ctx)
	defer cancel()
	return p.once(limited, c, question)
}

func (p *Pool) once(ctx context.Context, c Command, question []byte) ([]byte, string, error) {
	proc, err := p.start(c)
	if err != nil {
		return nil, "", err
	}
	go func() {
		// A program may answer without reading all it is told.
		_, _ = proc.in.Write(question)
		_ = proc.in.Close()
	}()
	select {
	case <-proc.ended:
	case <-ctx.Done():
		proc.kill()
		<-proc.ended
		return nil, p.clean(proc.stderr.text()), p.late(ctx, proc, "")
	}
	switch {
	case proc.flooded:
		return nil, "", p.fault(proc, "wrote more than "+size(p.opts.Limits.Output))
	case !proc.state.Success():
		fault := p.fault(proc, proc.ending())
		if len(proc.output) == 0 {
			fault.Ended = proc.ending()
		}
		return nil, "", fault
	}
	return proc.output, p.clean(proc.stderr.text()), nil
}

// goneError says that a worker ended without an answer.
type goneError struct{ err error }

func (e *goneError) Error() string { return e.err.Error() }

// patience is how long a worker may leave a question unread that it has answered.
const patience = 100 * time.Millisecond

// exchange asks a worker and gives it back to the pool where it can be asked again.
func (p *Pool) exchange(ctx context.Context, w *process, key string, question []byte) ([]byte, error) {
	line, again, err := p.ask(ctx, w, question)
	if again {
		p.give(key, w)
	}
	return line, err
}

// ask asks a worker; again says that it can be asked further questions. Where it cannot, it is killed.
func (p *Pool) ask(ctx context.Context, w *process, question []byte) (line []byte, again bool, err error) {
	if w.asked {
		w.stderr.reset() // of the first question it is all that it has written since it started
	}
	w.asked = true
	wrote := make(chan error, 1)
	go func() {
		_, err := w.in.Write(append(slices.Clip(question), '\n'))
		wrote <- err
	}()
	select {
	case a, ok := <-w.answers:
		switch {
		case !ok:
			fault := p.fault(w, w.parting())
			if ended := w.ending(); !w.state.Success() && strings.HasPrefix(fault.What, ended) {
				fault.Ended = ended
			}
			return nil, false, &goneError{fault}
		case a.tooLong:
			w.kill()
			<-w.ended
			return nil, false, p.fault(w, "wrote more than "+size(p.opts.Limits.Output))
		case a.more:
			w.kill()
			<-w.ended
			return nil, false, p.fault(w, "wrote more than one line")
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case err := <-wrote:
			if err == nil {
				return a.line, true, nil
			}
		case <-timer.C:
		}
		w.kill()
		return a.line, false, nil
	case <-ctx.Done():
		w.kill()
		<-w.ended
		return nil, false, p.late(ctx, w, " (a worker reads a line, answers it and flushes its output)")
	}
}

// late is the error of a program that the end of ctx has cut off.
func (p *Pool) late(ctx context.Context, proc *process, advice string) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errTime) {
		return cause
	}
	return p.fault(proc, fmt.Sprintf("did not answer within %s%s", p.opts.Limits.Time, advice))
}

func (p *Pool) fault(proc *process, what string) *Error {
	return &Error{What: what, Stderr: p.clean(proc.stderr.text())}
}

// take returns an idle worker that can be asked, or nil.
func (p *Pool) take(key string) *process {
	for {
		p.mu.Lock()
		list := p.idle[key]
		if len(list) == 0 {
			p.mu.Unlock()
			return nil
		}
		w := list[len(list)-1]
		p.idle[key] = list[:len(list)-1]
		p.mu.Unlock()
		select {
		case <-w.answers: // ended, or said something that nobody asked
			w.kill()
		default:
			return w
		}
	}
}

func (p *Pool) give(key string, w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		w.kill()
		return
	}
	p.idle[key] = append(p.idle[key], w)
}

// grace is how long workers may take to end once their input has.
const grace = 500 * time.Millisecond

// Close ends the workers: their input ends, and what does not end with it is killed. No program of the pool is left when it returns. Run must not be called afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var all []*process
	for _, list := range p.idle {
		all = append(all, list...)
	}
	clear(p.idle)
	p.mu.Unlock()
	for _, w := range all {
		w.finish()
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	over := false
	for _, w := range all {
		if !over {
			select {
			case <-w.ended:
			case <-timer.C:
				over = true
			}
		}
		w.kill()
		<-w.ended
	}
}

func size(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
