// Package gemini speaks the Gemini API of Google: [New] gives a model over the official SDK.
//
// # What goes where
//
// The SDK addresses a request, gives it its headers and sends it. What a request says is written here, and handed to the SDK through its hook for bodies; a dialect directly below the SDK keeps the reply's body for itself, turns refusals into [llm.Error], and lets the SDK see an empty reply.
// Requests are not built of the SDK's types because these hold numbers of 32 bits, leave out an empty text, and keep arguments as maps, which loses the order of keys and the digits of large numbers. Replies are not read by the SDK because it does the same to them, takes a reply that was cut for a whole one, refuses a stream that is a JSON array, and panics on JSON of another type than it expects.
//
// A reply is a server-sent event stream, a JSON array or one JSON document. All three become frames, and each frame is decoded once, so that a blocking reply and both kinds of stream give the same events.
//
// # What is sent
//
//   - The system prompt and the system messages become one system instruction, joined by blank lines.
//   - Parts keep their order. Images and documents are sent by their bytes, or by their address as file data.
//   - All results that follow one message with calls stand in one content, in their order: {"result": text}, or {"error": text} where the tool failed. They name the tool by the call that they answer; a result without a call is left out (warning result-left-out).
//   - Images and documents of tool messages follow in a content of their own (warning tool-media-moved).
//   - A call without arguments is sent with {}. Arguments that are no JSON object cannot be sent (warning arguments-left-out).
//   - Calls and results bear their ids, also those that were made here.
//   - Tools are declared with flattened schemas, see [tool.GeminiSchema]; its warnings are passed on.
//   - Reasoning goes back only with its signature, since the vendor expects no other (warning reasoning-left-out, once for a request; never an error).
//   - A text, a call or reasoning that came with a signature takes it along.
//   - Settings that the model is known to refuse are left out with a warning, see [Rule].
//   - A message that has nothing to say is not sent.
//
// With [llm.Settings.Strict] everything that would be left out, but reasoning, is an error before anything is sent.
//
// # What comes back
//
// A signature is an extra of the part that it came with: the JSON string of its base64. A call without an id, or with that of another call of the reply, gets one that is a hash of its place and name, so that the same reply always gets the same.
// A reply is whole when it has given its finish reason, or said why the prompt was blocked; anything shorter is an error that wraps [io.ErrUnexpectedEOF]. A blocked prompt is a refusal with the warning prompt-blocked.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"google.golang.org/genai"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// Name is the vendor's name. Signatures are kept under it.
const Name = "gemini"

// BaseURL is where Google answers.
const BaseURL = "https://generativelanguage.googleapis.com"

// KeyHeader is the header that the vendor takes a key in.
const KeyHeader = "X-Goog-Api-Key"

// Config says which model to talk to.
type Config struct {
	// BaseURL is what the version and the model are appended to (/v1beta/models/NAME:METHOD); [BaseURL] by default.
	BaseURL string
	// Model is the model's name as the vendor knows it, with or without models/ before it.
	Model string
	// Placeholder is sent as the key, for the transport to replace by the real one; "placeholder" by default. It is no secret.
	Placeholder string
	// Clock dates a Retry-After; the machine's clock by default.
	Clock clock.Clock
	// Rules say what holds for which model; [Rules] by default.
	Rules []Rule
}

// New returns a model that sends its requests through rt. It needs no key: rt adds it, in [KeyHeader]. The model is safe for concurrent use.
func New(config Config, rt http.RoundTripper) (llm.Model, error) {
	m, err := newModel(config, rt)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func newModel(config Config, rt http.RoundTripper) (*model, error) {
	if config.BaseURL == "" {
		config.BaseURL = BaseURL
	}
	if config.Placeholder == "" {
		config.Placeholder = "placeholder"
	}
	if config.Clock == nil {
		config.Clock = clock.Wall{}
	}
	if config.Rules == nil {
		config.Rules = Rules
	}
	name := strings.TrimPrefix(config.Model, "models/")
	if name == "" {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: no model is named", Name), "add the model's name, as in %s:gemini-2.5-flash", Name)
	}
	if strings.ContainsAny(name, "?&#%: ") || strings.Contains(name, "..") {
		return nil, failure.New(failure.Input, "%s: %q cannot be the name of a model", Name, name)
	}
	if rt == nil {
		return nil, failure.New(failure.Internal, "%s: a model needs a round tripper", Name)
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		// The text is not quoted: it may hold a password or a key.
		return nil, failure.New(failure.Input, "%s: base_url must be http:// or https:// with a host, without a user and without a query", Name)
	}
	d := &dialect{clock: config.Clock, next: rt}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey:      config.Placeholder,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  &http.Client{Transport: d, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		HTTPOptions: genai.HTTPOptions{BaseURL: base.String(), APIVersion: "v1beta"},
	})
	if err != nil {
		// The SDK's text would hold its whole configuration.
		return nil, failure.New(failure.Internal, "%s: the SDK refused its configuration", Name)
	}
	return &model{name: name, rule: ruleFor(config.Rules, name), client: client}, nil
}

type model struct {
	name   string
	rule   Rule
	client *genai.Client
	tools  atomic.Pointer[toolList] // of the latest request: they seldom change
}

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
		c := &call{}
		if err := m.send(ctx, c, b.body(), req.Blocking); err != nil {
			yield(nil, m.failed(ctx, err, c))
			return
		}
		defer func() { _ = c.body.Close() }()
		f := newFrames(c.body)
		r := reply{yield: yield, position: len(b.contents)}
		for {
			frame, err := f.next()
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case err == nil:
				err = r.add(frame)
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && r.ended() && !errors.Is(err, errBroken):
				if err = r.end(); err == nil {
					return
				}
			}
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				// The body is closed before the caller hears of the error.
				_ = c.body.Close()
				yield(nil, m.failed(ctx, err, c))
				return
			}
		}
	}
}

// send lets the SDK make the request. The reply's body is in c then.
func (m *model) send(ctx context.Context, c *call, body map[string]any, blocking bool) error {
	ctx = context.WithValue(ctx, callKey{}, c)
	alone := false
	config := &genai.GenerateContentConfig{
		// A reply that the vendor breaks off is told as such; the SDK would ask for the rest by itself.
		AutomaticContinuation: &alone,
		HTTPOptions:           &genai.HTTPOptions{ExtrasRequestProvider: func(map[string]any) map[string]any { return body }},
	}
	var err error
	if blocking {
		_, err = m.client.Models.GenerateContent(ctx, m.name, nil, config)
	} else {
		for _, streamed := range m.client.Models.GenerateContentStream(ctx, m.name, nil, config) {
			if streamed != nil {
				err = streamed
			}
		}
	}
	if err == nil && c.body == nil {
		err = errors.New("the SDK sent nothing")
	}
	return err
}

// failed makes an [llm.Error] of whatever went wrong.
func (m *model) failed(ctx context.Context, err error, c *call) error {
	var refused *llm.Error
	if errors.As(err, &refused) {
		return refused
	}
	e := &llm.Error{Vendor: Name, Status: c.status, Retries: c.retries, Err: err}
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
