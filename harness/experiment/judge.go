package experiment

import (
	"context"
	"errors"
	"net/http"

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

// judgeError says that a judge, or what embeds, was not there to be asked.
type judgeError struct{ cause error }

func (e *judgeError) Error() string { return "judging: " + e.cause.Error() }
func (e *judgeError) Unwrap() error { return e.cause }

// asker answers what checks ask of models.
type asker interface {
	score.Judge
	score.Embedder
}

// judges asks the models of one item's checks, one question after the other. When one gives no answer, no other is asked.
type judges struct {
	run *itemRun
	n   int   // questions
	err error // of the question that got no answer
}

// Ask implements [score.Judge].
func (j *judges) Ask(ctx context.Context, id string, q score.Question) (text string, err error) {
	err = j.ask(ctx, id, j.run.opts.Judges[id], func(ctx context.Context, column *Column, rt http.RoundTripper, live func() bool) error {
		r := j.run
		model, err := r.modelOf(column, rt, live)
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
		text = textOf(reply.Parts)
		return err
	})
	if err == nil {
		j.run.answers = append(j.run.answers, answer{judge: id, question: q, text: text})
	}
	return text, err
}

// Embed implements [score.Embedder].
func (j *judges) Embed(ctx context.Context, id string, req llm.EmbedRequest) (vectors [][]float32, err error) {
	err = j.ask(ctx, id, j.run.opts.Embedders[id], func(ctx context.Context, column *Column, rt http.RoundTripper, live func() bool) error {
		embedder, err := j.run.embedderOf(column, rt, live)
		if err != nil {
			return err
		}
		got, err := embedder.Embed(ctx, req)
		if cost, ok := column.Cost(llm.Response{Usage: got.Usage}); ok {
			j.run.overhead += cost
		}
		vectors = got.Vectors
		return err
	})
	if err == nil {
		j.run.answers = append(j.run.answers, answer{judge: id, texts: req, vectors: vectors})
	}
	return vectors, err
}

// ask puts one question to a provider that is no column; rt stands where its requests are recorded and replayed.
func (j *judges) ask(ctx context.Context, id string, column *Column, question func(ctx context.Context, column *Column, rt http.RoundTripper, live func() bool) error) error {
	if j.err != nil {
		return j.err
	}
	r := j.run
	if column == nil {
		j.err = failure.New(failure.Internal, "provider %s cannot be asked in this run", id)
		return j.err
	}
	j.n++
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout(), errJudgeTimeout)
	defer cancel()
	j.err = r.session.Ask(id, column.Live, func(way replay.Way) error {
		err := question(ctx, column, transport.Retry(transport.RetryConfig{Clock: way.Waiting, Random: r.random()}, way), way.Live)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		}
		return err
	})
	return j.err
}

// idsOf are the providers of a role.
func idsOf(d *dataset.Dataset, role string) []string {
	var ids []string
	for _, p := range d.Roles {
		if p.Role == role {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Questions is how many questions the run puts to judges and embedders, at most.
func (e *Experiment) Questions() int { return e.questions }

// questionsOf is how many questions one run of an item on a column puts to judges and embedders.
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
