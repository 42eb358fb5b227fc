package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/harness/program"
)

// Spec is a program under test.
type Spec struct {
	// Key tells specs apart: those of one key share workers.
	Key string
	// Command is the program and its arguments, Dir the folder that it starts in, relative to the project's root, with slashes.
	Command []string
	Dir     string
	// Lines keeps a process that answers a line for each turn; else each turn has a process.
	Lines bool
	// Env are variables with their values, EnvFrom the names of those that are passed on.
	Env     map[string]string
	EnvFrom []string
	// Proxy are the addresses of services to record, by variable; that of a vendor is named by the vendor's own variable.
	Proxy map[string]string
	// Bases are addresses of vendors that differ from those of the table, by name.
	Bases map[string]string
}

// Options are what a [Pool] needs to know.
type Options struct {
	// Root is the absolute folder of the project.
	Root string
	// Environ is the environment of the command, NAME=value.
	Environ []string
	// Mode is what ECHOEVAL_MODE says: replay, record, extend or live.
	Mode string
	Seed uint64
	// Redact takes secrets out of what programs write to standard error; nil keeps the text.
	Redact func(string) string
	// Live gives what dials a service; nil, as in replay, where nothing may be dialled.
	Live func(Service) (http.RoundTripper, error)
	// Local says that the vendor of that name is dialled on this machine, where a key is needed only for its form; nil says so of none.
	Local func(vendor string) bool
}

// maxAnswer is how many bytes an answer may have.
const maxAnswer = 16 << 20

// Pool starts programs under test and keeps their workers until it is closed. It is safe for concurrent use.
type Pool struct {
	opts     Options
	programs *program.Pool

	mu     sync.Mutex
	idle   map[string][]*Worker
	probes map[string]func() *program.Error // how the program of a spec ends without a question, by key
}

// NewPool returns a pool without processes.
func NewPool(opts Options) *Pool {
	return &Pool{
		opts: opts, idle: map[string][]*Worker{}, probes: map[string]func() *program.Error{},
		programs: program.NewPool(program.Options{Root: opts.Root, Environ: opts.Environ, Redact: opts.Redact, Limits: program.Limits{Output: maxAnswer}}),
	}
}

// Find looks for the program of a spec and starts nothing; the error bears a hint.
func (p *Pool) Find(s *Spec) error {
	_, err := p.programs.Find(s.Dir, s.Command[0])
	return err
}

// Worker is a recorder, and the program behind it. It serves one item at a time and is used by one goroutine.
type Worker struct {
	pool     *Pool
	spec     *Spec
	recorder *recorder
	process  *program.Worker // of lines, once it was started
	item     *underWay
	broken   bool
}

// Fault says what a program did in place of an answer. It is the program's own failure.
type Fault struct {
	// What it did, such as "ended with code 3".
	What string
	// Stderr is the end of what it wrote to standard error, redacted.
	Stderr string
	// Cut says that it was killed because its time was over.
	Cut bool
	// Unstarted says that the program never came as far as the question: the system could not start it, or it ends the same way without one. That is no failure of the agent.
	Unstarted bool
}

// Error says what happened, and the end of standard error.
func (f *Fault) Error() string { return (&program.Error{What: f.What, Stderr: f.Stderr}).Error() }

// Take returns a worker for an item: one that is idle, or a new one. [Pool.Give] gives it back.
func (p *Pool) Take(s *Spec, item Item) (*Worker, error) {
	w := p.take(s)
	if w == nil {
		r, err := newRecorder(s, p.opts.Live)
		if err != nil {
			return nil, err
		}
		w = &Worker{pool: p, spec: s, recorder: r}
	}
	w.item = &underWay{Item: item}
	w.recorder.serve(w.item)
	return w, nil
}

func (p *Pool) take(s *Spec) *Worker {
	for {
		p.mu.Lock()
		list := p.idle[s.Key]
		if len(list) == 0 {
			p.mu.Unlock()
			return nil
		}
		w := list[len(list)-1]
		p.idle[s.Key] = list[:len(list)-1]
		p.mu.Unlock()
		if w.process == nil || w.process.Ready() {
			return w
		}
		w.close()
	}
}

// Give gives a worker back when its item has ended.
func (p *Pool) Give(w *Worker) {
	w.recorder.serve(nil)
	w.item = nil
	if w.broken {
		w.close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[w.spec.Key] = append(p.idle[w.spec.Key], w)
}

// Close ends all idle workers. No process of the pool is left when it returns, and no listener.
func (p *Pool) Close() {
	p.mu.Lock()
	var all []*Worker
	for _, key := range slices.Sorted(maps.Keys(p.idle)) {
		all = append(all, p.idle[key]...)
	}
	clear(p.idle)
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, w := range all {
		closing.Go(w.close)
	}
	closing.Wait()
	p.programs.Close()
}

func (w *Worker) close() {
	if w.process != nil {
		w.process.Close()
		w.process = nil
	}
	w.recorder.close()
}

// patience is how long a program may go on after something that no answer can mend.
const patience = time.Second

// Ask gives the program a question, a line of JSON, and returns what it answered and the end of its standard error. now is the time of the item's clock.
//
// The error is a [*Fault]; or the cause of ctx, where that ended first and the program was killed; or what made any answer void, such as the miss of a replay. A worker whose program failed is not used again. Requests that are still under way are given a moment, and cut off.
func (w *Worker) Ask(ctx context.Context, question []byte, now time.Time) (out []byte, stderr string, err error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.item.begin(limited, func(err error) { time.AfterFunc(patience, func() { cancel(err) }) })
	out, stderr, err = w.ask(limited, question, now)
	w.item.end()
	w.item.mu.Lock()
	lost := w.item.err
	w.item.answered = w.item.answered || err == nil
	w.item.mu.Unlock()
	if lost != nil {
		w.broken = w.broken || err != nil
		return nil, "", lost
	}
	var fault *program.Error
	if errors.As(err, &fault) {
		err = &Fault{What: fault.What, Stderr: fault.Stderr, Unstarted: fault.Unstarted || w.endsAlike(ctx, fault, now)}
	}
	w.broken = w.broken || err != nil
	return out, stderr, err
}

// probeTimeout bounds the one start without a question.
const probeTimeout = 10 * time.Second

// endsAlike reports whether a program that has ended by itself, and has sent no request for the item, ends the same way where it is asked nothing. That is tried once for each spec; a difference in numbers alone, such as times and process ids, is none.
func (w *Worker) endsAlike(ctx context.Context, fault *program.Error, now time.Time) bool {
	if fault.Ended == "" || w.item.begun() {
		return false
	}
	w.pool.mu.Lock()
	probe := w.pool.probes[w.spec.Key]
	if probe == nil {
		probe = sync.OnceValue(func() *program.Error {
			limited, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			command := program.Command{Dir: w.spec.Dir, Run: w.spec.Command, Env: append(w.environment(), "ECHOEVAL_NOW="+now.UTC().Format(time.RFC3339Nano))}
			var alone *program.Error
			if _, _, err := w.pool.programs.Once(limited, command, nil); !errors.As(err, &alone) {
				return &program.Error{}
			}
			return alone
		})
		w.pool.probes[w.spec.Key] = probe
	}
	w.pool.mu.Unlock()
	alone := probe()
	return alone.Ended == fault.Ended && withoutNumbers(alone.Stderr) == withoutNumbers(fault.Stderr)
}

func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

func (w *Worker) ask(ctx context.Context, question []byte, now time.Time) ([]byte, string, error) {
	command := program.Command{Dir: w.spec.Dir, Run: w.spec.Command}
	if !w.spec.Lines {
		command.Env = append(w.environment(), "ECHOEVAL_NOW="+now.UTC().Format(time.RFC3339Nano))
		return w.pool.programs.Once(ctx, command, question)
	}
	if w.process == nil {
		var err error
		command.Env = w.environment()
		if w.process, err = w.pool.programs.Start(command); err != nil {
			return nil, "", err
		}
	}
	out, err := w.process.Ask(ctx, question)
	return out, w.process.Stderr(), err
}

// Broken ends the program, whose answer was none, and returns the end of its standard error. stderr is what was known of it.
func (w *Worker) Broken(stderr string) string {
	w.broken = true
	if w.process == nil {
		return stderr
	}
	w.process.Kill()
	return w.process.Stderr()
}

// Turn returns the requests and the calls of wrapped tools since it was last asked, in the order of the cassette.
func (w *Worker) Turn() ([]*Exchange, []*ToolRun) {
	return w.item.turn()
}

// replayed is the value of keys in a replay.
const replayed = "replay"

// environment are the variables of the program beside those that every program gets.
func (w *Worker) environment() []string {
	o, address := &w.pool.opts, w.recorder.address()
	env := map[string]string{}
	for name, value := range w.spec.Env {
		env[name] = value
	}
	for _, name := range w.spec.EnvFrom {
		switch value, set := o.variable(name); {
		case o.Live == nil:
			env[name] = replayed
		case set:
			env[name] = value
		}
	}
	for _, r := range w.recorder.routes {
		base := ""
		if r.base != nil {
			base = r.base.EscapedPath()
		}
		here := address + r.prefix + strings.TrimSuffix(base, "/")
		v := VendorNamed(r.service.Name)
		if v == nil {
			env[r.service.Name] = here
			continue
		}
		for _, name := range v.Variables {
			env[name] = here
		}
		for _, name := range v.Keys {
			switch value, set := o.variable(name); {
			case o.Live == nil:
				env[name] = replayed
			case set:
				env[name] = value
			case o.Local != nil && o.Local(v.Name):
				env[name] = "no-key-needed-on-loopback"
			}
		}
	}
	env["ECHOEVAL_MODE"], env["ECHOEVAL_SEED"], env["ECHOEVAL_URL"] = o.Mode, strconv.FormatUint(o.Seed, 10), address+toolPath
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		value, _ := o.variable(name)
		if value == "" {
			value, _ = o.variable(strings.ToLower(name))
		}
		if o.Live == nil {
			value = address
		}
		if value != "" {
			env[name], env[strings.ToLower(name)] = value, value
		}
	}
	local := "127.0.0.1,localhost,::1"
	if others, _ := o.variable("NO_PROXY"); others != "" && o.Live != nil {
		local += "," + others
	}
	env["NO_PROXY"], env["no_proxy"] = local, local
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, fmt.Sprintf("%s=%s", name, env[name]))
	}
	return out
}

// variable is the value of a variable of the command; of several the last counts.
func (o *Options) variable(name string) (string, bool) {
	for _, entry := range slices.Backward(o.Environ) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value, value != ""
		}
	}
	return "", false
}
