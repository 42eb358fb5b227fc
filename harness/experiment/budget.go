package experiment

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/results"
)

// errBudget ends an item whose next call the budget does not cover.
var errBudget = errors.New("the budget of --max-cost is used up")

// assumedOutput is how many tokens a reply is taken to have at most, where the request does not bound it. Few models write more at once.
const assumedOutput = 4096

// Budget bounds the money that a run spends now. What a call may cost is reserved before it is made and settled when its usage is known, so that calls that run side by side cannot overdraw it together. It is safe for concurrent use.
//
// The reservation takes a byte of the request for half a token, which is more than any tokenizer needs for text, and the reply's bound (max_tokens, else 4,096) for its tokens. A reply that was cut off is charged as reserved: nobody knows what it cost.
//
// A call for which there is enough only if those under way cost less than was reserved for them waits until they are settled: what is refused does not depend on how many calls run side by side.
type Budget struct {
	limit money.USD

	mu       sync.Mutex
	spent    money.USD
	reserved money.USD     // by calls under way
	settled  chan struct{} // closed when the next of them is settled; nil where nobody waits
	refused  money.USD     // what the first call may have cost that was refused
	exceeded bool          // a call was refused
}

// NewBudget returns a budget of that amount, of which a part may be spent already.
func NewBudget(limit, spent money.USD) *Budget { return &Budget{limit: limit, spent: spent} }

// Spent is what was spent; 0 of no budget.
func (b *Budget) Spent() money.USD {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

// before says what at least was spent before the run was resumed.
func (b *Budget) before(amount money.USD) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent, amount)
}

// exceededBy tells what happened where a call was refused, and else nil.
func (b *Budget) exceededBy() *results.Budget {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.exceeded {
		return nil
	}
	return &results.Budget{LimitUSD: b.limit, SpentUSD: b.spent, NextUSD: b.refused}
}

func (b *Budget) reserve(ctx context.Context, amount money.USD) error {
	for {
		b.mu.Lock()
		if b.spent+b.reserved+amount <= b.limit {
			b.reserved += amount
			b.mu.Unlock()
			return nil
		}
		if b.spent+amount > b.limit {
			defer b.mu.Unlock()
			if !b.exceeded {
				b.exceeded, b.refused = true, amount
			}
			return fmt.Errorf("%w: of %s USD %s are spent, and the next call may cost %s", errBudget, b.limit, b.spent, amount)
		}
		if b.settled == nil {
			b.settled = make(chan struct{})
		}
		settled := b.settled
		b.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *Budget) settle(reserved, cost money.USD) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += cost
	b.reserved -= reserved
	if b.settled != nil {
		close(b.settled)
		b.settled = nil
	}
}

// budgeted reserves before each request of a model.
type budgeted struct {
	llm.Model
	budget *Budget
	cost   func(llm.Response) (money.USD, bool)
	live   func() bool // the network answers, and not a cassette
}

// Stream implements [llm.Model].
func (m budgeted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		reserved, ok := m.cost(llm.Response{Usage: most(req)})
		if !ok {
			yield(nil, fmt.Errorf("%w: no price is known", errBudget))
			return
		}
		if err := m.budget.reserve(ctx, reserved); err != nil {
			yield(nil, err)
			return
		}
		cost, began := reserved, false
		defer func() {
			if !m.live() {
				cost = 0
			}
			m.budget.settle(reserved, cost)
		}()
		for event, err := range m.Model.Stream(ctx, req) {
			if err != nil && !began {
				cost = 0 // refused before anything was written
			}
			if finish, ok := event.(llm.Finish); ok {
				if known, ok := m.cost(llm.Response{Usage: finish.Usage}); ok {
					cost = known
				}
			}
			began = began || err == nil
			if !yield(event, err) {
				return
			}
		}
	}
}

// boundEmbedder reserves before each request of an embedder, where there is a budget, and tells limits in tokens what it needs: a reply has none beside those of the texts.
type boundEmbedder struct {
	llm.Embedder
	budget *Budget // nil for none
	cost   func(llm.Response) (money.USD, bool)
	live   func() bool
}

// Embed implements [llm.Embedder].
func (e boundEmbedder) Embed(ctx context.Context, req llm.EmbedRequest) (got llm.Embeddings, err error) {
	bytes := 0
	for _, text := range req.Texts {
		bytes += len(text)
	}
	if e.budget != nil {
		reserved, ok := e.cost(llm.Response{Usage: conversation.Usage{InputTokens: (bytes + 1) / 2}})
		if !ok {
			return got, fmt.Errorf("%w: no price is known", errBudget)
		}
		if err := e.budget.reserve(ctx, reserved); err != nil {
			return got, err
		}
		defer func() {
			cost := reserved // also where the vendor does not count its tokens
			if known, ok := e.cost(llm.Response{Usage: got.Usage}); ok && got.Usage.InputTokens > 0 {
				cost = known
			}
			if err != nil || !e.live() {
				cost = 0
			}
			e.budget.settle(reserved, cost)
		}()
	}
	ctx, tokens := transport.WithTokens(ctx, (bytes+bytesPerToken-1)/bytesPerToken)
	got, err = e.Embedder.Embed(ctx, req)
	if got.Usage.InputTokens > 0 {
		tokens.Settle(got.Usage.InputTokens)
	}
	return got, err
}

// metered tells limits in tokens what each call needs: before it a token for four bytes and the reply's bound where the request sets one, after it what it has used.
type metered struct{ llm.Model }

// Stream implements [llm.Model].
func (m metered) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		estimate := (size(req) + bytesPerToken - 1) / bytesPerToken
		if req.Settings.MaxTokens != nil {
			estimate += *req.Settings.MaxTokens
		}
		ctx, tokens := transport.WithTokens(ctx, estimate)
		for event, err := range m.Model.Stream(ctx, req) {
			if finish, ok := event.(llm.Finish); ok {
				tokens.Settle(finish.Usage.InputTokens + finish.Usage.OutputTokens)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// bytesPerToken is about how many bytes of text a token has.
const bytesPerToken = 4

// size is how many bytes of text a request has.
func size(req llm.Request) int {
	n := len(req.System)
	for _, m := range req.Messages {
		n += len(m.AppendJSON(nil))
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n
}

// most is the usage that a request may have at most.
func most(req llm.Request) conversation.Usage {
	output := assumedOutput
	if req.Settings.MaxTokens != nil {
		output = *req.Settings.MaxTokens
	}
	return conversation.Usage{InputTokens: (size(req) + 1) / 2, OutputTokens: output}
}
