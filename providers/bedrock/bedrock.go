// Package bedrock speaks Amazon Bedrock's Converse API: [New] gives a model over the vendor's SDK, [NewEmbedder] an embedder, [Sign] signs what they send.
//
// # What goes where
//
// The SDK addresses a request (the region's address, the model's place in the path) and carries it through its chain of handlers. What a request says is written here and put in the place of what the SDK has encoded, and the reply is read here: the SDK's types hold arguments and schemas as maps, which loses the order of keys, and have no place for a block that they do not know.
// The SDK's handlers that sign, that ask for credentials and that read replies are taken out. So no request carries a date, a signature or a token that the SDK has found in the environment of the process, whatever it looks for there; a dialect directly below the SDK takes the request over with three headers and no other, sends it once the SDK's chain has ended (which ends the context of whatever it has sent), and turns refusals into [llm.Error]. [Sign] or a bearer token is put in further down, below the recorder.
// A blocking reply is read as a stream of whole blocks, so that both kinds give the same events. A stream consists of binary frames (application/vnd.amazon.eventstream), each with two checksums, which are checked.
//
// # What is sent
//
//   - The system prompt and the system messages become one system block, joined by blank lines.
//   - Parts keep their order. A text without a visible character is not sent, since the vendor refuses it. Messages of one role in a row are sent as one, since the vendor wants them to alternate.
//   - Results of tools stand first in a user message, all those that follow one assistant message together, as texts. Images and documents of a tool message go into the result before them; those before any result follow after the results (warning tool-media-moved).
//   - A call's arguments are sent as the model wrote them. Those that are no JSON object are sent within one, as {"INVALID_JSON": "..."} (warning arguments-wrapped).
//   - Reasoning is sent back as it came, signature and redacted blocks included. That of other vendors is not (warning reasoning-left-out, once for a request; never an error).
//   - Images and documents are sent by their bytes, or by an address that begins with s3://. Other addresses, kinds that the vendor does not list, and those of assistant messages are left out (warnings image-left-out and document-left-out).
//   - The name of a document is made one that the vendor takes: letters, digits, single spaces, hyphens, parentheses and brackets. No two documents of a request have the same; nothing else about it is changed.
//   - Where calls stand in a conversation the vendor wants tools. A request without any declares those that were called, with a schema that takes everything (warning tools-declared).
//   - The vendor has no seed, no choice of tools "none" and no switch against parallel calls (warnings seed-left-out, tool-choice-left-out, parallel-tool-calls-left-out).
//   - A budget for thinking is an additional field of Claude's models; other models get none (warning thinking-budget-left-out). An effort goes to every model.
//
// With [llm.Settings.Strict] everything that would be left out, but reasoning, is an error before anything is sent.
//
// # What comes back
//
// The blocks of one stretch of reasoning are kept in the extras of one part, as a JSON list. A block of a kind that is not known is kept there too, in its place, and goes back with the rest (warning content-opaque). Citations are left out, their text is not (warning content-left-out).
// A stream is whole only if both its messageStop and its metadata have come; else it is an error that wraps [io.ErrUnexpectedEOF].
// The vendor names neither the reply nor, but for routers of prompts, the model that answered: the id is that of the request, where the header says it.
package bedrock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/middleware"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// Name is the vendor's name. Reasoning is kept under it.
const Name = "bedrock"

// DefaultRegion is where the vendor is asked if nobody says where.
const DefaultRegion = "us-east-1"

// Config says which model to talk to.
type Config struct {
	// BaseURL is what /model/MODEL/converse is appended to; the address of the region by default.
	BaseURL string
	// Region is where the vendor is asked; [DefaultRegion] by default. With a BaseURL it says nothing.
	Region string
	// Model is the id of a model or of an inference profile, or the ARN of one.
	Model string
	// Placeholder is sent as the key, for the transport to replace by the real one or by a signature; "placeholder" by default. It is no secret.
	Placeholder string
	// Clock dates a Retry-After; the machine's clock by default.
	Clock clock.Clock
}

var regionShape = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// BaseURL returns the address of a region, by the rules of the SDK. It fails for what can be no region.
func BaseURL(region string) (string, error) {
	if region == "" {
		region = DefaultRegion
	}
	if !regionShape.MatchString(region) {
		return "", failure.WithHint(failure.New(failure.Input, "%s: %q is no region", Name, region), "a region is written as in us-east-1")
	}
	endpoint, err := sdk.NewDefaultEndpointResolverV2().ResolveEndpoint(context.Background(), sdk.EndpointParameters{Region: &region})
	if err != nil {
		return "", failure.New(failure.Input, "%s: the region %q has no address: %w", Name, region, err)
	}
	return endpoint.URI.String(), nil
}

// New returns a model that sends its requests through rt. It needs no key: rt adds it, or signs. The model is safe for concurrent use.
func New(config Config, rt http.RoundTripper) (llm.Model, error) {
	return newModel(config, rt)
}

func newModel(config Config, rt http.RoundTripper) (*model, error) {
	if config.Placeholder == "" {
		config.Placeholder = "placeholder"
	}
	if config.Clock == nil {
		config.Clock = clock.Wall{}
	}
	if config.Model == "" {
		return nil, failure.WithHint(failure.New(failure.Input, "%s: no model is named", Name), "add the model's id, as in %s:us.anthropic.claude-haiku-4-5-20251001-v1:0", Name)
	}
	if rt == nil {
		return nil, failure.New(failure.Internal, "%s: a model needs a round tripper", Name)
	}
	if config.BaseURL == "" {
		var err error
		if config.BaseURL, err = BaseURL(config.Region); err != nil {
			return nil, err
		}
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		// The text is not quoted: it may hold a password.
		return nil, failure.New(failure.Input, "%s: base_url must be http:// or https:// with a host and without a user or a query", Name)
	}
	base.Fragment = ""
	m := &model{name: config.Model, claude: strings.Contains(config.Model, "claude")}
	m.dialect = &dialect{placeholder: config.Placeholder, clock: config.Clock, next: rt}
	m.client = sdk.New(sdk.Options{
		// The address is given whole; the SDK wants a region beside it.
		Region: DefaultRegion, BaseEndpoint: aws.String(base.String()),
		HTTPClient:           m.dialect,
		Retryer:              aws.NopRetryer{},
		AuthSchemePreference: []string{"httpBearerAuth"},
		APIOptions:           []func(*middleware.Stack) error{bare},
	})
	return m, nil
}

// bare takes out of the SDK's chain what signs, looks for credentials, and reads replies.
func bare(stack *middleware.Stack) error {
	for _, id := range []string{"GetIdentity", "ComputePayloadHash", "setLegacyContextSigningOptions", "Signing"} {
		if _, err := stack.Finalize.Remove(id); err != nil {
			return err
		}
	}
	stack.Deserialize.Clear()
	return stack.Deserialize.Add(unread, middleware.After)
}

// unread gives the SDK the empty result that it insists on.
var unread = middleware.DeserializeMiddlewareFunc("echoeval.Unread", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	switch middleware.GetOperationName(ctx) {
	case "ConverseStream":
		out.Result = &sdk.ConverseStreamOutput{}
	case "InvokeModel":
		out.Result = &sdk.InvokeModelOutput{}
	default:
		out.Result = &sdk.ConverseOutput{}
	}
	return out, metadata, err
})

type model struct {
	name    string
	claude  bool
	dialect *dialect
	client  *sdk.Client
	tools   atomic.Pointer[toolList] // of the latest request: they seldom change
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
		c := &call{request: b.body}
		if err := m.send(ctx, c, func(making context.Context) (err error) {
			if req.Blocking {
				_, err = m.client.Converse(making, &sdk.ConverseInput{ModelId: &m.name})
			} else {
				_, err = m.client.ConverseStream(making, &sdk.ConverseStreamInput{ModelId: &m.name})
			}
			return err
		}); err != nil {
			yield(nil, m.failed(ctx, err, c))
			return
		}
		r := reply{yield: yield, position: len(b.messages), id: c.requestID}
		err = r.read(ctx, c.reply)
		_ = wire.Close(c.reply.Body, r.ended)
		if err != nil && !errors.Is(err, errStopped) {
			// The body is closed before the caller hears of the error.
			yield(nil, m.failed(ctx, err, c))
		}
	}
}

// send lets the SDK make the request, by an operation of its client, and sends it. The reply is in c then.
func (m *model) send(ctx context.Context, c *call, operation func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch err := operation(context.WithValue(ctx, callKey{}, c)); {
	case err != nil:
		return err
	case c.made == nil:
		return errors.New("the SDK made no request")
	}
	return m.dialect.send(c.made.WithContext(ctx), c)
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
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case errors.As(err, &answered):
		e.Err = nil
		answered.into(e)
	case c.sent && c.status == 0:
		e.Code = transport.Cause(err)
		e.Retryable = !wire.Final(err)
	case errors.Is(err, errBroken):
		e.Retryable = !wire.Final(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = fmt.Errorf("%w: %w", errBroken, err)
		e.Retryable = true
	}
	return e
}
