package experiment

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/score"
)

// Trial is an item that was run, with all that it takes to judge another outcome of it by the same checks and invariants. It is valid until the function that it was given to returns, and not for use from several goroutines.
type Trial struct {
	// Outcome is what the agent did.
	Outcome Outcome
	run     *itemRun
}

// Item is the item as the dataset has it.
func (t *Trial) Item() *dataset.Item { return t.run.item }

// Judgement is what checks and invariants say of an outcome.
type Judgement struct {
	Status eval.Status
	// Cause is "" where the status is pass.
	Cause  string
	Checks []Judged
	// Broken are the names of the invariants that are violated with severity error, Warned of those violated with severity warn only.
	Broken, Warned []string
}

// Judged is the verdict of one check.
type Judged struct {
	Name string
	// Turn counts from 1; 0 is the whole item.
	Turn int
	// At is file:line:column.
	At     string
	Status eval.CheckStatus
	// Weight is 0 for a check that only reports.
	Weight float64
	// Reason says why the check could not judge; "" where it did.
	Reason string
}

// errUnasked leaves out the check of a judge that never was asked this.
var errUnasked = errors.New("the recording has no answer of the judge to this")

// Judge judges another outcome of the item. Nothing is asked of the network: judges answer what they were asked when the item ran, in the words of then, and a check that would ask anything else is unjudged. Programs of command checks run.
func (t *Trial) Judge(ctx context.Context, out Outcome) Judgement {
	r := t.run
	line := r.line(r.item, r.column, r.repeat)
	r.account(&line, out)
	var files score.Workspace // those that the agent left are of its own outcome alone
	if slices.EqualFunc(out.Trace.Events, t.Outcome.Trace.Events, func(a, b trace.Event) bool { return a.Tool == b.Tool }) {
		files = r.space.files
	}
	verdict := r.score(ctx, &line, out, files, &memory{answers: r.answers})
	r.look(&line, out)
	decide(&line, out, nil, verdict)
	j := Judgement{Status: line.Status}
	if line.Cause != nil {
		j.Cause = *line.Cause
	}
	for _, c := range line.Checks {
		judged := Judged{Name: c.Name, At: c.At, Status: c.Status, Weight: float64(c.Weight)}
		if c.Turn != nil {
			judged.Turn = *c.Turn
		}
		if c.Status == eval.CheckUnjudged {
			judged.Reason = r.excerpt(c.Reason)
		}
		j.Checks = append(j.Checks, judged)
	}
	for _, v := range line.Invariants.Violations {
		list := &j.Warned
		if v.Severity == eval.SeverityError {
			list = &j.Broken
		}
		if !slices.Contains(*list, v.Name) {
			*list = append(*list, v.Name)
		}
	}
	j.Warned = slices.DeleteFunc(j.Warned, func(name string) bool { return slices.Contains(j.Broken, name) })
	return j
}

// Redact takes hidden values and secrets out of a text of the outcome.
func (t *Trial) Redact(text string) string { return t.run.excerpt(text) }

// answer is what a judge answered to a question, or an embedder to texts.
type answer struct {
	judge    string
	question score.Question
	text     string
	texts    llm.EmbedRequest
	vectors  [][]float32
}

// memory answers for judges and embedders from what they answered before. Each answer is used once, as each entry of a recording is.
type memory struct {
	answers []answer
	used    []bool
}

// Ask implements [score.Judge].
func (m *memory) Ask(_ context.Context, judge string, q score.Question) (string, error) {
	a, err := m.find(func(a answer) bool { return a.vectors == nil && a.judge == judge && a.question == q })
	return a.text, err
}

// Embed implements [score.Embedder].
func (m *memory) Embed(_ context.Context, embedder string, req llm.EmbedRequest) ([][]float32, error) {
	a, err := m.find(func(a answer) bool {
		return a.vectors != nil && a.judge == embedder && reflect.DeepEqual(a.texts, req)
	})
	return a.vectors, err
}

func (m *memory) find(is func(answer) bool) (answer, error) {
	if m.used == nil {
		m.used = make([]bool, len(m.answers))
	}
	for i, a := range m.answers {
		if !m.used[i] && is(a) {
			m.used[i] = true
			return a, nil
		}
	}
	return answer{}, errUnasked
}

// Try runs the selected items on every column, those that only takes where it is not nil, and writes nothing. It calls look for each: with its line, and with its trial where the agent ran. It is called from several goroutines at once; an error of it ends everything. Progress is told where all are run. It may be called again, until [Experiment.Close].
func (e *Experiment) Try(ctx context.Context, only func(*dataset.Item) bool, look func(context.Context, *eval.Result, *Trial) error) error {
	r := newRunner(e, nil, &results.Finished{})
	r.tries = true
	return r.run(ctx, func(ctx context.Context, j job) error {
		if only != nil && !only(j.item) {
			return nil
		}
		done := r.one(ctx, j)
		switch {
		case done.fatal != nil && ctx.Err() == nil:
			return done.fatal
		case ctx.Err() != nil:
			return nil // whatever came of it, the end of the context may have had a part in it
		}
		err := look(ctx, &done.line, done.trial)
		if done.trial != nil {
			err = errors.Join(err, done.trial.run.space.close())
		}
		if err != nil {
			return fmt.Errorf("%s on %s: %w", j.item.ID, done.line.Provider, err)
		}
		if only == nil {
			r.advance(&done.line)
		}
		return nil
	})
}
