package program

import (
	"context"
	"errors"
	"time"
)

// Worker is a program that stays and is held by one caller, who asks it one question after the other. It is not safe for concurrent use. The pool does not know it: whoever started it closes it.
type Worker struct {
	pool *Pool
	proc *process
	over bool
}

// Start starts a worker. The error is an [*Error].
func (p *Pool) Start(c Command) (*Worker, error) {
	c.Lines = true
	proc, err := p.start(c)
	if err != nil {
		return nil, err
	}
	return &Worker{pool: p, proc: proc}, nil
}

// Ask gives the worker a line and returns the line that it answers, as [Pool.Run] does. After an error the worker is over.
func (w *Worker) Ask(ctx context.Context, question []byte) ([]byte, error) {
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	limited, cancel := w.pool.limit(ctx)
	defer cancel()
	line, again, err := w.pool.ask(limited, w.proc, question)
	w.over = !again
	var gone *goneError
	if errors.As(err, &gone) {
		err = gone.err
	}
	return line, err
}

// Ready reports whether the worker can be asked: it lives and has said nothing that nobody asked.
func (w *Worker) Ready() bool {
	if w.over {
		return false
	}
	select {
	case <-w.proc.answers:
		w.over = true
	default:
	}
	return !w.over
}

// Stderr is the end of what the worker wrote to standard error since the last question, redacted.
func (w *Worker) Stderr() string { return w.pool.clean(w.proc.stderr.text()) }

// Kill ends the worker and everything in its process group, and waits for it.
func (w *Worker) Kill() {
	w.over = true
	w.proc.kill()
	<-w.proc.ended
}

// Close ends the worker's input, and kills what has not ended with it half a second later.
func (w *Worker) Close() {
	w.over = true
	w.proc.finish()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-w.proc.ended:
	case <-timer.C:
	}
	w.Kill()
}
