// Package openai speaks the chat completions protocol of OpenAI and of everybody who has copied it: [New] gives a model over the community's SDK, with a dialect layer around the SDK that makes requests and replies exact.
//
// # What goes where
//
// The SDK gives the types of a request, its encoding, the call itself and the frames of a reply. The dialect is a round tripper directly below the SDK. On the way out it completes the encoded request with what the SDK's types cannot hold: a temperature of 0, an empty content, a file.
// On the way back it turns refusals into [llm.Error], and brings every reply into the one form that the SDK's reader takes without loss: one line for each frame, whatever the line ends, comments, reads and continued lines on the wire were.
// A blocking reply passes the same way, as a stream of one frame, so that both kinds are decoded by the same code, and each frame once.
//
// # What is sent
//
//   - The system prompt and the system messages become one leading system message, joined by blank lines.
//   - Text parts of one message are joined by a space; a user message with media becomes a list of parts in their order.
//   - Each tool result is a tool message of its own. The protocol takes only text there: images and documents of tool messages follow in a user message directly after them (warning tool-media-moved).
//   - A call without arguments is sent with {}, malformed arguments go back as the model wrote them.
//   - Documents are sent as a file part if they are base64; a document by URL has no place in the protocol (warning document-left-out). An assistant message takes text and calls alone.
//   - Reasoning is not sent back, since the protocol has no place for it and those who use it do not expect it (warning reasoning-left-out, once for a request; never an error). Vendors that want it back get it by [Quirks.ReasoningField].
//   - Models are asked through chat completions, and through the Responses API where their [Rule] or [Config.API] says so: with the same settings, calls and results. There reasoning goes back to the vendor as it came, encrypted, and nothing is stored.
//   - Settings that the model is known to refuse are left out with a warning, see [Rule].
//   - A message that has nothing to say is not sent.
//
// With [llm.Settings.Strict] everything that would be left out, but reasoning, is an error before anything is sent.
//
// # What comes back
//
// A refusal is text with the stop reason refused. A call without an id gets one that is a hash of its place and name, so that the same reply always gets the same. A stream that ends without the end marker is whole only if it has given its stop reason; else it is an error that wraps [io.ErrUnexpectedEOF].
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"sync/atomic"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// Name is the vendor's name.
const Name = "openai"

// BaseURL is where OpenAI answers.
const BaseURL = "https://api.openai.com/v1"

// Config says which model to talk to.
type Config struct {
	// Vendor names the vendor in errors; [Name] by default.
	Vendor string
	// BaseURL is what /chat/completions is appended to; [BaseURL] by default. A query is kept: Azure needs one for its api-version.
	BaseURL string
	// Model is the model's name as the vendor knows it.
	Model string
	// API says through which of the vendor's two ways the model is asked; by default the model's rule does.
	API API
	// Placeholder is sent as the credential, for the transport to replace by the real one; "placeholder" by default. It is no secret.
	Placeholder string
	// Clock dates a Retry-After; the machine's clock by default.
	Clock clock.Clock
	// Quirks are the differences of the server from its peers; those of OpenAI itself by default.
	Quirks *Quirks
}

// Quirks are what one server of the protocol does differently from another. The zero value is a server that takes everything.
type Quirks struct {
	// Rules say what holds for which model; the one with the longest matching prefix counts.
	Rules []Rule
	// NoImages: the server takes no images.
	NoImages bool
	// NoDocuments: the server takes no file parts.
	NoDocuments bool
	// NoStreamOptions: the server refuses stream_options, so that a stream is not asked for its usage.
	NoStreamOptions bool
	// NoPromptCacheKey: the server does not know prompt_cache_key.
	NoPromptCacheKey bool
	// ReasoningField is the field of an assistant message in which the server wants earlier reasoning back, such as reasoning_content; "" for nowhere.
	ReasoningField string
	// Extra are more members of the request's object, a JSON object such as {"chat_template_kwargs":{"enable_thinking":false}}; they win over what is there. "" for none.
	Extra conversation.JSON
}

// New returns a model that sends its requests through rt. It needs no key: rt adds it. The model is safe for concurrent use.
func New(config Config, rt http.RoundTripper) (llm.Model, error) {
	m, err := newModel(config, rt)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func newModel(config Config, rt http.RoundTripper) (*model, error) {
	if config.Vendor == "" {
		config.Vendor = Name
	}
	if config.BaseURL == "" {
		config.BaseURL = BaseURL
	}
	if config.Placeholder == "" {
		config.Placeholder = "placeholder"
	}
	if config.Clock == nil {
		config.Clock = clock.Wall{}
	}
	if config.Quirks == nil {
		config.Quirks = &Quirks{Rules: Rules}
	}
	if config.Model == "" {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: no model is named", config.Vendor), "add the model's name, as in %s:gpt-4o-mini", config.Vendor)
	}
	if rt == nil {
		return nil, failure.New(failure.Internal, "%s: a model needs a round tripper", config.Vendor)
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil {
		// The text is not quoted: it may hold a password.
		return nil, failure.New(failure.Input, "%s: base_url must be http:// or https:// with a host and without a user", config.Vendor)
	}
	m := &model{vendor: config.Vendor, name: config.Model, api: config.API, quirks: *config.Quirks, rule: ruleFor(config.Quirks.Rules, config.Model)}
	if m.extra, err = objectMembers(config.Quirks.Extra); err != nil {
		return nil, failure.New(failure.Input, "%s: extra members of the request: %w", config.Vendor, err)
	}
	d := &dialect{vendor: config.Vendor, query: base.RawQuery, clock: config.Clock, next: rt}
	base.RawQuery, base.Fragment = "", ""
	c := sdk.DefaultConfig(config.Placeholder)
	c.BaseURL = base.String()
	c.HTTPClient = &http.Client{Transport: d, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	m.client = sdk.NewClientWithConfig(c)
	return m, nil
}

type model struct {
	vendor string
	name   string
	api    API
	rule   Rule
	quirks Quirks
	extra  []member
	client *sdk.Client
	tools  atomic.Pointer[toolList] // of the latest request: they seldom change
}

// Stream implements [llm.Model].
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	if m.asksResponses(req) {
		return m.streamResponses(ctx, req)
	}
	return func(yield func(llm.Event, error) bool) {
		b, err := m.build(req)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, w := range b.warnings {
			if !yield(w, nil) {
				return
			}
		}
		stream, err := m.client.CreateChatCompletionStream(context.WithValue(ctx, callKey{}, &b.call), b.request)
		if err != nil {
			yield(nil, m.failed(ctx, err, &b.call))
			return
		}
		defer func() { _ = stream.Close() }()
		r := reply{yield: yield, position: len(b.request.Messages), wantUsage: req.Blocking || !m.quirks.NoStreamOptions}
		for {
			frame, err := stream.RecvRaw()
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case err == nil:
				err = r.add(frame)
			case errors.Is(err, io.EOF), errors.Is(err, errNoMarker) && r.stop != "":
				if err = r.end(); err == nil {
					return
				}
			}
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				// The body is closed before the caller hears of the error.
				_ = stream.Close()
				yield(nil, m.failed(ctx, err, &b.call))
				return
			}
		}
	}
}

// failed makes an [llm.Error] of whatever went wrong.
func (m *model) failed(ctx context.Context, err error, c *call) error {
	var refused *llm.Error
	if errors.As(err, &refused) {
		return refused
	}
	e := &llm.Error{Vendor: m.vendor, Status: c.status, RequestID: c.requestID, Retries: c.retries, Err: err}
	if n, ok := wire.Retries(err); ok {
		e.Retries = n
	}
	var answered *answerError
	var sent *url.Error
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case errors.As(err, &answered):
		e.Err = nil
		answered.into(e)
	case errors.As(err, &sent):
		// Its text would repeat method and URL.
		e.Err, e.Code = sent.Err, transport.Cause(err)
		e.Retryable = !wire.Final(err)
	case errors.Is(err, errBroken):
		e.Retryable = !wire.Final(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = fmt.Errorf("%w: %w", errBroken, err)
		e.Retryable = true
	}
	return e
}
