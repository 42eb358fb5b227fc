package experiment

import (
	"context"
	"errors"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/score"
)

// errJudgeTimeout ends a question that takes longer than the whole item may.
var errJudgeTimeout = errors.New("the judge took longer than the item's timeout")

// judgeError says that a judge was not there to be asked.
type judgeError struct{ cause error }

func (e *judgeError) Error() string { return "judging: " + e.cause.Error() }
func (e *judgeError) Unwrap() error { return e.cause }

// judges asks the judges of one item, one question after the other, for its checks. When one gives no answer, no other is asked.
type judges struct {
	run *itemRun
	n   int   // questions
	err error // of the question that got no answer
}

// Ask implements [score.Judge].
func (j *judges) Ask(ctx context.Context, id string, q score.Question) (string, error) {
	if j.err != nil {
		return "", j.err
	}
	text, err := j.ask(ctx, id, q)
	if err != nil {
		j.err = err
		return text, err
	}
	j.run.answers = append(j.run.answers, answer{id, q, text})
	return text, nil
}

func (j *judges) ask(ctx context.Context, id string, q score.Question) (text string, err error) {
	r := j.run
	column := r.opts.Judges[id]
	if column == nil {
		return "", failure.New(failure.Internal, "provider %s cannot judge in this run", id)
	}
	j.n++
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout(), errJudgeTimeout)
	defer cancel()
	err = r.session.Ask(id, column.Live, func(way replay.Way) error {
		model, err := r.modelOf(column, transport.Retry(transport.RetryConfig{Clock: way.Waiting, Random: r.random()}, way), way.Live)
		if err != nil {
			return err
		}
		settings := column.Settings
		settings.ResponseSchema = q.Schema
		ask := conversation.User(r.ids().ID(j.n, "judge", 1), conversation.Text{Text: q.Material})
		reply, err := llm.Generate(ctx, model, llm.Request{System: q.System, Messages: []conversation.Message{ask}, Settings: settings, Blocking: true})
		if cost, ok := column.Cost(llm.Response{Usage: reply.Finish.Usage}); ok {
			r.overhead += cost
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		}
		text = textOf(reply.Parts)
		return err
	})
	return text, err
}

// judgeIDs are the providers that may judge.
func judgeIDs(d *dataset.Dataset) []string {
	var ids []string
	for _, p := range d.Roles {
		if p.Role == dataset.RoleJudge {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Questions is how many questions the run puts to judges, at most.
func (e *Experiment) Questions() int { return e.questions }

// questionsOf is how many questions one run of an item on a column puts to judges.
func (e *Experiment) questionsOf(item *dataset.Item, column int) int {
	n := 0
	var problems strict.Problems // they are reported where the item is looked at
	lists := [][]dataset.Check{item.Checks}
	for _, turn := range item.Turns {
		lists = append(lists, turn.Checks)
	}
	for i, checks := range lists {
		for _, c := range e.compile(column, permitted(item, e.opts.Columns[column].Agent.Tools), i > 0, checks, &problems) {
			n += c.Asks
		}
	}
	return n
}
