package program

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/failure"
)

// drain is how long the output of a program is waited for that has ended, where something that left its process group still holds it open.
const drain = 2 * time.Second

// process is a program that was started. Its fields output, flooded and state may be read once ended is closed.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr tail
	// answers are the lines of a worker; the channel is closed at the end of its output. It is nil for a program that runs once.
	answers chan answer
	// stop is closed when nobody wants further answers.
	stop  chan struct{}
	ended chan struct{}
	asked bool // a worker was asked before

	output  []byte
	flooded bool
	state   *os.ProcessState

	mu      sync.Mutex
	reaped  bool
	stopped bool
}

// answer is one line of a worker.
type answer struct {
	line []byte
	// more says that further output came along with the line.
	more    bool
	tooLong bool
}

func (p *Pool) start(c Command) (*process, error) {
	path, err := p.Find(c.Dir, c.Run[0])
	if err != nil {
		return nil, &Error{Unstarted: true, What: "cannot be started: " + err.Error()}
	}
	cmd := &exec.Cmd{Path: path, Args: c.Run, Dir: p.folder(c.Dir), Env: slices.Concat(p.env, c.Env), SysProcAttr: group()}
	proc := &process{cmd: cmd, stop: make(chan struct{}), ended: make(chan struct{})}
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	stderr, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, &Error{Unstarted: true, What: "cannot be started: " + failure.Reason(err)}
	}
	if err := cmd.Start(); err != nil {
		return nil, &Error{Unstarted: true, What: "cannot be started: " + startReason(err)}
	}
	limit(cmd.Process.Pid, p.opts.Limits)
	proc.in = stdin

	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(&proc.stderr, stderr) })
	if c.Lines {
		proc.answers = make(chan answer)
		readers.Go(func() { proc.readLines(stdout, p.opts.Limits.Output) })
	} else {
		readers.Go(func() { proc.readAll(stdout, p.opts.Limits.Output) })
	}
	go func() {
		state, err := cmd.Process.Wait()
		if err != nil {
			state = &os.ProcessState{}
		}
		proc.mu.Lock()
		killGroup(cmd.Process.Pid) // what it left running
		proc.reaped = true
		proc.mu.Unlock()
		timer := time.AfterFunc(drain, func() { _, _ = stdout.Close(), stderr.Close() })
		readers.Wait()
		timer.Stop()
		_, _, _ = stdin.Close(), stdout.Close(), stderr.Close()
		proc.state = state
		close(proc.ended)
	}()
	return proc, nil
}

// startReason says why the system refused to start a program.
func startReason(err error) string {
	if errors.Is(err, errFormat) {
		return "the system cannot execute it (does it begin with #! and the program that reads it?)"
	}
	if reason := failure.Reason(err); !strings.HasPrefix(reason, "no such file") {
		return reason
	}
	return "the program that its first line names, or its folder, does not exist"
}

func (p *process) readAll(r io.Reader, limit int) {
	p.output, _ = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(p.output) > limit {
		p.flooded = true
		p.kill()
	}
}

func (p *process) readLines(r io.Reader, limit int) {
	defer close(p.answers)
	in := bufio.NewReader(r)
	for {
		line, err := readLine(in, limit)
		if len(line) == 0 && err != nil {
			return
		}
		a := answer{line: line, more: waiting(in), tooLong: len(line) > limit}
		select {
		case p.answers <- a:
		case <-p.stop:
			return
		}
		if a.tooLong || err != nil {
			return
		}
	}
}

// waiting reports whether further output than white space was read already.
func waiting(r *bufio.Reader) bool {
	rest, err := r.Peek(r.Buffered())
	return err == nil && len(bytes.TrimSpace(rest)) > 0
}

// readLine reads a line without its end, or one byte more than the limit.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit+1 || len(line) == limit+1 && line[limit] != '\n' {
			return line[:limit+1], nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
			if len(line) == 0 {
				continue // an empty line is no answer
			}
		}
		return line, err
	}
}

// kill ends the program and everything in its process group.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd.Process.Pid)
	}
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
}

// finish ends the input of a worker and takes no further answers.
func (p *process) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.in.Close()
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
}

// ending says how the program ended.
func (p *process) ending() string {
	if code := p.state.ExitCode(); code >= 0 {
		return fmt.Sprintf("ended with code %d", code)
	}
	return "was ended by a signal (" + strings.TrimPrefix(p.state.String(), "signal: ") + ")"
}

// parting says what a worker did whose output has ended.
func (p *process) parting() string {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.ending() + " in place of an answer"
	case <-timer.C:
		p.kill()
		<-p.ended
		return "closed its output in place of an answer"
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if extra := len(t.buf) - maxStderr; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
		t.cut = true
	}
	return len(b), nil
}

func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf, t.cut = t.buf[:0], false
}

// text is what was kept. Where something is missing before it, it begins after the first white space: half a secret would not be recognized.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.buf)
	if t.cut {
		text = text[strings.IndexAny(text+" ", " \t\r\n"):]
	}
	return text
}

// absolute matches absolute paths and keeps what stands before them and their last element.
var absolute = regexp.MustCompile(`(^|[\s"'(=\[<])/(?:[^\s"'():/]+/)+([^\s"'():/]*)`)

// clean takes out of standard error what must not be written: secrets, and the places where things lie on this machine. A path below the root becomes relative to it, of others the last element is left.
func (p *Pool) clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if p.opts.Redact != nil {
		text = p.opts.Redact(text)
	}
	text = strings.ReplaceAll(text, p.opts.Root+string(os.PathSeparator), "")
	text = absolute.ReplaceAllString(text, "$1$2")
	return strings.TrimSpace(text)
}
