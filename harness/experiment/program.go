package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/target"
)

// ProgramTarget runs a program in any language, with a recorder between it and the models that it asks.
type ProgramTarget struct {
	Pool *target.Pool
	Spec *target.Spec
	// Item is what the recorder needs.
	Item target.Item
	// Question holds what every turn is told alike.
	Question target.Question
	// Name is that of the program in traces.
	Name string
	// WithoutModel says that an answer may come without any request to a model.
	WithoutModel bool
	Pos          failure.Position
}

// errNoModel ends a run whose program asks no model although it must.
var errNoModel = errors.New("")

// Run implements [Target].
func (t ProgramTarget) Run(ctx context.Context, c Case) Outcome {
	out := Outcome{Response: llm.Response{Stop: llm.RunError, TTFTMS: -1}, Untimed: true, Spent: []target.Spent{}}
	teller := &target.Teller{}
	hidden := c.Start.ToolContext()
	worker, err := t.Pool.Take(t.Spec, t.Item)
	if err != nil {
		out.Err = err
		return out
	}
	defer t.Pool.Give(worker)
	conv := c.Start
	asked := 0
	for turn := 1; err == nil; turn++ {
		var say []conversation.Message
		var more bool
		say, more, err = c.Next(ctx, turn, out.Response.Text)
		if err == nil && more {
			conv, err = conv.Append(say...)
		}
		if err != nil || !more {
			break
		}
		from := len(teller.Events())
		var told target.Told
		told, err = t.turn(ctx, c, worker, conv, teller, turn, tool.NewHidden(hidden))
		asked += told.Asked
		out.add(told.Response)
		out.Untimed = out.Untimed && told.Asked == 0
		out.Spent = append(out.Spent, told.Spent...)
		if err != nil {
			out.Response.Stop = llm.RunError
			break
		}
		out.Turns = append(out.Turns, TurnOutcome{Text: out.Response.Text, From: from, To: len(teller.Events())})
		conv, err = conv.Append(conversation.Assistant(c.IDs.ID(turn-1, "message", 1), conversation.Text{Text: out.Response.Text}))
	}
	if err == nil && asked == 0 && !t.WithoutModel {
		err = failure.WithHint(failure.At(t.Pos, failure.Input, "%s answered without a request to a model%w", t.Question.Session, errNoModel), "the program must read OPENAI_BASE_URL or the variable of its vendor; model_calls: optional lets items be answered without")
	}
	out.Err = err
	out.Trace = trace.Trace{Events: teller.Events(), Hidden: hidden}
	return out
}

// turn asks the program once.
func (t ProgramTarget) turn(ctx context.Context, c Case, worker *target.Worker, conv conversation.Context, teller *target.Teller, turn int, hidden tool.Hidden) (target.Told, error) {
	q := t.Question
	q.Turn, q.Hidden, q.Now = turn, conv.ToolContext(), c.Clock.Now().UTC().Format(time.RFC3339Nano)
	for _, m := range conv.Messages() {
		q.Messages = append(q.Messages, m)
	}
	id := c.IDs.ID(turn-1, "message", 1)
	raw, stderr, err := worker.Ask(ctx, q.AppendJSON(nil), c.Clock.Now())
	var answer target.Answer
	switch {
	case err == nil:
		if answer, err = target.DecodeAnswer(raw, id); err != nil {
			err = &target.Fault{What: err.Error(), Stderr: worker.Broken(stderr)}
		} else if answer.Error != "" {
			err = &target.Fault{What: "answered with an error: " + answer.Error, Stderr: stderr}
		}
	case errors.Is(err, errTimeout):
		err = &target.Fault{What: "did not answer in time", Stderr: stderr, Cut: true}
	}
	exchanges, runs := worker.Turn()
	var names []string
	for name := range hidden.All() {
		names = append(names, name)
	}
	told := teller.Tell(target.Turn{Given: q.Messages, Hidden: names, Agent: t.Name, MessageID: id, Exchanges: exchanges, Runs: runs, Answer: answer, Err: err})
	var fault *target.Fault
	if errors.As(err, &fault) && told.Failed != nil {
		switch {
		case fault.Cut && told.Failed.Status == 0: // it was still waiting
			err = errTimeout
		case outage(told.Failed):
			err = &llm.Error{Vendor: told.Failed.Service.Name, Status: told.Failed.Status, Message: "the program failed after it: " + fault.Error(), Err: told.Failed.Err}
		}
	}
	if fault != nil && fault.Unstarted {
		err = failure.WithHint(err, "it never came as far as the question: try it by hand, from the project's root: %s", t.byHand())
	}
	return told, err
}

// byHand is the command that starts the program alone.
func (t ProgramTarget) byHand() string {
	command := results.Command(t.Spec.Command...) + " < /dev/null"
	if t.Spec.Dir != "." {
		command = results.Command("cd", t.Spec.Dir) + " && " + command
	}
	return command
}

// outage says that a request failed by no fault of who sent it.
func outage(x *target.Exchange) bool {
	switch x.Status {
	case 0, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return true
	}
	return x.Status < http.StatusBadRequest || transport.MayPass(x.Status) // a reply that broke off, or one that may be another later
}

// targetSpec is the program of a column.
func targetSpec(c *Column) *target.Spec {
	t := c.Target
	s := &target.Spec{
		Key:     c.Provider.ID,
		Command: t.Command, Dir: t.Dir, Lines: t.Lines, Env: t.Env, EnvFrom: t.EnvFrom, Proxy: t.Proxy,
	}
	if c.Provider.BaseURL != "" {
		name := c.Provider.Vendor
		if target.VendorNamed(name) == nil {
			name = "openai" // servers that copy its API
		}
		s.Bases = map[string]string{name: c.Provider.BaseURL}
	}
	return s
}

// programName is what traces call the program of a column.
func programName(t *dataset.Target) string {
	return "target " + filepath.Base(filepath.FromSlash(t.Command[0]))
}

// hashFiles gives the text of hashes of a program's files; see [cassette.TargetFiles].
func hashFiles(root string, t *dataset.Target) (string, error) {
	var text strings.Builder
	for _, file := range t.Files {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return "", failure.At(t.Pos, failure.Input, "the file %s of the target cannot be read: %s", file, failure.Reason(err))
		}
		sum := sha256.Sum256(data)
		fmt.Fprintf(&text, "%s %s\n", hex.EncodeToString(sum[:8]), file)
	}
	return text.String(), nil
}

// program makes the target of an item whose column runs a program.
func (r *itemRun) program() Target {
	t := r.column.Target
	p := r.column.Provider
	item := target.Item{
		Clock:     r.session.Clock(),
		Transport: r.over,
		Retries:   r.variant != nil,
		Wrap: func(inner tool.Tool) tool.Tool {
			wrapped := r.session.Tool(inner)
			if mock, ok := r.item.ToolMocks[inner.Spec().Name]; ok {
				wrapped = newMocked(wrapped, mock)
			}
			return wrapped
		},
	}
	if r.opts.Budget != nil && r.mode != replay.Replay {
		item.Reserve = r.reserve
	}
	return ProgramTarget{
		Pool: r.opts.Targets, Spec: r.targets[r.job.column], Item: item, Name: programName(t), WithoutModel: t.WithoutModel, Pos: t.Pos,
		Question: target.Question{
			Session: fmt.Sprintf("%s/%s/%d", r.item.ID, p.ID, r.repeat), Vars: r.item.Vars, Workspace: r.folder,
			Provider: p.ID, Vendor: p.Vendor, Model: p.Model, Seed: r.opts.Seed,
		},
	}
}

// reserve takes what a request of a program may cost out of the budget.
func (r *itemRun) reserve(ctx context.Context, vendor, model string, size, most int) (func(*conversation.Usage), error) {
	if most == 0 {
		most = assumedOutput
	}
	reserved, ok := r.column.CostOf(vendor, model, conversation.Usage{InputTokens: (size + 1) / 2, OutputTokens: most})
	if !ok {
		return nil, fmt.Errorf("%w: no price is known for %s of %s", errBudget, model, vendor)
	}
	if err := r.opts.Budget.reserve(ctx, reserved); err != nil {
		return nil, err
	}
	return func(u *conversation.Usage) {
		cost := reserved
		if u != nil {
			if known, ok := r.column.CostOf(vendor, model, *u); ok {
				cost = known
			}
		}
		if !r.session.Live() {
			cost = 0
		}
		r.opts.Budget.settle(reserved, cost)
	}, nil
}

// cost is what an item cost; false where nobody knows.
func (r *itemRun) cost(out Outcome) (money.USD, bool) {
	if out.Spent == nil {
		return r.column.Cost(out.Response)
	}
	var sum money.USD
	for _, s := range out.Spent {
		if s.Usage == nil {
			return 0, false
		}
		usd, ok := r.column.CostOf(s.Vendor, s.Model, *s.Usage)
		if !ok {
			return 0, false
		}
		sum += usd
	}
	return sum, len(out.Spent) > 0
}

// makeFolder gives an item whose column runs a program a folder of its own.
func (r *itemRun) makeFolder() error {
	if r.column.Target == nil || r.item.Workspace == "" {
		return nil
	}
	if _, err := r.space.get(guard.Write); err != nil {
		return err
	}
	r.folder = r.space.dir
	return nil
}

// complete says that a run came to an end that a recording can be kept of: with an answer, or, where the network answered, with the failure of the program itself.
func (r *itemRun) complete(out Outcome) bool {
	var fault *target.Fault
	if !errors.As(out.Err, &fault) {
		return out.Err == nil
	}
	return !fault.Cut && r.mode != replay.Replay && r.session.Live() && len(out.Spent) > 0
}
