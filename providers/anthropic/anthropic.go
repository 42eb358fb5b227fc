// Package anthropic speaks Anthropic's Messages API: [New] gives a model over the vendor's SDK.
//
// # What goes where
//
// The SDK gives the types of a request and their encoding, the call itself, and the frames of a stream. What its types cannot hold exactly (the tools' schemas as they were written, sampling parameters of the older version of the API) is added to the encoded request.
// The dialect is a round tripper directly below the SDK: it names the version of the API, puts the placeholder of the key where the vendor's own clients put a key, and turns refusals into [llm.Error]. Frames are decoded by this package, since the SDK's types lose blocks that they do not know.
// A blocking reply is read as a stream of whole blocks, so that both kinds give the same events.
//
// # What is sent
//
//   - The system prompt and the system messages become one system block, joined by blank lines.
//   - Parts keep their order. A text without a visible character is not sent, since the vendor refuses it.
//   - Results of tools stand first in a user message, all those that follow one assistant message together. Images and documents of a tool message go into the result before them; those before any result follow after the results (warning tool-media-moved).
//   - A call's arguments are sent as the model wrote them. Those that are no JSON object are sent within one, as {"INVALID_JSON": "..."} (warning arguments-wrapped).
//   - Reasoning is sent back as it came, signature and redacted blocks included. That of other vendors is not (warning reasoning-left-out, once for a request; never an error).
//   - Images of assistant messages have no place in the API, documents there none in its newer version (warnings image-left-out and document-left-out).
//   - The API demands max_tokens; it is [DefaultMaxTokens] unless the settings say otherwise.
//   - Settings that the version of the API or the model is known to refuse are left out with a warning, see [Rule].
//
// With [llm.Settings.Strict] everything that would be left out, but reasoning, is an error before anything is sent.
//
// # What comes back
//
// The blocks of one stretch of reasoning are kept in the extras of one part, as a JSON list. A block of a kind that is not known is kept there too, in its place, and goes back with the rest (warning content-opaque).
// A stream is whole only if its message_stop has come; else it is an error that wraps [io.ErrUnexpectedEOF].
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// Name is the vendor's name.
const Name = "anthropic"

// BaseURL is where Anthropic answers.
const BaseURL = "https://api.anthropic.com"

// DefaultMaxTokens is the limit of the output where the settings give none. A budget for thinking is added to it.
const DefaultMaxTokens = 4096

// The versions of the API.
const (
	// VersionLatest knows no sampling parameters, and no documents in assistant messages.
	VersionLatest = "2026-10-21"
	// Version2023 is the version before.
	Version2023 = "2023-06-01"
)

// Versions lists the versions of the API that [Config.APIVersion] takes, the latest first.
var Versions = []string{VersionLatest, Version2023}

// Config says which model to talk to.
type Config struct {
	// BaseURL is what /v1/messages is appended to; [BaseURL] by default.
	BaseURL string
	// APIVersion is one of [Versions]; the first by default.
	APIVersion string
	// Model is the model's name as the vendor knows it.
	Model string
	// Placeholder is sent as the key, for the transport to replace by the real one; "placeholder" by default. It is no secret.
	Placeholder string
	// Clock dates a Retry-After; the machine's clock by default.
	Clock clock.Clock
}

// New returns a model that sends its requests through rt. It needs no key: rt adds it. The model is safe for concurrent use.
func New(config Config, rt http.RoundTripper) (llm.Model, error) {
	if config.BaseURL == "" {
		config.BaseURL = BaseURL
	}
	if config.APIVersion == "" {
		config.APIVersion = VersionLatest
	}
	if config.Placeholder == "" {
		config.Placeholder = "placeholder"
	}
	if config.Clock == nil {
		config.Clock = clock.Wall{}
	}
	if config.Model == "" {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: no model is named", Name), "add the model's name, as in %s:claude-haiku-4-5", Name)
	}
	if !slices.Contains(Versions, config.APIVersion) {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: unknown api_version %q", Name, config.APIVersion), "choose one of %s", strings.Join(Versions, ", "))
	}
	if rt == nil {
		return nil, failure.New(failure.Internal, "%s: a model needs a round tripper", Name)
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		// The text is not quoted: it may hold a password.
		return nil, failure.New(failure.Input, "%s: base_url must be http:// or https:// with a host and without a user or a query", Name)
	}
	base.Fragment = ""
	m := &model{name: config.Model, sampling: config.APIVersion == Version2023, rule: ruleFor(config.Model)}
	d := &dialect{version: config.APIVersion, placeholder: config.Placeholder, clock: config.Clock, next: rt}
	m.client = sdk.NewClient(
		option.WithoutEnvironmentDefaults(), option.WithAPIKey(config.Placeholder), option.WithMaxRetries(0), option.WithoutOpenTelemetry(), option.WithBaseURL(base.String()),
		option.WithHTTPClient(&http.Client{Transport: d, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}),
	)
	return m, nil
}

type model struct {
	name string
	// sampling says that the version of the API knows temperature and top_p; it takes documents in assistant messages too.
	sampling bool
	rule     Rule
	client   sdk.Client
	tools    atomic.Pointer[toolList] // of the latest request: they seldom change
}

// path is relative to the base URL.
const path = "v1/messages"

// Stream implements [llm.Model].
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
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
		var c call
		var resp *http.Response
		if err := m.client.Post(context.WithValue(ctx, callKey{}, &c), path, b.body, &resp, b.options...); err != nil {
			yield(nil, m.failed(ctx, err, &c))
			return
		}
		r := reply{yield: yield, position: b.messages}
		err = r.read(ctx, resp)
		_ = wire.Close(resp.Body, r.ended)
		if err != nil && !errors.Is(err, errStopped) {
			// The body is closed before the caller hears of the error.
			yield(nil, m.failed(ctx, err, &c))
		}
	}
}

// failed makes an [llm.Error] of whatever went wrong.
func (m *model) failed(ctx context.Context, err error, c *call) error {
	var refused *llm.Error
	if errors.As(err, &refused) {
		return refused
	}
	e := &llm.Error{Vendor: Name, Status: c.status, RequestID: c.requestID, Retries: c.retries, Err: err}
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
